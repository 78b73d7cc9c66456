//! `plimsoll overload`: measures how a target behaves above its load line, and whether it recovers.

use super::run_timed_preflight;
use super::search::{self, PreparedSearch};
use crate::args::{OverloadArgs, PprofArgs, SearchArgs};
use crate::live::ProgressDisplay;
use crate::plan_from_args;
use plimsoll_analysis::Finding;
use plimsoll_analysis::study::overload::budget_min_ns;
use plimsoll_analysis::study::search::search_part_ns;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::retry::{RETRIES_MAX, with_retries};
use plimsoll_model::units::parse_number;
use plimsoll_model::{ExperimentSettings, ExperimentSpec, OverloadSpec, Plan};
use plimsoll_probe::ProbeEffort;
use plimsoll_report::format;
use plimsoll_report::questions::overload_question;
use plimsoll_study::base::ResolvedTarget;
use plimsoll_study::quantity::{parse_positive_time, with_flag_name};
use plimsoll_study::runner::{PlanChange, PlanVariant};

/// Converts the flags to an overload study.
pub fn spec_from_args(args: &OverloadArgs) -> Result<(OverloadSpec<Plan>, ExperimentSettings<String>), Failure> {
    let budget_ns = parse_positive_time("--budget", &args.budget)?;
    let line_rps = args.line.as_deref().map(|text| match with_flag_name("--line", parse_number(text))? {
        rate if rate > 0.0 => Ok(rate),
        _ => Err(Failure::usage("--line: must be more than 0")),
    });
    let targets = 1 + u64::from(args.against.is_some());
    let least_ns = budget_min_ns(line_rps.is_some(), targets);
    if budget_ns < least_ns {
        let (budget, minimum) = (&args.budget, format::duration(least_ns as f64));
        return Err(Failure::usage(match line_rps.is_some() {
            true => format!("--budget {budget}: the rising and falling loads take at least {minimum}; give more time"),
            false => format!(
                "--budget {budget}: a search for the load line, and then the rising and falling loads, take at least \
                 {minimum}; give more time"
            ),
        }));
    }
    let OverloadArgs { request, slo, generator, probes, script, retries, against, .. } = args.clone();
    // Profiles are not taken, because profiles above the load line would show a server that mostly
    // refuses requests. --max-rate is not supported, because overload exceeds the load line by
    // design.
    let profiles = PprofArgs { pprof: None, pprof_seconds: 10 };
    let flags = SearchArgs { request, slo, max_rate: None, generator, probes, profiles, script };
    let others: Vec<String> = against.into_iter().collect();
    let (search, others, mut settings) = search::spec_with_other_targets(&flags, &others, search_part_ns(budget_ns))?;
    settings.output = plan_from_args::stored_output_settings(&args.out, args.output.as_deref(), &args.place)?;
    settings.fleet = plan_from_args::fleet_settings(&args.fleet, &search.base, &settings)?;
    if retries > RETRIES_MAX {
        return Err(Failure::usage(format!("--retries: at most {RETRIES_MAX}")));
    }
    if retries > 0 && (settings.script.is_some() || with_retries(&search.base.traffic, retries).is_none()) {
        return Err(Failure::usage(
            "--retries: plimsoll can retry only one constant request; give a URL, and no Lua script, template or file \
             of several requests",
        ));
    }
    let against = others.into_iter().next();
    if against.is_some() && (settings.mix.is_some() || settings.script.is_some()) {
        return Err(Failure::usage(
            "--against: a comparison of two servers needs plain URLs: leave the file of traffic or the Lua script out",
        ));
    }
    Ok((OverloadSpec { search, line_rps: line_rps.transpose()?, budget_ns, retries, second_target: against }, settings))
}

/// Executes the study and prints its results. Returns the exit code.
pub fn carry_out(spec: OverloadSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let OverloadSpec { search, line_rps, budget_ns, retries, second_target: against } = spec;
    let mut prepared = PreparedSearch::prepare(search, settings, ProbeEffort::Little)?;
    let again = |plan: &Plan| with_retries(&plan.traffic, retries).filter(|_| retries > 0);
    if let Some(traffic) = again(&prepared.plan) {
        let (plan, injector) = (Plan { traffic, ..prepared.plan.clone() }, prepared.injector.clone());
        prepared.variants.insert(PlanChange::WithRetries, PlanVariant { plan, injector });
    }
    let mut other = None;
    if let Some(against) = against {
        let ResolvedTarget { mut plan, injector, .. } = ResolvedTarget::resolve_target(&against, settings)?;
        let (warnings, _) = run_timed_preflight(&mut plan, &injector, settings)?;
        prepared.start_notes.warnings.extend(warnings.iter().map(|warning| format!("--against: {warning}")));
        other = Some(plan.record());
        let traffic = again(&plan).unwrap_or_else(|| plan.traffic.clone());
        // The second target gets the same limit of connections as the first target.
        plan.connection_plan.connections_max = prepared.plan.connection_plan.connections_max;
        prepared.variants.insert(PlanChange::SecondTarget, PlanVariant { plan: Plan { traffic, ..plan }, injector });
    }
    let search = prepared.search_spec();
    let asked = ExperimentSpec::Overload(OverloadSpec { search, line_rps, budget_ns, retries, second_target: other });
    let mut live = ProgressDisplay::new(settings.output.quiet);
    live.print_line_unless_quiet(&overload_question(&prepared.settings, budget_ns));
    prepared.carry_out(asked, settings, live, |finding, _| match finding {
        Finding::Overload(found) if found.overload.verdict.is_some() => exit::SUCCESS,
        _ => exit::NEGATIVE_RESULT,
    })
}
