//! The building blocks of documents: each document is a type whose fields are those of the document
//! ([`value`]), with maps whose keys are known only at run time ([`ByName`]).
//!
//! Not here: any document.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Converts a document into a JSON value; figures that are no numbers become null.
pub(crate) fn value(document: &impl Serialize) -> Value {
    // Keys are strings, and no value of a document fails to serialise.
    serde_json::to_value(document).unwrap_or(Value::Null)
}

/// A map in a document: values under their names, in the order of the list.
pub(crate) struct ByName<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for ByName<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
