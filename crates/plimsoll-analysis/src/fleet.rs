//! The agents of a fleet in the results. Agents are machines that generate a load together.
//! [`limiting_agent_text`] decides whether one agent was the limit of a load. [`sum_agents`] sums
//! the work of each agent over several loads.
//!
//! Not here: the coordinator, and the table of agents.

use crate::format;
use plimsoll_model::{AgentAccount, Run};
use std::collections::BTreeMap;

/// Returns a sentence, without a full stop, about the agent that was the limit of the load; `None`
/// if no agent was the limit. Lost agents are checked first, then busy agents, then late agents.
pub fn limiting_agent_text(run: &Run, work_share_max: f64, lag_max_ns: u64) -> Option<String> {
    let agents = run.agents.as_slice();
    if let Some((agent, reason)) = agents.iter().find_map(|agent| Some((agent, agent.loss_reason.as_ref()?))) {
        let agent_name = &agent.name;
        return Some(match agent.ledger.unsent {
            0 => format!("agent {agent_name} was lost ({reason})"),
            unsent => format!(
                "agent {agent_name} was lost ({reason}), and {requests} of its requests were not sent",
                requests = format::count(unsent)
            ),
        });
    }
    let busiest = agents.iter().max_by(|a, b| a.work_share.total_cmp(&b.work_share));
    if let Some(agent) = busiest.filter(|agent| agent.work_share >= work_share_max) {
        let share = agent.work_share * 100.0;
        return Some(format!(
            "a worker thread of agent {agent_name} was busy {share:.0} % of the time",
            agent_name = agent.name
        ));
    }
    let latest = agents.iter().max_by_key(|agent| agent.lag_p99_ns);
    let late = latest.and_then(|agent| Some((agent, agent.lag_p99_ns.filter(|lag_ns| *lag_ns > lag_max_ns)?)));
    late.map(|(agent, lag_ns)| {
        let (lag, allowed) = (format::duration(lag_ns as f64), format::duration(lag_max_ns as f64));
        format!(
            "agent {agent_name} sent requests late: lag p99 {lag}, more than the {allowed} allowed",
            agent_name = agent.name
        )
    })
}

/// Sums the work of each agent over several loads. Agents with the same name are one agent.
pub fn sum_agents<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<AgentAccount> {
    let mut sums: BTreeMap<&str, AgentAccount> = BTreeMap::new();
    for agent in runs.into_iter().flat_map(|run| &run.agents) {
        sums.entry(&agent.name).and_modify(|sum| sum.merge(agent)).or_insert_with(|| agent.clone());
    }
    sums.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{LoadCurve, LoadShape, Plan};

    #[test]
    fn the_agent_that_was_the_limit_is_named() {
        let agent = |name: &str, work_share: f64, lag_ms: u64| AgentAccount {
            work_share,
            lag_p99_ns: Some(lag_ms * 1_000_000),
            ..AgentAccount::new(name, 1)
        };
        let mut lost = AgentAccount { loss_reason: Some("its ssh ended".into()), ..agent("c", 0.1, 0) };
        lost.ledger.unsent = 1_200;
        for (agents, expect) in [
            (vec![], None),
            (vec![agent("a", 0.5, 1), agent("b", 0.9, 2)], None),
            (vec![agent("a", 0.99, 1), agent("b", 0.5, 99)], Some("thread of agent a was busy 99 %")),
            (vec![agent("a", 0.5, 1), agent("b", 0.5, 99)], Some("agent b sent requests late: lag p99 99.0 ms")),
            (vec![agent("a", 0.99, 99), lost], Some("agent c was lost (its ssh ended), and 1 200 of its requests")),
        ] {
            let mut run =
                Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
            run.agents = agents;
            match (limiting_agent_text(&run, 0.95, 10_000_000), expect) {
                (None, None) => {}
                (Some(said), Some(part)) => assert!(said.contains(part), "{said}"),
                (got, expect) => panic!("{got:?}, expected {expect:?}"),
            }
            let twice = sum_agents([&run, &run]);
            assert_eq!(twice.len(), run.agents.len());
            assert!(twice.iter().zip(&run.agents).all(|(sum, one)| sum.ledger.unsent == 2 * one.ledger.unsent));
        }
    }
}
