//! The signature of an op: readers take an op without one for a label.

use std::borrow::Cow;

use steptime_aten::{Arg, declared_for};

use super::super::{Export, order};
use crate::ids::{OpId, TensorId};

/// The recorded schema of an op, or of the op that it repeats; else PyTorch's declaration; else one made from its arguments and results. Empty for
/// functions and annotations.
pub(super) fn find<'s>(export: &Export<'s>, op: OpId) -> Cow<'s, str> {
    let (step, row) = (export.step, &export.step.ops[op]);
    let recorded = export.trace.zip(order::node(step, op));
    if let Some((trace, node)) = recorded.filter(|(trace, node)| trace.node_name(*node) == row.name) {
        return trace.name(trace.nodes.schema[node.index()]).into();
    }
    let (Some(call), Some(described)) = (&row.call, step.call(op)) else { return "".into() };
    match declared_for(described) {
        Some(schema) => schema.into(),
        None => {
            let kinds = call.inputs.iter().enumerate();
            let takes: Vec<String> = kinds.map(|(at, arg)| format!("{} arg{at}", kind(arg))).collect();
            let gives: Vec<&str> = call.outputs.iter().map(kind).collect();
            let gives =
                if let [one] = gives[..] { one.to_owned() } else { format!("({})", gives.join(", ")) };
            format!("{}({}) -> {gives}", row.name, takes.join(", ")).into()
        }
    }
}

fn kind(arg: &Arg<TensorId>) -> &'static str {
    match arg {
        Arg::None => "Tensor?",
        Arg::Tensor(_) => "Tensor",
        Arg::Tensors(_) => "Tensor[]",
        Arg::Bool(_) => "bool",
        Arg::Int(_) => "int",
        Arg::Float(_) => "float",
        Arg::Ints(_) => "int[]",
        Arg::Floats(_) => "float[]",
        Arg::Text(_) => "str",
    }
}
