//! Counts the HTTP messages in the text that a script's `request()` returns, because the number of
//! expected responses must be known. If the text is not valid HTTP, this module finds the position
//! of the error and wrk's text for the error. The text itself is sent unchanged.
//!
//! An error in the first text of a script prevents the load ([`parse_messages`]). For each later
//! text, [`count_messages`] only counts the messages and ignores errors. Not here: how a server
//! interprets the text.

use plimsoll_wire::Batch;

/// The first position at which a text is not valid HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpSyntaxError {
    /// The reason, in the words of wrk.
    pub reason: &'static str,
    /// Line of the invalid position in the text, from 1.
    pub line: usize,
    /// Column of the invalid position in its line, in bytes, from 1.
    pub column: usize,
}

/// The HTTP methods that wrk's parser knows.
const WRK_METHODS: [&str; 33] = [
    "DELETE",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPFIND",
    "PROPPATCH",
    "SEARCH",
    "UNLOCK",
    "BIND",
    "REBIND",
    "UNBIND",
    "ACL",
    "REPORT",
    "MKACTIVITY",
    "CHECKOUT",
    "MERGE",
    "M-SEARCH",
    "NOTIFY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PATCH",
    "PURGE",
    "MKCALENDAR",
    "LINK",
    "UNLINK",
];

const INCOMPLETE_REQUEST_TEXT: &str = "incomplete request";

/// Parses all of `batch.bytes`, and stores for each message whether it is a HEAD request. Returns
/// the first syntax error in the text, if there is one.
pub fn parse_messages(batch: &mut Batch) -> Result<(), HttpSyntaxError> {
    batch.head_request_flags.clear();
    let Batch { bytes, head_request_flags, .. } = batch;
    let bytes: &[u8] = bytes;
    let mut reading = HttpMessageParser { bytes, at: 0 };
    let read = loop {
        // Blank lines between messages are skipped.
        while matches!(reading.peek_byte(), Some(b'\r' | b'\n')) {
            reading.at += 1;
        }
        if reading.peek_byte().is_none() {
            break if head_request_flags.is_empty() { Err(INCOMPLETE_REQUEST_TEXT) } else { Ok(()) };
        }
        match reading.parse_message() {
            Ok(head_only) => head_request_flags.push(head_only),
            Err(reason) => break Err(reason),
        }
    };
    read.map_err(|reason| {
        let before = &bytes[..reading.at.min(bytes.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        HttpSyntaxError { reason, line, column: 1 + before.len() - line_start }
    })
}

/// Counts the messages in `batch.bytes` that can be parsed. The count is at least 1.
pub fn count_messages(batch: &mut Batch) {
    if parse_messages(batch).is_err() && batch.head_request_flags.is_empty() {
        // A text without any valid HTTP message is sent unchanged, and one response is expected.
        batch.head_request_flags.push(batch.bytes.starts_with(b"HEAD "));
    }
}

struct HttpMessageParser<'a> {
    bytes: &'a [u8],
    /// The position of the parser in the text; all earlier bytes are valid. After an error, the
    /// byte at the parser's position is invalid.
    at: usize,
}

/// Whether the byte may occur in a method or a field's name (an HTTP token).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

impl HttpMessageParser<'_> {
    fn peek_byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips the bytes for which `is_wanted` returns true, and returns their range. Returns an
    /// error if no other byte follows, because the message is then incomplete.
    fn take_while(&mut self, is_wanted: impl Fn(u8) -> bool) -> Result<(usize, usize), &'static str> {
        let from = self.at;
        let rest = &self.bytes[from..];
        match rest.iter().position(|byte| !is_wanted(*byte)) {
            Some(length) => {
                self.at += length;
                Ok((from, self.at))
            }
            None => {
                self.at = self.bytes.len();
                Err(INCOMPLETE_REQUEST_TEXT)
            }
        }
    }

    /// Parses the end of a line: LF or CRLF.
    fn parse_line_end(&mut self) -> Result<(), &'static str> {
        if self.peek_byte() == Some(b'\r') {
            self.at += 1;
        }
        match self.peek_byte() {
            Some(b'\n') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err("LF character expected"),
            None => Err(INCOMPLETE_REQUEST_TEXT),
        }
    }

    /// Parses one message. Returns whether the message is a HEAD request, whose response has no
    /// body.
    fn parse_message(&mut self) -> Result<bool, &'static str> {
        let head_only = self.parse_method()?;
        self.parse_target()?;
        self.parse_version()?;
        let (mut length, mut chunked) = (None::<usize>, false);
        loop {
            match self.peek_byte() {
                Some(b'\r' | b'\n') => {
                    self.parse_line_end()?;
                    break;
                }
                None => return Err(INCOMPLETE_REQUEST_TEXT),
                Some(_) => self.parse_field(&mut length, &mut chunked)?,
            }
        }
        if chunked {
            self.skip_chunks()?
        } else {
            self.skip_content(length.unwrap_or(0))?
        }
        Ok(head_only)
    }

    fn parse_method(&mut self) -> Result<bool, &'static str> {
        let from = self.at;
        let rest = &self.bytes[from..];
        let length = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let word = &rest[..length];
        if length < rest.len() && WRK_METHODS.iter().any(|method| method.as_bytes() == word) {
            self.at += length + 1;
            return Ok(word == b"HEAD");
        }
        // The error position is the first byte that differs from every known method.
        let common = |method: &&str| method.bytes().zip(word).take_while(|(a, b)| a == *b).count();
        let matched = WRK_METHODS.iter().map(common).max().unwrap_or(0);
        self.at += matched;
        Err(if matched == rest.len() { INCOMPLETE_REQUEST_TEXT } else { "invalid HTTP method" })
    }

    fn parse_target(&mut self) -> Result<(), &'static str> {
        let (from, to) = self.take_while(|byte| byte > b' ' && byte != 0x7f)?;
        if from == to {
            return Err("invalid URL");
        }
        match self.peek_byte() {
            Some(b' ') => {
                self.at += 1;
                Ok(())
            }
            // A request line without a version is HTTP/0.9, which is an error because HTTP/0.9
            // responses have no head.
            Some(b'\r' | b'\n') => Err("invalid HTTP version"),
            _ => Err("invalid URL"),
        }
    }

    fn parse_version(&mut self) -> Result<(), &'static str> {
        while self.peek_byte() == Some(b' ') {
            self.at += 1;
        }
        for wanted in *b"HTTP/" {
            match self.peek_byte() {
                Some(byte) if byte == wanted => self.at += 1,
                Some(_) => return Err("invalid constant string"),
                None => return Err(INCOMPLETE_REQUEST_TEXT),
            }
        }
        for wanted in [None, Some(b'.'), None] {
            match (self.peek_byte(), wanted) {
                (Some(byte), Some(wanted)) if byte == wanted => self.at += 1,
                (Some(byte), None) if byte.is_ascii_digit() => self.at += 1,
                (Some(_), _) => return Err("invalid HTTP version"),
                (None, _) => return Err(INCOMPLETE_REQUEST_TEXT),
            }
        }
        match self.peek_byte() {
            Some(b'\r' | b'\n') => self.parse_line_end(),
            Some(_) => Err("invalid HTTP version"),
            None => Err(INCOMPLETE_REQUEST_TEXT),
        }
    }

    fn parse_field(&mut self, length: &mut Option<usize>, chunked: &mut bool) -> Result<(), &'static str> {
        const INVALID_HEADER_TEXT: &str = "invalid character in header";
        let (from, to) = self.take_while(is_token)?;
        if from == to || self.peek_byte() != Some(b':') {
            return Err(INVALID_HEADER_TEXT);
        }
        self.at += 1;
        let name = &self.bytes[from..to];
        self.take_while(|byte| byte == b' ' || byte == b'\t')?;
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        if is_length && length.is_some() {
            return Err("unexpected content-length header");
        }
        let (from, to) = self.take_while(|byte| match is_length {
            true => byte.is_ascii_digit(),
            false => byte == b'\t' || (byte >= b' ' && byte != 0x7f),
        })?;
        let value = self.bytes[from..to].trim_ascii();
        if is_length {
            self.take_while(|byte| byte == b' ')?;
            if value.is_empty() || !matches!(self.peek_byte(), Some(b'\r' | b'\n')) {
                return Err("invalid character in content-length header");
            }
            *length = Some(str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).unwrap_or(usize::MAX));
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            *chunked = value.to_ascii_lowercase().ends_with(b"chunked");
        }
        match self.peek_byte() {
            Some(b'\r' | b'\n') => self.parse_line_end(),
            _ => Err(INVALID_HEADER_TEXT),
        }
    }

    fn skip_content(&mut self, length: usize) -> Result<(), &'static str> {
        if self.bytes.len() - self.at < length {
            self.at = self.bytes.len();
            return Err(INCOMPLETE_REQUEST_TEXT);
        }
        self.at += length;
        Ok(())
    }

    fn skip_chunks(&mut self) -> Result<(), &'static str> {
        loop {
            let (from, to) = self.take_while(|byte| byte.is_ascii_hexdigit())?;
            let size = str::from_utf8(&self.bytes[from..to]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
            let Some(size) = size else { return Err("invalid character in chunk size header") };
            self.take_while(|byte| byte != b'\n')?;
            self.at += 1;
            if size == 0 {
                // After the last chunk, trailer fields may follow, and a blank line ends the
                // message.
                while !matches!(self.peek_byte(), Some(b'\r' | b'\n') | None) {
                    self.parse_field(&mut None, &mut false)?;
                }
                return self.parse_line_end();
            }
            self.skip_content(size)?;
            self.parse_line_end()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<bool>, String> {
        let mut batch = Batch { bytes: text.as_bytes().to_vec(), ..Batch::default() };
        parse_messages(&mut batch)
            .map(|()| batch.head_request_flags)
            .map_err(|f| format!("{} at {}:{}", f.reason, f.line, f.column))
    }

    #[test]
    fn script_messages_are_counted() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let head = "HEAD /x?y HTTP/1.0\r\n\r\n";
        let post = "POST / HTTP/1.1\nContent-Length: 3 \n\nabc";
        let chunked = "PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3;x\r\nabc\r\n0\r\nA: b\r\n\r\n";
        let rows: [(String, &[bool]); 7] = [
            (get.into(), &[false]),
            (head.into(), &[true]),
            (post.into(), &[false]),
            (chunked.into(), &[false]),
            (format!("{get}{head}{post}{chunked}{get}"), &[false, true, false, false, false]),
            (format!("\r\n{get}\r\n"), &[false]),
            (format!("{post}{get}"), &[false, false]),
        ];
        for (text, expect) in rows {
            assert_eq!(read(&text).as_deref(), Ok(expect), "{text:?}");
        }
    }

    #[test]
    fn script_errors_match_wrk_and_have_a_position() {
        for (text, expect) in [
            ("", "incomplete request at 1:1"),
            ("GET / HTTP/1.1\r\n", "incomplete request at 2:1"),
            ("GET / HTTP/1.1", "incomplete request at 1:15"),
            ("hello", "invalid HTTP method at 1:1"),
            ("GOT / HTTP/1.1\r\n\r\n", "invalid HTTP method at 1:2"),
            ("GET /a b HTTP/1.1\r\n\r\n", "invalid constant string at 1:8"),
            ("GET / HTTP/x.1\r\n\r\n", "invalid HTTP version at 1:12"),
            ("GET / HTTP/1.1\r\nA b: c\r\n\r\n", "invalid character in header at 2:2"),
            ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "invalid character in content-length header at 2:17"),
            ("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", "incomplete request at 4:4"),
            (
                "POST / HTTP/1.1\r\ncontent-length: 3\r\nContent-Length: 3\r\n\r\nabc",
                "unexpected content-length header at 3:17",
            ),
        ] {
            assert_eq!(read(text), Err(expect.to_owned()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_input_is_handled_without_a_panic(bytes in proptest::collection::vec(prop_oneof![
            any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b' '), Just(b':'), Just(b'0')], 0..200), start in 0..4usize) {
            let starts = ["", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nContent-Length: ", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"];
            let mut batch = Batch { bytes: [starts[start].as_bytes(), &bytes].concat(), ..Batch::default() };
            let _ = parse_messages(&mut batch);
            count_messages(&mut batch);
            prop_assert!(!batch.head_request_flags.is_empty());
        }
    }
}
