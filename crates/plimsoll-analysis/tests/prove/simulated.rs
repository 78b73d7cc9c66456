//! Tests how often verdicts on simulated builds are right, and how often intervals contain the
//! truth. The row `prove-simulated` of `bench/run` has the complete numbers. These tests make fewer
//! comparisons than `bench/run`. A correct method exceeds the bounds of these tests less than once
//! in ten thousand test runs.

use super::truth::{
    BENCHMARK_MACHINE, BLOCKS, BUSY, EQUAL_BUILDS, HiddenDefect, Machine, QUIET, SimulatedComparison, machines,
    worse_builds,
};
use plimsoll_analysis::Interference;
use plimsoll_analysis::prove::{
    ArmRouteFigures, BlockRatio, ComparisonBlock, ComparisonEnd, ComparisonRules, Criterion, LoadResponseTimes,
    MeasureComparison, ProveVerdict, RouteMeasure, VerdictReason, compute_comparison_result, interim_estimates,
    stop_reason,
};
use plimsoll_model::rng::Rng;

type RouteVerdict = MeasureComparison<RouteMeasure>;

fn seed_range(count: u64) -> std::ops::Range<u64> {
    super::seed()..super::seed() + count
}

fn identical_builds_on_machine(machine: Machine) -> SimulatedComparison {
    SimulatedComparison { machine, ..EQUAL_BUILDS }
}

/// Checks that identical builds are rarely called different. Of 25 comparisons of identical builds,
/// 2 % may give an alarm, and the bound of this test adds four standard deviations. The test covers
/// every kind of simulated machine, and builds whose speed differs from one start to the next.
#[test]
fn identical_builds_are_rarely_called_different() {
    let offsets = [0.01, 0.02].map(|offset| SimulatedComparison { start_deviation: offset, ..EQUAL_BUILDS });
    let by_p99 = SimulatedComparison { primary: Criterion::P99, ..EQUAL_BUILDS };
    for world in
        machines().into_iter().map(|(_, machine)| identical_builds_on_machine(machine)).chain(offsets).chain([by_p99])
    {
        let outcomes = world.outcomes(seed_range(25), BLOCKS);
        assert!(outcomes.better_or_worse_count() <= 4, "{outcomes:?} in {world:?}");
    }
}

/// Checks that the intervals contain the planted ratios. Of 25 intervals, 95 % must contain the
/// true ratio, and the bound of this test subtracts four standard deviations. The mean of the
/// estimated ratios must also be right.
#[test]
fn intervals_contain_planted_ratios() {
    for machine in [QUIET, BENCHMARK_MACHINE, BUSY, Machine { heavy_tail_scale: 0.05, ..QUIET }] {
        for ratio in [2.0, 1.05, 0.95] {
            let outcomes =
                SimulatedComparison { ratio, ..identical_builds_on_machine(machine) }.outcomes(seed_range(25), BLOCKS);
            let known = outcomes.intervals;
            assert!(known >= 22 && outcomes.covered * 100 >= known * 77, "{ratio} {machine:?}: {outcomes:?}");
            let error = outcomes.error / known as f64;
            assert!(error.abs() < 0.03, "{ratio} {machine:?}: {error}");
        }
    }
}

/// Checks that builds with one hidden defect never get the verdict "better", and hardly ever
/// "same".
#[test]
fn hidden_defects_are_never_called_better_or_the_same() {
    let (mut all, mut same) = (0, 0);
    for (_, builds) in worse_builds() {
        for hidden in builds {
            let world = SimulatedComparison {
                hidden_defect: hidden,
                restarts_builds: !matches!(hidden, HiddenDefect::Leaks(_)),
                ..EQUAL_BUILDS
            };
            let outcomes = world.outcomes(seed_range(4), BLOCKS);
            assert_eq!(outcomes.better, 0, "{hidden:?}");
            (all, same) = (all + outcomes.count, same + outcomes.same);
        }
    }
    assert!(same * 100 <= all * 5, "{same} of {all}");
}

/// Checks that a difference of 20 % is found within one minute, although other processes use half
/// of the machine.
#[test]
fn a_difference_is_found_despite_interference() {
    let outcomes =
        SimulatedComparison { ratio: 0.8, ..identical_builds_on_machine(BUSY) }.outcomes(seed_range(30), BLOCKS);
    assert!(outcomes.worse >= 24 && outcomes.better == 0, "{outcomes:?}");
    let outcomes = SimulatedComparison { ratio: 1.0 / 1.05, ..identical_builds_on_machine(QUIET) }
        .outcomes(seed_range(30), BLOCKS);
    assert!(outcomes.worse == 30, "{outcomes:?}");
    let outcomes = identical_builds_on_machine(QUIET).outcomes(seed_range(30), BLOCKS);
    assert!(outcomes.same >= 24, "{outcomes:?}");
}

/// Checks that the interval in the report lies inside the requested margin if the verdict is
/// "same".
#[test]
fn the_verdict_same_stays_inside_the_margin() {
    for machine in [QUIET, BENCHMARK_MACHINE] {
        for seed in seed_range(20) {
            let proof = identical_builds_on_machine(machine).prove(seed, BLOCKS);
            let one = &proof.measures[0];
            let inside = one.equivalence_interval.is_some_and(|i| i.lower >= 0.98 && i.upper <= 1.02);
            assert!(proof.verdict != ProveVerdict::Same || inside, "{proof:?}");
            assert_eq!(one.verdict, proof.verdict, "what decides says what the whole says");
            assert!((one.side_values[1] / one.side_values[0] / one.ratio - 1.0).abs() < 1e-9, "{one:?}");
        }
    }
}

/// Checks that the recommended number of blocks suffices for two equal builds on a noisy machine.
/// If a comparison is repeated with the number of blocks that the first comparison recommends, most
/// of the repeated comparisons give a verdict.
#[test]
fn the_recommended_blocks_suffice() {
    let world = identical_builds_on_machine(Machine { white: 0.03, ..QUIET });
    let (mut told, mut asked) = (0, 0);
    for seed in seed_range(20) {
        let first = world.prove(seed, 20);
        let Some(more) = first.further_blocks else { continue };
        asked += 1;
        let second = world.prove(seed + 1000, 20 + more);
        told += usize::from(second.verdict != ProveVerdict::Inconclusive);
    }
    assert!(asked > 8 && told * 10 >= asked * 6, "{told} of {asked}");
}

#[test]
fn a_large_effect_ends_the_comparison_early() {
    let proof = SimulatedComparison { ratio: 1.35, ..EQUAL_BUILDS }.prove(super::seed(), BLOCKS);
    assert_eq!((proof.verdict, &proof.stopped_by), (ProveVerdict::Better, &ComparisonEnd::Verdict), "{proof:?}");
    assert!(proof.blocks <= 20, "{proof:?}");
    assert!(proof.measures[0].ratio > 1.2 && proof.measures.len() == 3, "{proof:?}");
}

#[test]
fn a_quantile_of_too_few_requests_is_not_compared() {
    let world = SimulatedComparison { primary: Criterion::P99, ..identical_builds_on_machine(QUIET) };
    // A load has 140 requests, so after eight blocks each side has more than 1 000 requests.
    for (blocks, measures) in [(5, 1), (12, 2)] {
        let proof = world.prove(super::seed(), blocks);
        assert_eq!(proof.measures.len(), measures, "{proof:?}");
        assert_eq!(matches!(proof.reason, Some(VerdictReason::PrimaryUnavailable(_))), blocks == 5, "{proof:?}");
        assert!(proof.further_blocks.is_some() == (proof.verdict == ProveVerdict::Inconclusive));
    }
}

#[test]
fn missing_evidence_gives_no_verdict() {
    let settings = EQUAL_BUILDS.rules(BLOCKS);
    let blocks = SimulatedComparison { ratio: 1.35, ..EQUAL_BUILDS }.blocks(1, 20);
    // If the comparison has too few blocks, the result states how many more blocks are needed.
    let few = compute_comparison_result(&settings, &blocks[..4], ComparisonEnd::BlocksMaxReached);
    assert_eq!((few.verdict, few.measures[0].ratio_interval), (ProveVerdict::Inconclusive, None));
    assert!(few.further_blocks.is_some_and(|more| more >= 6), "{few:?}");
    // The user aborted the comparison.
    let broken = compute_comparison_result(&settings, &blocks, ComparisonEnd::Aborted("^C".into()));
    assert_eq!(broken.verdict, ProveVerdict::Inconclusive);
    assert!(broken.doubts.banner_texts().any(|warning| warning.contains("^C")), "{broken:?}");
    // The comparison ended before its first block.
    let none = compute_comparison_result(&settings, &[], ComparisonEnd::Aborted("no time".into()));
    assert!(none.measures.is_empty() && none.further_blocks.is_none());
    // The generator was the limit in every block.
    let mut limited = blocks.clone();
    limited.iter_mut().for_each(|block| block.arm_loads[1].void_reason = Some("busy".into()));
    assert_eq!(stop_reason(&settings, &limited), Some(ComparisonEnd::TooFewValidBlocks));
    let proof = compute_comparison_result(&settings, &limited, ComparisonEnd::TooFewValidBlocks);
    assert_eq!((proof.verdict, proof.blocks, proof.blocks_void), (ProveVerdict::Inconclusive, 0, 20));
    // If the responses of the sides differ much, there is no verdict "better", unless the rules
    // permit different responses.
    for (bytes, answers_may_differ, verdict, is_stated) in [
        (320.0, false, ProveVerdict::Better, false),
        (319.0, false, ProveVerdict::Better, true),
        (160.0, false, ProveVerdict::Inconclusive, true),
        (160.0, true, ProveVerdict::Better, true),
    ] {
        let mut other = blocks.clone();
        let scaled = |it: BlockRatio| BlockRatio { numerator: it.divisor * bytes, ..it };
        other
            .iter_mut()
            .for_each(|block| block.arm_loads[1].bytes_per_response = scaled(block.arm_loads[1].bytes_per_response));
        let rules = ComparisonRules { answers_may_differ, ..settings.clone() };
        let proof = compute_comparison_result(&rules, &other, ComparisonEnd::BlocksMaxReached);
        let said = proof.doubts.banner_texts().any(|warning| warning.contains("respond differently"));
        assert_eq!((proof.verdict, said), (verdict, is_stated), "{bytes}: {proof:?}");
    }
}

/// Checks that blocks stay valid if other processes disturbed them. Disturbed blocks widen the
/// interval, and have less weight than other blocks.
#[test]
fn disturbed_blocks_are_valid() {
    let loud = Interference {
        cores: Some(1.9),
        machine_cores: 2.0,
        is_disturbed: true,
        reason: Some("other processes used 1.9 of 2 cores".into()),
        span_ns: 400_000_000,
        ..Interference::default()
    };
    let settings = EQUAL_BUILDS.rules(BLOCKS);
    let quiet = identical_builds_on_machine(QUIET).blocks(super::seed(), BLOCKS);
    let mut blocks = quiet.clone();
    let mut rng = Rng::new(super::seed());
    for block in blocks.iter_mut().step_by(3) {
        let reading = &mut block.arm_loads[rng.uniform_below(2) as usize];
        reading.goodput.numerator *= 0.5;
        reading.interference = loud.clone();
    }
    let [quiet, disturbed] =
        [&quiet, &blocks].map(|blocks| compute_comparison_result(&settings, blocks, ComparisonEnd::Budget));
    assert_eq!((disturbed.blocks, disturbed.blocks_void), (BLOCKS, 0));
    assert!(disturbed.doubts.banner_texts().any(|warning| warning.contains("was disturbed: other processes used 1.9")));
    let width = |proof: &plimsoll_analysis::prove::ComparisonResult| {
        proof.measures[0].ratio_interval.expect("an interval").half_width()
    };
    // In a third of the blocks, the goodput of one side is only half of the true value. If the
    // disturbed blocks had full weight, half of the interval's width would be at least 6 %.
    assert!(width(&quiet) < width(&disturbed) && width(&disturbed) < 0.03, "{}", width(&disturbed));
    let all = [(ProveVerdict::Better, 0), (ProveVerdict::Worse, 0)].map(|(verdict, _)| verdict);
    assert!(!all.contains(&disturbed.verdict), "{disturbed:?}");
}

#[test]
fn more_blocks_narrow_the_interval() {
    let settings = EQUAL_BUILDS.rules(BLOCKS);
    let points = interim_estimates(&settings, &EQUAL_BUILDS.blocks(3, 40));
    assert_eq!(points.len(), 40);
    let width = |at: usize| points[at].ratio_interval.expect("an interval").half_width();
    assert!(width(39) < width(8) && points[2].ratio_interval.is_none());
}

/// Simulates 28 blocks (one load on each side per block), with `routes` routes. On side B, requests
/// of the first route take `factor` times as long, and the share `failing` of them fails.
fn simulated_blocks_with_routes(seed: u64, routes: usize, factor: f64, failing: f64) -> Vec<ComparisonBlock> {
    let mut rng = Rng::for_stream(seed, 0x207E);
    let mut blocks = identical_builds_on_machine(QUIET).blocks(seed, 28);
    for block in &mut blocks {
        for (arm, reading) in block.arm_loads.iter_mut().enumerate() {
            let mut one = |at: usize| {
                let is_it = arm == 1 && at == 0;
                let noise = (0.05 * (rng.next_f64() + rng.next_f64() - 1.0)).exp();
                let p50_ns = 2e7 * noise * if is_it { factor } else { 1.0 };
                let succeeded = if is_it { (40.0 * (1.0 - failing)) as u64 } else { 40 };
                let bucket = plimsoll_model::histogram::bucket_index(p50_ns as u64);
                let ledger = LoadResponseTimes::new(40, succeeded, [(bucket, succeeded)].into_iter());
                ArmRouteFigures { name: format!("r{at}"), response_times: ledger }
            };
            reading.routes = (0..routes).map(&mut one).collect();
        }
    }
    blocks
}

#[test]
fn the_differing_route_is_found() {
    let settings = identical_builds_on_machine(QUIET).rules(28);
    let (mut found, mut alarms, mut copies) = (0, 0, 0);
    let is_told = |one: &RouteVerdict| matches!(one.verdict, ProveVerdict::Better | ProveVerdict::Worse);
    for seed in seed_range(20) {
        let proof = compute_comparison_result(
            &settings,
            &simulated_blocks_with_routes(seed, 10, 1.3, 0.0),
            ComparisonEnd::BlocksMaxReached,
        );
        assert_eq!(proof.routes.len(), 10);
        let first = &proof.routes[0];
        assert_eq!((first.name.as_str(), first.requests, first.blocks), ("r0", [28 * 40; 2], 28));
        assert_eq!(first.measures.iter().map(|one| one.measure).collect::<Vec<_>>(), RouteMeasure::ALL);
        found += usize::from(first.measures[1].verdict == ProveVerdict::Worse);
        alarms += usize::from(proof.routes[1..].iter().flat_map(|route| &route.measures).any(is_told));
        let same = compute_comparison_result(
            &settings,
            &simulated_blocks_with_routes(seed, 10, 1.0, 0.0),
            ComparisonEnd::BlocksMaxReached,
        );
        copies += usize::from(same.routes.iter().flat_map(|route| &route.measures).any(is_told));
    }
    // Of 20 comparisons, 5 % may give a false alarm, and the bound of this test adds four standard
    // deviations.
    assert!(found >= 19 && alarms <= 5 && copies <= 5, "{found} found, {alarms} and {copies} false alarms of 20");
}

#[test]
fn a_failing_route_is_worse_even_if_equally_fast() {
    let settings = identical_builds_on_machine(QUIET).rules(28);
    let told =
        |blocks: &[ComparisonBlock]| compute_comparison_result(&settings, blocks, ComparisonEnd::BlocksMaxReached);
    let proof = told(&simulated_blocks_with_routes(1, 5, 1.0, 0.2));
    assert_eq!(proof.routes[0].measures[0].verdict, ProveVerdict::Worse, "{:?}", proof.routes[0]);
    assert!((proof.routes[0].success_rate[1] - 0.8).abs() < 1e-9 && proof.routes[0].success_rate[0] == 1.0);
    // A route that never succeeds on one side has no quantile to compare, so the result contains a
    // warning.
    let proof = told(&simulated_blocks_with_routes(1, 5, 1.0, 1.0));
    assert!(
        proof.doubts.banner_texts().any(|warning| warning.contains("'r0' never succeeds on side B")),
        "{:?}",
        proof.doubts
    );
    // If there is no verdict for the whole comparison, no route has a verdict.
    let broken = compute_comparison_result(
        &settings,
        &simulated_blocks_with_routes(1, 5, 2.0, 0.0),
        ComparisonEnd::Aborted("^C".into()),
    );
    let verdicts = broken.routes.iter().flat_map(|route| &route.measures).map(|one| one.verdict);
    assert!(verdicts.into_iter().all(|verdict| verdict == ProveVerdict::Inconclusive));
    // A comparison does not end before each route can have a verdict, however certain the verdict
    // of the whole comparison is.
    let (large, many) = (
        SimulatedComparison { ratio: 1.5, ..identical_builds_on_machine(QUIET) }.blocks(1, 28),
        simulated_blocks_with_routes(1, 20, 1.0, 0.0),
    );
    let mut with = large.clone();
    for (block, other) in with.iter_mut().zip(many) {
        block.arm_loads.iter_mut().zip(other.arm_loads).for_each(|(one, other)| one.routes = other.routes);
    }
    let ended = |blocks: &[ComparisonBlock]| (1..=28).find(|count| stop_reason(&settings, &blocks[..*count]).is_some());
    assert_eq!((ended(&large), ended(&with)), (Some(10), Some(20)));
    // If the plan has a single route, there is no comparison by route.
    assert!(told(&EQUAL_BUILDS.blocks(1, 28)).routes.is_empty());
}
