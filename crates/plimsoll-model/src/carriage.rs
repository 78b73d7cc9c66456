//! Over what requests travel: how connections are opened, secured and closed, and how many there may be.
//!
//! Plain data. Not here: what is asked ([`crate::traffic`]), from which local addresses (that is one machine's,
//! [`crate::injector`]), sockets, TLS itself.

use crate::tls::TlsSpec;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// How a load's connections are opened and closed, by all machines together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carriage {
    /// The addresses of the host, in the order of use.
    pub addresses: Vec<SocketAddr>,
    /// Connect to this unix socket instead.
    pub unix: Option<String>,
    /// Ask for the addresses again while the load lasts.
    pub resolve: Option<ResolveSpec>,
    /// Speak TLS.
    pub tls: Option<TlsSpec>,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Close by a reset, which leaves no port in TIME-WAIT.
    pub close_reset: bool,
    /// At most so many connections at once (open loads; closed loads have one for each user).
    pub connections_max: u32,
}

impl Carriage {
    /// Plain TCP to these addresses, on connections that are kept, 10 000 at most.
    pub fn tcp(addresses: Vec<SocketAddr>) -> Carriage {
        Carriage {
            addresses,
            unix: None,
            resolve: None,
            tls: None,
            keep_alive: true,
            close_reset: false,
            connections_max: 10_000,
        }
    }
}

/// A name to resolve again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveSpec {
    /// The name.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// How often, in ns.
    pub every_ns: u64,
    /// Whether load may go to addresses that are neither loopback nor private.
    pub public: bool,
}
