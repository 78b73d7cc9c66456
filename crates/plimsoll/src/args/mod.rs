//! The command line as typed: which commands there are. Nothing here touches the world; `plan_from_args` and the commands make plans
//! and terms of it.
//!
//! What is said to them: to those that put load on something in `measuring`, `prove` and `replay`, to those that read what is there
//! in `reading`, to those that read a store in `history`, to those that are another tool by name in `doors`, to what asks
//! a server of itself in `grpc`, to what checks the machine in `doctor`, to what installs in `install`, of other machines in `fleet`; what several have in common
//! in `shared`, which knows none of them.

mod doctor;
mod doors;
mod fleet;
mod grpc;
mod history;
mod install;
mod known_words;
mod measuring;
mod prove;
mod reading;
mod replay;
mod shared;

pub use doctor::DoctorArgs;
pub use doors::{AbArgs, HeyArgs, VegetaArgs, Wrk2Args, WrkArgs};
pub use fleet::{AgentArgs, FleetArgs, FleetStatusArgs, WatchArgs};
pub use grpc::{GrpcArgs, GrpcShown};
pub use history::{GateArgs, HistoryArgs, ServeArgs};
pub use install::{CompletionShell, CompletionsArgs, ManArgs};
pub use measuring::{
    BaselineArgs, ChangeArgs, DemoArgs, ExplainArgs, FindArgs, OverloadArgs, RerunArgs, RunArgs, SweepArgs,
};
pub use prove::ProveArgs;
pub use reading::{
    ChartArg, CheckArgs, CleanArgs, DiffArgs, ImportArgs, ImportKind, LogArgs, ModelArgs, ProfileArgs, ReportArgs,
    ReportFormat, ShowArgs, TrafficArgs,
};
pub use replay::ReplayArgs;
pub use shared::redaction;
pub use shared::{
    ConnectionArgs, GeneratorArgs, InconclusiveArgs, OutputArgs, PprofArgs, ProbeArgs, RequestArgs, SchemaArgs,
    ScriptArgs, SearchArgs, StoreArgs,
};

use clap::{Parser, Subcommand};

/// The conditions of a flag that may be given several times, with commas between them; none: `None`.
pub fn all_of(conditions: &[String]) -> Option<String> {
    (!conditions.is_empty()).then(|| conditions.join(", "))
}

/// Finds the load line of an HTTP API: how much it carries before its users feel it.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    after_help = "A bare URL is searched: `plimsoll URL` is `plimsoll find URL`.\n\
                  Exit codes: 0 done, 1 a --fail-if was crossed or nothing succeeded, 2 bad use, cannot start or cannot write, \
                  3 nothing could be decided (--on-inconclusive), 130 interrupted."
)]
pub struct Cli {
    /// With --version: also the commit, the features and the target that it was built for
    #[arg(long)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the load line: the highest sustainable rate under the SLO, the peak and the knee
    Find(FindArgs),
    /// Explain what holds the load line: by name, with the evidence, and what would move it
    Explain(Box<ExplainArgs>),
    /// See what the target does past its line: what it keeps, what the rest gets, whether it comes back
    Overload(Box<OverloadArgs>),
    /// Compare two builds: a verdict with a known rate of false alarms
    Prove(Box<ProveArgs>),
    /// Put one load on a URL and measure it
    Run(RunArgs),
    /// Look whether a file of traffic is understood, and what its first requests are
    Check(CheckArgs),
    /// Measure one load for each of several concurrencies
    Sweep(SweepArgs),
    /// Serve the reference target: bare, fast, with known costs
    Baseline(BaselineArgs),
    /// Show what a gRPC server offers: its services, or a method with a body to start from
    Grpc(GrpcArgs),
    /// Show the machines of a fleet: versions, cores, clocks
    Fleet(FleetStatusArgs),
    /// Make loads for a plimsoll on another machine, which starts this with --fleet
    Agent(AgentArgs),
    /// Find, explain and prove, on a server with a planted limit: two minutes
    Demo(DemoArgs),
    /// Check whether this machine is fit to measure, and what it lacks
    Doctor(DoctorArgs),
    /// Print again what run files hold
    Show(ShowArgs),
    /// Show where a profile's cost lies, draw it, or compare two per request
    Profile(ProfileArgs),
    /// Say what access logs show of the traffic: rates, endpoints, sessions, bursts
    Traffic(TrafficArgs),
    /// Make a file of traffic of a recording, a description of an API, or another tool's file
    Import(ImportArgs),
    /// Make a file of traffic that asks as access logs do
    Model(ModelArgs),
    /// Ask again what access logs hold, at its times
    Replay(Box<ReplayArgs>),
    /// Compare two recordings: a table of relative changes, and charts
    Diff(DiffArgs),
    /// Show what runs found over time, and where that changed
    History(HistoryArgs),
    /// Say whether a commit is worse than a branch, by the runs of a store
    Gate(GateArgs),
    /// Serve pages: runs, history, comparisons, and studies started from a form
    Serve(ServeArgs),
    /// Report what run files hold: a page with charts, a summary, a picture
    Report(ReportArgs),
    /// Do again what a run file records, with the same seed
    Rerun(RerunArgs),
    /// Remove old runs from the folder of results
    Clean(CleanArgs),
    /// Print the completions of a shell: bash, zsh or fish
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command into a folder
    Man(ManArgs),
    /// Be wrk: its command line, its Lua scripts, its output
    Wrk(WrkArgs),
    /// Be wrk2: the same with a rate
    Wrk2(Wrk2Args),
    /// Be vegeta: attack targets, report what results say, encode them anew
    Vegeta(VegetaArgs),
    /// Be ab: its command line, its requests, its output and files
    Ab(AbArgs),
    /// Be hey: its command line, its requests, its output
    Hey(HeyArgs),
}
