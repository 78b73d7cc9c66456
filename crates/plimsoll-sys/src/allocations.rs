//! An allocator that counts the bytes of each thread, so that a test can measure the memory of a
//! parser independent of the machine.
//!
//! Not here: any allocation of plimsoll itself. The binary uses the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a count for each thread. A test sets it as its
/// `#[global_allocator]`.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAllocator;

/// What one thread has allocated.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Allocations {
    /// Calls of the allocator that took memory, or moved it.
    pub count: u64,
    /// Bytes of all these calls together.
    pub bytes: u64,
    /// The most bytes at one time, beyond those at the beginning.
    pub peak_bytes: u64,
}

thread_local! {
    static COUNTED: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0, peak_bytes: 0 }) };
    /// Bytes now, beyond those at the beginning. Memory of another thread may be given back here,
    /// and makes it negative.
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// Calls `act`, and returns what it allocated on this thread. All zero unless [`CountingAllocator`]
/// is the allocator.
pub fn count_allocations<T>(act: impl FnOnce() -> T) -> (T, Allocations) {
    COUNTED.set(Allocations::default());
    HELD.set(0);
    let result = act();
    (result, COUNTED.get())
}

fn note(taken: usize, given_back: usize) {
    // A thread that ends has no counts any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + taken as i64 - given_back as i64);
        let _ = COUNTED.try_with(|counted| {
            let mut now = counted.get();
            now.count += u64::from(taken > 0);
            now.bytes += taken as u64;
            now.peak_bytes = now.peak_bytes.max(held.get().max(0) as u64);
            counted.set(now);
        });
    });
}

// SAFETY: every call is passed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller keeps what `GlobalAlloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: the caller keeps what `GlobalAlloc` asks for.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller keeps what `GlobalAlloc` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        // SAFETY: the caller keeps what `GlobalAlloc` asks for.
        unsafe { System.realloc(memory, layout, size) }
    }
}
