//! Starts and lists the studies that users start from the web pages ([`StartedStudies`]). Each
//! study is a separate process whose output goes to files in the store's folder `jobs`. A study
//! therefore continues when the server ends, and a restarted server finds the study.
//!
//! Not here: the contents of the form (`start_form`), and the HTML pages (`views`).

use crate::problem::Problem;
use crate::start_form::StudyForm;
use plimsoll_sys::output_file;
use plimsoll_sys::pause::ProcessHandle;
use plimsoll_sys::probe::process::read_process_stat;
use plimsoll_sys::system_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of studies that run at the same time, because two loads on one machine would
/// disturb each other.
const RUNNING_STUDIES_MAX: usize = 1;
/// The maximum number of studies in the list; older studies are not listed.
const LISTED_STUDIES_MAX: usize = 50;
/// The maximum number of bytes that one call reads from a study's event file.
const EVENT_BYTES_PER_READ_MAX: u64 = 4 << 20;
/// The maximum number of bytes shown from the end of the messages that a study printed.
const SHOWN_MESSAGE_BYTES_MAX: u64 = 4 << 10;

/// A study that was started from a web page. A file with the suffix `.job` stores the fields of the
/// study.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartedStudy {
    /// The name of the study: kind, start time in s and process id, such as `find-1764248063-4711`.
    pub name: String,
    /// The process id of the study.
    pub pid: u32,
    /// The start time of the process in clock ticks since the boot of the machine. The start time
    /// and `pid` together identify the process, even if the system reuses the process id.
    pub started_ticks: u64,
    /// The time when the study was started, in s since 1970.
    pub started_unix_s: u64,
    /// The command line that would start the same study in a terminal.
    pub command: String,
}

/// The progress of a study, read from its event lines (`plimsoll.events/1`).
#[derive(Debug, Clone, Default, Serialize)]
pub struct StudyProgress {
    /// The `load_end` events of the loads that have ended.
    pub loads: Vec<Value>,
    /// The `load` event of the running load; `None` between loads.
    pub load: Option<Value>,
    /// The latest `tick` event of the running load, with the figures of a short interval. `None`
    /// between loads, and before the first `tick` event of a load.
    pub tick: Option<Value>,
    /// Whether the study has ended with a finding.
    pub is_found: bool,
    #[serde(skip)]
    read_bytes: u64,
    #[serde(skip)]
    part: Vec<u8>,
}

/// All studies that were started from web pages, for one store of run files.
pub struct StartedStudies {
    /// The folder of the run files.
    store: PathBuf,
    /// The folder with the job, event and message files of the studies: `jobs` in the store.
    folder: PathBuf,
    program: PathBuf,
    progress: Mutex<HashMap<String, StudyProgress>>,
    start_lock: Mutex<()>,
}

impl StartedStudies {
    /// Opens the list of studies of a store. `program` is the path of the plimsoll executable.
    pub fn new(store: &Path, program: PathBuf) -> StartedStudies {
        let folder = store.join("jobs");
        StartedStudies {
            store: store.to_owned(),
            folder,
            program,
            progress: Mutex::default(),
            start_lock: Mutex::default(),
        }
    }

    /// Starts a study as a separate process. Returns an error if another study is running.
    pub fn start(&self, form: &StudyForm) -> Result<StartedStudy, Problem> {
        // The lock makes simultaneous requests start their studies one after the other, so that no
        // two studies run at the same time.
        let _one = self.start_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let running = self.list_studies().into_iter().filter(StartedStudy::is_running).count();
        if running >= RUNNING_STUDIES_MAX {
            return Err(Problem::bad_request(
                "a study is running, and two studies would disturb each other: wait for the \
                running study, or stop it",
            ));
        }
        let cannot = |error: io::Error| {
            Problem::bad_request(format!("the study cannot be started: {reason}", reason = system_text(&error)))
        };
        let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let study = form.words.first().map_or("find", String::as_str);
        // The final names of the output files contain the process id, which is known only after the
        // process has started.
        let pending = self.folder.join(format!(".{study}-{started_unix_s}.events"));
        let said = self.folder.join(format!(".{study}-{started_unix_s}.messages"));
        let (events, errors) =
            (output_file::create(&pending).map_err(cannot)?, output_file::create(&said).map_err(cannot)?);
        let words = match &form.traffic {
            Some(traffic) => {
                let path = self.folder.join(format!("{study}-{started_unix_s}.{}", traffic.suffix));
                output_file::write(&path, traffic.text.as_bytes()).map_err(cannot)?;
                form.command_words(&path.display().to_string())
            }
            None => form.words.clone(),
        };
        let mut command = Command::new(&self.program);
        command.args(&words[..1]).arg("--json-lines").arg(format!("--store={}", self.store.display()));
        command.args(&words[1..]).stdin(Stdio::null()).stdout(events).stderr(errors);
        // The study gets its own process group, so that ^C in the server's terminal does not stop
        // the study.
        let mut child = command.process_group(0).spawn().map_err(cannot)?;
        let pid = child.id();
        let name = format!("{study}-{started_unix_s}-{pid}");
        let started_ticks = read_process_stat(pid, &mut Vec::new()).map_or(0, |(stat, _)| stat.started_ticks);
        // A separate thread waits for the end of the study's process, so that no zombie process
        // remains.
        std::thread::spawn(move || child.wait());
        let job = StartedStudy { name: name.clone(), pid, started_ticks, started_unix_s, command: form.command_line() };
        let text = serde_json::to_vec(&job).unwrap_or_default();
        output_file::write(&self.folder.join(format!("{name}.job")), &text).map_err(cannot)?;
        fs::rename(pending, self.events_path(&name))
            .and_then(|()| fs::rename(said, self.messages_path(&name)))
            .map_err(cannot)?;
        Ok(job)
    }

    fn events_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.events"))
    }

    fn messages_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.messages"))
    }

    /// Returns the studies that were started from web pages, the latest first, at most
    /// `LISTED_STUDIES_MAX`.
    pub fn list_studies(&self) -> Vec<StartedStudy> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut jobs: Vec<StartedStudy> = names
            .filter_map(|file| file.strip_suffix(".job").map(str::to_owned))
            .filter_map(|name| self.get(&name))
            .collect();
        jobs.sort_by_key(|job| std::cmp::Reverse((job.started_unix_s, job.pid)));
        jobs.truncate(LISTED_STUDIES_MAX);
        jobs
    }

    /// Returns the study with this name; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<StartedStudy> {
        if !is_valid_study_name(name) {
            return None;
        }
        let bytes = fs::read(self.folder.join(format!("{name}.job"))).ok()?;
        serde_json::from_slice::<StartedStudy>(&bytes).ok().filter(|job| job.name == name)
    }

    /// Returns the name of the run file that a study writes. The process of the study chooses the
    /// name of the run file. Returns `None` if the run file does not exist yet, or if the study
    /// writes no run file.
    pub fn run_file(&self, job: &StartedStudy) -> Option<String> {
        let ending = format!("-{}.plimsoll", job.pid);
        let entries = fs::read_dir(&self.store).ok()?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let seconds = |name: &str| name.split('-').nth(1).and_then(|part| part.parse::<u64>().ok());
        let is_of_job = |name: &String| seconds(name).is_some_and(|seconds| seconds >= job.started_unix_s);
        // The system may give the process id of an ended study to a later study.
        names.filter(|name| name.ends_with(&ending)).filter(is_of_job).min_by_key(|name| seconds(name))
    }

    /// Reads the events that a study has written since the last call, and returns the progress of
    /// the study.
    pub fn read_progress(&self, job: &StartedStudy) -> StudyProgress {
        let mut all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > LISTED_STUDIES_MAX {
            all.clear();
        }
        let progress = all.entry(job.name.clone()).or_default();
        // A read error is ignored, because the next call reads the remaining events.
        let _ = progress.read(&self.events_path(&job.name));
        progress.clone()
    }

    /// Returns the end of the text that a study wrote to standard error.
    pub fn last_messages(&self, job: &StartedStudy) -> String {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(self.messages_path(&job.name))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_MESSAGE_BYTES_MAX)))?;
            let mut bytes = Vec::new();
            file.take(SHOWN_MESSAGE_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Interrupts a study as ^C in its terminal would. The run file of the study keeps the
    /// measurements made before the interruption.
    pub fn stop(&self, job: &StartedStudy) -> Result<(), Problem> {
        let interrupted =
            ProcessHandle::open_process(job.pid, job.started_ticks).and_then(|process| process.interrupt());
        interrupted.map_err(|_| Problem::bad_request("the study has already ended"))
    }
}

impl StartedStudy {
    /// Returns whether the process of the study is still running.
    pub fn is_running(&self) -> bool {
        read_process_stat(self.pid, &mut Vec::new())
            .is_ok_and(|(stat, _)| stat.started_ticks == self.started_ticks && !stat.has_ended())
    }
}

/// Returns whether a text can be the name of a study. A valid name contains no path, so it cannot
/// refer to a file outside the folder of the studies.
fn is_valid_study_name(name: &str) -> bool {
    !name.is_empty() && name.len() < 100 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl StudyProgress {
    fn read(&mut self, events: &Path) -> io::Result<()> {
        let mut file = File::open(events)?;
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut bytes = Vec::new();
        file.take(EVENT_BYTES_PER_READ_MAX).read_to_end(&mut bytes)?;
        self.read_bytes += bytes.len() as u64;
        self.part.extend_from_slice(&bytes);
        let part = std::mem::take(&mut self.part);
        let mut lines = part.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            // The bytes after the last newline are an incomplete event line or empty, so the next
            // call continues with these bytes.
            if lines.peek().is_none() {
                self.part = line.to_vec();
            } else if let Ok(event) = serde_json::from_slice::<Value>(line) {
                self.apply_event(event);
            }
        }
        Ok(())
    }

    fn apply_event(&mut self, event: Value) {
        match event["event"].as_str() {
            Some("load") => (self.load, self.tick) = (Some(event), None),
            Some("tick") => self.tick = Some(event),
            Some("load_end") => {
                (self.load, self.tick) = (None, None);
                self.loads.push(event);
            }
            Some("finding") => self.is_found = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_parse_from_any_split() {
        let file = std::env::temp_dir().join(format!("plimsoll-web-events-{}", std::process::id()));
        let mut progress = StudyProgress::default();
        let mut text = String::new();
        for (more, loads, ticking, found) in [
            ("{\"event\":\"begin\"}\n{\"event\":\"lo", 0, false, false),
            ("ad\",\"load\":0}\n{\"event\":\"tick\",\"load\":0}\n", 0, true, false),
            ("no JSON\n{\"event\":\"load_end\",\"load\":0}\n", 1, false, false),
            ("{\"event\":\"finding\",\"document\":{}}\n", 1, false, true),
        ] {
            text.push_str(more);
            std::fs::write(&file, &text).expect("written");
            progress.read(&file).expect("read");
            assert_eq!(
                (progress.loads.len(), progress.tick.is_some(), progress.is_found),
                (loads, ticking, found),
                "{text}"
            );
        }
        std::fs::remove_file(&file).expect("removed");
    }

    #[test]
    fn study_names_cannot_contain_paths() {
        for name in ["", "..", "../x", "a/b", "a.job", "a%2e", &"a".repeat(100)] {
            assert!(!is_valid_study_name(name), "{name}");
        }
        assert!(is_valid_study_name("find-1764248063-4711"));
    }
}
