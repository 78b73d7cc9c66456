//! A profile from a file or URL, and the selected part of it ([`ProfileInput`]).
//!
//! Not here: the meaning of a profile (`plimsoll_analysis::profile`), profiles of a study
//! (`profile_capture`), and presentation.

use crate::output::note;
use crate::pprof::fetch_profile;
use plimsoll_analysis::profile::{SampleSplit, View, grouped, has_label, label_keys, read};
use plimsoll_model::failure::Failure;
use plimsoll_model::profile::{Profile, ValueType};
use plimsoll_sys::files::{self, Use};
use regex::{Regex, RegexBuilder};
use std::path::Path;

/// The selected part of a profile, and the options of a fetch.
#[derive(Debug, Clone, Default)]
pub struct ProfileChoice {
    /// Length of a fetched profile, s.
    pub seconds: Option<u32>,
    /// Whether an address may be neither loopback nor private.
    pub allow_public: bool,
    /// The column, by its name.
    pub sample_index: Option<String>,
    /// Selects stacks with a matching function.
    pub focus: Option<Regex>,
    /// Drops stacks with a matching function.
    pub ignore: Option<Regex>,
    /// Groups by a label's key or a pattern of functions; as given, and compiled.
    pub by: Option<(String, Regex)>,
}

/// A file or URL with its content and the selected column.
#[derive(Debug)]
pub struct ProfileInput {
    /// The file or redacted URL.
    pub name: String,
    /// The original bytes.
    pub bytes: Vec<u8>,
    /// The profile, grouped if requested.
    pub profile: Profile,
    /// The selected part.
    pub view: View,
}

impl ProfileInput {
    /// Reads the file or fetches the URL `source`.
    pub fn read(source: &str, choice: &ProfileChoice) -> Result<ProfileInput, Failure> {
        let address = source.starts_with("http://") || source.starts_with("https://");
        let (name, bytes) = if address {
            fetch_profile(source, choice.seconds, choice.allow_public, note)?
        } else if choice.seconds.is_some() {
            return Err(Failure::usage(format!(
                "--seconds: '{source}' is a file, which has its own length; give an address"
            )));
        } else {
            (source.to_owned(), from_file(source)?)
        };
        let mut profile = read(&bytes).map_err(|error| Failure::start(format!("'{name}' {error}")))?;
        if let Some((by, pattern)) = &choice.by {
            profile = in_groups(&profile, &name, by, pattern)?;
        }
        let wanted = choice.sample_index.as_deref();
        let sample_type = profile.sample_type(wanted).ok_or_else(|| {
            let kinds: Vec<&str> = profile.sample_types.iter().map(|t| t.kind.as_str()).collect();
            let wanted = wanted.unwrap_or_default();
            Failure::usage(format!("--sample-index {wanted}: '{name}' contains {}", kinds.join(", ")))
        })?;
        let mut view = View::all(sample_type);
        if let Some(focus) = &choice.focus {
            view = view.focus(&profile, |name| focus.is_match(name));
        }
        if let Some(ignore) = &choice.ignore {
            view = view.ignore(&profile, |name| ignore.is_match(name));
        }
        Ok(ProfileInput { name, bytes, profile, view })
    }

    /// The selected column.
    pub fn column(&self) -> &ValueType {
        &self.profile.sample_types[self.view.sample_type]
    }

    /// The profile with its selected part.
    pub fn both(&self) -> (&Profile, &View) {
        (&self.profile, &self.view)
    }
}

/// The pattern of a flag.
pub fn pattern(flag: &str, pattern: Option<&String>) -> Result<Option<Regex>, Failure> {
    let compile = |pattern: &String| {
        let compiled = RegexBuilder::new(pattern).build();
        // The library's message has several lines; the last one has the reason.
        compiled.map_err(|error| {
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Failure::usage(format!("{flag} '{pattern}' is not a regular expression: {why}"))
        })
    };
    pattern.map(compile).transpose()
}

/// Groups the stacks of a profile: by the label with that key if there is one, otherwise by
/// functions.
fn in_groups(profile: &Profile, file: &str, by: &str, pattern: &Regex) -> Result<Profile, Failure> {
    if has_label(profile, by) {
        return Ok(grouped(profile, by, &SampleSplit::Label(by)));
    }
    let matches = |name: &str| pattern.is_match(name);
    if !profile.functions().iter().any(|function| matches(&function.name)) {
        let keys = label_keys(profile);
        let labels = if keys.is_empty() { "has no labels".into() } else { format!("has labels {}", keys.join(", ")) };
        return Err(Failure::usage(format!("--by {by}: '{file}' {labels}, and no function matches")));
    }
    Ok(grouped(profile, by, &SampleSplit::Function(&matches)))
}

fn from_file(path: &str) -> Result<Vec<u8>, Failure> {
    files::read(path.as_ref(), Use::Profile).map_err(|why| {
        let is_none = path.contains(':') && !Path::new(path).exists();
        let hint = if is_none { " (an address starts with http://)" } else { "" };
        Failure::start(format!("'{path}' {why}{hint}"))
    })
}
