//! The building blocks of JSON documents. Each document is a Rust type whose fields are the fields
//! of the document; [`to_json_value`] converts it to JSON. If the keys of a JSON object are known
//! only at run time, its type is [`ObjectByName`].
//!
//! Not here: the types of the documents.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Converts a document into a JSON value. NaN and infinities become null.
pub(crate) fn to_json_value(document: &impl Serialize) -> Value {
    // Serialisation cannot fail, because all keys are strings and all values can be represented.
    serde_json::to_value(document).unwrap_or(Value::Null)
}

/// A JSON object whose keys are known only at run time. The order of the keys is the order of the
/// list.
pub(crate) struct ObjectByName<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for ObjectByName<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
