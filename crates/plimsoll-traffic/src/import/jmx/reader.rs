//! The state of the importer of JMeter test plans.

use super::super::draft::{Draft, DraftText};
use super::threads::JmxLoad;
use super::values::TestPlanVariables;
use crate::file::TextPosition;
use std::collections::{BTreeSet, HashMap};

/// The deepest imported nesting of elements.
pub const DEPTH_MAX: usize = 48;

/// The state of an import: facts about the test plan, and the draft under construction.
#[derive(Default)]
pub struct JmxReader {
    pub draft: Draft,
    pub values: TestPlanVariables,
    pub data_names: DataNames,
    /// The origin (scheme, host and port) of the first request. If the host or port contains a
    /// placeholder, the value is the unresolved text `{HOST:PORT}`.
    pub origin: Option<String>,
    pub requests: usize,
    pub load: JmxLoad,
    pub may_continue: bool,
    /// The pause that earlier elements of the plan add before the next request, ms.
    pub pause_ms: f64,
}

/// The data table names in use, each with the last number that was appended to the name. The number
/// 1 means that only the name without a number is in use.
#[derive(Default)]
pub struct DataNames(HashMap<String, u64>);

impl DataNames {
    /// Reserves a name for a data table and returns the name. If the name is in use, the first free
    /// number is appended.
    pub fn reserve_unique(&mut self, stem: String) -> String {
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
    /// Converts a text with references to a template, and adds notes about references that cannot
    /// be imported.
    pub fn text(&mut self, source: &str, at: TextPosition) -> DraftText {
        let (text, left_out) = self.values.convert_to_template(source);
        self.note_left_out(left_out, at);
        text
    }

    pub fn note_left_out(&mut self, left_out: BTreeSet<String>, at: TextPosition) {
        left_out.into_iter().for_each(|text| self.draft.note_repeated_omission(at, text));
    }
}
