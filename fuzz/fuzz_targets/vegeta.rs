//! Fuzzes results of vegeta by coverage, in whichever encoding the first byte says: they are read or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_traffic::vegeta::{VegetaFigures, VegetaReader};

fuzz_target!(|data: &[u8]| {
    let (mut reader, mut figures) = (VegetaReader::new(data), VegetaFigures::new(&[0, 1_000_000]));
    while let Ok(Some(result)) = reader.next_result() {
        figures.add(&result);
    }
    let _ = figures.quantile_ns(0.5);
});
