//! Stalls in one load ([`Stall`]): periods without any response although requests waited.
//!
//! Not here: the stalls of many loads together (`find/stalls.rs`).

use crate::watch::TickFigures;

/// A period without any response although requests waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When the stall began, in ns since the start of the judged window.
    pub at_ns: u64,
    /// The length of the stall, ns. If the load ended during the stall, the length is a lower
    /// bound.
    pub length_ns: u64,
    /// Whether the stall ended before the end of the load.
    pub has_ended_within_load: bool,
    /// Whether a request that was already sent waited through the whole stall. If a sent request
    /// waited, the server was the reason for the stall, whatever the generator did.
    pub has_waiting_sent_request: bool,
}

impl Stall {
    /// Returns the length of the part of this stall, in ns, in which arriving requests waited
    /// longer than `bound_ns`. If the load ended during the stall, the stall is assumed to last
    /// twice its observed length.
    pub fn time_beyond_bound_ns(&self, bound_ns: u64) -> u64 {
        let whole_ns = if self.has_ended_within_load { self.length_ns } else { self.length_ns.saturating_mul(2) };
        whole_ns.saturating_sub(bound_ns).min(self.length_ns)
    }
}

/// Smallest length of a stall, in ticks. Shorter stalls cannot be detected, because a load is
/// recorded in ticks of 100 ms.
const STALL_TICKS_MIN: usize = 1;
/// Smallest number of responses that a stall must delay to count as a stall. A long gap between the
/// responses of a server that always responds rarely is no stall.
const DELAYED_RESPONSES_MIN: f64 = 5.0;
/// Largest share of a stall for which a worker thread of plimsoll may wait for a core. Above this
/// share, plimsoll's own wait explains the missing responses.
const WAIT_FOR_CORE_SHARE_MAX: f64 = 0.5;

/// Returns the stalls in the ticks of a load. Each tick is `tick_ns` long.
///
/// The first stall in the result may be the time before the first responses, which lasts about one
/// response time. The caller knows the response time, and discards a stall that is only the time
/// before the first responses.
pub(crate) fn detect_stalls(series: &[TickFigures], tick_ns: u64) -> Vec<Stall> {
    let answers = |seen: &TickFigures| seen.succeeded + seen.failed;
    let requests: u64 = series.iter().map(|seen| seen.scheduled.max(answers(seen))).sum();
    let per_tick = requests as f64 / series.len().max(1) as f64;
    // Returns the number of requests that began to wait during the ticks without responses, or
    // shortly before (by Little's law). Lost requests, which get no response although later
    // requests do, are not counted, because lost requests are no stall of the server.
    let waiting = |from: usize, to: usize| {
        let before =
            from.checked_sub(1).map_or(0.0, |at| series[at].scheduled as f64 * series[at].mean_ns / tick_ns as f64);
        before + series[from..to].iter().map(|seen| seen.scheduled).sum::<u64>() as f64
    };
    let mut stalls = Vec::new();
    // Adds a stall for the ticks without responses from `from` to `to`, if these ticks meet the
    // conditions of a stall. `answered` is the tick with the next response; `None` at the end of
    // the load.
    let mut end = |from: usize, to: usize, answered: Option<&TickFigures>| {
        let ticks = to - from;
        let silent_ns = ticks as u64 * tick_ns;
        let without_core_ns =
            series[from..to].iter().chain(answered).map(|seen| seen.worker_core_wait_ns_max).sum::<u64>();
        let in_flight = series[to - 1].in_flight_end as f64;
        if ticks < STALL_TICKS_MIN
            || ticks as f64 * per_tick < DELAYED_RESPONSES_MIN
            || waiting(from, to) < DELAYED_RESPONSES_MIN.min(0.5 * in_flight)
            || without_core_ns as f64 > WAIT_FOR_CORE_SHARE_MAX * silent_ns as f64
        {
            return;
        }
        // The response time of the slowest request is a more exact length of the stall than the
        // number of ticks.
        let slowest_ns = answered.map(|seen| seen.slowest_ns.clamp(silent_ns, silent_ns + 2 * tick_ns));
        stalls.push(Stall {
            at_ns: from as u64 * tick_ns,
            length_ns: slowest_ns.unwrap_or(silent_ns),
            has_ended_within_load: answered.is_some(),
            has_waiting_sent_request: answered.is_some_and(|seen| seen.slowest_service_ns + tick_ns >= silent_ns),
        });
    };
    let mut from = None;
    for (at, seen) in series.iter().enumerate() {
        match (answers(seen) == 0 && seen.in_flight_end > 0, from) {
            (true, None) => from = Some(at),
            (false, Some(start)) => {
                end(start, at, (answers(seen) > 0).then_some(seen));
                from = None;
            }
            _ => {}
        }
    }
    if let Some(start) = from {
        end(start, series.len(), None);
    }
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_responses_with_requests_waiting_is_a_stall() {
        const TICK_NS: u64 = 100_000_000;
        // Each tick contains (scheduled requests, responses, slowest response in ms, requests in
        // flight). Each expected stall contains (start in ticks, length in ms).
        let check = |ticks: &[(u64, u64, u64, u64)], expect: &[(u64, u64)]| {
            let seen: Vec<TickFigures> = ticks
                .iter()
                .map(|&(scheduled, succeeded, ms, in_flight_end)| TickFigures {
                    scheduled,
                    succeeded,
                    slowest_ns: ms * 1_000_000,
                    mean_ns: ms as f64 * 1e6,
                    in_flight_end,
                    ..TickFigures::default()
                })
                .collect();
            let found: Vec<(u64, u64)> =
                detect_stalls(&seen, TICK_NS).iter().map(|s| (s.at_ns / TICK_NS, s.length_ns / 1_000_000)).collect();
            assert_eq!(found, expect, "{ticks:?}");
        };
        let calm = (50, 50, 3, 1);
        check(&[calm; 6], &[]);
        check(&[calm, calm, (50, 0, 0, 50), (50, 0, 0, 100), (50, 140, 251, 10), calm, calm, calm], &[(2, 251)]);
        // In the first of the next two checks, the stall lasts until the end of the load. In the
        // second of the two checks, the stall begins with the load.
        check(&[calm, calm, (50, 0, 0, 50), (50, 0, 0, 100), (50, 0, 0, 150)], &[(2, 300)]);
        check(&[(50, 0, 0, 50), (50, 0, 0, 100), (50, 140, 400, 5), calm, calm, calm, calm], &[(0, 400)]);
        // At the capacity limit the backlog never shrinks, so each later response is as late as the
        // first one after the stall.
        check(&[(50, 0, 0, 50), (50, 0, 0, 100), (50, 50, 250, 100), (50, 50, 250, 100)], &[(0, 250)]);
        // The server loses some requests: they never get a response, but later requests do. Only
        // the lost requests are in flight at the end.
        check(
            &[calm, (50, 45, 3, 6), (50, 45, 3, 11), (50, 45, 3, 16), (0, 1, 3, 15), (0, 0, 0, 15), (0, 0, 0, 15)],
            &[],
        );
        check(&[calm, (50, 45, 3, 6), (50, 45, 3, 11), (50, 45, 3, 16), (0, 0, 0, 16), (0, 0, 0, 16)], &[]);
        // In a closed loop, all users wait during the stall.
        check(&[(40, 38, 10, 4), (40, 40, 10, 4), (0, 0, 0, 4), (0, 0, 0, 4), (40, 40, 210, 4)], &[(2, 210)]);
        // The load of the first check below has no requests. The server of the second check is
        // overloaded, but responds in every tick. The server of the third check always responds
        // rarely, so a long gap is no stall.
        check(&[(0, 0, 0, 0); 5], &[]);
        check(&[(50, 30, 100, 20), (50, 30, 200, 40), (50, 30, 300, 60)], &[]);
        check(&[(1, 1, 3, 0), (1, 0, 0, 1), (0, 0, 0, 1), (1, 2, 220, 0), (1, 1, 3, 0)], &[]);
    }

    #[test]
    fn no_responses_without_a_free_core_is_not_a_server_stall() {
        const TICK_NS: u64 = 100_000_000;
        let calm = TickFigures {
            scheduled: 50,
            succeeded: 50,
            slowest_ns: 3_000_000,
            in_flight_end: 1,
            ..TickFigures::default()
        };
        let silent = |without_core_ms: u64| TickFigures {
            scheduled: 50,
            in_flight_end: 50,
            worker_core_wait_ns_max: without_core_ms * 1_000_000,
            ..TickFigures::default()
        };
        let late = |service_ms: u64| TickFigures {
            slowest_ns: 251_000_000,
            slowest_service_ns: service_ms * 1_000_000,
            ..calm
        };
        // Each row contains (time without a core in each tick without responses, in ms; longest
        // service time at the end, in ms; expected result). The expected result says whether the
        // stall delayed a request that was already sent; `None` means that no stall is expected.
        for (without_core_ms, service_ms, expect) in
            [(0, 250, Some(true)), (20, 250, Some(true)), (0, 40, Some(false)), (80, 250, None), (80, 40, None)]
        {
            let seen = [calm, silent(without_core_ms), silent(without_core_ms), late(service_ms), calm];
            let found: Vec<bool> =
                detect_stalls(&seen, TICK_NS).iter().map(|stall| stall.has_waiting_sent_request).collect();
            assert_eq!(found.first().copied(), expect, "{without_core_ms} {service_ms}");
        }
    }
}
