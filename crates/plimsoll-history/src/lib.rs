//! Run files in a folder ([`Store`]): which there are, what a list shows of each, and which one a
//! name means. The run files are the truth. The index beside them is derived from their heads and
//! ends, made anew when it is missing or damaged, and never needed to read a file.
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
