//! Parses the command line of wrk and wrk2 as their getopt does. Short flags may be joined
//! (`-t2c10`), and a value may follow its flag directly or in the next word. Long names may be
//! abbreviated, and flags may follow the URL. The word `--` precedes the script's arguments.
//!
//! Not here: running the load.

use super::units::{parse_metric_count, parse_time_ns};
use plimsoll_script::Dialect;

/// The options of a load, with wrk's names and defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrkOptions {
    pub dialect: Dialect,
    pub connections: u64,
    pub threads: u64,
    pub duration_ns: u64,
    pub timeout_ns: u64,
    /// The rate in messages per second (wrk2 only); `None` for a closed loop, in which each
    /// connection waits for its response.
    pub rate_rps: Option<u64>,
    pub script: Option<String>,
    /// The additional header fields (name, value) that each request has.
    pub headers: Vec<(String, String)>,
    /// Whether the latency distribution is printed (`--latency`).
    pub shows_latency: bool,
    /// Whether the distribution of service times is also printed (wrk2 only).
    pub shows_service_latency: bool,
    /// Whether the latencies are measured for whole batches of messages (wrk2 only).
    pub measures_batch_latency: bool,
    /// Whether plimsoll's version is printed before the load (`-v`).
    pub shows_version: bool,
    /// The URL, followed by the script's arguments.
    pub url_and_arguments: Vec<String>,
    /// plimsoll's own flag: whether results are printed as JSON.
    pub json: bool,
    /// plimsoll's own flag: whether load may be sent to public addresses.
    pub allow_public: bool,
    /// plimsoll's own flag: the path of the run file.
    pub output: Option<String>,
}

/// The reason why a command line is not run: the command line is invalid, or the user asks for
/// help. The value is the error message to print before the usage text; `None` for no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrkRefusal(pub Option<String>);

/// The flags of wrk and wrk2: letter, long name, whether the flag has a value, and whether it
/// exists only in wrk2.
const WRK_FLAGS: [(char, &str, bool, bool); 15] = [
    ('c', "connections", true, false),
    ('d', "duration", true, false),
    ('t', "threads", true, false),
    ('s', "script", true, false),
    ('H', "header", true, false),
    ('L', "latency", false, false),
    ('T', "timeout", true, false),
    ('h', "help", false, false),
    ('v', "version", false, false),
    ('R', "rate", true, true),
    ('U', "u_latency", false, true),
    ('B', "batch_latency", false, true),
    ('o', "output", true, false),
    ('J', "json", false, false),
    ('A', "allow-public", false, false),
];

/// Parses the arguments that follow the program's name.
pub fn parse(words: &[String], dialect: Dialect) -> Result<WrkOptions, WrkRefusal> {
    let mut asked = WrkOptions {
        dialect,
        connections: 10,
        threads: 2,
        duration_ns: 10_000_000_000,
        timeout_ns: 2_000_000_000,
        rate_rps: None,
        script: None,
        headers: Vec::new(),
        shows_latency: false,
        shows_service_latency: false,
        measures_batch_latency: false,
        shows_version: false,
        url_and_arguments: Vec::new(),
        json: false,
        allow_public: false,
        output: None,
    };
    let known = |wrk2_only: bool| !wrk2_only || dialect == Dialect::Wrk2;
    let usage = |text: String| WrkRefusal(Some(text));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            asked.url_and_arguments.extend(words.by_ref().cloned());
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let mut fit: Vec<_> = WRK_FLAGS.iter().filter(|flag| known(flag.3) && flag.1.starts_with(name)).collect();
            if let Some(whole) = fit.iter().position(|flag| flag.1 == name) {
                fit = vec![fit[whole]];
            }
            let [(letter, name, has_value, _)] = fit[..] else {
                let why = if fit.is_empty() { "unrecognized option" } else { "ambiguous option" };
                return Err(usage(format!("{why} '--{name}'")));
            };
            let value = match (has_value, value) {
                (true, Some(value)) => Some(value.to_owned()),
                (true, None) => Some(
                    words.next().cloned().ok_or_else(|| usage(format!("option '--{name}' requires an argument")))?,
                ),
                (false, Some(_)) => return Err(usage(format!("option '--{name}' doesn't allow an argument"))),
                (false, None) => None,
            };
            asked.apply_flag(*letter, value.unwrap_or_default())?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let mut rest = letters.chars();
            while let Some(letter) = rest.next() {
                // The letters `J` and `A` are only internal, because `--json` and `--allow-public`
                // have no short form.
                let flag =
                    WRK_FLAGS.iter().find(|flag| flag.0 == letter && known(flag.3) && !['J', 'A'].contains(&letter));
                let Some((_, _, has_value, _)) = flag else {
                    return Err(usage(format!("invalid option -- '{letter}'")));
                };
                if !has_value {
                    asked.apply_flag(letter, String::new())?;
                    continue;
                }
                let value = match rest.as_str() {
                    "" => words.next().cloned(),
                    value => Some(value.to_owned()),
                };
                let value = value.ok_or_else(|| usage(format!("option requires an argument -- '{letter}'")))?;
                asked.apply_flag(letter, value)?;
                break;
            }
        } else {
            asked.url_and_arguments.push(word.clone());
        }
    }
    asked.validate()
}

impl WrkOptions {
    /// Returns the URL of the target, which is the first word that is not a flag.
    pub fn url(&self) -> &str {
        &self.url_and_arguments[0]
    }

    fn apply_flag(&mut self, letter: char, value: String) -> Result<(), WrkRefusal> {
        let count = |flag: &str| {
            parse_metric_count(&value)
                .ok_or_else(|| WrkRefusal(Some(format!("{flag} wants a number such as 100 or 1k, got '{value}'"))))
        };
        let time = |flag: &str| {
            parse_time_ns(&value)
                .ok_or_else(|| WrkRefusal(Some(format!("{flag} wants a time such as 30s, 2m or 500ms, got '{value}'"))))
        };
        match letter {
            'c' => self.connections = count("-c")?,
            't' => self.threads = count("-t")?,
            'R' => self.rate_rps = Some(count("-R")?),
            'd' => self.duration_ns = time("-d")?,
            'T' => self.timeout_ns = time("--timeout")?,
            's' => self.script = Some(value),
            'H' => {
                let Some((name, text)) = value.split_once(':') else {
                    // The error message does not quote the header, because its value may be a
                    // secret.
                    return Err(WrkRefusal(Some("-H wants 'Name: value'".to_owned())));
                };
                self.headers.push((name.trim().to_owned(), text.trim().to_owned()));
            }
            'L' => self.shows_latency = true,
            'U' => (self.shows_latency, self.shows_service_latency) = (true, true),
            'B' => self.measures_batch_latency = true,
            'v' => self.shows_version = true,
            'o' => self.output = Some(value),
            'J' => self.json = true,
            'A' => self.allow_public = true,
            _ => return Err(WrkRefusal(None)),
        }
        Ok(())
    }

    fn validate(self) -> Result<WrkOptions, WrkRefusal> {
        let usage = |text: &str| Err(WrkRefusal(Some(text.to_owned())));
        if self.url_and_arguments.is_empty() || self.threads == 0 || self.duration_ns == 0 {
            return Err(WrkRefusal(None));
        }
        if self.connections == 0 || self.connections < self.threads {
            return usage("number of connections must be >= threads");
        }
        if self.timeout_ns == 0 {
            return usage("--timeout must be more than 0");
        }
        if self.dialect == Dialect::Wrk2 && self.rate_rps.unwrap_or(0) == 0 {
            return usage("Throughput MUST be specified with the --rate or -R option");
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn common_command_lines_are_parsed() {
        let base = parse(&split_words("u"), Dialect::Wrk).expect("a URL is enough");
        assert_eq!(
            (base.connections, base.threads, base.duration_ns, base.timeout_ns),
            (10, 2, 10_000_000_000, 2_000_000_000)
        );
        type Row = (&'static str, Dialect, fn(&mut WrkOptions));
        let rows: [Row; 11] = [
            ("-t12 -c400 -d30s u", Dialect::Wrk, |a| {
                (a.threads, a.connections, a.duration_ns) = (12, 400, 30_000_000_000)
            }),
            ("u -c 1k --duration=2m", Dialect::Wrk, |a| (a.connections, a.duration_ns) = (1000, 120_000_000_000)),
            ("--lat --timeout 500ms u", Dialect::Wrk, |a| (a.shows_latency, a.timeout_ns) = (true, 500_000_000)),
            ("-Lvt1 u", Dialect::Wrk, |a| (a.shows_latency, a.shows_version, a.threads) = (true, true, 1)),
            ("-H A:b -HX-Y:1:2 u", Dialect::Wrk, |a| {
                a.headers = vec![("A".into(), "b".into()), ("X-Y".into(), "1:2".into())];
            }),
            ("-s a.lua u -- -c 5 --x", Dialect::Wrk, |a| {
                a.script = Some("a.lua".into());
                a.url_and_arguments.extend(["-c", "5", "--x"].map(str::to_owned));
            }),
            ("-R2k -U u", Dialect::Wrk2, |a| {
                (a.dialect, a.rate_rps, a.shows_latency, a.shows_service_latency) =
                    (Dialect::Wrk2, Some(2000), true, true);
            }),
            ("-R 5 -B u", Dialect::Wrk2, |a| {
                (a.dialect, a.rate_rps, a.measures_batch_latency) = (Dialect::Wrk2, Some(5), true)
            }),
            ("--rate 10 -L u", Dialect::Wrk2, |a| {
                (a.dialect, a.rate_rps, a.shows_latency) = (Dialect::Wrk2, Some(10), true)
            }),
            ("--allow-public u", Dialect::Wrk, |a| a.allow_public = true),
            ("--json -o x.run u", Dialect::Wrk, |a| (a.json, a.output) = (true, Some("x.run".into()))),
        ];
        for (line, dialect, change) in rows {
            let mut expect = base.clone();
            change(&mut expect);
            assert_eq!(parse(&split_words(line), dialect), Ok(expect), "{line}");
        }
    }

    #[test]
    fn argument_errors_are_named() {
        for (line, dialect, expect) in [
            ("", Dialect::Wrk, None),
            ("-h u", Dialect::Wrk, None),
            ("-c1 u", Dialect::Wrk, Some("number of connections must be >= threads")),
            ("-c x u", Dialect::Wrk, Some("-c wants a number such as 100 or 1k, got 'x'")),
            ("-d 1.5s u", Dialect::Wrk, Some("-d wants a time such as 30s, 2m or 500ms, got '1.5s'")),
            ("-H nothing u", Dialect::Wrk, Some("-H wants 'Name: value'")),
            ("-R 5 u", Dialect::Wrk, Some("invalid option -- 'R'")),
            ("--t 5 u", Dialect::Wrk, Some("ambiguous option '--t'")),
            ("--latency=5 u", Dialect::Wrk, Some("option '--latency' doesn't allow an argument")),
            ("u -s", Dialect::Wrk, Some("option requires an argument -- 's'")),
            ("u", Dialect::Wrk2, Some("Throughput MUST be specified with the --rate or -R option")),
        ] {
            let expect = WrkRefusal(expect.map(str::to_owned));
            assert_eq!(parse(&split_words(line), dialect), Err(expect), "{line}");
        }
    }
}
