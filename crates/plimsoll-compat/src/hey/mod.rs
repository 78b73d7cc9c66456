//! The command `plimsoll hey`, which also runs if the executable is called under the name `hey`.
//! The command has hey's command line, requests and output, and runs a load of plimsoll.
//!
//! Not here: executing the load, and counting responses (`response_log`).

mod options;
mod render;

use crate::go_request::requests_gzip;
use crate::output;
use crate::response_log::{RedirectPolicy, ResponseLog, ResponseLogSpec};
use crate::run_command::RunCommand;
use options::{HeyOptions, parse};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{Request, traffic::TemplateFlags};
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_traffic::target_url::{Url, host_header_value};
use plimsoll_wire::redirect::is_redirect;
use render::{format_csv, format_summary};
use std::io::IsTerminal;
use std::sync::Arc;

/// The maximum number of requests in one redirect chain, as in Go.
const REDIRECT_CHAIN_REQUESTS_MAX: u64 = 10;

const USAGE: &str = "Usage: hey [options...] <url>

  -n N     requests [200]               -c N   workers [50]
  -z T     duration of the load, such as 10s, instead of -n
  -q N     requests a second of each worker
  -t S     timeout of a request [20]; 0: none
  -o csv   a line for each answer instead of the summary
  -m METHOD, -d BODY, -D FILE
  -H 'Name: value', -A ACCEPT, -T TYPE [text/html], -U AGENT, -host HOST
  -a user:password
  -h2, -disable-compression, -disable-keepalive, -disable-redirects
  -cpus N  threads

  -output FILE    keep the run in this file
  -json           print plimsoll's results as JSON
  -allow-public   load on addresses that are not private
What differs from hey: docs/how-to/coming-from.md
";

/// Runs the command line of hey, which is given without the program's name. Returns the exit code.
pub fn run_hey_command(words: &[String], run: &dyn RunCommand) -> Result<u8, Failure> {
    match parse(words).map_err(Failure::usage)? {
        None => output::print(USAGE),
        Some(asked) => return run_load(&asked, run),
    }
    Ok(exit::SUCCESS)
}

fn run_load(options: &HeyOptions, run: &dyn RunCommand) -> Result<u8, Failure> {
    let url = Url::parse(&options.url)?;
    let body = match &options.body_file {
        None => options.body.clone().into_bytes(),
        Some(path) => files::read(path.as_ref(), FilePurpose::Body)
            .map_err(|why| Failure::usage(format!("-D: the file '{path}' {why}")))?,
    };
    let (mut question, settings) = run.parse(&options.run_arguments())?;
    let first_hop = options.first_hop(&host_header_value(&url.origin), &url.path);
    // Over HTTP/2, the load encodes the request of its plan, so no request bytes are encoded here.
    let request = match options.is_http2 {
        false => options.encode_request(&first_hop, &body),
        true => Vec::new(),
    };
    let redirect_policy = (options.follows_redirects && !options.is_http2).then(|| {
        let (asked, body) = (options.clone(), body.clone());
        RedirectPolicy {
            first_hop,
            origin: url.origin.clone(),
            chain_requests_max: REDIRECT_CHAIN_REQUESTS_MAX,
            has_body: !body.is_empty(),
            encode_hop: Box::new(move |hop| asked.encode_request(hop, &body)),
        }
    });
    let route = &mut question.plan.traffic.routes[0];
    let mut headers = if options.is_http2 { options.headers.clone() } else { Vec::new() };
    if let (true, Some(host)) = (options.is_http2, &options.host) {
        headers.push(("Host".to_owned(), host.clone()));
    }
    if options.is_http2 && options.accepts_gzip && requests_gzip(&options.method, &options.headers) {
        headers.push(("Accept-Encoding".to_owned(), "gzip".to_owned()));
    }
    // The load sends the request literally: braces in the request are not placeholders of
    // plimsoll's templates.
    (route.request, route.template_flags) =
        (Request { method: options.method.clone(), target: url.path.clone(), headers, body }, TemplateFlags::default());
    // No connection is opened before the load, because the times that hey reports include the time
    // to connect. After the load, plimsoll waits for outstanding responses, at most as long as the
    // timeout of a request.
    (question.plan.load.connections_ready, question.plan.load.grace_ns) = (0, route.timeout_ns);
    let heard = ResponseLog::new(ResponseLogSpec {
        request,
        is_head: options.method == "HEAD",
        keeps_rows: options.is_csv,
        redirect_policy,
        ..ResponseLogSpec::default()
    });
    let measured = run.execute_load(question, &settings, Some(Arc::new(heard.clone())))?;
    let tally = heard.merged_tally();
    let (from_ns, to_ns) = measured.run().window_ns;
    let print_results = measured.build_results_printer()?;
    if options.json {
        print_results(true, true);
    } else if options.is_csv {
        let began_us = tally.rows.iter().map(|row| row.intended_us).min().unwrap_or(0);
        output::print(&format_csv(&tally.rows, began_us));
        if tally.omitted_rows > 0 {
            output::print_to_stderr(&format!(
                "warning: -o csv: the output has reached its maximum number of lines; {responses} further responses \
                 are not in the output",
                responses = tally.omitted_rows
            ));
        }
    } else {
        let host = format!("{}:{}", url.origin.host, url.origin.port);
        // Control characters in the summary are printed unchanged, because hey's format contains
        // tabs.
        output::print_unescaped(&format_summary(options, &host, &tally, to_ns - from_ns));
        if std::io::stdout().is_terminal() {
            // On a terminal, plimsoll's own results are printed below hey's output, because hey's
            // format has no fields for these results.
            print_results(false, false);
        }
    }
    // The number of redirects that were not followed: over HTTP/2 all redirects, over HTTP/1.1 only
    // redirects to another server.
    let redirects: u64 = match options.is_http2 && options.follows_redirects {
        true => tally.statuses.iter().filter(|(status, _)| is_redirect(**status)).map(|(_, count)| count).sum(),
        false => tally.redirects_to_other_servers,
    };
    let warning = match options.is_http2 {
        true => {
            format!("warning: {redirects} responses were redirects, and plimsoll does not follow redirects over HTTP/2")
        }
        false => format!(
            "warning: {redirects} responses redirect to another server, and plimsoll does not follow these redirects"
        ),
    };
    drop(print_results);
    measured.write_notes(if redirects > 0 { std::slice::from_ref(&warning) } else { &[] });
    // As in hey, the exit code is 0 even if requests failed or ^C ended the load.
    Ok(exit::SUCCESS)
}
