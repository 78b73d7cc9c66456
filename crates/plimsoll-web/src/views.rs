//! Renders the HTML pages: services, history, runs, one run, comparisons, the form that starts a
//! study, and a running study. All text from run files, servers and users is escaped, either by
//! [`escape_html`] or by the report renderer.
//!
//! Not here: the navigation and style around every page (`layout`), and how findings and charts
//! look (`plimsoll-report`).

use crate::jobs::{StartedStudy, StudyProgress};
use crate::layout::{capitalise_first_letter, escape_html, page};
use crate::problem::Problem;
use crate::query::{Query, percent_encode};
use crate::repeat_study::repeat_recorded_command;
use crate::start_form::{COMMAND_FIELDS, COMMON_FIELDS, STARTABLE_STUDIES, StudyForm};
use crate::state::WebState;
use plimsoll_analysis::history::{
    ComparableRunSeries, HistoryRun, RunState, SeriesOrder, group_comparable_runs, incomparability_reasons,
};
use plimsoll_history::{RunFilter, RunMarks};
use plimsoll_report::format::{duration, format_utc_date, rate, share, signed_percent};
use plimsoll_report::history::{lane_page, run_rate_text};
use plimsoll_report::page::render_body;
use plimsoll_report::{Report, ReportBlock, Tone};
use std::fmt::Write;
use std::path::PathBuf;

/// The maximum number of runs that the user can select for one comparison.
const COMPARED_RUNS_MAX: usize = 6;
/// The maximum number of runs that the page of all runs lists.
const RUNS_SHOWN_MAX: usize = 200;
/// The maximum number of completed loads that the page of a running study lists.
const LOADS_SHOWN_MAX: usize = 12;

/// Returns the path of a run file in the store. A file name that is not the name of a run file is
/// an error, so that no request can read other files.
pub fn run_file_path(shared: &WebState, file: &str) -> Result<PathBuf, Problem> {
    let is_name = file.ends_with(".plimsoll") && !file.starts_with('.') && !file.contains(['/', '\\', '\0']);
    let path = shared.folder.join(file);
    match is_name && std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        true => Ok(path),
        false => Err(Problem::not_found(format!("the store has no run {file}"))),
    }
}

/// Returns the lanes (series of comparable runs) of the runs that match a query, and the order of
/// the runs in each lane.
pub fn series_for_query(shared: &WebState, query: &Query) -> Result<(Vec<ComparableRunSeries>, SeriesOrder), Problem> {
    let order = match query.get("by") {
        None | Some("time") => SeriesOrder::Time,
        Some("commit") => SeriesOrder::Commit,
        Some(_) => return Err(Problem::bad_request("the query parameter 'by' must be commit or time")),
    };
    let filter =
        RunFilter { service: query.get("service").map(str::to_owned), branch: query.get("branch").map(str::to_owned) };
    Ok((group_comparable_runs(&shared.matching_runs(&filter)?, order), order))
}

fn run_url_path(file: &str) -> String {
    format!("/runs/{}", percent_encode(file))
}

fn run_link(file: &str, label: &str) -> String {
    format!("<a href=\"{}\">{}</a>", run_url_path(file), escape_html(label))
}

fn start_time_text(run: &HistoryRun) -> String {
    format_utc_date(run.started_unix_ms).trim_end_matches(" UTC").to_owned()
}

/// Renders an HTML table. The cells of `rows` are HTML already, and the headings are plain text. On
/// a narrow screen each row becomes a paragraph, with the column heading before each cell.
fn render_table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table class=\"list\">\n\
         <thead><tr>",
    );
    headings.iter().for_each(|heading| _ = write!(out, "<th scope=\"col\">{}</th>", escape_html(heading)));
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (heading, cell) in headings.iter().zip(row) {
            let _ = write!(out, "<td data-label=\"{}\">{cell}</td>", escape_html(heading));
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody>\n</table></div>\n"
}

/// Draws the values of a lane (a series of comparable runs) as a sparkline in SVG. The result is
/// empty if the lane has fewer than two points.
fn draw_sparkline(lane: &ComparableRunSeries) -> String {
    let values: Vec<f64> = lane.points.iter().map(|point| point.rps).collect();
    if values.len() < 2 {
        return String::new();
    }
    let (lo, hi) = values.iter().fold((f64::INFINITY, 0.0f64), |(lo, hi), value| (lo.min(*value), hi.max(*value)));
    let (lo, hi) = (lo * 0.95, hi * 1.05);
    let place = |(at, value): (usize, &f64)| {
        let x = 2.0 + 140.0 * at as f64 / (values.len() - 1) as f64;
        let y = 22.0 - 20.0 * (value - lo) / (hi - lo).max(f64::MIN_POSITIVE);
        format!("{x:.1},{y:.1}")
    };
    let points: Vec<String> = values.iter().enumerate().map(place).collect();
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 144 24\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} runs\">\
         <polyline points=\"{}\" fill=\"none\" stroke=\"var(--plimsoll-blue)\" stroke-width=\"1.6\"/></svg>",
        values.len(),
        points.join(" ")
    )
}

/// Renders a relative change with a colour and with the word "better" or "worse", for readers who
/// do not see the colour.
fn change_cell(ratio: f64) -> String {
    let (class, word) = if ratio < 1.0 { ("worse", "worse") } else { ("better", "better") };
    format!("<span class=\"{class}\">{} {word}</span>", signed_percent(ratio - 1.0))
}

/// Renders the page of services. For each service, the page shows the load line, the bottleneck and
/// the trend of the runs.
pub fn services_page(shared: &WebState) -> Result<String, Problem> {
    let all = group_comparable_runs(&shared.matching_runs(&RunFilter::default())?, SeriesOrder::Time);
    let mut body = String::from("<h1>Services</h1>\n");
    let rows: Vec<Vec<String>> = all
        .iter()
        .filter(|lane| lane.separation_reasons.is_empty())
        .map(|lane| {
            // If all runs of a lane (a series of comparable runs) are void, that is, without
            // information about the server, the lane has no points. The table row of a lane without
            // points shows the latest run, whose page states the reason.
            let counted = lane.points.last().and_then(|point| point.runs.last()).map(|run| &lane.runs[*run]);
            let latest = counted.or(lane.runs.last());
            let summary = latest.and_then(|run| run.summary.as_ref());
            let line = match lane.points.last() {
                Some(point) => match point.interval {
                    Some((lower, upper)) => format!("{}/s ({} to {})", rate(point.rps), rate(lower), rate(upper)),
                    None => format!("{}/s", rate(point.rps)),
                },
                None => "not known".to_owned(),
            };
            let cause = summary.and_then(|it| it.cause_subject.clone().or_else(|| it.cause.clone()));
            vec![
                format!(
                    "<a class=\"name\" href=\"/history?service={}\">{}</a>",
                    percent_encode(&lane.service),
                    escape_html(&lane.service)
                ),
                latest
                    .map_or_else(|| escape_html(&line), |run| run_link(&run.file, &format!("{} {line}", lane.measure))),
                format!("<span class=\"wrap\">{}</span>", escape_html(&cause.unwrap_or_else(|| "-".to_owned()))),
                draw_sparkline(lane),
                lane.changes.last().map_or_else(|| "none".to_owned(), |found| change_cell(found.point.ratio)),
                lane.runs.len().to_string(),
                // The time of the run is shown without seconds, so that the table fits a screen.
                latest.map_or_else(
                    || "-".to_owned(),
                    |run| escape_html(&start_time_text(run).chars().take(16).collect::<String>()),
                ),
            ]
        })
        .collect();
    if rows.is_empty() {
        body.push_str(
            "<p class=\"answer\">The store contains no run yet.</p>\n<p>Start one <a href=\"/start\">here</a>, or with \
             <code>plimsoll find URL</code> in the folder in which this server was started.</p>\n",
        );
    } else {
        let headings = ["service", "latest", "limited by", "trend", "last change", "runs", "made"];
        body.push_str(&render_table(&headings, &rows));
        body.push_str(
            "<p class=\"aside\">An interval is the 90 % interval of its run. \
             Only runs that can be compared share a trend.</p>\n",
        );
    }
    body.push_str(&render_running_studies(shared));
    Ok(page("Services", "/", &body, None))
}

/// Renders a list of the running studies with links; empty if none is running.
fn render_running_studies(shared: &WebState) -> String {
    let links: Vec<String> = shared
        .studies
        .list_studies()
        .into_iter()
        .filter(StartedStudy::is_running)
        .map(|job| {
            format!("<li><a href=\"/studies/{}\">{}</a></li>", percent_encode(&job.name), escape_html(&job.command))
        })
        .collect();
    match links.is_empty() {
        true => String::new(),
        false => format!("<h2>Running now</h2>\n<ul>{}</ul>\n", links.join("")),
    }
}

/// Renders the page of history: each lane (series of comparable runs) with its chart, its changes
/// and its runs.
pub fn history_page(shared: &WebState, query: &Query) -> Result<String, Problem> {
    let (all, order) = series_for_query(shared, query)?;
    let service = query.get("service").unwrap_or("all services");
    let mut body = String::new();
    let orders = [("time", "by time", SeriesOrder::Time), ("commit", "by commit", SeriesOrder::Commit)];
    let links = orders.map(|(word, shown, own)| match own == order {
        true => format!("<strong>{shown}</strong>"),
        false => format!("<a href=\"/history?{}\">{shown}</a>", escape_html(&query.query_string_with("by", word))),
    });
    if all.is_empty() {
        let _ = writeln!(body, "<h1>{}</h1>\n<p>No run states a load line or a goodput.</p>", escape_html(service));
    }
    for (number, lane) in all.iter().enumerate() {
        if number > 0 {
            body.push_str("<hr>\n");
        }
        let mut report = lane_page(lane, order);
        // The report's own table is removed, because the table of runs below has the same rows with
        // links.
        report.blocks.retain(|block| !matches!(block, ReportBlock::Table(..)));
        let html = render_body(&report);
        body.push_str(&if number == 0 { html } else { html.replace("<h1>", "<h2>").replace("</h1>", "</h2>") });
        if number == 0 {
            let _ = writeln!(body, "<p class=\"actions\">{}</p>", links.join(" "));
        }
        body.push_str(&compare_form(&lane.runs.iter().rev().collect::<Vec<_>>(), Some(lane)));
    }
    Ok(page(service, "/history", &body, None))
}

/// Renders a table of runs as a form, in which the user selects the runs to compare.
fn compare_form(runs: &[&HistoryRun], lane: Option<&ComparableRunSeries>) -> String {
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let summary = run.summary.as_ref();
            let aside = lane.and_then(|lane| lane.excluded_runs.iter().find(|(at, _)| lane.runs[*at].file == run.file));
            let note = match (aside, run.void_reason()) {
                (Some((_, why)), _) => format!("not counted: {why}"),
                (None, Some(void)) => format!("void: {void}"),
                (None, None) => String::new(),
            };
            let pinned = run.is_pinned.then(|| "pinned".to_owned());
            let tags = run.tags.iter().map(|(key, value)| format!("{key}={value}"));
            let tags: Vec<String> = pinned.into_iter().chain(tags).collect();
            let verdict = summary.and_then(|it| it.verdict.clone());
            let has_rate = run.valid_load_line().is_some() || run.series_value_rps().is_some();
            let found = match verdict {
                _ if has_rate => run_rate_text(run),
                Some(verdict) => format!("B is {verdict}"),
                None if note.is_empty() => "-".to_owned(),
                None => String::new(),
            };
            let note = match note.is_empty() {
                true => note,
                false => format!(" <span class=\"aside wrap\">{}</span>", escape_html(&note)),
            };
            vec![
                format!(
                    "<input type=\"checkbox\" name=\"run\" value=\"{0}\" aria-label=\"compare {0}\">",
                    escape_html(&run.file)
                ),
                run_link(&run.file, &start_time_text(run)),
                escape_html(&found) + &note,
                escape_html(&run.study),
                escape_html(&run.commit_short().unwrap_or_else(|| "-".to_owned())),
                escape_html(summary.and_then(|it| it.cause.as_deref()).unwrap_or("-")),
                escape_html(&summary.and_then(|it| it.p99_ns).map_or_else(|| "-".to_owned(), duration)),
                escape_html(&summary.and_then(|it| it.cpu_us).map_or_else(|| "-".to_owned(), |us| duration(us * 1e3))),
                escape_html(&tags.join(" ")),
            ]
        })
        .collect();
    let headings = ["", "made", "found", "study", "commit", "cause", "p99", "CPU a request", "tags"];
    format!(
        "<form action=\"/compare\" method=\"get\">\n{}<p class=\"actions\"><button>Compare</button> <span class=\"aside\">two to six runs</span></p>\n</form>\n",
        render_table(&headings, &rows)
    )
}

/// Renders the page of all runs, the latest first.
pub fn runs_page(shared: &WebState) -> Result<String, Problem> {
    let all = shared.matching_runs(&RunFilter::default())?;
    let shown: Vec<&HistoryRun> = all.iter().rev().take(RUNS_SHOWN_MAX).collect();
    let mut body = String::from("<h1>Runs</h1>\n");
    if all.len() > shown.len() {
        let _ = writeln!(
            body,
            "<p>The latest {} of {} runs. <code>plimsoll history</code> shows all.</p>",
            shown.len(),
            all.len()
        );
    }
    if all.is_empty() {
        body.push_str("<p>The store contains no run yet.</p>\n");
    } else {
        body.push_str(&compare_form(&shown, None));
    }
    for (file, why) in shared.unreadable_files()? {
        let _ = writeln!(body, "<p class=\"warning\">{} {}</p>", escape_html(&file), escape_html(&why));
    }
    body.push_str(&render_running_studies(shared));
    Ok(page("Runs", "/runs", &body, None))
}

/// Renders the page of one run: its report, links to its files, and forms that change its tags and
/// its pin. `may_act` says whether the browser has the access token; without the token the forms
/// are hidden.
pub fn run_page(shared: &WebState, file: &str, may_act: bool) -> Result<String, Problem> {
    let path = run_file_path(shared, file)?;
    let all = shared.matching_runs(&RunFilter::default())?;
    let listed = all.iter().find(|run| run.file == file);
    let mut body = String::new();
    if let Some(run) = listed {
        let mut facts = vec![("made", start_time_text(run))];
        facts.extend(run.commit_short().map(|commit| {
            let branch = run.revision.as_ref().and_then(|revision| revision.branch.clone());
            ("commit", branch.map_or_else(|| commit.clone(), |branch| format!("{commit} on {branch}")))
        }));
        let tags: Vec<String> = run.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.extend((!tags.is_empty()).then(|| ("tags", tags.join(", "))));
        let facts: String =
            facts.iter().map(|(label, value)| format!("{label}: <strong>{}</strong> ", escape_html(value))).collect();
        let history = format!("<a href=\"/history?service={}\">history</a>", percent_encode(&run.service));
        let again = format!("<a href=\"/start?again={}\">again</a>", percent_encode(file));
        let _ = writeln!(body, "<p class=\"actions\">{facts} {history} {again}</p>");
        if run.state == RunState::UnderWay {
            body.push_str(
                "<p class=\"warning\" role=\"note\">This run is being recorded: \
                 the page shows what is there so far.</p>\n",
            );
        }
    }
    let address = run_url_path(file);
    let _ = writeln!(
        body,
        "<p class=\"actions\">Share: <a href=\"{address}/page.html\" download>HTML file</a> \
         <a href=\"{address}/summary.md\">summary (Markdown)</a> <a href=\"{address}/picture\">picture</a> \
         <a href=\"{address}/document.json\">JSON</a> <a href=\"{address}/file\" download>run file</a></p>"
    );
    if let Some(run) = listed.filter(|_| may_act) {
        body.push_str(&marks_form(run, &RunMarks::read(&path)));
    }
    let report = (shared.renderers.report)(&path)?;
    // The links and forms are inserted between the report's heading, which states the answer, and
    // its figures.
    let html = render_body(&report);
    let body = match html.split_once("</h1>") {
        Some((answer, figures)) => format!("{answer}</h1>\n{body}{figures}"),
        None => format!("{body}{html}"),
    };
    Ok(page(file, "/runs/", &body, None))
}

/// Renders the forms that change the marks (tags and pin) of a run or remove the run.
fn marks_form(run: &HistoryRun, marks: &RunMarks) -> String {
    let address = run_url_path(&run.file);
    let button = |name: &str, value: &str, shown: &str| {
        format!(
            "<form action=\"{address}/marks\" method=\"post\">\
             <button name=\"{name}\" value=\"{}\">{}</button></form> ",
            escape_html(value),
            escape_html(shown)
        )
    };
    // Only tags from the marks file (a file next to the run file, with the tags that users added)
    // can be removed. Tags in the run file itself are permanent, because a run file is never
    // changed.
    let untag = marks.tags.iter().map(|(key, value)| button("untag", key, &format!("Remove {key}={value}")));
    let untag: String = untag.collect();
    let pin = match run.is_pinned {
        true => button("pin", "no", "Unpin"),
        false => button("pin", "yes", "Pin"),
    };
    let delete = match run.is_pinned {
        true => "<span class=\"aside\">Pinned: plimsoll never removes this run.</span>".to_owned(),
        false => format!(
            "<details><summary>Delete</summary><form action=\"{address}/delete\" method=\"post\">\
             <button>Delete this run for good</button></form></details>"
        ),
    };
    format!(
        "<div class=\"actions\">Marks: <form action=\"{address}/marks\" method=\"post\">\
         <label for=\"tag\" class=\"aside\">Tag</label> \
         <input id=\"tag\" name=\"tag\" class=\"short\" placeholder=\"release=1.4\" required> <button>Add</button></form> \
         {untag}{pin}{delete}</div>\n"
    )
}

/// Renders the page that compares several runs with the oldest run, which is called A. If the runs
/// are not comparable, the page states the reasons.
pub fn comparison_page(shared: &WebState, query: &Query) -> Result<String, Problem> {
    let chosen: Vec<&str> = query.all_values("run").take(COMPARED_RUNS_MAX + 1).collect();
    if !(2..=COMPARED_RUNS_MAX).contains(&chosen.len()) {
        return Err(Problem::bad_request(format!("choose two to {COMPARED_RUNS_MAX} runs to be compared")));
    }
    let all = shared.matching_runs(&RunFilter::default())?;
    let find = |file: &&str| {
        let found = all.iter().find(|run| run.file == **file).cloned();
        found.ok_or_else(|| Problem::not_found(format!("the store has no run {file}")))
    };
    let mut runs = chosen.iter().map(find).collect::<Result<Vec<HistoryRun>, Problem>>()?;
    // The oldest run is A, whatever the order in which the user selected the runs.
    runs.sort_by_key(|run| run.started_unix_ms);
    let mut body = String::from("<h1>Comparison</h1>\n");
    if runs.len() > 2 {
        body.push_str(&render_runs_comparison(&runs));
    }
    let first = &runs[0];
    for (letter, run) in ('B'..).zip(&runs[1..]) {
        let _ = writeln!(
            body,
            "<p class=\"actions\">A: {} {letter}: {}</p>",
            run_link(&first.file, &run_name(first)),
            run_link(&run.file, &run_name(run))
        );
        let reasons = incomparability_reasons(first, run);
        let html = match reasons.is_empty() {
            true => {
                let (a, b) = (run_file_path(shared, &first.file)?, run_file_path(shared, &run.file)?);
                // If more than two runs are compared, the comparison of two runs does not call them
                // A and B. The letters A and B would contradict the letters in the list of runs.
                let names = (runs.len() == 2).then_some(["A", "B"]);
                render_body(&(shared.renderers.compare)(&a, &b, names)?)
            }
            false => {
                let mut report = Report::default();
                let why = "these runs are not comparable: a difference could have another cause than the server";
                report.add_sentence(Tone::Warning, why);
                reasons
                    .into_iter()
                    .for_each(|reason| _ = report.add_sentence(Tone::Plain, capitalise_first_letter(&reason)));
                render_body(&report)
            }
        };
        body.push_str(&html.replace("<h1>", "<h2>").replace("</h1>", "</h2>"));
    }
    Ok(page("Comparison", "/compare", &body, None))
}

/// Returns the name of a run: its short commit, if known, and its time.
fn run_name(run: &HistoryRun) -> String {
    format!("{} {}", run.commit_short().unwrap_or_default(), start_time_text(run)).trim().to_owned()
}

/// Renders the comparison of more than two runs: a chart for each lane (series of comparable runs),
/// and a table. The table has the differences from the oldest run.
fn render_runs_comparison(runs: &[HistoryRun]) -> String {
    let mut out = String::new();
    for lane in group_comparable_runs(runs, SeriesOrder::Time).iter().filter(|lane| lane.points.len() > 2) {
        let mut report = lane_page(lane, SeriesOrder::Time);
        report.blocks.retain(|block| matches!(block, ReportBlock::Chart(_)));
        out.push_str(&render_body(&report));
    }
    let first = &runs[0];
    let cell = |ratio: Option<f64>, lower_is_better: bool| match ratio {
        Some(ratio) if (ratio - 1.0).abs() < 0.0005 => "0 %".to_owned(),
        Some(ratio) => {
            let class = if (ratio < 1.0) == lower_is_better { "better" } else { "worse" };
            format!("<span class=\"{class}\">{}</span>", signed_percent(ratio - 1.0))
        }
        None => "-".to_owned(),
    };
    let ratio = |of: &dyn Fn(&HistoryRun) -> Option<f64>, run: &HistoryRun| {
        of(run).zip(of(first)).filter(|(_, before)| *before > 0.0).map(|(after, before)| after / before)
    };
    let rows = ('A'..).zip(runs).map(|(letter, run)| {
        let found = run_rate_text(run);
        let is_first = letter == 'A';
        let may = !is_first && incomparability_reasons(first, run).is_empty();
        let p99 = |run: &HistoryRun| run.summary.as_ref().and_then(|it| it.p99_ns);
        let cpu = |run: &HistoryRun| run.summary.as_ref().and_then(|it| it.cpu_us);
        vec![
            letter.to_string(),
            run_link(&run.file, &run_name(run)),
            escape_html(&found),
            if may { cell(ratio(&HistoryRun::series_value_rps, run), false) } else { String::new() },
            escape_html(match (is_first, may) {
                (true, _) => "",
                (false, true) => interval_overlap_text(first, run),
                (false, false) => "not comparable with run A",
            }),
            escape_html(&p99(run).map_or_else(|| "-".to_owned(), duration)),
            if may { cell(ratio(&p99, run), true) } else { String::new() },
            escape_html(&cpu(run).map_or_else(|| "-".to_owned(), |us| duration(us * 1e3))),
            if may { cell(ratio(&cpu, run), true) } else { String::new() },
        ]
    });
    let headings = ["", "run", "line or goodput", "change", "intervals", "p99", "change", "CPU a request", "change"];
    out + &render_table(&headings, &rows.collect::<Vec<_>>())
        + "<p class=\"aside\">These are separate runs: <code>plimsoll prove</code> decides whether a difference is real.</p>\n"
}

/// Returns in words how the load-line interval of run B compares with the interval of run A: lower,
/// higher, or overlapping.
fn interval_overlap_text(a: &HistoryRun, b: &HistoryRun) -> &'static str {
    let (Some(a), Some(b)) = (a.valid_load_line(), b.valid_load_line()) else { return "no intervals" };
    if b.upper.is_some_and(|upper| upper < a.lower) {
        "lower than A"
    } else if a.upper.is_some_and(|upper| upper < b.lower) {
        "higher than A"
    } else {
        "overlap"
    }
}

/// Returns the study that a submitted form requests. If the form has the field `again`, the study
/// repeats the run file that the field names. In a form without the field `again`, the other fields
/// describe the study.
pub fn parse_study_form(shared: &WebState, query: &Query) -> Result<StudyForm, Problem> {
    match query.get("again") {
        Some(file) => recorded_form(shared, file),
        None => StudyForm::parse(query, shared.allows_commands),
    }
}

fn recorded_form(shared: &WebState, file: &str) -> Result<StudyForm, Problem> {
    repeat_recorded_command(file, &(shared.renderers.command)(&run_file_path(shared, file)?)?, shared.allows_commands)
}

/// Renders a command line with a button that copies it.
fn render_command_line(line: &str) -> String {
    format!(
        "<pre><code id=\"line\">{}</code></pre>\n\
         <p><button type=\"button\" data-copy=\"line\" hidden>Copy</button></p>\n",
        escape_html(line)
    )
}

/// Renders the form that repeats the study of a run, with the command line of the study. If a page
/// may not repeat this study, renders the reason instead.
fn repeat_study_form(shared: &WebState, run: &HistoryRun) -> String {
    match recorded_form(shared, &run.file) {
        Ok(form) => format!(
            "<h2>Again, as recorded</h2>\n{}<form action=\"/start\" method=\"post\">\n\
             <input type=\"hidden\" name=\"again\" value=\"{}\">\n\
             <p class=\"actions\"><button class=\"first\">Run again</button> \
             <span class=\"aside\">The same seed: the same requests in the same order.</span></p>\n</form>\n\
             <h2>Or with changes</h2>\n",
            render_command_line(&form.command_line()),
            escape_html(&run.file)
        ),
        Err(problem) => {
            format!(
                "<p class=\"warning\" role=\"note\">{}.</p>\n",
                escape_html(&capitalise_first_letter(&problem.text))
            )
        }
    }
}

/// Renders the page with the form that starts a study. `may_act` says whether the browser has the
/// access token.
pub fn start_page(shared: &WebState, query: &Query, may_act: bool) -> Result<String, Problem> {
    let again = query.get("again").map(|file| {
        let all = shared.matching_runs(&RunFilter::default())?;
        let found = all.into_iter().find(|run| run.file == file);
        found.ok_or_else(|| Problem::not_found(format!("the store has no run {file}")))
    });
    let again = again.transpose()?;
    let mut body = String::from("<h1>Start a study</h1>\n");
    if !may_act {
        body.push_str(
            "<p class=\"warning\" role=\"note\">Starting needs the token: \
             open the link that plimsoll serve printed.</p>\n",
        );
    }
    if let Some(run) = &again {
        body.push_str(&repeat_study_form(shared, run));
    }
    let study = query.get("study").or(again.as_ref().map(|run| run.study.as_str())).unwrap_or("find");
    // When a study is repeated, the form is filled in with the settings of the recorded run.
    let recorded = again.as_ref().and_then(|run| recorded_form(shared, &run.file).ok());
    let recorded = recorded.map(|form| form.words).unwrap_or_default();
    // The run's service may be a name instead of a URL, so the URL is taken from the recorded
    // command.
    let target = recorded.iter().skip(1).find(|word| !word.starts_with('-')).map(String::as_str);
    let url = query.get("url").or(target).unwrap_or_default();
    body.push_str(
        "<form class=\"fields\" action=\"/start\" method=\"post\">\n\
         <label for=\"study\">Study</label><select id=\"study\" name=\"study\">\n",
    );
    for (word, means) in STARTABLE_STUDIES {
        let selected = if word == study { " selected" } else { "" };
        let _ = writeln!(body, "<option value=\"{word}\"{selected}>{word}: {means}</option>");
    }
    let _ = writeln!(
        body,
        "</select>\n<label for=\"url\">Address</label>\
         <input id=\"url\" name=\"url\" placeholder=\"http://localhost:8080/\" \
         value=\"{}\">\n<label for=\"url2\" data-of=\"prove\">Address of B</label>\
         <input id=\"url2\" name=\"url2\" data-of=\"prove\" placeholder=\"http://localhost:8081/\">",
        escape_html(url)
    );
    let commands = COMMAND_FIELDS.iter().filter(|_| shared.allows_commands);
    for field in COMMON_FIELDS.iter().chain(commands) {
        let own = again.as_ref().filter(|_| field.name == "slo").and_then(|run| run.slo.clone());
        let made_with = recorded.iter().find_map(|word| word.strip_prefix(field.flag)?.strip_prefix('='));
        let value = query.get(field.name).or(made_with).map(str::to_owned).or(own).unwrap_or_default();
        let _ = writeln!(
            body,
            "<label for=\"{0}\" data-of=\"{1}\">{2}</label>\
             <input id=\"{0}\" name=\"{0}\" data-of=\"{1}\" placeholder=\"{3}\" value=\"{4}\">",
            field.name,
            field.studies,
            field.label,
            escape_html(field.example),
            escape_html(&value)
        );
    }
    body.push_str(&render_curl_and_traffic_fields(query));
    body.push_str(
        "<p class=\"whole actions\"><button class=\"first\">Start</button> \
         <button name=\"show\" value=\"line\">Show the command line</button></p>\n\
         <p class=\"whole aside\">Only the address is required. Grey text shows a default or an example.</p>\n</form>\n",
    );
    if ["url", "curl", "traffic"].iter().any(|name| query.get(name).is_some()) {
        match StudyForm::parse(query, shared.allows_commands) {
            Ok(form) => {
                body.push_str("<h2>The command line for the same study</h2>\n");
                body.push_str(&render_command_line(&form.command_line()));
                if let Some(traffic) = &form.traffic {
                    let _ = writeln!(
                        body,
                        "<p class=\"aside\">Save the requests above as <code>traffic.{}</code>.</p>",
                        traffic.suffix
                    );
                }
            }
            Err(problem) => {
                let why = escape_html(&capitalise_first_letter(&problem.text));
                let _ = writeln!(body, "<p class=\"warning\" role=\"alert\">{why}.</p>");
            }
        }
    }
    body.push_str(match shared.allows_commands {
        true => {
            "<p class=\"aside\">Load goes to this machine and private networks only. \
             This server runs commands and reads files that a form names.</p>\n"
        }
        false => {
            "<p class=\"aside\">Load goes to this machine and private networks only. Commands, \
             files and public targets are for the command line.</p>\n"
        }
    });
    body.push_str(&render_running_studies(shared));
    Ok(page("Start", "/start", &body, None))
}

/// Renders the form fields that a user can fill in instead of a URL: a curl command, or a traffic
/// file.
fn render_curl_and_traffic_fields(query: &Query) -> String {
    let area = |name: &str, label: &str, of: &str, rows: usize, example: &str| {
        let value = query.get(name).unwrap_or_default();
        format!(
            "<label for=\"{name}\" data-of=\"{of}\">{label}</label>\
             <textarea id=\"{name}\" name=\"{name}\" data-of=\"{of}\" rows=\"{rows}\" spellcheck=\"false\" \
             placeholder=\"{}\">\n{}</textarea>\n",
            escape_html(example),
            escape_lines(value)
        )
    };
    let is_open = ["curl", "traffic"].iter().any(|name| query.get(name).is_some());
    format!(
        "<details class=\"whole\"{}><summary>Requests from a curl line or a file, in place of an address</summary>\n\
         <div class=\"fields\">\n{}{}</div></details>\n",
        if is_open { " open" } else { "" },
        area(
            "curl",
            "curl line",
            "find explain run overload",
            3,
            "curl http://localhost:8080/items -H 'Accept: application/json'"
        ),
        area(
            "traffic",
            "File of traffic",
            "find explain run overload prove",
            8,
            "base = \"http://localhost:8080\"\n[[request]]\nget = \"/items\""
        )
    )
}

/// Renders the page of a study that was started from the web pages. The page shows the progress
/// and, after the study has ended, the messages that the study printed.
pub fn study_page(shared: &WebState, name: &str, may_act: bool) -> Result<String, Problem> {
    let job = shared.studies.get(name).ok_or_else(|| Problem::not_found(format!("no study is called {name}")))?;
    let is_running = job.is_running();
    let mut body = format!("<h1>{}</h1>\n", if is_running { "A study is running" } else { "The study has ended" });
    body.push_str(&render_command_line(&job.command));
    if is_running && may_act {
        let _ = writeln!(
            body,
            "<form action=\"/studies/{}/stop\" method=\"post\"><p class=\"actions\"><button>Stop</button> \
             <span class=\"aside\">The run file keeps all measurements so far.</span></p></form>",
            percent_encode(&job.name)
        );
    }
    if is_running {
        let _ = writeln!(
            body,
            "<div data-follow=\"/studies/{}/progress\" aria-live=\"polite\">",
            percent_encode(&job.name)
        );
    }
    body.push_str(&render_study_progress(shared, &job));
    if is_running {
        body.push_str("</div>\n");
    }
    Ok(page(&job.command, "/studies/", &body, is_running.then_some(2)))
}

/// Renders the progress of a study as an HTML fragment, which its page reloads while the study
/// runs.
pub fn render_study_progress(shared: &WebState, job: &StartedStudy) -> String {
    let progress = shared.studies.read_progress(job);
    let mut body = String::new();
    if let Some(file) = shared.studies.run_file(job) {
        let _ = writeln!(
            body,
            "<p class=\"answer\">{}</p>",
            run_link(&file, if job.is_running() { "The recording so far" } else { "The finding" })
        );
    }
    body.push_str(&render_running_load(&progress));
    body.push_str(&render_ended_loads(&progress));
    let said = shared.studies.last_messages(job);
    if !job.is_running() && !said.trim().is_empty() {
        let _ = writeln!(body, "<h2>Output of the study</h2>\n<pre>{}</pre>", escape_lines(&said));
    }
    body
}

/// Escapes each line of a text separately, so that the line breaks remain.
fn escape_lines(text: &str) -> String {
    text.lines().map(escape_html).collect::<Vec<_>>().join("\n")
}

/// Renders the running load of a study with the figures of its latest measured interval (tick). The
/// result is empty between two loads.
fn render_running_load(progress: &StudyProgress) -> String {
    let Some(load) = &progress.load else { return String::new() };
    let mut out = format!("<h2>Now</h2>\n<p>{}</p>\n", escape_html(load["text"].as_str().unwrap_or("a load")));
    let Some(tick) = &progress.tick else { return out };
    let length_s = load["duration_s"].as_f64().unwrap_or(0.0) + load["warmup_s"].as_f64().unwrap_or(0.0);
    if length_s > 0.0 {
        let done = (tick["end_s"].as_f64().unwrap_or(0.0) / length_s * 100.0).clamp(0.0, 100.0);
        let _ = writeln!(
            out,
            "<div class=\"meter\" role=\"progressbar\" aria-label=\"this load\" \
             aria-valuenow=\"{done:.0}\" aria-valuemin=\"0\" \
             aria-valuemax=\"100\"><span style=\"width:{done:.0}%\"></span></div>"
        );
    }
    let seconds = (tick["end_s"].as_f64().unwrap_or(0.0) - tick["start_s"].as_f64().unwrap_or(0.0)).max(1e-3);
    let number = |name: &str| tick[name].as_f64();
    let time = |name: &str| tick["response_time_ns"][name].as_f64().map_or_else(|| "-".to_owned(), duration);
    let rate_of =
        |name: &str| number(name).map_or_else(|| "-".to_owned(), |count| format!("{}/s", rate(count / seconds)));
    let cells = [
        ("succeeded", rate_of("succeeded")),
        ("failed", rate_of("failed")),
        ("in flight", number("in_flight").map_or_else(|| "-".to_owned(), |count| format!("{count}"))),
        ("p50", time("p50")),
        ("slowest response", time("max")),
        (
            "cores used by the server",
            number("server_cores").map_or_else(|| "-".to_owned(), |cores| format!("{cores:.2}")),
        ),
    ];
    let headings: Vec<&str> = cells.iter().map(|(name, _)| *name).collect();
    out.push_str(&render_table(&headings, &[cells.iter().map(|(_, value)| escape_html(value)).collect()]));
    out
}

/// Renders a table of the loads that have ended, the latest first. The current bounds of the load
/// line are shown above the table.
fn render_ended_loads(progress: &StudyProgress) -> String {
    if progress.loads.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let line = progress.loads.iter().rev().find_map(|load| load["load_line_rps"].as_object());
    if let Some(line) = line {
        let end = |name: &str| line.get(name).and_then(serde_json::Value::as_f64);
        if let Some(lower) = end("lower") {
            let lower = rate(lower);
            let answer = match end("upper").map(rate) {
                Some(upper) => format!("The load line lies between {lower}/s and {upper}/s."),
                None => format!("The load line is at least {lower}/s; its upper end is not known yet."),
            };
            let _ = writeln!(out, "<p class=\"answer\">{answer}</p>", answer = escape_html(&answer));
        }
    }
    let rows: Vec<Vec<String>> = progress
        .loads
        .iter()
        .rev()
        .take(LOADS_SHOWN_MAX)
        .map(|load| {
            let trial = &load["trial"];
            let verdict = trial["verdict"].as_str().unwrap_or("-");
            let class = match verdict {
                "fail" => "worse",
                "pass" => "better",
                _ => "aside",
            };
            vec![
                escape_html(load["purpose"].as_str().unwrap_or_default()),
                trial["offered_rps"].as_f64().map_or_else(|| "-".to_owned(), |rps| format!("{}/s", rate(rps))),
                load["throughput_rps"].as_f64().map_or_else(|| "-".to_owned(), |rps| format!("{}/s", rate(rps))),
                load["success_rate"].as_f64().map_or_else(|| "-".to_owned(), share),
                load["response_time_ns"]["p99"].as_f64().map_or_else(|| "-".to_owned(), duration),
                format!("<span class=\"{class}\">{}</span>", escape_html(verdict)),
            ]
        })
        .collect();
    let _ = match progress.loads.len() {
        1 => writeln!(out, "<h2>1 load has ended</h2>"),
        loads => writeln!(out, "<h2>{loads} loads have ended</h2>"),
    };
    out + &render_table(&["for", "offered", "goodput", "success", "p99", "verdict"], &rows)
}
