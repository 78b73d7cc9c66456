//! Computes the target of a redirect.
//!
//! Only redirects within the origin (scheme, host and port) are followed, because the user gave no
//! permission to put load on another host. Not here: deciding whether redirects are followed, and
//! sending the requests.

use plimsoll_model::Origin;

/// The reason why a redirect is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectRefusal {
    /// The redirect leads to another scheme, host or port.
    OtherOrigin,
    /// The limit of redirects was reached.
    TooManyRedirects,
}

impl RedirectRefusal {
    /// Returns the reason in words, without secrets.
    pub fn reason(self) -> &'static str {
        match self {
            RedirectRefusal::OtherOrigin => {
                "the response redirects to another origin (scheme, host or port), which plimsoll does not follow"
            }
            RedirectRefusal::TooManyRedirects => "the request was redirected more often than the limit allows",
        }
    }
}

/// Returns whether an HTTP status is a redirect.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Returns whether a redirect changes the method of the following request to GET. As in other
/// clients, the statuses 301 to 303 change every method but GET and HEAD.
pub fn turns_into_get(status: u16, method: &str) -> bool {
    matches!(status, 301..=303) && !matches!(method, "GET" | "HEAD")
}

/// Returns the path and query to which a `Location` field redirects. The redirected request had the
/// path and query `target` at `origin`. Returns an error if the redirect leads to another origin.
pub fn redirect_target(location: &str, target: &str, origin: &Origin) -> Result<String, RedirectRefusal> {
    let location = location.split('#').next().unwrap_or_default().trim();
    let scheme = location.find(':').filter(|at| !location[..*at].contains(['/', '?']));
    let (authority, path) = match scheme {
        Some(at) => {
            if !location[..at].eq_ignore_ascii_case(&origin.scheme) {
                return Err(RedirectRefusal::OtherOrigin);
            }
            split_authority_and_path(location[at + 1..].strip_prefix("//").ok_or(RedirectRefusal::OtherOrigin)?)
        }
        None => match location.strip_prefix("//") {
            Some(rest) => split_authority_and_path(rest),
            None => (None, location),
        },
    };
    if authority.is_some_and(|authority| !is_authority_of_origin(authority, origin)) {
        return Err(RedirectRefusal::OtherOrigin);
    }
    let base = target.split('?').next().unwrap_or_default();
    let whole = match path.chars().next() {
        None if authority.is_some() => "/".to_owned(),
        // An empty `Location` means the target of the redirected request.
        None => target.to_owned(),
        Some('/') => path.to_owned(),
        Some('?') if authority.is_some() => format!("/{path}"),
        Some('?') => format!("{base}{path}"),
        Some(_) => format!("{}{path}", &base[..base.rfind('/').map_or(0, |at| at + 1)]),
    };
    let (path, query) = whole.split_at(whole.find('?').unwrap_or(whole.len()));
    let mut out = resolve_dot_segments(path);
    out.push_str(query);
    Ok(percent_encode_invalid(&out))
}

/// Splits the part of a URL after the scheme into host and port, and path and query.
fn split_authority_and_path(rest: &str) -> (Option<&str>, &str) {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    (Some(&rest[..end]), &rest[end..])
}

/// Returns whether the host and port in `authority` equal the host and port of the origin.
fn is_authority_of_origin(authority: &str, origin: &Origin) -> bool {
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, rest)| rest);
    let (host, port) = match host_and_port.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (host_and_port, Some(if origin.is_secure() { 443 } else { 80 })),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case(&origin.host) && port == Some(origin.port)
}

/// Resolves the `.` and `..` segments of a path.
fn resolve_dot_segments(path: &str) -> String {
    if !path.contains("/.") {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let ends_in_folder = path.ends_with("/.") || path.ends_with("/..");
    format!("/{}{}", parts.join("/"), if ends_in_folder && !parts.is_empty() { "/" } else { "" })
}

/// Percent-encodes characters that are invalid in a request line.
fn percent_encode_invalid(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.bytes() {
        match byte.is_ascii_graphic() && !b"\"<>".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    fn test_origin() -> Origin {
        Origin { scheme: "http".into(), host: "shop.test".into(), port: 8080 }
    }

    #[test]
    fn a_location_gives_a_path_of_the_same_origin() {
        for (location, expect) in [
            ("/home", Some("/home")),
            ("/home?a=1#top", Some("/home?a=1")),
            ("http://shop.test:8080/home", Some("/home")),
            ("HTTP://Shop.Test:8080", Some("/")),
            ("http://shop.test:8080?x", Some("/?x")),
            ("//shop.test:8080/b", Some("/b")),
            ("next", Some("/a/next")),
            ("../next/./x", Some("/next/x")),
            ("../../..", Some("/")),
            ("?page=2", Some("/a/b?page=2")),
            ("", Some("/a/b?q=1")),
            ("/a b/\u{e9}", Some("/a%20b/%C3%A9")),
            ("/to?url=http://other/", Some("/to?url=http://other/")),
            ("http://shop.test/home", None),
            ("https://shop.test:8080/home", None),
            ("http://other:8080/", None),
            ("//other/", None),
            ("mailto:a@b", None),
        ] {
            let target = redirect_target(location, "/a/b?q=1", &test_origin());
            assert_eq!(target.ok().as_deref(), expect, "{location}");
        }
        let v6 = Origin { scheme: "https".into(), host: "::1".into(), port: 443 };
        assert_eq!(redirect_target("https://[::1]/x", "/", &v6), Ok("/x".to_owned()));
        assert_eq!(redirect_target("https://[::1]:8443/x", "/", &v6), Err(RedirectRefusal::OtherOrigin));
    }

    #[test]
    fn redirected_methods_become_get_as_in_browsers() {
        for (status, method, expect) in
            [(302, "POST", true), (303, "PUT", true), (307, "POST", false), (308, "POST", false), (302, "HEAD", false)]
        {
            assert_eq!(turns_into_get(status, method), expect, "{status} {method}");
        }
        let redirects: Vec<u16> = (100..600).filter(|status| is_redirect(*status)).collect();
        assert_eq!(redirects, [301, 302, 303, 307, 308]);
    }

    #[test]
    fn any_location_gives_a_path_or_a_refusal() {
        const LOCATION_PIECES: [&str; 16] =
            ["/", "..", ".", "?", "#", ":", "//", "http:", "shop.test", "8080", "a", " ", "\u{e9}", "@", "[", "\n"];
        let mut rng = Rng::new(7);
        let mut text = |count: u64| -> String {
            (0..rng.uniform_below(count))
                .map(|_| LOCATION_PIECES[rng.uniform_below(LOCATION_PIECES.len() as u64) as usize])
                .collect()
        };
        for _ in 0..20_000 {
            let (location, target) = (text(9), format!("/{}", text(4)));
            if let Ok(target) = redirect_target(&location, &target, &test_origin()) {
                assert!(target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic()), "{location:?}");
            }
        }
    }
}
