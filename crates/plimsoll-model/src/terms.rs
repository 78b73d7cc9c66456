//! On what terms a question is put ([`Terms`]): all that decides an experiment besides what it asks
//! ([`crate::spec`]), from how its targets are reached and what is watched meanwhile to what its
//! outcome is held against and where it goes.
//!
//! `Terms<String>` is complete, and can be carried out; `Terms<Redacted>` is what a run file holds.
//! One is made of the other in one place ([`Terms::record`]), and [`Terms::map`] names every text
//! in which a secret could stand.
//!
//! Not here: which text is a secret ([`crate::redact`]), how what was left out is given again
//! ([`crate::completion`]), flags.

use crate::addresses::AddressRange;
use crate::failure::exit;
use crate::grpc::GrpcStatusSet;
use crate::injector::Spin;
use crate::redact::{self, Redact};
use crate::traffic::StatusSet;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

/// A text as a record has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RedactedText {
    /// What is kept of it.
    pub text: String,
    /// Whether something was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// What may be left out of a record, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// The URL of a target: user, path or query.
    Url,
    /// A header field.
    Header,
    /// A body.
    Body,
    /// The file that says what is asked.
    Traffic,
    /// The script that says what is asked.
    Script,
    /// A word that a script is given.
    Argument,
    /// A log that is replayed.
    Log,
    /// The unix socket.
    Unix,
    /// The file of the issuers to trust.
    Issuers,
    /// The file of our own certificate.
    Certificate,
    /// The file of its key.
    Key,
    /// A file in which gRPC's messages are described.
    Proto,
    /// A folder in which imports of such files are looked for.
    ProtoPath,
    /// The set of descriptors of gRPC's messages.
    DescriptorSet,
    /// The control group that is watched.
    Cgroup,
    /// Where the server tells of itself.
    Metrics,
    /// Where profiles are served.
    Profiles,
    /// A path of the server that does little.
    Reference,
    /// A header field by which another client names itself.
    Identity,
    /// The command that changes a setting of the server's.
    Vary,
    /// Another body for the requests that have one: text, or `@` and a file.
    OtherBody,
    /// The command that starts build A.
    BuildA,
    /// The command that starts build B.
    BuildB,
    /// The command before each block.
    BeforeBlock,
    /// The command that makes a server of a revision's sources.
    Build,
    /// The command that starts a server made of a revision.
    Start,
    /// Where results go: recorded, and never asked for.
    Place,
}

impl TextKind {
    /// What a record has of such a text. The same text means that it has all of it.
    pub fn redact_text(self, text: &str, how: Redact) -> String {
        match self {
            TextKind::Url | TextKind::Metrics | TextKind::Profiles | TextKind::Reference => redact::url(text, how),
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
            | TextKind::Place => redact::path(text),
            // A file; what was written out is never kept.
            TextKind::Body => redact::path(text),
            TextKind::OtherBody => match text.strip_prefix('@') {
                Some(path) => format!("@{}", redact::path(path)),
                None => format!("[{} bytes, sha256 {}]", text.len(), redact::digest(text.as_bytes())),
            },
            TextKind::BuildA | TextKind::BuildB if revision(text).is_some() => text.to_owned(),
            TextKind::BuildA | TextKind::BuildB => redact::command(text),
            TextKind::Build | TextKind::Start | TextKind::BeforeBlock | TextKind::Vary => redact::command(text),
            TextKind::Argument => redact::argument(text, how),
            TextKind::Header | TextKind::Identity => match text.split_once(": ") {
                Some((name, value)) => format!("{}: {}", redact::word(name), redact::header_value(name, value, how)),
                None => redact::REDACTED.to_owned(),
            },
        }
    }

    /// The name of the flag under which it is given again; empty for words of a script, which stand
    /// at the end.
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
            TextKind::Place => "output",
        }
    }

    /// Whether it is a command for the shell.
    pub fn is_command(self) -> bool {
        use TextKind::{BeforeBlock, Build, BuildA, BuildB, Start, Vary};
        matches!(self, BuildA | BuildB | BeforeBlock | Build | Start | Vary)
    }
}

/// All that decides an experiment besides what it asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms<T> {
    /// The target is a server of plimsoll's own, started for the purpose.
    #[serde(default)]
    pub demo: bool,
    /// A demo of the search alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub demo_quick: bool,
    /// How each target is named, in order.
    pub targets: Vec<TargetTerms>,
    /// How much is left out of records and reports.
    #[serde(default)]
    pub redact: Redact,
    /// Whether load may go to addresses that are neither loopback nor private.
    pub public: bool,
    /// Whether a target is asked once first.
    pub preflight: bool,
    /// What is asked stands in a file.
    pub mix: Option<MixTerms<T>>,
    /// A script says what is asked.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptTerms<T>>,
    /// What is asked stands in logs.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayTerms<T>>,
    /// Where the body of the requests is from.
    pub body: Option<BodyFrom<T>>,
    /// Where the types of gRPC's messages are described; `None`: the server is asked.
    pub schema: Option<SchemaTerms<T>>,
    /// Connections go to this host and port, not to the URL's.
    pub connect_to: Option<(String, u16)>,
    /// The file of the issuers to trust; `None`: those of the system.
    pub issuers: Option<T>,
    /// The file of our own certificate.
    pub certificate: Option<T>,
    /// The file of its key; `None`: it is with the certificate.
    pub key: Option<T>,
    /// At most so many connections; `None`: as many as are usual, and fit the machine.
    pub connections_max: Option<u32>,
    /// How this machine makes the load.
    pub injector: InjectorTerms,
    /// The machines that make the load in place of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetTerms>,
    /// What is watched meanwhile.
    pub probes: ProbesTerms<T>,
    /// Profiles that are taken afterwards.
    pub profiles: Option<ProfilesTerms<T>>,
    /// What is changed to tell causes apart.
    #[serde(default)]
    pub changes: ChangeTerms<T>,
    /// How builds are started.
    pub builds: BuildsTerms<T>,
    /// The outcome that is a failure, as conditions are written.
    pub fail_if: Option<String>,
    /// What it means where nothing can be decided; `None`: it has an exit code of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_inconclusive: Option<OnInconclusive>,
    /// Where results go.
    pub output: OutputTerms<T>,
}

/// What a gate that cannot decide means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInconclusive {
    /// The gate passes.
    Pass,
    /// The gate fails.
    Fail,
}

impl OnInconclusive {
    /// The exit code where nothing could be decided.
    pub fn code(chosen: Option<OnInconclusive>) -> u8 {
        match chosen {
            Some(OnInconclusive::Pass) => exit::DONE,
            Some(OnInconclusive::Fail) => exit::CROSSED,
            None => exit::UNKNOWN,
        }
    }
}

/// How a target is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetTerms {
    /// Targets of one number are asked the same, secrets included.
    pub number: u32,
    /// The URL has a user and a password: the authorization that is sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_info: bool,
}

/// What is asked stands in a file; the rest is what it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixTerms<T> {
    /// The file.
    pub file: T,
    /// Where each target is asked: URLs; none: where the file says.
    pub bases: Vec<T>,
    /// Header fields (`Name: value`) for requests that have none of that name.
    pub headers: Vec<T>,
    /// What counts as success where a request does not say.
    pub ok_status: StatusSet,
    /// Which ends of gRPC calls do; `None`: `OK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_grpc: Option<GrpcStatusSet>,
    /// Messages of calls are sent when those before them were answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// A request that takes longer has failed, where it does not say, ns.
    pub timeout_ns: u64,
}

/// A script says what is asked of the URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptTerms<T> {
    /// The file.
    pub file: T,
    /// Of its text ([`redact::digest`]): another text is another load.
    pub digest: String,
    /// What it is given beside the URL, in order.
    pub args: Vec<T>,
}

/// The files in which gRPC's messages are described.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaTerms<T> {
    /// `.proto` files.
    pub protos: Vec<T>,
    /// Folders that imports are looked for in.
    pub proto_paths: Vec<T>,
    /// A set of descriptors that a compiler wrote, in place of these.
    pub descriptor_set: Option<T>,
}

/// What is asked stands in logs; the rest is what of them is asked, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayTerms<T> {
    /// The logs.
    pub logs: Vec<T>,
    /// Where it is asked: a URL.
    pub target: T,
    /// Header fields (`Name: value`) of every request.
    pub headers: Vec<T>,
    /// What counts as success.
    pub ok_status: StatusSet,
    /// A request that takes longer has failed, ns.
    pub timeout_ns: u64,
    /// How lines are written, as the command line says it.
    pub reading: LogReadingTerms,
    /// How much faster than then, in thousandths.
    pub speed_milli: u64,
    /// How many times the visitors of then, in thousandths.
    pub scale_milli: u64,
    /// Only what matches one of these is asked; none: everything.
    pub only: Vec<String>,
    /// What matches one of these is left out.
    pub skip: Vec<String>,
    /// Whether methods are asked that change things.
    pub with_unsafe: bool,
    /// Only so much of the beginning, ns of the load.
    pub length_ns: Option<u64>,
    /// Whether loads of any rate are drawn from its sessions, instead of one that is as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
}

/// How lines of a log are written, as the command line says it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogReadingTerms {
    /// The format.
    pub log_format: Option<String>,
    /// Where lines of JSON have what.
    pub field: Option<String>,
    /// What tells visitors apart.
    pub session: Option<String>,
    /// What is folded besides.
    pub fold: Vec<String>,
    /// Whether every line must be understood.
    pub strict: bool,
}

/// Where a body is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFrom<T> {
    /// It was written out.
    Text,
    /// Standard input, which is gone once it was read.
    Input,
    /// A file.
    File(T),
}

/// How this machine makes the load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InjectorTerms {
    /// Worker threads; `None`: as many as suit the machine.
    pub workers: Option<u32>,
    /// How they wait.
    pub spin: Spin,
    /// Local addresses, taken in turn; empty: the system chooses.
    pub sources: Vec<AddressRange>,
}

/// What happens to a load when one of its agents is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentLossPolicy {
    /// The load goes on with the others, and a study with other shares.
    #[default]
    Go,
    /// The load ends, and the study with it.
    Stop,
}

/// The machines that make the load in place of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTerms {
    /// How they are reached, as it was written: `ssh://load1,load2`.
    pub place: String,
    /// Whether this program is copied there for the time of the study.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    /// What happens when one is lost.
    #[serde(default)]
    pub on_loss: AgentLossPolicy,
    /// The most that a clock may be off, ns.
    pub skew_ns_max: u64,
    /// Which agents of a bus, as it was written: `3` or `a1,a2`; `None`: all that are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<String>,
    /// How long they are waited for, ns; `None`: the usual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// Their shares of the load, as it was written: `2,1,1` or `a1=2,a2=1`; `None`: in proportion
    /// to their calibration, or equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
}

/// The most that a clock may be off, where nothing else is said.
pub const SKEW_NS_MAX: u64 = 20_000_000;

/// What is watched while the load runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProbesTerms<T> {
    /// Nothing.
    #[serde(default)]
    pub none: bool,
    /// This process; without it and without a name, the one that listens on the target's address.
    pub pid: Option<u32>,
    /// The process of this name.
    pub process: Option<String>,
    /// What the server tells of itself.
    pub metrics: Option<EndpointChoice<T>>,
    /// This control group; `None`: that of the process.
    pub cgroup: Option<T>,
    /// The machine that the server runs on, which is logged in to; `None`: what this machine sees
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchTerms>,
}

/// A server that is watched on the machine that it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTerms {
    /// How that machine is reached, as it was written: `ssh://server1`.
    pub place: String,
    /// Whether this program is copied there for the time of the study.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
}

/// Where something is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointChoice<T> {
    /// On the target itself, at the usual place.
    ByTarget,
    /// There: one URL, or one for each target.
    At(Vec<T>),
}

/// The word that stands for the usual place.
const AUTO: &str = "auto";

impl EndpointChoice<String> {
    /// The place that a flag names. `two`: there may be a comma between two URLs.
    pub fn parse(place: &str, two: bool) -> EndpointChoice<String> {
        match place {
            AUTO => EndpointChoice::ByTarget,
            place if two => EndpointChoice::At(two_urls(place)),
            place => EndpointChoice::At(vec![place.to_owned()]),
        }
    }
}

/// Two URLs with a comma between them, or one. Other commas are part of a URL.
fn two_urls(text: &str) -> Vec<String> {
    let is_url = |part: &str| part.starts_with("localhost") || part.contains([':', '/', '.']);
    let with_scheme = text.find(",http://").or_else(|| text.find(",https://"));
    let comma = with_scheme.or_else(|| text.find(',').filter(|at| is_url(&text[at + 1..])));
    match comma {
        Some(at) => vec![text[..at].to_owned(), text[at + 1..].to_owned()],
        None => vec![text.to_owned()],
    }
}

/// Profiles that are taken after the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilesTerms<T> {
    /// Where they are served.
    pub served: EndpointChoice<T>,
    /// Length of a CPU profile, s.
    pub seconds: u32,
}

/// Declares terms of which each field is one flag. The redaction of a record and the words of a
/// command line both follow from the declaration.
///
/// A field is a `switch` or plain `words` under the name of a flag, or a `text` or several `texts`
/// of a [`TextKind`].
macro_rules! flag_terms {
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
            /// The same with other texts (see [`Terms::map`]).
            fn map<U, E>(&self, each: &mut impl FnMut(TextKind, &T) -> Result<U, E>) -> Result<$name<U>, E> {
                Ok($name { $($field: flag_terms!(@map $form $flag each, self.$field),)* })
            }
        }

        impl $name<RedactedText> {
            /// The flags that say this again, in order: each with its name, and its value if it
            /// has one.
            pub fn flags(&self) -> Vec<(&'static str, Option<&str>)> {
                let mut flags = Vec::new();
                $(flag_terms!(@flags $form $flag flags, self.$field);)*
                flags
            }
        }
    };
    (@map switch $flag:tt $each:ident, $field:expr) => { $field };
    (@map words $flag:tt $each:ident, $field:expr) => { $field.clone() };
    (@map text $kind:tt $each:ident, $field:expr) => { optional($each, TextKind::$kind, &$field)? };
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
    (@flags texts $kind:tt $flags:ident, $field:expr) => { flag_terms!(@flags text $kind $flags, $field) };
}

flag_terms! {
    /// What is changed to tell causes apart.
    pub struct ChangeTerms<T> {
        /// Nothing: a request may not be repeated as another.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub none: bool = switch("no-intervene"),
        /// The URL of a path of the same server that does little; `None`: one that it does not
        /// have.
        pub reference: Option<T> = text(Reference),
        /// Header fields (`Name: value`) by which other clients name themselves, one each.
        #[serde(default = "Vec::new")]
        pub identities: Vec<T> = texts(Identity),
        /// Another body for the requests that have one: text, or `@` and a file.
        #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
        pub other_body: Option<T> = text(OtherBody),
        /// Processes behind the server that may be stopped for moments, by name or number.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub may_signal: Vec<String> = words("may-signal"),
        /// The command that changes a setting of the server's, with a place for its value.
        #[serde(default = "Option::default")]
        pub vary: Option<T> = text(Vary),
    }
}

/// The longest name of a revision.
const REVISION_CHARS_MAX: usize = 200;

/// The revision of a side `git:REV`; `None`: the side is a command. A name that git could take for
/// a flag is none, nor is one with characters that no revision needs.
pub fn revision(side: &str) -> Option<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_./@^~{}+#".contains(c);
    let name = side.strip_prefix("git:")?;
    let is_name = !name.is_empty() && name.len() <= REVISION_CHARS_MAX && !name.starts_with('-');
    (is_name && name.chars().all(is_of_name)).then_some(name)
}

/// How builds under test are started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildsTerms<T> {
    /// The command that starts build A, or the revision it is made of (`git:REV`).
    pub a: Option<T>,
    /// The same of build B.
    pub b: Option<T>,
    /// The command that makes a server of a revision's sources.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub build: Option<T>,
    /// The command that starts such a server, with a place for its port.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub start: Option<T>,
    /// A command to be run before each block.
    pub before_block: Option<T>,
    /// How long a build may take until it answers, ns.
    pub start_ns_max: u64,
    /// Whether records and reports have the commands as they are.
    pub record_commands: bool,
}

/// Where results go, and what is said meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutputTerms<T> {
    /// One JSON document instead of text.
    pub json: bool,
    /// A line of JSON for each event of the study, the document being the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json_lines: bool,
    /// Text with all figures, not only the first screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verbose: bool,
    /// No progress is shown.
    pub quiet: bool,
    /// The run file.
    pub file: Option<T>,
    /// The folder and the name of several files.
    pub files: Option<(T, T)>,
    /// The folder of run files without a place of their own; `None`: the usual one.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub store: Option<T>,
    /// What the run is marked with: `key` and `value`. No secret stands there: a tag that looks
    /// like one is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
}

impl<T> OutputTerms<T> {
    /// Whether results are text.
    pub fn is_text(&self) -> bool {
        !self.json && !self.json_lines
    }
}

/// How long a build may take until it answers, where nothing else is said.
pub const START_NS_MAX: u64 = 30_000_000_000;

impl<T> Default for BuildsTerms<T> {
    fn default() -> Self {
        BuildsTerms {
            a: None,
            b: None,
            build: None,
            start: None,
            before_block: None,
            start_ns_max: START_NS_MAX,
            record_commands: false,
        }
    }
}

impl<T> Default for Terms<T> {
    /// One target, reached, watched and shown as usual.
    fn default() -> Self {
        Terms {
            demo: false,
            demo_quick: false,
            targets: vec![TargetTerms::default()],
            redact: Redact::Secrets,
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
            injector: InjectorTerms::default(),
            fleet: None,
            probes: ProbesTerms { none: false, pid: None, process: None, metrics: None, cgroup: None, watch: None },
            profiles: None,
            changes: ChangeTerms::default(),
            builds: BuildsTerms::default(),
            fail_if: None,
            on_inconclusive: None,
            output: OutputTerms {
                json: false,
                json_lines: false,
                verbose: false,
                quiet: false,
                file: None,
                files: None,
                store: None,
                tags: Vec::new(),
            },
        }
    }
}

impl<T> Terms<T> {
    /// The same with other texts: every one in which a secret could stand is given to `each`, with
    /// what it is.
    pub fn map<U, E>(&self, mut each: impl FnMut(TextKind, &T) -> Result<U, E>) -> Result<Terms<U>, E> {
        let each = &mut each;
        Ok(Terms {
            demo: self.demo,
            demo_quick: self.demo_quick,
            targets: self.targets.clone(),
            redact: self.redact,
            public: self.public,
            preflight: self.preflight,
            mix: match &self.mix {
                None => None,
                Some(MixTerms { file, bases, headers, ok_status, ok_grpc, in_turn, timeout_ns }) => Some(MixTerms {
                    file: each(TextKind::Traffic, file)?,
                    bases: bases.iter().map(|base| each(TextKind::Url, base)).collect::<Result<_, E>>()?,
                    headers: headers.iter().map(|header| each(TextKind::Header, header)).collect::<Result<_, E>>()?,
                    ok_status: ok_status.clone(),
                    ok_grpc: *ok_grpc,
                    in_turn: *in_turn,
                    timeout_ns: *timeout_ns,
                }),
            },
            script: match &self.script {
                None => None,
                Some(ScriptTerms { file, digest, args }) => Some(ScriptTerms {
                    file: each(TextKind::Script, file)?,
                    digest: digest.clone(),
                    args: args.iter().map(|arg| each(TextKind::Argument, arg)).collect::<Result<_, E>>()?,
                }),
            },
            replay: match &self.replay {
                None => None,
                Some(replay) => Some(ReplayTerms {
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
                    drawn: replay.drawn,
                }),
            },
            body: match &self.body {
                None => None,
                Some(BodyFrom::Text) => Some(BodyFrom::Text),
                Some(BodyFrom::Input) => Some(BodyFrom::Input),
                Some(BodyFrom::File(path)) => Some(BodyFrom::File(each(TextKind::Body, path)?)),
            },
            schema: match &self.schema {
                None => None,
                Some(SchemaTerms { protos, proto_paths, descriptor_set }) => Some(SchemaTerms {
                    protos: protos.iter().map(|file| each(TextKind::Proto, file)).collect::<Result<_, E>>()?,
                    proto_paths: proto_paths
                        .iter()
                        .map(|it| each(TextKind::ProtoPath, it))
                        .collect::<Result<_, E>>()?,
                    descriptor_set: optional(each, TextKind::DescriptorSet, descriptor_set)?,
                }),
            },
            connect_to: self.connect_to.clone(),
            issuers: optional(each, TextKind::Issuers, &self.issuers)?,
            certificate: optional(each, TextKind::Certificate, &self.certificate)?,
            key: optional(each, TextKind::Key, &self.key)?,
            connections_max: self.connections_max,
            injector: self.injector.clone(),
            fleet: self.fleet.clone(),
            probes: ProbesTerms {
                none: self.probes.none,
                pid: self.probes.pid,
                process: self.probes.process.clone(),
                metrics: match &self.probes.metrics {
                    Some(metrics) => Some(served(each, TextKind::Metrics, metrics)?),
                    None => None,
                },
                cgroup: optional(each, TextKind::Cgroup, &self.probes.cgroup)?,
                watch: self.probes.watch.clone(),
            },
            profiles: match &self.profiles {
                Some(ProfilesTerms { served: at, seconds }) => {
                    Some(ProfilesTerms { served: served(each, TextKind::Profiles, at)?, seconds: *seconds })
                }
                None => None,
            },
            changes: self.changes.map(each)?,
            builds: BuildsTerms {
                a: optional(each, TextKind::BuildA, &self.builds.a)?,
                b: optional(each, TextKind::BuildB, &self.builds.b)?,
                build: optional(each, TextKind::Build, &self.builds.build)?,
                start: optional(each, TextKind::Start, &self.builds.start)?,
                before_block: optional(each, TextKind::BeforeBlock, &self.builds.before_block)?,
                start_ns_max: self.builds.start_ns_max,
                record_commands: self.builds.record_commands,
            },
            fail_if: self.fail_if.clone(),
            on_inconclusive: self.on_inconclusive,
            output: OutputTerms {
                json: self.output.json,
                json_lines: self.output.json_lines,
                verbose: self.output.verbose,
                quiet: self.output.quiet,
                file: optional(each, TextKind::Place, &self.output.file)?,
                files: match &self.output.files {
                    Some((folder, name)) => Some((each(TextKind::Place, folder)?, each(TextKind::Place, name)?)),
                    None => None,
                },
                store: optional(each, TextKind::Place, &self.output.store)?,
                tags: self.output.tags.clone(),
            },
        })
    }
}

fn optional<T, U, E>(
    each: &mut impl FnMut(TextKind, &T) -> Result<U, E>,
    kind: TextKind,
    text: &Option<T>,
) -> Result<Option<U>, E> {
    text.as_ref().map(|text| each(kind, text)).transpose()
}

fn served<T, U, E>(
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

impl Terms<String> {
    /// What a run file holds of it.
    pub fn record(&self) -> Terms<RedactedText> {
        let mapped = self.map(|kind, text| {
            let kept = match kind.is_command() && self.builds.record_commands {
                true => text.clone(),
                false => kind.redact_text(text, self.redact),
            };
            Ok::<_, Infallible>(RedactedText { withheld: kept != *text, text: kept })
        });
        match mapped {
            Ok(terms) => terms,
        }
    }
}
