//! Splits the cost of a profile by group, for example by endpoint: each stack gets an additional
//! root frame with the name of its group.
//!
//! The group of a sample can be the value of a label; in Go only CPU and goroutine profiles have
//! labels. The group can also be the first function from the root that matches a pattern, such as a
//! handler. The root frame makes the group a row of every table, a rectangle of every flame graph
//! and a row of every comparison. Because the root frame names the group, other code handles groups
//! like any other function. The flag `-tagroot` of pprof has the same effect as the additional root
//! frame.

use plimsoll_model::profile::{LabelValue, Profile, ProfileBuilder, ProfileSample};

/// The group name of samples without a group.
pub const UNGROUPED_NAME: &str = "(none)";

/// The rule that assigns a group to each sample.
pub enum SampleGrouping<'a> {
    /// The group is the value of the label with this key.
    Label(&'a str),
    /// The group is the first function from the root for which the predicate is true.
    Function(&'a dyn Fn(&str) -> bool),
}

impl SampleGrouping<'_> {
    fn group_name(&self, profile: &Profile, sample: &ProfileSample) -> Option<String> {
        match self {
            SampleGrouping::Label(key) => {
                sample.labels().find(|label| label.key == *key).map(|label| match &label.value {
                    LabelValue::Text(text) => text.clone(),
                    LabelValue::Number(number, unit) => format!("{number} {unit}").trim_end().to_owned(),
                })
            }
            SampleGrouping::Function(meant) => {
                let names =
                    sample.functions_from_root().map(|function| profile.functions()[function as usize].name.as_str());
                names.into_iter().find(|name| meant(name)).map(str::to_owned)
            }
        }
    }
}

/// Returns whether any sample has a label with this key.
pub fn has_label(profile: &Profile, key: &str) -> bool {
    profile.samples().any(|sample| sample.labels().any(|label| label.key == key))
}

/// Returns the keys of all labels in the profile, sorted.
pub fn label_keys(profile: &Profile) -> Vec<String> {
    let mut keys: Vec<String> =
        profile.samples().flat_map(|sample| sample.labels().map(|label| label.key.clone())).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns the profile with an additional root frame `NAME: GROUP` in each stack.
pub fn group_samples(profile: &Profile, name: &str, by: &SampleGrouping) -> Profile {
    let mut builder = ProfileBuilder::new(profile.sample_types.clone());
    // Functions keep their index numbers in the new profile, because they are added in the original
    // order.
    let places: Vec<u32> = profile
        .functions()
        .iter()
        .map(|function| {
            let id = builder.intern_function(&function.name, &function.file);
            builder.add_location(&[id])
        })
        .collect();
    let mut stack: Vec<u32> = Vec::new();
    for sample in profile.samples() {
        stack.clear();
        stack.extend(sample.functions_from_root());
        stack.iter().rev().for_each(|function| builder.push_location(places[*function as usize]));
        let group = by.group_name(profile, &sample);
        let root = builder.intern_function(&format!("{name}: {}", group.as_deref().unwrap_or(UNGROUPED_NAME)), "");
        let root = builder.add_location(&[root]);
        builder.push_location(root);
        for label in sample.labels() {
            let label = builder.intern_label(label.clone());
            builder.push_label(label);
        }
        builder.end_sample(sample.values());
    }
    builder.set_default_type(profile.sample_type_default);
    builder.set_period(profile.period_type.clone(), profile.period);
    builder.set_time(profile.time_unix_ns, profile.duration_ns);
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{FunctionCostOrder, ProfileView, read, sum_by_function};
    use plimsoll_model::profile::{Label, ValueType};

    fn cumulative_function_costs(profile: &Profile) -> Vec<(String, i64)> {
        let sums = sum_by_function(profile, &ProfileView::all_samples(0), FunctionCostOrder::Cum);
        sums.rows.iter().map(|row| (profile.functions()[row.function as usize].name.clone(), row.cum)).collect()
    }

    #[test]
    fn stacks_are_grouped_by_their_handler() {
        let profile = read(b"main;serve;list;json 5\nmain;serve;order 3\nmain;gc 1\n").expect("folded");
        let handler = |name: &str| ["list", "order", "json"].contains(&name);
        let result = group_samples(&profile, "handler", &SampleGrouping::Function(&handler));
        let rows = cumulative_function_costs(&result);
        for (name, cum) in [("handler: list", 5), ("handler: order", 3), ("handler: (none)", 1), ("main", 9)] {
            assert!(rows.contains(&(name.to_owned(), cum)), "{name}: {rows:?}");
        }
        assert!(!rows.iter().any(|(name, _)| name == "handler: json"), "the first from the root decides");
    }

    #[test]
    fn samples_are_grouped_by_label() {
        let mut builder = ProfileBuilder::new(vec![ValueType::new("samples", "count")]);
        let main = builder.intern_function("main", "main.go");
        let place = builder.add_location(&[main]);
        for (value, count) in [(Some("/a"), 4), (None, 2), (Some("/b"), 1), (Some("/a"), 1)] {
            builder.push_location(place);
            if let Some(value) = value {
                let label =
                    builder.intern_label(Label { key: "endpoint".into(), value: LabelValue::Text(value.into()) });
                builder.push_label(label);
            }
            builder.end_sample(&[count]);
        }
        builder.set_period(Some(ValueType::new("cpu", "nanoseconds")), 10);
        let profile = builder.finish();
        assert!(has_label(&profile, "endpoint") && !has_label(&profile, "user"));
        assert_eq!(label_keys(&profile), ["endpoint"]);
        let result = group_samples(&profile, "endpoint", &SampleGrouping::Label("endpoint"));
        let expect = [("main", 8), ("endpoint: /a", 5), ("endpoint: (none)", 2), ("endpoint: /b", 1)];
        assert_eq!(cumulative_function_costs(&result), expect.map(|(name, cum)| (name.to_owned(), cum)));
        assert_eq!((result.period, result.functions()[0].file.as_str()), (10, "main.go"));
        assert!(has_label(&result, "endpoint"), "labels stay");
    }
}
