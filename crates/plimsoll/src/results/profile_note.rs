//! Where profiles went that were taken with an experiment, and how to look at them.
//!
//! Not here: what they say.

use plimsoll_analysis::taken_profiles::ProfileFindings;
use plimsoll_study::profile_capture::CPU;

/// Where the profiles went, and how to look at them.
pub fn profile_note(taken: &ProfileFindings) -> Option<String> {
    let ProfileFindings::OfLoads(profiles) = taken else { return None };
    let profiles = profiles.open().1;
    let cpu = |level: &str| {
        let kept = profiles.files.iter().find(|kept| kept.level == level && kept.kind == CPU.0);
        kept.map(|kept| kept.file.as_str())
    };
    let (low, high) = (cpu("low")?, cpu(&profiles.level_name)?);
    let [before, after] = profiles.requests.as_slice() else { return None };
    Some(format!(
        "profiles: {} files beside it; the flame graph of the difference: plimsoll profile --diff {low} {high} \
         --requests-a {before:.0} --requests-b {after:.0} -o diff.html",
        profiles.files.len(),
    ))
}
