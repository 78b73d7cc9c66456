//! The sequence of loads in a comparison of builds, or in a ladder of endpoints. The first loads
//! find the load level of each arm (build or endpoint). Then the study measures blocks (one load
//! per arm in each block), until the result is certain or the time budget is exhausted.

use super::climb::{self, ArmLoad, LoadRules};
use super::profiling;
use super::step::{History, Step, StopRule, trial_end_ns};
use crate::prove::{self, ComparisonBlock, ComparisonRules, InterimEstimate, Ladder, RecordedBlocks};
use plimsoll_model::rng::mix_bits;
use plimsoll_model::{ArmIndex, BlocksSpec, Criterion, ExperimentSpec, LoadPurpose, LoadTag, ProfilesSpec, Trial};

/// The required budget is estimated only from at least this number of blocks (a block is one load
/// per arm).
const REQUIRED_BLOCKS_ESTIMATE_MIN: usize = 14;

/// The state of a running comparison of two builds, or of a ladder (a comparison of several
/// endpoints).
#[derive(Debug)]
pub struct ComparisonStudy {
    spec: BlocksSpec,
    /// The profiles that the user requested. The study takes the profiles after the last block.
    profiles: Option<ProfilesSpec>,
    /// The rules that decide a comparison of two builds; `None` for a ladder of endpoints, which
    /// has no verdict.
    rules: Option<ComparisonRules>,
    /// The requirements on the loads, such as a fixed rate.
    load_rules: LoadRules,
    blocks: RecordedBlocks,
    /// The load of each arm (side), and the end time of the climb, in ns since the study began.
    /// `None` while the climb (the search for each arm's load) continues.
    loads: Option<(Vec<ArmLoad>, u64)>,
}

/// The interim result of a comparison of two builds, or of a ladder of endpoints.
#[derive(Debug, Clone, PartialEq)]
pub enum InterimBlocksResult {
    /// An estimate for a comparison of two builds. The second value is the budget that would
    /// probably decide the comparison, ns, or `None` if the present budget is probably enough.
    Comparison(InterimEstimate, Option<u64>),
    /// The interim result of a ladder (a comparison of several endpoints).
    Ladder(Ladder),
}

impl ComparisonStudy {
    /// Creates the study before its first load; `None` for a study of another kind.
    pub fn new(spec: &ExperimentSpec) -> Option<ComparisonStudy> {
        let blocks = spec.blocks_spec()?;
        let rules = ComparisonRules::from_spec(spec);
        let criterion = rules.as_ref().map(|rules| rules.primary);
        let load_rules = LoadRules {
            has_fixed_rate: criterion.is_some_and(Criterion::needs_fixed_rate),
            has_separate_loads: rules.is_none(),
        };
        let blocks_so_far = RecordedBlocks::new(blocks.arms.len());
        let profiles = spec.profiles_spec().cloned();
        Some(ComparisonStudy { spec: blocks.clone(), profiles, rules, load_rules, blocks: blocks_so_far, loads: None })
    }

    /// Returns the rules that decide a comparison of two builds; `None` for a ladder of endpoints.
    pub fn rules(&self) -> Option<&ComparisonRules> {
        self.rules.as_ref()
    }

    /// Returns the complete blocks (a block is one load per arm).
    pub fn blocks(&self) -> &[ComparisonBlock] {
        &self.blocks.complete_blocks
    }

    /// Returns the tag of a load: its purpose, its arm (side), and its number `turn`.
    pub fn trial_tag(&self, purpose: LoadPurpose, arm: u8, turn: usize) -> LoadTag {
        let arm = if self.rules.is_some() { ArmIndex::Side(arm) } else { ArmIndex::Rung(arm) };
        LoadTag { purpose, arm: Some(arm), turn: turn as u32 }
    }

    /// Returns the time budget, ns. Every block must end within this time after the start of the
    /// study.
    pub fn budget_ns(&self) -> u64 {
        self.spec.budget_ns
    }

    /// Adds the loads that were recorded since the last call.
    pub(super) fn add_new_trials(&mut self, trials: &[Trial]) {
        self.blocks.add_new_trials(trials);
    }

    pub(super) fn next(&mut self, history: &History) -> Step {
        let (loads, climbed_ns) = match self.arm_loads(history.trials) {
            Ok(known) => known,
            Err(step) => return step,
        };
        let number = self.blocks.complete_blocks.len();
        let begun = history.trials.iter().filter(|trial| is_of_block(trial, number)).count();
        if begun == 0 && self.is_over(number, climbed_ns, history.elapsed_ns) || self.blocks.early_end_reason.is_some()
        {
            return Step::Stop;
        }
        let order = prove::shuffled_arm_order(self.spec.seed(), number, self.spec.arms.len());
        let Some(arm) = order.get(begun).copied() else { return Step::Stop };
        // All arms (sides) of a block get the same seed, and so the same arrival times of requests.
        let seed = mix_bits(self.spec.seed().wrapping_add(number as u64));
        let plan = loads[usize::from(arm)].plan(&self.spec, usize::from(arm), seed);
        Step::measure_trial(self.trial_tag(LoadPurpose::Block, arm, number), plan, StopRule::EndOfSchedule)
    }

    /// Returns the step that takes the next profile, if the user requested profiles. If a failure
    /// ended the measurement of the blocks early, no profile is taken.
    pub(super) fn next_profile_step(&self, history: &History) -> Step {
        match &self.profiles {
            Some(profiles) if self.blocks.early_end_reason.is_none() => {
                profiling::next_comparison_step(profiles, &self.spec, &self.blocks.complete_blocks, history)
            }
            _ => Step::Stop,
        }
    }

    /// Returns the load of each arm (side), and the time at which the climb (the search for these
    /// loads) ended, in ns. While the climb continues, the error is the next step of the climb.
    fn arm_loads(&mut self, trials: &[Trial]) -> Result<(Vec<ArmLoad>, u64), Step> {
        if let Some(known) = &self.loads {
            return Ok(known.clone());
        }
        let mut peaks = Vec::new();
        let mut climbed_ns = 0;
        for arm in 0..self.spec.arms.len() as u8 {
            let tag = self.trial_tag(LoadPurpose::Peak, arm, 0);
            let of_arm: Vec<&Trial> = trials.iter().filter(|trial| trial.tag == tag).collect();
            peaks.push(climb::find_arm_peak(&self.spec, tag, &of_arm)?);
            climbed_ns = of_arm.last().map_or(climbed_ns, |last| trial_end_ns(last));
        }
        let left_ns = self.spec.budget_ns.saturating_sub(climbed_ns);
        let known = (climb::plan_arm_loads(&self.spec, self.load_rules, &peaks, left_ns), climbed_ns);
        self.loads = Some(known.clone());
        Ok(known)
    }

    /// Returns whether no further block is needed, or whether the next block would not end within
    /// the budget.
    fn is_over(&self, number: usize, climbed_ns: u64, elapsed_ns: u64) -> bool {
        if number == 0 {
            return false;
        }
        let whole = &self.blocks.complete_blocks;
        let enough = match &self.rules {
            Some(rules) => prove::stop_reason(rules, whole).is_some(),
            None => {
                let counted = whole.iter().filter(|block| block.void_reason().is_none()).count();
                self.spec.blocks_max.is_some_and(|most| counted as u64 >= most)
            }
        };
        let block_ns = elapsed_ns.saturating_sub(climbed_ns) / number as u64;
        enough || elapsed_ns + block_ns * 21 / 20 > self.spec.budget_ns
    }

    /// Returns the interim result for display; `None` before the first complete block (one load per
    /// arm).
    pub fn interim_status(&self, trials: &[Trial]) -> Option<InterimBlocksResult> {
        let whole = &self.blocks.complete_blocks;
        let Some(rules) = &self.rules else {
            let ladder = prove::compute_ladder(whole, self.spec.arms.len(), None);
            return (!whole.is_empty()).then_some(InterimBlocksResult::Ladder(ladder));
        };
        let enough_ns = prove::sufficient_budget_ns(rules, whole, trials)
            .filter(|ns| whole.len() >= REQUIRED_BLOCKS_ESTIMATE_MIN && *ns > self.spec.budget_ns);
        prove::interim_estimate(rules, whole).map(|standing| InterimBlocksResult::Comparison(standing, enough_ns))
    }
}

fn is_of_block(trial: &Trial, number: usize) -> bool {
    trial.tag.purpose == LoadPurpose::Block && trial.tag.turn as usize == number
}

impl InterimBlocksResult {
    /// Returns the number of valid blocks, on which the interim result is based.
    pub fn valid_block_count(&self) -> usize {
        match self {
            InterimBlocksResult::Comparison(standing, _) => standing.blocks,
            InterimBlocksResult::Ladder(ladder) => ladder.blocks,
        }
    }
}
