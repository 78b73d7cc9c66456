//! A build under test that plimsoll starts and stops itself: a command in a process group of its own, its output kept
//! in a file, the whole group and all that it started ended whatever happens. So is the server of the demo.
//!
//! Not here: what is measured on it.

use crate::failure::Failure;
use crate::preflight;
use crate::secrets::command_shown;
use crate::target::system_text;
use plimsoll_model::Plan;
use plimsoll_sys::group::{self, CpuClocks, End, Offspring};
use plimsoll_sys::signal;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a build may take to end by itself before it is ended.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// How often something is looked at that may have changed.
const LOOK: Duration = Duration::from_millis(10);
/// A command that only prepares something may take this long.
const PREPARE_PATIENCE: Duration = Duration::from_secs(300);

/// How a build is started.
#[derive(Debug, Clone)]
pub struct Subject {
    /// A, B, ...
    pub name: char,
    /// For the shell.
    pub command: String,
    /// What it writes is added here.
    pub output: PathBuf,
    /// How long it may take until it answers.
    pub patience: Duration,
}

/// A build that runs; dropping it ends all that it started.
pub struct Running {
    name: char,
    output: PathBuf,
    group: Group,
}

/// A child that leads a process group of its own; dropping it ends the whole group. So does an end of plimsoll itself.
struct Group {
    leader: Child,
    /// The child and all that it started, also in sessions of their own; `None` where only the group is looked after.
    offspring: Option<Offspring>,
    ended: bool,
}

/// A shell command in a process group of its own, with its output in a file.
fn shell(command: &str, output: &File) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", command])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .spawn()
}

fn open(output: &Path) -> Result<File, Failure> {
    let cannot =
        |e: std::io::Error| Failure::start(format!("'{}' cannot be written: {}", output.display(), system_text(&e)));
    if let Some(parent) = output.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(cannot)?;
    }
    OpenOptions::new().create(true).append(true).open(output).map_err(cannot)
}

fn status_text(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".into(),
    }
}

/// The last line of a file that is not empty, for a message.
fn last_line(output: &Path) -> String {
    let bytes = std::fs::read(output).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4096)..]).into_owned();
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    plimsoll_model::redact::line(line).chars().take(200).collect()
}

impl Subject {
    /// Starts the build and waits until it answers the plan's request. Nobody else may answer there before.
    pub fn start(&self, plan: &Plan) -> Result<Running, Failure> {
        let url = plan.request.url_redacted();
        if plan.request.addresses.iter().any(preflight::listens) {
            return Err(Failure::start(format!(
                "somebody else answers at {url} already: end that first, so that what is measured is --{}",
                self.name.to_ascii_lowercase()
            )));
        }
        let file = open(&self.output)?;
        // Where the system refuses, what leaves the build's group is not seen; the group is.
        let _ = group::adopt_orphans();
        let offspring = Offspring::since_now();
        let child = shell(&self.command, &file).map_err(|e| {
            Failure::start(format!("--{}: no shell: {}", self.name.to_ascii_lowercase(), system_text(&e)))
        })?;
        let group = Group::led_by(child, Some(offspring));
        let mut running = Running { name: self.name, output: self.output.clone(), group };
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(why) = running.died() {
                return Err(Failure::start(format!("{why} before it answered at {url}")));
            }
            if signal::interrupted() {
                return Err(Failure::start(format!("interrupted while {} was starting", self.name)));
            }
            if plan.request.addresses.iter().any(preflight::listens) {
                match preflight::ask(plan) {
                    Ok(_) => return Ok(running),
                    Err(failure) if Instant::now() >= deadline => return Err(failure),
                    Err(_) => {}
                }
            }
            if Instant::now() >= deadline {
                return Err(Failure::start(format!(
                    "{} did not answer at {url} within {} s (--start-timeout); its output: {}",
                    self.name,
                    self.patience.as_secs_f64(),
                    self.output.display()
                )));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Running {
    /// Why the build no longer runs, if so.
    pub fn died(&mut self) -> Option<String> {
        let status = self.group.leader.try_wait().ok().flatten()?;
        let line = last_line(&self.output);
        let said = if line.is_empty() { String::new() } else { format!("; its last words: {line}") };
        Some(format!("{} ended by itself with {}{said} ({})", self.name, status_text(status), self.output.display()))
    }

    /// The CPU clocks of the build's processes.
    pub fn cpu_clocks(&self) -> CpuClocks {
        CpuClocks::of(&self.group.offspring.as_ref().map(Offspring::living).unwrap_or_default())
    }

    /// Ends the whole group: asks, waits, forces.
    pub fn end(mut self) -> Result<(), Failure> {
        self.group.end().map_err(|e| Failure::start(format!("{} could not be ended: {}", self.name, system_text(&e))))
    }
}

impl Group {
    /// The group of `leader`; from here on it is ended whatever happens.
    fn led_by(leader: Child, offspring: Option<Offspring>) -> Group {
        signal::end_with_us(Some(leader.id()));
        Group { leader, offspring, ended: false }
    }

    fn end(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        end_whole(self.leader.id(), &mut self.leader, self.offspring.as_ref())?;
        signal::end_with_us(None);
        Ok(())
    }
}

/// Ends a group, and what its processes started elsewhere: asks, waits up to [`END_PATIENCE`], forces.
fn end_whole(group: u32, leader: &mut Child, offspring: Option<&Offspring>) -> std::io::Result<()> {
    for (how, patience) in [(End::Ask, END_PATIENCE), (End::Force, END_PATIENCE)] {
        group::end(group, how)?;
        if let Some(offspring) = offspring {
            offspring.end_strays(group, how);
        }
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            leader.try_wait()?;
            if !group::alive(group) && offspring.is_none_or(|offspring| offspring.living().is_empty()) {
                leader.try_wait()?;
                if let Some(offspring) = offspring {
                    offspring.reap(leader.id());
                }
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Err(std::io::Error::other("some of its processes do not end"))
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nobody is left to tell; what could be done was done.
        let _ = self.end();
    }
}

/// A program of our own that runs beside, in a process group of its own; dropping it ends the whole group.
pub struct Helper {
    said: String,
    group: Group,
}

impl Helper {
    /// Starts it and waits for the first line that it prints.
    pub fn start(program: &Path, arguments: &[&str]) -> std::io::Result<Helper> {
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut helper = Helper { said: String::new(), group: Group::led_by(command.spawn()?, None) };
        if let Some(output) = helper.group.leader.stdout.take() {
            BufReader::new(output).read_line(&mut helper.said)?;
        }
        match helper.said().is_empty() {
            true => Err(std::io::Error::other("it ended before it said a word")),
            false => Ok(helper),
        }
    }

    /// The first line that it printed.
    pub fn said(&self) -> &str {
        self.said.trim()
    }

    /// Ends the whole group.
    pub fn end(mut self) -> std::io::Result<()> {
        self.group.end()
    }
}

/// Runs a command to its end, as `--before-block` does. Its output is added to `output`.
pub fn prepare(flag: &str, command: &str, output: &Path) -> Result<(), Failure> {
    let mut file = open(output)?;
    let _ = file.flush();
    let mut child =
        shell(command, &file).map_err(|e| Failure::start(format!("{flag}: no shell: {}", system_text(&e))))?;
    let group = child.id();
    let deadline = Instant::now() + PREPARE_PATIENCE;
    loop {
        let status = child.try_wait().map_err(|e| Failure::start(format!("{flag}: {}", system_text(&e))))?;
        let why = match status {
            Some(status) if status.success() => return Ok(()),
            Some(status) => format!("it ended with {}; its output: {}", status_text(status), output.display()),
            None if signal::interrupted() => "interrupted".into(),
            None if Instant::now() >= deadline => format!("it did not end within {} s", PREPARE_PATIENCE.as_secs()),
            None => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        let _ = end_whole(group, &mut child, None);
        return Err(Failure::start(format!("{flag} '{}': {why}", command_shown(command))));
    }
}
