//! What a row of the table of rules is, and the signs that rows have in common.
//!
//! Not here: the rows (`ourselves`, `errors`, `limits`, `work`, `waits`, `ways`).

use crate::explain::cause::Cause;
use crate::explain::contrast::Contrast;
use crate::explain::signals::Signal;
use crate::sentence::{Remedy, SentencePart};

/// What a sign does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignKind {
    /// Without it the cause is ruled out.
    Must,
    /// With it the cause is ruled out.
    MustNot,
    /// It speaks for the cause.
    Speaks,
}

/// Something that can be seen, and what it says of a cause.
#[derive(Debug, Clone, Copy)]
pub struct Sign {
    /// What it does.
    pub kind: SignKind,
    /// How strong it is as evidence: the logarithm of odds, roughly. 4 decides, if nothing speaks for another cause.
    pub weight: f64,
    /// What it is, as a sentence without a full stop that is true when the sign holds.
    pub yes: &'static str,
    /// The same when it does not.
    pub no: &'static str,
    /// The figures behind it, the most telling first.
    pub signals: &'static [Signal],
    /// Whether it holds; `None`: it was not seen.
    pub holds: fn(&Contrast) -> Option<bool>,
}

/// Rows are weighed in this order: one that is established in an earlier stage needs none of the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleStage {
    /// We ourselves, and others on the machine.
    Ourselves,
    /// Errors that name their cause.
    Errors,
    /// Limits that were set on purpose.
    Limits,
    /// What is full, and waiting while nothing is.
    Server,
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The cause.
    pub cause: Cause,
    /// When it is weighed.
    pub stage: RuleStage,
    /// What is looked at.
    pub signs: &'static [Sign],
    /// More special causes, of which this one is the outward look: where one of them is established as well, that is first.
    pub yields_to: &'static [Cause],
    /// What must be looked at to tell, where it was not.
    pub to_tell: &'static [SentencePart],
}

pub(super) const fn must(
    weight: f64,
    yes: &'static str,
    no: &'static str,
    signals: &'static [Signal],
    holds: fn(&Contrast) -> Option<bool>,
) -> Sign {
    Sign { kind: SignKind::Must, weight, yes, no, signals, holds }
}

pub(super) const fn must_not(
    yes: &'static str,
    no: &'static str,
    signals: &'static [Signal],
    holds: fn(&Contrast) -> Option<bool>,
) -> Sign {
    Sign { kind: SignKind::MustNot, weight: 0.0, yes, no, signals, holds }
}

pub(super) const fn speaks(
    weight: f64,
    yes: &'static str,
    signals: &'static [Signal],
    holds: fn(&Contrast) -> Option<bool>,
) -> Sign {
    Sign { kind: SignKind::Speaks, weight, yes, no: "", signals, holds }
}

pub(super) const fn words(words: &'static str) -> SentencePart {
    SentencePart::words(words)
}

/// Something is waited for while nothing that works is full: what all causes of waiting have in common.
pub(super) const NOTHING_FULL: Sign = must(
    0.0,
    "no thread is full and cores are idle, while requests wait",
    "a thread or the cores are full",
    &[Signal::Idle, Signal::FullestThread],
    Contrast::nothing_full,
);
/// More is asked, and no more is answered.
pub(super) const PLATEAU: Sign = must(
    0.0,
    "more load brings no more answers",
    "more load brought more answers",
    &[Signal::Goodput, Signal::Offered],
    Contrast::plateau,
);
/// What tells where a server was not seen from within.
pub(super) const PROBES: &[SentencePart] = &[
    words("the server's processes: run plimsoll on its machine, as its user or as root ("),
    SentencePart::Remedy(Remedy::Process),
    words(" where it is not found)"),
];
