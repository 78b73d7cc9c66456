//! The server's use of CPU and memory during a load ([`ServerUse`]): CPU time per request, requests
//! a second per core, cores used, memory, and the busiest thread.
//!
//! All requests with a response count, whatever their status, because the server used CPU time for
//! all of them.
//!
//! Not here: the probe readings, and the diagnosis of the server's bottleneck.

use plimsoll_model::series_table as table;
use plimsoll_model::units::{MS, SECOND};
use plimsoll_model::{Probes, Run, SeriesKind, WatchedServer};

/// Maximum distance between a probe reading and the edge of the window, ns: three times the usual
/// time between readings.
const READING_DISTANCE_NS_MAX: i64 = 300 * MS as i64;

/// The thread of the server that used the most CPU time.
#[derive(Debug, Clone, PartialEq)]
pub struct BusiestThread {
    /// Name and number of the thread, such as `nginx.1234`.
    pub name: String,
    /// CPU time that the thread used in the measured window, as a share of one core, 0..=1.
    pub share: f64,
}

/// The server's CPU and memory in the measured window of one or several runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerUse {
    /// The watched processes of the server in order of time. If the server restarted, the list has
    /// several processes, and the last process is the newest.
    pub servers: Vec<WatchedServer>,
    /// CPU time used by the server, ns.
    pub cpu_ns: f64,
    /// Number of responses that the server sent while it used `cpu_ns`.
    pub responses: u64,
    /// Length of the measured windows, ns.
    pub window_ns: f64,
    /// CPU time used inside the measured windows, ns.
    pub window_cpu_ns: f64,
    /// Maximum resident memory, bytes; `None` if the memory was not observed.
    pub rss_bytes_max: Option<f64>,
    /// Maximum number of threads of the server; `None` if the number was not observed.
    pub threads_max: Option<f64>,
    /// The busiest thread; `None` if no thread used at least a twentieth of a core.
    pub busiest_thread: Option<BusiestThread>,
}

impl ServerUse {
    /// Returns the CPU time for each request with a response, us; `None` without a response.
    pub fn cpu_us_per_request(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.cpu_ns / 1e3 / self.responses as f64)
    }

    /// Returns the number of requests a second that one core can process: the reciprocal of the CPU
    /// time of a request. Returns `None` if the CPU time of a request is not known.
    pub fn rps_per_core(&self) -> Option<f64> {
        self.cpu_us_per_request().filter(|us| *us > 0.0).map(|us| 1e6 / us)
    }

    /// Returns the mean number of cores that the server used in the measured windows.
    pub fn cores_used(&self) -> f64 {
        if self.window_ns > 0.0 { self.window_cpu_ns / self.window_ns } else { 0.0 }
    }

    /// Returns how often the server restarted while it was watched.
    pub fn restarts(&self) -> usize {
        self.servers.len().saturating_sub(1)
    }

    /// Computes the server's use of CPU and memory during `run`. The error is the reason why the
    /// server's use of CPU and memory is not known.
    pub fn from_run(run: &Run) -> Result<ServerUse, String> {
        let probes = &run.probes;
        let unseen = || match (&probes.missing[..], probes.is_empty()) {
            ([], true) => "no probe ran".to_owned(),
            ([], false) => "the server's process was not found".to_owned(),
            (reasons, _) => reasons.join("; "),
        };
        let cpu = probes.series.get(table::SERVER_CPU.name).ok_or_else(unseen)?;
        let (from_ns, to_ns) = (run.window_ns.0 as i64, run.window_ns.1 as i64);
        if to_ns <= from_ns {
            return Err("the load ended before its measured window began".into());
        }
        // The ledger also counts responses in the grace period after the window, so the CPU time of
        // the grace period is included.
        let length = run.plan.load.interval_ns.max(1);
        let end_ns = run.intervals.keys().next_back().map_or(to_ns, |last| ((u64::from(*last) + 1) * length) as i64);
        let last_ns = cpu.samples.last().map_or(i64::MIN, |sample| sample.at_ns);
        let at = |at_ns: i64| cpu.value_at(at_ns, READING_DISTANCE_NS_MAX);
        let first_ns = cpu.samples.first().map_or(i64::MAX, |sample| sample.at_ns);
        let late = || "the server was observed only during a part of the load".to_owned();
        if first_ns > from_ns.saturating_add(READING_DISTANCE_NS_MAX) {
            return Err(late());
        }
        let start = at(from_ns).ok_or_else(late)?;
        let end = at(to_ns.max(end_ns.min(last_ns))).or_else(|| at(to_ns)).ok_or_else(late)?;
        let mut window_cpu_ns = at(to_ns).ok_or_else(late)? - start;
        let window_ns = (to_ns - from_ns) as f64;
        if window_ns < SECOND as f64 {
            // Probe readings come every tenth of a second, which is too coarse for a window shorter
            // than a second.
            window_cpu_ns = end - start;
        }
        let ledger = run.ledger();
        let most = |name: &str| {
            let series = probes.series.get(name)?;
            let inside = series.samples_between(from_ns - READING_DISTANCE_NS_MAX, to_ns + READING_DISTANCE_NS_MAX);
            inside.iter().map(|sample| sample.value).reduce(f64::max)
        };
        Ok(ServerUse {
            servers: probes.servers.clone(),
            cpu_ns: end - start,
            // Responses in the window count even if their requests were already in flight when the
            // window began.
            responses: ledger.response_count() + run.successes_scheduled_before_window(),
            window_ns,
            window_cpu_ns,
            rss_bytes_max: most(table::SERVER_RSS.name),
            threads_max: most(table::SERVER_THREADS.name),
            busiest_thread: busiest_thread(probes, from_ns, to_ns),
        })
    }

    /// Adds the server's use of CPU and memory in another load.
    pub(crate) fn add(&mut self, other: ServerUse) {
        for seen in other.servers {
            if self.servers.iter().all(|known| known.pid != seen.pid) {
                self.servers.push(seen);
            }
        }
        self.cpu_ns += other.cpu_ns;
        self.responses += other.responses;
        self.window_ns += other.window_ns;
        self.window_cpu_ns += other.window_cpu_ns;
        let most = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        self.rss_bytes_max = most(self.rss_bytes_max, other.rss_bytes_max);
        self.threads_max = most(self.threads_max, other.threads_max);
        let threads = [self.busiest_thread.take(), other.busiest_thread];
        self.busiest_thread = threads.into_iter().flatten().max_by(|a, b| a.share.total_cmp(&b.share));
    }
}

/// Returns the busy threads of the server, each with the share of a core that it used from
/// `from_ns` to `to_ns`.
pub(crate) fn thread_shares(probes: &Probes, from_ns: i64, to_ns: i64) -> Vec<BusiestThread> {
    let threads = probes.series.iter().filter_map(|(name, series)| Some((table::THREAD.matched_label(name)?, series)));
    let shares = threads.filter(|(_, series)| series.kind == SeriesKind::Counter).filter_map(|(name, series)| {
        let first =
            series.value_at(from_ns, READING_DISTANCE_NS_MAX).or_else(|| Some(series.samples.first()?.value))?;
        let last = series.value_at(to_ns, READING_DISTANCE_NS_MAX).or_else(|| Some(series.samples.last()?.value))?;
        // A thread uses at most one core. A share above one core comes from inexact readings at
        // both ends of the period.
        let share = ((last - first) / (to_ns - from_ns) as f64).clamp(0.0, 1.0);
        Some(BusiestThread { name: name.to_owned(), share })
    });
    shares.collect()
}

fn busiest_thread(probes: &Probes, from_ns: i64, to_ns: i64) -> Option<BusiestThread> {
    thread_shares(probes, from_ns, to_ns).into_iter().max_by(|a, b| a.share.total_cmp(&b.share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Interval, Ledger, LoadCurve, LoadShape, Plan, RouteFigures, Series, SeriesSample};

    fn run_with_responses(window_ns: (u64, u64), answered: u64) -> Run {
        let mut run =
            Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
        let ledger = Ledger { scheduled: answered, succeeded: answered, ..Ledger::default() };
        let last = (window_ns.1 / run.plan.load.interval_ns).saturating_sub(1) as u32;
        run.intervals.insert(
            last,
            Interval { routes: RouteFigures { ledger, ..RouteFigures::default() }.into(), ..Interval::default() },
        );
        run.window_ns = window_ns;
        run
    }

    fn insert_series(run: &mut Run, name: &str, kind: SeriesKind, value: impl Fn(f64) -> f64) {
        let mut series = Series::new(kind, "ns");
        for tick in -2..=(run.window_ns.1 / (100 * MS)) as i64 + 2 {
            let at_ns = tick * 100 * MS as i64 + 7 * MS as i64;
            series.push(SeriesSample { at_ns, value: value(at_ns as f64) });
        }
        run.probes.series.insert(name.into(), series);
    }

    #[test]
    fn cpu_per_request_is_computed() {
        let mut run = run_with_responses((1_000_000_000, 5_000_000_000), 8_000);
        // The server uses one and a half cores. One thread of the server uses a whole core.
        insert_series(&mut run, "server.cpu", SeriesKind::Counter, |ns| 1.5 * ns + 1e9);
        insert_series(&mut run, "thread.api.7", SeriesKind::Counter, |ns| 1.2 * ns + 1e9);
        insert_series(&mut run, "thread.api.8", SeriesKind::Counter, |ns| 0.3 * ns + 1e9);
        insert_series(&mut run, "server.rss", SeriesKind::Gauge, |ns| ns);
        let used = ServerUse::from_run(&run).expect("seen");
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-6, "{got} is not {want}");
        close(used.cores_used(), 1.5);
        close(used.cpu_us_per_request().expect("answered"), 750.0);
        close(used.rps_per_core().expect("answered"), 1e6 / 750.0);
        assert_eq!(used.busiest_thread, Some(BusiestThread { name: "api.7".into(), share: 1.0 }));
        assert_eq!(used.threads_max, None);
        assert!(used.rss_bytes_max.is_some_and(|bytes| bytes > 5e9 && bytes < 5.4e9));
    }

    #[test]
    fn unobserved_cpu_has_a_reason() {
        let mut nothing = run_with_responses((0, 1_000_000_000), 5);
        assert_eq!(ServerUse::from_run(&nothing), Err("no probe ran".into()));
        nothing.probes.missing.push("the target is not on this machine".into());
        assert_eq!(ServerUse::from_run(&nothing), Err("the target is not on this machine".into()));
        let mut late = run_with_responses((0, 1_000_000_000), 5);
        let mut series = Series::new(SeriesKind::Counter, "ns");
        series.push(SeriesSample { at_ns: 900_000_000, value: 1.0 });
        late.probes.series.insert("server.cpu".into(), series);
        assert!(ServerUse::from_run(&late).is_err_and(|why| why.contains("a part of the load")));
        let mut silent = run_with_responses((0, 1_000_000_000), 0);
        insert_series(&mut silent, "server.cpu", SeriesKind::Counter, |_| 5.0);
        let used = ServerUse::from_run(&silent).expect("seen");
        assert_eq!((used.cpu_us_per_request(), used.rps_per_core(), used.cores_used()), (None, None, 0.0));
    }
}
