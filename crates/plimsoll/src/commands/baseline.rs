//! `plimsoll baseline`: runs the reference server until the user interrupts.

use crate::args::BaselineArgs;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::baseline::{ReferenceServerOptions, pooled, start};
use plimsoll_study::capacity::ConnectionLimits;
use plimsoll_study::connection_inputs::tls_failure;
use plimsoll_study::output::print;
use plimsoll_study::quantity::parse_positive_count;
use plimsoll_sys::files::{FilePurpose, read};
use plimsoll_sys::system_text;
use plimsoll_traffic::target_url::Url;
use plimsoll_wire::tls::ServerTls;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs the reference server until the user interrupts. Returns the exit code.
pub fn run(args: &BaselineArgs) -> Result<u8, Failure> {
    if let Some((behind, pool)) = args.behind.as_deref().zip(args.pool.as_deref()) {
        return run_pooled_server(args, behind, pool);
    }
    let connections = parse_positive_count("--connections", &args.connections)?;
    let cores = u64::from(plimsoll_sys::probe::cgroup::usable_cores());
    let threads = match &args.threads {
        Some(text) => parse_positive_count("--threads", text)?.min(1024),
        None => cores.max(ConnectionLimits::limits_of_machine().thread_count_for_connections(connections)),
    } as usize;
    let listen = args.listen;
    let read = |flag: &str, path: &PathBuf| {
        read(path, FilePurpose::Pem)
            .map_err(|why| Failure::usage(format!("{flag}: the file '{}' {why}", path.display())))
    };
    let certificate = args.cert.as_ref().map(|path| read("--cert", path)).transpose()?;
    let key = args.key.as_ref().map(|path| read("--key", path)).transpose()?;
    let tls = certificate.map(|pem| ServerTls::new(&pem, key.as_deref())).transpose().map_err(|e| tls_failure(&e))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server =
        start(ReferenceServerOptions { listen, threads, tls }).map_err(|error| listen_failure(listen, &error))?;
    serve_until_interrupted(scheme, server.listen_address());
    server.stop().map_err(|error| listen_failure(listen, &error))?;
    Ok(exit::SUCCESS)
}

/// Runs a reference server with a known bottleneck: its pool of `pool` connections to a downstream
/// server. `behind` is the URL of the downstream server.
fn run_pooled_server(args: &BaselineArgs, behind: &str, pool: &str) -> Result<u8, Failure> {
    let url = Url::parse(behind).map_err(|failure| Failure::usage(format!("--behind: {failure}")))?;
    let connections = parse_positive_count("--pool", pool)?.min(1 << 16) as usize;
    let address = pooled::start(args.listen, &url, connections).map_err(|error| listen_failure(args.listen, &error))?;
    serve_until_interrupted("http", address);
    Ok(exit::SUCCESS)
}

fn listen_failure(listen: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::cannot_start(format!(
        "--listen: cannot listen on {listen}: {reason}; port 0 picks a free port",
        reason = system_text(error)
    ))
}

fn serve_until_interrupted(scheme: &str, address: SocketAddr) {
    print(&format!("{scheme}://{address}\n"));
    // If the address cannot be printed, no client learns the address, so the server ends.
    let told = plimsoll_study::output::write_failures().is_empty();
    while told && !plimsoll_sys::signal::is_stop_requested() {
        std::thread::sleep(Duration::from_millis(50));
    }
}
