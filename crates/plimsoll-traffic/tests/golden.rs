//! Compares gRPC messages that plimsoll encodes from JSON bodies with the results of another
//! protobuf implementation. The script `golden/make.py` wrote the results of the other
//! implementation to `golden/golden.json`. Plimsoll must reject the bodies that the other protobuf
//! implementation rejects.

use plimsoll_traffic::grpc::{Schema, SchemaError};
use serde_json::Value;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compile_schema(files: &[&str]) -> Result<Schema, SchemaError> {
    let names: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
    Schema::from_protos(&names, |name| (!name.starts_with("google/")).then(|| Ok(read(name))))
}

fn bytes_from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|byte| (byte as char).to_digit(16).expect("a digit") as u8).collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

/// Returns whether the JSON value of plimsoll equals the JSON value of the other protobuf
/// implementation. Plimsoll writes large numbers as JSON numbers, and the other protobuf
/// implementation writes large numbers as strings.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::String(theirs)) => ours.to_string() == *theirs,
        (Value::Number(ours), Value::Number(theirs)) => ours == theirs || ours.as_f64() == theirs.as_f64(),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours, theirs))
        }
        // A field without a value is null in plimsoll's JSON and may be absent in the JSON of the
        // other implementation.
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.iter().all(|(name, value)| theirs.get(name).map_or(value.is_null(), |other| is_same(value, other)))
                && theirs.keys().all(|name| ours.contains_key(name))
        }
        (ours, theirs) => ours == theirs,
    }
}

#[test]
fn bodies_become_the_same_messages_as_in_another_implementation() {
    let compiled =
        compile_schema(&["kinds.proto", "older.proto", "edition.proto", "newer.proto"]).expect("they compile");
    check(&compiled, |_| true);
}

#[test]
fn edition_descriptors_match_their_text() {
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/editions.pb")).expect("a file");
    check(&Schema::from_descriptor_set(&bytes).expect("descriptors"), |method| {
        method.contains("edition") || method.contains("newer")
    });
}

/// Compares the encoded bodies of the selected methods with the recorded results of another
/// protobuf implementation.
fn check(schema: &Schema, is_wanted: impl Fn(&str) -> bool) {
    let cases: Vec<Value> = serde_json::from_str(&read("golden.json")).expect("JSON");
    let (mut wrong, mut count, mut same) = (Vec::new(), 0, 0);
    for case in cases.iter().filter(|case| case["method"].as_str().is_some_and(&is_wanted)) {
        let method = schema.method(case["method"].as_str().expect("a method")).expect("there is such a method");
        let body = case["body"].to_string();
        let made = method.encode_messages(body.as_bytes(), false);
        count += 1;
        let Some(hex) = case["hex"].as_str() else {
            if let Ok(made) = made {
                wrong.push(format!(
                    "{} {body}: taken as {made:?}; refused by others: {}",
                    case["method"], case["refused"]
                ));
            }
            continue;
        };
        let expect = bytes_from_hex(hex);
        let text = |message: &[u8]| -> Result<Value, String> {
            let mut text = Vec::new();
            method.append_response_json(message, &mut text).map_err(|error| error.to_string())?;
            Ok(serde_json::from_slice(&text).expect("JSON"))
        };
        let read = text(&expect);
        match made {
            Err(error) => wrong.push(format!("{} {body}: {error}", case["method"])),
            // Equal protobuf messages can have different encodings. In an encoding, map entries may
            // be in any order, default values may be absent, and lists may be packed or not.
            // Messages whose encodings differ are therefore also compared as decoded JSON.
            Ok(made) if made[5..] != expect && text(&made[5..]) != read => {
                wrong.push(format!("{} {body}: {:02x?} and not {expect:02x?}", case["method"], &made[5..]));
            }
            Ok(made) => same += usize::from(made[5..] == expect),
        }
        let ours = match read {
            Ok(ours) => ours,
            Err(error) => {
                wrong.push(format!("{} {hex}: {error}", case["method"]));
                continue;
            }
        };
        if !is_same(&ours, &case["json"]) {
            wrong.push(format!("{} {hex}:\n  {ours}\n  {}", case["method"], case["json"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 7 && same * 5 > count * 3, "{count} cases, {same} of them the same to the byte");
}

#[test]
fn an_unknown_edition_is_refused_in_one_sentence() {
    let text = |name: &str| (name == "far.proto").then(|| Ok("edition = \"2099\";\nmessage A {}\n".to_owned()));
    let error = Schema::from_protos(&["far.proto".to_owned()], text).map(|_| ()).expect_err("not known").to_string();
    assert!(error.contains("far.proto is written in edition 2099 of protobuf; "), "{error}");
    // The bytes are a descriptor with a file name, the syntax "editions", and an edition that does
    // not exist yet.
    let far = b"\x0a\x1b\x0a\x05far.p\x62\x08editions\x70\xcf\x0f\x2a\x05\x0a\x01E\x12\x00";
    let error = Schema::from_descriptor_set(far).map(|_| ()).expect_err("not known").to_string();
    assert!(error.contains("far.p is written in edition no. 1999 of protobuf; "), "{error}");
}
