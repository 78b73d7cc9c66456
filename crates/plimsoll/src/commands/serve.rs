//! `plimsoll serve`: serves web pages about the runs of a store. Builds without web pages use
//! `serve_off.rs` instead.

use super::diff::comparison_report;
use super::report::{chart_picture, summary_text};
use crate::args::ServeArgs;
use crate::results::page::whole_page;
use crate::results::{Results, read_run_file};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_study::output::{print, print_to_stderr};
use plimsoll_study::result_store;
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_sys::system_text;
use plimsoll_web::{AccessRules, Renderers, WebSettings, WebTls, WebTlsError};
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;

/// The length of the access token in the link to the pages, bytes (128 bits).
const TOKEN_BYTES: usize = 16;

/// Serves the pages until the user interrupts. Returns the exit code.
pub fn run(args: &ServeArgs) -> Result<u8, Failure> {
    let cannot = |error: &std::io::Error| {
        let reason = system_text(error);
        Failure::cannot_start(format!(
            "--listen: cannot listen on {address}: {reason}; port 0 picks a free port",
            address = args.listen
        ))
    };
    let listener = TcpListener::bind(args.listen).map_err(|error| cannot(&error))?;
    let listens = listener.local_addr().map_err(|error| cannot(&error))?;
    let token = random_token()?;
    let store = result_store::store_folder(args.store.as_deref());
    let program = std::env::current_exe().map_err(|error| {
        Failure::cannot_start(format!(
            "the path of the plimsoll program is unknown: {reason}",
            reason = system_text(&error)
        ))
    })?;
    let tls =
        args.tls_cert.as_ref().zip(args.tls_key.as_ref()).map(|(cert, key)| read_tls_files(cert, key)).transpose()?;
    let access = AccessRules::new(listens, args.name.as_deref(), token.clone());
    let (scheme, access) = if tls.is_some() { ("https", access.with_tls()) } else { ("http", access) };
    if !listens.ip().is_loopback() && tls.is_none() {
        print_to_stderr(
            "warning: without TLS, the access token of the web pages is readable on the network. Give --tls-cert and \
             --tls-key, put a proxy with TLS in front, or listen on 127.0.0.1 and use ssh -L",
        );
    }
    if args.allow_commands {
        print_to_stderr(
            "warning: --allow-commands lets every holder of the access token run commands on this machine with your \
             rights",
        );
    }
    // The link contains the host name of --name, because browsers compare the host name of the link
    // with the names in the certificate.
    let place = match args.name.as_ref().filter(|_| args.tls_cert.is_some()) {
        Some(name) if name.contains(':') => name.clone(),
        Some(name) => format!("{name}:{}", listens.port()),
        None => listens.to_string(),
    };
    print(&format!(
        "serving the web pages of the result store '{store}' until ^C:\n{scheme}://{place}/login?token={token}\n",
        store = store.display()
    ));
    let renderers = Renderers {
        report: |path| Ok(Results::from_experiment(&read_run_file(path)?, Some(path))?.html_page_report()),
        compare: comparison_report,
        document: |path| Ok(Results::from_experiment(&read_run_file(path)?, Some(path))?.view().render_json_document()),
        whole_page: |path| whole_page(&[(path, &read_run_file(path)?)]),
        summary: summary_text,
        picture: chart_picture,
        command: |path| Ok(read_run_file(path)?.command),
    };
    let allows_commands = args.allow_commands;
    plimsoll_web::serve_pages(listener, WebSettings { store, program, access, renderers, tls, allows_commands })?;
    Ok(exit::SUCCESS)
}

/// Reads the certificate and key for HTTPS.
fn read_tls_files(cert: &Path, key: &Path) -> Result<WebTls, Failure> {
    let wrong =
        |flag: &str, path: &Path, why: &str| Failure::usage(format!("{flag}: the file '{}' {why}", path.display()));
    let read = |flag: &str, path: &Path| files::read(path, FilePurpose::Pem).map_err(|why| wrong(flag, path, &why));
    WebTls::new(&read("--tls-cert", cert)?, &read("--tls-key", key)?).map_err(|error| {
        let (flag, path, reason) = match error {
            WebTlsError::Certificate(reason) => ("--tls-cert", cert, reason),
            WebTlsError::Key(reason) => ("--tls-key", key, reason),
        };
        Failure::usage(format!("{flag} '{path}': {reason}", path = path.display()))
    })
}

/// Returns a random access token of 128 bits, as hexadecimal text.
fn random_token() -> Result<String, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::cannot_start(format!("/dev/urandom gives no token: {}", system_text(&error))))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
