//! Properties over generated replies: the answer the generator expects, in any split; the same
//! status and framing as httparse sees; no panic and no difference between splits for arbitrary
//! bytes; and requests that httparse reads back as they were meant.

use crate::driver::{Outcome, Random, outcome, same_in_all_splits};
use plimsoll_wire::h1::{Reply, RequestParts, ResponseParser, encode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 1_000,
        rng_seed: RngSeed::Fixed(crate::seed()),
        failure_persistence: None,
        ..Default::default()
    }
}

/// A valid reply, taken apart.
#[derive(Clone, Debug)]
struct Spec {
    blanks: usize,
    interims: Vec<u16>,
    is_1_1: bool,
    status: u16,
    reason: Option<String>,
    framing: Framing,
    connection: Vec<String>,
    others: Vec<(String, String)>,
    /// Turns the case of letters in names and line ends in the head, bit by bit.
    whims: u64,
    head_request: bool,
    after: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Framing {
    UntilClose { body: Vec<u8>, coding: Option<&'static str> },
    Length { body: Vec<u8>, repeats: usize },
    Chunked { chunks: Vec<(Vec<u8>, String)>, trailers: Vec<(String, String)>, coding: &'static str, with_length: bool },
}

prop_compose! {
    fn field()(name in "X-[!#-'*+.^_`|~0-9A-Za-z-]{0,20}", value in "([!-~é][ -~é\t]{0,40})?") -> (String, String) {
        (name, value)
    }
}

fn framing() -> impl Strategy<Value = Framing> {
    let body = || vec(any::<u8>(), 0..200);
    let chunk = (vec(any::<u8>(), 1..60), "([ \t]?;[ -~]{0,10})?");
    prop_oneof![
        (body(), select(vec![None, Some("gzip"), Some("chunked, gzip")]))
            .prop_map(|(body, coding)| Framing::UntilClose { body, coding }),
        (body(), 1..4usize).prop_map(|(body, repeats)| Framing::Length { body, repeats }),
        (vec(chunk, 0..5), vec(field(), 0..3), select(vec!["chunked", "gzip, chunked", "CHUNKED"]), any::<bool>())
            .prop_map(|(chunks, trailers, coding, with_length)| Framing::Chunked {
                chunks,
                trailers,
                coding,
                with_length
            }),
    ]
}

prop_compose! {
    fn spec()(
        blanks in 0..=2usize,
        interims in vec(prop_oneof![Just(100), 102..200u16], 0..3),
        is_1_1 in prop::bool::weighted(0.8),
        status in prop_oneof![Just(200), Just(204), Just(304), 200..1000u16],
        reason in prop::option::of("[ -~\t]{0,20}"),
        framing in framing(),
        connection in vec(select(vec!["close", "Close", "keep-alive", "Keep-Alive", "Upgrade", ""]).prop_map(String::from), 0..3),
        others in vec(field(), 0..8),
        whims in any::<u64>(),
        head_request in prop::bool::weighted(0.1),
        after in vec(any::<u8>(), 0..20),
    ) -> Spec {
        Spec { blanks, interims, is_1_1, status, reason, framing, connection, others, whims, head_request, after }
    }
}

impl Spec {
    fn is_without_body(&self) -> bool {
        self.head_request || matches!(self.status, 204 | 304)
    }

    fn body_bytes(&self) -> usize {
        match &self.framing {
            _ if self.is_without_body() => 0,
            Framing::UntilClose { body, .. } | Framing::Length { body, .. } => body.len(),
            Framing::Chunked { chunks, .. } => chunks.iter().map(|(data, _)| data.len()).sum(),
        }
    }

    /// The head of the reply, without blank lines and interim replies before it.
    fn head(&self) -> Vec<u8> {
        let mut fields = self.others.clone();
        let mut framing = |name: &str, value: String| {
            // Somewhere among the others, different ones in different places.
            let at = (self.whims as usize / (fields.len() + 1)) % (fields.len() + 1);
            fields.insert(at, (name.to_owned(), value));
        };
        match &self.framing {
            Framing::UntilClose { coding, .. } => {
                if let Some(coding) = coding {
                    framing("Transfer-Encoding", (*coding).to_owned());
                }
            }
            Framing::Length { body, repeats } => {
                let length = body.len().to_string();
                framing("Content-Length", vec![length.clone(); *repeats].join(", "));
                if *repeats == 2 {
                    framing("Content-Length", length);
                }
            }
            Framing::Chunked { coding, with_length, .. } => {
                framing("Transfer-Encoding", (*coding).to_owned());
                if *with_length {
                    framing("Content-Length", "12".to_owned());
                }
            }
        }
        for (at, option) in self.connection.iter().enumerate() {
            framing("Connection", if at == 0 { option.clone() } else { format!("x,\t{option} ,") });
        }

        let mut whims = Random(self.whims);
        let mut head = format!("HTTP/1.{} {}", u8::from(self.is_1_1), self.status);
        if let Some(reason) = &self.reason {
            head += &format!(" {reason}");
        }
        for (name, value) in fields {
            head += if whims.below(4) == 0 { "\n" } else { "\r\n" };
            let name = match whims.below(3) {
                0 => name.to_lowercase(),
                1 => name.to_uppercase(),
                _ => name,
            };
            head += &format!("{name}:{}{value}", [" ", "", "\t "][whims.below(3)]);
        }
        (head + "\r\n\r\n").into_bytes()
    }

    fn body(&self) -> Vec<u8> {
        if self.is_without_body() {
            return Vec::new();
        }
        match &self.framing {
            Framing::UntilClose { body, .. } | Framing::Length { body, .. } => body.clone(),
            Framing::Chunked { chunks, trailers, .. } => {
                let mut bytes = Vec::new();
                for (data, extension) in chunks {
                    bytes.extend(format!("{:x}{extension}\r\n", data.len()).bytes());
                    bytes.extend(data);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n");
                for (name, value) in trailers {
                    bytes.extend(format!("{name}: {value}\r\n").bytes());
                }
                bytes.extend(b"\r\n");
                bytes
            }
        }
    }

    /// All bytes, and what is to come of them.
    fn encode(&self) -> (Vec<u8>, Outcome) {
        let mut bytes = b"\r\n".repeat(self.blanks);
        for status in &self.interims {
            bytes.extend(format!("HTTP/1.1 {status} X\r\nContent-Length: 3\r\n\r\n").bytes());
        }
        bytes.extend(self.head());
        bytes.extend(self.body());
        let taken = bytes.len();

        let until_close = matches!(self.framing, Framing::UntilClose { .. }) && !self.is_without_body();
        let suspicious = match self.framing {
            Framing::UntilClose { coding, .. } => coding.is_some() && !self.is_1_1,
            Framing::Length { .. } => false,
            Framing::Chunked { with_length, .. } => with_length || !self.is_1_1,
        };
        let says = |what: &str| self.connection.iter().any(|option| option.eq_ignore_ascii_case(what));
        let keep_alive = !until_close && !suspicious && !says("close") && (self.is_1_1 || says("keep-alive"));
        let reply = Reply { status: self.status, keep_alive, body_bytes: self.body_bytes() as u64 };
        if until_close {
            return (bytes, Outcome::ReplyAtClose(reply));
        }
        bytes.extend(&self.after);
        (bytes, Outcome::Reply(reply, taken))
    }
}

/// Framing as httparse's reading of the head has it: (status, chunked, length).
fn framing_by_httparse(head: &[u8]) -> (u16, bool, Option<u64>) {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(head).expect("httparse accepts the head");
    assert_eq!(parsed, httparse::Status::Complete(head.len()), "httparse sees the same end of the head");
    let values = |name: &str| {
        let named = response.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| String::from_utf8_lossy(header.value).into_owned()).collect::<Vec<_>>().join(",")
    };
    let coding = values("transfer-encoding").to_lowercase();
    let length = values("content-length");
    let length = length.split(',').next().and_then(|length| length.trim().parse().ok());
    (response.code.expect("there is a status"), coding.trim().ends_with("chunked"), length)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_valid_reply_is_read_as_it_was_meant(spec in spec(), cuts in vec(any::<Index>(), 0..8), seed in any::<u64>()) {
        let (bytes, expect) = spec.encode();
        let mut parser = ResponseParser::new();
        prop_assert_eq!(
            same_in_all_splits(&mut parser, spec.head_request, &bytes, &mut Random(seed)),
            Ok(expect), "{}", bytes.escape_ascii()
        );
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(outcome(&mut parser, spec.head_request, pieces), Ok(expect), "cut at {:?}", &cuts);
    }

    #[test]
    fn a_valid_reply_cut_short_is_no_reply(spec in spec(), cut in any::<Index>(), seed in any::<u64>()) {
        let (bytes, expect) = spec.encode();
        if let Outcome::Reply(_, taken) = expect {
            let short = &bytes[..cut.index(taken)];
            let found = same_in_all_splits(&mut ResponseParser::new(), spec.head_request, short, &mut Random(seed));
            prop_assert!(matches!(found, Ok(Outcome::Cut(_))), "{:?}: {}", found, short.escape_ascii());
        }
    }

    #[test]
    fn httparse_sees_the_same_status_and_framing(spec in spec()) {
        let head = spec.head();
        let (status, chunked, length) = framing_by_httparse(&head);
        let mut parser = ResponseParser::new();
        // By the body's end: of a body of zeros and line ends, each framing takes a different part.
        let body = b"0\r\n\r\n".repeat(64);
        let found = outcome(&mut parser, false, [&head[..], &body[..]]).expect("the parser keeps its word");
        let expect = match (chunked, length) {
            _ if matches!(status, 204 | 304) => Some((head.len(), 0)),
            (true, _) => Some((head.len() + 5, 0)),
            (false, Some(length)) => Some((head.len() + length as usize, length)),
            (false, None) => None,
        };
        match (found, expect) {
            (Outcome::Reply(reply, taken), Some(expect)) => {
                prop_assert_eq!((reply.status, taken, reply.body_bytes), (status, expect.0, expect.1));
            }
            (Outcome::ReplyAtClose(reply), None) => {
                prop_assert_eq!((reply.status, reply.body_bytes), (status, body.len() as u64));
            }
            _ => prop_assert!(false, "{:?}, but by httparse: {:?}", found, expect),
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        start in select(vec!["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]),
        bytes in vec(any::<u8>(), 0..300),
        head_request in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let bytes = [start.as_bytes(), &bytes].concat();
        let found = same_in_all_splits(&mut ResponseParser::new(), head_request, &bytes, &mut Random(seed));
        prop_assert!(found.is_ok(), "{:?}", found);
    }

    #[test]
    fn a_request_is_read_back_as_it_was_meant(
        method in "[A-Z]{1,10}", target in "/[!-~]{0,30}", host in "[a-z0-9.:-]{1,20}",
        given in vec(field(), 0..6), body in vec(any::<u8>(), 0..50), keep_alive in any::<bool>(),
    ) {
        prop_assume!(method != "CONNECT");
        let parts = RequestParts { method: &method, target: &target, host: &host, headers: &given, body: &body, keep_alive };
        let bytes = encode(&parts).expect("the request is valid");
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        let end = request.parse(&bytes).expect("httparse accepts the request").unwrap();
        prop_assert_eq!(request.method, Some(&*method));
        prop_assert_eq!(request.path, Some(&*target));
        prop_assert_eq!(&bytes[end..], &body[..]);
        let fields: Vec<(String, String)> = request.headers.iter()
            .map(|h| (h.name.to_owned(), String::from_utf8(h.value.to_vec()).expect("the values are text"))).collect();
        prop_assert_eq!(&fields[0], &("Host".to_owned(), host.clone()));
        for (name, value) in &given {
            let meant = (name.clone(), value.trim_matches([' ', '\t']).to_owned());
            prop_assert!(fields.contains(&meant), "{:?}", meant);
        }
        let length = fields.iter().find(|(name, _)| name == "Content-Length").map(|(_, value)| value.clone());
        let needs_length = !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&&*method);
        prop_assert_eq!(length, needs_length.then(|| body.len().to_string()));
        prop_assert_eq!(fields.iter().any(|(name, _)| name == "Connection"), !keep_alive);
    }
}
