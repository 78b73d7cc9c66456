//! Scales map values to positions between 0 and 1, and choose the ticks of an axis.
//!
//! Every function accepts any input: no value, one value, infinities, NaN. A position is always
//! finite. Ticks are in ascending order and inside the range, and never exceed the requested
//! number.
//!
//! Not here: pixels, colours, text.

/// The kind of mapping from values to positions on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScaleKind {
    Linear,
    Log,
    /// A scale as in HdrHistogram's percentile plots: 90 %, 99 %, 99.9 % and so on are equally far
    /// apart.
    Percentile,
}

/// A range of values and its mapping to positions from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    kind: ScaleKind,
    lo: f64,
    hi: f64,
}

/// The upper end of a log scale is at least ten times this value. The logarithm of 0 is infinite,
/// so all values below `LOG_FLOOR` / 10^6 are drawn at the position of `LOG_FLOOR` / 10^6.
const LOG_FLOOR: f64 = 1e-9;
/// The largest absolute value on any scale. Larger values are clamped to this limit.
const ABSOLUTE_VALUE_MAX: f64 = 1e300;

/// Returns the minimum and the maximum of the finite values; `None` if no value is finite.
pub fn finite_extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|v| v.is_finite()).map(|v| v.clamp(-ABSOLUTE_VALUE_MAX, ABSOLUTE_VALUE_MAX));
    finite.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((lo, hi)) => Some((f64::min(lo, v), f64::max(hi, v))),
    })
}

impl Scale {
    /// Creates a linear scale from `lo` to `hi`. An empty range is widened.
    pub fn linear(lo: f64, hi: f64) -> Scale {
        let (lo, hi) = order_and_clamp(lo, hi, 0.0, 1.0);
        let hi = if hi - lo > lo.abs().max(hi.abs()) * 1e-9 { hi } else { lo + lo.abs().max(1.0) };
        Scale { kind: ScaleKind::Linear, lo, hi }
    }

    /// Creates a linear scale that begins at 0, contains all `values`, and ends on a tick. The
    /// scale has at most `n` ticks.
    pub fn from_zero(values: impl IntoIterator<Item = f64>, n: usize) -> Scale {
        let hi = finite_extent(values).map_or(1.0, |(_, hi)| hi);
        let hi = if hi > 0.0 { hi } else { 1.0 };
        let step = nice_step(hi, n.max(2) - 1);
        Scale::linear(0.0, (hi / step - 1e-9).ceil() * step)
    }

    /// Creates a log scale from `lo` to `hi`. An empty range is widened. If the lower end is 0 or
    /// less, it is replaced by a thousandth of the upper end.
    pub fn logarithmic(lo: f64, hi: f64) -> Scale {
        let (lo, hi) = order_and_clamp(lo, hi, 1.0, 10.0);
        let hi = hi.max(LOG_FLOOR * 10.0);
        let lo = if lo > 0.0 { lo.max(hi / 1e15) } else { hi / 1e3 };
        let hi = if hi / lo > 1.0 + 1e-9 { hi } else { lo * 10.0 };
        Scale { kind: ScaleKind::Log, lo, hi }
    }

    /// Creates a log scale over all positive `values`. Both ends are rounded outwards to 1, 2 or 5
    /// times a power of ten.
    pub fn log_covering(values: impl IntoIterator<Item = f64>) -> Scale {
        let (lo, hi) = finite_extent(values.into_iter().filter(|v| *v > 0.0)).unwrap_or((1.0, 10.0));
        Scale::logarithmic(round_to_1_2_or_5(lo, false), round_to_1_2_or_5(hi, true))
    }

    /// Creates the percentile scale from 0 to the quantile `1 - 10^-nines`. `nines` is clamped to
    /// 1..=12, so the scale reaches at least 90 %.
    pub fn percentile(nines: f64) -> Scale {
        let nines = if nines.is_finite() { nines.clamp(1.0, 12.0) } else { 1.0 };
        Scale { kind: ScaleKind::Percentile, lo: 0.0, hi: 1.0 - 10f64.powf(-nines) }
    }

    /// Returns the minimum and maximum value of the scale.
    pub fn value_range(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// Returns the name of the scale's kind as the page's script expects it.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.kind {
            ScaleKind::Linear => "linear",
            ScaleKind::Log => "log",
            ScaleKind::Percentile => "percentile",
        }
    }

    /// Returns whether the scale is logarithmic.
    pub fn is_log(&self) -> bool {
        self.kind == ScaleKind::Log
    }

    /// Returns the coordinate of a value on a linear copy of the axis. On a log axis, for example,
    /// the coordinate is the logarithm of the value, so equal ratios of values have equal
    /// distances.
    fn linear_coordinate(&self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => value,
            ScaleKind::Log => value.max(LOG_FLOOR / 1e6).log10(),
            ScaleKind::Percentile => -(1.0 - value.clamp(0.0, 1.0 - 1e-12)).log10(),
        }
    }

    /// Returns the position of `value`: 0 for the minimum, 1 for the maximum. A value outside the
    /// range has the position of the nearest end, and NaN has the position 0.
    pub fn relative_position(&self, value: f64) -> f64 {
        let (lo, hi) = (self.linear_coordinate(self.lo), self.linear_coordinate(self.hi));
        let place = (self.linear_coordinate(value.clamp(-ABSOLUTE_VALUE_MAX, ABSOLUTE_VALUE_MAX)) - lo) / (hi - lo);
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// Returns the value at the position `place`, which is between 0 and 1.
    pub fn value_at(&self, place: f64) -> f64 {
        let (lo, hi) = (self.linear_coordinate(self.lo), self.linear_coordinate(self.hi));
        let straight = lo + (hi - lo) * place.clamp(0.0, 1.0);
        match self.kind {
            ScaleKind::Linear => straight,
            ScaleKind::Log => 10f64.powf(straight),
            ScaleKind::Percentile => 1.0 - 10f64.powf(-straight),
        }
    }

    /// Returns at most `n` round values inside the range, ascending.
    pub fn major_ticks(&self, n: usize) -> Vec<f64> {
        let n = n.max(1);
        let mut ticks = match self.kind {
            ScaleKind::Linear => self.linear_ticks(n),
            ScaleKind::Log => self.log_ticks(n),
            ScaleKind::Percentile => self.percentile_ticks(),
        };
        ticks.retain(|t| t.is_finite() && *t >= self.lo && *t <= self.hi);
        ticks.dedup_by(|b, a| *b <= *a);
        if ticks.len() > n {
            let keep = ticks.len().div_ceil(n);
            ticks = ticks.into_iter().step_by(keep).collect();
        }
        ticks
    }

    fn linear_ticks(&self, n: usize) -> Vec<f64> {
        let step = nice_step(self.hi - self.lo, n.max(2) - 1);
        let first = (self.lo / step - 1e-9).ceil();
        // A tick that differs from the upper end of the range only by a rounding error becomes the
        // upper end.
        let snap = |t: f64| if (t - self.hi).abs() < step * 1e-6 { self.hi } else { t };
        (0..=n).map(|k| snap((first + k as f64) * step)).collect()
    }

    fn log_ticks(&self, n: usize) -> Vec<f64> {
        let (from, to) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        let all = |digits: &[f64]| -> Vec<f64> {
            let ticks = (from..=to).flat_map(|e| digits.iter().map(move |d| snap_decimal(*d, e)));
            ticks.filter(|t| *t >= self.lo && *t <= self.hi).collect()
        };
        for digits in [&[1.0, 2.0, 3.0, 5.0, 7.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0]] {
            let ticks = all(digits);
            if ticks.len() <= n && (2..).contains(&ticks.len()) {
                return ticks;
            }
        }
        let decades = all(&[1.0]);
        if decades.len() >= 2 { decades } else { self.linear_ticks(n.min(4)) }
    }

    fn percentile_ticks(&self) -> Vec<f64> {
        let nines = (2..=12).map(|n| 1.0 - 10f64.powi(-n));
        [0.0, 0.5, 0.75, 0.9].into_iter().chain(nines).collect()
    }

    /// Returns the minor ticks of a log scale: 1 to 9 times each power of ten. Log scales over more
    /// than six decades, and all other kinds of scales, have no minor ticks.
    pub fn minor_ticks(&self) -> Vec<f64> {
        if self.kind != ScaleKind::Log || self.hi / self.lo > 1e6 {
            return Vec::new();
        }
        let (from, to) = (self.lo.log10().floor() as i32, self.hi.log10().ceil() as i32);
        let all = (from..=to).flat_map(|e| (1..=9).map(move |d| snap_decimal(f64::from(d), e)));
        all.filter(|t| *t >= self.lo && *t <= self.hi).collect()
    }
}

/// Returns `digit x 10^exponent`. A negative power of ten is not exact in floating point, so the
/// function divides by the positive power. The division usually gives the same number as a decimal
/// literal such as `0.003`.
fn snap_decimal(digit: f64, exponent: i32) -> f64 {
    if exponent >= 0 { digit * 10f64.powi(exponent) } else { digit / 10f64.powi(-exponent) }
}

fn order_and_clamp(lo: f64, hi: f64, lo_default: f64, hi_default: f64) -> (f64, f64) {
    let lo = if lo.is_finite() { lo.clamp(-ABSOLUTE_VALUE_MAX, ABSOLUTE_VALUE_MAX) } else { lo_default };
    let hi = if hi.is_finite() { hi.clamp(-ABSOLUTE_VALUE_MAX, ABSOLUTE_VALUE_MAX) } else { lo.max(hi_default) };
    (lo.min(hi), lo.max(hi))
}

/// Returns a round step of 1, 2, 2.5, 5 or 10 times a power of ten. The result is the smallest step
/// that divides `span` into at most `parts` parts.
fn nice_step(span: f64, parts: usize) -> f64 {
    let raw = span / parts.max(1) as f64;
    if !(raw.is_finite() && raw > 0.0) {
        return 1.0;
    }
    let unit = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|f| f * unit >= raw * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * unit
}

/// Rounds a positive `value` to 1, 2 or 5 times a power of ten, upwards (`up`) or downwards.
fn round_to_1_2_or_5(value: f64, up: bool) -> f64 {
    let exponent = value.log10().floor() as i32;
    let steps = [1.0, 2.0, 5.0, 10.0].map(|d| snap_decimal(d, exponent));
    if up {
        steps.into_iter().find(|s| *s >= value * (1.0 - 1e-9)).unwrap_or(value)
    } else {
        steps.into_iter().rev().find(|s| *s <= value * (1.0 + 1e-9)).unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn axis_ticks_are_round_numbers() {
        for (scale, n, expect) in [
            (Scale::linear(0.0, 100.0), 6, &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0][..]),
            (Scale::linear(0.0, 10_500.0), 6, &[0.0, 2500.0, 5000.0, 7500.0, 10_000.0]),
            (Scale::linear(3.0, 17.0), 4, &[5.0, 10.0, 15.0]),
            (Scale::linear(-1.0, 1.0), 5, &[-1.0, -0.5, 0.0, 0.5, 1.0]),
            (Scale::linear(0.0, 0.3), 4, &[0.0, 0.1, 0.2, 0.3]),
            (Scale::linear(5.0, 5.0), 6, &[5.0, 6.0, 7.0, 8.0, 9.0, 10.0]),
            (Scale::from_zero([47_812.0], 6), 6, &[0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0, 50_000.0]),
            (Scale::from_zero([], 3), 3, &[0.0, 0.5, 1.0]),
            (Scale::logarithmic(1.0, 1000.0), 4, &[1.0, 10.0, 100.0, 1000.0]),
            (Scale::logarithmic(1.0, 20.0), 6, &[1.0, 2.0, 5.0, 10.0, 20.0]),
            (Scale::logarithmic(1e5, 5e8), 8, &[1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8]),
            (Scale::logarithmic(1e5, 5e8), 5, &[1e5, 1e6, 1e7, 1e8]),
            (Scale::log_covering([3.0, 70.0]), 6, &[2.0, 5.0, 10.0, 20.0, 50.0, 100.0]),
            (Scale::log_covering([]), 6, &[1.0, 2.0, 3.0, 5.0, 7.0, 10.0]),
            (Scale::percentile(3.0), 8, &[0.0, 0.5, 0.75, 0.9, 0.99, 0.999]),
        ] {
            let got = scale.major_ticks(n);
            let same =
                got.len() == expect.len() && got.iter().zip(expect).all(|(a, b)| (a - b).abs() <= b.abs() * 1e-9);
            assert!(same, "{scale:?} {n}: {got:?}, expected {expect:?}");
        }
    }

    #[test]
    fn scale_positions_are_correct() {
        for (scale, value, place) in [
            (Scale::linear(0.0, 10.0), 5.0, 0.5),
            (Scale::linear(0.0, 10.0), 50.0, 1.0),
            (Scale::linear(0.0, 10.0), f64::NAN, 0.0),
            (Scale::linear(0.0, 10.0), f64::INFINITY, 1.0),
            (Scale::logarithmic(1.0, 100.0), 10.0, 0.5),
            (Scale::logarithmic(1.0, 100.0), 0.0, 0.0),
            (Scale::logarithmic(1.0, 100.0), -5.0, 0.0),
            (Scale::percentile(4.0), 0.99, 0.5),
            (Scale::percentile(4.0), 1.0, 1.0),
        ] {
            assert!(
                (scale.relative_position(value) - place).abs() < 1e-9,
                "{scale:?} at {value}: {}",
                scale.relative_position(value)
            );
        }
    }

    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => -1e12..1e12f64,
            2 => -1.0..1.0f64,
            1 => prop::num::f64::ANY,
            1 => Just(0.0),
        ]
    }

    fn any_scale() -> impl Strategy<Value = Scale> {
        (any_number(), any_number(), 0..6).prop_map(|(a, b, kind)| match kind {
            0 => Scale::linear(a, b),
            1 => Scale::logarithmic(a, b),
            2 => Scale::percentile(a),
            3 => Scale::from_zero([a, b], 6),
            _ => Scale::log_covering([a, b]),
        })
    }

    proptest! {
        #[test]
        fn axis_ticks_are_inside_ascending_and_few(scale in any_scale(), n in 1..20usize) {
            let ticks = scale.major_ticks(n);
            prop_assert!(ticks.len() <= n, "{scale:?}: {ticks:?}");
            prop_assert!(ticks.iter().all(|t| t.is_finite() && *t >= scale.lo && *t <= scale.hi), "{scale:?}: {ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{scale:?}: {ticks:?}");
            prop_assert!(scale.minor_ticks().iter().all(|t| t.is_finite()));
        }

        #[test]
        fn scale_positions_are_finite_and_ordered(scale in any_scale(), a in any_number(), b in any_number()) {
            let (at_a, at_b) = (scale.relative_position(a), scale.relative_position(b));
            prop_assert!((0.0..=1.0).contains(&at_a) && (0.0..=1.0).contains(&at_b));
            prop_assert!(a.is_nan() || b.is_nan() || a > b || at_a <= at_b, "{scale:?}: {a} at {at_a}, {b} at {at_b}");
            prop_assert!(scale.lo < scale.hi && scale.lo.is_finite() && scale.hi.is_finite(), "{scale:?}");
        }

        #[test]
        fn a_scale_position_converts_back_to_its_value(lo in 1e-6..1e6f64, factor in 1.1..1e6f64, share in 0.0..1.0f64) {
            for scale in [Scale::linear(lo, lo * factor), Scale::logarithmic(lo, lo * factor), Scale::percentile(4.0)] {
                let value = scale.value_at(share);
                prop_assert!((scale.relative_position(value) - share).abs() < 1e-6, "{scale:?}: {share} gives {value}");
            }
        }
    }
}
