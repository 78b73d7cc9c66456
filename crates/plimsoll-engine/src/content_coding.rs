//! Decodes content codings (`content-encoding: gzip`), up to a given size.
//!
//! Only content that a check reads is decoded. Counts of received bytes refer to the encoded
//! content. Not here: the request field that asks for a coding.

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use plimsoll_model::library_panic;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of content codings applied on top of each other in one response.
const CODINGS_MAX: usize = 3;
/// The size in bytes of the pieces in which decoded brotli content is read.
const BROTLI_BUFFER_BYTES: usize = 8 << 10;

/// A memory budget for the stored contents of all responses in flight. Without the budget, many
/// connections with long contents could exhaust the memory of the machine.
#[derive(Debug)]
pub struct ContentBudget(AtomicUsize);

impl ContentBudget {
    /// The size of the budget in bytes.
    pub const BYTES_MAX: usize = 128 << 20;
    /// Creates a budget with all of its bytes available.
    pub const fn new() -> ContentBudget {
        ContentBudget(AtomicUsize::new(Self::BYTES_MAX))
    }

    /// Takes `bytes` from the budget. Returns false if fewer bytes are left.
    pub fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    /// Gives `bytes` back to the budget.
    pub fn return_bytes(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The reason why content could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The content is invalid or incomplete.
    Broken,
    /// The decoded content is longer than checks may search.
    TooLong,
    /// Plimsoll does not know the content coding, or the content has more codings than allowed.
    UnsupportedCoding,
    /// The content was not stored, because the memory budget was exhausted.
    BudgetExhausted,
}

impl DecodeError {
    /// All decoding errors, in the order of their numbers.
    pub const ALL: [DecodeError; 4] =
        [DecodeError::Broken, DecodeError::TooLong, DecodeError::UnsupportedCoding, DecodeError::BudgetExhausted];

    /// Returns the error message. `bytes_max`: the maximum length in bytes of the content that
    /// checks search.
    pub fn reason(self, bytes_max: usize) -> String {
        match self {
            DecodeError::Broken => {
                "the content of the response cannot be decoded as its content-encoding says".to_owned()
            }
            DecodeError::TooLong => {
                format!(
                    "the decoded content of the response is longer than {size_max_mib} MiB",
                    size_max_mib = bytes_max >> 20
                )
            }
            DecodeError::UnsupportedCoding => {
                "the content-encoding of the response is not gzip, deflate or br, or names more than three codings"
                    .to_owned()
            }
            DecodeError::BudgetExhausted => format!(
                "the response was not checked: the responses in flight take more than {size_max_mib} MiB together \
                 (use fewer connections)",
                size_max_mib = ContentBudget::BYTES_MAX >> 20
            ),
        }
    }
}

/// Returns the codings that the `content-encoding` fields name, in the order in which the server
/// applied them. The iterator is empty if the response has no content coding.
fn content_codings<'a>(fields: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    let names = fields.flat_map(|field| field.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"))
}

/// Returns whether the `content-encoding` fields name any coding.
pub fn is_coded<'a>(fields: impl Iterator<Item = &'a [u8]>) -> bool {
    content_codings(fields).next().is_some()
}

/// Decodes content into `text`, which may become at most `bytes_max` bytes long.
///
/// # Errors
/// Returns the reason why the content could not be decoded. After an error, the content of `text`
/// is meaningless.
pub fn decode<'a>(
    fields: impl Iterator<Item = &'a [u8]>,
    content: &[u8],
    bytes_max: usize,
    text: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut names = [&b""[..]; CODINGS_MAX];
    let mut count = 0;
    for name in content_codings(fields) {
        *names.get_mut(count).ok_or(DecodeError::UnsupportedCoding)? = name;
        count += 1;
    }
    // The coding that the server applied last is decoded first.
    let Some((last, before)) = names[..count].split_last() else {
        text.extend_from_slice(content.get(..bytes_max).unwrap_or(content));
        return Ok(());
    };
    decode_one_coding(last, content, bytes_max, text)?;
    for name in before.iter().rev() {
        let coded = std::mem::take(text);
        decode_one_coding(name, &coded, bytes_max, text)?;
    }
    Ok(())
}

fn decode_one_coding(name: &[u8], content: &[u8], bytes_max: usize, text: &mut Vec<u8>) -> Result<(), DecodeError> {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    if is("gzip") || is("x-gzip") {
        read_bounded(MultiGzDecoder::new(content), bytes_max, text)
    } else if is("deflate") {
        // The standard demands zlib framing, but many servers send raw deflate.
        match content {
            [first, second, ..] if first & 0xF == 8 && (u32::from(*first) << 8 | u32::from(*second)) % 31 == 0 => {
                read_bounded(ZlibDecoder::new(content), bytes_max, text)
            }
            _ => read_bounded(DeflateDecoder::new(content), bytes_max, text),
        }
    } else if is("br") {
        let unpack =
            || read_bounded(brotli_decompressor::Decompressor::new(content, BROTLI_BUFFER_BYTES), bytes_max, text);
        library_panic::catch_library_panic("brotli", unpack).unwrap_or(Err(DecodeError::Broken))
    } else {
        Err(DecodeError::UnsupportedCoding)
    }
}

fn read_bounded(decoder: impl Read, bytes_max: usize, text: &mut Vec<u8>) -> Result<(), DecodeError> {
    decoder.take(bytes_max as u64 + 1).read_to_end(text).map_err(|_| DecodeError::Broken)?;
    if text.len() > bytes_max { Err(DecodeError::TooLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    /// `hello hello hello hello`, encoded by brotli 1.2 at quality 11.
    const BROTLI_SAMPLE: &[u8] = b"\x1b\x16\x00\xf8\x8d\x94\x6e\xde\x44\x55\x86\x96\x6c\x20\x6f\x21\x4f\x1c\xe0\x38";

    fn compress_gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn decoded_content(fields: &[&str], content: &[u8], bytes_max: usize) -> Result<Vec<u8>, DecodeError> {
        let mut text = Vec::new();
        decode(fields.iter().map(|field| field.as_bytes()), content, bytes_max, &mut text).map(|()| text)
    }

    #[test]
    fn every_coding_is_decoded() {
        let text = b"hello hello hello hello";
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text).expect("memory");
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(text).expect("memory");
        let (zlib, bare, gzipped) =
            (zlib.finish().expect("memory"), bare.finish().expect("memory"), compress_gzip(text));
        for (fields, content) in [
            (&["gzip"][..], &gzipped[..]),
            (&["X-GZIP"], &gzipped),
            (&["deflate"], &zlib),
            (&["deflate"], &bare),
            (&["br"], BROTLI_SAMPLE),
            (&["identity", "gzip"], &gzipped),
            (&[" gzip , gzip"], &compress_gzip(&gzipped)),
            (&["br", "gzip"], &compress_gzip(BROTLI_SAMPLE)),
            // Content that consists of two gzip members decodes to one text.
            (&["gzip"], &[compress_gzip(&text[..9]), compress_gzip(&text[9..])].concat()),
            (&[], text),
            (&["identity"], text),
        ] {
            assert_eq!(decoded_content(fields, content, 100).as_deref(), Ok(&text[..]), "{fields:?}");
            let is_coded = is_coded(fields.iter().map(|field| field.as_bytes()));
            assert_eq!(is_coded, content != text, "{fields:?}");
        }
    }

    #[test]
    fn undecodable_content_is_an_error() {
        let text = vec![b'x'; 1 << 20];
        let gzipped = compress_gzip(&text);
        for (fields, content, bytes_max, why) in [
            (&["gzip"][..], &b"plain"[..], 100, DecodeError::Broken),
            (&["gzip"], &gzipped[..gzipped.len() - 9], 2 << 20, DecodeError::Broken),
            (&["deflate"], b"\xff\xff\xff", 100, DecodeError::Broken),
            (&["br"], &BROTLI_SAMPLE[..BROTLI_SAMPLE.len() - 2], 100, DecodeError::Broken),
            (&["br"], b"\xff\xff\xff\xff", 100, DecodeError::Broken),
            (&["zstd"], b"", 100, DecodeError::UnsupportedCoding),
            (&["gzip, gzip, gzip, gzip"], &gzipped, 100, DecodeError::UnsupportedCoding),
            // The compressed content has about a kilobyte, and decodes to a megabyte.
            (&["gzip"], &gzipped, (1 << 20) - 1, DecodeError::TooLong),
            (&["br"], BROTLI_SAMPLE, 22, DecodeError::TooLong),
        ] {
            assert_eq!(decoded_content(fields, content, bytes_max), Err(why), "{fields:?}");
            assert!(!why.reason(4 << 20).is_empty());
        }
    }

    proptest! {
        #[test]
        fn any_content_decodes_without_a_panic(content: Vec<u8>, coding in 0..4usize, cut in 0..64usize) {
            let coding = ["gzip", "deflate", "br", "br, gzip"][coding];
            let mut text = Vec::new();
            let _ = decode([coding.as_bytes()].into_iter(), &content, 1000, &mut text);
            prop_assert!(text.len() <= 1001);
            let whole = compress_gzip(&content);
            let _ = decoded_content(&["gzip"], &whole[..whole.len().saturating_sub(cut)], 1000);
        }
    }
}
