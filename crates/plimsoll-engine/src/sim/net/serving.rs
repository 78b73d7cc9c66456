//! The server's side of the simulated network: reading, service, responses, and faults.

use super::{BytesInTransit, SimEventKind, SimWorld};
use crate::sim::server::{Fault, ResponseSplit, response_bytes};
use crate::sim::streams::ServerReaction;
use std::cmp::Reverse;
use std::rc::Rc;

impl SimWorld {
    /// Starts the server's idle timeout of a connection, if the server has an idle timeout.
    pub(super) fn start_idle_timeout(&mut self, at_ns: u64, link: usize) {
        if let Some(idle_ns) = self.server.idle_close_ns {
            let activity = self.links[link].activity;
            self.schedule_event(at_ns + idle_ns, link, SimEventKind::IdleSince(activity));
        }
    }

    /// Makes the server read the available bytes of a connection and react to them.
    pub(super) fn read_on_server(&mut self, at_ns: u64, link: usize) {
        let length = self.request.len();
        let it = &mut self.links[link];
        if it.server_closed || it.serving || it.has_stopped_reading || it.taking || it.arrived == 0 {
            return;
        }
        if it.taken == 0 {
            let fault = self.draw_fault(at_ns, false);
            self.links[link].fault = fault;
        }
        let it = &mut self.links[link];
        let half = length / 2;
        let want = match it.fault {
            Some(Fault::ResetsBeforeReading) => 0,
            Some(Fault::TakesHalf) => half.saturating_sub(it.taken),
            Some(Fault::AnswersEarlyAndCloses) if it.taken < half => half - it.taken,
            _ => length - it.taken,
        };
        let count = it.arrived.min(want).min(self.server.intake.map_or(usize::MAX, |(bytes, _)| bytes));
        let taken_before = it.taken;
        it.arrived -= count;
        it.in_pipe -= count;
        it.taken += count;
        if it.blocked && (self.server.buffer_bytes - it.in_pipe) * 3 >= self.server.buffer_bytes {
            it.blocked = false;
            self.queue_ready_event(link);
        }
        let it = &mut self.links[link];
        match it.fault {
            Some(Fault::ResetsBeforeReading) => return self.reset(at_ns, link),
            Some(Fault::TakesHalf) if it.taken >= half => {
                it.has_stopped_reading = true;
                return;
            }
            Some(Fault::AnswersEarlyAndCloses) if it.taken >= half => {
                self.send_response(at_ns, link, Some(Fault::AnswersEarlyAndCloses), 0);
                return self.close(at_ns, link);
            }
            Some(Fault::AnswersEarlyAndGoesOn) if taken_before < half && it.taken >= half => {
                self.send_response(at_ns, link, Some(Fault::AnswersEarlyAndGoesOn), 0);
            }
            _ => {}
        }
        let it = &mut self.links[link];
        if it.taken == length {
            self.account.requests += 1;
            it.serving = true;
            let done_ns = self.queue_request(at_ns);
            self.schedule_event(done_ns, link, SimEventKind::Answers);
        } else if let Some((_, every_ns)) = self.server.intake {
            self.links[link].taking = true;
            self.schedule_event(at_ns + every_ns, link, SimEventKind::Takes);
        } else if self.links[link].arrived > 0 {
            self.read_on_server(at_ns, link);
        }
    }

    /// Sends bytes of the server to the client.
    pub(super) fn send_to_client(&mut self, at_ns: u64, link: usize, bytes: Vec<u8>) {
        let (bytes, to): (Rc<[u8]>, usize) = (bytes.as_slice().into(), bytes.len());
        let pieces = if self.server.cut == ResponseSplit::Bytes { to } else { usize::from(to > 0) };
        for number in 0..pieces {
            let (from, to) = if pieces == to { (number, number + 1) } else { (0, to) };
            self.schedule_client_event(
                at_ns + number as u64,
                link,
                SimEventKind::Brings(BytesInTransit { bytes: Rc::clone(&bytes), from, to }),
            );
        }
    }

    /// Makes the server handle the next `count` HTTP/2 bytes, which have arrived.
    pub(super) fn handle_h2_bytes(&mut self, at_ns: u64, link: usize, count: usize) {
        let it = &mut self.links[link];
        if it.blocked && (self.server.buffer_bytes - it.in_pipe) * 3 >= self.server.buffer_bytes {
            it.blocked = false;
            self.queue_ready_event(link);
        }
        let mut arrived = count;
        while let Some(streams) = &mut self.links[link].streams
            && let Some(heard) = streams.next(std::mem::take(&mut arrived))
        {
            match heard {
                ServerReaction::SendBytes(bytes) => self.send_to_client(at_ns, link, bytes),
                ServerReaction::AcceptRequest(stream) => {
                    self.account.requests += 1;
                    let done_ns = self.queue_request(at_ns);
                    let messages = self.server.h2.map_or(0, |how| how.messages.0);
                    self.schedule_event(done_ns, link, SimEventKind::AnswersStream(stream, messages));
                }
                ServerReaction::RejectStream(bytes, is_over) => {
                    self.account.unprocessed_streams += 1;
                    self.account.streams_over += u64::from(is_over);
                    self.send_to_client(at_ns, link, bytes);
                }
                ServerReaction::Wrong => self.account.bytes_wrong += 1,
            }
        }
    }

    /// Sends the next part of a stream's response, unless the client cancelled the stream.
    pub(super) fn send_stream_part(&mut self, at_ns: u64, link: usize, stream: u32, messages_left: u32) {
        let it = &mut self.links[link];
        let Some(streams) = it.streams.as_mut().filter(|_| !it.server_closed) else { return };
        let Some((said, is_over)) = streams.next_response_bytes(stream, messages_left) else { return };
        if messages_left > 0 {
            let apart_ns = self.server.h2.map_or(0, |how| how.messages.1);
            self.schedule_event(at_ns + apart_ns, link, SimEventKind::AnswersStream(stream, messages_left - 1));
        }
        self.send_to_client(at_ns, link, said);
        if is_over {
            self.close(at_ns, link);
        }
    }

    /// Queues a request that arrives at `at_ns`. Returns the time at which its service is done, ns.
    fn queue_request(&mut self, at_ns: u64) -> u64 {
        let need_ns = self.server.service.draw_ns(&mut self.rng);
        let slot = self.slots.pop();
        let begins_ns = slot.map_or(at_ns, |Reverse(free_ns)| free_ns.max(at_ns));
        let done_ns = match self.server.stall {
            Some(stall) if begins_ns >= self.origin_ns => {
                self.origin_ns + stall.completion_ns(begins_ns - self.origin_ns, need_ns)
            }
            _ => begins_ns + need_ns,
        };
        if slot.is_some() {
            self.slots.push(Reverse(done_ns));
        }
        done_ns
    }

    pub(super) fn answer_request(&mut self, at_ns: u64, link: usize) {
        let it = &mut self.links[link];
        if it.server_closed {
            return;
        }
        it.serving = false;
        it.taken = 0;
        it.activity += 1;
        let fault = it.fault.take();
        match fault {
            Some(Fault::NeverAnswers) => {
                it.has_stopped_reading = true;
                return;
            }
            Some(Fault::ResetsAfterReading) => return self.reset(at_ns, link),
            Some(Fault::ClosesWithoutReply) => return self.close(at_ns, link),
            // The response was already sent before the whole request arrived.
            Some(Fault::AnswersEarlyAndGoesOn) => {}
            Some(Fault::Drips(gap_ns)) => self.send_response(at_ns, link, fault, gap_ns),
            Some(Fault::Floods) => {
                self.send_response(at_ns, link, fault, 0);
                self.links[link].flood_at = Some(0);
                return;
            }
            _ if self.server.cut == ResponseSplit::Bytes => self.send_response(at_ns, link, fault, 1),
            _ => self.send_response(at_ns, link, fault, 0),
        }
        // Faults that close or reset the connection, or that send more bytes, take effect after the
        // last byte of the response.
        let said_ns = self.links[link].last_ns.saturating_sub(self.server.latency_ns).max(at_ns);
        let activity = self.links[link].activity;
        match fault {
            Some(
                Fault::SaysClose
                | Fault::ClosesUnannounced
                | Fault::UntilClose
                | Fault::HugeUntilClose
                | Fault::ClosesInReply,
            ) => {
                self.close(said_ns, link);
            }
            Some(Fault::ResetsInReply) => self.reset(said_ns, link),
            Some(Fault::ClosesAfter(ns)) => self.schedule_event(said_ns + ns, link, SimEventKind::Closes),
            Some(Fault::AnswersTwice(ns)) => self.schedule_event(said_ns + ns, link, SimEventKind::AnswersAgain),
            Some(Fault::SendsUnsolicited(ns)) => {
                self.schedule_event(said_ns + ns, link, SimEventKind::BlurtsSince(activity))
            }
            _ => {}
        }
        self.start_idle_timeout(said_ns, link);
        self.read_on_server(at_ns, link);
    }

    /// Sends a response. If `gap_ns` is not 0, the response is sent byte by byte, with `gap_ns`
    /// between two bytes.
    pub(super) fn send_response(&mut self, at_ns: u64, link: usize, fault: Option<Fault>, gap_ns: u64) {
        let mut bytes = response_bytes(fault, self.head_request, self.serial);
        if matches!(fault, Some(Fault::ClosesInReply | Fault::ResetsInReply)) {
            let cut = 1 + self.rng.uniform_below(bytes.len() as u64 - 1) as usize;
            bytes.truncate(cut);
        }
        let bytes: Rc<[u8]> = bytes.into();
        let length = bytes.len();
        self.links[link].reply_left += length;
        let (mut from, mut at_ns) = (0, at_ns);
        while from < length {
            let to = match fault {
                _ if gap_ns > 0 => from + 1,
                Some(Fault::Pieces) => (from + 1 + self.rng.uniform_below(12) as usize).min(length),
                _ => length,
            };
            self.schedule_client_event(
                at_ns,
                link,
                SimEventKind::Brings(BytesInTransit { bytes: Rc::clone(&bytes), from, to }),
            );
            at_ns += if fault == Some(Fault::Pieces) { self.rng.uniform_below(3) * 20_000 } else { gap_ns };
            from = to;
        }
    }

    /// Closes the server's end of a connection. The client sees the end of the stream, or a reset
    /// if the server has unread bytes.
    pub(super) fn close(&mut self, at_ns: u64, link: usize) {
        let it = &mut self.links[link];
        if it.server_closed {
            return;
        }
        it.server_closed = true;
        let unheard = it.arrived > 0;
        self.schedule_client_event(at_ns, link, if unheard { SimEventKind::Breaks } else { SimEventKind::Ends });
    }

    fn reset(&mut self, at_ns: u64, link: usize) {
        self.links[link].server_closed = true;
        self.schedule_client_event(at_ns, link, SimEventKind::Breaks);
    }
}
