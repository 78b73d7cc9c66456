//! Facts about a whole API description: its version, its servers, and its references.

use super::super::nodes::{self, field, is_field_true, items, scalar_field_text};
use crate::file::tree::{TextPosition, TrafficFileError, TreeNode, TreeValue};
use plimsoll_model::ParseBudget;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// The longest chain of references that is followed.
const REFERENCES_MAX: usize = 32;

/// An API description, with facts that concern the whole description.
pub struct ApiDescription<'a> {
    pub tree: &'a TreeNode,
    /// Whether the description has version 2 (Swagger).
    pub is_swagger_2: bool,
    pub base_url: Option<String>,
    /// A note for the user if the description has no base URL, or if servers other than the first
    /// are ignored.
    pub base_url_note: Option<String>,
    pub base_at: TextPosition,
    /// The remaining memory budget for the examples of all operations.
    pub budget: Cell<ParseBudget>,
    /// A cache of resolved references, with the target of each reference.
    resolved_references: RefCell<HashMap<String, Option<&'a TreeNode>>>,
    /// Whether the description has version 3.0, not 3.1 or later.
    pub is_3_0: bool,
}

impl<'a> ApiDescription<'a> {
    /// Reads the version and servers of a description of `bytes` bytes.
    pub fn new(tree: &'a TreeNode, bytes: usize) -> Result<ApiDescription<'a>, TrafficFileError> {
        let is_2 = match (scalar_field_text(tree, "openapi"), scalar_field_text(tree, "swagger")) {
            (Some(version), _) if version.starts_with("3.") => false,
            (None, Some(version)) if version.starts_with('2') => true,
            (Some(version), _) | (None, Some(version)) => {
                return tree.error(format!("OpenAPI {version} is not supported: use 3.0, 3.1 or 2.0 (Swagger)"));
            }
            (None, None) => {
                return tree.error(
                    "this is not an OpenAPI description: it has neither 'openapi' nor 'swagger' with a version",
                );
            }
        };
        let is_3_0 = scalar_field_text(tree, "openapi").is_some_and(|version| version.starts_with("3.0"));
        let budget = ParseBudget::proportional_to_input(bytes).into();
        let resolved_references = RefCell::default();
        let mut api = ApiDescription {
            tree,
            is_swagger_2: is_2,
            base_url: None,
            base_url_note: None,
            base_at: tree.at,
            budget,
            resolved_references,
            is_3_0,
        };
        if is_2 {
            api.set_base_url_from_swagger2()
        } else {
            api.set_base_url_from_openapi3()
        }
        Ok(api)
    }

    fn set_base_url_from_swagger2(&mut self) {
        let path = scalar_field_text(self.tree, "basePath").unwrap_or_default().trim_end_matches('/');
        let schemes = items(self.tree, "schemes");
        let scheme = schemes.iter().filter_map(nodes::scalar_text).find(|scheme| scheme.starts_with("http"));
        match scalar_field_text(self.tree, "host") {
            Some(host) => self.base_url = Some(format!("{}://{host}{path}", scheme.unwrap_or("https"))),
            None => {
                self.base_url_note = Some(match path.is_empty() {
                    true => "the OpenAPI file names no host: give the host as the target".to_owned(),
                    false => {
                        format!("the OpenAPI file names no host: give the host as the target, with the path {path}")
                    }
                });
            }
        }
    }

    fn set_base_url_from_openapi3(&mut self) {
        let servers = items(self.tree, "servers");
        let Some(server) = servers.first() else {
            self.base_url_note = Some("the OpenAPI file names no server: give the server as the target".to_owned());
            return;
        };
        self.base_at = server.at;
        let url = self.server_url(server);
        let url = url.trim_end_matches('/');
        match nodes::split_http_url(url) {
            Some(_) if !url.contains('{') => self.base_url = Some(url.to_owned()),
            _ if url.is_empty() => {
                self.base_url_note = Some("the OpenAPI file names no host: give the host as the target".to_owned())
            }
            _ => {
                self.base_url_note =
                    Some(format!("the OpenAPI file names no host: give the host as the target, with the path {url}"))
            }
        }
        if servers.len() > 1 {
            let others: Vec<&str> = servers[1..].iter().filter_map(|server| scalar_field_text(server, "url")).collect();
            let text = format!(
                "the other servers of the OpenAPI file get no requests ({servers}): to load one of them, give it as \
                 the target",
                servers = others.join(", ")
            );
            self.base_url_note.get_or_insert(text);
        }
    }

    /// Returns the URL of a server, with default values for its variables.
    pub fn server_url(&self, server: &TreeNode) -> String {
        let url = scalar_field_text(server, "url").unwrap_or("/");
        match field(server, "variables") {
            Some(variables) => expand_variables(url, |name| {
                scalar_field_text(field(variables, name)?, "default").filter(|value| self.spend_budget(value.len()))
            }),
            None => url.to_owned(),
        }
    }

    /// Follows the reference (`$ref`) of a value, if the value is a reference. `None` if the target
    /// is missing or in another document.
    pub fn resolve_reference(&self, node: &'a TreeNode) -> Option<&'a TreeNode> {
        let mut node = node;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = scalar_field_text(node, "$ref") else { return Some(node) };
            let known = self.resolved_references.borrow().get(reference).copied();
            node = known.unwrap_or_else(|| {
                let found = self.resolve_json_pointer(reference);
                self.resolved_references.borrow_mut().insert(reference.to_owned(), found);
                found
            })?;
        }
        None
    }

    /// Subtracts the bytes of an example from the memory budget. Returns false if the budget is
    /// exhausted.
    pub fn spend_budget(&self, bytes: usize) -> bool {
        let mut budget = self.budget.get();
        let has_room = budget.spend_bytes(bytes).is_ok();
        self.budget.set(budget);
        has_room
    }

    /// Returns the literal example of a schema or parameter, in any notation of OpenAPI.
    pub fn literal_example(&self, node: &'a TreeNode) -> Option<&'a TreeNode> {
        let listed = || match field(node, "examples").map(|examples| &examples.value) {
            Some(TreeValue::List(examples)) => examples.first(),
            Some(TreeValue::Table(examples)) => {
                examples.iter().find_map(|(_, example)| field(self.resolve_reference(example)?, "value"))
            }
            _ => None,
        };
        field(node, "example").or_else(|| field(node, "x-example")).or_else(listed)
    }

    /// Resolves a pointer such as `#/components/schemas/Pet`.
    fn resolve_json_pointer(&self, reference: &str) -> Option<&'a TreeNode> {
        let pointer = reference.strip_prefix("#/")?;
        pointer.split('/').try_fold(self.tree, |node, key| {
            let key = percent_decoded(key).replace("~1", "/").replace("~0", "~");
            match field(node, &key) {
                Some(node) => Some(node),
                None => match &node.value {
                    TreeValue::List(items) => items.get(key.parse::<usize>().ok()?),
                    _ => None,
                },
            }
        })
    }

    /// Returns the security scheme with this name.
    pub fn security_scheme(&self, name: &str) -> Option<&'a TreeNode> {
        let path: &[&str] =
            if self.is_swagger_2 { &["securityDefinitions", name] } else { &["components", "securitySchemes", name] };
        self.resolve_reference(nodes::node_at(self.tree, path)?)
    }
}

/// Replaces each `{name}` in a text by its value. A `{name}` inside a value is not replaced.
fn expand_variables<'a>(source: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let (mut out, mut rest) = (String::new(), source);
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(before);
        match value(name) {
            Some(value) => out.push_str(value),
            None => out.push_str(&format!("{{{name}}}")),
        }
        rest = after;
    }
    out + rest
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether a value occurs in responses only.
pub fn is_read_only(schema: &TreeNode) -> bool {
    is_field_true(schema, "readOnly")
}
