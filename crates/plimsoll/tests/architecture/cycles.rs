//! Determines for each file of a crate which other files it uses, by the paths in its code.
//!
//! A file uses another file if it names an item that the other file declares. Re-exports (`pub
//! use`) are followed to the declaration. Declaring a child module, or re-exporting its items, does
//! not count as use.

use crate::rust::{SourceFile, split_into_tokens};
use std::collections::{BTreeMap, BTreeSet};

/// A path in a file's code, and the name under which `use` imports it.
#[derive(Debug, Clone, PartialEq)]
struct UsedPath {
    path: Vec<String>,
    /// The name under which the path is known in the file; `None` for a path in an expression.
    imported_name: Option<String>,
    public: bool,
}

/// The files that one file uses: the number of each used file, with the names of its items that the
/// using file names.
pub type Uses = BTreeMap<usize, BTreeSet<String>>;

/// Returns for each file which other files it uses.
pub fn find_file_uses(files: &[SourceFile]) -> Vec<Uses> {
    let modules: BTreeMap<&[String], usize> =
        files.iter().enumerate().map(|(number, file)| (&file.module[..], number)).collect();
    let named: Vec<Vec<UsedPath>> = files.iter().map(find_paths).collect();
    let counts: Vec<BTreeMap<String, usize>> = files.iter().map(count_words).collect();
    let crate_files = CrateFiles { files, modules, named: &named };
    let mut all = vec![Uses::new(); files.len()];
    for (number, file) in files.iter().enumerate() {
        for one in &named[number] {
            let Some((target, word)) = crate_files.resolve_path(number, &one.path, 0) else { continue };
            // If a file names an item of its child module only in `pub use`, the file re-exports
            // the item, but does not use the item.
            let imported_name = one.imported_name.as_deref().unwrap_or_default();
            let mentioned = counts[number].get(imported_name).copied().unwrap_or(0);
            if target != number && !(one.public && is_child(file, &files[target]) && mentioned <= 1) {
                all[number].entry(target).or_default().insert(word);
            }
        }
    }
    all
}

fn is_child(file: &SourceFile, other: &SourceFile) -> bool {
    other.module.len() > file.module.len() && other.module.starts_with(&file.module)
}

struct CrateFiles<'a> {
    files: &'a [SourceFile],
    modules: BTreeMap<&'a [String], usize>,
    named: &'a [Vec<UsedPath>],
}

impl CrateFiles<'_> {
    /// Returns the number of the file that declares the item of a path, and the item's name.
    fn resolve_path(&self, from: usize, path: &[String], depth: usize) -> Option<(usize, String)> {
        let mut module = self.files[from].module.clone();
        let mut rest = path;
        match &*path[0] {
            "crate" => (module.clear(), rest = &path[1..]).1,
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    module.pop()?;
                    rest = &rest[1..];
                }
            }
            child if self.files[from].children.iter().any(|known| known == child) => {}
            _ => return None,
        }
        while let Some(next) = rest.first() {
            let inner = [&module[..], std::slice::from_ref(next)].concat();
            if !self.modules.contains_key(&inner[..]) {
                break;
            }
            (module, rest) = (inner, &rest[1..]);
        }
        let number = *self.modules.get(&module[..])?;
        let word = rest.first().cloned().unwrap_or_else(|| module.last().cloned().unwrap_or_default());
        let passed_on = rest.first().and_then(|name| {
            self.named[number].iter().find(|named| named.imported_name.as_ref() == Some(name) && named.path != path)
        });
        match passed_on {
            // The module's file imports the name from another crate, or re-exports the name from a
            // further file.
            Some(named) if depth < 8 => self.resolve_path(number, &named.path, depth + 1),
            _ => Some((number, word)),
        }
    }
}

/// Counts how often each word occurs in a file's code.
fn count_words(file: &SourceFile) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (_, word) in split_into_tokens(&file.code.chars().collect::<Vec<_>>()) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Returns all paths in a file's code: the paths of `use` declarations, and paths that begin at a
/// module.
fn find_paths(file: &SourceFile) -> Vec<UsedPath> {
    let words: Vec<String> =
        split_into_tokens(&file.code.chars().collect::<Vec<_>>()).into_iter().map(|word| word.1).collect();
    let (mut named, mut at) = (Vec::new(), 0);
    while at < words.len() {
        // `use<'a>` in a bound names no path.
        if words[at] == "use" && words.get(at + 1).is_some_and(|next| next != "<") {
            let public = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
            at = parse_use_branch(&words, at + 1, &[], public, &mut named);
            continue;
        }
        let begins = words.get(at + 1).is_some_and(|next| next == "::") && (at == 0 || words[at - 1] != "::");
        if begins {
            let mut path = vec![words[at].clone()];
            while words.get(at + 1).is_some_and(|next| next == "::") && at + 2 < words.len() {
                at += 2;
                path.push(words[at].clone());
            }
            named.push(UsedPath { path, imported_name: None, public: false });
        }
        at += 1;
    }
    named
}

/// Parses one branch of a `use` declaration. Returns the index of the word after the branch.
fn parse_use_branch(
    words: &[String],
    mut at: usize,
    above: &[String],
    public: bool,
    named: &mut Vec<UsedPath>,
) -> usize {
    let mut path = above.to_vec();
    while at < words.len() {
        match &*words[at] {
            "::" => at += 1,
            "{" => {
                at += 1;
                while words[at] != "}" {
                    at = parse_use_branch(words, at, &path, public, named);
                    at += usize::from(words[at] == ",");
                }
                return at + 1;
            }
            "," | "}" | ";" | "as" => break,
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
    let mut imported_name = path.last().cloned();
    if path.last().is_some_and(|word| word == "self") && path.len() > 1 {
        path.pop();
        imported_name = path.last().cloned();
    }
    if words.get(at).is_some_and(|word| word == "as") {
        imported_name = words.get(at + 1).cloned();
        at += 2;
    }
    named.push(UsedPath { path, imported_name, public });
    at
}

/// Returns the groups of files that use each other in a circle, directly or indirectly, each group
/// once.
pub fn find_use_cycles(uses: &[Uses]) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..uses.len())
        .map(|from| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
            while let Some(at) = left.pop() {
                left.extend(uses[at].keys().filter(|next| seen.insert(**next)));
            }
            seen
        })
        .collect();
    let mut circles: Vec<Vec<usize>> = (0..uses.len())
        .filter(|from| reach[*from].contains(from))
        .map(|from| reach[from].iter().copied().filter(|to| reach[*to].contains(&from)).collect())
        .collect();
    circles.sort();
    circles.dedup();
    circles
}

#[test]
fn uses_are_found_and_reexports_are_not_uses() {
    let file = |path: &str, module: &[&str], text: &str| {
        SourceFile::read(path.into(), module.iter().map(|word| (*word).to_owned()).collect(), text)
    };
    let files = [
        file("lib.rs", &[], "mod a; mod b; pub use a::One; pub(crate) fn top() {}"),
        file("a/mod.rs", &["a"], "mod x; mod y; pub use x::One; pub use y::Two; struct Own; fn f(two: Two) { x::g() }"),
        file("a/x.rs", &["a", "x"], "use super::{Own, Two}; pub struct One;"),
        file("a/y.rs", &["a", "y"], "use crate::{One, b::{self, Three as T}}; pub struct Two;"),
        file("b.rs", &["b"], "use std::fmt; pub struct Three; fn f() { crate::top() }"),
    ];
    let uses = find_file_uses(&files);
    let of = |number: usize| uses[number].keys().copied().collect::<Vec<_>>();
    // In the example, lib.rs (file 0) only re-exports, so it uses no file. File 1 (a/mod.rs) calls
    // x (file 2) and names `Two` of y (file 3).
    assert_eq!((of(0), of(1)), (vec![], vec![2, 3]));
    // File 2 (x.rs) uses `Own` of file 1 (a/mod.rs), and `Two` of file 3 (y.rs), which declares
    // `Two`. File 3 (y.rs) uses `One` of file 2 (x.rs).
    assert_eq!((of(2), of(3), of(4)), (vec![1, 3], vec![2, 4], vec![0]));
    assert_eq!(find_use_cycles(&uses), [vec![1, 2, 3]]);
}
