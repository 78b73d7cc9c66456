//! A header field and a body as flags say them.
//!
//! Not here: which flags there are, and what a request makes of them.

use plimsoll_model::failure::Failure;
use plimsoll_model::{BodyFrom, redact};
use plimsoll_sys::files::{self, Use};

/// A body: where it is from, and its bytes.
pub fn body(text: &str) -> Result<(BodyFrom<String>, Vec<u8>), Failure> {
    if text == "-" {
        let read = files::read_stdin(Use::Body);
        return Ok((BodyFrom::Input, read.map_err(|why| Failure::start(format!("--body -: standard input {why}")))?));
    }
    match text.strip_prefix('@') {
        Some(path) => Ok((BodyFrom::File(path.to_owned()), body_file(path)?)),
        None => Ok((BodyFrom::Text, text.as_bytes().to_vec())),
    }
}

/// The body in a file.
pub fn body_file(path: &str) -> Result<Vec<u8>, Failure> {
    files::read(path.as_ref(), Use::Body).map_err(|why| Failure::start(format!("--body: the file '{path}' {why}")))
}

/// A header field.
pub fn header(text: &str) -> Result<(String, String), Failure> {
    // The text may hold a secret: only the name is ever repeated.
    let (name, value) =
        text.split_once(':').ok_or_else(|| Failure::usage("--header: write 'Name: value', with a colon"))?;
    // What has blanks in it is no name, and may be a value whose colon stands elsewhere.
    if name.trim().is_empty() || name.trim().contains(char::is_whitespace) {
        return Err(Failure::usage(format!(
            "--header: '{}' is not a header name: write 'Name: value'",
            redact::excerpt(name.trim())
        )));
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
