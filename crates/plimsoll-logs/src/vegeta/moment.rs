//! Formats the times in vegeta's results. Not here: parsing times (`plimsoll_model::timestamp`),
//! because access logs use the same parser.

/// Formats a time, ns since the Unix epoch, as RFC 3339 in UTC. The fraction has no trailing zeros.
pub(super) fn format_timestamp(ns: u64) -> String {
    let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The algorithm counts years from March, so that the leap day is the last day of a year.
    let of_era = days + 719_468;
    let (era, day) = (of_era / 146_097, of_era % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
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
