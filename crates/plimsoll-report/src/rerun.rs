//! Formats the messages of `plimsoll rerun`, which repeats a recorded command. A run file withholds
//! secret values, and the messages name the flags that supply the values. A message also states why
//! a command cannot be repeated.
//!
//! Not here: building the recorded command line (`repeat_command`), and filling in the withheld
//! values (`plimsoll_model::completion`).

use plimsoll_model::TextKind;
use plimsoll_model::completion::{MissingInput, RestoreError};
use plimsoll_model::shell;

/// Returns the flag with which the user supplies a value that the run file withholds.
fn flag_for_withheld_value(kind: TextKind) -> String {
    format!("--{}", kind.flag())
}

/// Formats the values that the run file withholds, as the flags that the user must add.
pub fn missing_input_flags_text(missing: &[MissingInput]) -> String {
    let text = |MissingInput { kind, record_text: recorded }: &MissingInput| match kind {
        TextKind::Header => format!("-H '{recorded}: ...'"),
        TextKind::Body => format!("-b TEXT or -b @FILE (the recorded body was {recorded})"),
        kind => format!("{} ... (it was {recorded})", flag_for_withheld_value(*kind)),
    };
    missing.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Formats the reason why the recorded `command` cannot be completed, and the remedy. `missing` are
/// the values that the run file withholds.
pub fn cannot_rerun_reason_text(why: &RestoreError, command: &str, missing: &[MissingInput]) -> String {
    match why {
        RestoreError::UnreadableTraffic => {
            "the run's traffic file or log cannot be read; give the original file".to_owned()
        }
        RestoreError::Missing => {
            format!(
                "the run file of plimsoll {command} withholds a value: give this value again with {flags}",
                flags = missing_input_flags_text(missing)
            )
        }
        RestoreError::Superfluous(kind) => format!(
            "{flag}: the run file already contains this value, or does not use this value: leave {flag} out, or start \
             a new run",
            flag = flag_for_withheld_value(*kind)
        ),
        RestoreError::Differs(MissingInput { kind, record_text: recorded }) => format!(
            "{flag}: the value differs from the recorded value ({recorded}): give the recorded value, or start a new \
             run",
            flag = flag_for_withheld_value(*kind)
        ),
        RestoreError::TargetEqualityChanged => {
            "--url: give one URL for each recorded target, in the recorded order: equal URLs for \
            equal targets, different URLs for different targets"
                .to_owned()
        }
    }
}

/// Joins words to a command line, quoted for a shell. Control characters become `?`, so that they
/// cannot control the terminal.
pub fn command_text(words: &[String]) -> String {
    let shown = |word: &String| {
        let word: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        shell::quote_if_needed(&word)
    };
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}
