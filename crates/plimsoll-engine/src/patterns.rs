//! The compiled regular expressions of a plan. Each distinct pattern is compiled once, and all
//! patterns share one memory budget.
//!
//! Not here: searching texts with a pattern.

use plimsoll_model::pattern_budget::{PatternBudget, PatternRefusal};
use regex::bytes::{Regex, RegexBuilder};
use std::collections::HashMap;

/// The reason why a pattern is invalid, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// The maximum number of characters of a pattern that an error message shows.
const SHOWN_PATTERN_CHARS_MAX: usize = 100;

/// The compiled patterns of a plan, or the errors of their compilation.
#[derive(Debug, Default)]
pub struct PatternCache {
    compiled: HashMap<String, Result<Regex, PatternError>>,
    budget: PatternBudget,
}

impl PatternCache {
    /// Compiles a regular expression. For a pattern that was compiled before, returns the earlier
    /// result.
    ///
    /// # Errors
    /// Returns a sentence with the reason why the pattern is invalid.
    pub fn compile(&mut self, text: &str) -> Result<Regex, PatternError> {
        if let Some(compiled) = self.compiled.get(text) {
            return compiled.clone();
        }
        let compiled = self.build(text);
        self.compiled.insert(text.to_owned(), compiled.clone());
        compiled
    }

    fn build(&mut self, text: &str) -> Result<Regex, PatternError> {
        let build = |bytes: usize| match RegexBuilder::new(text).size_limit(bytes).build() {
            Ok(pattern) => Ok(Some(pattern)),
            Err(regex::Error::CompiledTooBig(_)) => Ok(None),
            Err(error) => Err(error),
        };
        self.budget.build(build).map_err(|refusal| {
            let reason = match &refusal {
                // The error text of the `regex` library has several lines, with a marker below the
                // pattern. Only the last line, which contains the reason, becomes part of the
                // message.
                PatternRefusal::Unsound(error) => {
                    let whole = error.to_string();
                    whole.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
                }
                PatternRefusal::TooLarge | PatternRefusal::TooMany => refusal.to_string(),
            };
            let is_long = text.chars().nth(SHOWN_PATTERN_CHARS_MAX).is_some();
            let pattern: String = text.chars().take(SHOWN_PATTERN_CHARS_MAX).collect();
            let more = if is_long { "..." } else { "" };
            PatternError(format!("'{pattern}{more}' is not a regular expression that plimsoll supports: {reason}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_patterns_compile_once_within_one_budget() {
        let mut cache = PatternCache::default();
        let large = |number: usize| format!("(\\w{{60}}){number}");
        for _ in 0..10_000 {
            assert!(cache.compile(&large(0)).is_ok_and(|pattern| !pattern.is_match(b"a")));
        }
        let refused = (1..1_000).find_map(|number| cache.compile(&large(number)).err()).expect("too many");
        assert!(refused.to_string().contains("more than 64 MiB together"), "{refused}");
        let long = PatternCache::default().compile(&format!("(\\w{{1000}}){{1000}}{}", "x".repeat(1_000)));
        let text = long.expect_err("too large").to_string();
        assert!(text.contains("more than 4 MiB") && text.contains("...'") && text.len() < 300, "{text}");
        let text = PatternCache::default().compile("a(").expect_err("no pattern").to_string();
        assert!(text.contains("'a('") && text.contains("unclosed group"), "{text}");
    }
}
