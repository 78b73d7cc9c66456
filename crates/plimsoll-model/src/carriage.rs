//! Over what requests travel: how connections are opened, secured and closed, and how many there
//! may be.
//!
//! Plain data. Not here: what is asked ([`crate::traffic`]), from which local addresses (that is
//! one machine's, [`crate::injector`]), sockets, TLS itself.

use crate::tls::TlsSpec;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// How a load's connections are opened and closed, by all machines together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionPlan {
    /// The addresses of the host, in the order of use.
    pub addresses: Vec<SocketAddr>,
    /// Connect to this unix socket instead.
    pub unix: Option<String>,
    /// Ask for the addresses again while the load lasts.
    pub resolve: Option<ResolveSpec>,
    /// Speak TLS.
    pub tls: Option<TlsSpec>,
    /// Which HTTP is spoken.
    pub http: HttpChoice,
    /// Over HTTP/2, at most so many requests at a time on a connection; over HTTP/1.1 it is one. At
    /// least 1.
    pub streams_max: u32,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Close by a reset, which leaves no port in TIME-WAIT.
    pub close_reset: bool,
    /// At most so many connections at once (open loads; closed loads have one for each user).
    pub connections_max: u32,
}

impl ConnectionPlan {
    /// Plain TCP to these addresses, on connections that are kept, 10 000 at most.
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

    /// Whether the server has a say in which HTTP is spoken.
    pub fn is_open(&self) -> bool {
        self.tls.is_some() && self.http == HttpChoice::Auto
    }

    /// From here on this HTTP is spoken, and nothing else offered.
    pub fn speak(&mut self, http: HttpChoice) {
        self.http = http;
        if let Some(tls) = &mut self.tls {
            tls.alpn = http.alpn();
        }
    }
}

/// Which HTTP a load's connections speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HttpChoice {
    /// Over TLS what the server takes, HTTP/2 before HTTP/1.1; without it HTTP/1.1.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    H1,
    /// HTTP/2; without TLS both sides have to know beforehand.
    #[serde(rename = "2")]
    H2,
}

impl HttpChoice {
    /// The name that users and records have for it.
    pub fn name(self) -> &'static str {
        match self {
            HttpChoice::Auto => "auto",
            HttpChoice::H1 => "1.1",
            HttpChoice::H2 => "2",
        }
    }

    /// What is offered over TLS (ALPN), the preferred first.
    pub fn alpn(self) -> Vec<String> {
        let offered: &[&str] = match self {
            HttpChoice::Auto => &["h2", "http/1.1"],
            HttpChoice::H1 => &["http/1.1"],
            HttpChoice::H2 => &["h2"],
        };
        offered.iter().map(|name| (*name).to_owned()).collect()
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
