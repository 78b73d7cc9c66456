//! Tests the rules of ARCHITECTURE.md: the allowed dependencies between crates and between files,
//! and the words that the code of a crate must not contain.

#![forbid(unsafe_code)]

mod cycles;
mod rust;

use rust::{SourceFile, split_into_tokens};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The crates of this workspace, each with the crates that it may depend on.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 18] = [
    ("plimsoll-model", &[]),
    ("plimsoll-sys", &[]),
    ("plimsoll-wire", &["plimsoll-model"]),
    ("plimsoll-engine", &["plimsoll-model", "plimsoll-sys", "plimsoll-wire"]),
    ("plimsoll-probe", &["plimsoll-model", "plimsoll-sys", "plimsoll-wire"]),
    ("plimsoll-statistics", &["plimsoll-model"]),
    ("plimsoll-analysis", &["plimsoll-model", "plimsoll-statistics"]),
    ("plimsoll-simulator", &["plimsoll-model", "plimsoll-analysis"]),
    ("plimsoll-traffic", &["plimsoll-model"]),
    ("plimsoll-logs", &["plimsoll-model", "plimsoll-traffic"]),
    ("plimsoll-script", &["plimsoll-model", "plimsoll-wire"]),
    ("plimsoll-report", &["plimsoll-model", "plimsoll-analysis", "plimsoll-logs", "plimsoll-traffic"]),
    (
        "plimsoll-compat",
        &["plimsoll-model", "plimsoll-sys", "plimsoll-wire", "plimsoll-script", "plimsoll-logs", "plimsoll-traffic"],
    ),
    (
        "plimsoll-study",
        &[
            "plimsoll-model",
            "plimsoll-sys",
            "plimsoll-wire",
            "plimsoll-engine",
            "plimsoll-probe",
            "plimsoll-analysis",
            "plimsoll-script",
            "plimsoll-logs",
            "plimsoll-traffic",
        ],
    ),
    ("plimsoll-fleet", &["plimsoll-model", "plimsoll-sys", "plimsoll-engine", "plimsoll-probe", "plimsoll-study"]),
    (
        "plimsoll-web",
        &[
            "plimsoll-model",
            "plimsoll-sys",
            "plimsoll-analysis",
            "plimsoll-history",
            "plimsoll-report",
            "plimsoll-traffic",
        ],
    ),
    ("plimsoll-history", &["plimsoll-model", "plimsoll-sys", "plimsoll-analysis"]),
    (
        "plimsoll",
        &[
            "plimsoll-history",
            "plimsoll-web",
            "plimsoll-model",
            "plimsoll-sys",
            "plimsoll-wire",
            "plimsoll-engine",
            "plimsoll-probe",
            "plimsoll-analysis",
            "plimsoll-report",
            "plimsoll-logs",
            "plimsoll-traffic",
            "plimsoll-script",
            "plimsoll-compat",
            "plimsoll-study",
            "plimsoll-fleet",
        ],
    ),
];

fn crates_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates folder").to_owned()
}

/// Returns the source files of a crate, without files that only tests use. All tests share the
/// parsed files, because parsing takes most of the tests' time.
fn crate_sources(name: &str) -> &'static [SourceFile] {
    static PARSED: LazyLock<BTreeMap<&str, Vec<SourceFile>>> = LazyLock::new(|| {
        ALLOWED_DEPENDENCIES
            .iter()
            .map(|(name, _)| (*name, rust::read_crate_sources(&crates_folder().join(name).join("src"))))
            .collect()
    });
    let files = &PARSED[name];
    assert!(!files.is_empty(), "the sources of {name} were found");
    files
}

#[test]
fn crates_depend_only_in_the_allowed_direction() {
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        let manifest = std::fs::read_to_string(crates_folder().join(name).join("Cargo.toml")).expect(name);
        let dependencies = manifest.split("[dependencies]").nth(1).expect(name);
        let dependencies = dependencies.split("\n[").next().expect(name);
        for line in dependencies.lines().filter(|line| line.starts_with("plimsoll-")) {
            let dependency = line.split(['.', ' ', '=']).next().expect("a name");
            assert!(allowed.contains(&dependency), "{name} must not know {dependency}");
        }
    }
    let folders = std::fs::read_dir(crates_folder()).expect("the crates folder").count();
    assert_eq!(folders, ALLOWED_DEPENDENCIES.len(), "a new crate belongs into ARCHITECTURE.md and into this test");
}

#[test]
fn each_crate_uses_only_allowed_facilities() {
    let everywhere_but =
        |home: &'static str| ALLOWED_DEPENDENCIES.iter().map(|(name, _)| *name).filter(move |name| *name != home);
    let pure = [
        "plimsoll-model",
        "plimsoll-wire",
        "plimsoll-statistics",
        "plimsoll-analysis",
        "plimsoll-simulator",
        "plimsoll-report",
        "plimsoll-logs",
        "plimsoll-traffic",
    ];
    let rules: [(&str, Vec<&str>); 11] = [
        ("libc::", everywhere_but("plimsoll-sys").collect()),
        ("target_os", everywhere_but("plimsoll-sys").collect()),
        ("unsafe {", everywhere_but("plimsoll-sys").collect()),
        ("std::fs", pure.to_vec()),
        ("std::net::Tcp", pure.to_vec()),
        ("std::thread", pure.to_vec()),
        ("Instant::now", pure.to_vec()),
        // Only the crate `plimsoll` may use clap, the parser of the command line.
        ("clap::", everywhere_but("plimsoll").collect()),
        // The index of run files is derived data, so code that measures or decides must not use a
        // database.
        ("rusqlite", everywhere_but("plimsoll-history").collect()),
        // Only web pages and the bus connection use tokio, a small async runtime. Code that
        // generates load does not use tokio.
        ("tokio", everywhere_but("plimsoll-web").filter(|name| *name != "plimsoll-fleet").collect()),
        // Error numbers belong to the operating system, so only the crates close to it interpret
        // them.
        ("raw_os_error", ["plimsoll-model", "plimsoll-wire", "plimsoll-analysis"].to_vec()),
    ];
    for (name, _) in ALLOWED_DEPENDENCIES {
        let words: Vec<&str> = rules.iter().filter(|rule| rule.1.contains(&name)).map(|rule| rule.0).collect();
        for file in crate_sources(name) {
            for word in &words {
                // One unsafe line is allowed, which creates a Lua state with all libraries. The
                // reason for the unsafe line stands next to that line in state.rs.
                if *word == "unsafe {" && file.path.ends_with("plimsoll-script/src/script/state.rs") {
                    assert_eq!(file.code.matches(word).count(), 1, "one line is unsafe");
                    continue;
                }
                let line = file.code.lines().position(|line| line.contains(word));
                assert!(
                    line.is_none(),
                    "{}:{}: '{word}' has no place here",
                    file.path.display(),
                    line.unwrap_or(0) + 1
                );
            }
        }
    }
}

/// Checks that the crates listed below name no flag of the program, such as `--cacert`. These
/// crates describe a remedy as a type, which the program or the report converts to a flag.
#[test]
fn lower_crates_name_no_flags() {
    let names_a_flag = |text: &str| {
        let after = |at: usize| text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase());
        let before = |at: usize| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
        text.match_indices("--").any(|(at, _)| after(at) && before(at))
    };
    assert!(names_a_flag("error: --cacert") && names_a_flag("(--for)") && !names_a_flag("a -- b"));
    for name in [
        "plimsoll-model",
        "plimsoll-sys",
        "plimsoll-wire",
        "plimsoll-engine",
        "plimsoll-analysis",
        "plimsoll-logs",
        "plimsoll-traffic",
    ] {
        for file in crate_sources(name) {
            let string = file.strings.iter().find(|string| names_a_flag(&string.1));
            assert!(string.is_none(), "{}:{} names a flag", file.path.display(), string.map_or(0, |string| string.0));
        }
    }
}

/// Checks that type names are unique in the workspace, so that a name identifies its declaration.
#[test]
fn type_names_are_unique() {
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, _) in ALLOWED_DEPENDENCIES {
        for file in crate_sources(name) {
            for (number, line) in file.code.lines().enumerate() {
                for pair in split_into_tokens(&line.chars().collect::<Vec<_>>()).windows(2) {
                    let [(_, keyword), (_, word)] = pair else { continue };
                    // An indented `type` belongs to an implementation of a trait and declares no
                    // new name.
                    let declares = ["struct", "enum", "union", "trait"].contains(&&**keyword)
                        || keyword == "type" && !line.starts_with(' ');
                    if declares && word.starts_with(|c: char| c.is_ascii_uppercase()) {
                        let place = format!("{}:{}", file.path.display(), number + 1);
                        declared.entry(word.clone()).or_default().push(place);
                    }
                }
            }
        }
    }
    assert!(declared.len() > 300, "the types were found");
    let twice: Vec<_> = declared.iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(twice.is_empty(), "declared twice, rename one: {twice:#?}");
}

/// Checks that the files of a crate do not use each other in a circle.
#[test]
fn files_have_no_circular_uses() {
    let mut found = Vec::new();
    for (name, _) in ALLOWED_DEPENDENCIES {
        let files = crate_sources(name);
        let uses = cycles::find_file_uses(files);
        let uses_count: usize = uses.iter().map(BTreeMap::len).sum();
        assert!(files.len() == 1 || uses_count > files.len() / 2, "the uses of {name} were found");
        let source = crates_folder().join(name).join("src");
        let shown = |number: usize| {
            let path = files[number].path.strip_prefix(&source).expect("a file of the crate");
            path.to_string_lossy().into_owned()
        };
        for circle in cycles::find_use_cycles(&uses) {
            let edges = circle.iter().flat_map(|from| {
                let inside = uses[*from].iter().filter(|(to, _)| circle.contains(to));
                inside.map(|(to, words)| {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    format!("  {} takes {} from {}", shown(*from), words.join(", "), shown(*to))
                })
            });
            found.push(format!("{name}:\n{}", edges.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(found.is_empty(), "files that use each other:\n{}", found.join("\n"));
}

/// Checks that `cargo run`, the README's first command, runs plimsoll, although the workspace has
/// several programs.
#[test]
fn cargo_run_starts_plimsoll() {
    let named = |manifest: PathBuf| {
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        text.lines().filter(|line| line.starts_with("default-run")).map(str::to_owned).collect::<Vec<_>>()
    };
    let folders = std::fs::read_dir(crates_folder()).expect("the crates folder").flatten().map(|entry| entry.path());
    let all = folders.chain([crates_folder().parent().expect("the root").join("bench")]);
    let names: Vec<String> = all.flat_map(|folder| named(folder.join("Cargo.toml"))).collect();
    assert_eq!(names, ["default-run = \"plimsoll\""]);
}
