//! A study in a few figures ([`StudySummary`]): what a list of runs shows of each. It stands at the
//! end of a run file, so that a list reads the head and the end of a file and nothing between.
//!
//! Not here: how the figures are computed (`plimsoll-analysis`). A command that shows one run
//! computes its finding anew.

use serde::{Deserialize, Serialize};

/// A study in a few figures, as the plimsoll that recorded it computed them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StudySummary {
    /// The load line, of a study that searches one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<LineSummary>,
    /// Successes a second, of one load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_rps: Option<SummaryValue>,
    /// The verdict on B, of a comparison: `better`, `worse`, `same`, `small`, `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// B/A of the declared measure, of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<SummaryValue>,
    /// The word of the cause that limits the line; `None`: nothing was diagnosed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What the cause is in this case: `one thread of node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause_subject: Option<String>,
    /// Response time p99 at the line or of the load, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
    /// CPU time of the server a request, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// Share of the requests that succeeded, 0..=1, of one load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// The functions of the server with the greatest share of its samples at the line, the greatest
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<(String, f64)>,
    /// How many trials met the SLO, broke it, and were void.
    #[serde(skip_serializing_if = "is_no_trials")]
    pub trials: [u64; 3],
    /// Why the study says nothing about the server: the generator was the limit, or the machine was
    /// disturbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
}

fn is_no_trials(trials: &[u64; 3]) -> bool {
    *trials == [0; 3]
}

/// A load line and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LineSummary {
    /// The estimate, 1/s; 0: there is no line.
    pub rps: f64,
    /// Lower end of the 90 % interval.
    pub lower: f64,
    /// Its upper end; `None`: no rate that was tried was too high.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// A trial of its own at the lower end confirmed it.
    pub confirmed: bool,
}

/// A figure and the interval that is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryValue {
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl StudySummary {
    /// Most functions that are kept.
    pub const FUNCTIONS_MAX: usize = 8;

    /// Whether every figure can be one of a study: JSON of a damaged or hostile file says anything.
    pub fn is_bounded(&self) -> bool {
        let is_rate = |value: f64| value.is_finite() && (0.0..=1e12).contains(&value);
        let line =
            self.line.is_none_or(|line| is_rate(line.rps) && is_rate(line.lower) && line.upper.is_none_or(is_rate));
        let value = |figure: Option<SummaryValue>| {
            figure.is_none_or(|it| is_rate(it.value) && it.lower.is_none_or(is_rate) && it.upper.is_none_or(is_rate))
        };
        let plain =
            [self.p99_ns, self.cpu_us, self.success_rate].into_iter().flatten().all(|it| (0.0..=1e18).contains(&it));
        let texts = [&self.verdict, &self.cause, &self.cause_subject, &self.void];
        let short = texts.into_iter().flatten().all(|text| text.len() <= 1000);
        line && value(self.goodput_rps)
            && value(self.ratio)
            && plain
            && short
            && self.functions.len() <= StudySummary::FUNCTIONS_MAX
            && self.functions.iter().all(|(name, share)| name.len() <= 1000 && (0.0..=1.0).contains(share))
    }
}
