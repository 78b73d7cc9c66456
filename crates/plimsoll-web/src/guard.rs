//! Protects the server from requests of foreign web pages ([`AccessRules`]). A page in another tab
//! of the browser can send requests to this server. A foreign host name can resolve to this
//! server's address (DNS rebinding). Therefore each request needs a Host header that names this
//! server. A request that changes something also needs the secret token and, from a browser, the
//! origin of this server. No response can be embedded in another page.
//!
//! Not here: the content of responses.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::net::SocketAddr;

/// The content security policy: a page loads nothing from other servers and runs no inline script.
const CONTENT_SECURITY_DIRECTIVES: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Returns the security headers that every response has.
pub fn security_headers() -> [(HeaderName, HeaderValue); 6] {
    [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_DIRECTIVES)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        // The `Referrer-Policy` must not be `no-referrer`. With `no-referrer`, browsers would send
        // `Origin: null` when a user submits a form of these pages.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ]
}

/// The access rules of one server: its names, its secret token, and the requests that need the
/// token.
#[derive(Debug, Clone)]
pub struct AccessRules {
    /// The accepted values of the Host header: the names of this server, each with its port.
    names: Vec<String>,
    /// The secret token that a request needs to change something.
    token: String,
    /// Whether a request needs the token even for reading: true if the server listens on an address
    /// other than loopback.
    needs_token_to_read: bool,
    /// Whether the pages are served over TLS. If the pages are served over TLS, browsers send the
    /// cookie with the token only over TLS.
    is_secure: bool,
    port: u16,
}

/// The reason why the server refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The Host header names another server, or the request does not have exactly one Host header.
    Host,
    /// The request was sent by a page of another server, according to its Origin header.
    Origin,
    /// The request has no token or a wrong token.
    Token,
}

impl AccessRefusal {
    /// Returns the HTTP status of the response to a refused request.
    pub fn status(self) -> StatusCode {
        match self {
            AccessRefusal::Host => StatusCode::MISDIRECTED_REQUEST,
            AccessRefusal::Origin => StatusCode::FORBIDDEN,
            AccessRefusal::Token => StatusCode::UNAUTHORIZED,
        }
    }

    /// Returns a sentence for the user that states the refusal and the remedy.
    pub fn text(self) -> &'static str {
        match self {
            AccessRefusal::Host => {
                "the request's Host header is not a name of this server: open the link that plimsoll serve printed, \
                 or start plimsoll serve with --name"
            }
            AccessRefusal::Origin => "the request comes from a page of another server: use the pages of this server",
            AccessRefusal::Token => "this action needs the token: open the link that plimsoll serve printed",
        }
    }
}

impl AccessRules {
    /// Creates the access rules of a server that listens on the address `listens`. `name` is an
    /// additional host name of the server.
    pub fn new(listens: SocketAddr, name: Option<&str>, token: String) -> AccessRules {
        let port = listens.port();
        let mut names: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")).into();
        names.push(listens.to_string());
        names.extend(name.map(|name| if name.contains(':') { name.to_owned() } else { format!("{name}:{port}") }));
        AccessRules { names, token, needs_token_to_read: !listens.ip().is_loopback(), is_secure: false, port }
    }

    /// Returns the access rules for a server with TLS: browsers may send the cookie with the token
    /// only over TLS.
    pub fn with_tls(self) -> AccessRules {
        AccessRules { is_secure: true, ..self }
    }

    /// Returns whether `candidate` is the token. The time of the comparison does not reveal the
    /// position of the first difference.
    pub fn matches_token(&self, candidate: &str) -> bool {
        let (token, given) = (self.token.as_bytes(), candidate.as_bytes());
        let differs = token.iter().zip(given).fold(0, |differs, (a, b)| differs | (a ^ b));
        token.len() == given.len() && differs == 0
    }

    /// Returns the value of the `Set-Cookie` header that gives a browser the token. Browsers share
    /// cookies between the ports of a host, so the name of the cookie contains the port.
    pub fn set_cookie_value(&self) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/{secure}", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("plimsoll_{}", self.port)
    }

    /// Returns whether the request has the token, in the cookie or in the header
    /// `Authorization: Bearer`.
    pub fn has_token(&self, headers: &HeaderMap) -> bool {
        self.has_bearer(headers) || {
            let name = self.cookie_name();
            let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
            let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
            pairs.any(|(key, value)| key == name && self.matches_token(value))
        }
    }

    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|token| self.matches_token(token.trim()))
    }

    /// Checks whether a request is allowed. `is_login` says whether the request is for `/login`,
    /// which checks the token itself.
    pub fn check_request(&self, method: &Method, headers: &HeaderMap, is_login: bool) -> Result<(), AccessRefusal> {
        let mut hosts = headers.get_all(header::HOST).into_iter();
        let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
            (Some(host), None) => host,
            _ => return Err(AccessRefusal::Host),
        };
        if !self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
            return Err(AccessRefusal::Host);
        }
        let reads = matches!(*method, Method::GET | Method::HEAD);
        // A page of another server cannot send a bearer token. Before a request with an
        // `Authorization` header, the browser would ask this server for permission (CORS), which
        // this server never gives.
        if !reads && !self.has_bearer(headers) {
            let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
            let own =
                |origin: &str| origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) == Some(host);
            if !origin.is_some_and(own) {
                return Err(AccessRefusal::Origin);
            }
        }
        match (!reads || self.needs_token_to_read) && !is_login && !self.has_token(headers) {
            true => Err(AccessRefusal::Token),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN_HOST_HEADER: (&str, &str) = ("host", "127.0.0.1:8080");
    const OWN_ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:8080");
    const TOKEN_COOKIE_HEADER: (&str, &str) = ("cookie", "a=b; plimsoll_8080=s3cret");

    fn request_access(listens: &str, method: Method, headers: &[(&'static str, &str)]) -> Result<(), AccessRefusal> {
        let access = AccessRules::new(listens.parse().expect("an address"), Some("box"), "s3cret".to_owned());
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| _ = map.append(*name, value.parse().expect("a value")));
        access.check_request(&method, &map, false)
    }

    #[test]
    fn reads_need_the_host_name_and_actions_need_all_checks() {
        let here = "127.0.0.1:8080";
        for (method, headers, expect) in [
            (Method::GET, &[OWN_HOST_HEADER][..], Ok(())),
            (Method::GET, &[("host", "localhost:8080")], Ok(())),
            (Method::GET, &[("host", "box:8080")], Ok(())),
            (Method::GET, &[("host", "evil.test:8080")], Err(AccessRefusal::Host)),
            (Method::GET, &[("host", "127.0.0.1:81")], Err(AccessRefusal::Host)),
            (Method::GET, &[OWN_HOST_HEADER, OWN_HOST_HEADER], Err(AccessRefusal::Host)),
            (Method::GET, &[], Err(AccessRefusal::Host)),
            (Method::POST, &[OWN_HOST_HEADER, OWN_ORIGIN, TOKEN_COOKIE_HEADER], Ok(())),
            (Method::POST, &[OWN_HOST_HEADER, TOKEN_COOKIE_HEADER], Err(AccessRefusal::Origin)),
            (Method::POST, &[OWN_HOST_HEADER, ("origin", "null"), TOKEN_COOKIE_HEADER], Err(AccessRefusal::Origin)),
            (
                Method::POST,
                &[OWN_HOST_HEADER, ("origin", "http://evil.test"), TOKEN_COOKIE_HEADER],
                Err(AccessRefusal::Origin),
            ),
            (
                Method::POST,
                &[OWN_HOST_HEADER, ("origin", "http://127.0.0.1:81"), TOKEN_COOKIE_HEADER],
                Err(AccessRefusal::Origin),
            ),
            (Method::POST, &[OWN_HOST_HEADER, OWN_ORIGIN], Err(AccessRefusal::Token)),
            (
                Method::POST,
                &[OWN_HOST_HEADER, OWN_ORIGIN, ("cookie", "plimsoll_8080=s3cre")],
                Err(AccessRefusal::Token),
            ),
            (
                Method::POST,
                &[OWN_HOST_HEADER, OWN_ORIGIN, ("cookie", "plimsoll_8080=wrong!")],
                Err(AccessRefusal::Token),
            ),
            (Method::DELETE, &[OWN_HOST_HEADER, OWN_ORIGIN], Err(AccessRefusal::Token)),
            (Method::POST, &[OWN_HOST_HEADER, ("authorization", "Bearer s3cret")], Ok(())),
            (Method::POST, &[OWN_HOST_HEADER, ("authorization", "Bearer wrong")], Err(AccessRefusal::Origin)),
            (Method::POST, &[("host", "evil.test"), ("authorization", "Bearer s3cret")], Err(AccessRefusal::Host)),
        ] {
            assert_eq!(request_access(here, method.clone(), headers), expect, "{method} {headers:?}");
        }
        // A server that other machines can reach requires the token for reading, too.
        let there = "10.0.0.5:8080";
        assert_eq!(request_access(there, Method::GET, &[("host", there)]), Err(AccessRefusal::Token));
        assert_eq!(request_access(there, Method::GET, &[("host", there), TOKEN_COOKIE_HEADER]), Ok(()));
    }
}
