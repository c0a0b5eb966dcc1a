//! What libraries take for themselves.

use rustc_hash::FxHashSet;

use crate::ids::OpId;
use crate::step::Step;

/// Ops that cuBLAS computes.
const BY_CUBLAS: [&str; 6] =
    ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation", "aten::addmv"];

/// Bytes that PyTorch gives each handle of cuBLAS, one a thread: on GPUs of these compute capabilities and others.
const ON_HOPPER: u64 = 4096 * 8 * 1024;
const ELSEWHERE: u64 = (4096 * 2 + 16 * 8) * 1024;

/// Workspaces of cuBLAS, bytes. Those of cuDNN are not known, and taken for none.
pub(super) fn bytes(step: &Step, running: &[OpId], capability: Option<u32>) -> u64 {
    let running = running.iter().map(|&op| &step.ops[op]);
    let threads: FxHashSet<_> =
        running.filter(|row| BY_CUBLAS.contains(&&*row.name)).map(|row| row.thread).collect();
    let each = if capability.is_some_and(|major| major >= 9) { ON_HOPPER } else { ELSEWHERE };
    threads.len() as u64 * each
}
