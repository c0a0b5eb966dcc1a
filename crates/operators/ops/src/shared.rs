//! A slice that threads write disjoint parts of.

use std::marker::PhantomData;

/// A mutable slice whose disjoint ranges several threads write at once.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for a mutable slice, which may go to another thread where its elements may; all access goes through
// `range`, whose callers promise that ranges in use at one time are disjoint, so that no element has two threads.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above: a reference to it gives no more than a copy does.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// How many elements it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where an element is, or would be.
    pub(crate) fn address(&self, at: usize) -> *const T {
        self.start.wrapping_add(at)
    }

    /// Elements `at..at + count`.
    ///
    /// # Safety
    ///
    /// No two ranges in use at one time overlap.
    ///
    /// # Panics
    ///
    /// The range is not inside of the slice.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn range(&self, at: usize, count: usize) -> &'a mut [T] {
        assert!(at.checked_add(count).is_some_and(|end| end <= self.len), "a part outside of the slice");
        // SAFETY: inside of the slice that `new` borrowed mutably; disjoint from other ranges by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), count) }
    }

    /// All elements, to be read.
    ///
    /// # Safety
    ///
    /// No [`range`](Shared::range) is in use at the same time.
    pub(crate) unsafe fn all(&self) -> &'a [T] {
        // SAFETY: the slice that `new` borrowed mutably; nothing writes it by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}
