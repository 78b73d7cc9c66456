// From rounds of results to rows of a table.

package figures

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sample is one run of wrk on a variant and the processor time it took there.
type Sample struct {
	Result
	CPU time.Duration
}

// perCore is requests a second for each core that the server kept busy.
func (s Sample) perCore() float64 {
	if s.CPU <= 0 {
		return 0
	}
	return (s.Requests - s.Non2xx) / s.CPU.Seconds()
}

// Row is a variant's figures over all rounds.
type Row struct {
	Variant      string
	Share        float64 // of the same round's baseline
	ShareLow     float64
	ShareHigh    float64
	QPS          float64
	PerCore      float64
	P50, P99     time.Duration
	Refused      float64 // share of answers that were not 2xx or 3xx
	SocketErrors float64
}

// Rows sums up a group: samples[round][variant], variant 0 the baseline.
func Rows(group Group, samples [][]Sample) []Row {
	rows := make([]Row, len(group.Variants))
	for i, v := range group.Variants {
		column := func(of func(round []Sample) float64) []float64 {
			values := make([]float64, len(samples))
			for r, round := range samples {
				values[r] = of(round)
			}
			slices.Sort(values)
			return values
		}
		shares := column(func(round []Sample) float64 { return round[i].QPS() / round[0].QPS() })
		rows[i] = Row{
			Variant: v.Name,
			Share:   median(shares), ShareLow: shares[0], ShareHigh: shares[len(shares)-1],
			QPS:          median(column(func(round []Sample) float64 { return round[i].QPS() })),
			PerCore:      median(column(func(round []Sample) float64 { return round[i].perCore() })),
			P50:          time.Duration(median(column(func(round []Sample) float64 { return float64(round[i].P50) }))),
			P99:          time.Duration(median(column(func(round []Sample) float64 { return float64(round[i].P99) }))),
			Refused:      median(column(func(round []Sample) float64 { return round[i].Non2xx / round[i].Requests })),
			SocketErrors: median(column(func(round []Sample) float64 { return round[i].SocketErrors })),
		}
	}
	return rows
}

// median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Markdown is the table of a group.
func Markdown(group Group, rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: `wrk %s`\n\n", group.Name, strings.Join(quoteSpaces(group.Load.Args("URL")), " "))
	fmt.Fprintf(&b, "| variant | share of baseline (lowest to highest round) | QPS per server core | QPS | p50 | p99 | refused |\n")
	fmt.Fprintf(&b, "|---|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		refused := "0"
		if r.Refused > 0 {
			refused = fmt.Sprintf("%.1f %%", 100*r.Refused)
		}
		if r.SocketErrors > 0 {
			refused += fmt.Sprintf(" (%.0f socket errors)", r.SocketErrors)
		}
		fmt.Fprintf(&b, "| %s | %.2f %% (%.2f to %.2f) | %.0f | %.0f | %s | %s | %s |\n",
			r.Variant, 100*r.Share, 100*r.ShareLow, 100*r.ShareHigh, r.PerCore, r.QPS,
			millis(r.P50), millis(r.P99), refused)
	}
	return b.String()
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }

func quoteSpaces(args []string) []string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if quoted[i] = arg; strings.ContainsAny(arg, " ;%") {
			quoted[i] = "'" + arg + "'"
		}
	}
	return quoted
}
