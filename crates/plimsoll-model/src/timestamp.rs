//! Parses timestamps of logs and recordings to ns since the Unix epoch. The formats are the common
//! log format, ISO 8601, numbers of seconds or smaller units, and `strftime` formats. Not here:
//! deciding whether a timestamp is the start or the end of a request.

use crate::calendar::day_of_date;
use crate::units::SECOND;

/// The format of the timestamps of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimestampFormat {
    /// The format of each timestamp is detected from its text.
    Auto,
    /// A `strftime` format, as a list of its parts.
    Pattern(Vec<TimestampToken>),
}

/// One part of a `strftime` format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimestampToken {
    /// The digits of year, month, day, hour, minute or second.
    Number(DateTimePart),
    /// A year of two digits, from 2000 on.
    ShortYear,
    /// The name of a month, such as `Oct` or `October`.
    MonthName,
    /// A time zone, such as `+0200`, `+02:00` or `Z`.
    Zone,
    /// A fraction of a second with at most this number of digits; 0 means any number.
    Fraction(u8),
    /// A number of units since the Unix epoch; the value of the variant is the length of one unit
    /// in ns.
    Epoch(u64),
    /// A word that is skipped, such as a weekday.
    Word,
    /// A fixed text.
    Text(Vec<u8>),
}

/// A numeric part of a date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateTimePart {
    /// The year, 1970 or later.
    Year,
    /// The month, 1 to 12.
    Month,
    /// The day of the month, 1 to 31.
    Day,
    /// The hour, 0 to 23.
    Hour,
    /// The minute, 0 to 59.
    Minute,
    /// The second, 0 to 60 (60 is a leap second).
    Second,
}

impl TimestampFormat {
    /// Parses a timestamp to ns since the Unix epoch; `None` if the text does not match the format.
    pub fn parse_unix_ns(&self, text: &[u8]) -> Option<u64> {
        match self {
            TimestampFormat::Auto => unix_time_ns(text),
            TimestampFormat::Pattern(tokens) => parse_tokens(tokens, text),
        }
    }
}

/// Parses a `strftime` format into tokens; `None` if the format has an unsupported directive.
pub fn parse_strftime_tokens(format: &str) -> Option<Vec<TimestampToken>> {
    let mut out: Vec<TimestampToken> = Vec::new();
    let mut chars = format.chars();
    let text = |out: &mut Vec<TimestampToken>, c: char| {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        match out.last_mut() {
            Some(TimestampToken::Text(text)) => text.extend_from_slice(bytes),
            _ => out.push(TimestampToken::Text(bytes.to_vec())),
        }
    };
    while let Some(c) = chars.next() {
        if c != '%' {
            text(&mut out, c);
            continue;
        }
        let mut directive = chars.next()?;
        let mut digits = 0;
        if let Some(given) = directive.to_digit(10) {
            digits = given as u8;
            directive = chars.next()?;
        }
        match directive {
            'Y' => out.push(TimestampToken::Number(DateTimePart::Year)),
            'y' => out.push(TimestampToken::ShortYear),
            'm' => out.push(TimestampToken::Number(DateTimePart::Month)),
            'd' | 'e' => out.push(TimestampToken::Number(DateTimePart::Day)),
            'H' | 'k' => out.push(TimestampToken::Number(DateTimePart::Hour)),
            'M' => out.push(TimestampToken::Number(DateTimePart::Minute)),
            'S' => out.push(TimestampToken::Number(DateTimePart::Second)),
            'b' | 'B' | 'h' => out.push(TimestampToken::MonthName),
            'z' => out.push(TimestampToken::Zone),
            'f' => out.push(TimestampToken::Fraction(digits)),
            's' => out.push(TimestampToken::Epoch(SECOND)),
            'a' | 'A' | 'Z' => out.push(TimestampToken::Word),
            'F' => out.extend(parse_strftime_tokens("%Y-%m-%d")?),
            'D' => out.extend(parse_strftime_tokens("%m/%d/%y")?),
            'T' => out.extend(parse_strftime_tokens("%H:%M:%S")?),
            'R' => out.extend(parse_strftime_tokens("%H:%M")?),
            'c' => out.extend(parse_strftime_tokens("%a %b %e %H:%M:%S %Y")?),
            '%' => text(&mut out, '%'),
            't' => text(&mut out, '\t'),
            'n' => text(&mut out, '\n'),
            _ => return None,
        }
    }
    Some(out)
}

/// A calendar date and time of day, without a time zone.
#[derive(Debug, Clone, Copy)]
struct CalendarTime {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl CalendarTime {
    const UNIX_EPOCH: CalendarTime = CalendarTime { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 };

    /// Returns the seconds since the Unix epoch of a date and time in UTC; `None` if a part is out
    /// of range.
    fn unix_seconds(self) -> Option<i64> {
        let fits = (1970..=2500).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=31).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second <= 60;
        if !fits {
            return None;
        }
        let days = day_of_date(self.year, self.month, self.day);
        Some((days * 86_400 + self.hour * 3600 + self.minute * 60 + self.second) as i64)
    }
}

/// The part of a text that is not parsed yet. Each parsing function removes the parsed part from
/// the beginning.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take_byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn expect_text(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Parses a number of one to `digits_max` digits.
    fn parse_number(&mut self, digits_max: usize) -> Option<u64> {
        let length = self.0.iter().take(digits_max).take_while(|b| b.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }

    /// Parses a number of exactly `digits` digits.
    fn parse_exact_digits(&mut self, digits: usize) -> Option<u64> {
        let before = self.0.len();
        let value = self.parse_number(digits)?;
        (before - self.0.len() == digits).then_some(value)
    }

    /// Parses hour, minute and second, such as `13:55:36`.
    fn time_of_day(&mut self) -> Option<(u64, u64, u64)> {
        let hour = self.parse_exact_digits(2)?;
        self.expect_text(b":")?;
        let minute = self.parse_exact_digits(2)?;
        self.expect_text(b":")?;
        Some((hour, minute, self.parse_exact_digits(2)?))
    }

    fn month_name(&mut self) -> Option<u64> {
        const MONTH_NAMES: [&[u8; 3]; 12] =
            [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
        let length = self.0.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (name, rest) = self.0.split_at(length);
        let number = MONTH_NAMES.iter().position(|month| name.len() >= 3 && name[..3].eq_ignore_ascii_case(*month))?;
        self.0 = rest;
        Some(number as u64 + 1)
    }

    /// Parses the digits after a decimal point as ns. Digits after the ninth are dropped.
    fn fraction_ns(&mut self, digits_max: usize) -> Option<u64> {
        let length = self.0.iter().take(digits_max).take_while(|b| b.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        let mut ns = 0;
        for at in 0..9 {
            ns = ns * 10 + digits.get(at).map_or(0, |digit| u64::from(digit - b'0'));
        }
        Some(ns)
    }

    /// Parses a time zone to seconds east of UTC: `Z`, `UTC`, `GMT`, `+0200`, `+02:00` or `+02`. A
    /// blank may precede the zone.
    fn parse_time_zone(&mut self) -> Option<i64> {
        if self.0.first() == Some(&b' ') {
            self.take_byte();
        }
        if self.expect_text(b"Z").is_some() || self.expect_text(b"UTC").is_some() || self.expect_text(b"GMT").is_some()
        {
            return Some(0);
        }
        let sign = match self.take_byte()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.parse_exact_digits(2)?;
        let _ = self.expect_text(b":");
        let minutes = if self.0.first().is_some_and(u8::is_ascii_digit) { self.parse_exact_digits(2)? } else { 0 };
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60) as i64)
    }
}

fn unix_ns(civil: CalendarTime, fraction_ns: u64, east_s: i64) -> Option<u64> {
    let seconds = u64::try_from(civil.unix_seconds()?.checked_sub(east_s)?).ok()?;
    seconds.checked_mul(SECOND)?.checked_add(fraction_ns)
}

/// Parses a timestamp in any common format to ns since the Unix epoch. `None` means that the format
/// is unknown or a part is out of range.
pub fn unix_time_ns(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"[").map_or(text, |rest| rest.strip_suffix(b"]").unwrap_or(rest));
    let at = |place: usize| text.get(place).copied().unwrap_or(0);
    match (at(2), at(4)) {
        (b'/', _) | (_, b'-' | b'/') => parse_calendar_time(text),
        _ if at(1) == b'/' => parse_calendar_time(text),
        _ if at(3) == b' ' => parse_ctime(text),
        _ => parse_epoch_time(text),
    }
}

/// Parses a time as C's `ctime` writes it, such as `Tue Oct 10 13:55:36 2000`.
fn parse_ctime(text: &[u8]) -> Option<u64> {
    let mut cursor = Cursor(text);
    let mut civil = CalendarTime::UNIX_EPOCH;
    text[..3].iter().all(u8::is_ascii_alphabetic).then_some(())?;
    cursor.0 = &text[4..];
    civil.month = cursor.month_name()?;
    while cursor.expect_text(b" ").is_some() {}
    civil.day = cursor.parse_number(2)?;
    cursor.expect_text(b" ")?;
    (civil.hour, civil.minute, civil.second) = cursor.time_of_day()?;
    cursor.expect_text(b" ")?;
    civil.year = cursor.parse_exact_digits(4)?;
    cursor.0.is_empty().then_some(())?;
    unix_ns(civil, 0, 0)
}

/// Parses `10/Oct/2000:13:55:36 -0700` and `2000-10-10T13:55:36.123-07:00`, with or without a
/// fraction; also `2000/10/10 - 13:55:36`, as Go programs write it.
fn parse_calendar_time(text: &[u8]) -> Option<u64> {
    let mut cursor = Cursor(text);
    let mut civil = CalendarTime::UNIX_EPOCH;
    if let Some(between @ (b'-' | b'/')) = text.get(4).copied() {
        civil.year = cursor.parse_exact_digits(4)?;
        cursor.expect_text(&[between])?;
        civil.month = cursor.parse_exact_digits(2)?;
        cursor.expect_text(&[between])?;
        civil.day = cursor.parse_exact_digits(2)?;
        if cursor.expect_text(b" - ").is_none() {
            matches!(cursor.take_byte()?, b'T' | b't' | b' ' | b'_').then_some(())?;
        }
    } else {
        civil.day = cursor.parse_number(2)?;
        cursor.expect_text(b"/")?;
        civil.month = cursor.month_name()?;
        cursor.expect_text(b"/")?;
        civil.year = cursor.parse_exact_digits(4)?;
        matches!(cursor.take_byte()?, b':' | b' ').then_some(())?;
    }
    (civil.hour, civil.minute, civil.second) = cursor.time_of_day()?;
    let fraction_ns = match cursor.0.first() {
        Some(b'.' | b',') => {
            cursor.take_byte();
            cursor.fraction_ns(usize::MAX)?
        }
        _ => 0,
    };
    // A timestamp without a zone is read as UTC. A wrong time zone is harmless, because only
    // differences between timestamps of one log matter.
    let east_s = if cursor.0.is_empty() { 0 } else { cursor.parse_time_zone()? };
    cursor.0.is_empty().then_some(())?;
    unix_ns(civil, fraction_ns, east_s)
}

/// Parses a time as a number of units since the Unix epoch. The size of the number decides whether
/// the unit is s, ms, us or ns.
fn parse_epoch_time(text: &[u8]) -> Option<u64> {
    if text.iter().any(|b| matches!(b, b'e' | b'E')) {
        // Some JSON encoders write large numbers with an exponent.
        let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        return (0.0..1e19).contains(&value).then(|| (value * epoch_unit_ns(value as u64) as f64) as u64);
    }
    let mut cursor = Cursor(text);
    let whole = cursor.parse_number(19)?;
    let unit = epoch_unit_ns(whole);
    let mut fraction = 0;
    if cursor.expect_text(b".").is_some() && !cursor.0.is_empty() {
        fraction = cursor.fraction_ns(usize::MAX)? / (SECOND / unit);
    }
    cursor.0.is_empty().then_some(())?;
    whole.checked_mul(unit)?.checked_add(fraction)
}

/// Returns the length in ns of the unit of a timestamp. The size of the number `whole` shows
/// whether the timestamp counts s, ms, us or ns since the Unix epoch.
fn epoch_unit_ns(whole: u64) -> u64 {
    match whole {
        0..100_000_000_000 => SECOND,
        100_000_000_000..100_000_000_000_000 => SECOND / 1_000,
        100_000_000_000_000..100_000_000_000_000_000 => SECOND / 1_000_000,
        _ => 1,
    }
}

fn parse_tokens(tokens: &[TimestampToken], text: &[u8]) -> Option<u64> {
    let mut cursor = Cursor(text);
    let mut civil = CalendarTime::UNIX_EPOCH;
    let (mut fraction_ns, mut east_s, mut epoch_ns) = (0, 0, None);
    for token in tokens {
        match token {
            TimestampToken::Number(part) => {
                // `%e` and `%k` are padded with a blank.
                while cursor.0.first() == Some(&b' ') {
                    cursor.take_byte();
                }
                let value = cursor.parse_number(if *part == DateTimePart::Year { 4 } else { 2 })?;
                match part {
                    DateTimePart::Year => civil.year = value,
                    DateTimePart::Month => civil.month = value,
                    DateTimePart::Day => civil.day = value,
                    DateTimePart::Hour => civil.hour = value,
                    DateTimePart::Minute => civil.minute = value,
                    DateTimePart::Second => civil.second = value,
                }
            }
            TimestampToken::ShortYear => civil.year = 2000 + cursor.parse_exact_digits(2)?,
            TimestampToken::MonthName => civil.month = cursor.month_name()?,
            TimestampToken::Zone => east_s = cursor.parse_time_zone()?,
            TimestampToken::Fraction(digits) => {
                fraction_ns = cursor.fraction_ns(if *digits == 0 { usize::MAX } else { usize::from(*digits) })?;
            }
            TimestampToken::Epoch(unit) => epoch_ns = Some(cursor.parse_number(19)?.checked_mul(*unit)?),
            TimestampToken::Word => {
                let length = cursor.0.iter().take_while(|b| b.is_ascii_alphabetic()).count();
                cursor.0 = &cursor.0[length..];
            }
            TimestampToken::Text(text) => cursor.expect_text(text)?,
        }
    }
    match epoch_ns {
        Some(ns) => ns.checked_add(fraction_ns),
        None => unix_ns(civil, fraction_ns, east_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_timestamps_parse_back() {
        const LOG_TIME_UNIX_S: u64 = 971_211_336;
        for (text, expect) in [
            ("10/Oct/2000:13:55:36 -0700", Some(LOG_TIME_UNIX_S * SECOND)),
            ("[10/Oct/2000:20:55:36 +0000]", Some(LOG_TIME_UNIX_S * SECOND)),
            ("10/Oct/2000:20:55:36.250 +0000", Some(LOG_TIME_UNIX_S * SECOND + 250_000_000)),
            ("2000-10-10T20:55:36Z", Some(LOG_TIME_UNIX_S * SECOND)),
            ("2000-10-10T22:55:36+02:00", Some(LOG_TIME_UNIX_S * SECOND)),
            ("2000-10-10T20:55:36.123456Z", Some(LOG_TIME_UNIX_S * SECOND + 123_456_000)),
            ("2000-10-10 20:55:36,5", Some(LOG_TIME_UNIX_S * SECOND + 500_000_000)),
            ("2000/10/10 20:55:36.5", Some(LOG_TIME_UNIX_S * SECOND + 500_000_000)),
            ("2000/10/10 - 20:55:36", Some(LOG_TIME_UNIX_S * SECOND)),
            ("Tue Oct 10 20:55:36 2000", Some(LOG_TIME_UNIX_S * SECOND)),
            ("[Fri Sep  1 20:55:36 2000]", Some(967_841_736 * SECOND)),
            ("Tue Oct 10 20:55:36", None),
            ("2000/10-10 20:55:36", None),
            ("971211336", Some(LOG_TIME_UNIX_S * SECOND)),
            ("971211336.123", Some(LOG_TIME_UNIX_S * SECOND + 123_000_000)),
            ("9.71211336e8", Some(LOG_TIME_UNIX_S * SECOND)),
            ("971211336123", Some(LOG_TIME_UNIX_S * SECOND + 123_000_000)),
            ("971211336123456", Some(LOG_TIME_UNIX_S * SECOND + 123_456_000)),
            ("971211336123456789", Some(LOG_TIME_UNIX_S * SECOND + 123_456_789)),
            ("0", Some(0)),
            ("29/Feb/2024:00:00:00 +0000", Some(1_709_164_800 * SECOND)),
            ("1/Mar/2024:00:00:00 +0000", Some(1_709_251_200 * SECOND)),
            ("10/Oct/2000:24:55:36 -0700", None),
            ("10/Foo/2000:13:55:36 -0700", None),
            ("2000-13-10T20:55:36Z", None),
            ("2000-10-10", None),
            ("99999999999999999999", None),
            ("-", None),
            ("", None),
            ("-5", None),
            ("1969-10-10T20:55:36Z", None),
            ("01/Jan/1970:00:00:00 +1200", None),
        ] {
            assert_eq!(unix_time_ns(text.as_bytes()), expect, "{text}");
        }
    }

    #[test]
    fn timestamps_parse_by_their_format() {
        for (format, text, expect) in [
            ("%d/%b/%Y:%T.%3f %z", "10/Oct/2000:13:55:36.042 -0700", Some(971_211_336_042_000_000)),
            ("%Y%m%d%H%M%S", "20001010205536", Some(971_211_336_000_000_000)),
            ("%a, %d %b %Y %H:%M:%S %Z", "Tue, 10 Oct 2000 20:55:36 GMT", Some(971_211_336_000_000_000)),
            ("%s.%3f", "971211336.042", Some(971_211_336_042_000_000)),
            ("%D %R", "10/10/00 20:55", Some(971_211_300_000_000_000)),
            ("%F", "later", None),
        ] {
            let writing = TimestampFormat::Pattern(parse_strftime_tokens(format).expect(format));
            assert_eq!(writing.parse_unix_ns(text.as_bytes()), expect, "{format} {text}");
        }
        assert_eq!(parse_strftime_tokens("%Q"), None);
        assert_eq!(parse_strftime_tokens("100%"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_without_a_panic(text in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let _ = unix_time_ns(&text);
            if let Some(tokens) = parse_strftime_tokens(&String::from_utf8_lossy(&text)) {
                let _ = TimestampFormat::Pattern(tokens).parse_unix_ns(&text);
            }
        }

        #[test]
        fn any_formatted_timestamp_parses_back(seconds in 0u64..16_000_000_000, ns in 0u64..SECOND) {
            let text = format!("{seconds}.{ns:09}");
            proptest::prop_assert_eq!(unix_time_ns(text.as_bytes()), Some(seconds * SECOND + ns));
        }
    }
}
