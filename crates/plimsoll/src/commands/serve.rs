//! `plimsoll serve`: pages over a store. The twin for builds without them is `serve_off.rs`.

use super::diff::comparison_report;
use super::report::{chart_picture, summary_text};
use crate::args::ServeArgs;
use crate::results::page::whole_page;
use crate::results::{Results, read};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::output::{note, print};
use plimsoll_study::result_store;
use plimsoll_sys::system_text;
use plimsoll_web::{Access, Renderers, WebSettings};
use std::io::Read;
use std::net::TcpListener;

/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// Serves until it is interrupted.
pub fn run(args: &ServeArgs) -> Result<u8, Failure> {
    let cannot = |error: &std::io::Error| {
        let why = system_text(error);
        Failure::start(format!("--listen: cannot listen on {}: {why}; port 0 picks a free port", args.listen))
    };
    let listener = TcpListener::bind(args.listen).map_err(|error| cannot(&error))?;
    let listens = listener.local_addr().map_err(|error| cannot(&error))?;
    let token = token()?;
    let store = result_store::store(args.store.as_deref());
    let program = std::env::current_exe().map_err(|error| {
        Failure::start(format!("the path of the plimsoll program is unknown: {}", system_text(&error)))
    })?;
    let access = Access::new(listens, args.name.as_deref(), token.clone());
    if !listens.ip().is_loopback() {
        note(
            "warning: without TLS, the token is readable on the network. Put a proxy with TLS in front, or \
             listen on 127.0.0.1 and use ssh -L",
        );
    }
    print(&format!("pages of the store '{}', until ^C:\nhttp://{listens}/login?token={token}\n", store.display()));
    let renderers = Renderers {
        report: |path| Ok(Results::of(&read(path)?, Some(path))?.page()),
        compare: comparison_report,
        document: |path| Ok(Results::of(&read(path)?, Some(path))?.shown().document()),
        whole_page: |path| whole_page(&[(path, &read(path)?)]),
        summary: summary_text,
        picture: chart_picture,
    };
    plimsoll_web::serve(listener, WebSettings { store, program, access, renderers })?;
    Ok(exit::DONE)
}

/// A secret that nobody guesses: 128 bits of the system's.
fn token() -> Result<String, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::start(format!("/dev/urandom gives no token: {}", system_text(&error))))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
