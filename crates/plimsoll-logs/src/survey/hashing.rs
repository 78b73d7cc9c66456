//! 64-bit hashes that identify texts. Among a million texts, the chance of a collision is one in
//! thirty million. Not here: protection against texts that are chosen to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash map whose keys are 64-bit hashes, which are not hashed again.
pub(crate) type HashKeyMap<V> = HashMap<u64, V, BuildHasherDefault<IdentityHasher>>;

/// A hasher that returns a 64-bit key unchanged, because the key is a hash already.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes, self.0);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[inline]
fn multiply_and_fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Returns a hash of `bytes`. A hash of several texts is computed by passing the hash of each text
/// as the `seed` of the next text.
#[inline]
pub(crate) fn hash(bytes: &[u8], seed: u64) -> u64 {
    const HASH_CONSTANT_A: u64 = 0x9e37_79b9_7f4a_7c15;
    const HASH_CONSTANT_B: u64 = 0xd6e8_feb8_6659_fd93;
    let mut state = multiply_and_fold(seed ^ HASH_CONSTANT_A, HASH_CONSTANT_B ^ bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = multiply_and_fold(state ^ u64::from_le_bytes(*word), HASH_CONSTANT_B);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    multiply_and_fold(state ^ u64::from_le_bytes(last), HASH_CONSTANT_A)
}
