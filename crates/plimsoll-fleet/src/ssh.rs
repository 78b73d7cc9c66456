//! Agents on machines that one can log in to: `ssh`, with its user's own configuration, keys and
//! jump hosts, starts `plimsoll agent --stdio` there, and its pipe is the carrier. Nothing is left
//! behind: the agent ends with the pipe.
//!
//! `ssh` is never let ask for anything, since nobody may be there to answer. `$PLIMSOLL_SSH`, a
//! command for the shell, takes its place and gets the same words. Not here: what is said over the
//! pipe.

use crate::allow::AllowList;
use crate::fleet_load::{AgentStatus, FleetLoad, FleetWishes};
use crate::pipe_bus::{LastWords, PipeBus, PipeCommand};
use crate::place::{Place, SshHost};
use crate::service::system;
use plimsoll_model::failure::Failure;
use plimsoll_model::{OnLoss, Plan, Spin, Terms, redact, shell};
use plimsoll_study::runner::RemoteLoad;
use plimsoll_sys::system_text;
use std::net::SocketAddr;
use std::process::Command;

/// The command that takes the place of `ssh`.
const SSH_VARIABLE: &str = "PLIMSOLL_SSH";
/// What `ssh` is told besides: to ask for nothing, and to notice within seconds that the other end
/// is gone.
const SSH_OPTIONS: [&str; 8] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=2",
    "-oServerAliveCountMax=2",
    "-oControlMaster=no",
    "-oControlPath=none",
    "-oLogLevel=ERROR",
    "-T",
];

/// Refuses what a fleet cannot do: what belongs to this machine alone.
pub fn refuse(plan: &Plan, terms: &Terms<String>) -> Result<(), Failure> {
    let refused = [
        (terms.script.is_some(), "--lua: a script runs on one machine only"),
        (plan.carriage.unix.is_some(), "--unix: other machines do not have this machine's socket"),
        (plan.carriage.resolve.is_some(), "--resolve-every: agents load only addresses that they checked before"),
        (!terms.injector.sources.is_empty(), "--source-ip: other machines do not have this machine's addresses"),
    ];
    match refused.iter().find(|(is_asked, _)| *is_asked) {
        Some((_, why)) => Err(Failure::usage(format!("{why}; leave it out, or leave --fleet out"))),
        None => Ok(()),
    }
}

/// Starts the agents that the terms ask for, if any, and waits until they are there. `plans`: of
/// the targets that they load.
pub fn reach(plans: &[&Plan], terms: &Terms<String>) -> Result<Option<Box<dyn RemoteLoad>>, Failure> {
    let Some(fleet) = &terms.fleet else { return Ok(None) };
    let mut targets: Vec<SocketAddr> = plans.iter().flat_map(|plan| &plan.carriage.addresses).copied().collect();
    targets.sort_unstable();
    targets.dedup();
    let wishes = FleetWishes {
        workers: terms.injector.workers,
        spin: terms.injector.spin,
        preflight: terms.preflight,
        on_loss: fleet.on_loss,
        skew_ns_max: fleet.skew_ns_max,
        system: system(),
    };
    let fleet = meet(&fleet.place, fleet.copied, &AllowList::only(&targets), wishes)?;
    fleet.refuse_unfit()?;
    fleet.refuse_own_addresses(&targets)?;
    Ok(Some(Box::new(fleet)))
}

/// What is known of the agents at a place, which load nothing.
pub fn status(place: &str, copied: bool) -> Result<Vec<AgentStatus>, Failure> {
    let (workers, spin, system) = (None, Spin::Auto, system());
    let wishes = FleetWishes { workers, spin, preflight: false, on_loss: OnLoss::Stop, skew_ns_max: u64::MAX, system };
    Ok(meet(place, copied, "", wishes)?.status())
}

fn meet(place: &str, copied: bool, allow: &str, wishes: FleetWishes) -> Result<FleetLoad<PipeBus>, Failure> {
    let place = Place::parse(place).map_err(|why| Failure::usage(format!("fleet: {why}")))?;
    let program = if copied { Some(own_program()?) } else { None };
    let names: Vec<String> = place.hosts.iter().map(|host| host.name.clone()).collect();
    let commands = place.hosts.iter().map(|host| {
        let command = command(host, &remote_line(allow, program.as_ref().map(Vec::len)));
        let of = host.clone();
        let last_words: LastWords = Box::new(move |words, wrong| explanation(&of, words, wrong));
        PipeCommand { name: host.name.clone(), command, first: program.clone(), last_words }
    });
    FleetLoad::meet(PipeBus::start(commands.collect())?, &names, wishes)
}

fn own_program() -> Result<Vec<u8>, Failure> {
    std::fs::read("/proc/self/exe").map_err(|error| {
        Failure::start(format!("--fleet-copy: the plimsoll program cannot be read: {}", system_text(&error)))
    })
}

/// What the shell at the other end runs. A copy comes first over the same pipe, and is removed when
/// the agent ends.
fn remote_line(allow: &str, copied_bytes: Option<usize>) -> String {
    let allow = shell::quoted(allow);
    match copied_bytes {
        None => format!("exec plimsoll agent --stdio --allow {allow}"),
        Some(bytes) => format!(
            "umask 077; f=$(mktemp) && trap 'rm -f \"$f\"' EXIT HUP INT TERM && head -c {bytes} >\"$f\" && chmod 700 \"$f\" && \
             \"$f\" agent --stdio --allow {allow}"
        ),
    }
}

/// The command that runs a line at a host.
fn command(host: &SshHost, line: &str) -> Command {
    let mut command = match std::env::var_os(SSH_VARIABLE).filter(|it| !it.is_empty()) {
        None => {
            let mut command = Command::new("ssh");
            command.args(SSH_OPTIONS);
            command
        }
        Some(other) => {
            let mut with_words = other.clone();
            with_words.push(" \"$@\"");
            let mut command = Command::new("sh");
            command.arg("-c").arg(with_words).arg(other);
            command
        }
    };
    if let Some(port) = host.port {
        command.arg("-p").arg(port.to_string());
    }
    command.arg(&host.destination).arg(line);
    command
}

/// Why an agent ended: a sentence about "it", with the way out where one is known.
fn explanation(host: &SshHost, words: &str, wrong: Option<String>) -> String {
    let SshHost { destination, .. } = host;
    let has = |part: &str| words.contains(part);
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return format!(
            "its host key differs from the key that ssh knows. If the change is right, run ssh-keygen -R \
             {destination} and log in once"
        );
    }
    if has("Host key verification failed") {
        return format!("ssh does not know its host key: log in once by hand (ssh {destination})");
    }
    if has("Permission denied") || has("Too many authentication failures") {
        return format!(
            "ssh needs a password there, and plimsoll cannot type one: set up a key (ssh-copy-id {destination})"
        );
    }
    if has("plimsoll: not found") || has("plimsoll: command not found") || has("Unknown command: plimsoll") {
        return "it has no plimsoll in its PATH: install the same version there, or add --fleet-copy".to_owned();
    }
    let last = words.lines().map(str::trim).rfind(|line| !line.is_empty()).map(redact::line).unwrap_or_default();
    let last: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
    match (wrong, last.as_str()) {
        (Some(wrong), "") => wrong,
        (Some(wrong), last) => format!("{wrong}; its last output: {last}"),
        (None, "") => "its ssh ended".to_owned(),
        (None, last) => format!("its ssh ended; its last output: {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_told_with_the_way_out() {
        let host = Place::parse("ssh://ann@load1:22").expect("a place").hosts.remove(0);
        for (words, wrong, part) in [
            ("ann@load1: Permission denied (publickey,password).", None, "ssh-copy-id ann@load1"),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
                None,
                "ssh-keygen -R",
            ),
            ("Host key verification failed.", None, "log in once"),
            ("bash: line 1: plimsoll: command not found", Some("it is no agent"), "--fleet-copy"),
            ("sh: 1: exec: plimsoll: not found", None, "--fleet-copy"),
            ("ssh: connect to host load1 port 22: Connection refused\n", None, "Connection refused"),
            ("", None, "its ssh ended"),
            ("", Some("a message is damaged"), "a message is damaged"),
            ("boom\u{1b}[0m", Some("a message is damaged"), "its last output: boom"),
        ] {
            let said = explanation(&host, words, wrong.map(str::to_owned));
            assert!(said.contains(part) && !said.contains('\u{1b}'), "{words}: {said}");
        }
    }

    #[test]
    fn a_line_for_another_shell_is_quoted() {
        assert_eq!(
            remote_line("10.0.0.1:80,[::1]:80", None),
            "exec plimsoll agent --stdio --allow '10.0.0.1:80,[::1]:80'"
        );
        let copied = remote_line("10.0.0.1:80", Some(7));
        assert!(copied.contains("head -c 7") && copied.contains("rm -f"), "{copied}");
        let host = Place::parse("ssh://ann@load1:2222").expect("a place").hosts.remove(0);
        let words: Vec<_> = command(&host, "true").get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.ends_with(&["-p", "2222", "ann@load1", "true"].map(str::to_owned)), "{words:?}");
    }
}
