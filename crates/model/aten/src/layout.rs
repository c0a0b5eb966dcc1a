//! Memory layout of the operands of an elementwise kernel, determined like PyTorch's iterator does.

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::call::Tensor;
use crate::kernel::{Layout, Steps};

/// Bytes of a vector load, to which addresses must be aligned.
const VECTOR: u64 = 16;

/// Dimensions after merging, innermost first: a size, and a stride of each operand (0 if broadcast).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedDims {
    /// Size of each dimension.
    pub sizes: SmallVec<[i64; 5]>,
    /// Strides of each dimension in elements, by operand.
    pub strides: SmallVec<[SmallVec<[i64; 4]>; 5]>,
}

/// Returns the layout of an elementwise kernel that computes in one type and converts operands of other types.
#[must_use]
pub fn elementwise(output: &Tensor, inputs: &[&Tensor]) -> Layout {
    let mixed = inputs.iter().any(|input| input.dtype != output.dtype);
    match natural(output, inputs) {
        Layout::Vectorized if mixed => Layout::Dense,
        layout => layout,
    }
}

/// Returns the layout of an elementwise kernel for exactly these operand types, such as a comparison.
#[must_use]
pub fn natural(output: &Tensor, inputs: &[&Tensor]) -> Layout {
    let merged = merge(output, inputs);
    let unit = |strides: &SmallVec<[i64; 4]>| strides.iter().all(|&stride| stride == 1);
    if merged.sizes.is_empty() || merged.sizes.len() == 1 && unit(&merged.strides[0]) {
        let mut all = inputs.iter().copied().chain([output]);
        let aligned = all.all(|tensor| tensor.offset.wrapping_mul(tensor.dtype.size()) % VECTOR == 0);
        return if aligned { Layout::Vectorized } else { Layout::Dense };
    }
    let broadcast = |at: usize| merged.strides.iter().any(|strides| strides[at] == 0);
    let run_in = (1..=inputs.len()).filter_map(|at| run(&merged, at)).min().unwrap_or(1);
    Layout::Strided {
        dims: merged.sizes.len() as u8,
        run_in,
        run_out: run(&merged, 0).unwrap_or(1),
        broadcast: (1..=inputs.len()).any(broadcast),
        steps: steps(&merged, inputs.len()),
    }
}

/// Returns the innermost dimensions, and the steps of inputs along them.
fn steps(merged: &MergedDims, inputs: usize) -> Steps {
    let size = |at: usize| merged.sizes.get(at).map_or(0, |&size| size.unsigned_abs());
    let step = |at: usize| {
        let strides = merged.strides.get(at).into_iter().flatten().skip(1).take(inputs);
        strides.map(|stride| stride.unsigned_abs()).max().unwrap_or(0)
    };
    Steps { sizes: [size(0), size(1)], steps: [step(0), step(1)] }
}

/// Merges the dimensions of an output and the inputs broadcast to it, operand 0 being the output: sorts them by
/// stride, drops those of size 1, and joins those that are adjacent in all operands.
#[must_use]
pub fn merge(output: &Tensor, inputs: &[&Tensor]) -> MergedDims {
    let rank = output.shape.len();
    let mut dims: Vec<(i64, SmallVec<[i64; 4]>)> = (0..rank)
        .map(|dim| {
            let own = output.strides.get(dim).copied().unwrap_or(1);
            let others = inputs.iter().map(|input| broadcast_stride(input, dim, rank));
            (output.shape[dim], std::iter::once(own).chain(others).collect())
        })
        .filter(|&(size, _): &(i64, SmallVec<[i64; 4]>)| size != 1)
        .collect();
    dims.reverse();
    sort(&mut dims);
    let mut merged = MergedDims { sizes: SmallVec::new(), strides: SmallVec::new() };
    for (size, strides) in dims {
        let joins = merged.strides.last().zip(merged.sizes.last()).is_some_and(|(inner, &length)| {
            inner.iter().zip(&strides).all(|(&inner, &outer)| inner.saturating_mul(length) == outer)
        });
        if joins {
            if let Some(last) = merged.sizes.last_mut() {
                *last = last.saturating_mul(size);
            }
        } else {
            merged.sizes.push(size);
            merged.strides.push(strides);
        }
    }
    merged
}

/// Sorts the dimensions, the innermost first. Broadcast operands leave some pairs without an order. Therefore a dimension
/// passes those that it cannot be compared with only if it also passes one that it can be compared with.
fn sort(dims: &mut [(i64, SmallVec<[i64; 4]>)]) {
    for start in 1..dims.len() {
        let mut moving = start;
        for at in (0..start).rev() {
            match order(&dims[at], &dims[moving]) {
                Ordering::Greater => {
                    dims.swap(at, moving);
                    moving = at;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
}

/// Compares two dimensions, the inner one first: the first operand that has strides in both decides.
fn order(a: &(i64, SmallVec<[i64; 4]>), b: &(i64, SmallVec<[i64; 4]>)) -> Ordering {
    for (&inner, &outer) in a.1.iter().zip(&b.1) {
        if inner != 0 && outer != 0 && (inner != outer || a.0 > b.0) {
            return if inner < outer { Ordering::Less } else { Ordering::Greater };
        }
    }
    Ordering::Equal
}

/// Returns the stride of an input along a dimension of the output; 0 if it is broadcast.
fn broadcast_stride(input: &Tensor, dim: usize, rank: usize) -> i64 {
    let own = (dim + input.shape.len()).checked_sub(rank);
    match own.and_then(|at| Some((input.shape.get(at)?, input.strides.get(at)?))) {
        Some((&size, &stride)) if size != 1 => stride,
        _ => 0,
    }
}

/// Returns the number of adjacent elements of an operand in the order of the output; `None` if it is a single element.
fn run(merged: &MergedDims, operand: usize) -> Option<u64> {
    let dims = merged.sizes.iter().zip(&merged.strides);
    let mut own =
        dims.map(|(&size, strides)| (strides[operand], size)).filter(|&(stride, _)| stride != 0).peekable();
    own.peek()?;
    let mut length = 1;
    for (stride, size) in own {
        if stride != length {
            break;
        }
        length = length.saturating_mul(size);
    }
    Some(length.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype::{Bool, F32};

    fn dense(shape: &[i64]) -> Tensor {
        Tensor::contiguous(shape, F32)
    }

    #[test]
    fn dense_operands_of_one_order_are_vectorized() {
        let a = dense(&[4, 6, 8]);
        assert_eq!(elementwise(&a, &[&a, &a]), Layout::Vectorized);
        let channels_last = Tensor::strided(&[2, 3, 4, 5], &[60, 1, 15, 3], F32);
        assert_eq!(elementwise(&channels_last, &[&channels_last]), Layout::Vectorized);
        assert_eq!(elementwise(&dense(&[]), &[&dense(&[])]), Layout::Vectorized);
    }

    #[test]
    fn misaligned_or_mixed_types_are_loaded_one_by_one() {
        let a = dense(&[64]);
        let shifted = Tensor { offset: 1, ..dense(&[64]) };
        assert_eq!(elementwise(&a, &[&shifted]), Layout::Dense);
        assert_eq!(elementwise(&Tensor::contiguous(&[64], Bool), &[&a]), Layout::Dense);
        assert_eq!(elementwise(&a, &[&Tensor { offset: 4, ..dense(&[64]) }]), Layout::Vectorized);
    }

    #[test]
    fn a_bias_is_broadcast_and_a_transposed_input_strided() {
        let layout = elementwise(&dense(&[32, 100]), &[&dense(&[32, 100]), &dense(&[100])]);
        assert_eq!(
            layout,
            Layout::Strided {
                dims: 2,
                run_in: 100,
                run_out: 3200,
                broadcast: true,
                steps: Steps { sizes: [100, 32], steps: [1, 100] }
            }
        );
        let transposed = Tensor::strided(&[32, 100], &[1, 32], F32);
        let layout = elementwise(&dense(&[32, 100]), &[&transposed]);
        assert_eq!(
            layout,
            Layout::Strided {
                dims: 2,
                run_in: 1,
                run_out: 3200,
                broadcast: false,
                steps: Steps { sizes: [100, 32], steps: [32, 1] }
            }
        );
    }

    #[test]
    fn rows_of_a_wider_tensor_keep_their_run() {
        let slice = Tensor::strided(&[8, 36], &[100, 1], F32);
        let layout = elementwise(&dense(&[8, 36]), &[&slice]);
        assert_eq!(
            layout,
            Layout::Strided {
                dims: 2,
                run_in: 36,
                run_out: 288,
                broadcast: false,
                steps: Steps { sizes: [36, 8], steps: [1, 100] }
            }
        );
    }

    #[test]
    fn dimensions_that_lie_together_are_merged() {
        let channels = Tensor::strided(&[8, 16, 1, 1], &[16, 1, 1, 1], F32);
        let merged = merge(&dense(&[8, 16, 7, 7]), &[&channels]);
        assert_eq!(merged.sizes.as_slice(), [49, 128]);
        assert_eq!(merged.strides[0].as_slice(), [1, 0]);
        assert_eq!(merged.strides[1].as_slice(), [49, 1]);
    }
}
