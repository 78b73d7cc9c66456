//! How the result of a search looks.

use crate::block::{Report, Tone};
use crate::format::{count, duration, rate, share};
use crate::run::RunContext;
use plimsoll_analysis::find::{Bracket, StoppedBy};
use plimsoll_analysis::{Findings, Load, TrialOutcome, Verdict};
use plimsoll_model::Purpose;

/// Why a search ended, in words.
pub fn stopped_text(stopped_by: StoppedBy) -> &'static str {
    match stopped_by {
        StoppedBy::Width => "the line is known to 1 %",
        StoppedBy::Budget => "the budget was used up",
        StoppedBy::Client => "the generator could not offer more",
        StoppedBy::MaxRate => "--max-rate was reached",
        StoppedBy::LowestFails => "the lowest load already breaks the SLO",
        StoppedBy::NothingSucceeds => "no request succeeded",
        StoppedBy::Interrupted => "interrupted",
    }
}

/// The answer in one sentence.
pub fn answer(findings: &Findings) -> String {
    let Bracket { lower, upper } = findings.load_line_rps;
    let slo = &findings.slo;
    match (lower > 0.0, upper) {
        (false, Some(upper)) => format!("no load was found to hold {slo}: even {} requests/s did not", rate(upper)),
        (false, None) => format!("no load line was found under {slo}"),
        (true, None) => {
            format!("load line: at least {} requests/s under {slo}; its upper end was not reached", rate(lower))
        }
        (true, Some(upper)) => format!(
            "load line: {} requests/s under {slo} ({} did not hold; {:.1} % apart)",
            rate(lower),
            rate(upper),
            (upper / lower - 1.0) * 100.0,
        ),
    }
}

/// One trial as a row of the table: kind, load, length, goodput, success, p50, p99, lag, verdict and reason.
fn trial_row(trial: &TrialOutcome) -> Vec<String> {
    let load = match trial.load {
        Load::Rate(offered) => format!("{}/s", rate(offered)),
        Load::Users(users) => format!("{} users", count(users)),
    };
    let verdict = match (trial.purpose, trial.verdict) {
        // Closed trials and load in between are not judged by the SLO.
        (Purpose::Settle | Purpose::Peak, Verdict::Pass | Verdict::Fail) => String::new(),
        (_, verdict @ Verdict::Pass) => verdict.to_string(),
        _ => format!("{}: {}", trial.verdict, trial.reason),
    };
    vec![
        crate::csv::purpose_name(trial.purpose).to_owned(),
        load,
        duration(trial.duration_ns as f64),
        format!("{}/s", rate(trial.achieved_rps)),
        share(trial.success_rate),
        duration(trial.p50_ns as f64),
        duration(trial.p99_ns as f64),
        duration(trial.lag_p99_ns as f64),
        verdict,
    ]
}

/// One trial as a line of progress.
pub fn trial_line(elapsed_ns: u64, trial: &TrialOutcome) -> String {
    let cells = trial_row(trial);
    let widths = [7, 14, 8, 12, 9, 8, 8];
    let mut line = format!("{:>6.1} s  {:<7}", elapsed_ns as f64 / 1e9, cells[0]);
    for (cell, width) in cells[1..7].iter().zip(&widths[1..]) {
        line.push_str(&format!("  {cell:>width$}"));
    }
    format!("{line}  {}", cells[8]).trim_end().to_owned()
}

/// The report of a search. `with_trials`: with the table of all trials, unless they were shown as they happened.
pub fn find_report(context: &RunContext, findings: &Findings, with_trials: bool) -> Report {
    let mut report = Report::default();
    let trials = || findings.trials.iter().filter(|t| t.purpose != Purpose::Settle);
    if findings.stopped_by == StoppedBy::Client {
        report.text(
            Tone::Warning,
            "the generator was the limit, not the server: the line lies above what it could offer",
        );
    }
    for warning in context.warnings.iter().chain(&findings.warnings) {
        report.text(Tone::Warning, warning.clone());
    }
    report.text(Tone::Answer, answer(findings));
    let mut facts =
        vec![("target", format!("{} {}", context.plan.request.method, context.plan.request.url_redacted()))];
    if findings.load_line_rps.lower > 0.0 {
        facts.push(("held", format!("{:.1} s in one trial", findings.held_s)));
    }
    if let Some(peak) = &findings.peak {
        facts.push(("peak", format!("{} requests/s with {} users", rate(peak.rps), count(peak.concurrency))));
    }
    if let Some(knee) = &findings.knee {
        facts.push((
            "knee",
            format!(
                "{} users: {} requests/s, p99 {} (the fewest users with 95 % of the peak)",
                count(knee.concurrency),
                rate(knee.rps),
                duration(knee.p99_ns as f64)
            ),
        ));
    }
    let voids = trials().filter(|t| t.verdict == Verdict::Void).count();
    facts.push((
        "search",
        format!(
            "{} trials in {:.1} s ({voids} void); ended because {} (seed {})",
            trials().count(),
            findings.elapsed_s,
            stopped_text(findings.stopped_by),
            context.plan.seed
        ),
    ));
    let busiest = trials().map(|t| t.evidence.work_share).fold(0.0, f64::max);
    let lag = trials().filter(|t| t.verdict != Verdict::Void).map(|t| t.lag_p99_ns).max().unwrap_or(0);
    let threads =
        if context.plan.workers == 1 { "1 thread".to_owned() } else { format!("{} threads", context.plan.workers) };
    facts.push((
        "generator",
        format!(
            "{threads} of {} cores{}; at most {:.0} % busy, lag p99 at most {} in trials that count",
            context.cores,
            if context.local { "; the target is on the same machine" } else { "" },
            busiest * 100.0,
            duration(lag as f64)
        ),
    ));
    report.facts(facts);
    if with_trials {
        report.table(
            &["trial", "load", "length", "goodput", "success", "p50", "p99", "lag p99", "verdict"],
            trials().map(trial_row).collect(),
        );
    }
    report
}
