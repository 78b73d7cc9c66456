//! Unit tests of the simulation.

use super::*;

#[test]
fn stalls_pause_simulated_work() {
    let stall = SimStall { every_ns: 100, length_ns: 10 };
    for (at, need, expect) in
        [(0, 5, 5), (85, 5, 100), (85, 4, 89), (85, 10, 105), (95, 0, 100), (95, 3, 103), (80, 200, 310)]
    {
        assert_eq!(stall.completion_ns(at, need), expect, "{need} from {at}");
    }
    for (at, expect) in [(0, 0), (89, 89), (90, 100), (99, 100), (100, 100), (195, 200)] {
        assert_eq!(stall.end_of_stall(at), expect, "{at}");
    }
}
