//! `plimsoll profile`: reads or fetches a profile, prints its costliest functions, draws it as a
//! flame graph, or compares two profiles.

use crate::args::ProfileArgs;
use crate::results::{print_json, print_report, print_screen};
use plimsoll_analysis::profile::{
    CostDivisor, FunctionCostOrder, diff, flame_graph_difference_tree, flame_graph_tree, sum_by_function,
};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::flame::FRAMES_MAX;
use plimsoll_report::profile::{diff_document, diff_report, function_table_report, profile_document};
use plimsoll_report::profile_flames::{FlameFormat, render_difference_flame_graph, render_profile_flame_graph};
use plimsoll_study::output::write_and_note;
use plimsoll_study::profile_input::{ProfileChoice, ProfileInput, compile_pattern};
use std::path::Path;

/// The default number of functions that the table of a profile shows.
const ROWS_SHOWN_DEFAULT: usize = 30;

/// The options of `plimsoll profile`, parsed and checked.
struct ProfileOptions<'a> {
    args: &'a ProfileArgs,
    /// The number of table rows, if the user set it.
    rows: Option<usize>,
    sort: FunctionCostOrder,
    choice: ProfileChoice,
}

/// Prints a profile or the difference of two profiles. Returns the exit code.
pub fn run(args: &ProfileArgs) -> Result<u8, Failure> {
    // In `--top FILE`, the word is the profile's file and not the number of rows.
    let (mut source, mut rows) = (args.source.as_deref(), None);
    if let Some(Some(word)) = &args.top {
        match word.parse() {
            Ok(number) => rows = Some(number),
            Err(_) if source.is_none() && args.diff.is_empty() => source = Some(word),
            Err(_) => return Err(Failure::usage(format!("--top takes a number of rows, not '{word}'"))),
        }
    }
    let sort = match args.sort.as_deref() {
        // With --by, groups are at the roots of stacks, so only cumulative sums show the groups.
        None if args.diff.is_empty() || args.by.is_some() => FunctionCostOrder::Cum,
        None | Some("flat") => FunctionCostOrder::Flat,
        Some("cum") => FunctionCostOrder::Cum,
        Some(other) => return Err(Failure::usage(format!("--sort takes flat or cum, not '{other}'"))),
    };
    let (focus, ignore) =
        (compile_pattern("--focus", args.focus.as_ref())?, compile_pattern("--ignore", args.ignore.as_ref())?);
    let by = compile_pattern("--by", args.by.as_ref())?.and_then(|pattern| Some((args.by.clone()?, pattern)));
    for path in &args.output {
        output_file_format(path, !args.diff.is_empty())?;
    }
    let (seconds, allow_public, sample_index) = (args.seconds, args.allow_public, args.sample_index.clone());
    let choice = ProfileChoice { seconds, allow_public, sample_index, focus, ignore, by };
    let options = ProfileOptions { args, rows, sort, choice };
    match (source, args.diff.as_slice()) {
        (Some(_), [_, ..]) => Err(Failure::usage("give either one profile or --diff A B, not both")),
        (Some(source), []) => show_profile(&options, &ProfileInput::read(source, &options.choice)?),
        (None, [before, after]) => show_difference(&options, before, after),
        (None, _) => Err(Failure::usage("give a profile, such as cpu.pb.gz or http://localhost:6060/debug/pprof")),
    }
}

fn show_profile(options: &ProfileOptions, profile_input: &ProfileInput) -> Result<u8, Failure> {
    let (profile, view) = profile_input.profile_and_view();
    let column = profile_input.selected_column();
    let drawn =
        options.args.output.iter().any(|path| !matches!(output_file_format(path, false), Ok(FileFormat::Profile)));
    // The sums by function and the tree of the flame graph are slow to compute for a large profile,
    // and independent. Two threads therefore compute the sums and the tree in parallel.
    let (sums, tree) = std::thread::scope(|scope| {
        let tree = drawn.then(|| scope.spawn(|| flame_graph_tree(profile, view, FRAMES_MAX)));
        let sums = sum_by_function(profile, view, options.sort);
        let tree = tree.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (sums, tree)
    });
    let rows = options.rows.unwrap_or(ROWS_SHOWN_DEFAULT);
    let report =
        function_table_report(profile, column, &sums, rows, options.choice.by.as_ref().map(|(name, _)| name.as_str()));
    for path in &options.args.output {
        match (output_file_format(path, false)?, &tree) {
            (FileFormat::Flame(format), Some(tree)) => {
                let drawn =
                    render_profile_flame_graph((profile, column), (&sums, tree), &profile_input.name, format, &report);
                write_and_note(path, drawn.as_bytes(), "")?;
            }
            _ => write_and_note(path, &profile_input.bytes, "")?,
        }
    }
    if options.args.json {
        print_json(&profile_document(profile.functions(), column, &sums, options.rows.unwrap_or(usize::MAX)));
    } else if options.rows.is_some() {
        print_report(&report);
    } else {
        let by = options.choice.by.as_ref().map(|(name, _)| name.as_str());
        print_screen(&function_table_report(profile, column, &sums, usize::MAX, by), 0, "--top N");
    }
    Ok(exit::SUCCESS)
}

fn show_difference(options: &ProfileOptions, before: &str, after: &str) -> Result<u8, Failure> {
    let basis = match (options.args.requests_a, options.args.requests_b) {
        (None, None) => CostDivisor::Shares,
        (Some(before), Some(after)) if before > 0 && after > 0 => {
            CostDivisor::Requests { before: before as f64, after: after as f64 }
        }
        (Some(_), Some(_)) => return Err(Failure::usage("--requests-a and --requests-b must be at least 1")),
        _ => return Err(Failure::usage("give both --requests-a and --requests-b: costs are compared per request")),
    };
    let read = |source: &str| ProfileInput::read(source, &options.choice);
    let (before, after) = (read(before)?, read(after)?);
    let failed = |error| Failure::usage(format!("'{}' and '{}' {error}", before.name, after.name));
    let comparison = diff(before.profile_and_view(), after.profile_and_view(), basis, options.sort).map_err(failed)?;
    let report = diff_report(&comparison, options.sort, options.rows.unwrap_or(ROWS_SHOWN_DEFAULT));
    for path in &options.args.output {
        let FileFormat::Flame(format) = output_file_format(path, true)? else { continue };
        let tree = flame_graph_difference_tree(before.profile_and_view(), after.profile_and_view(), basis, FRAMES_MAX)
            .map_err(failed)?;
        let title = format!("{} against {}", after.name, before.name);
        let drawn = render_difference_flame_graph(&comparison, &tree, &title, format, &report);
        write_and_note(path, drawn.as_bytes(), "")?;
    }
    if options.args.json {
        print_json(&diff_document(&comparison, options.rows.unwrap_or(usize::MAX)));
    } else if options.rows.is_some() {
        print_report(&report);
    } else {
        print_screen(&diff_report(&comparison, options.sort, usize::MAX), 0, "--top N");
    }
    Ok(exit::SUCCESS)
}

/// The content of an output file (`-o`): a flame graph, or the profile itself.
#[derive(Clone, Copy)]
enum FileFormat {
    Flame(FlameFormat),
    Profile,
}

fn output_file_format(path: &Path, difference: bool) -> Result<FileFormat, Failure> {
    let name = path.to_string_lossy().to_lowercase();
    match name.rsplit('.').next() {
        Some("svg") => Ok(FileFormat::Flame(FlameFormat::Svg)),
        Some("html" | "htm") => Ok(FileFormat::Flame(FlameFormat::Html)),
        Some("gz") if name.ends_with(".pb.gz") && !difference => Ok(FileFormat::Profile),
        _ => {
            let file = path.display();
            Err(Failure::usage(match difference {
                true => format!("-o {file}: the name must end with .html or .svg"),
                false => format!("-o {file}: the name must end with .html or .svg, or .pb.gz to save the profile"),
            }))
        }
    }
}
