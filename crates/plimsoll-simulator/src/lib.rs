//! Servers of known capacity as queue models in virtual time. The simulated servers execute a
//! [`Plan`] and return a [`Run`] as the real engine would. Because the simulated servers return a
//! [`Run`], the tests use plimsoll's own verdicts, stop rules and search unchanged. The simulation
//! is a separate crate, so that the compiler optimises the simulation for speed in the tests of
//! plimsoll-analysis.
//!
//! Not here: sockets, engines, threads.

#![forbid(unsafe_code)]

use plimsoll_analysis::find::{SearchSettings, SearchStep};
use plimsoll_analysis::study::{self, History, StopRule, Study};
use plimsoll_analysis::{Findings, Slo, TrialOutcome, judge};
use plimsoll_model::rng::{Rng, mix_bits};
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{
    ArmIndex, ArrivalSpacing, ExperimentEvent, ExperimentSpec, Histogram, Interval, LoadCurve, LoadEnd, LoadFigures,
    LoadShape, Plan, PlanRecord, Probes, RouteFigures, Run, Schedule, Series, SeriesKind, SeriesSample, Stripe, Trial,
    WorkerTime,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A distribution of service times with mean 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ServiceTimeDistribution {
    /// All requests take the same time: `D` in Kendall's notation.
    Constant,
    /// Exponential service times: `M` in Kendall's notation.
    Exponential,
    /// Hyperexponential service times: two exponential phases with balanced means. The field is the
    /// squared coefficient of variation of the service times.
    Hyperexponential(f64),
    /// Lognormal service times, whose squared coefficient of variation is the field.
    Lognormal(f64),
    /// Requests have one of two service times. The first field is the share of slow requests, and
    /// the second field is the ratio of the slow to the fast service time.
    Bimodal(f64, f64),
}

impl ServiceTimeDistribution {
    /// Returns the probability of the first phase of a hyperexponential service time. The rate of
    /// the first phase is twice its probability. The rate of the second phase is twice the
    /// probability of the second phase.
    pub fn first_phase_probability(cv2: f64) -> f64 {
        0.5 * (1.0 + ((cv2 - 1.0) / (cv2 + 1.0)).sqrt())
    }

    fn draw_service_time(self, rng: &mut Rng) -> f64 {
        match self {
            ServiceTimeDistribution::Constant => 1.0,
            ServiceTimeDistribution::Exponential => rng.exponential(),
            ServiceTimeDistribution::Hyperexponential(cv2) => {
                let first = ServiceTimeDistribution::first_phase_probability(cv2);
                let phase = if rng.next_f64() < first { first } else { 1.0 - first };
                rng.exponential() / (2.0 * phase)
            }
            ServiceTimeDistribution::Lognormal(cv2) => {
                let variance = (1.0 + cv2).ln();
                let normal =
                    (-2.0 * (1.0 - rng.next_f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.next_f64()).cos();
                (normal * variance.sqrt() - variance / 2.0).exp()
            }
            ServiceTimeDistribution::Bimodal(share, times) => {
                let short = 1.0 / (1.0 - share + share * times);
                if rng.next_f64() < share { short * times } else { short }
            }
        }
    }
}

/// The kind of a simulated server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ServerKind {
    /// A queue with the given service times and the given number of servers. A search of this queue
    /// has the default SLO and Poisson arrivals.
    Queue(ServiceTimeDistribution, usize),
    /// One server with exponential service times and Poisson arrivals. The SLO's latency bound is
    /// 20 times the mean service time.
    Mm1,
    /// The given number of servers with constant service times, and Poisson arrivals (M/D/c). The
    /// SLO's latency bound is 20 service times.
    Mdc(usize),
    /// A server with the given number of workers and constant service times. Arrivals are evenly
    /// spaced.
    Slots(usize),
    /// A rate limiter with a token bucket. The field is the time in which an empty token bucket
    /// fills at the nominal capacity, s.
    Limiter(f64),
    /// A rate limiter with a token bucket. The field is the number of tokens in a full token
    /// bucket. Arrivals are random (Poisson).
    Bucket(f64),
    /// One server whose queue never rejects requests. Arrivals are evenly spaced.
    DeepQueue,
    /// In each trial the server has one of two capacities at random: the nominal capacity, or the
    /// nominal capacity multiplied by the field.
    Regimes(f64),
    /// A queue without rejections, whose capacity is multiplied by the field in every trial that
    /// begins at 12 s or later. At 12 s the climb (the first phase of a search, with rising rates)
    /// has ended.
    Changes(f64),
    /// A queue without rejections, whose server stalls from time to time.
    Stalls(StallPattern),
    /// M/M/1 with a capacity that depends on the past requests or on time.
    Ages(CapacityDrift),
    /// A server with a quota: in every time window the server accepts a limited number of requests,
    /// and refuses all further requests. The first field is the number of requests in a time
    /// window, and the second field is the length of a window, s.
    Quota(f64, f64),
}

/// How the capacity of a server changes with time or with the number of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CapacityDrift {
    /// A server with burst credit. The first field is the number of requests after which the
    /// capacity falls. The second field is the lowered capacity, as a share of the nominal
    /// capacity.
    Credit(f64, f64),
    /// A server with autoscaling. The first field is the time, in s, after which the capacity is
    /// multiplied by the second field.
    Scales(f64, f64),
    /// A server with a cache that fills, so that its capacity rises exponentially. The first field
    /// is the time constant of the rise, as a number of requests. The second field is the capacity
    /// at the start, as a share of the nominal capacity.
    Warms(f64, f64),
    /// A server with a leak: its capacity falls with every request. The field is the number of
    /// requests after which half of the nominal capacity is left.
    Leaks(f64),
}

impl CapacityDrift {
    /// Returns the current capacity as a multiple of the nominal capacity, after `served` requests
    /// and at `now_s`.
    fn relative_capacity(self, served: f64, now_s: f64) -> f64 {
        match self {
            CapacityDrift::Credit(requests, share) => {
                if served < requests {
                    1.0
                } else {
                    share
                }
            }
            CapacityDrift::Scales(seconds, times) => {
                if now_s < seconds {
                    1.0
                } else {
                    times
                }
            }
            CapacityDrift::Warms(requests, from) => 1.0 - (1.0 - from) * (-served / requests).exp(),
            CapacityDrift::Leaks(requests) => 1.0 / (1.0 + served / requests),
        }
    }
}

/// How a server stalls: each stall has a random length between two bounds, and the server works
/// normally between two stalls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallPattern {
    /// The shortest stall, ms.
    pub from_ms: u64,
    /// The longest stall, ms.
    pub to_ms: u64,
    /// The time between two stalls, ms.
    pub gap_ms: u64,
    /// Whether the time between stalls is exponentially distributed, with `gap_ms` as its mean.
    pub is_exponential: bool,
}

/// Generates the stalls of a server one after another.
#[derive(Debug, Clone)]
struct StallGenerator {
    stalling: StallPattern,
    rng: Rng,
    next_ns: u64,
}

impl StallGenerator {
    fn new(stalling: StallPattern, seed: u64) -> StallGenerator {
        let mut rng = Rng::for_stream(seed, 5);
        let next_ns = rng.uniform_below(stalling.gap_ms * MS);
        StallGenerator { stalling, rng, next_ns }
    }

    fn next(&mut self) -> (u64, u64) {
        let StallPattern { from_ms, to_ms, gap_ms, is_exponential: random } = self.stalling;
        let start_ns = self.next_ns;
        let end_ns = start_ns + from_ms * MS + self.rng.uniform_below((to_ms - from_ms) * MS + 1);
        let gap = if random { self.rng.exponential() } else { 1.0 };
        self.next_ns = end_ns + (gap_ms as f64 * gap * 1e6) as u64;
        (start_ns, end_ns)
    }
}

/// Returns the load line of a server with the stalls of `stalling` and a queue without rejections,
/// as a share of the capacity. The load line is the highest utilisation at which 99 % of the
/// response times are at most 500 ms. Returns 0 if more than 1 % of the response times exceed 500
/// ms even at a utilisation of 2 %. The load line is found by bisection, with a long simulation of
/// the queued work at each utilisation.
fn stalled_line_share(stalling: StallPattern) -> f64 {
    const STEP_NS: u64 = 2 * MS;
    const SIMULATED_TIME_NS: u64 = 6 * 3600 * SECOND;
    let late = |share: f64| {
        let mut clockwork = StallGenerator::new(stalling, 99);
        let (mut from, mut to) = clockwork.next();
        // `work_ns` is the queued work. `bad` counts the requests that would wait longer than 500
        // ms, and `all` counts all requests.
        let (mut work_ns, mut bad, mut all) = (0.0, 0u64, 0u64);
        let mut at_ns = 0;
        while at_ns < SIMULATED_TIME_NS {
            let stalled = at_ns >= from && at_ns < to;
            let wait_ns = work_ns + if stalled { (to - at_ns) as f64 } else { 0.0 };
            bad += u64::from(wait_ns > 500e6);
            all += 1;
            work_ns += share * STEP_NS as f64;
            if !stalled {
                work_ns = (work_ns - STEP_NS as f64).max(0.0);
            }
            at_ns += STEP_NS;
            if at_ns >= to {
                (from, to) = clockwork.next();
            }
        }
        bad as f64 / all as f64
    };
    if late(0.02) > 0.01 {
        return 0.0;
    }
    let (mut low, mut high) = (0.02, 1.0);
    for _ in 0..9 {
        let middle = (low + high) / 2.0;
        if late(middle) <= 0.01 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The disturbances of a simulated machine.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// Share of the trials that are disturbed. A disturbed trial has its capacity multiplied by a
    /// random factor between 0.6 and 0.95, or has three stalls.
    pub disturbed: f64,
    /// Standard deviation of the capacity between trials, as a share of the nominal capacity.
    pub jitter: f64,
    /// Number of short stalls of 10 to 100 ms a second. Servers with a latency bound of few ms do
    /// not get short stalls.
    pub stalls_per_s: f64,
}

/// A simulated server, with the SLO and the arrivals of its search.
#[derive(Debug, Clone, Copy)]
pub struct ServerModel {
    /// The name of the model in messages and tables.
    pub name: &'static str,
    /// The queue model of the server.
    pub kind: ServerKind,
    /// Nominal capacity, requests a second.
    pub capacity: f64,
    /// The disturbances of the server.
    pub noise: Noise,
    /// The speed of the load generator, requests a second. The generator's worker thread is busy
    /// for 20 % of the time, plus the generated rate divided by `client_rps`.
    pub client_rps: f64,
}

impl ServerModel {
    /// Returns the standard models: three queues, a server with 32 workers, a rate limiter, a queue
    /// without rejections, and a server with two capacities.
    pub fn standard_models(noise: Noise) -> Vec<ServerModel> {
        let model = |name, kind, capacity| ServerModel { name, kind, capacity, noise, client_rps: f64::INFINITY };
        vec![
            model("M/M/1", ServerKind::Mm1, 12_000.0),
            model("M/D/1", ServerKind::Mdc(1), 12_000.0),
            model("M/D/4", ServerKind::Mdc(4), 14_000.0),
            model("N slots", ServerKind::Slots(32), 640.0),
            model("limiter", ServerKind::Limiter(1.5), 3_000.0),
            model("deep queue", ServerKind::DeepQueue, 5_000.0),
            model("two regimes", ServerKind::Regimes(1.25), 6_000.0),
        ]
    }

    /// Returns models of servers that stall. Some of the servers have a load line, because their
    /// stalls are short or rare enough; the other servers have none.
    pub fn stalling_models(noise: Noise) -> Vec<ServerModel> {
        let model = |name, from_ms, to_ms, gap_ms, random| ServerModel {
            name,
            kind: ServerKind::Stalls(StallPattern { from_ms, to_ms, gap_ms, is_exponential: random }),
            capacity: 2_000.0,
            noise,
            client_rps: f64::INFINITY,
        };
        vec![
            model("1/4-1 s, 1.2 s", 250, 1000, 1200, false),
            model("1 s, 4 s", 1000, 1000, 4000, false),
            model("0.8 s, random 3 s", 800, 800, 3000, true),
            model("0.7 s, 5 s", 700, 700, 5000, false),
            model("0.6-1.5 s, rand 4 s", 600, 1500, 4000, true),
            model("0.3 s, 2 s", 300, 300, 2000, false),
            model("0.1-0.4 s, rand 2 s", 100, 400, 2000, true),
            model("0.51 s, 60 s", 510, 510, 60_000, false),
            model("0.52 s, 5 s", 520, 520, 5_000, false),
        ]
    }

    /// Returns the model with a capacity that depends on the seed. The random capacity prevents the
    /// search from trying a rate that equals the capacity by chance.
    pub fn with_seeded_capacity(self, seed: u64) -> ServerModel {
        let spread = (Rng::for_stream(seed, 77).next_f64() - 0.5) * 0.4;
        let capacity = match self.kind {
            // The service time must be a whole number of us.
            ServerKind::Slots(n) => n as f64 * 1e6 / (n as f64 * 1e6 / (self.capacity * spread.exp())).round(),
            _ => self.capacity * spread.exp(),
        };
        ServerModel { capacity, ..self }
    }

    fn server_count(&self) -> usize {
        match self.kind {
            ServerKind::Mdc(c) | ServerKind::Slots(c) | ServerKind::Queue(_, c) => c,
            _ => 1,
        }
    }

    fn service_s(&self) -> f64 {
        self.server_count() as f64 / self.capacity
    }

    /// Returns the response time of the first request to an idle server, ns.
    pub fn idle_response_ns(&self) -> u64 {
        match self.kind {
            ServerKind::Limiter(_) | ServerKind::Bucket(_) | ServerKind::Quota(..) => MS,
            _ => (self.service_s() * 1e9) as u64,
        }
    }

    /// Returns the size of the rate limiter's token bucket; `None` for a server without a limiter.
    fn token_bucket_size(&self) -> Option<f64> {
        match self.kind {
            ServerKind::Limiter(seconds) => Some(self.capacity * seconds),
            ServerKind::Bucket(tokens) => Some(tokens),
            _ => None,
        }
    }

    /// Returns the SLO of the search.
    pub fn slo(&self) -> Slo {
        match self.kind {
            ServerKind::Mm1 | ServerKind::Mdc(_) => {
                let mut slo = Slo::default();
                slo.latency[0].bound_ns = (20.0 * self.service_s() * 1e9) as u64;
                slo
            }
            _ => Slo::default(),
        }
    }

    /// Returns the spacing of arrivals (Poisson or constant) in a search of this server.
    pub fn arrivals(&self) -> ArrivalSpacing {
        match self.kind {
            ServerKind::Mm1
            | ServerKind::Mdc(_)
            | ServerKind::Queue(..)
            | ServerKind::Ages(_)
            | ServerKind::Quota(..)
            | ServerKind::Bucket(_) => ArrivalSpacing::Poisson,
            _ => ArrivalSpacing::Constant,
        }
    }

    /// Returns the true load line as a share of the capacity. The true load line of `Mdc` and
    /// `Stalls` is found by a long simulation.
    pub fn true_line_share(&self) -> f64 {
        match self.kind {
            // In M/M/1, P(T > B) = exp(-(mu - lambda) B) for the response time T. With P = 1 % and
            // B = 20 / mu, the load line is 1 - ln(100) / 20 of the capacity mu.
            ServerKind::Mm1 => 1.0 - 100f64.ln() / 20.0,
            ServerKind::Mdc(c) => mdc_line_share(c),
            ServerKind::Stalls(stalling) => stalled_line_share(stalling),
            _ => 1.0,
        }
    }
}

/// Returns the highest utilisation of M/D/c at which 99 % of the response times are at most 20
/// service times.
fn mdc_line_share(c: usize) -> f64 {
    let (mut low, mut high) = (0.7, 1.0);
    for _ in 0..10 {
        let middle: f64 = (low + high) / 2.0;
        let mut rng = Rng::new(99);
        let mut free: BinaryHeap<Reverse<u64>> = (0..c).map(|_| Reverse(0)).collect();
        // The service time is 1 000 000 units of time on each of c servers.
        let gap = 1e6 / c as f64 / middle;
        let (mut now, mut slow) = (0.0, 0u64);
        let n = 1_500_000u64;
        for _ in 0..n {
            now += rng.exponential() * gap;
            let Reverse(at) = free.pop().expect("c servers");
            let done = at.max(now as u64) + 1_000_000;
            free.push(Reverse(done));
            slow += u64::from(done - now as u64 > 20_000_000);
        }
        if slow * 100 <= n { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The state of a simulated server. A search keeps the state from one trial to the next.
struct Server {
    model: ServerModel,
    rng: Rng,
    free_ns: BinaryHeap<Reverse<u64>>,
    tokens: f64,
    tokens_at_ns: u64,
    served: f64,
    /// The current capacity, as a multiple of the nominal capacity. The capacity changes with each
    /// trial; for a server of kind `Ages`, it changes with each request.
    capacity_factor: f64,
    /// The remaining stalls of this trial that come from disturbances: (start, end), ns.
    stalls: VecDeque<(u64, u64)>,
    /// For a server of kind `Stalls`: the generator of its own stalls, and the current or next
    /// stall as (start, end), ns.
    own_stalls: Option<(StallGenerator, (u64, u64))>,
}

impl Server {
    fn new(model: ServerModel, seed: u64) -> Server {
        let burst = model.token_bucket_size().unwrap_or(0.0);
        Server {
            model,
            rng: Rng::for_stream(seed, 1),
            free_ns: (0..model.server_count()).map(|_| Reverse(0)).collect(),
            tokens: burst,
            tokens_at_ns: 0,
            served: 0.0,
            capacity_factor: 1.0,
            stalls: VecDeque::new(),
            own_stalls: match model.kind {
                ServerKind::Stalls(stalling) => {
                    let mut clockwork = StallGenerator::new(stalling, seed);
                    let first = clockwork.next();
                    Some((clockwork, first))
                }
                _ => None,
            },
        }
    }

    /// Begins a trial of `length_ns`: draws the capacity of the trial at random, and the times of
    /// the stalls that disturbances cause.
    fn begin_trial(&mut self, now_ns: u64, length_ns: u64) {
        let normal = (0..12).map(|_| self.rng.next_f64()).sum::<f64>() - 6.0;
        self.capacity_factor = 1.0 + normal * self.model.noise.jitter;
        if let ServerKind::Regimes(faster) = self.model.kind
            && self.rng.next_f64() < 0.5
        {
            self.capacity_factor *= faster;
        }
        if let ServerKind::Changes(share) = self.model.kind
            && now_ns >= 12 * SECOND
        {
            self.capacity_factor *= share;
        }
        let mut stalls = Vec::new();
        let mut stall = |rng: &mut Rng, min_ms: u64, max_ms: u64| {
            let start = now_ns + rng.uniform_below(length_ns.max(1));
            stalls.push((start, start + (min_ms + rng.uniform_below(max_ms - min_ms)) * MS));
        };
        if self.rng.next_f64() < self.model.noise.disturbed {
            if self.rng.next_f64() < 0.7 {
                self.capacity_factor *= 0.6 + 0.35 * self.rng.next_f64();
            } else {
                (0..3).for_each(|_| stall(&mut self.rng, 100, 400));
            }
        }
        // For the models `Mm1` and `Mdc` the latency bound is a few ms, so one stall of 50 ms would
        // break the SLO. With stalls of 50 ms, the true load line of these models would be
        // different.
        let tight = matches!(self.model.kind, ServerKind::Mm1 | ServerKind::Mdc(_));
        let stalls_per_s = if tight { 0.0 } else { self.model.noise.stalls_per_s };
        let count = self.rng.poisson(stalls_per_s * length_ns as f64 / 1e9);
        (0..count).for_each(|_| stall(&mut self.rng, 10, 100));
        stalls.sort_unstable();
        self.stalls = stalls.into();
    }

    /// Processes a request that arrives at `now_ns`. Returns the time at which the response is
    /// sent, ns, and whether the response is a success. Calls must be in order of arrival time.
    fn process_arrival(&mut self, now_ns: u64) -> (u64, bool) {
        if let Some(burst) = self.model.token_bucket_size() {
            let rate = self.model.capacity;
            // In a trial with a lower capacity, the token bucket refills more slowly. In a trial
            // with a higher capacity, the token bucket does not refill faster than the nominal
            // rate.
            let earned = (now_ns - self.tokens_at_ns) as f64 / 1e9 * rate * self.capacity_factor.min(1.0);
            self.tokens = (self.tokens + earned).min(burst);
            self.tokens_at_ns = now_ns;
            let granted = self.tokens >= 1.0;
            self.tokens -= f64::from(u8::from(granted));
            return (now_ns + if granted { 1_000_000 } else { 300_000 }, granted);
        }
        if let ServerKind::Quota(requests, seconds) = self.model.kind {
            let window = now_ns / (seconds * 1e9) as u64;
            if window != self.tokens_at_ns {
                (self.tokens_at_ns, self.served) = (window, 0.0);
            }
            self.served += 1.0;
            return (now_ns + MS, self.served <= requests);
        }
        if let ServerKind::Ages(aging) = self.model.kind {
            self.capacity_factor = aging.relative_capacity(self.served, now_ns as f64 / 1e9);
            self.served += 1.0;
        }
        let Reverse(free_ns) = self.free_ns.pop().expect("there is a server");
        let mut start_ns = free_ns.max(now_ns);
        while let Some(&(from, to)) = self.stalls.front() {
            if start_ns >= to {
                self.stalls.pop_front();
            } else {
                if start_ns >= from {
                    start_ns = to;
                }
                break;
            }
        }
        if let Some((clockwork, stall)) = &mut self.own_stalls {
            while start_ns >= stall.1 {
                *stall = clockwork.next();
            }
            if start_ns >= stall.0 {
                start_ns = stall.1;
            }
        }
        let draw = match self.model.kind {
            ServerKind::Mm1 | ServerKind::Ages(_) => self.rng.exponential(),
            ServerKind::Queue(service, _) => service.draw_service_time(&mut self.rng),
            _ => 1.0,
        };
        let done_ns = start_ns + (self.model.service_s() * 1e9 * draw / self.capacity_factor) as u64;
        self.free_ns.push(Reverse(done_ns));
        (done_ns, true)
    }
}

/// The requests of a simulated load that end in one tick (one interval of the run's figures).
#[derive(Default, Clone)]
struct RequestEnds {
    succeeded: Vec<u64>,
    failed: Vec<u64>,
    /// Number of successes before the end of the measurement window.
    in_window: u64,
    /// Sum over the ended requests of the time from the end of the request to the end of the tick,
    /// ns. `left_ns` is subtracted from the integral of the requests in flight over the tick.
    left_ns: u64,
}

/// Executes a plan that starts at `origin_ns` of virtual time. Returns the run, and the length of
/// the run, ns.
fn simulate_plan(plan: &PlanRecord, mut until: StopRule, server: &mut Server, origin_ns: u64) -> (Run, u64) {
    let schedule = Arc::new(Schedule::compile(&plan.load));
    let end_ns = schedule.end_ns().expect("trials end");
    let from_ns = schedule.measured_from_ns();
    server.begin_trial(origin_ns, end_ns);
    let mut run = Run::new(plan.clone());
    run.window_ns = (from_ns, end_ns);
    run.ending = Some(LoadEnd::Finished);
    let mut arrivals = schedule.arrivals_of_stripe(Stripe::WHOLE_SCHEDULE).peekable();
    let mut users: BinaryHeap<Reverse<u64>> = match plan.load.shape {
        LoadShape::Closed { .. } => {
            // If the number of users rises in the first stage, the users start one after another.
            let first = &plan.load.shape.curve().stages[0];
            let ramp_ns = if first.to > first.from { first.duration_ns.unwrap_or(0) } else { 0 };
            let most = schedule.users_max();
            (0..most).map(|user| Reverse(ramp_ns * user / most)).collect()
        }
        LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => BinaryHeap::new(),
    };
    let tick = Plan::TICK_NS;
    let mut ends: VecDeque<RequestEnds> = VecDeque::new();
    let mut in_flight = 0u64;
    let mut histogram = Histogram::new();
    let mut at_ns = 0;
    loop {
        let tick_end = at_ns + tick;
        let (mut load, mut figures) = (LoadFigures::default(), RouteFigures::default());
        let mut integral = in_flight * tick;
        loop {
            let next_ns = match plan.load.shape {
                LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => arrivals.peek().map(|a| a.1),
                LoadShape::Closed { .. } => users.peek().map(|u| u.0).filter(|t| *t < end_ns),
            };
            let Some(next_ns) = next_ns.filter(|t| *t < tick_end) else { break };
            let (done, good) = server.process_arrival(origin_ns + next_ns);
            let done_ns = done - origin_ns;
            match plan.load.shape {
                LoadShape::Open { .. } | LoadShape::ArrivalTimes { .. } => drop(arrivals.next()),
                LoadShape::Closed { .. } => {
                    users.pop();
                    users.push(Reverse(done_ns));
                }
            }
            if next_ns < from_ns {
                continue;
            }
            figures.ledger.scheduled += 1;
            in_flight += 1;
            integral += tick_end - next_ns;
            let slot = ((done_ns - at_ns) / tick) as usize;
            if ends.len() <= slot {
                ends.resize(slot + 1, RequestEnds::default());
            }
            let end = &mut ends[slot];
            end.left_ns += (at_ns + (slot as u64 + 1) * tick) - done_ns;
            end.in_window += u64::from(good && done_ns < end_ns);
            let list = if good { &mut end.succeeded } else { &mut end.failed };
            list.push(done_ns - next_ns);
        }
        let ended = ends.pop_front().unwrap_or_default();
        let count = (ended.succeeded.len() + ended.failed.len()) as u64;
        in_flight -= count;
        load.in_flight_ns = integral - ended.left_ns;
        figures.in_flight_end = in_flight;
        figures.ledger.succeeded = ended.succeeded.len() as u64;
        figures.ledger.failed[0] = ended.failed.len() as u64;
        figures.succeeded_in_window = ended.in_window;
        ended.succeeded.iter().for_each(|ns| histogram.record(*ns));
        figures.response = histogram.drain();
        figures.service = figures.response.clone();
        ended.failed.iter().for_each(|ns| histogram.record(*ns));
        figures.failed = histogram.drain();
        histogram.record_n(20_000, figures.ledger.scheduled);
        load.lag = histogram.drain();
        let made = count.max(figures.ledger.scheduled) as f64 / (server.model.client_rps * tick as f64 / 1e9);
        let work_ns = (tick as f64 * (0.2 + made).min(1.0)) as u64;
        load.workers = vec![WorkerTime { worker: 0, work_ns, cpu_ns: work_ns, wall_ns: tick }];
        let mut interval = Interval { load, routes: figures.into() };
        let verdict = until.push(at_ns, tick_end, &interval);
        let over = tick_end >= end_ns && (in_flight == 0 || tick_end >= end_ns + plan.load.grace_ns);
        let stopped = matches!(verdict, ControlFlow::Break(_));
        if over || stopped {
            interval.routes.figures_mut(0).ledger.in_flight = in_flight;
        }
        run.push(at_ns, interval);
        at_ns = tick_end;
        if let ControlFlow::Break(stop) = verdict {
            run.ending = Some(LoadEnd::Stopped(stop));
            run.window_ns.1 = end_ns.min(tick_end);
            break;
        }
        if over {
            break;
        }
    }
    (run, at_ns)
}

/// Returns how many cores of a two-core machine other processes use. The argument is a time on the
/// virtual clock, in ns.
pub type OtherProcessCores = fn(u64) -> f64;

/// Other processes use no core.
pub const NO_INTERFERENCE: OtherProcessCores = |_| 0.0;

/// Returns the probe readings of a load that began at `start_ns`. In the simulated readings, the
/// server and plimsoll together use 0.6 cores.
fn simulate_probe_readings(run: &Run, start_ns: u64, burners: OtherProcessCores) -> Probes {
    let mut probes = Probes::default();
    let step_ns = 100 * MS;
    let mut used = [0.0; 3];
    let mut push = |name: &str, kind, at_ns: u64, value: f64| {
        let series = probes.series.entry(name.to_owned()).or_insert_with(|| Series::new(kind, "ns"));
        series.push(SeriesSample { at_ns: at_ns as i64, value });
    };
    for at_ns in (0..=run.window_ns.1 + step_ns).step_by(step_ns as usize) {
        for (name, value) in ["host.cpu_idle", "server.cpu", "client.cpu"].iter().zip(used) {
            push(name, SeriesKind::Counter, at_ns, value);
        }
        push("host.cores", SeriesKind::Gauge, at_ns, 2.0);
        push("target.local", SeriesKind::Gauge, at_ns, 1.0);
        let others = burners(start_ns + at_ns).min(1.4);
        for (sum, rate) in used.iter_mut().zip([1.4 - others, 0.4, 0.2]) {
            *sum += rate * step_ns as f64;
        }
    }
    probes
}

/// Time that a load takes in addition to its schedule, ns: for connecting, and for transferring the
/// result.
const OVERHEAD_NS: u64 = 70 * MS;

/// Runs a whole search for the load line of `model` in virtual time.
pub fn simulate_search(model: ServerModel, seed: u64, budget_ns: u64, max_rate: Option<f64>) -> Findings {
    search_with_settings(model, seed, &search_settings(model, seed, budget_ns, max_rate))
}

/// Runs a whole search in virtual time with the given settings.
pub fn search_with_settings(model: ServerModel, seed: u64, settings: &SearchSettings) -> Findings {
    run_search(model, seed, settings, NO_INTERFERENCE)
}

/// Runs a whole search in virtual time while other processes use cores. The other processes reduce
/// the server's capacity.
pub fn search_with_interference(model: ServerModel, seed: u64, budget_ns: u64, burners: OtherProcessCores) -> Findings {
    run_search(model, seed, &search_settings(model, seed, budget_ns, None), burners)
}

fn run_search(model: ServerModel, seed: u64, settings: &SearchSettings, burners: OtherProcessCores) -> Findings {
    let mut server = Server::new(model, mix_bits(seed));
    let mut history: Vec<TrialOutcome> = Vec::new();
    let mut now_ns = 0;
    loop {
        match plimsoll_analysis::find::next(settings, &history, now_ns) {
            SearchStep::Stop(findings) => return *findings,
            SearchStep::Measure(measure) => {
                let start_ns = now_ns + OVERHEAD_NS / 2;
                // The number of cores that other processes use at the start of a trial determines
                // the server's capacity in the whole trial. A change of the other processes' CPU
                // use during the trial appears only in the probe readings.
                let slowed = ServerModel { capacity: model.capacity * (1.0 - burners(start_ns) / 2.8), ..model };
                server.model = slowed;
                let until = StopRule::TrialWatch(Box::new(measure.watch));
                let (mut run, took_ns) = simulate_plan(&measure.plan, until, &mut server, start_ns);
                run.probes = simulate_probe_readings(&run, start_ns, burners);
                history.push(judge(measure.purpose, start_ns, &run, &settings.slo));
                now_ns = start_ns + took_ns + OVERHEAD_NS / 2;
            }
        }
    }
}

/// The record of a simulated study.
pub struct StudyRecord {
    /// The loads of the study, in order of time.
    pub trials: Vec<Trial>,
    /// The events of the study, in order of time.
    pub events: Vec<ExperimentEvent>,
    /// For each step of the study: its virtual time in ns, and the number of loads and of events
    /// recorded by then.
    pub step_times: Vec<(u64, usize, usize)>,
    /// Length of the study, ns.
    pub elapsed_ns: u64,
    /// The reason why the study could not continue; `None` if the study ended normally.
    pub failure: Option<study::StudyFailure>,
}

/// Runs a whole study in virtual time while other processes use cores. Each compared target (arm)
/// has a simulated server of its own.
pub fn simulate_study(
    spec: &ExperimentSpec,
    models: &[ServerModel],
    seed: u64,
    burners: OtherProcessCores,
) -> StudyRecord {
    let mut servers: Vec<Server> =
        (0..).zip(models).map(|(arm, model)| Server::new(*model, mix_bits(seed.wrapping_add(arm)))).collect();
    let mut study = Study::new(spec).expect("a question");
    let mut recorded =
        StudyRecord { trials: Vec::new(), events: Vec::new(), step_times: Vec::new(), elapsed_ns: 0, failure: None };
    loop {
        let StudyRecord { trials, events, step_times, elapsed_ns, .. } = &mut recorded;
        step_times.push((*elapsed_ns, trials.len(), events.len()));
        assert!(step_times.len() < 10_000, "no end");
        match study.next(&History { trials, events, elapsed_ns: *elapsed_ns }) {
            study::Step::Stop => return recorded,
            study::Step::Fail(broken) => return StudyRecord { failure: Some(broken), ..recorded },
            study::Step::Skip(tag) => {
                events.push(ExperimentEvent::LoadSkipped { tag, reason: plimsoll_model::LoadSkipReason::NoTime })
            }
            study::Step::SkipProfile(..) => unreachable!("no profiles are asked for"),
            study::Step::Measure(trial) => {
                let start_ns = *elapsed_ns + OVERHEAD_NS / 2;
                let arm = trial.tag.arm.map_or(0, ArmIndex::index);
                let server = &mut servers[arm];
                server.model =
                    ServerModel { capacity: models[arm].capacity * (1.0 - burners(start_ns) / 2.8), ..models[arm] };
                let (mut run, took_ns) = simulate_plan(&trial.plan, trial.stop_rule, server, start_ns);
                run.probes = simulate_probe_readings(&run, start_ns, burners);
                trials.push(Trial { tag: trial.tag, start_ns, run });
                *elapsed_ns = start_ns + took_ns + OVERHEAD_NS / 2;
            }
        }
    }
}

/// Returns the settings of a search on `model`, with a budget and an upper limit of the rate.
pub fn search_settings(model: ServerModel, seed: u64, budget_ns: u64, max_rate: Option<f64>) -> SearchSettings {
    let mut base =
        Plan::for_get_request("server", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record();
    base.load.seed = seed;
    let preflight_ns = model.idle_response_ns();
    SearchSettings { base, slo: model.slo(), budget_ns, max_rate, arrivals: model.arrivals(), preflight_ns }
}

/// Formats the trials and the load line of a search for the messages of failed tests. `truth` is
/// the true load line or the capacity, 1/s.
pub fn format_search(findings: &Findings, truth: f64) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for trial in &findings.trials {
        let load = match trial.offered_rps() {
            Some(rate) => format!("{:.4}", rate / truth),
            None => format!("c={}", trial.user_count().unwrap_or(0)),
        };
        let e = &trial.evidence;
        let _ = writeln!(
            text,
            "{:6.2}s {:8} {:>8} {:4.1}s {} z={:?} excess={:.2} growth={:.4} unanswered={} primed={} stalls={:?} {:?}",
            trial.start_ns as f64 / SECOND as f64,
            format!("{:?}", trial.purpose),
            load,
            trial.duration_ns as f64 / SECOND as f64,
            trial.verdict,
            e.saturated_rps.map(|z| (z / truth * 1e4).round() / 1e4),
            e.bad_to_allowed_ratio,
            e.backlog_growth_share,
            e.unanswered,
            e.has_failures_before_window,
            e.stalls.iter().map(|s| (s.at_ns / MS, s.length_ns / MS)).collect::<Vec<_>>(),
            trial.reason
        );
    }
    let line = findings.load_line;
    let _ = writeln!(text, "capacity {:?}", findings.capacity);
    let _ = writeln!(
        text,
        "line {:.4} ({:.4} to {:?}) {} by {:?} at {:.1}s held {}s; {:?} {:?}",
        line.rps / truth,
        line.lower / truth,
        line.upper.map(|u| (u / truth * 1e4).round() / 1e4),
        if line.is_confirmed { "confirmed" } else { "not confirmed" },
        findings.stopped_by,
        findings.elapsed_s,
        findings.longest_pass_at_line_s,
        findings.doubts.inline_texts().collect::<Vec<_>>(),
        findings.doubts.banner_texts().collect::<Vec<_>>()
    );
    text
}
