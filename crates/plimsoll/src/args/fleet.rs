//! Arguments about other machines: load generators, the machine of a measured server, and the agent
//! that runs on such a machine.
//!
//! Not here: executing the load.

use super::known_words::KnownWords;
use clap::Args;
use std::path::PathBuf;

/// Other machines that generate the load.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fleet")]
pub struct FleetArgs {
    /// Generate the load on these machines: ssh://load1,user@load2:2222 over your own ssh, or
    /// nats://bus:4222 for agents that joined a NATS bus
    #[arg(long, value_name = "ssh://HOST,...|nats://BUS:PORT")]
    pub fleet: Option<String>,
    /// Use these agents of the NATS bus: a number such as 3, or names such as a1,a2 [default: all]
    #[arg(long, value_name = "N|NAME,...", requires = "fleet")]
    pub agents: Option<String>,
    /// Time to wait for the agents of a NATS bus [default: 30s]
    #[arg(long, value_name = "TIME", requires = "fleet")]
    pub wait: Option<String>,
    /// Copy this plimsoll program to the machines, and delete the copies after the study
    #[arg(long, requires = "fleet")]
    pub fleet_copy: bool,
    /// Share of the load for each agent, such as 2,1,1 or a1=2,a2=1 [default: shares from the
    /// calibration, else equal shares]
    #[arg(long, value_name = "N,...|NAME=N,...", requires = "fleet")]
    pub weights: Option<String>,
    /// After the loss of a machine, continue with the remaining machines (go), or end the study
    /// (stop)
    #[arg(long, value_name = "go|stop", default_value = "go", requires = "fleet",
          value_parser = KnownWords::for_text_value(&["go", "stop"]), hide_possible_values = true)]
    pub on_loss: String,
    /// Refuse a machine whose clock error may exceed this time; the possible error is half of the
    /// shortest round trip to the machine
    #[arg(long, value_name = "TIME", default_value = "20ms", requires = "fleet")]
    pub max_skew: String,
}

/// The default flags: no fleet, so this machine generates the load.
impl Default for FleetArgs {
    fn default() -> FleetArgs {
        let (on_loss, max_skew) = ("go".to_owned(), "20ms".to_owned());
        FleetArgs { fleet: None, agents: None, wait: None, fleet_copy: false, weights: None, on_loss, max_skew }
    }
}

/// The machine that the server runs on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Probes")]
pub struct WatchArgs {
    /// Watch the server on its machine over ssh, such as ssh://server1; --pid, --process and
    /// --cgroup then refer to that machine
    #[arg(long, value_name = "ssh://HOST")]
    pub watch: Option<String>,
    /// Copy this plimsoll program to the server's machine, and delete the copy after the study
    #[arg(long, requires = "watch")]
    pub watch_copy: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  plimsoll agent --stdio --allow 10.0.0.0/8:8080\n  \
    plimsoll agent --join nats://bus:4222 --name load1 --allow 10.0.0.0/8:8080\n\n\
    `plimsoll run --fleet ssh://HOST ...` starts the first example on HOST. A line in HOST's authorized_keys can \
    restrict the targets:\n  \
    command=\"plimsoll agent --stdio --allow 10.0.0.0/8:8080\" ssh-ed25519 ...\n\
    The second example is a service, which `plimsoll run --fleet nats://bus:4222 ...` uses from any machine.\n\n\
    `--watch ssh://HOST` starts `plimsoll agent --stdio --watch-only` on HOST, which generates no load.")]
pub struct AgentArgs {
    /// Take commands from the plimsoll that starts this agent over ssh, on standard input and
    /// output
    #[arg(long, required_unless_present = "join", conflicts_with = "join")]
    pub stdio: bool,
    /// Join this NATS bus, and generate load for any plimsoll that uses the bus, one at a time
    #[arg(long, value_name = "nats://BUS:PORT")]
    pub join: Option<String>,
    /// The agent's name on the NATS bus [default: the machine's name]
    #[arg(long, value_name = "NAME", requires = "join")]
    pub name: Option<String>,
    /// Credentials for the NATS bus: a file with an nkey seed or NATS credentials
    #[arg(long, value_name = "FILE", requires = "join")]
    pub creds: Option<PathBuf>,
    /// Trust the certificate authorities in this file (PEM) to identify the NATS bus
    #[arg(long, value_name = "FILE", requires = "join")]
    pub bus_ca: Option<PathBuf>,
    /// The addresses and ports that the agent may send load to, such as 10.0.0.0/8:8080,192.168.1.5
    /// [default: none]
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub allow: String,
    /// Accept only load plans that are signed with this key; give the line that `plimsoll fleet
    /// key` printed
    #[arg(long, value_name = "ed25519:KEY", requires = "join")]
    pub trust: Option<String>,
    /// Store measurements in this folder until the plimsoll that controls this agent has recorded
    /// them [default: _output/plimsoll/spool/NAME]
    #[arg(long, value_name = "DIR", requires = "join")]
    pub spool: Option<PathBuf>,
    /// Time to wait for a NATS bus that does not respond yet [default: 10s]
    #[arg(long, value_name = "TIME", requires = "join")]
    pub wait: Option<String>,
    /// Observe a server on this machine, and generate no load
    #[arg(long, conflicts_with = "allow")]
    pub watch_only: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  plimsoll fleet status ssh://load1,load2\n  \
    plimsoll fleet calibrate ssh://load1,load2\n  \
    plimsoll fleet status nats://bus:4222\n  \
    plimsoll fleet fetch nats://bus:4222 RUN -o run.plimsoll\n  \
    plimsoll fleet up --local 3\n  \
    plimsoll fleet key fleet.key")]
pub struct FleetCommandArgs {
    /// Action: status (check machines), calibrate (measure machines), fetch (get a run file from a
    /// bus), up (start local agents), key (make a signing key)
    #[arg(value_name = "WHAT", value_parser = KnownWords::for_text_value(&["status", "calibrate", "fetch", "up", "key"]), hide_possible_values = true)]
    pub what: String,
    /// The machines that generate load, such as ssh://load1,load2 or nats://bus:4222; for the
    /// action `key`, the key file to write
    #[arg(value_name = "PLACE")]
    pub place: Option<String>,
    /// For the action `fetch`, the name of the run, as printed by the plimsoll that started the run
    #[arg(value_name = "RUN")]
    pub word: Option<String>,
    /// For the action `fetch`, the run file to write [default: RUN.plimsoll]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// For the actions `status` and `calibrate`, the agents of a NATS bus to use: how many, or
    /// their names [default: all]
    #[arg(long, value_name = "N|NAME,...")]
    pub agents: Option<String>,
    /// For the actions `status` and `calibrate`, the time to wait for the agents of a NATS bus
    /// [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub wait: Option<String>,
    /// For the action `up`, the number of agents to start on this machine
    #[arg(long, value_name = "N")]
    pub local: Option<u32>,
    /// For the action `up`, the message bus to start for the local agents
    #[arg(long, value_name = "nats", default_value = "nats", value_parser = KnownWords::for_text_value(&["nats"]), hide_possible_values = true)]
    pub bus: String,
    /// For the action `up`, the addresses that the local agents may send load to [default: this
    /// machine]
    #[arg(long, value_name = "LIST")]
    pub allow: Option<String>,
    /// For the actions `status` and `calibrate`, copy this plimsoll program to the machines, and
    /// delete the copies afterwards
    #[arg(long)]
    pub fleet_copy: bool,
    /// For the action `calibrate`, print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}
