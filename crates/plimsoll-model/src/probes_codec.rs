//! The bytes of [`Probes`] in a run file. Rare parts are JSON; the many readings are packed
//! numbers. Sampled functions have their own frame (`codec`), which older versions of plimsoll
//! skip.
//!
//! ```text
//! probes = length of JSON (varint)
//!          JSON {host, servers, unseen, cpu_ns, wall_ns, series[{name, kind, unit, gaps}]}
//!          for each series: count (varint), count x reading
//! reading = time since the previous reading (varint, zigzag)
//!           bits of the value, XOR bits of the previous value (bytes swapped,
//!           varint): an unchanged value takes one byte
//! ```

use crate::bounds::is_chartable_sample;
use crate::probes::{Gap, Probes, Series, SeriesKind, SeriesSample, WatchedServer};
use crate::tagged_fields::{FieldReader, append_varint};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct ProbesHead {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    servers: Vec<WatchedServer>,
    unseen: Vec<String>,
    cpu_ns: u64,
    wall_ns: u64,
    series: Vec<SeriesHead>,
}

#[derive(Serialize, Deserialize)]
struct SeriesHead {
    name: String,
    kind: SeriesKind,
    unit: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<Gap>,
}

fn encode_zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn decode_zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

pub(crate) fn write_probes(out: &mut Vec<u8>, probes: &Probes) {
    let series = probes.series.iter().map(|(name, series)| SeriesHead {
        name: name.clone(),
        kind: series.kind,
        unit: series.unit.clone(),
        gaps: series.gaps.clone(),
    });
    let head = ProbesHead {
        host: probes.host.clone(),
        servers: probes.servers.clone(),
        unseen: probes.missing.clone(),
        cpu_ns: probes.cpu_ns,
        wall_ns: probes.wall_ns,
        series: series.collect(),
    };
    // Serialising plain structs of numbers and strings cannot fail.
    let json = serde_json::to_vec(&head).unwrap_or_else(|error| unreachable!("probes serialise: {error}"));
    append_varint(out, json.len() as u64);
    out.extend_from_slice(&json);
    for series in probes.series.values() {
        append_varint(out, series.samples.len() as u64);
        let (mut at_ns, mut bits) = (0i64, 0u64);
        for sample in &series.samples {
            append_varint(out, encode_zigzag(sample.at_ns.wrapping_sub(at_ns)));
            append_varint(out, (sample.value.to_bits() ^ bits).swap_bytes());
            (at_ns, bits) = (sample.at_ns, sample.value.to_bits());
        }
    }
}

pub(crate) fn read_probes(reader: &mut FieldReader) -> Option<Probes> {
    let length = reader.read_length()?;
    let head: ProbesHead = serde_json::from_slice(reader.take(length)?).ok()?;
    let mut probes = Probes {
        host: head.host,
        servers: head.servers,
        missing: head.unseen,
        cpu_ns: head.cpu_ns,
        wall_ns: head.wall_ns,
        ..Probes::default()
    };
    for SeriesHead { name, kind, unit, gaps } in head.series {
        // Each reading takes at least two bytes, so the number of remaining bytes limits the count
        // of readings.
        let count = Some(reader.read_length()?).filter(|count| *count <= reader.bytes.len() / 2)?;
        let mut samples = Vec::with_capacity(count.min(1 << 16));
        let (mut at_ns, mut bits) = (0i64, 0u64);
        for _ in 0..count {
            at_ns = at_ns.wrapping_add(decode_zigzag(reader.read_varint()?));
            bits ^= reader.read_varint()?.swap_bytes();
            let sample = SeriesSample { at_ns, value: f64::from_bits(bits) };
            if is_chartable_sample(&sample) {
                samples.push(sample);
            }
        }
        probes.series.insert(name, Series { kind, unit, samples, gaps });
    }
    Some(probes)
}
