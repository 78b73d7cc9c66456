//! Restores an executable plan from a record, for a rerun. [`missing_inputs`] lists the redacted
//! inputs of a record, and [`PlanRecord::restore_plan`] restores them. The restored plan must
//! have the same record as the original plan, and superfluous inputs are refused. A rerun therefore
//! repeats exactly the recorded experiment.
//!
//! Not here: which texts are redacted ([`Plan::record`], [`ExperimentSettings::record`]),
//! command-line flags, and reading of files.

use crate::arrival_times::ArrivalTimes;
use crate::experiment_settings::{BodySource, ExperimentSettings, RedactedText, TargetSettings, TextKind};
use crate::grpc::GrpcCall;
use crate::load::LoadShape;
use crate::plan::Plan;
use crate::record::{ConnectionPlanRecord, PlanRecord, RouteRecord, TlsRecord};
use crate::redact::{self, REDACTED, RedactionLevel};
use crate::spec::ExperimentSpec;
use crate::tls::TlsSpec;
use crate::traffic::{Origin, Request, Route, SetupTeardown, Traffic};
use crate::transport::ConnectionPlan;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

/// An input that was redacted in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingInput {
    /// The kind of the redacted input.
    pub kind: TextKind,
    /// The redacted text in the record; for a header field, the name of the field.
    pub record_text: String,
}

/// A URL that the user gives for a rerun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerunUrl {
    /// The URL as the user gave it.
    pub text: String,
    /// Scheme, host and port.
    pub origin: Origin,
    /// Path and query.
    pub target: String,
    /// The `Authorization` value that is computed from the user and password in the URL.
    pub authorization: Option<String>,
}

/// The inputs that the user gives for a rerun, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RerunInputs {
    /// URLs of targets, in the order in which the record needs them.
    pub urls: VecDeque<RerunUrl>,
    /// Header fields with their values.
    pub headers: Vec<(String, String)>,
    /// The request body and its source, including a body that plimsoll read from a file named in
    /// the record.
    pub body: Option<(BodySource<String>, Vec<u8>)>,
    /// All given texts except URLs, header fields and the request body, by kind.
    pub texts: BTreeMap<TextKind, VecDeque<String>>,
}

/// The reason why the plan of a record cannot be restored for a rerun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreError {
    /// A redacted input is missing.
    Missing,
    /// An input is given that the record does not need.
    Superfluous(TextKind),
    /// An input differs from the input in the record.
    Differs(MissingInput),
    /// The traffic file or log of the record cannot be read.
    UnreadableTraffic,
    /// Targets with equal requests in the record have different requests now, or targets with
    /// different requests have equal requests now.
    TargetEqualityChanged,
}

/// Gives each item a number, so that equal items have equal numbers.
pub fn number_equal_items<T: PartialEq>(all: &[T]) -> Vec<u32> {
    all.iter().map(|one| all.iter().position(|other| other == one).unwrap_or_default() as u32).collect()
}

/// Gives each target of these plans a number, so that equal targets have equal numbers. `user_info`
/// says for each target whether its URL contains a user and password; missing entries mean no.
pub fn number_equal_targets<'a>(plans: impl IntoIterator<Item = &'a Plan>, user_info: &[bool]) -> Vec<TargetSettings> {
    let asked: Vec<_> = plans.into_iter().map(|plan| (&plan.traffic.origin, &plan.traffic.routes)).collect();
    let user_info = user_info.iter().copied().chain(std::iter::repeat(false));
    number_equal_items(&asked)
        .into_iter()
        .zip(user_info)
        .map(|(number, user_info)| TargetSettings { number, user_info })
        .collect()
}

fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

impl RouteRecord {
    /// Returns the names of the header fields with a redacted value.
    fn redacted_header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(|(_, value)| value == REDACTED).map(|(name, _)| name.as_str())
    }

    /// Returns the text that replaces a redacted body: its length and digest.
    pub fn redacted_body_text(&self) -> String {
        let digest = self.body_digest.as_deref().map(|digest| format!(", sha256 {digest}"));
        format!("[{} bytes{}]", self.body_bytes, digest.unwrap_or_default())
    }

    /// Restores the redacted inputs of the route. `url` is the complete path and query that the
    /// user gave; `None` means that the record has them. Fails if an input is missing or differs
    /// from the record.
    fn restore_route(
        &self,
        how: RedactionLevel,
        url: Option<String>,
        secrets: &mut PlanSecrets,
    ) -> Result<Route, RestoreError> {
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            if value != REDACTED {
                headers.push((name.clone(), value.clone()));
                continue;
            }
            let fits = |(given, text): &(String, String)| {
                redact::redact_word(given).eq_ignore_ascii_case(name)
                    && redact::redact_header_value(given, text, how) == REDACTED
            };
            let at = secrets.headers.iter().position(fits).ok_or(RestoreError::Missing)?;
            headers.push(secrets.headers.remove(at));
        }
        let body = match self.body_bytes {
            0 => Vec::new(),
            _ => secrets.body.clone().ok_or(RestoreError::Missing)?,
        };
        if body.len() as u64 != self.body_bytes
            || self.body_digest.as_ref().is_some_and(|it| *it != redact::short_digest(&body))
        {
            return Err(RestoreError::Differs(MissingInput {
                kind: TextKind::Body,
                record_text: self.redacted_body_text(),
            }));
        }
        let target = match (self.target_withheld, url) {
            (false, _) => self.target.clone(),
            (true, Some(target)) => target,
            (true, None) => return Err(RestoreError::Missing),
        };
        let request = Request { method: self.method.clone(), target, headers, body };
        let (label, weight) = (self.label.clone(), self.weight);
        let (ok_status, timeout_ns, redirects_max) = (self.ok_status.clone(), self.timeout_ns, self.redirects_max);
        // A record contains no encoded gRPC messages; plimsoll encodes the messages again from the
        // body.
        let grpc = self.ok_grpc.map(|ok| GrpcCall { ok, in_turn: self.in_turn, ..GrpcCall::default() });
        Ok(Route { label, weight, ok_status, timeout_ns, redirects_max, grpc, ..Route::new(request) })
    }
}

/// The inputs that restore the redacted parts of one plan.
#[derive(Debug, Clone, Default)]
pub struct PlanSecrets {
    /// The URL for each route with a redacted target, in order.
    pub urls: VecDeque<RerunUrl>,
    /// Header fields with their values.
    pub headers: Vec<(String, String)>,
    /// The request body; `None` means that the body was not redacted.
    pub body: Option<Vec<u8>>,
    /// The path of the unix socket; `None` means that the path was not redacted.
    pub unix: Option<String>,
}

impl PlanRecord {
    /// Lists the redacted inputs, in order.
    pub fn missing_inputs(&self) -> Vec<MissingInput> {
        let mut missing = Vec::new();
        for route in &self.traffic.routes {
            if route.target_withheld {
                missing.push(MissingInput {
                    kind: TextKind::Url,
                    record_text: format!("{}{}", self.traffic.origin, route.target),
                });
            }
            missing.extend(
                route
                    .redacted_header_names()
                    .map(|name| MissingInput { kind: TextKind::Header, record_text: name.to_owned() }),
            );
            if route.body_bytes > 0 {
                missing.push(MissingInput { kind: TextKind::Body, record_text: route.redacted_body_text() });
            }
        }
        if let (Some(path), true) = (&self.connection_plan.unix, self.connection_plan.unix_withheld) {
            missing.push(MissingInput { kind: TextKind::Unix, record_text: path.clone() });
        }
        missing
    }

    /// Restores the plan with its redacted inputs. The restored plan has no addresses or
    /// certificates, because the caller resolves the addresses and reads the certificates again.
    /// Fails if an input is missing, superfluous or different from the record.
    pub fn restore_plan(
        &self,
        redaction_level: RedactionLevel,
        mut secrets: PlanSecrets,
    ) -> Result<Plan, RestoreError> {
        let origin = &self.traffic.origin;
        let mut routes = Vec::with_capacity(self.traffic.routes.len());
        for route in &self.traffic.routes {
            let url = match route.target_withheld {
                true => Some(secrets.urls.pop_front().ok_or(RestoreError::Missing)?),
                false => None,
            };
            if let Some(given) = &url
                && (given.origin != *origin || redact::redact_target(&given.target, redaction_level) != route.target)
            {
                let was = format!("{origin}{}", route.target);
                return Err(RestoreError::Differs(MissingInput { kind: TextKind::Url, record_text: was }));
            }
            routes.push(route.restore_route(redaction_level, url.map(|url| url.target), &mut secrets)?);
        }
        let (choice, preflight) = (self.traffic.choice, Some(0));
        let (data, variables, request_list) = (Vec::new(), Vec::new(), None);
        // Scenarios, setup and teardown stay empty here, because a rerun reads the traffic file
        // again.
        let (scenarios, setup_teardown) = (Vec::new(), SetupTeardown::default());
        let origin = origin.clone();
        let traffic = Traffic {
            origin,
            routes,
            choice,
            scenarios,
            preflight,
            data,
            variables,
            setup_teardown,
            request_list,
            redact: redaction_level,
        };
        let unix = secrets.unix;
        match (secrets.headers.is_empty(), secrets.urls.is_empty()) {
            (false, _) => Err(RestoreError::Superfluous(TextKind::Header)),
            (_, false) => Err(RestoreError::Superfluous(TextKind::Url)),
            (true, true) => self.plan_with_traffic(traffic, unix),
        }
    }

    /// Creates the plan from the record, with the given traffic and unix socket.
    fn plan_with_traffic(&self, traffic: Traffic, unix: Option<String>) -> Result<Plan, RestoreError> {
        Ok(Plan {
            traffic,
            load: self.load.clone(),
            connection_plan: self.connection_plan.restore_connection_plan(unix)?,
        })
    }
}

impl ConnectionPlanRecord {
    fn restore_connection_plan(&self, given: Option<String>) -> Result<ConnectionPlan, RestoreError> {
        let ConnectionPlanRecord {
            addresses: _,
            unix,
            unix_withheld,
            resolve,
            tls,
            http,
            streams_max,
            keep_alive,
            close_reset,
            connections_max,
        } = self;
        let unix = match (unix, unix_withheld) {
            (Some(was), true) => Some(check_given_text(
                TextKind::Unix,
                was,
                given.ok_or(RestoreError::Missing)?,
                RedactionLevel::Secrets,
            )?),
            (whole, _) => whole.clone(),
        };
        Ok(ConnectionPlan {
            addresses: Vec::new(),
            unix,
            resolve: resolve.clone(),
            tls: tls.as_ref().map(TlsRecord::restore_tls_spec),
            http: *http,
            streams_max: *streams_max,
            keep_alive: *keep_alive,
            close_reset: *close_reset,
            connections_max: *connections_max,
        })
    }
}

impl TlsRecord {
    fn restore_tls_spec(&self) -> TlsSpec {
        let TlsRecord { server_name, verify, resume, alpn, roots: _, own_certificate: _ } = self;
        let (server_name, alpn) = (server_name.clone(), alpn.clone());
        TlsSpec { server_name, verify: *verify, resume: *resume, alpn, ..TlsSpec::default() }
    }
}

/// Returns the given text if its redacted form equals the recorded text `was`.
fn check_given_text(kind: TextKind, was: &str, given: String, how: RedactionLevel) -> Result<String, RestoreError> {
    match kind.redact_text(&given, how) == was {
        true => Ok(given),
        false => Err(RestoreError::Differs(MissingInput { kind, record_text: was.to_owned() })),
    }
}

/// Returns the path of the body's file if the record contains the path. If the record contains the
/// path, the user of a rerun need not give the body again.
pub fn body_file(settings: &ExperimentSettings<RedactedText>) -> Option<&str> {
    match &settings.body {
        Some(BodySource::File(path)) if !path.withheld => Some(&path.text),
        _ => None,
    }
}

/// Returns the path of the file with the second request body ([`TextKind::OtherBody`]), if the
/// record contains the path.
pub fn other_body_file(settings: &ExperimentSettings<RedactedText>) -> Option<&str> {
    settings
        .interventions
        .other_body
        .as_ref()
        .filter(|body| !body.withheld)
        .and_then(|body| body.text.strip_prefix('@'))
}

/// Returns all redacted inputs that a rerun needs, in the order in which the program asks for them.
pub fn missing_inputs(spec: &ExperimentSpec, settings: &ExperimentSettings<RedactedText>) -> Vec<MissingInput> {
    // A study of the demo server has no secrets, so no input is missing.
    if settings.demo {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (index, plan) in spec.plans().into_iter().enumerate() {
        let mut here = plan.missing_inputs();
        if settings.mix.is_some() || settings.replay.is_some() {
            // The traffic file or the log provides all inputs of the plan except the path of the
            // unix socket.
            here.retain(|it| it.kind == TextKind::Unix);
        } else if has_user_info(settings, index) {
            // The URL contains user and password, so the `Authorization` header field is not a
            // separate input.
            here.retain(|it| it.kind != TextKind::Header || !is_authorization(&it.record_text));
            if !plan.traffic.first_route().target_withheld {
                here.insert(0, MissingInput { kind: TextKind::Url, record_text: plan.traffic.url() });
            }
        }
        match &settings.body {
            Some(BodySource::File(path)) if !path.withheld => here.retain(|it| it.kind != TextKind::Body),
            Some(BodySource::File(path)) => {
                let bodies = here.iter_mut().filter(|it| it.kind == TextKind::Body);
                bodies.for_each(|body| body.record_text = format!("@{}", path.text));
            }
            Some(BodySource::Text | BodySource::Stdin) | None => {}
        }
        // Inputs other than URLs are equal for all targets, so they are listed only for the first
        // target.
        all.extend(here.into_iter().filter(|it| index == 0 || (it.kind == TextKind::Url && !has_one_url(spec))));
    }
    for (kind, texts) in rerun_texts(settings) {
        if matches!(kind, TextKind::Url | TextKind::Header) {
            // Each redacted text is a separate input; a header field is identified by its name.
            let was = |text: &RedactedText| match kind {
                TextKind::Header => text.text.split(':').next().unwrap_or_default().to_owned(),
                _ => text.text.clone(),
            };
            all.extend(
                texts.iter().filter(|text| text.withheld).map(|text| MissingInput { kind, record_text: was(text) }),
            );
        } else if texts.iter().any(|text| text.withheld) {
            let texts: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
            all.push(MissingInput { kind, record_text: texts.join(",") });
        }
    }
    all
}

/// Returns the path of the traffic file if the record contains the path. If the record contains the
/// path, the user of a rerun need not give the file again.
pub fn traffic_file(settings: &ExperimentSettings<RedactedText>) -> Option<&str> {
    settings.mix.as_ref().filter(|mix| !mix.file.withheld).map(|mix| mix.file.text.as_str())
}

/// Returns the path of the script if the record contains the path.
pub fn script_file(settings: &ExperimentSettings<RedactedText>) -> Option<&str> {
    settings.script.as_ref().filter(|script| !script.file.withheld).map(|script| script.file.text.as_str())
}

/// Returns the paths of the replayed logs if the record contains all these paths.
pub fn recorded_log_paths(settings: &ExperimentSettings<RedactedText>) -> Option<Vec<&str>> {
    let logs = settings.replay.as_ref()?.logs.iter();
    logs.map(|log| (!log.withheld).then_some(log.text.as_str())).collect()
}

/// Returns whether the experiment is a comparison of builds that plimsoll starts one at a time, so
/// that all targets have the same URL.
pub fn has_one_url(spec: &ExperimentSpec) -> bool {
    spec.blocks_spec().is_some_and(|blocks| blocks.arms.iter().all(|arm| arm.is_started_per_load))
}

fn has_user_info(settings: &ExperimentSettings<RedactedText>, target: usize) -> bool {
    settings.targets.get(target).is_some_and(|target| target.user_info)
}

/// Returns the recorded texts that a rerun may need again, by kind and in order.
fn rerun_texts(settings: &ExperimentSettings<RedactedText>) -> BTreeMap<TextKind, Vec<RedactedText>> {
    let mut texts: BTreeMap<TextKind, Vec<RedactedText>> = BTreeMap::new();
    let listed = settings.map_texts(|kind, text| {
        // The request body and output paths are skipped: the body is an input of the plan, and the
        // user chooses output paths anew.
        if !matches!(kind, TextKind::Body | TextKind::OutputPath) {
            texts.entry(kind).or_default().push(text.clone());
        }
        Ok::<_, Infallible>(())
    });
    let Ok(_) = listed;
    texts
}

/// The part of a plan that a traffic file or log provides.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficFromFile {
    /// The traffic that the file describes.
    pub traffic: Traffic,
    /// The arrival times, if the file has them.
    pub arrivals: Option<ArrivalTimes>,
}

/// Restores the experiment and its settings in executable form. `read_traffic` reads the traffic of
/// each target again from the traffic file or the logs, and returns `None` if reading fails. Fails
/// if an input is missing, superfluous or different from the record.
pub fn restore_experiment(
    spec: &ExperimentSpec,
    settings: &ExperimentSettings<RedactedText>,
    mut given: RerunInputs,
    read_traffic: &mut dyn FnMut(&ExperimentSettings<String>) -> Option<Vec<TrafficFromFile>>,
) -> Result<(ExperimentSpec<Plan>, ExperimentSettings<String>), RestoreError> {
    let missing = missing_inputs(spec, settings);
    let is_missing = |kind: TextKind| missing.iter().any(|it| it.kind == kind);
    let unasked =
        |(kind, texts): (&TextKind, &VecDeque<String>)| (!texts.is_empty() && !is_missing(*kind)).then_some(*kind);
    if let Some(kind) = given.texts.iter().find_map(unasked) {
        return Err(RestoreError::Superfluous(kind));
    }
    if let Some((from, _)) = &given.body {
        let recorded = matches!((from, body_file(settings)), (BodySource::File(path), Some(file)) if path == file);
        if !is_missing(TextKind::Body) && !recorded {
            return Err(RestoreError::Superfluous(TextKind::Body));
        }
    }
    let unix = given.texts.get_mut(&TextKind::Unix).and_then(VecDeque::pop_front);
    let complete = settings.map_texts(|kind, text| match kind {
        TextKind::Body | TextKind::OutputPath => Ok(text.text.clone()),
        TextKind::Url | TextKind::Header if !text.withheld => Ok(text.text.clone()),
        TextKind::Url => {
            let again = given.urls.pop_front().ok_or(RestoreError::Missing)?;
            check_given_text(kind, &text.text, again.text, settings.redact)
        }
        TextKind::Header => {
            let given = &mut given.headers;
            let fits = |(name, value): &(String, String)| {
                kind.redact_text(&format!("{name}: {value}"), settings.redact).eq_ignore_ascii_case(&text.text)
            };
            let at = given.iter().position(fits).ok_or(RestoreError::Missing)?;
            let (name, value) = given.remove(at);
            Ok(format!("{name}: {value}"))
        }
        kind if is_missing(kind) => {
            let again = given.texts.get_mut(&kind).and_then(VecDeque::pop_front).ok_or(RestoreError::Missing)?;
            check_given_text(kind, &text.text, again, settings.redact)
        }
        _ => Ok(text.text.clone()),
    })?;
    let complete =
        ExperimentSettings { body: given.body.as_ref().map(|(from, _)| from.clone()).or(complete.body), ..complete };
    if let Some((kind, _)) = given.texts.iter().find(|(_, texts)| !texts.is_empty()) {
        return Err(RestoreError::Superfluous(*kind));
    }
    let from_file = match complete.mix.is_some() || complete.replay.is_some() {
        false => None,
        true if given.headers.is_empty() => Some(read_traffic(&complete).ok_or(RestoreError::UnreadableTraffic)?),
        true => return Err(RestoreError::Superfluous(TextKind::Header)),
    };
    let body = given.body.map(|(_, bytes)| bytes);
    let (mut index, one_url) = (0, has_one_url(spec).then(|| given.urls.clone()));
    let asked = spec.clone().map_plans(|record| {
        if let (Some(one), true) = (&one_url, index > 0) {
            given.urls.clone_from(one);
        }
        let mut plan = match &from_file {
            Some(from_file) => {
                let number = if one_url.is_some() { 0 } else { index };
                let TrafficFromFile { traffic, arrivals } =
                    from_file.get(number).cloned().ok_or(RestoreError::UnreadableTraffic)?;
                let same_moments = match (&record.load.shape, &arrivals) {
                    (LoadShape::ArrivalTimes { arrivals: then }, Some(now)) => now.has_same_starts(then),
                    (shape, now) => now.is_none() && shape.is_executable(),
                };
                if traffic.record() != record.traffic || !same_moments {
                    let named = |log: &RedactedText| log.text.clone();
                    let (kind, was) = match (&settings.mix, &settings.replay) {
                        (Some(mix), _) => (TextKind::Traffic, mix.file.text.clone()),
                        (None, replay) => {
                            let logs = replay.iter().flat_map(|replay| &replay.logs).map(named);
                            (TextKind::Log, logs.collect::<Vec<_>>().join(","))
                        }
                    };
                    return Err(RestoreError::Differs(MissingInput { kind, record_text: was }));
                }
                let mut plan = record.plan_with_traffic(traffic, unix.clone())?;
                if let Some(arrivals) = arrivals {
                    plan.load.shape = LoadShape::ArrivalTimes { arrivals };
                }
                plan
            }
            None => {
                let shared = PlanSecrets {
                    headers: given.headers.clone(),
                    body: body.clone(),
                    unix: unix.clone(),
                    ..PlanSecrets::default()
                };
                let secrets = take_plan_secrets(&record, has_user_info(settings, index), &mut given.urls, shared)?;
                record.restore_plan(settings.redact, secrets)?
            }
        };
        index += 1;
        if let Some(resolve) = &mut plan.connection_plan.resolve {
            // The user's permission for public addresses covers the load and also later lookups of
            // the host name.
            resolve.public = settings.public;
        }
        if settings.connections_max.is_none() {
            // The recorded connection limit was adapted to the machine of the recorded run, and may
            // not suit this machine.
            plan.connection_plan.connections_max = ConnectionPlan::tcp(Vec::new()).connections_max;
        }
        Ok(plan)
    })?;
    if !given.urls.is_empty() {
        return Err(RestoreError::Superfluous(TextKind::Url));
    }
    let user_info: Vec<bool> = settings.targets.iter().map(|target| target.user_info).collect();
    // Targets that differ in the record must stay different, and equal targets must stay equal. If
    // different targets became equal, a comparison would compare A with A.
    if !settings.demo && number_equal_targets(asked.plans(), &user_info) != settings.targets {
        return Err(RestoreError::TargetEqualityChanged);
    }
    Ok((asked, complete))
}

/// Collects the inputs that were redacted in one plan: URLs from the front of `urls`, and all other
/// inputs from `shared`.
fn take_plan_secrets(
    record: &PlanRecord,
    user_info: bool,
    urls: &mut VecDeque<RerunUrl>,
    shared: PlanSecrets,
) -> Result<PlanSecrets, RestoreError> {
    let mut secrets = shared;
    for (number, route) in record.traffic.routes.iter().enumerate() {
        let user_info = user_info && number == 0;
        if !route.target_withheld && !user_info {
            continue;
        }
        let given = urls.pop_front().ok_or(RestoreError::Missing)?;
        let differs = given.origin != record.traffic.origin
            || given.authorization.is_some() != user_info
            || (!route.target_withheld && given.target != route.target);
        if differs {
            let was = format!("{}{}", record.traffic.origin, route.target);
            return Err(RestoreError::Differs(MissingInput { kind: TextKind::Url, record_text: was }));
        }
        secrets.headers.extend(given.authorization.iter().map(|value| ("Authorization".to_owned(), value.clone())));
        if route.target_withheld {
            secrets.urls.push_back(given);
        }
    }
    Ok(secrets)
}
