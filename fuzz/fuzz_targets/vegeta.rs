//! Coverage-guided fuzzing of vegeta results, in the encoding that their first bytes indicate. The
//! input is parsed or refused. Parsed results that are written in any encoding must parse again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_logs::vegeta::{VegetaEncoding, VegetaFigures, VegetaReader, VegetaTimeSeries, VegetaWriter};

fuzz_target!(|data: &[u8]| {
    let (mut reader, mut figures) = (VegetaReader::new(data), VegetaFigures::new(&[0, 1_000_000]));
    let mut course = VegetaTimeSeries::default();
    while let Ok(Some(result)) = reader.next_result() {
        figures.add(&result);
        course.add(&result);
        for encoding in [VegetaEncoding::Gob, VegetaEncoding::Json, VegetaEncoding::Csv] {
            let mut out = Vec::new();
            VegetaWriter::new(encoding).write(&result, &mut out);
            let again = VegetaReader::new(&out[..]).next_result().expect("what was written is read").expect("a result");
            assert_eq!((again.code, again.seq), (result.code, result.seq));
        }
    }
    let _ = figures.quantile_ns(0.5);
    course.attacks().iter().for_each(|attack| drop(attack.interval_figures(150)));
});
