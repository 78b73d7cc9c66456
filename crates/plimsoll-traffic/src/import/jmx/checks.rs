//! Imports assertions and extractors of a JMeter test plan as expectations and captures.

use super::super::draft::{DraftCapture, DraftExpect, DraftRequest, toml_line};
use super::super::nodes::plain_name;
use super::values::TestPlanVariables;
use super::xml::Element;

/// The bits of a JMeter response assertion's type, which states how the assertion compares texts.
const TEST_TYPE_MATCHES: u64 = 1;
const TEST_TYPE_CONTAINS: u64 = 2;
const TEST_TYPE_NOT: u64 = 4;
const TEST_TYPE_EQUALS: u64 = 8;
const TEST_TYPE_SUBSTRING: u64 = 16;
const TEST_TYPE_OR: u64 = 32;

/// Adds an assertion or extractor to a request. `None` means that the element is neither an
/// assertion nor an extractor. A returned error is a note for the user: why the element is not
/// imported, or how the imported capture differs from the extractor.
pub fn add_check_or_capture(
    element: &Element,
    values: &TestPlanVariables,
    request: &mut DraftRequest,
) -> Option<Result<(), String>> {
    let scope = ["Assertion.scope", "Sample.scope"].iter().find_map(|name| element.property(name));
    if scope.is_some_and(|scope| !["", "parent"].contains(&scope.trim())) {
        return Some(Err(
            "the JMeter assertion or extractor is not imported: its scope is more than the response of its request"
                .to_owned(),
        ));
    }
    Some(match element.kind() {
        "ResponseAssertion" => read_response_assertion(element, values, &mut request.expect),
        "DurationAssertion" => {
            let ms = element.property("DurationAssertion.duration").and_then(|text| values.literal_number(text));
            match ms.filter(|ms| *ms >= 1.0) {
                Some(ms) => {
                    let least = request.expect.within_ms.unwrap_or(u64::MAX).min(ms as u64);
                    request.expect.within_ms = Some(least);
                    Ok(())
                }
                None => Err("the JMeter assertion is not imported: its duration is not a number".to_owned()),
            }
        }
        "JSONPathAssertion" => read_json_assertion(element, values, &mut request.expect),
        "RegexExtractor" => read_regex_extractor(element, values, &mut request.captures),
        "BoundaryExtractor" => {
            let part = |name: &str| element.property(name).unwrap_or_default();
            let name = part("BoundaryExtractor.refname");
            match part("BoundaryExtractor.useHeaders") {
                "" | "false" => {
                    let taken = match match_number_note(part("BoundaryExtractor.match_number")) {
                        Ok(taken) => taken,
                        Err(why) => return Some(Err(why)),
                    };
                    let (left, right) = (part("BoundaryExtractor.lboundary"), part("BoundaryExtractor.rboundary"));
                    let pattern = format!("regex:(?s){}(.*?){}", escape_regex(left), escape_regex(right));
                    let default = extractor_default(element, values, "BoundaryExtractor", name);
                    if taken == Some(ALL_MATCHES_NOTE) {
                        let name = plain_name(&format!("{name}_1"));
                        let (from, default) = (pattern.clone(), default.clone());
                        request.captures.push(DraftCapture { name, from, default });
                    }
                    request.captures.push(DraftCapture { name: plain_name(name), from: pattern, default });
                    taken.map_or(Ok(()), |note| Err(note.to_owned()))
                }
                _ => {
                    Err("the JMeter extractor is not imported: it reads a part of the response other than the content"
                        .to_owned())
                }
            }
        }
        "JSONPostProcessor" => json_extractor(element, values, &mut request.captures),
        _ => return None,
    })
}

/// The note about an extractor that takes all matches.
const ALL_MATCHES_NOTE: &str = "the JMeter extractor takes all matches: the imported capture takes the first match";

/// Returns the note about the match number of an extractor, if the number changes the import. Only
/// the first, a random or all matches can be imported; another number is an error.
fn match_number_note(number: &str) -> Result<Option<&'static str>, String> {
    match number.trim() {
        "" | "1" => Ok(None),
        "0" => Ok(Some("the JMeter extractor takes a random match: the imported capture takes the first match")),
        all if all.starts_with('-') => Ok(Some(ALL_MATCHES_NOTE)),
        _ => Err("the JMeter extractor is not imported: it takes a match after the first match".to_owned()),
    }
}

/// Returns the value that an extractor sets if it finds nothing. Without a default, JMeter sends
/// the reference `${name}` unchanged, and no request fails.
fn extractor_default(element: &Element, values: &TestPlanVariables, kind: &str, name: &str) -> Option<String> {
    // A step condition tests whether this extractor found anything, so the default is empty.
    if values.condition_variables.contains(name) {
        return Some(String::new());
    }
    let text = element.property(&format!("{kind}.default")).unwrap_or_default().trim();
    let is_empty = element.is_property_true(&format!("{kind}.default_empty_value"));
    Some(match (text, is_empty) {
        ("", true) => String::new(),
        ("", false) => format!("${{{name}}}"),
        (text, _) => values.text_without_templates(text).unwrap_or_default(),
    })
}

/// Returns the names that an extractor sets. If the extractor takes all matches, the first match
/// also has a second name, which ends with `_1`.
pub fn extractor_names(element: &Element) -> Vec<String> {
    let numbers = ["RegexExtractor.match_number", "BoundaryExtractor.match_number", "JSONPostProcessor.match_numbers"];
    let takes_all = numbers.iter().filter_map(|name| element.property(name)).any(|numbers| numbers.contains('-'));
    let names = own_names(element);
    let first = names.iter().filter(|_| takes_all).map(|name| format!("{name}_1")).collect::<Vec<_>>();
    names.into_iter().chain(first).collect()
}

fn own_names(element: &Element) -> Vec<String> {
    let property = match element.kind() {
        "RegexExtractor" => "RegexExtractor.refname",
        "BoundaryExtractor" => "BoundaryExtractor.refname",
        "JSONPostProcessor" => "JSONPostProcessor.referenceNames",
        _ => return Vec::new(),
    };
    let names = element.property(property).unwrap_or_default();
    names.split(';').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn read_response_assertion(
    element: &Element,
    values: &TestPlanVariables,
    expect: &mut DraftExpect,
) -> Result<(), String> {
    let kind = element
        .property("Assertion.test_type")
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(TEST_TYPE_SUBSTRING);
    // The misspelt property name `Asserion.test_strings` is JMeter's own spelling.
    let strings = element.collection_items("Asserion.test_strings");
    let mut texts = Vec::new();
    for string in strings {
        let text = string.text().unwrap_or_default();
        texts.push(
            values
                .text_without_templates(text)
                .ok_or("the JMeter assertion is not imported: its expected text contains a placeholder")?,
        );
    }
    if texts.is_empty() {
        return Ok(());
    }
    if element.is_property_true("Assertion.assume_success") {
        return Err("the JMeter assertion is not imported: it counts a failed response as a success".to_owned());
    }
    if kind & TEST_TYPE_NOT != 0 {
        return Err(
            "the JMeter assertion is not imported: it expects that the response does not contain a text".to_owned()
        );
    }
    let is_pattern = kind & (TEST_TYPE_MATCHES | TEST_TYPE_CONTAINS) != 0;
    match element.property("Assertion.test_field").unwrap_or("Assertion.response_data") {
        "Assertion.response_code" => {
            let codes: Option<Vec<String>> =
                texts.iter().flat_map(|text| text.split('|')).map(parse_status_pattern).collect();
            let codes = codes.ok_or("the JMeter assertion is not imported: its expected statuses are a pattern")?;
            expect.status = Some(codes.join(","));
            Ok(())
        }
        "Assertion.response_data" => {
            let patterns: Vec<String> = texts
                .iter()
                .map(|text| match (is_pattern, kind & TEST_TYPE_MATCHES != 0 || kind & TEST_TYPE_EQUALS != 0) {
                    (true, false) => text.clone(),
                    (true, true) => format!("(?s)^(?:{text})$"),
                    (false, true) => format!("(?s)^{}$", escape_regex(text)),
                    (false, false) => escape_regex(text),
                })
                .collect();
            if expect.body.is_some() || (texts.len() > 1 && kind & TEST_TYPE_OR == 0) {
                return Err(
                    "the JMeter assertion is not imported: plimsoll checks one text or pattern for each response. \
                     Join all texts into one pattern"
                        .to_owned(),
                );
            }
            if kind & (TEST_TYPE_MATCHES | TEST_TYPE_CONTAINS | TEST_TYPE_EQUALS | TEST_TYPE_OR) == 0
                && !texts[0].starts_with("regex:")
            {
                expect.body = Some(texts[0].clone());
                return Ok(());
            }
            check_java_pattern(&patterns.join("|"))?;
            let joined =
                if patterns.len() == 1 { patterns[0].clone() } else { format!("(?:{})", patterns.join(")|(?:")) };
            expect.body = Some(format!("regex:{joined}"));
            Ok(())
        }
        "Assertion.response_headers" => {
            let pair = |text: &String| {
                let (name, value) = text.split_once(':')?;
                let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
                is_name.then(|| (name.to_owned(), value.trim().to_owned()))
            };
            let pairs: Option<Vec<_>> = texts.iter().map(pair).collect();
            for (name, value) in pairs.ok_or(
                "the JMeter assertion or extractor is not imported: its text for the headers must have the form \
                 'Name: value'",
            )? {
                if is_pattern {
                    check_java_pattern(&value)?;
                }
                expect.headers.push((name, if is_pattern { format!("regex:{value}") } else { value }));
            }
            Ok(())
        }
        _ => Err(
            "the JMeter assertion is not imported: it checks a part other than the status, headers or content of the \
             response"
                .to_owned(),
        ),
    }
}

/// Returns a status or class of statuses, such as `200` or `2xx`, from a JMeter pattern.
fn parse_status_pattern(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['^', '$', '(', ')']);
    let is_status = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    if is_status && text.starts_with(['1', '2', '3', '4', '5']) {
        return Some(text.to_owned());
    }
    let (first, rest) = text.split_at_checked(1)?;
    let is_class = ["..", "\\d\\d", "\\d{2}", "[0-9][0-9]", ".*", "xx"].contains(&rest);
    (is_class && ["1", "2", "3", "4", "5"].contains(&first)).then(|| format!("{first}xx"))
}

fn read_json_assertion(element: &Element, values: &TestPlanVariables, expect: &mut DraftExpect) -> Result<(), String> {
    let path = check_json_path(element.property("JSON_PATH").unwrap_or_default())?;
    if element.is_property_true("INVERT")
        || element.is_property_true("ISREGEX") && element.is_property_true("JSONVALIDATION")
    {
        return Err(
            "the JMeter assertion is not imported: it is inverted, or compares a JSON value with a pattern".to_owned()
        );
    }
    if element.is_property_true("EXPECT_NULL") {
        return Err("the JMeter assertion is not imported: it expects null".to_owned());
    }
    if !element.is_property_true("JSONVALIDATION") {
        return Err("the JMeter assertion is not imported: it checks only that the JSON path exists".to_owned());
    }
    let text = values
        .text_without_templates(element.property("EXPECTED_VALUE").unwrap_or_default())
        .ok_or("the JMeter assertion is not imported: its expected value contains a placeholder")?;
    let value = match text.trim() {
        word @ ("true" | "false") => word.to_owned(),
        number if crate::file::json::is_number(number) => match number.parse::<f64>() {
            Ok(value) if value.is_finite() => number.to_owned(),
            _ => {
                return Err(format!("the JMeter assertion is not imported: its expected number {number} is too large"));
            }
        },
        text => toml_line(text.trim_matches('"')),
    };
    expect.json.push((path, value));
    Ok(())
}

/// Returns the trimmed JSON path. Returns an error if the path has no step, or contains a filter,
/// function, slice or list. Wildcards and `..` in a JSON path are accepted, because plimsoll
/// supports them.
fn check_json_path(path: &str) -> Result<String, String> {
    let path = path.trim();
    if !path.starts_with('$') || path.len() == 1 {
        return Err("a JSON path without a step, or without $ at its start, is not imported".to_owned());
    }
    if path.contains(['?', '(', '@', ':', ',']) {
        return Err("a JSON path with a filter, function, slice or list is not imported".to_owned());
    }
    Ok(path.to_owned())
}

fn read_regex_extractor(
    element: &Element,
    values: &TestPlanVariables,
    captures: &mut Vec<DraftCapture>,
) -> Result<(), String> {
    let part = |name: &str| element.property(name).unwrap_or_default().trim();
    let own_name = part("RegexExtractor.refname");
    let pattern = part("RegexExtractor.regex");
    let group = part("RegexExtractor.template").strip_prefix('$').and_then(|rest| rest.strip_suffix('$'));
    let pattern = match group.and_then(|group| group.parse::<usize>().ok()) {
        Some(0) => format!("({})", keep_one_capturing_group(pattern, 0)),
        Some(group) => keep_one_capturing_group(pattern, group),
        None => {
            return Err(
                "the JMeter extractor is not imported: its template is not the number of one group, such as $1$"
                    .to_owned(),
            );
        }
    };
    let pattern = pattern.as_str();
    let number = part("RegexExtractor.match_number");
    let taken = match_number_note(number)?;
    check_java_pattern(pattern)?;
    let from = match part("RegexExtractor.useHeaders") {
        "" | "false" | "unescaped" => format!("regex:{pattern}"),
        "true" => header_capture(pattern)?,
        _ => return Err(
            "the JMeter extractor is not imported: it reads a part of the response other than the headers or content"
                .to_owned(),
        ),
    };
    let default = extractor_default(element, values, "RegexExtractor", own_name);
    let mut take = |name: &str| {
        captures.push(DraftCapture { name: plain_name(name), from: from.clone(), default: default.clone() })
    };
    take(own_name);
    if taken == Some(ALL_MATCHES_NOTE) {
        take(&format!("{own_name}_1"));
    }
    taken.map_or(Ok(()), |note| Err(note.to_owned()))
}

/// Returns the pattern with only group number `kept` as a capturing group. If `kept` is 0, no group
/// captures.
fn keep_one_capturing_group(pattern: &str, kept: usize) -> String {
    let (mut out, mut number, mut in_class) = (String::new(), 0, false);
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        match c {
            '\\' => out.extend(chars.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && chars.peek() != Some(&'?') => {
                number += 1;
                out.push_str(if number == kept { "" } else { "?:" });
            }
            _ => {}
        }
    }
    out
}

/// Converts a pattern for a line `Name: value` to a capture from the value of that header field.
fn header_capture(pattern: &str) -> Result<String, String> {
    let bare = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    let bare = bare.strip_prefix('^').unwrap_or(bare);
    let (field, rest) = bare.split_once(':').ok_or(
        "the JMeter assertion or extractor is not imported: its text for the headers must have the form 'Name: value'",
    )?;
    let is_name = !field.is_empty() && field.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_name {
        return Err(
            "the JMeter assertion or extractor is not imported: its text for the headers must have the form 'Name: \
             value'"
                .to_owned(),
        );
    }
    // Blanks between the colon and the value are not part of the value.
    let mut rest = rest;
    while let Some(after) = ["\\s*", "\\s+", "\\s", " *", " +", " "].iter().find_map(|blank| rest.strip_prefix(blank)) {
        rest = after;
    }
    let cookie = rest.split_once('=').filter(|_| field.eq_ignore_ascii_case("set-cookie"));
    Ok(match cookie {
        Some((cookie, "([^;]+)" | "([^;]*)" | "(.+?);" | "(.*?);")) => format!("cookie:{cookie}"),
        _ if ["(.*)", "(.+)", "(.*?)$", "(.*)$", "(.+)$", "(\\S+)", "([^\\r\\n]+)"].contains(&rest) => {
            format!("header:{field}")
        }
        // The part of the pattern after the field name must match at the beginning of the header
        // field's value.
        _ => format!("header:{field} regex:^(?:{rest})"),
    })
}

fn json_extractor(
    element: &Element,
    values: &TestPlanVariables,
    captures: &mut Vec<DraftCapture>,
) -> Result<(), String> {
    let part = |name: &str| element.property(name).unwrap_or_default();
    let numbers = part("JSONPostProcessor.match_numbers");
    let numbers: Vec<Option<&str>> = numbers.split(';').map(match_number_note).collect::<Result<_, _>>()?;
    let mut of_names = numbers.iter();
    let paths = part("JSONPostProcessor.jsonPathExprs").split(';');
    let mut defaults = part("JSONPostProcessor.defaultValues").split(';');
    for (name, path) in own_names(element).iter().zip(paths) {
        let default = defaults.next().unwrap_or_default().trim();
        let default = if values.condition_variables.contains(name) {
            Some(String::new())
        } else {
            values.text_without_templates(default)
        };
        let default = Some(default.unwrap_or_default());
        let from = check_json_path(path)?;
        if of_names.next() == Some(&Some(ALL_MATCHES_NOTE)) {
            let name = plain_name(&format!("{name}_1"));
            captures.push(DraftCapture { name, from: from.clone(), default: default.clone() });
        }
        captures.push(DraftCapture { name: plain_name(name), from, default });
    }
    numbers.into_iter().flatten().next().map_or(Ok(()), |note| Err(note.to_owned()))
}

/// Returns an error if a Java pattern has a part that plimsoll's regular expressions do not
/// support.
fn check_java_pattern(pattern: &str) -> Result<(), String> {
    let java_only = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "\\1", "\\2", "\\Q", "\\G", "\\Z", "*+", "++", "?+"];
    match java_only.iter().find(|part| pattern.contains(**part)) {
        Some(pattern_part) => {
            Err(format!("a pattern with {pattern_part} is not imported: plimsoll cannot match {pattern_part}"))
        }
        None => Ok(()),
    }
}

/// Returns a pattern that matches exactly this text.
fn escape_regex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_chosen_regex_group_captures() {
        for (pattern, group, expect) in [
            ("a(b)(c)", 1, "a(b)(?:c)"),
            ("a(b)(c)", 2, "a(?:b)(c)"),
            ("a(b)", 0, "a(?:b)"),
            ("\\(a[(](b(?:c))", 1, "\\(a[(](b(?:c))"),
        ] {
            assert_eq!(keep_one_capturing_group(pattern, group), expect, "{pattern}");
        }
    }

    #[test]
    fn header_patterns_become_single_field_captures() {
        for (pattern, expect) in [
            ("Location: (.+)", Ok("header:Location")),
            ("Set-Cookie: sid=([^;]+)", Ok("cookie:sid")),
            ("Location:\\s*.*id=(\\d+)", Ok("header:Location regex:^(?:.*id=(\\d+))")),
            ("(?i)x-token: Bearer (.+)", Ok("header:x-token regex:^(?:Bearer (.+))")),
            ("id=(\\d+)", Err("must have the form 'Name: value'")),
            ("Loc.*: (.+)", Err("must have the form 'Name: value'")),
        ] {
            match (header_capture(pattern), expect) {
                (Ok(from), Ok(expect)) => assert_eq!(from, expect, "{pattern}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{pattern}: {why}"),
                (found, _) => panic!("{pattern}: {found:?}"),
            }
        }
    }

    #[test]
    fn status_checks_are_codes_or_classes() {
        for (text, expect) in [
            ("200", Some("200")),
            (" 2.. ", Some("2xx")),
            ("^3\\d\\d$", Some("3xx")),
            ("(4[0-9][0-9])", Some("4xx")),
            ("2", None),
            ("OK", None),
            ("999", None),
            ("", None),
            ("\u{e9}", None),
        ] {
            assert_eq!(parse_status_pattern(text).as_deref(), expect, "{text}");
        }
    }
}
