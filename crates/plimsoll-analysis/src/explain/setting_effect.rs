//! The effect of a server's setting on the goodput ([`SettingEffect`]). The effect is an
//! elasticity: the slope of log goodput over log value. With an elasticity of 1, twice the value
//! gives twice the goodput; with 0, the setting has no effect.
//!
//! Not here: the command that changes the setting.

use super::signals::{LoadSignals, Signal};
use plimsoll_model::Run;

/// The minimum elasticity of a setting that limits the load line: the goodput follows the setting
/// nearly one to one.
const LIMITING_ELASTICITY_MIN: f64 = 0.7;
/// The maximum elasticity of a setting that does not limit the load line.
const NON_LIMITING_ELASTICITY_MAX: f64 = 0.1;

/// The result of a load that was made while the server's changed setting had one value.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingValueLoad {
    /// The value of the setting.
    pub value: f64,
    /// Goodput with this value, 1/s.
    pub goodput_rps: f64,
    /// Whether plimsoll or other processes were the limit, so that the load has no information
    /// about the server.
    pub is_void: bool,
}

/// A setting of the server that was changed between loads, and its effect on the goodput.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingEffect {
    /// The loads with their values of the setting, in order of time.
    pub steps: Vec<SettingValueLoad>,
    /// The slope of log goodput over log value, over all valid loads; `None` with fewer than two
    /// values.
    pub elasticity: Option<f64>,
}

impl SettingEffect {
    /// Computes the effect from these loads, each with its value of the setting; `None` without
    /// loads.
    pub fn from_loads(loads: &[(f64, &Run)]) -> Option<SettingEffect> {
        let step = |(value, run): &(f64, &Run)| {
            let sight = LoadSignals::from_run(run);
            SettingValueLoad {
                value: *value,
                goodput_rps: sight.get(Signal::Goodput).unwrap_or(0.0),
                is_void: sight.limited.is_some() || sight.disturbed.is_some(),
            }
        };
        let steps: Vec<SettingValueLoad> = loads.iter().map(step).collect();
        (!steps.is_empty()).then(|| SettingEffect { elasticity: goodput_elasticity(&steps), steps })
    }

    /// Returns whether the setting limits the load line. Returns `None` if the elasticity is not
    /// known, or lies between the two thresholds.
    pub fn limits_load_line(&self) -> Option<bool> {
        match self.elasticity? {
            elasticity if elasticity >= LIMITING_ELASTICITY_MIN => Some(true),
            elasticity if elasticity <= NON_LIMITING_ELASTICITY_MAX => Some(false),
            _ => None,
        }
    }
}

fn goodput_elasticity(steps: &[SettingValueLoad]) -> Option<f64> {
    let counting = steps.iter().filter(|step| !step.is_void && step.value > 0.0 && step.goodput_rps > 0.0);
    let points: Vec<(f64, f64)> = counting.map(|step| (step.value.ln(), step.goodput_rps.ln())).collect();
    let n = points.len() as f64;
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let (xy, xx) = points
        .iter()
        .fold((0.0, 0.0), |sum, (x, y)| (sum.0 + (x - mean_x) * (y - mean_y), sum.1 + (x - mean_x).powi(2)));
    (points.len() >= 2 && xx > 0.0).then(|| xy / xx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elasticity_is_a_slope_on_logarithmic_scales() {
        let step = |(value, goodput_rps, is_void): &(f64, f64, bool)| SettingValueLoad {
            value: *value,
            goodput_rps: *goodput_rps,
            is_void: *is_void,
        };
        for (told, expect) in [
            (&[(2.0, 100.0, false), (4.0, 200.0, false), (8.0, 400.0, false)][..], Some(1.0)),
            (&[(2.0, 100.0, false), (8.0, 100.0, false)], Some(0.0)),
            (&[(2.0, 100.0, false), (8.0, 200.0, false)], Some(0.5)),
            // The load with a goodput of 210/s is void, so it has no effect on the elasticity.
            (&[(2.0, 100.0, false), (4.0, 200.0, false), (8.0, 210.0, true)], Some(1.0)),
            (&[(2.0, 100.0, false), (4.0, 0.0, false)], None),
            (&[(2.0, 100.0, false), (2.0, 110.0, false)], None),
            (&[], None),
        ] {
            let steps: Vec<SettingValueLoad> = told.iter().map(step).collect();
            let found = goodput_elasticity(&steps);
            assert!(found.zip(expect).map_or(found == expect, |(a, b)| (a - b).abs() < 1e-9), "{told:?}: {found:?}");
            let holds = expect.and_then(|elasticity| match elasticity {
                1.0 => Some(true),
                0.0 => Some(false),
                _ => None,
            });
            assert_eq!(SettingEffect { steps, elasticity: found }.limits_load_line(), holds, "{told:?}");
        }
    }
}
