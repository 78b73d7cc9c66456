//! Parses the location of a fleet's agents ([`FleetLocation`]): machines such as
//! `ssh://load1,user@load2:2222`, or a bus such as `nats://bus:4222`.
//!
//! Not here: connecting to the agents (`ssh_login`, `nats_client`).

use plimsoll_model::redact::REDACTED;

/// The largest number of agents reached over ssh.
const AGENTS_MAX: usize = 64;
/// The longest name of a host or user, bytes: the same limit as for DNS names.
const HOST_BYTES_MAX: usize = 253;
/// The default port of a NATS server.
const BUS_PORT: u16 = 4222;

/// The location of a fleet's agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetLocation {
    /// Machines that can be reached with an ssh login.
    Ssh(Vec<SshHost>),
    /// A NATS bus that the agents have joined.
    Bus(BusAddress),
}

/// The address of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusAddress {
    /// The URL with scheme and port, such as `nats://bus:4222`.
    pub url: String,
    /// The host name or IP address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Whether the connection must be encrypted (`tls://`).
    pub is_tls: bool,
}

/// A machine that can be reached with an ssh login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// The name of the agent: its host, with user and port if given.
    pub name: String,
    /// The destination argument for `ssh`: the host, with a user if given.
    pub destination: String,
    /// The ssh port, if the user names one.
    pub port: Option<u16>,
}

impl FleetLocation {
    /// Parses the location of a fleet's agents, as the user writes it after `--fleet`.
    pub fn parse(text: &str) -> Result<FleetLocation, String> {
        match text.split_once("://") {
            Some(("ssh", hosts)) => ssh_hosts(hosts.trim_end_matches('/')).map(FleetLocation::Ssh),
            Some(("nats" | "tls", _)) => BusAddress::parse(text).map(FleetLocation::Bus),
            Some((scheme, _)) => {
                Err(format!("'{scheme}://' is not a scheme for a fleet; write ssh://HOST,HOST or nats://HOST:PORT"))
            }
            None => Err(format!("the address '{text}' has no scheme: write ssh://{text}")),
        }
    }
}

fn ssh_hosts(hosts: &str) -> Result<Vec<SshHost>, String> {
    let hosts = hosts.split(',').map(|host| SshHost::parse(host.trim())).collect::<Result<Vec<_>, _>>()?;
    for (number, host) in hosts.iter().enumerate() {
        if hosts[..number].iter().any(|before| before.name == host.name) {
            return Err(format!("two agents have the name {agent}: give each machine only once", agent = host.name));
        }
    }
    match hosts.len() {
        0..=AGENTS_MAX => Ok(hosts),
        count => {
            Err(format!("{count} machines are too many: name at most {AGENTS_MAX} machines after ssh://, or use a bus"))
        }
    }
}

impl BusAddress {
    /// Parses `nats://HOST:PORT`, or `tls://HOST:PORT` for an encrypted connection.
    pub fn parse(text: &str) -> Result<BusAddress, String> {
        let error = || format!("'{text}' is not the address of a bus; write nats://HOST:PORT or tls://HOST:PORT");
        let (scheme, rest) = text.split_once("://").ok_or_else(error)?;
        let rest = rest.trim_end_matches('/');
        if rest.contains('@') {
            // An address with credentials is refused, because run files contain the address.
            return Err("the address of a bus cannot contain credentials: set $PLIMSOLL_CREDS to the path of \
                 the credentials file (for an agent, use --creds FILE)"
                .to_owned());
        }
        let SshHost { destination: host, port, .. } = SshHost::parse(rest).map_err(|_| error())?;
        let port = port.unwrap_or(BUS_PORT);
        let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        match scheme {
            "nats" | "tls" => {
                Ok(BusAddress { url: format!("{scheme}://{shown}:{port}"), host, port, is_tls: scheme == "tls" })
            }
            _ => Err(error()),
        }
    }
}

impl SshHost {
    fn parse(text: &str) -> Result<SshHost, String> {
        let error = || {
            format!("'{host}' is not a host; write HOST, USER@HOST or HOST:PORT", host = host_without_password(text))
        };
        let (user, rest) = text.split_once('@').map_or((None, text), |(user, rest)| (Some(user), rest));
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(error)?;
                (host, after.strip_prefix(':').or_else(|| (!after.is_empty()).then_some("")))
            }
            None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map(|port| port.parse::<u16>().map_err(|_| error())).transpose()?;
        let is_word = |word: &str, more: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
            // `ssh` would read a word that begins with `-` as an option.
            !word.is_empty() && word.len() <= HOST_BYTES_MAX && !word.starts_with('-') && word.chars().all(is_known)
        };
        if !is_word(host, "-_.:%") || user.is_some_and(|user| !is_word(user, "-_.")) {
            return Err(error());
        }
        let destination = user.map_or(host.to_owned(), |user| format!("{user}@{host}"));
        Ok(SshHost { name: text.to_owned(), destination, port })
    }
}

/// Returns a host as it may appear in messages, without a password.
fn host_without_password(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match text.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
        Some((Some((user, _)), host)) => format!("{user}:{REDACTED}@{host}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fleet_locations_are_parsed_or_refused() {
        for (text, expect) in [
            ("ssh://load1", Ok("load1|load1|")),
            ("ssh://load1,load2/", Ok("load1|load1| load2|load2|")),
            ("ssh://ann@load1:2222,load2", Ok("ann@load1:2222|ann@load1|2222 load2|load2|")),
            ("ssh://[::1]:22", Ok("[::1]:22|::1|22")),
            ("ssh://", Err("is not a host")),
            ("ssh://a,,b", Err("is not a host")),
            ("ssh://a,a", Err("two agents have the name a")),
            ("ssh://-oProxyCommand=x", Err("is not a host")),
            ("ssh://-x@a", Err("is not a host")),
            ("ssh://a b", Err("is not a host")),
            ("ssh://ann:s3cret@a:2222?token=s3cret#s3cret", Err("'ann:[redacted]@a:2222' is not a host")),
            ("ssh://a;b", Err("is not a host")),
            ("ssh://a:x", Err("is not a host")),
            ("ssh://[::1]22", Err("is not a host")),
            ("load1,load2", Err("write ssh://load1,load2")),
            ("nats://bus", Ok("nats://bus:4222")),
            ("tls://[::1]:5222/", Ok("tls://[::1]:5222 tls")),
            ("nats://a,b", Err("not the address of a bus")),
            ("nats://ann:s3cret@bus", Err("--creds")),
            ("nats://", Err("not the address of a bus")),
            ("http://bus", Err("'http://' is not a scheme")),
        ] {
            let read = FleetLocation::parse(text).map(|place| match place {
                FleetLocation::Ssh(hosts) => {
                    let shown = |host: &SshHost| {
                        let port = host.port.map_or(String::new(), |port| port.to_string());
                        format!("{}|{}|{port}", host.name, host.destination)
                    };
                    hosts.iter().map(shown).collect::<Vec<_>>().join(" ")
                }
                FleetLocation::Bus(bus) => format!("{}{}", bus.url, if bus.is_tls { " tls" } else { "" }),
            });
            match (read, expect) {
                (Ok(read), Ok(expect)) => assert_eq!(read, expect, "{text}"),
                (Err(said), Err(part)) => assert!(said.contains(part) && !said.contains("s3cret"), "{text}: {said}"),
                (got, expect) => panic!("{text}: {got:?}, expected {expect:?}"),
            }
        }
        let many: Vec<String> = (0..65).map(|number| format!("h{number}")).collect();
        assert!(FleetLocation::parse(&format!("ssh://{}", many.join(","))).is_err_and(|said| said.contains("64")));
    }
}
