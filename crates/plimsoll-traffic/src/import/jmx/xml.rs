//! The elements of a JMeter test plan. Each element has named properties. The elements below an
//! element are in the `hashTree` that follows the element in the XML file.

use crate::file::TextPosition;
use crate::file::tree::LinePositions;
use roxmltree::Node;

/// The largest accepted number of attributes of an element. XML parsers compare each attribute with
/// all others, so many attributes would be slow.
pub const ATTRIBUTES_MAX: usize = 100;

/// Returns the offset of an element with too many attributes, if any. The check runs on the text
/// before the XML parser reads the text.
pub fn excess_attributes_offset(source: &str) -> Option<usize> {
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

/// An element of the plan, with the `hashTree` of elements below it.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a, 'i> {
    pub node: Node<'a, 'i>,
    hash_tree: Option<Node<'a, 'i>>,
}

/// Returns the enabled elements of a `hashTree`.
pub fn elements<'a, 'i>(tree: Node<'a, 'i>) -> Vec<Element<'a, 'i>> {
    let mut all: Vec<Element> = Vec::new();
    for node in tree.children().filter(Node::is_element) {
        match (node.tag_name().name(), all.last_mut()) {
            ("hashTree", Some(last)) if last.hash_tree.is_none() => last.hash_tree = Some(node),
            ("hashTree", _) => {}
            _ => all.push(Element { node, hash_tree: None }),
        }
    }
    all.retain(|element| element.node.attribute("enabled") != Some("false"));
    all
}

impl<'a, 'i> Element<'a, 'i> {
    pub fn child_elements(&self) -> Vec<Element<'a, 'i>> {
        self.hash_tree.map(elements).unwrap_or_default()
    }

    /// Returns the Java class of the element, such as `ThreadGroup`, without the package of the
    /// class.
    pub fn kind(&self) -> &'a str {
        let name = self.node.tag_name().name();
        // JMeter plugins write the name of a Java class with its package.
        name.rsplit('.').next().unwrap_or(name)
    }

    pub fn name(&self) -> &'a str {
        self.node.attribute("testname").unwrap_or_default()
    }

    /// Returns the text of a property; empty if the property has no text, `None` if there is no
    /// such property.
    pub fn property(&self, name: &str) -> Option<&'a str> {
        property(self.node, name)
    }

    /// Returns the names and texts of all properties. Nested properties have an empty text.
    pub fn properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.node.children().filter(Node::is_element).filter_map(|child| {
            let has_others = child.children().any(|inner| inner.is_element());
            Some((child.attribute("name")?, if has_others { "" } else { child.text().unwrap_or_default() }))
        })
    }

    pub fn is_property_true(&self, name: &str) -> bool {
        self.property(name).is_some_and(|text| text.trim() == "true")
    }

    /// Returns the child elements of a collection property, which may be nested.
    pub fn collection_items(&self, name: &str) -> Vec<Node<'a, 'i>> {
        let is_it = |node: &Node| node.has_tag_name("collectionProp") && node.attribute("name") == Some(name);
        let found = self.node.descendants().find(is_it);
        found.map(|node| node.children().filter(Node::is_element).collect()).unwrap_or_default()
    }

    pub fn place(&self) -> TextPosition {
        provisional_position(self.node)
    }
}

/// Returns the text of a property of a node, in any of the XML notations that JMeter uses.
pub fn property<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().filter(Node::is_element).find_map(|child| {
        if child.attribute("name") == Some(name) {
            return Some(child.text().unwrap_or_default());
        }
        let part = |part: &str| child.children().find(|node| node.has_tag_name(part)).and_then(|node| node.text());
        (part("name") == Some(name)).then(|| part("value").unwrap_or_default())
    })
}

/// Returns the byte offset of a node as a provisional position, stored as a column in line 0.
/// [`line_and_column`] converts the position later.
pub fn provisional_position(node: Node) -> TextPosition {
    TextPosition { line: 0, column: node.range().start }
}

/// Converts a position that [`provisional_position`] returned to line and column.
pub fn line_and_column(at: TextPosition, lines: &LinePositions) -> TextPosition {
    lines.position_at(at.column)
}

/// Shortens a text of the plan to one line for notes.
pub fn short_text(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_elements_with_too_many_attributes_are_detected() {
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
            assert_eq!(excess_attributes_offset(&source), expect, "{source:.40}");
        }
    }
}
