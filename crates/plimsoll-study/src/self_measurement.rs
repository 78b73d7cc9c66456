//! Measures the capacity of plimsoll on this machine against its reference server
//! ([`measure_own_speed`]). A closed loop measures throughput and CPU time for each request. After
//! the closed loop, an open loop measures lag, the delay of requests behind their schedule.
//!
//! Not here: the judgement whether the capacity suffices (`plimsoll_analysis::fitness`).

use crate::base::ResolvedTarget;
use crate::runner::{LoadObstacle, LocalMachineRunner, Runner, TickProbes};
use crate::subject::HelperProgram;
use plimsoll_analysis::Summary;
use plimsoll_analysis::study::{StopRule, TrialPlan};
use plimsoll_engine::Tick;
use plimsoll_model::failure::Failure;
use plimsoll_model::machine_facts::SelfMeasurement;
use plimsoll_model::{
    ArrivalSpacing, ConnectionPlan, EarlyStopReason, ExperimentSettings, Injector, Load, LoadCurve, LoadPurpose,
    LoadShape, LoadTag, Origin, Plan, Request, Route, Spin, Traffic,
};
use plimsoll_probe::{ProbeEffort, ReadingSource, Watcher};
use plimsoll_sys::{signal, system_text};
use plimsoll_traffic::target_url::Url;
use std::ops::ControlFlow;

/// The length of each of the two loads (5 s), ns.
const LOAD_NS: u64 = 5_000_000_000;
/// The number of users, each with a connection, in the closed loop.
const CLOSED_LOOP_USERS: u32 = 64;
/// The highest rate of the open loop, requests/s. If half of the measured capacity is lower than
/// 10,000 requests/s, the rate is half of the capacity.
const OPEN_LOOP_RATE_RPS_MAX: f64 = 10_000.0;
/// The command line of the reference server. The server has one event loop, so that the results do
/// not depend on the number of cores.
const REFERENCE_SERVER_ARGS: [&str; 5] = ["baseline", "--listen", "127.0.0.1:0", "--threads", "1"];

/// Measures plimsoll's capacity with two loads of 5 s each. The server is plimsoll's own executable
/// in another process, so the CPU times of client and server are separate.
pub fn measure_own_speed() -> Result<SelfMeasurement, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::cannot_start(format!(
            "the path of the plimsoll program is unknown: {reason}",
            reason = system_text(&error)
        ))
    })?;
    let cannot = |error: std::io::Error| {
        Failure::cannot_start(format!(
            "the reference server could not be started: {reason}",
            reason = system_text(&error)
        ))
    };
    let server = HelperProgram::start(&program, &REFERENCE_SERVER_ARGS).map_err(cannot)?;
    let origin = Url::parse(server.first_line())?.origin;
    let closed = LoadShape::Closed { users: LoadCurve::constant(f64::from(CLOSED_LOOP_USERS)) };
    // Spinning (busy-waiting) is off in the closed loop, so that the CPU time contains only the
    // cost of requests.
    let closed = measure_load(&origin, closed, Spin::Off)?;
    let rate_rps = OPEN_LOOP_RATE_RPS_MAX.min((closed.throughput_rps / 2.0).round()).max(1.0);
    let open = LoadShape::Open { rate: LoadCurve::constant(rate_rps), arrivals: ArrivalSpacing::Constant };
    let open = measure_load(&origin, open, Spin::Auto)?;
    server.end().map_err(cannot)?;
    let disturbed =
        |summary: &Summary| summary.interference.reason.clone().filter(|_| summary.interference.is_disturbed);
    Ok(SelfMeasurement {
        highest_rps: closed.throughput_rps,
        cpu_us: closed.generator.cpu_s * 1e6 / closed.requests.max(1) as f64,
        rate_rps,
        lag_p99_ns: open.generator.lag.p99_ns,
        disturbance: disturbed(&closed).or_else(|| disturbed(&open)),
    })
}

/// Runs one load from one worker thread and returns its summary.
fn measure_load(origin: &Origin, shape: LoadShape, spin: Spin) -> Result<Summary, Failure> {
    let mut load = Load::new(shape);
    load.duration_ns = Some(LOAD_NS);
    if !load.shape.is_open() {
        load.connections_ready = CLOSED_LOOP_USERS;
    }
    let request = Request { target: "/healthz".into(), ..Request::get_root() };
    let traffic = Traffic::with_one_route(origin.clone(), Route::new(request));
    let settings = ExperimentSettings::default();
    let base = ResolvedTarget::resolve_target(
        &Plan { traffic, load, connection_plan: ConnectionPlan::tcp(Vec::new()) },
        &settings,
    )?;
    let watcher = Watcher::begin(&settings.probes, &base.watch_target(&base.url_resolver()), ProbeEffort::Little)?;
    let injector = Injector { workers: 1, spin, ..base.injector.clone() };
    let source = watcher.map(|watcher| Box::new(watcher) as Box<dyn ReadingSource>);
    let mut trial = TrialPlan {
        tag: LoadTag::for_purpose(LoadPurpose::Run),
        plan: base.plan.record(),
        stop_rule: StopRule::EndOfSchedule,
    };
    let mut runner = LocalMachineRunner::new(source, base.plan.clone(), injector, None);
    runner.prepare(&mut trial).map_err(|unready| match unready {
        LoadObstacle::LoadImpossible(reason) => {
            Failure::cannot_start(format!("this machine cannot generate the load: {reason}"))
        }
        LoadObstacle::Failed(failure) => failure,
    })?;
    let mut on_tick = |_: &Tick, _: TickProbes| match signal::is_stop_requested() {
        true => ControlFlow::Break(EarlyStopReason::Interrupted),
        false => ControlFlow::Continue(()),
    };
    runner.connect(&mut on_tick)?;
    let start_ns = runner.elapsed_ns() + runner.start_ahead_ns();
    let driven = runner.run(start_ns, &mut on_tick)?;
    runner.finish()?;
    if signal::is_stop_requested() {
        return Err(Failure::cannot_start("interrupted"));
    }
    let summary = Summary::from_run(&driven.run);
    match summary.routes_sum.ledger.succeeded {
        0 => Err(Failure::cannot_start(format!("the reference server at {origin} completed no request"))),
        _ => Ok(summary),
    }
}
