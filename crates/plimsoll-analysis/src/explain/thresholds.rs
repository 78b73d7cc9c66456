//! The bounds that decide between the answers to a feature, each with its reason.
//!
//! Most bounds are ratios that several questions share, such as "a part", "most" or "has risen". No
//! bound was fitted to a recorded case.
//!
//! Not here: the weights of observations (`likelihoods.tsv`).

use std::ops::Range;

/// From this share of the whole on, a part counts as most of the whole.
pub(super) const MOST_SHARE_MIN: f64 = 0.5;
/// From this share of the whole on, a part counts as considerable.
pub(super) const PART: f64 = 0.3;
/// Up to this share of the whole, a part counts as small.
pub(super) const FEW: f64 = 0.1;
/// A signal has risen with the load if it is at least this multiple of its value at a low load.
pub(super) const RISEN_FACTOR_MIN: f64 = 3.0;
/// A queue or buffer counts as a queue if it has grown by this factor since the low load. Any load
/// makes buffers grow by up to an order of magnitude.
pub(super) const QUEUE_GROWTH_FACTOR: f64 = 10.0;
/// Two counts agree if they differ by at most this share. Counts sampled ten times a second over a
/// few seconds differ by some per cent.
pub(super) const AGREEMENT_SHARE: f64 = 0.15;
/// Two counts of threads agree if they differ by at most this share, because each thread is read
/// only once a second.
pub(super) const ROUGH_AGREEMENT_SHARE: f64 = 0.25;
/// From this number on, a count cannot be the one or two that occur by chance.
pub(super) const COUNT_ABOVE_CHANCE_MIN: f64 = 4.0;
/// A time that is at least this multiple of another time is longer for a reason, not by chance.
pub(super) const SLOWER_FACTOR_MIN: f64 = 1.5;
/// A time up to this multiple of another time counts as equally short, because timers and wake-ups
/// add to both.
pub(super) const EQUALLY_SHORT_FACTOR: f64 = 2.0;

/// Below this number of requests in service at once (Little's law), no resource is always busy.
pub(super) const BUSY_RESOURCE_IN_SERVICE_MIN: f64 = 0.6;
/// The number of requests in service at once (Little's law) that means: one request after another.
pub(super) const SINGLE_REQUEST_IN_SERVICE: Range<f64> = 0.7..1.35;
/// From this number of requests in service at once (Little's law) on, the server serves several at
/// once.
pub(super) const SEVERAL_IN_SERVICE_MIN: f64 = 1.6;
/// A server keeps up if its throughput is at least this share of the offered rate. Smaller gaps are
/// Poisson noise.
pub(super) const KEEPS_UP_SHARE_MIN: f64 = 0.985;
/// The part of a request's service time that waking a worker takes at most, ns. It is tens of
/// microseconds on virtual machines.
pub(super) const WAKING_NS: f64 = 1e5;

/// The minimum share of a core that a saturated thread uses; sampling and the kernel take the rest.
pub(super) const FULL: f64 = 0.92;
/// The minimum share of a core that a saturated thread uses if helper threads of its runtime stop
/// it for a part of the time.
pub(super) const NEARLY_FULL: f64 = 0.85;
/// The machine's cores count as saturated if at most this share of them is idle. Cores count as
/// available only from [`AVAILABLE_IDLE_SHARE_MIN`] on; there Lq of M/M/c is below one.
pub(super) const SATURATED_IDLE_SHARE_MAX: f64 = 0.1;
/// Cores count as available to the server if at least this share of them is idle; see
/// [`SATURATED_IDLE_SHARE_MAX`].
pub(super) const AVAILABLE_IDLE_SHARE_MIN: f64 = 0.15;
/// The range of cores that threads use in total if they run one at a time, behind one lock or
/// interpreter.
pub(super) const ONE_CORE_RANGE: Range<f64> = 0.85..1.2;
/// The minimum share of periods in which an exhausted CPU quota stopped the group. A smaller share
/// comes from bursts.
pub(super) const THROTTLED_PERIODS_SHARE_MIN: f64 = 0.05;
/// The minimum share of CPU time with which garbage collection or waiting for locks lowers the
/// throughput noticeably.
pub(super) const NOTICEABLE_SHARE_MIN: f64 = 0.25;
/// The minimum number of cores with which garbage collection counts as a cause.
pub(super) const COLLECTOR_CORES_MIN: f64 = 0.15;

/// The minimum share of requests or connections with which failures count as more than accidental.
pub(super) const MANY_FAILURES_SHARE: f64 = 0.01;
/// A limit counts as exhausted if at least this share of the limit is in use.
pub(super) const EXHAUSTED_SHARE_MIN: f64 = 0.97;
/// If at least this share of the local ports is in use, the kernel has few free ports.
pub(super) const PORTS_EXHAUSTED_SHARE: f64 = 0.85;
/// Time to connect, ns, from which the kernel must have dropped the first SYN: Linux repeats it
/// after a second.
pub(super) const LATE_CONNECT_NS: f64 = 0.9e9;
/// The minimum rate of pages read back from storage, 1/s, that means that memory is short.
pub(super) const PAGE_READ_RATE_MIN: f64 = 50.0;
/// The minimum share of time in which a task of the machine waits for storage (Linux PSI) that
/// counts as a noticeable effect.
pub(super) const IO_PRESSURE: f64 = 0.3;
/// Size of a TCP window, bytes. More unread data cannot just be in transit.
pub(super) const WINDOW: f64 = 64e3;
/// The minimum share of retransmitted segments that lowers TCP's rate (Mathis et al., 1997).
pub(super) const RETRANSMIT_SHARE_MIN: f64 = 0.02;
/// The maximum dispersion (variance divided by mean) of response counts at even intervals; random
/// arrivals have 1.
pub(super) const PERIODIC_DISPERSION_MAX: f64 = 0.3;
/// The server was slower during the search, by more than chance, if it now has at least this
/// multiple of its throughput then.
pub(super) const FASTER_THAN_SEARCH_FACTOR: f64 = 2.0;
/// The minimum ratio to the throughput under an overload that is clearly more. That throughput
/// comes from one trial, and so has scatter.
pub(super) const CLEARLY_MORE_FACTOR: f64 = 1.3;
/// The minimum number of cores that other processes must use to count as a cause.
pub(super) const INTERFERENCE_CORES_MIN: f64 = 0.3;
