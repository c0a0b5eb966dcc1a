//! Borrowed views.

use std::borrow::Cow;

use crate::{Data, Element, Layout, Strided, TensorError};

/// A view of borrowed elements.
pub type View<'a, T> = Strided<&'a [T]>;

/// A view that writes. No two of its elements share one place in memory.
pub type ViewMut<'a, T> = Strided<&'a mut [T]>;

fn whole(shape: &[usize], len: usize) -> Result<Layout, TensorError> {
    let layout = Layout::contiguous(shape)?;
    if layout.len() != len {
        return Err(TensorError::Length { shape: shape.to_vec(), expected: layout.len(), len });
    }
    Ok(layout)
}

impl<S: Data> Strided<S> {
    /// A view of the same elements.
    #[must_use]
    pub fn view(&self) -> View<'_, S::Elem> {
        Strided { data: self.data.elements(), layout: self.layout.clone() }
    }
}

impl<'a, T: Element> View<'a, T> {
    /// All of a slice, row after row.
    ///
    /// # Errors
    ///
    /// The slice's length is not the product of the shape.
    pub fn from_slice(elements: &'a [T], shape: &[usize]) -> Result<View<'a, T>, TensorError> {
        Ok(Strided { layout: whole(shape, elements.len())?, data: elements })
    }

    /// The elements in order: borrowed where they are neighbours, copied where not.
    #[must_use]
    pub fn contiguous(&self) -> Cow<'a, [T]> {
        if self.is_contiguous() && !self.is_empty() {
            return Cow::Borrowed(&self.data[self.offset()..self.offset() + self.len()]);
        }
        Cow::Owned(self.to_vec())
    }

    /// All elements held, for as long as they are borrowed.
    #[must_use]
    pub fn into_elements(self) -> &'a [T] {
        self.data
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// All of a slice, row after row.
    ///
    /// # Errors
    ///
    /// The slice's length is not the product of the shape.
    pub fn from_mut_slice(elements: &'a mut [T], shape: &[usize]) -> Result<ViewMut<'a, T>, TensorError> {
        Ok(Strided { layout: whole(shape, elements.len())?, data: elements })
    }

    /// The same view for a shorter lifetime, so that this one can be used again afterwards.
    #[must_use]
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        Strided { data: self.data, layout: self.layout.clone() }
    }

    /// All elements held, in memory order, which the layout's positions count.
    #[must_use]
    pub fn elements_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The elements shown, where they are neighbours in order.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        if self.is_empty() {
            return Some(&mut []);
        }
        let (offset, len) = (self.offset(), self.len());
        if self.is_contiguous() { Some(&mut self.data[offset..offset + len]) } else { None }
    }

    /// Calls `work` with each row in order: slices of neighbours of one length, the longest there are.
    pub fn for_each_row(&mut self, mut work: impl FnMut(&mut [T])) {
        for run in self.runs() {
            work(&mut self.data[run]);
        }
    }

    /// Sets the element at this index. Returns whether the index is inside of the shape.
    pub fn set(&mut self, index: &[usize], value: T) -> bool {
        let position = self.layout.position(index);
        if let Some(at) = position {
            self.data[at] = value;
        }
        position.is_some()
    }

    /// Sets all elements.
    pub fn fill(&mut self, value: T) {
        self.for_each_row(|row| row.fill(value));
    }

    /// Copies elements of a view of the same shape. Plain and single-threaded.
    ///
    /// # Errors
    ///
    /// Shapes differ.
    pub fn copy_from(&mut self, from: &View<'_, T>) -> Result<(), TensorError> {
        if self.shape() != from.shape() {
            return Err(TensorError::Shapes { left: self.shape().to_vec(), right: from.shape().to_vec() });
        }
        let mut source = from.rows().flatten();
        self.for_each_row(|row| row.iter_mut().zip(&mut source).for_each(|(to, &value)| *to = value));
        Ok(())
    }
}
