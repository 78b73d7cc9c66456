//! Parses metrics in Prometheus' text format (and OpenMetrics), and in the JSON of Go's
//! `/debug/vars`. In Prometheus' format, metrics of runtime, pools, queues and garbage collection
//! are preferred. Other metrics are used only if the server has no preferred metric.

use plimsoll_model::SeriesKind;
use plimsoll_model::redact::{REDACTED, is_secret_name};
use serde_json::Value;
use std::collections::BTreeMap;

/// One metric of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerMetric {
    /// The metric's name with its labels, as the server writes them.
    pub name: String,
    pub kind: SeriesKind,
    pub value: f64,
}

/// The prefixes of metric names that belong to language runtimes.
const RUNTIME_METRIC_PREFIXES: [&str; 12] = [
    "go_",
    "process_",
    "jvm_",
    "nodejs_",
    "python_",
    "dotnet_",
    "ruby_",
    "puma_",
    "hikaricp_",
    "tomcat_",
    "jetty_",
    "erlang_",
];
/// Words in metric names by which pools, queues and garbage collection are recognised.
const RUNTIME_METRIC_WORDS: [&str; 12] = [
    "pool",
    "queue",
    "conn",
    "gc",
    "goroutine",
    "thread",
    "inflight",
    "in_flight",
    "wait",
    "eventloop",
    "limiter",
    "worker",
];
/// The longest metric name that is recorded, in bytes.
const METRIC_NAME_BYTES_MAX: usize = 200;

fn is_runtime_metric(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RUNTIME_METRIC_PREFIXES.iter().any(|start| name.starts_with(start))
        || RUNTIME_METRIC_WORDS.iter().any(|word| name.contains(word))
}

/// The choice of metrics to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricSelection {
    /// Metrics of runtime, pools, queues and garbage collection.
    Runtime,
    /// All metrics: the choice for a server whose metrics page has no runtime metrics.
    All,
}

/// Parses metrics in Prometheus' text format or in the JSON of Go's `/debug/vars`. Returns `None`
/// if the bytes are in neither format, or every line is invalid. Single invalid lines are skipped.
pub fn parse(bytes: &[u8], take: MetricSelection) -> Option<Vec<ServerMetric>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.trim_start().starts_with('{') {
        return parse_debug_vars(text);
    }
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut metrics, mut understood) = (Vec::new(), 0);
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_whitespace();
            if words.next() == Some("TYPE")
                && let (Some(name), Some(kind)) = (words.next(), words.next())
            {
                kinds.insert(name, kind);
            }
            continue;
        }
        let Some((name, labels, value)) = parse_sample(line) else { continue };
        understood += 1;
        // Histogram buckets are skipped: there are many, and the histogram's count and sum suffice.
        if name.ends_with("_bucket")
            || (take == MetricSelection::Runtime && !is_runtime_metric(name))
            || !value.is_finite()
        {
            continue;
        }
        let shown = redact_label_values(labels);
        let whole = format!("{name}{}", shown.as_deref().unwrap_or(labels));
        // If secret label values are redacted, several metrics may have the same name. Only the
        // first metric with each name is used.
        let is_again = || shown.is_some() && metrics.iter().any(|metric: &ServerMetric| metric.name == whole);
        if whole.len() <= METRIC_NAME_BYTES_MAX && !is_again() {
            metrics.push(ServerMetric { kind: metric_kind(name, &kinds), name: whole, value });
        }
    }
    (understood > 0).then_some(metrics)
}

fn metric_kind(name: &str, kinds: &BTreeMap<&str, &str>) -> SeriesKind {
    let declared = |name: &str| kinds.get(name).copied();
    // A summary or histogram, and a counter of OpenMetrics, is declared under its name without the
    // ending `_total`, `_sum` or `_count`.
    let family = ["_total", "_sum", "_count"].iter().find_map(|end| declared(name.strip_suffix(end)?));
    match declared(name).or(family) {
        Some("counter") => SeriesKind::Counter,
        Some("summary" | "histogram") if declared(name).is_none() => SeriesKind::Counter,
        Some(_) => SeriesKind::Gauge,
        None if name.ends_with("_total") => SeriesKind::Counter,
        None => SeriesKind::Gauge,
    }
}

/// Parses a line such as `name{a="b"} 1.5 1700000000`. Returns the name, the labels with their
/// braces, and the value.
fn parse_sample(line: &str) -> Option<(&str, &str, f64)> {
    let name_end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
    let (name, rest) = line.split_at(name_end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let labels_end = if rest.starts_with('{') { labels_end(rest)? } else { 0 };
    let (labels, rest) = rest.split_at(labels_end);
    let value = rest.split_whitespace().next()?;
    let value = match value {
        "+Inf" | "Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => number.parse().ok()?,
    };
    Some((name, labels, value))
}

/// Replaces label values that may be secret: values of secret names, and long random values.
/// Returns `None` if no value was replaced.
fn redact_label_values(labels: &str) -> Option<String> {
    /// A word in a label value counts as a secret key if it mixes letters and digits and has at
    /// least this many bytes.
    const KEY_BYTES_MIN: usize = 16;
    let (mut out, mut rest, mut is_changed) = (String::new(), labels, false);
    while let Some((before, after)) = rest.split_once('"') {
        let mut is_escaped = false;
        let end = after.find(|c| match (is_escaped, c) {
            (false, '"') => true,
            (before, c) => {
                is_escaped = !before && c == '\\';
                false
            }
        })?;
        let name = before.trim_matches(['{', ',', '=', ' ']);
        let is_key = |word: &str| {
            word.len() >= KEY_BYTES_MIN
                && word.contains(|c: char| c.is_ascii_digit())
                && word.contains(|c: char| c.is_alphabetic())
        };
        let has_key = after[..end].split(|c: char| !c.is_alphanumeric()).any(is_key);
        let is_secret = is_secret_name(name) || has_key;
        is_changed |= is_secret;
        out.push_str(before);
        out.extend(["\"", if is_secret { REDACTED } else { &after[..end] }, "\""]);
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

/// Returns the offset at which the labels `{...}` end. A brace inside quotes is part of a value.
fn labels_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Reads Go's `/debug/vars`: the heap and garbage collection from `memstats`, and every top-level
/// number.
fn parse_debug_vars(text: &str) -> Option<Vec<ServerMetric>> {
    const GO_MEMSTATS_GAUGES: [&str; 5] = ["HeapAlloc", "HeapInuse", "HeapObjects", "StackInuse", "GCCPUFraction"];
    const GO_MEMSTATS_COUNTERS: [&str; 5] = ["NumGC", "PauseTotalNs", "TotalAlloc", "Mallocs", "Frees"];
    let Value::Object(vars) = serde_json::from_str(text).ok()? else { return None };
    let memory = vars.get("memstats").and_then(Value::as_object);
    let mut metrics = Vec::new();
    for (names, kind) in [(GO_MEMSTATS_GAUGES, SeriesKind::Gauge), (GO_MEMSTATS_COUNTERS, SeriesKind::Counter)] {
        for name in names {
            if let Some(value) = memory.and_then(|memory| memory.get(name)?.as_f64()) {
                metrics.push(ServerMetric { name: format!("memstats.{name}"), kind, value });
            }
        }
    }
    for (name, value) in vars.iter().filter(|(name, _)| name.len() <= METRIC_NAME_BYTES_MAX) {
        metrics.extend(value.as_f64().map(|value| ServerMetric { name: name.clone(), kind: SeriesKind::Gauge, value }));
    }
    // A JSON document without numbers is not a metrics document.
    (!metrics.is_empty()).then_some(metrics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    const SAMPLE_METRICS_TEXT: &str = "# HELP go_goroutines Number of goroutines.\n# TYPE go_goroutines gauge\ngo_goroutines 12\n\
        # TYPE go_gc_duration_seconds summary\ngo_gc_duration_seconds{quantile=\"0.5\"} 1e-05\n\
        go_gc_duration_seconds_sum 0.5\ngo_gc_duration_seconds_count 7\n\
        # TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 3.5 1700000000000\n\
        # TYPE db_pool_wait counter\ndb_pool_wait{db=\"a}b\",q=\"\\\"\"} 4\n\
        shop_orders_total 5\nhttp_conn_bucket{le=\"1\"} 4\ngo_info{version=\"go1.26\"} 1\ngo_nan NaN\n";

    #[test]
    fn prometheus_text_is_parsed() {
        let got: Vec<(String, SeriesKind, f64)> = parse(SAMPLE_METRICS_TEXT.as_bytes(), MetricSelection::Runtime)
            .expect("text")
            .into_iter()
            .map(|m| (m.name, m.kind, m.value))
            .collect();
        let expect = [
            ("go_goroutines", SeriesKind::Gauge, 12.0),
            ("go_gc_duration_seconds{quantile=\"0.5\"}", SeriesKind::Gauge, 1e-5),
            ("go_gc_duration_seconds_sum", SeriesKind::Counter, 0.5),
            ("go_gc_duration_seconds_count", SeriesKind::Counter, 7.0),
            ("process_cpu_seconds_total", SeriesKind::Counter, 3.5),
            ("db_pool_wait{db=\"a}b\",q=\"\\\"\"}", SeriesKind::Counter, 4.0),
            ("go_info{version=\"go1.26\"}", SeriesKind::Gauge, 1.0),
        ];
        assert_eq!(got, expect.map(|(name, kind, value)| (name.to_owned(), kind, value)));
    }

    #[test]
    fn metric_labels_keep_no_secret() {
        let text = "go_a{token=\"s3cret\",db=\"a\\\"}b\"} 1\ngo_a{token=\"other\",db=\"a\\\"}b\"} 2\n\
                    go_b{user=\"k Zq7xK2mW9vLp4TnR8sYd\"} 3\ngo_c{pool=\"http-nio-8080\",version=\"go1.26\"} 4\n";
        let got: Vec<String> =
            parse(text.as_bytes(), MetricSelection::All).expect("text").into_iter().map(|m| m.name).collect();
        let expect = [
            "go_a{token=\"[redacted]\",db=\"a\\\"}b\"}",
            "go_b{user=\"[redacted]\"}",
            "go_c{pool=\"http-nio-8080\",version=\"go1.26\"}",
        ];
        assert_eq!(got, expect);
    }

    #[test]
    fn go_vars_are_parsed() {
        let text = r#"{"cmdline":["x"],"hits":7,"memstats":{"HeapAlloc":100,"NumGC":3,"BySize":[{"Size":0}]}}"#;
        let got: Vec<(String, SeriesKind)> = parse(text.as_bytes(), MetricSelection::Runtime)
            .expect("vars")
            .into_iter()
            .map(|m| (m.name, m.kind))
            .collect();
        let expect = [
            ("memstats.HeapAlloc", SeriesKind::Gauge),
            ("memstats.NumGC", SeriesKind::Counter),
            ("hits", SeriesKind::Gauge),
        ];
        assert_eq!(got, expect.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn text_without_metrics_is_refused() {
        for text in [
            "",
            "{}",
            "{\"status\":\"ok\"}",
            "hello, world",
            "<html>\n<body>",
            "{",
            "[1]",
            "# only a comment\n",
            "go_x\n",
            "go_x{a=\"b 1\n",
        ] {
            assert_eq!(parse(text.as_bytes(), MetricSelection::Runtime), None, "{text}");
        }
        assert_eq!(parse(b"\xff\xfe", MetricSelection::All), None);
        assert_eq!(parse(b"orders 5\n", MetricSelection::Runtime), Some(vec![]), "metrics, but none of a runtime");
        let all =
            parse(b"# TYPE orders counter\norders 5\norders_bucket{le=\"1\"} 4\n", MetricSelection::All).expect("text");
        assert_eq!(all, [ServerMetric { name: "orders".into(), kind: SeriesKind::Counter, value: 5.0 }]);
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a random test says its seed")]
    fn damaged_metrics_never_panic() {
        let seed = std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
        eprintln!("seed {seed} (set PLIMSOLL_SEED to repeat another)");
        let mut rng = Rng::new(seed);
        let vars = br#"{"hits":7,"memstats":{"HeapAlloc":100,"NumGC":3}}"#;
        let mut understood = 0;
        for round in 0..20_000 {
            let mut bytes = if round % 2 == 0 { SAMPLE_METRICS_TEXT.as_bytes().to_vec() } else { vars.to_vec() };
            for _ in 0..=rng.uniform_below(4) {
                let at = rng.uniform_below(bytes.len() as u64 + 1) as usize;
                match rng.uniform_below(3) {
                    0 => bytes.truncate(at),
                    1 if at < bytes.len() => bytes[at] ^= 1 << rng.uniform_below(7),
                    _ => {
                        let noise: Vec<u8> = (0..rng.uniform_below(9)).map(|_| rng.next_u64() as u8 & 0x7f).collect();
                        bytes.splice(at..at, noise);
                    }
                }
            }
            if let Some(metrics) =
                parse(&bytes, if round % 3 == 0 { MetricSelection::All } else { MetricSelection::Runtime })
            {
                understood += 1;
                assert!(metrics.iter().all(|m| m.value.is_finite() && m.name.len() <= METRIC_NAME_BYTES_MAX));
            }
        }
        assert!(understood > 1000, "only {understood} were understood: the damage is too great to test anything");
    }
}
