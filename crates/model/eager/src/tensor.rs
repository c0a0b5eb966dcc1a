//! Tensors without values: sizes, strides, and memory.

use std::rc::Rc;

use steptime_aten::Dtype;

use crate::memory::Block;

/// A function of the backward pass, by its index on the tape.
pub(crate) type GradId = usize;

/// A tensor. A clone is the same tensor; a view is another one on the same storage.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    /// Unique number of the tensor within the step.
    pub(crate) id: u64,
    pub(crate) shape: Vec<i64>,
    /// Strides in elements.
    pub(crate) strides: Vec<i64>,
    /// First element within the storage.
    pub(crate) offset: i64,
    pub(crate) dtype: Dtype,
    pub(crate) device: Place,
    /// Its memory; `None` without elements, or for a sparse tensor.
    pub(crate) storage: Option<Rc<Block>>,
    /// The function that takes its gradient, where it needs one.
    pub(crate) grad: Option<GradId>,
    /// Indices and values of a sparse tensor.
    pub(crate) sparse: Option<Rc<[Tensor; 2]>>,
}

/// Device of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// Page-locked host memory, whose copies run asynchronously to the host.
    Pinned,
    Device,
}

impl Place {
    /// PyTorch's name of the device.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Host => "cpu",
            Place::Pinned => "cpu:pinned",
            Place::Device => "cuda:0",
        }
    }
}

/// The strides of a contiguous tensor.
pub(crate) fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    strides
}

/// Number of elements of a shape.
pub(crate) fn numel(shape: &[i64]) -> i64 {
    shape.iter().product()
}

impl Tensor {
    pub(crate) fn numel(&self) -> i64 {
        numel(&self.shape)
    }

    pub(crate) fn size(&self, dim: usize) -> i64 {
        self.shape[dim]
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        let steps = self.shape.iter().zip(&self.strides).zip(contiguous(&self.shape));
        self.sparse.is_none()
            && steps.into_iter().all(|((&size, &own), expected)| size == 1 || own == expected)
    }

    /// Whether its elements fill a piece of memory, in any order.
    pub(crate) fn is_dense(&self) -> bool {
        let mut dims: Vec<(i64, i64)> =
            self.strides.iter().copied().zip(self.shape.iter().copied()).collect();
        dims.retain(|&(_, size)| size != 1);
        dims.sort_unstable();
        let mut expected = 1;
        dims.iter().all(|&(stride, size)| {
            let fits = stride == expected;
            expected *= size;
            fits
        })
    }

    /// Whether no other tensor uses its memory.
    pub(crate) fn is_sole_owner(&self) -> bool {
        self.storage.as_ref().is_some_and(|block| Rc::strong_count(block) == 1)
    }
}
