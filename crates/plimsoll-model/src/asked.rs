//! What an experiment was asked to find out ([`Asked`]): all from which, with what was measured so
//! far, its next load and its finding follow. A run file begins with it. Its plans are complete
//! where it is to be carried out, and records where it was: `Asked<Plan>` and `Asked`.
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
pub enum Asked<P = PlanRecord> {
    /// One load.
    Run(RunAsked<P>),
    /// One load for each of several concurrencies.
    Sweep(SweepAsked<P>),
    /// The load line under a promise.
    Find(FindAsked<P>),
    /// What holds the load line.
    Explain(ExplainAsked<P>),
    /// What a server does past its load line.
    Overload(OverloadAsked<P>),
    /// Whether one build is better than another.
    Prove(ProveAsked<P>),
    /// What each of several steps leaves of the one before.
    Ladder(LadderAsked<P>),
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunAsked<P = PlanRecord> {
    /// The load.
    pub plan: P,
    /// It ends when this becomes true, as conditions are written; `None`: by its schedule only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_if: Option<String>,
    /// Profiles to be taken afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesAsked>,
}

/// One load for each of several concurrencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepAsked<P = PlanRecord> {
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
pub struct FindAsked<P = PlanRecord> {
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
    pub profiles: Option<ProfilesAsked>,
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
pub struct ExplainAsked<P = PlanRecord> {
    /// The search; its budget is a part of the whole.
    pub search: FindAsked<P>,
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
pub struct OverloadAsked<P = PlanRecord> {
    /// The search for the line, where it is not given; its budget is a part of the whole.
    pub search: FindAsked<P>,
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
pub struct ProveAsked<P = PlanRecord> {
    /// The loads by which they are compared: A, B.
    pub blocks: BlocksAsked<P>,
    /// What decides.
    pub criterion: Criterion,
    /// Differences up to this share do not matter (0.02: 2 %).
    pub margin: f64,
    /// Profiles to be taken of both sides afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<ProfilesAsked>,
}

/// One variable at a time: each rung does one thing more than the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LadderAsked<P = PlanRecord> {
    /// The loads by which they are compared, the lowest rung first.
    pub blocks: BlocksAsked<P>,
}

/// Loads in blocks: in each, one on every arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlocksAsked<P = PlanRecord> {
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

impl<P> FindAsked<P> {
    /// The same with another plan.
    fn with_plan<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<FindAsked<Q>, E> {
        let FindAsked { base, slo, budget_ns, max_rate, arrivals, first_answer_ns, profiles, planning } = self;
        let base = each(base)?;
        Ok(FindAsked { base, slo, budget_ns, max_rate, arrivals, first_answer_ns, profiles, planning })
    }
}

impl<P> BlocksAsked<P> {
    /// The same with other plans.
    pub fn with_plans<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<BlocksAsked<Q>, E> {
        let BlocksAsked { arms, users, rate, arrivals, load_ns, warmup_ns, budget_ns, blocks_max, answers_may_differ } =
            self;
        let mut arm = |Arm { name, plan, started }: Arm<P>| Ok(Arm { name, plan: each(plan)?, started });
        let arms = arms.into_iter().map(&mut arm).collect::<Result<_, E>>()?;
        Ok(BlocksAsked { arms, users, rate, arrivals, load_ns, warmup_ns, budget_ns, blocks_max, answers_may_differ })
    }
}

impl BlocksAsked {
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
pub struct ProfilesAsked {
    /// Where they are served, without secrets: of one target, or of each side.
    pub bases: Vec<String>,
    /// Length of a CPU profile, s.
    pub seconds: u32,
}

impl<P> Asked<P> {
    /// The plan of every target, in order.
    pub fn plans(&self) -> Vec<&P> {
        match self {
            Asked::Run(run) => vec![&run.plan],
            Asked::Sweep(sweep) => vec![&sweep.base],
            Asked::Find(find) => vec![&find.base],
            Asked::Explain(explain) => vec![&explain.search.base],
            Asked::Overload(overload) => [&overload.search.base].into_iter().chain(overload.against.as_ref()).collect(),
            Asked::Prove(ProveAsked { blocks, .. }) | Asked::Ladder(LadderAsked { blocks }) => {
                blocks.arms.iter().map(|arm| &arm.plan).collect()
            }
        }
    }

    /// The same with other plans.
    pub fn with_plans<Q, E>(self, mut each: impl FnMut(P) -> Result<Q, E>) -> Result<Asked<Q>, E> {
        Ok(match self {
            Asked::Run(RunAsked { plan, stop_if, profiles }) => {
                Asked::Run(RunAsked { plan: each(plan)?, stop_if, profiles })
            }
            Asked::Sweep(SweepAsked { base, levels, lengths, warmup_ns }) => {
                Asked::Sweep(SweepAsked { base: each(base)?, levels, lengths, warmup_ns })
            }
            Asked::Find(find) => Asked::Find(find.with_plan(each)?),
            Asked::Explain(ExplainAsked { search, budget_ns, interventions, flagged, varied }) => {
                Asked::Explain(ExplainAsked {
                    search: search.with_plan(each)?,
                    budget_ns,
                    interventions,
                    flagged,
                    varied,
                })
            }
            Asked::Overload(OverloadAsked { search, line_rps, budget_ns, retries, against }) => {
                let search = search.with_plan(&mut each)?;
                let against = against.map(each).transpose()?;
                Asked::Overload(OverloadAsked { search, line_rps, budget_ns, retries, against })
            }
            Asked::Prove(ProveAsked { blocks, criterion, margin, profiles }) => {
                Asked::Prove(ProveAsked { blocks: blocks.with_plans(each)?, criterion, margin, profiles })
            }
            Asked::Ladder(LadderAsked { blocks }) => Asked::Ladder(LadderAsked { blocks: blocks.with_plans(each)? }),
        })
    }
}

impl Asked<Plan> {
    /// What is recorded of it.
    pub fn record(&self) -> Asked {
        let record = |plan: Plan| Ok::<_, Infallible>(plan.record());
        match self.clone().with_plans(record) {
            Ok(asked) => asked,
        }
    }
}

impl Asked {
    /// The words of all of them.
    pub const WORDS: [&'static str; 7] = ["run", "sweep", "find", "explain", "overload", "prove", "ladder"];

    /// The word of the study.
    pub fn word(&self) -> &'static str {
        let place = match self {
            Asked::Run(_) => 0,
            Asked::Sweep(_) => 1,
            Asked::Find(_) => 2,
            Asked::Explain(_) => 3,
            Asked::Overload(_) => 4,
            Asked::Prove(_) => 5,
            Asked::Ladder(_) => 6,
        };
        Self::WORDS[place]
    }

    /// The plan that all loads share, but for what each sets itself; of several targets that of the
    /// first.
    pub fn base(&self) -> Option<&PlanRecord> {
        match self {
            Asked::Run(run) => Some(&run.plan),
            Asked::Sweep(sweep) => Some(&sweep.base),
            Asked::Find(_) | Asked::Explain(_) | Asked::Overload(_) => self.search().map(|search| &search.base),
            Asked::Prove(_) | Asked::Ladder(_) => self.blocks()?.arms.first().map(|arm| &arm.plan),
        }
    }

    /// The search for a load line, where there is one.
    pub fn search(&self) -> Option<&FindAsked> {
        match self {
            Asked::Find(find) => Some(find),
            Asked::Explain(explain) => Some(&explain.search),
            Asked::Overload(overload) => Some(&overload.search),
            Asked::Run(_) | Asked::Sweep(_) | Asked::Prove(_) | Asked::Ladder(_) => None,
        }
    }

    /// The blocks of a comparison or a ladder.
    pub fn blocks(&self) -> Option<&BlocksAsked> {
        match self {
            Asked::Prove(prove) => Some(&prove.blocks),
            Asked::Ladder(ladder) => Some(&ladder.blocks),
            Asked::Run(_) | Asked::Sweep(_) | Asked::Find(_) | Asked::Explain(_) | Asked::Overload(_) => None,
        }
    }

    /// Profiles to be taken afterwards.
    pub fn profiles(&self) -> Option<&ProfilesAsked> {
        match self {
            Asked::Run(run) => run.profiles.as_ref(),
            Asked::Find(_) | Asked::Explain(_) | Asked::Overload(_) => self.search()?.profiles.as_ref(),
            Asked::Prove(prove) => prove.profiles.as_ref(),
            Asked::Sweep(_) | Asked::Ladder(_) => None,
        }
    }

    /// What a profile is of, in a word that may stand in a file's name: `low`, `line`, `load`;
    /// `a1`, `b2` of a side.
    pub fn profile_name(&self, tag: &Tag) -> String {
        debug_assert_eq!(tag.purpose, Purpose::Profile);
        match (self, tag.arm, tag.turn) {
            (_, Some(arm), turn) => format!("{}{}", arm.letter().to_ascii_lowercase(), turn + 1),
            (_, None, 0) => "low".to_owned(),
            (Asked::Find(_) | Asked::Explain(_), None, _) => "line".to_owned(),
            (_, None, _) => "load".to_owned(),
        }
    }
}
