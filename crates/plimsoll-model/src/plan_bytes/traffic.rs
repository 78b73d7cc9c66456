//! The traffic of a plan as bytes: routes, scenarios, tables of values, setup and teardown.

use super::fields::{
    append_bytes, append_number, append_pair, for_each_field, push, read_flag, read_pair, read_port, read_text,
    read_u32, store_once,
};
use super::listed::{read_request_list, write_request_list};
use super::route::{read_route, route_digest_input, write_route};
use crate::data::{RowChoice, ValueTable};
use crate::redact::RedactionLevel;
use crate::session::{Scenario, SessionOp, ThinkTime};
use crate::tagged_fields::{FieldReader, append_field};
use crate::traffic::{OneOffRoute, Origin, Request, RouteChoice, SetupTeardown, Traffic};
use std::sync::Arc;

pub(super) fn write_traffic(out: &mut Vec<u8>, traffic: &Traffic) {
    let Traffic {
        origin: Origin { scheme, host, port },
        routes,
        choice,
        scenarios,
        preflight,
        data,
        variables,
        setup_teardown,
        request_list,
        redact,
    } = traffic;
    append_bytes(out, 1, scheme.as_bytes());
    append_bytes(out, 2, host.as_bytes());
    append_number(out, 3, u64::from(*port));
    append_number(
        out,
        4,
        match choice {
            RouteChoice::Weighted => 0,
            RouteChoice::Scenarios => 1,
            RouteChoice::RequestList => 2,
        },
    );
    append_number(
        out,
        5,
        match redact {
            RedactionLevel::Secrets => 0,
            RedactionLevel::All => 1,
            RedactionLevel::SecretsButBodies => 2,
        },
    );
    routes.iter().for_each(|it| append_field(out, 6, |out| write_route(out, it)));
    preflight.iter().for_each(|first| append_number(out, 7, u64::from(*first)));
    data.iter().for_each(|it| append_field(out, 8, |out| encode_table(out, it)));
    variables.iter().for_each(|(name, value)| append_pair(out, 9, name, value));
    scenarios.iter().for_each(|it| append_field(out, 10, |out| encode_scenario(out, it)));
    request_list.iter().for_each(|it| append_field(out, 20, |out| write_request_list(out, it)));
    let SetupTeardown { setup, teardown: cleanup, captured_values: given } = setup_teardown;
    setup.iter().for_each(|it| append_field(out, 11, |out| encode_one_off_requests(out, it)));
    cleanup.iter().for_each(|it| append_field(out, 12, |out| encode_one_off_requests(out, it)));
    given.iter().for_each(|(name, value)| append_pair(out, 13, name, value));
}

pub(super) fn read_traffic(message: FieldReader) -> Option<Traffic> {
    let (mut scheme, mut host, mut port, mut choice, mut redact) = (None, None, None, None, None);
    let (mut preflight, mut data, mut variables, mut scenarios) = (None, Vec::new(), Vec::new(), Vec::new());
    let (mut routes, mut request_list, mut setup_teardown) = (Vec::new(), None, SetupTeardown::default());
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut scheme, read_text(value)?),
        2 => store_once(&mut host, read_text(value)?),
        3 => store_once(&mut port, read_port(value)?),
        4 => store_once(
            &mut choice,
            match value.read_number()? {
                0 => RouteChoice::Weighted,
                1 => RouteChoice::Scenarios,
                2 => RouteChoice::RequestList,
                _ => return None,
            },
        ),
        5 => store_once(
            &mut redact,
            match value.read_number()? {
                0 => RedactionLevel::Secrets,
                1 => RedactionLevel::All,
                2 => RedactionLevel::SecretsButBodies,
                _ => return None,
            },
        ),
        6 => push(&mut routes, read_route(value)?),
        7 => store_once(&mut preflight, value.read_number()?.try_into().ok()?),
        8 => push(&mut data, Arc::new(decode_table(value)?)),
        9 => push(&mut variables, read_pair(value)?),
        10 => push(&mut scenarios, decode_scenario(value)?),
        11 => push(&mut setup_teardown.setup, decode_one_off_requests(value)?),
        12 => push(&mut setup_teardown.teardown, decode_one_off_requests(value)?),
        13 => push(&mut setup_teardown.captured_values, read_pair(value)?),
        20 => store_once(&mut request_list, Arc::new(read_request_list(value)?)),
        _ => None,
    })?;
    let origin = Origin { scheme: scheme?, host: host?, port: port? };
    Some(Traffic {
        origin,
        routes,
        choice: choice?,
        scenarios,
        preflight,
        data,
        variables,
        setup_teardown,
        request_list,
        redact: redact?,
    })
}

fn encode_one_off_requests(out: &mut Vec<u8>, route: &OneOffRoute) {
    let OneOffRoute { route: it, times, may_fail: may_continue } = route;
    append_field(out, 1, |out| write_route(out, it));
    append_number(out, 2, u64::from(*times));
    append_number(out, 3, u64::from(*may_continue));
}

fn decode_one_off_requests(message: FieldReader) -> Option<OneOffRoute> {
    let (mut route, mut times, mut may_continue) = (None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut route, read_route(value)?),
        2 => store_once(&mut times, read_u32(value)?),
        3 => store_once(&mut may_continue, read_flag(value)?),
        _ => None,
    })?;
    Some(OneOffRoute { route: route?, times: times?, may_fail: may_continue? })
}

/// Encodes the setup and teardown requests as input of a digest, because a record contains only the
/// digest of these requests. The result is empty without setup and teardown.
pub(crate) fn setup_teardown_digest_input(setup_teardown: &SetupTeardown) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, list) in [(11, &setup_teardown.setup), (12, &setup_teardown.teardown)] {
        for OneOffRoute { route, times, may_fail: may_continue } in list {
            append_field(&mut out, tag, |out| {
                let Request { method, target, body, .. } = &route.request;
                [method.as_bytes(), target.as_bytes(), body].into_iter().for_each(|part| append_bytes(out, 1, part));
                append_bytes(out, 2, &route_digest_input(route));
                append_number(out, 3, u64::from(*times));
                append_number(out, 4, u64::from(*may_continue));
            });
        }
    }
    out
}

/// Appends a scenario: name, weight, own connection, program, and cookies. Each operation of the
/// program is a message with the kind and the numbers of the operation.
fn encode_scenario(out: &mut Vec<u8>, scenario: &Scenario) {
    let Scenario { name, weight, own_connection, cookies, ops } = scenario;
    append_bytes(out, 1, name.as_bytes());
    append_number(out, 2, u64::from(*weight));
    append_number(out, 3, u64::from(*own_connection));
    ops.iter().for_each(|op| append_field(out, 4, |out| encode_session_op(out, op)));
    append_number(out, 5, u64::from(*cookies));
}

fn encode_session_op(out: &mut Vec<u8>, op: &SessionOp) {
    let mut numbers = |kind: u64, numbers: &[u64]| {
        append_number(out, 1, kind);
        numbers.iter().for_each(|value| append_number(out, 2, *value));
    };
    match op {
        SessionOp::Send { route, may_continue } => numbers(0, &[u64::from(*route), u64::from(*may_continue)]),
        SessionOp::Think(ThinkTime::Fixed(ns)) => numbers(1, &[*ns]),
        SessionOp::Think(ThinkTime::Uniform(from, to)) => numbers(2, &[*from, *to]),
        SessionOp::Think(ThinkTime::Exponential(mean)) => numbers(3, &[*mean]),
        SessionOp::Think(ThinkTime::LogNormal(median, sigma)) => numbers(4, &[*median, u64::from(*sigma)]),
        SessionOp::Think(ThinkTime::Pick(times)) => numbers(9, times),
        SessionOp::JumpUnlessText { text, empty, to } => {
            numbers(5, &[u64::from(*empty), u64::from(*to)]);
            append_bytes(out, 3, text.as_bytes());
        }
        SessionOp::JumpUnlessFirstSession { to } => numbers(6, &[u64::from(*to)]),
        SessionOp::Repeat { times, from, depth } => {
            numbers(7, &[u64::from(*times), u64::from(*from), u64::from(*depth)]);
        }
        SessionOp::JumpIfSucceeded { to } => numbers(8, &[u64::from(*to)]),
    }
}

/// Encodes the steps of a scenario, as input for the digest in the scenario's record. The record
/// does not list all steps, so the digest shows whether two scenarios have the same steps.
pub(crate) fn scenario_digest_input(scenario: &Scenario) -> Vec<u8> {
    let mut out = Vec::new();
    scenario.ops.iter().for_each(|op| append_field(&mut out, 4, |out| encode_session_op(out, op)));
    out
}

fn decode_scenario(message: FieldReader) -> Option<Scenario> {
    let (mut name, mut weight, mut own_connection, mut cookies) = (None, None, None, None);
    let mut ops = Vec::new();
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut name, read_text(value)?),
        2 => store_once(&mut weight, read_u32(value)?),
        3 => store_once(&mut own_connection, read_flag(value)?),
        4 => push(&mut ops, decode_session_op(value)?),
        5 => store_once(&mut cookies, read_flag(value)?),
        _ => None,
    })?;
    Some(Scenario { name: name?, weight: weight?, own_connection: own_connection?, cookies: cookies?, ops })
}

fn decode_session_op(message: FieldReader) -> Option<SessionOp> {
    let (mut kind, mut text, mut numbers) = (None, None, Vec::new());
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut kind, value.read_number()?),
        2 => push(&mut numbers, value.read_number()?),
        3 => store_once(&mut text, read_text(value)?),
        _ => None,
    })?;
    let flag = |value: u64| (value < 2).then_some(value == 1);
    Some(match (kind?, numbers.as_slice(), text) {
        (0, [route, may_continue], None) => {
            SessionOp::Send { route: (*route).try_into().ok()?, may_continue: flag(*may_continue)? }
        }
        (1, [ns], None) => SessionOp::Think(ThinkTime::Fixed(*ns)),
        (2, [from, to], None) => SessionOp::Think(ThinkTime::Uniform(*from, *to)),
        (3, [mean], None) => SessionOp::Think(ThinkTime::Exponential(*mean)),
        (4, [median, sigma], None) => SessionOp::Think(ThinkTime::LogNormal(*median, (*sigma).try_into().ok()?)),
        (5, [empty, to], Some(text)) => {
            SessionOp::JumpUnlessText { text, empty: flag(*empty)?, to: (*to).try_into().ok()? }
        }
        (6, [to], None) => SessionOp::JumpUnlessFirstSession { to: (*to).try_into().ok()? },
        (7, [times, from, depth], None) => SessionOp::Repeat {
            times: (*times).try_into().ok()?,
            from: (*from).try_into().ok()?,
            depth: (*depth).try_into().ok()?,
        },
        (9, times @ [_, ..], None) => SessionOp::Think(ThinkTime::Pick(times.into())),
        (8, [to], None) => SessionOp::JumpIfSucceeded { to: (*to).try_into().ok()? },
        _ => return None,
    })
}

/// Appends a table: its options, and the cells of each row.
fn encode_table(out: &mut Vec<u8>, data: &ValueTable) {
    append_bytes(out, 1, data.name.as_bytes());
    data.columns.iter().for_each(|column| append_bytes(out, 2, column.as_bytes()));
    let (kind, exponent_milli) = match data.pick {
        RowChoice::Sequential => (0, 0),
        RowChoice::Random => (1, 0),
        RowChoice::Unique => (2, 0),
        RowChoice::Zipf { exponent_milli } => (3, exponent_milli),
    };
    append_number(out, 3, kind);
    append_number(out, 4, u64::from(exponent_milli));
    append_number(out, 5, u64::from(data.each_use));
    data.cells().for_each(|cell| append_bytes(out, 6, cell.as_bytes()));
}

fn decode_table(message: FieldReader) -> Option<ValueTable> {
    let (mut name, mut kind, mut exponent_milli, mut each_use) = (None, None, None, None);
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut name, read_text(value)?),
        2 => push(&mut columns, read_text(value)?),
        3 => store_once(&mut kind, value.read_number()?),
        4 => store_once(&mut exponent_milli, read_u32(value)?),
        5 => store_once(&mut each_use, read_flag(value)?),
        6 => {
            cells.push(std::str::from_utf8(value.bytes).ok()?);
            Some(())
        }
        _ => None,
    })?;
    let pick = match kind? {
        0 => RowChoice::Sequential,
        1 => RowChoice::Random,
        2 => RowChoice::Unique,
        3 => RowChoice::Zipf { exponent_milli: exponent_milli? },
        _ => return None,
    };
    let width = columns.len();
    let mut data = ValueTable::new(name?, columns, pick, each_use?);
    if width > 0 {
        cells.chunks(width).try_for_each(|row| data.push(row.iter().copied()))?;
    }
    Some(data)
}
