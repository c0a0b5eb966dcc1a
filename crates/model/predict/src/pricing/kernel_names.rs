//! Information from kernel names that arguments of ops lack: products in TF32, and non-dense tensors where
//! strides were not recorded.

use std::collections::BTreeSet;

use steptime_aten::kernel::{Kernel, Layout};
use steptime_aten::{Arg, KernelCall, OpCall, Settings, Tensor};
use steptime_graph::{OpId, StepGraph};

/// Ops of a step classified by the names of their kernels.
pub(super) struct KernelNames {
    in_tf32: BTreeSet<OpId>,
    strided: BTreeSet<OpId>,
}

/// Facts about one op from its kernels' names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameFacts {
    /// PyTorch's settings for it.
    pub settings: Settings,
    /// Whether its kernel computes an offset for each element.
    pub strided: bool,
}

impl KernelNames {
    /// Classifies the ops of a step.
    pub fn classify(graph: &StepGraph) -> KernelNames {
        // An op's first kernel may be an auxiliary one, which broadcasts a bias or clears memory.
        let ops = |says: fn(&str) -> bool| {
            let named = |call: &&steptime_graph::Call| {
                call.activities().any(|activity| says(graph.names.get(graph.activities[activity].name)))
            };
            graph.calls.iter().filter(named).filter_map(|call| call.op).collect()
        };
        KernelNames { in_tf32: ops(is_in_tf32), strided: ops(is_strided) }
    }

    /// Facts about an op, under the given settings.
    pub fn seen(&self, op: Option<OpId>, settings: Settings) -> NameFacts {
        let among = |ops: &BTreeSet<OpId>| op.is_some_and(|op| ops.contains(&op));
        let matmul_tf32 = settings.matmul_tf32 || among(&self.in_tf32);
        NameFacts { settings: Settings { matmul_tf32, ..settings }, strided: among(&self.strided) }
    }
}

/// Whether a library multiplied in TF32: a recording shows this setting only in the names of kernels.
fn is_in_tf32(kernel: &str) -> bool {
    ["tf32", "s1688gemm"].iter().any(|mark| kernel.contains(mark))
}

/// Whether it is PyTorch's elementwise kernel for non-dense tensors; those for dense ones are `vectorized_` and `unrolled_`.
fn is_strided(kernel: &str) -> bool {
    let name = kernel.split('<').next().unwrap_or(kernel);
    name.rsplit([':', ' ']).next() == Some("elementwise_kernel")
}

/// Whether a call was assumed to touch only dense tensors.
pub(super) fn is_flat(call: &KernelCall) -> bool {
    match &call.kernel {
        Kernel::DeviceCopy => true,
        Kernel::Elementwise(elementwise) => matches!(elementwise.layout, Layout::Vectorized | Layout::Dense),
        _ => false,
    }
}

/// The call with its last tensor transposed as attention and two-dimensional layers do: the two dimensions before the last one
/// exchanged, or the last two where there are no others. `None` where the transposed view is the same.
pub(super) fn transposed(call: &OpCall) -> Option<OpCall> {
    let mut call = call.clone();
    let tensor = call.inputs.iter_mut().rev().find_map(|arg| match arg {
        Arg::Tensor(tensor) => Some(tensor),
        _ => None,
    })?;
    exchange(tensor).then_some(call)
}

/// Gives a dense tensor the strides of such a view, and returns whether that is possible.
fn exchange(tensor: &mut Tensor) -> bool {
    let wide = |dim: &usize| tensor.shape[*dim] > 1;
    let dims: Vec<usize> = (0..tensor.shape.len()).filter(wide).collect();
    let (outer, inner) = match dims[..] {
        [.., outer, inner, _] => (outer, inner),
        [outer, inner] => (outer, inner),
        _ => return false,
    };
    let mut order: Vec<usize> = (0..tensor.shape.len()).collect();
    order.swap(outer, inner);
    let mut stride = 1;
    for dim in order.into_iter().rev() {
        tensor.strides[dim] = stride;
        stride *= tensor.shape[dim].max(1);
    }
    true
}

#[cfg(test)]
mod tests {
    use steptime_aten::{Dtype, OpSet};

    use super::*;

    #[test]
    fn kernels_of_dense_tensors_are_told_from_those_of_strided_ones() {
        assert!(is_strided("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<add>>"));
        assert!(is_strided("elementwise_kernel"));
        for dense in
            ["vectorized_elementwise_kernel<4, add>", "void at::native::unrolled_elementwise_kernel<copy>"]
        {
            assert!(!is_strided(dense), "{dense}");
        }
        assert!(!is_strided("void at::native::index_elementwise_kernel<128, 4>"));
        assert!(!is_strided("void f<at::native::elementwise_kernel>"));
    }

    #[test]
    fn a_view_exchanges_heads_and_places() {
        let mut tensor = Tensor::contiguous(&[8, 12, 197, 64], Dtype::F32);
        assert!(exchange(&mut tensor));
        assert_eq!(tensor.strides[..], [12 * 197 * 64, 64, 12 * 64, 1]);
        let mut square = Tensor::contiguous(&[30, 1, 20], Dtype::F32);
        assert!(exchange(&mut square));
        assert_eq!((square.strides[0], square.strides[2]), (1, 30));
        assert!(!exchange(&mut Tensor::contiguous(&[1, 20], Dtype::F32)));
    }

    #[test]
    fn a_copy_by_a_strided_kernel_is_no_plain_copy() {
        let tensor = || Arg::Tensor(Tensor::contiguous(&[8, 12, 197, 64], Dtype::F32));
        let call = OpCall::new("aten::copy_", vec![tensor(), tensor(), Arg::None]);
        let ops = OpSet::standard();
        let lowered = |strided| {
            let seen = NameFacts { settings: call.settings, strided };
            super::super::lowering::lower(&call, seen, &ops, |call| ops.lower(call))
                .map(|(call, _)| call.kernel)
        };
        assert_eq!(lowered(false), Some(Kernel::DeviceCopy));
        assert!(matches!(lowered(true), Some(Kernel::Elementwise(copy)) if copy.numel == 8 * 12 * 197 * 64));
    }
}
