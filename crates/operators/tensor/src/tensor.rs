//! Tensors that own their elements.

use std::sync::Arc;

use crate::{Data, Element, Layout, Storage, Strided, TensorError, ViewMut};

/// Elements in shared storage, aligned to 64 bytes. Clones and views share it.
pub type Tensor<T> = Strided<Arc<Storage<T>>>;

impl<T: Element> Tensor<T> {
    /// Zeros.
    ///
    /// # Errors
    ///
    /// The shape exceeds the address space.
    pub fn zeros(shape: &[usize]) -> Result<Tensor<T>, TensorError> {
        let layout = Layout::contiguous(shape)?;
        let bytes =
            layout.len().checked_mul(size_of::<T>()).filter(|&bytes| bytes < isize::MAX as usize - 64);
        if bytes.is_none() {
            return Err(TensorError::TooLarge { shape: shape.to_vec(), strides: Vec::new() });
        }
        Ok(Tensor::zeros_of(layout))
    }

    /// Zeros in a contiguous layout that is known to fit.
    pub(crate) fn zeros_of(layout: Layout) -> Tensor<T> {
        Strided { data: Arc::new(Storage::zeros(layout.len())), layout }
    }

    /// All of a vector, row after row. Copies it where the allocator did not align it to 64 bytes.
    ///
    /// # Errors
    ///
    /// The vector's length is not the product of the shape.
    pub fn from_vec(elements: Vec<T>, shape: &[usize]) -> Result<Tensor<T>, TensorError> {
        let layout = Layout::contiguous(shape)?;
        if layout.len() != elements.len() {
            let (expected, len) = (layout.len(), elements.len());
            return Err(TensorError::Length { shape: shape.to_vec(), expected, len });
        }
        Ok(Strided { data: Arc::new(Storage::from(elements)), layout })
    }

    /// Elements computed from their place in row order.
    ///
    /// # Errors
    ///
    /// The shape exceeds the address space.
    pub fn from_fn(shape: &[usize], element: impl FnMut(usize) -> T) -> Result<Tensor<T>, TensorError> {
        let mut tensor = Tensor::zeros(shape)?;
        let mut element = element;
        tensor.own_elements().iter_mut().enumerate().for_each(|(at, value)| *value = element(at));
        Ok(tensor)
    }

    /// The elements of a storage that was just made, hence not shared.
    pub(crate) fn own_elements(&mut self) -> &mut [T] {
        Arc::get_mut(&mut self.data).map_or(&mut [], Storage::as_mut_slice)
    }

    /// Returns this tensor if it is contiguous, and a copy otherwise.
    #[must_use]
    pub fn contiguous(self) -> Tensor<T> {
        if self.is_contiguous() { self } else { self.to_tensor() }
    }

    /// Like [`reshape`](Strided::reshape), with a copy where no strides express the shape.
    ///
    /// # Errors
    ///
    /// Another number of elements.
    pub fn reshape_or_copy(self, shape: &[usize]) -> Result<Tensor<T>, TensorError> {
        match self.layout.reshape(shape) {
            Err(TensorError::NotViewable { .. }) => self.to_tensor().reshape(shape),
            layout => Ok(Strided { layout: layout?, data: self.data }),
        }
    }

    /// Whether other tensors share the storage.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.data) > 1
    }

    /// A mutable view, without a copy.
    ///
    /// # Errors
    ///
    /// Other tensors share the storage, or elements may overlap (after a broadcast).
    pub fn view_mut(&mut self) -> Result<ViewMut<'_, T>, TensorError> {
        let storage = Arc::get_mut(&mut self.data).ok_or(TensorError::Shared)?;
        Strided::from_layout(storage.as_mut_slice(), self.layout.clone())
    }

    /// A mutable view. Where other tensors share the storage, or elements may overlap, this tensor first gets a copy of
    /// its elements, and the view is of that copy.
    pub fn make_mut(&mut self) -> ViewMut<'_, T> {
        if Arc::get_mut(&mut self.data).is_none() || self.layout.may_overlap() {
            *self = self.to_tensor();
        }
        let layout = self.layout.clone();
        Strided { data: self.own_elements(), layout }
    }
}

impl<S: Data> Strided<S> {
    /// A contiguous copy with its own storage.
    #[must_use]
    pub fn to_tensor(&self) -> Tensor<S::Elem> {
        let mut tensor = Tensor::zeros_of(self.layout.reshaped_contiguous());
        let mut at = 0;
        let elements = tensor.own_elements();
        for row in self.rows() {
            elements[at..at + row.len()].copy_from_slice(row);
            at += row.len();
        }
        tensor
    }
}
