//! From a record back to what can be carried out: what was left out of it ([`missing`]), and the
//! record with that put in again ([`complete`]). What is given must leave the same record; what
//! nobody asked for is refused, so that a repetition is what was recorded, or is none.
//!
//! Not here: what is left out ([`Plan::record`], [`Terms::record`]), flags, files.

use crate::arrival_times::ArrivalTimes;
use crate::carriage::ConnectionPlan;
use crate::grpc::GrpcCall;
use crate::load::LoadShape;
use crate::plan::Plan;
use crate::record::{ConnectionPlanRecord, PlanRecord, RouteRecord, TlsRecord};
use crate::redact::{self, REDACTED, Redact};
use crate::spec::ExperimentSpec;
use crate::terms::{BodyFrom, RedactedText, TargetTerms, Terms, TextKind};
use crate::tls::TlsSpec;
use crate::traffic::{Origin, Request, Route, SetupTeardown, Traffic};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

/// Something that was left out of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingInput {
    /// What it is.
    pub kind: TextKind,
    /// What the record has of it; of a header its name.
    pub was: String,
}

/// A URL that is given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerunUrl {
    /// As it was given.
    pub text: String,
    /// Of whom.
    pub origin: Origin,
    /// Path and query.
    pub target: String,
    /// The authorization of its user and password.
    pub authorization: Option<String>,
}

/// What is given again, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RerunInputs {
    /// Targets.
    pub urls: VecDeque<RerunUrl>,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body, and where it is from: also that of a file which the record names.
    pub body: Option<(BodyFrom<String>, Vec<u8>)>,
    /// Everything else.
    pub texts: BTreeMap<TextKind, VecDeque<String>>,
}

/// Why a record cannot be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incomplete {
    /// Something that was left out is not given again.
    Missing,
    /// Something is given that the record has, or that it has no place for.
    Superfluous(TextKind),
    /// What is given is not what was recorded.
    Differs(MissingInput),
    /// The file that says what is asked could not be read.
    Unread,
    /// Targets are asked the same where they were asked different things, or the other way round.
    Alike,
}

/// A number for each of several, such that equal ones have the same.
pub fn numbers<T: PartialEq>(all: &[T]) -> Vec<u32> {
    all.iter().map(|one| all.iter().position(|other| other == one).unwrap_or_default() as u32).collect()
}

/// How the targets of these plans are numbered.
pub fn targets<'a>(plans: impl IntoIterator<Item = &'a Plan>, user_info: &[bool]) -> Vec<TargetTerms> {
    let asked: Vec<_> = plans.into_iter().map(|plan| (&plan.traffic.origin, &plan.traffic.routes)).collect();
    let user_info = user_info.iter().copied().chain(std::iter::repeat(false));
    numbers(&asked).into_iter().zip(user_info).map(|(number, user_info)| TargetTerms { number, user_info }).collect()
}

fn is_authorization(name: &str) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

impl RouteRecord {
    /// The names of the header fields of which something was left out.
    fn headers_missing(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(|(_, value)| value == REDACTED).map(|(name, _)| name.as_str())
    }

    /// What is shown of a body that was left out.
    pub fn body_text(&self) -> String {
        let digest = self.body_digest.as_deref().map(|digest| format!(", sha256 {digest}"));
        format!("[{} bytes{}]", self.body_bytes, digest.unwrap_or_default())
    }

    /// The route with what is given in place of what was left out; `url`: the whole of its path and
    /// query.
    fn complete(&self, how: Redact, url: Option<String>, secrets: &mut Secrets) -> Result<Route, Incomplete> {
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            if value != REDACTED {
                headers.push((name.clone(), value.clone()));
                continue;
            }
            let fits = |(given, text): &(String, String)| {
                redact::word(given).eq_ignore_ascii_case(name) && redact::header_value(given, text, how) == REDACTED
            };
            let at = secrets.headers.iter().position(fits).ok_or(Incomplete::Missing)?;
            headers.push(secrets.headers.remove(at));
        }
        let body = match self.body_bytes {
            0 => Vec::new(),
            _ => secrets.body.clone().ok_or(Incomplete::Missing)?,
        };
        if body.len() as u64 != self.body_bytes
            || self.body_digest.as_ref().is_some_and(|it| *it != redact::digest(&body))
        {
            return Err(Incomplete::Differs(MissingInput { kind: TextKind::Body, was: self.body_text() }));
        }
        let target = match (self.target_withheld, url) {
            (false, _) => self.target.clone(),
            (true, Some(target)) => target,
            (true, None) => return Err(Incomplete::Missing),
        };
        let request = Request { method: self.method.clone(), target, headers, body };
        let (label, weight) = (self.label.clone(), self.weight);
        let (ok_status, timeout_ns, follow) = (self.ok_status.clone(), self.timeout_ns, self.follow);
        // Its messages are made anew of its body.
        let grpc = self.ok_grpc.map(|ok| GrpcCall { ok, in_turn: self.in_turn, ..GrpcCall::default() });
        Ok(Route { label, weight, ok_status, timeout_ns, follow, grpc, ..Route::new(request) })
    }
}

/// What the record of one plan is completed with.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// The URL of each route of which something was left out, in order.
    pub urls: VecDeque<RerunUrl>,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The unix socket.
    pub unix: Option<String>,
}

impl PlanRecord {
    /// What was left out, in order.
    pub fn missing(&self) -> Vec<MissingInput> {
        let mut missing = Vec::new();
        for route in &self.traffic.routes {
            if route.target_withheld {
                missing.push(MissingInput {
                    kind: TextKind::Url,
                    was: format!("{}{}", self.traffic.origin, route.target),
                });
            }
            missing.extend(
                route.headers_missing().map(|name| MissingInput { kind: TextKind::Header, was: name.to_owned() }),
            );
            if route.body_bytes > 0 {
                missing.push(MissingInput { kind: TextKind::Body, was: route.body_text() });
            }
        }
        if let (Some(path), true) = (&self.carriage.unix, self.carriage.unix_withheld) {
            missing.push(MissingInput { kind: TextKind::Unix, was: path.clone() });
        }
        missing
    }

    /// The plan with what was left out. Addresses and certificates are found anew: it has none.
    pub fn complete(&self, how: Redact, mut secrets: Secrets) -> Result<Plan, Incomplete> {
        let origin = &self.traffic.origin;
        let mut routes = Vec::with_capacity(self.traffic.routes.len());
        for route in &self.traffic.routes {
            let url = match route.target_withheld {
                true => Some(secrets.urls.pop_front().ok_or(Incomplete::Missing)?),
                false => None,
            };
            if let Some(given) = &url
                && (given.origin != *origin || redact::target(&given.target, how) != route.target)
            {
                let was = format!("{origin}{}", route.target);
                return Err(Incomplete::Differs(MissingInput { kind: TextKind::Url, was }));
            }
            routes.push(route.complete(how, url.map(|url| url.target), &mut secrets)?);
        }
        let (choice, first) = (self.traffic.choice, Some(0));
        let (data, variables, listed) = (Vec::new(), Vec::new(), None);
        // Sessions, and what is asked around a load, are of a file, which is read anew.
        let (scenarios, around) = (Vec::new(), SetupTeardown::default());
        let origin = origin.clone();
        let traffic =
            Traffic { origin, routes, choice, scenarios, first, data, variables, around, listed, redact: how };
        let unix = secrets.unix;
        match (secrets.headers.is_empty(), secrets.urls.is_empty()) {
            (false, _) => Err(Incomplete::Superfluous(TextKind::Header)),
            (_, false) => Err(Incomplete::Superfluous(TextKind::Url)),
            (true, true) => self.complete_with(traffic, unix),
        }
    }

    /// The plan that asks this.
    fn complete_with(&self, traffic: Traffic, unix: Option<String>) -> Result<Plan, Incomplete> {
        Ok(Plan { traffic, load: self.load.clone(), carriage: self.carriage.complete(unix)? })
    }
}

impl ConnectionPlanRecord {
    fn complete(&self, given: Option<String>) -> Result<ConnectionPlan, Incomplete> {
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
            (Some(was), true) => Some(same(TextKind::Unix, was, given.ok_or(Incomplete::Missing)?, Redact::Secrets)?),
            (whole, _) => whole.clone(),
        };
        Ok(ConnectionPlan {
            addresses: Vec::new(),
            unix,
            resolve: resolve.clone(),
            tls: tls.as_ref().map(TlsRecord::complete),
            http: *http,
            streams_max: *streams_max,
            keep_alive: *keep_alive,
            close_reset: *close_reset,
            connections_max: *connections_max,
        })
    }
}

impl TlsRecord {
    fn complete(&self) -> TlsSpec {
        let TlsRecord { server_name, verify, resume, alpn, roots: _, own_certificate: _ } = self;
        let (server_name, alpn) = (server_name.clone(), alpn.clone());
        TlsSpec { server_name, verify: *verify, resume: *resume, alpn, ..TlsSpec::default() }
    }
}

/// What is given for a text, if the record has the same of it.
fn same(kind: TextKind, was: &str, given: String, how: Redact) -> Result<String, Incomplete> {
    match kind.redact_text(&given, how) == was {
        true => Ok(given),
        false => Err(Incomplete::Differs(MissingInput { kind, was: was.to_owned() })),
    }
}

/// Whether the body is in a file that the record names, so that nobody need give it again.
pub fn body_file(terms: &Terms<RedactedText>) -> Option<&str> {
    match &terms.body {
        Some(BodyFrom::File(path)) if !path.withheld => Some(&path.text),
        _ => None,
    }
}

/// The file that the other body of an experiment is in, where the record names it.
pub fn other_body_file(terms: &Terms<RedactedText>) -> Option<&str> {
    terms.changes.other_body.as_ref().filter(|body| !body.withheld).and_then(|body| body.text.strip_prefix('@'))
}

/// All that was left out of a record and is needed again, in the order in which it is asked for.
pub fn missing(asked: &ExperimentSpec, terms: &Terms<RedactedText>) -> Vec<MissingInput> {
    // A server of plimsoll's own has no secrets.
    if terms.demo {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (index, plan) in asked.plans().into_iter().enumerate() {
        let mut here = plan.missing();
        if terms.mix.is_some() || terms.replay.is_some() {
            // Its file has the rest.
            here.retain(|it| it.kind == TextKind::Unix);
        } else if has_user_info(terms, index) {
            // It is in the URL.
            here.retain(|it| it.kind != TextKind::Header || !is_authorization(&it.was));
            if !plan.traffic.first().target_withheld {
                here.insert(0, MissingInput { kind: TextKind::Url, was: plan.traffic.url() });
            }
        }
        match &terms.body {
            Some(BodyFrom::File(path)) if !path.withheld => here.retain(|it| it.kind != TextKind::Body),
            Some(BodyFrom::File(path)) => {
                let bodies = here.iter_mut().filter(|it| it.kind == TextKind::Body);
                bodies.for_each(|body| body.was = format!("@{}", path.text));
            }
            Some(BodyFrom::Text | BodyFrom::Input) | None => {}
        }
        // What is not of the target itself is the same for all.
        all.extend(here.into_iter().filter(|it| index == 0 || (it.kind == TextKind::Url && !has_one_url(asked))));
    }
    for (kind, texts) in texts(terms) {
        if matches!(kind, TextKind::Url | TextKind::Header) {
            // Each for itself; of a header its name.
            let was = |text: &RedactedText| match kind {
                TextKind::Header => text.text.split(':').next().unwrap_or_default().to_owned(),
                _ => text.text.clone(),
            };
            all.extend(texts.iter().filter(|text| text.withheld).map(|text| MissingInput { kind, was: was(text) }));
        } else if texts.iter().any(|text| text.withheld) {
            let texts: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
            all.push(MissingInput { kind, was: texts.join(",") });
        }
    }
    all
}

/// The file that says what is asked, where the record names it, so that nobody need give it again.
pub fn traffic_file(terms: &Terms<RedactedText>) -> Option<&str> {
    terms.mix.as_ref().filter(|mix| !mix.file.withheld).map(|mix| mix.file.text.as_str())
}

/// The script that says what is asked, where the record names it.
pub fn script_file(terms: &Terms<RedactedText>) -> Option<&str> {
    terms.script.as_ref().filter(|script| !script.file.withheld).map(|script| script.file.text.as_str())
}

/// Logs that are replayed, where the record names them all.
pub fn logs(terms: &Terms<RedactedText>) -> Option<Vec<&str>> {
    let logs = terms.replay.as_ref()?.logs.iter();
    logs.map(|log| (!log.withheld).then_some(log.text.as_str())).collect()
}

/// Whether all targets answer at one URL: builds that are started in turn.
pub fn has_one_url(asked: &ExperimentSpec) -> bool {
    asked.blocks().is_some_and(|blocks| blocks.arms.iter().all(|arm| arm.started))
}

fn has_user_info(terms: &Terms<RedactedText>, target: usize) -> bool {
    terms.targets.get(target).is_some_and(|target| target.user_info)
}

/// What may have to be given again as a text, by what it is and in order.
fn texts(terms: &Terms<RedactedText>) -> BTreeMap<TextKind, Vec<RedactedText>> {
    let mut texts: BTreeMap<TextKind, Vec<RedactedText>> = BTreeMap::new();
    let listed = terms.map(|kind, text| {
        // The body is asked for with the plan, and places are chosen anew.
        if !matches!(kind, TextKind::Body | TextKind::Place) {
            texts.entry(kind).or_default().push(text.clone());
        }
        Ok::<_, Infallible>(())
    });
    let Ok(_) = listed;
    texts
}

/// What a file asks of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct FromFile {
    /// What is asked.
    pub traffic: Traffic,
    /// When, where the file says it.
    pub arrivals: Option<ArrivalTimes>,
}

/// What was asked, and on what terms, as it can be carried out again. `of_file`: reads what a file,
/// or logs, ask of each target.
pub fn complete(
    asked: &ExperimentSpec,
    terms: &Terms<RedactedText>,
    mut given: RerunInputs,
    of_file: &mut dyn FnMut(&Terms<String>) -> Option<Vec<FromFile>>,
) -> Result<(ExperimentSpec<Plan>, Terms<String>), Incomplete> {
    let missing = missing(asked, terms);
    let is_missing = |kind: TextKind| missing.iter().any(|it| it.kind == kind);
    let unasked =
        |(kind, texts): (&TextKind, &VecDeque<String>)| (!texts.is_empty() && !is_missing(*kind)).then_some(*kind);
    if let Some(kind) = given.texts.iter().find_map(unasked) {
        return Err(Incomplete::Superfluous(kind));
    }
    if let Some((from, _)) = &given.body {
        let recorded = matches!((from, body_file(terms)), (BodyFrom::File(path), Some(file)) if path == file);
        if !is_missing(TextKind::Body) && !recorded {
            return Err(Incomplete::Superfluous(TextKind::Body));
        }
    }
    let unix = given.texts.get_mut(&TextKind::Unix).and_then(VecDeque::pop_front);
    let complete = terms.map(|kind, text| match kind {
        TextKind::Body | TextKind::Place => Ok(text.text.clone()),
        TextKind::Url | TextKind::Header if !text.withheld => Ok(text.text.clone()),
        TextKind::Url => {
            let again = given.urls.pop_front().ok_or(Incomplete::Missing)?;
            same(kind, &text.text, again.text, terms.redact)
        }
        TextKind::Header => {
            let given = &mut given.headers;
            let fits = |(name, value): &(String, String)| {
                kind.redact_text(&format!("{name}: {value}"), terms.redact).eq_ignore_ascii_case(&text.text)
            };
            let at = given.iter().position(fits).ok_or(Incomplete::Missing)?;
            let (name, value) = given.remove(at);
            Ok(format!("{name}: {value}"))
        }
        kind if is_missing(kind) => {
            let again = given.texts.get_mut(&kind).and_then(VecDeque::pop_front).ok_or(Incomplete::Missing)?;
            same(kind, &text.text, again, terms.redact)
        }
        _ => Ok(text.text.clone()),
    })?;
    let complete = Terms { body: given.body.as_ref().map(|(from, _)| from.clone()).or(complete.body), ..complete };
    if let Some((kind, _)) = given.texts.iter().find(|(_, texts)| !texts.is_empty()) {
        return Err(Incomplete::Superfluous(*kind));
    }
    let from_file = match complete.mix.is_some() || complete.replay.is_some() {
        false => None,
        true if given.headers.is_empty() => Some(of_file(&complete).ok_or(Incomplete::Unread)?),
        true => return Err(Incomplete::Superfluous(TextKind::Header)),
    };
    let body = given.body.map(|(_, bytes)| bytes);
    let (mut index, one_url) = (0, has_one_url(asked).then(|| given.urls.clone()));
    let asked = asked.clone().with_plans(|record| {
        if let (Some(one), true) = (&one_url, index > 0) {
            given.urls.clone_from(one);
        }
        let mut plan = match &from_file {
            Some(from_file) => {
                let number = if one_url.is_some() { 0 } else { index };
                let FromFile { traffic, arrivals } = from_file.get(number).cloned().ok_or(Incomplete::Unread)?;
                let same_moments = match (&record.load.shape, &arrivals) {
                    (LoadShape::Given { arrivals: then }, Some(now)) => now.is_of(then),
                    (shape, now) => now.is_none() && shape.is_whole(),
                };
                if traffic.record() != record.traffic || !same_moments {
                    let named = |log: &RedactedText| log.text.clone();
                    let (kind, was) = match (&terms.mix, &terms.replay) {
                        (Some(mix), _) => (TextKind::Traffic, mix.file.text.clone()),
                        (None, replay) => {
                            let logs = replay.iter().flat_map(|replay| &replay.logs).map(named);
                            (TextKind::Log, logs.collect::<Vec<_>>().join(","))
                        }
                    };
                    return Err(Incomplete::Differs(MissingInput { kind, was }));
                }
                let mut plan = record.complete_with(traffic, unix.clone())?;
                if let Some(arrivals) = arrivals {
                    plan.load.shape = LoadShape::Given { arrivals };
                }
                plan
            }
            None => {
                let shared = Secrets {
                    headers: given.headers.clone(),
                    body: body.clone(),
                    unix: unix.clone(),
                    ..Secrets::default()
                };
                let secrets = secrets_of(&record, has_user_info(terms, index), &mut given.urls, shared)?;
                record.complete(terms.redact, secrets)?
            }
        };
        index += 1;
        if let Some(resolve) = &mut plan.carriage.resolve {
            // Nobody is asked twice for the same leave.
            resolve.public = terms.public;
        }
        if terms.connections_max.is_none() {
            // What was fitted to another machine may be too few or too many for this one.
            plan.carriage.connections_max = ConnectionPlan::tcp(Vec::new()).connections_max;
        }
        Ok(plan)
    })?;
    if !given.urls.is_empty() {
        return Err(Incomplete::Superfluous(TextKind::Url));
    }
    let user_info: Vec<bool> = terms.targets.iter().map(|target| target.user_info).collect();
    // What differed then must differ now, and what was one must be one: else A would be compared
    // with A.
    if !terms.demo && targets(asked.plans(), &user_info) != terms.targets {
        return Err(Incomplete::Alike);
    }
    Ok((asked, complete))
}

/// What one plan is completed with: its URLs are taken from those given.
fn secrets_of(
    record: &PlanRecord,
    user_info: bool,
    urls: &mut VecDeque<RerunUrl>,
    shared: Secrets,
) -> Result<Secrets, Incomplete> {
    let mut secrets = shared;
    for (number, route) in record.traffic.routes.iter().enumerate() {
        let user_info = user_info && number == 0;
        if !route.target_withheld && !user_info {
            continue;
        }
        let given = urls.pop_front().ok_or(Incomplete::Missing)?;
        let differs = given.origin != record.traffic.origin
            || given.authorization.is_some() != user_info
            || (!route.target_withheld && given.target != route.target);
        if differs {
            let was = format!("{}{}", record.traffic.origin, route.target);
            return Err(Incomplete::Differs(MissingInput { kind: TextKind::Url, was }));
        }
        secrets.headers.extend(given.authorization.iter().map(|value| ("Authorization".to_owned(), value.clone())));
        if route.target_withheld {
            secrets.urls.push_back(given);
        }
    }
    Ok(secrets)
}
