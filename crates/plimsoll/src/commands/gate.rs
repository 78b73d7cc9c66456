//! `plimsoll gate`: decides whether the runs of a commit are worse than the runs of a branch.

use crate::args::GateArgs;
use crate::commands::stored_run::find_stored_run;
use crate::plan_from_args::verdict_when_inconclusive;
use crate::results::{print_json, print_report};
use plimsoll_analysis::history::{GateVerdict, compare_commit_with_branch};
use plimsoll_history::{RunFilter, Store};
use plimsoll_model::OnInconclusive;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_report::history::{GateView, gate_document, gate_report};
use plimsoll_study::result_store;

/// Compares the stored runs and prints the verdict. Returns the exit code.
pub fn run(args: &GateArgs) -> Result<u8, Failure> {
    let mut store = Store::open(&result_store::store_folder(args.store.as_deref()))?;
    store.refresh_index()?;
    let runs = store.matching_runs(&RunFilter::default())?;
    let candidate = find_stored_run(&args.run, &runs)?;
    let finding = compare_commit_with_branch(&runs, &candidate, &args.against);
    let view = GateView { run: &candidate, branch: &args.against, finding: &finding };
    if args.json {
        print_json(&gate_document(&view));
    } else {
        print_report(&gate_report(&view));
    }
    Ok(match finding.verdict {
        GateVerdict::Worse => exit::NEGATIVE_RESULT,
        GateVerdict::Better | GateVerdict::Same => exit::SUCCESS,
        GateVerdict::NotKnown => OnInconclusive::exit_code(verdict_when_inconclusive(&args.inconclusive)),
    })
}
