//! A run as data and arithmetic: what will happen ([`Plan`]), when ([`Schedule`]), what did
//! ([`Interval`], [`Run`]), and the bytes it is kept in ([`codec`]).
//!
//! Everything here is a plain value. This crate knows no sockets, files, threads, no current time,
//! and no text for people beyond the messages of its own errors: whoever needs those stands further
//! out.

#![forbid(unsafe_code)]

pub mod addresses;
pub mod agent_account;
pub mod asked;
pub mod bounds;
pub mod budget;
pub mod calendar;
pub mod carriage;
pub mod codec;
pub mod completion;
pub mod curve;
pub mod data;
pub mod drawn;
pub mod expect;
pub mod failed_answer;
pub mod failure;
pub mod foreign;
pub mod given;
pub mod grpc;
pub mod grpc_message;
pub mod h2;
pub mod histogram;
pub mod injector;
pub mod interval;
mod interval_codec;
pub mod intervention;
pub mod json_path;
pub mod ledger;
pub mod listed;
pub mod load;
pub mod machine_facts;
pub mod measures;
pub mod pattern_budget;
pub mod plan;
pub mod plan_bytes;
pub mod probes;
mod probes_codec;
pub mod profile;
pub mod record;
pub mod redact;
pub mod retry;
pub mod rng;
pub mod run;
pub mod sampled;
pub mod schedule;
pub mod series_table;
pub mod session;
pub mod shell;
pub mod steering;
pub mod study_summary;
mod tagged;
pub mod tally;
pub mod template;
pub mod terms;
pub mod tls;
pub mod traffic;
mod traffic_digest;
pub mod units;

pub use addresses::AddressRange;
pub use agent_account::AgentAccount;
pub use asked::{
    Arm, ExperimentSpec, BlocksSpec, Criterion, ExplainSpec, FindSpec, LadderSpec, Lengths, OverloadSpec, Planning,
    ProfilesSpec, ProveSpec, RunSpec, SweepSpec,
};
pub use budget::{Budget, BudgetError};
pub use carriage::{ConnectionPlan, HttpChoice, ResolveSpec};
pub use curve::{Curve, CurveError, Stage};
pub use drawn::{ListedSessions, SessionsFacts};
pub use failed_answer::FailedAnswer;
pub use failure::Failure;
pub use given::ArrivalTimes;
pub use grpc::{CallFault, GrpcCall, GrpcStatus, GrpcStatusSet};
pub use h2::H2Error;
pub use histogram::{CountingHistogram, Histogram, SparseHistogram};
pub use injector::{Injector, Spin};
pub use interval::{Interval, RouteNumber, Routes};
pub use intervention::Intervention;
pub use ledger::{Ledger, Outcome, RequestFailure};
pub use listed::{RequestList, RequestListRecord, ListedRequest, ListedTargets, ReplayFacts};
pub use load::{Arrivals, Load, LoadShape};
pub use measures::{LoadFigures, RouteFigures, TimeMeasure, WorkerTime};
pub use plan::{ArmIndex, Plan, Purpose, Tag};
pub use probes::{Gap, Probes, Series, SeriesKind, SeriesSample, WatchedServer};
pub use record::{ConnectionPlanRecord, DataRecord, PlanRecord, RouteRecord, TlsRecord, TrafficRecord};
pub use redact::Redact;
pub use run::{
    LoadEnd, Environment, Experiment, MachineLimits, StartNotes, ProfileRecord, Remark, Run, SourceRevision, Stop, Trial,
    LoadSkipReason,
};
pub use sampled::{SampledFunctions, SampledStack, SampleInterval};
pub use schedule::{Schedule, Stripe};
pub use study_summary::{LineSummary, StudySummary, SummaryValue};
pub use tally::Tally;
pub use terms::{
    BodyFrom, ChangeTerms, FleetTerms, OnInconclusive, AgentLossPolicy, RedactedText, ScriptTerms, EndpointChoice, Terms, TextKind,
    WatchTerms,
};
pub use tls::{TlsFailure, TlsSpec};
pub use traffic::{SetupTeardown, OneOffRoute, Origin, Request, Route, StatusSet, Traffic};
