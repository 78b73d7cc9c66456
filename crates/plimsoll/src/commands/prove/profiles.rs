//! `prove --pprof`: where CPU profiles of both sides are taken, after the blocks.
//!
//! Not here: under which loads (`plimsoll-analysis`), and how they are taken and kept (`capture`).

use plimsoll_model::failure::Failure;
use plimsoll_model::terms::ProfilesTerms;
use plimsoll_model::{Served, Terms};
use plimsoll_study::base::user_info;
use plimsoll_study::pprof::Endpoint;
use plimsoll_study::profile_capture::Capture;
use plimsoll_study::runner::builds::BuildTarget;

/// The profiles that are asked for. Of servers that run already, looks whether they will do it, so that nobody waits in
/// vain.
pub fn asked(terms: &Terms<String>, targets: &[BuildTarget]) -> Result<Option<Capture>, Failure> {
    let (Some(ProfilesTerms { served, seconds }), [a, b]) = (&terms.profiles, targets) else { return Ok(None) };
    let (public, seconds) = (terms.public, *seconds);
    let flagged = |error: Failure| Failure::usage(format!("--pprof: {error}"));
    let of_target = |target: &BuildTarget, number| {
        let plan = &target.base.plan;
        Endpoint::of_target(plan, user_info(plan, terms, number))
    };
    let [a, b] = match served {
        Served::ByTarget => [of_target(a, 0), of_target(b, 1)],
        Served::At(urls) => [urls.first(), urls.last()].map(|url| Endpoint::resolve(url.map_or("", |url| url), public)),
    };
    let endpoints = [a.map_err(flagged)?, b.map_err(flagged)?];
    let fresh = targets.iter().any(|target| target.command.is_some());
    if !fresh {
        let [a, b] = &endpoints;
        a.check(seconds)?;
        // A server takes a while to give up a profile for which nobody waits: the same is not asked twice.
        if b.shown != a.shown {
            b.check(seconds)?;
        }
    }
    Ok(Some(Capture::at(endpoints.into(), seconds)))
}
