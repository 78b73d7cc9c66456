//! Messages of the gRPC health check (`grpc.health.v1.Health`): encodes the request and decodes the
//! response.
//!
//! Not here: the code that sends the request, and the connection.

use plimsoll_model::grpc_message::{GrpcMessages, write_message};
use prost::Message;

/// The HTTP/2 path of the health check method.
pub const CHECK_METHOD_PATH: &str = "/grpc.health.v1.Health/Check";

#[derive(Clone, PartialEq, prost::Message)]
struct HealthRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Returns the health request for `service`, encoded as the content of a gRPC call.
pub fn encode_request(service: &str) -> Vec<u8> {
    let mut content = Vec::new();
    write_message(&HealthRequest { service: service.to_owned() }.encode_to_vec(), false, &mut content);
    content
}

/// Returns whether a health response says that the service is not serving. The result is false for
/// an invalid response.
pub fn is_not_serving(content: &[u8]) -> bool {
    const NOT_SERVING: i32 = 2;
    let answer = GrpcMessages::new(content).next().and_then(|message| HealthResponse::decode(message.ok()?).ok());
    answer.is_some_and(|answer| answer.status == NOT_SERVING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_health_responses_are_parsed() {
        assert_eq!(encode_request("a.B"), b"\0\0\0\0\x05\x0a\x03a.B");
        for (content, no) in [
            (&b"\0\0\0\0\x02\x08\x02"[..], true),
            (b"\0\0\0\0\x02\x08\x01", false),
            (b"\0\0\0\0\x00", false),
            (b"\0\0\0\0\x02\x08", false),
            (b"", false),
            (b"\x01\0\0\0\x02\x08\x02", false),
        ] {
            assert_eq!(is_not_serving(content), no, "{content:?}");
        }
    }
}
