//! Fits a model to an access log. The model is a traffic file that generates similar traffic for
//! any length of time.
//!
//! The model reproduces the mix of endpoints, the sequence of a visitor's requests and the waits
//! between requests. The model also reproduces the frequency of each path and the rate of visits
//! over time. [`ModelDistances`] measures how well the model reproduces the log. Paths are drawn
//! independently by frequency, or once for each visit. In the model, no path depends on earlier
//! paths: a simulated visitor who views one item may buy a different item.
//!
//! Not here: reading logs, writing files, and random draws during a load (the engine).

mod distances;
mod redacted_targets;
mod sequences;
mod think_times;
mod visit_arrivals;
mod visitor_paths;
mod visits;

use crate::replay::{LogRequests, LoggedRequest};
use crate::survey::PathReplacement;
use crate::survey::endpoints::Endpoints;
use crate::survey::hashing::hash;
use plimsoll_model::{RouteNumber, redact};
use plimsoll_traffic::import::draft::{
    Draft, DraftAction, DraftBody, DraftData, DraftRequest, DraftScenario, DraftStep, DraftText,
};
use redacted_targets::{RedactedTargets, WITHHELD_KEY_PREFIX, WithheldRoutes};
use sequences::{SEQUENCES_MAX, Sequence, select_sequences};
use std::collections::BTreeMap;
use think_times::ThinkTimes;
use visitor_paths::EndpointRequests;
use visits::Visits;

pub use distances::{DivergentFigure, ModelDistances, StreamFigures, StreamRequest, cache_sizes, count_distinct_paths};
pub use visit_arrivals::VisitArrivals;
pub use visits::VISIT_REQUESTS_MAX;

/// The largest number of rows in a file of paths. If an endpoint has more requests than the file
/// may have rows, the file contains the path of every n-th request.
const ROWS_MAX: usize = 50_000;
/// The largest number of path templates that are distinguished while drawn requests are mapped to
/// the log's endpoints.
const TEMPLATES_MAX: usize = 1 << 20;
/// The model gets scenarios if at least this share of the log's requests is in visits with several
/// requests. If visits with several requests have a smaller share, the model is a mix of single
/// requests.
const MULTI_REQUEST_VISITS_SHARE_MIN: f64 = 0.05;
/// The largest weight of a request or scenario in the traffic file. Weights that are not whole
/// numbers are scaled so that the largest weight equals `WEIGHT_MAX`.
const WEIGHT_MAX: f64 = 1_000_000.0;

/// A model of an access log: a traffic file with its data files, and figures of the log to verify
/// the model.
#[derive(Debug, Clone)]
pub struct TrafficModel {
    /// The text of the traffic file, in TOML.
    pub text: String,
    /// The files with rows of paths, each with its name and content.
    pub files: Vec<(String, String)>,
    /// The rate of visits over time; for a mix of single requests, the rate of requests.
    pub visit_arrivals: VisitArrivals,
    /// The sizes of the model and of the log, for reports.
    pub facts: ModelFacts,
    /// The requests of the log, in order of start, for comparison with requests drawn from the
    /// model.
    pub stream: Vec<StreamRequest>,
    /// The length of the log, ns.
    pub span_ns: u64,
    /// The resolution of the log's timestamps, ns.
    pub resolution_ns: u64,
    /// The mean response time of each endpoint in the log, ns.
    pub response_times_mean_ns: Vec<u64>,
    endpoints: BTreeMap<(String, String), RouteNumber>,
    withheld: WithheldRoutes,
}

/// The sizes of a model and of its log, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// The number of requests of the log from which the model was fitted.
    pub requests: u64,
    /// The number of visits. Each request of a visit that was split counts as one visit.
    pub visits: u64,
    /// The number of visits that were too long and were split into single requests, and the number
    /// of requests in the split visits.
    pub split_visits: (u64, u64),
    /// The number of endpoints.
    pub endpoints: usize,
    /// The number of scenarios; 0 if the model is a mix of single requests.
    pub scenarios: usize,
    /// The number of distinct endpoint sequences of visits in the log.
    pub sequences: usize,
    /// The number of requests of the log that the model omits, by reason.
    pub omitted_requests: BTreeMap<String, u64>,
    /// The number of distinct path parts that look like secret keys and were replaced.
    pub keys_withheld: usize,
}

/// The names and options of a model that the user chooses.
#[derive(Clone, Copy)]
pub struct ModelOptions<'n> {
    /// The base URL for the traffic file.
    pub base: &'n str,
    /// The folder for files of paths.
    pub folder: &'n str,
    /// The comment lines for the beginning of the traffic file.
    pub comment_lines: &'n [String],
    /// Whether path parts that look like secret keys stay unchanged.
    pub keep_keys: bool,
}

/// Returns the path of a request as a CSV row, without its leading slash.
fn csv_row(target: &str) -> String {
    format!("\"{}\"\n", target.strip_prefix('/').unwrap_or(target).replace('"', "\"\""))
}

/// The method, path and name of a request to one endpoint, as stated in the traffic file.
struct RouteModel {
    method: String,
    target: DraftText,
    name: String,
}

impl TrafficModel {
    /// Fits a model to the requests of a log. `None` if the log has no usable requests.
    pub fn fit(gathered: LogRequests, seed: u64, names: &ModelOptions) -> Option<TrafficModel> {
        let resolution_ns = gathered.resolution_ns();
        let omitted_requests = gathered.skip_counts().clone();
        let routes: Vec<(String, String)> =
            gathered.methods_and_templates().map(|(m, t)| (m.to_owned(), t.to_owned())).collect();
        let (targets, requests, first_ns, span_ns) = gathered.into_time_order(seed)?;
        let targets = RedactedTargets::new(targets, names.keep_keys);
        let mut withheld = WithheldRoutes::new();
        let visits = Visits::from_requests(requests);
        let mut by_route: Vec<Vec<u32>> = vec![Vec::new(); routes.len()];
        let mut answers: Vec<(u128, u64)> = vec![(0, 0); routes.len()];
        let mut think_times = ThinkTimes::default();
        let mut own_paths = vec![EndpointRequests::default(); routes.len()];
        let mut stream = Vec::with_capacity(visits.requests.len());
        for (number, visit) in visits.visits.iter().enumerate() {
            let mut before: Option<LoggedRequest> = None;
            for request in visits.requests_of_visit(visit) {
                let route = usize::from(request.route);
                targets.note_route(request.target, &routes[route].0, request.route, &mut withheld);
                by_route[route].push(request.target);
                own_paths[route].add(number, request.target);
                answers[route].0 += u128::from(request.duration_us) * 1000;
                answers[route].1 += 1;
                let wait_ns = before.map(|before| {
                    let wait_ns = request.start_ns.saturating_sub(before.end_ns());
                    think_times.add(before.route, request.route, wait_ns);
                    wait_ns
                });
                let path = hash(targets.redacted_path(request.target).as_bytes(), u64::from(request.route));
                let (start_ns, route) = (request.start_ns - first_ns, request.route);
                stream.push(StreamRequest { start_ns, visit: number as u64, route, path, wait_ns });
                before = Some(*request);
            }
        }
        stream.sort_by_key(|request| request.start_ns);
        let is_mix =
            (visits.requests_in_longer_visits() as f64) < MULTI_REQUEST_VISITS_SHARE_MIN * visits.requests.len() as f64;
        // If the model is a mix of single requests, each request is a visit, so the rate of visits
        // is the rate of all requests.
        let starts = match is_mix {
            true => stream.iter().map(|request| (request.start_ns + first_ns, 1.0)).collect(),
            false => visits.weighted_visit_starts(),
        };
        let visit_arrivals = VisitArrivals::from_starts(&starts, first_ns, span_ns);
        let (base, mut about, load) =
            (Some(names.base.to_owned()), names.comment_lines.to_vec(), visit_arrivals.draft_load_table());
        if targets.keys > 0 {
            about.push(format!(
                "Parts of paths that look like secret keys are withheld: {WITHHELD_KEY_PREFIX}1 and so on stand for \
                 {withheld_parts} keys.",
                withheld_parts = targets.keys
            ));
        }
        let mut draft = Draft { base, about, load, ..Draft::default() };
        let mut files = Vec::new();
        let models: Vec<RouteModel> = routes
            .iter()
            .zip(&by_route)
            .zip(&own_paths)
            .map(|(((method, template), asked), own)| {
                let name = format!("{method} {}", redact::redact_path(template));
                let target = match asked.iter().all(|target| *target == asked[0]) {
                    true => DraftText::literal(asked.first().map_or("/", |target| targets.redacted_path(*target))),
                    false => {
                        let data = format!("paths{}", files.len() + 1);
                        let file = format!("{}/{data}.csv", names.folder);
                        // Paths that identify one visitor are used in the order of the log. A path
                        // of one visitor stays the same throughout a visit, so each visit takes one
                        // row of the file of paths. Paths that hardly ever repeat are also used in
                        // the order of the log, because random draws would repeat paths.
                        let in_order = own.should_use_log_order(asked, is_mix);
                        let rows = if in_order { &own.firsts } else { asked };
                        let step = rows.len().div_ceil(ROWS_MAX);
                        let rows = rows.iter().step_by(step).map(|target| csv_row(targets.redacted_path(*target)));
                        files.push((file.clone(), format!("path\n{}", rows.collect::<String>())));
                        let mut target = DraftText::literal("/");
                        target.push_value(&format!("{data}.path"));
                        let pick = if in_order { "sequential" } else { "random" };
                        draft.data.push(DraftData { name: data, file, pick, each_use: !in_order });
                        target
                    }
                };
                RouteModel { method: method.clone(), target, name }
            })
            .collect();
        let of_visit = |visit: &std::ops::Range<usize>| -> Vec<RouteNumber> {
            visits.requests_of_visit(visit).iter().map(|request| request.route).collect()
        };
        let sequences =
            visits.visits.iter().map(of_visit).collect::<std::collections::HashSet<Vec<RouteNumber>>>().len();
        if is_mix {
            let weights: Vec<f64> = by_route.iter().map(|asked| asked.len() as f64).collect();
            for (model, weight) in models.iter().zip(integer_weights(&weights)) {
                let step = model.draft_step(None, 1);
                draft.requests.push(DraftStep { weight: Some(weight), ..step });
            }
        } else {
            let kept = select_sequences(visits.visits.iter().map(of_visit), SEQUENCES_MAX);
            let weights: Vec<f64> = kept.iter().map(|sequence| sequence.weight).collect();
            for (sequence, weight) in kept.iter().zip(integer_weights(&weights)) {
                draft.scenarios.push(draft_scenario(sequence, weight, &models, &mut think_times));
            }
        }
        let facts = ModelFacts {
            requests: visits.requests.len() as u64,
            visits: visits.visits.len() as u64,
            split_visits: visits.split_visits,
            endpoints: routes.len(),
            scenarios: draft.scenarios.len(),
            sequences,
            omitted_requests,
            keys_withheld: targets.keys,
        };
        let text = draft.finish("the traffic model has no request to send").ok()?.text;
        let response_times_mean_ns =
            answers.iter().map(|(sum, count)| (sum / u128::from((*count).max(1))) as u64).collect();
        let endpoints = routes.into_iter().zip(0..).collect();
        Some(TrafficModel {
            text,
            files,
            visit_arrivals,
            facts,
            stream,
            span_ns,
            resolution_ns,
            response_times_mean_ns,
            endpoints,
            withheld,
        })
    }

    /// Returns a mapping from requests that were drawn from the model to the endpoints of the log.
    pub fn route_mapper<'m>(&'m self, fold: Option<&'m PathReplacement<'m>>) -> RouteMapper<'m> {
        // In a log, the first path templates have separate routes, and all later templates share
        // the route `(other paths)`. Requests drawn from the model are in another order than the
        // log, so the mapper finds each request's route by the text of the template.
        let endpoints = Endpoints::new(TEMPLATES_MAX);
        RouteMapper { endpoints, route_by_endpoint: &self.endpoints, withheld: &self.withheld, fold }
    }
}

/// Maps requests that were drawn from a model to the endpoints of the log.
pub struct RouteMapper<'m> {
    endpoints: Endpoints,
    route_by_endpoint: &'m BTreeMap<(String, String), RouteNumber>,
    withheld: &'m WithheldRoutes,
    fold: Option<&'m PathReplacement<'m>>,
}

impl RouteMapper<'_> {
    /// Returns the endpoint of a request, and an identifier of its path. The endpoint is
    /// `RouteNumber::MAX` if the log has no such endpoint.
    pub fn route(&mut self, method: &str, target: &str) -> (RouteNumber, u64) {
        let key = (method.to_owned(), target.to_owned());
        if let Some(route) = self.withheld.get(&key) {
            return (*route, hash(target.as_bytes(), u64::from(*route)));
        }
        let path = target.split('?').next().unwrap_or_default();
        let (number, _) = self.endpoints.add(method.as_bytes(), path.as_bytes(), self.fold);
        let template = self.endpoints.all.get(number as usize).map_or("(other paths)", |endpoint| &endpoint.template);
        let key = (method.to_owned(), template.to_owned());
        let other = (method.to_owned(), "(other paths)".to_owned());
        let route = self
            .route_by_endpoint
            .get(&key)
            .or_else(|| self.route_by_endpoint.get(&other))
            .copied()
            .unwrap_or(RouteNumber::MAX);
        (route, hash(target.as_bytes(), u64::from(route)))
    }
}

impl RouteModel {
    fn draft_step(&self, think: Option<String>, times: u32) -> DraftStep {
        DraftStep {
            name: Some(self.name.clone()),
            think,
            times: (times > 1).then_some(times),
            action: DraftAction::Request(Box::new(DraftRequest {
                method: self.method.clone(),
                target: self.target.clone(),
                body: DraftBody::None,
                ..DraftRequest::default()
            })),
            ..DraftStep::default()
        }
    }
}

/// Converts a sequence of endpoints to a scenario. Consecutive requests to one endpoint become two
/// steps: one step for the first request, and one repeated step for all further requests.
fn draft_scenario(
    sequence: &Sequence,
    weight: u32,
    models: &[RouteModel],
    think_times: &mut ThinkTimes,
) -> DraftScenario {
    let mut steps = Vec::new();
    let mut before: Option<RouteNumber> = None;
    for alike in sequence.routes.chunk_by(|a, b| a == b) {
        let route = alike[0];
        let model = &models[usize::from(route)];
        steps.push(model.draft_step(before.and_then(|before| think_times.think_time_between(before, route)), 1));
        if alike.len() > 1 {
            steps.push(model.draft_step(think_times.think_time_between(route, route), alike.len() as u32 - 1));
        }
        before = Some(route);
    }
    let first = &models[usize::from(sequence.routes[0])].name;
    let name = match sequence.routes.len() {
        1 => first.clone(),
        length => format!("{first} and {} more", length - 1),
    };
    DraftScenario { name, weight, cookies: true, steps }
}

/// Converts weights to positive whole numbers in about the same proportions.
fn integer_weights(weights: &[f64]) -> Vec<u32> {
    let most = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let are_whole = weights.iter().all(|weight| weight.fract() == 0.0) && most <= WEIGHT_MAX;
    let factor = if are_whole { 1.0 } else { WEIGHT_MAX / most };
    weights.iter().map(|weight| (weight * factor).round().clamp(1.0, WEIGHT_MAX) as u32).collect()
}
