//! The features of a server under load ([`Feature`]): questions with a fixed set of answers. A
//! feature has one answer for all loads of a tested server together, or no answer if nothing was
//! observed.
//!
//! Not here: the weight of an answer (`causes`, `likelihoods`), and the bounds between answers
//! (`thresholds`).

use super::demands::UsedResource;
use super::queues::{
    allowed_cores_are_saturated, are_local_ports_exhausted, breaks_slo_without_busy_thread, calls_pile_up,
    connections_queue_at_dependency, dependency_bytes_are_in_transit, dependency_responses_arrive_slowly,
    gc_runs_on_idle_cores, has_fixed_dependency_connections, has_polling_threads, has_shared_interpreter,
    is_client_window_full, is_dependency_saturated, is_file_limit_reached, is_limited_by_plimsoll_connections,
    more_threads_wait_for_locks, new_connections_wait_or_fail, other_processes_take_needed_cores,
    other_receivers_read_late, plimsoll_was_the_limit, server_reads_dependency_late, signal_rises_and_reaches,
    statements_wait_for_locks, sustained_rate_gain, threads_run_one_at_a_time, threads_wait_for_pipe_reader,
    was_slower_at_search_start, workers_equal_served_requests,
};
use super::server_facts::ServerFacts;
use super::signals::Signal;
use super::thresholds::{
    BUSY_RESOURCE_IN_SERVICE_MIN, COLLECTOR_CORES_MIN, CONSIDERABLE_SHARE_MIN, COUNT_ABOVE_CHANCE_MIN,
    DIFFERENCE_SHARE_MAX, EXHAUSTED_SHARE_MIN, FASTER_THAN_SEARCH_FACTOR_MIN, MANY_FAILURES_SHARE_MIN, MOST_SHARE_MIN,
    NOTICEABLE_SHARE_MIN, PAGE_READ_RATE_MIN, PERIODIC_DISPERSION_MAX, QUEUE_GROWTH_FACTOR_MIN, RECEIVE_WINDOW_BYTES,
    RETRANSMIT_SHARE_MIN, RISEN_FACTOR_MIN, SEVERAL_IN_SERVICE_MIN, SINGLE_REQUEST_IN_SERVICE, SMALL_SHARE_MAX,
    STORAGE_WAIT_SHARE_MIN, THROTTLED_PERIODS_SHARE_MIN, TWOFOLD_FACTOR,
};
use crate::find::StopReason;
use plimsoll_model::units::MS;

/// One possible answer to a feature (a question about the server).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureValue {
    /// The name of the answer in `likelihoods.tsv`.
    pub word: &'static str,
    /// The meaning of the answer, as a sentence without a full stop.
    pub text: &'static str,
}

/// The description of a feature (a question about the server): its name, its answers, and the
/// function that computes the answer.
#[derive(Clone, Copy)]
pub struct FeatureCard {
    /// The name of the feature in `likelihoods.tsv`.
    pub word: &'static str,
    /// The possible answers. If the feature is a mark, the first answer applies to most servers.
    pub values: &'static [FeatureValue],
    /// The signals that the answer depends on, the most informative first.
    pub signals: &'static [Signal],
    /// Whether the feature is a mark: evidence for only those causes that list the feature. If a
    /// feature is a mark, every answer but the first is strong evidence against the causes that
    /// leave the feature out.
    pub is_mark: bool,
    /// Computes the answer from the facts about a server, as an index into `values`. A result of
    /// `None` means that the answer was not observed.
    pub read: fn(&ServerFacts) -> Option<usize>,
}

/// Declares the features. Each feature has a name, the flag [`FeatureCard::is_mark`], answers,
/// signals, and the function that computes the answer.
macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident: $word:literal, $mark:literal,
        [$($value:literal: $text:literal),+], [$($signal:ident),*], $read:expr;)*) => {
        /// A question about a server under load, with a fixed set of answers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Feature {
            $($(#[$doc])* $feature,)*
        }

        impl Feature {
            /// All features.
            pub const ALL: &[Feature] = &[$(Feature::$feature,)*];

            /// Returns the description of the feature.
            pub fn card(self) -> FeatureCard {
                match self {
                    $(Feature::$feature => FeatureCard {
                        word: $word,
                        values: &[$(FeatureValue { word: $value, text: $text },)+],
                        signals: &[$(Signal::$signal,)*],
                        is_mark: $mark,
                        read: $read,
                    },)*
                }
            }
        }
    };
}

/// Converts a yes-no answer into an index into the answers: 0 for no, 1 for yes.
fn yes_no_index(answer: Option<bool>) -> Option<usize> {
    answer.map(usize::from)
}

/// Converts a yes-no answer about dependencies into an index into the answers. If the answer is
/// unknown although the server's CPU use was measured, the answer is no.
fn dependency_yes_no_index(case: &ServerFacts, answer: Option<bool>) -> Option<usize> {
    yes_no_index(answer.or_else(|| case.max_at_high_load(Signal::ServerCores).map(|_| false)))
}

/// Returns the position of the first true answer, counted from 1. Returns 0 if every observed
/// answer is false, and `None` if no answer was observed.
fn first_true_position<const N: usize>(answers: [Option<bool>; N]) -> Option<usize> {
    match answers.iter().position(|answer| *answer == Some(true)) {
        Some(at) => Some(at + 1),
        None => answers.iter().any(Option::is_some).then_some(0),
    }
}

features! {
    /// Whether plimsoll was the limit: its workers, its connections, or its reading of responses.
    PlimsollLimited: "plimsoll_limited", true,
        ["no": "plimsoll did not limit the throughput",
         "yes": "plimsoll could not generate the load, lacked connections, or read responses late"],
        [Generator, ClientCores, InFlight, WindowLimited],
        |case| yes_no_index(Some(plimsoll_was_the_limit(case) || is_limited_by_plimsoll_connections(case) == Some(true)));
    /// Whether the highest allowed rate met the SLO, so that the search found no limit.
    HighestRateMet: "highest_rate_met", true,
        ["no": "the search did not end at the highest rate that it may try",
         "yes": "the server meets the SLO even at the highest rate that the search may try"],
        [Goodput],
        |case| yes_no_index(Some(case.stopped_by == StopReason::MaxRate && case.upper_rps.is_none()));
    /// Whether other processes used cores that the server's threads waited for.
    OthersTookCores: "others_took_cores", true,
        ["no": "the server's threads did not wait for cores that other processes used",
         "yes": "the server's threads waited for cores that other processes used"],
        [Others, RunQueue, Steal, Idle],
        |case| yes_no_index(other_processes_take_needed_cores(case));
    /// Whether plimsoll or the server found no free local port for a new connection.
    PortsUsedUp: "ports_used_up", true,
        ["no": "plimsoll and the server found free local ports",
         "yes": "plimsoll or the server found no free local port"],
        [TimeWait, ConnectFailed],
        |case| yes_no_index(Some(are_local_ports_exhausted(case)));
    /// Whether the server has reached its limit of open files.
    FilesUsedUp: "files_used_up", true,
        ["no": "the server is below its limit of open files", "yes": "the server reached its limit of open files"],
        [Files],
        |case| yes_no_index(is_file_limit_reached(case));
    /// Whether new connections wait or fail while requests on open connections do not wait or fail.
    ConnectsLate: "connects_late", true,
        ["no": "connections were opened and accepted quickly",
         "yes": "new connections waited or failed, while requests on open connections did not"],
        [Connect, ConnectFailed, Unaccepted, ListenOverflows, Service],
        |case| yes_no_index(new_connections_wait_or_fail(case));
    /// Whether memory was short: many pages were read back from storage, tasks waited for memory,
    /// or pages were read back while the memory limit was nearly reached. The answer is `killed` if
    /// the kernel killed processes for lack of memory.
    MemoryShort: "memory_short", true,
        ["no": "hardly any memory page was read back from storage, and no process waited for memory",
         "yes": "the server waited for memory",
         "killed": "the kernel killed processes of the server's control group for lack of memory"],
        [MajorFaults, MemoryPressure, GroupMemory],
        |case| {
            let pages = signal_rises_and_reaches(case, Signal::MajorFaults, COUNT_ABOVE_CHANCE_MIN, PAGE_READ_RATE_MIN);
            let waits = signal_rises_and_reaches(case, Signal::MemoryPressure, RISEN_FACTOR_MIN, SMALL_SHARE_MAX);
            let limit = case.signal_reaches(Signal::GroupMemory, EXHAUSTED_SHARE_MIN).map(|near| {
                near && case.signal_reaches(Signal::MajorFaults, QUEUE_GROWTH_FACTOR_MIN).unwrap_or(false)
            });
            match case.killed.is_some_and(|count| count >= 1.0) {
                true => Some(2),
                false => yes_no_index([pages, waits, limit].into_iter().flatten().reduce(|a, b| a || b)),
            }
        };
    /// Whether an exhausted CPU quota stopped the server or a dependency.
    QuotaUsed: "quota_used", true,
        ["no": "no CPU quota stopped the server",
         "server": "the server's control group exhausted its CPU quota",
         "dependency": "the control group of a dependency exhausted its CPU quota"],
        [Throttled, Quota, DownstreamThrottled, DownstreamQuota],
        |case| {
            let found = first_true_position([
                signal_rises_and_reaches(case, Signal::Throttled, TWOFOLD_FACTOR, THROTTLED_PERIODS_SHARE_MIN),
                signal_rises_and_reaches(case, Signal::DownstreamThrottled, TWOFOLD_FACTOR, CONSIDERABLE_SHARE_MIN),
            ]);
            // Without a CPU quota, the kernel counts no quota periods, so the answer is no.
            found.or_else(|| case.max_at_high_load(Signal::ServerCores).map(|_| 0))
        };
    /// Whether the server refuses requests at a high load, but hardly any at a low load.
    Refuses: "refuses", true,
        ["no": "the server refuses hardly any requests, or refuses them at a low load, too",
         "yes": "the server refuses requests under high load, but hardly any at a low load"],
        [Refused, Failed],
        |case| yes_no_index(Some(
            case.max_at_high_load(Signal::Refused)? > MANY_FAILURES_SHARE_MIN && case.low.get(Signal::Refused)? <= SMALL_SHARE_MAX * case.max_at_high_load(Signal::Refused)?,
        ));
    /// Whether successful responses above the load line are as fast as at a low load.
    ServedAsFast: "served_as_fast", false,
        ["no": "above the load line, responses take longer than at a low load",
         "yes": "above the load line, responses take as long as at a low load"],
        [Service],
        |case| {
            let low = case.low.get(Signal::Service)?;
            let past = case.past.get(Signal::Service).or(case.line.get(Signal::Service))?;
            yes_no_index(Some(past <= TWOFOLD_FACTOR * low + CONSIDERABLE_SHARE_MIN * MS as f64))
        };
    /// Whether responses break the SLO even at a low load, where no request queues.
    SlowAtLowLoad: "slow_at_low_load", true,
        ["no": "responses meet the SLO at a low load",
         "yes": "responses break the SLO even at a low load, without a queue"],
        [P99, P50],
        |case| yes_no_index(breaks_slo_without_busy_thread(case));
    /// Whether threads of the server are saturated.
    ThreadsFull: "threads_full", true,
        ["no": "no thread of the server is saturated",
         "one": "one thread of the server is saturated",
         "several": "several threads of the server are saturated"],
        [FullestThread, FullThreads, ServerCores],
        |case| {
            let full = case.is_thread_saturated()?;
            let several = case.max_at_high_load(Signal::FullThreads).is_some_and(|count| count > 1.0);
            Some(if !full { 0 } else { 1 + usize::from(several) })
        };
    /// Whether the cores of the server are saturated.
    CoresFull: "cores_full", true,
        ["no": "cores are idle",
         "machine": "all cores of the machine are in use",
         "allowed": "all cores that the server may use are in use",
         "others": "all cores of the machine are in use, most of them by other processes"],
        [Idle, ServerCores, CoresAllowed, RunQueue],
        |case| {
            let full = first_true_position([case.are_cores_saturated(), allowed_cores_are_saturated(case)])?;
            let own = case.max_at_high_load(Signal::ServerCores)? + case.max_at_high_load(Signal::DownstreamCores).unwrap_or(0.0);
            let others = case.min_at_high_load(Signal::Others).unwrap_or(0.0);
            Some(if full > 0 && others > own { 3 } else { full })
        };
    /// Which resource would be saturated at the highest throughput, by the utilisation law and the
    /// measured demand of a request.
    CeilingMet: "ceiling_met", false,
        ["none": "the peak throughput saturates no observed resource",
         "thread": "at the peak throughput, the CPU time of the requests saturates the server's busiest thread",
         "cores": "at the peak throughput, the CPU time of the requests saturates the cores that the server may use",
         "quota": "at the peak throughput, the CPU time of the requests exhausts the server's CPU quota",
         "dependency": "at the peak throughput, the requests need a whole core of CPU time in a dependency"],
        [ServerCpu, FullestThread, ServerCores, DownstreamCores],
        |case| {
            let met = |resource: UsedResource| {
                let ceiling_rps = case.demand(resource)?.ceiling_rps;
                Some((1.0 - DIFFERENCE_SHARE_MAX..1.0 + DIFFERENCE_SHARE_MAX).contains(&(case.best_rps / ceiling_rps)))
            };
            let cores = [met(UsedResource::Cores), met(UsedResource::AllowedCores)];
            let cores = cores.into_iter().flatten().reduce(|a, b| a || b);
            // If the peak throughput also meets the ceiling of the cores, the thread is the limit
            // only if it was measured as saturated.
            let is_thread = cores != Some(true) || case.is_thread_saturated() == Some(true);
            let thread = met(UsedResource::Thread).map(|met| met && is_thread);
            let found = [thread, cores, met(UsedResource::Quota), met(UsedResource::Downstream)];
            first_true_position(found)
        };
    /// Whether the server's threads run one at a time, so that all threads together use one core.
    /// The answer is no for a server with several worker processes.
    ThreadsRunOneAtATime: "takes_turns", true,
        ["no": "the server's threads do not run one at a time",
         "interpreter": "the server's interpreter runs one thread at a time, and this thread is saturated",
         "lock": "the server's threads run one at a time without a shared interpreter, such as behind a lock"],
        [ServerCores, FullestThread, InLock],
        |case| {
            let turns = threads_run_one_at_a_time(case)?;
            let one = case.worker_processes()? <= 1.0;
            Some(if !turns || !one { 0 } else if has_shared_interpreter(case) { 1 } else { 2 })
        };
    /// Whether garbage collection takes a noticeable part of the CPU time from requests.
    Collects: "collects", true,
        ["no": "garbage collection takes little CPU time, or runs on idle cores",
         "yes": "garbage collection takes a quarter or more of the server's CPU time, or stops the server"],
        [Gc, GcPauses, Idle],
        |case| {
            let pauses = case.max_at_high_load(Signal::GcPauses).map(|share| share >= SMALL_SHARE_MAX && case.gc_costs_more_under_load());
            let share = case.gc_share();
            let cores = share.zip(case.max_at_high_load(Signal::ServerCores)).map(|(share, cores)| share * cores);
            let felt = share.map(|share| {
                let much = share >= NOTICEABLE_SHARE_MIN && cores.is_some_and(|cores| cores >= COLLECTOR_CORES_MIN);
                much && case.gc_costs_more_under_load() && !gc_runs_on_idle_cores(case)
            });
            yes_no_index([pauses, felt].into_iter().flatten().reduce(|a, b| a || b))
        };
    /// Whether a quarter of the CPU time or more is spent waiting for locks.
    SpinsForLocks: "spins_for_locks", true,
        ["no": "waiting for locks takes little of the server's CPU time",
         "yes": "waiting for locks takes a quarter or more of the server's CPU time"],
        [Spinning, ServerCpu],
        |case| yes_no_index(Some(case.past.get(Signal::Spinning).or(case.line.get(Signal::Spinning))? >= NOTICEABLE_SHARE_MIN));
    /// Whether the server sustains a higher rate after the search than in the search, and was
    /// slower at the start of the search.
    WarmerNow: "warmer_now", true,
        ["no": "there is no evidence that the server is faster after the search than during the search",
         "yes": "the server sustains more load now than during the search, and was slower or compiled code at first"],
        [Goodput, Service, Compiling],
        |case| {
            // A disturbed search looks like a search on a server that had not warmed up, and no
            // other feature separates the two. After a disturbed search, the answer is therefore
            // no.
            if case.is_search_disturbed {
                return yes_no_index(Some(false));
            }
            let more = sustained_rate_gain(case).unwrap_or(0.0);
            let closed = case.goodput_gain_of_closed_loop().unwrap_or(0.0);
            // If a higher load gives no more goodput, or if a resource is saturated now, another
            // limit explains the load line. Then only a doubled throughput is evidence of a
            // warm-up. Otherwise a gain beyond chance is evidence.
            let is_limited =
                case.has_throughput_plateau() == Some(true) || case.has_no_saturated_resource() == Some(false);
            let warmer = more.max(closed) >= FASTER_THAN_SEARCH_FACTOR_MIN || more > 0.0 && !is_limited;
            yes_no_index(Some(warmer && was_slower_at_search_start(case)?))
        };
    /// Whether a load above the load line gives no more throughput than a load at the load line.
    Plateau: "plateau", false,
        ["no": "a higher load raised the goodput", "yes": "a higher load does not raise the goodput"],
        [Goodput, Offered],
        |case| yes_no_index(case.has_throughput_plateau());
    /// How many requests are in service at once, by Little's law: throughput x service time.
    RequestsInService: "served_at_a_time", false,
        ["several": "the server handles several requests at once",
         "one": "the server handles only one request at a time",
         "below_one": "on average, the server handles less than one request at a time"],
        [Service, Goodput],
        |case| match case.requests_in_service()? {
            count if count < BUSY_RESOURCE_IN_SERVICE_MIN => Some(2),
            count if SINGLE_REQUEST_IN_SERVICE.contains(&count) => Some(1),
            count if count >= SEVERAL_IN_SERVICE_MIN => Some(0),
            _ => None,
        };
    /// Whether the server's connections to a dependency are a fixed number, and whether all are in
    /// use.
    FixedConnections: "fixed_connections", true,
        ["no": "the number of connections to a dependency varies, or the dependency gets no calls",
         "in_use": "the number of connections to a dependency is fixed, and equals the number of requests in service",
         "to_spare": "the number of connections to a dependency is fixed, and exceeds the number of requests in service"],
        [PeerConnections, InFlight, Service],
        |case| {
            let (_, count) = case.main_dependency().unwrap_or_default();
            match has_fixed_dependency_connections(case) {
                Some(true) => Some(1 + usize::from(case.requests_in_service()? < (1.0 - NOTICEABLE_SHARE_MIN) * count)),
                answer => dependency_yes_no_index(case, answer),
            }
        };
    /// Whether the number of busy workers equals the number of requests in service.
    BusyWorkersEqualInService: "workers_as_served", true,
        ["no": "the number of workers differs from the number of requests in service",
         "yes": "the number of busy workers equals the number of requests in service"],
        [Processes, Threads, InSleep, InRead, InDisk, InLock],
        |case| yes_no_index(workers_equal_served_requests(case));
    /// Whether connections wait to be accepted while all workers serve other requests.
    AcceptsLate: "accepts_late", true,
        ["no": "the server accepts connections without delay",
         "yes": "connections wait to be accepted while the workers serve other requests"],
        [ListenQueue, Unaccepted],
        |case| {
            let few = (MANY_FAILURES_SHARE_MIN * TWOFOLD_FACTOR * case.past.get(Signal::InFlight)?).max(1.0);
            let waits = signal_rises_and_reaches(case, Signal::Unaccepted, RISEN_FACTOR_MIN, few)?;
            yes_no_index(Some(waits && case.requests_in_service()? >= BUSY_RESOURCE_IN_SERVICE_MIN && case.requests_in_service_exceed_cores()?))
        };
    /// Whether threads of the server wait for each other: at a lock, or in a queue.
    ThreadsWait: "threads_wait", true,
        ["no": "the server's threads do not wait for each other",
         "lock": "several of the server's threads wait for locks",
         "queue": "the server's threads wait in a queue, and each thread is woken separately"],
        [InLock, InSameLock],
        |case| {
            let server = case.past.server.as_deref()?;
            // In the Java and .NET runtimes, each thread waits on its own futex, even if all
            // threads wait for the same lock.
            let parks = ["java", "dotnet"].iter().any(|name| server.starts_with(name));
            let waiting = case.past.get(Signal::InLock)?;
            let same = case.past.get(Signal::InSameLock).unwrap_or(waiting);
            let line = !parks && waiting >= COUNT_ABOVE_CHANCE_MIN && same <= NOTICEABLE_SHARE_MIN * waiting;
            let several = case.requests_in_service().is_some_and(|count| count >= SEVERAL_IN_SERVICE_MIN);
            Some(if !more_threads_wait_for_locks(case)? { 0 } else { 1 + usize::from(line && several) })
        };
    /// Whether threads poll: they sleep for short times and check again whether they may run.
    Polls: "polls", true,
        ["no": "the server's threads do not sleep for short times",
         "yes": "far more threads sleep for short times than the server handles requests, as in polling"],
        [InSleep, InFlight],
        |case| yes_no_index(has_polling_threads(case));
    /// Whether statements in the server's database wait for locks of other statements.
    DatabaseLocks: "database_locks", true,
        ["no": "no database statement waits for another statement",
         "yes": "database statements wait for each other"],
        [DownstreamInLock, DownstreamThreadsWaiting, PeerWaiting, DownstreamCores],
        |case| yes_no_index(Some(statements_wait_for_locks(case).unwrap_or(false)));
    /// Whether threads of the server wait for storage.
    StorageWaits: "storage_waits", true,
        ["no": "no thread of the server waits for storage", "yes": "threads of the server wait for storage"],
        [Blocked, InDisk, IoPressure],
        |case| {
            let own = [Signal::Blocked, Signal::InDisk].map(|signal| case.more_threads_wait(signal, CONSIDERABLE_SHARE_MIN + SMALL_SHARE_MAX));
            let machine = case.more_threads_wait(Signal::IoPressure, STORAGE_WAIT_SHARE_MIN);
            let seen = own.into_iter().chain([machine]).flatten().reduce(|a, b| a || b)?;
            yes_no_index(Some(seen && case.has_idle_cores() != Some(false)))
        };
    /// Whether a dependency has no idle core while the server has idle cores.
    DependencyFull: "dependency_full", true,
        ["no": "no dependency is saturated", "yes": "a dependency has no idle core, and the server has idle cores"],
        [DownstreamCores, ServerCores],
        |case| dependency_yes_no_index(case, is_dependency_saturated(case));
    /// Whether calls to a dependency take longer at a higher load.
    CallsPileUp: "calls_pile_up", true,
        ["no": "calls to a dependency do not take longer under load", "yes": "calls to a dependency take longer under load"],
        [PeerWaiting, PeerConnections],
        |case| yes_no_index(Some(calls_pile_up(case).unwrap_or(false)));
    /// Whether connections wait to be accepted by a dependency.
    QueuesAtDependency: "queues_before", true,
        ["no": "a dependency accepts connections without delay",
         "yes": "connections wait to be accepted by a dependency that has idle cores"],
        [PeerQueued, InFlight],
        |case| yes_no_index(Some(connections_queue_at_dependency(case).unwrap_or(false)));
    /// Whether a receiver of the server's output, or the server itself, reads data slowly.
    ReadsSlowly: "reads_slowly", true,
        ["no": "clients and dependencies read the server's data in time",
         "window": "the receive window of a client other than plimsoll was full for most of the time",
         "dependency": "the server reads a dependency's data late, or a dependency reads the server's data late",
         "pipe": "the server's threads wait for the reader of a pipe or a unix socket"],
        [WindowLimited, WindowWaiting, PeerUnread, PeerUnsent, InWrite],
        |case| {
            let by_others = case.line.read_by_others || case.past.read_by_others;
            let unread = [server_reads_dependency_late(case), other_receivers_read_late(case)].into_iter().flatten().reduce(|a, b| a || b);
            first_true_position([is_client_window_full(case).map(|full| full && by_others), unread, threads_wait_for_pipe_reader(case)])
        };
    /// Whether data waits in send buffers or in transit, or many segments are retransmitted.
    DataInTransit: "on_the_way", true,
        ["no": "no data waits in send buffers or in transit, and few TCP segments are retransmitted",
         "server": "responses wait in the server's send buffers",
         "dependency": "responses of a dependency spend a long time in transit",
         "lossy": "many TCP segments are retransmitted"],
        [SendQueue, PeerOnTheWay, PeerComing, Retransmits],
        |case| {
            let send = signal_rises_and_reaches(case, Signal::SendQueue, QUEUE_GROWTH_FACTOR_MIN, RECEIVE_WINDOW_BYTES).map(|queued| {
                let much = case.max_at_high_load(Signal::SendQueue) >= case.max_at_high_load(Signal::BytesIn).map(|bytes| RETRANSMIT_SHARE_MIN * bytes);
                queued && much && case.signal_reaches(Signal::WindowLimited, MOST_SHARE_MIN) != Some(true)
            });
            let behind = [dependency_bytes_are_in_transit(case), dependency_responses_arrive_slowly(case)].into_iter().flatten().reduce(|a, b| a || b);
            let overflows = signal_rises_and_reaches(case, Signal::ListenOverflows, QUEUE_GROWTH_FACTOR_MIN, MOST_SHARE_MIN) == Some(true);
            // Segments that a full receive window delays may be retransmitted although the network
            // loses no segment. If the accept queue overflows, the kernel drops SYN segments, which
            // are then retransmitted.
            let reads_slowly = server_reads_dependency_late(case) == Some(true) || is_client_window_full(case) == Some(true);
            let lossy =
                signal_rises_and_reaches(case, Signal::Retransmits, RISEN_FACTOR_MIN, RETRANSMIT_SHARE_MIN).map(|lossy| lossy && !overflows && !reads_slowly);
            first_true_position([send, behind, lossy])
        };
    /// Whether responses arrive in batches of equal size at even intervals.
    ResponsesInBatches: "comes_in_lumps", true,
        ["no": "responses do not arrive in batches of equal size",
         "yes": "responses arrive in batches of equal size at even intervals"],
        [Lumps, Goodput],
        |case| yes_no_index(Some(case.past.get(Signal::Lumps)? >= CONSIDERABLE_SHARE_MIN && case.low.get(Signal::Lumps).unwrap_or(0.0) < SMALL_SHARE_MAX));
    /// Whether responses arrive at even intervals, as if paced by a clock.
    ComesEvenly: "comes_evenly", false,
        ["no": "responses arrive at uneven intervals", "yes": "responses arrive at even intervals"],
        [Dispersion],
        |case| yes_no_index(Some(case.past.get(Signal::Dispersion)? < PERIODIC_DISPERSION_MAX));
}
