//! Tests every parser of kernel files and of program files with damaged and random input. No parser
//! may panic, and intact input must still be parsed.

#![allow(clippy::print_stderr, reason = "a random test says its seed")]

mod driver;

use driver::parse_all;

/// A small random number generator, because this crate depends on no crate for random numbers.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn random_below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn write_little_endian(bytes: &mut [u8], at: usize, value: u64, size: usize) {
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Returns a program with one loaded segment and these sections. Each section has the index of its
/// name, and type, address, offset, length and link.
fn elf_program(names: &[u8], sections: &[[u64; 6]]) -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    let count = sections.len() as u64 + 1;
    for (at, value, size) in [(32, 64, 8), (40, 1024, 8), (56, 1, 2), (60, count, 2), (62, 0, 2)] {
        write_little_endian(&mut bytes, at, value, size);
    }
    for (at, value, size) in [(64, 1, 4), (80, 0x1000, 8), (96, 1024, 8)] {
        write_little_endian(&mut bytes, at, value, size);
    }
    write_little_endian(&mut bytes, 1024 + 24, 1536, 8);
    write_little_endian(&mut bytes, 1024 + 32, names.len() as u64, 8);
    bytes[1536..1536 + names.len()].copy_from_slice(names);
    for (number, section) in sections.iter().enumerate() {
        let places = [(0, 4), (4, 4), (16, 8), (24, 8), (32, 8), (40, 4)];
        for ((at, size), value) in places.into_iter().zip(section) {
            write_little_endian(&mut bytes, 1024 + 64 * (number + 1) + at, *value, size);
        }
    }
    bytes
}

/// Returns a program with one function, in the format of Go 1.18.
fn go_program() -> Vec<u8> {
    let names = b"\0.text\0.gopclntab\0";
    let mut bytes = elf_program(names, &[[1, 1, 0x1080, 0x80, 0x100, 0], [7, 1, 0, 512, 256, 0]]);
    for (at, value, size) in [(0, 0xffff_fff0, 4), (6, 1, 1), (7, 8, 1), (8, 1, 8), (24, 0x1080, 8), (32, 80, 8)] {
        write_little_endian(&mut bytes, 512 + at, value, size);
    }
    for (at, value, size) in [(64, 100, 8), (104, 16, 4), (108, 0x100, 4), (120, 1, 4)] {
        write_little_endian(&mut bytes, 512 + at, value, size);
    }
    bytes[512 + 81..512 + 86].copy_from_slice(b"main\0");
    bytes
}

/// Returns a program with one symbol.
fn c_program() -> Vec<u8> {
    let mut bytes = elf_program(b"\0", &[[0, 2, 0, 512, 24, 2], [0, 3, 0, 640, 64, 0]]);
    for (at, value, size) in [(0, 1, 4), (4, 2, 1), (6, 1, 2), (8, 0x1080, 8), (16, 0x200, 8)] {
        write_little_endian(&mut bytes, 512 + at, value, size);
    }
    bytes[641..646].copy_from_slice(b"main\0");
    bytes
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
        "/proc/self/maps",
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
    corpus.push(b"1000 20 LazyCompile:~handler /srv/app.js:1\n1020 8 py::main\n".to_vec());
    corpus.push(go_program());
    corpus.push(c_program());
    corpus.push(b"202 0x55a3e6b2ce50 0x189 0x0 0x7fa0 0x0 0xffffffff 0x7fa0 0x7fa1\n".to_vec());
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
        for _ in 0..=rng.random_below(4) {
            let at = rng.random_below(bytes.len());
            match rng.random_below(5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] ^= 1 << rng.random_below(8),
                2 => {
                    let noise: Vec<u8> = (0..rng.random_below(30)).map(|_| rng.next() as u8).collect();
                    bytes.splice(at..at, noise);
                }
                3 => bytes.splice(at..at, *b"99999999999999999999").for_each(drop),
                _ => bytes.truncate(bytes.len().min(4096)),
            }
        }
        parse_all(&bytes);
    }
}
