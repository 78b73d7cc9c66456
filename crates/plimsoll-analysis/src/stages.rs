//! The figures of each stage of a load with stages. The figures are computed from the recorded
//! intervals, so that every reader of the run file gets the same figures.
//!
//! An interval belongs to the stage that contains its middle. Scheduled requests count in the
//! interval of their intended start, and responses in the interval of their arrival. So the
//! response to a request of one stage may count in the next stage. Responses after the end of the
//! schedule count in the last stage.

use crate::quantile::Quantile;
use plimsoll_model::{Histogram, Ledger, Run};

/// The figures of one stage of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct StageFigures {
    /// Level at the start of the stage: users, or requests a second.
    pub from: f64,
    /// Level at the end of the stage: users, or requests a second.
    pub to: f64,
    /// Start of the stage, ns since the start of the measured window.
    pub start_ns: u64,
    /// Length of the stage, ns; shorter than planned if the load ended during the stage.
    pub duration_ns: u64,
    /// The outcomes of the requests, summed over the intervals of the stage.
    pub ledger: Ledger,
    /// Successes a second, over the part of the stage that lies inside the measured window.
    pub achieved_rps: f64,
    /// Share of the requests of the stage that succeeded, 0..=1. Failed, unsent and unanswered
    /// requests count as not succeeded.
    pub success_rate: f64,
    /// Response time p50 of the responses that arrived in the stage.
    pub p50: Quantile,
    /// Response time p99 of the responses that arrived in the stage.
    pub p99: Quantile,
    /// Longest response time of the responses that arrived in the stage, ns.
    pub max_ns: u64,
}

/// Returns the figures of the stages that a run reached. The list is empty for a load with a single
/// constant level.
pub fn stage_figures(run: &Run) -> Vec<StageFigures> {
    let curve = run.plan.load.shape.curve();
    if curve.stages.iter().all(|stage| stage.from == stage.to) && curve.stages.len() < 2 {
        return Vec::new();
    }
    let length_ns = run.plan.load.interval_ns.max(1);
    let mut out = Vec::new();
    let mut from_ns = run.plan.load.warmup_ns;
    for (number, stage) in curve.stages.iter().enumerate() {
        let Some(asked_ns) = stage.duration_ns.or(run.plan.load.duration_ns) else { break };
        let to_ns = from_ns.saturating_add(asked_ns);
        let last = number + 1 == curve.stages.len();
        if from_ns >= run.window_ns.1 {
            break;
        }
        let (mut ledger, mut response) = (Ledger::default(), Histogram::new());
        let (mut in_window, mut covered_ns) = (0, 0);
        for (index, interval) in &run.intervals {
            let start_ns = u64::from(*index).saturating_mul(length_ns);
            let middle_ns = start_ns.saturating_add(length_ns / 2);
            let open_end = last || to_ns >= run.window_ns.1;
            if middle_ns < from_ns || middle_ns >= to_ns && !open_end {
                continue;
            }
            let whole = interval.all_routes();
            ledger.merge(&whole.ledger);
            response.merge_sparse(&whole.response);
            in_window += whole.succeeded_in_window;
            covered_ns += start_ns.saturating_add(length_ns).min(run.window_ns.1).saturating_sub(start_ns);
        }
        let ended = ledger.finished_requests() + ledger.unsent + ledger.in_flight;
        let covered_s = covered_ns as f64 / 1e9;
        out.push(StageFigures {
            from: stage.from,
            to: stage.to,
            start_ns: from_ns - run.plan.load.warmup_ns,
            duration_ns: to_ns.min(run.window_ns.1) - from_ns,
            ledger,
            achieved_rps: if covered_s > 0.0 { in_window as f64 / covered_s } else { 0.0 },
            success_rate: if ended > 0 { ledger.succeeded as f64 / ended as f64 } else { 0.0 },
            p50: Quantile::compute(&response, (ended, ledger.succeeded), 0.5),
            p99: Quantile::compute(&response, (ended, ledger.succeeded), 0.99),
            max_ns: response.max_ns(),
        });
        from_ns = to_ns;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::units::SECOND;
    use plimsoll_model::{ArrivalSpacing, Interval, LoadCurve, LoadShape, Plan};

    /// Creates a run with a warm-up of 200 ms. Interval i (of 100 ms) has `counts[i]` successes,
    /// each with a response time of i + 1 ms.
    fn run_with_stages(stages: &str, counts: &[u64], window_end_ns: u64) -> Run {
        let rate = LoadCurve::parse(stages).expect("a curve");
        let shape = LoadShape::Open { rate, arrivals: ArrivalSpacing::Constant };
        let mut plan = Plan::for_get_request("h", 80, vec![], shape);
        plan.load.warmup_ns = 200_000_000;
        let mut run = Run::new(plan);
        for (at, count) in counts.iter().enumerate() {
            let mut interval = Interval::default();
            let mut response = Histogram::new();
            response.record_n(1_000_000 * (at as u64 + 1), *count);
            let figures = interval.routes.figures_mut(0);
            figures.response = response.drain();
            figures.ledger.succeeded = *count;
            figures.ledger.scheduled = *count;
            let inside = (at as u64 + 1) * 100_000_000 <= window_end_ns;
            figures.succeeded_in_window = if inside { *count } else { 0 };
            run.push(at as u64 * 100_000_000, interval);
        }
        run.window_ns = (200_000_000, window_end_ns);
        run
    }

    #[test]
    fn stage_figures_sum_to_the_load() {
        // The run has two intervals of warm-up, three and four intervals in its two stages, and one
        // interval of late responses.
        let staged = run_with_stages("0..100@300ms,100@400ms", &[0, 0, 1, 2, 3, 10, 10, 10, 10, 1], 900_000_000);
        let figures = stage_figures(&staged);
        let of = |s: &StageFigures| (s.from, s.to, s.start_ns, s.duration_ns, s.ledger.scheduled);
        assert_eq!(
            figures.iter().map(of).collect::<Vec<_>>(),
            [(0.0, 100.0, 0, 300_000_000, 6), (100.0, 100.0, 300_000_000, 400_000_000, 41)]
        );
        assert!((figures[0].achieved_rps - 20.0).abs() < 1e-9, "{figures:?}");
        assert!((figures[1].achieved_rps - 100.0).abs() < 1e-9, "{figures:?}");
        let ms = |ns: u64| ns as f64 / 1e6;
        assert!((ms(figures[0].max_ns) - 5.0).abs() < 0.01 && (ms(figures[1].max_ns) - 10.0).abs() < 0.01);
        assert_eq!(
            figures.iter().map(|s| s.ledger.scheduled).sum::<u64>(),
            staged.ledger().scheduled,
            "nothing is lost between stages"
        );
    }

    #[test]
    fn unreached_stages_are_absent_and_cut_stages_shorter() {
        let cut = run_with_stages("100@300ms,200@10s,300@10s", &[0, 0, 10, 10, 10, 20, 20], 700_000_000);
        let figures = stage_figures(&cut);
        assert_eq!(figures.iter().map(|s| s.duration_ns).collect::<Vec<_>>(), [300_000_000, 200_000_000]);
        assert!((figures[1].achieved_rps - 200.0).abs() < 1e-9, "{figures:?}");
        for same in ["100", "100@10s"] {
            let rate = LoadCurve::parse(same).expect("a curve");
            let shape = LoadShape::Open { rate, arrivals: ArrivalSpacing::Constant };
            let mut plain = run_with_stages("1@1s,2@1s", &[1, 1], SECOND);
            plain.plan.load.shape = shape;
            assert!(stage_figures(&plain).is_empty(), "{same}");
        }
        assert_eq!(
            stage_figures(&run_with_stages("0..100@1s", &[1; 12], 1_200_000_000)).len(),
            1,
            "a ramp says from where to where"
        );
    }
}
