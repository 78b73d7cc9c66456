//! Parses the command line of hey: Go-style flags, then the URL. Not here: running the load.

use crate::go_flags::{parse_go_duration_ns, parse_go_flags};
use crate::go_redirect::RedirectHop;
use crate::go_request::{GoRequest, canonical_header_name};
use plimsoll_traffic::target_url::{Url, basic_authorization};

/// The options of a load, with hey's names and defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct HeyOptions {
    pub url: String,
    pub requests: u64,
    pub workers: u64,
    /// The rate limit of each worker in requests per second; `None` means no limit.
    pub worker_rps: Option<f64>,
    /// The duration in ns after which the load ends, regardless of `requests`. With `None`, the
    /// load ends after `requests` requests.
    pub duration_ns: Option<u64>,
    /// The timeout of a request in seconds; 0 means no timeout.
    pub timeout_s: u64,
    /// Whether to print a CSV line for each response instead of a summary.
    pub is_csv: bool,
    pub method: String,
    /// The request body as text. If `body_file` is set, the content of that file is sent instead.
    pub body: String,
    /// The file that contains the request body.
    pub body_file: Option<String>,
    /// The header fields (name, value) that every request has.
    pub headers: Vec<(String, String)>,
    pub host: Option<String>,
    /// Whether to use HTTP/2. As in hey, HTTP/2 requires TLS.
    pub is_http2: bool,
    pub accepts_gzip: bool,
    pub keep_alive: bool,
    pub follows_redirects: bool,
    /// plimsoll's own flag: whether results are printed as JSON.
    pub json: bool,
    /// plimsoll's own flag: the path of the run file.
    pub output: Option<String>,
    /// Flags of `plimsoll run`, which are passed to `run` unchanged.
    pub passed_flags: Vec<String>,
}

/// The boolean flags, which take a value only after an equals sign.
const BOOLEAN_FLAGS: [&str; 6] =
    ["h2", "disable-compression", "disable-keepalive", "disable-redirects", "allow-public", "json"];
const HEY_USER_AGENT: &str = "hey/0.0.1";
/// The timeout in seconds for hey's `-t 0` (no timeout): one hour, the maximum that `run` accepts.
const TIMEOUT_S_MAX: u64 = 3600;

/// Parses the arguments after `hey`; `None` if the user asks for help.
pub fn parse(words: &[String]) -> Result<Option<HeyOptions>, String> {
    let mut asked = HeyOptions {
        url: String::new(),
        requests: 200,
        workers: 50,
        worker_rps: None,
        duration_ns: None,
        timeout_s: 20,
        is_csv: false,
        method: "GET".to_owned(),
        body: String::new(),
        body_file: None,
        headers: Vec::new(),
        host: None,
        is_http2: false,
        accepts_gzip: true,
        keep_alive: true,
        follows_redirects: true,
        json: false,
        output: None,
        passed_flags: Vec::new(),
    };
    let mut said = HeaderOptions { content_type: "text/html".to_owned(), ..HeaderOptions::default() };
    let rest = parse_go_flags("hey", &BOOLEAN_FLAGS, words, &mut |flag, value| {
        let number = || value.parse::<u64>().map_err(|_| format!("-{flag}: '{value}' is no whole number"));
        let truth = || match value {
            "true" | "1" | "t" => Ok(true),
            "false" | "0" | "f" => Ok(false),
            _ => Err(format!("-{flag}: '{value}' is not true or false")),
        };
        match flag {
            "n" => asked.requests = number()?,
            "c" => asked.workers = number()?,
            "t" => asked.timeout_s = number()?,
            "q" => {
                let rate = value.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
                asked.worker_rps =
                    Some(rate.ok_or_else(|| format!("-q: '{value}' is no rate"))?).filter(|rate| *rate > 0.0);
            }
            "z" => {
                let ns = parse_go_duration_ns(value).ok_or_else(|| format!("-z: '{value}' is no time such as 10s"))?;
                asked.duration_ns = Some(ns).filter(|ns| *ns > 0);
            }
            "o" if value == "csv" => asked.is_csv = true,
            "o" => {
                return Err(format!(
                    "-o: the output format must be csv, not '{value}'; to record the run in a file, use -output FILE"
                ));
            }
            "m" => {
                if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
                {
                    return Err(format!("-m: '{value}' is no method"));
                }
                asked.method = value.to_ascii_uppercase();
            }
            "H" => {
                let field =
                    value.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
                said.fields
                    .push(field.filter(|(name, _)| !name.is_empty()).ok_or("-H: write the header as 'Name: value'")?);
            }
            "A" => said.accept = value.to_owned(),
            "T" => said.content_type = value.to_owned(),
            "U" => said.user_agent = value.to_owned(),
            "a" => {
                if !value.contains(':') {
                    return Err("-a: write the user as name:password".to_owned());
                }
                said.authorization = Some(basic_authorization(value));
            }
            "d" => asked.body = value.to_owned(),
            "D" => asked.body_file = Some(value.to_owned()),
            "host" => asked.host = Some(value.to_owned()).filter(|host| !host.is_empty()),
            "h2" => asked.is_http2 = truth()?,
            "disable-compression" => asked.accepts_gzip = !truth()?,
            "disable-keepalive" => asked.keep_alive = !truth()?,
            "disable-redirects" => asked.follows_redirects = !truth()?,
            "cpus" => asked.passed_flags.push(format!("--threads={}", number()?.max(1))),
            "x" => return Err("-x is not supported: plimsoll does not use proxies".to_owned()),
            "allow-public" => asked.passed_flags.extend(truth()?.then(|| "--allow-public".to_owned())),
            "json" => asked.json = truth()?,
            "output" => asked.output = Some(value.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(rest) = rest else { return Ok(None) };
    let [url] = &rest[..] else {
        return Err(match rest.get(1) {
            None => "hey: the URL is missing, as in http://127.0.0.1:8080/".to_owned(),
            Some(word) => format!("hey: '{word}' follows the URL; write flags before the URL"),
        });
    };
    let read = Url::parse(url).map_err(|failure| failure.to_string())?;
    said.authorization = said.authorization.or(read.authorization);
    asked.is_http2 &= read.origin.scheme == "https";
    asked.url.clone_from(url);
    if asked.workers == 0 || asked.requests == 0 {
        return Err("-n, -c: 0 is too few".to_owned());
    }
    if asked.duration_ns.is_none() && asked.requests < asked.workers {
        return Err("-n: the number of requests is less than the number of workers (-c)".to_owned());
    }
    asked.headers = said.headers();
    let is_wrong = |text: &String| text.chars().any(char::is_control);
    if asked.headers.iter().any(|(name, value)| is_wrong(name) || is_wrong(value)) || asked.host.iter().any(is_wrong) {
        return Err("-H, -A, -T, -U, -host: a header field cannot contain control characters".to_owned());
    }
    Ok(Some(asked))
}

/// The options from which the header fields of a request are made.
#[derive(Default)]
struct HeaderOptions {
    fields: Vec<(String, String)>,
    accept: String,
    content_type: String,
    user_agent: String,
    authorization: Option<String>,
}

impl HeaderOptions {
    /// Returns the header fields as hey sends them, sorted by name. If a name occurs several times,
    /// only its last value is sent.
    fn headers(self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        let mut set = |name: &str, value: String| {
            let name = canonical_header_name(name);
            all.retain(|(other, _)| *other != name);
            all.push((name, value));
        };
        set("Content-Type", self.content_type);
        let mut agent = String::new();
        for (name, value) in self.fields {
            if name.eq_ignore_ascii_case("user-agent") {
                agent.clone_from(&value);
            }
            set(&name, value);
        }
        if !self.accept.is_empty() {
            set("Accept", self.accept);
        }
        if !self.user_agent.is_empty() {
            agent = self.user_agent;
        }
        set(
            "User-Agent",
            if agent.is_empty() { HEY_USER_AGENT.to_owned() } else { format!("{agent} {HEY_USER_AGENT}") },
        );
        if let Some(value) = self.authorization {
            set("Authorization", value);
        }
        all.sort();
        all
    }
}

impl HeyOptions {
    /// Returns the first request of a redirect chain, to this host and path.
    pub fn first_hop(&self, host: &str, path: &str) -> RedirectHop {
        RedirectHop::first_hop(&self.method, &self.url, path, self.host.as_deref().unwrap_or(host))
    }

    /// Encodes one request of a redirect chain with this body, exactly as Go does over HTTP/1.1.
    pub fn encode_request(&self, hop: &RedirectHop, body: &[u8]) -> Vec<u8> {
        let request = GoRequest {
            method: &hop.method,
            path: &hop.path,
            host: &hop.host,
            headers: &hop.headers(&self.headers),
            body: if hop.has_dropped_body { b"" } else { body },
            accepts_gzip: self.accepts_gzip,
            keep_alive: self.keep_alive,
        };
        request.encode()
    }

    /// Returns the equivalent arguments of `plimsoll run`.
    pub fn run_arguments(&self) -> Vec<String> {
        let mut line = ["--quiet", "--no-preflight"].map(str::to_owned).to_vec();
        line.push(format!("--http={}", if self.is_http2 { "2" } else { "1.1" }));
        // Certificates are not verified, because hey does not verify them.
        line.extend(self.url.starts_with("https://").then(|| "--insecure".to_owned()));
        match self.duration_ns {
            Some(ns) => line.push(format!("--duration={}ms", ns.div_ceil(1_000_000))),
            None => line.push(format!("--requests={}", self.requests)),
        }
        match self.worker_rps {
            Some(rate) => line.extend([
                format!("--rate={}", rate * self.workers as f64),
                format!("--max-connections={}", self.workers),
            ]),
            None => line.push(format!("--concurrency={}", self.workers)),
        }
        line.push(format!("--timeout={}s", if self.timeout_s == 0 { TIMEOUT_S_MAX } else { self.timeout_s }));
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

    fn read(line: &str) -> Result<Option<HeyOptions>, String> {
        parse(&line.split(' ').map(|word| word.replace('~', " ")).collect::<Vec<_>>())
    }

    fn parse_load_options(line: &str) -> HeyOptions {
        read(line).expect("understood").expect("a load")
    }

    #[test]
    fn common_command_lines_are_parsed() {
        for (line, expect) in [
            ("http://h/", "--quiet --no-preflight --http=1.1 --requests=200 --concurrency=50 --timeout=20s http://h/"),
            (
                "-n 1000 -c 5 -q 10 -t 0 -cpus 2 http://h/",
                "--quiet --no-preflight --http=1.1 --requests=1000 --rate=50 --max-connections=5 --timeout=3600s --threads=2 http://h/",
            ),
            (
                "-z 1.5s -c 5 -n 2 -h2 -disable-keepalive -disable-redirects -json -output=f https://h/",
                "--quiet --no-preflight --http=2 --insecure --duration=1500ms --concurrency=5 --timeout=20s --no-keepalive --json --output=f https://h/",
            ),
        ] {
            assert_eq!(parse_load_options(line).run_arguments().join(" "), expect, "{line}");
        }
        assert_eq!(read("-h"), Ok(None));
        assert!(parse_load_options("-o csv http://h/").is_csv && !parse_load_options("-h2 http://h/").is_http2);
    }

    #[test]
    fn requests_match_hey() {
        for (line, body, expect) in [
            (
                "http://h/",
                "",
                "GET / HTTP/1.1|Host: h:1|User-Agent: hey/0.0.1|Content-Type: text/html|Accept-Encoding: gzip||",
            ),
            (
                "-m post -T a/b -A c/d -a u:p -H x-y:~z -H X-Y:~w -U me -host other http://h/",
                "xyz",
                "POST / HTTP/1.1|Host: other|User-Agent: me hey/0.0.1|Content-Length: 3|Accept: c/d|Authorization: Basic dTpw|Content-Type: a/b|X-Y: w|Accept-Encoding: gzip||xyz",
            ),
            (
                "-m PUT -H content-type:json -H user-agent:them -disable-compression -disable-keepalive http://h/",
                "",
                "PUT / HTTP/1.1|Host: h:1|User-Agent: them hey/0.0.1|Content-Length: 0|Content-Type: json|Connection: close||",
            ),
        ] {
            let asked = parse_load_options(line);
            let written = asked.encode_request(&asked.first_hop("h:1", "/"), body.as_bytes());
            assert_eq!(String::from_utf8(written).expect("text").replace("\r\n", "|"), expect, "{line}");
        }
    }

    #[test]
    fn arguments_cannot_inject_a_second_request() {
        let flags = [
            "-n=5", "-c=2", "-c", "-z", "-q", "-H", "-H=X: y", "-A", "-a", "-d", "-T", "-U", "-host", "-m", "-h2",
            "-json",
        ];
        let mut understood_n = 0;
        for seed in 0..30_000 {
            let words = crate::random_command_lines::random_command_line(seed, &flags);
            if let Ok(Some(asked)) = parse(&words) {
                understood_n += 1;
                let written = String::from_utf8(asked.encode_request(&asked.first_hop("h", "/"), b"")).expect("text");
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
            ("-n 0 h", "too few"),
            ("-n 1 -c 2 h", "-n: the number of requests is less than"),
            ("h -n 5", "'-n' follows the URL"),
            ("-Q 5 h", "unknown flag -Q"),
            ("-x http://p h", "-x is not supported"),
            ("-o json h", "csv, not 'json'"),
            ("-q fast h", "-q: 'fast'"),
            ("-z 10 h", "-z: '10'"),
            ("-a nobody h", "-a"),
            ("-H nothing h", "-H"),
            ("-H a:b\u{1}c h", "control"),
            ("-m G~T h", "-m"),
            ("ftp://h/", "http://HOST"),
        ] {
            let found = read(line);
            assert!(found.as_ref().is_err_and(|why| why.contains(expect)), "{line}: {found:?}");
        }
    }
}
