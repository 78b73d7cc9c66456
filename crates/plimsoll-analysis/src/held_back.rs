//! Responses delayed by a delayed acknowledgement. A server wrote head and body of a short response
//! separately, and its kernel holds the second small piece back until the first is acknowledged
//! (Nagle's algorithm, RFC 896). The client delays that acknowledgement (RFC 1122, 4.2.3.2).
//! Nothing works on such a request: it is no backlog. [`under`] detects the delay in a load, and
//! [`waited_ns`] counts the waiting responses.
//!
//! Kernels delay acknowledgements only after the first responses: Linux sends up to 16 of a new
//! connection at once. So response times grow by 40 ms during a load, with more requests in flight,
//! without any overload.

use crate::summary::Summary;
use plimsoll_model::Interval;
use std::ops::Range;

/// The delay of a delayed acknowledgement: at least 40 ms on Linux (TCP_DELACK_MIN), plus or minus
/// a tick of the kernel, and for tails plus or minus other variation.
const ACK_PUT_OFF_NS: [Range<f64>; 2] = [38e6..46e6, 30e6..46e6];
/// Of a longer answer the rest is on its way when the first byte comes.
const SHORT_ANSWER_BYTES: f64 = 16_384.0;

/// Delay of responses by delayed acknowledgements in this load, ns; `None`: no delay.
pub(crate) fn under(summary: &Summary) -> Option<f64> {
    let whole = &summary.whole;
    let behind = |service_ns: u64, ttfb_ns: u64| service_ns as f64 - ttfb_ns as f64;
    let behind_ns = [behind(whole.service.p50_ns, whole.ttfb.p50_ns), behind(whole.service.p99_ns, whole.ttfb.p99_ns)];
    held_back_ns(behind_ns, whole.answers_bytes as f64 / whole.ttfb.count.max(1) as f64)
}

/// The same for responses of this size, from the time between first and last byte at the median and
/// the 99th percentile.
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
        // The same delay by chance, but bytes are sent meanwhile.
        check([41.0, 41.0], 1e6, None);
        check([21.0, 24.0], 200.0, None);
        check([60.0, 300.0], 200.0, None);
        check([0.1, 0.4], 200.0, None);
    }
}
