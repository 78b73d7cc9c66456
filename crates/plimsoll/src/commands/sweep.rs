//! `plimsoll sweep`: one load for each of several concurrencies.
//!
//! A level that is as long as it needs has a short trial beforehand: what that one varies says how long the level must be
//! measured. The trial counts for nothing else.

use super::{diff, note_ports, preflight, print, print_json, print_report, report};
use crate::args::SweepArgs;
use crate::capacity::{self, Limits};
use crate::failure::{Failure, exit};
use crate::live::Live;
use crate::meant::{self, Base};
use crate::output;
use crate::pictures::write_chart;
use crate::probes::Watcher;
use crate::progress::Meter;
use crate::recording::Recording;
use crate::target::system_text;
use plimsoll_analysis::levels::{self, Level, Over, SHARE_MIN_NS};
use plimsoll_analysis::{Conditions, ServerUse, Summary, series};
use plimsoll_model::units::{MS, SECOND, parse_count, parse_duration_ns};
use plimsoll_model::{
    Curve, Experiment, Injector, Lengths, Noted, Plan, Purpose, Remark, Stop, SweepAsked, Tag, Trial,
};
use plimsoll_report::chart::{PICTURE_SUFFIX, Theme, heading, success_chart, throughput_chart};
use plimsoll_report::{
    Around, Progress, Report, ServerView, SweepFigures, SweepLevel, dat_line, format, is_level, json, load_text,
    peak_and_knee, server_document, sweep_header, sweep_lengths, sweep_page, sweep_report, sweep_row,
};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;

/// The concurrencies of the usual script, and how long each is held.
const FULL: [u64; 10] = [200, 500, 1000, 3000, 5000, 10_000, 15_000, 20_000, 25_000, 50_000];
const FULL_NS: u64 = 300 * SECOND;
/// Else users double up to this many.
const DOUBLED_MAX: u64 = 512;
/// Chosen concurrencies without a time are each held for this long.
const CHOSEN_NS: u64 = 10 * SECOND;
const BUDGET_NS: u64 = 60 * SECOND;
/// Before a level that is as long as it needs: what comes just after connections were opened is not measured.
const WARMUP_NS: u64 = 200 * MS;
/// Answers under way at the end of a level are waited for at least so long.
const GRACE_MIN_NS: u64 = 500 * MS;

/// What a sweep was asked.
#[derive(Debug)]
struct Asked {
    levels: Vec<u64>,
    lengths: Lengths,
    warmup_ns: u64,
}

impl Asked {
    fn of(args: &SweepArgs) -> Result<Asked, Failure> {
        let time = |flag: &str, text: &Option<String>| {
            text.as_deref().map(|text| meant::positive_time(flag, text)).transpose()
        };
        let (each_ns, budget_ns) = (time("--for", &args.level_time)?, time("--budget", &args.budget)?);
        if args.full && args.concurrency.is_some() {
            return Err(Failure::usage("--full and --concurrency: both choose the concurrencies; leave one out"));
        }
        if budget_ns.is_some() && (each_ns.is_some() || args.full) {
            let flag = if args.full { "--full" } else { "--for" };
            return Err(Failure::usage(format!("--budget and {flag}: both say how long levels are; leave one out")));
        }
        let chosen = args.concurrency.as_deref().map(levels).transpose()?;
        let lengths = match (each_ns, budget_ns, args.full) {
            (Some(ns), ..) => Lengths::Fixed(ns),
            (None, Some(ns), _) => Lengths::Budget(ns),
            (None, None, true) => Lengths::Fixed(FULL_NS),
            (None, None, false) if chosen.is_some() => Lengths::Fixed(CHOSEN_NS),
            (None, None, false) => Lengths::Budget(BUDGET_NS),
        };
        let levels = match (chosen, args.full) {
            (Some(chosen), _) => chosen,
            (None, true) => FULL.to_vec(),
            (None, false) => {
                std::iter::successors(Some(1), |users| Some(users * 2)).take_while(|u| *u <= DOUBLED_MAX).collect()
            }
        };
        if let Lengths::Budget(ns) = lengths
            && ns < levels.len() as u64 * SHARE_MIN_NS
        {
            return Err(Failure::usage(format!(
                "--budget: {} levels need at least {}; give more time, or fewer levels with -c",
                levels.len(),
                format::duration((levels.len() as u64 * SHARE_MIN_NS) as f64)
            )));
        }
        let warmup_ns = match (&args.warmup, lengths) {
            (Some(text), _) => parse_duration_ns(text).map_err(|e| Failure::usage(format!("--warmup: {e}")))?,
            (None, Lengths::Budget(_)) => WARMUP_NS,
            (None, Lengths::Fixed(_)) => 0,
        };
        Ok(Asked { levels, lengths, warmup_ns })
    }

    /// How long the sweep takes at most, s.
    fn total_s(&self) -> f64 {
        let ns = match self.lengths {
            Lengths::Budget(ns) => ns,
            Lengths::Fixed(ns) => (ns + self.warmup_ns) * self.levels.len() as u64,
        };
        ns as f64 / 1e9
    }
}

fn levels(text: &str) -> Result<Vec<u64>, Failure> {
    let levels: Result<Vec<u64>, _> = text.split(',').map(parse_count).collect();
    let levels = levels.map_err(|e| Failure::usage(format!("--concurrency: {e}")))?;
    match levels.iter().find(|level| !(1..=1_000_000).contains(*level)) {
        Some(level) => Err(Failure::usage(format!("--concurrency: {level} is not between 1 and 1M users"))),
        None => Ok(levels),
    }
}

/// A sweep under way: what its loads need beside their plans.
struct Sweeping<'a> {
    asked: &'a Asked,
    recording: Recording,
    live: Live,
    meter: Meter,
    limits: Limits,
}

impl Sweeping<'_> {
    /// Drives one load of a level.
    fn drive(&mut self, tag: Tag, plan: &Plan, injector: &Injector, number: usize) -> Result<&Trial, Failure> {
        let (live, meter, server) = (&mut self.live, &mut self.meter, self.recording.live_server());
        let (began_s, total_s) = (self.recording.elapsed_ns() as f64 / 1e9, self.asked.total_s());
        let number_of = self.asked.levels.len();
        meter.next_load();
        let trial = self.recording.drive(tag, plan, injector, &mut |tick| {
            live.passing(&Progress {
                doing: format!("{}, level {} of {number_of}", load_text(&plan.load.shape), number + 1),
                elapsed_s: began_s + tick.end_ns as f64 / 1e9,
                total_s: Some(total_s),
                server_cores: server.cores(),
                ..meter.push(tick)
            });
            match plimsoll_sys::signal::interrupted() {
                true => ControlFlow::Break(Stop::Interrupted),
                false => ControlFlow::Continue(()),
            }
        })?;
        live.clear();
        Ok(trial)
    }

    /// How long to measure a level, after a trial of it; why not, where no time is left.
    fn length(&mut self, plan: &mut Plan, injector: &Injector, number: usize) -> Result<Result<u64, String>, Failure> {
        let budget_ns = match self.asked.lengths {
            Lengths::Fixed(ns) => return Ok(Ok(ns)),
            Lengths::Budget(ns) => ns,
        };
        let left_ns = budget_ns.saturating_sub(self.recording.elapsed_ns());
        let share_ns = left_ns / (self.asked.levels.len() - number) as u64;
        if share_ns < SHARE_MIN_NS / 2 {
            return Ok(Err("the time was used up before (--budget)".into()));
        }
        let mut pilot = plan.clone();
        pilot.load.duration_ns = Some(levels::pilot_ns(share_ns));
        pilot.load.warmup_ns = 0;
        pilot.load.grace_ns = pilot.load.grace_ns.min(share_ns / 4);
        let warmup_ns = plan.load.warmup_ns;
        let ended_by_ns = self.recording.elapsed_ns() + share_ns;
        let trial = self.drive(tag(Purpose::Settle, number), &pilot, injector, number)?;
        let (run, slowest_ns) = (trial.run.clone(), Summary::of(&trial.run).response.max_ns);
        let rest_ns = ended_by_ns.saturating_sub(self.recording.elapsed_ns()).saturating_sub(warmup_ns);
        let length_ns = levels::length_ns(&run, rest_ns.saturating_sub(slowest_ns.min(rest_ns / 2)));
        let over_ns = self.recording.elapsed_ns() + warmup_ns + length_ns;
        plan.load.grace_ns = plan.load.grace_ns.min(budget_ns.saturating_sub(over_ns).max(GRACE_MIN_NS));
        Ok(Ok(length_ns))
    }

    /// Measures one level.
    fn level(&mut self, base: &Base, concurrency: u64, number: usize) -> Result<SweepLevel, Failure> {
        let mut plan = base.closed(Curve::constant(concurrency as f64));
        plan.load.warmup_ns = self.asked.warmup_ns;
        plan.load.connections_ready = concurrency as u32;
        let mut injector = base.injector_for(&plan.load);
        let fitted = capacity::fit(&mut plan, &mut injector, base.fixed, base.local, &self.limits);
        let length_ns = match fitted {
            Err(reason) => Err(reason),
            Ok(adapted) => {
                adapted.iter().for_each(|sentence| self.live.line(sentence));
                self.length(&mut plan, &injector, number)?
            }
        };
        match length_ns {
            Err(reason) => {
                self.recording.remark(Remark::Unheld { tag: tag(Purpose::Level, number), reason: reason.clone() });
                Ok(SweepLevel { concurrency, outcome: Err(reason), server: None })
            }
            Ok(length_ns) => {
                plan.load.duration_ns = Some(length_ns);
                let trial = self.drive(tag(Purpose::Level, number), &plan, &injector, number)?;
                let level = measured(trial).ok_or_else(|| Failure::start("a level was not as it was planned"))?;
                if let Ok(figures) = &level.outcome {
                    note_ports(&mut self.live, &figures.summary);
                }
                Ok(level)
            }
        }
    }
}

/// The place of a load of the level `number`.
fn tag(purpose: Purpose, number: usize) -> Tag {
    Tag { turn: number as u32, ..Tag::of(purpose) }
}

/// The level that a load measured; `None` where it is none.
fn measured(trial: &Trial) -> Option<SweepLevel> {
    let (Over::Concurrency, level) = Level::of(&trial.run)? else { return None };
    let run = &trial.run;
    let figures = SweepFigures { summary: Summary::of(run), error: series::goodput_error(run), level: level.clone() };
    let server = ServerUse::of(run).ok();
    Some(SweepLevel { concurrency: level.load as u64, outcome: Ok(figures), server })
}

/// Sweeps, reports, and says with which code to end.
pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let asked = Asked::of(args)?;
    let fail_if = args.fail_if.as_deref().map(Conditions::parse).transpose();
    let fail_if = fail_if.map_err(|e| Failure::usage(format!("--fail-if: {e}")))?;
    if args.name.is_empty() || args.name.contains('/') {
        return Err(Failure::usage("--name: a file name without '/'; the folder is --dir"));
    }
    let base = Base::new(&args.request, &args.generator)?;
    if args.generator.arrivals.is_some() || args.request.max_connections.is_some() {
        return Err(Failure::usage("--arrivals and --max-connections: a sweep is a closed load; they do not apply"));
    }
    let noted: Vec<String> = preflight(&base.plan, &base.injector, args.request.no_preflight)?.into_iter().collect();
    let watcher = Watcher::begin(&args.probes, &base)?;
    let mut live = Live::new(args.out.quiet);
    noted.iter().for_each(|warning| live.note(&format!("warning: {warning}")));
    let run_path = args.dir.join(format!("{}.plimsoll", args.name));
    let dat_path = args.dir.join(format!("{}.dat", args.name));
    let question = plimsoll_model::Asked::Sweep(SweepAsked {
        base: base.plan.clone(),
        levels: asked.levels.clone(),
        lengths: asked.lengths,
        warmup_ns: asked.warmup_ns,
    });
    let before = Noted { warnings: noted.clone(), fitted: Vec::new() };
    let mut recording = Recording::begin(question, before, base.local, &base.injector, Some(&run_path))?;
    recording.watch(watcher);
    let cannot =
        |e: std::io::Error| Failure::start(format!("'{}' cannot be written: {}", dat_path.display(), system_text(&e)));
    let mut dat = File::create(&dat_path).map_err(cannot)?;
    if !args.out.json {
        print(&format!("{}\n", sweep_header(columns())));
    }
    let limits = Limits::of_machine();
    let mut sweeping = Sweeping { asked: &asked, recording, live, meter: Meter::default(), limits };
    for (number, concurrency) in asked.levels.iter().enumerate() {
        if plimsoll_sys::signal::interrupted() {
            break;
        }
        let level = sweeping.level(&base, *concurrency, number)?;
        sweeping.live.clear();
        if !args.out.json {
            print(&format!("{}\n", sweep_row(&level, columns())));
        }
        if let Some(line) = dat_line(&level) {
            // What is measured next is worth having without the table, too.
            if let Err(error) = dat.write_all(line.as_bytes()) {
                output::failed(cannot(error).to_string());
            }
        }
    }
    let Sweeping { recording, mut live, .. } = sweeping;
    let (experiment, note) = recording.end();
    let levels = recorded(&experiment);
    if args.out.json {
        print_json(&document(&experiment));
    } else {
        print("\n");
        print_report(&sweep_report(&experiment, &noted, &levels));
    }
    live.note(&format!("table: {}", dat_path.display()));
    match draw(args, &experiment, &levels) {
        Ok(paths) => paths.iter().for_each(|path| live.note(&format!("chart: {path}"))),
        Err(failure) => output::failed(failure.to_string()),
    }
    for note in report::write_beside(&run_path, &experiment).into_iter().chain(note) {
        live.note(&note);
    }
    let crossed = fail_if.map(|conditions| crossed(&conditions, &experiment)).unwrap_or_default();
    for sentence in &crossed {
        live.note(sentence);
    }
    let succeeded = |trial: &Trial| is_level(trial) && trial.run.totals().ledger.succeeded > 0;
    let anything = experiment.trials.iter().any(succeeded);
    Ok(match (plimsoll_sys::signal::interrupted(), crossed.is_empty() && anything) {
        (true, _) => exit::INTERRUPTED,
        (false, false) => exit::CROSSED,
        (false, true) => exit::DONE,
    })
}

/// The conditions that are crossed at the peak, in words. Where nothing was measured, all are.
fn crossed(conditions: &Conditions, experiment: &Experiment) -> Vec<String> {
    let peak = peak_and_knee(&recorded(experiment)).0;
    let made_it = |trial: &&Trial| is_level(trial) && Level::of(&trial.run).map(|level| level.1) == peak;
    match experiment.trials.iter().find(made_it).filter(|_| peak.is_some()) {
        None => vec!["--fail-if: no request succeeded at any level".to_owned()],
        Some(trial) => {
            let crossed = conditions.crossed(&trial.run).into_iter();
            crossed.map(|crossing| format!("--fail-if {crossing} (at the peak)")).collect()
        }
    }
}

/// Columns of the terminal that the table goes to; `None` where lines may be of any length.
fn columns() -> Option<usize> {
    let terminal = std::io::stdout().is_terminal();
    terminal.then(plimsoll_sys::process::terminal_size).flatten().map(|size| size.0)
}

/// Draws what was measured as `NAME_qps_ttlb` and `NAME_successrate`; nothing where no level could be held.
fn draw(args: &SweepArgs, experiment: &Experiment, levels: &[SweepLevel]) -> Result<Vec<String>, Failure> {
    let Some((over, measured)) = diff::levels(experiment) else { return Ok(Vec::new()) };
    let target = experiment.trials.first().map_or_else(String::new, |t| heading::target(&t.run.plan));
    let subtitle = format!("{target}{}", sweep_lengths(levels));
    let above = (heading::throughput(over, &measured, &subtitle), heading::success(over, &measured, &subtitle));
    let charts = [
        ("qps_ttlb", throughput_chart(&above.0, over, &measured, Theme::Light)),
        ("successrate", success_chart(&above.1, over, &measured, Theme::Light)),
    ];
    let mut written = Vec::new();
    for (what, svg) in charts {
        let path = args.dir.join(format!("{}_{what}.{PICTURE_SUFFIX}", args.name));
        write_chart(&path, &svg)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// The page of a recorded sweep.
pub fn page(experiment: &Experiment, around: &Around) -> Report {
    sweep_page(experiment, &noted(experiment), &recorded(experiment), around)
}

/// What was warned of before the sweep.
fn noted(experiment: &Experiment) -> Vec<String> {
    experiment.noted.warnings.clone()
}

/// The levels of a recorded sweep.
fn recorded(experiment: &Experiment) -> Vec<SweepLevel> {
    let asked = match &experiment.asked {
        plimsoll_model::Asked::Sweep(sweep) => sweep.levels.as_slice(),
        _ => &[],
    };
    let levels = experiment.trials.iter().filter(|trial| is_level(trial)).filter_map(measured);
    let unheld = experiment.remarks.iter().filter_map(|remark| match remark {
        Remark::Unheld { tag, reason } => {
            let concurrency = *asked.get(tag.turn as usize)?;
            Some(SweepLevel { concurrency, outcome: Err(reason.clone()), server: None })
        }
        Remark::Broken { .. } | Remark::Profile(_) => None,
    });
    let mut levels: Vec<SweepLevel> = levels.chain(unheld).collect();
    // As asked for: what could not be held stands in its place.
    levels.sort_by_key(|level| asked.iter().position(|asked| *asked == level.concurrency));
    levels
}

/// Prints the result of a recorded sweep.
pub fn show(experiment: &Experiment) {
    let levels = recorded(experiment);
    let rows = levels.iter().map(|level| sweep_row(level, columns()) + "\n").collect::<String>();
    print(&format!("{}\n{rows}\n", sweep_header(columns())));
    print_report(&sweep_report(experiment, &noted(experiment), &levels));
}

/// The JSON document of a recorded sweep, with what was seen of the server at each level.
pub fn document(experiment: &Experiment) -> serde_json::Value {
    let mut document = json::sweep(experiment, &noted(experiment), &recorded(experiment));
    let trials: Vec<&Trial> = experiment.trials.iter().filter(|trial| is_level(trial)).collect();
    let mut used = vec![false; trials.len()];
    let measured = document["levels"].as_array_mut().into_iter().flatten().filter(|level| level["error"].is_null());
    for level in measured {
        // Levels stand in the order asked for, loads in that of the measurement: each goes to the first of its users.
        let users = level["concurrency"].as_f64().unwrap_or_default();
        let at = (0..trials.len()).find(|at| !used[*at] && trials[*at].run.plan.load.shape.curve().max() == users);
        if let Some(at) = at {
            used[at] = true;
            level["server"] = server_document(&ServerView::of(&trials[at].run));
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    #[test]
    fn what_is_said_chooses_levels_and_lengths() {
        let doubled: Vec<u64> = vec![1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
        for (said, expect) in [
            ("", Ok((doubled.clone(), Lengths::Budget(60 * SECOND), WARMUP_NS))),
            ("--budget 30s", Ok((doubled.clone(), Lengths::Budget(30 * SECOND), WARMUP_NS))),
            ("--for 5s", Ok((doubled.clone(), Lengths::Fixed(5 * SECOND), 0))),
            ("-c 1,2", Ok((vec![1, 2], Lengths::Fixed(10 * SECOND), 0))),
            ("-c 1,2 --for 2s --warmup 1s", Ok((vec![1, 2], Lengths::Fixed(2 * SECOND), SECOND))),
            ("-c 1,2 --budget 10s --warmup 0s", Ok((vec![1, 2], Lengths::Budget(10 * SECOND), 0))),
            ("--full", Ok((FULL.to_vec(), Lengths::Fixed(300 * SECOND), 0))),
            ("--full --for 1m", Ok((FULL.to_vec(), Lengths::Fixed(60 * SECOND), 0))),
            ("--full -c 1", Err("--full and --concurrency")),
            ("--full --budget 1m", Err("--budget and --full")),
            ("--for 1s --budget 1m", Err("--budget and --for")),
            ("--budget 2s", Err("10 levels need at least 5.00 s")),
            ("--budget 0s", Err("--budget")),
            ("-c 1,0", Err("--concurrency")),
        ] {
            let words = ["plimsoll", "sweep", "http://127.0.0.1:9/"].into_iter().chain(said.split_whitespace());
            let Command::Sweep(args) = Cli::try_parse_from(words).expect("parses").command else { panic!("{said}") };
            match (Asked::of(&args), expect) {
                (Ok(asked), Ok(expect)) => assert_eq!((asked.levels, asked.lengths, asked.warmup_ns), expect, "{said}"),
                (Err(failure), Err(part)) => assert!(failure.to_string().contains(part), "{said}: {failure}"),
                (got, want) => panic!("{said}: {got:?}, expected {want:?}"),
            }
        }
    }
}
