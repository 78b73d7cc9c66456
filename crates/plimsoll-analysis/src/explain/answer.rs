//! The answer in words: what a cause is in a case, and the sentence.

use super::cause::Cause;
use super::contrast::Contrast;
use super::laws::{
    calls_as_served, collected, comes_in_for_long, database, leaves_unsent, locked_behind, on_the_way, one_cores_worth,
    pool_full, queues_behind, reads_late, said_to_wait, sessions_waiting, spins, stops_to_collect, writes_wait,
};
use super::signals::Signal;
use super::weigh::Candidate;
use crate::format;
use crate::sentence::{Remedy, Sentence};

/// From this share of segments sent again on a network loses enough to be named for it.
const LOSSY: f64 = 0.02;
/// Who connects sooner than this has been taken by the kernel.
const SLOW_CONNECT_NS: f64 = 1e8;

/// A figure with its unit.
pub fn value(signal: Signal, value: f64) -> String {
    match signal.text().unit {
        "ns" => format::duration(value),
        "share" => format::share(value.clamp(0.0, 1.0)),
        "bytes" => format::bytes(value),
        "bytes/s" => format!("{}/s", format::bytes(value)),
        "1/s" => format!("{}/s", format::rate(value)),
        "cores" => format!("{value:.2}"),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ => format!("{}", (value * 100.0).round() / 100.0),
    }
}

fn server(case: &Contrast) -> String {
    let name = case.past.server.clone().or_else(|| case.line.server.clone());
    name.unwrap_or_else(|| "the server".to_owned())
}

/// Who answers at an address: `mariadbd at 127.0.0.1:3306`, or the address alone.
fn peer_text(case: &Contrast, address: &str) -> String {
    case.name_of_peer(address).map_or_else(|| address.to_owned(), |name| format!("{name} at {address}"))
}

fn number(value: f64, one: &str, many: &str) -> String {
    if value.round() == 1.0 { format!("1 {one}") } else { format!("{:.0} {many}", value.round()) }
}

/// What a cause is in a case, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseText {
    /// What holds the line: `one thread of node`.
    pub subject: String,
    /// Whether that is several things, which hold it.
    several: bool,
    /// How it shows that it does, as a clause; `None` of what has a sentence of its own.
    pub how: Option<String>,
}

impl CauseText {
    fn one(subject: impl Into<String>, how: impl Into<String>) -> CauseText {
        CauseText { subject: subject.into(), several: false, how: Some(how.into()) }
    }

    fn several(self, several: bool) -> CauseText {
        CauseText { several, ..self }
    }
}

/// What a cause is in this case, and how it shows.
pub fn told(case: &Contrast, cause: Cause) -> CauseText {
    let top = |signal: Signal| case.top(signal).unwrap_or(0.0);
    let share = |signal: Signal| format::rough_share(top(signal).min(1.0));
    let idle = case.bottom(Signal::Idle).zip(case.top(Signal::Cores));
    let idle = idle.map_or_else(String::new, |(idle, cores)| format!("; {idle:.1} of {cores:.0} cores are idle"));
    let no_more = format!("more load brings no more answers{idle}");
    let server = server(case);
    match cause {
        Cause::Client => CauseText { subject: "plimsoll on this machine".to_owned(), several: false, how: None },
        Cause::None | Cause::Delay | Cause::WarmUp | Cause::Neighbour | Cause::Unknown => {
            CauseText { subject: cause.text().to_owned(), several: false, how: None }
        }
        Cause::OneThread if case.thread_full() == Some(true) => {
            let thread = case.past.fullest_thread.clone().or_else(|| case.line.fullest_thread.clone());
            CauseText::one(
                format!("one thread of {server}{}", thread.map_or_else(String::new, |name| format!(", {name}"))),
                format!("it uses {:.2} of a core{idle}", top(Signal::FullestThread)),
            )
        }
        Cause::OneThread => CauseText::one(
            format!("the threads of {server}, of which one runs at a time"),
            format!("together they use {:.2} of a core{idle}", top(Signal::ServerCores)),
        )
        .several(true),
        Cause::Cpu => {
            let downstream = case.top(Signal::DownstreamCores).filter(|cores| *cores > 0.1);
            let downstream = downstream.map_or_else(String::new, |cores| format!(", what is behind it {cores:.2}"));
            let own = top(Signal::ServerCores);
            let all = case.cores_full() == Some(true);
            let count = match (all, case.allowed_full()) {
                (true, _) => top(Signal::Cores),
                (false, Some(true)) => top(Signal::CoresAllowed),
                (false, _) => own,
            };
            let cores = number(count, "core", "cores");
            let several = count.round() != 1.0;
            let of_them = if several { "of them" } else { "of it" };
            CauseText::one(
                if all { format!("the {cores} of this machine") } else { format!("the {cores} that {server} may use") },
                format!("the server uses {own:.2} {of_them}{downstream}, plimsoll {:.2}", top(Signal::ClientCores)),
            )
            .several(several)
        }
        Cause::CpuQuota if case.quota_full() != Some(true) => CauseText::one(
            format!(
                "the quota of {:.2} cores of the control group of {}, which is behind the server",
                top(Signal::DownstreamQuota),
                case.held_back_behind().unwrap_or("what")
            ),
            format!("it was used up in {} of its periods{idle}", share(Signal::DownstreamThrottled)),
        ),
        Cause::CpuQuota => CauseText::one(
            format!("the quota of {:.2} cores of the server's control group", top(Signal::Quota)),
            format!("it was used up in {} of its periods{idle}", share(Signal::Throttled)),
        ),
        Cause::Pool => {
            let under_way = format!("while {:.0} requests are under way{idle}", top(Signal::InFlight));
            let fixed = pool_full(case) == Some(true);
            match case.peer().filter(|_| fixed) {
                Some((peer, count)) => {
                    let several = count.round() != 1.0;
                    CauseText::one(
                        format!("{} to {}", number(count, "connection", "connections"), peer_text(case, peer)),
                        match several {
                            true => format!("all are in use {under_way}"),
                            // From outside one connection that all share looks like a lock that is held for a call.
                            false => format!("it, or a lock around it, is in use {under_way}"),
                        },
                    )
                    .several(several)
                }
                None => {
                    let places = format!("a pool of about {:.0} in {server}", case.at_a_time().unwrap_or(0.0));
                    let asked = case.asked_most().filter(|_| calls_as_served(case) == Some(true));
                    let subject = match asked {
                        Some((peer, _)) => format!("{places}, for calls to {}", peer_text(case, peer)),
                        None => places,
                    };
                    CauseText::one(subject, format!("all of it is in use {under_way}"))
                }
            }
        }
        Cause::Workers if top(Signal::FullThreads) >= 2.0 => CauseText::one(
            format!("{} of {server}", number(top(Signal::FullThreads), "thread", "threads")),
            format!("they have no room left{idle}"),
        )
        .several(true),
        Cause::Workers if queues_behind(case) == Some(true) => {
            let who = case.queued_most().map_or_else(|| "what is behind it".to_owned(), |peer| peer_text(case, peer));
            let count = number(case.at_a_time().unwrap_or(0.0).max(1.0), "request", "requests");
            let queued = number(top(Signal::PeerQueued), "connection", "connections");
            let how = format!("about {count} are served there at a time, and {queued} wait to be accepted{idle}");
            CauseText::one(format!("the workers of {who}"), how).several(true)
        }
        Cause::Workers => {
            let count = case.at_a_time().unwrap_or(0.0);
            CauseText::one(
                format!("{} of {server}", number(count.max(1.0), "worker", "workers")),
                format!("each serves one request at a time, and {:.0} are under way{idle}", top(Signal::InFlight)),
            )
            .several(count.round() > 1.0)
        }
        Cause::Downstream => CauseText::one(
            match case.peer() {
                Some((peer, _)) if case.name_of_peer(peer).is_some() => peer_text(case, peer),
                Some((peer, _)) => format!("what answers at {peer}"),
                None => "what the server calls".to_owned(),
            },
            match case.top(Signal::DownstreamCores).filter(|cores| *cores >= 0.85) {
                Some(cores) => format!("it uses {cores:.2} cores, the server {:.2}{idle}", top(Signal::ServerCores)),
                None => format!("its answers take longer under load, and the server waits for them{idle}"),
            },
        ),
        Cause::Limiter => match case.past.refusals.iter().max_by_key(|(_, times)| *times) {
            Some((status, _)) if top(Signal::Refused) > 0.0 => CauseText::one(
                format!("a limit on the rate (status {status})"),
                format!("{} were answered, whatever was asked", rate_past(case)),
            ),
            _ => CauseText::one(
                "a limit on the rate that lets answers wait",
                format!("{} were answered, and nothing works all the time{idle}", rate_past(case)),
            ),
        },
        Cause::Lock if spins(case) => CauseText::one(
            format!("a lock in {server}"),
            format!("waiting for it takes {} of the server's CPU time", share(Signal::Spinning)),
        ),
        Cause::Lock => match database(case).filter(|_| locked_behind(case) == Some(true)) {
            Some(peer) => {
                let calls = match said_to_wait(case).or_else(|| sessions_waiting(case)) {
                    Some(waiting) => format!("{waiting:.0} statements wait there for another's"),
                    None => format!("{:.0} calls wait there", top(Signal::PeerWaiting)),
                };
                let cores = top(Signal::DownstreamCores);
                CauseText::one(
                    format!("a lock in {}", peer_text(case, peer)),
                    format!("{calls} while it uses {cores:.2} cores{idle}"),
                )
            }
            // From outside, one of the program's own (a goroutine, an actor) that does all the work looks the same.
            None if one_cores_worth(case) == Some(true) => CauseText::one(
                format!("a lock in {server}"),
                format!(
                    "its threads work in turn, for {:.2} cores in all, as behind a lock, or for a goroutine or an actor that does \
                     all the work{idle}",
                    top(Signal::ServerCores)
                ),
            ),
            None => CauseText::one(
                format!("a lock in {server}"),
                format!("{:.1} requests are served at a time{idle}", case.at_a_time().unwrap_or(0.0)),
            ),
        },
        Cause::Gc => CauseText::one(
            format!("garbage collection of {server}"),
            match stops_to_collect(case) {
                true => format!("the server stands still for it {} of the time", share(Signal::GcPauses)),
                false => {
                    let taken = format::rough_share(collected(case).unwrap_or(0.0).min(1.0));
                    format!("it takes {taken} of the server's CPU time")
                }
            },
        ),
        Cause::AcceptBacklog => CauseText::one(
            cause.text(),
            match top(Signal::Connect) {
                // The kernel takes connections at once that the server does not.
                ns if ns < SLOW_CONNECT_NS && case.reaches(Signal::Unaccepted, 1.0) == Some(true) => {
                    format!("{:.0} connections wait there{idle}", top(Signal::Unaccepted))
                }
                ns => format!("connecting took up to {}, answers did not", format::duration(ns)),
            },
        ),
        Cause::Files => {
            CauseText::one(format!("open files of {server}"), format!("{} of the limit are open", share(Signal::Files)))
                .several(true)
        }
        Cause::Disk => CauseText::one(
            cause.text(),
            format!("{:.1} of its threads wait for it{idle}", top(Signal::Blocked).max(top(Signal::InDisk))),
        ),
        Cause::SlowReader if leaves_unsent(case) == Some(true) => CauseText::one(
            format!("whoever {server} sends to besides"),
            format!("{} that it has written to them are not taken{idle}", format::bytes(top(Signal::PeerUnsent))),
        ),
        Cause::SlowReader if reads_late(case) == Some(true) => CauseText::one(
            format!("late reading by {server} of what is answered from behind"),
            format!("{} of answers lie unread{idle}", format::bytes(top(Signal::PeerUnread))),
        ),
        Cause::SlowReader if writes_wait(case) == Some(true) => CauseText::one(
            format!("whoever reads what {server} writes besides, to a pipe or a unix socket"),
            format!(
                "{} until there is room for more{idle}",
                match top(Signal::InWrite) {
                    count if count < 1.5 => format!("a thread waits for {} of the time", share(Signal::InWrite)),
                    count => format!("{count:.0} threads wait"),
                }
            ),
        ),
        Cause::SlowReader => CauseText::one(
            cause.text(),
            format!(
                "for {} of the time it takes no more of what is ready to be sent{idle}",
                share(Signal::WindowLimited)
            ),
        ),
        Cause::Network if on_the_way(case) == Some(true) => CauseText::one(
            cause.text(),
            format!(
                "{} of answers from behind the server are on their way{idle}",
                format::bytes(top(Signal::PeerOnTheWay))
            ),
        ),
        Cause::Network if comes_in_for_long(case) == Some(true) => CauseText::one(
            cause.text(),
            format!(
                "{}/s come from behind the server, and {} come in piece by piece{idle}",
                format::bytes(top(Signal::PeerReceived)),
                number(top(Signal::PeerComing), "answer", "answers"),
            ),
        ),
        Cause::Ports if case.line.no_port + case.past.no_port > 0 => {
            CauseText::one("local ports of this machine", no_more).several(true)
        }
        Cause::Ports => CauseText::one(
            match case.past.ports_behind || case.line.ports_behind {
                true => format!("local ports of what is behind {server}"),
                false => format!("local ports of {server}"),
            },
            format!("{} of those to one peer are taken by connections that are over{idle}", share(Signal::TimeWait)),
        )
        .several(true),
        Cause::Memory if case.killed.is_some_and(|count| count >= 1.0) => CauseText::one(
            "the limit of memory of the server's control group",
            format!("the kernel ended {} for it", number(case.killed.unwrap_or(0.0), "process", "processes")),
        ),
        Cause::Memory if top(Signal::MajorFaults) >= 1.0 => CauseText::one(
            cause.text(),
            format!("{} pages a second are read back from storage{idle}", format::rate(top(Signal::MajorFaults))),
        ),
        Cause::Network if case.reaches(Signal::Retransmits, LOSSY) == Some(true) => {
            CauseText::one(cause.text(), format!("{} of the segments are sent again{idle}", share(Signal::Retransmits)))
        }
        Cause::Network => CauseText::one(
            cause.text(),
            format!("{} lie ready to leave the server{idle}", format::bytes(top(Signal::SendQueue))),
        ),
        Cause::Memory => CauseText::one(cause.text(), no_more),
    }
}

/// The answer.
pub fn sentence(case: &Contrast, cause: Cause) -> Sentence {
    let line = match (case.lower_rps > 0.0, case.sustained_rps) {
        (true, _) => format!("the load line to {}", case.offered_text(case.lower_rps)),
        (false, most) => format!("the server to {}", case.offered_text(most)),
    };
    let CauseText { subject, several, how } = told(case, cause);
    if let Some(how) = how {
        let verb = if several { "limit" } else { "limits" };
        return format!("{subject} {verb} {line}: {how}").into();
    }
    let said = match cause {
        Cause::None => {
            format!("nothing held the line: {}, the highest rate allowed, was held", case.offered_text(case.lower_rps))
        }
        Cause::Client => {
            let why = case.line.limited.clone().or_else(|| case.past.limited.clone());
            let why = match case.held_by_our_connections() {
                Some(true) => {
                    let most = case.past.under_way_max;
                    Sentence::from(format!(
                        "no more than {most:.0} requests may be under way, and all are served at once ("
                    ))
                    .remedy(Remedy::MaxConnections)
                    .words(")")
                }
                _ if why.is_none() && case.top(Signal::WindowLimited).is_some_and(|share| share >= 0.5) => {
                    "it took answers later than the server could send them".into()
                }
                _ => why.unwrap_or_else(|| "it could offer no more".into()),
            };
            return Sentence::from("plimsoll itself was the limit, not the server: ").then(&why);
        }
        Cause::Delay => {
            let low = case.late_low();
            let how = match low.get(Signal::P99) {
                Some(p99) => {
                    // Of few requests that take long none may have been answered in the time that counts.
                    let rate = format::rate(low.get(Signal::Offered).or(low.get(Signal::Goodput)).unwrap_or(0.0));
                    format!("p99 is {} at {rate} requests/s, where nobody waits", format::duration(p99))
                }
                None => format!("a request alone takes {}", format::duration(case.alone_ns.unwrap_or(0.0))),
            };
            format!("answers take longer than promised by themselves: {how}")
        }
        Cause::WarmUp => {
            let past = case.offered_text(case.past.get(Signal::Goodput).unwrap_or(0.0));
            let then = case.offered_text(case.saturated_rps.unwrap_or(0.0));
            let closed = case.answers_most().and_then(|sight| sight.get(Signal::Goodput));
            let now = match (case.holds_upper(), case.holds_more(), closed) {
                (Some(_), ..) => format!("{past}, which did not hold then, hold now"),
                (None, None, Some(closed)) => {
                    format!("{then} were all that it could then, and {} are answered now", case.offered_text(closed))
                }
                (None, ..) => format!("{then} were all that it could then, and {past} hold now"),
            };
            format!("the server was not warm while its line was searched: {now}")
        }
        Cause::Neighbour => {
            let how = case.line.disturbed.clone();
            let how = how.unwrap_or_else(|| "what did not hold while the line was searched holds now".to_owned());
            format!("others on the machine held the server back: {how}")
        }
        _ => "not known".to_owned(),
    };
    said.into()
}

fn rate_past(case: &Contrast) -> String {
    format!("{}/s", format::rate(case.past.get(Signal::Goodput).unwrap_or(case.best_rps)))
}

/// That it is not known, and what may be.
pub fn not_known(case: &Contrast, possible: &[&Candidate]) -> String {
    if let Some(gone) = case.gone {
        return format!("not known: {}", gone.text());
    }
    if let Some(answered_rps) = case.broken_since() {
        return format!(
            "not known: the server has not come back from its search: it held {}, and answers {} of {} now",
            case.offered_text(case.lower_rps),
            format::rate(answered_rps),
            case.offered_text(case.low.get(Signal::Offered).unwrap_or(0.0))
        );
    }
    if let Some(failing) = case.failing {
        let text = failing.text();
        return format!("not known: {text}: that breaks the promise before any limit does");
    }
    if let Some(share) = case.fails_anyhow() {
        let most = case.low.failures.iter().max_by_key(|(_, times)| *times).map_or("", |(how, _)| how.as_str());
        return format!(
            "not known: {} of the requests fail at a low load already ({most}), where nobody waits: that breaks the promise before any limit does",
            format::share(share)
        );
    }
    if case.best_rps > 0.0 && !case.is_seen() {
        return "not known: the budget was too short for the steady loads that tell".to_owned();
    }
    if let Some(held_rps) = case.held_past_rps.filter(|_| case.upper_rps.is_none() && case.plateau() == Some(false)) {
        let held = case.offered_text(held_rps);
        return format!("not known: nothing failed up to {held}, and the budget left no time for more");
    }
    let names: Vec<&str> = possible.iter().map(|candidate| candidate.cause.word()).collect();
    match names.as_slice() {
        [] if case.best_rps <= 0.0 => "not known: nothing was answered".to_owned(),
        [] => "not known: nothing that was looked at is full".to_owned(),
        [one] => format!("not known; it may be {one}, but too little speaks for it"),
        [one, other, ..] => {
            format!("not known: {one} and {other} are possible, and what was seen does not tell them apart")
        }
    }
}

/// Why the server was not seen.
pub fn why_unseen(case: &Contrast) -> String {
    let reasons = case.line.unseen.iter().chain(&case.low.unseen).chain(&case.past.unseen);
    reasons.into_iter().next().cloned().unwrap_or_else(|| "nothing was watched".to_owned())
}
