//! What can be changed for a load to see what follows ([`Intervention`]): everything else stays as
//! it is, so that what differs is its doing.
//!
//! Not here: what causes predict of it and which of them are made (`plimsoll-analysis`), and how a
//! plan is changed (the binary).

use crate::plan::{Purpose, Tag};
use serde::{Deserialize, Serialize};

/// Something that is changed for a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intervention {
    /// Nothing: what the others are held against.
    Control,
    /// Another path of the same server, which does little.
    Reference,
    /// Twice the users and connections.
    MoreUsers,
    /// A new connection for each request, where they were kept.
    NewConnections,
    /// Connections that are kept, where each request had a new one.
    KeptConnections,
    /// A HEAD in place of a GET: the same work, without a body.
    Head,
    /// The requests are spread over clients that name themselves differently.
    Identities,
    /// The requests come from several addresses.
    Sources,
    /// Just below the line, in bursts of a tenth of a second.
    Bursts,
    /// Half of the load is made by a second process of plimsoll's.
    SecondGenerator,
    /// A longer body, of the same requests.
    LargerBody,
    /// A shorter body.
    SmallerBody,
    /// The first byte of an answer in place of all of it (a range).
    SmallerAnswer,
    /// What is behind the server is stopped a part of the time ([`STOP_NS`]).
    Stopped,
    /// Twice as many requests at once as the server serves at a time, then none until all are
    /// answered.
    Together,
    /// As many at once as it serves at a time.
    Abreast,
}

/// A process that is stopped under load is stopped for so long each [`STOP_PERIOD_NS`], ns.
pub const STOP_NS: u64 = 60_000_000;
/// See [`STOP_NS`].
pub const STOP_PERIOD_NS: u64 = 180_000_000;

/// Turns of the steady loads that are made with a change; lower ones are those without.
const FIRST_TURN: u32 = 16;

impl Intervention {
    /// All, in the order of their turns: new ones come last, since records have the numbers.
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
        Intervention::Stopped,
        Intervention::Together,
        Intervention::Abreast,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
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
            Intervention::Stopped => "stopped",
            Intervention::Together => "together",
            Intervention::Abreast => "abreast",
        }
    }

    /// What is changed, in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Intervention::Control => "no change (reference)",
            Intervention::Reference => "a path that does little work",
            Intervention::MoreUsers => "twice the users",
            Intervention::NewConnections => "a new connection for each request",
            Intervention::KeptConnections => "kept-alive connections",
            Intervention::Head => "HEAD in place of GET",
            Intervention::Identities => "several client identities",
            Intervention::Sources => "several source addresses",
            Intervention::Bursts => "bursts just below the line",
            Intervention::SecondGenerator => "half of the load from a second process of plimsoll",
            Intervention::LargerBody => "a longer request body",
            Intervention::SmallerBody => "a shorter request body",
            Intervention::SmallerAnswer => "one byte of the response",
            Intervention::Stopped => "the dependency paused for a third of the time",
            Intervention::Together => "twice as many requests at once as it serves at once",
            Intervention::Abreast => "as many requests at once as it serves at once",
        }
    }

    /// The tag of its loads.
    pub fn tag(self) -> Tag {
        Tag { turn: FIRST_TURN + self as u32, ..Tag::for_purpose(Purpose::Hold) }
    }

    /// What was changed for a load of this tag; `None` of a load that has no part in it.
    pub fn from_tag(tag: &Tag) -> Option<Intervention> {
        Intervention::ALL.into_iter().find(|intervention| intervention.tag() == *tag)
    }
}

/// Turns of the loads before each of which a setting of the server's was changed.
const FIRST_VARIED: u32 = 64;
/// So many values of a setting are tried, at most.
pub const VARIED_MAX: usize = 16;

/// The tag of the load with a setting's value, by the number of the value.
pub fn varied_tag(number: usize) -> Tag {
    Tag { turn: FIRST_VARIED + number as u32, ..Tag::for_purpose(Purpose::Hold) }
}

/// The number of the setting's value of a load with this tag; `None` of one that has no part in it.
pub fn varied_number(tag: &Tag) -> Option<usize> {
    (0..VARIED_MAX).find(|number| varied_tag(*number) == *tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_lead_back() {
        for (at, intervention) in Intervention::ALL.into_iter().enumerate() {
            assert_eq!(intervention as usize, at, "the order is that of the turns");
            assert_eq!(Intervention::from_tag(&intervention.tag()), Some(intervention));
            // Documents and records have one word for it.
            let recorded = serde_json::to_value(intervention).expect("serialises");
            assert_eq!(recorded, intervention.word());
        }
        for turn in 0..FIRST_TURN {
            assert_eq!(Intervention::from_tag(&Tag { turn, ..Tag::for_purpose(Purpose::Hold) }), None);
        }
        assert_eq!(Intervention::from_tag(&Tag { turn: FIRST_TURN, ..Tag::for_purpose(Purpose::Block) }), None);
        for number in 0..VARIED_MAX {
            let tag = varied_tag(number);
            assert_eq!((varied_number(&tag), Intervention::from_tag(&tag)), (Some(number), None));
        }
        assert_eq!(varied_number(&Intervention::Control.tag()), None);
    }
}
