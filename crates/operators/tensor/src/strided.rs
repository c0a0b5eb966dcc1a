//! A layout over elements: the common part of tensors and views.

use std::ops::Range;

use crate::{Data, Layout, Runs, TensorError};

/// Elements held in some way, seen through a layout. See [`Tensor`](crate::Tensor), [`View`](crate::View)
/// and [`ViewMut`](crate::ViewMut).
///
/// Methods that change the layout take the value: clone a tensor, or take a [`view`](Strided::view), to keep it;
/// both are cheap.
#[derive(Debug, Clone)]
pub struct Strided<S> {
    pub(crate) data: S,
    pub(crate) layout: Layout,
}

impl<S: Data> Strided<S> {
    /// Applies a layout to elements.
    ///
    /// # Errors
    ///
    /// The layout leaves the elements, or, for a mutable view, may overlap itself.
    pub fn from_layout(data: S, layout: Layout) -> Result<Strided<S>, TensorError> {
        let len = data.elements().len();
        if let Some(last) = layout.last().filter(|&last| last >= len) {
            let (shape, strides) = (layout.shape().to_vec(), layout.strides().to_vec());
            return Err(TensorError::OutOfStorage { shape, strides, offset: layout.offset(), last, len });
        }
        let strided = Strided { data, layout };
        strided.checked()
    }

    /// Applies shape, strides and offset, counted in elements.
    ///
    /// # Errors
    ///
    /// As for [`Layout::new`] and [`from_layout`](Strided::from_layout).
    pub fn new(
        data: S,
        shape: &[usize],
        strides: &[usize],
        offset: usize,
    ) -> Result<Strided<S>, TensorError> {
        Strided::from_layout(data, Layout::new(shape, strides, offset)?)
    }

    fn checked(self) -> Result<Strided<S>, TensorError> {
        if S::MUTABLE && self.layout.may_overlap() {
            let (shape, strides) = (self.shape().to_vec(), self.strides().to_vec());
            return Err(TensorError::Overlap { shape, strides });
        }
        Ok(self)
    }

    /// Applies a layout that was made from this one's. Such a layout stays inside of the elements.
    fn with(self, layout: Result<Layout, TensorError>) -> Result<Strided<S>, TensorError> {
        Strided { layout: layout?, data: self.data }.checked()
    }

    /// Shape, strides and offset.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Elements along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Elements between neighbours along each dimension.
    #[must_use]
    pub fn strides(&self) -> &[usize] {
        self.layout.strides()
    }

    /// Position of the first element among the elements held.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.layout.offset()
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether it has 0 elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Whether the elements, in order, are neighbours in memory.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// All elements held, in memory order, which the layout's positions count: also those that it does not show.
    #[must_use]
    pub fn elements(&self) -> &[S::Elem] {
        self.data.elements()
    }

    /// The elements shown, where they are neighbours in order.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[S::Elem]> {
        if self.is_empty() {
            return Some(&[]);
        }
        self.is_contiguous().then(|| &self.elements()[self.offset()..self.offset() + self.len()])
    }

    /// The elements in order, as slices of neighbours of one length, the longest there are.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[S::Elem]> {
        let elements = self.elements();
        self.runs().map(move |run| &elements[run])
    }

    /// The ranges of [`elements`](Strided::elements) that [`rows`](Strided::rows) shows.
    #[must_use]
    pub fn runs(&self) -> Runs {
        self.layout.runs()
    }

    /// The element at this index, or `None` outside of the shape.
    #[must_use]
    pub fn get(&self, index: &[usize]) -> Option<S::Elem> {
        self.layout.position(index).map(|at| self.elements()[at])
    }

    /// The elements in order.
    #[must_use]
    pub fn to_vec(&self) -> Vec<S::Elem> {
        let mut elements = Vec::with_capacity(self.len());
        self.rows().for_each(|row| elements.extend_from_slice(row));
        elements
    }

    /// Takes indices `range` along a dimension.
    ///
    /// # Errors
    ///
    /// The dimension does not exist, or the range leaves it.
    pub fn slice(self, axis: usize, range: Range<usize>) -> Result<Strided<S>, TensorError> {
        self.slice_step(axis, range, 1)
    }

    /// Takes every `step`-th index of `range` along a dimension.
    ///
    /// # Errors
    ///
    /// The dimension does not exist, the range leaves it, or the step is 0.
    pub fn slice_step(
        self,
        axis: usize,
        range: Range<usize>,
        step: usize,
    ) -> Result<Strided<S>, TensorError> {
        let layout = self.layout.slice(axis, range, step);
        self.with(layout)
    }

    /// Selects one index of a dimension; the dimension is removed.
    ///
    /// # Errors
    ///
    /// The dimension or the index does not exist.
    pub fn select(self, axis: usize, index: usize) -> Result<Strided<S>, TensorError> {
        let layout = self.layout.select(axis, index);
        self.with(layout)
    }

    /// Exchanges two dimensions.
    ///
    /// # Errors
    ///
    /// The dimension does not exist.
    pub fn transpose(self, first: usize, second: usize) -> Result<Strided<S>, TensorError> {
        let layout = self.layout.transpose(first, second);
        self.with(layout)
    }

    /// Permutes dimensions: dimension `i` of the result is `order[i]` of this.
    ///
    /// # Errors
    ///
    /// `order` is not a permutation of the dimensions.
    pub fn permute(self, order: &[usize]) -> Result<Strided<S>, TensorError> {
        let layout = self.layout.permute(order);
        self.with(layout)
    }

    /// Repeats dimensions of size 1, and adds leading ones, with stride 0.
    ///
    /// # Errors
    ///
    /// Shapes that do not match, or a mutable view with a dimension to repeat.
    pub fn broadcast(self, shape: &[usize]) -> Result<Strided<S>, TensorError> {
        let layout = self.layout.broadcast(shape);
        self.with(layout)
    }

    /// Changes the shape over the same elements in the same order. Never copies: see
    /// [`Tensor::reshape_or_copy`](crate::Tensor::reshape_or_copy).
    ///
    /// # Errors
    ///
    /// Another number of elements, or [`TensorError::NotViewable`] where no strides express the shape.
    pub fn reshape(self, shape: &[usize]) -> Result<Strided<S>, TensorError> {
        let layout = self.layout.reshape(shape);
        self.with(layout)
    }
}

/// Equal shapes and equal elements, wherever they are stored.
impl<A: Data, B: Data<Elem = A::Elem>> PartialEq<Strided<B>> for Strided<A> {
    fn eq(&self, other: &Strided<B>) -> bool {
        self.shape() == other.shape() && self.rows().flatten().eq(other.rows().flatten())
    }
}
