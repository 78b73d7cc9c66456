//! What is known of a test plan while it is read.

use super::super::draft::{Draft, DraftText};
use super::threads::JmxLoad;
use super::values::Values;
use crate::file::TextPlace;
use std::collections::{BTreeSet, HashSet};

/// Elements inside each other, at most.
pub const DEPTH_MAX: usize = 48;

/// What was learnt of a test plan, and what is made of it.
#[derive(Default)]
pub struct JmxReader {
    pub draft: Draft,
    pub values: Values,
    /// Names that extractors set for all thread groups.
    pub seen_by_all: HashSet<String>,
    /// Where is asked; a name in braces if that is not known.
    pub origin: Option<String>,
    pub requests: usize,
    pub load: JmxLoad,
    pub goes_on: bool,
    /// What the next request waits besides, ms.
    pub pause_ms: f64,
}

impl JmxReader {
    /// A text that is filled in; what it lacks is said.
    pub fn text(&mut self, source: &str, at: TextPlace) -> DraftText {
        let (text, left_out) = self.values.text(source);
        self.lacks(left_out, at);
        text
    }

    pub fn lacks(&mut self, left_out: BTreeSet<String>, at: TextPlace) {
        left_out.into_iter().for_each(|text| self.draft.leave_out_again(at, text));
    }
}
