//! Logs in to a machine with `ssh` and starts an agent there ([`remote_agent_command`]). `ssh` uses
//! the user's own configuration, keys and jump hosts. On the machine, `ssh` starts `plimsoll agent
//! --stdio`, and the pipe of `ssh` transports the messages. Nothing stays on the remote machine,
//! because the agent ends when the pipe closes.
//!
//! `ssh` runs in batch mode, because perhaps nobody is present to answer a question. The shell
//! command in `$PLIMSOLL_SSH` replaces `ssh` and gets the same arguments, except the options. Not
//! here: the messages over the pipe, and the choice of machines (`ssh`, `remote_watch`).

use crate::fleet_location::SshHost;
use crate::pipe_bus::{ExitFormatter, PipeCommand};
use plimsoll_model::failure::Failure;
use plimsoll_model::redact;
use plimsoll_sys::system_text;
use std::process::Command;

/// The environment variable with a shell command that replaces `ssh`.
const SSH_COMMAND_VARIABLE: &str = "PLIMSOLL_SSH";
/// Options with which `ssh` asks no questions, and notices within seconds that the connection is
/// lost.
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

/// Reads this program's executable, to copy it to another machine. `copy_flag` is the option that
/// requests the copy; error messages name this option.
pub fn read_own_executable(copy_flag: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read("/proc/self/exe").map_err(|error| {
        Failure::cannot_start(format!(
            "{copy_flag}: plimsoll cannot read its own program file: {reason}",
            reason = system_text(&error)
        ))
    })
}

/// Returns the command that starts an agent on a host: `plimsoll agent --stdio` with the arguments
/// `words`. If `program` contains a plimsoll executable, a copy of `program` runs instead of the
/// `plimsoll` installed on the host. `copy_flag` is the option that requests a copy; error messages
/// name this option.
pub fn remote_agent_command(
    host: &SshHost,
    words: &str,
    program: Option<Vec<u8>>,
    copy_flag: &'static str,
) -> PipeCommand {
    let command = ssh_command(host, &remote_command_line(words, program.as_ref().map(Vec::len)));
    let of = host.clone();
    let last_words: ExitFormatter =
        Box::new(move |stderr_tail, message_error| agent_exit_explanation(&of, stderr_tail, message_error, copy_flag));
    PipeCommand { name: host.name.clone(), command, first: program, explain_exit: last_words }
}

/// Returns the command line for the remote shell. If plimsoll is copied to the remote machine, its
/// executable is sent over the same pipe before all messages. The copy of plimsoll is removed when
/// the agent ends.
fn remote_command_line(words: &str, copied_bytes: Option<usize>) -> String {
    match copied_bytes {
        // The remote machine prints its version first, so that the error message for an old
        // plimsoll can name the version.
        None => format!("plimsoll --version >&2 && exec plimsoll agent --stdio {words}"),
        Some(bytes) => format!(
            "umask 077; f=$(mktemp) && trap 'rm -f \"$f\"' EXIT HUP INT TERM && head -c {bytes} >\"$f\" && chmod 700 \"$f\" && \
             \"$f\" agent --stdio {words}"
        ),
    }
}

/// Returns the local command that runs a command line on a host.
fn ssh_command(host: &SshHost, line: &str) -> Command {
    let mut command = match std::env::var_os(SSH_COMMAND_VARIABLE).filter(|it| !it.is_empty()) {
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

/// Explains why an agent ended, in a sentence without the agent's name. For a known problem, the
/// sentence also says how to correct the problem. `stderr_tail` is the last lines of standard
/// error; `message_error` is the error in the received messages, if any; `copy_flag` is the option
/// that copies plimsoll to the machine.
fn agent_exit_explanation(host: &SshHost, stderr_tail: &str, message_error: Option<String>, copy_flag: &str) -> String {
    let SshHost { destination, .. } = host;
    let has = |part: &str| stderr_tail.contains(part);
    let is_version = |line: &&str| line.starts_with("plimsoll ") && line.split(' ').count() == 2;
    let lines = || stderr_tail.lines().map(str::trim).filter(|line| !line.is_empty());
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        return format!(
            "the machine's host key differs from the key that ssh knows. If the new key is correct, run ssh-keygen \
             -R {destination} and log in once"
        );
    }
    if has("Host key verification failed") {
        return format!("ssh does not know the machine's host key: log in once by hand (ssh {destination})");
    }
    if has("Permission denied") || has("Too many authentication failures") {
        return format!(
            "ssh needs a password for this machine, and plimsoll cannot type passwords: set up a key (ssh-copy-id \
             {destination})"
        );
    }
    if has("plimsoll: not found") || has("plimsoll: command not found") || has("Unknown command: plimsoll") {
        return format!("the machine has no plimsoll in its PATH: install the same version there, or add {copy_flag}");
    }
    if has("unexpected argument '--") || has("unrecognized subcommand 'agent'") {
        let old_version = lines().find(is_version).unwrap_or("an older plimsoll");
        let own = env!("CARGO_PKG_VERSION");
        return format!(
            "the machine has {old_version}, which lacks a command or option that plimsoll {own} needs: install the \
             same version there, or add {copy_flag}"
        );
    }
    let last = lines().rfind(|line| !is_version(line)).map(redact::redact_line).unwrap_or_default();
    let last: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
    if last.starts_with("ssh: ") {
        return format!(
            "ssh cannot reach the machine ({last}): check the host name and port, and log in once by hand (ssh \
             {destination})"
        );
    }
    match (message_error, last.as_str()) {
        (Some(message_error), "") => message_error,
        (Some(message_error), last) => format!("{message_error}; its last output: {last}"),
        (None, "") => "the ssh connection ended".to_owned(),
        (None, last) => format!("the ssh connection ended; the last output of ssh: {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet_location::FleetLocation;

    fn parse_ssh_host(place: &str) -> SshHost {
        match FleetLocation::parse(place).expect("a place") {
            FleetLocation::Ssh(mut hosts) => hosts.remove(0),
            FleetLocation::Bus(bus) => panic!("{bus:?}"),
        }
    }

    #[test]
    fn ssh_errors_are_reported_with_a_remedy() {
        let host = parse_ssh_host("ssh://ann@load1:22");
        for (words, wrong, part) in [
            ("ann@load1: Permission denied (publickey,password).", None, "ssh-copy-id ann@load1"),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
                None,
                "ssh-keygen -R",
            ),
            ("Host key verification failed.", None, "log in once"),
            (
                "bash: line 1: plimsoll: command not found",
                Some("the program there is not a plimsoll agent"),
                "--fleet-copy",
            ),
            ("sh: 1: exec: plimsoll: not found", None, "--fleet-copy"),
            (
                "ssh: connect to host load1 port 22: Connection refused\n",
                None,
                "Connection refused): check the host name",
            ),
            (
                "plimsoll 0.0.7\nerror: unexpected argument '--watch-only' found",
                None,
                "the machine has plimsoll 0.0.7, which",
            ),
            ("plimsoll 0.0.7\n", None, "the ssh connection ended"),
            ("", None, "the ssh connection ended"),
            ("", Some("a message is damaged"), "a message is damaged"),
            ("boom\u{1b}[0m", Some("a message is damaged"), "its last output: boom"),
        ] {
            let said = agent_exit_explanation(&host, words, wrong.map(str::to_owned), "--fleet-copy");
            assert!(said.contains(part) && !said.contains('\u{1b}'), "{words}: {said}");
        }
    }

    #[test]
    fn remote_command_lines_are_quoted_for_the_remote_shell() {
        assert_eq!(
            remote_command_line("--allow '10.0.0.1:80,[::1]:80'", None),
            "plimsoll --version >&2 && exec plimsoll agent --stdio --allow '10.0.0.1:80,[::1]:80'"
        );
        let copied = remote_command_line("--watch-only", Some(7));
        assert!(copied.contains("head -c 7") && copied.contains("rm -f"), "{copied}");
        let host = parse_ssh_host("ssh://ann@load1:2222");
        let words: Vec<_> =
            ssh_command(&host, "true").get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words.ends_with(&["-p", "2222", "ann@load1", "true"].map(str::to_owned)), "{words:?}");
    }
}
