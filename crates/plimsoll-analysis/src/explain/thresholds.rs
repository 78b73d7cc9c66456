//! Every bound by which an observation becomes a yes or a no, with its reason.
//!
//! Most are ratios that several questions share: "a part", "most", "has risen". None was fitted to
//! a case. Not here: the weights of observations (`likelihoods.tsv`).

use std::ops::Range;

/// A share from here on is most of something.
pub(super) const MOST: f64 = 0.5;
/// A share from here on is a part of it that can be felt.
pub(super) const PART: f64 = 0.3;
/// A share up to here is a small one.
pub(super) const FEW: f64 = 0.1;
/// A value with this multiple of its value at a low load has risen with the load.
pub(super) const RISEN: f64 = 3.0;
/// Queues and buffers grow with any load by an order of magnitude; more than that is a queue.
pub(super) const QUEUED: f64 = 10.0;
/// Two counts agree within this share: sampled ten times a second over a few seconds they differ
/// by a few per cent.
pub(super) const AGREE: f64 = 0.15;
/// The same for counts of threads, of which each is read once a second.
pub(super) const AGREE_ROUGHLY: f64 = 0.25;
/// So many of something are more than the one or two that are there by chance.
pub(super) const SEVERAL: f64 = 4.0;
/// A time that is so many times another one is longer for a reason.
pub(super) const SLOWER: f64 = 1.5;
/// A time up to so many times another one is as short: timers and wake-ups add to both.
pub(super) const AS_FAST: f64 = 2.0;

/// Requests served at a time (Little's law): below this nothing works all the time...
pub(super) const BELOW_ONE: f64 = 0.6;
/// ... within this range it is one after the other...
pub(super) const ONE_AT_A_TIME: Range<f64> = 0.7..1.35;
/// ... and from here on it is more than one.
pub(super) const MORE_THAN_ONE: f64 = 1.6;
/// A server that completes less than this part of the offered rate does not keep up: the rest is
/// Poisson noise.
pub(super) const KEPT_UP: f64 = 0.985;
/// The time to wake a worker that is a part of a request's time, ns: tens of microseconds on
/// virtual machines.
pub(super) const WAKING_NS: f64 = 1e5;

/// A thread that uses more of a core has no room left: sampling and the kernel take the rest.
pub(super) const FULL: f64 = 0.92;
/// Utilisation above which a thread counts as saturated if helpers work while it waits.
pub(super) const NEARLY_FULL: f64 = 0.85;
/// Cores are full up to this idle share, and to spare from the next one on (Lq of M/M/c is below
/// one up to there).
pub(super) const FULL_IDLE: f64 = 0.1;
/// See [`FULL_IDLE`].
pub(super) const SPARE_IDLE: f64 = 0.15;
/// Threads of one interpreter, or behind one lock, use one core's worth: this range.
pub(super) const ONE_CORE: Range<f64> = 0.85..1.2;
/// From this share of periods on a quota was what stopped the group: fewer are bursts.
pub(super) const THROTTLED: f64 = 0.05;
/// A collector, or waiting for locks, that takes this share of the CPU time is felt in the rate.
pub(super) const FELT: f64 = 0.25;
/// Cores of a collector that are worth telling.
pub(super) const COLLECTING_CORES: f64 = 0.15;

/// Requests fail, or connections do, from this share on.
pub(super) const FAILS: f64 = 0.01;
/// A limit that is used to this share is used up.
pub(super) const USED_UP: f64 = 0.97;
/// The kernel has few free local ports with so many in use.
pub(super) const PORTS_HELD: f64 = 0.85;
/// Linux sends a SYN again after a second; a connection this late was refused once.
pub(super) const CONNECTS_LATE_NS: f64 = 0.9e9;
/// Pages a second that a server reads back from storage when memory is short.
pub(super) const PAGING: f64 = 50.0;
/// Share of time in which a task waits for storage (PSI) that is felt, where it is the machine's.
pub(super) const IO_PRESSURE: f64 = 0.3;
/// A TCP window and more, bytes: unread data of this size is not just in transit.
pub(super) const WINDOW: f64 = 64e3;
/// Share of segments sent again from which TCP's rate falls (Mathis et al., 1997).
pub(super) const LOSSY: f64 = 0.02;
/// Variance over mean of a clock's counts; random arrivals have 1.
pub(super) const CLOCK: f64 = 0.3;
/// A warm server with this multiple of its earlier throughput was slowed by more than chance.
pub(super) const WARMER: f64 = 2.0;
/// The throughput under an overload has the scatter of one trial; this is clearly more.
pub(super) const CLEARLY_MORE: f64 = 1.3;
/// Cores that other processes must use before they can be the cause.
pub(super) const OTHERS_CORES: f64 = 0.3;
