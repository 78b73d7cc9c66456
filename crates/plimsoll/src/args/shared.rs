//! Flags that several commands share: the request, its connections, the generator, probes,
//! profiles, a search, and the output.
//!
//! Not here: anything about a single command.

use super::fleet::WatchArgs;
use super::known_words::KnownWords;
use clap::builder::TypedValueParser;
use clap::{Args, ValueHint};
use plimsoll_model::experiment_settings::OutputSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::{RedactionLevel, Route, Spin};
use plimsoll_study::fields::path_text;
use std::path::{Path, PathBuf};

/// The result of a gate whose measurements allow no verdict.
#[derive(Debug, Clone, Default, Args)]
pub struct InconclusiveArgs {
    /// Result if no verdict is possible: pass or fail [default: exit with code 3]
    #[arg(long, value_name = "pass|fail", help_heading = "Judgement",
          value_parser = ["pass", "fail"], hide_possible_values = true)]
    pub on_inconclusive: Option<String>,
}

/// The request, and the responses that count as success.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Target, such as http://localhost:8080/items or https://api.test/
    #[arg(required_unless_present_any = ["file", "curl"], value_hint = ValueHint::Url)]
    pub url: Option<String>,
    /// Send the requests of this file (TOML, YAML or JSON): requests by weight, or scenarios of
    /// steps
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    pub file: Option<PathBuf>,
    /// Target of the file's requests, instead of the 'base' in the file
    #[arg(long, value_name = "URL", requires = "file", conflicts_with = "url",
          value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// Send the request of this curl command, as browsers copy it; or write `plimsoll curl ...`
    #[arg(long, value_name = "'curl ...'", conflicts_with_all = ["url", "file", "method", "body"])]
    pub curl: Option<String>,
    /// HTTP method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD",
          value_parser = KnownWords::for_text_value(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]), hide_possible_values = true)]
    pub method: Option<String>,
    /// Header to send, such as 'Accept: text/html' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Request body: text, @FILE, or - for standard input
    #[arg(short = 'b', long, value_name = "TEXT|@FILE|-")]
    pub body: Option<String>,
    /// Time after which a request without a complete response fails
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,
    /// HTTP statuses that count as success
    #[arg(long, value_name = "SET", default_value = "100-399")]
    pub ok_status: String,
    /// Follow up to N redirects within the same origin, as part of the request [default: 0, at most
    /// 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=i64::from(Route::FOLLOW_REDIRECTS_MAX)),
          conflicts_with = "file")]
    pub follow: Option<u8>,
    /// Statuses of gRPC calls that count as success, by name or code [default: OK]
    #[arg(long, value_name = "SET", help_heading = "gRPC")]
    pub ok_grpc: Option<String>,
    /// Send each message of a gRPC call after the response to the previous message [default: all
    /// messages at once]
    #[arg(long, help_heading = "gRPC")]
    pub in_turn: bool,
    #[command(flatten)]
    pub schema: SchemaArgs,
    /// Open a new connection for each request
    #[arg(long, help_heading = "Connections")]
    pub no_keepalive: bool,
    /// Open at most N connections (open loop)
    #[arg(long, value_name = "N", help_heading = "Connections")]
    pub max_connections: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Start the load without a first test request
    #[arg(long, help_heading = "Request")]
    pub no_preflight: bool,
    /// Allow load on an address that is neither loopback nor private
    #[arg(long, help_heading = "Safety")]
    pub allow_public: bool,
    /// Values to redact in records and reports: secrets (as far as recognised), or all (query and
    /// header values)
    #[arg(long, value_name = "WHAT", default_value = "secrets",
          value_parser = redact_parser(), hide_possible_values = true, help_heading = "Safety")]
    pub redact: RedactionLevel,
    /// Record the bodies of failed responses, with any secrets in them
    #[arg(long, conflicts_with = "redact", help_heading = "Safety")]
    pub keep_failed_bodies: bool,
}

/// The files that describe the messages of gRPC calls.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "gRPC")]
pub struct SchemaArgs {
    /// File that describes the gRPC messages, instead of the server's reflection (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "descriptor_set")]
    pub proto: Vec<PathBuf>,
    /// Folder with the imports of --proto files [default: beside each file] (repeatable)
    #[arg(long, value_name = "DIR", requires = "proto", value_hint = ValueHint::DirPath)]
    pub proto_path: Vec<PathBuf>,
    /// Descriptor set of the gRPC messages, made with protoc --include_imports -o FILE
    #[arg(long, value_name = "FILE")]
    pub descriptor_set: Option<PathBuf>,
}

/// The flags that say how plimsoll opens, secures and closes connections.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Connect to this address; requests and certificate checks still use the URL's host
    #[arg(long, value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub connect_to: Option<String>,
    /// Connect to this unix socket; @NAME is an abstract socket
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub unix: Option<String>,
    /// Connect from these local addresses in turn, such as 10.0.0.5-10.0.0.9 or 10.0.0.0/24
    #[arg(long, value_name = "LIST")]
    pub source_ip: Option<String>,
    /// Interval at which plimsoll resolves the host name again
    #[arg(long, value_name = "TIME")]
    pub resolve_every: Option<String>,
    /// Way to close connections: fin, or reset (leaves no port in TIME-WAIT)
    #[arg(long, value_name = "HOW",
          value_parser = KnownWords::for_text_value(&["fin", "reset"]), hide_possible_values = true)]
    pub close: Option<String>,
    /// HTTP version: 1.1, 2, or auto (2 if the server offers HTTP/2 over TLS, else 1.1)
    #[arg(long, value_name = "VERSION",
          value_parser = KnownWords::for_text_value(&["1.1", "2", "auto"]), hide_possible_values = true)]
    pub http: Option<String>,
    /// Over HTTP/2, keep up to N requests in flight on each connection [default: 1]
    #[arg(long, value_name = "N")]
    pub streams: Option<String>,
    /// Do not verify the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Trust only these certificate issuers (PEM)
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// The client certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// The key of the client certificate (PEM) [default: in the --cert file]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Make a full TLS handshake for each connection, without session resumption
    #[arg(long)]
    pub no_resumption: bool,
}

/// A script that makes the requests.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Script")]
pub struct ScriptArgs {
    /// Send the requests of this Lua script for wrk; '' sends what wrk sends without a script
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["file", "curl", "method", "body", "follow", "no_keepalive", "streams"],
          value_hint = ValueHint::FilePath)]
    pub lua: Option<String>,
    /// Arguments for the init function of the Lua script
    #[arg(last = true, value_name = "WORDS", requires = "lua")]
    pub words: Vec<String>,
}

/// The settings of the load generator.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Generator")]
pub struct GeneratorArgs {
    /// Threads of the load generator [default: one for each core; half as many if the target is on
    /// this machine and connections are kept alive]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<String>,
    /// Before each send time, wait in a busy loop instead of sleeping: auto, on, off
    #[arg(long, value_name = "WHEN", default_value = "auto",
          value_parser = spin_parser(), hide_possible_values = true)]
    pub spin: Spin,
    /// Seed of all random choices [default: a random seed, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Spacing of arrivals in an open loop: constant, poisson [default: poisson in find, explain
    /// and overload, else constant]
    #[arg(long, value_name = "HOW",
          value_parser = KnownWords::for_text_value(&["constant", "poisson"]), hide_possible_values = true)]
    pub arrivals: Option<String>,
}

/// The profiles of the server that plimsoll takes in addition to the measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Profiles")]
pub struct PprofArgs {
    /// After the measurement, profile the server at a low load and at the measured load. A URL:
    /// http://localhost:6060/debug/pprof [without a value, or auto: /debug/pprof of the target]
    #[arg(long, value_name = "URL|auto", num_args = 0..=1, default_missing_value = "auto",
          value_hint = ValueHint::Url)]
    pub pprof: Option<String>,
    /// Length of a CPU profile in seconds
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub pprof_seconds: u32,
}

/// The processes and metrics to watch during the load.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Probes")]
pub struct ProbeArgs {
    /// PID of the server process to measure [default: the process that listens on the target's
    /// address]
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Name of the server process to measure
    #[arg(long, value_name = "NAME", value_hint = ValueHint::CommandName)]
    pub process: Option<String>,
    /// Read the server's own metrics once a second, as Prometheus text or Go's /debug/vars [without
    /// a value, or auto: /metrics or /debug/vars of the target]
    #[arg(long, value_name = "URL|auto", num_args = 0..=1, default_missing_value = "auto",
          value_hint = ValueHint::Url)]
    pub metrics: Option<String>,
    /// Control group (cgroup) to measure [default: the control group of the server process]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub cgroup: Option<String>,
    /// Do not measure the server's processes and machine
    #[arg(long, conflicts_with_all = ["pid", "process", "metrics", "cgroup", "watch"])]
    pub no_probes: bool,
    #[command(flatten)]
    pub remote_watch: WatchArgs,
}

/// The flags of every search for a load line.
#[derive(Debug, Clone, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// The SLO: success rate and latency that users need
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms", help_heading = "Search")]
    pub slo: String,
    /// The highest offered rate that the search may try
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

/// The flags that choose the form of the printed results, and whether progress is shown.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Print a JSON line for each load, interval and finding as soon as it is known
    #[arg(long, conflicts_with = "json")]
    pub json_lines: bool,
    /// Print every number, table and warning, not only the one-screen summary
    #[arg(short, long, conflicts_with_all = ["json", "json_lines"])]
    pub verbose: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

impl OutputArgs {
    /// Converts the flags to settings; `file` is the path of the run file.
    pub fn to_settings(&self, file: Option<&Path>) -> Result<OutputSettings<String>, Failure> {
        let file = file.map(|file| path_text("--output", file)).transpose()?;
        let OutputArgs { json, json_lines, verbose, quiet } = *self;
        Ok(OutputSettings { json, json_lines, verbose, quiet, file, ..OutputSettings::default() })
    }
}

/// The folder of run files, and the tags of a run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct StoreArgs {
    /// Folder for the run file (the store) [default: $PLIMSOLL_STORE, else _output/plimsoll]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Tag the run, such as release=1.4; plimsoll history shows the tag, and plimsoll clean keeps
    /// the run (repeatable)
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    pub tags: Vec<String>,
}

/// Combines the values of --redact and --keep-failed-bodies to one redaction level.
pub fn redaction_level(redact: RedactionLevel, keeps_failed_bodies: bool) -> RedactionLevel {
    if keeps_failed_bodies { RedactionLevel::SecretsButBodies } else { redact }
}

/// Returns the parser of `--redact`, with its accepted words for completion.
pub fn redact_parser() -> impl TypedValueParser<Value = RedactionLevel> {
    KnownWords::new(&["secrets", "all"], parse_redact)
}

fn spin_parser() -> impl TypedValueParser<Value = Spin> {
    KnownWords::new(&["auto", "on", "off"], parse_spin)
}

/// Parses the value of `--redact`.
fn parse_redact(text: &str) -> Result<RedactionLevel, String> {
    match text {
        "secrets" => Ok(RedactionLevel::Secrets),
        "all" => Ok(RedactionLevel::All),
        _ => Err("--redact takes secrets or all".into()),
    }
}

fn parse_spin(text: &str) -> Result<Spin, String> {
    match text {
        "auto" => Ok(Spin::Auto),
        "on" => Ok(Spin::On),
        "off" => Ok(Spin::Off),
        _ => Err("--spin takes auto, on or off".into()),
    }
}
