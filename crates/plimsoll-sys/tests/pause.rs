//! Tests that another process can be stopped and resumed. The test is not a unit test, because a
//! unit test of this crate ends all children of its process.

use plimsoll_sys::pause::ProcessHandle;
use plimsoll_sys::probe::process::read_process_stat;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_paused_process_resumes() {
    let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("starts");
    let stat = || read_process_stat(child.id(), &mut Vec::new()).expect("is there").0;
    let soon = |state: &[u8]| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !state.contains(&stat().state) {
            assert!(Instant::now() < deadline, "not one of {state:?} but {}", stat().state);
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let held = ProcessHandle::open_process(child.id(), stat().started_ticks).expect("Linux 5.3 or newer");
    held.stop().expect("is ours");
    soon(b"T");
    held.resume().expect("is ours");
    soon(b"SR");
    assert!(ProcessHandle::open_process(child.id(), stat().started_ticks + 1).is_err(), "another one with its number");
    child.kill().expect("is ours");
    child.wait().expect("ended");
    assert!(held.stop().is_err(), "it is gone, whoever has its number now");
    for pid in [0, 1, u32::MAX] {
        assert!(ProcessHandle::open_process(pid, 0).is_err(), "{pid}");
    }
}
