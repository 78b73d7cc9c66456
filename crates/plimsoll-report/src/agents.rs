//! Renders the agents of a fleet (machines that generate load together) as a table and as JSON
//! fields. Each agent has one entry with its number of requests and its lag behind the schedule.
//! The entry of a lost agent also states why the agent was lost.
//!
//! Not here: deciding whether an agent limited the load (`plimsoll_analysis::fleet`).

use crate::block::Report;
use crate::format::{count, duration, share};
use plimsoll_model::AgentAccount;
use serde::Serialize;

/// The column headings of the table of agents, for the rows of [`agent_rows`].
pub(crate) const AGENT_TABLE_HEADINGS: [&str; 10] =
    ["agent", "threads", "scheduled", "share", "succeeded", "failed", "unsent", "busy", "lag p99", "clock within"];

/// Adds the table of a fleet's agents to a report, and a line of text for each lost agent. Adds
/// nothing if there are no agents.
pub(crate) fn append_agents(report: &mut Report, agents: &[AgentAccount]) {
    if agents.is_empty() {
        return;
    }
    report.add_table(&AGENT_TABLE_HEADINGS, agent_rows(agents));
    let lost = agents.iter().filter_map(|agent| Some(format!("{}: {}", agent.name, agent.loss_reason.as_ref()?)));
    let lost: Vec<(&str, String)> = lost.map(|text| ("lost agent", text)).collect();
    if !lost.is_empty() {
        report.add_facts(lost);
    }
}

/// Formats the figures of each agent as a table row. An agent is a machine that generates a part of
/// the load.
pub(crate) fn agent_rows(agents: &[AgentAccount]) -> Vec<Vec<String>> {
    let scheduled = scheduled_total(agents);
    agents.iter().map(|agent| agent_row(agent, scheduled)).collect()
}

fn scheduled_total(agents: &[AgentAccount]) -> u64 {
    agents.iter().map(|agent| agent.ledger.scheduled).sum()
}

fn scheduled_share(agent: &AgentAccount, scheduled: u64) -> f64 {
    if scheduled > 0 { agent.ledger.scheduled as f64 / scheduled as f64 } else { 0.0 }
}

fn agent_row(agent: &AgentAccount, scheduled: u64) -> Vec<String> {
    vec![
        agent.name.clone(),
        agent.workers.to_string(),
        count(agent.ledger.scheduled),
        share(scheduled_share(agent, scheduled)),
        count(agent.ledger.succeeded),
        count(agent.ledger.failed_total()),
        count(agent.ledger.unsent),
        format!("{:.0} %", agent.work_share * 100.0),
        agent.lag_p99_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64)),
        duration(agent.skew_ns_max as f64),
    ]
}

/// The fields of one agent in a JSON document.
#[derive(Serialize)]
pub(crate) struct AgentFields {
    name: String,
    threads: u32,
    scheduled: u64,
    share: f64,
    succeeded: u64,
    failed: u64,
    unsent: u64,
    in_flight: u64,
    work_share: f64,
    lag_p99_ns: Option<u64>,
    clock_error_ns_max: u64,
    intervals: u64,
    intervals_repeated: u64,
    lost: Option<String>,
}

/// Returns the JSON fields of all agents. The list is empty if this machine alone generated the
/// load.
pub(crate) fn agent_fields(agents: &[AgentAccount]) -> Vec<AgentFields> {
    let scheduled = scheduled_total(agents);
    let fields = |agent| AgentFields::new(agent, scheduled);
    agents.iter().map(fields).collect()
}

impl AgentFields {
    pub(crate) fn thread_count(&self) -> u32 {
        self.threads
    }

    fn new(agent: &AgentAccount, scheduled: u64) -> AgentFields {
        AgentFields {
            name: agent.name.clone(),
            threads: agent.workers,
            scheduled: agent.ledger.scheduled,
            share: scheduled_share(agent, scheduled),
            succeeded: agent.ledger.succeeded,
            failed: agent.ledger.failed_total(),
            unsent: agent.ledger.unsent,
            in_flight: agent.ledger.in_flight,
            work_share: agent.work_share,
            lag_p99_ns: agent.lag_p99_ns,
            clock_error_ns_max: agent.skew_ns_max,
            intervals: agent.intervals_recorded,
            intervals_repeated: agent.frames_repeated,
            lost: agent.loss_reason.clone(),
        }
    }
}
