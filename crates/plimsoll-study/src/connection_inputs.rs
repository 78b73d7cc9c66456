//! Checks the inputs of connections that depend on this machine: certificate files and local
//! addresses. The check precedes every load, so no load starts with an invalid file or address.
//!
//! Not here: the flags (command line).

use plimsoll_model::failure::Failure;
use plimsoll_model::{AddressRange, ExperimentSettings, TlsSpec};
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_wire::tls::{ConfigError, certificates};
use std::net::SocketAddr;

/// The largest number of local addresses in a range that are checked one by one. If a range has
/// more addresses, only its first and last address are checked.
const SOURCE_ADDRESSES_CHECKED_MAX: u64 = 1024;

/// Returns an error if a --source-ip address does not belong to this machine.
pub fn check_sources(sources: &[AddressRange]) -> Result<(), Failure> {
    sources.iter().try_for_each(check_source_range)
}

/// Returns an error if an address of the range does not belong to this machine.
fn check_source_range(range: &AddressRange) -> Result<(), Failure> {
    let tried = if range.count() <= SOURCE_ADDRESSES_CHECKED_MAX { range.count() } else { 1 };
    for address in (0..tried).chain([range.count() - 1]).map(|index| range.nth(index)) {
        if !plimsoll_sys::tcp::is_local(&address) {
            return Err(Failure::usage(format!(
                "--source-ip: {address} is not an address of this machine (ip addr lists the addresses)"
            )));
        }
    }
    Ok(())
}

/// Removes the target addresses that no --source-ip address can reach, because no --source-ip
/// address has the same IP version. Returns an error if every target address was removed.
pub fn retain_reachable_addresses(addresses: &mut Vec<SocketAddr>, sources: &[AddressRange]) -> Result<(), Failure> {
    if sources.is_empty() {
        return Ok(());
    }
    let wanted = addresses.first().copied();
    addresses.retain(|address| sources.iter().any(|range| range.is_ipv4() == address.is_ipv4()));
    match (wanted, addresses.is_empty()) {
        (Some(address), true) => {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            Err(Failure::usage(format!(
                "--source-ip: the target {target_address} needs an {family} address: add an {family} address of this \
                 machine",
                target_address = address.ip()
            )))
        }
        _ => Ok(()),
    }
}

/// Converts a TLS configuration error into a usage failure that names the flag and says how to
/// correct the error.
pub fn tls_failure(error: &ConfigError) -> Failure {
    Failure::usage(match error {
        ConfigError::ServerName(_) => {
            format!("{error}: write a valid host name in the URL, and give the server's address with --connect-to")
        }
        ConfigError::NoRoots => {
            format!("{error}: give an issuer with --cacert, or skip the check of certificates with --insecure")
        }
        ConfigError::Roots => format!("--cacert: {error}"),
        ConfigError::Certificate => format!("--cert: {error}"),
        ConfigError::Key => format!("--key: {error}"),
        ConfigError::Pair(_) => format!("--cert and --key {error}"),
        ConfigError::Other(_) => error.to_string(),
    })
}

/// Reads the certificates that the user's options (`settings`) name into `tls`: trusted issuers,
/// client certificate and key.
pub fn read_certificates(tls: &mut TlsSpec, settings: &ExperimentSettings<String>) -> Result<(), Failure> {
    let read = |flag: &str, path: &str| {
        files::read(path.as_ref(), FilePurpose::Pem)
            .map_err(|why| Failure::usage(format!("{flag}: the file '{path}' {why}")))
    };
    tls.roots = match &settings.issuers {
        _ if !tls.verify => Vec::new(),
        Some(path) => certificates(&read("--cacert", path)?)
            .ok_or_else(|| Failure::usage(format!("--cacert: '{path}' contains no readable certificate (PEM)")))?,
        None => rustls_native_certs::load_native_certs().certs.into_iter().map(|der| der.to_vec()).collect(),
    };
    tls.certificate_pem = settings.certificate.as_deref().map(|path| read("--cert", path)).transpose()?;
    tls.key_pem = settings.key.as_deref().map(|path| read("--key", path)).transpose()?;
    Ok(())
}
