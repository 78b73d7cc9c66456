//! How often each of many things was seen, in bounded memory: when there are too many, those seen
//! least are forgotten, and what is seen anew may have been forgotten so often before (lossy
//! counting; Manku and Motwani 2002). What is frequent keeps its exact count.

use super::hashing::HashKeyMap;

/// Counts by hash, with a value each.
#[derive(Debug, Clone)]
pub(super) struct Frequent<V> {
    seen: HashKeyMap<CountedItem<V>>,
    most: usize,
    /// Most times that anything may have been seen without being known now.
    forgotten_max: u64,
}

/// A thing that was seen.
#[derive(Debug, Clone)]
pub(super) struct CountedItem<V> {
    /// How often since it is known.
    pub count: u64,
    /// How often at most before that.
    before_max: u64,
    /// What it is.
    pub value: V,
}

impl<V> Frequent<V> {
    /// Knows at most `most` things at a time.
    pub fn new(most: usize) -> Frequent<V> {
        Frequent { seen: HashKeyMap::default(), most, forgotten_max: 0 }
    }

    /// Counts one thing; `value` is made where it is new.
    #[inline]
    pub fn add(&mut self, hash: u64, value: impl FnOnce() -> V) {
        if let Some(seen) = self.seen.get_mut(&hash) {
            seen.count += 1;
            return;
        }
        if self.seen.len() >= self.most {
            self.forget();
        }
        self.seen.insert(hash, CountedItem { count: 1, before_max: self.forgotten_max, value: value() });
    }

    /// Forgets the half that was seen least.
    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.seen.values().map(|seen| seen.count + seen.before_max).collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        self.forgotten_max = *median;
        self.seen.retain(|_, seen| seen.count + seen.before_max > self.forgotten_max);
    }

    /// Most times that a count may be too low; 0 while all are exact.
    pub fn error_max(&self) -> u64 {
        self.forgotten_max
    }

    /// Everything that is known, in no order.
    pub fn items(&self) -> impl Iterator<Item = &CountedItem<V>> {
        self.seen.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frequent_keeps_its_count() {
        let mut frequent = Frequent::new(100);
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
        let mut exact = Frequent::new(100);
        (0..100u64).for_each(|n| exact.add(n % 50, || n));
        assert_eq!((exact.error_max(), exact.items().count()), (0, 50));
    }
}
