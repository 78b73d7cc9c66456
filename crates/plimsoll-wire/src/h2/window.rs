//! Flow-control windows of streams and connections, on both sides ([RFC 9113,
//! 5.2](https://www.rfc-editor.org/rfc/rfc9113#section-5.2)). [`SendWindow`] counts how many bytes
//! may still be sent to the peer. [`OwnReceiveWindow`] counts how many bytes of a window the peer
//! has used, and determines when the peer needs a window update. Not here: the effect of an error
//! on the stream or the connection.

use super::frame::{PAYLOAD_BYTES_MAX, WINDOW_MAX};
use crate::error::ProtocolError;

/// The initial size of a flow-control window in bytes (RFC 9113, 6.9.2).
pub(super) const INITIAL_WINDOW_BYTES: u32 = 65_535;

/// The number of bytes that may still be sent to the peer. The number may be below 0 after the peer
/// reduced its initial window size.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    /// Creates a window of `bytes` bytes.
    pub(super) fn new(bytes: u32) -> SendWindow {
        SendWindow(i64::from(bytes))
    }

    /// Returns the number of bytes that may be sent now. If the number is 0 or less, nothing may be
    /// sent.
    #[inline]
    pub(super) fn sendable_bytes(self) -> i64 {
        self.0
    }

    /// Subtracts the number of bytes that were sent from the window.
    #[inline]
    pub(super) fn subtract_sent(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Adds the increment of a WINDOW_UPDATE frame to the window (RFC 9113, 6.9). Returns an error
    /// if the increment is 0, or if the window exceeds the largest size.
    pub(super) fn add_increment(&mut self, bytes: u32) -> Result<(), ProtocolError> {
        if bytes == 0 {
            return Err(ProtocolError::ZeroWindow);
        }
        self.adjust_size(i64::from(bytes))
    }

    fn adjust_size(&mut self, bytes: i64) -> Result<(), ProtocolError> {
        self.0 += bytes;
        if self.0 > WINDOW_MAX { Err(ProtocolError::Window) } else { Ok(()) }
    }
}

/// Applies a new initial window size, `size` bytes, that the peer announced. `first` refers to the
/// old initial size, which the function replaces by the new initial size. The windows of open
/// streams change by the difference of the two sizes (RFC 9113, 6.9.2). Returns an error if a
/// window exceeds the largest size.
pub(super) fn resize_windows<'a>(
    first: &mut u32,
    size: u32,
    windows: impl Iterator<Item = &'a mut SendWindow>,
) -> Result<(), ProtocolError> {
    let grown = i64::from(size) - i64::from(*first);
    *first = size;
    for window in windows {
        window.adjust_size(grown)?;
    }
    Ok(())
}

/// The part of a receive window that the peer has used since the last update.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnReceiveWindow {
    used: u32,
}

/// The effect of a frame's content on a receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowUse {
    /// The content took the window below neither threshold (half of the window, one maximum frame),
    /// so no further window update is due.
    NoThresholdCrossed,
    /// At most half of the window is left now, so a window update is due.
    BelowHalf,
    /// Less than the maximum frame length is left now, so the peer may wait for a window update.
    BelowFrameSize,
    /// The peer has sent more than the window permits.
    WindowExceeded,
}

impl OwnReceiveWindow {
    /// Records that the peer used `bytes` bytes of a receive window of `size` bytes, and returns
    /// the effect on the window. `BelowHalf` and `BelowFrameSize` are each returned only once until
    /// the window is refilled.
    #[inline]
    pub(super) fn record_use(&mut self, bytes: u32, size: u32) -> WindowUse {
        let before = self.used;
        self.used = before.saturating_add(bytes);
        let passes = |mark: u32| before < mark && self.used >= mark;
        match self.used {
            used if used > size => WindowUse::WindowExceeded,
            _ if passes(size - PAYLOAD_BYTES_MAX as u32 + 1) => WindowUse::BelowFrameSize,
            _ if passes(size / 2) => WindowUse::BelowHalf,
            _ => WindowUse::NoThresholdCrossed,
        }
    }

    /// Records that a window update is sent. Returns the increment that makes the window full
    /// again.
    pub(super) fn take_update_increment(&mut self) -> u32 {
        std::mem::take(&mut self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_window_grows_up_to_its_maximum() {
        let check = |first: u32, spent: usize, more: u32, expect: Result<i64, ProtocolError>| {
            let mut window = SendWindow::new(first);
            window.subtract_sent(spent);
            assert_eq!(
                window.add_increment(more).map(|()| window.sendable_bytes()),
                expect,
                "{first} - {spent} + {more}"
            );
        };
        check(65_535, 0, 1, Ok(65_536));
        check(65_535, 65_535, 7, Ok(7));
        check(0, 0, 0, Err(ProtocolError::ZeroWindow));
        check(0, 0, WINDOW_MAX as u32, Ok(WINDOW_MAX));
        check(1, 0, WINDOW_MAX as u32, Err(ProtocolError::Window));
        check(1, 1, WINDOW_MAX as u32, Ok(WINDOW_MAX));
    }

    #[test]
    fn a_new_window_size_changes_open_windows_by_the_difference() {
        let (mut first, mut windows) = (100, [SendWindow::new(100), SendWindow::new(100)]);
        windows[1].subtract_sent(60);
        assert_eq!(resize_windows(&mut first, 50, windows.iter_mut()), Ok(()));
        assert_eq!(
            (first, windows[0].sendable_bytes(), windows[1].sendable_bytes()),
            (50, 50, -10),
            "a window can be below nothing"
        );
        windows[0].add_increment(1).expect("there is room");
        assert_eq!(resize_windows(&mut first, WINDOW_MAX as u32, windows.iter_mut()), Err(ProtocolError::Window));
    }

    #[test]
    fn each_window_use_reports_its_update_once() {
        const WINDOW_BYTES: u32 = 100_000;
        let check = |uses: &[u32], last: WindowUse| {
            let mut window = OwnReceiveWindow::default();
            let said = uses.iter().map(|bytes| window.record_use(*bytes, WINDOW_BYTES)).last();
            assert_eq!(said, Some(last), "{uses:?}");
        };
        check(&[0], WindowUse::NoThresholdCrossed);
        check(&[49_999], WindowUse::NoThresholdCrossed);
        check(&[50_000], WindowUse::BelowHalf);
        check(&[49_999, 1], WindowUse::BelowHalf);
        check(&[50_000, 1], WindowUse::NoThresholdCrossed);
        check(&[50_000, 33_616], WindowUse::NoThresholdCrossed);
        check(&[50_000, 33_617], WindowUse::BelowFrameSize);
        check(&[83_617, 1], WindowUse::NoThresholdCrossed);
        check(&[100_000], WindowUse::BelowFrameSize);
        check(&[100_000, 1], WindowUse::WindowExceeded);
        check(&[50_000, u32::MAX], WindowUse::WindowExceeded);
        let mut window = OwnReceiveWindow::default();
        window.record_use(60_000, WINDOW_BYTES);
        assert_eq!(window.take_update_increment(), 60_000);
        assert_eq!(window.record_use(50_000, WINDOW_BYTES), WindowUse::BelowHalf, "full again");
    }
}
