//! The record of a plan in a run file: the plan without its secrets. Only [`Plan::record`] creates
//! the record from a complete plan. The record has its own type, so that plimsoll cannot send
//! redacted text to a server by mistake.
//!
//! Not here: which text is a secret ([`crate::redact`]), and how a record becomes a plan again
//! ([`crate::completion`]).

use crate::data::{RowChoice, ValueTable};
#[cfg(doc)]
use crate::grpc::GrpcCall;
use crate::grpc::{GrpcStatus, GrpcStatusSet};
use crate::load::Load;
use crate::plan::Plan;
use crate::plan_bytes::{route_digest_input, scenario_digest_input, setup_teardown_digest_input};
use crate::redact::{self, RedactionLevel};
use crate::request_list::{RequestList, RequestListRecord};
use crate::retry::retry_label;
use crate::session::Scenario;
use crate::template::redact_target_template;
use crate::tls::TlsSpec;
use crate::traffic::{Origin, Request, Route, RouteChoice, StatusSet, Traffic};
use crate::transport::{ConnectionPlan, HttpChoice, ResolveSpec};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A plan without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The requests of the load, redacted.
    pub traffic: TrafficRecord,
    /// The load model, the level (users or rate), and the lengths of the warm-up and the measured
    /// part.
    pub load: Load,
    /// How connections are opened and closed, redacted.
    #[serde(rename = "carriage")]
    pub connection_plan: ConnectionPlanRecord,
}

/// All requests of a load, redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRecord {
    /// Scheme, host and port of every request.
    pub origin: Origin,
    /// The records of the routes; never empty.
    pub routes: Vec<RouteRecord>,
    /// The rule that chooses a user's next route.
    pub choice: RouteChoice,
    /// Scenarios of sessions; empty without sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<ScenarioRecord>,
    /// Tables of values for requests, without their rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataRecord>,
    /// Names of the variables in requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// A digest of setup and teardown requests; `None` means that the load has no setup and
    /// teardown requests.
    #[serde(rename = "around_digest", default, skip_serializing_if = "Option::is_none")]
    pub setup_teardown_digest: Option<String>,
    /// The record of the request list: a digest and facts, without the requests.
    #[serde(rename = "listed", default, skip_serializing_if = "Option::is_none")]
    pub request_list: Option<RequestListRecord>,
}

/// The record of a scenario (one kind of user), without its program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// The name of the scenario in reports.
    pub name: String,
    /// The weight of the scenario among all scenarios.
    pub weight: u32,
    /// Whether each user has its own connection.
    pub own_connection: bool,
    /// Whether a user stores cookies and sends them again. A record without this field means that
    /// users do.
    #[serde(default = "keeps_cookies", skip_serializing_if = "Clone::clone")]
    pub cookies: bool,
    /// The maximum number of requests that one session can send.
    pub requests_max: u64,
    /// A digest of the scenario's program (its requests, pauses and branches).
    pub digest: String,
}

/// Returns the value of [`ScenarioRecord::cookies`] for records without the field.
fn keeps_cookies() -> bool {
    true
}

/// The record of a table of values, without its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRecord {
    /// The name of the table in templates.
    pub name: String,
    /// Names of the table's columns.
    pub columns: Vec<String>,
    /// Number of the table's rows.
    pub rows: u64,
    /// The rule by which a session gets its row of the table.
    pub pick: RowChoice,
    /// Whether every use of the table gets another row, instead of one row for each session.
    pub each_use: bool,
    /// A digest of the rows. An older record has no digest (`None`), so no table matches an older
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The record of a route: one kind of request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteRecord {
    /// The name of the route in reports.
    pub label: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query of the request, redacted.
    pub target: String,
    /// Whether redaction shortened `target`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub target_withheld: bool,
    /// Header fields of the request, redacted.
    pub headers: Vec<(String, String)>,
    /// Length of the request's body, bytes.
    pub body_bytes: u64,
    /// A digest of the body; `None` without a body, or in an older record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_digest: Option<String>,
    /// A digest of templates, expectations, captures and the limit of redirects. `None` means that
    /// the route has no templates, expectations, captures or redirects, or that the record is older
    /// than this field.
    #[serde(rename = "asked_digest", default, skip_serializing_if = "Option::is_none")]
    pub template_digest: Option<String>,
    /// The weight of the route among all routes.
    pub weight: u32,
    /// The statuses that count as success.
    pub ok_status: StatusSet,
    /// The gRPC statuses that count as success; `None` means that the route is no gRPC call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_grpc: Option<GrpcStatusSet>,
    /// Whether each message of a gRPC stream waits for the response to the previous message; see
    /// [`GrpcCall::in_turn`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The timeout of a request, ns.
    pub timeout_ns: u64,
    /// The maximum number of redirects to follow as part of one request; see
    /// [`Route::redirects_max`].
    #[serde(default, skip_serializing_if = "follows_no_redirects")]
    #[serde(rename = "follow")]
    pub redirects_max: u8,
}

/// Returns whether no redirect is followed. A record without the field [`RouteRecord::follow`] also
/// means that no redirect is followed.
fn follows_no_redirects(hops: &u8) -> bool {
    *hops == 0
}

/// How connections are opened and closed, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionPlanRecord {
    /// The addresses of the host, including addresses that were found during the load.
    pub addresses: Vec<SocketAddr>,
    /// The path of the unix socket, redacted.
    pub unix: Option<String>,
    /// Whether redaction shortened `unix`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unix_withheld: bool,
    /// The host name to resolve again during the load; see [`ConnectionPlan::resolve`].
    pub resolve: Option<ResolveSpec>,
    /// The TLS options, without secrets; see [`ConnectionPlan::tls`].
    pub tls: Option<TlsRecord>,
    /// The HTTP version; see [`ConnectionPlan::http`].
    #[serde(default)]
    pub http: HttpChoice,
    /// The maximum number of concurrent requests on a connection; see
    /// [`ConnectionPlan::streams_max`].
    #[serde(default = "default_streams_max")]
    pub streams_max: u32,
    /// Whether a connection serves several requests; see [`ConnectionPlan::keep_alive`].
    pub keep_alive: bool,
    /// Whether connections are closed with a reset; see [`ConnectionPlan::close_reset`].
    pub close_reset: bool,
    /// The maximum number of concurrent connections; see [`ConnectionPlan::connections_max`].
    pub connections_max: u32,
}

/// Returns the default of `streams_max` in records of versions that had HTTP/1.1 only.
fn default_streams_max() -> u32 {
    1
}

/// TLS options, without certificates and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsRecord {
    /// The expected name in the server's certificate; see [`TlsSpec::server_name`].
    pub server_name: String,
    /// Whether the server's certificate is verified; see [`TlsSpec::verify`].
    pub verify: bool,
    /// Whether a new connection may resume a session; see [`TlsSpec::resume`].
    pub resume: bool,
    /// Protocols that the client offers (ALPN), the preferred protocol first; see
    /// [`TlsSpec::alpn`].
    pub alpn: Vec<String>,
    /// Number of trusted certificate issuers (root certificates).
    pub roots: u32,
    /// Whether the client has its own certificate.
    pub own_certificate: bool,
}

impl Plan {
    /// Creates the record of the plan for a run file.
    pub fn record(&self) -> PlanRecord {
        PlanRecord {
            traffic: self.traffic.record(),
            load: self.load.record(),
            connection_plan: self.connection_plan.record(),
        }
    }
}

impl From<Plan> for PlanRecord {
    fn from(plan: Plan) -> PlanRecord {
        plan.record()
    }
}

impl Traffic {
    /// Creates the record of the traffic for a run file.
    pub fn record(&self) -> TrafficRecord {
        TrafficRecord {
            origin: self.origin.clone(),
            routes: self.routes.iter().map(|route| route.record(self.redact)).collect(),
            choice: self.choice,
            scenarios: self.scenarios.iter().map(Scenario::record).collect(),
            data: self.data.iter().map(|data| data.record()).collect(),
            variables: self.variables.iter().map(|(name, _)| name.clone()).collect(),
            setup_teardown_digest: (!self.setup_teardown.is_empty())
                .then(|| redact::short_digest(&setup_teardown_digest_input(&self.setup_teardown))),
            request_list: self.request_list.as_deref().map(RequestList::record),
        }
    }
}

impl Scenario {
    fn record(&self) -> ScenarioRecord {
        ScenarioRecord {
            name: self.name.clone(),
            weight: self.weight,
            own_connection: self.own_connection,
            cookies: self.cookies,
            requests_max: self.requests_max(),
            digest: redact::short_digest(&scenario_digest_input(self)),
        }
    }
}

impl ValueTable {
    fn record(&self) -> DataRecord {
        DataRecord {
            name: self.name.clone(),
            columns: self.columns.clone(),
            rows: self.row_count(),
            pick: self.pick,
            each_use: self.each_use,
            digest: Some(self.digest()),
        }
    }
}

impl Route {
    fn record(&self, how: RedactionLevel) -> RouteRecord {
        let kept = |(name, value): &(String, String)| {
            (redact::redact_word(name).into_owned(), redact::redact_header_value(name, value, how).to_owned())
        };
        let Request { method, target, headers, body } = &self.request;
        let asked = route_digest_input(self);
        let shown = if self.template_flags.target {
            redact_target_template(target, how)
        } else {
            redact::redact_target(target, how)
        };
        RouteRecord {
            label: self.label.clone(),
            method: method.clone(),
            target_withheld: shown != *target,
            target: shown,
            headers: headers.iter().map(kept).collect(),
            body_bytes: body.len() as u64,
            body_digest: (!body.is_empty()).then(|| redact::short_digest(body)),
            template_digest: (!asked.is_empty()).then(|| redact::short_digest(&asked)),
            weight: self.weight,
            ok_status: self.ok_status.clone(),
            ok_grpc: self.grpc.as_ref().map(|call| call.ok),
            in_turn: self.grpc.as_ref().is_some_and(|call| call.in_turn),
            timeout_ns: self.timeout_ns,
            redirects_max: self.redirects_max,
        }
    }
}

impl ConnectionPlan {
    fn record(&self) -> ConnectionPlanRecord {
        let unix = self.unix.as_deref().map(redact::redact_path);
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
    /// Returns the first route of the traffic.
    pub fn first_route(&self) -> &RouteRecord {
        &self.routes[0]
    }

    /// Returns the URL of the first route.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.first_route().target)
    }

    /// Returns a text that distinguishes targets. The text is the URL for a single request, and the
    /// origin with a short description of the requests for all other traffic.
    pub fn target_label(&self) -> String {
        if self.has_retries() {
            return self.url();
        }
        match (self.scenarios.as_slice(), self.routes.len()) {
            ([], 1) => self.url(),
            ([], requests) => format!("{} ({requests} requests)", self.origin),
            ([only], _) => format!("{} ({})", self.origin, only.name),
            (several, _) => format!("{} ({} scenarios)", self.origin, several.len()),
        }
    }

    /// Returns the title of the traffic: method and URL of a single request (`GET
    /// http://h:80/items`), or the labels of several routes.
    pub fn title(&self) -> String {
        if self.has_retries() {
            return self.single_request_title(self.first_route());
        }
        let names: Vec<&str> = self.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        match (names.len(), self.routes.len()) {
            (0, _) => {}
            (1, 1) => return format!("sessions of {}: {}, 1 request", self.origin, names[0]),
            (_, asked) => return format!("sessions of {}: {}, {asked} requests", self.origin, names.join(", ")),
        }
        match self.routes.as_slice() {
            // In a replay, the single route can stand for many paths of the log, so the title shows
            // the route's label.
            [only] if self.choice == RouteChoice::RequestList => {
                format!("1 request of {}: {}", self.origin, only.label)
            }
            [only] => self.single_request_title(only),
            routes => {
                let labels: Vec<&str> = routes.iter().map(|route| route.label.as_str()).collect();
                format!("{} requests of {}: {}", routes.len(), self.origin, labels.join(", "))
            }
        }
    }

    /// Returns the title of traffic whose only request is `only`.
    fn single_request_title(&self, only: &RouteRecord) -> String {
        match only.ok_grpc {
            // Every gRPC call has the same HTTP method, so the title is the URL.
            Some(_) => self.url(),
            None => format!("{} {}", only.method, self.url()),
        }
    }

    /// Returns whether the traffic is one request with retries. The route of the retries has the
    /// same target as the route of the first attempts.
    fn has_retries(&self) -> bool {
        let is_again = |first: &RouteRecord, again: &RouteRecord| {
            again.label == retry_label(&first.label) && again.target == first.target
        };
        self.scenarios.len() == 1 && matches!(self.routes.as_slice(), [first, again] if is_again(first, again))
    }

    /// Returns the word for the arrivals of a load: "requests", or "sessions" if each arrival is a
    /// session of requests.
    pub fn arrivals_word(&self) -> &'static str {
        match self.choice {
            RouteChoice::Weighted | RouteChoice::RequestList => "requests",
            RouteChoice::Scenarios => "sessions",
        }
    }

    /// Returns the maximum number of requests that one arrival can send.
    pub fn requests_per_arrival_max(&self) -> u64 {
        self.scenarios.iter().map(|scenario| scenario.requests_max).max().unwrap_or(1).max(1)
    }

    /// Returns whether the HTTP status `status` counts as success for at least one route.
    pub fn counts_as_success(&self, status: u16) -> bool {
        self.routes.iter().any(|route| route.ok_status.contains(status))
    }

    /// Returns whether the gRPC status `end` counts as success for at least one route.
    pub fn counts_as_grpc_success(&self, end: GrpcStatus) -> bool {
        self.routes.iter().any(|route| route.ok_grpc.is_some_and(|ok| ok.contains(end)))
    }

    /// Returns the longest timeout of any route, ns.
    pub fn timeout_ns_max(&self) -> u64 {
        self.routes.iter().map(|route| route.timeout_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::LoadCurve;
    use crate::load::LoadShape;

    #[test]
    fn a_plan_record_contains_no_secret() {
        let mut plan = Plan::for_get_request("::1", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
        plan.traffic.routes = vec![Route::new(Request {
            method: "POST".into(),
            target: "/Zq7xK2mW9vLp4TnR8sYd?t=s3cret".into(),
            headers: ["authorization", "COOKIE", "X-Any", "Accept"]
                .map(|name| (name.to_owned(), if name == "Accept" { "*/*" } else { "s3cret" }.to_owned()))
                .to_vec(),
            body: b"s3cret body".to_vec(),
        })];
        plan.connection_plan.unix = Some("/run/Zq7xK2mW9vLp4TnR8sYd".into());
        plan.connection_plan.tls = Some(TlsSpec {
            roots: vec![b"s3cret".to_vec()],
            certificate_pem: Some(b"s3cret".to_vec()),
            key_pem: Some(b"s3cret".to_vec()),
            ..TlsSpec::default()
        });
        let record = plan.record();
        let route = record.traffic.first_route();
        assert!(route.headers[..3].iter().all(|(_, value)| value == redact::REDACTED));
        assert_eq!((route.headers[3].1.as_str(), route.body_bytes), ("*/*", 11));
        assert_eq!(record.traffic.title(), "POST http://[::1]:80/Zq...?t=[redacted]");
        let mut call = record.clone();
        call.traffic.routes[0].ok_grpc = Some(GrpcStatusSet::default());
        assert_eq!(call.traffic.title(), "http://[::1]:80/Zq...?t=[redacted]");
        let tls = record.connection_plan.tls.as_ref().expect("TLS");
        assert_eq!((tls.roots, tls.own_certificate), (1, true));
        let json = serde_json::to_string(&record).expect("serialises");
        assert!(!json.contains("s3cret") && !json.contains("Zq7xK2mW"), "{json}");
        assert_eq!(serde_json::from_str::<PlanRecord>(&json).expect("reads back"), record);
        plan.traffic.redact = RedactionLevel::All;
        assert_eq!(plan.record().traffic.first_route().headers[3].1, redact::REDACTED);
    }
}
