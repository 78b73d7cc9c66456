//! Bodies of several parts (`multipart/form-data`, RFC 7578): texts and files, as a form with an upload sends them.

use super::texts::Known;
use super::tree::{TrafficFileError, TreeNode, TreeValue};
use plimsoll_model::rng::mix;

/// Bytes, whether they are filled in, and their type.
pub type FileBody = (Vec<u8>, bool, Option<String>);

/// Types by the end of a file's name; of others it is not known.
const TYPES: [(&str, &str); 12] = [
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// One part: what stands before its content, the content, and whether that is a template.
struct FormPart {
    head: String,
    content: Vec<u8>,
    is_filled: bool,
}

/// The body of a table of parts, each a text or `@FILE`, or a list of these.
pub fn multipart(node: &TreeNode, known: &mut Known, raw: bool) -> Result<FileBody, TrafficFileError> {
    let mut parts = Vec::new();
    for (key, value) in node.open_table("'multipart'")?.entries {
        match &value.value {
            TreeValue::List(items) => {
                for item in items {
                    parts.push(part(&key.name, item, known, raw)?);
                }
            }
            _ => parts.push(part(&key.name, value, known, raw)?),
        }
    }
    if parts.is_empty() {
        return node.error("'multipart' has no part: such as { note = \"hello\", file = \"@photo.jpg\" }");
    }
    let boundary = boundary(&parts);
    // Where one is filled in the whole is a template.
    let is_filled = parts.iter().any(|part| part.is_filled);
    let mut body = Vec::new();
    for FormPart { head, content, is_filled: is_template } in parts {
        let text = format!("--{boundary}\r\n{head}\r\n\r\n");
        match is_filled {
            true => body.extend(literal(text.as_bytes())),
            false => body.extend_from_slice(text.as_bytes()),
        }
        match is_filled && !is_template {
            true => body.extend(literal(&content)),
            false => body.extend(content),
        }
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((body, is_filled, Some(format!("multipart/form-data; boundary={boundary}"))))
}

fn part(name: &str, node: &TreeNode, known: &mut Known, raw: bool) -> Result<FormPart, TrafficFileError> {
    let text = node.text(&format!("the part '{name}'"))?;
    let name = quoted(name);
    let Some(path) = text.strip_prefix('@').filter(|_| !raw) else {
        let (text, is_filled) = known.text(node, text, raw)?;
        let head = format!("Content-Disposition: form-data; name=\"{name}\"");
        return Ok(FormPart { head, content: text.into_bytes(), is_filled });
    };
    let content = known.file(node, path)?;
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let end = file.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let kind = TYPES.iter().find(|(known, _)| end.as_deref() == Some(*known));
    let kind = kind.map_or("application/octet-stream", |(_, kind)| *kind);
    let file = quoted(file);
    let head = format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\nContent-Type: {kind}");
    Ok(FormPart { head, content, is_filled: false })
}

/// A name between quotation marks, as browsers write it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// What parts are divided by: it follows from them, and stands in none.
fn boundary(parts: &[FormPart]) -> String {
    let bytes = || parts.iter().flat_map(|part| part.head.bytes().chain(part.content.iter().copied()));
    let mut state = bytes().fold(0, |state: u64, byte| state.rotate_left(8) ^ mix(state ^ u64::from(byte)));
    loop {
        let boundary = format!("----plimsoll{state:016x}");
        let stands_in =
            |part: &FormPart| part.content.windows(boundary.len()).any(|window| window == boundary.as_bytes());
        if !parts.iter().any(stands_in) {
            return boundary;
        }
        state = mix(state);
    }
}

/// Bytes that stand for themselves in a template.
fn literal(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|two| two == b"{{") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(b"{{ '{{' }}");
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}
