//! Builds the request body of a curl command line from its data pieces, files and forms.
//!
//! Not here: parsing the command line (`plimsoll_traffic`), and options that do not belong to the
//! body.

use crate::fields;
use plimsoll_model::BodySource;
use plimsoll_model::failure::Failure;
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_traffic::import::curl::{CurlData, CurlPart, CurlRequest, form_encoded};

/// The bytes of a request body, with their source (text or file).
pub type BodyInput = (BodySource<String>, Vec<u8>);

/// Joins the data pieces (-d and similar options) of a curl command line to one body; `None`
/// without pieces.
pub fn build_body(curl: &CurlRequest) -> Result<Option<BodyInput>, Failure> {
    if let [CurlData::File { path, stripped: false }] = curl.data.as_slice()
        && path != "-"
        && !curl.sends_data_in_query
    {
        return Ok(Some((BodySource::File(path.clone()), fields::body_file(path)?)));
    }
    let mut bytes = Vec::new();
    for (number, piece) in curl.data.iter().enumerate() {
        if number > 0 && !curl.json {
            bytes.push(b'&');
        }
        bytes.extend(read_data_piece(piece)?);
    }
    Ok((!curl.data.is_empty()).then_some((BodySource::Text, bytes)))
}

/// Returns the bytes of one data piece. If the data piece names a file, reads the file.
fn read_data_piece(piece: &CurlData) -> Result<Vec<u8>, Failure> {
    let read = |path: &str| match path {
        "-" => files::read_stdin(FilePurpose::Body)
            .map_err(|why| Failure::cannot_start(format!("--curl: standard input {why}"))),
        path => files::read(path.as_ref(), FilePurpose::Body)
            .map_err(|why| Failure::cannot_start(format!("--curl: the file '{path}' {why}"))),
    };
    Ok(match piece {
        CurlData::Text(text) => text.clone().into_bytes(),
        CurlData::File { path, stripped: false } => read(path)?,
        CurlData::File { path, stripped: true } => {
            read(path)?.into_iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect()
        }
        CurlData::EncodedFile { name, path } => {
            let encoded = form_encoded(&read(path)?);
            if name.is_empty() { encoded } else { format!("{name}={encoded}") }.into_bytes()
        }
    })
}

/// Encodes a multipart form. Returns the bytes of the form and its boundary. No content of the form
/// contains the boundary, and the same form always gets the same boundary.
pub fn encode_multipart(form: &[CurlPart]) -> Result<(Vec<u8>, String), Failure> {
    let contents = form.iter().map(|part| read_data_piece(&part.data)).collect::<Result<Vec<_>, _>>()?;
    let stands = |boundary: &str| contents.iter().any(|it| memchr::memmem::find(it, boundary.as_bytes()).is_some());
    let boundaries = (0u32..).map(|number| format!("------------------------plimsoll{number:08}"));
    let boundary = boundaries.take(1000).find(|boundary| !stands(boundary)).unwrap_or_default();
    let mut bytes = Vec::new();
    // The names of form fields and files are escaped as in curl since 7.81 and in browsers.
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    for (part, content) in form.iter().zip(&contents) {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&part.name));
        if let Some(name) = &part.file_name {
            head.push_str(&format!("; filename=\"{}\"", quoted(name)));
        }
        if let Some(kind) = &part.content_type {
            head.push_str(&format!("\r\nContent-Type: {}", kind.replace(['\r', '\n'], " ")));
        }
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((bytes, boundary))
}

/// Returns the URL with `query` appended to its query string, and without its fragment.
pub fn with_query(url: &str, query: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_boundary_does_not_occur_in_the_form() {
        let part = |text: &str| CurlPart {
            name: "a\"b".to_owned(),
            data: CurlData::Text(text.to_owned()),
            file_name: None,
            content_type: None,
        };
        let (_, first) = encode_multipart(&[part("x")]).expect("a form");
        let (bytes, other) = encode_multipart(&[part(&first)]).expect("a form");
        assert_ne!(first, other);
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(
            text,
            format!("--{other}\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\n{first}\r\n--{other}--\r\n")
        );
    }

    #[test]
    fn queries_get_further_parameters() {
        for (url, expect) in [("h", "h?a=1"), ("h/?b", "h/?b&a=1"), ("h/?b#top", "h/?b&a=1")] {
            assert_eq!(with_query(url, "a=1"), expect);
        }
    }
}
