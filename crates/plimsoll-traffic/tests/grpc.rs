//! Tests of gRPC calls as users write them: descriptors from `.proto` texts, conversion between
//! JSON and messages, and error messages.

use plimsoll_model::grpc_message::{GrpcMessageConverter, GrpcMessages, write_message};
use plimsoll_model::{GrpcCall, Origin, Request, Route, Traffic};
use plimsoll_traffic::grpc::{Schema, SchemaError, build_message_converters};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

const ITEMS: &str = r#"
syntax = "proto3";
package shop.v1;
import "shop/money.proto";
import "google/protobuf/timestamp.proto";

enum Color { COLOR_NONE = 0; RED = 1; }

message Item {
  int64 id = 1;
  string name = 2;
  repeated string tags = 3;
  map<string, Money> prices = 4;
  Color color = 5;
  google.protobuf.Timestamp since = 6;
  Item part = 7;
  oneof kind { bool new = 8; uint32 used_years = 9; }
  bytes picture = 10;
}
message Query { int64 id = 1; Item like = 2; }

service Items {
  rpc Get(Query) returns (Item);
  rpc Watch(Query) returns (stream Item);
  rpc Put(stream Item) returns (Query);
}
"#;

const MONEY: &str =
    "\u{feff}syntax = \"proto3\"; package shop.v1; message Money { string currency = 1; int64 cents = 2; }";

fn proto_source(name: &str) -> Option<Result<String, String>> {
    match name {
        "shop/items.proto" => Some(Ok(ITEMS.into())),
        "shop/money.proto" => Some(Ok(MONEY.into())),
        "broken.proto" => Some(Ok("syntax = \"proto3\"; message A { strong x = 1; }".into())),
        "unreadable.proto" => Some(Err("'unreadable.proto' is a folder".into())),
        "lacks.proto" => Some(Ok("syntax = \"proto3\"; import \"not/there.proto\";".into())),
        _ => None,
    }
}

fn items_schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::from_protos(&["shop/items.proto".into()], proto_source).expect("compiles"))
}

fn encode_json_as_messages(method: &str, body: &str) -> Result<Vec<u8>, String> {
    let method = items_schema().method(&format!("/shop.v1.Items/{method}")).expect("a method");
    method.encode_messages(body.as_bytes(), false).map_err(|error| error.to_string())
}

#[test]
fn json_becomes_messages() {
    for (method, body, bytes) in [
        ("Get", "", vec![0, 0, 0, 0, 0]),
        ("Get", "{}", vec![0, 0, 0, 0, 0]),
        ("Get", " {\"id\": 7}\n", vec![0, 0, 0, 0, 2, 8, 7]),
        ("Get", "{\"id\": \"7\"}", vec![0, 0, 0, 0, 2, 8, 7]),
        ("Get", "[{\"id\": 7}]", vec![0, 0, 0, 0, 2, 8, 7]),
        ("Put", "{\"id\": 1}", vec![0, 0, 0, 0, 2, 8, 1]),
        ("Put", "[]", vec![]),
        ("Put", "[{\"id\": 1}, {\"color\": \"RED\"}]", vec![0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 2, 40, 1]),
        ("Put", "{\"usedYears\": 3}", vec![0, 0, 0, 0, 2, 72, 3]),
        ("Put", "{\"used_years\": 3}", vec![0, 0, 0, 0, 2, 72, 3]),
    ] {
        assert_eq!(encode_json_as_messages(method, body), Ok(bytes), "{method} {body}");
    }
}

#[test]
fn grpc_messages_are_compressed_on_request() {
    use std::io::Read;
    let method = items_schema().method("/shop.v1.Items/Put").expect("a method");
    let content = method.encode_messages(b"[{\"id\": 7}, {}]", true).expect("two messages");
    let mut left = content.as_slice();
    for expect in [&[8, 7][..], &[]] {
        let [1, length @ .., _, _] = left.first_chunk::<7>().expect("a message") else { panic!("{left:?}") };
        let length = u32::from_be_bytes(*length) as usize;
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&left[5..5 + length]).read_to_end(&mut text).expect("gzip");
        assert_eq!(text, expect);
        left = &left[5 + length..];
    }
    assert_eq!(left, b"");
}

/// Returns the converter between the messages of a gRPC method and JSON, made in the same way as
/// for a load.
fn message_json_converter(method: &str) -> Arc<dyn GrpcMessageConverter> {
    static TYPES: OnceLock<Arc<[u8]>> = OnceLock::new();
    let types = TYPES.get_or_init(|| items_schema().to_descriptor_set().into()).clone();
    let mut route = Route::new(Request { target: format!("/shop.v1.Items/{method}"), ..Request::get_root() });
    route.grpc = Some(GrpcCall { descriptor_set: Some(types), ..GrpcCall::default() });
    let origin = Origin { scheme: "grpc".into(), host: "h".into(), port: 1 };
    build_message_converters(&Traffic::with_one_route(origin, route)).expect("types").remove(0).expect("of a call")
}

/// Checks that encoded messages and decoded JSON equal the results of Python's protobuf 7.36.2. The
/// decoded JSON has all fields, and 64-bit numbers are JSON numbers.
#[test]
fn grpc_messages_match_another_implementation() {
    for (method, body, hex, json) in [
        (
            "Put",
            r#"{"id": "-9007199254740993", "name": "caf\u00e9 \u0000", "tags": ["", "b"], "prices": {"EUR": {"currency": "EUR",
                "cents": "-1"}}, "color": "RED", "since": "2001-02-03T04:05:06.789Z", "part": {"id": 1, "part": {"new": false}},
                "usedYears": 4294967295, "picture": "AP8="}"#,
            "08ffffffffffffffefff011207636166c3a920001a001a016222170a0345555212100a0345555210ffffffffffffffffff012801320c08f286ee\
             d30310c0de9cf8023a0608013a02400048ffffffff0f520200ff",
            r#"{"id": -9007199254740993, "name": "caf\u00e9 \u0000", "tags": ["", "b"], "prices": {"EUR": {"currency": "EUR",
                "cents": -1}}, "color": "RED", "since": "2001-02-03T04:05:06.789Z", "part": {"id": 1, "part": {"new": false,
                "id": 0, "name": "", "tags": [], "prices": {}, "color": "COLOR_NONE", "picture": ""}, "name": "", "tags": [],
                "prices": {}, "color": "COLOR_NONE", "picture": ""}, "usedYears": 4294967295, "picture": "AP8="}"#,
        ),
        (
            "Get",
            r#"{"like": {"color": 7, "tags": ["x"]}, "id": 300}"#,
            "08ac0212051a01782807",
            r#"{"id": 300, "like": {"tags": ["x"], "color": 7, "id": 0, "name": "", "prices": {}, "picture": ""}}"#,
        ),
        ("Get", r#"{"id": "9223372036854775807"}"#, "08ffffffffffffffff7f", r#"{"id": 9223372036854775807}"#),
    ] {
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect();
        let mut framed = Vec::new();
        write_message(&bytes, false, &mut framed);
        let sent = encode_json_as_messages(method, body).expect(body);
        assert_eq!(sent, framed, "{body}");
        // `answers` is the method whose response type equals the request type of `method`.
        let answers = if method == "Put" { "Get" } else { "Put" };
        let mut text = Vec::new();
        assert!(message_json_converter(answers).decode_to_json(&framed, &mut text), "{body}");
        let read: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(json).expect("JSON"), "{body}");
    }
}

#[test]
fn grpc_responses_become_json_with_all_fields() {
    let packed = items_schema()
        .method("/shop.v1.Items/Put")
        .expect("Put")
        .encode_messages(b"{\"id\": 7}", true)
        .expect("a message");
    for (method, content, json) in [
        // In the JSON of a gRPC response, 64-bit numbers are JSON numbers, and fields with default
        // values are present.
        ("Put", &[0, 0, 0, 0, 2, 8, 7][..], r#"{"id":7}"#),
        ("Put", &[0, 0, 0, 0, 0], r#"{"id":0}"#),
        ("Put", &packed, r#"{"id":7}"#),
        // The next two cases are a response with an item named "a", and a stream without messages.
        (
            "Get",
            &[0, 0, 0, 0, 3, 18, 1, b'a'],
            r#"{"id":0,"name":"a","tags":[],"prices":{},"color":"COLOR_NONE","picture":""}"#,
        ),
        ("Watch", &[], "[]"),
    ] {
        let mut text = Vec::new();
        assert!(message_json_converter(method).decode_to_json(content, &mut text), "{method} {content:?}");
        assert_eq!(String::from_utf8(text).as_deref(), Ok(json), "{method}");
    }
    let mut two = Vec::new();
    assert!(message_json_converter("Watch").decode_to_json(&[0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 2, 8, 2], &mut two));
    let two: serde_json::Value = serde_json::from_slice(&two).expect("JSON");
    assert_eq!((&two[0]["id"], &two[1]["id"]), (&1.into(), &2.into()));
    // The contents are invalid: no message, two messages instead of one, a truncated message,
    // invalid bytes, and invalid gzip.
    for content in [&[][..], &[0; 10], &[0, 0, 0, 0, 2, 8], &[0, 0, 0, 0, 1, 8], &[1, 0, 0, 0, 1, 8]] {
        assert!(!message_json_converter("Put").decode_to_json(content, &mut Vec::new()), "{content:?}");
    }
}

#[test]
fn an_unsuitable_body_is_reported_with_its_position() {
    for (method, body, said) in [
        ("Get", "{\"id\": \"seven\"}", &["shop.v1.Query", "at id: ", "(int64 is expected)"][..]),
        ("Get", "{\"like\": {\"part\": {\"name\": 5}}}", &["at like.part.name: ", "expected a string"]),
        ("Get", "{\"like\": {\"usedYears\": -1}}", &["at like.usedYears: ", "(uint32 is expected)"]),
        (
            "Get",
            "{\"like\": {\"prices\": {\"EUR\": {\"cents\": \"x\"}}}}",
            &["at like.prices.EUR.cents: ", "(int64 is expected)"],
        ),
        (
            "Get",
            "{\"like\": {\"color\": \"BLUE\"}}",
            &["at like.color: ", "'BLUE'", "(the known enum values are COLOR_NONE, RED)"],
        ),
        ("Get", "{\"idd\": 7}", &["'idd'", "(the known message fields are id, like)"]),
        (
            "Get",
            "{\"like\": {\"part\": {\"nam\": 7}}}",
            &["at like.part", "'nam'", "(the known message fields are name, "],
        ),
        ("Get", "{\"id\": 7", &["the body is no JSON: EOF"]),
        ("Get", "{} {}", &["the body is no JSON: "]),
        ("Put", "[{}, {]", &["the body is no JSON: "]),
        // If the body is a list of messages, the error names the index of the invalid message.
        ("Put", "[{}, {\"idd\": 7}]", &["at [1]", "'idd'"]),
        ("Put", "[{}, {\"id\": \"x\"}]", &["at [1].id: "]),
        ("Get", "7", &["shop.v1.Query"]),
        ("Get", "[{}, {}]", &["shop.v1.Items.Get takes one message, and the body has 2"]),
        ("Get", "[]", &["takes one message"]),
    ] {
        let error = encode_json_as_messages(method, body).expect_err(body);
        said.iter().for_each(|said| assert!(error.contains(said), "{body}: {error}"));
    }
    let method = items_schema().method("/shop.v1.Items/Get").expect("a method");
    assert!(matches!(method.encode_messages(&[0xff], false), Err(SchemaError::Body { .. })));
}

#[test]
fn unknown_services_and_methods_are_reported_with_alternatives() {
    for (path, said) in [
        ("/shop.v1.Items/Gets", "Items has no method 'Gets'; the known service methods are Get,"),
        ("/shop.v1.Item/Get", "no service 'shop.v1.Item'; the known gRPC services are shop.v1.Items"),
        ("/shop.v1.Items", "write /package.Service/Method"),
        ("/", "write /package.Service/Method"),
        ("//Get", "write /package.Service/Method"),
    ] {
        let error = items_schema().method(path).map(|_| ()).expect_err(path).to_string();
        assert!(error.contains(said), "{path}: {error}");
    }
}

#[test]
fn uncompilable_proto_files_are_named() {
    for (name, said) in [
        ("broken.proto", "broken.proto:"),
        ("broken.proto", "strong"),
        ("unreadable.proto", "is a folder"),
        ("lacks.proto", "lacks.proto:"),
        ("lacks.proto", "not/there.proto"),
        ("nowhere.proto", "nowhere.proto"),
    ] {
        let error = Schema::from_protos(&[name.into()], proto_source).map(|_| ()).expect_err(name).to_string();
        assert!(error.contains(said), "{name}: {error}");
    }
    assert!(Schema::from_descriptor_set(b"no descriptors").is_err());
}

#[test]
fn services_are_listed_and_described() {
    let schema = items_schema();
    assert_eq!(schema.services(), ["shop.v1.Items"]);
    assert_eq!(
        schema.describe_methods("shop.v1.Items"),
        Ok(vec![
            "Get(shop.v1.Query) -> shop.v1.Item".to_owned(),
            "Watch(shop.v1.Query) -> stream shop.v1.Item".to_owned(),
            "Put(stream shop.v1.Item) -> shop.v1.Query".to_owned(),
        ])
    );
    for name in ["Get", "Watch", "Put"] {
        let method = schema.method(&format!("/shop.v1.Items/{name}")).expect(name);
        let example = method.example();
        // The example body of a gRPC method must itself be a valid body.
        let content =
            method.encode_messages(example.as_bytes(), false).unwrap_or_else(|error| panic!("{example}: {error}"));
        assert_eq!(GrpcMessages::new(&content).count(), 1, "{example}");
        assert!(method.describe_fields().contains("int64 id = 1;"), "{}", method.describe_fields());
    }
    let shape = schema.method("/shop.v1.Items/Put").expect("Put").describe_fields();
    for line in ["map<string, shop.v1.Money> prices = 4;", "repeated string tags = 3;", "bool new = 8;  // one of kind"]
    {
        assert!(shape.contains(line), "{shape}");
    }
}

proptest! {
    #[test]
    fn any_body_and_content_convert_without_a_panic(body in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let method = items_schema().method("/shop.v1.Items/Put").expect("a method");
        let _ = method.encode_messages(body.as_bytes(), false);
        let _ = method.encode_messages(&bytes, false);
        let _ = method.append_response_json(&bytes, &mut Vec::new());
        let text = &message_json_converter("Put");
        let _ = text.decode_to_json(&bytes, &mut Vec::new());
        let _ = text.encode_from_json(&bytes, &mut Vec::new());
        let _ = GrpcMessages::new(&bytes).count();
        let _ = Schema::from_descriptor_set(&bytes);
    }
}
