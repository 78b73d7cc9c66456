//! What a run file holds of a plan: all of it but its secrets. It is made of a complete plan in one
//! place ([`Plan::record`]), and is a type of its own, so that what was left out can neither be
//! shown nor sent by mistake.
//!
//! Not here: which text is a secret ([`crate::redact`]), and the way back ([`crate::completion`]).

use crate::carriage::{ConnectionPlan, HttpChoice, ResolveSpec};
use crate::data::{Data, Pick};
#[cfg(doc)]
use crate::grpc::GrpcCall;
use crate::grpc::{GrpcStatus, GrpcStatusSet};
use crate::load::Load;
use crate::plan::Plan;
use crate::plan_bytes::{around_bytes, asked_bytes, program_bytes};
use crate::redact::{self, Redact};
use crate::request_list::{RequestList, RequestListRecord};
use crate::retry::again_label;
use crate::session::Scenario;
use crate::template::target_shown;
use crate::tls::TlsSpec;
use crate::traffic::{Choice, Origin, Request, Route, StatusSet, Traffic};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A plan without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// What is asked.
    pub traffic: TrafficRecord,
    /// When, and by whom.
    pub load: Load,
    /// Over what.
    pub carriage: ConnectionPlanRecord,
}

/// All that is asked in a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRecord {
    /// Of whom.
    pub origin: Origin,
    /// What; never empty.
    pub routes: Vec<RouteRecord>,
    /// In which order.
    pub choice: Choice,
    /// What sessions do, where they are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<ScenarioRecord>,
    /// Rows that requests are filled in with; none of them is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataRecord>,
    /// Names of variables that requests are filled in with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Enough of what is asked once, before and after the load, to tell other requests by; `None`
    /// where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around_digest: Option<String>,
    /// Requests that are asked one by one; none of them is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<RequestListRecord>,
}

/// What one kind of user does, without its program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// Its name in reports.
    pub name: String,
    /// How often, against the weights of the others.
    pub weight: u32,
    /// Whether each user has a connection of its own.
    pub own_connection: bool,
    /// The most requests that a session of it asks.
    pub requests_max: u64,
    /// Enough of its program to tell another one by.
    pub digest: String,
}

/// A table of rows, without its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRecord {
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Number of its rows.
    pub rows: u64,
    /// How a row is chosen.
    pub pick: Pick,
    /// Whether one is chosen for every use.
    pub each_use: bool,
    /// Enough of its rows to tell others by; `None` in a record of before, which is of no file any
    /// more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// One thing that is asked again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRecord {
    /// Its name in reports.
    pub label: String,
    /// Method.
    pub method: String,
    /// What is kept of path and query.
    pub target: String,
    /// Whether something of them was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub target_withheld: bool,
    /// Header fields, with what is kept of their names and values.
    pub headers: Vec<(String, String)>,
    /// Length of the body.
    pub body_bytes: u64,
    /// Enough of a digest to tell another body by; `None` where there is none, or in a record of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_digest: Option<String>,
    /// Enough of its templates, and of what it expects of answers and takes from them, to tell
    /// others by; `None` where there is none of these, or in a record of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_digest: Option<String>,
    /// How often, against the weights of the others.
    pub weight: u32,
    /// What counts as success.
    pub ok_status: StatusSet,
    /// It is a call of gRPC's, and these of its ends are success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_grpc: Option<GrpcStatusSet>,
    /// See [`GrpcCall::in_turn`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// A request that takes longer has failed, ns.
    pub timeout_ns: u64,
    /// See [`Route::follow`].
    #[serde(default, skip_serializing_if = "is_none_followed")]
    pub follow: u8,
}

/// Nothing is followed, as in records of before.
fn is_none_followed(hops: &u8) -> bool {
    *hops == 0
}

/// How a load's connections are opened and closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionPlanRecord {
    /// See [`ConnectionPlan::addresses`]; with those found during the load.
    pub addresses: Vec<SocketAddr>,
    /// What is kept of the path of the unix socket.
    pub unix: Option<String>,
    /// Whether something of it was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unix_withheld: bool,
    /// See [`ConnectionPlan::resolve`].
    pub resolve: Option<ResolveSpec>,
    /// See [`ConnectionPlan::tls`].
    pub tls: Option<TlsRecord>,
    /// See [`ConnectionPlan::http`].
    #[serde(default)]
    pub http: HttpChoice,
    /// See [`ConnectionPlan::streams_max`].
    #[serde(default = "one")]
    pub streams_max: u32,
    /// See [`ConnectionPlan::keep_alive`].
    pub keep_alive: bool,
    /// See [`ConnectionPlan::close_reset`].
    pub close_reset: bool,
    /// See [`ConnectionPlan::connections_max`].
    pub connections_max: u32,
}

/// Records of versions that spoke HTTP/1.1 only say nothing of it.
fn one() -> u32 {
    1
}

/// How a load speaks TLS, without certificates and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsRecord {
    /// See [`TlsSpec::server_name`].
    pub server_name: String,
    /// See [`TlsSpec::verify`].
    pub verify: bool,
    /// See [`TlsSpec::resume`].
    pub resume: bool,
    /// See [`TlsSpec::alpn`].
    pub alpn: Vec<String>,
    /// Number of issuers trusted.
    pub roots: u32,
    /// Whether we have a certificate of our own.
    pub own_certificate: bool,
}

impl Plan {
    /// What a run file holds of it.
    pub fn record(&self) -> PlanRecord {
        PlanRecord { traffic: self.traffic.record(), load: self.load.record(), carriage: self.carriage.record() }
    }
}

impl From<Plan> for PlanRecord {
    fn from(plan: Plan) -> PlanRecord {
        plan.record()
    }
}

impl Traffic {
    /// What a run file holds of it.
    pub fn record(&self) -> TrafficRecord {
        TrafficRecord {
            origin: self.origin.clone(),
            routes: self.routes.iter().map(|route| route.record(self.redact)).collect(),
            choice: self.choice,
            scenarios: self.scenarios.iter().map(Scenario::record).collect(),
            data: self.data.iter().map(|data| data.record()).collect(),
            variables: self.variables.iter().map(|(name, _)| name.clone()).collect(),
            around_digest: (!self.around.is_empty()).then(|| redact::digest(&around_bytes(&self.around))),
            listed: self.listed.as_deref().map(RequestList::record),
        }
    }
}

impl Scenario {
    fn record(&self) -> ScenarioRecord {
        ScenarioRecord {
            name: self.name.clone(),
            weight: self.weight,
            own_connection: self.own_connection,
            requests_max: self.requests_max(),
            digest: redact::digest(&program_bytes(self)),
        }
    }
}

impl Data {
    fn record(&self) -> DataRecord {
        DataRecord {
            name: self.name.clone(),
            columns: self.columns.clone(),
            rows: self.rows(),
            pick: self.pick,
            each_use: self.each_use,
            digest: Some(self.digest()),
        }
    }
}

impl Route {
    fn record(&self, how: Redact) -> RouteRecord {
        let kept = |(name, value): &(String, String)| {
            (redact::word(name).into_owned(), redact::header_value(name, value, how).to_owned())
        };
        let Request { method, target, headers, body } = &self.request;
        let asked = asked_bytes(self);
        let shown = if self.filled.target { target_shown(target, how) } else { redact::target(target, how) };
        RouteRecord {
            label: self.label.clone(),
            method: method.clone(),
            target_withheld: shown != *target,
            target: shown,
            headers: headers.iter().map(kept).collect(),
            body_bytes: body.len() as u64,
            body_digest: (!body.is_empty()).then(|| redact::digest(body)),
            asked_digest: (!asked.is_empty()).then(|| redact::digest(&asked)),
            weight: self.weight,
            ok_status: self.ok_status.clone(),
            ok_grpc: self.grpc.as_ref().map(|call| call.ok),
            in_turn: self.grpc.as_ref().is_some_and(|call| call.in_turn),
            timeout_ns: self.timeout_ns,
            follow: self.follow,
        }
    }
}

impl ConnectionPlan {
    fn record(&self) -> ConnectionPlanRecord {
        let unix = self.unix.as_deref().map(redact::path);
        ConnectionPlanRecord {
            addresses: self.addresses.clone(),
            unix_withheld: unix != self.unix,
            unix,
            resolve: self.resolve.clone(),
            tls: self.tls.as_ref().map(TlsSpec::record),
            http: self.http,
            streams_max: self.streams_max,
            keep_alive: self.keep_alive,
            close_reset: self.close_reset,
            connections_max: self.connections_max,
        }
    }
}

impl TlsSpec {
    fn record(&self) -> TlsRecord {
        TlsRecord {
            server_name: self.server_name.clone(),
            verify: self.verify,
            resume: self.resume,
            alpn: self.alpn.clone(),
            roots: self.roots.len() as u32,
            own_certificate: self.certificate_pem.is_some(),
        }
    }
}

impl TrafficRecord {
    /// The first route.
    pub fn first(&self) -> &RouteRecord {
        &self.routes[0]
    }

    /// The first route's URL.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.first().target)
    }

    /// What is asked, to tell targets apart: the URL of what asks one, else where, and what in few
    /// words.
    pub fn place(&self) -> String {
        if self.comes_again() {
            return self.url();
        }
        match (self.scenarios.as_slice(), self.routes.len()) {
            ([], 1) => self.url(),
            ([], requests) => format!("{} ({requests} requests)", self.origin),
            ([only], _) => format!("{} ({})", self.origin, only.name),
            (several, _) => format!("{} ({} scenarios)", self.origin, several.len()),
        }
    }

    /// What is asked, for people: `GET http://h:80/items`, or the labels of several routes.
    pub fn title(&self) -> String {
        if self.comes_again() {
            return self.title_of(self.first());
        }
        let names: Vec<&str> = self.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        match (names.len(), self.routes.len()) {
            (0, _) => {}
            (1, 1) => return format!("sessions of {}: {}, 1 request", self.origin, names[0]),
            (_, asked) => return format!("sessions of {}: {}, {asked} requests", self.origin, names.join(", ")),
        }
        match self.routes.as_slice() {
            // Paths of many were made one.
            [only] if self.choice == Choice::Listed => format!("1 request of {}: {}", self.origin, only.label),
            [only] => self.title_of(only),
            routes => {
                let labels: Vec<&str> = routes.iter().map(|route| route.label.as_str()).collect();
                format!("{} requests of {}: {}", routes.len(), self.origin, labels.join(", "))
            }
        }
    }

    /// The title of one request, which is the first.
    fn title_of(&self, only: &RouteRecord) -> String {
        match only.ok_grpc {
            // The method is gRPC's, and no choice.
            Some(_) => self.url(),
            None => format!("{} {}", only.method, self.url()),
        }
    }

    /// Whether what is asked is one request, and again where it fails.
    fn comes_again(&self) -> bool {
        let is_again = |first: &RouteRecord, again: &RouteRecord| {
            again.label == again_label(&first.label) && again.target == first.target
        };
        self.scenarios.len() == 1 && matches!(self.routes.as_slice(), [first, again] if is_again(first, again))
    }

    /// What an arrival or a user's turn is: a request, or a session of several.
    pub fn counted(&self) -> &'static str {
        match self.choice {
            Choice::Weighted | Choice::Listed => "requests",
            Choice::Scenarios => "sessions",
        }
    }

    /// The most requests that one arrival asks.
    pub fn requests_max_each(&self) -> u64 {
        self.scenarios.iter().map(|scenario| scenario.requests_max).max().unwrap_or(1).max(1)
    }

    /// Whether an answer of this status is a success of any route.
    pub fn succeeds(&self, status: u16) -> bool {
        self.routes.iter().any(|route| route.ok_status.contains(status))
    }

    /// Whether a call that ends so is a success of any route.
    pub fn call_succeeds(&self, end: GrpcStatus) -> bool {
        self.routes.iter().any(|route| route.ok_grpc.is_some_and(|ok| ok.contains(end)))
    }

    /// The longest timeout of any route, ns.
    pub fn timeout_ns_max(&self) -> u64 {
        self.routes.iter().map(|route| route.timeout_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::load::LoadShape;

    #[test]
    fn nothing_secret_stays() {
        let mut plan = Plan::get("::1", 80, vec![], LoadShape::Closed { users: Curve::constant(1.0) });
        plan.traffic.routes = vec![Route::new(Request {
            method: "POST".into(),
            target: "/Zq7xK2mW9vLp4TnR8sYd?t=s3cret".into(),
            headers: ["authorization", "COOKIE", "X-Any", "Accept"]
                .map(|name| (name.to_owned(), if name == "Accept" { "*/*" } else { "s3cret" }.to_owned()))
                .to_vec(),
            body: b"s3cret body".to_vec(),
        })];
        plan.carriage.unix = Some("/run/Zq7xK2mW9vLp4TnR8sYd".into());
        plan.carriage.tls = Some(TlsSpec {
            roots: vec![b"s3cret".to_vec()],
            certificate_pem: Some(b"s3cret".to_vec()),
            key_pem: Some(b"s3cret".to_vec()),
            ..TlsSpec::default()
        });
        let record = plan.record();
        let route = record.traffic.first();
        assert!(route.headers[..3].iter().all(|(_, value)| value == redact::REDACTED));
        assert_eq!((route.headers[3].1.as_str(), route.body_bytes), ("*/*", 11));
        assert_eq!(record.traffic.title(), "POST http://[::1]:80/Zq...?t=[redacted]");
        let mut call = record.clone();
        call.traffic.routes[0].ok_grpc = Some(GrpcStatusSet::default());
        assert_eq!(call.traffic.title(), "http://[::1]:80/Zq...?t=[redacted]");
        let tls = record.carriage.tls.as_ref().expect("TLS");
        assert_eq!((tls.roots, tls.own_certificate), (1, true));
        let json = serde_json::to_string(&record).expect("serialises");
        assert!(!json.contains("s3cret") && !json.contains("Zq7xK2mW"), "{json}");
        assert_eq!(serde_json::from_str::<PlanRecord>(&json).expect("reads back"), record);
        plan.traffic.redact = Redact::All;
        assert_eq!(plan.record().traffic.first().headers[3].1, redact::REDACTED);
    }
}
