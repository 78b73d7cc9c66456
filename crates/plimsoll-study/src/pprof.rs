//! Fetches profiles over HTTP from endpoints such as Go's `net/http/pprof`. Builds the path of the
//! request, and explains to the user why a server refuses.
//!
//! Not here: when profiles are taken (`profile_capture`), and parsing them.

use crate::target::resolve_plain_http_url;
use plimsoll_analysis::profile::{ReadError, ReadLimits, read_within_limits};
use plimsoll_model::Plan;
use plimsoll_model::failure::Failure;
use plimsoll_model::profile::Profile;
use plimsoll_model::redact;
use plimsoll_probe::fetch::FetchTarget;
use plimsoll_probe::fetch::{ByteBudget, FetchError, FetchResponse, fetch};
use plimsoll_traffic::target_url::redact_query;
use std::sync::Mutex;
use std::time::Duration;

/// The default duration of a CPU profile in seconds, which is also the default of Go's pprof tool.
const CPU_PROFILE_DURATION_S: u32 = 30;
/// The time that fetching all profiles of an endpoint may take in addition to the duration of the
/// profiles.
pub const PROFILE_FETCH_GRACE: Duration = Duration::from_secs(5);
/// The largest number of bytes that a profile endpoint may send (32 MiB).
const PROFILE_RESPONSE_BYTES_MAX: usize = 32 << 20;
/// The largest decompressed profile, bytes (24 MiB). Tables built from a profile take several times
/// its memory, so this limit keeps the tables below 256 MiB.
const DECOMPRESSED_PROFILE_BYTES_MAX: usize = 24 << 20;
/// A lock that lets one thread at a time decompress a profile, to bound the memory use.
static DECOMPRESSION_LOCK: Mutex<()> = Mutex::new(());
/// The time to wait for a server's refusal of a profile request. If no refusal arrives within 700
/// ms, plimsoll assumes that the server is profiling.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(700);

/// Returns the path and the length in seconds of a profile request. A base path such as
/// `/debug/pprof` becomes the path of its CPU profile, and `seconds` is added to the query.
pub fn profile_path(path: &str, seconds: Option<u32>) -> Result<(String, u32), Failure> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let path = match path.trim_end_matches('/') {
        "" => "/debug/pprof/profile".to_owned(),
        base if base.ends_with("/debug/pprof") => format!("{base}/profile"),
        whole => whole.to_owned(),
    };
    let mut parts: Vec<String> = query.split('&').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if parts.iter().any(|part| part.starts_with("debug=") && part != "debug=0") {
        return Err(Failure::usage("debug= requests a text instead of a profile: leave debug= out of the address"));
    }
    let in_query = parts.iter().find_map(|part| part.strip_prefix("seconds="));
    let (put_in, seconds) = match (in_query, seconds) {
        (Some(_), Some(_)) => return Err(Failure::usage("give --seconds or seconds= in the address, not both")),
        (Some(text), None) => {
            let number = text.parse().map_err(|_| Failure::usage("seconds= in the address must be a whole number"))?;
            (false, number)
        }
        (None, Some(seconds)) => (true, seconds),
        (None, None) if path.ends_with("/profile") => (true, CPU_PROFILE_DURATION_S),
        (None, None) => (false, 0),
    };
    if put_in {
        parts.push(format!("seconds={seconds}"));
    }
    let query = if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) };
    Ok((path + &query, seconds))
}

/// Returns a URL without its path and without secrets.
fn redacted_origin(url: &str) -> String {
    let mut origin = redact_query(url);
    let start = origin.find("://").map_or(0, |at| at + 3);
    let end = origin[start..].find(['/', '?']).map_or(origin.len(), |at| start + at);
    origin.truncate(end);
    origin
}

/// Fetches a profile; also returns its redacted URL. Calls `say` with a message before a long wait.
pub fn fetch_profile(
    url: &str,
    seconds: Option<u32>,
    allow_public: bool,
    say: impl FnOnce(&str),
) -> Result<(String, Vec<u8>), Failure> {
    let target = resolve_plain_http_url(url, allow_public)?;
    let (path, seconds) = profile_path(&target.path, seconds)?;
    let name = format!("{}{}", redacted_origin(url), redact::redact_path(path.split('?').next().unwrap_or_default()));
    if seconds > 0 {
        say(&format!("profiling {name} for {seconds} s"));
    }
    let timeout = PROFILE_FETCH_GRACE + Duration::from_secs(u64::from(seconds));
    match fetch(&target, &path, timeout, &ByteBudget::new(PROFILE_RESPONSE_BYTES_MAX)) {
        Ok(FetchResponse { status: 200..=299, body }) => Ok((name, body)),
        Ok(FetchResponse { status, body }) => {
            Err(Failure::cannot_start(format!("'{name}' has status {status}{}", refusal_text(status, &body))))
        }
        Err(error) => Err(Failure::cannot_start(format!(
            "the profile '{name}' could not be fetched: {reason}",
            reason = error.error_message()
        ))),
    }
}

/// Parses the response body as a profile. Fails if the body is not a profile, or is too large.
fn parse_profile_body(body: &[u8]) -> Result<Profile, ReadError> {
    let _one_at_a_time = DECOMPRESSION_LOCK.lock();
    read_within_limits(body, ReadLimits::for_untrusted_sender(DECOMPRESSED_PROFILE_BYTES_MAX))
}

/// Returns the server's error text and a way to correct the error. The caller appends the returned
/// text to a message that ends in `has status N`.
fn refusal_text(status: u16, body: &[u8]) -> String {
    let said = String::from_utf8_lossy(body);
    let line: String = redact::redact_line(said.lines().next().unwrap_or_default()).chars().take(120).collect();
    let line = line.trim();
    let quoted = if line.is_empty() || line.starts_with('<') { String::new() } else { format!(" ({line})") };
    let lower = said.to_lowercase();
    let way_out = match status {
        400 if lower.contains("writetimeout") || lower.contains("write timeout") => {
            "the server's WriteTimeout is shorter than the profile: give fewer seconds"
        }
        400 => "give another number of seconds for the profile, or leave the number out",
        401 | 403 => "the address needs credentials: write http://USER:PASSWORD@HOST",
        404 => {
            "this address has no profile: a Go server that imports net/http/pprof serves profiles under /debug/pprof/"
        }
        500 if lower.contains("already") || lower.contains("in use") => {
            "another CPU profile is being taken: wait until it ends, then try again"
        }
        300..=399 => "the server redirects this address: give the new address",
        _ => "the server's own log shows the reason of this status",
    };
    format!("{quoted}: {way_out}")
}

/// A server's endpoint for profiles: its addresses and base URL.
#[derive(Debug, Clone)]
pub struct Endpoint {
    target: FetchTarget,
    /// The path of the base URL, without a final slash.
    base: String,
    /// The base URL with secrets redacted, as messages and records show it.
    pub shown: String,
    /// The number of bytes that this endpoint may still send.
    bytes_left: ByteBudget,
}

impl Endpoint {
    /// Resolves a base URL such as `http://localhost:6060/debug/pprof`. A URL without a path gets
    /// the usual path `/debug/pprof`.
    pub fn resolve_base_url(url: &str, allow_public: bool) -> Result<Endpoint, Failure> {
        let target = resolve_plain_http_url(url, allow_public)?;
        let path = target.path.split('?').next().unwrap_or_default().trim_end_matches('/');
        let base = match path.strip_suffix("/profile").unwrap_or(path) {
            "" => "/debug/pprof".to_owned(),
            base => base.to_owned(),
        };
        let shown = format!("{}{}", redacted_origin(url), redact::redact_path(&base));
        Ok(Endpoint { target, base, shown, bytes_left: ByteBudget::new(PROFILE_RESPONSE_BYTES_MAX) })
    }

    /// Returns the endpoint at the usual path (`/debug/pprof`) of a load's target, with the
    /// target's authorization.
    pub fn default_endpoint_on_target(plan: &Plan, authorization: Option<String>) -> Result<Endpoint, Failure> {
        let target = FetchTarget::for_load_server(plan, authorization)?;
        let base = "/debug/pprof".to_owned();
        let bytes_left = ByteBudget::new(PROFILE_RESPONSE_BYTES_MAX);
        Ok(Endpoint { shown: format!("{}{base}", target.origin), target, base, bytes_left })
    }

    /// Whether the server has an index page of profiles at this base URL.
    pub fn has_profile_index(&self) -> bool {
        let index = fetch(&self.target, &format!("{}/", self.base), REFUSAL_TIMEOUT, &ByteBudget::new(1 << 20));
        // A pprof index contains a link to the text form of each profile kind.
        index
            .is_ok_and(|index| index.status == 200 && String::from_utf8_lossy(&index.body).contains("goroutine?debug="))
    }

    /// Checks that the server permits CPU profiles: requests a CPU profile and cancels the request
    /// soon. A refusal arrives at once, whereas a response with a profile comes only after the
    /// `seconds` of the profile.
    pub fn check_cpu_profiles_permitted(&self, seconds: u32) -> Result<(), Failure> {
        let path = format!("{}/profile?seconds={seconds}", self.base);
        let bad = |why: String| Failure::cannot_start(format!("--pprof: '{}/profile' {why}", self.shown));
        match fetch(&self.target, &path, REFUSAL_TIMEOUT, &self.bytes_left) {
            Err(FetchError::Timeout) => Ok(()),
            Err(FetchError::Other(reason)) => Err(bad(format!("cannot be fetched: {reason}"))),
            Ok(FetchResponse { status: 200..=299, body }) => match parse_profile_body(&body) {
                // Some servers ignore the requested length of a profile and respond at once.
                Ok(_) => Ok(()),
                Err(error) => Err(bad(error.to_string())),
            },
            Ok(FetchResponse { status, body }) => {
                Err(bad(format!("has status {status}{}", refusal_text(status, &body))))
            }
        }
    }

    /// Takes a profile of this kind (`profile`, `heap`, ...) and length, and checks that the
    /// profile can be parsed. Waits at most `patience` longer than `seconds`.
    ///
    /// # Errors
    ///
    /// The error contains the reason and a way to correct the problem. The error text completes a
    /// sentence that begins with the profile kind.
    pub fn take_profile(&self, kind: &str, seconds: u32, patience: Duration) -> Result<Vec<u8>, String> {
        let path = format!("{}/{kind}?seconds={seconds}", self.base);
        let timeout = patience + Duration::from_secs(u64::from(seconds));
        match fetch(&self.target, &path, timeout, &self.bytes_left) {
            Err(error) => Err(error.error_message().to_owned()),
            Ok(FetchResponse { status: 200..=299, body }) => match parse_profile_body(&body) {
                Ok(_) => Ok(body),
                Err(error) => Err(format!("the response {error}")),
            },
            Ok(FetchResponse { status, body }) => Err(format!("has status {status}{}", refusal_text(status, &body))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_pprof_profile_urls() {
        for (path, seconds, expect) in [
            ("/", None, Ok(("/debug/pprof/profile?seconds=30", 30))),
            ("/debug/pprof/", Some(5), Ok(("/debug/pprof/profile?seconds=5", 5))),
            ("/x/debug/pprof", None, Ok(("/x/debug/pprof/profile?seconds=30", 30))),
            ("/debug/pprof/profile?seconds=2", None, Ok(("/debug/pprof/profile?seconds=2", 2))),
            ("/debug/pprof/heap", None, Ok(("/debug/pprof/heap", 0))),
            ("/debug/pprof/heap?gc=1", Some(3), Ok(("/debug/pprof/heap?gc=1&seconds=3", 3))),
            ("/debug/pprof/goroutine?debug=0", None, Ok(("/debug/pprof/goroutine?debug=0", 0))),
            ("/debug/pprof/goroutine?debug=2", None, Err("debug=")),
            ("/debug/pprof/profile?seconds=2", Some(2), Err("not both")),
            ("/debug/pprof/profile?seconds=x", None, Err("whole number")),
        ] {
            match (profile_path(path, seconds), expect) {
                (Ok((got, waits)), Ok((want, want_waits))) => assert_eq!((got.as_str(), waits), (want, want_waits)),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{path}: {error}"),
                (got, want) => panic!("{path}: {got:?}, expected {want:?}"),
            }
        }
    }

    #[test]
    fn pprof_base_urls_are_found() {
        for (url, expect) in [
            ("http://127.0.0.1:6060", "http://127.0.0.1:6060/debug/pprof"),
            ("http://u:secret@127.0.0.1:6060/", "http://127.0.0.1:6060/debug/pprof"),
            ("http://127.0.0.1:6060/debug/pprof/", "http://127.0.0.1:6060/debug/pprof"),
            ("http://127.0.0.1:6060/x/debug/pprof/profile?seconds=3", "http://127.0.0.1:6060/x/debug/pprof"),
        ] {
            assert_eq!(Endpoint::resolve_base_url(url, false).expect("a base").shown, expect, "{url}");
        }
    }

    #[test]
    fn pprof_and_metrics_requests_go_to_the_load_target() {
        use plimsoll_model::{ConnectionPlan, LoadCurve, LoadShape};
        let elsewhere: std::net::SocketAddr = "127.0.0.1:7902".parse().expect("an address");
        let shape = LoadShape::Closed { users: LoadCurve::constant(1.0) };
        // The address comes from the plan: the host name of the URL is not resolved.
        let mut plan = Plan::for_get_request("no-such-host.invalid", 7901, vec![elsewhere], shape);
        let endpoint = Endpoint::default_endpoint_on_target(&plan, Some("Basic dTpwdw==".into())).expect("a base");
        assert_eq!(endpoint.target.addresses, [elsewhere]);
        assert_eq!(endpoint.shown, "http://no-such-host.invalid:7901/debug/pprof");
        plan.connection_plan = ConnectionPlan { unix: Some("/s".into()), ..ConnectionPlan::tcp(vec![]) };
        assert!(
            Endpoint::default_endpoint_on_target(&plan, None)
                .expect_err("no address")
                .to_string()
                .contains("unix socket")
        );
        plan.connection_plan = ConnectionPlan::tcp(vec![elsewhere]);
        plan.traffic.origin.scheme = "https".into();
        assert!(
            Endpoint::default_endpoint_on_target(&plan, None).expect_err("no TLS").to_string().contains("plain HTTP")
        );
    }

    #[test]
    fn refusals_name_a_remedy() {
        for (status, body, said) in [
            (404, "404 page not found\n", "net/http/pprof"),
            (500, "Could not enable CPU profiling: cpu profiling already in use\n", "wait until it ends"),
            (400, "profile duration exceeds server's WriteTimeout\n", "fewer seconds"),
            (301, "<a href=\"/x\">Moved Permanently</a>.\n", "redirects"),
            (401, "", "USER:PASSWORD"),
            (503, "busy\u{1b}[31m\nand more", " (busy [31m): the server's own log"),
        ] {
            let text = refusal_text(status, body.as_bytes());
            assert!(text.contains(said) && !text.contains('\n'), "{status}: {text}");
        }
    }
}
