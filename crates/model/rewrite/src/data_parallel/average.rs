//! Buckets of gradients: filled, averaged, copied back.

use steptime_aten::{Arg, Device, Dtype, Tensor};
use steptime_graph::CollectiveKind;
use steptime_graph::execution::StorageId;
use steptime_step::{Call, NewOp, OpId, Patch, Place, StepIr, TensorId};

use super::DataParallel;
use super::gradients::Gradient;
use crate::exchange::{NewCollective, flat, wait};
use crate::new_ops::{ints, op};
use crate::repeated_tensors::free_storage;

/// Inserts averages into a patch.
pub(super) struct Averages<'s, 'p> {
    step: &'s StepIr,
    patch: &'p mut Patch,
    of: DataParallel,
    /// Stream of the collectives.
    stream: u32,
    next_storage: u32,
    /// Each bucket with its gradients.
    filled: Vec<(TensorId, Vec<Gradient>)>,
}

impl<'s, 'p> Averages<'s, 'p> {
    pub fn new(step: &'s StepIr, patch: &'p mut Patch, of: DataParallel, stream: u32) -> Averages<'s, 'p> {
        Averages { step, patch, of, stream, next_storage: free_storage(step), filled: Vec::new() }
    }

    /// Inserts a bucket: each gradient is copied into it as it arrives, and the bucket is averaged after the last.
    pub fn bucket(&mut self, gradients: &[Gradient]) {
        let Some(last) = gradients.last() else { return };
        let elements = gradients.iter().map(|one| one.elements).sum();
        let (bucket, storage) = self.memory(flat(elements, last.dtype));
        let mut start = 0;
        for gradient in gradients {
            let view = self.view(gradient, start, storage);
            start += gradient.elements;
            let filled = self.filled_by(gradient.tensor, view, last.dtype);
            self.patch.insert.push((Place::LastIn(gradient.function), filled));
        }
        let ops = match self.of.send.filter(|&dtype| dtype != last.dtype) {
            Some(dtype) => self.sent_as(bucket, elements, dtype),
            None => vec![self.all_reduce(bucket)],
        };
        self.patch.insert.extend(ops.into_iter().map(|op| (Place::LastIn(last.function), op)));
        self.filled.push((bucket, gradients.to_vec()));
    }

    /// Copies averages back to the gradients at the end of the backward pass.
    pub fn back(&mut self) {
        let Some(last) = last_function(self.step, &self.filled) else { return };
        let mut ops = vec![wait(self.stream)];
        let mut filled = std::mem::take(&mut self.filled);
        if self.of.views {
            filled.clear();
        }
        for (bucket, gradients) in &filled {
            let storage = self.patch.added_storage(self.step, *bucket);
            let (mut start, mut pairs) = (0, Vec::with_capacity(gradients.len()));
            for gradient in gradients {
                let view = self.view(gradient, start, storage);
                let value = &self.step.tensors[gradient.tensor].value;
                let inputs =
                    vec![Arg::Tensor(*bucket), ints(&value.shape), ints(&value.strides), Arg::Int(start)];
                ops.push(op("aten::as_strided", inputs, view));
                start += gradient.elements;
                pairs.push((gradient.tensor, view));
            }
            ops.extend(pairs.into_iter().map(|(gradient, view)| {
                let inside = vec![copy(gradient, view)];
                let call = Call { inputs: vec![Arg::Tensor(gradient)], ..Call::default() };
                NewOp::new("torch.distributed.ddp.reducer::copy_bucket_to_grad", call).with(inside)
            }));
        }
        // Ops inserted after the same op come in reverse order.
        self.patch.insert.extend(ops.into_iter().rev().map(|op| (Place::After(last), op)));
    }

    fn filled_by(&mut self, gradient: TensorId, view: TensorId, dtype: Dtype) -> NewOp {
        let around = |name, inside| {
            let call = Call { inputs: vec![Arg::Tensor(view)], ..Call::default() };
            NewOp::new(name, call).with(vec![inside])
        };
        if self.of.send.is_some() {
            return around("torch::distributed::reducer::copy_", copy(view, gradient));
        }
        let share = Tensor { device: Device::Cpu, ..Tensor::contiguous(&[], dtype) };
        let share = self.patch.tensor(self.step, share);
        let inputs = vec![Arg::Tensor(gradient), Arg::Tensor(share), Arg::Tensor(view)];
        around("torch::distributed::reducer::mul_out", op("aten::mul", inputs, view))
    }

    fn all_reduce(&self, memory: TensorId) -> NewOp {
        let (ranks, beside) = (self.of.ranks, Some(self.stream));
        NewCollective { kind: CollectiveKind::AllReduce, ranks, sent: memory, received: memory, beside }.op()
    }

    /// A bucket sent in another type: cast, divided, averaged, and cast back.
    fn sent_as(&mut self, bucket: TensorId, elements: i64, dtype: Dtype) -> Vec<NewOp> {
        let (small, _) = self.memory(flat(elements, dtype));
        let to = |name: &str| op(name, vec![Arg::Tensor(bucket), Arg::Int(dtype.code())], small);
        let empty = op("aten::empty_strided", vec![ints(&[elements]), ints(&[1])], small);
        let copied = to("aten::_to_copy").with(vec![empty, copy(small, bucket)]);
        let divided = vec![Arg::Tensor(small), Arg::Int(i64::from(self.of.ranks))];
        // The cast back is queued behind the collective, on the stream of the callback.
        vec![
            to("aten::to").with(vec![copied]),
            op("aten::div_", divided, small),
            self.all_reduce(small),
            copy(bucket, small).on_stream(self.stream),
        ]
    }

    /// Memory allocated before the step.
    fn memory(&mut self, value: Tensor) -> (TensorId, Option<StorageId>) {
        let storage = StorageId(self.next_storage);
        self.next_storage += 1;
        (self.patch.tensor_in(self.step, value, Some(storage)), Some(storage))
    }

    /// View of a gradient's part of a bucket.
    fn view(&mut self, gradient: &Gradient, start: i64, storage: Option<StorageId>) -> TensorId {
        let value = self.step.tensors[gradient.tensor].value.clone();
        self.patch.tensor_in(self.step, Tensor { offset: start as u64, ..value }, storage)
    }
}

fn copy(to: TensorId, from: TensorId) -> NewOp {
    op("aten::copy_", vec![Arg::Tensor(to), Arg::Tensor(from), Arg::Bool(false)], to)
}

/// The function after which all gradients are ready: the last on the thread of their functions.
fn last_function(step: &StepIr, filled: &[(TensorId, Vec<Gradient>)]) -> Option<OpId> {
    let thread = step.ops[filled.first()?.1.first()?.function].thread;
    let engine = |op: &&OpId| step.event(**op).is_engine();
    let outermost =
        step.running().into_iter().filter(|&op| step.ops[op].thread == thread && step.outermost(op) == op);
    outermost.collect::<Vec<OpId>>().iter().rfind(engine).copied()
}
