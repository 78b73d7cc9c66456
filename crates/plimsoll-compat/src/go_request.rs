//! Encodes requests byte for byte as Go's HTTP client does over HTTP/1.1, for hey and vegeta.
//! Not here: choosing the header fields.

/// A request to encode. The command-line parsers ensure that the texts of a request contain no
/// control characters.
pub struct GoRequest<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// The value of the header field `Host`. A field `Host` in `headers` is ignored.
    pub host: &'a str,
    /// The header fields in Go's order: sorted by name. Fields with equal names are in their
    /// original order.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
    /// Whether to request gzip compression of the response. Compression is not requested if a
    /// header field already asks for an encoding or a range.
    pub accepts_gzip: bool,
    pub keep_alive: bool,
}

/// The header fields that Go's client writes itself. Fields with these names in `headers` are
/// skipped.
const GO_CLIENT_FIELDS: [&str; 5] = ["User-Agent", "Host", "Content-Length", "Transfer-Encoding", "Trailer"];
const GO_USER_AGENT: &str = "Go-http-client/1.1";

impl GoRequest<'_> {
    /// Encodes the request as HTTP/1.1 bytes, exactly as Go's client does.
    pub fn encode(&self) -> Vec<u8> {
        let field = |wanted: &str| {
            self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
        };
        let mut lines = vec![format!("{} {} HTTP/1.1", self.method, self.path), format!("Host: {}", self.host)];
        match field("User-Agent").unwrap_or(GO_USER_AGENT) {
            // As in Go, an empty user agent is not sent.
            "" => {}
            agent => lines.push(format!("User-Agent: {agent}")),
        }
        if !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH") {
            lines.push(format!("Content-Length: {}", self.body.len()));
        }
        let given =
            self.headers.iter().filter(|(name, _)| !GO_CLIENT_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)));
        lines.extend(given.map(|(name, value)| format!("{name}: {value}")));
        if self.accepts_gzip && requests_gzip(self.method, self.headers) {
            lines.push("Accept-Encoding: gzip".to_owned());
        }
        if !self.keep_alive {
            lines.push("Connection: close".to_owned());
        }
        let mut bytes = lines.join("\r\n").into_bytes();
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend_from_slice(self.body);
        bytes
    }
}

/// Returns whether Go's client requests gzip by itself: only without the fields `Accept-Encoding`
/// and `Range`, and not for HEAD.
pub fn requests_gzip(method: &str, headers: &[(String, String)]) -> bool {
    let otherwise = ["Accept-Encoding", "Range"];
    method != "HEAD" && !headers.iter().any(|(name, _)| otherwise.iter().any(|other| other.eq_ignore_ascii_case(name)))
}

/// Returns the name of a header field in Go's canonical form, such as `Content-Type`.
pub fn canonical_header_name(name: &str) -> String {
    let mut upper = true;
    let letter = |c: char| {
        let c = if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        upper = c == '-';
        c
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_match_go() {
        let text = |method: &str, fields: &[(&str, &str)], body: &str, keep_alive: bool| {
            let headers: Vec<(String, String)> =
                fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let request = GoRequest {
                method,
                path: "/p",
                host: "h:1",
                headers: &headers,
                body: body.as_bytes(),
                accepts_gzip: true,
                keep_alive,
            };
            String::from_utf8(request.encode()).expect("text").replace("\r\n", "|")
        };
        for (found, expect) in [
            (
                text("GET", &[], "", true),
                "GET /p HTTP/1.1|Host: h:1|User-Agent: Go-http-client/1.1|Accept-Encoding: gzip||",
            ),
            (
                text("POST", &[("A", "1"), ("A", "2"), ("host", "x"), ("user-agent", "me")], "", true),
                "POST /p HTTP/1.1|Host: h:1|User-Agent: me|Content-Length: 0|A: 1|A: 2|Accept-Encoding: gzip||",
            ),
            (
                text("DELETE", &[("Range", "bytes=0-1"), ("User-Agent", "")], "body", false),
                "DELETE /p HTTP/1.1|Host: h:1|Content-Length: 4|Range: bytes=0-1|Connection: close||body",
            ),
            (text("HEAD", &[], "", true), "HEAD /p HTTP/1.1|Host: h:1|User-Agent: Go-http-client/1.1||"),
        ] {
            assert_eq!(found, expect);
        }
    }
}
