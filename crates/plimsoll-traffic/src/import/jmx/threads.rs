//! Imports the load of JMeter thread groups: users over time or sessions a second, and the end of
//! the load.
//!
//! Not here: the steps of a thread.

use super::super::draft::DraftLoad;
use super::values::TestPlanVariables;
use super::xml::{Element, property, short_text};
use crate::file::TextPosition;

/// The largest number of stages of an imported load.
const STAGES_MAX: usize = 200;
/// The longest imported duration, s.
const DURATION_S_MAX: f64 = 1e7;

/// Threads that ramp up, stay at one level, and ramp down.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ThreadSpan {
    threads: f64,
    start_s: f64,
    ramp_s: f64,
    hold_s: f64,
    ramp_down_s: f64,
}

impl ThreadSpan {
    /// Returns the four times at which the number of threads starts or stops changing, s.
    fn change_times_s(&self) -> [f64; 4] {
        let risen_s = self.start_s + self.ramp_s;
        [self.start_s, risen_s, risen_s + self.hold_s, risen_s + self.hold_s + self.ramp_down_s]
    }

    /// Returns the number of threads just before (`side` = -1) or just after (`side` = 1) the time
    /// `at_s`.
    fn threads_at(&self, at_s: f64, side: f64) -> f64 {
        let [start_s, risen_s, held_s, end_s] = self.change_times_s();
        let at_s = at_s + side * 1e-9;
        if at_s < start_s || at_s > end_s {
            0.0
        } else if at_s < risen_s {
            self.threads * (at_s - start_s) / self.ramp_s
        } else if at_s <= held_s {
            self.threads
        } else {
            self.threads * (end_s - at_s) / self.ramp_down_s
        }
    }
}

/// A linear change of the number of threads, or of the session rate, over `length_s` seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ramp {
    from: f64,
    to: f64,
    length_s: f64,
}

/// How the threads of a group start and end.
#[derive(Debug, Clone, PartialEq)]
enum ThreadArrivals {
    /// A number of threads that changes over time and ends at a known time.
    Spans(Vec<ThreadSpan>),
    /// Threads that start within `ramp_s` seconds, and the number of loops that each thread runs.
    /// If `loops` is `None`, the threads run endlessly.
    Loops { ramp_s: f64, loops: Option<f64> },
    /// Sessions that start at a rate that changes over time. The rates are in sessions per second.
    Rate(Vec<Ramp>),
    /// The arrivals of threads cannot be imported from this thread group.
    Unknown,
}

/// The load of one thread group.
#[derive(Debug, Clone, PartialEq)]
struct GroupLoad {
    name: String,
    at: TextPosition,
    threads: Option<f64>,
    start_pattern: ThreadArrivals,
    /// The number of requests in one session; 0 until the steps are imported.
    requests: usize,
}

/// A throughput timer of JMeter, which limits the rate of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TimerRate {
    requests_per_minute: f64,
    /// Whether the rate applies to each thread. If false, all threads together have this rate.
    is_per_thread: bool,
    at: TextPosition,
    /// The index of the thread group with the timer. `None` if the timer applies to all groups.
    group: Option<usize>,
}

/// The loads of all thread groups of a test plan, collected while the plan is imported.
#[derive(Debug, Default)]
pub struct JmxLoad {
    groups: Vec<GroupLoad>,
    timer_rate: Option<TimerRate>,
    /// Whether the importer is inside a thread group.
    is_in_group: bool,
}

impl JmxLoad {
    /// Begins a thread group and stores its load. Returns the number of threads of the group, if
    /// known.
    pub fn begin_group(
        &mut self,
        element: &Element,
        name: &str,
        values: &TestPlanVariables,
        left_out: &mut Vec<String>,
    ) -> Option<f64> {
        let number = |property: &str| {
            element.property(property).and_then(|text| values.literal_number(text)).filter(|number| *number >= 0.0)
        };
        let (threads, start_pattern) = match element.kind() {
            "ThreadGroup" => standard_group_load(element, name, values, left_out),
            "ConcurrencyThreadGroup" => concurrency_group_load(&number, element),
            "ArrivalsThreadGroup" => arrivals_group_load(&number, element),
            "SteppingThreadGroup" => stepping_group_load(&number),
            "UltimateThreadGroup" => ultimate_group_load(element, values),
            "OpenModelThreadGroup" => {
                let schedule = element.property("OpenModelThreadGroup.schedule").unwrap_or_default();
                let ramps = values.text_without_templates(schedule).and_then(|text| parse_schedule(&text));
                (None, ramps.map_or(ThreadArrivals::Unknown, ThreadArrivals::Rate))
            }
            _ => (None, ThreadArrivals::Unknown),
        };
        let threads = threads.map(|threads| threads.clamp(0.0, 1e6).round());
        if start_pattern == ThreadArrivals::Unknown {
            let text = format!(
                "'{name}': the number of threads of this {group_type} over time is not known: set the users or the \
                 rate of the load",
                group_type = short_text(element.kind())
            );
            left_out.push(text);
        }
        self.groups.push(GroupLoad { name: name.to_owned(), at: element.place(), threads, start_pattern, requests: 0 });
        self.is_in_group = true;
        threads
    }

    /// Ends the current thread group, whose sessions have `requests` requests each.
    pub fn end_group(&mut self, requests: usize) {
        self.is_in_group = false;
        if let Some(group) = self.groups.last_mut() {
            group.requests = requests;
        }
    }

    /// Stores the rate of a throughput timer in requests a minute, for each thread or for all
    /// threads together. Returns false and changes nothing if the test plan already has a
    /// throughput timer.
    pub fn set_timer_rate(&mut self, per_minute: f64, is_each: bool, at: TextPosition) -> bool {
        let group = self.is_in_group.then(|| self.groups.len() - 1);
        let is_first = self.timer_rate.is_none();
        self.timer_rate.get_or_insert(TimerRate { requests_per_minute: per_minute, is_per_thread: is_each, at, group });
        is_first
    }

    /// Returns the load of all groups with requests, in the syntax of a traffic file, and notes
    /// about omissions.
    pub fn draft_load(&self) -> (DraftLoad, Vec<(TextPosition, String)>) {
        let mut left_out = Vec::new();
        let asking = || self.groups.iter().enumerate().filter(|(_, group)| group.requests > 0);
        let mut groups: Vec<&GroupLoad> = asking().map(|(_, group)| group).collect();
        if let (Some((_, group)), true) = (asking().next(), groups.len() > 1) {
            let text =
                "several thread groups share the users: each session picks a group, in proportion to its threads";
            left_out.push((group.at, text.to_owned()));
        }
        if let Some(group) = groups
            .iter()
            .find(|group| matches!(group.start_pattern, ThreadArrivals::Rate(_)))
            .filter(|_| groups.len() > 1)
        {
            let text = format!(
                "'{group}': this thread group starts sessions at a rate, and other groups do not: set the rate of the \
                 load",
                group = group.name
            );
            left_out.push((group.at, text));
            groups.retain(|group| !matches!(group.start_pattern, ThreadArrivals::Rate(_)));
        }
        let mut load = DraftLoad::default();
        if let [GroupLoad { start_pattern: ThreadArrivals::Rate(ramps), .. }] = groups.as_slice() {
            load.rate = stages_text(ramps);
            return (load, left_out);
        }
        let threads: f64 = groups.iter().filter_map(|group| group.threads).sum();
        self.set_duration_and_sessions(&groups, &mut load);
        if let Some(pace) = self.timer_rate {
            let of_all = pace.group.is_none() || groups.len() == 1;
            let asked: f64 = groups.iter().map(|group| group.threads.unwrap_or(1.0) * group.requests as f64).sum();
            let each = asked / groups.iter().map(|group| group.threads.unwrap_or(1.0)).sum::<f64>().max(1.0);
            if of_all && each >= 1.0 {
                let per_minute = if pace.is_per_thread {
                    pace.requests_per_minute * threads.max(1.0)
                } else {
                    pace.requests_per_minute
                };
                let rate = number_text((per_minute / 60.0 / each).max(0.001));
                let text = format!(
                    "a JMeter timer of {requests} requests a minute becomes an open loop of {rate} sessions a second",
                    requests = number_text(per_minute)
                );
                left_out.push((pace.at, text));
                load.rate = Some(rate);
                return (load, left_out);
            }
            let text = format!(
                "a JMeter timer of {requests} requests a minute is not imported: set the rate of the load",
                requests = number_text(pace.requests_per_minute)
            );
            left_out.push((pace.at, text));
        }
        if let [
            GroupLoad {
                start_pattern: ThreadArrivals::Loops { ramp_s, loops: Some(1.0) }, threads: Some(threads), ..
            },
        ] = groups.as_slice()
            && *ramp_s > 1.0
            && *threads > 1.0
        {
            // Threads that run one loop each are sessions that start in sequence, so the load has a
            // session rate.
            load.rate = Some(number_text(threads / ramp_s));
            return (load, left_out);
        }
        let stretches: Vec<ThreadSpan> = groups
            .iter()
            .flat_map(
                |group| if let ThreadArrivals::Spans(stretches) = &group.start_pattern { &stretches[..] } else { &[] },
            )
            .copied()
            .collect();
        if !groups.is_empty() && groups.iter().all(|group| matches!(group.start_pattern, ThreadArrivals::Spans(_))) {
            let ramps = total_threads_over_time(&stretches);
            // A plan whose thread groups have no threads gets no load.
            if ramps.iter().all(|ramp| ramp.from <= 0.0 && ramp.to <= 0.0) {
                return (load, left_out);
            }
            match ramps.as_slice() {
                [Ramp { from, to, length_s }] if from == to => {
                    (load.users, load.duration) = (Some(number_text(*from)), Some(duration_text(*length_s)));
                }
                ramps => (load.users, load.duration) = (stages_text(ramps), None),
            }
            return (load, left_out);
        }
        if groups.iter().all(|group| group.threads.is_some()) && threads >= 1.0 {
            load.users = Some(number_text(threads));
        }
        for group in groups {
            let ramp_s = match &group.start_pattern {
                ThreadArrivals::Loops { ramp_s, .. } => *ramp_s,
                ThreadArrivals::Spans(stretches) => stretches.iter().map(|it| it.ramp_s).fold(0.0, f64::max),
                _ => 0.0,
            };
            if ramp_s > 1.0 && group.threads.is_some_and(|threads| threads > 1.0) {
                let text = format!(
                    "'{group}': the threads of this group start within {seconds} s in JMeter, but at once in plimsoll",
                    group = group.name,
                    seconds = number_text(ramp_s)
                );
                left_out.push((group.at, text));
            }
        }
        (load, left_out)
    }

    /// Sets the end of a load: its duration, and its number of sessions.
    fn set_duration_and_sessions(&self, groups: &[&GroupLoad], load: &mut DraftLoad) {
        let end_s = |group: &&GroupLoad| match &group.start_pattern {
            ThreadArrivals::Spans(stretches) => {
                Some(stretches.iter().map(|it| it.change_times_s()[3]).fold(0.0, f64::max))
            }
            _ => None,
        };
        let longest_s = groups.iter().filter_map(end_s).fold(0.0, f64::max);
        if longest_s > 0.0 {
            load.duration = Some(duration_text(longest_s));
        }
        let of = |group: &&GroupLoad| match group.start_pattern {
            ThreadArrivals::Loops { loops: Some(loops), .. } => Some(loops * group.threads?),
            _ => None,
        };
        let sessions: Option<f64> = groups.iter().map(of).sum();
        load.sessions = sessions.filter(|sessions| *sessions >= 1.0).map(|sessions| sessions.min(1e12) as u64);
    }
}

/// Returns the load of a standard thread group.
fn standard_group_load(
    element: &Element,
    name: &str,
    values: &TestPlanVariables,
    left_out: &mut Vec<String>,
) -> (Option<f64>, ThreadArrivals) {
    let number = |property: &str| {
        element.property(property).and_then(|text| values.literal_number(text)).filter(|number| *number >= 0.0)
    };
    let threads = number("ThreadGroup.num_threads");
    if threads.is_none() {
        left_out.push(format!(
            "'{name}': the number of threads of this group is not known: set the number of users with -c"
        ));
    }
    let ramp_s = number("ThreadGroup.ramp_time").unwrap_or(0.0);
    let is_timed = element.is_property_true("ThreadGroup.scheduler");
    let start_s = number("ThreadGroup.delay").filter(|_| is_timed).unwrap_or(0.0);
    let loops = element.node.descendants().find_map(|node| property(node, "LoopController.loops"));
    let loops = loops.and_then(|text| values.literal_number(text)).filter(|loops| *loops >= 0.0);
    let duration_s = number("ThreadGroup.duration").filter(|duration_s| is_timed && *duration_s > 0.0);
    let coming = match (duration_s, loops, threads) {
        (Some(duration_s), None, Some(threads)) => {
            let ramp_s = if ramp_s > 1.0 && threads > 1.0 { ramp_s.min(duration_s) } else { 0.0 };
            ThreadArrivals::Spans(vec![ThreadSpan {
                threads,
                start_s,
                ramp_s,
                hold_s: duration_s - ramp_s,
                ramp_down_s: 0.0,
            }])
        }
        (duration_s, loops, _) => {
            if loops.is_none() && duration_s.is_none() {
                left_out.push(format!(
                    "'{name}': the JMeter thread group never ends: the duration of the plimsoll load applies"
                ));
            }
            if let (Some(duration_s), Some(_)) = (duration_s, loops) {
                let seconds = number_text(duration_s);
                left_out.push(format!(
                    "'{name}': the thread group ends after at most {seconds} s in JMeter, but not in plimsoll"
                ));
            }
            if start_s > 0.0 {
                left_out.push(format!("'{name}': the thread group has a start delay, which plimsoll does not import"));
            }
            ThreadArrivals::Loops { ramp_s, loops }
        }
    };
    (threads, coming)
}

/// Returns the length in seconds of the time unit that a thread group uses.
fn time_unit_length_s(element: &Element) -> f64 {
    if element.property("Unit").is_some_and(|unit| unit.trim() == "S") { 1.0 } else { 60.0 }
}

/// Returns the load of a concurrency thread group, which grows to a target in steps and stays
/// there.
fn concurrency_group_load(number: &impl Fn(&str) -> Option<f64>, element: &Element) -> (Option<f64>, ThreadArrivals) {
    let unit_s = time_unit_length_s(element);
    let (Some(threads), ramp_s) = (number("TargetLevel"), number("RampUp").unwrap_or(0.0) * unit_s) else {
        return (None, ThreadArrivals::Unknown);
    };
    let hold_s = number("Hold").unwrap_or(0.0) * unit_s;
    let steps = number("Steps").unwrap_or(0.0).clamp(0.0, STAGES_MAX as f64) as usize;
    let stretches = match steps {
        0 | 1 => vec![ThreadSpan { threads, start_s: 0.0, ramp_s, hold_s, ramp_down_s: 0.0 }],
        steps => (0..steps)
            .map(|step| {
                let start_s = ramp_s * step as f64 / steps as f64;
                ThreadSpan {
                    threads: threads / steps as f64,
                    start_s,
                    ramp_s: 0.0,
                    hold_s: ramp_s - start_s + hold_s,
                    ramp_down_s: 0.0,
                }
            })
            .collect(),
    };
    (Some(threads), ThreadArrivals::Spans(stretches))
}

/// Returns the load of an arrivals thread group, whose rate grows to a target and stays there.
fn arrivals_group_load(number: &impl Fn(&str) -> Option<f64>, element: &Element) -> (Option<f64>, ThreadArrivals) {
    let unit_s = time_unit_length_s(element);
    let Some(rate) = number("TargetLevel").map(|level| level / unit_s) else { return (None, ThreadArrivals::Unknown) };
    let ramp = Ramp { from: 0.0, to: rate, length_s: number("RampUp").unwrap_or(0.0) * unit_s };
    let hold = Ramp { from: rate, to: rate, length_s: number("Hold").unwrap_or(0.0) * unit_s };
    (None, ThreadArrivals::Rate(vec![ramp, hold]))
}

/// Returns the load of a stepping thread group, which adds and stops threads in steps.
fn stepping_group_load(number: &impl Fn(&str) -> Option<f64>) -> (Option<f64>, ThreadArrivals) {
    let of = |name: &str| number(name).unwrap_or(0.0);
    let Some(threads) = number("ThreadGroup.num_threads").filter(|threads| *threads >= 1.0) else {
        return (None, ThreadArrivals::Unknown);
    };
    let (ramp_s, each, burst) = (of("rampUp"), of("Start users count").max(1.0), of("Start users count burst"));
    let (mut stretches, mut started, mut at_s) = (Vec::new(), 0.0, of("Threads initial delay"));
    while started < threads && stretches.len() < STAGES_MAX {
        let next = if started == 0.0 && burst > 0.0 { burst } else { each };
        let next = next.min(threads - started);
        stretches.push(ThreadSpan { threads: next, start_s: at_s, ramp_s, hold_s: 0.0, ramp_down_s: 0.0 });
        started += next;
        at_s += ramp_s + if started < threads { of("Start users period") } else { 0.0 };
    }
    if started < threads {
        return (Some(threads), ThreadArrivals::Unknown);
    }
    let held_s = at_s + of("flighttime");
    // When threads begin to stop, `stop` threads stop at once, and `stop` further threads stop
    // after each period.
    let (stop, period_s) = (of("Stop users count"), of("Stop users period"));
    let stop_s = if stop > 0.0 { (threads / stop).ceil() * period_s } else { 0.0 };
    for stretch in &mut stretches {
        (stretch.hold_s, stretch.ramp_down_s) = (held_s - stretch.start_s - ramp_s, stop_s);
    }
    (Some(threads), ThreadArrivals::Spans(stretches))
}

/// Returns the load of an ultimate thread group, whose rows have threads, delay, ramp-up, hold and
/// ramp-down times.
fn ultimate_group_load(element: &Element, values: &TestPlanVariables) -> (Option<f64>, ThreadArrivals) {
    let row = |row: roxmltree::Node| -> Option<ThreadSpan> {
        let cells: Vec<f64> = row
            .children()
            .filter(roxmltree::Node::is_element)
            .map(|cell| values.literal_number(cell.text().unwrap_or("0")).filter(|number| *number >= 0.0))
            .collect::<Option<_>>()?;
        let [threads, start_s, ramp_s, hold_s, stop_s] = cells.as_slice() else { return None };
        Some(ThreadSpan {
            threads: *threads,
            start_s: *start_s,
            ramp_s: *ramp_s,
            hold_s: *hold_s,
            ramp_down_s: *stop_s,
        })
    };
    let data = element.collection_items("ultimatethreadgroupdata");
    let stretches: Option<Vec<ThreadSpan>> = data.into_iter().map(row).collect();
    match stretches.filter(|stretches| (1..=STAGES_MAX).contains(&stretches.len())) {
        Some(stretches) => (Some(stretches.iter().map(|it| it.threads).sum()), ThreadArrivals::Spans(stretches)),
        None => (None, ThreadArrivals::Unknown),
    }
}

/// Returns the total number of threads over time, summed over several thread spans.
fn total_threads_over_time(spans: &[ThreadSpan]) -> Vec<Ramp> {
    let mut turns_s: Vec<f64> = spans.iter().flat_map(ThreadSpan::change_times_s).chain([0.0]).collect();
    turns_s.sort_by(f64::total_cmp);
    turns_s.dedup_by(|a, b| (*a - *b).abs() < 1e-3);
    let level = |at_s: f64, side: f64| spans.iter().map(|it| it.threads_at(at_s, side)).sum::<f64>().round();
    let mut ramps: Vec<Ramp> = Vec::new();
    for ends in turns_s.windows(2) {
        // A ramp from 0 to several threads starts with one thread.
        let (from, to) = (level(ends[0], 1.0), level(ends[1], -1.0));
        let from = if from == 0.0 && to > 1.0 { 1.0 } else { from };
        match ramps.last_mut() {
            Some(last) if last.from == last.to && last.to == from && from == to => last.length_s += ends[1] - ends[0],
            _ => ramps.push(Ramp { from, to, length_s: ends[1] - ends[0] }),
        }
    }
    ramps
}

/// Returns the stages of a load in the syntax of a traffic file. `None` if the load is always 0, or
/// has too many stages.
fn stages_text(ramps: &[Ramp]) -> Option<String> {
    let ramps: Vec<&Ramp> = ramps.iter().filter(|ramp| ramp.length_s > 0.0).collect();
    let is_some = ramps.iter().any(|ramp| ramp.from > 0.0 || ramp.to > 0.0);
    let stage = |ramp: &&Ramp| {
        let level = match number_text(ramp.from) == number_text(ramp.to) {
            true => number_text(ramp.to),
            false => format!("{}..{}", number_text(ramp.from), number_text(ramp.to)),
        };
        format!("{level}@{}", duration_text(ramp.length_s))
    };
    (is_some && ramps.len() <= STAGES_MAX).then(|| ramps.iter().map(stage).collect::<Vec<_>>().join(","))
}

/// Formats a number with at most three decimals.
fn number_text(number: f64) -> String {
    ((number * 1e3).round() / 1e3).to_string()
}

fn duration_text(seconds: f64) -> String {
    let ms = (seconds.min(DURATION_S_MAX) * 1e3).round().max(1.0) as u64;
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

/// Parses a schedule of rates such as `rate(1/s) random_arrivals(2 min) rate(5/s)`. A `rate` after
/// an arrivals entry is the rate at the end of the arrivals entry.
fn parse_schedule(text: &str) -> Option<Vec<Ramp>> {
    let (mut ramps, mut rate, mut rest) = (Vec::<Ramp>::new(), 0.0, text);
    // Whether the last part of the schedule was an arrivals entry. The rate that follows an
    // arrivals entry is the final rate of that entry.
    let mut open = false;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return (!ramps.is_empty()).then_some(ramps);
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
            continue;
        }
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let (name, after) = rest.split_once('(')?;
        let (argument, after) = after.split_once(')')?;
        rest = after;
        match name.trim() {
            "rate" => {
                let (count, unit) = argument.split_once('/').unwrap_or((argument, "s"));
                let count: f64 = count.trim().parse().ok().filter(|count: &f64| count.is_finite() && *count >= 0.0)?;
                rate = count / unit_length_s(unit.trim())?;
                if let (Some(last), true) = (ramps.last_mut(), open) {
                    last.to = rate;
                }
                open = false;
            }
            "random_arrivals" | "even_arrivals" => {
                ramps.push(Ramp { from: rate, to: rate, length_s: parse_duration_s(argument)? });
                open = true;
            }
            "pause" => {
                ramps.push(Ramp { from: 0.0, to: 0.0, length_s: parse_duration_s(argument)? });
                open = false;
            }
            _ => return None,
        }
        if ramps.len() > STAGES_MAX {
            return None;
        }
    }
}

/// Returns the length of a time unit, s; `None` for an unknown unit.
fn unit_length_s(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 1e-3,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

/// Parses a time with units, such as `30s` or `1 h 30 min`, to seconds.
fn parse_duration_s(text: &str) -> Option<f64> {
    let (mut total, mut rest) = (0.0, text.trim());
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        total += number * if letters == 0 { 1.0 } else { unit_length_s(&rest[..letters])? };
        rest = rest[letters..].trim_start();
    }
    (total > 0.0 && total <= DURATION_S_MAX).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::LoadCurve;

    fn thread_span(threads: f64, start_s: f64, ramp_s: f64, hold_s: f64, stop_s: f64) -> ThreadSpan {
        ThreadSpan { threads, start_s, ramp_s, hold_s, ramp_down_s: stop_s }
    }

    #[test]
    fn thread_groups_sum_over_time() {
        for (stretches, expect) in [
            (vec![thread_span(10.0, 0.0, 0.0, 60.0, 0.0)], "10@60s"),
            (vec![thread_span(20.0, 0.0, 10.0, 50.0, 0.0)], "1..20@10s,20@50s"),
            (vec![thread_span(5.0, 30.0, 0.0, 30.0, 0.0)], "0@30s,5@30s"),
            (
                vec![thread_span(10.0, 0.0, 10.0, 20.0, 10.0), thread_span(20.0, 10.0, 0.0, 10.0, 0.0)],
                "1..10@10s,30@10s,10@10s,10..0@10s",
            ),
            (vec![thread_span(2.0, 0.0, 0.0, 10.0, 0.0), thread_span(2.0, 10.0, 0.0, 10.0, 0.0)], "2@20s"),
            (vec![thread_span(1.0, 0.0, 0.5, 1.0, 0.0)], "0..1@500ms,1@1s"),
        ] {
            let written = stages_text(&total_threads_over_time(&stretches)).expect("a load");
            assert_eq!(written, expect, "{stretches:?}");
            LoadCurve::parse_user_curve(&written).expect("it is read");
        }
        assert_eq!(stages_text(&total_threads_over_time(&[thread_span(0.0, 0.0, 1.0, 1.0, 0.0)])), None);
    }

    #[test]
    fn arrival_schedules_become_rates() {
        for (text, expect) in [
            ("rate(1/s) random_arrivals(2 min) rate(1/s)", Some("1@120s")),
            ("rate(0/s) random_arrivals(10 s) rate(50/s) random_arrivals(1 min) rate(50/s)", Some("0..50@10s,50@60s")),
            ("rate(60/min) even_arrivals(1h 30 min)", Some("1@5400s")),
            ("/* warm */ rate(2/sec)random_arrivals(500ms) // end\npause(1s)", Some("2@500ms,0@1s")),
            ("rate(1/s)", None),
            ("rate(1/s) random_arrivals(2 fortnights)", None),
            ("rate(-1/s) random_arrivals(2 s)", None),
            ("burst(3)", None),
            ("rate(1/s", None),
        ] {
            let written = parse_schedule(text).and_then(|ramps| stages_text(&ramps));
            assert_eq!(written.as_deref(), expect, "{text}");
            written.iter().for_each(|written| assert!(LoadCurve::parse_rate_curve(written).is_ok(), "{written}"));
        }
    }
}
