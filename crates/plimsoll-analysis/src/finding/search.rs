//! The result of a search: the line, and the server's CPU and memory there.

use super::recording::{NoFinding, cut_off};
use crate::doubts::{Assessment, Doubt, DoubtKind, Doubts};
use crate::explain::{LoadSignals, Signal};
use crate::find::ServerUseAtLine;
use crate::find::{self, Findings, LoadLine, Settings, Soak, StopReason};
use crate::judge::{Verdict, judge};
use crate::server_view::ServerView;
use crate::slo::Slo;
use crate::study::search::{is_after_search, outcome, planned_tag, settings, soak_outcome};
use crate::summary::Summary;
use plimsoll_model::{Experiment, FindSpec, Purpose, Run, Trial};

/// The result of a search.
#[derive(Debug, Clone)]
pub struct SearchFinding<'a> {
    /// The settings of the search.
    pub settings: Settings,
    /// The line, and how it was found.
    pub findings: Findings,
    /// The load with the headroom of `--headroom`, where it was measured.
    pub planned_load: Option<PlannedLoad>,
    /// The number of instances for the rate of `--need`.
    pub instance_estimate: Option<InstanceEstimate>,
    /// The result of a long load at the line (`--soak`).
    pub soak: Option<Soak>,
    /// The observations of the server: its CPU and memory at the line, and all loads of the search
    /// in the order of its trials.
    pub server: ServerView<'a>,
}

/// A load that leaves headroom below the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedLoad {
    /// The share of the line that stays free.
    pub headroom: f64,
    /// Its rate, 1/s.
    pub rate_rps: f64,
    /// Requests in flight, on average.
    pub in_flight: Option<f64>,
    /// Response time that 99 % stay below, ns.
    pub p99_ns: Option<f64>,
    /// Whether the load met the SLO.
    pub is_sustained: bool,
}

/// How many instances like the measured one carry a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceEstimate {
    /// The rate, 1/s.
    pub rate_rps: f64,
    /// The number at the lower end of the line, with the headroom.
    pub instances: f64,
    /// At its upper end.
    pub instances_min: f64,
    /// Cores that the servers use for it, where that was seen.
    pub cores: Option<f64>,
}

/// The load below the line.
fn planned_load(experiment: &Experiment, spec: &FindSpec, findings: &Findings, slo: &Slo) -> Option<PlannedLoad> {
    // Loads of this purpose are something else in an explanation.
    let headroom = spec.planning.headroom?;
    let trial = experiment.trials.iter().rfind(|trial| trial.tag == planned_tag() && trial.run.ending.is_some())?;
    let sight = LoadSignals::from_run(&trial.run);
    Some(PlannedLoad {
        headroom,
        rate_rps: findings.load_line_rps.rps * (1.0 - headroom),
        in_flight: sight.get(Signal::InFlight),
        p99_ns: sight.get(Signal::P99),
        is_sustained: judge(Purpose::Line, 0, &trial.run, slo).verdict == Verdict::Pass,
    })
}

/// The number of instances for the rate of `--need`. `each_us`: CPU time of the servers for one
/// request or session, us.
fn instance_estimate(spec: &FindSpec, findings: &Findings, each_us: Option<f64>) -> Option<InstanceEstimate> {
    let (rate_rps, line) = (spec.planning.need_rps?, findings.load_line_rps);
    let each = |line_rps: f64| line_rps * (1.0 - spec.planning.headroom.unwrap_or(0.0));
    (line.rps > 0.0).then(|| InstanceEstimate {
        rate_rps,
        instances: (rate_rps / each(line.lower)).ceil(),
        instances_min: (rate_rps / each(line.upper.unwrap_or(line.lower))).ceil(),
        cores: each_us.map(|us| rate_rps * us / 1e6),
    })
}

/// A soak that met the SLO confirms a line; one that broke it from the start withdraws the line. A
/// later break means that the line does not last. Returns the doubt.
fn heed_soak(findings: &mut Findings, soak: &Soak) -> Option<Doubt> {
    if soak.broke.is_none() {
        if soak.is_over && soak.met_s > 0.0 {
            findings.met_slo_s = findings.met_slo_s.max(soak.met_s);
            findings.load_line_rps.confirmed = true;
        }
        return None;
    }
    findings.load_line_rps.confirmed = false;
    if soak.met_s <= 0.0 {
        findings.load_line_rps = LoadLine { upper: Some(soak.rate_rps), ..LoadLine::NONE };
    }
    findings.met_slo_s = soak.met_s;
    Some(Doubt { kind: DoubtKind::Contradicted, text: format!("the soak broke the SLO: {}", soak.text()).into() })
}

impl SearchFinding<'_> {
    /// CPU time of the server for each request at the line, us, where it was seen.
    pub fn cpu_us(&self) -> Option<f64> {
        self.server.usage.as_ref().ok().and_then(|used| used.cpu_us_per_request())
    }
}

pub(super) fn conclude<'a>(
    experiment: &'a Experiment,
    spec: &FindSpec,
) -> Result<Assessment<SearchFinding<'a>>, NoFinding> {
    let slo = Slo::parse(&spec.slo).map_err(|error| NoFinding::Promise(error.to_string()))?;
    let settings = settings(spec, slo);
    let judged = experiment.trials.iter().filter_map(|trial| Some((trial, outcome(trial, &settings.slo)?)));
    let (whole, history): (Vec<_>, Vec<_>) = judged.unzip();
    let latest_ns = || experiment.trials.iter().map(|t| t.start_ns + t.run.duration_ns()).max().unwrap_or(0);
    // The search was over when loads began that are none of its own.
    let is_after = |trial: &&Trial| is_after_search(trial.tag.purpose);
    let began_ns = experiment.trials.iter().find(is_after).map(|trial| trial.start_ns);
    let elapsed_ns = began_ns.or(experiment.elapsed_ns).unwrap_or_else(latest_ns);
    let mut findings = find::conclude(&settings, &history, elapsed_ns);
    let pieces: Vec<_> = experiment.trials.iter().filter_map(|trial| soak_outcome(trial, &settings.slo)).collect();
    let soak = spec.planning.soak_ns.and_then(|asked_ns| Soak::new(&settings, &history, &pieces, asked_ns));
    let soaked = soak.as_ref().and_then(|soak| heed_soak(&mut findings, soak));
    let runs: Vec<&Run> = whole.iter().map(|trial| &trial.run).collect();
    let (used, from) = match ServerUseAtLine::from_findings(&findings, &runs) {
        Ok(at) => (Ok(at.usage), Some(at.from)),
        Err(reason) => (Err(reason), None),
    };
    let server = ServerView { usage: used, from, runs };
    let cpu_us = server.usage.as_ref().ok().and_then(|used| used.cpu_us_per_request());
    // A session is several requests.
    let each = server.runs.last().map_or(1.0, |run| Summary::from_run(run).requests_each);
    let each_us = cpu_us.map(|us| us * each);
    let planned_load = planned_load(experiment, spec, &findings, &settings.slo);
    let instance_estimate = instance_estimate(spec, &findings, each_us);
    let limited = (findings.stopped_by == StopReason::Client).then(|| Doubt {
        kind: DoubtKind::Generator,
        text: "the generator was the limit, not the server: the line is above the generator's highest rate".into(),
    });
    let doubts = server.doubt().into_iter().chain(cut_off(experiment)).chain(limited).chain(soaked);
    let doubts = doubts.chain(Doubts::noted(&experiment.start_notes.warnings)).chain(findings.doubts.clone()).collect();
    Ok(Assessment::new(doubts, SearchFinding { settings, findings, planned_load, instance_estimate, soak, server }))
}
