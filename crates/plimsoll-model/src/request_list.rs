//! A list with one request for each arrival ([`RequestList`]), made from a log. Arrival n sends
//! entry n of the list; an entry is a route with a path of its own. A list can have tens of
//! millions of requests, so each request takes only eight bytes besides the distinct paths. A run
//! file contains facts about the log and a digest of the list, never the list.
//!
//! Not here: the times of the requests ([`crate::arrival_times`]), and how requests are extracted
//! from a log.

use crate::interval::RouteNumber;
use crate::rng::mix_bits;
use crate::session_draws::{LogSessions, LogSessionsFacts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One entry of a request list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestListEntry {
    /// The number of the request's path with query in the table [`RequestPaths`].
    pub target: u32,
    /// The route under which the request is counted. The route has the method and the header fields
    /// of the request.
    pub route: RouteNumber,
    /// The status in the log; 0 if unknown.
    pub status: u16,
}

/// The distinct paths with queries of a request list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestTargets {
    text: String,
    /// End offset of each path in `text`; a path starts at the end of the previous path.
    ends: Vec<u32>,
}

impl RequestTargets {
    /// Adds a path and returns its number; `None` means that the table is full.
    pub fn push(&mut self, target: &str) -> Option<u32> {
        let number = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len().checked_add(target.len())?).ok()?;
        self.text.push_str(target);
        self.ends.push(end);
        Some(number)
    }

    /// Returns the path with this number; empty for an unknown number.
    #[inline]
    pub fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let from = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let to = self.ends.get(number).copied().unwrap_or(from);
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the length of all paths together, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns all paths, by number.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|number| self.get(number))
    }
}

/// Facts about a replayed log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplayFacts {
    /// Replay speed relative to the log, in thousandths.
    pub speed_milli: u64,
    /// Number of visitors relative to the log, in thousandths.
    pub scale_milli: u64,
    /// Number of lines read from the log.
    pub lines: u64,
    /// Number of skipped requests by reason; for unsafe methods the reason is the method's name.
    #[serde(rename = "left_out")]
    pub skip_counts: BTreeMap<String, u64>,
    /// Whether the log's timestamps have whole seconds only, so that the replay spreads requests
    /// within each second.
    #[serde(rename = "spread")]
    pub has_whole_seconds: bool,
    /// Facts about the sessions of the log; `None` means that loads are not drawn from sessions.
    #[serde(rename = "drawn_from", default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<LogSessionsFacts>,
}

/// A list with a request for each arrival of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestList {
    /// The distinct paths with queries of the list.
    pub targets: Arc<RequestTargets>,
    /// The entries of the list: arrival n sends entry n. If the list has `sessions`, loads draw
    /// their requests randomly from the entries.
    pub entries: Vec<RequestListEntry>,
    /// The sessions of the log, from which loads of any rate are sampled. `None` means that the
    /// load has an arrival time for each entry.
    pub sessions: Option<LogSessions>,
    /// Facts about the log that the list was made from.
    pub facts: ReplayFacts,
}

/// A request list in a run file, without its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestListRecord {
    /// Number of requests in the list.
    pub requests: u64,
    /// Number of distinct paths with queries in the list.
    pub targets: u64,
    /// A digest of the list.
    pub digest: String,
    /// Facts about the log that the list was made from.
    pub facts: ReplayFacts,
}

impl RequestList {
    /// Returns whether every entry has a valid path and a route number below `routes`. If the list
    /// has sessions, the sessions must have as many requests as the list has entries.
    pub fn is_consistent(&self, routes: usize) -> bool {
        let of = |entry: &RequestListEntry| {
            usize::from(entry.route) < routes && (entry.target as usize) < self.targets.len()
        };
        let sessions = self.sessions.as_ref().is_none_or(|it| it.starts_ns().len() == self.entries.len());
        !self.entries.is_empty() && self.entries.iter().all(of) && sessions
    }

    /// Creates the record of the list for a run file.
    pub fn record(&self) -> RequestListRecord {
        let paths = self.targets.text.bytes().fold(0, |digest, byte| mix_bits(digest ^ u64::from(byte)));
        let word = |entry: &RequestListEntry| {
            u64::from(entry.target) << 32 | u64::from(entry.route) << 16 | u64::from(entry.status)
        };
        let digest = self.entries.iter().fold(paths, |digest, entry| mix_bits(digest ^ word(entry)));
        let digest = self.sessions.as_ref().map_or(digest, |sessions| mix_bits(digest ^ sessions.digest()));
        RequestListRecord {
            requests: self.entries.len() as u64,
            targets: self.targets.len() as u64,
            digest: format!("{digest:016x}"),
            facts: self.facts.clone(),
        }
    }

    /// Returns whether a response status agrees with the logged status; an unknown logged status
    /// agrees with every status. Logs lack conditional headers, so a request logged with 304 or 206
    /// can get 200 in the replay.
    #[inline]
    pub fn agrees_with_log(&self, number: u64, status: u16) -> bool {
        match self.entries.get(number as usize).map_or(0, |entry| entry.status) {
            0 => true,
            304 | 206 => matches!(status, 200 | 206 | 304),
            then => then == status,
        }
    }

    /// Returns whether a response status below 500 equals the logged status. An equal status counts
    /// as expected, even if it is an error status such as 404, because the server behaves as in the
    /// log.
    #[inline]
    pub fn equals_logged_status(&self, number: u64, status: u16) -> bool {
        status < 500 && self.entries.get(number as usize).is_some_and(|entry| entry.status == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_list_with_statuses(statuses: &[u16]) -> RequestList {
        let mut targets = RequestTargets::default();
        for (number, target) in ["/a", "/b?c=d", ""].into_iter().enumerate() {
            assert_eq!(targets.push(target), Some(number as u32));
        }
        let entry = |(at, status): (usize, &u16)| RequestListEntry { target: at as u32 % 3, route: 0, status: *status };
        let entries = statuses.iter().enumerate().map(entry).collect();
        RequestList { targets: Arc::new(targets), entries, sessions: None, facts: ReplayFacts::default() }
    }

    #[test]
    fn distinct_paths_are_numbered() {
        let targets = request_list_with_statuses(&[]).targets;
        assert_eq!(targets.iter().collect::<Vec<_>>(), ["/a", "/b?c=d", ""]);
        assert_eq!((targets.get(3), targets.get(u32::MAX), targets.len(), targets.text_bytes()), ("", "", 3, 8));
    }

    #[test]
    fn statuses_are_compared_with_the_log() {
        let listed = request_list_with_statuses(&[200, 404, 304, 500, 0]);
        for (number, status, as_then, expected) in [
            (0, 200, true, true),
            (0, 404, false, false),
            (1, 404, true, true),
            (2, 200, true, false),
            (2, 404, false, false),
            (3, 500, true, false),
            (4, 503, true, false),
            (9, 200, true, false),
        ] {
            let got = (listed.agrees_with_log(number, status), listed.equals_logged_status(number, status));
            assert_eq!(got, (as_then, expected), "{number} {status}");
        }
    }

    #[test]
    fn different_request_lists_have_different_records() {
        let (one, other) = (request_list_with_statuses(&[200, 404]), request_list_with_statuses(&[200, 405]));
        assert_eq!(one.record(), one.clone().record());
        assert_ne!(one.record().digest, other.record().digest);
        assert!(one.is_consistent(1) && !one.is_consistent(0) && !request_list_with_statuses(&[]).is_consistent(1));
    }
}
