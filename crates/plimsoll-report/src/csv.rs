//! The intervals of runs as CSV (RFC 4180), one row an interval.

use plimsoll_model::{Experiment, Failure, Interval, Purpose, SparseHistogram, Tag, Trial};
use std::borrow::Cow;

/// One interval as a row sees it: its trial's number, its own number, and its content.
struct Row<'a> {
    number: usize,
    trial: &'a Trial,
    index: u32,
    interval: &'a Interval,
}

/// A column: its heading, with the unit last, and how its value is read.
type Column = (Cow<'static, str>, Box<dyn Fn(&Row) -> String>);

/// The columns, in order. Headings and values both come from this list.
fn columns() -> Vec<Column> {
    fn column(name: &'static str, value: impl Fn(&Row) -> String + 'static) -> Column {
        (name.into(), Box::new(value))
    }
    fn counted(name: &'static str, value: fn(&Interval) -> u64) -> Column {
        column(name, move |row| value(row.interval).to_string())
    }
    fn quantile(name: &'static str, of: fn(&Interval) -> &SparseHistogram, quantile: f64) -> Column {
        column(name, move |row| of(row.interval).to_dense().quantile_ns(quantile).to_string())
    }
    let failed = Failure::ALL.map(|kind| -> Column {
        let value = move |row: &Row| row.interval.ledger.failed[kind as usize].to_string();
        (format!("failed_{}", kind.name()).into(), Box::new(value))
    });
    let start_s = |row: &Row| {
        let start_ns = u64::from(row.index).saturating_mul(row.trial.run.plan.load.interval_ns);
        format!("{:.1}", start_ns as f64 / 1e9)
    };
    let mut columns = vec![
        column("trial", |row| row.number.to_string()),
        column("purpose", |row| tag_name(row.trial.tag).to_string()),
        column("start_s", start_s),
        counted("scheduled", |i| i.ledger.scheduled),
        counted("succeeded", |i| i.ledger.succeeded),
    ];
    columns.extend(failed);
    columns.extend([
        counted("unsent", |i| i.ledger.unsent),
        counted("in_flight", |i| i.in_flight_end),
        quantile("response_p50_ns", |i| &i.response, 0.5),
        quantile("response_p99_ns", |i| &i.response, 0.99),
        counted("response_max_ns", |i| i.response.max_ns()),
        quantile("service_p50_ns", |i| &i.service, 0.5),
        quantile("service_p99_ns", |i| &i.service, 0.99),
        quantile("lag_p99_ns", |i| &i.lag, 0.99),
        counted("bytes_in", |i| i.bytes_in),
        counted("bytes_out", |i| i.bytes_out),
        counted("connections_open", |i| i.connections_open),
    ]);
    columns
}

/// All intervals of an experiment. Times in ns; `start_s` is schedule time within the trial.
pub fn intervals(experiment: &Experiment) -> String {
    let columns = columns();
    let headings: Vec<&str> = columns.iter().map(|(name, _)| name.as_ref()).collect();
    let mut out = headings.join(",") + "\r\n";
    for (number, trial) in experiment.trials.iter().enumerate() {
        for (index, interval) in &trial.run.intervals {
            let row = Row { number, trial, index: *index, interval };
            let fields: Vec<String> = columns.iter().map(|(_, value)| value(&row)).collect();
            out.push_str(&fields.join(","));
            out.push_str("\r\n");
        }
    }
    out
}

/// The name of a purpose in every output.
pub fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Run => "run",
        Purpose::Level => "level",
        Purpose::Peak => "peak",
        Purpose::Climb => "climb",
        Purpose::Line => "line",
        Purpose::Confirm => "confirm",
        Purpose::Settle => "settle",
        Purpose::Profile => "profile",
        Purpose::Block => "block",
    }
}

/// The name of a load in every output: what it is for; in a block, the letter of its arm.
fn tag_name(tag: Tag) -> Cow<'static, str> {
    match (tag.purpose, tag.arm) {
        (Purpose::Block, Some(arm)) => arm.letter().to_ascii_lowercase().to_string().into(),
        (purpose, _) => purpose_name(purpose).into(),
    }
}
