//! Measures how unevenly requests are distributed over resources. The measure is the exponent of
//! Zipf's law, fitted by maximum likelihood.

/// The fewest distinct ids from which the exponent of Zipf's law is fitted.
const IDS_MIN: usize = 10;
/// An id has a meaningful rank only if it has at least this number of requests.
const RANKED_MIN: u64 = 5;
/// The largest number of ranks that are used to fit the exponent of Zipf's law.
const RANKS_MAX: usize = 100_000;

/// Returns the exponent a of p(rank) ~ rank^-a with the largest likelihood for `counts`. The counts
/// are in descending order, and the exponent is 0 to 5. `None` if there are too few ids or
/// requests.
pub fn zipf_exponent(counts: &[u64]) -> Option<f64> {
    // If some ids are rare, only the frequent ids are used for the fit. Zipf's law has the same
    // exponent for the frequent ids as for all ids.
    let ranked = counts.partition_point(|count| *count >= RANKED_MIN);
    let is_sparse = counts.last().is_some_and(|least| *least < RANKED_MIN);
    let counts = if is_sparse && ranked >= IDS_MIN { &counts[..ranked] } else { counts };
    let counts = &counts[..counts.len().min(RANKS_MAX)];
    let total: f64 = counts.iter().map(|count| *count as f64).sum();
    if counts.len() < IDS_MIN || total < 2.0 * counts.len() as f64 {
        return None;
    }
    let logs: Vec<f64> = (1..=counts.len()).map(|rank| (rank as f64).ln()).collect();
    let observed = counts.iter().zip(&logs).map(|(count, log)| *count as f64 * log).sum::<f64>() / total;
    // The likelihood is largest where the expected logarithm of the rank equals the observed mean
    // logarithm. The expected logarithm falls as `a` grows, so bisection finds the exponent.
    let expected = |a: f64| {
        let (mut weights, mut sum) = (0.0, 0.0);
        for log in &logs {
            let weight = (-a * log).exp();
            weights += weight;
            sum += weight * log;
        }
        sum / weights
    };
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if expected(middle) > observed { low = middle } else { high = middle }
    }
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::rng::Rng;

    #[test]
    fn the_zipf_exponent_is_estimated() {
        for a in [0.0, 0.7, 1.0, 1.4] {
            let weights: Vec<f64> = (1..=500).map(|rank| f64::from(rank).powf(-a)).collect();
            let total: f64 = weights.iter().sum();
            let mut counts = vec![0u64; weights.len()];
            let mut rng = Rng::new(7);
            for _ in 0..200_000 {
                let mut at = rng.next_f64() * total;
                let rank = weights.iter().position(|weight| {
                    at -= weight;
                    at < 0.0
                });
                counts[rank.unwrap_or(0)] += 1;
            }
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let found = zipf_exponent(&counts).expect("enough");
            // The ids are ranked by their observed counts, so chance makes the fitted exponent
            // slightly larger.
            assert!((-0.02..0.05).contains(&(found - a)), "{a}: {found}");
        }
        // Even with many more ids than requests, the frequent ids are enough to fit the exponent.
        let mut rng = Rng::new(3);
        let harmonic: f64 = (1..=50_000).map(|rank| 1.0 / f64::from(rank)).sum();
        let mut counts = vec![0u64; 50_000];
        for _ in 0..20_000 {
            let mut at = rng.next_f64() * harmonic;
            let rank = (0..50_000).find(|rank| {
                at -= 1.0 / f64::from(rank + 1);
                at < 0.0
            });
            counts[rank.unwrap_or(0) as usize] += 1;
        }
        counts.retain(|count| *count > 0);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let found = zipf_exponent(&counts).expect("a law");
        assert!((0.9..1.1).contains(&found), "{found}");
        assert_eq!(zipf_exponent(&[5; 9]), None);
        assert_eq!(zipf_exponent(&[1; 100]), None);
    }
}
