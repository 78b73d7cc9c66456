//! The watching as a whole, on this very process.

use super::sink::{Seldom, Sink};
use plimsoll_model::SeriesKind;

#[test]
fn a_sink_tells_gaps_of_what_it_knows() {
    let mut sink = Sink::new(0);
    sink.begin(100);
    sink.server(7, "api", "--pid 7");
    sink.gauge("server.rss", "bytes", 5.0);
    sink.gauge("host.load_1m", "", 1.0);
    let first = sink.take();
    assert_eq!((first.series.len(), first.servers.len()), (2, 1));
    sink.begin(200);
    sink.gaps("server.", "gone");
    sink.begin(300);
    sink.gaps("server.", "gone");
    sink.unseen(Some("nobody listens"));
    let second = sink.take();
    assert_eq!(second.series.len(), 1, "only what has readings or gaps");
    let gap = &second.series["server.rss"].gaps;
    assert_eq!((gap.len(), gap[0].from_ns, gap[0].to_ns), (1, 100, 300));
    assert_eq!(second.series["server.rss"].kind, SeriesKind::Gauge);
    assert_eq!(second.unseen, ["nobody listens"]);
    sink.begin(400);
    sink.unseen(None);
    sink.server(8, "api", "--pid 7");
    let third = sink.take();
    assert_eq!(third.servers.iter().map(|s| (s.pid, s.from_ns)).collect::<Vec<_>>(), [(7, 100), (8, 400)]);
    assert!(third.unseen.is_empty());
    let fourth = sink.take();
    assert_eq!(fourth.servers.iter().map(|s| s.pid).collect::<Vec<_>>(), [8]);
}

#[test]
fn what_is_expensive_is_read_seldom() {
    let mut seldom = Seldom::new(0);
    let spin = || std::hint::black_box((0..200_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
    assert!(seldom.read(spin).is_some());
    // That took at least 50 us, so the next one may come after 50 ms at the earliest.
    assert!(seldom.read(spin).is_none());
    let mut cheap = Seldom::new(0);
    assert!(cheap.read(|| ()).is_some());
}
