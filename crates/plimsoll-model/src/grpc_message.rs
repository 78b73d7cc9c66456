//! The framing of gRPC messages: one byte for compression and four bytes for the length precede
//! each message. Not here: the content of messages (see [`GrpcMessageConverter`]) and compression.

use std::sync::Arc;

/// Length of the prefix before each message, in bytes.
const PREFIX_BYTES: usize = 5;

/// Longest message that gRPC clients accept by default, in bytes.
pub const DEFAULT_MESSAGE_BYTES_MAX: u32 = 4 << 20;

/// Appends a message with its prefix of 5 bytes (compression flag and length).
pub fn write_message(message: &[u8], is_compressed: bool, out: &mut Vec<u8>) {
    out.push(u8::from(is_compressed));
    // The length fits 32 bits, because the encoder of messages refuses longer messages.
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// Converts the messages of one method from and to JSON.
pub trait GrpcMessageConverter: Send + Sync + std::fmt::Debug {
    /// Appends the content of a response to `json`: an object, or a list if the method returns a
    /// stream. Returns false if the content does not decode.
    fn decode_to_json(&self, content: &[u8], json: &mut Vec<u8>) -> bool;

    /// Appends the messages of a JSON body to `content`. Returns false, and appends nothing, if the
    /// body does not encode.
    fn encode_from_json(&self, body: &[u8], content: &mut Vec<u8>) -> bool;
}

/// The message converter of each route, by route number. The converter is `None` if plimsoll
/// neither checks the route's responses nor fills in its request messages.
pub type RouteMessageConverters = Vec<Option<Arc<dyn GrpcMessageConverter>>>;

/// The reason why the content of a response cannot be split into gRPC messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrpcFramingError {
    /// The content ends within a message.
    #[error("the response ends in the middle of a message")]
    Cut,
    /// A message is compressed, although the client accepts no compression.
    #[error("the response has a compressed message, which plimsoll did not request")]
    Compressed,
}

/// The messages in the whole content of a response, in order.
#[derive(Debug, Clone)]
pub struct GrpcMessages<'a>(&'a [u8]);

impl<'a> GrpcMessages<'a> {
    /// Creates an iterator over the messages in `content`.
    pub fn new(content: &'a [u8]) -> GrpcMessages<'a> {
        GrpcMessages(content)
    }

    /// Returns the next message, and whether it is compressed.
    pub fn next_with_compression_flag(&mut self) -> Option<Result<(bool, &'a [u8]), GrpcFramingError>> {
        if self.0.is_empty() {
            return None;
        }
        let taken = match self.0 {
            [packed, a, b, c, d, rest @ ..] => rest
                .split_at_checked(u32::from_be_bytes([*a, *b, *c, *d]) as usize)
                .map(|(message, after)| ((*packed != 0, message), after)),
            _ => None,
        };
        // After a framing error, the remaining bytes cannot be split into messages.
        self.0 = taken.map_or(&[], |(_, after)| after);
        Some(taken.map(|(message, _)| message).ok_or(GrpcFramingError::Cut))
    }
}

impl<'a> Iterator for GrpcMessages<'a> {
    type Item = Result<&'a [u8], GrpcFramingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_with_compression_flag()?;
        if matches!(next, Ok((true, _))) {
            self.0 = &[];
            return Some(Err(GrpcFramingError::Compressed));
        }
        Some(next.map(|(_, message)| message))
    }
}

/// Counts messages in content that arrives in pieces, without decoding the messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GrpcMessageCounter {
    complete_messages: u32,
    /// Number of bytes of the current message that have not arrived yet.
    message_bytes_left: u32,
    /// Number of bytes of the current message's 5-byte prefix that have arrived.
    prefix: u8,
    /// The length of the current message, computed from the prefix bytes that have arrived.
    length: u32,
    /// Whether any message had the compression flag 1 (compressed). The field `has_invalid_prefix`
    /// says whether any compression flag was invalid (neither 0 nor 1).
    compressed: bool,
    has_invalid_prefix: bool,
    has_large_message: bool,
}

impl GrpcMessageCounter {
    /// Reads the next piece of the content. Returns the number of messages that this piece
    /// completes.
    pub fn count_piece(&mut self, mut piece: &[u8]) -> u32 {
        let before = self.complete_messages;
        while let [first, after @ ..] = piece {
            if self.message_bytes_left > 0 {
                let bytes = piece.len().min(self.message_bytes_left as usize);
                self.message_bytes_left -= bytes as u32;
                piece = &piece[bytes..];
            } else {
                if self.prefix == 0 {
                    self.length = 0;
                    self.compressed |= *first == 1;
                    self.has_invalid_prefix |= *first > 1;
                } else {
                    self.length = self.length << 8 | u32::from(*first);
                }
                self.prefix += 1;
                piece = after;
                if usize::from(self.prefix) < PREFIX_BYTES {
                    continue;
                }
                (self.prefix, self.message_bytes_left) = (0, self.length);
                self.has_large_message |= self.length > DEFAULT_MESSAGE_BYTES_MAX;
            }
            // The count of messages wraps around, because a stream can be endless.
            self.complete_messages = self.complete_messages.wrapping_add(u32::from(self.message_bytes_left == 0));
        }
        self.complete_messages.wrapping_sub(before)
    }

    /// Returns the number of complete messages.
    pub fn complete_messages(&self) -> u32 {
        self.complete_messages
    }

    /// Returns whether any message is compressed.
    pub fn has_compressed_message(&self) -> bool {
        self.compressed
    }

    /// Returns whether any message prefix is invalid, so that the bytes after the prefix cannot be
    /// parsed.
    pub fn has_invalid_prefix(&self) -> bool {
        self.has_invalid_prefix
    }

    /// Returns whether any message is longer than [`DEFAULT_MESSAGE_BYTES_MAX`].
    pub fn has_large_message(&self) -> bool {
        self.has_large_message
    }

    /// Returns whether the content ends within a message.
    pub fn ends_within_message(&self) -> bool {
        self.message_bytes_left > 0 || self.prefix > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_from_any_split() {
        let texts: [&[u8]; 5] = [b"", b"a", &[7; 300], b"", b"end"];
        let mut content = Vec::new();
        texts.iter().for_each(|text| write_message(text, false, &mut content));
        assert_eq!(GrpcMessages::new(&content).collect::<Result<Vec<_>, _>>(), Ok(texts.to_vec()));
        for cut in 0..content.len() {
            let read: Vec<_> = GrpcMessages::new(&content[..cut]).collect();
            let mut count = GrpcMessageCounter::default();
            let first = count.count_piece(&content[..cut]);
            assert_eq!(count.ends_within_message(), read.last() == Some(&Err(GrpcFramingError::Cut)), "{cut}");
            assert_eq!(first as usize, read.iter().filter(|one| one.is_ok()).count(), "{cut}");
            assert_eq!((first + count.count_piece(&content[cut..]), count.ends_within_message()), (5, false), "{cut}");
        }
        let mut count = GrpcMessageCounter::default();
        let told: u32 = content.iter().map(|byte| count.count_piece(&[*byte])).sum();
        assert_eq!((told, count.ends_within_message()), (5, false));
        let read: Vec<_> = GrpcMessages::new(&[1, 0, 0, 0, 0]).collect();
        assert_eq!(read, [Err(GrpcFramingError::Compressed)]);
        assert_eq!(GrpcMessages::new(b"").next(), None);
    }

    #[test]
    fn compressed_messages_are_counted() {
        let mut content = Vec::new();
        write_message(b"xyz", true, &mut content);
        assert_eq!(content, [1, 0, 0, 0, 3, b'x', b'y', b'z']);
        for cut in 0..=content.len() {
            let mut count = GrpcMessageCounter::default();
            assert_eq!(count.count_piece(&content[..cut]) + count.count_piece(&content[cut..]), 1);
            assert_eq!(
                (
                    count.complete_messages(),
                    count.ends_within_message(),
                    count.has_compressed_message(),
                    count.has_invalid_prefix()
                ),
                (1, false, true, false)
            );
        }
        for (length, is_large) in [(DEFAULT_MESSAGE_BYTES_MAX, false), (DEFAULT_MESSAGE_BYTES_MAX + 1, true)] {
            let mut count = GrpcMessageCounter::default();
            count.count_piece(&[&[0][..], &length.to_be_bytes()].concat());
            assert_eq!((count.has_large_message(), count.ends_within_message()), (is_large, true));
        }
        let mut count = GrpcMessageCounter::default();
        count.count_piece(b"<html>");
        assert!(count.has_invalid_prefix() && !count.has_compressed_message());
    }
}
