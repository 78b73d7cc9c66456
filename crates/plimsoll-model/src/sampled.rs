//! Functions of the server's processes, sampled during a load by the kernel's CPU clock
//! ([`SampledFunctions`]).
//!
//! This file has the data types of samples and the arithmetic on samples. Not here: sampling
//! (`plimsoll-sys` and probes), and the meaning of samples (`plimsoll-analysis`).

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The samples of one load, in intervals. Merging is associative and commutative, so that parts of
/// the samples that were written one after another add up to the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SampledFunctions {
    /// The intervals, ascending by time.
    #[serde(rename = "stretches")]
    pub intervals: Vec<SampleInterval>,
    /// Why there are no samples: a sentence without a full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    pub missing_reason: Option<String>,
}

/// The samples of one interval of time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampleInterval {
    /// Start of the interval in schedule time, ns.
    pub from_ns: i64,
    /// End of the interval in schedule time, ns.
    pub to_ns: i64,
    /// CPU time that one sample represents, ns.
    pub period_ns: u64,
    /// Number of samples that the kernel lost because its buffer was full, over all processes.
    pub lost: u64,
    /// Whether kernel time was sampled in addition to user time.
    pub in_kernel: bool,
    /// Distinct names of functions.
    pub names: Vec<String>,
    /// Distinct sampled stacks.
    pub stacks: Vec<SampledStack>,
}

/// A distinct stack of functions, with its number of samples.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampledStack {
    /// Number of samples with this stack.
    pub count: u32,
    /// Indices of function names: the running function first, then its callers. Code without frame
    /// pointers yields only the running function.
    pub functions: Vec<u32>,
}

/// The maximum number of distinct functions of one interval: a bound for untrusted files.
const FUNCTION_NAMES_MAX: usize = 1 << 16;

impl SampleInterval {
    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.stacks.iter().map(|stack| u64::from(stack.count)).sum()
    }

    /// Returns the names of the functions of a stack, the running function first.
    pub fn stack_function_names<'a>(&'a self, stack: &'a SampledStack) -> impl Iterator<Item = &'a str> {
        stack.functions.iter().filter_map(|number| Some(self.names.get(*number as usize)?.as_str()))
    }

    /// Returns whether every number is in its valid range.
    fn is_within_limits(&self) -> bool {
        let names = self.names.len();
        // A sample represents at most one second of CPU time.
        (1..=1_000_000_000).contains(&self.period_ns)
            && self.lost <= u64::from(u32::MAX)
            && names <= FUNCTION_NAMES_MAX
            && self.stacks.iter().all(|stack| stack.functions.iter().all(|number| (*number as usize) < names))
    }
}

impl SampledFunctions {
    /// Returns whether there are no samples and no reason for their absence.
    pub fn is_empty(&self) -> bool {
        *self == SampledFunctions::default()
    }

    /// Adds samples of other intervals.
    pub fn merge(&mut self, other: &SampledFunctions) {
        self.intervals.extend_from_slice(&other.intervals);
        self.intervals.sort_unstable();
        self.intervals.dedup();
        // If two reasons for missing samples differ, keep the text that sorts first, so that the
        // order of merging does not matter.
        self.missing_reason = [self.missing_reason.take(), other.missing_reason.clone()].into_iter().flatten().min();
    }

    /// Shifts every time by `by_ns` (earlier if negative).
    pub(crate) fn shift_times(&mut self, by_ns: i64) {
        for stretch in &mut self.intervals {
            (stretch.from_ns, stretch.to_ns) = (stretch.from_ns + by_ns, stretch.to_ns + by_ns);
        }
    }

    /// Returns the intervals whose middle lies between the schedule times `from_ns` and `to_ns`,
    /// ns.
    pub fn intervals_between(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &SampleInterval> {
        let middle = |stretch: &SampleInterval| stretch.from_ns / 2 + stretch.to_ns / 2;
        self.intervals.iter().filter(move |stretch| (from_ns..=to_ns).contains(&middle(stretch)))
    }

    /// Merges the samples between the schedule times `from_ns` and `to_ns`, ns, into one interval,
    /// for a run file.
    pub fn merge_into_one_interval(&self, from_ns: i64, to_ns: i64) -> SampledFunctions {
        let mut counts: BTreeMap<Vec<&str>, u32> = BTreeMap::new();
        for stretch in self.intervals_between(from_ns, to_ns) {
            for stack in &stretch.stacks {
                let count = counts.entry(stretch.stack_function_names(stack).collect()).or_default();
                *count = count.saturating_add(stack.count);
            }
        }
        let names: BTreeSet<&str> = counts.keys().flatten().copied().collect();
        let numbers: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let all = || self.intervals_between(from_ns, to_ns);
        let joined = all().next().map(|first| SampleInterval {
            from_ns: first.from_ns,
            to_ns: all().map(|stretch| stretch.to_ns).fold(first.to_ns, i64::max),
            period_ns: first.period_ns,
            lost: all().map(|stretch| stretch.lost).sum(),
            in_kernel: all().all(|stretch| stretch.in_kernel),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            stacks: counts
                .iter()
                .map(|(stack, count)| SampledStack {
                    count: *count,
                    functions: stack.iter().map(|name| numbers[name]).collect(),
                })
                .collect(),
        });
        SampledFunctions { intervals: joined.into_iter().collect(), missing_reason: self.missing_reason.clone() }
    }

    pub(crate) fn is_within_limits(&self, is_time: impl Fn(i64) -> bool) -> bool {
        self.intervals.iter().all(|stretch| {
            is_time(stretch.from_ns)
                && is_time(stretch.to_ns)
                && stretch.from_ns <= stretch.to_ns
                && stretch.is_within_limits()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_interval(from_ns: i64) -> SampleInterval {
        SampleInterval {
            from_ns,
            to_ns: from_ns + 10,
            period_ns: 5,
            lost: 1,
            in_kernel: true,
            names: vec!["main".into(), "hash".into()],
            stacks: vec![
                SampledStack { count: 3, functions: vec![1, 0] },
                SampledStack { count: 1, functions: vec![0] },
            ],
        }
    }

    #[test]
    fn sampled_functions_merge_in_any_order() {
        let part = |from_ns| SampledFunctions { intervals: vec![sample_interval(from_ns)], missing_reason: None };
        let refused = |why: &str| SampledFunctions { intervals: Vec::new(), missing_reason: Some(why.into()) };
        let parts = [part(20), part(0), refused("b"), part(10), refused("a"), part(20)];
        let (mut forth, mut back) = (SampledFunctions::default(), SampledFunctions::default());
        parts.iter().for_each(|part| forth.merge(part));
        parts.iter().rev().for_each(|part| back.merge(part));
        assert_eq!(forth, back);
        assert_eq!(forth.intervals.iter().map(|stretch| stretch.from_ns).collect::<Vec<_>>(), [0, 10, 20]);
        assert_eq!((forth.missing_reason.as_deref(), forth.intervals[0].sample_count()), (Some("a"), 4));
        assert_eq!(forth.intervals_between(5, 16).map(|stretch| stretch.from_ns).collect::<Vec<_>>(), [0, 10]);
        let first = sample_interval(0);
        assert_eq!(first.stack_function_names(&first.stacks[0]).collect::<Vec<_>>(), ["hash", "main"]);
    }

    #[test]
    fn intervals_merge_into_one_by_function_name() {
        let mut other = sample_interval(10);
        (other.names, other.in_kernel) = (vec!["sort".into(), "main".into(), "unused".into()], false);
        let sampled =
            SampledFunctions { intervals: vec![sample_interval(0), other, sample_interval(50)], missing_reason: None };
        let joined = sampled.merge_into_one_interval(0, 20);
        let [kept] = joined.intervals.as_slice() else { panic!("{joined:?}") };
        assert_eq!((kept.from_ns, kept.to_ns, kept.lost, kept.in_kernel, kept.sample_count()), (0, 20, 2, false, 8));
        assert_eq!(kept.names, ["hash", "main", "sort"]);
        let told: Vec<_> = kept
            .stacks
            .iter()
            .map(|stack| (stack.count, kept.stack_function_names(stack).collect::<Vec<_>>().join("<")))
            .collect();
        // In the second interval, `sort` called `main` and also ran by itself.
        assert_eq!(told, [(3, "hash<main".into()), (1, "main".into()), (3, "main<sort".into()), (1, "sort".into())]);
        assert_eq!(joined.merge_into_one_interval(0, 20), joined);
        assert!(sampled.merge_into_one_interval(100, 200).is_empty());
    }

    #[test]
    fn impossible_samples_are_refused() {
        let bounded = |change: &dyn Fn(&mut SampleInterval)| {
            let mut one = sample_interval(0);
            change(&mut one);
            SampledFunctions { intervals: vec![one], missing_reason: None }.is_within_limits(|ns| ns >= 0)
        };
        assert!(bounded(&|_| {}));
        assert!(!bounded(&|one| one.from_ns = -1));
        assert!(!bounded(&|one| one.from_ns = 99));
        assert!(!bounded(&|one| one.period_ns = 0));
        assert!(!bounded(&|one| one.stacks[0].functions.push(2)));
        assert!(!bounded(&|one| one.lost = u64::MAX));
    }
}
