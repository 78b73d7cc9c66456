//! The table of rules: one row a cause, with the signs that must be there, those that must not, and those that speak for it.
//! Rules state laws (utilisation, Little's law, what a counter means), not how some server looks. A sign that is not known
//! speaks neither way; what is the same at a low load and at the line explains nothing, so that most signs ask for a change.
//!
//! Not here: how signs are weighed against each other (`weigh`), and sentences.

mod errors;
mod limits;
mod ourselves;
mod sign;
mod waits;
mod ways;
mod work;

pub use sign::{Rule, RuleStage, Sign, SignKind};

/// All rows, those of what is looked at first before the others.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [ourselves::ROWS, errors::ROWS, limits::ROWS, work::ROWS, waits::ROWS, ways::ROWS].into_iter().flatten()
}
