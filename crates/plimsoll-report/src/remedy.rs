//! What a remedy is called on the command line, and with it the text of a sentence. Whoever found
//! something says what could be asked otherwise by what it is; only here it gets the name of a
//! flag.

use plimsoll_analysis::{Remedy, Sentence};

/// The flag that asks for it, with its value where that is the remedy.
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

/// A sentence as text for somebody at the command line.
pub fn spelled(sentence: &Sentence) -> String {
    sentence.spelled(flag)
}

/// The flags of all remedies, for the test that each is one of the command line.
pub fn flags() -> impl Iterator<Item = &'static str> {
    Remedy::ALL.into_iter().map(flag)
}
