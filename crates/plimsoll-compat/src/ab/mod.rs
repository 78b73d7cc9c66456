//! The command `plimsoll ab`, which also runs if the executable is called under the name `ab`. The
//! command emulates the command line, the requests and the output of ab (ApacheBench), and runs a
//! load of plimsoll.
//!
//! Not here: executing the load, and counting responses (`response_log`).

mod options;
mod render;

use crate::output;
use crate::response_log::{ResponseLog, ResponseLogSpec};
use crate::run_command::RunCommand;
use options::{AbCommand, AbOptions, parse};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{Request, RequestFailure, traffic::TemplateFlags};
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_sys::output_file;
use plimsoll_sys::system_text;
use plimsoll_traffic::target_url::{Url, host_header_value};
use plimsoll_wire::AuthorResponse;
use render::{
    AbReport, BANNER, format_gnuplot_file, format_percentile_csv, render, requests_per_progress_line, start_message,
};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const USAGE: &str = "Usage: ab [options] [http[s]://]hostname[:port]/path
    -n N   requests [1]                     -c N   concurrency [1]
    -t S   maximum seconds; sets -n 50000   -s S   timeout of a request [30]
    -k     keep connections                 -r     continue after a failed request
    -p FILE, -u FILE, -T TYPE   body of a POST, of a PUT, and its type
    -m METHOD, -i               another method; the method HEAD
    -H 'Name: value', -C name=value, -A user:password
    -l     allow responses of any length    -B IP  send from this address
    -v N   2: headers, 4: all received data -q     no progress
    -d     no percentages                   -S     no deviations
    -e FILE, -g FILE            write percentages as CSV; write a line for each request, for gnuplot
    -E FILE  certificate and key            -V, -h

    --http11         HTTP/1.1 instead of 1.0
    --output FILE    keep the run in this file
    --json           print plimsoll's results as JSON
    --allow-public   load on addresses that are not private
Differences from ab: docs/how-to/coming-from.md
";

/// Runs the command line of ab, which is given without the program's name. Returns the exit code.
pub fn run_ab_command(words: &[String], run: &dyn RunCommand) -> Result<u8, Failure> {
    match parse(words).map_err(Failure::usage)? {
        AbCommand::Usage => output::print(USAGE),
        AbCommand::Version => {
            output::print(&format!(
                "plimsoll {version} (the command line of ab)\n",
                version = env!("CARGO_PKG_VERSION")
            ));
        }
        AbCommand::Load(asked) => return run_load(&asked, run),
    }
    Ok(exit::SUCCESS)
}

fn run_load(options: &AbOptions, run: &dyn RunCommand) -> Result<u8, Failure> {
    let url = Url::parse(&options.url)?;
    let body = match &options.body {
        None => Vec::new(),
        Some(path) => files::read(path.as_ref(), FilePurpose::Body)
            .map_err(|why| Failure::usage(format!("-p, -u: the file '{path}' {why}")))?,
    };
    let request = options.encode_request(&host_header_value(&url.origin), &url.path, &body);
    let (mut question, settings) = run.parse(&options.run_arguments())?;
    let route = &mut question.plan.traffic.routes[0];
    // The load sends the request literally: braces in the request are not placeholders of
    // plimsoll's templates.
    (route.request, route.template_flags) = (
        Request { method: options.method.clone(), target: url.path.clone(), headers: Vec::new(), body },
        TemplateFlags::default(),
    );
    // No connection is opened before the load, because the times that ab reports include the time
    // to connect.
    question.plan.load.connections_ready = 0;
    let every = requests_per_progress_line(options);
    let told = Arc::new(AtomicU64::new(0));
    let progress = Arc::clone(&told);
    let request_bytes = request.len() as u64;
    if !options.json {
        output::print(BANNER);
        output::print(&start_message(&url.origin.host, every.is_some()));
        if options.verbosity >= 2 {
            let head = request.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
            let head = head.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n");
            output::print(&format!("INFO: {} header == \n---\n{head}\n---\n", options.method));
        }
    }
    let heard = ResponseLog::new(ResponseLogSpec {
        request,
        is_head: options.method == "HEAD",
        keeps_rows: options.gnuplot.is_some(),
        ends_with_failure: !options.continues_after_failure,
        format_response: match options.verbosity {
            _ if options.json => None,
            0 | 1 => None,
            2 => Some(|answer| format_verbose_response(answer, 2)),
            3 => Some(|answer| format_verbose_response(answer, 3)),
            _ => Some(|answer| format_verbose_response(answer, 4)),
        },
        on_progress: every.map(|every| -> Box<dyn Fn(u64) + Send + Sync> {
            Box::new(move |done| print_progress(&progress, every, done))
        }),
        redirect_policy: None,
    });
    let measured = run.execute_load(question, &settings, Some(Arc::new(heard.clone())))?;
    let mut tally = heard.merged_tally();
    let window_ns = measured.run().window_ns;
    let print_results = measured.build_results_printer()?;
    if options.json {
        print_results(true, true);
    } else if let Some(failure) = heard.fatal_failure() {
        output::print_to_stderr(&format!(
            "{reason}\nTotal of {requests} requests completed",
            reason = failure_message(failure),
            requests = tally.response_count()
        ));
    } else {
        match every {
            Some(every) => {
                print_progress(&told, every, tally.completed_count());
                output::print_to_stderr(&format!("Finished {} requests", tally.completed_count()));
            }
            None => output::print("..done\n"),
        }
        output::print(&render(&AbReport {
            options,
            host: &url.origin.host,
            port: url.origin.port,
            path: &url.path,
            tally: &tally,
            first_response: &heard.first_response(),
            tls_parameters: heard.tls_parameters(),
            seconds: (window_ns.1 - window_ns.0) as f64 / 1e9,
            request_bytes,
        }));
        if std::io::stdout().is_terminal() {
            // On a terminal, plimsoll's own results are printed below ab's output, because ab's
            // format has no fields for these results.
            output::print("\n");
            print_results(false, false);
        }
    }
    let write = |path: &str, text: String| {
        let written = output_file::write(path.as_ref(), text.as_bytes());
        written.map_err(|error| Failure::cannot_start(format!("'{path}' cannot be written: {}", system_text(&error))))
    };
    if let (Some(path), true) = (&options.csv, tally.response_count() > 0) {
        write(path, format_percentile_csv(&tally.response_time))?;
    }
    if let (Some(path), true) = (&options.gnuplot, tally.response_count() > 0) {
        if tally.omitted_rows > 0 {
            output::print_to_stderr(&format!(
                "warning: -g: the file '{path}' has reached its maximum number of lines; {requests} further requests \
                 are not in the file",
                requests = tally.omitted_rows
            ));
        }
        write(path, format_gnuplot_file(&mut tally.rows, heard.clock_start_unix_us()))?;
    }
    drop(print_results);
    measured.write_notes(&[]);
    // As in ab, failed responses do not change the exit code. The exit code changes only if the
    // user pressed ^C, or if a failed request ended the load.
    let whole = heard.fatal_failure().is_none() && !plimsoll_sys::signal::is_stop_requested();
    Ok(if whole { exit::SUCCESS } else { exit::NEGATIVE_RESULT })
}

/// Prints a progress line for each multiple of `every` up to `done`, the number of completed
/// requests. `last_printed_count` is the number in the last printed line.
fn print_progress(last_printed_count: &AtomicU64, every: u64, done: u64) {
    while last_printed_count.load(Ordering::Relaxed) + every <= done {
        let count = last_printed_count.fetch_add(every, Ordering::Relaxed) + every;
        output::print_to_stderr(&format!("Completed {count} requests"));
    }
}

/// Returns ab's error message for the failed request that ended the load.
fn failure_message(failure: RequestFailure) -> &'static str {
    match failure {
        RequestFailure::Connect => "apr_socket_recv: Connection refused (111)",
        RequestFailure::Timeout => "apr_pollset_poll: The timeout specified has expired (70007)",
        RequestFailure::Tls => "SSL handshake failed (5)",
        RequestFailure::ClosedEarly => "apr_socket_recv: End of file found (70014)",
        RequestFailure::Protocol => "apr_socket_recv: the response is not HTTP",
        _ => "apr_socket_recv: Connection reset by peer (104)",
    }
}

/// Formats a response as `ab -v` prints it.
fn format_verbose_response(answer: &AuthorResponse, verbosity: u32) -> String {
    let head = String::from_utf8_lossy(answer.head).replace('\r', "");
    let mut text = format!("LOG: header received:\n{head}");
    if verbosity >= 4 {
        text += &String::from_utf8_lossy(answer.content);
    }
    text += "\n";
    match answer.status {
        200..300 if verbosity >= 3 => text + &format!("LOG: Response code = {}\n", answer.status),
        200..300 => text,
        status => text + &format!("WARNING: Response code not 2xx ({status})\n"),
    }
}
