//! Imports curl command lines, as browsers copy them. [`words`] splits the line into words, and
//! [`CurlRequest`] is the parsed request.
//!
//! Not here: reading the named files, base64, and parsing the URL.

mod error;
mod words;

use super::nodes::percent_encoded;

pub use error::CurlError;
pub use words::split_curl_command;

/// The source of one piece of a request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurlData {
    /// The data is the literal text on the command line.
    Text(String),
    /// The content of a file; the path `-` means standard input.
    File {
        /// The path of the file.
        path: String,
        /// Whether line breaks are removed from the content, as curl's `-d` does.
        stripped: bool,
    },
    /// The percent-encoded content of a file, as a parameter of a query or form (`--data-urlencode
    /// name@FILE`).
    EncodedFile {
        /// The text before `@`, which is the name of the parameter; empty if there is no name.
        name: String,
        /// The path of the file.
        path: String,
    },
}

/// One part of a multipart form (`-F`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurlPart {
    /// The name of the form field.
    pub name: String,
    /// The content of the part.
    pub data: CurlData,
    /// The file name sent with the part. `None` if the part is not an upload.
    pub file_name: Option<String>,
    /// The media type, if the command line gives one or curl derives one from the file name.
    pub content_type: Option<String>,
}

/// The request that a curl command line describes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurlRequest {
    /// The URL of the request.
    pub url: String,
    /// The HTTP method (`-X`, `-I`). `None` if other options imply the method.
    pub method: Option<String>,
    /// The header fields to send, in order.
    pub headers: Vec<(String, String)>,
    /// The names of header fields that curl would send by default and that the command line
    /// removes.
    pub removed_headers: Vec<String>,
    /// The pieces of the body. In the sent body, the pieces are joined with `&`, or without a
    /// separator if `json` is set.
    pub data: Vec<CurlData>,
    /// The parts of a multipart form (`-F`).
    pub form: Vec<CurlPart>,
    /// Whether `data` is appended to the query instead of sent as a body (`-G`).
    pub sends_data_in_query: bool,
    /// Percent-encoded additions to the query (`--url-query`).
    pub query: Vec<String>,
    /// Whether `data` is a file to upload to the URL (`-T`).
    pub upload: bool,
    /// Whether `data` is JSON (`--json`), whose pieces are joined without `&`.
    pub json: bool,
    /// The user and password (`-u`), as `name:password`.
    pub user: Option<String>,
    /// Whether the server's certificate is not verified (`-k`).
    pub insecure: bool,
    /// The HTTP version, `1.1` or `2`. `None` stands for the default version.
    pub http_version: Option<&'static str>,
    /// The path of a unix socket to connect to; a leading `@` marks an abstract socket.
    pub unix_socket_path: Option<String>,
    /// The timeout of the request, s, as written.
    pub timeout_s: Option<String>,
    /// The file of trusted certificate issuers (`--cacert`).
    pub ca_certificate_file: Option<String>,
    /// The file of the client certificate (`--cert`).
    pub client_certificate_file: Option<String>,
    /// The file of the client certificate's private key (`--key`).
    pub client_key_file: Option<String>,
    /// Whether redirects are followed (`-L`).
    pub follows_redirects: bool,
    /// The largest number of redirects to follow; -1 means no limit.
    pub redirects_max: Option<i64>,
    /// Whether `.` and `..` in the path are sent unresolved (`--path-as-is`).
    pub keeps_dots: bool,
    /// Whether brackets and braces in the URL are literal (`-g`) and not curl's patterns for
    /// several URLs.
    pub is_verbatim: bool,
    /// The options of the command line that have no equivalent in plimsoll.
    pub unsupported_options: Vec<String>,
}

/// Returns the name of an unknown option for an error message. A value after `=` is not shown,
/// because the value may be a secret.
fn unknown_option_text(option: &str) -> String {
    let name = option.split('=').next().unwrap_or_default();
    let is_like_one = name.len() <= 24 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    if is_like_one { option_without_value(name) } else { format!("of {} characters", option.chars().count()) }
}

/// The short options of curl, each with its long name.
const SHORT_OPTIONS: &[(char, &str)] = &[
    ('A', "user-agent"),
    ('b', "cookie"),
    ('c', "cookie-jar"),
    ('d', "data"),
    ('e', "referer"),
    ('E', "cert"),
    ('f', "fail"),
    ('F', "form"),
    ('g', "globoff"),
    ('G', "get"),
    ('H', "header"),
    ('i', "include"),
    ('I', "head"),
    ('j', "junk-session-cookies"),
    ('k', "insecure"),
    ('L', "location"),
    ('m', "max-time"),
    ('N', "no-buffer"),
    ('o', "output"),
    ('O', "remote-name"),
    ('r', "range"),
    ('q', "disable"),
    ('D', "dump-header"),
    ('J', "remote-header-name"),
    ('n', "netrc"),
    ('T', "upload-file"),
    ('U', "proxy-user"),
    ('Y', "speed-limit"),
    ('y', "speed-time"),
    ('z', "time-cond"),
    ('1', "tlsv1"),
    ('s', "silent"),
    ('S', "show-error"),
    ('u', "user"),
    ('v', "verbose"),
    ('w', "write-out"),
    ('X', "request"),
    ('x', "proxy"),
    ('0', "http1.0"),
    ('4', "ipv4"),
    ('6', "ipv6"),
    ('#', "progress-bar"),
];
/// Options for curl's output or behaviour that take no value. The import ignores the listed
/// options, because the imported request does not depend on the options.
const IGNORED_OPTIONS: &[&str] = &[
    "fail",
    "fail-early",
    "fail-with-body",
    "create-dirs",
    "remote-header-name",
    "ssl-no-revoke",
    "styled-output",
    "no-sessionid",
    "no-styled-output",
    "include",
    "no-buffer",
    "silent",
    "show-error",
    "verbose",
    "progress-bar",
    "disable",
    "no-progress-meter",
    "remote-name",
    "no-keepalive",
    "tcp-nodelay",
    "junk-session-cookies",
    "basic",
];
/// Options with a value for curl's output or behaviour. The import ignores the listed options,
/// because the imported request does not depend on the options.
const IGNORED_OPTIONS_WITH_VALUE: &[&str] = &[
    "output",
    "output-dir",
    "write-out",
    "cookie-jar",
    "connect-timeout",
    "dump-header",
    "stderr",
    "trace",
    "trace-ascii",
    "keepalive-time",
    "noproxy",
    "expect100-timeout",
];
/// Options without a value that change the request and cannot be imported. The import reports each
/// listed option that a command line contains.
const UNSUPPORTED_OPTIONS: &[&str] = &[
    "post301",
    "post302",
    "post303",
    "http1.0",
    "http3",
    "http3-only",
    "ipv4",
    "ipv6",
    "digest",
    "ntlm",
    "negotiate",
    "anyauth",
    "compressed-ssh",
    "netrc",
    "netrc-optional",
    "proxy-insecure",
    "retry-all-errors",
    "retry-connrefused",
    "ssl-reqd",
    "tcp-fastopen",
    "tlsv1",
    "tlsv1.0",
    "tlsv1.1",
    "tlsv1.2",
    "tlsv1.3",
];
/// Options with a value that change the request and cannot be imported. The import reports each
/// listed option that a command line contains.
const UNSUPPORTED_OPTIONS_WITH_VALUE: &[&str] = &[
    "proxy",
    "proxy-header",
    "proxy-user",
    "retry",
    "retry-delay",
    "retry-max-time",
    "resolve",
    "connect-to",
    "interface",
    "limit-rate",
    "local-port",
    "max-filesize",
    "speed-limit",
    "speed-time",
    "time-cond",
    "ciphers",
    "tls13-ciphers",
    "tls-max",
    "proto",
    "proto-default",
    "proto-redir",
];

impl CurlRequest {
    /// Parses the words of a command line; the first word is `curl`.
    pub fn read(words: &[String]) -> Result<CurlRequest, CurlError> {
        let mut request = CurlRequest::default();
        // The header fields that options other than `-H` imply, such as `-A` and `-b`.
        let mut said: Vec<(String, String)> = Vec::new();
        let (mut urls, mut is_head) = (Vec::new(), false);
        let Some((_, rest)) = words.split_first().filter(|(first, _)| is_curl(first)) else {
            return Err(CurlError::NotCurl);
        };
        let mut rest = rest.iter().cloned();
        let mut only_urls = false;
        while let Some(word) = rest.next() {
            let mut options: Vec<(String, String, Option<String>)> = Vec::new();
            if only_urls || !word.starts_with('-') || word == "-" {
                urls.push(word);
                continue;
            } else if word == "--" {
                only_urls = true;
                continue;
            } else if let Some(long) = word.strip_prefix("--") {
                options.push((long.to_owned(), word.clone(), None));
            } else {
                // One word can have several short options. After an option with a value, the rest
                // of the word is its value.
                let letters = word[1..].char_indices();
                for (at, letter) in letters {
                    let shown = format!("-{letter}");
                    let Some((_, long)) = SHORT_OPTIONS.iter().find(|(short, _)| *short == letter) else {
                        return Err(CurlError::UnknownOption(shown));
                    };
                    let after = &word[1 + at + letter.len_utf8()..];
                    let takes_rest = option_takes_value(long) && !after.is_empty();
                    options.push(((*long).to_owned(), shown, takes_rest.then(|| after.to_owned())));
                    if takes_rest {
                        break;
                    }
                }
            }
            for (option, shown, joined) in options {
                let value = match option_takes_value(&option) {
                    true => joined.or_else(|| rest.next()).ok_or_else(|| CurlError::MissingValue(shown.clone()))?,
                    false => String::new(),
                };
                match option.as_str() {
                    "url" => urls.push(value),
                    "head" => is_head = true,
                    option => request.apply_option(option, &shown, value, &mut said)?,
                }
            }
        }
        // An explicit `-H` option overrides the header fields that options such as `-A` and `-b`
        // imply. `-H 'Name:'` removes the header field `Name`.
        said.retain(|(name, _)| !request.has_explicit_header(name));
        request.headers.append(&mut said);
        request.url = match urls.len() {
            0 => return Err(CurlError::NoUrl),
            1 => urls.remove(0),
            several => return Err(CurlError::SeveralUrls(several)),
        };
        if !request.form.is_empty() && !request.data.is_empty() {
            return Err(CurlError::TwoBodies);
        }
        if is_head && request.method.is_none() {
            request.method = Some("HEAD".to_owned());
        }
        if !request.is_verbatim
            && let Some(sign) = find_glob_character(&request.url)
        {
            return Err(CurlError::Glob(sign));
        }
        request.append_upload_file_name();
        if !request.keeps_dots {
            request.url = resolve_dot_segments(&request.url);
        }
        Ok(request)
    }

    /// Returns whether an explicit header option sets or removes the field `name`.
    pub fn has_explicit_header(&self, name: &str) -> bool {
        let given = self.headers.iter().map(|(own, _)| own).chain(&self.removed_headers);
        given.into_iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn apply_option(
        &mut self,
        option: &str,
        label: &str,
        value: String,
        said: &mut Vec<(String, String)>,
    ) -> Result<(), CurlError> {
        // If an option for a header field is repeated, the last value counts. Values of cookie
        // options are joined.
        let mut say = |name: &str, value: String| match said.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) if name == "Cookie" => own.push_str(&format!("; {value}")),
            Some((_, own)) => *own = value,
            None => said.push((name.to_owned(), value)),
        };
        match option {
            // An empty value of `-A` removes the `User-Agent` field.
            "user-agent" if value.is_empty() => self.removed_headers.push("User-Agent".to_owned()),
            "referer" if value.is_empty() => {}
            "globoff" => self.is_verbatim = true,
            "path-as-is" => self.keeps_dots = true,
            "upload-file" => {
                self.upload = true;
                self.data = vec![CurlData::File { path: value, stripped: false }];
            }
            "url-query" => self.query.push(match value.strip_prefix('+') {
                Some(verbatim) => verbatim.to_owned(),
                None => match parse_urlencode_data(&value) {
                    CurlData::Text(text) => text,
                    _ => {
                        return Err(CurlError::InvalidValue(
                            label.to_owned(),
                            "write the query text itself, because plimsoll reads no file for the query text",
                        ));
                    }
                },
            }),
            "request" => self.method = Some(value),
            "header" => self.push_header(&value, label)?,
            "user-agent" => say("User-Agent", value),
            // The suffix `;auto` of the referer affects only redirects, so the suffix is removed.
            "referer" => say("Referer", value.strip_suffix(";auto").unwrap_or(&value).to_owned()),
            "cookie" if value.contains('=') => say("Cookie", value),
            // A value of curl's cookie option (`-b`) without `=` is the path of a file with
            // cookies.
            "cookie" => self.unsupported_options.push(label.to_owned()),
            "data" | "data-ascii" => self.data.push(parse_data(value, true)),
            "data-binary" => self.data.push(parse_data(value, false)),
            "data-raw" => self.data.push(CurlData::Text(value)),
            "data-urlencode" => self.data.push(parse_urlencode_data(&value)),
            "json" => {
                self.json = true;
                self.data.push(parse_data(value, false));
            }
            "form" | "form-string" => {
                let part = parse_form_part(&value, option == "form-string", label, &mut self.unsupported_options)?;
                self.form.push(part);
            }
            "get" => self.sends_data_in_query = true,
            "user" => self.user = Some(value),
            "oauth2-bearer" => say("Authorization", format!("Bearer {value}")),
            "insecure" => self.insecure = true,
            "compressed" => say("Accept-Encoding", "gzip, deflate, br, zstd".to_owned()),
            "range" => say("Range", format!("bytes={value}")),
            "http1.1" => self.http_version = Some("1.1"),
            // The option `--http2` needs no setting: plimsoll negotiates HTTP/2 over TLS by
            // default.
            "http2" => self.http_version = None,
            "http2-prior-knowledge" => self.http_version = Some("2"),
            "unix-socket" => self.unix_socket_path = Some(value),
            "abstract-unix-socket" => self.unix_socket_path = Some(format!("@{value}")),
            "max-time" => self.timeout_s = Some(value),
            "location" => self.follows_redirects = true,
            // The option `--location-trusted` has no effect beyond `-L`: plimsoll never sends
            // credentials to another host.
            "location-trusted" => {
                self.follows_redirects = true;
                self.unsupported_options.push(label.to_owned());
            }
            "max-redirs" => {
                let wrong =
                    || CurlError::InvalidValue(label.to_owned(), "write the largest number of redirects, such as 5");
                self.redirects_max = Some(value.parse().ok().filter(|most| *most >= -1).ok_or_else(wrong)?);
            }
            "cacert" => self.ca_certificate_file = Some(value),
            "cert" => self.client_certificate_file = Some(value),
            "key" => self.client_key_file = Some(value),
            option if UNSUPPORTED_OPTIONS.contains(&option) || UNSUPPORTED_OPTIONS_WITH_VALUE.contains(&option) => {
                self.unsupported_options.push(label.to_owned());
            }
            option if IGNORED_OPTIONS.contains(&option) || IGNORED_OPTIONS_WITH_VALUE.contains(&option) => {}
            _ => return Err(CurlError::UnknownOption(unknown_option_text(label))),
        }
        Ok(())
    }

    /// Parses the value of `-H`, such as `Name: value`. `Name;` sets an empty field, and `Name:`
    /// removes the field.
    fn push_header(&mut self, text: &str, label: &str) -> Result<(), CurlError> {
        let wrong = || CurlError::InvalidValue(label.to_owned(), "write the header as 'Name: value', with a colon");
        if let Some(name) = text.strip_suffix(';').filter(|name| !name.contains(':')) {
            self.headers.push((name.trim().to_owned(), String::new()));
            return Ok(());
        }
        if text.starts_with('@') {
            return Err(CurlError::InvalidValue(
                label.to_owned(),
                "write the header fields themselves, because plimsoll reads no file with header fields",
            ));
        }
        let (name, value) = text.split_once(':').ok_or_else(wrong)?;
        if name.trim().is_empty() {
            // Pseudo-header fields such as `:authority: h`, which some browsers copy, repeat the
            // URL, so they are ignored.
            return Ok(());
        }
        match value.trim() {
            // A request without a `Host` field is invalid in HTTP/1.1 (RFC 9112, 3.2), so an option
            // that removes `Host` is not imported.
            "" if name.trim().eq_ignore_ascii_case("host") => self.unsupported_options.push(format!("{label} Host:")),
            "" => self.removed_headers.push(name.trim().to_owned()),
            value => self.headers.push((name.trim().to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// Returns the method of the request, derived from the body if the command line names none.
    pub fn method(&self) -> &str {
        let has_body = !self.form.is_empty() || (!self.data.is_empty() && !self.sends_data_in_query);
        self.method.as_deref().unwrap_or(match has_body {
            true if self.upload => "PUT",
            true => "POST",
            false => "GET",
        })
    }

    /// Appends the file name to an upload URL that ends in a slash, as curl does.
    fn append_upload_file_name(&mut self) {
        if let [CurlData::File { path, .. }] = self.data.as_slice()
            && self.upload
            && self.url.split(['?', '#']).next().unwrap_or_default().ends_with('/')
        {
            let name = percent_encoded(path.rsplit('/').next().unwrap_or(path).as_bytes());
            let end = self.url.find(['?', '#']).unwrap_or(self.url.len());
            self.url.insert_str(end, &name);
        }
    }
}

/// Returns whether a word is the name of the program curl, with or without a path.
fn is_curl(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name == "curl" || name == "curl.exe"
}

/// Resolves `.` and `..` in the path of a URL (RFC 3986, 5.2.4).
fn resolve_dot_segments(url: &str) -> String {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let Some(begin) = url.get(after_scheme..end).and_then(|text| text.find('/')).map(|at| after_scheme + at) else {
        return url.to_owned();
    };
    let path = &url[begin..end];
    let mut parts: Vec<&str> = Vec::new();
    for part in path[1..].split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    // A path that ends with a dot segment keeps its final slash.
    if path.ends_with("/.") || path.ends_with("/..") {
        parts.push("");
    }
    format!("{}/{}{}", &url[..begin], parts.join("/"), &url[end..])
}

/// Returns the first character of a URL that curl would expand as a pattern for several URLs. The
/// brackets of an IPv6 address are no pattern.
fn find_glob_character(url: &str) -> Option<char> {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let authority_end = url[after_scheme..].find('/').map_or(url.len(), |at| after_scheme + at);
    let in_authority = url[..authority_end].find('{').map(|_| '{');
    in_authority.or_else(|| url[authority_end..].chars().find(|c| ['[', ']', '{', '}'].contains(c)))
}

fn option_takes_value(option: &str) -> bool {
    const WITH_VALUE: &[&str] = &[
        "url",
        "request",
        "header",
        "user-agent",
        "referer",
        "cookie",
        "data",
        "data-ascii",
        "data-binary",
        "data-raw",
        "data-urlencode",
        "json",
        "form",
        "form-string",
        "user",
        "oauth2-bearer",
        "unix-socket",
        "abstract-unix-socket",
        "max-time",
        "max-redirs",
        "range",
        "upload-file",
        "url-query",
        "cacert",
        "cert",
        "key",
    ];
    [WITH_VALUE, IGNORED_OPTIONS_WITH_VALUE, UNSUPPORTED_OPTIONS_WITH_VALUE].iter().any(|list| list.contains(&option))
}

/// Returns the name of an option for error messages, without the value that follows in the same
/// word: the value may be a secret.
fn option_without_value(label: &str) -> String {
    let name: String =
        label.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')).take(30).collect();
    name
}

fn parse_data(value: String, stripped: bool) -> CurlData {
    match value.strip_prefix('@') {
        Some(path) => CurlData::File { path: path.to_owned(), stripped },
        None => CurlData::Text(value),
    }
}

/// Parses the value of `--data-urlencode`: `content`, `=content`, `name=content`, `@file` or
/// `name@file`.
fn parse_urlencode_data(value: &str) -> CurlData {
    match value.find(['=', '@']) {
        Some(at) if value[at..].starts_with('@') => {
            CurlData::EncodedFile { name: value[..at].to_owned(), path: value[at + 1..].to_owned() }
        }
        Some(0) => CurlData::Text(form_encoded(&value.as_bytes()[1..])),
        Some(at) => CurlData::Text(format!("{}={}", &value[..at], form_encoded(&value.as_bytes()[at + 1..]))),
        None => CurlData::Text(form_encoded(value.as_bytes())),
    }
}

/// Percent-encodes a form value; a blank becomes `+`.
pub fn form_encoded(bytes: &[u8]) -> String {
    percent_encoded(bytes).replace("%20", "+")
}

/// Parses a form part (`-F`): `name=value`, `name=@file;type=a/b;filename=c` or `name=<file`.
///
/// A quoted value ends at its closing quote, and its escapes `\"` and `\\` are decoded. An unquoted
/// value ends at `;`. Unsupported attributes are added to `left_out`.
fn parse_form_part(text: &str, is_plain: bool, label: &str, left_out: &mut Vec<String>) -> Result<CurlPart, CurlError> {
    let wrong = |way: &'static str| CurlError::InvalidValue(label.to_owned(), way);
    let (name, value) = text.split_once('=').ok_or_else(|| wrong("write the form part as name=value or name=@FILE"))?;
    let mut part =
        CurlPart { name: name.to_owned(), data: CurlData::Text(value.to_owned()), file_name: None, content_type: None };
    if is_plain {
        return Ok(part);
    }
    let kind = value.chars().next().filter(|c| ['@', '<', '('].contains(c));
    if kind == Some('(') || name.is_empty() && value == ")" {
        return Err(wrong("write the form part as name=value or name=@FILE, without nested parts"));
    }
    let mut rest = &value[usize::from(kind.is_some())..];
    let content = parse_form_value(&mut rest, kind == Some('@'));
    if kind == Some('@') && rest.starts_with(',') {
        return Err(wrong("a form part can have only one file, so give -F once for each file"));
    }
    while let Some(after) = rest.strip_prefix(';') {
        let after = after.trim_start();
        let (key, after) = after.split_once('=').filter(|(key, _)| !key.contains(';')).unwrap_or((after, ""));
        rest = after;
        match key.trim() {
            // A media type may have parameters after `;`.
            "type" => part.content_type = Some(parse_form_media_type(&mut rest)),
            "filename" => part.file_name = Some(parse_form_value(&mut rest, false)),
            key @ ("encoder" | "headers") => {
                parse_form_value(&mut rest, false);
                left_out.push(format!("{label} ...;{key}="));
            }
            // curl ignores unknown attributes of a form part with a warning.
            _ => {
                let end = rest.find(';').unwrap_or(rest.len());
                rest = &rest[end..];
            }
        }
    }
    part.data = match kind {
        Some(kind) => {
            if kind == '@' {
                let name = content.rsplit('/').next().unwrap_or(&content).to_owned();
                let file_name = part.file_name.get_or_insert(name);
                let kind = media_type_for_file(file_name);
                part.content_type.get_or_insert_with(|| kind.to_owned());
            }
            CurlData::File { path: content, stripped: false }
        }
        None => CurlData::Text(content),
    };
    Ok(part)
}

/// Parses a value in a form part, and advances `rest` to the text after the value. If `listed` is
/// set, a comma ends the value too.
fn parse_form_value(rest: &mut &str, listed: bool) -> String {
    let text = *rest;
    if let Some(inner) = text.trim_start().strip_prefix('"') {
        let (mut word, mut chars) = (String::new(), inner.char_indices());
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if inner[at + 1..].starts_with(['"', '\\']) => word.extend(chars.next().map(|(_, c)| c)),
                '"' => {
                    let after = &inner[at + 1..];
                    *rest = &after[after.find([';', ',']).unwrap_or(after.len())..];
                    return word;
                }
                c => word.push(c),
            }
        }
        // A quote that is never closed is a literal character.
    }
    let end = text.find(|c| c == ';' || (listed && c == ',')).unwrap_or(text.len());
    *rest = &text[end..];
    text[..end].trim_end().to_owned()
}

/// Parses a media type with its parameters, and advances `rest` to the text after the parameters.
fn parse_form_media_type(rest: &mut &str) -> String {
    let mut kind = parse_form_value(rest, false);
    while let Some(after) = rest.strip_prefix(';') {
        let key = after.trim_start().split('=').next().unwrap_or_default().trim();
        if ["filename", "encoder", "headers", "type"].contains(&key) || !after.contains('=') {
            break;
        }
        let mut more = after;
        kind = format!("{kind};{}", parse_form_value(&mut more, false));
        *rest = more;
    }
    kind
}

/// Returns the media type that curl derives from a file extension (`Curl_mime_contenttype`).
fn media_type_for_file(name: &str) -> &'static str {
    const EXTENSION_MEDIA_TYPES: [(&str, &str); 9] = [
        (".gif", "image/gif"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".svg", "image/svg+xml"),
        (".txt", "text/plain"),
        (".htm", "text/html"),
        (".html", "text/html"),
        (".pdf", "application/pdf"),
    ];
    let lower = name.to_ascii_lowercase();
    let known = EXTENSION_MEDIA_TYPES.iter().find(|(end, _)| lower.ends_with(end));
    let xml = lower.ends_with(".xml").then_some("application/xml");
    known.map(|(_, kind)| *kind).or(xml).unwrap_or("application/octet-stream")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CurlRequest, CurlError> {
        CurlRequest::read(&split_curl_command(line)?)
    }

    #[test]
    fn curl_lines_copied_from_browsers_are_parsed() {
        let request = read(
            "curl 'https://api.test/items?page=2' \\\n  -X PUT \\\n  -H 'accept: application/json' \\\n  \
             -H ':authority: api.test' -H 'x-empty;' -H 'x-none:' -b 'sid=1; theme=dark' \\\n  \
             --data-raw $'{\"name\":\"it\\'s @home\"}' --compressed --insecure -sS -o /dev/null",
        )
        .expect("understood");
        assert_eq!((request.url.as_str(), request.method()), ("https://api.test/items?page=2", "PUT"));
        let header = |name: &str| request.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
        assert_eq!(header("accept"), Some("application/json"));
        assert_eq!(
            (header("Cookie"), header("x-empty"), header("x-none")),
            (Some("sid=1; theme=dark"), Some(""), None)
        );
        assert_eq!(header("Accept-Encoding"), Some("gzip, deflate, br, zstd"));
        assert_eq!(request.data, [CurlData::Text("{\"name\":\"it's @home\"}".into())]);
        assert!(request.insecure && request.unsupported_options.is_empty());
    }

    #[test]
    fn options_mean_the_same_as_in_curl() {
        let text = |text: &str| CurlData::Text(text.to_owned());
        let file = |path: &str, stripped| CurlData::File { path: path.to_owned(), stripped };
        for (line, method, data) in [
            ("curl h", "GET", vec![]),
            ("curl -I h", "HEAD", vec![]),
            ("curl h -d a=1 -d b=2", "POST", vec![text("a=1"), text("b=2")]),
            ("curl -da=1 h", "POST", vec![text("a=1")]),
            ("curl -sXPOST h", "POST", vec![]),
            ("curl -G -d a=1 h", "GET", vec![text("a=1")]),
            ("curl -d @f h", "POST", vec![file("f", true)]),
            ("curl --data-binary @f h", "POST", vec![file("f", false)]),
            ("curl --data-raw @f h", "POST", vec![text("@f")]),
            ("curl --json '{}' h", "POST", vec![text("{}")]),
            ("curl --data-urlencode 'q=a b&c' h", "POST", vec![text("q=a+b%26c")]),
            ("curl --data-urlencode '=a b' h", "POST", vec![text("a+b")]),
            (
                "curl --data-urlencode n@f h",
                "POST",
                vec![CurlData::EncodedFile { name: "n".to_owned(), path: "f".to_owned() }],
            ),
            ("/usr/bin/curl -- h", "GET", vec![]),
            ("curl --url h", "GET", vec![]),
            ("curl -T f h", "PUT", vec![file("f", false)]),
            ("curl -D - --noproxy '*' --fail-early h", "GET", vec![]),
        ] {
            let request = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!((request.url.as_str(), request.method(), request.data.clone()), ("h", method, data), "{line}");
        }
        for (line, follows, most) in [
            ("curl -L h", true, None),
            ("curl h -sLo x --max-redirs 3", true, Some(3)),
            ("curl --location --max-redirs -1 h", true, Some(-1)),
            ("curl --max-redirs 3 h", false, Some(3)),
        ] {
            let request = read(line).expect("understood");
            assert_eq!(
                (request.follows_redirects, request.redirects_max, request.unsupported_options.len()),
                (follows, most, 0),
                "{line}"
            );
        }
        let request =
            read("curl -u ann:s3cret --location-trusted -m 5 --http1.1 --unix-socket /s -x p h").expect("understood");
        assert_eq!((request.user.as_deref(), request.timeout_s.as_deref()), (Some("ann:s3cret"), Some("5")));
        assert_eq!((request.http_version, request.unix_socket_path.as_deref()), (Some("1.1"), Some("/s")));
        assert_eq!(
            (request.follows_redirects, request.unsupported_options),
            (true, vec!["--location-trusted".to_owned(), "-x".to_owned()])
        );
        let form = read("curl -F 'f=@a/b.png;type=image/png' -F x=1 --form-string 'y=@z;a' -F 'd=<e' h")
            .expect("understood")
            .form;
        assert_eq!((form[0].file_name.as_deref(), form[0].content_type.as_deref()), (Some("b.png"), Some("image/png")));
        assert_eq!((&form[1].data, &form[2].data, &form[3].data), (&text("1"), &text("@z;a"), &file("e", false)));
    }

    #[test]
    fn form_parts_are_split_as_in_curl() {
        for (line, data, file_name, kind) in [
            ("f=@\"a.txt\"", Ok("a.txt"), Some("a.txt"), Some("text/plain")),
            ("f=@\"a;b, c.xml\";type=x/y", Ok("a;b, c.xml"), Some("a;b, c.xml"), Some("x/y")),
            ("f=@d/a.bin;filename=\"b \\\"c\\\".png\"", Ok("d/a.bin"), Some("b \"c\".png"), Some("image/png")),
            (
                "f=@a.bin;type=text/csv; charset=utf-8;filename=b",
                Ok("a.bin"),
                Some("b"),
                Some("text/csv; charset=utf-8"),
            ),
            ("j=\"{\\\"a\\\":1}\"", Err("{\"a\":1}"), None, None),
            ("j={\"a\":1}", Err("{\"a\":1}"), None, None),
            ("j=a;type=application/json", Err("a"), None, Some("application/json")),
            ("j=\"a;b\";type=text/plain", Err("a;b"), None, Some("text/plain")),
            ("j=a;b", Err("a"), None, None),
            ("j=\"open", Err("\"open"), None, None),
            ("j=", Err(""), None, None),
        ] {
            let part =
                parse_form_part(line, false, "-F", &mut Vec::new()).unwrap_or_else(|error| panic!("{line}: {error}"));
            let expect = match data {
                Ok(path) => CurlData::File { path: path.to_owned(), stripped: false },
                Err(text) => CurlData::Text(text.to_owned()),
            };
            assert_eq!(
                (part.data, part.file_name.as_deref(), part.content_type.as_deref()),
                (expect, file_name, kind),
                "{line}"
            );
        }
        for line in ["f=@a,b", "f=(", "f"] {
            assert!(parse_form_part(line, false, "-F", &mut Vec::new()).is_err(), "{line}");
        }
        let mut left_out = Vec::new();
        parse_form_part("f=@a;encoder=base64", false, "-F", &mut left_out).expect("a part");
        assert_eq!(left_out, ["-F ...;encoder="]);
    }

    #[test]
    fn explicit_headers_override_other_options() {
        let said = |line: &str| {
            let request = read(line).expect("understood");
            let headers: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            (headers.join(", "), request.removed_headers.join(", "))
        };
        for (line, headers, removed) in [
            ("curl h --compressed -H 'Accept-Encoding: gzip, br'", "Accept-Encoding: gzip, br", ""),
            ("curl h -H 'Accept:' -H 'Cookie: a=1' -b 'b=2'", "Cookie: a=1", "Accept"),
            ("curl h -b a=1 -b b=2", "Cookie: a=1; b=2", ""),
            ("curl h -A x -A y -e /from;auto", "User-Agent: y, Referer: /from", ""),
            ("curl h -A x -H 'user-agent: z'", "user-agent: z", ""),
            ("curl h -A x -H 'User-Agent:'", "", "User-Agent"),
            ("curl h -H 'X: 1' -H 'X: 2' -r 0-9", "X: 1, X: 2, Range: bytes=0-9", ""),
            ("curl h --oauth2-bearer t -H 'Authorization: Basic x'", "Authorization: Basic x", ""),
            ("curl h -A '' -e ''", "", "User-Agent"),
            ("curl h -H 'Host:'", "", ""),
        ] {
            assert_eq!(said(line), (headers.to_owned(), removed.to_owned()), "{line}");
        }
        assert_eq!(read("curl h -H 'Host:'").expect("understood").unsupported_options, ["-H Host:"]);
    }

    #[test]
    fn urls_are_normalised_as_in_curl() {
        for (line, url, query) in [
            ("curl -g 'http://h/a[1]{b}'", "http://h/a[1]{b}", ""),
            ("curl 'http://[::1]:8080/a'", "http://[::1]:8080/a", ""),
            ("curl -T 'd/a b.txt' 'http://h/up/?x=1'", "http://h/up/a%20b.txt?x=1", ""),
            ("curl -T a.txt http://h/up", "http://h/up", ""),
            ("curl http://h/a/../b/./c?x=/../y", "http://h/b/c?x=/../y", ""),
            ("curl http://h/../..//a/..", "http://h//", ""),
            ("curl --path-as-is http://h/a/../b", "http://h/a/../b", ""),
            ("curl http://h?x=/../", "http://h?x=/../", ""),
            ("curl --url-query 'q=x y' --url-query +r=%41 http://h/", "http://h/", "q=x+y&r=%41"),
        ] {
            let request = read(line).expect("understood");
            assert_eq!((request.url.as_str(), request.query.join("&").as_str()), (url, query), "{line}");
        }
    }

    #[test]
    fn unsupported_options_are_reported_without_values() {
        for (line, part) in [
            ("curl", "no URL"),
            ("", "the text is not a curl command"),
            ("wget http://s3cret/", "the text is not a curl command"),
            ("curl a b", "2 URLs"),
            ("curl --frob=s3cret h", "the option --frob is not supported"),
            ("curl -Z h", "the option -Z is not supported"),
            ("curl h -H", "-H needs a value"),
            ("curl h -H s3cret", "with a colon"),
            ("curl h -F s3cret", "name=value"),
            ("curl h -d a -F b=c", "both -F and -d"),
            ("curl h -H @s3cret", "-H is not supported: write the header fields themselves"),
            ("curl 'http://h/[1-3]'", "the URL of the curl command has [, which curl expands to several URLs"),
            ("curl 'http://{a,b}/'", "the URL of the curl command has {"),
            ("curl 'http://h/?q={\"s3cret\":1}'", "the URL of the curl command has {"),
            ("curl h; curl i", "a second command follows"),
            ("curl -u \"$USER\" h", "a shell would replace the variable $USER"),
            ("curl h -L --max-redirs s3cret", "--max-redirs is not supported: write the largest number of redirects"),
            ("curl h -L --max-redirs -2", "number of redirects"),
            ("curl 'h", "quotation"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(part) && !error.contains("s3cret"), "{line}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_parses_without_a_panic(line in "[-a-zA-Z@='\"\\\\$<;: \n{}äx0-9]{0,80}") {
            let _ = read(&line);
            let _ = read(&format!("curl {line}"));
        }
    }
}
