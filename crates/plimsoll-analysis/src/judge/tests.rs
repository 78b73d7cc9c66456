//! Tests of the verdicts on single trials.

use super::*;
use crate::sentence::Remedy;
use plimsoll_model::units::MS;
use plimsoll_model::{
    ArrivalSpacing, EarlyStopReason, HttpChoice, Interval, LoadCurve, LoadFigures, LoadStage, Plan, Probes,
    RouteFigures, Series, SeriesKind, SeriesSample, WorkerTime,
};

const TICK_NS: u64 = Plan::TICK_NS;

/// Creates a run at 1 000/s. `tick` supplies the content of each tick of 100 requests.
fn run_with_ticks(stages: &[(f64, u64)], tick: impl Fn(u64) -> Interval) -> Run {
    let stages: Vec<LoadStage> = stages
        .iter()
        .map(|(level, ticks)| LoadStage { from: *level, to: *level, duration_ns: Some(ticks * TICK_NS) })
        .collect();
    let plan = Plan::for_get_request(
        "h",
        80,
        vec![],
        LoadShape::Open { rate: LoadCurve { stages }, arrivals: ArrivalSpacing::Constant },
    );
    let end_ns = plan.load.duration_ns.expect("it has one");
    let mut run = Run::new(plan);
    for at in 0..end_ns / TICK_NS {
        run.push(at * TICK_NS, tick(at));
    }
    run.ending = Some(LoadEnd::Finished);
    run.window_ns = (0, end_ns);
    run
}

/// Creates a tick in which `succeeded` of 100 requests succeeded after `ms` milliseconds.
fn tick_interval(succeeded_in_window: u64, ms: u64, in_flight_end: u64) -> Interval {
    let mut response = Histogram::new();
    response.record_n(ms * MS, succeeded_in_window);
    let mut lag = Histogram::new();
    lag.record_n(10_000, 100);
    let load = LoadFigures {
        lag: lag.drain(),
        in_flight_ns: in_flight_end * TICK_NS,
        workers: vec![WorkerTime { worker: 0, work_ns: TICK_NS / 4, cpu_ns: TICK_NS, wall_ns: TICK_NS }],
        ..LoadFigures::default()
    };
    let figures = RouteFigures {
        ledger: Ledger { scheduled: 100, succeeded: succeeded_in_window, ..Ledger::default() },
        in_flight_end,
        succeeded_in_window,
        response: response.drain(),
        ..RouteFigures::default()
    };
    Interval { load, routes: figures.into() }
}

#[test]
fn a_drain_passes_only_if_the_backlog_has_drained() {
    for (ending, expect) in [
        (LoadEnd::Stopped(EarlyStopReason::ResultCertain("the backlog has drained".into())), Verdict::Pass),
        (LoadEnd::Stopped(EarlyStopReason::CannotContinue("the server has ended".into())), Verdict::Void),
        (LoadEnd::Stopped(EarlyStopReason::RequestsExhausted), Verdict::Void),
        (LoadEnd::Finished, Verdict::Fail),
    ] {
        let mut run = run_with_ticks(&[(1000.0, 20)], |_| tick_interval(100, 5, 2));
        run.ending = Some(ending.clone());
        assert_eq!(judge(LoadPurpose::Settle, 0, &run, &Slo::default()).verdict, expect, "{ending:?}");
    }
}

fn judge_climb_trial(run: &Run) -> TrialOutcome {
    judge(LoadPurpose::Climb, 0, run, &Slo::default())
}

#[test]
fn a_server_that_keeps_up_passes() {
    let outcome = judge_climb_trial(&run_with_ticks(&[(1000.0, 10)], |_| tick_interval(100, 2, 1)));
    assert_eq!((outcome.verdict, outcome.offered_rps()), (Verdict::Pass, Some(1000.0)));
    assert_eq!((outcome.goodput_rps, outcome.success_rate), (1000.0, 1.0));
    assert_eq!(outcome.evidence.bad_to_allowed_ratio, 0.0);
}

#[test]
fn an_slo_bounds_any_time_of_requests_or_connections() {
    // 1 000 requests succeed within 2 ms. The first byte of 50 responses took 20 ms, and 1 of
    // 10 connections took 30 ms.
    let seen = run_with_ticks(&[(1000.0, 10)], |at| {
        let mut tick = tick_interval(100, 2, 1);
        let (mut ttfb, mut connect) = (Histogram::new(), Histogram::new());
        ttfb.record_n(MS, 95);
        ttfb.record_n(20 * MS, 5);
        connect.record_n(if at == 3 { 30 * MS } else { MS }, 1);
        tick.routes.figures_mut(0).ttfb = ttfb.drain();
        tick.load.connect = connect.drain();
        tick
    });
    for (slo, expect, reason) in [
        ("ttfb.p95<=10ms", Verdict::Pass, "p99 was 2.00 ms"),
        (
            "ttfb.p96<=10ms",
            Verdict::Fail,
            "5 % of the requests failed or took longer than 10.0 ms (ttfb); the SLO allows 4 %",
        ),
        ("ttfb.p99<=25ms", Verdict::Pass, "p99 was 2.00 ms"),
        ("connect.p90<=10ms", Verdict::Pass, "p99 was 2.00 ms"),
        ("connect.max<=10ms", Verdict::Fail, "of the connections failed or took longer than 10.0 ms (connect)"),
        ("first_message.p99<=10ms", Verdict::Pass, "p99 was 2.00 ms"),
    ] {
        let slo = Slo::parse(&format!("success>=99%, {slo}")).expect("an SLO");
        let outcome = judge(LoadPurpose::Climb, 0, &seen, &slo);
        let said = outcome.reason.render_text(|_| "");
        assert!(outcome.verdict == expect && said.contains(reason), "{slo}: {:?} {said}", outcome.verdict);
    }
}

#[test]
fn every_kind_of_bad_request_counts_against_every_bound() {
    // Under the default SLO, one of 1 000 scheduled requests may fail, and ten may be slow or
    // failed.
    for (failed, unsent, unanswered, slow, expect) in [
        (1, 0, 0, 9, Verdict::Pass),
        (2, 0, 0, 0, Verdict::Fail),
        (0, 2, 0, 0, Verdict::Fail),
        (0, 0, 2, 0, Verdict::Fail),
        (0, 0, 0, 10, Verdict::Pass),
        (0, 0, 0, 11, Verdict::Fail),
        (1, 0, 0, 10, Verdict::Fail),
    ] {
        let run = run_with_ticks(&[(1000.0, 10)], |at| {
            let bad = if at == 5 { failed + unsent + unanswered + slow } else { 0 };
            let mut interval = tick_interval(100 - bad, 2, 1);
            if at == 5 {
                let mut late = Histogram::new();
                late.record_n(600 * MS, slow);
                let figures = interval.routes.figures_mut(0);
                figures.response.merge(&late.drain());
                figures.ledger.succeeded += slow;
                figures.ledger.failed[0] = failed;
                figures.ledger.unsent = unsent;
                figures.ledger.in_flight = unanswered;
            }
            interval
        });
        let outcome = judge_climb_trial(&run);
        assert_eq!(outcome.verdict, expect, "{failed} {unsent} {unanswered} {slow}: {:?}", outcome.reason);
    }
}

#[test]
fn a_growing_backlog_fails_within_the_latency_bound() {
    // The rate is 3 % higher than the server's throughput. After one second 30 requests wait,
    // which is 30 ms of work.
    let outcome = judge_climb_trial(&run_with_ticks(&[(1000.0, 10)], |at| tick_interval(97, 20, 3 * (at + 1))));
    assert_eq!(outcome.verdict, Verdict::Fail, "{:?}", outcome.reason);
    assert!(outcome.reason.contains("backlog"), "{:?}", outcome.reason);
    assert!((outcome.evidence.backlog_growth_share - 0.03).abs() < 0.01, "{}", outcome.evidence.backlog_growth_share);
    assert_eq!(outcome.evidence.saturated_rps, Some(970.0));
    // A growth of the backlog by two requests may be chance.
    assert_eq!(
        judge_climb_trial(&run_with_ticks(&[(10.0, 10)], |at| tick_interval(100, 2, at / 5))).verdict,
        Verdict::Pass
    );
}

#[test]
fn unsent_requests_belong_to_the_backlog() {
    // The server completes 600 of the 1 000 requests scheduled a second. After four ticks, all
    // 160 connections wait for the server.
    let mut run = run_with_ticks(&[(1000.0, 12)], |at| {
        let mut interval = tick_interval(60, 200, (40 * (at + 1)).min(160));
        interval.routes.figures_mut(0).ledger.unsent = if at < 4 { 0 } else { 40 };
        interval
    });
    run.plan.connection_plan.connections_max = 160;
    let outcome = judge_climb_trial(&run);
    assert_eq!(outcome.verdict, Verdict::Fail, "{:?}", outcome.reason);
    assert!((outcome.evidence.backlog_growth_share - 0.4).abs() < 0.05, "{}", outcome.evidence.backlog_growth_share);
    assert_eq!(outcome.evidence.saturated_rps, Some(600.0));
}

/// Checks that requests whose response waits for a delayed acknowledgement do not count as
/// backlog. Kernels acknowledge the first responses of a connection immediately, and later
/// responses with a delay of 40 ms. In this test the number of delayed responses rises step by
/// step.
#[test]
fn delayed_acknowledgements_are_not_a_backlog() {
    fn check(rest_ms: impl Fn(u64) -> u64, in_flight: impl Fn(u64) -> u64, expect: Verdict) {
        let outcome = judge_climb_trial(&run_with_ticks(&[(1000.0, 10)], |at| {
            let mut interval = tick_interval(100, 4 + rest_ms(at), in_flight(at));
            let (mut service, mut ttfb) = (Histogram::new(), Histogram::new());
            service.record_n((4 + rest_ms(at)) * MS, 100);
            ttfb.record_n(4 * MS, 100);
            let figures = interval.routes.figures_mut(0);
            (figures.service, figures.ttfb, figures.answers_bytes) = (service.drain(), ttfb.drain(), 20_000);
            interval
        }));
        assert_eq!(outcome.verdict, expect, "{:?}", outcome.reason);
    }
    let put_off = |at: u64| (at * 8).min(40);
    check(put_off, |at| 4 + put_off(at), Verdict::Pass);
    // The backlog grows by more requests than wait for a delayed acknowledgement, so the trial
    // fails.
    check(put_off, |at| 4 + put_off(at) + 3 * at, Verdict::Fail);
    // If a response is late for a reason other than a delayed acknowledgement, the server still
    // works on this response.
    check(|at| at * 8, |at| 4 + at * 8, Verdict::Fail);
}

/// Returns the run of a generator that sends each request 60 ms late.
fn run_of_late_generator() -> Run {
    run_with_ticks(&[(1000.0, 10)], |_| {
        let mut interval = tick_interval(100, 2, 1);
        let mut lag = Histogram::new();
        lag.record_n(60 * MS, 100);
        interval.load.lag = lag.drain();
        interval
    })
}

#[test]
fn a_saturated_generator_makes_a_trial_void() {
    let busy = run_with_ticks(&[(1000.0, 10)], |_| {
        let mut interval = tick_interval(50, 2, 1);
        interval.load.workers[0].work_ns = TICK_NS * 96 / 100;
        interval
    });
    let late = run_of_late_generator();
    let unsent = run_with_ticks(&[(1000.0, 10)], |_| {
        let mut interval = tick_interval(99, 2, 1);
        interval.routes.figures_mut(0).ledger.unsent = 1;
        interval
    });
    for run in [&busy, &late, &unsent] {
        let outcome = judge_climb_trial(run);
        assert_eq!(outcome.verdict, Verdict::Void, "{:?}", outcome.reason);
        assert!(!outcome.reason.is_empty());
    }
    // If every connection waits for the server (or for the server to accept it), the server is
    // the limit.
    let connections_max = u64::from(unsent.plan.connection_plan.connections_max);
    let (mut open, mut under_way) = (unsent.clone(), unsent.clone());
    open.intervals.values_mut().for_each(|i| i.load.connections_open = connections_max);
    under_way.intervals.values_mut().for_each(|i| i.routes.figures_mut(0).in_flight_end = connections_max);
    for waiting in [open, under_way] {
        let outcome = judge_climb_trial(&waiting);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert!(outcome.reason.remedies().eq([Remedy::MaxConnections]), "{:?}", outcome.reason);
        let mut over_h2 = waiting;
        over_h2.plan.connection_plan.http = HttpChoice::H2;
        assert!(judge_climb_trial(&over_h2).reason.remedies().eq([Remedy::MaxConnections, Remedy::Streams]));
    }
}

#[test]
fn a_server_stall_fails_a_generator_limited_trial() {
    // From tick 2 to tick 9 of 20 no request gets a response, and one worker is busy
    // connecting. After tick 9 the sent requests get their responses.
    let silence = |service_ms: u64| {
        run_with_ticks(&[(1000.0, 20)], move |at| {
            let mut interval = tick_interval(if (2..10).contains(&at) { 0 } else { 100 }, 2, 1);
            if (2..10).contains(&at) {
                interval.routes.figures_mut(0).in_flight_end = 100 * (at - 1);
                interval.routes.figures_mut(0).ledger.unsent = 40;
            }
            if at == 10 {
                let mut late = Histogram::new();
                late.record_n(800 * MS, 100);
                interval.routes.figures_mut(0).response.merge(&late.drain());
                late.record_n(service_ms * MS, 100);
                interval.routes.figures_mut(0).service.merge(&late.drain());
            }
            interval
        })
    };
    for (service_ms, expect) in [(800, Verdict::Fail), (30, Verdict::Void)] {
        let outcome = judge_climb_trial(&silence(service_ms));
        assert_eq!(outcome.verdict, expect, "{service_ms} ms: {:?}", outcome.reason);
        assert!(outcome.evidence.is_generator_limited, "{outcome:?}");
        assert_eq!(outcome.reason.contains("no response arrived for 800 ms"), expect == Verdict::Fail);
    }
}

/// Creates the probe readings of a machine of two cores. The load used 0.6 cores, and other
/// processes used `other_cores` cores.
fn probes_with_interference(other_cores: f64, seconds: f64) -> Probes {
    let mut probes = Probes::default();
    for (name, kind, rate) in [
        ("host.cpu_idle", SeriesKind::Counter, 2.0 - 0.6 - other_cores),
        ("server.cpu", SeriesKind::Counter, 0.4),
        ("client.cpu", SeriesKind::Counter, 0.2),
        ("host.cores", SeriesKind::Gauge, 0.0),
        ("target.local", SeriesKind::Gauge, 0.0),
    ] {
        let mut series = Series::new(kind, "ns");
        for tick in 0..=(seconds * 10.0) as i64 {
            let at_ns = tick * 100 * MS as i64;
            let level = if name == "host.cores" { 2.0 } else { 1.0 };
            series.push(SeriesSample {
                at_ns,
                value: if kind == SeriesKind::Gauge { level } else { rate * at_ns as f64 },
            });
        }
        probes.series.insert(name.into(), series);
    }
    probes
}

#[test]
fn disturbed_failures_are_void_but_passes_stand() {
    let holds = run_with_ticks(&[(1000.0, 10)], |_| tick_interval(100, 2, 1));
    let breaks = run_with_ticks(&[(1000.0, 10)], |at| tick_interval(60, 50, 40 * (at + 1)));
    let late = run_of_late_generator();
    let mut closed = holds.clone();
    closed.plan.load.shape = LoadShape::Closed { users: LoadCurve::constant(8.0) };
    for (name, run, others, expect, limited) in [
        ("held, quiet", &holds, 0.03, Verdict::Pass, false),
        ("held, disturbed", &holds, 1.3, Verdict::Pass, false),
        ("broke, quiet", &breaks, 0.03, Verdict::Fail, false),
        ("broke, disturbed", &breaks, 1.3, Verdict::Void, false),
        ("we were late, quiet", &late, 0.03, Verdict::Void, true),
        ("we were late because of others", &late, 1.3, Verdict::Void, false),
        ("closed, quiet", &closed, 0.03, Verdict::Pass, false),
        ("closed, disturbed", &closed, 1.3, Verdict::Void, false),
    ] {
        let mut run = run.clone();
        run.probes = probes_with_interference(others, 1.0);
        let outcome = judge_climb_trial(&run);
        assert_eq!((outcome.verdict, outcome.evidence.is_generator_limited), (expect, limited), "{name}: {outcome:?}");
        assert_eq!(
            outcome.reason.contains("other processes used 1.3 of 2 cores"),
            others > 1.0,
            "{name}: {:?}",
            outcome.reason
        );
    }
}

#[test]
fn refusals_are_not_interference() {
    // Each row contains the status of the failures, the number of failures of a hundred
    // requests in each tick, and the expected verdict with interference.
    for (status, failed, expect) in [
        (404, 50, Verdict::Fail),
        (401, 2, Verdict::Fail),
        (503, 50, Verdict::Void),
        (429, 50, Verdict::Void),
        (408, 50, Verdict::Void),
    ] {
        let mut run = run_with_ticks(&[(1000.0, 10)], |_| {
            let mut interval = tick_interval(100 - failed, 2, 1);
            let figures = interval.routes.figures_mut(0);
            figures.ledger.failed[RequestFailure::Status as usize] = failed;
            figures.statuses.add(200, 100 - failed);
            figures.statuses.add(status, failed);
            interval
        });
        run.probes = probes_with_interference(1.3, 1.0);
        let outcome = judge_climb_trial(&run);
        assert_eq!(outcome.verdict, expect, "{status}: {outcome:?}");
        assert_eq!(outcome.is_void_by_interference(), expect == Verdict::Void, "{status}: {outcome:?}");
    }
}

#[test]
fn a_partial_last_tick_is_not_a_stall() {
    // The trial is stopped during the tenth tick. Each row contains the number of responses in
    // the partial tenth tick, whether the ninth tick had no response, and the expected number
    // of stalls.
    for (answered, silent_before, expect) in [(0, false, 0), (0, true, 1), (30, false, 0), (30, true, 1)] {
        let mut cut = run_with_ticks(&[(1000.0, 20)], |at| match at {
            9 => tick_interval(answered, 2, 70),
            8 if silent_before => tick_interval(0, 2, 100),
            _ => tick_interval(100, 2, 1),
        });
        cut.intervals.retain(|at, _| *at < 10);
        cut.window_ns.1 = 9 * TICK_NS + MS;
        cut.ending = Some(LoadEnd::Stopped(EarlyStopReason::ResultCertain("certain".into())));
        let stalls = judge_climb_trial(&cut).evidence.stalls;
        assert_eq!(stalls.len(), expect, "{answered} {silent_before}: {stalls:?}");
    }
}

#[test]
fn requests_in_flight_at_an_early_stop_are_not_failures() {
    // Each row describes the last tick: successes, failures, requests in flight at its end, and
    // the expected success rate.
    let shown = || EarlyStopReason::ResultCertain("enough".into());
    for (answered, failed, under_way, ending, expect) in [
        (60, 0, 40, LoadEnd::Finished, 0.96),
        (60, 0, 40, LoadEnd::Stopped(EarlyStopReason::Interrupted), 0.96),
        (60, 0, 40, LoadEnd::Stopped(shown()), 1.0),
        (50, 48, 2, LoadEnd::Stopped(shown()), 950.0 / 998.0),
    ] {
        let mut cut = run_with_ticks(&[(1000.0, 10)], |at| {
            let is_last = at == 9;
            let mut interval = tick_interval(if is_last { answered } else { 100 }, 2, 1);
            let ledger = &mut interval.routes.figures_mut(0).ledger;
            (ledger.failed[0], ledger.in_flight) = if is_last { (failed, under_way) } else { (0, 0) };
            interval
        });
        cut.ending = Some(ending);
        assert_eq!(judge_climb_trial(&cut).success_rate, expect, "{:?}", cut.ending);
    }
    // If no request ever got a response, no request has succeeded.
    let mut silent = run_with_ticks(&[(1000.0, 2)], |_| {
        let mut interval = tick_interval(0, 100, 1);
        interval.routes.figures_mut(0).ledger.in_flight = 100;
        interval
    });
    silent.ending = Some(LoadEnd::Stopped(shown()));
    assert_eq!(judge_climb_trial(&silent).success_rate, 0.0);
}

#[test]
fn earlier_stages_warm_up_and_are_not_judged() {
    let outcome = judge_climb_trial(&run_with_ticks(&[(2000.0, 5), (1000.0, 10)], |at| {
        let mut interval = tick_interval(100, 2, 1);
        if at < 5 {
            interval.routes.figures_mut(0).ledger.scheduled = 200;
            interval.routes.figures_mut(0).ledger.failed[0] = 100;
        }
        interval
    }));
    assert_eq!(
        (outcome.verdict, outcome.evidence.has_failures_before_window),
        (Verdict::Pass, true),
        "{:?}",
        outcome.reason
    );
    assert_eq!((outcome.offered_rps(), outcome.duration_ns), (Some(1000.0), 10 * TICK_NS));
}

#[test]
fn the_rate_of_a_limiter_is_the_accepted_rate() {
    let outcome = judge_climb_trial(&run_with_ticks(&[(1000.0, 10)], |at| {
        let mut interval = tick_interval(if at < 4 { 100 } else { 60 }, 2, 1);
        interval.routes.figures_mut(0).ledger.failed[0] = if at < 4 { 0 } else { 40 };
        interval
    }));
    assert_eq!((outcome.verdict, outcome.evidence.is_rejecting_surplus), (Verdict::Fail, true));
    assert_eq!(outcome.evidence.saturated_rps, Some(600.0));
}

#[test]
fn only_several_failures_of_a_closed_load_are_rejections() {
    // Each row contains the number of failed requests in the sixth tick and in each later tick,
    // and whether the failures count as rejections.
    for (sixth, later, expect) in [(0, 0, false), (1, 0, false), (2, 0, true), (0, 40, true)] {
        let mut run = run_with_ticks(&[(1000.0, 10)], |at| {
            let failed = [0, sixth, later][usize::from(at >= 5) + usize::from(at > 5)];
            let mut interval = tick_interval(100 - failed, 2, 8);
            interval.routes.figures_mut(0).ledger.failed[0] = failed;
            interval
        });
        run.plan.load.shape = LoadShape::Closed { users: LoadCurve::constant_for_duration(8.0, 10 * TICK_NS) };
        let outcome = judge(LoadPurpose::Saturate, 0, &run, &Slo::default());
        assert_eq!(outcome.evidence.is_rejecting_surplus, expect, "{sixth} {later}");
    }
}

#[test]
fn only_certain_verdicts_stop_a_trial_early() {
    // In each tick the server leaves 40 % of the requests unanswered. The trial is stopped
    // early, and the verdict computed from the shortened record alone is still fail.
    let whole = run_with_ticks(&[(1000.0, 40)], |at| tick_interval(60, 50, 40 * (at + 1)));
    let mut watch = TrialWatch::new(LoadPurpose::Line, &whole.plan, &Slo::default());
    let stop = whole.intervals.iter().position(|(at, i)| watch.push(u64::from(*at) * TICK_NS, i).is_break());
    let stop = stop.expect("a certain verdict");
    assert!((14..18).contains(&stop), "stopped after tick {stop}");
    let mut cut = whole.clone();
    cut.intervals.retain(|at, _| *at as usize <= stop);
    cut.window_ns.1 = (stop as u64 + 1) * TICK_NS;
    cut.ending = Some(LoadEnd::Stopped(EarlyStopReason::ResultCertain("certain".into())));
    assert_eq!(judge_climb_trial(&cut).verdict, Verdict::Fail);
    // If the trial was stopped for a reason other than its verdict, no verdict is certain.
    let mut interrupted = run_with_ticks(&[(1000.0, 10)], |_| tick_interval(100, 2, 1));
    interrupted.intervals.retain(|at, _| *at < 4);
    interrupted.ending = Some(LoadEnd::Stopped(EarlyStopReason::Interrupted));
    assert_eq!(judge_climb_trial(&interrupted).verdict, Verdict::Void);
    // A stall of 300 ms is no overload if the server catches up.
    let stall = run_with_ticks(&[(1000.0, 10)], |at| match at {
        4..=6 => tick_interval(0, 2, 100 * (at - 3)),
        7 => tick_interval(400, 200, 1),
        _ => tick_interval(100, 2, 1),
    });
    assert_eq!(judge_climb_trial(&stall).verdict, Verdict::Pass, "{:?}", judge_climb_trial(&stall).reason);
}

#[test]
fn overdue_requests_are_bad() {
    let silent = run_with_ticks(&[(1000.0, 10)], |at| tick_interval(0, 0, 100 * (at + 1)));
    let mut watch = TrialWatch::new(LoadPurpose::Line, &silent.plan, &Slo::default());
    let reasons: Vec<_> = silent.intervals.iter().map(|(at, i)| watch.push(u64::from(*at) * TICK_NS, i)).collect();
    assert!(reasons.iter().any(ControlFlow::is_break), "nothing was answered for a second");
}
