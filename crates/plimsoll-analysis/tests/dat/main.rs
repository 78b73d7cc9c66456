//! Fuzz tests of the parser of `.dat` files with fixed seeds. The texts resemble `.dat` files, but
//! are partly damaged.

mod driver;

use plimsoll_analysis::levels::{DatError, Level, parse_dat};
use plimsoll_model::rng::Rng;

const DAT_TEXT_PIECES: [&str; 24] = [
    "200",
    "13000.5",
    "15.2",
    "100",
    "99.98",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "#",
    "concurrency qps",
    "%",
    "ms",
    "-1",
    "nan",
    "inf",
    "1e308",
    "1e-320",
    "0",
    "\u{feff}",
    "é",
    ",",
    "1e999",
];

fn random_dat_text(rng: &mut Rng) -> String {
    let mut out = String::new();
    for _ in 0..rng.uniform_below(40) {
        if rng.uniform_below(3) == 0 {
            out.push_str(&format!(
                "{} {} {} {}\n",
                rng.uniform_below(9),
                rng.uniform_below(99_999),
                rng.uniform_below(999),
                rng.uniform_below(103)
            ));
        } else {
            out.push_str(DAT_TEXT_PIECES[rng.uniform_below(DAT_TEXT_PIECES.len() as u64) as usize]);
        }
    }
    out
}

#[test]
fn any_dat_text_is_parsed_or_refused() {
    for seed in 0..20_000 {
        let text = random_dat_text(&mut Rng::new(seed));
        driver::check_reader(parse_dat, &text).unwrap_or_else(|what| panic!("seed {seed}: {what}\n{text:?}"));
    }
}

#[test]
fn the_driver_detects_a_wrong_reader() {
    fn drop_last_level(text: &str) -> Result<Vec<Level>, DatError> {
        parse_dat(text).map(|mut levels| {
            levels.pop();
            levels
        })
    }
    assert!(
        (0..2000).any(|seed| driver::check_reader(drop_last_level, &random_dat_text(&mut Rng::new(seed))).is_err())
    );
}
