//! vegeta's flags, as Go's package reads them: one dash or two, `-flag value` or `-flag=value`, and files after the last flag.
//!
//! Not here: what is done.

use crate::go_flags::{go_duration_ns, go_flags};
use plimsoll_traffic::vegeta::TargetFormat;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum VegetaAsked {
    Usage,
    Attack(Box<AttackAsked>),
    Report(ReportAsked),
    Encode(EncodeAsked),
}

/// Targets in turn at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackAsked {
    /// Sent as X-Vegeta-Attack, unless it is empty.
    pub name: String,
    /// Requests a second; 0: as many as `workers_max` can make.
    pub rate_rps: f64,
    pub workers_max: Option<u64>,
    /// 0: until it is interrupted, or the targets end.
    pub duration_ns: u64,
    pub timeout_ns: u64,
    /// The file of the body where a target has none.
    pub body: Option<String>,
    /// For all targets.
    pub headers: Vec<(String, String)>,
    /// Bytes of an answer's body that are kept.
    pub body_max: usize,
    pub keep_alive: bool,
    /// `None`: standard input.
    pub targets: Option<String>,
    pub format: TargetFormat,
    /// Targets are read as they are needed, and the attack ends with them.
    pub lazy: bool,
    pub output: Option<String>,
    /// What a line of `run` says in the same way.
    pub as_they_are: Vec<String>,
}

impl AttackAsked {
    /// The same as a line of `run`.
    pub fn as_run(&self, url: &str) -> Vec<String> {
        let ms = |ns: u64| format!("{}ms", ns / 1_000_000);
        // Until it is interrupted: ten years.
        let duration = if self.duration_ns == 0 { "87600h".to_owned() } else { ms(self.duration_ns) };
        let mut line: Vec<String> =
            ["--quiet", "--no-preflight", "--no-probes", "--http=1.1"].map(str::to_owned).to_vec();
        line.push(format!("--duration={duration}"));
        line.push(format!("--timeout={}", ms(self.timeout_ns)));
        match (self.rate_rps, self.workers_max) {
            (0.0, workers) => line.push(format!("--concurrency={}", workers.unwrap_or(10))),
            (rate, _) => line.push(format!("--rate={rate}")),
        }
        line.extend(self.as_they_are.iter().cloned());
        line.push(url.to_owned());
        line
    }
}

/// What results say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportAsked {
    pub shape: ReportShape,
    /// Where buckets begin.
    pub buckets_ns: Vec<u64>,
    pub output: Option<String>,
    /// None: standard input.
    pub files: Vec<String>,
}

/// The shape of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportShape {
    Text,
    Json,
    Histogram,
    /// Percentiles, for a plot of HdrHistogram's.
    Plot,
}

/// Results in another encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeAsked {
    /// Rows instead of JSON.
    pub csv: bool,
    pub output: Option<String>,
    /// None: standard input.
    pub files: Vec<String>,
}

/// Understands the words after `vegeta`.
pub fn understood(words: &[String]) -> Result<VegetaAsked, String> {
    let Some((command, words)) = words.split_first() else { return Ok(VegetaAsked::Usage) };
    match command.as_str() {
        "report" => report(words),
        "encode" => encode(words),
        "attack" => attack(words),
        "plot" => {
            Err("vegeta plot is not there: plimsoll run -o FILE and plimsoll report FILE make a page with charts"
                .into())
        }
        "-h" | "-help" | "--help" | "help" => Ok(VegetaAsked::Usage),
        other => Err(format!("vegeta {other}: there are attack, report and encode")),
    }
}

fn attack(words: &[String]) -> Result<VegetaAsked, String> {
    let mut asked = AttackAsked {
        name: String::new(),
        rate_rps: 50.0,
        workers_max: None,
        duration_ns: 0,
        timeout_ns: 30_000_000_000,
        body: None,
        headers: Vec::new(),
        body_max: usize::MAX,
        keep_alive: true,
        targets: None,
        format: TargetFormat::Http,
        lazy: false,
        output: None,
        as_they_are: Vec::new(),
    };
    let rest = flags("attack", words, &mut |flag, value| {
        let time = || go_duration_ns(value).ok_or_else(|| format!("-{flag}: '{value}' is no time such as 30s"));
        let number = || value.parse::<u64>().map_err(|_| format!("-{flag}: '{value}' is no number"));
        let truth = || match value {
            "true" | "1" | "t" => Ok(true),
            "false" | "0" | "f" => Ok(false),
            _ => Err(format!("-{flag}: '{value}' is not true or false")),
        };
        let file = || Some(value.to_owned()).filter(|path| !["stdin", "stdout", "-"].contains(&path.as_str()));
        match flag {
            "name" => asked.name = value.to_owned(),
            "rate" => asked.rate_rps = rate_rps(value)?,
            "max-workers" => asked.workers_max = Some(number()?).filter(|workers| *workers < 1 << 32),
            // Arrivals wait for no worker.
            "workers" | "connections" => {
                number()?;
            }
            "duration" => asked.duration_ns = time()?,
            "timeout" => asked.timeout_ns = Some(time()?).filter(|ns| *ns > 0).unwrap_or(3_600_000_000_000),
            "body" => asked.body = Some(value.to_owned()),
            "header" => {
                let field =
                    value.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
                asked.headers.push(field.ok_or("-header: write it as 'Name: value'")?);
            }
            "max-body" => asked.body_max = if value == "-1" { usize::MAX } else { number()? as usize },
            "keepalive" => asked.keep_alive = truth()?,
            "targets" => asked.targets = file(),
            "output" => asked.output = file(),
            "format" => {
                asked.format = match value {
                    "http" => TargetFormat::Http,
                    "json" => TargetFormat::Json,
                    _ => return Err(format!("-format: '{value}' is not http or json")),
                };
            }
            "lazy" => asked.lazy = truth()?,
            // Ours are not followed, whatever is said; that is told at the end, if there were any.
            "redirects" => {
                value.parse::<i64>().map_err(|_| format!("-redirects: '{value}' is no number"))?;
            }
            "http2" => {
                truth()?;
            }
            "session-tickets" => {
                if !truth()? {
                    asked.as_they_are.push("--no-resumption".to_owned());
                }
            }
            "insecure" | "allow-public" => {
                if truth()? {
                    asked.as_they_are.push(format!("--{flag}"));
                }
            }
            "max-connections" => match number()? {
                0 => {}
                connections => asked.as_they_are.push(format!("--max-connections={connections}")),
            },
            "cert" | "key" => asked.as_they_are.push(format!("--{flag}={value}")),
            "root-certs" => asked.as_they_are.push(format!("--cacert={value}")),
            "laddr" if value == "0.0.0.0" => {}
            "laddr" => asked.as_they_are.push(format!("--source-ip={value}")),
            "unix-socket" => asked.as_they_are.push(format!("--unix={value}")),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(rest) = rest else { return Ok(VegetaAsked::Usage) };
    if let Some(word) = rest.first() {
        return Err(format!("vegeta attack: '{word}' is no flag"));
    }
    if asked.rate_rps == 0.0 && asked.workers_max.is_none() {
        return Err("-rate 0: say with -max-workers how many ask at a time".into());
    }
    if !asked.keep_alive {
        asked.as_they_are.push("--no-keepalive".to_owned());
    }
    Ok(VegetaAsked::Attack(Box::new(asked)))
}

/// `50`, `50/1s`, `3000/m`, as requests a second; 0: no limit.
fn rate_rps(text: &str) -> Result<f64, String> {
    let wrong = || format!("-rate: '{text}' is no rate: write it as 50/1s");
    if text == "infinity" {
        return Ok(0.0);
    }
    let (count, per) = text.split_once('/').unwrap_or((text, "1s"));
    let count: u64 = count.parse().map_err(|_| wrong())?;
    let per = if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
    let per_ns = go_duration_ns(&per).filter(|ns| *ns > 0).ok_or_else(wrong)?;
    Ok(count as f64 * 1e9 / per_ns as f64)
}

fn report(words: &[String]) -> Result<VegetaAsked, String> {
    let (mut shape, mut buckets_ns, mut output) = (ReportShape::Text, Vec::new(), None);
    let files = flags("report", words, &mut |flag, value| {
        match flag {
            "type" => {
                shape = match value {
                    "text" => ReportShape::Text,
                    "json" => ReportShape::Json,
                    "hdrplot" => ReportShape::Plot,
                    _ => match value.strip_prefix("hist") {
                        Some(list) => {
                            if !list.is_empty() {
                                buckets_ns = buckets(list)?;
                            }
                            ReportShape::Histogram
                        }
                        None => return Err(format!("-type: '{value}' is not text, json, hist[...] or hdrplot")),
                    },
                };
            }
            "buckets" => buckets_ns = buckets(value)?,
            "output" => output = Some(value.to_owned()).filter(|path| path != "stdout"),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(files) = files else { return Ok(VegetaAsked::Usage) };
    if shape == ReportShape::Histogram && buckets_ns.is_empty() {
        return Err("-type hist: say where buckets begin, such as -type 'hist[0,1ms,10ms]'".into());
    }
    Ok(VegetaAsked::Report(ReportAsked { shape, buckets_ns, output, files }))
}

fn encode(words: &[String]) -> Result<VegetaAsked, String> {
    let (mut csv, mut output) = (false, None);
    let files = flags("encode", words, &mut |flag, value| {
        match (flag, value) {
            ("to", "csv") => csv = true,
            ("to", "json") => csv = false,
            ("to", "gob") => return Err("-to gob: gob is read only; vegeta reads json and csv as well".into()),
            ("to", _) => return Err(format!("-to: '{value}' is not json or csv")),
            ("output", _) => output = Some(value.to_owned()).filter(|path| path != "stdout"),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(files.map_or(VegetaAsked::Usage, |files| VegetaAsked::Encode(EncodeAsked { csv, output, files })))
}

/// Flags that have no value unless it is behind an equals sign.
const SWITCHES: [&str; 8] =
    ["lazy", "keepalive", "insecure", "http2", "h2c", "session-tickets", "chunked", "allow-public"];

/// Flags of a command, and the files behind them.
fn flags(
    command: &str,
    words: &[String],
    each: &mut dyn FnMut(&str, &str) -> Result<bool, String>,
) -> Result<Option<Vec<String>>, String> {
    let mut files = go_flags(&format!("vegeta {command}"), &SWITCHES, words, each)?;
    files.iter_mut().for_each(|files| files.retain(|file| file != "stdin" && file != "-"));
    Ok(files)
}

/// `[0,1ms,10ms]`, as ns; what is below the first is a bucket, too.
fn buckets(text: &str) -> Result<Vec<u64>, String> {
    let wrong = || format!("'{text}' is no list of buckets: write it as [0,1ms,10ms], in order");
    let list = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    let mut bounds: Vec<u64> = Vec::new();
    for part in list.split(',') {
        let bound = go_duration_ns(part.trim()).ok_or_else(wrong)?;
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

    fn read(line: &str) -> Result<VegetaAsked, String> {
        understood(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn lines_that_people_write_are_understood() {
        let text = ReportAsked { shape: ReportShape::Text, buckets_ns: vec![], output: None, files: vec![] };
        for (line, expect) in [
            ("report", text.clone()),
            ("report -", text.clone()),
            ("report -type=json a.bin b.bin", {
                ReportAsked { shape: ReportShape::Json, files: vec!["a.bin".into(), "b.bin".into()], ..text.clone() }
            }),
            ("report --type hist[1ms,1.5s] --output=x", {
                let buckets_ns = vec![0, 1_000_000, 1_500_000_000];
                ReportAsked { shape: ReportShape::Histogram, buckets_ns, output: Some("x".into()), ..text.clone() }
            }),
            ("report -type json -buckets [0,5us]", {
                ReportAsked { shape: ReportShape::Json, buckets_ns: vec![0, 5_000], ..text.clone() }
            }),
        ] {
            assert_eq!(read(line), Ok(VegetaAsked::Report(expect)), "{line}");
        }
        let Ok(VegetaAsked::Attack(attack)) = read(
            "attack -rate=100/2s -duration 5s -lazy -name n -header A:b -insecure -max-connections 7 -keepalive=false -format json",
        ) else {
            panic!("an attack")
        };
        assert_eq!(
            (attack.rate_rps, attack.duration_ns, attack.lazy, attack.keep_alive),
            (50.0, 5_000_000_000, true, false)
        );
        assert_eq!((attack.name.as_str(), &attack.headers[..]), ("n", &[("A".to_owned(), "b".to_owned())][..]));
        let line = attack.as_run("http://h/").join(" ");
        assert!(
            line.contains(
                "--duration=5000ms --timeout=30000ms --rate=50 --insecure --max-connections=7 --no-keepalive http://h/"
            ),
            "{line}"
        );
        assert_eq!(["5", "60/m", "0", "infinity"].map(rate_rps), [Ok(5.0), Ok(1.0), Ok(0.0), Ok(0.0)]);
        let encode = EncodeAsked { csv: true, output: None, files: vec!["r.json".into()] };
        assert_eq!(read("encode -to csv r.json"), Ok(VegetaAsked::Encode(encode)));
        assert_eq!(read("report -h"), Ok(VegetaAsked::Usage));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, expect) in [
            ("report -every 1s", "-every is not known"),
            ("report -type pie", "'pie'"),
            ("report -type hist", "where buckets begin"),
            ("report -type hist[2ms,1ms]", "in order"),
            ("report -buckets 5", "[0,1ms,10ms]"),
            ("report -type", "'' is not text"),
            ("encode -to gob", "gob is read only"),
            ("attack -rate 5/x", "50/1s"),
            ("attack -rate 0", "-max-workers"),
            ("attack -h2c", "-h2c is not known"),
            ("attack -header nothing", "-header"),
            ("attack extra", "extra"),
            ("plot", "plimsoll report"),
            ("dump", "attack, report and encode"),
        ] {
            assert!(read(line).is_err_and(|why| why.contains(expect)), "{line}: {:?}", read(line));
        }
    }
}
