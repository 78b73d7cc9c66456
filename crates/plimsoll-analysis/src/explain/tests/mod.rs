//! A synthetic server for the tests of explanations. Each test changes some of the server's signals
//! and checks the explanation.
//!
//! Not here: the tests of each cause (`synthetic_cases`), of single laws (`laws`), of cases without
//! a named cause (`unknown_causes`), and of texts (`bottleneck_texts`).

mod bottleneck_texts;
mod laws;
mod synthetic_cases;
mod unknown_causes;

use super::*;
use crate::find::StopReason;
use crate::slo::Slo;
use Signal::*;

/// Creates the facts about a server with idle cores and a capacity of 1 000/s. A single request
/// takes 10 ms, and ten requests are in service at once.
pub(super) fn usual_server_facts() -> ServerFacts {
    let of = |rate: f64, asked: f64, p50_ms: f64, in_flight: f64| LoadSignals {
        values: [
            (Offered, asked),
            (Goodput, rate),
            (P50, p50_ms * 1e6),
            (P99, p50_ms * 2e6),
            (Service, p50_ms * 1e6),
            (InFlight, in_flight),
            (Failed, 0.0),
            (Refused, 0.0),
            (Connect, 1e5),
            (ConnectFailed, 0.0),
            (Generator, 0.1),
            (ClientCores, 0.1),
            (ServerCores, rate * 1e-4),
            (ServerCpu, 1e5),
            (FullestThread, rate * 2e-5),
            (FullThreads, 0.0),
            (Threads, 12.0),
            (Processes, 1.0),
            (RunQueue, 0.01),
            (Switches, 2.0),
            (Blocked, 0.0),
            (MajorFaults, 0.0),
            (Files, 0.01),
            (ListenQueue, 0.0),
            (ListenOverflows, 0.0),
            (SendQueue, 0.0),
            (WindowLimited, 0.0),
            (Gc, 0.0),
            (Compiling, 0.0),
            (Idle, 4.0 - rate * 1e-4 - 0.1),
            (Cores, 4.0),
            (IoPressure, 0.0),
            (MemoryPressure, 0.0),
            (Others, 0.02),
            (Steal, 0.0),
            (Retransmits, 0.0),
            (TimeWait, 0.004),
            (InLock, 0.0),
            (InSleep, 0.0),
            (InRead, 0.0),
            (InDisk, 0.0),
        ]
        .into(),
        server: Some("api".into()),
        seconds: 10.0,
        ..LoadSignals::default()
    };
    ServerFacts {
        counted: "requests".to_owned(),
        requests_each: 1.0,
        low: of(150.0, 150.0, 10.0, 1.5),
        half: of(500.0, 500.0, 10.0, 5.0),
        line: of(950.0, 950.0, 11.0, 10.0),
        past: of(1000.0, 1100.0, 400.0, 500.0),
        closed: LoadSignals::default(),
        held_past_rps: None,
        lower_rps: 1000.0,
        interval_lower_rps: None,
        upper_rps: Some(1010.0),
        stopped_by: StopReason::PrecisionReached,
        slo: Slo::default(),
        best_rps: 1000.0,
        sustained_rps: 1000.0,
        saturated_rps: None,
        is_search_disturbed: false,
        alone_ns: Some(10e6),
        alone_first_ns: Some(10e6),
        held_back_ns: None,
        constant_failure: None,
        target_loss: None,
        killed: None,
        demands: Vec::new(),
    }
}

impl ServerFacts {
    /// Sets each signal in `values` to its three values: at the low load, at the load line, and
    /// above.
    pub(super) fn with_signals(mut self, values: &[(Signal, f64, f64, f64)]) -> ServerFacts {
        for (signal, low, line, past) in values {
            self.low.values.insert(*signal, *low);
            self.half.values.insert(*signal, (low + line) / 2.0);
            self.line.values.insert(*signal, *line);
            self.past.values.insert(*signal, *past);
        }
        self.demands = demands::estimate_demands(&[&self.low, &self.half, &self.line, &self.past]);
        self
    }

    pub(super) fn without_signals(mut self, signals: &[Signal]) -> ServerFacts {
        for sight in [&mut self.low, &mut self.half, &mut self.line, &mut self.past] {
            sight.values.retain(|signal, _| !signals.contains(signal));
        }
        self.demands = demands::estimate_demands(&[&self.low, &self.half, &self.line, &self.past]);
        self
    }

    pub(super) fn with_service_time_ms(mut self, ms: f64) -> ServerFacts {
        self.alone_ns = Some(ms * 1e6);
        self
    }

    /// Sets the mean number of open calls to a dependency with this process name, at the low load
    /// and above the load line.
    pub(super) fn with_open_calls(mut self, name: &str, low: f64, past: f64) -> ServerFacts {
        let address = "127.0.0.1:6379";
        for (sight, calls) in [(&mut self.low, low), (&mut self.past, past)] {
            sight.calls_to_peers.insert(address.into(), calls);
            sight.peer_names.insert(address.into(), name.into());
        }
        self
    }

    pub(super) fn with_peer_connections(mut self, low: f64, line: f64, past: f64) -> ServerFacts {
        for (sight, count) in [(&mut self.low, low), (&mut self.line, line), (&mut self.past, past)] {
            sight.peers.insert("127.0.0.1:6379".into(), count);
            sight.values.insert(PeerConnections, count);
        }
        self
    }
}

pub(super) fn named_cause_of(case: &ServerFacts) -> Cause {
    explanation_from_facts(case, &InterventionOutcomes::default(), LoadLine::NONE).cause
}

/// Returns the answer to `feature`, a question about the server, as a word such as `yes`. Returns
/// `None` if the answer was not observed.
pub(super) fn feature_answer(case: &ServerFacts, feature: Feature) -> Option<&'static str> {
    let card = feature.card();
    (card.read)(case).map(|value| card.values[value].word)
}

pub(super) fn cause_text(case: &ServerFacts, cause: Cause) -> causes::card::CauseText {
    (causes::cause_card(cause).expect("a cause").describe)(case)
}

pub(super) fn format_posterior(case: &ServerFacts) -> String {
    let posterior = Posterior::from_facts(case, &[]);
    let candidate = |it: &posterior::CauseFormProbability| {
        let terms: Vec<String> = it
            .terms
            .iter()
            .take(4)
            .map(|term| {
                let card = term.feature.card();
                format!("{:+.1} {} {}", term.log_ratio, card.word, card.values[term.answer_index].word)
            })
            .collect();
        format!("  {} {:.2}: {}", it.form.word, it.probability, terms.join(", "))
    };
    let candidates: Vec<String> = posterior.candidates.iter().take(3).map(candidate).collect();
    format!("{}\n  unknown {:.2}", candidates.join("\n"), posterior.unknown)
}
