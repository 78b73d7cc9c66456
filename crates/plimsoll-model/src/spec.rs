//! The question of an experiment ([`ExperimentSpec`]). The question and the measurements so far
//! determine the next load and the finding. A run file begins with the question of its experiment.
//! `ExperimentSpec<Plan>` has executable plans; `ExperimentSpec` without a type parameter has the
//! redacted records of plans.
//!
//! Not here: the choice of the next load (`plimsoll-analysis`), the command line, and the
//! settings of an experiment ([`crate::experiment_settings`]).

use crate::intervention::Intervention;
use crate::load::ArrivalSpacing;
use crate::plan::{LoadPurpose, LoadTag, Plan};
use crate::record::PlanRecord;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// The question of an experiment, with the plans of its loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "study", rename_all = "snake_case")]
pub enum ExperimentSpec<P = PlanRecord> {
    /// The question: which throughput and response times does one load show?
    Run(RunSpec<P>),
    /// The question: how do goodput and latency change with the concurrency? The study runs one
    /// load for each of several concurrencies.
    Sweep(SweepSpec<P>),
    /// The question: what is the load line, the highest rate that meets an SLO indefinitely?
    Find(FindSpec<P>),
    /// The question: which cause limits the load line, the highest sustained rate?
    Explain(ExplainSpec<P>),
    /// The question: how does the server behave above its highest sustained rate?
    Overload(OverloadSpec<P>),
    /// The question: is one build of the server better than another build?
    Prove(ProveSpec<P>),
    /// The question: how much more does each target of a ladder cost than the previous target? Each
    /// target (rung) of a ladder does one thing more than the previous target.
    Ladder(LadderSpec<P>),
}

/// The question of a single load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec<P = PlanRecord> {
    /// The plan of the load.
    pub plan: P,
    /// A stop condition, in the syntax of `--stop-if`; `None` means that the load runs to the end
    /// of its schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_if: Option<String>,
    /// Profiles to take after the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSpec>,
}

/// The question of a sweep: one load for each of several concurrencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepSpec<P = PlanRecord> {
    /// The plan that all loads of the sweep share, except for the load model and level in this
    /// plan.
    pub base: P,
    /// The concurrencies (numbers of users), in the order of their loads.
    pub levels: Vec<u64>,
    /// Measured time of each level (number of users).
    pub lengths: LevelDurations,
    /// Length of the unmeasured warm-up before each level (number of users), ns.
    pub warmup_ns: u64,
}

/// Measured time of the levels (numbers of users) of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelDurations {
    /// A fixed measured time that is equal for all levels, ns.
    Fixed(u64),
    /// A time budget for all levels together, ns. A level with longer response times gets a larger
    /// part of the budget.
    Budget(u64),
}

/// A search for the load line, the highest sustained rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindSpec<P = PlanRecord> {
    /// The plan that all trials of the search share, except for the load model and level in this
    /// plan.
    pub base: P,
    /// The SLO that a sustained rate must meet, in the syntax of SLOs.
    pub slo: String,
    /// Time budget of the search, ns.
    pub budget_ns: u64,
    /// Highest rate that the search may try, 1/s; `None` means no limit.
    pub max_rate: Option<f64>,
    /// Spacing of the arrivals of every trial.
    pub arrivals: ArrivalSpacing,
    /// Response time of the preflight request, ns. The preflight request checks before the search
    /// that the server responds. A value of 0 means that no preflight request was sent.
    #[serde(rename = "first_answer_ns")]
    pub preflight_ns: u64,
    /// Profiles to take after the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSpec>,
    /// The capacity planning that the user requests, based on the load line that the search finds.
    #[serde(default, skip_serializing_if = "Planning::is_empty")]
    pub planning: Planning,
}

/// The capacity planning that the user requests, based on the load line.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Planning {
    /// The headroom: the share of the load line to keep unused (0.3: 30 %). After the search, a
    /// load at the remaining share of the load line (0.7) checks the headroom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<f64>,
    /// The rate, 1/s, for which the report computes the needed number of server instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need_rps: Option<f64>,
    /// Length of a soak (a long load at the load line) after the search, ns. The search budget does
    /// not include the length of the soak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_ns: Option<u64>,
}

impl Planning {
    /// Returns whether the user requests no capacity planning.
    pub fn is_empty(&self) -> bool {
        *self == Planning::default()
    }
}

/// A search for the load line (the highest sustained rate), and then steady loads that show what
/// limits the load line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainSpec<P = PlanRecord> {
    /// The search for the load line; the time budget of the search is a part of `budget_ns`.
    pub search: FindSpec<P>,
    /// Time budget of the whole experiment, ns.
    pub budget_ns: u64,
    /// Interventions that may run after the search to distinguish causes; an empty list means that
    /// no intervention may run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
    /// Interventions that a flag requests. Requested interventions always run, before all other
    /// interventions.
    #[serde(rename = "flagged", default, skip_serializing_if = "Vec::is_empty")]
    pub requested_interventions: Vec<Intervention>,
    /// Values of a server setting to try after the interventions, in order.
    #[serde(rename = "varied", default, skip_serializing_if = "Vec::is_empty")]
    pub setting_values: Vec<f64>,
}

/// A load whose rate rises in steps above the load line (the highest sustained rate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverloadSpec<P = PlanRecord> {
    /// The search for the load line (the highest sustained rate). The search runs only if
    /// `line_rps` is `None`, and its time budget is a part of `budget_ns`.
    pub search: FindSpec<P>,
    /// The load line, 1/s; `None` means that a search finds the load line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_rps: Option<f64>,
    /// Time budget of the whole experiment, ns.
    pub budget_ns: u64,
    /// The maximum number of retries of a failed request; 0 means none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// A second target that gets the same load after the first target, such as a proxy that
    /// protects the first target.
    #[serde(rename = "against", default = "no_second_target", skip_serializing_if = "Option::is_none")]
    pub second_target: Option<P>,
}

fn no_second_target<P>() -> Option<P> {
    None
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A comparison of two builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProveSpec<P = PlanRecord> {
    /// The loads of the comparison, on build A and on build B.
    pub blocks: BlocksSpec<P>,
    /// The measure that decides the comparison.
    pub criterion: Criterion,
    /// The margin of the comparison: relative differences up to the margin do not matter (0.02
    /// means 2 %).
    pub margin: f64,
    /// Profiles of builds A and B to take after the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSpec>,
}

/// A ladder: a sequence of targets (rungs), each of which does one thing more than the previous
/// target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LadderSpec<P = PlanRecord> {
    /// The loads of the ladder's targets, sorted from the lowest rung to the highest.
    pub blocks: BlocksSpec<P>,
}

/// Loads in blocks: every block has one load for each compared target (arm).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlocksSpec<P = PlanRecord> {
    /// The compared targets; the plans of all targets have the same seed.
    pub arms: Vec<Arm<P>>,
    /// Number of users in every load; `None` means as many users as saturate the target.
    pub users: Option<u64>,
    /// Rate of every load, 1/s, if the criterion is measured at a fixed rate. `None` means a rate
    /// that the slower target easily sustains.
    pub rate: Option<f64>,
    /// Spacing of the arrivals of loads at a fixed rate.
    pub arrivals: ArrivalSpacing,
    /// Length of every load, ns; `None` means that the length is derived from the response times.
    pub load_ns: Option<u64>,
    /// Length of the unmeasured load before each measured load, ns; `None` means that plimsoll
    /// chooses a length that suits the targets.
    pub warmup_ns: Option<u64>,
    /// Time budget of all blocks (rounds of loads) together, ns.
    pub budget_ns: u64,
    /// The maximum number of valid blocks (rounds of one load for each target), after which the
    /// comparison ends; `None` means no limit.
    pub blocks_max: Option<u64>,
    /// Whether targets are compared even if their responses differ.
    #[serde(default)]
    pub answers_may_differ: bool,
}

impl<P> FindSpec<P> {
    /// Converts the plan of the search with `each`.
    fn map_plan<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<FindSpec<Q>, E> {
        let FindSpec { base, slo, budget_ns, max_rate, arrivals, preflight_ns, profiles, planning } = self;
        let base = each(base)?;
        Ok(FindSpec { base, slo, budget_ns, max_rate, arrivals, preflight_ns, profiles, planning })
    }
}

impl<P> BlocksSpec<P> {
    /// Converts the plan of every compared target (arm) with `each`.
    pub fn map_plans<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<BlocksSpec<Q>, E> {
        let BlocksSpec { arms, users, rate, arrivals, load_ns, warmup_ns, budget_ns, blocks_max, answers_may_differ } =
            self;
        let mut arm =
            |Arm { name, plan, is_started_per_load }: Arm<P>| Ok(Arm { name, plan: each(plan)?, is_started_per_load });
        let arms = arms.into_iter().map(&mut arm).collect::<Result<_, E>>()?;
        Ok(BlocksSpec { arms, users, rate, arrivals, load_ns, warmup_ns, budget_ns, blocks_max, answers_may_differ })
    }
}

impl BlocksSpec {
    /// Returns the random seed for the order of the compared targets (arms) and for their loads.
    pub fn seed(&self) -> u64 {
        self.arms.first().map_or(0, |arm| arm.plan.load.seed)
    }
}

/// An arm: one of the targets that an experiment compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm<P = PlanRecord> {
    /// The name of the compared target in reports: a URL or a command, redacted.
    pub name: String,
    /// The plan that all loads of the target share, except for the load model and level in this
    /// plan.
    pub plan: P,
    /// Whether plimsoll starts the target for each load.
    #[serde(rename = "started")]
    pub is_started_per_load: bool,
}

/// A measure by which builds are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// Successes a second, with enough users to saturate the server.
    Goodput,
    /// Median response time, with an equal load on both builds.
    P50,
    /// Response time that 99 % of the requests do not exceed, with an equal load on both builds.
    P99,
    /// CPU time of the server's processes for each response.
    Cpu,
}

impl Criterion {
    /// All criteria.
    pub const ALL: [Criterion; 4] = [Criterion::Goodput, Criterion::P50, Criterion::P99, Criterion::Cpu];

    /// Returns the word for the criterion in flags and records.
    pub fn flag_word(self) -> &'static str {
        match self {
            Criterion::Goodput => "goodput",
            Criterion::P50 => "p50",
            Criterion::P99 => "p99",
            Criterion::Cpu => "cpu",
        }
    }

    /// Finds the criterion with the word `word`.
    pub fn from_flag_word(word: &str) -> Option<Criterion> {
        Criterion::ALL.into_iter().find(|criterion| criterion.flag_word() == word)
    }

    /// Returns whether a larger value is better.
    pub fn more_is_better(self) -> bool {
        self == Criterion::Goodput
    }

    /// Returns whether the criterion is measured at a fixed rate below the peak of both builds.
    pub fn needs_fixed_rate(self) -> bool {
        matches!(self, Criterion::P50 | Criterion::P99)
    }
}

/// Profiles of the server to take after the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilesSpec {
    /// Profile endpoints without secrets: one endpoint for a single target, or one for each
    /// compared build.
    pub bases: Vec<String>,
    /// Length of a CPU profile, s.
    pub seconds: u32,
}

impl<P> ExperimentSpec<P> {
    /// Returns the plan of every target, in order.
    pub fn plans(&self) -> Vec<&P> {
        match self {
            ExperimentSpec::Run(run) => vec![&run.plan],
            ExperimentSpec::Sweep(sweep) => vec![&sweep.base],
            ExperimentSpec::Find(find) => vec![&find.base],
            ExperimentSpec::Explain(explain) => vec![&explain.search.base],
            ExperimentSpec::Overload(overload) => {
                [&overload.search.base].into_iter().chain(overload.second_target.as_ref()).collect()
            }
            ExperimentSpec::Prove(ProveSpec { blocks, .. }) | ExperimentSpec::Ladder(LadderSpec { blocks }) => {
                blocks.arms.iter().map(|arm| &arm.plan).collect()
            }
        }
    }

    /// Converts every plan of the experiment with `each`.
    pub fn map_plans<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<ExperimentSpec<Q>, E> {
        Ok(match self {
            ExperimentSpec::Run(RunSpec { plan, stop_if, profiles }) => {
                ExperimentSpec::Run(RunSpec { plan: each(plan)?, stop_if, profiles })
            }
            ExperimentSpec::Sweep(SweepSpec { base, levels, lengths, warmup_ns }) => {
                ExperimentSpec::Sweep(SweepSpec { base: each(base)?, levels, lengths, warmup_ns })
            }
            ExperimentSpec::Find(find) => ExperimentSpec::Find(find.map_plan(each)?),
            ExperimentSpec::Explain(ExplainSpec {
                search,
                budget_ns,
                interventions,
                requested_interventions,
                setting_values,
            }) => ExperimentSpec::Explain(ExplainSpec {
                search: search.map_plan(each)?,
                budget_ns,
                interventions,
                requested_interventions,
                setting_values,
            }),
            ExperimentSpec::Overload(OverloadSpec { search, line_rps, budget_ns, retries, second_target: against }) => {
                let search = search.map_plan(&mut each)?;
                let against = against.map(each).transpose()?;
                ExperimentSpec::Overload(OverloadSpec { search, line_rps, budget_ns, retries, second_target: against })
            }
            ExperimentSpec::Prove(ProveSpec { blocks, criterion, margin, profiles }) => {
                ExperimentSpec::Prove(ProveSpec { blocks: blocks.map_plans(each)?, criterion, margin, profiles })
            }
            ExperimentSpec::Ladder(LadderSpec { blocks }) => {
                ExperimentSpec::Ladder(LadderSpec { blocks: blocks.map_plans(each)? })
            }
        })
    }
}

impl ExperimentSpec<Plan> {
    /// Creates the record of the experiment for a run file.
    pub fn record(&self) -> ExperimentSpec {
        let record = |plan: Plan| Ok::<_, Infallible>(plan.record());
        match self.clone().map_plans(record) {
            Ok(asked) => asked,
        }
    }
}

impl ExperimentSpec {
    /// The names of all kinds of studies, which are also the names of the commands for the studies.
    pub const STUDY_WORDS: [&'static str; 7] = ["run", "sweep", "find", "explain", "overload", "prove", "ladder"];

    /// Returns the word for the kind of study, such as `find`.
    pub fn study_word(&self) -> &'static str {
        let place = match self {
            ExperimentSpec::Run(_) => 0,
            ExperimentSpec::Sweep(_) => 1,
            ExperimentSpec::Find(_) => 2,
            ExperimentSpec::Explain(_) => 3,
            ExperimentSpec::Overload(_) => 4,
            ExperimentSpec::Prove(_) => 5,
            ExperimentSpec::Ladder(_) => 6,
        };
        Self::STUDY_WORDS[place]
    }

    /// Returns the plan that all loads share; with several targets, the plan of the first target.
    pub fn base_plan(&self) -> Option<&PlanRecord> {
        match self {
            ExperimentSpec::Run(run) => Some(&run.plan),
            ExperimentSpec::Sweep(sweep) => Some(&sweep.base),
            ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) | ExperimentSpec::Overload(_) => {
                self.search_spec().map(|search| &search.base)
            }
            ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => {
                self.blocks_spec()?.arms.first().map(|arm| &arm.plan)
            }
        }
    }

    /// Returns the search for a load line, if the study has one.
    pub fn search_spec(&self) -> Option<&FindSpec> {
        match self {
            ExperimentSpec::Find(find) => Some(find),
            ExperimentSpec::Explain(explain) => Some(&explain.search),
            ExperimentSpec::Overload(overload) => Some(&overload.search),
            ExperimentSpec::Run(_)
            | ExperimentSpec::Sweep(_)
            | ExperimentSpec::Prove(_)
            | ExperimentSpec::Ladder(_) => None,
        }
    }

    /// Returns the settings of the blocks (rounds of loads) of a comparison or ladder; `None` for
    /// every other kind of study.
    pub fn blocks_spec(&self) -> Option<&BlocksSpec> {
        match self {
            ExperimentSpec::Prove(prove) => Some(&prove.blocks),
            ExperimentSpec::Ladder(ladder) => Some(&ladder.blocks),
            ExperimentSpec::Run(_)
            | ExperimentSpec::Sweep(_)
            | ExperimentSpec::Find(_)
            | ExperimentSpec::Explain(_)
            | ExperimentSpec::Overload(_) => None,
        }
    }

    /// Returns the profiles to take after the measurement.
    pub fn profiles_spec(&self) -> Option<&ProfilesSpec> {
        match self {
            ExperimentSpec::Run(run) => run.profiles.as_ref(),
            ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) | ExperimentSpec::Overload(_) => {
                self.search_spec()?.profiles.as_ref()
            }
            ExperimentSpec::Prove(prove) => prove.profiles.as_ref(),
            ExperimentSpec::Sweep(_) | ExperimentSpec::Ladder(_) => None,
        }
    }

    /// Returns the name for the file of a profile. With a single target, the name is the word for
    /// the profiled load: `low`, `line` or `load`. In a comparison, the name is the letter of the
    /// build and the number of the profile: `a1`, `b2`.
    pub fn profile_name(&self, tag: &LoadTag) -> String {
        debug_assert_eq!(tag.purpose, LoadPurpose::Profile);
        match (self, tag.arm, tag.turn) {
            (_, Some(arm), turn) => format!("{}{}", arm.letter().to_ascii_lowercase(), turn + 1),
            (_, None, 0) => "low".to_owned(),
            (ExperimentSpec::Find(_) | ExperimentSpec::Explain(_), None, _) => "line".to_owned(),
            (_, None, _) => "load".to_owned(),
        }
    }
}
