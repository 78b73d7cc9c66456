//! Generates random command lines for tests of the parsers in this crate.
//!
//! Not here: the parsers themselves.

/// Returns a random command line: words from the list `vocabulary`, and odd words that are no
/// flags. The same `seed` always gives the same result.
pub fn random_command_line(seed: u64, vocabulary: &[&str]) -> Vec<String> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let odd = [
        "",
        "-",
        "--",
        "=",
        ":",
        "\u{1}",
        "é",
        "0",
        "18446744073709551616",
        "-1",
        "1e9",
        "http://h/",
        "a: b",
        "a:\r\nb",
        "@x",
    ];
    (0..draw(9))
        .map(|_| {
            let mut word = if draw(3) > 0 {
                vocabulary[draw(vocabulary.len())].to_owned()
            } else {
                odd[draw(odd.len())].to_owned()
            };
            if draw(4) == 0 {
                word += odd[draw(odd.len())];
            }
            word
        })
        .collect()
}
