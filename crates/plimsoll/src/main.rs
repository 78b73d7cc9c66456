//! The program plimsoll: handles arguments, files, terminals and exit codes. Other crates generate
//! the load, analyse the measurements and lay out the reports.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod curl;
mod event_stream;
#[cfg(test)]
#[path = "../tests/flags/examples.rs"]
mod examples;
mod live;
mod pictures;
mod plan_from_args;
mod results;
mod run_command_adapter;
mod secrets;
mod study_screen;
mod usage_error;
mod version;

use args::{Cli, Command, help, parser_for_command};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use commands::experiment;
use plimsoll_compat::{ab, hey, vegeta, wrk};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::shell;
use plimsoll_report::text::wrap_text;
use plimsoll_script::Dialect;
use plimsoll_study::message::{SecretReplacements, terminal_message};
use plimsoll_study::{build_keeper, output, part, pauser};
use run_command_adapter::RunCommandAdapter;
use secrets::command_line_secrets;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    build_keeper::run_keeper_if_requested();
    pauser::run_pauser_if_requested();
    plimsoll_sys::process::disable_fault_around();
    part::run_part_if_requested();
    plimsoll_sys::process::raise_open_files_limit();
    plimsoll_sys::signal::survive_file_size_limit();
    plimsoll_sys::signal::end_at_once_on_stop_signals();
    if let Some(result) = run_other_tool(std::env::args_os().collect()) {
        return ExitCode::from(match exit_code(result) {
            exit::SUCCESS if plimsoll_sys::signal::is_stopped_by_sigterm() => exit::TERMINATED,
            code => code,
        });
    }
    if std::env::args_os().len() < 2 {
        let _ = write!(std::io::stderr(), "{}", version::NO_ARGUMENTS_TEXT);
        return ExitCode::from(exit::USAGE);
    }
    let result = match parse_with_secrets(std::env::args_os()) {
        Err(error) => return ExitCode::from(print_help_or_error(&error)),
        Ok((cli, hidden)) => {
            hidden.store_for_process();
            plimsoll_sys::process::drop_unmodified_file_pages();
            carry_out(&cli)
        }
    };
    ExitCode::from(exit_code(result))
}

/// Returns the exit code of a finished command, and prints its error and remaining warnings.
fn exit_code(result: Result<u8, Failure>) -> u8 {
    let code =
        result.unwrap_or_else(|failure| match (print_failure(&failure), plimsoll_sys::signal::is_stop_requested()) {
            (_, true) => exit::INTERRUPTED,
            (code, false) => code,
        });
    let crowded_out = plimsoll_engine::content_budget_miss_count();
    if crowded_out > 0 {
        output::print_to_stderr(&format!(
            "warning: the contents of {crowded_out} long responses were not checked and count as failed: the responses \
             in flight reached plimsoll's memory limit (128 MiB). Use fewer connections"
        ));
    }
    match (print_unwritten_outputs(), code) {
        (true, _) => exit::USAGE,
        // After a signal, a command that serves until a signal (such as `plimsoll baseline`)
        // returns success, and `plimsoll ab` returns 1. After SIGHUP (the terminal closed), the
        // exit codes of success, negative result and interrupt all become `TERMINAL_CLOSED`.
        (false, exit::INTERRUPTED | exit::SUCCESS | exit::NEGATIVE_RESULT)
            if plimsoll_sys::signal::is_terminal_closed() =>
        {
            exit::TERMINAL_CLOSED
        }
        (false, code) => code,
    }
}

/// Runs another tool's command line: `plimsoll wrk ...`, or this executable under the tool's name
/// (such as a link with the name `wrk`). Returns `None` for any other command line.
fn run_other_tool(words: Vec<OsString>) -> Option<Result<u8, Failure>> {
    let called = Path::new(words.first()?).file_name()?.to_str().unwrap_or_default();
    let (name, words) = match words.get(1).and_then(|word| word.to_str()) {
        _ if is_other_tool(called) => (called, &words[1..]),
        Some(name) if is_other_tool(name) => (name, &words[2..]),
        _ => return None,
    };
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // `plimsoll vegeta` catches interrupts itself, but only in commands that continue after an
    // interrupt.
    if name != "vegeta" {
        plimsoll_sys::signal::catch_stop_signals();
    }
    Some(match name {
        "wrk" => wrk::run_wrk_command(&words, Dialect::Wrk, &RunCommandAdapter),
        "wrk2" => wrk::run_wrk_command(&words, Dialect::Wrk2, &RunCommandAdapter),
        "ab" => ab::run_ab_command(&words, &RunCommandAdapter),
        "hey" => hey::run_hey_command(&words, &RunCommandAdapter),
        _ => vegeta::run_vegeta_command(&words, &RunCommandAdapter),
    })
}

/// Whether this is the name of another tool whose command line plimsoll supports.
fn is_other_tool(name: &str) -> bool {
    ["wrk", "wrk2", "vegeta", "ab", "hey"].contains(&name)
}

fn carry_out(cli: &Cli) -> Result<u8, Failure> {
    if cli.verbose {
        return Err(Failure::usage("--verbose before a command needs --version: write --verbose after the command"));
    }
    match &cli.command {
        Command::Agent(args) => commands::agent::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Explain(args) if commands::explain::run_file_path(args).is_some() => {
            commands::explain::explain_run_file(args)
        }
        Command::Baseline(args) => {
            plimsoll_sys::signal::catch_stop_signals();
            commands::baseline::run(args)
        }
        Command::Doctor(args) => {
            plimsoll_sys::signal::catch_stop_signals();
            commands::doctor::run(args)
        }
        Command::Fleet(args) => {
            plimsoll_sys::signal::catch_stop_signals();
            commands::fleet::run(args)
        }
        Command::Grpc(args) => commands::grpc::run(args),
        Command::Show(args) => commands::show::run(args),
        Command::Profile(args) => commands::profile::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::History(args) => commands::history::run(args),
        Command::Gate(args) => commands::gate::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Traffic(args) => commands::traffic::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Model(args) => commands::model::run(args),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
        Command::Clean(args) => commands::clean::run(args),
        Command::Rerun(args) => commands::rerun::run(args),
        Command::Wrk(args) => wrk::run_wrk_command(&args.words, Dialect::Wrk, &RunCommandAdapter),
        Command::Wrk2(args) => wrk::run_wrk_command(&args.words, Dialect::Wrk2, &RunCommandAdapter),
        Command::Vegeta(args) => vegeta::run_vegeta_command(&args.words, &RunCommandAdapter),
        Command::Ab(args) => ab::run_ab_command(&args.words, &RunCommandAdapter),
        Command::Hey(args) => hey::run_hey_command(&args.words, &RunCommandAdapter),
        replay @ Command::Replay(_) => {
            // Logs are read first, which may take long. While logs are read, ^C simply ends the
            // program.
            let asked = experiment::spec_from_command(replay)?;
            plimsoll_sys::signal::catch_stop_signals();
            asked.map_or(Ok(exit::SUCCESS), |(asked, settings)| experiment::carry_out(asked, &settings))
        }
        measuring @ (Command::Find(_)
        | Command::Prove(_)
        | Command::Run(_)
        | Command::Sweep(_)
        | Command::Demo(_)
        | Command::Explain(_)
        | Command::Overload(_)) => {
            // After ^C, a measuring command ends the measurement and reports its results. A command
            // that does not measure simply ends.
            plimsoll_sys::signal::catch_stop_signals();
            match experiment::spec_from_command(measuring)? {
                Some((asked, settings)) => experiment::carry_out(asked, &settings),
                None => Ok(exit::SUCCESS),
            }
        }
    }
}

/// Parses the arguments. Also returns the secrets in the arguments, which messages must not
/// contain.
fn parse_with_secrets(arguments: impl IntoIterator<Item = OsString>) -> Result<(Cli, SecretReplacements), clap::Error> {
    let matches = parse(with_default_command(arguments))?;
    let cli = Cli::from_arg_matches(&matches)?;
    let hidden = matches.subcommand().and_then(|(name, matches)| {
        let mut parser = parser_for_command::<Cli>(name);
        parser.build();
        Some(command_line_secrets(parser.find_subcommand(name)?, matches))
    });
    Ok((cli, hidden.unwrap_or_default()))
}

/// The flags whose value may be left out. Each row has a flag, and the same flag with the value
/// that applies if the user gives no value.
const OPTIONAL_VALUE_FLAGS: [(&str, &str); 2] = [("--pprof", "--pprof=auto"), ("--metrics", "--metrics=auto")];

/// Parses the arguments. In `run --pprof URL`, the only URL is the target and not the value of
/// `--pprof`.
fn parse(arguments: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let understood = |arguments: &[OsString]| help::parser_with_help(arguments).try_get_matches_from(arguments);
    let first = match understood(&arguments) {
        Err(error) if error.kind() == clap::error::ErrorKind::MissingRequiredArgument => error,
        done => return done,
    };
    for (flag, alone) in OPTIONAL_VALUE_FLAGS {
        let mut again = arguments.clone();
        if let Some(word) = again.iter_mut().find(|word| *word == flag) {
            *word = alone.into();
            if let Ok(matches) = understood(&again) {
                return Ok(matches);
            }
        }
    }
    Err(first)
}

/// Inserts the command `find` if the first argument is no command: `plimsoll URL` means `plimsoll
/// find URL`.
fn with_default_command(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let commands = parser_for_command::<Cli>("");
    let known = |word: &str| {
        word == "help"
            || ["-h", "--help", "-V", "--version", "--verbose"].contains(&word)
            || commands.get_subcommands().any(|command| command.get_name() == word)
    };
    if arguments.get(1).is_some_and(|word| word == "curl") {
        return curl_to_find_arguments(&arguments);
    }
    if let Some(first) = arguments.get(1).and_then(|word| word.to_str())
        && !known(first)
        && (first.starts_with('-') || looks_like_target(first))
    {
        arguments.insert(1, "find".into());
    }
    arguments
}

/// Converts `plimsoll curl ...` to `plimsoll find --curl 'curl ...'`.
fn curl_to_find_arguments(arguments: &[OsString]) -> Vec<OsString> {
    let quoted = |word: &OsString| shell::quote(&word.to_string_lossy());
    let line: Vec<String> = arguments[1..].iter().map(quoted).collect();
    [&arguments[..1], &["find".into(), format!("--curl={}", line.join(" ")).into()]].concat()
}

/// Whether a word looks like a target: it has a scheme, port or path. A bare word is more likely a
/// mistyped command.
fn looks_like_target(word: &str) -> bool {
    word.contains([':', '/', '.']) || word == "localhost"
}

/// Prints help on standard output, or a usage error as one sentence. Returns the exit code.
fn print_help_or_error(error: &clap::Error) -> u8 {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayVersion if std::env::args_os().any(|word| word == "--verbose") => {
            output::print(&version::verbose_version());
            if print_unwritten_outputs() { exit::USAGE } else { exit::SUCCESS }
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            match std::io::stdout().is_terminal() {
                true => output::print_unescaped(&text.ansi().to_string()),
                false => output::print(&text.to_string()),
            }
            if print_unwritten_outputs() { exit::USAGE } else { exit::SUCCESS }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            exit::USAGE
        }
        _ => print_failure(&Failure::usage(usage_error::error_sentence(&Cli::command(), error))),
    }
}

/// Prints an error for each output that could not be written. Returns whether any output could not
/// be written.
fn print_unwritten_outputs() -> bool {
    let failures = output::write_failures();
    failures.iter().for_each(|sentence| _ = print_failure(&Failure::cannot_start(sentence.as_str())));
    !failures.is_empty()
}

fn print_failure(failure: &Failure) -> u8 {
    let terminal = std::io::stderr().is_terminal();
    let columns = terminal.then(plimsoll_sys::process::terminal_size).flatten().map(|size| size.0);
    let _ = writeln!(
        std::io::stderr(),
        "{}",
        wrap_text(&format!("plimsoll: {}", terminal_message(&failure.to_string())), columns, 2)
    );
    exit::USAGE
}

#[cfg(test)]
#[path = "../tests/flags/optional_values.rs"]
mod tests;
