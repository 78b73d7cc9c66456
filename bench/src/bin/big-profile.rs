//! Writes a pprof profile of a given size, to measure reading and drawing with: a made-up program
//! of 30 000 functions, each with a few callees of which the first are the most frequent, caught at
//! depths of 20 to 60.
//!
//! `big-profile FILE [MEGABYTES]`; what it writes is unpacked, so that `gzip FILE` shows the other
//! half of the matter. The same arguments give the same file.

#![forbid(unsafe_code)]

#[path = "../../../crates/plimsoll-analysis/tests/profiles/encode.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod encode;

use encode::{Plain, PlainSample, Spelling};
use plimsoll_model::rng::Rng;

const FUNCTIONS: u64 = 30_000;
const CALLEES: u64 = 6;

/// Small numbers are more likely than large ones.
fn skewed(rng: &mut Rng, below: u64) -> u64 {
    rng.below(below).min(rng.below(below)).min(rng.below(below))
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || std::io::Error::other("usage: big-profile FILE [MEGABYTES]");
    let file = arguments.next().ok_or_else(usage)?;
    let megabytes: usize = arguments.next().map_or(Ok(50), |text| text.parse()).map_err(|_| usage())?;
    let mut rng = Rng::new(50);
    let name = |n: u64| format!("example.com/service/package{}.(*Type{}).Method{n}", n % 211, n % 17);
    // Every seventh place holds an inlined function, too.
    let places = (0..FUNCTIONS)
        .map(|n| if n % 7 == 0 { vec![name((n * 31 + 1) % FUNCTIONS), name(n)] } else { vec![name(n)] })
        .collect();
    let types = vec![("samples".into(), "count".into()), ("cpu".into(), "nanoseconds".into())];
    let mut profile = Plain { types, places, samples: Vec::new() };
    // About how many bytes a sample takes: two or three a frame, and its values.
    let mut bytes = 0;
    while bytes < megabytes * 1_000_000 {
        let (mut function, depth) = (0, 20 + rng.below(41));
        let mut stack: Vec<usize> = Vec::with_capacity(depth as usize);
        for _ in 0..depth {
            stack.push(function as usize);
            function = (function * CALLEES + 1 + skewed(&mut rng, CALLEES)) % FUNCTIONS;
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
        let count = 1 + skewed(&mut rng, 20) as i64;
        profile.samples.push(PlainSample { stack, values: vec![count, count * 10_000_000], labels: Vec::new() });
    }
    std::fs::write(file, encode::encode(&profile, Spelling::default()))
}
