//! A load that is made in two parts: here, and by another process ([`OtherPart`]) that is told what to do and says what it did over a pair
//! of streams. Both begin at one moment; their ticks add up as those of the workers of one process do ([`run`]).
//!
//! Not here: what the other process does (`part`), and which loads are made so.

use crate::part::{self, Task};
use plimsoll_engine::{Collector, Prepared, Reported, Tick};
use plimsoll_model::codec::{self, Frame, MAGIC};
use plimsoll_model::{Ending, Injector, Plan, Remark, Run, Schedule, Stop, redact};
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

/// How long it may take to say its first word, and to end when it was told to.
const WORD_PATIENCE: Duration = Duration::from_secs(5);
/// How long its connections may take to stand after ours do.
const READY_PATIENCE: Duration = Duration::from_secs(20);
/// A part that says nothing for so long under load hangs: it has ten ticks a second to tell of.
const TICK_PATIENCE: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(100);
/// Number of our own part, and of the other.
const OWN: usize = 0;
const OTHER: usize = 1;

/// What is heard of the parts.
enum PartWord {
    /// The other is there.
    Hello,
    /// It was told what to do, and hears more.
    Told(ChildStdin),
    /// Its connections stand.
    Ready,
    /// What a part does.
    Reported(Box<Reported>),
    /// It cannot go on: why.
    Gone(String),
}

/// Another process that makes a part of a load; ended when dropped.
pub struct OtherPart {
    child: Child,
    to: Option<ChildStdin>,
    heard: Receiver<PartWord>,
    sender: Sender<PartWord>,
}

impl OtherPart {
    /// Starts it; the error says why there is none.
    pub fn start() -> Result<OtherPart, String> {
        let no = |why: String| format!("a second process of plimsoll could not be started: {why}");
        let mut child = part::command().spawn().map_err(|error| no(system_text(&error)))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (sender, heard) = channel();
        let other = OtherPart { child, to, heard, sender };
        if let Some(from) = from {
            let sender = other.sender.clone();
            std::thread::spawn(move || listen(from, &sender));
        }
        match other.heard.recv_timeout(WORD_PATIENCE) {
            Ok(PartWord::Hello) => Ok(other),
            Ok(PartWord::Gone(why)) => Err(no(why)),
            _ => Err(no("it says nothing".to_owned())),
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it what to do; it begins to make connections.
    pub fn tell(&mut self, task: &Task) {
        let (Some(mut to), sender, bytes) = (self.to.take(), self.sender.clone(), task.to_bytes()) else { return };
        // Where it does not read, nobody must wait.
        std::thread::spawn(move || {
            // Why it does not read it says itself, or its end does.
            let _ = to.write_all(&bytes).and_then(|()| to.flush());
            let _ = sender.send(PartWord::Told(to));
        });
    }

    /// Waits until its connections stand; the error says why they do not.
    pub fn ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + READY_PATIENCE;
        let mut is_ready = false;
        while !is_ready || self.to.is_none() {
            match self.heard.recv_timeout(LOOK) {
                Ok(PartWord::Ready) => is_ready = true,
                Ok(PartWord::Told(to)) => self.to = Some(to),
                Ok(PartWord::Gone(why)) => return Err(gone(&why)),
                Ok(PartWord::Hello | PartWord::Reported(_)) | Err(_) if signal::interrupted() => {
                    return Err("interrupted".to_owned());
                }
                Ok(PartWord::Hello | PartWord::Reported(_)) | Err(_) => {}
            }
            if Instant::now() >= deadline {
                let seconds = READY_PATIENCE.as_secs();
                return Err(format!("the second process of plimsoll had no connections within {seconds} s"));
            }
        }
        Ok(())
    }

    /// Says something to it; who does not hear it is gone, and tells so by that.
    fn say(&mut self, bytes: &[u8]) {
        if let Some(to) = &mut self.to {
            let _ = to.write_all(bytes).and_then(|()| to.flush());
        }
    }
}

impl Drop for OtherPart {
    fn drop(&mut self) {
        // Without anybody to listen to it ends by itself.
        self.to = None;
        let deadline = Instant::now() + if signal::interrupted() { LOOK } else { LOOK * 5 };
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

fn gone(why: &str) -> String {
    match why {
        "" => "the second process of plimsoll ended by itself".to_owned(),
        why => format!("the second process of plimsoll could not go on: {why}"),
    }
}

/// Passes on what the other part says, until its end.
fn listen(mut from: impl Read, sender: &Sender<PartWord>) {
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
                break "it is another plimsoll".to_owned();
            }
            greeted = true;
            let _ = sender.send(PartWord::Hello);
        }
        let mut taken = 0;
        let broken = loop {
            match codec::first_frame(&come[taken..]) {
                Ok(None) => break None,
                Err(error) => break Some(format!("what it says is {error}")),
                Ok(Some((frame, length))) => {
                    taken += length;
                    match heard(frame).map(|heard| sender.send(heard)) {
                        Ok(Ok(())) => {}
                        // Nobody listens any more.
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
    let _ = sender.send(PartWord::Gone(why));
}

/// What a frame of the other part says.
fn heard(frame: Frame) -> Result<PartWord, String> {
    let reported = match frame {
        Frame::TrialStart { .. } => return Ok(PartWord::Ready),
        Frame::Interval { index, interval } => {
            Reported::Tick { part: OTHER, index: u64::from(index), interval: *interval }
        }
        Frame::TrialEnd { ending: Ending::Stopped(why @ Stop::Died(_)), .. } => Reported::Lost { part: OTHER, why },
        Frame::TrialEnd { ending, window_ns, failed_answers, .. } => {
            let used_up = ending == Ending::Stopped(Stop::UsedUp);
            Reported::Done { part: OTHER, window_end_ns: window_ns.1, failed_answers, used_up }
        }
        Frame::Remark(Remark::Broken { reason }) => return Err(redact::line(&reason)),
        Frame::Experiment(_)
        | Frame::Probes(_)
        | Frame::Sampled(_)
        | Frame::Remark(_)
        | Frame::ExperimentEnd { .. } => {
            return Err("what it says is no part of a load".to_owned());
        }
    };
    Ok(PartWord::Reported(Box::new(reported)))
}

/// Runs both parts of a load whose connections stand, from `origin_ns` of the monotonic clock on. Where the other part is lost, the load
/// ends with the reason.
pub fn run(
    own: Prepared,
    other: &mut OtherPart,
    plan: &Plan,
    injectors: Vec<Injector>,
    origin_ns: u64,
    on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<Stop>,
) -> Run {
    let schedule = Schedule::compile(&plan.load);
    let mut collector = Collector::new(plan.record(), injectors, 2, &schedule);
    collector.begin(origin_ns);
    other.say(&origin_ns.to_le_bytes());
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, stopped) = (other.sender.clone(), Arc::clone(&stop));
    let thread = std::thread::spawn(move || run_own(own, origin_ns, &sender, &stopped));
    let (mut own_done, mut other_done, mut last_heard) = (false, false, Instant::now());
    let mut told = false;
    while !(own_done && other_done) {
        let reported = match other.heard.recv_timeout(LOOK) {
            Ok(PartWord::Reported(reported)) => Some(*reported),
            Ok(PartWord::Gone(why)) if !other_done => Some(lost(gone(&why))),
            // It ended before it was done: its panic is passed on.
            Err(_) if thread.is_finished() && !own_done => break,
            Ok(PartWord::Gone(_) | PartWord::Hello | PartWord::Told(_) | PartWord::Ready) | Err(_) => None,
        };
        let reported = match reported {
            None if !other_done && last_heard.elapsed() >= TICK_PATIENCE => {
                Some(lost(format!("the second process of plimsoll said nothing for {} s", TICK_PATIENCE.as_secs())))
            }
            None => continue,
            some => some,
        };
        let Some(reported) = reported else { continue };
        let is_over = matches!(reported, Reported::Done { .. } | Reported::Lost { .. });
        match reported.part() {
            OWN => own_done |= is_over,
            // What comes after its end is nobody's any more.
            _ if other_done => continue,
            _ => {
                last_heard = Instant::now();
                other_done |= is_over;
            }
        }
        if collector.take(reported, on_tick).is_break() && !told {
            told = true;
            stop.store(true, Ordering::Relaxed);
            other.say(&[0]);
        }
    }
    match thread.join() {
        Ok(addresses) => {
            let mut run = collector.finish();
            run.plan.carriage.addresses = addresses;
            run
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn lost(why: String) -> Reported {
    Reported::Lost { part: OTHER, why: Stop::Died(why) }
}

/// Runs our own part; gives the addresses that it knows at its end.
fn run_own(own: Prepared, origin_ns: u64, sender: &Sender<PartWord>, stop: &AtomicBool) -> Vec<SocketAddr> {
    let report = |reported| _ = sender.send(PartWord::Reported(Box::new(reported)));
    let run = own.run(origin_ns, &mut |tick| {
        if tick.end_ns > 0 {
            let index = tick.start_ns / Plan::TICK_NS;
            report(Reported::Tick { part: OWN, index, interval: tick.interval.clone() });
        }
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(Stop::Interrupted),
            false => ControlFlow::Continue(()),
        }
    });
    report(match run.ending {
        Some(Ending::Stopped(why @ Stop::Died(_))) => Reported::Lost { part: OWN, why },
        ending => Reported::Done {
            part: OWN,
            window_end_ns: run.window_ns.1,
            failed_answers: run.failed_answers,
            used_up: ending == Some(Ending::Stopped(Stop::UsedUp)),
        },
    });
    run.plan.carriage.addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Interval, Purpose, Tag};

    /// What is heard of a stream of these bytes: a letter for each.
    fn said(bytes: &[u8]) -> (String, String) {
        let (sender, heard) = channel();
        listen(bytes, &sender);
        drop(sender);
        let mut why = String::new();
        let letters = heard.iter().map(|heard| match heard {
            PartWord::Hello => 'h',
            PartWord::Ready => 'r',
            PartWord::Reported(reported) if matches!(*reported, Reported::Tick { .. }) => 't',
            PartWord::Reported(reported) if matches!(*reported, Reported::Done { .. }) => 'd',
            PartWord::Reported(_) => 'l',
            PartWord::Told(_) => '?',
            PartWord::Gone(text) => {
                why = text;
                'g'
            }
        });
        (letters.collect(), why)
    }

    #[test]
    fn what_another_part_says_is_heard() {
        let plan = plimsoll_model::Plan::get(
            "h",
            80,
            vec![],
            plimsoll_model::LoadShape::Closed { users: plimsoll_model::Curve::constant(1.0) },
        );
        let start = Frame::TrialStart {
            tag: Tag::of(Purpose::Run),
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
        let died = end(Ending::Stopped(Stop::Died("a thread".into())));
        let broken = Frame::Remark(Remark::Broken { reason: "no\u{1b} files".into() });
        for (frames, letters, reason) in [
            (vec![&start, &tick, &tick, &end(Ending::Finished)], "hrttdg", ""),
            (vec![&start, &tick, &died], "hrtlg", ""),
            (vec![&start, &broken, &tick], "hrg", "no"),
            (vec![&Frame::ExperimentEnd { elapsed_ns: 1 }], "hg", "no part of a load"),
        ] {
            let mut bytes = MAGIC.to_vec();
            frames.iter().for_each(|frame| frame.encode(&mut bytes));
            let (heard, why) = said(&bytes);
            assert_eq!(heard, letters);
            assert!(why.contains(reason) && !why.contains('\u{1b}'), "{why}");
        }
        assert_eq!(said(b"PLIMSOL\x01 and more"), ("g".into(), "it is another plimsoll".into()));
        assert_eq!(said(b""), ("g".into(), String::new()));
        let mut damaged = MAGIC.to_vec();
        tick.encode(&mut damaged);
        *damaged.last_mut().expect("bytes") ^= 1;
        assert_eq!(said(&damaged).0, "hg");
    }
}
