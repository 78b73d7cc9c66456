//! The keys that a file may have, each once: what reads them and what is said of them agree.

/// Of the file.
pub const FILE: [&str; 2] = ["base", "request"];

/// What a request is asked with: each is a method, and its value the path.
pub const VERBS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Of a request.
pub const REQUEST: [&str; 16] = [
    "name", "weight", "get", "post", "put", "patch", "delete", "head", "options", "method", "url", "headers", "body",
    "json", "timeout", "expect",
];

/// Of what is expected of an answer.
pub const EXPECT: [&str; 1] = ["status"];
