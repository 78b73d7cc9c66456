//! Profiles: parsers, sums by function, merged stacks, and the cost of a change per request.
//!
//! [`read()`] parses pprof (gzip or plain), folded stacks and the text of `perf script` into a
//! [`Profile`](plimsoll_model::profile::Profile). [`ProfileView`] selects a column and samples.
//! [`sum_by_function()`] sums the selected samples by function, as `go tool pprof -top` does.
//! [`FlameGraphTree`] merges stacks for a flame graph. [`diff()`] compares the cost per request of
//! two profiles, and tests whether the difference is noise. [`group_samples()`] splits costs by
//! endpoint. [`ProfiledTrial`] describes the load while profiles are taken. [`SampledProfile`] has
//! the samples that the kernel took of the server during a load.
//!
//! Not here: fetching profiles, files, layout, and symbolisation (names are used as recorded).

mod diff;
mod folded;
mod memory_budget;
mod perf;
mod pprof;
mod profiling_schedule;
mod read;
mod sample_split;
mod sampled;
mod top;
mod tree;
mod view;

pub use diff::{
    CostChange, CostDivisor, DiffError, DiffRow, FALSE_DISCOVERY_RATE_MAX, ProfileDiff, RepeatedProfile, diff,
    diff_repeated,
};
pub use memory_budget::ReadError;
pub use profiling_schedule::{
    PeriodFigures, ProfiledTrial, ProfilingSchedule, profiling_rates_rps, steady_profiling_rps,
};
pub use read::{READ_BYTES_MAX, ReadLimits, read, read_within_limits};
pub use sample_split::{SampleGrouping, group_samples, has_label, label_keys};
pub use sampled::{SampledProfile, sampled_cpu_time_ns};
pub use top::{FunctionCostOrder, FunctionCostRow, FunctionCostTable, percent, sum_by_function};
pub use tree::{FlameGraphFrame, FlameGraphTree, flame_graph_difference_tree, flame_graph_tree};
pub use view::ProfileView;
