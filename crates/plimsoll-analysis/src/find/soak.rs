//! A soak ([`Soak`]) is a long load at the load line after a search. The result of a soak says how
//! long the server met the SLO, and how the server broke the SLO. A search of a minute does not
//! show a CPU credit that lasts ten minutes, a leak, or a growing table.
//!
//! The soak consists of consecutive segments (pieces in the code). Each segment is judged like a
//! trial near the load line. The SLO counts as broken if two consecutive segments break the SLO by
//! more than chance, or if all segments together do.
//!
//! Not here: the rate and the plans of the segments ([`crate::study::search`]); whether a single
//! trial breaks the SLO ([`super::chance`]).

use super::chance::{backlog_dispersion, breaks_slo_even_if_disturbed, chance_explains_bad_requests};
use super::search_settings::{SearchSettings, is_void_by_generator, replace_invalid_figures};
use super::search_state::SearchState;
use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use plimsoll_model::RequestFailure;
use plimsoll_model::units::SECOND;

/// A soak consists of this number of segments, within the limits of a segment's length
/// ([`SEGMENT_NS`]).
const SEGMENT_COUNT: u64 = 30;
/// Limits of a segment's length, ns. A segment is long enough for a p99 at 20 requests a second,
/// and short enough to locate the time of a violation.
const SEGMENT_NS: std::ops::RangeInclusive<u64> = 10 * SECOND..=60 * SECOND;
/// The SLO counts as broken after this number of consecutive segments that break the SLO: chance or
/// other processes may break a single segment.
const CONSECUTIVE_BREAKS_MIN: usize = 2;
/// Maximum number of additional segments if the last planned segment broke the SLO, but the segment
/// before met the SLO. The additional segments show whether the violation continues.
const LAST_BREAK_SEGMENTS_MAX: usize = 2;
/// Response times count as risen if the median grew by at least this factor before the violation of
/// the SLO.
const RISE_FACTOR_MIN: f64 = 1.2;
/// A gradual rise of response times also needs at least this share of segments whose median exceeds
/// the median of the previous segment.
const RISING_SEGMENTS_SHARE_MIN: f64 = 0.75;
/// The server completes fewer requests than are sent if a segment's backlog grows by more than this
/// share of the segment's arrivals.
const BACKLOG_GROWTH_MAX: f64 = 0.02;

/// Returns the length of a segment of a soak of `soak_ns`, ns, and the number of segments.
pub fn soak_segments(soak_ns: u64) -> (u64, u64) {
    let piece_ns = (soak_ns / SEGMENT_COUNT).clamp(*SEGMENT_NS.start(), *SEGMENT_NS.end()).min(soak_ns.max(1));
    (piece_ns, soak_ns.div_ceil(piece_ns))
}

/// The result of a soak, a long load at the load line.
#[derive(Debug, Clone, PartialEq)]
pub struct Soak {
    /// The rate of the soak, 1/s.
    pub rate_rps: f64,
    /// The requested length of the soak, s.
    pub requested_s: f64,
    /// How long the server met the SLO before the violation began, s. The time is 0 if all segments
    /// together broke the SLO, but no two consecutive segments did.
    pub met_s: f64,
    /// Total length of the valid segments, s.
    pub seconds: f64,
    /// How the server broke the SLO; `None` means that the server met the SLO.
    pub violation: Option<SoakViolation>,
    /// Number of void segments, in which plimsoll or other processes were the limit.
    pub void_segments: usize,
    /// Whether the soak is finished: the SLO was broken, or was met for the whole time.
    pub is_over: bool,
}

/// The violation of the SLO in a soak.
#[derive(Debug, Clone, PartialEq)]
pub struct SoakViolation {
    /// Successful requests a second at the end of the soak. If all segments together broke the SLO,
    /// but no two consecutive segments did, the goodput is the mean over all segments.
    pub goodput_rps: f64,
    /// The way in which the server broke the SLO.
    pub kind: SoakViolationKind,
}

/// The ways in which a server breaks the SLO during a soak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SoakViolationKind {
    /// Most failures are error statuses. The number is the share of the requests with an error
    /// status since the violation of the SLO began, 0..=1.
    ErrorStatuses(f64),
    /// Requests fail in other ways than with an error status. The number is the share of failed
    /// requests since the violation of the SLO began, 0..=1.
    Fails(f64),
    /// The median response time rose gradually before the violation, from the first value to the
    /// second value, ns.
    SlowedDown(u64, u64),
    /// The server completes fewer requests than are sent.
    BacklogGrows,
    /// More requests are late than the SLO allows, without a growing backlog.
    Late,
    /// No two consecutive segments broke the SLO, but all segments together did.
    InTotal,
}

impl Soak {
    /// Computes the result of a soak from its segments `pieces`. `history` contains the trials of
    /// the search before the soak. `asked_ns` is the requested length of the soak. Returns `None`
    /// without a segment.
    pub fn new(
        settings: &SearchSettings,
        history: &[TrialOutcome],
        pieces: &[TrialOutcome],
        asked_ns: u64,
    ) -> Option<Soak> {
        let first = pieces.first()?;
        let sound = replace_invalid_figures(history);
        let known = SearchState::new(settings, &sound);
        // If a segment disturbed by other processes met the SLO, interference does not explain why
        // another disturbed segment broke the SLO. If no disturbed segment met the SLO,
        // interference may be the reason for a violation, and the violating segment is void.
        let in_spite = pieces.iter().any(|piece| piece.interference.is_disturbed && piece.verdict == Verdict::Pass);
        let is_void = |piece: &TrialOutcome| {
            is_void_by_generator(piece)
                || piece.verdict == Verdict::Void && !(in_spite && piece.interference.is_disturbed)
        };
        let valid: Vec<&TrialOutcome> = pieces.iter().filter(|piece| !is_void(piece)).collect();
        let dispersion = backlog_dispersion(&known, known.estimate_capacity().as_ref());
        let broken: Vec<bool> = valid.iter().map(|piece| breaks_slo_even_if_disturbed(piece, dispersion)).collect();
        let at = broken.windows(CONSECUTIVE_BREAKS_MIN).position(|row| row.iter().all(|it| *it));
        let planned = soak_segments(asked_ns).1 as usize;
        let lone_break_last = broken.last() == Some(&true) && at.is_none();
        let most = planned + LAST_BREAK_SEGMENTS_MAX;
        let is_over = at.is_some() || pieces.len() >= most || pieces.len() >= planned && !lone_break_last;
        let altogether = at.is_none() && is_over && !chance_explains_bad_requests(&valid);
        let met = &valid[..at.unwrap_or(valid.len())];
        let broke = match at {
            Some(at) => Some(SoakViolation {
                goodput_rps: valid.last().map_or(0.0, |piece| piece.goodput_rps),
                kind: violation_kind(met, &valid[at..]),
            }),
            None => altogether.then(|| SoakViolation {
                goodput_rps: valid.iter().map(|piece| piece.goodput_rps).sum::<f64>() / valid.len().max(1) as f64,
                kind: SoakViolationKind::InTotal,
            }),
        };
        let length_s = |pieces: &[&TrialOutcome]| pieces.iter().map(|it| it.duration_ns as f64 / 1e9).sum::<f64>();
        Some(Soak {
            rate_rps: first.offered_rps().unwrap_or(0.0),
            requested_s: asked_ns as f64 / 1e9,
            met_s: if altogether { 0.0 } else { length_s(met) },
            seconds: length_s(&valid),
            violation: broke,
            void_segments: pieces.len() - valid.len(),
            is_over,
        })
    }

    /// Formats the result of the soak as a sentence without a full stop.
    pub fn soak_result_text(&self) -> String {
        let time = |s: f64| format::duration((s * 10.0).round() * 1e8);
        let void_note = match self.void_segments {
            0 => String::new(),
            1 => " (one segment of the soak does not count: plimsoll or other processes limited the load)".to_owned(),
            void_segments => format!(
                " ({void_segments} segments of the soak do not count: plimsoll or other processes limited the load)"
            ),
        };
        let rate = format::rate(self.rate_rps);
        let Some(broke) = &self.violation else {
            return match self.met_s > 0.0 {
                true => format!(
                    "the server met the SLO at a rate of {rate} a second for {met_time}{void_note}",
                    met_time = time(self.met_s)
                ),
                false => format!(
                    "no segment of the soak at {rate} a second counts, because plimsoll or other processes limited \
                     the load"
                ),
            };
        };
        let goodput = format::rate(broke.goodput_rps);
        let violation = match broke.kind {
            SoakViolationKind::ErrorStatuses(share) => format!(
                "{refused_share} of the requests got an error status, and {goodput} a second succeeded: an exhausted \
                 request quota may be the reason",
                refused_share = format::share(share)
            ),
            SoakViolationKind::Fails(share) => format!(
                "{failed_share} of the requests failed, and {goodput} a second succeeded",
                failed_share = format::share(share)
            ),
            SoakViolationKind::SlowedDown(from_ns, to_ns) => format!(
                "response times rose gradually (p50 {first_p50} to {last_p50}), and the goodput was {goodput}/s \
                 at the end: a leak or growing data may be the reason",
                first_p50 = format::duration(from_ns as f64),
                last_p50 = format::duration(to_ns as f64)
            ),
            SoakViolationKind::BacklogGrows => format!(
                "the server's goodput was only {goodput}/s: an exhausted CPU credit or a background task \
                 may be the reason"
            ),
            SoakViolationKind::Late => "more responses exceeded the latency bound than the SLO allows".to_owned(),
            SoakViolationKind::InTotal => {
                return format!(
                    "the server violated the SLO at a rate of {rate} a second over {soak_time} as a whole, but in no \
                     two consecutive segments{void_note}",
                    soak_time = time(self.seconds)
                );
            }
        };
        // A gradual rise of response times began before the violation of the SLO.
        let is_later = self.met_s > 0.0 && !matches!(broke.kind, SoakViolationKind::SlowedDown(..));
        let violation = if is_later { format!("then {violation}") } else { violation };
        match self.met_s > 0.0 {
            true => format!(
                "the server met the SLO at a rate of {rate} a second for {met_time}; {violation}{void_note}",
                met_time = time(self.met_s)
            ),
            false => {
                format!(
                    "the server violated the SLO at a rate of {rate} a second from the start: {violation}{void_note}"
                )
            }
        }
    }
}

/// Returns the way in which the server broke the SLO. `met` contains the valid segments before the
/// violation, and `broken` the segments since the violation.
fn violation_kind(met: &[&TrialOutcome], broken: &[&TrialOutcome]) -> SoakViolationKind {
    let scheduled: u64 = broken.iter().map(|piece| piece.evidence.scheduled).sum();
    let failed = |kind: Option<RequestFailure>| {
        let of = |piece: &TrialOutcome| match kind {
            Some(kind) => piece.evidence.failed[kind as usize],
            None => piece.evidence.failed_count(),
        };
        broken.iter().map(|piece| of(piece)).sum::<u64>() as f64 / scheduled.max(1) as f64
    };
    let all = failed(None);
    let refused = failed(Some(RequestFailure::Status));
    let bounds = || broken.iter().flat_map(|piece| &piece.evidence.bounds);
    let failing = bounds().any(|bound| {
        bound.bound_ns.is_none() && bound.bad_requests as f64 > bound.allowed_share * bound.scheduled as f64
    });
    let p50s: Vec<u64> = met.iter().map(|piece| piece.p50_ns).chain(broken.first().map(|piece| piece.p50_ns)).collect();
    let rises = p50s.windows(2).filter(|pair| pair[1] > pair[0]).count() as f64;
    let last = met.last().map_or(0, |piece| piece.p50_ns);
    let rose = met.len() >= 3
        && rises >= RISING_SEGMENTS_SHARE_MIN * (p50s.len() - 1) as f64
        && last as f64 >= RISE_FACTOR_MIN * met[0].p50_ns as f64;
    if failing && refused >= all / 2.0 && refused > 0.0 {
        SoakViolationKind::ErrorStatuses(refused)
    } else if rose {
        SoakViolationKind::SlowedDown(met[0].p50_ns, last)
    } else if broken.iter().any(|piece| piece.evidence.backlog_growth_share > BACKLOG_GROWTH_MAX) {
        SoakViolationKind::BacklogGrows
    } else if failing {
        SoakViolationKind::Fails(all)
    } else {
        SoakViolationKind::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{BoundEvidence, OfferedLoad};
    use plimsoll_model::{ArrivalSpacing, LoadCurve, LoadPurpose, LoadShape, Plan};

    fn test_settings() -> SearchSettings {
        let base =
            Plan::for_get_request("server", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record();
        let slo = crate::slo::Slo::default();
        let arrivals = ArrivalSpacing::Poisson;
        SearchSettings { base, slo, budget_ns: 60 * SECOND, max_rate: None, arrivals, preflight_ns: 0 }
    }

    /// Creates a segment of 10 s at 100/s. An undisturbed segment met the SLO for `+`, and broke
    /// the SLO for `-`. A disturbed segment met the SLO for `p`, and broke the SLO for `m`.
    fn segment_for_sign(sign: char) -> TrialOutcome {
        let (is_met, disturbed) = (matches!(sign, '+' | 'p'), matches!(sign, 'p' | 'm'));
        let verdict = match (is_met, disturbed) {
            (true, _) => Verdict::Pass,
            (false, true) => Verdict::Void,
            (false, false) => Verdict::Fail,
        };
        let mut trial = TrialOutcome::one_second_trial(LoadPurpose::Soak, OfferedLoad::Rate(100.0), verdict);
        trial.duration_ns = 10 * SECOND;
        trial.interference.is_disturbed = disturbed;
        trial.evidence.scheduled = 1000;
        let bad_requests = if is_met { 0 } else { 500 };
        trial.evidence.bounds = vec![BoundEvidence {
            bound_ns: Some(500_000_000),
            allowed_share: 0.01,
            scheduled: 1000,
            bad_requests,
            bunch_size: 1.0,
        }];
        trial
    }

    /// Checks a soak of a minute. Expected: seconds in which the SLO was met, whether the SLO was
    /// broken, number of void segments, and whether the soak is finished.
    fn check(signs: &str, expect: (f64, bool, usize, bool)) {
        let pieces: Vec<TrialOutcome> = signs.chars().map(segment_for_sign).collect();
        let soak = Soak::new(&test_settings(), &[], &pieces, 60 * SECOND).expect("pieces");
        let got = (soak.met_s, soak.violation.is_some(), soak.void_segments, soak.is_over);
        assert_eq!(got, expect, "{signs}: {}", soak.soak_result_text());
    }

    #[test]
    fn soak_breaks_after_two_broken_segments() {
        check("++", (20.0, false, 0, false));
        check("++++++", (60.0, false, 0, true));
        check("++--", (20.0, true, 0, true));
        check("--", (0.0, true, 0, true));
        // If only the last segment broke the SLO, another segment follows.
        check("+++++-", (60.0, false, 0, false));
        check("+++++--", (50.0, true, 0, true));
        // One of six segments breaks the SLO, with so many late requests that the soak as a whole
        // breaks the SLO. The time of the violation is unknown, because no two consecutive segments
        // broke the SLO.
        check("++-+++", (0.0, true, 0, true));
        // Interference by other processes explains a violation only if no disturbed segment met the
        // SLO.
        check("++mm++", (40.0, false, 2, true));
        check("ppmm", (20.0, true, 0, true));
    }

    #[test]
    fn segments_fill_the_soak() {
        for (soak_s, piece_s, count) in
            [(1800, 60, 30), (7200, 60, 120), (60, 10, 6), (65, 10, 7), (5, 5, 1), (600, 20, 30)]
        {
            assert_eq!(soak_segments(soak_s * SECOND), (piece_s * SECOND, count), "{soak_s}");
        }
    }
}
