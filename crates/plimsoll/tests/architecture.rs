//! ARCHITECTURE.md as a test: which crate may depend on which, and what may be written where.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// Crate, and the crates of this workspace that it may depend on.
const ARROWS: [(&str, &[&str]); 7] = [
    ("plimsoll-model", &[]),
    ("plimsoll-sys", &[]),
    ("plimsoll-wire", &["plimsoll-model"]),
    ("plimsoll-engine", &["plimsoll-model", "plimsoll-sys", "plimsoll-wire"]),
    ("plimsoll-analysis", &["plimsoll-model"]),
    ("plimsoll-report", &["plimsoll-model", "plimsoll-analysis"]),
    (
        "plimsoll",
        &["plimsoll-model", "plimsoll-sys", "plimsoll-wire", "plimsoll-engine", "plimsoll-analysis", "plimsoll-report"],
    ),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates folder").to_owned()
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn arrows_point_one_way() {
    for (name, allowed) in ARROWS {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).expect(name);
        let dependencies = manifest.split("[dependencies]").nth(1).expect(name);
        let dependencies = dependencies.split("\n[").next().expect(name);
        for line in dependencies.lines().filter(|line| line.starts_with("plimsoll-")) {
            let dependency = line.split(['.', ' ', '=']).next().expect("a name");
            assert!(allowed.contains(&dependency), "{name} must not know {dependency}");
        }
    }
    let folders = std::fs::read_dir(crates()).expect("the crates folder").count();
    assert_eq!(folders, ARROWS.len(), "a new crate belongs into ARCHITECTURE.md and into this test");
}

#[test]
fn each_crate_keeps_to_what_it_may_know() {
    let everywhere_but = |home: &'static str| ARROWS.iter().map(|(name, _)| *name).filter(move |name| *name != home);
    let pure = ["plimsoll-model", "plimsoll-wire", "plimsoll-analysis", "plimsoll-report"];
    let rules: [(&str, Vec<&str>); 8] = [
        ("libc::", everywhere_but("plimsoll-sys").collect()),
        ("target_os", everywhere_but("plimsoll-sys").collect()),
        ("unsafe {", everywhere_but("plimsoll-sys").collect()),
        ("std::fs", pure.to_vec()),
        ("std::net::Tcp", pure.to_vec()),
        ("std::thread", pure.to_vec()),
        ("Instant::now", pure.to_vec()),
        ("tokio", ARROWS.iter().map(|(name, _)| *name).collect()),
    ];
    let mut read = 0;
    for (word, homes) in &rules {
        for name in homes {
            let mut files = Vec::new();
            sources(&crates().join(name).join("src"), &mut files);
            for file in files {
                read += 1;
                let text = std::fs::read_to_string(&file).expect("text");
                // Tests may use the world; they stand at the end of a file.
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                let line = code.lines().position(|line| line.contains(word) && !line.trim_start().starts_with("//"));
                assert!(line.is_none(), "{}:{}: '{word}' has no place here", file.display(), line.unwrap_or(0) + 1);
            }
        }
    }
    assert!(read > 50, "the sources were found");
}

/// The command line has its flags, and nobody below it knows their names: who reads of one must find it in the binary.
#[test]
fn flags_are_named_where_they_are_understood() {
    let names_a_flag = |line: &str| {
        let after = |at: usize| line[at + 2..].starts_with(|c: char| c.is_ascii_lowercase());
        !line.trim_start().starts_with("//") && line.match_indices("--").any(|(at, _)| after(at))
    };
    assert!(names_a_flag("error: --cacert") && !names_a_flag("// --cacert") && !names_a_flag("a -- b"));
    for name in ["plimsoll-model", "plimsoll-sys", "plimsoll-wire", "plimsoll-engine"] {
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        assert!(files.len() > 5, "the sources were found");
        for file in files {
            let text = std::fs::read_to_string(&file).expect("text");
            let line = text.lines().position(names_a_flag);
            assert!(line.is_none(), "{}:{} names a flag", file.display(), line.unwrap_or(0) + 1);
        }
    }
}

/// The first command of the README: with several programs in the workspace, `cargo run` runs the one that is named so.
#[test]
fn a_bare_cargo_run_is_this_program() {
    let named = |manifest: PathBuf| {
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        text.lines().filter(|line| line.starts_with("default-run")).map(str::to_owned).collect::<Vec<_>>()
    };
    let folders = std::fs::read_dir(crates()).expect("the crates folder").flatten().map(|entry| entry.path());
    let all = folders.chain([crates().parent().expect("the root").join("bench")]);
    let names: Vec<String> = all.flat_map(|folder| named(folder.join("Cargo.toml"))).collect();
    assert_eq!(names, ["default-run = \"plimsoll\""]);
}
