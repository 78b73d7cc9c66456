//! `plimsoll overload`: what a target does past its load line, and whether it comes back.

use super::search::{self, PreparedSearch};
use crate::args::{OverloadArgs, PprofArgs, SearchArgs};
use crate::asking;
use crate::failure::{Failure, exit};
use crate::live::Live;
use crate::probes::Effort;
use crate::quantity::{flag, positive_time};
use crate::runner::{PlanChange, Variant};
use plimsoll_analysis::Finding;
use plimsoll_analysis::study::overload::search_part_ns;
use plimsoll_model::retry::{RETRIES_MAX, retried};
use plimsoll_model::units::parse_number;
use plimsoll_model::{Asked, OverloadAsked, Plan, Terms};
use plimsoll_report::chart::heading;
use plimsoll_report::format;

/// What the flags ask for.
pub fn asked(args: &OverloadArgs) -> Result<(OverloadAsked<Plan>, Terms<String>), Failure> {
    let budget_ns = positive_time("--budget", &args.budget)?;
    let line_rps = args.line.as_deref().map(|text| match flag("--line", parse_number(text))? {
        rate if rate > 0.0 => Ok(rate),
        _ => Err(Failure::usage("--line: must be more than 0")),
    });
    let OverloadArgs { request, slo, generator, probes, script, retries, .. } = args.clone();
    // A profile past the line is of a server that is busy with refusing; and a rate that must not be exceeded forbids it all.
    let profiles = PprofArgs { pprof: None, pprof_seconds: 10 };
    let flags = SearchArgs { request, slo, max_rate: None, generator, probes, profiles, script };
    let (search, mut terms) = search::asked(&flags, search_part_ns(budget_ns))?;
    terms.output = asking::output(&args.out, args.output.as_deref())?;
    if retries > RETRIES_MAX {
        return Err(Failure::usage(format!("--retries: at most {RETRIES_MAX}")));
    }
    if retries > 0 && (terms.script.is_some() || retried(&search.base.traffic, retries).is_none()) {
        let why = "--retries: only one request that is always the same can come again: give a URL, and no script, mix or template";
        return Err(Failure::usage(why));
    }
    Ok((OverloadAsked { search, line_rps: line_rps.transpose()?, budget_ns, retries }, terms))
}

/// Measures, reports, and says with which code to end.
pub fn carry_out(asked: OverloadAsked<Plan>, terms: &Terms<String>) -> Result<u8, Failure> {
    let OverloadAsked { search, line_rps, budget_ns, retries } = asked;
    let mut prepared = PreparedSearch::of(search, terms, Effort::Little)?;
    let asked = Asked::Overload(OverloadAsked { search: prepared.asked(), line_rps, budget_ns, retries });
    if let Some(traffic) = retried(&prepared.plan.traffic, retries).filter(|_| retries > 0) {
        let (plan, injector) = (Plan { traffic, ..prepared.plan.clone() }, prepared.injector.clone());
        prepared.variants.insert(PlanChange::Retried, Variant { plan, injector });
    }
    let mut live = Live::new(terms.output.quiet);
    live.line(&format!(
        "looking for what {} does past its load line under {}: {} at most",
        heading::target(&prepared.settings.base),
        prepared.settings.slo,
        format::duration(budget_ns as f64)
    ));
    prepared.carry_out(asked, terms, live, |finding, _| match finding {
        Finding::Overload(found) if found.overloaded.verdict.is_some() => exit::DONE,
        _ => exit::CROSSED,
    })
}
