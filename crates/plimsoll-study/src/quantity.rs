//! Parses numbers, times and factors of flags. Errors contain the flag's name.

use plimsoll_model::failure::Failure;
use plimsoll_model::units::{parse_count, parse_duration_ns, parse_number};

/// Adds a flag's name to the error of a parse result.
pub fn with_flag_name<T, E: std::fmt::Display>(name: &str, result: Result<T, E>) -> Result<T, Failure> {
    result.map_err(|error| Failure::usage(format!("{name}: {error}")))
}

fn refuse_zero(flag: &str, number: u64) -> Result<u64, Failure> {
    match number {
        0 => Err(Failure::usage(format!("{flag}: must be more than 0"))),
        _ => Ok(number),
    }
}

/// Parses a count that must be above zero.
pub fn parse_positive_count(flag: &str, text: &str) -> Result<u64, Failure> {
    refuse_zero(flag, with_flag_name(flag, parse_count(text))?)
}

/// Parses a time that must be above zero; returns ns.
pub fn parse_positive_time(flag: &str, text: &str) -> Result<u64, Failure> {
    refuse_zero(flag, with_flag_name(flag, parse_duration_ns(text))?)
}

/// The largest number of users of one load.
const USERS_MAX: u64 = 1_000_000;

/// Parses a list of user counts, such as `8,16,32`: each is at least 1 and at most 1 000 000.
pub fn parse_user_counts(flag: &str, text: &str) -> Result<Vec<u64>, Failure> {
    let counts: Vec<u64> = with_flag_name(flag, text.split(',').map(parse_count).collect::<Result<_, _>>())?;
    match counts.iter().find(|count| !(1..=USERS_MAX).contains(*count)) {
        Some(count) => Err(Failure::usage(format!("{flag}: {count} is not between 1 and 1M users"))),
        None => Ok(counts),
    }
}

/// Bounds of the factors of --speed and --scale.
const FACTOR_RANGE: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// Parses a factor such as `2x`, and returns the factor in thousandths. Without a text, returns
/// 1000 (a factor of 1).
pub fn parse_factor_milli(flag: &str, text: Option<&str>) -> Result<u64, Failure> {
    let Some(text) = text else { return Ok(1000) };
    let number = text.trim().strip_suffix(['x', 'X']).unwrap_or(text);
    match with_flag_name(flag, parse_number(number))? {
        times if FACTOR_RANGE.contains(&times) => Ok((times * 1e3).round() as u64),
        _ => Err(Failure::usage(format!(
            "{flag}: the factor '{text}' is not between {minimum}x and {maximum}x",
            minimum = FACTOR_RANGE.start(),
            maximum = FACTOR_RANGE.end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_factors_are_parsed_or_refused() {
        for (text, expect) in [
            (None, Some(1000)),
            (Some("2x"), Some(2000)),
            (Some("0.5"), Some(500)),
            (Some("1.25X"), Some(1250)),
            (Some("0"), None),
            (Some("-1x"), None),
            (Some("2000x"), None),
            (Some("fast"), None),
            (Some("x"), None),
        ] {
            assert_eq!(parse_factor_milli("--speed", text).ok(), expect, "{text:?}");
        }
    }
}
