//! Builds multipart bodies (`multipart/form-data`, RFC 7578) from texts and files, as upload forms
//! send them.

use super::keys;
use super::texts::TextScope;
use super::tree::{TrafficFileError, TreeNode, TreeValue};
use plimsoll_model::rng::mix_bits;

/// A request body: its bytes, whether the bytes are a template, and their media type.
pub type FileBody = (Vec<u8>, bool, Option<String>);

/// The media types by file extension.
const MEDIA_TYPES_BY_EXTENSION: [(&str, &str); 12] = [
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

/// One part of a form: its header fields, its content, and whether the content is a template.
struct FormPart {
    header_lines: String,
    content: Vec<u8>,
    is_template: bool,
}

/// Builds the body of a `multipart` table. Each entry of the table is a text, `@FILE`, a table with
/// content and type, or a list of such values.
pub fn build_multipart_body(
    node: &TreeNode,
    text_scope: &mut TextScope,
    raw: bool,
) -> Result<FileBody, TrafficFileError> {
    let mut parts = Vec::new();
    for (key, value) in node.open_table("'multipart'")?.entries {
        match &value.value {
            TreeValue::List(items) => {
                for item in items {
                    parts.push(parse_part(&key.name, item, text_scope, raw)?);
                }
            }
            _ => parts.push(parse_part(&key.name, value, text_scope, raw)?),
        }
    }
    if parts.is_empty() {
        return node.error("'multipart' has no part: add a part, such as { note = \"hello\", file = \"@photo.jpg\" }");
    }
    let boundary = choose_boundary(&parts);
    // A multipart body is a template as a whole, or not at all. If one part is a template, the text
    // of the other parts is escaped.
    let is_filled = parts.iter().any(|part| part.is_template);
    let mut body = Vec::new();
    for FormPart { header_lines: head, content, is_template } in parts {
        let text = format!("--{boundary}\r\n{head}\r\n\r\n");
        match is_filled {
            true => body.extend(escape_as_template(text.as_bytes())),
            false => body.extend_from_slice(text.as_bytes()),
        }
        match is_filled && !is_template {
            true => body.extend(escape_as_template(&content)),
            false => body.extend(content),
        }
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((body, is_filled, Some(format!("multipart/form-data; boundary={boundary}"))))
}

/// The settings of one form part: its text or file path, its media type, and its file name.
struct FormPartSettings<'a> {
    node: &'a TreeNode,
    text: &'a str,
    is_file: bool,
    kind: Option<&'a str>,
    file_name: Option<&'a str>,
}

impl<'a> FormPartSettings<'a> {
    /// Parses one entry of a `multipart` table: a text, `@FILE`, or a table with the keys
    /// [`keys::FORM_PART_KEYS`].
    fn read(name: &str, node: &'a TreeNode, raw: bool) -> Result<FormPartSettings<'a>, TrafficFileError> {
        let what = format!("the form part '{name}'");
        let TreeValue::Table(_) = &node.value else {
            let text = node.text(&what)?;
            let path = text.strip_prefix('@').filter(|_| !raw);
            let (text, is_file) = (path.unwrap_or(text), path.is_some());
            return Ok(FormPartSettings { node, text, is_file, kind: None, file_name: None });
        };
        let table = node.table("a part of a form", &keys::FORM_PART_KEYS)?;
        let said = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(node) => match node.text(&format!("'{key}'"))? {
                text if key != "text" && text.contains(['\r', '\n', '\0']) => {
                    node.error(format!("'{key}' of the form part '{name}' contains a line break or a NUL character"))
                }
                text => Ok(Some((node, text))),
            },
        };
        let second = |found: Option<(&TreeNode, &'a str)>| found.map(|(_, text)| text);
        let (kind, file_name) = (second(said("type")?), second(said("filename")?));
        match (said("text")?, said("file")?) {
            (Some((node, text)), None) => Ok(FormPartSettings { node, text, is_file: false, kind, file_name }),
            (None, Some((node, text))) => Ok(FormPartSettings { node, text, is_file: true, kind, file_name }),
            _ => node.error(format!(
                "the form part '{name}' must have either 'text' or 'file', such as {{ file = \"a.csv\", type = \
                 \"text/csv\" }}"
            )),
        }
    }
}

fn parse_part(
    name: &str,
    node: &TreeNode,
    text_scope: &mut TextScope,
    raw: bool,
) -> Result<FormPart, TrafficFileError> {
    let said = FormPartSettings::read(name, node, raw)?;
    let (path, node) = (said.text, said.node);
    let (content, is_filled) = match said.is_file {
        true => (text_scope.read_body_file(node, path)?, false),
        false => text_scope.parse_text(node, path, raw).map(|(text, is_filled)| (text.into_bytes(), is_filled))?,
    };
    let of_path = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let file_name = said.file_name.or(said.is_file.then_some(of_path));
    let kind = said.kind.or_else(|| said.is_file.then(|| media_type_for_extension(of_path)));
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", escape_header_parameter(name));
    if let Some(file_name) = file_name {
        head.push_str(&format!("; filename=\"{}\"", escape_header_parameter(file_name)));
    }
    if let Some(kind) = kind {
        head.push_str(&format!("\r\nContent-Type: {kind}"));
    }
    Ok(FormPart { header_lines: head, content, is_template: is_filled })
}

/// Returns the media type for the extension of a file name.
fn media_type_for_extension(file: &str) -> &'static str {
    let end = file.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let kind = MEDIA_TYPES_BY_EXTENSION.iter().find(|(known, _)| end.as_deref() == Some(*known));
    kind.map_or("application/octet-stream", |(_, kind)| *kind)
}

/// Escapes a name for a quoted header parameter, as browsers do.
fn escape_header_parameter(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns the boundary between the parts. The boundary is derived from the parts, so equal bodies
/// have equal boundaries. No part contains the boundary.
fn choose_boundary(parts: &[FormPart]) -> String {
    let bytes = || parts.iter().flat_map(|part| part.header_lines.bytes().chain(part.content.iter().copied()));
    let mut state = bytes().fold(0, |state: u64, byte| state.rotate_left(8) ^ mix_bits(state ^ u64::from(byte)));
    loop {
        let boundary = format!("----plimsoll{state:016x}");
        let stands_in =
            |part: &FormPart| part.content.windows(boundary.len()).any(|window| window == boundary.as_bytes());
        if !parts.iter().any(stands_in) {
            return boundary;
        }
        state = mix_bits(state);
    }
}

/// Returns a template that renders to exactly these bytes, with every `{{` escaped.
fn escape_as_template(bytes: &[u8]) -> Vec<u8> {
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
