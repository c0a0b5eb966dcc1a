//! Tensors without values: sizes, strides, and whose memory they are.

use std::rc::Rc;

use steptime_aten::Dtype;

use crate::memory::Block;

/// A function of the backward pass, by its place on the tape.
pub(crate) type GradId = usize;

/// A tensor. A clone is the same tensor; a view is another one on the same storage.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    /// Its number; no other tensor of the step has it.
    pub(crate) id: u64,
    pub(crate) shape: Vec<i64>,
    /// In elements.
    pub(crate) strides: Vec<i64>,
    /// Where in the storage it begins, in elements.
    pub(crate) offset: i64,
    pub(crate) dtype: Dtype,
    pub(crate) device: Place,
    /// Its memory; none where it has no element, or is sparse.
    pub(crate) storage: Option<Rc<Block>>,
    /// What takes its gradient, where it needs one.
    pub(crate) grad: Option<GradId>,
    /// Of a sparse tensor, the indices and the values.
    pub(crate) sparse: Option<Rc<[Tensor; 2]>>,
}

/// Where a tensor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// Host memory that the device's copies run to and from beside the host.
    Pinned,
    Device,
}

impl Place {
    /// As PyTorch writes it.
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

/// How many elements a shape has.
pub(crate) fn numel(shape: &[i64]) -> i64 {
    shape.iter().product()
}

impl Tensor {
    pub(crate) fn numel(&self) -> i64 {
        numel(&self.shape)
    }

    /// The size of a dimension.
    pub(crate) fn size(&self, dim: usize) -> i64 {
        self.shape[dim]
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        let steps = self.shape.iter().zip(&self.strides).zip(contiguous(&self.shape));
        self.sparse.is_none()
            && steps.into_iter().all(|((&size, &own), expected)| size == 1 || own == expected)
    }

    /// Whether its elements fill a piece of memory, in some order.
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

    /// Whether nobody else holds its memory.
    pub(crate) fn is_sole_owner(&self) -> bool {
        self.storage.as_ref().is_some_and(|block| Rc::strong_count(block) == 1)
    }
}
