//! Shapes and strides of generated kernels.

use std::fmt::Write;

use steptime_tensor::{JoinedLayouts, Layout};

/// The operands' common shape, with as few dimensions as the strides allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) shape: Vec<usize>,
    /// Strides of each operand.
    pub(crate) strides: Vec<Vec<usize>>,
    pub(crate) offsets: Vec<usize>,
    /// Neighbouring elements of a thread.
    pub(crate) vector: usize,
}

impl Frame {
    /// Joins layouts of one shape.
    pub(crate) fn new(layouts: &[Layout]) -> Frame {
        let JoinedLayouts { mut shape, mut strides } = JoinedLayouts::new(layouts);
        if shape.is_empty() {
            shape.push(1);
            strides.iter_mut().for_each(|strides| strides.push(1));
        }
        let offsets: Vec<usize> = layouts.iter().map(Layout::offset).collect();
        let last = shape.len() - 1;
        let quads = |strides: &Vec<usize>, offset: &usize| match strides[last] {
            0 => true,
            1 => strides[..last].iter().chain([offset]).all(|stride| stride.is_multiple_of(4)),
            _ => false,
        };
        let all = strides.iter().zip(&offsets).all(|(strides, offset)| quads(strides, offset));
        let vector = if shape[last].is_multiple_of(4) && all { 4 } else { 1 };
        Frame { shape, strides, offsets, vector }
    }

    pub(crate) fn threads(&self) -> usize {
        self.shape.iter().product::<usize>() / self.vector
    }

    /// Adds the types `Index` of elements' numbers and `Place` of positions.
    pub(crate) fn types(&self, code: &mut String) {
        let reach = |(strides, offset): (&Vec<usize>, &usize)| {
            offset + strides.iter().zip(&self.shape).map(|(stride, size)| stride * (size - 1)).sum::<usize>()
        };
        let reach = self.strides.iter().zip(&self.offsets).map(reach).max().unwrap_or(0);
        let name = |wide: bool| if wide { "unsigned long long" } else { "unsigned int" };
        let _ = writeln!(code, "typedef {} Index;", name(self.threads() * self.vector > 1 << 31));
        let _ = writeln!(code, "typedef {} Place;", name(reach > 1 << 31));
    }

    /// Whether a thread's elements of this operand are neighbours in memory, so that they move at once.
    pub(crate) fn is_quad(&self, operand: usize) -> bool {
        self.vector == 4 && self.strides[operand].last() == Some(&1)
    }

    /// Adds code that computes the position `p{operand}` of each operand's first element for thread `at`.
    pub(crate) fn positions(&self, code: &mut String) {
        let last = self.shape.len() - 1;
        for (axis, &size) in self.shape.iter().enumerate().rev() {
            let (size, step) = if axis == last { (size / self.vector, self.vector) } else { (size, 1) };
            let _ = if axis == 0 {
                writeln!(code, "    Index i0 = at * {step};")
            } else {
                writeln!(code, "    Index i{axis} = at % {size}u * {step}; at /= {size}u;")
            };
        }
        for (operand, (strides, offset)) in self.strides.iter().zip(&self.offsets).enumerate() {
            let _ = write!(code, "    Place p{operand} = {offset}u");
            for (axis, stride) in strides.iter().enumerate().filter(|&(_, &stride)| stride > 0) {
                let _ = write!(code, " + i{axis} * (Place){stride}u");
            }
            code.push_str(";\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn dimensions_that_lie_together_are_one() {
        let frame = Frame::new(&[layout(&[3, 4, 8]), layout(&[3, 4, 8])]);
        assert_eq!((frame.shape, frame.vector), (vec![96], 4));
        let bias = layout(&[8]).broadcast(&[3, 4, 8]).unwrap();
        let frame = Frame::new(&[bias, layout(&[3, 4, 8])]);
        assert_eq!((frame.shape, frame.vector), (vec![12, 8], 4));
        let turned = layout(&[8, 6]).transpose(0, 1).unwrap();
        let frame = Frame::new(&[turned, layout(&[6, 8])]);
        assert_eq!((frame.shape, frame.vector), (vec![6, 8], 1));
        assert_eq!(Frame::new(&[layout(&[1, 1])]).shape, [1]);
    }
}
