//! The CPU time of the server's functions for each request, at a low load and at the load line
//! ([`FunctionObservation`]). The CPU time comes from samples that the kernel takes.
//!
//! Not here: profiles that the server makes itself, and the presentation.

use super::demands::responses_per_second;
use super::server_facts::{Loads, ServerFacts};
use super::signals::{LoadSignals, Signal};
use crate::profile::{CostDivisor, FunctionCostOrder, ProfileDiff, ProfileView, SampledProfile, diff};
use plimsoll_model::Run;

/// The CPU time of the server's functions for each request, compared between two loads.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCosts {
    /// CPU time of each function for one request, ns: the lower load compared with the higher load.
    pub comparison: ProfileDiff,
    /// The names of the lower and the higher load. The lower load is `low`, or `half` if the low
    /// load has no samples. The higher load is `line`, or `past` if the load at the load line has
    /// no samples.
    pub level_names: [&'static str; 2],
    /// Number of samples at the lower and at the higher load.
    pub samples: [u64; 2],
    /// Number of samples lost at both loads together, because the kernel's buffer was full.
    pub lost: u64,
    /// Time between two samples of a core that is always busy, ns.
    pub period_ns: u64,
    /// Whether time in the kernel was also sampled.
    pub covers_kernel: bool,
}

/// The CPU cost of the server's functions, or the reason why it is not known.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionObservation {
    /// The functions were sampled at both loads.
    Costs(Box<FunctionCosts>),
    /// The kernel does not permit sampling. The text is a sentence without a full stop that says
    /// how to permit sampling.
    NotPermitted(String),
}

impl FunctionObservation {
    /// Compares the functions of a low and a high load; `None` if functions were not sampled, or if
    /// no sample was taken while the server ran.
    pub fn from_loads(case: &ServerFacts, loads: &Loads) -> Option<FunctionObservation> {
        let first = [("low", loads.low, &case.low), ("half", loads.half, &case.half)];
        let second = [("line", loads.line, &case.line), ("past", loads.past, &case.past)];
        let seen = |levels: [(&'static str, Option<&Run>, &LoadSignals); 2]| {
            levels.into_iter().find_map(|(name, run, sight)| Some((name, ComparedLoadSamples::from_run(run?, sight)?)))
        };
        let costs = seen(first).zip(seen(second)).and_then(|((low_name, low), (high_name, high))| {
            let basis = CostDivisor::Requests { before: low.requests, after: high.requests };
            let [a, b] =
                [&low, &high].map(|side| ProfileView::all_samples(side.sampled_profile.profile.sample_type_default));
            let comparison = diff(
                (&low.sampled_profile.profile, &a),
                (&high.sampled_profile.profile, &b),
                basis,
                FunctionCostOrder::Cum,
            )
            .ok()?;
            Some(FunctionObservation::Costs(Box::new(FunctionCosts {
                comparison,
                level_names: [low_name, high_name],
                samples: [low.sampled_profile.samples, high.sampled_profile.samples],
                lost: low.sampled_profile.lost + high.sampled_profile.lost,
                period_ns: high.sampled_profile.profile.period.unsigned_abs(),
                covers_kernel: low.sampled_profile.covers_kernel && high.sampled_profile.covers_kernel,
            })))
        });
        let runs = [loads.line, loads.low, loads.past];
        let refused = || runs.into_iter().flatten().find_map(|run| run.probes.sampled.missing_reason.clone());
        costs.or_else(|| refused().map(FunctionObservation::NotPermitted))
    }

    /// Returns why the cost of functions is not known although the kernel permits sampling. The
    /// reason: no sample of the server was taken during the two lower loads, or during the two
    /// higher loads. The reason is a sentence without a full stop. Returns `None` if this reason
    /// does not apply, for example if no load was sampled.
    pub(super) fn missing_samples_reason(loads: &Loads) -> Option<String> {
        let levels = [
            (vec![loads.low, loads.half], "the low load and the load at half the load line"),
            (vec![loads.line, loads.past], "the loads at the load line and above the load line"),
        ];
        let looked = |run: &Run| !run.probes.sampled.intervals.is_empty();
        let uncaught = |run: &Run| SampledProfile::from_run(run).is_none();
        let all = |runs: &[Option<&Run>], is: &dyn Fn(&Run) -> bool| {
            runs.iter().any(Option::is_some) && runs.iter().flatten().all(|run| is(run))
        };
        let (_, load_names) = levels.iter().find(|(runs, _)| all(runs, &looked) && all(runs, &uncaught))?;
        Some(format!(
            "the CPU cost of the server's functions is not known: during {load_names}, the profiler took no sample \
             while the server ran. Longer loads take more samples"
        ))
    }
}

/// The samples of one of the two compared loads.
struct ComparedLoadSamples {
    /// The samples of the load, as a profile.
    sampled_profile: SampledProfile,
    /// Number of requests in the sampled time.
    requests: f64,
}

impl ComparedLoadSamples {
    fn from_run(run: &Run, signals: &LoadSignals) -> Option<ComparedLoadSamples> {
        let of = SampledProfile::from_run(run)?;
        // The kernel counts CPU time more exactly than samples do. Samples therefore only show how
        // functions share the CPU time that the kernel counts. Samples that leave out time in the
        // kernel are not scaled to the counted CPU time, which includes time in the kernel.
        let whole = signals.get(Signal::ServerCpu).filter(|cpu_ns| of.covers_kernel && *cpu_ns > 0.0);
        let requests = match whole {
            Some(cpu_ns) => of.cpu_ns / cpu_ns,
            None => responses_per_second(signals)? * of.covered_ns as f64 / 1e9,
        };
        (requests > 0.0).then_some(ComparedLoadSamples { sampled_profile: of, requests })
    }
}
