//! The question that a study answers, as one sentence that is printed before the first load.
//!
//! Not here: the study's interim result (`study_status`), and its final result.

use crate::chart::heading;
use crate::format::duration;
use crate::prove::measure_text;
use plimsoll_analysis::SearchSettings;
use plimsoll_analysis::find::Forecast;
use plimsoll_model::Criterion;

/// Formats the question of a search for the load line, with the time budget and the expected
/// precision of the load line.
pub fn find_question(settings: &SearchSettings, forecast: &Forecast) -> String {
    let sought_rate = match &settings.base.traffic.request_list {
        Some(_) => "the highest multiple of the log's traffic",
        None => "the highest rate",
    };
    format!(
        "searching for {sought_rate} at which {target} meets {slo}: {budget} at most, precise to about \
         {precision_percent:.0} %",
        target = heading::target_title(&settings.base),
        slo = settings.slo,
        budget = duration(settings.budget_ns as f64),
        precision_percent = (forecast.width * 100.0).max(1.0),
    )
}

/// Formats the question of an explanation (what limits the load line), with the time budget.
pub fn explain_question(settings: &SearchSettings, budget_ns: u64) -> String {
    format!(
        "searching for the bottleneck of {target} under {slo}: {budget} at most",
        target = heading::target_title(&settings.base),
        slo = settings.slo,
        budget = duration(budget_ns as f64)
    )
}

/// Formats the question of an overload test, with the time budget.
pub fn overload_question(settings: &SearchSettings, budget_ns: u64) -> String {
    format!(
        "loading {target} above its load line under {slo}: {budget} at most",
        target = heading::target_title(&settings.base),
        slo = settings.slo,
        budget = duration(budget_ns as f64)
    )
}

/// Formats the question of a comparison, which decides by the measure `criterion`. If `criterion`
/// is `None`, the text is the question of a ladder of `steps` rungs (servers).
pub fn comparison_question(steps: usize, budget_ns: u64, criterion: Option<Criterion>) -> String {
    let budget = duration(budget_ns as f64);
    match criterion {
        None => format!("how much throughput remains at each of the {steps} servers of the ladder? ({budget} at most)"),
        Some(criterion) => {
            format!("is B better than A? {measure} decides ({budget} at most)", measure = measure_text(criterion))
        }
    }
}
