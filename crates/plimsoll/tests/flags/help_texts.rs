//! Tests the help texts of all commands: their groups, order, examples and length.

use super::*;

fn help_text(line: &str) -> String {
    let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
    let shown = parser_with_help(&words).try_get_matches_from(&words);
    shown.expect_err("help comes as an error").to_string()
}

#[test]
fn each_command_is_in_one_group() {
    let commands = Cli::command();
    let mut known: Vec<&str> = commands.get_subcommands().map(Command::get_name).collect();
    let mut grouped: Vec<&str> = COMMAND_GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    known.sort_unstable();
    grouped.sort_unstable();
    assert_eq!(grouped, known);
    assert!(MAIN_COMMANDS.iter().all(|name| known.contains(name)));
}

#[test]
fn the_list_of_commands_fits_on_a_screen() {
    for (line, lines_max) in [("plimsoll -h", 40), ("plimsoll --help", 80)] {
        let help = help_text(line);
        assert!(help.lines().count() <= lines_max, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= COMMAND_LIST_WIDTH_CHARS), "{help}");
    }
    let commands = Cli::command();
    let help = help_text("plimsoll --help");
    for command in commands.get_subcommands() {
        let about = command.get_about().expect("each command has a sentence").to_string();
        assert!(help.contains(&about), "{}: {help}", command.get_name());
    }
    let short = help_text("plimsoll -h");
    for name in commands.get_subcommands().map(Command::get_name) {
        assert!(short.contains(name), "{name}: {short}");
    }
    assert_eq!(crate::version::NO_ARGUMENTS_TEXT.lines().count(), 5);
    assert!(crate::version::NO_ARGUMENTS_TEXT.lines().all(|line| line.len() <= 100));
}

#[test]
fn main_flags_come_first_in_help() {
    let help = help_text("plimsoll explain --help");
    let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
    let order = [
        "Main flags:",
        "  [URL] ",
        "--slo <",
        "Request:",
        "--timeout <",
        "Output:",
        "Safety:",
        "--allow-public",
        "Probes:",
        "Connections:",
        "gRPC:",
        "--proto <",
        "Generator:",
        "--seed <",
        "Examples:",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{help}");
    let help = help_text("plimsoll prove -h");
    assert!(help.contains("The second target") && !help.contains("Connections:"), "{help}");
}

#[test]
fn every_help_heading_is_in_the_order() {
    for command in Cli::command().get_subcommands() {
        for heading in command.get_arguments().filter_map(Arg::get_help_heading) {
            let known = FLAG_HEADINGS.contains(&heading) || EXPERT_HEADINGS.contains(&heading);
            assert!(known || heading == "Values that the run file withholds", "{}: {heading}", command.get_name());
        }
    }
}

#[test]
fn target_urls_keep_their_order() {
    let words = ["plimsoll", "prove", "http://a/", "http://b/"];
    let matches = commands_in_groups(Cli::command(), true).try_get_matches_from(words).expect("a command line");
    let (_, prove) = matches.subcommand().expect("a command");
    assert_eq!(prove.get_one::<String>("url").map(String::as_str), Some("http://a/"));
}
