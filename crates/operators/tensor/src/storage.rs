//! Storage of the elements.

use std::sync::Arc;

use crate::Element;

/// Bytes that storage is aligned to: a cache line, and the widest vector.
pub(crate) const ALIGNMENT: usize = 64;

/// Elements, the first of which is at a multiple of 64 bytes.
#[derive(Debug)]
pub struct Storage<T> {
    /// Includes padding for the alignment: elements before `start` are unused.
    elements: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Element> Storage<T> {
    /// Zeros.
    #[must_use]
    pub fn zeros(len: usize) -> Storage<T> {
        let spare = ALIGNMENT / size_of::<T>() - 1;
        let elements = vec![T::default(); len + spare];
        // The offset can exceed `spare` only where pointers have no address.
        let start = elements.as_ptr().align_offset(ALIGNMENT).min(spare);
        Storage { elements, start, len }
    }

    /// A copy of these.
    #[must_use]
    pub fn copied(elements: &[T]) -> Storage<T> {
        let mut storage = Storage::zeros(elements.len());
        storage.as_mut_slice().copy_from_slice(elements);
        storage
    }

    /// All elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.elements[self.start..self.start + self.len]
    }

    /// All elements.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.elements[self.start..self.start + self.len]
    }
}

impl<T: Element> From<Vec<T>> for Storage<T> {
    /// Takes the vector over where it happens to be aligned, and copies it otherwise.
    fn from(elements: Vec<T>) -> Storage<T> {
        if elements.as_ptr().align_offset(ALIGNMENT) == 0 {
            return Storage { start: 0, len: elements.len(), elements };
        }
        Storage::copied(&elements)
    }
}

/// A way to hold elements: shared, borrowed, or borrowed mutably.
pub trait Data {
    /// Type of the elements.
    type Elem: Element;
    /// Whether elements can be written; then no two may share one place in memory.
    const MUTABLE: bool;

    /// All elements held, in memory order.
    fn elements(&self) -> &[Self::Elem];
}

impl<T: Element> Data for Arc<Storage<T>> {
    type Elem = T;
    const MUTABLE: bool = false;

    fn elements(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> Data for &[T] {
    type Elem = T;
    const MUTABLE: bool = false;

    fn elements(&self) -> &[T] {
        self
    }
}

impl<T: Element> Data for &mut [T] {
    type Elem = T;
    const MUTABLE: bool = true;

    fn elements(&self) -> &[T] {
        self
    }
}
