//! Serialises parameters and form fields: the styles of OpenAPI 3 (3.0.3, Style Values), and the
//! collection formats of OpenAPI 2.
//!
//! Not here: generating the values.

use super::super::draft::DraftText;
use super::super::nodes::{field, percent_encode_text, scalar_field_text};
use super::sample::SampleValue;
use crate::file::tree::{TreeNode, TreeValue};

/// The serialisation style of a parameter or form field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterStyle {
    name: String,
    explode: bool,
    /// Whether reserved characters are not percent-encoded.
    allows_reserved: bool,
    /// The separator of values in the style `label` without `explode`: a dot in OpenAPI 3.0, and a
    /// comma in all other versions.
    label_separator: &'static str,
}

impl ParameterStyle {
    /// Returns the style of a parameter. `place` is the location of the parameter (`in`), such as
    /// `path`; a form field has the location `query`.
    pub fn from_node(node: &TreeNode, place: &str, is_2: bool, is_3_0: bool) -> ParameterStyle {
        let label_separator = if is_3_0 { "." } else { "," };
        let is = |key: &str, usual: bool| match field(node, key).map(|node| &node.value) {
            Some(TreeValue::Flag(flag)) => *flag,
            _ => usual,
        };
        if is_2 {
            let (name, explode) = match (scalar_field_text(node, "collectionFormat"), place) {
                (Some("ssv"), _) => ("spaceDelimited", false),
                (Some("tsv"), _) => ("tabDelimited", false),
                (Some("pipes"), _) => ("pipeDelimited", false),
                (Some("multi"), _) => ("form", true),
                (_, "query" | "cookie") => ("form", false),
                _ => ("simple", false),
            };
            return ParameterStyle { name: name.to_owned(), explode, allows_reserved: false, label_separator };
        }
        let usual = if ["query", "cookie"].contains(&place) { "form" } else { "simple" };
        let name = scalar_field_text(node, "style").unwrap_or(usual).to_owned();
        let explode = is("explode", name == "form" || name == "deepObject");
        ParameterStyle { name, explode, allows_reserved: is("allowReserved", false), label_separator }
    }

    fn encode_value(&self, value: &DraftText) -> DraftText {
        match self.allows_reserved {
            false => value.escape_with_filter(percent_encode_text, "url"),
            true => value.map_literal_text(|text| text.replace(' ', "%20")),
        }
    }

    /// Returns the separator between the values of one parameter, for styles that do not repeat the
    /// parameter's name for each value.
    fn value_separator(&self) -> &'static str {
        match self.name.as_str() {
            "spaceDelimited" => "%20",
            "tabDelimited" => "%09",
            "pipeDelimited" => "|",
            _ => ",",
        }
    }

    /// Serialises a value as `name=value` pairs of a query or form.
    pub fn serialise_query_pairs(&self, name: &str, value: &SampleValue) -> DraftText {
        let key = percent_encode_text(name);
        let pair = |key: &str, value: &DraftText| {
            let mut pair = DraftText::literal(&format!("{key}="));
            pair.append(&self.encode_value(value));
            pair
        };
        match value {
            SampleValue::One(value) => pair(&key, value),
            SampleValue::List(items) if items.is_empty() => DraftText::literal(&format!("{key}=")),
            SampleValue::List(items) if self.explode => join_texts(items.iter().map(|item| pair(&key, item)), "&"),
            SampleValue::Table(entries) if self.name == "deepObject" => join_texts(
                entries.iter().map(|(own, value)| pair(&format!("{key}[{}]", percent_encode_text(own)), value)),
                "&",
            ),
            SampleValue::Table(entries) if self.explode => {
                join_texts(entries.iter().map(|(own, value)| pair(&percent_encode_text(own), value)), "&")
            }
            several => {
                let mut pair = DraftText::literal(&format!("{key}="));
                pair.append(&self.join_items(several, self.value_separator(), ",", true));
                pair
            }
        }
    }

    /// Joins the items of a value with the separator `between`. An item of an object is written as
    /// the key, the text `equals` and the value of the key.
    fn join_items(&self, value: &SampleValue, between: &str, equals: &str, encodes: bool) -> DraftText {
        let plain = |value: &DraftText| if encodes { self.encode_value(value) } else { value.clone() };
        match value {
            SampleValue::One(value) => plain(value),
            SampleValue::List(items) => join_texts(items.iter().map(plain), between),
            SampleValue::Table(entries) => join_texts(
                entries.iter().map(|(key, value)| {
                    let mut pair = DraftText::literal(&if encodes { percent_encode_text(key) } else { key.clone() });
                    pair.push(equals);
                    pair.append(&plain(value));
                    pair
                }),
                between,
            ),
        }
    }

    /// Serialises a value as a path segment.
    pub fn serialise_path_segment(&self, name: &str, value: &SampleValue) -> DraftText {
        match (self.name.as_str(), value) {
            ("label", value) => {
                let between = if self.explode { "." } else { self.label_separator };
                let mut text = DraftText::literal(".");
                text.append(&self.join_items(value, between, if self.explode { "=" } else { between }, true));
                text
            }
            ("matrix", SampleValue::List(items)) if self.explode => {
                let key = percent_encode_text(name);
                join_texts(items.iter().map(|item| self.matrix_parameter(&key, &self.encode_value(item))), "")
            }
            ("matrix", SampleValue::Table(entries)) if self.explode => join_texts(
                entries
                    .iter()
                    .map(|(key, value)| self.matrix_parameter(&percent_encode_text(key), &self.encode_value(value))),
                "",
            ),
            ("matrix", value) => {
                self.matrix_parameter(&percent_encode_text(name), &self.join_items(value, ",", ",", true))
            }
            (_, value) => self.join_items(value, self.value_separator(), if self.explode { "=" } else { "," }, true),
        }
    }

    fn matrix_parameter(&self, key: &str, value: &DraftText) -> DraftText {
        let mut text = DraftText::literal(&format!(";{key}="));
        text.append(value);
        text
    }

    /// Serialises a value as a header field.
    pub fn serialise_header(&self, value: &SampleValue) -> DraftText {
        self.join_items(value, ",", if self.explode { "=" } else { "," }, false)
    }

    /// Serialises a value as a cookie.
    pub fn serialise_cookie(&self, name: &str, value: &SampleValue) -> DraftText {
        match value {
            SampleValue::One(value) => {
                let mut text = DraftText::literal(&format!("{name}="));
                text.append(value);
                text
            }
            several => self.serialise_query_pairs(name, several),
        }
    }
}

fn join_texts(texts: impl Iterator<Item = DraftText>, between: &str) -> DraftText {
    let mut out = DraftText::default();
    for (number, text) in texts.enumerate() {
        out.push(if number > 0 { between } else { "" });
        out.append(&text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_styles_match_the_openapi_table() {
        let text = DraftText::literal;
        let one = SampleValue::One(text("blue"));
        let list = SampleValue::List(["blue", "black", "brown"].map(text).to_vec());
        let table =
            SampleValue::Table([("R", "100"), ("G", "200")].map(|(key, value)| (key.to_owned(), text(value))).to_vec());
        for (name, explode, of_one, of_list, of_table) in [
            ("matrix", false, ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200"),
            ("matrix", true, ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200"),
            ("label", false, ".blue", ".blue.black.brown", ".R.100.G.200"),
            ("label", true, ".blue", ".blue.black.brown", ".R=100.G=200"),
            ("simple", false, "blue", "blue,black,brown", "R,100,G,200"),
            ("simple", true, "blue", "blue,black,brown", "R=100,G=200"),
            ("form", false, "color=blue", "color=blue,black,brown", "color=R,100,G,200"),
            ("form", true, "color=blue", "color=blue&color=black&color=brown", "R=100&G=200"),
            ("spaceDelimited", false, "color=blue", "color=blue%20black%20brown", "color=R,100%20G,200"),
            ("pipeDelimited", false, "color=blue", "color=blue|black|brown", "color=R,100|G,200"),
            ("deepObject", true, "color=blue", "color=blue&color=black&color=brown", "color[R]=100&color[G]=200"),
        ] {
            let style = ParameterStyle { name: name.to_owned(), explode, allows_reserved: false, label_separator: "." };
            for (value, expect) in [(&one, of_one), (&list, of_list), (&table, of_table)] {
                let is_of_path = ["matrix", "label", "simple"].contains(&name);
                let got = if is_of_path {
                    style.serialise_path_segment("color", value)
                } else {
                    style.serialise_query_pairs("color", value)
                };
                assert_eq!(got.display_text(), expect, "{name} {explode}");
            }
        }
    }
}
