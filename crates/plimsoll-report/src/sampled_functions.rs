//! Renders the CPU cost of the server's functions per request, as text and as JSON. The costs are
//! estimated from stack samples that the kernel took.

use crate::block::{Report, Tone};
use crate::load_profiles::{add_function_cost_table, costliest_functions, total_cpu_cost_text};
use crate::profile::{CostChangeFields, FunctionChange};
use plimsoll_analysis::explain::{FunctionCosts, FunctionObservation};
use serde::Serialize;

/// Renders the section of an explanation about the functions that use the server's CPU time.
pub(crate) fn functions_report(functions: &FunctionObservation) -> Report {
    let mut report = Report::default();
    match functions {
        FunctionObservation::NotPermitted(reason) => {
            report.add_sentence(Tone::Plain, format!("the costs of the server's functions are not known: {reason}"));
        }
        FunctionObservation::Costs(costs) => {
            let FunctionCosts { comparison, level_names, samples, .. } = costs.as_ref();
            let caught = format!(
                "{samples_low} stack samples at the load '{name_low}', {samples_high} at the load \
                 '{name_high}'{left_out}",
                samples_low = samples[0],
                name_low = level_names[0],
                samples_high = samples[1],
                name_high = level_names[1],
                left_out = missing_samples_text(costs)
            );
            report.add_facts(vec![
                ("functions", caught),
                ("CPU a request", total_cpu_cost_text(comparison, *level_names)),
            ]);
            let few_samples = "too few samples to tell differences from chance: give explain a longer --budget";
            add_function_cost_table(&mut report, comparison, *level_names, few_samples);
        }
    }
    report
}

/// Formats which stack samples are missing in the costs of functions, and why. The text is empty if
/// no sample is missing.
fn missing_samples_text(costs: &FunctionCosts) -> String {
    let kernel =
        if costs.covers_kernel { "" } else { "; the samples contain no kernel time, which only root may sample" };
    let lost = if costs.lost > 0 { format!("; {lost} samples were lost", lost = costs.lost) } else { String::new() };
    format!("{kernel}{lost}")
}

/// The member `profiles` of a JSON document, if the functions come from stack samples of the
/// kernel.
#[derive(Serialize)]
pub(crate) struct SampledFields<'a> {
    source: &'static str,
    samples: Option<[u64; 2]>,
    lost: Option<u64>,
    in_kernel: Option<bool>,
    levels: Option<[&'a str; 2]>,
    unit: Option<&'a str>,
    cpu_per_request: Option<CostChangeFields>,
    top: Vec<FunctionChange<'a>>,
    refused: Option<&'a str>,
}

impl<'a> SampledFields<'a> {
    /// Creates the member `profiles` from the observed functions.
    pub(crate) fn new(functions: &'a FunctionObservation) -> SampledFields<'a> {
        let (costs, refused) = match functions {
            FunctionObservation::Costs(costs) => (Some(costs.as_ref()), None),
            FunctionObservation::NotPermitted(why) => (None, Some(why.as_str())),
        };
        SampledFields {
            source: "kernel samples",
            samples: costs.map(|costs| costs.samples),
            lost: costs.map(|costs| costs.lost),
            in_kernel: costs.map(|costs| costs.covers_kernel),
            levels: costs.map(|costs| costs.level_names),
            unit: costs.map(|costs| costs.comparison.sample_type.unit.as_str()),
            cpu_per_request: costs.map(|costs| CostChangeFields::from(&costs.comparison.total)),
            top: costs.map_or_else(Vec::new, |costs| costliest_functions(&costs.comparison)),
            refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::to_json_value;
    use crate::text;
    use plimsoll_analysis::profile::{CostDivisor, FunctionCostOrder, ProfileView, diff, read};
    use serde_json::json;

    fn example_costs() -> FunctionObservation {
        let (a, b) = (read(b"m;json 900\nm;sql 100\n"), read(b"m;json 18000\nm;sql 1000\n"));
        let (a, b, view) = (a.expect("folded"), b.expect("folded"), ProfileView::all_samples(0));
        let basis = CostDivisor::Requests { before: 100.0, after: 1000.0 };
        FunctionObservation::Costs(Box::new(FunctionCosts {
            comparison: diff((&a, &view), (&b, &view), basis, FunctionCostOrder::Cum).expect("comparable"),
            level_names: ["low", "line"],
            samples: [1000, 19000],
            lost: 3,
            period_ns: 10_309_278,
            covers_kernel: false,
        }))
    }

    #[test]
    fn sampled_functions_are_reported() {
        let shown = text::render(&functions_report(&example_costs()), false);
        for part in [
            "1000 stack samples at the load 'low', 19000 at the load 'line'; the samples contain no kernel time, \
             which only root may sample; 3 samples were lost",
            "10 low, 19 line (+9, ",
            "cost changed beyond chance for 1 of 2 tested functions: json +9",
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
        let document = to_json_value(&SampledFields::new(&example_costs()));
        assert_eq!((&document["source"], &document["samples"]), (&json!("kernel samples"), &json!([1000, 19000])));
        assert_eq!((&document["levels"], &document["refused"]), (&json!(["low", "line"]), &json!(null)));
        assert_eq!(document["top"][1]["flat"]["delta"], 9.0);
        assert_eq!(document["cpu_per_request"]["before"], 10.0);
    }

    #[test]
    fn a_sampling_refusal_is_reported() {
        let refused = FunctionObservation::NotPermitted("the kernel does not allow it".into());
        let shown = text::render(&functions_report(&refused), false);
        assert!(shown.contains("functions are not known: the kernel does not allow it"), "{shown}");
        let document = to_json_value(&SampledFields::new(&refused));
        assert_eq!((&document["refused"], &document["top"]), (&json!("the kernel does not allow it"), &json!([])));
    }
}
