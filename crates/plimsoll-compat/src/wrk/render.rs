//! Formats a run exactly as wrk and wrk2 print it, so that programs which parse their output keep
//! working.
//!
//! Not here: measuring the figures, and plimsoll's own results, which are printed below wrk's
//! output.

use super::units::{format_binary_units, format_metric_units, format_time_s, format_time_us};
use plimsoll_script::{ScriptFigures, ScriptSummary};
use std::fmt::Write;

/// The data of a run that wrk's output needs.
pub struct WrkReport<'a> {
    pub summary: &'a ScriptSummary,
    /// The latencies in us. wrk shows service times; wrk2 shows response times, which count from
    /// the intended start.
    pub latency_us: &'a ScriptFigures,
    /// The request rate of each thread in requests per second, sampled every tenth of a second.
    pub thread_rps: &'a ScriptFigures,
    pub distribution: LatencyDistribution<'a>,
}

/// The latency distribution that the output contains: no distribution, wrk's distribution, or
/// wrk2's distribution.
pub enum LatencyDistribution<'a> {
    Hidden,
    /// The distribution of wrk: four percentiles.
    Short,
    /// The distribution of wrk2: eight percentiles and the detailed spectrum. With `-U`, the output
    /// also has the percentiles and spectrum of service times.
    Full {
        uncorrected_us: Option<&'a ScriptFigures>,
    },
}

/// Returns the two lines that wrk prints before the load.
pub fn opening_lines(duration_ns: u64, url: &str, threads: u64, connections: u64) -> String {
    let duration = match duration_ns % 1_000_000_000 {
        0 => format_time_s(duration_ns as f64 / 1e9),
        _ => format!("{}ms", duration_ns / 1_000_000),
    };
    format!("Running {duration} test @ {url}\n  {threads} threads and {connections} connections\n")
}

/// Aligns a text to the right in `width` characters. The last two characters are reserved for the
/// unit.
fn align_right(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).take_while(u8::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    format!("{text:>width$}{:pad$}", "", width = width - pad)
}

fn stats_line(name: &str, figures: &ScriptFigures, format_value: fn(f64) -> String) -> String {
    format!(
        "    {name:<10}{}{}{}{:>8.2}%\n",
        align_right(&format_value(figures.mean()), 8),
        align_right(&format_value(figures.stdev()), 10),
        align_right(&format_value(figures.max() as f64), 9),
        figures.within_stdev_percent(1.0),
    )
}

/// Formats everything that wrk prints after the load.
pub fn render(run: &WrkReport) -> String {
    let WrkReport { summary, latency_us, thread_rps: requests, distribution } = run;
    let mut text = format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    text += &stats_line("Latency", latency_us, format_time_us);
    text += &stats_line("Req/Sec", requests, format_metric_units);
    match distribution {
        LatencyDistribution::Hidden => {}
        LatencyDistribution::Short => {
            text += "  Latency Distribution\n";
            for percent in [50.0, 75.0, 90.0, 99.0] {
                let value = format_time_us(latency_us.percentile(percent) as f64);
                let _ = writeln!(text, "{percent:>7.0}%{}", align_right(&value, 10));
            }
        }
        LatencyDistribution::Full { uncorrected_us } => {
            text += &percentile_spectrum(latency_us, "Recorded Latency");
            if let Some(uncorrected) = uncorrected_us {
                text += "\n";
                text += &percentile_spectrum(
                    uncorrected,
                    "Uncorrected Latency (measured without taking delayed starts into account)",
                );
            }
        }
    }
    let seconds = summary.duration_us as f64 / 1e6;
    let a_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let _ = writeln!(
        text,
        "  {requests} requests in {duration}, {bytes_read}B read",
        requests = summary.requests,
        duration = format_time_us(summary.duration_us as f64),
        bytes_read = format_binary_units(summary.bytes as f64)
    );
    let ScriptSummary {
        errors_connect: connect, errors_read: read, errors_write: write, errors_timeout: timeout, ..
    } = summary;
    if connect + read + write + timeout > 0 {
        let _ = writeln!(text, "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}");
    }
    if summary.errors_status > 0 {
        let _ = writeln!(text, "  Non-2xx or 3xx responses: {responses}", responses = summary.errors_status);
    }
    let _ = writeln!(text, "Requests/sec: {:>9.2}", a_second(summary.requests));
    let _ = writeln!(text, "Transfer/sec: {:>10}B", format_binary_units(a_second(summary.bytes)));
    text
}

/// Formats wrk2's percentiles, and its detailed percentile spectrum, which HdrHistogram tools can
/// plot.
fn percentile_spectrum(figures: &ScriptFigures, what: &str) -> String {
    let mut text = format!("  Latency Distribution (HdrHistogram - {what})\n");
    for percent in [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
        let value = format_time_us(figures.percentile(percent) as f64);
        let _ = writeln!(text, "{percent:>7.3}%{}", align_right(&value, 10));
    }
    text += "\n  Detailed Percentile spectrum:\n";
    let _ = writeln!(text, "{:>12} {:>12} {:>12} {:>12}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for (value, share, total) in spectrum_points(figures) {
        let value = value as f64 / 1000.0;
        if share < 1.0 {
            let _ = writeln!(text, "{value:>12.3} {share:>12.6} {total:>12} {:>12.2}", 1.0 / (1.0 - share));
        } else {
            let _ = writeln!(text, "{value:>12.3} {share:>12.6} {total:>12} {:>12}", "inf");
        }
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        figures.mean() / 1000.0,
        figures.stdev() / 1000.0
    );
    let _ = writeln!(
        text,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        figures.max() as f64 / 1000.0,
        figures.count()
    );
    let _ = writeln!(text, "#[Buckets = {:>12}, SubBuckets     = {:>12}]", 27, 2048);
    text += "----------------------------------------------------------\n";
    text
}

/// Returns the points of the percentile spectrum as (value, share, number of values up to this
/// value). The shares begin at 0 and approach 1, and every five points halve the distance between
/// the share and 1.
fn spectrum_points(figures: &ScriptFigures) -> Vec<(u64, f64, u64)> {
    let count = figures.count();
    let mut found = Vec::new();
    if count == 0 {
        return found;
    }
    let mut share = 0.0f64;
    loop {
        let value = figures.percentile(share * 100.0);
        let total = figures.count_up_to(value);
        if total >= count || share >= 1.0 - 1e-7 {
            found.push((value, share, total));
            found.push((figures.max(), 1.0, count));
            return found;
        }
        found.push((value, share, total));
        // After each halving of the distance between `share` and 1, five equal steps lead to the
        // next halving.
        let half_distance = 2f64.powi(((1.0 / (1.0 - share)).log2().floor()) as i32 + 1);
        share += 1.0 / (5.0 * half_distance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_report(summary: &ScriptSummary, distribution: LatencyDistribution) -> String {
        let latency_us = ScriptFigures::new([(600, 68), (700, 20), (12_020, 12)]);
        let requests = ScriptFigures::new([(56_200, 3), (57_000, 1)]);
        render(&WrkReport { summary, latency_us: &latency_us, thread_rps: &requests, distribution })
    }

    #[test]
    fn a_run_prints_the_exact_report_lines() {
        let summary = ScriptSummary {
            duration_us: 30_000_000,
            requests: 22_464_657,
            bytes: 19_069_976_576,
            ..Default::default()
        };
        assert_eq!(
            render_report(&summary, LatencyDistribution::Hidden),
            "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.99ms    3.72ms  12.02ms   88.00%
    Req/Sec    56.40k   400.00    57.00k    75.00%
  22464657 requests in 30.00s, 17.76GB read
Requests/sec: 748821.90
Transfer/sec:    606.22MB
"
        );
        let summary = ScriptSummary { errors_read: 3, errors_timeout: 4, errors_status: 5, ..summary };
        let text = render_report(&summary, LatencyDistribution::Short);
        assert!(text.contains("\n  Latency Distribution\n     50%  600.00us\n     75%  700.00us\n     90%   12.02ms\n     99%   12.02ms\n"), "{text}");
        assert!(
            text.contains("\n  Socket errors: connect 0, read 3, write 0, timeout 4\n  Non-2xx or 3xx responses: 5\n"),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_responses_has_figures() {
        let none = ScriptFigures::new([]);
        let summary = ScriptSummary::default();
        for distribution in [
            LatencyDistribution::Hidden,
            LatencyDistribution::Short,
            LatencyDistribution::Full { uncorrected_us: None },
        ] {
            let text = render(&WrkReport { summary: &summary, latency_us: &none, thread_rps: &none, distribution });
            assert!(text.contains("Latency     0.00us    0.00us   0.00us    0.00%\n"), "{text}");
            assert!(text.contains("Requests/sec:      0.00\n"), "{text}");
        }
    }

    #[test]
    fn the_announcement_matches_wrk() {
        let expect = "Running 30s test @ http://h/\n  12 threads and 400 connections\n";
        assert_eq!(opening_lines(30_000_000_000, "http://h/", 12, 400), expect);
        assert!(opening_lines(500_000_000, "u", 1, 1).starts_with("Running 500ms test"));
    }
}
