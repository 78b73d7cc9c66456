//! A parser of the text that `perf script` prints. Each sample begins with a line that names the
//! thread and the event. Below the first line, a sample has one line for each frame of the stack,
//! from the leaf on, and ends with an empty line.
//!
//! The profile has a column `samples`, and a column for each event with the sum of the event's
//! periods. Periods of clock events are in nanoseconds. The first clock event is the default
//! column; without clock events, `samples` is the default column. The name of the thread becomes
//! the label `thread`. A frame without a symbol gets the name of its binary: `[libc.so.6]`.
//!
//! Not here: fields that `perf script` does not print by default, and the binary format
//! `perf.data`.

use super::memory_budget::{MemoryBudget, ReadError};
use plimsoll_model::profile::{FunctionId, Label, LabelValue, Profile, ProfileBuilder, ValueType};
use std::collections::HashMap;

/// The fields of the first line of a sample.
struct SampleHeader<'a> {
    thread: &'a str,
    period: i64,
    event: &'a str,
    /// The frame that `perf script` prints on the first line of a sample, for a recording without
    /// call stacks (made without `-g`).
    frame: &'a str,
}

/// Returns whether a word of a line is a time as perf prints it, such as `123.456789:`.
fn is_time(word: &str) -> bool {
    let Some((seconds, rest)) = word.split_once('.') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(seconds) && rest.strip_suffix(':').is_some_and(digits)
}

fn word_at(line: &str, start: usize) -> (&str, usize) {
    let skipped = line.len() - line[start..].trim_start().len();
    let word = line[skipped..].split_whitespace().next().unwrap_or_default();
    (word, skipped + word.len())
}

/// Parses the first line of a sample: `thread 12/34 [001] 5.678901:  250000 cpu-clock:u:  rest`.
/// The words before the process id are the thread's name.
fn parse_sample_header(line: &str) -> Option<SampleHeader<'_>> {
    let (mut at, mut thread_end) = (0, None);
    loop {
        let (word, end) = word_at(line, at);
        if word.is_empty() {
            return None;
        }
        if is_time(word) {
            at = end;
            break;
        }
        let number = word.split('/').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        if number && at > 0 {
            thread_end = Some(at);
        }
        at = end;
    }
    let thread = line[..thread_end?].trim();
    let (mut word, mut end) = word_at(line, at);
    let period = word.parse().ok();
    if period.is_some() {
        (word, end) = word_at(line, end);
    }
    let event = word.strip_suffix(':')?;
    Some(SampleHeader { thread, period: period.unwrap_or(1), event, frame: line[end..].trim() })
}

/// Parses the line of a frame, such as `7f12 name+0x1a (/lib/x.so)`, and returns the frame's name.
/// Returns `None` for a line that is no frame.
fn parse_frame_line(line: &str) -> Option<String> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    if address.is_empty() || !address.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.trim();
    let (symbol, binary) = match rest.rfind('(') {
        Some(open) if rest.ends_with(')') => (rest[..open].trim_end(), &rest[open + 1..rest.len() - 1]),
        _ => (rest, ""),
    };
    let name = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|b| b.is_ascii_hexdigit()) => name,
        _ => symbol,
    };
    if !name.is_empty() && name != "[unknown]" {
        return Some(name.to_owned());
    }
    let base = binary.rsplit('/').next().unwrap_or_default().trim_matches(['[', ']']);
    Some(if base.is_empty() || base == "unknown" { "<unknown>".into() } else { format!("[{base}]") })
}

/// Returns whether a text is output of `perf script`: its first line, apart from comments, begins a
/// sample.
pub(super) fn is_perf_output(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| parse_sample_header(line).is_some())
}

/// Largest number of different events. Each event is a column of every sample, so many events would
/// take much memory. Real recordings have fewer events.
const EVENTS_MAX: usize = 64;

/// A sample as read from the text. The parser builds the columns of the sample at the end, when all
/// events are known.
struct RawSample {
    event: usize,
    period: i64,
    label: String,
    stack: Vec<u32>,
}

/// The names of functions, each stored once.
#[derive(Default)]
struct FunctionNames {
    all: Vec<String>,
    known: HashMap<String, u32>,
}

impl FunctionNames {
    /// Returns the number of a name. A new name is added and gets the next number.
    fn intern_name(&mut self, name: String, budget: &mut MemoryBudget) -> Result<u32, ReadError> {
        if let Some(number) = self.known.get(&name) {
            return Ok(*number);
        }
        // The name is stored in the profile and in both tables of names, each of which exists twice
        // while it grows.
        budget.reserve_memory(1, 8 * size_of::<String>() + 64 + 4 * name.len())?;
        self.all.push(name.clone());
        self.known.insert(name, self.all.len() as u32 - 1);
        Ok(self.all.len() as u32 - 1)
    }
}

/// Parses the text of `perf script` into a profile. The error names the line that does not fit the
/// format, or says that the profile needs too much memory.
pub(super) fn parse(text: &str, mut budget: MemoryBudget) -> Result<Profile, ReadError> {
    let mut events: Vec<&str> = Vec::new();
    let mut names = FunctionNames::default();
    let mut caught: Vec<RawSample> = Vec::new();
    let mut within = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            within = false;
        } else if line.starts_with('#') {
            // The line is a comment in the output of `perf script`.
        } else if let Some(head) = parse_sample_header(line) {
            let event = match events.iter().position(|event| *event == head.event) {
                Some(event) => event,
                None if events.len() == EVENTS_MAX => {
                    let what = "the 'perf script' text has more than 64 different events";
                    return Err(ReadError::Line { line: number + 1, what });
                }
                None => {
                    events.push(head.event);
                    events.len() - 1
                }
            };
            // The list of raw samples exists twice while it grows: as an old and a new copy. After
            // the whole text is read, the columns of the samples take memory.
            budget.reserve_memory(1, 3 * size_of::<RawSample>() + 64 + head.thread.len())?;
            let stack = match parse_frame_line(head.frame) {
                Some(name) => vec![names.intern_name(name, &mut budget)?],
                None => Vec::new(),
            };
            caught.push(RawSample { event, period: head.period, label: head.thread.to_owned(), stack });
            within = true;
        } else if let Some((sample, name)) = caught.last_mut().filter(|_| within).zip(parse_frame_line(line)) {
            budget.reserve_memory(1, 3 * size_of::<u32>())?;
            sample.stack.push(names.intern_name(name, &mut budget)?);
        } else {
            let what = "the line is neither the first line of a 'perf script' sample nor a frame of its stack";
            return Err(ReadError::Line { line: number + 1, what });
        }
    }
    let mut types = vec![ValueType::new("samples", "count")];
    // `cpu-clock:u` counts as `cpu-clock`, because the suffix only says whether the kernel's time
    // is included.
    let clock = |event: &&str| ["cpu-clock", "task-clock"].contains(&event.split(':').next().unwrap_or_default());
    types.extend(events.iter().map(|e| ValueType::new(*e, if clock(e) { "nanoseconds" } else { "count" })));
    let width = types.len();
    let mut builder = ProfileBuilder::new(types);
    builder.set_default_type(events.iter().position(clock).map_or(0, |index| index + 1));
    let places: Vec<u32> = names
        .all
        .iter()
        .map(|name| {
            let function: FunctionId = builder.intern_function(name, "");
            builder.add_location(&[function])
        })
        .collect();
    for RawSample { event, period, label, stack } in caught {
        stack.iter().for_each(|name| builder.push_location(places[*name as usize]));
        let label = builder.intern_label(Label { key: "thread".into(), value: LabelValue::Text(label) });
        builder.push_label(label);
        let mut values = vec![0; width];
        values[0] = 1;
        values[event + 1] = period;
        builder.end_sample(&values);
        budget.check_memory(&builder, 0)?;
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::read as given;

    const PERF_SCRIPT_SAMPLE: &str = "# captured on some day\n\
        node worker 12/34 [001]  5.678901:     250000 cpu-clock:u: \n\
        \t    7f12 LazyCompile:*handle /app/a.js:3+0x1a (/tmp/perf-12.map)\n\
        \t    7f13 [unknown] (/usr/lib/libc.so.6)\n\
        \t    401000 operator new(unsigned long)+0x2 (inlined)\n\
        \t    401000 main (/usr/bin/node)\n\
        \n\
        swapper     0 7.000001: 99 cycles:\n\
        \tffffffff81 [unknown] ([unknown])\n\
        \n\
        python3  77  8.100000:  250000 cpu-clock:u:   401000 run+0x3 (/usr/bin/python3)\n";

    #[test]
    fn samples_have_frames_threads_and_events() {
        assert!(is_perf_output(PERF_SCRIPT_SAMPLE));
        let profile = given(PERF_SCRIPT_SAMPLE.as_bytes()).expect("reads");
        let types: Vec<_> = profile.sample_types.iter().map(|t| (t.kind.as_str(), t.unit.as_str())).collect();
        assert_eq!(types, [("samples", "count"), ("cpu-clock:u", "nanoseconds"), ("cycles", "count")]);
        assert_eq!(profile.sample_type_default, 1);
        let read: Vec<_> = profile
            .samples()
            .map(|s| {
                let names: Vec<_> =
                    s.functions_from_root().map(|f| profile.functions()[f as usize].name.as_str()).collect();
                let threads: Vec<_> = s.labels().map(|l| l.value.clone()).collect();
                (names.join(">"), s.values().to_vec(), threads)
            })
            .collect();
        let thread = |name: &str| vec![LabelValue::Text(name.into())];
        assert_eq!(
            read,
            [
                (
                    "main>operator new(unsigned long)>[libc.so.6]>LazyCompile:*handle /app/a.js:3".to_owned(),
                    vec![1, 250_000, 0],
                    thread("node worker")
                ),
                ("<unknown>".to_owned(), vec![1, 0, 99], thread("swapper")),
                ("run".to_owned(), vec![1, 250_000, 0], thread("python3")),
            ]
        );
    }

    #[test]
    fn too_many_events_are_refused() {
        let text = |events: usize| -> String {
            (0..events).map(|e| format!("w 1/2 [000] 1.5: 10 e{e}: 7f main (/a)\n\n")).collect()
        };
        assert!(given(text(64).as_bytes()).is_ok_and(|profile| profile.sample_types.len() == 65));
        let refused = given(text(100_000).as_bytes()).expect_err("too many").to_string();
        assert!(refused.contains("line 129: the 'perf script' text has more than 64 different events"), "{refused}");
    }

    #[test]
    fn unrelated_text_is_not_perf_output() {
        for text in ["main;a 3\n", "hello\n", "12 13 14\n", "", "a 1.5: \n"] {
            assert!(!is_perf_output(text), "{text}");
        }
        assert!(matches!(
            given(format!("{PERF_SCRIPT_SAMPLE}\nwhat is this").as_bytes()),
            Err(ReadError::Line { line: 13, .. })
        ));
    }
}
