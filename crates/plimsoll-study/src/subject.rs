//! A build under test that plimsoll starts and stops: a command under a keeper, with its output in
//! a file. All its processes are ended in every case, and its port must be free before the next
//! build begins. The demo's server is started likewise.
//!
//! Not here: its measurement, and the keeper (`build_keeper`).

use crate::base::Base;
use crate::bounded_log;
use crate::build_keeper::{self, OrphanPolicy};
use crate::preflight;
use plimsoll_model::failure::Failure;
use plimsoll_model::redact;
use plimsoll_model::shell;
use plimsoll_probe::Finder;
use plimsoll_sys::group::{self, CpuClocks, Offspring};
use plimsoll_sys::signal;
use plimsoll_sys::system_text;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time that a build gets to end by itself before SIGKILL.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// The same after the user's stop.
const END_PATIENCE_HURRIED: Duration = Duration::from_millis(400);
/// Time for an address to become free. Before the first build, another process may be ending; after
/// a build, the kernel or a detached process may still have the address.
const SILENCE_PATIENCE_FIRST: Duration = Duration::from_secs(1);
const SILENCE_PATIENCE_AFTER: Duration = Duration::from_secs(15);
/// Interval of checks.
const LOOK: Duration = Duration::from_millis(10);
/// Timeout of a build command.
const BUILD_PATIENCE: Duration = Duration::from_secs(3600);
/// Lines of a failed build to show.
const LAST_LINES: usize = 3;
/// Timeout of a preparing command.
const PREPARE_PATIENCE: Duration = Duration::from_secs(300);

/// How to start a build.
#[derive(Debug, Clone)]
pub struct Subject {
    /// A, B, ...
    pub name: char,
    /// The shell command.
    pub command: String,
    /// The file to which its output is appended.
    pub output: PathBuf,
    /// Longest time to its first response.
    pub patience: Duration,
    /// Whether another build was started at the same address before.
    pub after_another: bool,
}

/// A running build; dropping it ends all its processes.
pub struct RunningBuild {
    name: char,
    output: PathBuf,
    kept: KeeperProcess,
    /// Whether its first response used HTTP/2; `None`: no request was sent.
    pub is_h2: Option<bool>,
}

/// A program under a keeper; dropping it, or the end of plimsoll, ends all its processes.
struct KeeperProcess {
    keeper: Child,
    /// The keeper and its descendants, also in other sessions.
    offspring: Offspring,
    ended: bool,
}

/// Starts a shell command under a keeper, with its output in a file.
fn shell(command: &str, left: OrphanPolicy, output: &File) -> std::io::Result<KeeperProcess> {
    let mut keeper = build_keeper::command("sh", left);
    keeper.args(["-c", command]).stdout(output.try_clone()?).stderr(output.try_clone()?);
    KeeperProcess::start(&mut keeper)
}

fn open(output: &Path) -> Result<File, Failure> {
    let cannot =
        |e: std::io::Error| Failure::start(format!("'{}' cannot be written: {}", output.display(), system_text(&e)));
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

/// Bytes at the end of a build's output that are searched for its last lines.
const LAST_BYTES: u64 = 4096;

/// The end of a file of any length, which may grow.
fn end_of(output: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(output)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LAST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last `count` lines of a file that are not empty, joined for a message.
fn last_lines(output: &Path, count: usize) -> String {
    let text = String::from_utf8_lossy(&end_of(output).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    let shown = last.iter().map(|line| redact::line(line).chars().take(200).collect::<String>());
    shown.collect::<Vec<_>>().join(" | ")
}

impl Subject {
    /// Starts the build and waits until it responds to the request of `base`. The address must be
    /// free before.
    pub fn start(&self, base: &Base) -> Result<RunningBuild, Failure> {
        let plan = &base.plan;
        let url = plan.record().traffic.url();
        self.wait_for_silence(base, &url)?;
        let file = open(&self.output)?;
        let kept = shell(&self.command, OrphanPolicy::End, &file).map_err(|e| {
            Failure::start(format!("--{}: it cannot be started: {}", self.name.to_ascii_lowercase(), system_text(&e)))
        })?;
        let mut running = RunningBuild { name: self.name, output: self.output.clone(), kept, is_h2: None };
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(why) = running.died() {
                return Err(Failure::start(format!("{why} before it responded at {url}")));
            }
            if signal::interrupted() {
                return Err(Failure::start(format!("interrupted while {} was starting", self.name)));
            }
            if preflight::is_taken(plan) {
                match preflight::ask(plan, &base.injector) {
                    Ok(answer) => {
                        running.is_h2 = answer.map(|answer| answer.is_h2);
                        return Ok(running);
                    }
                    Err(failure) if Instant::now() >= deadline => return Err(failure),
                    Err(_) => {}
                }
            }
            if Instant::now() >= deadline {
                return Err(Failure::start(format!(
                    "{} did not respond at {url} within {} s (--start-timeout); its output: {}",
                    self.name,
                    self.patience.as_secs_f64(),
                    self.output.display()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the address is free. A remaining listener is another process, and is named.
    fn wait_for_silence(&self, base: &Base, url: &str) -> Result<(), Failure> {
        let patience = if self.after_another { SILENCE_PATIENCE_AFTER } else { SILENCE_PATIENCE_FIRST };
        let deadline = Instant::now() + patience;
        while preflight::is_taken(&base.plan) {
            if signal::interrupted() {
                return Err(Failure::start(format!("interrupted before {} was started", self.name)));
            }
            if Instant::now() >= deadline {
                let finder = Finder::of_listener(&base.watched(&base.resolver()));
                let who = finder.first().as_ref().map(|found| {
                    let name: String = found.name.chars().filter(|c| !c.is_control()).collect();
                    format!("{name}, process {},", found.roots.first().unwrap_or(&0))
                });
                let who = who.unwrap_or_else(|_| "another process".into());
                let still = match self.after_another {
                    true => format!("{} s after the last build was ended", patience.as_secs()),
                    false => "already".into(),
                };
                return Err(Failure::start(format!(
                    "{who} responds at {url} {still}: end it first, so that --{} is measured",
                    self.name.to_ascii_lowercase()
                )));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl RunningBuild {
    /// Why the build has ended, if it has.
    pub fn died(&mut self) -> Option<String> {
        let status = self.kept.keeper.try_wait().ok().flatten()?;
        let line = last_lines(&self.output, 1);
        let said = if line.is_empty() { String::new() } else { format!("; its last output: {line}") };
        Some(format!("{} ended unexpectedly with {}{said} ({})", self.name, status_text(status), self.output.display()))
    }

    /// The CPU clocks of the build's processes.
    pub fn cpu_clocks(&self) -> CpuClocks {
        let mut pids = self.kept.offspring.living();
        pids.retain(|pid| *pid != self.kept.keeper.id());
        CpuClocks::for_processes(&pids)
    }

    /// Ends the build with all its processes: SIGTERM, wait, SIGKILL.
    pub fn end(mut self) -> Result<(), Failure> {
        self.kept.end().map_err(|e| Failure::start(format!("{} could not be ended: {}", self.name, system_text(&e))))
    }
}

impl KeeperProcess {
    /// Starts a keeper; from now on all its descendants are ended in every case.
    fn start(keeper: &mut std::process::Command) -> std::io::Result<KeeperProcess> {
        // If the system refuses, processes that outlive their keeper are not found.
        let _ = group::adopt_orphans();
        let offspring = Offspring::since_now();
        Ok(KeeperProcess { keeper: keeper.spawn()?, offspring, ended: false })
    }

    /// Sends SIGTERM to all, waits up to [`END_PATIENCE`], then SIGKILL.
    fn end(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.offspring.end(|| if signal::interrupted() { END_PATIENCE_HURRIED } else { END_PATIENCE })?;
        self.keeper.wait()?;
        self.offspring.reap(self.keeper.id());
        bounded_log::settle();
        Ok(())
    }
}

impl Drop for KeeperProcess {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.end();
    }
}

/// A helper program of ours; dropping it ends it.
pub struct Helper {
    said: String,
    kept: KeeperProcess,
}

impl Helper {
    /// Starts it and waits for its first line.
    pub fn start(program: &Path, arguments: &[&str]) -> std::io::Result<Helper> {
        let mut keeper = build_keeper::command(program, OrphanPolicy::End);
        keeper.args(arguments).stdout(Stdio::piped());
        let mut helper = Helper { said: String::new(), kept: KeeperProcess::start(&mut keeper)? };
        if let Some(output) = helper.kept.keeper.stdout.take() {
            BufReader::new(output).read_line(&mut helper.said)?;
        }
        match helper.first_line().is_empty() {
            true => Err(std::io::Error::other("it ended without output")),
            false => Ok(helper),
        }
    }

    /// The first line that it printed.
    pub fn first_line(&self) -> &str {
        self.said.trim()
    }

    /// Ends it.
    pub fn end(mut self) -> std::io::Result<()> {
        self.kept.end()
    }
}

/// Runs a command to its end, as for `--before-block`. Its output is appended to `output`.
pub fn prepare(flag: &str, command: &str, output: &Path) -> Result<(), Failure> {
    run_to_end(&format!("{flag} '{}'", redact::command(command)), command, output, PREPARE_PATIENCE)
}

/// The same for a build command in a folder, with a longer timeout.
pub fn build(what: &str, command: &str, folder: &Path, output: &Path) -> Result<(), Failure> {
    run_to_end(what, &in_folder(folder, command), output, BUILD_PATIENCE)
}

/// A shell command that runs in a folder.
pub fn in_folder(folder: &Path, command: &str) -> String {
    format!("cd {} && {command}", shell::quoted(&folder.display().to_string()))
}

/// `what`: the name of the command in messages.
fn run_to_end(what: &str, command: &str, output: &Path, patience: Duration) -> Result<(), Failure> {
    let file = open(output)?;
    let no_start = |e: std::io::Error| Failure::start(format!("{what}: it cannot be started: {}", system_text(&e)));
    let mut kept = shell(command, OrphanPolicy::Stay, &file).map_err(no_start)?;
    let deadline = Instant::now() + patience;
    loop {
        let status = kept.keeper.try_wait().map_err(|e| Failure::start(format!("{what}: {}", system_text(&e))))?;
        let why = match status {
            Some(status) if status.success() => {
                // Processes that it left running are intended.
                kept.ended = true;
                bounded_log::settle();
                return Ok(());
            }
            Some(status) => {
                let last = last_lines(output, LAST_LINES);
                let said = if last.is_empty() { String::new() } else { format!("; its last output: {last}") };
                format!("it ended with {}{said} ({})", status_text(status), output.display())
            }
            None if signal::interrupted() => "interrupted".into(),
            None if Instant::now() >= deadline => format!("it did not end within {} s", patience.as_secs()),
            None => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        return Err(Failure::start(format!("{what}: {why}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_read_from_the_end_of_an_output_of_any_length() {
        let path = std::env::temp_dir().join(format!("plimsoll-{}-last-words", std::process::id()));
        let mut file = File::create(&path).expect("a file");
        // As long as a disk: a sparse file needs no space.
        file.set_len(1 << 40).expect("a hole");
        file.seek(SeekFrom::End(0)).expect("its end");
        std::io::Write::write_all(&mut file, b"\nlistening\npanic: out of luck\n\n").expect("written");
        assert_eq!(last_lines(&path, 1), "panic: out of luck");
        assert_eq!(end_of(&path).expect("read").len() as u64, LAST_BYTES);
        std::fs::write(&path, "short").expect("written");
        assert_eq!(last_lines(&path, 1), "short");
        std::fs::remove_file(&path).expect("removed");
    }
}
