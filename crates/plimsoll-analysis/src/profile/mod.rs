//! What profiles say: reading them from bytes, sums by function, merged stacks, and what a change
//! costs a request.
//!
//! [`read()`] turns pprof (gzip'd or plain), folded stacks and the text of `perf script` into one
//! [`Profile`](plimsoll_model::profile::Profile). [`View`] says which column and which samples are
//! meant; [`top()`] sums them by function as `go tool pprof -top` does; [`Tree`] merges stacks for
//! a flame graph; [`diff()`] compares two profiles per request, with a test that keeps noise out.
//! [`grouped()`] splits costs by endpoint, and [`ProfiledTrial`] says what the load was while
//! profiles were taken. [`SampledProfile`] is what the kernel's clock caught during a load.
//!
//! Not here: fetching and files, layout, symbolising (names are taken as the profile has them).

mod diff;
mod folded;
mod perf;
mod pprof;
mod read;
mod room;
mod sample_split;
mod sampled;
mod stretches;
mod top;
mod tree;
mod view;

pub use diff::{Basis, CostChange, DiffError, DiffRow, FINDING_Q, ProfileDiff, Repetition, diff, diff_repeated};
pub use read::{READ_BYTES_MAX, read, read_up_to};
pub use room::ReadError;
pub use sample_split::{SampleSplit, grouped, has_label, label_keys};
pub use sampled::{SampledProfile, sampled_ns};
pub use stretches::{PeriodFigures, ProfiledTrial, Stretches, rates, steady_rps};
pub use top::{Row, Sort, Top, percent, top};
pub use tree::{Node, Tree, diff_tree, tree};
pub use view::View;
