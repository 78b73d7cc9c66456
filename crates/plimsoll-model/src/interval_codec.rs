//! The bytes of an [`Interval`] in a run file, as tagged fields. Only the table of measures
//! (`measures`) defines which figures exist, and which tag each figure has.
//!
//! ```text
//! interval  = 1: number  2: figures of the load  3: route (one field for each route, ascending)
//! route     = number (varint)  figures
//! figures   = one field for each figure that is not empty; the field has the tag of the figure
//! counter   = gauge = varint
//! times     = number of buckets  for each bucket {distance from previous bucket, count}  min  max
//!             sum (low, high)   (all varint)
//! tally     = {key, count}*   ascending
//! ledger    = 1: scheduled  2: succeeded  3: unsent  4: in flight  5: tally of failures by kind
//! workers   = {worker, work, cpu, wall}*   ascending
//! ```

use crate::histogram::{BUCKET_COUNT, SparseHistogram};
use crate::interval::{Interval, RouteNumber};
use crate::ledger::Ledger;
use crate::measures::{FigureMut, FigureRef, LoadFigures, RouteFigures, WorkerTime};
use crate::tagged_fields::{FieldReader, TagRecognition, append_field, append_nonzero_number, append_varint};
use crate::tally::CountsByKey;

const INTERVAL_INDEX_TAG: u32 = 1;
const LOAD_FIGURES_TAG: u32 = 2;
const ROUTE_FIGURES_TAG: u32 = 3;

const SCHEDULED_TAG: u32 = 1;
const SUCCEEDED_TAG: u32 = 2;
const UNSENT_TAG: u32 = 3;
const IN_FLIGHT_TAG: u32 = 4;
const FAILED_TAG: u32 = 5;

pub(crate) fn write_interval(out: &mut Vec<u8>, index: u32, interval: &Interval) {
    append_nonzero_number(out, INTERVAL_INDEX_TAG, u64::from(index));
    append_field(out, LOAD_FIGURES_TAG, |out| {
        interval.load.figure_values().for_each(|(figure, held)| write_known_figure(out, figure.tag, held))
    });
    for (route, figures) in interval.routes.iter() {
        append_field(out, ROUTE_FIGURES_TAG, |out| {
            append_varint(out, u64::from(route));
            figures.figure_values().for_each(|(figure, held)| write_known_figure(out, figure.tag, held));
        });
    }
}

/// Decodes an interval and its number, and counts the figures that this version of plimsoll does
/// not know.
pub(crate) fn read_interval(reader: FieldReader) -> Option<(u32, Interval, usize)> {
    let (mut index, mut interval, mut unknown) = (0, Interval::default(), 0);
    let mut last: Option<RouteNumber> = None;
    unknown += reader.read_fields(|tag, mut value| {
        match tag {
            INTERVAL_INDEX_TAG => index = u32::try_from(value.read_number()?).ok()?,
            LOAD_FIGURES_TAG => unknown += read_load_figures(&mut interval.load, value)?,
            ROUTE_FIGURES_TAG => {
                let route = RouteNumber::try_from(value.read_varint()?).ok()?;
                if last.is_some_and(|last| last >= route) {
                    return None;
                }
                last = Some(route);
                unknown += read_route_figures(interval.routes.figures_mut(route), value)?;
            }
            _ => return Some(TagRecognition::Unknown),
        }
        Some(TagRecognition::Known)
    })?;
    Some((index, interval, unknown))
}

fn read_load_figures(figures: &mut LoadFigures, reader: FieldReader) -> Option<usize> {
    reader.read_fields(|tag, value| match figures.figure_values_mut().find(|(figure, _)| figure.tag == tag) {
        Some((_, held)) => read_known_figure(held, value),
        None => Some(TagRecognition::Unknown),
    })
}

fn read_route_figures(figures: &mut RouteFigures, reader: FieldReader) -> Option<usize> {
    reader.read_fields(|tag, value| match figures.figure_values_mut().find(|(figure, _)| figure.tag == tag) {
        Some((_, held)) => read_known_figure(held, value),
        None => Some(TagRecognition::Unknown),
    })
}

fn write_known_figure(out: &mut Vec<u8>, tag: u32, figure: FigureRef<SparseHistogram>) {
    match figure {
        FigureRef::Count(count) => append_nonzero_number(out, tag, count),
        FigureRef::Times(times) if times.count() > 0 => append_field(out, tag, |out| write_histogram(out, times)),
        FigureRef::Tally(tally) if !tally.is_empty() => append_field(out, tag, |out| write_tally(out, tally)),
        FigureRef::Ledger(ledger) if *ledger != Ledger::default() => {
            append_field(out, tag, |out| write_ledger(out, ledger))
        }
        FigureRef::Workers(workers) if !workers.is_empty() => append_field(out, tag, |out| {
            for time in workers {
                append_varint(out, u64::from(time.worker));
                [time.work_ns, time.cpu_ns, time.wall_ns].into_iter().for_each(|ns| append_varint(out, ns));
            }
        }),
        FigureRef::Times(_) | FigureRef::Tally(_) | FigureRef::Ledger(_) | FigureRef::Workers(_) => {}
    }
}

/// Reads the value of a figure that this version knows. If a tag occurs twice, the later value
/// counts.
fn read_known_figure(figure: FigureMut<SparseHistogram>, mut reader: FieldReader) -> Option<TagRecognition> {
    match figure {
        FigureMut::Count(count) => *count = reader.read_number()?,
        FigureMut::Times(times) => {
            *times = read_histogram(&mut reader)?;
            return reader.is_empty().then_some(TagRecognition::Known);
        }
        FigureMut::Tally(tally) => *tally = read_tally(reader)?,
        FigureMut::Ledger(ledger) => {
            let unknown;
            (*ledger, unknown) = read_ledger(reader)?;
            return Some(if unknown > 0 { TagRecognition::Unknown } else { TagRecognition::Known });
        }
        FigureMut::Workers(workers) => {
            workers.clear();
            while !reader.is_empty() {
                let time = WorkerTime {
                    worker: u32::try_from(reader.read_varint()?).ok()?,
                    work_ns: reader.read_varint()?,
                    cpu_ns: reader.read_varint()?,
                    wall_ns: reader.read_varint()?,
                };
                if workers.last().is_some_and(|last| last.worker >= time.worker) {
                    return None;
                }
                workers.push(time);
            }
        }
    }
    Some(TagRecognition::Known)
}

fn write_histogram(out: &mut Vec<u8>, histogram: &SparseHistogram) {
    append_varint(out, histogram.buckets().len() as u64);
    let mut before = 0;
    for (index, count) in histogram.buckets() {
        append_varint(out, (index - before) as u64);
        append_varint(out, count);
        before = index;
    }
    append_varint(out, histogram.min_ns());
    append_varint(out, histogram.max_ns());
    append_varint(out, histogram.sum_ns() as u64);
    append_varint(out, (histogram.sum_ns() >> 64) as u64);
}

fn read_histogram(reader: &mut FieldReader) -> Option<SparseHistogram> {
    // The bucket indices ascend, so the number of buckets in a valid file is at most
    // `BUCKET_COUNT`.
    let length = Some(reader.read_length()?).filter(|length| (1..=BUCKET_COUNT).contains(length))?;
    let mut buckets = Vec::with_capacity(length);
    let mut index = 0usize;
    for _ in 0..length {
        index =
            index.checked_add(usize::try_from(reader.read_varint()?).ok()?).filter(|index| *index < BUCKET_COUNT)?;
        buckets.push((index, reader.read_varint()?));
    }
    let (min_ns, max_ns) = (reader.read_varint()?, reader.read_varint()?);
    let sum_ns = u128::from(reader.read_varint()?) | u128::from(reader.read_varint()?) << 64;
    SparseHistogram::from_parts(&buckets, min_ns, max_ns, sum_ns)
}

fn write_tally(out: &mut Vec<u8>, tally: &CountsByKey) {
    for (key, count) in tally.iter() {
        append_varint(out, u64::from(key));
        append_varint(out, count);
    }
}

fn read_tally(mut reader: FieldReader) -> Option<CountsByKey> {
    let mut counts: Vec<(u16, u64)> = Vec::new();
    while !reader.is_empty() {
        let (key, count) = (u16::try_from(reader.read_varint()?).ok()?, reader.read_varint()?);
        if count == 0 || counts.last().is_some_and(|(last, _)| *last >= key) {
            return None;
        }
        counts.push((key, count));
    }
    Some(counts.into_iter().collect())
}

fn write_ledger(out: &mut Vec<u8>, ledger: &Ledger) {
    append_nonzero_number(out, SCHEDULED_TAG, ledger.scheduled);
    append_nonzero_number(out, SUCCEEDED_TAG, ledger.succeeded);
    append_nonzero_number(out, UNSENT_TAG, ledger.unsent);
    append_nonzero_number(out, IN_FLIGHT_TAG, ledger.in_flight);
    let failed: CountsByKey = ledger.failed.iter().enumerate().map(|(kind, count)| (kind as u16, *count)).collect();
    if !failed.is_empty() {
        append_field(out, FAILED_TAG, |out| write_tally(out, &failed));
    }
}

/// Decodes a ledger (request outcomes), and counts the fields that this version of plimsoll does
/// not know.
fn read_ledger(reader: FieldReader) -> Option<(Ledger, usize)> {
    let (mut ledger, mut unknown) = (Ledger::default(), 0);
    unknown += reader.read_fields(|tag, value| {
        match tag {
            SCHEDULED_TAG => ledger.scheduled = value.read_number()?,
            SUCCEEDED_TAG => ledger.succeeded = value.read_number()?,
            UNSENT_TAG => ledger.unsent = value.read_number()?,
            IN_FLIGHT_TAG => ledger.in_flight = value.read_number()?,
            FAILED_TAG => {
                for (kind, count) in read_tally(value)?.iter() {
                    match ledger.failed.get_mut(usize::from(kind)) {
                        Some(failed) => *failed = count,
                        None => unknown += 1,
                    }
                }
            }
            _ => return Some(TagRecognition::Unknown),
        }
        Some(TagRecognition::Known)
    })?;
    Some((ledger, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded_interval(index: u32, interval: &Interval) -> Vec<u8> {
        let mut out = Vec::new();
        write_interval(&mut out, index, interval);
        out
    }

    /// An interval in which every figure of the table has a value.
    fn interval_with_all_figures() -> Interval {
        fn fill_figure(figure: FigureMut<SparseHistogram>, at: u64) {
            let mut times = crate::Histogram::new();
            times.record_n(1_000 * at, at);
            match figure {
                FigureMut::Count(count) => *count = at,
                FigureMut::Times(place) => *place = times.drain(),
                FigureMut::Tally(tally) => tally.add(100 + at as u16, at),
                FigureMut::Ledger(ledger) => {
                    *ledger = Ledger {
                        scheduled: 9,
                        succeeded: 1,
                        failed: [1; crate::ledger::RequestFailure::KIND_COUNT],
                        unsent: 1,
                        in_flight: 0,
                    };
                }
                FigureMut::Workers(workers) => {
                    workers.push(WorkerTime { worker: 3, work_ns: at, cpu_ns: 2, wall_ns: 1 })
                }
            }
        }
        let mut interval = Interval::default();
        interval.load.figure_values_mut().zip(1..).for_each(|((_, held), at)| fill_figure(held, at));
        for route in [0, 7, 200] {
            interval
                .routes
                .figures_mut(route)
                .figure_values_mut()
                .zip(1..)
                .for_each(|((_, held), at)| fill_figure(held, at));
        }
        interval
    }

    #[test]
    fn every_figure_of_the_table_round_trips() {
        let interval = interval_with_all_figures();
        // Check that no figure is empty, because empty figures are not written.
        let mut fields = 0;
        let bytes = encoded_interval(5, &interval);
        let count = |reader: FieldReader, fields: &mut usize| {
            reader.read_fields(|_, _| {
                *fields += 1;
                Some(TagRecognition::Known)
            })
        };
        FieldReader::new(&bytes).read_fields(|tag, mut value| {
            match tag {
                ROUTE_FIGURES_TAG => value.read_varint().and_then(|_| count(value, &mut fields)),
                LOAD_FIGURES_TAG => count(value, &mut fields),
                _ => Some(0),
            }?;
            Some(TagRecognition::Known)
        });
        assert_eq!(fields, LoadFigures::FIGURES.len() + 3 * RouteFigures::FIGURES.len());
        assert_eq!(read_interval(FieldReader::new(&encoded_interval(5, &interval))), Some((5, interval, 0)));
        assert_eq!(read_interval(FieldReader::new(&[])), Some((0, Interval::default(), 0)));
    }

    #[test]
    fn figures_of_later_versions_are_skipped_and_counted() {
        let interval = interval_with_all_figures();
        let mut bytes = Vec::new();
        let later = |out: &mut Vec<u8>| append_field(out, 900, |out| out.extend_from_slice(b"later"));
        append_nonzero_number(&mut bytes, INTERVAL_INDEX_TAG, 5);
        later(&mut bytes);
        append_field(&mut bytes, LOAD_FIGURES_TAG, |out| {
            later(out);
            interval.load.figure_values().for_each(|(figure, held)| write_known_figure(out, figure.tag, held));
        });
        for (route, figures) in interval.routes.iter() {
            append_field(&mut bytes, ROUTE_FIGURES_TAG, |out| {
                append_varint(out, u64::from(route));
                figures.figure_values().for_each(|(figure, held)| write_known_figure(out, figure.tag, held));
                later(out);
            });
        }
        assert_eq!(read_interval(FieldReader::new(&bytes)), Some((5, interval, 5)));
    }

    #[test]
    fn truncated_or_unordered_data_is_refused() {
        let bytes = encoded_interval(5, &interval_with_all_figures());
        let whole: Vec<usize> =
            (0..bytes.len()).filter(|cut| read_interval(FieldReader::new(&bytes[..*cut])).is_some()).collect();
        // Cut bytes are valid only if the cut lies between fields of the outermost message. Five
        // cuts are valid: at 0, and after the index, the load, and each route except the last.
        assert_eq!(whole.len(), 5, "{whole:?}");
        let mut twice = Vec::new();
        (0..2).for_each(|_| append_field(&mut twice, ROUTE_FIGURES_TAG, |out| append_varint(out, 4)));
        assert_eq!(read_interval(FieldReader::new(&twice)), None);
        for tally in [&[5, 1, 5, 1][..], &[5, 1, 4, 1], &[5, 0], &[5]] {
            assert_eq!(read_tally(FieldReader::new(tally)), None, "{tally:?}");
        }
    }
}
