//! Formats figures exactly as vegeta's reports do, so that programs which parse those reports keep
//! working.
//!
//! Not here: computing the figures.

use plimsoll_logs::vegeta::VegetaFigures;
use std::fmt::Write;

/// The shares of requests (0 to 1) at which the HdrHistogram plot has points. vegeta plots points
/// at the same shares.
const HISTOGRAM_PLOT_SHARES: &[f64] = &[
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.8875, 0.9, 0.9125,
    0.925, 0.9375, 0.94375, 0.95, 0.95625, 0.9625, 0.96875, 0.971875, 0.975, 0.978125, 0.98125, 0.984375, 0.985938,
    0.9875, 0.989062, 0.990625, 0.992188, 0.992969, 0.99375, 0.994531, 0.995313, 0.996094, 0.996484, 0.996875,
    0.997266, 0.997656, 0.998047, 0.998242, 0.998437, 0.998633, 0.998828, 0.999023, 0.999121, 0.999219, 0.999316,
    0.999414, 0.999512, 0.999561, 0.999609, 0.999658, 0.999707, 0.999756, 0.99978, 0.999805, 0.999829, 0.999854,
    0.999878, 0.99989, 0.999902, 0.999915, 0.999927, 0.999939, 0.999945, 0.999951, 0.999957, 0.999963, 0.999969,
    0.999973, 0.999976, 0.999979, 0.999982, 0.999985, 0.999986, 0.999988, 0.999989, 0.999991, 0.999992, 0.999993,
    0.999994, 0.999995, 0.999996, 0.999997, 0.999998, 0.999999, 1.0,
];

/// Formats the report of `-type text`.
pub fn format_text_report(figures: &mut VegetaFigures) -> String {
    let time = |ns: u64| go_duration(round_to_smaller_unit(ns));
    let (attack, wait) = (figures.request_span_ns(), figures.last_response_wait_ns());
    let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|share| figures.quantile_ns(share));
    let mean = figures.mean_per_request(figures.latency_ns_total) as u64;
    let latencies = [figures.latency_ns_min, mean, p50, p90, p95, p99, figures.latency_ns_max].map(time).join(", ");
    let VegetaFigures { requests, bytes_in, bytes_out, .. } = *figures;
    let codes: Vec<String> = figures.codes.iter().map(|(code, count)| format!("{code}:{count}  ")).collect();
    let mut out = format_aligned_rows(&[
        &[
            "Requests",
            "[total, rate, throughput]",
            &format!("{requests}, {:.2}, {:.2}", figures.rate_rps(), figures.throughput_rps()),
        ],
        &["Duration", "[total, attack, wait]", &[attack + wait, attack, wait].map(time).join(", ")],
        &["Latencies", "[min, mean, 50, 90, 95, 99, max]", &latencies],
        &["Bytes In", "[total, mean]", &format!("{bytes_in}, {:.2}", figures.mean_per_request(bytes_in))],
        &["Bytes Out", "[total, mean]", &format!("{bytes_out}, {:.2}", figures.mean_per_request(bytes_out))],
        &["Success", "[ratio]", &format!("{:.2}%", figures.success_share() * 100.0)],
        &["Status Codes", "[code:count]", &codes.concat()],
    ]);
    out += "Error Set:\n";
    figures.errors.iter().for_each(|error| out.extend([error, "\n"]));
    out
}

/// Formats the report of `-type json`.
pub fn format_json_report(figures: &mut VegetaFigures) -> String {
    let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|share| figures.quantile_ns(share));
    let VegetaFigures {
        requests,
        bytes_in,
        bytes_out,
        latency_ns_total: total,
        latency_ns_min: min,
        latency_ns_max: max,
        ..
    } = *figures;
    let mut out = format!(
        "{{\"latencies\":{{\"total\":{total},\"mean\":{},\"50th\":{p50},\"90th\":{p90},\"95th\":{p95},\"99th\":{p99},\"max\":{max},\"min\":{min}}},",
        figures.mean_per_request(total) as u64
    );
    if !figures.buckets.is_empty() {
        let buckets: Vec<String> =
            figures.buckets.iter().map(|(bound, count)| format!("\"{bound}\":{count}")).collect();
        let _ = write!(out, "\"buckets\":{{{}}},", buckets.join(","));
    }
    for (name, total) in [("bytes_in", bytes_in), ("bytes_out", bytes_out)] {
        let _ = write!(out, "\"{name}\":{{\"total\":{total},\"mean\":{}}},", figures.mean_per_request(total));
    }
    let [earliest, latest, end] = figures.attack_timestamps();
    let codes: Vec<String> = figures.codes.iter().map(|(code, count)| format!("\"{code}\":{count}")).collect();
    let errors = serde_json::Value::from(figures.errors.clone());
    let _ = writeln!(
        out,
        "\"earliest\":\"{earliest}\",\"latest\":\"{latest}\",\"end\":\"{end}\",\"duration\":{},\"wait\":{},\"requests\":{requests},\
         \"rate\":{},\"throughput\":{},\"success\":{},\"status_codes\":{{{}}},\"errors\":{errors}}}",
        figures.request_span_ns(),
        figures.last_response_wait_ns(),
        figures.rate_rps(),
        figures.throughput_rps(),
        figures.success_share(),
        codes.join(",")
    );
    out
}

/// Formats the report of `-type hist[...]`.
pub fn format_histogram_report(figures: &VegetaFigures) -> String {
    let mut rows = vec![["Bucket", "", "#", "%", "Histogram"].map(str::to_owned)];
    for (at, (bound, count)) in figures.buckets.iter().enumerate() {
        let next = figures.buckets.get(at + 1).map_or_else(|| "+Inf".to_owned(), |(next, _)| go_duration(*next));
        let share = figures.mean_per_request(*count);
        let bar = "#".repeat((share * 75.0) as usize);
        rows.push([
            format!("[{},", go_duration(*bound)),
            format!("{next}]"),
            count.to_string(),
            format!("{:.2}%", share * 100.0),
            bar,
        ]);
    }
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    format_aligned_rows(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Formats the report of `-type hdrplot`.
pub fn format_hdr_plot(figures: &mut VegetaFigures) -> String {
    let mut rows = vec![["Value(ms)", "Percentile", "TotalCount", "1/(1-Percentile)"].map(str::to_owned)];
    for share in HISTOGRAM_PLOT_SHARES {
        let value_ms = figures.quantile_ns(*share) as f64 / 1e6;
        let count = (share * figures.requests as f64 + 0.5) as u64;
        let over = if *share < 1.0 { 1.0 / (1.0 - share) } else { 1e7 };
        rows.push([format!("{value_ms:.6}"), format!("{share:.6}"), count.to_string(), format!("{over:.6}")]);
    }
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    format_aligned_rows(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Formats rows as a table with aligned columns, which are two spaces apart. The last column is not
/// padded.
fn format_aligned_rows(rows: &[&[&str]]) -> String {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let widest =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut out = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            out += cell;
            if at + 1 < row.len() {
                // A column whose cells are all empty takes no space.
                let pad = match widths[at] {
                    0 => 0,
                    width => width + 2 - cell.chars().count(),
                };
                out.extend(std::iter::repeat_n(' ', pad));
            }
        }
        out.push('\n');
    }
    out
}

/// Rounds a time in ns to the next smaller unit, such as to us if the time is printed in ms.
fn round_to_smaller_unit(ns: u64) -> u64 {
    const UNITS_NS: [u64; 6] = [3_600_000_000_000, 60_000_000_000, 1_000_000_000, 1_000_000, 1_000, 1];
    let unit = UNITS_NS.windows(2).find(|pair| ns >= pair[0]).map_or(1, |pair| pair[1]);
    (ns + unit / 2) / unit * unit
}

/// Formats a duration as Go does.
fn go_duration(ns: u64) -> String {
    let fraction = |whole: u64, part: u64, digits: usize| {
        let digits = format!("{part:0digits$}");
        match digits.trim_end_matches('0') {
            "" => whole.to_string(),
            digits => format!("{whole}.{digits}"),
        }
    };
    match ns {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(ns / 1_000, ns % 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(ns / 1_000_000, ns % 1_000_000, 6)),
        _ => {
            let seconds = ns / 1_000_000_000;
            let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
            let mut text = String::new();
            if hours > 0 {
                let _ = write!(text, "{hours}h");
            }
            if seconds >= 60 {
                let _ = write!(text, "{minutes}m");
            }
            text + &fraction(seconds % 60, ns % 1_000_000_000, 9) + "s"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_logs::vegeta::VegetaReader;

    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!("../../../plimsoll-logs/tests/vegeta/", $name))
        };
    }

    fn fixture_figures(bounds_ns: &[u64]) -> VegetaFigures {
        let mut reader = VegetaReader::new(fixture!("results.json").as_bytes());
        let mut figures = VegetaFigures::new(bounds_ns);
        while let Some(result) = reader.next_result().expect("results") {
            figures.add(&result);
        }
        figures
    }

    #[test]
    fn reports_match_vegeta_exactly() {
        assert_eq!(format_text_report(&mut fixture_figures(&[])), fixture!("report.txt"));
        assert_eq!(format_json_report(&mut fixture_figures(&[])).trim_end(), fixture!("report.json").trim_end());
        assert_eq!(
            format_histogram_report(&fixture_figures(&[0, 100_000, 200_000, 500_000, 1_000_000])),
            fixture!("report-hist.txt")
        );
        assert_eq!(format_hdr_plot(&mut fixture_figures(&[])), fixture!("report-hdrplot.txt"));
        assert!(
            format_json_report(&mut fixture_figures(&[0, 1_000_000]))
                .contains("\"min\":100400},\"buckets\":{\"0\":118,\"1000000\":2},\"bytes_in\"")
        );
    }

    /// Checks that a table with very many rows is aligned in one pass. An earlier version of the
    /// function took minutes, because it measured all columns again for each row.
    #[test]
    fn many_rows_are_aligned_in_one_pass() {
        let row: &[&str] = &["a", "b", "c"];
        let began = std::time::Instant::now();
        assert_eq!(format_aligned_rows(&vec![row; 60_000]).len(), 60_000 * "a  b  c\n".len());
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn a_report_of_zero_results_is_valid() {
        let none = &mut VegetaFigures::new(&[0]);
        assert!(
            format_text_report(none).contains("0, 0.00, 0.00\n")
                && format_json_report(none).contains("\"requests\":0,")
        );
        assert!(format_histogram_report(none).contains("+Inf]") && format_hdr_plot(none).lines().count() == 95);
    }

    #[test]
    fn durations_are_formatted_as_in_go() {
        for (ns, expect) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (100_400, "100.4µs"),
            (1_086_419, "1.086419ms"),
            (2_976_000_000, "2.976s"),
            (60_000_000_000, "1m0s"),
            (3_723_500_000_000, "1h2m3.5s"),
        ] {
            assert_eq!(go_duration(ns), expect);
        }
        assert_eq!(
            [1_086_419, 533_778, 2_975_598_655, 90_499_999_999].map(round_to_smaller_unit),
            [1_086_000, 533_778, 2_976_000_000, 90_000_000_000]
        );
    }
}
