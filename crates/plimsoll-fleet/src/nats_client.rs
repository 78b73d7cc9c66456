//! Connections to a NATS server ([`connect`]) for coordinators and agents, and the stream that
//! stores intervals ([`frames_stream`]). Each error is a sentence that also says how to correct the
//! problem.
//!
//! The connection runs on a single-threaded async runtime in its own thread
//! ([`start_async_thread`]), apart from the threads that send load. Not here: the messages
//! (`presence`, `nats_bus`, `nats_agent`).

use crate::fleet_location::BusAddress;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, Subscriber};
use plimsoll_model::failure::Failure;
use plimsoll_sys::system_text;
use std::error::Error;
use std::future::Future;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of the JetStream stream that stores intervals (the measurements of 100 ms each).
const FRAME_STREAM_NAME: &str = "PLIMSOLL_FRAMES";
/// The time for which the stream keeps intervals (24 h).
const STREAM_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Size limits for the stream, bytes (1 GiB, 64 MiB). The stream gets the first limit that the
/// server accepts.
const STREAM_BYTES_MAX: [i64; 2] = [1 << 30, 64 << 20];
/// Fill level, in percent, of the stream that stores intervals; above this level no new run starts.
const STREAM_FILL_PERCENT_MAX: u64 = 90;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest wait until the bus acknowledges a published piece of an interval (the measurements
/// of 100 ms). A piece without an acknowledgement is published again.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_millis(500);
const BUS_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval between pings to the server.
const PING_INTERVAL: Duration = Duration::from_secs(2);
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(250);
/// The longest piece of a message, bytes. Pieces are shorter if the server's limit is lower.
const PIECE_BYTES_MAX: usize = 192 << 10;
/// The number of bytes of the server's message limit that are reserved for headers and subject.
const RESERVED_HEADER_BYTES: usize = 512;
/// The largest plan that can be sent over a bus, bytes (64 MiB).
pub const PLAN_BYTES_MAX: usize = 64 << 20;

/// The address of a bus, and the files that a connection to the bus needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusAccess {
    /// The address of the NATS server.
    pub address: BusAddress,
    /// The path of a file with an nkey seed or NATS credentials.
    pub creds: Option<String>,
    /// The path of a file with the certificates of the authority that signed the server's
    /// certificate.
    pub ca: Option<String>,
}

/// The environment variable with the path of a coordinator's credentials.
pub const CREDENTIALS_VARIABLE: &str = "PLIMSOLL_CREDS";
/// The environment variable with the path of the certificates of the authority that signed the
/// bus's certificate.
pub const CA_VARIABLE: &str = "PLIMSOLL_BUS_CA";

impl BusAccess {
    /// Reads the paths of the credentials and of the authority's certificates for the bus from
    /// environment variables.
    pub fn from_environment(address: BusAddress) -> BusAccess {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        BusAccess { address, creds: variable(CREDENTIALS_VARIABLE), ca: variable(CA_VARIABLE) }
    }

    /// Returns the IP addresses and ports of the bus, as this machine resolves its name.
    pub fn resolve_addresses(&self) -> Vec<SocketAddr> {
        (self.address.host.as_str(), self.address.port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
    }
}

/// Runs an asynchronous task on a single-threaded runtime in a new thread.
pub fn start_async_thread<T: Future<Output = ()>>(
    task: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<()>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::cannot_start(format!(
            "no connection to a bus (NATS server) can be made: {reason}",
            reason = system_text(&error)
        ))
    })?;
    Ok(std::thread::spawn(move || runtime.block_on(task())))
}

/// Connects to the bus under the client name `who`. If the bus does not respond, tries again until
/// `patience` has passed.
pub async fn connect(
    access: &BusAccess,
    who: &str,
    patience: Duration,
    on_event: impl Fn(Event) + Send + Sync + Clone + 'static,
) -> Result<Client, Failure> {
    let begun = Instant::now();
    loop {
        let on_event = on_event.clone();
        let options = connect_options(access, who)?.event_callback(move |event| {
            on_event(event);
            std::future::ready(())
        });
        let error = match options.connect(access.address.url.as_str()).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        let detail = error.source().map_or_else(String::new, root_cause);
        let may_come =
            matches!(error.kind(), ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns)
                && !is_about_certificates(&detail);
        if !may_come || begun.elapsed() + CONNECT_RETRY_DELAY >= patience {
            return Err(connect_failure(access, error.kind(), &detail));
        }
        tokio::time::sleep(CONNECT_RETRY_DELAY).await;
    }
}

/// Returns the message of the innermost error in a chain of causes.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    match error.downcast_ref::<std::io::Error>() {
        Some(error) => system_text(error),
        None => error.to_string(),
    }
}

fn is_about_certificates(detail: &str) -> bool {
    ["certificate", "UnknownIssuer", "CaUsedAsEndEntity"].iter().any(|word| detail.contains(word))
}

fn connect_options(access: &BusAccess, who: &str) -> Result<ConnectOptions, Failure> {
    let mut options = ConnectOptions::new()
        .name(format!("plimsoll {who}"))
        // With its own inbox prefix, a client cannot see the replies to other clients.
        .custom_inbox_prefix(format!("_I.{who}"))
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(BUS_REQUEST_TIMEOUT))
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(|tries| Duration::from_millis(50 * (tries as u64).min(10)));
    if let Some(ca) = &access.ca {
        if let Err(error) = std::fs::File::open(Path::new(ca)) {
            return Err(Failure::usage(format!(
                "the certificate file '{ca}' of the bus's authority cannot be read: {reason}",
                reason = system_text(&error)
            )));
        }
        options = options.add_root_certificates(ca.into());
    }
    if access.address.is_tls || access.ca.is_some() {
        options = options.require_tls(true);
    }
    let Some(creds) = &access.creds else { return Ok(options) };
    let text = std::fs::read_to_string(creds).map_err(|error| {
        Failure::usage(format!(
            "the credentials file '{creds}' of the bus cannot be read: {reason}",
            reason = system_text(&error)
        ))
    })?;
    let wrong =
        || Failure::usage(format!("the file '{creds}' contains neither an nkey seed (SU...) nor NATS credentials"));
    if text.contains("BEGIN NATS USER JWT") {
        return options.credentials(&text).map_err(|_| wrong());
    }
    let seed = text.lines().map(str::trim).find(|line| line.starts_with("SU")).ok_or_else(wrong)?;
    Ok(options.nkey(seed.to_owned()))
}

/// Returns the failure for a connection that could not be made, with advice how to correct the
/// problem.
fn connect_failure(access: &BusAccess, kind: ConnectErrorKind, detail: &str) -> Failure {
    let url = &access.address.url;
    let creds = access.creds.as_deref();
    let said = match kind {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => match creds {
            None => format!(
                "the bus at {url} requires credentials: set ${CREDENTIALS_VARIABLE} to the path of the credentials \
                 file (for an agent, use --creds FILE)"
            ),
            Some(creds) => {
                format!(
                    "the bus at {url} does not accept the credentials in '{creds}': ask the owner of the bus for \
                     new credentials"
                )
            }
        },
        ConnectErrorKind::Tls => untrusted_certificate_text(url, detail),
        _ if is_about_certificates(detail) => untrusted_certificate_text(url, detail),
        ConnectErrorKind::Dns => format!("the host name of the bus at {url} has no IP address: check the name"),
        ConnectErrorKind::TimedOut => {
            format!("the bus at {url} does not respond: check the address and the network")
        }
        _ => format!("no bus responds at {url} ({detail}): start nats-server --jetstream there, or check the address"),
    };
    Failure::cannot_start(said)
}

fn untrusted_certificate_text(url: &str, detail: &str) -> String {
    format!(
        "the certificate of the bus at {url} is not trusted ({detail}): set ${CA_VARIABLE} to the file of the \
         authority's certificate (an agent: --bus-ca FILE)"
    )
}

/// Returns the failure for a bus connection whose thread ended without a reason.
pub fn connection_ended_failure() -> Failure {
    Failure::cannot_start("the connection to the bus (NATS server) ended by itself")
}

/// Subscribes to a subject of the bus.
pub async fn subscribe(client: &Client, access: &BusAccess, subject: String) -> Result<Subscriber, Failure> {
    let heard = client.subscribe(subject).await;
    heard.map_err(|error| {
        Failure::cannot_start(format!(
            "messages of the bus at {url} cannot be received: {error}",
            url = access.address.url
        ))
    })
}

/// Returns the JetStream context of this connection, with the timeout for acknowledgements.
pub fn jetstream_context(client: &Client) -> Context {
    let mut context = async_nats::jetstream::new(client.clone());
    context.set_timeout(ACKNOWLEDGE_TIMEOUT);
    context
}

/// Returns the stream of the bus that stores intervals (measurements of 100 ms each). If the stream
/// does not exist, the function creates it.
pub async fn frames_stream(client: &Client, access: &BusAccess) -> Result<Stream, Failure> {
    // `BUS_REQUEST_TIMEOUT` limits requests about the stream, not acknowledgements of intervals.
    let mut context = async_nats::jetstream::new(client.clone());
    context.set_timeout(BUS_REQUEST_TIMEOUT);
    let url = &access.address.url;
    let none = || {
        Failure::cannot_start(format!(
            "the bus at {url} cannot store messages: start nats-server with --jetstream and a store_dir"
        ))
    };
    let stream = match context.get_stream(FRAME_STREAM_NAME).await {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                create_stream(&context, url).await?
            }
            GetStreamErrorKind::JetStream(error) if is_jetstream_disabled(error.error_code()) => return Err(none()),
            GetStreamErrorKind::JetStream(error) => {
                return Err(Failure::cannot_start(format!(
                    "the bus at {url} refuses to create the stream of plimsoll: {error}"
                )));
            }
            _ => return Err(none()),
        },
    };
    let info = stream.cached_info();
    let (used, most) = (info.state.bytes, u64::try_from(info.config.max_bytes).unwrap_or(0));
    if most > 0 && used.saturating_mul(100) > most.saturating_mul(STREAM_FILL_PERCENT_MAX) {
        return Err(Failure::cannot_start(format!(
            "the stream of the bus at {url} is full ({used} of {most} bytes). Fetch or remove the runs of the \
             stream, or wait until these runs are a day old"
        )));
    }
    Ok(stream)
}

fn is_jetstream_disabled(code: ErrorCode) -> bool {
    [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT].contains(&code)
}

async fn create_stream(context: &Context, url: &str) -> Result<Stream, Failure> {
    let mut refused = String::new();
    for max_bytes in STREAM_BYTES_MAX {
        let config = Config {
            name: FRAME_STREAM_NAME.to_owned(),
            subjects: vec!["pl.*.f.*".to_owned(), "pl.*.load".to_owned()],
            storage: StorageType::File,
            retention: RetentionPolicy::Limits,
            // A full stream refuses new intervals. Agents keep refused intervals, so no interval is
            // lost.
            discard: DiscardPolicy::New,
            max_bytes,
            max_age: STREAM_AGE_MAX,
            num_replicas: 1,
            allow_direct: true,
            ..Config::default()
        };
        match context.create_stream(config).await {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error.to_string(),
        }
    }
    Err(Failure::cannot_start(format!(
        "the bus at {url} creates no stream for the agents' measurements ({refused}): give JetStream more storage"
    )))
}

/// Returns the largest size, in bytes, of one piece of a message that the NATS server accepts.
pub fn largest_piece_bytes(client: &Client) -> usize {
    client.max_payload().saturating_sub(RESERVED_HEADER_BYTES).clamp(1_024, PIECE_BYTES_MAX)
}

/// Returns why this event of the NATS connection makes further work impossible, or `None` if the
/// work continues.
pub fn fatal_event_reason(event: &Event, access: &BusAccess) -> Option<String> {
    let url = &access.address.url;
    let Event::ServerError(error) = event else { return None };
    let refusal = error.to_string();
    let refusal = refusal.trim_start_matches("nats: ");
    if refusal.to_lowercase().contains("permissions violation") {
        return Some(format!(
            "the bus at {url} refused an operation of plimsoll ({refusal}): ask the owner of the bus for this right"
        ));
    }
    None
}
