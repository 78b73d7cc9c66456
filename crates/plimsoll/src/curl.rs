//! `--curl`: converts the request of a curl command line to the equivalent flags.
//!
//! Not here: parsing the line (`plimsoll_traffic`), and reading its files (`plimsoll_study`).

use crate::args::RequestArgs;
use plimsoll_model::Route;
use plimsoll_model::failure::Failure;
use plimsoll_study::curl_body::BodyInput;
use plimsoll_study::curl_line::CurlInput;
use plimsoll_study::output::print_to_stderr;

/// Returns the flags with the values of the curl command line, and the body of the curl request.
/// Prints the curl options that plimsoll leaves out, except options that do not change the request.
pub fn apply_curl_line(request: &RequestArgs, line: &str) -> Result<(RequestArgs, Option<BodyInput>), Failure> {
    let CurlInput { curl, url, headers, body } = CurlInput::read_curl_line(line, &request.headers)?;
    let mut asked = request.clone();
    asked.headers = headers.into_iter().chain(request.headers.iter().cloned()).collect();
    (asked.curl, asked.url, asked.method) = (None, Some(url), Some(curl.method().to_owned()));
    if let Some(seconds) = &curl.timeout_s {
        asked.timeout = format!("{seconds}s");
    }
    let connection = &mut asked.connection;
    connection.insecure |= curl.insecure && asked.url.as_deref().is_some_and(|url| url.starts_with("https:"));
    connection.http = connection.http.take().or(curl.http_version.map(str::to_owned));
    connection.unix = connection.unix.take().or(curl.unix_socket_path.clone());
    connection.cacert = connection.cacert.take().or(curl.ca_certificate_file.clone().map(Into::into));
    connection.cert = connection.cert.take().or(curl.client_certificate_file.clone().map(Into::into));
    connection.key = connection.key.take().or(curl.client_key_file.clone().map(Into::into));
    if curl.follows_redirects {
        let most = curl.redirects_max.and_then(|most| u8::try_from(most).ok()).unwrap_or(u8::MAX);
        asked.follow = asked.follow.or(Some(most.min(Route::FOLLOW_REDIRECTS_MAX)));
    }
    if !curl.unsupported_options.is_empty() {
        print_to_stderr(&format!("--curl: ignored: {}", curl.unsupported_options.join(", ")));
    }
    Ok((asked, body))
}
