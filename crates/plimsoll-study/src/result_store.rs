//! Manages the store, the folder of run files. The default store keeps only the latest runs.
//!
//! Only files that plimsoll named itself are removed: a run file `COMMAND-TIME-PROCESS.plimsoll`,
//! with its HTML page, profiles and logs. Plimsoll recognises its own run files by their names and
//! first bytes. Folders, links, files that the user named (`-o`, `sweep --name`), and runs with a
//! tag or pin are never removed. In a store that the user named (`--store` or `PLIMSOLL_STORE`),
//! only the command `clean` removes runs.

use plimsoll_model::experiment_settings::OutputSettings;
use plimsoll_model::{ExperimentSpec, codec};
use plimsoll_sys::files::first_bytes;
pub use plimsoll_sys::output_file::DEFAULT_RESULTS_FOLDER as FOLDER;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of latest runs that the default store keeps.
pub const RUNS_KEPT: usize = 50;
/// The suffix of the file with a run's marks. The user adds marks, such as pins (do not remove this
/// run), after the run.
const MARKS_FILE_SUFFIX: &str = ".marks";
/// The environment variable that names the store.
pub const STORE_VARIABLE: &str = "PLIMSOLL_STORE";

/// Returns the store that the environment variable `PLIMSOLL_STORE` names; `None` if the variable
/// is unset or empty.
fn store_from_environment() -> Option<PathBuf> {
    std::env::var_os(STORE_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Whether the user chose the store, with the flag `--store` or the environment variable
/// `PLIMSOLL_STORE`.
pub fn is_store_chosen_by_user<T>(output: &OutputSettings<T>) -> bool {
    output.store.is_some() || store_from_environment().is_some()
}

/// Returns the folder of run files: `named` (from the flag `--store`), else the folder that the
/// environment variable names, else the default folder.
pub fn store_folder(named: Option<&Path>) -> PathBuf {
    named.map(Path::to_owned).or_else(store_from_environment).unwrap_or_else(|| FOLDER.into())
}

/// Returns the path of a command's run file: the user's path, or a new name in the store.
pub fn run_file_path(output: &OutputSettings<String>, command: &str) -> PathBuf {
    if let Some(file) = &output.file {
        return file.into();
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let folder = store_folder(output.store.as_deref().map(Path::new));
    folder.join(format!("{command}-{seconds}-{}.plimsoll", std::process::id()))
}

/// A stored run that plimsoll may remove: its files and when it started.
#[derive(Debug, PartialEq)]
pub struct StoredRun {
    /// The start of the run in seconds since 1970, from the file name.
    pub began_unix_s: u64,
    /// The id of the process that made the run, from the file name.
    process: u32,
    /// All files of the run, the run file first.
    pub files: Vec<PathBuf>,
    /// The size of all files of the run together, bytes.
    pub bytes: u64,
}

/// Parses the file name `COMMAND-TIME-PROCESS` of a run file, without its extension. Returns start
/// time and process id; `None` for a name that plimsoll did not choose.
fn parse_run_file_stem(stem: &str) -> Option<(u64, u32)> {
    let (command, rest) = stem.split_once('-')?;
    let (seconds, process) = rest.split_once('-')?;
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Files of `sweep` are never removed, because their names come from the user or are constant.
    let known =
        ExperimentSpec::STUDY_WORDS.contains(&command) && command != "sweep" && plain(seconds) && plain(process);
    known.then(|| Some((seconds.parse().ok()?, process.parse().ok()?))).flatten()
}

/// Whether a file is the HTML page, marks file, a profile or a log of the run file with this stem.
fn belongs_to_run(name: &str, stem: &str) -> bool {
    let Some(rest) = name.strip_prefix(stem) else { return false };
    rest == ".html"
        || rest == MARKS_FILE_SUFFIX
        || (rest.starts_with('.') && (rest.ends_with(".pb.gz") || rest.ends_with(".log")))
}

fn is_run_file(path: &Path) -> bool {
    let mut magic = [0; codec::MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && codec::is_run_file(&magic)
}

/// Returns the runs in `folder` that plimsoll may remove, the latest first; empty if the folder
/// does not exist.
pub fn stored_runs(folder: &Path) -> io::Result<Vec<StoredRun>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        // The metadata of the directory entry itself is read, so links are not followed.
        let metadata = entry.metadata()?;
        if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
            files.insert(name, metadata.len());
        }
    }
    let mut runs = Vec::new();
    for name in files.keys() {
        let Some(stem) = name.strip_suffix(".plimsoll") else { continue };
        let Some((began_unix_s, process)) = parse_run_file_stem(stem) else { continue };
        if !is_run_file(&folder.join(name)) {
            continue;
        }
        let beside = files.keys().filter(|other| belongs_to_run(other, stem));
        let all: Vec<&String> = std::iter::once(name).chain(beside).collect();
        let bytes = all.iter().map(|name| files[*name]).sum();
        let files = all.into_iter().map(|name| folder.join(name)).collect();
        runs.push(StoredRun { began_unix_s, process, files, bytes });
    }
    runs.sort_by_key(|run| std::cmp::Reverse((run.began_unix_s, run.process)));
    Ok(runs)
}

/// Whether a run has a tag. A run file that cannot be read counts as untagged.
fn is_tagged(run_file: &Path) -> bool {
    let head = || -> Option<codec::RunFileHeader> {
        let first = first_bytes(run_file, codec::HEAD_BYTES_MIN).ok()?;
        codec::read_head(&first_bytes(run_file, codec::head_length(&first).ok()?).ok()?).ok()
    };
    head().and_then(|head| head.settings).is_some_and(|settings| !settings.output.tags.is_empty())
}

/// Returns the runs that may be removed because they are older than the `keep` latest runs. `runs`
/// has the latest run first. A run stays if its process still exists, or if it has a tag or pin.
pub fn removable_runs(runs: Vec<StoredRun>, keep: usize) -> Vec<StoredRun> {
    let under_way = |process: u32| process != std::process::id() && Path::new(&format!("/proc/{process}")).exists();
    let is_marked = |run: &StoredRun| {
        let has_marks = run.files.iter().any(|file| file.to_string_lossy().ends_with(MARKS_FILE_SUFFIX));
        has_marks || run.files.first().is_some_and(|file| is_tagged(file))
    };
    let is_old = |run: &StoredRun| !under_way(run.process) && !is_marked(run);
    runs.into_iter().skip(keep).filter(is_old).collect()
}

/// Removes the files of a run, the run file last. If plimsoll is interrupted during a removal, the
/// run file is still there, so a later removal finds the run again.
pub fn remove(run: &StoredRun) -> io::Result<()> {
    run.files.iter().rev().try_for_each(|file| match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    })
}

/// Removes the oldest runs of the default store, after a new run was stored at `path`. Returns a
/// sentence about the number of removed runs. A run that cannot be removed stays in the store,
/// without an error.
pub fn remove_oldest_runs(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| *folder == Path::new(FOLDER))?;
    let surplus = removable_runs(stored_runs(folder).ok()?, RUNS_KEPT);
    let removed = surplus.iter().filter(|run| remove(run).is_ok()).count();
    let runs = if removed == 1 { "run".to_owned() } else { format!("{removed} runs") };
    (removed > 0).then(|| {
        format!(
            "plimsoll removed the oldest {runs} in {FOLDER}, because plimsoll keeps at most {RUNS_KEPT} runs there \
             (-o FILE writes elsewhere)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder that contains `files` for a test. Files ending in `.plimsoll` get the first
    /// bytes of a run file, except files with the process id 77.
    fn create_test_folder(name: &str, files: &[&str]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("plimsoll-kept-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        for file in files {
            let magic = file.ends_with(".plimsoll") && !file.contains("-77.");
            let content: &[u8] = if magic { &codec::MAGIC } else { b"something else" };
            fs::write(folder.join(file), content).expect("written");
        }
        folder
    }

    fn sorted_file_names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_files_of_plimsoll_are_removed() {
        // The process id 4194999 is above Linux's maximum, so no such process exists.
        let own = ["find-100-4194999.plimsoll", "find-100-4194999.html", "find-100-4194999.line.cpu.pb.gz"];
        let other_own = ["prove-300-4194999.plimsoll", "prove-300-4194999.a.log", "run-200-4194998.plimsoll"];
        // Runs of every command are removed, except runs of `sweep`, whose names come from users.
        let commands: Vec<&str> = ExperimentSpec::STUDY_WORDS.into_iter().filter(|word| *word != "sweep").collect();
        let all_commands: Vec<String> = commands.iter().map(|word| format!("{word}-1-4194999.plimsoll")).collect();
        let foreign = [
            "find-100-4194999.txt",
            "find-100-4194999x.html",
            "find-50-77.plimsoll",
            "find-abc-1.plimsoll",
            "find-1.plimsoll",
            "mine.plimsoll",
            "notes.html",
            "sweep-100-4194999.plimsoll",
            "sweep.plimsoll",
        ];
        let all = own.iter().chain(&other_own).chain(&foreign).copied();
        let all: Vec<&str> = all.chain(all_commands.iter().map(String::as_str)).collect();
        let folder = create_test_folder("removed", &all);
        fs::create_dir(folder.join("run-10-4194999.plimsoll")).expect("a folder");
        std::os::unix::fs::symlink("mine.plimsoll", folder.join("run-11-4194999.plimsoll")).expect("a link");

        let found = stored_runs(&folder).expect("readable");
        let began: Vec<(u64, usize)> = found.iter().map(|run| (run.began_unix_s, run.files.len())).collect();
        assert_eq!(began[..3], [(300, 2), (200, 1), (100, 3)]);
        assert_eq!(began[3..], vec![(1, 1); commands.len()]);
        for run in removable_runs(found, 1) {
            remove(&run).expect("removed");
        }
        let mut left: Vec<String> = foreign.iter().chain(&other_own[..2]).map(|name| (*name).to_owned()).collect();
        left.extend(["run-10-4194999.plimsoll".to_owned(), "run-11-4194999.plimsoll".to_owned()]);
        left.sort();
        assert_eq!(sorted_file_names(&folder), left);
        assert!(stored_runs(&folder.join("nowhere")).expect("no folder, no runs").is_empty());
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn an_unfinished_run_is_not_removed() {
        // Process 1 always exists, so a run of process 1 counts as unfinished.
        let folder = create_test_folder("under-way", &["run-100-1.plimsoll", "run-200-4194999.plimsoll"]);
        let surplus = removable_runs(stored_runs(&folder).expect("readable"), 0);
        assert_eq!(surplus.iter().map(|run| run.began_unix_s).collect::<Vec<_>>(), [200]);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn only_the_results_folder_is_cleaned() {
        assert_eq!(remove_oldest_runs(Path::new("elsewhere/find-1-2.plimsoll")), None);
        assert_eq!(remove_oldest_runs(Path::new("find.plimsoll")), None);
    }
}
