//! Tests of TLS between a client and a server in memory. Any split of the bytes gives the same
//! plain text. Any damage to the bytes gives an error with a reason, and no panic.

use plimsoll_model::rng::Rng;
use plimsoll_model::{TlsFailure, TlsSpec};
use plimsoll_wire::tls::{Client, ConfigError, ServerTls, Session, certificates};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

pub struct TlsTestServer {
    certificate: Vec<u8>,
    pub config: Arc<ServerConfig>,
}

pub fn tls_test_server() -> &'static TlsTestServer {
    static WORLD: OnceLock<TlsTestServer> = OnceLock::new();
    WORLD.get_or_init(|| {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(vec!["api.test".into()]).expect("a name");
        let certificate = parameters.self_signed(&key).expect("signed").der().to_vec();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let mut config =
            builder.with_single_cert(vec![CertificateDer::from(certificate.clone())], key).expect("a pair");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsTestServer { certificate, config: Arc::new(config) }
    })
}

pub fn tls_client_spec() -> TlsSpec {
    TlsSpec { server_name: "api.test".into(), roots: vec![tls_test_server().certificate.clone()], ..TlsSpec::default() }
}

/// A function that splits or damages the bytes sent in one direction.
type Wire<'a> = &'a mut dyn FnMut(Vec<u8>) -> Vec<Vec<u8>>;

/// Sends a question from the client and an answer from the server. `wire` splits or damages the
/// server's bytes. Returns the text that the client received, and the client's TLS session.
fn exchange_over_tls(
    client: &Client,
    question: &[u8],
    answer: &[u8],
    wire: Wire,
) -> Result<(Vec<u8>, Session), TlsFailure> {
    let mut session = client.session()?;
    let mut server = ServerConnection::new(Arc::clone(&tls_test_server().config)).expect("a server");
    let (mut heard, mut plain, mut asked) = (Vec::new(), Vec::new(), 0);
    // A TLS handshake takes four flights of messages. The remaining rounds of the loop send the
    // question, in pieces if the question is long.
    for _ in 0..200 {
        let mut out = Vec::new();
        if session.is_established() && asked < question.len() {
            let piece = &question[asked..question.len().min(asked + (64 << 10))];
            assert!(session.append_encrypted(piece, &mut out));
            asked += piece.len();
        }
        session.take_bytes_to_send(&mut out);
        let mut from = &out[..];
        while !from.is_empty() {
            server.read_tls(&mut from).expect("memory");
            // The kind of an error on the server side does not matter, so every error of the server
            // becomes `TlsFailure::Other`.
            if server.process_new_packets().is_err() {
                return Err(TlsFailure::Other);
            }
            let mut bytes = vec![0; 1 << 16];
            while let Ok(count @ 1..) = server.reader().read(&mut bytes) {
                heard.extend_from_slice(&bytes[..count]);
            }
        }
        if heard.len() == question.len() && !heard.is_empty() {
            assert_eq!(heard, question);
            heard.push(0);
            server.set_buffer_limit(None);
            server.writer().write_all(answer).expect("memory");
            server.send_close_notify();
        }
        let mut back = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut back).expect("memory");
        }
        for piece in wire(back) {
            if session.receive(&piece, &mut plain)?.is_stream_ended {
                return Ok((plain, session));
            }
        }
    }
    Err(TlsFailure::Closed)
}

fn bytes_in_one_piece(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    vec![bytes]
}

#[test]
fn tls_text_is_equal_in_any_split() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    let question = vec![b'q'; 200_000];
    let answer: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    for size in [1, 2, 3, 5, 7, 64, 1000, 4096, 16_389, 1 << 20] {
        let (text, session) = exchange_over_tls(&client, &question, &answer, &mut |bytes| {
            bytes.chunks(size).map(<[u8]>::to_vec).collect()
        })
        .unwrap_or_else(|reason| panic!("pieces of {size}: {reason:?}"));
        assert!(text == answer, "pieces of {size}");
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
    let seed = crate::seed();
    let mut rng = Rng::new(seed);
    for _ in 0..20 {
        let (text, _) = exchange_over_tls(&client, b"q", &answer[..5_000], &mut |mut bytes| {
            let mut pieces = Vec::new();
            while !bytes.is_empty() {
                let rest = bytes.split_off((1 + rng.uniform_below(400) as usize).min(bytes.len()));
                pieces.push(std::mem::replace(&mut bytes, rest));
            }
            pieces
        })
        .expect("a talk");
        assert!(text == answer[..5_000]);
    }
}

#[test]
fn damaged_tls_records_fail_with_a_reason() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    let mut rng = Rng::new(crate::seed());
    let answer = vec![b'a'; 3_000];
    let (mut damaged, mut failed) = (0, 0);
    for _ in 0..300 {
        let (flight, at, bit) = (rng.uniform_below(4), rng.uniform_below(4_000) as usize, 1u8 << rng.uniform_below(8));
        let mut number = 0;
        let talked = exchange_over_tls(&client, b"q", &answer, &mut |mut bytes| {
            if number == flight && !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] ^= bit;
                damaged += 1;
            }
            number += u64::from(!bytes.is_empty());
            vec![bytes]
        });
        match talked {
            Ok((text, _)) => assert!(text == answer, "damaged text passed"),
            Err(_) => failed += 1,
        }
    }
    assert!(damaged >= 75 && failed > damaged / 2, "{failed} of {damaged} failed");
}

#[test]
fn a_session_continues_after_the_server_has_renewed_its_keys() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    let mut session = client.session().expect("a session");
    let mut server = ServerConnection::new(Arc::clone(&tls_test_server().config)).expect("a server");
    let (mut heard, mut plain) = (Vec::new(), Vec::new());
    for round in 0..8 {
        let mut out = Vec::new();
        if session.is_established() {
            assert!(session.append_encrypted(b"question", &mut out));
        } else {
            session.take_bytes_to_send(&mut out);
        }
        let mut from = &out[..];
        while !from.is_empty() {
            server.read_tls(&mut from).expect("memory");
            server.process_new_packets().expect("the client's records are valid");
        }
        let mut bytes = [0; 1 << 10];
        if let Ok(count @ 1..) = server.reader().read(&mut bytes) {
            heard.extend_from_slice(&bytes[..count]);
            // A renewal asks the client to renew its keys, too.
            server.refresh_traffic_keys().expect("TLS 1.3");
            server.writer().write_all(b"answer").expect("memory");
        }
        let mut back = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut back).expect("memory");
        }
        session.receive(&back, &mut plain).expect("the server's records are valid");
        assert_eq!(heard.len() / b"question".len(), plain.len() / b"answer".len(), "round {round}");
    }
    assert!(heard.starts_with(&b"question".repeat(5)) && plain.starts_with(&b"answer".repeat(5)));
}

#[test]
fn any_tls_server_bytes_fail_with_a_reason() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    let mut rng = Rng::new(crate::seed());
    for (bytes, reason) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], TlsFailure::NotTls),
        (b"SSH-2.0-OpenSSH_9.2\r\n", TlsFailure::NotTls),
        (&[21, 3, 3, 0, 2, 2, 40], TlsFailure::NothingInCommon),
        (&[21, 3, 3, 0, 2, 2, 116], TlsFailure::ClientCertificate),
        (&[21, 3, 3, 0, 2, 2, 80], TlsFailure::Alert),
    ] {
        let mut session = client.session().expect("a session");
        assert_eq!(session.receive(bytes, &mut Vec::new()), Err(reason), "{bytes:?}");
        // Further calls on a failed TLS session must not panic.
        let _ = session.receive(bytes, &mut Vec::new());
        session.take_bytes_to_send(&mut Vec::new());
    }
    for _ in 0..2_000 {
        let mut session = client.session().expect("a session");
        let mut bytes: Vec<u8> = (0..rng.uniform_below(100)).map(|_| rng.next_u64() as u8).collect();
        // Most inputs begin like a TLS record.
        if bytes.len() > 5 && rng.uniform_below(4) > 0 {
            let rest = (bytes.len() - 5) as u8;
            bytes[..5].copy_from_slice(&[20 + rng.uniform_below(5) as u8, 3, 3, 0, rest]);
        }
        let mut plain = Vec::new();
        let _ = session.receive(&bytes, &mut plain);
        assert!(plain.is_empty() && !session.is_established());
    }
}

#[test]
fn a_failed_tls_session_sends_only_its_alert() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    for (name, bytes) in [
        ("a handshake message that is too long", &[22, 3, 3, 0, 4, 2, 1, 0, 0][..]),
        ("several invalid messages in one record", &[22, 3, 3, 0, 12, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]),
        ("an alert within a handshake message", &[22, 3, 3, 0, 1, 2, 21, 3, 3, 0, 2, 1, 0]),
        ("no TLS", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ] {
        let mut session = client.session().expect("a session");
        let mut out = Vec::new();
        session.take_bytes_to_send(&mut out);
        let failure = session.receive(bytes, &mut Vec::new()).expect_err(name);
        let mut sent = b"question".to_vec();
        assert!(!session.encrypt(&mut sent), "{name}");
        // An alert is a record of 2 bytes with a header of 5 bytes.
        assert!(sent.is_empty() || (sent.len() == 7 && sent[0] == 21), "{name}: {sent:?}");
        session.queue_close_notify();
        sent.clear();
        assert!(!session.append_encrypted(b"question", &mut sent) && sent.is_empty(), "{name}: {sent:?}");
        assert_eq!(session.receive(bytes, &mut Vec::new()), Err(failure), "{name}");
    }
}

#[test]
fn an_endless_handshake_message_ends_the_session() {
    let client = Client::new(&tls_client_spec()).expect("a client");
    let mut session = client.session().expect("a session");
    // The message has 65 535 bytes, in records of one byte.
    let message = [2, 0, 0xff, 0xff].into_iter().chain(std::iter::repeat(0));
    let received =
        message.take(40_000).try_for_each(|byte| session.receive(&[22, 3, 3, 0, 1, byte], &mut Vec::new()).map(|_| ()));
    assert_eq!(received, Err(TlsFailure::Other));
}

#[test]
fn tls_sessions_resume_only_on_request() {
    for (resume, expect) in [(true, [false, true, true]), (false, [false; 3])] {
        let client = Client::new(&TlsSpec { resume, ..tls_client_spec() }).expect("a client");
        let resumed = [0; 3]
            .map(|_| exchange_over_tls(&client, b"q", b"a", &mut bytes_in_one_piece).expect("a talk").1.is_resumed());
        assert_eq!(resumed, expect);
        // The client that `for_thread` makes for another thread begins without stored TLS sessions,
        // so its first handshake resumes no session.
        assert!(
            !exchange_over_tls(&client.for_thread(), b"q", b"a", &mut bytes_in_one_piece)
                .expect("a talk")
                .1
                .is_resumed()
        );
    }
}

#[test]
fn certificates_are_verified_before_anything_is_sent() {
    let name = |name: &str| TlsSpec { server_name: name.into(), ..tls_client_spec() };
    let other = TlsSpec { verify: false, ..name("other.test") };
    for (spec, expect) in [
        (tls_client_spec(), None),
        (other, None),
        (name("other.test"), Some(TlsFailure::WrongName)),
        (name("127.0.0.1"), Some(TlsFailure::WrongName)),
        (TlsSpec { alpn: vec!["nonsense".into()], ..tls_client_spec() }, Some(TlsFailure::NothingInCommon)),
    ] {
        let talked = exchange_over_tls(&Client::new(&spec).expect("a client"), b"q", b"a", &mut bytes_in_one_piece);
        match expect {
            None => assert!(talked.is_ok(), "{}", spec.server_name),
            // The server runs in the test's process, so the server's own protocol error
            // (`TlsFailure::Other`) may come before the client's error.
            Some(expect) => {
                let got = talked.err();
                assert!(got == Some(expect) || got == Some(TlsFailure::Other), "{}: {got:?}", spec.server_name);
            }
        }
    }
    for (spec, expect) in [
        (name("not a name"), ConfigError::ServerName("not a name".into())),
        (TlsSpec { roots: vec![], ..tls_client_spec() }, ConfigError::NoRoots),
        (TlsSpec { roots: vec![vec![1, 2, 3]], ..tls_client_spec() }, ConfigError::Roots),
        (TlsSpec { certificate_pem: Some(b"no PEM".to_vec()), ..tls_client_spec() }, ConfigError::Certificate),
    ] {
        assert_eq!(Client::new(&spec).expect_err("refused"), expect);
    }
    assert_eq!(certificates(b""), None);
    assert_eq!(certificates(b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"), None);
}

#[test]
fn own_tls_client_and_server_agree_in_any_split() {
    let key = KeyPair::generate().expect("a key");
    let parameters = CertificateParams::new(vec!["api.test".into()]).expect("a name");
    let certificate = parameters.self_signed(&key).expect("signed").pem();
    // The server `one` reads its certificate and key from one file, and the server `two` reads its
    // certificate and key from two files.
    let both = format!("{certificate}{}", key.serialize_pem());
    let one = ServerTls::new(both.as_bytes(), None).expect("a server");
    let two = ServerTls::new(certificate.as_bytes(), Some(key.serialize_pem().as_bytes())).expect("a server");
    let roots = certificates(certificate.as_bytes()).expect("a certificate");
    for (server, offered, agreed) in
        [(&one, &["h2", "http/1.1"][..], Some(&b"h2"[..])), (&two, &["http/1.1"], Some(b"http/1.1")), (&two, &[], None)]
    {
        let alpn = offered.iter().map(|name| (*name).to_owned()).collect();
        let client = Client::new(&TlsSpec { alpn, roots: roots.clone(), ..tls_client_spec() }).expect("a client");
        let mut resumed = Vec::new();
        for piece_bytes in [1, 7, 1 << 16] {
            let (mut session, mut served) = (client.session().expect("begins"), server.session().expect("begins"));
            let (mut heard, mut asked, mut ended) = (Vec::new(), Vec::new(), false);
            let (mut is_asked, mut is_answered) = (false, false);
            for _ in 0..8 {
                let mut bytes = Vec::new();
                if session.is_established() && !std::mem::replace(&mut is_asked, true) {
                    assert!(session.append_encrypted(b"question", &mut bytes));
                }
                session.take_bytes_to_send(&mut bytes);
                bytes.chunks(piece_bytes).for_each(|piece| _ = served.receive(piece, &mut asked).expect("is taken"));
                bytes.clear();
                if asked == b"question" && !std::mem::replace(&mut is_answered, true) {
                    // The client must decrypt the records of both `encrypt` and `append_encrypted`,
                    // even if a plain text fills several records.
                    bytes.resize(60_000, b'x');
                    assert!(served.encrypt(&mut bytes));
                    assert!(served.append_encrypted(&vec![b'x'; 40_000], &mut bytes));
                    served.queue_close_notify();
                }
                served.take_bytes_to_send(&mut bytes);
                for piece in bytes.chunks(piece_bytes) {
                    ended |= session.receive(piece, &mut heard).expect("is taken").is_stream_ended;
                }
            }
            assert_eq!((heard.len(), ended), (100_000, true), "{offered:?} in pieces of {piece_bytes}");
            assert_eq!((session.alpn_protocol(), served.alpn_protocol()), (agreed, agreed));
            resumed.push(session.is_resumed());
        }
        assert_eq!(resumed, [false, true, true]);
    }
}

#[test]
fn a_server_needs_a_certificate_and_its_key() {
    let key = KeyPair::generate().expect("a key").serialize_pem();
    let other = KeyPair::generate().expect("a key");
    let pem = CertificateParams::new(vec!["x".into()]).expect("a name").self_signed(&other).expect("signed").pem();
    let error = |certificate: &str, key: Option<&str>| {
        ServerTls::new(certificate.as_bytes(), key.map(str::as_bytes)).expect_err("no server")
    };
    assert_eq!(error("", None), ConfigError::Certificate);
    assert_eq!(error(&pem, None), ConfigError::Key);
    assert!(matches!(error(&pem, Some(&key)), ConfigError::Pair(_)));
}
