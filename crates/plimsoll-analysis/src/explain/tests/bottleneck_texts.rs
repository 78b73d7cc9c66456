//! Tests of the texts of an explanation: the sentence, the prediction, the missing evidence, and
//! the comparison of functions.

use super::*;
use crate::explain::features::{Feature, FeatureCard, FeatureValue};
use crate::find::{self, ConstantFailure, SearchSettings, SloBreakKind};
use crate::judge::{OfferedLoad, TrialOutcome, Verdict};
use plimsoll_model::{ArrivalSpacing, LoadCurve, LoadPurpose, LoadShape, Plan};

#[test]
fn a_server_broken_by_its_search_gets_no_cause() {
    for (answered, lower_rps, expect) in [
        (150.0, 1000.0, None),
        (70.0, 1000.0, Some(70.0)),
        (0.0, 1000.0, Some(0.0)),
        // Without a load line (0), the search found no rate that the server sustained.
        (70.0, 0.0, None),
    ] {
        let case = usual_server_facts().with_signals(&[(Goodput, answered, 100.0, 90.0)]);
        let case = ServerFacts { lower_rps, ..case };
        assert_eq!(case.goodput_of_broken_server_rps(), expect, "{answered} {lower_rps}");
        let text = not_known::unknown_cause_sentence(&case, &[]);
        assert_eq!(
            text.contains("has not recovered from the search. The load line was 1 000 requests/s"),
            expect.is_some(),
            "{text}"
        );
    }
}

#[test]
fn an_exhausted_resource_explains_missing_recovery() {
    for (signals, expect) in [
        (vec![(MajorFaults, 0.0, 300.0, 900.0)], Some((Cause::Memory, true))),
        (vec![(Files, 0.5, 1.0, 1.0)], Some((Cause::Files, true))),
        (vec![(FullestThread, 0.1, 0.98, 0.99), (ServerCores, 0.1, 1.0, 1.0)], Some((Cause::OneThread, false))),
    ] {
        let case = ServerFacts {
            lower_rps: 1000.0,
            ..usual_server_facts().with_signals(&signals).with_signals(&[(Goodput, 0.0, 950.0, 0.0)])
        };
        assert_eq!(case.goodput_of_broken_server_rps(), Some(0.0));
        let posterior = Posterior::from_facts(&case, &[]);
        let first = posterior.causes().first().map(|first| (first.cause, may_be_named(&case, first.cause)));
        assert_eq!(first, expect, "{}", format_posterior(&case));
    }
}

#[test]
fn the_median_decides_no_bound_below_p50() {
    // The median of the low load is 10 ms.
    for (slo, expect) in [
        ("p25<=5ms", None),
        ("p50<=5ms", Some(true)),
        ("p90<=20ms", Some(false)),
        ("p25<=5ms, p90<=20ms", Some(false)),
        ("p25<=5ms, p50<=5ms", Some(true)),
    ] {
        let case = ServerFacts { slo: Slo::parse(slo).expect("an SLO"), ..usual_server_facts() };
        assert_eq!(case.breaks_slo_at_low_load(), expect, "{slo}");
    }
}

#[test]
fn failures_at_every_load_show_no_limit() {
    let slo = Slo::default();
    let told = |case: &ServerFacts| {
        (
            case.constant_failure_share().is_some(),
            case.has_throughput_plateau(),
            Some(named_cause_of(case)).filter(|cause| *cause != Cause::Unknown),
        )
    };
    let failing = |share: f64| {
        let mut case = usual_server_facts().with_signals(&[(
            Goodput,
            150.0 * (1.0 - share),
            950.0 * (1.0 - share),
            1100.0 * (1.0 - share),
        )]);
        case.slo = slo.clone();
        case.low.failures = vec![("reset".into(), (150.0 * share * case.low.seconds) as u64)];
        case
    };
    assert_eq!(told(&failing(0.05)), (true, Some(false), None), "all that is asked is answered as at a low load");
    assert!(!told(&failing(0.0)).0);
    assert!(!told(&failing(0.001)).0, "by chance");
    let text = not_known::unknown_cause_sentence(&failing(0.05), &[]);
    assert!(text.contains("5.00 % of the requests fail even at a low load (reset)"), "{text}");
    let failing = ConstantFailure { kind: SloBreakKind::Failed, share: 0.005, from_rps: 250.0, to_rps: 4000.0 };
    let failing = server_facts::ConstantFailureShare { share: failing.share, text: failing.failure_text() };
    let searched = ServerFacts { constant_failure: Some(failing), ..usual_server_facts() };
    assert_eq!((told(&searched).0, told(&searched).2), (true, None));
    let text = not_known::unknown_cause_sentence(&searched, &[]);
    assert!(
        text.contains("0.5 % of the requests fail at any load (both at 250 a second and at 4 000 a second)"),
        "{text}"
    );
    let short = ServerFacts {
        low: LoadSignals::default(),
        half: LoadSignals::default(),
        line: LoadSignals::default(),
        past: LoadSignals::default(),
        ..usual_server_facts()
    };
    assert_eq!(short.requests_in_service(), None, "one at a time was asked, and served");
    assert!(not_known::unknown_cause_sentence(&short, &[]).contains("the budget was too short"));
    // Every load met the SLO, so the advice is a longer study. The advice does not depend on the
    // possible causes.
    let met = usual_server_facts().with_signals(&[(Offered, 150.0, 950.0, 1100.0), (Goodput, 150.0, 950.0, 1100.0)]);
    let met = ServerFacts { held_past_rps: Some(1100.0), upper_rps: None, ..met };
    assert!(not_known::unknown_cause_sentence(&met, &[]).contains("met the SLO at 1 100 requests/s after the search"));
    let advice = not_known::missing_evidence(&met, &[Cause::Pool]);
    assert!(advice.len() == 1 && advice[0].contains("for loads at higher rates"), "{advice:?}");
}

/// Checks that the capacity of a server without a load line is the throughput of its steady loads.
/// If a server stalls, short trials measure the throughput between the stalls, which is too high.
#[test]
fn without_a_load_line_capacity_is_the_steady_rate() {
    let past = |asked: f64, got: f64| {
        usual_server_facts().with_signals(&[(Offered, 150.0, 950.0, asked), (Goodput, 150.0, 950.0, got)]).past
    };
    for (has_line, steady_rps, past, expect) in [
        (false, Some(1000.0), past(2000.0, 1000.0), 1000.0),
        (true, Some(1000.0), past(2000.0, 1000.0), 1600.0),
        // Only a load that saturates the server shows the server's capacity.
        (false, Some(1000.0), past(1000.0, 1000.0), 1600.0),
        (false, None, LoadSignals::default(), 1600.0),
        (false, Some(0.0), past(2000.0, 0.0), 1600.0),
    ] {
        assert_eq!(
            server_facts::sustained_rps(has_line, 1600.0, steady_rps, &past),
            expect,
            "{has_line} {steady_rps:?}"
        );
    }
    let stalls = ServerFacts { lower_rps: 0.0, best_rps: 1600.0, ..usual_server_facts() };
    let sentence = cause_text(&stalls, Cause::Cpu).sentence_for_server(&stalls);
    assert!(sentence.contains("the server to 1 000 requests/s"), "{sentence:?}");
}

#[test]
fn indistinguishable_causes_are_both_named() {
    let in_turn = [(FullestThread, 0.1, 0.4, 0.4), (ServerCores, 0.2, 1.0, 1.0), (Idle, 1.4, 0.8, 0.8)];
    for (cause, case, expect) in [
        (
            Cause::Lock,
            usual_server_facts().with_service_time_ms(1.0).with_signals(&in_turn),
            "a lock, one goroutine or one actor can cause this",
        ),
        (
            Cause::Lock,
            usual_server_facts().with_service_time_ms(1.0),
            "on average, the server handles 1.0 requests at a time",
        ),
        (
            Cause::Pool,
            usual_server_facts().with_service_time_ms(1.0).with_peer_connections(1.0, 1.0, 1.0),
            "the only connection to the dependency, or a lock around this connection, is in use above the load line",
        ),
        (
            Cause::Pool,
            usual_server_facts().with_service_time_ms(4.0).with_peer_connections(4.0, 4.0, 4.0),
            "all 4 connections are in use above the load line",
        ),
    ] {
        let how = cause_text(&case, cause).visible_effect.expect("a limit of the server's");
        assert!(how.contains(expect), "{cause}: {how}");
    }
}

#[test]
fn a_pool_requires_a_fixed_number_of_connections() {
    let calls = |past: f64| {
        usual_server_facts()
            .with_service_time_ms(8.0)
            .with_open_calls("node", 1.0, past)
            .with_signals(&[(PeerWaiting, 1.0, 7.0, past), (PeerComing, 0.0, 0.0, 0.0)])
    };
    for (case, expect) in [
        (calls(8.0).with_peer_connections(8.0, 8.0, 8.0), "8 connections to node at 127.0.0.1:6379"),
        // The connections are closed and opened again, so their number varies.
        (
            calls(8.0).with_peer_connections(9.0, 17.0, 9.0),
            "a pool in api that admits about 8 requests at a time, for calls to node at 127.0.0.1:6379",
        ),
        // Only three calls are open, but eight requests are in service. So the calls do not use the
        // pool that limits the server.
        (calls(3.0).with_peer_connections(9.0, 17.0, 9.0), "a pool in api that admits about 8 requests at a time"),
    ] {
        assert_eq!(cause_text(&case, Cause::Pool).subject, expect);
    }
}

#[test]
fn cause_identifiers_are_unique_and_described() {
    let words: Vec<&str> = Cause::ALL.iter().map(|cause| cause.identifier()).collect();
    let unique: std::collections::BTreeSet<&str> = words.iter().copied().collect();
    assert_eq!(unique.len(), Cause::ALL.len());
    // Each cause except [`Cause::Unknown`] has a description.
    let missing: Vec<&Cause> = Cause::ALL.iter().filter(|cause| causes::cause_card(**cause).is_none()).collect();
    assert_eq!(missing, [&Cause::Unknown]);
}

#[test]
fn the_bottleneck_sentence_names_the_resource() {
    for (case, expect) in [
        (
            usual_server_facts().with_service_time_ms(4.5).with_peer_connections(4.0, 4.0, 4.0),
            "4 connections to 127.0.0.1:6379 limit the load line to 1 000 requests/s: all 4 connections are in use above the load line, with 500 requests in flight; 3.8 of 4 cores are idle",
        ),
        (
            usual_server_facts().with_signals(&[
                (FullestThread, 0.15, 0.93, 0.99),
                (FullThreads, 0.0, 1.0, 1.0),
                (ServerCores, 0.15, 0.95, 1.0),
            ]),
            "one thread of api limits the load line to 1 000 requests/s: the server's busiest thread uses 0.99 of a core; 3.8 of 4 cores are idle",
        ),
    ] {
        let cause = Posterior::from_facts(&case, &[]).causes()[0].cause;
        assert_eq!(
            cause_text(&case, cause).sentence_for_server(&case),
            crate::sentence::Sentence::from(expect),
            "{}",
            format_posterior(&case)
        );
    }
}

#[test]
fn the_bottleneck_sentence_is_as_certain_as_the_search() {
    for (lower_rps, lower_end_rps, upper_rps, expect, is_doubled) in [
        (1000.0, 990.0, Some(1010.0), "1 000 requests/s", true),
        (1000.0, 1000.0, Some(1250.0), "1 000 requests/s", true),
        (0.3, 0.3, Some(301.0), "between 0.30 and 301 requests/s", false),
        (1000.0, 1000.0, Some(1400.0), "between 1 000 and 1 400 requests/s", false),
        (1000.0, 1000.0, None, "at least 1 000 requests/s", true),
        (1000.0, 980.0, None, "at least 980 requests/s", true),
    ] {
        let interval_lower_rps = Some(lower_end_rps);
        let with_line = |case: ServerFacts| ServerFacts { lower_rps, interval_lower_rps, upper_rps, ..case };
        let case = with_line(usual_server_facts().with_service_time_ms(4.5).with_peer_connections(4.0, 4.0, 4.0));
        let sentence = cause_text(&case, Cause::Pool).sentence_for_server(&case);
        assert!(sentence.contains(&format!("limit the load line to {expect}: ")), "{sentence:?}");
        let case = with_line(usual_server_facts().with_signals(&[(Processes, 1.0, 1.0, 1.0)]));
        let predicted = predict_line_without_cause(&case, Cause::Pool).expect("a prediction");
        assert_eq!(predicted.doubled_limit_line_rps.is_some(), is_doubled, "{sentence:?} {predicted:?}");
    }
}

#[test]
fn without_garbage_collection_requests_get_its_cores() {
    let full = [(ServerCores, 0.5, 3.4, 3.6), (Idle, 3.3, 0.3, 0.1), (Gc, 0.3, 0.4, 0.5)];
    let found =
        predict_line_without_cause(&usual_server_facts().with_signals(&full), Cause::Gc).expect("the cores are full");
    assert_eq!((found.line_rps, found.next_cause, found.doubled_limit_line_rps), (2000.0, Cause::Cpu, None));
    let stops = usual_server_facts().with_signals(&[(Gc, 0.1, 0.3, 0.3), (GcPauses, 0.0, 0.2, 0.3)]);
    assert_eq!(predict_line_without_cause(&stops, Cause::Gc), None, "it is not cores that are missing");
    assert!(cause_text(&stops, Cause::Gc).visible_effect.is_some_and(|how| how.contains("stops all requests for 30")));
}

/// Creates a load of one second with `count` samples of one function. `None`: functions were not
/// sampled.
fn run_with_samples(count: Option<u32>) -> plimsoll_model::Run {
    use plimsoll_model::{LoadCurve, LoadShape, Plan, Run, SampleInterval, SampledStack};
    let mut run = Run::new(
        Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record(),
    );
    run.window_ns = (0, 1_000_000_000);
    run.probes.sampled.intervals = count.map_or_else(Vec::new, |count| {
        let stacks = if count > 0 { vec![SampledStack { count, functions: vec![0] }] } else { vec![] };
        let (to_ns, period_ns, names) = (1_000_000_000, 10_000_000, vec!["serve".into()]);
        vec![SampleInterval { from_ns: 0, to_ns, period_ns, lost: 0, in_kernel: true, names, stacks }]
    });
    run
}

#[test]
fn functions_are_compared_with_the_lowest_sampled_load() {
    let case = usual_server_facts();
    for (low, half, line, past, expect) in [
        (Some(3), Some(9), Some(30), Some(30), Ok(Some(["low", "line"]))),
        (Some(3), None, None, Some(30), Ok(Some(["low", "past"]))),
        (Some(0), Some(9), Some(30), None, Ok(Some(["half", "line"]))),
        (Some(0), Some(9), Some(0), Some(30), Ok(Some(["half", "past"]))),
        (Some(0), Some(0), Some(30), Some(30), Err("during the low load and the load at half the load line")),
        (Some(9), Some(9), Some(0), Some(0), Err("during the loads at the load line and above the load line")),
        // No load was sampled.
        (None, None, None, None, Ok(None)),
    ] {
        let runs = [low, half, line, past].map(run_with_samples);
        let [low, half, line, past] = &runs;
        let loads = Loads { low: Some(low), half: Some(half), line: Some(line), past: Some(past), ..Loads::default() };
        let names = match FunctionObservation::from_loads(&case, &loads) {
            Some(FunctionObservation::Costs(costs)) => Some(costs.level_names),
            _ => None,
        };
        let why = FunctionObservation::missing_samples_reason(&loads).filter(|_| names.is_none());
        match expect {
            Ok(expect) => assert_eq!((names, &why), (expect, &None)),
            Err(when) => assert!(names.is_none() && why.as_ref().is_some_and(|why| why.contains(when)), "{why:?}"),
        }
    }
    // Without any load, there is no reason why samples are missing.
    assert_eq!(FunctionObservation::missing_samples_reason(&Loads::default()), None);
}

#[test]
fn without_a_load_line_loads_are_shares_of_peak_throughput() {
    let base =
        Plan::for_get_request("server", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record();
    let (slo, arrivals) = (Slo::default(), ArrivalSpacing::Constant);
    let settings = SearchSettings { base, slo, budget_ns: 60_000_000_000, max_rate: None, arrivals, preflight_ns: 0 };
    let made = |purpose, load, goodput_rps| {
        let trial = TrialOutcome::one_second_trial(purpose, load, Verdict::Fail);
        TrialOutcome { goodput_rps, ..trial }
    };
    let users = |users: u64, rps: f64| made(LoadPurpose::Peak, OfferedLoad::Users(users), rps);
    let open = |rate: f64, rps: f64| made(LoadPurpose::Climb, OfferedLoad::Rate(rate), rps);
    for (name, trials, expect) in [
        ("several users tell it", vec![users(1, 100.0), users(4, 300.0), open(500.0, 320.0)], 300.0),
        ("the one user met the answer that is late", vec![users(1, 1.0), open(50.0, 47.0)], 47.0),
        ("and was not answered in time", vec![users(1, 0.0), open(50.0, 47.0), open(12.0, 11.0)], 47.0),
        ("nobody was answered", vec![users(1, 0.0)], 0.0),
    ] {
        let level = reference_rate(&find::conclude(&settings, &trials, 1_000_000_000));
        assert_eq!(level, expect, "{name}");
    }
}

#[test]
fn an_interpreter_is_the_next_limit_of_its_server() {
    // A request needs 100 us of CPU time, and the machine has four cores.
    for (server, processes, cause, expect_rps) in [
        ("api", 1.0, Cause::Cpu, 39_000.0),
        ("python3.12", 1.0, Cause::OneThread, 10_000.0),
        ("python3.12", 8.0, Cause::Cpu, 39_000.0),
        ("python3.13t", 1.0, Cause::Cpu, 39_000.0),
    ] {
        let mut case = usual_server_facts().with_signals(&[(Processes, processes, processes, processes)]);
        for load in [&mut case.line, &mut case.past] {
            load.server = Some(format!("service ({server})"));
        }
        let found = predict_line_without_cause(&case, Cause::Pool).expect("a prediction");
        assert_eq!(found.next_cause, cause, "{server}");
        assert!((found.line_rps / expect_rps - 1.0).abs() < 0.01, "{server}: {found:?}");
        // Native code runs without the interpreter, so the upper end of the predicted range uses
        // all cores.
        assert!(found.range_rps.1 > 39_000.0, "{server}: {found:?}");
    }
}

#[test]
fn a_small_gain_or_a_saturated_server_is_no_evidence_of_a_warm_up() {
    for (held_rps, idle, expect) in
        [(1040.0, 3.8, "no"), (1100.0, 3.8, "yes"), (1100.0, 0.1, "no"), (2100.0, 0.1, "yes")]
    {
        let case = usual_server_facts().with_signals(&[(Goodput, 150.0, 950.0, 1100.0), (Idle, 3.9, idle, idle)]);
        let upper_rps = Some(1000.0);
        let case = ServerFacts { alone_first_ns: Some(40e6), held_past_rps: Some(held_rps), upper_rps, ..case };
        assert_eq!(feature_answer(&case, Feature::WarmerNow), Some(expect), "{held_rps} {idle}");
    }
}

#[test]
fn the_text_about_a_warm_up_names_only_measured_rates() {
    for (held_past_rps, upper_rps, saturated_rps, expect) in [
        (Some(1100.0), Some(1010.0), None, "broke the SLO at 1 010 requests/s during the search, and meets"),
        (Some(2500.0), None, Some(600.0), "peak was 600 requests/s during the search"),
        (None, Some(1010.0), None, "slower at the beginning of the search"),
    ] {
        let case = ServerFacts { held_past_rps, upper_rps, saturated_rps, ..usual_server_facts() };
        let sentence = cause_text(&case, Cause::WarmUp).sentence_for_server(&case);
        assert!(sentence.contains(expect), "{sentence:?}");
    }
}

#[test]
fn a_disturbed_search_is_no_evidence_of_a_warm_up() {
    let faster = ServerFacts { alone_first_ns: Some(40e6), held_past_rps: Some(2100.0), ..usual_server_facts() };
    assert_eq!(feature_answer(&faster, Feature::WarmerNow), Some("yes"));
    assert_eq!(feature_answer(&ServerFacts { is_search_disturbed: true, ..faster }, Feature::WarmerNow), Some("no"));
}

/// Checks that the reference page of the features lists each answer with its meaning.
#[test]
fn the_page_of_the_features_lists_every_answer() {
    let page = include_str!("../../../../../docs/reference/explain-features.md");
    for feature in Feature::ALL {
        let FeatureCard { word, values, .. } = feature.card();
        for (at, FeatureValue { word: value, text }) in values.iter().enumerate() {
            let name = if at == 0 { format!(" `{word}` ") } else { "  ".to_owned() };
            let row = format!("\n|{name}| `{value}` | {text} |\n");
            assert!(page.contains(&row), "docs/reference/explain-features.md lacks {row}");
        }
    }
}
