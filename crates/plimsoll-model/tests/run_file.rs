//! Tests of runs and their files: encoding and decoding, merging, and reading cut or damaged files.

#![allow(clippy::print_stderr, reason = "a random test says its seed")]
use plimsoll_model::codec::{self, FileError, Frame};
use plimsoll_model::measures::FigureMut;
use plimsoll_model::rng::Rng;
use plimsoll_model::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn random_histogram(rng: &mut Rng, values: u64) -> SparseHistogram {
    let mut dense = Histogram::new();
    for _ in 0..rng.uniform_below(values + 1) {
        let bits = 1 + rng.uniform_below(43);
        dense.record(rng.uniform_below(1 << bits));
    }
    dense.drain()
}

/// Sets a figure of any kind to a random value. On average half of the figures stay empty.
fn set_random_value(held: FigureMut<SparseHistogram>, rng: &mut Rng) {
    if rng.uniform_below(2) == 0 {
        return;
    }
    match held {
        FigureMut::Count(count) => *count = rng.uniform_below(1_000) * (1 + (rng.uniform_below(4) << 20)),
        FigureMut::Times(times) => *times = random_histogram(rng, 20),
        FigureMut::Tally(tally) => {
            (0..rng.uniform_below(4)).for_each(|_| tally.add(rng.uniform_below(600) as u16, 1 + rng.uniform_below(9)))
        }
        FigureMut::Ledger(ledger) => {
            *ledger = Ledger {
                scheduled: rng.uniform_below(1000),
                succeeded: rng.uniform_below(1000),
                failed: std::array::from_fn(|_| rng.uniform_below(3) / 2),
                unsent: rng.uniform_below(5),
                in_flight: rng.uniform_below(5),
            };
        }
        FigureMut::Workers(workers) => {
            let time = |worker| WorkerTime {
                worker,
                work_ns: rng.uniform_below(99),
                cpu_ns: rng.uniform_below(99),
                wall_ns: rng.uniform_below(99),
            };
            *workers = [0, 1, 5].map(time).into_iter().collect();
        }
    }
}

/// A random interval with all figures of the table of measures, so that a figure added to the table
/// is tested too.
fn random_interval(rng: &mut Rng) -> Interval {
    let mut interval = Interval::default();
    interval.load.figure_values_mut().for_each(|(_, held)| set_random_value(held, rng));
    for route in [0, 1, 7, 300] {
        if rng.uniform_below(2) == 0 {
            interval.routes.figures_mut(route).figure_values_mut().for_each(|(_, held)| set_random_value(held, rng));
        }
    }
    interval
}

fn plan_with_secrets() -> Plan {
    let shape = LoadShape::Open { rate: LoadCurve::constant(5.0), arrivals: ArrivalSpacing::Poisson };
    let mut plan = Plan::for_get_request("localhost", 8080, vec!["127.0.0.1:8080".parse().expect("an address")], shape);
    plan.traffic.routes[0].request = Request {
        method: "GET".into(),
        target: "/a?token=s3cret".into(),
        headers: vec![("Authorization".into(), "s3cret".into()), ("Accept".into(), "*/*".into())],
        body: vec![0; 3],
    };
    plan
}

fn random_probes(rng: &mut Rng) -> Probes {
    let mut probes = Probes { cpu_ns: rng.uniform_below(99), wall_ns: rng.uniform_below(99), ..Probes::default() };
    for (name, kind, unit) in [
        ("server.cpu", SeriesKind::Counter, "ns"),
        ("server.rss", SeriesKind::Gauge, "bytes"),
        ("x", SeriesKind::Gauge, ""),
    ] {
        if rng.uniform_below(3) == 0 {
            continue;
        }
        let mut series = Series::new(kind, unit);
        for _ in 0..rng.uniform_below(9) {
            let value =
                if rng.uniform_below(2) == 0 { rng.uniform_below(9) as f64 } else { rng.next_u64() as f64 / 7.0 };
            let sample = SeriesSample { at_ns: rng.uniform_below(20) as i64 - 5, value };
            if !series.samples.contains(&sample) {
                series.push(sample);
            }
        }
        for _ in 0..rng.uniform_below(3) {
            let from_ns = rng.uniform_below(9) as i64;
            let reason = ["gone", "permission denied"][rng.uniform_below(2) as usize].to_owned();
            series.push_gap(Gap { from_ns, to_ns: from_ns + rng.uniform_below(9) as i64, reason });
        }
        probes.series.insert(name.into(), series);
    }
    if rng.uniform_below(2) == 0 {
        let (name, found_by) = ("api".to_owned(), "--pid".to_owned());
        probes.servers.push(WatchedServer { from_ns: 0, pid: rng.uniform_below(3) as u32, name, found_by });
    }
    for _ in 0..rng.uniform_below(3) {
        let from_ns = rng.uniform_below(20) as i64 - 5;
        let stack = |rng: &mut Rng| SampledStack {
            count: 1 + rng.uniform_below(9) as u32,
            functions: vec![rng.uniform_below(2) as u32, 1],
        };
        probes.sampled.merge(&SampledFunctions {
            intervals: vec![SampleInterval {
                from_ns,
                to_ns: from_ns + rng.uniform_below(9) as i64,
                period_ns: 1 + rng.uniform_below(9),
                lost: rng.uniform_below(3),
                in_kernel: rng.uniform_below(2) == 0,
                names: vec!["main".into(), "sort::<f64>".into()],
                stacks: (0..rng.uniform_below(4)).map(|_| stack(rng)).collect(),
            }],
            missing_reason: (rng.uniform_below(3) == 0).then(|| "the kernel does not allow it".into()),
        });
    }
    if rng.uniform_below(3) == 0 {
        probes.missing.push("not on this machine".into());
    }
    probes
}

fn random_failed_responses(rng: &mut Rng) -> Vec<FailedResponse> {
    let busy = b"HTTP/1.1 503 Busy\r\n\r\ntry later";
    let mut answers = vec![FailedResponse::from_non_http_bytes(
        rng.uniform_below(99),
        b"\x1bSSH",
        "no status line",
        RedactionLevel::Secrets,
    )];
    answers.push(FailedResponse::from_response(503, rng.uniform_below(99), busy, RedactionLevel::Secrets));
    answers.truncate(rng.uniform_below(3) as usize);
    answers
}

/// Agents of a fleet, ascending by name.
fn random_agents(rng: &mut Rng) -> Vec<AgentAccount> {
    let agent = |rng: &mut Rng, name: &str| {
        let mut agent = AgentAccount::new(name, 1 + rng.uniform_below(4) as u32);
        agent.ledger = Ledger { scheduled: rng.uniform_below(99), unsent: rng.uniform_below(9), ..Ledger::default() };
        agent.lag_p99_ns = (rng.uniform_below(2) == 0).then(|| rng.uniform_below(1 << 40));
        (agent.work_share, agent.intervals_recorded, agent.skew_ns_max) =
            (rng.uniform_below(101) as f64 / 100.0, rng.uniform_below(99), rng.uniform_below(1 << 30));
        agent.loss_reason = (rng.uniform_below(3) == 0).then(|| format!("ssh ended {}", rng.uniform_below(3)));
        agent
    };
    let mut all: Vec<AgentAccount> = ["load1", "load2", "load3"].iter().map(|name| agent(rng, name)).collect();
    all.retain(|_| rng.uniform_below(3) == 0);
    all
}

fn random_run(rng: &mut Rng) -> Run {
    let mut run = Run::new(plan_with_secrets().record());
    for index in 0..rng.uniform_below(6) as u32 {
        if rng.uniform_below(5) > 0 {
            run.intervals.insert(index, random_interval(rng));
        }
    }
    let reasons = [EarlyStopReason::Interrupted, EarlyStopReason::Condition("errors > 5 %".into())];
    run.ending = match rng.uniform_below(4) {
        0 => None,
        1 => Some(LoadEnd::Finished),
        n => Some(LoadEnd::Stopped(reasons[n as usize - 2].clone())),
    };
    run.window_ns = (0, rng.uniform_below(600_000_000));
    run.probes = random_probes(rng);
    // Failed responses and the agents' figures are written to the run file only when the load ends.
    if run.ending.is_some() {
        run.failed_answers = random_failed_responses(rng);
        run.agents = random_agents(rng);
    }
    run
}

/// An experiment whose kind depends on the seed. The experiment's plan has no secrets, as in a
/// record.
fn experiment_spec_for_seed(seed: u64) -> ExperimentSpec {
    let plan = plan_with_secrets().record();
    let profiles = Some(ProfilesSpec { bases: vec!["http://h/debug/pprof".into()], seconds: 10 });
    let arm = |name: &str| Arm { name: name.into(), plan: plan.clone(), is_started_per_load: name == "b" };
    let blocks = BlocksSpec {
        arms: vec![arm("a"), arm("b")],
        users: Some(4),
        rate: None,
        arrivals: ArrivalSpacing::Poisson,
        load_ns: None,
        warmup_ns: Some(0),
        budget_ns: 60_000_000_000,
        blocks_max: None,
        answers_may_differ: false,
    };
    let search = FindSpec {
        base: plan.clone(),
        slo: "p99<=500ms".into(),
        budget_ns: 60_000_000_000,
        max_rate: Some(1e4),
        arrivals: ArrivalSpacing::Constant,
        preflight_ns: 7,
        profiles: profiles.clone(),
        planning: Planning { headroom: Some(0.3), need_rps: None, soak_ns: Some(1_800_000_000_000) },
    };
    match seed % 7 {
        0 => ExperimentSpec::Run(RunSpec { plan, stop_if: Some("errors>5%".into()), profiles }),
        1 => ExperimentSpec::Sweep(SweepSpec {
            base: plan,
            levels: vec![1, 2],
            lengths: LevelDurations::Budget(9),
            warmup_ns: 3,
        }),
        2 => ExperimentSpec::Find(search),
        4 => ExperimentSpec::Explain(ExplainSpec {
            search,
            budget_ns: 180_000_000_000,
            interventions: vec![Intervention::Reference, Intervention::DependencyPauses],
            requested_interventions: vec![Intervention::DependencyPauses],
            setting_values: vec![2.0, 4.5],
        }),
        5 => ExperimentSpec::Overload(OverloadSpec {
            search,
            line_rps: Some(1e3),
            budget_ns: 180_000_000_000,
            retries: 3,
            second_target: None,
        }),
        3 => ExperimentSpec::Prove(ProveSpec { blocks, criterion: Criterion::P99, margin: 0.02, profiles }),
        _ => ExperimentSpec::Ladder(LadderSpec { blocks }),
    }
}

fn recorded_settings(targets: usize) -> ExperimentSettings<RedactedText> {
    let complete = ExperimentSettings {
        targets: vec![Default::default(); targets],
        issuers: Some("/etc/ca.pem".to_owned()),
        fail_if: Some("p99>1s".to_owned()),
        ..ExperimentSettings::default()
    };
    complete.record()
}

fn random_experiment(seed: u64) -> Experiment {
    let mut rng = Rng::new(seed);
    let mut trials = Vec::new();
    for number in 0..3 {
        let mut run = random_run(&mut rng);
        if run.ending.is_none() {
            run.ending = Some(LoadEnd::Finished);
        }
        trials.push(Trial {
            tag: LoadTag { turn: number as u32, ..LoadTag::for_purpose(LoadPurpose::Climb) },
            start_ns: number * 1_000,
            run,
        });
    }
    Experiment {
        spec: experiment_spec_for_seed(seed),
        started_unix_ms: 1_700_000_000_000,
        command: vec!["plimsoll".into(), "find".into()],
        settings: Some(Box::new(recorded_settings(experiment_spec_for_seed(seed).plans().len()))),
        environment: Environment { cores: 2, ..Environment::default() },
        start_notes: StartNotes { warnings: vec!["slow".into()], adjustments: vec!["2 threads".into()] },
        trials,
        events: vec![
            ExperimentEvent::LoadSkipped {
                tag: LoadTag::for_purpose(LoadPurpose::Level),
                reason: LoadSkipReason::Machine("open files".into()),
            },
            ExperimentEvent::Aborted { reason: "B died".into() },
            profile_remark(Ok("x.18c.a1.cpu.pb.gz".into())),
            profile_remark(Err("it answers 404".into())),
        ],
        elapsed_ns: Some(12),
    }
}

proptest! {
    #[test]
    fn an_experiment_round_trips(seed in any::<u64>()) {
        let experiment = random_experiment(seed);
        let decoded = codec::decode(&codec::encode(&experiment)).expect("a run file");
        prop_assert_eq!(decoded.damage, None);
        prop_assert_eq!(decoded.experiment, experiment);
    }

    #[test]
    fn merging_runs_is_associative_and_commutative(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let [a, b, c] = std::array::from_fn(|_| random_run(&mut rng));
        let merged = |x: &Run, y: &Run| { let mut sum = x.clone(); sum.merge(y); sum };
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        let sum = merged(&a, &b);
        let (t, ta, tb) = (sum.totals(), a.totals(), b.totals());
        let scheduled = |totals: &run::RunTotals| totals.routes_sum.ledger.scheduled;
        prop_assert_eq!(scheduled(&t), scheduled(&ta) + scheduled(&tb));
        prop_assert_eq!(t.routes_sum.response.count(), ta.routes_sum.response.count() + tb.routes_sum.response.count());
        prop_assert_eq!(t.load.bytes_in, ta.load.bytes_in + tb.load.bytes_in);
    }

    #[test]
    fn merging_intervals_is_associative_and_parallel_merging_commutes(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let [a, b, c] = std::array::from_fn(|_| random_interval(&mut rng));
        type Merge = fn(&mut Interval, &Interval);
        for merge in [Interval::merge_parallel as Merge, Interval::merge_after] {
            let merged = |x: &Interval, y: &Interval| { let mut sum = x.clone(); merge(&mut sum, y); sum };
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        }
        let beside = |x: &Interval, y: &Interval| { let mut sum = x.clone(); sum.merge_parallel(y); sum };
        prop_assert_eq!(beside(&a, &b), beside(&b, &a));
        // The sum over all routes is the same, whether routes are summed before or after the
        // intervals are merged.
        prop_assert_eq!(beside(&a, &b).all_routes().clone(), {
            let mut whole = Interval { routes: a.all_routes().clone().into(), ..a.clone() };
            whole.merge_parallel(&Interval { routes: b.all_routes().clone().into(), ..b.clone() });
            whole.all_routes().clone()
        });
    }

    #[test]
    fn a_truncated_file_gives_all_complete_frames(seed in any::<u64>(), cut in 0.0..1.0f64) {
        let experiment = random_experiment(seed);
        let bytes = codec::encode(&experiment);
        let cut = (cut * bytes.len() as f64) as usize;
        match codec::decode(&bytes[..cut]) {
            Err(error) => prop_assert!(matches!(error, FileError::NotARunFile | FileError::NoReadableFrame)),
            Ok(decoded) => {
                prop_assert_eq!(decoded.damage.map_or(cut, |d| d.good_bytes + d.lost_bytes), cut);
                prop_assert!(decoded.experiment.trials.len() <= experiment.trials.len());
                for (got, whole) in decoded.experiment.trials.iter().zip(&experiment.trials) {
                    prop_assert_eq!(&got.run.plan, &whole.run.plan);
                    for (index, interval) in &got.run.intervals {
                        // Requests that have no outcome where the file is cut count as in flight.
                        // No other figure of an interval may differ from the complete file.
                        let mut interval = interval.clone();
                        let whole = whole.run.intervals.get(index);
                        if got.run.ending.is_none() && let Some(whole) = whole {
                            for route in [0, 1, 7, 300] {
                                if interval.routes.get(route).is_some() {
                                    let before = whole.routes.get(route).map_or(0, |figures| figures.ledger.in_flight);
                                    interval.routes.figures_mut(route).ledger.in_flight = before;
                                }
                            }
                            // A route without activity in the last interval may have empty figures
                            // in the truncated file.
                            let kept = interval.routes.iter().filter(|(route, figures)| {
                                !figures.is_empty() || whole.routes.get(*route).is_some()
                            });
                            let kept = kept.map(|(route, figures)| (route, figures.clone())).collect();
                            interval.routes = kept;
                        }
                        prop_assert_eq!(Some(&interval), whole);
                    }
                    let ledger = got.run.totals().routes_sum.ledger;
                    if got.run.ending.is_none() && !got.run.intervals.is_empty() {
                        // Some random intervals have more outcomes than scheduled requests, so the
                        // sums of their ledgers do not agree.
                        let ends = ledger.finished_requests() + ledger.unsent + ledger.in_flight;
                        prop_assert!(ledger.counts_add_up() || ends > ledger.scheduled);
                    }
                }
            }
        }
    }
}

/// Checks that frames which arrive in pieces of any size equal the frames that were sent. Damaged
/// bytes are refused, and the decoder never panics.
#[test]
fn frames_decode_from_any_split() {
    let file = codec::encode(&random_experiment(7));
    let sent = &file[codec::MAGIC.len()..];
    let mut rng = Rng::new(seed_from_environment());
    for _ in 0..20 {
        let (mut arrived, mut come, mut again) = (Vec::new(), 0, Vec::new());
        while come < sent.len() || !arrived.is_empty() {
            let more = (1 + rng.uniform_below(5000) as usize).min(sent.len() - come);
            arrived.extend_from_slice(&sent[come..come + more]);
            come += more;
            while let Some((frame, length)) = codec::read_first_frame(&arrived).expect("a frame") {
                frame.encode(&mut again);
                arrived.drain(..length);
            }
        }
        assert_eq!(again, sent);
    }
    let whole = |mut bytes: &[u8]| {
        while let Some((_, length)) = codec::read_first_frame(bytes).ok()? {
            bytes = &bytes[length..];
        }
        Some(bytes.is_empty())
    };
    assert_eq!(whole(sent), Some(true));
    let (damaged, believed) = read_damaged_copies(sent, &mut Rng::new(seed_from_environment()), 5_000, whole);
    assert!(believed <= 20, "{believed} damaged streams were believed, {damaged} were not");
    assert!(codec::read_first_frame(&[0xff; 64]).is_err(), "a length that no frame has");
}

/// Reads damaged copies of `file` with `read`. Returns the numbers of copies that were recognised
/// as damaged, and of copies that were accepted as intact.
fn read_damaged_copies(file: &[u8], rng: &mut Rng, rounds: u32, read: impl Fn(&[u8]) -> Option<bool>) -> (u32, u32) {
    let (mut damaged, mut whole) = (0, 0);
    for _ in 0..rounds {
        let mut bytes = file.to_vec();
        match rng.uniform_below(4) {
            0 => bytes.truncate(rng.uniform_below(bytes.len() as u64) as usize),
            1 => {
                let at = rng.uniform_below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.uniform_below(8);
            }
            2 => {
                let at = rng.uniform_below(bytes.len() as u64) as usize;
                let noise: Vec<u8> = (0..rng.uniform_below(40) + 1).map(|_| rng.next_u64() as u8).collect();
                bytes.splice(at..at, noise);
            }
            _ => {
                let at = rng.uniform_below(bytes.len() as u64) as usize;
                let until = (at + 1 + rng.uniform_below(50) as usize).min(bytes.len());
                bytes.drain(at..until);
            }
        }
        match read(&bytes) {
            Some(true) => whole += 1,
            _ => damaged += 1,
        }
    }
    (damaged, whole)
}

fn seed_from_environment() -> u64 {
    let seed = std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
    eprintln!("seed {seed} (set PLIMSOLL_SEED to repeat another)");
    seed
}

#[test]
fn damage_is_reported_and_never_panics() {
    let seed = seed_from_environment();
    let file = codec::encode(&random_experiment(seed));
    let complete = |bytes: &[u8]| {
        let decoded = codec::decode(bytes).ok()?;
        Some(decoded.damage.is_none() && decoded.experiment.elapsed_ns.is_some())
    };
    assert_eq!(complete(&file), Some(true));
    let (damaged, whole) = read_damaged_copies(&file, &mut Rng::new(seed), 20_000, complete);
    // A damaged copy may be accepted only if the random noise restored the original bytes.
    assert!(whole <= 20, "{whole} damaged files were believed, {damaged} were not");
}

#[test]
fn the_fuzz_driver_detects_a_wrong_decoder() {
    let file = codec::encode(&random_experiment(1));
    let (_, whole) = read_damaged_copies(&file, &mut Rng::new(1), 500, |_| Some(true));
    assert_eq!(whole, 500, "a reader that believes everything is caught");
}

#[test]
fn files_of_other_formats_are_recognised() {
    for (bytes, expect) in [
        (&b""[..], FileError::NotARunFile),
        (b"hello, world", FileError::NotARunFile),
        (b"PLIMSOL\x03", FileError::NoReadableFrame),
        (b"PLIMSOL\x02\xff\xff\xff\xff\x01", FileError::NoReadableFrame),
        (b"PLIMSOL\x01", FileError::OtherVersion(1)),
        (b"PLIMSOL\x04", FileError::OtherVersion(4)),
    ] {
        assert_eq!(codec::decode(bytes), Err(expect));
    }
    for (version, reader) in [(1, "from before 2026-11-22 reads"), (4, "a newer plimsoll reads")] {
        let sentence = FileError::OtherVersion(version).to_string();
        assert!(sentence.contains(reader), "{sentence}");
    }
}

/// Checks that files of the previous version are readable, but lack the settings that a rerun
/// needs.
#[test]
fn files_of_the_previous_version_are_read() {
    let experiment = Experiment { settings: None, ..random_experiment(5) };
    let mut bytes = codec::encode(&experiment);
    bytes[7] = 2;
    assert_eq!(codec::decode(&bytes).expect("a run file").experiment, experiment);
}

#[test]
fn unknown_frames_are_skipped() {
    let experiment = random_experiment(5);
    let mut bytes = codec::encode(&experiment);
    let payload = [77u8, 1, 2, 3];
    bytes.extend_from_slice(&3u32.to_le_bytes());
    bytes.extend_from_slice(&payload);
    bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    let decoded = codec::decode(&bytes).expect("a run file");
    assert_eq!((decoded.frames_unknown, decoded.damage), (1, None));
    assert_eq!(decoded.experiment, experiment);
}

#[test]
fn probes_written_in_parts_are_read_whole() {
    let mut rng = Rng::new(seed_from_environment());
    for _ in 0..200 {
        let parts: Vec<Probes> = (0..3).map(|_| random_probes(&mut rng)).collect();
        let mut whole = Run { ending: None, ..Run::new(plan_with_secrets().record()) };
        parts.iter().for_each(|part| whole.probes.merge(part));
        let before = Experiment {
            trials: vec![Trial {
                tag: LoadTag::for_purpose(LoadPurpose::Run),
                start_ns: 0,
                run: Run::new(plan_with_secrets()),
            }],
            elapsed_ns: None,
            ..random_experiment(1)
        };
        let mut bytes = codec::encode(&before);
        parts.into_iter().flat_map(codec::Frame::probe_frames).for_each(|frame| frame.encode(&mut bytes));
        let decoded = codec::decode(&bytes).expect("a run file");
        assert_eq!(decoded.damage, None);
        assert_eq!(decoded.experiment.trials[0].run.probes, whole.probes);
    }
}

#[test]
fn a_run_file_contains_no_secret() {
    let mut run = Run::new(plan_with_secrets());
    run.ending = Some(LoadEnd::Finished);
    let trials = vec![Trial { tag: LoadTag::for_purpose(LoadPurpose::Run), start_ns: 0, run }];
    let asked = ExperimentSpec::Run(RunSpec { plan: plan_with_secrets().record(), stop_if: None, profiles: None });
    let bytes = codec::encode(&Experiment { trials, spec: asked, ..random_experiment(2) });
    assert!(!bytes.windows(6).any(|w| w == b"s3cret"));
}

#[test]
fn ticks_merge_into_longer_intervals() {
    let mut run = Run::new({
        let mut plan = plan_with_secrets();
        plan.load.interval_ns = 1_000_000_000;
        plan
    });
    for tick in 0..15u64 {
        let mut interval = Interval::default();
        interval.load.connections_open = tick;
        interval.routes.figures_mut(0).ledger.scheduled = 2;
        run.push(tick * Plan::TICK_NS, interval);
    }
    let seen: BTreeMap<u32, (u64, u64)> =
        run.intervals.iter().map(|(k, i)| (*k, (i.all_routes().ledger.scheduled, i.load.connections_open))).collect();
    assert_eq!(seen, BTreeMap::from([(0, (20, 9)), (1, (10, 14))]));
}

#[test]
fn trial_end_updates_start_time_and_addresses() {
    let address = |text: &str| text.parse().expect("an address");
    let plan = Plan::for_get_request(
        "h",
        80,
        vec![address("10.0.0.1:80")],
        LoadShape::Closed { users: LoadCurve::constant(1.0) },
    );
    let header = codec::RunFileHeader {
        spec: experiment_spec_for_seed(0),
        started_unix_ms: 1,
        command: Vec::new(),
        environment: Environment::default(),
        start_notes: StartNotes::default(),
        settings: None,
    };
    let found = vec![address("10.0.0.1:80"), address("10.0.0.2:80")];
    let mut bytes = codec::MAGIC.to_vec();
    let (ending, failed_answers) = (LoadEnd::Finished, Vec::new());
    let end = Frame::TrialEnd { ending, window_ns: (0, 1), start_ns: 9, addresses: found.clone(), failed_answers };
    for frame in [
        Frame::Experiment(Box::new(header)),
        Frame::TrialStart {
            tag: LoadTag::for_purpose(LoadPurpose::Run),
            start_ns: 5,
            plan: Box::new(plan.record()),
            injectors: vec![Injector::default()],
        },
        end,
    ] {
        frame.encode(&mut bytes);
    }
    let read = codec::decode(&bytes).expect("reads").experiment;
    let trial = &read.trials[0];
    assert_eq!((trial.start_ns, trial.run.plan.connection_plan.addresses.clone()), (9, found));
}

fn profile_remark(file: Result<String, String>) -> ExperimentEvent {
    let tag = LoadTag { purpose: LoadPurpose::Profile, arm: Some(ArmIndex::Side(0)), turn: 1 };
    ExperimentEvent::Profile(ProfileRecord { tag, kind: "cpu".into(), trial: Some(3), file })
}
