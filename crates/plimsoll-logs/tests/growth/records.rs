//! Tests how the cost of parsing measured data grows with its size. The measured data are access
//! logs, results of other tools, recordings of load levels, profiles and run files.

use super::{GrowingInput, comma_separated_pieces, concatenated_pieces, growing_input, utf8_text};
use plimsoll_analysis::levels::parse_dat;
use plimsoll_analysis::profile;
use plimsoll_logs::access_log::{Format, LineBuffers, find_format};
use plimsoll_logs::replay::{ReplayChoice, ReplayTiming, RequestCollector};
use plimsoll_logs::survey::Survey;
use plimsoll_logs::vegeta::{TargetFormat, TargetReader, VegetaReader};
use plimsoll_model::codec::{self, Frame};
use plimsoll_model::{
    Environment, Experiment, ExperimentEvent, ExperimentSpec, Interval, LoadCurve, LoadPurpose, LoadShape, LoadTag,
    Plan, Probes, Run, RunSpec, Series, SeriesKind, SeriesSample, StartNotes, Trial,
};

/// The number of lines from which the format of a log is detected.
const FIRST_LINES: usize = 200;

/// Detects the format of a log, computes its statistics, and builds a replay from it.
fn read_log(input: &[u8]) -> Result<(), String> {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let format = find_format(&lines[..lines.len().min(FIRST_LINES)], None).map_err(|error| error.to_string())?;
    let (mut room, mut survey) = (LineBuffers::default(), Survey::new(None));
    let wanted = |_: &str| true;
    let mut gathering =
        RequestCollector::new(ReplayChoice { fold: None, wanted: &wanted, is_unsafe_included: true, prefix: "" });
    for line in lines {
        if let Some(entry) = format.parse(line, &mut room) {
            survey.add(&entry, format.timestamp_meaning());
            gathering.add(&entry);
        }
    }
    survey.finish();
    let timing = ReplayTiming { seed: 7, speed_milli: 1000, scale_milli: 1000, length_ns: None, lines: 0 };
    let gathered = gathering.finish().map_err(|error| error.to_string())?;
    gathered.to_replay(&timing).map(drop).map_err(|error| error.to_string())
}

fn read_format(input: &[u8]) -> Result<(), String> {
    Format::from_text(utf8_text(input), None).map(drop).map_err(|error| error.to_string())
}

fn read_results(input: &[u8]) -> Result<(), String> {
    let mut reader = VegetaReader::new(input);
    while reader.next_result().map_err(|error| error.to_string())?.is_some() {}
    Ok(())
}

fn read_targets(input: &[u8]) -> Result<(), String> {
    let mut reader = TargetReader::new(input, TargetFormat::Http);
    while reader.next_target().map_err(|error| error.to_string())?.is_some() {}
    Ok(())
}

fn read_load_levels(input: &[u8]) -> Result<(), String> {
    parse_dat(utf8_text(input)).map(drop).map_err(|error| error.to_string())
}

fn read_profile(input: &[u8]) -> Result<(), String> {
    profile::read(input).map(drop).map_err(|error| error.to_string())
}

fn combined_log_line(number: usize, client: &str, target: &str, agent: &str) -> String {
    let (minute, second) = (number / 60 % 60, number % 60);
    format!(
        "{client} - - [22/Nov/2026:10:{minute:02}:{second:02} +0000] \"GET {target} HTTP/1.1\" 200 5 \"-\" \"{agent}\"\n"
    )
}

fn access_log_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("access log: lines", read_log, 3_000, |n| {
            concatenated_pieces(n, |n| combined_log_line(n, "10.0.0.1", "/a", "x")).into_bytes()
        }),
        growing_input("access log: targets", read_log, 3_000, |n| {
            concatenated_pieces(n, |n| combined_log_line(n, "10.0.0.1", &format!("/a/x{n}y?q={n}"), "x")).into_bytes()
        }),
        growing_input("access log: clients", read_log, 3_000, |n| {
            concatenated_pieces(n, |n| {
                combined_log_line(n, &format!("10.0.{}.{}", n / 250, n % 250), "/a", &format!("x{n}"))
            })
            .into_bytes()
        }),
        growing_input("access log: a long target", read_log, 5_000, |n| {
            combined_log_line(0, "10.0.0.1", &"/a".repeat(n), "x").repeat(3).into_bytes()
        }),
        growing_input("access log: a long query", read_log, 3_000, |n| {
            combined_log_line(0, "10.0.0.1", &format!("/?{}", concatenated_pieces(n, |n| format!("k{n}=v&"))), "x")
                .repeat(3)
                .into_bytes()
        }),
        growing_input("access log: a long agent", read_log, 5_000, |n| {
            combined_log_line(0, "10.0.0.1", "/a", &"\\\"".repeat(n)).repeat(3).into_bytes()
        }),
        growing_input("access log: lines of JSON", read_log, 2_000, |n| {
            let line = |n: usize| {
                format!(
                    "{{\"time\":\"2026-11-22T10:00:{:02}Z\",\"method\":\"GET\",\"path\":\"/a{n}\",\"status\":200,\"duration\":1}}\n",
                    n % 60
                )
            };
            concatenated_pieces(n, line).into_bytes()
        }),
        growing_input("access log: a line of JSON with many fields", read_log, 2_000, |n| {
            let more = comma_separated_pieces(n, |n| format!("\"k{n}\":{{\"a\":1}}"));
            format!("{{\"time\":\"2026-11-22T10:00:00Z\",\"method\":\"GET\",\"path\":\"/a\",\"status\":200,{more}}}\n")
                .into_bytes()
        }),
        growing_input("access log: fields of W3C", read_log, 2_000, |n| {
            let fields = "#Fields: date time cs-method cs-uri-stem sc-status time-taken\n";
            let line = |n: usize| format!("2026-11-22 10:00:{:02} GET /a{n} 200 5\n", n % 60);
            format!("{fields}{}", concatenated_pieces(n, line)).into_bytes()
        }),
        growing_input("access log: no format", read_log, 3_000, |n| "nothing at all\n".repeat(n).into_bytes()),
        growing_input("access log: lines of pairs", read_log, 2_000, |n| {
            concatenated_pieces(n, |n| {
                format!("time=2026-11-22T10:{:02}:00Z method=GET path=/a/{n} status=200\n", n % 60)
            })
            .into_bytes()
        }),
        growing_input("access log: a line of many pairs", read_log, 5_000, |n| {
            let pairs = concatenated_pieces(n, |n| format!("a{n}=b "));
            format!("time=2026-11-22T10:00:00Z method=GET path=/a {pairs}\n").into_bytes()
        }),
        growing_input("access log: words of a logger", read_log, 20_000, |n| {
            format!("2026-11-22T10:00:00Z INFO {}GET /a 200 in 5ms\n", "[a] ".repeat(n)).into_bytes()
        }),
        growing_input("access log: colours", read_log, 20_000, |n| {
            format!("2026-11-22T10:00:00Z {}GET /a 200 in 5ms\n", "\u{1b}[0m".repeat(n)).into_bytes()
        }),
        growing_input("access log: one long line", read_log, 20_000, |n| "[\" ".repeat(n).into_bytes()),
        growing_input("format of a log: directives", read_format, 2_000, |n| {
            format!("$remote_addr [$time_local] \"$request\" $status {}", "$x ".repeat(n)).into_bytes()
        }),
        growing_input("format of a log: a long text", read_format, 20_000, |n| {
            format!("$remote_addr [$time_local] \"$request\" $status {}", "ab".repeat(n)).into_bytes()
        }),
    ]
}

fn result_json(number: usize, url: &str) -> String {
    format!(
        "{{\"attack\":\"\",\"seq\":{number},\"code\":200,\"timestamp\":\"2026-11-22T10:00:00.5Z\",\"latency\":1000,\"bytes_out\":0,\
         \"bytes_in\":5,\"error\":\"\",\"body\":null,\"method\":\"GET\",\"url\":\"{url}\",\"headers\":{{\"A\":[\"x\"]}}}}\n"
    )
}

fn load_test_result_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("vegeta: results in JSON", read_results, 2_000, |n| {
            concatenated_pieces(n, |n| result_json(n, "http://h/")).into_bytes()
        }),
        growing_input("vegeta: a long result in JSON", read_results, 10_000, |n| {
            result_json(0, &"x\\u0041".repeat(n)).into_bytes()
        }),
        growing_input("vegeta: headers of a result in JSON", read_results, 2_000, |n| {
            let headers = comma_separated_pieces(n, |n| format!("\"H{n}\":[\"x\"]"));
            result_json(0, "http://h/").replace("\"A\":[\"x\"]", &headers).into_bytes()
        }),
        growing_input("vegeta: results in CSV", read_results, 3_000, |n| {
            concatenated_pieces(n, |n| format!("1790000000000000000,200,1000,0,5,,,a,{n},GET,http://h/,\n"))
                .into_bytes()
        }),
        growing_input("vegeta: targets", read_targets, 3_000, |n| {
            concatenated_pieces(n, |n| format!("GET http://h/{n}\nA: x\n\n")).into_bytes()
        }),
        growing_input("vegeta: headers of a target", read_targets, 3_000, |n| {
            format!("GET http://h/\n{}", concatenated_pieces(n, |n| format!("A{n}: x\n"))).into_bytes()
        }),
        growing_input(".dat: levels", read_load_levels, 900, |n| {
            concatenated_pieces(n, |n| format!("{} 100 5.0 100\n", n + 1)).into_bytes()
        }),
        growing_input(".dat: comments", read_load_levels, 10_000, |n| {
            format!("{}1 100 5.0 100\n", "# x\n".repeat(n)).into_bytes()
        }),
        growing_input(".dat: fields of a line", read_load_levels, 10_000, |n| {
            format!("1 100 5.0 100{}\n", " 1".repeat(n)).into_bytes()
        }),
    ]
}

/// Encodes a protobuf field whose value is a number (varint).
fn encode_varint_field(number: u8, mut value: usize) -> Vec<u8> {
    let mut out = vec![number << 3];
    while value >= 0x80 {
        out.push((value % 0x80 + 0x80) as u8);
        value /= 0x80;
    }
    out.push(value as u8);
    out
}

fn encode_bytes_field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = encode_varint_field(number, content.len());
    [&[number << 3 | 2][..], &length[1..], content].concat()
}

/// Returns a pprof profile with `functions` functions and `samples` samples of `depth` frames each.
fn encode_pprof_profile(functions: usize, samples: usize, depth: usize) -> Vec<u8> {
    let mut out =
        [encode_bytes_field(6, b""), encode_bytes_field(6, b"samples"), encode_bytes_field(6, b"count")].concat();
    out.extend((0..functions).flat_map(|n| encode_bytes_field(6, format!("f{n}").as_bytes())));
    out.extend(encode_bytes_field(1, &[encode_varint_field(1, 1), encode_varint_field(2, 2)].concat()));
    for n in 1..=functions {
        out.extend(encode_bytes_field(5, &[encode_varint_field(1, n), encode_varint_field(2, n + 2)].concat()));
        out.extend(encode_bytes_field(
            4,
            &[encode_varint_field(1, n), encode_bytes_field(4, &encode_varint_field(1, n))].concat(),
        ));
    }
    for n in 0..samples {
        let frames: Vec<u8> =
            (0..depth).flat_map(|at| encode_varint_field(1, (n + at) % functions + 1)[1..].to_vec()).collect();
        out.extend(encode_bytes_field(2, &[encode_bytes_field(1, &frames), encode_varint_field(2, 1)].concat()));
    }
    out
}

fn profile_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("profile: folded stacks", read_profile, 3_000, |n| {
            concatenated_pieces(n, |n| format!("a;b;c{n} 5\n")).into_bytes()
        }),
        growing_input("profile: a deep folded stack", read_profile, 3_000, |n| {
            format!("{} 5\n", (0..n).map(|n| format!("f{n}")).collect::<Vec<_>>().join(";")).into_bytes()
        }),
        growing_input("profile: folded stacks of one function", read_profile, 3_000, |n| {
            "a;b;c 5\n".repeat(n).into_bytes()
        }),
        growing_input("profile: a long name", read_profile, 20_000, |n| {
            format!("{} 5\n", "a<b>".repeat(n)).into_bytes()
        }),
        growing_input("profile: stacks of perf", read_profile, 1_000, |n| {
            let sample = |n: usize| format!("x 1 1.0: 1 cpu-clock:\n\t1 f{n}+0x1 (/x)\n\t2 main+0x1 (/x)\n\n");
            concatenated_pieces(n, sample).into_bytes()
        }),
        growing_input("profile: functions of pprof", read_profile, 2_000, |n| encode_pprof_profile(n, 10, 10)),
        growing_input("profile: samples of pprof", read_profile, 2_000, |n| encode_pprof_profile(100, n, 10)),
        growing_input("profile: a deep sample of pprof", read_profile, 3_000, |n| encode_pprof_profile(100, 1, n)),
        growing_input("profile: texts of pprof", read_profile, 3_000, |n| {
            let mut out = encode_pprof_profile(10, 10, 3);
            out.extend((0..n).flat_map(|n| encode_bytes_field(6, format!("s{n}").as_bytes())));
            out
        }),
    ]
}

fn read_run(input: &[u8]) -> Result<(), String> {
    match codec::decode(input) {
        Ok(decoded) => decoded.damage.map_or(Ok(()), |damage| Err(format!("{damage:?}"))),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns a run file with `trials` trials, each changed by `change`.
fn run_file(trials: usize, change: impl Fn(&mut Run)) -> Vec<u8> {
    let plan = || Plan::for_get_request("h", 80, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
    let trial = |number: usize| {
        let mut run = Run::new(plan());
        change(&mut run);
        let tag = LoadTag { turn: number as u32, ..LoadTag::for_purpose(LoadPurpose::Run) };
        Trial { tag, start_ns: number as u64, run }
    };
    let (environment, noted) = (Environment::default(), StartNotes { warnings: vec![], adjustments: vec![] });
    codec::encode(&Experiment {
        spec: ExperimentSpec::Run(RunSpec { plan: plan().record(), stop_if: None, profiles: None }),
        started_unix_ms: 0,
        settings: None,
        command: vec!["plimsoll".into()],
        environment,
        start_notes: noted,
        trials: (0..trials).map(trial).collect(),
        events: Vec::<ExperimentEvent>::new(),
        elapsed_ns: Some(1),
    })
}

fn run_file_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("run file: trials", read_run, 300, |n| run_file(n, |_| ())),
        growing_input("run file: intervals", read_run, 1_000, |n| {
            run_file(1, |run| (0..n).for_each(|at| _ = run.intervals.insert(at as u32, Interval::default())))
        }),
        growing_input("run file: samples of a series", read_run, 5_000, |n| {
            run_file(1, |run| {
                let mut series = Series::new(SeriesKind::Gauge, "bytes");
                (0..n).for_each(|at| series.push(SeriesSample { at_ns: at as i64, value: at as f64 }));
                run.probes.series.insert("x".into(), series);
            })
        }),
        growing_input("run file: series", read_run, 1_500, |n| {
            run_file(1, |run| {
                for number in 0..n {
                    let mut series = Series::new(SeriesKind::Gauge, "bytes");
                    series.push(SeriesSample { at_ns: 1, value: 1.0 });
                    run.probes.series.insert(format!("s{number}"), series);
                }
            })
        }),
        growing_input("run file: parts of probes", read_run, 500, |n| {
            let mut bytes = run_file(1, |_| ());
            for number in 0..n {
                let (mut probes, mut series) = (Probes::default(), Series::new(SeriesKind::Gauge, "bytes"));
                series.push(SeriesSample { at_ns: number as i64, value: 1.0 });
                probes.series.insert("x".into(), series);
                Frame::probe_frames(probes).for_each(|frame| frame.encode(&mut bytes));
            }
            bytes
        }),
    ]
}

pub fn measured_data_inputs() -> Vec<GrowingInput> {
    [access_log_inputs(), load_test_result_inputs(), profile_inputs(), run_file_inputs()]
        .into_iter()
        .flatten()
        .collect()
}
