//! What is said of other machines: to the commands whose load they can make or whose server they
//! can watch, and to an agent.
//!
//! Not here: the load.

use super::known_words::KnownWords;
use clap::Args;

/// Other machines that make the load.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fleet")]
pub struct FleetArgs {
    /// Make the load on these machines instead of this one, such as ssh://load1,user@load2:2222:
    /// over your own ssh, with plimsoll there
    #[arg(long, value_name = "ssh://HOST,...")]
    pub fleet: Option<String>,
    /// Copy this plimsoll there for the time of the study
    #[arg(long, requires = "fleet")]
    pub fleet_copy: bool,
    /// When a machine is lost: go on with the others, or stop
    #[arg(long, value_name = "go|stop", default_value = "go", requires = "fleet",
          value_parser = KnownWords::text(&["go", "stop"]), hide_possible_values = true)]
    pub on_loss: String,
    /// Refuse machines whose clock may be further off than this: half of the shortest round trip
    #[arg(long, value_name = "TIME", default_value = "20ms", requires = "fleet")]
    pub max_skew: String,
}

/// No fleet.
impl Default for FleetArgs {
    fn default() -> FleetArgs {
        FleetArgs { fleet: None, fleet_copy: false, on_loss: "go".to_owned(), max_skew: "20ms".to_owned() }
    }
}

/// The machine that the server runs on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Probes")]
pub struct WatchArgs {
    /// Watch the server on the machine that it runs on, such as ssh://server1: over your own ssh,
    /// with plimsoll there; --pid, --process and --cgroup mean that machine then
    #[arg(long, value_name = "ssh://HOST")]
    pub watch: Option<String>,
    /// Copy this plimsoll there for the time of the study
    #[arg(long, requires = "watch")]
    pub watch_copy: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  plimsoll agent --stdio --allow 10.0.0.0/8:8080\n\n\
    `plimsoll run --fleet ssh://HOST ...` starts this on HOST. A line in HOST's authorized_keys holds it to a list of HOST's own:\n  \
    command=\"plimsoll agent --stdio --allow 10.0.0.0/8:8080\" ssh-ed25519 ...\n\n\
    `--watch ssh://HOST` starts `plimsoll agent --stdio --watch-only` there, which makes no load.")]
pub struct AgentArgs {
    /// Talk to the coordinator over standard input and output
    #[arg(long, required = true)]
    pub stdio: bool,
    /// Load only these addresses and ports, whatever is asked, such as 10.0.0.0/8:8080,192.168.1.5;
    /// without it nothing is loaded
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub allow: String,
    /// Watch a server of this machine, and make no load
    #[arg(long, conflicts_with = "allow")]
    pub watch_only: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  plimsoll fleet status ssh://load1,load2")]
pub struct FleetStatusArgs {
    /// What is shown: status (version, cores, round trip and clock of each machine)
    #[arg(value_name = "WHAT", value_parser = KnownWords::text(&["status"]), hide_possible_values = true)]
    pub what: String,
    /// The machines, such as ssh://load1,load2
    #[arg(value_name = "ssh://HOST,...")]
    pub place: String,
    /// Copy this plimsoll there for the time that it takes
    #[arg(long)]
    pub fleet_copy: bool,
}
