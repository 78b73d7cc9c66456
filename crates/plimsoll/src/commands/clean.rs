//! `plimsoll clean`: removes old runs from the folder of results, and prints what it removes.

use crate::args::CleanArgs;
use crate::results::stdout_terminal_width;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::units::parse_count;
use plimsoll_report::format::{bytes, format_utc_date};
use plimsoll_report::text::wrap_text;
use plimsoll_study::output::print;
use plimsoll_study::result_store::{RUNS_KEPT, removable_runs, remove, stored_runs};
use plimsoll_sys::system_text;

/// Removes old runs, or only lists them with --dry-run. Returns the exit code.
pub fn run(args: &CleanArgs) -> Result<u8, Failure> {
    let keep = match &args.keep {
        None => RUNS_KEPT,
        Some(text) => parse_count(text).map_err(|e| Failure::usage(format!("--keep: {e}")))? as usize,
    };
    let folder = args.dir.display();
    let cannot = |what: &str, e: &std::io::Error| Failure::cannot_start(format!("{what}: {}", system_text(e)));
    plimsoll_sys::output_file::refuse_linked_folder(&args.dir).map_err(|e| Failure::cannot_start(system_text(&e)))?;
    let all = stored_runs(&args.dir).map_err(|e| cannot(&format!("the folder '{folder}' cannot be read"), &e))?;
    let count = all.len();
    let old = removable_runs(all, keep);
    let mut freed = 0;
    let columns = stdout_terminal_width();
    for run in &old {
        if !args.dry_run {
            remove(run).map_err(|e| cannot(&format!("'{}' cannot be removed", run.files[0].display()), &e))?;
        }
        freed += run.bytes;
        let files = match run.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let began = format_utc_date(run.began_unix_s * 1000);
        let line = format!("  {}  ({began}, {} in {files})", run.files[0].display(), bytes(run.bytes as f64));
        print(&format!("{}\n", wrap_text(&line, columns, 4)));
    }
    let done = if args.dry_run { "would be removed" } else { "removed" };
    let freed = bytes(freed as f64);
    print(&match (count, old.len()) {
        (0, _) => format!("no runs in {folder}\n"),
        (_, 0) => format!("no run is removed: {folder} has {count} runs, and --keep {keep} keeps all of them\n"),
        (_, gone) => format!("{gone} of {count} runs in {folder} {done}, {freed}\n"),
    });
    Ok(exit::SUCCESS)
}
