//! The figures of one load of a comparison ([`ArmLoadFigures`]), and the grouping of loads into
//! blocks. A block has one load on each arm (side of the comparison).

use crate::doubts::{Doubt, DoubtKind};
use crate::format;
use crate::interference::Interference;
use crate::quantile::REQUESTS_BEYOND_MIN;
use crate::sentence::{Remedy, Sentence};
use crate::server::ServerUse;
use crate::summary::Summary;
use plimsoll_model::rng::Rng;
use plimsoll_model::{
    ArmIndex, CountsByKey, Criterion, Histogram, LoadEnd, LoadPurpose, PlanRecord, RouteFigures, RouteRecord, Run,
    Trial,
};
use plimsoll_statistics::basics;
use plimsoll_statistics::resample::{BlockRatio, LoadResponseTimes};

/// The figures of one load on one arm (side) of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmLoadFigures {
    /// Number of successes in the measured window, and the length of the window in s.
    pub goodput: BlockRatio,
    /// The response times of the load's successes, and the number of all scheduled requests.
    pub response_times: LoadResponseTimes,
    /// CPU time of the server's processes, ns, and the number of responses as its divisor; `None`
    /// if the CPU time could not be read.
    pub cpu_ns_per_response: Option<BlockRatio>,
    /// Total bytes of the responses, and the number of responses as their divisor.
    pub bytes_per_response: BlockRatio,
    /// Number of responses by HTTP status.
    pub statuses: CountsByKey,
    /// The figures of each route, in the order of the plan; empty for a plan with a single route.
    pub routes: Vec<ArmRouteFigures>,
    /// Mean time for which a response waited unread in plimsoll, as a share of the response time;
    /// measured only in closed loads.
    pub client_wait_share: f64,
    /// The CPU used by other processes during the load, and whether the load was disturbed.
    pub interference: Interference,
    /// Why the load is void (does not count), because the generator was the limit; `None` for a
    /// valid load.
    pub void_reason: Option<Sentence>,
    /// Why the load is void, because it ended before the first response; `None` for a valid load.
    /// Whether a load without any response is void depends on the usual response time in the other
    /// loads of the comparison.
    pub missing_response_reason: Option<Sentence>,
}

/// The figures of one load for one route of a plan with several routes.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmRouteFigures {
    /// The name of the route.
    pub name: String,
    /// The response times of the route's successes, and the number of all its scheduled requests.
    pub response_times: LoadResponseTimes,
}

/// Largest share of the response time for which responses may wait unread in plimsoll. Above this
/// share the load is void, because its figures describe plimsoll and not the server.
pub const CLIENT_WAIT_SHARE_MAX: f64 = 0.1;

fn load_response_times(figures: &RouteFigures<Histogram>) -> LoadResponseTimes {
    LoadResponseTimes::new(figures.ledger.scheduled, figures.ledger.succeeded, figures.response.buckets())
}

impl ArmLoadFigures {
    /// Computes the figures of one load.
    pub fn from_trial(trial: &Trial) -> ArmLoadFigures {
        let run = &trial.run;
        let summary = Summary::from_run(run);
        let whole = run.totals().routes_sum;
        let used = ServerUse::from_run(run).ok().filter(|used| used.cpu_us_per_request().is_some());
        let several = run.plan.traffic.routes.len() > 1;
        let route = |(route, figures): (&RouteRecord, RouteFigures<Histogram>)| ArmRouteFigures {
            name: route.label.clone(),
            response_times: load_response_times(&figures),
        };
        let client_wait_share = client_wait_share(run, &summary);
        let limit = summary.generator.reason.clone().filter(|_| summary.generator.is_limit);
        let waits = (client_wait_share > CLIENT_WAIT_SHARE_MAX).then(|| {
            Sentence::from(format!(
                "responses waited in plimsoll for {wait_percent:.0} % of the response time, before plimsoll read them \
                 (a worker thread of plimsoll was busy {busy_percent:.0} % of the time)",
                wait_percent = client_wait_share * 100.0,
                busy_percent = summary.generator.work_share * 100.0
            ))
        });
        ArmLoadFigures {
            goodput: BlockRatio {
                numerator: whole.succeeded_in_window as f64,
                divisor: run.duration_ns() as f64 / 1e9,
            },
            response_times: load_response_times(&whole),
            cpu_ns_per_response: used.map(|used| BlockRatio { numerator: used.cpu_ns, divisor: used.responses as f64 }),
            bytes_per_response: BlockRatio {
                numerator: whole.answers_bytes as f64,
                divisor: whole.statuses.total() as f64,
            },
            statuses: whole.statuses,
            routes: match several {
                true => run.plan.traffic.routes.iter().zip(run.route_totals()).map(route).collect(),
                false => Vec::new(),
            },
            client_wait_share,
            interference: summary.interference,
            void_reason: limit.or(waits),
            missing_response_reason: None,
        }
    }

    /// Returns the successes a second.
    pub fn goodput_rps(&self) -> f64 {
        if self.goodput.divisor > 0.0 { self.goodput.numerator / self.goodput.divisor } else { 0.0 }
    }

    /// Returns the share of the scheduled requests that succeeded.
    pub fn success_rate(&self) -> f64 {
        if self.response_times.scheduled == 0 {
            1.0
        } else {
            self.response_times.succeeded() as f64 / self.response_times.scheduled as f64
        }
    }

    /// Returns the value of a measure in this load alone. Returns `None` if the load did not
    /// measure this measure. A quantile is infinite if too many requests failed.
    pub fn measure_value(&self, measure: Criterion) -> Option<f64> {
        match measure {
            Criterion::Goodput => Some(self.goodput_rps()).filter(|rps| rps.is_finite() && *rps >= 0.0),
            Criterion::P50 | Criterion::P99 => {
                let q = quantile_of_measure(measure).unwrap_or_default();
                (self.response_times.scheduled > 0).then(|| self.response_times.quantile_ns(q))
            }
            Criterion::Cpu => self
                .cpu_ns_per_response
                .map(|amount| amount.numerator / amount.divisor)
                .filter(|ns| ns.is_finite() && *ns > 0.0),
        }
    }

    /// Returns the value of a measure in this load, if the value may be printed: a quantile needs
    /// enough requests beyond it.
    pub fn printable_value(&self, measure: Criterion) -> Option<f64> {
        let enough = quantile_of_measure(measure)
            .is_none_or(|q| self.response_times.requests_beyond_quantile(q) >= REQUESTS_BEYOND_QUANTILE_MIN);
        self.measure_value(measure).filter(|value| enough && value.is_finite())
    }

    /// Returns whether no response arrived during the load.
    fn is_silent(&self) -> bool {
        self.goodput.numerator <= 0.0 && self.response_times.succeeded() == 0 && self.statuses.is_empty()
    }
}

/// Minimum number of requests beyond a quantile. A quantile with fewer requests beyond it is
/// neither printed nor compared.
pub const REQUESTS_BEYOND_QUANTILE_MIN: f64 = REQUESTS_BEYOND_MIN as f64;

/// Returns the quantile that a measure of response times stands for, such as 0.99 for p99; `None`
/// for other measures.
pub fn quantile_of_measure(measure: Criterion) -> Option<f64> {
    match measure {
        Criterion::P50 => Some(0.5),
        Criterion::P99 => Some(0.99),
        Criterion::Goodput | Criterion::Cpu => None,
    }
}

/// Returns the mean time for which a response was readable before plimsoll read it, as a share of
/// the response time. In a closed load, no other figure shows that plimsoll read the responses
/// late.
fn client_wait_share(run: &Run, summary: &Summary) -> f64 {
    let (wait, response) = (&summary.generator.read_wait, &summary.routes_sum.response);
    let known = !run.plan.load.shape.is_open() && wait.count > 0 && response.mean_ns > 0.0;
    if known { wait.mean_ns / response.mean_ns } else { 0.0 }
}

/// A block of a comparison: one load on each arm (side of the comparison), in random order.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonBlock {
    /// The figures of the loads by arm (side): A, B, ...
    pub arm_loads: Vec<ArmLoadFigures>,
}

impl ComparisonBlock {
    /// Returns why a load of the block (one load on each side) is void; `None` for a valid block.
    pub fn void_reason(&self) -> Option<&Sentence> {
        self.arm_loads
            .iter()
            .find_map(|reading| reading.void_reason.as_ref().or(reading.missing_response_reason.as_ref()))
    }

    /// Returns whether other processes disturbed a load of the block (one load on each side).
    pub fn is_disturbed(&self) -> bool {
        self.arm_loads.iter().any(|reading| reading.interference.is_disturbed)
    }
}

/// Returns the order of the loads on the arms (sides) in block number `block`: a shuffle that
/// depends only on the seed and the number.
pub fn shuffled_arm_order(seed: u64, block: usize, arms: usize) -> Vec<u8> {
    let mut rng = Rng::for_stream(seed, block as u64);
    let mut order: Vec<u8> = (0..arms as u8).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.uniform_below(last as u64 + 1) as usize);
    }
    order
}

/// Returns the complete blocks (one load on each side) of the recorded loads, and the reason why
/// the recording ended early, if it did.
pub fn blocks_from_trials(trials: &[Trial], arms: usize) -> (Vec<ComparisonBlock>, Option<String>) {
    let mut blocks = RecordedBlocks::new(arms);
    blocks.add_new_trials(trials);
    (blocks.complete_blocks, blocks.early_end_reason)
}

/// The blocks (one load on each side) of a recording. Loads are read one by one as they are
/// recorded, and each load only once, because reading a load takes longer than evaluating all
/// blocks.
#[derive(Debug, Clone)]
pub struct RecordedBlocks {
    /// The complete blocks (one load on each side).
    pub complete_blocks: Vec<ComparisonBlock>,
    /// Why the recording ended early; `None` for a complete recording. Loads after an early end do
    /// not count.
    pub early_end_reason: Option<String>,
    /// The figures of the loads in the current, incomplete block, by arm (side).
    current_block: Vec<Option<ArmLoadFigures>>,
    trials_read: usize,
}

impl RecordedBlocks {
    /// Creates an empty list of blocks with `arms` loads each.
    pub fn new(arms: usize) -> RecordedBlocks {
        RecordedBlocks {
            complete_blocks: Vec::new(),
            early_end_reason: None,
            current_block: vec![None; arms],
            trials_read: 0,
        }
    }

    /// Adds the loads that were recorded since the last call.
    pub fn add_new_trials(&mut self, trials: &[Trial]) {
        let new = trials.get(self.trials_read..).unwrap_or_default();
        self.trials_read = trials.len();
        for trial in new {
            let (LoadPurpose::Block, Some(arm)) = (trial.tag.purpose, trial.tag.arm) else { continue };
            if self.early_end_reason.is_some() {
                return;
            }
            self.early_end_reason = self.add(arm, trial).err();
        }
        self.judge_missing_responses();
    }

    /// Decides which loads without any response are void (do not count). A load without any
    /// response is void if it was shorter than three usual response times, or if the usual response
    /// time is not known. A longer load without any response is valid, because it shows that the
    /// server hangs.
    fn judge_missing_responses(&mut self) {
        for arm in 0..self.current_block.len() {
            let heard =
                self.complete_blocks.iter().map(|block| &block.arm_loads[arm]).filter(|reading| !reading.is_silent());
            let usual_ns: Vec<f64> = heard.filter_map(|reading| reading.measure_value(Criterion::P50)).collect();
            let usual_ns = basics::median(&usual_ns).unwrap_or(f64::INFINITY);
            for reading in
                self.complete_blocks.iter_mut().map(|block| &mut block.arm_loads[arm]).filter(|it| it.is_silent())
            {
                let length_ns = reading.goodput.divisor * 1e9;
                reading.missing_response_reason = (usual_ns * 3.0 > length_ns).then(|| {
                    let text = format!(
                        "no response arrived within a load of {load_ms:.0} ms: make the loads longer (",
                        load_ms = length_ns / 1e6
                    );
                    Sentence::from(text).remedy(Remedy::LoadTime).words(")")
                });
            }
        }
    }

    fn add(&mut self, arm: ArmIndex, trial: &Trial) -> Result<(), String> {
        match &trial.run.ending {
            Some(LoadEnd::Finished) => {}
            Some(LoadEnd::Stopped(stop)) => return Err(format::stop_reason(stop).to_owned()),
            None => return Err("the recording in the run file was cut off".into()),
        }
        let reading = ArmLoadFigures::from_trial(trial);
        if let Some(place) = self.current_block.get_mut(arm.index()) {
            *place = Some(reading);
        }
        if self.current_block.iter().all(Option::is_some) {
            self.complete_blocks
                .push(ComparisonBlock { arm_loads: self.current_block.iter_mut().filter_map(Option::take).collect() });
        }
        Ok(())
    }
}

/// Returns the name of an arm (side of a comparison): A, B, ... Z.
pub fn arm_name(arm: u8) -> char {
    char::from(b'A' + arm.min(25))
}

/// Returns a warning about void blocks, which do not count because one of their loads is void. The
/// warning states the number of void blocks, and why the first void block is void. Returns `None`
/// if all blocks are valid.
pub(super) fn void_blocks_doubt(blocks: &[ComparisonBlock]) -> Option<Doubt> {
    let void: Vec<&Sentence> = blocks.iter().filter_map(ComparisonBlock::void_reason).collect();
    let text = Sentence::from(format!(
        "{void_blocks} of {all_blocks} blocks (one load on each side) do not count: ",
        void_blocks = void.len(),
        all_blocks = blocks.len()
    ));
    void.first().map(|reason| Doubt { kind: DoubtKind::Void, text: text.append_sentence(reason) })
}

/// Returns the plan of the loads on each arm (side) in the recorded blocks; empty if no block was
/// recorded.
pub fn arm_plans(trials: &[Trial], arms: usize) -> Vec<&PlanRecord> {
    let on = |trial: &Trial, arm: usize| {
        trial.tag.purpose == LoadPurpose::Block && trial.tag.arm.map(ArmIndex::index) == Some(arm)
    };
    let of = |arm: usize| trials.iter().find(|trial| on(trial, arm));
    (0..arms).filter_map(of).map(|trial| &trial.run.plan).collect()
}
