//! Splits Rust source into code and strings as far as the architecture tests need it, without
//! comments and without code that only tests use.
//!
//! The module is no parser: only strings, comments, braces and attributes are recognised.

use std::path::{Path, PathBuf};

/// A source file of a crate.
pub struct SourceFile {
    pub path: PathBuf,
    /// The modules from the crate's root down to this file.
    pub module: Vec<String>,
    /// The file's code, character for character. Comments, contents of strings and test code are
    /// replaced by blanks.
    pub code: String,
    /// The strings outside tests: line number and content.
    pub strings: Vec<(usize, String)>,
    /// The names of the file's child modules that have their own files, without test modules.
    pub children: Vec<String>,
}

/// Returns all source files of a crate, without files that only tests use.
pub fn read_crate_sources(source: &Path) -> Vec<SourceFile> {
    let root = ["lib.rs", "main.rs"].into_iter().map(|name| source.join(name)).find(|path| path.exists());
    let mut files = Vec::new();
    read_module_tree(&root.expect("a crate's root"), Vec::new(), &mut files);
    files
}

fn read_module_tree(path: &Path, module: Vec<String>, files: &mut Vec<SourceFile>) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SourceFile::read(path.to_owned(), module, &text);
    // The child modules of a root or mod.rs are files in the same folder. The child modules of any
    // other file are in a folder of its name.
    let name = path.file_stem().expect("a name").to_string_lossy();
    let mut folder = path.parent().expect("a folder").to_owned();
    if !["lib", "main", "mod"].contains(&&*name) {
        folder.push(&*name);
    }
    for child in &file.children {
        let flat = folder.join(format!("{child}.rs"));
        let path = if flat.exists() { flat } else { folder.join(child).join("mod.rs") };
        read_module_tree(&path, [&file.module[..], std::slice::from_ref(child)].concat(), files);
    }
    files.push(file);
}

impl SourceFile {
    pub fn read(path: PathBuf, module: Vec<String>, text: &str) -> SourceFile {
        let mut split = split_code_and_strings(text);
        blank_out_test_code(&mut split);
        let words = split_into_tokens(&split.code);
        let mut children: Vec<String> = words
            .windows(3)
            .filter(|window| window[0].1 == "mod" && window[2].1 == ";")
            .map(|window| window[1].1.to_owned())
            .collect();
        // A child module that has a replacement for builds without some feature is declared twice.
        // Only the file with the module's own name counts; the replacement's file does not count.
        children.dedup();
        SourceFile { path, module, children, code: split.code.iter().collect(), strings: split.strings }
    }
}

/// Splits code into words and single characters, each with its position in characters; `::` is kept
/// together.
pub fn split_into_tokens(code: &[char]) -> Vec<(usize, String)> {
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut at) = (Vec::new(), 0);
    while at < code.len() {
        let end = match code[at] {
            c if of_word(c) => at + code[at..].iter().take_while(|c| of_word(**c)).count(),
            ':' if code.get(at + 1) == Some(&':') => at + 2,
            _ => at + 1,
        };
        if !code[at].is_whitespace() {
            out.push((at, code[at..end].iter().collect()));
        }
        at = end;
    }
    out
}

struct SplitSource {
    code: Vec<char>,
    strings: Vec<(usize, String)>,
    /// The position in characters at which each string of `strings` begins.
    places: Vec<usize>,
}

/// Separates the code, the comments and the strings of a source text.
fn split_code_and_strings(text: &str) -> SplitSource {
    let text: Vec<char> = text.chars().collect();
    let mut split = SplitSource { code: text.clone(), strings: Vec::new(), places: Vec::new() };
    let blank = |code: &mut Vec<char>, from: usize, to: usize| {
        code[from..to].iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
    };
    let starts = |at: usize, word: &str| word.chars().enumerate().all(|(n, c)| text.get(at + n) == Some(&c));
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let began = at;
        let in_word = at > 0 && of_word(text[at - 1]);
        // If a raw string begins at the position `at`, counts the hashes at the raw string's start.
        let raw = ["r", "br", "cr"].into_iter().filter(|_| !in_word).find_map(|prefix| {
            let hashes = text.get(at + prefix.len()..)?.iter().take_while(|c| **c == '#').count();
            let opens = starts(at, prefix) && text.get(at + prefix.len() + hashes) == Some(&'"');
            opens.then_some((prefix.len() + hashes + 1, hashes))
        });
        if starts(at, "//") {
            at += text[at..].iter().take_while(|c| **c != '\n').count();
            blank(&mut split.code, began, at);
        } else if starts(at, "/*") {
            let mut depth = 0;
            while at < text.len() {
                depth = if starts(at, "/*") { depth + 1 } else { depth - i32::from(starts(at, "*/")) };
                at += if starts(at, "/*") || starts(at, "*/") { 2 } else { 1 };
                if depth == 0 {
                    break;
                }
            }
            blank(&mut split.code, began, at.min(text.len()));
        } else if let Some((opening, hashes)) = raw {
            let end = format!("\"{}", "#".repeat(hashes));
            at += opening;
            let from = at;
            while at < text.len() && !starts(at, &end) {
                at += 1;
            }
            split.strings.push((line, text[from..at].iter().collect()));
            split.places.push(began);
            blank(&mut split.code, from, at);
            at += end.len();
        } else if text[at] == '"' {
            at += 1;
            while at < text.len() && text[at] != '"' {
                at += if text[at] == '\\' { 2 } else { 1 };
            }
            split.strings.push((line, text[began + 1..at].iter().collect()));
            split.places.push(began);
            blank(&mut split.code, began + 1, at);
            at += 1;
        } else if text[at] == '\'' {
            // A single quotation mark begins either a character literal or a lifetime, and a
            // lifetime is code.
            let length = if starts(at + 1, "\\") {
                text[at + 2..].iter().skip(1).position(|c| *c == '\'').map(|n| n + 4)
            } else {
                (text.get(at + 2) == Some(&'\'')).then_some(3)
            };
            at += length.unwrap_or(1);
            if length.is_some() {
                blank(&mut split.code, began + 1, at - 1);
            }
        } else {
            at += 1;
        }
        line += text[began..at.min(text.len())].iter().filter(|c| **c == '\n').count();
    }
    split
}

/// Replaces each item under a test attribute by blanks, up to its closing brace or semicolon.
fn blank_out_test_code(split: &mut SplitSource) {
    let words = split_into_tokens(&split.code);
    let sign = |at: usize| words.get(at).map_or("", |word| &*word.1);
    // Returns the position after the bracket that closes the bracket at `at`.
    let closed = |mut at: usize, open: &str, close: &str| {
        let mut depth = 0;
        loop {
            depth += i32::from(sign(at) == open) - i32::from(sign(at) == close);
            at += 1;
            if depth == 0 || at >= words.len() {
                return at;
            }
        }
    };
    let (mut at, mut cut) = (0, Vec::new());
    while at < words.len() {
        if sign(at) != "#" || sign(at + 1) != "[" {
            at += 1;
            continue;
        }
        let after = closed(at + 1, "[", "]");
        let attribute: Vec<&str> = (at + 2..after).map(sign).collect();
        let of_test = attribute.contains(&"test") && !attribute.contains(&"not");
        if !of_test || !["cfg", "test"].contains(&attribute[0]) {
            at = after;
            continue;
        }
        let mut end = after;
        loop {
            match sign(end) {
                "{" => {
                    end = closed(end, "{", "}");
                    break;
                }
                "(" => end = closed(end, "(", ")"),
                "[" => end = closed(end, "[", "]"),
                // A semicolon or comma ends an item, field, variant or match arm; a closing brace
                // ends the surrounding block.
                ";" | "," => {
                    end += 1;
                    break;
                }
                "}" | "" => break,
                _ => end += 1,
            }
        }
        let to = words.get(end).map_or(split.code.len(), |word| word.0);
        cut.push((words[at].0, to));
        at = end;
    }
    for (from, to) in cut {
        split.code[from..to].iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
        let kept: Vec<bool> = split.places.iter().map(|place| !(from..to).contains(place)).collect();
        let mut kept_strings = kept.iter();
        split.strings.retain(|_| *kept_strings.next().expect("one for each"));
        let mut kept_places = kept.iter();
        split.places.retain(|_| *kept_places.next().expect("one for each"));
    }
}

#[test]
fn code_strings_comments_and_tests_are_separated() {
    let text = r##"
        use a::b; // use c::d "no string"
        /* out /* nested */ still out */
        const S: &str = "--flag \" // no comment"; const C: char = '"'; const R: &str = r#"raw "x""#;
        fn f<'a>(x: &'a str) -> char { '\'' }
        #[cfg(test)]
        mod tests { use e::f; const T: &str = "--gone"; fn g() { if true { } } }
        mod after;
        #[cfg(test)]
        mod seen_by_tests;
        #[cfg(not(test))]
        fn kept() {}
        enum E { A, #[cfg(test)] B { x: u8 }, C }
        #[test]
        fn one() { gone() }
        fn last() {}
    "##;
    let file = SourceFile::read("a.rs".into(), Vec::new(), text);
    let strings: Vec<&str> = file.strings.iter().map(|string| &*string.1).collect();
    assert_eq!(strings, [r#"--flag \" // no comment"#, r#"raw "x""#]);
    assert_eq!(file.strings[0].0, 4);
    assert_eq!(file.children, ["after"]);
    for kept in ["a::b", "'a str", "mod after", "fn kept", "C }", "fn last"] {
        assert!(file.code.contains(kept), "{kept}: {}", file.code);
    }
    for gone in ["c::d", "out", "flag", "e::f", "seen_by_tests", "B {", "gone"] {
        assert!(!file.code.contains(gone), "{gone}: {}", file.code);
    }
    assert_eq!(file.code.lines().count(), text.lines().count());
}
