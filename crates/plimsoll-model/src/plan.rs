//! Everything that one load will do, resolved and seeded: a [`Plan`] needs nothing more from
//! outside to be carried out, by one machine or by several; what each of them brings is its own
//! ([`crate::injector`]).

use crate::arrival_times::ArrivalTimes;
use crate::carriage::ConnectionPlan;
use crate::load::{Arrivals, Load, LoadShape};
use crate::request_list::{ListedRequest, RequestList};
use crate::traffic::{Origin, Request, Route, Traffic};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// What a load is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A load that the user asked for as such.
    Run,
    /// A level of a sweep.
    Level,
    /// A closed-loop trial on the way to the peak.
    Peak,
    /// A closed-loop trial with more users than the server can serve at once: its queue never
    /// empties.
    Saturate,
    /// An open-loop trial while climbing.
    Climb,
    /// An open-loop trial near the line.
    Line,
    /// The trial that confirms the line.
    Confirm,
    /// Load outside any measurement: draining, priming, warming up.
    Settle,
    /// A fixed rate at which profiles of the server were taken.
    Profile,
    /// A load of a block, in which there is one on every arm.
    Block,
    /// A steady load at a share of the line, to see what changes towards it.
    Hold,
    /// A load in steps past the line, and back.
    Overload,
    /// A piece of a long load at the line, after a search.
    Soak,
}

/// Which of several targets a load is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmIndex {
    /// A side of a comparison: 0 is A, 1 is B.
    Side(u8),
    /// A rung of a ladder, 0 the lowest: A, B, ...
    Rung(u8),
}

impl ArmIndex {
    /// The target beside the one whose line is looked for.
    pub const AGAINST: ArmIndex = ArmIndex::Side(1);

    /// Its place among the arms.
    pub fn index(self) -> usize {
        match self {
            ArmIndex::Side(index) | ArmIndex::Rung(index) => usize::from(index),
        }
    }

    /// A, B, ... Z.
    pub fn letter(self) -> char {
        char::from(b'A' + self.index().min(25) as u8)
    }
}

/// What a load is for, and its place among the others of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    /// What it is for.
    pub purpose: Purpose,
    /// On which of several targets; `None` where there is one.
    #[serde(flatten)]
    pub arm: Option<ArmIndex>,
    /// Which level, block or profile it belongs to, from 0; several loads of one turn are attempts
    /// at the same.
    #[serde(default)]
    pub turn: u32,
}

impl Tag {
    /// Of the only target, the first turn.
    pub fn for_purpose(purpose: Purpose) -> Tag {
        Tag { purpose, arm: None, turn: 0 }
    }
}

/// Everything a load will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is asked.
    pub traffic: Traffic,
    /// When, and by whom.
    pub load: Load,
    /// Over what.
    pub carriage: ConnectionPlan,
}

impl Plan {
    /// How often a run looks up.
    pub const TICK_NS: u64 = Load::TICK_NS;

    /// `GET /` of a host over plain HTTP at the given addresses, with the usual defaults: 10 s,
    /// timeout 30 s, grace 5 s.
    pub fn get(host: &str, port: u16, addresses: Vec<SocketAddr>, shape: LoadShape) -> Plan {
        let origin = Origin { scheme: "http".into(), host: host.into(), port };
        Plan {
            traffic: Traffic::one(origin, Route::new(Request::get())),
            load: Load::new(shape),
            carriage: ConnectionPlan::tcp(addresses),
        }
    }

    /// The plan as it is carried out: where its arrivals are drawn from a log
    /// ([`Arrivals::Replayed`]), with the moments and requests that are drawn. `None` where there
    /// is nothing to draw from.
    pub fn drawn(&self) -> Option<Cow<'_, Plan>> {
        let LoadShape::Open { arrivals: Arrivals::Replayed, .. } = &self.load.shape else {
            return Some(Cow::Borrowed(self));
        };
        let listed = self.traffic.listed.as_deref()?;
        let drawn = listed.sessions.as_ref()?.drawn(&self.load);
        let entry = |(_, entry): &(u64, u32)| listed.entries.get(*entry as usize).copied();
        let entries: Vec<ListedRequest> = drawn.iter().map(entry).collect::<Option<_>>()?;
        let starts_ns = drawn.iter().map(|(start_ns, _)| *start_ns).collect();
        let end_ns = self.load.warmup_ns + self.load.duration_ns?;
        let arrivals = ArrivalTimes::new(starts_ns, self.load.warmup_ns, end_ns)?;
        let mut plan = self.clone();
        plan.load.shape = LoadShape::Given { arrivals };
        let (targets, facts) = (Arc::clone(&listed.targets), listed.facts.clone());
        plan.traffic.listed = Some(Arc::new(RequestList { targets, entries, sessions: None, facts }));
        Some(Cow::Owned(plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::request_list::{ListedTargets, ReplayFacts};
    use crate::session_draws::ListedSessions;
    use crate::traffic::Choice;
    use crate::units::SECOND;

    #[test]
    fn what_is_drawn_from_a_log_is_in_the_plan_that_is_carried_out() {
        let rate = Curve::constant_for(50.0, 2 * SECOND);
        let mut plan = Plan::get("h", 80, vec![], LoadShape::Open { rate, arrivals: Arrivals::Replayed });
        assert!(plan.drawn().is_none() && !plan.is_bounded());
        let mut targets = ListedTargets::default();
        let entry = |target: &str| ListedRequest { target: targets.push(target).expect("room"), route: 0, status: 200 };
        let entries = ["/a", "/b", "/c"].map(entry).to_vec();
        let sessions = ListedSessions::new(vec![0, 5, 9], vec![0, 2, 1], vec![2, 3]);
        let (targets, facts) = (Arc::new(targets), ReplayFacts::default());
        plan.traffic.listed = Some(Arc::new(RequestList { targets, entries, sessions, facts }));
        plan.traffic.choice = Choice::Listed;
        assert!(plan.is_bounded());
        let drawn = plan.drawn().expect("drawn").into_owned();
        let LoadShape::Given { arrivals } = &drawn.load.shape else { panic!("no moments") };
        assert_eq!((arrivals.count(), drawn.is_bounded()), (100, true));
        let asked = drawn.traffic.listed.as_deref().expect("a list");
        let many = |target: u32| asked.entries.iter().filter(|entry| entry.target == target).count();
        assert!((0..3).all(|target| many(target) > 10), "{:?}", [many(0), many(1), many(2)]);
        // Other loads are carried out as they stand.
        let closed = Plan { load: Load::new(LoadShape::Closed { users: Curve::constant(1.0) }), ..plan.clone() };
        assert!(matches!(closed.drawn(), Some(Cow::Borrowed(_))));
    }
}
