//! Tests of cases without a named cause, because observations are missing or contradict each other.
//! Other tests of this file cover causes that are known from the load alone, without probes.

use super::*;
use crate::find::StopReason;

#[test]
fn too_few_signals_name_no_cause() {
    let seen_of_server: Vec<Signal> = [ServerCores, FullestThread, FullThreads, Threads, Processes, RunQueue, Switches]
        .into_iter()
        .chain([Blocked, MajorFaults, Files, ListenQueue, Gc, Compiling, Idle, Cores, InLock, InSleep, InDisk])
        .collect();
    let full = [(FullestThread, 0.15, 0.93, 0.99), (FullThreads, 0.0, 1.0, 1.0), (ServerCores, 0.15, 0.95, 1.0)];
    for (what, case) in [
        ("a plateau of which nothing else is known", usual_server_facts()),
        (
            "two loops of events that have taken all, with connections that stand idle to what answers as soon as ever",
            usual_server_facts().with_service_time_ms(1.9).with_peer_connections(7.0, 6.0, 6.0).with_signals(&[
                (Threads, 3.0, 3.0, 3.0),
                (Processes, 3.0, 3.0, 3.0),
                (PeerWaiting, 0.4, 1.2, 2.0),
                (Unaccepted, 0.0, 0.0, 0.0),
                (InFlight, 0.3, 1.7, 108.0),
            ]),
        ),
        ("a full thread that nobody saw", usual_server_facts().with_signals(&full).without_signals(&seen_of_server)),
        (
            "no load but one",
            ServerFacts {
                low: LoadSignals::default(),
                half: LoadSignals::default(),
                past: LoadSignals::default(),
                ..usual_server_facts()
            },
        ),
        (
            "a thread that is as full at a low load",
            usual_server_facts().with_signals(&[(FullestThread, 0.99, 0.99, 0.99), (FullThreads, 1.0, 1.0, 1.0)]),
        ),
        ("a rate inside of a wide bracket", {
            let case =
                usual_server_facts().with_signals(&[(Compiling, 0.3, 0.05, 0.0), (Goodput, 150.0, 950.0, 1100.0)]);
            ServerFacts { held_past_rps: Some(1100.0), upper_rps: Some(2000.0), ..case }
        }),
        ("a line that lay too low by chance", {
            let case = usual_server_facts().with_signals(&[(Goodput, 150.0, 950.0, 1100.0)]);
            ServerFacts { held_past_rps: Some(1100.0), ..case }
        }),
        (
            "refusals at any load",
            usual_server_facts().with_signals(&[(Refused, 0.1, 0.1, 0.1), (Failed, 0.1, 0.1, 0.1)]),
        ),
        (
            "cores that others use up",
            usual_server_facts().with_signals(&[
                (Idle, 2.0, 0.1, 0.1),
                (Others, 1.0, 3.7, 3.7),
                (ServerCores, 0.02, 0.1, 0.12),
            ]),
        ),
        ("others whose work grows with the load", {
            let mut case = usual_server_facts().with_signals(&[(Others, 0.1, 1.5, 1.6)]);
            case.line.disturbed = Some("other processes used 1.5 of 4 cores".into());
            case
        }),
    ] {
        assert_eq!(named_cause_of(&case), Cause::Unknown, "{what}\n{}", format_posterior(&case));
    }
}

/// Creates a server that pauses for half a second in the low load only, so only that load has a
/// late p99.
fn server_stalled_at_low_load() -> ServerFacts {
    let mut case = usual_server_facts();
    case.low.values.insert(P99, 600e6);
    case
}

/// Checks that some causes are known from the load alone, for a server on another machine, without
/// probes.
#[test]
fn some_causes_are_named_without_probes() {
    let seen: Vec<Signal> =
        usual_server_facts().low.values.keys().copied().filter(|signal| signal.text().source != "the load").collect();
    let refusing = [(Refused, 0.0, 0.0, 0.1), (Failed, 0.0, 0.0, 0.1), (Service, 10e6, 10e6, 10e6)];
    for (case, cause) in [
        (usual_server_facts().with_signals(&refusing), Cause::Limiter),
        (usual_server_facts().with_signals(&[(P99, 600e6, 610e6, 800e6), (P50, 5e6, 5e6, 9e6)]), Cause::Delay),
        (
            usual_server_facts().with_signals(&[
                (Connect, 1e5, 2e5, 1.02e9),
                (P99, 20e6, 30e6, 1.1e9),
                (Service, 10e6, 10e6, 11e6),
            ]),
            Cause::AcceptBacklog,
        ),
        // If the responses are not late, no request waited for the connections.
        (
            usual_server_facts().with_signals(&[
                (Connect, 1e5, 2e5, 1.02e9),
                (P99, 20e6, 30e6, 200e6),
                (Service, 10e6, 10e6, 11e6),
            ]),
            Cause::Unknown,
        ),
        (server_stalled_at_low_load(), Cause::Unknown),
        (usual_server_facts(), Cause::Unknown),
    ] {
        let case = case.without_signals(&seen);
        assert_eq!(named_cause_of(&case), cause, "{}", format_posterior(&case));
    }
}

/// Checks that an explanation reports a server that ended during the search, although there are no
/// steady loads. The kernel may still report that it killed the server for lack of memory.
#[test]
fn the_end_of_a_lost_server_is_reported() {
    let nothing = LoadSignals::default();
    for (killed, expect) in [(None, Cause::Unknown), (Some(0.0), Cause::Unknown), (Some(1.0), Cause::Memory)] {
        let [low, half, line, past] = [(); 4].map(|()| nothing.clone());
        let target_loss =
            Some("the server has accepted no connections since plimsoll applied a load of 4 096 users".to_owned());
        let case = ServerFacts {
            target_loss,
            killed,
            stopped_by: StopReason::ServerLost,
            low,
            half,
            line,
            past,
            ..usual_server_facts()
        };
        assert_eq!(named_cause_of(&case), expect, "{}", format_posterior(&case));
        let text = not_known::unknown_cause_sentence(&case, &[]);
        assert_eq!(
            text,
            "the bottleneck is not known: the server has accepted no connections since plimsoll applied a load of 4 096 users"
        );
        let advice = not_known::missing_evidence(&case, &[]);
        assert!(advice.len() == 1 && advice[0].contains("why the server stopped"), "{advice:?}");
    }
}

/// Checks that the advice names what is missing: probes of the process, an idle machine, or time.
#[test]
fn advice_names_the_missing_evidence() {
    let check = |case: &ServerFacts, expect: &str| {
        let advice = not_known::missing_evidence(case, &[Cause::Pool, Cause::Limiter]);
        assert!(advice.iter().any(|sentence| sentence.contains(expect)), "{expect}: {advice:?}");
        let asks_for_probes = advice.iter().any(|sentence| sentence.contains("observe the server's processes"));
        assert_eq!(asks_for_probes, case.line.get(ServerCores).is_none(), "{advice:?}");
    };
    let observed = usual_server_facts();
    check(&observed, "experiments that decide between these causes");
    let mut disturbed = observed.clone();
    disturbed.past.disturbed = Some("another program computed".to_owned());
    check(&disturbed, "on an idle machine");
    check(&observed.without_signals(&[ServerCores]), "the server's process was not observed");
}
