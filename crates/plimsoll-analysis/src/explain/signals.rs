//! The signals of one load ([`LoadSignals`]): figures of the load and of all probes, measured over
//! the measured window. A signal that was not observed is missing, never 0.
//!
//! Not here: the conclusions from signals (`features`).

use super::function_kinds::{stack_collects_garbage, stack_waits_for_lock};
use super::thresholds::SATURATED_THREAD_SHARE_MIN;
use crate::delayed_acks;
use crate::format;
use crate::profile::sampled_cpu_time_ns;
use crate::sentence::Sentence;
use crate::server::{BusiestThread, thread_shares};
use crate::summary::Summary;
use plimsoll_model::series_table::{self as table, SeriesRow};
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{GrpcStatus, Probes, RequestFailure, Run, SeriesKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The maximum time between an edge of the measured window and the probe reading that stands for
/// this edge, ns. The bound exceeds one second because some probes read only once a second.
const READING_DISTANCE_MAX_NS: i64 = 1_200 * MS as i64;

/// The texts about a signal (a measured figure of a load): name, unit, words and source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalText {
    /// The name of the signal in JSON.
    pub name: &'static str,
    /// The unit of the signal: `1/s`, `ns`, `cores`, `share`, `bytes`, `bytes/s`, or empty for a
    /// plain number.
    pub unit: &'static str,
    /// The name of the signal, in words for people.
    pub words: &'static str,
    /// The source of the signal in words, such as `the load` or `sockets`.
    pub source: &'static str,
}

/// Declares the enum of all signals. Each entry gives the signal's name in JSON, its unit, its name
/// for people, and its source. An entry that ends with a [`SeriesFigure`] is read from recorded
/// series.
macro_rules! signals {
    ($($(#[$doc:meta])* $signal:ident: $name:literal, $unit:literal, $words:literal, $source:literal
        $(= $figure:ident($($row:ident),*))?;)*) => {
        /// A signal: one measured figure of a load, or of the server and its machine during the
        /// load.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Signal {
            $($(#[$doc])* $signal,)*
        }

        impl Signal {
            /// Returns the texts about this signal.
            pub fn text(self) -> SignalText {
                let (name, unit, words, source) = match self {
                    $(Signal::$signal => ($name, $unit, $words, $source),)*
                };
                SignalText { name, unit, words, source }
            }
        }

        /// The signals that are read from recorded series, each with its figure.
        const SERIES_FIGURES: &[(Signal, SeriesFigure)] =
            &[$($((Signal::$signal, SeriesFigure::$figure($(table::$row),*)),)?)*];
    };
}

/// A figure of one or two recorded series over the measured window.
#[derive(Clone, Copy)]
enum SeriesFigure {
    /// The mean of a gauge.
    Mean(SeriesRow),
    /// The highest reading of a gauge.
    Max(SeriesRow),
    /// The highest reading of a gauge, divided by the highest reading of another gauge.
    MaxRatio(SeriesRow, SeriesRow),
    /// The increase of a counter a second.
    PerSecond(SeriesRow),
    /// The increase of a counter of ns, divided by the length of the window, such as used cores.
    PerTime(SeriesRow),
    /// The increase of a counter, divided by the number of responses.
    PerResponse(SeriesRow),
    /// The increase of a counter, divided by the increase of another counter.
    IncreaseRatio(SeriesRow, SeriesRow),
}

signals! {
    /// Rate of the requests that the load scheduled.
    Offered: "offered", "1/s", "requests offered", "the load";
    /// Rate of the successful requests in the measured window.
    Goodput: "goodput", "1/s", "goodput", "the load";
    /// Median response time: from the intended start of a request to its response.
    P50: "p50", "ns", "response time p50", "the load";
    /// 99th percentile of the response time: from the intended start of a request to its response.
    P99: "p99", "ns", "response time p99", "the load";
    /// Median service time: from the sending of a request to its response.
    Service: "service_p50", "ns", "service time p50", "the load";
    /// Median time from the sending of a request to the first byte of its response.
    FirstByte: "ttfb_p50", "ns", "time to first byte p50", "the load";
    /// Mean number of requests in flight.
    InFlight: "in_flight", "", "requests in flight", "the load";
    /// Share of the scheduled requests that failed, were not sent, or were in flight at the end.
    Failed: "failed", "share", "requests that failed", "the load";
    /// Share of the responses with status 429 or 503; for gRPC calls, with RESOURCE_EXHAUSTED or
    /// UNAVAILABLE.
    Refused: "refused", "share", "responses that reject load (429, 503, RESOURCE_EXHAUSTED, UNAVAILABLE)", "the load";
    /// Time to open a connection, p99.
    Connect: "connect_p99", "ns", "time to connect p99", "the load";
    /// Share of plimsoll's attempted connections that could not be opened.
    ConnectFailed: "connect_failed", "share", "connections that failed", "the load";
    /// Index of dispersion of the responses: variance divided by mean of their counts per tick. The
    /// index is 1 for random completions, and 0 for completions at even intervals.
    Dispersion: "dispersion", "", "unevenness of response arrivals (1: random, 0: even)", "the load";
    /// Share of the measured time without responses although requests are in flight. The value is 0
    /// unless responses come in batches of about equal size at about equal intervals.
    Lumps: "lumps", "share", "time without responses between batches", "the load";
    /// Rate of bytes that plimsoll received.
    BytesIn: "bytes_in", "bytes/s", "bytes received", "the load";
    /// Utilisation of plimsoll's busiest worker thread: the share of the time in which the thread
    /// works.
    Generator: "generator", "share", "plimsoll's busiest worker", "plimsoll";
    /// Cores that plimsoll uses for its work. Cores that plimsoll uses for busy waiting do not
    /// count.
    ClientCores: "client_cores", "cores", "cores used by plimsoll, without busy waiting", "plimsoll";
    /// Cores that the server's processes used.
    ServerCores: "server_cores", "cores", "cores used by the server", "the server's processes"
        = PerTime(SERVER_CPU);
    /// CPU time of the server for each response.
    ServerCpu: "server_cpu", "ns", "CPU time of the server per request", "the server's processes"
        = PerResponse(SERVER_CPU);
    /// Cores that the server's processes may run on.
    CoresAllowed: "cores_allowed", "", "cores that the server may use", "the server's processes"
        = Mean(SERVER_CORES_ALLOWED);
    /// Share of one core that the busiest thread used.
    FullestThread: "fullest_thread", "share", "CPU use of the server's busiest thread", "the server's threads";
    /// Number of saturated threads of the server, each with at least 92 % of a core.
    FullThreads: "full_threads", "", "saturated threads", "the server's threads";
    /// Number of threads of the server.
    Threads: "threads", "", "threads of the server", "the server's processes"
        = Max(SERVER_THREADS);
    /// Number of processes of the server.
    Processes: "processes", "", "processes of the server", "the server's processes"
        = Max(SERVER_PROCESSES);
    /// Mean number of server threads that wait for a core.
    RunQueue: "run_queue", "", "server threads that wait for a core", "the server's threads"
        = PerTime(SERVER_RUN_QUEUE_WAIT);
    /// Voluntary context switches of the server for each response.
    Switches: "switches", "", "voluntary context switches per request", "the server's threads"
        = PerResponse(SERVER_SWITCHES_VOLUNTARY);
    /// Mean number of server threads in uninterruptible waits, mostly for storage.
    Blocked: "blocked", "", "server threads in uninterruptible sleep, mostly for storage", "the server's threads"
        = Mean(SERVER_THREADS_BLOCKED);
    /// Rate of the server's memory pages that were read back from storage.
    MajorFaults: "major_faults", "1/s", "memory pages read back from storage", "the server's processes"
        = PerSecond(SERVER_MAJOR_FAULTS);
    /// Open files of the server as a share of its limit.
    Files: "files", "share", "server's open files, as a share of its limit", "the server's processes"
        = MaxRatio(SERVER_FILES_OPEN, SERVER_FILES_MAX);
    /// Connections in the server's accept queue, as a share of the queue's maximum length; the
    /// maximum over time.
    ListenQueue: "listen_queue", "share", "accept queue length, as a share of its limit", "sockets"
        = MaxRatio(LISTEN_QUEUE, LISTEN_BACKLOG);
    /// Mean number of connections in the server's accept queue.
    Unaccepted: "unaccepted", "", "connections not yet accepted by the server", "sockets"
        = Mean(LISTEN_QUEUE);
    /// Rate of connections that the kernel dropped because the server's accept queue was full.
    ListenOverflows: "listen_overflows", "1/s", "connections dropped because of a full accept queue", "the kernel's TCP"
        = PerSecond(TCP_LISTEN_OVERFLOWS);
    /// Mean number of bytes in the server's send buffers.
    SendQueue: "send_queue", "bytes", "bytes in the server's send buffers", "sockets"
        = Mean(ACCEPTED_SEND_QUEUE);
    /// Share of the server's sending time in which the receive window of the client was full (TCP
    /// flow control).
    WindowLimited: "window_limited", "share", "time in which a client's receive window was full", "sockets"
        = Mean(ACCEPTED_WINDOW_LIMITED);
    /// Mean number of the server's connections that cannot send because the client's receive window
    /// is full.
    WindowWaiting: "window_waiting", "", "connections whose client has a full receive window", "sockets"
        = Mean(ACCEPTED_WINDOW_WAITING);
    /// Cores that the server's dependencies used on this machine.
    DownstreamCores: "downstream_cores", "cores", "cores used by dependencies", "processes"
        = PerTime(DOWNSTREAM_CPU);
    /// Cores that dependencies used among the cores that the server may use. Only dependencies that
    /// are bound to the same cores count.
    DownstreamOnItsCores: "downstream_on_its_cores", "cores",
        "cores used by dependencies, among the server's own cores", "processes"
        = PerTime(DOWNSTREAM_CPU_ON_SERVER_CORES);
    /// Number of processes of the server's dependencies on this machine.
    DownstreamProcesses: "downstream_processes", "", "processes of dependencies", "processes"
        = Max(DOWNSTREAM_PROCESSES);
    /// Mean number of database processes whose title says that they wait for a lock of another
    /// statement.
    DownstreamInLock: "downstream_in_lock", "", "database statements that wait for a lock of another statement", "titles of processes"
        = Mean(DOWNSTREAM_IN_LOCK);
    /// Mean number of a database's session threads that wait to be woken. A session thread that
    /// waits to be woken either waits for a lock of another session, or has no work.
    DownstreamThreadsWaiting: "downstream_threads_waiting", "", "database threads that wait for a lock or for work",
        "the wait states of the database's threads"
        = Mean(DOWNSTREAM_THREADS_WAITING);
    /// Share of the periods in which the quota of a dependency's control group was exhausted; the
    /// maximum over groups.
    DownstreamThrottled: "downstream_throttled", "share", "periods in which a dependency's CPU quota was exhausted", "the control groups of dependencies";
    /// CPU quota of the dependency that is throttled most, in cores.
    DownstreamQuota: "downstream_quota", "cores", "quota of a dependency", "the control groups of dependencies";
    /// The server's connections to the dependency with the most connections; the maximum over time.
    PeerConnections: "peer_connections", "", "connections to a dependency", "sockets";
    /// Mean number of open calls to a dependency: connections that wait for its response; the
    /// maximum over dependencies.
    PeerWaiting: "peer_waiting", "", "open calls to a dependency", "sockets";
    /// Mean number of bytes from all dependencies together that the server has not read.
    PeerUnread: "peer_unread", "bytes", "bytes from a dependency that the server has not read", "sockets";
    /// Mean number of bytes that the server has written to a dependency, and that the dependency
    /// has not read; the maximum over dependencies.
    PeerUnsent: "peer_unsent", "bytes", "server output that dependencies have not read", "sockets";
    /// Mean number of bytes in transit from a dependency: sent, but not arrived at the server; the
    /// maximum over dependencies.
    PeerOnTheWay: "peer_on_the_way", "bytes", "bytes in transit from a dependency", "sockets";
    /// Mean number of connections that wait to be accepted by a dependency; the maximum over
    /// dependencies.
    PeerQueued: "peer_queued", "", "connections not accepted by a dependency", "sockets";
    /// Mean number of connections on which the response of a dependency arrives piece by piece; the
    /// maximum over dependencies.
    PeerComing: "peer_coming", "", "responses of a dependency that arrive piece by piece", "sockets";
    /// Rate of bytes that the server received from a dependency; the maximum over dependencies.
    PeerReceived: "peer_received", "bytes/s", "bytes from a dependency", "sockets";
    /// Share of the server's CPU time that garbage collection uses.
    Gc: "gc", "share", "server's CPU time used for garbage collection", "the server's runtime, or sampled functions";
    /// Share of the server's CPU time that waiting for locks uses.
    Spinning: "spinning", "share", "server's CPU time used for waiting for locks", "the server's functions";
    /// Share of the time in which garbage collection stopped the runtime.
    GcPauses: "gc_pauses", "share", "time in which garbage collection stopped the server", "the runtime";
    /// Share of the server's CPU time that compiling its own code uses (just-in-time compilers).
    Compiling: "compiling", "share", "server's CPU time used for compiling code", "the runtime's threads";
    /// Cores that were idle, or that plimsoll used only for busy waiting.
    Idle: "idle", "cores", "idle cores", "the machine";
    /// Number of cores of the machine.
    Cores: "cores", "cores", "cores of the server's machine", "the machine"
        = Max(HOST_CORES);
    /// Share of the time in which some task waited for storage.
    IoPressure: "io_pressure", "share", "time in which any task waited for storage", "the machine"
        = PerTime(HOST_PRESSURE_IO_SOME);
    /// Share of the time in which some task waited for memory.
    MemoryPressure: "memory_pressure", "share", "time in which any task waited for memory", "the machine"
        = PerTime(HOST_PRESSURE_MEMORY_SOME);
    /// Cores that processes other than plimsoll, the server and its dependencies used.
    Others: "others", "cores", "cores used by other processes", "the machine";
    /// Share of the CPU time that this virtual machine wanted but did not get from its host (steal
    /// time).
    Steal: "steal", "share", "CPU time that the machine's host took (steal)", "the machine";
    /// Share of the CPU quota's periods in which the server's control group was throttled.
    Throttled: "throttled", "share", "periods in which the server's CPU quota was exhausted", "the control group"
        = IncreaseRatio(CGROUP_PERIODS_THROTTLED, CGROUP_PERIODS);
    /// CPU quota of the server's control group.
    Quota: "quota", "cores", "the quota", "the control group"
        = Mean(CGROUP_QUOTA);
    /// Memory of the server's control group as a share of its limit.
    GroupMemory: "group_memory", "share", "server's memory, as a share of its limit", "the control group"
        = MaxRatio(CGROUP_MEMORY, CGROUP_MEMORY_MAX);
    /// Share of TCP segments that were retransmitted.
    Retransmits: "retransmits", "share", "TCP segments sent again", "the kernel's TCP"
        = IncreaseRatio(TCP_RETRANSMITS, TCP_SEGMENTS_OUT);
    /// Share of the local ports for one peer that are in TIME-WAIT, after their connection was
    /// closed.
    TimeWait: "time_wait", "share", "local ports to one peer in TIME-WAIT", "the kernel's TCP";
    /// Mean number of the server's threads that wait for another thread.
    InLock: "in_lock", "", "server threads that wait for another thread", "wait states of the server's threads"
        = Mean(SERVER_IN_LOCK);
    /// Mean number of the server's threads that wait at one common address in memory, such as a
    /// lock; the maximum over addresses.
    InSameLock: "in_same_lock", "", "server threads that wait for the same lock", "wait states of the server's threads"
        = Mean(SERVER_IN_BUSIEST_LOCK);
    /// Mean number of the server's threads that sleep for a fixed time.
    InSleep: "in_sleep", "", "server threads that sleep until a timer ends", "wait states of the server's threads"
        = Mean(SERVER_IN_SLEEP);
    /// Mean number of the server's threads that wait for data from a connection.
    InRead: "in_read", "", "server threads that wait for data", "wait states of the server's threads"
        = Mean(SERVER_IN_READ);
    /// Mean number of the server's threads that wait until the reader of a pipe or unix socket
    /// reads their output.
    InWrite: "in_write", "", "server threads whose output waits to be read", "wait states of the server's threads"
        = Mean(SERVER_IN_WRITE);
    /// Mean number of the server's threads that wait for storage.
    InDisk: "in_disk", "", "server threads that wait for storage", "wait states of the server's threads"
        = Mean(SERVER_IN_DISK);
}

/// Formats the value of a signal with its unit, for people.
pub fn format_signal_value(signal: Signal, value: f64) -> String {
    match signal.text().unit {
        "ns" => format::duration(value),
        "share" => format::share(value.clamp(0.0, 1.0)),
        "bytes" => format::bytes(value),
        "bytes/s" => format!("{}/s", format::bytes(value)),
        "1/s" => format!("{}/s", format::rate(value)),
        "cores" => format!("{value:.2}"),
        _ if value >= 100.0 => format::count(value.round() as u64),
        _ => format::round_to_digits((value * 100.0).round() / 100.0, 3).to_string(),
    }
}

/// The signals of one load, with names and details that explain them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadSignals {
    /// The observed signals (measured figures) and their values; a missing signal was not observed.
    pub values: BTreeMap<Signal, f64>,
    /// Number of the server's connections to each dependency, by address; the maximum over time.
    pub peers: BTreeMap<String, f64>,
    /// Data segments that the server sends to each dependency, 1/s, by address.
    pub sent_to_peers: BTreeMap<String, f64>,
    /// Mean number of open calls to each dependency (calls without a response), by address.
    pub calls_to_peers: BTreeMap<String, f64>,
    /// Mean number of connections that wait until a dependency on this machine accepts them, by
    /// address.
    pub queued_at_peers: BTreeMap<String, f64>,
    /// The names of the dependencies' processes on this machine, by address.
    pub peer_names: BTreeMap<String, String>,
    /// The dependency whose CPU quota throttled it most, named by the process in its control group.
    /// `None`: no quota of a dependency was observed.
    pub held_back_behind: Option<String>,
    /// Size of each group of server threads whose names differ only in a number, by their common
    /// name; the maximum over time.
    pub alike: BTreeMap<String, f64>,
    /// The name of the server's busiest thread.
    pub fullest_thread: Option<String>,
    /// The name of the server's process.
    pub server: Option<String>,
    /// The name of the server's machine, if the load comes from another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether garbage collection seems to run in parallel to requests. The sign of parallel
    /// collection is garbage collection without threads that only collect garbage.
    pub collects_beside: bool,
    /// Why plimsoll (the load generator) was the limit of this load; `None` if plimsoll was not the
    /// limit.
    pub limited: Option<Sentence>,
    /// How other processes disturbed the load; `None` if no process disturbed it.
    pub disturbed: Option<String>,
    /// Cores that plimsoll used only for busy waiting for responses, while no other process wanted
    /// these cores.
    pub looked_cores: f64,
    /// Statuses of failed responses with their counts; for gRPC calls, the statuses of the calls.
    pub refusals: Vec<(String, u64)>,
    /// Kinds of failed requests, in words, with their counts.
    pub failures: Vec<(String, u64)>,
    /// Whether the server's clients are other processes than plimsoll, such as a proxy in front of
    /// the server.
    pub read_by_others: bool,
    /// Whether the figures of ports in TIME-WAIT belong to a dependency in another network
    /// namespace.
    pub ports_behind: bool,
    /// Number of plimsoll's connections that failed because no local port was free.
    pub no_port: u64,
    /// Length of the measured window, s.
    pub seconds: f64,
    /// Mean number of requests in a session. The value is 1 if the load has no sessions, and 0 if
    /// no load was made.
    pub requests_each: f64,
    /// Maximum number of requests in flight that plimsoll allows: its connection limit multiplied
    /// by the streams of a connection.
    pub under_way_max: f64,
    /// Share of the requests that were not sent, because no connection was free.
    pub unsent_share: f64,
    /// How long the last part of a short response waits for a delayed TCP acknowledgement, ns.
    /// `None`: responses do not wait for acknowledgements.
    pub held_back_ns: Option<f64>,
    /// Mean service time, ns.
    pub service_mean_ns: Option<f64>,
    /// Mean time to the first byte, ns.
    pub first_byte_mean_ns: Option<f64>,
    /// Number of connections that plimsoll opened.
    pub opened: u64,
    /// The observations that the probes could not make, each with the reason, as text for people.
    pub unseen: Vec<String>,
}

/// Number of local ports for connections between one pair of addresses, if the machine's own number
/// is not known. The value is the Linux default (ports 32768 to 60999).
const USUAL_PORTS: f64 = 28_232.0;
/// The look-back time of the socket probe, ns. A response counts as arriving if some of its data
/// arrived within the probe's look-back time.
const RECENT_DATA_NS: f64 = 40e6;
/// Readings that find no request show that no request is there only if they could find at least
/// this number of requests. With fewer, chance explains the 0 with a probability of more than 5 %
/// (rule of three).
const COUNTABLE_REQUESTS_MIN: f64 = 3.0;
/// HTTP statuses of responses that reject a request because of too much load.
const OVERLOAD_STATUSES: [u16; 2] = [429, 503];
/// The Linux error number of a failed connection for which no local port was free
/// (`EADDRNOTAVAIL`).
const NO_PORT_LEFT: u16 = 99;

/// Beginnings of the names of threads that collect garbage, in runtimes with separate threads for
/// garbage collection.
const COLLECTOR_THREAD_PREFIXES: [&str; 12] = [
    "GC Thread",
    "G1 ",
    "GC task",
    "ParGC",
    "ZWorker",
    "ZDriver",
    "Shenandoah",
    "Concurrent Mark",
    "CMS",
    "VM Thread",
    ".NET Server GC",
    ".NET BGC",
];
/// Beginnings of the names of processes whose runtime always has collector threads.
const COLLECTOR_PROCESS_PREFIXES: [&str; 2] = ["java", "dotnet"];
/// Beginnings of the names of threads that compile code of the running program.
const COMPILER_THREAD_PREFIXES: [&str; 4] = ["C1 Compiler", "C2 Compiler", "JVMCI", "Sweeper"];

/// A function that returns the figure of a series over the measured window, by the name of the
/// series.
type WindowFigure<'a> = &'a dyn Fn(&str) -> Option<f64>;

impl LoadSignals {
    /// Computes the signals of the load that `run` recorded.
    pub fn from_run(run: &Run) -> LoadSignals {
        LoadSignals::from_run_with_latency_bound(run, None)
    }

    /// Computes the signals of `run`. `bound_ns`: shortest latency bound of the SLO. The shortest
    /// latency bound decides how late plimsoll may send requests before plimsoll itself counts as
    /// the limit.
    pub fn from_run_with_latency_bound(run: &Run, bound_ns: Option<u64>) -> LoadSignals {
        let summary = Summary::with_bound(run, bound_ns);
        let (from_ns, to_ns) = (run.window_ns.0 as i64, run.window_ns.1 as i64);
        let seconds = (to_ns - from_ns).max(1) as f64 / 1e9;
        let connection_plan = &run.plan.connection_plan;
        let under_way_max = f64::from(connection_plan.connections_max) * f64::from(connection_plan.streams_max.max(1));
        let unseen = run.probes.missing.clone();
        let host = run.probes.host.clone();
        let mut sight = LoadSignals { seconds, under_way_max, unseen, host, ..LoadSignals::default() };
        let answered = sight.add_load_signals(run, &summary);
        sight.add_probe_signals(&run.probes, from_ns, to_ns, answered);
        sight
    }

    /// Returns the value of a signal; `None` if it was not observed.
    pub fn get(&self, signal: Signal) -> Option<f64> {
        self.values.get(&signal).copied()
    }

    /// Returns the throughput that the load would have if no request waited, 1/s. Requests that
    /// arrive in the last `alone_ns` of the window complete after the window, so they do not count.
    /// `alone_ns`: service time of one request.
    pub fn throughput_without_waits_rps(&self, alone_ns: Option<f64>) -> Option<f64> {
        let late = alone_ns.map_or(0.0, |ns| ns / 1e9 / self.seconds);
        // A window as short as a few service times has little information, so at most half of the
        // offered rate is subtracted for late completions.
        self.get(Signal::Offered).map(|offered| offered * (1.0 - late.min(0.5)))
    }

    /// Returns the number of cores that other programs and the host of this virtual machine used.
    pub fn cores_taken_by_others(&self) -> Option<f64> {
        // Steal is a share of the CPU time that the machine wanted: the time in which no core was
        // idle. Busy waiting of plimsoll counts as idle in the signal, but is wanted time.
        let wanted = self.get(Signal::Cores)? - self.get(Signal::Idle).unwrap_or(0.0) + self.looked_cores;
        Some(self.get(Signal::Others)? + self.get(Signal::Steal).unwrap_or(0.0) * wanted)
    }

    /// Returns whether the load was made: at least one signal was observed.
    pub fn has_signals(&self) -> bool {
        !self.values.is_empty()
    }

    fn set_signal(&mut self, signal: Signal, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.values.insert(signal, value);
        }
    }

    /// Adds the signals of the load itself. Returns the number of responses in the window.
    fn add_load_signals(&mut self, run: &Run, summary: &Summary) -> f64 {
        let (whole, load) = (&summary.routes_sum, &summary.load);
        let ledger = whole.ledger;
        let requests = ledger.finished_requests().max(1) as f64;
        let scheduled = ledger.scheduled.max(1) as f64;
        let count = |times: u64, ns: u64| (times > 0).then_some(ns as f64);
        self.requests_each = summary.requests_per_session;
        self.set_signal(Signal::Offered, ledger.scheduled as f64 / self.seconds);
        self.set_signal(Signal::Goodput, summary.throughput_rps);
        self.set_signal(Signal::P50, count(whole.response.count, whole.response.p50_ns));
        self.set_signal(Signal::P99, count(whole.response.count, whole.response.p99_ns));
        self.set_signal(Signal::Service, count(whole.service.count, whole.service.p50_ns));
        self.service_mean_ns = count(whole.service.count, 0).map(|_| whole.service.mean_ns);
        self.first_byte_mean_ns = count(whole.ttfb.count, 0).map(|_| whole.ttfb.mean_ns);
        self.set_signal(Signal::FirstByte, count(whole.ttfb.count, whole.ttfb.p50_ns));
        self.held_back_ns = delayed_acks::ack_delay_ns(summary);
        self.set_signal(Signal::Failed, (ledger.failed_total() + ledger.unsent + ledger.in_flight) as f64 / scheduled);
        let failed = RequestFailure::ALL.into_iter().filter(|kind| *kind != RequestFailure::Status);
        let failed = failed.map(|kind| (kind.name().replace('_', " "), ledger.failed[kind as usize]));
        self.failures = failed.filter(|(_, times)| *times > 0).collect();
        let traffic = &run.plan.traffic;
        let statuses = whole.statuses.iter().filter(|(status, _)| !traffic.counts_as_success(*status));
        let statuses = statuses.map(|(status, times)| (status.to_string(), OVERLOAD_STATUSES.contains(&status), times));
        let ends = whole.grpc_statuses.iter().map(|(code, times)| (GrpcStatus::from_code(code.into()), times));
        let ends = ends.filter(|(end, _)| !traffic.counts_as_grpc_success(*end));
        let ends = ends.map(|(end, times)| (end.name().to_owned(), end.is_refusal(), times));
        // The status of a gRPC call says more than its HTTP status.
        let refusals: Vec<(String, bool, u64)> =
            if whole.grpc_statuses.is_empty() { statuses.collect() } else { ends.collect() };
        let too_much: u64 = refusals.iter().filter(|(_, is_too_much, _)| *is_too_much).map(|(_, _, times)| times).sum();
        self.refusals = refusals.into_iter().map(|(status, _, times)| (status, times)).collect();
        self.failures.extend(self.refusals.iter().map(|(status, times)| (format!("status {status}"), *times)));
        self.set_signal(Signal::Refused, too_much as f64 / requests);
        self.set_signal(Signal::Connect, count(load.connect.count, load.connect.p99_ns));
        let errors: u64 = load.connect_errors.iter().map(|(_, times)| times).sum();
        self.no_port = load.connect_errors.get(NO_PORT_LEFT);
        (self.opened, self.unsent_share) = (load.connections_opened, ledger.unsent as f64 / scheduled);
        self.set_signal(Signal::ConnectFailed, errors as f64 / (errors + load.connections_opened).max(1) as f64);
        self.set_signal(Signal::Generator, summary.generator.work_share);
        let (mut in_flight_ns, mut work_ns, mut looked_ns, mut covered_ns, mut bytes) = (0.0, 0u64, 0u64, 0u64, 0u64);
        let (mut answers, mut silent) = (Vec::new(), Vec::new());
        let length_ns = run.plan.load.interval_ns.max(1);
        for (index, interval) in &run.intervals {
            let start_ns = u64::from(*index) * length_ns;
            if start_ns < run.window_ns.0 || start_ns + length_ns > run.window_ns.1 {
                continue;
            }
            covered_ns += length_ns;
            in_flight_ns += interval.load.in_flight_ns as f64;
            work_ns += interval.load.workers.iter().map(|worker| worker.work_ns).sum::<u64>();
            looked_ns += interval.load.looked_ns;
            bytes += interval.load.bytes_in;
            let whole = interval.all_routes();
            answers.push(whole.ledger.succeeded as f64);
            silent.push(whole.ledger.finished_requests() == 0 && whole.in_flight_end > 0);
        }
        if covered_ns > 0 {
            self.set_signal(Signal::InFlight, in_flight_ns / covered_ns as f64);
            // A plimsoll on another machine takes no cores from the server.
            if run.probes.shares_machine() {
                self.set_signal(Signal::ClientCores, work_ns as f64 / covered_ns as f64);
                self.looked_cores = looked_ns as f64 / covered_ns as f64;
            }
            self.set_signal(Signal::BytesIn, bytes as f64 * SECOND as f64 / covered_ns as f64);
        }
        self.set_signal(Signal::Dispersion, dispersion_index(&answers));
        self.set_signal(Signal::Lumps, batch_silence_share(&answers, &silent));
        self.limited = summary.generator.reason.clone().filter(|_| summary.generator.is_limit);
        self.disturbed = summary.interference.reason.clone().filter(|_| summary.interference.is_disturbed);
        self.set_signal(Signal::Others, summary.interference.cores);
        self.set_signal(Signal::Steal, summary.interference.steal_share);
        let refused: u64 = self.refusals.iter().map(|(_, times)| times).sum();
        summary.throughput_rps * self.seconds + refused as f64
    }

    /// Adds the signals that come from probes of the server, its dependencies and its machine.
    fn add_probe_signals(&mut self, probes: &Probes, from_ns: i64, to_ns: i64, answered: f64) {
        let span_ns = (to_ns - from_ns).max(1) as f64;
        let change = |name: &str| {
            let series = probes.series.get(name).filter(|series| series.kind == SeriesKind::Counter)?;
            let at = |at_ns| series.value_at(at_ns, READING_DISTANCE_MAX_NS);
            Some((at(to_ns)? - at(from_ns)?).max(0.0))
        };
        let inside = |name: &str| {
            let series = probes.series.get(name).filter(|series| series.kind == SeriesKind::Gauge)?;
            let near = match series.samples_between(from_ns, to_ns) {
                [] => series.samples_between(from_ns - READING_DISTANCE_MAX_NS, to_ns + READING_DISTANCE_MAX_NS),
                inside => inside,
            };
            (!near.is_empty()).then(|| near.iter().map(|sample| sample.value).collect::<Vec<f64>>())
        };
        let mean = |name: &str| inside(name).map(|values| values.iter().sum::<f64>() / values.len() as f64);
        let in_flight = self.get(Signal::InFlight).unwrap_or(0.0);
        let known_mean = |name: &str| {
            let readings = inside(name)?.len();
            mean(name).filter(|mean| *mean > 0.0 || is_zero_evidence(readings, in_flight))
        };
        let most = |name: &str| inside(name)?.into_iter().reduce(f64::max);
        let cores = |name: &str| change(name).map(|ns| ns / span_ns);
        let per_second = |name: &str| change(name).map(|count| count * 1e9 / span_ns);
        // A probe may read a series too rarely to have a reading at each edge of the window. So the
        // rate of a series covers the time from its first to its last reading.
        let rate = |name: &str| {
            let series = probes.series.get(name).filter(|series| series.kind == SeriesKind::Counter)?;
            let [first, .., last] =
                series.samples_between(from_ns - READING_DISTANCE_MAX_NS, to_ns + READING_DISTANCE_MAX_NS)
            else {
                return None;
            };
            let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
            (seconds >= 0.5).then(|| (last.value - first.value).max(0.0) / seconds)
        };
        let of = |a: Option<f64>, b: Option<f64>| a.zip(b).filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b);
        let per_answer = |value: Option<f64>| value.filter(|_| answered >= 1.0).map(|value| value / answered);
        for (signal, figure) in SERIES_FIGURES {
            self.set_signal(
                *signal,
                match figure {
                    SeriesFigure::Mean(row) => mean(row.name),
                    SeriesFigure::Max(row) => most(row.name),
                    SeriesFigure::MaxRatio(row, of_row) => of(most(row.name), most(of_row.name)),
                    SeriesFigure::PerSecond(row) => per_second(row.name),
                    SeriesFigure::PerTime(row) => cores(row.name),
                    SeriesFigure::PerResponse(row) => per_answer(change(row.name)),
                    SeriesFigure::IncreaseRatio(row, of_row) => of(change(row.name), change(of_row.name)),
                },
            );
        }
        self.server = probes.servers.last().map(|server| server.name.clone());

        let server_cores = self.get(Signal::ServerCores);
        let threads = thread_shares(probes, from_ns, to_ns);
        let fullest = threads.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        self.fullest_thread = fullest.map(|thread| thread.name.clone());
        // If no thread was busy, `threads` is empty, and the number of saturated threads is 0.
        self.set_signal(
            Signal::FullestThread,
            fullest.map(|thread| thread.share).or(mean(table::SERVER_BUSIEST_THREAD.name)),
        );
        if server_cores.is_some() {
            self.set_signal(
                Signal::FullThreads,
                threads.iter().filter(|thread| thread.share >= SATURATED_THREAD_SHARE_MIN).count() as f64,
            );
        }
        self.read_by_others = mean(table::ACCEPTED_FROM_OTHER_CLIENTS.name).is_some_and(|share| share > 0.5);
        let of_peers = |row: SeriesRow| {
            let of_one = |name: &&String| row.matched_label(name).is_some();
            probes.series.keys().filter(of_one).filter_map(|name| mean(name)).collect::<Vec<f64>>().into_iter()
        };
        self.set_signal(Signal::PeerUnread, of_peers(table::PEER_UNREAD).reduce(|a, b| a + b));
        self.set_signal(Signal::PeerUnsent, of_peers(table::PEER_UNACKNOWLEDGED).reduce(f64::max));
        self.set_signal(Signal::PeerOnTheWay, of_peers(table::PEER_IN_TRANSIT).reduce(f64::max));
        let peers = || probes.series.keys().filter_map(|name| table::PEER_RECEIVING.matched_label(name));
        // The probe also counts calls that ended within its look-back time, so the expected number
        // of ended calls is subtracted.
        let for_long = |peer: &str| {
            let by_chance = rate(&table::PEER_SEGMENTS_SENT.name_with_label(peer))? * RECENT_DATA_NS / 1e9;
            Some((mean(&table::PEER_RECEIVING.name_with_label(peer))? - by_chance).max(0.0))
        };
        self.set_signal(Signal::PeerComing, peers().filter_map(for_long).reduce(f64::max));
        let received = peers().filter_map(|peer| rate(&table::PEER_RECEIVED.name_with_label(peer)));
        self.set_signal(Signal::PeerReceived, received.reduce(f64::max));
        let alike = probes.series.keys().filter_map(|name| Some((table::THREADS.matched_label(name)?, most(name)?)));
        self.alike.extend(alike.map(|(stem, count)| (stem.to_owned(), count)));
        let groups = probes.series.keys().filter_map(|name| table::DOWNSTREAM_PERIODS.matched_label(name));
        let held_back = groups.filter_map(|name| {
            let throttled = change(&table::DOWNSTREAM_PERIODS_THROTTLED.name_with_label(name));
            Some((name, of(throttled, change(&table::DOWNSTREAM_PERIODS.name_with_label(name)))?))
        });
        if let Some((name, share)) = held_back.max_by(|a, b| a.1.total_cmp(&b.1)) {
            self.set_signal(Signal::DownstreamThrottled, Some(share));
            self.set_signal(Signal::DownstreamQuota, mean(&table::DOWNSTREAM_QUOTA.name_with_label(name)));
            self.held_back_behind = Some(name.to_owned());
        }
        for name in probes.series.keys() {
            let peer = table::PEER_CONNECTIONS.matched_label(name);
            if let Some((peer, count)) = peer.zip(most(name)) {
                self.peers.insert(peer.to_owned(), count);
                let sent = rate(&table::PEER_SEGMENTS_SENT.name_with_label(peer));
                self.sent_to_peers.extend(sent.map(|sent| (peer.to_owned(), sent)));
                let calls = known_mean(&table::PEER_WAITING.name_with_label(peer));
                self.calls_to_peers.extend(calls.map(|calls| (peer.to_owned(), calls)));
                let queued = mean(&table::PEER_QUEUED.name_with_label(peer));
                self.queued_at_peers.extend(queued.map(|queued| (peer.to_owned(), queued)));
            }
            let named = table::PEER_PROCESS.matched_label_pair(name);
            self.peer_names.extend(named.map(|(peer, process)| (peer.to_owned(), process.to_owned())));
        }
        self.set_signal(Signal::PeerWaiting, self.calls_to_peers.values().copied().reduce(f64::max));
        self.set_signal(Signal::PeerQueued, self.queued_at_peers.values().copied().reduce(f64::max));
        self.set_signal(Signal::PeerConnections, self.peers.values().copied().reduce(f64::max));
        let collecting =
            sampled_cpu_time_ns(&probes.sampled, (from_ns, to_ns), stack_collects_garbage).map(|(ns, _)| ns / span_ns);
        let spinning =
            sampled_cpu_time_ns(&probes.sampled, (from_ns, to_ns), stack_waits_for_lock).map(|(ns, _)| ns / span_ns);
        self.set_signal(Signal::Spinning, of(spinning, server_cores.filter(|cores| *cores > 0.05)));
        self.add_runtime_signals(probes, &threads, (span_ns, collecting), (&change, &mean), server_cores);

        let idle =
            cores(table::HOST_CPU_IDLE.name).map(|idle| idle + cores(table::HOST_CPU_IOWAIT.name).unwrap_or(0.0));
        // Other processes may take the cores of plimsoll's busy waiting at any time, so these cores
        // count as idle.
        self.set_signal(Signal::Idle, idle.map(|idle| idle + self.looked_cores));
        let ports =
            inside(table::TCP_LOCAL_PORTS.name).and_then(|all| all.into_iter().reduce(f64::min)).or(Some(USUAL_PORTS));
        self.ports_behind = mean(table::TCP_TIME_WAIT_OTHER_NAMESPACE.name).is_some_and(|share| share > 0.5);
        self.set_signal(Signal::TimeWait, of(most(table::TCP_TIME_WAIT_PAIR.name), ports).map(|share| share.min(1.0)));
    }

    /// Adds the signals of the server's runtime: from its own metrics, from the CPU time of its
    /// named threads, and from its sampled functions.
    fn add_runtime_signals(
        &mut self,
        probes: &Probes,
        threads: &[BusiestThread],
        (span_ns, collecting_cores): (f64, Option<f64>),
        (change, mean): (WindowFigure, WindowFigure),
        server_cores: Option<f64>,
    ) {
        let named = |names: &[&str]| {
            let of = threads.iter().filter(|thread| names.iter().any(|name| thread.name.starts_with(name)));
            of.fold(0.0, |sum, thread| sum + thread.share)
        };
        let used = server_cores.filter(|cores| *cores > 0.05);
        // Adds the counters of one metric that differ only in their labels.
        let counted = |starts: &[&str]| {
            let of = |name: &&String| {
                let name = table::METRICS.matched_label(name).unwrap_or_default();
                starts.iter().any(|start| name.strip_prefix(start).is_some_and(|r| r.is_empty() || r.starts_with('{')))
            };
            probes.series.keys().filter(of).filter_map(|name| change(name)).reduce(|a, b| a + b)
        };
        let of_all = counted(&["go_cpu_classes_gc_total_cpu_seconds_total"]).zip(used);
        let by_metrics = of_all.map(|(seconds, cores)| seconds * 1e9 / (span_ns * cores));
        let by_memstats = mean(&table::METRICS.name_with_label("memstats.GCCPUFraction"));
        // A runtime with collector threads collects no garbage while the collector threads are
        // idle. A runtime without collector threads may collect garbage in any thread.
        let has_threads =
            self.server.as_deref().is_some_and(|name| COLLECTOR_PROCESS_PREFIXES.iter().any(|it| name.starts_with(it)));
        let by_threads =
            used.map(|cores| named(&COLLECTOR_THREAD_PREFIXES) / cores).filter(|share| has_threads || *share > 0.0);
        let by_functions = collecting_cores.zip(used).map(|(collecting, cores)| collecting / cores);
        let beside = by_metrics.or(by_memstats).into_iter().chain(by_functions).reduce(f64::max);
        self.collects_beside = by_threads.is_none() && beside.is_some();
        let gc = beside.into_iter().chain(by_threads).reduce(f64::max);
        self.set_signal(Signal::Gc, gc.map(|share| share.min(1.0)));
        self.set_signal(Signal::Compiling, used.map(|cores| named(&COMPILER_THREAD_PREFIXES) / cores));
        let paused_s = counted(&[
            "jvm_gc_pause_seconds_sum",
            "jvm_gc_collection_seconds_sum",
            "nodejs_gc_duration_seconds_sum",
            "go_gc_duration_seconds_sum",
        ]);
        let paused_s =
            paused_s.or_else(|| change(&table::METRICS.name_with_label("memstats.PauseTotalNs")).map(|ns| ns / 1e9));
        self.set_signal(Signal::GcPauses, paused_s.map(|seconds| seconds * 1e9 / span_ns));
    }
}

/// The minimum number of batches of responses that show a regular pattern.
const RESPONSE_BATCHES_MIN: usize = 4;
/// Batches of responses count as regular if the variation of their sizes, and of the intervals
/// between batches, is at most this value. The variation is the standard deviation divided by the
/// mean. A tick is 0.1 s, so even regular batches, 250 ms apart, have intervals of two or three
/// ticks.
const REGULAR_VARIATION_MAX: f64 = 0.35;

/// Returns the share of `silent` ticks if the responses come in batches of about equal size at
/// about equal intervals. Returns 0 for responses without regular batches, and `None` for fewer
/// than ten ticks.
fn batch_silence_share(answers: &[f64], silent: &[bool]) -> Option<f64> {
    if answers.len() < 10 {
        return None;
    }
    // Each entry is a batch of responses between two silences: its first tick, and its number of
    // responses.
    let mut found: Vec<(usize, f64)> = Vec::new();
    for (at, count) in answers.iter().enumerate().filter(|(at, _)| !silent[*at]) {
        match found.last_mut().filter(|_| at > 0 && !silent[at - 1]) {
            Some((_, sum)) => *sum += count,
            None => found.push((at, *count)),
        }
    }
    // The first and the last batch are left out, because the edges of the window may have cut them
    // off.
    let whole = found.get(1..found.len().saturating_sub(1)).unwrap_or_default();
    let is_even = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        mean > 0.0 && variance.sqrt() <= REGULAR_VARIATION_MAX * mean
    };
    let sizes: Vec<f64> = whole.iter().map(|lump| lump.1).collect();
    let distances: Vec<f64> = whole.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
    let even = whole.len() >= RESPONSE_BATCHES_MIN && is_even(&sizes) && is_even(&distances);
    let share = silent.iter().filter(|it| **it).count() as f64 / silent.len() as f64;
    Some(if even { share } else { 0.0 })
}

/// Returns whether `readings` that found no request show that none of the `in_flight` requests is
/// where the probe reads. `in_flight`: mean number of requests in flight.
fn is_zero_evidence(readings: usize, in_flight: f64) -> bool {
    in_flight * readings as f64 >= COUNTABLE_REQUESTS_MIN
}

/// Returns the index of dispersion of the counts: variance divided by mean. The variance comes from
/// differences of neighbouring counts, so slow changes of the rate cancel. Returns `None` for fewer
/// than ten counts, or for a mean below five.
fn dispersion_index(counts: &[f64]) -> Option<f64> {
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    if counts.len() < 10 || mean < 5.0 {
        return None;
    }
    let squares: f64 = counts.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    Some(squares / 2.0 / (counts.len() - 1) as f64 / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_readings_without_a_request_show_nothing() {
        let check = |readings: usize, in_flight: f64, expect: bool| {
            assert_eq!(is_zero_evidence(readings, in_flight), expect, "{readings} readings, {in_flight} in flight");
        };
        check(1, 0.6, false);
        check(4, 0.6, false);
        check(5, 0.6, true);
        check(1, 30.0, true);
        check(0, 30.0, false);
    }

    #[test]
    fn equal_batches_differ_from_stalls() {
        let check = |name: &str, ticks: &[f64], expect: Option<f64>| {
            let silent: Vec<bool> = ticks.iter().map(|count| *count == 0.0).collect();
            assert_eq!(batch_silence_share(ticks, &silent), expect, "{name}");
        };
        let every_quarter = [60.0, 0.0, 0.0, 60.0, 0.0, 60.0, 0.0, 0.0, 58.0, 0.0, 60.0, 0.0, 0.0, 40.0, 20.0, 0.0];
        check("so many every 250 ms", &every_quarter, Some(0.5625));
        check("all the time", &[30.0; 16], Some(0.0));
        let seldom = [30.0, 30.0, 30.0, 0.0, 0.0, 0.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 0.0, 30.0, 30.0];
        check("stalls", &seldom, Some(0.0));
        let uneven = [9.0, 0.0, 90.0, 0.0, 0.0, 5.0, 0.0, 60.0, 0.0, 0.0, 0.0, 12.0, 0.0, 80.0, 0.0, 1.0];
        check("lumps of many sizes", &uneven, Some(0.0));
        check("too short to tell", &every_quarter[..9], None);
        check("nobody", &[0.0; 16], Some(0.0));
    }
}
