//! Fetches a run file from a message bus ([`fetch_run_file`]). Usually the coordinator has stored
//! the run file on the bus. If the coordinator was lost, the run file is rebuilt from the last
//! load's intervals (measurements of 100 ms each) that the bus stores.
//!
//! A rebuilt run contains the shares of the load for which the bus stores measurements. If the bus
//! does not store the end of an agent's share, the agent counts as lost. Once the run file is
//! written, the agents are informed that their intervals are recorded. Not here: running loads.

use crate::delivery::Inbox;
use crate::frame::{TO_COORDINATOR_BYTES_MAX, decode_single_message_stream, encode_single_message_stream};
use crate::load_record::LoadRecord;
use crate::message::{PartTotals, ToAgent, ToCoordinator};
use crate::message_pieces::{PieceAssembler, split_message};
use crate::nats_bus::{read_stored_messages, run_file_store};
use crate::nats_client::{BusAccess, connect, connection_ended_failure, frames_stream, start_async_thread};
use crate::presence::{self, agent_name_of_subject, is_run_name};
use async_nats::Client;
use async_nats::jetstream::object_store::GetErrorKind;
use plimsoll_engine::{Collector, PartReport, Tick};
use plimsoll_model::bounds::INTERVALS_MAX;
use plimsoll_model::failure::Failure;
use plimsoll_model::{
    AgentAccount, EarlyStopReason, Experiment, ExperimentEvent, ExperimentSpec, Interval, LoadPurpose, LoadTag, Run,
    RunSpec, Schedule, StartNotes, Trial, codec,
};
use plimsoll_study::recording::describe_environment;
use plimsoll_sys::{output_file, system_text};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// The largest run file that is fetched, bytes (4 GiB).
const FILE_BYTES_MAX: u64 = 4 << 30;
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The result of fetching a run file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedRun {
    /// The run file of a coordinator that ended normally.
    Whole,
    /// The last load of a lost coordinator, rebuilt from the stored intervals (measurements of 100
    /// ms each).
    Recovered {
        /// The number of stored intervals.
        intervals: u64,
        /// The names of the agents for which the bus does not store the end of their share of the
        /// load.
        unfinished: Vec<String>,
    },
}

/// Fetches the run named `run` from the bus and writes it to the file `path`.
pub fn fetch_run_file(access: &BusAccess, run: &str, path: &Path) -> Result<FetchedRun, Failure> {
    if !is_run_name(run) {
        return Err(Failure::usage(format!(
            "'{run}' is not the name of a run: a name has 32 digits, and the plimsoll that \
             started the run printed the name"
        )));
    }
    let (sender, fetched) = channel();
    let (access, run, path) = (access.clone(), run.to_owned(), path.to_owned());
    start_async_thread(move || async move {
        let _ = sender.send(fetch_run(&access, &run, &path).await);
    })?;
    fetched.recv().map_err(|_| connection_ended_failure())?
}

async fn fetch_run(access: &BusAccess, run: &str, path: &Path) -> Result<FetchedRun, Failure> {
    let url = &access.address.url;
    let client = connect(access, &format!("fetch-{run}"), Duration::ZERO, |_| {}).await?;
    if let Some(bytes) = fetch_stored_run_file(&client, run).await.map_err(|why| fetch_failure(url, &why))? {
        write(path, &bytes)?;
        return Ok(FetchedRun::Whole);
    }
    let stored = StoredLoad::read(&client, access, run).await?;
    let Some(stored) = stored else {
        return Err(Failure::cannot_start(format!(
            "the bus at {url} has no run {run}: the bus stores run files for a week, and agents' measurements for a day"
        )));
    };
    let (experiment, fetched) = stored.to_experiment();
    write(path, &codec::encode(&experiment))?;
    stored.acknowledge_stored_intervals(&client, run).await;
    Ok(fetched)
}

fn fetch_failure(url: &str, reason: &str) -> Failure {
    Failure::cannot_start(format!("the run cannot be fetched from the bus at {url}: {reason}"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output_file::write(path, bytes).map_err(|error| {
        Failure::cannot_start(format!(
            "the run file '{file}' cannot be written: {reason}",
            file = path.display(),
            reason = system_text(&error)
        ))
    })
}

/// Returns the run file that the coordinator stored on the bus; `None` if the bus has no such file.
async fn fetch_stored_run_file(client: &Client, run: &str) -> Result<Option<Vec<u8>>, String> {
    let Some(store) = run_file_store(client).await? else { return Ok(None) };
    let object = match store.get(run).await {
        Ok(object) => object,
        Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    object.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).await.map_err(|error| system_text(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err("the stored run file is larger than 4 GiB".to_owned());
    }
    match codec::is_run_file(&bytes) {
        true => Ok(Some(bytes)),
        false => Err("the data that the bus stores under this name is not a run file".to_owned()),
    }
}

/// The last load of a run, as stored on the bus.
struct StoredLoad {
    record: LoadRecord,
    parts: Vec<StoredPart>,
}

/// The stored results of one agent's share of the load: the measurements of each tick (100 ms), and
/// the totals (seal) if the share ended.
#[derive(Default)]
struct StoredPart {
    ticks: Vec<(u32, Interval)>,
    seal: Option<PartTotals>,
    last_sequence_without_gap: u64,
}

enum StoredFrame {
    Tick(u32, Box<Interval>),
    Seal(PartTotals),
}

impl StoredLoad {
    async fn read(client: &Client, access: &BusAccess, run: &str) -> Result<Option<StoredLoad>, Failure> {
        let stream = frames_stream(client, access).await?;
        let url = &access.address.url;
        let (mut assembly, mut record) = (PieceAssembler::new(2 * TO_COORDINATOR_BYTES_MAX), None::<LoadRecord>);
        let (loads, frames) = (presence::load_record_subject(run), presence::frames_subject(run, "*"));
        let read = read_stored_messages(&stream, &loads, 1, |_, piece| {
            if let Some(load) = assembly.add_piece(&piece).and_then(|bytes| LoadRecord::read(&bytes)) {
                record = Some(load);
            }
            true
        });
        read.await.map_err(|why| fetch_failure(url, &why))?;
        let Some(record) = record else { return Ok(None) };
        let mut inboxes: BTreeMap<String, (PieceAssembler, Inbox<StoredFrame>, StoredPart)> = BTreeMap::new();
        let read = read_stored_messages(&stream, &frames, 1, |subject, piece| {
            let (assembly, inbox, part) =
                inboxes.entry(agent_name_of_subject(&subject).to_owned()).or_insert_with(|| {
                    (PieceAssembler::new(2 * TO_COORDINATOR_BYTES_MAX), Inbox::default(), StoredPart::default())
                });
            let message =
                assembly.add_piece(&piece).and_then(|bytes| decode_single_message_stream::<ToCoordinator>(bytes).ok());
            let (sequence, frame) = match message {
                Some(ToCoordinator::Tick { epoch, sequence, index, interval }) if epoch == record.epoch => {
                    (sequence, StoredFrame::Tick(index, interval))
                }
                Some(ToCoordinator::Seal { epoch, sequence, seal }) if epoch == record.epoch => {
                    (sequence, StoredFrame::Seal(seal))
                }
                _ => return true,
            };
            for frame in inbox.add_frame(sequence, frame) {
                part.add(frame);
            }
            part.last_sequence_without_gap = inbox.last_sequence_without_gap();
            true
        });
        read.await.map_err(|why| fetch_failure(url, &why))?;
        let mut part = |(name, _): &(String, _)| inboxes.remove(name).map(|it| it.2).unwrap_or_default();
        let parts = record.agents.iter().map(&mut part).collect();
        Ok(Some(StoredLoad { record, parts }))
    }

    /// Builds an experiment with one run from the stored load.
    fn to_experiment(&self) -> (Experiment, FetchedRun) {
        let record = &self.record;
        let unfinished: Vec<String> = record
            .agents
            .iter()
            .zip(&self.parts)
            .filter(|(_, part)| part.seal.is_none())
            .map(|(agent, _)| agent.0.clone())
            .collect();
        let intervals = self.parts.iter().map(|part| part.ticks.len() as u64).sum();
        let run = self.rebuild_run();
        let elapsed_ns = Some(run.window_ns.1);
        let injectors = record.agents.iter().map(|(_, injector)| injector.clone()).collect();
        let experiment = Experiment {
            command: Vec::new(),
            settings: None,
            spec: ExperimentSpec::Run(RunSpec { plan: record.plan.clone(), stop_if: None, profiles: None }),
            started_unix_ms: record.started_unix_ms,
            environment: plimsoll_model::Environment { injectors, ..describe_environment(false) },
            start_notes: StartNotes {
                warnings: vec![
                    "the plimsoll that started the run was lost: the run file contains only the last load of the run"
                        .to_owned(),
                ],
                adjustments: Vec::new(),
            },
            trials: vec![Trial { tag: LoadTag::for_purpose(LoadPurpose::Run), start_ns: 0, run }],
            events: vec![ExperimentEvent::Aborted {
                reason: "the coordinator (the plimsoll that started the run) was lost".to_owned(),
            }],
            elapsed_ns,
        };
        (experiment, FetchedRun::Recovered { intervals, unfinished })
    }

    fn rebuild_run(&self) -> Run {
        let LoadRecord { plan, agents, .. } = &self.record;
        let schedule = Schedule::compile(&plan.load);
        let injectors = agents.iter().map(|(_, injector)| injector.clone()).collect();
        let mut collector = Collector::new(plan.clone(), injectors, agents.len(), &schedule);
        let on_tick = &mut |_: &Tick| ControlFlow::Continue(());
        let mut accounts = Vec::new();
        for (number, (part, (name, injector))) in self.parts.iter().zip(agents).enumerate() {
            let mut account = AgentAccount {
                intervals_recorded: part.last_sequence_without_gap,
                ..AgentAccount::new(name, injector.workers)
            };
            for (index, interval) in &part.ticks {
                interval.routes.iter().for_each(|(_, figures)| account.ledger.merge(&figures.ledger));
                let tick = PartReport::Tick { part: number, index: u64::from(*index), interval: interval.clone() };
                let _ = collector.add_report(tick, on_tick);
            }
            let end = match &part.seal {
                Some(PartTotals {
                    window_end_ns, failed_answers, has_no_more_requests, failure_reason: None, ..
                }) => PartReport::Done {
                    part: number,
                    window_end_ns: *window_end_ns,
                    failed_answers: failed_answers.clone(),
                    has_no_more_requests: *has_no_more_requests,
                },
                seal => {
                    let why = seal.as_ref().and_then(|seal| seal.failure_reason.clone());
                    let why = why.unwrap_or_else(|| "the bus has no record of the end of the agent's load".to_owned());
                    account.loss_reason = Some(why.clone());
                    account.ledger.in_flight += account.ledger.requests_without_outcome();
                    PartReport::Lost {
                        part: number,
                        why: EarlyStopReason::CannotContinue(format!("agent {name} was lost: {why}")),
                    }
                }
            };
            let _ = collector.add_report(end, on_tick);
            accounts.push(account);
        }
        let mut run = collector.finish();
        accounts.sort_by(|a, b| a.name.cmp(&b.name));
        run.agents = accounts;
        run
    }

    /// Tells the agents that their stored intervals are recorded in a run file. The agents can then
    /// delete the intervals.
    async fn acknowledge_stored_intervals(&self, client: &Client, run: &str) {
        for (number, ((name, _), part)) in self.record.agents.iter().zip(&self.parts).enumerate() {
            let commit = ToAgent::Commit { epoch: self.record.epoch, sequence: part.last_sequence_without_gap };
            for piece in split_message(number as u64, &encode_single_message_stream(|out| commit.encode(out)), 1_024) {
                let _ = client.publish(presence::to_agent_subject(run, name), piece.into()).await;
            }
        }
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, client.flush()).await;
    }
}

impl StoredPart {
    fn add(&mut self, frame: StoredFrame) {
        match frame {
            StoredFrame::Tick(index, interval) => {
                let is_next = self.ticks.last().is_none_or(|last| last.0 < index);
                if is_next && u64::from(index) <= INTERVALS_MAX && self.seal.is_none() {
                    self.ticks.push((index, *interval));
                }
            }
            StoredFrame::Seal(seal) => self.seal = Some(seal),
        }
    }
}
