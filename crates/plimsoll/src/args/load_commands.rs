//! Arguments of the commands that generate load, and of the reference server: run, find, explain,
//! overload, sweep, demo, rerun, baseline.
//!
//! Not here: arguments of a comparison (`prove`), and flags that several commands share (`shared`).

use super::fleet::FleetArgs;
use super::read_commands::LogArgs;
use super::shared::{
    GeneratorArgs, InconclusiveArgs, OutputArgs, PprofArgs, ProbeArgs, RequestArgs, ScriptArgs, SearchArgs, StoreArgs,
};
use clap::{Args, ValueHint};
use plimsoll_model::experiment_settings::InterventionSettings;
use plimsoll_model::failure::Failure;
use plimsoll_model::intervention::SETTING_VALUES_MAX;
use plimsoll_model::units::parse_number;
use plimsoll_model::{EndpointChoice, TextKind};
use plimsoll_study::quantity::with_flag_name;
use plimsoll_study::runner::VALUE_PLACEHOLDER;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll run http://localhost:8080/                   10 users for 10 s\n  \
    plimsoll run -c 100 -d 30s http://localhost:8080/     100 users for 30 s\n  \
    plimsoll run --rate 2k --arrivals poisson http://localhost:8080/\n  \
    plimsoll run --rate 0..5000@30s,5000@60s http://localhost:8080/\n  \
    plimsoll run --rate 2k --pprof http://localhost:8080/\n  \
    plimsoll run --cacert ca.pem https://api.test/\n  \
    plimsoll run --unix /run/api.sock http://api/items\n  \
    plimsoll run --http 2 -c 64 --streams 8 http://localhost:8080/\n  \
    plimsoll run --no-keepalive --close reset --rate 5k http://localhost:8080/\n  \
    plimsoll run --curl \"curl 'http://localhost:8080/' -H 'accept: text/html'\"\n  \
    plimsoll run -f mix.toml --rate 500 -d 30s            several requests\n  \
    plimsoll run --lua post.lua -c 64 http://localhost:8080/ -- 7   wrk's scripts\n  \
    plimsoll run -b @order.json --fail-if 'p99>200ms' http://localhost:8080/orders\n  \
    plimsoll run http://localhost:8080/ --metrics         the server's own metrics")]
pub struct RunArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// Closed loop: N users, each waiting for its response before its next request; or stages such
    /// as 10@10s,100@30s [default: 10]
    #[arg(short = 'c', long, value_name = "N|STAGES", help_heading = "Load")]
    pub concurrency: Option<String>,
    /// Open loop: start N requests (or scenario sessions) a second, whatever the server does; or
    /// ramps such as 0..5000@30s
    #[arg(long, value_name = "N|STAGES", help_heading = "Load")]
    pub rate: Option<String>,
    /// Stop the load after N requests, or N sessions of scenarios
    #[arg(short = 'n', long, value_name = "N", help_heading = "Load")]
    pub requests: Option<String>,
    /// Stop the load after this time [default: 10s]
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    /// Apply the load for this long before measuring starts
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Load")]
    pub warmup: String,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// End the run when this condition becomes true, such as 'errors>5%'
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
    #[command(flatten)]
    pub script: ScriptArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll find http://localhost:8080/\n  \
    plimsoll find --slo 'p99<=50ms' --budget 2m http://localhost:8080/\n  \
    plimsoll find http://localhost:8080/ --pprof      the cost of each function\n  \
    plimsoll find --headroom 30% --need 50k http://localhost:8080/\n  \
    plimsoll find --soak 30m http://localhost:8080/   load line for 30 min\n  \
    plimsoll find --replay access.log http://localhost:8080/   multiple of a log\n  \
    plimsoll find -X POST -b '{\"n\":1}' http://localhost:8080/orders")]
pub struct FindArgs {
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Time for the whole search
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Search")]
    pub budget: String,
    /// Find the highest multiple of this access log's traffic that the target sustains; - is
    /// standard input (repeatable)
    #[arg(long = "replay", value_name = "LOG", help_heading = "Log",
          conflicts_with_all = ["file", "curl", "method", "body", "lua", "arrivals"], value_hint = ValueHint::FilePath)]
    pub logs: Vec<PathBuf>,
    /// Send only requests that match this pattern, compared with text such as 'GET /path?query'
    /// (repeatable: one match suffices)
    #[arg(long, value_name = "REGEX", requires = "logs", help_heading = "Log")]
    pub only: Vec<String>,
    /// Skip requests whose text, such as 'GET /path?query', matches this pattern (repeatable)
    #[arg(long, value_name = "REGEX", requires = "logs", help_heading = "Log")]
    pub skip: Vec<String>,
    /// Also send requests that can change data: every method except GET and HEAD
    #[arg(long, requires = "logs", help_heading = "Log")]
    pub allow_unsafe: bool,
    #[command(flatten)]
    pub log: LogArgs,
    /// After the search, test a rate that is lower than the load line by this share, such as 30%
    #[arg(long, value_name = "SHARE", help_heading = "Planning")]
    pub headroom: Option<String>,
    /// After the search, apply the load line's rate for this long, such as 30m, and report
    /// violations of the SLO (not part of --budget)
    #[arg(long, value_name = "TIME", help_heading = "Planning")]
    pub soak: Option<String>,
    /// Calculate how many instances of the server sustain this total rate in requests/s, such as
    /// 50k
    #[arg(long, value_name = "RATE", help_heading = "Planning")]
    pub need: Option<String>,
    /// Exit with code 1 if this condition on the load line, peak or knee is true, such as
    /// 'line<5000' (repeatable)
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub fail_if: Vec<String>,
    #[command(flatten)]
    pub inconclusive: InconclusiveArgs,
    /// Write the run file here [default: a new file in _output/plimsoll]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
    #[command(flatten)]
    pub place: StoreArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll explain http://localhost:8080/items         in three minutes at most\n  \
    plimsoll explain --budget 1m --slo 'p99<=50ms' http://localhost:8080/\n  \
    plimsoll explain --pprof http://localhost:8080/      the server's own profiles\n  \
    plimsoll explain --identity 'X-Client: two' http://localhost:8080/\n  \
    plimsoll explain -b one --other-body @big.json http://localhost:8080/orders\n  \
    plimsoll explain --may-signal redis-server http://localhost:8080/items\n  \
    plimsoll explain --vary './pool {\u{1b}[0mn}' --values 2,4,8 http://localhost:8080/\n  \
    plimsoll explain find.plimsoll                       from a recorded search\n\n\
    Exit code 1: no cause has enough evidence. The output then names the measurement that would decide.")]
pub struct ExplainArgs {
    #[command(flatten)]
    pub search: SearchArgs,
    /// Time for the whole study: the search, and the steady loads after it
    #[arg(long, value_name = "TIME", default_value = "3m", help_heading = "Search")]
    pub budget: String,
    #[command(flatten)]
    pub interventions: InterventionArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Write the run file here [default: a new file in _output/plimsoll]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
    #[command(flatten)]
    pub place: StoreArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll overload http://localhost:8080/items     first find the load line\n  \
    plimsoll overload --line 2k --budget 1m http://localhost:8080/items\n  \
    plimsoll overload --retries 3 http://localhost:8080/items\n  \
    plimsoll overload --against http://localhost:8081/ http://localhost:8080/\n\n\
    The offered rate rises through 0.5, 1, 1.5, 2 and 3 times the load line, then falls to 0.5 times.")]
pub struct OverloadArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// The load line (highest rate that meets the SLO) in requests/s, if it is known [default: a
    /// search finds the load line first]
    #[arg(long, value_name = "RATE", help_heading = "Search")]
    pub line: Option<String>,
    /// The SLO: success rate and latency that users need
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms", help_heading = "Search")]
    pub slo: String,
    /// Total time for the search and for the rising and falling loads after it
    #[arg(long, value_name = "TIME", default_value = "3m", help_heading = "Search")]
    pub budget: String,
    /// Above the load line, repeat each failed request up to N times, after 0.1 s, 0.2 s, 0.4 s,
    /// ...
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    pub retries: u32,
    /// Repeat the load on this second target, such as a proxy in front of the first target, and
    /// compare both targets
    #[arg(long, value_name = "URL2", help_heading = "Search", value_hint = ValueHint::Url)]
    pub against: Option<String>,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    #[command(flatten)]
    pub script: ScriptArgs,
    /// Write the run file here [default: a new file in _output/plimsoll]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
    #[command(flatten)]
    pub place: StoreArgs,
}

/// The experiments of `explain`: one change at a time, to separate causes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Experiments")]
pub struct InterventionArgs {
    /// Make no experiments: keep the path, method, client identity and number of users unchanged
    #[arg(long, conflicts_with_all = ["reference", "identities", "other_body", "may_signal"])]
    pub no_intervene: bool,
    /// A URL of the same server that costs little work, for comparison with the target [default: a
    /// path that the server does not have]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub reference: Option<String>,
    /// In one experiment, also send requests as another client, with this header, such as
    /// 'X-Api-Key: k2' (repeatable)
    #[arg(long = "identity", value_name = "NAME: VALUE")]
    pub identities: Vec<String>,
    /// In one experiment, send this longer or shorter body instead of the body of the requests:
    /// text, or @FILE
    #[arg(long, value_name = "TEXT|@FILE")]
    pub other_body: Option<String>,
    /// Allow plimsoll to pause this dependency, such as a database, for 60 of each 180 ms during
    /// two seconds (repeatable)
    #[arg(long, value_name = "NAME|PID")]
    pub may_signal: Vec<String>,
    // clap treats `{n}` as a line break. The escape code `\u{1b}[0m` after the brace keeps `{n}` as
    // text, and clap removes the escape code from its output.
    #[arg(
        help = "At the end, run this command with each value of --values in place of {\u{1b}[0mn}, and measure the \
            throughput: './set-pool {\u{1b}[0mn}'"
    )]
    #[arg(long, value_name = "CMD", requires = "values",
          conflicts_with_all = ["no_intervene", "max_rate"],
          value_hint = ValueHint::CommandString)]
    pub vary: Option<String>,
    /// The values to try with --vary, such as 2,4,8
    #[arg(long, value_name = "LIST", requires = "vary")]
    pub values: Option<String>,
}

impl InterventionArgs {
    /// Converts the flags of the experiments to the settings that the run file records.
    /// Returns a usage error if --vary lacks the placeholder for the value, or if another of these
    /// flags has an invalid value.
    pub fn intervention_settings(&self) -> Result<InterventionSettings<String>, Failure> {
        let vary = self.vary.clone();
        if vary.as_ref().is_some_and(|command| !command.contains(VALUE_PLACEHOLDER)) {
            return Err(Failure::usage(format!(
                "--vary: the command lacks {VALUE_PLACEHOLDER}, which plimsoll replaces by each value of --values"
            )));
        }
        let (other_body, may_signal) = (self.other_body.clone(), self.may_signal.clone());
        if other_body.as_deref() == Some("-") {
            return Err(Failure::usage("--other-body: give a text or @FILE, not standard input"));
        }
        if may_signal.iter().any(|word| word.trim().is_empty()) {
            return Err(Failure::usage(
                "--may-signal: give the name or the PID of the process that plimsoll may pause",
            ));
        }
        Ok(InterventionSettings {
            none: self.no_intervene,
            reference: self.reference.clone(),
            identities: self
                .identities
                .iter()
                .map(|text| InterventionArgs::parse_identity_header(text))
                .collect::<Result<_, _>>()?,
            other_body,
            may_signal,
            vary,
        })
    }

    /// Parses the value of --identity, a header field that identifies another client. Returns the
    /// text `Name: value`, which is the form in run files, or a usage error if the name or the
    /// colon is missing.
    pub fn parse_identity_header(text: &str) -> Result<String, Failure> {
        // The text may contain a secret, so the error does not repeat it.
        let (name, value) = text.split_once(':').filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
            Failure::usage("--identity: write 'Name: value', a header that identifies another client")
        })?;
        Ok(format!("{}: {}", name.trim(), value.trim()))
    }

    /// Parses --values: the values of a server's setting that --vary tries, none without the flag.
    /// Returns a usage error unless there are 2 to `SETTING_VALUES_MAX` values above 0.
    pub fn parse_setting_values(&self) -> Result<Vec<f64>, Failure> {
        let Some(text) = &self.values else { return Ok(Vec::new()) };
        let values: Vec<f64> = text
            .split(',')
            .map(|value| with_flag_name("--values", parse_number(value.trim())))
            .collect::<Result<_, _>>()?;
        match values.iter().all(|value| *value > 0.0) && (2..=SETTING_VALUES_MAX).contains(&values.len()) {
            true => Ok(values),
            false => {
                Err(Failure::usage(format!("--values: give 2 to {SETTING_VALUES_MAX} values above 0, such as 2,4,8")))
            }
        }
    }
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll sweep http://localhost:8080/          1 to 512 users, in 1 min\n  \
    plimsoll sweep -c 1,2,4,8,16 --for 5s --name api http://localhost:8080/\n  \
    plimsoll sweep --fail-if 'goodput<5000' http://localhost:8080/\n  \
    plimsoll sweep --full http://localhost:8080/   200 to 50 000 users, 5 min each")]
pub struct SweepArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// User counts to measure, in the order given [default: 1, 2, 4, ... 512]
    #[arg(short = 'c', long, value_name = "LIST", help_heading = "Load")]
    pub concurrency: Option<String>,
    /// Measured time for each user count. From 4s on, the time is divided into four loads
    /// [default: 10s with -c; 300s with --full; else by --budget]
    #[arg(long = "for", value_name = "TIME", help_heading = "Load")]
    pub level_time: Option<String>,
    /// Total time for all user counts, each measured up to eight times [default: 60s, unless -c,
    /// --for or --full is given]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub budget: Option<String>,
    /// Measure 200, 500, 1000, 3000, 5000, 10000, 15000, 20000, 25000 and 50000 users
    #[arg(long, help_heading = "Load")]
    pub full: bool,
    /// Warm up each load for this long before measuring [default: 200ms, longer if responses take
    /// longer]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub warmup: Option<String>,
    /// Exit with code 1 if this condition is true at the peak (the user count with the highest
    /// goodput), such as 'goodput<5000' (repeatable)
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub fail_if: Vec<String>,
    #[command(flatten)]
    pub inconclusive: InconclusiveArgs,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// Prefix of the names of the sweep's output files (run file, tables and charts)
    #[arg(long, default_value = "sweep", help_heading = "Output")]
    pub name: String,
    /// Folder of the sweep's output files (run file, tables and charts)
    #[arg(long, value_name = "DIR", default_value = "_output/plimsoll", help_heading = "Output",
          value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    #[command(flatten)]
    pub out: OutputArgs,
    #[command(flatten)]
    pub script: ScriptArgs,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Routes of the reference server: /healthz, /bytes/N, /delay/MS (milliseconds), /status/N, /burn/US \
    (microseconds of CPU time).\n\n\
    Example:\n  plimsoll baseline --listen 127.0.0.1:8080 --threads 2"
)]
pub struct BaselineArgs {
    /// Address to listen on; port 0 picks a free port, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Certificate of the reference server (PEM); with this flag, the server requires TLS
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cert: Option<PathBuf>,
    /// Private key of the reference server's certificate (PEM) [default: in the --cert file]
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// Number of threads of the reference server, each with an event loop [default: one for each
    /// core, or more if --connections needs more]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,
    /// Number of connections that the reference server must accept; the server raises its limit of
    /// open files as needed
    #[arg(long, value_name = "N", default_value = "60000")]
    pub connections: String,
    /// On each request to /items, the reference server calls this URL over a pool of connections, a
    /// known bottleneck that plimsoll explain should find
    #[arg(long, value_name = "URL", requires = "pool",
          conflicts_with_all = ["threads", "connections", "cert"],
          value_hint = ValueHint::Url)]
    pub behind: Option<String>,
    /// Number of connections in the reference server's pool to the URL of --behind
    #[arg(long, value_name = "N", requires = "behind")]
    pub pool: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll demo --budget 30s\n  \
    plimsoll demo --quick        only find the load line, in 15 s")]
pub struct DemoArgs {
    /// Time for each of the three steps: find, explain, prove [default: 40s; 15s with --quick]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Run only the search for the load line
    #[arg(long)]
    pub quick: bool,
    /// Seed of all random choices [default: a random seed, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub out: OutputArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Run files contain no secrets: give each missing value again with its flag.\n\n\
    Examples:\n  plimsoll rerun run.plimsoll\n  plimsoll rerun run.plimsoll -H 'Authorization: Bearer ...'")]
pub struct RerunArgs {
    /// Run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Do not ask before running commands, sending files or loading public addresses that
    /// the run file names
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// The complete target URL, if the run file withholds a part of the URL (repeatable, in the
    /// order of the recorded command)
    #[arg(long = "url", value_name = "URL", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::Url)]
    pub urls: Vec<String>,
    /// The complete second target URL of the comparison, if the run file withholds a part of the
    /// URL
    #[arg(long, value_name = "URL2", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::Url)]
    pub against: Option<String>,
    /// The file of traffic, which describes the requests to send
    #[arg(short = 'f', long = "file", value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub traffic: Option<String>,
    /// The script
    #[arg(long, value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub lua: Option<String>,
    /// An access log to replay (repeatable, in the order of the recorded command)
    #[arg(long = "log", value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub logs: Vec<String>,
    /// The target URL for the requests of the file of traffic or of the log
    #[arg(long, value_name = "URL", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// A header whose value the run file withholds (repeatable)
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        help_heading = "Values that the run file withholds"
    )]
    pub headers: Vec<String>,
    /// The request body: text, @FILE, or - for standard input
    #[arg(short = 'b', long, value_name = "TEXT|@FILE|-", help_heading = "Values that the run file withholds")]
    pub body: Option<String>,
    /// The command that starts build A
    #[arg(long, value_name = "CMD", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::CommandString)]
    pub a: Option<String>,
    /// The command that starts build B
    #[arg(long, value_name = "CMD", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::CommandString)]
    pub b: Option<String>,
    /// The command that builds a git revision
    #[arg(long, value_name = "CMD", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::CommandString)]
    pub build: Option<String>,
    /// The command that starts the built program
    #[arg(long, value_name = "CMD", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::CommandString)]
    pub start: Option<String>,
    /// The command to run before each block (one load on each server)
    #[arg(long, value_name = "CMD", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::CommandString)]
    pub before_block: Option<String>,
    /// The command that changes a setting of the server
    #[arg(long, value_name = "CMD", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::CommandString)]
    pub vary: Option<String>,
    /// The URL of the server's profiles, such as http://localhost:6060/debug/pprof
    #[arg(long, value_name = "URL", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::Url)]
    pub pprof: Option<String>,
    /// The URL of the server's metrics, such as http://localhost:8080/metrics
    #[arg(long, value_name = "URL", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::Url)]
    pub metrics: Option<String>,
    /// The URL of the same server that costs little work, for comparison with the target
    #[arg(long, value_name = "URL", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::Url)]
    pub reference: Option<String>,
    /// A header that identifies another client (repeatable, in the order of the recorded command)
    #[arg(long = "identity", value_name = "NAME: VALUE", help_heading = "Values that the run file withholds")]
    pub identities: Vec<String>,
    /// The longer or shorter body that one experiment sends: text, or @FILE
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Values that the run file withholds")]
    pub other_body: Option<String>,
    /// The unix socket to connect to
    #[arg(long, value_name = "PATH", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub unix: Option<String>,
    /// The certificates of the issuers to trust (PEM)
    #[arg(long, value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub cacert: Option<String>,
    /// The client certificate
    #[arg(long, value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub cert: Option<String>,
    /// The key of the client certificate
    #[arg(long, value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub key: Option<String>,
    /// A .proto file of the gRPC messages (repeatable, in the order of the recorded command)
    #[arg(long, value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub proto: Vec<String>,
    /// A folder with the imports of --proto files (repeatable, in the order of the recorded
    /// command)
    #[arg(long, value_name = "DIR", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::DirPath)]
    pub proto_path: Vec<String>,
    /// The descriptor set that protoc made from the .proto files
    #[arg(long, value_name = "FILE", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::FilePath)]
    pub descriptor_set: Option<String>,
    /// The control group (cgroup) of the server's process to measure
    #[arg(long, value_name = "PATH", help_heading = "Values that the run file withholds",
          value_hint = ValueHint::DirPath)]
    pub cgroup: Option<String>,
    /// Write the new run file here
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the recorded command instead of running it
    #[arg(long)]
    pub print: bool,
    /// The arguments of the Lua script; give all of them again
    #[arg(last = true, value_name = "WORDS", help_heading = "Values that the run file withholds")]
    pub words: Vec<String>,
}

impl RerunArgs {
    /// Returns the values that the user gives again because the run file withholds these values,
    /// each list of values with its kind. The result contains no URLs of targets, no header fields
    /// and no body. `sides` says whether the run file records a comparison, which can have profiles
    /// of both sides (A and B). Returns a usage error if a value of --identity is invalid.
    pub fn withheld_texts(&self, sides: bool) -> Result<Vec<(TextKind, Vec<String>)>, Failure> {
        let profiles = match self.pprof.as_deref().map(|place| EndpointChoice::parse(place, sides)) {
            None | Some(EndpointChoice::ByTarget) => Vec::new(),
            Some(EndpointChoice::At(urls)) => urls,
        };
        let identities = self
            .identities
            .iter()
            .map(|text| InterventionArgs::parse_identity_header(text))
            .collect::<Result<_, _>>()?;
        let one = |text: &Option<String>| text.iter().cloned().collect();
        Ok(vec![
            (TextKind::Profiles, profiles),
            (TextKind::Identity, identities),
            (TextKind::Argument, self.words.clone()),
            (TextKind::Proto, self.proto.clone()),
            (TextKind::ProtoPath, self.proto_path.clone()),
            (TextKind::Log, self.logs.clone()),
            (TextKind::Traffic, one(&self.traffic)),
            (TextKind::Script, one(&self.lua)),
            (TextKind::DescriptorSet, one(&self.descriptor_set)),
            (TextKind::BuildA, one(&self.a)),
            (TextKind::BuildB, one(&self.b)),
            (TextKind::BeforeBlock, one(&self.before_block)),
            (TextKind::Build, one(&self.build)),
            (TextKind::Start, one(&self.start)),
            (TextKind::Metrics, one(&self.metrics)),
            (TextKind::Reference, one(&self.reference)),
            (TextKind::Vary, one(&self.vary)),
            (TextKind::OtherBody, one(&self.other_body)),
            (TextKind::Unix, one(&self.unix)),
            (TextKind::Issuers, one(&self.cacert)),
            (TextKind::Certificate, one(&self.cert)),
            (TextKind::Key, one(&self.key)),
            (TextKind::Cgroup, one(&self.cgroup)),
        ])
    }
}
