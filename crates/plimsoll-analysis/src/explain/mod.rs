//! What holds a load line ([`explain`]): signals of steady loads at a low rate, at the line and past it, held against a table of
//! rules; the cause by name, what speaks for it, what was ruled out, and what would move the line. Where the evidence does not
//! decide, the answer is that it is not known, with what would tell.
//!
//! Not here: which loads are made (`study::explain`), and how the answer looks.

pub mod cause;
pub mod collectors;
pub mod contrast;
pub mod demands;
pub mod functions;
pub mod interventions;
pub mod made_changes;
pub mod rules;
pub mod signals;
pub mod spinning;
pub mod vary;
pub mod weigh;

mod answer;
mod laws;
#[cfg(test)]
mod tests;

pub use answer::value as shown_value;
pub use cause::Cause;
pub use contrast::{Contrast, Loads, killed_in, level_of};
pub use demands::{ServiceDemand, UsedResource};
pub use functions::{FunctionCosts, FunctionsSeen};
pub use interventions::Together;
pub use made_changes::{ExperimentLoads, MadeChanges};
pub use signals::{LoadSignals, Signal};
pub use vary::{VariedSetting, VariedStep};

use crate::doubts::{DoubtKind, Doubted, Doubts};
use crate::find::{Findings, LoadLine};
use crate::others::Others;
use crate::sentence::{Remedy, Sentence};
use plimsoll_model::Intervention;
use rules::{RuleStage, Sign};
use std::collections::BTreeMap;
use weigh::{Candidate, Weighed, weigh};

/// A cause with what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Which.
    pub cause: Cause,
    /// How much speaks for it.
    pub weight: f64,
    /// What it is in this case, such as `4 connections to 127.0.0.1:6379`.
    pub subject: String,
}

/// A signal over the loads.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownSignal {
    /// Which.
    pub signal: Signal,
    /// At the low load.
    pub low: Option<f64>,
    /// At the line.
    pub line: Option<f64>,
    /// Past it.
    pub past: Option<f64>,
    /// For which cause it speaks.
    pub supports: Cause,
}

/// What is to be expected without the cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// The rate at which the next resource ends, 1/s.
    pub line_rps: f64,
    /// Which that is.
    pub next_cause: Cause,
    /// With twice as much of what holds the line now, where that can be had: not more than the above, 1/s.
    pub doubled_rps: Option<f64>,
}

/// A change that was made to tell causes apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervened {
    /// What was changed.
    pub intervention: Intervention,
    /// What the causes that stood predicted of what is answered.
    pub predictions: Vec<(Cause, String)>,
    /// What became of it.
    pub measured: String,
    /// The causes for which it speaks, the strongest first.
    pub supports: Vec<Cause>,
    /// The causes against which it speaks.
    pub denies: Vec<Cause>,
}

/// What holds a load line.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The answer; `Unknown` where it is not known.
    pub cause: Cause,
    /// What speaks for what, the strongest first.
    pub causes: Vec<Named>,
    /// Whether nothing is named although something may hold the line.
    pub abstained: bool,
    /// The answer in one sentence, without a full stop.
    pub sentence: Sentence,
    /// How it shows, as a clause, where the named cause is a limit of the server's.
    pub how: Option<String>,
    /// What speaks for it.
    pub evidence: Vec<ShownSignal>,
    /// What was ruled out, and why.
    pub ruled_out: Vec<(Cause, String)>,
    /// The changes that were made, and what they say.
    pub interventions: Vec<Intervened>,
    /// What a setting of the server's matters, where it was changed.
    pub varied: Option<VariedSetting>,
    /// What would tell, where it is not known: sentences without a full stop.
    pub to_tell: Vec<Sentence>,
    /// What would move the line.
    pub predicted: Option<Predicted>,
    /// What a request demands of each resource, the lowest ceiling first.
    pub demands: Vec<ServiceDemand>,
    /// What the server's functions cost a request, as far as the kernel showed it.
    pub functions: Option<FunctionsSeen>,
    /// The line.
    pub load_line_rps: LoadLine,
}

/// What stands of the causes before anything is changed.
pub fn standing(findings: &Findings, loads: &Loads) -> Weighed {
    weigh(&Contrast::of(findings, loads), &BTreeMap::new())
}

/// Explains what a search found by these loads and experiments, with what speaks against that beyond the search's own doubts.
pub fn explain(findings: &Findings, loads: &Loads, made: &ExperimentLoads) -> Doubted<Explanation> {
    let case = Contrast::of(findings, loads);
    let before = weigh(&case, &BTreeMap::new());
    let experiments = MadeChanges::of(made);
    let weighed = weigh(&case, &experiments.weights(&before));
    let explanation = told(findings, &case, &weighed);
    let (varied, functions) = (VariedSetting::of(&made.varied), FunctionsSeen::of(&case, loads));
    let mut doubts = doubts(findings, loads, &case);
    if let Some(why) = FunctionsSeen::uncaught(loads).filter(|_| functions.is_none()) {
        doubts.add(DoubtKind::Unmeasured, why);
    }
    let held = explanation.abstained && varied.as_ref().and_then(VariedSetting::holds) == Some(true);
    let sentence = match held {
        true => explanation.sentence.words("; but it is what the varied setting sets: what is answered follows it"),
        false => explanation.sentence,
    };
    let explanation = Explanation { sentence, varied, functions, ..explanation };
    Doubted::new(doubts, with_experiments(explanation, &before, &weighed, &experiments))
}

/// The same with what was changed, and what that rules out.
fn with_experiments(
    explanation: Explanation,
    before: &Weighed,
    weighed: &Weighed,
    experiments: &MadeChanges,
) -> Explanation {
    let stands = |cause: Cause| weighed.candidates.iter().any(|candidate| candidate.cause == cause);
    let denied = before.candidates.iter().filter(|candidate| !stands(candidate.cause)).filter_map(|candidate| {
        let cause = candidate.cause;
        let by = experiments.0.iter().find(|experiment| experiment.denies(before).contains(&cause))?;
        let predicted = interventions::prediction(by.intervention, cause).text(by.intervention);
        Some((
            cause,
            format!(
                "with {} it predicts that what is answered {predicted}; measured: {}",
                by.intervention.text(),
                by.measured()
            ),
        ))
    });
    let ruled_out = explanation.ruled_out.into_iter().chain(denied).collect();
    let intervened = |experiment: &made_changes::MadeChange| Intervened {
        intervention: experiment.intervention,
        predictions: interventions::predictions(before, experiment.intervention),
        measured: experiment.measured(),
        supports: experiment.supports(before),
        denies: experiment.denies(before),
    };
    Explanation { ruled_out, interventions: experiments.0.iter().map(intervened).collect(), ..explanation }
}

/// Whether a cause may be told of a server that does not come back, or of which requests fail at any load.
fn may_be_told(case: &Contrast, first: &Candidate) -> bool {
    // What it has used up says why it does not come back; nothing else that is seen afterwards is of a server that works.
    let is_used_up = matches!(first.cause, Cause::Memory | Cause::Files | Cause::Ports);
    // What ends with errors of its own names its cause, and what is late by itself may be given up; else no limit is told of what
    // fails at any load.
    let by_itself = first.rule.stage <= RuleStage::Errors || first.cause == Cause::Delay;
    (is_used_up || case.broken_since().is_none()) && (by_itself || case.fails_anyhow().is_none())
}

fn told(findings: &Findings, case: &Contrast, weighed: &Weighed) -> Explanation {
    let first = weighed.candidates.first().filter(|first| weighed.named && may_be_told(case, first));
    let shown: Vec<&Candidate> = match first {
        // Others are told that are established as well.
        Some(first) => std::iter::once(first)
            .chain(weighed.candidates.iter().skip(1).filter(|other| other.is_established()))
            .take(2)
            .collect(),
        None => weighed.candidates.iter().take(3).collect(),
    };
    let cause = first.map_or(Cause::Unknown, |first| first.cause);
    let named = |candidate: &&Candidate| Named {
        cause: candidate.cause,
        weight: candidate.weight,
        subject: answer::told(case, candidate.cause).subject,
    };
    Explanation {
        cause,
        causes: weighed.candidates.iter().map(|candidate| named(&candidate)).collect(),
        abstained: first.is_none(),
        sentence: match first {
            Some(first) => answer::sentence(case, first.cause),
            None => answer::not_known(case, &shown).into(),
        },
        how: first.and_then(|first| answer::told(case, first.cause).how),
        evidence: evidence(case, &shown),
        // Without a load to look at, what was not seen is not ruled out.
        ruled_out: weighed
            .ruled_out
            .iter()
            .filter(|_| case.is_seen())
            .map(|(cause, why, sign)| (*cause, ruled_out(case, why, sign)))
            .collect(),
        interventions: Vec::new(),
        varied: None,
        to_tell: if first.is_some() { Vec::new() } else { to_tell(case, weighed) },
        predicted: first.and_then(|first| predicted(case, first.cause)),
        demands: case.demands.clone(),
        functions: None,
        load_line_rps: findings.load_line_rps,
    }
}

/// Signals of the signs that hold, each once.
fn evidence(case: &Contrast, shown: &[&Candidate]) -> Vec<ShownSignal> {
    let mut told: Vec<ShownSignal> = Vec::new();
    for candidate in shown {
        for signal in candidate.signs.iter().flat_map(|sign| sign.signals) {
            let [low, line, past] = case.over_loads(*signal);
            let known = low.is_some() || line.is_some() || past.is_some();
            if known && told.iter().all(|other| other.signal != *signal) {
                told.push(ShownSignal { signal: *signal, low, line, past, supports: candidate.cause });
            }
        }
    }
    told
}

/// Why something was ruled out, with the figure behind it.
fn ruled_out(case: &Contrast, why: &str, sign: &Sign) -> String {
    let known = sign.signals.iter().find(|signal| case.top(**signal).is_some());
    let Some(signal) = known else { return why.to_owned() };
    let value = |value: Option<f64>| value.map(|value| answer::value(*signal, value));
    let words = signal.text().words;
    let [low, line, past] = case.over_loads(*signal);
    let top = line.into_iter().chain(past).reduce(f64::max);
    match (value(low), value(top)) {
        (Some(low), Some(top)) => format!("{why} ({words}: {low} at a low load, {top} at the line or past it)"),
        (None, Some(top)) => format!("{why} ({words}: {top})"),
        (_, None) => why.to_owned(),
    }
}

/// What would tell.
fn to_tell(case: &Contrast, weighed: &Weighed) -> Vec<Sentence> {
    let mut told: Vec<Sentence> = Vec::new();
    for candidate in &weighed.candidates {
        if !candidate.unseen.is_empty() && !candidate.rule.to_tell.is_empty() {
            let text = Sentence::from(format!("{}: ", candidate.cause)).then(&candidate.rule.to_tell.into());
            if !told.contains(&text) {
                told.push(text);
            }
        }
    }
    if case.broken_since().is_some() {
        told = vec![Sentence::from(
            "the server, started again and asked no more than it bears: plimsoll overload shows how it fails and whether it comes back",
        )];
    } else if case.fails_anyhow().is_some() {
        told = vec![Sentence::from("what fails, and how: plimsoll run at a low rate shows it")];
    } else if case.best_rps <= 0.0 {
        told =
            vec![Sentence::from("a request that the server answers with success: plimsoll run shows what it answers")];
    } else if !case.is_seen() {
        let more = Sentence::from("loads at a low rate, at the line and past it: give it more time (");
        told = vec![more.remedy(Remedy::Budget).words(")")];
    } else if case.line.get(Signal::ServerCores).is_none() {
        told.insert(0, format!("the server's own figures were not seen: {}", answer::why_unseen(case)).into());
    }
    told
}

/// Resources that a cause stands for: they do not end what comes after it.
fn is_resource_of(cause: Cause, resource: UsedResource) -> bool {
    match resource {
        UsedResource::Thread => matches!(cause, Cause::OneThread | Cause::Gc | Cause::WarmUp),
        UsedResource::Cores => matches!(cause, Cause::Cpu | Cause::Gc | Cause::Neighbour | Cause::WarmUp),
        UsedResource::Allowed => matches!(cause, Cause::Cpu | Cause::Gc | Cause::WarmUp),
        UsedResource::Quota => cause == Cause::CpuQuota,
        UsedResource::Downstream => cause == Cause::Downstream,
        UsedResource::Client => cause == Cause::Client,
    }
}

fn cause_of(resource: UsedResource) -> Cause {
    match resource {
        UsedResource::Thread => Cause::OneThread,
        UsedResource::Cores | UsedResource::Allowed => Cause::Cpu,
        UsedResource::Quota => Cause::CpuQuota,
        UsedResource::Downstream => Cause::Downstream,
        UsedResource::Client => Cause::Client,
    }
}

fn predicted(case: &Contrast, cause: Cause) -> Option<Predicted> {
    if cause == Cause::Gc {
        return without_collecting(case);
    }
    // What is not a limit has nothing after it; what a request takes is another's then, where code or its runtime changes.
    if matches!(cause, Cause::None | Cause::Unknown | Cause::Delay | Cause::Client | Cause::WarmUp) {
        return None;
    }
    let next = case.demands.iter().find(|demand| !is_resource_of(cause, demand.resource))?;
    let line_rps = next.ceiling_rps;
    // A ceiling below what was seen is none.
    if line_rps < case.sustained_rps {
        return None;
    }
    let countable = matches!(
        cause,
        Cause::OneThread | Cause::CpuQuota | Cause::Pool | Cause::Workers | Cause::Limiter | Cause::Cpu
    );
    // A few users may be answered more often than many are: it is the line that moves.
    let most_rps = case.sustained_rps;
    let held_rps = if case.lower_rps > 0.0 { most_rps.min(1.1 * case.lower_rps) } else { most_rps };
    // Told as the line is.
    let offered = |requests_rps: f64| requests_rps / case.requests_each;
    Some(Predicted {
        line_rps: offered(line_rps),
        next_cause: cause_of(next.resource),
        doubled_rps: countable.then_some(offered((2.0 * held_rps).min(line_rps))),
    })
}

/// Where the collector fills cores with the work: without it they would be left for requests.
fn without_collecting(case: &Contrast) -> Option<Predicted> {
    let full = case.cores_full()? || case.allowed_full() == Some(true);
    let share = laws::collected(case).filter(|share| full && (0.0..0.95).contains(share))?;
    let line_rps = case.sustained_rps / (1.0 - share) / case.requests_each;
    Some(Predicted { line_rps, next_cause: Cause::Cpu, doubled_rps: None })
}

/// What speaks against it beyond the search: what the loads after it met, and what there was none of.
fn doubts(findings: &Findings, loads: &Loads, case: &Contrast) -> Doubts {
    let mut doubts = Doubts::default();
    let of = [("the low load", loads.low), ("half the line", loads.half), ("the line", loads.line)];
    for (what, run) in of.into_iter().chain([("past the line", loads.past)]) {
        let others = run.map(Others::of).filter(|others| others.disturbed);
        if let Some(reason) = others.and_then(|others| others.reason) {
            doubts.add(DoubtKind::Others, format!("{what} was disturbed: {reason}"));
        }
    }
    let missing: Vec<&str> =
        [("low load", loads.low), ("load at the line", loads.line), ("load past the line", loads.past)]
            .into_iter()
            .filter(|(_, run)| run.is_none())
            .map(|(what, _)| what)
            .collect();
    if !missing.is_empty() {
        let text = format!("there was no {}: what changes between them is not known", missing.join(", no "));
        doubts.add(DoubtKind::Unmeasured, text);
    }
    if findings.load_line_rps.rps <= 0.0 {
        doubts.add(DoubtKind::Nothing, "there is no line: loads are shares of the most that was answered");
    }
    if let (Some(client), Some(server)) = (case.top(Signal::ClientCores), case.top(Signal::ServerCores))
        && case.cores_full() == Some(true)
        && client > 0.3 * server
    {
        let text = format!(
            "plimsoll itself needs {client:.2} cores of the machine that it shares with the server: on one of its own the server would have them"
        );
        doubts.add(DoubtKind::Generator, text);
    }
    if let Some(ns) = case.held_back_ns {
        let text = format!(
            "The rest of an answer comes up to {} after its first byte: the server writes them apart, and its kernel holds the second small piece back until the first is acknowledged (TCP_NODELAY at the server ends that).",
            crate::format::duration(ns)
        );
        doubts.add(DoubtKind::Server, text);
    }
    doubts
}
