//! A slice of which threads write disjoint parts.

use std::marker::PhantomData;

/// A mutable slice whose disjoint ranges several threads write concurrently.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: it represents a mutable slice, which may move to another thread if its elements may; all access goes through
// `range`, whose callers promise that ranges in use at the same time are disjoint, so that two threads never share an
// element.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above: a reference to it gives no more than a copy does.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Address of an element, in or out of bounds.
    pub(crate) fn address(&self, at: usize) -> *const T {
        self.start.wrapping_add(at)
    }

    /// Returns elements `at..at + count`.
    ///
    /// # Safety
    ///
    /// No two ranges that are in use at the same time overlap.
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

    /// Returns all elements, for reading.
    ///
    /// # Safety
    ///
    /// No [`range`](Shared::range) is in use at the same time.
    pub(crate) unsafe fn all(&self) -> &'a [T] {
        // SAFETY: the slice that `new` borrowed mutably; nothing writes it by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}
