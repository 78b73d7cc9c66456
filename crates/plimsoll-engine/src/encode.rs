//! What connections of a plan need that is made once, before any: requests as bytes, and the set-up of TLS.

use plimsoll_model::traffic::bracketed;
use plimsoll_model::{Plan, Request};
use plimsoll_wire::{EncodedRequest, h1, tls};

/// Writes a request of the plan as it goes on the wire.
pub fn encode_request(plan: &Plan, request: &Request) -> Result<EncodedRequest, h1::RequestError> {
    let host = host_field(plan);
    EncodedRequest::new(&h1::RequestParts {
        method: &request.method,
        target: &request.target,
        host: &host,
        headers: &request.headers,
        body: &request.body,
        keep_alive: plan.carriage.keep_alive,
    })
}

/// The value of the `Host` field.
pub fn host_field(plan: &Plan) -> String {
    let origin = &plan.traffic.origin;
    let host = bracketed(&origin.host);
    let default_port = if origin.scheme == "https" { 443 } else { 80 };
    if origin.port == default_port { host.into_owned() } else { format!("{host}:{}", origin.port) }
}

/// What connections of `plan` need to speak TLS; `None` when they do not.
pub fn tls_client(plan: &Plan) -> Result<Option<tls::Client>, tls::ConfigError> {
    plan.carriage.tls.as_ref().map(tls::Client::new).transpose()
}
