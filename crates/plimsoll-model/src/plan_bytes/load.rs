//! The load of a plan as bytes: load model, level and times.

use super::fields::{
    append_bytes, append_number, append_times, for_each_field, push, read_f64, read_flag, read_times, read_u32,
    store_once,
};
use crate::arrival_times::ArrivalTimes;
use crate::curve::{LoadCurve, LoadStage};
use crate::load::{ArrivalSpacing, Load, LoadShape};
use crate::tagged_fields::{FieldReader, append_field};

pub(super) fn write_load(out: &mut Vec<u8>, load: &Load) {
    let Load { seed, shape, requests_max, duration_ns, warmup_ns, grace_ns, connections_ready, interval_ns, new_users } =
        load;
    append_number(out, 1, *seed);
    // The curve of given arrival times is computed from the times, so the curve is not written.
    let follows = LoadCurve { stages: Vec::new() };
    let (kind, curve) = match shape {
        LoadShape::Closed { users } => (0, users),
        LoadShape::Open { rate, arrivals: ArrivalSpacing::Constant } => (1, rate),
        LoadShape::Open { rate, arrivals: ArrivalSpacing::Poisson } => (2, rate),
        LoadShape::Open { rate, arrivals: ArrivalSpacing::Replayed } => (4, rate),
        LoadShape::ArrivalTimes { arrivals } => {
            write_arrival_times(out, load, arrivals);
            (3, &follows)
        }
    };
    append_number(out, 2, kind);
    for LoadStage { from, to, duration_ns } in &curve.stages {
        append_field(out, 3, |out| {
            append_bytes(out, 1, &from.to_le_bytes());
            append_bytes(out, 2, &to.to_le_bytes());
            duration_ns.iter().for_each(|ns| append_number(out, 3, *ns));
        });
    }
    requests_max.iter().for_each(|requests| append_number(out, 4, *requests));
    duration_ns.iter().for_each(|ns| append_number(out, 5, *ns));
    append_number(out, 6, *warmup_ns);
    append_number(out, 7, *grace_ns);
    append_number(out, 8, u64::from(*connections_ready));
    append_number(out, 9, *interval_ns);
    append_number(out, 12, u64::from(*new_users));
}

/// Appends the arrival times, and the end of the measured part in schedule time, ns.
fn write_arrival_times(out: &mut Vec<u8>, load: &Load, arrivals: &ArrivalTimes) {
    append_field(out, 10, |out| append_times(out, arrivals.starts_ns()));
    let span_ns = arrivals.rate().duration_ns().unwrap_or(0);
    append_number(out, 11, load.warmup_ns.saturating_add(span_ns));
}

pub(super) fn read_load(message: FieldReader) -> Option<Load> {
    let (mut seed, mut kind, mut requests_max, mut duration_ns) = (None, None, None, None);
    let (mut warmup_ns, mut grace_ns, mut connections_ready, mut interval_ns) = (None, None, None, None);
    let (mut stages, mut starts_ns, mut given_end_ns, mut newcomers) = (Vec::new(), None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut seed, value.read_number()?),
        2 => store_once(&mut kind, value.read_number()?),
        3 => push(&mut stages, read_curve_stage(value)?),
        4 => store_once(&mut requests_max, value.read_number()?),
        5 => store_once(&mut duration_ns, value.read_number()?),
        6 => store_once(&mut warmup_ns, value.read_number()?),
        7 => store_once(&mut grace_ns, value.read_number()?),
        8 => store_once(&mut connections_ready, read_u32(value)?),
        9 => store_once(&mut interval_ns, value.read_number()?),
        10 => store_once(&mut starts_ns, read_times(value)?),
        11 => store_once(&mut given_end_ns, value.read_number()?),
        12 => store_once(&mut newcomers, read_flag(value)?),
        _ => None,
    })?;
    let curve = LoadCurve { stages };
    if (starts_ns.is_some() || given_end_ns.is_some()) != (kind == Some(3)) {
        return None;
    }
    let shape = match kind? {
        0 => LoadShape::Closed { users: curve },
        1 => LoadShape::Open { rate: curve, arrivals: ArrivalSpacing::Constant },
        2 => LoadShape::Open { rate: curve, arrivals: ArrivalSpacing::Poisson },
        4 => LoadShape::Open { rate: curve, arrivals: ArrivalSpacing::Replayed },
        3 => LoadShape::ArrivalTimes { arrivals: ArrivalTimes::new(starts_ns?, warmup_ns?, given_end_ns?)? },
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
        new_users: newcomers?,
    })
}

fn read_curve_stage(message: FieldReader) -> Option<LoadStage> {
    let (mut from, mut to, mut duration_ns) = (None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut from, read_f64(value)?),
        2 => store_once(&mut to, read_f64(value)?),
        3 => store_once(&mut duration_ns, value.read_number()?),
        _ => None,
    })?;
    Some(LoadStage { from: from?, to: to?, duration_ns })
}
