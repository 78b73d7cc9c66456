//! Opens and closes the connections of a worker. If a connect to one address of the target fails,
//! the worker tries the target's next address. If the plan uses TLS, a TLS handshake follows the
//! connect. Not here: the exchanges (requests and responses) on a connection.

use super::state::{RequestStarts, Worker};
use crate::connection::{ConnectionState, Readiness, token};
use crate::net::Net;
use plimsoll_model::{RequestFailure, TlsFailure};
use plimsoll_sys::tcp;
use plimsoll_wire::Conn;

impl<N: Net> Worker<N> {
    /// Starts to open the slot's connection, and counts failed connects. All addresses of a host
    /// name are tried in turn, as clients do (RFC 6724, section 2). If the connects to all
    /// addresses fail, returns the error number (errno) of the last connect.
    pub(super) fn open(&mut self, slot: u32) -> Result<(), u16> {
        self.connections[slot as usize].addresses_tried = 0;
        self.open_at_next_address(slot)
    }

    /// Starts to open the slot's connection to the next address of the target.
    fn open_at_next_address(&mut self, slot: u32) -> Result<(), u16> {
        loop {
            let connection = &mut self.connections[slot as usize];
            let (peer, address) = match connection.addresses_tried {
                0 => self.job.addresses.next(),
                _ => self.job.addresses.peer_after(connection.address),
            };
            connection.generation = connection.generation.wrapping_add(1);
            connection.deferred = Readiness::NONE;
            connection.began_ns = self.now_ns;
            connection.addresses_tried += 1;
            connection.address = address;
            match self.net.connect(peer, token(slot, connection.generation)) {
                Ok((socket, stands)) => {
                    connection.socket = Some(socket);
                    connection.state = ConnectionState::Connecting;
                    self.opening += 1;
                    if stands {
                        self.handle_opened_connection(slot);
                    }
                    return Ok(());
                }
                Err(error) => {
                    self.recorder.count_failed_connect(error, address);
                    if !self.has_another_address(slot, error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Returns whether a connect that failed with `error` can be tried again at another address of
    /// the target.
    fn has_another_address(&self, slot: u32, error: u16) -> bool {
        tcp::is_address_specific(error)
            && u64::from(self.connections[slot as usize].addresses_tried) < self.job.addresses.active_count()
    }

    /// Handles the result of a connect: continues with the opened connection, or, after an error,
    /// tries the next address of the target.
    pub(super) fn handle_connect_result(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return };
        match self.net.connect_result(socket) {
            Ok(()) => self.handle_opened_connection(slot),
            Err(error) => {
                self.now_ns = self.net.now_ns();
                self.recorder.count_failed_connect(error, connection.address);
                if self.has_another_address(slot, error) {
                    self.close(slot);
                    if self.open_at_next_address(slot).is_ok() {
                        return;
                    }
                }
                self.fail_connection(slot, RequestFailure::Connect);
            }
        }
    }

    /// Handles a connection that has just opened: starts the TLS handshake, or makes the connection
    /// ready for requests.
    fn handle_opened_connection(&mut self, slot: u32) {
        self.now_ns = self.net.now_ns();
        self.recorder.count_opened_connection(self.now_ns - self.connections[slot as usize].began_ns);
        match &self.job.tls {
            None => {
                if self.job.plain_h2 {
                    self.connections[slot as usize].conn = Conn::h2(self.job.streams_max);
                }
                self.make_connection_ready(slot);
            }
            Some(client) => {
                let conn = Conn::over_tls(client, self.job.streams_max);
                self.begin_handshake(slot, conn);
            }
        }
    }

    /// Starts the TLS handshake of the slot's connection.
    #[cold]
    fn begin_handshake(&mut self, slot: u32, conn: Result<Conn, TlsFailure>) {
        let connection = &mut self.connections[slot as usize];
        connection.state = ConnectionState::Handshaking;
        connection.began_ns = self.now_ns;
        match conn {
            Ok(conn) => {
                connection.conn = conn;
                self.send(slot);
            }
            Err(reason) => self.handle_tls_failure(slot, reason),
        }
    }

    /// Handles a successful TLS handshake.
    #[cold]
    pub(super) fn complete_handshake(&mut self, slot: u32, resumed: bool) {
        let connection = &self.connections[slot as usize];
        self.recorder.count_tls_handshake(self.now_ns - connection.began_ns, resumed);
        self.job.source.report_tls_parameters(&|| connection.conn.tls_parameters());
        self.make_connection_ready(slot);
    }

    /// Handles a TLS failure on the slot's connection: counts the failure, and fails the requests
    /// of the connection.
    #[cold]
    pub(super) fn handle_tls_failure(&mut self, slot: u32, reason: TlsFailure) {
        self.recorder.count_tls_failure(reason);
        self.fail_connection(slot, RequestFailure::Tls);
    }

    /// Makes the slot's connection ready for requests after the connection has opened, and sends
    /// the requests that waited for the connection.
    fn make_connection_ready(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.state = ConnectionState::Open;
        self.opening -= 1;
        self.connections_open += 1;
        if connection.conn.is_h2() {
            self.recorder.count_h2_connection();
        }
        self.send_queued_requests(slot);
        // In some protocols, such as HTTP/2, the client sends bytes before its first request.
        if self.connections[slot as usize].conn.wants_to_send() {
            self.send(slot);
        }
        self.make_slot_available(slot);
    }

    /// Sends waiting requests on the slot's open connection, until the connection cannot take
    /// another request.
    pub(super) fn send_queued_requests(&mut self, slot: u32) {
        loop {
            let connection = &mut self.connections[slot as usize];
            if !connection.can_send_request() {
                return;
            }
            let Some(number) = self.exchanges.take_first(&mut connection.waiting) else { return };
            self.send_request(slot, number);
        }
    }

    /// Sends the requests that wait for the slot's connection. If the slot has no connection, opens
    /// a new connection first.
    #[cold]
    pub(super) fn open_or_send_queued(&mut self, slot: u32) {
        match self.connections[slot as usize].state {
            ConnectionState::Open => self.send_queued_requests(slot),
            ConnectionState::Free => {
                if self.open(slot).is_err() {
                    self.fail_connection(slot, RequestFailure::Connect);
                }
            }
            ConnectionState::Connecting | ConnectionState::Handshaking => {}
        }
    }

    /// Closes the slot's connection, if there is one.
    pub(super) fn close(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        match connection.state {
            ConnectionState::Free => return,
            ConnectionState::Connecting | ConnectionState::Handshaking => self.opening -= 1,
            ConnectionState::Open => self.connections_open -= 1,
        }
        // If the closed connection has an entry in the list of idle connections, the entry is now
        // outdated.
        connection.is_in_slot_list = false;
        connection.socket = None;
        connection.conn = Conn::new();
        connection.has_partial_send = false;
        connection.state = ConnectionState::Free;
        if let Some(other) = connection.goaway_replacement.take() {
            self.connections[other as usize].is_goaway_replacement = false;
        }
    }

    /// Handles the loss of a connection on which no request was in flight.
    pub(super) fn handle_lost_connection(&mut self, slot: u32) {
        self.close(slot);
        if !self.connections[slot as usize].waiting.is_empty() {
            self.open_or_send_queued(slot);
        }
        self.make_slot_available(slot);
    }

    /// In an open loop, makes a connection slot available to the next arrival. A slot whose
    /// connection can take a request is added to the idle list. A slot without a connection is
    /// added to the free list.
    #[inline]
    pub(super) fn make_slot_available(&mut self, slot: u32) {
        if matches!(self.starts, RequestStarts::Open { .. }) {
            let connection = &mut self.connections[slot as usize];
            match connection.state {
                _ if connection.is_in_slot_list || connection.is_session_owned => {}
                ConnectionState::Open if connection.conn.exchanges_available() > 0 => {
                    connection.is_in_slot_list = true;
                    self.slots_with_room.push((slot, connection.generation));
                }
                ConnectionState::Free => {
                    connection.is_in_slot_list = true;
                    self.free.push(slot);
                }
                ConnectionState::Open | ConnectionState::Connecting | ConnectionState::Handshaking => {}
            }
        }
    }
}
