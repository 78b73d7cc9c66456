package figures

import (
	"strings"
	"testing"
	"time"

	"plimsoll.dev/lab/internal/rig"
)

const report = `Running 4s test @ http://127.0.0.1:1/healthz
  2 threads and 50 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.98ms    3.10ms  40.21ms   90.00%
    Req/Sec    20.10k     1.00k   22.00k    80.00%
  Latency Distribution
     50%  870.00us
     75%    1.50ms
     90%    4.00ms
     99%    1.02s
  160000 requests in 4.00s, 20.00MB read
  Socket errors: connect 1, read 2, write 0, timeout 3
  Non-2xx or 3xx responses: 40000
Requests/sec:  40000.00
Transfer/sec:      5.00MB
`

func TestParse(t *testing.T) {
	r, err := Parse(report)
	want := Result{Requests: 160000, Seconds: 4, Non2xx: 40000, SocketErrors: 6, P50: 870 * time.Microsecond, P99: 1020 * time.Millisecond}
	if err != nil || r != want || r.QPS() != 30000 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", "unable to connect to 127.0.0.1:1", "  x requests in 4.00s, 1MB read", "  50%  fast"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q was taken for a report", bad)
		}
	}
}

func TestArgs(t *testing.T) {
	got := strings.Join(Load{1, 5, []string{"A: b"}}.Args("http://x"), " ")
	if got != "-t 1 -c 1 -d 5 --timeout 30s --latency -H A: b http://x" {
		t.Error(got)
	}
}

func sample(requests, cpuSeconds float64) Sample {
	return Sample{Result{Requests: requests, Seconds: 2, P50: time.Millisecond}, time.Duration(cpuSeconds * float64(time.Second))}
}

func TestRowsAreSharesOfTheirOwnRound(t *testing.T) {
	group := Group{Name: "g", Load: Load{Connections: 1, Seconds: 2}, Variants: []Variant{{Name: "bare"}, {Name: "other"}}}
	// In the second round the machine is half as fast. The share stays the same.
	rows := Rows(group, [][]Sample{
		{sample(1000, 2), sample(500, 2)},
		{sample(500, 2), sample(250, 2)},
		{sample(1000, 2), sample(600, 2)},
	})
	if rows[0].Share.Median != 1 || rows[1].Share != (Spread{0.5, 0.5, 0.6}) || rows[1].CoreShare != rows[1].Share || rows[1].QPS != 250 || rows[1].PerCore != 250 {
		t.Errorf("%+v", rows)
	}
	text := Markdown(group, rows)
	if !strings.Contains(text, "| other | 50.0 % (50.0 to 60.0) | 50.0 % (50.0 to 60.0) | 250 | 250 | 1.00 ms |") {
		t.Error(text)
	}
	if (Sample{}).perCore() != 0 {
		t.Error("no processor time gives no figure")
	}
}

func TestPlanIsWellFormed(t *testing.T) {
	known := map[string]bool{}
	for _, c := range rig.Cases {
		known[c.Name] = true
	}
	for _, group := range Plan(4) {
		if group.Variants[0].Case != "baseline" || len(group.Variants) < 3 {
			t.Errorf("%s has no baseline, or nothing to compare", group.Name)
		}
		for _, v := range group.Variants {
			if !known[v.Case] || v.Name == "" || v.Address == "" || !strings.HasPrefix(v.Path, "/") {
				t.Errorf("%s: %+v", group.Name, v)
			}
		}
	}
}
