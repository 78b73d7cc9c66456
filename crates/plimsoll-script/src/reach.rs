//! What scripts may ask of the network ([`Reach`]). Who looks up and connects is given from
//! outside.

use std::net::SocketAddr;

/// What scripts may ask of the network before and after a load.
pub trait Reach: Send + Sync {
    /// The addresses of a host and of a port or a service's name; else why there are none.
    fn lookup(&self, host: &str, service: &str) -> Result<Vec<SocketAddr>, String>;

    /// Whether a connection to the address can be made; it is closed at once.
    fn connect(&self, address: SocketAddr) -> bool;
}
