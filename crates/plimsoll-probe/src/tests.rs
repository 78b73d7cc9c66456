//! Tests of a whole measurement, in which the probes measure the test's own process.

use super::sink::{CpuBudget, ProbeEffort, ReadingExtent, ReadingSchedule, Sink};
use plimsoll_model::SeriesKind;
use plimsoll_sys::clock::{monotonic_ns, thread_cpu_ns};

#[test]
fn a_sink_reports_gaps_of_known_series() {
    let mut sink = Sink::new(0, ProbeEffort::Little);
    sink.begin_sample(100, false);
    sink.report_found_server(7, "api", "--pid 7");
    sink.gauge("server.rss", "bytes", 5.0);
    sink.gauge("host.load_1m", "", 1.0);
    let first = sink.take();
    assert_eq!((first.series.len(), first.servers.len()), (2, 1));
    sink.begin_sample(200, false);
    sink.add_gaps_to_series("server.", "gone");
    sink.begin_sample(300, false);
    sink.add_gaps_to_series("server.", "gone");
    sink.set_unmeasured_reason(Some("no socket listens"));
    let second = sink.take();
    assert_eq!(second.series.len(), 1, "only what has readings or gaps");
    let gap = &second.series["server.rss"].gaps;
    assert_eq!((gap.len(), gap[0].from_ns, gap[0].to_ns), (1, 100, 300));
    assert_eq!(second.series["server.rss"].kind, SeriesKind::Gauge);
    assert_eq!(second.missing, ["no socket listens"]);
    sink.begin_sample(400, false);
    sink.set_unmeasured_reason(None);
    sink.report_found_server(8, "api", "--pid 7");
    let third = sink.take();
    assert_eq!(third.servers.iter().map(|s| (s.pid, s.from_ns)).collect::<Vec<_>>(), [(7, 100), (8, 400)]);
    assert!(third.missing.is_empty());
    let fourth = sink.take();
    assert_eq!(fourth.servers.iter().map(|s| s.pid).collect::<Vec<_>>(), [8]);
}

#[test]
fn expensive_readings_run_rarely() {
    let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Little);
    sink.begin_sample(monotonic_ns(), false);
    let mut seldom = ReadingSchedule::new(0);
    let spin = || std::hint::black_box((0..200_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
    assert!(seldom.read_if_due(&sink, spin).is_some());
    // The reading took at least 50 us and may use a 2000th of a core, so at least 100 ms pass
    // before the next run.
    assert!(seldom.read_if_due(&sink, spin).is_none());
    let mut cheap = ReadingSchedule::new(0);
    assert!(cheap.read_if_due(&sink, || ()).is_some());
}

#[test]
fn unused_budget_accumulates_up_to_a_limit() {
    let second = 1_000_000_000;
    let mut budget = CpuBudget::new(5 * second, 700, ProbeEffort::Little);
    let held = budget.left_ns(700);
    assert!(held > 0);
    assert_eq!(
        (budget.left_ns(700 + held / 4), budget.left_ns(700 + held), budget.left_ns(700 + 2 * held)),
        (held - held / 4, 0, 0)
    );
    // Unused CPU budget never exceeds the initial budget.
    budget.grant_until(100 * second);
    budget.cap_unused_budget(700);
    assert_eq!(budget.left_ns(700), held);
    // A reading that uses all of its budget gets less than a hundredth of a core.
    let mut cpu_ns = 700;
    for tenth in 0..600 {
        budget.grant_until(100 * second + tenth * second / 10);
        budget.cap_unused_budget(cpu_ns);
        cpu_ns += budget.left_ns(cpu_ns);
    }
    let share = (cpu_ns - 700 - held) as f64 / (60 * second) as f64;
    assert!((0.005..0.0095).contains(&share), "{share}");
}

/// Checks that expensive readings at the start and end of a load cost no budget within the load.
#[test]
fn edge_readings_cost_no_budget() {
    let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Little);
    let spin = |ns: u64| {
        let before_ns = thread_cpu_ns();
        while thread_cpu_ns() - before_ns < ns {}
    };
    sink.begin_sample(monotonic_ns(), true);
    spin(100_000_000);
    sink.begin_sample(monotonic_ns(), false);
    assert_eq!(sink.extent(), ReadingExtent::Usual);
    spin(100_000_000);
    sink.begin_sample(monotonic_ns(), false);
    assert_eq!(sink.extent(), ReadingExtent::Least);
}

/// Checks that a reading that has waited for long runs even if no CPU budget is ever left.
#[test]
fn delayed_readings_run_without_budget() {
    let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Little);
    let start_ns = thread_cpu_ns();
    while thread_cpu_ns() < start_ns + 60_000_000 {}
    let (mut seldom, begun_ns, mut read_ms) = (ReadingSchedule::new(0), monotonic_ns(), Vec::new());
    while monotonic_ns() < begun_ns + 2_500_000_000 {
        sink.begin_sample(monotonic_ns(), false);
        assert_eq!(sink.extent(), ReadingExtent::Least);
        read_ms.extend(seldom.read_if_due(&sink, || (monotonic_ns() - begun_ns) / 1_000_000));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // The reading runs for the first time after one second, and at most once a second.
    assert!((1..=2).contains(&read_ms.len()) && read_ms[0] >= 1_000, "{read_ms:?}");
    assert!(read_ms.windows(2).all(|pair| pair[1] >= pair[0] + 1_000), "{read_ms:?}");
}

#[test]
fn a_sample_reads_what_its_budget_allows() {
    let mut sink = Sink::new(monotonic_ns(), ProbeEffort::Little);
    let (mut turns, mut seldom) = (0, 0);
    for _ in 0..10 {
        sink.begin_sample(monotonic_ns(), false);
        turns += u32::from(sink.is_due_in_this_sample(5, 2));
    }
    assert_eq!((turns, sink.extent()), (2, ReadingExtent::Usual));
    // The test uses more CPU time at once than the budget of the readings for one second.
    let start_ns = thread_cpu_ns();
    while thread_cpu_ns() < start_ns + 30_000_000 {}
    let mut expensive = ReadingSchedule::new(0);
    for _ in 0..10 {
        sink.begin_sample(monotonic_ns(), false);
        assert_eq!(sink.extent(), ReadingExtent::Least);
        turns += u32::from(sink.is_due_in_this_sample(5, 2));
        seldom += u32::from(expensive.read_if_due(&sink, || ()).is_some());
    }
    assert_eq!((turns, seldom), (2, 0));
    sink.begin_sample(monotonic_ns(), true);
    assert!(
        sink.is_due_in_this_sample(5, 0) && sink.is_due_in_this_sample(5, 2),
        "at the edge of a load everything is read"
    );
}
