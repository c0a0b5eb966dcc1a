//! Positions of a view's elements: shape, strides, offset.

mod reshape;

use std::ops::Range;

use crate::TensorError;

/// Shape, strides and offset, all counted in elements. The position of the last element fits `usize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    shape: Vec<usize>,
    strides: Vec<usize>,
    offset: usize,
}

impl Layout {
    /// Rows one after the other, from position 0.
    ///
    /// # Errors
    ///
    /// More elements than `usize` counts.
    pub fn contiguous(shape: &[usize]) -> Result<Layout, TensorError> {
        let too_large = || TensorError::TooLarge { shape: shape.to_vec(), strides: Vec::new() };
        let mut strides = vec![0; shape.len()];
        let mut next = 1usize;
        for (stride, &size) in strides.iter_mut().zip(shape).rev() {
            *stride = next;
            next = next.checked_mul(size.max(1)).ok_or_else(too_large)?;
        }
        Ok(Layout { shape: shape.to_vec(), strides, offset: 0 })
    }

    /// Any strides, zero included.
    ///
    /// # Errors
    ///
    /// Ranks differ, or positions or the number of elements exceed `usize`.
    pub fn new(shape: &[usize], strides: &[usize], offset: usize) -> Result<Layout, TensorError> {
        if shape.len() != strides.len() {
            return Err(TensorError::Rank { shape: shape.to_vec(), strides: strides.to_vec() });
        }
        let layout = Layout { shape: shape.to_vec(), strides: strides.to_vec(), offset };
        let elements = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size.max(1)));
        if elements.is_none() || layout.checked_last().is_none() {
            return Err(TensorError::TooLarge { shape: layout.shape, strides: layout.strides });
        }
        Ok(layout)
    }

    /// Elements along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements between neighbours along each dimension.
    #[must_use]
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Position of the first element.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements; 1 for rank 0.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has 0 elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Position of the last element, or `None` where there is none.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        if self.is_empty() { None } else { self.checked_last() }
    }

    fn checked_last(&self) -> Option<usize> {
        let reach = |at: usize, (&size, &stride): (&usize, &usize)| {
            size.saturating_sub(1).checked_mul(stride).and_then(|reach| at.checked_add(reach))
        };
        self.shape.iter().zip(&self.strides).try_fold(self.offset, reach)
    }

    /// Whether the elements, in order, are neighbours in memory.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        let dims = self.shape.iter().zip(&self.strides).rev();
        self.is_empty()
            || dims.into_iter().all(|(&size, &stride)| {
                let fits = size == 1 || stride == next;
                next *= size;
                fits
            })
    }

    /// Whether two elements may share one place in memory. Never `false` where they do. `true` also for some layouts
    /// whose dimensions interleave without meeting; no slice, permutation or reshape of a tensor makes such a layout.
    #[must_use]
    pub fn may_overlap(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut dims: Vec<_> = self.strides.iter().zip(&self.shape).filter(|&(_, &size)| size > 1).collect();
        dims.sort_unstable();
        let mut reach = 0;
        dims.into_iter().any(|(&stride, &size)| {
            let meets = stride <= reach;
            reach += (size - 1) * stride;
            meets
        })
    }

    /// Position of the element at this index, or `None` outside of the shape.
    #[must_use]
    pub fn position(&self, index: &[usize]) -> Option<usize> {
        let inside = index.len() == self.rank() && index.iter().zip(&self.shape).all(|(at, size)| at < size);
        inside.then(|| {
            self.offset + index.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum::<usize>()
        })
    }

    fn size(&self, axis: usize) -> Result<usize, TensorError> {
        self.shape.get(axis).copied().ok_or_else(|| TensorError::Axis { axis, shape: self.shape.clone() })
    }

    /// Takes every `step`-th index of `range` along a dimension.
    ///
    /// # Errors
    ///
    /// The dimension does not exist, the range leaves it or is reversed, or the step is 0.
    pub fn slice(&self, axis: usize, range: Range<usize>, step: usize) -> Result<Layout, TensorError> {
        let size = self.size(axis)?;
        let Range { start, end } = range;
        if start > end || end > size {
            return Err(TensorError::Range { start, end, axis, shape: self.shape.clone() });
        }
        if step == 0 {
            return Err(TensorError::Step { axis });
        }
        let mut layout = self.clone();
        layout.shape[axis] = (end - start).div_ceil(step);
        // A dimension without a second element needs no stride, and an empty one no offset: neither can then overflow.
        layout.strides[axis] = self.strides[axis].checked_mul(step).unwrap_or(0);
        if start < end {
            layout.offset += start * self.strides[axis];
        }
        Ok(layout)
    }

    /// Selects one index of a dimension; the dimension is removed.
    ///
    /// # Errors
    ///
    /// The dimension or the index does not exist.
    pub fn select(&self, axis: usize, index: usize) -> Result<Layout, TensorError> {
        let size = self.size(axis)?;
        if index >= size {
            let shape = self.shape.clone();
            return Err(TensorError::Range { start: index, end: index.saturating_add(1), axis, shape });
        }
        let mut layout = self.slice(axis, index..index + 1, 1)?;
        layout.shape.remove(axis);
        layout.strides.remove(axis);
        Ok(layout)
    }

    /// Exchanges two dimensions.
    ///
    /// # Errors
    ///
    /// The dimension does not exist.
    pub fn transpose(&self, first: usize, second: usize) -> Result<Layout, TensorError> {
        self.size(first)?;
        self.size(second)?;
        let mut layout = self.clone();
        layout.shape.swap(first, second);
        layout.strides.swap(first, second);
        Ok(layout)
    }

    /// Permutes dimensions: dimension `i` of the result is `order[i]` of this.
    ///
    /// # Errors
    ///
    /// `order` is not a permutation of the dimensions.
    pub fn permute(&self, order: &[usize]) -> Result<Layout, TensorError> {
        let rank = self.rank();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..rank) {
            return Err(TensorError::Order { order: order.to_vec(), rank });
        }
        Ok(Layout {
            shape: order.iter().map(|&axis| self.shape[axis]).collect(),
            strides: order.iter().map(|&axis| self.strides[axis]).collect(),
            offset: self.offset,
        })
    }

    /// Repeats dimensions of size 1, and adds leading ones, with stride 0.
    ///
    /// # Errors
    ///
    /// A dimension, counted from the last, is neither 1 nor that of `shape`; or too many elements.
    pub fn broadcast(&self, shape: &[usize]) -> Result<Layout, TensorError> {
        let error = || TensorError::Broadcast { from: self.shape.clone(), to: shape.to_vec() };
        let added = shape.len().checked_sub(self.rank()).ok_or_else(error)?;
        let mut strides = vec![0; shape.len()];
        for (axis, &size) in self.shape.iter().enumerate() {
            if size == shape[added + axis] {
                strides[added + axis] = self.strides[axis];
            } else if size != 1 {
                return Err(error());
            }
        }
        Layout::new(shape, &strides, self.offset)
    }

    /// The same shape, contiguous from position 0. It fits because this layout does.
    pub(crate) fn reshaped_contiguous(&self) -> Layout {
        let mut layout = Layout { shape: self.shape.clone(), strides: vec![0; self.rank()], offset: 0 };
        let mut next = 1;
        for (stride, &size) in layout.strides.iter_mut().zip(&self.shape).rev() {
            *stride = next;
            next *= size.max(1);
        }
        layout
    }
}
