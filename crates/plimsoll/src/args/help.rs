//! Orders the help: commands in groups, and the flags of a command from the most needed flags to
//! flags for experts.
//!
//! Not here: which flags matter most (`short_help`), and the help texts (in the declaration of each
//! flag).

use super::{Cli, parser_for_command, short_help};
use clap::builder::Styles;
use clap::{Arg, Command, CommandFactory};
use plimsoll_report::text::wrap_text;
use std::ffi::OsString;

/// Width of the list of commands in characters, so that terminals do not wrap its lines.
const COMMAND_LIST_WIDTH_CHARS: usize = 80;

/// The heading of a command's most important flags.
const MAIN_FLAGS_HEADING: &str = "Main flags";

/// The headings of flag groups in their order in the help. A heading that is in neither list comes
/// after `FLAG_HEADINGS` and before `EXPERT_HEADINGS`.
const FLAG_HEADINGS: [&str; 14] = [
    "Request",
    "Load",
    "Builds",
    "Search",
    "Comparison",
    "Selection",
    "Planning",
    "Model",
    "Difference",
    "Judgement",
    "Output",
    "Safety",
    "Probes",
    "Log",
];
/// The headings of flag groups for experts, which come last in the help.
const EXPERT_HEADINGS: [&str; 7] = ["Experiments", "Profiles", "Fleet", "Connections", "gRPC", "Script", "Generator"];

/// All commands, grouped by purpose.
const COMMAND_GROUPS: [(&str, &[&str]); 6] = [
    ("Measure a server", &["find", "explain", "prove", "run", "sweep", "overload", "replay", "demo"]),
    ("Read results", &["show", "report", "diff", "history", "gate", "serve", "rerun", "clean"]),
    ("Prepare traffic", &["traffic", "model", "import", "check", "grpc"]),
    ("Machines and profiles", &["doctor", "baseline", "profile", "fleet", "agent"]),
    ("Behave like another load tool", &["wrk", "wrk2", "vegeta", "ab", "hey"]),
    ("Install", &["completions", "man"]),
];
/// The commands that `plimsoll -h` describes. `plimsoll -h` lists the remaining commands only by
/// name.
const MAIN_COMMANDS: [&str; 15] = [
    "find", "explain", "prove", "run", "sweep", "overload", "replay", "demo", "show", "report", "diff", "traffic",
    "import", "doctor", "profile",
];

/// Returns the parser for these arguments. With `-h`, the parser has the short help; with `--help`
/// or the command `help`, it has the full help. Otherwise the parser declares only the flags of the
/// command that the arguments name.
pub fn parser_with_help(arguments: &[OsString]) -> Command {
    let is_long = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--help")
        || arguments.get(1).is_some_and(|word| word == "help");
    match (short_help::is_short_help_requested(arguments), is_long) {
        (true, _) => short_help::with_short_help(commands_in_groups(Cli::command(), false)),
        (false, true) => commands_in_groups(Cli::command(), true),
        (false, false) => {
            let words = arguments.iter().skip(1).filter_map(|word| word.to_str());
            parser_for_command::<Cli>(words.into_iter().find(|word| !word.starts_with('-')).unwrap_or_default())
        }
    }
}

/// Returns the commands with their flags in order and a grouped list of commands. With `is_full`,
/// the list describes all commands.
pub fn commands_in_groups(commands: Command, is_full: bool) -> Command {
    let help = root_help(&commands, is_full);
    commands.mut_subcommands(order_flags).override_help(help)
}

/// Returns a command with its most important flags first, then its flags in the order of the
/// headings.
fn order_flags(mut command: Command) -> Command {
    let main = short_help::main_flags(command.get_name()).unwrap_or_default();
    let mut flags: Vec<(usize, usize, String)> = command
        .get_arguments()
        .enumerate()
        .map(|(at, flag)| (help_position(flag, main), at, flag.get_id().to_string()))
        .collect();
    flags.sort();
    for (order, (rank, _, id)) in flags.into_iter().enumerate() {
        // clap moves a changed argument to the end, so the order in which the arguments are changed
        // is their order in the help.
        command = command.mut_arg(id, |flag| {
            let flag = flag.display_order(order);
            if rank <= main.len() && !main.is_empty() { flag.help_heading(MAIN_FLAGS_HEADING) } else { flag }
        });
    }
    command
}

/// Returns the sort key of a flag in the help; a smaller key comes first. Positional arguments
/// (targets) come first, then the flags in `main`, then the flags in the order of their headings.
fn help_position(flag: &Arg, main: &[&str]) -> usize {
    if flag.is_positional() && !flag.is_last_set() {
        return 0;
    }
    if let Some(at) = flag.get_long().and_then(|long| main.iter().position(|known| *known == long)) {
        return at + 1;
    }
    let Some(heading) = flag.get_help_heading() else { return main.len() + 1 };
    let usual = FLAG_HEADINGS.iter().position(|known| *known == heading);
    let expert = EXPERT_HEADINGS.iter().position(|known| *known == heading);
    let at = usual.or(expert.map(|at| FLAG_HEADINGS.len() + 1 + at)).unwrap_or(FLAG_HEADINGS.len());
    main.len() + 2 + at
}

/// Returns the help text of `plimsoll` without a command.
fn root_help(commands: &Command, is_full: bool) -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let about = commands.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\n{header}Usage:{header:#} {literal}plimsoll{literal:#} <COMMAND>\n");
    let line = |name: &str| {
        let command = commands.find_subcommand(name);
        let about = command.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default();
        format!("  {literal}{name:<11}{literal:#}  {about}\n")
    };
    if is_full {
        for (group, names) in COMMAND_GROUPS {
            text += &format!("\n{header}{group}:{header:#}\n");
            text.extend(names.iter().map(|name| line(name)));
        }
    } else {
        text += &format!("\n{header}Commands:{header:#}\n");
        text.extend(MAIN_COMMANDS.iter().map(|name| line(name)));
        let others = COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let others: Vec<&str> = others.filter(|name| !MAIN_COMMANDS.contains(name)).collect();
        text +=
            &format!("{}\n", wrap_text(&format!("  also: {}", others.join(", ")), Some(COMMAND_LIST_WIDTH_CHARS), 8));
    }
    text += &format!("\n{header}Options:{header:#}\n");
    for (flag, help) in [
        ("-h, --help", "Print help; --help describes all commands"),
        ("-V, --version", "Print the version; --verbose adds commit, features and platform"),
    ] {
        text += &format!("  {literal}{flag:<13}{literal:#}  {help}\n");
    }
    let after = commands.get_after_help().map(ToString::to_string).unwrap_or_default();
    text + "\n" + &after
}

#[cfg(test)]
#[path = "../../tests/flags/help_texts.rs"]
mod tests;
