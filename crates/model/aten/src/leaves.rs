//! Everything a call launches, its children included.

use crate::call::OpCall;
use crate::kernel::KernelCall;
use crate::ops::Lowered;
use crate::registry;

/// Ops nest no deeper than this; a rule that calls itself would.
const DEEPEST: usize = 12;

/// One kernel call, and the op that launches it by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The op.
    pub op: OpCall,
    /// What it launches.
    pub kernel: KernelCall,
    /// Whether the op is known, else it is priced by its bytes.
    pub known: bool,
}

/// What a call launches: by itself, and through the ops that it calls in turn.
#[must_use]
pub fn leaves(call: &OpCall) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(call, 0, &mut found);
    found
}

fn collect(call: &OpCall, depth: usize, found: &mut Vec<Leaf>) {
    let children = if depth < DEEPEST { registry::expand(call) } else { Vec::new() };
    for child in &children {
        collect(child, depth + 1, found);
    }
    match registry::lower(call) {
        Lowered::Kernel(kernel) => found.push(Leaf { op: call.clone(), kernel, known: true }),
        Lowered::Unknown(kernel) => found.push(Leaf { op: call.clone(), kernel, known: false }),
        Lowered::Children if children.is_empty() => {
            if let Lowered::Unknown(kernel) = crate::fallback::lower(call) {
                found.push(Leaf { op: call.clone(), kernel, known: false });
            }
        }
        Lowered::Nothing | Lowered::Children => {}
    }
}
