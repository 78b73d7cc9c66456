//! The commit that is checked out in the current folder ([`current`]), as a run file records it:
//! git is asked, and does not have long.
//!
//! The end of git's output is not waited for: threads with a table of open files of their own may
//! hold a copy of the pipe. What git wrote is read once git has ended.
//!
//! Not here: revisions that are built and compared (`git_builds`).

use plimsoll_model::SourceRevision;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// git has so long for the commit, also on a machine that is busy.
const COMMIT_MAX: Duration = Duration::from_secs(10);
/// It has so long for the state of the files; in a repository of a million files it takes longer,
/// and the state is then not known.
const STATE_MAX: Duration = Duration::from_secs(3);
/// How often is looked whether git has ended.
const LOOK: Duration = Duration::from_millis(2);
/// What is read of an answer; a pipe holds more.
const ANSWER_BYTES_MAX: usize = 4096;
/// Variables by which CI services name the branch, where they check out a commit and no branch.
const BRANCH_VARIABLES: [&str; 4] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH"];
/// Longest name of a branch that is recorded.
const BRANCH_CHARS_MAX: usize = 200;

/// The commit of the current folder; `None` without git, outside a repository, and before the first
/// commit.
pub fn current() -> Option<SourceRevision> {
    let until = Instant::now() + COMMIT_MAX;
    let head = answer(&["show", "--no-patch", "--format=%H %ct", "HEAD"], until)?;
    let (commit, committed) = head.trim().split_once(' ')?;
    let branch = answer(&["symbolic-ref", "--quiet", "--short", "HEAD"], until).or_else(branch_of_variables);
    let branch = branch.map(|name| name.trim().to_owned()).filter(|name| is_branch(name));
    // Files that are not tracked, such as those of a build, are no part of the sources.
    let compare = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--"];
    let compared = run_git(&compare, Instant::now() + STATE_MAX).and_then(|(status, _)| status.code());
    let dirty = compared.filter(|code| [0, 1].contains(code)).map(|code| code == 1);
    Some(SourceRevision { commit: commit.to_owned(), branch, dirty, committed_unix_s: committed.parse().ok() })
}

fn branch_of_variables() -> Option<String> {
    BRANCH_VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).find(|name| !name.trim().is_empty())
}

fn is_branch(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= BRANCH_CHARS_MAX && !name.chars().any(char::is_control)
}

/// What git prints, which is something where it succeeds; `None` where it fails, or not in time.
fn answer(words: &[&str], until: Instant) -> Option<String> {
    let (status, child) = run_git(words, until)?;
    if !status.success() {
        return None;
    }
    let mut bytes = [0; ANSWER_BYTES_MAX];
    let length = child.stdout?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// git when it has ended, and how; `None` where it was not started, or did not end in time.
fn run_git(words: &[&str], until: Instant) -> Option<(ExitStatus, Child)> {
    let mut command = Command::new("git");
    // Nothing of the repository is written, and no program that its configuration names is started.
    command.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false"]).args(words);
    // ^C is for plimsoll.
    command.process_group(0).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some((status, child)),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            _ => {
                // It is ours, and nobody waits for its answer.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
