//! Golden values from SciPy 1.17.1.
//!
//! p: `permutation_test((x,), W, permutation_type='samples', n_resamples=inf)` with W the sum of the signed mean ranks of
//! |x| (`rankdata`), which for A, B and D is `wilcoxon(x, method='exact')` too. Estimate: `median` of all (x_i + x_j) / 2,
//! i <= j. Intervals: all centres m with `wilcoxon(x - m, method='exact').pvalue > alpha`, m between neighbouring averages.
//! The large sample: `wilcoxon(x, method='approx', correction=True)`. Normal: `norm.sf`, `norm.ppf`. Holm: by hand.

use plimsoll_analysis::prove::stats::{
    hodges_lehmann, holm, interval, median, normal_quantile, normal_tail, sign_flip_p,
};

const A: [f64; 10] = [0.031, -0.012, 0.054, 0.027, 0.048, -0.003, 0.019, 0.061, 0.036, 0.009];
/// With two disturbed blocks: the sign-flip test of the mean gives p = 0.21 here.
const B: [f64; 12] = [-0.052, -0.047, -0.061, -0.038, -0.31, -0.055, 0.012, -0.049, -0.066, -0.041, -0.058, 0.21];
/// With ties and zeros.
const C: [f64; 10] = [0.02, 0.02, -0.02, 0.0, 0.04, 0.04, -0.01, 0.0, 0.03, 0.03];
const D: [f64; 8] = [0.011, -0.023, 0.004, 0.017, -0.009, 0.026, -0.031, 0.002];

fn close(got: f64, expect: f64, what: &str) {
    assert!((got - expect).abs() <= 1e-9 * expect.abs().max(1e-3), "{what}: {got}, expected {expect}");
}

#[test]
fn estimates_and_p() {
    for (name, values, estimate, p) in [
        ("A", &A[..], 0.0275, 0.013671875),
        ("B", &B, -0.04975, 0.0341796875),
        ("C", &C, 0.015, 0.078125),
        ("D", &D, 0.00125, 0.9453125),
    ] {
        close(hodges_lehmann(values).expect("values"), estimate, name);
        close(sign_flip_p(values), p, name);
    }
    let large: Vec<f64> =
        (0..300).map(|i| (f64::from(i * 7919 % 1009) - 480.0) / 1009.0 + f64::from(i) * 1e-6).collect();
    close(hodges_lehmann(&large).expect("values"), 0.024899006937561946, "large");
    assert!((sign_flip_p(&large) - 0.13449935648867176).abs() < 1e-7, "{}", sign_flip_p(&large));
    assert_eq!((hodges_lehmann(&[]), sign_flip_p(&[]), sign_flip_p(&[0.0, 0.0])), (None, 1.0, 1.0));
    assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (Some(2.0), Some(2.5), None));
}

#[test]
fn intervals() {
    for (name, values, alpha, expect) in [
        ("A", &A[..], 0.05, Some((0.009, 0.045))),
        ("A", &A, 0.03, Some((0.0075, 0.048))),
        ("A", &A, 0.01, Some((-0.0015, 0.054))),
        ("B", &B, 0.05, Some((-0.062, -0.0145))),
        ("B", &B, 0.03, Some((-0.066, 0.012))),
        ("B", &B, 0.01, Some((-0.1785, 0.0775))),
        ("D", &D, 0.05, Some((-0.02, 0.017))),
        ("D", &D, 0.03, Some((-0.023, 0.0185))),
        ("D", &D, 0.01, Some((-0.031, 0.026))),
        // Six values reject at 2/64 at best.
        ("six", &A[..6], 0.0313, Some((-0.012, 0.054))),
        ("six", &A[..6], 0.0312, None),
        ("none", &[], 0.05, None),
    ] {
        match (interval(values, alpha), expect) {
            (Some(got), Some((lower, upper))) => {
                close(got.lower, lower, name);
                close(got.upper, upper, name);
            }
            (got, expect) => assert!(got.is_none() && expect.is_none(), "{name} at {alpha}: {got:?}"),
        }
    }
}

#[test]
fn normal_and_holm() {
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
        assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}: {}", normal_quantile(p));
    }
    assert_eq!(holm(&[0.04, 0.01, 0.3]), [0.08, 0.03, 0.3]);
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert_eq!(holm(&[]), [0.0; 0]);
}
