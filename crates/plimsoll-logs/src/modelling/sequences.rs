//! Collects the endpoint sequences of visits with their frequencies. Each sequence becomes a
//! scenario of the model. If a log has too many sequences, the model keeps the most frequent
//! sequences. Of the rarer sequences, the model keeps some, each of which represents several
//! similar sequences. The weights of the kept sequences are adjusted until every endpoint has its
//! share of requests.

use plimsoll_model::RouteNumber;
use std::collections::{BTreeMap, HashMap};

/// The largest number of sequences that a model keeps.
pub const SEQUENCES_MAX: usize = 200;
/// The number of iterations that adjust the weights of sequences.
const ADJUSTMENT_ROUNDS: usize = 2000;
/// The number of final iterations of the weight adjustment that ignore the lengths of visits. The
/// final iterations ensure that every endpoint has its share of requests.
const ENDPOINT_ONLY_ROUNDS: usize = 50;

/// A sequence of endpoints, with the number of visits that it represents.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    pub routes: Vec<RouteNumber>,
    pub weight: f64,
}

/// Returns at most `max` endpoint sequences of visits, and for each endpoint that these sequences
/// lack, a sequence of one request. If the visits have more than `max` distinct sequences, some
/// rarer sequences each represent several similar sequences.
pub fn select_sequences(visits: impl Iterator<Item = Vec<RouteNumber>>, max: usize) -> Vec<Sequence> {
    let mut counts: HashMap<Vec<RouteNumber>, u64> = HashMap::new();
    visits.for_each(|routes| *counts.entry(routes).or_default() += 1);
    let mut all: Vec<(Vec<RouteNumber>, u64)> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let sequence = |(routes, count): (Vec<RouteNumber>, u64)| Sequence { routes, weight: count as f64 };
    if all.len() <= max {
        return all.into_iter().map(sequence).collect();
    }
    // The map is ordered, because the order in which floating-point numbers are added changes their
    // sum.
    let mut wanted: BTreeMap<RouteNumber, f64> = BTreeMap::new();
    for (routes, count) in &all {
        routes.iter().for_each(|route| *wanted.entry(*route).or_default() += *count as f64);
    }
    let mut lengths: BTreeMap<u32, f64> = BTreeMap::new();
    all.iter().for_each(|(routes, count)| *lengths.entry(length_class(routes)).or_default() += *count as f64);
    let mut rest = all.split_off(max / 2);
    let mut kept: Vec<Sequence> = all.into_iter().map(sequence).collect();
    // The sort places sequences of equal length and equal first endpoints next to each other. The
    // visits are then divided into parts of equal size in this order, and one sequence represents
    // each part.
    rest.sort_by(|a, b| a.0.len().cmp(&b.0.len()).then_with(|| a.0.cmp(&b.0)));
    let parts = (max - kept.len()) as u64;
    let total: u64 = rest.iter().map(|(_, count)| count).sum();
    let (mut passed, mut part) = (0, 0);
    for (routes, count) in rest {
        passed += count;
        let (before, reached) = (part, passed * parts / total);
        if passed * parts * 2 >= (2 * before + 1) * total {
            part = reached.max(before + 1);
            kept.push(Sequence { routes, weight: (part - before) as f64 * total as f64 / parts as f64 });
        }
    }
    let mut lacking: Vec<(RouteNumber, f64)> = wanted
        .iter()
        .filter(|(route, _)| !kept.iter().any(|sequence| sequence.routes.contains(route)))
        .map(|(route, count)| (*route, *count))
        .collect();
    lacking.sort_by_key(|(route, _)| *route);
    kept.extend(lacking.into_iter().map(|(route, weight)| Sequence { routes: vec![route], weight }));
    fit_weights(&mut kept, &wanted, &lengths);
    kept
}

/// Returns the length class of a visit: the logarithm to base 2 of its requests, rounded up. The
/// classes are 1, 2, 3 to 4, 5 to 8 requests, and so on.
fn length_class(routes: &[RouteNumber]) -> u32 {
    routes.len().next_power_of_two().ilog2()
}

/// Adjusts the weights of sequences until every endpoint has its wanted number of requests and the
/// visits have the wanted lengths. The method is generalized iterative scaling (Darroch and
/// Ratcliff 1972). If no weights give both, the numbers of requests take precedence over the
/// lengths of visits.
fn fit_weights(sequences: &mut [Sequence], route_weights: &BTreeMap<RouteNumber, f64>, lengths: &BTreeMap<u32, f64>) {
    let longest = sequences.iter().map(|sequence| sequence.routes.len()).max().unwrap_or(1) as f64;
    for round in 0..ADJUSTMENT_ROUNDS {
        let (mut asked, mut visits) = (BTreeMap::<RouteNumber, f64>::new(), BTreeMap::<u32, f64>::new());
        for Sequence { routes, weight } in sequences.iter() {
            routes.iter().for_each(|route| *asked.entry(*route).or_default() += weight);
            *visits.entry(length_class(routes)).or_default() += weight;
        }
        let with_lengths = round < ADJUSTMENT_ROUNDS - ENDPOINT_ONLY_ROUNDS;
        for Sequence { routes, weight } in sequences.iter_mut() {
            let lacks = |wanted: f64, is: f64| (wanted / is.max(1e-9)).ln();
            let of_routes: f64 = routes.iter().map(|route| lacks(route_weights[route], asked[route])).sum();
            *weight *= match lengths.get(&length_class(routes)).filter(|_| with_lengths) {
                Some(count) => ((of_routes + lacks(*count, visits[&length_class(routes)])) / (longest + 1.0)).exp(),
                None => (of_routes / routes.len() as f64).exp(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    #[test]
    fn few_sequences_are_unchanged() {
        let visits = [vec![0, 1], vec![2], vec![0, 1]];
        let got = select_sequences(visits.into_iter(), 10);
        assert_eq!(got[0], Sequence { routes: vec![0, 1], weight: 2.0 });
        assert_eq!(got[1], Sequence { routes: vec![2], weight: 1.0 });
    }

    #[test]
    fn kept_sequences_preserve_the_endpoint_mix() {
        let mut rng = Rng::new(5);
        let visit = |rng: &mut Rng| -> Vec<RouteNumber> {
            (0..1 + rng.uniform_below(12))
                .map(|_| (rng.uniform_below(30) * rng.uniform_below(30) / 30) as u16)
                .collect()
        };
        let visits: Vec<Vec<RouteNumber>> = (0..5000).map(|_| visit(&mut rng)).collect();
        let mut share = vec![0.0; 30];
        let requests: usize = visits.iter().map(Vec::len).sum();
        visits.iter().flatten().for_each(|route| share[usize::from(*route)] += 1.0 / requests as f64);
        let kept = select_sequences(visits.iter().cloned(), 100);
        assert!(kept.len() <= 130, "{}", kept.len());
        let total: f64 = kept.iter().map(|sequence| sequence.weight * sequence.routes.len() as f64).sum();
        let mut own = vec![0.0; 30];
        for Sequence { routes, weight } in &kept {
            routes.iter().for_each(|route| own[usize::from(*route)] += weight / total);
        }
        let off: f64 = share.iter().zip(&own).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
        assert!(off < 0.005, "{off}");
        let visits_kept: f64 = kept.iter().map(|sequence| sequence.weight).sum();
        assert!((4500.0..5500.0).contains(&visits_kept), "{visits_kept}");
    }
}
