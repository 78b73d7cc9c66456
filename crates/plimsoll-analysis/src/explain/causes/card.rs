//! The description of a cause ([`CauseCard`]), and the words that the sentences of causes share.
//!
//! Not here: the causes (one file each in this folder), and the features (`features`).

use crate::explain::demands::UsedResource;
use crate::explain::features::Feature;
use crate::explain::predictions::Predictions;
use crate::explain::server_facts::ServerFacts;
use crate::explain::signals::Signal;
use crate::format;
use crate::sentence::{Remedy, Sentence, SentencePart};

/// The answer that a cause expects to a feature (a question about the server). Each variant except
/// `Any` names an answer by its word in `likelihoods.tsv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// The cause practically always leads to this answer.
    Is(&'static str),
    /// The cause mostly leads to this answer.
    Mostly(&'static str),
    /// The cause may lead to any answer except this one.
    Not(&'static str),
    /// The cause may lead to any answer. Without this entry, an answer that is typical of another
    /// cause would count as improbable under this cause.
    Any,
}

/// One form of a cause: the answers to the features (questions about the server) that this form
/// leads to.
#[derive(Debug)]
pub struct CauseForm {
    /// The name of this form in `likelihoods.tsv`.
    pub word: &'static str,
    /// The answers that this form of the cause expects, by feature.
    pub expects: &'static [(Feature, ExpectedAnswer)],
}

/// The description of one cause: expected answers, predicted effects of experiments, and sentence.
#[derive(Debug)]
pub struct CauseCard {
    /// The limiting resource in a few words for people, such as `storage`.
    pub name: &'static str,
    /// The forms of the cause. Each form leads to different answers to the features (questions
    /// about the server).
    pub forms: &'static [CauseForm],
    /// For each experiment, the probabilities that the goodput rises, stays or falls if the
    /// described cause limits the server.
    pub predicts: Predictions,
    /// The resources that are saturated because of this cause. These resources no longer limit the
    /// server once the cause is removed.
    pub resources: &'static [UsedResource],
    /// Whether the limit is a number that can be doubled, such as workers or connections.
    pub is_countable: bool,
    /// Advice for the user: the observations that would show this cause.
    pub missing_evidence: &'static [SentencePart],
    /// Describes the cause with the observed facts about one server.
    pub describe: fn(&ServerFacts) -> CauseText,
}

/// The texts about a cause that limits one server.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseText {
    /// The limiting resource as a noun phrase, such as `one thread of node`.
    pub subject: String,
    /// Whether `subject` is plural, so that the verb is plural.
    pub(super) is_plural: bool,
    /// The visible effect of the limit, as a clause; `None` if `whole` replaces it.
    pub visible_effect: Option<String>,
    /// A complete sentence without a full stop that replaces `subject` and `how`.
    pub(super) full_sentence: Option<Sentence>,
}

impl CauseText {
    pub(super) fn for_resource(subject: impl Into<String>, how: impl Into<String>) -> CauseText {
        CauseText { subject: subject.into(), is_plural: false, visible_effect: Some(how.into()), full_sentence: None }
    }

    pub(super) fn with_plural_subject(self, is_plural: bool) -> CauseText {
        CauseText { is_plural, ..self }
    }

    pub(super) fn from_sentence(name: &str, whole: impl Into<Sentence>) -> CauseText {
        CauseText {
            subject: name.to_owned(),
            is_plural: false,
            visible_effect: None,
            full_sentence: Some(whole.into()),
        }
    }

    /// Returns the description of the cause as one sentence, without a full stop.
    pub fn sentence_for_server(self, case: &ServerFacts) -> Sentence {
        if let Some(whole) = self.full_sentence {
            return whole;
        }
        let (resource, effect) = (self.subject, self.visible_effect.unwrap_or_default());
        let limits = if self.is_plural { "limit" } else { "limits" };
        let text = match (case.lower_rps > 0.0, case.sustained_rps) {
            (true, _) => {
                format!("{resource} {limits} the load line to {load_line}: {effect}", load_line = case.load_line_text())
            }
            (false, most) => format!(
                "{resource} {limits} the server to {offered_rate}: {effect}",
                offered_rate = case.rate_text(most)
            ),
        };
        text.into()
    }
}

/// Advice for a cause whose evidence needs probes of the server's process.
pub const PROCESS_PROBES_ADVICE: &[SentencePart] = &[
    text_part(
        "run plimsoll on the server's machine, as the server's user or as root, to observe the server's processes. If \
         plimsoll does not find a process, name the process",
    ),
    text_part(" ("),
    SentencePart::Remedy(Remedy::Process),
    text_part(")"),
];
/// Advice for a cause whose evidence needs the kernel's statistics of connections.
pub(super) const CONNECTION_STATISTICS_ADVICE: &[SentencePart] = &[text_part(
    "plimsoll needs the kernel's statistics of the server's connections, which probes on the server's machine read",
)];

pub(super) const fn text_part(words: &'static str) -> SentencePart {
    SentencePart::words(words)
}

/// Returns the name of the server's process, or `the server` if the process was not observed.
pub(super) fn server_name(case: &ServerFacts) -> String {
    let name = case.past.server.clone().or_else(|| case.line.server.clone());
    name.unwrap_or_else(|| "the server".to_owned())
}

/// Formats the process at a dependency's address, such as `mariadbd at 127.0.0.1:3306`. Without a
/// process name, the text is the address alone.
pub(super) fn dependency_text(case: &ServerFacts, address: &str) -> String {
    case.dependency_process_name(address).map_or_else(|| address.to_owned(), |name| format!("{name} at {address}"))
}

/// Formats a count with its noun: `1 worker`, `4 workers`.
pub(super) fn count_with_noun(value: f64, one: &str, many: &str) -> String {
    if value.round() == 1.0 { format!("1 {one}") } else { format!("{:.0} {many}", value.round()) }
}

/// Returns the maximum of a signal at the load line and above; 0 if the signal was not observed.
pub(super) fn max_at_high_load_or_zero(case: &ServerFacts, signal: Signal) -> f64 {
    case.max_at_high_load(signal).unwrap_or(0.0)
}

/// Formats the maximum of a share at the load line and above as a percentage.
pub(super) fn percent_at_high_load(case: &ServerFacts, signal: Signal) -> String {
    format::short_percent(max_at_high_load_or_zero(case, signal).min(1.0))
}

/// Formats the minimum number of idle cores as the end of a sentence; empty if it was not observed.
pub(super) fn idle_cores_text(case: &ServerFacts) -> String {
    let idle = case.min_at_high_load(Signal::Idle).zip(case.max_at_high_load(Signal::Cores));
    idle.map_or_else(String::new, |(idle, cores)| format!("; {idle:.1} of {cores:.0} cores are idle"))
}

/// Formats the goodput of the load above the load line, such as `1 200/s`.
pub(super) fn goodput_above_line_text(case: &ServerFacts) -> String {
    format!("{}/s", format::rate(case.past.get(Signal::Goodput).unwrap_or(case.best_rps)))
}
