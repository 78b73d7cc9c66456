//! The causes that can limit a load line, one file each ([`CauseCard`]): how each shows, what it
//! predicts of interventions, how it is told, and what takes its place once it is gone.
//!
//! A new cause is a file here, its line in [`cards`], its name in `Cause`, a page under
//! `docs/causes`, and three cases of the corpus. Not here: what the features are (`features`).

mod accept_backlog;
mod client;
mod cpu;
mod cpu_quota;
mod delay;
mod disk;
mod downstream;
mod files;
mod gc;
mod limiter;
mod lock;
mod memory;
mod neighbour;
mod network;
mod none;
mod one_thread;
mod pool;
mod ports;
mod slow_reader;
mod warm_up;
mod workers;

use super::cause::Cause;
use super::contrast::Contrast;
use super::demands::UsedResource;
use super::features::Feature;
use super::interventions::Predictions;
use super::signals::Signal;
use crate::format;
use crate::sentence::{Remedy, Sentence, SentencePart};

/// What a way expects of a feature; answers by their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// This answer, in any case.
    Is(&'static str),
    /// This answer, mostly.
    Mostly(&'static str),
    /// Any answer but this one.
    Not(&'static str),
    /// It says nothing, although it is a mark of other causes.
    Any,
}

/// A way in which a cause shows.
#[derive(Debug)]
pub struct Way {
    /// Its name in the file of likelihoods.
    pub word: &'static str,
    /// What it expects.
    pub expects: &'static [(Feature, Expect)],
}

/// A cause.
#[derive(Debug)]
pub struct CauseCard {
    /// Its name.
    pub cause: Cause,
    /// The ways in which it shows.
    pub ways: &'static [Way],
    /// What it predicts of each intervention.
    pub predicts: Predictions,
    /// Resources that it is itself: they are no limit once it is gone.
    pub resources: &'static [UsedResource],
    /// Whether there can be twice as much of it.
    pub is_countable: bool,
    /// What would tell it, where it was not observed.
    pub to_tell: &'static [SentencePart],
    /// What it is in a case, in words.
    pub tell: fn(&Contrast) -> CauseText,
}

/// All causes of the server, of plimsoll and of the machine.
pub fn cards() -> [&'static CauseCard; 21] {
    [
        &client::CARD,
        &none::CARD,
        &neighbour::CARD,
        &ports::CARD,
        &files::CARD,
        &accept_backlog::CARD,
        &memory::CARD,
        &cpu_quota::CARD,
        &limiter::CARD,
        &delay::CARD,
        &warm_up::CARD,
        &gc::CARD,
        &one_thread::CARD,
        &cpu::CARD,
        &workers::CARD,
        &pool::CARD,
        &lock::CARD,
        &downstream::CARD,
        &disk::CARD,
        &slow_reader::CARD,
        &network::CARD,
    ]
}

/// All ways, each with its cause.
pub fn ways() -> impl Iterator<Item = (&'static CauseCard, &'static Way)> {
    cards().into_iter().flat_map(|card| card.ways.iter().map(move |way| (card, way)))
}

/// The card of a cause; `None` of what is not known.
pub fn card(cause: Cause) -> Option<&'static CauseCard> {
    cards().into_iter().find(|card| card.cause == cause)
}

/// What a cause is in a case, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseText {
    /// What limits the line: `one thread of node`.
    pub subject: String,
    /// Whether that is several things.
    several: bool,
    /// How it shows, as a clause; `None` of what has a sentence of its own.
    pub how: Option<String>,
    /// A sentence of its own, without a full stop.
    whole: Option<Sentence>,
}

impl CauseText {
    fn limit(subject: impl Into<String>, how: impl Into<String>) -> CauseText {
        CauseText { subject: subject.into(), several: false, how: Some(how.into()), whole: None }
    }

    fn several(self, several: bool) -> CauseText {
        CauseText { several, ..self }
    }

    fn sentence(cause: Cause, whole: impl Into<Sentence>) -> CauseText {
        CauseText { subject: cause.text().to_owned(), several: false, how: None, whole: Some(whole.into()) }
    }

    /// The answer in one sentence, without a full stop.
    pub fn answer(self, case: &Contrast) -> Sentence {
        if let Some(whole) = self.whole {
            return whole;
        }
        let line = match (case.lower_rps > 0.0, case.sustained_rps) {
            (true, _) => format!("the load line to {}", case.offered_text(case.lower_rps)),
            (false, most) => format!("the server to {}", case.offered_text(most)),
        };
        let verb = if self.several { "limit" } else { "limits" };
        format!("{} {verb} {line}: {}", self.subject, self.how.unwrap_or_default()).into()
    }
}

/// What tells where a server was not observed from within.
const PROBES: &[SentencePart] = &[
    words("the server's processes: run plimsoll on its machine, as its user or as root ("),
    SentencePart::Remedy(Remedy::Process),
    words(" where it is not found)"),
];
/// What tells where the kernel's account of connections was not observed.
const CONNECTIONS: &[SentencePart] = &[words("the kernel's account of the connections (probes)")];

const fn words(words: &'static str) -> SentencePart {
    SentencePart::words(words)
}

/// The name of the server's process.
fn server(case: &Contrast) -> String {
    let name = case.past.server.clone().or_else(|| case.line.server.clone());
    name.unwrap_or_else(|| "the server".to_owned())
}

/// Who answers at an address: `mariadbd at 127.0.0.1:3306`, or the address alone.
fn peer_text(case: &Contrast, address: &str) -> String {
    case.name_of_peer(address).map_or_else(|| address.to_owned(), |name| format!("{name} at {address}"))
}

/// `1 worker`, `4 workers`.
fn number(value: f64, one: &str, many: &str) -> String {
    if value.round() == 1.0 { format!("1 {one}") } else { format!("{:.0} {many}", value.round()) }
}

/// The largest value at the line or past it; 0 where it was not observed.
fn top(case: &Contrast, signal: Signal) -> f64 {
    case.top(signal).unwrap_or(0.0)
}

/// The same of a share, in words.
fn share(case: &Contrast, signal: Signal) -> String {
    format::rough_share(top(case, signal).min(1.0))
}

/// How many cores are idle, as the end of a clause; empty where it was not observed.
fn idle(case: &Contrast) -> String {
    let idle = case.bottom(Signal::Idle).zip(case.top(Signal::Cores));
    idle.map_or_else(String::new, |(idle, cores)| format!("; {idle:.1} of {cores:.0} cores are idle"))
}

/// What the server answers past the line: `1 200/s`.
fn rate_past(case: &Contrast) -> String {
    format!("{}/s", format::rate(case.past.get(Signal::Goodput).unwrap_or(case.best_rps)))
}
