//! The finding of a search: the load line, and the server's use of CPU and memory at the load line.

use super::recording::{NoFinding, cut_off_doubt};
use crate::doubts::{Assessment, Doubt, DoubtKind, Doubts};
use crate::explain::{LoadSignals, Signal};
use crate::find::ServerUseAtLine;
use crate::find::{self, Findings, LoadLine, SearchSettings, Soak, StopReason};
use crate::judge::{Verdict, judge};
use crate::server_view::ServerView;
use crate::slo::Slo;
use crate::study::search::{headroom_load_tag, is_after_search, search_trial_outcome, settings, soak_outcome};
use crate::summary::Summary;
use plimsoll_model::{Experiment, FindSpec, LoadPurpose, Run, Trial};

/// The finding of a search: the load line, and the results of the loads that came after the search.
#[derive(Debug, Clone)]
pub struct SearchFinding<'a> {
    /// The settings of the search.
    pub settings: SearchSettings,
    /// The load line, and the trials of the search.
    pub findings: Findings,
    /// The result of the load with headroom (`--headroom`), a load below the load line; `None` if
    /// it was not measured.
    pub planned_load: Option<HeadroomLoadResult>,
    /// The number of server instances that the rate of `--need` requires; `None` without that flag
    /// or without a load line.
    pub instance_estimate: Option<InstanceEstimate>,
    /// The result of a soak, a long load at the load line (`--soak`); `None` without a soak.
    pub soak: Option<Soak>,
    /// The server's use of CPU and memory at the load line, and the runs of all trials in order.
    pub server: ServerView<'a>,
}

/// The result of a load below the load line that leaves the requested headroom unused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadroomLoadResult {
    /// The headroom: the share of the load line that the load leaves unused, 0..=1.
    pub headroom: f64,
    /// The rate of the load, 1/s: the load line times (1 - headroom).
    pub rate_rps: f64,
    /// Mean number of requests in flight during the load; `None` if it was not measured.
    pub in_flight: Option<f64>,
    /// Response time p99 under the load, ns; `None` if it was not measured.
    pub p99_ns: Option<f64>,
    /// Whether the server met the SLO under this load.
    pub is_sustained: bool,
}

/// An estimate of how many instances of the measured server together sustain a given rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceEstimate {
    /// The rate that all instances together must sustain, 1/s.
    pub rate_rps: f64,
    /// The number of instances (a whole number) needed for `rate_rps`, if one instance sustains
    /// only the lower end of the load line's interval. The requested headroom of each instance
    /// stays unused.
    pub instances: f64,
    /// The number of instances (a whole number) needed for `rate_rps`, if one instance sustains the
    /// upper end of the load line's interval. The requested headroom of each instance stays unused.
    pub instances_min: f64,
    /// Number of cores that all instances together use at `rate_rps`; `None` if the server's CPU
    /// time was not observed.
    pub cores: Option<f64>,
}

/// Returns the result of the load with headroom from the record; `None` if this load was not
/// requested or not measured.
fn headroom_load_result(
    experiment: &Experiment,
    spec: &FindSpec,
    findings: &Findings,
    slo: &Slo,
) -> Option<HeadroomLoadResult> {
    // If the user did not give `--headroom`, a load with the tag `headroom_load_tag` is a steady
    // load of an explanation.
    let headroom = spec.planning.headroom?;
    let trial =
        experiment.trials.iter().rfind(|trial| trial.tag == headroom_load_tag() && trial.run.ending.is_some())?;
    let sight = LoadSignals::from_run(&trial.run);
    Some(HeadroomLoadResult {
        headroom,
        rate_rps: findings.load_line.rps * (1.0 - headroom),
        in_flight: sight.get(Signal::InFlight),
        p99_ns: sight.get(Signal::P99),
        is_sustained: judge(LoadPurpose::Line, 0, &trial.run, slo).verdict == Verdict::Pass,
    })
}

/// Estimates the number of server instances for the rate of `--need`; `None` without that flag or
/// without a load line. `each_us` is the CPU time of the server for one request or session, us.
fn instance_estimate(spec: &FindSpec, findings: &Findings, each_us: Option<f64>) -> Option<InstanceEstimate> {
    let (rate_rps, line) = (spec.planning.need_rps?, findings.load_line);
    let each = |line_rps: f64| line_rps * (1.0 - spec.planning.headroom.unwrap_or(0.0));
    (line.rps > 0.0).then(|| InstanceEstimate {
        rate_rps,
        instances: (rate_rps / each(line.lower)).ceil(),
        instances_min: (rate_rps / each(line.upper.unwrap_or(line.lower))).ceil(),
        cores: each_us.map(|us| rate_rps * us / 1e6),
    })
}

/// Applies the result of a soak (a long load at the load line) to the findings. A soak that met the
/// SLO to its end confirms the load line. A soak that broke the SLO from the start withdraws the
/// load line. A soak that broke the SLO later makes the load line unconfirmed. Returns a doubt if
/// the soak broke the SLO.
fn apply_soak(findings: &mut Findings, soak: &Soak) -> Option<Doubt> {
    if soak.violation.is_none() {
        if soak.is_over && soak.met_s > 0.0 {
            if soak.met_s >= findings.longest_pass_at_line_s {
                findings.longest_pass_at_line_s = soak.met_s;
                findings.is_longest_pass_by_chance = false;
            }
            findings.load_line.is_confirmed = true;
        }
        return None;
    }
    findings.load_line.is_confirmed = false;
    if soak.met_s <= 0.0 {
        findings.load_line = LoadLine { upper: Some(soak.rate_rps), ..LoadLine::NONE };
    }
    findings.longest_pass_at_line_s = soak.met_s;
    findings.is_longest_pass_by_chance = false;
    let text = format!("the soak broke the SLO: {reason}", reason = soak.soak_result_text());
    Some(Doubt { kind: DoubtKind::Contradicted, text: text.into() })
}

impl SearchFinding<'_> {
    /// Returns the server's CPU time for each request at the load line, us; `None` if the CPU time
    /// was not observed.
    pub fn cpu_us_at_load_line(&self) -> Option<f64> {
        self.server.usage.as_ref().ok().and_then(|used| used.cpu_us_per_request())
    }
}

pub(super) fn search_finding<'a>(
    experiment: &'a Experiment,
    spec: &FindSpec,
) -> Result<Assessment<SearchFinding<'a>>, NoFinding> {
    let slo = Slo::parse(&spec.slo).map_err(|error| NoFinding::InvalidSlo(error.to_string()))?;
    let settings = settings(spec, slo);
    let judged =
        experiment.trials.iter().filter_map(|trial| Some((trial, search_trial_outcome(trial, &settings.slo)?)));
    let (whole, history): (Vec<_>, Vec<_>) = judged.unzip();
    let latest_ns = || experiment.trials.iter().map(|t| t.start_ns + t.run.duration_ns()).max().unwrap_or(0);
    // The search has ended when the first load begins that does not belong to the search.
    let is_after = |trial: &&Trial| is_after_search(trial.tag.purpose);
    let began_ns = experiment.trials.iter().find(is_after).map(|trial| trial.start_ns);
    let elapsed_ns = began_ns.or(experiment.elapsed_ns).unwrap_or_else(latest_ns);
    let mut findings = find::conclude(&settings, &history, elapsed_ns);
    let pieces: Vec<_> = experiment.trials.iter().filter_map(|trial| soak_outcome(trial, &settings.slo)).collect();
    let soak = spec.planning.soak_ns.and_then(|asked_ns| Soak::new(&settings, &history, &pieces, asked_ns));
    let soaked = soak.as_ref().and_then(|soak| apply_soak(&mut findings, soak));
    let runs: Vec<&Run> = whole.iter().map(|trial| &trial.run).collect();
    let (used, from) = match ServerUseAtLine::from_findings(&findings, &runs) {
        Ok(at) => (Ok(at.usage), Some(at.source)),
        Err(reason) => (Err(reason), None),
    };
    let server = ServerView { usage: used, source: from, runs };
    let cpu_us = server.usage.as_ref().ok().and_then(|used| used.cpu_us_per_request());
    // A session may consist of several requests. The CPU time of a session is the sum over its
    // requests.
    let each = server.runs.last().map_or(1.0, |run| Summary::from_run(run).requests_per_session);
    let each_us = cpu_us.map(|us| us * each);
    let planned_load = headroom_load_result(experiment, spec, &findings, &settings.slo);
    let instance_estimate = instance_estimate(spec, &findings, each_us);
    let limited = (findings.stopped_by == StopReason::GeneratorLimited).then(|| Doubt {
        kind: DoubtKind::Generator,
        text: "the generator was the limit, not the server: the load line is above the generator's highest rate".into(),
    });
    let doubts = server.restart_doubt().into_iter().chain(cut_off_doubt(experiment)).chain(limited).chain(soaked);
    let doubts =
        doubts.chain(Doubts::from_warnings(&experiment.start_notes.warnings)).chain(findings.doubts.clone()).collect();
    Ok(Assessment::new(doubts, SearchFinding { settings, findings, planned_load, instance_estimate, soak, server }))
}
