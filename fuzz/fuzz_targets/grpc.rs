//! Coverage-guided fuzzing of plimsoll-traffic's gRPC parsers: messages in responses, a server's
//! reflection responses, descriptor sets, and JSON bodies for a message with fields of every type.
//! Nothing may panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::grpc_message::{GrpcMessageCounter, GrpcMessages};
use plimsoll_traffic::grpc::Schema;
use plimsoll_traffic::grpc::reflection::DescriptorCollector;
use std::sync::OnceLock;

const PROTO: &str = r#"syntax = "proto3";
package p;
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
enum E { NONE = 0; ONE = 1; }
message M {
  int64 a = 1; uint32 b = 2; sint32 c = 3; fixed64 d = 4; double e = 5; float f = 6; bool g = 7; string h = 8; bytes i = 9;
  E j = 10; M k = 11; repeated int32 l = 12; map<string, M> m = 13; google.protobuf.Timestamp n = 14;
  google.protobuf.Struct o = 15; oneof p { int32 q = 16; string r = 17; }
}
service S { rpc Call(stream M) returns (M); }
"#;

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let text = |name: &str| (name == "p.proto").then(|| Ok(PROTO.to_owned()));
        Schema::from_protos(&["p.proto".to_owned()], text).expect("compiles")
    })
}

fuzz_target!(|data: &[u8]| {
    let method = schema().method("/p.S/Call").expect("a method");
    if let Ok(content) = method.encode_messages(data, false) {
        // Messages that were encoded from a body must decode again.
        for message in GrpcMessages::new(&content) {
            let mut text = Vec::new();
            method.append_response_json(message.expect("whole"), &mut text).expect("a message");
            assert!(method.encode_messages(&text, true).is_ok(), "{}", String::from_utf8_lossy(&text));
        }
    }
    let _ = method.append_response_json(data, &mut Vec::new());
    let _ = GrpcMessages::new(data).count();
    let (mut whole, mut piecemeal) = (GrpcMessageCounter::default(), GrpcMessageCounter::default());
    let at_once = whole.count_piece(data);
    let in_pieces: u32 = data.chunks(3).map(|piece| piecemeal.count_piece(piece)).sum();
    assert_eq!((whole, at_once), (piecemeal, in_pieces));
    let _ = plimsoll_model::grpc::decode_percent_encoded_message(data);
    let mut learner = DescriptorCollector::for_services(["p.S"].into_iter());
    while learner.next_request().is_some() && learner.take_response(data).is_ok() {}
    let _ = learner.schema();
    if let Ok(schema) = Schema::from_descriptor_set(data) {
        for service in schema.services() {
            let _ = schema.methods(&service);
        }
    }
});
