//! What other programs write of requests, made into what is asked here. What cannot be carried over is said, never left out in
//! silence.
//!
//! Not here: reading files that are named, and what is done with the requests.

pub mod curl;
