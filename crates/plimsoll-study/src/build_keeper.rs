//! The keeper: a process between plimsoll and a program that it starts, so that nothing of that
//! program outlives plimsoll, even where plimsoll is killed and can do nothing more itself.
//!
//! It holds the reading end of a pipe whose other end only plimsoll has; when that closes, plimsoll
//! is gone, and the keeper ends all that is below it. It adopts orphans, so what the program starts
//! stays below it, whatever sessions and groups it makes. It ends as the program ends, so who waits
//! for it learns what there is to learn.
//!
//! It is this very program, started with [`WORD`] before anything is parsed. Not here: output,
//! patience with a build (`subject`).

use crate::self_process;
use plimsoll_sys::group::{self, Offspring};
use plimsoll_sys::system_text;
use plimsoll_sys::{process, signal};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first argument of a keeper, in place of a command.
const WORD: &str = "keep-processes";
/// How long what is left may take to end by itself, before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether plimsoll is gone.
static ALONE: AtomicBool = AtomicBool::new(false);

/// What is to become of the processes that a program leaves when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanPolicy {
    /// They end with it: it was a build, and there is nothing to measure any more.
    End,
    /// They stay: it was there to start them.
    Stay,
}

impl OrphanPolicy {
    fn word(self) -> &'static str {
        match self {
            OrphanPolicy::End => "end",
            OrphanPolicy::Stay => "stay",
        }
    }
}

/// The command that starts `program` under a keeper, in a process group of its own; its standard
/// input is the pipe, which must stay open for as long as the program is wanted.
pub fn command(program: impl AsRef<OsStr>, left: OrphanPolicy) -> Command {
    let mut command = self_process::command("build-keeper", WORD);
    command.arg(left.word()).arg(program);
    command
}

/// Whether these arguments ask for a keeper: what is left, and the program with its arguments.
fn parse_arguments(mut arguments: impl Iterator<Item = OsString>) -> Option<(OrphanPolicy, OsString, Vec<OsString>)> {
    if arguments.nth(1)? != WORD {
        return None;
    }
    let word = arguments.next()?;
    let left = [OrphanPolicy::End, OrphanPolicy::Stay].into_iter().find(|left| word == left.word())?;
    Some((left, arguments.next()?, arguments.collect()))
}

/// Where a keeper was asked for, it is one, and this does not return.
pub fn keep_if_asked() {
    let Some((left, program, arguments)) = parse_arguments(std::env::args_os()) else { return };
    process::call_itself(c"build-keeper");
    signal::withstand();
    // Where the system refuses, only what stays in the program's own tree is found.
    let _ = group::adopt_orphans();
    let mut command = Command::new(&program);
    command.args(arguments).process_group(0).stdin(Stdio::null());
    group::end_with_this_thread(&mut command);
    let child = match command.spawn() {
        Ok(child) => child.id(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{}: {}", program.to_string_lossy(), system_text(&error));
            std::process::exit(127);
        }
    };
    std::thread::spawn(|| {
        // Nobody writes: it ends when nobody holds the other end any more.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ALONE.store(true, Ordering::SeqCst);
        let _ = Offspring::all_below_this().end(|| PATIENCE);
        std::process::exit(1);
    });
    while let Some((pid, status)) = group::next_ended() {
        if pid == child {
            if left == OrphanPolicy::End || ALONE.load(Ordering::SeqCst) {
                let _ = Offspring::all_below_this().end(|| PATIENCE);
            }
            group::end_like(status);
        }
    }
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keeper_is_asked_for_by_its_word_alone() {
        for (words, expect) in [
            (&["plimsoll", WORD, "end", "sh", "-c", "x y"][..], Some((OrphanPolicy::End, "sh", 2))),
            (&["plimsoll", WORD, "stay", "sh"], Some((OrphanPolicy::Stay, "sh", 0))),
            (&["plimsoll", WORD, "maybe", "sh"], None),
            (&["plimsoll", WORD, "end"], None),
            (&["plimsoll", "run", WORD], None),
            (&["plimsoll"], None),
        ] {
            let got = parse_arguments(words.iter().map(OsString::from));
            let got = got.as_ref().map(|(left, program, rest)| (*left, program.to_str().expect("text"), rest.len()));
            assert_eq!(got, expect, "{words:?}");
        }
    }
}
