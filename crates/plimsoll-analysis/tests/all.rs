//! All integration tests of this crate in one executable, because linking takes most of the time.

#![forbid(unsafe_code)]

mod causes;
mod corpus;
#[path = "dat/main.rs"]
mod dat;
mod find;
#[path = "profiles/main.rs"]
mod profiles;
#[path = "prove/main.rs"]
mod prove;
mod study;
mod truths;
