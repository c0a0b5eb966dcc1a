//! Workspaces of libraries.

use rustc_hash::FxHashSet;

use crate::ids::OpId;
use crate::step::StepIr;

/// Ops computed by cuBLAS.
const BY_CUBLAS: [&str; 6] =
    ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation", "aten::addmv"];

/// The ones computed by cuBLASLt, which also adds the bias: a vector with as many elements as the product has columns.
const BY_CUBLASLT: [&str; 2] = ["aten::addmm", "aten::_addmm_activation"];

/// Bytes of PyTorch's workspace for each cuBLAS handle, one per thread: on GPUs from Hopper on, and on others.
const ON_HOPPER: u64 = 4096 * 8 * 1024;
const ELSEWHERE: u64 = (4096 * 2 + 16 * 8) * 1024;
/// Bytes of PyTorch's workspace for cuBLASLt, per thread.
const OF_CUBLASLT: u64 = 1024 * 1024;

/// Workspaces of cuBLAS and cuBLASLt, bytes. Those of cuDNN are unknown, and taken to be empty.
pub(super) fn bytes(step: &StepIr, running: &[OpId], capability: Option<u32>) -> u64 {
    let threads = |uses: &dyn Fn(OpId) -> bool| {
        let threads: FxHashSet<_> =
            running.iter().filter(|&&op| uses(op)).map(|&op| step.ops[op].thread).collect();
        threads.len() as u64
    };
    let cublas = threads(&|op| BY_CUBLAS.contains(&&*step.ops[op].name) && !is_sparse(step, op));
    let cublaslt = threads(&|op| BY_CUBLASLT.contains(&&*step.ops[op].name) && has_bias(step, op));
    let each = if capability.is_some_and(|major| major >= 9) { ON_HOPPER } else { ELSEWHERE };
    cublas * each + cublaslt * OF_CUBLASLT
}

/// Whether a factor is sparse: cuSPARSE multiplies then, without a workspace.
fn is_sparse(step: &StepIr, op: OpId) -> bool {
    step.call(op).is_some_and(|call| call.input_tensors().any(|(.., tensor)| tensor.is_sparse()))
}

/// Whether a product of two matrices, neither of them a vector, has a bias of one row.
fn has_bias(step: &StepIr, op: OpId) -> bool {
    let Some(call) = step.call(op) else { return false };
    let [bias, _, b] = [0, 1, 2].map(|at| call.tensor_at(at));
    bias.zip(b).is_some_and(|(bias, b)| {
        bias.shape.len() == 1
            && bias.is_contiguous()
            && b.size(0) > 1
            && b.size(1) > 1
            && bias.size(0) == b.size(1)
    })
}
