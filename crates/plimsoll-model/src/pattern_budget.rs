//! The memory budget for compiled regular expressions of one input: a pattern of a few bytes can
//! take megabytes when compiled.
//!
//! Not here: the library that compiles regular expressions. Importers of traffic and the engine
//! pass the library as a function, so that the same limits apply to both crates.

use crate::budget::ParseBudget;

/// Largest compiled size of one regular expression, in bytes.
pub const PATTERN_BYTES_MAX: usize = 4 << 20;
/// Size limits for the compilation of a pattern, in bytes. The limits are tried in ascending order
/// until the compiled pattern fits. The sum of all limits tried for a pattern is subtracted from
/// the budget.
const COMPILE_LIMITS_BYTES: [usize; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, PATTERN_BYTES_MAX];
/// The memory budget for all patterns of an input, in bytes. Real plans use a tenth of the budget.
pub const ALL_PATTERNS_BYTES_MAX: usize = 64 << 20;

/// Why a pattern was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternRefusal<E> {
    /// The library rejects the pattern.
    #[error(transparent)]
    Unsound(E),
    /// The compiled pattern exceeds [`PATTERN_BYTES_MAX`].
    #[error(
        "the compiled regular expression takes more than {maximum_mib} MiB: write fewer or smaller repetitions",
        maximum_mib = PATTERN_BYTES_MAX >> 20
    )]
    TooLarge,
    /// The earlier patterns have used the budget of the input.
    #[error(
        "the compiled regular expressions take more than {maximum_mib} MiB together: use fewer expressions, or \
         smaller repetitions",
        maximum_mib = ALL_PATTERNS_BYTES_MAX >> 20
    )]
    TooMany,
}

/// The remaining memory budget for the regular expressions of an input.
#[derive(Debug, Clone, Copy)]
pub struct PatternBudget(ParseBudget);

impl Default for PatternBudget {
    fn default() -> PatternBudget {
        PatternBudget(ParseBudget::new(ALL_PATTERNS_BYTES_MAX))
    }
}

impl PatternBudget {
    /// Compiles a pattern with `build`, which gets the number of allowed bytes. `build` returns
    /// `None` if the compiled pattern needs more than the allowed bytes.
    pub fn build<R, E>(&mut self, build: impl Fn(usize) -> Result<Option<R>, E>) -> Result<R, PatternRefusal<E>> {
        for bytes in COMPILE_LIMITS_BYTES {
            // Each attempt to compile takes time in proportion to its size limit, so each attempt
            // is subtracted from the budget.
            self.0.spend_bytes(bytes).map_err(|_| PatternRefusal::TooMany)?;
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

    /// Returns a fake library for tests, with which each pattern compiles to `size` bytes.
    fn fake_library(size: usize) -> impl Fn(usize) -> Result<Option<usize>, &'static str> {
        move |limit| if size == 0 { Err("empty") } else { Ok((size <= limit).then_some(size)) }
    }

    #[test]
    fn patterns_have_single_and_total_bounds() {
        let mut budget = PatternBudget::default();
        assert_eq!(budget.build(fake_library(0)), Err(PatternRefusal::Unsound("empty")));
        assert_eq!(budget.build(fake_library(PATTERN_BYTES_MAX)), Ok(PATTERN_BYTES_MAX));
        assert_eq!(budget.build(fake_library(PATTERN_BYTES_MAX + 1)), Err(PatternRefusal::TooLarge));
        for (size, at_least, at_most) in [(1_000, 10_000, 40_000), (50_000, 500, 1_300), (4 << 20, 10, 32)] {
            let mut budget = PatternBudget::default();
            let built = (0..100_000).take_while(|_| budget.build(fake_library(size)).is_ok()).count();
            assert!((at_least..=at_most).contains(&built), "{size}: {built}");
            assert_eq!(budget.build(fake_library(size)), Err(PatternRefusal::TooMany));
        }
    }
}
