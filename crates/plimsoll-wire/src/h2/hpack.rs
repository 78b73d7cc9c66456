//! HPACK ([RFC 7541](https://www.rfc-editor.org/rfc/rfc7541)): decodes header blocks, and encodes
//! the header fields of header blocks.
//!
//! A decoder ([`HpackDecoder`]) has a dynamic table, whose maximum size the decoder chooses. If the
//! size of the dynamic table is 0, a header block is independent of earlier blocks. The encoder in
//! this file never uses the dynamic table, so that a header block can be encoded once and sent
//! repeatedly.
//!
//! Not here: the meaning of header fields, and which fields are permitted.

use super::huffman;
use std::collections::VecDeque;

/// The static table of header fields (RFC 7541, appendix A). The first entry has index 1.
#[rustfmt::skip]
const STATIC_TABLE: [(&[u8], &[u8]); 61] = [
    (b":authority", b""), (b":method", b"GET"), (b":method", b"POST"), (b":path", b"/"), (b":path", b"/index.html"),
    (b":scheme", b"http"), (b":scheme", b"https"), (b":status", b"200"), (b":status", b"204"), (b":status", b"206"),
    (b":status", b"304"), (b":status", b"400"), (b":status", b"404"), (b":status", b"500"), (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"), (b"accept-language", b""), (b"accept-ranges", b""), (b"accept", b""),
    (b"access-control-allow-origin", b""), (b"age", b""), (b"allow", b""), (b"authorization", b""),
    (b"cache-control", b""), (b"content-disposition", b""), (b"content-encoding", b""), (b"content-language", b""),
    (b"content-length", b""), (b"content-location", b""), (b"content-range", b""), (b"content-type", b""),
    (b"cookie", b""), (b"date", b""), (b"etag", b""), (b"expect", b""), (b"expires", b""), (b"from", b""),
    (b"host", b""), (b"if-match", b""), (b"if-modified-since", b""), (b"if-none-match", b""), (b"if-range", b""),
    (b"if-unmodified-since", b""), (b"last-modified", b""), (b"link", b""), (b"location", b""), (b"max-forwards", b""),
    (b"proxy-authenticate", b""), (b"proxy-authorization", b""), (b"range", b""), (b"referer", b""), (b"refresh", b""),
    (b"retry-after", b""), (b"server", b""), (b"set-cookie", b""), (b"strict-transport-security", b""),
    (b"transfer-encoding", b""), (b"user-agent", b""), (b"vary", b""), (b"via", b""), (b"www-authenticate", b""),
];

/// The number of bytes that each table entry counts in addition to its name and value (RFC 7541,
/// 4.1).
const ENTRY_BYTES: usize = 32;
/// The default size of a dynamic table in bytes, unless client and server agree on another size.
pub const TABLE_BYTES: usize = 4096;

/// The reason why a header block cannot be decoded. After the error, the connection cannot
/// continue, because the dynamic tables of encoder and decoder differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block is malformed, or refers to an unknown table entry.
    Malformed,
    /// The fields of the block are longer than the decoder accepts.
    TooLarge,
}

/// Decodes the header blocks of one direction of a connection.
#[derive(Clone, Debug)]
pub struct HpackDecoder {
    /// The entries of the dynamic table, the newest first.
    entries: VecDeque<TableEntry>,
    bytes: usize,
    /// The maximum table size that the encoder has chosen, bytes.
    bytes_max: usize,
    /// The maximum table size that the decoder permits, bytes.
    permitted_bytes_max: usize,
    /// Whether the last block depended on the dynamic table, or changed it.
    stateful: bool,
    name: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Clone, Debug)]
struct TableEntry {
    text: Box<[u8]>,
    name_len: usize,
}

impl TableEntry {
    fn field_name(&self) -> &[u8] {
        &self.text[..self.name_len]
    }

    fn field_value(&self) -> &[u8] {
        &self.text[self.name_len..]
    }
}

impl HpackDecoder {
    /// Creates a decoder whose dynamic table may have at most `permitted_bytes_max` bytes. At
    /// first, the table has at most [`TABLE_BYTES`].
    pub const fn new(permitted_bytes_max: usize) -> HpackDecoder {
        let bytes_max = if permitted_bytes_max < TABLE_BYTES { permitted_bytes_max } else { TABLE_BYTES };
        HpackDecoder {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max,
            permitted_bytes_max,
            stateful: false,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Returns whether the last block was independent of earlier blocks and does not affect later
    /// blocks.
    #[inline]
    pub fn is_last_block_stateless(&self) -> bool {
        !self.stateful
    }

    /// Sets the maximum size of the dynamic table, after the peer has confirmed the new limit. Some
    /// servers (h2o) keep their old table size without announcing the size again, and this decoder
    /// accepts such a server.
    pub fn set_permitted_bytes_max(&mut self, limit: usize) {
        self.permitted_bytes_max = limit;
    }

    /// Decodes a header block and passes its fields to the caller in order. Returns an error if all
    /// fields together exceed `bytes_max` bytes; each field counts as its name and value plus 32
    /// bytes. After an error, the decoder is unusable.
    pub fn decode(
        &mut self,
        block: &[u8],
        bytes_max: usize,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackError> {
        let (mut rest, mut bytes_left, mut is_first) = (block, bytes_max, true);
        self.stateful = false;
        while let [first, ..] = rest {
            let first = *first;
            if first & 0xe0 == 0x20 {
                // This byte begins a change of the table size, which is permitted only at the start
                // of a block.
                let size = parse_integer(&mut rest, 5).ok_or(HpackError::Malformed)?;
                if !is_first || size > self.permitted_bytes_max {
                    return Err(HpackError::Malformed);
                }
                self.stateful = true;
                self.bytes_max = size;
                self.evict_entries(0);
                continue;
            }
            is_first = false;
            if first & 0x80 != 0 {
                let index = parse_integer(&mut rest, 7).ok_or(HpackError::Malformed)?;
                let (name, value) = field_at(&self.entries, index).ok_or(HpackError::Malformed)?;
                self.stateful |= index > STATIC_TABLE.len();
                subtract_field_bytes(&mut bytes_left, name, value)?;
                field(name, value);
                continue;
            }
            let (is_kept, prefix) = if first & 0x40 != 0 { (true, 6) } else { (false, 4) };
            let index = parse_integer(&mut rest, prefix).ok_or(HpackError::Malformed)?;
            self.name.clear();
            self.value.clear();
            if index == 0 {
                parse_string_literal(&mut rest, &mut self.name, bytes_left)?;
            } else {
                let (name, _) = field_at(&self.entries, index).ok_or(HpackError::Malformed)?;
                self.stateful |= index > STATIC_TABLE.len();
                self.name.extend_from_slice(name);
            }
            parse_string_literal(&mut rest, &mut self.value, bytes_left)?;
            subtract_field_bytes(&mut bytes_left, &self.name, &self.value)?;
            field(&self.name, &self.value);
            // Without a dynamic table (size and limit 0), the header field is not stored as an
            // entry.
            if is_kept && (self.bytes_max > 0 || self.permitted_bytes_max > 0) {
                self.stateful = true;
                self.add_to_table();
            }
        }
        Ok(())
    }

    /// Adds the current field to the dynamic table, if it fits.
    fn add_to_table(&mut self) {
        let bytes = self.name.len() + self.value.len() + ENTRY_BYTES;
        self.evict_entries(bytes);
        if bytes <= self.bytes_max {
            let text = [self.name.as_slice(), &self.value].concat().into_boxed_slice();
            self.entries.push_front(TableEntry { text, name_len: self.name.len() });
            self.bytes += bytes;
        }
    }

    /// Removes the oldest entries of the table until there is room for an entry of `bytes` bytes.
    fn evict_entries(&mut self, bytes: usize) {
        while self.bytes + bytes > self.bytes_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.bytes -= entry.text.len() + ENTRY_BYTES;
        }
    }
}

/// Returns the field with this index of the static or dynamic table.
fn field_at(entries: &VecDeque<TableEntry>, index: usize) -> Option<(&[u8], &[u8])> {
    match index.checked_sub(1)? {
        index if index < STATIC_TABLE.len() => Some(STATIC_TABLE[index]),
        index => entries.get(index - STATIC_TABLE.len()).map(|entry| (entry.field_name(), entry.field_value())),
    }
}

fn subtract_field_bytes(bytes_left: &mut usize, name: &[u8], value: &[u8]) -> Result<(), HpackError> {
    let left = bytes_left.checked_sub(name.len() + value.len() + ENTRY_BYTES);
    *bytes_left = left.ok_or(HpackError::TooLarge)?;
    Ok(())
}

/// Parses an HPACK integer that begins in the lowest `prefix` bits of the first byte (RFC 7541,
/// 5.1). At most four bytes after the first byte are accepted.
fn parse_integer(bytes: &mut &[u8], prefix: u32) -> Option<usize> {
    let (first, mut rest) = bytes.split_first()?;
    let most = (1u32 << prefix) - 1;
    let mut value = u32::from(*first) & most;
    if value == most {
        for shift in [0, 7, 14, 21] {
            let (byte, after) = rest.split_first()?;
            rest = after;
            value = value.checked_add(u32::from(byte & 0x7f) << shift)?;
            if byte & 0x80 == 0 {
                *bytes = rest;
                return Some(value as usize);
            }
        }
        return None;
    }
    *bytes = rest;
    Some(value as usize)
}

/// Parses an HPACK string literal (RFC 7541, 5.2) and appends the decoded text to `out`.
fn parse_string_literal(bytes: &mut &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<(), HpackError> {
    let is_coded = bytes.first().ok_or(HpackError::Malformed)? & 0x80 != 0;
    let length = parse_integer(bytes, 7).ok_or(HpackError::Malformed)?;
    let (coded, rest) = bytes.split_at_checked(length).ok_or(HpackError::Malformed)?;
    *bytes = rest;
    // Every Huffman code has at least five bits, so this limit of the coded length also bounds the
    // length of the decoded text.
    if coded.len() > bytes_max {
        return Err(HpackError::TooLarge);
    }
    if is_coded {
        huffman::decode(coded, out).ok_or(HpackError::Malformed)
    } else {
        out.extend_from_slice(coded);
        Ok(())
    }
}

/// Whether the peer or an intermediary may store a header field in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// The header field is encoded as usual and may be stored.
    Plain,
    /// The field is encoded as "never indexed", so that no intermediary stores it in a table (RFC
    /// 7541, 7.1.3).
    NeverIndexed,
}

/// Appends a header field to a block, without using the peer's dynamic table.
pub fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8], secrecy: Secrecy) {
    if secrecy == Secrecy::Plain
        && let Some(index) = STATIC_TABLE.iter().position(|known| *known == (name, value))
    {
        write_integer(out, 0x80, 7, index + 1);
        return;
    }
    let kind = if secrecy == Secrecy::Plain { 0 } else { 0x10 };
    match STATIC_TABLE.iter().position(|known| known.0 == name) {
        Some(index) => write_integer(out, kind, 4, index + 1),
        None => {
            out.push(kind);
            write_text(out, name);
        }
    }
    write_text(out, value);
}

fn write_integer(out: &mut Vec<u8>, kind: u8, prefix: u32, value: usize) {
    let most = (1usize << prefix) - 1;
    if value < most {
        out.push(kind | value as u8);
        return;
    }
    out.push(kind | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::coded_len(text);
    if coded < text.len() {
        write_integer(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        write_integer(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_from_hex(hex: &str) -> Vec<u8> {
        let digits: String = hex.split_whitespace().collect();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
    }

    fn decode_to_text(decoder: &mut HpackDecoder, block: &[u8]) -> Result<String, HpackError> {
        let mut told = Vec::new();
        let text = String::from_utf8_lossy;
        decoder.decode(block, 1 << 16, |name, value| told.push(format!("{}: {}", text(name), text(value))))?;
        Ok(told.join("\n"))
    }

    fn table_contents(decoder: &HpackDecoder) -> (Vec<String>, usize) {
        let text = |entry: &TableEntry| {
            format!("{}: {}", String::from_utf8_lossy(entry.field_name()), String::from_utf8_lossy(entry.field_value()))
        };
        (decoder.entries.iter().map(text).collect(), decoder.bytes)
    }

    /// Checks the examples of RFC 7541, appendix C: consecutive blocks, their fields, and after
    /// each block the dynamic table's entries and size.
    fn check(name: &str, limit: usize, blocks: &[(&str, &str, &[&str], usize)]) {
        let mut decoder = HpackDecoder::new(limit);
        for (hex, expect, entries, size) in blocks {
            assert_eq!(decode_to_text(&mut decoder, &bytes_from_hex(hex)).as_deref(), Ok(*expect), "{name}");
            assert_eq!(
                table_contents(&decoder),
                (entries.iter().map(|entry| (*entry).to_owned()).collect(), *size),
                "{name}"
            );
        }
    }

    #[test]
    fn hpack_integers_match_appendix_c1() {
        for (hex, prefix, expect) in [("0a", 5, 10), ("1f9a0a", 5, 1337), ("2a", 8, 42)] {
            let (block, mut out) = (bytes_from_hex(hex), Vec::new());
            assert_eq!(parse_integer(&mut &block[..], prefix), Some(expect));
            write_integer(&mut out, 0, prefix, expect);
            assert_eq!(out, block);
        }
        for hex in ["", "1f", "1f80", "1fffffffff0f", "1f8080808001"] {
            assert_eq!(parse_integer(&mut &bytes_from_hex(hex)[..], 5), None, "{hex}");
        }
    }

    #[test]
    fn hpack_fields_match_appendix_c2() {
        let custom = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
        check("C.2.1", 4096, &[(custom, "custom-key: custom-header", &["custom-key: custom-header"], 55)]);
        check("C.2.2", 4096, &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", &[], 0)]);
        check("C.2.3", 4096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", &[], 0)]);
        check("C.2.4", 4096, &[("82", ":method: GET", &[], 0)]);
    }

    const FIRST_REQUEST_FIELDS: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com";
    const SECOND_REQUEST_FIELDS: &str =
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache";
    const THIRD_REQUEST_FIELDS: &str =
        ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value";

    #[test]
    fn hpack_requests_match_appendix_c3_and_c4() {
        let a = ":authority: www.example.com";
        let (b, c) = ("cache-control: no-cache", "custom-key: custom-value");
        check(
            "C.3",
            4096,
            &[
                ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST_REQUEST_FIELDS, &[a], 57),
                ("8286 84be 5808 6e6f 2d63 6163 6865", SECOND_REQUEST_FIELDS, &[b, a], 110),
                (
                    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                    THIRD_REQUEST_FIELDS,
                    &[c, b, a],
                    164,
                ),
            ],
        );
        check(
            "C.4",
            4096,
            &[
                ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST_REQUEST_FIELDS, &[a], 57),
                ("8286 84be 5886 a8eb 1064 9cbf", SECOND_REQUEST_FIELDS, &[b, a], 110),
                ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD_REQUEST_FIELDS, &[c, b, a], 164),
            ],
        );
    }

    #[test]
    fn hpack_responses_match_appendix_c5_and_c6() {
        let head = |status: &str, seconds: &str, more: &str| {
            format!(
                ":status: {status}\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:{seconds} GMT\n\
                 location: https://www.example.com{more}"
            )
        };
        let cookie = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        let third = head("200", "22", &format!("\ncontent-encoding: gzip\n{cookie}"));
        let (first, second) = (head("302", "21", ""), head("307", "21", ""));
        let location = "location: https://www.example.com";
        let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
        let tables: [&[&str]; 3] = [
            &[location, date, "cache-control: private", ":status: 302"],
            &[":status: 307", location, date, "cache-control: private"],
            &[cookie, "content-encoding: gzip", "date: Mon, 21 Oct 2013 20:13:22 GMT"],
        ];
        check(
            "C.5",
            256,
            &[
                (
                    "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
                     3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                    &first,
                    tables[0],
                    222,
                ),
                ("4803 3330 37c1 c0bf", &second, tables[1], 222),
                (
                    "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
                     7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
                     6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                    &third,
                    tables[2],
                    215,
                ),
            ],
        );
        check(
            "C.6",
            256,
            &[
                (
                    "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
                     1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                    &first,
                    tables[0],
                    222,
                ),
                ("4883 640e ffc1 c0bf", &second, tables[1], 222),
                (
                    "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
                     e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                    &third,
                    tables[2],
                    215,
                ),
            ],
        );
    }

    #[test]
    fn invalid_header_blocks_are_refused() {
        let malformed = Err(HpackError::Malformed);
        for (name, limit, hex) in [
            ("index 0", 4096, "80"),
            ("beyond the tables", 4096, "be"),
            ("a name beyond the tables", 4096, "7f0000"),
            ("a size above what is allowed", 256, "3fe21f"),
            ("any size but 0 where there is no table", 0, "21"),
            ("a size after a field", 4096, "8220"),
            ("a text that is cut", 4096, "0003 6162"),
            ("no value", 4096, "0001 61"),
            ("an integer without end", 4096, "ffff ffff ffff ffff"),
            ("an entry that does not fit into a table of 0", 0, "4001 6101 62be"),
        ] {
            assert_eq!(decode_to_text(&mut HpackDecoder::new(limit), &bytes_from_hex(hex)), malformed, "{name}");
        }
        let twice = Ok("a: b\na: b".to_owned());
        assert_eq!(decode_to_text(&mut HpackDecoder::new(4096), &bytes_from_hex("20 3fe11f 4001 6101 62be")), twice);
    }

    #[test]
    fn a_small_block_of_large_fields_is_too_large() {
        // The header block has one table entry of 4000 bytes, and then many single bytes that each
        // refer to the entry.
        let mut block = vec![0x40, 1, b'a'];
        write_integer(&mut block, 0, 7, 4000);
        block.extend([b'x'; 4000]);
        block.extend([0xbe; 1000]);
        let mut told = 0;
        let read = HpackDecoder::new(4096).decode(&block, 1 << 16, |_, value| told += value.len());
        assert_eq!(read, Err(HpackError::TooLarge));
        assert!(told < 1 << 16);
    }

    #[test]
    fn encoded_header_blocks_decode_back() {
        let mut block = Vec::new();
        for (name, value, secrecy) in [
            (":method", "GET", Secrecy::Plain),
            (":path", "/a?b=c", Secrecy::Plain),
            ("authorization", "Basic dTpw", Secrecy::NeverIndexed),
            ("x-odd", "\u{1}\u{2}", Secrecy::Plain),
            ("user-agent", &"long ".repeat(100), Secrecy::Plain),
        ] {
            write_field(&mut block, name.as_bytes(), value.as_bytes(), secrecy);
        }
        assert_eq!(block[0], 0x82);
        let expect = format!(
            ":method: GET\n:path: /a?b=c\nauthorization: Basic dTpw\nx-odd: \u{1}\u{2}\nuser-agent: {}",
            "long ".repeat(100)
        );
        // The decoded fields must not depend on the size of the decoder's dynamic table.
        for limit in [0, 4096] {
            assert_eq!(decode_to_text(&mut HpackDecoder::new(limit), &block).as_deref(), Ok(expect.as_str()));
        }
    }
}
