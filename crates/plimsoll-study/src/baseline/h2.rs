//! An HTTP/2 connection of the reference server. The connection handles requests by stream, and
//! delays responses. `plimsoll_wire` encodes the frames.

use super::answer::{BODY_FILLER, UnencodedResponse, burn_cpu_time, resource_response};
use super::request::{Resource, ServedRequest, parse_resource};
use plimsoll_sys::clock;
use plimsoll_wire::h2::{H2Server, ServerEvent};

/// The HTTP/2 state of one connection of the reference server.
pub(super) struct H2ServerConnection {
    server: H2Server,
    /// Requests whose bodies are incomplete, with their stream ids.
    open: Vec<(u32, ServedRequest)>,
    /// The responses that are not yet due: (due time in ns, stream id, request).
    delayed: Vec<(u64, u32, ServedRequest)>,
    /// The time of the earliest timer for a delayed response, ns; `None` if no timer is set.
    timer_ns: Option<u64>,
}

impl H2ServerConnection {
    pub(super) fn new() -> H2ServerConnection {
        H2ServerConnection { server: H2Server::new(), open: Vec::new(), delayed: Vec::new(), timer_ns: None }
    }

    /// Parses `input`, and answers the requests that need no delay. Returns the time in ns at which
    /// the caller must set a new timer. Returns `None` if the timers already set cover all delayed
    /// responses.
    pub(super) fn read(&mut self, input: &[u8]) -> Option<u64> {
        let mut rest = input;
        let mut due_ns: Option<u64> = None;
        while let Some(fact) = self.server.next(&mut rest) {
            let (stream, request) = match fact {
                ServerEvent::Head { stream, ends } => {
                    let head = self.server.method() == b"HEAD";
                    let request = ServedRequest {
                        resource: parse_resource(self.server.path()),
                        head,
                        keep: true,
                        is_http_1_0: false,
                    };
                    if !ends {
                        self.open.push((stream, request));
                        continue;
                    }
                    (stream, request)
                }
                ServerEvent::End { stream } => {
                    let Some(at) = self.open.iter().position(|open| open.0 == stream) else { continue };
                    self.open.swap_remove(at)
                }
                ServerEvent::Reset { stream } => {
                    self.open.retain(|open| open.0 != stream);
                    self.delayed.retain(|delayed| delayed.1 != stream);
                    continue;
                }
                ServerEvent::Over => break,
            };
            match request.resource {
                Resource::Delay(ms) if ms > 0 => {
                    let at_ns = clock::monotonic_ns() + ms * 1_000_000;
                    self.delayed.push((at_ns, stream, request));
                    if self.timer_ns.is_none_or(|timer_ns| at_ns < timer_ns) {
                        (self.timer_ns, due_ns) = (Some(at_ns), Some(at_ns));
                    }
                }
                Resource::Burn(us) => {
                    burn_cpu_time(us);
                    self.send_response(stream, request);
                }
                _ => self.send_response(stream, request),
            }
        }
        due_ns
    }

    fn send_response(&mut self, stream: u32, request: ServedRequest) {
        let UnencodedResponse { status, kind, content } = resource_response(request.resource);
        self.server.answer(stream, status, kind, content, request.head);
    }

    /// Answers all delayed requests that are due. Returns the time in ns at which the caller must
    /// set a timer for the next delayed response. Returns `None` if that timer is already set, or
    /// if no response is delayed.
    pub(super) fn on_timer(&mut self, now_ns: u64) -> Option<u64> {
        self.timer_ns = self.timer_ns.filter(|timer_ns| *timer_ns > now_ns);
        while let Some(at) = self.delayed.iter().position(|delayed| delayed.0 <= now_ns) {
            let (_, stream, request) = self.delayed.swap_remove(at);
            self.send_response(stream, request);
        }
        let next_ns = self.delayed.iter().map(|delayed| delayed.0).min()?;
        let is_new = self.timer_ns.is_none_or(|timer_ns| next_ns < timer_ns);
        is_new.then(|| *self.timer_ns.insert(next_ns))
    }

    /// Whether the connection has bytes that can be sent now.
    pub(super) fn wants_to_send(&self) -> bool {
        self.server.wants_to_send()
    }

    /// Whether the connection must close once all bytes are sent.
    pub(super) fn is_over(&self) -> bool {
        self.server.is_over()
    }

    /// Appends the next bytes to send to `output`.
    pub(super) fn write(&mut self, output: &mut Vec<u8>) {
        self.server.write(output, BODY_FILLER.len(), &BODY_FILLER);
    }
}
