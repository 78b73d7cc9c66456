//! Converts the host of a URL to ASCII. Not here: ports, and reachability.

use std::net::Ipv6Addr;

/// Converts a host name to ASCII by IDNA, and removes the brackets of an IPv6 address. A returned
/// error is a phrase with the reason why the host is invalid.
pub fn host_to_ascii(host: &str) -> Result<String, &'static str> {
    let no_host = "the host of the URL is neither a host name nor an IP address";
    if host.is_empty() || host == "[]" {
        return Err("the URL names no host");
    }
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(no_host)?;
        let address = inner.split('%').next().unwrap_or_default();
        return if address.parse::<Ipv6Addr>().is_ok() { Ok(inner.to_owned()) } else { Err(no_host) };
    }
    let is_written = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c);
    if host.chars().all(is_written) {
        return Ok(host.to_owned());
    }
    match url::Host::parse(host) {
        Ok(url::Host::Domain(name)) => Ok(name),
        Ok(url::Host::Ipv4(address)) => Ok(address.to_string()),
        _ => Err(no_host),
    }
}

#[cfg(test)]
mod tests {
    use super::host_to_ascii;

    #[test]
    fn hosts_are_names_or_addresses() {
        for (host, expect) in [
            ("localhost", Some("localhost")),
            ("b\u{fc}cher.example", Some("xn--bcher-kva.example")),
            ("[::1]", Some("::1")),
            ("\u{ff11}27.0.0.1", Some("127.0.0.1")),
            ("", None),
            ("[]", None),
            ("[1, 2]", None),
            ("a b", None),
            ("\u{200b}", None),
        ] {
            assert_eq!(host_to_ascii(host).ok().as_deref(), expect, "{host}");
        }
    }
}
