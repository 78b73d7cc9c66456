//! The results of experiments (interventions): the effect of a change on the goodput
//! ([`InterventionOutcomes::effects`]), and the causes that the effect supports or contradicts.
//!
//! The first and the last load are controls: loads without a change. An effect must exceed the
//! noise: twice the difference between the two controls, or the change that other processes can
//! explain. A load is void (no information about the server) if plimsoll was the limit, or if other
//! processes can explain a change as large as an effect.
//!
//! Not here: the predictions of causes (`interventions`).

use super::causes::Cause;
use super::interventions::undecided_causes;
use super::posterior::{CauseProbability, Posterior};
use super::predictions::Effect;
use super::signals::{LoadSignals, Signal};
use crate::format;
use plimsoll_model::intervention::{DEPENDENCY_PAUSE_NS, DEPENDENCY_PAUSE_PERIOD_NS};
use plimsoll_model::{EarlyStopReason, Intervention, LoadEnd, LoadStage, Run};
use serde::{Deserialize, Serialize};

/// One experiment (intervention) and its effect on the goodput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterventionOutcome {
    /// The experiment.
    pub intervention: Intervention,
    /// The measured figures with the change and without the change.
    pub figures: ChangeFigures,
    /// The effect of the change on the goodput; `None` if it is unknown.
    pub effect: Option<Effect>,
    /// The reason why the effect is unknown; `None` if the effect is known.
    pub void: Option<String>,
}

/// The measured figures of an experiment, without the change and with the change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeFigures {
    /// Goodput, 1/s, without the change and with it.
    Answered {
        #[allow(missing_docs, reason = "it says it itself")]
        control_rps: f64,
        #[allow(missing_docs, reason = "it says it itself")]
        changed_rps: f64,
    },
    /// Mean response time, ns, of a request alone and of `count` simultaneous requests.
    Taken {
        #[allow(missing_docs, reason = "it says it itself")]
        alone_ns: f64,
        #[allow(missing_docs, reason = "it says it itself")]
        together_ns: f64,
        #[allow(missing_docs, reason = "it says it itself")]
        count: u64,
    },
}
/// The loads of the experiments of one explanation.
#[derive(Debug, Clone, Default)]
pub struct ExperimentLoads<'a> {
    /// The controls, loads without a change: the first control, and the last control if it was
    /// made.
    pub controls: Vec<&'a Run>,
    /// The low load, which shows the response time of a request without competing requests.
    pub low: Option<&'a Run>,
    /// The load at the load line, with which the experiment with bursts is compared.
    pub line: Option<&'a Run>,
    /// The loads with a change, each with its experiment.
    pub intervention_loads: Vec<(Intervention, &'a Run)>,
    /// The loads with another value of a setting of the server, each with that value.
    pub setting_loads: Vec<(f64, &'a Run)>,
}

/// The results of all experiments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InterventionOutcomes(pub Vec<InterventionOutcome>);

/// The minimum size of an effect: the natural logarithm of the goodput with the change divided by
/// the goodput without the change. The minimum corresponds to a rise of the goodput by a third, or
/// to a fall by a quarter.
const EFFECT_LN_MIN: f64 = 0.288;
/// The maximum change of the goodput that counts as no effect, as a natural logarithm of the ratio
/// (15 %).
const NO_EFFECT_LN_MAX: f64 = 0.14;
/// An effect must exceed this multiple of the difference between the two controls (loads without a
/// change).
const NOISE_FACTOR: f64 = 2.0;
/// The first control is dropped if its goodput is below this share of the last control's goodput.
/// If the goodput of the first control is so low, the server was still busy with an earlier
/// backlog.
const FIRST_CONTROL_SHARE_MIN: f64 = 0.6;

impl InterventionOutcomes {
    /// Computes the results of the experiments from their loads.
    pub fn from_loads(loads: &ExperimentLoads) -> InterventionOutcomes {
        let goodput = |sight: &LoadSignals| sight.get(Signal::Goodput).filter(|rps| *rps > 0.0);
        let mut controls: Vec<LoadSignals> = loads.controls.iter().map(|run| LoadSignals::from_run(run)).collect();
        // While the server still works on an earlier backlog, the first control shows another state
        // of the server than the loads with a change.
        if let [first, .., last] = controls.as_slice()
            && goodput(first).unwrap_or(0.0) < FIRST_CONTROL_SHARE_MIN * goodput(last).unwrap_or(0.0)
        {
            controls.remove(0);
        }
        let rates: Vec<f64> = controls.iter().filter_map(goodput).collect();
        // At the end of the window, the saturated server still handles the requests in flight, so
        // its throughput includes these requests.
        let full = |sight: &LoadSignals| {
            let under_way = sight.get(Signal::InFlight).unwrap_or(0.0) / sight.seconds.max(1.0);
            Some(goodput(sight)? + under_way)
        };
        let saturated_rps = controls.iter().filter_map(full).fold(0.0, f64::max);
        let control_rps = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let noise = match rates.as_slice() {
            [first, .., last] => (last / first).ln().abs() * NOISE_FACTOR,
            _ => 0.0,
        };
        let alone_ns = loads.low.and_then(|run| LoadSignals::from_run(run).service_mean_ns);
        let held_back = controls.iter().find_map(|control| invalid_load_reason(control, alone_ns));
        let outcome = |(intervention, run): &(Intervention, &Run)| {
            if let Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue(why))) = &run.ending {
                return InterventionOutcome::void_outcome(*intervention, control_rps, why.clone());
            }
            let sight = LoadSignals::from_run(run);
            if *intervention == Intervention::Bursts {
                return result_of_bursts(&sight, loads.line.map(LoadSignals::from_run).as_ref());
            }
            if matches!(intervention, Intervention::BurstsAtTwiceConcurrency | Intervention::BurstsAtConcurrency) {
                let (low, line) = (loads.low.map(LoadSignals::from_run), loads.line.map(LoadSignals::from_run));
                let others = (low.as_ref(), line.as_ref());
                let sight = simultaneous_load_signals(run, low.as_ref());
                return result_of_simultaneous_requests(
                    *intervention,
                    &sight,
                    others,
                    largest_stage_requests(run),
                    saturated_rps,
                );
            }
            let changed_rps = sight.get(Signal::Goodput).unwrap_or(0.0);
            let (effect, void) = if control_rps <= 0.0 {
                (None, Some("no request succeeded in the loads without the experiment's change".to_owned()))
            } else if changed_rps <= 0.0 {
                // A load without any success, for example because the server rejects the changed
                // path or client, has no information about limits of the server.
                (None, Some("no request succeeded in the load with the experiment's change".to_owned()))
            } else {
                let (change, users) = (changed_rps / control_rps, run.plan.load.shape.curve().max());
                let all = || controls.iter().chain([&sight]);
                let noise = all().filter_map(|load| change_by_others(load, alone_ns)).fold(noise, f64::max);
                let effect = match intervention {
                    Intervention::DependencyPauses => effect_of_pauses(change, noise, users, control_rps),
                    _ => effect_of_change(change, noise)
                        .ok_or("the effect of the experiment's change on the goodput is within the noise"),
                };
                let disturbed = all().find_map(|load| disturbance_reason(load, alone_ns));
                match (effect, held_back.clone().or_else(|| invalid_load_reason(&sight, alone_ns))) {
                    // The second process tests whether plimsoll is the limit, so a limit of
                    // plimsoll does not void this experiment.
                    (Ok(effect), Some(_)) if *intervention == Intervention::SecondGenerator && disturbed.is_none() => {
                        (Some(effect), None)
                    }
                    // If the goodput rises although the change took capacity from plimsoll, the
                    // rise is real.
                    (Ok(Effect::Rises), Some(_)) if held_back.is_none() => (Some(Effect::Rises), None),
                    (_, Some(reason)) => (None, Some(reason)),
                    (Ok(effect), None) => (Some(effect), None),
                    (Err(why), None) => (None, Some(why.to_owned())),
                }
            };
            let figures = ChangeFigures::Answered { control_rps, changed_rps };
            InterventionOutcome { intervention: *intervention, figures, effect, void }
        };
        InterventionOutcomes(loads.intervention_loads.iter().map(outcome).collect())
    }

    /// Returns the experiments with a known effect, each with its effect.
    pub fn effects(&self) -> Vec<(Intervention, Effect)> {
        self.0.iter().filter_map(|made| Some((made.intervention, made.effect?))).collect()
    }
}

/// Computes the signals of a load with simultaneous requests. Requests count as simultaneous if
/// plimsoll sends them late by at most half of the service time of one request, which `low` shows.
fn simultaneous_load_signals(run: &Run, low: Option<&LoadSignals>) -> LoadSignals {
    let alone_ns = low.and_then(|low| low.service_mean_ns);
    LoadSignals::from_run_with_latency_bound(run, alone_ns.map(|ns| (LAG_BOUND_SERVICE_TIMES * ns) as u64))
}

/// Returns whether plimsoll or other processes limited a load with this change. A limited load is
/// worth repeating, because the repeated load may have a result.
pub fn is_load_worth_repeating(intervention: Intervention, run: &Run, low: Option<&Run>) -> bool {
    let low = low.map(LoadSignals::from_run);
    let alone_ns = low.as_ref().and_then(|low| low.service_mean_ns);
    match intervention {
        // The second process tests whether plimsoll is the limit, so only other processes can make
        // this experiment void.
        Intervention::SecondGenerator => disturbance_reason(&LoadSignals::from_run(run), alone_ns).is_some(),
        Intervention::BurstsAtTwiceConcurrency | Intervention::BurstsAtConcurrency => {
            invalid_load_reason(&simultaneous_load_signals(run, low.as_ref()), alone_ns).is_some()
        }
        _ => invalid_load_reason(&LoadSignals::from_run(run), alone_ns).is_some(),
    }
}

/// Returns the reason why a load has no information about the server; `None` for a valid load.
/// `alone_ns`: mean service time of a request without competing requests.
fn invalid_load_reason(signals: &LoadSignals, alone_ns: Option<f64>) -> Option<String> {
    disturbance_reason(signals, alone_ns)
        .or_else(|| signals.limited.as_ref().map(|_| "plimsoll was the limit, not the server".to_owned()))
}

/// Returns how other processes disturbed a load; `None` if they can explain no change of the
/// goodput that is as large as an effect. `alone_ns`: mean service time of a request without
/// competing requests.
pub fn disturbance_reason(signals: &LoadSignals, alone_ns: Option<f64>) -> Option<String> {
    let reason = signals.disturbed.as_ref()?;
    let is_slight = change_by_others(signals, alone_ns).is_some_and(|change| change < EFFECT_LN_MIN);
    (!is_slight).then(|| format!("other processes disturbed the load: {reason}"))
}

/// Returns the largest change of a disturbed load's goodput that other processes can explain, as a
/// natural logarithm of the ratio: the delay of a request, divided by its service time `alone_ns`.
fn change_by_others(signals: &LoadSignals, alone_ns: Option<f64>) -> Option<f64> {
    Some((delay_by_others_ns(signals)? / alone_ns?).ln_1p())
}

/// Returns the longest mean time for which the requests of a disturbed load may have waited for
/// cores that other processes or the machine's host took, ns. By Little's law, the mean time is the
/// mean number of waiting threads divided by the throughput: one thread for each core taken, and
/// the threads in the run queue. Returns `None` for an undisturbed load, or without these figures.
fn delay_by_others_ns(signals: &LoadSignals) -> Option<f64> {
    signals.disturbed.as_ref()?;
    let waiting = signals.cores_taken_by_others()? + signals.get(Signal::RunQueue)?;
    Some(waiting * 1e9 / signals.get(Signal::Goodput).filter(|rps| *rps > 0.0)?)
}

/// Returns the effect of pausing a dependency for a share of the time. If the dependency is
/// saturated, the goodput falls by the share of the time in which the dependency is paused. If
/// another resource is the limit, waiting requests keep this resource busy during the pauses. The
/// `Err` value is the reason why the effect is unknown.
fn effect_of_pauses(change: f64, noise: f64, users: f64, control_rps: f64) -> Result<Effect, &'static str> {
    let lost = DEPENDENCY_PAUSE_NS as f64 / DEPENDENCY_PAUSE_PERIOD_NS as f64;
    // `lost` is the share of the time in which the dependency is paused. The goodput counts as
    // fallen if its relative loss is at least half of `lost`. The goodput counts as unchanged if
    // its relative loss is at most a quarter of `lost`.
    let (falls_below, stays_above) = (1.0 - lost / 2.0, 1.0 - lost / 4.0);
    let bridged = users >= control_rps * DEPENDENCY_PAUSE_NS as f64 / 1e9;
    match change {
        _ if noise > -stays_above.ln() => {
            Err("the effect of the experiment's change on the goodput is within the noise")
        }
        change if change <= falls_below && bridged => Ok(Effect::Falls),
        change if change <= falls_below => {
            Err("the load has too few users: all of them wait while the experiment pauses the dependency, so a lower \
             goodput proves nothing")
        }
        change if change >= stays_above => Ok(Effect::Stays),
        _ => Err("the effect of the experiment is neither clearly present nor clearly absent"),
    }
}

fn effect_of_change(ratio: f64, noise: f64) -> Option<Effect> {
    let change = ratio.ln();
    if change.abs() >= EFFECT_LN_MIN.max(noise) {
        return Some(if change > 0.0 { Effect::Rises } else { Effect::Falls });
    }
    (change.abs() <= NO_EFFECT_LN_MAX && noise <= EFFECT_LN_MIN).then_some(Effect::Stays)
}

/// Computes the result of bursts at a rate just below the load line. The share of rejected
/// responses decides whether bursts have an effect, not the goodput.
fn result_of_bursts(signals: &LoadSignals, line: Option<&LoadSignals>) -> InterventionOutcome {
    let get = |sight: &LoadSignals, signal| sight.get(signal).unwrap_or(0.0);
    let (changed_rps, refused) = (get(signals, Signal::Goodput), get(signals, Signal::Refused));
    let control = line.map(|line| (get(line, Signal::Goodput), get(line, Signal::Refused)));
    let (control_rps, refused_before) = control.unwrap_or_default();
    let void = invalid_load_reason(signals, None)
        .or_else(|| control.is_none().then(|| "the study measured no load at the load line".to_owned()));
    let effect = match (void.is_none(), refused - refused_before) {
        (false, _) => None,
        (true, more) if more >= 0.02 => Some(Effect::Falls),
        (true, more) if more <= 0.002 => Some(Effect::Stays),
        _ => None,
    };
    let unclear = effect
        .is_none()
        .then(|| "the effect of the experiment is neither clearly present nor clearly absent".to_owned());
    let figures = ChangeFigures::Answered { control_rps, changed_rps };
    InterventionOutcome { intervention: Intervention::Bursts, figures, effect, void: void.or(unclear) }
}

/// Returns the number of requests in the largest stage of a load. In a load with simultaneous
/// requests, this stage is one group of requests.
fn largest_stage_requests(run: &Run) -> u64 {
    let of = |stage: &LoadStage| (stage.from * stage.duration_ns.unwrap_or(0) as f64 / 1e9).round() as u64;
    run.plan.load.shape.curve().stages.iter().map(of).max().unwrap_or(0)
}

/// Simultaneous requests count as not waiting if their mean wait is at most this share of the unit.
/// The unit is the mean wait in a server that handles requests one after another. In such a server,
/// a request waits for half of the other requests on average.
const NO_QUEUE_WAIT_SHARE_MAX: f64 = 0.15;
/// Maximum mean wait of simultaneous requests, in the unit of [`NO_QUEUE_WAIT_SHARE_MAX`], if the
/// server has workers for half of the requests. Then the other half of the requests waits for one
/// service time, so the mean wait is between a half and two thirds of the unit. The mean wait is
/// shorter if some requests end early.
const HALF_SERVED_WAIT_SHARE_MAX: f64 = 0.78;
/// Minimum mean wait of simultaneous requests, in the unit of [`NO_QUEUE_WAIT_SHARE_MAX`], if the
/// server handles requests one after another.
const SERIAL_WAIT_SHARE_MIN: f64 = 0.88;
/// Minimum mean wait, in the unit of [`NO_QUEUE_WAIT_SHARE_MAX`], that shows a queue at a lock. The
/// experiment for locks sends only as many simultaneous requests as the server handles at once. The
/// mean wait for a lock is below half of the unit if the work before the lock varies in length.
const LOCK_QUEUE_WAIT_SHARE_MIN: f64 = 0.27;
/// The latency bound for plimsoll's own lag, as a multiple of the service time of a single request.
/// The lag of simultaneous requests may be a tenth of this latency bound: half of a service time.
const LAG_BOUND_SERVICE_TIMES: f64 = 5.0;
/// The minimum number of responses for a useful mean of the response times.
const SIMULTANEOUS_RESPONSES_MIN: f64 = 30.0;

/// Computes the result of `count` simultaneous requests. `low`, `line`: signals at the low load and
/// at the load line. `full_rps`: throughput of the saturated server, 1/s.
fn result_of_simultaneous_requests(
    intervention: Intervention,
    signals: &LoadSignals,
    (low, line): (Option<&LoadSignals>, Option<&LoadSignals>),
    count: u64,
    saturated_rps: f64,
) -> InterventionOutcome {
    // The last part of a response may wait for a delayed TCP acknowledgement, more often on old
    // connections than on new connections. If responses wait for acknowledgements, only the times
    // to the first byte are comparable.
    let is_held_back = [Some(signals), low].into_iter().flatten().any(|sight| sight.held_back_ns.is_some());
    let mean_ns = |sight: &LoadSignals| if is_held_back { sight.first_byte_mean_ns } else { sight.service_mean_ns };
    // Requests of the low load may have to wake sleeping threads, so the load at the load line
    // counts if its requests are faster. A request alone is never slower than a request among other
    // requests.
    let at_line = line.filter(|_| !is_held_back).and_then(mean_ns).unwrap_or(f64::INFINITY);
    let alone_ns = low.and_then(mean_ns).map(|ns| ns.min(at_line));
    let together_ns = mean_ns(signals);
    let figures =
        ChangeFigures::Taken { alone_ns: alone_ns.unwrap_or(0.0), together_ns: together_ns.unwrap_or(0.0), count };
    // If one thread takes part in all requests, simultaneous requests always wait for this thread.
    // This wait is no sign of another queue, so the wait is subtracted.
    let thread_ns = line.and_then(|line| {
        let work = line.get(Signal::FullestThread)? / line.get(Signal::Goodput).filter(|rps| *rps > 0.0)?;
        Some(work * 1e9)
    });
    let answers = signals.get(Signal::Goodput).unwrap_or(0.0) * signals.seconds;
    // Other processes can only lengthen the wait, so a short wait is short despite other processes.
    let delayed_ns = delay_by_others_ns(signals).unwrap_or(0.0);
    let effect = match (alone_ns, together_ns, invalid_load_reason(signals, alone_ns)) {
        (_, _, Some(reason)) => Err(reason),
        (Some(alone_ns), Some(together_ns), None) if count > 1 && saturated_rps > 0.0 => {
            let before = (count - 1) as f64 / 2.0;
            let waited_ns = together_ns - alone_ns - before * thread_ns.unwrap_or(0.0);
            let unit_ns = before / saturated_rps * 1e9;
            let (share, share_min) = (waited_ns / unit_ns, (waited_ns - delayed_ns) / unit_ns);
            let is_abreast = intervention == Intervention::BurstsAtConcurrency;
            match share {
                _ if answers < SIMULTANEOUS_RESPONSES_MIN => {
                    Err("too few requests of the experiment completed".to_owned())
                }
                _ if signals.get(Signal::Failed).unwrap_or(0.0) > 0.01 => Err("some requests failed".to_owned()),
                share if share <= NO_QUEUE_WAIT_SHARE_MAX => Ok(Effect::Rises),
                _ if is_abreast && share_min >= LOCK_QUEUE_WAIT_SHARE_MIN => Ok(Effect::Falls),
                share if !is_abreast && share <= HALF_SERVED_WAIT_SHARE_MAX && share_min > NO_QUEUE_WAIT_SHARE_MAX => {
                    Ok(Effect::Stays)
                }
                _ if !is_abreast && share_min >= SERIAL_WAIT_SHARE_MIN => Ok(Effect::Falls),
                _ => Err("the effect of the experiment is neither clearly present nor clearly absent".to_owned()),
            }
        }
        _ => Err("the study lacks a load to compare the experiment with".to_owned()),
    };
    let (effect, void) = match effect {
        Ok(effect) => (Some(effect), None),
        Err(why) => (None, Some(why)),
    };
    InterventionOutcome { intervention, figures, effect, void }
}

impl InterventionOutcome {
    /// Creates the outcome of a void load: its effect is unknown for the reason `why`.
    fn void_outcome(intervention: Intervention, control_rps: f64, why: String) -> InterventionOutcome {
        let figures = ChangeFigures::Answered { control_rps, changed_rps: 0.0 };
        InterventionOutcome { intervention, figures, effect: None, void: Some(why) }
    }

    /// Formats the measured effect in words.
    pub fn measured_text(&self) -> String {
        let rates = match self.figures {
            ChangeFigures::Answered { control_rps, changed_rps } => {
                format!(
                    "goodput {control_rate}/s without the change, {changed_rate}/s with the change",
                    control_rate = format::rate(control_rps),
                    changed_rate = format::rate(changed_rps)
                )
            }
            ChangeFigures::Taken { alone_ns, together_ns, count } => {
                let (alone_time, each_time) = (format::duration(alone_ns), format::duration(together_ns));
                format!(
                    "on average, a request alone takes {alone_time}, and each of {count} simultaneous requests takes \
                     {each_time}"
                )
            }
        };
        match (self.effect, &self.void) {
            (Some(effect), _) => {
                let word = match (effect, self.intervention) {
                    (Effect::Falls, Intervention::Bursts) => "the bursts make the server reject some requests",
                    (Effect::Stays, Intervention::Bursts) => {
                        "the bursts do not make the server reject further requests"
                    }
                    (effect, intervention) => effect.text_for_intervention(intervention),
                };
                format!("{word}: {rates}")
            }
            (None, Some(void)) => format!("void ({void}): {rates}"),
            (None, None) => format!("void: {rates}"),
        }
    }

    /// Returns the remaining causes that become more probable by this result, compared with the
    /// other remaining causes. `posterior`: the probabilities before the experiment.
    pub fn more_probable_causes(&self, posterior: &Posterior) -> Vec<Cause> {
        self.causes_by_likelihood_ratio(posterior, |ratio| ratio >= EVIDENCE_RATIO_MIN)
    }

    /// Returns the remaining causes that become less probable by this result. `posterior`: the
    /// probabilities before the experiment.
    pub fn less_probable_causes(&self, posterior: &Posterior) -> Vec<Cause> {
        self.causes_by_likelihood_ratio(posterior, |ratio| ratio <= 1.0 / EVIDENCE_RATIO_MIN)
    }

    fn causes_by_likelihood_ratio(&self, posterior: &Posterior, is_so: impl Fn(f64) -> bool) -> Vec<Cause> {
        let Some(effect) = self.effect else { return Vec::new() };
        let standing = undecided_causes(posterior);
        let given =
            |it: &CauseProbability| it.candidate.card.predicts.for_intervention(self.intervention).probability(effect);
        // If a single cause remains, it is compared with the unknown cause.
        let weights = standing.iter().map(|it| it.probability).sum::<f64>() + posterior.unknown;
        let known: f64 = standing.iter().map(|it| it.probability * given(it)).sum();
        let average = (known + posterior.unknown / Effect::ALL.len() as f64) / weights;
        let average = if standing.len() == 1 { 1.0 / Effect::ALL.len() as f64 } else { average };
        standing.iter().filter(|it| is_so(given(it) / average)).map(|it| it.cause).collect()
    }
}

/// An effect supports a cause if its probability under the cause is at least this multiple of the
/// average over all remaining causes. An effect contradicts a cause if the probability is at most
/// the average divided by this value.
const EVIDENCE_RATIO_MIN: f64 = 1.25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pausing_a_dependency_reduces_throughput_in_proportion() {
        // Each row: change, noise, users, throughput without the change in 1/s, and the expected
        // effect.
        for (change, noise, users, rps, expect) in [
            (0.67, 0.0, 64.0, 200.0, Ok(Effect::Falls)),
            (0.80, 0.02, 64.0, 200.0, Ok(Effect::Falls)),
            (0.97, 0.0, 64.0, 200.0, Ok(Effect::Stays)),
            (1.10, 0.0, 64.0, 200.0, Ok(Effect::Stays)),
            (0.87, 0.0, 64.0, 200.0, Err("neither clearly present")),
            (0.67, 0.2, 64.0, 200.0, Err("noise")),
            // At 10 000 requests/s, each of 64 users sends a request within 6 ms. During a longer
            // pause of the dependency, all users wait.
            (0.67, 0.0, 64.0, 10_000.0, Err("too few users")),
            (0.99, 0.0, 64.0, 10_000.0, Ok(Effect::Stays)),
        ] {
            match (effect_of_pauses(change, noise, users, rps), expect) {
                (Ok(got), Ok(expect)) => assert_eq!(got, expect, "{change}"),
                (Err(got), Err(expect)) => assert!(got.contains(expect), "{change}: {got}"),
                (got, expect) => panic!("{change}: {got:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn only_a_disturbance_as_large_as_an_effect_voids_a_load() {
        let check = |taken: f64, run_queue: Option<f64>, alone_ns: Option<f64>, is_void: bool| {
            let mut signals = LoadSignals { disturbed: Some("another program".to_owned()), ..LoadSignals::default() };
            signals.values = [(Signal::Cores, 2.0), (Signal::Others, taken), (Signal::Goodput, 200.0)].into();
            signals.values.extend(run_queue.map(|waiting| (Signal::RunQueue, waiting)));
            let reason = invalid_load_reason(&signals, alone_ns);
            assert_eq!(reason.is_some(), is_void, "{taken} cores, {run_queue:?} waiting, {alone_ns:?}");
            signals.disturbed = None;
            assert_eq!(invalid_load_reason(&signals, alone_ns), None);
        };
        // With a service time of 20 ms, four requests are in service.
        check(0.2, Some(0.1), Some(20e6), false);
        check(0.2, Some(3.0), Some(20e6), true);
        check(1.5, Some(0.1), Some(20e6), true);
        check(0.2, Some(0.1), Some(1e6), true);
        check(0.2, None, Some(20e6), true);
        check(0.2, Some(0.1), None, true);
    }

    #[test]
    fn a_disturbed_wait_counts_only_beyond_the_disturbance() {
        let check = |together_ms: f64, taken: f64, expect: Option<Effect>| {
            let sight = |mean_ms: f64, rps: f64| LoadSignals {
                values: [(Signal::Goodput, rps), (Signal::Cores, 2.0), (Signal::RunQueue, 0.0)].into(),
                service_mean_ns: Some(mean_ms * 1e6),
                seconds: 2.0,
                ..LoadSignals::default()
            };
            let (low, line, mut load) = (sight(20.0, 30.0), sight(20.0, 190.0), sight(together_ms, 60.0));
            load.values.insert(Signal::Others, taken);
            load.disturbed = (taken > 0.0).then(|| "another program".to_owned());
            let wanted = Intervention::BurstsAtTwiceConcurrency;
            let made = result_of_simultaneous_requests(wanted, &load, (Some(&low), Some(&line)), 8, 200.0);
            assert_eq!(made.effect, expect, "{together_ms} ms, {taken} cores: {made:?}");
        };
        // Four workers: eight simultaneous requests wait for 10 ms on average.
        check(30.0, 0.0, Some(Effect::Stays));
        check(30.0, 0.2, Some(Effect::Stays));
        check(24.0, 0.2, None);
        check(20.5, 0.2, Some(Effect::Rises));
        check(36.0, 0.0, Some(Effect::Falls));
        check(36.0, 0.2, None);
        check(30.0, 1.0, None);
    }

    /// Checks that the experiment with a second process is void if the second process died.
    #[test]
    fn an_incomplete_intervention_has_no_result() {
        let mut run = Run::new(plimsoll_model::Plan::for_get_request(
            "h",
            80,
            vec![],
            plimsoll_model::LoadShape::Closed { users: plimsoll_model::LoadCurve::constant(8.0) },
        ));
        run.ending = Some(LoadEnd::Stopped(EarlyStopReason::CannotContinue("the second process is gone".into())));
        let loads = ExperimentLoads {
            intervention_loads: vec![(Intervention::SecondGenerator, &run)],
            ..ExperimentLoads::default()
        };
        let made = InterventionOutcomes::from_loads(&loads);
        assert_eq!((made.0[0].effect, made.0[0].void.as_deref()), (None, Some("the second process is gone")));
        assert!(made.0[0].measured_text().contains("the second process is gone"), "{}", made.0[0].measured_text());
        assert_eq!(made.effects(), []);
    }

    #[test]
    fn simultaneous_requests_show_the_kind_of_queue() {
        let sight = |mean_ms: f64, rps: f64| LoadSignals {
            values: [(Signal::Goodput, rps), (Signal::Failed, 0.0)].into(),
            service_mean_ns: Some(mean_ms * 1e6),
            seconds: 2.0,
            ..LoadSignals::default()
        };
        // Each row: ms of a single request, ms of simultaneous requests, their number, the
        // throughput of a saturated server in 1/s, and the expected effect.
        for (alone, together, count, full_rps, expect) in [
            // Six workers take 15 ms per request: six of twelve simultaneous requests wait for 15
            // ms, or less if some requests end early.
            (15.0, 22.5, 12, 400.0, Some(Effect::Stays)),
            (15.0, 19.0, 12, 400.0, Some(Effect::Stays)),
            // Each request holds a lock for 2.5 ms of its 15 ms. Each of twelve requests waits on
            // average for 5.5 other requests, 13.75 ms.
            (15.0, 28.7, 12, 400.0, Some(Effect::Falls)),
            (15.0, 26.4, 12, 400.0, None),
            // A token bucket admits 400 requests a second, and up to twenty requests at once.
            (15.0, 15.4, 12, 400.0, Some(Effect::Rises)),
            // Two workers take 10 ms per request, and each request holds a lock for half of the 10
            // ms.
            (10.0, 15.0, 4, 200.0, Some(Effect::Stays)),
            (10.0, 17.5, 4, 200.0, Some(Effect::Falls)),
            (10.0, 10.0, 1, 100.0, None),
        ] {
            let low = sight(alone, 60.0);
            let made = result_of_simultaneous_requests(
                Intervention::BurstsAtTwiceConcurrency,
                &sight(together, 300.0),
                (Some(&low), None),
                count,
                full_rps,
            );
            assert_eq!(made.effect, expect, "{alone} {together} {count}");
            assert!(made.measured_text().contains("alone"), "{}", made.measured_text());
        }
        for (alone, together, count, thread_ns, expect) in [
            // Six workers take 15 ms per request, so six simultaneous requests do not wait.
            (15.0, 15.3, 6, 0.0, Some(Effect::Rises)),
            // Each request holds a lock for 2.5 ms of its 15 ms; requests reach the lock one after
            // another, or all at once.
            (15.0, 17.5, 6, 0.0, Some(Effect::Falls)),
            (15.0, 21.2, 6, 0.0, Some(Effect::Falls)),
            (15.0, 16.3, 6, 0.0, None),
            // Six workers get their requests from one thread that works half a millisecond for each
            // request.
            (15.0, 16.3, 6, 5e5, Some(Effect::Rises)),
        ] {
            let (low, mut line) = (sight(alone, 60.0), sight(20.0, 400.0));
            line.values.insert(Signal::FullestThread, thread_ns * 400.0 / 1e9);
            let others = (Some(&low), Some(&line));
            let made = result_of_simultaneous_requests(
                Intervention::BurstsAtConcurrency,
                &sight(together, 300.0),
                others,
                count,
                400.0,
            );
            assert_eq!(made.effect, expect, "{alone} {together} {count} {thread_ns}");
        }
        // Six workers take 25 ms per request, and each response on an old connection takes 40 ms
        // longer.
        let first = |whole_ms: f64, first_ms: f64| LoadSignals {
            first_byte_mean_ns: Some(first_ms * 1e6),
            ..sight(whole_ms, 200.0)
        };
        let low = LoadSignals { held_back_ns: Some(40e6), ..first(54.6, 26.0) };
        let told = result_of_simultaneous_requests(
            Intervention::BurstsAtTwiceConcurrency,
            &first(38.6, 38.4),
            (Some(&low), None),
            12,
            230.0,
        );
        assert_eq!(told.effect, Some(Effect::Stays), "{}", told.measured_text());
        let few = |rps: f64, low: Option<&LoadSignals>| {
            result_of_simultaneous_requests(
                Intervention::BurstsAtTwiceConcurrency,
                &sight(15.0, rps),
                (low, None),
                6,
                400.0,
            )
            .effect
        };
        assert_eq!(few(10.0, Some(&sight(15.0, 60.0))), None, "too few");
        assert_eq!(few(300.0, None), None, "no load to compare it with");
    }

    #[test]
    fn effects_must_exceed_noise() {
        for (ratio, noise, expect) in [
            (2.0, 0.0, Some(Effect::Rises)),
            (0.5, 0.0, Some(Effect::Falls)),
            (1.05, 0.05, Some(Effect::Stays)),
            (1.2, 0.0, None),
            (1.5, 0.6, None),
            (1.0, 0.6, None),
            (2.0, 0.6, Some(Effect::Rises)),
        ] {
            assert_eq!(effect_of_change(ratio, noise), expect, "{ratio} {noise}");
        }
    }
}
