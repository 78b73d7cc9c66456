//! How much may be made of an input that somebody else wrote: references, variables and compression
//! unfold, and a few bytes can stand for very many. One type for every reader, so that all are
//! bounded alike: in proportion to the input, and as a whole.
//!
//! Not here: how many bytes are read of a file at all, and what a reader says where an input goes
//! beyond its budget.

use thiserror::Error;

/// What any input may unfold to, however small it is, in bytes.
pub const UNFOLDED_BYTES_MIN: usize = 4 << 20;
/// What a larger one may unfold to, in times its own length: real descriptions repeat themselves
/// less than ten times.
pub const UNFOLDED_TIMES: usize = 16;
/// What no input unfolds beyond, in bytes.
pub const UNFOLDED_BYTES_MAX: usize = 256 << 20;

/// An input unfolds to more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it unfolds to more than {0} MiB, with all that its references repeat: make it smaller")]
pub struct BudgetError(pub usize);

/// What is left of the bytes that an input may unfold to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    whole: usize,
    left: usize,
    is_over: bool,
}

impl Default for Budget {
    /// That of an empty input.
    fn default() -> Budget {
        Budget::of_input(0)
    }
}

impl Budget {
    /// So many bytes.
    pub fn new(whole: usize) -> Budget {
        Budget { whole, left: whole, is_over: false }
    }

    /// In proportion to the length of an input.
    pub fn of_input(bytes: usize) -> Budget {
        Budget::new(bytes.saturating_mul(UNFOLDED_TIMES).clamp(UNFOLDED_BYTES_MIN, UNFOLDED_BYTES_MAX))
    }

    /// Takes so many bytes. Once it does not hold them it holds nothing more.
    pub fn take(&mut self, bytes: usize) -> Result<(), BudgetError> {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.is_over => {
                self.left = left;
                Ok(())
            }
            _ => {
                self.is_over = true;
                Err(self.unfolded())
            }
        }
    }

    /// An error once more was taken than there was, for readers that cannot stop where that
    /// happens.
    pub fn check(&self) -> Result<(), BudgetError> {
        if self.is_over { Err(self.unfolded()) } else { Ok(()) }
    }

    fn unfolded(&self) -> BudgetError {
        BudgetError(self.whole.div_ceil(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_in_proportion_to_the_input_and_bounded() {
        for (bytes, whole) in [(0, 4 << 20), (310, 4 << 20), (1 << 20, 16 << 20), (usize::MAX, 256 << 20)] {
            let mut budget = Budget::of_input(bytes);
            assert_eq!(budget.take(whole - 1), Ok(()), "{bytes}");
            assert_eq!(budget.check(), Ok(()));
            assert_eq!(budget.take(2), Err(BudgetError(whole >> 20)), "{bytes}");
            assert!(budget.check().is_err() && budget.take(1).is_err());
        }
    }
}
