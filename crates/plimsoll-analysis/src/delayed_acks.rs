//! Delayed acknowledgements (TCP): the server's kernel sends the last part of a response only after
//! the client has acknowledged the first part.
//!
//! The server writes the head and the body of a short response separately. The server's kernel
//! sends the second small segment only after the first segment is acknowledged (Nagle's algorithm,
//! RFC 896). The client's kernel delays the acknowledgement of the first segment (RFC 1122,
//! 4.2.3.2). While a response waits for an acknowledgement, the server does not work on the
//! request, and the request delays no other request. A request that waits for an acknowledgement is
//! therefore no part of the backlog. This file detects the delay in a load ([`ack_delay_ns`]), and
//! computes for how long responses waited ([`ack_wait_sum_ns`]).
//!
//! On new connections, kernels delay only some acknowledgements: Linux sends up to 16
//! acknowledgements of a new connection immediately. When kernels later begin to delay
//! acknowledgements, responses become slower by 40 ms. More requests are then in flight, although
//! the server is not overloaded.

use crate::summary::Summary;
use plimsoll_model::Interval;
use std::ops::Range;

/// Range of the delay of an acknowledgement, in ns: at the median, and at the 99th percentile. On
/// Linux the delay is at least 40 ms (TCP_DELACK_MIN), plus or minus one kernel tick. The 99th
/// percentile of the delay varies more than the median.
const ACK_DELAY_NS: [Range<f64>; 2] = [38e6..46e6, 30e6..46e6];
/// Largest response, in bytes, that a delayed acknowledgement can hold back. When the first byte of
/// a longer response arrives, the kernel has already sent the whole response.
const SHORT_RESPONSE_BYTES_MAX: f64 = 16_384.0;

/// Returns for how long the last part of a response waits for an acknowledgement in this load, in
/// ns; `None` if responses do not wait.
pub(crate) fn ack_delay_ns(summary: &Summary) -> Option<f64> {
    let whole = &summary.routes_sum;
    let behind = |service_ns: u64, ttfb_ns: u64| service_ns as f64 - ttfb_ns as f64;
    let behind_ns = [behind(whole.service.p50_ns, whole.ttfb.p50_ns), behind(whole.service.p99_ns, whole.ttfb.p99_ns)];
    response_ack_delay_ns(behind_ns, whole.answers_bytes as f64 / whole.ttfb.count.max(1) as f64)
}

/// Returns for how long responses of `answer_bytes` bytes wait for delayed acknowledgements, in ns;
/// `None` if these responses do not wait. `behind_ns` contains the time from the first byte to the
/// last byte of a response, at the median and at the 99th percentile.
fn response_ack_delay_ns(behind_ns: [f64; 2], answer_bytes: f64) -> Option<f64> {
    let put_off = behind_ns.into_iter().zip(ACK_DELAY_NS).find(|(ns, range)| range.contains(ns))?;
    (answer_bytes <= SHORT_RESPONSE_BYTES_MAX).then_some(put_off.0)
}

/// Returns the sum of the times for which short responses of this tick waited for an
/// acknowledgement, in ns. Each response counts with the delay of one acknowledgement at most. The
/// sum of the waiting times divided by the length of the tick is the mean number of waiting
/// responses (Little's law).
pub(crate) fn ack_wait_sum_ns(tick: &Interval) -> f64 {
    let whole = tick.all_routes();
    let answers = whole.ttfb.count() as f64;
    if whole.answers_bytes as f64 > SHORT_RESPONSE_BYTES_MAX * answers {
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
            let found = response_ack_delay_ns(behind_ms.map(|ms| ms * 1e6), answer_bytes);
            assert_eq!(found, expect_ms.map(|ms| ms * 1e6), "{behind_ms:?}");
        }
        check([41.0, 41.0], 200.0, Some(41.0));
        // Only some of the responses wait for a delayed acknowledgement.
        check([4.0, 36.0], 200.0, Some(36.0));
        // The time from the first to the last byte equals an acknowledgement delay by chance. The
        // response is so long that the kernel sends the last part without waiting.
        check([41.0, 41.0], 1e6, None);
        check([21.0, 24.0], 200.0, None);
        check([60.0, 300.0], 200.0, None);
        check([0.1, 0.4], 200.0, None);
    }
}
