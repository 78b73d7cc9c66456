//! The JSON documents of single loads, sweeps and searches for the load line, and the common fields
//! of all documents. The file `docs/reference/json.md` describes every field. Each document is a
//! Rust type whose fields are the fields of the JSON object. Within one schema version, fields may
//! be added, but no field is removed.
//!
//! Not here: the documents of comparisons (`prove_json`), explanations (`explain_json`), profiles
//! (`profile`) and two recordings (`diff`, `searches`).

use crate::agents::{self, AgentFields};
use crate::csv::load_purpose_name;
use crate::document::to_json_value;
use crate::failure_kinds::{FailedAnswerFields, failed_answers};
use crate::format::{self, round_to_digits};
use crate::load_profiles::ProfilesFields;
use crate::remedy::sentence_text;
use crate::replay::{self, ReplayFields, ReplayLineFields};
use crate::run::{RunContext, connection_protocol, errno_message, load_text, stop_text};
use crate::server::ServerFields;
use plimsoll_analysis::find::{self, SloBreakKind};
use plimsoll_analysis::finding::{
    Bottleneck, HeadroomLoadResult, InstanceEstimate, RunFinding, SearchFinding, SweepFigures, SweepFinding,
    SweepLevel, bottleneck_of_search,
};
use plimsoll_analysis::levels::Level;
use plimsoll_analysis::profile_findings::SingleTargetProfiles;
use plimsoll_analysis::stages::StageFigures;
use plimsoll_analysis::summary::Latency;
use plimsoll_analysis::{
    Assessment, Doubts, FailedResponseGroup, Interference, RouteSummary, ServerView, StopReason, Summary, TrialOutcome,
    fleet,
};
use plimsoll_model::measures::{Figure, FigureKind, FigureRef, TallyKey};
use plimsoll_model::{
    CallFault, CountsByKey, Experiment, GrpcStatus, H2Error, Injector, Ledger, LoadEnd, LoadShape, MachineLimits,
    PlanRecord, RequestFailure, Run, SourceRevision, TlsFailure, Trial,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Formats a document as indented JSON. Fractional numbers are rounded to seven significant digits,
/// more than any measurement has: 2002.3, not 2002.3000000000002. Whole numbers are exact.
pub fn indented_json_text(document: &Value) -> String {
    format!("{}\n", crate::visible_controls::pretty_json(&round_fractional_numbers(document)))
}

/// Rounds all fractional numbers of a document to seven significant digits.
pub(crate) fn round_fractional_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or(Value::Null, |f| round_to_digits(f, 7).into())
        }
        Value::Array(items) => items.iter().map(round_fractional_numbers).collect::<Vec<_>>().into(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), round_fractional_numbers(value))).collect())
        }
        other => other.clone(),
    }
}

/// The common fields of the documents of experiments: schema, start time, command, machine, load
/// settings and agents.
#[derive(Serialize)]
pub(crate) struct CommonDocumentFields<'a> {
    schema: &'static str,
    started_unix_ms: u64,
    command: &'a [String],
    environment: MachineFields<'a>,
    #[serde(flatten)]
    load_setup: Option<LoadSetupFields<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    agents: Vec<AgentFields>,
}

/// The machine that generates the load: its hardware and its limits, with the source revision and
/// the tags of the run.
#[derive(Serialize)]
struct MachineFields<'a> {
    plimsoll: &'a str,
    kernel: &'a str,
    cpu: &'a str,
    cores: u32,
    memory_bytes: u64,
    files_max: u64,
    target_local: bool,
    #[serde(skip_serializing_if = "MachineLimits::is_none")]
    limits: MachineLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a SourceRevision>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [(String, String)],
}

/// The settings of an experiment's loads: request, seed, protocol and threads.
#[derive(Serialize)]
pub(crate) struct LoadSetupFields<'a> {
    url: String,
    method: &'a str,
    seed: u64,
    http: &'static str,
    streams_max: u32,
    threads: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<String>>,
}

impl<'a> LoadSetupFields<'a> {
    /// Creates the settings from the plan of a load and from the machines that generated the load.
    pub(crate) fn new(plan: &'a PlanRecord, injectors: &[Injector]) -> LoadSetupFields<'a> {
        let addresses = || plan.connection_plan.addresses.iter().map(ToString::to_string).collect();
        LoadSetupFields {
            url: plan.traffic.url(),
            method: &plan.traffic.first_route().method,
            seed: plan.load.seed,
            http: plan.connection_plan.http.name(),
            streams_max: plan.connection_plan.streams_max,
            threads: injectors.iter().map(|injector| injector.workers).sum(),
            addresses: plan.connection_plan.unix.is_none().then(addresses),
        }
    }
}

impl<'a> CommonDocumentFields<'a> {
    /// Creates the common fields of an experiment's document. `load_setup` contains the settings of
    /// the experiment's loads; `None` means that the experiment has no load.
    pub(crate) fn new(
        schema: &'static str,
        experiment: &'a Experiment,
        load_setup: Option<LoadSetupFields<'a>>,
    ) -> CommonDocumentFields<'a> {
        let environment = &experiment.environment;
        let machine = MachineFields {
            plimsoll: &environment.plimsoll,
            kernel: &environment.kernel,
            cpu: &environment.cpu,
            cores: environment.cores,
            memory_bytes: environment.memory_bytes,
            files_max: environment.files_max,
            target_local: environment.target_local,
            limits: environment.limits,
            revision: environment.revision.as_ref(),
            tags: experiment.settings.as_ref().map_or(&[], |settings| &settings.output.tags),
        };
        let Experiment { started_unix_ms, command, .. } = experiment;
        let agents = agents::agent_fields(&fleet::sum_agents(experiment.trials.iter().map(|trial| &trial.run)));
        let load_setup = load_setup.map(|load_setup| match agents.as_slice() {
            [] => load_setup,
            agents => LoadSetupFields { threads: agents.iter().map(AgentFields::thread_count).sum(), ..load_setup },
        });
        CommonDocumentFields {
            schema,
            started_unix_ms: *started_unix_ms,
            command,
            environment: machine,
            load_setup,
            agents,
        }
    }
}

/// The JSON fields `disturbed` and `others`: whether unrelated processes disturbed the measurement,
/// and the CPU that they used.
#[derive(Serialize)]
pub(crate) struct InterferenceFields<'a> {
    disturbed: bool,
    others: InterferenceUse<'a>,
}

#[derive(Serialize)]
struct InterferenceUse<'a> {
    cores: Option<f64>,
    steal_share: Option<f64>,
    reason: Option<&'a str>,
}

impl<'a> From<&'a Interference> for InterferenceFields<'a> {
    fn from(others: &'a Interference) -> InterferenceFields<'a> {
        let Interference { cores, steal_share, is_disturbed: disturbed, reason, .. } = others;
        let others = InterferenceUse { cores: *cores, steal_share: *steal_share, reason: reason.as_deref() };
        InterferenceFields { disturbed: *disturbed, others }
    }
}

/// The distribution of times in ns, or of sizes in bytes. A percentile is null if too few values
/// were measured to state the percentile.
#[derive(Serialize)]
pub(crate) struct DistributionFields {
    count: u64,
    min: u64,
    mean: f64,
    stdev: f64,
    p50: Option<u64>,
    p75: Option<u64>,
    p90: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    max: u64,
}

impl From<&Latency> for DistributionFields {
    fn from(times: &Latency) -> DistributionFields {
        DistributionFields {
            count: times.count,
            min: times.min_ns,
            mean: times.mean_ns,
            stdev: times.stdev_ns,
            p50: times.quantiles.p50.time_ns(),
            p75: times.quantiles.p75.time_ns(),
            p90: times.quantiles.p90.time_ns(),
            p95: times.quantiles.p95.time_ns(),
            p99: times.quantiles.p99.time_ns(),
            p999: times.quantiles.p999.time_ns(),
            max: times.max_ns,
        }
    }
}

/// The number of scheduled requests of a load by outcome. The numbers of all outcomes add up to the
/// field `scheduled`.
#[derive(Serialize)]
struct LedgerFields<'a> {
    scheduled: u64,
    succeeded: u64,
    failed: FailureCountFields<'a>,
    unsent: u64,
    in_flight: u64,
}

impl<'a> From<&'a Ledger> for LedgerFields<'a> {
    fn from(ledger: &'a Ledger) -> LedgerFields<'a> {
        let Ledger { scheduled, succeeded, unsent, in_flight, .. } = *ledger;
        LedgerFields { scheduled, succeeded, failed: FailureCountFields(ledger), unsent, in_flight }
    }
}

/// Serialises a map from each kind of failure to the number of requests that failed with it.
struct FailureCountFields<'a>(&'a Ledger);

impl Serialize for FailureCountFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(RequestFailure::ALL.iter().map(|kind| (kind.name(), self.0.failed[*kind as usize])))
    }
}

/// Serialises a tally (counts by numeric key) as a JSON map. The second field of this type is the
/// function that formats a key of the tally as text.
struct KeyedCounts<'a, F>(&'a CountsByKey, F);

impl<F: Fn(u16) -> String> Serialize for KeyedCounts<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, count)| (self.1(key), count)))
    }
}

/// Serialises the figures of a load as JSON fields. The table of measures
/// (`plimsoll_model::measures`) gives the name of each field.
struct MeasuredFigureFields<'a>(&'a Summary);

impl Serialize for MeasuredFigureFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let summary = self.0;
        let held = summary.routes_sum.figure_values().chain(summary.load.figure_values());
        let named = held.filter_map(|(figure, held)| Some((figure.json?, figure, held)));
        serializer.collect_map(named.map(|(name, figure, held)| (name, figure_value(summary, figure, held))))
    }
}

/// Converts a measured figure to its JSON value. The table of measures defines the kind of the
/// figure.
fn figure_value(summary: &Summary, figure: &Figure, value: FigureRef<Latency>) -> Value {
    match value {
        FigureRef::Count(count) => count.into(),
        FigureRef::Times(times) => to_json_value(&DistributionFields::from(times)),
        FigureRef::Tally(tally) => {
            let text = |key: u16| match figure.kind {
                FigureKind::Tally(TallyKey::SystemError) => errno_message(key),
                FigureKind::Tally(TallyKey::Address) => summary.address(key).to_owned(),
                FigureKind::Tally(TallyKey::H2Error) => H2Error::from_code(key.into()).name().to_owned(),
                FigureKind::Tally(TallyKey::GrpcStatus) => GrpcStatus::from_code(key.into()).name().to_owned(),
                FigureKind::Tally(TallyKey::CallFault) => match CallFault::from_number(key) {
                    Some(fault) => fault.name().to_owned(),
                    None => key.to_string(),
                },
                FigureKind::Tally(TallyKey::TlsFailure) => TlsFailure::from_number(key).name().to_owned(),
                _ => key.to_string(),
            };
            to_json_value(&KeyedCounts(tally, text))
        }
        FigureRef::Ledger(ledger) => to_json_value(&LedgerFields::from(ledger)),
        FigureRef::Workers(workers) => workers.len().into(),
    }
}

/// The measured figures of one load.
#[derive(Serialize)]
struct LoadFields<'a> {
    requests: u64,
    success_rate: f64,
    throughput_rps: f64,
    in_flight_mean: Option<f64>,
    duration_s: f64,
    #[serde(flatten)]
    counted: MeasuredFigureFields<'a>,
    protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<SessionCounts>,
    generator: GeneratorFields,
    ended: String,
    #[serde(flatten)]
    others: InterferenceFields<'a>,
}

/// The number of sessions of a load by outcome. A session is a sequence of requests by one user.
#[derive(Serialize)]
struct SessionCounts {
    started: u64,
    completed: u64,
    abandoned: u64,
    cut: u64,
    time_ns: DistributionFields,
}

impl SessionCounts {
    fn new(summary: &Summary) -> Option<SessionCounts> {
        let load = &summary.load;
        (load.sessions_started > 0).then(|| SessionCounts {
            started: load.sessions_started,
            completed: load.sessions_completed,
            abandoned: load.sessions_abandoned,
            cut: load.sessions_cut,
            time_ns: DistributionFields::from(&load.session_time),
        })
    }
}

/// The figures of the load generator during one load: its CPU use, its lag, and whether it was the
/// limit.
#[derive(Serialize)]
struct GeneratorFields {
    cpu_s: f64,
    work_share: f64,
    lag_ns: DistributionFields,
    read_wait_ns: DistributionFields,
    sent_share: f64,
    limited: bool,
    reason: Option<String>,
}

impl<'a> From<&'a Summary> for LoadFields<'a> {
    fn from(summary: &'a Summary) -> LoadFields<'a> {
        let generator = &summary.generator;
        LoadFields {
            requests: summary.requests,
            success_rate: summary.success_rate,
            throughput_rps: summary.throughput_rps,
            in_flight_mean: summary.in_flight_mean,
            duration_s: summary.duration_ns as f64 / 1e9,
            counted: MeasuredFigureFields(summary),
            protocol: connection_protocol(summary),
            sessions: SessionCounts::new(summary),
            generator: GeneratorFields {
                cpu_s: generator.cpu_s,
                work_share: generator.work_share,
                lag_ns: DistributionFields::from(&generator.lag),
                read_wait_ns: DistributionFields::from(&generator.read_wait),
                sent_share: generator.sent_share,
                limited: generator.is_limit,
                reason: generator.reason.as_ref().map(sentence_text),
            },
            ended: match &summary.ending {
                Some(LoadEnd::Finished) => "finished".to_owned(),
                Some(LoadEnd::Stopped(stop)) => format!("stopped: {}", stop_text(stop)),
                None => "cut off".to_owned(),
            },
            others: InterferenceFields::from(&summary.interference),
        }
    }
}

/// One stage of a load. The fields are the stage's level in users or requests/s at its start and
/// its end, and the figures of the stage.
#[derive(Serialize)]
struct StageFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_users: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_users: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_rps: Option<f64>,
    start_s: f64,
    duration_s: f64,
    scheduled: u64,
    succeeded: u64,
    achieved_rps: f64,
    success_rate: f64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: u64,
}

impl StageFields {
    fn new(load: &LoadShape, stage: &StageFigures) -> StageFields {
        let closed = matches!(load, LoadShape::Closed { .. });
        StageFields {
            from_users: closed.then_some(stage.from),
            to_users: closed.then_some(stage.to),
            from_rps: (!closed).then_some(stage.from),
            to_rps: (!closed).then_some(stage.to),
            start_s: stage.start_ns as f64 / 1e9,
            duration_s: stage.duration_ns as f64 / 1e9,
            scheduled: stage.ledger.scheduled,
            succeeded: stage.ledger.succeeded,
            achieved_rps: stage.achieved_rps,
            success_rate: stage.success_rate,
            p50_ns: stage.p50.time_ns(),
            p99_ns: stage.p99.time_ns(),
            max_ns: stage.max_ns,
        }
    }
}

/// The figures of one route (a kind of request). The document of a load with several routes has one
/// entry for each route.
#[derive(Serialize)]
struct RouteFields<'a> {
    name: &'a str,
    requests: u64,
    success_rate: f64,
    throughput_rps: f64,
    response_time_ns: DistributionFields,
    service_time_ns: DistributionFields,
    ttfb_ns: DistributionFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_message_ns: Option<DistributionFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_gap_ns: Option<DistributionFields>,
    bytes_in: u64,
    bytes_in_window: u64,
    failed: FailureCountFields<'a>,
    statuses: KeyedCounts<'a, fn(u16) -> String>,
}

impl<'a> From<&'a RouteSummary> for RouteFields<'a> {
    fn from(route: &'a RouteSummary) -> RouteFields<'a> {
        let figures = &route.figures;
        RouteFields {
            name: &route.name,
            requests: route.requests,
            success_rate: route.success_rate,
            throughput_rps: route.throughput_rps,
            response_time_ns: DistributionFields::from(&figures.response),
            service_time_ns: DistributionFields::from(&figures.service),
            ttfb_ns: DistributionFields::from(&figures.ttfb),
            first_message_ns: message_time_fields(&figures.first_message),
            message_gap_ns: message_time_fields(&figures.message_gap),
            bytes_in: figures.answers_bytes,
            bytes_in_window: figures.answers_bytes_in_window,
            failed: FailureCountFields(&figures.ledger),
            statuses: KeyedCounts(&figures.statuses, |status| status.to_string()),
        }
    }
}

/// Returns the distribution of the message times of a stream; `None` if no message arrived.
fn message_time_fields(times: &Latency) -> Option<DistributionFields> {
    (times.count > 0).then(|| DistributionFields::from(times))
}

/// The document `plimsoll.run/1` of a single load.
#[derive(Serialize)]
struct RunDocument<'a> {
    #[serde(flatten)]
    frame: CommonDocumentFields<'a>,
    warnings: &'a [String],
    load: String,
    #[serde(flatten)]
    figures: LoadFields<'a>,
    failed_answers: Vec<FailedAnswerFields<'a>>,
    stages: Vec<StageFields>,
    routes: Vec<RouteFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayFields<'a>>,
    fitted: &'a [String],
    server: ServerFields<'a>,
    profiles: Option<ProfilesFields<'a>>,
}

/// Renders the document of a single load: `plimsoll.run/1`.
pub(crate) fn run_document(
    experiment: &Experiment,
    context: &RunContext,
    finding: &RunFinding,
    warnings: &[String],
    profiles: Option<&Assessment<SingleTargetProfiles>>,
) -> Value {
    let (plan, summary) = (context.plan, &finding.summary);
    to_json_value(&RunDocument {
        frame: CommonDocumentFields::new(
            "plimsoll.run/1",
            experiment,
            Some(LoadSetupFields::new(plan, context.injectors)),
        ),
        warnings,
        load: load_text(plan),
        figures: LoadFields::from(summary),
        failed_answers: failed_answers(&summary.failed_answers),
        stages: summary.stages.iter().map(|stage| StageFields::new(&plan.load.shape, stage)).collect(),
        routes: finding.routes.iter().map(RouteFields::from).collect(),
        replay: replay::replay_fields(plan, summary),
        fitted: context.plan_adjustments,
        server: ServerFields::new(&finding.server),
        profiles: profiles.map(ProfilesFields::new),
    })
}

/// The document `plimsoll.sweep/1` of a sweep, which measures the server at several numbers of
/// concurrent users.
#[derive(Serialize)]
struct SweepDocument<'a> {
    #[serde(flatten)]
    frame: CommonDocumentFields<'a>,
    #[serde(flatten)]
    others: InterferenceFields<'a>,
    warnings: &'a [String],
    peak: Option<SweepPointFields>,
    knee: Option<SweepPointFields>,
    failed_answers: Vec<FailedAnswerFields<'a>>,
    levels: Vec<LevelFields<'a>>,
}

/// The figures of one level of a sweep: the level with the peak throughput, or the knee. The knee
/// is the level with the fewest users that reaches 95 % of the peak throughput.
#[derive(Serialize)]
struct SweepPointFields {
    rps: f64,
    concurrency: u64,
    p99_ns: Option<u64>,
}

impl From<&Level> for SweepPointFields {
    fn from(level: &Level) -> SweepPointFields {
        SweepPointFields { rps: level.rps, concurrency: level.load as u64, p99_ns: level.p99_ns.map(|ns| ns as u64) }
    }
}

/// One level (number of concurrent users) of a sweep: its figures, or the error that prevented the
/// measurement.
#[derive(Serialize)]
#[serde(untagged)]
enum LevelFields<'a> {
    Measured(Box<MeasuredLevel<'a>>),
    Skipped { concurrency: u64, error: String },
}

#[derive(Serialize)]
struct MeasuredLevel<'a> {
    #[serde(flatten)]
    figures: LoadFields<'a>,
    concurrency: u64,
    throughput_error: Option<f64>,
    throughput_error_of: Option<&'static str>,
    visits: Vec<LevelVisitFields>,
    server: ServerFields<'a>,
}

/// The figures of one visit to a level, which is one measurement at a number of concurrent users. A
/// sweep may measure each level several times, once in each visit.
#[derive(Serialize)]
struct LevelVisitFields {
    start_s: f64,
    duration_s: f64,
    throughput_rps: f64,
    disturbed: bool,
    others_cores: Option<f64>,
}

impl LevelVisitFields {
    fn from_visit((visit, rps): (&&Trial, f64)) -> LevelVisitFields {
        let others = Interference::from_run(&visit.run);
        LevelVisitFields {
            start_s: visit.start_ns as f64 / 1e9,
            duration_s: visit.run.duration_ns() as f64 / 1e9,
            throughput_rps: rps,
            disturbed: others.is_disturbed,
            others_cores: others.cores,
        }
    }
}

impl<'a> From<&'a SweepLevel<'a>> for LevelFields<'a> {
    fn from(level: &'a SweepLevel<'a>) -> LevelFields<'a> {
        let concurrency = level.concurrency;
        match &level.outcome {
            Ok(SweepFigures { load, summary, error, is_error_between_visits: replicated, .. }) => {
                LevelFields::Measured(Box::new(MeasuredLevel {
                    figures: LoadFields::from(summary),
                    concurrency,
                    throughput_error: *error,
                    throughput_error_of: error.map(|_| if *replicated { "visits" } else { "run" }),
                    visits: load.visits.iter().zip(load.visit_rates_rps()).map(LevelVisitFields::from_visit).collect(),
                    server: ServerFields::new(&ServerView {
                        usage: load.server_use(),
                        source: None,
                        runs: load.visits.iter().map(|visit| &visit.run).collect(),
                    }),
                }))
            }
            Err(reason) => LevelFields::Skipped { concurrency, error: sentence_text(&format::skip_reason(reason)) },
        }
    }
}

/// Renders the document of a sweep over numbers of concurrent users: `plimsoll.sweep/1`.
pub(crate) fn sweep_document(experiment: &Experiment, finding: &SweepFinding, warnings: &[String]) -> Value {
    let first = experiment.trials.first().map(|trial| &trial.run);
    let kinds = FailedResponseGroup::failures_of_trials(experiment.trials.iter());
    to_json_value(&SweepDocument {
        frame: CommonDocumentFields::new(
            "plimsoll.sweep/1",
            experiment,
            first.map(|run| LoadSetupFields::new(&run.plan, &run.injectors)),
        ),
        others: InterferenceFields::from(&finding.interference),
        warnings,
        peak: finding.peak.as_ref().map(SweepPointFields::from),
        knee: finding.knee.as_ref().map(SweepPointFields::from),
        failed_answers: failed_answers(&kinds),
        levels: finding.levels.iter().map(LevelFields::from).collect(),
    })
}

/// The document `plimsoll.find/1` of a search for the load line.
#[derive(Serialize)]
struct FindDocument<'a> {
    #[serde(flatten)]
    frame: CommonDocumentFields<'a>,
    warnings: &'a [String],
    #[serde(flatten)]
    others: InterferenceFields<'a>,
    load_line_rps: LoadLineFields,
    arrivals: &'static str,
    capacity: Option<CapacityFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayLineFields>,
    doubts: Vec<String>,
    stalls: Option<StallsFields<'a>>,
    failing: Option<ConstantFailureFields>,
    gone: Option<String>,
    slo: String,
    peak: Option<PeakFields>,
    knee: Option<KneeFields>,
    failed_answers: Vec<FailedAnswerFields<'a>>,
    trials: Vec<TrialFields>,
    stopped_by: StopReason,
    seen_s: f64,
    provable_in_s: Option<f64>,
    held_by: Option<BottleneckFields>,
    planned: Option<PlannedLoadFields>,
    needed: Option<InstanceEstimateFields>,
    soak: Option<SoakFields>,
    elapsed_s: f64,
    fitted: &'a [String],
    server: ServerFields<'a>,
    profiles: Option<ProfilesFields<'a>>,
}

#[derive(Serialize)]
struct BottleneckFields {
    name: &'static str,
    subject: String,
    how: String,
}

#[derive(Serialize)]
struct PlannedLoadFields {
    headroom: f64,
    rate_rps: f64,
    in_flight: Option<f64>,
    p99_ns: Option<f64>,
    held: bool,
}

#[derive(Serialize)]
struct SoakFields {
    rate_rps: f64,
    asked_s: f64,
    met_s: f64,
    broke: bool,
    goodput_rps_after: Option<f64>,
    text: String,
    void_pieces: usize,
}

#[derive(Serialize)]
struct InstanceEstimateFields {
    rate_rps: f64,
    instances: f64,
    instances_min: f64,
    cores: Option<f64>,
}

/// The load line with its interval, in 1/s. The estimate of the load line is null if the search
/// could not prove the load line. The interval contains the load line with the probability
/// `confidence`.
#[derive(Serialize)]
pub(crate) struct LoadLineFields {
    estimate: Option<f64>,
    lower: f64,
    upper: Option<f64>,
    confidence: f64,
    confirmed: bool,
}

impl From<find::LoadLine> for LoadLineFields {
    fn from(line: find::LoadLine) -> LoadLineFields {
        let find::LoadLine { rps, lower, upper, has_estimate: provable, is_confirmed: confirmed } = line;
        let estimate = provable.then_some(rps);
        LoadLineFields { estimate, lower, upper, confidence: find::LoadLine::INTERVAL_CONFIDENCE, confirmed }
    }
}

/// The throughput of the server while its queue is never empty, in 1/s, with the standard error.
#[derive(Serialize)]
struct CapacityFields {
    rps: f64,
    error_rps: f64,
    dispersion: f64,
    trials: usize,
    set_aside: usize,
}

impl From<find::Capacity> for CapacityFields {
    fn from(capacity: find::Capacity) -> CapacityFields {
        let find::Capacity {
            rps, error_rps, dispersion, undisturbed_trials: trials, disturbed_trials: set_aside, ..
        } = capacity;
        CapacityFields { rps, error_rps, dispersion, trials, set_aside }
    }
}

#[derive(Serialize)]
struct StallsFields<'a> {
    count: usize,
    longest_s: f64,
    every_s: f64,
    forbids: Option<&'a str>,
}

#[derive(Serialize)]
struct ConstantFailureFields {
    share: f64,
    from_rps: f64,
    to_rps: f64,
    later_than_ns: Option<u64>,
}

#[derive(Serialize)]
struct PeakFields {
    rps: f64,
    concurrency: u64,
}

#[derive(Serialize)]
struct KneeFields {
    concurrency: u64,
    rps: f64,
    p99_ns: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct TrialFields {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u64>,
    start_s: f64,
    duration_s: f64,
    achieved_rps: f64,
    success_rate: f64,
    p50_ns: u64,
    p99_ns: u64,
    lag_p99_ns: u64,
    work_share: f64,
    verdict: String,
    reason: String,
    sources: Vec<String>,
    sources_so_far: Option<u64>,
}

impl TrialFields {
    /// Creates the fields of a trial. `run` is the recording of the trial's load.
    pub(crate) fn new(trial: &TrialOutcome, run: &Run) -> TrialFields {
        // All machines of a load use the same source addresses, so the addresses of the first
        // machine suffice.
        let injector = run.injectors.first();
        TrialFields {
            kind: load_purpose_name(trial.purpose),
            offered_rps: trial.offered_rps(),
            concurrency: trial.user_count(),
            start_s: trial.start_ns as f64 / 1e9,
            duration_s: trial.duration_ns as f64 / 1e9,
            achieved_rps: trial.goodput_rps,
            success_rate: trial.success_rate,
            p50_ns: trial.p50_ns,
            p99_ns: trial.p99_ns,
            lag_p99_ns: trial.lag_p99_ns,
            work_share: trial.evidence.work_share,
            verdict: trial.verdict_name(),
            reason: sentence_text(&trial.reason),
            sources: injector.iter().flat_map(|it| &it.sources).map(ToString::to_string).collect(),
            sources_so_far: injector.and_then(Injector::local_addresses_so_far),
        }
    }
}

/// Renders the document of a search for the load line: `plimsoll.find/1`.
pub(crate) fn find_document(
    experiment: &Experiment,
    context: &RunContext,
    finding: &SearchFinding,
    warnings: &[String],
    doubts: &Doubts,
    profiles: Option<&Assessment<SingleTargetProfiles>>,
) -> Value {
    let findings = &finding.findings;
    let kinds = FailedResponseGroup::failures_of_trials(experiment.trials.iter());
    to_json_value(&FindDocument {
        frame: CommonDocumentFields::new(
            "plimsoll.find/1",
            experiment,
            Some(LoadSetupFields::new(context.plan, context.injectors)),
        ),
        warnings,
        others: InterferenceFields::from(&findings.interference),
        load_line_rps: findings.load_line.into(),
        arrivals: findings.arrivals.name(),
        capacity: findings.capacity.map(CapacityFields::from),
        replay: ReplayLineFields::from_findings(findings),
        doubts: doubts.inline_texts().map(sentence_text).collect(),
        stalls: findings.stalls.as_ref().map(|stalls| StallsFields {
            count: stalls.count,
            longest_s: stalls.longest_ns as f64 / 1e9,
            every_s: stalls.mean_interval_ns as f64 / 1e9,
            forbids: stalls.impossible_bound.as_deref(),
        }),
        gone: findings.target_loss.map(|gone| gone.server_loss_text()),
        failing: findings.constant_failure.map(|failing| ConstantFailureFields {
            share: failing.share,
            from_rps: failing.from_rps,
            to_rps: failing.to_rps,
            later_than_ns: match failing.kind {
                SloBreakKind::Failed => None,
                SloBreakKind::Late(bound) => Some(bound.bound_ns),
            },
        }),
        slo: findings.slo.to_string(),
        peak: findings.peak.as_ref().map(|peak| PeakFields { rps: peak.rps, concurrency: peak.users }),
        knee: findings.knee.as_ref().map(|knee| KneeFields {
            concurrency: knee.users,
            rps: knee.rps,
            p99_ns: knee.p99_ns,
        }),
        failed_answers: failed_answers(&kinds),
        trials: findings
            .trials
            .iter()
            .zip(&finding.server.runs)
            .map(|(trial, run)| TrialFields::new(trial, run))
            .collect(),
        stopped_by: findings.stopped_by,
        seen_s: findings.longest_pass_at_line_s,
        provable_in_s: findings.budget_for_estimate_s,
        planned: finding.planned_load.map(
            |HeadroomLoadResult { headroom, rate_rps, in_flight, p99_ns, is_sustained }| PlannedLoadFields {
                headroom,
                rate_rps,
                in_flight,
                p99_ns,
                held: is_sustained,
            },
        ),
        needed: finding.instance_estimate.map(|InstanceEstimate { rate_rps, instances, instances_min, cores }| {
            InstanceEstimateFields { rate_rps, instances, instances_min, cores }
        }),
        soak: finding.soak.as_ref().map(|soak| SoakFields {
            rate_rps: soak.rate_rps,
            asked_s: soak.requested_s,
            met_s: soak.met_s,
            broke: soak.violation.is_some(),
            goodput_rps_after: soak.violation.as_ref().map(|broke| broke.goodput_rps),
            text: soak.soak_result_text(),
            void_pieces: soak.void_segments,
        }),
        held_by: bottleneck_of_search(finding).map(|Bottleneck { cause, subject, effect: how }| BottleneckFields {
            name: cause.identifier(),
            subject,
            how,
        }),
        elapsed_s: findings.elapsed_s,
        fitted: context.plan_adjustments,
        server: ServerFields::new(&finding.server),
        profiles: profiles.map(ProfilesFields::new),
    })
}
