//! The result of a search ([`Findings`]) with the evidence against the result, and the precision
//! that a budget can give ([`forecast`]).

use super::budget_division::BudgetDivision;
use super::capacity::saturated_rates;
use super::chance::{
    AT_LINE_SHARE_MIN, TriedRates, backlog_dispersion, breaks_slo_even_if_disturbed, chance_explains_trial,
    fails_beyond_chance, is_line_supported, is_machine_shared, with_verdicts_by_chance,
};
use super::constant_failure::{ConstantFailure, SloBreakKind};
use super::line_estimate::LineEstimate;
use super::log_rate::AccessLogRate;
use super::peak::{self, Knee, Peak};
use super::present_capacity::LastCapacityChange;
use super::quota::{Quota, QuotaEstimate};
use super::rejection::trials_with_rejections;
use super::search_settings::{SearchSettings, StopReason, is_line_or_confirming_trial, replace_invalid_figures};
use super::search_state::SearchState;
use super::stalls::Stalls;
use super::target_loss::ServerLoss;
use crate::condition::{format_number, share_in_condition_syntax};
use crate::doubts::{DoubtKind, Doubts};
use crate::format;
use crate::interference::Interference;
use crate::judge::{TrialOutcome, Verdict};
use crate::sentence::{Remedy, Sentence};
use crate::slo::Slo;
use plimsoll_model::units::SECOND;
use plimsoll_model::{ArrivalSpacing, LoadPurpose};
use plimsoll_statistics::line_distribution::{LINE_QUANTILE_HIGH, LINE_QUANTILE_LOW};
use plimsoll_statistics::{Capacity, INTERVAL_90_STANDARD_ERRORS, Saturation};

/// Confidence with which trials must prove the success bound of the SLO.
const SUCCESS_CONFIDENCE: f64 = 0.99;
/// A search reports a doubt if a trial's requests in flight differ from rate x response time
/// (Little's law) by more than this share.
const LITTLES_LAW_ERROR_MAX: f64 = 0.05;
/// A search reports a doubt if more than this share of its trials is void.
const VOID_SHARE_MAX: f64 = 0.2;
/// A search reports a doubt if the capacity changed by more than this share from the first to the
/// last third of the saturated trials.
const CAPACITY_DRIFT_SHARE_MAX: f64 = 0.05;
/// A change of the capacity must exceed its standard error by this factor. Chance alone exceeds
/// this factor in 0.3 % of the searches (two-sided).
const CAPACITY_DRIFT_DEVIATIONS_MIN: f64 = 3.0;
/// The probability that the load line lies below the upper end that a search states. The
/// probability above the upper end is half of the probability below the lower end. The reason: an
/// undetected disturbance of a trial makes the load line look lower, never higher. With equal
/// probabilities at both ends, `bench/run coverage` searched two simulated servers (M/M/1 at 100/s
/// and H2/1 at 1 000/s) with 10 % disturbed trials. Only 83 to 85 % of these intervals contained
/// the load line, and 15 % lay below the load line.
const STATED_QUANTILE_HIGH: f64 = 0.982;

/// The load line with its uncertainty. The load line is the highest mean arrival rate at which the
/// server meets the SLO in steady state, under the arrivals of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLine {
    /// The estimate of the load line, 1/s. If the interval is too wide for an estimate, this field
    /// contains the lower end of the interval. If the search found no load line, this field is 0.
    pub rps: f64,
    /// Lower end of the 90 % interval of the load line, 1/s.
    pub lower: f64,
    /// Upper end of the 90 % interval of the load line, 1/s; `None` if the search found no upper
    /// limit of the load line.
    pub upper: Option<f64>,
    /// Whether the search states an estimate of the load line, and not only an interval.
    pub has_estimate: bool,
    /// Whether separate confirming trials, or a soak, support the lower end of the load line's
    /// interval.
    pub is_confirmed: bool,
}

impl LoadLine {
    /// Probability that the interval contains the load line.
    pub const INTERVAL_CONFIDENCE: f64 = 0.9;
    /// The load line that a search reports if it found no rate that meets the SLO.
    pub const NONE: LoadLine = LoadLine { rps: 0.0, lower: 0.0, upper: None, has_estimate: false, is_confirmed: false };
    /// A search states an estimate of the load line only if the estimate is at most this multiple
    /// of the lower end of the interval. A stated estimate exceeds the true load line by more than
    /// 3 % in at most one case of twenty.
    const STATED_ESTIMATE_FACTOR_MAX: f64 = 1.03;

    /// Creates the load line from the lower end, the median and the upper end of its distribution,
    /// 1/s.
    fn new([lower, middle, upper]: [f64; 3]) -> LoadLine {
        let provable = lower > 0.0 && middle <= LoadLine::STATED_ESTIMATE_FACTOR_MAX * lower && middle < upper;
        let rps = if provable { middle } else { lower };
        LoadLine { rps, lower, upper: Some(upper), has_estimate: provable, is_confirmed: false }
    }

    /// Creates the load line of a machine that other programs use. The range of the capacities in
    /// single trials widens the interval, and the mean capacity may lower the estimate. The range
    /// of capacities never makes the interval narrower. The estimate is stated however wide the
    /// interval is, because the load by other programs changes and no budget makes the interval
    /// narrow.
    fn on_shared_machine([lower, middle, upper]: [f64; 3], range: CapacityRange) -> LoadLine {
        let (lower, upper) = (lower * range.lowest.min(1.0), upper * range.highest.max(1.0));
        let rps = (middle * range.mean.min(1.0)).max(lower);
        LoadLine { rps, lower, upper: Some(upper), has_estimate: lower > 0.0, is_confirmed: false }
    }

    /// Returns the load line of a machine that other programs use, corrected by the results of the
    /// trials near the load line.
    fn with_tried_rates(self, tried: &TriedRates) -> LoadLine {
        let upper = self.upper.and_then(|upper| tried.upper_end(upper));
        let upper_rps = upper.unwrap_or(f64::INFINITY);
        let lower = tried.lower_end(self.lower).min(upper_rps);
        LoadLine { rps: self.rps.min(upper_rps).max(lower), lower, upper, has_estimate: lower > 0.0, ..self }
    }
}

/// The result of a search: the load line with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The load line and its interval, 1/s, in the unit of `rate_unit`.
    pub load_line: LoadLine,
    /// The unit of the offered rate: `requests`, or `sessions`.
    pub rate_unit: &'static str,
    /// The rates of the access log from which the loads were drawn; `None` without a log.
    pub access_log_rate: Option<AccessLogRate>,
    /// The SLO that the server meets up to the load line.
    pub slo: Slo,
    /// The throughput of the server while its queue is never empty; `None` if no saturated trial
    /// was made.
    pub capacity: Option<Capacity>,
    /// The spacing of arrivals in the open trials, such as random or even.
    pub arrivals: ArrivalSpacing,
    /// The highest goodput of the closed-loop climb (trials with more and more users). `None` if no
    /// request succeeded, or if the climb ended before the goodput reached its peak.
    pub peak: Option<Peak>,
    /// The lowest number of users whose goodput reaches 95 % of the peak.
    pub knee: Option<Knee>,
    /// All trials of the search, in order.
    pub trials: Vec<TrialOutcome>,
    /// Why the search ended.
    pub stopped_by: StopReason,
    /// Stalls of the server: periods without any response that are longer than the response time
    /// explains. `None` if the server did not stall.
    pub stalls: Option<Stalls>,
    /// Requests that fail or are late at any load, more often than the SLO allows. `None` if the
    /// search found a load line, or if the share of such requests depends on the load.
    pub constant_failure: Option<ConstantFailure>,
    /// The load since which the server accepted no connections; `None` if the server did not stop
    /// accepting connections during the search.
    pub target_loss: Option<ServerLoss>,
    /// The length of the longest trial that met the SLO at the load line or above, s.
    pub longest_pass_at_line_s: f64,
    /// Whether the longest trial at the load line broke the SLO, and chance explains this.
    pub is_longest_pass_by_chance: bool,
    /// The search budget that would probably make the load line's interval narrow enough for an
    /// estimate, s. `None` if the load line's interval is already narrow enough for an estimate.
    pub budget_for_estimate_s: Option<f64>,
    /// Length of the search, s.
    pub elapsed_s: f64,
    /// The doubts: evidence against the figures of this result.
    pub doubts: Doubts,
    /// The CPU used by other processes during the trials.
    pub interference: Interference,
}

/// The expected precision of the load line after a search with a given time budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Expected width of the load line's 90 % interval, as a share of the load line. The load line
    /// is assumed to be 1 000 requests a second.
    pub width: f64,
    /// Number of trials near the load line that fit into the budget.
    pub line_trials: u32,
    /// Length of a trial near the load line, s.
    pub line_trial_s: f64,
    /// The lowest rate, 1/s, at which a single trial near the load line can prove the success bound
    /// of the SLO. `None` for a success bound of 100 %, which no number of requests proves.
    pub provable_rps: Option<f64>,
    /// The forecast in sentences for the user.
    pub sentences: Vec<String>,
}

/// Computes the precision of the load line that the budget of `settings` can give, before the rate
/// of the server is known.
pub fn forecast(settings: &SearchSettings) -> Forecast {
    let pace = BudgetDivision::for_budget(settings.budget_ns, settings.preflight_ns);
    let line_trial_s = pace.line_trial_ns as f64 / 1e9;
    let left_s = settings.budget_ns as f64 / 1e9 * 0.72 - 1.0;
    let line_trials = (left_s / (line_trial_s + 0.3)).floor().max(0.0) as u32;
    // Saturated trials take half of the search's time. N completions with exponential service times
    // give the capacity with the relative error 1 / sqrt(N).
    let width_at = |rps: f64| 2.0 * INTERVAL_90_STANDARD_ERRORS / (rps * left_s.max(0.1) / 2.0).sqrt();
    let provable_from_rps = (INTERVAL_90_STANDARD_ERRORS / 0.03).powi(2) / (left_s.max(0.1) / 2.0);
    let width = width_at(1000.0).clamp(0.01, 0.5);
    let needed = requests_to_prove(settings.slo.success_min);
    let provable_rps = needed.map(|n| n / line_trial_s);
    let budget = format::duration(settings.budget_ns as f64);
    let mut sentences = vec![format!(
        "Within {budget}, plimsoll measures a load line of, for example, 1 000 requests/s to within about \
         {precision}. The search may not prove a load line below about {lowest_rate}/s.",
        precision = format::short_percent(width),
        lowest_rate = format::rate(provable_from_rps.ceil())
    )];
    let answer_ns = settings.preflight_ns;
    if pace.line_trial_ns > BudgetDivision::for_budget(settings.budget_ns, 0).line_trial_ns {
        sentences.push(format!(
            "The first response took {response_time}, so a trial takes at least {trial_s} s unless responses get \
             faster.",
            response_time = format::duration(answer_ns as f64),
            trial_s = format_number(line_trial_s)
        ));
    } else if settings.budget_ns < 60 * SECOND {
        sentences.push(
            "With this budget, trials near the load line are shorter than 5 s; a budget of 60 s gives \
            trials of full length."
                .to_owned(),
        );
    }
    match provable_rps {
        Some(rps) => sentences.push(format!(
            "Below about {rate_rps} requests/s, one trial has too few requests to prove success>={success_share}.",
            success_share = share_in_condition_syntax(settings.slo.success_min),
            rate_rps = format::rate(rps.ceil())
        )),
        None => {
            let text = "No number of requests can prove success>=100%, because any later request may fail.";
            sentences.push(text.to_owned());
        }
    }
    Forecast { width, line_trials, line_trial_s, provable_rps, sentences }
}

/// Returns how many requests without a failure prove with 99 % confidence that the share of
/// successes is at least `success_min`. The number follows from MLPerf LoadGen's early stopping
/// rule for t = 0 (no failed request). Returns `None` for a bound of 100 %, which no number of
/// requests proves.
fn requests_to_prove(success_min: f64) -> Option<f64> {
    (success_min < 1.0)
        .then(|| if success_min <= 0.0 { 1.0 } else { ((1.0 - SUCCESS_CONFIDENCE).ln() / success_min.ln()).ceil() })
}

/// Returns the longest trial that met the SLO at the load line or above, or that broke the SLO by
/// no more than chance explains. Of two trials of equal length, the trial that met the SLO counts.
fn longest_pass_at_line(history: &[TrialOutcome], line_rps_min: f64, dispersion: f64) -> Option<&TrialOutcome> {
    let meets = |trial: &&TrialOutcome| {
        (trial.verdict == Verdict::Pass
            || is_line_or_confirming_trial(trial) && chance_explains_trial(trial, dispersion))
            && trial.purpose != LoadPurpose::Settle
            && trial.offered_rps().is_some_and(|rate| rate >= line_rps_min * AT_LINE_SHARE_MIN)
    };
    history.iter().filter(meets).max_by_key(|trial| (trial.duration_ns, trial.verdict == Verdict::Pass))
}

/// Computes the result of a search from its trials. `history` contains all trials in order.
/// `elapsed_ns` is the length of the search.
pub fn findings_from_trials(
    settings: &SearchSettings,
    history: &[TrialOutcome],
    elapsed_ns: u64,
    stopped_by: StopReason,
) -> Findings {
    let (recorded, history) = (history, &replace_invalid_figures(history)[..]);
    // Trials after the server stopped accepting connections carry no information about the load
    // line.
    let target_loss = ServerLoss::detect(history).filter(|_| stopped_by == StopReason::ServerLost);
    let history = target_loss.map_or(history, |loss| &history[..loss.trials_before]);
    let measured = || history.iter().filter(|t| t.purpose != LoadPurpose::Settle);
    let spoilt = measured().filter(|t| t.offered_rps().is_some() && t.is_void_by_interference()).count();
    // If most open trials were disturbed and the budget was exhausted, the search reports that
    // disturbances ended it (`Disturbed`).
    let stopped_by = match stopped_by {
        StopReason::Budget if 2 * spoilt > measured().filter(|t| t.offered_rps().is_some()).count() => {
            StopReason::Disturbed
        }
        other => other,
    };
    let all = history;
    let era = LastCapacityChange::detect(all);
    let present = LastCapacityChange::trials_at_present_capacity(all, era);
    let history = &present[..];
    let known = SearchState::new(settings, history);
    let line = LineEstimate::new(&known);
    let quantiles = [LINE_QUANTILE_LOW, 0.5, LINE_QUANTILE_HIGH].map(|p| line.quantile(p));
    let dispersion = backlog_dispersion(&known, line.capacity.as_ref());
    let shared = CapacityRange::from_history(history, line.capacity.as_ref(), dispersion);
    let tried_rates = shared.map(|_| TriedRates::from_history(history, dispersion));
    let mut load_line = match shared.zip(tried_rates.as_ref()) {
        Some((range, tried)) => LoadLine::on_shared_machine(quantiles, range).with_tried_rates(tried),
        None => {
            let line = LoadLine::new([quantiles[0], quantiles[1], line.quantile(STATED_QUANTILE_HIGH)]);
            match corrected_lower_end(history, line.lower, dispersion) {
                Some(proven_rps) => LoadLine { rps: proven_rps, lower: proven_rps, has_estimate: false, ..line },
                None => line,
            }
        }
    };
    load_line.is_confirmed =
        load_line.lower > 0.0 && is_line_supported(&known, line.capacity.as_ref(), load_line.lower);
    // A search that ended before its first trial near the load line has no evidence for any rate.
    let tried = history.iter().any(is_line_or_confirming_trial);
    // If no trial near the load line met the SLO, no rate is proven. A trial also confirms a rate
    // if it broke the SLO by no more than chance.
    let met = load_line.is_confirmed
        || tried_rates.is_some_and(|tried| tried.highest_passed_rate_rps.is_some())
        || history
            .iter()
            .any(|t| t.verdict == Verdict::Pass && t.offered_rps().is_some() && is_line_or_confirming_trial(t));
    // A single trial in which by chance no stall occurred does not outweigh frequent stalls.
    let stalling = known.stalls.as_ref().is_some_and(|s| {
        s.impossible_bound.is_some() || s.has_slo_breaking_stalls || s.is_recurring && !load_line.is_confirmed
    });
    let quota = QuotaEstimate::from_history(all).observed_quota();
    // If requests fail at any load, a trial in which by chance no request failed is no evidence for
    // a load line.
    let failing = ConstantFailure::detect(&settings.slo, history).filter(|_| quota.is_none());
    let hopeless = matches!(
        stopped_by,
        StopReason::NothingSucceeds | StopReason::NothingAnswered | StopReason::LowestFails | StopReason::Stalls
    );
    let is_line_possible = !stalling && !hopeless && (failing.is_none() || load_line.is_confirmed);
    if !tried || !met || !is_line_possible {
        load_line = LoadLine { upper: load_line.upper.filter(|upper| tried && *upper > 0.0), ..LoadLine::NONE };
    }
    // If the capacity falls continually, the server sustains no rate.
    if let Some(era) = era.filter(|era| era.is_trend() && era.has_fallen()) {
        load_line = LoadLine { upper: Some(era.present_rps), ..LoadLine::NONE };
    }
    if let Some(quota) = quota {
        load_line = match quota.load_line_interval(&settings.slo, settings.arrivals) {
            Some((lower, middle, upper)) => LoadLine::new([lower, middle, upper]),
            None => LoadLine { upper: quota.rps_max, ..LoadLine::NONE },
        };
    }
    // The load line may be above the highest rate that the search can try. For a load line above
    // the highest rate, the limit on the rate, not the budget, is reported as the reason why the
    // search ended.
    let is_topped = load_line.rps > 0.0 && quota.is_none() && line.is_above_rate_max();
    let stopped_by = match stopped_by {
        StopReason::Budget if is_topped => line.rate_max_reason,
        other => other,
    };
    if is_topped || matches!(stopped_by, StopReason::GeneratorLimited | StopReason::MaxRate) {
        load_line.upper = None;
    }
    let line_rps_max = load_line.upper.map(|upper| upper.max(load_line.lower));
    load_line.upper = load_line.upper.filter(|upper| *upper > load_line.lower);
    let (lower, capacity) = (load_line.rps, line.capacity);
    let longest_pass = longest_pass_at_line(history, load_line.lower, dispersion);
    let mut findings = Findings {
        load_line,
        rate_unit: settings.base.traffic.arrivals_word(),
        access_log_rate: AccessLogRate::from_plan(&settings.base),
        slo: settings.slo.clone(),
        capacity,
        arrivals: settings.arrivals,
        peak: peak::peak_with_capacity_rate(history, capacity.as_ref()),
        knee: peak::knee(history),
        trials: match is_line_possible && quota.is_none() {
            true => {
                // No server sustains a rate above its capacity.
                let capacity_rps_max = || capacity.as_ref().map(|capacity| capacity.interval_90_rps().1);
                with_verdicts_by_chance(recorded, line_rps_max.or_else(capacity_rps_max), dispersion)
            }
            false => recorded.to_vec(),
        },
        stopped_by,
        stalls: known.stalls.clone(),
        constant_failure: failing.filter(|_| lower <= 0.0),
        target_loss,
        longest_pass_at_line_s: longest_pass.map_or(0.0, |trial| trial.duration_ns as f64 / 1e9),
        is_longest_pass_by_chance: longest_pass.is_some_and(|trial| trial.verdict != Verdict::Pass),
        // On a machine that other programs use, a larger budget does not narrow the interval.
        budget_for_estimate_s: budget_for_estimate_s(&load_line, elapsed_ns).filter(|_| shared.is_none()),
        elapsed_s: elapsed_ns as f64 / 1e9,
        doubts: Doubts::default(),
        interference: Interference::combine(measured().map(|trial| &trial.interference), "trials"),
    };
    let mut doubts: Doubts = findings.interference.doubt().into_iter().collect();
    doubts.extend(end_doubts(&findings));
    if lower > 0.0 && !findings.load_line.is_confirmed {
        let text = match findings.longest_pass_at_line_s {
            s if s > 0.0 => format!(
                "not confirmed: the longest trial at the load line took {trial_s} s",
                trial_s = format_number((s * 10.0).round() / 10.0)
            ),
            _ => {
                "not confirmed: no trial at the load line met the SLO; the estimate follows from trials at other rates"
                    .to_owned()
            }
        };
        doubts.add(DoubtKind::Unconfirmed, text);
    }
    doubts.extend(trial_doubts(settings, &findings, quota, era));
    findings.doubts = doubts;
    findings
}

impl Findings {
    /// Returns the trials before the server stopped accepting connections.
    fn trials_before_server_loss(&self) -> &[TrialOutcome] {
        &self.trials[..self.target_loss.map_or(self.trials.len(), |gone| gone.trials_before)]
    }
}

/// The capacities that single trials had on a machine that other programs use, as shares of the
/// capacity that the saturated trials give together.
#[derive(Clone, Copy)]
struct CapacityRange {
    /// The lowest capacity of any trial, as a share of the capacity of all saturated trials. With
    /// ten or more trials, the lowest tenth of the trials is ignored.
    lowest: f64,
    /// The mean capacity of the trials, weighted by their length, as a share of the capacity of all
    /// saturated trials.
    mean: f64,
    /// The highest capacity of any trial, as a share of the capacity of all saturated trials. With
    /// ten or more trials, the highest tenth of the trials is ignored.
    highest: f64,
}

impl CapacityRange {
    /// Computes the range of capacities from the saturated trials and from the trials near the load
    /// line that broke the SLO. The goodput of a trial that broke the SLO stands for the capacity.
    /// Returns `None` without a capacity, and if other programs did not disturb most of the trials.
    fn from_history(history: &[TrialOutcome], capacity: Option<&Capacity>, dispersion: f64) -> Option<CapacityRange> {
        let capacity = capacity.filter(|_| is_machine_shared(history))?;
        let broke = history
            .iter()
            .filter(|trial| is_line_or_confirming_trial(trial) && breaks_slo_even_if_disturbed(trial, dispersion));
        let broke = broke.map(|trial| (trial.goodput_rps, trial.duration_ns as f64 / SECOND as f64));
        let mut rates: Vec<(f64, f64)> = saturated_rates(history).chain(broke).filter(|rate| rate.0 > 0.0).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        let left_out = rates.len() / 10;
        let (lowest, highest) = (rates.get(left_out)?.0, rates.get(rates.len().checked_sub(left_out + 1)?)?.0);
        let seconds: f64 = rates.iter().map(|rate| rate.1).sum();
        let mean = rates.iter().map(|(rps, seconds)| rps * seconds).sum::<f64>() / seconds;
        let [lowest, mean, highest] = [lowest, mean, highest].map(|rps| rps / capacity.rps);
        Some(CapacityRange { lowest, mean, highest })
    }
}

/// Returns a new lower end of the load line's interval, 1/s, if a trial contradicts the lower end
/// `lower`. A trial contradicts `lower` if the trial failed beyond chance at or below `lower`, and
/// no equal or higher rate met the SLO. The new lower end is the highest rate that met the SLO; 0
/// if no rate met the SLO. The correction is needed because a model of the server may treat the
/// failed trial as disturbed. But a rate at which no trial met the SLO is not proven.
fn corrected_lower_end(history: &[TrialOutcome], lower: f64, dispersion: f64) -> Option<f64> {
    let near = || history.iter().filter(|trial| is_line_or_confirming_trial(trial));
    let met = near().filter(|trial| trial.verdict == Verdict::Pass).filter_map(TrialOutcome::offered_rps);
    let met_rps = met.fold(0.0, f64::max);
    let mut failed =
        near().filter(|trial| fails_beyond_chance(trial, dispersion)).filter_map(TrialOutcome::offered_rps);
    failed.any(|rate| rate <= lower && rate > met_rps).then_some(met_rps)
}

/// Returns the largest share of failed requests among the trials in which the server rejected
/// requests. Also returns whether another load had far fewer failures than the largest share
/// predicts. Another load counts only if at least five failures were predicted for it, and fewer
/// than half of the predicted failures occurred.
fn highest_rejection_share(trials: &[TrialOutcome]) -> Option<(f64, bool)> {
    let failed = |t: &TrialOutcome| t.evidence.failed_count() as f64;
    let share =
        trials_with_rejections(trials).map(|t| failed(t) / t.evidence.scheduled.max(1) as f64).reduce(f64::max)?;
    let is_spared = |t: &TrialOutcome| {
        let expected = t.evidence.scheduled as f64 * share;
        t.purpose != LoadPurpose::Settle && expected >= 5.0 && failed(t) < expected / 2.0
    };
    Some((share, trials.iter().any(is_spared)))
}

/// Collects the doubts that follow from the reason why the search ended.
fn end_doubts(findings: &Findings) -> Doubts {
    let mut doubts = Doubts::default();
    match findings.stopped_by {
        StopReason::GeneratorLimited => {
            let text = "plimsoll itself was the limit: the server's load line is higher than plimsoll could measure \
                from this machine.";
            doubts.add(DoubtKind::OutsideTriedLoads, text);
        }
        StopReason::MaxRate => {
            let text = Sentence::from(
                "The server still meets the SLO at the highest load that plimsoll may apply, so the load line is \
                 higher. Permit a higher load (",
            );
            doubts.add(DoubtKind::OutsideTriedLoads, text.remedy(Remedy::MaxRate).words(")."));
        }
        StopReason::LowestFails => {
            let lowest = findings
                .trials
                .iter()
                .filter(|t| is_line_or_confirming_trial(t))
                .filter_map(TrialOutcome::offered_rps)
                .fold(f64::INFINITY, f64::min);
            let text = format!(
                "Even the lowest load tried, {lowest_rate} a second, violates the SLO.",
                lowest_rate = format::rate(lowest)
            );
            doubts.add(DoubtKind::OutsideTriedLoads, text);
        }
        StopReason::NothingSucceeds => {
            doubts.add(DoubtKind::NoSuccess, "No request succeeded, so there is no load line.");
        }
        StopReason::NothingAnswered => {
            let waited = findings.trials.iter().map(|t| t.duration_ns).max().unwrap_or(0);
            let waited = format::duration(waited as f64);
            let text =
                format!("No response arrived within {waited}, so there is no load line. Give the search more time (");
            doubts.add(DoubtKind::NoSuccess, Sentence::from(text).remedy(Remedy::Budget).words(")."));
        }
        StopReason::ServerLost => {
            // If there is no load line, the loss of the server is itself the result of the search,
            // so no doubt is added.
            if let Some(gone) = findings.target_loss.filter(|_| findings.load_line.rps > 0.0) {
                let text = format!(
                    "The results cover only the time before this event: {event}.",
                    event = gone.server_loss_text()
                );
                doubts.add(DoubtKind::Ended, text);
            }
        }
        StopReason::Interrupted => {
            doubts.add(DoubtKind::Ended, "The search was interrupted: the results come from the trials until then.");
        }
        StopReason::Disturbed => {
            let consequence = match findings.load_line.rps > 0.0 {
                true => "the load line comes from the loads that met the SLO despite these processes",
                false => "no load near the estimated load line met the SLO",
            };
            let text = format!(
                "Other processes disturbed most of the trials: {consequence}. Stop other programs, and search again; a \
                 longer budget helps too."
            );
            doubts.add(DoubtKind::Interference, text);
        }
        StopReason::Budget | StopReason::PrecisionReached | StopReason::Stalls => {}
    }
    if let Some(idle) = findings.trials.iter().find(|t| t.user_count() == Some(1)) {
        for bound in findings.slo.response_bounds() {
            let idle_ns = if bound.quantile <= 0.5 { idle.p50_ns } else { idle.p99_ns };
            if idle_ns > bound.bound_ns && bound.quantile <= 0.99 {
                let (waited, allowed) = (format::duration(idle_ns as f64), format::duration(bound.bound_ns as f64));
                doubts.add(
                    DoubtKind::SloImpossible,
                    format!(
                        "The idle server breaks the SLO: a single user waits {waited}, and the SLO allows {allowed}."
                    ),
                );
                break;
            }
        }
    }
    doubts
}

/// Collects the doubts that follow from the trials: stalls, void trials, rejections, drift and
/// unproven bounds.
fn trial_doubts(
    settings: &SearchSettings,
    findings: &Findings,
    quota: Option<Quota>,
    era: Option<LastCapacityChange>,
) -> Doubts {
    let mut doubts = Doubts::default();
    let trials = &replace_invalid_figures(findings.trials_before_server_loss());
    if let Some(stalls) = &findings.stalls {
        let then = match (&stalls.impossible_bound, findings.load_line.rps > 0.0) {
            (Some(bound), _) => format!("no rate meets {bound}"),
            (None, true) => "the measured load line takes the server's stalls (pauses) into account".to_owned(),
            (None, false) => {
                "no trial within this budget was long enough to find a rate that meets the SLO despite the \
                 server's stalls (pauses)"
                    .to_owned()
            }
        };
        doubts.add(DoubtKind::Server, format!("The server stalls ({}): {then}.", stalls.stalls_text()));
    }
    if let Some(capacity) = findings.capacity.filter(|it| it.disturbed_trials > 0) {
        let text = if capacity.disturbed_trials == 1 {
            "One trial at saturation had a far lower throughput than the other such trials, so plimsoll ignores this \
             trial as disturbed by other processes."
                .to_owned()
        } else {
            format!(
                "{slow_trials} trials at saturation had a far lower throughput than the other such trials, so plimsoll \
                 ignores these trials as disturbed by other processes.",
                slow_trials = capacity.disturbed_trials
            )
        };
        doubts.add(DoubtKind::IgnoredLoads, text);
    }
    let measured: Vec<&TrialOutcome> = trials.iter().filter(|t| t.purpose != LoadPurpose::Settle).collect();
    let voids = measured.iter().filter(|t| t.is_void_undisturbed()).count();
    if voids as f64 > VOID_SHARE_MAX * measured.len() as f64 {
        let text = format!(
            "{void_trials} of {all_trials} trials do not count, because plimsoll itself was too slow.",
            void_trials = voids,
            all_trials = measured.len()
        );
        doubts.add(DoubtKind::Void, text);
    }
    if quota.is_none() && trials.iter().any(|t| t.purpose == LoadPurpose::Settle && t.verdict == Verdict::Fail) {
        doubts.add(
            DoubtKind::Server,
            "After an overload the server's backlog did not drain; the backlog may have disturbed the next trials.",
        );
    }
    if let Some(failing) = findings.constant_failure {
        let promise = match failing.kind {
            SloBreakKind::Failed => format!("success>={}", share_in_condition_syntax(settings.slo.success_min)),
            SloBreakKind::Late(bound) => bound.to_string(),
        };
        doubts.add(DoubtKind::Server, format!("{}: no rate meets {promise}.", failing.failure_text()));
    }
    if let Some(quota) = quota {
        doubts.add(DoubtKind::Server, quota.consequence_sentence());
    }
    // No doubt about rejected load is added if the server process ended, because its refused
    // connections are not due to the load.
    match highest_rejection_share(trials)
        .filter(|_| findings.constant_failure.is_none() && findings.target_loss.is_none() && quota.is_none())
    {
        Some((_, true)) => doubts.add(
            DoubtKind::Server,
            "The server rejects excess load. Before each trial near the load line, plimsoll exhausted the burst that \
             the server's rate limit allows.",
        ),
        Some((share, false)) if findings.load_line.rps <= 0.0 => doubts.add(
            DoubtKind::Server,
            format!(
                "Requests fail at any load, up to {failed_share} of the requests: no rate meets the SLO.",
                failed_share = format::share(share)
            ),
        ),
        Some(_) | None => {}
    }
    if quota.is_none() && peak::is_goodput_still_growing(trials) {
        doubts.add(
            DoubtKind::OutsideTriedLoads,
            "Goodput was still growing with the number of users when the search for the peak ended; the real peak is \
             higher.",
        );
    }
    let gap = measured.iter().filter_map(|t| t.evidence.littles_law_gap).fold(0.0, f64::max);
    if gap > LITTLES_LAW_ERROR_MAX {
        doubts.add(
            DoubtKind::CountMismatch,
            format!(
                "Little's law is violated: the number of requests in flight differs from rate x response time by \
                 {difference}.",
                difference = format::short_percent(gap)
            ),
        );
    }
    if let Some(era) = era.filter(|era| quota.is_none() && era.is_reported()) {
        let (kind, text) = era.capacity_change_doubt();
        doubts.add(kind, text);
    } else if let Some(drift) = capacity_drift(trials) {
        doubts.add(
            DoubtKind::Server,
            format!(
                "The server's capacity {change_direction} by {capacity_change} during the search.",
                change_direction = if drift > 0.0 { "rose" } else { "fell" },
                capacity_change = format::short_percent(drift.abs())
            ),
        );
    }
    let line = findings.load_line.lower;
    let is_without_failure = |t: &TrialOutcome| !t.evidence.has_failed_by_chance || t.evidence.failed_count() == 0;
    let passed = measured.iter().filter(|t| t.verdict == Verdict::Pass && is_without_failure(t));
    let at_line = passed.filter_map(|t| Some((t.offered_rps()?, t.duration_ns as f64 / 1e9)));
    let rate_min = line * AT_LINE_SHARE_MIN;
    // The code uses `fold`, because `sum` would return -0 for an empty iterator.
    let made = at_line.filter(|(rate, _)| *rate >= rate_min).fold(0.0, |total, (rate, s)| total + rate * s);
    let unproven = requests_to_prove(settings.slo.success_min).filter(|n| line > 0.0 && made < *n && quota.is_none());
    if let Some(needed) = unproven {
        doubts.add(
            DoubtKind::Unproven,
            format!(
                "success>={success_share} is not proven: a proof needs {requests_needed} requests at the load line, \
                 and {requests_made} were made",
                success_share = share_in_condition_syntax(settings.slo.success_min),
                requests_made = format::count(made.round() as u64),
                requests_needed = format::count(needed as u64)
            ),
        );
    }
    doubts
}

/// Returns the search budget that would probably make the load line's interval narrow enough for an
/// estimate, s. The load line's interval narrows with the square root of the search time. Returns
/// `None` if the load line's interval is narrow enough.
fn budget_for_estimate_s(line: &LoadLine, elapsed_ns: u64) -> Option<f64> {
    let upper = line.upper.filter(|upper| !line.has_estimate && line.lower > 0.0 && *upper > line.lower)?;
    let wide = (upper / line.lower).ln() / 2.0;
    let times = (wide / LoadLine::STATED_ESTIMATE_FACTOR_MAX.ln()).powi(2) * PROPOSED_BUDGET_MARGIN;
    Some(elapsed_ns as f64 / 1e9 * times.max(1.2))
}

/// The proposed search budget is the budget by the square-root rule, times this safety margin. By
/// the square-root rule, the load line's interval narrows with the square root of the search time.
const PROPOSED_BUDGET_MARGIN: f64 = 1.3;

/// Returns by how much the capacity rose (above 0) or fell (below 0) from the first to the last
/// third of the saturated trials, as a share of the capacity at first. Returns `None` for fewer
/// than six trials, for a small change, and for a change that chance explains.
fn capacity_drift(trials: &[TrialOutcome]) -> Option<f64> {
    let saturated: Vec<Saturation> = trials.iter().filter_map(|trial| trial.evidence.saturation).collect();
    if saturated.len() < 6 {
        return None;
    }
    let pieces: f64 = saturated.iter().map(|it| it.pieces).sum();
    let dispersion = saturated.iter().map(|it| it.dispersion * it.pieces).sum::<f64>() / pieces.max(1.0);
    let third = saturated.len() / 3;
    let (first, last) = (&saturated[..third], &saturated[saturated.len() - third..]);
    let rate_and_variance = |part: &[Saturation]| {
        let (completed, seconds) = part.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.completed, sum.1 + it.seconds));
        (completed / seconds, dispersion * completed / (seconds * seconds))
    };
    let ((first_rps, first_variance), (last_rps, last_variance)) = (rate_and_variance(first), rate_and_variance(last));
    let range = |part: &[Saturation]| {
        let rates = part.iter().map(|it| it.completed / it.seconds);
        rates.fold((f64::INFINITY, 0.0f64), |range, rps| (range.0.min(rps), range.1.max(rps)))
    };
    let ((first_min, first_max), (last_min, last_max)) = (range(first), range(last));
    let is_apart = first_max < last_min || last_max < first_min;
    let deviations = (last_rps - first_rps).abs() / (first_variance + last_variance).sqrt();
    let change = last_rps / first_rps - 1.0;
    (is_apart && change.abs() > CAPACITY_DRIFT_SHARE_MAX && deviations > CAPACITY_DRIFT_DEVIATIONS_MIN)
        .then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::OfferedLoad;

    #[test]
    fn a_drift_of_the_capacity_exceeds_chance() {
        let check = |name: &str, dispersion: f64, rates_rps: &[f64], expect: Option<f64>| {
            let trials: Vec<TrialOutcome> = rates_rps
                .iter()
                .map(|rps| {
                    let mut trial =
                        TrialOutcome::one_second_trial(LoadPurpose::Saturate, OfferedLoad::Users(16), Verdict::Pass);
                    let (completed, seconds, pieces) = (rps * 5.0, 5.0, 10.0);
                    trial.evidence.saturation = Some(Saturation { completed, seconds, dispersion, pieces });
                    trial
                })
                .collect();
            let drift = capacity_drift(&trials).map(|drift| (drift * 1e3).round() / 1e3);
            assert_eq!(drift, expect, "{name}");
        };
        // Exponential service times of 20 ms: the rate of a trial has a standard error of 6 %.
        check("random service times", 1.0, &[47.6, 45.6, 50.8, 48.8, 51.4, 50.0], None);
        check("equal service times", 0.01, &[100.0, 101.0, 108.0, 112.0, 120.0, 121.2], Some(0.2));
        check("a falling capacity", 0.01, &[100.0, 100.0, 90.0, 90.0, 80.0, 80.0], Some(-0.2));
        check("one slow trial", 0.01, &[100.0, 101.0, 100.0, 100.0, 80.0, 101.0], None);
        check("too few trials", 0.01, &[100.0, 100.0, 80.0, 80.0, 80.0], None);
    }

    #[test]
    fn the_interval_of_a_shared_machine_covers_the_capacities_of_its_trials() {
        let check = |[lowest, mean, highest]: [f64; 3], expect: (f64, f64, f64, bool)| {
            let line = LoadLine::on_shared_machine([95.0, 100.0, 104.0], CapacityRange { lowest, mean, highest });
            let found = (line.rps, line.lower, line.upper.expect("an upper end"), line.has_estimate);
            assert_eq!(found, expect, "{lowest} {mean} {highest}");
        };
        check([1.0, 1.0, 1.0], (100.0, 95.0, 104.0, true));
        check([0.9, 1.05, 1.25], (100.0, 85.5, 130.0, true));
        check([0.9, 0.96, 1.0], (96.0, 85.5, 104.0, true));
        // The range of the capacities of single trials never makes the load line's interval
        // narrower.
        check([1.1, 1.0, 0.9], (100.0, 95.0, 104.0, true));
        check([0.5, 0.8, 1.0], (80.0, 47.5, 104.0, true));
    }
}
