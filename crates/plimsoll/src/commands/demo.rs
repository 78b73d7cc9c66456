//! `plimsoll demo`: the search for the load line of a server with a known cost, and what to do next. The server is a
//! process of its own, so that it is seen as any other would be.

use super::find;
use crate::args::{ConnectionArgs, DemoArgs, FindArgs, GeneratorArgs, PprofArgs, ProbeArgs, RequestArgs};
use crate::failure::Failure;
use crate::live::Live;
use crate::output::print;
use crate::subject::Helper;
use crate::target::system_text;
use plimsoll_analysis::Slo;
use plimsoll_model::units::parse_duration_ns;
use plimsoll_model::{Redact, Spin};

/// Starts the server, searches, and says with which code to end.
pub fn run(args: &DemoArgs) -> Result<u8, Failure> {
    parse_duration_ns(&args.budget).map_err(|e| Failure::usage(format!("--budget: {e}")))?;
    let cannot =
        |e: std::io::Error| Failure::start(format!("the demo's server could not be started: {}", system_text(&e)));
    let program = std::env::current_exe().map_err(cannot)?;
    let server = Helper::start(&program, &["baseline", "--listen", "127.0.0.1:0", "--threads", "1"]).map_err(cannot)?;
    let url = format!("{}/burn/100", server.said());
    let mut live = Live::new(args.out.quiet);
    live.line(&format!(
        "a server on one thread at {url}: each request takes 100 us of its CPU, so it can answer just under 10 000 a second"
    ));
    let code = find::run(&FindArgs {
        request: RequestArgs {
            connection: ConnectionArgs::default(),
            url: Some(url),
            file: None,
            target: None,
            method: None,
            headers: Vec::new(),
            body: None,
            timeout: "30s".into(),
            ok_status: "100-399".into(),
            no_keepalive: false,
            max_connections: None,
            no_preflight: false,
            allow_public: false,
            redact: Redact::Secrets,
        },
        slo: Slo::default().to_string(),
        budget: args.budget.clone(),
        max_rate: None,
        generator: GeneratorArgs { threads: None, spin: Spin::Auto, seed: args.seed, arrivals: None },
        probes: ProbeArgs::default(),
        fail_if: None,
        profiles: PprofArgs { pprof: None, pprof_seconds: 1 },
        output: None,
        out: args.out.clone(),
    })?;
    server.end().map_err(|e| Failure::start(format!("the demo's server did not end well: {}", system_text(&e))))?;
    if !args.out.json {
        print(
            "\nNow your own server:\n  \
             plimsoll http://localhost:8080/                          its load line\n  \
             plimsoll find --slo 'success>=99.9%, p99<=50ms' URL      under another promise\n  \
             plimsoll run -c 64 -d 10s URL                            one load, all figures\n  \
             plimsoll sweep -c 1,2,4,8,16,32 --for 5s URL             a table over concurrency\n",
        );
    }
    Ok(code)
}
