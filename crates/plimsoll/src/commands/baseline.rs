//! `plimsoll baseline`: serves the reference target until interrupted.

use crate::args::BaselineArgs;
use crate::baseline::{Options, start};
use crate::capacity::Limits;
use crate::failure::{Failure, exit};
use crate::output::print;
use crate::quantity::positive;
use crate::target::system_text;
use std::time::Duration;

/// Serves, and says with which code to end.
pub fn run(args: &BaselineArgs) -> Result<u8, Failure> {
    let connections = positive("--connections", &args.connections)?;
    let cores = u64::from(plimsoll_sys::process::cores());
    let threads = match &args.threads {
        Some(text) => positive("--threads", text)?.min(1024),
        None => cores.max(Limits::of_machine().threads_for(connections)),
    } as usize;
    let listen = args.listen;
    let failed = |e: std::io::Error| {
        Failure::start(format!("--listen: {listen} cannot be served: {}; port 0 takes a free one", system_text(&e)))
    };
    let server = start(Options { listen, threads }).map_err(failed)?;
    print(&format!("http://{}\n", server.address()));
    // An address that nobody was told is of no use.
    let told = crate::output::failures().is_empty();
    while told && !plimsoll_sys::signal::interrupted() {
        std::thread::sleep(Duration::from_millis(50));
    }
    server.stop().map_err(failed)?;
    Ok(exit::DONE)
}
