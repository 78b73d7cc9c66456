//! A long load at the line after a search ([`Soak`]): how long the server met the SLO, and how it
//! violated the SLO. A search of a minute does not show a CPU credit that lasts ten minutes, a
//! leak, or a table that grows.
//!
//! The load consists of consecutive segments, called pieces, each judged as a trial near the line.
//! The SLO is broken if two consecutive segments break it by more than chance, or all segments
//! together do.
//!
//! Not here: the rate and the plans of the segments ([`crate::study::search`]); when a single trial
//! breaks the SLO ([`super::chance`]).

use super::chance::{all_within_chance, breaks, walk_dispersion};
use super::so_far::SearchState;
use super::terms::{Settings, limited, sound};
use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use plimsoll_model::RequestFailure;
use plimsoll_model::units::SECOND;

/// A segment is this part of the soak, within these limits in ns. It is long enough for a p99 at 20
/// requests a second, and short enough to locate the violation.
const PIECES: u64 = 30;
const PIECE_NS: std::ops::RangeInclusive<u64> = 10 * SECOND..=60 * SECOND;
/// This number of consecutive segments that break the SLO is neither chance nor one disturbance.
const BREAKS_IN_A_ROW: usize = 2;
/// Maximum number of additional segments if only the last segment broke the SLO.
const LONE_BREAK_PIECES_MAX: usize = 2;
/// Response times rose gradually if they grew by this factor before the violation, and rose in most
/// segments.
const ROSE: f64 = 1.2;
const ROSE_STEPS: f64 = 0.75;
/// A backlog that grows by this share of the arrivals shows that the server completes less than is
/// sent.
const BEHIND: f64 = 0.02;

/// Returns the length of a segment of a soak of `soak_ns`, ns, and the number of segments.
pub fn soak_pieces(soak_ns: u64) -> (u64, u64) {
    let piece_ns = (soak_ns / PIECES).clamp(*PIECE_NS.start(), *PIECE_NS.end()).min(soak_ns.max(1));
    (piece_ns, soak_ns.div_ceil(piece_ns))
}

/// The result of a long load at the line.
#[derive(Debug, Clone, PartialEq)]
pub struct Soak {
    /// The rate of the soak, 1/s.
    pub rate_rps: f64,
    /// The planned length of the soak, s.
    pub asked_s: f64,
    /// How long the server met the SLO, s.
    pub met_s: f64,
    /// Total length of the valid segments, s.
    pub seconds: f64,
    /// How the server broke the SLO; `None`: it met the SLO.
    pub broke: Option<SoakBreak>,
    /// Number of void segments: plimsoll or other processes were the limit.
    pub void_pieces: usize,
    /// Whether the soak is finished: the SLO was broken, or was met for the whole time.
    pub is_over: bool,
}

/// How a soak broke the SLO.
#[derive(Debug, Clone, PartialEq)]
pub struct SoakBreak {
    /// Successful requests since the violation, 1/s.
    pub goodput_rps: f64,
    /// The kind of the violation.
    pub manner: SoakBreakManner,
}

/// The kinds of violation after a server met an SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SoakBreakManner {
    /// From the violation on, this share of the requests gets an error status.
    Refuses(f64),
    /// From the violation on, this share of the requests fails in another way.
    Fails(f64),
    /// Before the violation, the median response time rose gradually, from the first to the second
    /// value, ns.
    SlowedDown(u64, u64),
    /// The server completes fewer requests than are sent.
    CompletesLess,
    /// More requests are late.
    Late,
    /// No two consecutive segments broke the SLO, but all segments together did.
    Altogether,
}

impl Soak {
    /// Computes the result of these segments, after the search in `history`. Returns `None` without
    /// a segment.
    pub fn new(settings: &Settings, history: &[TrialOutcome], pieces: &[TrialOutcome], asked_ns: u64) -> Option<Soak> {
        let first = pieces.first()?;
        let sound = sound(history);
        let known = SearchState::new(settings, &sound);
        // If a disturbed segment met the SLO, interference does not explain why other segments
        // broke it. Otherwise it may.
        let in_spite = pieces.iter().any(|piece| piece.interference.disturbed && piece.verdict == Verdict::Pass);
        let is_void = |piece: &TrialOutcome| {
            limited(piece) || piece.verdict == Verdict::Void && !(in_spite && piece.interference.disturbed)
        };
        let valid: Vec<&TrialOutcome> = pieces.iter().filter(|piece| !is_void(piece)).collect();
        let dispersion = walk_dispersion(&known, known.capacity().as_ref());
        let broken: Vec<bool> = valid.iter().map(|piece| breaks(piece, dispersion)).collect();
        let at = broken.windows(BREAKS_IN_A_ROW).position(|row| row.iter().all(|it| *it));
        let planned = soak_pieces(asked_ns).1 as usize;
        let lone_break_last = broken.last() == Some(&true) && at.is_none();
        let most = planned + LONE_BREAK_PIECES_MAX;
        let is_over = at.is_some() || pieces.len() >= most || pieces.len() >= planned && !lone_break_last;
        let altogether = at.is_none() && is_over && !all_within_chance(&valid);
        let met = &valid[..at.unwrap_or(valid.len())];
        let broke = match at {
            Some(at) => Some(SoakBreak {
                goodput_rps: valid.last().map_or(0.0, |piece| piece.achieved_rps),
                manner: manner(met, &valid[at..]),
            }),
            None => altogether.then(|| SoakBreak {
                goodput_rps: valid.iter().map(|piece| piece.achieved_rps).sum::<f64>() / valid.len().max(1) as f64,
                manner: SoakBreakManner::Altogether,
            }),
        };
        let length_s = |pieces: &[&TrialOutcome]| pieces.iter().map(|it| it.duration_ns as f64 / 1e9).sum::<f64>();
        Some(Soak {
            rate_rps: first.offered_rps().unwrap_or(0.0),
            asked_s: asked_ns as f64 / 1e9,
            met_s: if altogether { 0.0 } else { length_s(met) },
            seconds: length_s(&valid),
            broke,
            void_pieces: pieces.len() - valid.len(),
            is_over,
        })
    }

    /// Formats the result as a sentence without its end.
    pub fn text(&self) -> String {
        let time = |s: f64| format::duration((s * 10.0).round() * 1e8);
        let void = match self.void_pieces {
            0 => String::new(),
            1 => "; one piece was void".to_owned(),
            many => format!("; {many} pieces were void"),
        };
        let rate = format::rate(self.rate_rps);
        let Some(broke) = &self.broke else {
            return match self.met_s > 0.0 {
                true => format!("{rate} a second met the SLO for {}{void}", time(self.met_s)),
                false => format!("{rate} a second: all segments of the soak were void{void}"),
            };
        };
        let goodput = format::rate(broke.goodput_rps);
        let how = match broke.manner {
            SoakBreakManner::Refuses(share) => format!(
                "then {} of the requests got an error status and {goodput} a second succeeded, as with an \
                 exhausted credit",
                format::share(share)
            ),
            SoakBreakManner::Fails(share) => {
                format!("then {} of the requests failed and {goodput} a second succeeded", format::share(share))
            }
            SoakBreakManner::SlowedDown(from_ns, to_ns) => format!(
                "response times rose gradually (p50 {} to {}), as with a leak or growing data; at the end \
                 {goodput} a second succeeded",
                format::duration(from_ns as f64),
                format::duration(to_ns as f64)
            ),
            SoakBreakManner::CompletesLess => format!(
                "then the server completed only {goodput} a second, as with an exhausted credit or a background task"
            ),
            SoakBreakManner::Late => "then more requests were late than the SLO allows".to_owned(),
            SoakBreakManner::Altogether => {
                return format!(
                    "{rate} a second violated the SLO over {} as a whole, but in no two consecutive segments{void}",
                    time(self.seconds)
                );
            }
        };
        match self.met_s > 0.0 {
            true => format!("{rate} a second met the SLO for {}; {how}{void}", time(self.met_s)),
            false => {
                let how = how.strip_prefix("then ").unwrap_or(&how);
                format!("{rate} a second violated the SLO from the start: {how}{void}")
            }
        }
    }
}

/// Returns the kind of the violation. `met`: the segments before; `broken`: the segments from the
/// violation on.
fn manner(met: &[&TrialOutcome], broken: &[&TrialOutcome]) -> SoakBreakManner {
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
    let failing =
        bounds().any(|bound| bound.bound_ns.is_none() && bound.bad as f64 > bound.share * bound.scheduled as f64);
    let p50s: Vec<u64> = met.iter().map(|piece| piece.p50_ns).chain(broken.first().map(|piece| piece.p50_ns)).collect();
    let rises = p50s.windows(2).filter(|pair| pair[1] > pair[0]).count() as f64;
    let last = met.last().map_or(0, |piece| piece.p50_ns);
    let rose =
        met.len() >= 3 && rises >= ROSE_STEPS * (p50s.len() - 1) as f64 && last as f64 >= ROSE * met[0].p50_ns as f64;
    if failing && refused >= all / 2.0 && refused > 0.0 {
        SoakBreakManner::Refuses(refused)
    } else if rose {
        SoakBreakManner::SlowedDown(met[0].p50_ns, last)
    } else if broken.iter().any(|piece| piece.evidence.growth > BEHIND) {
        SoakBreakManner::CompletesLess
    } else if failing {
        SoakBreakManner::Fails(all)
    } else {
        SoakBreakManner::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{BoundEvidence, OfferedLoad};
    use plimsoll_model::{Arrivals, Curve, LoadShape, Plan, Purpose};

    fn settings() -> Settings {
        let base = Plan::get("server", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) }).record();
        let slo = crate::slo::Slo::default();
        let arrivals = Arrivals::Poisson;
        Settings { base, slo, budget_ns: 60 * SECOND, max_rate: None, arrivals, first_answer_ns: 0 }
    }

    /// A segment of 10 s at 100/s. `+` met the SLO, `-` broke it; `p` and `m` are the disturbed
    /// versions.
    fn piece(sign: char) -> TrialOutcome {
        let (is_met, disturbed) = (matches!(sign, '+' | 'p'), matches!(sign, 'p' | 'm'));
        let verdict = match (is_met, disturbed) {
            (true, _) => Verdict::Pass,
            (false, true) => Verdict::Void,
            (false, false) => Verdict::Fail,
        };
        let mut trial = TrialOutcome::of_a_second(Purpose::Soak, OfferedLoad::Rate(100.0), verdict);
        trial.duration_ns = 10 * SECOND;
        trial.interference.disturbed = disturbed;
        trial.evidence.scheduled = 1000;
        let bad = if is_met { 0 } else { 500 };
        trial.evidence.bounds =
            vec![BoundEvidence { bound_ns: Some(500_000_000), share: 0.01, scheduled: 1000, bad, bunch_size: 1.0 }];
        trial
    }

    /// Checks a soak of a minute: seconds that met the SLO, whether it was broken, void segments,
    /// and whether the soak is finished.
    fn check(signs: &str, expect: (f64, bool, usize, bool)) {
        let pieces: Vec<TrialOutcome> = signs.chars().map(piece).collect();
        let soak = Soak::new(&settings(), &[], &pieces, 60 * SECOND).expect("pieces");
        let got = (soak.met_s, soak.broke.is_some(), soak.void_pieces, soak.is_over);
        assert_eq!(got, expect, "{signs}: {}", soak.text());
    }

    #[test]
    fn a_soak_breaks_by_two_pieces_in_a_row() {
        check("++", (20.0, false, 0, false));
        check("++++++", (60.0, false, 0, true));
        check("++--", (20.0, true, 0, true));
        check("--", (0.0, true, 0, true));
        // A single broken segment at the end is repeated.
        check("+++++-", (60.0, false, 0, false));
        check("+++++--", (50.0, true, 0, true));
        // One broken segment in a minute has too many late requests for the whole soak, but no time
        // of violation.
        check("++-+++", (0.0, true, 0, true));
        // Interference explains a violation only if no disturbed segment met the SLO.
        check("++mm++", (40.0, false, 2, true));
        check("ppmm", (20.0, true, 0, true));
    }

    #[test]
    fn pieces_fill_the_soak() {
        for (soak_s, piece_s, count) in
            [(1800, 60, 30), (7200, 60, 120), (60, 10, 6), (65, 10, 7), (5, 5, 1), (600, 20, 30)]
        {
            assert_eq!(soak_pieces(soak_s * SECOND), (piece_s * SECOND, count), "{soak_s}");
        }
    }
}
