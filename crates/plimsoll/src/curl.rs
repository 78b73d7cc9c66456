//! `--curl`: the request of a command line of curl, as flags would have said it, with the files
//! that it names. What the line means is `plimsoll_traffic`'s to say.

use crate::args::RequestArgs;
use base64::Engine;
use plimsoll_model::failure::Failure;
use plimsoll_model::{BodyFrom, Route};
use plimsoll_study::curl_body::{BodyInput, body, multipart, with_query};
use plimsoll_study::fields;
use plimsoll_study::output::note;
use plimsoll_traffic::import::curl::{CurlRequest, words};

/// The flags with what the line says in place of them, and its body. What is not carried over is
/// said, but for what is of no consequence.
pub fn applied(request: &RequestArgs, line: &str) -> Result<(RequestArgs, Option<BodyInput>), Failure> {
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
            let query = String::from_utf8(bytes).map_err(|_| wrong(&"the data of -G are not UTF-8"))?;
            (with_query(&curl.url, &query), None)
        }
        (_, body) => (curl.url.clone(), body),
    };
    let url = if curl.query.is_empty() { url } else { with_query(&url, &curl.query.join("&")) };
    if curl.json {
        add(&mut headers, &curl, "Content-Type", "application/json");
        add(&mut headers, &curl, "Accept", "application/json");
    } else if body.is_some() && curl.form.is_empty() && !curl.upload {
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
        note(&format!("--curl: ignored: {}", curl.left_out.join(", ")));
    }
    Ok((asked, body))
}

/// Adds a header field, unless the line decides of that name.
fn add(headers: &mut Vec<(String, String)>, curl: &CurlRequest, name: &str, value: &str) {
    if !curl.says(name) {
        headers.push((name.to_owned(), value.to_owned()));
    }
}
