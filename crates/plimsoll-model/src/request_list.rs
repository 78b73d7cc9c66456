//! Requests that are asked one by one ([`RequestList`]): arrival n asks what entry n says, a route
//! with a path of its own. Those of a log, tens of millions of them, eight bytes each beside the
//! distinct paths. A record has what was made of the log and a digest, and never the list.
//!
//! Not here: when they are asked ([`crate::arrival_times`]), and how they are found in a log.

use crate::interval::RouteNumber;
use crate::rng::mix;
use crate::session_draws::{ListedSessions, SessionsFacts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One request of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedRequest {
    /// The number of its path and query.
    pub target: u32,
    /// The route that it counts for, with its method and header fields.
    pub route: RouteNumber,
    /// The status with which it was answered then; 0: nobody knows.
    pub status: u16,
}

/// Paths with their queries, each with a number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedTargets {
    text: String,
    /// Where each ends; it begins where the one before ends.
    ends: Vec<u32>,
}

impl ListedTargets {
    /// Takes one more; its number. `None`: there is no room for it.
    pub fn push(&mut self, target: &str) -> Option<u32> {
        let number = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len().checked_add(target.len())?).ok()?;
        self.text.push_str(target);
        self.ends.push(end);
        Some(number)
    }

    /// The one with this number; of none that there is, the empty text.
    #[inline]
    pub fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let from = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let to = self.ends.get(number).copied().unwrap_or(from);
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all together.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).map(|number| self.get(number))
    }
}

/// What was made of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplayFacts {
    /// How much faster than then, in thousandths.
    pub speed_milli: u64,
    /// How many times the visitors of then, in thousandths.
    pub scale_milli: u64,
    /// Lines that were read.
    pub lines: u64,
    /// Requests that were left out, by why; of methods that change things by their name.
    pub left_out: BTreeMap<String, u64>,
    /// Stamps that tell whole seconds only: requests lie anywhere within them.
    pub spread: bool,
    /// Its sessions, where loads are drawn from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_from: Option<SessionsFacts>,
}

/// Requests that are asked one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestList {
    /// Paths and queries that are asked.
    pub targets: Arc<ListedTargets>,
    /// What arrival n asks; where sessions are drawn, what there is to draw from.
    pub entries: Vec<ListedRequest>,
    /// Where loads of any rate are drawn from it.
    pub sessions: Option<ListedSessions>,
    /// What was made of the log.
    pub facts: ReplayFacts,
}

/// What a run file holds of requests that are asked one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestListRecord {
    /// How many there are.
    pub requests: u64,
    /// How many paths with queries, each once.
    pub targets: u64,
    /// Tells them from others.
    pub digest: String,
    /// What was made of the log.
    pub facts: ReplayFacts,
}

impl RequestList {
    /// Whether every entry has a route, of which there are so many, and a path.
    pub fn is_whole(&self, routes: usize) -> bool {
        let of =
            |entry: &ListedRequest| usize::from(entry.route) < routes && (entry.target as usize) < self.targets.len();
        let sessions = self.sessions.as_ref().is_none_or(|it| it.starts_ns().len() == self.entries.len());
        !self.entries.is_empty() && self.entries.iter().all(of) && sessions
    }

    /// What a run file holds of it.
    pub fn record(&self) -> RequestListRecord {
        let paths = self.targets.text.bytes().fold(0, |digest, byte| mix(digest ^ u64::from(byte)));
        let word = |entry: &ListedRequest| {
            u64::from(entry.target) << 32 | u64::from(entry.route) << 16 | u64::from(entry.status)
        };
        let digest = self.entries.iter().fold(paths, |digest, entry| mix(digest ^ word(entry)));
        let digest = self.sessions.as_ref().map_or(digest, |sessions| mix(digest ^ sessions.digest()));
        RequestListRecord {
            requests: self.entries.len() as u64,
            targets: self.targets.len() as u64,
            digest: format!("{digest:016x}"),
            facts: self.facts.clone(),
        }
    }

    /// Whether an answer is what it was then, as far as that is known. A log does not hold the
    /// conditions of a request: what was answered with "not modified" or in part is answered in
    /// full.
    #[inline]
    pub fn is_as_then(&self, number: u64, status: u16) -> bool {
        match self.entries.get(number as usize).map_or(0, |entry| entry.status) {
            0 => true,
            304 | 206 => matches!(status, 200 | 206 | 304),
            then => then == status,
        }
    }

    /// Whether an answer that is no success elsewhere is what is to be expected here: then it was
    /// the same, and no fault of the server.
    #[inline]
    pub fn expects(&self, number: u64, status: u16) -> bool {
        status < 500 && self.entries.get(number as usize).is_some_and(|entry| entry.status == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(statuses: &[u16]) -> RequestList {
        let mut targets = ListedTargets::default();
        for (number, target) in ["/a", "/b?c=d", ""].into_iter().enumerate() {
            assert_eq!(targets.push(target), Some(number as u32));
        }
        let entry = |(at, status): (usize, &u16)| ListedRequest { target: at as u32 % 3, route: 0, status: *status };
        let entries = statuses.iter().enumerate().map(entry).collect();
        RequestList { targets: Arc::new(targets), entries, sessions: None, facts: ReplayFacts::default() }
    }

    #[test]
    fn paths_have_numbers() {
        let targets = listed(&[]).targets;
        assert_eq!(targets.iter().collect::<Vec<_>>(), ["/a", "/b?c=d", ""]);
        assert_eq!((targets.get(3), targets.get(u32::MAX), targets.len(), targets.bytes()), ("", "", 3, 8));
    }

    #[test]
    fn statuses_are_held_against_those_of_then() {
        let listed = listed(&[200, 404, 304, 500, 0]);
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
            let got = (listed.is_as_then(number, status), listed.expects(number, status));
            assert_eq!(got, (as_then, expected), "{number} {status}");
        }
    }

    #[test]
    fn another_list_has_another_record() {
        let (one, other) = (listed(&[200, 404]), listed(&[200, 405]));
        assert_eq!(one.record(), one.clone().record());
        assert_ne!(one.record().digest, other.record().digest);
        assert!(one.is_whole(1) && !one.is_whole(0) && !listed(&[]).is_whole(1));
    }
}
