//! `--curl`: the request of a command line of curl, as flags would have said it, with the files that it names. What the line means is
//! `plimsoll_traffic`'s to say.

use crate::args::RequestArgs;
use crate::fields;
use base64::Engine;
use plimsoll_model::failure::Failure;
use plimsoll_model::{BodyFrom, Route};
use plimsoll_study::output::note;
use plimsoll_sys::files::{self, Use};
use plimsoll_traffic::import::curl::{CurlData, CurlPart, CurlRequest, percent_encoded, words};

/// A body, and where it is from.
type GivenBody = (BodyFrom<String>, Vec<u8>);

/// The flags with what the line says in place of them, and its body. What is not carried over is said, but for what is of no
/// consequence.
pub fn applied(request: &RequestArgs, line: &str) -> Result<(RequestArgs, Option<GivenBody>), Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("--curl: {error}"));
    let curl = words(line).and_then(|words| CurlRequest::read(&words)).map_err(|error| wrong(&error))?;
    let method = curl.method().to_owned();
    let mut headers = Vec::new();
    let body = match curl.form.is_empty() {
        true => body(&curl)?,
        false => {
            let (bytes, boundary) = multipart(&curl.form)?;
            // A type that is given is sent with our boundary, as curl does.
            let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
            let given = curl.headers.iter().find(is_type).map_or("multipart/form-data", |(_, value)| value);
            let kind = given.split(';').next().unwrap_or_default().trim();
            headers.push(("Content-Type".to_owned(), format!("{kind}; boundary={boundary}")));
            Some((BodyFrom::Text, bytes))
        }
    };
    let (url, body) = match (curl.in_query, body) {
        (true, Some((_, bytes))) => {
            let query = String::from_utf8(bytes).map_err(|_| wrong(&"the data of -G are no text in UTF-8"))?;
            (with_query(&curl.url, &query), None)
        }
        (_, body) => (curl.url.clone(), body),
    };
    if curl.json {
        add(&mut headers, &curl, "Content-Type", "application/json");
        add(&mut headers, &curl, "Accept", "application/json");
    } else if body.is_some() && curl.form.is_empty() {
        add(&mut headers, &curl, "Content-Type", "application/x-www-form-urlencoded");
    }
    if let Some(user) = &curl.user {
        let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(user));
        add(&mut headers, &curl, "Authorization", &value);
    }
    let own = request.headers.iter().map(|text| fields::header(text)).collect::<Result<Vec<_>, _>>()?;
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    // What the body is says its length.
    let carried = |(name, _): &&(String, String)| !is_own(name) && !name.eq_ignore_ascii_case("content-length");
    // Of those that would be sent in any case.
    let removed =
        ["Accept", "User-Agent"].into_iter().filter(|name| curl.removed.iter().any(|it| it.eq_ignore_ascii_case(name)));
    let removed: Vec<(String, String)> = removed.map(|name| (name.to_owned(), String::new())).collect();
    let is_replaced = |name: &str| !curl.form.is_empty() && name.eq_ignore_ascii_case("content-type");
    let own_headers = curl.headers.iter().filter(|(name, _)| !is_replaced(name));
    let given = own_headers.chain(&headers).chain(&removed).filter(carried);
    let all = given.map(|(name, value)| format!("{name}: {value}"));
    let mut asked = request.clone();
    asked.headers = all.chain(request.headers.iter().cloned()).collect();
    (asked.curl, asked.url, asked.method) = (None, Some(url), Some(method));
    if let Some(seconds) = &curl.timeout_s {
        asked.timeout = format!("{seconds}s");
    }
    let connection = &mut asked.connection;
    connection.insecure |= curl.insecure && asked.url.as_deref().is_some_and(|url| url.starts_with("https:"));
    connection.http = connection.http.take().or(curl.http.map(str::to_owned));
    connection.unix = connection.unix.take().or(curl.unix.clone());
    connection.cacert = connection.cacert.take().or(curl.issuers.clone().map(Into::into));
    connection.cert = connection.cert.take().or(curl.certificate.clone().map(Into::into));
    connection.key = connection.key.take().or(curl.key.clone().map(Into::into));
    if curl.follows {
        let most = curl.follow_max.and_then(|most| u8::try_from(most).ok()).unwrap_or(u8::MAX);
        asked.follow = asked.follow.or(Some(most.min(Route::FOLLOW_MAX)));
    }
    if !curl.left_out.is_empty() {
        note(&format!("--curl: not carried over: {}", curl.left_out.join(", ")));
    }
    Ok((asked, body))
}

/// Adds a header field, unless the line decides of that name.
fn add(headers: &mut Vec<(String, String)>, curl: &CurlRequest, name: &str, value: &str) {
    if !curl.says(name) {
        headers.push((name.to_owned(), value.to_owned()));
    }
}

/// The body of pieces; `None` without any.
fn body(curl: &CurlRequest) -> Result<Option<GivenBody>, Failure> {
    if let [CurlData::File { path, stripped: false }] = curl.data.as_slice()
        && path != "-"
        && !curl.in_query
    {
        return Ok(Some((BodyFrom::File(path.clone()), fields::body_file(path)?)));
    }
    let mut bytes = Vec::new();
    for (number, piece) in curl.data.iter().enumerate() {
        if number > 0 && !curl.json {
            bytes.push(b'&');
        }
        bytes.extend(content(piece)?);
    }
    Ok((!curl.data.is_empty()).then_some((BodyFrom::Text, bytes)))
}

/// What is in a piece.
fn content(piece: &CurlData) -> Result<Vec<u8>, Failure> {
    let read = |path: &str| match path {
        "-" => files::read_stdin(Use::Body).map_err(|why| Failure::start(format!("--curl: standard input {why}"))),
        path => files::read(path.as_ref(), Use::Body)
            .map_err(|why| Failure::start(format!("--curl: the file '{path}' {why}"))),
    };
    Ok(match piece {
        CurlData::Text(text) => text.clone().into_bytes(),
        CurlData::File { path, stripped: false } => read(path)?,
        CurlData::File { path, stripped: true } => {
            read(path)?.into_iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect()
        }
        CurlData::EncodedFile { name, path } => {
            let encoded = percent_encoded(&read(path)?);
            if name.is_empty() { encoded } else { format!("{name}={encoded}") }.into_bytes()
        }
    })
}

/// A form as bytes, and what divides its parts: nothing that stands in one of them, and the same for the same form.
fn multipart(form: &[CurlPart]) -> Result<(Vec<u8>, String), Failure> {
    let contents = form.iter().map(|part| content(&part.data)).collect::<Result<Vec<_>, _>>()?;
    let stands = |boundary: &str| contents.iter().any(|it| memchr::memmem::find(it, boundary.as_bytes()).is_some());
    let boundaries = (0u32..).map(|number| format!("------------------------plimsoll{number:08}"));
    let boundary = boundaries.take(1000).find(|boundary| !stands(boundary)).unwrap_or_default();
    let mut bytes = Vec::new();
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], " ");
    for (part, content) in form.iter().zip(&contents) {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&part.name));
        if let Some(name) = &part.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(name)));
        }
        if let Some(kind) = &part.content_type {
            head.push_str(&format!("\r\nContent-Type: {}", quoted(kind)));
        }
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((bytes, boundary))
}

/// A URL with more in its query.
fn with_query(url: &str, query: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_divided_by_what_is_not_in_it() {
        let part = |text: &str| CurlPart {
            name: "a\"b".to_owned(),
            data: CurlData::Text(text.to_owned()),
            file_name: None,
            content_type: None,
        };
        let (_, first) = multipart(&[part("x")]).expect("a form");
        let (bytes, other) = multipart(&[part(&first)]).expect("a form");
        assert_ne!(first, other);
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(
            text,
            format!("--{other}\r\nContent-Disposition: form-data; name=\"a\\\"b\"\r\n\r\n{first}\r\n--{other}--\r\n")
        );
    }

    #[test]
    fn queries_grow() {
        for (url, expect) in [("h", "h?a=1"), ("h/?b", "h/?b&a=1"), ("h/?b#top", "h/?b&a=1")] {
            assert_eq!(with_query(url, "a=1"), expect);
        }
    }
}
