//! Reads the negotiated TLS parameters of a connection, with the names that OpenSSL uses.
//!
//! Not here: verifying a certificate (`trust`).

use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use rustls::{CipherSuite, CommonState, NamedGroup, ProtocolVersion};

/// The negotiated parameters of a TLS connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsParameters {
    /// The protocol version, such as `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, such as `TLS_AES_256_GCM_SHA384` or `ECDHE-RSA-AES128-GCM-SHA256`.
    pub cipher: String,
    /// The length of the encryption key in bits.
    pub cipher_bits: u32,
    /// The length in bits of the public key in the server's certificate; 0 if plimsoll does not
    /// know the kind of key.
    pub key_bits: u32,
    /// The key exchange, such as `X25519` or `ECDH prime256v1`, and its length in bits; `None`: the
    /// session was resumed.
    pub key_exchange: Option<(&'static str, u32)>,
}

impl TlsParameters {
    /// Reads the parameters of a connection whose handshake has ended.
    pub(super) fn from_connection(connection: &CommonState) -> Option<TlsParameters> {
        let suite = connection.negotiated_cipher_suite()?.suite();
        let key_exchange = connection.negotiated_key_exchange_group().and_then(|group| match group.name() {
            NamedGroup::X25519 => Some(("X25519", 253)),
            NamedGroup::secp256r1 => Some(("ECDH prime256v1", 256)),
            NamedGroup::secp384r1 => Some(("ECDH secp384r1", 384)),
            NamedGroup::secp521r1 => Some(("ECDH secp521r1", 521)),
            _ => None,
        });
        Some(TlsParameters {
            version: match connection.protocol_version()? {
                ProtocolVersion::TLSv1_2 => "TLSv1.2",
                _ => "TLSv1.3",
            },
            cipher: cipher_name(suite),
            cipher_bits: if format!("{suite:?}").contains("AES_128") { 128 } else { 256 },
            key_bits: connection.peer_certificates().and_then(<[_]>::first).map_or(0, key_bits),
            key_exchange,
        })
    }
}

/// Returns the OpenSSL name of a cipher suite. For TLS 1.2, the OpenSSL name differs from the name
/// in the TLS standard.
fn cipher_name(suite: CipherSuite) -> String {
    let name = format!("{suite:?}");
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => {
            let name = name.trim_start_matches("TLS_").replace("_WITH", "").replace("AES_", "AES");
            // The OpenSSL name of a ChaCha suite contains no hash.
            name.replace("POLY1305_SHA256", "POLY1305").replace('_', "-")
        }
    }
}

/// Returns the length in bits of the public key in a certificate; 0 if the kind of key is unknown.
fn key_bits(certificate: &CertificateDer) -> u32 {
    let info = ParsedCertificate::try_from(certificate).ok().map(|parsed| parsed.subject_public_key_info());
    info.and_then(|info| key_length_bits(&info)).unwrap_or(0)
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The key lengths in bits of elliptic curves, by the encoded bytes of the curve's object
/// identifier.
const CURVE_KEY_BITS: [(&[u8], u32); 4] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 256),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], 384),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], 521),
    (&[0x2b, 0x65, 0x70], 253),
];

/// Returns the length in bits of an encoded public key, `SEQUENCE { SEQUENCE { name, parameters },
/// BIT STRING }`.
fn key_length_bits(info: &[u8]) -> Option<u32> {
    let mut fields = take_value(&mut &*info, SEQUENCE)?;
    let mut kind = take_value(&mut fields, SEQUENCE)?;
    let named = |name: &[u8]| CURVE_KEY_BITS.iter().find(|(known, _)| *known == name).map(|(_, bits)| *bits);
    while let Some(name) = take_value(&mut kind, OBJECT_IDENTIFIER) {
        if let Some(bits) = named(name) {
            return Some(bits);
        }
    }
    // An RSA key is a `SEQUENCE { modulus, exponent }` in a bit string without unused bits.
    let mut key = take_value(&mut fields, BIT_STRING)?.strip_prefix(&[0])?;
    let modulus = take_value(&mut take_value(&mut key, SEQUENCE)?, INTEGER)?;
    let first = modulus.iter().position(|byte| *byte != 0)?;
    Some((modulus.len() - first) as u32 * 8 - modulus[first].leading_zeros())
}

/// Removes the next encoded value from `from` and returns its content; `None` if the value's type
/// is not `kind`.
fn take_value<'a>(from: &mut &'a [u8], kind: u8) -> Option<&'a [u8]> {
    let [first, length, rest @ ..] = *from else { return None };
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x0f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    if *first != kind {
        return None;
    }
    *from = rest;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ciphers_have_their_openssl_names() {
        for (suite, expect) in [
            (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
            (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
            (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256"),
            (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384"),
            (CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(cipher_name(suite), expect);
        }
    }

    /// Encodes an RSA key whose modulus begins with `first` and has `bytes` bytes.
    fn encode_rsa_key(first: u8, bytes: usize) -> Vec<u8> {
        let value = |kind: u8, content: &[u8]| {
            let length = (content.len() as u16).to_be_bytes();
            [&[kind, 0x82, length[0], length[1]], content].concat()
        };
        let modulus = [&[0, first], &vec![7; bytes - 1][..]].concat();
        let key = value(SEQUENCE, &[value(INTEGER, &modulus), value(INTEGER, &[1, 0, 1])].concat());
        let kind = value(SEQUENCE, &value(OBJECT_IDENTIFIER, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]));
        value(SEQUENCE, &[kind, value(BIT_STRING, &[&[0][..], &key].concat())].concat())
    }

    #[test]
    fn tls_keys_have_their_length_in_bits() {
        assert_eq!(
            [encode_rsa_key(0x80, 256), encode_rsa_key(0xff, 512), encode_rsa_key(0x01, 128)]
                .map(|info| key_length_bits(&info)),
            [Some(2048), Some(4096), Some(1017)]
        );
        for (algorithm, expect) in
            [(&rcgen::PKCS_ECDSA_P256_SHA256, 256), (&rcgen::PKCS_ECDSA_P384_SHA384, 384), (&rcgen::PKCS_ED25519, 253)]
        {
            let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
            let own = rcgen::CertificateParams::new(vec!["h".to_owned()]).expect("a name").self_signed(&key);
            assert_eq!(key_bits(own.expect("a certificate").der()), expect);
        }
        assert_eq!(key_bits(&CertificateDer::from(vec![0x30, 0x01])), 0);
    }

    proptest! {
        #[test]
        fn any_input_is_handled_without_a_panic(cuts in proptest::collection::vec((0..300usize, any::<u8>()), 0..6), end in 0..300usize) {
            let mut info = encode_rsa_key(0x80, 256);
            cuts.into_iter().for_each(|(at, byte)| if let Some(place) = info.get_mut(at) { *place = byte });
            info.truncate(end);
            let _ = key_length_bits(&info);
        }
    }
}
