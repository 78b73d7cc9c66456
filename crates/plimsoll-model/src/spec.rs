//! What an experiment was asked to find out ([`ExperimentSpec`]): all from which, with what was
//! measured so far, its next load and its finding follow. A run file begins with it. Its plans are
//! complete where it is to be carried out, and records where it was: `ExperimentSpec<Plan>` and
//! `ExperimentSpec`.
//!
//! Not here: what the next load is (the studies of `plimsoll-analysis`), how people ask (the
//! command line), and what they say besides ([`crate::terms`]).

use crate::intervention::Intervention;
use crate::load::Arrivals;
use crate::plan::{Plan, Purpose, Tag};
use crate::record::PlanRecord;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// What an experiment was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "study", rename_all = "snake_case")]
pub enum ExperimentSpec<P = PlanRecord> {
    /// One load.
    Run(RunSpec<P>),
    /// One load for each of several concurrencies.
    Sweep(SweepSpec<P>),
    /// The load line under a promise.
    Find(FindSpec<P>),
    /// What holds the load line.
    Explain(ExplainSpec<P>),
    /// What a server does past its load line.
    Overload(OverloadSpec<P>),
    /// Whether one build is better than another.
    Prove(ProveSpec<P>),
    /// What each of several steps leaves of the one before.
    Ladder(LadderSpec<P>),
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec<P = PlanRecord> {
    /// The load.
    pub plan: P,
    /// It ends when this becomes true, as conditions are written; `None`: by its schedule only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_if: Option<String>,
    /// Profiles to be taken afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSpec>,
}

/// One load for each of several concurrencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepSpec<P = PlanRecord> {
    /// What all loads share; its load is not used.
    pub base: P,
    /// The concurrencies, in order.
    pub levels: Vec<u64>,
    /// How long each is measured.
    pub lengths: Lengths,
    /// Load before each level that is not measured, ns.
    pub warmup_ns: u64,
}

/// How long the levels of a sweep are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// Each the same, ns.
    Fixed(u64),
    /// Each as long as it needs, all within so many ns.
    Budget(u64),
}

/// A search for the load line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindSpec<P = PlanRecord> {
    /// The request and everything else that all trials share; its load is not used.
    pub base: P,
    /// The promise that must hold, as promises are written.
    pub slo: String,
    /// The search ends within this time, ns.
    pub budget_ns: u64,
    /// No rate above this is tried, 1/s.
    pub max_rate: Option<f64>,
    /// Spacing of arrivals.
    pub arrivals: Arrivals,
    /// How long the first answer took, before the search, ns; 0 if nobody asked.
    pub first_answer_ns: u64,
    /// Profiles to be taken afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSpec>,
    /// What is to be planned with it.
    #[serde(default, skip_serializing_if = "Planning::is_nothing")]
    pub planning: Planning,
}

/// What is to be planned with a load line.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Planning {
    /// A share of the line that stays free (0.3: 30 %); a load is made at the rest of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<f64>,
    /// A rate for which instances are counted, 1/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need_rps: Option<f64>,
    /// For so long the line is loaded after the search, beyond its budget, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soak_ns: Option<u64>,
}

impl Planning {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        *self == Planning::default()
    }
}

/// A search, and steady loads after it that tell what holds the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainSpec<P = PlanRecord> {
    /// The search; its budget is a part of the whole.
    pub search: FindSpec<P>,
    /// All of it ends within this time, ns.
    pub budget_ns: u64,
    /// What may be changed afterwards, to tell causes apart; none: nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
    /// Those of them that a flag asks for: they are made in any case, and first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<Intervention>,
    /// The values of a setting of the server's that are tried after that, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<f64>,
}

/// A load in steps past the line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverloadSpec<P = PlanRecord> {
    /// The search for the line, where it is not given; its budget is a part of the whole.
    pub search: FindSpec<P>,
    /// The line, 1/s; `None`: it is searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_rps: Option<f64>,
    /// All of it ends within this time, ns.
    pub budget_ns: u64,
    /// How often a request comes again that fails; 0: never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// Another target that meets the same load afterwards, such as a proxy that is to protect the
    /// first.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub against: Option<P>,
}

fn nothing<P>() -> Option<P> {
    None
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A comparison of two builds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProveSpec<P = PlanRecord> {
    /// The loads by which they are compared: A, B.
    pub blocks: BlocksSpec<P>,
    /// What decides.
    pub criterion: Criterion,
    /// Differences up to this share do not matter (0.02: 2 %).
    pub margin: f64,
    /// Profiles to be taken of both sides afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesSpec>,
}

/// One variable at a time: each rung does one thing more than the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LadderSpec<P = PlanRecord> {
    /// The loads by which they are compared, the lowest rung first.
    pub blocks: BlocksSpec<P>,
}

/// Loads in blocks: in each, one on every arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlocksSpec<P = PlanRecord> {
    /// What is compared; all plans have one seed.
    pub arms: Vec<Arm<P>>,
    /// Users of every load; `None`: as many as fill the arm.
    pub users: Option<u64>,
    /// Rate of every load where the criterion is taken at one, 1/s; `None`: what the slower arm
    /// easily holds.
    pub rate: Option<f64>,
    /// Spacing of arrivals at a fixed rate.
    pub arrivals: Arrivals,
    /// Length of every load, ns; `None`: as long as answers need.
    pub load_ns: Option<u64>,
    /// Load before it that is not measured, ns; `None`: as long as the arms need.
    pub warmup_ns: Option<u64>,
    /// Blocks are begun as long as they end within this time, ns.
    pub budget_ns: u64,
    /// At most so many blocks that count.
    pub blocks_max: Option<u64>,
    /// The answers of the sides may differ: they are compared all the same.
    #[serde(default)]
    pub answers_may_differ: bool,
}

impl<P> FindSpec<P> {
    /// The same with another plan.
    fn with_plan<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<FindSpec<Q>, E> {
        let FindSpec { base, slo, budget_ns, max_rate, arrivals, first_answer_ns, profiles, planning } = self;
        let base = each(base)?;
        Ok(FindSpec { base, slo, budget_ns, max_rate, arrivals, first_answer_ns, profiles, planning })
    }
}

impl<P> BlocksSpec<P> {
    /// The same with other plans.
    pub fn with_plans<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<BlocksSpec<Q>, E> {
        let BlocksSpec { arms, users, rate, arrivals, load_ns, warmup_ns, budget_ns, blocks_max, answers_may_differ } =
            self;
        let mut arm = |Arm { name, plan, started }: Arm<P>| Ok(Arm { name, plan: each(plan)?, started });
        let arms = arms.into_iter().map(&mut arm).collect::<Result<_, E>>()?;
        Ok(BlocksSpec { arms, users, rate, arrivals, load_ns, warmup_ns, budget_ns, blocks_max, answers_may_differ })
    }
}

impl BlocksSpec {
    /// The seed of the order of the arms, of their loads and of the control.
    pub fn seed(&self) -> u64 {
        self.arms.first().map_or(0, |arm| arm.plan.load.seed)
    }
}

/// One of several targets that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm<P = PlanRecord> {
    /// What it is called in reports: a URL, or a command, as far as it may be shown.
    pub name: String,
    /// What its loads share; its load is not used.
    pub plan: P,
    /// Whether it is started afresh for each load.
    pub started: bool,
}

/// A quantity by which builds are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// Successes a second with enough users to keep the server full.
    Goodput,
    /// Median response time under the same load.
    P50,
    /// Response time that 99 % stay below, under the same load.
    P99,
    /// CPU time of the server's processes for each answered request.
    Cpu,
}

impl Criterion {
    /// All of them.
    pub const ALL: [Criterion; 4] = [Criterion::Goodput, Criterion::P50, Criterion::P99, Criterion::Cpu];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Criterion::Goodput => "goodput",
            Criterion::P50 => "p50",
            Criterion::P99 => "p99",
            Criterion::Cpu => "cpu",
        }
    }

    /// The criterion that a word names.
    pub fn named(word: &str) -> Option<Criterion> {
        Criterion::ALL.into_iter().find(|criterion| criterion.word() == word)
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        self == Criterion::Goodput
    }

    /// Whether it is taken at a fixed rate below what the builds can do, not at their peak.
    pub fn at_fixed_rate(self) -> bool {
        matches!(self, Criterion::P50 | Criterion::P99)
    }
}

/// Profiles of the server that are to be taken after the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilesSpec {
    /// Where they are served, without secrets: of one target, or of each side.
    pub bases: Vec<String>,
    /// Length of a CPU profile, s.
    pub seconds: u32,
}

impl<P> ExperimentSpec<P> {
    /// The plan of every target, in order.
    pub fn plans(&self) -> Vec<&P> {
        match self {
            ExperimentSpec::Run(run) => vec![&run.plan],
            ExperimentSpec::Sweep(sweep) => vec![&sweep.base],
            ExperimentSpec::Find(find) => vec![&find.base],
            ExperimentSpec::Explain(explain) => vec![&explain.search.base],
            ExperimentSpec::Overload(overload) => {
                [&overload.search.base].into_iter().chain(overload.against.as_ref()).collect()
            }
            ExperimentSpec::Prove(ProveSpec { blocks, .. }) | ExperimentSpec::Ladder(LadderSpec { blocks }) => {
                blocks.arms.iter().map(|arm| &arm.plan).collect()
            }
        }
    }

    /// The same with other plans.
    pub fn with_plans<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<ExperimentSpec<Q>, E> {
        Ok(match self {
            ExperimentSpec::Run(RunSpec { plan, stop_if, profiles }) => {
                ExperimentSpec::Run(RunSpec { plan: each(plan)?, stop_if, profiles })
            }
            ExperimentSpec::Sweep(SweepSpec { base, levels, lengths, warmup_ns }) => {
                ExperimentSpec::Sweep(SweepSpec { base: each(base)?, levels, lengths, warmup_ns })
            }
            ExperimentSpec::Find(find) => ExperimentSpec::Find(find.with_plan(each)?),
            ExperimentSpec::Explain(ExplainSpec { search, budget_ns, interventions, flagged, varied }) => {
                ExperimentSpec::Explain(ExplainSpec {
                    search: search.with_plan(each)?,
                    budget_ns,
                    interventions,
                    flagged,
                    varied,
                })
            }
            ExperimentSpec::Overload(OverloadSpec { search, line_rps, budget_ns, retries, against }) => {
                let search = search.with_plan(&mut each)?;
                let against = against.map(each).transpose()?;
                ExperimentSpec::Overload(OverloadSpec { search, line_rps, budget_ns, retries, against })
            }
            ExperimentSpec::Prove(ProveSpec { blocks, criterion, margin, profiles }) => {
                ExperimentSpec::Prove(ProveSpec { blocks: blocks.with_plans(each)?, criterion, margin, profiles })
            }
            ExperimentSpec::Ladder(LadderSpec { blocks }) => {
                ExperimentSpec::Ladder(LadderSpec { blocks: blocks.with_plans(each)? })
            }
        })
    }
}

impl ExperimentSpec<Plan> {
    /// What is recorded of it.
    pub fn record(&self) -> ExperimentSpec {
        let record = |plan: Plan| Ok::<_, Infallible>(plan.record());
        match self.clone().with_plans(record) {
            Ok(asked) => asked,
        }
    }
}

impl ExperimentSpec {
    /// The words of all of them.
    pub const WORDS: [&'static str; 7] = ["run", "sweep", "find", "explain", "overload", "prove", "ladder"];

    /// The word of the study.
    pub fn word(&self) -> &'static str {
        let place = match self {
            ExperimentSpec::Run(_) => 0,
            ExperimentSpec::Sweep(_) => 1,
            ExperimentSpec::Find(_) => 2,
            ExperimentSpec::Explain(_) => 3,
            ExperimentSpec::Overload(_) => 4,
            ExperimentSpec::Prove(_) => 5,
            ExperimentSpec::Ladder(_) => 6,
        };
        Self::WORDS[place]
    }

    /// The plan that all loads share, but for what each sets itself; of several targets that of the
    /// first.
    pub fn base(&self) -> Option<&PlanRecord> {
        match self {
            ExperimentSpec::Run(run) => Some(&run.plan),
            ExperimentSpec::Sweep(sweep) => Some(&sweep.base),
            ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) | ExperimentSpec::Overload(_) => {
                self.search().map(|search| &search.base)
            }
            ExperimentSpec::Prove(_) | ExperimentSpec::Ladder(_) => self.blocks()?.arms.first().map(|arm| &arm.plan),
        }
    }

    /// The search for a load line, where there is one.
    pub fn search(&self) -> Option<&FindSpec> {
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

    /// The blocks of a comparison or a ladder.
    pub fn blocks(&self) -> Option<&BlocksSpec> {
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

    /// Profiles to be taken afterwards.
    pub fn profiles(&self) -> Option<&ProfilesSpec> {
        match self {
            ExperimentSpec::Run(run) => run.profiles.as_ref(),
            ExperimentSpec::Find(_) | ExperimentSpec::Explain(_) | ExperimentSpec::Overload(_) => {
                self.search()?.profiles.as_ref()
            }
            ExperimentSpec::Prove(prove) => prove.profiles.as_ref(),
            ExperimentSpec::Sweep(_) | ExperimentSpec::Ladder(_) => None,
        }
    }

    /// What a profile is of, in a word that may stand in a file's name: `low`, `line`, `load`;
    /// `a1`, `b2` of a side.
    pub fn profile_name(&self, tag: &Tag) -> String {
        debug_assert_eq!(tag.purpose, Purpose::Profile);
        match (self, tag.arm, tag.turn) {
            (_, Some(arm), turn) => format!("{}{}", arm.letter().to_ascii_lowercase(), turn + 1),
            (_, None, 0) => "low".to_owned(),
            (ExperimentSpec::Find(_) | ExperimentSpec::Explain(_), None, _) => "line".to_owned(),
            (_, None, _) => "load".to_owned(),
        }
    }
}
