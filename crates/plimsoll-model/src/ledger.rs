//! The ledger of a run: the outcome of every scheduled request. The counts must add up exactly
//! ([`Ledger::counts_add_up`]).

use serde::{Deserialize, Serialize};

/// Why a request failed. The discriminant is the index in [`Ledger::failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum RequestFailure {
    /// A response arrived whose status does not count as success.
    Status = 0,
    /// The connection could not be opened (refused, unreachable, no free port or file descriptor).
    Connect = 1,
    /// The peer reset the connection.
    Reset = 2,
    /// The peer closed the connection before the response was complete.
    ClosedEarly = 3,
    /// The bytes received were no response of the protocol.
    Protocol = 4,
    /// The client received no complete response within the timeout.
    Timeout = 5,
    /// TLS failed: the certificate, the handshake, or a record.
    Tls = 6,
    /// The server reset the request's stream (HTTP/2).
    StreamReset = 7,
    /// The server sent GOAWAY with the request in flight, or refused the request repeatedly
    /// (HTTP/2).
    Goaway = 8,
    /// The status of the response counts as success, but the response does not meet an expectation.
    Expectation = 9,
    /// The response meets its expectations, but lacks a value to capture.
    Capture = 10,
}

impl RequestFailure {
    /// Every kind of failure, in the order of [`Ledger::failed`].
    pub const ALL: [RequestFailure; RequestFailure::KIND_COUNT] = [
        RequestFailure::Status,
        RequestFailure::Connect,
        RequestFailure::Reset,
        RequestFailure::ClosedEarly,
        RequestFailure::Protocol,
        RequestFailure::Timeout,
        RequestFailure::Tls,
        RequestFailure::StreamReset,
        RequestFailure::Goaway,
        RequestFailure::Expectation,
        RequestFailure::Capture,
    ];
    /// Number of kinds of failures.
    pub const KIND_COUNT: usize = 11;

    /// Returns the name of the failure that every output shows.
    pub fn name(self) -> &'static str {
        match self {
            RequestFailure::Status => "status",
            RequestFailure::Connect => "connect",
            RequestFailure::Reset => "reset",
            RequestFailure::ClosedEarly => "closed_early",
            RequestFailure::Protocol => "protocol",
            RequestFailure::Timeout => "timeout",
            RequestFailure::Tls => "tls",
            RequestFailure::StreamReset => "stream_reset",
            RequestFailure::Goaway => "goaway",
            RequestFailure::Expectation => "expectation",
            RequestFailure::Capture => "capture",
        }
    }
}

/// The outcome of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The response met its expectations.
    Success,
    /// The request failed; the value is the reason.
    Failed(RequestFailure),
}

/// The counts of requests by outcome. Ledgers add up over intervals, workers and machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Number of requests that the schedule demanded.
    pub scheduled: u64,
    /// Number of requests with a successful response.
    pub succeeded: u64,
    /// Number of failed requests, by [`RequestFailure`].
    pub failed: [u64; RequestFailure::KIND_COUNT],
    /// Number of requests that were never sent: no connection was free, or the generator was late.
    pub unsent: u64,
    /// Number of requests without an outcome when the grace period (the wait after the end of the
    /// schedule) ended.
    pub in_flight: u64,
}

impl Ledger {
    /// Returns the number of failed requests of all kinds.
    pub fn failed_total(&self) -> u64 {
        self.failed.iter().sum()
    }

    /// Returns the number of finished requests: succeeded + failed.
    pub fn finished_requests(&self) -> u64 {
        self.succeeded + self.failed_total()
    }

    /// Returns the number of requests with a response, successful or not.
    pub fn response_count(&self) -> u64 {
        let failed = [RequestFailure::Status, RequestFailure::Expectation, RequestFailure::Capture];
        self.succeeded + failed.iter().map(|kind| self.failed[*kind as usize]).sum::<u64>()
    }

    /// Returns whether the counts agree: scheduled = succeeded + failed + unsent + in flight. The
    /// counts of every finished run agree.
    pub fn counts_add_up(&self) -> bool {
        self.scheduled == self.finished_requests() + self.unsent + self.in_flight
    }

    /// Returns the number of scheduled requests without a recorded outcome.
    pub fn requests_without_outcome(&self) -> u64 {
        let known = self.finished_requests().saturating_add(self.unsent).saturating_add(self.in_flight);
        self.scheduled.saturating_sub(known)
    }

    /// Returns the share of scheduled requests that succeeded, 0..=1. Failed, unsent and in-flight
    /// requests count as not succeeded. Returns 1 if no request was scheduled.
    pub fn success_rate(&self) -> f64 {
        if self.scheduled == 0 { 1.0 } else { self.succeeded as f64 / self.scheduled as f64 }
    }

    /// Adds `other` to this ledger.
    pub fn merge(&mut self, other: &Ledger) {
        self.scheduled += other.scheduled;
        self.succeeded += other.succeeded;
        for (mine, theirs) in self.failed.iter_mut().zip(other.failed) {
            *mine += theirs;
        }
        self.unsent += other.unsent;
        self.in_flight += other.in_flight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_counts_add_up_only_if_every_request_is_counted() {
        let mut ledger =
            Ledger { scheduled: 10, succeeded: 5, failed: [1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0], unsent: 1, in_flight: 1 };
        assert!(ledger.counts_add_up());
        assert_eq!((ledger.finished_requests(), ledger.response_count(), ledger.requests_without_outcome()), (8, 6, 0));
        assert_eq!(ledger.success_rate(), 0.5);
        ledger.in_flight = 0;
        assert_eq!(ledger.requests_without_outcome(), 1);
        ledger.succeeded += 2;
        assert_eq!(ledger.requests_without_outcome(), 0);
        assert!(!ledger.counts_add_up());
    }
}
