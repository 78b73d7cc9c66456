//! The loads that a search tries near the line: a grid with steps of 1 %.

/// The highest power of the grid's step, 1 %.
pub(super) const STEP: f64 = 1.01;

/// The grid's index at or below `rate`.
pub(super) fn index_below(rate: f64) -> i32 {
    // The small addition undoes the rounding of the grid's own loads.
    (rate.ln() / STEP.ln() + 0.05).floor() as i32
}

/// The grid's load number `index`, with five significant digits.
pub(super) fn load_of(index: i32) -> f64 {
    let rate = STEP.powi(index);
    let places = 4 - rate.log10().floor() as i32;
    let power = 10f64.powi(places.abs());
    // By a whole power of ten either way: 2002.3, not 2002.3000000000002.
    if places > 0 { (rate * power).round() / power } else { (rate / power).round() * power }
}
