//! Resolves a target's host name to addresses, and refuses public addresses without permission.
//!
//! Not here: opening connections, and certificates (`connection_inputs`).

use plimsoll_model::addresses::{connection_destination, is_metadata_service, is_private};
use plimsoll_model::{Failure, redact};
use plimsoll_probe::fetch::FetchTarget;
use plimsoll_sys::probe::listener::is_address_of_this_machine;
use plimsoll_sys::{signal, system_text};
use plimsoll_traffic::target_url::{Url, redact_query};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Parses a plain HTTP URL from which plimsoll fetches data, and resolves its host.
pub fn resolve_plain_http_url(url: &str, allow_public: bool) -> Result<FetchTarget, Failure> {
    let Url { origin, path, authorization } = Url::parse(url)?;
    let (addresses, _) = resolve_addresses(&origin.host, origin.port, allow_public)?;
    match origin.scheme != "http" {
        true => Err(Failure::usage(format!(
            "'{address}': plimsoll reads this address only over plain HTTP: give an http:// address",
            address = redact_query(url)
        ))),
        false => Ok(FetchTarget { origin, path, authorization, addresses }),
    }
}

/// Returns the addresses of a host, and whether all the addresses belong to this machine. Refuses
/// public addresses unless `allow_public`.
pub fn resolve_addresses(name: &str, port: u16, allow_public: bool) -> Result<(Vec<SocketAddr>, bool), Failure> {
    // A host name without a dot or colon may be a word of an unquoted header field, so the name may
    // be a secret.
    let named = if name.contains([':', '.']) { name.into() } else { redact::redact_word(name) };
    let mut addresses = look_up_addresses(name, port).map_err(|e| {
        Failure::cannot_start(format!("the host '{named}' has no address: {reason}", reason = system_text(&e)))
    })?;
    addresses.iter_mut().for_each(|address| address.set_ip(connection_destination(address.ip())));
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    if let Some(public) = addresses.iter().find(|a| !is_private(&a.ip()))
        && !allow_public
    {
        let ip = public.ip().to_string();
        let address = if name == ip { format!("'{named}'") } else { format!("'{named}' ({ip})") };
        return Err(Failure::usage(match is_metadata_service(&public.ip()) {
            true => format!(
                "{address} is link-local, where clouds serve a machine's credentials: add --allow-public if you may \
                 put load on this address"
            ),
            false => format!(
                "{address} is neither loopback nor private: add --allow-public if you may put load on this address"
            ),
        }));
    }
    let local = addresses.iter().all(|address| is_address_of_this_machine(*address));
    Ok((addresses, local))
}

/// Looks up all addresses of a host name. The lookup may block for long, so it runs in a thread and
/// the user can interrupt.
fn look_up_addresses(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::from((ip, port))]);
    }
    let (tell, told) = mpsc::channel();
    let name = name.to_owned();
    std::thread::spawn(move || tell.send((name.as_str(), port).to_socket_addrs().map(Iterator::collect)));
    loop {
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok(addresses) => return addresses,
            Err(RecvTimeoutError::Timeout) if !signal::is_stop_requested() => {}
            Err(_) => return Err(io::Error::other("interrupted")),
        }
    }
}

/// Parses the value `HOST:PORT` of --connect-to.
pub fn parse_connect_to(text: &str) -> Result<(String, u16), Failure> {
    let bad = || {
        Failure::usage(format!(
            "--connect-to: '{value}' is not HOST:PORT, such as 10.0.0.5:8080 or [::1]:8080",
            value = redact_query(text)
        ))
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    // An IPv6 address needs brackets. Without brackets, the last part of an IPv6 address would look
    // like a port.
    let is_name = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    if bare.is_empty() || !bare.chars().all(is_name) || (bare.contains(':') && bare == host) {
        return Err(bad());
    }
    Ok((bare.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve_url(url: &str, allow_public: bool) -> Result<(Url, bool), Failure> {
        let url = Url::parse(url)?;
        let (_, local) = resolve_addresses(&url.origin.host, url.origin.port, allow_public)?;
        Ok((url, local))
    }

    #[test]
    fn urls_resolve_or_explain_the_error() {
        for (url, expect) in [
            ("http://127.0.0.1:8080/a?b=c", Ok(("127.0.0.1", 8080, "/a?b=c", None))),
            ("127.0.0.1:8080", Ok(("127.0.0.1", 8080, "/", None))),
            ("http://localhost", Ok(("localhost", 80, "/", None))),
            ("http://[::1]:81/x#frag", Ok(("::1", 81, "/x", None))),
            ("HTTP://127.0.0.1/", Ok(("127.0.0.1", 80, "/", None))),
            ("http://u:p%40@127.0.0.1/", Ok(("127.0.0.1", 80, "/", Some("Basic dTpwQA==")))),
            ("http://key7@127.0.0.1/", Ok(("127.0.0.1", 80, "/", Some("Basic a2V5Nzo=")))),
            ("http://@127.0.0.1/", Ok(("127.0.0.1", 80, "/", None))),
            ("http://127.0.0.1/\u{fc} b?q=\u{fc}&r={a}#x", Ok(("127.0.0.1", 80, "/%C3%BC%20b?q=%C3%BC&r={a}", None))),
            ("http://127.0.0.1/{a}/%7B", Ok(("127.0.0.1", 80, "/%7Ba%7D/%7B", None))),
            ("http://127.0.0.1?x=1", Ok(("127.0.0.1", 80, "/?x=1", None))),
            ("https://127.0.0.1/", Ok(("127.0.0.1", 443, "/", None))),
            ("ftp://127.0.0.1/", Err("http://HOST:PORT")),
            ("http://", Err("not a URL")),
            ("http://:80/", Err("not a URL")),
            ("http://127.0.0.1:0/", Err("port")),
            ("http://127.0.0.1:99999/", Err("port")),
            ("http://127.0.0.1:x/", Err("not a URL")),
            ("http://a b/", Err("not a URL")),
            ("", Err("not a URL")),
            ("http://93.184.216.34/", Err("--allow-public")),
            ("http://169.254.169.254/latest/meta-data", Err("--allow-public")),
            ("http://[::ffff:169.254.169.254]/", Err("--allow-public")),
            ("http://[::ffff:a9fe:a9fe]/", Err("--allow-public")),
            ("http://[fd00:ec2::254]/", Err("--allow-public")),
            ("http://2852039166/", Err("--allow-public")),
            ("http://0xA9FEA9FE/", Err("--allow-public")),
            ("http://0251.0376.0251.0376/", Err("--allow-public")),
            ("http://169.254.43518/", Err("--allow-public")),
            ("http://host.invalid/", Err("has no address")),
        ] {
            match (resolve_url(url, false), expect) {
                (Ok((t, local)), Ok((host, port, path, authorization))) => {
                    assert_eq!((t.origin.host.as_str(), t.origin.port, t.path.as_str()), (host, port, path), "{url}");
                    assert_eq!(t.authorization.as_deref(), authorization, "{url}");
                    assert!(local, "{url}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{url}: {error}"),
                (got, want) => panic!("{url}: {got:?}, expected {want:?}"),
            }
        }
        for (url, expect) in [
            ("http://0.0.0.0:8080/", "127.0.0.1:8080"),
            ("http://0:8080/", "127.0.0.1:8080"),
            ("http://[::]:8080/", "[::1]:8080"),
            ("http://[::ffff:0.0.0.0]:8080/", "127.0.0.1:8080"),
        ] {
            let target = resolve_plain_http_url(url, false).expect(url);
            assert!(resolve_url(url, false).expect(url).1, "{url}");
            assert_eq!(target.addresses, [expect.parse().expect("an address")], "{url}");
        }
        assert!(!resolve_url("http://93.184.216.34/", true).expect("allowed").1);
        let tls = resolve_plain_http_url("https://127.0.0.1/", false).expect_err("not plain");
        assert!(tls.to_string().contains("plain HTTP"), "{tls}");
    }

    #[test]
    fn connect_to_addresses_parse_or_fail() {
        assert_eq!(parse_connect_to("[::1]:81").expect("a place"), ("::1".to_owned(), 81));
        assert_eq!(
            resolve_addresses("::1", 81, false).expect("this machine").0,
            ["[::1]:81".parse().expect("an address")]
        );
        for text in
            ["", "host", ":80", "h:0", "h:99999", "::1:80", "h:x", "[]:80", "http://u:s3cret@h:80", "u:s3cret@h:80"]
        {
            let error = parse_connect_to(text).expect_err(text);
            assert!(error.to_string().contains("--connect-to"), "{text}: {error}");
            assert!(!error.to_string().contains("s3cret"), "{text}: {error}");
        }
        for host in ["169.254.169.254", "93.184.216.34"] {
            let error = resolve_addresses(host, 80, false).expect_err("needs leave");
            assert!(error.to_string().contains("--allow-public"), "{host}: {error}");
        }
    }
}
