//! The texts above charts: a title with the finding in one sentence, and a subtitle with the
//! conditions of the measurement.

use super::Heading;
use crate::format::{self, count, duration, rate, share, short_percent};
use plimsoll_analysis::levels::{Level, LoadUnit, level_changes};
use plimsoll_analysis::prove::{ComparisonResult, Ladder};
use plimsoll_analysis::series::GoodputVariation;
use plimsoll_analysis::slo::LatencyBound;
use plimsoll_analysis::{Findings, Quantile, Summary};
use plimsoll_model::{HttpChoice, LoadPurpose, LoadShape, PlanRecord};

/// Describes the request of a plan in a few words, without secrets.
pub fn target_title(plan: &PlanRecord) -> String {
    match plan.connection_plan.http {
        HttpChoice::H2 if plan.traffic.first_route().ok_grpc.is_none() => {
            format!("{} over HTTP/2", plan.traffic.title())
        }
        HttpChoice::H2 | HttpChoice::Auto | HttpChoice::H1 => plan.traffic.title(),
    }
}

/// Creates the heading of the chart of one search: the load line as a sentence, and the conditions
/// of the search.
pub fn search_heading(findings: &Findings, target: &str) -> Heading {
    let line = findings.load_line;
    let upper = line.upper.filter(|upper| upper.is_finite());
    let title = load_line_sentence(findings);
    let trials = match findings.trials.iter().filter(|t| t.purpose != LoadPurpose::Settle).count() {
        1 => "1 trial".to_owned(),
        several => format!("{several} trials"),
    };
    let bracket = match upper {
        Some(upper) if line.rps > 0.0 => format!("; 90 % interval: {} to {}/s", rate(line.lower), rate(upper)),
        _ => String::new(),
    };
    let held = match line.rps > 0.0 {
        true if line.is_confirmed => format!("; seen for {}", duration(findings.longest_pass_at_line_s * 1e9)),
        true => "; not confirmed".to_owned(),
        false => String::new(),
    };
    let subtitle = format!("{target}; {trials} in {}{held}{bracket}", duration(findings.elapsed_s * 1e9));
    Heading { title, subtitle }
}

/// Formats the load line as a sentence for a reader without prior knowledge. An example is "The
/// service sustains about 1 880 requests a second while ...".
pub fn load_line_sentence(findings: &Findings) -> String {
    let (line, counted) = (findings.load_line, findings.rate_unit);
    let slo_clause = slo_clause_text(findings);
    let upper = line.upper.filter(|upper| upper.is_finite());
    // The title must not claim more than the report. For a doubtful or unconfirmed load line, the
    // title says "probably sustains" or "may sustain" instead of "sustains".
    let (sustains, caveat) = match (line.is_confirmed, findings.doubts.inline_texts().next()) {
        (true, None) => ("sustains", ""),
        (true, Some(_)) => ("probably sustains", ""),
        (false, _) => ("may sustain", " (not confirmed)"),
    };
    let log_multiple = match findings.access_log_rate {
        Some(log) if line.rps > 0.0 => {
            format!("{} times the log: ", format::format_factor(log.multiple_of_mean_rate(line.rps)))
        }
        _ => String::new(),
    };
    match (line.rps > 0.0, upper) {
        (true, Some(_)) if line.has_estimate => {
            format!(
                "The service {sustains} {log_multiple}about {rate_rps} {counted} a second while {slo_clause}{caveat}",
                rate_rps = rate(line.rps)
            )
        }
        (true, Some(upper)) => {
            let (lower, upper) = (round_down_text(line.lower), rate(upper));
            format!(
                "The service {sustains} {log_multiple}between {lower} and {upper} {counted} a second while \
                 {slo_clause}{caveat}"
            )
        }
        (true, None) => {
            let rate = round_down_text(line.lower);
            format!(
                "The service {sustains} {log_multiple}{rate} {counted} a second, and maybe more, while \
                 {slo_clause}{caveat}"
            )
        }
        (false, Some(upper)) => {
            format!("Even {rate_rps} {counted} a second break the SLO: {slo_clause}", rate_rps = round_down_text(upper))
        }
        (false, None) => format!("No rate was found at which {slo_clause}"),
    }
}

/// Formats a value with three significant digits, rounded down, so that the text never exceeds the
/// measured value.
fn round_down_text(value: f64) -> String {
    if !(1e-6..1e15).contains(&value) {
        return rate(value);
    }
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    // Without the addend 1e-9, the rounding error of the division could make the last digit of the
    // formatted value too small by one.
    rate((value / unit + 1e-9).floor() * unit)
}

/// Formats the SLO as a clause: `99 % of responses arrive within 500 ms and 99.9 % succeed`.
fn slo_clause_text(findings: &Findings) -> String {
    let bound = |of_route: &str, bound: &LatencyBound| {
        let within = super::AxisUnit::Nanoseconds.tick_label(bound.bound_ns as f64);
        if !bound.bounds_response_time() {
            return format!("{bound}{}", if of_route.is_empty() { String::new() } else { format!(" of{of_route}") });
        }
        match bound.quantile {
            q if q >= 1.0 => format!("every response{of_route} arrives within {within}"),
            0.5 => format!("half of the responses{of_route} arrive within {within}"),
            q => format!(
                "{share_percent} % of responses{of_route} arrive within {within}",
                share_percent = (q * 1e6).round() / 1e4
            ),
        }
    };
    let mut parts: Vec<String> = findings.slo.latency.iter().map(|it| bound("", it)).collect();
    for promise in &findings.slo.by_route {
        let name = &promise.route;
        parts.extend(promise.latency.iter().map(|it| bound(&format!(" to {name}"), it)));
        parts.extend(promise.success_min.map(|least| format!("{} of {name} are successful", short_percent(least))));
    }
    match findings.slo.success_min {
        least if least >= 1.0 => parts.push("all succeed".into()),
        least if least > 0.0 => parts.push(format!("{} succeed", short_percent(least))),
        _ => {}
    }
    match parts.split_last() {
        None => "requests complete".into(),
        Some((only, [])) if only == "all succeed" => "all requests succeed".into(),
        Some((only, [])) if only.ends_with("succeed") => only.replace(" succeed", " of requests succeed"),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

fn load_value_text(over: LoadUnit, load: f64) -> String {
    match over {
        LoadUnit::Concurrency => format!("concurrency {}", count(load.round() as u64)),
        LoadUnit::Rate => format!("{}/s offered", rate(load)),
        LoadUnit::Sessions => format!("{} sessions/s offered", rate(load)),
    }
}

/// Creates the heading of the chart of throughput and latency over the load.
pub fn throughput_heading(over: LoadUnit, levels: &[Level], subtitle: &str) -> Heading {
    let best = levels.iter().filter(|l| l.rps.is_finite() && l.load.is_finite()).max_by(|a, b| a.rps.total_cmp(&b.rps));
    let title = match best {
        Some(best) => format!(
            "Highest throughput: {rate_rps} requests/s, at {load}",
            rate_rps = rate(best.rps),
            load = load_value_text(over, best.load)
        ),
        None => "Throughput and time to last byte".into(),
    };
    Heading { title, subtitle: subtitle.into() }
}

/// Creates the heading of the chart of success rates over the load.
pub fn success_heading(over: LoadUnit, levels: &[Level], subtitle: &str) -> Heading {
    let mut levels: Vec<&Level> = levels.iter().collect();
    levels.sort_by(|a, b| a.load.total_cmp(&b.load));
    let title = match levels.iter().find(|level| level.success_rate < 1.0) {
        None if levels.is_empty() => "Success rate".into(),
        None => "Every request succeeded at every level of the load".into(),
        Some(first) => format!("First failures at {}", load_value_text(over, first.load)),
    };
    Heading { title, subtitle: subtitle.into() }
}

fn signed_percentage(change: f64) -> String {
    format!("{:+.1} %", change * 100.0).replace('-', "\u{2212}")
}

fn percentage_range(values: impl Iterator<Item = f64>) -> Option<String> {
    let (lo, hi) = super::scale::finite_extent(values)?;
    let (lo, hi) = (signed_percentage(lo), signed_percentage(hi));
    Some(if lo == hi { lo } else { format!("{lo} to {hi}") })
}

/// Formats how much the goodput varied within the levels (measured loads) of one recording. If the
/// recording lacks the variation of its goodput, the text states that the variation is missing.
pub fn goodput_variation_text(name: &str, levels: &[Level]) -> String {
    let known: Vec<GoodputVariation> = levels.iter().filter_map(|l| l.spread).collect();
    let most = known.iter().max_by(|a, b| a.variation.total_cmp(&b.variation));
    match most {
        None => format!("the recording {name} does not contain the variation of its goodput"),
        Some(most) => {
            let least = known.iter().map(|s| s.variation).fold(f64::INFINITY, f64::min) * 100.0;
            let most_percent = most.variation * 100.0;
            let range = match format!("{least:.1}") == format!("{most_percent:.1}") {
                true => format!("{most_percent:.1} %"),
                false => format!("{least:.1} to {most_percent:.1} %"),
            };
            format!("the goodput of {name} varied by {range} within the recording")
        }
    }
}

/// Formats a caveat: a comparison of two separate recordings cannot prove a difference that is
/// smaller than the variation within each recording.
pub fn comparison_caveat(a: (&str, &[Level]), b: (&str, &[Level])) -> String {
    if a.1.iter().chain(b.1).all(|l| l.spread.is_none()) {
        return "Two separate recordings prove no difference smaller than their own variation, and neither file \
             records its variation."
            .into();
    }
    format!(
        "Two separate recordings prove no difference smaller than their own variation: {variation_of_a}; \
         {variation_of_b} (coefficient of variation of the goodput).",
        variation_of_a = goodput_variation_text(a.0, a.1),
        variation_of_b = goodput_variation_text(b.0, b.1)
    )
}

/// Creates the heading of the chart of throughput and latency of two recordings.
pub fn throughput_diff_heading(a: (&str, &[Level]), b: (&str, &[Level])) -> Heading {
    let changes = level_changes(a.1, b.1);
    let title = match percentage_range(changes.iter().filter_map(|c| c.rps)) {
        Some(range) => format!("{} against {}: {range} requests/s", b.0, a.0),
        None => format!(
            "No load (users or rate) was measured in both {recording_b} and {recording_a}",
            recording_b = b.0,
            recording_a = a.0
        ),
    };
    Heading { title, subtitle: comparison_caveat(a, b) }
}

/// Creates the heading of the chart of success rates of two recordings.
pub fn success_diff_heading(a: (&str, &[Level]), b: (&str, &[Level])) -> Heading {
    let changes = level_changes(a.1, b.1);
    let extent = super::scale::finite_extent(changes.iter().map(|c| c.success_points * 100.0));
    let points = |value: f64| format!("{value:+.2}").replace('-', "\u{2212}");
    let title = match extent {
        None => format!(
            "No load (users or rate) was measured in both {recording_b} and {recording_a}",
            recording_b = b.0,
            recording_a = a.0
        ),
        Some((lo, hi)) if lo.abs() < 0.005 && hi.abs() < 0.005 => {
            format!("{recording_b} against {recording_a}: equal success rates", recording_b = b.0, recording_a = a.0)
        }
        Some((lo, hi)) if points(lo) == points(hi) => {
            format!(
                "{recording_b} against {recording_a}: success rate {change} percentage points",
                recording_b = b.0,
                recording_a = a.0,
                change = points(lo)
            )
        }
        Some((lo, hi)) => format!(
            "{recording_b} against {recording_a}: success rate {lowest_change} to {highest_change} percentage points",
            recording_b = b.0,
            recording_a = a.0,
            lowest_change = points(lo),
            highest_change = points(hi)
        ),
    };
    Heading { title, subtitle: comparison_caveat(a, b) }
}

/// Formats the load and the outcome of a run, for the subtitle of its charts.
fn load_and_outcome_text(plan: &PlanRecord, summary: &Summary) -> String {
    let length = duration(summary.duration_ns as f64);
    // The text of a load that replays an access log already states the planned duration. The
    // measured duration is added only if the two durations differ.
    let of_log = match &plan.load.shape {
        LoadShape::ArrivalTimes { arrivals } => arrivals.rate().duration_ns(),
        LoadShape::Closed { .. } | LoadShape::Open { .. } => None,
    };
    let length = match of_log.is_some_and(|ns| duration(ns as f64) == length) {
        true => String::new(),
        false => format!(" for {length}"),
    };
    format!(
        "{}; {}{length}; {} requests, {} succeeded",
        target_title(plan),
        crate::run::load_text(plan),
        count(summary.requests),
        share(summary.success_rate),
    )
}

/// Creates the heading of the chart of latencies by percentile.
pub fn percentile_heading(plan: &PlanRecord, summary: &Summary) -> Heading {
    let response = &summary.routes_sum.response;
    let title = match response.count {
        0 => "No latency was measured".to_owned(),
        _ => match (response.quantiles.p50, response.quantiles.p99) {
            (Quantile::Time(_), Quantile::Few) | (Quantile::Few, _) => {
                format!(
                    "Half of {responses} responses arrived within {median}",
                    responses = count(response.count),
                    median = duration(response.p50_ns as f64)
                )
            }
            (half, most @ Quantile::Time(_)) => {
                format!("Half of the responses arrived within {half}, 99 % within {most}")
            }
            (half @ Quantile::Time(_), _) => {
                format!("Half of the responses arrived within {half}, more than 1 % failed")
            }
            _ => "More than half of the requests failed".to_owned(),
        },
    };
    Heading { title, subtitle: load_and_outcome_text(plan, summary) }
}

/// Creates the heading of the chart of one load over time.
pub fn time_heading(plan: &PlanRecord, summary: &Summary) -> Heading {
    let title = format!("{} requests/s succeeded", rate(summary.throughput_rps));
    Heading { title, subtitle: load_and_outcome_text(plan, summary) }
}

/// Creates the heading of the heat map of one load.
pub fn heat_map_heading(plan: &PlanRecord, summary: &Summary) -> Heading {
    Heading { title: "Response times over time".into(), subtitle: load_and_outcome_text(plan, summary) }
}

/// Creates the heading of the chart of a ladder, which measures several servers (rungs) in turn.
/// The title compares the throughputs of the first rung and of the last rung.
pub fn ladder_chart_heading(ladder: &Ladder, load: &str) -> Heading {
    Heading {
        title: crate::prove::ladder_answer(ladder),
        subtitle: format!("{load}; {}", blocks_text(ladder.blocks, ladder.blocks_void)),
    }
}

fn blocks_text(valid: usize, void: usize) -> String {
    match void {
        0 => format!("{valid} blocks"),
        void => format!("{valid} blocks, {void} void"),
    }
}

/// Creates the heading of the chart that compares two servers, A and B: the verdict, the two sides,
/// and the load.
pub fn prove_chart_heading(proof: &ComparisonResult, sides: &[String], load: &str) -> Heading {
    let mut title = crate::prove::prove_answer(proof);
    if let Some(first) = title.get(..1).map(str::to_uppercase) {
        title.replace_range(..1, &first);
    }
    let named: Vec<String> = ["A", "B"].iter().zip(sides).map(|(name, side)| format!("{name}: {side}")).collect();
    let blocks = blocks_text(proof.blocks, proof.blocks_void);
    Heading { title, subtitle: format!("{}; {load}; {blocks}", named.join("; ")) }
}
