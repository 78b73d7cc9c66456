//! Sentences ([`Sentence`]) that name remedies ([`Remedy`]) by their kind, since only the renderer
//! knows the flag for each.
//!
//! Not here: the flag of a remedy.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A remedy: a change of the command that gives a better measurement, or another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// More time for the whole.
    Budget,
    /// More time for each load.
    LoadTime,
    /// A higher rate allowed.
    MaxRate,
    /// More connections.
    MaxConnections,
    /// More requests at a time on each connection.
    Streams,
    /// More local addresses, each with ports of its own.
    SourceAddresses,
    /// Connections closed so that they leave no port behind.
    CloseByReset,
    /// Sides are compared though their answers differ.
    DifferentAnswers,
    /// Builds, each started afresh for each load, in place of two processes as they are.
    Builds,
    /// Which process the server is.
    Process,
    /// Which control group the server is in.
    ControlGroup,
    /// Where the server tells its own figures.
    Metrics,
    /// The SLO.
    Slo,
}

impl Remedy {
    /// All of them.
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

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentencePart {
    /// Words, with the spaces around them.
    Words(Cow<'static, str>),
    /// The place of a remedy's name.
    Remedy(Remedy),
}

impl SentencePart {
    /// These words.
    pub const fn words(words: &'static str) -> SentencePart {
        SentencePart::Words(Cow::Borrowed(words))
    }
}

/// A sentence, or the words of one, with places for remedies.
///
/// It is not text yet: the renderer inserts the names of remedies ([`Sentence::spelled`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence(Vec<SentencePart>);

impl Sentence {
    /// With these words at its end.
    #[must_use]
    pub fn words(self, words: impl Into<Cow<'static, str>>) -> Sentence {
        self.part(SentencePart::Words(words.into()))
    }

    /// With this remedy named at its end.
    #[must_use]
    pub fn remedy(self, remedy: Remedy) -> Sentence {
        self.part(SentencePart::Remedy(remedy))
    }

    /// With another at its end.
    #[must_use]
    pub fn then(self, other: &Sentence) -> Sentence {
        other.0.iter().cloned().fold(self, Sentence::part)
    }

    /// Words that follow each other are one part, so that equal sentences have equal parts.
    fn part(mut self, part: SentencePart) -> Sentence {
        match (self.0.last_mut(), part) {
            (_, SentencePart::Words(words)) if words.is_empty() => {}
            (Some(SentencePart::Words(last)), SentencePart::Words(words)) => last.to_mut().push_str(&words),
            (_, part) => self.0.push(part),
        }
        self
    }

    /// The remedies named in it, in order.
    pub fn remedies(&self) -> impl Iterator<Item = Remedy> {
        self.0.iter().filter_map(|part| match part {
            SentencePart::Remedy(remedy) => Some(*remedy),
            SentencePart::Words(_) => None,
        })
    }

    /// Whether the sentence is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the sentence contains these words, without a remedy between them.
    pub fn contains(&self, words: &str) -> bool {
        self.0.iter().any(|part| matches!(part, SentencePart::Words(said) if said.contains(words)))
    }

    /// As text, with each remedy by the name that `name` gives it.
    pub fn spelled(&self, name: impl Fn(Remedy) -> &'static str) -> String {
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
        parts.iter().cloned().fold(Sentence::default(), Sentence::part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_keep_their_places_and_words_are_joined() {
        let inner = Sentence::from("too few (").remedy(Remedy::MaxConnections).words(")");
        let whole = Sentence::from("void: ").words("").then(&inner).words(String::from(", or ")).remedy(Remedy::Slo);
        let parts = [
            SentencePart::words("void: too few ("),
            SentencePart::Remedy(Remedy::MaxConnections),
            SentencePart::words("), or "),
            SentencePart::Remedy(Remedy::Slo),
        ];
        assert_eq!(whole, Sentence::from(&parts[..]));
        assert_eq!(whole.remedies().collect::<Vec<_>>(), [Remedy::MaxConnections, Remedy::Slo]);
        let name = |remedy| if remedy == Remedy::Slo { "an SLO" } else { "N" };
        assert_eq!(whole.spelled(name), "void: too few (N), or an SLO");
        assert!(whole.contains("void: too few") && !whole.contains("N)") && !whole.is_empty());
        assert!(Sentence::from("").is_empty() && Sentence::default().spelled(name).is_empty());
    }
}
