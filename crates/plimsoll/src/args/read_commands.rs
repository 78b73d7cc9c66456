//! Arguments of the commands that generate no load: they read run files, profiles, access logs and
//! traffic files, or remove old runs.
//!
//! Not here: the commands that measure.

use super::known_words::KnownWords;
use super::shared::SchemaArgs;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll check -f mix.toml\n  \
    plimsoll check -f mix.toml --target http://localhost:8080/ --seed 7\n  \
    plimsoll check -f mix.toml --http 2")]
pub struct CheckArgs {
    /// The file of traffic to check (TOML, YAML or JSON)
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: PathBuf,
    /// The target of the printed requests; nothing is sent [default: the 'base' in the file]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// HTTP version of the printed requests: 1.1 or 2 [default: 1.1; 2 for gRPC]
    #[arg(long, value_name = "VERSION",
          value_parser = KnownWords::for_text_value(&["1.1", "2"]), hide_possible_values = true)]
    pub http: Option<String>,
    #[command(flatten)]
    pub schema: SchemaArgs,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  plimsoll show run.plimsoll\n  plimsoll show --csv run.plimsoll > intervals.csv")]
pub struct ShowArgs {
    /// The run files to show
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON document (for several files: an array of them)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the measurements of each interval of time as CSV
    #[arg(long)]
    pub csv: bool,
    /// Print all values that plimsoll measured over time on the server and the machines, as CSV
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub probes: bool,
    /// Print every number, table and warning, not only the one-screen summary
    #[arg(short, long, conflicts_with_all = ["json", "csv", "probes"])]
    pub verbose: bool,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "plimsoll profile reads pprof files (plain or gzip), folded stacks, and the output of perf script.\n\n\
    Examples:\n  \
    plimsoll profile cpu.pb.gz                        the 30 costliest functions\n  \
    plimsoll profile http://localhost:6060/debug/pprof --seconds 10 -o flame.html\n  \
    plimsoll profile heap.pb.gz --sample-index alloc_space --focus json\n  \
    plimsoll profile cpu.pb.gz --by 'main\\.handle'    split by handler\n  \
    plimsoll profile --diff a.pb.gz b.pb.gz --requests-a 5000 --requests-b 60000"
)]
pub struct ProfileArgs {
    /// Profile: a file, or an address such as http://localhost:6060/debug/pprof
    #[arg(value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub source: Option<String>,
    /// Length of the profile in seconds, if the profile comes from an address [default: 30 for a
    /// CPU profile]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: Option<u32>,
    /// Allow fetching a profile from an address that is neither loopback nor private
    #[arg(long)]
    pub allow_public: bool,
    /// Compare two profiles, each a file or an address, and show how much more B costs
    #[arg(long, num_args = 2, value_names = ["A", "B"], help_heading = "Difference",
          value_hint = ValueHint::FilePath)]
    pub diff: Vec<String>,
    /// Number of requests that the server completed during profile A, to compare costs per request
    #[arg(long, value_name = "N", requires = "diff", help_heading = "Difference")]
    pub requests_a: Option<u64>,
    /// Number of requests that the server completed during profile B, to compare costs per request
    #[arg(long, value_name = "N", requires = "diff", help_heading = "Difference")]
    pub requests_b: Option<u64>,
    /// The sample type of the profile: its name, such as alloc_space, or its number, from 0
    #[arg(long, value_name = "TYPE", help_heading = "Selection")]
    pub sample_index: Option<String>,
    /// Show only samples with a function or file that matches this pattern
    #[arg(long, value_name = "REGEX", help_heading = "Selection")]
    pub focus: Option<String>,
    /// Skip samples with a function or file that matches this pattern
    #[arg(long, value_name = "REGEX", help_heading = "Selection")]
    pub ignore: Option<String>,
    /// Split costs by a label of the profile such as endpoint, or by the first function from the
    /// root that matches this pattern
    #[arg(long, value_name = "LABEL|REGEX", help_heading = "Selection")]
    pub by: Option<String>,
    /// Maximum number of rows of the table [default: as many as fit on a screen; all with --json]
    #[arg(long, value_name = "N", num_args = 0..=1, help_heading = "Output")]
    pub top: Option<Option<String>>,
    /// Order of the rows: by cost without callees (flat) or with callees (cum) [default: cum; flat
    /// with --diff]
    #[arg(long, value_name = "COLUMN", help_heading = "Output",
          value_parser = KnownWords::for_text_value(&["flat", "cum"]), hide_possible_values = true)]
    pub sort: Option<String>,
    /// Write a flame graph (.html or .svg), or save the profile itself (.pb.gz); repeatable
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Vec<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "plimsoll diff compares two searches for the load line, or two sweeps, single loads or .dat files.\n\
    Each line of a .dat file has concurrency, requests/s, mean response time (ms) and success rate (%).\n\n\
    Examples:\n  plimsoll diff before.dat after.dat\n  plimsoll diff find-before.plimsoll find-after.plimsoll\n  \
    plimsoll diff @2 @latest"
)]
pub struct DiffArgs {
    /// Run A, the earlier run: a file, or a run of the store (@2, @main, @COMMIT, @KEY=VALUE)
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Run B, the later run: a file, or a run of the store, such as @latest
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// The folder of the runs that are named with @, such as @latest [default: $PLIMSOLL_STORE,
    /// else _output/plimsoll]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Folder for the charts of the comparison
    #[arg(long, value_name = "DIR", default_value = "_output/plimsoll",
          value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A page with charts, as one HTML file
    Html,
    /// A summary in Markdown for a pull request
    Md,
    /// Test cases in JUnit XML for a CI system
    Junit,
    /// The JSON documents that plimsoll commands print with --json
    Json,
    /// One chart
    Svg,
    /// One chart
    Png,
}

/// A chart of a run file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChartArg {
    /// Chart of a search: p99 at each offered rate, with the load line
    Line,
    /// Chart of a sweep: throughput and mean time to last byte at each number of users
    Throughput,
    /// Chart of a sweep: success rate at each number of users
    Success,
    /// Chart of a run: latency by percentile
    Percentiles,
    /// Chart of a run over time: rate, latency, errors and lag of the generator; of an overload
    /// test: offered rate and goodput
    Time,
    /// Chart of a run: latency over time as a heat map
    Heat,
    /// Chart of a comparison: the difference of B from A after each pair of loads, with its
    /// interval; for prove --ladder, each URL's goodput
    Blocks,
    /// Chart of an explanation: how measurements of the server change from a low load to a load
    /// past the load line
    Evidence,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll report find.plimsoll                    a page beside the file\n  \
    plimsoll report find.plimsoll --format md        a summary for a pull request\n  \
    plimsoll report find.plimsoll -o line.png        the picture of the load line\n  \
    plimsoll report run.plimsoll --chart heat --dark -o heat.svg\n  \
    plimsoll report sweep.plimsoll --slo 'p99<=50ms' -o junit.xml")]
pub struct ReportArgs {
    /// The run files to report on
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format of the report [default: from the file ending of -o, else html]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// Chart to draw as svg or png [default: line, throughput, blocks or time, by the kind of run]
    #[arg(long, value_name = "CHART")]
    pub chart: Option<ChartArg>,
    /// Draw the chart in colours for a dark background (pages follow the browser's setting)
    #[arg(long)]
    pub dark: bool,
    /// For the format junit, the SLO for each load of a run or sweep; each bound of the SLO becomes
    /// a test case
    #[arg(long, value_name = "SLO", default_value = "success>=99.9%, p99<=500ms")]
    pub slo: String,
    /// Output file [default: html beside the first run file, other formats to standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "plimsoll clean removes only run files with names of plimsoll's own (such as find-1795310187-22978.plimsoll), \
    with their pages, profiles and logs. Each study that writes to the folder also removes the runs beyond the latest 50, \
    and reports the removal.\n\n\
    Examples:\n  plimsoll clean --keep 10 --dry-run\n  plimsoll clean --keep 0"
)]
pub struct CleanArgs {
    /// Number of latest runs to keep [default: 50]
    #[arg(long, value_name = "N")]
    pub keep: Option<String>,
    /// Print the files to remove, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The folder with the run files to clean
    #[arg(long, value_name = "DIR", default_value = plimsoll_study::result_store::FOLDER,
          value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// The flags that say how to parse the lines of an access log.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Format of the log's lines: combined, common, caddy, traefik, envoy, alb, an nginx log_format
    /// ($...), an Apache LogFormat (%...) or an Envoy format (%...%) [default: detected]
    #[arg(long, value_name = "FORMAT", requires = "logs", help_heading = "Log",
          value_parser = KnownWords::for_text_value(&["combined", "common", "caddy", "traefik", "envoy", "alb", "gin", "uwsgi", "rails"]), hide_possible_values = true)]
    pub log_format: Option<String>,
    /// In a JSON log, the path of each field, such as time=.ts (fields: time, start, end, method,
    /// path, status, bytes, duration_ms, duration_s, duration_us, client, user_agent)
    #[arg(long, value_name = "NAME=.PATH,...", requires = "logs", help_heading = "Log")]
    pub field: Option<String>,
    /// Field that identifies a visitor: a path in JSON, a name in --log-format, or client [default:
    /// address and user agent]
    #[arg(long, value_name = "FIELD", requires = "logs", help_heading = "Log")]
    pub session: Option<String>,
    /// In paths, replace the parts that match this pattern by a placeholder, as plimsoll replaces
    /// ids, UUIDs, hashes and dates (repeatable)
    #[arg(long, value_name = "REGEX", requires = "logs", help_heading = "Log")]
    pub fold: Vec<String>,
    /// Fail at the first log line that does not parse
    #[arg(long, requires = "logs", help_heading = "Log")]
    pub strict: bool,
}

/// `plimsoll traffic`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll traffic access.log                     rates, endpoints, sessions\n  \
    plimsoll traffic *.gz access.log -o page.html   the same as a page\n  \
    plimsoll traffic - --json < access.log          the same as JSON\n  \
    plimsoll traffic app.log --field time=.ts,path=.url,duration_ms=.took\n  \
    plimsoll traffic access.log --log-format '$msec \"$request\" $status'\n\n\
    Text formats: combined, common, ingress-nginx, Traefik, Envoy, HAProxy, AWS load balancers,\n\
    gunicorn, uWSGI, Gin, Rails and other servers.\n\
    JSON: Caddy, Traefik, Envoy, or any with --field.\n\
    Files may be .gz or .zst; several files are merged by time, in bounded memory.")]
pub struct TrafficArgs {
    /// Access logs; - is standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
    /// Row limit of each table [default: as many as fit on a screen; 20 in a page]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub top: Option<usize>,
    /// Write a page with charts (.html)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// `plimsoll model`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll model access.log -o scenario.toml               a file of traffic, and its list of paths\n  \
    plimsoll model access.log -o scenario.toml --verify      compare the model with the log\n  \
    plimsoll model app.*.gz -o scenario.toml --target http://localhost:8080/ --verify --json\n\n\
    The model reproduces the mix of endpoints, the order and pauses of visits, the popularity of paths, \
    and the rate over time. With --verify, exit code 1 means that the model differs too much from the log.\n\
    `plimsoll replay scenario.toml` sends the traffic at the recorded rate.")]
pub struct ModelArgs {
    /// Access logs; - is standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Write the file of traffic here (.toml), and its lists of paths into a folder beside it
    #[arg(short, long, required = true, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
    /// Target of the requests [default: http://localhost/]
    #[arg(long, value_name = "URL", help_heading = "Model", value_hint = ValueHint::Url)]
    pub target: Option<String>,
    /// Compare the model's requests with the log
    #[arg(long, help_heading = "Model")]
    pub verify: bool,
    /// Use only requests that match this pattern, compared with text such as 'GET /path?query'
    /// (repeatable: one match suffices)
    #[arg(long, value_name = "REGEX", help_heading = "Model")]
    pub only: Vec<String>,
    /// Skip requests whose text, such as 'GET /path?query', matches this pattern (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Model")]
    pub skip: Vec<String>,
    /// Also use requests that can change data: every method except GET and HEAD
    #[arg(long, help_heading = "Model")]
    pub allow_unsafe: bool,
    /// Write the original parts of paths and queries, even if a part looks like a secret key
    #[arg(long, help_heading = "Model")]
    pub keep_keys: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Model")]
    pub seed: u64,
    #[command(flatten)]
    pub log: LogArgs,
    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The kind of a file to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportKind {
    /// A browser's recording (HAR)
    Har,
    /// A description of an API: OpenAPI 3 or 2 (Swagger), YAML or JSON
    Openapi,
    /// A Postman collection, version 2.0 or 2.1
    Postman,
    /// A test plan of JMeter
    Jmx,
}

/// `plimsoll import`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    plimsoll import har shop.har -o shop.toml\n  \
    plimsoll import openapi openapi.yaml > api.toml\n  \
    plimsoll import openapi http://localhost:8080/openapi.json -o api.toml\n  \
    plimsoll import postman shop.postman_collection.json -o shop.toml\n  \
    plimsoll import jmx plan.jmx -o plan.toml\n\n\
    plimsoll lists the parts that it cannot import on standard error. Read the new file of traffic, then check it:\n  \
    plimsoll check -f shop.toml")]
pub struct ImportArgs {
    /// Kind of the file to import
    #[arg(value_enum, value_name = "KIND")]
    pub kind: ImportKind,
    /// The file to import, or - for standard input; an API description may also be an http://
    /// address
    #[arg(value_name = "FILE|URL", value_hint = ValueHint::FilePath)]
    pub source: String,
    /// From a recording (har), import only the requests to this host [default: the host of the
    /// first request]
    #[arg(long, value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub host: Option<String>,
    /// Allow fetching an API description from an address that is neither loopback nor private
    #[arg(long)]
    pub allow_public: bool,
    /// Write the file of traffic here [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}
