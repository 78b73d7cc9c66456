//! Starts and stops a build under test: a command under a keeper process (`build_keeper`), with its
//! output in a file. All processes of the build are ended, even if plimsoll is killed. The next
//! build begins only when the port is free. The server of the demo is also started under a keeper
//! process ([`HelperProgram`]).
//!
//! Not here: measuring the build, and the keeper process (`build_keeper`).

use crate::base::ResolvedTarget;
use crate::bounded_log;
use crate::build_keeper::{self, OrphanPolicy};
use crate::preflight;
use plimsoll_model::failure::Failure;
use plimsoll_model::redact;
use plimsoll_model::shell;
use plimsoll_probe::ServerFinder;
use plimsoll_sys::group::{self, CpuClocks, DescendantSet};
use plimsoll_sys::signal;
use plimsoll_sys::system_text;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time that a build has to end by itself after SIGTERM, before it gets SIGKILL.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a build has to end by itself before it gets SIGKILL, after the user pressed ^C.
const INTERRUPTED_END_TIMEOUT: Duration = Duration::from_millis(400);
/// The longest wait for a free address before the first build. Another process may still use the
/// address because the process is just ending.
const FREE_ADDRESS_TIMEOUT_FIRST: Duration = Duration::from_secs(1);
/// The longest wait for a free address after a build, because the kernel or a detached process may
/// still use the address.
const FREE_ADDRESS_TIMEOUT_AFTER: Duration = Duration::from_secs(15);
/// The interval of checks while waiting for a build, a command or an address.
const WAIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The timeout of a command that compiles a build (1 h).
const BUILD_TIMEOUT: Duration = Duration::from_secs(3600);
/// The number of output lines that an error about a failed command shows.
const LAST_LINES: usize = 3;
/// The timeout of a user's command that prepares a load (`--before-block`, `--vary`).
const PREPARE_TIMEOUT: Duration = Duration::from_secs(300);

/// A build under test and how to start it.
#[derive(Debug, Clone)]
pub struct BuildUnderTest {
    /// The name of the side of the comparison: A, B, ...
    pub name: char,
    /// The shell command that starts the server.
    pub command: String,
    /// The file to which the command's output is appended.
    pub output: PathBuf,
    /// The longest time from the start of the build to its first response.
    pub patience: Duration,
    /// Whether another build has run at the same address, so that the address may still be in use
    /// for a while.
    pub after_another: bool,
}

/// A running build under test. Dropping this value ends all processes of the build.
pub struct RunningBuild {
    name: char,
    output: PathBuf,
    keeper_process: KeeperProcess,
    /// Whether the first response used HTTP/2; `None` if no request was sent.
    pub is_h2: Option<bool>,
}

/// A program that a keeper process started. Dropping this value, or the end of plimsoll, ends all
/// processes of the program.
struct KeeperProcess {
    keeper: Child,
    /// The keeper and its descendants, including descendants in other sessions.
    offspring: DescendantSet,
    ended: bool,
}

/// Starts a shell command under a keeper process, with its output in a file. `orphan_policy` says
/// what the keeper does with processes that the command leaves behind.
fn start_shell_command(command: &str, orphan_policy: OrphanPolicy, output: &File) -> std::io::Result<KeeperProcess> {
    let mut keeper = build_keeper::keeper_command("sh", orphan_policy);
    keeper.args(["-c", command]).stdout(output.try_clone()?).stderr(output.try_clone()?);
    KeeperProcess::start(&mut keeper)
}

fn open_output_file(output: &Path) -> Result<File, Failure> {
    let cannot = |e: std::io::Error| {
        Failure::cannot_start(format!("'{}' cannot be written: {}", output.display(), system_text(&e)))
    };
    bounded_log::open(output).map_err(cannot)
}

fn status_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".into(),
    }
}

/// The number of bytes at the end of an output file that are searched for its last lines.
const OUTPUT_END_BYTES: u64 = 4096;

/// Reads the last [`OUTPUT_END_BYTES`] bytes of a file that a program may still be writing.
fn read_last_bytes(output: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(output)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_END_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_END_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the last `count` lines of a file that are not empty, joined for a message.
fn last_lines(output: &Path, count: usize) -> String {
    let text = String::from_utf8_lossy(&read_last_bytes(output).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    let shown = last.iter().map(|line| redact::redact_line(line).chars().take(200).collect::<String>());
    shown.collect::<Vec<_>>().join(" | ")
}

impl BuildUnderTest {
    /// Starts the build and waits until it responds to the request of `base`. Fails if the address
    /// is not free, the build exits, or no response comes in time.
    pub fn start(&self, base: &ResolvedTarget) -> Result<RunningBuild, Failure> {
        let plan = &base.plan;
        let url = plan.record().traffic.url();
        self.wait_for_free_address(base, &url)?;
        let file = open_output_file(&self.output)?;
        let kept = start_shell_command(&self.command, OrphanPolicy::End, &file).map_err(|e| {
            Failure::cannot_start(format!(
                "--{build}: the command cannot be started: {reason}",
                build = self.name.to_ascii_lowercase(),
                reason = system_text(&e)
            ))
        })?;
        let mut running =
            RunningBuild { name: self.name, output: self.output.clone(), keeper_process: kept, is_h2: None };
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(exit_reason) = running.exit_reason() {
                return Err(Failure::cannot_start(format!("the server did not respond at {url}: {exit_reason}")));
            }
            if signal::is_stop_requested() {
                return Err(Failure::cannot_start(format!(
                    "interrupted while {build} was starting",
                    build = self.name
                )));
            }
            if preflight::is_address_in_use(plan) {
                match preflight::send_preflight_request(plan, &base.injector) {
                    Ok(answer) => {
                        running.is_h2 = answer.map(|answer| answer.is_h2);
                        return Ok(running);
                    }
                    Err(failure) if Instant::now() >= deadline => return Err(failure),
                    Err(_) => {}
                }
            }
            if Instant::now() >= deadline {
                return Err(Failure::cannot_start(format!(
                    "{build} did not respond at {url} within {seconds} s (--start-timeout); its output: {output_file}",
                    build = self.name,
                    seconds = self.patience.as_secs_f64(),
                    output_file = self.output.display()
                )));
            }
            std::thread::sleep(WAIT_CHECK_INTERVAL);
        }
    }

    /// Waits until no process listens at the address. If a process still listens after the timeout,
    /// the error names that process.
    fn wait_for_free_address(&self, base: &ResolvedTarget, url: &str) -> Result<(), Failure> {
        let patience = if self.after_another { FREE_ADDRESS_TIMEOUT_AFTER } else { FREE_ADDRESS_TIMEOUT_FIRST };
        let deadline = Instant::now() + patience;
        while preflight::is_address_in_use(&base.plan) {
            if signal::is_stop_requested() {
                return Err(Failure::cannot_start(format!(
                    "interrupted before {build} was started",
                    build = self.name
                )));
            }
            if Instant::now() >= deadline {
                let finder = ServerFinder::for_listener_process(&base.watch_target(&base.url_resolver()));
                let process = finder.initial_result().as_ref().map(|found| {
                    let name: String = found.name.chars().filter(|c| !c.is_control()).collect();
                    format!("process {} ({name})", found.roots.first().unwrap_or(&0))
                });
                let process = process.unwrap_or_else(|_| "another process".into());
                let (build, seconds) = (self.name.to_ascii_lowercase(), patience.as_secs());
                return Err(Failure::cannot_start(match self.after_another {
                    true => format!(
                        "{process} still responds at {url}, {seconds} s after the last build was ended: end this \
                         process first, so that plimsoll measures the build of --{build}"
                    ),
                    false => format!(
                        "{process} already responds at {url}: end this process first, so that plimsoll measures the \
                         build of --{build}"
                    ),
                }));
            }
            std::thread::sleep(WAIT_CHECK_INTERVAL);
        }
        Ok(())
    }
}

impl RunningBuild {
    /// Returns a sentence with the exit status and the last output if the build has exited; `None`
    /// while the build runs.
    pub fn exit_reason(&mut self) -> Option<String> {
        let status = self.keeper_process.keeper.try_wait().ok().flatten()?;
        let line = last_lines(&self.output, 1);
        let last_output = if line.is_empty() { String::new() } else { format!("; its last output: {line}") };
        Some(format!(
            "{build} ended unexpectedly with {exit_status}{last_output} ({output_file})",
            build = self.name,
            exit_status = status_text(status),
            output_file = self.output.display()
        ))
    }

    /// Returns the CPU clocks of the build's processes, without the keeper process.
    pub fn cpu_clocks(&self) -> CpuClocks {
        let mut pids = self.keeper_process.offspring.living_pids();
        pids.retain(|pid| *pid != self.keeper_process.keeper.id());
        CpuClocks::for_processes(&pids)
    }

    /// Ends all processes of the build: SIGTERM, then SIGKILL after a while.
    pub fn end(mut self) -> Result<(), Failure> {
        self.keeper_process.end().map_err(|e| {
            Failure::cannot_start(format!(
                "{build} could not be ended: {reason}",
                build = self.name,
                reason = system_text(&e)
            ))
        })
    }
}

impl KeeperProcess {
    /// Starts a keeper process, which starts its program. All descendants of the keeper are ended
    /// when the returned value is dropped or plimsoll exits.
    fn start(keeper: &mut std::process::Command) -> std::io::Result<KeeperProcess> {
        // If the kernel does not let plimsoll adopt orphans, plimsoll does not find processes that
        // outlive their keeper.
        let _ = group::adopt_orphans();
        let offspring = DescendantSet::started_from_now();
        Ok(KeeperProcess { keeper: keeper.spawn()?, offspring, ended: false })
    }

    /// Ends all processes: sends SIGTERM, waits up to [`END_TIMEOUT`], then sends SIGKILL.
    fn end(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.offspring.end(|| if signal::is_stop_requested() { INTERRUPTED_END_TIMEOUT } else { END_TIMEOUT })?;
        self.keeper.wait()?;
        self.offspring.reap_orphans(self.keeper.id());
        bounded_log::truncate_all_logs();
        Ok(())
    }
}

impl Drop for KeeperProcess {
    fn drop(&mut self) {
        // The error is ignored, because a destructor cannot report errors.
        let _ = self.end();
    }
}

/// A running helper program of plimsoll, such as the server of the demo. Dropping a `HelperProgram`
/// ends its program.
pub struct HelperProgram {
    output_line: String,
    keeper_process: KeeperProcess,
}

impl HelperProgram {
    /// Starts the helper and waits until it has printed its first line.
    pub fn start(program: &Path, arguments: &[&str]) -> std::io::Result<HelperProgram> {
        let mut keeper = build_keeper::keeper_command(program, OrphanPolicy::End);
        keeper.args(arguments).stdout(Stdio::piped());
        let mut helper =
            HelperProgram { output_line: String::new(), keeper_process: KeeperProcess::start(&mut keeper)? };
        if let Some(output) = helper.keeper_process.keeper.stdout.take() {
            BufReader::new(output).read_line(&mut helper.output_line)?;
        }
        match helper.first_line().is_empty() {
            true => Err(std::io::Error::other("the command ended without output")),
            false => Ok(helper),
        }
    }

    /// Returns the first line that the helper printed.
    pub fn first_line(&self) -> &str {
        self.output_line.trim()
    }

    /// Ends all processes of the helper. Returns an error if a process could not be ended.
    pub fn end(mut self) -> std::io::Result<()> {
        self.keeper_process.end()
    }
}

/// Runs a user's command, such as the command of `--before-block`, until the command exits. The
/// command's output is appended to `output`.
pub fn run_user_command(flag: &str, command: &str, output: &Path) -> Result<(), Failure> {
    run_command_until_exit(
        &format!("{flag} '{}'", redact::redact_command_to_program(command)),
        command,
        output,
        PREPARE_TIMEOUT,
    )
}

/// Runs a command that compiles a build in `folder`, and waits until the command exits. The timeout
/// of a compilation is longer than the timeout of [`run_user_command`].
pub fn run_build_command(what: &str, command: &str, folder: &Path, output: &Path) -> Result<(), Failure> {
    run_command_until_exit(what, &command_in_folder(folder, command), output, BUILD_TIMEOUT)
}

/// Returns a command with its placeholder `{port}` replaced.
pub fn with_port(command: &str, port: u16) -> String {
    command.replace("{port}", &port.to_string())
}

/// Returns the shell command that starts a server. The port is inserted into the command, and is
/// also in the environment variable `PORT`.
pub fn server_start_command(command: &str, port: u16) -> String {
    format!("PORT={port}; export PORT; {}", with_port(command, port))
}

/// Returns a shell command that runs `command` in a folder.
pub fn command_in_folder(folder: &Path, command: &str) -> String {
    format!("cd {} && {command}", shell::quote(&folder.display().to_string()))
}

/// Runs a command until the command exits or the time `patience` is over. `command_name` is the
/// command's name in error messages.
fn run_command_until_exit(command_name: &str, command: &str, output: &Path, patience: Duration) -> Result<(), Failure> {
    let file = open_output_file(output)?;
    let no_start = |e: std::io::Error| {
        Failure::cannot_start(format!(
            "{command_name}: the command cannot be started: {reason}",
            reason = system_text(&e)
        ))
    };
    let mut kept = start_shell_command(command, OrphanPolicy::Stay, &file).map_err(no_start)?;
    let deadline = Instant::now() + patience;
    loop {
        let no_status = |e: std::io::Error| Failure::cannot_start(format!("{command_name}: {}", system_text(&e)));
        let status = kept.keeper.try_wait().map_err(no_status)?;
        let why = match status {
            Some(status) if status.success() => {
                // The command may leave processes running on purpose, so the remaining processes
                // are not ended.
                kept.ended = true;
                bounded_log::truncate_all_logs();
                return Ok(());
            }
            Some(status) => {
                let last = last_lines(output, LAST_LINES);
                let last_output = if last.is_empty() { String::new() } else { format!("; its last output: {last}") };
                format!(
                    "the command ended with {exit_status}{last_output} ({output_file})",
                    exit_status = status_text(status),
                    output_file = output.display()
                )
            }
            None if signal::is_stop_requested() => "interrupted".into(),
            None if Instant::now() >= deadline => {
                format!("the command did not end within {seconds} s", seconds = patience.as_secs())
            }
            None => {
                std::thread::sleep(WAIT_CHECK_INTERVAL);
                continue;
            }
        };
        return Err(Failure::cannot_start(format!("{command_name}: {why}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_an_output_of_any_length_are_read() {
        let path = std::env::temp_dir().join(format!("plimsoll-{}-last-words", std::process::id()));
        let mut file = File::create(&path).expect("a file");
        // The file is 1 TiB long, but sparse, so the file needs almost no space on the disk.
        file.set_len(1 << 40).expect("a hole");
        file.seek(SeekFrom::End(0)).expect("its end");
        std::io::Write::write_all(&mut file, b"\nlistening\npanic: out of luck\n\n").expect("written");
        assert_eq!(last_lines(&path, 1), "panic: out of luck");
        assert_eq!(read_last_bytes(&path).expect("read").len() as u64, OUTPUT_END_BYTES);
        std::fs::write(&path, "short").expect("written");
        assert_eq!(last_lines(&path, 1), "short");
        std::fs::remove_file(&path).expect("removed");
    }
}
