//! What one load says about the build under it ([`Reading`]), and loads taken together as blocks.

use crate::by_route::{RouteSummary, by_route};
use crate::doubts::{Doubt, DoubtKind, Doubts};
use crate::format;
use crate::others::Others;
use crate::sentence::{Remedy, Sentence};
use crate::server::ServerUse;
use crate::summary::Summary;
use plimsoll_model::rng::Rng;
use plimsoll_model::units::MS;
use plimsoll_model::{ArmIndex, Criterion, Ending, PlanRecord, Purpose, Run, Trial};

/// What one load says about the build under it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Successes a second.
    pub goodput_rps: f64,
    /// Median response time, ns; infinite where so many requests failed or had no answer that it has no bound.
    pub p50_ns: f64,
    /// 99th percentile of the response time, ns; infinite likewise.
    pub p99_ns: f64,
    /// CPU time of the server's processes for each answer, ns, where it could be read.
    pub cpu_ns_per_request: Option<f64>,
    /// Share of the scheduled requests that succeeded.
    pub success_rate: f64,
    /// The status that most answers had; 0 without answers.
    pub status: u16,
    /// Bytes received for each answer; 0 where the load was too short to tell.
    pub answer_bytes: f64,
    /// What each of several routes says, in the order of the plan; none where there is only one.
    pub routes: Vec<RouteReading>,
    /// What others used of the machine meanwhile.
    pub others: Others,
    /// Why it says nothing about the build, if so: others disturbed, the generator was the limit, or nothing was answered in
    /// the time.
    pub void: Option<Sentence>,
}

/// What one load says about one of several routes.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteReading {
    /// Its name.
    pub name: String,
    /// Requests that ended with an answer or a failure.
    pub requests: u64,
    /// Share of its requests that succeeded.
    pub success_rate: f64,
    /// Median response time, ns.
    pub p50_ns: f64,
    /// 99th percentile of the response time, ns.
    pub p99_ns: f64,
}

impl From<RouteSummary> for RouteReading {
    fn from(route: RouteSummary) -> RouteReading {
        RouteReading {
            name: route.name,
            requests: route.requests,
            success_rate: route.success_rate,
            p50_ns: route.figures.response.p50_ns as f64,
            p99_ns: route.figures.response.p99_ns as f64,
        }
    }
}

impl Reading {
    /// The reading of a load. `count_disturbed`: it counts even where others disturbed.
    pub fn of(trial: &Trial, count_disturbed: bool) -> Reading {
        let summary = Summary::of(&trial.run);
        let used = ServerUse::of(&trial.run).ok();
        let limit = summary.generator.reason.clone().filter(|_| summary.generator.limited);
        let silent = summary.throughput_rps <= 0.0 && summary.whole.ledger.failed_total() == 0;
        let others = summary.others.clone();
        let disturbed = others
            .reason
            .clone()
            .filter(|_| others.disturbed && !count_disturbed)
            .map(|reason| Sentence::from(format!("disturbed: {reason}")));
        let silence = || {
            let text = format!("no answer within {} ms (longer loads: ", summary.duration_ns / MS);
            Sentence::from(text).remedy(Remedy::LoadTime).words(")")
        };
        Reading {
            goodput_rps: summary.throughput_rps,
            p50_ns: summary.whole.response.p50_ns as f64,
            p99_ns: summary.whole.response.p99_ns as f64,
            cpu_ns_per_request: used.and_then(|used| used.cpu_us_per_request()).map(|us| us * 1e3),
            success_rate: summary.success_rate,
            status: summary.whole.statuses.iter().max_by_key(|(_, count)| *count).map_or(0, |(status, _)| status),
            answer_bytes: answer_bytes(&trial.run, summary.whole.response.p99_ns),
            routes: by_route(&trial.run).into_iter().map(RouteReading::from).collect(),
            void: disturbed.or(limit).or_else(|| silent.then(silence)),
            others,
        }
    }

    /// The value of a measure; `None` where it was not or could not be taken.
    pub fn value(&self, measure: Criterion) -> Option<f64> {
        let value = match measure {
            Criterion::Goodput => Some(self.goodput_rps),
            Criterion::P50 => Some(self.p50_ns),
            Criterion::P99 => Some(self.p99_ns),
            Criterion::Cpu => self.cpu_ns_per_request,
        };
        value.filter(|value| *value > 0.0 && value.is_finite())
    }
}

/// Bytes received for each answer, over the intervals that lie whole in the measured window, and so late in it that what
/// was sent before it is answered: elsewhere bytes are counted whose answers are not.
fn answer_bytes(run: &Run, response_ns: u64) -> f64 {
    let length = run.plan.load.interval_ns.max(1);
    let (first, last) = ((run.window_ns.0 + response_ns).div_ceil(length) + 1, run.window_ns.1 / length);
    let inside = run.intervals.iter().filter(|(index, _)| (first..last).contains(&u64::from(**index)));
    let (mut bytes, mut answers) = (0, 0);
    for (_, interval) in inside {
        bytes += interval.load.bytes_in;
        answers += interval.whole().statuses.total();
    }
    if answers > 0 { bytes as f64 / answers as f64 } else { 0.0 }
}

/// One load on each arm, in an order drawn at random.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// By arm: A, B, ...
    pub readings: Vec<Reading>,
}

impl Block {
    /// Why the block says nothing about the builds, if so.
    pub fn void(&self) -> Option<&Sentence> {
        self.readings.iter().find_map(|reading| reading.void.as_ref())
    }

    /// Whether it is void because others disturbed it on any side.
    pub fn disturbed(&self) -> bool {
        self.readings.iter().any(|reading| reading.others.disturbed && reading.void.is_some())
    }
}

/// The order of the arms in block number `block`: a shuffle that follows from the seed.
pub fn order(seed: u64, block: usize, arms: usize) -> Vec<u8> {
    let mut rng = Rng::stream(seed, block as u64);
    let mut order: Vec<u8> = (0..arms as u8).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

/// The whole blocks among recorded loads, and why the recording broke off, if it did.
pub fn blocks(trials: &[Trial], arms: usize, count_disturbed: bool) -> (Vec<Block>, Option<String>) {
    let mut blocks = Blocks::new(arms, count_disturbed);
    blocks.read(trials);
    (blocks.whole, blocks.broken)
}

/// Blocks that grow with a recording: each load is read once, since reading one takes longer than a look at all blocks.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// Those that are whole.
    pub whole: Vec<Block>,
    /// Why the recording broke off: nothing after that counts.
    pub broken: Option<String>,
    /// What there is of the next block, by arm.
    next: Vec<Option<Reading>>,
    trials_read: usize,
    count_disturbed: bool,
}

impl Blocks {
    /// None yet, of `arms` loads each. `count_disturbed`: also those that others disturbed count.
    pub fn new(arms: usize, count_disturbed: bool) -> Blocks {
        Blocks { whole: Vec::new(), broken: None, next: vec![None; arms], trials_read: 0, count_disturbed }
    }

    /// Takes in the loads of a recording that have come since the last time.
    pub fn read(&mut self, trials: &[Trial]) {
        let new = trials.get(self.trials_read..).unwrap_or_default();
        self.trials_read = trials.len();
        for trial in new {
            let (Purpose::Block, Some(arm)) = (trial.tag.purpose, trial.tag.arm) else { continue };
            if self.broken.is_some() {
                return;
            }
            self.broken = self.add(arm, trial).err();
        }
    }

    fn add(&mut self, arm: ArmIndex, trial: &Trial) -> Result<(), String> {
        match &trial.run.ending {
            Some(Ending::Finished) => {}
            Some(Ending::Stopped(stop)) => return Err(format::stop(stop).to_owned()),
            None => return Err("the recording was cut off".into()),
        }
        let reading = Reading::of(trial, self.count_disturbed);
        if reading.goodput_rps <= 0.0 && reading.void.is_none() {
            let number = self.whole.len() + 1;
            return Err(format!("{} answered no request successfully in block {number}", arm.letter()));
        }
        if let Some(place) = self.next.get_mut(arm.index()) {
            *place = Some(reading);
        }
        if self.next.iter().all(Option::is_some) {
            self.whole.push(Block { readings: self.next.iter_mut().filter_map(Option::take).collect() });
        }
        Ok(())
    }
}

/// A, B, ... Z.
pub fn arm_name(arm: u8) -> char {
    char::from(b'A' + arm.min(25))
}

/// The doubt where the arms do not answer alike: a status or a size that differs from the first arm's.
pub fn answers_differ(blocks: &[Block]) -> Option<Doubt> {
    let of = |block: &Block, arm: usize| (block.readings[arm].status, block.readings[arm].answer_bytes);
    let arms = blocks.first()?.readings.len();
    for arm in 1..arms {
        let differing = blocks.iter().filter(|block| {
            let ((status, bytes), (first_status, first_bytes)) = (of(block, arm), of(block, 0));
            status != first_status
                || bytes > 0.0 && first_bytes > 0.0 && (bytes / first_bytes - 1.0).abs() > SIZE_TOLERANCE
        });
        let differing: Vec<&Block> = differing.collect();
        if differing.len() * 2 > blocks.len() {
            let ((first_status, first_bytes), (status, bytes)) = (of(differing[0], 0), of(differing[0], arm));
            // A size that is not known (no interval in which every answer came that was asked for) is not told.
            let sizes = first_bytes > 0.0 && bytes > 0.0;
            let answer = |status: u16, bytes: f64| match sizes {
                true => format!("status {status} and {} bytes", format::count(bytes.round() as u64)),
                false => format!("status {status}"),
            };
            let text = format!(
                "the targets answer differently: A with {}, {} with {}; they may not do the same work",
                answer(first_status, first_bytes),
                arm_name(arm as u8),
                answer(status, bytes)
            );
            return Some(Doubt { kind: DoubtKind::Unlike, text: text.into() });
        }
    }
    None
}

/// What to say of blocks that do not count: how many, and why, those that others disturbed in one sentence.
pub(super) fn void_blocks(blocks: &[Block], counted: usize) -> Doubts {
    let (disturbed, others): (Vec<&Block>, Vec<&Block>) = blocks.iter().partition(|block| block.disturbed());
    let mut doubts = Doubts::default();
    if !disturbed.is_empty() {
        let readings = disturbed.iter().flat_map(|block| &block.readings).map(|reading| &reading.others);
        let disturbing: Vec<&Others> = readings.filter(|others| others.disturbed).collect();
        let text = format!(
            "the machine was disturbed: {} of {} blocks do not count: {}",
            disturbed.len(),
            blocks.len(),
            Others::blame(&disturbing)
        );
        doubts.add(DoubtKind::Others, text);
    }
    let void = others.len().saturating_sub(counted);
    if void > 0 {
        let reason = others.iter().find_map(|block| block.void()).cloned();
        let text = Sentence::from(format!("{void} of {} blocks do not count: ", blocks.len()));
        doubts.add(DoubtKind::Void, text.then(&reason.unwrap_or_else(|| "a value was missing".into())));
    }
    doubts
}

/// Mean sizes of answers may differ by this share before it is worth a warning.
const SIZE_TOLERANCE: f64 = 0.01;

/// The plan of each arm's loads in recorded blocks, as far as there are any.
pub fn block_plans(trials: &[Trial], arms: usize) -> Vec<&PlanRecord> {
    let on = |trial: &Trial, arm: usize| {
        trial.tag.purpose == Purpose::Block && trial.tag.arm.map(ArmIndex::index) == Some(arm)
    };
    let of = |arm: usize| trials.iter().find(|trial| on(trial, arm));
    (0..arms).filter_map(of).map(|trial| &trial.run.plan).collect()
}
