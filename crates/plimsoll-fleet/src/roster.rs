//! Chooses the free agents for a run among the agents that are present on a bus ([`Roster`]). The
//! user gives a number of agents, or names.
//!
//! Not here: requesting the presence of agents (`nats_bus`).

use crate::presence::{Presence, parse_agent_name};
use plimsoll_model::units::format_exact_duration;
use std::collections::BTreeMap;
use std::time::Duration;

/// The largest number of agents on a bus.
const AGENTS_MAX: usize = 1_000;

/// The user's choice of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChoice {
    /// All agents that are present on the bus.
    All,
    /// Any free agents; the value is their number.
    Count(usize),
    /// The agents with these names.
    Named(Vec<String>),
}

impl AgentChoice {
    /// Parses a number such as `3`, or names such as `a1,a2`.
    pub fn parse(text: &str) -> Result<AgentChoice, String> {
        if let Ok(count) = text.trim().parse::<usize>() {
            return match count {
                1..=AGENTS_MAX => Ok(AgentChoice::Count(count)),
                _ => Err(format!("a load uses 1 to {AGENTS_MAX} agents, not {count}: write another number, or names")),
            };
        }
        let names = text.split(',').map(|name| parse_agent_name(name.trim())).collect::<Result<Vec<_>, _>>()?;
        match names.iter().enumerate().find(|(number, name)| names[..*number].contains(name)) {
            Some((_, name)) => Err(format!("{name} is named twice")),
            None => Ok(AgentChoice::Named(names)),
        }
    }
}

/// The result of comparing the present agents with the user's choice.
#[derive(Debug, PartialEq, Eq)]
pub enum RosterState {
    /// All wanted agents are present. The values are the name and start id (`boot`) of each agent,
    /// ordered by name.
    Complete(Vec<(String, String)>),
    /// Some wanted agents are missing.
    Incomplete,
    /// The wanted agents cannot be used. The value is a sentence with the reason and a way to
    /// correct the problem.
    Refused(String),
}

/// The agents that have announced their presence.
#[derive(Debug, Default)]
pub struct Roster {
    /// The presence messages, by name of the agent and then by start id, which differs for each
    /// start of an agent. Two start ids under one name mean that two agents have the same name.
    agents: BTreeMap<String, BTreeMap<String, Presence>>,
}

impl Roster {
    /// Adds the presence message of an agent.
    pub fn add(&mut self, name: &str, presence: Presence) {
        if self.agents.len() < AGENTS_MAX || self.agents.contains_key(name) {
            self.agents.entry(name.to_owned()).or_default().insert(presence.start_id.clone(), presence);
        }
    }

    /// Returns the presence message of the agent with this name, or `None` if no such agent is
    /// known. If several agents have the name, returns the message with the lowest start id.
    pub fn presence_by_name(&self, name: &str) -> Option<&Presence> {
        self.agents.get(name)?.values().next()
    }

    /// Compares the present agents with the user's choice. Agents must be free and have this
    /// version of plimsoll.
    pub fn compare_with_choice(&self, choice: &AgentChoice) -> RosterState {
        let is_free = |name: &&String| self.presence_by_name(name).is_some_and(|presence| presence.run.is_none());
        let chosen: Vec<&String> = match choice {
            AgentChoice::All => self.agents.keys().collect(),
            AgentChoice::Count(count) => self.agents.keys().filter(is_free).take(*count).collect(),
            AgentChoice::Named(names) => names.iter().filter(|name| self.agents.contains_key(*name)).collect(),
        };
        let wanted = match choice {
            AgentChoice::All => chosen.len().max(1),
            AgentChoice::Count(count) => *count,
            AgentChoice::Named(names) => names.len(),
        };
        if chosen.len() < wanted {
            return RosterState::Incomplete;
        }
        let mut complete = Vec::new();
        for name in chosen {
            let starts = &self.agents[name];
            let Some((boot, presence)) = starts.first_key_value() else { continue };
            if starts.len() > 1 {
                return RosterState::Refused(format!(
                    "{agents} agents on the bus have the name {name}: give each agent its own name with --name, or \
                     name other agents with --agents",
                    agents = starts.len()
                ));
            }
            if let Some(why) = presence.version_mismatch(name) {
                return RosterState::Refused(why);
            }
            if presence.run.is_some() {
                return RosterState::Refused(format!(
                    "agent {name} works for another coordinator (another plimsoll run): wait until the agent is \
                     free, or name other agents with --agents"
                ));
            }
            complete.push((name.clone(), boot.clone()));
        }
        complete.sort();
        RosterState::Complete(complete)
    }

    /// Returns the error message for wanted agents that are still missing after the waiting time
    /// `wait`.
    pub fn missing_agents_message(&self, choice: &AgentChoice, wait: Duration, bus: &str) -> String {
        let wait = format_exact_duration(wait.as_nanos() as u64);
        let names: Vec<&str> = self.agents.keys().map(String::as_str).collect();
        let present_agents = match names.is_empty() {
            true => "no agent has joined".to_owned(),
            false => format!("joined: {}", names.join(", ")),
        };
        match choice {
            AgentChoice::All => format!(
                "no agent has joined the bus at {bus} within {wait}: start an agent with plimsoll agent --join \
                 {bus}, or wait longer with --wait"
            ),
            AgentChoice::Count(count) => {
                let free =
                    self.agents.values().flat_map(|starts| starts.values()).filter(|it| it.run.is_none()).count();
                format!(
                    "{free} of {count} agents were free on the bus at {bus} within {wait} ({present_agents}). Start \
                     more agents, request fewer agents with --agents, or wait longer with --wait"
                )
            }
            AgentChoice::Named(wanted) => {
                let missing: Vec<&str> =
                    wanted.iter().filter(|name| !self.agents.contains_key(*name)).map(String::as_str).collect();
                format!(
                    "agent {missing_agents} has not joined the bus at {bus} within {wait} ({present_agents}): start \
                     this agent, name other agents with --agents, or wait longer with --wait",
                    missing_agents = missing.join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::PROTOCOL_GREETING;
    use crate::message::Hello;

    fn agent_presence(start_id: &str, run: Option<&str>) -> Presence {
        let hello = Hello { version: env!("CARGO_PKG_VERSION").to_owned(), ..Hello::default() };
        let (start_id, run) = (start_id.to_owned(), run.map(str::to_owned));
        Presence { protocol: PROTOCOL_GREETING[7], start_id, hello, run, is_new: false }
    }

    fn roster_from_names(names: &str) -> Roster {
        let mut roster = Roster::default();
        for (number, name) in names.split_whitespace().enumerate() {
            let (name, run) = name.strip_prefix('!').map_or((name, None), |name| (name, Some("r")));
            roster.add(name, agent_presence(&number.to_string(), run));
        }
        roster
    }

    #[test]
    fn agents_are_selected_or_refused_by_name() {
        for (there, choice, expect) in [
            ("", "", "incomplete"),
            ("b a", "", "a b"),
            ("a !b", "", "agent b works for another"),
            ("a b", "3", "incomplete"),
            ("a !b c", "2", "a c"),
            ("a !b", "2", "incomplete"),
            ("a b c", "c,a", "a c"),
            ("a b", "c", "incomplete"),
            ("a !b", "b", "agent b works for another"),
            ("a a b", "2", "2 agents on the bus have the name a"),
            ("a a b", "b", "b"),
        ] {
            let choice = if choice.is_empty() { AgentChoice::All } else { AgentChoice::parse(choice).expect(choice) };
            let state = match roster_from_names(there).compare_with_choice(&choice) {
                RosterState::Incomplete => "incomplete".to_owned(),
                RosterState::Refused(why) => why,
                RosterState::Complete(agents) => agents.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" "),
            };
            assert!(state.starts_with(expect), "{there} {choice:?}: {state}");
        }
        let mut other = roster_from_names("a");
        other.add("b", Presence { protocol: 99, ..agent_presence("1", None) });
        assert!(
            matches!(other.compare_with_choice(&AgentChoice::All), RosterState::Refused(why) if why.contains("agent b runs plimsoll"))
        );
    }

    #[test]
    fn missing_agents_message_names_present_agents() {
        let said = |choice: &str, there: &str| {
            let choice = if choice.is_empty() { AgentChoice::All } else { AgentChoice::parse(choice).expect(choice) };
            roster_from_names(there).missing_agents_message(&choice, Duration::from_secs(30), "nats://b:4222")
        };
        assert!(said("", "").contains("no agent has joined the bus at nats://b:4222 within 30s"));
        assert!(said("3", "a !b").starts_with("1 of 3 agents were free"), "{}", said("3", "a !b"));
        assert!(said("a,c", "a b").starts_with("agent c has not joined"), "{}", said("a,c", "a b"));
        for text in ["0", "1001", "a,,b", "a,a", "a.b"] {
            assert!(AgentChoice::parse(text).is_err(), "{text}");
        }
    }
}
