//! Moving elements: copies of strided views, transposes, concatenation, splitting.
//!
//! All are based on [`copy`] between two views of one shape; [`concat()`] and [`split`] are several copies at a time.
//! Dimensions are first reordered and joined so that as few as possible remain, the output's neighbours innermost. The
//! remaining copy is one of:
//!
//! * rows that are neighbours on both sides: copied whole;
//! * rows that are neighbours in the output, where another dimension's are in the input: a transpose, in tiles of
//!   16 x 16 that vector instructions transpose, in blocks whose lines stay in the first-level cache;
//! * anything else: element by element.
//!
//! The plain version of each is [`ViewMut::copy_from`](steptime_tensor::ViewMut::copy_from).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod error;
mod job;
mod plan;
mod tile;
mod transpose;

pub use error::RearrangeError;

use job::Job;
use steptime_tensor::{Element, Layout, Tensor, View, ViewMut};

use crate::Cpu;
use crate::shared::Shared;

/// Copies a view's elements into another of the same shape, with any strides of either.
///
/// # Errors
///
/// Shapes differ.
pub fn copy<T: Element>(cpu: &Cpu, from: &View<'_, T>, mut to: ViewMut<'_, T>) -> Result<(), RearrangeError> {
    if from.shape() != to.shape() {
        return Err(RearrangeError::Shapes { from: from.shape().to_vec(), to: to.shape().to_vec() });
    }
    let layout = to.layout().clone();
    let job = Job::new(from, Shared::new(to.elements_mut()), &layout);
    job::run(cpu, &[job]);
    Ok(())
}

/// A contiguous copy of a view with its own storage.
///
/// # Errors
///
/// The shape exceeds the address space, which is possible for a broadcast view.
pub fn contiguous<T: Element>(cpu: &Cpu, from: &View<'_, T>) -> Result<Tensor<T>, RearrangeError> {
    let mut tensor = Tensor::zeros(from.shape())?;
    copy(cpu, from, tensor.make_mut())?;
    Ok(tensor)
}

/// Concatenates views along a dimension.
///
/// # Errors
///
/// No view, a dimension that does not exist, or shapes that differ elsewhere or do not add up to the output's.
pub fn concat<T: Element>(
    cpu: &Cpu,
    from: &[View<'_, T>],
    axis: usize,
    mut to: ViewMut<'_, T>,
) -> Result<(), RearrangeError> {
    let shapes: Vec<&[usize]> = from.iter().map(View::shape).collect();
    let pieces = pieces(to.layout(), axis, &shapes)?;
    let to = Shared::new(to.elements_mut());
    let jobs: Vec<_> = from.iter().zip(&pieces).map(|(from, piece)| Job::new(from, to, piece)).collect();
    job::run(cpu, &jobs);
    Ok(())
}

/// The inverse of [`concat()`]: copies consecutive parts of a view along a dimension into separate views.
///
/// # Errors
///
/// As for [`concat()`].
pub fn split<T: Element>(
    cpu: &Cpu,
    from: &View<'_, T>,
    axis: usize,
    to: &mut [ViewMut<'_, T>],
) -> Result<(), RearrangeError> {
    let shapes: Vec<&[usize]> = to.iter().map(ViewMut::shape).collect();
    let pieces = pieces(from.layout(), axis, &shapes)?;
    let mut jobs = Vec::with_capacity(to.len());
    for (to, piece) in to.iter_mut().zip(pieces) {
        let layout = to.layout().clone();
        let from = View::from_layout(from.elements(), piece)?;
        jobs.push(Job::new(&from, Shared::new(to.elements_mut()), &layout));
    }
    job::run(cpu, &jobs);
    Ok(())
}

/// Returns the parts of a layout that have these shapes, one after the other along a dimension.
fn pieces(whole: &Layout, axis: usize, shapes: &[&[usize]]) -> Result<Vec<Layout>, RearrangeError> {
    let mut start = 0;
    let mut pieces = Vec::with_capacity(shapes.len());
    let error = |index: usize| RearrangeError::Piece {
        index,
        axis,
        shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
        whole: whole.shape().to_vec(),
    };
    for (index, shape) in shapes.iter().enumerate() {
        let size = shape.get(axis).copied().ok_or_else(|| error(index))?;
        let end = start + size;
        if axis >= whole.rank() || end > whole.shape()[axis] {
            return Err(error(index));
        }
        let piece = whole.slice(axis, start..end, 1)?;
        if piece.shape() != *shape {
            return Err(error(index));
        }
        pieces.push(piece);
        start = end;
    }
    if whole.shape().get(axis) != Some(&start) {
        return Err(error(shapes.len()));
    }
    Ok(pieces)
}
