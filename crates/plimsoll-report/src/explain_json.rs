//! The JSON document of an explanation, which states the cause that limits the load line:
//! `plimsoll.explain/2`.

use crate::document::to_json_value;
use crate::json::{CommonDocumentFields, LoadLineFields, LoadSetupFields};
use crate::load_profiles::ProfilesFields;
use crate::remedy::sentence_text;
use crate::run::RunContext;
use crate::sampled_functions::SampledFields;
use crate::server::ServerFields;
use plimsoll_analysis::explain::{
    Explanation, InFlightBreakdown, InterventionReport, LikelyCause, SettingEffect, SettingValueLoad, SignalEvidence,
};
use plimsoll_analysis::finding::{ExplainFinding, SearchFinding};
use plimsoll_analysis::profile_findings::SingleTargetProfiles;
use plimsoll_analysis::{Assessment, StopReason};
use plimsoll_model::Experiment;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct ExplainDocument<'a> {
    #[serde(flatten)]
    frame: CommonDocumentFields<'a>,
    warnings: &'a [String],
    cause: &'static str,
    causes: Vec<CauseFields<'a>>,
    abstained: bool,
    sentence: String,
    whereabouts: BTreeMap<&'static str, InFlightFields>,
    evidence: Vec<EvidenceFields>,
    ruled_out: Vec<RuledOutFields<'a>>,
    to_tell: Vec<String>,
    interventions: Vec<InterventionFields<'a>>,
    varied: Option<VariedSettingFields>,
    predicted: Option<LinePredictionFields>,
    demands: Vec<DemandFields>,
    load_line_rps: LoadLineFields,
    slo: String,
    stopped_by: StopReason,
    elapsed_s: Option<f64>,
    server: ServerFields<'a>,
    profiles: Option<FunctionsFields<'a>>,
}

/// The functions that use the server's CPU time, either from profiles that the server recorded
/// itself, or from stack samples of the kernel.
#[derive(Serialize)]
#[serde(untagged)]
enum FunctionsFields<'a> {
    Served(ProfilesFields<'a>),
    Sampled(SampledFields<'a>),
}

/// Chooses the source of the functions' CPU cost in the document. The first choice is the server's
/// own profiles, if the profiles of two loads could be compared. The second choice is stack samples
/// that the kernel took. The last choice is the server's own profiles without a comparison.
fn choose_functions<'a>(
    explanation: &'a Explanation,
    profiles: Option<&'a Assessment<SingleTargetProfiles>>,
) -> Option<FunctionsFields<'a>> {
    let served =
        |profiles: &'a Assessment<SingleTargetProfiles>| FunctionsFields::Served(ProfilesFields::new(profiles));
    let whole = profiles.filter(|profiles| profiles.doubts_and_figures().1.comparison.is_some());
    let sampled = || Some(FunctionsFields::Sampled(SampledFields::new(explanation.functions.as_ref()?)));
    whole.map(served).or_else(sampled).or_else(|| profiles.map(served))
}

#[derive(Serialize)]
struct CauseFields<'a> {
    name: &'static str,
    probability: f64,
    subject: &'a str,
}

/// The number of requests in flight in one load: in total, and at each place in the system.
#[derive(Serialize)]
struct InFlightFields {
    in_flight: f64,
    requests: BTreeMap<&'static str, f64>,
}

impl From<&InFlightBreakdown> for InFlightFields {
    fn from(of: &InFlightBreakdown) -> InFlightFields {
        let requests = of.parts.iter().map(|part| (part.place.identifier(), part.requests)).collect();
        InFlightFields { in_flight: of.in_flight, requests }
    }
}

#[derive(Serialize)]
struct EvidenceFields {
    signal: &'static str,
    unit: &'static str,
    low: Option<f64>,
    line: Option<f64>,
    past: Option<f64>,
    supports: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct RuledOutFields<'a> {
    name: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct InterventionFields<'a> {
    name: &'static str,
    predictions: BTreeMap<&'static str, &'a str>,
    measured: &'a str,
    supports: Option<&'static str>,
    denies: Vec<&'static str>,
}

#[derive(Serialize)]
struct VariedSettingFields {
    elasticity: Option<f64>,
    steps: Vec<VariedStepFields>,
}

#[derive(Serialize)]
struct VariedStepFields {
    value: f64,
    goodput_rps: f64,
    counts: bool,
}

#[derive(Serialize)]
struct LinePredictionFields {
    line_rps: f64,
    line_rps_lower: f64,
    line_rps_upper: f64,
    next_cause: &'static str,
    doubled_rps: Option<f64>,
}

#[derive(Serialize)]
struct DemandFields {
    resource: &'static str,
    us_per_request: f64,
    ceiling_rps: f64,
}

impl<'a> From<&'a LikelyCause> for CauseFields<'a> {
    fn from(named: &'a LikelyCause) -> CauseFields<'a> {
        CauseFields { name: named.cause.identifier(), probability: named.probability, subject: &named.subject }
    }
}

impl<'a> From<&'a InterventionReport> for InterventionFields<'a> {
    fn from(intervened: &'a InterventionReport) -> InterventionFields<'a> {
        let InterventionReport { intervention, predictions, measured, supports, contradicts: denies } = intervened;
        InterventionFields {
            name: intervention.name(),
            predictions: predictions.iter().map(|(cause, text)| (cause.identifier(), text.as_str())).collect(),
            measured,
            supports: supports.first().map(|cause| cause.identifier()),
            denies: denies.iter().map(|cause| cause.identifier()).collect(),
        }
    }
}

impl From<&SettingEffect> for VariedSettingFields {
    fn from(varied: &SettingEffect) -> VariedSettingFields {
        let step = |step: &SettingValueLoad| VariedStepFields {
            value: step.value,
            goodput_rps: step.goodput_rps,
            counts: !step.is_void,
        };
        VariedSettingFields { elasticity: varied.elasticity, steps: varied.steps.iter().map(step).collect() }
    }
}

impl From<&SignalEvidence> for EvidenceFields {
    fn from(evidence: &SignalEvidence) -> EvidenceFields {
        let (text, supports) = (evidence.signal.text(), evidence.supports.identifier());
        let SignalEvidence { low, line, past, .. } = *evidence;
        EvidenceFields { signal: text.name, unit: text.unit, low, line, past, supports, source: text.source }
    }
}

/// Renders the JSON document of an explanation.
pub(crate) fn explain_document(
    experiment: &Experiment,
    context: &RunContext,
    finding: &ExplainFinding,
    warnings: &[String],
    profiles: Option<&Assessment<SingleTargetProfiles>>,
) -> Value {
    let ExplainFinding { search: SearchFinding { findings, server, .. }, explanation } = finding;
    let Explanation { ruled_out, line_prediction, demands, load_line_rps, .. } = explanation;
    let made = LoadSetupFields::new(context.plan, context.injectors);
    to_json_value(&ExplainDocument {
        frame: CommonDocumentFields::new("plimsoll.explain/2", experiment, Some(made)),
        warnings,
        cause: explanation.cause.identifier(),
        causes: explanation.causes.iter().map(CauseFields::from).collect(),
        abstained: explanation.abstained,
        sentence: sentence_text(&explanation.sentence),
        whereabouts: ["low", "line", "past"]
            .into_iter()
            .zip(&explanation.request_places)
            .filter_map(|(load, of)| Some((load, of.as_ref()?.into())))
            .collect(),
        evidence: explanation.evidence.iter().map(EvidenceFields::from).collect(),
        ruled_out: ruled_out.iter().map(|(cause, why)| RuledOutFields { name: cause.identifier(), why }).collect(),
        to_tell: explanation.missing_evidence.iter().map(sentence_text).collect(),
        interventions: explanation.interventions.iter().map(InterventionFields::from).collect(),
        varied: explanation.setting_effect.as_ref().map(VariedSettingFields::from),
        predicted: line_prediction.map(|predicted| LinePredictionFields {
            line_rps: predicted.line_rps,
            line_rps_lower: predicted.range_rps.0,
            line_rps_upper: predicted.range_rps.1,
            next_cause: predicted.next_cause.identifier(),
            doubled_rps: predicted.doubled_limit_line_rps,
        }),
        demands: demands
            .iter()
            .map(|demand| DemandFields {
                resource: demand.resource.identifier(),
                us_per_request: demand.per_request_s * 1e6,
                ceiling_rps: demand.ceiling_rps,
            })
            .collect(),
        load_line_rps: LoadLineFields::from(*load_line_rps),
        slo: findings.slo.to_string(),
        stopped_by: findings.stopped_by,
        elapsed_s: experiment.elapsed_ns.map(|ns| ns as f64 / 1e9),
        server: ServerFields::new(server),
        profiles: choose_functions(explanation, profiles),
    })
}
