//! Tests small gRPC descriptors that expand to very large values. Parsing must take time and memory
//! in proportion to the size of a descriptor, or the parser must reject the descriptor.
//!
//! Not here: other inputs (`bounds`), and the meaning of descriptors (`grpc`).

use crate::bounds::PARSE_TIME_MAX;
use plimsoll_traffic::grpc::Schema;
use proptest::prelude::*;
use std::time::Instant;

fn compile_proto(text: &str) -> Result<(), String> {
    let text = text.to_owned();
    let source = move |name: &str| (name == "a.proto").then(|| Ok(text.clone()));
    Schema::from_protos(&["a.proto".to_owned()], source).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn no_proto_exceeds_its_memory_budget() {
    let messages: String = (0..500_000).map(|n| format!("message M{n} {{}}")).collect();
    for (name, inside) in [("messages", messages), ("blocks", "message A {".repeat(100_000))] {
        let text = format!("syntax = \"proto3\"; {inside}");
        let began = Instant::now();
        let made = compile_proto(&text);
        let took = began.elapsed();
        assert!(took < PARSE_TIME_MAX, "{name}: {} bytes take {took:?}", text.len());
        if let Err(error) = made {
            assert!(error.len() < 1_000 && !error.is_empty(), "{name}: {error:.300}");
        }
    }
}

#[test]
fn oversized_descriptors_are_refused() {
    let varint = |mut n: usize| {
        let mut out = Vec::new();
        while n >= 128 {
            out.push((n % 128 + 128) as u8);
            n /= 128;
        }
        out.push(n as u8);
        out
    };
    let inner = [b"\x0a\x01a".to_vec(), b"\x22\0".repeat(2 << 20)].concat();
    let messages = [b"\x0a".to_vec(), varint(inner.len()), inner].concat();
    for (name, bytes) in [("files", b"\x0a\0".repeat(2 << 20)), ("messages", messages)] {
        let began = Instant::now();
        let error = Schema::from_descriptor_set(&bytes).expect_err("refused").to_string();
        assert!(
            began.elapsed() < PARSE_TIME_MAX && (error.contains("more than the maximum") || error.contains("256 MiB")),
            "{name}: {error}"
        );
    }
}

/// Checks that a descriptor whose syntax no compiler writes is rejected, because the descriptor
/// library would panic.
#[test]
fn descriptors_of_another_syntax_are_refused() {
    for (syntax, known) in [("proto4", false), ("", false), ("proto3", true), ("PROTO3", false)] {
        let file = [&[0x0a, 1, b'a', 0x62, syntax.len() as u8], syntax.as_bytes()].concat();
        let set = [&[0x0a, file.len() as u8], file.as_slice()].concat();
        let got = Schema::from_descriptor_set(&set).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(got.is_ok(), known, "{syntax}: {got:?}");
        assert!(got.err().is_none_or(|error| error.contains(&format!("'{syntax}'"))), "{syntax}");
    }
}

/// Returns the bytes of two encoded descriptor files, of which the first imports the second. The
/// tests damage the returned bytes.
fn encode_sample_descriptors() -> Vec<u8> {
    let source = |name: &str| {
        match name {
        "a.proto" => Some(Ok("syntax = \"proto3\"; package a; import \"b.proto\"; enum E { Z = 0; } message A { b.B b = 1; \
                             map<string, E> e = 2; oneof x { int32 n = 3; string s = 4; } } service S { rpc M(A) returns (stream b.B); }"
            .to_owned())),
        "b.proto" => Some(Ok("syntax = \"proto2\"; package b; message B { optional int32 n = 1 [default = 5]; extensions 100 to 200; \
                             required group G = 2 { optional bytes y = 1; } reserved 7; }"
            .to_owned())),
        _ => None,
    }
    };
    Schema::from_protos(&["a.proto".to_owned()], source).expect("compiles").to_descriptor_set()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_descriptors_are_refused_or_parsed(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        body in "[ -~]{0,20}",
    ) {
        let mut bytes = encode_sample_descriptors();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 16);
        if let Ok(schema) = Schema::from_descriptor_set(&bytes) {
            for service in schema.services() {
                let lines = schema.describe_methods(&service).expect("a service");
                for line in lines {
                    let name = line.split('(').next().unwrap_or_default().to_owned();
                    let Ok(method) = schema.method(&format!("/{service}/{name}")) else { continue };
                    let example = method.example();
                    let _ = (method.encode_messages(example.as_bytes(), false), method.encode_messages(body.as_bytes(), true), method.describe_fields());
                    let _ = method.append_response_json(body.as_bytes(), &mut Vec::new());
                }
            }
            let _ = Schema::from_descriptor_set(&schema.to_descriptor_set());
        }
    }
}
