//! Runs one server of this crate in its own process: `bench-server KIND [ARGS]`.
//!
//! The first line of stdout is the server's address. The server runs until it is killed or its
//! stdin ends, so it cannot outlive the script that started it.

use plimsoll_bench::Fault;
use plimsoll_bench::servers::{self, RunningServer};
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
bench-server KIND [ARGS]: a server of known behaviour on a free loopback port, until stdin ends

  instant                    answers at once and never sleeps
  exact-cpu US               US microseconds of CPU time a request, on one thread
  token-bucket RATE BURST    200 within RATE a second and bursts of BURST, 429 beyond
  slots N MS                 N slots of MS milliseconds, one queue
  random N US SEED           N slots of US microseconds on average, exponential, one queue
  deep-queue US              one slot of US microseconds behind a queue without end
  stall MS EVERY_MS          stands still for MS milliseconds in every EVERY_MS
  stalls FROM_MS TO_MS GAP_MS fixed|random SEED
                             stands still for FROM_MS to TO_MS after every GAP_MS, or at random
  regimes US US SWITCH_MS    two costs a request in CPU time, in turn
  misbehave FAULT [EVERY]    ill-treats every request, or every EVERY-th; FAULT is one of
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(started) = start(&words) else {
        let faults: String = Fault::all().map(|f| format!("    {:<18} {}\n", f.name(), f.description())).collect();
        return exit_code_ignoring_write_error(io::stderr().write_all(format!("{USAGE}{faults}").as_bytes()), 2);
    };
    match started.and_then(|running| serve(&running)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit_code_ignoring_write_error(writeln!(io::stderr(), "bench-server: {error}"), 1),
    }
}

fn exit_code_ignoring_write_error(_written: io::Result<()>, code: u8) -> ExitCode {
    ExitCode::from(code)
}

/// Starts the server that the arguments name; `None` if they name no server.
fn start(words: &[&str]) -> Option<io::Result<RunningServer>> {
    fn parse_number<T: std::str::FromStr>(word: &str) -> Option<T> {
        word.parse().ok()
    }
    Some(match words {
        ["instant"] => servers::start_instant_server(),
        ["exact-cpu", us] => servers::start_exact_cpu_server(parse_number(us)?),
        ["token-bucket", rate, burst] => servers::start_token_bucket_server(parse_number(rate)?, parse_number(burst)?),
        ["slots", count, ms] => servers::start_slots_server(parse_number(count)?, parse_number(ms)?),
        ["random", count, us, seed] => {
            servers::start_random_service_server(parse_number(count)?, parse_number(us)?, parse_number(seed)?)
        }
        ["deep-queue", us] => servers::start_deep_queue_server(parse_number(us)?),
        ["stall", ms, every_ms] => servers::start_periodic_stall_server(parse_number(ms)?, parse_number(every_ms)?),
        ["stalls", from_ms, to_ms, gap_ms, kind @ ("fixed" | "random"), seed] => servers::start_varying_stalls_server(
            parse_number(from_ms)?,
            parse_number(to_ms)?,
            parse_number(gap_ms)?,
            *kind == "random",
            parse_number(seed)?,
        ),
        ["regimes", fast, slow, ms] => servers::start_alternating_cost_server(
            parse_number(fast)?,
            parse_number(slow)?,
            Duration::from_millis(parse_number(ms)?),
        ),
        ["misbehave", fault] => servers::start_faulty_server(Fault::from_name(fault)?, 1),
        ["misbehave", fault, every] => servers::start_faulty_server(Fault::from_name(fault)?, parse_number(every)?),
        _ => return None,
    })
}

fn serve(running: &RunningServer) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", running.address)?;
    stdout.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
