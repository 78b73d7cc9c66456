//! Tests of every chart: comparison with its golden file, and drawing of extreme input.
//!
//! The golden files in `tests/golden` are named after the chart and its options. With
//! `PLIMSOLL_UPDATE_GOLDEN=1` the test writes the golden files anew. A person must look at changed
//! files, because a byte comparison cannot tell a good chart from a bad one.
//! `PLIMSOLL_GOLDEN_PICTURES=DIR` writes all golden files as pictures into the folder DIR.

use plimsoll_analysis::find::{Findings, LoadLine, Peak, StopReason};
use plimsoll_analysis::judge::Evidence;
use plimsoll_analysis::levels::{Level, LoadUnit};
use plimsoll_analysis::prove::{self, ArmLoadFigures, ComparisonBlock, ComparisonResult, ComparisonRules, Criterion};
use plimsoll_analysis::series::{IntervalFigures, LatencyHeatMap};
use plimsoll_analysis::slo::LatencyBound;
use plimsoll_analysis::{Doubts, Interference, OfferedLoad, Sentence, Slo, TrialOutcome, Verdict};
use plimsoll_model::rng::Rng;
use plimsoll_model::{ArrivalSpacing, CountsByKey, LoadPurpose, TimeMeasure};
use plimsoll_report::chart::*;
use proptest::prelude::*;

fn assert_matches_golden(name: &str, svg: &str) {
    let path = format!("{}/tests/golden/{name}.svg", env!("CARGO_MANIFEST_DIR"));
    assert_well_formed_svg(svg);
    if let Some(folder) = std::env::var_os("PLIMSOLL_GOLDEN_PICTURES") {
        let path = std::path::Path::new(&folder).join(format!("{name}.{PICTURE_SUFFIX}"));
        std::fs::write(path, render_picture(svg).expect("drawn")).expect("written");
    }
    if std::env::var_os("PLIMSOLL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, svg).expect("written");
        return;
    }
    let expect = std::fs::read_to_string(&path).unwrap_or_default();
    let line = expect.lines().zip(svg.lines()).position(|(a, b)| a != b);
    assert!(expect == svg, "{name} differs from its golden from line {line:?} on (PLIMSOLL_UPDATE_GOLDEN=1 writes it)");
}

/// Asserts that an SVG contains no NaN and no infinite number, and that every tag is closed.
fn assert_well_formed_svg(svg: &str) {
    for (number, line) in svg.lines().enumerate() {
        // Only attributes are checked for NaN, because the text of a chart may contain any word.
        let attributes: String = line.split('"').skip(1).step_by(2).filter(|a| !a.contains(' ')).collect();
        assert!(!attributes.contains("NaN") && !attributes.contains("inf"), "line {}: {line}", number + 1);
        assert!(!line.contains("d=\"MNaN") && !line.contains(" NaN"), "line {}: {line}", number + 1);
    }
    let (mut open, mut rest) = (0i64, svg);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag = &rest[..rest.find('>').expect("a closed tag")];
        open += if tag.starts_with('/') { -1 } else { i64::from(!tag.ends_with('/')) };
    }
    assert_eq!(open, 0, "tags left open");
}

fn trial_outcome(rate: f64, p99_ms: f64, verdict: Verdict, work_share: f64) -> TrialOutcome {
    TrialOutcome {
        purpose: LoadPurpose::Climb,
        load: OfferedLoad::Rate(rate),
        start_ns: 0,
        duration_ns: 5_000_000_000,
        planned_ns: 5_000_000_000,
        is_stopped_early: false,
        goodput_rps: rate,
        success_rate: 1.0,
        p50_ns: 200_000,
        p99_ns: (p99_ms * 1e6) as u64,
        lag_p99_ns: 10_000,
        verdict,
        reason: Sentence::default(),
        evidence: Evidence { work_share, scheduled: (rate * 5.0) as u64, ..Evidence::default() },
        interference: Interference::default(),
    }
}

/// Checks that the rows of the live log fit the width of the terminal, and that no text is cut. The
/// test uses the same kind of trials as the tests of the charts.
#[test]
fn live_log_rows_fit_the_terminal() {
    let width = |line: &str| line.chars().count();
    let reason = "52.8 % of the requests failed or took longer than 500 ms; 0.1 % may";
    let trial = trial_outcome(105_088.0, 536.0, Verdict::Fail, 0.1);
    let trial = TrialOutcome { success_rate: 0.99999, purpose: LoadPurpose::Confirm, reason: reason.into(), ..trial };
    for columns in [Some(60), Some(80), Some(120), Some(200), None] {
        let heading = plimsoll_report::live_log_heading(columns);
        let line = plimsoll_report::live_log_trial_row(1_104_700_000_000, &trial, columns);
        for shown in heading.lines().chain(line.lines()) {
            assert!(columns.is_none_or(|columns| width(shown) <= columns), "{columns:?}: {shown}");
        }
        let said = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.ends_with(&format!("fail: {reason}")), "{columns:?}: {line}");
        // Each heading is above its column: heading and figure end in the same column of the
        // terminal.
        let end = |line: &str, part: &str| line.find(part).map(|at| at + part.len());
        assert_eq!(end(&heading, "p99"), end(&line, "536 ms"), "{columns:?}:\n{heading}\n{line}");
    }
}

#[test]
fn trials_beyond_the_axis_are_reported_at_the_edge() {
    let near = example_findings(1.0);
    let mut far = near.clone();
    far.trials.push(trial_outcome(40_000.0, 9_000.0, Verdict::Fail, 0.4));
    far.trials.push(trial_outcome(80_000.0, 30_000.0, Verdict::Fail, 0.4));
    let draw = |findings: &Findings, theme| {
        search_chart(&chart_heading("far"), &[NamedSearch { name: "", findings }], None, theme)
    };
    for theme in [Theme::Light, Theme::Dark, Theme::Page, Theme::Phone] {
        let svg = draw(&far, theme);
        assert_well_formed_svg(&svg);
        assert!(svg.contains("beyond: 40 000 to 80 000/s") && !draw(&near, theme).contains("beyond"), "{svg}");
    }
    // The scales of both axes must be equal with and without the trials beyond the axis. The
    // attributes `data-axis` and `data-scale` of the SVG describe the scales of the horizontal and
    // the vertical axis.
    let axes = |svg: &str| {
        let data = svg.split("data-axis=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let high = svg.split("data-scale=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        (data.to_owned(), high.to_owned())
    };
    assert_eq!(axes(&draw(&far, Theme::Page)), axes(&draw(&near, Theme::Page)));
    assert!(!axes(&draw(&near, Theme::Page)).0.is_empty());
}

#[test]
fn charts_for_narrow_screens_are_narrow() {
    let findings = example_findings(1.0);
    let panels = interval_panels(&interval_figures());
    let (levels, over) = (load_levels(1.0, 0.003), LoadUnit::Concurrency);
    let blocks = noisy_blocks(&[11_700.0, 10_900.0]);
    let (proof, narrowing) = comparison_result_of_blocks(&blocks);
    let compared = ComparisonChartData { proof: &proof, blocks: &blocks, interim_estimates: &narrowing };
    let throughput =
        throughput_chart(&heading::throughput_heading(over, &levels, "a test"), over, &levels, Theme::Phone);
    let proved = prove_chart(&heading::prove_chart_heading(&proof, &target_urls(), "16 users"), compared, Theme::Phone);
    assert_matches_golden("throughput-phone", &throughput);
    assert_matches_golden("prove-phone", &proved);
    for svg in [
        throughput,
        proved,
        success_chart(&heading::success_heading(over, &levels, "a test"), over, &levels, Theme::Phone),
        search_chart(
            &chart_heading("a long title that takes some lines"),
            &[NamedSearch { name: "", findings: &findings }],
            None,
            Theme::Phone,
        ),
        time_chart(&chart_heading("time"), &panels, Theme::Phone),
        percentile_chart(&chart_heading("percentiles"), &example_quantile_lines(2.0), Theme::Phone),
    ] {
        assert_well_formed_svg(&svg);
        assert!(svg.contains("width=\"380\"") && !svg.contains('\u{2026}'), "{svg}");
        // Checks roughly, with an estimated width of each character, that no text begins or ends
        // outside the drawing.
        for text in svg.lines().filter(|line| line.starts_with("<text")) {
            let x: f64 =
                text.split("x=\"").nth(1).and_then(|x| x.split('"').next()).and_then(|x| x.parse().ok()).expect("x");
            let words = text.split('>').nth(1).and_then(|t| t.split('<').next()).unwrap_or_default();
            let width = words.chars().count() as f64 * 5.2;
            let (left, right) = match text {
                t if t.contains("\"middle\"") => (x - width / 2.0, x + width / 2.0),
                t if t.contains("\"end\"") => (x - width, x),
                _ => (x, x + width),
            };
            assert!(left >= -2.0 && right <= 382.0, "{left} to {right}: {text}");
        }
    }
}

#[test]
fn chart_titles_state_the_load_line_in_words() {
    let found = |lower: f64, upper: Option<f64>, slo: &str| {
        let mut found = example_findings(1.0);
        (found.load_line.rps, found.load_line.lower, found.load_line.upper) = (lower, lower, upper);
        found.load_line.has_estimate = upper.is_some_and(|upper| upper < 1.03 * lower);
        found.slo = Slo::parse(slo).expect("an SLO");
        heading::load_line_sentence(&found)
    };
    let usual = "success>=99.9%, p99<=500ms";
    for (lower, upper, slo, expect) in [
        (
            1886.0,
            Some(1905.0),
            usual,
            "The service sustains about 1 886 requests a second while 99 % of responses arrive within 500 ms and 99.9 % succeed",
        ),
        (
            60_420.0,
            None,
            "p50<=2ms, max<=1s",
            "The service sustains 60 400 requests a second, and maybe more, while half of the responses arrive \
             within 2 ms, every response arrives within 1 s and 99.9 % succeed",
        ),
        (0.0, Some(12.0), "success>=100%", "Even 12.0 requests a second break the SLO: all requests succeed"),
        (
            1886.0,
            Some(2905.0),
            "success>=99%",
            "The service sustains between 1 880 and 2 905 requests a second while 99 % of requests succeed",
        ),
        (0.0, None, "success>=99%", "No rate was found at which 99 % of requests succeed"),
        (
            9.87,
            Some(9.9),
            "success>=99%",
            "The service sustains about 9.87 requests a second while 99 % of requests succeed",
        ),
    ] {
        assert_eq!(found(lower, upper, slo), expect);
    }
}

fn example_findings(scale: f64) -> Findings {
    use Verdict::{Fail, Pass, Void};
    let trials = [
        (1_200.0, 0.31, Pass, 0.05),
        (2_400.0, 0.35, Pass, 0.09),
        (4_800.0, 0.62, Pass, 0.17),
        (9_600.0, 912.0, Fail, 0.33),
        (9_600.0, 1_040.0, Fail, 0.34),
        (8_900.0, 14.0, Void, 0.97),
        (8_800.0, 9.0, Pass, 0.30),
        (9_100.0, 210.0, Pass, 0.31),
        (9_190.0, 260.0, Pass, 0.31),
        (9_190.0, 420.0, Pass, 0.31),
        (9_280.0, 640.0, Fail, 0.31),
        (9_280.0, 380.0, Pass, 0.32),
        (9_370.0, 720.0, Fail, 0.32),
    ];
    // The trial `cut` stopped early, so its p99 is only a lower bound.
    let cut = [trial_outcome(9_700.0 * scale, 390.0, Fail, 0.31)].map(|t| TrialOutcome { is_stopped_early: true, ..t });
    Findings {
        rate_unit: "requests",
        access_log_rate: None,
        load_line: LoadLine {
            rps: 9_230.0 * scale,
            lower: 9_190.0 * scale,
            upper: Some(9_280.0 * scale),
            has_estimate: true,
            is_confirmed: true,
        },
        slo: Slo::default(),
        peak: Some(Peak { rps: 9_800.0 * scale, users: 64 }),
        knee: None,
        trials: trials.iter().map(|t| trial_outcome(t.0 * scale, t.1, t.2, t.3)).chain(cut).collect(),
        stopped_by: StopReason::PrecisionReached,
        stalls: None,
        constant_failure: None,
        target_loss: None,
        longest_pass_at_line_s: 10.0,
        is_longest_pass_by_chance: false,
        budget_for_estimate_s: None,
        capacity: None,
        arrivals: ArrivalSpacing::Poisson,
        elapsed_s: 58.2,
        doubts: Doubts::default(),
        interference: Interference::default(),
    }
}

fn load_levels(factor: f64, success: f64) -> Vec<Level> {
    let of = |(load, rps, mean_ms): (f64, f64, f64)| Level {
        load,
        rps: rps * factor,
        mean_ns: mean_ms * 1e6 / factor,
        p99_ns: Some(mean_ms * 2.7e6 / factor),
        success_rate: if load < 1000.0 { 1.0 } else { 1.0 - success * load.log10() },
        spread: None,
    };
    [(200.0, 47_812.0, 4.33), (500.0, 46_100.0, 11.0), (1000.0, 44_000.0, 23.0), (3000.0, 40_100.0, 76.0)]
        .into_iter()
        .chain([(5000.0, 38_000.0, 131.0), (10_000.0, 36_500.0, 272.0), (50_000.0, 30_000.0, 1610.0)])
        .map(of)
        .collect()
}

fn interval_figures() -> Vec<IntervalFigures> {
    let of = |k: u32| {
        let t = f64::from(k);
        let slow = if (30..36).contains(&k) { 40.0 } else { 1.0 };
        IntervalFigures {
            start_s: t * 0.5,
            length_s: 0.5,
            is_after_schedule: k > 58,
            scheduled_rps: 1000.0,
            succeeded_rps: if slow > 1.0 { 600.0 } else { 1000.0 + 20.0 * (t * 0.7).sin() },
            errors_rps: if slow > 1.0 { 25.0 } else { 0.0 },
            p50_ns: Some(2e6 * (1.0 + 0.1 * t.sin())),
            p90_ns: Some(4e6 * slow),
            p99_ns: Some(9e6 * slow),
            max_ns: (k != 20).then_some(1.5e7 * slow),
            lag_p99_ns: Some(3e4),
            work_share: 0.2,
        }
    };
    (0..60).map(of).collect()
}

fn example_quantile_lines(tail: f64) -> Vec<ChartLine> {
    let curve = |factor: f64| {
        let at = |k: u32| {
            let q = 1.0 - 10f64.powf(-f64::from(k) / 10.0);
            (q, 1e6 * factor * (1.0 + (f64::from(k) / 12.0).powi(3)))
        };
        (0..=42).map(at).collect()
    };
    let line = |name: &str, points| ChartLine { name: name.into(), points };
    vec![line("response time", curve(tail)), line("service time", curve(1.0))]
}

fn example_heat_map() -> LatencyHeatMap {
    let cells = (0..60usize).flat_map(|c| (0..20usize).map(move |r| (c, r, (20 - r) as u64 * ((c % 7) as u64 + 1))));
    LatencyHeatMap {
        column_s: 0.5,
        columns: 60,
        edges_ns: (0..=20).map(|k| 1e5 * 1.4f64.powi(k)).collect(),
        cells: cells.filter(|c| (c.0 + c.1) % 5 != 0).collect(),
    }
}

fn comparison_block(goodputs_rps: &[f64], void: Option<&str>) -> ComparisonBlock {
    let reading = |goodput_rps: &f64| ArmLoadFigures {
        goodput: prove::BlockRatio { numerator: *goodput_rps, divisor: 1.0 },
        response_times: prove::LoadResponseTimes::new(100, 100, [(4000, 100)].into_iter()),
        cpu_ns_per_response: None,
        bytes_per_response: prove::BlockRatio { numerator: 12_000.0, divisor: 100.0 },
        statuses: CountsByKey::default(),
        routes: Vec::new(),
        client_wait_share: 0.0,
        interference: Interference::default(),
        void_reason: void.map(Sentence::from),
        missing_response_reason: None,
    };
    ComparisonBlock { arm_loads: goodputs_rps.iter().map(reading).collect() }
}

/// Returns 24 blocks in which the servers have the goodputs `goodputs_rps`, with some noise. The
/// fourth block is void (discarded).
fn noisy_blocks(goodputs_rps: &[f64]) -> Vec<ComparisonBlock> {
    let mut rng = Rng::for_stream(7, 0);
    let mut noisy = |rps: &f64| rps * (0.94 + 0.12 * rng.next_f64());
    let one = |number: usize| {
        let goodputs: Vec<f64> = goodputs_rps.iter().map(&mut noisy).collect();
        comparison_block(&goodputs, (number == 3).then_some("requests left late"))
    };
    (0..24).map(one).collect()
}

const COMPARISON_RULES: ComparisonRules = ComparisonRules {
    primary: Criterion::Goodput,
    margin: 0.02,
    blocks_max: None,
    restarts_builds: true,
    answers_may_differ: false,
};

fn comparison_result_of_blocks(blocks: &[ComparisonBlock]) -> (ComparisonResult, Vec<prove::InterimEstimate>) {
    (
        prove::compute_comparison_result(&COMPARISON_RULES, blocks, prove::ComparisonEnd::Budget),
        prove::interim_estimates(&COMPARISON_RULES, blocks),
    )
}

fn target_urls() -> [String; 3] {
    ["empty", "redis", "sql"].map(|path| format!("http://localhost:8080/{path}"))
}

fn chart_heading(title: &str) -> Heading {
    Heading { title: title.into(), subtitle: "GET http://localhost:8080/items?page=2; a test & nothing <else>".into() }
}

const THEMES: [(Theme, &str); 3] = [(Theme::Light, "light"), (Theme::Dark, "dark"), (Theme::Page, "page")];

#[test]
fn charts_match_their_stored_images() {
    let (a, b) = (example_findings(1.0), example_findings(1.22));
    let one = [NamedSearch { name: "A", findings: &a }];
    let two = [NamedSearch { name: "A", findings: &a }, NamedSearch { name: "B", findings: &b }];
    let (slow, fast) = (load_levels(1.0, 0.003), load_levels(1.13, 0.001));
    let recorded = [NamedLevels { name: "api_v1", levels: &slow }, NamedLevels { name: "api_v2", levels: &fast }];
    let (c, r) = (LoadUnit::Concurrency, LoadUnit::Rate);
    for (theme, name) in THEMES {
        assert_matches_golden(
            &format!("find-{name}"),
            &search_chart(&heading::search_heading(&a, "GET http://h/"), &one, None, theme),
        );
    }
    assert_matches_golden(
        "find-two-light",
        &search_chart(&chart_heading("B carries more"), &two, Some("+22.0 %"), Theme::Light),
    );
    assert_matches_golden(
        "throughput-light",
        &throughput_chart(&heading::throughput_heading(c, &slow, "a test"), c, &slow, Theme::Light),
    );
    assert_matches_golden(
        "throughput-rate-dark",
        &throughput_chart(&chart_heading("Over rate"), r, &slow[..3], Theme::Dark),
    );
    assert_matches_golden(
        "success-light",
        &success_chart(&heading::success_heading(c, &slow, "a test"), c, &slow, Theme::Light),
    );
    let (a, b) = (("api_v1", &slow[..]), ("api_v2", &fast[..]));
    let above = heading::throughput_diff_heading(a, b);
    assert_matches_golden("throughput-diff-light", &throughput_diff_chart(&above, c, recorded, Theme::Light));
    assert_matches_golden(
        "success-diff-light",
        &success_diff_chart(&heading::success_diff_heading(a, b), c, recorded, Theme::Light),
    );
    assert_matches_golden(
        "percentiles-light",
        &percentile_chart(&chart_heading("Percentiles"), &example_quantile_lines(2.0), Theme::Light),
    );
    assert_matches_golden(
        "time-light",
        &time_chart(&chart_heading("Over time"), &interval_panels(&interval_figures()), Theme::Light),
    );
    let compared = noisy_blocks(&[11_700.0, 10_900.0]);
    let (proof, narrowing) = comparison_result_of_blocks(&compared);
    let above = heading::prove_chart_heading(&proof, &target_urls(), "16 users, 400 ms on each side of a block");
    let compared = ComparisonChartData { proof: &proof, blocks: &compared, interim_estimates: &narrowing };
    assert_matches_golden("prove-light", &prove_chart(&above, compared, Theme::Light));
    for (theme, rungs) in [(Theme::Light, [37_000.0, 11_700.0, 22.6]), (Theme::Dark, [5_000.0, 4_100.0, 3_900.0])] {
        let blocks = noisy_blocks(&rungs);
        let ladder = prove::compute_ladder(&blocks, 3, None);
        let drawn = LadderChartData { ladder: &ladder, blocks: &blocks, rung_urls: &target_urls() };
        let name = if theme == Theme::Light { "ladder-steep-light" } else { "ladder-flat-dark" };
        assert_matches_golden(
            name,
            &ladder_chart(&heading::ladder_chart_heading(&ladder, "A: 16 users, 400 ms; B: ..."), drawn, theme),
        );
    }
    assert_matches_golden("heat-dark", &heat_chart(&chart_heading("Heat"), &example_heat_map(), &[], Theme::Dark));
}

#[test]
fn empty_charts_state_the_lack_of_data() {
    let mut nothing = example_findings(1.0);
    nothing.trials.clear();
    let none = NamedLevels { name: "A", levels: &[] };
    let c = LoadUnit::Concurrency;
    let (void, ladder) =
        (vec![comparison_block(&[0.0, 0.0], Some("no answer")); 2], prove::compute_ladder(&[], 2, None));
    let (proof, narrowing) = comparison_result_of_blocks(&void);
    let told = LadderChartData { ladder: &ladder, blocks: &void, rung_urls: &[] };
    let told = ladder_chart(&heading::ladder_chart_heading(&ladder, "x"), told, Theme::Light);
    let answer = "no result for the 2 servers of the ladder: no block (one load of each server) is valid";
    assert!(told.contains(answer), "{told}");
    for svg in [
        prove_chart(
            &chart_heading("x"),
            ComparisonChartData { proof: &proof, blocks: &void, interim_estimates: &narrowing },
            Theme::Light,
        ),
        ladder_chart(
            &chart_heading("x"),
            LadderChartData { ladder: &ladder, blocks: &void, rung_urls: &[] },
            Theme::Light,
        ),
        search_chart(&chart_heading("x"), &[], None, Theme::Light),
        search_chart(&chart_heading("x"), &[NamedSearch { name: "A", findings: &nothing }], None, Theme::Light),
        throughput_chart(&chart_heading("x"), c, &[], Theme::Light),
        success_chart(&chart_heading("x"), c, &[], Theme::Light),
        throughput_diff_chart(&chart_heading("x"), c, [none, none], Theme::Light),
        success_diff_chart(&chart_heading("x"), c, [none, none], Theme::Light),
        percentile_chart(&chart_heading("x"), &[], Theme::Light),
        time_chart(&chart_heading("x"), &[], Theme::Light),
        heat_chart(&chart_heading("x"), &LatencyHeatMap::default(), &[], Theme::Light),
    ] {
        assert_well_formed_svg(&svg);
        assert!(svg.contains("measured") || svg.contains("nothing to draw"), "{svg}");
    }
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 0.0..1e6f64, 1 => Just(0.0), 1 => Just(1e18), 1 => prop::num::f64::ANY]
}

fn any_level() -> impl Strategy<Value = Level> {
    (any_value(), any_value(), any_value(), any_value(), any_value()).prop_map(|(load, rps, mean_ns, p99, success)| {
        Level { load, rps, mean_ns, p99_ns: Some(p99), success_rate: success, spread: None }
    })
}

fn any_findings() -> impl Strategy<Value = Findings> {
    let trials = prop::collection::vec((any_value(), 0..u64::MAX, 0..3, any_value()), 0..12);
    let line = (any_value(), prop::option::of(any_value()), any_value());
    (trials, line, 0.0..=1.0f64, 0..u64::MAX).prop_map(|(trials, (lower, upper, peak), quantile, bound_ns)| {
        let of = |(rate, p99_ns, verdict, share): &(f64, u64, i32, f64)| {
            let verdict = [Verdict::Pass, Verdict::Fail, Verdict::Void][*verdict as usize];
            TrialOutcome { p99_ns: *p99_ns, ..trial_outcome(*rate, 0.0, verdict, *share) }
        };
        Findings {
            load_line: LoadLine { rps: lower, lower, upper, has_estimate: true, is_confirmed: true },
            slo: Slo {
                latency: vec![LatencyBound { measure: TimeMeasure::response_time(), quantile, bound_ns }],
                ..Slo::default()
            },
            peak: Some(Peak { rps: peak, users: 1 }),
            trials: trials.iter().map(of).collect(),
            ..example_findings(1.0)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_combination_of_levels_breaks_a_chart(a in prop::collection::vec(any_level(), 0..6), b in prop::collection::vec(any_level(), 0..6)) {
        let recorded = [NamedLevels { name: "A", levels: &a }, NamedLevels { name: "B", levels: &b }];
        let c = LoadUnit::Concurrency;
        assert_well_formed_svg(&throughput_chart(&heading::throughput_heading(c, &a, ""), c, &a, Theme::Light));
        assert_well_formed_svg(&success_chart(&heading::success_heading(c, &a, ""), c, &a, Theme::Dark));
        assert_well_formed_svg(&throughput_diff_chart(&heading::throughput_diff_heading(("A", &a), ("B", &b)), c, recorded, Theme::Light));
        assert_well_formed_svg(&success_diff_chart(&heading::success_diff_heading(("A", &a), ("B", &b)), c, recorded, Theme::Page));
    }

    #[test]
    fn no_search_breaks_its_chart(a in any_findings(), b in any_findings()) {
        let (a, b) = (NamedSearch { name: "A", findings: &a }, NamedSearch { name: "B", findings: &b });
        assert_well_formed_svg(&search_chart(&heading::search_heading(a.findings, "x"), &[a], None, Theme::Light));
        assert_well_formed_svg(&search_chart(&chart_heading("x"), &[a, b], Some("+1 %"), Theme::Dark));
    }

    #[test]
    fn no_combination_of_blocks_breaks_a_chart(goodputs in prop::collection::vec((any_value(), any_value()), 0..14)) {
        let blocks: Vec<ComparisonBlock> = goodputs.iter().map(|(a, b)| comparison_block(&[*a, *b], (*a == 1.0).then_some("x"))).collect();
        let (proof, narrowing) = comparison_result_of_blocks(&blocks);
        let compared = ComparisonChartData { proof: &proof, blocks: &blocks, interim_estimates: &narrowing };
        assert_well_formed_svg(&prove_chart(&heading::prove_chart_heading(&proof, &target_urls(), "x"), compared, Theme::Light));
        let ladder = prove::compute_ladder(&blocks, 2, None);
        let drawn = LadderChartData { ladder: &ladder, blocks: &blocks, rung_urls: &target_urls()[..1] };
        assert_well_formed_svg(&ladder_chart(&heading::ladder_chart_heading(&ladder, "x"), drawn, Theme::Page));
    }

    #[test]
    fn no_combination_of_points_breaks_a_chart(points in prop::collection::vec((any_value(), any_value()), 0..12), count in 0..u64::MAX) {
        let line = |name: &str| ChartLine { name: name.into(), points: points.clone() };
        let both = [line("a"), line("b")];
        assert_well_formed_svg(&percentile_chart(&chart_heading("x"), &both, Theme::Light));
        for (unit, is_log_scale) in [(AxisUnit::Count, false), (AxisUnit::Nanoseconds, true), (AxisUnit::Share, false), (AxisUnit::Bytes, true)] {
            let panel = Panel { title: "t".into(), unit, is_log_scale, lines: both.to_vec() };
            assert_well_formed_svg(&time_chart(&chart_heading("x"), &[panel], Theme::Light));
        }
        let edges_ns: Vec<f64> = points.iter().map(|p| p.1).collect();
        let heat = LatencyHeatMap { column_s: points.first().map_or(0.0, |p| p.0), columns: 3, edges_ns, cells: vec![(0, 0, count), (9, 9, 1)] };
        assert_well_formed_svg(&heat_chart(&chart_heading("x"), &heat, &both, Theme::Light));
    }
}
