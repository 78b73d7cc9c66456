//! The JSON documents, as `docs/json.md` describes them. Fields are only ever added within a schema version.

use crate::csv::purpose_name;
use crate::failed;
use crate::format::{self, rounded};
use crate::load_profiles::{Profiles, profiles_document};
use crate::run::{RunContext, load_text, stop_text, system_text};
use crate::server::server_document;
use plimsoll_analysis::finding::{RunFinding, SearchFinding, SweepFigures, SweepFinding};
use plimsoll_analysis::levels::Level;
use plimsoll_analysis::stages::StageFigures;
use plimsoll_analysis::summary::Latency;
use plimsoll_analysis::{Doubts, FailedKind, Others, ServerView, Summary};
use plimsoll_model::measures::{Figure, Held, Key, Kind};
use plimsoll_model::{Ending, Experiment, Injector, LoadShape, PlanRecord, RequestFailure, TlsFailure};
use serde_json::{Map, Value, json};

fn latency(latency: &Latency) -> Value {
    json!({
        "count": latency.count,
        "min": latency.min_ns,
        "mean": latency.mean_ns,
        "stdev": latency.stdev_ns,
        "p50": latency.p50_ns,
        "p75": latency.p75_ns,
        "p90": latency.p90_ns,
        "p95": latency.p95_ns,
        "p99": latency.p99_ns,
        "p999": latency.p999_ns,
        "max": latency.max_ns,
    })
}

/// The figures of one load, without what stands around them.
fn figures(summary: &Summary) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("requests".into(), summary.requests.into());
    map.insert("success_rate".into(), summary.success_rate.into());
    map.insert("throughput_rps".into(), summary.throughput_rps.into());
    map.insert("duration_s".into(), (summary.duration_ns as f64 / 1e9).into());
    for (figure, held) in summary.whole.held().chain(summary.load.held()) {
        if let Some(name) = figure.json {
            map.insert(name.into(), figure_value(summary, figure, held));
        }
    }
    let generator = &summary.generator;
    let block = json!({
        "cpu_s": generator.cpu_s,
        "work_share": generator.work_share,
        "lag_ns": latency(&generator.lag),
        "sent_share": generator.sent_share,
        "limited": generator.limited,
        "reason": generator.reason,
    });
    map.insert("generator".into(), block);
    let ended = match &summary.ending {
        Some(Ending::Finished) => "finished".to_owned(),
        Some(Ending::Stopped(stop)) => format!("stopped: {}", stop_text(stop)),
        None => "cut off".to_owned(),
    };
    map.insert("ended".into(), ended.into());
    others(&mut map, &summary.others);
    map
}

/// The value of a figure of the table of measures.
fn figure_value(summary: &Summary, figure: &Figure, held: Held<Latency>) -> Value {
    match held {
        Held::Count(count) => count.into(),
        Held::Times(times) => latency(times),
        Held::Tally(tally) => {
            let text = |key: u16| match figure.kind {
                Kind::Tally(Key::SystemError) => system_text(key),
                Kind::Tally(Key::Address) => summary.address(key).to_owned(),
                Kind::Tally(Key::TlsFailure) => TlsFailure::of_number(key).name().to_owned(),
                _ => key.to_string(),
            };
            tally.iter().map(|(key, count)| (text(key), Value::from(count))).collect::<Map<_, _>>().into()
        }
        Held::Ledger(ledger) => {
            let failed: Map<String, Value> = RequestFailure::ALL
                .iter()
                .map(|kind| (kind.name().to_owned(), ledger.failed[*kind as usize].into()))
                .collect();
            json!({
                "scheduled": ledger.scheduled,
                "succeeded": ledger.succeeded,
                "failed": failed,
                "unsent": ledger.unsent,
                "in_flight": ledger.in_flight,
            })
        }
        Held::Workers(workers) => workers.len().into(),
    }
}

/// A stage of a load.
fn stage(load: &LoadShape, stage: &StageFigures) -> Value {
    let (from, to) = match load {
        LoadShape::Closed { .. } => ("from_users", "to_users"),
        LoadShape::Open { .. } => ("from_rps", "to_rps"),
    };
    json!({
        from: stage.from,
        to: stage.to,
        "start_s": stage.start_ns as f64 / 1e9,
        "duration_s": stage.duration_ns as f64 / 1e9,
        "scheduled": stage.ledger.scheduled,
        "succeeded": stage.ledger.succeeded,
        "achieved_rps": stage.achieved_rps,
        "success_rate": stage.success_rate,
        "p50_ns": stage.p50_ns,
        "p99_ns": stage.p99_ns,
        "max_ns": stage.max_ns,
    })
}

/// A document as it is written: every figure with seven digits, which is more than any of them is known to, and no more
/// than that (2002.3, not 2002.3000000000002). Whole numbers are exact.
pub fn text(document: &Value) -> String {
    fn tidy(value: &Value) -> Value {
        match value {
            Value::Number(number) if number.is_f64() => number.as_f64().map_or(Value::Null, |f| rounded(f, 7).into()),
            Value::Array(items) => items.iter().map(tidy).collect::<Vec<_>>().into(),
            Value::Object(map) => Value::Object(map.iter().map(|(key, value)| (key.clone(), tidy(value))).collect()),
            other => other.clone(),
        }
    }
    format!("{}\n", crate::visible::json(&tidy(document)))
}

/// How loads were made, as a document says it.
pub(crate) struct Made<'a> {
    /// What was to happen.
    pub(crate) plan: &'a PlanRecord,
    /// Who carried it out.
    pub(crate) injectors: &'a [Injector],
}

/// What stands around the figures of every document: schema, command, machine, request.
pub(crate) fn frame(schema: &str, experiment: &Experiment, made: Option<Made>) -> Map<String, Value> {
    let environment = &experiment.environment;
    let mut map = Map::new();
    map.insert("schema".into(), schema.into());
    map.insert("started_unix_ms".into(), experiment.started_unix_ms.into());
    map.insert("command".into(), experiment.command.clone().into());
    map.insert(
        "environment".into(),
        json!({
            "plimsoll": environment.plimsoll,
            "kernel": environment.kernel,
            "cpu": environment.cpu,
            "cores": environment.cores,
            "memory_bytes": environment.memory_bytes,
            "files_max": environment.files_max,
            "target_local": environment.target_local,
        }),
    );
    if let Some(Made { plan, injectors }) = made {
        map.insert("url".into(), plan.traffic.url().into());
        map.insert("method".into(), plan.traffic.first().method.clone().into());
        map.insert("seed".into(), plan.load.seed.into());
        let threads: u32 = injectors.iter().map(|injector| injector.workers).sum();
        map.insert("threads".into(), threads.into());
        if plan.carriage.unix.is_none() {
            let addresses: Vec<String> = plan.carriage.addresses.iter().map(ToString::to_string).collect();
            map.insert("addresses".into(), addresses.into());
        }
    }
    map
}

/// What others used of the machine: the fields `disturbed` and `others` of every document.
pub(crate) fn others(map: &mut Map<String, Value>, others: &Others) {
    map.insert("disturbed".into(), others.disturbed.into());
    let share = others.steal_share;
    map.insert("others".into(), json!({ "cores": others.cores, "steal_share": share, "reason": others.reason }));
}

/// The document of one run: `plimsoll.run/1`.
pub(crate) fn run(
    experiment: &Experiment,
    context: &RunContext,
    found: &RunFinding,
    warnings: &[&str],
    profiles: Option<&Profiles>,
) -> Value {
    let (plan, injectors, summary) = (context.plan, context.injectors, &found.summary);
    let mut map = frame("plimsoll.run/1", experiment, Some(Made { plan, injectors }));
    map.insert("warnings".into(), warnings.into());
    map.insert("load".into(), load_text(&plan.load.shape).into());
    map.append(&mut figures(summary));
    map.insert("failed_answers".into(), failed::list(&summary.failed_answers));
    let stages: Vec<Value> = summary.stages.iter().map(|figures| stage(&plan.load.shape, figures)).collect();
    map.insert("stages".into(), stages.into());
    map.insert("fitted".into(), context.setup.to_vec().into());
    map.insert("server".into(), server_document(&found.server));
    map.insert("profiles".into(), profiles.map(profiles_document).into());
    Value::Object(map)
}

/// The document of a sweep: `plimsoll.sweep/1`.
pub(crate) fn sweep(experiment: &Experiment, found: &SweepFinding, warnings: &[&str]) -> Value {
    let documents: Vec<Value> = found
        .levels
        .iter()
        .map(|level| match &level.outcome {
            Ok(SweepFigures { run, summary, error, .. }) => {
                let mut map = figures(summary);
                map.insert("concurrency".into(), level.concurrency.into());
                map.insert("throughput_error".into(), (*error).into());
                map.insert("server".into(), server_document(&ServerView::of(run)));
                Value::Object(map)
            }
            Err(reason) => json!({ "concurrency": level.concurrency, "error": format::unheld(reason) }),
        })
        .collect();
    let point = |level: Option<&Level>| {
        level.map_or(Value::Null, |level| {
            json!({ "rps": level.rps, "concurrency": level.load as u64, "p99_ns": level.p99_ns.map(|ns| ns as u64) })
        })
    };
    let first = experiment.trials.first().map(|trial| &trial.run);
    let made = first.map(|run| Made { plan: &run.plan, injectors: &run.injectors });
    let mut map = frame("plimsoll.sweep/1", experiment, made);
    others(&mut map, &found.others);
    map.insert("warnings".into(), warnings.into());
    map.insert("peak".into(), point(found.peak.as_ref()));
    map.insert("knee".into(), point(found.knee.as_ref()));
    let kinds = FailedKind::of_trials(experiment.trials.iter());
    map.insert("failed_answers".into(), failed::list(&kinds));
    map.insert("levels".into(), documents.into());
    Value::Object(map)
}

/// The document of a search: `plimsoll.find/1`.
pub(crate) fn find(
    experiment: &Experiment,
    context: &RunContext,
    found: &SearchFinding,
    (warnings, doubts): (&[&str], &Doubts),
    profiles: Option<&Profiles>,
) -> Value {
    let findings = &found.findings;
    let trials: Vec<Value> = findings
        .trials
        .iter()
        .map(|trial| {
            let mut map = Map::new();
            map.insert("kind".into(), purpose_name(trial.purpose).into());
            if let Some(rate) = trial.offered_rps() {
                map.insert("offered_rps".into(), rate.into());
            }
            if let Some(users) = trial.concurrency() {
                map.insert("concurrency".into(), users.into());
            }
            map.insert("start_s".into(), (trial.start_ns as f64 / 1e9).into());
            map.insert("duration_s".into(), (trial.duration_ns as f64 / 1e9).into());
            map.insert("achieved_rps".into(), trial.achieved_rps.into());
            map.insert("success_rate".into(), trial.success_rate.into());
            map.insert("p50_ns".into(), trial.p50_ns.into());
            map.insert("p99_ns".into(), trial.p99_ns.into());
            map.insert("lag_p99_ns".into(), trial.lag_p99_ns.into());
            map.insert("work_share".into(), trial.evidence.work_share.into());
            map.insert("verdict".into(), trial.verdict.to_string().into());
            map.insert("reason".into(), trial.reason.clone().into());
            Value::Object(map)
        })
        .collect();
    let mut map = frame("plimsoll.find/1", experiment, Some(Made { plan: context.plan, injectors: context.injectors }));
    let line = &findings.load_line_rps;
    map.insert("warnings".into(), warnings.into());
    others(&mut map, &findings.others);
    map.insert(
        "load_line_rps".into(),
        json!({ "lower": line.lower, "upper": line.upper, "confirmed": line.confirmed }),
    );
    map.insert("doubts".into(), doubts.beside().collect::<Vec<_>>().into());
    let stalls = findings.stalls.as_ref().map(|stalls| {
        json!({
            "count": stalls.count,
            "longest_s": stalls.longest_ns as f64 / 1e9,
            "every_s": stalls.every_ns as f64 / 1e9,
            "forbids": stalls.forbids,
        })
    });
    map.insert("stalls".into(), stalls.into());
    map.insert("slo".into(), findings.slo.to_string().into());
    map.insert(
        "peak".into(),
        findings.peak.as_ref().map_or(Value::Null, |p| json!({ "rps": p.rps, "concurrency": p.concurrency })),
    );
    map.insert(
        "knee".into(),
        findings
            .knee
            .as_ref()
            .map_or(Value::Null, |k| json!({ "concurrency": k.concurrency, "rps": k.rps, "p99_ns": k.p99_ns })),
    );
    let kinds = FailedKind::of_trials(experiment.trials.iter());
    map.insert("failed_answers".into(), failed::list(&kinds));
    map.insert("trials".into(), trials.into());
    map.insert("stopped_by".into(), json!(findings.stopped_by));
    map.insert("held_s".into(), findings.held_s.into());
    map.insert("elapsed_s".into(), findings.elapsed_s.into());
    map.insert("fitted".into(), context.setup.to_vec().into());
    map.insert("server".into(), server_document(&found.server));
    map.insert("profiles".into(), profiles.map(profiles_document).into());
    Value::Object(map)
}
