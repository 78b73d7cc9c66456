//! What is said to several commands alike: the request, its connections, the generator, probes, profiles, a search, and where
//! results go.
//!
//! Not here: any command. Those that measure hold these, and these hold none of them.

use super::fleet::WatchArgs;
use super::known_words::KnownWords;
use clap::builder::TypedValueParser;
use clap::{Args, ValueHint};
use plimsoll_model::{Redact, Route, Spin};
use std::path::PathBuf;

/// What a gate means where nothing can be decided.
#[derive(Debug, Clone, Default, Args)]
pub struct InconclusiveArgs {
    /// Where nothing can be decided, pass or fail the gate [default: exit with 3]
    #[arg(long, value_name = "pass|fail", help_heading = "Judgement",
          value_parser = ["pass", "fail"], hide_possible_values = true)]
    pub on_inconclusive: Option<String>,
}

/// What is asked, and how answers count.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Target, such as http://localhost:8080/items or https://api.test/
    #[arg(required_unless_present_any = ["file", "curl"], value_hint = ValueHint::Url)]
    pub url: Option<String>,
    /// Ask what this file says (TOML, YAML or JSON): requests by weight, or scenarios of steps
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    pub file: Option<PathBuf>,
    /// Ask it there, instead of at the file's base
    #[arg(long, value_name = "URL", requires = "file", conflicts_with = "url",
          value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// Ask what this command line of curl asks, as browsers copy it; `plimsoll curl ...` takes its words as they are
    #[arg(long, value_name = "'curl ...'", conflicts_with_all = ["url", "file", "method", "body"])]
    pub curl: Option<String>,
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD",
          value_parser = KnownWords::text(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]), hide_possible_values = true)]
    pub method: Option<String>,
    /// Header to send, such as 'Accept: text/html' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Body: text, @FILE, or - for standard input
    #[arg(short = 'b', long, value_name = "TEXT|@FILE|-")]
    pub body: Option<String>,
    /// Give a request up after this
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,
    /// Statuses that count as success
    #[arg(long, value_name = "SET", default_value = "100-399")]
    pub ok_status: String,
    /// Follow up to so many redirects of an answer (within the same origin), as part of its request [default: 0, at most 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=i64::from(Route::FOLLOW_MAX)),
          conflicts_with = "file")]
    pub follow: Option<u8>,
    /// Ends of gRPC calls that count as success, by name or code [default: OK]
    #[arg(long, value_name = "SET")]
    pub ok_grpc: Option<String>,
    /// Send each message of a gRPC call when the one before it was answered [default: all in one go]
    #[arg(long)]
    pub in_turn: bool,
    #[command(flatten)]
    pub schema: SchemaArgs,
    /// Open a new connection for each request
    #[arg(long)]
    pub no_keepalive: bool,
    /// Open at most so many connections (open loads)
    #[arg(long, value_name = "N")]
    pub max_connections: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Start without asking once first
    #[arg(long, help_heading = "Request")]
    pub no_preflight: bool,
    /// Put load on an address that is neither loopback nor private
    #[arg(long, help_heading = "Request")]
    pub allow_public: bool,
    /// What is left out of records and reports: secrets (what looks like one), or all (query and header values)
    #[arg(long, value_name = "WHAT", default_value = "secrets",
          value_parser = redact_words(), hide_possible_values = true, help_heading = "Request")]
    pub redact: Redact,
    /// Keep the contents of failed answers as they come, with all that is secret in them
    #[arg(long, conflicts_with = "redact", help_heading = "Request")]
    pub keep_failed_bodies: bool,
}

/// Where the messages of gRPC are described.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Request")]
pub struct SchemaArgs {
    /// Messages of gRPC are described there, instead of by the server's reflection (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "descriptor_set")]
    pub proto: Vec<PathBuf>,
    /// Imports of --proto files are looked for there [default: beside them] (repeatable)
    #[arg(long, value_name = "DIR", requires = "proto", value_hint = ValueHint::DirPath)]
    pub proto_path: Vec<PathBuf>,
    /// Messages of gRPC are described there: what protoc --include_imports -o FILE writes
    #[arg(long, value_name = "FILE")]
    pub descriptor_set: Option<PathBuf>,
}

/// How connections are opened, secured and closed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Connect there instead of to the URL's host, which is still asked for
    #[arg(long, value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub connect_to: Option<String>,
    /// Connect to this unix socket; @NAME is the abstract one of that name
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub unix: Option<String>,
    /// Connect from these local addresses in turn, such as 10.0.0.5-10.0.0.9 or 10.0.0.0/24
    #[arg(long, value_name = "LIST")]
    pub source_ip: Option<String>,
    /// Ask for the host's addresses again every so often
    #[arg(long, value_name = "TIME")]
    pub resolve_every: Option<String>,
    /// How connections are closed: fin, or reset (leaves no port in TIME-WAIT)
    #[arg(long, value_name = "HOW",
          value_parser = KnownWords::text(&["fin", "reset"]), hide_possible_values = true)]
    pub close: Option<String>,
    /// Which HTTP is spoken: 1.1, 2, or auto (over TLS what the server takes, 2 before 1.1; without TLS 1.1)
    #[arg(long, value_name = "VERSION",
          value_parser = KnownWords::text(&["1.1", "2", "auto"]), hide_possible_values = true)]
    pub http: Option<String>,
    /// Over HTTP/2, carry up to so many requests at a time on a connection [default: 1]
    #[arg(long, value_name = "N")]
    pub streams: Option<String>,
    /// Do not verify the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Trust these issuers only (PEM)
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Our own certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// The key of our certificate (PEM) [default: in the --cert file]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Make a full TLS handshake for each connection
    #[arg(long)]
    pub no_resumption: bool,
}

/// A script that says what is asked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Script")]
pub struct ScriptArgs {
    /// Ask what this Lua script for wrk says; '' asks as wrk does without a script
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["file", "curl", "method", "body", "follow", "no_keepalive", "streams"],
          value_hint = ValueHint::FilePath)]
    pub lua: Option<String>,
    /// Words for the script's init
    #[arg(last = true, value_name = "WORDS", requires = "lua")]
    pub words: Vec<String>,
}

/// How the generator works.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Generator")]
pub struct GeneratorArgs {
    /// Worker threads [default: half the cores for a target on this machine with connections kept, else all]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<String>,
    /// Wait by looking again instead of sleeping: auto, on, off
    #[arg(long, value_name = "WHEN", default_value = "auto",
          value_parser = spin_words(), hide_possible_values = true)]
    pub spin: Spin,
    /// Seed of all that is random [default: drawn, and shown]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How arrivals of an open load are spaced: constant, poisson [default: poisson in find, explain and overload, else constant]
    #[arg(long, value_name = "HOW",
          value_parser = KnownWords::text(&["constant", "poisson"]), hide_possible_values = true)]
    pub arrivals: Option<String>,
}

/// Profiles of the server beside the measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Profiles")]
pub struct PprofArgs {
    /// Afterwards take profiles at low load and at this one: where they are served, such as
    /// http://localhost:6060/debug/pprof; alone, or with auto, at /debug/pprof on the target itself
    #[arg(long, value_name = "URL|auto", num_args = 0..=1, default_missing_value = "auto",
          value_hint = ValueHint::Url)]
    pub pprof: Option<String>,
    /// Length of a CPU profile in seconds
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub pprof_seconds: u32,
}

/// What is watched while the load runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Probes")]
pub struct ProbeArgs {
    /// Watch this process [default: the one that listens on the target's address]
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Watch the process of this name
    #[arg(long, value_name = "NAME", value_hint = ValueHint::CommandName)]
    pub process: Option<String>,
    /// Read once a second what the server tells of itself, Prometheus text or Go's /debug/vars: where it does; alone, or
    /// with auto, at /metrics or /debug/vars on the target itself
    #[arg(long, value_name = "URL|auto", num_args = 0..=1, default_missing_value = "auto",
          value_hint = ValueHint::Url)]
    pub metrics: Option<String>,
    /// Watch this control group [default: that of the process]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<String>,
    /// Watch nothing
    #[arg(long, conflicts_with_all = ["pid", "process", "metrics", "cgroup", "watch"])]
    pub no_probes: bool,
    #[command(flatten)]
    pub elsewhere: WatchArgs,
}

/// What a search for a load line needs to know, whatever it is made for.
#[derive(Debug, Clone, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// What users must get
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms", help_heading = "Search")]
    pub slo: String,
    /// Never offer more than this
    #[arg(long, value_name = "RATE", help_heading = "Search")]
    pub max_rate: Option<String>,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    #[command(flatten)]
    pub profiles: PprofArgs,
    #[command(flatten)]
    pub script: ScriptArgs,
}

/// Where results go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Print a line of JSON for each load, tick and finding, as they come
    #[arg(long, conflicts_with = "json")]
    pub json_lines: bool,
    /// Print all figures, tables and warnings as text, not only the first screen
    #[arg(short, long, conflicts_with_all = ["json", "json_lines"])]
    pub verbose: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Where run files are kept, and what a run is marked with.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct StoreArgs {
    /// Keep the run file in this folder [default: $PLIMSOLL_STORE, else _output/plimsoll]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Mark the run, such as release=1.4: history shows it, and clean keeps the run (repeatable)
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    pub tags: Vec<String>,
}

/// What is left out, by both flags that say it.
pub fn redaction(redact: Redact, keeps_failed_bodies: bool) -> Redact {
    if keeps_failed_bodies { Redact::SecretsButBodies } else { redact }
}

/// The parser of `--redact`, with its words.
pub fn redact_words() -> impl TypedValueParser<Value = Redact> {
    KnownWords::new(&["secrets", "all"], parse_redact)
}

fn spin_words() -> impl TypedValueParser<Value = Spin> {
    KnownWords::new(&["auto", "on", "off"], parse_spin)
}

/// What is left out, by its word.
fn parse_redact(text: &str) -> Result<Redact, String> {
    match text {
        "secrets" => Ok(Redact::Secrets),
        "all" => Ok(Redact::All),
        _ => Err("expected secrets or all".into()),
    }
}

fn parse_spin(text: &str) -> Result<Spin, String> {
    match text {
        "auto" => Ok(Spin::Auto),
        "on" => Ok(Spin::On),
        "off" => Ok(Spin::Off),
        _ => Err("expected auto, on or off".into()),
    }
}
