//! The static Huffman code of HPACK ([RFC 7541, 5.2 and appendix
//! B](https://www.rfc-editor.org/rfc/rfc7541#appendix-B)): encoder and decoder.
//!
//! The Huffman code is canonical: the lengths of the codes alone determine the codes. All tables
//! are computed at compile time from the lengths of the codes.

/// The length in bits of the code of each byte. The end-of-string symbol (30 ones) is not a byte,
/// and never occurs in a valid text.
#[rustfmt::skip]
const CODE_LENGTHS_BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const LENGTH_MAX: usize = 30;
/// The maximum length in bits of codes that are decoded by one table lookup. Nearly all texts in
/// heads have only codes of at most eight bits.
const SHORT_BITS: u32 = 8;

/// The tables for encoding and decoding, which are computed from the code lengths.
struct HuffmanTables {
    /// The Huffman code of each byte, in the lowest bits of the number.
    codes: [u32; 256],
    /// The bytes ordered by code length, then by value.
    order: [u8; 256],
    /// For each code length: the first code (`first`), the number of codes (`count`), and the index
    /// in `order` of the first code's byte (`place`).
    first: [u32; LENGTH_MAX + 1],
    count: [u32; LENGTH_MAX + 1],
    place: [u32; LENGTH_MAX + 1],
    /// For each value of `SHORT_BITS` bits, the byte whose code is at the start of the value, and
    /// the length of the code. The length is 0 if the code is longer than `SHORT_BITS`.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static HUFFMAN_TABLES: HuffmanTables = build_huffman_tables();

const fn build_huffman_tables() -> HuffmanTables {
    let mut t = HuffmanTables {
        codes: [0; 256],
        order: [0; 256],
        first: [0; LENGTH_MAX + 1],
        count: [0; LENGTH_MAX + 1],
        place: [0; LENGTH_MAX + 1],
        short: [(0, 0); 1 << SHORT_BITS],
    };
    let (mut code, mut at, mut length) = (0u32, 0, 1);
    while length <= LENGTH_MAX {
        (t.first[length], t.place[length]) = (code, at as u32);
        let mut byte = 0;
        while byte < 256 {
            if CODE_LENGTHS_BITS[byte] as usize == length {
                t.codes[byte] = code;
                t.order[at] = byte as u8;
                if length as u32 <= SHORT_BITS {
                    let spare = SHORT_BITS - length as u32;
                    let mut rest = 0;
                    while rest < 1 << spare {
                        t.short[((code << spare) | rest) as usize] = (byte as u8, length as u8);
                        rest += 1;
                    }
                }
                code += 1;
                at += 1;
            }
            byte += 1;
        }
        t.count[length] = code - t.first[length];
        code <<= 1;
        length += 1;
    }
    t
}

/// Decodes `coded` and appends the text to `out`. Returns `None` if the code or the padding after
/// it is invalid.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    // `bits` contains the next coded bits, with the first coded bit as the highest bit of the
    // number.
    let (mut bits, mut count) = (0u64, 0u32);
    let mut rest = coded.iter();
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        if count == 0 {
            return Some(());
        }
        let (byte, length) = match HUFFMAN_TABLES.short[(bits >> (64 - SHORT_BITS)) as usize] {
            (_, 0) => long_code(bits, count)?,
            (byte, length) => (byte, u32::from(length)),
        };
        if length > count {
            // The padding after the last code must consist of ones and be shorter than a byte.
            return check_padding(bits, count);
        }
        if length == 0 {
            return check_padding(bits, count);
        }
        out.push(byte);
        bits <<= length;
        count -= length;
    }
}

/// Decodes the code of more than `SHORT_BITS` bits at the front of `bits`, of which `count` bits
/// are valid. Returns the decoded byte and the length of the code; the length is 0 if the code is
/// incomplete.
fn long_code(bits: u64, count: u32) -> Option<(u8, u32)> {
    for length in SHORT_BITS as usize + 1..=LENGTH_MAX {
        if length as u32 > count {
            return Some((0, 0));
        }
        let above = ((bits >> (64 - length)) as u32).wrapping_sub(HUFFMAN_TABLES.first[length]);
        if above < HUFFMAN_TABLES.count[length] {
            return Some((HUFFMAN_TABLES.order[(HUFFMAN_TABLES.place[length] + above) as usize], length as u32));
        }
    }
    // The code is the end-of-string symbol, which no text may contain.
    None
}

fn check_padding(bits: u64, count: u32) -> Option<()> {
    (count < 8 && bits >> (64 - count) == (1 << count) - 1).then_some(())
}

/// Returns the length in bytes of the encoded `text`.
pub(super) fn coded_len(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(CODE_LENGTHS_BITS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Encodes `text` and appends the result to `out`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0u32);
    for byte in text {
        let length = u32::from(CODE_LENGTHS_BITS[usize::from(*byte)]);
        bits = bits << length | u64::from(HUFFMAN_TABLES.codes[usize::from(*byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huffman_texts_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        for text in [&b""[..], b"a", b"www.example.com", b"Mon, 21 Oct 2013 20:13:21 GMT", &all] {
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            encode(text, &mut coded);
            assert_eq!(coded.len(), coded_len(text));
            decode(&coded, &mut back).expect("valid");
            assert_eq!(back, text);
        }
    }

    #[test]
    fn invalid_huffman_padding_is_refused() {
        let decoded = |coded: &[u8]| {
            let mut out = Vec::new();
            decode(coded, &mut out).map(|()| out)
        };
        // The code of 'a' is 00011.
        assert_eq!(decoded(&[0b0001_1111]).as_deref(), Some(&b"a"[..]));
        assert_eq!(decoded(&[0b0001_1110]), None, "zeros as padding");
        assert_eq!(decoded(&[0b0001_1111, 0xff]), None, "a whole byte of padding");
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0xff; 4]), None, "the end of string");
        assert_eq!(decoded(&[0xff; 40]), None);
        assert_eq!(decoded(&[0xff, 0xc7, 0xff]), None, "cut in the midst of a code");
    }
}
