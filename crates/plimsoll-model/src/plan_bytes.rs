//! A complete plan as bytes, for another machine to carry out: bodies, keys and trust included, nothing left out.
//!
//! Tagged fields ([`crate::tagged`]), but unlike figures of a run, a field that a reader does not know is refused: a plan that
//! is understood in part would be another load. Only what is plainly a plan comes back ([`Plan::from_bytes`]); what it takes in
//! memory is bounded by the length of the bytes. Not here: the record of a plan in a run file (`codec`), which holds no secret.

use crate::carriage::{Carriage, HttpChoice, ResolveSpec};
use crate::curve::{Curve, Stage};
use crate::data::{Data, Pick};
use crate::drawn::{ListedSessions, SessionsFacts};
use crate::expect::{AnswerCapture, CaptureFrom, Expectations, JsonExpected, TextExpected};
use crate::given::GivenArrivals;
use crate::grpc::{GrpcCall, GrpcStatusSet};
use crate::json_path::JsonPath;
use crate::listed::{Listed, ListedRequest, ListedTargets, ReplayFacts};
use crate::load::{Arrivals, Load, LoadShape};
use crate::plan::Plan;
use crate::redact::Redact;
use crate::session::{Scenario, SessionOp, Think};
use crate::tagged::{Field, Reader, field, varint};
use crate::tls::TlsSpec;
use crate::traffic::{AskedAround, Choice, Filled, OnceAsked, Origin, Request, Route, StatusSet, Traffic};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

/// The form written by this crate; another is refused.
const FORM: u64 = 3;
/// Most routes, headers of a route, addresses, stages, protocols or issuers: far more than anybody has.
const ITEMS_MAX: usize = 1 << 16;

/// Why bytes are no plan that can be carried out here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Written by another version.
    #[error("the plan is of another plimsoll: use the same version on all machines")]
    OtherForm,
    /// Cut, damaged, or with what no plan has.
    #[error("this is not a whole plan")]
    NotAPlan,
}

impl Plan {
    /// The whole plan, secrets included.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, 1, FORM);
        field(&mut out, 2, |out| traffic(out, &self.traffic));
        field(&mut out, 3, |out| load(out, &self.load));
        field(&mut out, 4, |out| carriage(out, &self.carriage));
        out
    }

    /// The plan that [`Plan::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan, PlanError> {
        let (mut form, mut parts) = (None, (None, None, None));
        let whole = read(Reader::new(bytes), |tag, value| {
            match tag {
                1 => form = Some(value.number()?),
                // What follows is read as the form says.
                _ if form != Some(FORM) => return None,
                2 => once(&mut parts.0, read_traffic(value)?)?,
                3 => once(&mut parts.1, read_load(value)?)?,
                4 => once(&mut parts.2, read_carriage(value)?)?,
                _ => return None,
            }
            Some(())
        });
        match (form, whole, parts) {
            (Some(form), ..) if form != FORM => Err(PlanError::OtherForm),
            (_, Some(()), (Some(traffic), Some(load), Some(carriage))) => {
                let plan = Plan { traffic, load, carriage };
                if plan.is_bounded() { Ok(plan) } else { Err(PlanError::NotAPlan) }
            }
            _ => Err(PlanError::NotAPlan),
        }
    }
}

/// Appends a number, whatever it is: a plan leaves nothing to defaults.
fn number(out: &mut Vec<u8>, tag: u32, value: u64) {
    field(out, tag, |out| varint(out, value));
}

fn bytes(out: &mut Vec<u8>, tag: u32, value: &[u8]) {
    field(out, tag, |out| out.extend_from_slice(value));
}

/// Reads a message of which every field must be known.
fn read<'a>(message: Reader<'a>, mut each: impl FnMut(u32, Reader<'a>) -> Option<()>) -> Option<()> {
    message.fields(|tag, value| each(tag, value).map(|()| Field::Known)).map(|_| ())
}

/// Takes what may come only once.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn push<T>(list: &mut Vec<T>, value: T) -> Option<()> {
    (list.len() < ITEMS_MAX).then(|| list.push(value))
}

fn read_text(value: Reader) -> Option<String> {
    std::str::from_utf8(value.bytes).ok().map(str::to_owned)
}

fn read_flag(value: Reader) -> Option<bool> {
    match value.number()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn read_u32(value: Reader) -> Option<u32> {
    value.number()?.try_into().ok()
}

fn read_port(value: Reader) -> Option<u16> {
    value.number()?.try_into().ok()
}

fn read_level(value: Reader) -> Option<f64> {
    Some(f64::from_le_bytes(value.bytes.try_into().ok()?))
}

fn traffic(out: &mut Vec<u8>, traffic: &Traffic) {
    let Traffic {
        origin: Origin { scheme, host, port },
        routes,
        choice,
        scenarios,
        first,
        data,
        variables,
        around,
        listed,
        redact,
    } = traffic;
    bytes(out, 1, scheme.as_bytes());
    bytes(out, 2, host.as_bytes());
    number(out, 3, u64::from(*port));
    number(
        out,
        4,
        match choice {
            Choice::Weighted => 0,
            Choice::Scenarios => 1,
            Choice::Listed => 2,
        },
    );
    number(
        out,
        5,
        match redact {
            Redact::Secrets => 0,
            Redact::All => 1,
        },
    );
    routes.iter().for_each(|it| field(out, 6, |out| route(out, it)));
    first.iter().for_each(|first| number(out, 7, u64::from(*first)));
    data.iter().for_each(|it| field(out, 8, |out| table(out, it)));
    for (name, value) in variables {
        field(out, 9, |out| {
            bytes(out, 1, name.as_bytes());
            bytes(out, 2, value.as_bytes());
        });
    }
    scenarios.iter().for_each(|it| field(out, 10, |out| scenario(out, it)));
    listed.iter().for_each(|it| field(out, 20, |out| write_listed(out, it)));
    let AskedAround { setup, cleanup, given } = around;
    setup.iter().for_each(|it| field(out, 11, |out| once_asked(out, it)));
    cleanup.iter().for_each(|it| field(out, 12, |out| once_asked(out, it)));
    for (name, value) in given {
        field(out, 13, |out| {
            bytes(out, 1, name.as_bytes());
            bytes(out, 2, value.as_bytes());
        });
    }
}

fn once_asked(out: &mut Vec<u8>, asked: &OnceAsked) {
    let OnceAsked { route: it, times, goes_on } = asked;
    field(out, 1, |out| route(out, it));
    number(out, 2, u64::from(*times));
    number(out, 3, u64::from(*goes_on));
}

fn read_once_asked(message: Reader) -> Option<OnceAsked> {
    let (mut route, mut times, mut goes_on) = (None, None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut route, read_route(value)?),
        2 => once(&mut times, read_u32(value)?),
        3 => once(&mut goes_on, read_flag(value)?),
        _ => None,
    })?;
    Some(OnceAsked { route: route?, times: times?, goes_on: goes_on? })
}

/// What a record cannot show of what is asked around a load, to tell another by; empty where there is nothing.
pub(crate) fn around_bytes(around: &AskedAround) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, list) in [(11, &around.setup), (12, &around.cleanup)] {
        for OnceAsked { route, times, goes_on } in list {
            field(&mut out, tag, |out| {
                let Request { method, target, body, .. } = &route.request;
                [method.as_bytes(), target.as_bytes(), body].into_iter().for_each(|part| bytes(out, 1, part));
                bytes(out, 2, &asked_bytes(route));
                number(out, 3, u64::from(*times));
                number(out, 4, u64::from(*goes_on));
            });
        }
    }
    out
}

/// Name, weight, connection, and the program: an operation is its kind and its numbers, in a message of its own.
fn scenario(out: &mut Vec<u8>, scenario: &Scenario) {
    let Scenario { name, weight, own_connection, ops } = scenario;
    bytes(out, 1, name.as_bytes());
    number(out, 2, u64::from(*weight));
    number(out, 3, u64::from(*own_connection));
    ops.iter().for_each(|op| field(out, 4, |out| session_op(out, op)));
}

fn session_op(out: &mut Vec<u8>, op: &SessionOp) {
    let mut numbers = |kind: u64, numbers: &[u64]| {
        number(out, 1, kind);
        numbers.iter().for_each(|value| number(out, 2, *value));
    };
    match op {
        SessionOp::Ask { route, goes_on } => numbers(0, &[u64::from(*route), u64::from(*goes_on)]),
        SessionOp::Think(Think::Fixed(ns)) => numbers(1, &[*ns]),
        SessionOp::Think(Think::Uniform(from, to)) => numbers(2, &[*from, *to]),
        SessionOp::Think(Think::Exponential(mean)) => numbers(3, &[*mean]),
        SessionOp::Think(Think::LogNormal(median, sigma)) => numbers(4, &[*median, u64::from(*sigma)]),
        SessionOp::Think(Think::Pick(times)) => numbers(9, times),
        SessionOp::Unless { text, empty, to } => {
            numbers(5, &[u64::from(*empty), u64::from(*to)]);
            bytes(out, 3, text.as_bytes());
        }
        SessionOp::Once { to } => numbers(6, &[u64::from(*to)]),
        SessionOp::Repeat { times, from, depth } => {
            numbers(7, &[u64::from(*times), u64::from(*from), u64::from(*depth)]);
        }
        SessionOp::Answered { to } => numbers(8, &[u64::from(*to)]),
    }
}

/// Enough of what the sessions of a scenario do, which a record does not show whole, to tell another program by.
pub(crate) fn program_bytes(scenario: &Scenario) -> Vec<u8> {
    let mut out = Vec::new();
    scenario.ops.iter().for_each(|op| field(&mut out, 4, |out| session_op(out, op)));
    out
}

fn read_scenario(message: Reader) -> Option<Scenario> {
    let (mut name, mut weight, mut own_connection, mut ops) = (None, None, None, Vec::new());
    read(message, |tag, value| match tag {
        1 => once(&mut name, read_text(value)?),
        2 => once(&mut weight, read_u32(value)?),
        3 => once(&mut own_connection, read_flag(value)?),
        4 => push(&mut ops, read_session_op(value)?),
        _ => None,
    })?;
    Some(Scenario { name: name?, weight: weight?, own_connection: own_connection?, ops })
}

fn read_session_op(message: Reader) -> Option<SessionOp> {
    let (mut kind, mut text, mut numbers) = (None, None, Vec::new());
    read(message, |tag, value| match tag {
        1 => once(&mut kind, value.number()?),
        2 => push(&mut numbers, value.number()?),
        3 => once(&mut text, read_text(value)?),
        _ => None,
    })?;
    let flag = |value: u64| (value < 2).then_some(value == 1);
    Some(match (kind?, numbers.as_slice(), text) {
        (0, [route, goes_on], None) => SessionOp::Ask { route: (*route).try_into().ok()?, goes_on: flag(*goes_on)? },
        (1, [ns], None) => SessionOp::Think(Think::Fixed(*ns)),
        (2, [from, to], None) => SessionOp::Think(Think::Uniform(*from, *to)),
        (3, [mean], None) => SessionOp::Think(Think::Exponential(*mean)),
        (4, [median, sigma], None) => SessionOp::Think(Think::LogNormal(*median, (*sigma).try_into().ok()?)),
        (5, [empty, to], Some(text)) => SessionOp::Unless { text, empty: flag(*empty)?, to: (*to).try_into().ok()? },
        (6, [to], None) => SessionOp::Once { to: (*to).try_into().ok()? },
        (7, [times, from, depth], None) => SessionOp::Repeat {
            times: (*times).try_into().ok()?,
            from: (*from).try_into().ok()?,
            depth: (*depth).try_into().ok()?,
        },
        (9, times @ [_, ..], None) => SessionOp::Think(Think::Pick(times.into())),
        (8, [to], None) => SessionOp::Answered { to: (*to).try_into().ok()? },
        _ => return None,
    })
}

fn read_traffic(message: Reader) -> Option<Traffic> {
    let (mut scheme, mut host, mut port, mut choice, mut redact) = (None, None, None, None, None);
    let (mut first, mut data, mut variables, mut scenarios) = (None, Vec::new(), Vec::new(), Vec::new());
    let (mut routes, mut listed, mut around) = (Vec::new(), None, AskedAround::default());
    read(message, |tag, value| match tag {
        1 => once(&mut scheme, read_text(value)?),
        2 => once(&mut host, read_text(value)?),
        3 => once(&mut port, read_port(value)?),
        4 => once(
            &mut choice,
            match value.number()? {
                0 => Choice::Weighted,
                1 => Choice::Scenarios,
                2 => Choice::Listed,
                _ => return None,
            },
        ),
        5 => once(
            &mut redact,
            match value.number()? {
                0 => Redact::Secrets,
                1 => Redact::All,
                _ => return None,
            },
        ),
        6 => push(&mut routes, read_route(value)?),
        7 => once(&mut first, value.number()?.try_into().ok()?),
        8 => push(&mut data, Arc::new(read_table(value)?)),
        9 => push(&mut variables, read_header(value)?),
        10 => push(&mut scenarios, read_scenario(value)?),
        11 => push(&mut around.setup, read_once_asked(value)?),
        12 => push(&mut around.cleanup, read_once_asked(value)?),
        13 => push(&mut around.given, read_header(value)?),
        20 => once(&mut listed, Arc::new(read_listed(value)?)),
        _ => None,
    })?;
    let origin = Origin { scheme: scheme?, host: host?, port: port? };
    Some(Traffic {
        origin,
        routes,
        choice: choice?,
        scenarios,
        first,
        data,
        variables,
        around,
        listed,
        redact: redact?,
    })
}

fn route(out: &mut Vec<u8>, route: &Route) {
    let Route { label, request, weight, ok_status, timeout_ns, filled, expect, captures, follow, grpc } = route;
    let Request { method, target, headers, body } = request;
    bytes(out, 1, label.as_bytes());
    bytes(out, 2, method.as_bytes());
    bytes(out, 3, target.as_bytes());
    for (name, value) in headers {
        field(out, 4, |out| {
            bytes(out, 1, name.as_bytes());
            bytes(out, 2, value.as_bytes());
        });
    }
    bytes(out, 5, body);
    number(out, 6, u64::from(*weight));
    bytes(out, 7, String::from(ok_status.clone()).as_bytes());
    number(out, 8, *timeout_ns);
    let Filled { target, headers, body } = *filled;
    number(out, 9, u64::from(target) | u64::from(headers) << 1 | u64::from(body) << 2);
    field(out, 10, |out| expectations(out, expect));
    for AnswerCapture { name, from } in captures {
        field(out, 11, |out| {
            bytes(out, 1, name.as_bytes());
            bytes(out, 2, from.text().as_bytes());
        });
    }
    if let Some(GrpcCall { ok, content, types, gives_stream, in_turn }) = grpc {
        field(out, 12, |out| {
            bytes(out, 1, ok.to_string().as_bytes());
            content.iter().for_each(|content| bytes(out, 2, content));
            types.iter().for_each(|types| bytes(out, 3, types));
            number(out, 4, u64::from(*gives_stream) | u64::from(*in_turn) << 1);
        });
    }
    number(out, 13, u64::from(*follow));
}

fn expectations(out: &mut Vec<u8>, expect: &Expectations) {
    let Expectations { within_ns, headers, json, body } = expect;
    within_ns.iter().for_each(|ns| number(out, 1, *ns));
    for (name, expected) in headers {
        field(out, 2, |out| {
            bytes(out, 1, name.as_bytes());
            field(out, 2, |out| text_expected(out, expected));
        });
    }
    for (path, expected) in json {
        field(out, 3, |out| {
            bytes(out, 1, path.text().as_bytes());
            match expected {
                JsonExpected::Null => number(out, 2, 0),
                JsonExpected::Flag(flag) => number(out, 2, 1 + u64::from(*flag)),
                JsonExpected::Number(text) => bytes(out, 3, text.as_bytes()),
                JsonExpected::Text(text) => bytes(out, 4, text.as_bytes()),
            }
        });
    }
    body.iter().for_each(|expected| field(out, 4, |out| text_expected(out, expected)));
}

fn text_expected(out: &mut Vec<u8>, expected: &TextExpected) {
    match expected {
        TextExpected::Holds(text) => bytes(out, 1, text.as_bytes()),
        TextExpected::Matches(pattern) => bytes(out, 2, pattern.as_bytes()),
    }
}

fn read_expectations(message: Reader) -> Option<Expectations> {
    let (mut within_ns, mut body) = (None, None);
    let (mut headers, mut json) = (Vec::new(), Vec::new());
    read(message, |tag, value| match tag {
        1 => once(&mut within_ns, value.number()?),
        2 => push(&mut headers, read_header_expected(value)?),
        3 => push(&mut json, read_json_expected(value)?),
        4 => once(&mut body, read_text_expected(value)?),
        _ => None,
    })?;
    Some(Expectations { within_ns, headers, json, body })
}

fn read_header_expected(message: Reader) -> Option<(String, TextExpected)> {
    let (mut name, mut expected) = (None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut name, read_text(value)?),
        2 => once(&mut expected, read_text_expected(value)?),
        _ => None,
    })?;
    Some((name?, expected?))
}

fn read_text_expected(message: Reader) -> Option<TextExpected> {
    let mut expected = None;
    read(message, |tag, value| match tag {
        1 => once(&mut expected, TextExpected::Holds(read_text(value)?)),
        2 => once(&mut expected, TextExpected::Matches(read_text(value)?)),
        _ => None,
    })?;
    expected
}

fn read_json_expected(message: Reader) -> Option<(JsonPath, JsonExpected)> {
    let (mut path, mut expected) = (None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut path, JsonPath::parse(std::str::from_utf8(value.bytes).ok()?).ok()?),
        2 => once(
            &mut expected,
            match value.number()? {
                0 => JsonExpected::Null,
                1 => JsonExpected::Flag(false),
                2 => JsonExpected::Flag(true),
                _ => return None,
            },
        ),
        3 => once(&mut expected, JsonExpected::Number(read_text(value)?)),
        4 => once(&mut expected, JsonExpected::Text(read_text(value)?)),
        _ => None,
    })?;
    Some((path?, expected?))
}

fn read_capture(message: Reader) -> Option<AnswerCapture> {
    let (name, from) = read_header(message)?;
    Some(AnswerCapture { name, from: CaptureFrom::parse(&from).ok()? })
}

/// What a record cannot show of a route whole: templates of its path and headers, what is expected and what is taken. Nothing
/// else of it, so that a header that is given anew makes no other route. Empty where there is none.
pub(crate) fn asked_bytes(route: &Route) -> Vec<u8> {
    let mut out = Vec::new();
    if route.filled.target {
        bytes(&mut out, 3, route.request.target.as_bytes());
    }
    for (name, value) in route.request.headers.iter().filter(|(_, value)| route.filled.headers && value.contains("{{"))
    {
        bytes(&mut out, 4, name.as_bytes());
        bytes(&mut out, 4, value.as_bytes());
    }
    if !route.expect.is_empty() {
        field(&mut out, 10, |out| expectations(out, &route.expect));
    }
    for AnswerCapture { name, from } in &route.captures {
        bytes(&mut out, 11, name.as_bytes());
        bytes(&mut out, 11, from.text().as_bytes());
    }
    if route.follow > 0 {
        number(&mut out, 13, u64::from(route.follow));
    }
    out
}

/// Paths, then what each arrival asks: the differences to the number of the path before would be no shorter.
fn write_listed(out: &mut Vec<u8>, listed: &Listed) {
    let Listed { targets, entries, sessions, facts } = listed;
    targets.iter().for_each(|target| bytes(out, 1, target.as_bytes()));
    field(out, 2, |out| {
        for ListedRequest { target, route, status } in entries {
            varint(out, u64::from(*target));
            varint(out, u64::from(*route));
            varint(out, u64::from(*status));
        }
    });
    if let Some(sessions) = sessions {
        field(out, 8, |out| {
            // Moments are in order: the differences are short.
            let mut before = 0;
            for start_ns in sessions.starts_ns() {
                varint(out, start_ns - std::mem::replace(&mut before, *start_ns));
            }
        });
        for (tag, numbers) in [(9, sessions.by_session()), (10, sessions.ends())] {
            field(out, tag, |out| numbers.iter().for_each(|number| varint(out, u64::from(*number))));
        }
    }
    let ReplayFacts { speed_milli, scale_milli, lines, left_out, spread, drawn_from } = facts;
    number(out, 3, *speed_milli);
    number(out, 4, *scale_milli);
    number(out, 5, *lines);
    for (why, count) in left_out {
        field(out, 6, |out| {
            bytes(out, 1, why.as_bytes());
            number(out, 2, *count);
        });
    }
    number(out, 7, u64::from(*spread));
    if let Some(SessionsFacts { sessions, span_ns, busiest_minute, busiest_second }) = drawn_from {
        field(out, 11, |out| {
            for (tag, value) in [(1, sessions), (2, span_ns), (3, busiest_minute), (4, busiest_second)] {
                number(out, tag, *value);
            }
        });
    }
}

fn read_sessions_facts(message: Reader) -> Option<SessionsFacts> {
    let mut values = [None; 4];
    read(message, |tag, value| once(values.get_mut((tag as usize).checked_sub(1)?)?, value.number()?))?;
    let [sessions, span_ns, busiest_minute, busiest_second] = values;
    Some(SessionsFacts {
        sessions: sessions?,
        span_ns: span_ns?,
        busiest_minute: busiest_minute?,
        busiest_second: busiest_second?,
    })
}

/// Numbers one after the other.
fn read_numbers<T>(mut value: Reader, mut each: impl FnMut(u64) -> Option<T>) -> Option<Vec<T>> {
    let mut numbers = Vec::new();
    while !value.bytes.is_empty() {
        numbers.push(each(value.varint()?)?);
    }
    Some(numbers)
}

fn read_listed(message: Reader) -> Option<Listed> {
    let (mut targets, mut entries, mut facts) = (ListedTargets::default(), None, ReplayFacts::default());
    let (mut speed_milli, mut scale_milli, mut lines, mut spread) = (None, None, None, None);
    let (mut starts, mut by_session, mut ends) = (None, None, None);
    read(message, |tag, value| match tag {
        1 => targets.push(std::str::from_utf8(value.bytes).ok()?).map(|_| ()),
        2 => once(&mut entries, read_entries(value)?),
        3 => once(&mut speed_milli, value.number()?),
        4 => once(&mut scale_milli, value.number()?),
        5 => once(&mut lines, value.number()?),
        6 => {
            let (mut why, mut count) = (None, None);
            read(value, |tag, value| match tag {
                1 => once(&mut why, read_text(value)?),
                2 => once(&mut count, value.number()?),
                _ => None,
            })?;
            (facts.left_out.len() < ITEMS_MAX && facts.left_out.insert(why?, count?).is_none()).then_some(())
        }
        7 => once(&mut spread, read_flag(value)?),
        8 => {
            let mut at_ns = 0u64;
            let starts_ns = read_numbers(value, |step_ns| {
                at_ns = at_ns.checked_add(step_ns)?;
                Some(at_ns)
            });
            once(&mut starts, starts_ns?)
        }
        9 => once(&mut by_session, read_numbers(value, |number| u32::try_from(number).ok())?),
        10 => once(&mut ends, read_numbers(value, |number| u32::try_from(number).ok())?),
        11 => once(&mut facts.drawn_from, read_sessions_facts(value)?),
        _ => None,
    })?;
    let sessions = match (starts, by_session, ends) {
        (None, None, None) => None,
        (Some(starts), Some(by_session), Some(ends)) => Some(ListedSessions::new(starts, by_session, ends)?),
        _ => return None,
    };
    (facts.speed_milli, facts.scale_milli) = (speed_milli?, scale_milli?);
    (facts.lines, facts.spread) = (lines?, spread?);
    Some(Listed { targets: targets.into(), entries: entries?, sessions, facts })
}

fn read_entries(mut value: Reader) -> Option<Vec<ListedRequest>> {
    let mut entries = Vec::new();
    while !value.bytes.is_empty() {
        let mut next = || value.varint();
        let (target, route, status) = (next()?, next()?, next()?);
        entries.push(ListedRequest {
            target: target.try_into().ok()?,
            route: route.try_into().ok()?,
            status: status.try_into().ok()?,
        });
    }
    Some(entries)
}

/// From each moment to the next, and what part of them is measured.
fn given(out: &mut Vec<u8>, load: &Load, arrivals: &GivenArrivals) {
    field(out, 10, |out| {
        let mut before_ns = 0;
        for start_ns in arrivals.starts_ns().iter() {
            varint(out, start_ns - before_ns);
            before_ns = *start_ns;
        }
    });
    let span_ns = arrivals.rate().duration_ns().unwrap_or(0);
    number(out, 11, load.warmup_ns.saturating_add(span_ns));
}

fn read_starts(mut value: Reader) -> Option<Vec<u64>> {
    let (mut starts_ns, mut at_ns) = (Vec::new(), 0u64);
    while !value.bytes.is_empty() {
        at_ns = at_ns.checked_add(value.varint()?)?;
        starts_ns.push(at_ns);
    }
    Some(starts_ns)
}

/// Rows with the cells that each has.
fn table(out: &mut Vec<u8>, data: &Data) {
    bytes(out, 1, data.name.as_bytes());
    data.columns.iter().for_each(|column| bytes(out, 2, column.as_bytes()));
    let (kind, exponent_milli) = match data.pick {
        Pick::Sequential => (0, 0),
        Pick::Random => (1, 0),
        Pick::Unique => (2, 0),
        Pick::Zipf { exponent_milli } => (3, exponent_milli),
    };
    number(out, 3, kind);
    number(out, 4, u64::from(exponent_milli));
    number(out, 5, u64::from(data.each_use));
    data.cells().for_each(|cell| bytes(out, 6, cell.as_bytes()));
}

fn read_table(message: Reader) -> Option<Data> {
    let (mut name, mut kind, mut exponent_milli, mut each_use) = (None, None, None, None);
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    read(message, |tag, value| match tag {
        1 => once(&mut name, read_text(value)?),
        2 => push(&mut columns, read_text(value)?),
        3 => once(&mut kind, value.number()?),
        4 => once(&mut exponent_milli, read_u32(value)?),
        5 => once(&mut each_use, read_flag(value)?),
        6 => {
            cells.push(std::str::from_utf8(value.bytes).ok()?);
            Some(())
        }
        _ => None,
    })?;
    let pick = match kind? {
        0 => Pick::Sequential,
        1 => Pick::Random,
        2 => Pick::Unique,
        3 => Pick::Zipf { exponent_milli: exponent_milli? },
        _ => return None,
    };
    let width = columns.len();
    let mut data = Data::new(name?, columns, pick, each_use?);
    if width > 0 {
        cells.chunks(width).try_for_each(|row| data.push(row.iter().copied()))?;
    }
    Some(data)
}

fn read_route(message: Reader) -> Option<Route> {
    let (mut label, mut method, mut target, mut body) = (None, None, None, None);
    let (mut weight, mut ok_status, mut timeout_ns, mut filled, mut grpc) = (None, None, None, None, None);
    let mut follow = None;
    let (mut headers, mut expect, mut captures) = (Vec::new(), None, Vec::new());
    read(message, |tag, value| match tag {
        1 => once(&mut label, read_text(value)?),
        2 => once(&mut method, read_text(value)?),
        3 => once(&mut target, read_text(value)?),
        4 => push(&mut headers, read_header(value)?),
        5 => once(&mut body, value.bytes.to_vec()),
        6 => once(&mut weight, read_u32(value)?),
        7 => once(&mut ok_status, StatusSet::parse(std::str::from_utf8(value.bytes).ok()?).ok()?),
        8 => once(&mut timeout_ns, value.number()?),
        9 => once(&mut filled, value.number().filter(|bits| *bits < 8)?),
        10 => once(&mut expect, read_expectations(value)?),
        11 => push(&mut captures, read_capture(value)?),
        12 => once(&mut grpc, read_call(value)?),
        13 => once(&mut follow, value.number().filter(|hops| *hops <= u64::from(Route::FOLLOW_MAX))? as u8),
        _ => None,
    })?;
    let bits = filled?;
    let filled = Filled { target: bits & 1 != 0, headers: bits & 2 != 0, body: bits & 4 != 0 };
    let request = Request { method: method?, target: target?, headers, body: body? };
    let (label, weight, ok_status, timeout_ns) = (label?, weight?, ok_status?, timeout_ns?);
    Some(Route {
        label,
        request,
        weight,
        ok_status,
        timeout_ns,
        filled,
        expect: expect?,
        captures,
        follow: follow?,
        grpc,
    })
}

fn read_call(message: Reader) -> Option<GrpcCall> {
    let (mut ok, mut content, mut types, mut how) = (None, None, None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut ok, GrpcStatusSet::parse(std::str::from_utf8(value.bytes).ok()?).ok()?),
        2 => once(&mut content, value.bytes.to_vec()),
        3 => once(&mut types, value.bytes.into()),
        4 => once(&mut how, value.number()?),
        _ => None,
    })?;
    let how = how.filter(|how| *how < 4)?;
    Some(GrpcCall { ok: ok?, content, types, gives_stream: how & 1 != 0, in_turn: how & 2 != 0 })
}

fn read_header(message: Reader) -> Option<(String, String)> {
    let (mut name, mut content) = (None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut name, read_text(value)?),
        2 => once(&mut content, read_text(value)?),
        _ => None,
    })?;
    Some((name?, content?))
}

fn load(out: &mut Vec<u8>, load: &Load) {
    let Load { seed, shape, requests_max, duration_ns, warmup_ns, grace_ns, connections_ready, interval_ns, newcomers } =
        load;
    number(out, 1, *seed);
    // That of given moments follows from them.
    let follows = Curve { stages: Vec::new() };
    let (kind, curve) = match shape {
        LoadShape::Closed { users } => (0, users),
        LoadShape::Open { rate, arrivals: Arrivals::Constant } => (1, rate),
        LoadShape::Open { rate, arrivals: Arrivals::Poisson } => (2, rate),
        LoadShape::Open { rate, arrivals: Arrivals::Replayed } => (4, rate),
        LoadShape::Given { arrivals } => {
            given(out, load, arrivals);
            (3, &follows)
        }
    };
    number(out, 2, kind);
    for Stage { from, to, duration_ns } in &curve.stages {
        field(out, 3, |out| {
            bytes(out, 1, &from.to_le_bytes());
            bytes(out, 2, &to.to_le_bytes());
            duration_ns.iter().for_each(|ns| number(out, 3, *ns));
        });
    }
    requests_max.iter().for_each(|requests| number(out, 4, *requests));
    duration_ns.iter().for_each(|ns| number(out, 5, *ns));
    number(out, 6, *warmup_ns);
    number(out, 7, *grace_ns);
    number(out, 8, u64::from(*connections_ready));
    number(out, 9, *interval_ns);
    number(out, 12, u64::from(*newcomers));
}

fn read_load(message: Reader) -> Option<Load> {
    let (mut seed, mut kind, mut requests_max, mut duration_ns) = (None, None, None, None);
    let (mut warmup_ns, mut grace_ns, mut connections_ready, mut interval_ns) = (None, None, None, None);
    let (mut stages, mut starts_ns, mut given_end_ns, mut newcomers) = (Vec::new(), None, None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut seed, value.number()?),
        2 => once(&mut kind, value.number()?),
        3 => push(&mut stages, read_stage(value)?),
        4 => once(&mut requests_max, value.number()?),
        5 => once(&mut duration_ns, value.number()?),
        6 => once(&mut warmup_ns, value.number()?),
        7 => once(&mut grace_ns, value.number()?),
        8 => once(&mut connections_ready, read_u32(value)?),
        9 => once(&mut interval_ns, value.number()?),
        10 => once(&mut starts_ns, read_starts(value)?),
        11 => once(&mut given_end_ns, value.number()?),
        12 => once(&mut newcomers, value.number().filter(|it| *it <= 1)? == 1),
        _ => None,
    })?;
    let curve = Curve { stages };
    if (starts_ns.is_some() || given_end_ns.is_some()) != (kind == Some(3)) {
        return None;
    }
    let shape = match kind? {
        0 => LoadShape::Closed { users: curve },
        1 => LoadShape::Open { rate: curve, arrivals: Arrivals::Constant },
        2 => LoadShape::Open { rate: curve, arrivals: Arrivals::Poisson },
        4 => LoadShape::Open { rate: curve, arrivals: Arrivals::Replayed },
        3 => LoadShape::Given { arrivals: GivenArrivals::new(starts_ns?, warmup_ns?, given_end_ns?)? },
        _ => return None,
    };
    Some(Load {
        seed: seed?,
        shape,
        requests_max,
        duration_ns,
        warmup_ns: warmup_ns?,
        grace_ns: grace_ns?,
        connections_ready: connections_ready?,
        interval_ns: interval_ns?,
        newcomers: newcomers?,
    })
}

fn read_stage(message: Reader) -> Option<Stage> {
    let (mut from, mut to, mut duration_ns) = (None, None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut from, read_level(value)?),
        2 => once(&mut to, read_level(value)?),
        3 => once(&mut duration_ns, value.number()?),
        _ => None,
    })?;
    Some(Stage { from: from?, to: to?, duration_ns })
}

fn carriage(out: &mut Vec<u8>, carriage: &Carriage) {
    let Carriage { addresses, unix, resolve, tls, http, streams_max, keep_alive, close_reset, connections_max } =
        carriage;
    addresses.iter().for_each(|it| field(out, 1, |out| address(out, it)));
    unix.iter().for_each(|path| bytes(out, 2, path.as_bytes()));
    if let Some(ResolveSpec { host, port, every_ns, public }) = resolve {
        field(out, 3, |out| {
            bytes(out, 1, host.as_bytes());
            number(out, 2, u64::from(*port));
            number(out, 3, *every_ns);
            number(out, 4, u64::from(*public));
        });
    }
    tls.iter().for_each(|it| field(out, 4, |out| tls_spec(out, it)));
    number(out, 5, u64::from(*keep_alive));
    number(out, 6, u64::from(*close_reset));
    number(out, 7, u64::from(*connections_max));
    let http = match http {
        HttpChoice::Auto => 0,
        HttpChoice::H1 => 1,
        HttpChoice::H2 => 2,
    };
    number(out, 8, http);
    number(out, 9, u64::from(*streams_max));
}

fn read_carriage(message: Reader) -> Option<Carriage> {
    let (mut unix, mut resolve, mut tls) = (None, None, None);
    let (mut keep_alive, mut close_reset, mut connections_max) = (None, None, None);
    let (mut http, mut streams_max) = (None, None);
    let mut addresses = Vec::new();
    read(message, |tag, value| match tag {
        1 => push(&mut addresses, read_address(value)?),
        2 => once(&mut unix, read_text(value)?),
        3 => once(&mut resolve, read_resolve(value)?),
        4 => once(&mut tls, read_tls(value)?),
        5 => once(&mut keep_alive, read_flag(value)?),
        6 => once(&mut close_reset, read_flag(value)?),
        7 => once(&mut connections_max, read_u32(value)?),
        8 => once(
            &mut http,
            match value.number()? {
                0 => HttpChoice::Auto,
                1 => HttpChoice::H1,
                2 => HttpChoice::H2,
                _ => return None,
            },
        ),
        9 => once(&mut streams_max, read_u32(value).filter(|streams| *streams > 0)?),
        _ => None,
    })?;
    let (keep_alive, close_reset, connections_max) = (keep_alive?, close_reset?, connections_max?);
    let (http, streams_max) = (http?, streams_max?);
    Some(Carriage { addresses, unix, resolve, tls, http, streams_max, keep_alive, close_reset, connections_max })
}

/// The bytes of the IP address, the port, and of IPv6 also flow and scope.
fn address(out: &mut Vec<u8>, address: &SocketAddr) {
    match address {
        SocketAddr::V4(v4) => out.extend_from_slice(&v4.ip().octets()),
        SocketAddr::V6(v6) => out.extend_from_slice(&v6.ip().octets()),
    }
    out.extend_from_slice(&address.port().to_le_bytes());
    if let SocketAddr::V6(v6) = address {
        out.extend_from_slice(&v6.flowinfo().to_le_bytes());
        out.extend_from_slice(&v6.scope_id().to_le_bytes());
    }
}

fn read_address(value: Reader) -> Option<SocketAddr> {
    if let Ok([a, b, c, d, port @ ..]) = <[u8; 6]>::try_from(value.bytes) {
        return Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_le_bytes(port)).into());
    }
    let (ip, rest) = value.bytes.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (flow, rest) = rest.split_first_chunk::<4>()?;
    let scope = <[u8; 4]>::try_from(rest).ok()?;
    let (port, flow, scope) = (u16::from_le_bytes(*port), u32::from_le_bytes(*flow), u32::from_le_bytes(scope));
    Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, flow, scope).into())
}

fn read_resolve(message: Reader) -> Option<ResolveSpec> {
    let (mut host, mut port, mut every_ns, mut public) = (None, None, None, None);
    read(message, |tag, value| match tag {
        1 => once(&mut host, read_text(value)?),
        2 => once(&mut port, read_port(value)?),
        3 => once(&mut every_ns, value.number()?),
        4 => once(&mut public, read_flag(value)?),
        _ => None,
    })?;
    Some(ResolveSpec { host: host?, port: port?, every_ns: every_ns?, public: public? })
}

fn tls_spec(out: &mut Vec<u8>, tls: &TlsSpec) {
    let TlsSpec { server_name, verify, resume, alpn, roots, certificate_pem, key_pem } = tls;
    bytes(out, 1, server_name.as_bytes());
    number(out, 2, u64::from(*verify));
    number(out, 3, u64::from(*resume));
    alpn.iter().for_each(|protocol| bytes(out, 4, protocol.as_bytes()));
    roots.iter().for_each(|root| bytes(out, 5, root));
    certificate_pem.iter().for_each(|pem| bytes(out, 6, pem));
    key_pem.iter().for_each(|pem| bytes(out, 7, pem));
}

fn read_tls(message: Reader) -> Option<TlsSpec> {
    let (mut server_name, mut verify, mut resume) = (None, None, None);
    let (mut certificate_pem, mut key_pem) = (None, None);
    let (mut alpn, mut roots) = (Vec::new(), Vec::new());
    read(message, |tag, value| match tag {
        1 => once(&mut server_name, read_text(value)?),
        2 => once(&mut verify, read_flag(value)?),
        3 => once(&mut resume, read_flag(value)?),
        4 => push(&mut alpn, read_text(value)?),
        5 => push(&mut roots, value.bytes.to_vec()),
        6 => once(&mut certificate_pem, value.bytes.to_vec()),
        7 => once(&mut key_pem, value.bytes.to_vec()),
        _ => None,
    })?;
    let (server_name, verify, resume) = (server_name?, verify?, resume?);
    Some(TlsSpec { server_name, verify, resume, alpn, roots, certificate_pem, key_pem })
}
