//! What `done` gets of a run ([`ScriptSummary`]). Not here: how it is counted (`run_figures`).

/// What `done` gets of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScriptSummary {
    /// How long it took, us.
    pub duration_us: u64,
    /// Answers.
    pub requests: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Connections that could not be made.
    pub errors_connect: u64,
    /// Answers that broke off or were none.
    pub errors_read: u64,
    /// Requests that could not be sent.
    pub errors_write: u64,
    /// Answers with a status above 399.
    pub errors_status: u64,
    /// Requests that took longer than the timeout.
    pub errors_timeout: u64,
}
