//! The twin of `grpc` for a build without gRPC: there are no descriptors, so no message can be
//! encoded.
//!
//! Not here: gRPC (`grpc`).

/// A type without values.
#[derive(Debug, Clone)]
pub enum Schema {}

/// A type without values.
#[derive(Debug)]
pub enum Method {}

/// Why no call can be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// This build has no gRPC.
    #[error("this plimsoll was built without gRPC")]
    NoGrpc,
}

#[allow(missing_docs, reason = "as in the twin; none can be called")]
impl Schema {
    pub fn services(&self) -> Vec<String> {
        match *self {}
    }

    pub fn methods(&self, _: &str) -> Result<Vec<String>, SchemaError> {
        match *self {}
    }

    pub fn method(&self, _: &str) -> Result<Method, SchemaError> {
        match *self {}
    }
}

#[allow(missing_docs, reason = "as in the twin; none can be called")]
impl Method {
    pub fn example(&self) -> String {
        match *self {}
    }

    pub fn shape(&self) -> String {
        match *self {}
    }
}
