//! Delayed acknowledgements: the last part of a response waits until the client acknowledges the
//! first part.
//!
//! The server writes the head and the body of a short response separately. Its kernel sends the
//! second small piece only when the first is acknowledged (Nagle's algorithm, RFC 896). The
//! client's kernel delays that acknowledgement (RFC 1122, 4.2.3.2). Meanwhile nothing works on the
//! request, and no other request waits behind this request, so the request is no backlog. This file
//! detects the delay in a load ([`ack_delay_ns`]) and computes the time that responses waited
//! ([`ack_wait_sum_ns`]).
//!
//! At first, kernels delay only some acknowledgements: Linux sends up to 16 acknowledgements of a
//! new connection immediately. So responses become slower by 40 ms during a load, and more requests
//! are in flight, without any overload.

use crate::summary::Summary;
use plimsoll_model::Interval;
use std::ops::Range;

/// Range of the delay of an acknowledgement, in ns: at the median, and at the 99th percentile. On
/// Linux the delay is at least 40 ms (TCP_DELACK_MIN), give or take a kernel tick. Tails vary more.
const ACK_DELAY_NS: [Range<f64>; 2] = [38e6..46e6, 30e6..46e6];
/// Largest response, in bytes, that can be delayed. When the first byte of a longer response
/// arrives, the rest is already in transit.
const SHORT_ANSWER_BYTES: f64 = 16_384.0;

/// Returns how long the rest of responses waits for an acknowledgement in this load, in ns; `None`
/// if responses do not wait.
pub(crate) fn ack_delay_ns(summary: &Summary) -> Option<f64> {
    let whole = &summary.whole;
    let behind = |service_ns: u64, ttfb_ns: u64| service_ns as f64 - ttfb_ns as f64;
    let behind_ns = [behind(whole.service.p50_ns, whole.ttfb.p50_ns), behind(whole.service.p99_ns, whole.ttfb.p99_ns)];
    held_back_ns(behind_ns, whole.answers_bytes as f64 / whole.ttfb.count.max(1) as f64)
}

/// Returns the acknowledgement delay of responses of `answer_bytes` bytes, in ns; `None` without a
/// delay. `behind_ns` says how much later the last byte arrives than the first, at the median and
/// at the 99th percentile.
fn held_back_ns(behind_ns: [f64; 2], answer_bytes: f64) -> Option<f64> {
    let put_off = behind_ns.into_iter().zip(ACK_DELAY_NS).find(|(ns, range)| range.contains(ns))?;
    (answer_bytes <= SHORT_ANSWER_BYTES).then_some(put_off.0)
}

/// Returns the time that the short responses of this tick waited for their rest, in ns, summed over
/// responses. Each response counts for at most the delay of one acknowledgement. The sum divided by
/// a length of time is the mean number of waiting responses (Little's law).
pub(crate) fn ack_wait_sum_ns(tick: &Interval) -> f64 {
    let whole = tick.all_routes();
    let answers = whole.ttfb.count() as f64;
    if whole.answers_bytes as f64 > SHORT_ANSWER_BYTES * answers {
        return 0.0;
    }
    let waited_ns = whole.service.sum_ns() as f64 - whole.ttfb.sum_ns() as f64;
    waited_ns.clamp(0.0, ACK_DELAY_NS[0].end * answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delayed_acknowledgements_are_detected() {
        fn check(behind_ms: [f64; 2], answer_bytes: f64, expect_ms: Option<f64>) {
            let found = held_back_ns(behind_ms.map(|ms| ms * 1e6), answer_bytes);
            assert_eq!(found, expect_ms.map(|ms| ms * 1e6), "{behind_ms:?}");
        }
        check([41.0, 41.0], 200.0, Some(41.0));
        // Only some responses are delayed.
        check([4.0, 36.0], 200.0, Some(36.0));
        // The delay is equal by chance, but the response is so long that its rest is sent
        // meanwhile.
        check([41.0, 41.0], 1e6, None);
        check([21.0, 24.0], 200.0, None);
        check([60.0, 300.0], 200.0, None);
        check([0.1, 0.4], 200.0, None);
    }
}
