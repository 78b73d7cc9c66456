//! One result. Not here: its encodings.

/// Longest line of JSON or CSV, and longest gob message: 64 MiB.
pub(super) const RECORD_BYTES_MAX: usize = 64 << 20;

/// The result of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VegetaResult {
    /// The name of the attack.
    pub attack: String,
    /// Number of the request, from 0.
    pub seq: u64,
    /// The status; 0: no response.
    pub code: u16,
    /// Time of the request, ns since the Unix epoch.
    pub sent_ns: u64,
    /// Time to the end of the response, ns.
    pub latency_ns: u64,
    /// Bytes of the request's body.
    pub bytes_out: u64,
    /// Bytes of the response's body.
    pub bytes_in: u64,
    /// The error; empty without one.
    pub error: String,
    /// The body of the response.
    pub body: Vec<u8>,
    /// Method.
    pub method: String,
    /// URL.
    pub url: String,
    /// Header fields of the response: each name with its values.
    pub headers: Vec<(String, Vec<String>)>,
}
