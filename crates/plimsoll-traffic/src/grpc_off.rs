//! The twin of `grpc` in a program that was built without gRPC: there are no descriptors, so that
//! no message is made.
//!
//! Not here: gRPC (`grpc`).

/// There is none.
#[derive(Debug, Clone)]
pub enum Schema {}

/// There is none.
#[derive(Debug)]
pub enum Method {}

/// Why no call can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// This program cannot make any.
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
