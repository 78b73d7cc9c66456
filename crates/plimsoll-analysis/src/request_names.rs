//! The syntax of request names in conditions and SLOs: `order.p99<=300ms`, or `'list,
//! sorted'.errors>1%`.
//!
//! In a condition, the name of a request comes before a dot and the metric. A name that could be
//! misread is written in quotation marks.
//!
//! Not here: the parser of whole conditions ([`crate::condition`]).

use plimsoll_model::{RouteRecord, TrafficRecord};

const QUOTATION_MARKS: [char; 2] = ['\'', '"'];

/// Splits a comma-separated list of conditions. A comma between quotation marks is part of a name.
pub(crate) fn split_conditions(text: &str) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let mut inside = None;
    for (at, c) in text.char_indices() {
        match inside {
            Some(mark) if c == mark => inside = None,
            Some(_) => {}
            // A quotation mark that is not at the start of a condition, such as an apostrophe, is
            // part of a name.
            None if QUOTATION_MARKS.contains(&c) && text[from..at].trim().is_empty() => inside = Some(c),
            None if c == ',' => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            None => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Splits a text that begins with a quoted name into the name and the text after the dot.
pub(crate) fn split_quoted_name(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next().filter(|c| QUOTATION_MARKS.contains(c))?;
    let (name, rest) = text[1..].split_once(mark)?;
    Some((name, rest.strip_prefix('.')?))
}

/// Formats the name of a request as it is written before the dot in a condition: in quotation
/// marks, unless the name is plain.
pub(crate) fn quote_name_if_needed(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_plain = !name.is_empty() && name != "service" && name.chars().all(plain);
    let mark = if name.contains('\'') { '"' } else { '\'' };
    if is_plain { name.to_owned() } else { format!("{mark}{name}{mark}") }
}

/// Returns the index of the request with this name; `None` if the plan does not contain it.
pub(crate) fn request_index(traffic: &TrafficRecord, name: &str) -> Option<usize> {
    traffic.routes.iter().position(|route| route.label == name)
}

/// Checks that each of the names is the name of a request of the plan.
///
/// # Errors
/// The error is a sentence that lists the names of the plan's requests.
pub(crate) fn check_names<'a>(names: impl Iterator<Item = &'a str>, routes: &[RouteRecord]) -> Result<(), String> {
    /// The maximum number of names that an error lists.
    const NAMES_SHOWN_MAX: usize = 8;
    for name in names {
        if !routes.iter().any(|route| route.label == name) {
            let mut known: Vec<String> =
                routes.iter().take(NAMES_SHOWN_MAX).map(|route| quote_name_if_needed(&route.label)).collect();
            if routes.len() > NAMES_SHOWN_MAX {
                known.push("...".to_owned());
            }
            return Err(format!(
                "no request is called '{name}': the requests are {requests}",
                requests = known.join(", ")
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_quoted() {
        for (text, expect) in [
            ("p99<1s, a.p50<1s", vec!["p99<1s", " a.p50<1s"]),
            ("'a, b'.p99<1s,x", vec!["'a, b'.p99<1s", "x"]),
            ("\"it's, so\".max<1s", vec!["\"it's, so\".max<1s"]),
            ("it's.p99<1s,b", vec!["it's.p99<1s", "b"]),
            ("'open", vec!["'open"]),
            ("", vec![""]),
        ] {
            assert_eq!(split_conditions(text), expect, "{text}");
        }
        for name in ["order", "a, b", "it's", "service", "GET /items/{}", ""] {
            let text = format!("{}.p99", quote_name_if_needed(name));
            let read = split_quoted_name(&text).unwrap_or_else(|| text.split_once('.').expect("a point"));
            assert_eq!(read, (name, "p99"), "{text}");
        }
    }
}
