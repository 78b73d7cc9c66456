//! The rest of answers that waits for an acknowledgement: a server has written head and rest of a
//! short answer apart, and its kernel holds the second small piece back until the first one is
//! acknowledged (Nagle's algorithm, RFC 896), which ours puts off (RFC 1122, 4.2.3.2). Nobody works
//! on such a request, and none waits for it: it is no backlog. What a load says of it ([`under`]),
//! and how many wait so ([`waited_ns`]).
//!
//! Kernels put acknowledgements off for some answers only, at first: Linux sends up to 16 of a new
//! connection's at once. So answers become slower by 40 ms while a load goes on, and as many more
//! are under way, without any load that is too much.

use crate::summary::Summary;
use plimsoll_model::Interval;
use std::ops::Range;

/// The time after which an acknowledgement that is put off is sent: 40 ms at least on Linux
/// (TCP_DELACK_MIN), more or less a tick of the kernel's, and of tails, more or less what else
/// differs.
const ACK_PUT_OFF_NS: [Range<f64>; 2] = [38e6..46e6, 30e6..46e6];
/// Of a longer answer the rest is on its way when the first byte comes.
const SHORT_ANSWER_BYTES: f64 = 16_384.0;

/// How long the rest of answers waits for an acknowledgement under this load, in ns; `None`: it
/// does not.
pub(crate) fn under(summary: &Summary) -> Option<f64> {
    let whole = &summary.whole;
    let behind = |service_ns: u64, ttfb_ns: u64| service_ns as f64 - ttfb_ns as f64;
    let behind_ns = [behind(whole.service.p50_ns, whole.ttfb.p50_ns), behind(whole.service.p99_ns, whole.ttfb.p99_ns)];
    held_back_ns(behind_ns, whole.answers_bytes as f64 / whole.ttfb.count.max(1) as f64)
}

/// The same, of answers of so many bytes, by how much later the last byte comes than the first, at
/// the median and at the 99th percentile.
fn held_back_ns(behind_ns: [f64; 2], answer_bytes: f64) -> Option<f64> {
    let put_off = behind_ns.into_iter().zip(ACK_PUT_OFF_NS).find(|(ns, range)| range.contains(ns))?;
    (answer_bytes <= SHORT_ANSWER_BYTES).then_some(put_off.0)
}

/// The time that the short answers of this tick waited for their rest, in ns, all together; of each
/// no more than an acknowledgement is put off. Over a stretch of time: how many waited so, on
/// average (Little's law).
pub(crate) fn waited_ns(tick: &Interval) -> f64 {
    let whole = tick.whole();
    let answers = whole.ttfb.count() as f64;
    if whole.answers_bytes as f64 > SHORT_ANSWER_BYTES * answers {
        return 0.0;
    }
    let waited_ns = whole.service.sum_ns() as f64 - whole.ttfb.sum_ns() as f64;
    waited_ns.clamp(0.0, ACK_PUT_OFF_NS[0].end * answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_an_answer_is_held_back_for_the_time_of_an_acknowledgement_put_off() {
        fn check(behind_ms: [f64; 2], answer_bytes: f64, expect_ms: Option<f64>) {
            let found = held_back_ns(behind_ms.map(|ms| ms * 1e6), answer_bytes);
            assert_eq!(found, expect_ms.map(|ms| ms * 1e6), "{behind_ms:?}");
        }
        check([41.0, 41.0], 200.0, Some(41.0));
        // Of some answers only.
        check([4.0, 36.0], 200.0, Some(36.0));
        // By chance as long, but it is sent meanwhile.
        check([41.0, 41.0], 1e6, None);
        check([21.0, 24.0], 200.0, None);
        check([60.0, 300.0], 200.0, None);
        check([0.1, 0.4], 200.0, None);
    }
}
