//! The target: from a URL to addresses, with the rule that load goes nowhere by accident.

use crate::failure::Failure;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// A URL taken apart and resolved.
#[derive(Debug, Clone)]
pub struct Target {
    pub scheme: String,
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// Value of an Authorization header for the user info in the URL.
    pub authorization: Option<String>,
    pub addresses: Vec<SocketAddr>,
    /// Whether every address belongs to this machine.
    pub local: bool,
}

/// Whether an address is one that load may go to without being asked for: loopback, private or link-local.
fn is_private(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_private(&IpAddr::V4(v4)),
            None => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        },
    }
}

impl Target {
    /// Reads a URL and resolves its host. The error never repeats user info or a query.
    pub fn resolve(url: &str, allow_public: bool) -> Result<Target, Failure> {
        let shown = shown(url);
        let bad = |why: &str| Failure::usage(format!("'{shown}' is not a URL plimsoll can use: {why}"));
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let whole = whole.split('#').next().unwrap_or_default();
        let uri: http::Uri = whole.parse().map_err(|e: http::uri::InvalidUri| bad(&e.to_string()))?;
        let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => 80,
            "https" => return Err(bad("this version speaks plain HTTP only; write http://")),
            _ => return Err(bad("write http://HOST:PORT/PATH")),
        };
        let authority = uri.authority().ok_or_else(|| bad("it names no host"))?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port_text = authority.as_str().rsplit('@').next().unwrap_or_default();
        let port_text = port_text.strip_prefix(authority.host()).unwrap_or_default();
        let port = match port_text.strip_prefix(':') {
            None | Some("") => default_port,
            Some(port) => port.parse().ok().filter(|p| *p > 0).ok_or_else(|| bad("its port is not 1 to 65535"))?,
        };
        if host.is_empty() {
            return Err(bad("it names no host"));
        }
        let authorization = authority.as_str().rsplit_once('@').map(|(user_info, _)| {
            use base64::Engine;
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(percent_decoded(user_info)))
        });
        let path = uri.path_and_query().map_or("/", |p| p.as_str()).to_owned();
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let mut addresses: Vec<SocketAddr> = (host.as_str(), port)
            .to_socket_addrs()
            .map_err(|e| Failure::start(format!("the host '{host}' has no address: {}", system_text(&e))))?
            .collect();
        let mut seen = std::collections::HashSet::new();
        addresses.retain(|address| seen.insert(*address));
        if let Some(public) = addresses.iter().find(|a| !is_private(&a.ip()))
            && !allow_public
        {
            return Err(Failure::usage(format!(
                "'{host}' is {}, which is neither loopback nor private: add --allow-public if you may put load on it",
                public.ip()
            )));
        }
        let local = addresses.iter().all(|a| plimsoll_sys::tcp::is_local(&a.ip()));
        Ok(Target { scheme, host, port, path, authorization, addresses, local })
    }
}

/// The URL without what may be secret in it: user info and query values.
pub fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.split('#').next().unwrap_or_default();
    let host_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host_end);
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{authority}{}", plimsoll_model::plan::redact_target(path))
}

/// `%41` as `A`; what is no such escape stays as it is.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
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

    #[test]
    fn urls_resolve_or_say_why_not() {
        for (url, expect) in [
            ("http://127.0.0.1:8080/a?b=c", Ok(("127.0.0.1", 8080, "/a?b=c", None))),
            ("127.0.0.1:8080", Ok(("127.0.0.1", 8080, "/", None))),
            ("http://localhost", Ok(("localhost", 80, "/", None))),
            ("http://[::1]:81/x#frag", Ok(("::1", 81, "/x", None))),
            ("HTTP://127.0.0.1/", Ok(("127.0.0.1", 80, "/", None))),
            ("http://u:p%40@127.0.0.1/", Ok(("127.0.0.1", 80, "/", Some("Basic dTpwQA==")))),
            ("http://127.0.0.1?x=1", Ok(("127.0.0.1", 80, "/?x=1", None))),
            ("ftp://127.0.0.1/", Err("http://HOST:PORT")),
            ("https://127.0.0.1/", Err("plain HTTP only")),
            ("http://", Err("not a URL")),
            ("http://:80/", Err("not a URL")),
            ("http://127.0.0.1:0/", Err("port")),
            ("http://127.0.0.1:99999/", Err("port")),
            ("http://127.0.0.1:x/", Err("not a URL")),
            ("http://a b/", Err("not a URL")),
            ("", Err("not a URL")),
            ("http://93.184.216.34/", Err("--allow-public")),
            ("http://host.invalid/", Err("has no address")),
        ] {
            match (Target::resolve(url, false), expect) {
                (Ok(t), Ok((host, port, path, authorization))) => {
                    assert_eq!((t.host.as_str(), t.port, t.path.as_str()), (host, port, path), "{url}");
                    assert_eq!(t.authorization.as_deref(), authorization, "{url}");
                    assert!(t.local, "{url}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{url}: {error}"),
                (got, want) => panic!("{url}: {got:?}, expected {want:?}"),
            }
        }
        assert!(!Target::resolve("http://93.184.216.34/", true).expect("allowed").local);
    }

    #[test]
    fn errors_and_reports_hide_secrets() {
        assert_eq!(shown("http://me:s3cret@h:1/p?k=s3cret#f"), "http://h:1/p?k=[redacted]");
        assert_eq!(shown("me:s3cret@h/p"), "h/p");
        let error = Target::resolve("ftp://me:s3cret@h/?k=s3cret", false).expect_err("no such scheme");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
