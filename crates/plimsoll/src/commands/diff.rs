//! `plimsoll diff`: compares two recordings in a table and in charts. The recordings contain loads
//! at constant levels (sweeps, single loads, `.dat` files) or searches for the load line. The
//! command only compares the recorded figures. To decide which of two servers is better, `plimsoll
//! prove` applies new loads to both servers.

use crate::args::DiffArgs;
use crate::commands::stored_run::find_stored_run_file;
use crate::pictures::write_chart;
use crate::results::{self, decode_run_file, print, print_json, print_screen, recorded_search};
use plimsoll_analysis::history::incomparability_reasons;
use plimsoll_analysis::levels::{LoadUnit, parse_dat, recorded_levels};
use plimsoll_history::read_run;
use plimsoll_model::codec::is_run_file;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::chart::PICTURE_SUFFIX;
use plimsoll_report::pages::{distinct_names, file_name};
use plimsoll_report::{RecordedInput, RecordedPair, Report, flame_difference};
use plimsoll_study::load_profiles::cpu_profile_of_run;
use plimsoll_study::output::print_to_stderr;
use plimsoll_sys::files::{self, FilePurpose};
use std::path::Path;

fn read_recording(path: &Path) -> Result<RecordedInput, Failure> {
    let file = path.display();
    let bytes = files::read_with_detected_purpose(path, |first| {
        if is_run_file(first) { FilePurpose::RunFile } else { FilePurpose::Dat }
    })
    .map_err(|why| Failure::cannot_start(format!("'{file}' {why}")))?;
    if is_run_file(&bytes) {
        let experiment = decode_run_file(path, &bytes)?;
        if experiment.spec.blocks_spec().is_some() {
            return Err(Failure::usage(format!(
                "'{file}' already contains a comparison, whose result plimsoll show prints; plimsoll diff compares \
                 sweeps, runs of one load, .dat files, and searches"
            )));
        }
        if let Some(found) = recorded_search(&experiment)? {
            return Ok(RecordedInput::Search(Box::new(found)));
        }
        let (over, levels) = recorded_levels(&experiment).ok_or_else(|| {
            Failure::usage(format!(
                "'{file}' contains no constant load; plimsoll diff compares sweeps and runs of one constant load"
            ))
        })?;
        return Ok(RecordedInput::Levels(over, levels));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage(format!(
            "'{file}' is neither a run file nor the text of a .dat file (the table that plimsoll sweep writes)"
        ))
    })?;
    let levels = parse_dat(&text).map_err(|e| Failure::usage(format!("'{file}': {e}")))?;
    Ok(RecordedInput::Levels(LoadUnit::Concurrency, levels))
}

/// Returns the names of the two recordings for tables and charts: the stems of their file names if
/// the stems differ, otherwise their paths. Also returns the file stem of the charts, which show
/// both recordings.
fn recording_names(args: &DiffArgs) -> ([String; 2], String) {
    let stem = |path: &Path| path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let (a, b) = (stem(&args.a), stem(&args.b));
    let both = format!("{a}_{b}");
    match a == b {
        true => ([args.a.display().to_string(), args.b.display().to_string()], both),
        false => ([a, b], both),
    }
}

/// Warns if two searches also differ in a condition other than the server, such as the SLO.
fn warn_about_incomparable(args: &DiffArgs) {
    let read = |path: &Path| read_run(path, &path.display().to_string()).ok();
    let (Some(a), Some(b)) = (read(&args.a), read(&args.b)) else { return };
    if a.measure_name() == "load line" && b.measure_name() == "load line" {
        for reason in incomparability_reasons(&a, &b) {
            print_to_stderr(&format!("warning: the results may differ for a reason other than the server: {reason}"));
        }
    }
}

/// Compares two recordings and prints the result. Returns the exit code.
pub fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let [a, b] = [&args.a, &args.b].map(|word| find_stored_run_file(word, args.store.as_deref()));
    let args = &DiffArgs { a: a?, b: b?, ..args.clone() };
    warn_about_incomparable(args);
    let (a, b) = (read_recording(&args.a)?, read_recording(&args.b)?);
    let (names, both) = recording_names(args);
    let files = [&args.a, &args.b].map(|path| path.display().to_string());
    let pair = RecordedPair::new((files[0].clone(), &names[0], &a), (files[1].clone(), &names[1], &b));
    let pair = pair.ok_or_else(|| {
        Failure::usage(format!(
            "'{first_file}' and '{second_file}' are of different kinds: one contains {first_kind}, the other contains \
             {second_kind}; give two files of the same kind",
            first_file = files[0],
            second_file = files[1],
            first_kind = a.kind(),
            second_kind = b.kind()
        ))
    })?;
    let mut written = Vec::new();
    for (end, svg) in pair.draw_charts() {
        let path = args.dir.join(format!("{both}.{end}.{PICTURE_SUFFIX}"));
        write_chart(&path, &svg)?;
        written.push(path.display().to_string());
    }
    if args.json {
        print_json(&pair.comparison_document(&written));
    } else {
        print_screen(&pair.table_report(), written.len() + 1, "--json");
        // The path of each chart is on its own line of text, and the line is never wrapped.
        let lines: String = written.iter().map(|path| format!("chart: {path}\n")).collect();
        print(&format!("\n{lines}"));
    }
    Ok(exit::SUCCESS)
}

/// Returns the comparison of two recordings for a web page. `names` are the names of the recordings
/// on the page; with `None`, the page uses the file names. The page does not reveal the folder of
/// the store.
#[cfg_attr(not(feature = "web"), allow(dead_code, reason = "the pages show it"))]
pub fn comparison_report(a: &Path, b: &Path, names: Option<[&str; 2]>) -> Result<Report, Failure> {
    let names = names.map_or_else(|| distinct_names(a, b), |names| names.map(str::to_owned));
    let (first, second) = (read_recording(a)?, read_recording(b)?);
    let pair = RecordedPair::new((file_name(a), &names[0], &first), (file_name(b), &names[1], &second));
    let mut report = pair.as_ref().map(RecordedPair::page_report).ok_or_else(|| {
        Failure::usage(format!(
            "these runs are of different kinds: one contains {first_kind}, the other contains {second_kind}; choose \
             two runs of the same kind",
            first_kind = first.kind(),
            second_kind = second.kind()
        ))
    })?;
    let cpu = |path: &Path| cpu_profile_of_run(&results::read_run_file(path).ok()?, path);
    if let (Some((before, of_before)), Some((after, of_after))) = (cpu(a), cpu(b)) {
        report.append(flame_difference((&before, of_before), (&after, of_after)));
    }
    Ok(report)
}
