//! The causes that can limit a load line ([`Cause`]): a fixed list with a name and a text for each.
//!
//! Not here: the evidence for each cause (`causes`).

use std::fmt;

/// A cause that can limit the load line of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// plimsoll is the limit, not the server.
    Client,
    /// One thread of the server is saturated.
    OneThread,
    /// All cores that the server may use are saturated.
    Cpu,
    /// The CPU quota of the server's control group is exhausted.
    CpuQuota,
    /// Threads wait for a lock.
    Lock,
    /// A pool of fixed size is exhausted, such as the server's connections to a dependency.
    Pool,
    /// All workers of the server are busy: processes or threads that handle one request at a time.
    Workers,
    /// A downstream dependency is the limit.
    Downstream,
    /// Garbage collection of the server's runtime takes CPU time from requests.
    Gc,
    /// Memory is short: pages are read back from storage, or a memory limit is reached.
    Memory,
    /// The network is the limit: its bandwidth, or packet losses.
    Network,
    /// A receiver of the responses reads them slowly.
    SlowReader,
    /// New connections arrive faster than the server accepts them.
    AcceptBacklog,
    /// The server's limit of open files is reached.
    Files,
    /// No local port is free for new connections.
    Ports,
    /// A rate limiter rejects or delays requests.
    Limiter,
    /// Storage is the limit.
    Disk,
    /// Other processes on the machine use the CPU that the server needs.
    Neighbour,
    /// Responses are later than the SLO allows although no request waits in a queue.
    Delay,
    /// The server had not warmed up during the search.
    WarmUp,
    /// No limit: every load met the SLO.
    None,
    /// The cause is not known.
    Unknown,
}

impl Cause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Cause; 22] = [
        Cause::Client,
        Cause::OneThread,
        Cause::Cpu,
        Cause::CpuQuota,
        Cause::Lock,
        Cause::Pool,
        Cause::Workers,
        Cause::Downstream,
        Cause::Gc,
        Cause::Memory,
        Cause::Network,
        Cause::SlowReader,
        Cause::AcceptBacklog,
        Cause::Files,
        Cause::Ports,
        Cause::Limiter,
        Cause::Disk,
        Cause::Neighbour,
        Cause::Delay,
        Cause::WarmUp,
        Cause::None,
        Cause::Unknown,
    ];

    /// Returns the identifier of this cause, as used in JSON and in the documentation.
    pub fn identifier(self) -> &'static str {
        match self {
            Cause::Client => "client",
            Cause::OneThread => "one_thread",
            Cause::Cpu => "cpu",
            Cause::CpuQuota => "cpu_quota",
            Cause::Lock => "lock",
            Cause::Pool => "pool",
            Cause::Workers => "workers",
            Cause::Downstream => "downstream",
            Cause::Gc => "gc",
            Cause::Memory => "memory",
            Cause::Network => "network",
            Cause::SlowReader => "slow_reader",
            Cause::AcceptBacklog => "accept_backlog",
            Cause::Files => "files",
            Cause::Ports => "ports",
            Cause::Limiter => "limiter",
            Cause::Disk => "disk",
            Cause::Neighbour => "neighbour",
            Cause::Delay => "delay",
            Cause::WarmUp => "warm_up",
            Cause::None => "none",
            Cause::Unknown => "unknown",
        }
    }

    /// Returns the cause in a few words for people.
    pub fn display_text(self) -> &'static str {
        match self {
            Cause::Client => "plimsoll itself",
            Cause::OneThread => "one thread of the server",
            Cause::Cpu => "the cores that the server may use",
            Cause::CpuQuota => "the CPU quota of the server's control group",
            Cause::Lock => "a lock: requests wait for each other",
            Cause::Pool => "a pool: a fixed number of connections to a downstream dependency",
            Cause::Workers => "the server's workers: a fixed number of requests that the server handles at once",
            Cause::Downstream => "a downstream dependency of the server",
            Cause::Gc => "garbage collection",
            Cause::Memory => "memory",
            Cause::Network => "the network",
            Cause::SlowReader => "a slow reader of the server's responses",
            Cause::AcceptBacklog => "the server's accept queue of new connections",
            Cause::Files => "the server's limit of open files",
            Cause::Ports => "local ports for new connections",
            Cause::Limiter => "a rate limiter that rejects or delays requests",
            Cause::Disk => "storage",
            Cause::Neighbour => "other processes that use the cores of the server's machine",
            Cause::Delay => "a response time that exceeds the SLO at any load",
            Cause::WarmUp => "a server that had not warmed up during the search",
            Cause::None => "no limit reached",
            Cause::Unknown => "not known",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.identifier())
    }
}
