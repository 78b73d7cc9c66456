//! Converts gRPC responses to JSON, and rendered template bodies to messages. Only routes with
//! expectations, captures or templates need a conversion between gRPC messages and JSON.

use super::schema::{Method, Schema, SchemaError};
use flate2::read::GzDecoder;
use plimsoll_model::Traffic;
use plimsoll_model::expect::CONTENT_BYTES_MAX;
use plimsoll_model::grpc_message::{GrpcMessageConverter, GrpcMessages, RouteMessageConverters};
use std::io::Read;
use std::sync::Arc;

/// Converts between JSON and the gRPC messages of one method.
#[derive(Debug)]
struct GrpcMethodConverter {
    method: Method,
    /// Whether request messages are compressed with gzip.
    gzip: bool,
}

/// Builds a converter between gRPC messages and JSON for each route of a load plan. Routes without
/// message types get `None`.
///
/// # Errors
/// Returns an error if the message types are invalid or do not contain the called method.
pub fn build_message_converters(traffic: &Traffic) -> Result<RouteMessageConverters, SchemaError> {
    // Consecutive routes often share one descriptor set, which is parsed only for the first route
    // that uses the set.
    let mut last: Option<(*const u8, Schema)> = None;
    let mut of_route = |route: &plimsoll_model::Route| {
        let Some(types) = route.grpc.as_ref().and_then(|call| call.descriptor_set.as_ref()) else { return Ok(None) };
        let schema = match &last {
            Some((bytes, schema)) if *bytes == types.as_ptr() => schema.clone(),
            _ => Schema::from_descriptor_set(types)?,
        };
        last = Some((types.as_ptr(), schema.clone()));
        let method = schema.method(&route.request.target)?;
        let mut fields = route.request.headers.iter();
        let gzip = fields.any(|(name, value)| name.eq_ignore_ascii_case("grpc-encoding") && value.trim() == "gzip");
        Ok(Some(Arc::new(GrpcMethodConverter { method, gzip }) as Arc<dyn GrpcMessageConverter>))
    };
    traffic.routes.iter().map(&mut of_route).collect()
}

impl GrpcMessageConverter for GrpcMethodConverter {
    fn decode_to_json(&self, content: &[u8], json: &mut Vec<u8>) -> bool {
        let is_list = self.method.has_server_stream();
        if is_list {
            json.push(b'[');
        }
        let mut count = 0;
        let mut messages = GrpcMessages::new(content);
        while let Some(message) = messages.next_with_compression_flag() {
            let Ok((packed, bytes)) = message else { return false };
            if count > 0 && is_list {
                json.push(b',');
            }
            count += 1;
            let unpacked = if packed { decompress_gzip(bytes) } else { Some(Vec::new()) };
            let Some(unpacked) = unpacked else { return false };
            if self.method.append_response_json(if packed { &unpacked } else { bytes }, json).is_err() {
                return false;
            }
        }
        if is_list {
            json.push(b']');
        }
        is_list || count == 1
    }

    fn encode_from_json(&self, body: &[u8], content: &mut Vec<u8>) -> bool {
        match self.method.encode_messages(body, self.gzip) {
            Ok(mut written) => {
                content.append(&mut written);
                true
            }
            Err(_) => false,
        }
    }
}

/// Decompresses a gzip message. `None` means that the message is invalid or longer than
/// [`CONTENT_BYTES_MAX`].
fn decompress_gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let most = CONTENT_BYTES_MAX as u64;
    GzDecoder::new(bytes).take(most + 1).read_to_end(&mut out).ok().filter(|read| *read as u64 <= most)?;
    Some(out)
}
