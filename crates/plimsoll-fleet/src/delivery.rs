//! Delivers frames (numbered result messages) once and in order over a transport that may lose,
//! repeat and reorder messages. The sender keeps each frame until the receiver has recorded it
//! ([`Outbox`]). The receiver drops repeated frames and waits for missing frames ([`Inbox`]).
//!
//! Not here: the content of frames, and when a frame is sent again.

use std::collections::{BTreeMap, VecDeque};

/// The largest accepted distance of a received frame (numbered message) from the first missing
/// frame, in frames. A frame that is further ahead of the first missing frame is dropped, because
/// the sender repeats it later.
const FRAMES_AHEAD_MAX: usize = 4_096;

/// The frames that were sent and that the receiver has not confirmed as recorded.
#[derive(Debug)]
pub struct Outbox<T> {
    /// The frames in ascending order of number: number, frame, and the time when the frame was last
    /// sent, ns.
    frames: VecDeque<(u64, T, u64)>,
    last_sequence: u64,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Outbox { frames: VecDeque::new(), last_sequence: 0 }
    }
}

impl<T: Clone> Outbox<T> {
    /// Stores the frame that `make` builds with the next sequence number, and returns a copy to
    /// send.
    pub fn push(&mut self, now_ns: u64, make: impl FnOnce(u64) -> T) -> T {
        self.last_sequence += 1;
        let frame = make(self.last_sequence);
        self.frames.push_back((self.last_sequence, frame.clone(), now_ns));
        frame
    }

    /// Drops all frames up to the number `sequence`, because the receiver has recorded them.
    pub fn drop_recorded(&mut self, sequence: u64) {
        while self.frames.front().is_some_and(|(number, ..)| *number <= sequence) {
            self.frames.pop_front();
        }
    }

    /// Returns at most `count_max` of the oldest frames that were last sent at `before_ns` or
    /// earlier. Sets the send time of the returned frames to `now_ns`.
    pub fn overdue_frames(&mut self, now_ns: u64, before_ns: u64, count_max: usize) -> Vec<T> {
        let overdue = self.frames.iter_mut().filter(|(.., sent_ns)| *sent_ns <= before_ns).take(count_max);
        overdue
            .map(|(_, frame, sent_ns)| {
                *sent_ns = now_ns;
                frame.clone()
            })
            .collect()
    }

    /// Returns the number of stored frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether no frame is stored, because the receiver has recorded all frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// Puts received frames in order and drops repeated frames.
#[derive(Debug)]
pub struct Inbox<T> {
    last_sequence_without_gap: u64,
    waiting: BTreeMap<u64, T>,
    repeated_frame_count: u64,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Inbox { last_sequence_without_gap: 0, waiting: BTreeMap::new(), repeated_frame_count: 0 }
    }
}

impl<T> Inbox<T> {
    /// Adds a frame. Returns the frames that can now be delivered, in order and without gaps.
    pub fn add_frame(&mut self, sequence: u64, frame: T) -> Vec<T> {
        if sequence <= self.last_sequence_without_gap || self.waiting.contains_key(&sequence) {
            self.repeated_frame_count += 1;
            return Vec::new();
        }
        if sequence > self.last_sequence_without_gap + FRAMES_AHEAD_MAX as u64 {
            return Vec::new();
        }
        self.waiting.insert(sequence, frame);
        let mut complete = Vec::new();
        while let Some(frame) = self.waiting.remove(&(self.last_sequence_without_gap + 1)) {
            self.last_sequence_without_gap += 1;
            complete.push(frame);
        }
        complete
    }

    /// Returns the largest sequence number up to which no frame (result message) is missing.
    pub fn last_sequence_without_gap(&self) -> u64 {
        self.last_sequence_without_gap
    }

    /// Returns the number of repeated frames that were dropped.
    pub fn repeated_frame_count(&self) -> u64 {
        self.repeated_frame_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_frame_is_delivered_once_in_any_order(order in prop::collection::vec(1u64..20, 0..200)) {
            let (mut inbox, mut got) = (Inbox::default(), Vec::new());
            for number in order.iter().copied().chain(1..20) {
                got.extend(inbox.add_frame(number, number));
            }
            prop_assert_eq!(got, (1..20).collect::<Vec<_>>());
            prop_assert_eq!((inbox.last_sequence_without_gap(), inbox.repeated_frame_count()), (19, order.len() as u64));
        }
    }

    #[test]
    fn unrecorded_frames_are_stored_and_resent() {
        let mut outbox = Outbox::default();
        let sent: Vec<u64> = (0..5).map(|at| outbox.push(at * 10, |number| number)).collect();
        assert_eq!(sent, [1, 2, 3, 4, 5]);
        assert_eq!(outbox.overdue_frames(100, 10, 9), [1, 2]);
        assert_eq!(outbox.overdue_frames(100, 40, 2), [3, 4]);
        outbox.drop_recorded(3);
        assert_eq!((outbox.overdue_frames(200, 150, 9), outbox.len()), (vec![4, 5], 2));
        outbox.drop_recorded(9);
        assert!(outbox.is_empty());
        // A frame that is too far ahead of a missing frame is dropped, because the sender repeats
        // the frame.
        assert!(Inbox::default().add_frame(FRAMES_AHEAD_MAX as u64 + 1, 0).is_empty());
    }
}
