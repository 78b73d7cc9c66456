//! Access control ([`Access`]). A page in another tab can send requests here, and a foreign name
//! can resolve to this server (DNS rebinding). So the name is checked, changes need a token and an
//! origin, and no response runs inside another page.
//!
//! Not here: the responses.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::net::SocketAddr;

/// What a page may load and run: nothing from elsewhere, and no inline script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Headers of every answer.
pub fn headers() -> [(HeaderName, HeaderValue); 6] {
    [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        // Not `no-referrer`: with it a browser sends `Origin: null` with the forms of these pages,
        // too.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ]
}

/// The access rules.
#[derive(Debug, Clone)]
pub struct Access {
    /// Names of this server, with its port, as a Host header has them.
    names: Vec<String>,
    /// The secret that acting needs.
    token: String,
    /// Whether reading needs it, too.
    token_to_read: bool,
    /// Whether the pages are served over TLS.
    is_secure: bool,
    port: u16,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRefusal {
    /// It names another server.
    Host,
    /// The request comes from a page of another server.
    Origin,
    /// It has no token, or a wrong one.
    Token,
}

impl AccessRefusal {
    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            AccessRefusal::Host => StatusCode::MISDIRECTED_REQUEST,
            AccessRefusal::Origin => StatusCode::FORBIDDEN,
            AccessRefusal::Token => StatusCode::UNAUTHORIZED,
        }
    }

    /// A sentence for people.
    pub fn text(self) -> &'static str {
        match self {
            AccessRefusal::Host => {
                "this server has another name: open the link that plimsoll serve printed, or start it with --name"
            }
            AccessRefusal::Origin => "the request comes from a page of another server: use the pages of this one",
            AccessRefusal::Token => "this needs the token: open the link that plimsoll serve printed",
        }
    }
}

impl Access {
    /// The rules of a server at this address. `name`: another name of the server.
    pub fn new(listens: SocketAddr, name: Option<&str>, token: String) -> Access {
        let port = listens.port();
        let mut names: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")).into();
        names.push(listens.to_string());
        names.extend(name.map(|name| if name.contains(':') { name.to_owned() } else { format!("{name}:{port}") }));
        Access { names, token, token_to_read: !listens.ip().is_loopback(), is_secure: false, port }
    }

    /// The same over TLS: the cookie is sent over TLS only.
    pub fn over_tls(self) -> Access {
        Access { is_secure: true, ..self }
    }

    /// Whether `given` is the token; as long as it takes tells nothing of where it differs.
    pub fn is_token(&self, given: &str) -> bool {
        let (token, given) = (self.token.as_bytes(), given.as_bytes());
        let differs = token.iter().zip(given).fold(0, |differs, (a, b)| differs | (a ^ b));
        token.len() == given.len() && differs == 0
    }

    /// The cookie that holds the token. Cookies are of a host, not of a port: its name has the
    /// port.
    pub fn cookie(&self) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/{secure}", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("plimsoll_{}", self.port)
    }

    /// Whether the request shows the token, in the cookie or as `Authorization: Bearer`.
    pub fn has_token(&self, headers: &HeaderMap) -> bool {
        self.has_bearer(headers) || {
            let name = self.cookie_name();
            let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
            let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
            pairs.any(|(key, value)| key == name && self.is_token(value))
        }
    }

    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|token| self.is_token(token.trim()))
    }

    /// Whether a request may be answered. `is_login`: it brings the token.
    pub fn admit(&self, method: &Method, headers: &HeaderMap, is_login: bool) -> Result<(), AccessRefusal> {
        let mut hosts = headers.get_all(header::HOST).into_iter();
        let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
            (Some(host), None) => host,
            _ => return Err(AccessRefusal::Host),
        };
        if !self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
            return Err(AccessRefusal::Host);
        }
        let reads = matches!(*method, Method::GET | Method::HEAD);
        // A page cannot send this header elsewhere without being asked first, and is never allowed
        // to.
        if !reads && !self.has_bearer(headers) {
            let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
            let own =
                |origin: &str| origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) == Some(host);
            if !origin.is_some_and(own) {
                return Err(AccessRefusal::Origin);
            }
        }
        match (!reads || self.token_to_read) && !is_login && !self.has_token(headers) {
            true => Err(AccessRefusal::Token),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: (&str, &str) = ("host", "127.0.0.1:8080");
    const OWN_ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:8080");
    const COOKIE: (&str, &str) = ("cookie", "a=b; plimsoll_8080=s3cret");

    fn admit(listens: &str, method: Method, headers: &[(&'static str, &str)]) -> Result<(), AccessRefusal> {
        let access = Access::new(listens.parse().expect("an address"), Some("box"), "s3cret".to_owned());
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| _ = map.append(*name, value.parse().expect("a value")));
        access.admit(&method, &map, false)
    }

    #[test]
    fn who_reads_needs_the_name_and_who_acts_needs_all() {
        let here = "127.0.0.1:8080";
        for (method, headers, expect) in [
            (Method::GET, &[OWN][..], Ok(())),
            (Method::GET, &[("host", "localhost:8080")], Ok(())),
            (Method::GET, &[("host", "box:8080")], Ok(())),
            (Method::GET, &[("host", "evil.test:8080")], Err(AccessRefusal::Host)),
            (Method::GET, &[("host", "127.0.0.1:81")], Err(AccessRefusal::Host)),
            (Method::GET, &[OWN, OWN], Err(AccessRefusal::Host)),
            (Method::GET, &[], Err(AccessRefusal::Host)),
            (Method::POST, &[OWN, OWN_ORIGIN, COOKIE], Ok(())),
            (Method::POST, &[OWN, COOKIE], Err(AccessRefusal::Origin)),
            (Method::POST, &[OWN, ("origin", "null"), COOKIE], Err(AccessRefusal::Origin)),
            (Method::POST, &[OWN, ("origin", "http://evil.test"), COOKIE], Err(AccessRefusal::Origin)),
            (Method::POST, &[OWN, ("origin", "http://127.0.0.1:81"), COOKIE], Err(AccessRefusal::Origin)),
            (Method::POST, &[OWN, OWN_ORIGIN], Err(AccessRefusal::Token)),
            (Method::POST, &[OWN, OWN_ORIGIN, ("cookie", "plimsoll_8080=s3cre")], Err(AccessRefusal::Token)),
            (Method::POST, &[OWN, OWN_ORIGIN, ("cookie", "plimsoll_8080=wrong!")], Err(AccessRefusal::Token)),
            (Method::DELETE, &[OWN, OWN_ORIGIN], Err(AccessRefusal::Token)),
            (Method::POST, &[OWN, ("authorization", "Bearer s3cret")], Ok(())),
            (Method::POST, &[OWN, ("authorization", "Bearer wrong")], Err(AccessRefusal::Origin)),
            (Method::POST, &[("host", "evil.test"), ("authorization", "Bearer s3cret")], Err(AccessRefusal::Host)),
        ] {
            assert_eq!(admit(here, method.clone(), headers), expect, "{method} {headers:?}");
        }
        // Outside of this machine reading needs the token, too.
        let there = "10.0.0.5:8080";
        assert_eq!(admit(there, Method::GET, &[("host", there)]), Err(AccessRefusal::Token));
        assert_eq!(admit(there, Method::GET, &[("host", there), COOKIE]), Ok(()));
    }
}
