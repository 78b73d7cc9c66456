//! `plimsoll agent`: generates load or measures a server for a plimsoll on another machine.

use crate::args::AgentArgs;
use plimsoll_fleet::fleet_location::BusAddress;
use plimsoll_fleet::{AllowList, BusAccess, BusJoinOptions, Permissions, TaskVerifier, presence};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::output::print_to_stderr;
use plimsoll_study::quantity::{parse_positive_time, with_flag_name};
use plimsoll_sys::output_file::DEFAULT_RESULTS_FOLDER;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// The default time that an agent waits for its message bus.
const BUS_WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// Serves a coordinator (the plimsoll that controls this agent) until the connection to the
/// coordinator or to the message bus ends.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    let allow = with_flag_name("--allow", AllowList::parse(&args.allow))?;
    let verifier = args.trust.as_deref().map(|key| with_flag_name("--trust", TaskVerifier::parse(key))).transpose()?;
    let Some(bus) = &args.join else {
        if std::io::stdin().is_terminal() {
            return Err(Failure::usage(
                "--stdio: only another plimsoll may start an agent with this flag, over ssh; give that plimsoll \
                 --fleet ssh://HOST or --watch ssh://HOST",
            ));
        }
        if args.watch_only {
            plimsoll_fleet::run_measuring_agent()?;
            return Ok(exit::SUCCESS);
        }
        plimsoll_fleet::serve_over_stdio(Permissions { allow, verifier })?;
        return Ok(exit::SUCCESS);
    };
    let address = with_flag_name("--join", BusAddress::parse(bus))?;
    let name =
        args.name.as_deref().map(|name| with_flag_name("--name", presence::parse_agent_name(name))).transpose()?;
    let name = name.unwrap_or_else(presence::default_agent_name);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (creds, ca) = (args.creds.as_deref().map(text), args.bus_ca.as_deref().map(text));
    let wait = args.wait.as_deref().map(|wait| parse_positive_time("--wait", wait)).transpose()?;
    let spool = args.spool.clone().unwrap_or_else(|| Path::new(DEFAULT_RESULTS_FOLDER).join("spool").join(&name));
    let url = &address.url;
    let joined = match allow.is_empty() {
        true => format!(
            "agent {name} has joined the bus at {url}. The agent sends no load, because --allow names no address to \
             send load to."
        ),
        false => format!(
            "agent {name} has joined the bus at {url}. The agent sends load only to {addresses}.",
            addresses = args.allow
        ),
    };
    let access = BusAccess { address, creds, ca };
    let wait = wait.map_or(BUS_WAIT_DEFAULT, Duration::from_nanos);
    let settings = BusJoinOptions { access, name, allow, verifier, spool, connect_timeout: wait };
    plimsoll_fleet::join_bus(settings, &mut || print_to_stderr(&joined))?;
    Ok(exit::SUCCESS)
}
