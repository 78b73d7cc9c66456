//! A profile from a file or an address, with the part of it that is looked at ([`ProfileInput`]).
//!
//! Not here: what a profile says (`plimsoll_analysis::profile`), taking profiles in a study
//! (`profile_capture`), and how anything looks.

use crate::output::note;
use crate::pprof::fetch_profile;
use plimsoll_analysis::profile::{SampleSplit, View, grouped, has_label, label_keys, read};
use plimsoll_model::failure::Failure;
use plimsoll_model::profile::{Profile, ValueType};
use plimsoll_sys::files::{self, Use};
use regex::{Regex, RegexBuilder};
use std::path::Path;

/// Which part of a profile is looked at, and how it is fetched from an address.
#[derive(Debug, Clone, Default)]
pub struct ProfileChoice {
    /// Length of a profile that an address takes, s.
    pub seconds: Option<u32>,
    /// Whether an address may be neither loopback nor private.
    pub allow_public: bool,
    /// The column, by its name.
    pub sample_index: Option<String>,
    /// Only stacks with a function that matches.
    pub focus: Option<Regex>,
    /// Only stacks without a function that matches.
    pub ignore: Option<Regex>,
    /// Groups: the key of a label, or a pattern of functions; as given, and as a pattern.
    pub by: Option<(String, Regex)>,
}

/// A file or address as given, what it held, and the column in question.
#[derive(Debug)]
pub struct ProfileInput {
    /// The file, or what was fetched.
    pub name: String,
    /// The bytes as they were read.
    pub bytes: Vec<u8>,
    /// The profile in groups, where groups are wanted.
    pub profile: Profile,
    /// The part of it that is looked at.
    pub view: View,
}

impl ProfileInput {
    /// Reads the file or fetches the address `source`.
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

    /// The column in question.
    pub fn column(&self) -> &ValueType {
        &self.profile.sample_types[self.view.sample_type]
    }

    /// The profile, and the part of it that is looked at.
    pub fn both(&self) -> (&Profile, &View) {
        (&self.profile, &self.view)
    }
}

/// The pattern of a flag.
pub fn pattern(flag: &str, pattern: Option<&String>) -> Result<Option<Regex>, Failure> {
    let compile = |pattern: &String| {
        let compiled = RegexBuilder::new(pattern).build();
        // The whole message draws the pattern over several lines; the last one says what is wrong.
        compiled.map_err(|error| {
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Failure::usage(format!("{flag} '{pattern}' is not a regular expression: {why}"))
        })
    };
    pattern.map(compile).transpose()
}

/// The profile with its stacks in groups: by the label of that key if there is one, else by
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
