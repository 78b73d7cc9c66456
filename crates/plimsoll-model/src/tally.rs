//! Counts by a 16-bit number as key, such as the number of responses by status. A tally has few
//! keys, and one key is far more frequent than all other keys.

/// Pairs of a key and its count, ascending by key. In a stored tally every count is above 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountsByKey(Vec<(u16, u64)>);

impl CountsByKey {
    /// Adds `count` to the count of `key`.
    #[inline]
    pub fn add(&mut self, key: u16, count: u64) {
        match self.0.first_mut() {
            Some((first, mine)) if *first == key => *mine += count,
            _ => self.add_to_other_key(key, count),
        }
    }

    fn add_to_other_key(&mut self, key: u16, count: u64) {
        match self.0.binary_search_by_key(&key, |(mine, _)| *mine) {
            Ok(at) => self.0[at].1 += count,
            Err(at) => self.0.insert(at, (key, count)),
        }
    }

    /// Returns the count of `key`.
    pub fn get(&self, key: u16) -> u64 {
        self.0.iter().find(|(mine, _)| *mine == key).map_or(0, |(_, count)| *count)
    }

    /// Returns the keys with their counts, ascending by key.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// Returns whether the tally has no keys. After [`CountsByKey::take`] the keys remain,
    /// so the tally is not empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &CountsByKey) {
        other.iter().for_each(|(key, count)| self.add(key, count));
    }

    /// Returns the counts and sets the counts in this tally to 0. The keys stay, so that later
    /// counting allocates no memory.
    pub fn take(&mut self) -> CountsByKey {
        let counted = CountsByKey(self.iter().filter(|(_, count)| *count > 0).collect());
        self.0.iter_mut().for_each(|(_, count)| *count = 0);
        counted
    }
}

impl FromIterator<(u16, u64)> for CountsByKey {
    fn from_iter<I: IntoIterator<Item = (u16, u64)>>(counts: I) -> CountsByKey {
        let mut tally = CountsByKey::default();
        counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(key, count)| tally.add(key, count));
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_counts_are_sorted_by_key() {
        let mut tally = CountsByKey::default();
        [404, 200, 200, 503, 200].into_iter().for_each(|status| tally.add(status, 1));
        assert_eq!(tally.iter().collect::<Vec<_>>(), [(200, 3), (404, 1), (503, 1)]);
        assert_eq!((tally.get(200), tally.get(201), tally.total()), (3, 0, 5));
        let taken = tally.take();
        assert_eq!(taken.total(), 5);
        tally.add(404, 2);
        assert_eq!(tally.take(), CountsByKey::from_iter([(404, 2)]));
        assert!(tally.take().is_empty());
    }
}
