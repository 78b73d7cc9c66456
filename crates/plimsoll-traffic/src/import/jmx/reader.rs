//! What is known of a test plan while it is read.

use super::super::draft::{Draft, DraftText};
use super::threads::JmxLoad;
use super::values::Values;
use crate::file::TextPlace;
use std::collections::{BTreeSet, HashMap};

/// Elements inside each other, at most.
pub const DEPTH_MAX: usize = 48;

/// What was learnt of a test plan, and what is made of it.
#[derive(Default)]
pub struct JmxReader {
    pub draft: Draft,
    pub values: Values,
    pub data_names: DataNames,
    /// Where is asked; a name in braces if that is not known.
    pub origin: Option<String>,
    pub requests: usize,
    pub load: JmxLoad,
    pub goes_on: bool,
    /// What the next request waits besides, ms.
    pub pause_ms: f64,
}

/// Names of tables of rows that are taken, each with the last number that one like it was given.
#[derive(Default)]
pub struct DataNames(HashMap<String, u64>);

impl DataNames {
    /// Takes this name, or where it is taken the first with a number that is not.
    pub fn take(&mut self, stem: String) -> String {
        let mut number = *self.0.get(&stem).unwrap_or(&0) + 1;
        let mut name = if number == 1 { stem.clone() } else { format!("{stem}{number}") };
        while number > 1 && self.0.contains_key(&name) {
            number += 1;
            name = format!("{stem}{number}");
        }
        self.0.insert(stem, number);
        self.0.entry(name.clone()).or_insert(1);
        name
    }
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
