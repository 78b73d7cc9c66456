//! Counts the responses of a load for tools such as ab that send one request repeatedly. Tools such
//! as ab report more than a run file contains: response lengths, and a row for each request. The
//! load generator sends and measures the requests; this module only counts the responses.
//!
//! Not here: formatting the results as a tool prints them.

use crate::go_redirect::{RedirectHop, RedirectStep};
use crate::output;
use plimsoll_model::failure::Failure;
use plimsoll_model::{EarlyStopReason, Histogram, LoadShape, Origin, RequestFailure};
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_wire::tls::TlsParameters;
use plimsoll_wire::{
    Author, AuthorFactory, AuthorResponse, AuthorStopReason, Batch, LostResponse, ResponseTimes, WorkerAuthor,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of rows in memory. A row has the times of one response, and five million rows
/// take about 200 MB.
const ROWS_MAX: usize = 5_000_000;

/// The settings of a response log: the request to send, and which data of the responses to record.
#[derive(Default)]
pub struct ResponseLogSpec {
    /// The encoded request. If this field is empty, the load sends the request of its plan.
    pub request: Vec<u8>,
    /// Whether the request is a HEAD request, so that its response has no body.
    pub is_head: bool,
    /// Whether a row with the times of each response is kept.
    pub keeps_rows: bool,
    /// Whether the load ends at the first request that gets no response.
    pub ends_with_failure: bool,
    /// Formats the text that is printed for each response; `None` if nothing is printed.
    pub format_response: Option<fn(&AuthorResponse) -> String>,
    /// A function that is called repeatedly with the number of completed requests, to report
    /// progress; `None` if no progress is reported.
    pub on_progress: Option<Box<dyn Fn(u64) + Send + Sync>>,
    /// The rules for following redirects; `None` if redirects are not followed.
    pub redirect_policy: Option<RedirectPolicy>,
}

/// A function that encodes one request of a redirect chain.
pub type EncodeHop = dyn Fn(&RedirectHop) -> Vec<u8> + Send + Sync;

/// The rules for following redirects, with the function that encodes the next request after a
/// redirect.
pub struct RedirectPolicy {
    /// The first request of each redirect chain.
    pub first_hop: RedirectHop,
    pub origin: Origin,
    /// The maximum number of requests in one redirect chain, including the first.
    pub chain_requests_max: u64,
    pub has_body: bool,
    /// Encodes one request of a redirect chain.
    pub encode_hop: Box<EncodeHop>,
}

/// The properties of the first response of a load, which a tool's report shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FirstResponse {
    /// The value of the header field `Server` in the first response.
    pub server: String,
    /// The length of the first response's content, in bytes.
    pub content_bytes: u64,
}

/// The times of one response, in us, and its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseRow {
    /// The intended start of the request, in us on the load's clock.
    pub intended_us: u64,
    /// The time from the intended start until the first byte was sent, in us. If the request opens
    /// a new connection, most of this time is the time to connect.
    pub connect_us: u32,
    /// The time from the first sent byte until the first byte of the response, in us.
    pub wait_us: u32,
    /// The response time: from the intended start until the complete response, in us.
    pub total_us: u32,
    pub status: u16,
}

/// The counts and times of the requests of one worker, or of all workers together.
#[derive(Debug, Clone, Default)]
pub struct ResponseTally {
    /// Times in ns from the intended start until the first byte was sent.
    pub connect_times_ns: Histogram,
    /// Times in ns from the first sent byte until the first byte of the response.
    pub wait_times_ns: Histogram,
    /// Times in ns from the first byte of the response until the last byte of the response.
    pub read_times_ns: Histogram,
    /// Service times in ns: from sending the request until the complete response.
    pub service_time: Histogram,
    /// Response times in ns: from the intended start until the complete response.
    pub response_time: Histogram,
    /// The number of responses by HTTP status.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of requests that ended without a response, for each kind of failure.
    pub failure_counts: Vec<(RequestFailure, u64)>,
    /// The number of header bytes (with status lines) of all responses.
    pub head_bytes: u64,
    /// The number of content bytes of all responses.
    pub content_bytes: u64,
    /// The number of responses whose content length differs from the content length of the first
    /// response.
    pub different_length_count: u64,
    /// The number of requests that were redirected more often than allowed, and the error text of
    /// the first such request.
    pub redirects_beyond_limit: (u64, String),
    /// The number of redirect responses that point to another server, and were therefore not
    /// followed.
    pub redirects_to_other_servers: u64,
    /// The number of responses after which the server keeps the connection open, as ab counts them:
    /// responses with the header fields `Content-Length` and `Connection: keep-alive`.
    pub keep_alive_response_count: u64,
    /// The rows of single responses. In the tally of all workers, the rows are sorted by the time
    /// at which the response ended.
    pub rows: Vec<ResponseRow>,
    /// The number of responses without a row, because `ROWS_MAX` was reached.
    pub omitted_rows: u64,
}

impl ResponseTally {
    /// Returns the number of requests that got a response.
    pub fn response_count(&self) -> u64 {
        self.response_time.count()
    }

    /// Returns the number of requests without a response that ended with the failure `failure`.
    pub fn failure_count(&self, failure: RequestFailure) -> u64 {
        self.failure_counts.iter().filter(|(other, _)| *other == failure).map(|(_, count)| count).sum()
    }

    /// Returns the number of completed requests, with or without a response.
    pub fn completed_count(&self) -> u64 {
        self.response_count()
            + self.redirects_beyond_limit.0
            + self.failure_counts.iter().map(|(_, count)| count).sum::<u64>()
    }

    /// Returns the number of responses whose status is not 2xx.
    pub fn non_2xx_response_count(&self) -> u64 {
        self.statuses.iter().filter(|(status, _)| !(200..300).contains(*status)).map(|(_, count)| count).sum()
    }

    fn add(&mut self, answer: &AuthorResponse, first: &FirstResponse, rows_max: usize) {
        let ResponseTimes { intended_ns, sent_ns, first_byte_ns, done_ns } = answer.times;
        let ns = |from: u64, to: u64| to.saturating_sub(from);
        let (connect_ns, total_ns) = (ns(intended_ns, sent_ns), ns(intended_ns, done_ns));
        self.connect_times_ns.record(connect_ns);
        self.wait_times_ns.record(ns(sent_ns, first_byte_ns));
        self.read_times_ns.record(ns(first_byte_ns, done_ns));
        self.service_time.record(ns(sent_ns, done_ns));
        self.response_time.record(total_ns);
        *self.statuses.entry(answer.status).or_default() += 1;
        self.head_bytes += answer.head.len() as u64;
        self.content_bytes += answer.content_bytes;
        self.different_length_count += u64::from(answer.content_bytes != first.content_bytes);
        let (mut stays, mut has_length) = (false, false);
        for (name, value) in answer.fields() {
            stays |= name.eq_ignore_ascii_case(b"connection") && value.eq_ignore_ascii_case(b"keep-alive");
            has_length |= name.eq_ignore_ascii_case(b"content-length");
        }
        self.keep_alive_response_count += u64::from(stays && has_length);
        if self.rows.len() < rows_max {
            let us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
            self.rows.push(ResponseRow {
                intended_us: intended_ns / 1000,
                connect_us: us(connect_ns),
                wait_us: us(ns(sent_ns, first_byte_ns)),
                total_us: us(total_ns),
                status: answer.status,
            });
        } else {
            self.omitted_rows += 1;
        }
    }

    fn merge(&mut self, other: &ResponseTally) {
        for (all, part) in [
            (&mut self.connect_times_ns, &other.connect_times_ns),
            (&mut self.wait_times_ns, &other.wait_times_ns),
            (&mut self.read_times_ns, &other.read_times_ns),
            (&mut self.service_time, &other.service_time),
            (&mut self.response_time, &other.response_time),
        ] {
            all.merge(part);
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (failure, count) in &other.failure_counts {
            self.count_failure(*failure, *count);
        }
        self.head_bytes += other.head_bytes;
        self.content_bytes += other.content_bytes;
        self.different_length_count += other.different_length_count;
        self.keep_alive_response_count += other.keep_alive_response_count;
        if self.redirects_beyond_limit.0 == 0 {
            self.redirects_beyond_limit.1.clone_from(&other.redirects_beyond_limit.1);
        }
        self.redirects_beyond_limit.0 += other.redirects_beyond_limit.0;
        self.redirects_to_other_servers += other.redirects_to_other_servers;
        self.rows.extend(&other.rows);
        self.omitted_rows += other.omitted_rows;
    }

    fn count_failure(&mut self, failure: RequestFailure, count: u64) {
        match self.failure_counts.iter_mut().find(|(other, _)| *other == failure) {
            Some((_, all)) => *all += count,
            None => self.failure_counts.push((failure, count)),
        }
    }
}

/// The data of a response log that all workers share.
struct SharedResponseLog {
    spec: ResponseLogSpec,
    first_response: OnceLock<FirstResponse>,
    tls_parameters: OnceLock<TlsParameters>,
    tallies: Mutex<Vec<Arc<Mutex<ResponseTally>>>>,
    fatal_failure: OnceLock<RequestFailure>,
    /// The Unix time in us at which the monotonic clock was 0.
    clock_start_unix_us: u64,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An author (code that writes the requests of a load) that gives every request the same bytes, and
/// counts all responses. Clones share the counts.
#[derive(Clone)]
pub struct ResponseLog(Arc<SharedResponseLog>);

impl ResponseLog {
    /// Creates an empty response log for a new load.
    pub fn new(spec: ResponseLogSpec) -> ResponseLog {
        let now_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        let clock_start_unix_us = now_us.saturating_sub(monotonic_ns() / 1000);
        let (first_response, tls_parameters, tallies, fatal_failure) = Default::default();
        ResponseLog(Arc::new(SharedResponseLog {
            spec,
            first_response,
            tls_parameters,
            tallies,
            fatal_failure,
            clock_start_unix_us,
        }))
    }

    /// Returns the sum of the tallies of all workers, with rows sorted by the time at which the
    /// response ended.
    pub fn merged_tally(&self) -> ResponseTally {
        let mut sum = ResponseTally::default();
        lock_ignoring_poison(&self.0.tallies).iter().for_each(|tally| sum.merge(&lock_ignoring_poison(tally)));
        sum.rows.sort_by_key(|row| row.intended_us + u64::from(row.total_us));
        sum
    }

    /// Returns the properties of the first response; an empty value if no response arrived.
    pub fn first_response(&self) -> FirstResponse {
        self.0.first_response.get().cloned().unwrap_or_default()
    }

    /// Returns the TLS parameters of the first connection; `None` without TLS.
    pub fn tls_parameters(&self) -> Option<&TlsParameters> {
        self.0.tls_parameters.get()
    }

    /// Returns the failure of the request that ended the load; `None` if no failure ended the load.
    pub fn fatal_failure(&self) -> Option<RequestFailure> {
        self.0.fatal_failure.get().copied()
    }

    /// Returns the Unix time in us at which the load's clock was 0.
    pub fn clock_start_unix_us(&self) -> u64 {
        self.0.clock_start_unix_us
    }
}

impl AuthorFactory for ResponseLog {
    fn create_authors(&self, _: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure> {
        let mut tallies = lock_ignoring_poison(&self.0.tallies);
        *tallies = (0..workers.max(1)).map(|_| Arc::default()).collect();
        let rows_max = if self.0.spec.keeps_rows { ROWS_MAX / tallies.len() } else { 0 };
        let hearer = |tally: &Arc<Mutex<ResponseTally>>| WorkerAuthor {
            author: Box::new(LoggingAuthor {
                shared: Arc::clone(&self.0),
                tally: Arc::clone(tally),
                rows_max,
                redirect_chains: HashMap::new(),
                last_mark: 0,
            }),
            address: None,
            abandon_reason: Arc::default(),
        };
        Ok(tallies.iter().map(hearer).collect())
    }

    fn may_continue(&self) -> ControlFlow<EarlyStopReason> {
        if let Some(passing) = &self.0.spec.on_progress {
            passing(
                lock_ignoring_poison(&self.0.tallies)
                    .iter()
                    .map(|tally| lock_ignoring_poison(tally).completed_count())
                    .sum(),
            );
        }
        match self.0.fatal_failure.get() {
            Some(failure) => {
                ControlFlow::Break(EarlyStopReason::CannotContinue(format!("a request failed ({failure:?})")))
            }
            None => ControlFlow::Continue(()),
        }
    }

    fn mark_load_ended(&self) {}
}

/// Writes the requests of one worker, and counts the responses to these requests.
struct LoggingAuthor {
    shared: Arc<SharedResponseLog>,
    /// The counts and times of this worker's requests. The thread that reports progress also locks
    /// the tally, to read the counts.
    tally: Arc<Mutex<ResponseTally>>,
    rows_max: usize,
    /// The redirect chains in progress. The key is the number (mark) of the latest request of a
    /// chain, and the value is that request.
    redirect_chains: HashMap<u64, RedirectHop>,
    /// The last number (mark) that was assigned to a request.
    last_mark: u64,
}

impl LoggingAuthor {
    /// Returns the redirect rules, the request that got the response `answer`, and the next step of
    /// the redirect chain after this response. Returns `None` if redirects are not followed.
    fn redirect_step(&self, answer: &AuthorResponse) -> Option<(&RedirectPolicy, &RedirectHop, RedirectStep)> {
        let follows = self.shared.spec.redirect_policy.as_ref()?;
        let here = self.redirect_chains.get(&answer.mark).unwrap_or(&follows.first_hop);
        // After a redirect, the request body is not sent again, because Go reads the body from a
        // stream only once.
        Some((follows, here, here.next_step(answer, &follows.origin, (follows.has_body, false))))
    }
}

impl std::fmt::Debug for LoggingAuthor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggingAuthor").field("rows_max", &self.rows_max).finish_non_exhaustive()
    }
}

impl Author for LoggingAuthor {
    fn writes_every_batch(&self) -> bool {
        false
    }

    fn has_delays(&self) -> bool {
        false
    }

    fn wants_responses(&self) -> bool {
        true
    }

    fn messages_per_batch(&self) -> u32 {
        1
    }

    fn write(&mut self, batch: &mut Batch) -> Result<(), AuthorStopReason> {
        batch.bytes.extend_from_slice(&self.shared.spec.request);
        batch.head_request_flags.push(self.shared.spec.is_head);
        Ok(())
    }

    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason> {
        Ok(0)
    }

    fn follow_redirect(&mut self, answer: &AuthorResponse, batch: &mut Batch) -> bool {
        let Some((follows, _, RedirectStep::Follow(next))) = self.redirect_step(answer) else { return false };
        if next.redirect_count >= follows.chain_requests_max {
            return false;
        }
        batch.bytes = (follows.encode_hop)(&next);
        batch.head_request_flags.push(next.method == "HEAD");
        self.redirect_chains.remove(&answer.mark);
        self.last_mark += 1;
        batch.mark = self.last_mark;
        self.redirect_chains.insert(self.last_mark, *next);
        true
    }

    fn receive_response(&mut self, answer: &AuthorResponse) -> Result<(), AuthorStopReason> {
        match self.redirect_step(answer) {
            // The load had no time left to send the next request of the redirect chain, so the
            // chain counts as a timeout.
            Some((follows, _, RedirectStep::Follow(next))) if next.redirect_count < follows.chain_requests_max => {
                lock_ignoring_poison(&self.tally).count_failure(RequestFailure::Timeout, 1);
                self.redirect_chains.remove(&answer.mark);
                return Ok(());
            }
            Some((follows, here, RedirectStep::Follow(_))) => {
                let (mut tally, why) =
                    (lock_ignoring_poison(&self.tally), here.redirect_limit_error(answer, follows.chain_requests_max));
                if tally.redirects_beyond_limit.0 == 0 {
                    tally.redirects_beyond_limit.1 = why;
                }
                tally.redirects_beyond_limit.0 += 1;
                drop(tally);
                self.redirect_chains.remove(&answer.mark);
                return Ok(());
            }
            Some((_, _, RedirectStep::OtherServer)) => {
                lock_ignoring_poison(&self.tally).redirects_to_other_servers += 1
            }
            Some((_, _, RedirectStep::End)) | None => {}
        }
        self.redirect_chains.remove(&answer.mark);
        let first = self.shared.first_response.get_or_init(|| {
            let server = answer.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"server"));
            let server = server.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap_or_default();
            FirstResponse { server, content_bytes: answer.content_bytes }
        });
        lock_ignoring_poison(&self.tally).add(answer, first, self.rows_max);
        if let Some(said) = self.shared.spec.format_response {
            output::print(&said(answer));
        }
        Ok(())
    }

    fn receive_tls_open(&mut self, agreed: &dyn Fn() -> Option<TlsParameters>) {
        if self.shared.tls_parameters.get().is_none()
            && let Some(agreed) = agreed()
        {
            self.shared.tls_parameters.get_or_init(|| agreed);
        }
    }

    fn receive_lost_response(&mut self, response: &LostResponse) {
        self.redirect_chains.remove(&response.mark);
        lock_ignoring_poison(&self.tally).count_failure(response.failure, 1);
        if self.shared.spec.ends_with_failure {
            self.shared.fatal_failure.get_or_init(|| response.failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author_answer<'a>(status: u16, head: &'a [u8], content: &'a [u8]) -> AuthorResponse<'a> {
        let times =
            ResponseTimes { intended_ns: 1_000_000, sent_ns: 1_200_000, first_byte_ns: 3_200_000, done_ns: 3_700_000 };
        AuthorResponse { status, head, content, content_bytes: content.len() as u64, mark: 0, is_last: true, times }
    }

    #[test]
    fn responses_are_counted() {
        let heard = ResponseLog::new(ResponseLogSpec {
            keeps_rows: true,
            ends_with_failure: true,
            ..ResponseLogSpec::default()
        });
        let mut authors = heard
            .create_authors(&LoadShape::Closed { users: plimsoll_model::LoadCurve::constant(2.0) }, 2)
            .expect("two");
        let head = b"HTTP/1.0 200 OK\r\nServer: s/1\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n";
        authors[0].author.receive_response(&author_answer(200, head, b"ab")).expect("goes on");
        authors[1]
            .author
            .receive_response(&author_answer(404, b"HTTP/1.0 404 No\r\nServer: t\r\n\r\n", b"abc"))
            .expect("goes on");
        assert!(heard.may_continue().is_continue());
        let times = ResponseTimes::default();
        authors[1].author.receive_lost_response(&LostResponse { mark: 0, failure: RequestFailure::Reset, times });
        assert!(heard.may_continue().is_break());
        let tally = heard.merged_tally();
        assert_eq!((tally.response_count(), tally.completed_count(), tally.non_2xx_response_count()), (2, 3, 1));
        assert_eq!((tally.different_length_count, tally.keep_alive_response_count, tally.content_bytes), (1, 1, 5));
        assert_eq!(tally.head_bytes, head.len() as u64 + 30);
        assert_eq!(
            (tally.failure_count(RequestFailure::Reset), heard.fatal_failure()),
            (1, Some(RequestFailure::Reset))
        );
        let row = ResponseRow { intended_us: 1000, connect_us: 200, wait_us: 2000, total_us: 2700, status: 200 };
        assert_eq!(tally.rows, [row, ResponseRow { status: 404, ..row }]);
        assert_eq!(heard.first_response(), FirstResponse { server: "s/1".into(), content_bytes: 2 });
        assert_eq!((tally.service_time.max_ns(), tally.read_times_ns.min_ns()), (2_500_000, 500_000));
    }
}
