//! Stores the marks that a user gives a finished run ([`RunMarks`]): tags and a pin. The marks are
//! in a small file next to the run file, because a run file is never changed. A copy of the run
//! file alone therefore has no marks.
//!
//! Not here: tags that were given when the run was made; the run file contains them.

use crate::folder::{MARKS_SUFFIX, RUN_FILE_SUFFIX};
use plimsoll_model::failure::Failure;
use plimsoll_sys::{output_file, system_text};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum length of a marks file in bytes; a longer file is ignored.
const BYTES_MAX: u64 = 64 << 10;
/// The maximum number of tags of a run.
const TAGS_MAX: usize = 50;
/// The maximum number of characters of the key of a tag `key=value`, and also of its value.
const TAG_CHARS_MAX: usize = 200;

/// The marks that a user gave a finished run: tags and a pin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunMarks {
    /// Whether the run is pinned: `clean` never removes a pinned run.
    #[serde(default)]
    pub is_pinned: bool,
    /// Tags as pairs of key and value; each key occurs once.
    #[serde(default)]
    pub tags: Vec<(String, String)>,
}

impl RunMarks {
    /// Returns the path of the marks file of a run file.
    fn marks_file_path(run_file: &Path) -> PathBuf {
        run_file.with_extension(MARKS_SUFFIX.trim_start_matches('.'))
    }

    /// Reads the marks (tags and pin) of a run file. If the marks file is missing or unreadable,
    /// the run has no marks.
    pub fn read(run_file: &Path) -> RunMarks {
        let path = RunMarks::marks_file_path(run_file);
        let is_small = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= BYTES_MAX);
        let read = || serde_json::from_slice(&fs::read(&path).ok()?).ok();
        is_small.then(read).flatten().unwrap_or_default()
    }

    /// Returns the marks with the tag `key=value` added; an existing tag with this key is replaced.
    /// Fails if the tag has no key, is too long or has control characters, or if the run has too
    /// many tags.
    pub fn with_tag(mut self, tag: &str) -> Result<RunMarks, Failure> {
        let pair = tag.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
        let is_good = |text: &String| text.chars().count() <= TAG_CHARS_MAX && !text.chars().any(char::is_control);
        let Some((key, value)) = pair.filter(|(key, value)| !key.is_empty() && is_good(key) && is_good(value)) else {
            return Err(Failure::usage("tag: write KEY=VALUE, such as release=1.4"));
        };
        self.tags.retain(|(known, _)| *known != key);
        if self.tags.len() >= TAGS_MAX {
            return Err(Failure::usage(format!("tag: a run has at most {TAGS_MAX} tags: remove a tag")));
        }
        self.tags.push((key, value));
        Ok(self)
    }

    /// Returns the marks without the tag that has this key.
    pub fn without_tag(mut self, key: &str) -> RunMarks {
        self.tags.retain(|(known, _)| known != key);
        self
    }

    /// Writes the marks (tags and pin) to the marks file next to a run file. If the marks are
    /// empty, the marks file is removed.
    pub fn write(&self, run_file: &Path) -> Result<(), Failure> {
        let path = RunMarks::marks_file_path(run_file);
        let done = match *self == RunMarks::default() {
            true => remove_if_exists(&path),
            // The marks are plain values, which always serialise.
            false => output_file::write(&path, &serde_json::to_vec(self).unwrap_or_default()),
        };
        done.map_err(|error| {
            Failure::cannot_start(format!("'{}' cannot be written: {}", path.display(), system_text(&error)))
        })
    }
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a run from a folder with its page, profiles, logs and marks. The run file is removed
/// last, so that an interrupted removal can be repeated. Returns an error for a pinned run and
/// removes nothing.
pub fn remove_run(folder: &Path, name: &str) -> Result<(), Failure> {
    let run_file = folder.join(name);
    if RunMarks::read(&run_file).is_pinned {
        return Err(Failure::usage(format!("the run {name} is pinned, so it cannot be removed: unpin this run first")));
    }
    let stem = name.strip_suffix(RUN_FILE_SUFFIX).unwrap_or(name);
    let is_beside = |other: &str| {
        let rest = other.strip_prefix(stem).unwrap_or_default();
        let ends = [".html", MARKS_SUFFIX].contains(&rest);
        ends || rest.starts_with('.') && (rest.ends_with(".pb.gz") || rest.ends_with(".log"))
    };
    let remove = || -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let is_file = entry.metadata().is_ok_and(|metadata| metadata.is_file());
            if is_file && entry.file_name().to_str().is_some_and(is_beside) {
                remove_if_exists(&entry.path())?;
            }
        }
        remove_if_exists(&run_file)
    };
    remove().map_err(|error| Failure::cannot_start(format!("{name} cannot be removed: {}", system_text(&error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_stored_and_removed_with_the_run() {
        let folder = std::env::temp_dir().join(format!("plimsoll-marks-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let names = ["find-1-2.plimsoll", "find-1-2.html", "find-1-2.low.cpu.pb.gz", "find-1-23.plimsoll", "x.txt"];
        names.iter().for_each(|name| fs::write(folder.join(name), "x").expect("written"));
        let run = folder.join(names[0]);
        assert_eq!(RunMarks::read(&run), RunMarks::default());
        let marks = RunMarks::read(&run).with_tag("a=1").and_then(|it| it.with_tag("a = 2")).expect("tags");
        let marks = RunMarks { is_pinned: true, ..marks };
        marks.write(&run).expect("written");
        assert_eq!(RunMarks::read(&run), marks);
        assert_eq!(marks.tags, [("a".to_owned(), "2".to_owned())]);
        assert!(remove_run(&folder, names[0]).is_err_and(|failure| failure.to_string().contains("unpin")));
        RunMarks { is_pinned: false, ..marks.clone() }.without_tag("a").write(&run).expect("removed");
        assert!(!folder.join("find-1-2.marks").exists());
        RunMarks::default().with_tag("b=1").and_then(|it| it.write(&run)).expect("written");
        remove_run(&folder, names[0]).expect("removed");
        let mut left: Vec<String> = fs::read_dir(&folder)
            .expect("a folder")
            .map(|it| it.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        left.sort();
        assert_eq!(left, ["find-1-23.plimsoll", "x.txt"]);
        for tag in ["", "a", "=1", "a=x\ny", &format!("a={}", "x".repeat(201))] {
            assert!(RunMarks::default().with_tag(tag).is_err(), "{tag}");
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
}
