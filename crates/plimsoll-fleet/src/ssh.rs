//! Fleets of machines that one can log in to: an agent on each, reached by `ssh`.
//!
//! Not here: how a login is made (`ssh_login`), and what is said over its pipe.

use crate::fleet_load::{FleetLoad, FleetOptions};
use crate::pipe_bus::{PipeBus, PipeCommand};
use crate::place::SshHost;
use crate::ssh_login::{own_program, pipe_command};
use plimsoll_model::failure::Failure;
use plimsoll_model::shell;

/// Starts an agent on each host, which may load what `allow` says, and waits until all are there.
pub fn meet(hosts: &[SshHost], copied: bool, allow: &str, wishes: FleetOptions) -> Result<FleetLoad<PipeBus>, Failure> {
    let program = if copied { Some(own_program("--fleet-copy")?) } else { None };
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let words = format!("--allow {}", shell::quoted(allow));
    let command = |host| pipe_command(host, &words, program.clone(), "--fleet-copy");
    let commands: Vec<PipeCommand> = hosts.iter().map(command).collect();
    FleetLoad::meet(PipeBus::start(commands)?, &names, wishes)
}
