//! Coverage-guided fuzzing of the client's side of TLS. Any bytes from a server lead to a failure
//! or to a wait for more bytes, and never to an open connection.

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
    // Without a valid key exchange no session can be established, and no plain text can appear.
    let _ = session.receive(data, &mut plain);
    assert!(plain.is_empty() && !session.is_established());
});
