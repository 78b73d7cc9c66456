//! The bounds that decide between the answers to a feature, each with its reason.
//!
//! Most bounds are ratios that several questions share, such as "a part", "most" or "has risen". No
//! bound was fitted to a recorded case.
//!
//! Not here: the weights of observations (`likelihoods.tsv`).

use std::ops::Range;

/// From this share of the whole on, a part counts as most of it.
pub(super) const MOST: f64 = 0.5;
/// From this share of the whole on, a part counts as considerable.
pub(super) const PART: f64 = 0.3;
/// Up to this share of the whole, a part counts as small.
pub(super) const FEW: f64 = 0.1;
/// A signal has risen with the load if it is at least this multiple of its value at a low load.
pub(super) const RISEN: f64 = 3.0;
/// A queue or buffer counts as a queue if it has grown by this factor since the low load. Any load
/// makes buffers grow by up to an order of magnitude.
pub(super) const QUEUED: f64 = 10.0;
/// Two counts agree if they differ by at most this share. Counts sampled ten times a second over a
/// few seconds differ by some per cent.
pub(super) const AGREE: f64 = 0.15;
/// Two counts of threads agree if they differ by at most this share, because each thread is read
/// only once a second.
pub(super) const AGREE_ROUGHLY: f64 = 0.25;
/// From this number on, a count cannot be the one or two that occur by chance.
pub(super) const SEVERAL: f64 = 4.0;
/// A time that is at least this multiple of another time is longer for a reason, not by chance.
pub(super) const SLOWER: f64 = 1.5;
/// A time up to this multiple of another time counts as equally short, because timers and wake-ups
/// add to both.
pub(super) const AS_FAST: f64 = 2.0;

/// Below this number of requests in service at once (Little's law), no resource is always busy.
pub(super) const BELOW_ONE: f64 = 0.6;
/// The number of requests in service at once (Little's law) that means: one request after another.
pub(super) const ONE_AT_A_TIME: Range<f64> = 0.7..1.35;
/// From this number of requests in service at once (Little's law) on, the server serves several at
/// once.
pub(super) const MORE_THAN_ONE: f64 = 1.6;
/// A server keeps up if its throughput is at least this share of the offered rate. Smaller gaps are
/// Poisson noise.
pub(super) const KEPT_UP: f64 = 0.985;
/// The part of a request's service time that waking a worker takes at most, ns. It is tens of
/// microseconds on virtual machines.
pub(super) const WAKING_NS: f64 = 1e5;

/// The minimum share of a core that a saturated thread uses; sampling and the kernel take the rest.
pub(super) const FULL: f64 = 0.92;
/// The minimum share of a core that a saturated thread uses if helper threads of its runtime stop
/// it for a part of the time.
pub(super) const NEARLY_FULL: f64 = 0.85;
/// The machine's cores count as saturated if at most this share of them is idle. Cores count as
/// available only from [`SPARE_IDLE`] on; there Lq of M/M/c is below one.
pub(super) const FULL_IDLE: f64 = 0.1;
/// Cores count as available to the server if at least this share of them is idle; see
/// [`FULL_IDLE`].
pub(super) const SPARE_IDLE: f64 = 0.15;
/// The range of cores that threads use in total if they run one at a time, behind one lock or
/// interpreter.
pub(super) const ONE_CORE: Range<f64> = 0.85..1.2;
/// The minimum share of periods in which an exhausted CPU quota stopped the group. A smaller share
/// comes from bursts.
pub(super) const THROTTLED: f64 = 0.05;
/// The minimum share of CPU time with which garbage collection or waiting for locks lowers the
/// throughput noticeably.
pub(super) const FELT: f64 = 0.25;
/// The minimum number of cores with which garbage collection counts as a cause.
pub(super) const COLLECTING_CORES: f64 = 0.15;

/// The minimum share of requests or connections with which failures count as more than accidental.
pub(super) const FAILS: f64 = 0.01;
/// A limit counts as exhausted if at least this share of it is in use.
pub(super) const USED_UP: f64 = 0.97;
/// If at least this share of the local ports is in use, the kernel has few free ports.
pub(super) const PORTS_HELD: f64 = 0.85;
/// Time to connect, ns, from which the kernel must have dropped the first SYN: Linux repeats it
/// after a second.
pub(super) const CONNECTS_LATE_NS: f64 = 0.9e9;
/// The minimum rate of pages read back from storage, 1/s, that means that memory is short.
pub(super) const PAGING: f64 = 50.0;
/// The minimum share of time in which a task of the machine waits for storage (Linux PSI) that
/// counts as a noticeable effect.
pub(super) const IO_PRESSURE: f64 = 0.3;
/// Size of a TCP window, bytes. More unread data cannot just be in transit.
pub(super) const WINDOW: f64 = 64e3;
/// The minimum share of retransmitted segments that lowers TCP's rate (Mathis et al., 1997).
pub(super) const LOSSY: f64 = 0.02;
/// The maximum dispersion (variance divided by mean) of response counts at even intervals; random
/// arrivals have 1.
pub(super) const CLOCK: f64 = 0.3;
/// The server was slower during the search, by more than chance, if it now has at least this
/// multiple of its throughput then.
pub(super) const WARMER: f64 = 2.0;
/// The minimum ratio to the throughput under an overload that is clearly more. That throughput
/// comes from one trial, and so has scatter.
pub(super) const CLEARLY_MORE: f64 = 1.3;
/// The minimum number of cores that other processes must use to count as a cause.
pub(super) const OTHERS_CORES: f64 = 0.3;
