//! What a search found ([`Findings`]), with everything that speaks against it, and what a budget can give
//! ([`forecast`]).

use super::evidence::{Evidences, Regimes, rate_of, rejections};
use super::failing::{Failing, FailingHow};
use super::gone::Gone;
use super::grid::index_below;
use super::line::{self, Ceiling};
use super::log_rate::LogRate;
use super::pace::Pace;
use super::peak::{self, Knee, Peak};
use super::so_far::TrialsSoFar;
use super::stalls::Stalls;
use super::terms::{Settings, StoppedBy, disturbed, near_line, sound};
use crate::condition::{format_number, share_syntax};
use crate::doubts::{DoubtKind, Doubts};
use crate::format;
use crate::judge::{TrialOutcome, Verdict};
use crate::others::Others;
use crate::sentence::{Remedy, Sentence};
use crate::slo::Slo;
use plimsoll_model::Purpose;
use plimsoll_model::units::SECOND;

/// Confidence with which the success bound is to be proven.
const CONFIDENCE: f64 = 0.99;
/// Gap in Little's law that is named.
const LITTLE_MAX: f64 = 0.05;
/// Share of void trials that is named.
const VOID_SHARE_MAX: f64 = 0.2;
/// Change of latency at like loads between the first and the last trials that is named.
const DRIFT_MAX: f64 = 0.05;

/// Where the load line is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// The server held this in a whole trial (or, where `confirmed` is false, in a single or a short one); 0 when no load
    /// did.
    pub lower: f64,
    /// The server did not hold this; `None` when no load failed.
    pub upper: Option<f64>,
    /// A trial of its own confirmed the lower end after it was found.
    pub confirmed: bool,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The load line, a second, of what is counted.
    pub load_line_rps: Bracket,
    /// What is offered and counted: `requests`, or `sessions`.
    pub counted: &'static str,
    /// The log from which loads were drawn, where they were.
    pub log: Option<LogRate>,
    /// The promise it is under.
    pub slo: Slo,
    /// The peak; `None` if nothing succeeded or it was not reached.
    pub peak: Option<Peak>,
    /// The knee.
    pub knee: Option<Knee>,
    /// All trials, in order.
    pub trials: Vec<TrialOutcome>,
    /// Why the search ended.
    pub stopped_by: StoppedBy,
    /// Stalls longer than the promise allows.
    pub stalls: Option<Stalls>,
    /// Requests that fail or are late whatever the load, more than the promise allows.
    pub failing: Option<Failing>,
    /// Since when nobody is there, where that ended the search.
    pub gone: Option<Gone>,
    /// The longest that the server held the line itself in one trial, in seconds.
    pub held_s: f64,
    /// How long the search took, in seconds.
    pub elapsed_s: f64,
    /// All that speaks against these figures.
    pub doubts: Doubts,
    /// What others used of the machine during the trials.
    pub others: Others,
}

/// What a budget can give.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Width of the bracket that can be expected, as a share of the line.
    pub width: f64,
    /// Trials near the line that fit.
    pub line_trials: u32,
    /// Length of each, in seconds.
    pub line_trial_s: f64,
    /// From this rate on a single trial near the line can prove the success bound; `None` if nothing could.
    pub provable_rps: Option<f64>,
    /// The same in sentences.
    pub sentences: Vec<String>,
}

/// What the settings' budget can give, before the rate of the server is known.
pub fn forecast(settings: &Settings) -> Forecast {
    let pace = Pace::of(settings.budget_ns, settings.first_answer_ns);
    let line_trial_s = pace.line_ns as f64 / 1e9;
    let left_s = settings.budget_ns as f64 / 1e9 * 0.72 - 1.0;
    let line_trials = (left_s / (line_trial_s + 0.3)).floor().max(0.0) as u32;
    // Both ends must be decided, each by at least half the repeats, and a few trials miss. Shorter trials see less.
    let decides = pace.repeats as u32;
    let width = match line_trials {
        n if n >= decides + 4 => 0.01,
        n if n > decides => 0.02,
        n if n == decides => 0.05,
        _ => 0.2,
    };
    let width = (width * (5.0 / line_trial_s).max(1.0)).min(0.5);
    let needed = requests_to_prove(settings.slo.success_min);
    let provable_rps = needed.map(|n| n / line_trial_s);
    let budget = format::duration(settings.budget_ns as f64);
    let mut sentences = vec![format!(
        "In {budget} about {line_trials} trials of {} s near the line fit; that can give a bracket of about {}.",
        format_number(line_trial_s),
        format::rough_share(width)
    )];
    let answer_ns = settings.first_answer_ns;
    if pace.line_ns > Pace::of(settings.budget_ns, 0).line_ns {
        sentences.push(format!(
            "The first answer took {}, so a trial takes at least {} s unless answers get faster.",
            format::duration(answer_ns as f64),
            format_number(line_trial_s)
        ));
    } else if settings.budget_ns < 60 * SECOND {
        sentences.push("Trials near the line are shorter than 5 s in this budget; 60 s give whole ones.".to_owned());
    }
    match provable_rps {
        Some(rps) => sentences.push(format!(
            "A trial can prove success>={} from about {} requests a second on.",
            share_syntax(settings.slo.success_min),
            format::rate(rps.ceil())
        )),
        None => sentences.push("No number of requests can prove that none will ever fail.".to_owned()),
    }
    Forecast { width, line_trials, line_trial_s, provable_rps, sentences }
}

/// How many requests without a failure show, with 99 % confidence, that at least `success_min` succeed (the case t = 0
/// of MLPerf LoadGen's early stopping rule); `None` for a bound of 100 %.
fn requests_to_prove(success_min: f64) -> Option<f64> {
    (success_min < 1.0)
        .then(|| if success_min <= 0.0 { 1.0 } else { ((1.0 - CONFIDENCE).ln() / success_min.ln()).ceil() })
}

/// The findings after `history`.
pub fn of(settings: &Settings, history: &[TrialOutcome], elapsed_ns: u64, stopped_by: StoppedBy) -> Findings {
    let (recorded, history) = (history, &sound(history)[..]);
    // What nobody was there to answer says nothing.
    let gone = Gone::seen(history).filter(|_| stopped_by == StoppedBy::Gone);
    let history = gone.map_or(history, |gone| &history[..gone.before]);
    let measured = || history.iter().filter(|t| t.purpose != Purpose::Settle);
    let spoilt = measured().filter(|t| t.offered_rps().is_some() && disturbed(t)).count();
    // The time was used up, but by trials that others spoilt.
    let stopped_by = match stopped_by {
        StoppedBy::Budget if 2 * spoilt > measured().filter(|t| t.offered_rps().is_some()).count() => {
            StoppedBy::Disturbed
        }
        other => other,
    };
    let known = TrialsSoFar::of(settings, history);
    let decide_s = known.pace.decide_s();
    let evidence = Evidences::concluding(&known);
    let Ceiling { rps: rate_max, stopped_by: topped_by } = Ceiling::of(&known, &evidence);
    let held_rps = evidence.held(decide_s, |rate| line::confirmed(&known, rate));
    let seen_index = held_rps.map(index_below);
    // What the slower of two regimes did while it was asked for more, where no trial met it just below.
    let slower_index =
        evidence.regimes.filter(Regimes::likely).map(|r| index_below(r.slower_rps)).filter(|k| {
            seen_index.is_none_or(|seen| seen < *k) && evidence.leans_upper().is_none_or(|upper| *k < upper)
        });
    let held_rps = held_rps.or_else(|| evidence.passed_once(decide_s));
    // A trial of the climb is better than nothing.
    let climbed_rps = evidence.climb_lower().filter(|rate| !evidence.contradicted(*rate));
    let lower = slower_index.map(|k| rate_of(k, rate_max)).or(held_rps).or(climbed_rps).unwrap_or(0.0);
    let confirmed = lower > 0.0 && line::confirmed(&known, lower);
    // Stalls that alone are too many need more than a trial that they happened to spare.
    // At our own limit a line that is not confirmed rests on a trial of the climb, which lets stalls through.
    let short = stopped_by == StoppedBy::Client;
    let stalling =
        known.stalls.as_ref().is_some_and(|s| s.forbids.is_some() || s.too_many || (s.recur || short) && !confirmed);
    // A load at which none failed by chance is no line.
    let failing = Failing::seen(&settings.slo, history);
    let forbidden = stalling || failing.is_some() && !confirmed;
    let lower = if forbidden { 0.0 } else { lower };
    let confirmed = confirmed && !forbidden;
    let upper_index = match (evidence.upper(decide_s), evidence.leans_upper()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let upper = upper_index.map(|k| rate_of(k, f64::INFINITY)).or(evidence.climb_upper()).filter(|u| *u > lower);
    // The time was used up below plimsoll's own limit.
    let stopped_by = match (stopped_by, topped_by, upper) {
        (StoppedBy::Budget, StoppedBy::Client, None) if lower > 0.0 => StoppedBy::Client,
        (other, ..) => other,
    };
    let upper = match stopped_by {
        StoppedBy::Client | StoppedBy::MaxRate => None,
        _ => upper,
    };
    let held = history.iter().filter(|t| {
        t.verdict == Verdict::Pass
            && t.purpose != Purpose::Settle
            && t.offered_rps().is_some_and(|rate| (rate / lower - 1.0).abs() < 1e-6)
    });
    let held_s = held.map(|t| t.duration_ns as f64 / 1e9).fold(0.0, f64::max);
    let mut findings = Findings {
        load_line_rps: Bracket { lower, upper, confirmed },
        counted: settings.base.traffic.counted(),
        log: LogRate::of(&settings.base),
        slo: settings.slo.clone(),
        peak: peak::of(history),
        knee: peak::knee(history),
        trials: recorded.to_vec(),
        stopped_by,
        stalls: known.stalls.clone(),
        failing: failing.filter(|_| lower <= 0.0),
        gone,
        held_s,
        elapsed_s: elapsed_ns as f64 / 1e9,
        doubts: Doubts::default(),
        others: Others::over(measured().map(|trial| &trial.others), "trials"),
    };
    let mut doubts: Doubts = findings.others.doubt().into_iter().collect();
    doubts.extend(of_the_end(&findings, &evidence));
    if slower_index.is_some() && lower > 0.0 {
        let text = "The lower end is what the slower regime did under overload; no trial held just that load.";
        doubts.add(DoubtKind::Server, text);
    }
    if lower > 0.0 && !confirmed {
        let held = match findings.held_s {
            s if s > 0.0 => format!("it rests on a trial of {} s", format_number((s * 10.0).round() / 10.0)),
            _ => "no trial held just that load".to_owned(),
        };
        doubts.add(DoubtKind::Unconfirmed, format!("not confirmed: {held}"));
    }
    doubts.extend(conflicts(&findings, &evidence));
    doubts.extend(of_trials(settings, &findings, &evidence));
    findings.doubts = doubts;
    findings
}

impl Findings {
    /// The trials that somebody was there for.
    fn attended(&self) -> &[TrialOutcome] {
        &self.trials[..self.gone.map_or(self.trials.len(), |gone| gone.before)]
    }
}

/// Goodput of like trials that differs by more than this is named.
const SPREAD_MAX: f64 = 0.05;
/// Loads that differ by less than this are alike.
const LIKE: f64 = 1.03;
/// A short trial of the climb contradicts the line only from this far above it on.
const FAR: f64 = 1.1;

/// Requests that failed although the server did not fall behind: the largest share of a trial, and whether they were fewer at
/// another load. A trial that should have had a handful by that share, and had less than half of them, was spared.
fn rejected(trials: &[TrialOutcome]) -> Option<(f64, bool)> {
    let failed = |t: &TrialOutcome| t.evidence.failed_count() as f64;
    let share = rejections(trials).map(|t| failed(t) / t.evidence.scheduled.max(1) as f64).reduce(f64::max)?;
    let is_spared = |t: &TrialOutcome| {
        let expected = t.evidence.scheduled as f64 * share;
        t.purpose != Purpose::Settle && expected >= 5.0 && failed(t) < expected / 2.0
    };
    Some((share, trials.iter().any(is_spared)))
}

/// What whole trials said against the bracket, and by how much like trials differed: in a few words each.
fn conflicts(findings: &Findings, evidence: &Evidences) -> Doubts {
    let Bracket { lower, upper, .. } = findings.load_line_rps;
    let mut doubts = Doubts::default();
    if lower <= 0.0 {
        return doubts;
    }
    let upper = upper.unwrap_or(f64::INFINITY);
    // A limiter's tokens carry a short trial.
    let of = |verdict: Verdict| {
        let whole = evidence.open().iter().filter(move |t| t.verdict == verdict);
        whole.filter_map(|t| Some((t.offered_rps()?, t.purpose == Purpose::Climb, t.evidence.primed)))
    };
    let limiter = rejections(findings.attended()).next().is_some();
    let passed = of(Verdict::Pass).filter(|(_, _, primed)| !limiter || *primed);
    let passed = passed.filter(|(rate, climb, _)| *rate > upper * if *climb { FAR } else { 1.0 });
    if let Some(rate) = passed.map(|p| p.0).max_by(f64::total_cmp) {
        doubts.add(DoubtKind::Contradicted, format!("{}/s passed in a trial, too", format::rate(rate)));
    }
    // What a disturbance broke, and the server held since, is no doubt of the server.
    let failed = evidence.whole().filter(|t| t.verdict == Verdict::Fail).filter_map(TrialOutcome::offered_rps);
    if let Some(rate) = failed.filter(|rate| *rate < lower * 0.999).min_by(f64::total_cmp) {
        doubts.add(DoubtKind::Contradicted, format!("{}/s failed in a trial", format::rate(rate)));
    }
    let shares = evidence.whole().filter_map(|t| {
        let rate = t.offered_rps()?;
        (rate >= lower / LIKE && rate <= lower * LIKE).then_some((t.achieved_rps / rate).min(1.0))
    });
    let (least, most) = shares.fold((f64::INFINITY, 0f64), |(a, b), share| (a.min(share), b.max(share)));
    if most > 0.0 && least < most * (1.0 - SPREAD_MAX) {
        let by = format::share(((1.0 - least / most) * 100.0).round() / 100.0);
        doubts.add(DoubtKind::Spread, format!("goodput of like trials differed by {by}"));
    }
    doubts
}

/// What the way the search ended has to say.
fn of_the_end(findings: &Findings, evidence: &Evidences) -> Doubts {
    let mut doubts = Doubts::default();
    match findings.stopped_by {
        StoppedBy::Client => {
            let text = "plimsoll itself was the limit: the server's line is higher than it could measure from here.";
            doubts.add(DoubtKind::Beyond, text);
        }
        StoppedBy::MaxRate => {
            let text = Sentence::from("The highest load allowed (").remedy(Remedy::MaxRate);
            doubts.add(DoubtKind::Beyond, text.words(") still passes: the line is higher than was tried."));
        }
        StoppedBy::LowestFails => {
            let lowest = evidence.open().iter().filter_map(|t| t.offered_rps()).fold(f64::INFINITY, f64::min);
            let text = format!("Even the lowest load tried, {} a second, fails.", format::rate(lowest));
            doubts.add(DoubtKind::Beyond, text);
        }
        StoppedBy::NothingSucceeds => {
            doubts.add(DoubtKind::Nothing, "Not a single request succeeded, so there is no line.");
        }
        StoppedBy::NothingAnswered => {
            let waited = findings.trials.iter().map(|t| t.duration_ns).max().unwrap_or(0);
            let waited = format::duration(waited as f64);
            let text = format!("Nobody answered within {waited}, so there is no line; a larger ");
            doubts.add(DoubtKind::Nothing, Sentence::from(text).remedy(Remedy::Budget).words(" waits for longer."));
        }
        StoppedBy::Gone => {
            // Without a line that is what is told.
            if let Some(gone) = findings.gone.filter(|_| findings.load_line_rps.lower > 0.0) {
                doubts.add(DoubtKind::Ended, format!("What is stated is from before: {}.", gone.text()));
            }
        }
        StoppedBy::Interrupted => {
            doubts.add(DoubtKind::Ended, "The search was interrupted; these are its findings so far.");
        }
        StoppedBy::Disturbed => {
            let text = "Others disturbed most of the trials; what is stated is what held in spite of them. Stop what else \
                        runs, and search again.";
            doubts.add(DoubtKind::Others, text);
        }
        StoppedBy::Budget | StoppedBy::Width | StoppedBy::Stalls => {}
    }
    if let Some(idle) = findings.trials.iter().find(|t| t.concurrency() == Some(1)) {
        for bound in &findings.slo.latency {
            let idle_ns = if bound.quantile <= 0.5 { idle.p50_ns } else { idle.p99_ns };
            if idle_ns > bound.bound_ns && bound.quantile <= 0.99 {
                let (seen, asked) = (format::duration(idle_ns as f64), format::duration(bound.bound_ns as f64));
                doubts.add(
                    DoubtKind::Promise,
                    format!(
                        "The SLO is missed by the idle server: with a single user it took {seen}, {asked} were asked."
                    ),
                );
                break;
            }
        }
    }
    doubts
}

/// What the trials have to say.
fn of_trials(settings: &Settings, findings: &Findings, evidence: &Evidences) -> Doubts {
    let mut doubts = Doubts::default();
    let trials = &sound(findings.attended());
    if let Some(stalls) = &findings.stalls {
        let then = match (&stalls.forbids, findings.load_line_rps.lower > 0.0) {
            (Some(bound), _) => format!("no rate holds {bound}"),
            (None, true) => "the line counts them in".to_owned(),
            (None, false) => {
                "no trial of this budget was long enough to show a rate that holds in spite of them".to_owned()
            }
        };
        doubts.add(DoubtKind::Server, format!("The server stalls ({}): {then}.", stalls.text()));
    }
    // Where no line is left, none is that of a regime.
    if let Some(regimes) = evidence.regimes.filter(Regimes::likely).filter(|_| findings.load_line_rps.lower > 0.0) {
        let sure = if regimes.certain() { "The server alternates" } else { "The server may alternate" };
        doubts.add(DoubtKind::Server, format!(
            "{sure} between two regimes: some trials held the load, in others it did only about {} a second. The line is that of the slower.",
            format::rate(regimes.slower_rps)
        ));
    } else if evidence.inversions() > 0 {
        doubts.add(
            DoubtKind::Server,
            format!("Loads are inverted: {} trials failed at a lower load than others passed.", evidence.inversions()),
        );
    }
    let measured: Vec<&TrialOutcome> = trials.iter().filter(|t| t.purpose != Purpose::Settle).collect();
    let voids = measured.iter().filter(|t| t.verdict == Verdict::Void && !t.others.disturbed).count();
    if voids as f64 > VOID_SHARE_MAX * measured.len() as f64 {
        doubts.add(DoubtKind::Void, format!("{voids} of {} trials were void: plimsoll was too slow.", measured.len()));
    }
    if trials.iter().any(|t| t.purpose == Purpose::Settle && t.verdict == Verdict::Fail) {
        doubts.add(
            DoubtKind::Server,
            "After an overload the server did not come to rest; trials that followed may have met its backlog.",
        );
    }
    if let Some(failing) = findings.failing {
        let promise = match failing.how {
            FailingHow::Failed => format!("success>={}", share_syntax(settings.slo.success_min)),
            FailingHow::Late(bound) => bound.to_string(),
        };
        doubts.add(DoubtKind::Server, format!("{}: no rate holds {promise}.", failing.text()));
    }
    // Who is gone refuses connections, but nothing for being too much.
    match rejected(trials).filter(|_| findings.failing.is_none() && findings.gone.is_none()) {
        Some((_, true)) => doubts.add(
            DoubtKind::Server,
            "The server rejects what is too much; its saved-up allowance was used up before each trial near the line.",
        ),
        Some((share, false)) => doubts.add(
            DoubtKind::Server,
            format!(
                "Requests fail at any load, {} of them at the most: no rate keeps that promise.",
                format::share(share)
            ),
        ),
        None => {}
    }
    if peak::still_growing(trials) {
        doubts.add(
            DoubtKind::Beyond,
            "Goodput was still growing with the number of users when the climb ended; the peak is higher.",
        );
    }
    let gap = measured.iter().filter_map(|t| t.evidence.little_gap).fold(0.0, f64::max);
    if gap > LITTLE_MAX {
        doubts.add(
            DoubtKind::Accounts,
            format!(
                "Little's law does not hold: the number in flight and rate x stay differ by {}.",
                format::rough_share(gap)
            ),
        );
    }
    if let Some(drift) = drift(trials) {
        doubts.add(
            DoubtKind::Server,
            format!("The server's capacity drifted by {} during the search.", format::rough_share(drift)),
        );
    }
    let line = findings.load_line_rps.lower;
    let fails_below = |trials: &mut dyn Iterator<Item = &TrialOutcome>| {
        let fails = trials.filter(|t| t.purpose != Purpose::Climb && t.verdict == Verdict::Fail);
        fails.filter_map(TrialOutcome::offered_rps).filter(|rate| *rate < line * 0.999).count()
    };
    let counted = fails_below(&mut evidence.whole());
    match fails_below(&mut evidence.open().iter().copied()).saturating_sub(counted) {
        0 => {}
        1 => doubts
            .add(DoubtKind::SetAside, "A trial failed below the line; it is taken for disturbed, as others held more."),
        fails => doubts.add(
            DoubtKind::SetAside,
            format!("{fails} trials failed below the line; they are taken for disturbed, as others held more."),
        ),
    }
    let passed = measured.iter().filter(|t| t.verdict == Verdict::Pass);
    let at_line = passed.filter_map(|t| Some((t.offered_rps()?, t.duration_ns as f64 / 1e9)));
    // Not `sum`, which makes -0 of nothing.
    let made = at_line.filter(|(rate, _)| *rate >= line * 0.999).fold(0.0, |total, (rate, s)| total + rate * s);
    if let Some(needed) = requests_to_prove(settings.slo.success_min).filter(|n| line > 0.0 && made < *n) {
        doubts.add(DoubtKind::Promise, format!(
            "Success>={} is not proven: that takes {} requests without a failure, and the trials at the line made {}.",
            share_syntax(settings.slo.success_min),
            format::count(needed as u64),
            format::count(made.round() as u64)
        ));
    }
    doubts
}

/// The change from the first to the last third of the capacities that failing trials showed, if it is one way.
fn drift(trials: &[TrialOutcome]) -> Option<f64> {
    let near = trials.iter().filter(|t| near_line(t));
    let capacities: Vec<f64> =
        near.filter(|t| t.verdict == Verdict::Fail).filter_map(|t| t.evidence.saturated_rps).collect();
    if capacities.len() < 6 {
        return None;
    }
    let third = capacities.len() / 3;
    let (first, last) = (&capacities[..third], &capacities[capacities.len() - third..]);
    let range = |c: &[f64]| c.iter().fold((f64::INFINITY, 0.0f64), |r, x| (r.0.min(*x), r.1.max(*x)));
    let ((first_min, first_max), (last_min, last_max)) = (range(first), range(last));
    let change = if first_max < last_min { last_min / first_max - 1.0 } else { first_min / last_max - 1.0 };
    (change > DRIFT_MAX).then_some(change)
}
