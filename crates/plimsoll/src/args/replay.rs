//! What was said to `plimsoll replay`.

use super::reading::LogArgs;
use super::shared::{
    ConnectionArgs, GeneratorArgs, InconclusiveArgs, OutputArgs, PprofArgs, ProbeArgs, StoreArgs, redact_words,
};
use clap::{Args, ValueHint};
use plimsoll_model::Redact;
use std::path::PathBuf;

/// `plimsoll replay`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll replay access.log --target http://localhost:8080/\n  \
    plimsoll replay access.log --target http://localhost:8080/ --speed 2x      an hour in half of one\n  \
    plimsoll replay access.log --target http://localhost:8080/ --scale 2x      twice the visitors\n  \
    plimsoll replay access.log.*.gz --target http://localhost:8080/ -d 10m --skip '\\.(png|css|js)'\n  \
    plimsoll replay model.toml --scale 2x     what plimsoll model made\n  \
    zcat access.log.gz | plimsoll replay - --target http://localhost:8080/ --only '^GET /api/' --json\n\n\
    Only GET and HEAD are asked, unless --allow-unsafe is given; what is left out is counted. A log has no\n\
    bodies and few header fields: add what the server needs with -H. An answer with the status that the\n\
    log has counts as a success, unless it is a fault of the server (5xx).")]
pub struct ReplayArgs {
    /// Access logs; - is standard input. Or one file of traffic with a [load], such as plimsoll model writes (.toml, .yaml)
    #[arg(required = true, value_name = "LOG|FILE")]
    pub logs: Vec<PathBuf>,
    /// Ask it there; of a file of traffic in place of its base
    #[arg(long, value_name = "URL", help_heading = "Request", value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// Let time run so much faster: everything, also the pauses of visitors, is shortened
    #[arg(long, value_name = "2x", help_heading = "Load", conflicts_with = "scale")]
    pub speed: Option<String>,
    /// So many times the visitors: sessions are drawn again and moved in time, each as it was
    #[arg(long, value_name = "2x", help_heading = "Load")]
    pub scale: Option<String>,
    /// Ask only what matches, as 'GET /path?query' (repeatable: one of them)
    #[arg(long, value_name = "REGEX", help_heading = "Load")]
    pub only: Vec<String>,
    /// Leave out what matches (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Load")]
    pub skip: Vec<String>,
    /// Ask also with methods that change things: all but GET and HEAD
    #[arg(long, help_heading = "Load")]
    pub allow_unsafe: bool,
    /// Only so much of the beginning [default: all of it]
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    #[command(flatten)]
    pub log: LogArgs,
    /// Header to send with every request (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Request")]
    pub headers: Vec<String>,
    /// Give a request up after this
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Request")]
    pub timeout: String,
    /// Statuses that count as success, beside that of the log
    #[arg(long, value_name = "SET", default_value = "100-399", help_heading = "Request")]
    pub ok_status: String,
    /// Open a new connection for each request
    #[arg(long, help_heading = "Request")]
    pub no_keepalive: bool,
    /// Open at most so many connections
    #[arg(long, value_name = "N", help_heading = "Request")]
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
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// End the load when this becomes true, such as 'errors>5%'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub stop_if: Option<String>,
    /// Exit with 1 if this is true at the end, such as 'p99>200ms' (repeatable)
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
