//! `plimsoll find`: searches for the load line, the highest rate that meets the SLO.

use super::replay::LogOptions;
use super::search::{self, FindInput, PreparedSearch};
use super::traffic::LogReadingDisplay;
use crate::args::{FindArgs, join_conditions, redaction_level};
use crate::live::ProgressDisplay;
use crate::plan_from_args;
use plimsoll_analysis::Finding;
use plimsoll_analysis::find::{self, FailCondition};
use plimsoll_analysis::finding::SearchFinding;
use plimsoll_model::experiment_settings::ReplaySettings;
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::units::{parse_number, parse_share};
use plimsoll_model::{ArrivalSpacing, ExperimentSettings, ExperimentSpec, FindSpec, Plan, Planning};
use plimsoll_probe::ProbeEffort;
use plimsoll_report::questions::find_question;
use plimsoll_report::{format, sentence_text};
use plimsoll_study::gate::Gate;
use plimsoll_study::log_replay;
use plimsoll_study::quantity::{parse_positive_time, with_flag_name};

/// The shortest time of a soak (a long load at the load line's rate), ns (10 s). A soak that is
/// shorter than 10 s would find nothing that the search has not found.
const SOAK_NS_MIN: u64 = 10_000_000_000;

/// Converts the flags to a search.
pub fn spec_from_args(args: &FindArgs) -> Result<FindInput, Failure> {
    let planning = parse_planning(args)?;
    let demands = join_conditions(&args.fail_if).as_deref().map(parse_fail_if).transpose()?.unwrap_or_default();
    if args.logs.is_empty() && demands.iter().any(FailCondition::compares_with_log) {
        return Err(Failure::usage(
            "--fail-if: a condition on 'scale', the multiple of a log's traffic, needs an \
         access log: add --replay LOG",
        ));
    }
    let budget_ns = parse_positive_time("--budget", &args.budget)?;
    let (mut asked, mut settings) = match args.logs.is_empty() {
        true => search::spec_from_args(&args.search, budget_ns)?,
        false => search::search_with_changes(&args.search, budget_ns, &mut |plan, settings| {
            set_traffic_from_logs(args, plan, settings)
        })?,
    };
    if settings.replay.is_some() {
        asked.arrivals = ArrivalSpacing::Replayed;
    }
    asked.planning = planning;
    settings.fleet = plan_from_args::fleet_settings(&args.fleet, &asked.base, &settings)?;
    settings.fail_if = join_conditions(&args.fail_if);
    settings.on_inconclusive = plan_from_args::verdict_when_inconclusive(&args.inconclusive);
    settings.output = plan_from_args::stored_output_settings(&args.out, args.output.as_deref(), &args.place)?;
    Ok((asked, settings))
}

/// Replaces the plan's requests by sessions sampled from the logs of --replay.
fn set_traffic_from_logs(
    args: &FindArgs,
    plan: &mut Plan,
    settings: &mut ExperimentSettings<String>,
) -> Result<(), Failure> {
    let request = &args.search.request;
    if plan.traffic.origin.is_grpc() {
        return Err(Failure::usage("--replay: a log does not contain gRPC messages; give an http:// or https:// URL"));
    }
    let words = LogOptions {
        logs: &args.logs,
        target: request.url.as_deref().unwrap_or_default(),
        headers: &request.headers,
        reading: &args.log,
        only: &args.only,
        skip: &args.skip,
        with_unsafe: args.allow_unsafe,
    };
    let replay = ReplaySettings { draws_sessions: true, ..words.replay_settings(plan)? };
    plan.traffic = log_replay::traffic_from_logs(
        &replay,
        plan.load.seed,
        redaction_level(request.redact, request.keep_failed_bodies),
        args.out.quiet,
        &mut LogReadingDisplay::new(),
    )?
    .traffic;
    settings.replay = Some(replay);
    Ok(())
}

/// Parses the conditions of --fail-if, which refer to the search's findings.
fn parse_fail_if(text: &str) -> Result<Vec<FailCondition>, Failure> {
    with_flag_name("--fail-if", FailCondition::parse_list(text).map_err(|error| sentence_text(&error.error_sentence())))
}

/// Parses the flags for planning: --headroom, --need and --soak.
fn parse_planning(args: &FindArgs) -> Result<Planning, Failure> {
    let headroom = args.headroom.as_deref().map(|text| match with_flag_name("--headroom", parse_share(text))? {
        share if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(Failure::usage("--headroom: must be more than 0 % and less than 100 %, such as 30%")),
    });
    let need_rps = args.need.as_deref().map(|text| match with_flag_name("--need", parse_number(text))? {
        rate if rate > 0.0 => Ok(rate),
        _ => Err(Failure::usage("--need: must be more than 0")),
    });
    let soak_ns = args.soak.as_deref().map(|text| parse_positive_time("--soak", text)).transpose()?;
    if soak_ns.is_some_and(|ns| ns < SOAK_NS_MIN) {
        return Err(Failure::usage("--soak: must be at least 10s; a longer time such as 30m finds more problems"));
    }
    Ok(Planning { headroom: headroom.transpose()?, need_rps: need_rps.transpose()?, soak_ns })
}

/// Executes the search and prints the findings. Returns the exit code.
pub fn carry_out(spec: FindSpec<Plan>, settings: &ExperimentSettings<String>) -> Result<u8, Failure> {
    let fail_if = settings.fail_if.as_deref().map(parse_fail_if).transpose()?;
    let fail_if = fail_if.unwrap_or_default();
    let prepared = PreparedSearch::prepare(spec, settings, ProbeEffort::Little)?;
    let asked = ExperimentSpec::Find(prepared.search_spec());
    let mut live = ProgressDisplay::new(settings.output.quiet);
    live.print_line_unless_quiet(&find_question(&prepared.settings, &find::forecast(&prepared.settings)));
    prepared.carry_out(asked, settings, live, |finding, live| {
        let Finding::Find(found) = finding else { return exit::NEGATIVE_RESULT };
        let cpu_ns = found.cpu_us_at_load_line().map(|us| us * 1e3);
        let (gate, notes) = decide_gate(&fail_if, found, cpu_ns);
        notes.iter().for_each(|note| live.print_note(note));
        match found.findings.load_line.rps > 0.0 {
            true => gate.exit_code(settings),
            false => exit::NEGATIVE_RESULT,
        }
    })
}

/// Evaluates the conditions of --fail-if. `cpu_ns` is the CPU time per request at the load line, in
/// ns; `None` if it was not measured. Returns the verdict of the gate, and a note for each
/// condition that is true or cannot be decided.
fn decide_gate(demands: &[FailCondition], finding: &SearchFinding, cpu_ns: Option<f64>) -> (Gate, Vec<String>) {
    let (mut gate, mut notes) = (Gate::Passed, Vec::new());
    for condition in demands {
        let undecided = condition.undecided_fail_condition(&finding.findings, cpu_ns, finding.settings.budget_ns);
        match (undecided, condition.failure_text(&finding.findings, cpu_ns)) {
            (Some(undecided), _) => {
                let reason = undecided.why;
                notes.push(match undecided.budget_ns.map(format::flag_time) {
                    Some(budget) => {
                        format!("--fail-if {condition}: not decided: {reason}; --budget {budget} would decide")
                    }
                    None => format!("--fail-if {condition}: not decided: {reason}"),
                });
                gate = gate.max(Gate::Inconclusive);
            }
            (None, Some(figure)) => {
                notes.push(format!("--fail-if {condition}: {figure}"));
                gate = Gate::Failed;
            }
            (None, None) => {}
        }
    }
    (gate, notes)
}
