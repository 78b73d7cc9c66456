//! How much memory the regular expressions of one input may take together, compiled: a few bytes of
//! a pattern can stand for megabytes.
//!
//! Not here: the library that compiles them. Readers and engine hand it over as a function, so that
//! all have the same bounds.

use crate::budget::Budget;

/// What one regular expression may take, compiled.
pub const PATTERN_BYTES_MAX: usize = 4 << 20;
/// Sizes that a pattern is compiled with, one after the other: it is charged with the first that it
/// fits into.
const TIERS_BYTES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, PATTERN_BYTES_MAX];
/// What all patterns of an input may take: those of real plans take a tenth of it.
pub const PATTERNS_BYTES_MAX: usize = 64 << 20;

/// Why a pattern was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternRefusal<E> {
    /// The library does not take it.
    #[error(transparent)]
    Unsound(E),
    /// It is larger than any may be.
    #[error("compiled, it takes more than {} MiB: write fewer or smaller repetitions", PATTERN_BYTES_MAX >> 20)]
    TooLarge,
    /// Those before it have taken nearly all that they may take together.
    #[error(
        "compiled, the regular expressions take more than {} MiB together: use fewer, or smaller repetitions",
        PATTERNS_BYTES_MAX >> 20
    )]
    TooMany,
}

/// What is left for the regular expressions of an input.
#[derive(Debug, Clone, Copy)]
pub struct PatternBudget(Budget);

impl Default for PatternBudget {
    fn default() -> PatternBudget {
        PatternBudget(Budget::new(PATTERNS_BYTES_MAX))
    }
}

impl PatternBudget {
    /// Compiles a pattern with `build`, which takes the bytes that it may have; `None` of it: that
    /// is not enough.
    pub fn build<R, E>(&mut self, build: impl Fn(usize) -> Result<Option<R>, E>) -> Result<R, PatternRefusal<E>> {
        for bytes in TIERS_BYTES {
            // Each attempt takes time in proportion, and so counts.
            self.0.take(bytes).map_err(|_| PatternRefusal::TooMany)?;
            if let Some(pattern) = build(bytes).map_err(PatternRefusal::Unsound)? {
                return Ok(pattern);
            }
        }
        Err(PatternRefusal::TooLarge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library whose patterns are their sizes.
    fn of_size(size: usize) -> impl Fn(usize) -> Result<Option<usize>, &'static str> {
        move |limit| if size == 0 { Err("empty") } else { Ok((size <= limit).then_some(size)) }
    }

    #[test]
    fn all_patterns_together_have_a_bound_as_each_has() {
        let mut budget = PatternBudget::default();
        assert_eq!(budget.build(of_size(0)), Err(PatternRefusal::Unsound("empty")));
        assert_eq!(budget.build(of_size(PATTERN_BYTES_MAX)), Ok(PATTERN_BYTES_MAX));
        assert_eq!(budget.build(of_size(PATTERN_BYTES_MAX + 1)), Err(PatternRefusal::TooLarge));
        for (size, at_least, at_most) in [(1_000, 10_000, 40_000), (50_000, 500, 1_300), (4 << 20, 10, 32)] {
            let mut budget = PatternBudget::default();
            let built = (0..100_000).take_while(|_| budget.build(of_size(size)).is_ok()).count();
            assert!((at_least..=at_most).contains(&built), "{size}: {built}");
            assert_eq!(budget.build(of_size(size)), Err(PatternRefusal::TooMany));
        }
    }
}
