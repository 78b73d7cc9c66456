//! Spreads requests at random within their second if the log's timestamps are whole seconds. The
//! requests keep the order of their log lines. A uniform distribution within the second is the
//! weakest assumption about the unknown arrival times.

use super::logged::LoggedRequest;
use plimsoll_model::rng::Rng;

/// A constant that is mixed into the seed, so that the spread is independent of other random
/// numbers from the same seed.
const TIMESTAMP_SPREAD_SEED: u64 = 0x0053_5052_4541_4421;

/// Moves requests to random times within `resolution_ns` of their timestamps, and sorts the
/// requests by time.
pub(super) fn spread_timestamps(requests: &mut [LoggedRequest], resolution_ns: u64, seed: u64) {
    let mut rng = Rng::for_stream(seed, TIMESTAMP_SPREAD_SEED);
    let mut offsets_ns: Vec<u64> = Vec::new();
    for alike in requests.chunk_by_mut(|a, b| a.start_ns == b.start_ns) {
        offsets_ns.clear();
        offsets_ns.extend(alike.iter().map(|_| rng.uniform_below(resolution_ns.max(1))));
        offsets_ns.sort_unstable();
        for (request, offset_ns) in alike.iter_mut().zip(&offsets_ns) {
            request.start_ns = request.start_ns.saturating_add(*offset_ns);
        }
    }
    requests.sort_by_key(|request| request.start_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn logged_requests(starts_s: &[u64]) -> Vec<LoggedRequest> {
        let request = |(at, start_s): (usize, &u64)| LoggedRequest {
            start_ns: start_s * SECOND,
            target: at as u32,
            visitor: 0,
            duration_us: 0,
            route: 0,
            status: 200,
        };
        starts_s.iter().enumerate().map(request).collect()
    }

    #[test]
    fn requests_keep_their_second_and_their_log_order() {
        let starts_s: Vec<u64> = (0..1000).map(|n| n / 100).collect();
        let before = logged_requests(&starts_s);
        let mut after = before.clone();
        spread_timestamps(&mut after, SECOND, 7);
        assert!(
            after.iter().zip(&before).all(|(a, b)| a.target == b.target && a.start_ns / SECOND == b.start_ns / SECOND)
        );
        // 100 requests in each second are spread uniformly: about a tenth in each tenth of a
        // second.
        let mut tenths = [0u32; 10];
        after.iter().for_each(|request| tenths[(request.start_ns % SECOND / (SECOND / 10)) as usize] += 1);
        assert!(tenths.iter().all(|count| (60..=140).contains(count)), "{tenths:?}");
        let mut again = before.clone();
        spread_timestamps(&mut again, SECOND, 7);
        assert_eq!(again, after);
        let mut other = before;
        spread_timestamps(&mut other, SECOND, 8);
        assert_ne!(other, after);
    }
}
