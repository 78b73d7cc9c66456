//! The machine's part of connections: certificate files, and local addresses. Both are checked
//! here, so that a load never starts with an invalid one.
//!
//! Not here: flags (the command line).

use plimsoll_model::failure::Failure;
use plimsoll_model::{AddressRange, Terms, TlsSpec};
use plimsoll_sys::files::{self, Use};
use plimsoll_wire::tls::{ConfigError, certificates};
use std::net::SocketAddr;

/// Most local addresses checked one by one; of more, only the ends of each range.
const SOURCES_TRIED: u64 = 1024;

/// Refuses local addresses that this machine does not have.
pub fn refuse_foreign(sources: &[AddressRange]) -> Result<(), Failure> {
    sources.iter().try_for_each(ours)
}

/// Checks a range of local addresses.
fn ours(range: &AddressRange) -> Result<(), Failure> {
    let tried = if range.count() <= SOURCES_TRIED { range.count() } else { 1 };
    for address in (0..tried).chain([range.count() - 1]).map(|index| range.nth(index)) {
        if !plimsoll_sys::tcp::is_local(&address) {
            return Err(Failure::usage(format!("--source-ip: {address} is not an address of this machine (ip addr)")));
        }
    }
    Ok(())
}

/// With --source-ip, keeps the target addresses that are reachable from the given sources.
pub fn keep_reachable(addresses: &mut Vec<SocketAddr>, sources: &[AddressRange]) -> Result<(), Failure> {
    if sources.is_empty() {
        return Ok(());
    }
    let wanted = addresses.first().copied();
    addresses.retain(|address| sources.iter().any(|range| range.is_ipv4() == address.is_ipv4()));
    match (wanted, addresses.is_empty()) {
        (Some(address), true) => {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            Err(Failure::usage(format!("--source-ip: {} needs an {family} address; add one", address.ip())))
        }
        _ => Ok(()),
    }
}

/// The error for invalid TLS options.
pub fn tls_refused(error: &ConfigError) -> Failure {
    Failure::usage(match error {
        ConfigError::ServerName(_) => format!("{error}: use --connect-to and a valid name"),
        ConfigError::NoRoots => format!("{error}: give one with --cacert, or skip the check with --insecure"),
        ConfigError::Roots => format!("--cacert: {error}"),
        ConfigError::Certificate => format!("--cert: {error}"),
        ConfigError::Key => format!("--key: {error}"),
        ConfigError::Pair(_) => format!("--cert and --key {error}"),
        ConfigError::Other(_) => error.to_string(),
    })
}

/// Reads the certificates of the terms: the trusted issuers, and the client certificate.
pub fn find_certificates(tls: &mut TlsSpec, terms: &Terms<String>) -> Result<(), Failure> {
    let read = |flag: &str, path: &str| {
        files::read(path.as_ref(), Use::Pem).map_err(|why| Failure::usage(format!("{flag}: the file '{path}' {why}")))
    };
    tls.roots = match &terms.issuers {
        _ if !tls.verify => Vec::new(),
        Some(path) => certificates(&read("--cacert", path)?)
            .ok_or_else(|| Failure::usage(format!("--cacert: '{path}' contains no readable certificate (PEM)")))?,
        None => rustls_native_certs::load_native_certs().certs.into_iter().map(|der| der.to_vec()).collect(),
    };
    tls.certificate_pem = terms.certificate.as_deref().map(|path| read("--cert", path)).transpose()?;
    tls.key_pem = terms.key.as_deref().map(|path| read("--key", path)).transpose()?;
    Ok(())
}
