//! Translates remedies (what the user can do about a problem) into command-line flags. The analysis
//! names a remedy only by its kind, because the analysis does not know the flags.

use plimsoll_analysis::{Remedy, Sentence};

/// Returns the flag that applies a remedy. The text is only the name of the flag, unless just one
/// value helps (`--close reset`) or the value has a placeholder (`--metrics URL`).
fn remedy_flag(remedy: Remedy) -> &'static str {
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

/// Renders a sentence of the analysis as text. Each remedy in the sentence becomes a command-line
/// flag.
pub fn sentence_text(sentence: &Sentence) -> String {
    sentence.render_text(remedy_flag)
}

/// Returns the flags of all remedies, so that a test can check that each flag exists.
pub fn all_remedy_flags() -> impl Iterator<Item = &'static str> {
    Remedy::ALL.into_iter().map(remedy_flag)
}
