//! Renders the page of vegeta results: the numbers of requests, their latencies and their failures.
//! The figures are shown over time and for each attack (a run of vegeta).
//!
//! Not here: computing the figures (`plimsoll_logs::vegeta`), and vegeta's own report formats.

use crate::block::{Report, Tone};
use crate::chart::{AxisUnit, ChartLine, Heading, Panel, percentile_chart, time_chart};
use crate::format::{count, duration, rate, share};
use plimsoll_analysis::series;
use plimsoll_logs::vegeta::{AttackIntervalFigures, AttackTimeSeries, VegetaTimeSeries};

/// The maximum number of time intervals on the horizontal axis of a chart.
const CHART_INTERVALS_MAX: usize = 150;
/// The maximum number of different errors that the page lists for one attack.
const ERRORS_SHOWN_MAX: usize = 20;

fn attack_name(attack: &AttackTimeSeries) -> &str {
    if attack.name.is_empty() { "attack" } else { &attack.name }
}

fn success_share(attack: &AttackTimeSeries) -> f64 {
    (attack.request_count() - attack.failed_result_count) as f64 / attack.request_count().max(1) as f64
}

fn quantile_text(attack: &AttackTimeSeries, quantile: f64) -> String {
    duration(attack.latency.quantile_ns(quantile) as f64)
}

/// Formats the result of one attack as a sentence. An attack is a run of vegeta against a list of
/// targets.
fn attack_sentence(attack: &AttackTimeSeries) -> String {
    let requests = attack.request_count();
    let pace = match attack.request_span_ns() {
        0 => "at once".to_owned(),
        ns => format!("at {}/s for {}", rate(attack.rate_rps()), duration(ns as f64)),
    };
    format!(
        "{name}: {requests} request{plural} {pace}; {share_percent} succeeded; half of the responses arrived \
         within {p50}, 99 % within {p99}",
        name = attack_name(attack),
        requests = count(requests),
        plural = if requests == 1 { "" } else { "s" },
        share_percent = share(success_share(attack)),
        p50 = quantile_text(attack, 0.5),
        p99 = quantile_text(attack, 0.99)
    )
}

fn chart_line(
    name: &str,
    moments: &[AttackIntervalFigures],
    value: impl Fn(&AttackIntervalFigures) -> Option<f64>,
) -> ChartLine {
    ChartLine {
        name: name.to_owned(),
        points: moments.iter().map(|moment| (moment.at_s, value(moment).unwrap_or(f64::NAN))).collect(),
    }
}

/// Creates the panels of the chart. One panel has the rates of all attacks. If any request failed,
/// a second panel has the rates of failed requests. A further panel for each attack has the
/// latencies.
fn chart_panels(attacks: &[AttackTimeSeries], columns_max: usize) -> Vec<Panel> {
    let of: Vec<(&AttackTimeSeries, Vec<AttackIntervalFigures>)> =
        attacks.iter().map(|attack| (attack, attack.interval_figures(columns_max))).collect();
    let panel = |title: String, unit, log, lines| Panel { title, unit, is_log_scale: log, lines };
    let sent = of.iter().map(|(attack, moments)| chart_line(attack_name(attack), moments, |moment| moment.sent_rps));
    let mut panels = vec![panel("requests/s".to_owned(), AxisUnit::Count, false, sent.collect())];
    if attacks.iter().any(|attack| attack.failed_result_count > 0) {
        let failed =
            of.iter().map(|(attack, moments)| chart_line(attack_name(attack), moments, |moment| moment.failed_rps));
        panels.push(panel("failed, requests/s".to_owned(), AxisUnit::Count, false, failed.collect()));
    }
    for (attack, moments) in &of {
        let title =
            if attacks.len() == 1 { "latency".to_owned() } else { format!("latency of {}", attack_name(attack)) };
        let mut lines = vec![
            chart_line("p50", moments, |moment| moment.p50_ns),
            chart_line("p99", moments, |moment| moment.p99_ns),
            chart_line("max", moments, |moment| moment.max_ns),
        ];
        if attack.failed_result_count > 0 && attack.failed_result_count < attack.request_count() {
            lines.push(chart_line("failed, p50", moments, |moment| moment.failed_p50_ns));
        }
        panels.push(panel(title, AxisUnit::Nanoseconds, true, lines));
    }
    // Panels without any finite value are removed, such as the panel of rates if all attacks were
    // too short to have a rate.
    panels.retain(|panel| panel.lines.iter().any(|line| line.points.iter().any(|point| point.1.is_finite())));
    panels
}

fn table_row(attack: &AttackTimeSeries) -> Vec<String> {
    let mut row = vec![
        attack_name(attack).to_owned(),
        count(attack.request_count()),
        rate(attack.rate_rps()),
        duration(attack.request_span_ns() as f64),
        share(success_share(attack)),
    ];
    row.extend([0.5, 0.9, 0.99, 1.0].map(|quantile| quantile_text(attack, quantile)));
    row
}

/// Renders the page of vegeta results. `title` is the heading; `columns_max` is the maximum number
/// of intervals in a chart.
pub fn attacks_page(course: &VegetaTimeSeries, title: &str, columns_max: usize) -> Report {
    let attacks = course.attacks();
    let mut report = Report::default();
    if !title.is_empty() {
        report.add_sentence(Tone::Answer, title);
    }
    if course.results_beyond_limit() > 0 {
        let text = format!(
            "{results} results of further vegeta attacks are not shown: the report lists at most {attacks_max} attacks",
            results = count(course.results_beyond_limit()),
            attacks_max = attacks.len()
        );
        report.add_sentence(Tone::Warning, text);
    }
    if attacks.is_empty() {
        report.add_sentence(if title.is_empty() { Tone::Answer } else { Tone::Plain }, "The vegeta results are empty");
        return report;
    }
    for (at, attack) in attacks.iter().enumerate() {
        let tone = if at == 0 && title.is_empty() { Tone::Answer } else { Tone::Plain };
        report.add_sentence(tone, attack_sentence(attack));
    }
    let headings = ["attack", "requests", "rate/s", "for", "succeeded", "p50", "p90", "p99", "max"];
    let rows: Vec<Vec<String>> = attacks.iter().map(table_row).collect();
    let panels = chart_panels(attacks, columns_max.clamp(1, CHART_INTERVALS_MAX));
    report.add_responsive_chart(|theme| time_chart(&Heading::default(), &panels, theme), &headings, rows);
    let lines = attacks.iter().map(|attack| ChartLine {
        name: attack_name(attack).to_owned(),
        points: series::latency_by_quantile(&attack.latency),
    });
    let lines: Vec<ChartLine> = lines.collect();
    report.add_responsive_chart(|theme| percentile_chart(&Heading::default(), &lines, theme), &[], Vec::new());
    report.add_heading("Responses");
    let codes = attacks.iter().flat_map(|attack| {
        attack.codes.iter().map(move |(code, results)| {
            let code = if *code == 0 { "no response".to_owned() } else { code.to_string() };
            let part = *results as f64 / attack.request_count().max(1) as f64;
            vec![attack_name(attack).to_owned(), code, count(*results), share(part)]
        })
    });
    report.add_table(&["attack", "code", "requests", "share"], codes.collect());
    let errors = attacks.iter().flat_map(|attack| {
        let mut errors: Vec<(&String, &u64)> = attack.errors.iter().collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        errors.truncate(ERRORS_SHOWN_MAX);
        errors.into_iter().map(move |(error, times)| vec![attack_name(attack).to_owned(), error.clone(), count(*times)])
    });
    let errors: Vec<Vec<String>> = errors.collect();
    if !errors.is_empty() {
        report.add_heading("Failures");
        report.add_table(&["attack", "error", "requests"], errors);
    }
    report.add_sentence(
        Tone::Plain,
        "The latencies come from the vegeta results. plimsoll measures from the scheduled start of a request. \
         vegeta measures from the time when a vegeta worker starts the request, without the wait for a worker.",
    );
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;
    use plimsoll_logs::vegeta::VegetaResult;

    fn test_vegeta_course(attacks: &[&str]) -> VegetaTimeSeries {
        let mut course = VegetaTimeSeries::default();
        for n in 0..400u64 {
            let code = if n % 8 == 7 { 503 } else { 200 };
            course.add(&VegetaResult {
                attack: attacks[n as usize % attacks.len()].into(),
                sent_ns: 1_795_307_654_000_000_000 + n * 10_000_000,
                latency_ns: 1_000_000 + n * 1000,
                code,
                error: if code == 200 { String::new() } else { "503 <b>No</b>\u{1b}[2J".into() },
                ..VegetaResult::default()
            });
        }
        course
    }

    #[test]
    fn the_page_describes_each_attack() {
        let page =
            page::render(&attacks_page(&test_vegeta_course(&["old", "new<"]), "", CHART_INTERVALS_MAX), "vegeta");
        for part in [
            "<h1>Old: 200 requests at 50.3/s for 3.98 s; 100 % succeeded; half of the responses arrived within ",
            "new&lt;: 200 requests",
            "latency of old",
            "latency of new&lt;",
            "failed, requests/s",
            "503 &lt;b&gt;No&lt;/b&gt;",
        ] {
            assert!(page.contains(part), "{part} is not in the page");
        }
        assert!(!page.contains('\u{1b}') && page.matches("<svg").count() >= 4);
        let titled = page::render(&attacks_page(&test_vegeta_course(&[""]), "before & after", 5), "x");
        assert!(titled.contains("<h1>Before &amp; after</h1>") && titled.contains("<p>attack: 400 requests"));
    }

    #[test]
    fn attack_pages_render_with_zero_or_one_result() {
        let none = page::render(&attacks_page(&VegetaTimeSeries::default(), "", CHART_INTERVALS_MAX), "x");
        assert!(none.contains("<h1>The vegeta results are empty</h1>"));
        let mut one = VegetaTimeSeries::default();
        one.add(&VegetaResult { latency_ns: 5, ..VegetaResult::default() });
        let page = page::render(&attacks_page(&one, "t", 0), "x");
        assert!(
            page.contains("attack: 1 request at once; 0 % succeeded; half of the responses arrived within 5 ns, ")
                && page.contains("no response"),
            "{page}"
        );
    }
}
