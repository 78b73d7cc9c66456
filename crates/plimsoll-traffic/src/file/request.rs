//! Parses one request of a traffic file with its expectations. Requests of a mix, steps of
//! scenarios, and setup and cleanup requests share this code.

use super::expect::{parse_captures, parse_expectations};
use super::file_context::RequestDefaults;
use super::keys;
use super::multipart::{FileBody, build_multipart_body};
use super::texts::{PlanText, TextScope, escape_template_braces, push_json_string};
use super::tree::{TrafficFileError, TreeNode, TreeTable, TreeValue};
use crate::target_url::percent_encode_target;
use plimsoll_model::expect::{Expectations, ResponseCapture};
use plimsoll_model::redact::{self, RedactionLevel};
use plimsoll_model::template::{Template, redact_target_template};
use plimsoll_model::traffic::{Request, Route, StatusSet, TemplateFlags};
use plimsoll_model::units::parse_duration_ns;

/// The largest accepted number of requests in a file. Each request of a traffic file has its own
/// figures in memory and in reports.
pub const REQUESTS_MAX: usize = 10_000;
/// The maximum length of the name of a request or scenario, in characters. Names are column
/// headings in reports.
const NAME_CHARS_MAX: usize = 80;

/// A parsed request of a traffic file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// The name of the request in reports.
    pub label: String,
    weight: u32,
    method: String,
    /// The path and query. A target without template values is percent-encoded.
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    ok_status: Option<StatusSet>,
    timeout_ns: Option<u64>,
    template_flags: TemplateFlags,
    expect: Expectations,
    captures: Vec<ResponseCapture>,
    redirects_max: u8,
}

impl FileRequest {
    /// Converts the request to a route of the load plan. `prefix` precedes the path. `defaults` are
    /// the settings that apply if the request does not state its own.
    pub fn route(&self, prefix: &str, defaults: &RequestDefaults) -> Route {
        let has = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let along = defaults.headers.iter().filter(|(name, _)| !has(name));
        Route {
            label: self.label.clone(),
            request: Request {
                method: self.method.clone(),
                // A target that begins with a template value, such as a captured `Location`, is a
                // whole path and gets no prefix.
                target: if self.target.starts_with('/') {
                    format!("{prefix}{}", self.target)
                } else {
                    self.target.clone()
                },
                headers: self.headers.iter().chain(along).cloned().collect(),
                body: self.body.clone(),
            },
            weight: self.weight,
            ok_status: self.ok_status.clone().unwrap_or_else(|| defaults.ok_status.clone()),
            timeout_ns: self.timeout_ns.unwrap_or(defaults.timeout_ns),
            template_flags: self.template_flags,
            expect: self.expect.clone(),
            captures: self.captures.clone(),
            redirects_max: self.redirects_max,
            grpc: None,
        }
    }
}

/// Parses a request from its table.
pub fn parse_request(table: &TreeTable, text_scope: &mut TextScope) -> Result<FileRequest, TrafficFileError> {
    let raw = table.get("raw").map_or(Ok(false), |raw| raw.flag("'raw'"))?;
    let (method, path) = method_and_path(table)?;
    let (target, target_filled) = parse_target(path, &method, text_scope, raw)?;
    // Names are recorded in run files, and importers derive names from paths, so secrets in a name
    // are redacted.
    let name = table.get("name").map(parse_name).transpose()?.map(|name| redact::redact_request_name(&name));
    let name = name.filter(|name| !name.trim().is_empty());
    let (mut headers, headers_filled) =
        table.get("headers").map_or(Ok(Default::default()), |it| parse_headers(it, text_scope, raw))?;
    let (body, body_filled, content_type) = parse_body(table, text_scope, raw)?;
    if let Some(content_type) = content_type
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        headers.push(("content-type".into(), content_type));
    }
    let expect = table.get("expect").map(|node| parse_expectations(node, text_scope.file_context, raw)).transpose()?;
    let (ok_status, expect) = expect.unwrap_or_default();
    // Only steps and setup or cleanup requests may have captures, because only their lists of
    // accepted keys contain `capture`.
    let captures: Vec<ResponseCapture> =
        table.get("capture").map_or(Ok(Vec::new()), |node| parse_captures(node, text_scope.file_context))?;
    let looks_into =
        expect.body.is_some() || !expect.json.is_empty() || captures.iter().any(|it| it.from.reads_content());
    if let (true, "HEAD", Some(node)) = (looks_into, method.as_str(), table.get("capture").or(table.get("expect"))) {
        return node.error("the response to a HEAD request has no content: use get, or check and capture only headers");
    }
    Ok(FileRequest {
        label: name.unwrap_or_else(|| default_label(&method, &target, target_filled)),
        weight: table.get("weight").map_or(Ok(1), |weight| weight.whole_number("'weight'", 1, 1_000_000))? as u32,
        method,
        target,
        headers,
        body,
        ok_status,
        expect,
        captures,
        redirects_max: table
            .get("follow")
            .map_or(Ok(0), |node| node.whole_number("'follow'", 0, u64::from(Route::FOLLOW_REDIRECTS_MAX)))?
            as u8,
        timeout_ns: table.get("timeout").map(parse_timeout).transpose()?,
        template_flags: TemplateFlags { target: target_filled, headers: headers_filled, body: body_filled },
    })
}

/// Returns the HTTP method of a request, and the node with its path.
fn method_and_path<'a>(table: &TreeTable<'a>) -> Result<(String, &'a TreeNode), TrafficFileError> {
    let verbs = table.find_keys(&keys::HTTP_METHOD_KEYS);
    let (method, url) = (table.get("method"), table.get("url"));
    match (verbs.as_slice(), method, url) {
        ([(verb, path)], None, None) => Ok((verb.name.to_ascii_uppercase(), path)),
        ([], method, Some(url)) => {
            let method = method.map_or(Ok("GET"), |method| method.text("'method'"))?;
            Ok((method.to_owned(), url))
        }
        ([], _, None) => table.node.error("the request has no method and path: add both, such as get = \"/items\""),
        ([_, (second, _), ..], ..) => Err(TrafficFileError::new(
            second.at,
            format!(
                "'{method}' is a second method of the same request: move this method into another request",
                method = second.name
            ),
        )),
        ([(verb, _)], ..) => Err(TrafficFileError::new(
            verb.at,
            format!(
                "the key '{method}' already sets the method and path of the request: leave 'method' and 'url' out",
                method = verb.name
            ),
        )),
    }
}

/// Parses a path and query. The result is either percent-encoded or a template.
fn parse_target(
    node: &TreeNode,
    method: &str,
    text_scope: &mut TextScope,
    raw: bool,
) -> Result<PlanText, TrafficFileError> {
    let path = node.text("a path")?;
    let (path, is_filled) = text_scope.parse_text(node, path, raw)?;
    if path.contains("://") && !path.starts_with(['/', '{']) {
        return node.error(
            "a complete URL is not allowed here: write only the path, and write the scheme and host once, as 'base'",
        );
    }
    // The target of `OPTIONS *` is the server itself, not a path.
    if path == "*" && method.eq_ignore_ascii_case("options") {
        return Ok((path, false));
    }
    // The path may begin with a template value.
    let begins = path.starts_with('/') || (is_filled && path.starts_with("{{"));
    if !begins {
        return node.error(format!("'{path}' is not a path: a path begins with /"));
    }
    if is_filled {
        return Ok((path, true));
    }
    Ok((percent_encode_target(path.split('#').next().unwrap_or_default()), false))
}

/// Returns the default name of a request: its method and its path without the query, with secrets
/// redacted.
fn default_label(method: &str, target: &str, is_filled: bool) -> String {
    let shown = if is_filled {
        redact_target_template(target, RedactionLevel::Secrets)
    } else {
        redact::redact_target(target, RedactionLevel::Secrets)
    };
    format!("{method} {}", shown.split('?').next().unwrap_or_default())
}

pub fn parse_name(node: &TreeNode) -> Result<String, TrafficFileError> {
    let name = node.text("'name'")?.trim();
    let count = name.chars().count();
    match count == 0 || count > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        true => node.error(format!("'name' must be one line of 1 to {NAME_CHARS_MAX} characters")),
        false => Ok(name.to_owned()),
    }
}

fn parse_timeout(node: &TreeNode) -> Result<u64, TrafficFileError> {
    match node.read("'timeout'", parse_duration_ns)? {
        0 => node.error("'timeout' must be more than 0, such as 2s"),
        ns => Ok(ns),
    }
}

/// Returns whether a byte is valid in the name of a header field (RFC 9110, token).
fn is_field_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Parses a `headers` table. Returns the header fields, and whether their values are templates.
fn parse_headers(
    node: &TreeNode,
    known: &mut TextScope,
    raw: bool,
) -> Result<(Vec<(String, String)>, bool), TrafficFileError> {
    let entries = node.open_table("'headers'")?.entries;
    let mut headers = Vec::new();
    // A list as the value of a key means several header fields with one name.
    fn header_values(value: &TreeNode) -> &[TreeNode] {
        match &value.value {
            TreeValue::List(items) => items,
            _ => std::slice::from_ref(value),
        }
    }
    for (key, value) in
        entries.iter().flat_map(|(key, value)| header_values(value).iter().map(move |value| (key, value)))
    {
        let text = value.text(&format!("the header '{}'", key.name))?.trim();
        if key.name.is_empty() || !key.name.bytes().all(is_field_name_byte) {
            return Err(TrafficFileError::new(
                key.at,
                // The key may contain a secret value, if the user wrote a whole header field
                // without a colon as the key.
                format!(
                    "\"{key}\" is not the name of a header: a name has only letters, digits and !#$%&'*+-.^_`|~",
                    key = redact::redact_excerpt(&key.name)
                ),
            ));
        }
        if text.contains(['\r', '\n', '\0']) {
            return value.error(format!(
                "the value of the header '{header}' contains a line break or a NUL character",
                header = key.name
            ));
        }
        headers.push((key, known.parse_text(value, text, raw)?));
    }
    let filled = headers.iter().any(|(_, (_, is_filled))| *is_filled);
    let mut out = Vec::new();
    for (key, (text, is_filled)) in headers {
        // Either all header values are templates, or none is. If one value is a template, the other
        // values are escaped.
        let text = if filled && !is_filled { escape_template_braces(&text) } else { text };
        out.push((key.name.clone(), text));
    }
    Ok((out, filled))
}

/// Parses the body of a request. Returns the bytes of the body, whether the body is a template, and
/// the default media type.
fn parse_body(table: &TreeTable, text_scope: &mut TextScope, raw: bool) -> Result<FileBody, TrafficFileError> {
    let given = table.find_keys(&["body", "json", "multipart"]);
    if let [_, (second, node), ..] = given.as_slice() {
        return node.error(format!(
            "a request has one body ('body', 'json' or 'multipart'): leave '{key}' or the other body out",
            key = second.name
        ));
    }
    if let Some(parts) = table.get("multipart") {
        return build_multipart_body(parts, text_scope, raw);
    }
    match (table.get("body"), table.get("json")) {
        (None, None) => Ok((Vec::new(), false, None)),
        (_, Some(json)) => {
            let mut text = String::new();
            let is_filled = write_json(json, text_scope, raw, &mut text)?;
            if !raw && !is_filled && text.contains("{{") {
                // A template without values is rendered here, which undoes the escapes of `{{`.
                let template =
                    Template::parse(&text).map_err(|error| TrafficFileError::new(json.at, error.to_string()))?;
                text = template.replace_values("");
            }
            Ok((text.into_bytes(), is_filled, Some("application/json".into())))
        }
        (Some(node), None) => {
            let text = node.text("'body'")?;
            match text.strip_prefix('@').filter(|_| !raw) {
                None => {
                    text_scope.parse_text(node, text, raw).map(|(text, is_filled)| (text.into_bytes(), is_filled, None))
                }
                Some(path) => Ok((text_scope.read_body_file(node, path)?, false, None)),
            }
        }
    }
}

/// Appends a value to `out` as JSON. Returns whether the JSON contains template values.
fn write_json(
    node: &TreeNode,
    text_scope: &mut TextScope,
    raw: bool,
    out: &mut String,
) -> Result<bool, TrafficFileError> {
    let comma = |out: &mut String, number: usize| {
        if number > 0 {
            out.push(',')
        }
    };
    let mut filled = false;
    match &node.value {
        TreeValue::Null => out.push_str("null"),
        TreeValue::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        TreeValue::Number(number) => {
            let plain = number.replace('_', "");
            let plain = plain.strip_prefix('+').unwrap_or(&plain);
            match plain.parse::<f64>() {
                Ok(value) if value.is_finite() => out.push_str(plain),
                _ => return node.error(format!("the value '{number}' in 'json' is not a number that JSON allows")),
            }
        }
        TreeValue::Text(text) => filled = text_scope.push_json_text(node, text, raw, out)?,
        TreeValue::List(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                comma(out, number);
                filled |= write_json(item, text_scope, raw, out)?;
            }
            out.push(']');
        }
        TreeValue::Table(entries) => {
            out.push('{');
            for (number, (key, value)) in entries.iter().enumerate() {
                comma(out, number);
                push_json_string(&key.name, out);
                out.push(':');
                filled |= write_json(value, text_scope, raw, out)?;
            }
            out.push('}');
        }
    }
    Ok(filled)
}
