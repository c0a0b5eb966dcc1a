//! Concatenation: several inputs one after the other along a dimension.

use bytemuck::Pod;
use steptime_ops::rearrange::RearrangeError;
use steptime_tensor::Layout;

use super::CopyBatch;
use crate::{Device, Error, Slice, SliceMut, Stream};

/// Concatenation of several inputs along a dimension, compiled for their layouts: one launch, or one for each input
/// where columns are no neighbours in memory.
#[derive(Debug)]
pub struct Concat<T> {
    copies: CopyBatch<T>,
}

impl<T: Pod> Concat<T> {
    /// Compiles the concatenation.
    ///
    /// # Errors
    ///
    /// No input, a dimension that does not exist, or shapes that differ elsewhere or do not add up to the output's; no
    /// compiler.
    pub fn new(device: &Device, from: &[Layout], axis: usize, to: &Layout) -> Result<Concat<T>, Error> {
        let pieces = pieces(from, axis, to)?;
        let copies: Vec<(Layout, Layout)> = from.iter().cloned().zip(pieces).collect();
        Ok(Concat { copies: CopyBatch::new(device, &copies)? })
    }

    /// Runs the concatenation.
    ///
    /// # Errors
    ///
    /// Too few or too many inputs, or buffers that do not fit.
    pub fn run(&self, stream: &Stream, from: &[Slice<'_, T>], to: &mut SliceMut<'_, T>) -> Result<(), Error> {
        self.copies.run(stream, from, to)
    }
}

/// The parts of the output that the inputs go to.
fn pieces(from: &[Layout], axis: usize, to: &Layout) -> Result<Vec<Layout>, RearrangeError> {
    let error = |index: usize| RearrangeError::Piece {
        index,
        axis,
        shapes: from.iter().map(|layout| layout.shape().to_vec()).collect(),
        whole: to.shape().to_vec(),
    };
    let mut start = 0;
    let mut pieces = Vec::with_capacity(from.len());
    for (index, layout) in from.iter().enumerate() {
        let size = layout.shape().get(axis).copied().ok_or_else(|| error(index))?;
        let piece = to.slice(axis, start..start + size, 1).map_err(|_| error(index))?;
        if piece.shape() != layout.shape() {
            return Err(error(index));
        }
        pieces.push(piece);
        start += size;
    }
    if to.shape().get(axis) != Some(&start) {
        return Err(error(from.len()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn pieces_make_up_the_whole() {
        let found = pieces(&[layout(&[2, 3]), layout(&[2, 5])], 1, &layout(&[2, 8])).unwrap();
        assert_eq!(found[1].offset(), 3);
        assert!(pieces(&[layout(&[2, 3])], 1, &layout(&[2, 8])).is_err());
        assert!(pieces(&[layout(&[3, 8])], 1, &layout(&[2, 8])).is_err());
        assert!(pieces(&[layout(&[2, 8])], 2, &layout(&[2, 8])).is_err());
    }
}
