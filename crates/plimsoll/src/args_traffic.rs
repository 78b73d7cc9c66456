//! What was said to commands that read access logs.

use clap::Args;
use std::path::PathBuf;

/// How lines of a log are understood.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// How lines are written: an nginx log_format ($...), an Apache LogFormat (%...), an Envoy format (%...%), or combined,
    /// common, caddy, traefik, envoy, alb, ... [default: found by the first lines]
    #[arg(long, value_name = "FORMAT", help_heading = "Log")]
    pub log_format: Option<String>,
    /// Where lines of JSON have what: time, start, end, method, path, status, bytes, duration_ms (_s, _us), client,
    /// user_agent
    #[arg(long, value_name = "NAME=.PATH,...", help_heading = "Log")]
    pub field: Option<String>,
    /// What tells visitors apart: a path in JSON, a name in --log-format, or client [default: address and user agent]
    #[arg(long, value_name = "FIELD", help_heading = "Log")]
    pub session: Option<String>,
    /// Fold what matches in a path to {}, beside ids, UUIDs, hashes and dates (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Log")]
    pub fold: Vec<String>,
    /// Fail if a line is not understood
    #[arg(long, help_heading = "Log")]
    pub strict: bool,
}

/// `plimsoll traffic`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll traffic access.log                     what comes, and how often\n  \
    plimsoll traffic *.gz access.log -o page.html   the same as a page\n  \
    plimsoll traffic - --json < access.log          as one document\n  \
    plimsoll traffic app.log --field time=.ts,path=.url,duration_ms=.took\n  \
    plimsoll traffic access.log --log-format '$msec \"$request\" $status'\n\n\
    Reads combined, common, Traefik, Envoy and AWS load balancers' logs, and JSON of Caddy, Traefik,\n\
    Envoy and others; .gz and .zst; several files are merged by time, in bounded memory.")]
pub struct TrafficArgs {
    /// Access logs; - is standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
    /// Rows of the tables
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Output")]
    pub top: usize,
    /// Write a page with charts (.html)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}
