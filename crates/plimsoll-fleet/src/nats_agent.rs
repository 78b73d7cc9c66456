//! An agent on a NATS bus ([`join_bus`]). The agent announces itself and works for one coordinator
//! at a time. The agent's intervals (the measurements of 100 ms each) stay on disk until a
//! coordinator has recorded them (`spool`).
//!
//! The bus acknowledges each interval once the bus has stored the interval. An interval that no
//! coordinator records is sent again, also after the agent was killed and restarted. Not here: the
//! coordinator's bus connection (`nats_bus`), and running loads (`service`).

use crate::allow::AllowList;
use crate::frame::{PROTOCOL_GREETING, TO_AGENT_BYTES_MAX, decode_single_message_stream, encode_single_message_stream};
use crate::message::{ToAgent, ToCoordinator};
use crate::message_pieces::{PieceAssembler, split_message};
use crate::nats_client::{
    BusAccess, connect, connection_ended_failure, fatal_event_reason, jetstream_context, largest_piece_bytes,
    start_async_thread, subscribe,
};
use crate::presence::{self, AgentClaim, PRESENCE_REQUEST_SUBJECT, Presence, is_run_name, run_name_of_subject};
use crate::service::{AgentSessionEvent, AgentTransport, Permissions, SessionEnd, local_agent_hello, serve_session};
use crate::spool::{Spool, SpoolCallbacks, SpoolEntry};
use crate::task_key::{TaskVerifier, random_bytes, to_hex};
use async_nats::jetstream::Context;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use plimsoll_model::failure::Failure;
use plimsoll_sys::clock::monotonic_ns;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The interval at which an agent announces its presence without a request.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(2);
/// The time for which a new agent waits for messages of another agent with the same name.
const NAME_CHECK_TIME: Duration = Duration::from_millis(1_000);
/// The largest number of intervals (measurements of 100 ms each) that are being sent to the bus at
/// once.
const INTERVALS_IN_FLIGHT_MAX: usize = 16;
/// The pause between a failed attempt to publish a piece of an interval (the measurements of 100
/// ms) and the next attempt.
const PUBLISH_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The time after which an interval that the bus has acknowledged, but that no coordinator has
/// recorded, may be published again.
const RECORD_TIMEOUT: Duration = Duration::from_secs(2);
/// The time after which an agent stops publishing an interval that the bus never acknowledged (24
/// h). The agent's storage on disk (spool) also drops intervals after 24 h.
const UNACCEPTED_INTERVAL_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// Options of an agent that joins a bus.
#[derive(Debug, Clone)]
pub struct BusJoinOptions {
    /// The address of the bus and the files with credentials and certificates.
    pub access: BusAccess,
    /// The name of the agent on the bus.
    pub name: String,
    /// The addresses to which the agent may send load.
    pub allow: AllowList,
    /// The public key with which the agent verifies tasks. With `None`, the agent accepts tasks of
    /// any coordinator.
    pub verifier: Option<TaskVerifier>,
    /// The folder in which the agent stores its intervals (measurements of 100 ms each).
    pub spool: PathBuf,
    /// The longest time to wait for a bus that does not respond.
    pub connect_timeout: Duration,
}

/// A command for the thread that has the bus connection.
enum AgentBusCommand {
    /// Send this encoded message to the coordinator.
    Send(Vec<u8>),
    /// End the session, so that another coordinator can claim the agent.
    Release,
}

/// Sends the messages of one session over the bus. Frames (result messages) are first stored on
/// disk, in the spool.
struct BusTransport {
    run: String,
    commands: UnboundedSender<AgentBusCommand>,
    spool: Spool,
}

impl AgentTransport for BusTransport {
    fn send(&mut self, message: &ToCoordinator) {
        let bytes = encode_single_message_stream(|out| message.encode(out));
        match message {
            ToCoordinator::Tick { epoch, sequence, .. } | ToCoordinator::Seal { epoch, sequence, .. } => {
                self.spool.append_entry(SpoolEntry { run: self.run.clone(), key: (*epoch, *sequence), message: bytes });
            }
            _ => _ = self.commands.send(AgentBusCommand::Send(bytes)),
        }
    }

    fn keeps_running_without_coordinator(&self) -> bool {
        true
    }
}

/// Joins a bus and serves coordinators, one after another, until the connection to the bus ends for
/// good. `on_joined` is called when the agent has joined the bus.
pub fn join_bus(options: BusJoinOptions, on_joined: &mut dyn FnMut()) -> Result<(), Failure> {
    let (sender, events) = channel();
    let (stored_sender, stored) = unbounded_channel();
    let failed = sender.clone();
    let spool = Spool::open(
        &options.spool,
        SpoolCallbacks {
            on_stored: Box::new(move |entry| _ = stored_sender.send(entry)),
            on_failed: Box::new(move |why| _ = failed.send(AgentSessionEvent::SpoolFailed(why))),
        },
    )?;
    let allow = options.allow.clone().without_addresses(options.access.resolve_addresses());
    let permissions = Arc::new(Permissions { allow, verifier: options.verifier.clone() });
    let (orders, queue) = unbounded_channel();
    let (ready, is_ready) = channel();
    let start_id = to_hex(&random_bytes::<16>()?);
    let worker = AgentBusWorker { options, start_id, sender: sender.clone(), spool: spool.clone() };
    start_async_thread(move || worker.connect_and_relay(queue, stored, ready))?;
    is_ready.recv().map_err(|_| connection_ended_failure())??;
    on_joined();
    let closed = |why: Option<String>| why.map_or(Ok(()), |why| Err(Failure::cannot_start(why)));
    loop {
        let run = match events.recv() {
            Ok(AgentSessionEvent::Claimed(run)) => run,
            Ok(AgentSessionEvent::Closed(why)) => return closed(why),
            Err(_) => return Err(connection_ended_failure()),
            // Between sessions, any event other than a claim belongs to an ended session, so the
            // event is ignored.
            Ok(_) => continue,
        };
        let mut carrier = BusTransport { run: run.clone(), commands: orders.clone(), spool: spool.clone() };
        let end = serve_session(&run, &events, &sender, &mut carrier, &permissions);
        spool.close(&run);
        // This loop drops late events of the ended session's last load, so that the next session
        // does not receive those events.
        while let Ok(event) = events.try_recv() {
            if let AgentSessionEvent::Closed(why) = event {
                return closed(why);
            }
        }
        if let SessionEnd::Closed(why) = end {
            return closed(why);
        }
        let _ = orders.send(AgentBusCommand::Release);
    }
}

/// The state of the thread that has the bus connection.
struct AgentBusWorker {
    options: BusJoinOptions,
    start_id: String,
    sender: Sender<AgentSessionEvent>,
    spool: Spool,
}

/// The agent's subscriptions on the bus.
struct Subscriptions {
    /// Requests for the presence of all agents.
    presence_requests: Subscriber,
    /// Claims of coordinators on this agent.
    claims: Subscriber,
    /// Messages of coordinators to this agent, for any run.
    messages: Subscriber,
    /// Presence messages under this agent's name, which reveal another agent with the name.
    same_name_presences: Subscriber,
}

impl AgentBusWorker {
    async fn connect_and_relay(
        self,
        queue: UnboundedReceiver<AgentBusCommand>,
        stored: UnboundedReceiver<SpoolEntry>,
        ready: Sender<Result<(), Failure>>,
    ) {
        let (event_sender, mut events) = unbounded_channel();
        let on_event = move |event| _ = event_sender.send(event);
        let BusJoinOptions { access, name, connect_timeout: wait, .. } = &self.options;
        let opened = match connect(access, name, *wait, on_event).await {
            Err(failure) => Err(failure),
            Ok(client) => match self.subscribe(&client).await {
                Err(failure) => Err(failure),
                Ok(mut heard) => {
                    self.check_agent_name_is_free(&client, &mut heard, &mut events).await.map(|()| (client, heard))
                }
            },
        };
        match opened {
            Err(failure) => _ = ready.send(Err(failure)),
            Ok((client, heard)) => {
                let _ = ready.send(Ok(()));
                self.relay_bus_messages(client, heard, queue, stored, events).await;
            }
        }
    }

    async fn subscribe(&self, client: &Client) -> Result<Subscriptions, Failure> {
        let BusJoinOptions { access, name, .. } = &self.options;
        Ok(Subscriptions {
            presence_requests: subscribe(client, access, PRESENCE_REQUEST_SUBJECT.to_owned()).await?,
            claims: subscribe(client, access, presence::claim_subject(name)).await?,
            messages: subscribe(client, access, presence::to_agent_subject("*", name)).await?,
            same_name_presences: subscribe(client, access, presence::presence_subject(name)).await?,
        })
    }

    fn presence_message(&self, run: Option<&str>, is_new: bool) -> Vec<u8> {
        let (protocol, start_id) = (PROTOCOL_GREETING[PROTOCOL_GREETING.len() - 1], self.start_id.clone());
        Presence { protocol, start_id, hello: local_agent_hello(), run: run.map(str::to_owned), is_new }.encode_json()
    }

    async fn announce_presence(&self, client: &Client, run: Option<&str>, is_new: bool) {
        let _ = client
            .publish(presence::presence_subject(&self.options.name), self.presence_message(run, is_new).into())
            .await;
    }

    /// Returns an error if another agent with the same name is on the bus. If two agents with one
    /// name start together, only one of them continues.
    async fn check_agent_name_is_free(
        &self,
        client: &Client,
        heard: &mut Subscriptions,
        events: &mut UnboundedReceiver<async_nats::Event>,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        self.announce_presence(client, None, true).await;
        let _ = client.publish(PRESENCE_REQUEST_SUBJECT, Vec::new().into()).await;
        loop {
            let left = NAME_CHECK_TIME.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                Some(message) = heard.same_name_presences.next() => {
                    let Some(other) = Presence::read(&message.payload).filter(|other| other.start_id != self.start_id) else { continue };
                    if !other.is_new || other.start_id < self.start_id {
                        let BusJoinOptions { name, access, .. } = &self.options;
                        return Err(Failure::usage(format!(
                            "another agent with the name {name} is already on the bus at {bus_url}: give this agent \
                             another name with --name",
                            bus_url = access.address.url
                        )));
                    }
                }
                Some(_) = heard.presence_requests.next() => self.announce_presence(client, None, true).await,
                Some(event) = events.recv() => {
                    if let Some(why) = fatal_event_reason(&event, &self.options.access) {
                        return Err(Failure::cannot_start(why));
                    }
                }
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    async fn relay_bus_messages(
        self,
        client: Client,
        subscriptions: Subscriptions,
        mut queue: UnboundedReceiver<AgentBusCommand>,
        stored: UnboundedReceiver<SpoolEntry>,
        mut events: UnboundedReceiver<async_nats::Event>,
    ) {
        let Subscriptions { presence_requests: mut who, mut claims, mut messages, same_name_presences: namesakes } =
            subscriptions;
        drop(namesakes);
        let (recorded, commits) = unbounded_channel();
        tokio::spawn(publish_stored_intervals(client.clone(), self.options.name.clone(), stored, commits));
        let (mut run, mut assembly) = (None::<String>, PieceAssembler::new(TO_AGENT_BYTES_MAX));
        let (mut number, mut timer) = (monotonic_ns(), tokio::time::interval(PRESENCE_INTERVAL));
        loop {
            tokio::select! {
                Some(_) = who.next() => self.announce_presence(&client, run.as_deref(), false).await,
                _ = timer.tick() => self.announce_presence(&client, run.as_deref(), false).await,
                Some(message) = claims.next() => {
                    if let Some(claim) = AgentClaim::read(&message.payload).filter(|claim| claim.start_id == self.start_id) {
                        if run.is_none() {
                            assembly = PieceAssembler::new(TO_AGENT_BYTES_MAX);
                            run = Some(claim.run.clone());
                            let _ = self.sender.send(AgentSessionEvent::Claimed(claim.run));
                        }
                        // The agent replies to the claim with its presence message. A presence
                        // message that names another run rejects the claim.
                        self.announce_presence(&client, run.as_deref(), false).await;
                    }
                }
                Some(message) = messages.next() => {
                    let of = run_name_of_subject(&message.subject).to_owned();
                    let is_ours = run.as_deref() == Some(of.as_str());
                    let came_ns = monotonic_ns();
                    if !is_ours {
                        // After writing the run file of an earlier run, the command `fleet fetch`
                        // confirms the recorded frames with a `Commit` message.
                        let alone = PieceAssembler::new(TO_AGENT_BYTES_MAX).add_piece(&message.payload);
                        if let Some(Ok(ToAgent::Commit { epoch, sequence })) = alone.map(decode_single_message_stream)
                            && is_run_name(&of)
                        {
                            self.mark_frames_recorded(&recorded, &of, (epoch, sequence));
                        }
                        continue;
                    }
                    match assembly.add_piece(&message.payload).map(decode_single_message_stream::<ToAgent>) {
                        None => {}
                        Some(Ok(message)) => {
                            if let ToAgent::Commit { epoch, sequence } = message {
                                self.mark_frames_recorded(&recorded, &of, (epoch, sequence));
                            }
                            let _ = self.sender.send(AgentSessionEvent::Message(came_ns, message));
                        }
                        // An invalid message means that the coordinator has another protocol
                        // version. The session with such a coordinator ends after the agent's lease
                        // (10 s), because no valid message arrives.
                        Some(Err(_)) => {}
                    }
                }
                Some(order) = queue.recv() => match (order, &run) {
                    (AgentBusCommand::Send(message), Some(of)) => {
                        number += 1;
                        let subject = presence::from_agent_subject(of, &self.options.name);
                        for piece in split_message(number, &message, largest_piece_bytes(&client)) {
                            let _ = client.publish(subject.clone(), piece.into()).await;
                        }
                    }
                    (AgentBusCommand::Send(_), None) => {}
                    (AgentBusCommand::Release, _) => {
                        run = None;
                        self.announce_presence(&client, None, false).await;
                    }
                },
                Some(event) = events.recv() => {
                    if let Some(why) = fatal_event_reason(&event, &self.options.access) {
                        let _ = self.sender.send(AgentSessionEvent::Closed(Some(why)));
                        return;
                    }
                }
            }
        }
    }

    /// Records that a run file contains all frames (result messages) of a run up to `key` (load
    /// number, sequence number).
    fn mark_frames_recorded(&self, recorded: &UnboundedSender<(String, (u64, u64))>, run: &str, key: (u64, u64)) {
        self.spool.confirm_recorded(run, key);
        let _ = recorded.send((run.to_owned(), key));
    }
}

/// Whether one interval (the measurements of 100 ms) waits for the bus, or the bus has acknowledged
/// the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PublicationState {
    Waiting,
    Acknowledged(Instant),
}

/// Publishes the stored intervals (measurements of 100 ms each) on the bus. An interval is
/// published again if the bus does not acknowledge it, or if no coordinator records it.
async fn publish_stored_intervals(
    client: Client,
    name: String,
    mut stored: UnboundedReceiver<SpoolEntry>,
    mut commits: UnboundedReceiver<(String, (u64, u64))>,
) {
    let context = jetstream_context(&client);
    let mut known: BTreeMap<(String, (u64, u64)), PublicationState> = BTreeMap::new();
    let (mut waiting, mut in_flight, mut number) = (VecDeque::new(), FuturesUnordered::new(), monotonic_ns());
    loop {
        while in_flight.len() < INTERVALS_IN_FLIGHT_MAX
            && let Some(SpoolEntry { run, key, message }) = waiting.pop_front()
        {
            number += 1;
            let (context, subject) = (context.clone(), presence::frames_subject(&run, &name));
            let pieces = split_message(number, &message, largest_piece_bytes(&client));
            in_flight.push(async move {
                publish_pieces(&context, &subject, pieces).await;
                (run, key)
            });
        }
        tokio::select! {
            entry = stored.recv() => {
                let Some(entry) = entry else { return };
                let place = (entry.run.clone(), entry.key);
                let is_due = match known.get(&place) {
                    None => true,
                    Some(PublicationState::Waiting) => false,
                    Some(PublicationState::Acknowledged(at)) => at.elapsed() >= RECORD_TIMEOUT,
                };
                if is_due {
                    known.insert(place, PublicationState::Waiting);
                    waiting.push_back(entry);
                }
            }
            Some(place) = in_flight.next(), if !in_flight.is_empty() => {
                if let Some(publication) = known.get_mut(&place) {
                    *publication = PublicationState::Acknowledged(Instant::now());
                }
            }
            Some((run, key)) = commits.recv() => {
                known.retain(|place, _| place.0 != run || place.1 > key);
            }
        }
    }
}

/// Publishes the pieces of a message in order. Each piece is sent until the bus acknowledges it.
async fn publish_pieces(context: &Context, subject: &str, pieces: Vec<Vec<u8>>) {
    let deadline = Instant::now() + UNACCEPTED_INTERVAL_TIMEOUT;
    for piece in pieces {
        while Instant::now() < deadline {
            if let Ok(acknowledged) = context.publish(subject.to_owned(), piece.clone().into()).await
                && acknowledged.await.is_ok()
            {
                break;
            }
            tokio::time::sleep(PUBLISH_RETRY_DELAY).await;
        }
    }
}
