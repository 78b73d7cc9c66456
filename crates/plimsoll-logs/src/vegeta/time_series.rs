//! Summarises vegeta's results over time for each attack (a run of vegeta): rates, latencies and
//! failures. Memory is bounded for any number and order of results, because the intervals of an
//! attack double in length when their number exceeds a limit.
//!
//! Not here: rendering pages, and computing the figures of vegeta's own reports (`figures`).

use super::result::VegetaResult;
use plimsoll_model::Histogram;
use std::collections::BTreeMap;

/// The largest number of attacks (runs of vegeta) that have separate figures.
const ATTACKS_MAX: usize = 12;
/// The largest number of time intervals of an attack (a run of vegeta). The intervals of an attack
/// are 10 ms long at first. If an attack has too many intervals, their length doubles.
const ATTACK_INTERVALS_MAX: usize = 300;
/// The initial length of a time interval of an attack, ns (10 ms).
const FIRST_INTERVAL_LENGTH_NS: u64 = 10_000_000;
/// The smallest mean number of requests in an interval of [`AttackTimeSeries::interval_figures`].
/// With fewer requests, the request rate of an interval would have no meaning.
const REQUESTS_PER_INTERVAL_MIN: u64 = 8;
/// The largest number of distinct errors counted for one attack.
const DISTINCT_ERRORS_MAX: usize = 100;

/// The results over time of each attack, which is a run of vegeta.
#[derive(Debug, Clone, Default)]
pub struct VegetaTimeSeries {
    attacks: Vec<AttackTimeSeries>,
    left_out: u64,
}

/// The results over time of one attack, which is one run of vegeta.
#[derive(Debug, Clone)]
pub struct AttackTimeSeries {
    /// The name of the attack, which may be empty.
    pub name: String,
    /// The latencies of all results, ns.
    pub latency: Histogram,
    /// The number of results by HTTP status; status 0 means no response.
    pub codes: BTreeMap<u16, u64>,
    /// The number of results by error text, for at most [`DISTINCT_ERRORS_MAX`] distinct errors.
    pub errors: BTreeMap<String, u64>,
    /// The number of results with a status outside 200 to 399.
    pub failed_result_count: u64,
    /// The start time of the first request, ns since the Unix epoch.
    earliest_ns: u64,
    /// The start time of the last request, ns since the Unix epoch.
    latest_ns: u64,
    /// The start time of the request whose result was read first, ns. Interval 0 of the attack
    /// begins at this time, and earlier intervals have negative numbers.
    origin_ns: u64,
    interval_ns: u64,
    intervals: BTreeMap<i64, AttackIntervalResults>,
}

/// The results in one interval of an attack.
#[derive(Debug, Clone, Default)]
struct AttackIntervalResults {
    sent: u64,
    latency: Histogram,
    failed_latency: Histogram,
}

/// The figures of one interval of an attack. The latencies belong to the requests that were sent in
/// the interval, and are `None` if the interval has no such request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttackIntervalFigures {
    /// The middle of the interval, s since the first request.
    pub at_s: f64,
    /// The request rate in the interval, 1/s. `None` if the attack covers less than half of the
    /// interval, for example at the end of the attack.
    pub sent_rps: Option<f64>,
    /// The rate of failed requests, 1/s. `None` if the attack covers less than half of the
    /// interval.
    pub failed_rps: Option<f64>,
    /// The median latency, ns.
    pub p50_ns: Option<f64>,
    /// The 99th percentile of the latency, ns.
    pub p99_ns: Option<f64>,
    /// The largest latency, ns.
    pub max_ns: Option<f64>,
    /// The median latency of failed requests, ns.
    pub failed_p50_ns: Option<f64>,
}

impl VegetaTimeSeries {
    /// Adds one result to the figures of its attack. Results of attacks beyond the first
    /// [`ATTACKS_MAX`] are counted, but have no figures.
    pub fn add(&mut self, result: &VegetaResult) {
        let at = self.attacks.iter().position(|attack| attack.name == result.attack);
        match at {
            Some(at) => self.attacks[at].add(result),
            None if self.attacks.len() == ATTACKS_MAX => self.left_out += 1,
            None => {
                let mut attack = AttackTimeSeries::new_for_attack(result);
                attack.add(result);
                self.attacks.push(attack);
            }
        }
    }

    /// Returns the attacks, in order of first appearance.
    pub fn attacks(&self) -> &[AttackTimeSeries] {
        &self.attacks
    }

    /// Returns the number of results of the attacks beyond the first [`ATTACKS_MAX`].
    pub fn results_beyond_limit(&self) -> u64 {
        self.left_out
    }
}

impl AttackTimeSeries {
    fn new_for_attack(first: &VegetaResult) -> AttackTimeSeries {
        AttackTimeSeries {
            name: first.attack.clone(),
            latency: Histogram::new(),
            codes: BTreeMap::new(),
            errors: BTreeMap::new(),
            failed_result_count: 0,
            earliest_ns: first.sent_ns,
            latest_ns: first.sent_ns,
            origin_ns: first.sent_ns,
            interval_ns: FIRST_INTERVAL_LENGTH_NS,
            intervals: BTreeMap::new(),
        }
    }

    fn add(&mut self, result: &VegetaResult) {
        let VegetaResult { code, sent_ns, latency_ns, error, .. } = result;
        let failed = !(200..400).contains(code);
        self.latency.record(*latency_ns);
        *self.codes.entry(*code).or_default() += 1;
        self.failed_result_count += u64::from(failed);
        if !error.is_empty() {
            let has_room = self.errors.len() < DISTINCT_ERRORS_MAX;
            match self.errors.get_mut(error) {
                Some(count) => *count += 1,
                None if has_room => _ = self.errors.insert(error.clone(), 1),
                None => {}
            }
        }
        self.earliest_ns = self.earliest_ns.min(*sent_ns);
        self.latest_ns = self.latest_ns.max(*sent_ns);
        let stretch = self.intervals.entry(self.interval_number_at(*sent_ns)).or_default();
        stretch.sent += 1;
        stretch.latency.record(*latency_ns);
        if failed {
            stretch.failed_latency.record(*latency_ns);
        }
        while self.intervals.len() > ATTACK_INTERVALS_MAX {
            self.double_interval_length();
        }
    }

    fn interval_number_at(&self, sent_ns: u64) -> i64 {
        let from_origin = i128::from(sent_ns) - i128::from(self.origin_ns);
        from_origin.div_euclid(i128::from(self.interval_ns)) as i64
    }

    /// Doubles the length of the attack's time intervals by merging pairs of neighbouring
    /// intervals.
    fn double_interval_length(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        for (at, stretch) in std::mem::take(&mut self.intervals) {
            let sum = self.intervals.entry(at.div_euclid(2)).or_default();
            sum.sent += stretch.sent;
            sum.latency.merge(&stretch.latency);
            sum.failed_latency.merge(&stretch.failed_latency);
        }
    }

    /// Returns the number of results of the attack.
    pub fn request_count(&self) -> u64 {
        self.latency.count()
    }

    /// Returns the time from the start of the first request to the start of the last, ns.
    pub fn request_span_ns(&self) -> u64 {
        self.latest_ns - self.earliest_ns
    }

    /// Returns the request rate, 1/s. If all requests started at the same time, the returned rate
    /// is the number of requests.
    pub fn rate_rps(&self) -> f64 {
        match self.request_span_ns() {
            0 => self.request_count() as f64,
            ns => self.request_count() as f64 * 1e9 / ns as f64,
        }
    }

    /// Divides the attack into at most `count_max` intervals of equal length. The attack has fewer
    /// intervals if `count_max` intervals would contain too few requests each.
    pub fn interval_figures(&self, count_max: usize) -> Vec<AttackIntervalFigures> {
        let (Some((first, _)), Some((last, _))) = (self.intervals.first_key_value(), self.intervals.last_key_value())
        else {
            return Vec::new();
        };
        let count_max = (count_max as u64).min(self.request_count() / REQUESTS_PER_INTERVAL_MIN).max(1);
        let joined = ((last - first) as u64 + 1).div_ceil(count_max);
        // Intervals without requests are included with a rate of 0.
        let count = (last - first) as u64 / joined + 1;
        let mut sums: BTreeMap<u64, AttackIntervalResults> =
            (0..count).map(|at| (at, AttackIntervalResults::default())).collect();
        for (at, stretch) in &self.intervals {
            let sum = sums.entry((at - first) as u64 / joined).or_default();
            sum.sent += stretch.sent;
            sum.latency.merge(&stretch.latency);
            sum.failed_latency.merge(&stretch.failed_latency);
        }
        let length_ns = joined as f64 * self.interval_ns as f64;
        let begin_ns = *first as f64 * self.interval_ns as f64 - (self.earliest_ns as f64 - self.origin_ns as f64);
        // The attack counts as ending one mean gap between requests after its last request. If the
        // attack ended at its last request, the rate in the last interval would be too high.
        let end_ns = self.request_span_ns() as f64 * (1.0 + 1.0 / (self.request_count().max(2) - 1) as f64);
        let is_only = sums.len() == 1;
        let moment = |(at, sum): (u64, AttackIntervalResults)| {
            let from_ns = begin_ns + at as f64 * length_ns;
            let (from_ns, to_ns) = (from_ns.max(0.0), (from_ns + length_ns).min(end_ns));
            let covered_ns = to_ns - from_ns;
            let is_long = covered_ns >= length_ns / 2.0 || (is_only && covered_ns > 0.0);
            let rate = |count: u64| is_long.then(|| count as f64 * 1e9 / covered_ns);
            let quantile = |times: &Histogram, q| (times.count() > 0).then(|| times.quantile_ns(q) as f64);
            AttackIntervalFigures {
                at_s: (from_ns + to_ns.max(from_ns)) / 2e9,
                sent_rps: rate(sum.sent),
                failed_rps: rate(sum.failed_latency.count()),
                p50_ns: quantile(&sum.latency, 0.5),
                p99_ns: quantile(&sum.latency, 0.99),
                max_ns: quantile(&sum.latency, 1.0),
                failed_p50_ns: quantile(&sum.failed_latency, 0.5),
            }
        };
        sums.into_iter().map(moment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attack_result(attack: &str, sent_ns: u64, latency_ns: u64, code: u16) -> VegetaResult {
        let error = if code == 200 { String::new() } else { format!("{code} No") };
        VegetaResult { attack: attack.into(), sent_ns, latency_ns, code, error, ..VegetaResult::default() }
    }

    #[test]
    fn attack_intervals_ignore_result_order() {
        const START_NS: u64 = 1_795_307_654_063_832_482;
        let of = |n: u64| {
            // The attack has 100 requests a second for 20 s. Every tenth request of the attack
            // fails, and the second half of the requests is slower than the first half.
            let latency_ns = if n < 1000 { 1_000_000 } else { 5_000_000 };
            attack_result("a", START_NS + n * 10_000_000, latency_ns, if n.is_multiple_of(10) { 503 } else { 200 })
        };
        for order in [|n: u64| n, |n: u64| 1999 - n, |n: u64| n * 1009 % 2000] {
            let mut course = VegetaTimeSeries::default();
            (0..2000).for_each(|n| course.add(&of(order(n))));
            let [attack] = course.attacks() else { panic!("one attack") };
            assert_eq!(
                (attack.request_count(), attack.failed_result_count, attack.request_span_ns()),
                (2000, 200, 19_990_000_000)
            );
            assert_eq!((attack.codes[&503], attack.errors["503 No"]), (200, 200));
            for count_max in [10, 150] {
                let moments = attack.interval_figures(count_max);
                assert!((count_max / 2..=count_max).contains(&moments.len()), "{}", moments.len());
                let sent: Vec<f64> = moments.iter().filter_map(|moment| moment.sent_rps).collect();
                assert!(
                    sent.len() + 2 >= moments.len() && sent.iter().all(|rate| (90.0..111.0).contains(rate)),
                    "{sent:?}"
                );
                assert!(moments.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
                let (first, last) = (moments[0], moments[moments.len() - 1]);
                assert!(first.at_s < 2.0 && (18.0..20.1).contains(&last.at_s), "{first:?} {last:?}");
                assert!(first.p50_ns < Some(1.1e6) && last.p50_ns > Some(4.9e6), "{first:?} {last:?}");
            }
        }
    }

    #[test]
    fn attacks_are_separated_up_to_a_limit() {
        let mut course = VegetaTimeSeries::default();
        (0..20u64).for_each(|n| course.add(&attack_result(&format!("n{n}"), n, 1, 0)));
        assert_eq!((course.attacks().len(), course.results_beyond_limit()), (ATTACKS_MAX, 8));
        // A single request has no rate.
        let only = course.attacks()[0].interval_figures(150);
        assert_eq!((only.len(), only[0].sent_rps, only[0].failed_p50_ns), (1, None, Some(1.0)));
        assert!(VegetaTimeSeries::default().attacks().is_empty());
    }

    #[test]
    fn a_pause_is_a_rate_of_zero() {
        let mut course = VegetaTimeSeries::default();
        // The attack sends 40 requests a second for 1.5 s, pauses for 6 s, and sends 40 requests a
        // second for 1.5 s again.
        (0..120u64).for_each(|n| {
            course.add(&attack_result("a", n * 25_000_000 + if n < 60 { 0 } else { 6_000_000_000 }, 1, 200))
        });
        let moments = course.attacks()[0].interval_figures(150);
        let sent: Vec<f64> = moments.iter().filter_map(|moment| moment.sent_rps).collect();
        assert!((10..=15).contains(&sent.len()), "{sent:?}");
        assert!((35.0..=45.0).contains(&sent[0]) && sent.iter().filter(|rate| **rate == 0.0).count() >= 5, "{sent:?}");
        let silent = moments.iter().find(|moment| moment.sent_rps == Some(0.0)).expect("a pause");
        assert_eq!((silent.p50_ns, silent.max_ns, silent.failed_rps), (None, None, Some(0.0)));
    }

    // The number of test cases is small, because results at random times merge the intervals of an
    // attack very often, which takes long.
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_attack_results_use_bounded_memory(results in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u16>()), 1..700)) {
            let mut course = VegetaTimeSeries::default();
            for (sent_ns, latency_ns, code) in &results {
                course.add(&attack_result("", *sent_ns, *latency_ns, *code));
            }
            let attack = &course.attacks()[0];
            prop_assert!(attack.intervals.len() <= ATTACK_INTERVALS_MAX);
            let moments = attack.interval_figures(150);
            prop_assert!(moments.len() <= 150 && !moments.is_empty());
            prop_assert_eq!(attack.intervals.values().map(|stretch| stretch.sent).sum::<u64>(), results.len() as u64);
            prop_assert!(moments.iter().all(|moment| moment.at_s.is_finite() && moment.sent_rps.is_none_or(f64::is_finite)));
        }
    }
}
