//! Formats message types for users: an example body in JSON, and the list of fields of a type. Not
//! here: encoding bodies.

use super::editions::is_added_zero;
use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};

/// The deepest nesting of messages in an example. The nesting limit ends the example of a message
/// type that contains itself.
const DEPTH_MAX: usize = 3;
/// The size in bytes at which an example gets no further fields. The size limit shortens the
/// examples of types that contain very many other types.
const EXAMPLE_BYTES_MAX: usize = 16 << 10;

/// Returns an example body in JSON with the fields of the type. Only the first field of a oneof
/// appears. `DEPTH_MAX` and `EXAMPLE_BYTES_MAX` limit the example.
pub(super) fn example_json(message: &MessageDescriptor) -> String {
    let mut out = String::new();
    write_message(message, DEPTH_MAX, &mut out);
    out
}

fn write_message(message: &MessageDescriptor, depth: usize, out: &mut String) {
    if let Some(text) = well_known_type_example(message.full_name()) {
        out.push_str(text);
        return;
    }
    out.push('{');
    let mut first = true;
    for field in message.fields() {
        let others_of_oneof = field
            .containing_oneof()
            .is_some_and(|oneof| oneof.fields().next().is_some_and(|first| first.number() != field.number()));
        let is_too_deep = depth == 0 && matches!(field.kind(), Kind::Message(_));
        if others_of_oneof || is_too_deep || out.len() > EXAMPLE_BYTES_MAX {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push_str(", ");
        }
        // Field names consist of letters, digits and underscores, so no character needs an escape.
        out.push_str(&format!("\"{}\": ", field.json_name()));
        write_field(&field, depth, out);
    }
    out.push('}');
}

fn write_field(field: &FieldDescriptor, depth: usize, out: &mut String) {
    let kind = field.kind();
    if let (true, Kind::Message(entry)) = (field.is_map(), &kind) {
        let value = entry.map_entry_value_field();
        // JSON keys are strings, whatever the type of the map key.
        let key = match entry.map_entry_key_field().kind() {
            Kind::String => "key",
            Kind::Bool => "true",
            _ => "1",
        };
        out.push_str(&format!("{{\"{key}\": "));
        write_value(&value.kind(), depth, out);
        out.push('}');
    } else if field.cardinality() == Cardinality::Repeated {
        out.push('[');
        write_value(&kind, depth, out);
        out.push(']');
    } else {
        write_value(&kind, depth, out);
    }
}

fn write_value(kind: &Kind, depth: usize, out: &mut String) {
    match kind {
        Kind::Message(message) => write_message(message, depth.saturating_sub(1), out),
        Kind::Enum(kind) => match kind.values().find(|value| !is_added_zero(value.name())) {
            Some(value) => out.push_str(&format!("\"{}\"", value.name())),
            None => out.push('0'),
        },
        Kind::String => out.push_str("\"\""),
        Kind::Bytes => out.push_str("\"AA==\""),
        Kind::Bool => out.push_str("false"),
        // Canonical JSON has 64-bit numbers as strings. Plain numbers for 64-bit fields are
        // accepted too, and are easier to edit.
        _ => out.push('0'),
    }
}

/// Returns the JSON example of a well-known type; `None` for any other type.
fn well_known_type_example(name: &str) -> Option<&'static str> {
    Some(match name {
        "google.protobuf.Timestamp" => "\"2026-01-01T00:00:00Z\"",
        "google.protobuf.Duration" => "\"1s\"",
        "google.protobuf.FieldMask" => "\"\"",
        "google.protobuf.Struct" | "google.protobuf.Any" | "google.protobuf.Empty" => "{}",
        "google.protobuf.Value" => "null",
        "google.protobuf.ListValue" => "[]",
        "google.protobuf.StringValue" | "google.protobuf.BytesValue" => "\"\"",
        "google.protobuf.BoolValue" => "false",
        "google.protobuf.DoubleValue"
        | "google.protobuf.FloatValue"
        | "google.protobuf.Int64Value"
        | "google.protobuf.UInt64Value"
        | "google.protobuf.Int32Value"
        | "google.protobuf.UInt32Value" => "0",
        _ => return None,
    })
}

/// Returns the definition of a message type as text, one line for each field.
pub(super) fn message_definition(message: &MessageDescriptor) -> String {
    let mut out = format!("message {} {{\n", message.full_name());
    for field in message.fields() {
        let many = match (field.is_map(), field.cardinality()) {
            (false, Cardinality::Repeated) => "repeated ",
            (_, Cardinality::Required) => "required ",
            _ if field.field_descriptor_proto().proto3_optional() => "optional ",
            // Message fields always have presence, so the word "optional" would add nothing.
            _ if field.supports_presence()
                && field.containing_oneof().is_none()
                && !matches!(field.kind(), Kind::Message(_)) =>
            {
                "optional "
            }
            _ => "",
        };
        // The compiler represents an optional field as a synthetic oneof, which is not shown.
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        let oneof = oneof.map_or(String::new(), |oneof| format!("  // one of {}", oneof.name()));
        out.push_str(&format!("  {many}{} {} = {};{oneof}\n", field_type_text(&field), field.name(), field.number()));
    }
    out.push('}');
    out
}

fn field_type_text(field: &FieldDescriptor) -> String {
    let name = |kind: Kind| match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(kind) => kind.full_name().to_owned(),
        simple => format!("{simple:?}").to_ascii_lowercase(),
    };
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            format!("map<{}, {}>", name(entry.map_entry_key_field().kind()), name(entry.map_entry_value_field().kind()))
        }
        kind => name(kind),
    }
}
