//! Servers whose capacity is known by construction, and (with [`start_faulty_server`]) servers that
//! break the rules of HTTP.
//!
//! Each server runs on one thread of this process, on a free port of the loopback interface, until
//! its [`RunningServer`] value is dropped. Each server also responds to `/stats` with its counts;
//! requests to `/stats` are not counted.

use crate::event_loop::{Counts, LoopThread, Request, Service, Stats, Step, Steps, reply};
use crate::faults::{Fault, FaultyServer};
use plimsoll_model::rng::Rng;
use plimsoll_sys::clock;
use plimsoll_sys::tcp::ReservedPort;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A running server; dropping this value stops it.
pub struct RunningServer {
    /// The address on which the server listens.
    pub address: SocketAddr,
    description: String,
    port_use: PortUse,
}

enum PortUse {
    Loop(LoopThread),
    /// No server listens on the port, so connections are refused. The port is only reserved.
    Closed {
        _port: ReservedPort,
    },
}

impl RunningServer {
    fn start(description: String, service: impl Service) -> io::Result<RunningServer> {
        let thread = LoopThread::start(service)?;
        Ok(RunningServer { address: thread.address, description, port_use: PortUse::Loop(thread) })
    }

    /// Returns the URL of `path` (which begins with a slash) on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns a description of the server in one line.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the counts of the server so far.
    pub fn stats(&self) -> Stats {
        match &self.port_use {
            PortUse::Loop(thread) => thread.stats(),
            PortUse::Closed { .. } => Stats { requests: 0, connections: 0, special: 0, cpu_s: 0.0, busy_s: 0.0 },
        }
    }
}

/// Starts a server that responds at once and never sleeps, so that clients never wait for its
/// thread to wake up. If the server has a core to itself, it is faster than any client that runs on
/// one other core. The response to `/json` is [`JSON_BYTES`] bytes of JSON, whose last key is
/// `token`.
pub fn start_instant_server() -> io::Result<RunningServer> {
    let items = (0..)
        .map(|number| format!("{{\"id\":{number},\"name\":\"item {number}\",\"tags\":[\"a\",\"b\"],\"price\":9.75}}"));
    let (mut body, end) = (String::from("{\"items\":["), "],\"token\":\"t0k-4f1c9e7a\"}");
    for item in items {
        if body.len() + item.len() + 1 + end.len() > JSON_BYTES {
            break;
        }
        let comma = if body.ends_with('[') { "" } else { "," };
        body = body + comma + &item;
    }
    // White space fills the JSON up to its size.
    body = format!("{body}{:width$}{end}", "", width = JSON_BYTES - body.len() - end.len());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    // The encoded response lives as long as the program, so that no request allocates memory.
    let json = (head + &body).into_bytes().leak();
    RunningServer::start("answers at once and never sleeps".to_owned(), InstantServer { json })
}

/// Starts a server with one thread that spends exactly `us` microseconds of CPU time on each
/// request, including the work of the HTTP exchange. The capacity is 1 000 000 / `us` a second
/// while the thread has a core to itself (compare `cpu_s` and `busy_s` of its [`Stats`]). Requests
/// queue in the sockets, first come, first served.
pub fn start_exact_cpu_server(us: u64) -> io::Result<RunningServer> {
    RunningServer::start(format!("{us} us of CPU time a request on one thread"), ExactCpu::new(us * 1000))
}

/// Starts a server with a bucket of `burst` tokens, refilled at `rate` tokens a second. The server
/// responds at once, with 200 while a token is left, otherwise with 429.
pub fn start_token_bucket_server(rate: f64, burst: f64) -> io::Result<RunningServer> {
    let bucket = TokenBucket { rate_per_ns: rate / 1e9, burst, tokens: burst, refilled_at_ns: clock::monotonic_ns() };
    RunningServer::start(format!("200 for {rate} requests a second and bursts of {burst}, 429 beyond"), bucket)
}

/// Starts a server with `count` slots that hold a request for `service_ms` each, without CPU time,
/// behind one unlimited queue. The capacity is 1000 * `count` / `service_ms` a second.
pub fn start_slots_server(count: usize, service_ms: f64) -> io::Result<RunningServer> {
    let queue = Queue::new(count, (service_ms * 1e6) as u64);
    RunningServer::start(format!("{count} slots of {service_ms} ms"), queue)
}

/// Starts a server with one slot that holds a request for `us` microseconds without CPU time,
/// behind an unlimited queue. The capacity is 1 000 000 / `us` a second. At a higher rate no
/// request fails, but response times grow without bound.
pub fn start_deep_queue_server(us: u64) -> io::Result<RunningServer> {
    RunningServer::start(format!("{us} us a request behind a queue without end"), Queue::new(1, us * 1000))
}

/// Starts a server with `count` slots behind one queue (M/M/k under random arrivals). Service times
/// are exponentially distributed with a mean of `us` microseconds. Equal seeds give equal service
/// times.
pub fn start_random_service_server(count: usize, us: u64, seed: u64) -> io::Result<RunningServer> {
    let mut queue = Queue::new(count, us * 1000);
    queue.service_time_rng = Some(Rng::new(seed));
    RunningServer::start(format!("{count} slots of {us} us on average, at random"), queue)
}

/// Starts a server that responds at once, but whose whole thread stalls in the last `stall_ms` of
/// every `every_ms` milliseconds.
pub fn start_periodic_stall_server(stall_ms: u64, every_ms: u64) -> io::Result<RunningServer> {
    let stall = PeriodicStallServer {
        start_ns: clock::monotonic_ns(),
        stall_ns: stall_ms * 1_000_000,
        every_ns: every_ms.max(stall_ms).max(1) * 1_000_000,
    };
    RunningServer::start(format!("stands still for {stall_ms} ms in every {every_ms} ms"), stall)
}

/// Starts a server that responds at once, but stalls for a random time of `from_ms` to `to_ms`
/// after every `gap_ms` of work. With `random`, the gaps are exponentially distributed with mean
/// `gap_ms`. Equal seeds give equal stalls.
pub fn start_varying_stalls_server(
    from_ms: u64,
    to_ms: u64,
    gap_ms: u64,
    random: bool,
    seed: u64,
) -> io::Result<RunningServer> {
    let between = if random { "at random after a mean of" } else { "after every" };
    let description = format!("stands still for {from_ms} to {to_ms} ms {between} {gap_ms} ms");
    let mut stalls = VaryingStallsServer {
        stall_min_ms: from_ms,
        stall_max_ms: to_ms.max(from_ms),
        gap_ms,
        random,
        rng: Rng::new(seed),
        next_stall_ns: 0,
    };
    stalls.next_stall_ns = clock::monotonic_ns() + stalls.gap_ns();
    RunningServer::start(description, stalls)
}

/// Starts a server like [`start_exact_cpu_server`] whose CPU time for each request alternates
/// between `us_fast` and `us_slow` microseconds. Each phase lasts for the time `switch`, the fast
/// phase first.
pub fn start_alternating_cost_server(us_fast: u64, us_slow: u64, switch: Duration) -> io::Result<RunningServer> {
    let description = format!("{us_fast} us and {us_slow} us of CPU time a request, in turn every {switch:?}");
    let regimes = AlternatingCostServer {
        cpu: ExactCpu::new(0),
        cost_ns: [us_fast * 1000, us_slow * 1000],
        switch_ns: (switch.as_nanos() as u64).max(1),
        start_ns: clock::monotonic_ns(),
    };
    RunningServer::start(description, regimes)
}

/// Starts a server that applies `fault` to every `every`-th request, and responds to the other
/// requests correctly. A fault that affects connections applies to every `every`-th connection. If
/// `every` is 0 or 1, the fault applies to each request or connection.
pub fn start_faulty_server(fault: Fault, every: u64) -> io::Result<RunningServer> {
    let description = match every {
        0 | 1 => fault.description(),
        _ => format!("{}, every {every} times", fault.description()),
    };
    if fault == Fault::Refuses {
        let port = ReservedPort::bind(&SocketAddr::from(([127, 0, 0, 1], 0)))?;
        return Ok(RunningServer { address: port.address(), description, port_use: PortUse::Closed { _port: port } });
    }
    RunningServer::start(description, FaultyServer::new(fault, every))
}

const OK_BODY: &str = "ok";
/// The length of the JSON that [`start_instant_server`] serves, bytes.
pub const JSON_BYTES: usize = 1024;

struct InstantServer {
    /// The complete reply to `/json`.
    json: &'static [u8],
}

impl Service for InstantServer {
    fn polls_without_sleep(&self) -> bool {
        true
    }

    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, _: &mut Counts) {
        if request.is_head || request.close {
            steps.extend(reply(request, "200 OK", OK_BODY));
        } else if request.target == "/json" {
            steps.push_back(Step::Send(self.json.into()));
        } else {
            steps.push_back(Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..].into()));
        }
    }
}

struct ExactCpu {
    cost_ns: u64,
    /// The sum of the CPU costs of all requests so far, on this thread's CPU clock, ns.
    due_ns: u64,
}

impl ExactCpu {
    fn new(cost_ns: u64) -> ExactCpu {
        ExactCpu { cost_ns, due_ns: 0 }
    }

    /// Burns CPU time until the thread has used the cost of one more request. The CPU time since
    /// the last burn counts towards the cost of this request: sending the last response, waiting
    /// for events, reading this request. CPU time beyond the cost of one request (such as accepting
    /// many connections) is dropped, so that no deficit accumulates. An overshoot by the clock's
    /// resolution counts towards the next request.
    fn burn(&mut self) {
        let mut used_ns = clock::thread_cpu_ns();
        self.due_ns += self.cost_ns;
        if used_ns > self.due_ns {
            self.due_ns = used_ns;
        }
        while used_ns < self.due_ns {
            std::hint::spin_loop();
            used_ns = clock::thread_cpu_ns();
        }
    }
}

impl Service for ExactCpu {
    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, _: &mut Counts) {
        self.burn();
        steps.extend(reply(request, "200 OK", OK_BODY));
    }
}

struct TokenBucket {
    rate_per_ns: f64,
    burst: f64,
    tokens: f64,
    refilled_at_ns: u64,
}

impl Service for TokenBucket {
    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, counts: &mut Counts) {
        let now_ns = clock::monotonic_ns();
        self.tokens = self.burst.min(self.tokens + (now_ns - self.refilled_at_ns) as f64 * self.rate_per_ns);
        self.refilled_at_ns = now_ns;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            steps.extend(reply(request, "200 OK", OK_BODY));
        } else {
            counts.special += 1;
            steps.extend(reply(request, "429 Too Many Requests", "later"));
        }
    }
}

/// A first-come, first-served queue that is computed in advance. When a request arrives, the queue
/// already knows the time at which a slot finishes the request. A late wake-up of this thread
/// therefore delays one response, but never the queue.
struct Queue {
    service_ns: u64,
    /// The generator of exponential service times; `None` if all service times are equal.
    service_time_rng: Option<Rng>,
    /// The time at which each slot becomes free, ns.
    slot_free_at_ns: BinaryHeap<Reverse<u64>>,
}

impl Queue {
    fn new(count: usize, service_ns: u64) -> Queue {
        Queue { service_ns, service_time_rng: None, slot_free_at_ns: (0..count.max(1)).map(|_| Reverse(0)).collect() }
    }

    fn completion_time_ns(&mut self, now_ns: u64) -> u64 {
        let Reverse(free_ns) = self.slot_free_at_ns.pop().unwrap_or(Reverse(0));
        let times = self.service_time_rng.as_mut().map_or(1.0, Rng::exponential);
        let done_ns = free_ns.max(now_ns) + (self.service_ns as f64 * times) as u64;
        self.slot_free_at_ns.push(Reverse(done_ns));
        done_ns
    }
}

impl Service for Queue {
    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, _: &mut Counts) {
        steps.push_back(Step::PauseUntil(self.completion_time_ns(clock::monotonic_ns())));
        steps.extend(reply(request, "200 OK", OK_BODY));
    }
}

struct PeriodicStallServer {
    start_ns: u64,
    stall_ns: u64,
    every_ns: u64,
}

impl Service for PeriodicStallServer {
    fn before_loop_turn(&mut self) {
        let phase_ns = (clock::monotonic_ns() - self.start_ns) % self.every_ns;
        if phase_ns >= self.every_ns - self.stall_ns {
            std::thread::sleep(Duration::from_nanos(self.every_ns - phase_ns));
        }
    }

    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, _: &mut Counts) {
        steps.extend(reply(request, "200 OK", OK_BODY));
    }
}

struct VaryingStallsServer {
    stall_min_ms: u64,
    stall_max_ms: u64,
    gap_ms: u64,
    random: bool,
    rng: Rng,
    next_stall_ns: u64,
}

impl VaryingStallsServer {
    fn gap_ns(&mut self) -> u64 {
        let times = if self.random { self.rng.exponential() } else { 1.0 };
        (self.gap_ms as f64 * times * 1e6) as u64
    }
}

impl Service for VaryingStallsServer {
    fn before_loop_turn(&mut self) {
        // The times of stalls do not depend on requests. A stall that would already be over is
        // skipped.
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns < self.next_stall_ns {
                return;
            }
            let length_ms =
                self.stall_min_ms as f64 + (self.stall_max_ms - self.stall_min_ms) as f64 * self.rng.next_f64();
            let end_ns = self.next_stall_ns + (length_ms * 1e6) as u64;
            self.next_stall_ns = end_ns + self.gap_ns();
            std::thread::sleep(Duration::from_nanos(end_ns.saturating_sub(now_ns)));
        }
    }

    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, _: &mut Counts) {
        steps.extend(reply(request, "200 OK", OK_BODY));
    }
}

struct AlternatingCostServer {
    cpu: ExactCpu,
    cost_ns: [u64; 2],
    switch_ns: u64,
    start_ns: u64,
}

impl Service for AlternatingCostServer {
    fn answer(&mut self, request: &Request<'_>, steps: &mut Steps, counts: &mut Counts) {
        let turn = (clock::monotonic_ns() - self.start_ns) / self.switch_ns % 2;
        self.cpu.cost_ns = self.cost_ns[turn as usize];
        self.cpu.answer(request, steps, counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_serves_in_order_and_never_more_than_its_slots() {
        let mut queue = Queue::new(2, 10);
        let done: Vec<u64> = [0, 0, 0, 1, 100, 101, 102].into_iter().map(|now| queue.completion_time_ns(now)).collect();
        assert_eq!(done, [10, 10, 20, 20, 110, 111, 120]);
    }
}
