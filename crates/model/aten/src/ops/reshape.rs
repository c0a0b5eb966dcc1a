//! Reshapes: views if the order of the elements allows it, otherwise copies.

use crate::axes::axis;
use crate::bound_call::BoundCall;
use crate::build_lowering::giving;
use crate::call::{Arg, OpCall, Tensor};
use crate::op_def::OpDef;

/// Definitions of this file.
pub static OPS: &[OpDef] =
    &[OpDef::composite(&["aten::reshape", "aten::flatten", "aten::_unsafe_view", "aten::reshape_as"])
        .expand(reshape)];

/// PyTorch's number of the row-major memory format.
const CONTIGUOUS: i64 = 0;

/// Returns the calls of a reshape: none for a view, otherwise a copy in row-major order.
fn reshape(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(from) = call.tensor("self") else { return Vec::new() };
    let shape = call.output(0).map(|to| to.shape.to_vec()).or_else(|| target(call, from));
    if shape.is_none_or(|shape| is_viewable(from, &shape)) {
        return Vec::new();
    }
    let inputs = vec![Arg::Tensor(from.clone()), Arg::Int(CONTIGUOUS)];
    let to = Tensor { device: from.device, ..Tensor::contiguous(&from.shape, from.dtype) };
    vec![giving("aten::clone", inputs, &to)]
}

/// Returns the shape that a call reshapes to.
fn target(call: &BoundCall<'_>, from: &Tensor) -> Option<Vec<i64>> {
    if call.name == "aten::flatten" {
        let rank = from.shape.len();
        let (first, last) =
            (axis(call.int("start_dim").unwrap_or(0), rank)?, axis(call.int("end_dim").unwrap_or(-1), rank)?);
        let mut shape = from.shape.to_vec();
        let joined = shape.get(first..=last)?.iter().fold(1, |n: i64, &size| n.saturating_mul(size));
        shape.splice(first..=last, [joined]);
        return Some(shape);
    }
    let mut shape =
        ["shape", "size"].into_iter().find(|name| call.has(name)).and_then(|name| call.ints(name))?.to_vec();
    let known: i64 = shape.iter().filter(|&&size| size >= 0).fold(1, |n: i64, &size| n.saturating_mul(size));
    if let Some(open) = shape.iter_mut().find(|size| **size < 0) {
        *open = from.numel() as i64 / known.max(1);
    }
    Some(shape)
}

/// Whether a tensor can be viewed in another shape without moving its elements: dimensions that are evenly nested in memory
/// form blocks, and each new dimension has to be within one block.
fn is_viewable(from: &Tensor, shape: &[i64]) -> bool {
    if from.is_contiguous() {
        return true;
    }
    let mut wanted = shape.iter().rev().copied().filter(|&size| size != 1).peekable();
    let dims: Vec<(i64, i64)> = from.shape.iter().copied().zip(from.strides.iter().copied()).collect();
    let mut dims = dims.into_iter().rev().filter(|&(size, _)| size != 1).peekable();
    while let Some((mut block, stride)) = dims.next() {
        while let Some(&(size, outer)) = dims.peek() {
            if outer != block * stride {
                break;
            }
            block *= size;
            dims.next();
        }
        let mut filled = 1;
        while filled < block {
            let Some(size) = wanted.next() else { return false };
            filled *= size;
        }
        if filled != block {
            return false;
        }
    }
    wanted.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;

    #[test]
    fn a_reshape_copies_where_no_view_exists() {
        let swapped = Tensor::strided(&[4, 128, 8, 64], &[65_536, 64, 8192, 1], Dtype::F32);
        assert!(!is_viewable(&swapped, &[4, 128, 512]));
        assert!(is_viewable(&swapped, &[4, 2, 64, 8, 64]));
        assert!(is_viewable(&Tensor::strided(&[4, 8], &[0, 0], Dtype::F32), &[32]));
        let sliced = Tensor::strided(&[512, 50], &[300, 1], Dtype::F32);
        assert!(!is_viewable(&sliced, &[25_600]));
        assert!(is_viewable(&sliced, &[512, 5, 10]));
    }
}
