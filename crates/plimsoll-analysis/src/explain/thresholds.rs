//! Every bound between a yes and a no of an observation, with its reason.
//!
//! Most bounds are ratios that several questions share: "a part", "most", "has risen". None was
//! fitted to a case.
//!
//! Not here: the weights of observations (`likelihoods.tsv`).

use std::ops::Range;

/// From this share on, a part counts as most of the whole.
pub(super) const MOST: f64 = 0.5;
/// From this share on, a part has a noticeable effect on the whole.
pub(super) const PART: f64 = 0.3;
/// Up to this share, a part counts as few.
pub(super) const FEW: f64 = 0.1;
/// A value with this multiple of its value at a low load has risen with the load.
pub(super) const RISEN: f64 = 3.0;
/// Queues and buffers grow with any load by an order of magnitude; more than that is a queue.
pub(super) const QUEUED: f64 = 10.0;
/// Two counts agree within this share: sampled ten times a second over a few seconds they differ
/// by a few per cent.
pub(super) const AGREE: f64 = 0.15;
/// Two counts of threads agree within this share: each thread is read only once a second.
pub(super) const AGREE_ROUGHLY: f64 = 0.25;
/// From this number on, a count is more than the one or two that occur by chance.
pub(super) const SEVERAL: f64 = 4.0;
/// A time with this multiple of another time is longer for a reason.
pub(super) const SLOWER: f64 = 1.5;
/// A time up to this multiple of another time counts as equally short: timers and wake-ups add to
/// both.
pub(super) const AS_FAST: f64 = 2.0;

/// Below this number of requests in service (Little's law), no resource is always busy.
pub(super) const BELOW_ONE: f64 = 0.6;
/// In this range of requests in service, requests are served one after another.
pub(super) const ONE_AT_A_TIME: Range<f64> = 0.7..1.35;
/// From this number of requests in service on, several requests are served at once.
pub(super) const MORE_THAN_ONE: f64 = 1.6;
/// A server that completes less than this share of the offered rate does not keep up. Smaller gaps
/// are Poisson noise.
pub(super) const KEPT_UP: f64 = 0.985;
/// Part of a request's time that wakes a worker, ns: tens of microseconds on virtual machines.
pub(super) const WAKING_NS: f64 = 1e5;

/// A thread that uses more than this share of a core is saturated: sampling and the kernel use the
/// rest.
pub(super) const FULL: f64 = 0.92;
/// A thread whose helpers work while it is stopped is saturated from this share of a core on.
pub(super) const NEARLY_FULL: f64 = 0.85;
/// Cores are saturated up to this idle share. They are idle from [`SPARE_IDLE`] on, where Lq of
/// M/M/c is below one.
pub(super) const FULL_IDLE: f64 = 0.1;
/// From this idle share on, the server has idle cores; see [`FULL_IDLE`].
pub(super) const SPARE_IDLE: f64 = 0.15;
/// Threads of one interpreter, or behind one lock, together use one core: this range.
pub(super) const ONE_CORE: Range<f64> = 0.85..1.2;
/// From this share of periods on, the quota stopped the group; smaller shares are bursts.
pub(super) const THROTTLED: f64 = 0.05;
/// A collector or a wait for locks with this share of the CPU time lowers the rate noticeably.
pub(super) const FELT: f64 = 0.25;
/// From this number on, the cores of a collector are reported.
pub(super) const COLLECTING_CORES: f64 = 0.15;

/// From this share on, requests or connections count as failing.
pub(super) const FAILS: f64 = 0.01;
/// A limit that is used to this share is exhausted.
pub(super) const USED_UP: f64 = 0.97;
/// From this share of the local ports in use on, the kernel has few free ports.
pub(super) const PORTS_HELD: f64 = 0.85;
/// A connection this late, in ns, was refused once: Linux repeats a SYN after a second.
pub(super) const CONNECTS_LATE_NS: f64 = 0.9e9;
/// Pages a second that a server reads back from storage when memory is short.
pub(super) const PAGING: f64 = 50.0;
/// Share of time in which a task of the machine waits for storage (PSI) with a noticeable effect.
pub(super) const IO_PRESSURE: f64 = 0.3;
/// A TCP window, bytes: more unread data is not just in transit.
pub(super) const WINDOW: f64 = 64e3;
/// Share of retransmitted segments from which TCP's rate falls (Mathis et al., 1997).
pub(super) const LOSSY: f64 = 0.02;
/// Dispersion (variance divided by mean) of counts at constant intervals; random arrivals have 1.
pub(super) const CLOCK: f64 = 0.3;
/// A warm server with this multiple of its earlier throughput was slowed by more than chance.
pub(super) const WARMER: f64 = 2.0;
/// The throughput under an overload has the scatter of one trial; this is clearly more.
pub(super) const CLEARLY_MORE: f64 = 1.3;
/// Cores that other processes must use before they can be the cause.
pub(super) const OTHERS_CORES: f64 = 0.3;
