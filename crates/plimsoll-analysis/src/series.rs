//! The figures of a run for charts, as numbers. This file computes the figures of each interval,
//! latencies over time and by quantile, and the variation of the goodput.
//!
//! Not here: the charts.

use plimsoll_model::{Histogram, Interval, Run, SparseHistogram, histogram};

/// The figures of one interval of a run. Rates are in 1/s and times in ns. A figure that is a time
/// is `None` if the interval contains no measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalFigures {
    /// Start of the interval, in s since the start of the load's schedule.
    pub start_s: f64,
    /// Length of the interval, in s.
    pub length_s: f64,
    /// Whether the interval lies after the end of the load's schedule, where only late responses
    /// arrive.
    pub is_after_schedule: bool,
    /// Scheduled requests, 1/s.
    pub scheduled_rps: f64,
    /// Requests that succeeded, 1/s.
    pub succeeded_rps: f64,
    /// Requests that failed or were never sent, 1/s.
    pub errors_rps: f64,
    /// Response time p50 in ns.
    pub p50_ns: Option<f64>,
    /// Response time p90 in ns.
    pub p90_ns: Option<f64>,
    /// Response time p99 in ns.
    pub p99_ns: Option<f64>,
    /// Longest response time in ns.
    pub max_ns: Option<f64>,
    /// Lag p99 of the generator in ns: how late it started requests compared with the schedule.
    pub lag_p99_ns: Option<f64>,
    /// Share of its time that the busiest worker thread of plimsoll spent working, 0..=1.
    pub work_share: f64,
}

/// Merges the ticks (short recorded intervals) of a run into at most `columns_max` intervals of
/// equal length. Each item contains the start in s, the length in s, and the merged content.
fn merge_ticks(run: &Run, columns_max: usize) -> Vec<(f64, f64, Interval)> {
    let Some((last, _)) = run.intervals.last_key_value() else { return Vec::new() };
    let joined = (*last as usize + 1).div_ceil(columns_max.max(1)).max(1) as u32;
    let length_s = f64::from(joined) * run.plan.load.interval_ns as f64 / 1e9;
    let mut out: Vec<(f64, f64, Interval)> = Vec::new();
    for (index, interval) in &run.intervals {
        let start_s = f64::from(index / joined) * length_s;
        match out.last_mut().filter(|last| last.0 == start_s) {
            Some((_, _, sum)) => sum.merge_after(interval),
            None => out.push((start_s, length_s, interval.clone())),
        }
    }
    out
}

/// Divides a run into at most `columns_max` intervals of equal length, and returns the figures of
/// each interval. Intervals without any tick are left out.
pub fn figures_over_time(run: &Run, columns_max: usize) -> Vec<IntervalFigures> {
    let of = |(start_s, length_s, interval): (f64, f64, Interval)| {
        let whole = interval.all_routes();
        let response = whole.response.to_histogram();
        let quantile = |h: &Histogram, q| (h.count() > 0).then(|| h.quantile_ns(q) as f64);
        let rate = |count: u64| count as f64 / length_s;
        IntervalFigures {
            start_s,
            length_s,
            is_after_schedule: run.window_ns.1 > 0 && start_s * 1e9 >= run.window_ns.1 as f64,
            scheduled_rps: rate(whole.ledger.scheduled),
            // A completion after the measured window counts in the ledger, but not in the
            // throughput. If a request was scheduled before the window, its completion counts in
            // the throughput, but not in the ledger.
            succeeded_rps: rate(whole.succeeded_in_window.max(whole.ledger.succeeded)),
            errors_rps: rate(whole.ledger.failed_total() + whole.ledger.unsent),
            p50_ns: quantile(&response, 0.5),
            p90_ns: quantile(&response, 0.9),
            p99_ns: quantile(&response, 0.99),
            max_ns: quantile(&response, 1.0),
            lag_p99_ns: quantile(&interval.load.lag.to_histogram(), 0.99),
            work_share: interval.load.workers.iter().map(|w| w.work_share()).fold(0.0, f64::max),
        }
    };
    merge_ticks(run, columns_max).into_iter().map(of).collect()
}

/// Returns the latencies of a histogram by quantile, ascending: (quantile 0..1, latency in ns).
/// Each quantile is the share of the values below the histogram bucket of its latency. The list is
/// empty for an empty histogram.
pub fn latency_by_quantile(histogram: &Histogram) -> Vec<(f64, f64)> {
    let total = histogram.count();
    let mut seen = 0;
    let mut out: Vec<(f64, f64)> = Vec::new();
    for (index, count) in histogram.buckets() {
        let quantile = seen as f64 / total as f64;
        let value = histogram::bucket_highest_value(index).clamp(histogram.min_ns(), histogram.max_ns()) as f64;
        // On the scale of 1 - quantile, a chart needs at most 200 points in each factor of ten.
        let step = |q: f64| (-(1.0 - q).log10() * 200.0).floor();
        if out.last().is_none_or(|last| step(last.0) < step(quantile)) || seen + count == total {
            out.push((quantile, value));
        }
        seen += count;
    }
    out
}

/// A heat map of latencies: the number of response times in each cell of a time interval and a
/// latency range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyHeatMap {
    /// Length of a column (a time interval) in s.
    pub column_s: f64,
    /// Number of columns from the start of the run.
    pub columns: usize,
    /// The lower edges of the rows (latency ranges) in ns, ascending, and the upper edge of the
    /// last row. Neighbouring edges have a constant ratio.
    pub edges_ns: Vec<f64>,
    /// The cells that are not empty: (column, row, count).
    pub cells: Vec<(usize, usize, u64)>,
}

/// Computes the heat map of a run with at most `columns_max` columns and about `rows` rows.
pub fn heat_map(run: &Run, columns_max: usize, rows: usize) -> LatencyHeatMap {
    let columns = merge_ticks(run, columns_max);
    let columns: Vec<(f64, f64, SparseHistogram)> = columns
        .into_iter()
        .map(|(from_s, to_s, interval)| (from_s, to_s, interval.all_routes().response.clone()))
        .collect();
    let some = columns.iter().filter(|(.., response)| response.count() > 0);
    let range = some.fold(None, |range: Option<(u64, u64)>, (.., response)| {
        let (lo, hi) = (response.min_ns().max(1), response.max_ns().max(1));
        Some(range.map_or((lo, hi), |(a, b)| (a.min(lo), b.max(hi))))
    });
    let (Some((lo, hi)), Some((last_s, column_s, _))) = (range, columns.last()) else {
        return LatencyHeatMap::default();
    };
    let (lo, hi) = (lo as f64 * 0.98, (hi as f64 * 1.02).max(lo as f64 * 1.2));
    let rows = rows.max(1);
    let factor = (hi / lo).ln() / rows as f64;
    let row_of = |ns: f64| (((ns.max(1.0) / lo).ln() / factor).max(0.0) as usize).min(rows - 1);
    let mut cells = Vec::new();
    for (start_s, _, response) in &columns {
        let mut counts = vec![0u64; rows];
        for (index, count) in response.buckets() {
            let middle = (histogram::bucket_lowest_value(index) + histogram::bucket_highest_value(index)) as f64 / 2.0;
            counts[row_of(middle)] += count;
        }
        let column = (start_s / column_s).round() as usize;
        cells.extend(counts.iter().enumerate().filter(|(_, c)| **c > 0).map(|(row, c)| (column, row, *c)));
    }
    LatencyHeatMap {
        column_s: *column_s,
        columns: (last_s / column_s).round() as usize + 1,
        edges_ns: (0..=rows).map(|row| lo * (factor * row as f64).exp()).collect(),
        cells,
    }
}

/// The variation of the goodput within one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GoodputVariation {
    /// Coefficient of variation of the goodput of intervals of equal length: the standard deviation
    /// divided by the mean.
    pub variation: f64,
    /// Length in ns of each interval from which `variation` is computed.
    pub period_ns: u64,
    /// Number of intervals from which `variation` is computed.
    pub periods: usize,
}

/// Computes the variation of the goodput from the whole seconds of the measured window. If the
/// window has fewer than five whole seconds, the variation is computed from single ticks. Returns
/// `None` with fewer than three intervals, or without any success.
pub fn goodput_variation(run: &Run) -> Option<GoodputVariation> {
    let interval_ns = run.plan.load.interval_ns.max(1);
    let (from, to) = run.window_ns;
    let inside = |length_ns: u64| (from.div_ceil(length_ns), to / length_ns);
    let second = 1_000_000_000u64.next_multiple_of(interval_ns);
    let (first, end) = inside(second);
    let period_ns = if end.saturating_sub(first) >= 5 { second } else { interval_ns };
    let (first, end) = inside(period_ns);
    let mut counts = vec![0u64; end.saturating_sub(first) as usize];
    for (index, interval) in &run.intervals {
        let stretch = u64::from(*index) * interval_ns / period_ns;
        if let Some(count) = stretch.checked_sub(first).and_then(|at| counts.get_mut(at as usize)) {
            *count += interval.all_routes().succeeded_in_window;
        }
    }
    let periods = counts.len();
    let mean = counts.iter().sum::<u64>() as f64 / periods.max(1) as f64;
    if periods < 3 || mean == 0.0 {
        return None;
    }
    let squares: f64 = counts.iter().map(|c| (*c as f64 - mean).powi(2)).sum();
    Some(GoodputVariation { variation: (squares / (periods - 1) as f64).sqrt() / mean, period_ns, periods })
}

/// Maximum number of batches (groups of consecutive intervals) whose means give the error of a
/// goodput.
const BATCHES_MAX: usize = 10;
/// Smallest number of intervals from which the error of a goodput is computed. With fewer
/// intervals, the error of the goodput is not stated.
const GOODPUT_INTERVALS_MIN: usize = 5;

/// Returns the error of a run's goodput: half its 95 % interval, as a share of the goodput. The
/// error comes from the means of up to ten batches of whole intervals inside the measured window.
/// Neighbouring intervals correlate, which would distort an error computed from single intervals,
/// so batches keep neighbouring intervals together. Returns `None` with too few intervals.
pub fn goodput_error(run: &Run) -> Option<f64> {
    let length_ns = run.plan.load.interval_ns.max(1);
    let (first, end) = (run.window_ns.0.div_ceil(length_ns), run.window_ns.1 / length_ns);
    let stretches = usize::try_from(end.saturating_sub(first)).ok().filter(|n| *n >= GOODPUT_INTERVALS_MIN)?;
    let each = stretches.div_ceil(BATCHES_MAX);
    let batches = stretches / each;
    let mut counts = vec![0u64; batches];
    for (index, interval) in run.intervals.range(first as u32..end as u32) {
        if let Some(count) = counts.get_mut((u64::from(*index) - first) as usize / each) {
            *count += interval.all_routes().succeeded_in_window;
        }
    }
    let mean = counts.iter().sum::<u64>() as f64 / batches as f64;
    if mean == 0.0 {
        return None;
    }
    let squares: f64 = counts.iter().map(|c| (*c as f64 - mean).powi(2)).sum();
    let freedom = (batches - 1) as f64;
    Some(student_t_quantile(batches - 1) * (squares / freedom / batches as f64).sqrt() / mean)
}

/// Returns the 97.5 % quantile of Student's t distribution with `freedom` degrees of freedom.
fn student_t_quantile(freedom: usize) -> f64 {
    const SMALL_FREEDOM_QUANTILES: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    let f = freedom as f64;
    // From five degrees of freedom on, the approximation formula has an error of at most 1 %.
    SMALL_FREEDOM_QUANTILES.get(freedom.saturating_sub(1)).copied().unwrap_or(1.96 + 2.4 / f + 3.2 / (f * f))
}

/// Smallest number of visits (separate repetitions) of one load that show the variation between
/// visits.
pub const VISITS_MIN: usize = 3;

/// Returns the error of a goodput that was measured in several visits (separate repetitions) of one
/// load. The error includes the variation between visits (separate repetitions of the load). The
/// error is half the 95 % interval, as a share of the goodput. Returns `None` for fewer than
/// [`VISITS_MIN`] visits.
pub fn goodput_error_between_visits(rates: &[f64]) -> Option<f64> {
    let visits = rates.len();
    let mean = rates.iter().sum::<f64>() / visits as f64;
    if visits < VISITS_MIN || mean <= 0.0 {
        return None;
    }
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Some(student_t_quantile(visits - 1) * (squares / (visits - 1) as f64 / visits as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape, Plan};

    fn run_with_successes(counts: &[u64]) -> Run {
        let mut run =
            Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
        let length = run.plan.load.interval_ns;
        for (at, count) in counts.iter().enumerate() {
            let mut interval = Interval::default();
            let mut response = Histogram::new();
            response.record_n(1_000_000 * (at as u64 + 1), *count);
            let figures = interval.routes.figures_mut(0);
            figures.response = response.drain();
            figures.ledger.succeeded = *count;
            figures.ledger.scheduled = *count;
            figures.succeeded_in_window = *count;
            run.push(at as u64 * length, interval);
        }
        run.window_ns = (0, counts.len() as u64 * length);
        run
    }

    #[test]
    fn ticks_are_merged_into_the_requested_columns() {
        let run = run_with_successes(&[10, 20, 0, 40, 50]);
        let whole = figures_over_time(&run, 100);
        assert_eq!(whole.len(), 5);
        assert_eq!((whole[1].succeeded_rps, whole[1].p50_ns, whole[2].p50_ns), (200.0, Some(2e6), None));
        let joined = figures_over_time(&run, 2);
        assert_eq!(joined.iter().map(|m| m.start_s).collect::<Vec<_>>(), [0.0, 0.3]);
        assert!((joined[0].succeeded_rps - 100.0).abs() < 1e-9, "{joined:?}");
        assert!(figures_over_time(&Run::new(run.plan.clone()), 10).is_empty());
    }

    #[test]
    fn the_heatmap_counts_every_response() {
        let run = run_with_successes(&[10, 20, 0, 40, 50]);
        for (columns, rows) in [(100, 20), (2, 3), (1, 1)] {
            let heat = heat_map(&run, columns, rows);
            assert_eq!(heat.cells.iter().map(|c| c.2).sum::<u64>(), 120);
            assert!(heat.columns <= columns.max(1) && heat.edges_ns.len() == rows + 1, "{heat:?}");
            assert!(heat.cells.iter().all(|c| c.0 < heat.columns && c.1 < rows));
        }
        assert_eq!(heat_map(&Run::new(run.plan.clone()), 10, 10), LatencyHeatMap::default());
    }

    #[test]
    fn quantiles_ascend_and_end_at_the_maximum() {
        let mut histogram = Histogram::new();
        assert_eq!(latency_by_quantile(&histogram), []);
        (1..=100_000u64).for_each(|v| histogram.record(v * 1000));
        let curve = latency_by_quantile(&histogram);
        assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        assert_eq!(curve.last().map(|last| last.1), Some(1e8));
        assert!(curve.len() < 1100, "{}", curve.len());
    }

    #[test]
    fn the_goodput_error_uses_batch_means() {
        assert_eq!(goodput_error(&run_with_successes(&[10; 4])), None);
        assert_eq!(goodput_error(&run_with_successes(&[0; 20])), None);
        assert_eq!(goodput_error(&run_with_successes(&[10; 20])), Some(0.0));
        // The values of ten intervals alternate between 8 and 12. The standard deviation of these
        // values is 2.108, and the standard deviation of their mean is 0.667. The error is 0.667
        // times 2.262 (Student's t): 1.508 at a mean of 10.
        let ten = goodput_error(&run_with_successes(&[8, 12, 8, 12, 8, 12, 8, 12, 8, 12])).expect("an error");
        assert!((ten - 0.1508).abs() < 0.002, "{ten}");
        // If the values alternate, all batches of two intervals have the same mean.
        assert_eq!(goodput_error(&run_with_successes(&[8, 12].repeat(10))), Some(0.0));
        // Values that stay constant for a long time contain less information than the same number
        // of independent values.
        let slow: Vec<u64> = [8u64, 12].iter().flat_map(|level| [*level; 50]).collect();
        assert!(goodput_error(&run_with_successes(&slow)).is_some_and(|error| error > 0.14));
    }

    #[test]
    fn the_error_between_visits_uses_student_t() {
        for (rates, expect) in [
            (vec![10.0, 12.0], None),
            (vec![0.0; 5], None),
            (vec![10.0; 5], Some(0.0)),
            // The standard deviation of the values is 1, and the standard deviation of their mean
            // is 0.577. The expected error is 0.577 * 4.303 (Student's t), divided by the mean of
            // 10.
            (vec![9.0, 10.0, 11.0], Some(0.2484)),
            // The expected error is 1.155 / 2 (the standard error) * 3.182 (Student's t), divided
            // by the mean of 10.
            (vec![9.0, 11.0, 9.0, 11.0], Some(0.1837)),
            // The expected error is 1.0954 / sqrt(6) (the standard error) * 2.571 (Student's t),
            // divided by the mean of 10.
            (vec![9.0, 11.0, 9.0, 11.0, 9.0, 11.0], Some(0.1150)),
        ] {
            let found = goodput_error_between_visits(&rates);
            let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * b;
            assert!(found.zip(expect).map_or(found == expect, |(a, b)| near(a, b)), "{rates:?}: {found:?}");
        }
    }

    #[test]
    fn spread_is_the_variation_between_equal_periods() {
        assert_eq!(goodput_variation(&run_with_successes(&[10, 10])), None);
        assert_eq!(goodput_variation(&run_with_successes(&[0, 0, 0, 0])), None);
        let even = goodput_variation(&run_with_successes(&[10; 10])).expect("a spread");
        assert_eq!((even.variation, even.period_ns, even.periods), (0.0, 100_000_000, 10));
        let uneven = goodput_variation(&run_with_successes(&[8, 12, 8, 12])).expect("a spread");
        assert!((uneven.variation - 0.2309).abs() < 1e-4, "{uneven:?}");
        let long = goodput_variation(&run_with_successes(&[10; 60])).expect("a spread");
        assert_eq!((long.period_ns, long.periods), (1_000_000_000, 6));
    }
}
