//! A budget for the expansion of untrusted input. References, variables and compression can expand
//! a few bytes to very many bytes. All parsers use [`ParseBudget`], so that all parsers have the
//! same two limits: one in proportion to the input, and one in total.
//!
//! Not here: how many bytes of a file are read, and the message for an input that exceeds its
//! budget.

use thiserror::Error;

/// Number of bytes to which even the smallest input may expand.
pub const EXPANSION_BYTES_MIN: usize = 4 << 20;
/// An input may expand to this multiple of its length, or to [`EXPANSION_BYTES_MIN`] if that is
/// more. Real inputs expand to less than ten times their length.
pub const EXPANSION_FACTOR_MAX: usize = 16;
/// Largest expansion of any input, in bytes.
pub const EXPANSION_BYTES_MAX: usize = 256 << 20;

/// The error for an input that exceeds its budget; the number is the budget in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the document expands to more than {0} MiB with the repetitions of its references: make the document smaller")]
pub struct BudgetError(pub usize);

/// The number of bytes to which an input may still expand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseBudget {
    whole: usize,
    left: usize,
    is_over: bool,
}

impl Default for ParseBudget {
    /// Returns the budget of an empty input.
    fn default() -> ParseBudget {
        ParseBudget::proportional_to_input(0)
    }
}

impl ParseBudget {
    /// Creates a budget of `whole` bytes.
    pub fn new(whole: usize) -> ParseBudget {
        ParseBudget { whole, left: whole, is_over: false }
    }

    /// Creates a budget in proportion to the length of an input, within the bounds of this module.
    pub fn proportional_to_input(bytes: usize) -> ParseBudget {
        ParseBudget::new(bytes.saturating_mul(EXPANSION_FACTOR_MAX).clamp(EXPANSION_BYTES_MIN, EXPANSION_BYTES_MAX))
    }

    /// Takes `bytes` from the budget. After the first call that exceeds the budget, every later
    /// call fails, too.
    pub fn spend_bytes(&mut self, bytes: usize) -> Result<(), BudgetError> {
        match self.left.checked_sub(bytes) {
            Some(left) if !self.is_over => {
                self.left = left;
                Ok(())
            }
            _ => {
                self.is_over = true;
                Err(self.expansion_error())
            }
        }
    }

    /// Returns an error if any earlier call of [`ParseBudget::spend_bytes`] failed. Parsers that
    /// cannot stop at a failed call use this function later.
    pub fn check(&self) -> Result<(), BudgetError> {
        if self.is_over { Err(self.expansion_error()) } else { Ok(()) }
    }

    fn expansion_error(&self) -> BudgetError {
        BudgetError(self.whole.div_ceil(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_proportional_to_the_input_and_bounded() {
        for (bytes, whole) in [(0, 4 << 20), (310, 4 << 20), (1 << 20, 16 << 20), (usize::MAX, 256 << 20)] {
            let mut budget = ParseBudget::proportional_to_input(bytes);
            assert_eq!(budget.spend_bytes(whole - 1), Ok(()), "{bytes}");
            assert_eq!(budget.check(), Ok(()));
            assert_eq!(budget.spend_bytes(2), Err(BudgetError(whole >> 20)), "{bytes}");
            assert!(budget.check().is_err() && budget.spend_bytes(1).is_err());
        }
    }
}
