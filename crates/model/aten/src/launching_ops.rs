//! Launches of a call, including those of its children.

use crate::call::OpCall;
use crate::kernel::KernelCall;
use crate::op_def::Lowering;
use crate::op_set::{DEEPEST, OpSet};

/// Kernel call, and the op that launches it itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// Op call that launches the kernel.
    pub op: OpCall,
    /// Kernel call that it launches.
    pub kernel: KernelCall,
    /// Whether the op is known; otherwise its cost is its bytes.
    pub known: bool,
}

impl OpSet {
    /// Returns the launches of a call: its own, and those of the ops that it calls.
    #[must_use]
    pub fn leaves(&self, call: &OpCall) -> Vec<Leaf> {
        let mut found = Vec::new();
        collect(self, call, 0, &mut found);
        found
    }
}

fn collect(ops: &OpSet, call: &OpCall, depth: usize, found: &mut Vec<Leaf>) {
    let children = if depth < DEEPEST { ops.expand(call) } else { Vec::new() };
    for child in &children {
        collect(ops, child, depth + 1, found);
    }
    match ops.lower(call) {
        Lowering::Kernel(kernel) => found.push(Leaf { op: call.clone(), kernel, known: true }),
        Lowering::Unknown(kernel) => found.push(Leaf { op: call.clone(), kernel, known: false }),
        Lowering::Children if children.is_empty() => {
            if let Lowering::Unknown(kernel) = ops.by_bytes(call) {
                found.push(Leaf { op: call.clone(), kernel, known: false });
            }
        }
        Lowering::Nothing | Lowering::Children => {}
    }
}
