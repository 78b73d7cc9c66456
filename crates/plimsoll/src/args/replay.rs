//! Arguments of `plimsoll replay`.

use super::read_commands::LogArgs;
use super::shared::{
    ConnectionArgs, GeneratorArgs, InconclusiveArgs, OutputArgs, PprofArgs, ProbeArgs, StoreArgs, redact_parser,
};
use clap::{Args, ValueHint};
use plimsoll_model::RedactionLevel;
use std::path::PathBuf;

/// `plimsoll replay`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll replay access.log --target http://localhost:8080/\n  \
    plimsoll replay access.log --target http://localhost:8080/ --speed 2x      one hour in 30 minutes\n  \
    plimsoll replay access.log --target http://localhost:8080/ --scale 2x      twice the visitors\n  \
    plimsoll replay access.log.*.gz --target http://localhost:8080/ -d 10m --skip '\\.(png|css|js)'\n  \
    plimsoll replay model.toml --scale 2x     a file that plimsoll model made\n  \
    zcat access.log.gz | plimsoll replay - --target http://localhost:8080/ --only '^GET /api/' --json\n\n\
    Only GET and HEAD requests are sent, unless --allow-unsafe is given; other requests are only counted. A log has no \
    bodies and few header fields: add what the server needs with -H. A response with the logged status \
    counts as a success, unless that status is a server error (5xx).")]
pub struct ReplayArgs {
    /// Access logs (- is standard input), or one file of traffic (.toml, .yaml) that sets a rate or
    /// users
    #[arg(required = true, value_name = "LOG|FILE")]
    pub logs: Vec<PathBuf>,
    /// Target of the requests; overrides the 'base' of a file of traffic
    #[arg(long, value_name = "URL", help_heading = "Request", value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// Replay the log faster by this factor; pauses of visitors become shorter
    #[arg(long, value_name = "2x", help_heading = "Load", conflicts_with = "scale")]
    pub speed: Option<String>,
    /// Multiply the number of visitors of the log: copies of sessions start at other times
    #[arg(long, value_name = "2x", help_heading = "Load")]
    pub scale: Option<String>,
    /// Send only requests that match this pattern, compared with text such as 'GET /path?query'
    /// (repeatable: one match suffices)
    #[arg(long, value_name = "REGEX", help_heading = "Load")]
    pub only: Vec<String>,
    /// Skip requests whose text, such as 'GET /path?query', matches this pattern (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Load")]
    pub skip: Vec<String>,
    /// Also send requests that can change data: every method except GET and HEAD
    #[arg(long, help_heading = "Load")]
    pub allow_unsafe: bool,
    /// End the replay after this time; at --speed 2x, it then covers twice this time of the log
    /// [default: the whole log]
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    #[command(flatten)]
    pub log: LogArgs,
    /// Header to send with every request (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Request")]
    pub headers: Vec<String>,
    /// Time after which a request without a complete response fails
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Request")]
    pub timeout: String,
    /// Statuses that count as success, in addition to the status in the log
    #[arg(long, value_name = "SET", default_value = "100-399", help_heading = "Request")]
    pub ok_status: String,
    /// Open a new connection for each request
    #[arg(long, help_heading = "Connections")]
    pub no_keepalive: bool,
    /// Maximum number of open connections
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
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// End the load when this condition becomes true, such as 'errors>5%'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub stop_if: Option<String>,
    /// Exit with code 1 if this condition is true at the end, such as 'p99>200ms' (repeatable)
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub fail_if: Vec<String>,
    #[command(flatten)]
    pub inconclusive: InconclusiveArgs,
    #[command(flatten)]
    pub profiles: PprofArgs,
    /// Write the run file here
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
    #[command(flatten)]
    pub place: StoreArgs,
}
