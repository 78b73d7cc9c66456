//! How connections are asked for: the flags on addresses, closing and TLS become a [`Carriage`]. What they say is checked
//! against the machine here, so that a load never starts with an address or certificate that cannot work.

use crate::args::ConnectionArgs;
use crate::failure::Failure;
use crate::files::{self, Use};
use crate::quantity::positive_time;
use crate::target::Target;
use plimsoll_model::{AddressRange, Carriage, ResolveSpec, TlsSpec};
use plimsoll_wire::tls::{ConfigError, certificates};
use std::net::SocketAddr;
use std::path::Path;

/// Source addresses that are tried one by one; of more only the ends of each range.
const SOURCES_TRIED: u64 = 1024;

/// Flags that contradict each other, before anything is looked up.
pub fn refuse_contradictions(said: &ConnectionArgs) -> Result<(), Failure> {
    if said.unix.is_some() {
        for (given, flag) in [
            (said.connect_to.is_some(), "--connect-to"),
            (said.source_ip.is_some(), "--source-ip"),
            (said.resolve_every.is_some(), "--resolve-every"),
        ] {
            if given {
                return Err(Failure::usage(format!("--unix and {flag}: a unix socket has no address; leave one out")));
            }
        }
    }
    if said.key.is_some() && said.cert.is_none() {
        return Err(Failure::usage("--key: there is no certificate for it; add --cert"));
    }
    if said.insecure && said.cacert.is_some() {
        return Err(Failure::usage(
            "--insecure and --cacert: either nobody is verified or these issuers; leave one out",
        ));
    }
    Ok(())
}

/// The connections that the flags ask for, from any address.
pub fn carriage(said: &ConnectionArgs, target: &Target, public: bool) -> Result<Carriage, Failure> {
    let close_reset = match said.close.as_deref() {
        None | Some("fin") => false,
        Some("reset") => true,
        Some(other) => return Err(Failure::usage(format!("--close: '{other}' is not fin or reset"))),
    };
    let every_ns = said.resolve_every.as_deref().map(|text| positive_time("--resolve-every", text)).transpose()?;
    let resolve = match (every_ns, &target.resolved) {
        (Some(every_ns), Some((host, port))) => Some(ResolveSpec { host: host.clone(), port: *port, every_ns, public }),
        _ => None,
    };
    let tls = tls(said, target)?;
    let tcp = Carriage::tcp(target.addresses.clone());
    Ok(Carriage { unix: said.unix.clone(), resolve, close_reset, tls, ..tcp })
}

/// The local addresses that connections come from; empty: the system chooses.
pub fn sources(said: &ConnectionArgs) -> Result<Vec<AddressRange>, Failure> {
    let Some(text) = &said.source_ip else { return Ok(Vec::new()) };
    let sources = AddressRange::parse_list(text).map_err(|e| Failure::usage(format!("--source-ip: {e}")))?;
    sources.iter().try_for_each(ours)?;
    Ok(sources)
}

/// Refuses a range with an address that is not this machine's.
fn ours(range: &AddressRange) -> Result<(), Failure> {
    let tried = if range.count() <= SOURCES_TRIED { range.count() } else { 1 };
    for address in (0..tried).chain([range.count() - 1]).map(|index| range.nth(index)) {
        if !plimsoll_sys::tcp::is_local(&address) {
            return Err(Failure::usage(format!("--source-ip: {address} is not an address of this machine (ip addr)")));
        }
    }
    Ok(())
}

/// With --source-ip, the addresses that can be reached from the sources given.
pub fn keep_reachable(addresses: &mut Vec<SocketAddr>, sources: &[AddressRange]) -> Result<(), Failure> {
    if sources.is_empty() {
        return Ok(());
    }
    let wanted = addresses.first().copied();
    addresses.retain(|address| sources.iter().any(|range| range.is_ipv4() == address.is_ipv4()));
    match (wanted, addresses.is_empty()) {
        (Some(address), true) => {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            Err(Failure::usage(format!("--source-ip: {} needs an {family} address to come from", address.ip())))
        }
        _ => Ok(()),
    }
}

/// The TLS that the flags ask for cannot be used.
pub fn tls_refused(error: &ConfigError) -> Failure {
    Failure::usage(match error {
        ConfigError::ServerName(_) => format!("{error}: use --connect-to to reach it under a proper name"),
        ConfigError::NoRoots => format!("{error}: give one with --cacert, or do not verify (--insecure)"),
        ConfigError::Roots => format!("--cacert: {error}"),
        ConfigError::Certificate => format!("--cert: {error}"),
        ConfigError::Key => format!("--key: {error}"),
        ConfigError::Pair(_) => format!("--cert and --key {error}"),
        ConfigError::Other(_) => error.to_string(),
    })
}

fn tls(said: &ConnectionArgs, target: &Target) -> Result<Option<TlsSpec>, Failure> {
    if target.scheme != "https" {
        for (given, flag) in [
            (said.insecure, "--insecure"),
            (said.cacert.is_some(), "--cacert"),
            (said.cert.is_some(), "--cert"),
            (said.no_resumption, "--no-resumption"),
        ] {
            if given {
                return Err(Failure::usage(format!("{flag}: only TLS has a use for it; write https:// in the URL")));
            }
        }
        return Ok(None);
    }
    let read = |flag: &str, path: &Path| {
        files::read(path, Use::Pem)
            .map_err(|why| Failure::usage(format!("{flag}: the file '{}' {why}", path.display())))
    };
    let roots = match &said.cacert {
        _ if said.insecure => Vec::new(),
        Some(path) => certificates(&read("--cacert", path)?).ok_or_else(|| {
            Failure::usage(format!("--cacert: there is no certificate in '{}' that can be read (PEM)", path.display()))
        })?,
        None => rustls_native_certs::load_native_certs().certs.into_iter().map(|der| der.to_vec()).collect(),
    };
    Ok(Some(TlsSpec {
        server_name: target.host.clone(),
        verify: !said.insecure,
        resume: !said.no_resumption,
        roots,
        certificate_pem: said.cert.as_deref().map(|path| read("--cert", path)).transpose()?,
        key_pem: said.key.as_deref().map(|path| read("--key", path)).transpose()?,
        ..TlsSpec::default()
    }))
}
