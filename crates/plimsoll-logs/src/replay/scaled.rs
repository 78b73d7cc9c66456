//! Changes the number of visitors of a replay. Whole sessions are duplicated or dropped, so that
//! the times within a session stay the same.
//!
//! A duplicated session is shifted in time by up to [`SESSION_SHIFT_NS_MAX`], so that its requests
//! do not coincide with the original requests. The shift is limited, so that the rate over the day
//! keeps its shape. The time shifts make bursts of many visitors smoother.

use super::logged::{LoggedRequest, ReplayTiming, session_ranges};
use plimsoll_model::rng::Rng;

/// The largest shift of a duplicated session, ns (5 minutes). In a log of less than 10 minutes, the
/// largest shift is half the length of the log.
const SESSION_SHIFT_NS_MAX: u64 = 300_000_000_000;
/// A constant that is mixed into the seed, so that the choice of sessions is independent of other
/// random numbers from the same seed.
const SESSION_CHOICE_SEED: u64 = 0x0053_4553_5349_4f4e;

/// Returns the requests of the scaled number of sessions, in order of time and within the time of
/// the log. Returns `None` if there would be more than `requests_max` requests.
pub(super) fn scale_sessions(
    mut requests: Vec<LoggedRequest>,
    timing: &ReplayTiming,
    (first_ns, span_ns): (u64, u64),
    requests_max: usize,
) -> Option<Vec<LoggedRequest>> {
    requests.sort_by_key(|request| (request.visitor, request.start_ns));
    let mut sessions = session_ranges(requests.iter());
    let mut rng = Rng::for_stream(timing.seed, SESSION_CHOICE_SEED);
    let wanted = (sessions.len() as u128 * u128::from(timing.scale_milli) + 500) / 1000;
    let wanted = usize::try_from(wanted).ok()?.max(1);
    let moved_ns_max = SESSION_SHIFT_NS_MAX.min(span_ns / 2);
    let mut scaled: Vec<LoggedRequest> = Vec::new();
    if wanted < sessions.len() {
        // Select sessions at random, each session with equal probability (partial Fisher-Yates
        // shuffle).
        for at in 0..wanted {
            let other = at + rng.uniform_below((sessions.len() - at) as u64) as usize;
            sessions.swap(at, other);
        }
        sessions[..wanted].iter().for_each(|session| scaled.extend_from_slice(&requests[session.clone()]));
    } else {
        let more = wanted - sessions.len();
        if more > requests_max {
            return None;
        }
        let drawn: Vec<usize> = (0..more).map(|_| rng.uniform_below(sessions.len() as u64) as usize).collect();
        let count: usize = drawn.iter().map(|number| sessions[*number].len()).sum();
        if requests.len().checked_add(count).is_none_or(|count| count > requests_max) {
            return None;
        }
        scaled.extend_from_slice(&requests);
        for number in drawn {
            // Requests that are shifted past the end of the log wrap around to its beginning, and
            // requests before the beginning wrap around to the end.
            let forth_ns = span_ns - moved_ns_max + rng.uniform_below(2 * moved_ns_max + 1);
            scaled.extend(requests[sessions[number].clone()].iter().map(|request| LoggedRequest {
                start_ns:
                    first_ns.saturating_add((request.start_ns - first_ns).saturating_add(forth_ns) % span_ns.max(1)),
                ..*request
            }));
        }
    }
    scaled.sort_by_key(|request| request.start_ns);
    Some(scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Returns the requests of 100 visitors with ten requests each, 1 s apart.
    fn sample_log() -> Vec<LoggedRequest> {
        let request = |n: u64| LoggedRequest {
            start_ns: 1000 * SECOND + (n / 100 + n % 100 * 3) * SECOND,
            target: (n / 100) as u32,
            visitor: (n % 100) as u32,
            duration_us: 0,
            route: 0,
            status: 200,
        };
        let mut requests: Vec<LoggedRequest> = (0..1000).map(request).collect();
        requests.sort_by_key(|request| request.start_ns);
        requests
    }

    fn replay_timing(scale_milli: u64) -> ReplayTiming {
        ReplayTiming { seed: 7, speed_milli: 1000, scale_milli, length_ns: None, lines: 0 }
    }

    #[test]
    fn scaled_replays_keep_whole_sessions() {
        let (log, span_ns) = (sample_log(), 310 * SECOND);
        for (scale_milli, count) in [(500, 500), (2000, 2000), (1250, 1250), (1, 10), (10_000, 10_000)] {
            let scaled = scale_sessions(log.clone(), &replay_timing(scale_milli), (1000 * SECOND, span_ns), 1 << 20)
                .expect("room");
            assert_eq!(scaled.len(), count, "{scale_milli}");
            assert!(scaled.is_sorted_by_key(|request| request.start_ns));
            assert!(scaled.iter().all(|request| (1000 * SECOND..1000 * SECOND + span_ns).contains(&request.start_ns)));
            // All sessions of the log stay whole, so each of the ten request numbers occurs equally
            // often.
            let mut steps = [0; 10];
            scaled.iter().for_each(|request| steps[request.target as usize] += 1);
            assert_eq!(steps, [count / 10; 10], "{scale_milli}");
        }
        assert_eq!(scale_sessions(log, &replay_timing(u64::MAX), (1000 * SECOND, span_ns), 1 << 20), None);
    }

    #[test]
    fn a_gap_makes_two_sessions() {
        let at = |start_s: u64| LoggedRequest {
            start_ns: start_s * SECOND,
            target: 0,
            visitor: 1,
            duration_us: 0,
            route: 0,
            status: 0,
        };
        let requests = vec![at(0), at(1800), at(3601)];
        // Half of two sessions is one session, which has one request or two.
        let scaled = scale_sessions(requests, &replay_timing(500), (0, 4000 * SECOND), 100).expect("room");
        assert!(matches!(scaled.len(), 1 | 2), "{scaled:?}");
    }
}
