//! Formats the results of a load exactly as ab prints them. This file also formats ab's two output
//! files: percentiles of the response time (`-e`), and a line for each request (`-g`). Not here:
//! measuring the figures.

use super::options::AbOptions;
use crate::response_log::{FirstResponse, ResponseRow, ResponseTally};
use plimsoll_model::{Histogram, RequestFailure};
use plimsoll_wire::tls::TlsParameters;
use std::fmt::Write;
use std::net::IpAddr;

/// The data of a load that ab's report needs.
pub struct AbReport<'a> {
    pub options: &'a AbOptions,
    pub host: &'a str,
    pub port: u16,
    pub path: &'a str,
    pub tally: &'a ResponseTally,
    pub first_response: &'a FirstResponse,
    /// The negotiated TLS parameters; `None` without TLS.
    pub tls_parameters: Option<&'a TlsParameters>,
    /// Seconds from the first request to the last response.
    pub seconds: f64,
    /// The size of one encoded request, in bytes.
    pub request_bytes: u64,
}

/// The banner that is printed first. Some programs that parse ab's output skip the lines of ab's
/// banner, so this banner has the same number of lines.
pub const BANNER: &str = concat!(
    "This is plimsoll ",
    env!("CARGO_PKG_VERSION"),
    ". The command line and the output are those of ApacheBench (ab).\n",
    "Times count from the scheduled start of each request\n",
    "Other differences: docs/how-to/coming-from.md\n\n"
);

/// Returns the text that ab prints before the load.
pub fn start_message(host: &str, has_heartbeat: bool) -> String {
    format!("Benchmarking {host} (be patient){}", if has_heartbeat { "\n" } else { "..." })
}

/// Returns the number of requests after which ab prints a progress line; `None` if ab prints none.
pub fn requests_per_progress_line(options: &AbOptions) -> Option<u64> {
    (!options.is_quiet && options.requests > 150).then_some((options.requests / 10).max(100))
}

fn rounded_ms(ns: f64) -> u64 {
    (ns / 1e6).round() as u64
}

/// Formats everything that ab prints after the load.
pub fn render(load: &AbReport) -> String {
    let AbReport { options: asked, tally, first_response: first, seconds, .. } = *load;
    let mut text = format!(
        "\n\nServer Software:        {server}\nServer Hostname:        {host}\nServer Port:            {port}\n",
        server = first.server,
        host = load.host,
        port = load.port
    );
    if let Some(agreed) = load.tls_parameters {
        text += &tls_lines(agreed, load.host);
    }
    let _ = writeln!(text, "\nDocument Path:          {}", load.path);
    match asked.allows_different_lengths {
        true => text += "Document Length:        Variable\n",
        false => _ = writeln!(text, "Document Length:        {} bytes", first.content_bytes),
    }
    let connect = tally.failure_count(RequestFailure::Connect) + tally.failure_count(RequestFailure::Tls);
    let cut = tally.failure_count(RequestFailure::ClosedEarly);
    let length = if asked.allows_different_lengths { 0 } else { tally.different_length_count } + cut;
    let received = tally.completed_count() - tally.response_count() - connect - cut;
    let failed = connect + received + length;
    let done = tally.completed_count();
    let _ = writeln!(text, "\nConcurrency Level:      {}", asked.concurrency);
    let _ = writeln!(text, "Time taken for tests:   {seconds:.3} seconds");
    let _ = writeln!(text, "Complete requests:      {done}");
    let _ = writeln!(text, "Failed requests:        {failed}");
    if failed > 0 {
        let _ = writeln!(text, "   (Connect: {connect}, Receive: {received}, Length: {length}, Exceptions: 0)");
    }
    if tally.non_2xx_response_count() > 0 {
        let _ = writeln!(text, "Non-2xx responses:      {}", tally.non_2xx_response_count());
    }
    if asked.keep_alive {
        let _ = writeln!(text, "Keep-Alive requests:    {}", tally.keep_alive_response_count);
    }
    let transferred = tally.head_bytes + tally.content_bytes;
    let _ = writeln!(text, "Total transferred:      {transferred} bytes");
    // A request whose connection failed was not sent, so the bytes of such a request are not
    // counted.
    let sent = (done - connect) * load.request_bytes;
    if asked.body.is_some() {
        let _ = writeln!(text, "Total body sent:        {sent}");
    }
    let _ = writeln!(text, "HTML transferred:       {} bytes", tally.content_bytes);
    if done == 0 || seconds <= 0.0 {
        return text;
    }
    let each_ms = seconds * 1000.0 / done as f64;
    let kb = |bytes: u64| bytes as f64 / 1024.0 / seconds;
    let _ = writeln!(text, "Requests per second:    {rate_rps:.2} [#/sec] (mean)", rate_rps = done as f64 / seconds);
    let _ = writeln!(
        text,
        "Time per request:       {request_ms:.3} [ms] (mean)",
        request_ms = asked.concurrency as f64 * each_ms
    );
    let _ = writeln!(text, "Time per request:       {each_ms:.3} [ms] (mean, across all concurrent requests)");
    let _ = writeln!(
        text,
        "Transfer rate:          {received_kb_per_s:.2} [Kbytes/sec] received",
        received_kb_per_s = kb(transferred)
    );
    if asked.body.is_some() {
        let _ = writeln!(text, "                        {:.2} kb/s sent", kb(sent));
        let _ = writeln!(text, "                        {:.2} kb/s total", kb(transferred + sent));
    }
    if tally.response_count() > 0 {
        text += &connection_times_table(asked, tally);
    }
    if asked.shows_percentiles && tally.response_count() > 1 {
        text += "\nPercentage of the requests served within a certain time (ms)\n";
        for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
            let within = tally.response_time.quantile_ns(f64::from(percent) / 100.0);
            let _ = writeln!(text, "  {percent}%  {:>5}", rounded_ms(within as f64));
        }
        let _ = writeln!(text, " 100%  {:>5} (longest request)", rounded_ms(tally.response_time.max_ns() as f64));
    }
    text
}

/// Formats the lines about the negotiated TLS parameters.
fn tls_lines(parameters: &TlsParameters, host: &str) -> String {
    let TlsParameters { version, cipher, cipher_bits, key_bits, key_exchange } = parameters;
    let mut text = format!("SSL/TLS Protocol:       {version},{cipher},{key_bits},{cipher_bits}\n");
    if let Some((name, bits)) = key_exchange {
        let _ = writeln!(text, "Server Temp Key:        {name} {bits} bits");
    }
    // The line with the TLS server name is omitted for an IP address, because TLS clients send only
    // host names as the server name.
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_err() {
        let _ = writeln!(text, "TLS Server Name:        {host}");
    }
    text
}

/// Formats the table of connection times. Warnings follow the table if the mean and the median of
/// one of the times differ much.
fn connection_times_table(options: &AbOptions, tally: &ResponseTally) -> String {
    let all: [(&str, &str, &Histogram); 4] = [
        ("Connect:", "the initial connection time", &tally.connect_times_ns),
        ("Processing:", "the processing time", &tally.service_time),
        ("Waiting:", "the waiting time", &tally.wait_times_ns),
        ("Total:", "the total time", &tally.response_time),
    ];
    let mut text = "\nConnection Times (ms)\n".to_owned();
    if !options.shows_deviations {
        text += "              min   avg   max\n";
        for (name, _, times) in &all {
            let (least, mean, most) = (times.min_ns() as f64, times.mean_ns(), times.max_ns() as f64);
            let _ =
                writeln!(text, "{name:<11} {:>5} {:>5}{:>5}", rounded_ms(least), rounded_ms(mean), rounded_ms(most));
        }
        return text;
    }
    text += "              min  mean[+/-sd] median   max\n";
    let mut doubts = String::new();
    for (name, time_name, times) in all {
        let (mean, stdev, median) = (times.mean_ns(), times.stdev_ns(), times.quantile_ns(0.5) as f64);
        let (least, most) = (times.min_ns() as f64, times.max_ns() as f64);
        let _ = writeln!(
            text,
            "{name:<11} {:>5} {:>4} {:>5.1} {:>6} {:>7}",
            rounded_ms(least),
            rounded_ms(mean),
            stdev / 1e6,
            rounded_ms(median),
            rounded_ms(most)
        );
        let apart = (mean - median).abs();
        if apart > 2.0 * stdev {
            let _ = writeln!(
                doubts,
                "ERROR: The median and mean for {time_name} are more than twice the standard\n       deviation apart. These results are NOT reliable."
            );
        } else if apart > stdev {
            let _ = writeln!(
                doubts,
                "WARNING: The median and mean for {time_name} are not within a normal deviation\n        These results are probably not that reliable."
            );
        }
    }
    text + &doubts
}

/// Formats the output file of `-e`. For each percentage from 0 to 99, the file has the time in ms
/// within which this percentage of the requests completed.
pub fn format_percentile_csv(total: &Histogram) -> String {
    let mut text = "Percentage served,Time in ms\n".to_owned();
    for percent in 0..100 {
        let within = if percent == 0 { total.min_ns() } else { total.quantile_ns(f64::from(percent) / 100.0) };
        let _ = writeln!(text, "{percent},{:.3}", within as f64 / 1e6);
    }
    text
}

/// Formats the output file of `-g` for gnuplot: a line for each request, sorted by response time.
/// `wall_us` is the Unix time in us at which the load's clock was 0.
pub fn format_gnuplot_file(rows: &mut [ResponseRow], wall_us: u64) -> String {
    rows.sort_by_key(|row| row.total_us);
    let mut text = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for row in rows {
        let seconds = (wall_us + row.intended_us) / 1_000_000;
        let ms = |us: u32| (us + 500) / 1000;
        let _ = writeln!(
            text,
            "{}\t{seconds}\t{}\t{}\t{}\t{}",
            ctime_text(seconds),
            ms(row.connect_us),
            ms(row.total_us - row.connect_us.min(row.total_us)),
            ms(row.total_us),
            ms(row.wait_us)
        );
    }
    text
}

/// Formats a Unix time as C's `ctime` does, in UTC: `Sun Nov 22 13:48:27 2026`.
fn ctime_text(unix_s: u64) -> String {
    const WEEKDAYS_FROM_THURSDAY: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTH_NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // The date has the format `2026-11-22 13:48:27 UTC`.
    let date = plimsoll_model::calendar::format_utc_date(unix_s * 1000);
    let mut parts = date.split(['-', ' ']);
    let mut next = || parts.next().unwrap_or_default();
    let (year, month, day, time) = (next(), next(), next(), next());
    let month = month.parse().ok().and_then(|month: usize| MONTH_NAMES.get(month.wrapping_sub(1))).unwrap_or(&"");
    format!("{} {month} {day} {time} {year}", WEEKDAYS_FROM_THURSDAY[(unix_s / 86_400 % 7) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_prints_the_exact_report_lines() {
        let mut tally = ResponseTally { head_bytes: 1110, content_bytes: 60, ..ResponseTally::default() };
        for n in 1..=10u64 {
            tally.connect_times_ns.record(100_000);
            tally.wait_times_ns.record(n * 1_000_000);
            tally.service_time.record(n * 1_500_000);
            tally.response_time.record(100_000 + n * 1_500_000);
        }
        tally.statuses.insert(200, 10);
        let asked = AbOptions { requests: 10, concurrency: 2, ..AbOptions::default() };
        let first = FirstResponse { server: "s/1".into(), content_bytes: 6 };
        let load = AbReport {
            options: &asked,
            host: "127.0.0.1",
            port: 8080,
            path: "/",
            tally: &tally,
            first_response: &first,
            tls_parameters: None,
            seconds: 0.5,
            request_bytes: 100,
        };
        assert_eq!(
            render(&load),
            "\n\nServer Software:        s/1
Server Hostname:        127.0.0.1
Server Port:            8080

Document Path:          /
Document Length:        6 bytes

Concurrency Level:      2
Time taken for tests:   0.500 seconds
Complete requests:      10
Failed requests:        0
Total transferred:      1170 bytes
HTML transferred:       60 bytes
Requests per second:    20.00 [#/sec] (mean)
Time per request:       100.000 [ms] (mean)
Time per request:       50.000 [ms] (mean, across all concurrent requests)
Transfer rate:          2.29 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    0   0.0      0       0
Processing:     2    8   4.3      8      15
Waiting:        1    6   2.9      5      10
Total:          2    8   4.3      8      15

Percentage of the requests served within a certain time (ms)
  50%      8
  66%     11
  75%     12
  80%     12
  90%     14
  95%     15
  98%     15
  99%     15
 100%     15 (longest request)
"
        );
        let mut other = tally.clone();
        other.statuses.insert(404, 3);
        other.different_length_count = 3;
        other.failure_counts.push((RequestFailure::Reset, 2));
        let posted = AbOptions { body: Some("f".into()), keep_alive: true, shows_deviations: false, ..asked.clone() };
        let text = render(&AbReport { options: &posted, tally: &other, ..load });
        for line in [
            "Complete requests:      12\nFailed requests:        5\n   (Connect: 0, Receive: 2, Length: 3, Exceptions: 0)\n",
            "Non-2xx responses:      3\nKeep-Alive requests:    0\n",
            "\nTotal body sent:        1200\n",
            "              min   avg   max\nConnect:        0     0    0\n",
            " kb/s sent\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let agreed = TlsParameters {
            version: "TLSv1.3",
            cipher: "TLS_AES_256_GCM_SHA384".into(),
            cipher_bits: 256,
            key_bits: 2048,
            key_exchange: Some(("X25519", 253)),
        };
        let secure = render(&AbReport { tls_parameters: Some(&agreed), host: "localhost", ..load });
        let lines = "Server Port:            8080
SSL/TLS Protocol:       TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256
Server Temp Key:        X25519 253 bits
TLS Server Name:        localhost

Document Path:          /
";
        assert!(secure.contains(lines), "{secure}");
        assert!(!render(&AbReport { tls_parameters: Some(&agreed), ..load }).contains("TLS Server Name"));
        let none = AbReport { tally: &ResponseTally::default(), ..load };
        assert!(render(&none).ends_with("HTML transferred:       0 bytes\n"));
    }

    #[test]
    fn output_files_match_ab() {
        let mut total = Histogram::new();
        (1..=200).for_each(|n| total.record(n * 1_000_000));
        let text = format_percentile_csv(&total);
        assert!(text.starts_with("Percentage served,Time in ms\n0,1.000\n1,2."), "{text}");
        assert_eq!(text.lines().count(), 101);
        let row =
            |total_us| ResponseRow { intended_us: 1_500_000, connect_us: 600, wait_us: 1400, total_us, status: 200 };
        assert_eq!(
            format_gnuplot_file(&mut [row(7200), row(3100)], 1_795_355_306_000_000),
            "starttime\tseconds\tctime\tdtime\tttime\twait
Sun Nov 22 13:48:27 2026\t1795355307\t1\t3\t3\t1
Sun Nov 22 13:48:27 2026\t1795355307\t1\t7\t7\t1
"
        );
    }
}
