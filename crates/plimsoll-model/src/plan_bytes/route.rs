//! A route as bytes: its request, successful statuses, expectations and captures.

use super::fields::{
    append_bytes, append_number, append_pair, for_each_field, push, read_pair, read_text, read_u32, store_once,
};
use crate::expect::{CaptureSource, Expectations, JsonExpectation, ResponseCapture, TextExpectation};
use crate::grpc::{GrpcCall, GrpcStatusSet};
use crate::json_path::JsonPath;
use crate::tagged_fields::{FieldReader, append_field};
use crate::traffic::{Request, Route, StatusSet, TemplateFlags};

pub(super) fn write_route(out: &mut Vec<u8>, route: &Route) {
    let Route { label, request, weight, ok_status, timeout_ns, template_flags, expect, captures, redirects_max, grpc } =
        route;
    let Request { method, target, headers, body } = request;
    append_bytes(out, 1, label.as_bytes());
    append_bytes(out, 2, method.as_bytes());
    append_bytes(out, 3, target.as_bytes());
    headers.iter().for_each(|(name, value)| append_pair(out, 4, name, value));
    append_bytes(out, 5, body);
    append_number(out, 6, u64::from(*weight));
    append_bytes(out, 7, String::from(ok_status.clone()).as_bytes());
    append_number(out, 8, *timeout_ns);
    let TemplateFlags { target, headers, body } = *template_flags;
    append_number(out, 9, u64::from(target) | u64::from(headers) << 1 | u64::from(body) << 2);
    append_field(out, 10, |out| write_expectations(out, expect));
    captures.iter().for_each(|it| append_field(out, 11, |out| write_capture(out, it)));
    if let Some(GrpcCall { ok, content, descriptor_set, returns_stream, in_turn }) = grpc {
        append_field(out, 12, |out| {
            append_bytes(out, 1, ok.to_string().as_bytes());
            content.iter().for_each(|content| append_bytes(out, 2, content));
            descriptor_set.iter().for_each(|descriptor_set| append_bytes(out, 3, descriptor_set));
            append_number(out, 4, u64::from(*returns_stream) | u64::from(*in_turn) << 1);
        });
    }
    append_number(out, 13, u64::from(*redirects_max));
}

pub(super) fn read_route(message: FieldReader) -> Option<Route> {
    let (mut label, mut method, mut target, mut body) = (None, None, None, None);
    let (mut weight, mut ok_status, mut timeout_ns, mut filled, mut grpc) = (None, None, None, None, None);
    let mut redirects_max = None;
    let (mut headers, mut expect, mut captures) = (Vec::new(), None, Vec::new());
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut label, read_text(value)?),
        2 => store_once(&mut method, read_text(value)?),
        3 => store_once(&mut target, read_text(value)?),
        4 => push(&mut headers, read_pair(value)?),
        5 => store_once(&mut body, value.bytes.to_vec()),
        6 => store_once(&mut weight, read_u32(value)?),
        7 => store_once(&mut ok_status, StatusSet::parse(std::str::from_utf8(value.bytes).ok()?).ok()?),
        8 => store_once(&mut timeout_ns, value.read_number()?),
        9 => store_once(&mut filled, value.read_number().filter(|bits| *bits < 8)?),
        10 => store_once(&mut expect, read_expectations(value)?),
        11 => push(&mut captures, read_capture(value)?),
        12 => store_once(&mut grpc, read_grpc_call(value)?),
        13 => store_once(
            &mut redirects_max,
            value.read_number().filter(|hops| *hops <= u64::from(Route::FOLLOW_REDIRECTS_MAX))? as u8,
        ),
        _ => None,
    })?;
    let bits = filled?;
    let template_flags = TemplateFlags { target: bits & 1 != 0, headers: bits & 2 != 0, body: bits & 4 != 0 };
    let request = Request { method: method?, target: target?, headers, body: body? };
    let (label, weight, ok_status, timeout_ns) = (label?, weight?, ok_status?, timeout_ns?);
    Some(Route {
        label,
        request,
        weight,
        ok_status,
        timeout_ns,
        template_flags,
        expect: expect?,
        captures,
        redirects_max: redirects_max?,
        grpc,
    })
}

fn read_grpc_call(message: FieldReader) -> Option<GrpcCall> {
    let (mut ok, mut content, mut descriptor_set, mut how) = (None, None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut ok, GrpcStatusSet::parse(std::str::from_utf8(value.bytes).ok()?).ok()?),
        2 => store_once(&mut content, value.bytes.to_vec()),
        3 => store_once(&mut descriptor_set, value.bytes.into()),
        4 => store_once(&mut how, value.read_number()?),
        _ => None,
    })?;
    let how = how.filter(|how| *how < 4)?;
    Some(GrpcCall { ok: ok?, content, descriptor_set, returns_stream: how & 1 != 0, in_turn: how & 2 != 0 })
}

fn write_expectations(out: &mut Vec<u8>, expect: &Expectations) {
    let Expectations { response_time_ns_max: within_ns, headers, json, body } = expect;
    within_ns.iter().for_each(|ns| append_number(out, 1, *ns));
    for (name, expected) in headers {
        append_field(out, 2, |out| {
            append_bytes(out, 1, name.as_bytes());
            append_field(out, 2, |out| write_text_expectation(out, expected));
        });
    }
    for (path, expected) in json {
        append_field(out, 3, |out| {
            append_bytes(out, 1, path.source_text().as_bytes());
            match expected {
                JsonExpectation::Null => append_number(out, 2, 0),
                JsonExpectation::Flag(flag) => append_number(out, 2, 1 + u64::from(*flag)),
                JsonExpectation::Number(text) => append_bytes(out, 3, text.as_bytes()),
                JsonExpectation::Text(text) => append_bytes(out, 4, text.as_bytes()),
            }
        });
    }
    body.iter().for_each(|expected| append_field(out, 4, |out| write_text_expectation(out, expected)));
}

fn write_text_expectation(out: &mut Vec<u8>, expected: &TextExpectation) {
    match expected {
        TextExpectation::Contains(text) => append_bytes(out, 1, text.as_bytes()),
        TextExpectation::Matches(pattern) => append_bytes(out, 2, pattern.as_bytes()),
    }
}

fn read_expectations(message: FieldReader) -> Option<Expectations> {
    let (mut within_ns, mut body) = (None, None);
    let (mut headers, mut json) = (Vec::new(), Vec::new());
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut within_ns, value.read_number()?),
        2 => push(&mut headers, read_header_expectation(value)?),
        3 => push(&mut json, read_json_expectation(value)?),
        4 => store_once(&mut body, read_text_expectation(value)?),
        _ => None,
    })?;
    Some(Expectations { response_time_ns_max: within_ns, headers, json, body })
}

fn read_header_expectation(message: FieldReader) -> Option<(String, TextExpectation)> {
    let (mut name, mut expected) = (None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut name, read_text(value)?),
        2 => store_once(&mut expected, read_text_expectation(value)?),
        _ => None,
    })?;
    Some((name?, expected?))
}

fn read_text_expectation(message: FieldReader) -> Option<TextExpectation> {
    let mut expected = None;
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut expected, TextExpectation::Contains(read_text(value)?)),
        2 => store_once(&mut expected, TextExpectation::Matches(read_text(value)?)),
        _ => None,
    })?;
    expected
}

fn read_json_expectation(message: FieldReader) -> Option<(JsonPath, JsonExpectation)> {
    let (mut path, mut expected) = (None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut path, JsonPath::parse(std::str::from_utf8(value.bytes).ok()?).ok()?),
        2 => store_once(
            &mut expected,
            match value.read_number()? {
                0 => JsonExpectation::Null,
                1 => JsonExpectation::Flag(false),
                2 => JsonExpectation::Flag(true),
                _ => return None,
            },
        ),
        3 => store_once(&mut expected, JsonExpectation::Number(read_text(value)?)),
        4 => store_once(&mut expected, JsonExpectation::Text(read_text(value)?)),
        _ => None,
    })?;
    Some((path?, expected?))
}

fn write_capture(out: &mut Vec<u8>, ResponseCapture { name, from, default }: &ResponseCapture) {
    append_bytes(out, 1, name.as_bytes());
    append_bytes(out, 2, from.source_text().as_bytes());
    default.iter().for_each(|default| append_bytes(out, 3, default.as_bytes()));
}

fn read_capture(message: FieldReader) -> Option<ResponseCapture> {
    let (mut name, mut from, mut default) = (None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut name, read_text(value)?),
        2 => store_once(&mut from, CaptureSource::parse(&read_text(value)?).ok()?),
        3 => store_once(&mut default, read_text(value)?),
        _ => None,
    })?;
    Some(ResponseCapture { name: name?, from: from?, default })
}

/// Encodes the parts of a route that a record does not show, as input of a digest. The parts that a
/// record hides are templates of path and headers, expectations, captures, and the limit of
/// redirects. The result is empty if the route has no part that a record hides. Header values
/// without templates are not included, so that a restored header does not change the digest.
pub(crate) fn route_digest_input(route: &Route) -> Vec<u8> {
    let mut out = Vec::new();
    if route.template_flags.target {
        append_bytes(&mut out, 3, route.request.target.as_bytes());
    }
    for (name, value) in
        route.request.headers.iter().filter(|(_, value)| route.template_flags.headers && value.contains("{{"))
    {
        append_bytes(&mut out, 4, name.as_bytes());
        append_bytes(&mut out, 4, value.as_bytes());
    }
    if !route.expect.is_empty() {
        append_field(&mut out, 10, |out| write_expectations(out, &route.expect));
    }
    for ResponseCapture { name, from, default } in &route.captures {
        append_bytes(&mut out, 11, name.as_bytes());
        append_bytes(&mut out, 11, from.source_text().as_bytes());
        default.iter().for_each(|default| append_bytes(&mut out, 11, default.as_bytes()));
    }
    if route.redirects_max > 0 {
        append_number(&mut out, 13, u64::from(route.redirects_max));
    }
    out
}
