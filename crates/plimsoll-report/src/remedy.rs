//! The names of remedies on the command line. Analyses name a remedy by its kind; this file
//! translates the kind into a flag.

use plimsoll_analysis::{Remedy, Sentence};

/// Returns the flag of a remedy, with its value if the value is the remedy.
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

/// Renders a sentence as text for a user of the command line.
pub fn spelled(sentence: &Sentence) -> String {
    sentence.spelled(flag)
}

/// Returns the flags of all remedies, for the test that each flag exists.
pub fn flags() -> impl Iterator<Item = &'static str> {
    Remedy::ALL.into_iter().map(flag)
}
