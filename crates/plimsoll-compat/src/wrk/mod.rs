//! The command `plimsoll wrk`, which also runs if the executable is called under the name `wrk` or
//! `wrk2`. The command emulates wrk's command line, scripts and output. The command line of wrk
//! becomes arguments of `run`, and the wrk script writes the requests of the load.
//!
//! Not here: the script API (`plimsoll_script`), and executing the load.

mod batches;
mod options;
mod render;
mod units;

use crate::output;
use crate::run_command::RunCommand;
use batches::BatchTimingFactory;
use options::{WrkOptions, WrkRefusal, parse};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_script::Dialect;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_wire::AuthorFactory;
use render::{LatencyDistribution, WrkReport, opening_lines, render};
use std::io::IsTerminal;
use std::sync::Arc;

/// Runs the command line of wrk or wrk2, which is given without the program's name. Returns the
/// exit code.
pub fn run_wrk_command(words: &[String], dialect: Dialect, run: &dyn RunCommand) -> Result<u8, Failure> {
    let asked = match parse(words, dialect) {
        Ok(asked) => asked,
        Err(WrkRefusal(why)) => {
            if let Some(why) = why {
                output::print_to_stderr(&why);
            }
            output::print(usage_text(dialect));
            // As in wrk, a usage error gives the exit code 1.
            return Ok(1);
        }
    };
    if asked.shows_version {
        output::print(&format!("plimsoll {version} (the command line of wrk)\n", version = env!("CARGO_PKG_VERSION")));
    }
    let (mut question, settings) = run.parse(&run_arguments(&asked))?;
    // As in wrk, all connections are opened before the load and stay open, even connections that
    // the rate does not need.
    question.plan.load.connections_ready = u32::try_from(asked.connections).unwrap_or(u32::MAX);
    if asked.json {
        // With JSON output, a script's own output goes to standard error, so that standard output
        // has only the JSON document.
        plimsoll_sys::stdout::reserve_stdout();
    }
    let scripted = run.script(asked.url(), &question.plan, &settings)?;
    if let (false, Some(scripted)) = (asked.json, &scripted) {
        let url = plimsoll_traffic::target_url::redact_for_terminal(asked.url());
        scripted.set_announcement(opening_lines(asked.duration_ns, &url, asked.threads, asked.connections));
    }
    let author = scripted.as_ref().map(|script| script.author_factory());
    let batches = author.clone().filter(|_| asked.measures_batch_latency).map(BatchTimingFactory::new);
    let authoring = match &batches {
        Some(batches) => Some(batches.clone().into_factory()),
        None => author.map(|author| -> Arc<dyn AuthorFactory> { author }),
    };
    let measured = run.execute_load(question, &settings, authoring)?;
    let told = RunFigures::from_run(measured.run());
    let told = match batches {
        Some(batches) => batches.with_batch_latencies(told),
        None => told,
    };
    let print_results = measured.build_results_printer()?;
    if asked.json {
        print_results(true, true);
    } else {
        scripted.iter().for_each(|script| script.flush());
        output::print(&format_report(&asked, &told));
    }
    let failed = scripted.and_then(|scripted| scripted.call_done(&told));
    if !asked.json && std::io::stdout().is_terminal() {
        // On a terminal, plimsoll's own results are printed below wrk's output, because wrk's
        // format has no fields for these results.
        output::print("\n");
        print_results(false, false);
    }
    let notes: Vec<String> = failed.iter().map(|error| format!("plimsoll: the script failed: {error}")).collect();
    drop(print_results);
    measured.write_notes(&notes);
    // As in wrk, the exit code is 0 even if requests failed or ^C ended the load. Only a failed
    // script changes the exit code.
    Ok(if failed.is_some() { exit::NEGATIVE_RESULT } else { exit::SUCCESS })
}

/// Returns the equivalent arguments of `plimsoll run`.
fn run_arguments(options: &WrkOptions) -> Vec<String> {
    let ms = |ns: u64| format!("{}ms", ns / 1_000_000);
    let mut line = Vec::new();
    let mut add = |flag: &str, value: &str| line.push(format!("{flag}={value}"));
    add("--lua", options.script.as_deref().unwrap_or_default());
    add("--duration", &ms(options.duration_ns));
    add("--timeout", &ms(options.timeout_ns));
    add("--threads", &options.threads.to_string());
    match options.rate_rps {
        Some(rate) => {
            add("--rate", &rate.to_string());
            add("--max-connections", &options.connections.to_string());
        }
        None => add("--concurrency", &options.connections.to_string()),
    }
    options.headers.iter().for_each(|(name, value)| add("--header", &format!("{name}: {value}")));
    options.output.iter().for_each(|path| add("--output", path));
    line.push("--quiet".to_owned());
    // Certificates are not verified, because wrk does not verify them.
    if options.url().starts_with("https://") {
        line.push("--insecure".to_owned());
    }
    if options.json {
        line.push("--json".to_owned());
    }
    if options.allow_public {
        line.push("--allow-public".to_owned());
    }
    line.extend([options.url().to_owned(), "--".to_owned()]);
    line.extend(options.url_and_arguments[1..].iter().cloned());
    line
}

/// Formats the text that wrk prints after a load.
fn format_report(options: &WrkOptions, figures: &RunFigures) -> String {
    let distribution = match (options.shows_latency, options.dialect) {
        (false, _) => LatencyDistribution::Hidden,
        (true, Dialect::Wrk) => LatencyDistribution::Short,
        (true, Dialect::Wrk2) => {
            LatencyDistribution::Full { uncorrected_us: options.shows_service_latency.then_some(&figures.service_us) }
        }
    };
    let latency_us = figures.latency_us();
    render(&WrkReport { summary: &figures.summary, latency_us, thread_rps: &figures.requests, distribution })
}

fn usage_text(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Wrk => {
            "Usage: wrk <options> <url>
  Options:
    -c, --connections <N>  Connections to keep open
    -d, --duration    <T>  Duration of test
    -t, --threads     <N>  Number of threads to use

    -s, --script      <S>  Load Lua script file
    -H, --header      <H>  Add header to request
        --latency          Print latency statistics
        --timeout     <T>  Socket/request timeout
    -v, --version          Print version details

    -o, --output      <F>  Keep the run in this file
        --json             Print plimsoll's results as JSON
        --allow-public     Load on addresses that are not private

  Numeric arguments may include a SI unit (1k, 1M, 1G)
  Time arguments may include a time unit (500ms, 2s, 2m, 2h)
"
        }
        Dialect::Wrk2 => {
            "Usage: wrk2 <options> <url>
  Options:
    -c, --connections <N>  Connections to keep open
    -d, --duration    <T>  Duration of test
    -t, --threads     <N>  Number of threads to use

    -s, --script      <S>  Load Lua script file
    -H, --header      <H>  Add header to request
    -L  --latency          Print latency statistics
    -U  --u_latency        Print uncorrected latency statistics
        --timeout     <T>  Socket/request timeout
    -B, --batch_latency    Measure latency of whole
                           batches of pipelined ops
                           (as opposed to each op)
    -v, --version          Print version details
    -R, --rate        <T>  work rate (throughput)
                           in requests/sec (total)
                           [Required Parameter]

    -o, --output      <F>  Keep the run in this file
        --json             Print plimsoll's results as JSON
        --allow-public     Load on addresses that are not private

  Numeric arguments may include a SI unit (1k, 1M, 1G)
  Time arguments may include a time unit (500ms, 2s, 2m, 2h)
"
        }
    }
}
