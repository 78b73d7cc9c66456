//! The texts of a rerun: the flag that supplies a value withheld from a record, and the reason why
//! a record cannot be completed.
//!
//! Not here: the recorded command line (`spelling`), and completing a record
//! (`plimsoll_model::completion`).

use plimsoll_model::TextKind;
use plimsoll_model::completion::{Incomplete, MissingInput};
use plimsoll_model::shell;

/// Returns the flag that supplies a missing value.
fn flag_of(kind: TextKind) -> String {
    format!("--{}", kind.flag())
}

/// Formats the missing values as flags that a person types.
pub fn inputs_text(missing: &[MissingInput]) -> String {
    let text = |MissingInput { kind, record_text: was }: &MissingInput| match kind {
        TextKind::Header => format!("-H '{was}: ...'"),
        TextKind::Body => format!("-b TEXT or -b @FILE (the body was {was})"),
        kind => format!("{} ... (it was {was})", flag_of(*kind)),
    };
    missing.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Formats the reason why the record of a `command` cannot be completed, with the way out.
pub fn incomplete_text(why: &Incomplete, command: &str, missing: &[MissingInput]) -> String {
    match why {
        Incomplete::Unread => {
            "the file of traffic differs from the recorded file; give the file of that time".to_owned()
        }
        Incomplete::Missing => {
            format!("the record of plimsoll {command} withholds a value: give it again with {}", inputs_text(missing))
        }
        Incomplete::Superfluous(kind) => format!(
            "{}: the record already has this value, or does not use it: leave it out, or start a new run with it",
            flag_of(*kind)
        ),
        Incomplete::Differs(MissingInput { kind, record_text: was }) => format!(
            "{}: this differs from the record ({was}): give the recorded value, or start a new run",
            flag_of(*kind)
        ),
        Incomplete::Alike => "--url: the recorded targets differ where these are equal, or the reverse; give each \
                              target in the record's order"
            .to_owned(),
    }
}

/// Quotes words for a shell, without characters that control a terminal.
pub fn command_text(words: &[String]) -> String {
    let shown = |word: &String| {
        let word: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        shell::word(&word)
    };
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}
