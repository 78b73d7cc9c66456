//! Parts of a schedule ([`Stripe`]): the arrivals or users of one worker or machine.
//!
//! Stripes partition the items 0, 1, 2, ... of a schedule exactly, so that no item belongs to two
//! workers or machines. Each of k equal parts takes every k-th item. Unequal parts repeat a pattern
//! of at most [`PATTERN_ITEMS_MAX`] items, with the items of each part spread evenly. Not here:
//! when an item starts.

/// The maximum number of items of the pattern that unequal parts repeat. A pattern has as many
/// items as the sum of the weights divided by their common divisor.
pub const PATTERN_ITEMS_MAX: u64 = 128;

/// A part of a schedule: of every `equal_parts` items (arrivals or users), the item with the number
/// `index`. For unequal parts, `index` and `equal_parts` count only the items that the pattern
/// assigns to the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripe {
    /// Number of this part among the equal parts, from 0 to `equal_parts` - 1.
    pub index: u64,
    /// Number of equal parts.
    pub equal_parts: u64,
    pattern: StripePattern,
}

/// The items of one unequal part, as a repeating pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StripePattern {
    /// One bit for each item of the pattern: whether this part has the item.
    items: u128,
    /// Number of items after which the pattern repeats.
    period: u64,
    /// The number of this part among the `parts` unequal parts, from 0.
    part: u64,
    parts: u64,
}

impl StripePattern {
    /// The pattern of a part that has all items.
    const ALL_ITEMS: StripePattern = StripePattern { items: 1, period: 1, part: 0, parts: 1 };

    fn has_all_items(self) -> bool {
        self.period == 1
    }

    /// Returns the number of this part's items in one repetition of the pattern.
    fn items_per_period(self) -> u64 {
        u64::from(self.items.count_ones())
    }

    fn contains_item(self, n: u64) -> bool {
        self.items >> (n % self.period) & 1 == 1
    }

    /// Returns how many of the items 0..n belong to this part.
    fn count_items_below(self, n: u64) -> u64 {
        let before = self.items & ((1u128 << (n % self.period)) - 1);
        n / self.period * self.items_per_period() + u64::from(before.count_ones())
    }

    /// Returns the number, in the whole schedule, of this part's k-th item.
    fn nth_item(self, k: u64) -> u64 {
        let (mut bits, mut left, mut at) = (self.items, (k % self.items_per_period()) as u32, 0);
        for half in [64, 32, 16, 8, 4, 2, 1] {
            let low = (bits & ((1u128 << half) - 1)).count_ones();
            if left >= low {
                (left, bits, at) = (left - low, bits >> half, at + half);
            }
        }
        k / self.items_per_period() * self.period + at
    }
}

impl Stripe {
    /// The whole schedule.
    pub const WHOLE_SCHEDULE: Stripe = Stripe::new(0, 1);

    /// Creates part `index` of `parts` equal parts of the whole schedule.
    pub const fn new(index: u64, parts: u64) -> Stripe {
        Stripe { index, equal_parts: parts, pattern: StripePattern::ALL_ITEMS }
    }

    /// Creates part `index` of the parts with the weights `weights`. `None` means that
    /// [`reduce_weights`] refuses the weights, or that no weight has the index `index`.
    pub fn weighted(index: usize, weights: &[u32]) -> Option<Stripe> {
        let weights = reduce_weights(weights)?;
        if index >= weights.len() {
            return None;
        }
        if weights.iter().all(|weight| *weight == 1) {
            return Some(Stripe::new(index as u64, weights.len() as u64));
        }
        let period = weights.iter().sum::<u64>();
        // Each item of the pattern goes to the part whose number of items is furthest below its
        // weighted share.
        let mut credit = vec![0i64; weights.len()];
        let mut items = 0u128;
        for item in 0..period {
            credit.iter_mut().zip(&weights).for_each(|(credit, weight)| *credit += *weight as i64);
            let next = (0..credit.len()).max_by_key(|part| (credit[*part], std::cmp::Reverse(*part)))?;
            credit[next] -= period as i64;
            items |= u128::from(next == index) << item;
        }
        let (part, parts) = (index as u64, weights.len() as u64);
        Some(Stripe { index: 0, equal_parts: 1, pattern: StripePattern { items, period, part, parts } })
    }

    /// Divides this stripe into `parts` equal parts, and returns the part with the number `index`.
    pub fn split(self, index: u64, parts: u64) -> Stripe {
        Stripe {
            index: self.index + self.equal_parts * index,
            equal_parts: self.equal_parts * parts,
            pattern: self.pattern,
        }
    }

    /// Returns a number that is unique among the stripes that partition a schedule.
    pub fn unique_number(self) -> u64 {
        self.pattern.part + self.pattern.parts * self.index
    }

    /// Returns whether this stripe (part of the schedule) has item n.
    pub fn contains_item(self, n: u64) -> bool {
        self.pattern.contains_item(n) && self.pattern.count_items_below(n) % self.equal_parts == self.index
    }

    /// Returns how many of the items 0..n belong to this stripe (part of the schedule).
    pub fn count_items_below(self, n: u64) -> u64 {
        let n = if self.pattern.has_all_items() { n } else { self.pattern.count_items_below(n) };
        (n + self.equal_parts - 1 - self.index) / self.equal_parts
    }

    /// Returns the number, in the whole schedule, of this stripe's k-th item.
    #[inline]
    pub fn nth_item(self, k: u64) -> u64 {
        let n = self.index + self.equal_parts * k;
        if self.pattern.has_all_items() { n } else { self.pattern.nth_item(n) }
    }

    /// Returns the number, in the whole schedule, of the item that follows item n in this stripe.
    #[inline]
    pub fn next_item_after(self, n: u64) -> u64 {
        if self.pattern.has_all_items() {
            n + self.equal_parts
        } else {
            self.pattern.nth_item(self.pattern.count_items_below(n) + self.equal_parts)
        }
    }

    /// Returns the maximum number of items that this stripe can have among any `count` consecutive
    /// items.
    pub fn items_max_among(self, count: u64) -> u64 {
        count.saturating_mul(self.pattern.items_per_period()).div_ceil(self.pattern.period * self.equal_parts)
    }

    /// Returns the approximate number of items in the whole schedule if this stripe has `count`
    /// items.
    pub fn estimate_schedule_items(self, count: u64) -> u64 {
        count.saturating_mul(self.pattern.period * self.equal_parts) / self.pattern.items_per_period()
    }

    /// Returns the share of all items that this stripe has, 0..=1.
    pub fn share(self) -> f64 {
        self.pattern.items_per_period() as f64 / self.pattern.period as f64 / self.equal_parts as f64
    }
}

/// Returns the weights divided by their common divisor. `None` means that there are no weights,
/// that a weight is zero, or that the pattern would exceed [`PATTERN_ITEMS_MAX`].
pub fn reduce_weights(weights: &[u32]) -> Option<Vec<u64>> {
    let divisor = weights.iter().fold(0, |a, b| common_divisor(a, u64::from(*b)));
    if divisor == 0 || weights.contains(&0) {
        return None;
    }
    let reduced: Vec<u64> = weights.iter().map(|weight| u64::from(*weight) / divisor).collect();
    // Equal parts need no pattern, so their number has no limit.
    let fits = reduced.iter().all(|weight| *weight == 1) || reduced.iter().sum::<u64>() <= PATTERN_ITEMS_MAX;
    fits.then_some(reduced)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn items_of_a_stripe_are_evenly_spread() {
        let letters = |weights: &[u32]| {
            let parts: Vec<Stripe> =
                (0..weights.len()).map(|index| Stripe::weighted(index, weights).expect("a partition")).collect();
            let letter =
                |n| parts.iter().position(|part| part.contains_item(n)).map_or('-', |part| (b'a' + part as u8) as char);
            (0..12).map(letter).collect::<String>()
        };
        assert_eq!(letters(&[2, 1]), "abaabaabaaba");
        assert_eq!(letters(&[2, 1, 1]), "abcaabcaabca");
        assert_eq!(letters(&[4, 1, 1]), "aabacaaabaca");
        assert_eq!(letters(&[300, 100]), "aabaaabaaaba");
        assert_eq!(letters(&[7, 7, 7]), "abcabcabcabc");
        assert_eq!(Stripe::weighted(1, &[5, 5]), Some(Stripe::new(1, 2)));
        let share = Stripe::weighted(0, &[2, 1, 1]).expect("a part").split(1, 2).share();
        assert!((share - 0.25).abs() < 1e-9, "{share}");
        let half = Stripe::weighted(0, &[2, 1, 1]).expect("a part");
        assert_eq!(
            (half.items_max_among(9), half.estimate_schedule_items(5), half.split(0, 2).items_max_among(9)),
            (5, 10, 3)
        );
        assert_eq!((Stripe::new(0, 3).items_max_among(10), Stripe::new(0, 3).estimate_schedule_items(4)), (4, 12));
    }

    #[test]
    fn weights_without_a_pattern_give_no_stripe() {
        for weights in [&[][..], &[0], &[2, 0], &[128, 1], &[u32::MAX, 1]] {
            assert_eq!(Stripe::weighted(0, weights), None, "{weights:?}");
        }
        assert!(Stripe::weighted(0, &[127, 1]).is_some() && Stripe::weighted(2, &[127, 1]).is_none());
        assert_eq!(Stripe::weighted(999, &[3; 1_000]), Some(Stripe::new(999, 1_000)), "equal parts have no limit");
    }

    proptest! {
        #[test]
        fn nested_stripes_form_a_partition(n in 0u64..1000, weights in prop::collection::vec(1u32..25, 1..6), b in 1u64..6) {
            let (mut held, mut numbers) = (0, Vec::new());
            for index in 0..weights.len() {
                for j in 0..b {
                    let stripe = Stripe::weighted(index, &weights).expect("a part").split(j, b);
                    let items: Vec<u64> = (0..n).filter(|item| stripe.contains_item(*item)).collect();
                    prop_assert_eq!(stripe.count_items_below(n), items.len() as u64);
                    for (k, item) in items.iter().enumerate() {
                        prop_assert_eq!(stripe.nth_item(k as u64), *item);
                    }
                    prop_assert!(items.windows(2).all(|pair| stripe.next_item_after(pair[0]) == pair[1]));
                    held += stripe.count_items_below(n);
                    numbers.push(stripe.unique_number());
                }
            }
            prop_assert_eq!(held, n);
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len() as u64, weights.len() as u64 * b);
        }

        #[test]
        fn a_stripe_is_always_close_to_its_share(weights in prop::collection::vec(1u32..30, 2..5), n in 1u64..2000) {
            let sum: u32 = weights.iter().sum();
            for (index, weight) in weights.iter().enumerate() {
                let count = Stripe::weighted(index, &weights).expect("a part").count_items_below(n) as f64;
                let share = n as f64 * f64::from(*weight) / f64::from(sum);
                prop_assert!((count - share).abs() <= weights.len() as f64, "{count} of {share}");
            }
        }
    }
}
