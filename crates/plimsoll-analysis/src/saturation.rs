//! Computes the capacity of a server from its completions while it was saturated. The capacity
//! comes from closed trials ([`Saturation`]), or from open trials with a growing backlog
//! ([`saturated_throughput`]).
//!
//! Not here: the decision whether the server was saturated in a trial ([`crate::judge()`]), and the
//! capacity from several trials ([`crate::find`]).

use crate::watch::TickFigures;
use plimsoll_model::units::SECOND;
pub use plimsoll_statistics::Saturation;

/// Smallest number of pieces (intervals) into which the time of a trial is divided, if the trial
/// has so many ticks. Fewer pieces would not show how much the number of completions varies (the
/// dispersion).
const PIECES_MIN: usize = 8;

/// Computes the completions of a closed trial, in which the server's queue is never empty. Returns
/// `None` with too few responses.
///
/// The responses within the first mean response time are left out: if the users started at about
/// the same time, these responses arrive together. For the dispersion (the variation of the
/// completions), the time is divided into pieces of length `piece_ns`, the latency bound, within
/// which queues even out. If `piece_ns` gives too few pieces, the pieces are shorter.
pub(crate) fn closed_trial_saturation(
    series: &[TickFigures],
    tick_ns: u64,
    response_mean_ns: f64,
    piece_ns: u64,
    requests_each: f64,
) -> Option<Saturation> {
    // A server that still processes the backlog of an earlier load sends no responses to the
    // current load at first.
    let first = series.iter().position(|seen| seen.succeeded > 0)? + 1;
    let in_step = ((response_mean_ns / tick_ns as f64).ceil() as usize).min(series.len() / 4);
    let skip = first.max(in_step);
    let ticks: Vec<f64> = series.get(skip..)?.iter().map(|seen| seen.succeeded as f64).collect();
    let completed: f64 = ticks.iter().sum();
    if ticks.len() < 2 || completed <= 0.0 {
        return None;
    }
    let each = (piece_ns.div_ceil(tick_ns) as usize).min(ticks.len() / PIECES_MIN).max(1);
    let pieces: Vec<f64> = ticks.chunks_exact(each).map(|piece| piece.iter().sum()).collect();
    let mean = pieces.iter().sum::<f64>() / pieces.len() as f64;
    let variance = pieces.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (pieces.len() as f64 - 1.0);
    Some(Saturation {
        completed: completed / requests_each,
        seconds: ticks.len() as f64 * tick_ns as f64 / 1e9,
        dispersion: if mean > 0.0 { variance / mean / requests_each } else { 0.0 },
        pieces: pieces.len() as f64,
    })
}

/// Returns the capacity in successes a second, and its relative standard error; `None` if the
/// capacity is not known. A server that rejects requests (`rejecting`) is saturated from its first
/// rejection on. A server that does not reject requests counts as saturated after a quarter of the
/// ticks, when its queue has filled. The highest and the lowest tenth of the ticks are left out, so
/// that a single stall does not change the capacity.
pub(crate) fn saturated_throughput(series: &[TickFigures], tick_ns: u64, rejecting: bool) -> Option<(f64, f64)> {
    let skip = match rejecting {
        true => series.iter().position(|s| s.failed > 0)? + 1,
        false => series.len() / 4,
    };
    let mut ticks: Vec<u64> = series.get(skip..)?.iter().map(|s| s.succeeded).collect();
    if ticks.len() < 2 {
        return None;
    }
    // If each tick has few responses, the counts of the ticks vary strongly by chance, so no tick
    // is left out.
    ticks.sort_unstable();
    let trim = if ticks[ticks.len() / 2] >= 50 { ticks.len() / 10 } else { 0 };
    let kept = &ticks[trim..ticks.len() - trim];
    let per_tick = kept.iter().sum::<u64>() as f64 / kept.len() as f64;
    // A server without completions has no known capacity.
    if per_tick <= 0.0 {
        return None;
    }
    let variance = kept.iter().map(|c| (*c as f64 - per_tick).powi(2)).sum::<f64>() / kept.len() as f64;
    let error = (variance / kept.len() as f64).sqrt() / per_tick;
    Some((per_tick * SECOND as f64 / tick_ns as f64, error))
}
