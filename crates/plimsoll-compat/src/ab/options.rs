//! Parses the command line of ab as ab does: one-letter flags, joined (`-kn100`) or separate, up to
//! the URL. Not here: running the load.

use plimsoll_traffic::target_url::{Url, basic_authorization};

/// A parsed command line of ab.
#[derive(Debug, Clone, PartialEq)]
pub enum AbCommand {
    Usage,
    Version,
    Load(Box<AbOptions>),
}

/// The options of a load, with ab's names and defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct AbOptions {
    pub url: String,
    pub requests: u64,
    pub concurrency: u64,
    /// The maximum duration of the load in seconds (`-t`); `None` if only the number of requests
    /// limits the load.
    pub seconds_max: Option<u64>,
    pub timeout_s: u64,
    pub keep_alive: bool,
    /// Whether requests use HTTP/1.1. ab's default is HTTP/1.0.
    pub is_http_1_1: bool,
    pub method: String,
    /// The file that contains the request body; `None` for requests without a body.
    pub body: Option<String>,
    pub content_type: String,
    /// The header lines for cookies (`-C`) and authorization (`-A`), which ab writes before the
    /// header lines of `-H`.
    pub cookie_and_auth_lines: Vec<String>,
    /// The header lines of `-H`, exactly as the user wrote them.
    pub header_lines: Vec<String>,
    /// Whether responses may have different lengths without being counted as failed (`-l`).
    pub allows_different_lengths: bool,
    /// Whether the load continues if a request gets no response (`-r`).
    pub continues_after_failure: bool,
    pub verbosity: u32,
    pub is_quiet: bool,
    pub shows_percentiles: bool,
    pub shows_deviations: bool,
    /// The output file for the percentiles of the response time as CSV (`-e`).
    pub csv: Option<String>,
    /// The output file with a line for each request, for gnuplot (`-g`).
    pub gnuplot: Option<String>,
    /// plimsoll's own flag: whether results are printed as JSON.
    pub json: bool,
    /// plimsoll's own flag: the path of the run file.
    pub output: Option<String>,
    /// Flags of `plimsoll run`, which are passed to `run` unchanged.
    pub passed_flags: Vec<String>,
}

/// The letters of ab's flags that have a value.
const FLAGS_WITH_VALUE: &str = "nctspuTvCHAgemBEbPXZfxyz";
/// The letters of ab's flags that have no value.
const FLAGS_WITHOUT_VALUE: &str = "kiqlrdSVhIw";
/// The letters of ab's flags that plimsoll does not support, each with the error message. The
/// message states the reason or an alternative to the flag.
const UNSUPPORTED_FLAGS: [(char, &str); 10] = [
    ('b', "-b is not supported: the system sets the size of socket buffers"),
    ('P', "-P is not supported: plimsoll does not use proxies"),
    ('X', "-X is not supported: plimsoll does not use proxies"),
    ('w', "-w is not supported: record the run with --output FILE, and make a page with plimsoll report"),
    ('x', "-x is not supported: record the run with --output FILE, and make a page with plimsoll report"),
    ('y', "-y is not supported: record the run with --output FILE, and make a page with plimsoll report"),
    ('z', "-z is not supported: record the run with --output FILE, and make a page with plimsoll report"),
    ('Z', "-Z is not supported: the TLS library chooses the ciphers"),
    ('f', "-f is not supported: the server chooses TLS 1.2 or 1.3"),
    ('I', "-I is not supported: plimsoll always sends the server's name in the TLS handshake (SNI)"),
];
/// The default maximum number of requests in ab if `-t` limits the load's duration. The load ends
/// after this number of requests, even if the duration of `-t` has not passed yet.
const TIMED_LOAD_REQUESTS_MAX: u64 = 50_000;

impl Default for AbOptions {
    fn default() -> AbOptions {
        AbOptions {
            url: String::new(),
            requests: 1,
            concurrency: 1,
            seconds_max: None,
            timeout_s: 30,
            keep_alive: false,
            is_http_1_1: false,
            method: "GET".to_owned(),
            body: None,
            content_type: "text/plain".to_owned(),
            cookie_and_auth_lines: Vec::new(),
            header_lines: Vec::new(),
            allows_different_lengths: false,
            continues_after_failure: false,
            verbosity: 0,
            is_quiet: false,
            shows_percentiles: true,
            shows_deviations: true,
            csv: None,
            gnuplot: None,
            json: false,
            output: None,
            passed_flags: Vec::new(),
        }
    }
}

/// Parses the arguments after `ab`.
pub fn parse(words: &[String]) -> Result<AbCommand, String> {
    let mut asked = AbOptions::default();
    let mut words = words.iter();
    let mut rest = Vec::new();
    let (mut cookies, mut authorization) = (Vec::new(), None);
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            asked.parse_own_flag(long, &mut words)?;
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty() && word != "--") else {
            rest.extend((word != "--").then_some(word).into_iter().chain(words.by_ref()));
            break;
        };
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let value =
                match (FLAGS_WITH_VALUE.contains(letter), FLAGS_WITHOUT_VALUE.contains(letter), letters.as_str()) {
                    (false, false, _) => return Err(format!("ab: invalid option -{letter}")),
                    (false, true, _) => "",
                    (true, _, "") => words.next().ok_or_else(|| format!("-{letter}: the value is missing"))?,
                    (true, _, rest) => {
                        letters = "".chars();
                        rest
                    }
                };
            if let Some((_, message)) = UNSUPPORTED_FLAGS.iter().find(|(refused, _)| *refused == letter) {
                return Err((*message).to_owned());
            }
            match letter {
                'h' => return Ok(AbCommand::Usage),
                'V' => return Ok(AbCommand::Version),
                'C' => cookies.push(format!("Cookie: {value}")),
                'A' => authorization = Some(format!("Authorization: {}", basic_authorization(value))),
                _ => asked.apply_flag(letter, value)?,
            }
        }
    }
    let [url] = rest[..] else {
        return Err(match rest.get(1) {
            None => "ab: the URL is missing, as in http://127.0.0.1:8080/".to_owned(),
            Some(word) => format!("ab: '{word}' follows the URL; write flags before the URL"),
        });
    };
    asked.url.clone_from(url);
    if asked.requests < asked.concurrency {
        return Err("-c: the concurrency exceeds the number of requests (-n)".to_owned());
    }
    let check = |line: &String| match line.chars().any(char::is_control) {
        true => Err("-H, -C, -T: a header field cannot contain control characters".to_owned()),
        false => Ok(()),
    };
    asked.header_lines.iter().chain(&cookies).chain([&asked.content_type]).try_for_each(check)?;
    let path = Url::parse(url).map_err(|failure| failure.to_string())?;
    if let (None, Some(value)) = (&authorization, path.authorization) {
        authorization = Some(format!("Authorization: {value}"));
    }
    asked.cookie_and_auth_lines = cookies.into_iter().chain(authorization).collect();
    Ok(AbCommand::Load(Box::new(asked)))
}

impl AbOptions {
    /// Parses one of plimsoll's own flags, which have long names (such as `--json`). If the flag
    /// needs a value in the next word, takes the word from `words`.
    fn parse_own_flag<'a>(&mut self, long: &str, words: &mut impl Iterator<Item = &'a String>) -> Result<(), String> {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
        match (name, &value) {
            ("http11", None) => self.is_http_1_1 = true,
            ("json", None) => self.json = true,
            ("allow-public", None) => self.passed_flags.push("--allow-public".to_owned()),
            ("help", None) => return Err("ab -h lists the flags".to_owned()),
            ("output", _) => {
                self.output =
                    Some(value.or_else(|| words.next().cloned()).ok_or("--output: the name of the file is missing")?);
            }
            _ => return Err(format!("ab: invalid option --{name}")),
        }
        Ok(())
    }

    fn apply_flag(&mut self, letter: char, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|_| format!("-{letter}: '{value}' is no whole number"));
        let positive = || match number()? {
            0 => Err(format!("-{letter}: the value must be more than 0")),
            number => Ok(number),
        };
        match letter {
            'n' => self.requests = positive()?,
            'c' => self.concurrency = positive()?,
            't' => (self.seconds_max, self.requests) = (Some(positive()?), TIMED_LOAD_REQUESTS_MAX),
            's' => self.timeout_s = positive()?,
            'v' => self.verbosity = number()?.min(4) as u32,
            'k' => self.keep_alive = true,
            'i' => self.set_method("HEAD")?,
            'm' => {
                if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) || value.is_empty()
                {
                    return Err(format!("-m: '{value}' is no method"));
                }
                self.method = value.to_owned();
            }
            'p' | 'u' => {
                if self.body.is_some() {
                    return Err(
                        "-p, -u: a request can have only one body; give only one of these flags, and only once"
                            .to_owned(),
                    );
                }
                // A method that the user set explicitly is not replaced by POST or PUT.
                if ["GET", "HEAD"].contains(&self.method.as_str()) {
                    self.set_method(if letter == 'p' { "POST" } else { "PUT" })?;
                }
                self.body = Some(value.to_owned());
            }
            'T' => self.content_type = value.to_owned(),
            'H' => {
                if !value.contains(':') {
                    return Err("-H: write the header as 'Name: value'".to_owned());
                }
                self.header_lines.push(value.to_owned());
            }
            'l' => self.allows_different_lengths = true,
            'r' => self.continues_after_failure = true,
            'q' => self.is_quiet = true,
            'd' => self.shows_percentiles = false,
            'S' => self.shows_deviations = false,
            'e' => self.csv = Some(value.to_owned()),
            'g' => self.gnuplot = Some(value.to_owned()),
            'B' => self.passed_flags.push(format!("--source-ip={value}")),
            'E' => self.passed_flags.extend([format!("--cert={value}"), format!("--key={value}")]),
            _ => return Err(format!("ab: invalid option -{letter}")),
        }
        Ok(())
    }

    fn set_method(&mut self, method: &str) -> Result<(), String> {
        if method == "HEAD" && self.body.is_some() || self.method == "HEAD" && method != "HEAD" {
            return Err("-i: a HEAD request cannot have a body; leave -i out, or leave -p and -u out".to_owned());
        }
        self.method = method.to_owned();
        Ok(())
    }

    /// Returns the bytes of the request exactly as ab sends it, with `body` as its body.
    pub fn encode_request(&self, host: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let given = |name: &str| {
            self.header_lines
                .iter()
                .any(|line| line.split(':').next().is_some_and(|field| field.trim().eq_ignore_ascii_case(name)))
        };
        let mut lines = vec![format!("{} {path} HTTP/1.{}", self.method, u8::from(self.is_http_1_1))];
        if self.keep_alive {
            lines.push("Connection: Keep-Alive".to_owned());
        } else if self.is_http_1_1 {
            lines.push("Connection: close".to_owned());
        }
        lines.extend(self.cookie_and_auth_lines.iter().cloned());
        if self.body.is_some() {
            lines.push(format!("Content-length: {}", body.len()));
            lines.push(format!("Content-type: {}", self.content_type));
        }
        lines.extend(self.header_lines.iter().cloned());
        for (name, value) in [("Host", host), ("User-Agent", "ApacheBench/2.3"), ("Accept", "*/*")] {
            if !given(name) {
                lines.push(format!("{name}: {value}"));
            }
        }
        let mut bytes = lines.join("\r\n").into_bytes();
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend_from_slice(body);
        bytes
    }

    /// Returns the equivalent arguments of `plimsoll run`.
    pub fn run_arguments(&self) -> Vec<String> {
        let mut line = ["--quiet", "--no-preflight", "--http=1.1", "--insecure"].map(str::to_owned).to_vec();
        if !self.url.starts_with("https://") {
            line.pop();
        }
        line.push(format!("--requests={}", self.requests));
        line.push(format!("--concurrency={}", self.concurrency));
        line.push(format!("--timeout={}s", self.timeout_s));
        line.extend(self.seconds_max.map(|seconds| format!("--duration={seconds}s")));
        line.extend((!self.keep_alive).then(|| "--no-keepalive".to_owned()));
        line.extend(self.json.then(|| "--json".to_owned()));
        line.extend(self.output.iter().map(|path| format!("--output={path}")));
        line.extend(self.passed_flags.iter().cloned());
        line.push(self.url.clone());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<AbCommand, String> {
        parse(&line.split(' ').map(|word| word.replace('~', " ")).collect::<Vec<_>>())
    }

    fn parse_load_options(line: &str) -> AbOptions {
        match read(line) {
            Ok(AbCommand::Load(asked)) => *asked,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn common_command_lines_are_parsed() {
        let asked = parse_load_options("-kc10 -n 1000 -t5 -H X:~y -l http://h/");
        assert_eq!(
            (asked.keep_alive, asked.concurrency, asked.requests, asked.seconds_max),
            (true, 10, 50_000, Some(5))
        );
        assert_eq!((asked.header_lines, asked.allows_different_lengths), (vec!["X: y".to_owned()], true));
        assert_eq!(parse_load_options("-t 5 -n 1000 h/").requests, 1000);
        let run =
            parse_load_options("-n 7 -c 2 -s 3 -B 127.0.0.2 --json --output=f https://h/").run_arguments().join(" ");
        let expect = "--quiet --no-preflight --http=1.1 --insecure --requests=7 --concurrency=2 --timeout=3s --no-keepalive --json --output=f --source-ip=127.0.0.2 https://h/";
        assert_eq!(run, expect);
        assert_eq!((read("-h"), read("-V")), (Ok(AbCommand::Usage), Ok(AbCommand::Version)));
    }

    #[test]
    fn requests_match_ab() {
        for (line, body, expect) in [
            ("http://h/", "", "GET / HTTP/1.0|Host: h:1|User-Agent: ApacheBench/2.3|Accept: */*||"),
            (
                "-k -C a=b -C c=d -A u:p -H X:~y -H user-agent:~me http://h/",
                "",
                "GET / HTTP/1.0|Connection: Keep-Alive|Cookie: a=b|Cookie: c=d|Authorization: Basic dTpw|X: y|user-agent: me|Host: h:1|Accept: */*||",
            ),
            (
                "-p f -T a/b http://h/",
                "xyz",
                "POST / HTTP/1.0|Content-length: 3|Content-type: a/b|Host: h:1|User-Agent: ApacheBench/2.3|Accept: */*||xyz",
            ),
            (
                "-u f --http11 -H Host:~o -H Accept:~a -H User-Agent:~u h",
                "",
                "PUT / HTTP/1.1|Connection: close|Content-length: 0|Content-type: text/plain|Host: o|Accept: a|User-Agent: u||",
            ),
            (
                "-m PATCH -p f -H Host:~o -H Accept:~a -H User-Agent:~u h",
                "1",
                "PATCH / HTTP/1.0|Content-length: 1|Content-type: text/plain|Host: o|Accept: a|User-Agent: u||1",
            ),
            ("-i -H Host:~o -H Accept:~a -H User-Agent:~u h", "", "HEAD / HTTP/1.0|Host: o|Accept: a|User-Agent: u||"),
        ] {
            let written = parse_load_options(line).encode_request("h:1", "/", body.as_bytes());
            assert_eq!(String::from_utf8(written).expect("text").replace("\r\n", "|"), expect, "{line}");
        }
    }

    #[test]
    fn arguments_cannot_inject_a_second_request() {
        let flags =
            ["-n5", "-c", "-t", "-k", "-H", "-HX: y", "-C", "-A", "-p", "-T", "-m", "-i", "-kc2", "--json", "--output"];
        let mut understood_n = 0;
        for seed in 0..30_000 {
            let words = crate::random_command_lines::random_command_line(seed, &flags);
            if let Ok(AbCommand::Load(asked)) = parse(&words) {
                understood_n += 1;
                let written = String::from_utf8(asked.encode_request("h", "/", b"")).expect("text");
                assert_eq!(written.find("\r\n\r\n"), Some(written.len() - 4), "{words:?}: {written}");
            }
        }
        assert!(understood_n > 100, "{understood_n}");
    }

    #[test]
    fn argument_errors_are_named() {
        for (line, expect) in [
            ("-n 1", "URL is missing"),
            ("-n x h", "-n: 'x'"),
            ("-n 0 h", "-n: the value must be more than 0"),
            ("-n", "-n: the value is missing"),
            ("-n 1 -c 2 h", "-c: the concurrency exceeds"),
            ("h -n 5", "'-n' follows the URL"),
            ("-Q h", "invalid option -Q"),
            ("--what h", "invalid option --what"),
            ("-X p:1 h", "-X is not supported"),
            ("-w h", "-w is not supported"),
            ("-Z AES h", "-Z is not supported"),
            ("-H nothing h", "-H"),
            ("-H a:\u{1} h", "control"),
            ("-p f -u g h", "one body"),
            ("-i -p f h", "-i"),
            ("-m G~T h", "-m"),
            ("ftp://h/", "http://HOST"),
        ] {
            let found = read(line);
            assert!(found.as_ref().is_err_and(|why| why.contains(expect)), "{line}: {found:?}");
        }
    }
}
