//! Exchanges between ranks for their tables: vectors in the forward pass, gradients in the backward pass.

use steptime_aten::{Arg, Dtype, Tensor};
use steptime_graph::CollectiveKind;
use steptime_step::{NewOp, Patch, StepIr, TensorId};

use crate::exchange::{NewCollective, flat};
use crate::new_ops::{ints, op};

/// Ops that join vectors, exchange them, and split the result.
pub(super) struct Exchange<'s, 'p> {
    pub step: &'s StepIr,
    pub patch: &'p mut Patch,
    pub ranks: u32,
    /// Samples before any resizing, both of sent and of received tensors.
    pub samples: i64,
    pub dtype: Dtype,
    pub ops: Vec<NewOp>,
}

impl Exchange<'_, '_> {
    /// Joins the vectors of each sample into `[samples, columns]`; `None` without vectors.
    pub fn side_by_side(&mut self, parts: &[TensorId]) -> Option<TensorId> {
        let columns = |all: &Self, part: TensorId| all.value(part).numel() as i64 / all.samples.max(1);
        let mut each = Vec::with_capacity(parts.len());
        for &part in parts {
            let width = columns(self, part);
            each.push(if self.value(part).shape.len() == 2 {
                part
            } else {
                self.view(part, &[self.samples, width])
            });
        }
        match each[..] {
            [] => None,
            [one] => Some(one),
            _ => {
                let width = each.iter().map(|&part| self.value(part).size(1)).sum();
                let whole = self.tensor(Tensor::contiguous(&[self.samples, width], self.dtype));
                self.ops.push(op("aten::cat", vec![Arg::Tensors(each), Arg::Int(1)], whole));
                Some(whole)
            }
        }
    }

    /// A collective that sends a matrix, or nothing, and returns `[samples, columns]`.
    pub fn exchanged(&mut self, kind: CollectiveKind, sent: Option<TensorId>, columns: i64) -> TensorId {
        let sent = match sent {
            Some(matrix) => {
                let elements = self.value(matrix).numel() as i64;
                self.view(matrix, &[elements])
            }
            None => self.tensor(flat(0, self.dtype)),
        };
        let received = self.tensor(flat(self.samples * columns, self.dtype));
        self.ops.push(op("aten::new_empty", vec![ints(&[self.samples * columns])], received));
        self.ops.push(NewCollective { kind, ranks: self.ranks, sent, received, beside: None }.op());
        self.view(received, &[self.samples, columns])
    }

    /// Some columns of a matrix, in the shape of another tensor.
    pub fn columns(&mut self, matrix: TensorId, start: i64, like: TensorId) -> TensorId {
        let (whole, like) = (self.value(matrix), self.value(like));
        let width = like.numel() as i64 / self.samples.max(1);
        let strides = whole.strides.clone();
        let offset = whole.offset + start as u64;
        let mut part = Tensor::strided(&[self.samples, width], &strides, self.dtype);
        part.offset = offset;
        let narrowed = self.tensor(part);
        let end = start + width;
        let inputs = vec![Arg::Tensor(matrix), Arg::Int(1), Arg::Int(start), Arg::Int(end), Arg::Int(1)];
        self.ops.push(op("aten::slice", inputs, narrowed));
        if like.shape.len() == 2 {
            return narrowed;
        }
        let mut shaped = Tensor::strided(&like.shape, &like.strides, self.dtype);
        if let (Some(first), Some(step)) = (shaped.strides.first_mut(), strides.first()) {
            *first = *step;
        }
        let shaped = Tensor { offset, ..shaped };
        let viewed = self.tensor(shaped);
        self.ops.push(op("aten::view", vec![Arg::Tensor(narrowed), ints(&like.shape)], viewed));
        viewed
    }

    fn view(&mut self, tensor: TensorId, shape: &[i64]) -> TensorId {
        let viewed = self.tensor(Tensor::contiguous(shape, self.dtype));
        self.ops.push(op("aten::view", vec![Arg::Tensor(tensor), ints(shape)], viewed));
        viewed
    }

    fn tensor(&mut self, value: Tensor) -> TensorId {
        self.patch.tensor(self.step, value)
    }

    fn value(&self, tensor: TensorId) -> Tensor {
        let added = self.patch.added(self.step, tensor);
        added.unwrap_or_else(|| &self.step.tensors[tensor].value).clone()
    }
}
