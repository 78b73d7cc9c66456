//! `plimsoll demo`: runs find, explain and prove one after another on a sample server with a known
//! bottleneck. The demo finds the load line, names the bottleneck, and proves that the fix helps.
//! plimsoll gets no information about the bottleneck. The servers run in their own processes, so
//! plimsoll sees them like any other server.

use super::search::FindInput;
use super::{explain, find, prove};
use crate::args::{Cli, Command, DemoArgs};
use crate::live::ProgressDisplay;
use crate::plan_from_args;
use clap::Parser;
use plimsoll_analysis::Slo;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{
    ArrivalSpacing, ConnectionPlan, ExperimentSettings, ExperimentSpec, FindSpec, Load, LoadCurve, LoadShape, Origin,
    Plan, Planning, Request, Route, Traffic,
};
use plimsoll_study::demo_server;
use plimsoll_study::output::print;
use plimsoll_study::quantity::parse_positive_time;
use plimsoll_traffic::target_url::Url;
use std::net::Ipv4Addr;

/// The URL path on the sample server to which the demo sends load.
const DEMO_URL_PATH: &str = "/items";
/// The path that the sample server requests from its store, a second server that simulates a
/// database. The store takes 20 ms to respond.
const STORE_URL_PATH: &str = "/delay/20";
/// The number of connections in the sample server's pool to its store. The pool is the bottleneck
/// that the demo finds.
const POOL_CONNECTIONS: &str = "4";
/// The number of connections in the sample server's pool to its store after the fix.
const LARGER_POOL_CONNECTIONS: &str = "8";

/// The default time for each of find, explain and prove.
const STEP_BUDGET_DEFAULT: &str = "40s";
/// The default time for the search, which is the only step of a demo with --quick.
const QUICK_SEARCH_BUDGET: &str = "15s";

/// Converts the flags to a search. The target's port is 0 until the sample server runs.
pub fn spec_from_args(args: &DemoArgs) -> Result<FindInput, Failure> {
    let origin = Origin { scheme: "http".into(), host: Ipv4Addr::LOCALHOST.to_string(), port: 0 };
    let budget = args.budget.as_deref().unwrap_or(if args.quick { QUICK_SEARCH_BUDGET } else { STEP_BUDGET_DEFAULT });
    let budget_ns = parse_positive_time("--budget", budget)?;
    let request = Request { target: DEMO_URL_PATH.into(), ..Request::get_root() };
    let mut load = Load::new(LoadShape::Closed { users: LoadCurve::constant(1.0) });
    load.seed = args.seed.unwrap_or_else(plan_from_args::process_seed);
    let traffic = Traffic::with_one_route(origin, Route::new(request));
    let base = Plan { traffic, load, connection_plan: ConnectionPlan::tcp(Vec::new()) };
    let output = args.out.to_settings(None)?;
    let settings = ExperimentSettings { demo: true, demo_quick: args.quick, output, ..ExperimentSettings::default() };
    let (slo, arrivals) = (Slo::default().to_string(), ArrivalSpacing::Poisson);
    let (max_rate, preflight_ns, profiles, planning) = (None, 0, None, Planning::default());
    Ok((FindSpec { base, slo, budget_ns, max_rate, arrivals, preflight_ns, profiles, planning }, settings))
}

/// Starts the servers and runs find, explain and prove. With --quick or an output other than text,
/// runs only find. Returns the exit code, which is a failure only if the user interrupts.
pub fn carry_out(mut spec: FindSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let store = demo_server::start(&["--threads", "1"])?;
    let behind = format!("{}{STORE_URL_PATH}", store.first_line());
    let server = demo_server::start(&["--behind", &behind, "--pool", POOL_CONNECTIONS])?;
    spec.base.traffic.origin = Url::parse(server.first_line())?.origin;
    let url = format!("{}{DEMO_URL_PATH}", server.first_line());
    let (budget, seed) = (format!("{}ms", spec.budget_ns / 1_000_000), spec.base.load.seed.to_string());
    let mut live = ProgressDisplay::new(settings.output.quiet);
    live.print_line_unless_quiet(&format!(
        "a sample server with a known bottleneck runs at {url}; plimsoll knows only this URL, not the bottleneck\n"
    ));
    live.print_line_unless_quiet(&match settings.demo_quick {
        true => format!("how much load does the server sustain?   plimsoll find {url}"),
        false => format!("step 1 of 3: how much load does the server sustain?   plimsoll find {url}"),
    });
    find::carry_out(spec, settings)?;
    let mut words = vec!["--budget", &budget, "--seed", &seed];
    words.extend(settings.output.quiet.then_some("--quiet"));
    words.extend(settings.output.verbose.then_some("--verbose"));
    // With --json, the output is a single document, so only the search runs.
    let is_whole = settings.output.is_text_output() && !settings.demo_quick;
    if is_whole && !plimsoll_sys::signal::is_stop_requested() {
        live.print_line_unless_quiet(&format!("\nstep 2 of 3: what limits the load line?   plimsoll explain {url}"));
        run_explain(&[&["plimsoll", "explain", &url], &words[..]].concat())?;
    }
    demo_server::end(server)?;
    if is_whole && !plimsoll_sys::signal::is_stop_requested() {
        // The servers of both sides of the comparison are started anew for each load, so that both
        // servers have the same history.
        let address = demo_server::free_address()?;
        let build = |pool: &str| demo_server::pooled_server_command(&address, &behind, pool);
        let (a, b, url) =
            (build(POOL_CONNECTIONS)?, build(LARGER_POOL_CONNECTIONS)?, format!("http://{address}{DEMO_URL_PATH}"));
        live.print_line_unless_quiet(&format!(
            "\nthe known bottleneck is a pool of {POOL_CONNECTIONS} connections to a store that takes 20 ms \
            for each request: {POOL_CONNECTIONS} / 20 ms = 200 requests/s"
        ));
        live.print_line_unless_quiet(&format!(
            "step 3 of 3: does a pool of {LARGER_POOL_CONNECTIONS} connections double the throughput?   plimsoll prove --a 'server \
             {POOL_CONNECTIONS}' --b 'server {LARGER_POOL_CONNECTIONS}' {url}"
        ));
        run_prove(&[&["plimsoll", "prove", "--a", &a, "--b", &b, &url], &words[..]].concat())?;
    }
    demo_server::end(store)?;
    if settings.output.is_text_output() {
        print(
            "\nNow your own server:\n  \
             plimsoll http://localhost:8080/                          find the load line\n  \
             plimsoll explain http://localhost:8080/                  name the bottleneck\n  \
             plimsoll prove http://localhost:8080/ OTHER_URL          is another build better?\n  \
             plimsoll find --slo 'success>=99.9%, p99<=50ms' URL      search with another SLO\n  \
             plimsoll overload URL                                    load the server above its load line\n",
        );
    }
    // The demo gives no verdict on a server, so the demo succeeds even if interference prevented
    // plimsoll from finding a load line.
    Ok(if plimsoll_sys::signal::is_stop_requested() { exit::INTERRUPTED } else { exit::SUCCESS })
}

/// Parses the words of a command line, and returns the command.
fn parse_command(words: &[&str]) -> Result<Command, Failure> {
    let cli = Cli::try_parse_from(words).map_err(|error| {
        Failure::cannot_start(format!("plimsoll cannot parse the demo's own command line: {error}"))
    })?;
    Ok(cli.command)
}

fn run_explain(words: &[&str]) -> Result<(), Failure> {
    let Command::Explain(args) = parse_command(words)? else { return Ok(()) };
    let (asked, settings) = explain::spec_from_args(&args)?;
    explain::carry_out(asked, &settings)?;
    Ok(())
}

fn run_prove(words: &[&str]) -> Result<(), Failure> {
    let Command::Prove(args) = parse_command(words)? else { return Ok(()) };
    if let (ExperimentSpec::Prove(asked), settings) = prove::spec_from_args(&args)? {
        prove::carry_out(asked, &settings)?;
    }
    Ok(())
}
