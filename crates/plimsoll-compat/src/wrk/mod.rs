//! `plimsoll wrk`, and this program called as `wrk` or `wrk2`: their command line, their scripts
//! and their output over a load of plimsoll's own. A wrk line becomes a line of `run` (one
//! interpretation, one record), its script the traffic of that load.
//!
//! Not here: the contract of scripts (`plimsoll_script`), how a load is carried out.

mod batches;
mod render;
mod units;
mod words;

use crate::output;
use crate::run_verb::RunVerb;
use batches::Batches;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_script::Dialect;
use plimsoll_script::run_figures::RunFigures;
use plimsoll_wire::AuthorFactory;
use render::{Distribution, WrkReport, announced, render};
use std::io::IsTerminal;
use std::sync::Arc;
use words::{WrkOptions, WrkRefusal, parse};

/// Carries out what the words after the name ask for.
pub fn carry_out(words: &[String], dialect: Dialect, run: &dyn RunVerb) -> Result<u8, Failure> {
    let asked = match parse(words, dialect) {
        Ok(asked) => asked,
        Err(WrkRefusal(why)) => {
            if let Some(why) = why {
                output::note(&why);
            }
            output::print(usage(dialect));
            // As wrk does.
            return Ok(1);
        }
    };
    if asked.version {
        output::print(&format!("plimsoll {} (the command line of wrk)\n", env!("CARGO_PKG_VERSION")));
    }
    let (mut question, terms) = run.parse(&line_of_run(&asked))?;
    // All of them are kept open, also those that a rate would not need.
    question.plan.load.connections_ready = u32::try_from(asked.connections).unwrap_or(u32::MAX);
    let scripted = run.script(asked.url(), &question.plan, &terms)?;
    if let (false, Some(scripted)) = (asked.json, &scripted) {
        let url = plimsoll_traffic::target_url::typed(asked.url());
        scripted.announce(announced(asked.duration_ns, &url, asked.threads, asked.connections));
    }
    let author = scripted.as_ref().map(|script| script.author());
    let batches = author.clone().filter(|_| asked.batch_latency).map(Batches::new);
    let authoring = match &batches {
        Some(batches) => Some(batches.clone().shared()),
        None => author.map(|author| -> Arc<dyn AuthorFactory> { author }),
    };
    let measured = run.carry_out(question, &terms, authoring)?;
    let told = RunFigures::from_run(measured.run());
    let told = match batches {
        Some(batches) => batches.with_batches(told),
        None => told,
    };
    let print_results = measured.results()?;
    if asked.json {
        print_results(true, true);
    } else {
        scripted.iter().for_each(|script| script.flush());
        output::print(&text_of(&asked, &told));
    }
    let failed = scripted.and_then(|scripted| scripted.done(&told));
    if !asked.json && std::io::stdout().is_terminal() {
        // What wrk cannot say.
        output::print("\n");
        print_results(false, false);
    }
    let notes: Vec<String> = failed.iter().map(|error| format!("plimsoll: the script failed: {error}")).collect();
    drop(print_results);
    measured.end(&notes);
    // As wrk: figures are no failure, also where ^C has ended the load.
    Ok(if failed.is_some() { exit::CROSSED } else { exit::DONE })
}

/// The same as a line of `run`.
fn line_of_run(asked: &WrkOptions) -> Vec<String> {
    let ms = |ns: u64| format!("{}ms", ns / 1_000_000);
    let mut line = Vec::new();
    let mut add = |flag: &str, value: &str| line.push(format!("{flag}={value}"));
    add("--lua", asked.script.as_deref().unwrap_or_default());
    add("--duration", &ms(asked.duration_ns));
    add("--timeout", &ms(asked.timeout_ns));
    add("--threads", &asked.threads.to_string());
    match asked.rate {
        Some(rate) => {
            add("--rate", &rate.to_string());
            add("--max-connections", &asked.connections.to_string());
        }
        None => add("--concurrency", &asked.connections.to_string()),
    }
    asked.headers.iter().for_each(|(name, value)| add("--header", &format!("{name}: {value}")));
    asked.output.iter().for_each(|path| add("--output", path));
    line.push("--quiet".to_owned());
    // wrk verifies no certificate.
    if asked.url().starts_with("https://") {
        line.push("--insecure".to_owned());
    }
    if asked.json {
        line.push("--json".to_owned());
    }
    if asked.allow_public {
        line.push("--allow-public".to_owned());
    }
    line.extend([asked.url().to_owned(), "--".to_owned()]);
    line.extend(asked.words[1..].iter().cloned());
    line
}

/// What wrk prints of a run.
fn text_of(asked: &WrkOptions, told: &RunFigures) -> String {
    let distribution = match (asked.latency, asked.dialect) {
        (false, _) => Distribution::Hidden,
        (true, Dialect::Wrk) => Distribution::Short,
        (true, Dialect::Wrk2) => Distribution::Full { uncorrected_us: asked.u_latency.then_some(&told.service_us) },
    };
    let latency_us = told.latency_us();
    render(&WrkReport { summary: &told.summary, latency_us, requests: &told.requests, distribution })
}

fn usage(dialect: Dialect) -> &'static str {
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
