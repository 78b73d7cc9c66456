//! The evidence against the figures of a finding ([`Doubts`]). Every finding carries its own doubts
//! in reading order, and returns its figures only together with them. Each doubt has a kind, by
//! which a format places it, and a sentence.
//!
//! Not here: when something is doubtful (each finding decides), and how a doubt looks.

use crate::sentence::Sentence;

/// The subject of a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DoubtKind {
    /// Said before the first load.
    Noted,
    /// plimsoll was the limit, not the server.
    Generator,
    /// Requests were not sent, because the server kept every connection waiting.
    Unsent,
    /// Others on the machine disturbed.
    Others,
    /// Loads that say nothing about the server.
    Void,
    /// Loads that said something, and were not believed.
    SetAside,
    /// It ended before its end.
    Ended,
    /// The recording was cut off, so that more may have been measured.
    CutOff,
    /// Something was asked for and not measured.
    Unmeasured,
    /// The server was started anew under load.
    Restarted,
    /// Bytes that belong to no answer.
    Surplus,
    /// No trial of its own held the figure.
    Unconfirmed,
    /// Whole trials spoke against the figure.
    Contradicted,
    /// Like trials differed.
    Spread,
    /// A figure that is known only roughly.
    Rough,
    /// The figure lies beyond what was tried.
    Beyond,
    /// There is no figure, as nothing succeeded or was answered.
    Nothing,
    /// The SLO: the server cannot meet it, or too little was measured to prove that it does.
    Promise,
    /// One figure does not describe the server: it stalls, alternates, rejects or drifts.
    Server,
    /// Accounts that must be equal are not.
    Accounts,
    /// What is compared is not alike.
    Unlike,
}

impl DoubtKind {
    /// All of them.
    pub const ALL: [DoubtKind; 21] = [
        DoubtKind::Noted,
        DoubtKind::Generator,
        DoubtKind::Unsent,
        DoubtKind::Others,
        DoubtKind::Void,
        DoubtKind::SetAside,
        DoubtKind::Ended,
        DoubtKind::CutOff,
        DoubtKind::Unmeasured,
        DoubtKind::Restarted,
        DoubtKind::Surplus,
        DoubtKind::Unconfirmed,
        DoubtKind::Contradicted,
        DoubtKind::Spread,
        DoubtKind::Rough,
        DoubtKind::Beyond,
        DoubtKind::Nothing,
        DoubtKind::Promise,
        DoubtKind::Server,
        DoubtKind::Accounts,
        DoubtKind::Unlike,
    ];

    /// Whether the doubt stands in a few words beside the figure, and not in a sentence above all
    /// figures.
    pub fn is_beside(self) -> bool {
        matches!(self, DoubtKind::Unconfirmed | DoubtKind::Contradicted | DoubtKind::Spread)
    }
}

/// One piece of evidence against a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The subject of the doubt.
    pub kind: DoubtKind,
    /// A sentence, or a few words where the kind stands beside a figure.
    pub text: Sentence,
}

/// All evidence against the figures of a finding, in reading order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Doubts(Vec<Doubt>);

impl Doubts {
    /// The warnings from before the first load.
    pub fn noted(sentences: &[String]) -> Doubts {
        sentences.iter().map(|text| Doubt { kind: DoubtKind::Noted, text: text.as_str().into() }).collect()
    }

    /// Adds one at the end.
    pub fn add(&mut self, kind: DoubtKind, text: impl Into<Sentence>) {
        self.0.push(Doubt { kind, text: text.into() });
    }

    /// Adds one to the sentence of its kind, so that one cause is one warning; at the end, where
    /// there is none of its kind.
    pub fn join(&mut self, doubt: Doubt) {
        match self.0.iter_mut().find(|known| known.kind == doubt.kind) {
            Some(known) => known.text = std::mem::take(&mut known.text).words("; ").then(&doubt.text),
            None => self.0.push(doubt),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Doubt> {
        self.0.iter()
    }

    /// The texts of the doubts whose kind satisfies `of`.
    pub fn texts(&self, of: impl Fn(DoubtKind) -> bool) -> impl Iterator<Item = &Sentence> {
        self.0.iter().filter(move |doubt| of(doubt.kind)).map(|doubt| &doubt.text)
    }

    /// The sentences that stand above all figures.
    pub fn above(&self) -> impl Iterator<Item = &Sentence> {
        self.texts(|kind| !kind.is_beside())
    }

    /// The words that stand in one line with the figure.
    pub fn beside(&self) -> impl Iterator<Item = &Sentence> {
        self.texts(DoubtKind::is_beside)
    }

    /// Whether there is one of this kind.
    pub fn has(&self, kind: DoubtKind) -> bool {
        self.0.iter().any(|doubt| doubt.kind == kind)
    }

    /// Whether nothing is doubted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Figures together with the evidence against them: neither is available without the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment<T> {
    doubts: Doubts,
    figures: T,
}

impl<T> Assessment<T> {
    /// These figures, with the evidence against them.
    pub fn new(doubts: Doubts, figures: T) -> Assessment<T> {
        Assessment { doubts, figures }
    }

    /// Both.
    pub fn open(&self) -> (&Doubts, &T) {
        (&self.doubts, &self.figures)
    }

    /// Other figures with the same evidence against them.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Assessment<U> {
        Assessment { doubts: self.doubts, figures: of(self.figures) }
    }
}

impl FromIterator<Doubt> for Doubts {
    fn from_iter<I: IntoIterator<Item = Doubt>>(doubts: I) -> Doubts {
        Doubts(doubts.into_iter().collect())
    }
}

impl Extend<Doubt> for Doubts {
    fn extend<I: IntoIterator<Item = Doubt>>(&mut self, doubts: I) {
        self.0.extend(doubts);
    }
}

impl IntoIterator for Doubts {
    type Item = Doubt;
    type IntoIter = std::vec::IntoIter<Doubt>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_order_is_kept_and_their_kind_says_where_they_stand() {
        let mut doubts = Doubts::noted(&["slow".into()]);
        for kind in DoubtKind::ALL {
            doubts.add(kind, format!("{kind:?}"));
        }
        let (above, beside): (Vec<&Sentence>, Vec<&Sentence>) = (doubts.above().collect(), doubts.beside().collect());
        let said = |words: &[&str]| words.iter().map(|words| Sentence::from(*words)).collect::<Vec<_>>();
        assert_eq!(above[..4], said(&["slow", "Noted", "Generator", "Unsent"]).iter().collect::<Vec<_>>());
        assert_eq!(beside, said(&["Unconfirmed", "Contradicted", "Spread"]).iter().collect::<Vec<_>>());
        assert_eq!(above.len() + beside.len(), DoubtKind::ALL.len() + 1);
        assert!(DoubtKind::ALL.iter().all(|kind| doubts.has(*kind)), "no kind is missing from the list");
        assert!(Doubts::default().is_empty() && !Doubts::default().has(DoubtKind::Noted));
        let mut joined = Doubts::noted(&["slow".into()]);
        for (kind, text) in [(DoubtKind::Others, "stolen"), (DoubtKind::Others, "again")] {
            joined.join(Doubt { kind, text: text.into() });
        }
        let texts: Vec<Sentence> = joined.texts(|kind| kind == DoubtKind::Others).cloned().collect();
        assert_eq!(texts, said(&["stolen; again"]));
        let again: Doubts = doubts.clone().into_iter().collect();
        assert_eq!(again, doubts);
    }
}
