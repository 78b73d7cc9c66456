//! Splits messages that are longer than the bus permits into pieces ([`split_message`]), and
//! assembles them again ([`PieceAssembler`]). A message with a lost piece is dropped, because its
//! sender repeats it.
//!
//! Not here: the content of messages (`frame`), and the transport of pieces.

use std::collections::BTreeMap;

/// The length of the header of a piece, bytes: message number (u64 LE), index of the piece and
/// number of pieces (u32 LE each).
const PIECE_HEADER_BYTES: usize = 16;
/// The largest number of incomplete messages that are kept for one sender.
const INCOMPLETE_MESSAGES_MAX: usize = 8;

/// Splits a message into pieces of at most `piece_bytes` bytes. Each message of a sender needs a
/// new `number`.
pub fn split_message(number: u64, message: &[u8], piece_bytes: usize) -> Vec<Vec<u8>> {
    let content_bytes = piece_bytes.saturating_sub(PIECE_HEADER_BYTES).max(1);
    let count = message.len().div_ceil(content_bytes).max(1) as u32;
    let piece = |index: u32| {
        let start = index as usize * content_bytes;
        let content = &message[start..message.len().min(start + content_bytes)];
        let mut piece = Vec::with_capacity(PIECE_HEADER_BYTES + content.len());
        piece.extend_from_slice(&number.to_le_bytes());
        piece.extend_from_slice(&index.to_le_bytes());
        piece.extend_from_slice(&count.to_le_bytes());
        piece.extend_from_slice(content);
        piece
    };
    (0..count).map(piece).collect()
}

/// The pieces of incomplete messages from one sender.
#[derive(Debug)]
pub struct PieceAssembler {
    open: BTreeMap<u64, PartialMessage>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct PartialMessage {
    count: u32,
    pieces: BTreeMap<u32, Vec<u8>>,
    bytes: usize,
}

impl PieceAssembler {
    /// Creates an assembler that keeps at most `bytes_max` bytes of incomplete messages.
    pub fn new(bytes_max: usize) -> PieceAssembler {
        PieceAssembler { open: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// Adds a piece. Returns the message if the piece completes it. Invalid pieces are dropped.
    pub fn add_piece(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        let (head, content) = piece.split_at_checked(PIECE_HEADER_BYTES)?;
        let number = u64::from_le_bytes(head[..8].try_into().ok()?);
        let index = u32::from_le_bytes(head[8..12].try_into().ok()?);
        let count = u32::from_le_bytes(head[12..].try_into().ok()?);
        if index >= count {
            return None;
        }
        if count == 1 {
            return Some(content.to_vec());
        }
        let partial =
            self.open.entry(number).or_insert_with(|| PartialMessage { count, pieces: BTreeMap::new(), bytes: 0 });
        if partial.count != count || partial.pieces.contains_key(&index) {
            return None;
        }
        partial.pieces.insert(index, content.to_vec());
        partial.bytes += content.len();
        self.bytes += content.len();
        if partial.pieces.len() == count as usize {
            let whole = self.open.remove(&number)?;
            self.bytes -= whole.bytes;
            return Some(whole.pieces.into_values().flatten().collect());
        }
        // The oldest incomplete messages have probably lost a piece, so they are dropped first.
        while self.open.len() > INCOMPLETE_MESSAGES_MAX || self.bytes > self.bytes_max {
            let (_, oldest) = self.open.pop_first()?;
            self.bytes -= oldest.bytes;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_assembled_from_pieces_in_any_order(
            length in 0usize..2_000, piece_bytes in 17usize..300, seed in any::<u64>()
        ) {
            let message: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
            let mut pieces = split_message(seed, &message, piece_bytes);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= piece_bytes));
            let turn = seed as usize % pieces.len();
            pieces.rotate_left(turn);
            let doubled = pieces[0].clone();
            if pieces.len() > 1 {
                pieces.insert(1, doubled);
            }
            let mut assembly = PieceAssembler::new(1 << 20);
            let whole: Vec<Vec<u8>> = pieces.iter().filter_map(|piece| assembly.add_piece(piece)).collect();
            prop_assert_eq!(whole, vec![message]);
            prop_assert_eq!((assembly.open.len(), assembly.bytes), (0, 0));
        }

        #[test]
        fn any_pieces_use_bounded_memory(pieces in prop::collection::vec(
            (0u64..20, 0u32..5, 0u32..5, 0usize..90), 0..200)
        ) {
            let mut assembly = PieceAssembler::new(300);
            for (number, index, count, length) in pieces {
                let mut piece = number.to_le_bytes().to_vec();
                piece.extend_from_slice(&index.to_le_bytes());
                piece.extend_from_slice(&count.to_le_bytes());
                piece.extend_from_slice(&vec![1; length]);
                let _ = assembly.add_piece(&piece);
                prop_assert!(assembly.bytes <= 300 && assembly.open.len() <= INCOMPLETE_MESSAGES_MAX);
            }
        }
    }

    #[test]
    fn an_incomplete_message_is_dropped_for_later_messages() {
        let mut assembly = PieceAssembler::new(1 << 20);
        let first = split_message(1, &[1; 100], 60);
        assert!(assembly.add_piece(&first[0]).is_none() && assembly.add_piece(b"short").is_none());
        for number in 2..=INCOMPLETE_MESSAGES_MAX as u64 + 1 {
            assert!(assembly.add_piece(&split_message(number, &[2; 100], 60)[0]).is_none());
        }
        assert!(first[1..].iter().all(|piece| assembly.add_piece(piece).is_none()), "the first was dropped");
    }
}
