//! Compares git revisions of the current repository. Each side of the comparison is checked out
//! into a temporary worktree and built once. plimsoll starts the server of a built revision like
//! any other build under test.
//!
//! The worktrees are removed however plimsoll ends. A shell waits for the end of a pipe that only
//! plimsoll holds open, then removes the worktrees. Not here: starting and ending a build
//! (`subject`).

use crate::subject;
use plimsoll_model::experiment_settings::{BuildsSettings, parse_git_revision};
use plimsoll_model::failure::Failure;
use plimsoll_model::redact;
use plimsoll_sys::system_text;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The largest number of files that a warning about uncommitted changes names.
const CHANGED_FILES_SHOWN_MAX: usize = 5;

/// Shell script that waits for the end of plimsoll, then removes the worktrees. `$1` is the
/// repository, `$2` the folder of the worktrees.
const WORKTREE_REMOVAL_SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
cat >/dev/null
for tree in "$2"/*; do git -C "$1" worktree remove --force --force "$tree"; done >/dev/null 2>&1
rm -rf "$2" 2>/dev/null || { sleep 3; rm -rf "$2"; }
for known in "$(git -C "$1" rev-parse --git-common-dir)"/worktrees/*; do
    case "$(cat "$known/gitdir" 2>/dev/null)" in "$2"/*) rm -rf "$known" ;; esac
done
"#;

/// A git revision that is one side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisionSide {
    /// `git:REV` as the user gave it, followed by the commit.
    pub name: String,
    /// The name of the side in the run file: `git:COMMIT`. The commit still identifies the same
    /// sources if a branch moves later.
    pub record: String,
    /// The shell command that starts the server of this revision in its worktree.
    pub command: String,
}

/// The checked-out and built revisions of a comparison. Dropping this value removes their
/// worktrees.
pub struct RevisionBuilds {
    /// Sides A and B; `None` for a side that is a command instead of a revision.
    pub sides: [Option<RevisionSide>; 2],
    /// Warnings for the user, such as uncommitted changes.
    pub warnings: Vec<String>,
    _worktrees: Worktrees,
}

/// A temporary folder of worktrees, and the shell that removes the folder when its pipe closes.
/// Dropping a `Worktrees` closes the pipe.
struct Worktrees {
    folder: PathBuf,
    remover: Option<Child>,
}

impl Drop for Worktrees {
    fn drop(&mut self) {
        if let Some(mut remover) = self.remover.take() {
            drop(remover.stdin.take());
            // The result is ignored: a destructor cannot report errors.
            let _ = remover.wait();
        }
    }
}

/// Whether at least one side of the comparison is a git revision.
pub fn any_revision(builds: &BuildsSettings<String>) -> bool {
    [&builds.a, &builds.b].into_iter().flatten().any(|side| parse_git_revision(side).is_some())
}

/// Checks out and builds the revisions of a comparison. Build logs are written next to `output`,
/// and `tell` receives progress messages. Returns `None` if neither side is a git revision.
pub fn build_revisions(
    builds: &BuildsSettings<String>,
    port: u16,
    output: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Option<RevisionBuilds>, Failure> {
    if !any_revision(builds) {
        return Ok(None);
    }
    let missing = || Failure::usage("git:REV needs --start CMD, the command that starts the server: add --start");
    let start = builds.start.as_deref().ok_or_else(missing)?;
    let repository = Repository::current_repository().map_err(|why| Failure::usage(format!("git:REV: {why}")))?;
    let mut commits = Vec::new();
    for (flag, side) in [("--a", &builds.a), ("--b", &builds.b)] {
        let commit = side.as_deref().and_then(parse_git_revision).map(|name| repository.resolve_commit(flag, name));
        commits.push(commit.transpose()?);
    }
    let head = repository.run_git_in_repository(&["rev-parse", "HEAD"]).unwrap_or_default();
    let compares_head = commits.iter().flatten().any(|commit| *commit == head);
    let warnings = if compares_head { repository.uncommitted_changes_warning()? } else { None };
    let worktrees = repository.create_worktree_folder().map_err(|error| {
        Failure::cannot_start(format!(
            "a folder for git worktrees could not be made: {reason}",
            reason = system_text(&error)
        ))
    })?;
    let mut sides = [None, None];
    for (number, (side, commit)) in [&builds.a, &builds.b].into_iter().zip(&commits).enumerate() {
        let (Some(side), Some(commit)) = (side, commit) else { continue };
        let letter = ['a', 'b'][number];
        let tree = worktrees.folder.join(letter.to_string());
        repository.check_out(&format!("--{letter} {side}"), commit, &tree)?;
        let folder = tree.join(&repository.inner);
        let short: String = commit.chars().take(10).collect();
        let name = if side.ends_with(commit) { format!("git:{short}") } else { format!("{side} ({short})") };
        if let Some(build) = &builds.build {
            tell(&format!("building {name}"));
            let log = output.with_extension(format!("build-{letter}.log"));
            subject::run_build_command(
                &format!("--build for {side}"),
                &subject::with_port(build, port),
                &folder,
                &log,
            )?;
        }
        let command = subject::command_in_folder(&folder, &subject::server_start_command(start, port));
        sides[number] = Some(RevisionSide { name, record: format!("git:{commit}"), command });
    }
    Ok(Some(RevisionBuilds { sides, warnings: warnings.into_iter().collect(), _worktrees: worktrees }))
}

/// The git repository that contains the current folder.
struct Repository {
    top: PathBuf,
    /// The path of the current folder relative to the repository.
    inner: PathBuf,
}

impl Repository {
    fn current_repository() -> Result<Repository, String> {
        let at = |what: &str| run_git(Path::new("."), &["rev-parse", what]);
        let top = at("--show-toplevel").map_err(|why| match why {
            GitFailure::NotStarted(_) => why.to_string(),
            GitFailure::Refused(_) => {
                "this folder is not in a git repository: start plimsoll in the repository of the server".to_owned()
            }
        })?;
        let inner = at("--show-prefix").unwrap_or_default();
        Ok(Repository { top: top.into(), inner: inner.into() })
    }

    fn run_git_in_repository(&self, words: &[&str]) -> Result<String, GitFailure> {
        run_git(&self.top, words)
    }

    /// Resolves a revision's name to its commit.
    fn resolve_commit(&self, flag: &str, name: &str) -> Result<String, Failure> {
        let found = self.run_git_in_repository(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &format!("{name}^{{commit}}"),
        ]);
        found.map_err(|_| {
            Failure::usage(format!(
                "{flag} git:{name}: this repository has no such revision; in a shallow clone, run git fetch \
                --unshallow"
            ))
        })
    }

    /// Returns a warning if files of the repository differ from HEAD, because uncommitted changes
    /// are not built.
    fn uncommitted_changes_warning(&self) -> Result<Option<String>, Failure> {
        let status = self.run_git_in_repository(&["-c", "core.quotePath=false", "status", "--porcelain"]);
        let status = status.map_err(|why| Failure::cannot_start(format!("git status: {why}")))?;
        // Names that begin with `_output` are result files of earlier runs, not sources of the
        // server.
        let names = status.lines().filter_map(|line| line.trim_start().split_once(' ').map(|(_, name)| name.trim()));
        let names: Vec<&str> = names.filter(|name| !name.starts_with("_output")).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let shown: Vec<String> =
            names.iter().take(CHANGED_FILES_SHOWN_MAX).map(|name| redact::redact_path(name)).collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(Some(format!("HEAD is compared without the uncommitted changes: {files}{more}", files = shown.join(", "))))
    }

    /// Creates the temporary folder for worktrees, and starts the shell that removes it later.
    fn create_worktree_folder(&self) -> io::Result<Worktrees> {
        let temporary = std::env::temp_dir().canonicalize()?;
        let folder = temporary.join(format!("plimsoll-worktrees-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let mut remover = Command::new("sh");
        remover.args(["-c", WORKTREE_REMOVAL_SCRIPT, "plimsoll-remove"]).arg(&self.top).arg(&folder);
        remover.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Worktrees { folder, remover: Some(remover.spawn()?) })
    }

    fn check_out(&self, side: &str, commit: &str, tree: &Path) -> Result<(), Failure> {
        let tree = tree.to_string_lossy();
        let done = self.run_git_in_repository(&["worktree", "add", "--quiet", "--force", "--detach", &tree, commit]);
        done.map(|_| ())
            .map_err(|reason| Failure::cannot_start(format!("{side}: no git worktree could be made: {reason}")))
    }
}

/// The reason why a call of git failed.
enum GitFailure {
    NotStarted(io::Error),
    /// Git exited with an error; the value is the last line of its error output.
    Refused(String),
}

impl fmt::Display for GitFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GitFailure::NotStarted(error) => {
                write!(f, "git cannot be started: {reason}", reason = system_text(error))
            }
            GitFailure::Refused(said) => f.write_str(said),
        }
    }
}

/// Runs git in a folder and returns its output without the final line break.
fn run_git(folder: &Path, words: &[&str]) -> Result<String, GitFailure> {
    let mut command = Command::new("git");
    // git gets its own process group, so that ^C reaches only plimsoll.
    command.arg("-C").arg(folder).args(words).stdin(Stdio::null()).process_group(0);
    let done = command.output().map_err(GitFailure::NotStarted)?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned()),
        false => {
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            Err(GitFailure::Refused(redact::redact_line(said.lines().next_back().unwrap_or("git refused"))))
        }
    }
}
