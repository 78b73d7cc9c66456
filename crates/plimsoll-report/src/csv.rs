//! Formats the intervals of recorded loads as CSV (RFC 4180), one row for each interval. If any
//! load has several routes, the row of an interval is followed by a row for each of its routes. The
//! columns are derived from the table of measures (`plimsoll_model::measures`).

use crate::visible_controls::escape_to_one_line;
use plimsoll_model::measures::{CsvColumn, Figure, FigureKind, FigureRef, FigureUnit};
use plimsoll_model::{
    Experiment, LoadFigures, LoadPurpose, LoadTag, RequestFailure, RouteFigures, SparseHistogram, Trial,
};
use std::borrow::Cow;

/// Returns the column headings of a figure; empty if the figure has no column in the CSV.
fn column_headings(figure: &Figure) -> Vec<String> {
    let Some((name, columns)) = figure.csv else { return Vec::new() };
    let heading = |column: &CsvColumn| match (figure.kind, column) {
        (FigureKind::Ledger, _) => {
            let failed = RequestFailure::ALL.iter().map(|kind| format!("failed_{}", kind.name()));
            ["scheduled", "succeeded"].map(String::from).into_iter().chain(failed).chain(["unsent".into()]).collect()
        }
        (_, CsvColumn::Value) => vec![name.to_owned()],
        (_, CsvColumn::Quantile(per_mille)) => vec![format!("{name}_p{}_ns", f64::from(*per_mille) / 10.0)],
        (_, CsvColumn::Max) => vec![format!("{name}_max_ns")],
    };
    columns.iter().flat_map(heading).collect()
}

/// Returns the CSV cells of a figure: one value for each column that the figure has in the CSV.
fn column_values(figure: &Figure, figure_value: FigureRef<SparseHistogram>) -> Vec<u64> {
    let Some((_, columns)) = figure.csv else { return Vec::new() };
    match figure_value {
        FigureRef::Count(count) => vec![count],
        FigureRef::Ledger(ledger) => {
            [ledger.scheduled, ledger.succeeded].into_iter().chain(ledger.failed).chain([ledger.unsent]).collect()
        }
        FigureRef::Times(times) => {
            let dense = times.to_histogram();
            let value = |column: &CsvColumn| match column {
                CsvColumn::Quantile(per_mille) => dense.quantile_ns(f64::from(*per_mille) / 1_000.0),
                CsvColumn::Max => dense.max_ns(),
                CsvColumn::Value => dense.count(),
            };
            columns.iter().map(value).collect()
        }
        FigureRef::Tally(tally) => vec![tally.total()],
        FigureRef::Workers(workers) => vec![workers.len() as u64],
    }
}

fn column_texts<'a>(figures: impl Iterator<Item = (&'static Figure, FigureRef<'a, SparseHistogram>)>) -> Vec<String> {
    figures.flat_map(|(figure, held)| column_values(figure, held)).map(|value| value.to_string()).collect()
}

/// Returns whether a figure is about sessions. The CSV has columns for figures about sessions only
/// if a load has sessions.
fn is_session_figure(figure: &Figure) -> bool {
    figure.unit == FigureUnit::Sessions || figure.name == "session_time"
}

/// Formats all intervals of an experiment as CSV. All times are in ns, except `start_s`: the start
/// of the interval in the schedule of its load, in s.
pub fn intervals_csv(experiment: &Experiment) -> String {
    trials_csv(&experiment.trials)
}

fn trials_csv(trials: &[Trial]) -> String {
    let by_route = trials.iter().any(|trial| trial.run.plan.traffic.routes.len() > 1);
    let mut rows = vec![["trial", "purpose", "start_s"].map(String::from).to_vec()];
    rows[0].extend(by_route.then(|| "route".to_owned()));
    rows[0].extend(RouteFigures::FIGURES.iter().flat_map(column_headings));
    // Without scenarios there are no sessions, so the CSV has no columns for sessions.
    let sessions = trials.iter().any(|trial| !trial.run.plan.traffic.scenarios.is_empty());
    let is_shown = |figure: &Figure| sessions || !is_session_figure(figure);
    let of_load: Vec<String> =
        LoadFigures::FIGURES.iter().filter(|figure| is_shown(figure)).flat_map(column_headings).collect();
    rows[0].extend(of_load.iter().cloned());
    for (number, trial) in trials.iter().enumerate() {
        for (index, interval) in &trial.run.intervals {
            let start_ns = u64::from(*index).saturating_mul(trial.run.plan.load.interval_ns);
            let start_s = format!("{:.1}", start_ns as f64 / 1e9);
            let begin = [number.to_string(), csv_load_name(trial.tag).to_string(), start_s];
            let all = by_route.then(String::new);
            let whole = begin.iter().cloned().chain(all).chain(column_texts(interval.all_routes().figure_values()));
            let load = interval.load.figure_values().filter(|(figure, _)| is_shown(figure));
            rows.push(whole.chain(column_texts(load)).collect());
            for (route, figures) in interval.routes.iter().filter(|_| by_route) {
                // In the row of a route, the cells for figures of the whole load are empty.
                let nothing = of_load.iter().map(|_| String::new());
                let name = trial.run.plan.traffic.routes.get(usize::from(route)).map(|route| csv_cell(&route.label));
                let name = name.unwrap_or_else(|| route.to_string());
                let row =
                    begin.iter().cloned().chain([name]).chain(column_texts(figures.figure_values())).chain(nothing);
                rows.push(row.collect());
            }
        }
    }
    rows.iter().map(|row| row.join(",") + "\r\n").collect()
}

/// Formats text as a CSV cell. Text with separators is quoted. Text that a spreadsheet would
/// evaluate as a formula gets an apostrophe at its beginning (OWASP, CSV injection).
pub fn csv_cell(text: &str) -> String {
    let text = escape_to_one_line(text);
    let is_formula =
        text.trim_start().starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    let text = if is_formula { format!("'{text}") } else { text.into_owned() };
    match text.contains([',', '"', ';', '\'']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// Returns the name for the purpose of a load. Every output format uses the same name.
pub fn load_purpose_name(purpose: LoadPurpose) -> &'static str {
    match purpose {
        LoadPurpose::Run => "run",
        LoadPurpose::Level => "level",
        LoadPurpose::Peak => "peak",
        LoadPurpose::Saturate => "saturate",
        LoadPurpose::Climb => "climb",
        LoadPurpose::Line => "line",
        LoadPurpose::Confirm => "confirm",
        LoadPurpose::Settle => "settle",
        LoadPurpose::Profile => "profile",
        LoadPurpose::Block => "block",
        LoadPurpose::SteadyLoad => "hold",
        LoadPurpose::Soak => "soak",
        LoadPurpose::Overload => "overload",
    }
}

/// Returns the name of a load in the CSV. In a comparison, a load in a block (round of
/// measurements) is named by the letter of its arm (server). All other loads are named by their
/// purpose.
fn csv_load_name(tag: LoadTag) -> Cow<'static, str> {
    match (tag.purpose, tag.arm) {
        (LoadPurpose::Block, Some(arm)) => arm.letter().to_ascii_lowercase().to_string().into(),
        (purpose, _) => load_purpose_name(purpose).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::ScenarioRecord;
    use plimsoll_model::{Interval, LoadCurve, LoadShape, Plan, Run};

    /// Returns the CSV lines of a load whose routes have these names.
    fn csv_lines(names: &[&str], intervals: Vec<Interval>) -> Vec<String> {
        let text = trials_csv(&[trial_with_routes(names, intervals)]);
        text.lines().map(str::to_owned).collect()
    }

    fn trial_with_routes(names: &[&str], intervals: Vec<Interval>) -> Trial {
        let mut run =
            Run::new(Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) }));
        let first = run.plan.traffic.routes[0].clone();
        run.plan.traffic.routes = names.iter().map(|_| first.clone()).collect();
        run.plan.traffic.routes.iter_mut().zip(names).for_each(|(route, name)| route.label = (*name).to_owned());
        run.intervals = (0..).zip(intervals).collect();
        Trial { tag: LoadTag::for_purpose(LoadPurpose::Run), start_ns: 0, run }
    }

    fn split_cells(line: &str) -> Vec<String> {
        line.split(',').map(String::from).collect()
    }

    fn interval_with_successes(routes: &[(u16, u64)]) -> Interval {
        let mut interval = Interval::default();
        interval.load.bytes_in = 77;
        for (route, succeeded) in routes {
            interval.routes.figures_mut(*route).ledger.succeeded = *succeeded;
        }
        interval
    }

    #[test]
    fn a_single_route_has_no_row_of_its_own() {
        let rows = csv_lines(&["GET /"], vec![interval_with_successes(&[(0, 3)]), interval_with_successes(&[])]);
        let rows: Vec<Vec<String>> = rows.iter().map(|line| split_cells(line)).collect();
        let headings = "trial,purpose,start_s,scheduled,succeeded,failed_status,failed_connect,failed_reset,\
                        failed_closed_early,failed_protocol,failed_timeout,failed_tls,failed_stream_reset,\
                        failed_goaway,failed_expectation,failed_capture,unsent,in_flight,response_p50_ns,response_p99_ns,response_max_ns,service_p50_ns,service_p99_ns,lag_p99_ns,bytes_in,bytes_out,\
                        connections_open";
        assert_eq!(rows[0].join(","), headings);
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
        assert_eq!((rows[1][4].as_str(), rows[2][4].as_str(), rows[2][2].as_str()), ("3", "0", "0.1"));
    }

    #[test]
    fn loads_with_sessions_have_session_columns() {
        let mut interval = interval_with_successes(&[(0, 3)]);
        (interval.load.sessions_started, interval.load.sessions_completed) = (7, 5);
        let mut trial = trial_with_routes(&["GET /"], vec![interval]);
        let (name, digest) = ("buyer".to_owned(), String::new());
        trial.run.plan.traffic.scenarios =
            vec![ScenarioRecord { name, weight: 1, own_connection: false, cookies: true, requests_max: 3, digest }];
        let text = trials_csv(&[trial]);
        let rows: Vec<Vec<String>> = text.lines().map(split_cells).collect();
        let value = |name: &str| rows[1][rows[0].iter().position(|heading| heading == name).expect(name)].as_str();
        let values = ["sessions_started", "sessions_completed", "sessions_cut", "session_time_p99_ns"].map(value);
        assert_eq!(values, ["7", "5", "0", "0"]);
    }

    #[test]
    fn several_routes_have_one_row_each_below_the_total() {
        let names = ["list", "never", "order"];
        let rows =
            csv_lines(&names, vec![interval_with_successes(&[(0, 3), (2, 4)]), interval_with_successes(&[(2, 1)])]);
        let rows: Vec<Vec<String>> = rows.iter().map(|line| split_cells(line)).collect();
        let column = |name: &str| rows[0].iter().position(|heading| heading == name).expect("a column");
        let (route, succeeded, bytes_in) = (column("route"), column("succeeded"), column("bytes_in"));
        let told = |row: &Vec<String>| (row[route].clone(), row[succeeded].clone(), row[bytes_in].clone());
        let expect = [("", "7", "77"), ("list", "3", ""), ("order", "4", ""), ("", "1", "77"), ("order", "1", "")];
        let expect = expect.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
        assert_eq!(rows[1..].iter().map(told).collect::<Vec<_>>(), expect);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    }

    #[test]
    fn csv_cells_are_never_formulas() {
        for (text, expect) in [
            ("GET /a", "GET /a"),
            ("=cmd|x!A0", "\"'=cmd|x!A0\""),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
            (" +1", "\"' +1\""),
            ("-2+3", "\"'-2+3\""),
            ("\t=1", "\\t=1"),
            ("a;=1", "\"a;=1\""),
            ("a\u{1b}[2J", "a\\x1b[2J"),
            ("\u{ff1d}1", "\"'\u{ff1d}1\""),
        ] {
            assert_eq!(csv_cell(text), expect, "{text:?}");
        }
    }

    #[test]
    fn route_names_do_not_break_a_csv_row() {
        let rows = csv_lines(&["a, \"b\"", "c\nd"], vec![interval_with_successes(&[(0, 3), (1, 4)])]);
        assert!(
            rows[2].starts_with("0,run,0.0,\"a, \"\"b\"\"\",0,3,") && rows[3].starts_with("0,run,0.0,c\\nd,0,4,"),
            "{rows:?}"
        );
        assert_eq!(rows.len(), 4);
    }
}
