//! The first screen of an overload test: the goodput beyond the load line (the highest rate that
//! meets the SLO), and whether the server recovers.
//!
//! Not here: the page (`overload`).

use super::Screen;
use super::find::{server_cpu_text, target_argument_text};
use crate::overload::{STEP_HEADINGS, load_line_text, load_step_row, overload_answer};
use crate::run::{RunContext, target_text};
use plimsoll_analysis::finding::OverloadFinding;
use plimsoll_analysis::overload::{OverloadResult, OverloadVerdict};
use plimsoll_model::PlanRecord;

/// The maximum number of rows in the table of loads on a screen.
const STEPS_MAX: usize = 8;

/// Renders the first screen of an overload test.
pub(crate) fn overload_screen(context: &RunContext, finding: &OverloadFinding) -> Screen<'static> {
    let mut screen = Screen::new(overload_answer(&finding.overload));
    screen.add_fact(1, "how sure", certainty_text(finding));
    screen.add_fact(1, "target", context.target_text());
    screen.add_fact(1, "line", format!("{} under {}", load_line_text(context, &finding.overload), finding.slo));
    if let Some((plan, other)) = &finding.second_target {
        screen.add_fact(0, "against", format!("{}: {}", target_text(plan), overload_answer(other)));
    }
    if let Some(says) = finding.overload.retry_after {
        let text = if says {
            "the server sends the header Retry-After when it sheds load"
        } else {
            "the server does not send the header Retry-After when it sheds load"
        };
        screen.add_fact(2, "Retry-After", text);
    }
    if let Some(text) = server_cpu_text(&finding.server) {
        screen.add_fact(3, "server", text);
    }
    let rows = |plan: &PlanRecord, found: &OverloadResult| {
        let is_grpc = plan.traffic.origin.is_grpc();
        found.steps.iter().map(|step| load_step_row(step, is_grpc)).collect()
    };
    screen.add_table(1, &STEP_HEADINGS, rows(finding.plan, &finding.overload), STEPS_MAX);
    let target = target_argument_text(context);
    screen.set_next_step(match finding.overload.verdict.filter(|_| !finding.generator_was_limit) {
        Some(OverloadVerdict::Sheds) => format!("find out what limits the load line: plimsoll explain {target}"),
        Some(_) => format!("change the server, then compare: plimsoll overload --against OTHER_URL {target}"),
        None => format!("plimsoll doctor checks this machine; then repeat: plimsoll overload {target}"),
    });
    screen
}

/// Formats how far the verdict can be trusted.
fn certainty_text(finding: &OverloadFinding) -> &'static str {
    match finding.generator_was_limit {
        true => "not sure: plimsoll itself was at its limit, so the server may have had less load than planned",
        false => "each step of the load was measured once; a repetition may give other figures",
    }
}
