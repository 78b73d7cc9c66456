//! Tests of the observed loads against the laws of queues and the behaviour of threads. The answers
//! to the features (questions about the server) use the results of these tests. Each test is a pure
//! function of the facts about a server ([`ServerFacts`]). A result of `None` means that an input
//! was not observed.
//!
//! Not here: the conclusions from the results (`causes`).

use super::server_facts::ServerFacts;
use super::signals::{LoadSignals, Signal};
use super::thresholds::{
    BUSY_RESOURCE_IN_SERVICE_MIN, CLEARLY_MORE_FACTOR_MIN, CONSIDERABLE_SHARE_MIN, COUNT_ABOVE_CHANCE_MIN,
    DIFFERENCE_SHARE_MAX, EXHAUSTED_SHARE_MIN, INTERFERENCE_CORES_MIN, LATE_CONNECT_NS_MIN, MANY_FAILURES_SHARE_MIN,
    MOST_SHARE_MIN, NOTICEABLE_SHARE_MIN, ONE_CORE_RANGE, PORTS_EXHAUSTED_SHARE_MIN, QUEUE_GROWTH_FACTOR_MIN,
    RECEIVE_WINDOW_BYTES, RISEN_FACTOR_MIN, SLOWER_FACTOR_MIN, SMALL_SHARE_MAX, SUSTAINED_GAIN_MIN,
    THREAD_COUNT_DIFFERENCE_SHARE_MAX, TWOFOLD_FACTOR,
};
use crate::find::StopReason;

/// Returns whether two counts differ by at most the share `within` of the second count.
fn is_nearly_equal(count: f64, other: f64, within: f64) -> bool {
    other > 0.0 && (count / other - 1.0).abs() <= within
}

/// Returns the increase of a signal from the low load to the load above the load line.
fn signal_increase(case: &ServerFacts, signal: Signal) -> Option<f64> {
    Some(case.past.get(signal)? - case.low.get(signal)?)
}

/// Returns whether the maximum of a signal at the load line and above reaches `least`. The maximum
/// of the signal must also be at least `times` the value at the low load.
pub(super) fn signal_rises_and_reaches(case: &ServerFacts, signal: Signal, times: f64, least: f64) -> Option<bool> {
    let top = case.max_at_high_load(signal)?;
    Some(top >= least && top >= times * case.low.get(signal).unwrap_or(0.0))
}

/// Returns whether plimsoll was the limit, not the server. plimsoll does not count as the limit if
/// the server on the same machine took the cores that plimsoll needed.
pub(super) fn plimsoll_was_the_limit(case: &ServerFacts) -> bool {
    let of = |sight: &LoadSignals| {
        let crowded_out = server_takes_cores_from_plimsoll(sight).unwrap_or(false);
        sight.limited.is_some() && sight.disturbed.is_none() && !crowded_out
    };
    let here = of(&case.line) || of(&case.past) && case.upper_rps.is_none();
    let whole = case.stopped_by == StopReason::GeneratorLimited && case.line.disturbed.is_none();
    let reads = !case.line.read_by_others && is_client_window_full(case).unwrap_or(false);
    whole
        || here
        || reads && case.has_no_saturated_resource() == Some(true) && case.has_throughput_plateau() == Some(true)
}

/// Returns whether plimsoll was late only because the server saturated the cores of plimsoll's
/// machine.
fn server_takes_cores_from_plimsoll(signals: &LoadSignals) -> Option<bool> {
    let cores = signals.get(Signal::Cores)?;
    let (idle, ours) = (signals.get(Signal::Idle)?, signals.get(Signal::ClientCores)?);
    let is_busy = signals.get(Signal::Generator)? >= 1.0 - NOTICEABLE_SHARE_MIN;
    Some(
        idle <= SMALL_SHARE_MAX * cores
            && ours <= CONSIDERABLE_SHARE_MIN * cores
            && !is_busy
            && signals.get(Signal::ServerCores)? >= ours,
    )
}

/// Returns whether plimsoll's own limit of connections limits the throughput. Either of two signs
/// shows too few connections. First sign: as many requests are in service as plimsoll allows in
/// flight. Second sign: plimsoll could not send some requests, although the sent requests were as
/// fast as a request alone. If arrivals are random, some requests find all connections in use long
/// before all connections are always in use.
pub(super) fn is_limited_by_plimsoll_connections(case: &ServerFacts) -> Option<bool> {
    let most = case.past.under_way_max;
    let in_flight = case.past.get(Signal::InFlight)?;
    let all = in_flight >= (1.0 - SMALL_SHARE_MAX) * most
        && is_nearly_equal(case.best_rps * case.alone_ns? / 1e9, most, DIFFERENCE_SHARE_MAX);
    let as_alone = case.past.get(Signal::Service)? <= (1.0 + NOTICEABLE_SHARE_MIN) * case.alone_ns?;
    let unsent = case.past.unsent_share;
    let expected = erlang_loss_share(most, in_flight / (1.0 - unsent).max(SMALL_SHARE_MAX));
    let lost = unsent >= MANY_FAILURES_SHARE_MIN
        && as_alone
        && (in_flight >= MOST_SHARE_MIN * most || unsent <= RISEN_FACTOR_MIN * expected);
    Some(most >= 1.0 && (all || lost))
}

/// Returns the share of random arrivals, 0..=1, that find all `connections` in use, such as all
/// connections (Erlang's loss formula B). `offered`: the mean number of places in use if the number
/// of places had no limit.
fn erlang_loss_share(connections: f64, offered: f64) -> f64 {
    let mut lost = 1.0;
    let mut count = 1.0;
    while count <= connections {
        lost = offered * lost / (count + offered * lost);
        count += 1.0;
    }
    lost
}

/// Returns whether other processes used cores that the server's threads waited for, at the load
/// line or above. The result is true only if no core is idle and threads of the server wait for a
/// core. The other processes must also use a noticeable number of cores, in absolute terms and
/// compared with the server. A server with a saturated thread lacks no core, so the result is false
/// for such a server.
///
/// Returns `None` if the CPU use of other processes grew with the load, because these processes may
/// work for the server. Also returns `None` if the server's threads together used about one core at
/// the load line: the threads may lack cores, or take turns.
pub(super) fn other_processes_take_needed_cores(case: &ServerFacts) -> Option<bool> {
    let low = case.low.get(Signal::Others);
    let of = |sight: &LoadSignals| {
        let (cores, taken, others) =
            (sight.get(Signal::Cores)?, sight.cores_taken_by_others()?, sight.get(Signal::Others)?);
        let much = taken >= INTERFERENCE_CORES_MIN
            && taken >= NOTICEABLE_SHARE_MIN * sight.get(Signal::ServerCores).unwrap_or(0.0);
        let waits = sight.get(Signal::RunQueue).is_none_or(|waiting| waiting >= CONSIDERABLE_SHARE_MIN);
        let is_so = much && waits && sight.get(Signal::Idle)? <= SMALL_SHARE_MAX * cores.max(TWOFOLD_FACTOR);
        let is_own = others >= INTERFERENCE_CORES_MIN && low.is_some_and(|low| others >= RISEN_FACTOR_MIN * low);
        if is_so && is_own { None } else { Some(is_so) }
    };
    let is_taken = [&case.line, &case.past].into_iter().filter_map(of).reduce(|a, b| a || b)?;
    match is_taken {
        true if case.is_thread_saturated() == Some(true) => Some(false),
        true if uses_one_core_at_line(case) => None,
        _ => Some(is_taken),
    }
}

/// Returns whether the server reached its limit of open files. Returns `None` if the server had
/// reached this limit already at the low load, because the open files may belong to idle
/// connections. For example, plimsoll opens many connections while the server processes the backlog
/// of an earlier load.
pub(super) fn is_file_limit_reached(case: &ServerFacts) -> Option<bool> {
    let is_used_up_at_low = case.low.get(Signal::Files)? >= EXHAUSTED_SHARE_MIN;
    let is_used_up = case.signal_reaches(Signal::Files, EXHAUSTED_SHARE_MIN)?;
    (!is_used_up || !is_used_up_at_low).then_some(is_used_up)
}

/// Returns whether plimsoll or the server found no free local port for a new connection. Either of
/// two signs shows a lack of ports. First sign: a connection of plimsoll failed because no local
/// port was free. Second sign: nearly all ports are in TIME-WAIT, and requests fail.
pub(super) fn are_local_ports_exhausted(case: &ServerFacts) -> bool {
    let ours = case.line.no_port + case.past.no_port > 0;
    let fails = || case.signal_reaches(Signal::Failed, MANY_FAILURES_SHARE_MIN).unwrap_or(false);
    let asks = !case.line.peers.is_empty() || !case.past.peers.is_empty();
    let rise = asks
        && signal_rises_and_reaches(case, Signal::TimeWait, TWOFOLD_FACTOR, PORTS_EXHAUSTED_SHARE_MIN) == Some(true)
        && fails();
    // Ports stay in TIME-WAIT for a minute, so the ports that the search used are missing in the
    // first load after the search. Requests fail at the first load after the search, or at the next
    // load that needs more ports.
    let first = [&case.low, &case.half, &case.line].into_iter().find(|it| it.get(Signal::TimeWait).is_some());
    let stay = first.is_some_and(|sight| {
        let reaches = |signal: Signal, least: f64| sight.get(signal).is_some_and(|value| value >= least);
        let is_failing = reaches(Signal::Failed, MANY_FAILURES_SHARE_MIN) || fails();
        reaches(Signal::TimeWait, EXHAUSTED_SHARE_MIN) && is_failing && sight.opened > 0
    });
    ours || rise || stay
}

/// Returns whether new connections wait or fail while requests on open connections are as fast as a
/// request alone. The server must have idle capacity, because a saturated server also accepts
/// connections late.
pub(super) fn new_connections_wait_or_fail(case: &ServerFacts) -> Option<bool> {
    let waits = requests_wait_for_accept(case).unwrap_or(false);
    // Connections may also be opened late before the load, without a request that waits for them.
    // So the responses of the same load must be late, too.
    let is_late = |sight: &&LoadSignals| {
        sight.get(Signal::Connect).is_some_and(|ns| ns >= LATE_CONNECT_NS_MIN)
            && sight.get(Signal::P99).is_none_or(|ns| ns >= LATE_CONNECT_NS_MIN)
    };
    let late = [&case.line, &case.past].iter().any(is_late);
    let failed = case.signal_reaches(Signal::ConnectFailed, MANY_FAILURES_SHARE_MIN).unwrap_or(false);
    // A load that opens all its connections at its start may overflow a short accept queue even at
    // a low rate.
    let none_turned_away = case.low.get(Signal::ListenOverflows) == Some(0.0);
    let before = case.low.get(Signal::Connect).is_some_and(|ns| ns >= LATE_CONNECT_NS_MIN) && !none_turned_away;
    case.max_at_high_load(Signal::Connect)
        .or(case.max_at_high_load(Signal::ConnectFailed))
        .or(case.max_at_high_load(Signal::Unaccepted))?;
    let alone_ns = case.alone_ns.or(case.low.get(Signal::Service));
    let service_ns = case.past.get(Signal::Service).or(case.line.get(Signal::Service));
    let as_fast = service_ns.zip(alone_ns).is_none_or(|(ns, alone_ns)| ns <= TWOFOLD_FACTOR * alone_ns);
    let is_idle = case.requests_in_service().is_some_and(|count| count < BUSY_RESOURCE_IN_SERVICE_MIN);
    let is_busy = case.signal_reaches(Signal::FullestThread, 1.0 - NOTICEABLE_SHARE_MIN).unwrap_or(false)
        || case.are_cores_saturated().unwrap_or(false)
        || case.is_quota_exhausted().unwrap_or(false)
        || threads_wait_for_pipe_reader(case).unwrap_or(false);
    Some((waits || late || failed) && !before && (as_fast || is_idle) && !is_busy)
}

/// Returns whether half of the requests in flight wait until the server accepts their connection,
/// while hardly any request is in service.
pub(super) fn requests_wait_for_accept(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::Unaccepted)?, case.past.get(Signal::Unaccepted)?);
    let in_flight = case.past.get(Signal::InFlight)?;
    Some(
        past >= COUNT_ABOVE_CHANCE_MIN
            && past >= MOST_SHARE_MIN * in_flight
            && low <= SMALL_SHARE_MAX * past
            && case.requests_in_service()? < BUSY_RESOURCE_IN_SERVICE_MIN,
    )
}

/// Returns whether a low load breaks the SLO although no thread of the server is busy.
pub(super) fn breaks_slo_without_busy_thread(case: &ServerFacts) -> Option<bool> {
    let is_busy = case.low.get(Signal::FullestThread).is_some_and(|share| share >= 1.0 - CONSIDERABLE_SHARE_MIN);
    Some(case.breaks_slo_at_low_load()? && !is_busy)
}

/// Returns whether all cores that the server may use are saturated. The result is true for a server
/// that saturates the cores that the server is bound to. The result is also true for a server whose
/// threads wait for a core although other cores are idle.
pub(super) fn allowed_cores_are_saturated(case: &ServerFacts) -> Option<bool> {
    let allowed = case.are_bound_cores_saturated();
    let held = is_limited_to_whole_cores(case);
    [allowed, held].into_iter().flatten().reduce(|a, b| a || b)
}

fn is_limited_to_whole_cores(case: &ServerFacts) -> Option<bool> {
    let used = case.max_at_high_load(Signal::ServerCores)?;
    let whole = |used: f64| used.round() >= 1.0 && is_nearly_equal(used, used.round(), SMALL_SHARE_MAX);
    let most = case.best_closed_load().and_then(|sight| sight.get(Signal::ServerCores));
    let waiting = case.max_at_high_load(Signal::RunQueue)?;
    let for_each_other = signal_increase(case, Signal::InLock).unwrap_or(0.0);
    let in_turn = threads_run_one_at_a_time(case)? && has_shared_interpreter(case);
    // If cores are nearly saturated, `by_chance` threads wait for a core even without a limit on
    // the server's cores.
    let by_chance = [&case.line, &case.past].into_iter().filter_map(threads_waiting_by_chance).reduce(f64::max)?;
    let waits = waiting >= by_chance + MOST_SHARE_MIN && for_each_other < waiting;
    Some(whole(used) && most.is_none_or(whole) && waits && !in_turn && case.has_idle_cores()?)
}

/// Returns whether garbage collection runs in parallel to requests on cores that are otherwise
/// idle.
pub(super) fn gc_runs_on_idle_cores(case: &ServerFacts) -> bool {
    let beside = case.past.collects_beside || case.line.collects_beside;
    let full = case.is_thread_saturated() == Some(true) || case.has_idle_cores() != Some(true);
    let in_turn = allowed_cores_are_saturated(case) == Some(true) || threads_run_one_at_a_time(case) == Some(true);
    beside && !full && !in_turn
}

/// Returns the number of threads that wait by chance for a core if the cores are as busy as in this
/// load. The result is the mean queue length Lq of M/M/c by Sakasegawa's approximation (Ann. Inst.
/// Stat. Math. 29, 1977).
fn threads_waiting_by_chance(signals: &LoadSignals) -> Option<f64> {
    let (idle, cores) = (signals.get(Signal::Idle)?, signals.get(Signal::Cores)?);
    let busy = (1.0 - idle / cores).clamp(0.0, 1.0 - MANY_FAILURES_SHARE_MIN);
    Some(busy.powf((2.0 * (cores + 1.0)).sqrt()) / (1.0 - busy))
}

/// Returns whether the server's threads run one at a time: several threads use one core in total,
/// no thread is saturated, and cores are idle. If the server's interpreter runs one thread at a
/// time, other processes may use the idle cores. Returns `None` if the requests may take turns at a
/// single connection to a dependency.
pub(super) fn threads_run_one_at_a_time(case: &ServerFacts) -> Option<bool> {
    let is_single = case.main_dependency().is_some_and(|(_, count)| (count - 1.0).abs() < MOST_SHARE_MIN);
    if is_single && has_fixed_dependency_connections(case) == Some(true) {
        return None;
    }
    let used = case.max_at_high_load(Signal::ServerCores)?;
    let waits = case.max_at_high_load(Signal::RunQueue).unwrap_or(0.0);
    // Threads that are woken but find the lock taken again also count as threads that wait for a
    // core.
    let in_turn = waits < MOST_SHARE_MIN
        || case.past.get(Signal::InLock).is_some_and(|waiting| waiting >= TWOFOLD_FACTOR * waits);
    let many = case.max_at_high_load(Signal::Threads)? >= RISEN_FACTOR_MIN;
    // A server that responds to all requests is not saturated, however many cores it uses.
    let is_saturated = case.has_throughput_plateau() != Some(false);
    Some(
        is_saturated
            && ONE_CORE_RANGE.contains(&used)
            && in_turn
            && many
            && !case.is_thread_saturated()?
            && (case.has_idle_cores()? || interpreter_uses_one_core(case)?),
    )
}

/// Returns whether the server is an interpreter that runs one thread at a time and uses one core,
/// also at the load line. The machine must also have idle cores, or cores that would be idle if
/// other processes did not compute.
fn interpreter_uses_one_core(case: &ServerFacts) -> Option<bool> {
    let idle = case.min_at_high_load(Signal::Idle)? + case.min_at_high_load(Signal::Others)?;
    Some(has_shared_interpreter(case) && uses_one_core_at_line(case) && idle >= MOST_SHARE_MIN)
}

/// Returns whether the server uses about one core at the load line.
fn uses_one_core_at_line(case: &ServerFacts) -> bool {
    case.line.get(Signal::ServerCores).is_some_and(|used| ONE_CORE_RANGE.contains(&used))
}

/// Names of processes, by kind of program (`programs.tsv`). The name of a process changes the
/// probability of a cause, but never decides alone which cause is named.
const PROGRAM_NAMES_TSV: &str = include_str!("programs.tsv");

/// Returns whether a process is a program of the kind `kind`, by its name or by the name of its
/// interpreter. A script that is started by its own name appears as `flask (python3.12)`.
fn is_program(kind: &str, process: &str) -> bool {
    let (name, program) = process.trim_end_matches(')').split_once(" (").unwrap_or((process, process));
    // Names of Python builds without a lock around the interpreter end in t (PEP 703).
    if kind == "interpreter" && program.starts_with("python3.") && program.ends_with('t') {
        return false;
    }
    let known = PROGRAM_NAMES_TSV.lines().filter_map(|line| line.split_once('\t')).filter(|(of, _)| *of == kind);
    known.into_iter().any(|(_, known)| name.starts_with(known) || program.starts_with(known))
}

fn server_process_name(case: &ServerFacts) -> &str {
    case.past.server.as_deref().or(case.line.server.as_deref()).unwrap_or_default()
}

/// Returns whether the server's threads share one interpreter that runs one thread at a time, by
/// the name of the process.
pub(super) fn has_shared_interpreter(case: &ServerFacts) -> bool {
    is_program("interpreter", server_process_name(case))
}

/// Returns whether the server is a proxy: it has connections to a dependency and the name of a
/// proxy.
fn is_proxy(case: &ServerFacts) -> bool {
    case.main_dependency().is_some() && is_program("proxy", server_process_name(case))
}

/// Returns the highest rate that the server sustained after the search, divided by the upper end of
/// the load line from the search. If this ratio shows no gain, the divisor is the throughput under
/// an overload in the search. Returns `None` without a gain beyond chance.
pub(super) fn sustained_rate_gain(case: &ServerFacts) -> Option<f64> {
    let gain =
        |limit_rps: Option<f64>, least: f64| Some(case.held_past_rps? / limit_rps?).filter(|gain| *gain >= least);
    gain(case.upper_rps, SUSTAINED_GAIN_MIN).or_else(|| gain(case.saturated_rps, CLEARLY_MORE_FACTOR_MIN))
}

/// Returns whether a single request took longer at the start of the search than now, or the
/// server's runtime compiled code.
pub(super) fn was_slower_at_search_start(case: &ServerFacts) -> Option<bool> {
    let has_compiled =
        [&case.low, &case.half].iter().any(|sight| sight.get(Signal::Compiling).unwrap_or(0.0) >= SMALL_SHARE_MAX);
    if has_compiled {
        return Some(true);
    }
    // The mean service times are compared, because a few long requests (such as requests during
    // garbage collection) occur in both compared loads.
    let mean_ns = |sight: &LoadSignals| sight.service_mean_ns.or(sight.get(Signal::Service));
    let all = if case.held_back_ns.is_some() { 1 } else { 4 };
    let loads = [&case.low, &case.half, &case.line, &case.past].into_iter().take(all);
    let now_ns = loads.filter_map(mean_ns).reduce(f64::min)?;
    Some(case.alone_first_ns? >= SLOWER_FACTOR_MIN * now_ns)
}

/// Returns whether the server has a fixed number of connections to its main peer while more
/// requests than connections are in flight. The main peer is the dependency with the most
/// connections.
pub(super) fn has_fixed_dependency_connections(case: &ServerFacts) -> Option<bool> {
    let (line, past) = case.main_dependency_connections()?;
    let (_, count) = case.main_dependency()?;
    let waiting = case.past.get(Signal::InFlight)?;
    let asked = case.calls_dependency(case.main_dependency()?.0).unwrap_or(true);
    // A fixed number of connections is no shared pool if threads wait for a lock, or if each
    // process has its own connection.
    let behind_a_lock = || {
        let left = case.past.get(Signal::Threads)? - case.past.get(Signal::InLock)?;
        Some(signal_increase(case, Signal::InLock)? >= MOST_SHARE_MIN * count && left < MOST_SHARE_MIN * count)
    };
    let (threads, processes) = (case.past.get(Signal::Threads), case.past.get(Signal::Processes));
    let of_processes =
        threads.zip(processes).is_some_and(|(threads, count)| count >= RISEN_FACTOR_MIN && threads <= count);
    let apart = of_processes && more_threads_wait_for_locks(case).unwrap_or(false);
    let is_fixed =
        past >= 1.0 && (past - line).abs() <= (TWOFOLD_FACTOR * MANY_FAILURES_SHARE_MIN * past).max(MOST_SHARE_MIN);
    let shared = !behind_a_lock().unwrap_or(false) && !apart;
    Some(asked && shared && is_fixed && waiting >= SLOWER_FACTOR_MIN * past)
}

/// Returns whether the server has one worker process or worker thread for each request in service.
pub(super) fn workers_equal_served_requests(case: &ServerFacts) -> Option<bool> {
    let served = case.requests_in_service()?;
    let processes = case.worker_processes().map(|workers| {
        let all = case.max_at_high_load(Signal::Processes).unwrap_or(workers);
        let alone =
            workers > 1.0 || case.max_at_high_load(Signal::Threads).is_some_and(|threads| threads <= TWOFOLD_FACTOR);
        let near = is_nearly_equal(served, workers, DIFFERENCE_SHARE_MAX) && alone
            || all > 1.0 && is_nearly_equal(served, all, DIFFERENCE_SHARE_MAX);
        near && !event_loops_accept_all(case).unwrap_or(false)
    });
    let named = thread_group_sizes(case).any(|count| is_nearly_equal(served, count, DIFFERENCE_SHARE_MAX));
    let several = served >= super::thresholds::SEVERAL_IN_SERVICE_MIN;
    let at_work = [sleeping_threads_equal_requests(case), are_all_threads_busy(case), Some(named)];
    let threads = at_work.into_iter().flatten().reduce(|a, b| a || b).map(|it| it && several);
    let seen = [processes, threads].into_iter().flatten().reduce(|a, b| a || b)?;
    let grows = case.past.get(Signal::Threads).zip(case.line.get(Signal::Threads));
    let grows = grows.is_some_and(|(past, line)| past > (1.0 + SMALL_SHARE_MAX) * line + 1.0);
    Some(seen && !grows)
}

/// Returns the sizes of groups of server threads with equal names, such as pools. A size counts
/// only if it is equal at the load line and above, and exceeds two threads for each core. Groups of
/// at most two threads for each core may be event loops.
fn thread_group_sizes(case: &ServerFacts) -> impl Iterator<Item = f64> {
    let cores = case.max_at_high_load(Signal::Cores).unwrap_or(f64::INFINITY);
    let fixed = |(name, count): (&String, &f64)| (case.line.alike.get(name) == Some(count)).then_some(*count);
    case.past.alike.iter().filter_map(fixed).filter(move |count| *count > TWOFOLD_FACTOR * cores)
}

/// Returns whether the number of threads that sleep or wait for storage equals the number of
/// requests in service (Little's law). The numbers of threads and of requests are increases since
/// the low load, because some threads always sleep.
pub(super) fn sleeping_threads_equal_requests(case: &ServerFacts) -> Option<bool> {
    let at_work = |sight: &LoadSignals| {
        [Signal::InSleep, Signal::InDisk].into_iter().filter_map(|it| sight.get(it)).reduce(|a, b| a + b)
    };
    let low = (at_work(&case.low)?, mean_requests_in_service(case, &case.low)?);
    let beyond = |sight: &LoadSignals| Some((at_work(sight)? - low.0, mean_requests_in_service(case, sight)? - low.1));
    let (line, past) = (beyond(&case.line)?, beyond(&case.past)?);
    // A thread that waits for its turn in the interpreter (such as Python's) wakes up at intervals,
    // so it looks like a sleeping thread.
    let next = if has_shared_interpreter(case) { TWOFOLD_FACTOR } else { 0.0 };
    // In a short load, each thread's state is read only once, so the sum over the loads at and
    // above the line is more exact.
    let (threads, requests) = (line.0 + past.0, line.1 + past.1);
    let near = requests * (1.0 - THREAD_COUNT_DIFFERENCE_SHARE_MAX)
        ..requests * (1.0 + THREAD_COUNT_DIFFERENCE_SHARE_MAX) + next;
    Some(requests > 0.0 && near.contains(&threads))
}

/// Returns the mean number of requests in service in a load, by Little's law.
fn mean_requests_in_service(case: &ServerFacts, signals: &LoadSignals) -> Option<f64> {
    Some(signals.get(Signal::Goodput)? * case.worker_time_ns()? / 1e9)
}

/// Returns whether all threads that wait for work at a low load serve a request above the load
/// line. The number of waiting threads must fall as much as the number of requests in service
/// rises.
fn are_all_threads_busy(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::InLock)?, case.past.get(Signal::InLock)?);
    let beyond = mean_requests_in_service(case, &case.past)? - mean_requests_in_service(case, &case.low)?;
    let sleeping = signal_increase(case, Signal::InSleep)?;
    let as_many = beyond > 0.0
        && is_nearly_equal(low - past, beyond, THREAD_COUNT_DIFFERENCE_SHARE_MAX)
        && sleeping <= (1.0 + NOTICEABLE_SHARE_MIN) * beyond;
    Some(low >= super::thresholds::SEVERAL_IN_SERVICE_MIN && past <= SMALL_SHARE_MAX * low && as_many)
}

/// Returns whether at least two more threads wait for locks above the load line than at a low load.
pub(super) fn more_threads_wait_for_locks(case: &ServerFacts) -> Option<bool> {
    Some(signal_increase(case, Signal::InLock)? >= TWOFOLD_FACTOR)
}

/// Returns whether single-threaded processes have accepted nearly all connections with requests in
/// flight. Single-threaded processes that accept nearly all connections are event loops. A process
/// that handles one request at a time leaves other connections in the accept queue.
pub(super) fn event_loops_accept_all(case: &ServerFacts) -> Option<bool> {
    let (threads, processes) = (case.past.get(Signal::Threads)?, case.past.get(Signal::Processes)?);
    let left = case.past.get(Signal::InFlight)? - processes;
    let has_room = case.past.get(Signal::ListenOverflows).is_none_or(|times| times <= 0.0);
    let waiting = case.past.get(Signal::Unaccepted)?;
    Some(
        has_room
            && threads <= processes
            && left >= processes.max(COUNT_ABOVE_CHANCE_MIN)
            && waiting < CONSIDERABLE_SHARE_MIN * left,
    )
}

/// Returns whether the threads of most requests poll: they sleep for short times and check again
/// whether they may run. The sign of polling: many more threads sleep than requests are in service.
pub(super) fn has_polling_threads(case: &ServerFacts) -> Option<bool> {
    let (beyond, in_flight) = (signal_increase(case, Signal::InSleep)?, case.past.get(Signal::InFlight)?);
    // Requests in flight beyond the number of threads have no thread yet that could poll.
    let with_thread = in_flight.min(case.past.get(Signal::Threads)?);
    let many = beyond >= COUNT_ABOVE_CHANCE_MIN && beyond >= RISEN_FACTOR_MIN * case.requests_in_service()?;
    Some(
        many && beyond >= MOST_SHARE_MIN * with_thread
            && beyond <= (1.0 + CONSIDERABLE_SHARE_MIN) * in_flight
            && more_threads_wait_for_locks(case) != Some(true),
    )
}

/// Returns whether many waiting threads sleep until a timer ends while hardly any thread waits for
/// data. Threads that sleep until a timer ends do not wait for the response of a dependency.
fn threads_wait_for_timers(case: &ServerFacts) -> Option<bool> {
    let (beyond, reading) = (signal_increase(case, Signal::InSleep)?, case.past.get(Signal::InRead)?);
    let few = case.past.get(Signal::PeerWaiting).is_none() || few_dependency_calls_are_open(case).unwrap_or(false);
    let many = beyond >= COUNT_ABOVE_CHANCE_MIN && beyond >= COUNT_ABOVE_CHANCE_MIN * reading;
    Some(many && beyond >= CONSIDERABLE_SHARE_MIN * case.past.get(Signal::InFlight)? && few)
}

/// Returns the mean number of calls to dependencies without a complete response, above the load
/// line.
fn open_dependency_calls(case: &ServerFacts) -> Option<f64> {
    Some(case.past.get(Signal::PeerWaiting)? + case.past.get(Signal::PeerComing).unwrap_or(0.0))
}

/// Returns whether hardly any request in flight waits for a dependency, and the main peer has idle
/// connections.
fn few_dependency_calls_are_open(case: &ServerFacts) -> Option<bool> {
    let calls = open_dependency_calls(case)?;
    Some(
        calls <= NOTICEABLE_SHARE_MIN * case.past.get(Signal::InFlight)?
            && calls < BUSY_RESOURCE_IN_SERVICE_MIN * case.main_dependency()?.1,
    )
}

/// Returns whether as many calls to dependencies are open as requests are in service, while many
/// more requests wait.
pub(super) fn open_calls_equal_served_requests(case: &ServerFacts) -> Option<bool> {
    let calls = open_dependency_calls(case)?;
    let rise = calls >= super::thresholds::SEVERAL_IN_SERVICE_MIN
        && calls >= TWOFOLD_FACTOR * case.low.get(Signal::PeerWaiting)?;
    let as_many = is_nearly_equal(calls, case.requests_in_service()?, THREAD_COUNT_DIFFERENCE_SHARE_MAX);
    Some(rise && as_many && case.past.get(Signal::InFlight)? >= TWOFOLD_FACTOR * calls)
}

/// Returns whether calls to a dependency take longer under load. Any of three signs shows longer
/// calls. First sign: more calls are open than requests are in service (Little's law). Second sign:
/// the number of connections is fixed, and more connections are in use than requests are in
/// service. Third sign: the number of connections grows with the load.
///
/// Returns `false` if threads wait only for timers, if the throughput has no plateau, or if a
/// resource of the server is saturated.
pub(super) fn calls_pile_up(case: &ServerFacts) -> Option<bool> {
    if threads_wait_for_timers(case) == Some(true)
        || !case.has_throughput_plateau()?
        || !case.has_no_saturated_resource()?
    {
        return Some(false);
    }
    if open_calls_exceed_served_requests(case) == Some(true) {
        return Some(true);
    }
    let (line, past) = case.main_dependency_connections()?;
    let (waiting, served) = (case.past.get(Signal::InFlight)?, case.requests_in_service()?);
    let rises = |calls: f64| case.low.get(Signal::PeerWaiting).is_none_or(|low| calls >= SLOWER_FACTOR_MIN * low);
    // Idle connections stay open, so the number of connections alone does not show how many calls
    // are open.
    let peer_waiting = case.past.get(Signal::PeerWaiting);
    let in_use = peer_waiting.map_or(served >= BUSY_RESOURCE_IN_SERVICE_MIN, |calls| {
        calls >= BUSY_RESOURCE_IN_SERVICE_MIN * past && rises(calls)
    });
    let full = has_fixed_dependency_connections(case)?
        && served < (1.0 - CONSIDERABLE_SHARE_MIN) * past
        && past > 1.0
        && in_use;
    let asked = !few_dependency_calls_are_open(case).unwrap_or(false);
    let grows = past >= (1.0 + CONSIDERABLE_SHARE_MIN) * line
        && past >= line + TWOFOLD_FACTOR
        && waiting <= SLOWER_FACTOR_MIN * past
        && asked;
    Some(full || grows)
}

fn open_calls_exceed_served_requests(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerWaiting)?, case.past.get(Signal::PeerWaiting)?);
    Some(
        past >= RISEN_FACTOR_MIN * low + RISEN_FACTOR_MIN
            && case.requests_in_service()? < BUSY_RESOURCE_IN_SERVICE_MIN * past,
    )
}

/// Returns whether a dependency has saturated its cores while the server has not. A dependency with
/// a single process is saturated if it uses about one core. Any dependency is saturated if all
/// cores of the machine are in use, and it uses most of them and much more than the server.
pub(super) fn is_dependency_saturated(case: &ServerFacts) -> Option<bool> {
    let (Some(cores), Some(processes)) =
        (case.max_at_high_load(Signal::DownstreamCores), case.max_at_high_load(Signal::DownstreamProcesses))
    else {
        return Some(false);
    };
    let own = case.max_at_high_load(Signal::ServerCores)?;
    let low = case.low.get(Signal::DownstreamCores).unwrap_or(0.0);
    let one = processes <= 1.0
        && ONE_CORE_RANGE.contains(&cores)
        && cores >= 1.0 - SMALL_SHARE_MAX
        && own < 1.0 - DIFFERENCE_SHARE_MAX;
    // If the server and a dependency together saturate the machine, the dependency is the limit
    // only if it uses much more CPU time. The backend behind a proxy counts as part of the server,
    // not as a dependency.
    let all = case.are_cores_saturated()?
        && cores > SLOWER_FACTOR_MIN * own
        && cores > CONSIDERABLE_SHARE_MIN * case.max_at_high_load(Signal::Cores)?;
    let service = is_proxy(case) && processes > 1.0 && case.are_cores_saturated()?;
    Some((one || all) && !service && low < BUSY_RESOURCE_IN_SERVICE_MIN * cores && !case.is_thread_saturated()?)
}

/// Returns whether connections wait to be accepted by a dependency that is not saturated.
pub(super) fn connections_queue_at_dependency(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerQueued)?, case.past.get(Signal::PeerQueued)?);
    let many = past >= COUNT_ABOVE_CHANCE_MIN
        && past >= CONSIDERABLE_SHARE_MIN * case.past.get(Signal::InFlight)?
        && low <= SMALL_SHARE_MAX * past;
    Some(many && !is_dependency_saturated(case).unwrap_or(false))
}

/// Returns the address of the server's database, known by the name of its process. Among several
/// databases, the database with the most open calls counts.
pub(super) fn database_address(case: &ServerFacts) -> Option<&str> {
    let is_known = |peer: &str| case.dependency_process_name(peer).is_some_and(|name| is_program("database", name));
    let calls = |peer: &str| case.past.calls_to_peers.get(peer).copied().unwrap_or(0.0);
    let all = case.past.peers.iter().filter(|(peer, _)| is_known(peer));
    let most = all.max_by(|a, b| calls(a.0).total_cmp(&calls(b.0)).then(a.1.total_cmp(b.1)));
    most.map(|(peer, _)| peer.as_str())
}

/// Returns whether database statements wait for locks of other statements. Either the database
/// shows waiting statements, or calls pile up while the database neither computes nor waits for
/// storage.
pub(super) fn statements_wait_for_locks(case: &ServerFacts) -> Option<bool> {
    let database = database_address(case)?;
    if waiting_statements(case).is_some() {
        return Some(true);
    }
    let idle = case.max_at_high_load(Signal::DownstreamCores)? < BUSY_RESOURCE_IN_SERVICE_MIN
        && case.signal_reaches(Signal::IoPressure, NOTICEABLE_SHARE_MIN) != Some(true);
    let (address, calls) = case.most_called_dependency()?;
    let low = case.low.calls_to_peers.get(address).copied().unwrap_or(0.0);
    let piled_up = calls >= RISEN_FACTOR_MIN * low + RISEN_FACTOR_MIN
        && case.requests_in_service()? < BUSY_RESOURCE_IN_SERVICE_MIN * calls;
    Some(idle && address == database && piled_up)
}

/// Returns how many database statements wait for a lock of another statement, above the load line.
/// The titles of the database's processes or the wait states of its threads show the number of
/// waiting statements. Returns `None` if the number of waiting statements is not clearly higher
/// than the number of requests in service.
pub(super) fn waiting_statements(case: &ServerFacts) -> Option<f64> {
    let titles = signal_increase(case, Signal::DownstreamInLock);
    let is_idle =
        case.max_at_high_load(Signal::DownstreamCores).is_some_and(|cores| cores < BUSY_RESOURCE_IN_SERVICE_MIN);
    let idle = is_idle && case.signal_reaches(Signal::IoPressure, NOTICEABLE_SHARE_MIN) != Some(true);
    let threads = signal_increase(case, Signal::DownstreamThreadsWaiting).filter(|_| idle);
    let served = case.requests_in_service()?;
    titles.into_iter().chain(threads).find(|count| *count >= RISEN_FACTOR_MIN && *count >= SLOWER_FACTOR_MIN * served)
}

/// Returns whether the server's connections wait for most of the time because the client's receive
/// window is full. The number of waiting connections must grow with the load.
pub(super) fn is_client_window_full(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::WindowWaiting)?, case.past.get(Signal::WindowWaiting)?);
    Some(
        case.max_at_high_load(Signal::WindowLimited)? >= MOST_SHARE_MIN
            && past >= RISEN_FACTOR_MIN * low + TWOFOLD_FACTOR,
    )
}

/// Returns whether the server leaves more bytes from a dependency unread than a TCP window holds.
pub(super) fn server_reads_dependency_late(case: &ServerFacts) -> Option<bool> {
    case.low.get(Signal::PeerUnread)?;
    signal_rises_and_reaches(case, Signal::PeerUnread, QUEUE_GROWTH_FACTOR_MIN, RECEIVE_WINDOW_BYTES)
}

/// Returns whether receivers other than the server's clients leave the server's output unread.
pub(super) fn other_receivers_read_late(case: &ServerFacts) -> Option<bool> {
    case.low.get(Signal::PeerUnsent)?;
    let besides = !case.line.read_by_others && !case.past.read_by_others;
    let left = signal_rises_and_reaches(
        case,
        Signal::PeerUnsent,
        QUEUE_GROWTH_FACTOR_MIN,
        NOTICEABLE_SHARE_MIN * RECEIVE_WINDOW_BYTES,
    )?;
    Some(besides && left && !open_calls_exceed_served_requests(case).unwrap_or(false))
}

/// Returns whether threads of the server wait for most of the time until a reader empties a full
/// pipe or unix socket.
pub(super) fn threads_wait_for_pipe_reader(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::InWrite)?, case.past.get(Signal::InWrite)?);
    Some(
        past >= MOST_SHARE_MIN
            && past >= RISEN_FACTOR_MIN * low + CONSIDERABLE_SHARE_MIN
            && !connections_queue_at_dependency(case).unwrap_or(false),
    )
}

/// Returns whether many bytes from a dependency are in transit: at least as many as plimsoll
/// receives in a tenth of a second. Returns `false` if the server leaves many arrived bytes unread.
pub(super) fn dependency_bytes_are_in_transit(case: &ServerFacts) -> Option<bool> {
    case.low.get(Signal::PeerOnTheWay)?;
    let queued = signal_rises_and_reaches(
        case,
        Signal::PeerOnTheWay,
        TWOFOLD_FACTOR * QUEUE_GROWTH_FACTOR_MIN,
        COUNT_ABOVE_CHANCE_MIN * RECEIVE_WINDOW_BYTES,
    )?;
    let top = case.max_at_high_load(Signal::PeerOnTheWay)?;
    let unread = case.max_at_high_load(Signal::PeerUnread).unwrap_or(0.0);
    Some(
        queued
            && top >= SMALL_SHARE_MAX * case.max_at_high_load(Signal::BytesIn)?
            && unread <= CONSIDERABLE_SHARE_MIN * top,
    )
}

/// Returns whether responses of a dependency arrive piece by piece for many of the requests in
/// flight. Returns `false` if the dependency has saturated its cores, or if the server reads the
/// responses late.
pub(super) fn dependency_responses_arrive_slowly(case: &ServerFacts) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerComing)?, case.past.get(Signal::PeerComing)?);
    let most = past >= RISEN_FACTOR_MIN * low + RISEN_FACTOR_MIN
        && past >= CONSIDERABLE_SHARE_MIN * case.past.get(Signal::InFlight)?;
    let much = case.past.get(Signal::PeerReceived)? >= RECEIVE_WINDOW_BYTES;
    Some(
        most && much
            && !server_reads_dependency_late(case).unwrap_or(false)
            && !is_dependency_saturated(case).unwrap_or(false),
    )
}
