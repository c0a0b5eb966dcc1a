//! Dimensions of tensors by number.

use crate::call::Tensor;

/// Resolves the number of a dimension, negative ones counted from the end. `None` if out of range; a scalar has one dimension.
#[must_use]
pub fn axis(dim: i64, rank: usize) -> Option<usize> {
    let rank = rank.max(1) as i64;
    usize::try_from(if dim < 0 { dim + rank } else { dim }).ok().filter(|&at| (at as i64) < rank)
}

/// Returns the number of elements of a range of dimensions.
#[must_use]
pub fn count(shape: &[i64]) -> u64 {
    shape.iter().fold(1, |n: u64, &size| n.saturating_mul(u64::try_from(size).unwrap_or(0)))
}

/// Returns the sizes before, of and after a dimension.
#[must_use]
pub fn around(tensor: &Tensor, axis: usize) -> [u64; 3] {
    let shape = tensor.shape.as_slice();
    if shape.is_empty() {
        return [1, 1, 1];
    }
    [count(&shape[..axis]), count(&shape[axis..=axis]), count(&shape[axis + 1..])]
}

/// Returns the number of adjacent elements from the innermost dimensions on, at most out to dimension `from`.
#[must_use]
pub fn run(tensor: &Tensor, from: usize) -> u64 {
    let mut length = 1i64;
    for (&size, &stride) in tensor.shape.iter().zip(&tensor.strides).skip(from).rev() {
        if size != 1 && stride != length {
            break;
        }
        length = length.saturating_mul(size.max(0));
    }
    u64::try_from(length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Dtype;

    #[test]
    fn dimensions_are_found_from_both_ends() {
        assert_eq!(axis(-1, 3), Some(2));
        assert_eq!(axis(3, 3), None);
        assert_eq!(axis(-1, 0), Some(0));
        assert_eq!(around(&Tensor::contiguous(&[2, 3, 5], Dtype::F32), 1), [2, 3, 5]);
        assert_eq!(run(&Tensor::contiguous(&[2, 3, 5], Dtype::F32), 1), 15);
        assert_eq!(run(&Tensor::strided(&[8, 36], &[100, 1], Dtype::F32), 0), 36);
    }
}
