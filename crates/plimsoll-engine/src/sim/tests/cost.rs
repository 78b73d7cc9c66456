//! Measures the engine's CPU cost of a request, on a network without cost and with instant
//! responses.
//!
//! By default the test sends a few thousand requests, which all succeed. `PLIMSOLL_REQUESTS=N` sets
//! the number of requests. To count instructions per request, run the test with two numbers of
//! requests under `valgrind --tool=callgrind`. The difference of the two instruction counts,
//! divided by the difference in requests, is the cost of one request.

use super::*;
use crate::collect::PartReport;
use crate::job::{SharedWorkerResources, WorkerJob};
use crate::net::{ConnectErrno, Net, Peer, ReadyEvent, ReceiveOutcome, SendOutcome, WaitMode};
use crate::source::RequestSource;
use crate::worker::Worker;
use plimsoll_model::Schedule;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 22 Nov 2025 10:00:00 GMT\r\n\
    Content-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, world\n";

/// A network on which a complete response follows at once after any sent bytes.
#[derive(Default)]
struct InstantNet {
    now_ns: u64,
    due: Vec<ReadyEvent>,
}

impl Net for InstantNet {
    type Socket = u64;

    fn now_ns(&mut self) -> u64 {
        self.now_ns += 50;
        self.now_ns
    }

    fn cpu_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn connect(&mut self, _: Peer, token: u64) -> Result<(u64, bool), ConnectErrno> {
        Ok((token, true))
    }

    fn connect_result(&mut self, _: &u64) -> Result<(), ConnectErrno> {
        Ok(())
    }

    fn send(&mut self, token: &u64, bytes: &[u8]) -> SendOutcome {
        self.due.push(ReadyEvent { token: *token, readable: true, writable: false, hangup: false });
        SendOutcome::Bytes(bytes.len())
    }

    fn receive(&mut self, _: &u64, buffer: &mut [u8]) -> ReceiveOutcome {
        buffer[..REPLY.len()].copy_from_slice(REPLY);
        ReceiveOutcome::Bytes(REPLY.len())
    }

    fn wait(&mut self, wait: WaitMode, ready: &mut Vec<ReadyEvent>) {
        match wait {
            WaitMode::Until(at_ns) if self.due.is_empty() => self.now_ns = self.now_ns.max(at_ns),
            _ => {}
        }
        ready.append(&mut self.due);
    }
}

#[test]
fn all_requests_succeed_on_an_instant_network() {
    let requests = std::env::var("PLIMSOLL_REQUESTS").map_or(5_000, |text| text.parse().expect("a number"));
    for connections in [64, 1] {
        let SimulatedPlan { plan, injector } = closed_loop_plan(&connections.to_string()).with_change(|setup| {
            setup.load.requests_max = Some(requests);
            setup.load.duration_ns = None;
        });
        let schedule = Arc::new(Schedule::compile(&plan.load));
        let source = RequestSource::compile(&plan).expect("a request that can be written");
        let resources = SharedWorkerResources { source, resolved: None, tls: None };
        let job = WorkerJob::new(&plan, &injector, &schedule, &resources, Stripe::WHOLE_SCHEDULE, 0, true);
        let mut worker = Worker::new(InstantNet::default(), job, Arc::new(AtomicBool::new(false)));
        worker.open_ready_connections();
        let mut succeeded = 0;
        worker.run(1_000_000_000, &mut |reported| {
            if let PartReport::Tick { interval, .. } = reported {
                succeeded += interval.all_routes().ledger.succeeded;
            }
        });
        assert_eq!(succeeded, requests);
    }
}
