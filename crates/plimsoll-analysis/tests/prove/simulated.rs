//! Verdicts on simulated builds: how often they are right. The full numbers are a row of `bench/run`; these are the same
//! comparisons, fewer of them, with bounds that a correct method crosses less than once in ten thousand runs.

use crate::simulator::{HERE, NOISY, World};
use plimsoll_analysis::Others;
use plimsoll_analysis::prove::{
    Block, Compared, ComparisonEnd, Criterion, ProveVerdict, RouteMeasure, RouteReading, Rules, conclude, narrowing,
    stop,
};
use plimsoll_model::rng::Rng;

type RouteVerdict = Compared<RouteMeasure>;

/// Blocks that fit into the default budget of 60 s, as measured.
const BLOCKS: usize = 64;

/// Of 200 comparisons: how many had one of `verdicts`.
fn count(world: World, verdicts: &[ProveVerdict]) -> usize {
    let seeds = crate::seed()..crate::seed() + 200;
    seeds.filter(|seed| verdicts.contains(&world.prove(*seed, BLOCKS).verdict)).count()
}

#[test]
fn two_copies_are_rarely_told_apart() {
    // 2 % of 200 and four standard deviations.
    let wild = World { drift: 0.2, memory: 0.8, ..HERE };
    for world in [HERE, wild, NOISY] {
        let wrong = count(world, &[ProveVerdict::Better, ProveVerdict::Worse]);
        assert!(wrong <= 12, "{wrong} of 200 in {world:?}");
    }
}

#[test]
fn a_slowdown_of_5_percent_is_found() {
    let slower = World { effect: -(1.05f64.ln()), ..HERE };
    let found = count(slower, &[ProveVerdict::Worse]);
    assert!(found >= 178, "{found} of 200");
    assert_eq!(count(slower, &[ProveVerdict::Better]), 0);
}

#[test]
fn two_copies_are_said_to_be_the_same() {
    let same = count(HERE, &[ProveVerdict::Same]);
    assert!(same >= 160, "{same} of 200");
}

/// Whoever reads "same" beside an interval may take the interval at its word: it lies inside the margin that was asked for.
#[test]
fn the_same_is_inside_the_margin_asked_for() {
    for world in [HERE, NOISY, World { white: 0.06, ..HERE }] {
        for seed in crate::seed()..crate::seed() + 100 {
            let proof = world.prove(seed, BLOCKS);
            let one = &proof.measures[0];
            assert!(one.margin >= 0.02 - 1e-9 && one.margin_asked == 0.02);
            let inside = one.equivalence_interval.is_some_and(|i| i.lower >= 0.98 && i.upper <= 1.02);
            assert!(proof.verdict != ProveVerdict::Same || inside, "{proof:?}");
            assert_eq!(one.verdict, proof.verdict, "what decides says what the whole says");
            // Levels lie as the estimate says.
            assert!((one.levels[1] / one.levels[0] / one.ratio - 1.0).abs() < 1e-9, "{one:?}");
        }
    }
}

/// Copies on a noisy machine: with as many blocks as the first comparison asks for, most are told.
#[test]
fn as_many_blocks_as_are_asked_for_do() {
    let world = World { white: 0.06, ..HERE };
    let (mut told, mut asked) = (0, 0);
    for seed in crate::seed()..crate::seed() + 60 {
        let first = world.prove(seed, 30);
        let Some(more) = first.blocks_more else { continue };
        asked += 1;
        let second = world.prove(seed + 1000, 30 + more);
        told += usize::from(second.verdict != ProveVerdict::Inconclusive);
    }
    assert!(asked > 30 && told * 10 >= asked * 6, "{told} of {asked}");
}

/// A margin that noise has widened ends nothing early: more blocks would narrow it.
#[test]
fn the_same_within_a_wide_margin_is_not_said_early() {
    let early = |seed| Some(NOISY.prove(seed, BLOCKS)).filter(|proof| proof.stopped_by == ComparisonEnd::Verdict);
    for proof in (crate::seed()..crate::seed() + 100).filter_map(early) {
        let margin = proof.measures[0].margin;
        assert!(!matches!(proof.verdict, ProveVerdict::Same | ProveVerdict::Small) || margin < 0.0201, "{proof:?}");
    }
}

#[test]
fn a_large_effect_ends_the_comparison_early() {
    let proof = World { effect: 0.3, ..HERE }.prove(crate::seed(), BLOCKS);
    assert_eq!((proof.verdict, &proof.stopped_by), (ProveVerdict::Better, &ComparisonEnd::Verdict));
    assert!(proof.blocks <= 20, "{proof:?}");
    assert!(proof.measures[0].ratio > 1.2 && proof.measures.len() == 3, "{proof:?}");
    // The others are told by the interval that is shown: as early, and against the same margins.
    for other in &proof.measures[1..] {
        let beyond = other.ratio_interval.is_some_and(|i| i.upper < 1.0 - other.margin || i.lower > 1.0 + other.margin);
        assert!(!beyond || other.verdict == ProveVerdict::Better, "{other:?}");
    }
}

#[test]
fn what_cannot_be_said_is_not() {
    let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(BLOCKS), seed: 1 };
    let blocks = World { effect: 0.3, ..HERE }.blocks(1, 20);
    // Too few blocks; how many more it takes is said.
    let few = conclude(&settings, &blocks[..4], ComparisonEnd::Blocks);
    assert_eq!((few.verdict, few.measures[0].ratio_interval), (ProveVerdict::Inconclusive, None));
    assert!(few.blocks_more.is_some_and(|more| more >= 6), "{few:?}");
    // Broken off.
    let broken = conclude(&settings, &blocks, ComparisonEnd::Broken("^C".into()));
    assert_eq!(broken.verdict, ProveVerdict::Inconclusive);
    assert!(broken.doubts.above().any(|warning| warning.contains("^C")), "{broken:?}");
    // None at all.
    let none = conclude(&settings, &[], ComparisonEnd::Broken("no time".into()));
    assert!(none.measures.is_empty() && none.blocks_more.is_none());
    // The generator was the limit.
    let mut limited = blocks.clone();
    limited.iter_mut().for_each(|block| block.readings[1].void = Some("busy".into()));
    assert_eq!(stop(&settings, &limited), Some(ComparisonEnd::Void));
    let proof = conclude(&settings, &limited, ComparisonEnd::Void);
    assert_eq!((proof.verdict, proof.blocks, proof.blocks_void), (ProveVerdict::Inconclusive, 0, 20));
    // Other answers.
    let mut other = blocks.clone();
    other.iter_mut().for_each(|block| block.readings[1].answer_bytes = 60.0);
    let proof = conclude(&settings, &other, ComparisonEnd::Blocks);
    assert!(proof.doubts.above().any(|warning| warning.contains("answer differently")), "{proof:?}");
}

/// Others that meet one side more often than the other move no verdict: their blocks do not count, by a rule that does not
/// look at what they measured.
#[test]
fn blocks_that_others_disturbed_do_not_count() {
    let loud = Others {
        cores: Some(1.9),
        machine_cores: 2.0,
        disturbed: true,
        reason: Some("others used 1.9 of 2 cores".into()),
        span_ns: 400_000_000,
        ..Others::default()
    };
    let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(BLOCKS), seed: 1 };
    for (share, conclusive) in [(3, true), (10, false)] {
        let mut blocks = HERE.blocks(crate::seed(), BLOCKS);
        for (_, block) in blocks.iter_mut().enumerate().filter(|(number, _)| number % 12 < share) {
            block.readings[1].goodput_rps *= 0.5;
            block.readings[1].others = loud.clone();
            block.readings[1].void = Some("disturbed: others used 1.9 of 2 cores".into());
        }
        let disturbed = blocks.iter().filter(|block| block.disturbed()).count();
        // They come and go: no number of them ends it before its time.
        assert!((1..=blocks.len()).all(|count| stop(&settings, &blocks[..count]) != Some(ComparisonEnd::Void)));
        let proof = conclude(&settings, &blocks, ComparisonEnd::Budget);
        assert_eq!(proof.blocks, blocks.len() - disturbed);
        assert!(!matches!(proof.verdict, ProveVerdict::Better | ProveVerdict::Worse), "{share}: {proof:?}");
        let said = format!("{disturbed} of {} blocks do not count: others used 1.9 of 2 cores", blocks.len());
        assert!(proof.doubts.above().any(|warning| warning.contains(&said)), "{said}: {:?}", proof.doubts);
        let refused = proof.doubts.above().any(|warning| warning.contains("others disturbed more blocks than count"));
        assert_eq!(refused, !conclusive, "{:?}", proof.doubts);
        if !conclusive {
            assert_eq!((proof.verdict, proof.blocks_more), (ProveVerdict::Inconclusive, None));
        }
    }
}

/// A control that shows two measurements of one build to differ forbids the verdict.
#[test]
fn a_control_that_fails_refuses_the_verdict() {
    let world = World { effect: 0.3, white: 0.001, drift: 0.0, disturbed: 0.0, ..HERE };
    let mut refused = 0;
    for seed in 0..40 {
        let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(BLOCKS), seed };
        let mut blocks = world.blocks(seed, 20);
        // Every second block is of a faster machine, but the labels are drawn at random: no control can see that.
        blocks.iter_mut().step_by(2).for_each(|block| block.readings.iter_mut().for_each(|r| r.goodput_rps *= 1.5));
        refused += usize::from(conclude(&settings, &blocks, ComparisonEnd::Blocks).control.rejected);
    }
    assert!(refused <= 3, "{refused} of 40 at an error of 0.6 %");
}

#[test]
fn the_interval_narrows() {
    let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: None, seed: 3 };
    let points = narrowing(&settings, &HERE.blocks(3, 40));
    assert_eq!(points.len(), 40);
    let width = |at: usize| points[at].ratio_interval.expect("an interval").half_width();
    assert!(width(39) < width(8) && points[2].ratio_interval.is_none());
}

/// Blocks of a load of so many routes; on B the first takes `factor` times as long and fails in `failing` of its requests.
fn with_routes(seed: u64, routes: usize, factor: f64, failing: f64) -> Vec<Block> {
    let mut rng = Rng::stream(seed, 0x207E);
    let mut blocks = HERE.blocks(seed, 28);
    for block in &mut blocks {
        for (arm, reading) in block.readings.iter_mut().enumerate() {
            let one = |at: usize| {
                let is_it = arm == 1 && at == 0;
                let noise = (0.05 * (rng.next_f64() + rng.next_f64() - 1.0)).exp();
                let p50_ns = 8e9 / reading.goodput_rps * noise * if is_it { factor } else { 1.0 };
                let success_rate = if is_it { 1.0 - failing } else { 1.0 };
                RouteReading { name: format!("r{at}"), requests: 40, success_rate, p50_ns, p99_ns: 2.0 * p50_ns }
            };
            reading.routes = (0..routes).map(one).collect();
        }
    }
    blocks
}

#[test]
fn of_many_routes_the_one_that_differs_is_told() {
    let settings = |seed| Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(28), seed };
    let (mut found, mut alarms, mut copies) = (0, 0, 0);
    let is_told = |one: &RouteVerdict| matches!(one.verdict, ProveVerdict::Better | ProveVerdict::Worse);
    for seed in crate::seed()..crate::seed() + 100 {
        let proof = conclude(&settings(seed), &with_routes(seed, 20, 1.3, 0.0), ComparisonEnd::Blocks);
        assert_eq!(proof.routes.len(), 20);
        let first = &proof.routes[0];
        assert_eq!((first.name.as_str(), first.requests, first.blocks), ("r0", [28 * 40; 2], 28));
        assert_eq!(first.measures.iter().map(|one| one.measure).collect::<Vec<_>>(), RouteMeasure::ALL);
        found += usize::from(first.measures[1].verdict == ProveVerdict::Worse);
        alarms += usize::from(proof.routes[1..].iter().flat_map(|route| &route.measures).any(is_told));
        // Whoever reads an interval beside a p reads the same of both.
        for one in proof.routes.iter().flat_map(|route| &route.measures) {
            let excluded = one.ratio_interval.is_some_and(|interval| !interval.contains(1.0));
            assert_eq!(excluded, one.p <= 0.05, "{one:?}");
        }
        let same = conclude(&settings(seed), &with_routes(seed, 20, 1.0, 0.0), ComparisonEnd::Blocks);
        copies += usize::from(same.routes.iter().flat_map(|route| &route.measures).any(is_told));
    }
    // 5 % of 100 and four standard deviations.
    assert!(found >= 95 && alarms <= 13 && copies <= 13, "{found} found, {alarms} and {copies} false alarms of 100");
}

#[test]
fn a_route_that_fails_is_worse_though_it_is_as_quick() {
    let settings = Rules { primary: Criterion::Goodput, margin: 0.02, blocks_max: Some(28), seed: 1 };
    let told = |blocks: &[Block]| conclude(&settings, blocks, ComparisonEnd::Blocks);
    let proof = told(&with_routes(1, 5, 1.0, 0.2));
    assert_eq!(proof.routes[0].measures[0].verdict, ProveVerdict::Worse, "{:?}", proof.routes[0]);
    assert!((proof.routes[0].success_rate[1] - 0.8).abs() < 1e-9 && proof.routes[0].success_rate[0] == 1.0);
    // Where it never succeeds there is no ratio, but a doubt.
    let proof = told(&with_routes(1, 5, 1.0, 1.0));
    assert_eq!(proof.routes[0].measures.len(), 2);
    assert!(proof.doubts.above().any(|warning| warning.contains("'r0' never succeeds on B")), "{:?}", proof.doubts);
    // What is refused of the whole is refused of each.
    let broken = conclude(&settings, &with_routes(1, 5, 2.0, 0.0), ComparisonEnd::Broken("^C".into()));
    let verdicts = broken.routes.iter().flat_map(|route| &route.measures).map(|one| one.verdict);
    assert!(verdicts.into_iter().all(|verdict| verdict == ProveVerdict::Inconclusive));
    // A comparison does not end before its routes can be told, however certain the whole is.
    let (large, many) = (World { effect: 0.3, ..HERE }.blocks(1, 28), with_routes(1, 20, 1.0, 0.0));
    let mut with = large.clone();
    for (block, other) in with.iter_mut().zip(many) {
        block.readings.iter_mut().zip(other.readings).for_each(|(one, other)| one.routes = other.routes);
    }
    let ended = |blocks: &[Block]| (1..=28).find(|count| stop(&settings, &blocks[..*count]).is_some());
    assert_eq!((ended(&large), ended(&with)), (Some(10), Some(20)));
    // One route is the whole.
    assert!(told(&HERE.blocks(1, 28)).routes.is_empty());
}
