//! The transport of a load: how connections are opened, secured and closed, and the number of
//! connections.
//!
//! The types of this file are plain data. Not here: the requests ([`crate::traffic`]), local
//! addresses, which belong to one machine ([`crate::injector`]), sockets, and TLS itself.

use crate::tls::TlsSpec;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// How all machines of a load open and close connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionPlan {
    /// The addresses of the host, in the order of use.
    pub addresses: Vec<SocketAddr>,
    /// The path of a unix socket, used in place of the addresses; `None` means that the addresses
    /// are used.
    pub unix: Option<String>,
    /// How the host's name is resolved again during the load; `None` means that the name is
    /// resolved only once.
    pub resolve: Option<ResolveSpec>,
    /// The TLS options; `None` means that connections do not use TLS.
    pub tls: Option<TlsSpec>,
    /// The HTTP version of the connections.
    pub http: HttpChoice,
    /// The maximum number of concurrent requests on an HTTP/2 connection, at least 1. An HTTP/1.1
    /// connection has one request at a time.
    pub streams_max: u32,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Whether connections are closed with a reset, which leaves no port in TIME-WAIT.
    pub close_reset: bool,
    /// The maximum number of concurrent connections of an open loop. A closed loop has one
    /// connection for each user.
    pub connections_max: u32,
}

impl ConnectionPlan {
    /// Creates the plan for plain TCP to `addresses` with keep-alive, and at most 10 000
    /// connections.
    pub fn tcp(addresses: Vec<SocketAddr>) -> ConnectionPlan {
        ConnectionPlan {
            addresses,
            unix: None,
            resolve: None,
            tls: None,
            http: HttpChoice::Auto,
            streams_max: 1,
            keep_alive: true,
            close_reset: false,
            connections_max: 10_000,
        }
    }

    /// Returns whether the HTTP version is undecided until client and server negotiate the version
    /// over TLS.
    pub fn negotiates_http_version(&self) -> bool {
        self.tls.is_some() && self.http == HttpChoice::Auto
    }

    /// Fixes the HTTP version, so that the client offers no other version.
    pub fn fix_http_version(&mut self, http: HttpChoice) {
        self.http = http;
        if let Some(tls) = &mut self.tls {
            tls.alpn = http.alpn();
        }
    }
}

/// The HTTP version of a load's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HttpChoice {
    /// Over TLS, the server chooses; the client prefers HTTP/2 to HTTP/1.1. Without TLS the version
    /// is HTTP/1.1.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Connections use HTTP/1.1.
    #[serde(rename = "1.1")]
    H1,
    /// Connections use HTTP/2. Without TLS, the client sends HTTP/2 from the start of a connection
    /// (prior knowledge).
    #[serde(rename = "2")]
    H2,
}

impl HttpChoice {
    /// Returns the name of the HTTP version in flags and records.
    pub fn name(self) -> &'static str {
        match self {
            HttpChoice::Auto => "auto",
            HttpChoice::H1 => "1.1",
            HttpChoice::H2 => "2",
        }
    }

    /// Returns the ALPN protocols that the client offers over TLS, the preferred first.
    pub fn alpn(self) -> Vec<String> {
        let offered: &[&str] = match self {
            HttpChoice::Auto => &["h2", "http/1.1"],
            HttpChoice::H1 => &["http/1.1"],
            HttpChoice::H2 => &["h2"],
        };
        offered.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// A host name that is resolved repeatedly during a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveSpec {
    /// The host name.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// Time between two lookups, ns.
    pub every_ns: u64,
    /// Whether load may go to addresses that are neither loopback nor private.
    pub public: bool,
}
