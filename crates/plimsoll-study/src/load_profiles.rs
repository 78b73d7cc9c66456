//! Reads the profiles that were stored next to a run file. The profiles were taken at a low load
//! and at the load that the study examined.
//!
//! Not here: taking profiles (`profile_capture`), and presenting them.

use crate::profile_capture::{CPU_PROFILE_NAMES, OTHER_PROFILE_KINDS, PROFILE_FILE_SUFFIX};
use plimsoll_analysis::format;
use plimsoll_analysis::profile::{
    CostDivisor, FunctionCostOrder, ProfileView, ProfiledTrial, ProfilingSchedule, diff, read, sum_by_function,
};
use plimsoll_analysis::profile_findings::{ProfileTotal, ProfileTotals, SingleTargetProfiles, StoredProfile};
use plimsoll_analysis::study::profiling::single_target_profile_tag;
use plimsoll_analysis::{Assessment, Doubt, DoubtKind, Doubts, Sentence, Summary};
use plimsoll_model::profile::Profile;
use plimsoll_model::units::SECOND;
use plimsoll_model::{Experiment, LoadEnd, LoadPurpose, LoadTag, ProfileRecord, Run};
use plimsoll_sys::files::{self, FilePurpose};
use std::path::Path;

/// Reads a recorded profile and returns it with its path. `path` is the path of the run file.
pub fn read_stored_profile(path: Option<&Path>, record: &ProfileRecord) -> Result<(Profile, String), String> {
    let name = record.file.clone()?;
    // A run file is untrusted input: the profile's name must not leave the folder of the run file.
    let bare =
        Path::new(&name).file_name().filter(|bare| *bare == name.as_str() && name.ends_with(PROFILE_FILE_SUFFIX));
    let bare = bare.ok_or_else(|| {
        "the run file refers to a profile outside its own folder, or with an invalid file \
         name"
            .to_owned()
    })?;
    let file = path
        .ok_or_else(|| "the run has no run file, next to which profiles are stored".to_owned())?
        .with_file_name(bare);
    let profile = files::read(&file, FilePurpose::Profile)
        .and_then(|bytes| read(&bytes).map_err(|error| error.to_string()))
        .map_err(|why| format!("'{}' {why}", file.display()))?;
    Ok((profile, file.display().to_string()))
}

/// Returns the CPU profile that was taken at a load level (such as low load); `None` if there is
/// none.
pub fn cpu_profile(profiles: &SingleTargetProfiles, level: &str) -> Option<Profile> {
    let kept = profiles.files.iter().find(|kept| kept.level == level && kept.kind == CPU_PROFILE_NAMES.0)?;
    read(&files::read(kept.file.as_ref(), FilePurpose::Profile).ok()?).ok()
}

/// Returns the CPU profile of the load that the study examined (not of the low load), and the
/// number of requests in the profiled time.
pub fn cpu_profile_of_run(experiment: &Experiment, path: &Path) -> Option<(Profile, f64)> {
    let profiles = read_load_profiles(experiment, Some(path))?;
    let profiles = profiles.doubts_and_figures().1;
    let profile = cpu_profile(profiles, &profiles.level_name)?;
    Some((profile, profiles.requests.last().copied().unwrap_or(0.0)))
}

/// Reads all profiles next to a run file; `None` for a comparison, and if the run
/// has no profiles.
pub fn read_load_profiles(experiment: &Experiment, path: Option<&Path>) -> Option<Assessment<SingleTargetProfiles>> {
    let recorded = experiment.spec.profiles_spec().filter(|_| experiment.spec.blocks_spec().is_none())?;
    let stretches = ProfilingSchedule::new(recorded.seconds);
    let trials = || experiment.trials.iter().filter(|trial| trial.tag.purpose == LoadPurpose::Profile);
    let levels: Vec<ProfiledTrial> = trials().map(|trial| ProfiledTrial::from_run(&trial.run, &stretches)).collect();
    if levels.is_empty() && experiment.profiles().next().is_none() {
        return None;
    }
    let name_of = |tag: &LoadTag| experiment.spec.profile_name(tag);
    let level_name = name_of(&single_target_profile_tag(1));
    let names = [name_of(&single_target_profile_tag(0)), level_name.clone()];
    let names = [names[0].as_str(), names[1].as_str()];
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    // If no load ran at a load level, the level has no profiles, and the run file contains the
    // reason.
    for taken in experiment.profiles().filter(|taken| taken.trial.is_none()) {
        if let Err(reason) = &taken.file {
            missing.push(format!("{}: no profiles: {reason}", name_of(&taken.tag)));
        }
    }
    let mut profile = |level: &str, kind: &str| -> Option<Profile> {
        let taken = experiment.profiles().find(|taken| name_of(&taken.tag) == level && taken.kind == kind);
        let cut = || Err("the recording of the run was cut off before the profile was taken".to_owned());
        match taken.map_or_else(cut, |taken| read_stored_profile(path, taken)) {
            Ok((profile, file)) => {
                files.push(StoredProfile { level: level.to_owned(), kind: kind.to_owned(), file });
                Some(profile)
            }
            Err(reason) => {
                missing.push(format!("{level}: no {kind} profile: {reason}"));
                None
            }
        }
    };
    let driven = || levels.iter().zip(names);
    let cpu: Vec<Option<Profile>> = driven().map(|(_, name)| profile(name, CPU_PROFILE_NAMES.0)).collect();
    let requests: Vec<f64> = levels
        .iter()
        .zip(&cpu)
        .map(|(level, cpu)| {
            // If a profile contains no duration, the requested duration is used.
            let duration_ns = cpu.as_ref().map(|p| p.duration_ns).filter(|ns| *ns > 0);
            ProfiledTrial::requests_during_profile(
                &level.with_cpu_profile,
                duration_ns.unwrap_or((u64::from(recorded.seconds) * SECOND) as i64),
            )
        })
        .collect();
    let kinds = OTHER_PROFILE_KINDS
        .iter()
        .map(|(kind, column_name, stock)| {
            let mut sums = [None, None];
            let mut column = None;
            for (at, (level, name)) in driven().enumerate() {
                let Some(profile) = profile(name, kind) else { continue };
                let view = ProfileView::all_samples(
                    profile.sample_type_index(Some(column_name)).unwrap_or(profile.sample_type_default),
                );
                let sum = sum_by_function(&profile, &view, FunctionCostOrder::Cum).selected_total as f64;
                let requests = ProfiledTrial::requests_during_profile(&level.other_kinds, profile.duration_ns);
                sums[at] = Some(ProfileTotal { sum, requests });
                column = Some(profile.sample_types[view.column].clone());
            }
            let (sample_type, unit) = column.map_or_else(Default::default, |column| (column.kind, column.unit));
            ProfileTotals { kind: (*kind).to_owned(), sample_type, unit, sums, is_stock: *stock }
        })
        .collect();
    let comparison = match (cpu.as_slice(), requests.as_slice()) {
        ([Some(low), Some(high)], [before, after]) if *before > 0.0 && *after > 0.0 => {
            let basis = CostDivisor::Requests { before: *before, after: *after };
            let (a, b) =
                (ProfileView::all_samples(low.sample_type_default), ProfileView::all_samples(high.sample_type_default));
            match diff((low, &a), (high, &b), basis, FunctionCostOrder::Cum) {
                Ok(comparison) => Some(comparison),
                Err(error) => {
                    missing.push(format!("the CPU profiles {error}"));
                    None
                }
            }
        }
        _ => None,
    };
    let (base, seconds) = (recorded.bases.first().cloned().unwrap_or_default(), recorded.seconds);
    let missing = missing.into_iter().map(|text| Doubt { kind: DoubtKind::Unmeasured, text: text.into() });
    let doubts =
        trials().zip(&levels).zip(names).filter_map(|((trial, level), name)| profile_doubt(&trial.run, level, name));
    let doubts: Doubts = missing.chain(doubts).collect();
    let rate_unit = experiment.trials.first().map_or("requests", |trial| trial.run.plan.traffic.arrivals_word());
    let profiles =
        SingleTargetProfiles { base, seconds, level_name, rate_unit, levels, requests, comparison, kinds, files };
    Some(Assessment::new(doubts, profiles))
}

/// Returns the reason why the profile figures of a load level are doubtful. Possible reasons: the
/// load ended early, the load generator was the limit, or the server was overloaded. Returns `None`
/// if there is no doubt.
fn profile_doubt(run: &Run, level: &ProfiledTrial, name: &str) -> Option<Doubt> {
    let generator = Summary::from_run(run).generator;
    let (kind, text) = if let Some(LoadEnd::Stopped(stop)) = &run.ending {
        (DoubtKind::Ended, Sentence::from(format!("{name}: profiling ended early: {}", format::stop_reason(stop))))
    } else if generator.is_limit {
        let limit = format!("{name}: while profiles were taken the generator was the limit, not the server: ");
        (DoubtKind::Generator, Sentence::from(limit).append_sentence(&generator.reason.unwrap_or_default()))
    } else if level.is_steady() {
        return None;
    } else {
        let (offered, completed) = (format::rate(level.offered_rps), format::rate(level.without_profiling.goodput_rps));
        let text = format!(
            "{name}: no steady state: the server completed {completed} of {offered} requests/s even without \
            profiling, so the costs are those of an overloaded server"
        );
        (DoubtKind::Server, Sentence::from(text))
    };
    Some(Doubt { kind, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_profiles_must_be_next_to_the_run_file() {
        for (file, part) in [
            (Ok("../../etc/passwd"), "refers to a profile outside"),
            (Ok("/etc/hostname.pb.gz"), "refers to a profile outside"),
            (Ok("x/y.pb.gz"), "refers to a profile outside"),
            (Ok("run.plimsoll"), "outside its own folder"),
            (Ok(""), "invalid file name"),
            (Ok("no-such.1.a1.cpu.pb.gz"), "cannot be read"),
            (Err("it answers 404"), "it answers 404"),
        ] {
            let file = file.map(str::to_owned).map_err(str::to_owned);
            let taken = ProfileRecord { tag: single_target_profile_tag(0), kind: "cpu".to_owned(), trial: None, file };
            let reason = read_stored_profile(Some(Path::new("/tmp/run.plimsoll")), &taken).expect_err("no profile");
            assert!(reason.contains(part), "{reason}");
        }
    }
}
