//! The interface of probes ([`Probe`]), and the live reading of the server ([`LiveServerCpu`]).

use super::sink::Sink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A probe: a source of measurements that is read repeatedly during a load.
pub(super) trait Probe: Send {
    /// Reads the probe's values once and adds them to `sink`.
    fn sample(&mut self, sink: &mut Sink);
}

/// The server's current CPU use, in thousandths of a core. The number `u64::MAX` stands for an
/// unknown CPU use.
#[derive(Debug, Clone)]
pub struct LiveServerCpu(Arc<AtomicU64>);

impl LiveServerCpu {
    const UNKNOWN_CPU_USE: u64 = u64::MAX;

    /// Creates the live reading of the server's CPU use, which has no value yet.
    pub fn without_value() -> LiveServerCpu {
        LiveServerCpu(Arc::new(AtomicU64::new(Self::UNKNOWN_CPU_USE)))
    }

    /// Sets the number of cores that the server used recently; `None` if it is unknown.
    pub fn set_cores_used(&self, cores: Option<f64>) {
        self.0.store(cores.map_or(Self::UNKNOWN_CPU_USE, |cores| (cores * 1000.0) as u64), Ordering::Relaxed);
    }

    /// Returns the number of cores that the server used recently; `None` if it is unknown.
    pub fn cores_used(&self) -> Option<f64> {
        Some(self.0.load(Ordering::Relaxed))
            .filter(|value| *value != Self::UNKNOWN_CPU_USE)
            .map(|value| value as f64 / 1000.0)
    }
}
