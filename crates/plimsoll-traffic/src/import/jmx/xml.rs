//! The elements of a test plan: each is followed by a `hashTree` of those below it, and has
//! properties by name.

use crate::file::TextPlace;
use crate::file::tree::Lines;
use roxmltree::Node;

/// Attributes of one element, at most: parsers compare each with all others.
pub const ATTRIBUTES_MAX: usize = 100;

/// Where an element has more attributes than any test plan's, if one does. Told from the text
/// alone, before it is parsed.
pub fn beyond_attributes(source: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(begin) = source[at..].find('<').map(|found| at + found) {
        let rest = &source[begin..];
        let until = |end: &str| rest.find(end).map_or(source.len(), |found| begin + found + end.len());
        if rest.starts_with("<!--") {
            at = until("-->");
            continue;
        }
        if rest.starts_with("<![CDATA[") {
            at = until("]]>");
            continue;
        }
        let (mut count, mut quote) = (0, None);
        at = source.len();
        for (place, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (Some(open), byte) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => count += 1,
                (None, b'>') => {
                    at = begin + place + 1;
                    break;
                }
                (None, _) => {}
            }
            if count > ATTRIBUTES_MAX {
                return Some(begin);
            }
        }
    }
    None
}

/// An element, and the elements below it.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a, 'i> {
    pub node: Node<'a, 'i>,
    below: Option<Node<'a, 'i>>,
}

/// The elements of a `hashTree`, but for those that are turned off.
pub fn elements<'a, 'i>(tree: Node<'a, 'i>) -> Vec<Element<'a, 'i>> {
    let mut all: Vec<Element> = Vec::new();
    for node in tree.children().filter(Node::is_element) {
        match (node.tag_name().name(), all.last_mut()) {
            ("hashTree", Some(last)) if last.below.is_none() => last.below = Some(node),
            ("hashTree", _) => {}
            _ => all.push(Element { node, below: None }),
        }
    }
    all.retain(|element| element.node.attribute("enabled") != Some("false"));
    all
}

impl<'a, 'i> Element<'a, 'i> {
    pub fn below(&self) -> Vec<Element<'a, 'i>> {
        self.below.map(elements).unwrap_or_default()
    }

    /// What it is, as the tool calls it.
    pub fn kind(&self) -> &'a str {
        let name = self.node.tag_name().name();
        // Plugins have the whole path of their class.
        name.rsplit('.').next().unwrap_or(name)
    }

    pub fn name(&self) -> &'a str {
        self.node.attribute("testname").unwrap_or_default()
    }

    /// The text of a property; of one without text the empty one.
    pub fn property(&self, name: &str) -> Option<&'a str> {
        property(self.node, name)
    }

    /// Its properties with their texts; those that hold others with an empty one.
    pub fn properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.node.children().filter(Node::is_element).filter_map(|child| {
            let has_others = child.children().any(|inner| inner.is_element());
            Some((child.attribute("name")?, if has_others { "" } else { child.text().unwrap_or_default() }))
        })
    }

    pub fn flag(&self, name: &str) -> bool {
        self.property(name).is_some_and(|text| text.trim() == "true")
    }

    /// The elements of a collection that is a property, or inside of one.
    pub fn collection(&self, name: &str) -> Vec<Node<'a, 'i>> {
        let is_it = |node: &Node| node.has_tag_name("collectionProp") && node.attribute("name") == Some(name);
        let found = self.node.descendants().find(is_it);
        found.map(|node| node.children().filter(Node::is_element).collect()).unwrap_or_default()
    }

    pub fn place(&self) -> TextPlace {
        place(self.node)
    }
}

/// The text of a property of this node, in any of its writings.
pub fn property<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().filter(Node::is_element).find_map(|child| {
        if child.attribute("name") == Some(name) {
            return Some(child.text().unwrap_or_default());
        }
        let part = |part: &str| child.children().find(|node| node.has_tag_name(part)).and_then(|node| node.text());
        (part("name") == Some(name)).then(|| part("value").unwrap_or_default())
    })
}

/// Where a node begins: its byte, as the column of no line. [`counted`] makes a place of it, once
/// for all.
pub fn place(node: Node) -> TextPlace {
    TextPlace { line: 0, column: node.range().start }
}

/// The place of a byte that [`place`] gave.
pub fn counted(at: TextPlace, lines: &Lines) -> TextPlace {
    lines.place(at.column)
}

/// A text from the plan as it may be told: one line, not too long.
pub fn short_text(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_with_very_many_attributes_are_found() {
        let many = |count: usize| (0..count).map(|n| format!("a{n}='x>\"' ")).collect::<String>();
        for (source, expect) in [
            (format!("<a {}/>", many(100)), None),
            (format!("<a {}/>", many(101)), Some(0)),
            (format!("<a b='1'>=<c {}>", many(101)), Some(10)),
            (format!("<!-- <a {}/> --><![CDATA[<b {}>]]><c/>", many(200), many(200)), None),
            (format!("<a>{}</a>", "=".repeat(1_000)), None),
            ("<a b='".to_owned(), None),
            ("<".repeat(100_000), None),
        ] {
            assert_eq!(beyond_attributes(&source), expect, "{source:.40}");
        }
    }
}
