//! The command line as typed. Nothing here touches the world; `asking` and the commands make plans and terms of it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_model::{Redact, Spin};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Finds the load line of an HTTP API: how much it carries before its users feel it.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    arg_required_else_help = true,
    after_help = "A bare URL is searched: `plimsoll URL` is `plimsoll find URL`.\n\
                  Exit codes: 0 done, 1 a --fail-if was crossed or nothing succeeded, 2 bad use, cannot start or cannot write, \
                  130 interrupted."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the load line: the highest sustainable rate under the SLO, the peak and the knee
    Find(FindArgs),
    /// Explain what holds the load line: by name, with the evidence, and what would move it
    Explain(Box<ExplainArgs>),
    /// Compare two builds: a verdict with a known rate of false alarms
    Prove(Box<crate::args_prove::ProveArgs>),
    /// Put one load on a URL and measure it
    Run(RunArgs),
    /// Look whether a file of traffic is understood, and what its first requests are
    Check(CheckArgs),
    /// Measure one load for each of several concurrencies
    Sweep(SweepArgs),
    /// Serve the reference target: bare, fast, with known costs
    Baseline(BaselineArgs),
    /// Find the load line of a small server started for the purpose
    Demo(DemoArgs),
    /// Print again what run files hold
    Show(ShowArgs),
    /// Show where a profile's cost lies, draw it, or compare two per request
    Profile(ProfileArgs),
    /// Say what access logs show of the traffic: rates, endpoints, sessions, bursts
    Traffic(crate::args_traffic::TrafficArgs),
    /// Compare two recordings: a table of relative changes, and charts
    Diff(DiffArgs),
    /// Report what run files hold: a page with charts, a summary, a picture
    Report(ReportArgs),
    /// Do again what a run file records, with the same seed
    Rerun(RerunArgs),
    /// Remove old runs from the folder of results
    Clean(CleanArgs),
}

/// What is asked, and how answers count.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Target, such as http://localhost:8080/items or https://api.test/
    #[arg(required_unless_present = "file")]
    pub url: Option<String>,
    /// Ask what this file says (TOML, YAML or JSON): several requests, by weight
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    pub file: Option<PathBuf>,
    /// Ask it there, instead of at the file's base
    #[arg(long, value_name = "URL", requires = "file", conflicts_with = "url")]
    pub target: Option<String>,
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD")]
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
    #[arg(long, value_name = "WHAT", default_value = "secrets", value_parser = parse_redact, help_heading = "Request")]
    pub redact: Redact,
}

/// How connections are opened, secured and closed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectionArgs {
    /// Connect there instead of to the URL's host, which is still asked for
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,
    /// Connect to this unix socket; @NAME is the abstract one of that name
    #[arg(long, value_name = "PATH")]
    pub unix: Option<String>,
    /// Connect from these local addresses in turn, such as 10.0.0.5-10.0.0.9 or 10.0.0.0/24
    #[arg(long, value_name = "LIST")]
    pub source_ip: Option<String>,
    /// Ask for the host's addresses again every so often
    #[arg(long, value_name = "TIME")]
    pub resolve_every: Option<String>,
    /// How connections are closed: fin, or reset (leaves no port in TIME-WAIT)
    #[arg(long, value_name = "HOW")]
    pub close: Option<String>,
    /// Which HTTP is spoken: 1.1, 2, or auto (over TLS what the server takes, 2 before 1.1; without TLS 1.1)
    #[arg(long, value_name = "VERSION")]
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

/// How the generator works.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Generator")]
pub struct GeneratorArgs {
    /// Worker threads [default: half the cores for a target on this machine with connections kept, else all]
    #[arg(short = 't', long, value_name = "N")]
    pub threads: Option<String>,
    /// Wait by looking again instead of sleeping: auto, on, off
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = parse_spin)]
    pub spin: Spin,
    /// Seed of all that is random [default: drawn, and shown]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How arrivals of an open load are spaced: constant, poisson
    #[arg(long, value_name = "HOW")]
    pub arrivals: Option<String>,
}

/// Profiles of the server beside the measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Profiles")]
pub struct PprofArgs {
    /// Afterwards take profiles at low load and at this one: where they are served, such as
    /// http://localhost:6060/debug/pprof; alone, or with auto, at /debug/pprof on the target itself
    #[arg(long, value_name = "URL|auto", num_args = 0..=1, default_missing_value = "auto")]
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
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,
    /// Read once a second what the server tells of itself, Prometheus text or Go's /debug/vars: where it does; alone, or
    /// with auto, at /metrics or /debug/vars on the target itself
    #[arg(long, value_name = "URL|auto", num_args = 0..=1, default_missing_value = "auto")]
    pub metrics: Option<String>,
    /// Watch this control group [default: that of the process]
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Watch nothing
    #[arg(long, conflicts_with_all = ["pid", "process", "metrics", "cgroup"])]
    pub no_probes: bool,
}

/// Where results go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

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
    plimsoll run -f mix.toml --rate 500 -d 30s            several requests\n  \
    plimsoll run -b @order.json --fail-if 'p99>200ms' http://localhost:8080/orders\n  \
    plimsoll run http://localhost:8080/ --metrics         with its own figures")]
pub struct RunArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// Users, each waiting for its answer; stages as 10@10s,100@30s [default: 10]
    #[arg(short = 'c', long, value_name = "N|STAGES", help_heading = "Load")]
    pub concurrency: Option<String>,
    /// Requests a second, whatever the answers do; ramps as 0..5000@30s
    #[arg(long, value_name = "N|STAGES", help_heading = "Load")]
    pub rate: Option<String>,
    /// Stop after so many requests
    #[arg(short = 'n', long, value_name = "N", help_heading = "Load")]
    pub requests: Option<String>,
    /// Stop after this time [default: 10s]
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    /// Load first for this long without measuring
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Load")]
    pub warmup: String,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// End the run when this becomes true, such as 'errors>5%'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub stop_if: Option<String>,
    /// Exit with 1 if this is true at the end, such as 'p99>200ms'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub fail_if: Option<String>,
    #[command(flatten)]
    pub profiles: PprofArgs,
    /// Write the run file here
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll check -f mix.toml\n  \
    plimsoll check -f mix.toml --target http://localhost:8080/ --seed 7")]
pub struct CheckArgs {
    /// The file (TOML, YAML or JSON)
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: PathBuf,
    /// Where it would be asked [default: the file's base]
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll find http://localhost:8080/\n  \
    plimsoll find --slo 'p99<=50ms' --budget 2m http://localhost:8080/\n  \
    plimsoll find http://localhost:8080/ --pprof     and what each function costs\n  \
    plimsoll find -X POST -b '{\"n\":1}' http://localhost:8080/orders")]
pub struct FindArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// What users must get
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms", help_heading = "Search")]
    pub slo: String,
    /// Time for the whole search
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Search")]
    pub budget: String,
    /// Never offer more than this
    #[arg(long, value_name = "RATE", help_heading = "Search")]
    pub max_rate: Option<String>,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// Exit with 1 if this is true of what was found: line, peak or knee, such as 'line<5000'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub fail_if: Option<String>,
    #[command(flatten)]
    pub profiles: PprofArgs,
    /// Write the run file here [default: a new file in _output/plimsoll]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll explain http://localhost:8080/items         in three minutes at most\n  \
    plimsoll explain --budget 1m --slo 'p99<=50ms' http://localhost:8080/\n  \
    plimsoll explain --pprof http://localhost:8080/   and what each function costs\n  \
    plimsoll explain find.plimsoll                       of a recorded search\n\n\
    Ends with 1 where nothing is named: too little speaks for any cause, and what would tell is said.")]
pub struct ExplainArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// What users must get
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms", help_heading = "Search")]
    pub slo: String,
    /// Time for all of it: the search, and steady loads after it
    #[arg(long, value_name = "TIME", default_value = "3m", help_heading = "Search")]
    pub budget: String,
    /// Never offer more than this
    #[arg(long, value_name = "RATE", help_heading = "Search")]
    pub max_rate: Option<String>,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    #[command(flatten)]
    pub profiles: PprofArgs,
    /// Write the run file here [default: a new file in _output/plimsoll]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub out: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll sweep http://localhost:8080/          1 to 512 users, a minute\n  \
    plimsoll sweep -c 1,2,4,8,16 --for 5s --name api http://localhost:8080/\n  \
    plimsoll sweep --fail-if 'goodput<5000' http://localhost:8080/\n  \
    plimsoll sweep --full http://localhost:8080/   200 to 50 000, 5 min each")]
pub struct SweepArgs {
    #[command(flatten)]
    pub request: RequestArgs,
    /// Concurrencies, in order [default: 1 to 512, doubling]
    #[arg(short = 'c', long, value_name = "LIST", help_heading = "Load")]
    pub concurrency: Option<String>,
    /// Time for each level [default: as long as it takes to know its goodput to 3 %; 10s with -c; 300s with --full]
    #[arg(long = "for", value_name = "TIME", help_heading = "Load")]
    pub level_time: Option<String>,
    /// Time for all levels together, each as long as it needs [default: 60s, unless -c, --for or --full is given]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub budget: Option<String>,
    /// The long way: 200, 500, 1000, 3000, 5000, 10000, 15000, 20000, 25000 and 50000 users
    #[arg(long, help_heading = "Load")]
    pub full: bool,
    /// Load first for this long at each level without measuring [default: 0s; 200ms within a budget]
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub warmup: Option<String>,
    /// Exit with 1 if this is true at the peak, such as 'goodput<5000'
    #[arg(long, value_name = "CONDITION", help_heading = "Judgement")]
    pub fail_if: Option<String>,
    #[command(flatten)]
    pub generator: GeneratorArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// Name of the files written
    #[arg(long, default_value = "sweep", help_heading = "Output")]
    pub name: String,
    /// Folder of the files written
    #[arg(long, value_name = "DIR", default_value = "_output/plimsoll", help_heading = "Output")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub out: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Routes: /healthz, /bytes/N, /delay/MS, /status/N, /burn/US (that much CPU time).\n\n\
    Example:\n  plimsoll baseline --listen 127.0.0.1:8080 --threads 2")]
pub struct BaselineArgs {
    /// Address to listen on; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Threads, each with an event loop [default: all cores, and more where --connections needs them]
    #[arg(long, value_name = "N")]
    pub threads: Option<String>,
    /// Be able to hold so many connections, whatever the limit of open files
    #[arg(long, value_name = "N", default_value = "60000")]
    pub connections: String,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  plimsoll demo --budget 30s")]
pub struct DemoArgs {
    /// Time for the search
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub budget: String,
    /// Seed of all that is random [default: drawn, and shown]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub out: OutputArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  plimsoll show run.plimsoll\n  plimsoll show --csv run.plimsoll > intervals.csv")]
pub struct ShowArgs {
    /// Run files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON document (for several files: an array of them)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the intervals as CSV
    #[arg(long)]
    pub csv: bool,
    /// Print all readings of the probes as CSV
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub probes: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Reads pprof (gzip'd or plain), folded stacks and the text of perf script.\n\nExamples:\n  \
    plimsoll profile cpu.pb.gz                        the dearest 30 functions\n  \
    plimsoll profile http://localhost:6060/debug/pprof --seconds 10 -o flame.html\n  \
    plimsoll profile heap.pb.gz --sample-index alloc_space --focus json\n  \
    plimsoll profile cpu.pb.gz --by 'main\\.handle'    by the handler on the stack\n  \
    plimsoll profile --diff a.pb.gz b.pb.gz --requests-a 5000 --requests-b 60000")]
pub struct ProfileArgs {
    /// Profile: a file, or an address such as http://localhost:6060/debug/pprof
    #[arg(value_name = "FILE|URL")]
    pub source: Option<String>,
    /// Take the profile for so long (an address only) [default: 30 for a CPU profile]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,
    /// Fetch from an address that is neither loopback nor private
    #[arg(long)]
    pub allow_public: bool,
    /// Compare two profiles, each a file or an address: what B costs more than A
    #[arg(long, num_args = 2, value_names = ["A", "B"], help_heading = "Difference")]
    pub diff: Vec<String>,
    /// Requests completed while A was taken
    #[arg(long, value_name = "N", requires = "diff", help_heading = "Difference")]
    pub requests_a: Option<u64>,
    /// Requests completed while B was taken
    #[arg(long, value_name = "N", requires = "diff", help_heading = "Difference")]
    pub requests_b: Option<u64>,
    /// Column of values: a name such as alloc_space, or its number
    #[arg(long, value_name = "TYPE", help_heading = "Selection")]
    pub sample_index: Option<String>,
    /// Keep samples with a function or file that matches
    #[arg(long, value_name = "REGEX", help_heading = "Selection")]
    pub focus: Option<String>,
    /// Leave out samples with a function or file that matches
    #[arg(long, value_name = "REGEX", help_heading = "Selection")]
    pub ignore: Option<String>,
    /// Split costs by a label such as endpoint, or by the first function from the root that matches, such as a handler
    #[arg(long, value_name = "LABEL|REGEX", help_heading = "Selection")]
    pub by: Option<String>,
    /// Rows of the table [default: 30; all with --json]
    #[arg(long, value_name = "N", num_args = 0..=1, help_heading = "Output")]
    pub top: Option<Option<String>>,
    /// Order of the rows: flat, cum [default: cum; flat with --diff]
    #[arg(long, value_name = "COLUMN", help_heading = "Output")]
    pub sort: Option<String>,
    /// Write a flame graph (.html or .svg) or keep the profile (.pb.gz); repeatable
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Vec<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Files are two searches for the load line, or run files of a sweep or of one load and .dat files:\n\
    lines of concurrency, requests/s, mean ms, success %.\n\n\
    Examples:\n  plimsoll diff before.dat after.dat\n  plimsoll diff find-before.plimsoll find-after.plimsoll"
)]
pub struct DiffArgs {
    /// The recording to compare with
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The recording whose changes are shown
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Folder of the charts written
    #[arg(long, value_name = "DIR", default_value = "_output/plimsoll")]
    pub dir: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A page with charts, complete in itself
    Html,
    /// A summary for a pull request
    Md,
    /// Test cases for a CI system
    Junit,
    /// The documents of --json
    Json,
    /// One chart
    Svg,
    /// One chart
    Png,
}

/// A chart of a run file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChartArg {
    /// Offered rate against p99, with the load line (a search)
    Line,
    /// Throughput and time to last byte over the load (a sweep)
    Throughput,
    /// Success rate over the load (a sweep)
    Success,
    /// Latency by percentile (a run)
    Percentiles,
    /// Rate, latency, errors and lag over time (a run)
    Time,
    /// Which latencies came when (a run)
    Heat,
    /// Both sides block by block, and how the interval narrowed (a comparison); each rung (a ladder)
    Blocks,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll report find.plimsoll                    a page beside the file\n  \
    plimsoll report find.plimsoll --format md        a summary for a pull request\n  \
    plimsoll report find.plimsoll -o line.png        the picture of the load line\n  \
    plimsoll report run.plimsoll --chart heat --dark -o heat.svg\n  \
    plimsoll report sweep.plimsoll --slo 'p99<=50ms' -o junit.xml")]
pub struct ReportArgs {
    /// Run files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// What to write [default: what the name given with -o ends in, else html]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// The chart of svg and png [default: line, throughput or time, by what the file holds]
    #[arg(long, value_name = "CHART")]
    pub chart: Option<ChartArg>,
    /// Chart in colours for a dark page (pages follow their reader)
    #[arg(long)]
    pub dark: bool,
    /// What must be true of each load of a run or sweep; each part is a test case (junit)
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms")]
    pub slo: String,
    /// Write here [default: a page beside the first file; the rest to standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Removed are run files with a name that plimsoll chose (such as find-1795310187-22978.plimsoll) and \
    their pages, profiles and logs; nothing else. Each find, prove and run that keeps its file there removes what is \
    beyond 50 runs, and says so.\n\n\
    Examples:\n  plimsoll clean --keep 10 --dry-run\n  plimsoll clean --keep 0"
)]
pub struct CleanArgs {
    /// Keep the latest so many runs [default: 50]
    #[arg(long, value_name = "N")]
    pub keep: Option<String>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The folder of results
    #[arg(long, value_name = "DIR", default_value = crate::kept::FOLDER)]
    pub dir: PathBuf,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "Secrets are not in run files: give again what it asks for, under the name of the flag.\n\n\
    Examples:\n  plimsoll rerun run.plimsoll\n  plimsoll rerun run.plimsoll -H 'Authorization: Bearer ...'")]
pub struct RerunArgs {
    /// Run file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Run commands, send files and load public addresses as the run file says, without asking
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// A target of which something was left out of the record (repeatable, in its order)
    #[arg(long = "url", value_name = "URL", help_heading = "Left out of the record")]
    pub urls: Vec<String>,
    /// The file of traffic
    #[arg(short = 'f', long = "file", value_name = "FILE", help_heading = "Left out of the record")]
    pub traffic: Option<String>,
    /// Where the file of traffic was asked
    #[arg(long, value_name = "URL", help_heading = "Left out of the record")]
    pub target: Option<String>,
    /// A header whose value was left out (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Left out of the record")]
    pub headers: Vec<String>,
    /// The body: text, @FILE, or - for standard input
    #[arg(short = 'b', long, value_name = "TEXT|@FILE|-", help_heading = "Left out of the record")]
    pub body: Option<String>,
    /// The command of build A
    #[arg(long, value_name = "CMD", help_heading = "Left out of the record")]
    pub a: Option<String>,
    /// The command of build B
    #[arg(long, value_name = "CMD", help_heading = "Left out of the record")]
    pub b: Option<String>,
    /// The command before each block
    #[arg(long, value_name = "CMD", help_heading = "Left out of the record")]
    pub before_block: Option<String>,
    /// Where profiles are served
    #[arg(long, value_name = "URL", help_heading = "Left out of the record")]
    pub pprof: Option<String>,
    /// Where the server tells of itself
    #[arg(long, value_name = "URL", help_heading = "Left out of the record")]
    pub metrics: Option<String>,
    /// The unix socket
    #[arg(long, value_name = "PATH", help_heading = "Left out of the record")]
    pub unix: Option<String>,
    /// The issuers to trust
    #[arg(long, value_name = "FILE", help_heading = "Left out of the record")]
    pub cacert: Option<String>,
    /// Our own certificate
    #[arg(long, value_name = "FILE", help_heading = "Left out of the record")]
    pub cert: Option<String>,
    /// The key of our certificate
    #[arg(long, value_name = "FILE", help_heading = "Left out of the record")]
    pub key: Option<String>,
    /// The control group to watch
    #[arg(long, value_name = "PATH", help_heading = "Left out of the record")]
    pub cgroup: Option<String>,
    /// Write the run file of the repetition here
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print what the record says instead of running it
    #[arg(long)]
    pub print: bool,
}
