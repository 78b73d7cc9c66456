//! Compares a traffic model with the logs it was made from. The model's traffic file is parsed and
//! sampled exactly as for a load.
//!
//! Not here: the model and its distance measures (`plimsoll_logs::modelling`).

use crate::traffic_file;
use plimsoll_logs::modelling::{
    ModelDistances, RouteMapper, StreamFigures, StreamRequest, TrafficModel, cache_sizes, count_distinct_paths,
};
use plimsoll_model::failure::Failure;
use plimsoll_model::{ConnectionPlan, Load, LoadShape, Plan, RedactionLevel, Schedule, StatusSet};
use plimsoll_traffic::file::RequestDefaults;
use plimsoll_traffic::target_url::Url;
use std::path::Path;
use std::sync::Arc;

/// The approximate number of requests in all samples from the model together.
const MODEL_REQUESTS_SAMPLED: usize = 400_000;
/// The largest number of samples that are drawn from the model. Each sample covers as much time as
/// the log.
const MODEL_SAMPLES_MAX: usize = 8;
/// The smallest number of samples that are drawn from the model. With three or more samples, the
/// variation between samples can be estimated.
const MODEL_SAMPLES_MIN: usize = 3;
/// The largest number of requests in a log that can be compared. A log with more requests is
/// refused.
const COMPARED_REQUESTS_MAX: usize = 4_000_000;

/// Returns the distances between the requests of the traffic file and the requests of the log.
pub fn model_distances(
    path: &Path,
    model: &TrafficModel,
    seed: u64,
    fold: Option<&dyn Fn(&str) -> String>,
) -> Result<ModelDistances, Failure> {
    if model.stream.len() > COMPARED_REQUESTS_MAX {
        return Err(Failure::cannot_start(format!(
            "--verify: more than {COMPARED_REQUESTS_MAX} requests are too many to compare: use a part of the log (--only, \
             --skip)"
        )));
    }
    let file = traffic_file::read(path)?;
    let address = file.base().unwrap_or_default().to_owned();
    let Url { origin, path: prefix, .. } = Url::parse(&address)?;
    let defaults = RequestDefaults { headers: Vec::new(), ok_status: StatusSet::default(), timeout_ns: 30_000_000_000 };
    let traffic = file.traffic(origin, &prefix, &defaults, RedactionLevel::Secrets);
    let shape = LoadShape::Open { rate: model.visit_arrivals.rate.clone(), arrivals: model.visit_arrivals.arrivals };
    let mut plan = Plan { traffic, load: Load::new(shape), connection_plan: ConnectionPlan::tcp(vec![]) };
    let caches = cache_sizes(count_distinct_paths(&model.stream));
    let figures = |stream: &[StreamRequest]| StreamFigures::compute(stream, model.span_ns, model.resolution_ns, caches);
    let mut folder = model.route_mapper(fold);
    let draws = (MODEL_REQUESTS_SAMPLED / model.stream.len().max(1)).clamp(MODEL_SAMPLES_MIN, MODEL_SAMPLES_MAX);
    let mut drawn_figures = Vec::with_capacity(draws);
    for draw in 0..draws as u64 {
        plan.load.seed = seed.wrapping_add(draw);
        drawn_figures.push(figures(&sampled_requests(&plan, model, &mut folder)?));
    }
    let log = figures(&model.stream);
    Ok(ModelDistances::compare_log_with_draws(&log, &drawn_figures, caches))
}

/// Samples the requests of a load that is as long as the log. A request after the end of the log's
/// duration is moved to the beginning, so that the sample resembles a load in steady state.
fn sampled_requests(
    plan: &Plan,
    model: &TrafficModel,
    folder: &mut RouteMapper,
) -> Result<Vec<StreamRequest>, Failure> {
    let schedule = Arc::new(Schedule::compile(&plan.load));
    let arrivals = (0..).map_while(|n| schedule.start_ns(n)).take_while(|start| *start < model.span_ns).count();
    let each = 2 * model.stream.len() / (model.facts.visits.max(1) as usize) + 2;
    let asked = plimsoll_engine::first_requests(plan, arrivals.saturating_mul(each))?;
    let mut stream: Vec<StreamRequest> = Vec::with_capacity(model.stream.len());
    let (mut before, mut end_ns) = (None, 0);
    for request in asked.iter().take_while(|request| (request.arrival as usize) < arrivals) {
        let line = request.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (route, path) = folder.route(words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_first = before != Some(request.arrival);
        let from_ns = if is_first { schedule.start_ns(request.arrival).unwrap_or(0) } else { end_ns };
        let start_ns = from_ns + request.wait_ns;
        end_ns = start_ns + model.response_times_mean_ns.get(usize::from(route)).copied().unwrap_or(0);
        before = Some(request.arrival);
        let wait_ns = (!is_first).then_some(request.wait_ns);
        stream.push(StreamRequest { start_ns: start_ns % model.span_ns, visit: request.arrival, route, path, wait_ns });
    }
    stream.sort_by_key(|request| request.start_ns);
    Ok(stream)
}
