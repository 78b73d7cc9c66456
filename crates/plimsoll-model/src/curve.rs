//! A level over time ([`LoadCurve`]): users or requests a second, stage by stage, in the syntax of
//! the command line.
//!
//! Not here: the load that uses the level ([`crate::load`]).

use crate::units::{self, UnitError};
use serde::{Deserialize, Serialize};

/// One stage of a curve: a linear change from one level to another. The level is users, or requests
/// a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadStage {
    /// Level at the start of the stage (users, or requests a second).
    pub from: f64,
    /// Level at the end of the stage (users, or requests a second).
    pub to: f64,
    /// Length of the stage in ns; `None` means that the stage lasts until the run ends (only for a
    /// single stage).
    pub duration_ns: Option<u64>,
}

/// A level over time: stages in sequence. A constant level is one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadCurve {
    /// The stages in sequence; never empty.
    pub stages: Vec<LoadStage>,
}

/// The maximum number of users of a closed loop.
pub const USERS_MAX: f64 = 1e6;
/// The highest rate of an open loop, 1/s.
pub const RATE_MAX: f64 = 1e8;

impl LoadCurve {
    /// Parses a curve of users: whole numbers up to [`USERS_MAX`].
    ///
    /// # Errors
    /// The error is a sentence with the reason.
    pub fn parse_user_curve(text: &str) -> Result<LoadCurve, String> {
        let curve = LoadCurve::parse(text).map_err(|error| error.to_string())?;
        if let Some(level) = curve.stages.iter().flat_map(|s| [s.from, s.to]).find(|level| level.fract() != 0.0) {
            return Err(format!("the number of users must be a whole number, not {level}"));
        }
        if curve.max() > USERS_MAX { Err("a load can have at most 1M users".into()) } else { Ok(curve) }
    }

    /// Parses a curve of rates, 1/s.
    ///
    /// # Errors
    /// The error is a sentence with the reason.
    pub fn parse_rate_curve(text: &str) -> Result<LoadCurve, String> {
        let curve = LoadCurve::parse(text).map_err(|error| error.to_string())?;
        if curve.max() > RATE_MAX { Err("a rate can be at most 100M requests a second".into()) } else { Ok(curve) }
    }
}

/// Why a curve could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// A level or a time cannot be parsed.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The curve has a negative level.
    #[error("'{0}' is negative; a level is 0 or more")]
    Negative(String),
    /// The level of the curve is always zero.
    #[error("'{0}' results in no load")]
    Zero(String),
    /// The curve has several stages, and one of the stages has no length.
    #[error("'{0}' has no length; with several stages write each as LEVEL@TIME, such as 10@10s,100@30s")]
    NoLength(String),
    /// A stage with a changing level has no length.
    #[error("'{0}' is a ramp without a length; write FROM..TO@TIME, such as 0..5000@30s")]
    RampNoLength(String),
    /// A stage has a length of zero.
    #[error("'{0}' has a duration of zero")]
    ZeroLength(String),
}

impl LoadCurve {
    /// Creates a curve with a constant level until the run ends.
    pub fn constant(level: f64) -> LoadCurve {
        LoadCurve { stages: vec![LoadStage { from: level, to: level, duration_ns: None }] }
    }

    /// Creates a curve with a constant level for a fixed time.
    pub fn constant_for_duration(level: f64, duration_ns: u64) -> LoadCurve {
        LoadCurve { stages: vec![LoadStage { from: level, to: level, duration_ns: Some(duration_ns) }] }
    }

    /// Parses a curve such as `100`, `10@10s,100@30s` or `0..5000@30s,5000@60s`.
    pub fn parse(text: &str) -> Result<LoadCurve, CurveError> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let mut stages = Vec::with_capacity(parts.len());
        for part in &parts {
            let (levels, length) = match part.split_once('@') {
                Some((levels, length)) => (levels, Some(units::parse_duration_ns(length)?)),
                None => (*part, None),
            };
            let (from, to) = match levels.split_once("..") {
                Some((from, to)) => (units::parse_number(from)?, units::parse_number(to)?),
                None => {
                    let level = units::parse_number(levels)?;
                    (level, level)
                }
            };
            if from < 0.0 || to < 0.0 {
                return Err(CurveError::Negative((*part).to_owned()));
            }
            match length {
                None if parts.len() > 1 => return Err(CurveError::NoLength((*part).to_owned())),
                None if from != to => return Err(CurveError::RampNoLength((*part).to_owned())),
                Some(0) => return Err(CurveError::ZeroLength((*part).to_owned())),
                _ => stages.push(LoadStage { from, to, duration_ns: length }),
            }
        }
        if stages.iter().all(|s| s.from == 0.0 && s.to == 0.0) {
            return Err(CurveError::Zero(text.to_owned()));
        }
        Ok(LoadCurve { stages })
    }

    /// Returns the part of the curve before `end_ns`.
    pub fn part_before(&self, end_ns: u64) -> LoadCurve {
        let (mut stages, mut at_ns) = (Vec::new(), 0u64);
        for stage in &self.stages {
            let left_ns = end_ns.saturating_sub(at_ns);
            match stage.duration_ns {
                _ if left_ns == 0 => break,
                None => stages.push(LoadStage { duration_ns: Some(left_ns), ..*stage }),
                Some(ns) if ns <= left_ns => stages.push(*stage),
                Some(ns) => {
                    let to = stage.from + (stage.to - stage.from) * (left_ns as f64 / ns as f64);
                    stages.push(LoadStage { to, duration_ns: Some(left_ns), ..*stage });
                }
            }
            at_ns = at_ns.saturating_add(stage.duration_ns.unwrap_or(u64::MAX));
        }
        LoadCurve { stages }
    }

    /// Returns the curve with every level multiplied by `factor`.
    pub fn scale_levels(&self, factor: f64) -> LoadCurve {
        let stage = |stage: &LoadStage| LoadStage { from: stage.from * factor, to: stage.to * factor, ..*stage };
        LoadCurve { stages: self.stages.iter().map(stage).collect() }
    }

    /// Total length of the curve in ns; `None` means that the curve is open-ended.
    pub fn duration_ns(&self) -> Option<u64> {
        self.stages.iter().map(|s| s.duration_ns).sum()
    }

    /// Returns the highest level of the curve.
    pub fn max(&self) -> f64 {
        self.stages.iter().fold(0.0, |max, s| max.max(s.from).max(s.to))
    }
}

impl std::fmt::Display for LoadCurve {
    /// Writes the curve in the syntax that [`LoadCurve::parse`] reads.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, LoadStage { from, to, duration_ns }) in self.stages.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "," })?;
            write!(f, "{from}")?;
            if from != to {
                write!(f, "..{to}")?;
            }
            if let Some(ns) = duration_ns {
                write!(f, "@{}", units::format_exact_duration(*ns))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND;

    #[test]
    fn curves_parse_or_explain_the_error() {
        let stage = |from, to, s: Option<u64>| LoadStage { from, to, duration_ns: s.map(|s| s * SECOND) };
        for (text, expect) in [
            ("100", Ok(vec![stage(100.0, 100.0, None)])),
            ("1k@5s", Ok(vec![stage(1000.0, 1000.0, Some(5))])),
            ("10@10s,100@30s", Ok(vec![stage(10.0, 10.0, Some(10)), stage(100.0, 100.0, Some(30))])),
            ("0..5000@30s,5000@60s", Ok(vec![stage(0.0, 5000.0, Some(30)), stage(5000.0, 5000.0, Some(60))])),
            ("10,20@5s", Err("no length")),
            ("0..50", Err("ramp without a length")),
            ("-5", Err("negative")),
            ("0", Err("no load")),
            ("0@5s", Err("no load")),
            ("5@0s", Err("has a duration of zero")),
            ("", Err("not a number")),
            ("5@", Err("not a time")),
            ("5@x", Err("not a time")),
        ] {
            match (LoadCurve::parse(text), expect) {
                (Ok(curve), Ok(stages)) => assert_eq!(curve.stages, stages, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
            }
        }
    }

    #[test]
    fn formatted_curves_parse_back() {
        for (text, expect) in [
            ("100", "100"),
            ("0.35@90", "0.35@90s"),
            ("1k@1500ms,2k@20us", "1000@1500ms,2000@20000ns"),
            ("0..5k@30s,5k@1m", "0..5000@30s,5000@60s"),
        ] {
            let curve = LoadCurve::parse(text).expect(text);
            assert_eq!(curve.to_string(), expect);
            assert_eq!(LoadCurve::parse(&curve.to_string()).expect(expect), curve);
        }
    }

    #[test]
    fn a_shortened_curve_keeps_its_beginning() {
        for (text, end_s, expect) in [
            ("100", 5, "100@5s"),
            ("100@3s", 5, "100@3s"),
            ("100@3s,200@4s", 5, "100@3s,200@2s"),
            ("100@3s,200@4s", 3, "100@3s"),
            ("0..100@10s", 5, "0..50@5s"),
        ] {
            assert_eq!(
                LoadCurve::parse(text).expect(text).part_before(end_s * SECOND).to_string(),
                expect,
                "{text} {end_s}"
            );
        }
        assert_eq!(LoadCurve::parse("1..2@3s,4@5s").expect("reads").scale_levels(2.5).to_string(), "2.5..5@3s,10@5s");
    }
}
