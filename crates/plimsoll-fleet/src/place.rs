//! Where the agents of a fleet are, as a user writes it ([`Place`]): `ssh://load1,user@load2:2222`.
//!
//! Not here: how they are reached (`ssh`).

/// Most agents of a fleet that is reached over ssh.
const AGENTS_MAX: usize = 64;
/// The longest name of a host.
const HOST_BYTES_MAX: usize = 253;

/// Where the agents are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Machines that one can log in to.
    pub hosts: Vec<SshHost>,
}

/// A machine that one can log in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// What the agent is called: its host, with a user and a port where they are given.
    pub name: String,
    /// For `ssh`: the host, with a user where one is given.
    pub destination: String,
    /// Another port than the usual one.
    pub port: Option<u16>,
}

impl Place {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Place, String> {
        let hosts = match text.split_once("://") {
            Some(("ssh", hosts)) => hosts.trim_end_matches('/'),
            Some((scheme, _)) => return Err(format!("'{scheme}://' does not lead to a fleet; write ssh://HOST,HOST")),
            None => return Err(format!("'{text}' has no scheme; write ssh://{text}")),
        };
        let hosts = hosts.split(',').map(|host| SshHost::parse(host.trim())).collect::<Result<Vec<_>, _>>()?;
        for (number, host) in hosts.iter().enumerate() {
            if hosts[..number].iter().any(|before| before.name == host.name) {
                return Err(format!("two agents have the name {}: name each machine once", host.name));
            }
        }
        match hosts.len() {
            0..=AGENTS_MAX => Ok(Place { hosts }),
            count => Err(format!("{count} machines exceed the maximum of {AGENTS_MAX} over ssh")),
        }
    }
}

impl SshHost {
    fn parse(text: &str) -> Result<SshHost, String> {
        let error = || format!("'{text}' is not a host; write HOST, USER@HOST or HOST:PORT");
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
            // What begins like a flag would be one to ssh.
            !word.is_empty() && word.len() <= HOST_BYTES_MAX && !word.starts_with('-') && word.chars().all(is_known)
        };
        if !is_word(host, "-_.:%") || user.is_some_and(|user| !is_word(user, "-_.")) {
            return Err(error());
        }
        let destination = user.map_or(host.to_owned(), |user| format!("{user}@{host}"));
        Ok(SshHost { name: text.to_owned(), destination, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_or_refused() {
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
            ("ssh://a;b", Err("is not a host")),
            ("ssh://a:x", Err("is not a host")),
            ("ssh://[::1]22", Err("is not a host")),
            ("load1,load2", Err("write ssh://load1,load2")),
            ("nats://bus", Err("'nats://' does not lead")),
        ] {
            let read = Place::parse(text).map(|place| {
                let shown = |host: &SshHost| {
                    let port = host.port.map_or(String::new(), |port| port.to_string());
                    format!("{}|{}|{port}", host.name, host.destination)
                };
                place.hosts.iter().map(shown).collect::<Vec<_>>().join(" ")
            });
            match (read, expect) {
                (Ok(read), Ok(expect)) => assert_eq!(read, expect, "{text}"),
                (Err(said), Err(part)) => assert!(said.contains(part), "{text}: {said}"),
                (got, expect) => panic!("{text}: {got:?}, expected {expect:?}"),
            }
        }
        let many: Vec<String> = (0..65).map(|number| format!("h{number}")).collect();
        assert!(Place::parse(&format!("ssh://{}", many.join(","))).is_err_and(|said| said.contains("64")));
    }
}
