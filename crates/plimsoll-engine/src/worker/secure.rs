//! Connections that speak TLS: the worker's bytes pass through a session on their way. Plain connections come here never.

use super::Worker;
use super::turns::SLICE_BYTES;
use crate::connection::{Readiness, Secure, State};
use crate::net::{Net, Sent};
use plimsoll_model::{Failure, TlsFailure};

impl<N: Net> Worker<N> {
    /// The slot's connection stands: TLS is to be agreed on.
    #[cold]
    pub(super) fn begin_handshake(&mut self, slot: u32) {
        let Some(client) = &self.job.tls else { return };
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Handshaking;
        match client.session() {
            Ok(session) => {
                let (unsent, began_ns) = (Vec::new(), self.now_ns);
                let secure = Secure { session, unsent, unsent_from: 0, began_ns, ended: false };
                connection.secure = Some(Box::new(secure));
                self.flush_cipher(slot);
            }
            Err(reason) => self.tls_failed(slot, reason),
        }
    }

    /// Sends what waits of the slot's cipher text. True: all of it is sent. A broken connection is left to those who read
    /// from it.
    pub(super) fn flush_cipher(&mut self, slot: u32) -> bool {
        let connection = &mut self.connections[slot as usize];
        let (Some(socket), Some(secure)) = (&connection.socket, &mut connection.secure) else { return false };
        loop {
            let held = secure.unsent_from < secure.unsent.len();
            if !held {
                self.cipher.clear();
                secure.session.take_cipher(&mut self.cipher);
                if self.cipher.is_empty() {
                    return true;
                }
            }
            let waiting = if held { &secure.unsent[secure.unsent_from..] } else { &self.cipher[..] };
            let length = waiting.len();
            let sent = match self.net.send(socket, waiting) {
                Sent::Bytes(sent) => sent,
                Sent::Blocked => 0,
                Sent::Broken => {
                    self.defer(slot, Readiness::BROKEN);
                    return false;
                }
            };
            self.recorder.bytes_out += sent as u64;
            if held {
                secure.unsent_from += sent;
                if secure.unsent_from == secure.unsent.len() {
                    (secure.unsent, secure.unsent_from) = (Vec::new(), 0);
                }
            } else if sent < length {
                secure.unsent.extend_from_slice(&self.cipher[sent..]);
            }
            if sent == 0 {
                return false;
            }
        }
    }

    /// Encrypts and sends the slot's request, or the rest of it.
    pub(super) fn send_secure(&mut self, slot: u32) {
        // Until it is known to be sent: should the socket block, its room is an event.
        self.connections[slot as usize].state = State::Sending;
        let mut room = SLICE_BYTES;
        while self.flush_cipher(slot) {
            let connection = &mut self.connections[slot as usize];
            let (Some(secure), Some(exchange)) = (&mut connection.secure, connection.exchange) else { return };
            let request = &self.job.source.route(self.exchanges[exchange].route).request;
            if connection.written == request.len() {
                connection.state = State::Receiving;
                return;
            }
            if room == 0 {
                self.defer(slot, Readiness::WRITABLE);
                return;
            }
            let rest = &request[connection.written..];
            let taken = secure.session.send(&rest[..rest.len().min(room)]);
            if taken == 0 {
                // Nothing waits, and yet it takes nothing: the session is over.
                self.defer(slot, Readiness::BROKEN);
                return;
            }
            connection.written += taken;
            room -= taken;
        }
    }

    /// Bytes have come on a connection that speaks TLS.
    pub(super) fn on_cipher(&mut self, slot: u32, bytes: &[u8], hangup: bool) {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let connection = &mut self.connections[slot as usize];
        let generation = connection.generation;
        let Some(secure) = &mut connection.secure else { return };
        let received = secure.session.receive(bytes, &mut plain);
        secure.ended |= received.as_ref().is_ok_and(|progress| progress.ended);
        match received {
            Ok(progress) => {
                if progress.established {
                    self.recorder.handshaken(self.now_ns - secure.began_ns, secure.session.is_resumed());
                    // Our last message of the handshake travels with the request.
                    self.stands(slot);
                }
                let open = |it: &Self| {
                    let connection = &it.connections[slot as usize];
                    connection.generation == generation && connection.socket.is_some()
                };
                if open(self) && self.connections[slot as usize].state != State::Sending {
                    self.flush_cipher(slot);
                }
                if !plain.is_empty() && open(self) {
                    self.on_bytes(slot, &plain, hangup || progress.ended);
                }
                if progress.ended && open(self) {
                    self.on_end(slot, false);
                }
            }
            Err(reason) => {
                // The alert tells the server why.
                self.flush_cipher(slot);
                self.tls_failed(slot, reason);
            }
        }
        // What a long answer took is not kept.
        if plain.capacity() <= 2 * super::BUFFER_BYTES {
            self.plain = plain;
        }
    }

    /// TLS has failed on the slot's connection.
    #[cold]
    pub(super) fn tls_failed(&mut self, slot: u32, reason: TlsFailure) {
        self.recorder.tls_failed(reason);
        if self.connections[slot as usize].exchange.is_some() {
            self.fail(slot, Failure::Tls);
        } else {
            self.lose(slot);
        }
    }
}
