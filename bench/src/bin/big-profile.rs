//! Writes a pprof profile of a given size, to measure how fast profiles are read and drawn.
//!
//! The profiled program is invented. The invented program has 30 000 functions with a few callees
//! each; the first callees are the most frequent. Stacks are 20 to 60 frames deep.
//!
//! Usage: `big-profile FILE [MEGABYTES]`. The file is not compressed; `gzip FILE` makes a
//! compressed file for comparison. The same arguments give the same file.

#![forbid(unsafe_code)]

#[path = "../../../crates/plimsoll-analysis/tests/profiles/encode.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod encode;

use encode::{EncodingChoices, PlainProfile, PlainSample};
use plimsoll_model::rng::Rng;

const FUNCTIONS: u64 = 30_000;
const CALLEES: u64 = 6;

/// Returns a random number below `below`. Small numbers are more likely than large numbers.
fn skewed_random_below(rng: &mut Rng, below: u64) -> u64 {
    rng.uniform_below(below).min(rng.uniform_below(below)).min(rng.uniform_below(below))
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || std::io::Error::other("usage: big-profile FILE [MEGABYTES]");
    let file = arguments.next().ok_or_else(usage)?;
    let megabytes: usize = arguments.next().map_or(Ok(50), |text| text.parse()).map_err(|_| usage())?;
    let mut rng = Rng::new(50);
    let name = |n: u64| format!("example.com/service/package{}.(*Type{}).Method{n}", n % 211, n % 17);
    // Every seventh location also contains an inlined function.
    let places = (0..FUNCTIONS)
        .map(|n| if n % 7 == 0 { vec![name((n * 31 + 1) % FUNCTIONS), name(n)] } else { vec![name(n)] })
        .collect();
    let types = vec![("samples".into(), "count".into()), ("cpu".into(), "nanoseconds".into())];
    let mut profile = PlainProfile { types, places, samples: Vec::new() };
    // A sample takes about two or three bytes for each frame, plus its values.
    let mut bytes = 0;
    while bytes < megabytes * 1_000_000 {
        let (mut function, depth) = (0, 20 + rng.uniform_below(41));
        let mut stack: Vec<usize> = Vec::with_capacity(depth as usize);
        for _ in 0..depth {
            stack.push(function as usize);
            function = (function * CALLEES + 1 + skewed_random_below(&mut rng, CALLEES)) % FUNCTIONS;
        }
        stack.reverse();
        bytes += stack
            .iter()
            .map(|place| {
                if *place < 128 {
                    1
                } else if *place < 16_384 {
                    2
                } else {
                    3
                }
            })
            .sum::<usize>()
            + 12;
        let count = 1 + skewed_random_below(&mut rng, 20) as i64;
        profile.samples.push(PlainSample { stack, values: vec![count, count * 10_000_000], labels: Vec::new() });
    }
    std::fs::write(file, encode::encode_profile(&profile, EncodingChoices::default()))
}
