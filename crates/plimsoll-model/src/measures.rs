//! The table of measures: every figure of a run, declared once, with its kind, its unit, and the
//! outputs that show the figure.
//!
//! From the table, macros derive the fields of intervals and recorders, merging, bytes in a run
//! file ([`crate::codec`]), and checks of bounds. The names in CSV and JSON come from the table,
//! too. A new figure needs one entry in the table, and code that records the figure.
//!
//! [`LoadFigures`] belong to a load as a whole, [`RouteFigures`] to one route. [`LoadFigures`] and
//! [`RouteFigures`] are generic over the type of histogram: [`CountingHistogram`] for recording,
//! [`SparseHistogram`] for storage, [`Histogram`] for sums.
//!
//! Not here: figures computed from several other figures (rates, shares), and the meaning of
//! figures.
//!
//! [`CountingHistogram`]: crate::CountingHistogram

use crate::histogram::{Histogram, SparseHistogram};
use crate::ledger::Ledger;
use crate::tally::CountsByKey;

/// The kind of a figure, which determines how two values of the figure are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// A count of events, which adds up over time, workers and machines.
    Counter,
    /// A state at the end of an interval, such as open connections. The gauges of several workers
    /// or machines add up. Merging consecutive intervals keeps the latest gauge; the totals of a
    /// whole run keep the largest gauge.
    Gauge,
    /// A histogram of times.
    Times,
    /// Counts by a key, such as the status of a response.
    Tally(TallyKey),
    /// Counts of requests by outcome.
    Ledger,
    /// CPU and busy time of each worker.
    Workers,
}

/// The meaning of the keys of a tally (counts by a 16-bit key).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TallyKey {
    /// Keys are the statuses of responses.
    Status,
    /// Keys are the system's error numbers.
    SystemError,
    /// Keys are the indices of addresses in the plan.
    Address,
    /// Each key is the code of a TLS failure ([`crate::TlsFailure`]).
    TlsFailure,
    /// Keys are error codes of HTTP/2 ([`crate::H2Error`]).
    H2Error,
    /// Keys are status codes of gRPC ([`crate::GrpcStatus`]).
    GrpcStatus,
    /// Each key is the code of a fault in a gRPC response ([`crate::CallFault`]).
    CallFault,
    /// Each key is the number that identifies a worker.
    Worker,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FigureUnit {
    Requests,
    Sessions,
    Connections,
    Handshakes,
    Bytes,
    /// Messages of gRPC calls.
    Messages,
    Ns,
    /// Requests x ns: the integral of the number of requests over time.
    RequestNs,
}

/// A column that the CSV of intervals derives from a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvColumn {
    /// The value of the figure. A ledger (the counts of requests by outcome) has one column for
    /// each count.
    Value,
    /// A quantile of the histogram; the quantile is given in per mille.
    Quantile(u16),
    /// The largest value of the histogram.
    Max,
}

/// A figure of the table of measures.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    /// The number of the figure in a run file. The number is never reused for another figure of the
    /// table.
    pub tag: u32,
    /// The name of the figure's Rust field in [`LoadFigures`] or [`RouteFigures`].
    pub name: &'static str,
    /// The kind of the figure, which determines how two values of the figure are merged.
    pub kind: FigureKind,
    /// The unit of the figure's values.
    pub unit: FigureUnit,
    /// The field in the JSON of a load; `None` means that the figure has no field of its own.
    pub json: Option<&'static str>,
    /// The name in the CSV of intervals, and the derived columns.
    pub csv: Option<(&'static str, &'static [CsvColumn])>,
}

/// A histogram figure that the JSON of a load shows. An SLO or a `--fail-if` condition may limit
/// the quantiles of a time measure.
#[derive(Debug, Clone, Copy)]
pub struct TimeMeasure {
    figure: &'static Figure,
    of_routes: bool,
}

impl TimeMeasure {
    /// Finds the measure with this name (`response`, `ttfb`, `connect`, ...).
    pub fn parse(name: &str) -> Option<TimeMeasure> {
        TimeMeasure::all().find(|measure| measure.name() == name)
    }

    /// Returns every measure, in the order of the tables.
    pub fn all() -> impl Iterator<Item = TimeMeasure> {
        let shown = |figure: &&Figure| figure.kind == FigureKind::Times && figure.json.is_some();
        let routes = RouteFigures::<SparseHistogram>::FIGURES.iter().filter(shown);
        let load = LoadFigures::<SparseHistogram>::FIGURES.iter().filter(shown);
        let measure = |of_routes| move |figure| TimeMeasure { figure, of_routes };
        routes.map(measure(true)).chain(load.map(measure(false)))
    }

    /// Returns the measure of response time: from the intended start to the last byte.
    pub fn response_time() -> TimeMeasure {
        TimeMeasure::parse("response").expect("a line of the table")
    }

    /// Returns the name of the measure in the table of measures.
    pub fn name(self) -> &'static str {
        self.figure.name
    }

    /// Returns whether the measure is a time of requests, so that each route has its own histogram.
    /// Every other measure is a time of connections.
    pub fn is_per_route(self) -> bool {
        self.of_routes
    }

    /// Returns the histogram of the measure, from the figures of the route or of the load.
    pub fn histogram<'a, H>(self, route: &'a RouteFigures<H>, load: &'a LoadFigures<H>) -> &'a H {
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

/// A reference to the value of one figure.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum FigureRef<'a, H> {
    Count(u64),
    Times(&'a H),
    Tally(&'a CountsByKey),
    Ledger(&'a Ledger),
    Workers(&'a [WorkerTime]),
}

/// A mutable reference to the value of one figure.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum FigureMut<'a, H> {
    Count(&'a mut u64),
    Times(&'a mut H),
    Tally(&'a mut CountsByKey),
    Ledger(&'a mut Ledger),
    Workers(&'a mut Vec<WorkerTime>),
}

/// How one worker spent its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerTime {
    /// The number of the worker, unique over all machines of a run.
    pub worker: u32,
    /// Time in iterations of the worker's event loop that had work, ns. Waiting and polling do not
    /// count as work.
    pub work_ns: u64,
    /// CPU time of the worker's thread, ns, including polling.
    pub cpu_ns: u64,
    /// Wall-clock time in which `work_ns` and `cpu_ns` were measured, ns.
    pub wall_ns: u64,
}

impl WorkerTime {
    /// Returns the share of the wall-clock time that the worker spent with work, 0..=1.
    pub fn work_share(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { self.work_ns as f64 / self.wall_ns as f64 }
    }
}

/// Expands a [`FigureKind`] to the Rust type of its values, to a [`FigureRef`] or [`FigureMut`], or
/// to code that drains a recorder.
#[rustfmt::skip]
macro_rules! of_kind {
    (type Counter $h:ident) => { u64 };
    (type Gauge $h:ident) => { u64 };
    (type Times $h:ident) => { $h };
    (type Tally $h:ident) => { CountsByKey };
    (type Ledger $h:ident) => { Ledger };
    (type Workers $h:ident) => { Vec<WorkerTime> };
    (held Counter $value:expr) => { FigureRef::Count($value) };
    (held Gauge $value:expr) => { FigureRef::Count($value) };
    (held $kind:ident $value:expr) => { FigureRef::$kind(&$value) };
    (figure_values_mut Counter $value:expr) => { FigureMut::Count(&mut $value) };
    (figure_values_mut Gauge $value:expr) => { FigureMut::Count(&mut $value) };
    (figure_values_mut $kind:ident $value:expr) => { FigureMut::$kind(&mut $value) };
    // A gauge keeps its value when a recorder is drained, because requests in flight stay in
    // flight.
    (take Gauge $value:expr, $times:ident) => { $value };
    (take Times $value:expr, $times:ident) => { $times(&mut $value) };
    (take Tally $value:expr, $times:ident) => { $value.take() };
    (take $kind:ident $value:expr, $times:ident) => { std::mem::take(&mut $value) };
    (some) => { None };
    (some $value:expr) => { Some($value) };
}

/// Declares a table of figures. An entry such as `2 bytes_in: Counter of Bytes` states the number
/// of the figure in run files (its tag), its name, its kind and its unit. Its names in JSON and in
/// CSV files follow.
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

        // The implementations of traits are written by hand, since `derive` does not accept items
        // whose types are macros.
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
            /// All figures of the table, in the order of output.
            pub const FIGURES: &'static [Figure] = &[ $( Figure {
                tag: $tag,
                name: stringify!($name),
                kind: FigureKind::$kind $( (TallyKey::$key) )?,
                unit: FigureUnit::$unit,
                json: of_kind!(some $($json)?),
                csv: of_kind!(some $( ($csv, &$column) )?),
            }, )+ ];
        }

        impl<H> $table<H> {
            /// Returns every figure with its value, in the order of the table.
            pub fn figure_values(&self) -> impl Iterator<Item = (&'static Figure, FigureRef<'_, H>)> {
                $table::FIGURES.iter().zip([ $( of_kind!(held $kind self.$name) ),+ ])
            }

            /// Returns every figure with its mutable value, in the order of the table.
            pub fn figure_values_mut(&mut self) -> impl Iterator<Item = (&'static Figure, FigureMut<'_, H>)> {
                $table::FIGURES.iter().zip([ $( of_kind!(figure_values_mut $kind self.$name) ),+ ])
            }

            /// Returns the figures, and resets all figures except gauges (states such as open
            /// connections). Each histogram is converted with the function `times`.
            pub fn take<G>(&mut self, mut times: impl FnMut(&mut H) -> G) -> $table<G> {
                $table { $( $name: of_kind!(take $kind self.$name, times) ),+ }
            }

            /// Adds the figures in `other`. `over` says whether `other` comes from other workers,
            /// from a later interval, or is one interval to add to the totals of a run.
            fn add<G>(&mut self, other: &$table<G>, over: MergeAxis) where H: MergeHistogram<G> {
                self.figure_values_mut().zip(other.figure_values()).for_each(|((figure, mine), (_, theirs))| merge_figure(figure, mine, theirs, over));
            }
        }

        impl $table {
            /// Adds the figures of other workers or machines at the same time.
            pub(crate) fn merge_parallel(&mut self, other: &$table) {
                self.add(other, MergeAxis::Workers);
            }

            /// Adds the figures of a later interval.
            pub(crate) fn merge_after(&mut self, later: &$table) {
                self.add(later, MergeAxis::Time);
            }

            /// Returns whether all figures are empty: no activity, and no request in flight.
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
            pub(crate) fn add_interval_figures(&mut self, interval: &$table) {
                self.add(interval, MergeAxis::Run);
            }
        }
    };
}

table! {
    /// The figures of one route. Figures of a route include measured requests only, except for
    /// requests in flight and completions in the measured window.
    RouteFigures
    /// Number of requests by outcome. A scheduled request counts at its intended start, a finished
    /// request at its end.
    1 ledger: Ledger of Requests, json "ledger", csv "" [CsvColumn::Value];
    /// Number of requests in flight at the end of the interval, measured or not.
    2 in_flight_end: Gauge of Requests, csv "in_flight" [CsvColumn::Value];
    /// Number of successes that finished inside the measured window (not in the grace period),
    /// whenever the requests were scheduled. The throughput is computed from `succeeded_in_window`,
    /// which does not belong to the ledger. In older run files the count lacks requests scheduled
    /// in the warm-up.
    3 succeeded_in_window: Counter of Requests;
    /// Response time, from the intended start to the last byte, of successes and timeouts.
    4 response: Times of Ns,
        json "response_time_ns", csv "response" [CsvColumn::Quantile(500), CsvColumn::Quantile(990), CsvColumn::Max];
    /// Service time, from the first byte sent to the last byte received, of successes and of
    /// timeouts that were sent.
    5 service: Times of Ns, json "service_time_ns", csv "service" [CsvColumn::Quantile(500), CsvColumn::Quantile(990)];
    /// Time to the first byte, from the first byte sent to the first byte received, of successes.
    6 ttfb: Times of Ns, json "ttfb_ns";
    /// Response times of failures other than timeouts.
    7 failed: Times of Ns, json "failed_time_ns";
    /// Number of responses by status code.
    8 statuses: Tally(Status) of Requests, json "statuses";
    /// Bytes of responses received, without TLS. For HTTP/1.1 the bytes include headers and
    /// framing; for HTTP/2 the bytes include only the content. The load's `bytes_in` is larger,
    /// because `bytes_in` includes encryption, warm-up and bytes outside requests.
    9 answers_bytes: Counter of Bytes;
    /// Number of gRPC calls by the status ([`crate::GrpcStatus`]) that their server sent.
    10 grpc_statuses: Tally(GrpcStatus) of Requests, json "grpc_statuses";
    /// Number of complete messages in responses to gRPC calls.
    11 grpc_messages: Counter of Messages, json "grpc_messages";
    /// Number of responses whose status differs from the status in the replayed log.
    12 status_changed: Counter of Requests;
    /// Time from the first byte sent to the first complete message of the response, for calls of
    /// streaming methods, whatever their status.
    13 first_message: Times of Ns, json "first_message_ns";
    /// Time between two consecutive messages of a streamed response, by the times at which plimsoll
    /// read the messages. Messages that plimsoll reads together have a gap of 0.
    14 message_gap: Times of Ns, json "message_gap_ns";
    /// Number of calls that ended with `OK` although their messages had a fault
    /// ([`crate::CallFault`]). Calls with a fault in their messages count as `INTERNAL`.
    15 grpc_faults: Tally(CallFault) of Requests, json "grpc_faults";
    /// Number of calls with a response message longer than clients accept by default
    /// ([`crate::grpc_message::DEFAULT_MESSAGE_BYTES_MAX`]).
    16 grpc_large_answers: Counter of Requests, json "grpc_large_answers";
    /// Bytes of responses received inside the measured window, counted as in `answers_bytes`, but
    /// including responses to requests of the warm-up.
    17 answers_bytes_in_window: Counter of Bytes;
}

table! {
    /// The figures of a load as a whole, over all routes. Figures of a load include the warm-up and
    /// the preparation of connections, unless the figure's own comment says otherwise.
    LoadFigures
    /// Lag of measured requests: the delay between intended start and sending that the load
    /// generator causes.
    1 lag: Times of Ns, csv "lag" [CsvColumn::Quantile(990)];
    /// Bytes received on all connections, including response heads.
    2 bytes_in: Counter of Bytes, json "bytes_in", csv "bytes_in" [CsvColumn::Value];
    /// Bytes sent on all connections, including request heads.
    3 bytes_out: Counter of Bytes, json "bytes_out", csv "bytes_out" [CsvColumn::Value];
    /// Number of connections that are open at the end of the interval.
    4 connections_open: Gauge of Connections, json "connections_open_max", csv "connections_open" [CsvColumn::Value];
    /// Number of connections that were opened.
    5 connections_opened: Counter of Connections, json "connections_opened";
    /// Time from the start of a connection attempt until the connection is writable.
    6 connect: Times of Ns, json "connect_ns";
    /// Time of TLS handshakes, from the open connection to the first possible request.
    7 handshake: Times of Ns, json "handshake_ns";
    /// Number of TLS handshakes that resumed an earlier session.
    8 handshakes_resumed: Counter of Handshakes, json "handshakes_resumed";
    /// Number of connections that failed to open, by the system's error number, including
    /// connections before the load.
    9 connect_errors: Tally(SystemError) of Connections, json "connect_errors";
    /// Number of connections that failed to open, by the index of their address in the plan.
    10 address_errors: Tally(Address) of Connections, json "address_errors";
    /// Number of TLS failures by reason ([`crate::TlsFailure`]).
    11 tls_errors: Tally(TlsFailure) of Connections, json "tls_errors";
    /// Bytes received outside any response: after the end of a response, or on an idle connection.
    /// Only the bytes that were read count, because plimsoll closes a connection with surplus bytes
    /// at once.
    12 surplus_bytes: Counter of Bytes, json "surplus_bytes";
    /// Number of connections on which surplus bytes (bytes outside any response) arrived.
    13 surplus_connections: Counter of Connections, json "surplus_connections";
    /// Integral of the number of requests in flight over the interval, requests x ns. A request
    /// counts from its intended start.
    14 in_flight_ns: Counter of RequestNs;
    /// CPU and busy times of workers, ascending by worker.
    15 workers: Workers of Ns;
    /// Number of HTTP/2 connections that were opened.
    16 h2_connections: Counter of Connections;
    /// Number of requests that waited in plimsoll because all streams of their HTTP/2 connection
    /// were in use.
    17 stream_waits: Counter of Requests, json "stream_waits";
    /// Number of requests that were sent again because the server had not processed them (a refused
    /// stream, or GOAWAY).
    18 resent: Counter of Requests, json "resent";
    /// Number of streams that the server reset, by error code ([`crate::H2Error`]).
    19 stream_resets: Tally(H2Error) of Requests, json "stream_resets";
    /// Number of connections that the server ended with GOAWAY, by error code ([`crate::H2Error`]).
    20 goaways: Tally(H2Error) of Connections, json "goaways";
    /// Number of sessions whose intended start was in the measured part of the load.
    21 sessions_started: Counter of Sessions, csv "sessions_started" [CsvColumn::Value];
    /// Number of sessions that were completed.
    22 sessions_completed: Counter of Sessions, csv "sessions_completed" [CsvColumn::Value];
    /// Number of sessions that were abandoned because one of their requests failed.
    23 sessions_abandoned: Counter of Sessions, csv "sessions_abandoned" [CsvColumn::Value];
    /// Number of sessions that were cut by the end of the load, or by a decrease of users.
    24 sessions_cut: Counter of Sessions, csv "sessions_cut" [CsvColumn::Value];
    /// Time from the intended start of a session to its last response, for completed sessions.
    25 session_time: Times of Ns,
        csv "session_time" [CsvColumn::Quantile(500), CsvColumn::Quantile(990), CsvColumn::Max];
    /// Number of times that an HTTP/2 flow-control window of plimsoll was exhausted, so that the
    /// server could not send. The count includes windows of streams and of connections.
    26 windows_empty: Counter of Requests, json "windows_empty";
    /// Number of redirects that were followed. Each followed redirect is part of the original
    /// request.
    27 redirects: Counter of Requests, json "redirects";
    /// Number of responses to measured requests, by worker. The key is the number of the worker
    /// modulo 65 536.
    28 worker_answers: Tally(Worker) of Requests;
    /// Time in which workers polled although no response had arrived and no other thread wanted
    /// their core, ns. Such polling counts as idle time. All other CPU time of the workers counts
    /// as used, because sleeping and waking cost CPU time, too.
    29 looked_ns: Counter of Ns;
    /// Time from the arrival of response bytes in the socket until plimsoll reads the bytes, inside
    /// the measured window. The client, not the server, adds this wait to the response time. If
    /// bytes arrive while their worker is busy, the middle of the busy time counts as the arrival.
    30 read_wait: Times of Ns;
}

/// The source of added figures: other workers at the same time, a later interval, or every interval
/// of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeAxis {
    /// Figures of several workers or machines at the same time are added.
    Workers,
    /// Figures of consecutive intervals are added.
    Time,
    /// Figures of all intervals of a run are added to the totals of the run.
    Run,
}

/// A type of histogram to which another type of histogram can be added.
trait MergeHistogram<G> {
    fn add(&mut self, other: &G);
}

impl MergeHistogram<SparseHistogram> for SparseHistogram {
    fn add(&mut self, other: &SparseHistogram) {
        self.merge(other);
    }
}

impl MergeHistogram<SparseHistogram> for Histogram {
    fn add(&mut self, other: &SparseHistogram) {
        self.merge_sparse(other);
    }
}

impl RouteFigures<Histogram> {
    /// Adds the figures of another route in the same interval.
    pub(crate) fn add_route_figures(&mut self, other: &RouteFigures) {
        self.add(other, MergeAxis::Workers);
    }
}

fn merge_figure<H: MergeHistogram<G>, G>(figure: &Figure, mine: FigureMut<H>, theirs: FigureRef<G>, over: MergeAxis) {
    match (mine, theirs) {
        (FigureMut::Count(mine), FigureRef::Count(theirs)) => match (figure.kind, over) {
            (FigureKind::Gauge, MergeAxis::Time) => *mine = theirs,
            (FigureKind::Gauge, MergeAxis::Run) => *mine = theirs.max(*mine),
            _ => *mine = mine.saturating_add(theirs),
        },
        (FigureMut::Times(mine), FigureRef::Times(theirs)) => mine.add(theirs),
        (FigureMut::Tally(mine), FigureRef::Tally(theirs)) => mine.merge(theirs),
        (FigureMut::Ledger(mine), FigureRef::Ledger(theirs)) => mine.merge(theirs),
        (FigureMut::Workers(mine), FigureRef::Workers(theirs)) => merge_worker_times(mine, theirs),
        _ => unreachable!("both are values of one figure"),
    }
}

fn merge_worker_times(mine: &mut Vec<WorkerTime>, theirs: &[WorkerTime]) {
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
    fn figure_tags_and_names_are_unique() {
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
    fn gauges_are_summed_only_over_workers() {
        let open = |connections_open| LoadFigures { connections_open, bytes_in: 1, ..LoadFigures::default() };
        let mut beside = open(3);
        beside.merge_parallel(&open(2));
        let mut after = open(3);
        after.merge_after(&open(2));
        let mut total: LoadFigures<Histogram> = LoadFigures::default();
        [3, 7, 2].into_iter().for_each(|count| total.add_interval_figures(&open(count)));
        assert_eq!((beside.connections_open, beside.bytes_in), (5, 2));
        assert_eq!((after.connections_open, after.bytes_in), (2, 2));
        assert_eq!((total.connections_open, total.bytes_in), (7, 3));
    }
}
