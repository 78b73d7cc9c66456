//! Sentences ([`Sentence`]) that name remedies by kind ([`Remedy`]). Only the renderer knows the
//! command-line flag of each remedy, and inserts the flag.
//!
//! Not here: the flags of the remedies.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A remedy: a change of the command line that improves the measurement, or another measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// A larger time budget for the whole study.
    Budget,
    /// A longer time for each load.
    LoadTime,
    /// A higher maximum rate.
    MaxRate,
    /// More connections.
    MaxConnections,
    /// More simultaneous requests on each connection.
    Streams,
    /// More local addresses, each with separate ports.
    SourceAddresses,
    /// Connections closed by reset, so that they leave no port in TIME-WAIT.
    CloseByReset,
    /// Permission to compare sides whose responses differ.
    DifferentAnswers,
    /// Builds that plimsoll starts for each load, instead of two running processes.
    Builds,
    /// The process of the server, named by the user.
    Process,
    /// The control group of the server, named by the user.
    ControlGroup,
    /// The address of the server's own metrics.
    Metrics,
    /// A different SLO.
    Slo,
}

impl Remedy {
    /// All remedies.
    pub const ALL: [Remedy; 13] = [
        Remedy::Budget,
        Remedy::LoadTime,
        Remedy::MaxRate,
        Remedy::MaxConnections,
        Remedy::Streams,
        Remedy::SourceAddresses,
        Remedy::CloseByReset,
        Remedy::DifferentAnswers,
        Remedy::Builds,
        Remedy::Process,
        Remedy::ControlGroup,
        Remedy::Metrics,
        Remedy::Slo,
    ];
}

/// A part of a sentence: words, or the placeholder for a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentencePart {
    /// Words, including the spaces around them.
    Words(Cow<'static, str>),
    /// A remedy, whose name the renderer inserts.
    Remedy(Remedy),
}

impl SentencePart {
    /// Creates a part from constant words.
    pub const fn words(words: &'static str) -> SentencePart {
        SentencePart::Words(Cow::Borrowed(words))
    }
}

/// A sentence, or a part of a sentence, with placeholders for remedies. The renderer turns the
/// sentence into text and inserts the names of the remedies ([`Sentence::render_text`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence(Vec<SentencePart>);

impl Sentence {
    /// Appends words to the sentence.
    #[must_use]
    pub fn words(self, words: impl Into<Cow<'static, str>>) -> Sentence {
        self.with_part(SentencePart::Words(words.into()))
    }

    /// Appends a placeholder for the name of a remedy.
    #[must_use]
    pub fn remedy(self, remedy: Remedy) -> Sentence {
        self.with_part(SentencePart::Remedy(remedy))
    }

    /// Appends another sentence to this sentence.
    #[must_use]
    pub fn append_sentence(self, other: &Sentence) -> Sentence {
        other.0.iter().cloned().fold(self, Sentence::with_part)
    }

    /// Appends a part. Adjacent words are joined into one part, so that equal sentences have equal
    /// parts.
    fn with_part(mut self, part: SentencePart) -> Sentence {
        match (self.0.last_mut(), part) {
            (_, SentencePart::Words(words)) if words.is_empty() => {}
            (Some(SentencePart::Words(last)), SentencePart::Words(words)) => last.to_mut().push_str(&words),
            (_, part) => self.0.push(part),
        }
        self
    }

    /// Returns the remedies that the sentence names, in order.
    pub fn remedies(&self) -> impl Iterator<Item = Remedy> {
        self.0.iter().filter_map(|part| match part {
            SentencePart::Remedy(remedy) => Some(*remedy),
            SentencePart::Words(_) => None,
        })
    }

    /// Returns whether the sentence is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the sentence contains these words without a remedy between them.
    pub fn contains(&self, words: &str) -> bool {
        self.0.iter().any(|part| matches!(part, SentencePart::Words(said) if said.contains(words)))
    }

    /// Renders the sentence as text. `name` returns the name of each remedy.
    pub fn render_text(&self, name: impl Fn(Remedy) -> &'static str) -> String {
        let said = |part: &SentencePart| match part {
            SentencePart::Words(words) => words.to_string(),
            SentencePart::Remedy(remedy) => name(*remedy).to_owned(),
        };
        self.0.iter().map(said).collect()
    }
}

impl From<String> for Sentence {
    fn from(words: String) -> Sentence {
        Sentence::default().words(words)
    }
}

impl From<&str> for Sentence {
    fn from(words: &str) -> Sentence {
        Sentence::default().words(words.to_owned())
    }
}

impl From<&[SentencePart]> for Sentence {
    fn from(parts: &[SentencePart]) -> Sentence {
        parts.iter().cloned().fold(Sentence::default(), Sentence::with_part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_sentences_keep_remedies_in_place() {
        let inner = Sentence::from("too few (").remedy(Remedy::MaxConnections).words(")");
        let whole =
            Sentence::from("void: ").words("").append_sentence(&inner).words(String::from(", or ")).remedy(Remedy::Slo);
        let parts = [
            SentencePart::words("void: too few ("),
            SentencePart::Remedy(Remedy::MaxConnections),
            SentencePart::words("), or "),
            SentencePart::Remedy(Remedy::Slo),
        ];
        assert_eq!(whole, Sentence::from(&parts[..]));
        assert_eq!(whole.remedies().collect::<Vec<_>>(), [Remedy::MaxConnections, Remedy::Slo]);
        let name = |remedy| if remedy == Remedy::Slo { "an SLO" } else { "N" };
        assert_eq!(whole.render_text(name), "void: too few (N), or an SLO");
        assert!(whole.contains("void: too few") && !whole.contains("N)") && !whole.is_empty());
        assert!(Sentence::from("").is_empty() && Sentence::default().render_text(name).is_empty());
    }
}
