//! A source of measurements (readings) of a server on another machine ([`RemoteReadings`]). An
//! agent on the server's machine measures the server. The source also provides the load generator's
//! own readings and the server's metrics.
//!
//! If the agent is lost, loads continue. Missing readings are recorded as a gap with a reason,
//! never as zero. Not here: the connection to the agent (`watch_link`), and the choice of sources
//! (`remote_watch`).

use crate::bus::Bus;
use crate::watch_link::{MESSAGE_WAIT_MAX, ReadingBatch, WatchLink};
use plimsoll_model::Probes;
use plimsoll_model::SeriesKind;
use plimsoll_probe::{LiveServerCpu, ReadingSource, Watcher};
use plimsoll_sys::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest wait for a requested sample of readings (0.5 s). If the sample is later than 0.5 s,
/// the load continues without the sample.
const SAMPLE_WAIT: Duration = Duration::from_millis(500);

/// A source of readings (measurements) of a server on another machine.
pub struct RemoteReadings {
    /// The readings of this machine, which generates the load.
    generator: Watcher,
    shared: Arc<SharedRemoteReadings>,
    thread: Option<JoinHandle<()>>,
}

struct SharedRemoteReadings {
    host: String,
    start_ns: u64,
    live: LiveServerCpu,
    state: Mutex<RemoteReadingsState>,
    changed: Condvar,
}

#[derive(Default)]
struct RemoteReadingsState {
    /// The readings that have arrived since the last call of `take_new_readings`, with times of
    /// this machine's monotonic clock.
    new_readings: Probes,
    /// The kind and the unit of each time series received so far, by the name of the series.
    series_by_name: BTreeMap<String, (SeriesKind, String)>,
    /// The number of the last requested sample.
    requested_sample: u32,
    /// The number of the last received sample.
    received_sample: u32,
    /// After the loss of the agent: the reason of the loss, and the start in ns of the gap that
    /// `take_new_readings` has not reported yet.
    loss: Option<(String, u64)>,
    user_messages: Vec<String>,
    is_stopping: bool,
}

impl SharedRemoteReadings {
    fn lock(&self) -> MutexGuard<'_, RemoteReadingsState> {
        // A panic of the other thread poisons the lock. The state is used in spite of the panic,
        // because each change leaves valid readings.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_batch(&self, batch: ReadingBatch) {
        let ReadingBatch { sample, live_cores, probes } = batch;
        self.live.set_cores_used(live_cores);
        let mut state = self.lock();
        for (name, series) in &probes.series {
            if !state.series_by_name.contains_key(name) {
                state.series_by_name.insert(name.clone(), (series.kind, series.unit.clone()));
            }
        }
        state.new_readings.merge(&probes);
        state.received_sample = state.received_sample.max(sample);
        self.changed.notify_all();
    }

    /// Records that the agent is lost; `cause` is a sentence without the agent's name.
    fn record_loss(&self, now_ns: u64, cause: &str) {
        self.live.set_cores_used(None);
        let seconds = now_ns.saturating_sub(self.start_ns) / 1_000_000_000;
        let host = &self.host;
        let reason = format!("the server on {host} was observed only for the first {seconds} s: {cause}");
        let mut state = self.lock();
        state.user_messages.push(format!(
            "the server on {host} was observed only for the first {seconds} s, and the study continues without \
             observing this server: {cause}"
        ));
        state.loss = Some((reason, now_ns));
        self.changed.notify_all();
    }

    /// Returns the readings (measurements) that have arrived since the last call. If the agent is
    /// lost, the result contains a gap with the reason.
    fn take_new_readings(&self, now_ns: u64) -> Probes {
        let mut state = self.lock();
        let mut probes = std::mem::take(&mut state.new_readings);
        let RemoteReadingsState { loss: lost, series_by_name: known, .. } = &mut *state;
        if let Some((reason, from_ns)) = lost {
            let series = known.iter().map(|(name, (kind, unit))| (name.as_str(), *kind, unit.as_str()));
            probes.push_gaps(series, (*from_ns as i64, now_ns as i64), reason);
            probes.missing.push(reason.clone());
            *from_ns = now_ns;
        }
        probes.host = Some(self.host.clone());
        probes
    }
}

impl RemoteReadings {
    /// Starts a thread that receives the readings of an agent. `generator` provides the readings of
    /// this machine, which generates the load.
    pub fn start_receiving<B: Bus + Send + 'static>(
        link: WatchLink<B>,
        host: &str,
        generator: Watcher,
    ) -> RemoteReadings {
        let shared = Arc::new(SharedRemoteReadings {
            host: host.to_owned(),
            start_ns: monotonic_ns(),
            live: LiveServerCpu::without_value(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || receive_readings(link, &of_thread));
        RemoteReadings { generator, shared, thread: Some(thread) }
    }
}

/// Receives readings until the source is dropped or the agent is lost. Runs in its own thread.
fn receive_readings<B: Bus>(mut link: WatchLink<B>, shared: &SharedRemoteReadings) {
    let mut asked_last = 0;
    loop {
        let (stop, asked) = {
            let state = shared.lock();
            (state.is_stopping, state.requested_sample)
        };
        if stop {
            return;
        }
        if asked != asked_last {
            asked_last = asked;
            link.request_sample(asked);
        }
        match link.receive(MESSAGE_WAIT_MAX) {
            Ok(came) => came.into_iter().for_each(|came| shared.add_batch(came)),
            Err(why) => return shared.record_loss(monotonic_ns(), &why),
        }
    }
}

impl ReadingSource for RemoteReadings {
    fn live_server_cpu(&self) -> LiveServerCpu {
        self.shared.live.clone()
    }

    fn count_process_as_plimsoll(&self, pid: u32) {
        self.generator.count_process_as_plimsoll(pid);
    }

    fn sample_now(&self) {
        let asked = {
            let mut state = self.shared.lock();
            state.requested_sample += 1;
            state.requested_sample
        };
        self.generator.sample_now();
        let is_due = |state: &mut RemoteReadingsState| state.received_sample < asked && state.loss.is_none();
        let wait = self.shared.changed.wait_timeout_while(self.shared.lock(), SAMPLE_WAIT, is_due);
        // A timeout of the wait is ignored, because the load continues even if the sample is late.
        drop(wait);
    }

    fn take_new_readings(&self) -> Probes {
        let mut probes = self.shared.take_new_readings(monotonic_ns());
        probes.merge(&self.generator.take_new_readings().into_generator_series());
        probes
    }

    fn take_user_messages(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().user_messages)
    }
}

impl Drop for RemoteReadings {
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        if let Some(thread) = self.thread.take() {
            // The result of `join` is ignored, because a panic of the thread has already printed
            // its own message.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Series, SeriesSample};

    const SECOND: u64 = 1_000_000_000;

    fn reading_batch(at_ns: u64, sample: u32) -> ReadingBatch {
        let mut series = Series::new(SeriesKind::Counter, "ns");
        series.push(SeriesSample { at_ns: at_ns as i64, value: at_ns as f64 });
        let mut probes = Probes::default();
        probes.series.insert("server.cpu".to_owned(), series);
        ReadingBatch { sample, live_cores: Some(1.5), probes }
    }

    #[test]
    fn lost_readings_are_gaps_and_never_zero() {
        let shared = SharedRemoteReadings {
            host: "server1".to_owned(),
            start_ns: SECOND,
            live: LiveServerCpu::without_value(),
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        shared.add_batch(reading_batch(2 * SECOND, 1));
        shared.add_batch(reading_batch(3 * SECOND, 0));
        assert_eq!((shared.live.cores_used(), shared.lock().received_sample), (Some(1.5), 1));
        let whole = shared.take_new_readings(4 * SECOND);
        assert_eq!((whole.series["server.cpu"].samples.len(), whole.missing.len()), (2, 0));
        shared.record_loss(13 * SECOND, "its ssh ended");
        assert_eq!(shared.live.cores_used(), None);
        let news = std::mem::take(&mut shared.lock().user_messages);
        assert!(
            news.len() == 1 && news[0].starts_with("the server on server1 was observed only for the first 12 s"),
            "{news:?}"
        );
        for (from_s, to_s) in [(13, 14), (14, 15)] {
            let after = shared.take_new_readings(to_s * SECOND);
            let cpu = &after.series["server.cpu"];
            assert!(cpu.samples.is_empty() && after.missing[0].contains("its ssh ended"), "{after:?}");
            let gaps: Vec<(i64, i64)> = cpu.gaps.iter().map(|gap| (gap.from_ns, gap.to_ns)).collect();
            assert_eq!(gaps, [((from_s * SECOND) as i64, (to_s * SECOND) as i64)]);
            assert_eq!(cpu.value_at((from_s * SECOND) as i64, SECOND as i64), None);
        }
        assert_eq!(shared.take_new_readings(16 * SECOND).host.as_deref(), Some("server1"));
    }
}
