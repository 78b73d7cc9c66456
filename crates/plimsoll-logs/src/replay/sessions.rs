//! Collects the sessions of a log, so that a load can draw sessions at any rate. The facts of the
//! log are its number of sessions, its length, and its busiest minute and second.
//!
//! Not here: drawing sessions (`plimsoll_model::session_draws`).

use super::logged::{LoggedRequest, session_ranges};
use plimsoll_model::units::SECOND;
use plimsoll_model::{LogSessions, LogSessionsFacts};

/// Groups requests, which are in order of time, into sessions, and returns the facts of the log.
/// `None` if there are no requests or too many requests.
pub(super) fn group_sessions(requests: &[LoggedRequest], span_ns: u64) -> Option<(LogSessions, LogSessionsFacts)> {
    let first_ns = requests.first()?.start_ns;
    let starts_ns = requests.iter().map(|request| request.start_ns - first_ns).collect();
    let mut by_session: Vec<u32> = (0..u32::try_from(requests.len()).ok()?).collect();
    let of = |entry: &u32| &requests[*entry as usize];
    by_session.sort_by_key(|entry| (of(entry).visitor, *entry));
    let ends: Vec<u32> = session_ranges(by_session.iter().map(of)).iter().map(|range| range.end as u32).collect();
    let facts = LogSessionsFacts {
        sessions: ends.len() as u64,
        span_ns,
        busiest_minute_requests: busiest_interval_requests(requests, 60 * SECOND),
        busiest_second_requests: busiest_interval_requests(requests, SECOND),
    };
    Some((LogSessions::new(starts_ns, by_session, ends)?, facts))
}

/// Returns the number of requests in the busiest interval of `length_ns`, aligned to the clock.
fn busiest_interval_requests(requests: &[LoggedRequest], length_ns: u64) -> u64 {
    let stretches = requests.chunk_by(|a, b| a.start_ns / length_ns == b.start_ns / length_ns);
    stretches.map(<[LoggedRequest]>::len).max().unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_and_pauses_define_sessions() {
        let request = |(start_s, visitor): (u64, u32)| LoggedRequest {
            start_ns: start_s * SECOND,
            target: 0,
            visitor,
            duration_us: 0,
            route: 0,
            status: 200,
        };
        // The log has two visitors, one of whom returns after an hour.
        let requests: Vec<LoggedRequest> =
            [(60, 1), (60, 2), (61, 1), (119, 2), (120, 1), (4000, 1)].map(request).to_vec();
        let (sessions, facts) = group_sessions(&requests, 3941 * SECOND).expect("sessions");
        assert_eq!(
            (sessions.request_indices_by_session(), sessions.session_ends()),
            (&[0, 2, 4, 5, 1, 3][..], &[3, 4, 6][..])
        );
        assert_eq!(sessions.starts_ns()[5], 3940 * SECOND);
        let expect = LogSessionsFacts {
            sessions: 3,
            span_ns: 3941 * SECOND,
            busiest_minute_requests: 4,
            busiest_second_requests: 2,
        };
        assert_eq!(facts, expect);
    }
}
