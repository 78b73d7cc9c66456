//! Which functions the server's processes were in while a load ran, as the kernel's clock caught
//! them ([`SampledFunctions`]).
//!
//! Plain data and its arithmetic. How samples are taken is for `plimsoll-sys` and the probes, what
//! they mean for `plimsoll-analysis`.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Samples of one load, in stretches. Merging is associative and commutative, so that parts written
/// one after the other add up to the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SampledFunctions {
    /// By time.
    pub stretches: Vec<SampleInterval>,
    /// Why there are none: a sentence without a full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Samples of a short time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampleInterval {
    /// From this schedule time on, ns.
    pub from_ns: i64,
    /// To this schedule time, ns.
    pub to_ns: i64,
    /// CPU time that a sample stands for, ns.
    pub period_ns: u64,
    /// Samples that the kernel had no room for, of whatever process.
    pub lost: u64,
    /// Whether time in the kernel was sampled, too.
    pub in_kernel: bool,
    /// The functions, each once.
    pub names: Vec<String>,
    /// What was caught.
    pub stacks: Vec<SampledStack>,
}

/// A stack that was caught.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SampledStack {
    /// How often.
    pub count: u32,
    /// Where: numbers of names, the function that ran first, then its caller; of code without frame
    /// pointers only the first.
    pub functions: Vec<u32>,
}

/// Functions of one stretch, at most: a bound for what comes from a file.
const NAMES_MAX: usize = 1 << 16;

impl SampleInterval {
    /// How many samples there are.
    pub fn count(&self) -> u64 {
        self.stacks.iter().map(|stack| u64::from(stack.count)).sum()
    }

    /// Names of a stack, the function that ran first.
    pub fn names_of<'a>(&'a self, stack: &'a SampledStack) -> impl Iterator<Item = &'a str> {
        stack.functions.iter().filter_map(|number| Some(self.names.get(*number as usize)?.as_str()))
    }

    /// Whether its numbers lie where those of samples can lie.
    fn is_bounded(&self) -> bool {
        let names = self.names.len();
        // A sample stands for a second at most.
        (1..=1_000_000_000).contains(&self.period_ns)
            && self.lost <= u64::from(u32::MAX)
            && names <= NAMES_MAX
            && self.stacks.iter().all(|stack| stack.functions.iter().all(|number| (*number as usize) < names))
    }
}

impl SampledFunctions {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == SampledFunctions::default()
    }

    /// Adds what was sampled at another time.
    pub fn merge(&mut self, other: &SampledFunctions) {
        self.stretches.extend_from_slice(&other.stretches);
        self.stretches.sort_unstable();
        self.stretches.dedup();
        // Of several reasons one is told, whichever came first.
        self.refused = [self.refused.take(), other.refused.clone()].into_iter().flatten().min();
    }

    /// The same with every time `by_ns` later (earlier if negative).
    pub(crate) fn shift(&mut self, by_ns: i64) {
        for stretch in &mut self.stretches {
            (stretch.from_ns, stretch.to_ns) = (stretch.from_ns + by_ns, stretch.to_ns + by_ns);
        }
    }

    /// The stretches of which the middle lies between these schedule times.
    pub fn between(&self, from_ns: i64, to_ns: i64) -> impl Iterator<Item = &SampleInterval> {
        let middle = |stretch: &SampleInterval| stretch.from_ns / 2 + stretch.to_ns / 2;
        self.stretches.iter().filter(move |stretch| (from_ns..=to_ns).contains(&middle(stretch)))
    }

    /// The samples between these schedule times as those of one stretch: what is kept of a load.
    pub fn joined(&self, from_ns: i64, to_ns: i64) -> SampledFunctions {
        let mut counts: BTreeMap<Vec<&str>, u32> = BTreeMap::new();
        for stretch in self.between(from_ns, to_ns) {
            for stack in &stretch.stacks {
                let count = counts.entry(stretch.names_of(stack).collect()).or_default();
                *count = count.saturating_add(stack.count);
            }
        }
        let names: BTreeSet<&str> = counts.keys().flatten().copied().collect();
        let numbers: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let all = || self.between(from_ns, to_ns);
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
        SampledFunctions { stretches: joined.into_iter().collect(), refused: self.refused.clone() }
    }

    pub(crate) fn is_bounded(&self, is_time: impl Fn(i64) -> bool) -> bool {
        self.stretches.iter().all(|stretch| {
            is_time(stretch.from_ns)
                && is_time(stretch.to_ns)
                && stretch.from_ns <= stretch.to_ns
                && stretch.is_bounded()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(from_ns: i64) -> SampleInterval {
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
    fn parts_add_up_in_any_order() {
        let part = |from_ns| SampledFunctions { stretches: vec![stretch(from_ns)], refused: None };
        let refused = |why: &str| SampledFunctions { stretches: Vec::new(), refused: Some(why.into()) };
        let parts = [part(20), part(0), refused("b"), part(10), refused("a"), part(20)];
        let (mut forth, mut back) = (SampledFunctions::default(), SampledFunctions::default());
        parts.iter().for_each(|part| forth.merge(part));
        parts.iter().rev().for_each(|part| back.merge(part));
        assert_eq!(forth, back);
        assert_eq!(forth.stretches.iter().map(|stretch| stretch.from_ns).collect::<Vec<_>>(), [0, 10, 20]);
        assert_eq!((forth.refused.as_deref(), forth.stretches[0].count()), (Some("a"), 4));
        assert_eq!(forth.between(5, 16).map(|stretch| stretch.from_ns).collect::<Vec<_>>(), [0, 10]);
        let first = stretch(0);
        assert_eq!(first.names_of(&first.stacks[0]).collect::<Vec<_>>(), ["hash", "main"]);
    }

    #[test]
    fn of_a_load_one_stretch_is_kept() {
        let mut other = stretch(10);
        (other.names, other.in_kernel) = (vec!["sort".into(), "main".into(), "unused".into()], false);
        let sampled = SampledFunctions { stretches: vec![stretch(0), other, stretch(50)], refused: None };
        let joined = sampled.joined(0, 20);
        let [kept] = joined.stretches.as_slice() else { panic!("{joined:?}") };
        assert_eq!((kept.from_ns, kept.to_ns, kept.lost, kept.in_kernel, kept.count()), (0, 20, 2, false, 8));
        assert_eq!(kept.names, ["hash", "main", "sort"]);
        let told: Vec<_> =
            kept.stacks.iter().map(|stack| (stack.count, kept.names_of(stack).collect::<Vec<_>>().join("<"))).collect();
        // Of the other stretch, `main` was called by `sort`, which ran by itself, too.
        assert_eq!(told, [(3, "hash<main".into()), (1, "main".into()), (3, "main<sort".into()), (1, "sort".into())]);
        assert_eq!(joined.joined(0, 20), joined);
        assert!(sampled.joined(100, 200).is_empty());
    }

    #[test]
    fn what_no_sampling_makes_is_not_taken() {
        let bounded = |change: &dyn Fn(&mut SampleInterval)| {
            let mut one = stretch(0);
            change(&mut one);
            SampledFunctions { stretches: vec![one], refused: None }.is_bounded(|ns| ns >= 0)
        };
        assert!(bounded(&|_| {}));
        assert!(!bounded(&|one| one.from_ns = -1));
        assert!(!bounded(&|one| one.from_ns = 99));
        assert!(!bounded(&|one| one.period_ns = 0));
        assert!(!bounded(&|one| one.stacks[0].functions.push(2)));
        assert!(!bounded(&|one| one.lost = u64::MAX));
    }
}
