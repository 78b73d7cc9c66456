//! The construction of JSON documents: each is a type with the document's fields ([`value`]), and
//! maps for dynamic keys ([`ByName`]).
//!
//! Not here: any document.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A document as a value; figures that are no numbers are null in it.
pub(crate) fn value(document: &impl Serialize) -> Value {
    // Keys are text and nothing in a document fails to be written.
    serde_json::to_value(document).unwrap_or(Value::Null)
}

/// A map in a document: values under their names, in this order.
pub(crate) struct ByName<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for ByName<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
