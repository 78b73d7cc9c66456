//! Declares the command line: all commands and their arguments. This module reads no files and
//! opens no sockets. `plan_from_args` and the commands convert arguments to plans and settings (all
//! settings that are not in a plan). Some flags are converted next to their declaration, such as
//! the flags of experiments (`InterventionArgs::intervention_settings`).
//!
//! The files `load_commands`, `prove` and `replay` have the commands that generate load.
//! `read_commands` has the commands that read files, and `history` the commands that read a store.
//! `other_tools` has the commands that behave like another tool, and `fleet` has the arguments
//! about other machines. `grpc`, `doctor` and `install` have the arguments of the remaining
//! commands. `shared` has the flags that several commands share, and depends on no command. `help`
//! orders the commands and the flags in the help texts.

mod doctor;
mod fleet;
mod grpc;
pub mod help;
mod history;
mod install;
mod known_words;
mod load_commands;
mod other_tools;
mod prove;
mod read_commands;
mod replay;
mod shared;
mod short_help;
mod single_command_parser;

pub use doctor::DoctorArgs;
pub use fleet::{AgentArgs, FleetArgs, FleetCommandArgs, WatchArgs};
pub use grpc::{GrpcArgs, GrpcView};
pub use history::{GateArgs, HistoryArgs, ServeArgs};
pub use install::{CompletionShell, CompletionsArgs, ManArgs};
pub use load_commands::{BaselineArgs, DemoArgs, ExplainArgs, FindArgs, OverloadArgs, RerunArgs, RunArgs, SweepArgs};
pub use other_tools::{AbArgs, HeyArgs, VegetaArgs, Wrk2Args, WrkArgs};
pub use prove::ProveArgs;
pub use read_commands::{
    ChartArg, CheckArgs, CleanArgs, DiffArgs, ImportArgs, ImportKind, LogArgs, ModelArgs, ProfileArgs, ReportArgs,
    ReportFormat, ShowArgs, TrafficArgs,
};
pub use replay::ReplayArgs;
pub use shared::redaction_level;
pub use shared::{
    ConnectionArgs, GeneratorArgs, InconclusiveArgs, OutputArgs, PprofArgs, ProbeArgs, RequestArgs, SchemaArgs,
    ScriptArgs, SearchArgs, StoreArgs,
};
pub use single_command_parser::parser_for_command;

use clap::{Parser, Subcommand};
use single_command_parser::CommandFlags;

/// Joins, with commas, the conditions of a flag that may be given several times. Returns `None` if
/// there are no conditions.
pub fn join_conditions(conditions: &[String]) -> Option<String> {
    (!conditions.is_empty()).then(|| conditions.join(", "))
}

/// Finds the load line of an HTTP API: the highest rate that meets the SLO.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    after_help = "`plimsoll URL` is short for `plimsoll find URL`.\n\
                  `plimsoll COMMAND -h` shows the most important flags, `--help` all.\n\
                  Exit codes: 0 done, 1 a --fail-if condition is true or no request succeeded,\n\
                  2 usage error, cannot start or write, 3 undecided, 130 interrupted."
)]
pub struct Cli {
    /// With --version, print also the commit, the features and the platform of the build
    #[arg(long)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the load line: the highest rate that meets the SLO
    Find(CommandFlags<FindArgs>),
    /// Name the bottleneck that limits the load line, with evidence
    Explain(CommandFlags<ExplainArgs>),
    /// Show how the target fails above its load line, and if it recovers
    Overload(CommandFlags<OverloadArgs>),
    /// Compare two builds or servers, with a known rate of false alarms
    Prove(CommandFlags<ProveArgs>),
    /// Apply one load to a URL, and measure rates and response times
    Run(CommandFlags<RunArgs>),
    /// Check a file of traffic, and print its first requests
    Check(CommandFlags<CheckArgs>),
    /// Measure throughput and latency for a list of user counts
    Sweep(CommandFlags<SweepArgs>),
    /// Start the reference server: minimal, fast, with known costs
    Baseline(CommandFlags<BaselineArgs>),
    /// Show the services of a gRPC server, or a method with an example
    Grpc(CommandFlags<GrpcArgs>),
    /// Check or calibrate the machines that generate load together
    Fleet(CommandFlags<FleetCommandArgs>),
    /// Generate load for a plimsoll on another machine (--fleet)
    Agent(CommandFlags<AgentArgs>),
    /// Try find, explain and prove on a sample server, in two minutes
    Demo(CommandFlags<DemoArgs>),
    /// Check whether this machine is fit to measure, and what to improve
    Doctor(CommandFlags<DoctorArgs>),
    /// Print the results of run files again
    Show(CommandFlags<ShowArgs>),
    /// Show the costly functions of a profile, or compare two profiles
    Profile(CommandFlags<ProfileArgs>),
    /// Describe the traffic of access logs: rates, endpoints, sessions
    Traffic(CommandFlags<TrafficArgs>),
    /// Make a file of traffic from HAR, OpenAPI, Postman or JMeter
    Import(CommandFlags<ImportArgs>),
    /// Make a file of traffic that resembles access logs
    Model(CommandFlags<ModelArgs>),
    /// Send the requests of access logs again, with the same timing
    Replay(CommandFlags<ReplayArgs>),
    /// Compare two run files: a table of changes, and charts
    Diff(CommandFlags<DiffArgs>),
    /// Show the results of stored runs over time, and their changes
    History(CommandFlags<HistoryArgs>),
    /// Decide from stored runs whether a commit is worse than a branch
    Gate(CommandFlags<GateArgs>),
    /// Serve web pages: runs, history, comparisons, and new studies
    Serve(CommandFlags<ServeArgs>),
    /// Make a report from run files: a page, a summary, or a picture
    Report(CommandFlags<ReportArgs>),
    /// Repeat the study of a run file, with the same seed
    Rerun(CommandFlags<RerunArgs>),
    /// Remove old runs from the folder of results
    Clean(CommandFlags<CleanArgs>),
    /// Print completions for a shell: bash, zsh or fish
    Completions(CommandFlags<CompletionsArgs>),
    /// Print the manual page, or write all pages into a folder
    Man(CommandFlags<ManArgs>),
    /// Behave like wrk: its command line, its Lua scripts, its output
    Wrk(CommandFlags<WrkArgs>),
    /// Behave like wrk2: wrk with a constant rate
    Wrk2(CommandFlags<Wrk2Args>),
    /// Behave like vegeta: attack, report, plot and encode
    Vegeta(CommandFlags<VegetaArgs>),
    /// Behave like ab: its command line, requests, output and files
    Ab(CommandFlags<AbArgs>),
    /// Behave like hey: its command line, its requests, its output
    Hey(CommandFlags<HeyArgs>),
}
