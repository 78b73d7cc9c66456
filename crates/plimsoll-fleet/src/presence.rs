//! The messages by which agents and coordinators find each other on a bus. The module has the NATS
//! subjects (message topics), the presence message of an agent ([`Presence`]), and the message with
//! which a coordinator claims an agent ([`AgentClaim`]).
//!
//! ```text
//! pl.who              coordinator to all    a request for all presence messages
//! pl.here.AGENT       agent to all          a presence message
//! pl.claim.AGENT      coordinator to one    a claim message
//! pl.RUN.to.AGENT     coordinator to one    messages in pieces
//! pl.RUN.from.AGENT   agent to coordinator  messages in pieces
//! pl.RUN.f.AGENT      agent, stored         intervals and ends of loads, in pieces
//! pl.RUN.load         coordinator, stored   the record of the load, in pieces
//! pl.RUN.echo         coordinator to itself an echo, which shows that the bus works
//! ```
//!
//! The subjects of an agent end with its name, so the agent's credentials can be limited to
//! subjects with this ending. Not here: the connection (`nats_client`).

use crate::frame::PROTOCOL_GREETING;
use crate::message::Hello;
use plimsoll_model::redact;
use serde::{Deserialize, Serialize};

/// The subject on which coordinators ask all agents for their presence.
pub const PRESENCE_REQUEST_SUBJECT: &str = "pl.who";
/// The subject pattern that matches the presence messages of all agents.
pub const PRESENCE_SUBJECT_PATTERN: &str = "pl.here.*";
/// The longest name of an agent on a bus, bytes.
const NAME_BYTES_MAX: usize = 64;
/// The number of hexadecimal digits in the name of a run.
const RUN_NAME_DIGITS: usize = 32;
const VERSION_CHARS_MAX: usize = 40;

/// Returns the subject on which an agent publishes its presence.
pub fn presence_subject(agent: &str) -> String {
    format!("pl.here.{agent}")
}

/// Returns the subject on which coordinators claim (reserve) an agent.
pub fn claim_subject(agent: &str) -> String {
    format!("pl.claim.{agent}")
}

/// Returns the subject of messages from the coordinator of a run to an agent. If `run` is `*`, the
/// subject matches every run.
pub fn to_agent_subject(run: &str, agent: &str) -> String {
    format!("pl.{run}.to.{agent}")
}

/// Returns the subject of messages from an agent to the coordinator of a run. If `agent` is `*`,
/// the subject matches all agents.
pub fn from_agent_subject(run: &str, agent: &str) -> String {
    format!("pl.{run}.from.{agent}")
}

/// Returns the subject of an agent's stored intervals (measurements of 100 ms each). If `agent` is
/// `*`, the subject matches all agents.
pub fn frames_subject(run: &str, agent: &str) -> String {
    format!("pl.{run}.f.{agent}")
}

/// Returns the subject of the stored records of a run's loads.
pub fn load_record_subject(run: &str) -> String {
    format!("pl.{run}.load")
}

/// Returns the subject of a coordinator's echo messages to itself.
pub fn echo_subject(run: &str) -> String {
    format!("pl.{run}.echo")
}

/// Returns the name of the agent in a subject.
pub fn agent_name_of_subject(subject: &str) -> &str {
    subject.rsplit('.').next().unwrap_or_default()
}

/// Returns the name of the run in a subject. If the subject names no run, the result has no
/// meaning.
pub fn run_name_of_subject(subject: &str) -> &str {
    subject.split('.').nth(1).unwrap_or_default()
}

/// Whether a text is a valid name of a run. Only valid run names become part of a file path or of a
/// bus subject.
pub fn is_run_name(text: &str) -> bool {
    text.len() == RUN_NAME_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Parses the name of an agent.
pub fn parse_agent_name(text: &str) -> Result<String, String> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_known) {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is not a valid name of an agent: use letters, digits, - and _")),
    }
}

/// Returns the default name of an agent: the host name of its machine, with `-` in place of all
/// characters except letters and digits.
pub fn default_agent_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = host.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    parse_agent_name(&name).unwrap_or_else(|_| "agent".to_owned())
}

/// A message in which an agent announces that it is on the bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The version of the protocol that the agent uses.
    pub protocol: u8,
    /// The start id: a random text that differs for each start of an agent.
    #[serde(rename = "boot")]
    pub start_id: String,
    /// The facts that the agent reports about itself.
    pub hello: Hello,
    /// The name of the run that the agent works for; `None` if the agent is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether the agent has just started and does not know yet whether another agent has its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Presence {
    /// Decodes and sanitises a presence message; `None` if the message is invalid.
    pub fn read(bytes: &[u8]) -> Option<Presence> {
        let mut presence: Presence = serde_json::from_slice(bytes).ok()?;
        let plimsoll = redact::redact_line(&presence.hello.version);
        presence.hello.version = plimsoll.chars().filter(|c| !c.is_control()).take(VERSION_CHARS_MAX).collect();
        let is_known = is_run_name(&presence.start_id) && presence.run.as_deref().is_none_or(is_run_name);
        (is_known && presence.hello.cores <= 1 << 16).then_some(presence)
    }

    /// Encodes the presence as JSON.
    pub fn encode_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns why this version of plimsoll cannot work with the agent `name`; `None` if the
    /// versions match.
    pub fn version_mismatch(&self, name: &str) -> Option<String> {
        let (own, theirs) = (env!("CARGO_PKG_VERSION"), self.hello.version.as_str());
        let differs = self.protocol != PROTOCOL_GREETING[PROTOCOL_GREETING.len() - 1] || theirs != own;
        differs.then(|| {
            format!(
                "agent {name} runs plimsoll {theirs}, and this is plimsoll {own}: install the same \
                version on both machines"
            )
        })
    }
}

/// A message with which a coordinator claims (reserves) an agent for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClaim {
    /// The start id of the claimed agent.
    #[serde(rename = "boot")]
    pub start_id: String,
    /// The name of the run.
    pub run: String,
}

impl AgentClaim {
    /// Decodes a claim message; `None` if the message is invalid.
    pub fn read(bytes: &[u8]) -> Option<AgentClaim> {
        serde_json::from_slice(bytes).ok().filter(|claim: &AgentClaim| is_run_name(&claim.run))
    }

    /// Encodes the claim as JSON.
    pub fn encode_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_names_are_valid_subject_tokens() {
        for text in ["a1", "load-1_x"] {
            assert_eq!(parse_agent_name(text).as_deref(), Ok(text));
        }
        for text in ["", "a.b", "*", ">", "a b", "ä", &"x".repeat(65)] {
            assert!(parse_agent_name(text).is_err_and(|said| said.contains("not a valid name of an agent")), "{text}");
        }
        assert!(parse_agent_name(&default_agent_name()).is_ok());
        let run = "0123456789abcdef".repeat(2);
        assert!(is_run_name(&run) && !is_run_name("../x") && !is_run_name(&run.to_uppercase()));
        let subject = frames_subject(&run, "a1");
        assert_eq!((run_name_of_subject(&subject), agent_name_of_subject(&subject)), (run.as_str(), "a1"));
    }

    #[test]
    fn a_presence_decodes_sanitized_or_not_at_all() {
        let run = "0123456789abcdef".repeat(2);
        let hello = Hello { version: "0.0.9\u{1b}[31m".to_owned(), cores: 4, ..Hello::default() };
        let presence = Presence { protocol: 1, start_id: run.clone(), hello, run: None, is_new: true };
        let read = Presence::read(&presence.encode_json()).expect("a presence");
        assert!(!read.hello.version.contains('\u{1b}') && read.is_new);
        let said = read.version_mismatch("a1").expect("another version");
        assert!(said.contains("agent a1 runs plimsoll 0.0.9") && said.contains(env!("CARGO_PKG_VERSION")), "{said}");
        let other = Presence { run: Some("../../etc".to_owned()), ..presence };
        assert!(Presence::read(&other.encode_json()).is_none() && Presence::read(b"{}").is_none());
        let claim = AgentClaim { start_id: run.clone(), run };
        assert_eq!(AgentClaim::read(&claim.encode_json()), Some(claim));
        assert!(AgentClaim::read(br#"{"boot":"","run":"x"}"#).is_none());
    }
}
