//! Inputs and outputs of each op for the output: as recorded where they did not change.

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Device, from_execution};
use steptime_graph::execution::{self, Arg as Recorded, ExecutionGraph, NodeId, Scalar};

use super::super::Export;
use crate::call::Call;
use crate::ids::{OpId, TensorId};
use crate::step::StepIr;

/// One argument or result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueText {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Device(String),
    Tensor(TensorRef),
    List(Vec<ValueText>),
}

/// A tensor: of the step, or one that only the trace has, for example of an unknown type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TensorRef {
    Step(Object),
    Trace(execution::TensorId),
}

/// An object that is a tensor of the step. A result saved by autograd has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub tensor: TensorId,
    pub recorded: Option<execution::TensorId>,
}

/// The values of all ops.
pub(super) struct Values<'s> {
    step: &'s StepIr,
    trace: Option<&'s ExecutionGraph>,
    /// The rows of the step by tensors of the trace.
    rows: FxHashMap<(execution::TensorId, Device), TensorId>,
}

impl ValueText {
    /// The tensors that it is or contains.
    pub fn tensors(&self) -> Vec<TensorRef> {
        match self {
            ValueText::Tensor(which) => vec![*which],
            ValueText::List(items) => items.iter().flat_map(ValueText::tensors).collect(),
            _ => Vec::new(),
        }
    }
}

impl<'s> Values<'s> {
    pub fn new(export: &Export<'s>) -> Values<'s> {
        let (step, trace) = (export.step, export.trace);
        let known = step.tensors.iter_enumerated();
        let rows = known.filter_map(|(at, row)| Some(((row.recorded?, row.value.device), at))).collect();
        Values { step, trace, rows }
    }

    /// Inputs and outputs of an op.
    pub fn op(&self, op: OpId) -> [Vec<ValueText>; 2] {
        let row = &self.step.ops[op];
        // A repetition has other tensors, and the other arguments as recorded.
        let node = self.trace.zip(super::order::node(self.step, op));
        let node = node.filter(|(trace, node)| trace.node_name(*node) == row.name);
        let recorded = |range: fn(&ExecutionGraph, NodeId) -> execution::ArgRange| {
            node.map_or(&[][..], |(trace, node)| trace.args.get(range(trace, node)))
        };
        let (inputs, outputs) = (recorded(ExecutionGraph::inputs), recorded(ExecutionGraph::outputs));
        let blank = Call::default();
        let call = row.call.as_deref().unwrap_or(&blank);
        if call.inputs.is_empty() && call.outputs.is_empty() {
            return [inputs, outputs].map(|args| args.iter().map(|&arg| self.recorded(arg)).collect());
        }
        [self.args(&call.inputs, inputs), self.args(&call.outputs, outputs)]
    }

    fn args(&self, args: &[Arg<TensorId>], recorded: &[Recorded]) -> Vec<ValueText> {
        let onto_itself =
            matches!(recorded, [Recorded::Tensor(to), Recorded::Tensor(from), ..] if to == from);
        let each = args.iter().enumerate().map(|(at, arg)| match recorded.get(at) {
            Some(&was) if self.is_kept(arg, was) => self.recorded_value(arg, was),
            // A copy of a tensor onto itself does not take its source.
            Some(&was) if onto_itself && at == 1 && *arg == Arg::None => self.recorded(was),
            _ => self.changed(arg),
        });
        each.collect()
    }

    /// Whether an argument is the recorded one. Its tensors may have changed.
    fn is_kept(&self, arg: &Arg<TensorId>, was: Recorded) -> bool {
        let Some(trace) = self.trace else { return false };
        let read = from_execution::argument_of(trace, was);
        let is_tensor = |arg: &Arg| !arg.tensors().is_empty();
        match (arg, &read) {
            (Arg::Tensor(_), Arg::Tensor(_)) => true,
            (Arg::Tensors(now), Arg::Tensors(read)) => now.len() == read.len(),
            _ => !is_tensor(&read) && arg.tensors().is_empty() && arg.map(|_| ()) == read.map(|_| ()),
        }
    }

    /// An argument in its recorded form, with its current tensors.
    fn recorded_value(&self, arg: &Arg<TensorId>, was: Recorded) -> ValueText {
        match (arg, was) {
            (Arg::Tensor(tensor), Recorded::Tensor(id)) => self.object(*tensor, Some(id)),
            (Arg::Tensor(tensor), _) => self.object(*tensor, None),
            (Arg::Tensors(list), Recorded::TensorList(range)) => {
                let was = self.trace.map_or(&[][..], |trace| trace.args.tensor_list(range));
                let each = list.iter().zip(was);
                ValueText::List(each.map(|(&tensor, &id)| self.object(tensor, Some(id))).collect())
            }
            (Arg::Tensors(list), Recorded::List(range)) => {
                let was = self.trace.map_or(&[][..], |trace| trace.args.get(range));
                let item = |(tensor, was): (&TensorId, &Recorded)| match was {
                    Recorded::Tensor(id) => self.object(*tensor, Some(*id)),
                    _ => self.recorded(*was),
                };
                ValueText::List(list.iter().zip(was).map(item).collect())
            }
            (Arg::Tensors(list), _) => {
                ValueText::List(list.iter().map(|&tensor| self.object(tensor, None)).collect())
            }
            _ => self.recorded(was),
        }
    }

    /// A tensor of the step in place of `was` of the trace: as that object, if both are the same tensor.
    fn object(&self, tensor: TensorId, was: Option<execution::TensorId>) -> ValueText {
        let row = &self.step.tensors[tensor];
        let is_same = |trace: &ExecutionGraph, id: execution::TensorId| {
            let has_own_row = self.rows.contains_key(&(id, row.value.device));
            let first = row.recorded.map(|first| trace.tensors.get(first).storage);
            !has_own_row
                && first == Some(trace.tensors.get(id).storage)
                && from_execution::tensor(trace, id).as_ref() == Some(&row.value)
        };
        let same = self.trace.zip(was).filter(|(trace, id)| is_same(trace, *id));
        let recorded = same.map(|(_, id)| id).or(row.recorded);
        ValueText::Tensor(TensorRef::Step(Object { tensor, recorded }))
    }

    /// An argument as recorded.
    fn recorded(&self, arg: Recorded) -> ValueText {
        let Some(trace) = self.trace else { return ValueText::None };
        match arg {
            Recorded::None | Recorded::Unknown => ValueText::None,
            Recorded::Scalar(Scalar::Bool(value)) => ValueText::Bool(value),
            Recorded::Scalar(Scalar::Int(value)) => ValueText::Int(value),
            Recorded::Scalar(Scalar::Float(value)) => ValueText::Float(value),
            Recorded::Str(name) => ValueText::Text(trace.name(name).to_owned()),
            Recorded::Device(name) => ValueText::Device(trace.name(name).to_owned()),
            Recorded::Tensor(id) => ValueText::Tensor(self.which(trace, id)),
            Recorded::TensorList(range) => {
                let all = trace.args.tensor_list(range).iter();
                ValueText::List(all.map(|&id| ValueText::Tensor(self.which(trace, id))).collect())
            }
            Recorded::List(range) => {
                ValueText::List(trace.args.get(range).iter().map(|&arg| self.recorded(arg)).collect())
            }
        }
    }

    fn which(&self, trace: &ExecutionGraph, id: execution::TensorId) -> TensorRef {
        let read = from_execution::tensor(trace, id);
        let row = read.and_then(|read| self.rows.get(&(id, read.device)));
        row.map_or(TensorRef::Trace(id), |&tensor| TensorRef::Step(Object { tensor, recorded: Some(id) }))
    }

    /// An argument that was not recorded.
    fn changed(&self, arg: &Arg<TensorId>) -> ValueText {
        match arg {
            Arg::None => ValueText::None,
            Arg::Tensor(tensor) => self.object(*tensor, None),
            Arg::Tensors(list) => {
                // A placeholder of a missing tensor has no device.
                let missing = |&tensor: &TensorId| {
                    let value = &self.step.tensors[tensor].value;
                    value.device == Device::Unknown && value.numel() == 0
                };
                let one = |tensor: &TensorId| match missing(tensor) {
                    true => ValueText::None,
                    false => self.object(*tensor, None),
                };
                ValueText::List(list.iter().map(one).collect())
            }
            Arg::Bool(value) => ValueText::Bool(*value),
            Arg::Int(value) => ValueText::Int(*value),
            Arg::Float(value) => ValueText::Float(*value),
            Arg::Ints(list) => ValueText::List(list.iter().copied().map(ValueText::Int).collect()),
            Arg::Floats(list) => ValueText::List(list.iter().copied().map(ValueText::Float).collect()),
            Arg::Text(text) if text == "cpu" || text.starts_with("cuda") => ValueText::Device(text.clone()),
            Arg::Text(text) => ValueText::Text(text.clone()),
        }
    }
}
