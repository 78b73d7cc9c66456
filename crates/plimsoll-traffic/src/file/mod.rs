//! Parser of traffic files in TOML, YAML or JSON, which share one structure.
//!
//! The text of each format becomes a tree whose values contain their line and column ([`tree`]).
//! The meaning of the keys is defined once for all formats, on the tree of values ([`keys`],
//! [`mix`], [`scenario`]). An unknown key is an error, and the error suggests the most similar
//! known key.

mod expect;
mod file_context;
pub(crate) mod json;
mod keys;
mod labels;
mod load;
mod mix;
mod multipart;
mod request;
mod rows;
mod scenario;
mod setup_cleanup;
mod texts;
pub(crate) mod toml;
pub(crate) mod tree;
pub(crate) mod yaml;

use mix::TrafficFileContent;
use plimsoll_model::redact::RedactionLevel;
use plimsoll_model::template::{Template, TemplateValue};
use plimsoll_model::traffic::{Origin, Route, RouteChoice};
use plimsoll_model::{RouteNumber, SetupTeardown, Traffic};
use setup_cleanup::SetupCleanupRequest;

pub use file_context::{FileContext, RequestDefaults};
pub use load::FileLoad;
pub(crate) use texts::{CAPTURES_MAX, push_json_string};
pub use tree::{TextPosition, TrafficFileError};

/// The format of a traffic file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficFormat {
    /// The file is TOML 1.1.
    Toml,
    /// The file is YAML 1.2.
    Yaml,
    /// The file is JSON.
    Json,
}

impl TrafficFormat {
    /// Returns the format that the extension of a file name stands for. The default is TOML.
    pub fn from_file_name(name: &str) -> TrafficFormat {
        match name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
            Some("yaml" | "yml") => TrafficFormat::Yaml,
            Some("json") => TrafficFormat::Json,
            _ => TrafficFormat::Toml,
        }
    }
}

/// A parsed and checked traffic file.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficFile {
    content: TrafficFileContent,
}

impl TrafficFile {
    /// Parses the text of a traffic file. `world` gives access to the files and variables that the
    /// text names.
    pub fn read(
        text: &str,
        format: TrafficFormat,
        world: &mut dyn FileContext,
    ) -> Result<TrafficFile, TrafficFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tree = match format {
            TrafficFormat::Toml => toml::parse_toml_tree(text),
            TrafficFormat::Yaml => yaml::parse_yaml_tree(text),
            TrafficFormat::Json => json::parse_json_tree(text),
        }?;
        Ok(TrafficFile { content: mix::parse_traffic_file(&tree, world)? })
    }

    /// Returns the beginning of every URL (`base`), if the file has one.
    pub fn base(&self) -> Option<&str> {
        self.content.base.as_deref()
    }

    /// Returns the load settings of the file.
    pub fn load(&self) -> &FileLoad {
        &self.content.load
    }

    /// Builds the traffic of this file for the server at `origin`. `prefix` precedes every path.
    /// `defaults` are the settings of requests that do not state their own.
    pub fn traffic(&self, origin: Origin, prefix: &str, defaults: &RequestDefaults, redact: RedactionLevel) -> Traffic {
        let prefix = prefix.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let routes: Vec<Route> = self.content.requests.iter().map(|asked| asked.route(prefix, defaults)).collect();
        // The preflight request is sent before the load and must not change the server's state.
        let is_safe = |route: &Route| ["GET", "HEAD"].contains(&route.request.method.as_str());
        // The preflight request is sent before any response is captured, so the preflight request
        // cannot use captured values.
        let first = routes
            .iter()
            .position(|route| is_safe(route) && !uses_captured_value(route))
            .map(|number| number as RouteNumber);
        let (data, variables) = (self.content.data.clone(), self.content.variables.clone());
        let scenarios = self.content.scenarios.clone();
        let choice = if scenarios.is_empty() { RouteChoice::Weighted } else { RouteChoice::Scenarios };
        let once =
            |list: &[SetupCleanupRequest]| list.iter().map(|asked| asked.to_one_off_route(prefix, defaults)).collect();
        let setup_teardown = SetupTeardown {
            setup: once(&self.content.setup),
            teardown: once(&self.content.cleanup),
            captured_values: Vec::new(),
        };
        Traffic {
            origin,
            routes,
            choice,
            scenarios,
            preflight: first,
            data,
            variables,
            setup_teardown,
            request_list: None,
            redact,
        }
    }
}

/// Returns whether the URL or header fields of a route use a value captured from a response.
fn uses_captured_value(route: &Route) -> bool {
    let names = |text: &str| {
        Template::parse(text).is_ok_and(|it| it.values().any(|value| matches!(value, TemplateValue::Captured(_))))
    };
    let filled = route.template_flags;
    filled.target && names(&route.request.target)
        || filled.headers && route.request.headers.iter().any(|(_, value)| names(value))
}
