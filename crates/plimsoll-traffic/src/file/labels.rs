//! Makes the labels of requests unique by appending numbers.

use std::collections::HashMap;

/// The labels in use, each with the last number that was appended to the label. The number 1 means
/// that only the label without a number is in use.
#[derive(Debug, Default)]
pub struct Labels(HashMap<String, u32>);

impl Labels {
    /// Returns whether a request already has this label.
    pub fn has(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    /// Reserves a label for a request and returns the label. If the label is in use, the first free
    /// number is appended, as in `GET / (2)`.
    pub fn reserve_unique(&mut self, label: String) -> String {
        let mut number = *self.0.entry(label.clone()).and_modify(|number| *number += 1).or_insert(1);
        if number == 1 {
            return label;
        }
        loop {
            let numbered = format!("{label} ({number})");
            if !self.has(&numbered) {
                self.0.insert(label, number);
                self.0.insert(numbered.clone(), 1);
                return numbered;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_labels_are_numbered() {
        let mut labels = Labels::default();
        let given = ["a", "a", "b", "a (3)", "a", "a", "b"].map(|label| labels.reserve_unique(label.into()));
        assert_eq!(given, ["a", "a (2)", "b", "a (3)", "a (4)", "a (5)", "b (2)"]);
        assert!(labels.has("a (4)") && !labels.has("a (6)"));
    }
}
