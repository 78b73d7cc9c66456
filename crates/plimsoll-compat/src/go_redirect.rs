//! Follows redirects as Go's HTTP client does, for hey and vegeta. This file determines the next
//! request after a redirect response.
//!
//! Not here: resolving a `Location` within an origin (`plimsoll_wire::redirect`), the limit of
//! redirects, and encoding the request.

use crate::go_request::canonical_header_name;
use plimsoll_model::Origin;
use plimsoll_wire::AuthorResponse;
use plimsoll_wire::redirect::{RedirectRefusal, is_redirect, redirect_target};
use std::borrow::Cow;

/// The header fields that describe a request body, and are removed together with the body after a
/// redirect.
const BODY_FIELDS: [&str; 4] = ["Content-Type", "Content-Encoding", "Content-Language", "Content-Location"];

/// One request in a redirect chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectHop {
    /// The number of redirects before this request.
    pub redirect_count: u64,
    pub method: String,
    pub path: String,
    /// The value of the header field `Host`.
    pub host: String,
    /// Whether a redirect removed the request body and the header fields that describe the body.
    pub has_dropped_body: bool,
    /// The URL of this request.
    url: String,
    /// The URL of the previous request in the chain; `None` for the first request.
    previous_url: Option<String>,
}

/// The next step of a client that follows redirects, after the client has received a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectStep {
    /// The redirect chain ends: the response is not a redirect, or the client cannot follow the
    /// redirect.
    End,
    /// The redirect chain ends: the response redirects to another server, which must not receive
    /// load.
    OtherServer,
    /// The client follows the redirect, and sends this request next.
    Follow(Box<RedirectHop>),
}

impl RedirectHop {
    /// Returns the first request of a redirect chain. `url` is the URL as written by the user, and
    /// `host` is the value of the header field `Host`.
    pub fn first_hop(method: &str, url: &str, path: &str, host: &str) -> RedirectHop {
        let url = url.split('#').next().unwrap_or_default();
        // The user name and password are removed, because the URL becomes the `Referer` field of
        // the next request.
        let url = match url.split_once("://") {
            Some((scheme, rest)) => {
                let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                format!("{scheme}://{}{rest}", authority.rsplit('@').next().unwrap_or_default())
            }
            None => url.to_owned(),
        };
        let (method, path, host) = (method.to_owned(), path.to_owned(), host.to_owned());
        RedirectHop { redirect_count: 0, method, path, host, has_dropped_body: false, url, previous_url: None }
    }

    /// Determines the next step of the redirect chain from `answer`, the response to this request.
    /// `body` has two values: whether the request has a body, and whether that body can be sent
    /// again.
    pub fn next_step(&self, answer: &AuthorResponse, origin: &Origin, body: (bool, bool)) -> RedirectStep {
        let Some(location) = redirect_location(answer) else { return RedirectStep::End };
        let keeps = matches!(answer.status, 307 | 308);
        if keeps && body.0 && !self.has_dropped_body && !body.1 {
            return RedirectStep::End;
        }
        let path = match redirect_target(&location, &self.path, origin) {
            Ok(path) => path,
            Err(RedirectRefusal::OtherOrigin | RedirectRefusal::TooManyRedirects) => return RedirectStep::OtherServer,
        };
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        // If `Location` is an absolute URL, the next request goes to the host in `Location`.
        let said = location.split_once("//").filter(|(before, _)| before.is_empty() || before.ends_with(':'));
        let said = said.map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
        let authority = said.unwrap_or_else(|| rest.split(['/', '?']).next().unwrap_or_default());
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let method = if keeps || matches!(&*self.method, "GET" | "HEAD") { &*self.method } else { "GET" };
        RedirectStep::Follow(Box::new(RedirectHop {
            redirect_count: self.redirect_count + 1,
            method: method.to_owned(),
            url: format!("{scheme}://{authority}{path}"),
            path,
            host: if said.is_some() { authority.to_owned() } else { self.host.clone() },
            has_dropped_body: self.has_dropped_body || !keeps,
            previous_url: Some(self.url.clone()),
        }))
    }

    /// Returns the header fields of this request, sorted by name. The fields are those of the first
    /// request of the chain (`first`), without the fields that a redirect removed, and with the
    /// field `Referer`.
    pub fn headers(&self, first: &[(String, String)]) -> Vec<(String, String)> {
        let stays = |name: &str| !self.has_dropped_body || !BODY_FIELDS.contains(&&*canonical_header_name(name));
        let mut headers: Vec<_> = first.iter().filter(|(name, _)| stays(name)).cloned().collect();
        if let Some(before) = &self.previous_url
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("referer"))
        {
            headers.push(("Referer".to_owned(), before.clone()));
        }
        headers.sort_by(|a, b| a.0.cmp(&b.0));
        headers
    }

    /// Returns Go's error message for a response that redirects after the maximum number of
    /// redirects, `redirects_max`.
    pub fn redirect_limit_error(&self, answer: &AuthorResponse, redirects_max: u64) -> String {
        let method = if matches!(answer.status, 307 | 308) || self.method == "HEAD" { &*self.method } else { "GET" };
        let mut method = method.to_ascii_lowercase();
        method[..1].make_ascii_uppercase();
        format!(
            "{method} \"{}\": stopped after {redirects_max} redirects",
            redirect_location(answer).unwrap_or_default()
        )
    }
}

/// Returns the target of a redirect, from the field `Location`; `None` if the response is not a
/// redirect.
fn redirect_location<'a>(answer: &AuthorResponse<'a>) -> Option<Cow<'a, str>> {
    let mut fields = answer.fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"location"));
    fields.next().filter(|_| is_redirect(answer.status)).map(|(_, value)| String::from_utf8_lossy(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::ResponseTimes;

    fn step_after_response(from: &RedirectHop, status: u16, location: &str, body: (bool, bool)) -> RedirectStep {
        let head = format!("HTTP/1.1 {status} X\r\nLocation: {location}\r\n\r\n");
        let head = if location.is_empty() { format!("HTTP/1.1 {status} X\r\n\r\n") } else { head };
        let (content, times) = (&b""[..], ResponseTimes::default());
        let answer =
            AuthorResponse { status, head: head.as_bytes(), content, content_bytes: 0, mark: 0, is_last: true, times };
        from.next_step(&answer, &Origin { scheme: "http".into(), host: "h".into(), port: 81 }, body)
    }

    fn next_hop(step: RedirectStep) -> RedirectHop {
        match step {
            RedirectStep::Follow(hop) => *hop,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn redirects_are_followed_as_in_go() {
        let first = RedirectHop::first_hop("POST", "http://u:pw@h:81?x=1#top", "/?x=1", "svc");
        let fields: Vec<(String, String)> =
            [("A", "1"), ("Content-Type", "t"), ("X-Y", "z")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
        assert_eq!(first.headers(&fields), fields);
        let second = next_hop(step_after_response(&first, 302, "/b", (true, true)));
        let told: Vec<String> =
            second.headers(&fields).iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(told, ["A: 1", "Referer: http://h:81?x=1", "X-Y: z"]);
        assert_eq!((&*second.method, &*second.path, &*second.host, second.redirect_count), ("GET", "/b", "svc", 1));
        // An absolute URL in `Location` replaces the host. A request body that an earlier redirect
        // removed stays removed.
        let third = next_hop(step_after_response(&second, 307, "http://h:81/c?d", (true, false)));
        assert_eq!((&*third.method, &*third.path, &*third.host, third.has_dropped_body), ("GET", "/c?d", "h:81", true));
        assert!(third.headers(&fields).contains(&("Referer".into(), "http://h:81/b".into())));
        let kept = next_hop(step_after_response(&first, 308, "c", (true, true)));
        assert_eq!((&*kept.method, &*kept.path, kept.has_dropped_body), ("POST", "/c", false));
        assert_eq!(kept.headers(&fields).len(), 4);
        let head = next_hop(step_after_response(
            &RedirectHop::first_hop("HEAD", "http://h:81/", "/", "h:81"),
            301,
            "/x",
            (false, true),
        ));
        assert_eq!(&*head.method, "HEAD");
        for (status, location, body, expect) in [
            (200, "/b", (false, true), RedirectStep::End),
            (304, "/b", (false, true), RedirectStep::End),
            (302, "", (false, true), RedirectStep::End),
            (307, "/b", (true, false), RedirectStep::End),
            (302, "http://other:81/", (false, true), RedirectStep::OtherServer),
            (302, "https://h:81/", (false, true), RedirectStep::OtherServer),
        ] {
            assert_eq!(step_after_response(&first, status, location, body), expect, "{status} {location}");
        }
    }
}
