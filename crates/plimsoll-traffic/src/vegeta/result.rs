//! One result. Not here: how it is read and written.

/// The longest line of JSON or CSV, and the longest message of gob, that is read: 64 MiB.
pub(super) const RECORD_BYTES_MAX: usize = 64 << 20;

/// What came of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VegetaResult {
    /// The name of the attack.
    pub attack: String,
    /// Number of the request, from 0.
    pub seq: u64,
    /// Status; 0: none came.
    pub code: u16,
    /// When it was sent, ns since the Unix epoch.
    pub sent_ns: u64,
    /// Until the answer had come, ns.
    pub latency_ns: u64,
    /// Bytes of the request's body.
    pub bytes_out: u64,
    /// Bytes of the answer's body.
    pub bytes_in: u64,
    /// What went wrong; empty: nothing.
    pub error: String,
    /// The answer's body.
    pub body: Vec<u8>,
    /// Method.
    pub method: String,
    /// URL.
    pub url: String,
    /// Fields of the answer: each name with its values.
    pub headers: Vec<(String, Vec<String>)>,
}
