//! Tests of the HTTP/2 client against frames written by hand, in all splits. The tests check the
//! rules of RFC 9113 for clients. The name of each test case says the expected outcome.

use crate::driver::{Random, request};
use crate::h2_driver::{H2Outcome, H2Results, h2_requests, same_h2_events_in_all_splits};
use crate::h2_frames::*;
use H2Outcome::{Answered, Failed, Refused};
use plimsoll_model::H2Error;
use plimsoll_wire::h2::{CONNECTION_PREFACE, Content, H2Server, HpackDecoder, ServerEvent};
use plimsoll_wire::{Conn, ConnectionEvent, EarlyCloseError, EncodedRequest, ExchangeError, ProtocolError};

/// Returns successful responses on streams 3 and 5. The driver's requests are a GET on stream 1, a
/// HEAD on stream 3 and a POST on stream 5.
fn ok_responses_on_streams_3_and_5() -> Vec<u8> {
    [ok_response_frame(3), ok_response_frame(5)].concat()
}

fn decode_in_all_splits(bytes: &[u8]) -> H2Results {
    same_h2_events_in_all_splits(bytes, &mut Random(1)).unwrap_or_else(|what| panic!("{what}"))
}

/// Checks that the first exchange has this status and length, that the other exchanges succeed, and
/// that the client reports no error.
fn check_first_answer(bytes: &[Vec<u8>], status: u16, body_bytes: u64) {
    let heard =
        decode_in_all_splits(&[server_preface_frames(), bytes.concat(), ok_responses_on_streams_3_and_5()].concat());
    let ok = Some(Answered(200, 0));
    assert_eq!(heard.outcomes, [Some(Answered(status, body_bytes)), ok.clone(), ok]);
    assert_eq!((heard.resets.as_slice(), heard.goaway_code), (&[][..], None));
}

/// Checks that the first exchange fails and its stream is reset with the error code `code`, and
/// that the other exchanges succeed.
fn check_stream_fails(bytes: &[Vec<u8>], error: ProtocolError, code: H2Error) {
    let heard =
        decode_in_all_splits(&[server_preface_frames(), bytes.concat(), ok_responses_on_streams_3_and_5()].concat());
    let ok = Some(Answered(200, 0));
    assert_eq!(heard.outcomes, [Some(Failed(error.into())), ok.clone(), ok]);
    assert_eq!((heard.resets.as_slice(), heard.goaway_code), (&[(1, code as u32)][..], None));
}

/// Checks that all exchanges fail, and that the client ends the connection with the error code
/// `code`.
fn check_connection_fails(bytes: &[Vec<u8>], error: ProtocolError, code: H2Error) {
    let heard = decode_in_all_splits(
        &[server_preface_frames(), bytes.concat(), ok_response_frame(1), ok_responses_on_streams_3_and_5()].concat(),
    );
    assert_eq!(heard.outcomes, [Some(Failed(error.into())), Some(Failed(error.into())), Some(Failed(error.into()))]);
    assert_eq!(heard.goaway_code, Some(code as u32));
}

macro_rules! cases {
    ($( $name:ident: $check:ident([$($bytes:expr),* $(,)?], $($expect:expr),+); )+) => {
        $( #[test] fn $name() { $check(&[$($bytes),*], $($expect),+); } )+
    };
}

const PROTOCOL_ERROR: H2Error = H2Error::ProtocolError;
const FRAME_SIZE: H2Error = H2Error::FrameSizeError;

cases! {
    // Valid responses.
    a_head_that_ends_its_stream_is_an_answer: check_first_answer([ok_response_frame(1)], 200, 0);
    a_head_and_content_are_an_answer:
        check_first_answer([headers_frame(1, 0, &[STATUS_200_FIELD, ("content-length", "5")]), frame(DATA, END_STREAM, 1, b"hello")], 200, 5);
    content_in_several_frames_is_one: check_first_answer(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, 0, 1, b"hel"), frame(DATA, 0, 1, b""), frame(DATA, 0, 1, b"lo"), frame(DATA, END_STREAM, 1, b"")],
        200, 5);
    padding_is_no_content: check_first_answer(
        [frame(HEADERS, END_HEADERS | PADDED, 1, &[&[4][..], &encode_header_block(&[STATUS_200_FIELD]), &[0; 4]].concat()),
         frame(DATA, END_STREAM | PADDED, 1, b"\x03hello\0\0\0")], 200, 5);
    a_table_that_a_server_keeps_although_it_was_refused_is_understood: check_first_answer(
        [frame(HEADERS, END_HEADERS, 1, b"\x88\x40\x01a\x01b"), frame(DATA, 0, 1, b"hello"), frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[0xbe])], 200, 5);
    content_that_is_all_padding_is_none:
        check_first_answer([headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, END_STREAM | PADDED, 1, b"\x03\0\0\0")], 200, 0);
    a_priority_in_a_head_is_passed_over:
        check_first_answer([frame(HEADERS, END_STREAM_AND_HEADERS | PRIORITY, 1, &[&[0x80, 0, 0, 3, 9][..], &encode_header_block(&[STATUS_200_FIELD])].concat())], 200, 0);
    a_head_in_pieces_is_one: check_first_answer(
        [frame(HEADERS, 0, 1, &encode_header_block(&[STATUS_200_FIELD])), frame(CONTINUATION, 0, 1, &[]),
         frame(CONTINUATION, END_HEADERS, 1, &encode_header_block(&[("x", "y")])), frame(DATA, END_STREAM, 1, b"!")], 200, 1);
    trailers_end_an_answer: check_first_answer(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, 0, 1, b"hello"), headers_frame(1, END_STREAM, &[("sum", "5")])], 200, 5);
    interim_answers_are_passed_over: check_first_answer(
        [headers_frame(1, 0, &[(":status", "103"), ("link", "x")]), headers_frame(1, 0, &[(":status", "100")]), ok_response_frame(1)], 200, 0);
    an_answer_without_content_may_say_how_long_it_would_be:
        check_first_answer([headers_frame(1, END_STREAM, &[(":status", "304"), ("content-length", "999")])], 304, 0);
    unknown_kinds_of_frames_are_passed_over:
        check_first_answer([frame(0x77, 0xff, 1, b"any"), frame(0x77, 0, 0, &[]), frame(0x10, 0, 7, b"x"), ok_response_frame(1)], 200, 0);
    unknown_settings_are_passed_over: check_first_answer([settings_frame(&[(0x77, 5), (0, 0)]), ok_response_frame(1)], 200, 0);
    unknown_flags_are_passed_over: check_first_answer([frame(HEADERS, END_STREAM_AND_HEADERS | 0xd2, 1, &encode_header_block(&[STATUS_200_FIELD])), ], 200, 0);
    the_reserved_bit_of_a_stream_is_passed_over:
        check_first_answer([frame(HEADERS, END_STREAM_AND_HEADERS, 1 | 1 << 31, &encode_header_block(&[STATUS_200_FIELD]))], 200, 0);
    priorities_are_passed_over: check_first_answer([frame(2, 0, 1, &[0, 0, 0, 1, 0]), ok_response_frame(1)], 200, 0);
    frames_of_a_stream_that_has_ended_are_passed_over:
        check_first_answer([ok_response_frame(1), frame(DATA, 0, 1, b"late"), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 9]), frame(RST_STREAM, 0, 1, &[0; 4])], 200, 0);
    a_head_of_a_stream_that_has_ended_is_passed_over: check_first_answer([ok_response_frame(1), ok_response_frame(1)], 200, 0);
    settings_at_any_time_are_taken:
        check_first_answer([headers_frame(1, 0, &[STATUS_200_FIELD]), settings_frame(&[(3, 1), (4, 0), (5, 20_000), (6, 9)]), frame(DATA, END_STREAM, 1, b"x")], 200, 1);
    windows_may_be_enlarged_up_to_the_largest: check_first_answer(
        [frame(WINDOW_UPDATE, 0, 5, &(0x7fff_ffffu32 - 65_535).to_be_bytes()), ok_response_frame(1)], 200, 0);

    a_push_setting_of_0_is_taken: check_first_answer([settings_frame(&[(2, 0)]), ok_response_frame(1)], 200, 0);
    acknowledged_pings_are_passed_over: check_first_answer([frame(PING, 1, 0, &[7; 8]), ok_response_frame(1)], 200, 0);
    a_priority_of_a_stream_never_opened_is_passed_over: check_first_answer([frame(2, 0, 9, &[0; 5]), ok_response_frame(1)], 200, 0);
    padding_of_no_length_is_none:
        check_first_answer([frame(HEADERS, END_STREAM_AND_HEADERS | PADDED, 1, &[&[0][..], &encode_header_block(&[STATUS_200_FIELD])].concat())], 200, 0);
    the_largest_frame_is_taken: check_first_answer([headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, END_STREAM, 1, &[0; 16_384])], 200, 16_384);

    // Protocol errors that fail only a single response.
    a_priority_of_another_length_fails_the_stream:
        check_stream_fails([frame(2, 0, 1, &[0; 4])], ProtocolError::FrameSize, FRAME_SIZE);
    content_of_an_answer_that_has_none_fails_the_stream: check_stream_fails(
        [headers_frame(1, 0, &[(":status", "204")]), frame(DATA, END_STREAM, 1, b"x")], ProtocolError::UnexpectedContent, PROTOCOL_ERROR);
    a_capital_letter_in_trailers_fails_the_stream: check_stream_fails(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), headers_frame(1, END_STREAM, &[("Sum", "5")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_connection_in_trailers_fails_the_stream: check_stream_fails(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), headers_frame(1, END_STREAM, &[("connection", "close")])], ProtocolError::ConnectionHeader, PROTOCOL_ERROR);
    a_delete_in_a_name_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a\x7f", "x")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    no_status_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[("x", "y")])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    two_statuses_fail_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, STATUS_200_FIELD])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    a_status_after_a_field_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[("x", "y"), STATUS_200_FIELD])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    a_pseudo_header_of_requests_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, (":path", "/")])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    an_unknown_pseudo_header_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, (":x", "")])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    a_status_that_is_none_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[(":status", "2x0")])], ProtocolError::BadStatus, PROTOCOL_ERROR);
    a_status_of_four_digits_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[(":status", "2000")])], ProtocolError::BadStatus, PROTOCOL_ERROR);
    a_status_below_100_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[(":status", "099")])], ProtocolError::BadStatus, PROTOCOL_ERROR);
    an_interim_answer_that_ends_the_stream_fails_it:
        check_stream_fails([headers_frame(1, END_STREAM, &[(":status", "100")])], ProtocolError::BadStatus, PROTOCOL_ERROR);
    switching_protocols_fails_the_stream:
        check_stream_fails([headers_frame(1, 0, &[(":status", "101")])], ProtocolError::UnexpectedUpgrade, PROTOCOL_ERROR);
    too_many_interim_answers_fail_the_stream:
        check_stream_fails([headers_frame(1, 0, &[(":status", "103")]).repeat(65)], ProtocolError::TooManyInterim, H2Error::EnhanceYourCalm);
    capital_letters_in_a_name_fail_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("Server", "x")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_space_in_a_name_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a b", "x")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    an_empty_name_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("", "x")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_line_feed_in_a_value_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a", "x\ny")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_carriage_return_in_a_value_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a", "x\ry")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_nul_in_a_value_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a", "x\0")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_space_before_a_value_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a", " x")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    a_tab_after_a_value_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("a", "x\t")])], ProtocolError::BadHeader, PROTOCOL_ERROR);
    connection_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("connection", "close")])], ProtocolError::ConnectionHeader, PROTOCOL_ERROR);
    keep_alive_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("keep-alive", "x")])], ProtocolError::ConnectionHeader, PROTOCOL_ERROR);
    transfer_encoding_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("transfer-encoding", "chunked")])], ProtocolError::ConnectionHeader, PROTOCOL_ERROR);
    upgrade_fails_the_stream: check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("upgrade", "x")])], ProtocolError::ConnectionHeader, PROTOCOL_ERROR);
    proxy_connection_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("proxy-connection", "x")])], ProtocolError::ConnectionHeader, PROTOCOL_ERROR);
    a_length_that_is_none_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("content-length", "x")])], ProtocolError::BadContentLength, PROTOCOL_ERROR);
    two_lengths_fail_the_stream: check_stream_fails(
        [headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("content-length", "1"), ("content-length", "2")])], ProtocolError::BadContentLength, PROTOCOL_ERROR);
    less_content_than_said_fails_the_stream: check_stream_fails(
        [headers_frame(1, 0, &[STATUS_200_FIELD, ("content-length", "6")]), frame(DATA, END_STREAM, 1, b"hello")], ProtocolError::WrongLength, PROTOCOL_ERROR);
    no_content_where_some_was_said_fails_the_stream:
        check_stream_fails([headers_frame(1, END_STREAM, &[STATUS_200_FIELD, ("content-length", "6")])], ProtocolError::WrongLength, PROTOCOL_ERROR);
    content_before_the_head_fails_the_stream: check_stream_fails([frame(DATA, END_STREAM, 1, b"hello")], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    trailers_that_do_not_end_the_stream_fail_it: check_stream_fails(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), headers_frame(1, 0, &[("sum", "5")])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    a_status_in_trailers_fails_the_stream: check_stream_fails(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, 0, 1, b"x"), headers_frame(1, END_STREAM, &[STATUS_200_FIELD])], ProtocolError::PseudoHeader, PROTOCOL_ERROR);
    a_window_of_a_stream_enlarged_by_nothing_fails_it:
        check_stream_fails([frame(WINDOW_UPDATE, 0, 1, &[0; 4])], ProtocolError::ZeroWindow, PROTOCOL_ERROR);
    a_window_of_a_stream_above_the_largest_fails_it: check_stream_fails(
        [frame(WINDOW_UPDATE, 0, 1, &0x7fff_ffffu32.to_be_bytes())], ProtocolError::Window, H2Error::FlowControlError);

    // Protocol errors that end the whole connection.
    a_frame_above_the_largest_ends_the_connection:
        check_connection_fails([frame(DATA, 0, 1, &[0; 16_385])], ProtocolError::FrameSize, FRAME_SIZE);
    a_head_above_the_largest_ends_the_connection:
        check_connection_fails([frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[0x88; 16_385])], ProtocolError::FrameSize, FRAME_SIZE);
    settings_above_the_largest_end_the_connection:
        check_connection_fails([frame(SETTINGS, 0, 0, &[0; 16_386])], ProtocolError::FrameSize, FRAME_SIZE);
    a_continuation_of_stream_0_ends_the_connection:
        check_connection_fails([frame(HEADERS, 0, 1, &[0x88]), frame(CONTINUATION, END_HEADERS, 0, &[])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_pushed_stream_of_stream_0_ends_the_connection: check_connection_fails(
        [frame(PUSH_PROMISE, END_HEADERS, 0, &[0, 0, 0, 2, 0x88])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    content_of_stream_0_ends_the_connection: check_connection_fails([frame(DATA, 0, 0, b"x")], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    content_of_a_stream_never_opened_ends_the_connection:
        check_connection_fails([frame(DATA, 0, 7, b"x")], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_head_of_a_stream_never_opened_ends_the_connection: check_connection_fails([ok_response_frame(9)], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_head_of_an_even_stream_ends_the_connection: check_connection_fails([ok_response_frame(2)], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_head_of_stream_0_ends_the_connection: check_connection_fails([ok_response_frame(0)], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_reset_of_stream_0_ends_the_connection: check_connection_fails([frame(RST_STREAM, 0, 0, &[0; 4])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_reset_of_a_stream_never_opened_ends_the_connection:
        check_connection_fails([frame(RST_STREAM, 0, 7, &[0; 4])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_reset_of_another_length_ends_the_connection:
        check_connection_fails([frame(RST_STREAM, 0, 1, &[0; 5])], ProtocolError::FrameSize, FRAME_SIZE);
    a_window_of_a_stream_never_opened_ends_the_connection:
        check_connection_fails([frame(WINDOW_UPDATE, 0, 7, &[0, 0, 0, 1])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_priority_of_stream_0_ends_the_connection: check_connection_fails([frame(2, 0, 0, &[0; 5])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    padding_as_long_as_content_ends_the_connection:
        check_connection_fails([frame(DATA, PADDED, 1, b"\x06hello")], ProtocolError::Padding, PROTOCOL_ERROR);
    padding_longer_than_a_head_ends_the_connection:
        check_connection_fails([frame(HEADERS, END_STREAM_AND_HEADERS | PADDED, 1, &[9, 0x88])], ProtocolError::Padding, PROTOCOL_ERROR);
    a_padded_frame_without_a_length_of_padding_ends_the_connection:
        check_connection_fails([frame(DATA, PADDED, 1, &[])], ProtocolError::FrameSize, FRAME_SIZE);
    a_priority_that_is_cut_ends_the_connection:
        check_connection_fails([frame(HEADERS, END_STREAM_AND_HEADERS | PRIORITY, 1, &[0; 4])], ProtocolError::FrameSize, FRAME_SIZE);
    settings_of_a_stream_end_the_connection: check_connection_fails([frame(SETTINGS, 0, 1, &[])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    settings_of_an_odd_length_end_the_connection:
        check_connection_fails([frame(SETTINGS, 0, 0, &[0; 5])], ProtocolError::FrameSize, FRAME_SIZE);
    settings_that_acknowledge_and_say_something_end_the_connection:
        check_connection_fails([frame(SETTINGS, 1, 0, &[0; 6])], ProtocolError::FrameSize, FRAME_SIZE);
    a_server_that_offers_to_be_pushed_to_ends_the_connection: check_connection_fails([settings_frame(&[(2, 1)])], ProtocolError::Setting, PROTOCOL_ERROR);
    a_push_setting_of_2_ends_the_connection: check_connection_fails([settings_frame(&[(2, 2)])], ProtocolError::Setting, PROTOCOL_ERROR);
    a_first_window_above_the_largest_ends_the_connection:
        check_connection_fails([settings_frame(&[(4, 1 << 31)])], ProtocolError::Window, H2Error::FlowControlError);
    a_first_window_that_makes_another_too_large_ends_the_connection: check_connection_fails(
        [frame(WINDOW_UPDATE, 0, 5, &(0x7fff_ffffu32 - 65_535).to_be_bytes()), settings_frame(&[(4, 65_550)])],
        ProtocolError::Window, H2Error::FlowControlError);
    a_frame_size_below_the_smallest_ends_the_connection: check_connection_fails([settings_frame(&[(5, 16_383)])], ProtocolError::Setting, PROTOCOL_ERROR);
    a_frame_size_above_the_largest_ends_the_connection: check_connection_fails([settings_frame(&[(5, 1 << 24)])], ProtocolError::Setting, PROTOCOL_ERROR);
    a_ping_of_a_stream_ends_the_connection: check_connection_fails([frame(PING, 0, 1, &[0; 8])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_ping_of_another_length_ends_the_connection:
        check_connection_fails([frame(PING, 0, 0, &[0; 7])], ProtocolError::FrameSize, FRAME_SIZE);
    a_goaway_of_a_stream_ends_the_connection: check_connection_fails([frame(GOAWAY, 0, 1, &[0; 8])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_goaway_that_is_cut_ends_the_connection: check_connection_fails([frame(GOAWAY, 0, 0, &[0; 7])], ProtocolError::FrameSize, FRAME_SIZE);
    a_window_update_of_another_length_ends_the_connection:
        check_connection_fails([frame(WINDOW_UPDATE, 0, 0, &[0; 3])], ProtocolError::FrameSize, FRAME_SIZE);
    the_window_enlarged_by_nothing_ends_the_connection:
        check_connection_fails([frame(WINDOW_UPDATE, 0, 0, &[0; 4])], ProtocolError::ZeroWindow, PROTOCOL_ERROR);
    the_window_above_the_largest_ends_the_connection: check_connection_fails(
        [frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffffu32.to_be_bytes())], ProtocolError::Window, H2Error::FlowControlError);
    a_pushed_stream_ends_the_connection: check_connection_fails(
        [frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x88])], ProtocolError::Pushed, PROTOCOL_ERROR);
    a_continuation_of_nothing_ends_the_connection:
        check_connection_fails([frame(CONTINUATION, END_HEADERS, 1, &[0x88])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    a_continuation_of_another_stream_ends_the_connection: check_connection_fails(
        [frame(HEADERS, 0, 1, &[0x88]), frame(CONTINUATION, END_HEADERS, 3, &[])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    another_frame_within_a_head_ends_the_connection: check_connection_fails(
        [frame(HEADERS, 0, 1, &[0x88]), frame(PING, 0, 0, &[0; 8])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    an_unknown_frame_within_a_head_ends_the_connection: check_connection_fails(
        [frame(HEADERS, 0, 1, &[0x88]), frame(0x77, 0, 0, &[])], ProtocolError::FrameOrder, PROTOCOL_ERROR);
    compression_that_is_broken_ends_the_connection:
        check_connection_fails([frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[0xff; 8])], ProtocolError::Compression, H2Error::CompressionError);
    a_table_that_was_refused_ends_the_connection:
        check_connection_fails([frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[0x3f, 0xe1, 0x1f, 0x88])], ProtocolError::Compression, H2Error::CompressionError);
    a_field_of_a_table_that_was_refused_ends_the_connection:
        check_connection_fails([frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[0x88, 0xbe])], ProtocolError::Compression, H2Error::CompressionError);
    compression_that_is_broken_in_a_stream_that_has_ended_ends_the_connection: check_connection_fails_after_response(
        [ok_response_frame(1), frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[0xff; 8])], ProtocolError::Compression, H2Error::CompressionError);

    // Floods of frames: the client ends the connection while it has stored and processed only
    // little.
    a_flood_of_pings_ends_the_connection:
        check_connection_fails([frame(PING, 0, 0, &[0; 8]).repeat(10_001)], ProtocolError::Flood, H2Error::EnhanceYourCalm);
    a_flood_of_settings_ends_the_connection:
        check_connection_fails([settings_frame(&[]).repeat(10_001)], ProtocolError::Flood, H2Error::EnhanceYourCalm);
    a_flood_of_empty_content_ends_the_connection: check_connection_fails(
        [headers_frame(1, 0, &[STATUS_200_FIELD]), frame(DATA, 0, 1, &[]).repeat(10_001)], ProtocolError::Flood, H2Error::EnhanceYourCalm);
    a_flood_of_unknown_frames_ends_the_connection:
        check_connection_fails([frame(0x77, 0, 1, &[]).repeat(10_001)], ProtocolError::Flood, H2Error::EnhanceYourCalm);
    a_flood_of_pieces_of_a_head_ends_the_connection: check_connection_fails(
        [frame(HEADERS, 0, 1, &[]), frame(CONTINUATION, 0, 1, &[]).repeat(1_024)],
        ProtocolError::HeadTooLarge, H2Error::EnhanceYourCalm);
    a_head_without_end_ends_the_connection: check_connection_fails(
        [frame(HEADERS, 0, 1, &[0; 16_384]), frame(CONTINUATION, 0, 1, &[0; 16_384]).repeat(4)],
        ProtocolError::HeadTooLarge, H2Error::EnhanceYourCalm);
    a_head_of_too_many_fields_ends_the_connection: check_connection_fails(
        [frame(HEADERS, END_STREAM_AND_HEADERS, 1, &[&[0x88][..], &[0x90; 2_000]].concat())],
        ProtocolError::HeadTooLarge, H2Error::EnhanceYourCalm);
}

/// Checks like [`check_connection_fails`] that the client ends the connection with `code`, but
/// after the first exchange got its response.
fn check_connection_fails_after_response(bytes: &[Vec<u8>], error: ProtocolError, code: H2Error) {
    let heard = decode_in_all_splits(&[server_preface_frames(), bytes.concat()].concat());
    let failed = Some(Failed(error.into()));
    assert_eq!(heard.outcomes, [Some(Answered(200, 0)), failed.clone(), failed]);
    assert_eq!(heard.goaway_code, Some(code as u32));
}

#[test]
fn heads_that_fill_the_hpack_table_are_decoded() {
    // The same header block, sent twice, adds two entries to the dynamic table. The third head
    // refers to the older of the two table entries.
    let fills = b"\x88\x40\x01a\x01b";
    let heads = [
        frame(HEADERS, END_STREAM_AND_HEADERS, 1, fills),
        frame(HEADERS, END_STREAM_AND_HEADERS, 3, fills),
        frame(HEADERS, END_STREAM_AND_HEADERS, 5, &[0x88, 0xbf]),
    ];
    let ok = Some(Answered(200, 0));
    assert_eq!(
        decode_in_all_splits(&[server_preface_frames(), heads.concat()].concat()).outcomes,
        [ok.clone(), ok.clone(), ok.clone()]
    );
    // The dynamic table works until the encoder sets its size to 0.
    let gives_up = [&[0x20, 0x88][..], &fills[1..]].concat();
    let heads = [
        frame(HEADERS, END_STREAM_AND_HEADERS, 1, fills),
        frame(HEADERS, END_STREAM_AND_HEADERS, 3, &gives_up),
        frame(HEADERS, END_STREAM_AND_HEADERS, 5, &[0x88, 0xbe]),
    ];
    let heard = decode_in_all_splits(&[server_preface_frames(), heads.concat()].concat());
    assert_eq!(heard.outcomes, [ok.clone(), ok, Some(Failed(ProtocolError::Compression.into()))]);
}

#[test]
fn responses_can_interleave_in_any_order() {
    let bytes = [
        headers_frame(5, 0, &[STATUS_200_FIELD]),
        headers_frame(1, 0, &[STATUS_200_FIELD]),
        frame(DATA, 0, 5, b"a"),
        ok_response_frame(3),
        frame(DATA, 0, 1, b"bc"),
    ];
    let ends = [frame(DATA, END_STREAM, 5, b"d"), frame(DATA, END_STREAM, 1, b"e")];
    let heard = decode_in_all_splits(&[server_preface_frames(), bytes.concat(), ends.concat()].concat());
    assert_eq!(heard.outcomes, [Some(Answered(200, 3)), Some(Answered(200, 0)), Some(Answered(200, 2))]);
}

#[test]
fn content_beyond_its_stated_length_fails_the_stream_at_once() {
    let head = headers_frame(1, 0, &[STATUS_200_FIELD, ("content-length", "4")]);
    let heard = decode_in_all_splits(
        &[server_preface_frames(), head, frame(DATA, 0, 1, b"hello"), ok_responses_on_streams_3_and_5()].concat(),
    );
    assert_eq!(heard.outcomes[0], Some(Failed(ProtocolError::WrongLength.into())));
    assert_eq!(heard.resets, [(1, PROTOCOL_ERROR as u32)]);
}

#[test]
fn content_in_a_head_response_fails_the_stream() {
    let heard = decode_in_all_splits(
        &[
            server_preface_frames(),
            headers_frame(3, 0, &[STATUS_200_FIELD]),
            frame(DATA, END_STREAM, 3, b"x"),
            ok_response_frame(1),
            ok_response_frame(5),
        ]
        .concat(),
    );
    assert_eq!(heard.outcomes[1], Some(Failed(ProtocolError::UnexpectedContent.into())));
    let fine = headers_frame(3, END_STREAM, &[STATUS_200_FIELD, ("content-length", "7")]);
    assert_eq!(
        decode_in_all_splits(&[server_preface_frames(), fine, ok_response_frame(1), ok_response_frame(5)].concat())
            .outcomes[1],
        Some(Answered(200, 0))
    );
}

#[test]
fn another_protocol_is_reported() {
    for bytes in ["HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9\r\n", "\0\0\0\x01\x05\0\0\0\x01rest"] {
        let heard = decode_in_all_splits(bytes.as_bytes());
        assert_eq!(heard.outcomes[0], Some(Failed(ProtocolError::NotHttp2.into())), "{bytes:?}");
    }
    let (mut conn, mut scratch, mut plain) = (Conn::h2(1), Vec::new(), Vec::new());
    let requests = h2_requests();
    assert!(conn.start(0, &requests[0]));
    let count = conn.bytes_to_send(|_| &requests[0], &mut scratch).len();
    assert!(conn.record_sent(count, &scratch));
    let mut received = conn.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut plain);
    let facts: Vec<ConnectionEvent> = std::iter::from_fn(|| conn.next(&mut received)).collect();
    let shown = |event: &ConnectionEvent| matches!(event, ConnectionEvent::Failed { piece, .. } if piece.bytes.starts_with(b"HTTP/1.1 400"));
    assert!(facts.iter().any(shown), "{facts:?}");
    assert!(conn.is_over());
}

#[test]
fn resets_fail_their_exchange_and_refused_streams_can_retry() {
    let reset = |code: u32| frame(RST_STREAM, 0, 1, &code.to_be_bytes());
    for (code, expect) in [
        (0, Failed(ExchangeError::StreamReset(H2Error::NoError))),
        (7, Refused),
        (8, Failed(ExchangeError::StreamReset(H2Error::Cancel))),
        (0x99, Failed(ExchangeError::StreamReset(H2Error::Unknown))),
    ] {
        let heard =
            decode_in_all_splits(&[server_preface_frames(), reset(code), ok_responses_on_streams_3_and_5()].concat());
        assert_eq!(heard.outcomes, [Some(expect), Some(Answered(200, 0)), Some(Answered(200, 0))]);
        assert_eq!(heard.goaway_code, None);
    }
}

#[test]
fn a_closing_server_answers_accepted_requests() {
    let leaves = |last: u32, code: u32| frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    let closed = |error: EarlyCloseError| Some(Failed(error.into()));
    for (name, bytes, expect) in [
        (
            "all",
            vec![leaves(5, 0), ok_response_frame(1), ok_responses_on_streams_3_and_5()],
            vec![Some(Answered(200, 0)); 3],
        ),
        (
            "some",
            vec![leaves(3, 0), ok_response_frame(3), ok_response_frame(1)],
            vec![Some(Answered(200, 0)), Some(Answered(200, 0)), Some(Refused)],
        ),
        ("none", vec![leaves(0, 0)], vec![Some(Refused); 3]),
        (
            "in two steps",
            vec![leaves(0x7fff_ffff, 0), ok_response_frame(1), leaves(1, 0)],
            vec![Some(Answered(200, 0)), Some(Refused), Some(Refused)],
        ),
        (
            "not what it promised",
            vec![leaves(1, 0)],
            vec![closed(EarlyCloseError::NothingReceived), Some(Refused), Some(Refused)],
        ),
        (
            "in anger",
            vec![leaves(1, 11)],
            vec![Some(Failed(ExchangeError::GoAway(H2Error::EnhanceYourCalm))), Some(Refused), Some(Refused)],
        ),
    ] {
        let heard = decode_in_all_splits(&[server_preface_frames(), bytes.concat()].concat());
        assert_eq!(heard.outcomes.to_vec(), expect, "{name}");
    }
}

#[test]
fn an_early_connection_end_is_reported() {
    let whole = [
        server_preface_frames(),
        ok_response_frame(1),
        headers_frame(3, 0, &[STATUS_200_FIELD]),
        headers_frame(5, 0, &[STATUS_200_FIELD]),
        frame(DATA, END_STREAM, 5, b"hello"),
    ]
    .concat();
    let nothing = Some(Failed(EarlyCloseError::NothingReceived.into()));
    let cut = Some(Failed(EarlyCloseError::Truncated.into()));
    assert_eq!(decode_in_all_splits(&whole[..whole.len() - 1]).outcomes, [Some(Answered(200, 0)), cut.clone(), cut]);
    assert_eq!(
        decode_in_all_splits(&server_preface_frames()).outcomes,
        [nothing.clone(), nothing.clone(), nothing.clone()]
    );
    assert_eq!(decode_in_all_splits(b"").outcomes, [nothing.clone(), nothing.clone(), nothing]);
}

#[test]
fn each_ping_and_settings_frame_is_acknowledged_once() {
    let requests = h2_requests();
    let (mut conn, mut scratch, mut plain) = (Conn::h2(3), Vec::new(), Vec::new());
    conn.start(0, &requests[0]);
    let count = conn.bytes_to_send(|_| &requests[0], &mut scratch).len();
    conn.record_sent(count, &scratch);
    let heard = [
        server_preface_frames(),
        frame(PING, 0, 0, b"question"),
        frame(PING, 1, 0, b"answered"),
        settings_frame(&[(3, 9)]),
    ]
    .concat();
    let mut received = conn.receive(&heard, &mut plain);
    while conn.next(&mut received).is_some() {}
    let count = conn.bytes_to_send(|_| &requests[0], &mut scratch).len();
    let acknowledged = (SETTINGS, 1, 0, vec![]);
    assert_eq!(
        parse_frames(&scratch[..count]),
        [acknowledged.clone(), (PING, 1, 0, b"question".to_vec()), acknowledged]
    );
}

#[test]
fn a_server_can_accept_content_in_small_pieces() {
    let body = vec![b'x'; 12_000];
    let asked = request("POST", &body, false);
    let (mut conn, mut plain) = (Conn::h2(1), Vec::new());
    conn.start(0, &asked);
    // The client learns the server's window of one byte before it sends any content.
    let first = settings_frame(&[(4, 1)]);
    let mut received = conn.receive(&first, &mut plain);
    while conn.next(&mut received).is_some() {}
    let mut sent = take_bytes_to_send(&mut conn, &asked);
    for _ in 1..body.len() {
        let more =
            [frame(WINDOW_UPDATE, 0, 1, &1u32.to_be_bytes()), frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes())].concat();
        let mut received = conn.receive(&more, &mut plain);
        while let Some(event) = conn.next(&mut received) {
            assert_eq!(event, ConnectionEvent::HasBytesToSend, "nothing is wrong with it");
        }
        sent.extend(take_bytes_to_send(&mut conn, &asked));
    }
    let data = parse_frames(&sent[CONNECTION_PREFACE.len()..]).into_iter().filter(|frame| frame.0 == DATA);
    assert_eq!(data.map(|frame| frame.3.len()).sum::<usize>(), body.len());
}

#[test]
fn request_content_respects_the_server_windows() {
    let body: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
    let asked = request("POST", &body, false);
    let (mut conn, mut scratch, mut plain) = (Conn::h2(2), Vec::new(), Vec::new());
    let drained = |conn: &mut Conn, scratch: &mut Vec<u8>| {
        let mut sent = Vec::new();
        loop {
            let bytes = conn.bytes_to_send(|_| &asked, scratch);
            if bytes.is_empty() {
                return sent;
            }
            let count = bytes.len().min(1_000);
            sent.extend_from_slice(&bytes[..count]);
            conn.record_sent(count, scratch);
        }
    };
    let content = |sent: &[u8]| {
        let data = parse_frames(sent).into_iter().filter(|frame| frame.0 == DATA);
        data.map(|(_, flags, stream, payload)| {
            assert!(payload.len() <= 16_384);
            (stream, payload.len(), flags & END_STREAM != 0)
        })
        .fold([(0, false); 2], |mut sums, (stream, bytes, ends)| {
            let sum = &mut sums[(stream / 2) as usize];
            *sum = (sum.0 + bytes, ends);
            sums
        })
    };
    conn.start(0, &asked);
    conn.start(1, &asked);
    let sent = drained(&mut conn, &mut scratch);
    let [first, second] = content(&sent[CONNECTION_PREFACE.len()..]);
    assert_eq!(first.0 + second.0, 65_535, "the window of the connection");
    assert!(first.0 > 16_384 && second.0 > 16_384, "each in turn: {first:?}, {second:?}");
    let window = |stream: u32, bytes: u32| frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    let mut told = |conn: &mut Conn, bytes: &[u8]| {
        let mut received = conn.receive(bytes, &mut plain);
        std::iter::from_fn(|| conn.next(&mut received)).any(|event| event == ConnectionEvent::HasBytesToSend)
    };
    // The server reduces its stream windows below the part that is already used, and enlarges the
    // connection's window. A later window update gives room to one stream only.
    assert!(
        told(&mut conn, &[settings_frame(&[(4, 1_000)]), window(0, 1_000_000)].concat()),
        "the settings are acknowledged"
    );
    assert_eq!(content(&drained(&mut conn, &mut scratch)), [(0, false); 2]);
    assert!(told(&mut conn, &window(1, 1_000_000)));
    assert_eq!(content(&drained(&mut conn, &mut scratch)), [(200_000 - first.0, true), (0, false)]);
    assert!(!told(&mut conn, &window(0, 1)), "nothing can be sent");
    assert!(told(&mut conn, &settings_frame(&[(4, 1_000_000)])));
    assert_eq!(content(&drained(&mut conn, &mut scratch)), [(0, false), (200_000 - second.0, true)]);
}

#[test]
fn an_early_response_ends_the_request() {
    let asked = request("POST", &[b'x'; 100_000], false);
    let (mut conn, mut scratch, mut plain) = (Conn::h2(1), Vec::new(), Vec::new());
    conn.start(7, &asked);
    take_bytes_to_send(&mut conn, &asked);
    let answer = [server_preface_frames(), headers_frame(1, END_STREAM, &[(":status", "413")])].concat();
    let mut received = conn.receive(&answer, &mut plain);
    let facts: Vec<ConnectionEvent> = std::iter::from_fn(|| conn.next(&mut received)).collect();
    assert!(
        matches!(
            facts[..],
            [ConnectionEvent::Answered { exchange: 7, status: 413, .. }, ConnectionEvent::HasBytesToSend]
        ),
        "{facts:?}"
    );
    let sent = parse_frames(conn.bytes_to_send(|_| &asked, &mut scratch));
    assert!(sent.contains(&(RST_STREAM, 0, 1, vec![0; 4])), "{sent:?}");
    assert!(conn.exchanges_available() == 1 && !conn.is_over());
}

#[test]
fn an_abandoned_exchange_is_reset_and_others_continue() {
    let requests = h2_requests();
    let (mut conn, mut scratch, mut plain) = (Conn::h2(3), Vec::new(), Vec::new());
    conn.start(0, &requests[0]);
    conn.start(1, &requests[0]);
    let count = conn.bytes_to_send(|_| &requests[0], &mut scratch).len();
    conn.record_sent(count, &scratch);
    conn.start(2, &requests[0]);
    // The request of exchange 0 was sent, and the request of exchange 2 was not.
    conn.cancel(0);
    conn.cancel(2);
    assert!(conn.wants_to_send() && conn.exchanges_available() == 2);
    let count = conn.bytes_to_send(|_| &requests[0], &mut scratch).len();
    assert_eq!(parse_frames(&scratch[..count]), [(RST_STREAM, 0, 1, vec![0, 0, 0, 8])]);
    assert!(conn.record_sent(count, &scratch));
    let late = [
        server_preface_frames(),
        headers_frame(1, 0, &[STATUS_200_FIELD]),
        frame(DATA, END_STREAM, 1, b"late"),
        ok_response_frame(3),
    ]
    .concat();
    let mut received = conn.receive(&late, &mut plain);
    let facts: Vec<ConnectionEvent> = std::iter::from_fn(|| conn.next(&mut received)).collect();
    assert!(
        matches!(facts[..], [ConnectionEvent::Answered { exchange: 1, .. }, ConnectionEvent::HasBytesToSend]),
        "{facts:?}"
    );
}

#[test]
fn response_fields_come_with_the_first_event_if_content_is_wanted() {
    let fields = |conn: &Conn| String::from_utf8(conn.fields().to_vec()).expect("text");
    let [plain_asked, asked] = [false, true].map(|content| request("GET", b"", content));
    let (mut conn, mut scratch, mut plain) = (Conn::h2(1), Vec::new(), Vec::new());
    let a = [STATUS_200_FIELD, ("x", "a"), ("set-cookie", "s=1")];
    let long = "b".repeat(2_000);
    let b = [STATUS_200_FIELD, ("x", &long)];
    // The cases contain equal heads in sequence, and a head that follows a head too long to be
    // stored.
    type FieldsCase<'a> = (&'a EncodedRequest, &'a [(&'a str, &'a str)], &'a str);
    let answers: [FieldsCase; 6] = [
        (&plain_asked, &a, ""),
        (&asked, &a, "x: a\r\nset-cookie: s=1\r\n"),
        (&asked, &a, "x: a\r\nset-cookie: s=1\r\n"),
        (&asked, &b, &format!("x: {long}\r\n")),
        (&asked, &a, "x: a\r\nset-cookie: s=1\r\n"),
        (&asked, &[STATUS_200_FIELD], ""),
    ];
    let mut bytes = server_preface_frames();
    for (number, (request, head_fields, expect)) in answers.iter().enumerate() {
        conn.start(number as u32, request);
        loop {
            let count = conn.bytes_to_send(|_| *request, &mut scratch).len();
            if count == 0 || conn.record_sent(count, &scratch) {
                break;
            }
        }
        bytes.extend(headers_frame(1 + 2 * number as u32, 0, &[(":status", "103"), ("x", "early")]));
        bytes.extend(headers_frame(1 + 2 * number as u32, 0, head_fields));
        bytes.extend(frame(DATA, END_STREAM, 1 + 2 * number as u32, b"content"));
        let mut received = conn.receive(&bytes, &mut plain);
        let first = loop {
            match conn.next(&mut received) {
                Some(ConnectionEvent::HasBytesToSend) => {}
                other => break other.is_some_and(|event| matches!(event, ConnectionEvent::Piece { .. })),
            }
        };
        assert!(first, "its head is its first event");
        assert_eq!(fields(&conn), *expect, "{number}");
        while conn.next(&mut received).is_some() {}
        bytes.clear();
    }
}

#[test]
fn the_stream_limit_of_the_server_is_respected() {
    let asked = request("GET", b"", false);
    let (mut conn, mut scratch, mut plain) = (Conn::h2(1_000), Vec::new(), Vec::new());
    assert_eq!(conn.exchanges_available(), 100, "what servers take as a rule, before this one has said");
    for (bytes, room) in
        [(settings_frame(&[(3, 7)]), 7), (settings_frame(&[]), 7), (settings_frame(&[(3, 5_000)]), 1_000)]
    {
        let mut received = conn.receive(&bytes, &mut plain);
        while conn.next(&mut received).is_some() {}
        assert_eq!(conn.exchanges_available(), room);
    }
    let none = settings_frame(&[(3, 0)]);
    let mut received = conn.receive(&none, &mut plain);
    while conn.next(&mut received).is_some() {}
    assert!(conn.exchanges_available() == 0 && !conn.is_over());
    // A server that does not announce a limit accepts any number of streams.
    let (mut conn, begun) = (Conn::h2(1_000), server_preface_frames());
    let mut received = conn.receive(&begun, &mut plain);
    while conn.next(&mut received).is_some() {}
    assert_eq!(conn.exchanges_available(), 1_000);
    // A request that is started while the caller takes events is sent with the bytes after the last
    // event.
    conn.start(0, &asked);
    let count = conn.bytes_to_send(|_| &asked, &mut scratch).len();
    assert!(conn.record_sent(count, &scratch));
    let answers = ok_response_frame(1);
    let mut received = conn.receive(&answers, &mut plain);
    assert!(matches!(conn.next(&mut received), Some(ConnectionEvent::Answered { .. })));
    assert!(!conn.start(1, &asked));
    assert_eq!(conn.next(&mut received), Some(ConnectionEvent::HasBytesToSend));
    assert!(conn.start(2, &asked) && conn.next(&mut received).is_none());
}

/// Returns the number of streams that the frames in `bytes` open, which is the number of HEADERS
/// frames.
fn opened_stream_count(bytes: &[u8]) -> usize {
    let mut rest = bytes.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap_or(bytes);
    let mut heads = 0;
    while let [a, b, c, kind, ..] = *rest {
        heads += usize::from(kind == HEADERS);
        rest = &rest[9 + usize::from(a) * 65_536 + usize::from(b) * 256 + usize::from(c)..];
    }
    heads
}

#[test]
fn a_lowered_stream_limit_applies_to_waiting_requests() {
    let asked = request("GET", b"", false);
    let (mut conn, mut scratch, mut plain) = (Conn::h2(4), Vec::new(), Vec::new());
    let send = |conn: &mut Conn, scratch: &mut Vec<u8>| {
        scratch.clear();
        let bytes = conn.bytes_to_send(|_| &asked, scratch).to_vec();
        assert!(conn.record_sent(bytes.len(), scratch));
        opened_stream_count(&bytes)
    };
    conn.start(0, &asked);
    conn.start(1, &asked);
    assert_eq!(send(&mut conn, &mut scratch), 2);
    // Two more exchanges start before the server's lower limit of streams arrives. After the client
    // has acknowledged the lower limit, it opens no streams for the two new exchanges.
    conn.start(2, &asked);
    conn.start(3, &asked);
    let lowered = [server_preface_frames(), settings_frame(&[(3, 2)])].concat();
    let mut received = conn.receive(&lowered, &mut plain);
    while conn.next(&mut received).is_some() {}
    assert_eq!(send(&mut conn, &mut scratch), 0);
    assert!(!conn.wants_to_send());
    for (answer, expect) in [
        (ok_response_frame(1), 1),
        (ok_response_frame(3), 1),
        ([ok_response_frame(5), ok_response_frame(7)].concat(), 0),
    ] {
        let mut received = conn.receive(&answer, &mut plain);
        while conn.next(&mut received).is_some() {}
        let sent = if conn.wants_to_send() { send(&mut conn, &mut scratch) } else { 0 };
        assert_eq!(sent, expect);
    }
}

/// Returns a connection with one exchange, whose response head has arrived but whose response has
/// not ended.
fn half_answered_conn(asked: &EncodedRequest) -> Conn {
    let (mut conn, mut scratch, mut plain) = (Conn::h2(1), Vec::new(), Vec::new());
    conn.start(0, asked);
    let count = conn.bytes_to_send(|_| asked, &mut scratch).len();
    conn.record_sent(count, &scratch);
    let first = [server_preface_frames(), headers_frame(1, 0, &[STATUS_200_FIELD])].concat();
    let mut received = conn.receive(&first, &mut plain);
    while conn.next(&mut received).is_some() {}
    conn
}

#[test]
fn an_empty_window_is_reported_once() {
    let asked = request("GET", b"", false);
    let (mut conn, mut scratch, mut plain) = (half_answered_conn(&asked), Vec::new(), Vec::new());
    let (piece, mut empty, frames_of_a_gib) = (frame(DATA, 0, 1, &[b'x'; 16_384]), 0, 1 << 16);
    for _ in 0..frames_of_a_gib {
        let mut received = conn.receive(&piece, &mut plain);
        while let Some(event) = conn.next(&mut received) {
            assert!(
                matches!(
                    event,
                    ConnectionEvent::Piece { .. }
                        | ConnectionEvent::HasBytesToSend
                        | ConnectionEvent::WindowNearlyEmpty
                ),
                "{event:?}"
            );
            empty += u32::from(event == ConnectionEvent::WindowNearlyEmpty);
        }
    }
    assert_eq!(empty, 1);
    let count = conn.bytes_to_send(|_| &asked, &mut scratch).len();
    let full = (1u32 << 30).to_be_bytes().to_vec();
    let told: Vec<_> = parse_frames(&scratch[..count]).into_iter().filter(|frame| frame.0 == WINDOW_UPDATE).collect();
    assert_eq!(told, [(WINDOW_UPDATE, 0, 0, full.clone()), (WINDOW_UPDATE, 0, 1, full)]);
    conn.record_sent(count, &scratch);
    let mut received = conn.receive(&piece, &mut plain);
    assert!(
        matches!(conn.next(&mut received), Some(ConnectionEvent::Piece { .. })) && conn.next(&mut received).is_none()
    );
}

#[test]
fn a_large_response_never_exhausts_the_window() {
    let asked = request("GET", b"", false);
    let (mut conn, mut scratch, mut plain) = (half_answered_conn(&asked), Vec::new(), Vec::new());
    let (piece, mut windows) = (frame(DATA, 0, 1, &[b'x'; 16_384]), [1i64 << 30; 2]);
    let (mut told, frames_of_3_gib) = (0u64, 3 << 16);
    for _ in 0..frames_of_3_gib {
        windows.iter_mut().for_each(|window| *window -= 16_384);
        let mut received = conn.receive(&piece, &mut plain);
        while let Some(event) = conn.next(&mut received) {
            match event {
                ConnectionEvent::Piece { piece, .. } => told += piece.bytes.len() as u64,
                ConnectionEvent::HasBytesToSend => {
                    let count = conn.bytes_to_send(|_| &asked, &mut scratch).len();
                    for (kind, _, stream, payload) in parse_frames(&scratch[..count]) {
                        if kind == WINDOW_UPDATE {
                            windows[(stream != 0) as usize] +=
                                i64::from(u32::from_be_bytes(payload.try_into().expect("four bytes")));
                        }
                    }
                    conn.record_sent(count, &scratch);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(windows.iter().all(|window| *window > 1 << 28), "{windows:?}");
    }
    assert_eq!(told, 3 << 30);
}

#[test]
fn an_h2_request_is_encoded_as_expected() {
    let given = [
        ("Host", "api.test"),
        ("Authorization", "Bearer x"),
        ("Connection", "keep-alive"),
        ("TE", "gzip"),
        ("X-Trace", " a "),
        ("user-agent", "me"),
    ];
    let asked = post_request("h:81", "/items?x=1", &given, b"n=1", true);
    let mut conn = Conn::h2(1);
    conn.start(0, &asked);
    let sent = parse_frames(&take_bytes_to_send(&mut conn, &asked)[CONNECTION_PREFACE.len()..]);
    let kinds: Vec<(u8, u8, u32)> = sent.iter().map(|frame| (frame.0, frame.1, frame.2)).collect();
    assert_eq!(kinds, [(SETTINGS, 0, 0), (WINDOW_UPDATE, 0, 0), (HEADERS, END_HEADERS, 1), (DATA, END_STREAM, 1)]);
    let mut fields = Vec::new();
    HpackDecoder::new(0)
        .decode(&sent[2].3, 1 << 16, |name, value| {
            fields.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        })
        .expect("a block");
    assert_eq!(
        fields,
        [
            ":method=POST",
            ":scheme=https",
            ":authority=api.test",
            ":path=/items?x=1",
            "accept=*/*",
            "authorization=Bearer x",
            "x-trace=a",
            "user-agent=me",
            "content-length=3"
        ]
    );
    assert_eq!(sent[3].3, b"n=1");
}

#[test]
fn client_and_server_understand_each_other() {
    let requests = [request("GET", b"", false), request("HEAD", b"", false), request("POST", &[b'x'; 200_000], false)];
    let mut random = Random(crate::seed());
    for round in 0..20 {
        let (mut conn, mut server) = (Conn::h2(7), H2Server::new());
        let (mut scratch, mut plain, mut out) = (Vec::new(), Vec::new(), Vec::new());
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let (mut asked, mut answered, mut heads, mut begun) = (0u32, 0, Vec::new(), false);
        for _ in 0..100_000 {
            while conn.exchanges_available() > 0 && asked < 60 {
                conn.start(asked, &requests[asked as usize % 3]);
                asked += 1;
            }
            loop {
                let bytes = conn.bytes_to_send(|number| &requests[number as usize % 3], &mut scratch);
                let count = bytes.len().min(1 + random.below(60_000));
                to_server.extend_from_slice(&bytes[..count]);
                if count == 0 {
                    break;
                }
                conn.record_sent(count, &scratch);
            }
            if !begun && to_server.len() >= CONNECTION_PREFACE.len() {
                begun = true;
                assert_eq!(to_server.drain(..CONNECTION_PREFACE.len()).collect::<Vec<u8>>(), CONNECTION_PREFACE);
            }
            let count = if begun { to_server.len().min(1 + random.below(30_000)) } else { 0 };
            let mut piece = &to_server[..count];
            while let Some(event) = server.next(&mut piece) {
                let stream = match event {
                    ServerEvent::Head { stream, ends } => {
                        heads.push((stream, server.method() == b"HEAD"));
                        assert_eq!(server.path(), b"/");
                        if !ends {
                            continue;
                        }
                        stream
                    }
                    ServerEvent::End { stream } => stream,
                    other => panic!("{other:?}"),
                };
                let at = heads.iter().position(|head| head.0 == stream).expect("a head came before");
                let content =
                    if round % 2 == 0 { Content::Bytes(b"hello".to_vec()) } else { Content::Filling(300_000) };
                server.answer(stream, 200, "text/plain", content, heads.swap_remove(at).1);
            }
            to_server.drain(..count);
            server.write(&mut out, 1 + random.below(1 << 16), &[b'x'; 20_000]);
            to_client.append(&mut out);
            let count = to_client.len().min(1 + random.below(60_000));
            let piece: Vec<u8> = to_client.drain(..count).collect();
            let mut received = conn.receive(&piece, &mut plain);
            while let Some(event) = conn.next(&mut received) {
                match event {
                    ConnectionEvent::Piece { .. } | ConnectionEvent::HasBytesToSend => {}
                    ConnectionEvent::Answered { exchange, status: 200, body_bytes, .. } => {
                        let whole = if round % 2 == 0 { 5 } else { 300_000 };
                        assert_eq!(body_bytes, if exchange % 3 == 1 { 0 } else { whole });
                        answered += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            if answered == 60 {
                break;
            }
        }
        assert_eq!(answered, 60, "round {round}");
    }
}
