//! The causes that can limit a load line ([`Cause`]): a fixed vocabulary.
//!
//! Not here: the evidence for each (`causes`).

use std::fmt;

/// The cause that limits a load line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// plimsoll itself.
    Client,
    /// One thread of the server.
    OneThread,
    /// All cores that the server may use.
    Cpu,
    /// A limit of CPU time set on the server's control group.
    CpuQuota,
    /// Threads that wait for each other.
    Lock,
    /// The server's connections to something behind it, or another fixed number of things to be
    /// had.
    Pool,
    /// Workers of the server: processes or threads, each with one request at a time.
    Workers,
    /// Something behind the server.
    Downstream,
    /// The runtime's garbage collection.
    Gc,
    /// Memory: paging, or a limit that is reached.
    Memory,
    /// Bandwidth, or losses on the way.
    Network,
    /// A receiver of the responses reads slowly.
    SlowReader,
    /// Connections that come faster than the server takes them.
    AcceptBacklog,
    /// Open files.
    Files,
    /// Local ports for new connections.
    Ports,
    /// A limit on the rate, set on purpose.
    Limiter,
    /// Storage.
    Disk,
    /// Other processes on the machine.
    Neighbour,
    /// Responses miss the SLO although no request waits in a queue.
    Delay,
    /// The server was not warm.
    WarmUp,
    /// No limit: every load met the SLO.
    None,
    /// It is not known.
    Unknown,
}

impl Cause {
    /// All of them.
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

    /// Its word.
    pub fn word(self) -> &'static str {
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

    /// The meaning of the cause, in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Cause::Client => "plimsoll itself",
            Cause::OneThread => "one thread of the server",
            Cause::Cpu => "the cores that the server may use",
            Cause::CpuQuota => "the CPU quota of the server's control group",
            Cause::Lock => "a lock: requests wait for each other",
            Cause::Pool => "a pool: a fixed number of connections to a downstream dependency",
            Cause::Workers => "the server's workers: a fixed number of requests in service at once",
            Cause::Downstream => "a downstream dependency of the server",
            Cause::Gc => "garbage collection",
            Cause::Memory => "memory",
            Cause::Network => "the network",
            Cause::SlowReader => "a slow reader of the responses",
            Cause::AcceptBacklog => "the accept queue of new connections",
            Cause::Files => "the limit of open files",
            Cause::Ports => "local ports for new connections",
            Cause::Limiter => "a limit on the rate",
            Cause::Disk => "storage",
            Cause::Neighbour => "other processes on the machine",
            Cause::Delay => "response time that is too long at any load",
            Cause::WarmUp => "a server that had not warmed up",
            Cause::None => "no limit reached",
            Cause::Unknown => "not known",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
