//! Every parser of what the kernel tells against damaged and made-up input: none may panic, and whole input is still
//! understood.

#![allow(clippy::print_stderr, reason = "a random test says its seed")]

mod driver;

use driver::parse_all;

/// A small random generator: this crate has no other, and needs none.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let files = [
        "/proc/self/stat",
        "/proc/self/schedstat",
        "/proc/self/status",
        "/proc/self/limits",
        "/proc/self/cgroup",
        "/proc/stat",
        "/proc/meminfo",
        "/proc/loadavg",
        "/proc/net/dev",
        "/proc/net/netstat",
        "/proc/net/snmp",
        "/proc/net/sockstat",
        "/proc/net/route",
    ];
    let mut corpus: Vec<Vec<u8>> = files.iter().filter_map(|file| std::fs::read(file).ok()).collect();
    let mut message = vec![0u8; 88 + 8];
    message[..4].copy_from_slice(&96u32.to_ne_bytes());
    message[4..6].copy_from_slice(&20u16.to_ne_bytes());
    message[8..12].copy_from_slice(&7u32.to_ne_bytes());
    message[16] = 2;
    message[88..90].copy_from_slice(&8u16.to_ne_bytes());
    message[90..92].copy_from_slice(&2u16.to_ne_bytes());
    corpus.push(message);
    corpus.push(b"some avg10=0.00 total=12\nfull avg10=0.00 total=3\n".to_vec());
    corpus.push(b"nr_periods 10\nnr_throttled 4\nthrottled_usec 7\n".to_vec());
    corpus.push(b"50000 100000\n".to_vec());
    corpus.push(b"socket:[123]".to_vec());
    corpus
}

#[test]
fn no_parser_panics() {
    let seed = std::env::var("PLIMSOLL_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
    eprintln!("seed {seed} (set PLIMSOLL_SEED to repeat another)");
    let mut rng = Rng(seed);
    let corpus = corpus();
    assert!(corpus.iter().all(|bytes| parse_all(bytes) > 0), "whole input is understood by some parser");
    for round in 0..20_000 {
        let mut bytes = corpus[round % corpus.len()].clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            match rng.below(5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
                2 => {
                    let noise: Vec<u8> = (0..rng.below(30)).map(|_| rng.next() as u8).collect();
                    bytes.splice(at..at, noise);
                }
                3 => bytes.splice(at..at, *b"99999999999999999999").for_each(drop),
                _ => bytes.truncate(bytes.len().min(4096)),
            }
        }
        parse_all(&bytes);
    }
}
