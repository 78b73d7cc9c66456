//! Parses templates in a traffic file and checks that every name in them is defined.

use super::file_context::FileContext;
use super::tree::{TrafficFileError, TreeNode};
use plimsoll_model::ParseBudget;
use plimsoll_model::data::ValueTable;
use plimsoll_model::template::{Template, TemplatePart, TemplateValue, ValueEscape};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A text of the load plan, and whether the text is a template.
pub type PlanText = (String, bool);

/// The names that templates may use: data columns, environment variables and captured values.
pub struct TextScope<'a> {
    pub file_context: &'a mut dyn FileContext,
    pub data: DataTables,
    /// The environment variables that templates use, with their values.
    pub variables: Vec<(String, String)>,
    variable_names: HashSet<String>,
    /// The names that setup requests capture.
    pub captured: HashSet<String>,
    /// The names that steps of the current scenario capture.
    pub captured_in_scenario: HashSet<String>,
    /// The number of bytes that all further body files together may have. If several requests use
    /// one body file, the file counts for each request, because each request has a separate copy.
    pub body_file_budget: ParseBudget,
}

/// The tables of data rows, and the column names of each table.
#[derive(Default)]
pub struct DataTables {
    pub tables: Vec<Arc<ValueTable>>,
    columns: HashMap<String, HashSet<String>>,
}

impl DataTables {
    pub fn push(&mut self, table: ValueTable) {
        let columns = || table.columns.iter().cloned().collect();
        self.columns.entry(table.name.clone()).or_insert_with(columns);
        self.tables.push(Arc::new(table));
    }
}

/// The largest accepted number of captures in a scenario. Each session reserves memory for all
/// captured values of its scenario.
pub const CAPTURES_MAX: usize = 5_000;
/// The largest number of column names that an error message lists.
const LISTED_COLUMNS_MAX: usize = 20;
/// The largest accepted total size of all body files, bytes (512 MiB).
pub const FILES_BYTES_MAX: usize = 512 << 20;

impl<'a> TextScope<'a> {
    pub fn new(file_context: &'a mut dyn FileContext) -> TextScope<'a> {
        let (data, variables, variable_names, captured, captured_in_scenario) = Default::default();
        let body_file_budget = ParseBudget::new(FILES_BYTES_MAX);
        TextScope { file_context, data, variables, variable_names, captured, captured_in_scenario, body_file_budget }
    }

    /// Reads a body file at `path`, and subtracts its size from the limit for all body files.
    pub fn read_body_file(&mut self, node: &TreeNode, path: &str) -> Result<Vec<u8>, TrafficFileError> {
        let bytes = self.file_context.read_file(path).or_else(|why| node.error(format!("the file '{path}' {why}")))?;
        let limit_mib = FILES_BYTES_MAX >> 20;
        let too_much =
            |_| format!("with '{path}', the body files of this traffic file exceed {limit_mib} MiB together");
        self.body_file_budget.spend_bytes(bytes.len()).map_err(too_much).or_else(|why| node.error(why))?;
        Ok(bytes)
    }

    /// Returns the text of a value, and whether the text is a template. If `raw` is true, the text
    /// is never a template.
    pub fn parse_text(&mut self, node: &TreeNode, text: &str, raw: bool) -> Result<PlanText, TrafficFileError> {
        if raw || !text.contains("{{") {
            return Ok((text.to_owned(), false));
        }
        let parts = self.parse_template_parts(node, text)?;
        let template = Template { parts: parts.into_iter().map(|(part, _)| part).collect() };
        // A template without values becomes plain text, which undoes the escapes of `{{`.
        Ok(if template.has_no_values() { (template.replace_values(""), false) } else { (text.to_owned(), true) })
    }

    /// Parses a template into its parts, and checks that every name in the template is defined.
    fn parse_template_parts<'t>(
        &mut self,
        node: &TreeNode,
        text: &'t str,
    ) -> Result<Vec<(TemplatePart, &'t str)>, TrafficFileError> {
        let parts =
            Template::split_into_parts(text).map_err(|error| TrafficFileError::new(node.at, error.to_string()))?;
        for (part, _) in &parts {
            if let TemplatePart::Value(value, _) = part {
                self.check_defined(node, value)?;
            }
        }
        Ok(parts)
    }

    fn check_defined(&mut self, node: &TreeNode, value: &TemplateValue) -> Result<(), TrafficFileError> {
        match value {
            TemplateValue::Env(name) if self.variable_names.contains(name) => Ok(()),
            TemplateValue::Env(name) => match self.file_context.environment_variable(name) {
                Some(value) => {
                    self.variable_names.insert(name.clone());
                    self.variables.push((name.clone(), value));
                    Ok(())
                }
                None => node.error(format!("the environment has no variable '{name}': set this variable")),
            },
            TemplateValue::Column { data, column } => match self.data.columns.get(data) {
                None => {
                    node.error(format!("the traffic file has no data '{data}': add [data.{data}] with file = \"...\""))
                }
                Some(columns) if columns.contains(column) => Ok(()),
                Some(_) => {
                    let table = self.data.tables.iter().find(|table| table.name == *data);
                    let columns = table.map_or(&[][..], |table| &table.columns);
                    let known_columns =
                        columns.iter().take(LISTED_COLUMNS_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
                    let and_more = if columns.len() > LISTED_COLUMNS_MAX { ", and more" } else { "" };
                    node.error(format!(
                        "the data '{data}' has no column '{column}': the columns are {known_columns}{and_more}"
                    ))
                }
            },
            TemplateValue::Captured(name)
                if self.captured.contains(name) || self.captured_in_scenario.contains(name) =>
            {
                Ok(())
            }
            TemplateValue::Captured(name) => node.error(format!(
                "nothing sets '{name}', which a placeholder uses: capture it in an earlier step (capture = {{ {name} = \
                 \"$.{name}\" }}), or use DATA.COLUMN or a function such as uuid()"
            )),
            _ => Ok(()),
        }
    }

    /// Appends a text to `out` as a JSON string, and returns whether the text contains template
    /// values. A text that is one numeric template value is written without quotation marks, so
    /// that JSON gets a number.
    pub fn push_json_text(
        &mut self,
        node: &TreeNode,
        text: &str,
        raw: bool,
        out: &mut String,
    ) -> Result<bool, TrafficFileError> {
        if raw || !text.contains("{{") {
            push_json_string(text, out);
            return Ok(false);
        }
        let parts = self.parse_template_parts(node, text)?;
        if let [(TemplatePart::Value(value, ValueEscape::Plain), source)] = parts.as_slice()
            && value.is_number()
        {
            out.push_str(&format!("{{{{ {source} }}}}"));
            return Ok(true);
        }
        let is_filled = parts.iter().any(|(part, _)| matches!(part, TemplatePart::Value(..)));
        out.push('"');
        for (part, source) in &parts {
            match part {
                TemplatePart::Text(text) => {
                    let mut escaped = String::new();
                    push_json_escaped(text, &mut escaped);
                    out.push_str(&escape_template_braces(&escaped));
                }
                TemplatePart::Value(_, ValueEscape::Plain) => out.push_str(&format!("{{{{ {source} | json }}}}")),
                TemplatePart::Value(..) => out.push_str(&format!("{{{{ {source} }}}}")),
            }
        }
        out.push('"');
        Ok(is_filled)
    }
}

/// Returns a template that renders to exactly this text, with every `{{` escaped.
pub fn escape_template_braces(text: &str) -> String {
    text.replace("{{", "{{ '{{' }}")
}

/// Appends a text as a JSON string.
pub fn push_json_string(text: &str, out: &mut String) {
    out.push('"');
    push_json_escaped(text, out);
    out.push('"');
}

fn push_json_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
}
