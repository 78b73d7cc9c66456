//! Counts many distinct items in bounded memory by lossy counting (Manku and Motwani 2002). If
//! there are too many distinct items, the rarest items are dropped. A dropped item may occur again,
//! so its later count may be too low. The largest possible error of a count is known. An item that
//! is frequent from the beginning keeps an exact count.

use super::hashing::HashKeyMap;

/// Counts of items, which are identified by hashes. Each stored item has a value, such as its text.
#[derive(Debug, Clone)]
pub(super) struct FrequentItemCounter<V> {
    items: HashKeyMap<CountedItem<V>>,
    items_max: usize,
    /// The largest count that any dropped item may have had.
    dropped_count_max: u64,
}

/// An item with its count.
#[derive(Debug, Clone)]
pub(super) struct CountedItem<V> {
    /// The number of occurrences since the item was last inserted.
    pub count: u64,
    /// The largest number of occurrences that the item may have had before it was inserted.
    before_max: u64,
    /// The value of the item, such as its text.
    pub value: V,
}

impl<V> FrequentItemCounter<V> {
    /// Creates an empty counter that stores at most `most` items.
    pub fn new(most: usize) -> FrequentItemCounter<V> {
        FrequentItemCounter { items: HashKeyMap::default(), items_max: most, dropped_count_max: 0 }
    }

    /// Counts one occurrence of the item with this hash. `value` creates the value of an item that
    /// is not stored.
    #[inline]
    pub fn add(&mut self, hash: u64, value: impl FnOnce() -> V) {
        if let Some(seen) = self.items.get_mut(&hash) {
            seen.count += 1;
            return;
        }
        if self.items.len() >= self.items_max {
            self.drop_rarest();
        }
        self.items.insert(hash, CountedItem { count: 1, before_max: self.dropped_count_max, value: value() });
    }

    /// Drops all items whose count is at most the median count, which is at least half of the
    /// items.
    fn drop_rarest(&mut self) {
        let mut counts: Vec<u64> = self.items.values().map(|seen| seen.count + seen.before_max).collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        self.dropped_count_max = *median;
        self.items.retain(|_, seen| seen.count + seen.before_max > self.dropped_count_max);
    }

    /// Returns the largest amount by which a count may be too low; 0 if all counts are exact.
    pub fn error_max(&self) -> u64 {
        self.dropped_count_max
    }

    /// Returns all stored items, in no particular order.
    pub fn items(&self) -> impl Iterator<Item = &CountedItem<V>> {
        self.items.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_items_keep_exact_counts() {
        let mut frequent = FrequentItemCounter::new(100);
        for turn in 0..10_000u64 {
            for heavy in 0..10 {
                frequent.add(heavy, || heavy);
            }
            frequent.add(1_000 + turn, || turn);
        }
        assert!(frequent.error_max() > 0);
        assert!(frequent.items().count() <= 100);
        let heavy = |seen: &&CountedItem<u64>| seen.value < 10 && seen.count == 10_000;
        assert_eq!(frequent.items().filter(heavy).count(), 10);
        let mut exact = FrequentItemCounter::new(100);
        (0..100u64).for_each(|n| exact.add(n % 50, || n));
        assert_eq!((exact.error_max(), exact.items().count()), (0, 50));
    }
}
