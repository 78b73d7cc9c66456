//! A file that says what is asked: in TOML, YAML or JSON, of one shape.
//!
//! The text becomes a tree whose every value knows its line ([`tree`]), whatever the format; what
//! its keys mean is said once, on that tree ([`keys`], [`mix`], [`scenario`]). Nothing is guessed:
//! a key that nobody knows is an error, with the one that is most like it.

mod expect;
pub(crate) mod json;
mod keys;
mod labels;
mod load;
mod mix;
mod multipart;
mod once;
mod request;
mod rows;
mod scenario;
mod texts;
pub(crate) mod toml;
pub(crate) mod tree;
mod world;
pub(crate) mod yaml;

use mix::Mix;
use once::FileOneOff;
use plimsoll_model::redact::Redact;
use plimsoll_model::template::{Template, Value};
use plimsoll_model::traffic::{Choice, Origin, Route};
use plimsoll_model::{RouteNumber, SetupTeardown, Traffic};

pub use load::FileLoad;
pub(crate) use texts::{CAPTURED_MAX, quoted};
pub use tree::{TextPlace, TrafficFileError};
pub use world::{FileContext, RequestDefaults};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficFormat {
    /// TOML 1.1.
    Toml,
    /// YAML 1.2.
    Yaml,
    /// JSON.
    Json,
}

impl TrafficFormat {
    /// By the name of the file; TOML where it says nothing else.
    pub fn of_name(name: &str) -> TrafficFormat {
        match name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
            Some("yaml" | "yml") => TrafficFormat::Yaml,
            Some("json") => TrafficFormat::Json,
            _ => TrafficFormat::Toml,
        }
    }
}

/// A file that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficFile {
    mix: Mix,
}

impl TrafficFile {
    /// Reads a file.
    pub fn read(
        text: &str,
        format: TrafficFormat,
        world: &mut dyn FileContext,
    ) -> Result<TrafficFile, TrafficFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tree = match format {
            TrafficFormat::Toml => toml::tree(text),
            TrafficFormat::Yaml => yaml::tree(text),
            TrafficFormat::Json => json::tree(text),
        }?;
        Ok(TrafficFile { mix: mix::read(&tree, world)? })
    }

    /// The beginning of every URL, if the file says it.
    pub fn base(&self) -> Option<&str> {
        self.mix.base.as_deref()
    }

    /// The load that it carries along.
    pub fn load(&self) -> &FileLoad {
        &self.mix.load
    }

    /// What it asks of `origin`, where every path begins with `prefix`.
    pub fn traffic(&self, origin: Origin, prefix: &str, defaults: &RequestDefaults, redact: Redact) -> Traffic {
        let prefix = prefix.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let routes: Vec<Route> = self.mix.requests.iter().map(|asked| asked.route(prefix, defaults)).collect();
        // Asking it once more than the load does must change nothing at the server.
        let is_safe = |route: &Route| ["GET", "HEAD"].contains(&route.request.method.as_str());
        // What needs something of an answer before it would be asked without.
        let first = routes
            .iter()
            .position(|route| is_safe(route) && !needs_captured(route))
            .map(|number| number as RouteNumber);
        let (data, variables) = (self.mix.data.clone(), self.mix.variables.clone());
        let scenarios = self.mix.scenarios.clone();
        let choice = if scenarios.is_empty() { Choice::Weighted } else { Choice::Scenarios };
        let once = |list: &[FileOneOff]| list.iter().map(|asked| asked.once(prefix, defaults)).collect();
        let around =
            SetupTeardown { setup: once(&self.mix.setup), cleanup: once(&self.mix.cleanup), given: Vec::new() };
        Traffic { origin, routes, choice, scenarios, first, data, variables, around, listed: None, redact }
    }
}

/// Whether a route is filled in with something that another captures.
fn needs_captured(route: &Route) -> bool {
    let names =
        |text: &str| Template::parse(text).is_ok_and(|it| it.values().any(|value| matches!(value, Value::Captured(_))));
    let filled = route.filled;
    filled.target && names(&route.request.target)
        || filled.headers && route.request.headers.iter().any(|(_, value)| names(value))
}
