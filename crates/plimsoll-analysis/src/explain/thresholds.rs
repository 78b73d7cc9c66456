//! The thresholds that decide between the answers to a feature (a question about the server), each
//! with its reason.
//!
//! Most thresholds are ratios that several features share, such as "a part", "most" or "has risen".
//! No threshold was fitted to a recorded case, except [`SUSTAINED_GAIN_MIN`]. The value of
//! [`SUSTAINED_GAIN_MIN`] lies between the gains of recorded servers that warmed up and the gains
//! of recorded servers that did not.
//!
//! Not here: the weights of observations (`likelihoods.tsv`).

use std::ops::Range;

/// A part counts as most of the whole if it is at least this share of the whole.
pub(super) const MOST_SHARE_MIN: f64 = 0.5;
/// A part counts as considerable if it is at least this share of the whole.
pub(super) const CONSIDERABLE_SHARE_MIN: f64 = 0.3;
/// A part counts as small if it is at most this share of the whole.
pub(super) const SMALL_SHARE_MAX: f64 = 0.1;
/// A signal has risen with the load if it is at least this multiple of its value at a low load.
pub(super) const RISEN_FACTOR_MIN: f64 = 3.0;
/// A queue or buffer counts as filling up if its length is at least this multiple of its length at
/// the low load. Any higher load makes buffers grow by up to an order of magnitude.
pub(super) const QUEUE_GROWTH_FACTOR_MIN: f64 = 10.0;
/// Two counts agree if they differ by at most this share. Counts sampled ten times a second over a
/// few seconds differ by some per cent.
pub(super) const DIFFERENCE_SHARE_MAX: f64 = 0.15;
/// Two counts of threads agree if they differ by at most this share, because each thread is read
/// only once a second.
pub(super) const THREAD_COUNT_DIFFERENCE_SHARE_MAX: f64 = 0.25;
/// A count, for example of waiting threads, is more than chance if it is at least this number.
/// Counts of one or two occur by chance.
pub(super) const COUNT_ABOVE_CHANCE_MIN: f64 = 4.0;
/// A time that is at least this multiple of another time is longer for a reason, not by chance.
pub(super) const SLOWER_FACTOR_MIN: f64 = 1.5;
/// A time up to this multiple of another time counts as equally short, because timers and wake-ups
/// lengthen both times.
pub(super) const TWOFOLD_FACTOR: f64 = 2.0;

/// Below this number of requests in service at once (Little's law), no resource is always busy.
pub(super) const BUSY_RESOURCE_IN_SERVICE_MIN: f64 = 0.6;
/// If the number of requests in service at once (Little's law) is in this range, the server handles
/// one request after another.
pub(super) const SINGLE_REQUEST_IN_SERVICE: Range<f64> = 0.7..1.35;
/// If at least this number of requests is in service at once (Little's law), the server handles
/// several requests at once.
pub(super) const SEVERAL_IN_SERVICE_MIN: f64 = 1.6;
/// A server keeps up if its throughput is at least this share of the offered rate. Smaller
/// differences between throughput and offered rate are Poisson noise.
pub(super) const KEEPS_UP_SHARE_MIN: f64 = 0.985;
/// The maximum part of a request's service time that the waking of a worker takes, ns. On virtual
/// machines, waking takes tens of microseconds.
pub(super) const WAKE_UP_TIME_MAX_NS: f64 = 1e5;

/// The minimum share of a core that a saturated thread uses; sampling and the kernel take the rest.
pub(super) const SATURATED_THREAD_SHARE_MIN: f64 = 0.92;
/// The minimum share of a core that a saturated thread uses if helper threads of its runtime stop
/// it for a part of the time.
pub(super) const INTERRUPTED_THREAD_SHARE_MIN: f64 = 0.85;
/// The machine's cores count as saturated if at most this share of the cores is idle. Between this
/// share and [`AVAILABLE_IDLE_SHARE_MIN`], the cores count as saturated only if server threads wait
/// for a core.
pub(super) const SATURATED_IDLE_SHARE_MAX: f64 = 0.1;
/// Cores count as available to the server if at least this share of the cores is idle. With this
/// share of the cores idle, on average less than one thread waits for a core (Lq of M/M/c).
pub(super) const AVAILABLE_IDLE_SHARE_MIN: f64 = 0.15;
/// The range of cores that threads use in total if they run one at a time, behind one lock or
/// interpreter.
pub(super) const ONE_CORE_RANGE: Range<f64> = 0.85..1.2;
/// The minimum share of periods in which an exhausted CPU quota stopped the control group. A quota
/// that is exhausted in a smaller share of its periods only shows bursts of work.
pub(super) const THROTTLED_PERIODS_SHARE_MIN: f64 = 0.05;
/// A share counts as noticeable if it is at least this value. For example, garbage collection with
/// a quarter of the CPU time lowers the throughput noticeably.
pub(super) const NOTICEABLE_SHARE_MIN: f64 = 0.25;
/// Garbage collection counts as a cause only if it uses at least this number of cores.
pub(super) const COLLECTOR_CORES_MIN: f64 = 0.15;

/// Failures count as more than accidental if at least this share of the requests or connections
/// fails.
pub(super) const MANY_FAILURES_SHARE_MIN: f64 = 0.01;
/// A limit counts as exhausted if at least this share of the limit is in use.
pub(super) const EXHAUSTED_SHARE_MIN: f64 = 0.97;
/// If at least this share of the local ports is in use, the kernel has few free ports.
pub(super) const PORTS_EXHAUSTED_SHARE_MIN: f64 = 0.85;
/// If opening a connection takes at least this time, ns, the kernel must have dropped the first
/// SYN: Linux repeats a SYN after a second.
pub(super) const LATE_CONNECT_NS_MIN: f64 = 0.9e9;
/// Memory counts as short if the server reads back at least this number of pages a second from
/// storage.
pub(super) const PAGE_READ_RATE_MIN: f64 = 50.0;
/// Storage has a noticeable effect if some task of the machine waits for storage in at least this
/// share of the time (Linux PSI).
pub(super) const STORAGE_WAIT_SHARE_MIN: f64 = 0.3;
/// Usual size of a TCP receive window, bytes. Unread data beyond this size is a queue, not only
/// data in transit.
pub(super) const RECEIVE_WINDOW_BYTES: f64 = 64e3;
/// TCP sends noticeably more slowly if at least this share of the segments is retransmitted (Mathis
/// et al., 1997).
pub(super) const RETRANSMIT_SHARE_MIN: f64 = 0.02;
/// Responses count as evenly spaced if the dispersion of their counts (variance divided by mean) is
/// at most this value. Randomly spaced responses have a dispersion of 1.
pub(super) const PERIODIC_DISPERSION_MAX: f64 = 0.3;
/// If the throughput now is at least this multiple of the throughput in the search, the server was
/// slower during the search. This conclusion holds even if another resource limits the server now.
pub(super) const FASTER_THAN_SEARCH_FACTOR_MIN: f64 = 2.0;
/// The server sustains more than in the search, beyond chance, if it meets the SLO at this multiple
/// of the load line's upper end. An upper end is too low with a probability of 5 %, and then by a
/// few percent.
pub(super) const SUSTAINED_GAIN_MIN: f64 = 1.05;
/// A throughput is clearly higher than the throughput under an overload if it is at least this
/// multiple. The throughput under an overload comes from a single trial, so it varies by chance.
pub(super) const CLEARLY_MORE_FACTOR_MIN: f64 = 1.3;
/// The minimum number of cores that other processes must use to count as a cause.
pub(super) const INTERFERENCE_CORES_MIN: f64 = 0.3;
