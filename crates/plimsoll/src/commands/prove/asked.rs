//! What a comparison was asked to do: flags become arms, a measure and limits, checked before anything is started.

use super::profiles::AskedProfiles;
use crate::args_prove::ProveArgs;
use crate::failure::Failure;
use crate::probes::{Finder, FoundServer};
use crate::quantity::{positive, positive_time};
use crate::resolve::Base;
use crate::runner::builds::BuildTarget;
use crate::secrets::command_shown;
use crate::traffic_file;
use plimsoll_analysis::prove::past::{Past, pasts_differ};
use plimsoll_analysis::prove::{Rules, arm_name};
use plimsoll_analysis::study::climb::WARMUP_FRESH_NS;
use plimsoll_model::bounds::ARMS;
use plimsoll_model::units::{parse_duration_ns, parse_number};
use plimsoll_model::{ArmIndex, BlocksAsked, Criterion, LadderAsked, ProveAsked, Purpose, Tag};
use plimsoll_report::format::{duration, flag_time};
use plimsoll_report::measure_text;
use plimsoll_sys::group::CpuClocks;
use plimsoll_sys::probe::process::{look_at, ticks_per_second};
use std::time::Duration;

/// Everything that was asked.
pub struct ProveSetup {
    pub arms: Vec<BuildTarget>,
    pub settings: Rules,
    pub ladder: bool,
    pub budget_ns: u64,
    pub users: Option<u64>,
    pub rate: Option<f64>,
    pub load_ns: Option<u64>,
    /// As asked for; `None`: as long as the targets need.
    pub warmup_ns: Option<u64>,
    pub start_patience: Duration,
    pub before_block: Option<String>,
    /// Whether records and reports may have the commands as they are.
    pub whole_commands: bool,
    /// Blocks that others disturbed count, too.
    pub count_disturbed: bool,
    pub fail_if_worse: bool,
    pub profiles: Option<AskedProfiles>,
}

impl ProveSetup {
    /// What is going to be found out, in a sentence.
    pub fn question(&self) -> String {
        let budget = duration(self.budget_ns as f64);
        match self.ladder {
            true => format!("what does each of {} rungs leave of the one before? ({budget} at most)", self.arms.len()),
            false => format!("is B better than A? {} decides ({budget} at most)", measure_text(self.settings.primary)),
        }
    }
}

/// What is known of the past of a server on this machine.
fn past(found: &FoundServer) -> Option<Past> {
    let started = |pid: &u32| look_at(*pid, &mut Vec::new()).ok().map(|(stat, _)| stat.started_ticks);
    let first_s = found.roots.iter().filter_map(started).min()? as f64 / ticks_per_second() as f64;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime_s: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let cpu_s = CpuClocks::below(&found.roots).cpu_ns() as f64 / 1e9;
    Some(Past { age_s: (uptime_s - first_s).max(0.0), cpu_s })
}

fn margin(text: &str) -> Result<f64, Failure> {
    let bad =
        || Failure::usage(format!("--margin: '{text}' is not a percentage between 0 and 100; write for example 2%"));
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()).ok_or_else(bad)?;
    if percent > 0.0 && percent < 100.0 { Ok(percent / 100.0) } else { Err(bad()) }
}

fn measure(text: &str) -> Result<Criterion, Failure> {
    let bad = || Failure::usage(format!("--measure: '{text}' is not goodput, p50, p99 or cpu"));
    Criterion::named(text).ok_or_else(bad)
}

impl ProveSetup {
    pub fn of(args: &ProveArgs) -> Result<ProveSetup, Failure> {
        let commands = args.a.is_some();
        // Without a URL the file says where, or --target does.
        let urls: Vec<Option<&String>> =
            std::iter::once(args.request.url.as_ref()).chain(args.more.iter().map(Some)).collect();
        let targets = urls.len();
        match (commands, args.ladder, targets) {
            (true, _, 1) | (false, false, 2) => {}
            (false, true, targets) if ARMS.contains(&targets) => {}
            (true, _, _) => return Err(Failure::usage("--a and --b: one URL, at which both builds answer")),
            (false, true, _) => return Err(Failure::usage(format!("--ladder: 2 to {} URLs, one a rung", ARMS.end()))),
            (false, false, 1) => {
                return Err(Failure::usage(
                    "a comparison needs two targets: give a second URL, or --a CMD and --b CMD",
                ));
            }
            (false, false, _) => return Err(Failure::usage("two URLs are compared; for more add --ladder")),
        }
        let primary = measure(&args.measure)?;
        if args.ladder && primary != Criterion::Goodput {
            return Err(Failure::usage("--ladder: rungs are compared by goodput; leave --measure out"));
        }
        if args.concurrency.is_some() && primary.at_fixed_rate() {
            return Err(Failure::usage(format!("-c: {} is taken at a fixed rate; set --rate", primary.word())));
        }
        if args.rate.is_some() && !primary.at_fixed_rate() {
            return Err(Failure::usage(format!("--rate: {} is taken with a number of users; set -c", primary.word())));
        }
        if args.generator.arrivals.is_some() && !primary.at_fixed_rate() {
            return Err(Failure::usage("--arrivals: only the load of p50 and p99 has arrivals to space"));
        }
        if args.request.max_connections.is_some() && !primary.at_fixed_rate() {
            return Err(Failure::usage("--max-connections: a closed load has one connection for each user; set -c"));
        }
        let blocks_max = args.blocks.as_deref().map(|text| positive("--blocks", text)).transpose()?;
        let users = args.concurrency.as_deref().map(|text| positive("--concurrency", text)).transpose()?;
        if users.is_some_and(|users| users > 1_000_000) {
            return Err(Failure::usage("--concurrency: at most 1M users"));
        }
        let rate = match args.rate.as_deref().map(parse_number).transpose() {
            Ok(rate) if rate.is_none_or(|rate| rate > 0.0 && rate <= 1e8) => rate,
            Ok(_) => return Err(Failure::usage("--rate: more than 0 and at most 100M requests a second")),
            Err(error) => return Err(Failure::usage(format!("--rate: {error}"))),
        };
        let load_ns = args.load_time.as_deref().map(|text| positive_time("--for", text)).transpose()?;
        let warmup_ns = args.warmup.as_deref().map(parse_duration_ns).transpose();
        let warmup_ns = warmup_ns.map_err(|e| Failure::usage(format!("--warmup: {e}")))?;
        let fail_if_worse = match args.fail_if.as_deref() {
            None => false,
            Some("worse") if !args.ladder => true,
            Some("worse") => return Err(Failure::usage("--fail-if: a ladder has no verdict")),
            Some(other) => {
                return Err(Failure::usage(format!(
                    "--fail-if: '{other}' is no verdict to fail on; a comparison knows one: worse (of --measure goodput, p50, \
                     p99 or cpu)"
                )));
            }
        };
        let margin = margin(&args.margin)?;
        let budget_ns = positive_time("--budget", &args.budget)?;
        let start_patience = Duration::from_nanos(positive_time("--start-timeout", &args.start_timeout)?);
        if let Some(load_ns) = load_ns {
            let warmup_ns = warmup_ns.unwrap_or(if commands { WARMUP_FRESH_NS } else { 0 });
            let sides = if commands { 2 } else { targets as u64 };
            let block_ns = (load_ns.saturating_add(warmup_ns)).saturating_mul(sides);
            // What finds the load takes a quarter of the budget.
            if block_ns > budget_ns / 4 * 3 {
                return Err(Failure::usage(format!(
                    "--for {}: a block is such a load on each of {sides} sides, and --budget {} does not hold one: give at least \
                     --budget {}, or a shorter --for",
                    args.load_time.as_deref().unwrap_or_default(),
                    args.budget,
                    flag_time(block_ns.saturating_mul(4).div_ceil(3))
                )));
            }
        }
        let mut arms = Vec::new();
        for url in urls {
            let mut request = args.request.clone();
            request.url = url.cloned();
            let base = Base::new(&request, &args.generator)?;
            traffic_file::rows_again(&base.plan)?;
            arms.push(BuildTarget { base, command: None, finder: None });
        }
        if let (Some(a), Some(b)) = (&args.a, &args.b) {
            let base = arms[0].base.clone();
            arms = [a, b].map(|it| BuildTarget { base: base.clone(), command: Some(it.clone()), finder: None }).into();
        }
        for (number, arm) in arms.iter_mut().enumerate().filter(|(_, arm)| arm.command.is_none()) {
            let finder = Finder::of_listener(&arm.base);
            if let (Criterion::Cpu, Err(reason)) = (primary, finder.first()) {
                return Err(Failure::usage(format!("--measure cpu: of {}, {reason}", arm_name(number as u8))));
            }
            arm.finder = Some(finder);
        }
        let address_b = arms.get(1).unwrap_or(&arms[0]);
        let profiles = AskedProfiles::of(args, [&arms[0].base.address, &address_b.base.address])?;
        // Both sides meet the same arrivals: one seed for all.
        let seed = arms[0].base.plan.load.seed;
        for arm in &mut arms {
            arm.base.plan.load.seed = seed;
        }
        let settings = Rules { primary, margin, blocks_max: blocks_max.map(|blocks| blocks as usize), seed };
        Ok(ProveSetup {
            arms,
            settings,
            ladder: args.ladder,
            budget_ns,
            users,
            rate,
            load_ns,
            warmup_ns,
            start_patience,
            before_block: args.before_block.clone(),
            whole_commands: args.record_commands,
            count_disturbed: args.count_disturbed,
            fail_if_worse,
            profiles,
        })
    }

    /// Of two URLs: what to warn about where their processes have different pasts, and what to say in any case, unless it is
    /// one server.
    pub fn pasts(&self) -> (Option<String>, Option<&'static str>) {
        let [a, b] = self.arms.as_slice() else { return (None, None) };
        let (Some(a), Some(b)) = (&a.finder, &b.finder) else { return (None, None) };
        let (Ok(found_a), Ok(found_b)) = (a.first(), b.first()) else { return (None, None) };
        if self.ladder || found_a.roots == found_b.roots {
            return (None, None);
        }
        let differing = past(found_a).zip(past(found_b)).and_then(|(a, b)| pasts_differ(&a, &b));
        (
            differing,
            Some(
                "two URLs compare two processes as they are: --a CMD --b CMD compares two builds, each started afresh",
            ),
        )
    }

    /// What is recorded of it.
    pub fn recorded(&self) -> plimsoll_model::Asked {
        let name = |arm: &BuildTarget| match &arm.command {
            Some(command) if self.whole_commands => command.clone(),
            Some(command) => command_shown(command),
            None => arm.base.plan.record().traffic.url(),
        };
        let arm = |arm: &BuildTarget| plimsoll_model::Arm {
            name: name(arm),
            plan: arm.base.plan.record(),
            started: arm.command.is_some(),
        };
        let blocks = BlocksAsked {
            arms: self.arms.iter().map(arm).collect(),
            users: self.users,
            rate: self.rate,
            arrivals: self.arms[0].base.arrivals,
            load_ns: self.load_ns,
            warmup_ns: self.warmup_ns,
            budget_ns: self.budget_ns,
            blocks_max: self.settings.blocks_max.map(|blocks| blocks as u64),
            count_disturbed: self.count_disturbed,
        };
        match self.ladder {
            true => plimsoll_model::Asked::Ladder(LadderAsked { blocks }),
            false => plimsoll_model::Asked::Prove(ProveAsked {
                blocks,
                criterion: self.settings.primary,
                margin: self.settings.margin,
                profiles: self.profiles.as_ref().map(AskedProfiles::recorded),
            }),
        }
    }

    /// The place of a load on an arm.
    pub fn tag(&self, purpose: Purpose, arm: u8, turn: usize) -> Tag {
        let arm = if self.ladder { ArmIndex::Rung(arm) } else { ArmIndex::Side(arm) };
        Tag { purpose, arm: Some(arm), turn: turn as u32 }
    }
}
