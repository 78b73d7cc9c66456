//! Replaces the module `grpc` in a build without gRPC. The types have the same names as in `grpc`,
//! but no value of `Schema` or `Method` can exist, so no message can be encoded.
//!
//! Not here: gRPC (`grpc`).

/// Replaces the gRPC schema in a build without gRPC. The type has no values, so its methods are
/// never called.
#[derive(Debug, Clone)]
pub enum Schema {}

/// Replaces the gRPC method in a build without gRPC. The type has no values, so its methods are
/// never called.
#[derive(Debug)]
pub enum Method {}

/// The reason why a gRPC schema cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// This build was compiled without gRPC support.
    #[error("this plimsoll was built without gRPC")]
    NoGrpc,
}

#[allow(missing_docs, reason = "as in the twin; none can be called")]
impl Schema {
    pub fn services(&self) -> Vec<String> {
        match *self {}
    }

    pub fn describe_methods(&self, _: &str) -> Result<Vec<String>, SchemaError> {
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

    pub fn describe_fields(&self) -> String {
        match *self {}
    }
}
