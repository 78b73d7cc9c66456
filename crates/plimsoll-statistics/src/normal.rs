//! The normal distribution, for likelihoods that are computed many times.
//!
//! Not here: p-values and quantiles that are computed once ([`crate::basics`]).

/// Returns the density of the standard normal distribution at `z`.
pub fn normal_density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// From this value on, the upper tail counts as 0: it is below 1e-18.
const UPPER_TAIL_Z_MAX: f64 = 9.0;

/// Returns the probability that a standard normal variable exceeds `z` (error below 1e-7).
pub fn upper_tail(z: f64) -> f64 {
    if z > UPPER_TAIL_Z_MAX { 0.0 } else { normal_density_and_upper_tail(z).1 }
}

/// Returns the density of the standard normal distribution at `z`, and the probability that a
/// standard normal variable exceeds `z`. The error is below 1e-7 (Zelen and Severo, 26.2.17 of
/// Abramowitz and Stegun).
pub fn normal_density_and_upper_tail(z: f64) -> (f64, f64) {
    let density = normal_density(z);
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let poly =
        t * (0.319_381_53 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = density * poly;
    (density, if z < 0.0 { 1.0 - tail } else { tail })
}

/// Returns the `p` quantile of the standard normal distribution (Acklam's rational approximation,
/// relative error below 1.2e-9).
pub fn normal_quantile(p: f64) -> f64 {
    let p = p.clamp(1e-6, 1.0 - 1e-6);
    let tail = |q: f64| {
        let c = [
            -7.784894002430293e-3,
            -0.3223964580411365,
            -2.400758277161838,
            -2.549732539343734,
            4.374664141464968,
            2.938163982698783,
        ];
        let d = [7.784695709041462e-3, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
        (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5])
            / ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1.0)
    };
    if p < 0.02425 {
        return tail((-2.0 * p.ln()).sqrt());
    }
    if p > 1.0 - 0.02425 {
        return -tail((-2.0 * (1.0 - p).ln()).sqrt());
    }
    let a = [
        -39.69683028665376,
        220.9460984245205,
        -275.9285104469687,
        138.357_751_867_269,
        -30.66479806614716,
        2.506628277459239,
    ];
    let b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572];
    let q = p - 0.5;
    let r = q * q;
    (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q
        / (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1.0)
}
