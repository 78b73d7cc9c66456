//! Messages of gRPC calls as they stand in content: each with a byte that says whether it is
//! compressed, and its length in four more. Not here: what messages hold (whoever knows their types
//! is a [`MessageText`]), how compression is done.

use std::sync::Arc;

/// Bytes before each message.
const PREFIX_BYTES: usize = 5;

/// Longer messages are refused by the usual clients of gRPC, unless they are told to take them.
pub const MESSAGE_BYTES_USUAL: u32 = 4 << 20;

/// Appends a message, as it is sent.
pub fn write_message(message: &[u8], is_compressed: bool, out: &mut Vec<u8>) {
    out.push(u8::from(is_compressed));
    // Longer ones are refused where they are made.
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// The messages of one method as JSON, for those who look into answers and fill in what is asked.
pub trait MessageText: Send + Sync + std::fmt::Debug {
    /// Writes the content of an answer behind `json`: an object, or a list of them where the method
    /// gives several. False: it is no such content.
    fn read(&self, content: &[u8], json: &mut Vec<u8>) -> bool;

    /// Writes the messages that a body stands for behind `content`. False: it stands for none;
    /// nothing is written then.
    fn write(&self, body: &[u8], content: &mut Vec<u8>) -> bool;
}

/// By the number of the route, for those whose messages somebody looks into.
pub type MessageTexts = Vec<Option<Arc<dyn MessageText>>>;

/// Why content is no messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It ends within a message.
    #[error("the answer ends in the middle of a message")]
    Cut,
    /// Nobody asked for compression.
    #[error("the answer has a compressed message, which nobody asked for")]
    Compressed,
}

/// The messages in the whole content of an answer, in order.
#[derive(Debug, Clone)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Those in `content`.
    pub fn new(content: &'a [u8]) -> Messages<'a> {
        Messages(content)
    }

    /// The next message, and whether it is compressed.
    pub fn next_packed(&mut self) -> Option<Result<(bool, &'a [u8]), MessageError>> {
        if self.0.is_empty() {
            return None;
        }
        let taken = match self.0 {
            [packed, a, b, c, d, rest @ ..] => rest
                .split_at_checked(u32::from_be_bytes([*a, *b, *c, *d]) as usize)
                .map(|(message, after)| ((*packed != 0, message), after)),
            _ => None,
        };
        // After an error there is nothing more to be understood.
        self.0 = taken.map_or(&[], |(_, after)| after);
        Some(taken.map(|(message, _)| message).ok_or(MessageError::Cut))
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<&'a [u8], MessageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_packed()?;
        if matches!(next, Ok((true, _))) {
            self.0 = &[];
            return Some(Err(MessageError::Compressed));
        }
        Some(next.map(|(_, message)| message))
    }
}

/// Counts messages in content that comes in pieces, compressed or not, without looking into them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCount {
    whole: u32,
    /// What is missing of the message that has begun.
    left: u32,
    /// Of the bytes before a message, how many have come; and of its length.
    prefix: u8,
    length: u32,
    /// Messages say that they are compressed, or something that is neither yes nor no.
    compressed: bool,
    odd: bool,
    large: bool,
}

impl MessageCount {
    /// Takes the next piece of the content. Returns how many messages are whole with it.
    pub fn take(&mut self, mut piece: &[u8]) -> u32 {
        let before = self.whole;
        while let [first, after @ ..] = piece {
            if self.left > 0 {
                let bytes = piece.len().min(self.left as usize);
                self.left -= bytes as u32;
                piece = &piece[bytes..];
            } else {
                if self.prefix == 0 {
                    self.length = 0;
                    self.compressed |= *first == 1;
                    self.odd |= *first > 1;
                } else {
                    self.length = self.length << 8 | u32::from(*first);
                }
                self.prefix += 1;
                piece = after;
                if usize::from(self.prefix) < PREFIX_BYTES {
                    continue;
                }
                (self.prefix, self.left) = (0, self.length);
                self.large |= self.length > MESSAGE_BYTES_USUAL;
            }
            // In a stream without end they are counted round.
            self.whole = self.whole.wrapping_add(u32::from(self.left == 0));
        }
        self.whole.wrapping_sub(before)
    }

    /// How many are whole.
    pub fn whole(&self) -> u32 {
        self.whole
    }

    /// Whether any says that it is compressed.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Whether what stands before any is no gRPC's: what comes behind it means nothing.
    pub fn is_odd(&self) -> bool {
        self.odd
    }

    /// Whether any is longer than [`MESSAGE_BYTES_USUAL`].
    pub fn has_large(&self) -> bool {
        self.large
    }

    /// Whether a message has begun that is not whole.
    pub fn is_cut(&self) -> bool {
        self.left > 0 || self.prefix > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_however_they_are_cut() {
        let texts: [&[u8]; 5] = [b"", b"a", &[7; 300], b"", b"end"];
        let mut content = Vec::new();
        texts.iter().for_each(|text| write_message(text, false, &mut content));
        assert_eq!(Messages::new(&content).collect::<Result<Vec<_>, _>>(), Ok(texts.to_vec()));
        for cut in 0..content.len() {
            let read: Vec<_> = Messages::new(&content[..cut]).collect();
            let mut count = MessageCount::default();
            let first = count.take(&content[..cut]);
            assert_eq!(count.is_cut(), read.last() == Some(&Err(MessageError::Cut)), "{cut}");
            assert_eq!(first as usize, read.iter().filter(|one| one.is_ok()).count(), "{cut}");
            assert_eq!((first + count.take(&content[cut..]), count.is_cut()), (5, false), "{cut}");
        }
        let mut count = MessageCount::default();
        let told: u32 = content.iter().map(|byte| count.take(&[*byte])).sum();
        assert_eq!((told, count.is_cut()), (5, false));
        let read: Vec<_> = Messages::new(&[1, 0, 0, 0, 0]).collect();
        assert_eq!(read, [Err(MessageError::Compressed)]);
        assert_eq!(Messages::new(b"").next(), None);
    }

    #[test]
    fn compressed_messages_are_counted() {
        let mut content = Vec::new();
        write_message(b"xyz", true, &mut content);
        assert_eq!(content, [1, 0, 0, 0, 3, b'x', b'y', b'z']);
        for cut in 0..=content.len() {
            let mut count = MessageCount::default();
            assert_eq!(count.take(&content[..cut]) + count.take(&content[cut..]), 1);
            assert_eq!((count.whole(), count.is_cut(), count.is_compressed(), count.is_odd()), (1, false, true, false));
        }
        for (length, is_large) in [(MESSAGE_BYTES_USUAL, false), (MESSAGE_BYTES_USUAL + 1, true)] {
            let mut count = MessageCount::default();
            count.take(&[&[0][..], &length.to_be_bytes()].concat());
            assert_eq!((count.has_large(), count.is_cut()), (is_large, true));
        }
        let mut count = MessageCount::default();
        count.take(b"<html>");
        assert!(count.is_odd() && !count.is_compressed());
    }
}
