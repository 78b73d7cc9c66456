//! Hints for the user about endpoints of the target that could be used for more data: profiles and
//! metrics.
//!
//! Not here: reading profiles or metrics.

use crate::base::ResolvedTarget;
use crate::profile_capture::RequestedProfiles;
use plimsoll_model::ExperimentSettings;
use plimsoll_probe as probes;

/// Returns one sentence for each flag that would record more data of this target. There are hints
/// only for TCP targets on this machine.
pub fn flag_hints(base: &ResolvedTarget, settings: &ExperimentSettings<String>) -> Vec<String> {
    if settings.profiles.is_some() || base.plan.connection_plan.unix.is_some() || !base.local {
        return Vec::new();
    }
    let asks_metrics = settings.probes.metrics.is_none() && !settings.probes.is_disabled;
    let metrics = asks_metrics.then(|| probes::find_metrics_endpoint(&base.plan)).flatten();
    let metrics = metrics.map(|place| format!("the target serves metrics at {place}: --metrics records these metrics"));
    RequestedProfiles::profile_hint(&base.plan, settings).into_iter().chain(metrics).collect()
}
