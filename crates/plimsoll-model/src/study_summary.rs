//! The result of a study in a few figures ([`StudySummary`]), for lists of runs. The summary is the
//! last frame of a run file, so that a list of runs reads only the beginning and end of each file.
//!
//! Not here: how the figures are computed (`plimsoll-analysis`). A command that shows one run does
//! not use the summary, but computes the finding again.

use serde::{Deserialize, Serialize};

/// The result of a study in a few figures, computed by the version of plimsoll that recorded the
/// study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StudySummary {
    /// The load line (highest sustained rate); `None` means that the study does not search for a
    /// load line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "line")]
    pub load_line: Option<LineSummary>,
    /// Goodput of a single load, 1/s; `None` for a study of several loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_rps: Option<SummaryValue>,
    /// The verdict of a comparison on build B: `better`, `worse`, `same`, `small`, `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The ratio B/A of a comparison's criterion, such as goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<SummaryValue>,
    /// The word for the cause that limits the load line (highest sustained rate); `None` without a
    /// diagnosis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The resource that the cause concerns, such as `one thread of node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause_subject: Option<String>,
    /// Response time p99, ns: at the load line, or in the load of a study with a single load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<f64>,
    /// CPU time of the server for a request, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// Share of the requests that succeeded, 0..=1, for a single load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// The server's functions with the most CPU samples at the load line. Each function has its
    /// share of all samples (0..=1), in descending order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<(String, f64)>,
    /// Three numbers: trials that met the SLO, trials that broke the SLO, and void trials.
    #[serde(skip_serializing_if = "is_no_trials")]
    pub trials: [u64; 3],
    /// The reason why the study is void (gives no information about the server), such as a load
    /// generator at its limit. `None` means that plimsoll found no reason to call the study void.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "void")]
    pub void_reason: Option<String>,
}

fn is_no_trials(trials: &[u64; 3]) -> bool {
    *trials == [0; 3]
}

/// A load line (highest sustained rate) with its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LineSummary {
    /// The estimate of the load line, 1/s. Without an estimate, the value is the lower end of the
    /// interval; 0 means that there is no load line.
    pub rps: f64,
    /// Lower end of the 90 % interval of the load line, 1/s.
    pub lower: f64,
    /// Upper end of the 90 % interval of the load line, 1/s; `None` means that no rate broke the
    /// SLO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Whether a separate trial at the lower end of the interval confirmed the load line.
    pub confirmed: bool,
}

impl LineSummary {
    /// Returns whether the search gave an estimate of the load line. Without an estimate, `rps` is
    /// the lower end of the interval.
    pub fn has_estimate(&self) -> bool {
        self.rps > self.lower
    }
}

/// A figure with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryValue {
    /// The estimate of the figure.
    pub value: f64,
    /// Lower end of the figure's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Upper end of the figure's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl StudySummary {
    /// The maximum number of entries in `functions`.
    pub const FUNCTIONS_MAX: usize = 8;

    /// Returns whether every figure is in its valid range: a damaged or hostile file can contain
    /// any JSON.
    pub fn is_within_limits(&self) -> bool {
        let is_rate = |value: f64| value.is_finite() && (0.0..=1e12).contains(&value);
        let line = self
            .load_line
            .is_none_or(|line| is_rate(line.rps) && is_rate(line.lower) && line.upper.is_none_or(is_rate));
        let value = |figure: Option<SummaryValue>| {
            figure.is_none_or(|it| is_rate(it.value) && it.lower.is_none_or(is_rate) && it.upper.is_none_or(is_rate))
        };
        let plain =
            [self.p99_ns, self.cpu_us, self.success_rate].into_iter().flatten().all(|it| (0.0..=1e18).contains(&it));
        let texts = [&self.verdict, &self.cause, &self.cause_subject, &self.void_reason];
        let short = texts.into_iter().flatten().all(|text| text.len() <= 1000);
        line && value(self.goodput_rps)
            && value(self.ratio)
            && plain
            && short
            && self.functions.len() <= StudySummary::FUNCTIONS_MAX
            && self.functions.iter().all(|(name, share)| name.len() <= 1000 && (0.0..=1.0).contains(share))
    }
}
