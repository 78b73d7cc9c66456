//! The result of one request, as defined by vegeta. Not here: the encodings of a result.

/// The longest accepted record (JSON line, CSV row or gob message), bytes: 64 MiB.
pub(super) const RECORD_BYTES_MAX: usize = 64 << 20;

/// The result of one request, with vegeta's fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VegetaResult {
    /// The name of the attack (vegeta run) that sent the request.
    pub attack: String,
    /// The number of the request, from 0.
    pub seq: u64,
    /// The HTTP status; 0 means no response.
    pub code: u16,
    /// The start time of the request, ns since the Unix epoch.
    pub sent_ns: u64,
    /// The time from the start of the request to the end of the response, ns.
    pub latency_ns: u64,
    /// The size of the request body, bytes.
    pub bytes_out: u64,
    /// The size of the response body, bytes.
    pub bytes_in: u64,
    /// The error text; empty if there was no error.
    pub error: String,
    /// The body of the response.
    pub body: Vec<u8>,
    /// The HTTP method of the request.
    pub method: String,
    /// The URL of the request.
    pub url: String,
    /// The header fields of the response: each name with its values.
    pub headers: Vec<(String, Vec<String>)>,
}
