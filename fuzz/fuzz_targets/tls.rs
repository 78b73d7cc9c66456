//! Fuzzes the client's side of TLS: any bytes from a server give a reason or wait for more, and
//! never a request's way free.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_model::TlsSpec;
use plimsoll_wire::tls::Client;
use std::sync::OnceLock;

fuzz_target!(|data: &[u8]| {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    let spec = || TlsSpec { server_name: "api.test".into(), verify: false, ..TlsSpec::default() };
    let client = CLIENT.get_or_init(|| Client::new(&spec()).expect("a client"));
    let mut session = client.session().expect("a session");
    let mut plain = Vec::new();
    // Without the key exchange's answer nothing can be established, nor any text come out.
    let _ = session.receive(data, &mut plain);
    assert!(plain.is_empty() && !session.is_established());
});
