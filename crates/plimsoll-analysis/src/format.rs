//! Formats numbers for people: three significant digits, suitable units, no false precision. All
//! figures in all outputs are formatted here, so that one value is always written in the same way.
//!
//! Not here: conditions and SLOs, such as `p99<=500ms`. Conditions and SLOs have a syntax of their
//! own, because plimsoll parses them again. See [`crate::condition`].

use crate::sentence::{Remedy, Sentence};
pub use plimsoll_model::calendar::format_utc_date;
use plimsoll_model::{EarlyStopReason, LoadSkipReason};

/// Formats the reason why a load was stopped.
pub fn stop_reason(stop: &EarlyStopReason) -> &str {
    match stop {
        EarlyStopReason::Interrupted => "interrupted",
        EarlyStopReason::RequestsExhausted => {
            "the data file has no unused row left (pick = \"unique\" uses each row once)"
        }
        EarlyStopReason::CannotContinue(reason)
        | EarlyStopReason::Condition(reason)
        | EarlyStopReason::ResultCertain(reason) => reason,
    }
}

/// Formats the reason why a load was skipped.
pub fn skip_reason(reason: &LoadSkipReason) -> Sentence {
    match reason {
        LoadSkipReason::NoTime => Sentence::from("the available time ended before this load: give more time (")
            .remedy(Remedy::Budget)
            .words(")"),
        LoadSkipReason::Machine(reason) => reason.as_str().into(),
    }
}

/// Formats a time in ns with a suitable unit: `21.4 us`, `1.25 ms`, `3.2 s`, `2 m 05 s`.
pub fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 0.5 => "0".into(),
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} us", three_significant_digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", three_significant_digits(ns / 1e6)),
        ns if ns < 119.5e9 => format!("{} s", three_significant_digits(ns / 1e9)),
        ns if ns < 7200e9 => {
            let seconds = (ns / 1e9).round() as u64;
            format!("{} m {:02} s", seconds / 60, seconds % 60)
        }
        ns => format!("{} h", three_significant_digits(ns / 3600e9)),
    }
}

/// Formats a time in ns as the value of a command-line flag, rounded up to whole seconds: `45s`,
/// `4m`, `90m`, `3h`.
pub fn flag_time(ns: u64) -> String {
    let s = ns.div_ceil(1_000_000_000);
    match s {
        s if s >= 7200 && s.is_multiple_of(3600) => format!("{}h", s / 3600),
        s if s >= 120 && s.is_multiple_of(60) => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

/// Formats a number with three significant digits. Trailing zeros are kept, so that columns align.
fn three_significant_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Formats a count with spaces between groups of three digits: `1 234 567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Formats a rate in 1/s. A rate of 100/s or more is a whole number; a lower rate has three
/// significant digits.
pub fn rate(value: f64) -> String {
    if value == 0.0 {
        "0".into()
    } else if value >= 99.95 {
        count(value.round() as u64)
    } else if value < 0.0995 {
        // A rate of one event per hour must not be formatted as 0.
        round_to_digits(value, 2).to_string()
    } else {
        three_significant_digits(value)
    }
}

/// Formats a factor between two values: `0.85`, `3.21`, `120`.
pub fn format_factor(value: f64) -> String {
    rate(value)
}

/// Formats a share (0..=1) as a percentage with three significant digits. From 99.9 % on, the
/// percentage has more digits, because the nines of a success rate matter. The text is never
/// rounded up to 100 % or down to 0 %.
pub fn share(value: f64) -> String {
    match value {
        all if all >= 1.0 => "100 %".into(),
        nines if nines >= 0.999 => {
            let floor = (nines * 1e5).floor() / 1e3;
            format!("{} %", format!("{floor:.3}").trim_end_matches('0').trim_end_matches('.'))
        }
        most if most >= 0.9 => format!("{:.1} %", (most * 1e3).floor() / 10.0),
        none if none <= 0.0 => "0 %".into(),
        little if little < 1e-4 => "<0.01 %".into(),
        part => format!("{} %", three_significant_digits(part * 100.0)),
    }
}

/// Formats a share (0..=1) as a whole percentage, for probabilities and shares of samples, whose
/// decimals have no meaning. The text is 0 % or 100 % only if the share is exactly 0 or 1.
pub fn whole_percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent <= 0.0 => "0 %".to_owned(),
        percent if percent < 1.0 => "<1 %".to_owned(),
        percent if percent > 99.0 && percent < 100.0 => ">99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Formats a share (0..=1) as a percentage with up to three digits and no trailing zeros, as users
/// write bounds.
pub fn short_percent(share: f64) -> String {
    format!("{} %", round_to_digits(share * 100.0, 3))
}

/// Formats a relative change as a signed percentage: `+3.1 %`, `-0.4 %`.
pub fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Rounds `value` to `digits` significant digits, to the float nearest to the decimal number:
/// 2002.3, never 2002.3000000000002. Whole numbers stay unchanged.
pub fn round_to_digits(value: f64, digits: i32) -> f64 {
    if !value.is_finite() || value.fract() == 0.0 {
        return value;
    }
    let places = digits - 1 - value.abs().log10().floor() as i32;
    let near = match places {
        // Powers of ten up to 10^22 are exact floats, so division by a power of ten gives the float
        // nearest to the decimal number.
        1..=22 => (value * 10f64.powi(places)).round() / 10f64.powi(places),
        ..=0 => value.round(),
        _ => value,
    };
    // A value below 1 must not be rounded up to 1.
    if value.abs() < 1.0 && near.abs() >= 1.0 { value } else { near }
}

/// Formats bytes with a decimal unit: `1.25 MB`.
pub fn bytes(value: f64) -> String {
    match value {
        v if v < 999.5 => format!("{v:.0} B"),
        v if v < 999.5e3 => format!("{} kB", three_significant_digits(v / 1e3)),
        v if v < 999.5e6 => format!("{} MB", three_significant_digits(v / 1e6)),
        v => format!("{} GB", three_significant_digits(v / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_readably() {
        for (ns, expect) in [
            (0.0, "0"),
            (512.0, "512 ns"),
            (21_400.0, "21.4 us"),
            (999_400.0, "999 us"),
            (999_600.0, "1.00 ms"),
            (1_250_000.0, "1.25 ms"),
            (450e6, "450 ms"),
            (10e9, "10.0 s"),
            (125e9, "2 m 05 s"),
            (7.2e12, "2.00 h"),
        ] {
            assert_eq!(duration(ns), expect);
        }
        for (value, expect) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(count(value), expect);
        }
        for (value, expect) in [
            (0.0, "0"),
            (0.0023, "0.0023"),
            (0.05, "0.05"),
            (0.3, "0.30"),
            (9.5, "9.50"),
            (52.31, "52.3"),
            (16_206.4, "16 206"),
        ] {
            assert_eq!(rate(value), expect);
        }
        for (value, expect) in [
            (1.0, "100 %"),
            (0.99999, "99.999 %"),
            (0.999_999, "99.999 %"),
            (0.9995, "99.95 %"),
            (0.9989, "99.8 %"),
            (0.99, "99.0 %"),
            (0.939_51, "93.9 %"),
            (0.905, "90.5 %"),
            (0.5, "50.0 %"),
            (0.0643, "6.43 %"),
            (0.001, "0.10 %"),
            (1e-9, "<0.01 %"),
            (0.0, "0 %"),
        ] {
            assert_eq!(share(value), expect, "{value}");
        }
        for (value, expect) in [(0.0, "0 %"), (0.004, "<1 %"), (0.415, "42 %"), (0.996, ">99 %"), (1.0, "100 %")] {
            assert_eq!(whole_percent(value), expect, "{value}");
        }
        for (value, expect) in [
            (2002.3000000000002, 2002.3),
            (0.999_999_999_9, 0.999_999_999_9),
            (1.0 / 3.0, 0.333_333_3),
            (-12.345_678_9, -12.345_68),
            (123_456_789.5, 123_456_790.0),
            (123_456_789.0, 123_456_789.0),
            (0.0, 0.0),
            (1e-30, 1e-30),
        ] {
            assert_eq!(round_to_digits(value, 7), expect, "{value}");
        }
        for (value, expect) in [(0.0, "0 B"), (1500.0, "1.50 kB"), (2.5e9, "2.50 GB")] {
            assert_eq!(bytes(value), expect);
        }
    }
}
