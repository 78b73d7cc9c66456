//! Run files in a folder ([`Store`]): lists the runs, reads the list entry of each, and finds the
//! run that a name means. The run files are the source of truth. The index next to the run files is
//! derived from their heads and ends. A missing or damaged index is created again, and no run file
//! needs it to be read.
//!
//! What must never be known here: which runs may be compared and where a series changed
//! (`plimsoll-analysis`), how anything looks, and who makes runs.

#![forbid(unsafe_code)]

mod folder;
mod index;
mod marks;
mod names;
mod rows;
mod run_file;
mod store;
mod whole_file;

pub use marks::{RunMarks, remove_run};
pub use names::{NameError, RunName};
pub use run_file::read_run;
pub use store::{RunFilter, Store};
pub use whole_file::{decode_experiment, read_experiment};
