//! An allocator that counts what is held.
#![allow(
    unsafe_code,
    reason = "to count bytes, a global allocator must stand between; it only adds and hands on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that are allocated now, each allocation rounded up as the usual allocator of Linux does: to a
/// multiple of 16, with a header of 8, and 32 at least.
pub(crate) fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

fn taken(size: usize) -> usize {
    (size + 8).next_multiple_of(16).max(32)
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(taken(layout.size()), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(taken(layout.size()), Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}
