//! The rules that a parser of `.dat` files must obey for any text. The tests in this folder check
//! the rules with random texts, and the targets in `fuzz/` check the rules with texts guided by
//! code coverage.

use plimsoll_analysis::levels::{DatError, Level};

/// Parses `text` and checks the result. The figures of the parsed levels must be finite and not
/// negative. If the parsed levels are written and parsed again, the number of levels must stay the
/// same. An error must name an existing line of the text.
pub fn check_reader(parse: fn(&str) -> Result<Vec<Level>, DatError>, text: &str) -> Result<(), String> {
    match parse(text) {
        Err(DatError::Empty) => Ok(()),
        Err(DatError::Line(line, what)) if what.is_empty() || line == 0 || line > text.lines().count() => {
            Err(format!("line {line} of {}: '{what}'", text.lines().count()))
        }
        Err(DatError::Line(..)) => Ok(()),
        Ok(levels) if levels.is_empty() => Err("no level, and no error".into()),
        Ok(levels) => {
            let bad = |l: &&Level| {
                let finite = [l.load, l.rps, l.mean_ns].iter().all(|v| v.is_finite() && *v >= 0.0);
                !finite || l.load == 0.0 || !(0.0..=1.0).contains(&l.success_rate)
            };
            if let Some(level) = levels.iter().find(bad) {
                return Err(format!("{level:?} is no level"));
            }
            let line = |l: &Level| format!("{} {} {} {}\n", l.load, l.rps, l.mean_ns / 1e6, l.success_rate * 100.0);
            let written: String = levels.iter().map(line).collect();
            let again = parse(&written).map_err(|e| format!("written again: {e}\n{written}"))?;
            match again.len() == levels.len() {
                true => Ok(()),
                false => Err(format!("{} levels became {}", levels.len(), again.len())),
            }
        }
    }
}
