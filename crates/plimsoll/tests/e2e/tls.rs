//! Tests HTTPS with real servers, all kinds of invalid certificates, and servers that abort the
//! handshake.

use crate::test_support::{
    assert_ledger_closes, create_new_folder, go_server_tls, nginx_tls, number_at_path, plimsoll, run_to_json,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate authority, and the folder of its files.
struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

struct CertificateAndKey {
    certificate: PathBuf,
    key: PathBuf,
}

impl Authority {
    fn new() -> Authority {
        let folder = create_new_folder("tls");
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        // Issuers are looked up by name, so each authority needs its own name.
        parameters.distinguished_name.push(DnType::CommonName, folder.display().to_string());
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        std::fs::write(folder.join("ca.pem"), parameters.self_signed(&key).expect("signed").pem()).expect("written");
        Authority { folder, issuer: Issuer::new(parameters, key) }
    }

    fn authority_certificate_path(&self) -> String {
        self.folder.join("ca.pem").display().to_string()
    }

    /// Issues a certificate for `names` that is valid from 1 January of the year `years.0` to 1
    /// January of the year `years.1`.
    fn issue_certificate(&self, name: &str, names: &[&str], years: (i32, i32)) -> CertificateAndKey {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).expect("names");
        (parameters.not_before, parameters.not_after) = (date_time_ymd(years.0, 1, 1), date_time_ymd(years.1, 1, 1));
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.issuer).expect("signed");
        self.write(name, &certificate.pem(), &key)
    }

    fn write(&self, name: &str, certificate: &str, key: &KeyPair) -> CertificateAndKey {
        let pair = CertificateAndKey {
            certificate: self.folder.join(format!("{name}.pem")),
            key: self.folder.join(format!("{name}.key")),
        };
        std::fs::write(&pair.certificate, certificate).expect("written");
        std::fs::write(&pair.key, key.serialize_pem()).expect("written");
        pair
    }

    fn issue_localhost_certificate(&self) -> CertificateAndKey {
        self.issue_certificate("good", &["localhost", "127.0.0.1"], (2020, 2090))
    }
}

/// Creates a certificate for 127.0.0.1 and its key, from an authority that no client trusts by
/// default.
pub fn self_signed() -> (PathBuf, PathBuf) {
    let pair = Authority::new().issue_localhost_certificate();
    (pair.certificate, pair.key)
}

fn path_as_text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// Starts a small HTTPS server that sends `hello` to every request. With `clients_by`, the server
/// demands a client certificate. The server's thread ends with the process.
fn rustls_server(pair: &CertificateAndKey, clients_by: Option<&Path>) -> String {
    let chain = CertificateDer::pem_file_iter(&pair.certificate).expect("a file").map(|c| c.expect("PEM")).collect();
    let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match clients_by {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = rustls::RootCertStore::empty();
            for root in CertificateDer::pem_file_iter(path).expect("a file") {
                roots.add(root.expect("PEM")).expect("a root");
            }
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let config = Arc::new(builder.with_single_cert(chain, key).expect("a pair"));
    serve(move |stream| {
        let Ok(connection) = rustls::ServerConnection::new(Arc::clone(&config)) else { return };
        let mut tls = rustls::StreamOwned::new(connection, stream);
        let mut buffer = [0; 4096];
        while matches!(tls.read(&mut buffer), Ok(1..)) {
            if tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_err() {
                return;
            }
        }
    })
}

/// Starts a server that passes each connection to `answer`. Returns the server's address.
fn serve(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || answer(stream));
        }
    });
    address.to_string()
}

#[test]
fn common_servers_are_loaded_over_https() {
    let authority = Authority::new();
    let pair = authority.issue_localhost_certificate();
    let (ca, servers) = (
        authority.authority_certificate_path(),
        [nginx_tls(&pair.certificate, &pair.key), go_server_tls(&pair.certificate, &pair.key)],
    );
    for server in &servers {
        let url = format!("{}/", server.url);
        for (load, requests) in [
            (&["-c", "4", "-n", "400"][..], 400.0),
            (&["--rate", "500", "-n", "100"], 100.0),
            (&["-c", "4", "-n", "100", "--no-keepalive"], 100.0),
            (&["-c", "4", "-n", "60", "--no-keepalive", "--no-resumption"], 60.0),
        ] {
            let what = format!("{load:?} on {url}");
            let document = run_to_json(&[&["run", &url, "--cacert", &ca], load].concat());
            assert_ledger_closes(&document, &what);
            assert_eq!(number_at_path(&document, "ledger.succeeded"), requests, "{what}: {:#}", document["ledger"]);
            let (opened, handshakes) =
                (number_at_path(&document, "connections_opened"), number_at_path(&document, "handshake_ns.count"));
            assert_eq!(opened, handshakes, "{what}");
            assert!(number_at_path(&document, "handshake_ns.min") > 0.0, "{what}");
            let resumed = number_at_path(&document, "handshakes_resumed");
            if load.contains(&"--no-resumption") {
                assert_eq!((resumed, handshakes), (0.0, requests), "{what}");
            } else if load.contains(&"--no-keepalive") {
                assert!(resumed > 0.8 * requests, "{what}: {resumed} of {handshakes}");
            }
        }
        // The body is larger than the buffer of a TLS session.
        let body = authority.folder.join("body.bin");
        std::fs::write(&body, vec![b'x'; 2_000_000]).expect("written");
        let flag = format!("@{}", body.display());
        if server.url == servers[1].url {
            let url = format!("{}/echo-length?want=2000000", server.url);
            let document = run_to_json(&["run", &url, "-X", "PUT", "-b", &flag, "-n", "6", "-c", "3", "--cacert", &ca]);
            assert_eq!(number_at_path(&document, "ledger.succeeded"), 6.0, "{:#}", document["ledger"]);
            assert!(number_at_path(&document, "bytes_out") >= 12e6);
        }
        let shown = plimsoll(&["run", &url, "--cacert", &ca, "-n", "10", "-qv"]);
        assert!(shown.stdout.contains("TLS handshake"), "{}", shown.stdout);
        let found = plimsoll(&["find", &url, "--cacert", &ca, "--budget", "3s", "--max-rate", "300", "--quiet"]);
        assert_eq!(found.code, 0, "{}", found.stderr);
    }
}

/// Runs a load without a preflight request, and returns its document, in which all requests failed
/// with TLS errors.
fn run_expecting_tls_failures(url: &str, flags: &[&str]) -> serde_json::Value {
    let document = run_to_json(&[&["run", url, "--no-preflight", "-c", "2", "-n", "4"], flags].concat());
    assert_ledger_closes(&document, url);
    assert_eq!(number_at_path(&document, "ledger.failed.tls"), 4.0, "{url} {flags:?}: {document:#}");
    document
}

#[test]
fn bad_certificates_are_distinguished() {
    let (authority, other) = (Authority::new(), Authority::new());
    let ca = authority.authority_certificate_path();
    // `openssl req -x509` makes self-signed certificates that may also issue other certificates, so
    // the test tries both kinds.
    let self_signed = |name: &str, is_ca: IsCa| {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).expect("names");
        parameters.is_ca = is_ca;
        authority.write(name, &parameters.self_signed(&key).expect("signed").pem(), &key)
    };
    for (pair, reason, said) in [
        (authority.issue_certificate("expired", &["127.0.0.1"], (2001, 2002)), "expired", "has expired"),
        (authority.issue_certificate("early", &["127.0.0.1"], (2089, 2090)), "not_yet_valid", "not valid yet"),
        (authority.issue_certificate("name", &["other.test"], (2020, 2090)), "wrong_name", "another host name"),
        (other.issue_localhost_certificate(), "unknown_issuer", "unknown issuer"),
        (self_signed("self", IsCa::NoCa), "unknown_issuer", "--cacert"),
        (self_signed("own", IsCa::Ca(BasicConstraints::Unconstrained)), "unknown_issuer", "--cacert"),
    ] {
        let url = format!("https://{}/", rustls_server(&pair, None));
        let document = run_expecting_tls_failures(&url, &["--cacert", &ca]);
        assert!(number_at_path(&document, &format!("tls_errors.{reason}")) >= 4.0, "{reason}: {document:#}");
        let done = plimsoll(&["run", &url, "--cacert", &ca]);
        assert_eq!(done.code, 2, "{}", done.stdout);
        assert!(done.stderr.contains(said) && done.stderr.contains("--insecure"), "{reason}: {}", done.stderr);
        // With --insecure, the certificate is not checked.
        let document = run_to_json(&["run", &url, "--insecure", "-n", "4"]);
        assert_eq!(number_at_path(&document, "ledger.succeeded"), 4.0, "{reason}");
        // A self-signed certificate itself can be named as trusted with `--cacert`. For any other
        // certificate, `--cacert` must name the certificate's issuer.
        let own = plimsoll(&["run", &url, "--cacert", path_as_text(&pair.certificate), "-n", "2", "--quiet"]);
        let expect = if said == "--cacert" { 0 } else { 2 };
        assert_eq!(own.code, expect, "{reason}: {}", own.stderr);
    }
}

#[test]
fn a_required_client_certificate_is_sent_or_reported_missing() {
    let authority = Authority::new();
    let (ca, pair) = (authority.authority_certificate_path(), authority.issue_localhost_certificate());
    let client = authority.issue_certificate("client", &["client.test"], (2020, 2090));
    let url = format!("https://{}/", rustls_server(&pair, Some(Path::new(&ca))));
    let flags = ["--cacert", &ca, "--cert", path_as_text(&client.certificate), "--key", path_as_text(&client.key)];
    let document = run_to_json(&[&["run", url.as_str(), "-n", "10"], &flags[..]].concat());
    assert_eq!(number_at_path(&document, "ledger.succeeded"), 10.0);
    let document = run_to_json(&["run", &url, "--no-preflight", "-c", "2", "-n", "4", "--cacert", &ca]);
    assert_ledger_closes(&document, "no certificate");
    // The client may see the closed connection (a reset) before the server's refusal (a TLS alert).
    let failed = number_at_path(&document, "ledger.failed.tls") + number_at_path(&document, "ledger.failed.reset");
    assert_eq!(failed, 4.0, "{document:#}");
    // The test tries a certificate with the key of another pair, a key as the certificate, and a
    // certificate as the key.
    for (certificate, key, said) in [
        (&client.certificate, &pair.key, "do not match each other"),
        (&client.key, &client.key, "--cert"),
        (&client.certificate, &client.certificate, "--key"),
    ] {
        let done =
            plimsoll(&["run", &url, "--cacert", &ca, "--cert", path_as_text(certificate), "--key", path_as_text(key)]);
        assert_eq!((done.code, done.stderr.lines().count()), (2, 1), "{}", done.stderr);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
    let done = plimsoll(&["run", &url, "--cacert", path_as_text(&client.key)]);
    assert!(done.code == 2 && done.stderr.contains("--cacert"), "{}", done.stderr);
}

#[test]
fn servers_that_drop_the_handshake_are_counted() {
    let plain = serve(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let (hears, closes) = (
        serve(|mut stream| {
            let _ = stream.read(&mut [0; 4096]);
        }),
        serve(drop),
    );
    let garbage = serve(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&[0x16, 3, 3, 0, 5, 1, 2, 3, 4, 5]);
        let _ = stream.read(&mut [0; 4096]);
    });
    for (url, reasons) in [
        (format!("https://{plain}/"), &["not_tls"][..]),
        (format!("https://{hears}/"), &["closed"]),
        // The server `closes` closes the connection before it reads the first message, so the
        // client may get a reset.
        (format!("https://{closes}/"), &["closed", "reset"]),
        (format!("https://{garbage}/"), &["not_tls", "other"]),
    ] {
        let document = run_expecting_tls_failures(&url, &["--insecure"]);
        let counted: f64 = reasons.iter().filter_map(|reason| document["tls_errors"][reason].as_f64()).sum();
        assert!(counted >= 4.0, "{url}: {document:#}");
        let done = plimsoll(&["run", &url, "--insecure"]);
        assert!(done.code == 2 && done.stderr.contains("the TLS connection to"), "{url}: {}", done.stderr);
    }
    // A server that never sends anything causes a timeout.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/", silent.local_addr().expect("an address"));
    let document =
        run_to_json(&["run", &url, "--insecure", "--no-preflight", "-c", "2", "-n", "2", "--timeout", "300ms"]);
    assert_ledger_closes(&document, "silent");
    assert_eq!(number_at_path(&document, "ledger.failed.timeout"), 2.0, "{document:#}");
    let done = plimsoll(&["run", &url, "--insecure", "--timeout", "300ms"]);
    assert!(done.code == 2 && done.stderr.contains("no TLS handshake within"), "{}", done.stderr);
}
