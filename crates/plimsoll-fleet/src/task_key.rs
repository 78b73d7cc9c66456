//! Keys with which a coordinator signs tasks ([`TaskKey`]) and an agent verifies tasks
//! ([`TaskVerifier`]). If an agent accepts only signed tasks, access to the bus alone is not enough
//! to start a load.
//!
//! The signature covers the task, its plan, the name of the run and an expiry time. A recorded task
//! cannot be replayed in another run, because the signature covers the name of the run. Not here:
//! the addresses that agents may load (`allow`).

use crate::message::{AgentLoadTask, CalibrationTask, TaskSignature};
use plimsoll_model::failure::Failure;
use plimsoll_sys::{output_file, system_text};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable with the path of the coordinator's key file.
const KEY_VARIABLE: &str = "PLIMSOLL_FLEET_KEY";
/// The prefix of a text line with a secret key.
const SECRET_PREFIX: &str = "ed25519-secret:";
/// The prefix of a text line with a public key.
const PUBLIC_PREFIX: &str = "ed25519:";
const KEY_BYTES: usize = 32;
/// The time after its signing at which a task expires, s (10 min). An agent accepts a task if the
/// calendar clocks of coordinator and agent differ by at most this time.
const TASK_VALIDITY_S: u64 = 600;
/// The prefix of the bytes of a task that are signed. The prefix makes a task's signature invalid
/// for other data, such as calibration requests.
const SIGNED_TASK_PREFIX: &[u8] = b"plimsoll fleet task 1\0";
/// The prefix of the signed bytes of a calibration request.
const SIGNED_CALIBRATION_PREFIX: &[u8] = b"plimsoll fleet calibration 1\0";

/// A coordinator's secret key, which signs tasks.
pub struct TaskKey {
    pair: Ed25519KeyPair,
}

/// The public key that an agent trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskVerifier {
    public: [u8; KEY_BYTES],
}

/// Formats bytes as hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
    };
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(pair).collect()).flatten()
}

/// Returns random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| {
        Failure::cannot_start("the operating system provides no random numbers, so plimsoll cannot sign")
    })?;
    Ok(bytes)
}

fn unix_time_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the bytes of a task that are signed.
fn signed_task_bytes(run: &str, task: &AgentLoadTask, expires_unix_s: u64) -> Vec<u8> {
    let mut bytes = SIGNED_TASK_PREFIX.to_vec();
    let workers = task.workers.map_or(0, |workers| u64::from(workers) + 1);
    bytes.extend_from_slice(&(run.len() as u64).to_le_bytes());
    bytes.extend_from_slice(run.as_bytes());
    for number in [task.epoch, task.share_index, task.share_count, workers, expires_unix_s, task.weights.len() as u64] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    task.weights.iter().for_each(|weight| bytes.extend_from_slice(&weight.to_le_bytes()));
    bytes.extend([u8::from(task.preflight), task.spin as u8]);
    bytes.extend_from_slice(&task.plan);
    bytes
}

/// Returns the bytes of a calibration request that are signed.
fn signed_calibration_bytes(run: &str, number: u32, expires_unix_s: u64) -> Vec<u8> {
    let mut bytes = SIGNED_CALIBRATION_PREFIX.to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&expires_unix_s.to_le_bytes());
    bytes.extend_from_slice(run.as_bytes());
    bytes
}

impl TaskKey {
    /// Creates a key and writes the key to a new file that only its owner can read. Returns the
    /// public key as a line of text, for agents.
    pub fn create_key_file(path: &Path) -> Result<String, Failure> {
        let seed: [u8; KEY_BYTES] = random_bytes()?;
        let key = TaskKey::key_from_seed(&seed).map_err(Failure::cannot_start)?;
        let line = format!("{SECRET_PREFIX}{}\n", to_hex(&seed));
        output_file::create_private(path, line.as_bytes()).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::usage(format!(
                "'{file}' exists, and may contain a fleet key that agents trust: give another file name",
                file = path.display()
            )),
            _ => Failure::cannot_start(format!(
                "the fleet key '{file}' cannot be written: {reason}",
                file = path.display(),
                reason = system_text(&error)
            )),
        })?;
        Ok(key.public_key_line())
    }

    fn key_from_seed(seed: &[u8]) -> Result<TaskKey, String> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| "the fleet key is not a valid ed25519 key".to_owned())?;
        Ok(TaskKey { pair })
    }

    /// Reads a key file that [`create_key_file`](TaskKey::create_key_file) wrote.
    pub fn read(path: &str) -> Result<TaskKey, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("'{path}' cannot be read: {}", system_text(&error)))?;
        let seed = text.trim().strip_prefix(SECRET_PREFIX).and_then(from_hex);
        let key = seed.and_then(|seed| TaskKey::key_from_seed(&seed).ok());
        key.ok_or_else(|| format!("'{path}' contains no fleet key: make a key with plimsoll fleet key FILE"))
    }

    /// Returns the public key as a line of text, for agents.
    pub fn public_key_line(&self) -> String {
        format!("{PUBLIC_PREFIX}{}", to_hex(self.pair.public_key().as_ref()))
    }

    /// Reads the coordinator's key from the file that the environment variable `PLIMSOLL_FLEET_KEY`
    /// names; `None` if the variable is not set.
    pub fn key_from_environment() -> Result<Option<TaskKey>, Failure> {
        let path = std::env::var(KEY_VARIABLE).ok().filter(|path| !path.is_empty());
        let key = path.as_deref().map(TaskKey::read).transpose();
        key.map_err(|why| Failure::usage(format!("${KEY_VARIABLE}: {why}")))
    }

    /// Signs a task of the run named `run`.
    pub fn sign_task(&self, run: &str, task: &AgentLoadTask) -> TaskSignature {
        self.sign_bytes(|expires_unix_s| signed_task_bytes(run, task, expires_unix_s))
    }

    /// Signs a calibration request of the run named `run`.
    pub fn sign_calibration(&self, run: &str, number: u32) -> TaskSignature {
        self.sign_bytes(|expires_unix_s| signed_calibration_bytes(run, number, expires_unix_s))
    }

    fn sign_bytes(&self, bytes: impl Fn(u64) -> Vec<u8>) -> TaskSignature {
        let expires_unix_s = unix_time_s() + TASK_VALIDITY_S;
        let signature = to_hex(self.pair.sign(&bytes(expires_unix_s)).as_ref());
        TaskSignature { expires_unix_s, signature }
    }
}

impl TaskVerifier {
    /// Parses a public key from a line of text, as [`TaskKey::public_key_line`] returns it.
    pub fn parse(text: &str) -> Result<TaskVerifier, String> {
        let bytes = text.trim().strip_prefix(PUBLIC_PREFIX).and_then(from_hex);
        let public = bytes.and_then(|bytes| bytes.try_into().ok());
        public.map(|public| TaskVerifier { public }).ok_or_else(|| {
            "the public fleet key is not valid: give the line that plimsoll fleet key prints (ed25519: and 64 \
             hexadecimal digits)"
                .to_owned()
        })
    }

    /// Checks the signature of a task of the run named `run`. An error is a sentence without the
    /// agent's name.
    pub fn check_task(&self, run: &str, task: &AgentLoadTask) -> Result<(), String> {
        self.check_task_at(run, task, unix_time_s())
    }

    /// Checks the signature of a calibration request. An error is a sentence without the agent's
    /// name.
    pub fn check_calibration(&self, run: &str, task: &CalibrationTask) -> Result<(), String> {
        let bytes = |expires_unix_s| signed_calibration_bytes(run, task.number, expires_unix_s);
        self.check_signature(task.signature.as_ref(), bytes, unix_time_s())
    }

    fn check_task_at(&self, run: &str, task: &AgentLoadTask, now_unix_s: u64) -> Result<(), String> {
        self.check_signature(task.signature.as_ref(), |expires| signed_task_bytes(run, task, expires), now_unix_s)
    }

    fn check_signature(
        &self,
        signature: Option<&TaskSignature>,
        bytes: impl Fn(u64) -> Vec<u8>,
        now_unix_s: u64,
    ) -> Result<(), String> {
        let Some(TaskSignature { expires_unix_s, signature }) = signature else {
            return Err("the agent accepts only signed plans: set $PLIMSOLL_FLEET_KEY to the file of the \
                key that the agent trusts"
                .to_owned());
        };
        let bytes = bytes(*expires_unix_s);
        let key = UnparsedPublicKey::new(&ED25519, &self.public);
        let is_genuine = from_hex(signature).is_some_and(|signature| key.verify(&bytes, &signature).is_ok());
        if !is_genuine {
            return Err("the agent does not trust the key that signed the plan: set $PLIMSOLL_FLEET_KEY \
                to the file of the trusted key"
                .to_owned());
        }
        if !(now_unix_s..=now_unix_s + 2 * TASK_VALIDITY_S).contains(expires_unix_s) {
            return Err("the signing time of the plan differs from the agent's clock: set the clocks of both machines"
                .to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Spin;

    fn unsigned_task() -> AgentLoadTask {
        let (workers, spin, preflight, signature) = (Some(2), Spin::Auto, false, None);
        let (weights, plan) = (Vec::new(), vec![5; 100]);
        AgentLoadTask { epoch: 1, share_index: 0, share_count: 2, weights, workers, spin, preflight, signature, plan }
    }

    #[test]
    fn only_the_signed_task_of_the_run_is_accepted() {
        let key = TaskKey::key_from_seed(&[7; 32]).expect("a key");
        let verifier = TaskVerifier::parse(&key.public_key_line()).expect("a line");
        let unsigned = unsigned_task();
        assert!(verifier.check_task("r1", &unsigned).is_err_and(|said| said.contains("$PLIMSOLL_FLEET_KEY")));
        let signature = key.sign_task("r1", &unsigned);
        let expires_unix_s = signature.expires_unix_s;
        let signed = AgentLoadTask { signature: Some(signature), ..unsigned };
        assert_eq!(verifier.check_task("r1", &signed), Ok(()));
        let refuses = |run: &str, task: &AgentLoadTask| {
            verifier.check_task(run, task).is_err_and(|said| said.contains("does not trust"))
        };
        assert!(refuses("r2", &signed), "of another run");
        for changed in [
            AgentLoadTask { plan: vec![6; 100], ..signed.clone() },
            AgentLoadTask { epoch: 2, ..signed.clone() },
            AgentLoadTask { share_index: 1, ..signed.clone() },
            AgentLoadTask { share_count: 3, ..signed.clone() },
            AgentLoadTask { weights: vec![2, 1], ..signed.clone() },
            AgentLoadTask { workers: None, ..signed.clone() },
            AgentLoadTask {
                signature: signed.signature.clone().map(|it| TaskSignature { expires_unix_s: u64::MAX / 2, ..it }),
                ..signed.clone()
            },
            AgentLoadTask {
                signature: signed.signature.clone().map(|it| TaskSignature { signature: "zz".into(), ..it }),
                ..signed.clone()
            },
        ] {
            assert!(refuses("r1", &changed), "{changed:?}");
        }
        let other = TaskKey::key_from_seed(&[8; 32]).expect("a key");
        let foreign = AgentLoadTask { signature: Some(other.sign_task("r1", &signed)), ..signed.clone() };
        assert!(refuses("r1", &foreign));
        for at_s in [0, expires_unix_s + 2 * TASK_VALIDITY_S, expires_unix_s - 3 * TASK_VALIDITY_S] {
            assert!(verifier.check_task_at("r1", &signed, at_s).is_err_and(|said| said.contains("clocks")), "{at_s}");
        }
    }

    #[test]
    fn only_the_signed_calibration_of_the_run_is_accepted() {
        let key = TaskKey::key_from_seed(&[7; 32]).expect("a key");
        let verifier = TaskVerifier::parse(&key.public_key_line()).expect("a line");
        let signed = CalibrationTask { number: 3, signature: Some(key.sign_calibration("r1", 3)) };
        assert_eq!(verifier.check_calibration("r1", &signed), Ok(()));
        for (run, task) in [
            ("r2", signed.clone()),
            ("r1", CalibrationTask { number: 4, ..signed.clone() }),
            ("r1", CalibrationTask { signature: None, ..signed.clone() }),
            ("r1", CalibrationTask { signature: Some(key.sign_task("r1", &unsigned_task())), ..signed }),
        ] {
            assert!(verifier.check_calibration(run, &task).is_err(), "{run} {task:?}");
        }
    }

    #[test]
    fn invalid_task_keys_are_refused() {
        for text in
            ["", "ed25519:", "ed25519:0", "ed25519:zz", "ed25519-secret:00", &format!("ed25519:{}", "0".repeat(62))]
        {
            assert!(TaskVerifier::parse(text).is_err(), "{text}");
        }
        assert!(TaskKey::read("/nowhere").is_err_and(|said| said.contains("cannot be read")));
        assert_eq!(from_hex(&to_hex(&[0, 15, 16, 255])), Some(vec![0, 15, 16, 255]));
    }
}
