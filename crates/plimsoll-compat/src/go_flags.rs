//! Parses command-line flags as Go's `flag` package does: one dash or two, `-flag value` or
//! `-flag=value`, up to the first word that is no flag. This file also parses Go's durations, such
//! as `1h2m3.5s`. Not here: which flags a tool has.

/// Parses the flags in `words` and calls `each` with the name and value of each flag. The function
/// `each` returns false for an unknown flag, which is then an error. A flag in `switches` is
/// boolean, and has a value only after an equals sign. Returns the words after the flags; `None` if
/// the user asks for help.
pub fn parse_go_flags(
    command: &str,
    switches: &[&str],
    words: &[String],
    each: &mut dyn FnMut(&str, &str) -> Result<bool, String>,
) -> Result<Option<Vec<String>>, String> {
    let mut words = words.iter();
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
            files.push(word.clone());
            break;
        };
        if flag == "-" {
            break;
        }
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
        if matches!(flag, "h" | "help") {
            return Ok(None);
        }
        let given = value.is_some();
        let switch = switches.contains(&flag);
        let value = match (value, switch) {
            (None, true) => Some("true"),
            (None, false) => words.next().map(String::as_str),
            (value, _) => value,
        };
        if !each(flag, value.unwrap_or_default())? {
            return Err(format!("{command}: unknown flag -{flag}"));
        }
        if value.is_none() && !given {
            return Err(format!("-{flag}: the value is missing"));
        }
    }
    files.extend(words.cloned());
    Ok(Some(files))
}

/// Parses a duration in Go's format (`1h2m3.5s`, `100us`, `0`) as ns; `None` if the text is not
/// valid.
pub fn parse_go_duration_ns(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut sum) = (text, 0f64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|digits| *digits > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let scale = match &rest[..unit] {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        rest = &rest[unit..];
        sum += number * scale;
    }
    (!text.is_empty() && sum < 1e19).then_some(sum.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        assert_eq!(parse_go_duration_ns("1h2m3.5s"), Some(3_723_500_000_000));
        assert_eq!(["", "5", "s", "1x", "-1s"].map(parse_go_duration_ns), [None; 5]);
    }

    #[test]
    fn flags_end_at_the_first_positional_word() {
        let words = ["-a", "1", "--b=2", "-s", "-s=false", "word", "-c"].map(str::to_owned);
        let mut seen = Vec::new();
        let rest = parse_go_flags("tool", &["s"], &words, &mut |flag, value| {
            seen.push(format!("{flag}={value}"));
            Ok(flag != "c")
        });
        assert_eq!(seen, ["a=1", "b=2", "s=true", "s=false"]);
        assert_eq!(rest, Ok(Some(vec!["word".to_owned(), "-c".to_owned()])));
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            parse_go_flags("tool", &[], &words, &mut |flag, _| Ok(flag == "a"))
        };
        assert_eq!(read(&["-h"]), Ok(None));
        assert_eq!(read(&["-a"]), Err("-a: the value is missing".to_owned()));
        assert_eq!(read(&["-b", "1"]), Err("tool: unknown flag -b".to_owned()));
        assert_eq!(read(&["--", "-b"]), Ok(Some(vec!["-b".to_owned()])));
    }
}
