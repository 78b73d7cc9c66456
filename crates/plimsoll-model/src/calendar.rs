//! Points in time as calendar dates, in UTC.
//!
//! Not here: parsers of dates (in logs, in cookies), and the current time.

/// Returns the year, the month (1 to 12) and the day (1 to 31) of the day that begins `days` days
/// after 1970-01-01.
pub fn date_of_day(days: u64) -> (u64, u64, u64) {
    // The computation counts years from March on, so that the leap day is the last day of a year
    // (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Returns the number of days from 1970-01-01 to a date; 0 for an earlier date. The inverse of
/// [`date_of_day`].
pub fn day_of_date(year: u64, month: u64, day: u64) -> u64 {
    let (year, of_year) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * of_year + 2) / 5 + day - 1;
    days.saturating_sub(719_468)
}

/// Formats a time in ms since 1970 as `2026-11-21 13:05:09 UTC`.
pub fn format_utc_date(unix_ms: u64) -> String {
    let (days, seconds) = (unix_ms / 86_400_000, unix_ms / 1000 % 86_400);
    let (year, month, day) = date_of_day(days);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hours:02}:{minutes:02}:{:02} UTC", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_become_dates() {
        for (ms, expect) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199_999, "2024-02-29 23:59:59 UTC"),
            (1_795_266_309_000, "2026-11-21 13:05:09 UTC"),
        ] {
            assert_eq!(format_utc_date(ms), expect);
        }
    }

    #[test]
    fn days_and_dates_are_inverse() {
        // All days from 1970 to 2517.
        for days in 0..200_000 {
            let (year, month, day) = date_of_day(days);
            assert_eq!(day_of_date(year, month, day), days, "{year}-{month}-{day}");
        }
        assert_eq!(day_of_date(1969, 12, 31), 0);
        assert_eq!(day_of_date(1601, 1, 1), 0);
    }
}
