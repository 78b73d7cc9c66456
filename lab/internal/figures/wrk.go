// Package figures measures the cost of the lab's switches with wrk. The variants
// of each group are loaded in turn in each round, so that a slow phase of the
// machine affects all variants. The figures of a round are shares of that
// round's baseline.
//
// These figures are a small cross-check with another tool. They contain no load
// line and no confidence interval.
package figures

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Load contains the settings for a run of wrk.
type Load struct {
	Connections int
	Seconds     int
	Headers     []string
}

// Args returns the arguments of wrk for this load.
func (l Load) Args(url string) []string {
	args := []string{"-t", strconv.Itoa(min(2, l.Connections)), "-c", strconv.Itoa(l.Connections),
		"-d", strconv.Itoa(l.Seconds), "--timeout", "30s", "--latency"}
	for _, header := range l.Headers {
		args = append(args, "-H", header)
	}
	return append(args, url)
}

// Result contains the figures that wrk reports.
type Result struct {
	Requests     float64 // responses
	Seconds      float64
	Non2xx       float64
	SocketErrors float64
	P50, P99     time.Duration
}

// QPS returns the rate of successful responses, in requests a second.
func (r Result) QPS() float64 { return (r.Requests - r.Non2xx) / r.Seconds }

// Run runs wrk once against a URL and returns its figures.
func Run(ctx context.Context, l Load, url string) (Result, error) {
	output, err := exec.CommandContext(ctx, "wrk", l.Args(url)...).CombinedOutput()
	if err != nil {
		return Result{}, fmt.Errorf("wrk on %s: %w: %s", url, err, output)
	}
	return Parse(string(output))
}

// Parse reads the figures from wrk's report.
func Parse(report string) (Result, error) {
	var r Result
	var err error
	lines := bufio.NewScanner(strings.NewReader(report))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		fields := strings.Fields(line)
		switch {
		case strings.Contains(line, " requests in ") && len(fields) >= 4:
			r.Requests, err = strconv.ParseFloat(fields[0], 64)
			if err == nil {
				var took time.Duration
				took, err = parseTime(strings.TrimSuffix(fields[3], ","))
				r.Seconds = took.Seconds()
			}
		case strings.HasPrefix(line, "50%") && len(fields) == 2:
			r.P50, err = parseTime(fields[1])
		case strings.HasPrefix(line, "99%") && len(fields) == 2:
			r.P99, err = parseTime(fields[1])
		case strings.HasPrefix(line, "Non-2xx or 3xx responses:"):
			r.Non2xx, err = strconv.ParseFloat(fields[len(fields)-1], 64)
		case strings.HasPrefix(line, "Socket errors:"):
			for i, field := range fields {
				if n, convErr := strconv.ParseFloat(strings.TrimSuffix(field, ","), 64); convErr == nil && i > 0 {
					r.SocketErrors += n
				}
			}
		}
		if err != nil {
			return r, fmt.Errorf("wrk's line %q is not understood: %w", line, err)
		}
	}
	if r.Seconds == 0 {
		return r, fmt.Errorf("this is no report of wrk: %q", report)
	}
	return r, lines.Err()
}

// parseTime parses a time as wrk prints it: 870.00us, 12.34ms, 5.02s, 1.00m, 1.00h.
func parseTime(text string) (time.Duration, error) { return time.ParseDuration(text) }
