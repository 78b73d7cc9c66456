//! What signs of the rules ask that takes more than a comparison: laws of queues and of threads, each a pure function of a contrast.
//! `None`: what it needs was not seen.
//!
//! Not here: which cause a law speaks for (`rules`).

use super::contrast::Contrast;
use super::signals::{LoadSignals, Signal};

/// Whether connections wait for their reader to take more for most of the time in which there is something to send, and become
/// more as more is asked: a single one may wait so at any load.
pub(super) fn window_full(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::WindowWaiting)?, case.past.get(Signal::WindowWaiting)?);
    Some(case.top(Signal::WindowLimited)? >= 0.5 && past >= 3.0 * low + 2.0)
}

/// Whether the server leaves what it was sent from behind unread, which was read at a low load: more than a window's worth.
pub(super) fn reads_late(case: &Contrast) -> Option<bool> {
    let (low, top) = (case.low.get(Signal::PeerUnread)?, case.top(Signal::PeerUnread)?);
    Some(top >= 64e3 && top >= 10.0 * low)
}

/// Whether others than those who ask it leave what the server has written to them, and not as calls that are not answered. What is not
/// acknowledged yet grows with the load, and no further.
pub(super) fn leaves_unsent(case: &Contrast) -> Option<bool> {
    let (low, top) = (case.low.get(Signal::PeerUnsent)?, case.top(Signal::PeerUnsent)?);
    // Where it is somebody else who asks it, these are who read its answers.
    let besides = !case.line.read_by_others && !case.past.read_by_others;
    Some(besides && top >= 16e3 && top >= 12.0 * low && !calls_pile_up(case).unwrap_or(false))
}

/// Whether answers from behind are on their way for long: a tenth of a second's worth of what is answered, which the server would read
/// if it had arrived. What is not acknowledged yet grows with the load, and no further.
pub(super) fn on_the_way(case: &Contrast) -> Option<bool> {
    let (low, top) = (case.low.get(Signal::PeerOnTheWay)?, case.top(Signal::PeerOnTheWay)?);
    let unread = case.top(Signal::PeerUnread).unwrap_or(0.0);
    Some(top >= 256e3 && top >= 20.0 * low && top >= 0.1 * case.top(Signal::BytesIn)? && unread <= 0.3 * top)
}

/// Whether answers from behind come in for long, piece by piece, for a large part of what is under way past the line, while who sends
/// them has cores to spare and the server reads what has come: they share a way that is too narrow for them.
pub(super) fn comes_in_for_long(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerComing)?, case.past.get(Signal::PeerComing)?);
    let most = past >= 3.0 * low + 3.0 && past >= 0.3 * case.past.get(Signal::InFlight)?;
    let much = case.past.get(Signal::PeerReceived)? >= 1e5;
    Some(most && much && !reads_late(case).unwrap_or(false) && !downstream_full(case).unwrap_or(false))
}

/// Whether half of what is under way past the line waits for its connection to be accepted, while hardly anything is worked on
/// (who serves one request for each connection takes none of the others).
pub(super) fn unaccepted(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::Unaccepted)?, case.past.get(Signal::Unaccepted)?);
    let under_way = case.past.get(Signal::InFlight)?;
    Some(past >= 4.0 && past >= 0.5 * under_way && low <= 0.1 * past && case.at_a_time()? < 0.6)
}

/// Whether connections to what is behind the server wait there to be accepted, for a third of what is under way past the line, and hardly
/// any did at a low load: whoever takes them has so many at a time, and does not work on these all the time.
pub(super) fn queues_behind(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerQueued)?, case.past.get(Signal::PeerQueued)?);
    let many = past >= 4.0 && past >= 0.3 * case.past.get(Signal::InFlight)? && low <= 0.1 * past;
    Some(many && !downstream_full(case).unwrap_or(false))
}

/// Whether a thread waits for most of the time until somebody reads what it writes to a pipe or a unix socket, and does not at a low
/// load. Who waits there to be accepted waits for workers.
pub(super) fn writes_wait(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::InWrite)?, case.past.get(Signal::InWrite)?);
    Some(past >= 0.5 && past >= 3.0 * low + 0.3 && !queues_behind(case).unwrap_or(false))
}

/// Share of the server's CPU time that collects garbage. Of a collector that works beside requests it is that past the line: before it,
/// cores that nobody wants may collect, which costs nothing (Go's idle workers do).
pub(super) fn collected(case: &Contrast) -> Option<f64> {
    let past = case.past.get(Signal::Gc).filter(|_| case.past.collects_beside);
    past.or(case.top(Signal::Gc))
}

/// Whether a quarter of the server's CPU time waits for locks. Where that was not seen, it is not so: what sleeps for a lock is told
/// otherwise.
pub(super) fn spins(case: &Contrast) -> bool {
    let share = case.past.get(Signal::Spinning).or(case.line.get(Signal::Spinning));
    share.is_some_and(|share| share >= 0.25)
}

/// Whether the server stands still for a tenth of the time to collect garbage: that takes from the tail of the answers long before it
/// takes from the rate.
pub(super) fn stops_to_collect(case: &Contrast) -> bool {
    case.top(Signal::GcPauses).unwrap_or(0.0) >= 0.1
}

/// Whether answers come in lumps of one size at even distances past the line, with nobody answered in between, and not so at a low load:
/// so many are let through at a time, by the clock.
pub(super) fn in_lumps(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::Lumps).unwrap_or(0.0), case.past.get(Signal::Lumps)?);
    Some(past >= 0.3 && low < 0.1)
}

/// How long a port is held by a connection that is over, s: a minute, or as long as it takes until the kernel gives it again to who
/// connects on this machine (Linux, `tcp_tw_reuse`).
const HELD_S: [f64; 2] = [60.0, 1.0];

/// Loads lie about so far apart, s.
const PAUSE_S: f64 = 1.0;

/// Whether all local ports that the server may have to one peer are held, as many come free as are answered, and requests fail then.
pub(super) fn ports_in_turn(case: &Contrast) -> Option<bool> {
    let held = |sight: &LoadSignals| sight.get(Signal::TimeWait).is_some_and(|share| share >= 0.9);
    let (line, past) = (&case.line, &case.past);
    let sight = if held(past) { past } else { line };
    // Those that have come free since the load before are taken once besides.
    let (ports, answered) = (sight.local_ports?, sight.get(Signal::Goodput)? * sight.seconds);
    let as_many = HELD_S.iter().any(|held_s| {
        let turns = sight.seconds / held_s;
        let free = if *held_s <= PAUSE_S { 1.0 } else { 0.0 };
        (0.7 * turns..1.3 * (turns + free)).contains(&(answered / ports))
    });
    let fails = case.past.get(Signal::Failed)? >= 0.01 + 3.0 * case.low.get(Signal::Failed)?;
    Some(held(sight) && as_many && fails)
}

/// Whether the kernel turned connections away from a full queue, and did not at a low load.
pub(super) fn overflows(case: &Contrast) -> Option<bool> {
    let low = case.low.get(Signal::ListenOverflows)?;
    Some(case.top(Signal::ListenOverflows)? > (10.0 * low).max(0.5))
}

/// Whether threads of a server whose interpreter lets one run at a time use one core's worth together: those of one process,
/// beside a parent that works on nothing.
pub(super) fn takes_turns(case: &Contrast) -> Option<bool> {
    Some(case.worker_processes()? <= 1.0 && in_turns(case)? && shares_an_interpreter(case))
}

/// Whether all threads of a process together use one core's worth: they take turns.
pub(super) fn one_cores_worth(case: &Contrast) -> Option<bool> {
    Some(case.top(Signal::Processes)? <= 1.0 && in_turns(case)?)
}

/// Whether several threads use one core's worth, with no thread full and cores idle.
fn in_turns(case: &Contrast) -> Option<bool> {
    let used = case.top(Signal::ServerCores)?;
    let waits = case.top(Signal::RunQueue).unwrap_or(0.0);
    // Who takes turns waits for the others, not for a core; being woken in vain looks like the latter.
    let in_turn = waits < 0.5 || case.past.get(Signal::InLock).is_some_and(|waiting| waiting >= 2.0 * waits);
    let many = case.top(Signal::Threads)? >= 3.0;
    Some((0.85..1.2).contains(&used) && in_turn && many && !case.thread_full()? && case.cores_spare()?)
}

/// Runtimes whose threads take turns at one interpreter, by the names of their processes, or of the programs that run them: a
/// script that is started by its name runs as `flask (python3.12)`.
pub(super) fn shares_an_interpreter(case: &Contrast) -> bool {
    let names = ["python", "pypy", "gunicorn", "uvicorn", "hypercorn", "uwsgi", "ruby", "puma", "unicorn", "thin"];
    let server = case.past.server.as_deref().or(case.line.server.as_deref()).unwrap_or_default();
    let (name, program) = server.trim_end_matches(')').split_once(" (").unwrap_or((server, server));
    // Builds of Python without that lock end in t (PEP 703).
    let is_free = program.starts_with("python3.") && program.ends_with('t');
    !is_free && names.iter().any(|known| name.starts_with(known) || program.starts_with(known))
}

/// Whether threads wait for cores while others are idle: the server is held to some of them. Those that take turns at an interpreter
/// are woken where another one still runs, and wait for that.
pub(super) fn held_to_cores(case: &Contrast) -> Option<bool> {
    let used = case.top(Signal::ServerCores)?;
    let near = |used: f64| used.round() >= 1.0 && (used / used.round() - 1.0).abs() <= 0.08;
    // Who is held to cores uses all of them where it answers most.
    let most = case.answers_most().and_then(|sight| sight.get(Signal::ServerCores));
    let near = near(used) && most.is_none_or(near);
    let waiting = case.top(Signal::RunQueue)?;
    let for_each_other = case.past.get(Signal::InLock).unwrap_or(0.0) - case.low.get(Signal::InLock).unwrap_or(0.0);
    let in_turn = takes_turns(case).unwrap_or(false);
    // As many wait where cores are nearly all in use, by chance.
    let by_chance = [&case.line, &case.past].into_iter().filter_map(wait_by_chance).reduce(f64::max)?;
    Some(near && waiting >= by_chance + 0.5 && for_each_other < waiting && !in_turn && case.cores_spare()?)
}

/// Threads that wait for a core by chance where cores are as busy as in this load: Lq of M/M/c by Sakasegawa's approximation
/// (An approximation formula Lq = a b^rho / (1 - rho), Ann. Inst. Stat. Math. 29, 1977).
fn wait_by_chance(sight: &LoadSignals) -> Option<f64> {
    let (idle, cores) = (sight.get(Signal::Idle)?, sight.get(Signal::Cores)?);
    let busy = (1.0 - idle / cores).clamp(0.0, 0.99);
    Some(busy.powf((2.0 * (cores + 1.0)).sqrt()) / (1.0 - busy))
}

/// Whether the server asks its main peer for requests.
fn asks(case: &Contrast) -> Option<bool> {
    case.asks(case.peer()?.0)
}

/// Whether the server's connections to its main peer, which it asks for requests, are a fixed number while more of these wait.
pub(super) fn pool_full(case: &Contrast) -> Option<bool> {
    let (line, past) = case.peer_counts()?;
    let waiting = case.past.get(Signal::InFlight)?;
    let asked = asks(case).unwrap_or(true) && !unused_behind_a_lock(case).unwrap_or(false);
    let shared = !processes_take_turns(case).unwrap_or(false);
    Some(asked && shared && past >= 1.0 && (past - line).abs() <= (0.02 * past).max(0.5) && waiting >= 1.5 * past)
}

/// Whether plimsoll, on the machine of a server that uses up its cores, was late for want of one: it takes a third of them at most, and none
/// of its threads was busy.
pub(super) fn crowded_out(sight: &LoadSignals) -> Option<bool> {
    let cores = sight.get(Signal::Cores)?;
    let (idle, ours) = (sight.get(Signal::Idle)?, sight.get(Signal::ClientCores)?);
    let busy = sight.get(Signal::Generator)?;
    Some(idle <= 0.1 * cores && ours <= cores / 3.0 && busy < 0.75 && sight.get(Signal::ServerCores)? >= ours)
}

/// Whether those who would use the server's connections to others wait for each other instead: past the line so many threads do that too
/// few are left for the connections.
fn unused_behind_a_lock(case: &Contrast) -> Option<bool> {
    let (_, connections) = case.peer()?;
    let (low, past) = (case.low.get(Signal::InLock)?, case.past.get(Signal::InLock)?);
    let left = case.past.get(Signal::Threads)? - past;
    Some(past - low >= 0.5 * connections && left < 0.5 * connections)
}

/// Whether processes of one thread each wait for each other past the line. These share no connections: however few there are, it is not for
/// them that who has none waits.
fn processes_take_turns(case: &Contrast) -> Option<bool> {
    let (threads, processes) = (case.past.get(Signal::Threads)?, case.past.get(Signal::Processes)?);
    Some(processes >= 3.0 && threads <= processes && locked(case)?)
}

/// Whether what is behind the server has used up its cores: a single process one, several as many as there are.
pub(super) fn downstream_full(case: &Contrast) -> Option<bool> {
    let (Some(cores), Some(processes)) = (case.top(Signal::DownstreamCores), case.top(Signal::DownstreamProcesses))
    else {
        return Some(false);
    };
    let own = case.top(Signal::ServerCores)?;
    let low = case.low.get(Signal::DownstreamCores).unwrap_or(0.0);
    let one = processes <= 1.0 && (0.9..1.15).contains(&cores) && own < 0.85;
    // Where both use up a machine, it is what is behind only if it uses much more of it.
    let all = case.cores_full()? && cores > 1.5 * own && cores > 0.3 * case.top(Signal::Cores)?;
    Some((one || all) && low < 0.6 * cores)
}

/// Whether threads wait for each other past the line, and hardly two at the same place: who gives something out wakes the next one
/// in a line by itself, whereas all who want one lock wait for that. Runtimes that park each thread at its own place (the JVM,
/// .NET) do so for locks as well.
pub(super) fn waits_in_line(case: &Contrast) -> Option<bool> {
    let server = case.past.server.as_deref()?;
    let (waiting, same) = (case.past.get(Signal::InLock)?, case.past.get(Signal::InSameLock)?);
    let parks = ["java", "dotnet"].iter().any(|name| server.starts_with(name));
    Some(!parks && locked(case)? && waiting >= 4.0 && same <= 0.25 * waiting)
}

/// Whether threads wait for each other past the line, most of them at the same place: a lock.
pub(super) fn waits_at_one_place(case: &Contrast) -> Option<bool> {
    let (waiting, same) = (case.past.get(Signal::InLock)?, case.past.get(Signal::InSameLock)?);
    Some(locked(case)? && waiting >= 4.0 && same >= 0.5 * waiting)
}

/// Whether as many more threads than at a low load sleep or wait for storage, at the line and past it, as more requests are served
/// at a time (Little's law): threads that always sleep cancel out.
pub(super) fn threads_at_work(case: &Contrast) -> Option<bool> {
    let at_work = |sight: &LoadSignals| {
        let waits = [Signal::InSleep, Signal::InDisk].into_iter().filter_map(|signal| sight.get(signal));
        waits.reduce(|a, b| a + b)
    };
    let served = |sight: &LoadSignals| Some(sight.get(Signal::Goodput)? * case.taken_ns()? / 1e9);
    let low = (at_work(&case.low)?, served(&case.low)?);
    let more = |sight: &LoadSignals| Some((at_work(sight)? - low.0, served(sight)? - low.1));
    let (line, past) = (more(&case.line)?, more(&case.past)?);
    // What single threads of many do is read in turn, so that a short load shows each of them once: both loads together say it closer.
    // Who waits for the interpreter looks again after a moment, as one does who sleeps.
    let next = if shares_an_interpreter(case) { 1.0 } else { 0.0 };
    let as_many = |(threads, requests): (f64, f64), within: f64, next: f64| {
        requests > 0.0 && (requests * (1.0 - within)..requests * (1.0 + within) + next).contains(&threads)
    };
    Some(
        as_many(line, 0.5, next)
            && as_many(past, 0.5, next)
            && as_many((line.0 + past.0, line.1 + past.1), 0.25, 2.0 * next),
    )
}

/// Whether the threads that wait for work at a low load are all at a request past the line: as many fewer wait as more requests are
/// served at a time (Little's law), and none is left. Nor do more of them sleep, as those do that wait for something with a time limit.
pub(super) fn none_left_idle(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::InLock)?, case.past.get(Signal::InLock)?);
    let served = |sight: &LoadSignals| Some(sight.get(Signal::Goodput)? * case.taken_ns()? / 1e9);
    let more = served(&case.past)? - served(&case.low)?;
    let sleeping = case.past.get(Signal::InSleep)? - case.low.get(Signal::InSleep)?;
    let as_many = more > 0.0 && ((low - past) / more - 1.0).abs() < 0.25 && sleeping <= 1.25 * more;
    Some(low >= 1.6 && past <= 0.1 * low && as_many)
}

/// Requests that are served at a time where it is one after the other, as far as the time of one that is alone tells.
pub(super) const ONE_AT_A_TIME: std::ops::Range<f64> = 0.7..1.35;

/// What waking whoever serves a request, and us when it is answered, may add to the time of one that is alone, ns: some tens of
/// microseconds each on machines that are virtual.
const WAKING_NS: f64 = 1e5;

/// Whether more requests are served at a time than cores work on them, so that those who serve them wait for something. Of requests
/// that take hardly longer than it takes to wake somebody it is not known how many are served at a time.
pub(super) fn more_served_than_worked_on(case: &Contrast) -> Option<bool> {
    let served_ns = case.taken_ns()? - WAKING_NS;
    case.at_a_time()?;
    Some(case.best_rps * served_ns / 1e9 >= 1.3 * case.top(Signal::ServerCores)?)
}

/// Whether it may be that one request is served at a time: as far as the time of one that is alone tells, without what waking takes of it.
pub(super) fn may_be_one_at_a_time(case: &Contrast) -> Option<bool> {
    let served = case.at_a_time()?;
    let waking = case.best_rps * WAKING_NS / 1e9;
    Some(served >= ONE_AT_A_TIME.start && served - waking < ONE_AT_A_TIME.end)
}

/// Whether more threads wait for each other past the line than at a low load.
pub(super) fn locked(case: &Contrast) -> Option<bool> {
    Some(case.past.get(Signal::InLock)? >= case.low.get(Signal::InLock)? + 2.0)
}

/// Whether processes of one thread each have accepted nearly all that is under way past the line: who serves one request at a time
/// leaves the others where they are, and a loop of events has them all.
pub(super) fn takes_all(case: &Contrast) -> Option<bool> {
    let (threads, processes) = (case.past.get(Signal::Threads)?, case.past.get(Signal::Processes)?);
    let (under_way, unaccepted) = (case.past.get(Signal::InFlight)?, case.past.get(Signal::Unaccepted)?);
    let left = under_way - processes;
    let room = case.past.get(Signal::ListenOverflows).is_none_or(|times| times <= 0.0);
    Some(room && threads <= processes && left >= processes.max(4.0) && unaccepted < 0.3 * left)
}

/// Whether the server has a thread for each connection: there are as many more of them past the line than at a low load.
pub(super) fn thread_each(case: &Contrast) -> Option<bool> {
    let more = |signal: Signal| Some(case.past.get(signal)? - case.low.get(signal)?);
    let (threads, connections) = (more(Signal::Threads)?, more(Signal::Accepted)?);
    let waiting = case.past.get(Signal::Unaccepted).unwrap_or(0.0);
    Some(connections >= 16.0 && threads >= 0.8 * connections && waiting <= 0.02 * connections)
}

/// Whether the threads of most requests that are under way past the line sleep for a time, many more than are served at a time: they
/// look again and again whether it is their turn (a database in a file that another one writes to, a lock that is tried for).
pub(super) fn polls(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::InSleep)?, case.past.get(Signal::InSleep)?);
    let (more, under_way) = (past - low, case.past.get(Signal::InFlight)?);
    // Of more requests than it has threads the rest has none yet; of several processes one may have threads to spare.
    let with_thread = under_way.min(case.past.get(Signal::Threads)?);
    Some(more >= 4.0 && more >= 3.0 * case.at_a_time()? && more >= 0.5 * with_thread && more <= 1.3 * under_way)
}

/// Whether those whose requests wait past the line sleep for a time, and none of them waits for data: it is no answer that they wait
/// for. Where it is told how many calls are not answered, these have to be few.
pub(super) fn sleeps_unasked(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::InSleep)?, case.past.get(Signal::InSleep)?);
    let (reading, under_way) = (case.past.get(Signal::InRead)?, case.past.get(Signal::InFlight)?);
    let more = past - low;
    let few = case.past.get(Signal::PeerWaiting).is_none() || calls_are_few(case).unwrap_or(false);
    Some(more >= 4.0 && more >= 4.0 * reading && more >= 0.2 * under_way && few)
}

/// How many threads of the server are called alike, but for a number, where that says that they were made for one purpose: a fixed number,
/// more than a loop or two for each core.
fn alike(case: &Contrast) -> impl Iterator<Item = f64> {
    let cores = case.top(Signal::Cores).unwrap_or(f64::INFINITY);
    let fixed = |(name, count): (&String, &f64)| (case.line.alike.get(name) == Some(count)).then_some(*count);
    case.past.alike.iter().filter_map(fixed).filter(move |count| *count > 2.0 * cores)
}

/// Whether as many threads are called alike as requests are served at a time.
pub(super) fn alike_as_served(case: &Contrast) -> Option<bool> {
    let served = case.at_a_time()?;
    let mut groups = alike(case).peekable();
    groups.peek()?;
    Some(groups.any(|count| (served / count - 1.0).abs() <= 0.15))
}

/// Whether as many threads are called alike as the server has connections to whom it asks: each has made one for itself.
pub(super) fn alike_as_connections(case: &Contrast) -> Option<bool> {
    let (_, connections) = case.peer()?;
    Some(alike(case).any(|count| (count - connections).abs() < 0.5))
}

/// Whether as many threads wait for data as requests are under way past the line, and none for another.
pub(super) fn waits_for_data(case: &Contrast) -> Option<bool> {
    let (reading, under_way) = (case.past.get(Signal::InRead)?, case.past.get(Signal::InFlight)?);
    let locking = case.past.get(Signal::InLock)? - case.low.get(Signal::InLock)?;
    let sleeping = case.past.get(Signal::InSleep)?;
    Some(under_way >= 4.0 && reading >= 0.8 * under_way && locking + sleeping < 0.2 * under_way)
}

/// Proxies, by the names of their processes.
const PROXIES: [&str; 6] = ["nginx", "haproxy", "envoy", "traefik", "caddy", "openresty"];

/// Whether the server is a proxy that hands requests on: where these wait before it does so, a limit of its configuration has them
/// wait; they have nothing to wait for each other for.
pub(super) fn hands_on(case: &Contrast) -> bool {
    let name = case.past.server.as_deref().or(case.line.server.as_deref()).unwrap_or_default();
    case.peer().is_some() && PROXIES.iter().any(|known| name.starts_with(known))
}

/// Whether what a proxy hands on fills all cores of the machine, by more than one process: these are the service, and nothing behind it.
pub(super) fn hands_on_to_cores(case: &Contrast) -> Option<bool> {
    Some(hands_on(case) && case.top(Signal::DownstreamProcesses)? > 1.0 && case.cores_full()?)
}

/// Whether threads stand in storage for at least half of the requests that are under way past the line, beyond those of a low load.
pub(super) fn stand_in_storage(case: &Contrast) -> Option<bool> {
    let more = case.past.get(Signal::InDisk)? - case.low.get(Signal::InDisk)?;
    let under_way = case.past.get(Signal::InFlight)?;
    Some(under_way >= 4.0 && more >= 0.5 * under_way)
}

/// Whether requests wait for something past the line of which nothing is to be seen: no worker for each that is served, no
/// thread that sleeps, or waits for another or for storage, nobody whom many of them have asked, and no connection that was not
/// accepted.
pub(super) fn waits_unseen(case: &Contrast) -> Option<bool> {
    let more = |signal: Signal| Some(case.past.get(signal)? > case.low.get(signal)? + 1.0);
    let threads = [Signal::InLock, Signal::InSleep, Signal::InDisk, Signal::Blocked].map(more);
    if threads.iter().all(Option::is_none) {
        return None;
    }
    let threads = threads.into_iter().flatten().any(|it| it) || case.reaches(Signal::IoPressure, 0.3).unwrap_or(false);
    let asked = case.peer().is_some() && asks(case).unwrap_or(true) && !calls_are_few(case).unwrap_or(false);
    let queued = case.past.get(Signal::Unaccepted).is_some_and(|count| count >= 4.0);
    let workers = case.worker_processes()? > 1.0 && !takes_all(case).unwrap_or(false);
    let none_left = none_left_idle(case).unwrap_or(false);
    Some(!workers && !none_left && !threads && !asked && !queued)
}

/// Calls to what is behind the server that are not answered past the line, or of which the answer is still coming in.
fn calls_under_way(case: &Contrast) -> Option<f64> {
    Some(case.past.get(Signal::PeerWaiting)? + case.past.get(Signal::PeerComing).unwrap_or(0.0))
}

/// Whether hardly one of the requests that are under way past the line waits for what is behind the server, which has connections to
/// spare: they wait before they ask.
pub(super) fn calls_are_few(case: &Contrast) -> Option<bool> {
    let calls = calls_under_way(case)?;
    Some(calls <= 0.2 * case.past.get(Signal::InFlight)? && calls < 0.6 * case.peer()?.1)
}

/// Whether as many calls to what is behind the server are under way past the line as requests are served at a time, of many more that
/// wait: they are let through so many at a time before it asks, and what it asks answers as fast as ever.
pub(super) fn calls_as_served(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerWaiting)?, case.past.get(Signal::PeerWaiting)?);
    let calls = calls_under_way(case)?;
    let as_many = (0.75..=1.25).contains(&(calls / case.at_a_time()?));
    Some(calls >= 1.6 && past >= 2.0 * low && as_many && case.past.get(Signal::InFlight)? >= 2.0 * calls)
}

/// Whether the server has a process or a thread for each request that is served at a time, as far as that is seen.
pub(super) fn worker_each(case: &Contrast) -> Option<bool> {
    let served = case.at_a_time()?;
    let processes =
        case.worker_processes().is_some_and(|workers| workers > 1.0 && (served / workers - 1.0).abs() <= 0.25);
    let threads = [none_left_idle(case), alike_as_served(case), threads_at_work(case)];
    let reading = case.past.get(Signal::InRead).is_some_and(|reading| reading >= 0.75 * served);
    Some(processes || reading || threads.into_iter().flatten().any(|it| it))
}

/// Whether calls that are not answered become more than what is served at a time (Little's law): each takes longer than alone.
fn calls_pile_up(case: &Contrast) -> Option<bool> {
    let (low, past) = (case.low.get(Signal::PeerWaiting)?, case.past.get(Signal::PeerWaiting)?);
    Some(past >= 3.0 * low + 3.0 && case.at_a_time()? < 0.6 * past)
}

/// Databases whose statements wait for each other's locks, by the names of their processes.
const DATABASES: [&str; 6] = ["mariadbd", "mysqld", "postgres", "sqlservr", "oracle", "db2sysc"];

/// The database behind the server: of several the one that most calls wait for, or to which it has most connections.
pub(super) fn database(case: &Contrast) -> Option<&str> {
    let is_known = |peer: &str| {
        let name = case.name_of_peer(peer);
        name.is_some_and(|name| DATABASES.iter().any(|known| name.starts_with(known)))
    };
    let calls = |peer: &str| case.past.calls_to_peers.get(peer).copied().unwrap_or(0.0);
    let all = case.past.peers.iter().filter(|(peer, _)| is_known(peer));
    let most = all.max_by(|a, b| calls(a.0).total_cmp(&calls(b.0)).then(a.1.total_cmp(b.1)));
    most.map(|(peer, _)| peer.as_str())
}

/// Whether statements wait for each other in a database behind the server (rows, tables): calls that are not answered pile up there,
/// while it neither works nor waits for storage; nothing else keeps a database from answering. Or it says so itself.
pub(super) fn locked_behind(case: &Contrast) -> Option<bool> {
    let database = database(case)?;
    if said_to_wait(case).is_some() {
        return Some(true);
    }
    let idle = case.top(Signal::DownstreamCores)? < 0.6;
    let reads = case.reaches(Signal::IoPressure, 0.25).unwrap_or(false);
    if idle && !reads && sessions_waiting(case).is_some() {
        return Some(true);
    }
    let (address, calls) = case.asked_most()?;
    let low = case.low.calls_to_peers.get(address).copied().unwrap_or(0.0);
    let piled_up = calls >= 3.0 * low + 3.0 && case.at_a_time()? < 0.6 * calls;
    Some(address == database && piled_up && idle && !reads)
}

/// How many statements past the line say that they wait for a lock of another's, where that is most of those that are waited for:
/// more than are served at a time.
pub(super) fn said_to_wait(case: &Contrast) -> Option<f64> {
    let (low, past) = (case.low.get(Signal::DownstreamInLock)?, case.past.get(Signal::DownstreamInLock)?);
    (past >= 3.0 * low + 3.0 && past >= 1.5 * case.at_a_time()?).then_some(past)
}

/// How many more threads of a database than at a low load wait to be woken, where that is most of those that are waited for: more than
/// are served at a time. One that works for a statement, or sleeps because that says so, is served.
pub(super) fn sessions_waiting(case: &Contrast) -> Option<f64> {
    let (low, past) =
        (case.low.get(Signal::DownstreamThreadsWaiting)?, case.past.get(Signal::DownstreamThreadsWaiting)?);
    let more = past - low;
    (more >= 3.0 && more >= 1.5 * case.at_a_time()?).then_some(more)
}

/// Whether calls to what is behind the server take longer under load: connections are all in use, and fewer requests are
/// served at a time than there are of them; or they become more and more, and nothing else does; or there are enough, and
/// the threads of all requests wait for data; or more calls are not answered than there would be if each took what it takes alone.
pub(super) fn downstream_slower(case: &Contrast) -> Option<bool> {
    if calls_pile_up(case).unwrap_or(false) {
        return Some(case.plateau()? && case.nothing_full()?);
    }
    let (line, past) = case.peer_counts()?;
    let waiting = case.past.get(Signal::InFlight)?;
    let at_a_time = case.at_a_time()?;
    // Connections that stand idle are kept, not in use: where nearly none has a call that is not answered, it is not those that wait.
    // Where that is not told (over unix sockets), at least one call would have to be under way all the time. What waits as much at a low
    // load (for messages that come one day) is no call of a request.
    let rises = |calls: f64| case.low.get(Signal::PeerWaiting).is_none_or(|low| calls >= 1.5 * low);
    let in_use =
        case.past.get(Signal::PeerWaiting).map_or(at_a_time >= 0.6, |calls| calls >= 0.6 * past && rises(calls));
    let full = pool_full(case)? && at_a_time < 0.7 * past && past > 1.0 && in_use;
    // Who has a connection for each thread has more of them as more requests wait, for whatever that is.
    let asked = !calls_are_few(case).unwrap_or(false);
    let grows = past >= 1.3 * line && past >= line + 2.0 && waiting <= 1.5 * past && asked;
    let enough = past >= 0.8 * waiting && at_a_time < 0.7 * waiting && waits_for_data(case).unwrap_or(false);
    Some((full || grows || enough) && case.plateau()? && case.nothing_full()?)
}
