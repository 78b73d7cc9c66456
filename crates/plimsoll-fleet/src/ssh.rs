//! Starts agents on machines that can be reached by `ssh`, and connects to them.
//!
//! Not here: the ssh login (`ssh_login`), and the messages over its pipe.

use crate::fleet_load::{FleetLoad, FleetOptions};
use crate::fleet_location::SshHost;
use crate::pipe_bus::{PipeBus, PipeCommand};
use crate::ssh_login::{read_own_executable, remote_agent_command};
use plimsoll_model::failure::Failure;
use plimsoll_model::shell;

/// Starts an agent on each host and waits until all agents are present. `allow` lists the addresses
/// to which the agents may send load. With `copied`, this program is copied to the hosts first.
pub fn start_agents(
    hosts: &[SshHost],
    copied: bool,
    allow: &str,
    wishes: FleetOptions,
) -> Result<FleetLoad<PipeBus>, Failure> {
    let program = if copied { Some(read_own_executable("--fleet-copy")?) } else { None };
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let words = format!("--allow {}", shell::quote(allow));
    let command = |host| remote_agent_command(host, &words, program.clone(), "--fleet-copy");
    let commands: Vec<PipeCommand> = hosts.iter().map(command).collect();
    FleetLoad::wait_for_agents(PipeBus::start(commands)?, &names, wishes)
}
