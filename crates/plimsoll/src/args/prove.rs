//! The arguments of `plimsoll prove`, which compares builds.
//!
//! Not here: the flags that several commands share (`shared`).

use super::fleet::{FleetArgs, WatchArgs};
use super::known_words::KnownWords;
use super::shared::{GeneratorArgs, InconclusiveArgs, OutputArgs, RequestArgs, ScriptArgs, StoreArgs};
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
// clap moves a changed argument (`url`) to the end, so the arguments that follow `url` must be
// moved after `url`, too.
#[command(mut_arg("url", |url| url.required_unless_present_any(["start", "a"])))]
#[command(mut_arg("more", |more| more), mut_arg("words", |words| words))]
#[command(after_help = "Examples:\n  \
    plimsoll prove http://localhost:8080/ http://localhost:8081/\n  \
    plimsoll prove --a './old {\u{1b}[0mport}' --b './new {\u{1b}[0mport}' /items\n  \
    plimsoll prove --a git:main --b git:HEAD --start './server {port}' /items\n  \
    plimsoll prove -f mix.toml URL_A URL_B              several requests by weight\n  \
    plimsoll prove --measure p99 --rate 2k URL_A URL_B  decide by p99 at 2 000/s\n  \
    plimsoll prove --fail-if worse --json URL_A URL_B   for a CI pipeline\n  \
    plimsoll prove --pprof URL_A URL_B                  which functions differ\n  \
    plimsoll prove --ladder URL/a URL/b URL/c           what does each step cost?\n\n\
    Verdicts on B:\n  \
    better        B is better by more than the margin\n  \
    worse         B is worse by more than the margin\n  \
    same          any difference is inside the margin\n  \
    small         B really differs, but by less than the margin\n  \
    inconclusive  the data do not decide: exit code 3, and the command that would decide\n\n\
    The chance of a false better or worse is below 2 %, however often plimsoll looks at the data.\n\
    With two URLs, prove compares two running processes. With --a and --b, prove compares two builds, and starts both \
    builds anew for each load.")]
pub struct ProveArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// The second target URL; with --ladder, all further URLs to compare
    #[arg(value_name = "URL", value_hint = ValueHint::Url, help_heading = "Request")]
    pub more: Vec<String>,
    // Without the escape code after the brace, clap treats `{port}` as a line break (see --vary).
    #[arg(
        help = "Build A: the command that starts the build for each load, such as './old {\u{1b}[0mport}'; or git:REV, \
                a revision of this repository. {\u{1b}[0mport} is the port of the URL, or a free port if no URL is given"
    )]
    #[arg(long, value_name = "CMD|git:REV", requires = "b", conflicts_with = "ladder", help_heading = "Builds",
          value_hint = ValueHint::CommandString)]
    pub a: Option<String>,
    /// Build B: the command that starts the build, or git:REV, as for --a
    #[arg(long, value_name = "CMD|git:REV", requires = "a", help_heading = "Builds",
          value_hint = ValueHint::CommandString)]
    pub b: Option<String>,
    /// Build each git revision once with this command, in a separate worktree
    #[arg(long, value_name = "CMD", requires = "start", help_heading = "Builds",
          value_hint = ValueHint::CommandString)]
    pub build: Option<String>,
    // Without the escape code after the brace, clap treats `{port}` as a line break (see --vary).
    #[arg(
        help = "Start each git revision with this command in the revision's worktree, with {\u{1b}[0mport} as for --a"
    )]
    #[arg(long, value_name = "CMD", requires = "a", help_heading = "Builds",
          value_hint = ValueHint::CommandString)]
    pub start: Option<String>,
    /// Fail if a started build does not respond within this time
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Builds")]
    pub start_timeout: String,
    /// Run this command before each block (one load on each server), to reset the server's state
    #[arg(long, value_name = "CMD", help_heading = "Builds", value_hint = ValueHint::CommandString)]
    pub before_block: Option<String>,
    /// Record whole commands in the run file and in reports, not only the programs' names
    #[arg(long, help_heading = "Builds")]
    pub record_commands: bool,
    /// Compare each URL's goodput with the goodput of the previous URL, without a verdict
    #[arg(long, help_heading = "Comparison")]
    pub ladder: bool,
    /// The measure that decides the verdict: goodput, p50, p99, or cpu (CPU time per request, of
    /// processes on this machine)
    #[arg(long, value_name = "NAME", default_value = "goodput", help_heading = "Comparison",
          value_parser = KnownWords::for_text_value(&["goodput", "p50", "p99", "cpu"]),
          hide_possible_values = true)]
    pub measure: String,
    /// The largest difference between A and B that does not matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", help_heading = "Comparison")]
    pub margin: String,
    /// Time for the whole comparison
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Comparison")]
    pub budget: String,
    /// Measure at most N blocks, each with one load on A and one on B
    #[arg(long, value_name = "N", help_heading = "Comparison")]
    pub blocks: Option<String>,
    /// Compare A and B even if their responses differ in size or status, such as with and without
    /// compression
    #[arg(long, help_heading = "Comparison")]
    pub allow_different_answers: bool,
    /// Number of users for the measures goodput and cpu [default: the number that reaches the peak]
    #[arg(short = 'c', long, value_name = "N", help_heading = "Load")]
    pub concurrency: Option<String>,
    /// Rate of the loads that measure p50 and p99, in requests/s [default: 60 % of the slower
    /// side's peak]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub rate: Option<String>,
    /// Length of each load [default: 400ms; longer if ten consecutive responses, or 100 responses
    /// in total, take longer]
    #[arg(long = "for", value_name = "TIME", help_heading = "Load")]
    pub load_time: Option<String>,
    /// Apply the load for this long before measuring starts [default: the time of three consecutive
    /// responses, at least 30ms; 500ms after a build starts]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub warmup: Option<String>,
    /// After the comparison, take four CPU profiles of A and B at one rate, and compare the
    /// functions' costs [default address: /debug/pprof of each side]
    #[arg(
        long,
        value_name = "URL_A,URL_B",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        help_heading = "Profiles", value_hint = ValueHint::Url)]
    pub pprof: Option<String>,
    /// Length of a CPU profile in seconds
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..=600),
        help_heading = "Profiles"
    )]
    pub pprof_seconds: u32,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
    /// Exit with code 1 if the verdict is this word; only `worse` is possible
    #[arg(long, value_name = "VERDICT", help_heading = "Judgement",
          value_parser = KnownWords::for_text_value(&["worse"]), hide_possible_values = true)]
    pub fail_if: Option<String>,
    #[command(flatten)]
    pub inconclusive: InconclusiveArgs,
    /// Write the run file here [default: a new file in _output/plimsoll]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
    #[command(flatten)]
    pub place: StoreArgs,
    #[command(flatten)]
    pub script: ScriptArgs,
}
