//! `plimsoll demo`: the search for the load line of a server with a known cost, and what to do next. The server is a
//! process of its own, so that it is seen as any other would be.

use super::find;
use crate::args::DemoArgs;
use crate::asking;
use crate::failure::Failure;
use crate::live::Live;
use crate::output::print;
use crate::quantity::positive_time;
use crate::subject::Helper;
use crate::target::{Url, system_text};
use plimsoll_analysis::Slo;
use plimsoll_model::{
    Arrivals, Carriage, Curve, FindAsked, Load, LoadShape, Origin, Plan, Request, Route, Terms, Traffic,
};
use std::net::Ipv4Addr;

/// What the flags ask for; the port is that of the server, once it runs.
pub fn asked(args: &DemoArgs) -> Result<(FindAsked<Plan>, Terms<String>), Failure> {
    let origin = Origin { scheme: "http".into(), host: Ipv4Addr::LOCALHOST.to_string(), port: 0 };
    let budget_ns = positive_time("--budget", &args.budget)?;
    let request = Request { target: "/burn/100".into(), ..Request::get() };
    let mut load = Load::new(LoadShape::Closed { users: Curve::constant(1.0) });
    load.seed = args.seed.unwrap_or_else(asking::fresh_seed);
    let traffic = Traffic::one(origin, Route::new(request));
    let base = Plan { traffic, load, carriage: Carriage::tcp(Vec::new()) };
    let output = asking::output(&args.out, None)?;
    let terms = Terms { demo: true, output, ..Terms::default() };
    let (slo, arrivals) = (Slo::default().to_string(), Arrivals::Constant);
    Ok((FindAsked { base, slo, budget_ns, max_rate: None, arrivals, first_answer_ns: 0, profiles: None }, terms))
}

/// Starts the server, searches, and says with which code to end.
pub fn carry_out(mut asked: FindAsked<Plan>, terms: &Terms<String>) -> Result<u8, Failure> {
    let cannot =
        |e: std::io::Error| Failure::start(format!("the demo's server could not be started: {}", system_text(&e)));
    let program = std::env::current_exe().map_err(cannot)?;
    let server = Helper::start(&program, &["baseline", "--listen", "127.0.0.1:0", "--threads", "1"]).map_err(cannot)?;
    asked.base.traffic.origin = Url::read(server.said())?.origin;
    let path = asked.base.traffic.routes.first().map_or("/", |route| route.request.target.as_str());
    let url = format!("{}{path}", server.said());
    let mut live = Live::new(terms.output.quiet);
    live.line(&format!(
        "a server on one thread at {url}: each request takes 100 us of its CPU, so it can answer just under 10 000 a second"
    ));
    let code = find::carry_out(asked, terms)?;
    server.end().map_err(|e| Failure::start(format!("the demo's server did not end well: {}", system_text(&e))))?;
    if !terms.output.json {
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
