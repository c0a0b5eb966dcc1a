//! What libraries take for themselves.

use rustc_hash::FxHashSet;

use crate::ids::OpId;
use crate::step::Step;

/// Ops that cuBLAS computes.
const BY_CUBLAS: [&str; 6] =
    ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation", "aten::addmv"];

/// Those of them that cuBLASLt computes, which adds the bias, too: a vector of as many columns as the product has.
const BY_CUBLASLT: [&str; 2] = ["aten::addmm", "aten::_addmm_activation"];

/// Bytes that PyTorch gives each handle of cuBLAS, one a thread: on GPUs of these compute capabilities and others.
const ON_HOPPER: u64 = 4096 * 8 * 1024;
const ELSEWHERE: u64 = (4096 * 2 + 16 * 8) * 1024;
/// Bytes that PyTorch gives cuBLASLt, for each thread.
const OF_CUBLASLT: u64 = 1024 * 1024;

/// Workspaces of cuBLAS and cuBLASLt, bytes. Those of cuDNN are not known, and taken for none.
pub(super) fn bytes(step: &Step, running: &[OpId], capability: Option<u32>) -> u64 {
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

/// Whether a factor is sparse: cuSPARSE multiplies then, which has no workspace of its own.
fn is_sparse(step: &Step, op: OpId) -> bool {
    step.call(op).is_some_and(|call| call.input_tensors().any(|(.., tensor)| tensor.is_sparse()))
}

/// Whether a product of matrices, neither of which is a vector, has a bias of a row.
fn has_bias(step: &Step, op: OpId) -> bool {
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
