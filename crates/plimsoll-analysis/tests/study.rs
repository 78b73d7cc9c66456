//! Tests of studies on simulated servers: the loads of a comparison, and the visits (separate loads
//! of a level) of a sweep. Other tests show that the next step depends only on the record of the
//! study.

use plimsoll_analysis::levels::measured_loads;
use plimsoll_analysis::series::goodput_error_between_visits;
use plimsoll_analysis::study::{History, Step, Study, StudyFailure};
use plimsoll_analysis::{Finding, NoFinding, compute_finding};
use plimsoll_model::units::SECOND;
use plimsoll_model::*;
use plimsoll_simulator::{
    self as simulator, NO_INTERFERENCE, Noise, OtherProcessCores, ServerKind, ServerModel, StallPattern, StudyRecord,
};

const QUIET_NOISE: Noise = Noise { disturbed: 0.0, jitter: 0.0, stalls_per_s: 0.0 };

fn limited_concurrency_server(count: usize, capacity: f64) -> ServerModel {
    ServerModel {
        name: "slots",
        kind: ServerKind::Slots(count),
        capacity,
        noise: QUIET_NOISE,
        client_rps: f64::INFINITY,
    }
}

fn closed_loop_plan() -> PlanRecord {
    Plan::for_get_request("server", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record()
}

fn blocks_spec(arms: usize) -> BlocksSpec {
    let arm = |number: usize| Arm { name: number.to_string(), plan: closed_loop_plan(), is_started_per_load: false };
    BlocksSpec {
        arms: (0..arms).map(arm).collect(),
        users: None,
        rate: None,
        arrivals: ArrivalSpacing::Constant,
        load_ns: None,
        warmup_ns: None,
        budget_ns: 60 * SECOND,
        blocks_max: Some(4),
        answers_may_differ: false,
    }
}

fn prove_spec(criterion: Criterion) -> ExperimentSpec {
    ExperimentSpec::Prove(ProveSpec { blocks: blocks_spec(2), criterion, margin: 0.02, profiles: None })
}

fn search_spec(budget_ns: u64) -> FindSpec {
    FindSpec {
        planning: Planning::default(),
        base: closed_loop_plan(),
        slo: "success>=99.9%, p99<=500ms".into(),
        budget_ns,
        max_rate: None,
        arrivals: ArrivalSpacing::Constant,
        preflight_ns: 0,
        profiles: None,
    }
}

fn sweep_spec(levels: &[u64], budget_s: u64) -> ExperimentSpec {
    let lengths = LevelDurations::Budget(budget_s * SECOND);
    ExperimentSpec::Sweep(SweepSpec {
        base: closed_loop_plan(),
        levels: levels.to_vec(),
        lengths,
        warmup_ns: 200_000_000,
    })
}

/// Returns the plans of the loads in the first block of a comparison, in the order of the compared
/// targets (arms).
fn first_block_plans(recorded: &StudyRecord) -> Vec<&PlanRecord> {
    let mut first: Vec<&Trial> =
        recorded.trials.iter().filter(|t| t.tag.purpose == LoadPurpose::Block && t.tag.turn == 0).collect();
    first.sort_by_key(|trial| trial.tag.arm.map(ArmIndex::index));
    first.into_iter().map(|trial| &trial.run.plan).collect()
}

fn user_counts(trials: &[&Trial]) -> Vec<u64> {
    trials.iter().map(|trial| trial.run.plan.load.shape.curve().max() as u64).collect()
}

fn peak_trials(recorded: &StudyRecord, arm: u8) -> Vec<&Trial> {
    let tag = LoadTag { purpose: LoadPurpose::Peak, arm: Some(ArmIndex::Side(arm)), turn: 0 };
    recorded.trials.iter().filter(|trial| trial.tag == tag).collect()
}

#[test]
fn compared_sides_get_the_load_that_saturates_them() {
    for (models, users) in [
        ([limited_concurrency_server(1, 1000.0), limited_concurrency_server(1, 1000.0)], 1),
        ([limited_concurrency_server(4, 2000.0), limited_concurrency_server(4, 2000.0)], 4),
        ([limited_concurrency_server(16, 1600.0), limited_concurrency_server(16, 1600.0)], 16),
        // Both sides get the same load: the number of users that saturates the side that needs more
        // users.
        ([limited_concurrency_server(4, 2000.0), limited_concurrency_server(16, 8000.0)], 16),
    ] {
        let recorded = simulator::simulate_study(&prove_spec(Criterion::Goodput), &models, 1, NO_INTERFERENCE);
        let plans = first_block_plans(&recorded);
        let chosen: Vec<u64> = plans.iter().map(|plan| plan.load.shape.curve().max() as u64).collect();
        assert_eq!(chosen, [users, users], "{models:?}");
        assert!(recorded.elapsed_ns <= 60 * SECOND);
    }
}

#[test]
fn each_ladder_endpoint_has_its_own_load() {
    let models = [limited_concurrency_server(4, 8000.0), limited_concurrency_server(2, 10.0)];
    let asked = ExperimentSpec::Ladder(LadderSpec { blocks: blocks_spec(2) });
    let recorded = simulator::simulate_study(&asked, &models, 1, NO_INTERFERENCE);
    let plans = first_block_plans(&recorded);
    assert!(plans[1].load.duration_ns > plans[0].load.duration_ns, "{plans:?}");
    assert!(recorded.trials.iter().all(|trial| matches!(trial.tag.arm, Some(ArmIndex::Rung(_)))));
}

/// Checks that interference does not prolong the climb, the search for the load of the blocks. The
/// climb ends within its part of the budget, and the blocks (the compared loads) follow.
#[test]
fn interference_does_not_prolong_the_climb() {
    let models = [limited_concurrency_server(4, 2000.0), limited_concurrency_server(4, 2000.0)];
    let always = simulator::simulate_study(&prove_spec(Criterion::Goodput), &models, 1, |_| 1.4);
    let block = always.trials.iter().find(|trial| trial.tag.purpose == LoadPurpose::Block).expect("a block");
    assert!(block.start_ns < 25 * SECOND, "{}", block.start_ns);
    assert_eq!(user_counts(&[block]), [4]);
}

/// Checks that the number of users saturates both sides of a comparison, also the side with more
/// capacity. A connection pool of size 2 is compared with a pool of size 20. The users saturate the
/// larger pool, and each load is long enough for responses of the server with the smaller pool.
#[test]
fn users_saturate_the_larger_side() {
    // Each request takes 130 ms.
    let models = [limited_concurrency_server(2, 2.0 / 0.13), limited_concurrency_server(20, 20.0 / 0.13)];
    let mut asked = prove_spec(Criterion::Goodput);
    if let ExperimentSpec::Prove(prove) = &mut asked {
        prove.blocks.blocks_max = None;
    }
    let recorded = simulator::simulate_study(&asked, &models, 1, NO_INTERFERENCE);
    let users = user_counts(&peak_trials(&recorded, 1));
    let plan = first_block_plans(&recorded)[0];
    let chosen = plan.load.shape.curve().max();
    assert!((20.0..36.0).contains(&chosen), "{chosen} of {users:?}");
    // Each load of a block contains responses of the server with the smaller pool. The budget still
    // allows as many blocks as a verdict needs.
    let blocks = recorded.trials.iter().filter(|trial| trial.tag.purpose == LoadPurpose::Block).count() / 2;
    assert!(blocks >= 10, "{blocks}: {plan:?}");
    assert!(recorded.elapsed_ns <= 60 * SECOND, "{}", recorded.elapsed_ns);
}

#[test]
fn a_target_without_success_ends_the_comparison() {
    let refusing = ServerModel { kind: ServerKind::Limiter(0.0), ..limited_concurrency_server(1, 1000.0) };
    let recorded = simulator::simulate_study(
        &prove_spec(Criterion::Goodput),
        &[limited_concurrency_server(1, 1000.0), refusing],
        1,
        NO_INTERFERENCE,
    );
    assert_eq!(recorded.failure, Some(StudyFailure::NoSuccess('B', Vec::new())));
    assert!(first_block_plans(&recorded).is_empty());
}

fn experiment_from_recording(asked: &ExperimentSpec, recorded: &StudyRecord) -> Experiment {
    Experiment {
        spec: asked.clone(),
        started_unix_ms: 0,
        command: Vec::new(),
        settings: None,
        environment: Environment::default(),
        start_notes: StartNotes::default(),
        trials: recorded.trials.clone(),
        events: recorded.events.clone(),
        elapsed_ns: Some(recorded.elapsed_ns),
    }
}

/// Checks that each level of a sweep is visited (loaded) several times, in rounds. Interference by
/// other processes makes no level void. The interval of a level's goodput includes the variation
/// between its visits (separate loads).
#[test]
fn levels_are_visited_in_turn_and_count_despite_interference() {
    let asked = sweep_spec(&[1, 2, 4, 8, 16], 30);
    let models = [limited_concurrency_server(4, 2000.0)];
    let halves: OtherProcessCores = |now_ns| if (now_ns / (2 * SECOND)).is_multiple_of(2) { 1.4 } else { 0.0 };
    for (burners, disturbed) in [(NO_INTERFERENCE, false), (halves, true), (|_| 1.4, true)] {
        let recorded = simulator::simulate_study(&asked, &models, 1, burners);
        assert!(recorded.elapsed_ns <= 30 * SECOND, "{}", recorded.elapsed_ns);
        let turns: Vec<u32> =
            recorded.trials.iter().filter(|t| t.tag.purpose == LoadPurpose::Level).map(|t| t.tag.turn).collect();
        let round = |number: usize| turns[number * 5..][..5].to_vec();
        assert_eq!(round(0), [0, 1, 2, 3, 4]);
        // Each round begins with a different level, and no level is visited twice in succession.
        assert!(round(2)[0] > 0 && turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
        assert!((0..4).all(|number| round(number).iter().sum::<u32>() == 10), "{turns:?}");
        let experiment = experiment_from_recording(&asked, &recorded);
        let loads = measured_loads(&experiment);
        assert_eq!(loads.len(), 5);
        assert!(loads.iter().all(|load| load.visits.len() >= 4), "{turns:?}");
        let Ok(finding) = compute_finding(&experiment) else { panic!("no finding") };
        let Finding::Sweep(found) = finding.doubts_and_figures().1 else { panic!("no sweep") };
        let peak = found.peak.as_ref().expect("a peak, whatever others did");
        for level in &found.levels {
            let figures = level.figures().expect("measured");
            assert!(figures.is_error_between_visits && figures.error.is_some());
        }
        assert_eq!(found.interference.is_disturbed, disturbed, "{:?}", found.interference);
        // If other processes use the machine for half of the time, the goodput differs between the
        // visits (separate loads) of a level. The interval of the level's goodput shows the
        // variation between the visits.
        let error = found.levels[4].figures().and_then(|figures| figures.error).expect("known");
        let by_halves = burners(0) != burners(3 * SECOND);
        assert_eq!(error > 0.05, by_halves, "{error}, peak {peak:?}");
    }
    // A level with a fixed length is divided into four visits (separate loads) if each visit is
    // long enough; otherwise the level has one visit.
    for (length_ns, visits) in [(10 * SECOND, 4), (SECOND, 1)] {
        let lengths = LevelDurations::Fixed(length_ns);
        let asked =
            ExperimentSpec::Sweep(SweepSpec { base: closed_loop_plan(), levels: vec![1, 2], lengths, warmup_ns: 0 });
        let recorded = simulator::simulate_study(&asked, &models, 1, NO_INTERFERENCE);
        let experiment = experiment_from_recording(&asked, &recorded);
        let lengths: Vec<(usize, u64)> =
            measured_loads(&experiment).iter().map(|load| (load.visits.len(), load.run.duration_ns())).collect();
        assert_eq!(lengths, [(visits, length_ns); 2]);
    }
}

/// Checks that the interval of a level's goodput contains its long-run mean, although the capacity
/// of the server varies between the level's visits (separate loads).
#[test]
fn level_intervals_cover_capacity_changes() {
    let models =
        [ServerModel { noise: Noise { jitter: 0.04, ..QUIET_NOISE }, ..limited_concurrency_server(4, 2000.0) }];
    let (mut covered, mut levels) = (0, 0);
    for seed in 0..40 {
        let asked = sweep_spec(&[8, 16], 12);
        let recorded = simulator::simulate_study(&asked, &models, seed, NO_INTERFERENCE);
        for load in measured_loads(&experiment_from_recording(&asked, &recorded)) {
            let error = goodput_error_between_visits(&load.visit_rates_rps()).expect("visits");
            let rate = load.visit_rates_rps().iter().sum::<f64>() / load.visits.len() as f64;
            levels += 1;
            covered += usize::from((rate / 2000.0 - 1.0).abs() <= error + 0.01);
        }
    }
    assert!(covered * 100 >= levels * 88, "{covered} of {levels}");
}

#[test]
fn skipped_levels_are_recorded() {
    let levels: Vec<u64> = (1..=12).collect();
    // Responses take so long that each level needs more than its share of the budget.
    let recorded =
        simulator::simulate_study(&sweep_spec(&levels, 6), &[limited_concurrency_server(1, 0.5)], 1, NO_INTERFERENCE);
    let unheld: Vec<u32> = recorded
        .events
        .iter()
        .filter_map(|event| match event {
            ExperimentEvent::LoadSkipped { tag, reason: LoadSkipReason::NoTime } => Some(tag.turn),
            _ => None,
        })
        .collect();
    assert!(!unheld.is_empty() && unheld.contains(&11), "{unheld:?}");
}

/// Checks that a study that is resumed from the first part of its record takes the same next steps
/// as the original study. Only the record determines the next step.
#[test]
fn a_resumed_study_continues_identically() {
    let find = ExperimentSpec::Find(FindSpec { preflight_ns: 2_000_000, ..search_spec(20 * SECOND) });
    let ladder = ExperimentSpec::Ladder(LadderSpec { blocks: blocks_spec(2) });
    let run = ExperimentSpec::Run(RunSpec { plan: closed_loop_plan(), stop_if: Some("p99>1s".into()), profiles: None });
    let models = [limited_concurrency_server(4, 2000.0), limited_concurrency_server(4, 1500.0)];
    for asked in [run, sweep_spec(&[1, 4, 8], 12), find, prove_spec(Criterion::P99), ladder] {
        let whole = simulator::simulate_study(&asked, &models, 3, NO_INTERFERENCE);
        assert!(whole.step_times.len() > 1);
        for (elapsed_ns, trials, events) in &whole.step_times {
            let history =
                History { trials: &whole.trials[..*trials], events: &whole.events[..*events], elapsed_ns: *elapsed_ns };
            let step = Study::new(&asked).expect("a question").next(&history);
            match (step, whole.trials.get(*trials)) {
                (Step::Measure(next), Some(trial)) => {
                    assert_eq!((next.tag, &next.plan), (trial.tag, &trial.run.plan), "{}", asked.study_word());
                }
                (Step::Stop, None) => {}
                (step, trial) => panic!("{}: {step:?}, then {:?}", asked.study_word(), trial.map(|trial| trial.tag)),
            }
        }
    }
}

/// Checks the loads of the experiments (interventions). After the steady loads follow a control
/// load without an intervention, a load for each intervention, and a second control load. All loads
/// of the experiments fit into the budget.
#[test]
fn interventions_run_between_two_control_loads() {
    let asked = |interventions: Vec<Intervention>, budget_s: u64| {
        let search = search_spec(budget_s * SECOND / 3);
        let (budget_ns, varied) = (budget_s * SECOND, vec![2.0, 4.0]);
        let flagged = interventions.iter().copied().filter(|it| *it == Intervention::Identities).collect();
        ExperimentSpec::Explain(ExplainSpec {
            search,
            budget_ns,
            interventions,
            requested_interventions: flagged,
            setting_values: varied,
        })
    };
    let changes = |recorded: &StudyRecord| -> Vec<Intervention> {
        recorded.trials.iter().filter_map(|trial| Intervention::from_tag(&trial.tag)).collect()
    };
    let all = [Intervention::Reference, Intervention::MoreUsers, Intervention::NewConnections];
    let recorded = simulator::simulate_study(
        &asked(all.to_vec(), 120),
        &[limited_concurrency_server(4, 2000.0)],
        1,
        NO_INTERFERENCE,
    );
    let [first, between @ .., last] = &*changes(&recorded) else { panic!("nothing was changed") };
    assert_eq!((*first, *last), (Intervention::Control, Intervention::Control));
    assert!(!between.is_empty() && !between.contains(&Intervention::Control));
    assert!(all.iter().all(|change| between.iter().filter(|other| *other == change).count() <= 1), "{between:?}");
    assert!(recorded.elapsed_ns <= 120 * SECOND);
    let users = |change: Intervention| {
        let found = recorded.trials.iter().find(|trial| trial.tag == change.tag()).expect("was made");
        found.run.plan.load.shape.curve().max()
    };
    assert_eq!(users(Intervention::MoreUsers), 2.0 * users(Intervention::Control));
    // The finding contains the tested interventions, and their effects.
    let experiment = experiment_from_recording(&asked(all.to_vec(), 120), &recorded);
    let concluded = plimsoll_analysis::finding::compute_finding(&experiment).expect("a finding");
    let plimsoll_analysis::Finding::Explain(found) = concluded.doubts_and_figures().1 else { panic!("an explanation") };
    let told: Vec<Intervention> = found.explanation.interventions.iter().map(|made| made.intervention).collect();
    assert_eq!(told, between);
    // The values of the server's setting are tested once each, after the interventions. On the
    // simulated server, the setting has no effect.
    let varied = found.explanation.setting_effect.as_ref().expect("was tried");
    assert_eq!(varied.steps.iter().map(|step| step.value).collect::<Vec<_>>(), [2.0, 4.0]);
    assert!(varied.elasticity.is_some_and(|elasticity| elasticity.abs() < 0.05), "{varied:?}");
    let last =
        recorded.trials.iter().rposition(|trial| Intervention::from_tag(&trial.tag).is_some()).expect("a change");
    assert_eq!(recorded.trials.len(), last + 3, "the setting is changed last");
    // Even if the budget is short, the study tests an intervention that the user requests by a
    // flag. To leave time for the requested intervention, the steady loads are shorter.
    let ExperimentSpec::Explain(mut short) = asked(vec![Intervention::Identities], 30) else {
        panic!("an explanation")
    };
    short.setting_values.clear();
    let recorded = simulator::simulate_study(
        &ExperimentSpec::Explain(short),
        &[limited_concurrency_server(4, 2000.0)],
        1,
        NO_INTERFERENCE,
    );
    assert_eq!(changes(&recorded), [Intervention::Control, Intervention::Identities, Intervention::Control]);
    assert!(recorded.elapsed_ns <= 30 * SECOND);
    // No intervention is tested if none is possible, or if there is no time. The finding reports
    // each intervention that a flag requested but that was not tested.
    for (may, budget_s, untried_experiment_doubts) in [
        (vec![], 120, vec![]),
        (all.to_vec(), 12, vec![]),
        (
            vec![Intervention::Identities],
            12,
            vec![
                "the experiment 'several client identities' was not tried: the budget left no time for this experiment",
            ],
        ),
        (
            vec![Intervention::Identities],
            6,
            vec![
                "the experiment 'several client identities' was not tried: the budget left no time for this experiment",
                "the server setting was not tried with 4: the budget left no time for these loads",
            ],
        ),
    ] {
        let asked = asked(may, budget_s);
        let recorded = simulator::simulate_study(&asked, &[limited_concurrency_server(4, 2000.0)], 1, NO_INTERFERENCE);
        assert_eq!(changes(&recorded), []);
        let mut experiment = self::experiment_from_recording(&asked, &recorded);
        experiment.elapsed_ns = Some(recorded.elapsed_ns);
        let concluded = plimsoll_analysis::finding::compute_finding(&experiment).expect("a finding");
        let told: Vec<String> =
            concluded.doubts_and_figures().0.iter().map(|doubt| doubt.text.render_text(|_| "")).collect();
        assert_eq!(
            told.iter().filter(|text| text.contains("was not tried")).collect::<Vec<_>>(),
            untried_experiment_doubts,
            "{told:?}"
        );
    }
}

/// Checks that the first load of a level counts if other processes disturbed all loads of the
/// level. Other processes disturb the machine all the time, so every steady load is repeated. The
/// repeated low load follows a load above the load line, so the first low load counts.
#[test]
fn the_first_load_counts_if_all_are_disturbed() {
    use plimsoll_analysis::study::explain::{SteadyLoadLevel, steady_loads};
    let search = search_spec(20 * SECOND);
    let slo: plimsoll_analysis::Slo = search.slo.parse().expect("a promise");
    let (interventions, flagged, varied) = (Vec::new(), Vec::new(), Vec::new());
    let asked = ExperimentSpec::Explain(ExplainSpec {
        search,
        budget_ns: 120 * SECOND,
        interventions,
        requested_interventions: flagged,
        setting_values: varied,
    });
    let recorded = simulator::simulate_study(&asked, &[serial_server(ServerKind::DeepQueue)], 1, |_| 1.4);
    let lows: Vec<&Trial> = recorded.trials.iter().filter(|trial| trial.tag == SteadyLoadLevel::Low.tag()).collect();
    assert!(lows.len() > 1, "{} loads", recorded.trials.len());
    let told = steady_loads(&recorded.trials, &slo).low.expect("was made");
    assert!(std::ptr::eq(told, &raw const lows[0].run));
}

/// Checks that the load with headroom (a load below the load line) is made once, within the budget.
/// The rate of the load with headroom is the load line minus the requested headroom.
#[test]
fn headroom_is_measured_below_the_line() {
    let planning = Planning { headroom: Some(0.3), need_rps: Some(50_000.0), soak_ns: None };
    let asked = ExperimentSpec::Find(FindSpec { planning, ..search_spec(30 * SECOND) });
    let recorded = simulator::simulate_study(&asked, &[limited_concurrency_server(4, 2000.0)], 1, NO_INTERFERENCE);
    assert!(recorded.elapsed_ns <= 30 * SECOND, "{}", recorded.elapsed_ns);
    let held: Vec<&Trial> =
        recorded.trials.iter().filter(|trial| trial.tag.purpose == LoadPurpose::SteadyLoad).collect();
    let experiment = experiment_from_recording(&asked, &recorded);
    let concluded = plimsoll_analysis::finding::compute_finding(&experiment).expect("a finding");
    let plimsoll_analysis::Finding::Find(found) = concluded.doubts_and_figures().1 else { panic!("a search") };
    let (planned, needed) = (found.planned_load.expect("was measured"), found.instance_estimate.expect("was asked"));
    let line = found.findings.load_line.rps;
    assert_eq!((held.len(), planned.rate_rps, planned.is_sustained), (1, 0.7 * line, true));
    assert!((held[0].run.plan.load.shape.curve().max() / planned.rate_rps - 1.0).abs() < 0.01);
    assert_eq!(needed.instances, (50_000.0 / planned.rate_rps).ceil());
    assert!(needed.instances_min <= needed.instances);
}

/// Checks that a soak (a long load at the load line) reports how long the server met the SLO, and
/// how the server broke it. If the soak breaks the SLO at once, the load line is withdrawn.
#[test]
fn a_soak_reports_how_long_the_line_was_sustained() {
    use plimsoll_analysis::find::SoakViolationKind;
    use plimsoll_simulator::CapacityDrift;
    let nominal = |kind| ServerModel { kind, ..limited_concurrency_server(1, 500.0) };
    let planning = Planning { soak_ns: Some(600 * SECOND), ..Planning::default() };
    let asked = ExperimentSpec::Find(FindSpec { planning, ..search_spec(30 * SECOND) });
    // Each case contains a server, the range of the time for which the server meets the SLO (s),
    // and how it breaks the SLO afterwards.
    type SoakCase = (ServerKind, (f64, f64), fn(Option<SoakViolationKind>) -> bool);
    let cases: [SoakCase; 3] = [
        (ServerKind::Slots(1), (599.0, 601.0), |kind| kind.is_none()),
        // Half a minute of search and about 80 s of soak at 490/s exhaust the burst credit of 50
        // 000 requests.
        (ServerKind::Ages(CapacityDrift::Credit(50_000.0, 0.2)), (40.0, 100.0), |kind| {
            kind == Some(SoakViolationKind::BacklogGrows)
        }),
        (ServerKind::Ages(CapacityDrift::Leaks(2_000_000.0)), (0.0, 300.0), |kind| kind.is_some()),
    ];
    for (kind, (from_s, to_s), expect) in cases {
        let recorded = simulator::simulate_study(&asked, &[nominal(kind)], 1, NO_INTERFERENCE);
        let experiment = experiment_from_recording(&asked, &recorded);
        let concluded = plimsoll_analysis::finding::compute_finding(&experiment).expect("a finding");
        let plimsoll_analysis::Finding::Find(found) = concluded.doubts_and_figures().1 else { panic!("a search") };
        let soak = found.soak.clone().expect("a soak");
        assert!((from_s..=to_s).contains(&soak.met_s), "{kind:?}: {soak:?}");
        assert!(expect(soak.violation.as_ref().map(|broke| broke.kind)), "{kind:?}: {}", soak.soak_result_text());
        let line = found.findings.load_line;
        assert_eq!((line.is_confirmed, line.rps > 0.0), (soak.violation.is_none(), soak.met_s > 0.0), "{kind:?}");
    }
}

/// Creates the spec of an overload study of one minute. If `line_rps` is `None`, a search finds the
/// load line.
fn overload_spec(line_rps: Option<f64>) -> OverloadSpec {
    OverloadSpec { search: search_spec(30 * SECOND), line_rps, budget_ns: 60 * SECOND, retries: 0, second_target: None }
}

/// Creates a server that processes one request at a time, at most 1 000/s.
fn serial_server(kind: ServerKind) -> ServerModel {
    ServerModel { kind, ..limited_concurrency_server(1, 1000.0) }
}

/// Checks that a search is followed by one load in steps, whose rates are multiples of the load
/// line. The search and the load in steps fit into the budget. The finding names the behaviour of
/// the server above its load line.
#[test]
fn overload_steps_exceed_the_load_line_and_return() {
    use plimsoll_analysis::overload::{OverloadVerdict, STEP_RATE_FACTORS};
    for (kind, line_rps, verdict, is_back) in [
        (ServerKind::Limiter(0.1), None, OverloadVerdict::Sheds, true),
        (ServerKind::Limiter(0.1), Some(1000.0), OverloadVerdict::Sheds, true),
        // The backlog of the simulated server with a deep queue takes longer to drain than the last
        // load step lasts.
        (ServerKind::DeepQueue, None, OverloadVerdict::Collapses, false),
    ] {
        let asked = ExperimentSpec::Overload(overload_spec(line_rps));
        let recorded = simulator::simulate_study(&asked, &[serial_server(kind)], 1, NO_INTERFERENCE);
        assert!(recorded.elapsed_ns <= 61 * SECOND, "{}", recorded.elapsed_ns);
        let overloads = recorded.trials.iter().filter(|trial| trial.tag.purpose == LoadPurpose::Overload);
        assert_eq!((overloads.count(), recorded.trials.len() == 1), (1, line_rps.is_some()));
        let experiment = experiment_from_recording(&asked, &recorded);
        let concluded = plimsoll_analysis::finding::compute_finding(&experiment).expect("a finding");
        let plimsoll_analysis::Finding::Overload(found) = concluded.doubts_and_figures().1 else {
            panic!("an overload")
        };
        let told = &found.overload;
        assert_eq!((told.verdict, told.recovery_s.is_some()), (Some(verdict), is_back), "{told:?}");
        for (step, factor) in told.steps.iter().zip(STEP_RATE_FACTORS) {
            assert!((step.offered_rps / (factor * told.line_rps) - 1.0).abs() < 0.02, "{step:?}");
        }
        let third = &told.steps[4];
        match kind {
            ServerKind::DeepQueue => assert!(third.goodput_share < 0.1 && third.succeeded_rps > 900.0, "{third:?}"),
            _ => {
                assert!(
                    third.goodput_share > 0.95 && third.accepted_p99_ns.is_some_and(|ns| ns < 5_000_000),
                    "{third:?}"
                )
            }
        }
    }
    // If the time budget of the study is too short for all load steps, the study executes no load.
    let asked = ExperimentSpec::Overload(OverloadSpec { budget_ns: 9 * SECOND, ..overload_spec(Some(100.0)) });
    assert!(
        simulator::simulate_study(&asked, &[serial_server(ServerKind::DeepQueue)], 1, NO_INTERFERENCE)
            .trials
            .is_empty()
    );
}

#[test]
fn overload_steps_without_a_load_line_use_peak_throughput() {
    let asked = ExperimentSpec::Overload(overload_spec(None));
    let stalling = StallPattern { from_ms: 600, to_ms: 700, gap_ms: 2_000, is_exponential: false };
    let recorded =
        simulator::simulate_study(&asked, &[serial_server(ServerKind::Stalls(stalling))], 1, NO_INTERFERENCE);
    let experiment = self::experiment_from_recording(&asked, &recorded);
    let concluded = plimsoll_analysis::finding::compute_finding(&experiment).expect("a finding");
    let (doubts, plimsoll_analysis::Finding::Overload(found)) = concluded.doubts_and_figures() else {
        panic!("an overload")
    };
    assert!(doubts.iter().any(|doubt| doubt.text.render_text(|_| "").contains("there is no load line")), "{doubts:?}");
    assert!((500.0..1100.0).contains(&found.overload.line_rps), "{}", found.overload.line_rps);
}

#[test]
fn missing_overload_results_have_a_reason() {
    let asked = ExperimentSpec::Overload(overload_spec(None));
    let cut_short = |recorded: &mut StudyRecord| {
        recorded.trials.truncate(2);
        recorded.elapsed_ns = recorded.trials.last().map_or(0, |last| last.start_ns + last.run.window_ns.1);
    };
    type Change<'a> = &'a dyn Fn(&mut StudyRecord);
    let cases: [(ServerKind, Change, NoFinding); 4] = [
        (ServerKind::DeepQueue, &|recorded| recorded.trials.clear(), NoFinding::NoLoad),
        (ServerKind::DeepQueue, &cut_short, NoFinding::SearchInterrupted),
        (
            ServerKind::DeepQueue,
            &|recorded| recorded.trials.retain(|it| it.tag.purpose != LoadPurpose::Overload),
            NoFinding::NoTime,
        ),
        (ServerKind::Limiter(0.0), &|_| (), NoFinding::NoLine),
    ];
    for (kind, change, expect) in cases {
        let mut recorded = simulator::simulate_study(&asked, &[serial_server(kind)], 1, NO_INTERFERENCE);
        change(&mut recorded);
        let experiment = self::experiment_from_recording(&asked, &recorded);
        assert_eq!(plimsoll_analysis::finding::compute_finding(&experiment).err(), Some(expect), "{kind:?}");
    }
}
