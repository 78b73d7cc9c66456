//! Parses vegeta's command line as Go's `flag` package does: one dash or two, `-flag value` or
//! `-flag=value`, and files after the last flag.
//!
//! Not here: executing the commands.

use crate::go_flags::{parse_go_duration_ns, parse_go_flags};
use crate::go_request::canonical_header_name;
use plimsoll_logs::vegeta::{TargetFormat, VegetaEncoding, is_valid_header_field};

/// A parsed command line of vegeta: its command with the options.
#[derive(Debug, Clone, PartialEq)]
pub enum VegetaCommand {
    Usage,
    Version,
    Attack(Box<AttackOptions>),
    Report(ReportOptions),
    Plot(PlotOptions),
    Encode(EncodeOptions),
}

/// The options of an attack, which sends requests to a list of targets in turn at a given rate.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackOptions {
    /// The name of the attack, sent in the header field X-Vegeta-Attack unless it is empty.
    pub name: String,
    /// The rate in requests per second. With a rate of 0, the attack has no rate limit, and
    /// `workers_max` workers send requests as fast as they can.
    pub rate_rps: f64,
    pub workers_max: Option<u64>,
    /// The duration of the attack in ns. A duration of 0 means no limit: the attack lasts until the
    /// user interrupts it, or the list of targets ends.
    pub duration_ns: u64,
    pub timeout_ns: u64,
    /// The file with the request body for targets that have no body of their own.
    pub body: Option<String>,
    /// The header fields that are added to the request of every target.
    pub headers: Vec<(String, String)>,
    /// The maximum number of bytes of a response body that are recorded.
    pub body_bytes_max: usize,
    pub keep_alive: bool,
    /// The maximum number of redirects to follow. With `None`, redirects are not followed, and a
    /// redirect response counts as a success.
    pub redirects_max: Option<u64>,
    /// The file with the list of targets; `None` to read the targets from standard input.
    pub targets: Option<String>,
    pub format: TargetFormat,
    /// If true, targets are read during the attack; otherwise all targets are read before the
    /// attack. An attack that reads targets during the attack ends when the file of targets ends.
    pub is_lazy: bool,
    pub output: Option<String>,
    pub encoding: VegetaEncoding,
    /// Flags of `plimsoll run`, which are passed to `run` unchanged.
    pub passed_flags: Vec<String>,
}

impl AttackOptions {
    /// Returns the equivalent arguments of `plimsoll run`.
    pub fn run_arguments(&self, url: &str) -> Vec<String> {
        let ms = |ns: u64| format!("{}ms", ns / 1_000_000);
        // A duration of 0 (no limit) becomes ten years, the maximum that `run` accepts.
        let duration = if self.duration_ns == 0 { "87600h".to_owned() } else { ms(self.duration_ns) };
        let mut line: Vec<String> =
            ["--quiet", "--no-preflight", "--no-probes", "--http=1.1"].map(str::to_owned).to_vec();
        line.push(format!("--duration={duration}"));
        line.push(format!("--timeout={}", ms(self.timeout_ns)));
        match (self.rate_rps, self.workers_max) {
            (0.0, workers) => line.push(format!("--concurrency={}", workers.unwrap_or(10))),
            (rate, _) => line.push(format!("--rate={rate}")),
        }
        // The flags about TLS are omitted for a target without TLS, because these flags have no
        // effect on such a target.
        let is_of_tls = |flag: &&String| TLS_FLAGS.iter().any(|name| flag.split('=').next() == Some(*name));
        let is_plain = !url.starts_with("https://");
        line.extend(self.passed_flags.iter().filter(|flag| !(is_plain && is_of_tls(flag))).cloned());
        line.push(url.to_owned());
        line
    }
}

/// The options of the command that reports about recorded results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    pub format: VegetaReportFormat,
    /// The lower bounds of the histogram's buckets, in ns.
    pub buckets_ns: Vec<u64>,
    pub output: Option<String>,
    /// The files with results to read; empty to read standard input.
    pub files: Vec<String>,
}

/// The output format of a report on results (`-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VegetaReportFormat {
    Text,
    Json,
    Histogram,
    /// Percentiles in the format of HdrHistogram's plotter (`hdrplot`).
    Plot,
}

/// The options of the command that plots recorded results on an HTML page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlotOptions {
    /// The title above the plot.
    pub title: String,
    /// The maximum number of points in one line of the plot.
    pub points_max: usize,
    pub output: Option<String>,
    /// The files with results to read; empty to read standard input.
    pub files: Vec<String>,
}

/// The flags of `run` that concern TLS.
const TLS_FLAGS: [&str; 5] = ["--insecure", "--cert", "--key", "--cacert", "--no-resumption"];

/// The options of the command that converts recorded results to another encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeOptions {
    pub encoding: VegetaEncoding,
    pub output: Option<String>,
    /// The files with results to read; empty to read standard input.
    pub files: Vec<String>,
}

/// Parses the arguments after `vegeta`.
pub fn parse(words: &[String]) -> Result<VegetaCommand, String> {
    let Some(words) = parse_global_flags(words)? else { return Ok(VegetaCommand::Version) };
    let Some((command, words)) = words.split_first() else { return Ok(VegetaCommand::Usage) };
    match command.as_str() {
        "report" => parse_report(words),
        "encode" => parse_encode(words),
        "attack" => parse_attack(words),
        "plot" => parse_plot(words),
        "-h" | "-help" | "--help" | "help" => Ok(VegetaCommand::Usage),
        other => Err(format!("vegeta {other}: unknown command; choose attack, report, plot or encode")),
    }
}

/// Parses the flags that come before the command. Returns the remaining words; `None` if the user
/// asks for the version.
fn parse_global_flags(words: &[String]) -> Result<Option<Vec<String>>, String> {
    let mut version = false;
    let rest = parse_go_flags("vegeta", &["version"], words, &mut |flag, value| {
        match flag {
            "version" => version = value == "true",
            // The number of cores (`-cpus`) is validated but not used, because an attack uses as
            // many cores as it needs.
            "cpus" => _ = value.parse::<u32>().map_err(|_| format!("-cpus: '{value}' is no number"))?,
            "profile" if value.is_empty() => {}
            "profile" => return Err("-profile is not supported: use perf record".into()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(if version { None } else { Some(rest.unwrap_or_default()) })
}

fn parse_attack(words: &[String]) -> Result<VegetaCommand, String> {
    let mut asked = AttackOptions {
        name: String::new(),
        rate_rps: 50.0,
        workers_max: None,
        duration_ns: 0,
        timeout_ns: 30_000_000_000,
        body: None,
        headers: Vec::new(),
        body_bytes_max: usize::MAX,
        keep_alive: true,
        redirects_max: Some(10),
        targets: None,
        format: TargetFormat::Http,
        is_lazy: false,
        output: None,
        encoding: VegetaEncoding::Json,
        passed_flags: Vec::new(),
    };
    let mut encoding_said = None;
    let rest = parse_flags("attack", words, &mut |flag, value| {
        let time = || parse_go_duration_ns(value).ok_or_else(|| format!("-{flag}: '{value}' is no time such as 30s"));
        let number = || value.parse::<u64>().map_err(|_| format!("-{flag}: '{value}' is no number"));
        let truth = || match value {
            "true" | "1" | "t" => Ok(true),
            "false" | "0" | "f" => Ok(false),
            _ => Err(format!("-{flag}: '{value}' is not true or false")),
        };
        let file = || Some(value.to_owned()).filter(|path| !["stdin", "stdout", "-"].contains(&path.as_str()));
        match flag {
            "name" => asked.name = value.to_owned(),
            "rate" => asked.rate_rps = parse_rate_rps(value)?,
            "max-workers" => asked.workers_max = Some(number()?).filter(|workers| *workers < 1 << 32),
            // The numbers of workers and connections are validated but not used, because plimsoll's
            // scheduled requests never wait for a free worker.
            "workers" | "connections" => {
                number()?;
            }
            "duration" => asked.duration_ns = time()?,
            "timeout" => asked.timeout_ns = Some(time()?).filter(|ns| *ns > 0).unwrap_or(3_600_000_000_000),
            "body" => asked.body = Some(value.to_owned()),
            "header" => {
                let field =
                    value.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
                let field = field.filter(|(name, value)| is_valid_header_field(name, value));
                let (name, value) = field.ok_or("-header: write the header as 'Name: value'")?;
                asked.headers.push((canonical_header_name(&name), value));
            }
            "max-body" => asked.body_bytes_max = if value == "-1" { usize::MAX } else { number()? as usize },
            "keepalive" => asked.keep_alive = truth()?,
            "targets" => asked.targets = file(),
            "output" => asked.output = file(),
            "to" => encoding_said = Some(parse_encoding(value)?),
            "format" => {
                asked.format = match value {
                    "http" => TargetFormat::Http,
                    "json" => TargetFormat::Json,
                    _ => return Err(format!("-format: '{value}' is not http or json")),
                };
            }
            "lazy" => asked.is_lazy = truth()?,
            "redirects" => {
                let number = value.parse::<i64>().map_err(|_| format!("-redirects: '{value}' is no number"))?;
                asked.redirects_max = u64::try_from(number).ok();
            }
            "http2" => {
                truth()?;
            }
            "session-tickets" => {
                if !truth()? {
                    asked.passed_flags.push("--no-resumption".to_owned());
                }
            }
            "insecure" | "allow-public" => {
                if truth()? {
                    asked.passed_flags.push(format!("--{flag}"));
                }
            }
            "max-connections" => match number()? {
                0 => {}
                connections => asked.passed_flags.push(format!("--max-connections={connections}")),
            },
            "cert" | "key" => asked.passed_flags.push(format!("--{flag}={value}")),
            "root-certs" => asked.passed_flags.push(format!("--cacert={value}")),
            "laddr" if value == "0.0.0.0" => {}
            "laddr" => asked.passed_flags.push(format!("--source-ip={value}")),
            "unix-socket" => asked.passed_flags.push(format!("--unix={value}")),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(rest) = rest else { return Ok(VegetaCommand::Usage) };
    if let Some(word) = rest.first() {
        return Err(format!("vegeta attack: '{word}' is no flag"));
    }
    if asked.rate_rps == 0.0 && asked.workers_max.is_none() {
        return Err("-rate 0 means no rate limit: set the concurrency with -max-workers".into());
    }
    if !asked.keep_alive {
        asked.passed_flags.push("--no-keepalive".to_owned());
    }
    asked.encoding =
        encoding_said.unwrap_or_else(|| asked.output.as_deref().map_or(VegetaEncoding::Json, encoding_of_suffix));
    Ok(VegetaCommand::Attack(Box::new(asked)))
}

/// Parses a rate such as `50`, `50/1s` or `3000/m`, as requests per second; 0 means no limit.
fn parse_rate_rps(text: &str) -> Result<f64, String> {
    let wrong = || format!("-rate: '{text}' is not a rate: write the rate as 50/1s");
    if text == "infinity" {
        return Ok(0.0);
    }
    let (count, per) = text.split_once('/').unwrap_or((text, "1s"));
    let count: u64 = count.parse().map_err(|_| wrong())?;
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
    let per_ns = parse_go_duration_ns(&per).filter(|ns| *ns > 0).ok_or_else(wrong)?;
    Ok(count as f64 * 1e9 / per_ns as f64)
}

fn parse_report(words: &[String]) -> Result<VegetaCommand, String> {
    let (mut shape, mut buckets_ns, mut output) = (VegetaReportFormat::Text, Vec::new(), None);
    let files = parse_flags("report", words, &mut |flag, value| {
        match flag {
            "type" => {
                shape = match value {
                    "text" => VegetaReportFormat::Text,
                    "json" => VegetaReportFormat::Json,
                    "hdrplot" => VegetaReportFormat::Plot,
                    _ => match value.strip_prefix("hist") {
                        Some(list) => {
                            if !list.is_empty() {
                                buckets_ns = parse_bucket_bounds(list)?;
                            }
                            VegetaReportFormat::Histogram
                        }
                        None => return Err(format!("-type: '{value}' is not text, json, hist[...] or hdrplot")),
                    },
                };
            }
            "buckets" => buckets_ns = parse_bucket_bounds(value)?,
            "output" => output = Some(value.to_owned()).filter(|path| path != "stdout"),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(files) = files else { return Ok(VegetaCommand::Usage) };
    if shape == VegetaReportFormat::Histogram && buckets_ns.is_empty() {
        return Err("-type hist: give the buckets' lower bounds, such as -type 'hist[0,1ms,10ms]'".into());
    }
    Ok(VegetaCommand::Report(ReportOptions { format: shape, buckets_ns, output, files }))
}

fn parse_plot(words: &[String]) -> Result<VegetaCommand, String> {
    let mut asked = PlotOptions { title: String::new(), points_max: usize::MAX, output: None, files: Vec::new() };
    let files = parse_flags("plot", words, &mut |flag, value| {
        match flag {
            "title" => asked.title = value.to_owned(),
            "threshold" => {
                let points = value.parse().ok().filter(|points| *points > 0);
                asked.points_max =
                    points.ok_or_else(|| format!("-threshold: '{value}' is not a number of points, such as 4000"))?;
            }
            "output" => asked.output = Some(value.to_owned()).filter(|path| path != "stdout"),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(files) = files else { return Ok(VegetaCommand::Usage) };
    Ok(VegetaCommand::Plot(PlotOptions { files, ..asked }))
}

fn parse_encode(words: &[String]) -> Result<VegetaCommand, String> {
    let (mut to, mut output) = (VegetaEncoding::Json, None);
    let files = parse_flags("encode", words, &mut |flag, value| {
        match flag {
            "to" => to = parse_encoding(value)?,
            "output" => output = Some(value.to_owned()).filter(|path| path != "stdout"),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(files) = files else { return Ok(VegetaCommand::Usage) };
    Ok(VegetaCommand::Encode(EncodeOptions { encoding: to, output, files }))
}

fn parse_encoding(name: &str) -> Result<VegetaEncoding, String> {
    VegetaEncoding::from_name(name).ok_or_else(|| format!("-to: '{name}' is not json, csv or gob"))
}

/// Returns the results encoding for a file name's suffix: gob for `.bin`, and JSON for an unknown
/// suffix.
fn encoding_of_suffix(path: &str) -> VegetaEncoding {
    let suffix = std::path::Path::new(path).extension().map(|suffix| suffix.to_string_lossy().to_ascii_lowercase());
    match suffix.as_deref() {
        Some("bin") => VegetaEncoding::Gob,
        Some(suffix) => VegetaEncoding::from_name(suffix).unwrap_or(VegetaEncoding::Json),
        None => VegetaEncoding::Json,
    }
}

/// The boolean flags, which take a value only after an equals sign.
const BOOLEAN_FLAGS: [&str; 8] =
    ["lazy", "keepalive", "insecure", "http2", "h2c", "session-tickets", "chunked", "allow-public"];

/// Parses the flags of a command. Returns the files after the flags, without `stdin` and `-`, which
/// stand for standard input.
fn parse_flags(
    command: &str,
    words: &[String],
    each: &mut dyn FnMut(&str, &str) -> Result<bool, String>,
) -> Result<Option<Vec<String>>, String> {
    let mut files = parse_go_flags(&format!("vegeta {command}"), &BOOLEAN_FLAGS, words, each)?;
    files.iter_mut().for_each(|files| files.retain(|file| file != "stdin" && file != "-"));
    Ok(files)
}

/// Parses a list of histogram bounds such as `[0,1ms,10ms]`, as times in ns. If the first bound is
/// above 0, a bucket from 0 is added.
fn parse_bucket_bounds(text: &str) -> Result<Vec<u64>, String> {
    let wrong = || format!("'{text}' is not a list of buckets: write the buckets as [0,1ms,10ms], in order");
    let list = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let mut bounds: Vec<u64> = Vec::new();
    for part in list.split(',') {
        let bound = parse_go_duration_ns(part.trim()).ok_or_else(wrong)?;
        if bounds.is_empty() && bound > 0 {
            bounds.push(0);
        }
        if bounds.last().is_some_and(|last| *last >= bound && bounds.len() > 1) {
            return Err(wrong());
        }
        bounds.push(bound);
    }
    Ok(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<VegetaCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn common_command_lines_are_parsed() {
        let text = ReportOptions { format: VegetaReportFormat::Text, buckets_ns: vec![], output: None, files: vec![] };
        for (line, expect) in [
            ("report", text.clone()),
            ("report -", text.clone()),
            ("report -type=json a.bin b.bin", {
                ReportOptions {
                    format: VegetaReportFormat::Json,
                    files: vec!["a.bin".into(), "b.bin".into()],
                    ..text.clone()
                }
            }),
            ("report --type hist[1ms,1.5s] --output=x", {
                let buckets_ns = vec![0, 1_000_000, 1_500_000_000];
                ReportOptions {
                    format: VegetaReportFormat::Histogram,
                    buckets_ns,
                    output: Some("x".into()),
                    ..text.clone()
                }
            }),
            ("report -type json -buckets [0,5us]", {
                ReportOptions { format: VegetaReportFormat::Json, buckets_ns: vec![0, 5_000], ..text.clone() }
            }),
        ] {
            assert_eq!(read(line), Ok(VegetaCommand::Report(expect)), "{line}");
        }
        let Ok(VegetaCommand::Attack(attack)) = read(
            "attack -rate=100/2s -duration 5s -lazy -name n -header A:b -insecure -max-connections 7 -keepalive=false -format json",
        ) else {
            panic!("an attack")
        };
        assert_eq!(
            (attack.rate_rps, attack.duration_ns, attack.is_lazy, attack.keep_alive),
            (50.0, 5_000_000_000, true, false)
        );
        assert_eq!((attack.name.as_str(), &attack.headers[..]), ("n", &[("A".to_owned(), "b".to_owned())][..]));
        assert!(!attack.run_arguments("http://h/").contains(&"--insecure".to_owned()));
        let line = attack.run_arguments("https://h/").join(" ");
        assert!(
            line.contains(
                "--duration=5000ms --timeout=30000ms --rate=50 --insecure --max-connections=7 --no-keepalive https://h/"
            ),
            "{line}"
        );
        assert_eq!(["5", "60/m", "0", "infinity"].map(parse_rate_rps), [Ok(5.0), Ok(1.0), Ok(0.0), Ok(0.0)]);
        for (to, encoding) in
            [("", VegetaEncoding::Json), ("-to csv ", VegetaEncoding::Csv), ("--to=gob ", VegetaEncoding::Gob)]
        {
            let encode = EncodeOptions { encoding, output: None, files: vec!["r.json".into()] };
            assert_eq!(read(&format!("encode {to}r.json")), Ok(VegetaCommand::Encode(encode)));
        }
        let plot = PlotOptions {
            title: "t".into(),
            points_max: 5,
            output: Some("p.html".into()),
            files: vec!["a".into(), "b".into()],
        };
        assert_eq!(read("plot -title t -threshold=5 -output p.html a b"), Ok(VegetaCommand::Plot(plot)));
        for (line, expect) in [
            ("", VegetaEncoding::Json),
            ("-to csv", VegetaEncoding::Csv),
            ("-output r.csv", VegetaEncoding::Csv),
            ("-output r.bin", VegetaEncoding::Gob),
            ("-output r.gob -to json", VegetaEncoding::Json),
            ("-output results", VegetaEncoding::Json),
            ("-output stdout", VegetaEncoding::Json),
        ] {
            let words = format!("attack {line}");
            let Ok(VegetaCommand::Attack(attack)) = read(words.trim()) else { panic!("{line}: an attack") };
            assert_eq!(attack.encoding, expect, "{line}");
        }
        assert_eq!(["report -h", "-h", "help", "-cpus 2"].map(read), [(); 4].map(|()| Ok(VegetaCommand::Usage)));
        assert_eq!(read("-version"), Ok(VegetaCommand::Version));
        assert_eq!(read("-cpus 1 -profile= report"), Ok(VegetaCommand::Report(text)));
    }

    #[test]
    fn argument_errors_are_named() {
        for (line, expect) in [
            ("report -every 1s", "unknown flag -every"),
            ("report -type pie", "'pie'"),
            ("report -type hist", "the buckets' lower bounds"),
            ("report -type hist[2ms,1ms]", "in order"),
            ("report -buckets 5", "[0,1ms,10ms]"),
            ("report -type", "'' is not text"),
            ("encode -to xml", "'xml' is not json"),
            ("attack -to text", "'text' is not json"),
            ("plot -threshold 0", "-threshold: '0'"),
            ("attack -rate 5/x", "50/1s"),
            ("attack -rate 0", "-max-workers"),
            ("attack -h2c", "unknown flag -h2c"),
            ("attack -header nothing", "-header"),
            ("attack extra", "extra"),
            ("-cpus x attack", "-cpus: 'x'"),
            ("-profile cpu attack", "-profile"),
            ("-every attack", "vegeta: unknown flag -every"),
            ("dump", "attack, report, plot or encode"),
        ] {
            assert!(read(line).is_err_and(|why| why.contains(expect)), "{line}: {:?}", read(line));
        }
    }
}
