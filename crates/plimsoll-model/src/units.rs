//! Parsers of numbers and times as people write them: `10k`, `1.5M`, `30s`, `250ms`, `99.9%`. Not
//! here: the format of results (`plimsoll-report`).

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Longest accepted time, ns: ten years. The sum of twenty such times still fits an i64.
pub const TIME_NS_MAX: u64 = 10 * 366 * 86_400 * 1_000_000_000;

/// Why a number or time could not be read. The error text contains the input and the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text is not a number with an optional SI suffix.
    #[error("'{0}' is not a number; write for example 250, 10k or 1.5M")]
    Number(String),
    /// The text is not a whole, non-negative number.
    #[error("'{0}' is not a whole number")]
    NotWhole(String),
    /// The text is not a time with a unit.
    #[error("'{0}' is not a time; write for example 250ms, 30s, 5m or 1h")]
    Duration(String),
    /// The text is not a percentage or a fraction between 0 and 1.
    #[error("'{0}' is not a share; write for example 99.9% or 0.999")]
    Share(String),
}

/// Reads a number with an optional SI suffix (`k`, `M`, `G`; case does not matter, as in wrk):
/// `10k` is 10 000.
pub fn parse_number(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let error = || UnitError::Number(text.to_owned());
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return Err(error());
    }
    let number: f64 = digits.trim_end().parse().map_err(|_| error())?;
    if number.is_finite() { Ok(number * factor) } else { Err(error()) }
}

/// Reads a whole, non-negative number with an optional SI suffix.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    let number = parse_number(text)?;
    if number < 0.0 || number.fract() != 0.0 || number > 1e15 {
        return Err(UnitError::NotWhole(text.trim().to_owned()));
    }
    Ok(number as u64)
}

/// Reads a time into nanoseconds. The units are `ns`, `us`, `ms`, `s`, `m` and `h`, and several
/// times may follow each other (`1m30s`). A bare number is seconds, as in wrk.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    let text = text.trim();
    let error = || UnitError::Duration(text.to_owned());
    let mut rest = text;
    let mut total_ns = 0.0_f64;
    if rest.is_empty() {
        return Err(error());
    }
    while !rest.is_empty() {
        let is_first = rest.len() == text.len();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| error())?;
        rest = rest[digits..].trim_start();
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let factor = match rest[..unit].trim() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "" if is_first && rest.is_empty() => 1e9,
            _ => return Err(error()),
        };
        total_ns += number * factor;
        rest = &rest[unit..];
    }
    // A time above ten years is refused as a mistake of the user.
    if total_ns > TIME_NS_MAX as f64 { Err(error()) } else { Ok(total_ns.round() as u64) }
}

/// Formats a time in the syntax of [`parse_duration_ns`], exact to the nanosecond.
pub fn format_exact_duration(ns: u64) -> String {
    match ns {
        ns if ns.is_multiple_of(SECOND) => format!("{}s", ns / SECOND),
        ns if ns.is_multiple_of(MS) => format!("{}ms", ns / MS),
        ns => format!("{ns}ns"),
    }
}

/// Reads a share: `99.9%` or `0.999`, between 0 and 1.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let text = text.trim();
    let error = || UnitError::Share(text.to_owned());
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map_err(|_| error())? / 100.0,
        None => text.parse::<f64>().map_err(|_| error())?,
    };
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_parse_or_fail() {
        for (text, expect) in [
            ("0", Ok(0.0)),
            ("250", Ok(250.0)),
            ("10k", Ok(10_000.0)),
            ("10K", Ok(10_000.0)),
            ("1.5M", Ok(1_500_000.0)),
            ("2G", Ok(2e9)),
            ("-3", Ok(-3.0)),
            (" 7 ", Ok(7.0)),
            ("", Err(())),
            ("k", Err(())),
            ("ten", Err(())),
            ("inf", Err(())),
            ("NaN", Err(())),
            ("1 000", Err(())),
        ] {
            assert_eq!(parse_number(text).map_err(|_| ()), expect, "{text:?}");
        }
        assert_eq!(parse_count("1.5k"), Ok(1_500));
        assert_eq!(parse_count("1.5"), Err(UnitError::NotWhole("1.5".into())));
        assert_eq!(parse_count("-1"), Err(UnitError::NotWhole("-1".into())));
    }

    #[test]
    fn durations_parse_or_fail() {
        for (text, expect) in [
            ("30s", Ok(30 * SECOND)),
            ("250ms", Ok(250 * MS)),
            ("5m", Ok(300 * SECOND)),
            ("1h", Ok(3600 * SECOND)),
            ("1m30s", Ok(90 * SECOND)),
            ("1.5s", Ok(1_500 * MS)),
            ("10", Ok(10 * SECOND)),
            ("20us", Ok(20_000)),
            ("0s", Ok(0)),
            ("", Err(())),
            ("s", Err(())),
            ("10x", Err(())),
            ("1m30", Err(())),
            ("0s5", Err(())),
            ("-1s", Err(())),
            ("1e9s", Err(())),
        ] {
            assert_eq!(parse_duration_ns(text).map_err(|_| ()), expect, "{text:?}");
        }
    }

    #[test]
    fn shares_parse_or_fail() {
        assert_eq!(parse_share("50%"), Ok(0.5));
        assert_eq!(parse_share("0.25"), Ok(0.25));
        for text in ["101%", "-1%", "2", "", "%", "x%"] {
            assert!(parse_share(text).is_err(), "{text:?}");
        }
    }
}
