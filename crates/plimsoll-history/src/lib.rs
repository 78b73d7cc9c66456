//! Lists the run files in a folder ([`Store`]), reads the facts that a list of runs shows, and
//! finds the run that a name means. The run files are the source of truth. The index, a file next
//! to the run files, is derived from the heads and ends of the run files. A missing or damaged
//! index is created again, and run files can be read without the index.
//!
//! This crate must not depend on the comparison of runs or the detection of changes
//! (`plimsoll-analysis`), on presentation, or on the code that makes runs.

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
