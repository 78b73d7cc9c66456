//! The settings of an experiment ([`ExperimentSettings`]): all settings except the experiment's
//! question ([`crate::spec`]). The settings say how targets are reached, what is watched, which
//! result makes the command fail, and where results go.
//!
//! `ExperimentSettings<String>` contains every text in full, so plimsoll can execute the
//! experiment. `ExperimentSettings<RedactedText>` is the record of the settings in a run file, with
//! secrets redacted. Only [`ExperimentSettings::record`] converts complete settings, which contain
//! secrets, into their redacted record. [`ExperimentSettings::map_texts`] visits every text that
//! may contain a secret.
//!
//! Not here: which text is a secret ([`crate::redact`]), how redacted inputs are restored
//! ([`crate::completion`]), and command-line flags.

use crate::addresses::AddressRange;
use crate::failure::exit;
use crate::grpc::GrpcStatusSet;
use crate::injector::Spin;
use crate::redact::{self, RedactionLevel};
use crate::traffic::StatusSet;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// A text in a record, which may be redacted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RedactedText {
    /// The text, possibly shortened.
    pub text: String,
    /// Whether the text was shortened by redaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// The kind of a text that a record may redact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// The URL of a target, which may contain secrets in its user info, path or query.
    Url,
    /// A header field of requests.
    Header,
    /// A request body.
    Body,
    /// The path of the traffic file.
    Traffic,
    /// The path of the script file.
    Script,
    /// An argument of a script.
    Argument,
    /// The path of a replayed log.
    Log,
    /// The path of a unix socket.
    Unix,
    /// The path of the file with the certificates of trusted certificate authorities.
    Issuers,
    /// The path of the client certificate.
    Certificate,
    /// The path of the file with the client certificate's private key.
    Key,
    /// The path of a `.proto` file.
    Proto,
    /// The path of a folder for imports of `.proto` files.
    ProtoPath,
    /// The path of a descriptor set of gRPC messages.
    DescriptorSet,
    /// The path of the watched control group.
    Cgroup,
    /// The URL of the server's metrics endpoint.
    Metrics,
    /// The URL of the server's profile endpoint.
    Profiles,
    /// The URL of a server endpoint that does little work. During a diagnosis, plimsoll compares
    /// the target with the endpoint that does little work.
    Reference,
    /// A header field that identifies the load generator as another client.
    Identity,
    /// The command that changes a server setting.
    Vary,
    /// A second request body, which an intervention (an experiment during a diagnosis) sends: text,
    /// or `@` and a file.
    OtherBody,
    /// The command that starts build A.
    BuildA,
    /// The command that starts build B.
    BuildB,
    /// The command to run before each block (one load on each build).
    BeforeBlock,
    /// The command that builds a server from a revision.
    Build,
    /// The command that starts a built server.
    Start,
    /// An output path: the record contains the path, but a rerun does not need it.
    OutputPath,
}

impl TextKind {
    /// Redacts a text of this kind. If the result equals the text, nothing was redacted.
    pub fn redact_text(self, text: &str, how: RedactionLevel) -> String {
        match self {
            TextKind::Url | TextKind::Metrics | TextKind::Profiles | TextKind::Reference => {
                redact::redact_url(text, how)
            }
            TextKind::Traffic
            | TextKind::Script
            | TextKind::Log
            | TextKind::Unix
            | TextKind::Issuers
            | TextKind::Proto
            | TextKind::ProtoPath
            | TextKind::DescriptorSet
            | TextKind::Certificate
            | TextKind::Key
            | TextKind::Cgroup
            | TextKind::OutputPath => redact::redact_path(text),
            // The text is the path of a body file, because a literal body on the command line is
            // never recorded.
            TextKind::Body => redact::redact_path(text),
            TextKind::OtherBody => match text.strip_prefix('@') {
                Some(path) => format!("@{}", redact::redact_path(path)),
                None => format!("[{} bytes, sha256 {}]", text.len(), redact::short_digest(text.as_bytes())),
            },
            TextKind::BuildA | TextKind::BuildB if parse_git_revision(text).is_some() => text.to_owned(),
            TextKind::BuildA | TextKind::BuildB => redact::redact_command_to_program(text),
            TextKind::Build | TextKind::Start | TextKind::BeforeBlock | TextKind::Vary => {
                redact::redact_command_to_program(text)
            }
            TextKind::Argument => redact::redact_argument(text, how),
            TextKind::Header | TextKind::Identity => match text.split_once(": ") {
                Some((name, value)) => {
                    format!("{}: {}", redact::redact_word(name), redact::redact_header_value(name, value, how))
                }
                None => redact::REDACTED.to_owned(),
            },
        }
    }

    /// Returns the command-line flag that gives the text to a rerun. Arguments of a script follow
    /// at the end of the command line, so their flag is empty.
    pub fn flag(self) -> &'static str {
        match self {
            TextKind::Url => "url",
            TextKind::Header => "header",
            TextKind::Body => "body",
            TextKind::Traffic => "file",
            TextKind::Script => "lua",
            TextKind::Argument => "",
            TextKind::Log => "log",
            TextKind::Unix => "unix",
            TextKind::Issuers => "cacert",
            TextKind::Certificate => "cert",
            TextKind::Key => "key",
            TextKind::Proto => "proto",
            TextKind::ProtoPath => "proto-path",
            TextKind::DescriptorSet => "descriptor-set",
            TextKind::Cgroup => "cgroup",
            TextKind::Metrics => "metrics",
            TextKind::Profiles => "pprof",
            TextKind::Reference => "reference",
            TextKind::Identity => "identity",
            TextKind::Vary => "vary",
            TextKind::OtherBody => "other-body",
            TextKind::BuildA => "a",
            TextKind::BuildB => "b",
            TextKind::BeforeBlock => "before-block",
            TextKind::Build => "build",
            TextKind::Start => "start",
            TextKind::OutputPath => "output",
        }
    }

    /// Returns whether the text is a shell command.
    pub fn is_command(self) -> bool {
        use TextKind::{BeforeBlock, Build, BuildA, BuildB, Start, Vary};
        matches!(self, BuildA | BuildB | BeforeBlock | Build | Start | Vary)
    }
}

/// The settings of an experiment: all except the experiment's question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentSettings<T> {
    /// Whether the target is plimsoll's demo server.
    #[serde(default)]
    pub demo: bool,
    /// Whether the demo only searches for the load line (`demo --quick`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo_quick: bool,
    /// The properties by which a rerun identifies each target, in the order of the targets.
    pub targets: Vec<TargetSettings>,
    /// Which texts are redacted in records and reports.
    #[serde(default)]
    pub redact: RedactionLevel,
    /// Whether load may go to addresses that are neither loopback nor private.
    pub public: bool,
    /// Whether each target gets one preflight request, which checks that the target responds.
    pub preflight: bool,
    /// Traffic from a file, with its options; `None` means that the traffic has another source.
    pub mix: Option<TrafficFileSettings<T>>,
    /// Traffic from a script, with its options; `None` means that the traffic has another source.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptSettings<T>>,
    /// Traffic from logs, with the options of the replay; `None` means that the traffic has another
    /// source.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplaySettings<T>>,
    /// The source of the request body.
    pub body: Option<BodySource<T>>,
    /// The source of gRPC message types; `None` means that the server's reflection service is the
    /// source.
    pub schema: Option<SchemaSettings<T>>,
    /// Host and port to connect to, in place of the host and port of the URL.
    pub connect_to: Option<(String, u16)>,
    /// The file with the certificates of trusted certificate authorities; `None` means the
    /// authorities that the system trusts.
    pub issuers: Option<T>,
    /// The file of the client certificate.
    pub certificate: Option<T>,
    /// The file of the certificate's key; `None` means that the certificate's file contains the
    /// key.
    pub key: Option<T>,
    /// The maximum number of concurrent connections; `None` means the default, adapted to the
    /// machine.
    pub connections_max: Option<u32>,
    /// The workers and local addresses with which plimsoll's own machine generates its load.
    pub injector: InjectorSettings,
    /// The fleet: other machines that generate the load in place of plimsoll's own machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetSettings>,
    /// The process, metrics and control group of the server that plimsoll watches.
    pub probes: ProbesSettings<T>,
    /// Profiles to take after the measurement.
    pub profiles: Option<ProfilesSettings<T>>,
    /// Which interventions (experiments during a diagnosis) may run to distinguish causes.
    #[serde(default, rename = "changes")]
    pub interventions: InterventionSettings<T>,
    /// How builds under test are started.
    pub builds: BuildsSettings<T>,
    /// The condition (`--fail-if`) under which the command fails.
    pub fail_if: Option<String>,
    /// Whether an undecided gate (a `--fail-if` condition without a clear answer) passes or fails.
    /// `None` means that an undecided gate has an exit code of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_inconclusive: Option<OnInconclusive>,
    /// Where results are written, and in which form.
    pub output: OutputSettings<T>,
}

/// Whether an undecided gate (a `--fail-if` condition without a clear answer) passes or fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInconclusive {
    /// The gate passes.
    Pass,
    /// The gate fails.
    Fail,
}

impl OnInconclusive {
    /// Returns the exit code for a `--fail-if` condition without a clear answer.
    pub fn exit_code(chosen: Option<OnInconclusive>) -> u8 {
        match chosen {
            Some(OnInconclusive::Pass) => exit::SUCCESS,
            Some(OnInconclusive::Fail) => exit::NEGATIVE_RESULT,
            None => exit::NO_CONCLUSION,
        }
    }
}

/// The properties by which a rerun identifies a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetSettings {
    /// A number that identifies the target's requests: targets whose requests are equal, including
    /// secrets, have equal numbers.
    pub number: u32,
    /// Whether the URL has user and password, which become the `Authorization` field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_info: bool,
}

/// Traffic from a file, and defaults for the requests in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficFileSettings<T> {
    /// The path of the traffic file.
    pub file: T,
    /// Base URLs of the targets; an empty list means that the file has the base URL.
    pub bases: Vec<T>,
    /// Header fields (`Name: value`) for requests without a field of that name.
    pub headers: Vec<T>,
    /// The statuses that count as success, for requests without statuses of their own.
    pub ok_status: StatusSet,
    /// The gRPC statuses that count as success, for calls without statuses of their own; `None`
    /// means `OK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_grpc: Option<GrpcStatusSet>,
    /// Whether a call sends each message of a stream only after the response to the previous
    /// message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// Timeout of requests that have no timeout of their own, ns.
    pub timeout_ns: u64,
}

/// A script that describes traffic, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptSettings<T> {
    /// The path of the script.
    pub file: T,
    /// The digest of the script's text ([`redact::short_digest`]), which shows whether the script
    /// has changed. A changed script describes another load.
    pub digest: String,
    /// The arguments of the script after the URL, in order.
    pub args: Vec<T>,
}

/// The files of gRPC message types.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaSettings<T> {
    /// The paths of `.proto` files.
    pub protos: Vec<T>,
    /// The folders in which imports of `.proto` files are searched.
    pub proto_paths: Vec<T>,
    /// A compiled descriptor set, in place of `.proto` files.
    pub descriptor_set: Option<T>,
}

/// Traffic from logs, and the options of the replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySettings<T> {
    /// The paths of the logs.
    pub logs: Vec<T>,
    /// The base URL of the target.
    pub target: T,
    /// Header fields (`Name: value`) for every request.
    pub headers: Vec<T>,
    /// The statuses that count as success.
    pub ok_status: StatusSet,
    /// The timeout of a request, ns.
    pub timeout_ns: u64,
    /// How lines of the log are parsed.
    pub reading: LogReadingSettings,
    /// Replay speed relative to the log, in thousandths.
    pub speed_milli: u64,
    /// Number of visitors relative to the log, in thousandths.
    pub scale_milli: u64,
    /// Patterns of requests to replay; an empty list means all requests.
    pub only: Vec<String>,
    /// Patterns of requests to skip.
    pub skip: Vec<String>,
    /// Whether requests with unsafe methods are sent.
    pub with_unsafe: bool,
    /// Length of the beginning of the log that is replayed, in ns of load time; `None` means that
    /// the whole log is replayed.
    pub length_ns: Option<u64>,
    /// Whether plimsoll samples sessions of the log to generate loads of any rate, instead of a
    /// replay at the logged times.
    #[serde(rename = "drawn", default, skip_serializing_if = "std::ops::Not::not")]
    pub draws_sessions: bool,
}

/// How lines of a log are parsed: the values of the flags, as the user typed them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogReadingSettings {
    /// The format of the log; `None` means that plimsoll detects the format.
    pub log_format: Option<String>,
    /// The paths of fields in JSON lines, such as `time=.ts`; `None` means the usual paths.
    pub field: Option<String>,
    /// The field that identifies visitors; `None` means address and user agent.
    pub session: Option<String>,
    /// Path patterns, in addition to the detected patterns, whose paths count as one route.
    pub fold: Vec<String>,
    /// Whether an unreadable line is an error.
    pub strict: bool,
}

/// The source of a request body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodySource<T> {
    /// A literal text on the command line.
    Text,
    /// Standard input, which can be read only once.
    #[serde(rename = "input")]
    Stdin,
    /// A file with the given path.
    File(T),
}

/// How plimsoll's own machine generates its load, as the user requested.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InjectorSettings {
    /// Number of worker threads; `None` means that plimsoll chooses the number for the machine.
    pub workers: Option<u32>,
    /// Whether idle workers poll for events instead of sleeping.
    pub spin: Spin,
    /// Local addresses from which connections are opened in turn; an empty list means that the
    /// operating system chooses the address.
    pub sources: Vec<AddressRange>,
}

/// What happens to a load when an agent (a machine of a fleet) is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentLossPolicy {
    /// The load continues with the remaining agents, which also share all later loads.
    #[default]
    #[serde(rename = "go")]
    Continue,
    /// The load and the whole study end.
    Stop,
}

/// A fleet: the machines that generate the load in place of plimsoll's own machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSettings {
    /// The URL of the fleet as given: `ssh://load1,load2`.
    #[serde(rename = "place")]
    pub url: String,
    /// Whether plimsoll copies its program to the machines for the study.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    /// What happens to a load when an agent (a machine of the fleet) is lost.
    #[serde(default)]
    pub on_loss: AgentLossPolicy,
    /// Largest accepted clock error of an agent, ns.
    pub skew_ns_max: u64,
    /// Which agents of a message bus to use, as a number or as names: `3` or `a1,a2`. `None` means
    /// all agents that are present on the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
    /// Longest wait for agents, ns; `None` means the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// Each agent's share of the load, as the user typed it: `2,1,1` or `a1=2,a2=1`. `None` means
    /// shares in proportion to the agents' measured capacities, or equal shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
}

/// Default for the largest accepted clock error of an agent, ns.
pub const CLOCK_ERROR_NS_MAX_DEFAULT: u64 = 20_000_000;

/// The process, metrics and control group of the server that plimsoll watches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbesSettings<T> {
    /// Whether probes are off, so that plimsoll reads nothing about the server's processes.
    #[serde(default)]
    #[serde(rename = "none")]
    pub is_disabled: bool,
    /// The id of the process to watch. Without an id and a name, plimsoll watches the process that
    /// listens on the target's address.
    pub pid: Option<u32>,
    /// The name of the process to watch.
    pub process: Option<String>,
    /// The metrics endpoint of the server.
    pub metrics: Option<EndpointChoice<T>>,
    /// The control group to watch; `None` means the control group of the watched process.
    pub cgroup: Option<T>,
    /// The server's machine, which plimsoll watches through a login on that machine; `None` means
    /// that plimsoll watches from this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<RemoteWatchSettings>,
}

/// How plimsoll observes a server on another machine: by a process that runs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteWatchSettings {
    /// The URL of the server's machine as given: `ssh://server1`.
    #[serde(rename = "place")]
    pub url: String,
    /// Whether plimsoll copies its program to the server's machine for the study.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
}

/// The server's endpoint for metrics or for profiles: the target's default endpoint, or given URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointChoice<T> {
    /// The default endpoint of the target.
    ByTarget,
    /// The endpoint is at a given URL: one URL for all targets, or one URL for each target.
    At(Vec<T>),
}

/// The flag value that selects the target's default endpoint.
const AUTO_ENDPOINT_VALUE: &str = "auto";

impl EndpointChoice<String> {
    /// Parses the value of an endpoint flag. If `allows_two_urls` is true, a comma may separate two
    /// URLs.
    pub fn parse(place: &str, allows_two_urls: bool) -> EndpointChoice<String> {
        match place {
            AUTO_ENDPOINT_VALUE => EndpointChoice::ByTarget,
            place if allows_two_urls => EndpointChoice::At(split_url_pair(place)),
            place => EndpointChoice::At(vec![place.to_owned()]),
        }
    }
}

/// Splits a text with two URLs at the comma between the URLs. A comma inside a URL does not split
/// the text, so a text with a single URL is returned whole.
fn split_url_pair(text: &str) -> Vec<String> {
    let is_url = |part: &str| part.starts_with("localhost") || part.contains([':', '/', '.']);
    let with_scheme = text.find(",http://").or_else(|| text.find(",https://"));
    let comma = with_scheme.or_else(|| text.find(',').filter(|at| is_url(&text[at + 1..])));
    match comma {
        Some(at) => vec![text[..at].to_owned(), text[at + 1..].to_owned()],
        None => vec![text.to_owned()],
    }
}

/// Profiles to take after the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilesSettings<T> {
    /// The profile endpoint.
    #[serde(rename = "served")]
    pub endpoint: EndpointChoice<T>,
    /// Length of a CPU profile, s.
    pub seconds: u32,
}

/// Declares a struct of settings, in which each field is one command-line flag.
/// From the fields, the macro derives the redaction of the settings in a record and the
/// command-line flags for a rerun.
///
/// A `switch` is a flag without a value, and `words` are flag values that need no redaction. A
/// `text` (one value) or `texts` (several values) is redacted by the rule of its [`TextKind`].
macro_rules! flag_settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<T> {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty = $form:ident($flag:tt),)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name<T> {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl<T> Default for $name<T> {
            fn default() -> Self {
                $name { $($field: Default::default(),)* }
            }
        }

        impl<T> $name<T> {
            /// Converts every text that may contain a secret, by calling `each` (see
            /// [`ExperimentSettings::map_texts`]).
            fn map<U, E>(&self, each: &mut impl FnMut(TextKind, &T) -> Result<U, E>) -> Result<$name<U>, E> {
                Ok($name { $($field: flag_settings!(@map $form $flag each, self.$field),)* })
            }
        }

        impl $name<RedactedText> {
            /// Returns the command-line flags that express the recorded settings, in order. Each
            /// flag has its name and an optional value.
            pub fn flags(&self) -> Vec<(&'static str, Option<&str>)> {
                let mut flags = Vec::new();
                $(flag_settings!(@flags $form $flag flags, self.$field);)*
                flags
            }
        }
    };
    (@map switch $flag:tt $each:ident, $field:expr) => { $field };
    (@map words $flag:tt $each:ident, $field:expr) => { $field.clone() };
    (@map text $kind:tt $each:ident, $field:expr) => { map_optional_text($each, TextKind::$kind, &$field)? };
    (@map texts $kind:tt $each:ident, $field:expr) => {
        $field.iter().map(|text| $each(TextKind::$kind, text)).collect::<Result<_, E>>()?
    };
    (@flags switch $flag:tt $flags:ident, $field:expr) => { $flags.extend($field.then_some(($flag, None))) };
    (@flags words $flag:tt $flags:ident, $field:expr) => {
        $flags.extend($field.iter().map(|word| ($flag, Some(word.as_str()))))
    };
    (@flags text $kind:tt $flags:ident, $field:expr) => {
        $flags.extend($field.iter().map(|text| (TextKind::$kind.flag(), Some(text.text.as_str()))))
    };
    (@flags texts $kind:tt $flags:ident, $field:expr) => { flag_settings!(@flags text $kind $flags, $field) };
}

flag_settings! {
    /// Which interventions (experiments during a diagnosis) may run to distinguish causes, and
    /// which inputs the interventions need.
    pub struct InterventionSettings<T> {
        /// Whether all interventions are forbidden, so that no request is repeated in a changed
        /// form.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub none: bool = switch("no-intervene"),
        /// The URL of an endpoint of the same server that does little work. `None` means that
        /// plimsoll requests a path that the server does not have.
        pub reference: Option<T> = text(Reference),
        /// Header fields (`Name: value`), each of which identifies a different client of the
        /// server.
        #[serde(default = "Vec::new")]
        pub identities: Vec<T> = texts(Identity),
        /// An alternative body for requests that have a body: a text, or `@` and the path of a
        /// file.
        #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
        pub other_body: Option<T> = text(OtherBody),
        /// Downstream processes that an intervention may stop for short times, by name or number.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub may_signal: Vec<String> = words("may-signal"),
        /// The command that changes a server setting, with a placeholder for the value.
        #[serde(default = "Option::default")]
        pub vary: Option<T> = text(Vary),
    }
}

/// Longest accepted name of a git revision, in characters.
const REVISION_CHARS_MAX: usize = 200;

/// Returns the revision of a build that is given as `git:REV`. `None` means that the build is given
/// as a command, or that the revision is refused. A revision is refused if git could read its name
/// as a flag, or if the name is too long or has unusual characters.
pub fn parse_git_revision(side: &str) -> Option<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_./@^~{}+#".contains(c);
    let name = side.strip_prefix("git:")?;
    let is_name = !name.is_empty() && name.len() <= REVISION_CHARS_MAX && !name.starts_with('-');
    (is_name && name.chars().all(is_of_name)).then_some(name)
}

/// How builds under test are started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildsSettings<T> {
    /// The command that starts build A, or its revision (`git:REV`).
    pub a: Option<T>,
    /// The command that starts build B, or its revision (`git:REV`).
    pub b: Option<T>,
    /// The command that builds a server from a revision.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub build: Option<T>,
    /// The command that starts a built server, with a placeholder for its port.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub start: Option<T>,
    /// A command to run before each block (one load on each build).
    pub before_block: Option<T>,
    /// Longest time from the start of a build to its first response, ns.
    pub start_ns_max: u64,
    /// Whether records and reports contain the commands in full.
    pub record_commands: bool,
}

/// Where results go, and what progress is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSettings<T> {
    /// Whether the result is a JSON document in place of text.
    pub json: bool,
    /// Whether the output is JSON lines: one line for each event, and the result as the last line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json_lines: bool,
    /// Whether the text report shows all figures, not only the first screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verbose: bool,
    /// Whether progress is hidden.
    pub quiet: bool,
    /// The path of the run file.
    pub file: Option<T>,
    /// Folder and base name of several result files.
    pub files: Option<(T, T)>,
    /// The folder for run files whose path the user does not give; `None` means the default folder.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub store: Option<T>,
    /// Tags of the run: `key` and `value`. A tag that looks like a secret is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
}

impl<T> Default for OutputSettings<T> {
    /// Returns the default output settings: a text report, visible progress, and no output path.
    fn default() -> Self {
        OutputSettings {
            json: false,
            json_lines: false,
            verbose: false,
            quiet: false,
            file: None,
            files: None,
            store: None,
            tags: Vec::new(),
        }
    }
}

impl<T> OutputSettings<T> {
    /// Returns whether the result is output as text, not as JSON.
    pub fn is_text_output(&self) -> bool {
        !self.json && !self.json_lines
    }

    /// Returns the output settings without paths, so that a repetition of the study overwrites no
    /// file.
    pub fn without_paths<U>(&self) -> OutputSettings<U> {
        OutputSettings {
            json: self.json,
            json_lines: self.json_lines,
            verbose: self.verbose,
            quiet: self.quiet,
            tags: self.tags.clone(),
            ..OutputSettings::default()
        }
    }

    /// Converts every path, by calling `each` (see [`ExperimentSettings::map_texts`]).
    fn map<U, E>(&self, each: &mut impl FnMut(TextKind, &T) -> Result<U, E>) -> Result<OutputSettings<U>, E> {
        Ok(OutputSettings {
            file: map_optional_text(each, TextKind::OutputPath, &self.file)?,
            files: match &self.files {
                Some((folder, name)) => Some((each(TextKind::OutputPath, folder)?, each(TextKind::OutputPath, name)?)),
                None => None,
            },
            store: map_optional_text(each, TextKind::OutputPath, &self.store)?,
            ..self.without_paths()
        })
    }
}

impl OutputSettings<RedactedText> {
    /// Returns the command-line flags that express the recorded settings, in order. Each flag has
    /// its name and an optional value.
    pub fn flags(&self) -> Vec<(&'static str, Option<String>)> {
        let path = |text: &RedactedText| Some(text.text.clone());
        let mut flags = Vec::new();
        flags.extend(self.file.iter().map(|file| ("output", path(file))));
        flags.extend(self.files.iter().flat_map(|(folder, name)| [("dir", path(folder)), ("name", path(name))]));
        flags.extend(self.store.iter().map(|store| ("store", path(store))));
        flags.extend(self.tags.iter().map(|(key, value)| ("tag", Some(format!("{key}={value}")))));
        let switches =
            [("json", self.json), ("json-lines", self.json_lines), ("verbose", self.verbose), ("quiet", self.quiet)];
        flags.extend(switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (name, None)));
        flags
    }
}

/// Default for the longest time from the start of a build to its first response, ns.
pub const BUILD_START_NS_MAX_DEFAULT: u64 = 30_000_000_000;

impl<T> Default for BuildsSettings<T> {
    fn default() -> Self {
        BuildsSettings {
            a: None,
            b: None,
            build: None,
            start: None,
            before_block: None,
            start_ns_max: BUILD_START_NS_MAX_DEFAULT,
            record_commands: false,
        }
    }
}

impl<T> Default for ExperimentSettings<T> {
    /// Returns the settings of a study with one target, all with their default values.
    fn default() -> Self {
        ExperimentSettings {
            demo: false,
            demo_quick: false,
            targets: vec![TargetSettings::default()],
            redact: RedactionLevel::Secrets,
            public: false,
            preflight: true,
            mix: None,
            script: None,
            replay: None,
            body: None,
            schema: None,
            connect_to: None,
            issuers: None,
            certificate: None,
            key: None,
            connections_max: None,
            injector: InjectorSettings::default(),
            fleet: None,
            probes: ProbesSettings {
                is_disabled: false,
                pid: None,
                process: None,
                metrics: None,
                cgroup: None,
                watch: None,
            },
            profiles: None,
            interventions: InterventionSettings::default(),
            builds: BuildsSettings::default(),
            fail_if: None,
            on_inconclusive: None,
            output: OutputSettings::default(),
        }
    }
}

impl<T> ExperimentSettings<T> {
    /// Applies `each` to every text that may contain a secret. The function `each` gets the kind of
    /// the text and the text.
    pub fn map_texts<U, E>(
        &self,
        mut each: impl FnMut(TextKind, &T) -> Result<U, E>,
    ) -> Result<ExperimentSettings<U>, E> {
        let each = &mut each;
        Ok(ExperimentSettings {
            demo: self.demo,
            demo_quick: self.demo_quick,
            targets: self.targets.clone(),
            redact: self.redact,
            public: self.public,
            preflight: self.preflight,
            mix: match &self.mix {
                None => None,
                Some(TrafficFileSettings { file, bases, headers, ok_status, ok_grpc, in_turn, timeout_ns }) => {
                    Some(TrafficFileSettings {
                        file: each(TextKind::Traffic, file)?,
                        bases: bases.iter().map(|base| each(TextKind::Url, base)).collect::<Result<_, E>>()?,
                        headers: headers
                            .iter()
                            .map(|header| each(TextKind::Header, header))
                            .collect::<Result<_, E>>()?,
                        ok_status: ok_status.clone(),
                        ok_grpc: *ok_grpc,
                        in_turn: *in_turn,
                        timeout_ns: *timeout_ns,
                    })
                }
            },
            script: match &self.script {
                None => None,
                Some(ScriptSettings { file, digest, args }) => Some(ScriptSettings {
                    file: each(TextKind::Script, file)?,
                    digest: digest.clone(),
                    args: args.iter().map(|arg| each(TextKind::Argument, arg)).collect::<Result<_, E>>()?,
                }),
            },
            replay: match &self.replay {
                None => None,
                Some(replay) => Some(ReplaySettings {
                    logs: replay.logs.iter().map(|log| each(TextKind::Log, log)).collect::<Result<_, E>>()?,
                    target: each(TextKind::Url, &replay.target)?,
                    headers: replay.headers.iter().map(|it| each(TextKind::Header, it)).collect::<Result<_, E>>()?,
                    ok_status: replay.ok_status.clone(),
                    timeout_ns: replay.timeout_ns,
                    reading: replay.reading.clone(),
                    speed_milli: replay.speed_milli,
                    scale_milli: replay.scale_milli,
                    only: replay.only.clone(),
                    skip: replay.skip.clone(),
                    with_unsafe: replay.with_unsafe,
                    length_ns: replay.length_ns,
                    draws_sessions: replay.draws_sessions,
                }),
            },
            body: match &self.body {
                None => None,
                Some(BodySource::Text) => Some(BodySource::Text),
                Some(BodySource::Stdin) => Some(BodySource::Stdin),
                Some(BodySource::File(path)) => Some(BodySource::File(each(TextKind::Body, path)?)),
            },
            schema: match &self.schema {
                None => None,
                Some(SchemaSettings { protos, proto_paths, descriptor_set }) => Some(SchemaSettings {
                    protos: protos.iter().map(|file| each(TextKind::Proto, file)).collect::<Result<_, E>>()?,
                    proto_paths: proto_paths
                        .iter()
                        .map(|it| each(TextKind::ProtoPath, it))
                        .collect::<Result<_, E>>()?,
                    descriptor_set: map_optional_text(each, TextKind::DescriptorSet, descriptor_set)?,
                }),
            },
            connect_to: self.connect_to.clone(),
            issuers: map_optional_text(each, TextKind::Issuers, &self.issuers)?,
            certificate: map_optional_text(each, TextKind::Certificate, &self.certificate)?,
            key: map_optional_text(each, TextKind::Key, &self.key)?,
            connections_max: self.connections_max,
            injector: self.injector.clone(),
            fleet: self.fleet.clone(),
            probes: ProbesSettings {
                is_disabled: self.probes.is_disabled,
                pid: self.probes.pid,
                process: self.probes.process.clone(),
                metrics: match &self.probes.metrics {
                    Some(metrics) => Some(map_endpoint(each, TextKind::Metrics, metrics)?),
                    None => None,
                },
                cgroup: map_optional_text(each, TextKind::Cgroup, &self.probes.cgroup)?,
                watch: self.probes.watch.clone(),
            },
            profiles: match &self.profiles {
                Some(ProfilesSettings { endpoint: at, seconds }) => {
                    Some(ProfilesSettings { endpoint: map_endpoint(each, TextKind::Profiles, at)?, seconds: *seconds })
                }
                None => None,
            },
            interventions: self.interventions.map(each)?,
            builds: BuildsSettings {
                a: map_optional_text(each, TextKind::BuildA, &self.builds.a)?,
                b: map_optional_text(each, TextKind::BuildB, &self.builds.b)?,
                build: map_optional_text(each, TextKind::Build, &self.builds.build)?,
                start: map_optional_text(each, TextKind::Start, &self.builds.start)?,
                before_block: map_optional_text(each, TextKind::BeforeBlock, &self.builds.before_block)?,
                start_ns_max: self.builds.start_ns_max,
                record_commands: self.builds.record_commands,
            },
            fail_if: self.fail_if.clone(),
            on_inconclusive: self.on_inconclusive,
            output: self.output.map(each)?,
        })
    }
}

fn map_optional_text<T, U, E>(
    each: &mut impl FnMut(TextKind, &T) -> Result<U, E>,
    kind: TextKind,
    text: &Option<T>,
) -> Result<Option<U>, E> {
    text.as_ref().map(|text| each(kind, text)).transpose()
}

fn map_endpoint<T, U, E>(
    each: &mut impl FnMut(TextKind, &T) -> Result<U, E>,
    kind: TextKind,
    at: &EndpointChoice<T>,
) -> Result<EndpointChoice<U>, E> {
    Ok(match at {
        EndpointChoice::ByTarget => EndpointChoice::ByTarget,
        EndpointChoice::At(urls) => {
            EndpointChoice::At(urls.iter().map(|url| each(kind, url)).collect::<Result<_, E>>()?)
        }
    })
}

impl ExperimentSettings<String> {
    /// Creates the record of the settings for a run file, in which secret texts are redacted.
    pub fn record(&self) -> ExperimentSettings<RedactedText> {
        let mapped = self.map_texts(|kind, text| {
            let kept = match kind.is_command() && self.builds.record_commands {
                true => text.clone(),
                false => kind.redact_text(text, self.redact),
            };
            Ok::<_, Infallible>(RedactedText { withheld: kept != *text, text: kept })
        });
        match mapped {
            Ok(settings) => settings,
        }
    }
}
