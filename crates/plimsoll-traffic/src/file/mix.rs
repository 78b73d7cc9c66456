//! A mix: requests with weights, each asked for itself.

use super::keys;
use super::tree::{TrafficFileError, TreeNode, TreeTable, TreeValue};
use super::world::{RequestDefaults, Surroundings};
use plimsoll_model::redact;
use plimsoll_model::traffic::{Request, Route, StatusSet};
use plimsoll_model::units::parse_duration_ns;

/// Requests of a file, at most: figures are kept for each.
const REQUESTS_MAX: usize = 10_000;
/// Characters of a name, at most: it heads a column.
const NAME_CHARS_MAX: usize = 80;

/// A request of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    label: String,
    weight: u32,
    method: String,
    /// Path and query, percent-encoded.
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    ok_status: Option<StatusSet>,
    timeout_ns: Option<u64>,
}

impl FileRequest {
    /// As a route of a load; `prefix` comes before its path.
    pub fn route(&self, prefix: &str, defaults: &RequestDefaults) -> Route {
        let has = |name: &str| self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let along = defaults.headers.iter().filter(|(name, _)| !has(name));
        Route {
            label: self.label.clone(),
            request: Request {
                method: self.method.clone(),
                target: format!("{prefix}{}", self.target),
                headers: self.headers.iter().chain(along).cloned().collect(),
                body: self.body.clone(),
            },
            weight: self.weight,
            ok_status: self.ok_status.clone().unwrap_or_else(|| defaults.ok_status.clone()),
            timeout_ns: self.timeout_ns.unwrap_or(defaults.timeout_ns),
        }
    }
}

/// Reads the tree of a file: its base, and its requests.
pub fn read(
    tree: &TreeNode,
    world: &mut dyn Surroundings,
) -> Result<(Option<String>, Vec<FileRequest>), TrafficFileError> {
    let file = tree.table("a file of traffic", &keys::FILE)?;
    let base = file.get("base").map(|base| base.text("'base'")).transpose()?;
    let Some(list) = file.get("request") else {
        return tree.error("nothing is asked: add a [[request]], such as get = \"/\"");
    };
    let nodes = list.list("'request'")?;
    match nodes.len() {
        0 => return list.error("nothing is asked: the list of requests is empty"),
        count if count > REQUESTS_MAX => {
            return list.error(format!("these are {count} requests, and at most {REQUESTS_MAX} can be"));
        }
        _ => {}
    }
    let mut requests: Vec<FileRequest> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let table = node.table("a request", &keys::REQUEST)?;
        let mut asked = request(&table, world)?;
        let taken = |label: &str| requests.iter().any(|other| other.label == label);
        if taken(&asked.label) {
            if let Some(name) = table.get("name") {
                return name.error(format!("two requests are called '{}': give each a name of its own", asked.label));
            }
            let numbered = (2..).map(|number| format!("{} ({number})", asked.label)).find(|label| !taken(label));
            asked.label = numbered.unwrap_or_default();
        }
        requests.push(asked);
    }
    Ok((base.map(str::to_owned), requests))
}

fn request(table: &TreeTable, world: &mut dyn Surroundings) -> Result<FileRequest, TrafficFileError> {
    let (method, path) = asked(table)?;
    let target = target(path)?;
    let name = table.get("name").map(name).transpose()?;
    let mut headers = table.get("headers").map_or(Ok(Vec::new()), headers)?;
    let (body, content_type) = body(table, world)?;
    if let Some(content_type) = content_type
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        headers.push(("content-type".into(), content_type.into()));
    }
    let expect = table.get("expect").map(|node| node.table("'expect'", &keys::EXPECT)).transpose()?;
    let status = expect.and_then(|expect| expect.get("status"));
    Ok(FileRequest {
        label: name.unwrap_or_else(|| label(&method, &target)),
        weight: table.get("weight").map_or(Ok(1), |weight| weight.whole("'weight'", 1, 1_000_000))? as u32,
        method,
        target,
        headers,
        body,
        ok_status: status.map(|node| node.read("'status'", StatusSet::parse)).transpose()?,
        timeout_ns: table.get("timeout").map(timeout).transpose()?,
    })
}

/// The method, and the value that says the path.
fn asked<'a>(table: &TreeTable<'a>) -> Result<(String, &'a TreeNode), TrafficFileError> {
    let verbs = table.given(&keys::VERBS);
    let (method, url) = (table.get("method"), table.get("url"));
    match (verbs.as_slice(), method, url) {
        ([(verb, path)], None, None) => Ok((verb.name.to_ascii_uppercase(), path)),
        ([], method, Some(url)) => {
            let method = method.map_or(Ok("GET"), |method| method.text("'method'"))?;
            Ok((method.to_owned(), url))
        }
        ([], _, None) => table.node.error("this asks for nothing: give it a method and path, such as get = \"/items\""),
        ([_, (second, _), ..], ..) => Err(TrafficFileError::new(
            second.at,
            format!("'{}' is a second method: make a request of its own of it", second.name),
        )),
        ([(verb, _)], ..) => Err(TrafficFileError::new(
            verb.at,
            format!("'{}' says method and path already: leave 'method' and 'url' out", verb.name),
        )),
    }
}

/// A path and query as they are sent.
fn target(node: &TreeNode) -> Result<String, TrafficFileError> {
    let path = node.text("a path")?;
    if path.contains("://") && !path.starts_with('/') {
        return node.error("this is a whole URL: write the path here, and scheme and host once, as 'base'");
    }
    if !path.starts_with('/') {
        return node.error(format!("'{path}' is no path: it begins with /"));
    }
    let path = path.split('#').next().unwrap_or_default();
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte.is_ascii_graphic() {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

/// The name of what has none: method and path.
fn label(method: &str, target: &str) -> String {
    format!("{method} {}", redact::path(target.split('?').next().unwrap_or_default()))
}

fn name(node: &TreeNode) -> Result<String, TrafficFileError> {
    let name = node.text("'name'")?.trim();
    let count = name.chars().count();
    match count == 0 || count > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        true => node.error(format!("a name is a line of 1 to {NAME_CHARS_MAX} characters")),
        false => Ok(name.to_owned()),
    }
}

fn timeout(node: &TreeNode) -> Result<u64, TrafficFileError> {
    match node.read("'timeout'", parse_duration_ns)? {
        0 => node.error("'timeout': more than 0, such as 2s"),
        ns => Ok(ns),
    }
}

fn headers(node: &TreeNode) -> Result<Vec<(String, String)>, TrafficFileError> {
    let mut headers = Vec::new();
    for (key, value) in node.open_table("'headers'")?.entries {
        let text = value.text(&format!("the header '{}'", key.name))?;
        headers.push((key.name.clone(), text.trim().to_owned()));
    }
    Ok(headers)
}

/// The body, and the type that it is of unless a header says another.
fn body(table: &TreeTable, world: &mut dyn Surroundings) -> Result<(Vec<u8>, Option<&'static str>), TrafficFileError> {
    match (table.get("body"), table.get("json")) {
        (None, None) => Ok((Vec::new(), None)),
        (Some(_), Some(json)) => json.error("a request has one body: leave 'body' or 'json' out"),
        (None, Some(json)) => {
            let mut text = String::new();
            write_json(json, &mut text)?;
            Ok((text.into_bytes(), Some("application/json")))
        }
        (Some(node), None) => {
            let text = node.text("'body'")?;
            match text.strip_prefix('@') {
                None => Ok((text.as_bytes().to_vec(), None)),
                Some(path) => match world.file(path) {
                    Ok(bytes) => Ok((bytes, None)),
                    Err(why) => node.error(format!("the file '{path}' {why}")),
                },
            }
        }
    }
}

/// A value as JSON.
fn write_json(node: &TreeNode, out: &mut String) -> Result<(), TrafficFileError> {
    let comma = |out: &mut String, number: usize| {
        if number > 0 {
            out.push(',')
        }
    };
    match &node.value {
        TreeValue::Null => out.push_str("null"),
        TreeValue::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        TreeValue::Number(number) => {
            let plain = number.replace('_', "");
            let plain = plain.strip_prefix('+').unwrap_or(&plain);
            match plain.parse::<f64>() {
                Ok(value) if value.is_finite() => out.push_str(plain),
                _ => return node.error(format!("JSON has no number '{number}'")),
            }
        }
        TreeValue::Text(text) => write_text(text, out),
        TreeValue::List(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                comma(out, number);
                write_json(item, out)?;
            }
            out.push(']');
        }
        TreeValue::Table(entries) => {
            out.push('{');
            for (number, (key, value)) in entries.iter().enumerate() {
                comma(out, number);
                write_text(&key.name, out);
                out.push(':');
                write_json(value, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// A text as JSON.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
