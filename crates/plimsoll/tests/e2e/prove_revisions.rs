//! Tests `plimsoll prove` with two git revisions. Each revision is built and started in its own
//! worktree, and all worktrees are removed at the end.
//!
//! Not here: builds that are started by a command (`prove`, `builds`).

use crate::prove::{free_port, wait_for};
use crate::test_support::{CommandOutcome, command, create_new_folder, signal, wait_for_exit};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server that responds after the delay in the file `delay`, in seconds. The script `build`
/// creates that file.
const DELAY_SERVER_SOURCE: &str = "
import http.server, sys, time
DELAY = float(open('delay').read())
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = 4096
    disable_nagle_algorithm = True
    def do_GET(self):
        time.sleep(DELAY)
        self.send_response(200)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'ok')
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

const SERVER_START_COMMAND: &str = "exec python3 server.py {port}";

fn run_git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]).args(words);
    let done = command.current_dir(folder).output().expect("git");
    assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text").trim().to_owned()
}

/// Creates a repository with three commits: a fast server, a slow server, and a server that cannot
/// be built.
fn create_repository() -> PathBuf {
    let folder = create_new_folder("repository");
    run_git(&folder, &["init", "--quiet"]);
    std::fs::write(folder.join("server.py"), DELAY_SERVER_SOURCE).expect("written");
    for (tag, build) in
        [("fast", "echo 0.002 > delay"), ("slow", "echo 0.05 > delay"), ("broken", "echo no luck; exit 3")]
    {
        std::fs::write(folder.join("build"), build).expect("written");
        run_git(&folder, &["add", "."]);
        run_git(&folder, &["commit", "--quiet", "-m", tag]);
        run_git(&folder, &["tag", tag]);
    }
    run_git(&folder, &["reset", "--quiet", "--hard", "slow"]);
    folder
}

fn run_prove(folder: &Path, arguments: &[&str]) -> CommandOutcome {
    let mut command = command(&[&["prove"], arguments].concat());
    let child = command
        .current_dir(folder)
        .env("TMPDIR", worktree_parent_folder(folder))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    wait_for_exit(child.spawn().expect("the binary starts"))
}

/// Returns the folder in which the comparison of a repository creates its worktrees.
fn worktree_parent_folder(repository: &Path) -> PathBuf {
    let folder = repository.with_extension("tmp");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Whether no worktree is left, neither as a folder nor in git's list.
fn has_no_worktrees_left(repository: &Path) -> bool {
    let folders = std::fs::read_dir(worktree_parent_folder(repository)).expect("a folder").count();
    folders == 0 && run_git(repository, &["worktree", "list"]).lines().count() == 1
}

#[test]
fn a_slower_revision_is_worse() {
    let repository = create_repository();
    std::fs::write(repository.join("notes"), "not committed").expect("written");
    let sides =
        ["--a", "git:fast", "--b", "git:HEAD", "--build", "sh build", "--start", SERVER_START_COMMAND, "/items"];
    // The comparison ends when its verdict is certain, which takes longer on a busy machine.
    let load = ["--budget", "90s", "-c", "4", "--for", "300ms", "--warmup", "100ms", "--fail-if", "worse", "--json"];
    let done = run_prove(&repository, &[&sides[..], &load].concat());
    assert_eq!(done.code, 1, "{}{}", done.stdout, done.stderr);
    let document = done.json();
    assert_eq!(document["verdict"], "worse", "{document:#}");
    let short = &run_git(&repository, &["rev-parse", "slow"])[..10];
    assert_eq!(document["sides"][1], format!("git:HEAD ({short})"), "{document:#}");
    assert!(document["warnings"].to_string().contains("without the uncommitted changes: notes"), "{document:#}");
    assert!(has_no_worktrees_left(&repository));
}

#[test]
fn a_revision_that_cannot_be_measured_is_one_sentence() {
    let repository = create_repository();
    let elsewhere = create_new_folder("no-repository");
    // Cargo's folder for tests lies inside a repository, so this file hides that repository from
    // git.
    std::fs::write(elsewhere.join(".git"), "gitdir: nowhere").expect("written");
    let port = free_port().to_string();
    let url = format!("http://127.0.0.1:{port}/");
    let (a, b, build) = (["--a", "git:fast"], ["--b", "git:slow"], ["--build", "sh build"]);
    for (place, arguments, said) in [
        (&repository, [&a[..], &b, &[&url]].concat(), "--a git:fast: the start command is missing. Add --start"),
        (
            &repository,
            [&a[..], &["--b", "git:-x", "--start", SERVER_START_COMMAND]].concat(),
            "--b: write git: and the name",
        ),
        (
            &repository,
            [&a[..], &["--b", "git:nowhere", "--start", SERVER_START_COMMAND]].concat(),
            "--b git:nowhere: this repo",
        ),
        (
            &repository,
            ["--a", "./a", "--b", "./b", "--start", SERVER_START_COMMAND, &url].to_vec(),
            "--start: the command starts a revision",
        ),
        (&elsewhere, [&a[..], &b, &["--start", SERVER_START_COMMAND]].concat(), "not in a git repository"),
        (
            &repository,
            [&a[..], &["--b", "git:broken"], &build, &["--start", SERVER_START_COMMAND]].concat(),
            "--build for git:broken: the command ended with exit code 3; its last output: no luck",
        ),
        (
            &repository,
            [&a[..], &b, &build, &["--start", "exec sleep 60", "--start-timeout", "300ms"]].concat(),
            "A did not respond at http://127.0.0.1:",
        ),
    ] {
        let done = run_prove(place, &[&arguments[..], &["--quiet"]].concat());
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{arguments:?} is not one sentence: {}", done.stderr);
        let is_stated = done.stderr.starts_with("plimsoll: ") && done.stderr.contains(said);
        assert!(is_stated, "{arguments:?}: {}", done.stderr);
        assert!(place == &elsewhere || has_no_worktrees_left(&repository), "{arguments:?} leaves worktrees");
    }
}

/// Checks that the worktrees are removed, however plimsoll ends during a build.
#[test]
fn worktrees_are_removed_however_plimsoll_ends() {
    for name in ["INT", "TERM", "KILL"] {
        let repository = create_repository();
        let build = "touch building; exec sleep 60";
        let mut command = command(&["prove", "--quiet", "--a", "git:fast", "--b", "git:slow", "--build", build]);
        command
            .args(["--start", SERVER_START_COMMAND])
            .current_dir(&repository)
            .env("TMPDIR", worktree_parent_folder(&repository));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        wait_for("no build began", || !has_no_worktrees_left(&repository) && is_building(&repository));
        signal(child.id(), name);
        let done = wait_for_exit(child);
        assert!(done.code != 0, "{name}: {}", done.stderr);
        wait_for(&format!("{name} leaves worktrees"), || has_no_worktrees_left(&repository));
    }
}

fn is_building(repository: &Path) -> bool {
    let folders = std::fs::read_dir(worktree_parent_folder(repository)).expect("a folder").flatten();
    folders.map(|folder| folder.path().join("a/building")).any(|file| file.exists())
}
