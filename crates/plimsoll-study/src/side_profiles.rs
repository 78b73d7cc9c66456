//! Reads the stored profiles of both sides of a comparison (`prove`).
//!
//! Not here: taking the profiles (`profile_capture`), and presenting them.

use crate::load_profiles::read_stored_profile;
use plimsoll_analysis::profile::{
    FunctionCostOrder, PeriodFigures, ProfileDiff, ProfileView, ProfiledTrial, RepeatedProfile, diff_repeated,
};
use plimsoll_analysis::profile_findings::BothSidesProfiles;
use plimsoll_analysis::{Assessment, DoubtKind, Doubts, Sentence, Summary};
use plimsoll_model::profile::Profile;
use plimsoll_model::units::SECOND;
use plimsoll_model::{ArmIndex, Experiment, LoadPurpose};
use std::path::Path;

/// A server sustains a rate if it completes at least this share (0 to 1) of the offered rate.
const SUSTAINED_SHARE_MIN: f64 = 0.98;

/// Reads the profiles that were stored next to a run file; `None` if the run has no
/// profiles.
/// The run file says to which side of the comparison each profile belongs.
pub fn read_side_profiles(experiment: &Experiment, path: Option<&Path>) -> Option<Assessment<BothSidesProfiles>> {
    let recorded = experiment.spec.profiles_spec()?;
    experiment.profiles().next()?;
    let mut missing = Vec::new();
    let asked_ns = u64::from(recorded.seconds) * SECOND;
    let mut sides: [Vec<(Profile, f64)>; 2] = Default::default();
    let mut files: [Vec<String>; 2] = Default::default();
    let (mut late, mut behind): (Vec<String>, Vec<String>) = Default::default();
    let mut limit: Option<Sentence> = None;
    let mut rate = 0.0f64;
    for taken in experiment.profiles() {
        let Some(arm) = taken.tag.arm.map(ArmIndex::index).filter(|arm| *arm < 2) else { continue };
        let name = experiment.spec.profile_name(&taken.tag);
        let trial = taken.trial.and_then(|at| experiment.trials.get(at as usize));
        let Some(trial) = trial.filter(|trial| trial.tag.purpose == LoadPurpose::Profile) else {
            let no_load = "the run file does not contain the load of this profile";
            let reason = taken.file.as_ref().err().map_or(no_load, String::as_str);
            missing.push(format!("{name}: no profile: {reason}"));
            continue;
        };
        rate = rate.max(trial.run.plan.load.shape.curve().max());
        let meanwhile = PeriodFigures::from_run(
            &trial.run,
            &[(trial.run.plan.load.warmup_ns, trial.run.plan.load.warmup_ns + asked_ns)],
        );
        let Summary { generator, requests_per_session: requests_each, .. } = Summary::from_run(&trial.run);
        if generator.is_limit {
            late.push(name.clone());
            limit = limit.or(generator.reason);
        } else if meanwhile.completed_rps / requests_each
            < trial.run.plan.load.shape.curve().max() * SUSTAINED_SHARE_MIN
        {
            behind.push(name.clone());
        }
        match read_stored_profile(path, taken) {
            Ok((profile, file)) => {
                let duration_ns = Some(profile.duration_ns).filter(|ns| *ns > 0).unwrap_or(asked_ns as i64);
                let requests = ProfiledTrial::requests_during_profile(&meanwhile, duration_ns);
                if requests > 0.0 {
                    sides[arm].push((profile, requests));
                    files[arm].push(file);
                }
            }
            Err(reason) => missing.push(format!("{name}: no profile: {reason}")),
        }
    }
    let comparison = compare_profiles(&sides).unwrap_or_else(|reason| {
        missing.push(reason);
        None
    });
    let mut doubts = Doubts::default();
    missing.into_iter().for_each(|text| doubts.add(DoubtKind::Unmeasured, text));
    if !late.is_empty() {
        let names = late.join(", ");
        let text = format!("while the profiles {names} were taken, the generator was the limit, not the server: ");
        doubts.add(DoubtKind::Generator, Sentence::from(text).append_sentence(&limit.unwrap_or_default()));
    }
    if !behind.is_empty() {
        let names = behind.join(", ");
        let text = format!("no steady state: the server fell behind the rate while the profiles {names} were taken");
        doubts.add(DoubtKind::Server, text);
    }
    let seconds = recorded.seconds;
    let counted = experiment.trials.first().map_or("requests", |trial| trial.run.plan.traffic.arrivals_word());
    let bases = [0, 1].map(|side: usize| recorded.bases.get(side).cloned().unwrap_or_default());
    let requests = [0, 1].map(|side: usize| sides[side].iter().map(|(_, requests)| requests).sum());
    let profiles =
        BothSidesProfiles { bases, seconds, rate_rps: rate, rate_unit: counted, requests, files, comparison };
    Some(Assessment::new(doubts, profiles))
}

fn compare_profiles(sides: &[Vec<(Profile, f64)>; 2]) -> Result<Option<ProfileDiff>, String> {
    if sides.iter().any(Vec::is_empty) {
        return Ok(None);
    }
    let views = [0, 1].map(|side: usize| ProfileView::all_samples(sides[side][0].0.sample_type_default));
    let [a, b] = [0, 1].map(|side: usize| -> Vec<RepeatedProfile> {
        let view = &views[side];
        sides[side].iter().map(|(profile, requests)| RepeatedProfile { profile, view, requests: *requests }).collect()
    });
    diff_repeated(&a, &b, FunctionCostOrder::Flat).map(Some).map_err(|error| format!("the profiles {error}"))
}
