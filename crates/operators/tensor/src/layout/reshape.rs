//! Reshaping: the same elements in another shape.

use super::Layout;
use crate::TensorError;

impl Layout {
    /// Changes the shape over the same elements in the same order.
    ///
    /// # Errors
    ///
    /// Another number of elements, or one that no strides express.
    pub fn reshape(&self, shape: &[usize]) -> Result<Layout, TensorError> {
        let target = Layout::contiguous(shape)?;
        if target.len() != self.len() {
            return Err(TensorError::Elements { from: self.shape.clone(), to: shape.to_vec() });
        }
        let strides = strides(self, shape).ok_or_else(|| TensorError::NotViewable {
            from: self.shape.clone(),
            strides: self.strides.clone(),
            to: shape.to_vec(),
        })?;
        Ok(Layout { strides, offset: self.offset, ..target })
    }
}

/// The strides of `shape` over the elements of `layout`, or `None` where no strides express it. Both have the same
/// number of elements.
///
/// Old and new dimensions are matched in groups of equal products; inside of an old group all must be one run, that
/// is, each stride must be the next one's times its size.
fn strides(layout: &Layout, shape: &[usize]) -> Option<Vec<usize>> {
    let mut strides = vec![0; shape.len()];
    if layout.is_empty() {
        return Some(strides);
    }
    let mut old = collapse(layout);
    // The run of memory that is being divided, from its fast end: elements left, and their distance.
    let (mut left, mut step) = old.pop().unwrap_or((1, 1));
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        if size == 1 {
            continue;
        }
        if left == 1 {
            (left, step) = old.pop()?;
        }
        if left % size != 0 {
            return None;
        }
        *stride = step;
        left /= size;
        // The product of a run's size and step fits: the position of its last element does, and this is at most one
        // step more.
        step = step.saturating_mul(size);
    }
    Some(strides)
}

/// The dimensions as `(size, stride)`, with size 1 left out and neighbours that are one run joined.
fn collapse(layout: &Layout) -> Vec<(usize, usize)> {
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()).filter(|&(&size, _)| size != 1) {
        match joined.last_mut() {
            Some(last) if stride.checked_mul(size) == Some(last.1) => *last = (last.0 * size, stride),
            _ => joined.push((size, stride)),
        }
    }
    joined
}
