//! Parses the values of flags for header fields, bodies, paths and tags.
//!
//! Not here: the flags themselves, and the use of the values.

use plimsoll_model::failure::Failure;
use plimsoll_model::{BodySource, redact};
use plimsoll_sys::files::{self, FilePurpose};
use std::path::Path;

/// The largest number of characters in a tag's key, which is ASCII.
const TAG_KEY_CHARS_MAX: usize = 40;
/// The largest number of characters in a tag's value.
const TAG_VALUE_CHARS_MAX: usize = 120;

/// Parses the value of --body: text, `@FILE`, or `-` for standard input. Returns the source and the
/// bytes.
pub fn parse_body_flag(text: &str) -> Result<(BodySource<String>, Vec<u8>), Failure> {
    if text == "-" {
        let read = files::read_stdin(FilePurpose::Body);
        return Ok((
            BodySource::Stdin,
            read.map_err(|why| Failure::cannot_start(format!("--body -: standard input {why}")))?,
        ));
    }
    match text.strip_prefix('@') {
        Some(path) => Ok((BodySource::File(path.to_owned()), body_file(path)?)),
        None => Ok((BodySource::Text, text.as_bytes().to_vec())),
    }
}

/// Reads a request body from a file.
pub fn body_file(path: &str) -> Result<Vec<u8>, Failure> {
    files::read(path.as_ref(), FilePurpose::Body)
        .map_err(|why| Failure::cannot_start(format!("--body: the file '{path}' {why}")))
}

/// Parses a header field `Name: value` of the flag --header.
pub fn parse_header_flag(text: &str) -> Result<(String, String), Failure> {
    // The text of a header field may contain a secret, so errors never quote the field's value.
    let (name, value) =
        text.split_once(':').ok_or_else(|| Failure::usage("--header: write 'Name: value', with a colon"))?;
    // A header field name contains no blanks. A text with blanks before the colon may be a secret
    // value, so the error shows it only in part.
    if name.trim().is_empty() || name.trim().contains(char::is_whitespace) {
        return Err(Failure::usage(format!(
            "--header: '{name}' is not a header name: write 'Name: value'",
            name = redact::redact_excerpt(name.trim())
        )));
    }
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Returns a path as UTF-8 text. Only a path in UTF-8 can be stored in a run file and later lead to
/// the same file again.
pub fn path_text(flag: &str, path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::usage(format!("{flag}: a path must be text in UTF-8: give the file another name")))
}

/// Parses a tag `key=value`. Run files store tags unredacted, so a key that names a secret is
/// refused.
pub fn parse_tag(text: &str) -> Result<(String, String), Failure> {
    let refused = |why: &str| Failure::usage(format!("--tag: {why}"));
    let (key, value) = text.split_once('=').ok_or_else(|| refused("write KEY=VALUE, such as --tag release=1.4"))?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if key.is_empty() || key.len() > TAG_KEY_CHARS_MAX || !key.chars().all(is_key) {
        return Err(refused("the key of a tag has 1 to 40 characters: letters, digits, - _ and ."));
    }
    if value.is_empty() || value.chars().count() > TAG_VALUE_CHARS_MAX || value.chars().any(char::is_control) {
        return Err(refused("the value of a tag has 1 to 120 characters, without control characters"));
    }
    if redact::is_secret_name(key) {
        return Err(refused(
            "the key of the tag names a secret, and run files contain tags unredacted: choose another key",
        ));
    }
    Ok((key.to_owned(), value.to_owned()))
}
