//! Runs a load in several parts ([`PartProcesses`]): one part in this process, and further parts in
//! other processes. Each process gets its task through one pipe and reports through another pipe.
//! All parts of the load start at the same time. The ticks of all parts are summed like ticks of
//! workers in one process ([`run`]).
//!
//! A part is a share of the load. A tick has the measurements of 100 ms.
//!
//! Not here: the code of the other processes (`part`), and which loads are divided into parts.

use crate::part::{self, LoadPartTask};
use plimsoll_engine::{Collector, PartReport, PreparedLoad, Tick};
use plimsoll_model::codec::{self, Frame, MAGIC};
use plimsoll_model::{EarlyStopReason, ExperimentEvent, Injector, LoadEnd, Plan, Run, Schedule, Stripe, redact};
use plimsoll_sys::signal;
use plimsoll_sys::system_text;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The longest wait for the first message of a new process.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait for the other processes to open their connections, after this process has
/// opened its own connections.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// The time without a report after which a process that sends a share of a running load counts as
/// lost. Each process reports ten times a second (each tick).
const TICK_TIMEOUT: Duration = Duration::from_secs(4);
/// The interval of checks whether a process that sends a share of the load is silent or lost.
const PART_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The number of further processes that share the load in the experiment with a second generator.
pub const FURTHER_PROCESSES: usize = 1;
/// The number of the part (share of the load) that this process sends itself. The parts of other
/// processes are numbered from 1.
const OWN_PART_NUMBER: usize = 0;

/// A message from a part's process, or from the thread that writes to or reads from that process.
enum PartMessage {
    /// The process has started, and uses the same version of the run file format.
    Hello,
    /// The thread that writes the task to the process has ended, with or without a write error. The
    /// value is the pipe for further commands.
    TaskWritten(ChildStdin),
    /// The process has opened its connections.
    Ready,
    /// A report about the process's share of the load: the measurements of a tick (100 ms), or the
    /// end of the share.
    Reported(Box<PartReport>),
    /// The process ended or failed; the value is the reason.
    Gone(String),
}

/// The other processes that each send a share of a load. Dropping a `PartProcesses` ends its
/// processes.
pub struct PartProcesses {
    parts: Vec<PartProcess>,
    messages: Receiver<(usize, PartMessage)>,
    sender: Sender<(usize, PartMessage)>,
}

/// One other process that sends a share of the load.
struct PartProcess {
    child: Child,
    to: Option<ChildStdin>,
    is_ready: bool,
    /// The offset of the other process's monotonic clock from this process's clock, ns; 0 because
    /// both processes are on this machine.
    clock_offset_ns: i64,
    last_word: Instant,
    is_over: bool,
}

impl PartProcesses {
    /// Starts `count` processes. The error says why a process failed to start.
    pub fn start(count: usize) -> Result<PartProcesses, String> {
        let no = |reason: String| format!("a second process of plimsoll could not be started: {reason}");
        let (sender, words) = channel();
        let mut others = PartProcesses { parts: Vec::new(), messages: words, sender };
        for number in OWN_PART_NUMBER + 1..=count {
            let mut child = part::part_command().spawn().map_err(|error| no(system_text(&error)))?;
            let (to, from) = (child.stdin.take(), child.stdout.take());
            let (is_ready, clock_offset_ns, is_over) = (false, 0, false);
            others.parts.push(PartProcess { child, to, is_ready, clock_offset_ns, last_word: Instant::now(), is_over });
            if let Some(from) = from {
                let sender = others.sender.clone();
                std::thread::spawn(move || forward_reports(from, number, &sender));
            }
        }
        for _ in 0..count {
            match others.messages.recv_timeout(FIRST_MESSAGE_TIMEOUT) {
                Ok((_, PartMessage::Hello)) => {}
                Ok((_, PartMessage::Gone(why))) => return Err(no(why)),
                _ => return Err(no("it sends nothing".to_owned())),
            }
        }
        Ok(others)
    }

    /// Returns the number of part processes, not counting this process.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Returns the process of the part with this number, from 1.
    fn part_with_number(&mut self, number: usize) -> &mut PartProcess {
        &mut self.parts[number - OWN_PART_NUMBER - 1]
    }

    /// Returns the ids of the other processes.
    pub fn process_ids(&self) -> impl Iterator<Item = u32> {
        self.parts.iter().map(|part| part.child.id())
    }

    /// Sends each process its task: the plan, the generator settings, and a stripe (share) of the
    /// load. This process sends the first stripe of the load itself. Each process opens its
    /// connections after receiving its task.
    pub fn assign_tasks(&mut self, plan: &Plan, injector: &Injector) {
        let of = self.count() as u64 + 1;
        for (at, part) in self.parts.iter_mut().enumerate() {
            let number = OWN_PART_NUMBER + 1 + at;
            let stripe = Stripe::new(number as u64, of);
            let task = LoadPartTask { plan: plan.clone(), injector: injector.clone(), stripe };
            let (Some(mut to), sender) = (part.to.take(), self.sender.clone()) else { continue };
            // A separate thread writes the task, so that this process does not block if the other
            // process does not read.
            std::thread::spawn(move || {
                // Write errors are ignored, because the other process reports its own failure, or
                // plimsoll notices the exit of the process.
                let _ = to.write_all(&task.to_bytes()).and_then(|()| to.flush());
                let _ = sender.send((number, PartMessage::TaskWritten(to)));
            });
        }
    }

    /// Waits until all processes have opened their connections. The error says why a process
    /// failed.
    pub fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while self.parts.iter().any(|part| !part.is_ready || part.to.is_none()) {
            match self.messages.recv_timeout(PART_CHECK_INTERVAL) {
                Ok((number, PartMessage::Ready)) => self.part_with_number(number).is_ready = true,
                Ok((number, PartMessage::TaskWritten(to))) => self.part_with_number(number).to = Some(to),
                Ok((_, PartMessage::Gone(why))) => return Err(part_failure_text(&why)),
                Ok((_, PartMessage::Hello | PartMessage::Reported(_))) | Err(_) if signal::is_stop_requested() => {
                    return Err("interrupted".to_owned());
                }
                Ok((_, PartMessage::Hello | PartMessage::Reported(_))) | Err(_) => {}
            }
            if Instant::now() >= deadline {
                let seconds = READY_TIMEOUT.as_secs();
                return Err(format!("the second process of plimsoll opened no connections within {seconds} s"));
            }
        }
        Ok(())
    }

    /// Sends the start time to all processes: `origin_ns` on this process's monotonic clock.
    fn begin(&mut self, origin_ns: u64) {
        for part in &mut self.parts {
            part.write_to_process(&origin_ns.saturating_add_signed(part.clock_offset_ns).to_le_bytes());
            part.last_word = Instant::now();
        }
    }

    /// Asks all other processes to end their shares of the load early.
    fn stop(&mut self) {
        self.parts.iter_mut().for_each(|part| part.write_to_process(&[0]));
    }

    /// Returns the number of the process that has reported nothing about its share of the load for
    /// [`TICK_TIMEOUT`]; `None` if every process reports.
    fn find_silent_part(&self) -> Option<usize> {
        let is_silent = |part: &PartProcess| !part.is_over && part.last_word.elapsed() >= TICK_TIMEOUT;
        self.parts.iter().position(is_silent).map(|at| at + OWN_PART_NUMBER + 1)
    }
}

impl PartProcess {
    /// Writes to the process's pipe. Write errors are ignored, because the end of a failed process
    /// is reported separately.
    fn write_to_process(&mut self, bytes: &[u8]) {
        if let Some(to) = &mut self.to {
            let _ = to.write_all(bytes).and_then(|()| to.flush());
        }
    }
}

impl Drop for PartProcess {
    fn drop(&mut self) {
        // Closing the pipe ends the process.
        self.to = None;
        let deadline =
            Instant::now() + if signal::is_stop_requested() { PART_CHECK_INTERVAL } else { PART_CHECK_INTERVAL * 5 };
        while Instant::now() < deadline {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn part_failure_text(why: &str) -> String {
    match why {
        "" => "the second process of plimsoll ended unexpectedly".to_owned(),
        reason => format!("the second process of plimsoll stopped: {reason}"),
    }
}

/// Reads the reports of part `number` and forwards the reports to `sender`, until the process of
/// the part ends.
fn forward_reports(mut from: impl Read, number: usize, sender: &Sender<(usize, PartMessage)>) {
    let (mut come, mut greeted, mut piece) = (Vec::new(), false, vec![0; 64 << 10]);
    let why = loop {
        match from.read(&mut piece) {
            Ok(0) => break String::new(),
            Ok(count) => come.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => break system_text(&error),
        }
        if !greeted {
            if come.len() < MAGIC.len() {
                continue;
            }
            if come.drain(..MAGIC.len()).ne(MAGIC) {
                break "the second process is a different version of plimsoll".to_owned();
            }
            greeted = true;
            let _ = sender.send((number, PartMessage::Hello));
        }
        let mut taken = 0;
        let broken = loop {
            match codec::read_first_frame(&come[taken..]) {
                Ok(None) => break None,
                Err(error) => break Some(format!("its message is {error}")),
                Ok(Some((frame, length))) => {
                    taken += length;
                    match message_from_frame(frame, number).map(|word| sender.send((number, word))) {
                        Ok(Ok(())) => {}
                        // The send failed because the receiver of the reports was dropped, so no
                        // reports are needed.
                        Ok(Err(_)) => return,
                        Err(why) => break Some(why),
                    }
                }
            }
        };
        come.drain(..taken);
        if let Some(why) = broken {
            break why;
        }
    };
    let _ = sender.send((number, PartMessage::Gone(why)));
}

/// Converts a frame from the process of `part` to a message. The error says why the part failed.
fn message_from_frame(frame: Frame, part: usize) -> Result<PartMessage, String> {
    let reported = match frame {
        Frame::TrialStart { .. } => return Ok(PartMessage::Ready),
        Frame::Interval { index, interval } => PartReport::Tick { part, index: u64::from(index), interval: *interval },
        Frame::TrialEnd { ending: LoadEnd::Stopped(why @ EarlyStopReason::CannotContinue(_)), .. } => {
            PartReport::Lost { part, why }
        }
        Frame::TrialEnd { ending, window_ns, failed_answers, .. } => {
            let has_no_more_requests = ending == LoadEnd::Stopped(EarlyStopReason::RequestsExhausted);
            PartReport::Done { part, window_end_ns: window_ns.1, failed_answers, has_no_more_requests }
        }
        Frame::Event(ExperimentEvent::Aborted { reason }) => return Err(redact::redact_line(&reason)),
        Frame::Experiment(_)
        | Frame::Probes(_)
        | Frame::Sampled(_)
        | Frame::Agents(_)
        | Frame::Event(_)
        | Frame::ExperimentEnd { .. } => {
            return Err("the second process of plimsoll sent a message that does not belong to a load".to_owned());
        }
    };
    Ok(PartMessage::Reported(Box::new(reported)))
}

/// Runs all parts of a load whose connections are open. The schedule starts at `origin_ns` of the
/// monotonic clock. If a process that sends a share of the load is lost, the load ends.
pub fn run(
    own: PreparedLoad,
    others: &mut PartProcesses,
    plan: &Plan,
    injectors: Vec<Injector>,
    origin_ns: u64,
    on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<EarlyStopReason>,
) -> Run {
    let schedule = Schedule::compile(&plan.load);
    let mut collector = Collector::new(plan.record(), injectors, others.count() + 1, &schedule);
    collector.set_schedule_start(origin_ns);
    others.begin(origin_ns);
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, stopped) = (others.sender.clone(), Arc::clone(&stop));
    let thread = std::thread::spawn(move || run_own_part(own, origin_ns, &sender, &stopped));
    let (mut is_own_over, mut told) = (false, false);
    while !(is_own_over && others.parts.iter().all(|part| part.is_over)) {
        let reported = match others.messages.recv_timeout(PART_CHECK_INTERVAL) {
            Ok((_, PartMessage::Reported(reported))) => Some(*reported),
            Ok((number, PartMessage::Gone(why))) => Some(lost_report(number, part_failure_text(&why))),
            // The thread that runs this process's own part has panicked; joining the thread below
            // passes the panic on.
            Err(_) if thread.is_finished() && !is_own_over => break,
            Ok((_, PartMessage::Hello | PartMessage::TaskWritten(_) | PartMessage::Ready)) | Err(_) => None,
        };
        let silent = || {
            let text = format!(
                "the second process of plimsoll sent nothing for {seconds} s",
                seconds = TICK_TIMEOUT.as_secs()
            );
            others.find_silent_part().map(|number| lost_report(number, text))
        };
        let Some(reported) = reported.or_else(silent) else { continue };
        let is_over = matches!(reported, PartReport::Done { .. } | PartReport::Lost { .. });
        match reported.part() {
            OWN_PART_NUMBER => is_own_over |= is_over,
            number => {
                let part = others.part_with_number(number);
                // Reports that arrive after the end of a process's share of the load are dropped.
                if part.is_over {
                    continue;
                }
                (part.last_word, part.is_over) = (Instant::now(), is_over);
            }
        }
        if collector.add_report(reported, on_tick).is_break() && !told {
            told = true;
            stop.store(true, Ordering::Relaxed);
            others.stop();
        }
    }
    match thread.join() {
        Ok(addresses) => {
            let mut run = collector.finish();
            run.plan.connection_plan.addresses = addresses;
            run
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn lost_report(part: usize, why: String) -> PartReport {
    PartReport::Lost { part, why: EarlyStopReason::CannotContinue(why) }
}

/// Runs this process's own share of the load. Returns the target's addresses at the end of the
/// share, because name resolution may change the addresses during a load.
fn run_own_part(
    own: PreparedLoad,
    origin_ns: u64,
    sender: &Sender<(usize, PartMessage)>,
    stop: &AtomicBool,
) -> Vec<SocketAddr> {
    let report = |reported| _ = sender.send((OWN_PART_NUMBER, PartMessage::Reported(Box::new(reported))));
    let run = own.run(origin_ns, &mut |tick| {
        if tick.end_ns > 0 {
            let index = tick.start_ns / Plan::TICK_NS;
            report(PartReport::Tick { part: OWN_PART_NUMBER, index, interval: tick.interval.clone() });
        }
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(EarlyStopReason::Interrupted),
            false => ControlFlow::Continue(()),
        }
    });
    report(match run.ending {
        Some(LoadEnd::Stopped(why @ EarlyStopReason::CannotContinue(_))) => {
            PartReport::Lost { part: OWN_PART_NUMBER, why }
        }
        ending => PartReport::Done {
            part: OWN_PART_NUMBER,
            window_end_ns: run.window_ns.1,
            failed_answers: run.failed_answers,
            has_no_more_requests: ending == Some(LoadEnd::Stopped(EarlyStopReason::RequestsExhausted)),
        },
    });
    run.plan.connection_plan.addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Interval, LoadPurpose, LoadTag};

    /// Parses a stream of reports. Returns a letter for each message, and the reason why the stream
    /// ended.
    fn parse_report_stream(bytes: &[u8]) -> (String, String) {
        let (sender, heard) = channel();
        forward_reports(bytes, 1, &sender);
        drop(sender);
        let mut why = String::new();
        let letters = heard.iter().map(|(_, word)| match word {
            PartMessage::Hello => 'h',
            PartMessage::Ready => 'r',
            PartMessage::Reported(reported) if matches!(*reported, PartReport::Tick { .. }) => 't',
            PartMessage::Reported(reported) if matches!(*reported, PartReport::Done { .. }) => 'd',
            PartMessage::Reported(_) => 'l',
            PartMessage::TaskWritten(_) => '?',
            PartMessage::Gone(text) => {
                why = text;
                'g'
            }
        });
        (letters.collect(), why)
    }

    #[test]
    fn reports_of_other_parts_are_received() {
        let plan = plimsoll_model::Plan::for_get_request(
            "h",
            80,
            vec![],
            plimsoll_model::LoadShape::Closed { users: plimsoll_model::LoadCurve::constant(1.0) },
        );
        let start = Frame::TrialStart {
            tag: LoadTag::for_purpose(LoadPurpose::Run),
            start_ns: 0,
            plan: Box::new(plan.record()),
            injectors: vec![],
        };
        let tick = Frame::Interval { index: 3, interval: Box::new(Interval::default()) };
        let end = |ending| Frame::TrialEnd {
            ending,
            window_ns: (0, 1),
            start_ns: 0,
            addresses: vec![],
            failed_answers: vec![],
        };
        let died = end(LoadEnd::Stopped(EarlyStopReason::CannotContinue("a thread".into())));
        let broken = Frame::Event(ExperimentEvent::Aborted { reason: "no\u{1b} files".into() });
        for (frames, letters, reason) in [
            (vec![&start, &tick, &tick, &end(LoadEnd::Finished)], "hrttdg", ""),
            (vec![&start, &tick, &died], "hrtlg", ""),
            (vec![&start, &broken, &tick], "hrg", "no"),
            (vec![&Frame::ExperimentEnd { elapsed_ns: 1, summary: None }], "hg", "does not belong to a load"),
        ] {
            let mut bytes = MAGIC.to_vec();
            frames.iter().for_each(|frame| frame.encode(&mut bytes));
            let (heard, why) = parse_report_stream(&bytes);
            assert_eq!(heard, letters);
            assert!(why.contains(reason) && !why.contains('\u{1b}'), "{why}");
        }
        assert_eq!(
            parse_report_stream(b"PLIMSOL\x01 and more"),
            ("g".into(), "the second process is a different version of plimsoll".into())
        );
        assert_eq!(parse_report_stream(b""), ("g".into(), String::new()));
        let mut damaged = MAGIC.to_vec();
        tick.encode(&mut damaged);
        *damaged.last_mut().expect("bytes") ^= 1;
        assert_eq!(parse_report_stream(&damaged).0, "hg");
    }
}
