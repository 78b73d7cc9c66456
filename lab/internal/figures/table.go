// Summarises the samples of several rounds as rows of a table.

package figures

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sample is the result of one run of wrk on a variant, and the CPU time that the
// variant's processes used.
type Sample struct {
	Result
	CPU time.Duration
}

// perCore returns the successful requests for each second of the server's CPU
// time.
func (s Sample) perCore() float64 {
	if s.CPU <= 0 {
		return 0
	}
	return (s.Requests - s.Non2xx) / s.CPU.Seconds()
}

// Spread is the median, the minimum and the maximum of a figure over all rounds.
type Spread struct{ Median, Low, High float64 }

func (s Spread) percent() string {
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*s.Median, 100*s.Low, 100*s.High)
}

// Row contains the figures of a variant over all rounds.
type Row struct {
	Variant      string
	CoreShare    Spread // QPS per server core, as a share of the same round's baseline
	Share        Spread // QPS, as a share of the same round's baseline
	QPS          float64
	PerCore      float64
	P50, P99     time.Duration
	Refused      float64 // share of responses that were not 2xx or 3xx
	SocketErrors float64
}

// Rows returns the row of each variant of a group. The samples are given as
// samples[round][variant]; variant 0 is the baseline.
func Rows(group Group, samples [][]Sample) []Row {
	rows := make([]Row, len(group.Variants))
	for i, v := range group.Variants {
		over := func(of func(round []Sample) float64) Spread {
			values := make([]float64, len(samples))
			for r, round := range samples {
				values[r] = of(round)
			}
			slices.Sort(values)
			return Spread{median(values), values[0], values[len(values)-1]}
		}
		rows[i] = Row{
			Variant: v.Name,
			CoreShare: over(func(round []Sample) float64 {
				if round[0].perCore() == 0 {
					return 0
				}
				return round[i].perCore() / round[0].perCore()
			}),
			Share:        over(func(round []Sample) float64 { return round[i].QPS() / round[0].QPS() }),
			QPS:          over(func(round []Sample) float64 { return round[i].QPS() }).Median,
			PerCore:      over(func(round []Sample) float64 { return round[i].perCore() }).Median,
			P50:          time.Duration(over(func(round []Sample) float64 { return float64(round[i].P50) }).Median),
			P99:          time.Duration(over(func(round []Sample) float64 { return float64(round[i].P99) }).Median),
			Refused:      over(func(round []Sample) float64 { return round[i].Non2xx / max(1, round[i].Requests) }).Median,
			SocketErrors: over(func(round []Sample) float64 { return round[i].SocketErrors }).Median,
		}
	}
	return rows
}

// median returns the median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Markdown formats the rows of a group as a Markdown table.
func Markdown(group Group, rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: `wrk %s`\n\n", group.Name, strings.Join(quoteSpaces(group.Load.Args("URL")), " "))
	fmt.Fprintf(&b, "| variant | share of baseline, per core | share of baseline, QPS | QPS per core | QPS | p50 | p99 | refused |\n")
	fmt.Fprintf(&b, "|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		refused := "0"
		if r.Refused > 0 {
			refused = fmt.Sprintf("%.1f %%", 100*r.Refused)
		}
		if r.SocketErrors > 0 {
			refused += fmt.Sprintf(" (%.0f socket errors)", r.SocketErrors)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.0f | %.0f | %s | %s | %s |\n",
			r.Variant, r.CoreShare.percent(), r.Share.percent(), r.PerCore, r.QPS,
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
