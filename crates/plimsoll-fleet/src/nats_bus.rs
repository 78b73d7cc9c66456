//! Connects a coordinator to its agents over NATS ([`NatsBus`]): chooses agents, reserves (claims)
//! them for a run, and sends and receives messages. The coordinator receives intervals (the
//! measurements of 100 ms each) directly like all messages, and the bus also stores the intervals.
//! After an outage, the coordinator reads missed intervals from the bus's storage.
//!
//! Not here: the agents' side of the bus (`nats_agent`), and run files from the bus's storage
//! (`fetch`).

use crate::bus::{Bus, BusEvent};
use crate::frame::{TO_COORDINATOR_BYTES_MAX, decode_single_message_stream, encode_single_message_stream};
use crate::load_record::LoadRecord;
use crate::message::{ToAgent, ToCoordinator};
use crate::message_pieces::{PieceAssembler, split_message};
use crate::nats_client::{
    BusAccess, PLAN_BYTES_MAX, connect, connection_ended_failure, fatal_event_reason, frames_stream, jetstream_context,
    largest_piece_bytes, start_async_thread, subscribe,
};
use crate::presence::{
    self, AgentClaim, PRESENCE_REQUEST_SUBJECT, PRESENCE_SUBJECT_PATTERN, Presence, agent_name_of_subject,
};
use crate::roster::{AgentChoice, Roster, RosterState};
use crate::task_key::{random_bytes, to_hex};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::object_store::{Config as StoreConfig, ObjectStore};
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use async_nats::{Client, Event, Message, Subscriber};
use futures_util::StreamExt;
use plimsoll_model::failure::Failure;
use plimsoll_model::units::format_exact_duration;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::{signal, system_text};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long a coordinator waits for the wanted agents to join the bus, unless the user sets another
/// time.
const AGENTS_WAIT_DEFAULT: Duration = Duration::from_secs(30);
/// The interval at which a coordinator repeats its requests to agents: requests to announce their
/// presence, and claims.
const REQUEST_REPEAT_INTERVAL: Duration = Duration::from_millis(300);
/// The time to wait after the wanted agents have been found. During the wait, the coordinator can
/// detect two agents with the same name, and agents that become free.
const AGENT_LIST_SETTLE_TIME: Duration = Duration::from_millis(400);
/// The longest wait until an agent confirms the claim of a coordinator.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between echo messages, which the coordinator sends to itself to check that the bus
/// works.
const ECHO_INTERVAL: Duration = Duration::from_millis(200);
/// The time without an echo message after which the bus counts as down, ns (1.2 s).
const ECHO_TIMEOUT_NS: u64 = 1_200_000_000;
/// The length of an outage of the bus after which all agents count as lost, ns (60 s).
const OUTAGE_NS_MAX: u64 = 60_000_000_000;
/// The longest wait until the connection has sent all buffered messages.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest wait for the deletion of stored frames (result messages).
const PURGE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest wait for the storage of a run file.
const STORE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for which the bus stores a run file (7 days).
const STORED_RUN_FILE_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The name of the object store for run files.
const RUN_STORE_BUCKET: &str = "plimsoll-runs";
/// The largest number of attempts to read or write data that the bus stores.
const STORAGE_ATTEMPTS_MAX: u32 = 20;
const STORAGE_RETRY_DELAY: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A command for the thread that has the bus connection.
enum CoordinatorBusCommand {
    Send(usize, Vec<u8>),
    BeginLoad(Box<LoadRecord>),
    PurgeStoredLoad,
    Store(PathBuf, Sender<Result<(), String>>),
    End,
}

/// A coordinator's connection to agents on a NATS bus.
pub struct NatsBus {
    access: BusAccess,
    run: String,
    commands: UnboundedSender<CoordinatorBusCommand>,
    events: Receiver<(usize, u64, BusEvent)>,
    /// The time on this machine's monotonic clock when the last echo message arrived, ns. A recent
    /// echo message shows that the bus works.
    last_echo_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl NatsBus {
    /// Waits for the wanted agents and claims them for a new run. Also returns the agents' names,
    /// ordered by agent number (the index that messages use).
    ///
    /// If `wait` is `None`, a bus that does not respond causes an error at once.
    pub fn open(
        access: &BusAccess,
        choice: &AgentChoice,
        wait: Option<Duration>,
    ) -> Result<(NatsBus, Vec<String>), Failure> {
        let run = to_hex(&random_bytes::<16>()?);
        let (commands, queue) = unbounded_channel();
        let (sender, events) = channel();
        let (ready, is_ready) = channel();
        let echo_ns = Arc::new(AtomicU64::new(0));
        let worker = CoordinatorBusWorker {
            access: access.clone(),
            run: run.clone(),
            choice: choice.clone(),
            bus_wait_max: wait.unwrap_or_default(),
            agents_wait_max: wait.unwrap_or(AGENTS_WAIT_DEFAULT),
            sender,
            last_echo_ns: Arc::clone(&echo_ns),
        };
        let thread = start_async_thread(move || worker.connect_and_relay(queue, ready))?;
        let names = is_ready.recv().map_err(|_| connection_ended_failure())??;
        Ok((
            NatsBus { access: access.clone(), run, commands, events, last_echo_ns: echo_ns, thread: Some(thread) },
            names,
        ))
    }
}

impl Bus for NatsBus {
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn send(&mut self, agent: usize, message: &ToAgent) {
        let _ = self
            .commands
            .send(CoordinatorBusCommand::Send(agent, encode_single_message_stream(|out| message.encode(out))));
    }

    fn receive(&mut self, patience: Duration) -> Option<(usize, u64, BusEvent)> {
        self.events.recv_timeout(patience).ok()
    }

    fn is_interrupted(&self) -> bool {
        signal::is_stop_requested()
    }

    fn run_name(&self) -> &str {
        &self.run
    }

    fn is_up(&self) -> bool {
        monotonic_ns().saturating_sub(self.last_echo_ns.load(Ordering::Relaxed)) < ECHO_TIMEOUT_NS
    }

    fn plan_bytes_max(&self) -> usize {
        PLAN_BYTES_MAX
    }

    fn begin_load(&mut self, load: &LoadRecord) {
        let _ = self.commands.send(CoordinatorBusCommand::BeginLoad(Box::new(load.clone())));
    }

    fn delete_stored_load(&mut self) {
        let _ = self.commands.send(CoordinatorBusCommand::PurgeStoredLoad);
    }

    fn store_file(&mut self, path: &Path) -> Result<Option<String>, String> {
        let (reply, stored) = channel();
        let _ = self.commands.send(CoordinatorBusCommand::Store(path.to_owned(), reply));
        let url = &self.access.address.url;
        match stored.recv_timeout(STORE_TIMEOUT) {
            Ok(Ok(())) => Ok(Some(format!(
                "to fetch the run file from any machine: plimsoll fleet fetch {url} {run}",
                run = self.run
            ))),
            Ok(Err(reason)) => Err(format!("the bus at {url} does not store the run file: {reason}")),
            Err(_) => Err(format!("the bus at {url} took too long to store the run file")),
        }
    }
}

impl Drop for NatsBus {
    fn drop(&mut self) {
        let _ = self.commands.send(CoordinatorBusCommand::End);
        let deadline = Instant::now() + 2 * FLUSH_TIMEOUT;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.thread.take();
    }
}

/// The state of the thread that has the bus connection.
struct CoordinatorBusWorker {
    access: BusAccess,
    run: String,
    choice: AgentChoice,
    bus_wait_max: Duration,
    agents_wait_max: Duration,
    sender: Sender<(usize, u64, BusEvent)>,
    last_echo_ns: Arc<AtomicU64>,
}

/// An open connection to the bus, and the agents that are reserved (claimed) for this run.
struct OpenBus {
    client: Client,
    stream: Stream,
    names: Vec<String>,
    messages: Subscriber,
    frames: Subscriber,
    echoes: Subscriber,
    events: UnboundedReceiver<Event>,
}

impl CoordinatorBusWorker {
    async fn connect_and_relay(
        self,
        queue: UnboundedReceiver<CoordinatorBusCommand>,
        ready: Sender<Result<Vec<String>, Failure>>,
    ) {
        match self.open().await {
            Ok(open) => {
                let _ = ready.send(Ok(open.names.clone()));
                self.relay_messages(open, queue).await;
            }
            Err(failure) => _ = ready.send(Err(failure)),
        }
    }

    async fn open(&self) -> Result<OpenBus, Failure> {
        let (event_sender, mut events) = unbounded_channel();
        let on_event = move |event| _ = event_sender.send(event);
        let client = connect(&self.access, &format!("coord-{}", self.run), self.bus_wait_max, on_event).await?;
        let opened = self.subscribe_and_claim_agents(client).await;
        // NATS reports a missing permission as an event, not as an error of the call.
        let refused =
            std::iter::from_fn(|| events.try_recv().ok()).find_map(|event| fatal_event_reason(&event, &self.access));
        match (opened, refused) {
            (Ok(open), _) => Ok(OpenBus { events, ..open }),
            (Err(_), Some(why)) => Err(Failure::cannot_start(why)),
            (Err(failure), None) => Err(failure),
        }
    }

    async fn subscribe_and_claim_agents(&self, client: Client) -> Result<OpenBus, Failure> {
        let stream = frames_stream(&client, &self.access).await?;
        let messages = subscribe(&client, &self.access, presence::from_agent_subject(&self.run, "*")).await?;
        let frames = subscribe(&client, &self.access, presence::frames_subject(&self.run, "*")).await?;
        let echoes = subscribe(&client, &self.access, presence::echo_subject(&self.run)).await?;
        let mut heard = subscribe(&client, &self.access, PRESENCE_SUBJECT_PATTERN.to_owned()).await?;
        let agents = self.choose_agents(&client, &mut heard).await?;
        let claimed = self.claim_agents(&client, &mut heard, &agents).await;
        let names: Vec<String> = agents.into_iter().map(|(name, _)| name).collect();
        if let Err(failure) = claimed {
            // One agent could not be claimed for this run, so all agents of the run are released.
            for name in &names {
                self.publish(&client, name, 0, &encode_single_message_stream(|out| ToAgent::Leave.encode(out))).await;
            }
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, client.flush()).await;
            return Err(failure);
        }
        self.last_echo_ns.store(monotonic_ns(), Ordering::Relaxed);
        let (_, events) = unbounded_channel();
        Ok(OpenBus { client, stream, names, messages, frames, echoes, events })
    }

    /// Waits for the wanted agents and chooses the agents of the run. Returns the name and the
    /// start id of each agent.
    async fn choose_agents(
        &self,
        client: &Client,
        subscriber: &mut Subscriber,
    ) -> Result<Vec<(String, String)>, Failure> {
        let (begun, mut roster, mut complete_since) = (Instant::now(), Roster::default(), None::<Instant>);
        let mut asked = None::<Instant>;
        loop {
            if asked.is_none_or(|asked| asked.elapsed() >= REQUEST_REPEAT_INTERVAL) {
                asked = Some(Instant::now());
                let _ = client.publish(PRESENCE_REQUEST_SUBJECT, Vec::new().into()).await;
            }
            if let Some((name, presence)) = next_presence(subscriber, POLL_INTERVAL).await {
                roster.add(&name, presence);
            }
            if signal::is_stop_requested() {
                return Err(Failure::cannot_start("interrupted"));
            }
            let state = roster.compare_with_choice(&self.choice);
            let is_settled = complete_since.is_some_and(|since| since.elapsed() >= AGENT_LIST_SETTLE_TIME);
            match state {
                RosterState::Complete(agents) if is_settled => return Ok(agents),
                // An error is returned only if its cause persists for `AGENT_LIST_SETTLE_TIME`,
                // because an agent of another coordinator may become free soon.
                RosterState::Refused(why) if is_settled => return Err(Failure::cannot_start(why)),
                RosterState::Complete(_) | RosterState::Refused(_) => {
                    _ = complete_since.get_or_insert_with(Instant::now)
                }
                RosterState::Incomplete => complete_since = None,
            }
            if begun.elapsed() >= self.agents_wait_max.max(AGENT_LIST_SETTLE_TIME) && complete_since.is_none() {
                return Err(Failure::cannot_start(roster.missing_agents_message(
                    &self.choice,
                    self.agents_wait_max,
                    &self.access.address.url,
                )));
            }
        }
    }

    /// Claims (reserves) agents for this run, and waits until each agent confirms.
    async fn claim_agents(
        &self,
        client: &Client,
        subscriber: &mut Subscriber,
        agents: &[(String, String)],
    ) -> Result<(), Failure> {
        let (begun, mut asked) = (Instant::now(), None::<Instant>);
        let mut waiting: Vec<&(String, String)> = agents.iter().collect();
        while !waiting.is_empty() {
            if asked.is_none_or(|asked| asked.elapsed() >= REQUEST_REPEAT_INTERVAL) {
                asked = Some(Instant::now());
                for (name, boot) in &waiting {
                    let claim = AgentClaim { start_id: boot.clone(), run: self.run.clone() };
                    let _ = client.publish(presence::claim_subject(name), claim.encode_json().into()).await;
                }
            }
            if let Some((name, presence)) = next_presence(subscriber, POLL_INTERVAL).await {
                match presence.run.as_deref() {
                    Some(run) if run == self.run => {
                        waiting.retain(|agent| **agent != (name.clone(), presence.start_id.clone()))
                    }
                    Some(_) if waiting.iter().any(|agent| agent.0 == name) => {
                        return Err(Failure::cannot_start(format!(
                            "agent {name} works for another coordinator (another plimsoll run): wait until the \
                             agent is free, or name other agents with --agents"
                        )));
                    }
                    _ => {}
                }
            }
            if begun.elapsed() >= CLAIM_TIMEOUT
                && let Some((name, _)) = waiting.first()
            {
                return Err(Failure::cannot_start(format!(
                    "agent {name} did not accept this run within {time}: see the output of the agent, or name other \
                     agents with --agents",
                    time = format_exact_duration(CLAIM_TIMEOUT.as_nanos() as u64)
                )));
            }
            if signal::is_stop_requested() {
                return Err(Failure::cannot_start("interrupted"));
            }
        }
        Ok(())
    }

    async fn publish(&self, client: &Client, name: &str, number: u64, message: &[u8]) {
        let subject = presence::to_agent_subject(&self.run, name);
        for piece in split_message(number, message, largest_piece_bytes(client)) {
            let _ = client.publish(subject.clone(), piece.into()).await;
        }
    }

    /// Carries messages between the agents and the coordinator until the connection ends.
    async fn relay_messages(self, open: OpenBus, mut queue: UnboundedReceiver<CoordinatorBusCommand>) {
        let OpenBus { client, stream, names, mut messages, mut frames, mut echoes, mut events } = open;
        let mut hearing = MessageAssembler::new(&names, self.sender.clone());
        let (replay, mut replayed) = unbounded_channel::<(String, Vec<u8>)>();
        let mut echo_timer = tokio::time::interval(ECHO_INTERVAL);
        // Messages in the stream with smaller sequence numbers were stored before the current run.
        let from_sequence = stream.cached_info().state.last_sequence + 1;
        let (mut number, mut was_down) = (monotonic_ns(), false);
        loop {
            let is_connected = client.connection_state() == async_nats::connection::State::Connected;
            tokio::select! {
                order = queue.recv() => match order {
                    // Without a connection a message is dropped, because the coordinator repeats
                    // the message or sends a newer message.
                    Some(CoordinatorBusCommand::Send(agent, message)) if is_connected => {
                        number += 1;
                        self.publish(&client, &names[agent], number, &message).await;
                    }
                    Some(CoordinatorBusCommand::Send(..)) => {}
                    Some(CoordinatorBusCommand::BeginLoad(record)) => {
                        number += 1;
                        let pieces = split_message(number, &record.encode_json(), largest_piece_bytes(&client));
                        tokio::spawn(store_pieces(client.clone(), presence::load_record_subject(&self.run), pieces));
                    }
                    Some(CoordinatorBusCommand::PurgeStoredLoad) => purge_stored_frames(&stream, &self.run).await,
                    Some(CoordinatorBusCommand::Store(path, reply)) => {
                        tokio::spawn(store_run_file(client.clone(), self.run.clone(), path, reply));
                    }
                    Some(CoordinatorBusCommand::End) | None => {
                        let _ = tokio::time::timeout(FLUSH_TIMEOUT, client.flush()).await;
                        return;
                    }
                },
                Some(message) = messages.next() => hearing.add_piece(&message.subject, &message.payload),
                Some(message) = frames.next() => hearing.add_piece(&message.subject, &message.payload),
                Some((subject, piece)) = replayed.recv() => hearing.add_piece(&subject, &piece),
                Some(_) = echoes.next() => self.last_echo_ns.store(monotonic_ns(), Ordering::Relaxed),
                Some(event) = events.recv() => {
                    if let Some(why) = fatal_event_reason(&event, &self.access) {
                        hearing.report_all_agents_lost(&why);
                    }
                    match event {
                        Event::Disconnected => was_down = true,
                        Event::Connected if was_down => {
                            was_down = false;
                            tokio::spawn(replay_frames(stream.clone(), self.run.clone(), from_sequence, replay.clone()));
                        }
                        _ => {}
                    }
                }
                _ = echo_timer.tick() => {
                    if is_connected {
                        let _ = client.publish(presence::echo_subject(&self.run), Vec::new().into()).await;
                    }
                    let down_ns = monotonic_ns().saturating_sub(self.last_echo_ns.load(Ordering::Relaxed));
                    if down_ns > OUTAGE_NS_MAX {
                        hearing.report_all_agents_lost("the agent's bus did not respond for 60 s");
                    }
                }
            }
        }
    }
}

/// Assembles the received pieces of messages, and passes complete messages to the coordinator.
struct MessageAssembler {
    agents: Vec<(String, PieceAssembler)>,
    sender: Sender<(usize, u64, BusEvent)>,
}

impl MessageAssembler {
    fn new(names: &[String], sender: Sender<(usize, u64, BusEvent)>) -> MessageAssembler {
        let assembly = || PieceAssembler::new(2 * TO_COORDINATOR_BYTES_MAX);
        MessageAssembler { agents: names.iter().map(|name| (name.clone(), assembly())).collect(), sender }
    }

    fn add_piece(&mut self, subject: &str, piece: &[u8]) {
        let came_ns = monotonic_ns();
        let name = agent_name_of_subject(subject);
        let Some(agent) = self.agents.iter().position(|agent| agent.0 == name) else { return };
        let Some(message) = self.agents[agent].1.add_piece(piece) else { return };
        let arrived = match decode_single_message_stream::<ToCoordinator>(message) {
            Ok(message) => BusEvent::Message(message),
            Err(error) => BusEvent::Gone(error.to_string()),
        };
        let _ = self.sender.send((agent, came_ns, arrived));
    }

    fn report_all_agents_lost(&self, why: &str) {
        for agent in 0..self.agents.len() {
            let _ = self.sender.send((agent, monotonic_ns(), BusEvent::Gone(why.to_owned())));
        }
    }
}

async fn next_presence(subscriber: &mut Subscriber, patience: Duration) -> Option<(String, Presence)> {
    let message: Message = tokio::time::timeout(patience, subscriber.next()).await.ok()??;
    Some((agent_name_of_subject(&message.subject).to_owned(), Presence::read(&message.payload)?))
}

/// Stores the pieces of a message in the bus's storage, and tries again for each piece that the bus
/// does not acknowledge.
async fn store_pieces(client: Client, subject: String, pieces: Vec<Vec<u8>>) {
    let context = jetstream_context(&client);
    for piece in pieces {
        for _ in 0..STORAGE_ATTEMPTS_MAX {
            if let Ok(acknowledged) = context.publish(subject.clone(), piece.clone().into()).await
                && acknowledged.await.is_ok()
            {
                break;
            }
            tokio::time::sleep(STORAGE_RETRY_DELAY).await;
        }
    }
}

/// Deletes the stored frames (result messages) of a run from the bus, because the run file contains
/// the frames.
async fn purge_stored_frames(stream: &Stream, run: &str) {
    for subject in [presence::frames_subject(run, "*"), presence::load_record_subject(run)] {
        let _ = tokio::time::timeout(PURGE_TIMEOUT, stream.purge().filter(subject)).await;
    }
}

/// Reads the stored messages of a subject in order, beginning with message number `from_sequence`.
/// Calls `take` with the subject and content of each message until `take` returns false.
pub async fn read_stored_messages(
    stream: &Stream,
    subject: &str,
    from_sequence: u64,
    mut take: impl FnMut(String, Vec<u8>) -> bool,
) -> Result<(), String> {
    let (mut sequence, mut tries) = (from_sequence.max(1), 0);
    loop {
        match stream.direct_get_next_for_subject(subject, Some(sequence)).await {
            Ok(message) => {
                (sequence, tries) = (message.sequence + 1, 0);
                if !take(message.subject.to_string(), message.payload.to_vec()) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => return Ok(()),
            Err(error) if tries >= STORAGE_ATTEMPTS_MAX => return Err(error.to_string()),
            Err(_) => {
                tries += 1;
                tokio::time::sleep(STORAGE_RETRY_DELAY).await;
            }
        }
    }
}

async fn replay_frames(stream: Stream, run: String, from_sequence: u64, sender: UnboundedSender<(String, Vec<u8>)>) {
    // Errors of the replay are ignored, because an agent sends a frame (result message) again until
    // the coordinator has recorded it.
    let _ = read_stored_messages(&stream, &presence::frames_subject(&run, "*"), from_sequence, |subject, piece| {
        sender.send((subject, piece)).is_ok()
    })
    .await;
}

/// Returns the object store for run files; `None` if it does not exist. The error is the reason why
/// the bus could not be asked.
pub async fn run_file_store(client: &Client) -> Result<Option<ObjectStore>, String> {
    let error = match async_nats::jetstream::new(client.clone()).get_object_store(RUN_STORE_BUCKET).await {
        Ok(store) => return Ok(Some(store)),
        Err(error) => error,
    };
    let stream_error = error.source().and_then(|source| source.downcast_ref::<GetStreamError>());
    match stream_error.map(GetStreamError::kind) {
        Some(GetStreamErrorKind::JetStream(reason)) if reason.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(None),
        _ => Err(error.to_string()),
    }
}

async fn store_run_file(client: Client, run: String, path: PathBuf, reply: Sender<Result<(), String>>) {
    let stored = async {
        let bytes = std::fs::read(&path).map_err(|error| system_text(&error))?;
        let store = match run_file_store(&client).await? {
            Some(store) => store,
            None => {
                let config = StoreConfig {
                    bucket: RUN_STORE_BUCKET.to_owned(),
                    max_age: STORED_RUN_FILE_AGE_MAX,
                    ..StoreConfig::default()
                };
                let made = async_nats::jetstream::new(client.clone()).create_object_store(config).await;
                made.map_err(|error| error.to_string())?
            }
        };
        store.put(run.as_str(), &mut bytes.as_slice()).await.map(drop).map_err(|error| error.to_string())
    };
    let _ = reply.send(stored.await);
}
