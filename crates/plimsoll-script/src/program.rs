//! What a script is before anything of it is carried out: its text, its arguments, and the URL that
//! it starts from. Plain data.

/// A script and what it is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// As messages name it.
    pub name: String,
    /// Its text; `None`: the table `wrk` alone, which asks one request again and again.
    pub text: Option<Vec<u8>>,
    /// `wrk.scheme`.
    pub scheme: String,
    /// `wrk.host`, without brackets.
    pub host: String,
    /// `wrk.port`, if the URL has one.
    pub port: Option<String>,
    /// `wrk.path`: everything of the URL from its path on.
    pub path: String,
    /// Put into `wrk.headers` before the script is carried out.
    pub headers: Vec<(String, String)>,
    /// `args` of `init`, from 0: the URL, and what followed `--`.
    pub args: Vec<String>,
    /// Whose contract it is, where the two differ.
    pub dialect: Dialect,
    /// Whether `os.exit` ends the whole program, as it ends wrk; else it is an error of the script.
    pub may_exit: bool,
    /// Memory that each of its states may take, bytes.
    pub memory_bytes_max: usize,
}

/// Where wrk and wrk2 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// wrk 4.1.
    #[default]
    Wrk,
    /// wrk2: no `delay`; `#latency` counts all values.
    Wrk2,
}

impl Program {
    /// The script of a URL; `None` if it has no scheme and host, which is all that wrk asks of one.
    pub fn of_url(url: &str) -> Option<Program> {
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

    /// The port, or the service that stands for it.
    pub fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        for (url, expect) in [
            ("http://h", Some(("http", "h", None, "/"))),
            ("http://h:8080/a/b?c=d", Some(("http", "h", Some("8080"), "/a/b?c=d"))),
            ("https://[::1]:9/", Some(("https", "::1", Some("9"), "/"))),
            ("http://h?x", Some(("http", "h", None, "/?x"))),
            ("h:80/", None),
            ("http://", None),
        ] {
            let program = Program::of_url(url);
            let parts = program.as_ref().map(|p| (&*p.scheme, &*p.host, p.port.as_deref(), &*p.path));
            assert_eq!(parts, expect, "{url}");
        }
    }
}
