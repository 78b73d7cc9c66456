//! Converts a curl command line to a request ([`CurlInput`]): URL, header fields and body. Reads
//! the files that the command line names.
//!
//! Not here: parsing the line (`plimsoll_traffic`), and plimsoll's own equivalent flags.

use crate::curl_body::{BodyInput, build_body, encode_multipart, with_query};
use crate::fields;
use base64::Engine;
use plimsoll_model::BodySource;
use plimsoll_model::failure::Failure;
use plimsoll_traffic::import::curl::{CurlRequest, split_curl_command};

/// A request read from a curl command line.
#[derive(Debug)]
pub struct CurlInput {
    /// The parsed curl command line, including options that do not belong to the request, such as
    /// timeouts.
    pub curl: CurlRequest,
    /// The URL, with all query parameters of the command line (-G, --url-query).
    pub url: String,
    /// The header fields (`Name: value`) of the curl command line, without the fields that the
    /// caller sets.
    pub headers: Vec<String>,
    /// The request body with its source; `None` if the request has no body.
    pub body: Option<BodyInput>,
}

impl CurlInput {
    /// Reads a curl command line. The caller's header fields `own_headers` replace fields of the
    /// command line with the same names.
    pub fn read_curl_line(line: &str, own_headers: &[String]) -> Result<CurlInput, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("--curl: {error}"));
        let curl =
            split_curl_command(line).and_then(|words| CurlRequest::read(&words)).map_err(|error| wrong(&error))?;
        let mut headers = Vec::new();
        let body = match curl.form.is_empty() {
            true => build_body(&curl)?,
            false => {
                let (bytes, boundary) = encode_multipart(&curl.form)?;
                // As in curl, a multipart content type given by the user gets the generated
                // boundary.
                let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
                let given = curl.headers.iter().find(is_type).map_or("multipart/form-data", |(_, value)| value);
                let kind = given.split(';').next().unwrap_or_default().trim();
                headers.push(("Content-Type".to_owned(), format!("{kind}; boundary={boundary}")));
                Some((BodySource::Text, bytes))
            }
        };
        let (url, body) = match (curl.sends_data_in_query, body) {
            (true, Some((_, bytes))) => {
                let query =
                    String::from_utf8(bytes).map_err(|_| wrong(&"the data for the curl option -G are not UTF-8"))?;
                (with_query(&curl.url, &query), None)
            }
            (_, body) => (curl.url.clone(), body),
        };
        let url = if curl.query.is_empty() { url } else { with_query(&url, &curl.query.join("&")) };
        headers.extend(implied_headers(&curl, body.is_some()));
        let headers = headers_to_send(&curl, headers, own_headers)?;
        Ok(CurlInput { curl, url, headers, body })
    }
}

/// Returns the header fields that curl adds by itself, unless the command line sets or removes
/// them.
fn implied_headers(curl: &CurlRequest, has_body: bool) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    if curl.json {
        headers.push(("Content-Type", "application/json".to_owned()));
        headers.push(("Accept", "application/json".to_owned()));
    } else if has_body && curl.form.is_empty() && !curl.upload {
        headers.push(("Content-Type", "application/x-www-form-urlencoded".to_owned()));
    }
    if let Some(user) = &curl.user {
        let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(user));
        headers.push(("Authorization", value));
    }
    headers.retain(|(name, _)| !curl.has_explicit_header(name));
    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns all header fields to send. The result contains the fields of the curl command line, the
/// fields that curl implies, and empty values for fields that the command line removes. Fields that
/// the caller sets (`own`) are not included.
fn headers_to_send(curl: &CurlRequest, besides: Vec<(String, String)>, own: &[String]) -> Result<Vec<String>, Failure> {
    let own = own.iter().map(|text| fields::parse_header_flag(text)).collect::<Result<Vec<_>, _>>()?;
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    // Content-Length is left out here, because plimsoll computes it from the body later.
    let carried = |(name, _): &&(String, String)| !is_own(name) && !name.eq_ignore_ascii_case("content-length");
    // Fields that the command line removes are sent with an empty value. Without the empty value,
    // plimsoll would send its own default value of the field.
    let removed = ["Accept", "User-Agent"]
        .into_iter()
        .filter(|name| curl.removed_headers.iter().any(|it| it.eq_ignore_ascii_case(name)));
    let removed: Vec<(String, String)> = removed.map(|name| (name.to_owned(), String::new())).collect();
    let is_replaced = |name: &str| !curl.form.is_empty() && name.eq_ignore_ascii_case("content-type");
    let of_line = curl.headers.iter().filter(|(name, _)| !is_replaced(name));
    let all = of_line.chain(&besides).chain(&removed).filter(carried);
    Ok(all.map(|(name, value)| format!("{name}: {value}")).collect())
}
