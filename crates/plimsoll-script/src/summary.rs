//! The totals of a run that a script's function `done` receives ([`ScriptSummary`]). Not here: the
//! computation of the totals (`run_figures`).

/// The totals of a run that a script's function `done` receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptSummary {
    /// The duration of the run, us.
    pub duration_us: u64,
    /// The number of complete responses, whatever their status.
    pub requests: u64,
    /// The number of bytes received.
    pub bytes: u64,
    /// The number of failed connections, including failed TLS handshakes.
    pub errors_connect: u64,
    /// The number of responses that were incomplete or invalid.
    pub errors_read: u64,
    /// The number of requests that could not be sent. The number is always 0, because requests that
    /// could not be sent count as read errors.
    pub errors_write: u64,
    /// The number of responses with a status above 399.
    pub errors_status: u64,
    /// The number of requests without a response within the timeout.
    pub errors_timeout: u64,
}
