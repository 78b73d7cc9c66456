//! How signs are weighed ([`weigh`]): what is ruled out and why, what is established, and whether that is enough to name a
//! cause. A wrong name is worse than none.
//!
//! Not here: the signs (`rules`), and sentences.

use super::cause::Cause;
use super::contrast::Contrast;
use super::rules::{Rule, RuleStage, Sign, SignKind, rules};
use std::collections::BTreeMap;

/// A cause is established from this weight on.
pub const ESTABLISHED: f64 = 4.0;
/// It is named if it is so much ahead of the next.
pub const MARGIN: f64 = 2.0;
/// Changes add so many times what signs say at the most.
const TIMES_ADDED: f64 = 2.0;
/// Weights of what has not been ruled out, but not been shown either, are not told from this on downwards.
const POSSIBLE: f64 = 1.0;

/// A cause for which something speaks.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which.
    pub cause: Cause,
    /// The sum of what speaks for it.
    pub weight: f64,
    /// The row by which.
    pub rule: &'static Rule,
    /// The signs that hold.
    pub signs: Vec<&'static Sign>,
    /// Signs that it needs and that were not seen.
    pub unseen: Vec<&'static Sign>,
}

/// What was weighed.
#[derive(Debug, Clone)]
pub struct Weighed {
    /// What speaks for what, the strongest first; the named one is the first.
    pub candidates: Vec<Candidate>,
    /// Whether the first is named; else it is not known.
    pub named: bool,
    /// What is ruled out, and the sign by which.
    pub ruled_out: Vec<(Cause, &'static str, &'static Sign)>,
}

#[cfg(test)]
impl Weighed {
    /// These stand with these weights, and none is named.
    pub(super) fn standing(causes: &[(Cause, f64)]) -> Weighed {
        let candidate = |(cause, weight): &(Cause, f64)| {
            let rule = rules().find(|rule| rule.cause == *cause).expect("a row");
            Candidate { cause: *cause, weight: *weight, rule, signs: Vec::new(), unseen: Vec::new() }
        };
        Weighed { candidates: causes.iter().map(candidate).collect(), named: false, ruled_out: Vec::new() }
    }
}

/// One row, held against a case.
enum RuleReading {
    Out(&'static str, &'static Sign),
    Stands(Candidate),
}

fn read(rule: &'static Rule, case: &Contrast) -> RuleReading {
    let mut candidate = Candidate { cause: rule.cause, weight: 0.0, rule, signs: Vec::new(), unseen: Vec::new() };
    for sign in rule.signs {
        match (sign.kind, (sign.holds)(case)) {
            (SignKind::Must, Some(false)) => return RuleReading::Out(sign.no, sign),
            (SignKind::MustNot, Some(true)) => return RuleReading::Out(sign.yes, sign),
            (SignKind::Must | SignKind::Speaks, Some(true)) => {
                candidate.weight += sign.weight;
                candidate.signs.push(sign);
            }
            (SignKind::Must, None) => candidate.unseen.push(sign),
            (SignKind::MustNot, _) | (SignKind::Speaks, Some(false) | None) => {}
        }
    }
    RuleReading::Stands(candidate)
}

impl Candidate {
    /// Whether all that it needs was seen, and enough speaks for it.
    pub fn is_established(&self) -> bool {
        self.unseen.is_empty() && self.weight >= ESTABLISHED
    }
}

/// Holds all rows against a case. `added`: what experiments add to causes.
pub fn weigh(case: &Contrast, added: &BTreeMap<Cause, f64>) -> Weighed {
    let mut ruled_out: Vec<(Cause, &'static str, &'static Sign)> = Vec::new();
    let mut standing: Vec<Candidate> = Vec::new();
    for rule in rules() {
        match read(rule, case) {
            RuleReading::Out(why, sign) => ruled_out.push((rule.cause, why, sign)),
            RuleReading::Stands(mut candidate) => {
                // What is changed strengthens what is seen; it makes no cause of what hardly anything speaks for.
                candidate.weight += added.get(&rule.cause).copied().unwrap_or(0.0).min(TIMES_ADDED * candidate.weight);
                // A cause with two rows stands by the better one.
                match standing.iter_mut().find(|other| other.cause == candidate.cause) {
                    Some(other)
                        if other.is_established() >= candidate.is_established() && other.weight >= candidate.weight => {
                    }
                    Some(other) => *other = candidate,
                    None => standing.push(candidate),
                }
            }
        }
    }
    // What stands by one row is not ruled out by another; each cause is told once.
    ruled_out.retain(|(cause, ..)| standing.iter().all(|candidate| candidate.cause != *cause));
    let mut told = Vec::new();
    ruled_out.retain(|(cause, ..)| {
        let first = !told.contains(cause);
        told.push(*cause);
        first
    });
    let (named, candidates) = ranked(standing);
    Weighed { candidates, named, ruled_out }
}

/// The candidates in the order in which they are told, and whether the first is named.
fn ranked(mut standing: Vec<Candidate>) -> (bool, Vec<Candidate>) {
    standing.retain(|candidate| candidate.weight >= POSSIBLE);
    let established = |candidate: &Candidate| candidate.is_established();
    let stage = standing.iter().filter(|c| established(c)).map(|c| c.rule.stage).min();
    // Established ones first, those of the earliest stage before the others, each by its weight.
    let order = |candidate: &Candidate| {
        let of_stage = stage.is_some() && candidate.rule.stage == stage.unwrap_or(RuleStage::Server);
        (!established(candidate), !of_stage, candidate.rule.stage)
    };
    standing.sort_by(|a, b| order(a).cmp(&order(b)).then(b.weight.total_cmp(&a.weight)));
    // What is the outward look of another comes after it.
    let mut at = 0;
    while at < standing.len() {
        let special = standing
            .iter()
            .skip(at + 1)
            .position(|later| established(later) && standing[at].rule.yields_to.contains(&later.cause));
        match special {
            Some(found) => {
                let later = standing.remove(at + 1 + found);
                standing.insert(at, later);
            }
            None => at += 1,
        }
    }
    let Some(first) = standing.first().filter(|first| established(first)) else { return (false, standing) };
    let rivals = standing
        .iter()
        .skip(1)
        .filter(|other| other.rule.stage <= first.rule.stage && !other.rule.yields_to.contains(&first.cause));
    let next = rivals.map(|other| other.weight).fold(0.0, f64::max);
    (first.weight >= next + MARGIN, standing)
}
