//! Coverage-guided fuzzing of plimsoll-logs's parsers of access logs. The input is a format, an
//! empty line, and the lines of the log.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_logs::access_log::{Format, LineBuffers, find_format};
use plimsoll_logs::replay::{ReplayChoice, ReplayTiming, RequestCollector};
use plimsoll_logs::survey::Survey;

fuzz_target!(|data: &[u8]| {
    let parts: Vec<&[u8]> = data.splitn(2, |b| *b == 0).collect();
    let (said, text) = match parts.as_slice() {
        [said, text] => (std::str::from_utf8(said).ok(), *text),
        _ => (None, data),
    };
    let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    let formats = [
        find_format(&lines, None).ok(),
        said.and_then(|said| Format::from_text(said, None).ok()),
        said.and_then(|said| Format::from_json_mapping(said, None).ok()),
    ];
    let mut buffer = LineBuffers::default();
    for format in formats.into_iter().flatten() {
        let mut survey = Survey::new(None);
        let wanted = |_: &str| true;
        let mut gathering =
            RequestCollector::new(ReplayChoice { fold: None, wanted: &wanted, with_unsafe: true, prefix: "" });
        for line in &lines {
            if let Some(entry) = format.parse(line, &mut buffer) {
                survey.add(&entry, format.stamp());
                gathering.add(&entry);
            }
        }
        let figures = survey.finish();
        assert!(figures.late <= figures.requests);
        let timing = ReplayTiming { seed: 1, speed_milli: 2000, scale_milli: 1500, length_ns: None, lines: 0 };
        if let Ok(load) = gathering.finish().and_then(|gathered| gathered.to_replay(&timing)) {
            let given = load.arrivals.expect("a load that is timed has moments");
            assert!(given.starts_ns().iter().all(|start| *start < load.length_ns));
        }
    }
});
