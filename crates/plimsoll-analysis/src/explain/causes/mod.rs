//! The causes that can limit a load line, one file each ([`card::CauseCard`]). The file of a cause
//! contains the expected answers to the features, the predicted effects of experiments, and the
//! sentence about the cause. The file also lists the resources that are saturated because of the
//! cause.
//!
//! A new cause needs a file in this folder, a `mod` line and a line in the table `causes!` below. A
//! new cause also needs a page under `docs/causes`, and three recorded cases in the corpus
//! (`corpus/`).
//!
//! Not here: the features, questions about the observed server (`features`).

pub mod card;

mod accept_backlog;
mod client;
mod cpu;
mod cpu_quota;
mod delay;
mod disk;
mod downstream;
mod files;
mod gc;
mod limiter;
mod lock;
mod memory;
mod neighbour;
mod network;
mod none;
mod one_thread;
mod pool;
mod ports;
mod slow_reader;
mod warm_up;
mod workers;

use card::{CauseCard, CauseForm};
use std::fmt;

/// Defines the causes from a table: the file of each cause in this folder, whose name is also the
/// cause's identifier, and the variant of [`Cause`].
macro_rules! causes {
    ($($(#[$doc:meta])* $file:ident => $variant:ident,)*) => {
        /// A cause that can limit the load line of a server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $($(#[$doc])* $variant,)*
            /// The cause is not known.
            Unknown,
        }

        impl Cause {
            /// All causes, in the order of their declaration.
            pub const ALL: &[Cause] = &[$(Cause::$variant,)* Cause::Unknown];

            /// Returns the identifier of this cause, as used in JSON and in the documentation.
            pub fn identifier(self) -> &'static str {
                match self {
                    $(Cause::$variant => stringify!($file),)*
                    Cause::Unknown => "unknown",
                }
            }
        }

        /// The descriptions of all causes, in the order of the table.
        static CARDS: &[(Cause, &CauseCard)] = &[$((Cause::$variant, &$file::CARD)),*];
    };
}

causes! {
    /// plimsoll is the limit, not the server.
    client => Client,
    /// No limit: every load met the SLO.
    none => None,
    /// Other processes on the machine use the CPU that the server needs.
    neighbour => Neighbour,
    /// No local port is free for new connections.
    ports => Ports,
    /// The server's limit of open files is reached.
    files => Files,
    /// New connections arrive faster than the server accepts them.
    accept_backlog => AcceptBacklog,
    /// Memory is short: pages are read back from storage, or a memory limit is reached.
    memory => Memory,
    /// The CPU quota of the server's control group is exhausted.
    cpu_quota => CpuQuota,
    /// A rate limiter rejects or delays requests.
    limiter => Limiter,
    /// Responses are later than the SLO allows although no request waits in a queue.
    delay => Delay,
    /// The server had not warmed up during the search.
    warm_up => WarmUp,
    /// Garbage collection of the server's runtime takes CPU time from requests.
    gc => Gc,
    /// One thread of the server is saturated.
    one_thread => OneThread,
    /// All cores that the server may use are saturated.
    cpu => Cpu,
    /// All workers of the server are busy: processes or threads that handle one request at a time.
    workers => Workers,
    /// A pool of fixed size is exhausted, such as the server's connections to a dependency.
    pool => Pool,
    /// Threads wait for a lock.
    lock => Lock,
    /// A downstream dependency is the limit.
    downstream => Downstream,
    /// Storage is the limit.
    disk => Disk,
    /// A receiver of the responses reads them slowly.
    slow_reader => SlowReader,
    /// The network is the limit: its bandwidth, or packet losses.
    network => Network,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.identifier())
    }
}

/// Returns all forms of all causes, each form with its cause and the description of the cause. Each
/// form leads to different answers to the features (questions about the server).
pub fn cause_forms() -> impl Iterator<Item = (Cause, &'static CauseCard, &'static CauseForm)> {
    CARDS.iter().flat_map(|(cause, card)| card.forms.iter().map(move |form| (*cause, *card, form)))
}

/// Returns the description of a cause; `None` for [`Cause::Unknown`].
pub fn cause_card(cause: Cause) -> Option<&'static CauseCard> {
    CARDS.iter().find(|(other, _)| *other == cause).map(|(_, card)| *card)
}
