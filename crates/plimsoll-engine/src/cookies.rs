//! The cookies of one user for one host, stored as a browser stores them ([RFC
//! 6265](https://www.rfc-editor.org/rfc/rfc6265)). Responses set cookies, and requests with a
//! matching path send the cookies. Expired cookies are not sent.
//!
//! Not here: cookies for other hosts, since a load has one host; cookies that scripts set.

/// The maximum number of cookies of one user. RFC 6265 asks browsers to support at least 50 cookies
/// per domain.
const COOKIES_MAX: usize = 50;
/// The maximum length of a cookie in bytes. RFC 6265 asks browsers to support cookies of at least
/// 4096 bytes.
const COOKIE_BYTES_MAX: usize = 4096;

/// The cookies of one user.
#[derive(Debug, Clone, Default)]
pub struct CookieJar {
    /// The cookies, in the order of their creation.
    cookies: Vec<Cookie>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    path: String,
    /// The time at which the cookie expires, s since 1970. `None`: the cookie ends with the user's
    /// session.
    expires_s: Option<u64>,
    https_only: bool,
}

/// The request whose response sets cookies, or the request that sends cookies.
#[derive(Debug, Clone, Copy)]
pub struct CookieScope<'a> {
    /// The host, without its port.
    pub host: &'a str,
    /// The path and query of the request.
    pub target: &'a str,
    /// Whether the request uses TLS.
    pub https: bool,
    /// The current time, s since 1970.
    pub now_s: u64,
}

impl CookieScope<'_> {
    fn request_path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }
}

impl CookieJar {
    /// Stores the cookie in the value of a `Set-Cookie` field. Invalid cookies and cookies for
    /// other hosts are ignored.
    pub fn store_cookie(&mut self, field: &[u8], scope: CookieScope) {
        let Ok(field) = std::str::from_utf8(field) else { return };
        let mut parts = field.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim());
        let is_plain = |text: &str| !text.contains(|c: char| c.is_control());
        if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX || !is_plain(name) || !is_plain(value) {
            return;
        }
        let mut cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            path: default_path(scope.request_path()).to_owned(),
            expires_s: None,
            https_only: false,
        };
        let mut max_age_s: Option<i64> = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "secure" => cookie.https_only = true,
                "expires" => cookie.expires_s = parse_cookie_date_s(value).or(cookie.expires_s),
                "max-age" => max_age_s = value.parse().ok().or(max_age_s),
                "domain" => {
                    let domain = value.trim_start_matches('.').to_ascii_lowercase();
                    let host = scope.host.to_ascii_lowercase();
                    let is_within =
                        host.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                    if !domain.is_empty() && !is_within {
                        return;
                    }
                }
                _ => {}
            }
        }
        if let Some(seconds) = max_age_s {
            cookie.expires_s = Some(scope.now_s.saturating_add_signed(seconds.max(0)));
        }
        let known = self.cookies.iter().position(|it| it.name == cookie.name && it.path == cookie.path);
        match (known, cookie.expires_s.is_some_and(|until_s| until_s <= scope.now_s)) {
            (Some(at), true) => _ = self.cookies.remove(at),
            (Some(at), false) => self.cookies[at] = cookie,
            (None, true) => {}
            (None, false) => {
                if self.cookies.len() == COOKIES_MAX {
                    self.cookies.remove(0);
                }
                self.cookies.push(cookie);
            }
        }
    }

    /// Writes the value of a request's `Cookie` field. Cookies with longer paths come first.
    /// Without a matching cookie nothing is written.
    pub fn write(&self, scope: CookieScope, out: &mut String) {
        let path = scope.request_path();
        let is_sent = |cookie: &&Cookie| {
            path_matches(&cookie.path, path)
                && (scope.https || !cookie.https_only)
                && cookie.expires_s.is_none_or(|until_s| until_s > scope.now_s)
        };
        // A user has few cookies, so each round searches all cookies for the longest path that is
        // shorter than the path of the previous round.
        let mut longest = usize::MAX;
        let mut first = true;
        while let Some(length) =
            self.cookies.iter().filter(is_sent).map(|cookie| cookie.path.len()).filter(|length| *length < longest).max()
        {
            longest = length;
            for cookie in self.cookies.iter().filter(is_sent).filter(|cookie| cookie.path.len() == length) {
                if !std::mem::take(&mut first) {
                    out.push_str("; ");
                }
                out.push_str(&cookie.name);
                out.push('=');
                out.push_str(&cookie.value);
            }
        }
    }

    /// Returns whether the user has no cookies.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }
}

/// Returns the default path of a cookie: the request's path up to the last `/` (RFC 6265, 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(at) if at > 0 && path.starts_with('/') => &path[..at],
        _ => "/",
    }
}

/// Returns whether a cookie's path matches a request's path (RFC 6265, 5.1.4).
fn path_matches(cookie: &str, path: &str) -> bool {
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

/// Parses a cookie date (RFC 6265, 5.1.1) to s since 1970. A date before 1970 becomes the first day
/// of 1970.
fn parse_cookie_date_s(text: &str) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':')).filter(|token| !token.is_empty()) {
        let mut clock = token.split(':').map(|part| part.parse::<u64>().ok());
        let named = token.get(..3).and_then(|name| {
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
                .iter()
                .position(|known| name.eq_ignore_ascii_case(known))
        });
        match (token.contains(':'), token.parse::<u64>(), named) {
            (true, ..) if time.is_none() => {
                let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
                time = (hour < 24 && minute < 60 && second < 60).then_some(hour * 3_600 + minute * 60 + second);
            }
            (false, Ok(number @ 1..=31), _) if day.is_none() => day = Some(number),
            (false, Ok(number @ 70..=99), _) if year.is_none() => year = Some(number + 1900),
            (false, Ok(number @ 0..=69), _) if year.is_none() => year = Some(number + 2000),
            (false, Ok(number @ 1601..=9999), _) if year.is_none() => year = Some(number),
            (false, Err(_), Some(number)) if month.is_none() => month = Some(number as u64 + 1),
            _ => {}
        }
    }
    let (day, month, year): (u64, u64, u64) = (day?, month?, year?);
    Some(plimsoll_model::calendar::day_of_date(year, month, day) * 86_400 + time?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie_scope(target: &str) -> CookieScope<'_> {
        CookieScope { host: "shop.example", target, https: false, now_s: 1_000_000_000 }
    }

    fn cookie_header(jar: &CookieJar, scope: CookieScope) -> String {
        let mut out = String::new();
        jar.write(scope, &mut out);
        out
    }

    #[test]
    fn cookies_are_sent_as_by_a_browser() {
        let mut jar = CookieJar::default();
        for field in [
            "sid=a; Path=/; HttpOnly",
            "cart=\"7\"; path=/shop",
            "here=x",
            "safe=s; Secure; Path=/",
            "old=o; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "brief=b; Max-Age=60; Path=/",
            "other=o; Domain=elsewhere.example",
            "mine=m; Domain=.Example; Path=/",
            "none",
            "=x",
            "bad=\u{1}; Path=/",
        ] {
            jar.store_cookie(field.as_bytes(), cookie_scope("/shop/items/7?x=/"));
        }
        let all = "here=x; cart=\"7\"; sid=a; brief=b; mine=m";
        assert_eq!(cookie_header(&jar, cookie_scope("/shop/items?y")), all);
        assert_eq!(cookie_header(&jar, cookie_scope("/shopping")), "sid=a; brief=b; mine=m");
        assert_eq!(
            cookie_header(&jar, CookieScope { https: true, ..cookie_scope("/") }),
            "sid=a; safe=s; brief=b; mine=m"
        );
        assert_eq!(cookie_header(&jar, CookieScope { now_s: 1_000_000_060, ..cookie_scope("/") }), "sid=a; mine=m");
        // The cookie `sid` is replaced in place, and the cookie `mine` is removed.
        jar.store_cookie(b"sid=b; Path=/", cookie_scope("/"));
        jar.store_cookie(b"mine=; Path=/; Max-Age=0", cookie_scope("/"));
        assert_eq!(cookie_header(&jar, cookie_scope("/")), "sid=b; brief=b");
        for number in 0..200 {
            jar.store_cookie(format!("n{number}=1").as_bytes(), cookie_scope("/"));
        }
        assert_eq!(jar.cookies.len(), COOKIES_MAX);
    }

    #[test]
    fn any_cookie_bytes_are_stored_or_ignored_without_a_panic() {
        let mut rng = plimsoll_model::rng::Rng::new(7);
        let words = [
            "a=b",
            ";",
            "=",
            " ",
            "path=/",
            "Max-Age=",
            "-9",
            "99999999999999999999",
            "expires=",
            "Mon, ",
            "1:2",
            ":",
            "\u{e9}",
            "\u{0}",
            "domain=.",
            "Secure",
        ];
        let mut jar = CookieJar::default();
        for _ in 0..20_000 {
            let field: String =
                (0..rng.uniform_below(9)).map(|_| words[rng.uniform_below(words.len() as u64) as usize]).collect();
            jar.store_cookie(field.as_bytes(), cookie_scope("/a/b"));
            let out = cookie_header(&jar, cookie_scope("/a/b/c"));
            assert!(!out.contains(char::is_control) && jar.cookies.len() <= COOKIES_MAX, "{out:?}");
        }
    }

    #[test]
    fn cookie_dates_of_servers_are_parsed() {
        for (text, expect) in [
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(1_445_412_480)),
            ("Wednesday, 21-Oct-15 07:28:00 GMT", Some(1_445_412_480)),
            ("Wed Oct 21 07:28:00 2015", Some(1_445_412_480)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Mon, 29 Feb 2016 00:00:01 GMT", Some(1_456_704_001)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
            ("soon", None),
            ("21 Oct 2015", None),
        ] {
            assert_eq!(parse_cookie_date_s(text), expect, "{text}");
        }
    }
}
