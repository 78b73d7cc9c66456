//! Reads a profile from a file or URL and selects some of its samples ([`ProfileInput`]).
//!
//! Not here: the analysis of a profile (`plimsoll_analysis::profile`), profiles of a study
//! (`profile_capture`), and presentation.

use crate::output::print_to_stderr;
use crate::pprof::fetch_profile;
use plimsoll_analysis::profile::{ProfileView, SampleGrouping, group_samples, has_label, label_keys, read};
use plimsoll_model::failure::Failure;
use plimsoll_model::profile::{Profile, ValueType};
use plimsoll_sys::files::{self, FilePurpose};
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
    /// Keeps only call stacks that contain a function whose name matches.
    pub focus: Option<Regex>,
    /// Drops call stacks that contain a function whose name matches.
    pub ignore: Option<Regex>,
    /// Groups call stacks by a label, or by functions whose names match a pattern. The pair has the
    /// user's text and the compiled pattern.
    pub by: Option<(String, Regex)>,
}

/// A profile read from a file or URL, with the selected samples.
#[derive(Debug)]
pub struct ProfileInput {
    /// The file's path or the redacted URL.
    pub name: String,
    /// The bytes of the profile as read, before decoding.
    pub bytes: Vec<u8>,
    /// The decoded profile, with its stacks grouped if the user requested groups.
    pub profile: Profile,
    /// The samples that `focus` and `ignore` select, and the selected column (sample type).
    pub view: ProfileView,
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
        let mut profile = read(&bytes).map_err(|error| Failure::cannot_start(format!("'{name}' {error}")))?;
        if let Some((by, pattern)) = &choice.by {
            profile = group_profile(&profile, &name, by, pattern)?;
        }
        let wanted = choice.sample_index.as_deref();
        let sample_type = profile.sample_type_index(wanted).ok_or_else(|| {
            let kinds: Vec<&str> = profile.sample_types.iter().map(|t| t.kind.as_str()).collect();
            let wanted = wanted.unwrap_or_default();
            Failure::usage(format!("--sample-index {wanted}: '{name}' contains {}", kinds.join(", ")))
        })?;
        let mut view = ProfileView::all_samples(sample_type);
        if let Some(focus) = &choice.focus {
            view = view.focus(&profile, |name| focus.is_match(name));
        }
        if let Some(ignore) = &choice.ignore {
            view = view.ignore(&profile, |name| ignore.is_match(name));
        }
        Ok(ProfileInput { name, bytes, profile, view })
    }

    /// Returns the selected column (sample type) of the profile, with its unit.
    pub fn selected_column(&self) -> &ValueType {
        &self.profile.sample_types[self.view.column]
    }

    /// Returns the profile and the selected samples.
    pub fn profile_and_view(&self) -> (&Profile, &ProfileView) {
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

/// Groups the call stacks of a profile by the label with key `by`. Without this label, groups the
/// call stacks by the functions that match `pattern`.
fn group_profile(profile: &Profile, file: &str, by: &str, pattern: &Regex) -> Result<Profile, Failure> {
    if has_label(profile, by) {
        return Ok(group_samples(profile, by, &SampleGrouping::Label(by)));
    }
    let matches = |name: &str| pattern.is_match(name);
    if !profile.functions().iter().any(|function| matches(&function.name)) {
        let keys = label_keys(profile);
        let labels = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        return Err(Failure::usage(format!(
            "--by {by}: no label and no function of '{file}' matches (labels of the file: {labels})"
        )));
    }
    Ok(group_samples(profile, by, &SampleGrouping::Function(&matches)))
}

fn from_file(path: &str) -> Result<Vec<u8>, Failure> {
    files::read(path.as_ref(), FilePurpose::Profile).map_err(|why| {
        let is_none = path.contains(':') && !Path::new(path).exists();
        let hint = if is_none { " (the address of a profile starts with http://)" } else { "" };
        Failure::cannot_start(format!("'{path}' {why}{hint}"))
    })
}
