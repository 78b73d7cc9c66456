//! Seeded random numbers. Equal seeds give equal numbers on every machine and in every version,
//! because the schedules of a load must be equal everywhere. The random numbers are predictable, so
//! secrets must not be generated with them.

/// The generator SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

/// Returns the output of SplitMix64 for the state `z`. The function is a bijection that maps
/// neighbouring inputs to unrelated outputs.
#[inline]
pub fn mix_bits(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// Creates a generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Rng { state: seed }
    }

    /// Creates the generator for stream number `stream` of `seed`. Streams are independent of each
    /// other, so that a caller can compute the values of different streams in any order.
    pub fn for_stream(seed: u64, stream: u64) -> Self {
        Rng { state: mix_bits(seed ^ mix_bits(stream.wrapping_add(0x9E37_79B9_7F4A_7C15))) }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix_bits(self.state)
    }

    /// Returns a uniform number in [0, 1) with 53 random bits.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniform number in (0, 1]. Zero is excluded, so that callers can take the
    /// logarithm.
    #[inline]
    pub fn next_f64_above_zero(&mut self) -> f64 {
        1.0 - self.next_f64()
    }

    /// Returns a uniform integer in 0..bound (bound > 0), by the multiply-shift method. The bias is
    /// below 2^-32 for bounds below 2^32.
    #[inline]
    pub fn uniform_below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns an exponentially distributed number with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -self.next_f64_above_zero().ln()
    }

    /// Returns a Poisson distributed number with the given mean. The distribution is exact, not an
    /// approximation: the result is the number of arrivals before time `mean` in a Poisson process
    /// of rate 1. Knuth's product method counts the arrivals in time slices of length 16, so that
    /// no product underflows.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        let mut left = mean;
        let mut count = 0;
        while left > 0.0 {
            let slice = left.min(16.0);
            let floor = (-slice).exp();
            let mut product = self.next_f64_above_zero();
            while product > floor {
                count += 1;
                product *= self.next_f64_above_zero();
            }
            left -= slice;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rng_produces_the_published_sequence() {
        // Reference outputs of SplitMix64 for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        for expect in [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423] {
            assert_eq!(rng.next_u64(), expect);
        }
    }

    #[test]
    fn random_distributions_have_the_expected_moments() {
        let mut rng = Rng::new(7);
        let n = 200_000;
        let mean = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "exponential mean {mean}");
        for lambda in [0.5, 16.0, 300.0] {
            let draws: Vec<f64> = (0..20_000).map(|_| rng.poisson(lambda) as f64).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            assert!((mean / lambda - 1.0).abs() < 0.03, "poisson {lambda}: mean {mean}");
            assert!((variance / lambda - 1.0).abs() < 0.06, "poisson {lambda}: variance {variance}");
        }
    }
}
