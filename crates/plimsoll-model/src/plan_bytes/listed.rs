//! The bytes of a request list, with one request for each arrival.

use super::fields::{
    ITEMS_MAX, append_bytes, append_number, append_times, for_each_field, read_flag, read_numbers, read_text,
    read_times, store_once,
};
use crate::request_list::{ReplayFacts, RequestList, RequestListEntry, RequestTargets};
use crate::session_draws::{LogSessions, LogSessionsFacts};
use crate::tagged_fields::{FieldReader, append_field, append_varint};

/// Writes the distinct paths, then the path number, route and status of each request. Path numbers
/// are stored as they are, because their differences would take as many bytes.
pub(super) fn write_request_list(out: &mut Vec<u8>, listed: &RequestList) {
    let RequestList { targets, entries, sessions, facts } = listed;
    targets.iter().for_each(|target| append_bytes(out, 1, target.as_bytes()));
    append_field(out, 2, |out| {
        for RequestListEntry { target, route, status } in entries {
            append_varint(out, u64::from(*target));
            append_varint(out, u64::from(*route));
            append_varint(out, u64::from(*status));
        }
    });
    if let Some(sessions) = sessions {
        append_field(out, 8, |out| append_times(out, sessions.starts_ns()));
        for (tag, numbers) in [(9, sessions.request_indices_by_session()), (10, sessions.session_ends())] {
            append_field(out, tag, |out| numbers.iter().for_each(|number| append_varint(out, u64::from(*number))));
        }
    }
    let ReplayFacts { speed_milli, scale_milli, lines, skip_counts, has_whole_seconds, sessions: drawn_from } = facts;
    append_number(out, 3, *speed_milli);
    append_number(out, 4, *scale_milli);
    append_number(out, 5, *lines);
    for (why, count) in skip_counts {
        append_field(out, 6, |out| {
            append_bytes(out, 1, why.as_bytes());
            append_number(out, 2, *count);
        });
    }
    append_number(out, 7, u64::from(*has_whole_seconds));
    if let Some(LogSessionsFacts { sessions, span_ns, busiest_minute_requests, busiest_second_requests }) = drawn_from {
        append_field(out, 11, |out| {
            for (tag, value) in
                [(1, sessions), (2, span_ns), (3, busiest_minute_requests), (4, busiest_second_requests)]
            {
                append_number(out, tag, *value);
            }
        });
    }
}

pub(super) fn read_request_list(message: FieldReader) -> Option<RequestList> {
    let (mut targets, mut entries, mut facts) = (RequestTargets::default(), None, ReplayFacts::default());
    let (mut speed_milli, mut scale_milli, mut lines, mut spread) = (None, None, None, None);
    let (mut starts, mut by_session, mut ends) = (None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => targets.push(std::str::from_utf8(value.bytes).ok()?).map(|_| ()),
        2 => store_once(&mut entries, read_request_entries(value)?),
        3 => store_once(&mut speed_milli, value.read_number()?),
        4 => store_once(&mut scale_milli, value.read_number()?),
        5 => store_once(&mut lines, value.read_number()?),
        6 => {
            let (mut why, mut count) = (None, None);
            for_each_field(value, |tag, value| match tag {
                1 => store_once(&mut why, read_text(value)?),
                2 => store_once(&mut count, value.read_number()?),
                _ => None,
            })?;
            (facts.skip_counts.len() < ITEMS_MAX && facts.skip_counts.insert(why?, count?).is_none()).then_some(())
        }
        7 => store_once(&mut spread, read_flag(value)?),
        8 => store_once(&mut starts, read_times(value)?),
        9 => store_once(&mut by_session, read_numbers(value, |number| u32::try_from(number).ok())?),
        10 => store_once(&mut ends, read_numbers(value, |number| u32::try_from(number).ok())?),
        11 => store_once(&mut facts.sessions, read_sessions_facts(value)?),
        _ => None,
    })?;
    let sessions = match (starts, by_session, ends) {
        (None, None, None) => None,
        (Some(starts), Some(by_session), Some(ends)) => Some(LogSessions::new(starts, by_session, ends)?),
        _ => return None,
    };
    (facts.speed_milli, facts.scale_milli) = (speed_milli?, scale_milli?);
    (facts.lines, facts.has_whole_seconds) = (lines?, spread?);
    Some(RequestList { targets: targets.into(), entries: entries?, sessions, facts })
}

fn read_request_entries(mut value: FieldReader) -> Option<Vec<RequestListEntry>> {
    let mut entries = Vec::new();
    while !value.bytes.is_empty() {
        let mut next = || value.read_varint();
        let (target, route, status) = (next()?, next()?, next()?);
        entries.push(RequestListEntry {
            target: target.try_into().ok()?,
            route: route.try_into().ok()?,
            status: status.try_into().ok()?,
        });
    }
    Some(entries)
}

fn read_sessions_facts(message: FieldReader) -> Option<LogSessionsFacts> {
    let mut values = [None; 4];
    for_each_field(message, |tag, value| {
        store_once(values.get_mut((tag as usize).checked_sub(1)?)?, value.read_number()?)
    })?;
    let [sessions, span_ns, busiest_minute_requests, busiest_second_requests] = values;
    Some(LogSessionsFacts {
        sessions: sessions?,
        span_ns: span_ns?,
        busiest_minute_requests: busiest_minute_requests?,
        busiest_second_requests: busiest_second_requests?,
    })
}
