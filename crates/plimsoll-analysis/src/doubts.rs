//! The evidence against the figures of a finding ([`Doubts`]). Every finding contains its doubts in
//! reading order. A caller gets the figures of a finding only together with the doubts
//! ([`Assessment`]). Each doubt has a sentence, and a kind that determines where an output shows
//! the sentence.
//!
//! Not here: when a figure is doubtful (each kind of finding decides this), and the presentation of
//! a doubt.

use crate::sentence::Sentence;

/// The kind of a doubt: the reason why a figure is doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DoubtKind {
    /// A warning that was already known before the first load.
    Noted,
    /// plimsoll was the limit, not the server.
    Generator,
    /// Requests were not sent, because the server kept every connection waiting.
    Unsent,
    /// Other processes of the machine disturbed the measurement.
    Interference,
    /// Some loads are void: the generator was the limit, or other processes disturbed these loads.
    Void,
    /// Some loads were measured, but the finding ignores them.
    IgnoredLoads,
    /// A load or the whole study ended before its planned end.
    Ended,
    /// The recording was cut off, so later measurements may be missing.
    CutOff,
    /// A measurement that the user requested is missing.
    Unmeasured,
    /// The server restarted during a load.
    Restarted,
    /// The server sent bytes that belong to no response.
    Surplus,
    /// No single complete trial confirmed the figure, for example a load line.
    Unconfirmed,
    /// Complete trials contradict the figure, for example a load line.
    Contradicted,
    /// Repeated trials of one load had different results.
    Spread,
    /// The figure is known only approximately.
    Rough,
    /// The figure is outside the range of the loads that were tried.
    OutsideTriedLoads,
    /// A figure is missing, because no request succeeded or got a response.
    NoSuccess,
    /// The SLO cannot be met.
    SloImpossible,
    /// The measurement was too short to prove a bound of the SLO.
    Unproven,
    /// The server stalls, rejects requests, or changes its speed, which a single figure cannot
    /// show.
    Server,
    /// Two counts of the same quantity differ, although they should be equal.
    CountMismatch,
    /// The compared builds or runs differ in more than the change that is tested.
    SidesDiffer,
}

impl DoubtKind {
    /// All kinds of doubts.
    pub const ALL: [DoubtKind; 22] = [
        DoubtKind::Noted,
        DoubtKind::Generator,
        DoubtKind::Unsent,
        DoubtKind::Interference,
        DoubtKind::Void,
        DoubtKind::IgnoredLoads,
        DoubtKind::Ended,
        DoubtKind::CutOff,
        DoubtKind::Unmeasured,
        DoubtKind::Restarted,
        DoubtKind::Surplus,
        DoubtKind::Unconfirmed,
        DoubtKind::Contradicted,
        DoubtKind::Spread,
        DoubtKind::Rough,
        DoubtKind::OutsideTriedLoads,
        DoubtKind::NoSuccess,
        DoubtKind::SloImpossible,
        DoubtKind::Unproven,
        DoubtKind::Server,
        DoubtKind::CountMismatch,
        DoubtKind::SidesDiffer,
    ];

    /// Returns whether a doubt of this kind is a short remark next to its figure. All other doubts
    /// are sentences above all figures.
    pub fn is_inline(self) -> bool {
        matches!(self, DoubtKind::Unconfirmed | DoubtKind::Contradicted | DoubtKind::Spread | DoubtKind::Unproven)
    }
}

/// One piece of evidence against a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The kind of the doubt, which determines where the doubt is shown.
    pub kind: DoubtKind,
    /// The text of the doubt: a sentence, or a few words for a kind that is shown next to its
    /// figure.
    pub text: Sentence,
}

/// All evidence against the figures of a finding, in reading order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Doubts(Vec<Doubt>);

impl Doubts {
    /// Creates doubts from warnings that were known before the first load.
    pub fn from_warnings(sentences: &[String]) -> Doubts {
        sentences.iter().map(|text| Doubt { kind: DoubtKind::Noted, text: text.as_str().into() }).collect()
    }

    /// Appends a doubt.
    pub fn add(&mut self, kind: DoubtKind, text: impl Into<Sentence>) {
        self.0.push(Doubt { kind, text: text.into() });
    }

    /// Adds a doubt. If the list has a doubt of the same kind, the new text is appended to that
    /// doubt, so that one cause gives one warning.
    pub fn add_or_append_text(&mut self, doubt: Doubt) {
        match self.0.iter_mut().find(|known| known.kind == doubt.kind) {
            Some(known) => known.text = std::mem::take(&mut known.text).words("; ").append_sentence(&doubt.text),
            None => self.0.push(doubt),
        }
    }

    /// Iterates over all doubts.
    pub fn iter(&self) -> impl Iterator<Item = &Doubt> {
        self.0.iter()
    }

    /// Returns the texts of the doubts whose kind satisfies `of`.
    pub fn texts(&self, of: impl Fn(DoubtKind) -> bool) -> impl Iterator<Item = &Sentence> {
        self.0.iter().filter(move |doubt| of(doubt.kind)).map(|doubt| &doubt.text)
    }

    /// Returns the texts that are shown above all figures.
    pub fn banner_texts(&self) -> impl Iterator<Item = &Sentence> {
        self.texts(|kind| !kind.is_inline())
    }

    /// Returns the texts that are shown next to the figure.
    pub fn inline_texts(&self) -> impl Iterator<Item = &Sentence> {
        self.texts(DoubtKind::is_inline)
    }

    /// Returns whether there is a doubt of this kind.
    pub fn has(&self, kind: DoubtKind) -> bool {
        self.0.iter().any(|doubt| doubt.kind == kind)
    }

    /// Returns whether there is no doubt.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Figures together with the evidence against them. A caller can read the figures only together
/// with this evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment<T> {
    doubts: Doubts,
    figures: T,
}

impl<T> Assessment<T> {
    /// Combines figures with the evidence against these figures.
    pub fn new(doubts: Doubts, figures: T) -> Assessment<T> {
        Assessment { doubts, figures }
    }

    /// Returns the evidence against the figures, and the figures.
    pub fn doubts_and_figures(&self) -> (&Doubts, &T) {
        (&self.doubts, &self.figures)
    }

    /// Replaces the figures by `of(figures)`, and keeps the evidence against them.
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
    fn doubts_keep_their_order_and_their_kind_sets_placement() {
        let mut doubts = Doubts::from_warnings(&["slow".into()]);
        for kind in DoubtKind::ALL {
            doubts.add(kind, format!("{kind:?}"));
        }
        let (above, beside): (Vec<&Sentence>, Vec<&Sentence>) =
            (doubts.banner_texts().collect(), doubts.inline_texts().collect());
        let said = |words: &[&str]| words.iter().map(|words| Sentence::from(*words)).collect::<Vec<_>>();
        assert_eq!(above[..4], said(&["slow", "Noted", "Generator", "Unsent"]).iter().collect::<Vec<_>>());
        assert_eq!(beside, said(&["Unconfirmed", "Contradicted", "Spread", "Unproven"]).iter().collect::<Vec<_>>());
        assert_eq!(above.len() + beside.len(), DoubtKind::ALL.len() + 1);
        assert!(DoubtKind::ALL.iter().all(|kind| doubts.has(*kind)), "no kind is missing from the list");
        assert!(Doubts::default().is_empty() && !Doubts::default().has(DoubtKind::Noted));
        let mut joined = Doubts::from_warnings(&["slow".into()]);
        for (kind, text) in [(DoubtKind::Interference, "stolen"), (DoubtKind::Interference, "again")] {
            joined.add_or_append_text(Doubt { kind, text: text.into() });
        }
        let texts: Vec<Sentence> = joined.texts(|kind| kind == DoubtKind::Interference).cloned().collect();
        assert_eq!(texts, said(&["stolen; again"]));
        let again: Doubts = doubts.clone().into_iter().collect();
        assert_eq!(again, doubts);
    }
}
