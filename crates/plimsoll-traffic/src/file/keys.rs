//! The keys that a file may have, each once: what reads them and what is said of them agree.

/// Of the file.
pub const FILE: [&str; 3] = ["base", "request", "data"];

/// What a request is asked with: each is a method, and its value the path.
pub const VERBS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// Of a request.
pub const REQUEST: [&str; 17] = [
    "name", "weight", "get", "post", "put", "patch", "delete", "head", "options", "method", "url", "headers", "body",
    "json", "raw", "timeout", "expect",
];

/// Of a table of rows.
pub const DATA: [&str; 3] = ["file", "pick", "each"];

/// Of what is expected of an answer.
pub const EXPECT: [&str; 1] = ["status"];
