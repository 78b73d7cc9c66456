//! An allocator that counts the allocated bytes of each thread. Tests use this allocator to measure
//! the memory of a parser, independent of the machine.
//!
//! Not here: allocations of plimsoll itself, whose binary uses the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counts for each thread. A test sets this allocator as its
/// `#[global_allocator]`.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator;

/// The memory that one thread allocated during a call of [`count_allocations`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Allocations {
    /// The number of allocator calls that allocated or resized memory.
    pub count: u64,
    /// The sum of the bytes that were requested by allocator calls that allocated or resized
    /// memory.
    pub bytes: u64,
    /// The largest number of bytes allocated at one time during the call of [`count_allocations`],
    /// minus the bytes allocated before the call.
    pub peak_bytes: u64,
}

thread_local! {
    static CALL_ALLOCATIONS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0, peak_bytes: 0 }) };
    /// The number of bytes allocated now, minus the bytes allocated before the call of
    /// [`count_allocations`]. The number may be negative, because this thread may free memory of
    /// another thread.
    static ALLOCATED_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Calls `act`, and returns its result with the allocations of this thread during the call. The
/// counts of allocations are 0 unless [`CountingAllocator`] is the global allocator.
pub fn count_allocations<T>(act: impl FnOnce() -> T) -> (T, Allocations) {
    CALL_ALLOCATIONS.set(Allocations::default());
    ALLOCATED_BYTES.set(0);
    let result = act();
    (result, CALL_ALLOCATIONS.get())
}

fn record_allocation(taken: usize, given_back: usize) {
    // A thread that is ending no longer has its counters, so access errors are ignored.
    let _ = ALLOCATED_BYTES.try_with(|held| {
        held.set(held.get() + taken as i64 - given_back as i64);
        let _ = CALL_ALLOCATIONS.try_with(|counted| {
            let mut now = counted.get();
            now.count += u64::from(taken > 0);
            now.bytes += taken as u64;
            now.peak_bytes = now.peak_bytes.max(held.get().max(0) as u64);
            counted.set(now);
        });
    });
}

// SAFETY: every call is passed unchanged to the system's allocator, and the counting allocates no
// memory.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size(), 0);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        record_allocation(0, layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size(), 0);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record_allocation(size, layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}
