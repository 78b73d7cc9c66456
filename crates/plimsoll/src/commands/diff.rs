//! `plimsoll diff`: two recordings beside each other, as a table and as charts: levels (sweeps,
//! runs of one load, `.dat` files) or searches for the load line. It compares what two files hold
//! and claims nothing beyond: which of two servers is better is for a command that runs both.

use crate::args::DiffArgs;
use crate::commands::stored_run::named_file;
use crate::pictures::write_chart;
use crate::results::page::names_apart;
use crate::results::{
    self, RecordedSearch, decode, flame_difference, levels, print, print_json, print_screen, searched,
};
use plimsoll_analysis::history::incomparability;
use plimsoll_analysis::levels::{Level, LoadUnit, parse_dat};
use plimsoll_history::read_run;
use plimsoll_model::codec::is_run_file;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::chart::{NamedLevels, PICTURE_SUFFIX, Theme, heading, success_diff_chart, throughput_diff_chart};
use plimsoll_report::{
    DiffSide, Report, SearchSide, diff_document, diff_report, searches_chart, searches_document, searches_report,
};
use plimsoll_study::output::note;
use plimsoll_sys::files::{self, Use};
use std::path::Path;

/// What a file holds that can be compared.
enum DiffInput {
    /// Loads, each with its figures.
    Levels(RecordedLevels),
    /// A search for the load line.
    Search(Box<RecordedSearch>),
}

struct RecordedLevels {
    over: LoadUnit,
    levels: Vec<Level>,
}

impl DiffInput {
    /// What kind it is, in words.
    fn kind(&self) -> &'static str {
        match self {
            DiffInput::Levels(RecordedLevels { over: LoadUnit::Concurrency, .. }) => "loads of concurrent users",
            DiffInput::Levels(RecordedLevels { over: LoadUnit::Rate, .. }) => "loads of requests a second",
            DiffInput::Levels(RecordedLevels { over: LoadUnit::Sessions, .. }) => "loads of sessions a second",
            DiffInput::Search(_) => "a search for the load line",
        }
    }
}

fn read(path: &Path) -> Result<DiffInput, Failure> {
    let shown = path.display();
    let bytes = files::read_as(path, |first| if is_run_file(first) { Use::RunFile } else { Use::Dat })
        .map_err(|why| Failure::start(format!("'{shown}' {why}")))?;
    if is_run_file(&bytes) {
        let experiment = decode(path, &bytes)?;
        if experiment.asked.blocks().is_some() {
            return Err(Failure::usage(format!(
                "'{shown}' contains a comparison already (plimsoll show prints its verdict); diff compares \
                 sweeps, runs of one load, .dat files, and searches"
            )));
        }
        if let Some(found) = searched(&experiment)? {
            return Ok(DiffInput::Search(Box::new(found)));
        }
        let (over, levels) = levels(&experiment).ok_or_else(|| {
            Failure::usage(format!(
                "'{shown}' contains no constant load; diff compares sweeps and runs of one constant load"
            ))
        })?;
        return Ok(DiffInput::Levels(RecordedLevels { over, levels }));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("'{shown}' is neither a run file nor the text of a .dat file")))?;
    let levels = parse_dat(&text).map_err(|e| Failure::usage(format!("'{shown}': {e}")))?;
    Ok(DiffInput::Levels(RecordedLevels { over: LoadUnit::Concurrency, levels }))
}

/// The names of two files in tables and charts: their own where they differ, else with their
/// folders. The third is for files of both.
fn names(args: &DiffArgs) -> ([String; 2], String) {
    let stem = |path: &Path| path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let (a, b) = (stem(&args.a), stem(&args.b));
    let both = format!("{a}_{b}");
    match a == b {
        true => ([args.a.display().to_string(), args.b.display().to_string()], both),
        false => ([a, b], both),
    }
}

/// Says why a difference of two searches would not be the server's, where it would not.
fn warn_of_unlike(args: &DiffArgs) {
    let read = |path: &Path| read_run(path, &path.display().to_string()).ok();
    let (Some(a), Some(b)) = (read(&args.a), read(&args.b)) else { return };
    if a.measure() == "load line" && b.measure() == "load line" {
        for reason in incomparability(&a, &b) {
            note(&format!("warning: a difference may have another cause than the server: {reason}"));
        }
    }
}

/// Compares, reports, and says with which code to end.
pub fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let [a, b] = [&args.a, &args.b].map(|word| named_file(word, args.store.as_deref()));
    let args = &DiffArgs { a: a?, b: b?, ..args.clone() };
    warn_of_unlike(args);
    match (read(&args.a)?, read(&args.b)?) {
        (DiffInput::Search(a), DiffInput::Search(b)) => searches(args, [&a, &b]),
        (DiffInput::Levels(a), DiffInput::Levels(b)) if a.over == b.over => loads(args, &a, &b),
        (a, b) => Err(Failure::usage(format!(
            "'{}' and '{}' are of different kinds: one contains {}, the other {}; give two of one kind",
            args.a.display(),
            args.b.display(),
            a.kind(),
            b.kind()
        ))),
    }
}

/// Says where charts were written, a line each: a place is never broken.
fn print_places(written: &[String]) {
    let lines: String = written.iter().map(|path| format!("chart: {path}\n")).collect();
    print(&format!("\n{lines}"));
}

/// Writes charts; returns where.
fn draw(args: &DiffArgs, charts: &[(String, String)]) -> Result<Vec<String>, Failure> {
    let write = |(name, svg): &(String, String)| {
        let path = args.dir.join(format!("{name}.{PICTURE_SUFFIX}"));
        write_chart(&path, svg).map(|()| path.display().to_string())
    };
    charts.iter().map(write).collect()
}

/// Two recordings beside each other, as a page shows them.
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "the pages show it"))]
pub fn comparison_report(a: &Path, b: &Path) -> Result<Report, Failure> {
    let mut report = figures_compared(a, b)?;
    if let (Ok(first), Ok(second)) = (results::read(a), results::read(b))
        && let Some(flames) = flame_difference((&first, a), (&second, b))
    {
        report.append(flames);
    }
    Ok(report)
}

/// The figures of two recordings beside each other.
fn figures_compared(a: &Path, b: &Path) -> Result<Report, Failure> {
    let names = names_apart(a, b);
    match (read(a)?, read(b)?) {
        (DiffInput::Search(first), DiffInput::Search(second)) => {
            // A page says nothing of where the store is.
            let files = [a, b].map(file_name);
            let sides = sides([&files[0], &files[1]].map(Path::new), &names, [&first, &second]);
            let mut charts = Report::default();
            charts.drawn(|theme| searches_chart(&sides, theme), &[], Vec::new());
            let mut report = searches_report(&sides);
            report.after_answer(charts);
            Ok(report)
        }
        (DiffInput::Levels(first), DiffInput::Levels(second)) if first.over == second.over => {
            let sides = [(a, &names[0], &first), (b, &names[1], &second)];
            let sides =
                sides.map(|(path, name, recorded)| DiffSide { file: file_name(path), name, levels: &recorded.levels });
            Ok(diff_report(first.over, &sides))
        }
        (first, second) => Err(Failure::usage(format!(
            "these runs are of different kinds: one contains {}, the other {}",
            first.kind(),
            second.kind()
        ))),
    }
}

/// The name of a file without its folders.
fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn sides<'a>(files: [&Path; 2], names: &'a [String; 2], found: [&'a RecordedSearch; 2]) -> [SearchSide<'a>; 2] {
    [0, 1].map(|n| SearchSide {
        file: files[n].display().to_string(),
        name: &names[n],
        url: found[n].url.clone(),
        target: found[n].target.clone(),
        findings: &found[n].findings,
        cpu_us: found[n].cpu_us,
    })
}

/// Two searches.
fn searches(args: &DiffArgs, found: [&RecordedSearch; 2]) -> Result<u8, Failure> {
    let (names, both) = names(args);
    let sides = sides([&args.a, &args.b], &names, found);
    let written = draw(args, &[(format!("{both}.line.diff"), searches_chart(&sides, Theme::Light))])?;
    if args.json {
        print_json(&searches_document(&sides, &written));
    } else {
        print_screen(&searches_report(&sides), written.len() + 1, "--json");
        print_places(&written);
    }
    Ok(exit::DONE)
}

/// Two recordings of loads.
fn loads(args: &DiffArgs, a: &RecordedLevels, b: &RecordedLevels) -> Result<u8, Failure> {
    let (names, both) = names(args);
    let (first, second) = ((names[0].as_str(), a.levels.as_slice()), (names[1].as_str(), b.levels.as_slice()));
    let recorded = [first, second].map(|(name, levels)| NamedLevels { name, levels });
    let charts = [
        (
            format!("{both}.qps.ttlb.diff"),
            throughput_diff_chart(&heading::throughput_diff(first, second), a.over, recorded, Theme::Light),
        ),
        (
            format!("{both}.success_rate.diff"),
            success_diff_chart(&heading::success_diff(first, second), a.over, recorded, Theme::Light),
        ),
    ];
    let written = draw(args, &charts)?;
    let sides = [(&args.a, first), (&args.b, second)].map(|(path, (name, levels))| DiffSide {
        file: path.display().to_string(),
        name,
        levels,
    });
    if args.json {
        print_json(&diff_document(a.over, &sides, &written));
    } else {
        print_screen(&diff_report(a.over, &sides), written.len() + 1, "--json");
        print_places(&written);
    }
    Ok(exit::DONE)
}
