//! Formats the times in vegeta's results. Not here: parsing times (`plimsoll_model::timestamp`),
//! because access logs use the same parser.

use plimsoll_model::calendar::date_of_day;

/// Formats a time, ns since the Unix epoch, as RFC 3339 in UTC. The fraction has no trailing zeros.
pub(super) fn format_timestamp(ns: u64) -> String {
    let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date_of_day(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let digits = format!("{ns:09}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{point}{digits}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::timestamp::unix_time_ns;

    #[test]
    fn formatted_times_parse_back() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2000-02-29T23:59:59.5Z",
            "2024-12-31T00:00:00.000000001Z",
            "2026-11-22T00:34:14.063832482Z",
            "2100-03-01T12:00:00.1Z",
        ] {
            assert_eq!(unix_time_ns(text.as_bytes()).map(format_timestamp).as_deref(), Some(text));
        }
    }
}
