//! A part: a process that sends one share (stripe) of a load. The parent plimsoll process writes
//! the task to the part's standard input and reads results from its standard output. A part runs
//! plimsoll's own executable with [`PART_ARGUMENT`] as its argument.
//!
//! ```text
//! in   = task  start of the schedule (u64, ns of the monotonic clock)  any byte: stop
//! task = plan, injector (each: u64 length, bytes)  stripe index, number of stripes (u64 each)
//! out  = frames of a run file: its magic, TrialStart once all connections are open,
//!        an Interval for each tick, TrialEnd; Event::Aborted if the part fails
//! ```
//!
//! The task is not passed in arguments or environment variables, because other users can read both.
//! Not here: starting the parts and merging their results (`runner::part_processes`).

use crate::{grpc, self_process};
use plimsoll_engine::{LoadHelpers, prepare_with_helpers};
use plimsoll_model::codec::{Frame, MAGIC};
use plimsoll_model::failure::Failure;
use plimsoll_model::{EarlyStopReason, ExperimentEvent, Injector, LoadEnd, LoadPurpose, LoadTag, Plan, Stripe};
use plimsoll_sys::process;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The only argument of a part (a process that sends one share of a load). The argument takes the
/// position of a command such as `run`.
const PART_ARGUMENT: &str = "carry-out-part";
/// The largest length of an encoded plan or injector, bytes (4 GiB). If the announced length of a
/// plan is larger, the task is invalid.
const ENCODED_PLAN_BYTES_MAX: u64 = 4 << 30;

/// The task of a part (a process that sends one share of a load).
pub struct LoadPartTask {
    /// The plan of the whole load. The process of this task sends one stripe (share) of the load.
    pub plan: Plan,
    /// The generator settings of this process, such as its worker threads.
    pub injector: Injector,
    /// The stripe (share of the load) that this process sends: its index and the number of stripes.
    /// The stripe determines which requests the process sends.
    pub stripe: Stripe,
}

/// Returns the command that starts a part (a process that sends one share of a load). ^C does not
/// reach the part; its parent process ends the part.
pub fn part_command() -> Command {
    let mut command = self_process::helper_command("plimsoll", PART_ARGUMENT);
    command.stdout(Stdio::piped());
    command
}

impl LoadPartTask {
    /// Encodes the task for the standard input of the process that executes the task.
    pub fn to_bytes(&self) -> Vec<u8> {
        let LoadPartTask { plan, injector, stripe } = self;
        let injector = serde_json::to_vec(injector).unwrap_or_default();
        let mut bytes = Vec::new();
        for part in [plan.to_bytes(), injector] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        for number in [stripe.index, stripe.equal_parts] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn read(input: &mut impl Read) -> Result<LoadPartTask, String> {
        let cut = |_| "the first process of plimsoll sent only a part of the task".to_owned();
        let plan = Plan::from_bytes(&read_length_prefixed(input).map_err(cut)?).map_err(|error| error.to_string())?;
        let injector =
            serde_json::from_slice(&read_length_prefixed(input).map_err(cut)?).map_err(|error| error.to_string())?;
        let stripe = Stripe::new(read_u64(input).map_err(cut)?, read_u64(input).map_err(cut)?);
        match stripe.index < stripe.equal_parts && Injector::are_within_limits(std::slice::from_ref(&injector)) {
            true => Ok(LoadPartTask { plan, injector, stripe }),
            false => Err("the first process of plimsoll sent a task that is not a valid share of a load".to_owned()),
        }
    }
}

fn read_u64(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_length_prefixed(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_u64(input)?;
    if length > ENCODED_PLAN_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    // Memory is allocated for the bytes received, not for the announced length, which may be wrong.
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

/// Runs this process as a part (a process that sends one share of a load) if its only argument is
/// [`PART_ARGUMENT`]. A process that runs as a part never returns from this function.
pub fn run_part_if_requested() {
    let mut words = std::env::args_os().skip(1);
    if words.next().as_deref() != Some(OsStr::new(PART_ARGUMENT)) || words.next().is_some() || io::stdin().is_terminal()
    {
        return;
    }
    process::raise_open_files_limit();
    std::process::exit(match execute_part_task(&mut io::stdout()) {
        Ok(()) => 0,
        Err(reason) => {
            write_frame(&mut io::stdout(), &Frame::Event(ExperimentEvent::Aborted { reason }));
            2
        }
    })
}

/// Writes a frame of a run file to `out`; returns false if the parent process is gone.
fn write_frame(out: &mut impl Write, frame: &Frame) -> bool {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    out.write_all(&bytes).and_then(|()| out.flush()).is_ok()
}

fn execute_part_task(out: &mut impl Write) -> Result<(), String> {
    let lost = |_: io::Error| "the parent process of this process has ended".to_owned();
    out.write_all(&MAGIC).and_then(|()| out.flush()).map_err(lost)?;
    let mut input = io::stdin();
    let LoadPartTask { plan, injector, stripe } = LoadPartTask::read(&mut input)?;
    let texts = grpc::message_converters(&plan).map_err(|failure: Failure| failure.to_string())?;
    let load_helpers = LoadHelpers { authors: Vec::new(), message_converters: texts };
    let prepared = prepare_with_helpers(&plan, &injector, stripe, load_helpers, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| error.to_string())?;
    let tag = LoadTag::for_purpose(LoadPurpose::Run);
    write_frame(out, &Frame::TrialStart { tag, start_ns: 0, plan: Box::new(plan.record()), injectors: vec![injector] });
    let origin_ns = read_u64(&mut input).map_err(lost)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        // Any byte on standard input asks this process to stop the load. A closed pipe means that
        // the parent process has exited.
        if input.read_exact(&mut [0]).is_err() {
            std::process::exit(1);
        }
        stopped.store(true, Ordering::Relaxed);
    });
    let run = prepared.run(origin_ns, &mut |tick| {
        let heard = tick.end_ns == 0 || {
            let index = (tick.start_ns / Plan::TICK_NS) as u32;
            write_frame(out, &Frame::Interval { index, interval: Box::new(tick.interval.clone()) })
        };
        match heard && !stop.load(Ordering::Relaxed) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(EarlyStopReason::Interrupted),
        }
    });
    let (window_ns, addresses) = (run.window_ns, run.plan.connection_plan.addresses);
    let (ending, failed_answers) = (run.ending.unwrap_or(LoadEnd::Finished), run.failed_answers);
    write_frame(out, &Frame::TrialEnd { ending, window_ns, start_ns: 0, addresses, failed_answers });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape};

    #[test]
    fn a_part_task_decodes_unchanged_or_is_refused() {
        let addresses = vec![([127, 0, 0, 1], 80).into()];
        let mut plan = Plan::for_get_request("h", 80, addresses, LoadShape::Closed { users: LoadCurve::constant(2.0) });
        plan.traffic.routes[0].request.body = vec![7; 300];
        let task =
            LoadPartTask { plan, injector: Injector { workers: 2, ..Injector::default() }, stripe: Stripe::new(1, 2) };
        let bytes = task.to_bytes();
        let read = LoadPartTask::read(&mut &*bytes).expect("a task");
        assert_eq!((read.plan, read.injector, read.stripe), (task.plan.clone(), task.injector.clone(), task.stripe));
        for cut in 0..bytes.len() {
            assert!(LoadPartTask::read(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        let none = LoadPartTask { stripe: Stripe::new(2, 2), ..task };
        assert!(LoadPartTask::read(&mut &*none.to_bytes()).is_err());
        assert!(LoadPartTask::read(&mut [0xff; 64].as_slice()).is_err(), "longer than anything");
    }
}
