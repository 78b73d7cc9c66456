//! Prepares the encoded requests and the TLS configuration that a plan's connections need.

use plimsoll_model::traffic::url_host;
use plimsoll_model::{ConnectionPlan, HttpChoice, Plan, Request};
use plimsoll_wire::{EncodedRequest, h1, tls};

/// Encodes a request of the plan for the wire. Returns an error if the request is not valid HTTP.
pub fn encode_request(plan: &Plan, request: &Request) -> Result<EncodedRequest, h1::RequestError> {
    let host = host_field(plan);
    let parts = h1::RequestParts {
        method: &request.method,
        target: &request.target,
        host: &host,
        headers: &request.headers,
        body: &request.body,
        keep_alive: plan.connection_plan.keep_alive,
    };
    let encoded = EncodedRequest::new(&parts)?;
    // The request is encoded for HTTP/2 only if a connection may use HTTP/2. Encoding only for
    // HTTP/1.1 saves time, because a template is encoded again for each request.
    let ConnectionPlan { http, tls, .. } = &plan.connection_plan;
    let may_be_h2 = *http == HttpChoice::H2 || (*http == HttpChoice::Auto && tls.is_some());
    Ok(if may_be_h2 { encoded.with_h2(&parts, plan.traffic.origin.is_secure()) } else { encoded })
}

/// Returns the value of the `Host` field for the plan's requests.
pub fn host_field(plan: &Plan) -> String {
    let origin = &plan.traffic.origin;
    let host = url_host(&origin.host);
    let default_port = if origin.is_secure() { 443 } else { 80 };
    if origin.port == default_port { host.into_owned() } else { format!("{host}:{}", origin.port) }
}

/// Creates the TLS client of `plan`, or returns `None` if the plan does not use TLS. Returns an
/// error if the TLS options of the plan are invalid.
pub fn tls_client(plan: &Plan) -> Result<Option<tls::Client>, tls::ConfigError> {
    plan.connection_plan.tls.as_ref().map(tls::Client::new).transpose()
}
