//! Parses logfmt lines, `name=value name="a value"`, as slog, logrus, lograge and Heroku's router
//! write them. Not here: the meaning of names ([`super::known`]).

use super::entry::ParsedLogFields;
use super::json::PathNode;

/// The fewest pairs of name and value in a line of logfmt. A line with fewer pairs counts as a line
/// of another format.
const PAIRS_MIN: usize = 3;

/// Extracts the wanted values of a line. `None` if the line has words other than pairs, or too few
/// pairs.
pub(super) fn read<'a>(root: &PathNode, line: &'a [u8]) -> Option<ParsedLogFields<'a>> {
    let mut raw = ParsedLogFields::default();
    let (mut rest, mut pairs) = (line.trim_ascii(), 0);
    while !rest.is_empty() {
        let equals = memchr::memchr2(b'=', b' ', rest).filter(|at| *at > 0 && rest[*at] == b'=')?;
        let name = &rest[..equals];
        let (value, after) = split_value(&rest[equals + 1..])?;
        if let Some(place) = root.meaning_of_name(name) {
            raw.parse_field(place, value)?;
        }
        pairs += 1;
        rest = after.trim_ascii_start();
    }
    (pairs >= PAIRS_MIN).then_some(raw)
}

/// Splits off a value without its quotes. Escapes in the value are not decoded.
fn split_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(inner) = text.strip_prefix(b"\"") else {
        return Some(text.split_at(memchr::memchr(b' ', text).unwrap_or(text.len())));
    };
    let mut end = 0;
    loop {
        end += memchr::memchr2(b'"', b'\\', inner.get(end..)?)?;
        if inner[end] == b'"' {
            break;
        }
        end += 2;
    }
    let after = &inner[end + 1..];
    (after.is_empty() || after.starts_with(b" ")).then_some((&inner[..end], after))
}

#[cfg(test)]
mod tests {
    use super::super::entry::FieldMeaning;
    use super::*;

    #[test]
    fn logfmt_values_are_found_by_name() {
        let root = PathNode::new(&[(vec!["path".into()], FieldMeaning::Target)]);
        for (line, expect) in [
            ("level=info method=GET path=/a?b=1 status=200", Some("/a?b=1")),
            (r#"msg="a b" method=GET path="/a b""#, Some("/a b")),
            (r#"msg="a \"path=/no\" b" path=/a  status=200 "#, Some("/a")),
            ("a= path=/a c=", Some("/a")),
            ("method=GET path=/a", None),
            ("see method=GET path=/a status=200", None),
            ("method=GET path=/a status=200 done", None),
            (r#"msg="a b path=/a status=200"#, None),
            (r#"msg="a"b path=/a status=200"#, None),
            ("=a path=/a b=c", None),
            ("", None),
        ] {
            let target = read(&root, line.as_bytes()).map(|raw| String::from_utf8_lossy(raw.target).into_owned());
            assert_eq!(target.as_deref(), expect, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_parses_without_a_panic(line in "(path|=|\"|\\\\| |[a-c/]){0,30}") {
            let root = PathNode::new(&[(vec!["path".into()], FieldMeaning::Target)]);
            let _ = read(&root, line.as_bytes());
        }
    }
}
