//! The short help of `-h`, which shows each command's most important flags on one screen. `--help`
//! shows all flags.
//!
//! Not here: the flags, their texts and their order, which both helps share (`help`).

use clap::Command;

/// The flags that `-h` shows of each command, by their long names. For a command that is not
/// listed, `-h` shows all flags.
const SHORT_HELP_FLAGS: [(&str, &[&str]); 11] = [
    ("run", &["file", "method", "header", "body", "concurrency", "rate", "requests", "duration", "fail-if", "json"]),
    ("find", &["file", "header", "body", "soak", "need", "budget", "slo", "fail-if", "json"]),
    ("explain", &["file", "header", "body", "budget", "slo", "may-signal", "no-intervene", "pid", "metrics"]),
    ("prove", &["a", "b", "build", "start", "measure", "margin", "budget", "fail-if", "json"]),
    ("sweep", &["file", "header", "body", "concurrency", "for", "budget", "full", "fail-if", "dir", "json"]),
    ("overload", &["file", "header", "body", "line", "slo", "budget", "retries", "against", "verbose", "json"]),
    ("replay", &["target", "speed", "scale", "only", "skip", "allow-unsafe", "duration", "header", "fail-if", "json"]),
    (
        "profile",
        &["seconds", "diff", "requests-a", "requests-b", "sample-index", "focus", "by", "top", "output", "json"],
    ),
    ("model", &["output", "target", "verify", "only", "skip", "seed", "log-format", "field", "session", "json"]),
    (
        "grpc",
        &[
            "header",
            "proto",
            "proto-path",
            "descriptor-set",
            "connect-to",
            "http",
            "insecure",
            "cacert",
            "allow-public",
        ],
    ),
    ("rerun", &["yes", "print", "output", "url", "target", "file", "log", "header", "body", "pprof"]),
];
/// The number of example lines that `-h` shows, including their heading.
const EXAMPLE_LINES: usize = 4;

/// Returns the long names of a command's most important flags; `None` if all flags are shown.
pub fn main_flags(command: &str) -> Option<&'static [&'static str]> {
    SHORT_HELP_FLAGS.iter().find(|(known, _)| *known == command).map(|(_, flags)| *flags)
}

/// Whether the arguments contain `-h`.
pub fn is_short_help_requested(arguments: &[std::ffi::OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "-h")
}

/// Hides the less important flags of each command in the help. Parsing does not change.
pub fn with_short_help(commands: Command) -> Command {
    commands.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let Some(flags) = main_flags(&name) else { return command };
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = help.lines().take(EXAMPLE_LINES).collect();
        command
            .mut_args(|flag| {
                let is_shown = match flag.get_long() {
                    Some(long) => flags.contains(&long),
                    // The positional argument `words` contains the arguments of the script of
                    // --lua, and the short help hides --lua.
                    None => flag.get_id() != "words",
                };
                flag.hide(!is_shown)
            })
            .after_help(format!("{examples}\n\nAll flags: plimsoll {name} --help", examples = examples.join("\n")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn short_help_fits_on_a_screen() {
        let mut commands = with_short_help(Cli::command());
        commands.build();
        for command in commands.get_subcommands_mut() {
            let lines = command.render_help().to_string().lines().count();
            assert!(lines <= 40, "{}: {lines} lines", command.get_name());
        }
    }

    #[test]
    fn every_important_flag_exists() {
        let commands = Cli::command();
        for (name, flags) in SHORT_HELP_FLAGS {
            let command = commands.find_subcommand(name).expect(name);
            for flag in flags {
                assert!(command.get_arguments().any(|known| known.get_long() == Some(flag)), "{name} --{flag}");
            }
        }
    }

    #[test]
    fn short_help_does_not_change_parsing() {
        let line = ["plimsoll", "run", "--no-keepalive", "http://h/"];
        assert!(with_short_help(Cli::command()).try_get_matches_from(line).is_ok());
        let words = |line: &[&str]| line.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
        assert!(is_short_help_requested(&words(&["plimsoll", "run", "-h"])));
        assert!(!is_short_help_requested(&words(&["plimsoll", "run", "--help"])));
        assert!(!is_short_help_requested(&words(&["plimsoll", "run", "--lua", "x", "http://h/", "--", "-h"])));
    }
}
