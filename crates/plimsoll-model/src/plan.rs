//! Everything that one load will do, resolved and seeded: a [`Plan`] needs nothing more from outside to be carried out.

use crate::connect::ConnectSpec;
use crate::load::LoadShape;
use crate::redact::{self, Redact};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::SocketAddr;

/// The request that is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpec {
    /// `http` or `https`.
    pub scheme: String,
    /// Host as in the URL.
    pub host: String,
    /// Port, resolved from the scheme when the URL has none.
    pub port: u16,
    /// The addresses of the host, in the order of use.
    pub addresses: Vec<SocketAddr>,
    /// Method.
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// Headers given by the user, in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    #[serde(with = "body_length")]
    pub body: Vec<u8>,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// How much of it is left out of records and reports.
    #[serde(default)]
    pub redact: Redact,
}

/// A body is part of a plan, but not of its record: it may be large or secret, so only its length is written.
mod body_length {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(body.len() as u64)
    }

    /// A recorded body is read back as that many zero bytes, at most 1 MiB: enough to state its length.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(vec![0; u64::deserialize(deserializer)?.min(1 << 20) as usize])
    }
}

impl RequestSpec {
    /// `GET /` of a host over plain HTTP at the given addresses, on connections that are kept.
    pub fn get(host: &str, port: u16, addresses: Vec<SocketAddr>) -> RequestSpec {
        RequestSpec {
            scheme: "http".into(),
            host: host.into(),
            port,
            addresses,
            method: "GET".into(),
            target: "/".into(),
            headers: vec![],
            body: vec![],
            keep_alive: true,
            redact: Redact::Secrets,
        }
    }

    /// The same request without secrets: what [`redact`] leaves of its path, query and headers.
    pub fn redacted(&self) -> RequestSpec {
        let mut copy = self.clone();
        copy.target = redact::target(&self.target, self.redact);
        for (name, value) in &mut copy.headers {
            *value = redact::header_value(name, value, self.redact).to_owned();
        }
        copy
    }

    /// The request's URL for people, without secrets.
    pub fn url_redacted(&self) -> String {
        format!("{}{}", self.origin(), redact::target(&self.target, self.redact))
    }

    /// Scheme, host and port of the request's URL.
    pub fn origin(&self) -> String {
        format!("{}://{}:{}", self.scheme, bracketed(&self.host), self.port)
    }
}

/// A host as it stands in a URL: an IPv6 address in brackets, so that its colons are not taken for that of the port.
pub fn bracketed(host: &str) -> Cow<'_, str> {
    if host.contains(':') { format!("[{host}]").into() } else { host.into() }
}

/// A set of HTTP status codes, 100..=599.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StatusSet {
    bits: [u64; 8],
    text: String,
}

/// Why a status set could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a set of status codes; write for example 200-299,404 or 2xx")]
pub struct StatusSetError(String);

impl StatusSet {
    /// Reads `200`, `200-299`, `2xx` and lists of these.
    pub fn parse(text: &str) -> Result<StatusSet, StatusSetError> {
        let error = || StatusSetError(text.to_owned());
        let code = |text: &str| text.trim().parse::<u16>().ok().filter(|c| (100..600).contains(c)).ok_or_else(error);
        let mut bits = [0u64; 8];
        for part in text.split(',').map(str::trim) {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (code(from)?, code(to)?),
                None => match part.strip_suffix("xx") {
                    Some(class) => {
                        let from = code(&format!("{class}00"))?;
                        (from, from + 99)
                    }
                    None => (code(part)?, code(part)?),
                },
            };
            if from > to {
                return Err(error());
            }
            for status in from..=to {
                let at = usize::from(status - 100);
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        Ok(StatusSet { bits, text: text.to_owned() })
    }

    /// Whether `status` is in the set.
    #[inline]
    pub fn contains(&self, status: u16) -> bool {
        let at = usize::from(status.wrapping_sub(100));
        at < 500 && self.bits[at / 64] & (1 << (at % 64)) != 0
    }
}

impl Default for StatusSet {
    /// 100-399, the field's usual meaning of success.
    fn default() -> Self {
        StatusSet::parse("100-399").unwrap_or_else(|_| unreachable!("a constant that parses"))
    }
}

impl TryFrom<String> for StatusSet {
    type Error = StatusSetError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        StatusSet::parse(&text)
    }
}

impl From<StatusSet> for String {
    fn from(set: StatusSet) -> String {
        set.text
    }
}

/// Whether workers wait for events by polling without sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spin {
    /// Where a core is idle, and only as long as nobody else needs it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What a load is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A load that the user asked for as such.
    Run,
    /// A level of a sweep.
    Level,
    /// A closed-loop trial on the way to the peak.
    Peak,
    /// An open-loop trial while climbing.
    Climb,
    /// An open-loop trial near the line.
    Line,
    /// The trial that confirms the line.
    Confirm,
    /// Load outside any measurement: draining, priming, warming up.
    Settle,
    /// A fixed rate at which profiles of the server were taken.
    Profile,
    /// A load of a block, in which there is one on every arm.
    Block,
}

/// Which of several targets a load is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmIndex {
    /// A side of a comparison: 0 is A, 1 is B.
    Side(u8),
    /// A rung of a ladder, 0 the lowest: A, B, ...
    Rung(u8),
}

impl ArmIndex {
    /// Its place among the arms.
    pub fn index(self) -> usize {
        match self {
            ArmIndex::Side(index) | ArmIndex::Rung(index) => usize::from(index),
        }
    }

    /// A, B, ... Z.
    pub fn letter(self) -> char {
        char::from(b'A' + self.index().min(25) as u8)
    }
}

/// What a load is for, and its place among the others of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// What it is for.
    pub purpose: Purpose,
    /// On which of several targets; `None` where there is one.
    #[serde(flatten)]
    pub arm: Option<ArmIndex>,
    /// Which level, block or profile it belongs to, from 0; several loads of one turn are attempts at the same.
    #[serde(default)]
    pub turn: u32,
}

impl Tag {
    /// Of the only target, the first turn.
    pub fn of(purpose: Purpose) -> Tag {
        Tag { purpose, arm: None, turn: 0 }
    }
}

/// Everything a load will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Follows the meaning of these fields; see [`Plan::VERSION`].
    pub version: u32,
    /// All that is random follows from it.
    pub seed: u64,
    /// What is asked.
    pub request: RequestSpec,
    /// How connections are opened, secured and closed.
    #[serde(default)]
    pub connect: ConnectSpec,
    /// When, and by whom. Covers the measured part only; the warm-up is put before it.
    pub load: LoadShape,
    /// At most so many measured requests.
    pub requests_max: Option<u64>,
    /// Length of the measured part; `None` with `requests_max` only.
    pub duration_ns: Option<u64>,
    /// Load at the shape's first level before anything is measured.
    pub warmup_ns: u64,
    /// A request that takes longer has failed.
    pub timeout_ns: u64,
    /// How long to wait after the schedule's end for answers under way.
    pub grace_ns: u64,
    /// At most so many connections at once (open loads; closed loads have one for each user).
    pub connections_max: u32,
    /// Connections opened before the schedule begins, so that opening them is not measured.
    pub connections_ready: u32,
    /// What counts as success.
    pub ok_status: StatusSet,
    /// How workers wait.
    pub spin: Spin,
    /// Number of worker threads.
    pub workers: u32,
    /// Length of a recorded interval: a multiple of [`Plan::TICK_NS`].
    pub interval_ns: u64,
}

impl Plan {
    /// The version written by this crate.
    pub const VERSION: u32 = 1;
    /// How often a run looks up: 100 ms.
    pub const TICK_NS: u64 = 100_000_000;

    /// A plan with the usual defaults: 10 s, timeout 30 s, grace 5 s, one worker.
    pub fn new(request: RequestSpec, load: LoadShape) -> Plan {
        let duration_ns = load.curve().duration_ns().unwrap_or(10_000_000_000);
        Plan {
            version: Plan::VERSION,
            seed: 1,
            request,
            connect: ConnectSpec::default(),
            load,
            requests_max: None,
            duration_ns: Some(duration_ns),
            warmup_ns: 0,
            timeout_ns: 30_000_000_000,
            grace_ns: 5_000_000_000,
            connections_max: 10_000,
            connections_ready: 0,
            ok_status: StatusSet::default(),
            spin: Spin::Auto,
            workers: 1,
            interval_ns: Plan::TICK_NS,
        }
    }

    /// The same plan without secrets, as it is recorded.
    pub fn redacted(&self) -> Plan {
        let mut copy = Plan { request: self.request.redacted(), ..self.clone() };
        copy.connect.unix = self.connect.unix.as_deref().map(redact::path);
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_sets() {
        for (text, inside, outside) in [
            ("100-399", vec![100, 200, 399], vec![99, 400, 600, 0]),
            ("2xx,404", vec![200, 299, 404], vec![300, 403]),
            ("503", vec![503], vec![502, 504]),
        ] {
            let set = StatusSet::parse(text).expect(text);
            inside.iter().for_each(|s| assert!(set.contains(*s), "{s} in {text}"));
            outside.iter().for_each(|s| assert!(!set.contains(*s), "{s} not in {text}"));
        }
        for text in ["", "abc", "99", "600", "300-200", "9xx", "200-"] {
            assert!(StatusSet::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn nothing_secret_stays() {
        let request = RequestSpec {
            method: "POST".into(),
            target: "/x?t=s3cret".into(),
            headers: ["authorization", "COOKIE", "X-Any", "Accept"]
                .map(|n| (n.to_owned(), "s3cret".to_owned()))
                .to_vec(),
            body: b"s3cret body".to_vec(),
            ..RequestSpec::get("::1", 80, vec![])
        };
        let redacted = request.redacted();
        assert!(redacted.headers[..3].iter().all(|(_, v)| v == redact::REDACTED));
        assert_eq!(redacted.headers[3].1, "s3cret");
        assert_eq!(redacted.url_redacted(), "http://[::1]:80/x?t=[redacted]");
        let json = serde_json::to_string(&redacted).expect("serialises");
        assert!(!json.contains("s3cret body"));
        let back: RequestSpec = serde_json::from_str(&json).expect("reads back");
        assert_eq!(back.body.len(), 11);
    }
}
