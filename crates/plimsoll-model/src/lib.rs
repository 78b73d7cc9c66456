//! A load-test run as data and arithmetic: the plan ([`Plan`]), the intended starts ([`Schedule`]),
//! the result ([`Interval`], [`Run`]), and the bytes of a run file ([`codec`]).
//!
//! Everything in this crate is a plain value. This crate has no sockets, files, threads or current
//! time, and no text for people beyond the messages of its own errors. Sockets, files, threads,
//! clocks and texts for people are in other crates.

#![forbid(unsafe_code)]

pub mod addresses;
pub mod agent_account;
pub mod agent_calibration;
pub mod arrival_times;
pub mod bounds;
pub mod budget;
pub mod calendar;
pub mod codec;
pub mod completion;
pub mod control_characters;
pub mod curve;
pub mod data;
pub mod expect;
pub mod experiment_settings;
pub mod failed_response;
pub mod failure;
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
pub mod library_panic;
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
pub mod request_list;
pub mod retry;
pub mod rng;
pub mod run;
pub mod sampled;
pub mod schedule;
pub mod series_table;
pub mod session;
pub mod session_draws;
pub mod shell;
pub mod spec;
pub mod stripe;
pub mod study_summary;
mod tagged_fields;
pub mod tally;
pub mod template;
pub mod timestamp;
pub mod tls;
pub mod traffic;
mod traffic_digest;
pub mod transport;
pub mod units;

pub use addresses::AddressRange;
pub use agent_account::AgentAccount;
pub use agent_calibration::AgentCalibration;
pub use arrival_times::ArrivalTimes;
pub use budget::{BudgetError, ParseBudget};
pub use curve::{CurveError, LoadCurve, LoadStage};
pub use experiment_settings::{
    AgentLossPolicy, BodySource, EndpointChoice, ExperimentSettings, FleetSettings, InterventionSettings,
    OnInconclusive, RedactedText, RemoteWatchSettings, ScriptSettings, TextKind,
};
pub use failed_response::FailedResponse;
pub use failure::Failure;
pub use grpc::{CallFault, GrpcCall, GrpcStatus, GrpcStatusSet};
pub use h2::H2Error;
pub use histogram::{CountingHistogram, Histogram, SparseHistogram};
pub use injector::{Injector, Spin};
pub use interval::{FiguresByRoute, Interval, RouteNumber};
pub use intervention::Intervention;
pub use ledger::{Ledger, Outcome, RequestFailure};
pub use load::{ArrivalSpacing, Load, LoadShape};
pub use measures::{LoadFigures, RouteFigures, TimeMeasure, WorkerTime};
pub use plan::{ArmIndex, LoadPurpose, LoadTag, Plan};
pub use probes::{Gap, Probes, Series, SeriesKind, SeriesSample, WatchedServer};
pub use record::{ConnectionPlanRecord, DataRecord, PlanRecord, RouteRecord, TlsRecord, TrafficRecord};
pub use redact::RedactionLevel;
pub use request_list::{ReplayFacts, RequestList, RequestListEntry, RequestListRecord, RequestTargets};
pub use run::{
    EarlyStopReason, Environment, Experiment, ExperimentEvent, LoadEnd, LoadSkipReason, MachineLimits, ProfileRecord,
    Run, SourceRevision, StartNotes, Trial,
};
pub use sampled::{SampleInterval, SampledFunctions, SampledStack};
pub use schedule::Schedule;
pub use session_draws::{LogSessions, LogSessionsFacts};
pub use spec::{
    Arm, BlocksSpec, Criterion, ExperimentSpec, ExplainSpec, FindSpec, LadderSpec, LevelDurations, OverloadSpec,
    Planning, ProfilesSpec, ProveSpec, RunSpec, SweepSpec,
};
pub use stripe::Stripe;
pub use study_summary::{LineSummary, StudySummary, SummaryValue};
pub use tally::CountsByKey;
pub use tls::{TlsFailure, TlsSpec};
pub use traffic::{OneOffRoute, Origin, Request, Route, SetupTeardown, StatusSet, Traffic};
pub use transport::{ConnectionPlan, HttpChoice, ResolveSpec};
