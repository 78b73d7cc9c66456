//! Determines the checked-out git commit of the current folder ([`current_revision`]) for the run
//! file. git is called with a timeout.
//!
//! The output of git is read once git has exited, without waiting for the end of the pipe. Threads
//! of plimsoll with their own table of open files may have copies of the pipe, so its end could
//! come late.
//!
//! Not here: revisions that are built and compared (`git_builds`).

use plimsoll_model::SourceRevision;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The timeout for reading the commit (10 s). On a busy machine, git may need seconds to read the
/// commit.
const COMMIT_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for the check whether files changed (3 s). A repository with a million files needs
/// longer for the check, so its run file has no information about changes.
const CHANGE_CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval of checks whether git has exited.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// The longest output of git that is read, bytes. The buffer of a pipe is larger than this output,
/// so git never blocks while writing.
const GIT_OUTPUT_BYTES_MAX: usize = 4096;
/// Environment variables that name the branch in CI services, where git knows only a commit and no
/// branch.
const BRANCH_VARIABLES: [&str; 4] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH"];
/// The longest recorded name of a branch, in characters.
const BRANCH_CHARS_MAX: usize = 200;

/// Returns the commit and branch of the current folder, and whether files changed. `None` without
/// git, outside a repository, and before the first commit.
pub fn current_revision() -> Option<SourceRevision> {
    let until = Instant::now() + COMMIT_READ_TIMEOUT;
    let head = git_output(&["show", "--no-patch", "--format=%H %ct", "HEAD"], until)?;
    let (commit, committed) = head.trim().split_once(' ')?;
    let branch = git_output(&["symbolic-ref", "--quiet", "--short", "HEAD"], until).or_else(branch_from_environment);
    let branch = branch.map(|name| name.trim().to_owned()).filter(|name| is_branch(name));
    // Untracked files, such as build output, do not count as changes of the sources.
    let compare = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--"];
    let compared = run_git(&compare, Instant::now() + CHANGE_CHECK_TIMEOUT).and_then(|(status, _)| status.code());
    let dirty = compared.filter(|code| [0, 1].contains(code)).map(|code| code == 1);
    Some(SourceRevision { commit: commit.to_owned(), branch, dirty, committed_unix_s: committed.parse().ok() })
}

fn branch_from_environment() -> Option<String> {
    BRANCH_VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).find(|name| !name.trim().is_empty())
}

fn is_branch(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= BRANCH_CHARS_MAX && !name.chars().any(char::is_control)
}

/// Runs git and returns its output; `None` if git fails or times out.
fn git_output(words: &[&str], until: Instant) -> Option<String> {
    let (status, child) = run_git(words, until)?;
    if !status.success() {
        return None;
    }
    let mut bytes = [0; GIT_OUTPUT_BYTES_MAX];
    let length = child.stdout?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Runs git until it exits. Returns its status and the process; `None` if git did not start or
/// timed out.
fn run_git(words: &[&str], until: Instant) -> Option<(ExitStatus, Child)> {
    let mut command = Command::new("git");
    // `GIT_OPTIONAL_LOCKS` and `core.fsmonitor` are off, so that git neither writes to the
    // repository nor starts other programs.
    command.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false"]).args(words);
    // git has its own process group, so that ^C reaches only plimsoll.
    command.process_group(0).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some((status, child)),
            Ok(None) if Instant::now() < until => std::thread::sleep(EXIT_CHECK_INTERVAL),
            _ => {
                // git timed out; its output is not needed.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
