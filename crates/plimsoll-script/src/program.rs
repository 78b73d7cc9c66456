//! Describes a script before it is executed: its text, its arguments, and its URL, as plain data.

/// A script with its URL, arguments and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The name by which error messages refer to the script.
    pub name: String,
    /// The script's text. `None`: no script was given, and the table `wrk` defines one request that
    /// is sent repeatedly.
    pub text: Option<Vec<u8>>,
    /// The value of `wrk.scheme`.
    pub scheme: String,
    /// The value of `wrk.host`, without brackets around an IPv6 address.
    pub host: String,
    /// The value of `wrk.port`; `None` if the URL has no port.
    pub port: Option<String>,
    /// The value of `wrk.path`: the URL from its path on, including the query.
    pub path: String,
    /// Header fields that are put into `wrk.headers` before the script is executed.
    pub headers: Vec<(String, String)>,
    /// The argument `args` of `init`, from index 0: the URL, then the words after `--`.
    pub args: Vec<String>,
    /// The tool whose behaviour applies where wrk and wrk2 differ.
    pub dialect: Dialect,
    /// Whether `os.exit` ends the whole program, as in wrk. If `may_exit` is false, a call of
    /// `os.exit` is an error of the script.
    pub may_exit: bool,
    /// The limit of memory for each Lua state of the script, bytes.
    pub memory_bytes_max: usize,
}

/// The tool that a script was written for: wrk or wrk2, which differ in details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Behaviour of wrk 4.1.
    #[default]
    Wrk,
    /// Behaviour of wrk2: `delay` is not called, and `#latency` counts all values.
    Wrk2,
}

impl Program {
    /// Returns a program without a script text for a URL; `None` if the URL lacks a scheme or host.
    /// As in wrk, the parts of the URL other than scheme and host are not checked.
    pub fn from_url(url: &str) -> Option<Program> {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        (!host.is_empty() && !scheme.is_empty()).then(|| Program {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: port.filter(|port| !port.is_empty()).map(str::to_owned),
            path,
            args: vec![url.to_owned()],
            memory_bytes_max: crate::MEMORY_BYTES_MAX,
            ..Program::default()
        })
    }

    /// Returns the port, or the scheme as service name if the URL has no port.
    pub fn port_or_scheme(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_url_is_parsed() {
        for (url, expect) in [
            ("http://h", Some(("http", "h", None, "/"))),
            ("http://h:8080/a/b?c=d", Some(("http", "h", Some("8080"), "/a/b?c=d"))),
            ("https://[::1]:9/", Some(("https", "::1", Some("9"), "/"))),
            ("http://h?x", Some(("http", "h", None, "/?x"))),
            ("h:80/", None),
            ("http://", None),
        ] {
            let program = Program::from_url(url);
            let parts = program.as_ref().map(|p| (&*p.scheme, &*p.host, p.port.as_deref(), &*p.path));
            assert_eq!(parts, expect, "{url}");
        }
    }
}
