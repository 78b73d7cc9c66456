//! The intended start of every request of a load, one by one ([`ArrivalTimes`]), read from a log. A
//! plan contains the whole list of start times. The record of a plan contains only the number of
//! start times, their span and a digest.
//!
//! Not here: the source of the start times, and the request at each time ([`crate::request_list`]).

use crate::curve::LoadCurve;
use crate::rng::mix_bits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The intended starts of a load, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArrivalTimes {
    /// Number of intended starts.
    count: u64,
    /// A digest of all intended starts.
    digest: String,
    /// Mean request rate over the measured part, 1/s.
    rate: LoadCurve,
    /// Intended starts in schedule time, ns; empty in a record.
    #[serde(skip)]
    starts_ns: Arc<[u64]>,
}

impl ArrivalTimes {
    /// Creates the arrival times from the intended starts `starts_ns`, in ns of schedule time. The
    /// load is measured from `measured_from_ns` to `end_ns`. `None` means that the starts are out
    /// of order, or that the measured part has no start.
    pub fn new(starts_ns: Vec<u64>, measured_from_ns: u64, end_ns: u64) -> Option<ArrivalTimes> {
        let before = |ns: u64| starts_ns.partition_point(|start| *start < ns) as u64;
        let measured = before(end_ns).saturating_sub(before(measured_from_ns));
        if !starts_ns.is_sorted() || measured == 0 {
            return None;
        }
        let span_ns = end_ns - measured_from_ns;
        Some(ArrivalTimes {
            count: starts_ns.len() as u64,
            digest: starts_digest(&starts_ns),
            rate: LoadCurve::constant_for_duration(measured as f64 * 1e9 / span_ns as f64, span_ns),
            starts_ns: starts_ns.into(),
        })
    }

    /// Returns a copy without the list of starts, for the record of a plan in a run file.
    pub fn record(&self) -> ArrivalTimes {
        ArrivalTimes { starts_ns: Arc::default(), ..self.clone() }
    }

    /// Returns whether the list of starts is present. Only a load with its list of starts can be
    /// executed.
    pub fn has_starts(&self) -> bool {
        self.starts_ns.len() as u64 == self.count
    }

    /// Returns whether `self` and `other` have the same starts. The function compares only counts,
    /// digests and rates, so a record without its list of starts can be compared, too.
    pub fn has_same_starts(&self, other: &ArrivalTimes) -> bool {
        self.record() == other.record()
    }

    /// Returns the number of starts.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean request rate over the measured part, 1/s.
    pub fn rate(&self) -> &LoadCurve {
        &self.rate
    }

    /// Intended starts in schedule time, ns; empty in a record.
    pub fn starts_ns(&self) -> &Arc<[u64]> {
        &self.starts_ns
    }
}

fn starts_digest(starts_ns: &[u64]) -> String {
    format!("{:016x}", starts_ns.iter().fold(starts_ns.len() as u64, |digest, start| mix_bits(digest ^ start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrival_times_reject_unordered_or_unmeasured_starts() {
        for (starts, from, end, rate) in [
            (vec![0, 1, 1, 4], 0, 5, Some(0.8e9)),
            (vec![0, 1, 1, 4], 1, 4, Some(2e9 / 3.0)),
            (vec![3], 0, 10, Some(1e8)),
            (vec![1, 0], 0, 5, None),
            (vec![], 0, 5, None),
            (vec![7], 0, 7, None),
            (vec![7], 8, 9, None),
            (vec![7], 9, 8, None),
        ] {
            let given = ArrivalTimes::new(starts.clone(), from, end);
            let got = given.as_ref().map(|given| given.rate().max());
            let alike = match (got, rate) {
                (Some(got), Some(rate)) => (got - rate).abs() < rate * 1e-9,
                (got, rate) => got == rate,
            };
            assert!(alike, "{starts:?} {from} {end}: {got:?}");
        }
    }

    #[test]
    fn an_arrival_record_omits_the_list_and_recognises_the_original() {
        let given = ArrivalTimes::new(vec![1, 2, 3], 0, 10).expect("moments");
        let other = ArrivalTimes::new(vec![1, 2, 4], 0, 10).expect("moments");
        let json = serde_json::to_string(&given).expect("serialises");
        let record: ArrivalTimes = serde_json::from_str(&json).expect("reads back");
        assert_eq!(record, given.record());
        assert!(given.has_starts() && !record.has_starts() && record.starts_ns().is_empty());
        assert!(given.has_same_starts(&record) && !other.has_same_starts(&record));
        assert_eq!(record.count(), 3);
    }
}
