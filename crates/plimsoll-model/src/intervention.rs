//! Interventions ([`Intervention`]): each intervention changes one property of a load, while
//! everything else stays the same. A difference between the results with and without the
//! intervention is therefore an effect of the change.
//!
//! Not here: which effect each cause predicts and which interventions run (`plimsoll-analysis`),
//! and how a plan is changed (`plimsoll-study`).

use crate::plan::{LoadPurpose, LoadTag};
use serde::{Deserialize, Serialize};

/// A change to one load, with which plimsoll tests a hypothesis about the cause that limits the
/// server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervention {
    /// A load without any change, with which the loads of other interventions are compared.
    Control,
    /// Requests go to an endpoint of the same server that does little work.
    Reference,
    /// The load has twice as many users and connections.
    MoreUsers,
    /// Each request gets a new connection, in place of keep-alive.
    NewConnections,
    /// Connections are kept alive, in place of a new connection for each request.
    KeptConnections,
    /// Requests use HEAD in place of GET, so that the server does the same work without a response
    /// body.
    Head,
    /// Requests come from several client identities, given by a header field.
    Identities,
    /// Requests come from several local addresses.
    Sources,
    /// Requests come in bursts of 100 ms, at a mean rate just below the load line (the highest
    /// sustained rate).
    Bursts,
    /// A second process of plimsoll generates half of the load.
    SecondGenerator,
    /// Requests have a longer body.
    LargerBody,
    /// Requests have a shorter body.
    SmallerBody,
    /// Requests ask for only the first byte of each response (a range request).
    SmallerAnswer,
    /// Downstream dependencies (such as a database) are paused for a part of the time
    /// ([`DEPENDENCY_PAUSE_NS`]).
    #[serde(rename = "stopped")]
    DependencyPauses,
    /// Requests come in bursts of twice as many requests as the server serves concurrently. Each
    /// burst begins after the responses to the previous burst had time to arrive.
    #[serde(rename = "together")]
    BurstsAtTwiceConcurrency,
    /// Requests come in bursts of as many requests as the server serves concurrently.
    #[serde(rename = "abreast")]
    BurstsAtConcurrency,
}

/// Length of each pause of a downstream process, ns. A pause begins once every
/// [`DEPENDENCY_PAUSE_PERIOD_NS`].
pub const DEPENDENCY_PAUSE_NS: u64 = 60_000_000;
/// Time from the beginning of one pause of a downstream process to the beginning of the next pause,
/// ns; see [`DEPENDENCY_PAUSE_NS`].
pub const DEPENDENCY_PAUSE_PERIOD_NS: u64 = 180_000_000;

/// The number ([`LoadTag::turn`]) that marks a load with the first intervention. Steady
/// loads with lower numbers have no intervention.
const FIRST_INTERVENTION_TURN: u32 = 16;

impl Intervention {
    /// All interventions, in the order of the numbers ([`LoadTag::turn`]) of their
    /// loads. New interventions come last, because run files contain the numbers.
    pub const ALL: [Intervention; 16] = [
        Intervention::Control,
        Intervention::Reference,
        Intervention::MoreUsers,
        Intervention::NewConnections,
        Intervention::KeptConnections,
        Intervention::Head,
        Intervention::Identities,
        Intervention::Sources,
        Intervention::Bursts,
        Intervention::SecondGenerator,
        Intervention::LargerBody,
        Intervention::SmallerBody,
        Intervention::SmallerAnswer,
        Intervention::DependencyPauses,
        Intervention::BurstsAtTwiceConcurrency,
        Intervention::BurstsAtConcurrency,
    ];

    /// Returns the word for the intervention in flags, records and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Intervention::Control => "control",
            Intervention::Reference => "reference",
            Intervention::MoreUsers => "more_users",
            Intervention::NewConnections => "new_connections",
            Intervention::KeptConnections => "kept_connections",
            Intervention::Head => "head",
            Intervention::Identities => "identities",
            Intervention::Sources => "sources",
            Intervention::Bursts => "bursts",
            Intervention::SecondGenerator => "second_generator",
            Intervention::LargerBody => "larger_body",
            Intervention::SmallerBody => "smaller_body",
            Intervention::SmallerAnswer => "smaller_answer",
            Intervention::DependencyPauses => "stopped",
            Intervention::BurstsAtTwiceConcurrency => "together",
            Intervention::BurstsAtConcurrency => "abreast",
        }
    }

    /// Returns the change that the intervention makes, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Intervention::Control => "no change (reference)",
            Intervention::Reference => "requests to a path that does little work",
            Intervention::MoreUsers => "twice the users",
            Intervention::NewConnections => "a new connection for each request",
            Intervention::KeptConnections => "kept-alive connections",
            Intervention::Head => "HEAD requests in place of GET requests",
            Intervention::Identities => "several client identities",
            Intervention::Sources => "several source addresses",
            Intervention::Bursts => "requests in bursts, just below the load line",
            Intervention::SecondGenerator => "a second process of plimsoll sends half of the load",
            Intervention::LargerBody => "a longer request body",
            Intervention::SmallerBody => "a shorter request body",
            Intervention::SmallerAnswer => "requests for only one byte of each response",
            Intervention::DependencyPauses => "plimsoll pauses the dependency for a third of the time",
            Intervention::BurstsAtTwiceConcurrency => {
                "twice as many simultaneous requests as the server processes in parallel"
            }
            Intervention::BurstsAtConcurrency => "as many simultaneous requests as the server processes in parallel",
        }
    }

    /// Returns the tag that marks a load with this intervention.
    pub fn tag(self) -> LoadTag {
        LoadTag { turn: FIRST_INTERVENTION_TURN + self as u32, ..LoadTag::for_purpose(LoadPurpose::SteadyLoad) }
    }

    /// Returns the intervention of the load with this tag; `None` means that the load has no
    /// intervention.
    pub fn from_tag(tag: &LoadTag) -> Option<Intervention> {
        Intervention::ALL.into_iter().find(|intervention| intervention.tag() == *tag)
    }
}

/// The number ([`LoadTag::turn`]) that marks a load with the first value of a varied
/// server setting.
const FIRST_SETTING_TURN: u32 = 64;
/// The maximum number of values that an experiment can try for a server setting.
pub const SETTING_VALUES_MAX: usize = 16;

/// Returns the tag of the load in which the varied server setting has the value with index
/// `number`.
pub fn setting_value_tag(number: usize) -> LoadTag {
    LoadTag { turn: FIRST_SETTING_TURN + number as u32, ..LoadTag::for_purpose(LoadPurpose::SteadyLoad) }
}

/// Returns the index of the server setting's value in the load with this tag; `None` means that the
/// load varies no setting.
pub fn setting_value_index(tag: &LoadTag) -> Option<usize> {
    (0..SETTING_VALUES_MAX).find(|number| setting_value_tag(*number) == *tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervention_tags_round_trip() {
        for (at, intervention) in Intervention::ALL.into_iter().enumerate() {
            assert_eq!(intervention as usize, at, "the order is that of the turns");
            assert_eq!(Intervention::from_tag(&intervention.tag()), Some(intervention));
            // JSON documents and run files use the same word for an intervention.
            let recorded = serde_json::to_value(intervention).expect("serialises");
            assert_eq!(recorded, intervention.name());
        }
        for turn in 0..FIRST_INTERVENTION_TURN {
            assert_eq!(
                Intervention::from_tag(&LoadTag { turn, ..LoadTag::for_purpose(LoadPurpose::SteadyLoad) }),
                None
            );
        }
        assert_eq!(
            Intervention::from_tag(&LoadTag {
                turn: FIRST_INTERVENTION_TURN,
                ..LoadTag::for_purpose(LoadPurpose::Block)
            }),
            None
        );
        for number in 0..SETTING_VALUES_MAX {
            let tag = setting_value_tag(number);
            assert_eq!((setting_value_index(&tag), Intervention::from_tag(&tag)), (Some(number), None));
        }
        assert_eq!(setting_value_index(&Intervention::Control.tag()), None);
    }
}
