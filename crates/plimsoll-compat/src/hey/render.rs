//! Formats a load exactly as hey prints it: as a summary, or as a CSV line for each response.
//! Not here: measuring the figures.

use super::options::HeyOptions;
use crate::response_log::{ResponseRow, ResponseTally};
use plimsoll_model::control_characters::escape_keeping_lines;
use plimsoll_model::{Histogram, RequestFailure};
use std::fmt::Write;

/// The number of equal steps of the histogram between the fastest and the slowest response.
const HISTOGRAM_STEPS: u32 = 10;
/// The length of the longest histogram bar, in characters.
const BAR_CELLS: u64 = 40;

fn format_seconds(ns: f64) -> String {
    format!("{:.4} secs", ns / 1e9)
}

/// Formats hey's summary. `total_ns` is the time from the first request to the last response in ns;
/// `host` includes the port.
pub fn format_summary(options: &HeyOptions, host: &str, tally: &ResponseTally, total_ns: u64) -> String {
    let total = &tally.response_time;
    let rps = if total_ns == 0 { 0.0 } else { tally.completed_count() as f64 * 1e9 / total_ns as f64 };
    let mut text = format!(
        "\nSummary:\n  Total:\t{whole_time}\n  Slowest:\t{slowest}\n  Fastest:\t{fastest}\n  \
         Average:\t{average}\n  Requests/sec:\t{rps:.4}\n  \n",
        whole_time = format_seconds(total_ns as f64),
        slowest = format_seconds(total.max_ns() as f64),
        fastest = format_seconds(total.min_ns() as f64),
        average = format_seconds(total.mean_ns()),
    );
    if tally.content_bytes > 0 {
        let each = tally.content_bytes / tally.response_count().max(1);
        let _ = writeln!(
            text,
            "  Total data:\t{content_bytes} bytes\n  Size/request:\t{each} bytes",
            content_bytes = tally.content_bytes
        );
    }
    text += "\nResponse time histogram:\n";
    text += &format_histogram(total);
    text += "\n\nLatency distribution:\n";
    if total.count() > 0 {
        for percent in [10, 25, 50, 75, 90, 95, 99] {
            let within = total.quantile_ns(f64::from(percent) / 100.0);
            let _ = writeln!(text, "  {percent}% in {}", format_seconds(within as f64));
        }
    }
    text += "\nDetails (average, fastest, slowest):\n";
    // The rows for name lookup and for writing the request are always zero. Names are looked up
    // before the load, and the time for writing a request counts as waiting for the response.
    let none = Histogram::new();
    for (name, times) in [
        ("DNS+dialup", &tally.connect_times_ns),
        ("DNS-lookup", &none),
        ("req write", &none),
        ("resp wait", &tally.wait_times_ns),
        ("resp read", &tally.read_times_ns),
    ] {
        let (mean, least, most) = (times.mean_ns(), times.min_ns() as f64, times.max_ns() as f64);
        let _ =
            writeln!(text, "  {name}:\t{}, {}, {}", format_seconds(mean), format_seconds(least), format_seconds(most));
    }
    text += "\nStatus code distribution:\n";
    for (status, count) in &tally.statuses {
        let _ = writeln!(text, "  [{status}]\t{count} responses");
    }
    text += "\n";
    if tally.failure_counts.is_empty() && tally.redirects_beyond_limit.0 == 0 {
        text += "\n";
    } else {
        text += "Error distribution:\n";
        for (failure, count) in &tally.failure_counts {
            let _ = writeln!(text, "  [{count}]\t{}", escape_keeping_lines(&go_error_message(options, host, *failure)));
        }
        if tally.redirects_beyond_limit.0 > 0 {
            let _ = writeln!(
                text,
                "  [{}]\t{}",
                tally.redirects_beyond_limit.0,
                escape_keeping_lines(&tally.redirects_beyond_limit.1)
            );
        }
    }
    text + "\n"
}

/// Formats the histogram of response times, in ten steps of equal width between the fastest and the
/// slowest response.
fn format_histogram(total: &Histogram) -> String {
    if total.count() == 0 {
        return String::new();
    }
    let (least, most) = (total.min_ns(), total.max_ns());
    let bound = |step: u32| {
        if step == HISTOGRAM_STEPS {
            most
        } else {
            least + (most - least) * u64::from(step) / u64::from(HISTOGRAM_STEPS)
        }
    };
    let mut below = 0;
    let steps: Vec<(u64, u64)> = (0..=HISTOGRAM_STEPS)
        .map(|step| {
            let within = total.count() - total.count_above(bound(step));
            let count = within - below;
            below = within;
            (bound(step), count)
        })
        .collect();
    let largest = steps.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let line = |(bound_ns, count): &(u64, u64)| {
        let cells = (count * BAR_CELLS + largest / 2) / largest;
        format!("  {:.3} [{count}]\t|{}\n", *bound_ns as f64 / 1e9, "■".repeat(cells as usize))
    };
    steps.iter().map(line).collect()
}

/// Returns Go's error message for a request without a response.
fn go_error_message(options: &HeyOptions, host: &str, failure: RequestFailure) -> String {
    let mut method = options.method.to_ascii_lowercase();
    method[..1].make_ascii_uppercase();
    let why = match failure {
        RequestFailure::Connect => format!("dial tcp {host}: connect: connection refused"),
        RequestFailure::Timeout => "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".into(),
        RequestFailure::ClosedEarly => "EOF".into(),
        RequestFailure::Tls => "tls: handshake failure".into(),
        RequestFailure::Protocol => "net/http: malformed HTTP response".into(),
        _ => "read: connection reset by peer".into(),
    };
    format!("{method} \"{}\": {why}", plimsoll_traffic::target_url::redact_query(&options.url))
}

/// Formats a CSV line for each response. `began_us` is the start of the load in us on the load's
/// clock.
pub fn format_csv(rows: &[ResponseRow], began_us: u64) -> String {
    let mut text =
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n".to_owned();
    let seconds = |us: u32| f64::from(us) / 1e6;
    for row in rows {
        let read_us = row.total_us.saturating_sub(row.connect_us).saturating_sub(row.wait_us);
        let _ = writeln!(
            text,
            "{:.4},{:.4},0.0000,0.0000,{:.4},{:.4},{},{:.4}",
            seconds(row.total_us),
            seconds(row.connect_us),
            seconds(row.wait_us),
            seconds(read_us),
            row.status,
            row.intended_us.saturating_sub(began_us) as f64 / 1e6
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::options::parse;
    use super::*;

    fn parse_options(line: &str) -> HeyOptions {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words).expect("understood").expect("a load")
    }

    #[test]
    fn a_load_prints_the_exact_report_lines() {
        let mut tally = ResponseTally { content_bytes: 600, ..ResponseTally::default() };
        for n in 1..=100u64 {
            tally.response_time.record(n * 1_000_000);
            tally.connect_times_ns.record(100_000);
            tally.wait_times_ns.record(n * 800_000);
            tally.read_times_ns.record(100_000);
        }
        tally.statuses.extend([(200, 90), (404, 10)]);
        let text =
            format_summary(&parse_options("-n 100 -c 2 http://127.0.0.1:1/"), "127.0.0.1:1", &tally, 2_000_000_000);
        let expect = "
Summary:
  Total:\t2.0000 secs
  Slowest:\t0.1000 secs
  Fastest:\t0.0010 secs
  Average:\t0.0505 secs
  Requests/sec:\t50.0000
  
  Total data:\t600 bytes
  Size/request:\t6 bytes

Response time histogram:
  0.001 [1]\t|■■■■
  0.011 [9]\t|";
        assert!(text.starts_with(expect), "{text}");
        for part in [
            "\n\n\nLatency distribution:\n  10% in 0.0100 secs\n  25% in 0.025",
            "\n  99% in 0.09",
            "\n\nDetails (average, fastest, slowest):\n  DNS+dialup:\t0.0001 secs, 0.0001 secs, 0.0001 secs\n  DNS-lookup:\t0.0000 secs, 0.0000 secs, 0.0000 secs\n  req write:\t",
            "  resp wait:\t0.0404 secs, 0.0008 secs, 0.0800 secs\n",
            "\n\nStatus code distribution:\n  [200]\t90 responses\n  [404]\t10 responses\n\n\n\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        tally.failure_counts.extend([(RequestFailure::Connect, 3), (RequestFailure::Timeout, 1)]);
        let text = format_summary(&parse_options("-m post http://127.0.0.1:1/"), "127.0.0.1:1", &tally, 1);
        let error = "\nError distribution:\n  [3]\tPost \"http://127.0.0.1:1/\": dial tcp 127.0.0.1:1: connect: connection refused\n  [1]\tPost";
        assert!(text.contains(error), "{text}");
        let none = format_summary(&parse_options("http://h/"), "h:80", &ResponseTally::default(), 0);
        assert!(none.contains("  Average:\t0.0000 secs\n") && !none.contains("NaN"), "{none}");
    }

    #[test]
    fn csv_lines_match_hey() {
        let row = ResponseRow { intended_us: 2_500_000, connect_us: 600, wait_us: 1400, total_us: 2300, status: 404 };
        assert_eq!(
            format_csv(&[row], 2_000_000),
            "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset
0.0023,0.0006,0.0000,0.0000,0.0014,0.0003,404,0.5000
"
        );
    }
}
