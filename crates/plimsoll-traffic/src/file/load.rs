//! Parses the `load` table of a traffic file. Importers of other tools' files write this table, and
//! command-line flags override its values.

use super::keys;
use super::tree::{TrafficFileError, TreeNode};
use plimsoll_model::units::{parse_count, parse_duration_ns};
use plimsoll_model::{ArrivalSpacing, LoadCurve};

/// The load settings of a traffic file, all of which are optional.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileLoad {
    /// The number of users of a closed loop, over time.
    pub users: Option<LoadCurve>,
    /// The arrival rate of an open loop, over time: sessions per second for scenarios, requests per
    /// second for a mix.
    pub rate: Option<LoadCurve>,
    /// The spacing of the arrivals of an open loop: constant or Poisson.
    pub arrivals: Option<ArrivalSpacing>,
    /// The number of sessions after which the load ends; for a mix, the number of requests.
    pub sessions: Option<u64>,
    /// The duration of the load, ns.
    pub duration_ns: Option<u64>,
}

impl FileLoad {
    /// Parses the `load` table.
    pub(super) fn read(node: &TreeNode) -> Result<FileLoad, TrafficFileError> {
        let table = node.table("'load'", &keys::LOAD_KEYS)?;
        let users = table.get("users").map(|node| node.read("'users'", LoadCurve::parse_user_curve)).transpose()?;
        let rate = table.get("rate").map(|node| node.read("'rate'", LoadCurve::parse_rate_curve)).transpose()?;
        if let (Some(_), Some(node)) = (&users, table.get("rate")) {
            return node.error("'users' and 'rate' exclude each other: leave one out");
        }
        let arrivals = table.get("arrivals").map(|node| match (&rate, node.text("'arrivals'")?) {
            (None, _) => {
                node.error("'arrivals' is the spacing of the arrivals at a rate: add 'rate', or leave 'arrivals' out")
            }
            (Some(_), text) => match ArrivalSpacing::from_name(text) {
                Some(arrivals) => Ok(arrivals),
                None => node.error(format!("'arrivals' must be constant or poisson, not '{text}'")),
            },
        });
        let sessions = table.get("sessions").map(|node| match node.read("'sessions'", parse_count)? {
            0 => node.error("'sessions' must be more than 0"),
            count => Ok(count),
        });
        let duration = table.get("duration");
        let duration_ns = duration.map(|node| match node.read("'duration'", parse_duration_ns)? {
            0 => node.error("'duration' must be more than 0, such as 30s"),
            ns => Ok(ns),
        });
        let stages_ns = users.as_ref().or(rate.as_ref()).and_then(LoadCurve::duration_ns);
        if let (Some(_), Some(node)) = (stages_ns, duration) {
            return node
                .error("the stages of 'users' or 'rate' already set the duration of the load: leave 'duration' out");
        }
        let (arrivals, sessions, duration_ns) =
            (arrivals.transpose()?, sessions.transpose()?, duration_ns.transpose()?);
        Ok(FileLoad { users, rate, arrivals, sessions, duration_ns })
    }
}
