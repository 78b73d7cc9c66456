//! The target: from a URL to addresses, with the rule that load goes nowhere by accident.

use crate::failure::Failure;
use plimsoll_model::addresses::{is_metadata, is_private, reached};
use plimsoll_model::redact::{self, Redact, percent_decoded};
use plimsoll_model::traffic::bracketed;
use plimsoll_model::{Origin, Plan};
use plimsoll_sys::probe::listener::is_of_this_machine;
use plimsoll_sys::signal;
use plimsoll_traffic::import::host_in_ascii;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A URL taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub origin: Origin,
    /// Path and query.
    pub path: String,
    /// Value of an Authorization header for the user info in the URL.
    pub authorization: Option<String>,
}

impl Url {
    /// Reads a URL. The error never repeats user info or a query.
    pub fn read(url: &str) -> Result<Url, Failure> {
        let shown = shown(url);
        let bad = |why: &str| Failure::usage(format!("'{shown}' is not a URL plimsoll can use: {why}"));
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let whole = whole.split('#').next().unwrap_or_default();
        let (scheme, rest) = whole.split_once("://").unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        let default_port = default_port(&scheme)
            .ok_or_else(|| bad("write http://HOST:PORT/PATH or https://HOST:PORT/PATH (of gRPC: grpc://, grpcs://)"))?;
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user_info, authority) = match authority.rsplit_once('@') {
            Some((user_info, authority)) => (Some(user_info), authority),
            None => (None, authority),
        };
        // The colons of an IPv6 address stand in brackets.
        let (host, port_text) = match authority.rfind(']').map(|end| authority.split_at(end + 1)) {
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let host = host_in_ascii(host).map_err(bad)?;
        let port = match port_text {
            "" => default_port,
            port => port.parse().ok().filter(|p| *p > 0).ok_or_else(|| bad("its port is not 1 to 65535"))?,
        };
        // A name without a password has its colon all the same (RFC 7617, 2).
        let authorization = user_info.filter(|user_info| !user_info.is_empty()).map(|user_info| {
            let mut pair = percent_decoded(user_info);
            if !pair.contains(&b':') {
                pair.push(b':');
            }
            basic(pair)
        });
        let slash = if target.starts_with('/') { "" } else { "/" };
        let path = format!("{slash}{}", target_in_ascii(target));
        Ok(Url { origin: Origin { scheme, host, port }, path, authorization })
    }
}

/// Path and query with what cannot stand in them percent-encoded, as browsers do it (WHATWG URL, percent-encode sets).
fn target_in_ascii(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    let mut in_query = false;
    for byte in target.bytes() {
        in_query |= byte == b'?';
        let is_kept = byte.is_ascii_graphic() && !b"\"<>".contains(&byte) && (in_query || !b"`{}".contains(&byte));
        match is_kept {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Value of an Authorization header for a name and its password, with a colon between them.
pub fn basic(user_info: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(user_info))
}

/// What a field `Host` says: the port only where it is not the scheme's own.
pub fn host_of(origin: &Origin) -> String {
    let host = bracketed(&origin.host);
    match default_port(&origin.scheme) == Some(origin.port) {
        true => host.into_owned(),
        false => format!("{host}:{}", origin.port),
    }
}

/// The port of a URL without one.
pub fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "grpc" => Some(80),
        "https" | "grpcs" => Some(443),
        _ => None,
    }
}

/// A URL taken apart and resolved.
#[derive(Debug, Clone)]
pub struct Target {
    pub origin: Origin,
    /// Path and query.
    pub path: String,
    /// Value of an Authorization header for the user info in the URL.
    pub authorization: Option<String>,
    pub addresses: Vec<SocketAddr>,
}

impl Target {
    /// Reads a URL of what is fetched over plain HTTP, and resolves its host.
    pub fn resolve_plain(url: &str, allow_public: bool) -> Result<Target, Failure> {
        let Url { origin, path, authorization } = Url::read(url)?;
        let (addresses, _) = addresses(&origin.host, origin.port, allow_public)?;
        match origin.scheme != "http" {
            true => Err(Failure::usage(format!(
                "'{}': this is fetched over plain HTTP only: give an http:// address",
                shown(url)
            ))),
            false => Ok(Target { origin, path, authorization, addresses }),
        }
    }
}

/// What is asked of the server of a load besides the load: where the load itself goes, whatever its URL says, and with no look-up.
impl Target {
    /// The server of a load; it has the user's leave already.
    pub fn of_load(plan: &Plan, authorization: Option<String>) -> Result<Target, Failure> {
        let origin = plan.traffic.origin.clone();
        if origin.scheme != "http" {
            return Err(Failure::usage(format!(
                "'{origin}': this is fetched over plain HTTP only: give an http:// address of its own"
            )));
        }
        if plan.carriage.unix.is_some() || plan.carriage.addresses.is_empty() {
            return Err(Failure::usage(
                "a unix socket has no address to ask there: give an http:// address of its own",
            ));
        }
        Ok(Target { origin, path: "/".to_owned(), authorization, addresses: plan.carriage.addresses.clone() })
    }
}

/// The addresses of a host, and whether every one belongs to this machine.
pub fn addresses(name: &str, port: u16, allow_public: bool) -> Result<(Vec<SocketAddr>, bool), Failure> {
    // A bare word may be what was left of a header without quotation marks.
    let named = if name.contains([':', '.']) { name.into() } else { redact::word(name) };
    let mut addresses = addresses_of(name, port)
        .map_err(|e| Failure::start(format!("the host '{named}' has no address: {}", system_text(&e))))?;
    addresses.iter_mut().for_each(|address| address.set_ip(reached(address.ip())));
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    if let Some(public) = addresses.iter().find(|a| !is_private(&a.ip()))
        && !allow_public
    {
        let what = match is_metadata(&public.ip()) {
            true => "link-local, where clouds offer a machine its own keys",
            false => "neither loopback nor private",
        };
        let ip = public.ip().to_string();
        let is = if name == ip { "is".to_owned() } else { format!("is {ip}, which is") };
        return Err(Failure::usage(format!("'{named}' {is} {what}: add --allow-public if you may put load on it")));
    }
    let local = addresses.iter().all(|address| is_of_this_machine(*address));
    Ok((addresses, local))
}

/// All addresses of a name. The user may end it: the system waits long for servers of names that do not answer.
fn addresses_of(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::from((ip, port))]);
    }
    let (tell, told) = mpsc::channel();
    let name = name.to_owned();
    std::thread::spawn(move || tell.send((name.as_str(), port).to_socket_addrs().map(Iterator::collect)));
    loop {
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok(addresses) => return addresses,
            Err(RecvTimeoutError::Timeout) if !signal::interrupted() => {}
            Err(_) => return Err(io::Error::other("interrupted")),
        }
    }
}

/// Reads the value of --connect-to.
pub fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let bad = || {
        Failure::usage(format!("--connect-to: '{}' is not HOST:PORT, such as 10.0.0.5:8080 or [::1]:8080", shown(text)))
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    // Without brackets the last part of an IPv6 address would be taken for a port.
    let is_name = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    if bare.is_empty() || !bare.chars().all(is_name) || (bare.contains(':') && bare == host) {
        return Err(bad());
    }
    Ok((bare.to_owned(), port))
}

/// The URL as it may stand in a message: without any query value.
pub fn shown(url: &str) -> String {
    redact::url(url, Redact::All)
}

/// The URL as its user has typed it, for his own terminal: without user info and what bears the name of a secret.
pub fn typed(url: &str) -> String {
    let (before, query) = url.split_once('?').map_or((url, None), |(before, query)| (before, Some(query)));
    let (scheme, rest) =
        before.split_once("://").map_or(("", before), |(scheme, rest)| (&before[..scheme.len() + 3], rest));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut out = format!("{scheme}{}{path}", authority.rsplit('@').next().unwrap_or_default());
    for (number, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if number == 0 { '?' } else { '&' });
        match pair.split_once('=').filter(|(name, _)| redact::is_secret_name(name)) {
            Some((name, _)) => out.push_str(&format!("{name}={}", redact::REDACTED)),
            None => out.push_str(pair),
        }
    }
    out
}

/// The system's reason in its own words, without the error number.
pub fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str, allow_public: bool) -> Result<(Url, bool), Failure> {
        let url = Url::read(url)?;
        let (_, local) = addresses(&url.origin.host, url.origin.port, allow_public)?;
        Ok((url, local))
    }

    #[test]
    fn urls_resolve_or_say_why_not() {
        for (url, expect) in [
            ("http://127.0.0.1:8080/a?b=c", Ok(("127.0.0.1", 8080, "/a?b=c", None))),
            ("127.0.0.1:8080", Ok(("127.0.0.1", 8080, "/", None))),
            ("http://localhost", Ok(("localhost", 80, "/", None))),
            ("http://[::1]:81/x#frag", Ok(("::1", 81, "/x", None))),
            ("HTTP://127.0.0.1/", Ok(("127.0.0.1", 80, "/", None))),
            ("http://u:p%40@127.0.0.1/", Ok(("127.0.0.1", 80, "/", Some("Basic dTpwQA==")))),
            ("http://key7@127.0.0.1/", Ok(("127.0.0.1", 80, "/", Some("Basic a2V5Nzo=")))),
            ("http://@127.0.0.1/", Ok(("127.0.0.1", 80, "/", None))),
            ("http://127.0.0.1/\u{fc} b?q=\u{fc}&r={a}#x", Ok(("127.0.0.1", 80, "/%C3%BC%20b?q=%C3%BC&r={a}", None))),
            ("http://127.0.0.1/{a}/%7B", Ok(("127.0.0.1", 80, "/%7Ba%7D/%7B", None))),
            ("http://127.0.0.1?x=1", Ok(("127.0.0.1", 80, "/?x=1", None))),
            ("https://127.0.0.1/", Ok(("127.0.0.1", 443, "/", None))),
            ("ftp://127.0.0.1/", Err("http://HOST:PORT")),
            ("http://", Err("not a URL")),
            ("http://:80/", Err("not a URL")),
            ("http://127.0.0.1:0/", Err("port")),
            ("http://127.0.0.1:99999/", Err("port")),
            ("http://127.0.0.1:x/", Err("not a URL")),
            ("http://a b/", Err("not a URL")),
            ("", Err("not a URL")),
            ("http://93.184.216.34/", Err("--allow-public")),
            ("http://169.254.169.254/latest/meta-data", Err("--allow-public")),
            ("http://[::ffff:169.254.169.254]/", Err("--allow-public")),
            ("http://[::ffff:a9fe:a9fe]/", Err("--allow-public")),
            ("http://[fd00:ec2::254]/", Err("--allow-public")),
            ("http://2852039166/", Err("--allow-public")),
            ("http://0xA9FEA9FE/", Err("--allow-public")),
            ("http://0251.0376.0251.0376/", Err("--allow-public")),
            ("http://169.254.43518/", Err("--allow-public")),
            ("http://host.invalid/", Err("has no address")),
        ] {
            match (resolved(url, false), expect) {
                (Ok((t, local)), Ok((host, port, path, authorization))) => {
                    assert_eq!((t.origin.host.as_str(), t.origin.port, t.path.as_str()), (host, port, path), "{url}");
                    assert_eq!(t.authorization.as_deref(), authorization, "{url}");
                    assert!(local, "{url}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{url}: {error}"),
                (got, want) => panic!("{url}: {got:?}, expected {want:?}"),
            }
        }
        for (url, expect) in [
            ("http://0.0.0.0:8080/", "127.0.0.1:8080"),
            ("http://0:8080/", "127.0.0.1:8080"),
            ("http://[::]:8080/", "[::1]:8080"),
            ("http://[::ffff:0.0.0.0]:8080/", "127.0.0.1:8080"),
        ] {
            let target = Target::resolve_plain(url, false).expect(url);
            assert!(resolved(url, false).expect(url).1, "{url}");
            assert_eq!(target.addresses, [expect.parse().expect("an address")], "{url}");
        }
        assert!(!resolved("http://93.184.216.34/", true).expect("allowed").1);
        let tls = Target::resolve_plain("https://127.0.0.1/", false).expect_err("not plain");
        assert!(tls.to_string().contains("over plain HTTP"), "{tls}");
    }

    #[test]
    fn hosts_beyond_ascii_are_those_of_idna() {
        for (host, expect) in [
            ("b\u{fc}cher.example", Some("xn--bcher-kva.example")),
            ("B\u{dc}CHER.example", Some("xn--bcher-kva.example")),
            ("b%C3%BCcher.example", Some("xn--bcher-kva.example")),
            ("\u{4f8b}\u{3048}.jp", Some("xn--r8jz45g.jp")),
            ("Host_1.test", Some("Host_1.test")),
            ("[::1]", Some("::1")),
            ("[::g]", None),
            ("a b", None),
            ("a^b", None),
            ("\u{ad}", None),
            ("", None),
        ] {
            assert_eq!(host_in_ascii(host).ok().as_deref(), expect, "{host}");
        }
    }

    #[test]
    fn connections_can_go_elsewhere() {
        assert_eq!(host_and_port("[::1]:81").expect("a place"), ("::1".to_owned(), 81));
        assert_eq!(addresses("::1", 81, false).expect("this machine").0, ["[::1]:81".parse().expect("an address")]);
        for text in
            ["", "host", ":80", "h:0", "h:99999", "::1:80", "h:x", "[]:80", "http://u:s3cret@h:80", "u:s3cret@h:80"]
        {
            let error = host_and_port(text).expect_err(text);
            assert!(error.to_string().contains("--connect-to"), "{text}: {error}");
            assert!(!error.to_string().contains("s3cret"), "{text}: {error}");
        }
        for host in ["169.254.169.254", "93.184.216.34"] {
            let error = addresses(host, 80, false).expect_err("needs leave");
            assert!(error.to_string().contains("--allow-public"), "{host}: {error}");
        }
    }

    #[test]
    fn a_url_is_shown_as_typed_but_for_secrets_by_name() {
        for (url, expect) in [
            ("http://h:1/a?q=A7f-x&page=2", "http://h:1/a?q=A7f-x&page=2"),
            ("http://u:p@h/a/b@c", "http://h/a/b@c"),
            ("h/?token=x&a", "h/?token=[redacted]&a"),
        ] {
            assert_eq!(typed(url), expect);
        }
    }

    #[test]
    fn errors_and_reports_hide_secrets() {
        let error = Url::read("ftp://me:s3cret@h/?k=s3cret").expect_err("no such scheme");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
