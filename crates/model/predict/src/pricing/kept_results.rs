//! Results that a script keeps alive beyond their last use, as its recorder saw.

use rustc_hash::FxHashMap;
use steptime_graph::StepGraph;
use steptime_step::{LifetimeEnd, OpId, StepIr, TensorId};
use steptime_trace::KeptResult;

/// Sets the end of life of each kept tensor. An op is found by its name, the shape of its result and its number among such ops; a step with
/// more or fewer of them than the recorder saw is left unchanged.
pub(super) fn mark(step: &mut StepIr, graph: &StepGraph, kept: &[KeptResult]) {
    if kept.is_empty() {
        return;
    }
    let mut given: FxHashMap<(&str, &[i64]), Vec<TensorId>> =
        kept.iter().map(|result| ((result.op.as_str(), result.shape.as_slice()), Vec::new())).collect();
    let mut ops: Vec<_> = graph.ops.iter_enumerated().collect();
    ops.sort_by_key(|&(op, row)| (row.phase, op));
    for (op, _) in ops {
        let Some(call) = step.ops[OpId::from_recorded(op)].call.as_deref() else { continue };
        let name = graph.op_name(op);
        let mut seen: Vec<&[i64]> = Vec::new();
        for tensor in call.gives() {
            let shape = &step.tensors[tensor].value.shape[..];
            if let Some(tensors) = given.get_mut(&(name, shape)).filter(|_| !seen.contains(&shape)) {
                tensors.push(tensor);
                seen.push(shape);
            }
        }
    }
    let found = kept.iter().filter_map(|result| {
        let tensors = &given[&(result.op.as_str(), result.shape.as_slice())];
        let until = if result.until_next { LifetimeEnd::NextStep } else { LifetimeEnd::EndOfStep };
        (tensors.len() == result.count).then(|| tensors.get(result.number).map(|&tensor| (tensor, until)))?
    });
    for (tensor, until) in found.collect::<Vec<_>>() {
        step.tensors[tensor].until = until;
    }
}
