//! The table of measures: every figure of a run, declared once, with its kind, its unit, and where
//! it is shown. From it come what intervals hold and recorders count, how it merges, its bytes in a
//! run file ([`crate::codec`]), its bounds, and its names in CSV and JSON. A new figure is a line
//! here, and its recording.
//!
//! [`LoadFigures`] are counted for a load as a whole, [`RouteFigures`] for each of its routes. Both
//! take the form in which times are held as a parameter: [`CountingHistogram`] while they are
//! counted, [`SparseHistogram`] at rest, [`Histogram`] as sums.
//!
//! Not here: what is made of several figures (rates, shares), and what they mean.
//!
//! [`CountingHistogram`]: crate::Recording

use crate::histogram::{Histogram, SparseHistogram};
use crate::ledger::Ledger;
use crate::tally::Tally;

/// What a figure is made of, and so how it adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What has happened so often: adds up over time, over workers and over machines.
    Counter,
    /// A state at the end of an interval: adds up over workers and machines; over time the later
    /// one holds, and of a whole run the largest.
    Gauge,
    /// A histogram of times.
    Times,
    /// Counts by key.
    Tally(Key),
    /// Where requests ended.
    Ledger,
    /// The time of each worker.
    Workers,
}

/// What the keys of a tally are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The status of an answer.
    Status,
    /// The system's error number.
    SystemError,
    /// The number of an address in the plan.
    Address,
    /// The number of a reason ([`crate::TlsFailure`]).
    TlsFailure,
    /// A code of HTTP/2 ([`crate::H2Error`]).
    H2Error,
    /// A code of gRPC ([`crate::GrpcStatus`]).
    GrpcStatus,
    /// The number of what is wrong with an answer's messages ([`crate::CallFault`]).
    CallFault,
    /// The number of a worker.
    Worker,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Requests,
    Sessions,
    Connections,
    Handshakes,
    Bytes,
    /// Of gRPC calls.
    Messages,
    Ns,
    /// Requests x ns: the integral of a number of requests over time.
    RequestNs,
}

/// A column of the CSV of intervals that is made of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The figure itself; of a ledger, each of its parts.
    Value,
    /// The quantile in per mille.
    Quantile(u16),
    /// The largest value.
    Max,
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its tag in a run file: never used for another figure of the same table.
    pub tag: u32,
    /// Its name in this program.
    pub name: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// What it counts or measures.
    pub unit: Unit,
    /// Its field in the JSON of a load, if it has one of its own.
    pub json: Option<&'static str>,
    /// Its name in the CSV of intervals, and the columns made of it.
    pub csv: Option<(&'static str, &'static [Column])>,
}

/// A figure of either table that holds times and that users see in the JSON of a load: what an SLO
/// or a condition may bound.
#[derive(Debug, Clone, Copy)]
pub struct TimeMeasure {
    figure: &'static Figure,
    of_routes: bool,
}

impl TimeMeasure {
    /// The measure of this name (`response`, `ttfb`, `connect`, ...).
    pub fn parse(name: &str) -> Option<TimeMeasure> {
        TimeMeasure::all().find(|measure| measure.name() == name)
    }

    /// Every measure, in the order of the tables.
    pub fn all() -> impl Iterator<Item = TimeMeasure> {
        let shown = |figure: &&Figure| figure.kind == Kind::Times && figure.json.is_some();
        let routes = RouteFigures::<SparseHistogram>::FIGURES.iter().filter(shown);
        let load = LoadFigures::<SparseHistogram>::FIGURES.iter().filter(shown);
        let measure = |of_routes| move |figure| TimeMeasure { figure, of_routes };
        routes.map(measure(true)).chain(load.map(measure(false)))
    }

    /// Response time: from the intended start to the last byte.
    pub fn response() -> TimeMeasure {
        TimeMeasure::parse("response").expect("a line of the table")
    }

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        self.figure.name
    }

    /// Whether requests have it, and so each route; connections have it otherwise.
    pub fn is_of_routes(self) -> bool {
        self.of_routes
    }

    /// Its times, which are among the figures of a route or among those of its load.
    pub fn times<'a, H>(self, route: &'a RouteFigures<H>, load: &'a LoadFigures<H>) -> &'a H {
        let mut held = route.figure_values().chain(load.figure_values());
        match held.find(|(figure, _)| figure.name == self.figure.name) {
            Some((_, FigureRef::Times(times))) => times,
            _ => unreachable!("a line of a table that holds times"),
        }
    }
}

impl PartialEq for TimeMeasure {
    fn eq(&self, other: &TimeMeasure) -> bool {
        self.figure.name == other.figure.name
    }
}

impl Eq for TimeMeasure {}

/// The value of one figure.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum FigureRef<'a, H> {
    Count(u64),
    Times(&'a H),
    Tally(&'a Tally),
    Ledger(&'a Ledger),
    Workers(&'a [WorkerTime]),
}

/// The place of one figure's value.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum FigureMut<'a, H> {
    Count(&'a mut u64),
    Times(&'a mut H),
    Tally(&'a mut Tally),
    Ledger(&'a mut Ledger),
    Workers(&'a mut Vec<WorkerTime>),
}

/// How one worker spent its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerTime {
    /// Which worker (unique over all machines of a run).
    pub worker: u32,
    /// Time in turns that did work, in ns; waiting and spinning are not work.
    pub work_ns: u64,
    /// CPU time of its thread, in ns (spinning included).
    pub cpu_ns: u64,
    /// Wall-clock time covered, in ns.
    pub wall_ns: u64,
}

impl WorkerTime {
    /// Share of the time spent working, 0..=1.
    pub fn work_share(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { self.work_ns as f64 / self.wall_ns as f64 }
    }
}

/// The kinds, each with the type that holds it, how it is looked at, changed, and taken out of what
/// is being counted.
#[rustfmt::skip]
macro_rules! of_kind {
    (type Counter $h:ident) => { u64 };
    (type Gauge $h:ident) => { u64 };
    (type Times $h:ident) => { $h };
    (type Tally $h:ident) => { Tally };
    (type Ledger $h:ident) => { Ledger };
    (type Workers $h:ident) => { Vec<WorkerTime> };
    (held Counter $value:expr) => { FigureRef::Count($value) };
    (held Gauge $value:expr) => { FigureRef::Count($value) };
    (held $kind:ident $value:expr) => { FigureRef::$kind(&$value) };
    (figure_values_mut Counter $value:expr) => { FigureMut::Count(&mut $value) };
    (figure_values_mut Gauge $value:expr) => { FigureMut::Count(&mut $value) };
    (figure_values_mut $kind:ident $value:expr) => { FigureMut::$kind(&mut $value) };
    // What is under way goes on.
    (take Gauge $value:expr, $times:ident) => { $value };
    (take Times $value:expr, $times:ident) => { $times(&mut $value) };
    (take Tally $value:expr, $times:ident) => { $value.take() };
    (take $kind:ident $value:expr, $times:ident) => { std::mem::take(&mut $value) };
    (some) => { None };
    (some $value:expr) => { Some($value) };
}

/// Makes a table: `tag name: Kind of Unit`, and where it is shown.
macro_rules! table {
    (
        $(#[$about:meta])*
        $table:ident
        $(
            $(#[doc = $doc:literal])+
            $tag:literal $name:ident: $kind:ident $(($key:ident))? of $unit:ident
                $(, json $json:literal)? $(, csv $csv:literal $column:expr)?;
        )+
    ) => {
        $(#[$about])*
        pub struct $table<H = SparseHistogram> {
            $( $(#[doc = $doc])+ pub $name: of_kind!(type $kind H), )+
        }

        // As derived, which items with types by macro cannot be.
        impl<H: Clone> Clone for $table<H> {
            fn clone(&self) -> Self {
                $table { $( $name: self.$name.clone() ),+ }
            }
        }

        impl<H: Default> Default for $table<H> {
            fn default() -> Self {
                $table { $( $name: Default::default() ),+ }
            }
        }

        impl<H: PartialEq> PartialEq for $table<H> {
            fn eq(&self, other: &Self) -> bool {
                $( self.$name == other.$name )&&+
            }
        }

        impl<H: std::fmt::Debug> std::fmt::Debug for $table<H> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($table)) $( .field(stringify!($name), &self.$name) )+ .finish()
            }
        }

        impl $table {
            /// The lines of the table, in the order in which its figures are shown.
            pub const FIGURES: &'static [Figure] = &[ $( Figure {
                tag: $tag,
                name: stringify!($name),
                kind: Kind::$kind $( (Key::$key) )?,
                unit: Unit::$unit,
                json: of_kind!(some $($json)?),
                csv: of_kind!(some $( ($csv, &$column) )?),
            }, )+ ];
        }

        impl<H> $table<H> {
            /// Every figure and its value, in the order of the table.
            pub fn figure_values(&self) -> impl Iterator<Item = (&'static Figure, FigureRef<'_, H>)> {
                $table::FIGURES.iter().zip([ $( of_kind!(held $kind self.$name) ),+ ])
            }

            /// Every figure and the place of its value, in the order of the table.
            pub fn figure_values_mut(&mut self) -> impl Iterator<Item = (&'static Figure, FigureMut<'_, H>)> {
                $table::FIGURES.iter().zip([ $( of_kind!(figure_values_mut $kind self.$name) ),+ ])
            }

            /// Takes what was counted out, and each histogram by `times`; gauges stay as they are.
            pub fn take<G>(&mut self, mut times: impl FnMut(&mut H) -> G) -> $table<G> {
                $table { $( $name: of_kind!(take $kind self.$name, times) ),+ }
            }

            /// Adds others of the same table.
            fn add<G>(&mut self, other: &$table<G>, over: MergeAxis) where H: AddTimes<G> {
                self.figure_values_mut().zip(other.figure_values()).for_each(|((figure, mine), (_, theirs))| add(figure, mine, theirs, over));
            }
        }

        impl $table {
            /// Adds the figures of other workers or machines.
            pub(crate) fn merge_beside(&mut self, other: &$table) {
                self.add(other, MergeAxis::Workers);
            }

            /// Adds the figures of what follows in time.
            pub(crate) fn merge_after(&mut self, later: &$table) {
                self.add(later, MergeAxis::Time);
            }

            /// Whether nothing happened, and nothing is under way.
            pub fn is_empty(&self) -> bool {
                self.figure_values().all(|(_, held)| match held {
                    FigureRef::Count(count) => count == 0,
                    FigureRef::Times(times) => times.count() == 0,
                    FigureRef::Tally(tally) => tally.is_empty(),
                    FigureRef::Ledger(ledger) => *ledger == Ledger::default(),
                    FigureRef::Workers(workers) => workers.is_empty(),
                })
            }
        }

        impl $table<Histogram> {
            /// Adds the figures of one interval to the sums of a run.
            pub(crate) fn sum_up(&mut self, interval: &$table) {
                self.add(interval, MergeAxis::Run);
            }
        }
    };
}

table! {
    /// What is counted for each route of a load. Only measured requests are in it, but for those in
    /// flight and for what completes in the measured window.
    RouteFigures
    /// Where requests ended. Scheduled requests count where their intended start lies, finished
    /// ones where they finished.
    1 ledger: Ledger of Requests, json "ledger", csv "" [Column::Value];
    /// Requests in flight at the end of the interval, measured or not.
    2 in_flight_end: Gauge of Requests, csv "in_flight" [Column::Value];
    /// Successes that finished inside the measured window (not in the grace period after it),
    /// whenever they were scheduled: this is throughput, and not a part of the ledger. Older run
    /// files lack those that were scheduled in the warm-up.
    3 succeeded_in_window: Counter of Requests;
    /// From the intended start to the last byte: successes and timeouts.
    4 response: Times of Ns,
        json "response_time_ns", csv "response" [Column::Quantile(500), Column::Quantile(990), Column::Max];
    /// From the first byte sent to the last byte received: successes and timeouts that were sent.
    5 service: Times of Ns, json "service_time_ns", csv "service" [Column::Quantile(500), Column::Quantile(990)];
    /// From the first byte sent to the first byte received: successes.
    6 ttfb: Times of Ns, json "ttfb_ns";
    /// Response times of failures other than timeouts.
    7 failed: Times of Ns, json "failed_time_ns";
    /// Answers by status code.
    8 statuses: Tally(Status) of Requests, json "statuses";
    /// Bytes of answers, as far as they came and without what TLS wraps round them: over HTTP/1.1
    /// heads and framing included, over HTTP/2 content alone. What is counted of a load is more:
    /// encrypted, with what belongs to no request, and warm-up.
    9 answers_bytes: Counter of Bytes;
    /// Calls of gRPC's by how they ended ([`crate::GrpcStatus`]), where their server has said so.
    10 grpc_statuses: Tally(GrpcStatus) of Requests, json "grpc_statuses";
    /// Messages in answers to calls of gRPC's, as they came whole.
    11 grpc_messages: Counter of Messages, json "grpc_messages";
    /// Answers with another status than the log has that is replayed.
    12 status_changed: Counter of Requests;
    /// From the first byte sent to the first whole message of the answer: calls of methods that
    /// give a stream, however they end.
    13 first_message: Times of Ns, json "first_message_ns";
    /// From one message of such an answer to the next, by the moments at which they were read:
    /// those read together are 0 apart.
    14 message_gap: Times of Ns, json "message_gap_ns";
    /// Calls whose server said `OK` and whose messages were wrong ([`crate::CallFault`]); they
    /// count as `INTERNAL`.
    15 grpc_faults: Tally(CallFault) of Requests, json "grpc_faults";
    /// Calls that were answered with a message that usual clients refuse for its length
    /// ([`crate::grpc_message::MESSAGE_BYTES_USUAL`]).
    16 grpc_large_answers: Counter of Requests, json "grpc_large_answers";
    /// The bytes of `answers_bytes` that came inside the measured window, also those of answers to
    /// requests of the warm-up.
    17 answers_bytes_in_window: Counter of Bytes;
}

table! {
    /// What is counted for a load as a whole, whatever its routes; warm-up and what comes before
    /// the load included.
    LoadFigures
    /// How late measured requests were started against their intended start, by the generator
    /// itself.
    1 lag: Times of Ns, csv "lag" [Column::Quantile(990)];
    /// Bytes received, heads included.
    2 bytes_in: Counter of Bytes, json "bytes_in", csv "bytes_in" [Column::Value];
    /// Bytes sent, heads included.
    3 bytes_out: Counter of Bytes, json "bytes_out", csv "bytes_out" [Column::Value];
    /// Connections open at the end of the interval.
    4 connections_open: Gauge of Connections, json "connections_open_max", csv "connections_open" [Column::Value];
    /// Connections opened.
    5 connections_opened: Counter of Connections, json "connections_opened";
    /// Opening a connection, to the moment it can be written to.
    6 connect: Times of Ns, json "connect_ns";
    /// TLS handshakes, from the moment the connection stands to the moment a request can be sent.
    7 handshake: Times of Ns, json "handshake_ns";
    /// Handshakes that took up an earlier session.
    8 handshakes_resumed: Counter of Handshakes, json "handshakes_resumed";
    /// Connections that could not be opened, by the system's error number; those before the load
    /// included.
    9 connect_errors: Tally(SystemError) of Connections, json "connect_errors";
    /// Connections that could not be opened, by the number of their address in the plan.
    10 address_errors: Tally(Address) of Connections, json "address_errors";
    /// Failures of TLS, by the number of their reason ([`crate::TlsFailure`]).
    11 tls_errors: Tally(TlsFailure) of Connections, json "tls_errors";
    /// Bytes received that belong to no answer: beyond the end of one, or on a connection that
    /// asked for nothing. As far as they were read: such a connection is closed at once.
    12 surplus_bytes: Counter of Bytes, json "surplus_bytes";
    /// Connections that brought such bytes.
    13 surplus_connections: Counter of Connections, json "surplus_connections";
    /// Integral of the number of requests in flight over the interval, in requests x ns. From the
    /// intended start.
    14 in_flight_ns: Counter of RequestNs;
    /// The workers' times, ascending by worker.
    15 workers: Workers of Ns;
    /// Connections opened that speak HTTP/2.
    16 h2_connections: Counter of Connections;
    /// Requests that waited on a connection over HTTP/2 because all of its streams were taken: for
    /// us, not for the server.
    17 stream_waits: Counter of Requests, json "stream_waits";
    /// Requests sent again because the server said that it had not taken them (a refused stream, or
    /// GOAWAY).
    18 resent: Counter of Requests, json "resent";
    /// Streams that the server reset, by the code of its reason ([`crate::H2Error`]).
    19 stream_resets: Tally(H2Error) of Requests, json "stream_resets";
    /// Connections that the server has announced the end of (GOAWAY), by the code of its reason
    /// ([`crate::H2Error`]).
    20 goaways: Tally(H2Error) of Connections, json "goaways";
    /// Sessions begun whose intended start is measured.
    21 sessions_started: Counter of Sessions, csv "sessions_started" [Column::Value];
    /// Those that came to their end.
    22 sessions_completed: Counter of Sessions, csv "sessions_completed" [Column::Value];
    /// Those that were given up because a request of theirs failed.
    23 sessions_abandoned: Counter of Sessions, csv "sessions_abandoned" [Column::Value];
    /// Those that were under way when the load ended, or their user was sent away.
    24 sessions_cut: Counter of Sessions, csv "sessions_cut" [Column::Value];
    /// From the intended start of a session to the last answer: those that came to their end.
    25 session_time: Times of Ns,
        csv "session_time" [Column::Quantile(500), Column::Quantile(990), Column::Max];
    /// Times that a server over HTTP/2 had no room left for a frame in a window of ours (of an
    /// answer, or of its connection): it waited for us.
    26 windows_empty: Counter of Requests, json "windows_empty";
    /// Redirects that were followed: the request asked once more, as part of the same one.
    27 redirects: Counter of Requests, json "redirects";
    /// Answers to measured requests, by the worker that they came to (its number modulo 65 536).
    28 worker_answers: Tally(Worker) of Requests;
    /// Time in which workers looked around for replies in vain and nobody took their core
    /// meanwhile. Other CPU time of theirs is not to spare: going to sleep and being woken costs
    /// the system, too.
    29 looked_ns: Counter of Ns;
    /// How long replies were readable before they were read, inside the measured window: the
    /// client's own part of a response time. Of those that came while a worker was busy it is known
    /// only when it looked next; they count from the middle of that time on.
    30 read_wait: Times of Ns;
}

/// What figures are added over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeAxis {
    /// Workers or machines, at the same time.
    Workers,
    /// Time: the others come later.
    Time,
    /// All intervals of a run, to its totals.
    Run,
}

/// A form of times that takes others.
trait AddTimes<G> {
    fn add(&mut self, other: &G);
}

impl AddTimes<SparseHistogram> for SparseHistogram {
    fn add(&mut self, other: &SparseHistogram) {
        self.merge(other);
    }
}

impl AddTimes<SparseHistogram> for Histogram {
    fn add(&mut self, other: &SparseHistogram) {
        self.merge_sparse(other);
    }
}

impl RouteFigures<Histogram> {
    /// Adds the figures of another route in the same interval.
    pub(crate) fn sum_beside(&mut self, other: &RouteFigures) {
        self.add(other, MergeAxis::Workers);
    }
}

fn add<H: AddTimes<G>, G>(figure: &Figure, mine: FigureMut<H>, theirs: FigureRef<G>, over: MergeAxis) {
    match (mine, theirs) {
        (FigureMut::Count(mine), FigureRef::Count(theirs)) => match (figure.kind, over) {
            (Kind::Gauge, MergeAxis::Time) => *mine = theirs,
            (Kind::Gauge, MergeAxis::Run) => *mine = theirs.max(*mine),
            _ => *mine = mine.saturating_add(theirs),
        },
        (FigureMut::Times(mine), FigureRef::Times(theirs)) => mine.add(theirs),
        (FigureMut::Tally(mine), FigureRef::Tally(theirs)) => mine.merge(theirs),
        (FigureMut::Ledger(mine), FigureRef::Ledger(theirs)) => mine.merge(theirs),
        (FigureMut::Workers(mine), FigureRef::Workers(theirs)) => add_workers(mine, theirs),
        _ => unreachable!("both are values of one figure"),
    }
}

fn add_workers(mine: &mut Vec<WorkerTime>, theirs: &[WorkerTime]) {
    for time in theirs {
        match mine.binary_search_by_key(&time.worker, |mine| mine.worker) {
            Ok(at) => {
                let mine = &mut mine[at];
                mine.work_ns = mine.work_ns.saturating_add(time.work_ns);
                mine.cpu_ns = mine.cpu_ns.saturating_add(time.cpu_ns);
                mine.wall_ns = mine.wall_ns.saturating_add(time.wall_ns);
            }
            Err(at) => mine.insert(at, *time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_tag_and_no_name_stands_for_two_figures() {
        for figures in [RouteFigures::FIGURES, LoadFigures::FIGURES] {
            let tags: BTreeSet<u32> = figures.iter().map(|figure| figure.tag).collect();
            assert_eq!(tags.len(), figures.len());
        }
        let all = || RouteFigures::FIGURES.iter().chain(LoadFigures::FIGURES);
        let names: BTreeSet<&str> = all().map(|figure| figure.name).collect();
        let fields: Vec<&str> = all().filter_map(|figure| figure.json).collect();
        assert_eq!(names.len(), all().count());
        assert_eq!(fields.iter().collect::<BTreeSet<_>>().len(), fields.len());
    }

    #[test]
    fn a_gauge_adds_up_over_workers_only() {
        let open = |connections_open| LoadFigures { connections_open, bytes_in: 1, ..LoadFigures::default() };
        let mut beside = open(3);
        beside.merge_beside(&open(2));
        let mut after = open(3);
        after.merge_after(&open(2));
        let mut total: LoadFigures<Histogram> = LoadFigures::default();
        [3, 7, 2].into_iter().for_each(|count| total.sum_up(&open(count)));
        assert_eq!((beside.connections_open, beside.bytes_in), (5, 2));
        assert_eq!((after.connections_open, after.bytes_in), (2, 2));
        assert_eq!((total.connections_open, total.bytes_in), (7, 3));
    }
}
