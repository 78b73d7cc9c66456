//! Everything that one load will do, resolved and seeded: a [`Plan`] needs nothing more from outside to be carried out, by
//! one machine or by several; what each of them brings is its own ([`crate::injector`]).

use crate::carriage::Carriage;
use crate::load::{Load, LoadShape};
use crate::traffic::{Origin, Request, Route, Traffic};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

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
    /// Which level, block or profile it belongs to, from 0; several loads of one turn are attempts at the same.
    #[serde(default)]
    pub turn: u32,
}

impl Tag {
    /// Of the only target, the first turn.
    pub fn of(purpose: Purpose) -> Tag {
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
    pub carriage: Carriage,
}

impl Plan {
    /// How often a run looks up.
    pub const TICK_NS: u64 = Load::TICK_NS;

    /// `GET /` of a host over plain HTTP at the given addresses, with the usual defaults: 10 s, timeout 30 s, grace 5 s.
    pub fn get(host: &str, port: u16, addresses: Vec<SocketAddr>, shape: LoadShape) -> Plan {
        let origin = Origin { scheme: "http".into(), host: host.into(), port };
        Plan {
            traffic: Traffic::one(origin, Route::new(Request::get())),
            load: Load::new(shape),
            carriage: Carriage::tcp(addresses),
        }
    }
}
