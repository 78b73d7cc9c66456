//! Generates open-loop loads of any rate and length from the sessions of a log
//! ([`LogSessions`]).
//!
//! Sessions begin at random times, and the requests of a session keep the time gaps recorded in the
//! log. The requested rate determines the number of sessions. The load is a time window of an
//! endless sequence of random sessions. The load has the log's mix of requests and the log's timing
//! within sessions. Visitors arrive independently of each other.
//!
//! Changes of the log's rate over hours are not reproduced.
//!
//! The drawn requests and times are a function of the log and of the load (its seed, rate and
//! length). The record of a load therefore contains neither the drawn times nor the log's requests.
//!
//! Not here: how a log becomes a list (`plimsoll-logs`), replay at the logged times
//! ([`crate::arrival_times`]), and how a plan uses the draws
//! ([`crate::Plan::with_drawn_arrivals`]).

use crate::curve::LoadStage;
use crate::load::Load;
use crate::rng::{Rng, mix_bits};
use crate::schedule::Schedule;
use serde::{Deserialize, Serialize};

/// A number that is mixed into the seed, so that the draws of sessions are independent of all other
/// random numbers.
const SESSION_DRAWS_SEED: u64 = 0x0044_5241_574e_2121;
/// Longest part of a stage whose rate changes, ns. The requests of each part are drawn at the mean
/// rate of the part.
const LOAD_PIECE_NS_MAX: u64 = 100_000_000;

/// The sessions of a log: the time of each request, and the requests of each session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSessions {
    /// Time of each request, ns since the first request.
    starts_ns: Vec<u64>,
    /// Indices of the log's requests: session by session, sorted by time.
    by_session: Vec<u32>,
    /// End index of each session in `by_session`.
    ends: Vec<u32>,
}

/// Facts about the sessions of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSessionsFacts {
    /// Number of sessions in the log.
    pub sessions: u64,
    /// Length of the log, ns.
    pub span_ns: u64,
    /// Number of requests in the busiest calendar minute. For a log shorter than a minute: the
    /// number of requests in the whole log.
    #[serde(rename = "busiest_minute")]
    pub busiest_minute_requests: u64,
    /// Number of requests in the busiest calendar second.
    #[serde(rename = "busiest_second")]
    pub busiest_second_requests: u64,
}

impl LogSessions {
    /// Creates the sessions of requests at the times `starts_ns`, ascending. `None` means that the
    /// indices do not partition the requests into sessions.
    pub fn new(starts_ns: Vec<u64>, by_session: Vec<u32>, ends: Vec<u32>) -> Option<LogSessions> {
        let count = starts_ns.len();
        let mut seen = vec![false; count];
        let each_once = by_session.len() == count
            && by_session
                .iter()
                .all(|entry| seen.get_mut(*entry as usize).is_some_and(|seen| !std::mem::replace(seen, true)));
        let sessions = LogSessions { starts_ns, by_session, ends };
        let are_parts = sessions.ends.is_sorted_by(|a, b| a < b)
            && sessions.ends.first().is_some_and(|first| *first > 0)
            && sessions.ends.last().is_some_and(|last| *last as usize == count);
        let in_order = |session: usize| {
            let range = sessions.session_range(session);
            sessions.by_session[range].is_sorted_by_key(|entry| sessions.starts_ns[*entry as usize])
        };
        let sound = each_once && are_parts && sessions.starts_ns.is_sorted();
        (sound && (0..sessions.ends.len()).all(in_order)).then_some(sessions)
    }

    /// Time of each request, ns since the first request.
    pub fn starts_ns(&self) -> &[u64] {
        &self.starts_ns
    }

    /// Indices of the log's requests: session by session, sorted by time.
    pub fn request_indices_by_session(&self) -> &[u32] {
        &self.by_session
    }

    /// End index of each session in [`LogSessions::request_indices_by_session`].
    pub fn session_ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns a digest of the sessions.
    pub(crate) fn digest(&self) -> u64 {
        let starts = self.starts_ns.iter().fold(0, |digest, start| mix_bits(digest ^ start));
        let words = self.by_session.iter().chain(&self.ends);
        words.fold(starts, |digest, word| mix_bits(digest ^ u64::from(*word)))
    }

    fn session_range(&self, session: usize) -> std::ops::Range<usize> {
        let from = session.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        from..self.ends[session] as usize
    }

    /// Appends `count` random requests to `drawn`, unsorted. Each entry is the time of a request
    /// within the window of `length_ns`, ns, and the index of the request in the log.
    ///
    /// A random request is placed at a random time in the window of `length_ns`. The other requests
    /// of the chosen session that fall inside the window are appended with the time gaps of the
    /// log. A session with k requests in the window can be chosen through each of the k requests,
    /// so the session is accepted with probability 1/k. The last session is cut to the remaining
    /// number of requests.
    fn append_random_requests(&self, length_ns: u64, count: u64, rng: &mut Rng, drawn: &mut Vec<(u64, u32)>) {
        let (end, length_ns) = (drawn.len() + count as usize, length_ns.max(1));
        let start_ns = |entry: &u32| self.starts_ns[*entry as usize];
        while drawn.len() < end {
            let at = rng.uniform_below(self.by_session.len() as u64) as usize;
            let (anchor_ns, placed_ns) = (start_ns(&self.by_session[at]), rng.uniform_below(length_ns));
            let session = &self.by_session[self.session_range(self.ends.partition_point(|end| *end as usize <= at))];
            let (from_ns, to_ns) = (anchor_ns.saturating_sub(placed_ns), anchor_ns + (length_ns - placed_ns));
            let first = session.partition_point(|entry| start_ns(entry) < from_ns);
            let caught = &session[first..session.partition_point(|entry| start_ns(entry) < to_ns)];
            if rng.uniform_below(caught.len() as u64) > 0 {
                continue;
            }
            for (number, entry) in caught.iter().enumerate() {
                let (left, room) = ((caught.len() - number) as u64, (end - drawn.len()) as u64);
                if room >= left || rng.uniform_below(left) < room {
                    drawn.push((start_ns(entry) + placed_ns - anchor_ns, *entry));
                }
            }
        }
    }

    /// Draws the requests of an open loop, sorted by start: the start of each request, ns, and the
    /// index of the request in the log.
    pub fn draw_requests(&self, load: &Load) -> Vec<(u64, u32)> {
        let schedule = Schedule::compile(load);
        let total = schedule.arrivals_total().unwrap_or(0);
        let mut drawn = Vec::with_capacity(total as usize);
        let (mut at_ns, mut number) = (0u64, 0u64);
        for piece_ns in piece_lengths_ns(load) {
            let end_ns = at_ns + piece_ns;
            let before = drawn.len();
            let mut rng = Rng::for_stream(load.seed ^ SESSION_DRAWS_SEED, number);
            let until = schedule.arrivals_before(end_ns).min(total);
            self.append_random_requests(piece_ns, until.saturating_sub(before as u64), &mut rng, &mut drawn);
            drawn[before..].iter_mut().for_each(|(start_ns, _)| *start_ns += at_ns);
            (at_ns, number) = (end_ns, number + 1);
        }
        drawn.sort_unstable();
        drawn
    }
}

/// Returns the lengths of the parts of a load, ns. The parts are the warm-up and the stages; a
/// stage with a changing level is divided into short parts.
fn piece_lengths_ns(load: &Load) -> Vec<u64> {
    let whole_ns = load.duration_ns.unwrap_or(u64::MAX);
    let (mut pieces, mut left_ns) = (vec![load.warmup_ns], whole_ns);
    for LoadStage { from, to, duration_ns } in &load.shape.curve().stages {
        let mut stage_ns = duration_ns.unwrap_or(left_ns).min(left_ns);
        left_ns -= stage_ns;
        while from != to && stage_ns > LOAD_PIECE_NS_MAX {
            pieces.push(LOAD_PIECE_NS_MAX);
            stage_ns -= LOAD_PIECE_NS_MAX;
        }
        pieces.push(stage_ns);
    }
    pieces.retain(|ns| *ns > 0);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::LoadCurve;
    use crate::load::{ArrivalSpacing, LoadShape};
    use crate::units::{MS, SECOND};

    /// Returns the sessions of a hundred visitors. Each visitor sends three requests, 200 ms apart,
    /// and a fourth request one minute after the third request.
    fn log_sessions_of_100_visitors() -> LogSessions {
        let mut starts: Vec<(u64, u32)> = Vec::new();
        for visitor in 0..100u32 {
            for (step, after_ms) in [0, 200, 400, 60_400].into_iter().enumerate() {
                starts.push((u64::from(visitor) * 3 * SECOND + after_ms * MS, visitor * 4 + step as u32));
            }
        }
        starts.sort_unstable();
        let mut by_session: Vec<u32> = (0..400).collect();
        by_session.sort_by_key(|entry| starts[*entry as usize].1);
        let starts_ns = starts.iter().map(|(start_ns, _)| *start_ns).collect();
        LogSessions::new(starts_ns, by_session, (1..=100).map(|n| n * 4).collect()).expect("sessions")
    }

    fn replayed_load(rate: &str, seed: u64) -> Load {
        let shape = LoadShape::Open { rate: LoadCurve::parse(rate).expect(rate), arrivals: ArrivalSpacing::Replayed };
        Load { seed, ..Load::new(shape) }
    }

    #[test]
    fn drawn_sessions_have_the_requested_rate() {
        let sessions = log_sessions_of_100_visitors();
        for (rate, warmup_ms, expect) in [
            ("1000@5s", 0, vec![(0, 5 * SECOND, 5000)]),
            ("200@2s,50@4s", 0, vec![(0, 2 * SECOND, 400), (2 * SECOND, 6 * SECOND, 200)]),
            ("100@2s", 500, vec![(0, 500 * MS, 50), (500 * MS, 2500 * MS, 200)]),
            ("0..1000@2s", 0, vec![(0, SECOND, 250), (SECOND, 2 * SECOND, 750)]),
        ] {
            let load = Load { warmup_ns: warmup_ms * MS, ..replayed_load(rate, 3) };
            let drawn = sessions.draw_requests(&load);
            assert!(drawn.is_sorted() && drawn.iter().all(|(_, entry)| *entry < 400));
            for (from, to, count) in expect {
                let got = drawn.iter().filter(|(start, _)| (from..to).contains(start)).count();
                assert_eq!(got, count, "{rate}: {from} to {to}");
            }
            assert_eq!(sessions.draw_requests(&load), drawn);
            assert_ne!(sessions.draw_requests(&Load { seed: 4, ..load }), drawn);
        }
    }

    /// Checks that drawn requests have the mix and the timing of the log's sessions: three requests
    /// 200 ms apart, and a single request.
    #[test]
    fn drawn_sessions_match_the_log() {
        let (sessions, load) = (log_sessions_of_100_visitors(), replayed_load("40000@2s", 9));
        let drawn = sessions.draw_requests(&load);
        let place: Vec<u32> = {
            let mut place = vec![0; 400];
            sessions.by_session.iter().enumerate().for_each(|(at, entry)| place[*entry as usize] = at as u32 % 4);
            place
        };
        let mut steps = [0u32; 4];
        drawn.iter().for_each(|(_, entry)| steps[place[*entry as usize] as usize] += 1);
        assert!(steps.iter().all(|count| (19_000..=21_000).contains(count)), "{steps:?}");
        // One visitor's session is drawn hundreds of times. The visitor's second request follows
        // each first request, except at the end of the load.
        let of = |step: u32| -> Vec<u64> {
            let entry = sessions.by_session[(40 + step) as usize];
            drawn.iter().filter(|(_, other)| *other == entry).map(|(start, _)| *start).collect()
        };
        let (first, second) = (of(0), of(1));
        let follows = |start: &&u64| second.binary_search(&(**start + 200 * MS)).is_ok();
        let inside: Vec<&u64> = first.iter().filter(|start| **start < 1800 * MS).collect();
        let missing = inside.iter().filter(|start| !follows(start)).count();
        assert!(inside.len() > 100 && missing <= 1, "{missing} of {}", inside.len());
    }

    #[test]
    fn invalid_session_partitions_are_refused() {
        for (starts, by_session, ends, sound) in [
            (vec![0, 5, 7], vec![0, 2, 1], vec![2, 3], true),
            (vec![0, 5, 7], vec![2, 0, 1], vec![2, 3], false),
            (vec![0, 5, 7], vec![0, 0, 1], vec![2, 3], false),
            (vec![0, 5, 7], vec![0, 1, 3], vec![2, 3], false),
            (vec![0, 5, 7], vec![0, 1, 2], vec![2], false),
            (vec![0, 5, 7], vec![0, 1, 2], vec![0, 3], false),
            (vec![5, 0, 7], vec![0, 1, 2], vec![3], false),
            (vec![], vec![], vec![], false),
        ] {
            let got = LogSessions::new(starts.clone(), by_session.clone(), ends.clone());
            assert_eq!(got.is_some(), sound, "{starts:?} {by_session:?} {ends:?}");
        }
    }
}
