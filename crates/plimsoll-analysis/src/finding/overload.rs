//! The finding of an overload study: the behaviour of a server above its load line.

use super::recording::{NoFinding, cut_off_doubt};
use super::search;
use crate::doubts::{Assessment, Doubt, DoubtKind, Doubts};
use crate::find::StopReason;
use crate::overload::{OverloadResult, overload_base_rps};
use crate::server_view::ServerView;
use crate::slo::Slo;
use crate::study::overload::overload_tag;
use crate::summary::Summary;
use plimsoll_model::{Experiment, OverloadSpec, PlanRecord, Trial};

/// The behaviour of a server above its load line, for one target or two.
#[derive(Debug, Clone)]
pub struct OverloadFinding<'a> {
    /// The plan of the overload: a load that rises in steps above the load line, and falls back.
    pub plan: &'a PlanRecord,
    /// The SLO in the syntax in which users write it, such as `p99<=500ms`.
    pub slo: String,
    /// The maximum number of retries of a failed request.
    pub retries: u32,
    /// The goodput of the server in each step of the overload, and the recovery of the server.
    pub overload: OverloadResult,
    /// The plan of a second target, and the second target's result under the same overload; `None`
    /// without a second target.
    pub second_target: Option<(&'a PlanRecord, OverloadResult)>,
    /// Whether plimsoll itself was at its limit, so that the figures may not be the server's.
    pub generator_was_limit: bool,
    /// What probes observed of the server and its machine during the overload.
    pub server: ServerView<'a>,
}

pub(super) fn overload_finding<'a>(
    experiment: &'a Experiment,
    spec: &OverloadSpec,
) -> Result<Assessment<OverloadFinding<'a>>, NoFinding> {
    let of = |against| experiment.trials.iter().find(|trial| trial.tag == overload_tag(against));
    // The rates of the overload's steps are multiples of the load line that was known when the
    // overload began.
    let searched = match spec.line_rps {
        Some(_) => None,
        None => Some(search::search_finding(experiment, &spec.search)?.doubts_and_figures().1.findings.clone()),
    };
    let line_rps = spec.line_rps.or(searched.as_ref().map(overload_base_rps)).unwrap_or(0.0);
    let trial = of(false).ok_or(match &searched {
        _ if experiment.trials.is_empty() => NoFinding::NoLoad,
        Some(findings) if findings.stopped_by == StopReason::Interrupted => NoFinding::SearchInterrupted,
        _ if line_rps > 0.0 => NoFinding::NoTime,
        _ => NoFinding::NoLine,
    })?;
    let no_line = searched.filter(|findings| findings.load_line.rps <= 0.0).map(|_| Doubt {
        kind: DoubtKind::NoSuccess,
        text: "there is no load line, so plimsoll chose the rates of the loads relative to the peak throughput".into(),
    });
    let slo = Slo::parse(&spec.search.slo).map_err(|error| NoFinding::InvalidSlo(error.to_string()))?;
    let overloaded =
        |trial: &Trial| OverloadResult::from_run(&trial.run, line_rps, slo.bound_max_ns(), spec.retries > 0);
    let second_target = of(true).map(|trial| (&trial.run.plan, overloaded(trial)));
    let overloaded = overloaded(trial);
    let (summary, server) = (Summary::from_run(&trial.run), ServerView::from_run(&trial.run));
    let loads = [Some(&overloaded), second_target.as_ref().map(|(_, other)| other)];
    let steps = loads.into_iter().flatten().flat_map(|load| &load.steps);
    let unsent: u64 = steps.map(|step| step.unsuccessful.unsent).sum();
    let own = (unsent > 0).then(|| Doubt {
        kind: DoubtKind::Unsent,
        text: format!("{unsent} requests were never sent, so the server had less load than planned").into(),
    });
    let generator = summary.doubts.iter().filter(|doubt| doubt.kind == DoubtKind::Generator).cloned();
    let doubts: Doubts = no_line
        .into_iter()
        .chain(own)
        .chain(generator)
        .chain(server.restart_doubt())
        .chain(cut_off_doubt(experiment))
        .chain(Doubts::from_warnings(&experiment.start_notes.warnings))
        .collect();
    let generator_was_limit = doubts.has(DoubtKind::Generator);
    let plan = &trial.run.plan;
    Ok(Assessment::new(
        doubts,
        OverloadFinding {
            plan,
            slo: spec.search.slo.clone(),
            retries: spec.retries,
            overload: overloaded,
            second_target,
            generator_was_limit,
            server,
        },
    ))
}
