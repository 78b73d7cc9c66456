//! Tests the output on terminals of several widths: no line may be too wide, no word broken, and no
//! text cut.

use crate::test_support::{
    CommandOutcome, copy_recorded_run_file, create_new_folder, plimsoll, slow_server, start_baseline, wait_for_exit,
};
use plimsoll_bench::servers::start_slots_server;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

const WIDTHS: [usize; 3] = [60, 80, 200];

/// Runs the binary on a pseudo terminal with this number of columns.
fn run_at_width(folder: &Path, columns: usize, arguments: &str) -> CommandOutcome {
    let binary = env!("CARGO_BIN_EXE_plimsoll");
    let mut script = Command::new("script");
    let shell = format!("stty cols {columns} rows 50; exec '{binary}' {arguments}");
    script.args(["--quiet", "--return", "--command", &shell, "/dev/null"]);
    script.current_dir(folder).env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    let child =
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("script is there");
    wait_for_exit(child)
}

/// Returns the lines that stay on the screen, without colours and without removed progress lines.
fn lines_left_on_screen(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.replace("\r\n", "\n").lines() {
        let mut shown = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('\x1b') {
            shown.push_str(&rest[..at]);
            let sequence = &rest[at + 2..];
            let end = sequence.find(|c: char| c.is_ascii_alphabetic()).expect("a whole sequence");
            if let (up, Some("A")) = (sequence[..end].parse().unwrap_or(1), sequence.get(end..=end)) {
                lines.truncate(lines.len().saturating_sub(up));
                shown.clear();
            } else if sequence.get(end..=end) == Some("J") {
                shown.clear();
            }
            rest = &sequence[end + 1..];
        }
        shown.push_str(rest);
        lines.push(shown.rsplit('\r').next().unwrap_or_default().to_owned());
    }
    lines
}

fn distinct_words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Runs a command at several widths and checks its lines. With `whole`, the words must be the same
/// as on a very wide terminal.
fn assert_output_fits_widths(folder: &Path, arguments: &str, whole: bool) {
    let wide = lines_left_on_screen(&run_at_width(folder, 5000, arguments).stdout).join("\n");
    for columns in WIDTHS {
        let done = run_at_width(folder, columns, arguments);
        let shown = lines_left_on_screen(&done.stdout);
        assert!(!shown.is_empty(), "{arguments}: nothing was shown");
        for line in &shown {
            let width = line.chars().count();
            // A word that is wider than the terminal cannot be wrapped.
            let longest = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
            // A command stays on one line, so that it can be copied.
            let command = line.trim_start().starts_with("plimsoll ");
            assert!(
                width <= columns || longest > columns.saturating_sub(4) || command,
                "{arguments} at {columns}: {width}: {line}"
            );
            assert!(!line.contains('\u{2026}') && !line.contains("..."), "{arguments} at {columns} was cut: {line}");
        }
        if whole {
            let other: Vec<String> =
                distinct_words(&shown.join("\n")).difference(&distinct_words(&wide)).cloned().collect();
            assert!(
                other.is_empty(),
                "{arguments} at {columns}: {other:?} in\n{}\nbut not in\n{wide}",
                shown.join("\n")
            );
        }
    }
}

#[test]
fn every_screen_fits_its_terminal() {
    let folder = create_new_folder("screens");
    let (refusing, fast, slow) = (start_baseline(1), start_slots_server(8, 4.0).expect("starts"), slow_server());
    let (a, b) = (fast.url("/"), slow.url("/"));
    for (command, live) in [
        (format!("run {a} -d 300ms -c 64 --spin=off -o run.plimsoll"), &[][..]),
        (format!("run {}/status/404 -d 300ms -o bad.plimsoll", refusing.url), &[]),
        (format!("find {b} --budget 4s --spin=off -o find.plimsoll"), &["at  trial"]),
        (format!("sweep {a} -c 1,2,4 --for 200ms --spin=off --dir . --name sweep"), &["users"]),
        (format!("prove {a} {b} --budget 5s --spin=off --blocks 6 -o prove.plimsoll"), &[]),
        (format!("prove --ladder {a} {b} --budget 5s --spin=off --blocks 6 -o ladder.plimsoll"), &[]),
    ] {
        let done = run_at_width(&folder, 80, &command);
        assert!([0, 1, 3].contains(&done.code), "{command}: {}", done.stdout);
        let shown = lines_left_on_screen(&done.stdout);
        for line in &shown {
            assert!(line.chars().count() <= 80 || line.contains(".plimsoll"), "{command}: {line}");
            assert!(!line.contains('\u{2026}') && !line.contains("..."), "{command} was cut: {line}");
        }
        for heading in live {
            let at = shown.iter().filter(|line| line.trim_start().starts_with(heading)).count();
            assert_eq!(at, 1, "{command}: one row of headings\n{}", shown.join("\n"));
        }
        // The server comes first on the screen, before the generator's settings.
        assert!(!shown[0].contains("thread"), "{command}: {}", shown[0]);
    }
    for file in ["run", "bad", "find", "sweep", "prove", "ladder"] {
        assert_output_fits_widths(&folder, &format!("show {file}.plimsoll"), true);
        assert_output_fits_widths(&folder, &format!("show {file}.plimsoll --verbose"), true);
    }
    assert_output_fits_widths(&folder, "diff sweep.dat sweep.dat --dir .", true);
    assert_output_fits_widths(&folder, "rerun run.plimsoll --print", true);
    // Errors are one sentence at any width.
    assert_output_fits_widths(&folder, "run http://127.0.0.1:9/ -d 1s", true);
    assert_output_fits_widths(&folder, "run --fail-if 'speed>5' http://127.0.0.1:9/", true);
    assert_output_fits_widths(&folder, "show no-such-file.plimsoll", true);
}

/// Asserts that a text fits on a screen of 25 lines and 100 columns.
fn assert_fits(name: &str, shown: &str) {
    assert!(shown.lines().count() <= 25, "{name}: {} lines\n{shown}", shown.lines().count());
    for line in shown.lines() {
        // URLs and paths are never broken.
        let is_long = |word: &&str| word.contains("://") || word.contains('/');
        let other: usize = line.split(' ').filter(|word| !is_long(word)).map(|word| word.chars().count() + 1).sum();
        let has_long = line.split(' ').any(|word| is_long(&word));
        assert!(line.chars().count() <= 100 || has_long && other <= 100, "{name}: {line}");
    }
}

/// Checks that the output of commands that read files fits on a screen, however much the files
/// contain. A flag such as `--top` shows the rows that do not fit.
#[test]
fn screens_of_recorded_files_are_short() {
    let folder = create_new_folder("short");
    let at = |name: &str| folder.join(name).display().to_string();
    let line = |number: usize| {
        let (client, path, second) = (number % 30, number % 47, number * 60 / 2000);
        format!(
            "10.0.0.{client} - - [22/Nov/2026:10:00:{second:02} +0000] \"GET /p{path}/{number} HTTP/1.1\" 200 9 \"-\" \"-\"\n"
        )
    };
    let log: String = (0..2000).map(line).collect();
    std::fs::write(at("access.log"), log).expect("written");
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../plimsoll-analysis/tests/profiles/cpu.pb.gz");
    let levels: String = (0..40).map(|step| format!("{} 1000 5.0 100\n", step + 1)).collect();
    std::fs::write(at("a.dat"), &levels).expect("written");
    std::fs::write(at("b.dat"), &levels).expect("written");
    let finds = (copy_recorded_run_file("find-a"), copy_recorded_run_file("find-b"));
    for (name, words, more) in [
        ("traffic", vec!["traffic", &at("access.log")], Some("more rows: --top N")),
        ("model", vec!["model", &at("access.log"), "-o", &at("m.toml"), "--verify"], None),
        ("profile", vec!["profile", profile], Some("more rows: --top N")),
        ("profile --diff", vec!["profile", "--diff", profile, profile], None),
        ("diff of levels", vec!["diff", &at("a.dat"), &at("b.dat"), "--dir", &at("")], Some("more rows: --json")),
        ("diff of searches", vec!["diff", &finds.0, &finds.1, "--dir", &at("")], None),
    ] {
        let done = plimsoll(&words);
        assert!([0, 1].contains(&done.code), "{name}: {}", done.stderr);
        assert_fits(name, &done.stdout);
        assert!(more.is_none_or(|more| done.stdout.contains(more)), "{name}: {}", done.stdout);
    }
    let whole = plimsoll(&["traffic", &at("access.log"), "--top", "60"]).stdout;
    assert!((0..47).all(|path| whole.contains(&format!("/p{path}/"))), "{whole}");
}

/// Checks that the first screen of every recorded finding has at most 25 lines of 100 columns and
/// begins with the answer. The verbose text must have all warnings of the document.
#[test]
fn the_first_screen_is_short_and_verbose_output_is_complete() {
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded"));
    let mut files = 0;
    for entry in std::fs::read_dir(kept).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".plimsoll")) else { continue };
        let path = &copy_recorded_run_file(name);
        files += 1;
        let document = plimsoll(&["show", "--json", path]).json();
        let text = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
        let finding = match text("schema").as_str() {
            "plimsoll.run/1" => "requests/s succeeded".to_owned(),
            "plimsoll.sweep/1" => "peak: ".to_owned(),
            "plimsoll.find/1" => "load line".to_owned(),
            "plimsoll.explain/2" if text("cause") == "unknown" => "not known".to_owned(),
            "plimsoll.explain/2" => text("cause"),
            "plimsoll.overload/1" => format!("{}: ", text("verdict")),
            "plimsoll.prove/1" => format!("B is {} than A: ", text("verdict")),
            "plimsoll.ladder/1" => "at the first step".to_owned(),
            other => panic!("{name}: {other}"),
        };
        let done = plimsoll(&["show", path]);
        let shown = &done.stdout;
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        assert!(shown.lines().next().is_some_and(|first| first.contains(&finding)), "{name}: {finding}\n{shown}");
        assert_fits(name, shown);
        let verbose = plimsoll(&["show", "--verbose", path]).stdout;
        for field in ["warnings", "doubts"] {
            for warning in document[field].as_array().into_iter().flatten().filter_map(|warning| warning.as_str()) {
                assert!(verbose.contains(warning), "{name}: {warning}\n{verbose}");
            }
        }
        let told = shown.matches("warning: ").count();
        let all = document["warnings"].as_array().map_or(0, Vec::len);
        assert!(told >= all || shown.contains(": add --verbose"), "{name}: {told} of {all} warnings\n{shown}");
    }
    assert!(files > 10, "{files} files");
}

#[test]
fn help_fits_eighty_columns() {
    let folder = create_new_folder("help");
    for command in [
        "", "find", "explain", "overload", "prove", "run", "sweep", "check", "traffic", "baseline", "demo", "show",
        "profile", "diff", "report", "rerun", "clean", "grpc",
    ] {
        for line in lines_left_on_screen(&run_at_width(&folder, 80, &format!("{command} --help")).stdout) {
            assert!(line.chars().count() <= 80, "{command} --help: {line}");
        }
        // Examples stay on one line each.
        let shown = lines_left_on_screen(&run_at_width(&folder, 80, &format!("{command} --help")).stdout);
        let examples = shown.iter().skip_while(|line| !line.starts_with("Example")).skip(1);
        for line in examples.take_while(|line| !line.is_empty()) {
            assert!(line.trim_start().starts_with("plimsoll "), "{command} --help: an example is broken at: {line}");
        }
    }
}
