//! Translates remedies into command-line flags. An analysis names a remedy only by its kind,
//! because the analysis does not know flags.

use plimsoll_analysis::{Remedy, Sentence};

/// Returns the flag that applies a remedy. The value is included if only this value helps.
fn flag(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Budget => "--budget",
        Remedy::LoadTime => "--for",
        Remedy::MaxRate => "--max-rate",
        Remedy::MaxConnections => "--max-connections",
        Remedy::Streams => "--streams",
        Remedy::SourceAddresses => "--source-ip",
        Remedy::CloseByReset => "--close reset",
        Remedy::DifferentAnswers => "--allow-different-answers",
        Remedy::Builds => "--a CMD --b CMD",
        Remedy::Process => "--pid",
        Remedy::ControlGroup => "--cgroup",
        Remedy::Metrics => "--metrics URL",
        Remedy::Slo => "--slo",
    }
}

/// Renders a sentence as text, in which each remedy becomes a command-line flag.
pub fn spelled(sentence: &Sentence) -> String {
    sentence.spelled(flag)
}

/// Returns the flags of all remedies, for a test that each flag exists.
pub fn flags() -> impl Iterator<Item = &'static str> {
    Remedy::ALL.into_iter().map(flag)
}
