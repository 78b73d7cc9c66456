//! The trait through which scripts use the network ([`ScriptNetwork`]). The caller of this crate
//! implements the trait.

use std::net::SocketAddr;

/// The network functions that scripts may use before and after a load.
pub trait ScriptNetwork: Send + Sync {
    /// Looks up the addresses of a host, with a port or service name. The error says why no address
    /// was found.
    fn lookup(&self, host: &str, service: &str) -> Result<Vec<SocketAddr>, String>;

    /// Returns whether a connection to the address succeeds. A successful connection is closed at
    /// once.
    fn connect(&self, address: SocketAddr) -> bool;
}
