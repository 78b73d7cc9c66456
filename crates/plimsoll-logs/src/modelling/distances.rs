//! Measures how much the traffic model of an access log differs from the log. Each difference has a
//! bound below which the log and the model count as equal.
//!
//! The figures of log and model are computed in the same way ([`StreamFigures`]). The model's
//! figures are means over several random draws of requests. Not here: drawing the requests.

use std::collections::{BTreeMap, HashMap};

/// The widths of the time windows in which requests are counted for the index of dispersion, ns.
const WINDOW_WIDTHS_NS: [u64; 4] = [100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000];
/// The fewest windows from which an index of dispersion is computed. With 100 windows, the standard
/// error of an index of dispersion is 14 %.
const WINDOWS_MIN: u64 = 100;
/// The sizes of the simulated caches, as shares of all distinct paths.
const CACHE_SHARES: [f64; 3] = [0.01, 0.05, 0.2];
/// The quantiles at which log and model are compared, for the number of requests in a visit and for
/// the waits between requests.
const COMPARED_QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// The largest accepted total variation distance (half the sum of absolute differences) between the
/// endpoint shares of log and model.
pub const MIX_DISTANCE_MAX: f64 = 0.02;
/// The largest accepted relative difference between the indices of dispersion of log and model.
pub const DISPERSION_DIFFERENCE_MAX: f64 = 0.2;
/// The number of standard deviations by which the indices of dispersion of log and model may
/// differ. In a short log with few windows, the index of dispersion varies more by chance.
const DISPERSION_DEVIATIONS_MAX: f64 = 3.0;
/// The largest accepted difference between the cache hit ratios of log and model.
pub const HIT_RATIO_DIFFERENCE_MAX: f64 = 0.02;
/// A difference between log and model counts as chance up to this number of standard deviations.
/// The standard deviation is that of a figure over random draws of the model. A difference that
/// chance explains is not an error of the model.
const CHANCE_DEVIATIONS_MAX: f64 = 3.0;
/// The accepted distance between endpoint shares is `MIX_DISTANCE_MAX` plus
/// `CHANCE_DISTANCE_FACTOR` times the distance that is expected by chance.
const CHANCE_DISTANCE_FACTOR: f64 = 1.5;
/// The largest accepted relative difference between log and model in a quantile of the requests in
/// a visit. A difference of one request is always accepted.
pub const QUANTILE_DIFFERENCE_MAX: f64 = 0.2;

/// One request, either of a log or drawn from its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamRequest {
    /// The start of the request, ns since the beginning of the stream.
    pub start_ns: u64,
    /// The number that identifies the visit of the request. A visit is a series of requests by one
    /// visitor.
    pub visit: u64,
    /// The number that identifies the endpoint of the request.
    pub route: u16,
    /// A number that identifies the path: equal paths have equal numbers.
    pub path: u64,
    /// The wait since the last response of the visit, ns. `None` for the first request of a visit.
    pub wait_ns: Option<u64>,
}

/// The statistics of a sequence of requests, which are compared between the log and its model.
#[derive(Debug, Clone, Default)]
pub struct StreamFigures {
    requests: f64,
    span_ns: u64,
    routes: Vec<f64>,
    dispersion: [Option<f64>; 4],
    visit_requests: [f64; 3],
    waits_ns: Option<[f64; 3]>,
    transitions: BTreeMap<(u16, u16), f64>,
    hit_ratios: [f64; 3],
}

/// The figures of a log and of its model, with the bounds of their differences. In each tuple the
/// log's figure precedes the model's figure.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDistances {
    /// The total variation distance between the endpoint shares of log and model.
    pub endpoint_share_distance: f64,
    /// The largest `endpoint_share_distance` at which log and model count as equal.
    pub endpoint_share_distance_max: f64,
    /// The indices of dispersion of log and model, for each window width in ns. `None` if the
    /// timestamps are too coarse or the log is too short.
    pub dispersion: Vec<(u64, Option<(f64, f64)>)>,
    /// The largest relative difference of each entry of `dispersion` at which log and model count
    /// as equal.
    pub dispersion_difference_max: Vec<f64>,
    /// Quantiles of the number of requests in a visit, each as (quantile from 0 to 1, value of the
    /// log, value of the model).
    pub visit_requests: Vec<(f64, f64, f64)>,
    /// The largest difference of each entry of `visit_requests` at which log and model count as
    /// equal, in requests.
    pub visit_requests_difference_max: Vec<f64>,
    /// Quantiles of the wait from a response to the next request, each as (quantile from 0 to 1,
    /// value of the log in ns, value of the model in ns). Empty if no visit has several requests.
    pub waits_ns: Vec<(f64, f64, f64)>,
    /// The total variation distance between the shares of transitions (pairs of consecutive
    /// endpoints) in log and model. `None` if the log has no transitions.
    pub transitions_tv: Option<f64>,
    /// The hit ratios of simulated LRU caches of paths, each as (cache size in paths, hit ratio of
    /// the log, hit ratio of the model).
    pub hit_ratio: Vec<(usize, f64, f64)>,
    /// The largest difference of each entry of `hit_ratio` at which log and model count as equal.
    pub hit_ratio_difference_max: Vec<f64>,
}

/// A figure whose difference between log and model exceeds its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct DivergentFigure {
    /// The name of the figure.
    pub name: String,
    /// The difference and its bound, as a sentence.
    pub message: String,
}

/// Formats a share as a percentage.
fn percent_text(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns the number of distinct paths in a stream.
pub fn count_distinct_paths(requests: &[StreamRequest]) -> usize {
    let mut paths: Vec<u64> = requests.iter().map(|request| request.path).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.len()
}

/// Returns the sizes of the simulated caches, in paths, for a number of distinct paths.
pub fn cache_sizes(paths: usize) -> [usize; 3] {
    CACHE_SHARES.map(|share| ((paths as f64 * share) as usize).max(1))
}

impl StreamFigures {
    /// Computes the figures of requests, which are ordered by start and lie within `span_ns`.
    /// `resolution_ns` is the resolution of the timestamps. For windows narrower than
    /// `resolution_ns`, no index of dispersion is computed.
    pub fn compute(requests: &[StreamRequest], span_ns: u64, resolution_ns: u64, caches: [usize; 3]) -> StreamFigures {
        let total = requests.len().max(1) as f64;
        let mut routes: Vec<f64> = Vec::new();
        let mut of_visit: HashMap<u64, (u64, u64, u16)> = HashMap::new();
        let (mut waits, mut transitions) = (Vec::new(), BTreeMap::new());
        for request in requests {
            let route = usize::from(request.route);
            if routes.len() <= route {
                routes.resize(route + 1, 0.0);
            }
            routes[route] += 1.0 / total;
            let (count, _, last) = of_visit.entry(request.visit).or_default();
            if let Some(wait_ns) = request.wait_ns {
                waits.push(wait_ns);
                if *count > 0 {
                    *transitions.entry((*last, request.route)).or_insert(0.0) += 1.0;
                }
            }
            (*count, *last) = (*count + 1, request.route);
        }
        let followed: f64 = transitions.values().sum();
        transitions.values_mut().for_each(|count| *count /= followed.max(1.0));
        let mut lengths: Vec<u64> = of_visit.values().map(|(count, ..)| *count).collect();
        lengths.sort_unstable();
        waits.sort_unstable();
        let quantiles = |sorted: &[u64]| {
            COMPARED_QUANTILES.map(|share| match sorted.len() {
                0 => 0.0,
                count => sorted[((count - 1) as f64 * share).round() as usize] as f64,
            })
        };
        StreamFigures {
            span_ns,
            requests: requests.len() as f64,
            routes,
            dispersion: WINDOW_WIDTHS_NS.map(|width_ns| {
                if resolution_ns > width_ns { None } else { dispersion_index(requests, span_ns, width_ns) }
            }),
            visit_requests: quantiles(&lengths),
            waits_ns: (!waits.is_empty()).then(|| quantiles(&waits)),
            transitions,
            hit_ratios: caches.map(|size| hit_ratio(requests, size)),
        }
    }

    /// Returns the mean of each figure over several random draws of requests from the model.
    pub fn mean(draws: &[StreamFigures]) -> StreamFigures {
        let count = draws.len().max(1) as f64;
        let over = |figure: &dyn Fn(&StreamFigures) -> f64| draws.iter().map(figure).sum::<f64>() / count;
        let three = |figure: &dyn Fn(&StreamFigures) -> [f64; 3]| [0, 1, 2].map(|at| over(&|draw| figure(draw)[at]));
        let routes = draws.iter().map(|draw| draw.routes.len()).max().unwrap_or(0);
        let mut transitions = BTreeMap::new();
        for (pair, share) in draws.iter().flat_map(|draw| &draw.transitions) {
            *transitions.entry(*pair).or_insert(0.0) += share / count;
        }
        StreamFigures {
            span_ns: draws.first().map_or(0, |draw| draw.span_ns),
            requests: over(&|draw| draw.requests),
            routes: (0..routes).map(|at| over(&|draw| draw.routes.get(at).copied().unwrap_or(0.0))).collect(),
            dispersion: [0, 1, 2, 3].map(|at| {
                let of = |draw: &StreamFigures| draw.dispersion[at];
                draws.iter().all(|draw| of(draw).is_some()).then(|| over(&|draw| of(draw).unwrap_or(0.0)))
            }),
            visit_requests: three(&|draw| draw.visit_requests),
            waits_ns: draws
                .iter()
                .all(|draw| draw.waits_ns.is_some())
                .then(|| three(&|draw| draw.waits_ns.unwrap_or_default())),
            transitions,
            hit_ratios: three(&|draw| draw.hit_ratios),
        }
    }
}

/// Returns the index of dispersion: variance over mean of the request counts in windows of
/// `width_ns`. `None` if there are too few windows, or no requests.
fn dispersion_index(requests: &[StreamRequest], span_ns: u64, width_ns: u64) -> Option<f64> {
    let windows = span_ns / width_ns;
    if windows < WINDOWS_MIN {
        return None;
    }
    let mut counts: HashMap<u64, u64> = HashMap::new();
    for request in requests.iter().filter(|request| request.start_ns / width_ns < windows) {
        *counts.entry(request.start_ns / width_ns).or_default() += 1;
    }
    let n = windows as f64;
    let mean = counts.values().sum::<u64>() as f64 / n;
    let squares = counts.values().map(|count| (*count as f64).powi(2)).sum::<f64>();
    (mean > 0.0).then(|| ((squares - n * mean * mean) / (n - 1.0) / mean).max(0.0))
}

/// Returns the largest accepted relative difference between two indices of dispersion, each over
/// `windows` windows. With few windows the bound is larger, because chance changes the index of
/// dispersion more.
fn dispersion_difference_max(windows: u64) -> f64 {
    if windows < WINDOWS_MIN {
        // A log with too few windows gets no index of dispersion, so the bound is not used.
        return DISPERSION_DIFFERENCE_MAX;
    }
    DISPERSION_DIFFERENCE_MAX.max(DISPERSION_DEVIATIONS_MAX * (2.0 / windows.saturating_sub(1).max(1) as f64).sqrt())
}

/// Returns the hit ratio of an LRU cache that holds `size` paths.
fn hit_ratio(requests: &[StreamRequest], size: usize) -> f64 {
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
    let mut hits = 0u64;
    for (now, request) in (0u64..).zip(requests) {
        match last.insert(request.path, now).and_then(|before| kept.remove(&before)) {
            Some(_) => hits += 1,
            None if kept.len() >= size => drop(kept.pop_first()),
            None => {}
        }
        kept.insert(now, request.path);
    }
    hits as f64 / requests.len().max(1) as f64
}

/// Returns the largest difference between log and model that chance explains for one figure. The
/// log counts as one random draw, and the model's figure is the mean of several draws. The variance
/// of the difference is the variance of one draw plus the variance of the mean.
fn chance_difference(draws: &[StreamFigures], figure: impl Fn(&StreamFigures) -> f64) -> f64 {
    let count = draws.len() as f64;
    if draws.len() < 2 {
        return 0.0;
    }
    let values: Vec<f64> = draws.iter().map(figure).collect();
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    CHANCE_DEVIATIONS_MAX * (variance * (1.0 + 1.0 / count)).sqrt()
}

/// Returns the total variation distance between two lists of shares.
fn total_variation(one: &[f64], other: &[f64]) -> f64 {
    let share = |shares: &[f64], at: usize| shares.get(at).copied().unwrap_or(0.0);
    (0..one.len().max(other.len())).map(|at| (share(one, at) - share(other, at)).abs()).sum::<f64>() / 2.0
}

impl ModelDistances {
    /// Compares a log with random draws of requests from its model. `caches` are the sizes of the
    /// simulated caches, in paths.
    pub fn compare_log_with_draws(log: &StreamFigures, draws: &[StreamFigures], caches: [usize; 3]) -> ModelDistances {
        let model = &StreamFigures::mean(draws);
        let endpoint_share_distance = total_variation(&log.routes, &model.routes);
        // The mean endpoint shares of several random draws differ by chance from the model's true
        // shares. The expected chance difference is estimated from the distances between single
        // draws and their mean.
        let off_mean = draws.iter().map(|draw| total_variation(&draw.routes, &model.routes)).sum::<f64>();
        let off_mean =
            if draws.len() < 2 { 0.0 } else { off_mean / draws.len() as f64 / (draws.len() as f64 - 1.0).sqrt() };
        let visit_off_max = (0..3).map(|at| {
            let bound = (QUANTILE_DIFFERENCE_MAX * log.visit_requests[at]).max(1.0);
            bound + chance_difference(draws, |draw| draw.visit_requests[at])
        });
        let hit_off_max =
            (0..3).map(|at| HIT_RATIO_DIFFERENCE_MAX + chance_difference(draws, |draw| draw.hit_ratios[at]));
        let dispersion_off = |at: usize| {
            let bound = dispersion_difference_max(log.span_ns / WINDOW_WIDTHS_NS[at]);
            let chance = chance_difference(draws, |draw| draw.dispersion[at].unwrap_or(0.0));
            log.dispersion[at].map_or(bound, |index| bound.max(chance / index.max(f64::MIN_POSITIVE)))
        };
        let (visit_requests_difference_max, hit_ratio_difference_max) =
            (visit_off_max.collect(), hit_off_max.collect());
        let three =
            |log: [f64; 3], model: [f64; 3]| (0..3).map(|at| (COMPARED_QUANTILES[at], log[at], model[at])).collect();
        let pairs: std::collections::BTreeSet<_> = log.transitions.keys().chain(model.transitions.keys()).collect();
        let of = |figures: &StreamFigures, pair| figures.transitions.get(pair).copied().unwrap_or(0.0);
        let follows: f64 = pairs.iter().map(|pair| (of(log, pair) - of(model, pair)).abs()).sum();
        ModelDistances {
            endpoint_share_distance,
            endpoint_share_distance_max: MIX_DISTANCE_MAX + CHANCE_DISTANCE_FACTOR * off_mean,
            visit_requests_difference_max,
            hit_ratio_difference_max,
            dispersion: (0..4).map(|at| (WINDOW_WIDTHS_NS[at], log.dispersion[at].zip(model.dispersion[at]))).collect(),
            dispersion_difference_max: (0..4).map(dispersion_off).collect(),
            visit_requests: three(log.visit_requests, model.visit_requests),
            waits_ns: log.waits_ns.zip(model.waits_ns).map_or(Vec::new(), |(log, model)| three(log, model)),
            transitions_tv: (!log.transitions.is_empty()).then_some(follows / 2.0),
            hit_ratio: (0..3).map(|at| (caches[at], log.hit_ratios[at], model.hit_ratios[at])).collect(),
        }
    }

    /// Returns the figures whose differences exceed their bounds.
    pub fn figures_over_bounds(&self) -> Vec<DivergentFigure> {
        let mut apart = Vec::new();
        let mut say = |name: String, said: String| apart.push(DivergentFigure { name, message: said });
        if self.endpoint_share_distance > self.endpoint_share_distance_max {
            let said = format!(
                "the mix of endpoints differs by {mix_difference} in total between model and log, and the bound is \
                 {bound}",
                mix_difference = percent_text(self.endpoint_share_distance),
                bound = percent_text(self.endpoint_share_distance_max)
            );
            say("mix".to_owned(), said);
        }
        for ((width_ns, both), off_max) in self.dispersion.iter().zip(&self.dispersion_difference_max) {
            if let Some((log, model)) = both.filter(|(log, model)| (model - log).abs() > off_max * log) {
                let window_s = *width_ns as f64 / 1e9;
                let said = format!(
                    "the dispersion in windows of {window_s} s is {model_dispersion:.2} in the model and \
                     {log_dispersion:.2} in the log, and the bound of the difference is {bound}",
                    model_dispersion = model,
                    log_dispersion = log,
                    bound = percent_text(*off_max)
                );
                say(format!("dispersion at {window_s} s"), said);
            }
        }
        for ((quantile, log, model), off_max) in self.visit_requests.iter().zip(&self.visit_requests_difference_max) {
            if (model - log).abs() > *off_max {
                let percentile = quantile * 100.0;
                let said = format!(
                    "the p{percentile} of the requests in a visit is {model_requests:.1} in the model and \
                     {log_requests:.1} in the log (bound of the difference: {off_max:.1})",
                    model_requests = model,
                    log_requests = log
                );
                say(format!("p{percentile} of a visit's requests"), said);
            }
        }
        for ((size, log, model), off_max) in self.hit_ratio.iter().zip(&self.hit_ratio_difference_max) {
            if (model - log).abs() > *off_max {
                let (log_hits, model_hits, points) = (percent_text(*log), percent_text(*model), 100.0 * off_max);
                let said = format!(
                    "the hit rate of a cache of {size} paths is {model_hits} in the model and {log_hits} in the log \
                     (bound: {points:.1} percentage points)"
                );
                say(format!("hits of a cache of {size}"), said);
            }
        }
        apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    const SECOND: u64 = 1_000_000_000;

    fn random_stream(seed: u64, other: u16) -> Vec<StreamRequest> {
        let mut rng = Rng::new(seed);
        let mut starts: Vec<u64> = (0..20_000).map(|_| rng.uniform_below(100 * SECOND)).collect();
        starts.sort_unstable();
        let request = |(number, start_ns): (usize, u64)| {
            let most = 1 + rng.uniform_below(500);
            let path = rng.uniform_below(most);
            let route = if path.is_multiple_of(5) { other } else { 0 };
            let wait_ns = (number % 2 == 1).then_some(SECOND);
            StreamRequest { start_ns, visit: number as u64 / 2, route, path, wait_ns }
        };
        starts.into_iter().enumerate().map(request).collect()
    }

    #[test]
    fn samples_of_one_distribution_match_and_others_differ() {
        let caches = cache_sizes(count_distinct_paths(&random_stream(1, 1)));
        let figures = |requests: &[StreamRequest]| StreamFigures::compute(requests, 100 * SECOND, 1, caches);
        let log = figures(&random_stream(1, 1));
        let alike = [figures(&random_stream(2, 1)), figures(&random_stream(3, 1))];
        let distances = ModelDistances::compare_log_with_draws(&log, &alike, caches);
        assert_eq!(distances.figures_over_bounds(), Vec::new(), "{distances:?}");
        // Random arrivals have an index of dispersion of 1. The stream of requests is too short for
        // an index of dispersion over windows of 100 s.
        let (_, one_second) = distances.dispersion[1];
        assert!(one_second.is_some_and(|(log, _)| (0.6..1.5).contains(&log)) && distances.dispersion[3].1.is_none());
        assert_eq!(distances.visit_requests[0], (0.5, 2.0, 2.0));
        let mut other = random_stream(4, 2);
        for (number, request) in other.iter_mut().enumerate() {
            request.start_ns = request.start_ns / SECOND * SECOND;
            request.path = number as u64;
        }
        let apart = ModelDistances::compare_log_with_draws(&log, &[figures(&other)], caches).figures_over_bounds();
        let expect = ["mix", "dispersion at 0.1 s", "hits of a cache of 24", "hits of a cache of 98"];
        assert!(expect.iter().all(|part| apart.iter().any(|figure| figure.name == *part)), "{apart:?}");
        assert!(apart[0].message.contains("and the bound is 2.0 %"), "{apart:?}");
    }

    #[test]
    fn random_variation_of_many_endpoints_is_no_difference() {
        // Two random draws of requests to 500 endpoints differ by more than 2 % in total, although
        // the endpoint probabilities are equal.
        let drawn = |seed: u64, skewed: bool| {
            let mut rng = Rng::new(seed);
            let request = |number: u64| {
                let route = rng.uniform_below(if skewed && number.is_multiple_of(10) { 50 } else { 500 }) as u16;
                StreamRequest {
                    start_ns: number * SECOND / 5,
                    visit: number,
                    route,
                    path: u64::from(route),
                    wait_ns: None,
                }
            };
            let requests: Vec<StreamRequest> = (0..10_000).map(request).collect();
            StreamFigures::compute(&requests, 2_000 * SECOND, 1, [5, 25, 100])
        };
        for log in 1..10 {
            let draws: Vec<StreamFigures> = (0..8).map(|draw| drawn(100 + log * 10 + draw, false)).collect();
            let distances = ModelDistances::compare_log_with_draws(&drawn(log, false), &draws, [5, 25, 100]);
            // The endpoint shares of the log are set to the exact probabilities of the traffic
            // file, 0.002 for each endpoint.
            let distances = ModelDistances {
                endpoint_share_distance: total_variation(&[0.002; 500], &StreamFigures::mean(&draws).routes),
                ..distances
            };
            assert!(distances.endpoint_share_distance > MIX_DISTANCE_MAX, "{}", distances.endpoint_share_distance);
            assert_eq!(distances.figures_over_bounds(), Vec::new(), "{log}: {distances:?}");
            let draws: Vec<StreamFigures> = (0..8).map(|draw| drawn(100 + log * 10 + draw, true)).collect();
            let distances = ModelDistances {
                endpoint_share_distance: total_variation(&[0.002; 500], &StreamFigures::mean(&draws).routes),
                ..distances
            };
            assert_eq!(distances.figures_over_bounds()[0].name, "mix", "{log}: {distances:?}");
        }
    }

    #[test]
    fn few_windows_allow_larger_differences() {
        for (windows, expect) in [(99, 0.2), (100, 0.426), (201, 0.3), (1000, 0.2), (1_000_000, 0.2)] {
            assert!(
                (dispersion_difference_max(windows) - expect).abs() < 1e-3,
                "{windows}: {}",
                dispersion_difference_max(windows)
            );
        }
    }

    #[test]
    fn the_cache_model_keeps_recent_requests() {
        let of = |paths: &[u64]| -> Vec<StreamRequest> {
            let request = |path: &u64| StreamRequest { start_ns: 0, visit: 0, route: 0, path: *path, wait_ns: None };
            paths.iter().map(request).collect()
        };
        for (asked, size, expect) in [
            (&[1, 1, 1, 1][..], 1, 0.75),
            (&[1, 2, 1, 2], 1, 0.0),
            (&[1, 2, 1, 2], 2, 0.5),
            (&[1, 2, 1, 3, 1, 2], 2, 1.0 / 3.0),
        ] {
            assert!((hit_ratio(&of(asked), size) - expect).abs() < 1e-9, "{asked:?} {size}");
        }
    }
}
