//! Everything that one load will do, with resolved addresses and a random seed. One machine or
//! several machines can execute a [`Plan`] without further input. An [`Injector`](crate::injector)
//! describes the part of the plan that one machine executes.

use crate::arrival_times::ArrivalTimes;
use crate::load::{ArrivalSpacing, Load, LoadShape};
use crate::request_list::{RequestList, RequestListEntry};
use crate::traffic::{Origin, Request, Route, Traffic};
use crate::transport::ConnectionPlan;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// The purpose of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadPurpose {
    /// The only load of a `run` command.
    Run,
    /// A load at one level (number of users) of a sweep.
    Level,
    /// A closed-loop trial that searches for the concurrency with the highest throughput (the
    /// peak).
    Peak,
    /// A closed-loop trial with more users than the server serves concurrently, so that the
    /// server's queue never empties.
    Saturate,
    /// An open-loop trial while the rate rises towards the load line (the highest sustained rate).
    /// Only recordings of old versions contain a trial with this purpose.
    Climb,
    /// An open-loop trial near the load line (the highest sustained rate).
    Line,
    /// The trial that confirms the load line (the highest sustained rate).
    Confirm,
    /// A load outside any measurement, to drain queues or to warm up the server.
    Settle,
    /// A load with a fixed rate, during which profiles of the server are taken.
    Profile,
    /// A load of a block; a block is a round with one load for each arm (compared target).
    Block,
    /// A steady load at a share of the load line (the highest sustained rate), to see what changes
    /// as the rate approaches the load line.
    #[serde(rename = "hold")]
    SteadyLoad,
    /// A load whose rate rises in steps above the load line (the highest sustained rate), and falls
    /// back.
    Overload,
    /// A part of a long load at the load line (the highest sustained rate), after the search for
    /// the load line.
    Soak,
}

/// The number of the target that a load goes to, if there are several targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmIndex {
    /// A side of a comparison of two builds: 0 is A, 1 is B.
    Side(u8),
    /// A target (rung) of a ladder, in which each target does one thing more than the target
    /// before. The lowest rung of the ladder has the number 0.
    Rung(u8),
}

impl ArmIndex {
    /// The index of the second target of an overload study, which gets the same load as the first
    /// target.
    pub const SECOND_TARGET: ArmIndex = ArmIndex::Side(1);

    /// Returns the index of the arm (the compared target) among all arms, from 0.
    pub fn index(self) -> usize {
        match self {
            ArmIndex::Side(index) | ArmIndex::Rung(index) => usize::from(index),
        }
    }

    /// Returns the letter of the arm (the compared target), from A to Z. Every arm after the 26th
    /// has the letter Z.
    pub fn letter(self) -> char {
        char::from(b'A' + self.index().min(25) as u8)
    }
}

/// The purpose of a load, and its position in the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTag {
    /// The purpose of the load.
    pub purpose: LoadPurpose,
    /// The target; `None` if the experiment has only one target.
    #[serde(flatten)]
    pub arm: Option<ArmIndex>,
    /// The number of the sweep level, of the block (round of loads) or of the profile that the load
    /// belongs to, from 0. For steady loads, the number also identifies the share of the load line,
    /// the experiment, or the value of a setting. If two loads have equal tags, the later load
    /// repeats the earlier load.
    #[serde(default)]
    pub turn: u32,
}

impl LoadTag {
    /// Returns the tag of the first load with this purpose, for an experiment with one target.
    pub fn for_purpose(purpose: LoadPurpose) -> LoadTag {
        LoadTag { purpose, arm: None, turn: 0 }
    }
}

/// Everything that a load will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The requests of the load.
    pub traffic: Traffic,
    /// The load model, the level (users or rate), and the lengths of the warm-up and the measured
    /// part.
    pub load: Load,
    /// How connections are opened, secured and closed.
    pub connection_plan: ConnectionPlan,
}

impl Plan {
    /// Length of a tick, ns: a load reports its figures once every tick.
    pub const TICK_NS: u64 = Load::TICK_NS;

    /// Creates a plan for `GET /` of a host over plain HTTP at the given addresses. The defaults
    /// are a load of 10 s (or the shape's own length), a timeout of 30 s and a grace period of 5 s.
    pub fn for_get_request(host: &str, port: u16, addresses: Vec<SocketAddr>, shape: LoadShape) -> Plan {
        let origin = Origin { scheme: "http".into(), host: host.into(), port };
        Plan {
            traffic: Traffic::with_one_route(origin, Route::new(Request::get_root())),
            load: Load::new(shape),
            connection_plan: ConnectionPlan::tcp(addresses),
        }
    }

    /// Returns the executable plan. If the plan's arrivals are drawn from a log
    /// ([`ArrivalSpacing::Replayed`]), the result contains the drawn times and requests. `None`
    /// means that the arrivals cannot be drawn: the log has no sessions, the load has no length, or
    /// the measured part gets no arrival.
    pub fn with_drawn_arrivals(&self) -> Option<Cow<'_, Plan>> {
        let LoadShape::Open { arrivals: ArrivalSpacing::Replayed, .. } = &self.load.shape else {
            return Some(Cow::Borrowed(self));
        };
        let listed = self.traffic.request_list.as_deref()?;
        let drawn = listed.sessions.as_ref()?.draw_requests(&self.load);
        let entry = |(_, entry): &(u64, u32)| listed.entries.get(*entry as usize).copied();
        let entries: Vec<RequestListEntry> = drawn.iter().map(entry).collect::<Option<_>>()?;
        let starts_ns = drawn.iter().map(|(start_ns, _)| *start_ns).collect();
        let end_ns = self.load.warmup_ns + self.load.duration_ns?;
        let arrivals = ArrivalTimes::new(starts_ns, self.load.warmup_ns, end_ns)?;
        let mut plan = self.clone();
        plan.load.shape = LoadShape::ArrivalTimes { arrivals };
        let (targets, facts) = (Arc::clone(&listed.targets), listed.facts.clone());
        plan.traffic.request_list = Some(Arc::new(RequestList { targets, entries, sessions: None, facts }));
        Some(Cow::Owned(plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::LoadCurve;
    use crate::request_list::{ReplayFacts, RequestTargets};
    use crate::session_draws::LogSessions;
    use crate::traffic::RouteChoice;
    use crate::units::SECOND;

    #[test]
    fn sessions_drawn_from_a_log_are_stored_in_the_plan() {
        let rate = LoadCurve::constant_for_duration(50.0, 2 * SECOND);
        let mut plan =
            Plan::for_get_request("h", 80, vec![], LoadShape::Open { rate, arrivals: ArrivalSpacing::Replayed });
        assert!(plan.with_drawn_arrivals().is_none() && !plan.is_within_limits());
        let mut targets = RequestTargets::default();
        let entry =
            |target: &str| RequestListEntry { target: targets.push(target).expect("room"), route: 0, status: 200 };
        let entries = ["/a", "/b", "/c"].map(entry).to_vec();
        let sessions = LogSessions::new(vec![0, 5, 9], vec![0, 2, 1], vec![2, 3]);
        let (targets, facts) = (Arc::new(targets), ReplayFacts::default());
        plan.traffic.request_list = Some(Arc::new(RequestList { targets, entries, sessions, facts }));
        plan.traffic.choice = RouteChoice::RequestList;
        assert!(plan.is_within_limits());
        let drawn = plan.with_drawn_arrivals().expect("drawn").into_owned();
        let LoadShape::ArrivalTimes { arrivals } = &drawn.load.shape else { panic!("no moments") };
        assert_eq!((arrivals.count(), drawn.is_within_limits()), (100, true));
        let asked = drawn.traffic.request_list.as_deref().expect("a list");
        let many = |target: u32| asked.entries.iter().filter(|entry| entry.target == target).count();
        assert!((0..3).all(|target| many(target) > 10), "{:?}", [many(0), many(1), many(2)]);
        // Loads without arrivals from a log stay unchanged.
        let closed = Plan { load: Load::new(LoadShape::Closed { users: LoadCurve::constant(1.0) }), ..plan.clone() };
        assert!(matches!(closed.with_drawn_arrivals(), Some(Cow::Borrowed(_))));
    }
}
