//! Ops that run inside of others in the steps of described models, or after rules alone: each in a step of its own.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use steptime_aten::{Arg, Dtype, Tensor as Value};
use steptime_eager::{Initial, Role};
use steptime_graph::HostThreadId;
use steptime_step::{Call, LifetimeEnd, Op, OpId, Origin, SharedCall, StepIr, Tensor, TensorId};

use super::check;
use crate::compile::compile_in;
use crate::described::DescribedStep;
use crate::plan::Reuse;
use crate::target::Target;

/// A step under construction.
#[derive(Default)]
struct Written {
    step: StepIr,
    names: FxHashMap<TensorId, (String, Role)>,
}

impl Written {
    fn tensor(&mut self, shape: &[i64], dtype: Dtype) -> TensorId {
        let value = Value::contiguous(shape, dtype);
        let until = LifetimeEnd::LastUse;
        self.step.tensors.push_and_get_key(Tensor {
            value,
            storage: None,
            recorded: None,
            made: false,
            until,
        })
    }

    fn floats(&mut self, shape: &[i64]) -> TensorId {
        self.tensor(shape, Dtype::F32)
    }

    /// A tensor with random elements.
    fn parameter(&mut self, shape: &[i64]) -> TensorId {
        let tensor = self.floats(shape);
        self.names.insert(tensor, (format!("{tensor:?}"), Role::Parameter(Initial::Normal)));
        tensor
    }

    fn op(&mut self, name: &str, inputs: Vec<Arg<TensorId>>, outputs: &[TensorId]) {
        let outputs = outputs.iter().map(|&tensor| Arg::Tensor(tensor)).collect();
        let call = Some(SharedCall::from(Call { inputs, outputs, ..Call::default() }));
        self.step.ops.push(Op {
            name: name.to_owned(),
            annotation: false,
            call,
            thread: HostThreadId::MAIN,
            parent: None,
            children: Vec::new(),
            sequence: None,
            origin: Origin::Inserted("test"),
            node: None,
            again: None,
            round: 0,
            script: 0.0,
            captured: false,
            ahead: false,
            stream: 0,
            waits: None,
            exchange: None,
        });
    }
}

/// All rare ops, each once.
fn written() -> Written {
    let mut w = Written::default();
    let [a, b, weight, bias] = [&[6, 5][..], &[6, 5], &[5, 4], &[4]].map(|shape| w.parameter(shape));
    let (tensor, number) = (Arg::Tensor::<TensorId>, Arg::Int::<TensorId>);
    let y = w.floats(&[6, 4]);
    w.op("aten::addmm", vec![tensor(bias), tensor(a), tensor(weight), number(1), number(1)], &[y]);
    for name in ["aten::zeros", "aten::zeros_like"] {
        let x = w.floats(&[6, 5]);
        w.op(name, vec![tensor(a)], &[x]);
    }
    let gated = w.floats(&[6, 5]);
    w.op("aten::threshold_backward", vec![tensor(a), tensor(b), number(0)], &[gated]);
    w.op("aten::relu_", vec![tensor(b)], &[b]);
    let c = w.floats(&[6, 5]);
    w.op("aten::copy_", vec![tensor(c), tensor(a), Arg::Bool(false)], &[c]);
    w.op("aten::fill_", vec![tensor(c), Arg::Float(2.5)], &[c]);
    w.op("aten::zero_", vec![tensor(c)], &[c]);
    // A part of a matrix: strides of a view.
    let part = w.floats(&[6, 2]);
    let last = w.step.tensors.last_mut().expect("a tensor");
    last.value = Value::strided(&[6, 2], &[5, 1], Dtype::F32);
    w.op("aten::narrow", vec![tensor(a), number(1), number(3), number(2)], &[part]);
    let copy = w.floats(&[6, 2]);
    w.op("aten::clone", vec![tensor(part), Arg::None], &[copy]);
    let (indices, offsets) = (w.tensor(&[7], Dtype::I64), w.tensor(&[3], Dtype::I64));
    for (tensor, values) in [(indices, vec![0, 5, 2, 2, 1, 4, 5]), (offsets, vec![0, 3, 3])] {
        w.names.insert(tensor, (format!("{tensor:?}"), Role::Indices(values)));
    }
    let (pooled, bag) = (w.floats(&[3, 5]), w.tensor(&[7], Dtype::I64));
    let (size, none) = (w.tensor(&[3], Dtype::I64), w.tensor(&[0], Dtype::I64));
    let flags = [Arg::Bool(false), number(1), Arg::Bool(true), Arg::None, Arg::Bool(false), number(-1)];
    let inputs = [tensor(a), tensor(indices), tensor(offsets)].into_iter().chain(flags).collect();
    w.op("aten::_embedding_bag", inputs, &[pooled, bag, size, none]);
    // One row for each lookup, and the numbers of lookups.
    let (rows, sizes) = (w.floats(&[7, 5]), w.tensor(&[7], Dtype::I64));
    w.op("aten::index_select", vec![tensor(pooled), number(0), tensor(bag)], &[rows]);
    w.op("aten::index_select", vec![tensor(size), number(0), tensor(bag)], &[sizes]);
    w
}

/// Compares all of them with their plain versions.
pub(super) fn check_all(names: &mut BTreeSet<String>) {
    let written = written();
    let order: Vec<OpId> = written.step.ops.keys().collect();
    let described = DescribedStep::of_step(written.step, written.names);
    let program = compile_in(&described, &order, Target::Cpu, Reuse::ByLifetime).expect("it compiles");
    check(&described, program, |_| (), names);
}
