//! Handles the frames that a server sends to the client: reports events, writes mandatory replies,
//! and detects protocol errors.

use super::{BYTES_PER_WRITE_MAX, GoAwayState, H2, ParsedHead, WINDOW_BYTES};
use crate::connection_event::{ConnectionEvent, ResponsePiece};
use crate::error::{ExchangeError, ProtocolError};
use crate::h1::{GrpcCallFlags, INTERIM_RESPONSES_MAX};
use crate::h2::frame::{self, H2Frame, H2Settings};
use crate::h2::head::{FIELDS_BYTES_MAX, ResponseHead};
use crate::h2::hpack::{HpackDecoder, HpackError};
use crate::h2::window::{WindowUse, resize_windows};
use plimsoll_model::{CallFault, GrpcStatus, H2Error};

/// The maximum number of consecutive frames that do not advance any response. A well-behaved server
/// sends few frames that advance no response, for example pings that keep the connection alive.
const IDLE_FRAMES_MAX: u32 = 10_000;
/// The maximum number of bytes of unsent replies, such as acknowledgements, to a server that does
/// not read.
const UNSENT_REPLY_BYTES_MAX: usize = 256 << 10;
/// The maximum length in bytes of a head that is stored for comparison with the next head.
const HEAD_KEPT_BYTES: usize = 1024;
/// The maximum length in bytes of the stored part of a `grpc-message` field.
const GRPC_ERROR_MESSAGE_BYTES_MAX: usize = 1024;

impl ParsedHead {
    /// Decodes a header block. If `keeps_fields` is true, the header fields of the block replace
    /// the stored fields of the earlier block, as text lines.
    fn read(&mut self, decoder: &mut HpackDecoder, block: &[u8], keeps_fields: bool) -> Result<(), ProtocolError> {
        let ParsedHead { block: kept, head, fields, grpc_error_message } = self;
        kept.clear();
        fields.clear();
        grpc_error_message.clear();
        *head = ResponseHead::default();
        let field = |name: &[u8], value: &[u8]| {
            head.parse_field(name, value);
            if name == b"grpc-message" {
                grpc_error_message.clear();
                grpc_error_message.extend_from_slice(&value[..value.len().min(GRPC_ERROR_MESSAGE_BYTES_MAX)]);
            }
            if keeps_fields && !name.starts_with(b":") {
                [name, b": ", value, b"\r\n"].iter().for_each(|part| fields.extend_from_slice(part));
            }
        };
        decoder.decode(block, FIELDS_BYTES_MAX, field).map_err(|error| match error {
            HpackError::Malformed => ProtocolError::Compression,
            HpackError::TooLarge => ProtocolError::HeadTooLarge,
        })
    }
}

impl H2 {
    /// Returns the next event in `bytes`, such as a complete response, and advances `bytes` past
    /// the event.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<ConnectionEvent<'a>> {
        loop {
            if let Some(error) = self.protocol_error {
                *bytes = &[];
                return self.bytes_to_send_event().or_else(|| self.next_failed()).or_else(|| {
                    (!std::mem::replace(&mut self.is_closed_to_new_exchanges, true))
                        .then_some(ConnectionEvent::ProtocolViolation(error))
                });
            }
            if let Some(event) = self.next_refused() {
                return Some(event);
            }
            let all = *bytes;
            match self.reader.next(bytes) {
                Ok(None) => return self.window_empty_event().or_else(|| self.bytes_to_send_event()),
                Ok(Some(frame)) => match self.handle_frame(frame) {
                    Ok(None) => {}
                    Ok(Some(event)) => return Some(event),
                    Err(error) => self.end_with_error(error),
                },
                Err(error) => self.end_with_error(error),
            }
            if self.protocol_error == Some(ProtocolError::NotHttp2)
                && let Some(exchange) = self.remove_next_exchange()
            {
                // The received bytes are not HTTP/2, so [`ConnectionEvent::Failed`] contains these
                // bytes in place of a response.
                let error = ProtocolError::NotHttp2.into();
                return Some(ConnectionEvent::Failed {
                    exchange,
                    error,
                    piece: ResponsePiece { bytes: all, ..ResponsePiece::default() },
                });
            }
        }
    }

    /// Returns [`ConnectionEvent::HasBytesToSend`] if there are bytes to send, at most once for
    /// each received piece of bytes.
    fn bytes_to_send_event(&mut self) -> Option<ConnectionEvent<'static>> {
        (std::mem::take(&mut self.reading) && self.wants_to_send()).then_some(ConnectionEvent::HasBytesToSend)
    }

    /// Returns [`ConnectionEvent::WindowNearlyEmpty`] if the server has exhausted a flow-control
    /// window, and if no earlier event has reported the exhausted window.
    fn window_empty_event(&mut self) -> Option<ConnectionEvent<'static>> {
        std::mem::take(&mut self.window_empty_unreported).then_some(ConnectionEvent::WindowNearlyEmpty)
    }

    /// Records the effect of a frame's content on a receive window of the client. `id` is the
    /// number of an open stream; 0 stands for the connection.
    #[inline]
    fn record_window_use(&mut self, id: u32, what: WindowUse) {
        if what != WindowUse::NoThresholdCrossed {
            self.window_empty_unreported |= what == WindowUse::BelowFrameSize;
            if !self.windows_to_update.contains(&id) {
                self.windows_to_update.push(id);
            }
        }
    }

    /// Ends the connection because the server broke a rule of the connection, and sends the error
    /// code to the server.
    #[cold]
    fn end_with_error(&mut self, error: ProtocolError) {
        let error = if self.has_server_settings { error } else { ProtocolError::NotHttp2 };
        self.protocol_error = Some(error);
        frame::write_go_away(&mut self.control_frames, 0, error.h2_error() as u32);
    }

    fn next_failed(&mut self) -> Option<ConnectionEvent<'static>> {
        let error = self.protocol_error?;
        let exchange = self.remove_next_exchange()?;
        Some(ConnectionEvent::Failed { exchange, error: error.into(), piece: ResponsePiece::default() })
    }

    /// Removes an exchange that the server will not process after its GOAWAY frame, and returns
    /// [`ConnectionEvent::Refused`] for the exchange.
    fn next_refused(&mut self) -> Option<ConnectionEvent<'static>> {
        let GoAwayState { last_stream, error } = self.goaway?;
        let exchange = match self.streams.back() {
            Some(stream) if stream.id > last_stream => self.streams.pop_back()?.exchange,
            _ => self.queued.pop_front()?,
        };
        Some(ConnectionEvent::Refused { exchange, error: ExchangeError::GoAway(error) })
    }

    /// Handles a frame, and returns the event that follows from the frame, if any.
    #[inline]
    fn handle_frame<'a>(&mut self, frame: H2Frame<'a>) -> Result<Option<ConnectionEvent<'a>>, ProtocolError> {
        match frame {
            H2Frame::Head { stream, block, ends } if self.has_server_settings => self.on_head(stream, block, ends),
            H2Frame::Data { stream, content, window_bytes, is_last, ends } if self.has_server_settings => {
                self.on_data(stream, content, window_bytes, is_last, ends)
            }
            other => self.handle_control_frame(other),
        }
    }

    /// Handles a frame of a stream that is not open.
    #[cold]
    fn handle_frame_without_stream(&mut self, id: u32) -> Result<(), ProtocolError> {
        // This client never opened a stream with an even number or a future number. A frame of such
        // a stream is an error of the connection.
        if id.is_multiple_of(2) || id >= self.next_stream {
            return Err(ProtocolError::FrameOrder);
        }
        self.count_idle()
    }

    #[inline]
    fn count_idle(&mut self) -> Result<(), ProtocolError> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX || self.control_frames.len() > UNSENT_REPLY_BYTES_MAX {
            return Err(ProtocolError::Flood);
        }
        Ok(())
    }

    fn on_head<'a>(
        &mut self,
        id: u32,
        block: Option<&'a [u8]>,
        ends: bool,
    ) -> Result<Option<ConnectionEvent<'a>>, ProtocolError> {
        let place = self.find(id);
        let is_trailers = place.is_some_and(|at| self.streams[at].status != 0);
        let head = self.read_head(block, is_trailers)?;
        let Some(at) = place else {
            self.handle_frame_without_stream(id)?;
            return Ok(None);
        };
        let stream = &mut self.streams[at];
        let exchange = stream.exchange;
        let fault = match (stream.status, head.status) {
            _ if head.fault.is_some() => head.fault,
            // Trailers are the last head of a stream, and have no status.
            (200.., 0) if ends => None,
            (200.., _) | (_, 0) => Some(ProtocolError::PseudoHeader),
            (_, 101) => Some(ProtocolError::UnexpectedUpgrade),
            (_, 100..200) if ends => Some(ProtocolError::BadStatus),
            (_, 100..200) => {
                stream.interims += 1;
                (stream.interims > INTERIM_RESPONSES_MAX).then_some(ProtocolError::TooManyInterim)
            }
            (_, status) => {
                stream.status = status;
                let is_empty = stream.expect.head_request || matches!(status, 204 | 304);
                stream.length = if is_empty { None } else { head.length };
                stream.encoding = head.encoding;
                stream.has_other_content_type = head.has_other_content_type;
                None
            }
        };
        if let Some(fault) = fault {
            return Ok(Some(self.fail_stream(at, fault)));
        }
        if (100..200).contains(&head.status) {
            self.count_idle()?;
            return Ok(None);
        }
        self.idle_frames = 0;
        if ends {
            self.streams[at].grpc_status = head.grpc_status;
            self.final_head_index = usize::from(is_trailers);
            return Ok(Some(self.finish_stream(at, ResponsePiece::default())));
        }
        Ok(Some(ConnectionEvent::Piece { exchange, status: Some(head.status), piece: ResponsePiece::default() }))
    }

    /// Parses the header block of a head. `block` is `None` if the block arrived in pieces.
    /// Trailers are compared with the last trailers, and other heads with the last response head,
    /// because equal blocks need not be parsed again.
    #[inline]
    fn read_head(&mut self, block: Option<&[u8]>, is_trailers: bool) -> Result<ResponseHead, ProtocolError> {
        let block = block.unwrap_or(self.reader.header_block());
        let kept = &mut self.cached_heads[usize::from(is_trailers)];
        if !block.is_empty() && *block == *kept.block {
            return Ok(kept.head);
        }
        kept.read(&mut self.decoder, block, self.keeps_fields)?;
        if self.decoder.is_last_block_stateless() && block.len() <= HEAD_KEPT_BYTES {
            kept.block.extend_from_slice(block);
        }
        Ok(kept.head)
    }

    #[inline]
    fn on_data<'a>(
        &mut self,
        id: u32,
        content: &'a [u8],
        window_bytes: u32,
        is_last: bool,
        ends: bool,
    ) -> Result<Option<ConnectionEvent<'a>>, ProtocolError> {
        // The content of a DATA frame uses the connection's flow-control window, even if the
        // frame's stream is not open.
        let used = self.own_receive_window.record_use(window_bytes, WINDOW_BYTES);
        if used == WindowUse::WindowExceeded {
            return Err(ProtocolError::Window);
        }
        self.record_window_use(0, used);
        let Some(at) = self.find(id) else {
            // Each DATA frame counts as one idle frame, even if the frame arrives in several
            // pieces.
            if is_last {
                self.handle_frame_without_stream(id)?;
            } else if id.is_multiple_of(2) || id >= self.next_stream {
                return Err(ProtocolError::FrameOrder);
            }
            return Ok(None);
        };
        let used = self.streams[at].own_receive_window.record_use(window_bytes, WINDOW_BYTES);
        if used == WindowUse::WindowExceeded {
            return Ok(Some(self.fail_stream(at, ProtocolError::Window)));
        }
        if !ends {
            self.record_window_use(id, used);
        }
        let stream = &mut self.streams[at];
        stream.body_bytes += content.len() as u64;
        let fault = match stream.status {
            0 => Some(ProtocolError::FrameOrder),
            _ if content.is_empty() => None,
            _ if stream.expect.head_request || matches!(stream.status, 204 | 304) => {
                Some(ProtocolError::UnexpectedContent)
            }
            _ if stream.length.is_some_and(|length| stream.body_bytes > length) => Some(ProtocolError::WrongLength),
            _ => None,
        };
        if let Some(fault) = fault {
            return Ok(Some(self.fail_stream(at, fault)));
        }
        let messages = if stream.expect.call.is_call() { stream.messages.count_piece(content) } else { 0 };
        if messages > 0 && stream.expect.call.contains(GrpcCallFlags::MESSAGES_IN_TURN) && stream.body_left > 0 {
            if stream.waits_for_response_message() {
                self.sending.push_back(id);
            }
            stream.sendable_messages = stream.sendable_messages.saturating_add(messages);
        }
        let piece =
            ResponsePiece { bytes: content, content_bytes: content.len(), content_end: content.len(), messages };
        if ends {
            self.idle_frames = 0;
            return Ok(Some(self.finish_stream(at, piece)));
        }
        if content.is_empty() {
            if is_last {
                self.count_idle()?;
            }
            return Ok(None);
        }
        self.idle_frames = 0;
        let (exchange, status) = (stream.exchange, Some(stream.status));
        Ok(Some(ConnectionEvent::Piece { exchange, status, piece }))
    }

    /// Removes a stream whose response is complete, and returns the event that reports the
    /// response.
    #[inline]
    fn finish_stream<'a>(&mut self, at: usize, piece: ResponsePiece<'a>) -> ConnectionEvent<'a> {
        let stream = &self.streams[at];
        if stream.length.is_some_and(|length| stream.body_bytes != length) {
            return self.fail_stream(at, ProtocolError::WrongLength);
        }
        let (exchange, status, body_bytes) = (stream.exchange, stream.status, stream.body_bytes);
        let mut grpc_status = stream.grpc_status;
        (self.call_fault, self.call_large) = (None, stream.messages.has_large_message());
        if stream.expect.call.is_call() && grpc_status == Some(GrpcStatus::Ok as u16) {
            self.call_fault = stream.grpc_message_fault();
            // Every gRPC client reports the status INTERNAL for a response with faulty messages.
            grpc_status = self.call_fault.map_or(grpc_status, |_| Some(CallFault::REPORTED_STATUS as u16));
        }
        if stream.body_left > 0 {
            // The response was complete before the request was sent completely, so the unsent
            // content of the request is not sent.
            frame::write_reset(&mut self.control_frames, stream.id, H2Error::NoError as u32);
        }
        self.streams.remove(at);
        ConnectionEvent::Answered { exchange, status, grpc_status, body_bytes, piece, surplus: 0 }
    }

    /// Fails the exchange of a stream whose rules the server broke, and returns
    /// [`ConnectionEvent::Failed`] for the exchange.
    #[cold]
    fn fail_stream(&mut self, at: usize, error: ProtocolError) -> ConnectionEvent<'static> {
        let (id, exchange) = (self.streams[at].id, self.streams[at].exchange);
        self.streams.remove(at);
        frame::write_reset(&mut self.control_frames, id, error.h2_error() as u32);
        ConnectionEvent::Failed { exchange, error: error.into(), piece: ResponsePiece::default() }
    }

    fn handle_control_frame<'a>(&mut self, frame: H2Frame<'a>) -> Result<Option<ConnectionEvent<'a>>, ProtocolError> {
        if !self.has_server_settings {
            // The first frame of a server must be its settings (RFC 9113, 3.4).
            let H2Frame::Settings(_) = frame else { return Err(ProtocolError::NotHttp2) };
            self.has_server_settings = true;
            self.server_streams_max = u32::MAX;
        }
        self.count_idle()?;
        match frame {
            H2Frame::Settings(settings) => self.on_settings(settings)?,
            // After the server's acknowledgement, the client's settings apply, so the server's
            // encoder must not use a dynamic table.
            H2Frame::SettingsAck => self.decoder.set_permitted_bytes_max(0),
            H2Frame::Ping(data) => frame::write_ping_ack(&mut self.control_frames, &data),
            H2Frame::Push => return Err(ProtocolError::Pushed),
            H2Frame::Window { stream, bytes } => return self.on_window(stream, bytes),
            H2Frame::Reset { stream, code } => return self.on_reset(stream, code),
            H2Frame::GoAway { last_stream, code } => {
                let error = H2Error::from_code(code);
                let before = self.goaway.map_or(u32::MAX, |leaving| leaving.last_stream);
                self.goaway = Some(GoAwayState { last_stream: last_stream.min(before), error });
                return Ok(Some(ConnectionEvent::GoAway { error }));
            }
            H2Frame::WrongPriorityLength { stream } => {
                return Ok(self.find(stream).map(|at| self.fail_stream(at, ProtocolError::FrameSize)));
            }
            H2Frame::PingAck | H2Frame::Other { .. } => {}
            H2Frame::Head { .. } | H2Frame::Data { .. } => return Err(ProtocolError::FrameOrder),
        }
        Ok(None)
    }

    fn on_settings(&mut self, settings: H2Settings) -> Result<(), ProtocolError> {
        // A server must not enable push (RFC 9113, 6.5.2).
        if settings.push.is_some_and(|push| push != 0) {
            return Err(ProtocolError::Setting);
        }
        if let Some(window) = settings.window {
            resize_windows(
                &mut self.initial_send_window_bytes,
                window,
                self.streams.iter_mut().map(|stream| &mut stream.window),
            )?;
        }
        if let Some(bytes) = settings.payload_bytes_max {
            self.payload_bytes_max = (bytes as usize).min(BYTES_PER_WRITE_MAX);
        }
        if let Some(streams) = settings.streams_max {
            self.server_streams_max = streams;
        }
        frame::write_settings_ack(&mut self.control_frames);
        Ok(())
    }

    fn on_window<'a>(&mut self, id: u32, bytes: u32) -> Result<Option<ConnectionEvent<'a>>, ProtocolError> {
        if id == 0 {
            return self.window.add_increment(bytes).map(|()| None);
        }
        let Some(at) = self.find(id) else {
            self.handle_frame_without_stream(id)?;
            return Ok(None);
        };
        Ok(self.streams[at].window.add_increment(bytes).err().map(|error| self.fail_stream(at, error)))
    }

    fn on_reset<'a>(&mut self, id: u32, code: u32) -> Result<Option<ConnectionEvent<'a>>, ProtocolError> {
        let Some(at) = self.find(id) else {
            self.handle_frame_without_stream(id)?;
            return Ok(None);
        };
        let exchange = self.streams[at].exchange;
        self.streams.remove(at);
        Ok(Some(match H2Error::from_code(code) {
            error @ H2Error::RefusedStream => {
                ConnectionEvent::Refused { exchange, error: ExchangeError::StreamReset(error) }
            }
            error => ConnectionEvent::Failed {
                exchange,
                error: ExchangeError::StreamReset(error),
                piece: ResponsePiece::default(),
            },
        }))
    }
}
