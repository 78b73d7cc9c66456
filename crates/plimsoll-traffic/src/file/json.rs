//! Parses JSON and records the line and column of every value, for error messages. Common JSON
//! libraries do not report the positions of values.

use super::texts::push_json_string;
use super::tree::{DEPTH_MAX, LinePositions, TableEntries, TrafficFileError, TreeKey, TreeNode, TreeValue};

/// The largest accepted number of values in a JSON document. Browser recordings of several hours
/// have fewer values.
const VALUES_MAX: usize = 5_000_000;

/// Parses a JSON text into a tree of values with positions.
pub fn parse_json_tree(text: &str) -> Result<TreeNode, TrafficFileError> {
    let mut reader = JsonReader { text, at: 0, lines: LinePositions::new(text), values: 0 };
    let node = reader.parse_value(0)?;
    reader.skip_whitespace();
    if reader.at < text.len() {
        return reader.syntax_error("the file has text after the end of the JSON document");
    }
    Ok(node)
}

/// Appends a value to `out` as JSON text.
pub fn write(node: &TreeNode, out: &mut String) {
    match &node.value {
        TreeValue::Null => out.push_str("null"),
        TreeValue::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        TreeValue::Number(number) => out.push_str(number),
        TreeValue::Text(text) => push_json_string(text, out),
        TreeValue::List(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write(item, out);
            }
            out.push(']');
        }
        TreeValue::Table(entries) => {
            out.push('{');
            for (number, (key, value)) in entries.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                push_json_string(&key.name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    lines: LinePositions<'a>,
    /// The number of values read so far, compared with `VALUES_MAX`.
    values: usize,
}

impl<'a> JsonReader<'a> {
    fn remaining_text(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error_at_position<T>(&self, text: &str) -> Result<T, TrafficFileError> {
        Err(TrafficFileError::new(self.lines.position_at(self.at), text))
    }

    fn syntax_error<T>(&self, reason: &str) -> Result<T, TrafficFileError> {
        self.error_at_position(&format!("this is not JSON: {reason}"))
    }

    fn skip_whitespace(&mut self) {
        self.at = self.text.len() - self.remaining_text().trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    /// Skips blanks, then consumes the next character if it is `c`. Returns whether `c` was
    /// consumed.
    fn consume_if_next(&mut self, c: char) -> bool {
        self.skip_whitespace();
        let there = self.remaining_text().starts_with(c);
        self.at += if there { c.len_utf8() } else { 0 };
        there
    }

    fn parse_value(&mut self, depth: usize) -> Result<TreeNode, TrafficFileError> {
        self.skip_whitespace();
        if depth > DEPTH_MAX {
            return self
                .error_at_position(&format!("the JSON values are nested more than {DEPTH_MAX} levels deep here"));
        }
        self.values += 1;
        if self.values > VALUES_MAX {
            return self.error_at_position(&format!("the JSON document has more than {VALUES_MAX} values"));
        }
        let at = self.lines.position_at(self.at);
        let value = match self.remaining_text().chars().next() {
            None => return self.syntax_error("a value is missing at the end of the JSON document"),
            Some('"') => TreeValue::Text(self.parse_string()?),
            Some('{') => self.parse_object(depth)?,
            Some('[') => self.parse_array(depth)?,
            Some(_) => self.parse_literal_or_number()?,
        };
        Ok(TreeNode { at, value })
    }

    fn parse_object(&mut self, depth: usize) -> Result<TreeValue, TrafficFileError> {
        let mut entries = TableEntries::default();
        self.consume_if_next('{');
        if self.consume_if_next('}') {
            return Ok(entries.into_value());
        }
        loop {
            self.skip_whitespace();
            let at = self.lines.position_at(self.at);
            if !self.remaining_text().starts_with('"') {
                return self.syntax_error("a key of a JSON object, in quotation marks, is expected here");
            }
            let key = TreeKey { at, name: self.parse_string()? };
            if !self.consume_if_next(':') {
                return self.syntax_error("':' is expected after a key of a JSON object");
            }
            let node = self.parse_value(depth + 1)?;
            entries.insert(key, node)?;
            match (self.consume_if_next(','), self.consume_if_next('}')) {
                (true, false) => {}
                (false, true) => return Ok(entries.into_value()),
                (true, true) => return self.syntax_error("a ',' stands before '}'"),
                (false, false) => return self.syntax_error("',' or '}' is expected after a value of a JSON object"),
            }
        }
    }

    fn parse_array(&mut self, depth: usize) -> Result<TreeValue, TrafficFileError> {
        let mut items = Vec::new();
        self.consume_if_next('[');
        if self.consume_if_next(']') {
            return Ok(TreeValue::List(items));
        }
        loop {
            items.push(self.parse_value(depth + 1)?);
            match (self.consume_if_next(','), self.consume_if_next(']')) {
                (true, false) => {}
                (false, true) => return Ok(TreeValue::List(items)),
                (true, true) => return self.syntax_error("a ',' stands before ']'"),
                (false, false) => return self.syntax_error("',' or ']' is expected after a value of a JSON array"),
            }
        }
    }

    fn parse_literal_or_number(&mut self) -> Result<TreeValue, TrafficFileError> {
        let word = self.remaining_text();
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(word.len());
        let word = &word[..end];
        let value = match word {
            "true" => TreeValue::Flag(true),
            "false" => TreeValue::Flag(false),
            "null" => TreeValue::Null,
            _ if is_number(word) => TreeValue::Number(word.to_owned()),
            _ => {
                return self.syntax_error(
                    "a value is expected here: a string in quotation marks, a number, true, false, null, {...} or \
                     [...]",
                );
            }
        };
        self.at += end;
        Ok(value)
    }

    fn parse_string(&mut self) -> Result<String, TrafficFileError> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let Some(c) = self.remaining_text().chars().next() else {
                return self.syntax_error("a JSON string has no closing quotation mark");
            };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(out);
                }
                '\\' => {
                    self.at += 1;
                    out.push(self.parse_escape()?);
                }
                c if c < ' ' => {
                    return self.syntax_error(
                        "a JSON string contains a line break or control character: use an escape such as \\n",
                    );
                }
                c => {
                    self.at += c.len_utf8();
                    out.push(c);
                }
            }
        }
    }

    fn parse_escape(&mut self) -> Result<char, TrafficFileError> {
        let Some(c) = self.remaining_text().chars().next() else {
            return self.syntax_error("a JSON string has no closing quotation mark");
        };
        let known = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                self.at += 1;
                let high = self.parse_hex_digits()?;
                if !(0xD800..0xDC00).contains(&high) {
                    return char::from_u32(high)
                        .map_or_else(|| self.syntax_error("the \\u escape is only half a pair of surrogates"), Ok);
                }
                if !self.remaining_text().starts_with("\\u") {
                    return self.syntax_error("the \\u escape is only half a pair of surrogates");
                }
                self.at += 2;
                let low = self.parse_hex_digits()?;
                let pair = 0x10000 + ((high - 0xD800) << 10) + low.wrapping_sub(0xDC00);
                return match (0xDC00..0xE000).contains(&low) {
                    true => char::from_u32(pair)
                        .map_or_else(|| self.syntax_error("the \\u escape is only half a pair of surrogates"), Ok),
                    false => self.syntax_error("the \\u escape is only half a pair of surrogates"),
                };
            }
            _ => {
                return self
                    .syntax_error("in a JSON string, after \\ only these characters are allowed: \" \\ / b f n r t u");
            }
        };
        self.at += 1;
        Ok(known)
    }

    /// Reads the four hexadecimal digits of a `\u` escape.
    fn parse_hex_digits(&mut self) -> Result<u32, TrafficFileError> {
        let digits = self.remaining_text().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                self.at += 4;
                Ok(value)
            }
            None => self.syntax_error("in a JSON string, four hexadecimal digits are expected after \\u"),
        }
    }
}

/// Returns whether a word is a number in the grammar of JSON.
pub fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    digits.starts_with(|c: char| c.is_ascii_digit())
        && !leading_zero
        && !word.contains(".e")
        && !word.ends_with('.')
        && word.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_json_is_refused_with_its_position() {
        for (text, place, part) in [
            ("", (1, 1), "missing"),
            ("{\"a\": 1,}", (1, 10), "','"),
            ("{\n  a: 1}", (2, 3), "quotation marks"),
            ("{\"a\" 1}", (1, 6), "':'"),
            ("{\"a\": 01}", (1, 7), "a value"),
            ("{\"a\": \"x", (1, 9), "closing"),
            ("{\"a\": \"\\q\"}", (1, 9), "after \\"),
            ("{\"a\": \"\\ud800x\"}", (1, 14), "half a pair"),
            ("{\"a\": 1} x", (1, 10), "text after the end"),
            ("{\"a\": 1, \"a\": 2}", (1, 10), "twice"),
        ] {
            let error = parse_json_tree(text).expect_err(text);
            assert_eq!((error.at.line, error.at.column), place, "{text}: {error}");
            assert!(error.text.contains(part), "{text}: {error}");
        }
        assert!(
            parse_json_tree(&"[".repeat(10_000)).expect_err("too deep").text.contains("values are nested more than")
        );
        let text = "{\"a\": [1, -2.5e3, \"\\u00e9\\ud83d\\ude00\\n\", true, null, {}, []]}";
        let TreeValue::Table(entries) = parse_json_tree(text).expect("JSON").value else { panic!("a table") };
        let items: Vec<&TreeValue> = entries[0].1.list("a").expect("a list").iter().map(|node| &node.value).collect();
        let number = |text: &str| TreeValue::Number(text.into());
        let expect = [
            number("1"),
            number("-2.5e3"),
            TreeValue::Text("\u{e9}\u{1f600}\n".into()),
            TreeValue::Flag(true),
            TreeValue::Null,
        ];
        assert!(items.into_iter().zip(&expect).all(|(got, want)| got == want));
    }
}
