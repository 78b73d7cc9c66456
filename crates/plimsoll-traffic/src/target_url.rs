//! Parses the URL of a target into its origin and path, and formats the URL without secrets.
//!
//! Not here: name resolution.

use crate::import::host_to_ascii;
use plimsoll_model::redact::{self, RedactionLevel, percent_decode};
use plimsoll_model::traffic::url_host;
use plimsoll_model::{Failure, Origin};

/// A parsed URL of a target server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The scheme, host and port of the server.
    pub origin: Origin,
    /// The path and query, percent-encoded; the path begins with `/`.
    pub path: String,
    /// The value of the `Authorization` header field, made from the user info (`name:password@`) in
    /// the URL. `None` if the URL has no user info.
    pub authorization: Option<String>,
}

impl Url {
    /// Parses a URL; a URL without a scheme is read as `http://`. An error message never repeats
    /// the user info or the query, because both may contain secrets.
    pub fn parse(url: &str) -> Result<Url, Failure> {
        let redacted_url = redact_query(url);
        let bad =
            |reason: &str| Failure::usage(format!("'{redacted_url}' is not a URL that plimsoll can use: {reason}"));
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let whole = whole.split('#').next().unwrap_or_default();
        let (scheme, rest) = whole.split_once("://").unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        let default_port = default_port(&scheme).ok_or_else(|| {
            bad("write the URL as http://HOST:PORT/PATH or https://HOST:PORT/PATH (for gRPC: grpc://, grpcs://)")
        })?;
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user_info, authority) = match authority.rsplit_once('@') {
            Some((user_info, authority)) => (Some(user_info), authority),
            None => (None, authority),
        };
        // An IPv6 address is in brackets, so the colon before the port is the first colon after
        // `]`.
        let (host, port_text) = match authority.rfind(']').map(|end| authority.split_at(end + 1)) {
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let host = host_to_ascii(host).map_err(bad)?;
        let port = match port_text {
            "" => default_port,
            port => port
                .parse()
                .ok()
                .filter(|p| *p > 0)
                .ok_or_else(|| bad("the port of the URL is not between 1 and 65535"))?,
        };
        // Credentials for basic authentication need a colon after the user name, even without a
        // password (RFC 7617, section 2).
        let authorization = user_info.filter(|user_info| !user_info.is_empty()).map(|user_info| {
            let mut pair = percent_decode(user_info);
            if !pair.contains(&b':') {
                pair.push(b':');
            }
            basic_authorization(pair)
        });
        let slash = if target.starts_with('/') { "" } else { "/" };
        let path = format!("{slash}{}", percent_encode_target(target));
        Ok(Url { origin: Origin { scheme, host, port }, path, authorization })
    }
}

/// Percent-encodes the characters of a path and query that are invalid there, as browsers do
/// (WHATWG URL, percent-encode sets).
pub(crate) fn percent_encode_target(target: &str) -> String {
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

/// Returns the value of an `Authorization` header field for basic authentication with
/// `name:password`.
pub fn basic_authorization(user_info: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(user_info))
}

/// Returns the value of a `Host` header field: the host, and the port only if the port is not the
/// default of the scheme.
pub fn host_header_value(origin: &Origin) -> String {
    let host = url_host(&origin.host);
    match default_port(&origin.scheme) == Some(origin.port) {
        true => host.into_owned(),
        false => format!("{host}:{}", origin.port),
    }
}

/// Returns the default port of a scheme; `None` for an unknown scheme.
pub fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "grpc" => Some(80),
        "https" | "grpcs" => Some(443),
        _ => None,
    }
}

/// Returns a URL that is safe in messages: the user info and every query value are redacted.
pub fn redact_query(url: &str) -> String {
    redact::redact_url(url, RedactionLevel::All)
}

/// Returns the URL for the terminal of the user who typed the URL. The user info is removed, and
/// query values whose names denote secrets are redacted.
pub fn redact_for_terminal(url: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_ascii_hosts_follow_idna() {
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
            assert_eq!(host_to_ascii(host).ok().as_deref(), expect, "{host}");
        }
    }

    #[test]
    fn invalid_url_characters_are_percent_encoded() {
        for (target, expect) in [
            ("/a b/\"<>`{}|^", "/a%20b/%22%3C%3E%60%7B%7D|^"),
            ("/\u{fc}?q=\"<>`{}|^\u{fc}", "/%C3%BC?q=%22%3C%3E`{}|^%C3%BC"),
            ("/%20%zz", "/%20%zz"),
        ] {
            assert_eq!(percent_encode_target(target), expect);
        }
    }

    #[test]
    fn a_url_is_shown_as_typed_except_named_secrets() {
        for (url, expect) in [
            ("http://h:1/a?q=A7f-x&page=2", "http://h:1/a?q=A7f-x&page=2"),
            ("http://u:p@h/a/b@c", "http://h/a/b@c"),
            ("h/?token=x&a", "h/?token=[redacted]&a"),
        ] {
            assert_eq!(redact_for_terminal(url), expect);
        }
    }

    #[test]
    fn errors_and_reports_hide_secrets() {
        let error = Url::parse("ftp://me:s3cret@h/?k=s3cret").expect_err("no such scheme");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
