//! The shares of agents in a load. Shares follow from weights that the user sets ([`AgentWeights`])
//! or from stored calibrations ([`calibrated_weights`]).
//!
//! Not here: the stripe (share of the schedule) that belongs to a weight
//! (`plimsoll_model::stripe`), and the storage of calibrations (`calibration_store`).

use crate::fleet_load::AgentStatus;
use plimsoll_model::AgentCalibration;
use plimsoll_model::stripe::{PATTERN_ITEMS_MAX, reduce_weights};

/// The largest accepted relative error (0 to 1) of an agent's share that is due to rounding weights
/// to small whole numbers. A smaller error has no benefit, because two calibrations of the same
/// machine differ by more than 0.05.
const SHARE_ERROR_MAX: f64 = 0.05;

/// The weights of agents as the user writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentWeights {
    /// One weight for each agent, in the order of the agents.
    Ordered(Vec<u32>),
    /// Weights, each with the name of its agent.
    Named(Vec<(String, u32)>),
}

impl AgentWeights {
    /// Parses weights such as `2,1,1` or `a1=2,a2=1`.
    pub fn parse(text: &str) -> Result<AgentWeights, String> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let weight = |word: &str| match word.parse::<u32>() {
            Ok(0) => Err("an agent of weight 0 generates no load: write a weight of 1 or more, or leave the agent out"
                .to_owned()),
            Ok(weight) => Ok(weight),
            Err(_) => {
                Err(format!("the weight '{word}' is not a whole number: write weights such as 2,1,1 or a1=2,a2=1"))
            }
        };
        let named = |word: &&str| match word.rsplit_once('=') {
            Some((name, number)) => Ok((name.trim().to_owned(), weight(number.trim())?)),
            None => Err(format!("the weight '{word}' names no agent: write weights such as 2,1,1 or a1=2,a2=1")),
        };
        let (weights, read) = if words.iter().any(|word| word.contains('=')) {
            let all = words.iter().map(named).collect::<Result<Vec<_>, _>>()?;
            if let Some((_, (name, _))) = all.iter().enumerate().find(|(at, it)| all[..*at].iter().any(|b| b.0 == it.0))
            {
                return Err(format!("agent {name} has two weights: write one weight for each agent"));
            }
            (all.iter().map(|(_, weight)| *weight).collect::<Vec<u32>>(), AgentWeights::Named(all))
        } else {
            let all = words.iter().map(|word| weight(word)).collect::<Result<Vec<_>, _>>()?;
            (all.clone(), AgentWeights::Ordered(all))
        };
        match reduce_weights(&weights) {
            Some(_) => Ok(read),
            None => Err(format!(
                "the weights {weight_list} add up to more than {PATTERN_ITEMS_MAX}: use smaller numbers, such as 2,1 for \
                 200,101",
                weight_list = text
            )),
        }
    }

    /// Returns the weight of each agent, in the order of `names`.
    pub fn weight_of_each_agent(&self, names: &[String]) -> Result<Vec<u32>, String> {
        let all = names.join(", ");
        match self {
            AgentWeights::Ordered(weights) if weights.len() == names.len() => Ok(weights.clone()),
            AgentWeights::Ordered(weights) => Err(format!(
                "the number of weights is {weights}, and the number of agents {agents} ({all}): write one weight for \
                 each agent",
                weights = weights.len(),
                agents = names.len()
            )),
            AgentWeights::Named(weights) => {
                if let Some((name, _)) = weights.iter().find(|(name, _)| !names.contains(name)) {
                    return Err(format!(
                        "agent {name} is not in this fleet ({all}): correct the name, or leave the agent out"
                    ));
                }
                let weight = |name: &String| match weights.iter().find(|(of, _)| of == name) {
                    Some((_, weight)) => Ok(*weight),
                    None => Err(format!("agent {name} has no weight: give a weight to each of the agents {all}")),
                };
                names.iter().map(weight).collect()
            }
        }
    }
}

/// Computes a weight for each agent from its calibrated capacity. The result is empty if all shares
/// are equal.
pub fn agent_weights_from_calibrations(agents: &[AgentCalibration]) -> Vec<u32> {
    integer_weights_of_rates(&agents.iter().map(AgentCalibration::capacity_rps).collect::<Vec<f64>>())
}

/// Computes a weight for each agent from the stored calibrations `calibrations`, and returns a note
/// for the user. The weights are empty if all shares are equal. If plimsoll cannot use existing
/// calibrations, the note gives the reason.
pub fn calibrated_weights(calibrations: &[AgentCalibration], agents: &[AgentStatus]) -> (Vec<u32>, Option<String>) {
    let find = |agent: &AgentStatus| {
        let is_of = |it: &&AgentCalibration| {
            (it.name.as_str(), it.machine.as_str(), it.plimsoll.as_str())
                == (agent.name.as_str(), agent.machine_fingerprint.as_str(), agent.version.as_str())
        };
        calibrations.iter().filter(is_of).max_by_key(|it| it.unix_s)
    };
    let found: Vec<Option<&AgentCalibration>> = agents.iter().map(find).collect();
    let missing = agents.iter().zip(&found).find(|(_, found)| found.is_none());
    match missing {
        None => {
            (integer_weights_of_rates(&found.iter().flatten().map(|it| it.capacity_rps()).collect::<Vec<_>>()), None)
        }
        Some(_) if found.iter().all(Option::is_none) => (Vec::new(), None),
        Some((agent, _)) => {
            let why = format!(
                "all agents get equal shares of the load, because agent {agent_name} was not calibrated since it \
                 changed: run plimsoll fleet calibrate, or set --weights",
                agent_name = agent.name
            );
            (Vec::new(), Some(why))
        }
    }
}

/// Returns the smallest whole-number weights whose shares approximate the shares of these rates.
/// The result is empty if the shares are equal, or if no valid weights exist.
fn integer_weights_of_rates(rates: &[f64]) -> Vec<u32> {
    let sum: f64 = rates.iter().sum();
    let count = rates.len() as u64;
    let are_rates = rates.iter().all(|rate| *rate > 0.0) && sum.is_finite();
    if !are_rates || count > PATTERN_ITEMS_MAX / 2 {
        return Vec::new();
    }
    let weights = |units: u64| -> Vec<u32> {
        rates.iter().map(|rate| ((rate / sum * units as f64).round() as u32).max(1)).collect()
    };
    let error = |weights: &[u32]| {
        let units: u32 = weights.iter().sum();
        let of = |(weight, rate): (&u32, &f64)| {
            let (share, wanted) = (f64::from(*weight) / f64::from(units), rate / sum);
            ((share - wanted) / wanted).abs()
        };
        weights.iter().zip(rates).map(of).fold(0.0, f64::max)
    };
    let possible: Vec<Vec<u32>> =
        (count..=PATTERN_ITEMS_MAX).map(weights).filter(|weights| reduce_weights(weights).is_some()).collect();
    let close = possible.iter().find(|weights| error(weights) <= SHARE_ERROR_MAX);
    let best = close.or_else(|| possible.iter().min_by(|a, b| error(a).total_cmp(&error(b))));
    best.filter(|weights| weights.iter().any(|weight| *weight != weights[0])).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Stripe;
    use plimsoll_model::machine_facts::SelfMeasurement;
    use proptest::prelude::*;

    fn split_names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn agent_weights_are_parsed_or_refused() {
        for (text, agents, expect) in [
            ("2,1,1", "a b c", Ok(vec![2, 1, 1])),
            ("b=2, a=1", "a b", Ok(vec![1, 2])),
            ("ann@load1:22=3,load2=1", "ann@load1:22 load2", Ok(vec![3, 1])),
            ("300,100", "a b", Ok(vec![300, 100])),
            ("2,1", "a b c", Err("number of weights is 2, and the number of agents 3 (a, b, c)")),
            ("2,1,1,1", "a b c", Err("number of weights is 4")),
            ("a=2,d=1", "a b", Err("agent d is not in this fleet (a, b)")),
            ("a=2", "a b", Err("agent b has no weight")),
            ("a=2,a=1", "a b", Err("agent a has two weights")),
            ("2,0", "a b", Err("weight 0")),
            ("a=0,b=1", "a b", Err("weight 0")),
            ("2,x", "a b", Err("'x' is not a whole number")),
            ("2,-1", "a b", Err("'-1' is not a whole number")),
            ("a=2,1", "a b", Err("'1' names no agent")),
            ("", "a b", Err("'' is not a whole number")),
            ("128,1", "a b", Err("add up to more than 128")),
            ("4294967295,4294967294", "a b", Err("add up to more than 128")),
        ] {
            let read = AgentWeights::parse(text).and_then(|weights| weights.weight_of_each_agent(&split_names(agents)));
            match (read, expect) {
                (Ok(read), Ok(expect)) => assert_eq!(read, expect, "{text}"),
                (Err(said), Err(part)) => assert!(said.contains(part), "{text}: {said}"),
                (got, expect) => panic!("{text}: {got:?}, expected {expect:?}"),
            }
        }
    }

    fn example_calibration(name: &str, machine: &str, cores: u32, highest_rps: f64, unix_s: u64) -> AgentCalibration {
        let measured = SelfMeasurement { highest_rps, cpu_us: 10.0, rate_rps: 9.0, lag_p99_ns: 1, disturbance: None };
        let (name, machine, plimsoll) = (name.to_owned(), machine.to_owned(), "1".to_owned());
        AgentCalibration { name, machine, plimsoll, cores, clock_error_ns_max: 1, unix_s, measurement: measured }
    }

    fn example_agent(name: &str, machine: &str) -> AgentStatus {
        let (name, machine_fingerprint, version) = (name.to_owned(), machine.to_owned(), "1".to_owned());
        AgentStatus { name, version, cores: 1, machine_fingerprint, round_trip_ns: 1, clock_error_ns_max: 1 }
    }

    #[test]
    fn shares_follow_the_newest_calibration_of_the_same_machines() {
        let known = [
            example_calibration("a", "m1", 2, 50_000.0, 1),
            example_calibration("a", "m1", 4, 50_000.0, 2),
            example_calibration("b", "m2", 2, 51_000.0, 1),
        ];
        let weights = |agents: &[AgentStatus]| calibrated_weights(&known, agents);
        assert_eq!(weights(&[example_agent("a", "m1"), example_agent("b", "m2")]), (vec![2, 1], None));
        assert_eq!(weights(&[example_agent("b", "m2"), example_agent("a", "m1")]).0, [1, 2]);
        let (none, why) = weights(&[example_agent("a", "m1"), example_agent("b", "m3")]);
        assert!(none.is_empty() && why.is_some_and(|why| why.contains("agent b was not calibrated since it changed")));
        assert_eq!(
            weights(&[example_agent("c", "m1"), example_agent("b", "m3")]),
            (Vec::new(), None),
            "none was calibrated"
        );
        let newer = AgentStatus { version: "2".to_owned(), ..example_agent("a", "m1") };
        assert!(weights(&[newer, example_agent("b", "m2")]).1.is_some(), "of another version");
    }

    #[test]
    fn integer_weights_are_small_and_close_to_the_rates() {
        for (rates, expect) in [
            (&[1.0, 1.03][..], &[][..]),
            (&[2.0, 1.0, 1.0], &[2, 1, 1]),
            (&[100_000.0, 49_000.0], &[2, 1]),
            (&[3.0, 2.0], &[3, 2]),
            (&[1_000.0, 1.0], &[127, 1]),
            (&[1.0, 0.0], &[]),
            (&[0.0, 0.0], &[]),
            (&[f64::NAN, 1.0], &[]),
            (&[7.0; 1], &[]),
        ] {
            assert_eq!(integer_weights_of_rates(rates), expect, "{rates:?}");
        }
        assert!(integer_weights_of_rates(&[1.0; 100]).is_empty());
    }

    proptest! {
        #[test]
        fn every_machine_gets_a_share(rates in prop::collection::vec(1.0..1e6f64, 1..64)) {
            let weights = integer_weights_of_rates(&rates);
            for index in 0..weights.len() {
                prop_assert!(Stripe::weighted(index, &weights).is_some(), "{weights:?}");
            }
        }
    }
}
