//! The totals of a run that a script's `done` receives ([`ScriptSummary`]). Not here: counting them
//! (`run_figures`).

/// The totals of a run that a script's `done` receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptSummary {
    /// Duration of the run, us.
    pub duration_us: u64,
    /// Number of complete responses, whatever their status.
    pub requests: u64,
    /// Number of bytes received.
    pub bytes: u64,
    /// Number of failed connections, including failed TLS handshakes.
    pub errors_connect: u64,
    /// Number of responses that broke off or were invalid.
    pub errors_read: u64,
    /// Number of requests that could not be sent. Always 0: such failures count as read errors.
    pub errors_write: u64,
    /// Number of responses with a status above 399.
    pub errors_status: u64,
    /// Number of requests without a response within the timeout.
    pub errors_timeout: u64,
}
