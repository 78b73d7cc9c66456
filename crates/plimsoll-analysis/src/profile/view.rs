//! The column and the samples of a profile that are selected for sums.
//!
//! As in pprof, `focus` selects the samples with a frame whose function or file matches, and
//! `ignore` leaves such samples out. Percentages still refer to all samples. Unlike in pprof, the
//! name of the binary is not matched, because the name of a binary would match all of its frames.

use plimsoll_model::profile::{Profile, ProfileSample};

/// A column of a profile and a selection of its samples. Create a view only once per profile,
/// because its creation checks whether the name of every function matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileView {
    /// The selected column: an index into the profile's sample types.
    pub column: usize,
    focus: Option<Vec<bool>>,
    ignore: Option<Vec<bool>>,
}

impl ProfileView {
    /// Creates a view of all samples in one column.
    pub fn all_samples(sample_type: usize) -> ProfileView {
        ProfileView { column: sample_type, focus: None, ignore: None }
    }

    /// Restricts the view to samples with a frame whose function name or file name `matches`.
    pub fn focus(mut self, profile: &Profile, matches: impl Fn(&str) -> bool) -> ProfileView {
        self.focus = Some(matching_functions(profile, matches));
        self
    }

    /// Leaves out samples with a frame whose function name or file name `matches`.
    pub fn ignore(mut self, profile: &Profile, matches: impl Fn(&str) -> bool) -> ProfileView {
        self.ignore = Some(matching_functions(profile, matches));
        self
    }

    /// Returns whether the view contains the sample.
    pub fn contains_sample(&self, sample: &ProfileSample) -> bool {
        let any = |wanted: &Vec<bool>| sample.functions_from_root().any(|function| wanted[function as usize]);
        self.focus.as_ref().is_none_or(any) && !self.ignore.as_ref().is_some_and(any)
    }

    /// Returns the sum of the absolute values of the column over all samples. Percentages of the
    /// column are relative to this sum. If samples have the label `pprof::base` (in a difference
    /// made by pprof), only the samples with this label count.
    pub fn percent_denominator(&self, profile: &Profile) -> i64 {
        let (mut all, mut base) = (0_i64, 0_i64);
        for sample in profile.samples() {
            let value = sample.values()[self.column].saturating_abs();
            all = all.saturating_add(value);
            if sample.labels().any(|label| label.key == "pprof::base") {
                base = base.saturating_add(value);
            }
        }
        if base > 0 { base } else { all }
    }
}

fn matching_functions(profile: &Profile, matches: impl Fn(&str) -> bool) -> Vec<bool> {
    profile.functions().iter().map(|f| matches(&f.name) || (!f.file.is_empty() && matches(&f.file))).collect()
}
