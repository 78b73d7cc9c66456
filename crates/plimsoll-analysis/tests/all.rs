//! All tests of this crate from outside, in one executable: linking is what takes time.

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
mod simulator;
mod study;
mod truths;
