//! The checked-out commit of the current folder ([`current`]), for the run file. git is called with
//! a timeout.
//!
//! The end of git's output is not awaited, because other threads may have a copy of the pipe. The
//! output is read once git has ended.
//!
//! Not here: revisions that are built and compared (`git_builds`).

use plimsoll_model::SourceRevision;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Timeout for the commit, even on a busy machine.
const COMMIT_MAX: Duration = Duration::from_secs(10);
/// Timeout for the state of the files; in a repository of a million files it is exceeded, and the
/// state is unknown.
const STATE_MAX: Duration = Duration::from_secs(3);
/// Interval of checks whether git has ended.
const LOOK: Duration = Duration::from_millis(2);
/// Longest output that is read, bytes; a pipe holds more.
const ANSWER_BYTES_MAX: usize = 4096;
/// Variables with the branch in CI services, which check out a commit without a branch.
const BRANCH_VARIABLES: [&str; 4] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH"];
/// Longest recorded name of a branch, in characters.
const BRANCH_CHARS_MAX: usize = 200;

/// The commit of the current folder; `None` without git, outside a repository, and before the first
/// commit.
pub fn current() -> Option<SourceRevision> {
    let until = Instant::now() + COMMIT_MAX;
    let head = answer(&["show", "--no-patch", "--format=%H %ct", "HEAD"], until)?;
    let (commit, committed) = head.trim().split_once(' ')?;
    let branch = answer(&["symbolic-ref", "--quiet", "--short", "HEAD"], until).or_else(branch_of_variables);
    let branch = branch.map(|name| name.trim().to_owned()).filter(|name| is_branch(name));
    // Untracked files, such as build output, are no sources.
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

/// The output of git; `None` if it fails or times out.
fn answer(words: &[&str], until: Instant) -> Option<String> {
    let (status, child) = run_git(words, until)?;
    if !status.success() {
        return None;
    }
    let mut bytes = [0; ANSWER_BYTES_MAX];
    let length = child.stdout?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// git after its end, with its status; `None` if it did not start or timed out.
fn run_git(words: &[&str], until: Instant) -> Option<(ExitStatus, Child)> {
    let mut command = Command::new("git");
    // The repository is not written, and no configured program is started.
    command.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false"]).args(words);
    // ^C must reach only plimsoll.
    command.process_group(0).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some((status, child)),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            _ => {
                // It is our child, and its output is not needed.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
