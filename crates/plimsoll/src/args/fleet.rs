//! What is said of a fleet: to the commands whose load other machines can make, and to an agent.
//!
//! Not here: the load.

use super::known_words::KnownWords;
use clap::Args;

/// Other machines that make the load.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fleet")]
pub struct FleetArgs {
    /// Generate the load on these machines over ssh, such as ssh://load1,user@load2:2222; each needs plimsoll
    #[arg(long, value_name = "ssh://HOST,...")]
    pub fleet: Option<String>,
    /// Copy this plimsoll to the machines for the duration of the study
    #[arg(long, requires = "fleet")]
    pub fleet_copy: bool,
    /// When a machine is lost: go on with the rest (go), or stop
    #[arg(long, value_name = "go|stop", default_value = "go", requires = "fleet",
          value_parser = KnownWords::text(&["go", "stop"]), hide_possible_values = true)]
    pub on_loss: String,
    /// Refuse machines whose clock error, half of the shortest round trip, may exceed this
    #[arg(long, value_name = "TIME", default_value = "20ms", requires = "fleet")]
    pub max_skew: String,
}

/// No fleet.
impl Default for FleetArgs {
    fn default() -> FleetArgs {
        FleetArgs { fleet: None, fleet_copy: false, on_loss: "go".to_owned(), max_skew: "20ms".to_owned() }
    }
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  plimsoll agent --stdio --allow 10.0.0.0/8:8080\n\n\
    `plimsoll run --fleet ssh://HOST ...` starts this on HOST. A line in HOST's authorized_keys can fix the targets:\n  \
    command=\"plimsoll agent --stdio --allow 10.0.0.0/8:8080\" ssh-ed25519 ...")]
pub struct AgentArgs {
    /// Communicate with the coordinator over standard input and output
    #[arg(long, required = true)]
    pub stdio: bool,
    /// The only addresses and ports to load, such as 10.0.0.0/8:8080,192.168.1.5 [default: none]
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub allow: String,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  plimsoll fleet status ssh://load1,load2")]
pub struct FleetStatusArgs {
    /// Report to show: status (version, cores, round trip and clock of each machine)
    #[arg(value_name = "WHAT", value_parser = KnownWords::text(&["status"]), hide_possible_values = true)]
    pub what: String,
    /// The machines, such as ssh://load1,load2
    #[arg(value_name = "ssh://HOST,...")]
    pub place: String,
    /// Copy this plimsoll to the machines for the duration of the command
    #[arg(long)]
    pub fleet_copy: bool,
}
