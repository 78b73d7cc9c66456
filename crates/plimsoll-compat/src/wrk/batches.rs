//! Measures the latencies of whole batches for wrk2's flag `-B`. A batch is a group of messages
//! that are sent together. The latency of a batch lasts from the start of the batch to its last
//! response. The load itself still measures the latency of each message.
//!
//! Not here: writing the requests (the script does), and formatting figures.

use plimsoll_model::failure::Failure;
use plimsoll_model::{EarlyStopReason, Histogram, LoadShape};
use plimsoll_script::run_figures::RunFigures;
use plimsoll_wire::{
    Author, AuthorFactory, AuthorResponse, AuthorStopReason, Batch, LostResponse, ResponseTimes, WorkerAuthor,
};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

/// The measured times of the batches of one worker.
#[derive(Debug, Default)]
struct BatchTimes {
    /// Service times of batches in ns: from sending the batch to its last response.
    service: Histogram,
    /// Response times of batches in ns: from the intended start to the last response.
    response: Histogram,
}

/// The times of one worker's batches. The worker and the final report share these times.
type WorkerBatches = Arc<Mutex<BatchTimes>>;

/// Creates the authors that write the script's requests and measure the times of their batches.
/// Clones share the measured times.
#[derive(Clone)]
pub struct BatchTimingFactory {
    inner: Arc<dyn AuthorFactory + Send + Sync>,
    times: Arc<Mutex<Vec<WorkerBatches>>>,
}

impl BatchTimingFactory {
    /// Creates a factory that measures the batches of the authors which `inner` creates.
    pub fn new(inner: Arc<dyn AuthorFactory + Send + Sync>) -> BatchTimingFactory {
        BatchTimingFactory { inner, times: Arc::default() }
    }

    /// Converts this factory to the type that `RunCommand::execute_load` expects.
    pub fn into_factory(self) -> Arc<dyn AuthorFactory> {
        Arc::new(self)
    }

    /// Returns the figures of a load in which the latencies of whole batches replace the latencies
    /// of single messages.
    pub fn with_batch_latencies(&self, figures: RunFigures) -> RunFigures {
        let mut sum = BatchTimes::default();
        for times in self.times.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let times = times.lock().unwrap_or_else(PoisonError::into_inner);
            sum.service.merge(&times.service);
            sum.response.merge(&times.response);
        }
        figures.with_times(&sum.service, &sum.response)
    }
}

impl AuthorFactory for BatchTimingFactory {
    fn create_authors(&self, shape: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure> {
        let authorships = self.inner.create_authors(shape, workers)?;
        let mut all = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *all = authorships.iter().map(|_| Arc::default()).collect();
        let timed = |(authorship, times): (WorkerAuthor, &WorkerBatches)| WorkerAuthor {
            author: Box::new(BatchTimingAuthor { inner: authorship.author, times: Arc::clone(times) }),
            ..authorship
        };
        Ok(authorships.into_iter().zip(&*all).map(timed).collect())
    }

    fn may_continue(&self) -> ControlFlow<EarlyStopReason> {
        self.inner.may_continue()
    }

    fn mark_load_ended(&self) {
        self.inner.mark_load_ended();
    }
}

/// An author (code that writes the requests of a load) that lets another author write the requests.
/// This author records the time of a batch when the last response arrives, or when a response is
/// lost.
#[derive(Debug)]
struct BatchTimingAuthor {
    inner: Box<dyn Author>,
    times: WorkerBatches,
}

impl BatchTimingAuthor {
    fn record_times(&self, times: ResponseTimes) {
        let mut mine = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        mine.response.record(times.done_ns.saturating_sub(times.intended_ns));
        if times.sent_ns > 0 {
            mine.service.record(times.done_ns.saturating_sub(times.sent_ns));
        }
    }
}

impl Author for BatchTimingAuthor {
    fn writes_every_batch(&self) -> bool {
        self.inner.writes_every_batch()
    }

    fn has_delays(&self) -> bool {
        self.inner.has_delays()
    }

    fn wants_responses(&self) -> bool {
        true
    }

    fn messages_per_batch(&self) -> u32 {
        self.inner.messages_per_batch()
    }

    fn write(&mut self, batch: &mut Batch) -> Result<(), AuthorStopReason> {
        self.inner.write(batch)
    }

    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason> {
        self.inner.delay_ns()
    }

    fn receive_response(&mut self, answer: &AuthorResponse) -> Result<(), AuthorStopReason> {
        if answer.is_last {
            self.record_times(answer.times);
        }
        if self.inner.wants_responses() { self.inner.receive_response(answer) } else { Ok(()) }
    }

    fn receive_lost_response(&mut self, response: &LostResponse) {
        self.record_times(response.times);
        if self.inner.wants_responses() {
            self.inner.receive_lost_response(response);
        }
    }
}
