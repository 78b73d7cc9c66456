//! Tests that every command line in a help text, the README or a page of docs/ parses unchanged.

use crate::args::Cli;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::path::{Path, PathBuf};

/// Splits a command line like a shell, up to a comment, pipe or redirection.
fn split_command_line(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '#' | '>' | '|' | '&') if !begun => return words,
            (None, ' ') => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// Returns the example lines of all help texts, without the explanation after three or more spaces.
fn help_examples() -> Vec<String> {
    let mut examples = Vec::new();
    for command in Cli::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let before = examples.len();
        let lines = help.lines().filter(|line| line.starts_with("  plimsoll "));
        // The help would wrap example lines of more than 100 columns, and users could not copy
        // them.
        assert!(lines.clone().all(|line| line.chars().count() <= 100), "{help}");
        examples.extend(lines.map(|line| line.trim().split("   ").next().unwrap_or_default().to_owned()));
        let exempt = ["help"].contains(&command.get_name());
        assert!(exempt || examples.len() > before, "{} shows no example", command.get_name());
    }
    examples
}

/// Returns the command lines in the code blocks of a Markdown text.
fn markdown_command_lines(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut examples = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let command = line.trim_start().trim_start_matches("cargo run --release -- ");
        let shown = fenced || line.starts_with("    ");
        if shown && line.trim_start().starts_with("cargo run --release -- ") {
            examples.push(format!("plimsoll {command}"));
        } else if shown && line.trim_start().starts_with("plimsoll ") {
            examples.push(line.trim_start().to_owned());
        }
    }
    examples
}

/// Returns all pages of documentation: README.md, lab/README.md, and every Markdown file below
/// docs/.
fn documentation_pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("lab/README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    assert!(pages.len() > 40, "{pages:?}");
    pages
}

/// Returns the targets of links in a Markdown text, without web links and links to its own
/// headings.
fn file_link_targets(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

#[test]
fn documentation_links_point_to_files() {
    for page in documentation_pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for target in file_link_targets(&text) {
            let file = page.parent().expect("a folder").join(target);
            assert!(file.exists(), "{}: no file {target}", page.display());
        }
    }
}

#[test]
fn every_documented_command_line_parses() {
    let mut examples = help_examples();
    for page in documentation_pages() {
        examples.extend(markdown_command_lines(&std::fs::read_to_string(&page).expect("a page")));
    }
    assert!(examples.len() > 50, "{}", examples.len());
    for example in examples {
        let words: Vec<std::ffi::OsString> = split_command_line(&example).into_iter().map(Into::into).collect();
        let understood = crate::parse(crate::with_default_command(words));
        if let Err(error) = understood
            && error.kind() != ErrorKind::DisplayVersion
        {
            panic!("{example}\n{error}");
        }
    }
}

#[test]
fn a_command_line_is_parsed_as_in_a_shell() {
    for (line, expect) in [
        ("plimsoll run -c 5 http://h/   # a comment", &["plimsoll", "run", "-c", "5", "http://h/"][..]),
        ("a 'b c' \"d'e\" > f", &["a", "b c", "d'e"]),
        ("a '' b#c", &["a", "", "b#c"]),
    ] {
        assert_eq!(split_command_line(line), expect, "{line}");
    }
}

/// Checks that every flag that a remedy in a message names exists.
#[test]
fn remedies_name_existing_flags() {
    let mut cli = Cli::command();
    cli.build();
    let flags: Vec<&str> =
        cli.get_subcommands().flat_map(|command| command.get_arguments().filter_map(clap::Arg::get_long)).collect();
    for named in plimsoll_report::remedy::all_remedy_flags() {
        for flag in named.split(' ').filter_map(|word| word.strip_prefix("--")) {
            assert!(flags.contains(&flag), "{named}: no command has --{flag}");
        }
    }
}
