//! CPU time of the server's functions for each request, at a low load and at the line, from kernel
//! samples ([`FunctionObservation`]).
//!
//! Not here: profiles that the server takes of itself, and the presentation.

use super::contrast::{Contrast, Loads};
use super::demands::answered;
use super::signals::{LoadSignals, Signal};
use crate::profile::{Basis, ProfileDiff, SampledProfile, Sort, View, diff};
use plimsoll_model::Run;

/// The cost of functions per request.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCosts {
    /// CPU time a request, in nanoseconds, at the first load and at the other one.
    pub comparison: ProfileDiff,
    /// The names of the two loads: `low`, or `half` where the low load had too few samples; then
    /// `line`, or `past` where the line has none.
    pub level_names: [&'static str; 2],
    /// Samples at both.
    pub samples: [u64; 2],
    /// Samples that there was no room for.
    pub lost: u64,
    /// Time between two samples of a core that works all the time, ns.
    pub period_ns: u64,
    /// Whether time in the kernel was sampled, too.
    pub in_kernel: bool,
}

/// The observations of the server's functions.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionObservation {
    /// This.
    Costs(Box<FunctionCosts>),
    /// The kernel refuses sampling: a sentence without a full stop, with the remedy.
    Refused(String),
}

impl FunctionObservation {
    /// The observations; `None` where functions were not sampled, or the server used too little
    /// CPU.
    pub fn from_loads(case: &Contrast, loads: &Loads) -> Option<FunctionObservation> {
        let first = [("low", loads.low, &case.low), ("half", loads.half, &case.half)];
        let second = [("line", loads.line, &case.line), ("past", loads.past, &case.past)];
        let seen = |levels: [(&'static str, Option<&Run>, &LoadSignals); 2]| {
            levels.into_iter().find_map(|(name, run, sight)| Some((name, SideSamples::from_run(run?, sight)?)))
        };
        let costs = seen(first).zip(seen(second)).and_then(|((low_name, low), (high_name, high))| {
            let basis = Basis::Requests { before: low.requests, after: high.requests };
            let [a, b] = [&low, &high].map(|side| View::all(side.of.profile.sample_type_default));
            let comparison = diff((&low.of.profile, &a), (&high.of.profile, &b), basis, Sort::Cum).ok()?;
            Some(FunctionObservation::Costs(Box::new(FunctionCosts {
                comparison,
                level_names: [low_name, high_name],
                samples: [low.of.samples, high.of.samples],
                lost: low.of.lost + high.of.lost,
                period_ns: high.of.profile.period.unsigned_abs(),
                in_kernel: low.of.in_kernel && high.of.in_kernel,
            })))
        });
        let runs = [loads.line, loads.low, loads.past];
        let refused = || runs.into_iter().flatten().find_map(|run| run.probes.sampled.refused.clone());
        costs.or_else(|| refused().map(FunctionObservation::Refused))
    }

    /// Why functions are not known although they were sampled: a sentence without a full stop.
    /// `None` where a load is missing.
    pub(super) fn uncaught(loads: &Loads) -> Option<String> {
        let levels = [
            (vec![loads.low, loads.half], "at the low load and at half the line"),
            (vec![loads.line, loads.past], "at the line and past it"),
        ];
        let looked = |run: &Run| !run.probes.sampled.stretches.is_empty();
        let uncaught = |run: &Run| SampledProfile::from_run(run).is_none();
        let all = |runs: &[Option<&Run>], is: &dyn Fn(&Run) -> bool| {
            runs.iter().any(Option::is_some) && runs.iter().flatten().all(|run| is(run))
        };
        let (_, when) = levels.iter().find(|(runs, _)| all(runs, &looked) && all(runs, &uncaught))?;
        Some(format!(
            "the cost of functions is not known: no sample caught the server {when}; longer loads take more \
             samples"
        ))
    }
}

/// One side.
struct SideSamples {
    of: SampledProfile,
    /// Requests that stand behind the samples.
    requests: f64,
}

impl SideSamples {
    fn from_run(run: &Run, sight: &LoadSignals) -> Option<SideSamples> {
        let of = SampledProfile::from_run(run)?;
        // The kernel's account of CPU time is more precise than samples, which only divide it. This
        // does not apply to samples without kernel time.
        let whole = sight.get(Signal::ServerCpu).filter(|cpu_ns| of.in_kernel && *cpu_ns > 0.0);
        let requests = match whole {
            Some(cpu_ns) => of.cpu_ns / cpu_ns,
            None => answered(sight)? * of.covered_ns as f64 / 1e9,
        };
        (requests > 0.0).then_some(SideSamples { of, requests })
    }
}
