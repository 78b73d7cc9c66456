//! Parses and formats numbers with units as wrk does. Not here: the flags, and the lines of output
//! that contain such numbers.

/// A family of units, such as the units of time. `scale` is the factor from each unit to the next.
struct UnitFamily {
    scale: f64,
    base: &'static str,
    names: &'static [&'static str],
}

const TIME_UNITS_FROM_US: UnitFamily = UnitFamily { scale: 1000.0, base: "us", names: &["ms", "s"] };
const TIME_UNITS_FROM_S: UnitFamily = UnitFamily { scale: 60.0, base: "s", names: &["m", "h"] };
const BINARY_UNITS: UnitFamily = UnitFamily { scale: 1024.0, base: "", names: &["K", "M", "G", "T", "P"] };
const METRIC_UNITS: UnitFamily = UnitFamily { scale: 1000.0, base: "", names: &["k", "M", "G", "T", "P"] };

impl UnitFamily {
    /// Formats a number with its unit. A larger unit is used if the number is at least 0.85 of that
    /// unit. As in wrk, the last unit in the list is never used.
    fn format_with_unit(&self, number: f64, digits: usize) -> String {
        let (mut number, mut unit) = (number, self.base);
        for name in &self.names[..self.names.len() - 1] {
            if number < self.scale * 0.85 {
                break;
            }
            number /= self.scale;
            unit = name;
        }
        format!("{number:.digits$}{unit}")
    }
}

/// Formats a time in microseconds, such as `12.34ms`.
pub fn format_time_us(us: f64) -> String {
    if us >= 1e6 { TIME_UNITS_FROM_S.format_with_unit(us / 1e6, 2) } else { TIME_UNITS_FROM_US.format_with_unit(us, 2) }
}

/// Formats a time in seconds without a fraction, such as `30s` or `2m`.
pub fn format_time_s(s: f64) -> String {
    TIME_UNITS_FROM_S.format_with_unit(s, 0)
}

/// Formats a number of bytes without the letter `B`, such as `1.50M`.
pub fn format_binary_units(bytes: f64) -> String {
    BINARY_UNITS.format_with_unit(bytes, 2)
}

/// Formats a number with decimal units, such as `12.34k`.
pub fn format_metric_units(number: f64) -> String {
    METRIC_UNITS.format_with_unit(number, 2)
}

/// Parses a count: digits, optionally followed by `k`, `M`, `G`, `T` or `P`.
pub fn parse_metric_count(text: &str) -> Option<u64> {
    let (number, unit) = split_leading_number(text)?;
    let power = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    number.checked_mul(1000u64.checked_pow(power)?)
}

/// Parses a time as ns: digits, followed by `ms`, `s`, `m` or `h`. Without a unit, the time is in
/// seconds. plimsoll accepts the unit `ms` in addition to wrk's units.
pub fn parse_time_ns(text: &str) -> Option<u64> {
    let (number, unit) = split_leading_number(text)?;
    number.checked_mul(match unit.to_ascii_lowercase().as_str() {
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn split_leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_wrk() {
        for (us, expect) in [
            (0.0, "0.00us"),
            (635.91, "635.91us"),
            (849.9, "849.90us"),
            (850.0, "0.85ms"),
            (12_345.6, "12.35ms"),
            (999_999.0, "1000.00ms"),
            (1_000_000.0, "1.00s"),
            (30_050_000.0, "30.05s"),
            (51_000_000.0, "0.85m"),
            (7_200_000_000.0, "120.00m"),
        ] {
            assert_eq!(format_time_us(us), expect, "{us}");
        }
        assert_eq!([10.0, 30.0, 60.0, 120.0, 3600.0].map(format_time_s), ["10s", "30s", "1m", "2m", "60m"]);
        assert_eq!([0.0, 800.0, 900.0, 1.5 * 1048576.0].map(format_binary_units), ["0.00", "800.00", "0.88K", "1.50M"]);
        assert_eq!([999.0, 12_340.0, 1e6].map(format_metric_units), ["1.00k", "12.34k", "1.00M"]);
    }

    #[test]
    fn numbers_are_parsed_as_in_wrk() {
        for (text, metric, time_ns) in [
            ("10", Some(10), Some(10_000_000_000)),
            ("2k", Some(2_000), None),
            ("1M", Some(1_000_000), Some(60_000_000_000)),
            ("2h", None, Some(7_200_000_000_000)),
            ("500ms", None, Some(500_000_000)),
            ("30S", None, Some(30_000_000_000)),
            ("", None, None),
            ("k", None, None),
            ("-1", None, None),
            ("1.5s", None, None),
            ("99999999999999999999", None, None),
            ("99999999999P", None, None),
        ] {
            assert_eq!((parse_metric_count(text), parse_time_ns(text)), (metric, time_ns), "{text:?}");
        }
    }
}
