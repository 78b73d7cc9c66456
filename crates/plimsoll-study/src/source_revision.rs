//! The commit that is checked out in the current folder ([`current`]), as a run file records it:
//! git is asked, and does not have long.
//!
//! Not here: revisions that are built and compared (`git_builds`).

use plimsoll_model::SourceRevision;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// git has so long for the commit, also on a machine that is busy.
const COMMIT_MAX: Duration = Duration::from_secs(10);
/// It has so long for the state of the files; in a repository of a million files it takes longer,
/// and the state is then not known.
const STATUS_MAX: Duration = Duration::from_secs(3);
/// Variables by which CI services name the branch, where they check out a commit and no branch.
const BRANCH_VARIABLES: [&str; 4] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH"];
/// Longest name of a branch that is recorded.
const BRANCH_CHARS_MAX: usize = 200;

/// The commit of the current folder; `None` without git, outside a repository, and before the first
/// commit.
pub fn current() -> Option<SourceRevision> {
    let until = Instant::now() + COMMIT_MAX;
    let head = git(&["show", "--no-patch", "--format=%H %ct", "HEAD"], until)?;
    let (commit, committed) = head.trim().split_once(' ')?;
    let branch = git(&["symbolic-ref", "--quiet", "--short", "HEAD"], until).or_else(branch_of_variables);
    let branch = branch.map(|name| name.trim().to_owned()).filter(|name| is_branch(name));
    // Files of a build are not tracked, and change nothing of the sources.
    let changed = git(&["status", "--porcelain", "--untracked-files=no"], Instant::now() + STATUS_MAX);
    let dirty = changed.map(|lines| !lines.trim().is_empty());
    Some(SourceRevision { commit: commit.to_owned(), branch, dirty, committed_unix_s: committed.parse().ok() })
}

fn branch_of_variables() -> Option<String> {
    BRANCH_VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).find(|name| !name.trim().is_empty())
}

fn is_branch(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= BRANCH_CHARS_MAX && !name.chars().any(char::is_control)
}

/// What git prints; `None` where it fails, or not in time.
fn git(words: &[&str], until: Instant) -> Option<String> {
    let mut command = Command::new("git");
    // Nothing of the repository is written, and no program that its configuration names is started.
    command.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false"]).args(words);
    // ^C is for plimsoll.
    command.process_group(0).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().ok()?;
    let (answer, answered) = channel();
    std::thread::spawn(move || _ = answer.send(child.wait_with_output()));
    let output = answered.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
