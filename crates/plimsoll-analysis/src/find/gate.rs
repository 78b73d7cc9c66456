//! Demands: conditions on the result of a search, such as `line<5000`, given with `--fail-if`. The
//! gate (a check in CI) fails if a fail condition is true.

use super::findings::Findings;
use crate::condition::{Op, duration_in_condition_syntax, format_number};
use crate::format;
use crate::sentence::{Remedy, Sentence};
use plimsoll_model::units::{SECOND, UnitError, parse_duration_ns, parse_number};
use std::fmt;

/// A figure of a search's result that a fail condition such as `line<5000` compares with a
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailConditionFigure {
    /// The load line, requests or sessions a second. If the interval is too wide for an estimate,
    /// the figure is the lower end of the interval.
    Line,
    /// The peak goodput, requests or sessions a second.
    Peak,
    /// The knee: the smallest number of users whose goodput is at least 95 % of the peak goodput.
    Knee,
    /// The load line as a multiple of the mean rate of the access log from which the loads are
    /// drawn.
    Scale,
    /// CPU time of the server for each request at the load line, ns.
    Cpu,
}

/// A condition that compares one figure of a search with a value. If the condition is true, the
/// gate fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailCondition {
    figure: FailConditionFigure,
    op: Op,
    value: f64,
}

/// A fail condition such as `line<5000` that the search can neither confirm nor refute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedFailCondition {
    /// The reason why the fail condition is undecided, as a sentence without a full stop.
    pub why: String,
    /// The budget of a search that would probably decide the fail condition, ns. `None` means that
    /// the search would take more than an hour, or that more time does not help.
    pub budget_ns: Option<u64>,
}

/// The maximum search budget that a message proposes, ns: one hour. Changing the value of a fail
/// condition is more useful than waiting for a longer search.
const PROPOSED_BUDGET_NS_MAX: f64 = 3600e9;

/// Why the text of a fail condition could not be parsed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FailConditionError {
    /// The text has no comparison operator.
    #[error("'{0}' is no condition; write for example line<5000")]
    NoOperator(String),
    /// A search has no figure with this name.
    #[error(
        "'{0}' is not a result of a search. Choose line (or rate), peak (or goodput), knee, scale or cpu, such \
         as line<5000"
    )]
    Figure(String),
    /// The value on the right of the operator cannot be parsed in the unit of the figure, a number
    /// or a time.
    #[error(transparent)]
    Value(#[from] UnitError),
}

impl FailConditionError {
    /// Returns the error as a whole sentence, with a correct way to write the fail condition.
    pub fn error_sentence(&self) -> Sentence {
        let said = Sentence::from(self.to_string());
        match self {
            FailConditionError::Figure(_) => said
                .words(". ")
                .words("A bound on response times or success belongs in the SLO (")
                .remedy(Remedy::Slo)
                .words(")"),
            FailConditionError::NoOperator(_) | FailConditionError::Value(_) => said,
        }
    }
}

impl FailCondition {
    /// Parses a list of fail conditions such as `line<5000, cpu>2ms`.
    pub fn parse_list(text: &str) -> Result<Vec<FailCondition>, FailConditionError> {
        text.split(',').map(FailCondition::parse).collect()
    }

    /// Parses one fail condition such as `line<5000`.
    pub fn parse(text: &str) -> Result<FailCondition, FailConditionError> {
        let text = text.trim();
        let (name, op, value) = Op::split(text).ok_or_else(|| FailConditionError::NoOperator(text.to_owned()))?;
        let figure = match name.to_ascii_lowercase().as_str() {
            "line" | "rate" | "rps" => FailConditionFigure::Line,
            "peak" | "goodput" | "throughput" => FailConditionFigure::Peak,
            "knee" => FailConditionFigure::Knee,
            "scale" => FailConditionFigure::Scale,
            "cpu" => FailConditionFigure::Cpu,
            _ => return Err(FailConditionError::Figure(name.to_owned())),
        };
        let value = match figure {
            FailConditionFigure::Cpu => parse_duration_ns(value)? as f64,
            FailConditionFigure::Scale => parse_number(value.trim_end_matches(['x', 'X']))?,
            FailConditionFigure::Line | FailConditionFigure::Peak | FailConditionFigure::Knee => parse_number(value)?,
        };
        Ok(FailCondition { figure, op, value })
    }

    /// Returns whether the fail condition compares the load line with the rate of an access log.
    pub fn compares_with_log(&self) -> bool {
        self.figure == FailConditionFigure::Scale
    }

    /// Returns the reason why the search cannot decide the fail condition; `None` if the search
    /// can. The load line is known only as an interval. A fail condition whose value lies inside
    /// the interval is undecided, wherever in the interval the estimate of the load line lies.
    /// `budget_ns` is the budget of the search.
    pub fn undecided_fail_condition(
        &self,
        findings: &Findings,
        cpu_ns: Option<f64>,
        budget_ns: u64,
    ) -> Option<UndecidedFailCondition> {
        let line = &findings.load_line;
        let unmeasured = || Some(UndecidedFailCondition { why: "nothing was measured".to_owned(), budget_ns: None });
        let unit = match self.figure {
            // If the search found no load line, a fail condition on the load line counts as
            // decided, and the gate fails.
            FailConditionFigure::Line | FailConditionFigure::Scale if line.rps <= 0.0 => return None,
            FailConditionFigure::Line => 1.0,
            FailConditionFigure::Scale => match findings.access_log_rate {
                Some(log) => log.multiple_of_mean_rate(1.0),
                None => return unmeasured(),
            },
            FailConditionFigure::Peak if findings.peak.is_none() => return unmeasured(),
            FailConditionFigure::Knee if findings.knee.is_none() => return unmeasured(),
            FailConditionFigure::Cpu if cpu_ns.is_none() => return unmeasured(),
            FailConditionFigure::Peak | FailConditionFigure::Knee | FailConditionFigure::Cpu => return None,
        };
        let (lower, upper) = (line.lower * unit, line.upper.map(|upper| upper * unit));
        if self.op.holds(lower, self.value) == self.op.holds(upper.unwrap_or(f64::INFINITY), self.value) {
            return None;
        }
        let (lower_rate, condition_rate) = (format::rate(lower), format::rate(self.value));
        let why = match upper.map(format::rate) {
            Some(upper_rate) => {
                format!(
                    "the load line lies between {lower_rate} and {upper_rate}, and {condition_rate} is inside this \
                     interval"
                )
            }
            None => format!(
                "the load line is at least {lower_rate}, but no higher rate was tried, so {condition_rate} may be \
                 above or below the load line"
            ),
        };
        // The load line's interval narrows with the square root of the search time.
        let needed = upper.map(|upper| {
            let distance = (self.value - (lower + upper) / 2.0).abs().max((upper - lower) / 100.0);
            budget_ns as f64 * ((upper - lower) / 2.0 / distance).powi(2).max(2.0)
        });
        let budget_ns = needed.filter(|ns| *ns <= PROPOSED_BUDGET_NS_MAX).map(|ns| (ns / 1e9).round() as u64 * SECOND);
        Some(UndecidedFailCondition { why, budget_ns })
    }

    /// Returns the measured figure in words if the fail condition is true, so that the gate
    /// fails. A missing figure also fails the gate: without evidence, a gate must not pass.
    /// `cpu_ns` is the server's CPU time for each request at the load line, ns, if it was observed.
    pub fn failure_text(&self, findings: &Findings, cpu_ns: Option<f64>) -> Option<String> {
        let figure = match self.figure {
            FailConditionFigure::Line => Some(findings.load_line.rps).filter(|line| *line > 0.0),
            FailConditionFigure::Peak => findings.peak.as_ref().map(|peak| peak.rps),
            FailConditionFigure::Knee => findings.knee.as_ref().map(|knee| knee.users as f64),
            FailConditionFigure::Scale => {
                let line = Some(findings.load_line.rps).filter(|line| *line > 0.0);
                findings.access_log_rate.zip(line).map(|(log, line)| log.multiple_of_mean_rate(line))
            }
            FailConditionFigure::Cpu => cpu_ns,
        };
        match figure {
            None => Some("nothing was measured".to_owned()),
            Some(figure) if self.op.holds(figure, self.value) => Some(match self.figure {
                FailConditionFigure::Line => format!(
                    "the load line was {rate} {requests_or_sessions}/s",
                    rate = format::rate(figure),
                    requests_or_sessions = findings.rate_unit
                ),
                FailConditionFigure::Peak => {
                    format!(
                        "the peak was {rate} {counted}/s",
                        rate = format::rate(figure),
                        counted = findings.rate_unit
                    )
                }
                FailConditionFigure::Scale => {
                    format!(
                        "the load line was {factor} times the mean rate of the log",
                        factor = format::format_factor(figure)
                    )
                }
                FailConditionFigure::Knee => format!(
                    "the knee (95 % of the peak goodput) was at {users} users",
                    users = format::count(figure as u64)
                ),
                FailConditionFigure::Cpu => format!(
                    "the server's CPU time per request was {cpu_time} at the load line",
                    cpu_time = format::duration(figure)
                ),
            }),
            Some(_) => None,
        }
    }
}

impl fmt::Display for FailCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = match self.figure {
            FailConditionFigure::Line => ("line", format_number(self.value)),
            FailConditionFigure::Peak => ("peak", format_number(self.value)),
            FailConditionFigure::Knee => ("knee", format_number(self.value)),
            FailConditionFigure::Scale => ("scale", format_number(self.value)),
            FailConditionFigure::Cpu => ("cpu", duration_in_condition_syntax(self.value)),
        };
        write!(f, "{name}{}{value}", self.op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::{AccessLogRate, SearchSettings, StopReason, findings};
    use plimsoll_model::{ArrivalSpacing, LoadCurve, LoadShape, Plan};

    #[test]
    fn gate_conditions_are_parsed_and_evaluated() {
        let base =
            Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }).record();
        let slo = crate::Slo::default();
        let (arrivals, preflight_ns) = (ArrivalSpacing::Constant, 0);
        let settings = SearchSettings { base, slo, budget_ns: 1, max_rate: None, arrivals, preflight_ns };
        let mut found = findings::findings_from_trials(&settings, &[], 1, StopReason::Budget);
        found.load_line.rps = 4000.0;
        for (text, expect) in [
            ("line<5000", Ok(Some("the load line was 4 000 requests/s"))),
            ("rate<5k", Ok(Some("the load line was 4 000 requests/s"))),
            ("line<4000", Ok(None)),
            ("line<=4000", Ok(Some("the load line was 4 000 requests/s"))),
            ("goodput<1", Ok(Some("nothing was measured"))),
            ("knee>1", Ok(Some("nothing was measured"))),
            ("CPU > 1.5ms", Ok(Some("the server's CPU time per request was 2.00 ms at the load line"))),
            ("cpu>2.5ms", Ok(None)),
            ("p99>5ms", Err("line<5000")),
            ("p99>5ms", Err("Choose line (or rate), peak (or goodput), knee, scale or cpu")),
            ("scale<2x", Ok(Some("nothing was measured"))),
            ("line", Err("no condition")),
            ("line<fast", Err("not a number")),
            ("cpu<fast", Err("not a time")),
        ] {
            match (FailCondition::parse(text).map(|condition| condition.failure_text(&found, Some(2e6))), expect) {
                (Ok(got), Ok(expect)) => assert_eq!(got.as_deref(), expect, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
        let (requests, sessions, span_ns, mean_rps) = (1, 1, 1, 1000.0);
        let (busiest_minute_rps, busiest_second_rps) = (None, None);
        let log = AccessLogRate { requests, sessions, span_ns, mean_rps, busiest_minute_rps, busiest_second_rps };
        found.access_log_rate = Some(log);
        for (text, expect) in
            [("scale<5x", Some("the load line was 4.00 times the mean rate of the log")), ("scale<4", None)]
        {
            let condition = FailCondition::parse(text).expect("read");
            assert_eq!(
                (condition.failure_text(&found, None).as_deref(), condition.compares_with_log()),
                (expect, true),
                "{text}"
            );
        }
        // A fail condition whose value lies inside the load line's interval is undecided. For a
        // value outside the interval, the estimate of the load line decides the fail condition.
        found.load_line.lower = 3900.0;
        found.load_line.upper = Some(4100.0);
        for (text, undecided, budget_s) in [
            ("line<3800", false, None),
            ("line<5000", false, None),
            ("line<4050", true, Some(240)),
            ("line<3950", true, Some(240)),
            ("line<4000", true, None),
            ("scale<4.05", true, Some(240)),
            ("scale<5", false, None),
            ("knee>1", true, None),
        ] {
            let got = FailCondition::parse(text).expect("read").undecided_fail_condition(&found, None, 60_000_000_000);
            assert_eq!(got.is_some(), undecided, "{text}: {got:?}");
            assert_eq!(got.and_then(|got| got.budget_ns).map(|ns| ns / 1_000_000_000), budget_s, "{text}");
        }
        found.load_line.upper = None;
        assert!(
            FailCondition::parse("line<5000").expect("read").undecided_fail_condition(&found, None, 1).is_some(),
            "it may be higher"
        );
        let list = FailCondition::parse_list("rate<5k, cpu>1.5ms").expect("read");
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>(), ["line<5000", "cpu>1.5ms"]);
    }
}
