//! The counts of a histogram's buckets, with memory only for occupied ranges. The counts are stored
//! in pages of a quarter octave each, which are allocated at first use.

use super::geometry::BUCKET_COUNT;
use super::sparse::Bucket;
use std::ops::Range;

/// Number of buckets of a page, and also the number of pages. Both numbers are 256, so that an
/// index of one byte needs no bounds check.
const BUCKETS_PER_PAGE: usize = 1 << u8::BITS;
const _: () = assert!(BUCKET_COUNT <= BUCKETS_PER_PAGE * BUCKETS_PER_PAGE);

/// A count for each bucket, with memory only for occupied pages of buckets.
#[derive(Clone)]
pub(super) struct CountPages<C>([Option<Box<[C; BUCKETS_PER_PAGE]>>; BUCKETS_PER_PAGE]);

impl<C: Copy + Default + PartialOrd + Into<u64>> CountPages<C> {
    pub(super) fn new() -> CountPages<C> {
        CountPages([const { None }; BUCKETS_PER_PAGE])
    }

    /// Returns the mutable count of bucket `index`; its page is allocated at the first use.
    #[inline]
    pub(super) fn count_mut(&mut self, index: usize) -> &mut C {
        let [at, number] = (index as u16).to_le_bytes();
        let place = &mut self.0[usize::from(number)];
        let page = match place {
            Some(page) => page,
            None => new_page(place),
        };
        &mut page[usize::from(at)]
    }

    /// Returns the occupied buckets among those in `span`: (index, count), ascending.
    pub(super) fn occupied_buckets(&self, span: Range<usize>) -> impl Iterator<Item = (usize, C)> + '_ {
        let pages = span.start / BUCKETS_PER_PAGE..span.end.div_ceil(BUCKETS_PER_PAGE);
        let counts = pages.filter_map(|at| Some((at * BUCKETS_PER_PAGE, self.0[at].as_ref()?)));
        let counts =
            counts.flat_map(|(first, page)| page.iter().enumerate().map(move |(at, count)| (first + at, *count)));
        counts.filter(move |(index, count)| *count > C::default() && span.contains(index))
    }

    /// Returns the occupied buckets in `span`, ascending, and resets their counts to 0. The pages
    /// stay allocated for later values.
    pub(super) fn take_buckets(&mut self, span: Range<usize>) -> Vec<Bucket> {
        let first = span.start / BUCKETS_PER_PAGE;
        let (mut taken, mut length) = (Vec::new(), 0);
        for (at, page) in self.0[first..span.end.div_ceil(BUCKETS_PER_PAGE)].iter_mut().enumerate() {
            let Some(page) = page else { continue };
            taken.resize(length + BUCKETS_PER_PAGE, Bucket::EMPTY);
            // Each bucket is written to `taken`, and an empty bucket is overwritten by the next
            // bucket. The loop has no branch, because occupied buckets form no pattern that a
            // branch predictor could learn.
            for (index, count) in page.iter().enumerate() {
                taken[length] = Bucket::new((first + at) * BUCKETS_PER_PAGE + index, (*count).into());
                length += usize::from(*count > C::default());
            }
            page.fill(C::default());
        }
        taken.truncate(length);
        taken
    }

    /// Returns the memory of the allocated pages in bytes, without the memory of the `CountPages`
    /// struct itself.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.iter().flatten().count() * size_of::<[C; BUCKETS_PER_PAGE]>()
    }
}

#[cold]
#[inline(never)]
fn new_page<C: Copy + Default>(place: &mut Option<Box<[C; BUCKETS_PER_PAGE]>>) -> &mut [C; BUCKETS_PER_PAGE] {
    place.insert(Box::new([C::default(); BUCKETS_PER_PAGE]))
}
