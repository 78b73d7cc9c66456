//! The demand of a request on each resource: the time of the resource that one request uses
//! ([`ServiceDemand`]). By the utilisation law, busy time = rate x demand, so the demand gives the
//! rate that saturates the resource. The demand is the slope of the busy time over the rates of
//! several loads. The slope does not contain background work, which uses the same time at every
//! rate.
//!
//! Not here: which resource is the limit (`posterior`).

use super::signals::{LoadSignals, Signal};
use super::thresholds::{MOST_SHARE_MIN, SMALL_SHARE_MAX};

/// A resource whose time requests use, such as a thread or the cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsedResource {
    /// The busiest thread of the server.
    Thread,
    /// All cores of the machine, used by the server, plimsoll and other processes.
    Cores,
    /// The cores that the server may use, if it may not use all cores of the machine.
    AllowedCores,
    /// The CPU quota of the server's control group.
    Quota,
    /// One core of a dependency that has a single process.
    Downstream,
    /// The busiest worker of plimsoll.
    Client,
    /// Interpreters that run one thread at a time, one in each process of the server.
    Interpreter,
}

impl UsedResource {
    /// All resources whose demand every explanation contains.
    const ALL: [UsedResource; 6] = [
        UsedResource::Thread,
        UsedResource::Cores,
        UsedResource::AllowedCores,
        UsedResource::Quota,
        UsedResource::Downstream,
        UsedResource::Client,
    ];

    /// Returns the identifier of the resource, as used in JSON.
    pub fn identifier(self) -> &'static str {
        match self {
            UsedResource::Thread => "thread",
            UsedResource::Cores => "cores",
            UsedResource::AllowedCores => "allowed_cores",
            UsedResource::Quota => "quota",
            UsedResource::Downstream => "downstream",
            UsedResource::Client => "client",
            UsedResource::Interpreter => "interpreter",
        }
    }

    /// Returns the resource in words for people.
    pub fn display_text(self) -> &'static str {
        match self {
            UsedResource::Thread => "the server's busiest thread",
            UsedResource::Cores => "the machine's cores",
            UsedResource::AllowedCores => "the cores that the server may use",
            UsedResource::Quota => "the CPU quota",
            UsedResource::Downstream => "a core of a downstream dependency",
            UsedResource::Client => "plimsoll's busiest worker",
            UsedResource::Interpreter => "the server's interpreter, which runs one thread at a time",
        }
    }

    /// Returns the busy part of the resource during a load, and the resource's capacity, both as
    /// numbers of cores (or of threads). Returns `None` if the busy part or the capacity was not
    /// observed.
    fn busy_and_capacity(self, signals: &LoadSignals) -> Option<(f64, f64)> {
        match self {
            UsedResource::Thread => Some((signals.get(Signal::FullestThread)?, 1.0)),
            UsedResource::Cores => {
                let cores = signals.get(Signal::Cores)?;
                signals.get(Signal::ServerCores)?;
                Some(((cores - signals.get(Signal::Idle)?).max(0.0), cores))
            }
            UsedResource::AllowedCores => {
                let allowed = signals.get(Signal::CoresAllowed)?;
                (allowed < signals.get(Signal::Cores)?).then_some((busy_allowed_cores(signals)?, allowed))
            }
            UsedResource::Quota => Some((signals.get(Signal::ServerCores)?, signals.get(Signal::Quota)?)),
            // If the dependency has several processes, the division of its CPU time between the
            // processes is not known.
            UsedResource::Downstream => (signals.get(Signal::DownstreamProcesses)? <= 1.0)
                .then_some((signals.get(Signal::DownstreamCores)?, 1.0)),
            UsedResource::Client => Some((signals.get(Signal::Generator)?, 1.0)),
            UsedResource::Interpreter => Some((signals.get(Signal::ServerCores)?, signals.get(Signal::Processes)?)),
        }
    }
}

/// Returns how many of the cores that the server may use are busy. Only work of the server, and of
/// dependencies that are bound to the same cores, counts.
pub(super) fn busy_allowed_cores(signals: &LoadSignals) -> Option<f64> {
    Some(signals.get(Signal::ServerCores)? + signals.get(Signal::DownstreamOnItsCores).unwrap_or(0.0))
}

/// The demand of a request on a resource, and the rate that saturates the resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServiceDemand {
    /// The resource.
    pub resource: UsedResource,
    /// Time of the resource that one request uses, s: the slope of busy time over rate.
    pub per_request_s: f64,
    /// The rate that saturates the resource, 1/s.
    pub ceiling_rps: f64,
    /// The range of `ceiling_rps`, 1/s, over estimates from single loads, with a margin of 10 %.
    pub range_rps: (f64, f64),
    /// The maximum share of the resource that was busy in any load, 0..=1.
    pub utilisation_max: f64,
}

/// The minimum busy share of a resource: below this share, its demand cannot be measured.
const BUSY_SHARE_MIN: f64 = 0.002;

/// Computes the demands from the signals of several loads. The resource that saturates at the
/// lowest rate comes first.
pub fn estimate_demands(loads: &[&LoadSignals]) -> Vec<ServiceDemand> {
    let mut found: Vec<ServiceDemand> =
        UsedResource::ALL.into_iter().filter_map(|resource| estimate_demand(resource, loads)).collect();
    found.sort_by(|a, b| a.ceiling_rps.total_cmp(&b.ceiling_rps));
    found
}

/// Computes the demand on the interpreter for a server whose threads share one interpreter in each
/// process. Native code and system calls run without the interpreter, so the server may sustain
/// more than the rate that saturates the interpreter.
pub(super) fn interpreter_demand(loads: &[&LoadSignals]) -> Option<ServiceDemand> {
    estimate_demand(UsedResource::Interpreter, loads)
}

fn estimate_demand(resource: UsedResource, loads: &[&LoadSignals]) -> Option<ServiceDemand> {
    let points: Vec<(f64, f64, f64)> = loads
        .iter()
        .filter_map(|sight| {
            let (busy, capacity) = resource.busy_and_capacity(sight)?;
            Some((responses_per_second(sight)?, busy, capacity))
        })
        .filter(|(rate, _, capacity)| *rate > 0.0 && *capacity > 0.0)
        .collect();
    let capacity = points.last()?.2;
    let used_share = points.iter().map(|(_, busy, capacity)| busy / capacity).fold(0.0, f64::max);
    let (slope, intercept) = fit_slope_and_intercept(&points)?;
    // A hardly busy resource gives no estimate of the rate that saturates it.
    if slope <= 0.0 || used_share < BUSY_SHARE_MIN {
        return None;
    }
    let ceiling_rps = ((capacity - intercept) / slope).max(0.0);
    // Each load with at least half of the highest rate also gives a separate estimate of the rate
    // that saturates the resource.
    let highest = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let alone = points.iter().filter(|(rate, busy, _)| *rate >= MOST_SHARE_MIN * highest && *busy > 0.0);
    let ceilings = alone.map(|(rate, busy, capacity)| capacity * rate / busy).chain([ceiling_rps]);
    let (least, most) = ceilings.fold((f64::INFINITY, 0.0_f64), |range, it| (range.0.min(it), range.1.max(it)));
    let range_rps = (least * (1.0 - SMALL_SHARE_MAX), most * (1.0 + SMALL_SHARE_MAX));
    Some(ServiceDemand { resource, per_request_s: slope, ceiling_rps, range_rps, utilisation_max: used_share })
}

/// Returns the responses a second with any status, because the server worked for all of them.
pub fn responses_per_second(signals: &LoadSignals) -> Option<f64> {
    let refused: u64 = signals.refusals.iter().map(|(_, times)| times).sum();
    Some(signals.get(Signal::Goodput)? + refused as f64 / signals.seconds.max(1e-9))
}

/// Fits a straight line to the points (rate, busy time) by least squares, and returns (slope,
/// intercept). The straight line goes through the origin if the rates hardly differ, or if the
/// intercept would be negative.
fn fit_slope_and_intercept(points: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let most = points.iter().map(|p| p.0).fold(0.0, f64::max);
    let least = points.iter().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let origin = || {
        let (xy, xx) = points.iter().fold((0.0, 0.0), |sum, (x, y, _)| (sum.0 + x * y, sum.1 + x * x));
        (xx > 0.0).then(|| (xy / xx, 0.0))
    };
    if points.len() < 2 || least > most * 0.7 {
        return origin();
    }
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let (xy, xx) = points
        .iter()
        .fold((0.0, 0.0), |sum, (x, y, _)| (sum.0 + (x - mean_x) * (y - mean_y), sum.1 + (x - mean_x).powi(2)));
    let slope = xy / xx;
    let intercept = mean_y - slope * mean_x;
    if intercept < 0.0 { origin() } else { Some((slope, intercept)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_signals(rate: f64, thread: f64, idle: f64) -> LoadSignals {
        let values = [
            (Signal::Goodput, rate),
            (Signal::FullestThread, thread),
            (Signal::ServerCores, thread),
            (Signal::Cores, 4.0),
            (Signal::Idle, idle),
        ];
        LoadSignals { values: values.into(), seconds: 1.0, ..LoadSignals::default() }
    }

    #[test]
    fn the_ceiling_is_the_rate_that_saturates_a_resource() {
        // A request needs 100 us of the thread and 150 us of the cores. Background work uses 0.2
        // cores.
        let of = |rate: f64| load_signals(rate, rate * 100e-6, 4.0 - 0.2 - rate * 150e-6);
        let loads = [of(1_000.0), of(5_000.0), of(9_500.0)];
        let found = estimate_demands(&loads.iter().collect::<Vec<_>>());
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
        assert_eq!(found.iter().map(|d| d.resource).collect::<Vec<_>>(), [UsedResource::Thread, UsedResource::Cores]);
        close(found[0].per_request_s, 100e-6);
        close(found[0].ceiling_rps, 10_000.0);
        close(found[0].utilisation_max, 0.95);
        close(found[1].ceiling_rps, 3.8 / 150e-6);
    }

    #[test]
    fn equal_loads_have_no_separate_slope() {
        let loads = [load_signals(9_000.0, 0.9, 3.0), load_signals(9_100.0, 0.95, 3.0)];
        let found = estimate_demands(&loads.iter().collect::<Vec<_>>());
        assert!((found[0].ceiling_rps / 9_783.0 - 1.0).abs() < 0.01, "{found:?}");
        assert_eq!(estimate_demands(&[]), []);
        assert_eq!(estimate_demands(&[&LoadSignals::default()]), []);
    }
}
