//! Reads a profile from a file or URL and selects some of its samples ([`ProfileInput`]).
//!
//! Not here: the analysis of a profile (`plimsoll_analysis::profile`), profiles of a study
//! (`profile_capture`), and presentation.

use crate::output::print_to_stderr;
use crate::pprof::fetch_profile;
use plimsoll_analysis::profile::{SampleSplit, View, group_samples, has_label, label_keys, read};
use plimsoll_model::failure::Failure;
use plimsoll_model::profile::{Profile, ValueType};
use plimsoll_sys::files::{self, Use};
use regex::{Regex, RegexBuilder};
use std::path::Path;

/// Options for fetching a profile, and the selection of its samples.
#[derive(Debug, Clone, Default)]
pub struct ProfileChoice {
    /// The length of a fetched profile in seconds.
    pub seconds: Option<u32>,
    /// Whether a profile may be fetched from a public address.
    pub allow_public: bool,
    /// The name of the column (sample type) to show; `None` selects the profile's default.
    pub sample_index: Option<String>,
    /// Keeps only stacks that contain a matching function.
    pub focus: Option<Regex>,
    /// Drops stacks that contain a matching function.
    pub ignore: Option<Regex>,
    /// Groups stacks by a label, or by functions that match a pattern. The values are the user's
    /// text and its compiled pattern.
    pub by: Option<(String, Regex)>,
}

/// A profile read from a file or URL, with the selected samples.
#[derive(Debug)]
pub struct ProfileInput {
    /// The file's path or the redacted URL.
    pub name: String,
    /// The bytes as read, before decoding.
    pub bytes: Vec<u8>,
    /// The decoded profile, with its stacks grouped if the user requested groups.
    pub profile: Profile,
    /// The selected samples (by focus and ignore) and the selected column.
    pub view: View,
}

impl ProfileInput {
    /// Reads the file `source`, or fetches it if it is a URL.
    pub fn read(source: &str, choice: &ProfileChoice) -> Result<ProfileInput, Failure> {
        let address = source.starts_with("http://") || source.starts_with("https://");
        let (name, bytes) = if address {
            fetch_profile(source, choice.seconds, choice.allow_public, print_to_stderr)?
        } else if choice.seconds.is_some() {
            return Err(Failure::usage(format!(
                "--seconds: '{source}' is a file, which has its own length; give an address"
            )));
        } else {
            (source.to_owned(), from_file(source)?)
        };
        let mut profile = read(&bytes).map_err(|error| Failure::start(format!("'{name}' {error}")))?;
        if let Some((by, pattern)) = &choice.by {
            profile = group_profile(&profile, &name, by, pattern)?;
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

    /// Returns the selected column, with its unit.
    pub fn selected_column(&self) -> &ValueType {
        &self.profile.sample_types[self.view.sample_type]
    }

    /// Returns the profile and the selected samples.
    pub fn profile_and_view(&self) -> (&Profile, &View) {
        (&self.profile, &self.view)
    }
}

/// Compiles the regular expression of a flag; `None` without the flag.
pub fn compile_pattern(flag: &str, pattern: Option<&String>) -> Result<Option<Regex>, Failure> {
    let compile = |pattern: &String| {
        let compiled = RegexBuilder::new(pattern).build();
        // The message of the regex library has several lines, and its last line contains the
        // reason.
        compiled.map_err(|error| {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Failure::usage(format!("{flag} '{pattern}' is not a regular expression: {reason}"))
        })
    };
    pattern.map(compile).transpose()
}

/// Groups the stacks of a profile by the label with key `by` if that label exists, otherwise by the
/// functions that match the pattern.
fn group_profile(profile: &Profile, file: &str, by: &str, pattern: &Regex) -> Result<Profile, Failure> {
    if has_label(profile, by) {
        return Ok(group_samples(profile, by, &SampleSplit::Label(by)));
    }
    let matches = |name: &str| pattern.is_match(name);
    if !profile.functions().iter().any(|function| matches(&function.name)) {
        let keys = label_keys(profile);
        let labels = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        return Err(Failure::usage(format!(
            "--by {by}: no label and no function of '{file}' matches (labels of the file: {labels})"
        )));
    }
    Ok(group_samples(profile, by, &SampleSplit::Function(&matches)))
}

fn from_file(path: &str) -> Result<Vec<u8>, Failure> {
    files::read(path.as_ref(), Use::Profile).map_err(|why| {
        let is_none = path.contains(':') && !Path::new(path).exists();
        let hint = if is_none { " (the address of a profile starts with http://)" } else { "" };
        Failure::start(format!("'{path}' {why}{hint}"))
    })
}
