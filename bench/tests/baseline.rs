//! The reference server's own tests, built apart from the binary it belongs to.

#[path = "../../crates/plimsoll/src/baseline.rs"]
mod baseline;
