//! Tests shell completions, manual pages, `--version`, and the output without arguments.

use crate::test_support::{create_new_folder, plimsoll};
use std::process::Command;

#[test]
fn a_call_without_arguments_describes_plimsoll_in_five_lines() {
    let done = plimsoll(&[]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert_eq!(done.stderr.lines().count(), 5, "{}", done.stderr);
    assert_eq!(done.stderr.lines().filter(|line| line.starts_with("  plimsoll ")).count(), 3, "{}", done.stderr);
}

#[test]
fn the_long_version_names_commit_features_and_target() {
    let short = plimsoll(&["--version"]);
    assert_eq!(short.stdout, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
    for words in [["--version", "--verbose"], ["--verbose", "--version"], ["--verbose", "-V"]] {
        let done = plimsoll(&words);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{words:?}");
        let names: Vec<&str> = done.stdout.lines().map(|line| line.split([' ', ':']).next().unwrap_or("")).collect();
        assert_eq!(names, ["plimsoll", "commit", "features", "target"], "{}", done.stdout);
        assert!(done.stdout.starts_with(&short.stdout) && done.stdout.contains("-linux-"), "{}", done.stdout);
    }
    let done = plimsoll(&["--verbose", "clean", "--dry-run"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.starts_with("plimsoll: --verbose before a command needs --version"), "{}", done.stderr);
}

/// Checks that completions offer each command, and the accepted values of flags.
#[test]
fn completions_offer_commands_and_values() {
    for (shell, parts) in [
        ("bash", &["find", "--http", "1.1 2 auto", "goodput p50 p99 cpu", "complete -F _plimsoll"][..]),
        ("zsh", &["#compdef plimsoll", "(1.1 2 auto)", "_files", "_urls", "_cmdstring"]),
        ("fish", &["complete -c plimsoll", "-l http", "1.1\\t''"]),
    ] {
        let done = plimsoll(&["completions", shell]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{shell}");
        for part in parts {
            assert!(done.stdout.contains(part), "{shell} completions lack {part}");
        }
    }
    let done = plimsoll(&["completions", "tcsh"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("bash, zsh, fish"), "{}", done.stderr);
}

/// Checks that the installed shells load the completion scripts, and that bash completes with its
/// script.
#[test]
fn completions_load_in_their_shell() {
    let folder = create_new_folder("completions");
    for (shell, check) in [
        (
            "bash",
            "source \"$0\"; COMP_WORDS=(plimsoll run --http ''); COMP_CWORD=3; _plimsoll plimsoll '' --http; \
                  [ \"${COMPREPLY[*]}\" = '1.1 2 auto' ]",
        ),
        ("zsh", "autoload -U compinit; compinit -D -u; source \"$0\"; [ $+functions[_plimsoll] = 1 ]"),
        ("fish", "source $argv[1]; complete -C 'plimsoll run --http ' | string match -q '2*'"),
    ] {
        if Command::new(shell).arg("--version").output().is_err() {
            continue;
        }
        let file = folder.join(shell);
        std::fs::write(&file, plimsoll(&["completions", shell]).stdout).expect("written");
        let mut command = Command::new(shell);
        let done = command.args(["-c", check]).arg(&file).env("HOME", &folder).output().expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && !said.contains("rror"), "{shell}: {said}");
    }
}

#[test]
fn manual_pages_are_printed_or_written() {
    let printed = plimsoll(&["man"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    assert!(printed.stdout.contains(".TH plimsoll 1") && printed.stdout.contains("plimsoll\\-prove(1)"));
    let dir = create_new_folder("man").join("man1");
    let written = plimsoll(&["man", dir.to_str().expect("text")]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""));
    for (page, part) in [("plimsoll", "SUBCOMMANDS"), ("plimsoll-run", "\\-\\-http"), ("plimsoll-man", "DIR")] {
        let text = std::fs::read_to_string(dir.join(format!("{page}.1"))).expect(page);
        assert!(text.contains(part), "{page}: {text}");
    }
    // The manual page shows the `{n}` of --vary as text, not as a line break, and has no control
    // characters.
    let explain = std::fs::read_to_string(dir.join("plimsoll-explain.1")).expect("a page");
    assert!(explain.contains("{n}") && !explain.contains('\u{1b}'), "{explain}");
    let refused = plimsoll(&["man", "/proc/nowhere"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.starts_with("plimsoll: '/proc/nowhere"), "{}", refused.stderr);
}
