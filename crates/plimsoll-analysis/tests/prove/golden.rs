//! Tests of statistics against known values. The values of the normal distribution come from SciPy
//! 1.17.1 (`norm.sf`, `norm.ppf`), and the values of coin throws come from SciPy's `binom.sf`. The
//! test for a trend is compared with the normal p-value of `kendalltau`, corrected for continuity
//! by hand. The expected values of Holm's method are computed by hand. The module `resample` tests
//! the effect that is estimated from all subsets of three blocks.

use plimsoll_statistics::basics::{
    fair_coin_tail, holm_adjusted_p, median, normal_tail, trend_p_value, upper_normal_quantile,
};

#[test]
fn median_matches_reference_values() {
    assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (Some(2.0), Some(2.5), None));
}

#[test]
fn normal_tails_and_holm_match_reference_values() {
    for (z, tail) in [
        (0.0, 0.5),
        (0.5, 0.3085375387259869),
        (1.0, 0.15865525393145707),
        (1.96, 0.024997895148220435),
        (2.99, 0.0013948872354922468),
        (3.01, 0.0013062384487694675),
        (5.0, 2.866515718791933e-07),
        (8.0, 6.22096057427174e-16),
    ] {
        assert!((normal_tail(z) / tail - 1.0).abs() < 1e-7, "{z}: {}", normal_tail(z));
    }
    for (p, z) in [(0.5, 0.0), (0.8, 0.8416212335729143), (0.975, 1.959963984540054), (0.9999, 3.719016485455709)] {
        assert!((upper_normal_quantile(p) - z).abs() < 1e-7, "{p}: {}", upper_normal_quantile(p));
    }
    assert_eq!(holm_adjusted_p(&[0.04, 0.01, 0.3]), [0.08, 0.03, 0.3]);
    assert_eq!(holm_adjusted_p(&[0.9, 0.8]), [1.0, 1.0]);
    assert_eq!(holm_adjusted_p(&[]), [0.0; 0]);
}

#[test]
fn coin_and_trend_tests_match_reference_values() {
    for (n, at_least, p) in [(5, 5, 1.0 / 32.0), (5, 0, 1.0), (10, 8, 56.0 / 1024.0), (0, 0, 1.0)] {
        assert!((fair_coin_tail(n, at_least) - p).abs() < 1e-12, "{n} {at_least}");
    }
    assert!((fair_coin_tail(2000, 1050) / 0.01342 - 1.0).abs() < 0.02, "{}", fair_coin_tail(2000, 1050));
    let rising: Vec<f64> = (0..20).map(f64::from).collect();
    let still: Vec<f64> = (0..20).map(|n| f64::from(n % 2)).collect();
    assert!(trend_p_value(&rising) < 1e-8 && trend_p_value(&still) > 0.1 && trend_p_value(&rising[..9]) == 1.0);
}
