//! The capacity of a saturated server, from closed trials ([`Saturation`]) and from open ones with
//! a backlog ([`saturated`]).
//!
//! Not here: which trials are saturated ([`crate::judge()`]), and the estimate over several
//! ([`crate::find`]).

use crate::watch::TickFigures;
use plimsoll_model::units::SECOND;

/// Completions of a server whose queue never emptied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// Successful completions.
    pub completed: f64,
    /// In so many seconds.
    pub seconds: f64,
    /// Variance over mean of the completions in pieces of time: 1 for exponential service, 0 for
    /// constant.
    pub dispersion: f64,
    /// How many pieces that is of.
    pub pieces: f64,
}

/// Pieces that a saturated trial is cut into, at the least: fewer tell no dispersion.
const PIECES_MIN: usize = 8;

/// The completions of a server while its queue never emptied. The first responses of users that all
/// started together come in step, and are left out. Dispersion is taken over pieces as long as the
/// bound, since a queue has that long to even it out; over shorter ones where there would be too
/// few.
pub(crate) fn saturation(
    series: &[TickFigures],
    tick_ns: u64,
    response_mean_ns: f64,
    piece_ns: u64,
    requests_each: f64,
) -> Option<Saturation> {
    // A server that still works on an earlier backlog has no responses at first.
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

/// Throughput of successes while the server was saturated, 1/s: after its queue had filled, or it
/// had begun to reject. With the relative standard error. The highest and lowest tenth of the ticks
/// are dropped, so that a stall does not count as capacity.
pub(crate) fn saturated(series: &[TickFigures], tick_ns: u64, rejecting: bool) -> Option<(f64, f64)> {
    let skip = match rejecting {
        true => series.iter().position(|s| s.failed > 0)? + 1,
        false => series.len() / 4,
    };
    let mut ticks: Vec<u64> = series.get(skip..)?.iter().map(|s| s.succeeded).collect();
    if ticks.len() < 2 {
        return None;
    }
    // Few answers in a tick come in lumps; then every tick counts.
    ticks.sort_unstable();
    let trim = if ticks[ticks.len() / 2] >= 50 { ticks.len() / 10 } else { 0 };
    let kept = &ticks[trim..ticks.len() - trim];
    let per_tick = kept.iter().sum::<u64>() as f64 / kept.len() as f64;
    // A server that did nothing at all showed no capacity.
    if per_tick <= 0.0 {
        return None;
    }
    let variance = kept.iter().map(|c| (*c as f64 - per_tick).powi(2)).sum::<f64>() / kept.len() as f64;
    let error = (variance / kept.len() as f64).sqrt() / per_tick;
    Some((per_tick * SECOND as f64 / tick_ns as f64, error))
}
