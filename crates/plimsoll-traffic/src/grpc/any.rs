//! Converts messages that contain an empty `google.protobuf.Any`, which is `{}` in JSON. The
//! protobuf library can neither parse nor serialise an empty `Any`. So each empty `Any` gets a
//! placeholder type before the library runs, and the placeholder is removed afterwards.
//!
//! Not here: messages without an empty `Any`.

use prost_reflect::{DynamicMessage, Kind, MapKey, MessageDescriptor, ReflectMessage, SerializeOptions, Value};
use serde_json::Value as Json;

const ANY_TYPE_NAME: &str = "google.protobuf.Any";
/// The type prefix of the placeholder for an empty `Any`. No real type has this prefix.
const PLACEHOLDER_PREFIX: &str = "plimsoll.invalid/";
/// The deepest nesting of messages that is searched for an empty `Any`.
const DEPTH_MAX: usize = 64;

/// Parses the JSON of a message that contains an empty `Any`. `None` means that the text has an
/// error other than the empty `Any`.
pub(super) fn parse_with_empty_any(message: &MessageDescriptor, text: &str) -> Option<DynamicMessage> {
    let mut json: Json = serde_json::from_str(text).ok()?;
    if message.full_name() == ANY_TYPE_NAME {
        return is_empty_object(&json).then(|| DynamicMessage::new(message.clone()));
    }
    let name = format!("{PLACEHOLDER_PREFIX}{}", message.full_name());
    insert_placeholders(&mut json, message, &name, 0);
    let mut read = DynamicMessage::deserialize(message.clone(), json).ok()?;
    for_each_any(&mut read, 0, &mut |any| {
        if type_url(any) == name {
            any.clear_field_by_name("type_url");
        }
    });
    Some(read)
}

/// Serialises a message that contains an empty `Any` as JSON. `None` means that a part of the
/// message other than the empty `Any` cannot be serialised.
pub(super) fn serialize_with_empty_any(mut message: DynamicMessage, options: &SerializeOptions) -> Option<String> {
    if message.descriptor().full_name() == ANY_TYPE_NAME {
        return type_url(&message).is_empty().then(|| "{}".to_owned());
    }
    let name = format!("{PLACEHOLDER_PREFIX}{}", message.descriptor().full_name());
    for_each_any(&mut message, 0, &mut |any| {
        if type_url(any).is_empty() {
            any.set_field_by_name("type_url", Value::String(name.clone()));
        }
    });
    let mut json = message.serialize_with_options(serde_json::value::Serializer, options).ok()?;
    remove_placeholders(&mut json, &name, 0);
    Some(json.to_string())
}

fn is_empty_object(json: &Json) -> bool {
    json.as_object().is_some_and(serde_json::Map::is_empty)
}

fn type_url(any: &DynamicMessage) -> String {
    any.get_field_by_name("type_url").and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Replaces every `{}` that stands for a `google.protobuf.Any` by a JSON object with the
/// placeholder type `name`.
fn insert_placeholders(json: &mut Json, message: &MessageDescriptor, name: &str, depth: usize) {
    let Some(object) = json.as_object_mut().filter(|_| depth < DEPTH_MAX) else { return };
    let value = |json: &mut Json, kind: &Kind| {
        let Kind::Message(inner) = kind else { return };
        match inner.full_name() == ANY_TYPE_NAME {
            true if is_empty_object(json) => *json = serde_json::json!({ "@type": name }),
            true => {}
            false => insert_placeholders(json, inner, name, depth + 1),
        }
    };
    for (key, json) in object.iter_mut() {
        let Some(field) = message.get_field_by_json_name(key).or_else(|| message.get_field_by_name(key)) else {
            continue;
        };
        match (field.kind(), json) {
            (Kind::Message(entry), Json::Object(entries)) if field.is_map() => {
                let kind = entry.map_entry_value_field().kind();
                entries.values_mut().for_each(|json| value(json, &kind));
            }
            (kind, Json::Array(items)) if field.is_list() => items.iter_mut().for_each(|json| value(json, &kind)),
            (kind, json) => value(json, &kind),
        }
    }
}

/// Replaces every object that has the placeholder type `name` by `{}`.
fn remove_placeholders(json: &mut Json, name: &str, depth: usize) {
    match json {
        Json::Object(object) if object.get("@type").and_then(Json::as_str) == Some(name) => object.clear(),
        Json::Object(object) if depth < DEPTH_MAX => {
            object.values_mut().for_each(|json| remove_placeholders(json, name, depth + 1));
        }
        Json::Array(items) if depth < DEPTH_MAX => {
            items.iter_mut().for_each(|json| remove_placeholders(json, name, depth + 1))
        }
        _ => {}
    }
}

/// Calls `each` for every `google.protobuf.Any` in a message.
fn for_each_any(message: &mut DynamicMessage, depth: usize, each: &mut dyn FnMut(&mut DynamicMessage)) {
    if message.descriptor().full_name() == ANY_TYPE_NAME {
        return each(message);
    }
    if depth == DEPTH_MAX {
        return;
    }
    let fields: Vec<_> = message.fields().map(|(field, _)| field).collect();
    for field in fields.into_iter().filter(|field| matches!(field.kind(), Kind::Message(_))) {
        match message.get_field_mut(&field) {
            Value::Message(inner) => for_each_any(inner, depth + 1, each),
            Value::List(items) => items
                .iter_mut()
                .filter_map(Value::as_message_mut)
                .for_each(|inner| for_each_any(inner, depth + 1, each)),
            Value::Map(entries) => {
                let entries: Vec<(&MapKey, &mut Value)> = entries.iter_mut().collect();
                entries
                    .into_iter()
                    .filter_map(|(_, value)| value.as_message_mut())
                    .for_each(|inner| for_each_any(inner, depth + 1, each));
            }
            _ => {}
        }
    }
}
