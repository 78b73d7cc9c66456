//! The command `plimsoll vegeta attack`: sends requests to its targets in turn at a rate, and
//! writes a result for each request. The requests are written by an author
//! (`plimsoll_wire::Author`), which plimsoll's load generator calls for each request. The latency
//! of a result counts from the request's intended start, even if the request was sent later.
//!
//! Not here: vegeta's flags (`options`), and the formats of targets and results
//! (`plimsoll_logs::vegeta`).

use super::options::AttackOptions;
use super::output_target::{open_output, refuse_bytes_on_terminal, write_failure};
use crate::go_redirect::{RedirectHop, RedirectStep};
use crate::go_request::{GoRequest, canonical_header_name};
use crate::output;
use crate::run_command::RunCommand;
use plimsoll_logs::vegeta::{TargetBody, TargetReader, VegetaResult, VegetaTarget, VegetaWriter};
use plimsoll_model::failure::{Failure, exit};
use plimsoll_model::{EarlyStopReason, LoadShape, Origin, ParseBudget, RequestFailure};
use plimsoll_sys::files::{self, FilePurpose};
use plimsoll_sys::system_text;
use plimsoll_traffic::target_url::{Url, host_header_value};
use plimsoll_wire::{
    Author, AuthorFactory, AuthorResponse, AuthorStopReason, Batch, LostResponse, ResponseTimes, WorkerAuthor,
};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

/// The maximum number of results that wait to be written. If the queue of results is full, the
/// load's workers wait.
const QUEUED_RESULTS_MAX: usize = 100_000;

/// The maximum memory for targets that are read before the attack, in bytes (512 MiB).
const TARGETS_MEMORY_BYTES_MAX: usize = 512 << 20;
/// The estimated memory of a target in addition to its URL and body, in bytes.
const TARGET_OVERHEAD_BYTES: usize = 1_024;

/// The error text for a request that got no response before its timeout.
const TIMEOUT_ERROR_TEXT: &str = "no response within the timeout";

/// A target that is ready to be sent: its URL is parsed, and its body is read from the body file.
#[derive(Debug)]
struct ReadyTarget {
    target: VegetaTarget,
    first_hop: RedirectHop,
    origin: Origin,
    body: Vec<u8>,
}

impl ReadyTarget {
    /// Encodes one request of a redirect chain. `seq` is the number of the request in the attack,
    /// and `name` is the name of the attack.
    fn encode_request(&self, hop: &RedirectHop, seq: u64, name: &str, keep_alive: bool) -> Vec<u8> {
        let mut headers = self.target.headers.clone();
        if !name.is_empty() {
            headers.push(("X-Vegeta-Attack".to_owned(), name.to_owned()));
        }
        headers.push(("X-Vegeta-Seq".to_owned(), seq.to_string()));
        GoRequest {
            method: &hop.method,
            path: &hop.path,
            host: &hop.host,
            headers: &hop.headers(&headers),
            body: if hop.has_dropped_body { b"" } else { &self.body },
            accepts_gzip: true,
            keep_alive,
        }
        .encode()
    }
}

/// The source of an attack's targets: a list that was read before the attack, or a file that is
/// read during the attack.
struct TargetSource {
    reader: TargetReader<Box<dyn BufRead + Send>>,
    place: String,
    /// The targets to which requests are sent in turn. With `lazy`, the list contains only the
    /// target that was read before the attack.
    ready_targets: Vec<Arc<ReadyTarget>>,
    /// If true, targets are read during the attack; otherwise all targets are read before the
    /// attack. An attack that reads targets during the attack ends when the file of targets ends.
    lazy: bool,
    host: String,
    options: AttackOptions,
}

/// The state of an attack that all workers share.
struct AttackState {
    targets: Mutex<TargetSource>,
    seq: AtomicU64,
    /// The Unix time in ns at which the monotonic clock was 0.
    clock_start_unix_ns: u64,
    failure: Mutex<Option<String>>,
    sink: mpsc::SyncSender<VegetaResult>,
    redirects: AtomicU64,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TargetSource {
    /// Returns the target of request number `seq`; `None` if there are no more targets.
    fn target_for_request(&mut self, seq: u64) -> Result<Option<Arc<ReadyTarget>>, String> {
        match self.ready_targets.len() as u64 {
            count if !self.lazy && count > 0 => Ok(Some(Arc::clone(&self.ready_targets[(seq % count) as usize]))),
            // With `lazy`, the first target was read before the attack, and later targets are read
            // from the file.
            count if self.lazy && seq < count => Ok(Some(Arc::clone(&self.ready_targets[seq as usize]))),
            _ => self.read_next_target(),
        }
    }

    fn read_next_target(&mut self) -> Result<Option<Arc<ReadyTarget>>, String> {
        let place = &self.place;
        let Some(mut target) = self.reader.next_target().map_err(|error| format!("{place}: {error}"))? else {
            return Ok(None);
        };
        let url = Url::parse(&target.url).map_err(|failure| format!("{place}: {failure}"))?;
        let host = format!("{}://{}:{}", url.origin.scheme, url.origin.host, url.origin.port);
        if self.host.is_empty() {
            self.host = host;
        } else if self.host != host {
            return Err(format!(
                "{place}: the server is '{host}', but the first target has '{first_host}': all targets of an attack \
                 must have the same server",
                first_host = self.host
            ));
        }
        let read = |path: &str| {
            files::read(path.as_ref(), FilePurpose::Body).map_err(|why| format!("{place}: '{path}' {why}"))
        };
        let body = match (&target.body, &self.options.body) {
            (TargetBody::Bytes(bytes), _) => bytes.clone(),
            (TargetBody::File(path), _) => read(path)?,
            (TargetBody::Unspecified, Some(path)) => read(path)?,
            (TargetBody::Unspecified, None) => Vec::new(),
        };
        // The header fields that the user set for all targets come before the header fields of this
        // target.
        target.headers.splice(..0, self.options.headers.iter().cloned());
        target.headers.extend(url.authorization.map(|value| ("Authorization".to_owned(), value)));
        let given = target.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let written = target.url.split("://").nth(1).unwrap_or_default().split(['/', '?', '#']).next();
        let written = written.unwrap_or_default().rsplit('@').next().unwrap_or_default();
        // A host name with non-ASCII characters is sent in its ASCII form (punycode), as in the DNS
        // lookup.
        let in_ascii = host_header_value(&url.origin);
        let written = if written.is_ascii() { written } else { in_ascii.as_str() };
        let host = given.map_or(written, |(_, value)| value.as_str()).to_owned();
        let first = RedirectHop::first_hop(&target.method, &target.url, &url.path, &host);
        Ok(Some(Arc::new(ReadyTarget { target, first_hop: first, origin: url.origin, body })))
    }
}

/// Writes the requests of one worker, and sends a result for each request to the thread that writes
/// the output.
struct AttackAuthor {
    shared: Arc<AttackState>,
    /// The requests in flight, by the number of the request.
    in_flight: HashMap<u64, AttackRequestInFlight>,
}

/// A request in flight. If the request was redirected, `hop` is the current request of its redirect
/// chain.
struct AttackRequestInFlight {
    target: Arc<ReadyTarget>,
    hop: Option<RedirectHop>,
}

impl std::fmt::Debug for AttackAuthor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attacker").field("open", &self.in_flight.len()).finish_non_exhaustive()
    }
}

impl AttackAuthor {
    fn record_failure(&self, why: String) -> AuthorStopReason {
        lock_ignoring_poison(&self.shared.failure).get_or_insert(why);
        AuthorStopReason::Failed
    }

    fn send_result(&self, mut result: VegetaResult, times: ResponseTimes, mark: u64) -> Result<(), AuthorStopReason> {
        result.seq = mark;
        result.sent_ns = self.shared.clock_start_unix_ns + times.intended_ns;
        result.latency_ns = times.done_ns.saturating_sub(times.intended_ns);
        result.attack.clone_from(&lock_ignoring_poison(&self.shared.targets).options.name);
        self.shared.sink.send(result).map_err(|_| AuthorStopReason::Requested)
    }

    /// Returns the maximum number of redirects, and the next step of the redirect chain after the
    /// response `answer`. Returns `None` if redirects are not followed.
    fn next_redirect_step(&self, answer: &AuthorResponse) -> Option<(u64, RedirectStep)> {
        let redirects_max = lock_ignoring_poison(&self.shared.targets).options.redirects_max?;
        let AttackRequestInFlight { target: ready, hop } = self.in_flight.get(&answer.mark)?;
        let here = hop.as_ref().unwrap_or(&ready.first_hop);
        Some((redirects_max, here.next_step(answer, &ready.origin, (!ready.body.is_empty(), true))))
    }

    /// Removes a request from the requests in flight. The returned result has only the request's
    /// method, URL and body size; the caller adds the outcome of the request.
    fn remove_open_request(&mut self, mark: u64) -> VegetaResult {
        let Some(AttackRequestInFlight { target: ready, .. }) = self.in_flight.remove(&mark) else {
            return VegetaResult::default();
        };
        VegetaResult {
            method: ready.target.method.clone(),
            url: ready.target.url.clone(),
            bytes_out: ready.body.len() as u64,
            ..VegetaResult::default()
        }
    }
}

impl Author for AttackAuthor {
    fn writes_every_batch(&self) -> bool {
        true
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
        let mut targets = lock_ignoring_poison(&self.shared.targets);
        let seq = self.shared.seq.fetch_add(1, Ordering::Relaxed);
        let found = targets.target_for_request(seq);
        let (name, keep_alive) = (targets.options.name.clone(), targets.options.keep_alive);
        drop(targets);
        let ready = found.map_err(|why| self.record_failure(why))?.ok_or(AuthorStopReason::Requested)?;
        batch.bytes = ready.encode_request(&ready.first_hop, seq, &name, keep_alive);
        batch.head_request_flags.push(ready.target.method == "HEAD");
        batch.mark = seq;
        self.in_flight.insert(seq, AttackRequestInFlight { target: ready, hop: None });
        Ok(())
    }

    fn delay_ns(&mut self) -> Result<u64, AuthorStopReason> {
        Ok(0)
    }

    fn follow_redirect(&mut self, answer: &AuthorResponse, batch: &mut Batch) -> bool {
        let Some((redirects_max, RedirectStep::Follow(next))) = self.next_redirect_step(answer) else { return false };
        let Some(open) = self.in_flight.get_mut(&answer.mark).filter(|_| next.redirect_count <= redirects_max) else {
            return false;
        };
        let targets = lock_ignoring_poison(&self.shared.targets);
        batch.bytes = open.target.encode_request(&next, answer.mark, &targets.options.name, targets.options.keep_alive);
        batch.head_request_flags.push(next.method == "HEAD");
        batch.mark = answer.mark;
        open.hop = Some(*next);
        true
    }

    fn receive_response(&mut self, answer: &AuthorResponse) -> Result<(), AuthorStopReason> {
        let unfinished = match self.next_redirect_step(answer) {
            Some((redirects_max, RedirectStep::Follow(next))) => {
                let open = self.in_flight.get(&answer.mark).filter(|_| next.redirect_count > redirects_max);
                let here = open.map(|open| open.hop.as_ref().unwrap_or(&open.target.first_hop));
                Some(here.map(|here| here.redirect_limit_error(answer, redirects_max)))
            }
            Some((_, RedirectStep::OtherServer)) => {
                self.shared.redirects.fetch_add(1, Ordering::Relaxed);
                None
            }
            Some((_, RedirectStep::End)) | None => None,
        };
        let begun = self.remove_open_request(answer.mark);
        if let Some(refusal) = unfinished {
            // If `refusal` has no error text, the redirect was valid, but the load had no time left
            // to send the next request.
            let error = refusal.unwrap_or_else(|| format!("{} \"{}\": {TIMEOUT_ERROR_TEXT}", begun.method, begun.url));
            return self.send_result(VegetaResult { error, bytes_out: 0, ..begun }, answer.times, answer.mark);
        }
        let mut headers: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in answer.fields() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (name, value) = (canonical_header_name(&text(name)), text(value));
            match headers.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => values.push(value),
                None => headers.push((name, vec![value])),
            }
        }
        // As in vegeta, the error text of an unsuccessful response is its status line.
        let line = answer.head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line =
            String::from_utf8_lossy(line).trim().split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned());
        let error = if (200..400).contains(&answer.status) { String::new() } else { line };
        let body_max = lock_ignoring_poison(&self.shared.targets).options.body_bytes_max;
        let body = answer.content[..answer.content.len().min(body_max)].to_vec();
        let (code, bytes_in) = (answer.status, body.len() as u64);
        let result = VegetaResult { code, bytes_in, error, body, headers, ..begun };
        self.send_result(result, answer.times, answer.mark)
    }

    fn receive_lost_response(&mut self, lost: &LostResponse) {
        let begun = self.remove_open_request(lost.mark);
        let what = match lost.failure {
            RequestFailure::Timeout => TIMEOUT_ERROR_TEXT,
            RequestFailure::Connect => "connection refused",
            RequestFailure::Reset => "connection reset by peer",
            RequestFailure::ClosedEarly => "EOF",
            RequestFailure::Tls => "TLS handshake failed",
            _ => "malformed HTTP response",
        };
        let error = format!("{} \"{}\": {what}", begun.method, begun.url);
        // A failure to send the result is ignored. The sending fails only if the thread that
        // receives results has ended.
        let _ = self.send_result(VegetaResult { error, ..begun }, lost.times, lost.mark);
    }
}

/// Creates the authors of an attack, one for each worker.
struct AttackAuthorFactory(Arc<AttackState>);

impl AuthorFactory for AttackAuthorFactory {
    fn create_authors(&self, _: &LoadShape, workers: u32) -> Result<Vec<WorkerAuthor>, Failure> {
        let attacker = |_| WorkerAuthor {
            author: Box::new(AttackAuthor { shared: Arc::clone(&self.0), in_flight: HashMap::new() }),
            address: None,
            abandon_reason: Arc::default(),
        };
        Ok((0..workers.max(1)).map(attacker).collect())
    }

    fn may_continue(&self) -> ControlFlow<EarlyStopReason> {
        match &*lock_ignoring_poison(&self.0.failure) {
            Some(why) => ControlFlow::Break(EarlyStopReason::CannotContinue(why.clone())),
            None => ControlFlow::Continue(()),
        }
    }

    fn mark_load_ended(&self) {}
}

/// Reads a file in a separate thread. A worker thread cannot read the file, because each worker
/// thread has its own table of open files, which lacks files that other threads opened.
struct ThreadReader {
    chunks: mpsc::Receiver<std::io::Result<Vec<u8>>>,
    current: Vec<u8>,
    at: usize,
}

/// The maximum number of bytes in one chunk that the thread reads.
const CHUNK_BYTES: usize = 64 << 10;
/// The maximum number of chunks that the thread reads ahead.
const CHUNKS_AHEAD: usize = 4;

impl ThreadReader {
    fn spawn(mut from: Box<dyn Read + Send>) -> Result<ThreadReader, Failure> {
        let (sender, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
        let read = move || loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let read = match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => {
                    chunk.truncate(length);
                    Ok(chunk)
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_over = read.is_err();
            if sender.send(read).is_err() || is_over {
                return;
            }
        };
        let started = std::thread::Builder::new().name("targets".into()).spawn(read);
        started.map_err(|error| {
            Failure::cannot_start(format!(
                "-targets: no thread could be started to read the targets: {reason}",
                reason = system_text(&error)
            ))
        })?;
        Ok(ThreadReader { chunks, current: Vec::new(), at: 0 })
    }
}

impl Read for ThreadReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.current.len() {
            match self.chunks.recv() {
                Ok(chunk) => (self.current, self.at) = (chunk?, 0),
                Err(_) => return Ok(0),
            }
        }
        let length = buffer.len().min(self.current.len() - self.at);
        buffer[..length].copy_from_slice(&self.current[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// Executes an attack, and writes each result when it arrives. Returns the exit code.
pub fn run_attack(options: AttackOptions, run: &dyn RunCommand) -> Result<u8, Failure> {
    refuse_bytes_on_terminal(options.encoding, options.output.as_deref())?;
    let from: Box<dyn Read + Send> = match &options.targets {
        None => Box::new(std::io::stdin()),
        Some(path) => {
            let opened = File::open(path);
            let cannot = |error| {
                Failure::usage(format!("-targets: '{path}' cannot be read: {reason}", reason = system_text(&error)))
            };
            Box::new(opened.map_err(cannot)?)
        }
    };
    let from: Box<dyn BufRead + Send> = match options.is_lazy {
        true => Box::new(BufReader::new(ThreadReader::spawn(from)?)),
        false => Box::new(BufReader::new(from)),
    };
    let mut targets = TargetSource {
        reader: TargetReader::new(from, options.format),
        place: format!("-targets: '{}'", options.targets.as_deref().unwrap_or("stdin")),
        ready_targets: Vec::new(),
        lazy: options.is_lazy,
        host: String::new(),
        options: options.clone(),
    };
    let mut room = ParseBudget::new(TARGETS_MEMORY_BYTES_MAX);
    while let Some(target) = targets.read_next_target().map_err(Failure::usage)? {
        let bytes = target.body.len() + target.target.url.len() + TARGET_OVERHEAD_BYTES;
        let is_beyond = room.spend_bytes(bytes).is_err();
        targets.ready_targets.push(target);
        if options.is_lazy {
            break;
        }
        if is_beyond {
            let count = targets.ready_targets.len();
            return Err(Failure::usage(format!(
                "-targets: the first {count} targets take more than {limit_mib} MiB with their bodies: give fewer \
                 targets, or add -lazy",
                limit_mib = TARGETS_MEMORY_BYTES_MAX >> 20
            )));
        }
    }
    let Some(first) = targets.ready_targets.first() else {
        return Err(Failure::usage("-targets: the list of targets is empty"));
    };
    plimsoll_sys::signal::catch_stop_signals();
    let line = options.run_arguments(&first.target.url);
    let (out, name) = open_output(options.output.as_deref())?;
    let (mut question, settings) = run.parse(&line)?;
    // After the attack, the load waits for outstanding responses, at most as long as the timeout of
    // a request.
    question.plan.load.grace_ns = options.timeout_ns;
    let (sink, results) = mpsc::sync_channel::<VegetaResult>(QUEUED_RESULTS_MAX);
    let writer = VegetaWriter::new(options.encoding);
    let writing = std::thread::spawn(move || write_results(out, &name, writer, &results));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let shared = Arc::new(AttackState {
        targets: Mutex::new(targets),
        seq: AtomicU64::new(0),
        clock_start_unix_ns: now.saturating_sub(plimsoll_sys::clock::monotonic_ns()),
        failure: Mutex::default(),
        sink,
        redirects: AtomicU64::new(0),
    });
    let measured = run.execute_load(question, &settings, Some(Arc::new(AttackAuthorFactory(Arc::clone(&shared)))))?;
    let failed = lock_ignoring_poison(&shared.failure).take();
    let redirects = shared.redirects.load(Ordering::Relaxed);
    let limited = measured.is_generator_limited();
    drop((measured, shared));
    writing.join().map_err(|_| Failure::cannot_start("the results could not be written"))??;
    if redirects > 0 {
        output::print_to_stderr(&format!(
            "warning: {redirects} responses redirect to another server, and plimsoll does not follow these redirects"
        ));
    }
    if limited {
        output::print_to_stderr(
            "warning: plimsoll was the limit of this attack, not the server: the latencies include time spent in \
             plimsoll",
        );
    }
    // As in vegeta, an attack that ^C ended counts as a success.
    failed.map_or(Ok(exit::SUCCESS), |why| Err(Failure::usage(why)))
}

/// Writes results when they arrive, until all senders of the channel have been dropped. Returns an
/// error if the output cannot be written.
fn write_results(
    out: Box<dyn Write + Send>,
    name: &str,
    mut writer: VegetaWriter,
    results: &mpsc::Receiver<VegetaResult>,
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| write_failure(name, &error);
    let (mut out, mut line) = (BufWriter::new(out), Vec::new());
    while let Ok(first) = results.recv() {
        // All results that have arrived by now are written together, before one flush.
        for result in std::iter::once(first).chain(results.try_iter()) {
            line.clear();
            writer.write(&result, &mut line);
            out.write_all(&line).map_err(cannot)?;
        }
        out.flush().map_err(cannot)?;
    }
    Ok(())
}
