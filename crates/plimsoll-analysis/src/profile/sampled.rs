//! The server's stacks that the kernel sampled during a load, as a profile ([`SampledProfile`]).
//! Each sample represents the CPU time between two samples. The kernel may lose samples. The CPU
//! time of lost samples is distributed among the recorded samples.
//!
//! Not here: taking the samples, and the purpose of each function.

use plimsoll_model::profile::{FunctionId, Profile, ProfileBuilder, ValueType};
use plimsoll_model::{Run, SampleInterval, SampledFunctions};
use std::collections::HashMap;

/// The samples of the measured window of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledProfile {
    /// The sampled stacks, with the number of samples and their CPU time in nanoseconds.
    pub profile: Profile,
    /// Number of recorded samples.
    pub samples: u64,
    /// Number of lost samples: the kernel's buffer had no room for them.
    pub lost: u64,
    /// CPU time that the recorded and the lost samples represent, in ns.
    pub cpu_ns: f64,
    /// Length of the time in which samples were taken, in ns.
    pub covered_ns: u64,
    /// Whether the samples of the whole measured window also cover the time that the server spent
    /// in the kernel.
    pub covers_kernel: bool,
}

impl SampledProfile {
    /// Returns the samples in the measured window of a run; `None` if the window has no samples.
    pub fn from_run(run: &Run) -> Option<SampledProfile> {
        let (from_ns, to_ns) = (run.window_ns.0 as i64, run.window_ns.1 as i64);
        let stretches: Vec<&SampleInterval> = run.probes.sampled.intervals_between(from_ns, to_ns).collect();
        let mut builder =
            ProfileBuilder::new(vec![ValueType::new("samples", "count"), ValueType::new("cpu", "nanoseconds")]);
        let mut places: HashMap<FunctionId, u32> = HashMap::new();
        for stretch in &stretches {
            let ids: Vec<FunctionId> = stretch.names.iter().map(|name| builder.intern_function(name, "")).collect();
            let weight_ns = cpu_ns_per_sample(stretch);
            for stack in &stretch.stacks {
                for id in stack.functions.iter().filter_map(|number| ids.get(*number as usize)) {
                    let place = *places.entry(*id).or_insert_with(|| builder.add_location(&[*id]));
                    builder.push_location(place);
                }
                let count = i64::from(stack.count);
                builder.end_sample(&[count, (count as f64 * weight_ns) as i64]);
            }
        }
        let sum = |of: fn(&SampleInterval) -> u64| stretches.iter().map(|stretch| of(stretch)).sum::<u64>();
        let samples = sum(SampleInterval::sample_count);
        let covered_ns = sum(|stretch| (stretch.to_ns - stretch.from_ns).max(0) as u64);
        builder.set_period(Some(ValueType::new("cpu", "nanoseconds")), stretches.first()?.period_ns as i64);
        builder.set_time(0, covered_ns as i64);
        let in_kernel = stretches.iter().all(|stretch| stretch.in_kernel);
        let profile = builder.finish();
        let cpu_ns = stretches.iter().map(|stretch| stretch.sample_count() as f64 * cpu_ns_per_sample(stretch)).sum();
        let lost = sum(|stretch| stretch.lost);
        (samples > 0).then_some(SampledProfile { profile, samples, lost, cpu_ns, covered_ns, covers_kernel: in_kernel })
    }
}

/// Returns the CPU time that one recorded sample of an interval represents, in ns.
fn cpu_ns_per_sample(stretch: &SampleInterval) -> f64 {
    let count = stretch.sample_count() as f64;
    stretch.period_ns as f64 * (count + stretch.lost as f64) / count.max(1.0)
}

/// Sums the CPU time that samples represent, between two times of the load's schedule, in ns.
///
/// Returns two CPU times in ns: of the stacks for which `wanted` is true, and of all stacks.
/// `wanted` gets the names of a stack's functions, the running function first. Returns `None` if
/// the samples cover less than half of the time from `from_ns` to `to_ns`.
pub fn sampled_cpu_time_ns(
    sampled: &SampledFunctions,
    (from_ns, to_ns): (i64, i64),
    wanted: impl Fn(&[&str]) -> bool,
) -> Option<(f64, f64)> {
    let (mut found_ns, mut all_ns, mut covered_ns) = (0.0, 0.0, 0);
    let mut names = Vec::new();
    for stretch in sampled.intervals_between(from_ns, to_ns) {
        covered_ns += stretch.to_ns - stretch.from_ns;
        let weight_ns = cpu_ns_per_sample(stretch);
        for stack in &stretch.stacks {
            let ns = f64::from(stack.count) * weight_ns;
            all_ns += ns;
            names.clear();
            names.extend(stretch.stack_function_names(stack));
            found_ns += if wanted(&names) { ns } else { 0.0 };
        }
    }
    (covered_ns > 0 && covered_ns >= (to_ns - from_ns) / 2).then_some((found_ns, all_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{FunctionCostOrder, ProfileView, sum_by_function};
    use plimsoll_model::{LoadShape, Plan, SampledStack};

    #[test]
    fn samples_of_the_window_become_a_profile() {
        let plan = Plan::for_get_request(
            "h",
            80,
            Vec::new(),
            LoadShape::Closed { users: plimsoll_model::LoadCurve::constant(1.0) },
        );
        let mut run = Run::new(plan.record());
        run.window_ns = (1_000, 3_000);
        let stretch = |from_ns: i64, lost: u64, count: u32| SampleInterval {
            from_ns,
            to_ns: from_ns + 1_000,
            period_ns: 10,
            lost,
            in_kernel: true,
            names: vec!["main".into(), "runtime.gcDrain".into()],
            stacks: vec![SampledStack { count, functions: vec![1, 0] }, SampledStack { count: 10, functions: vec![0] }],
        };
        run.probes.sampled.intervals = vec![stretch(0, 0, 99), stretch(1_000, 0, 30), stretch(2_000, 20, 10)];
        let sampled = SampledProfile::from_run(&run).expect("samples");
        assert_eq!(sampled.cpu_ns, 800.0);
        assert_eq!((sampled.samples, sampled.lost, sampled.covered_ns, sampled.covers_kernel), (60, 20, 2_000, true));
        let found = sum_by_function(&sampled.profile, &ProfileView::all_samples(1), FunctionCostOrder::Cum);
        let rows: Vec<_> = found
            .rows
            .iter()
            .map(|row| (sampled.profile.functions()[row.function as usize].name.as_str(), row.flat, row.cum))
            .collect();
        // The second interval lost as many samples as it recorded, so each of its recorded samples
        // counts twice.
        assert_eq!(rows, [("main", 300, 800), ("runtime.gcDrain", 500, 500)]);
        let share = |from_ns, to_ns| {
            sampled_cpu_time_ns(&run.probes.sampled, (from_ns, to_ns), |names| {
                names.iter().any(|name| name.starts_with("runtime.gc"))
            })
        };
        assert_eq!(share(1_000, 3_000), Some((500.0, 800.0)));
        assert_eq!(share(1_000, 9_000), None, "less than half of it was sampled");
        run.window_ns = (9_000, 9_900);
        assert_eq!(SampledProfile::from_run(&run), None);
    }
}
