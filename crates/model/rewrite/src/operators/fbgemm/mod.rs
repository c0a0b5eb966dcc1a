//! The calls of FBGEMM's table-batched embeddings, as `SplitTableBatchedEmbeddingBagsCodegen` of version 1.6 makes them.

mod sorting;

use steptime_aten::{Arg, Device, Dtype, Tensor};
use steptime_graph::names::ACCUMULATE_GRAD;
use steptime_step::{Call, NewOp, TensorId};

use super::calls::Calls;
use super::groups::Group;
use super::inputs::Inputs;
use super::views::Views;
use crate::new_ops::{function, ints, op};

/// Host time of the Python module before the check of indices and before the lookup, and of its backward op apart from launches, in units of a small
/// op with autograd: from three recordings on one host.
const PYTHON: [f64; 2] = [7.0, 44.0];
const BACKWARD: f64 = 11.0;

/// All tables of a group as one, with the module's other tensors.
pub(super) struct FusedTables<'c> {
    group: &'c Group,
    indices: TensorId,
    offsets: TensorId,
    /// All elements, all elements of each optimizer state, and an empty tensor for unused memory locations.
    weights: TensorId,
    states: Vec<TensorId>,
    none: TensorId,
    /// For each table, its memory location and begin; and the columns and rows before it.
    places: TensorId,
    begins: TensorId,
    columns: TensorId,
    rows: TensorId,
    /// The learning rate, and the number of steps taken: scalars on the host.
    rate: TensorId,
    steps: TensorId,
    /// The number of steps, on the device.
    steps_there: TensorId,
}

impl<'c> FusedTables<'c> {
    /// The tensors for a group's tables.
    pub fn new(views: &mut Views<'_>, group: &'c Group, inputs: &Inputs) -> FusedTables<'c> {
        let count = group.members.len() as i64;
        let elements = group.members.iter().map(|each| views.value(each.lookup.table).numel() as i64);
        let elements: i64 = elements.fold(0, i64::saturating_add);
        let states = match group.optimizer() {
            Some("adagrad") => 1,
            Some("adam") => 2,
            _ => 0,
        };
        let [rate, steps] = [(&[][..], Dtype::F32), (&[1], Dtype::I64)].map(|(shape, dtype)| {
            views.patch.tensor(views.step, Tensor { device: Device::Cpu, ..Tensor::contiguous(shape, dtype) })
        });
        let mut on_device = |shape: &[i64], dtype| tensor(views, shape, dtype);
        FusedTables {
            group,
            indices: inputs.indices,
            offsets: inputs.offsets,
            weights: on_device(&[elements], Dtype::F32),
            states: (0..states).map(|_| on_device(&[elements], Dtype::F32)).collect(),
            none: on_device(&[0], Dtype::F32),
            places: on_device(&[count], Dtype::I32),
            begins: on_device(&[count], Dtype::I64),
            columns: on_device(&[count + 1], Dtype::I32),
            rows: on_device(&[count + 1], Dtype::I64),
            rate,
            steps,
            steps_there: on_device(&[1], Dtype::I64),
        }
    }

    fn name(&self) -> &'static str {
        self.group.optimizer().unwrap_or("none")
    }

    fn widest(&self) -> i64 {
        self.group.members.iter().map(|member| member.lookup.width).max().unwrap_or(0)
    }

    /// `weights, none, none, places, begins, columns, [columns in all,] widest`: the first arguments of all calls.
    fn tables(&self, views: &Views<'_>, pooled: Option<TensorId>) -> Vec<Arg<TensorId>> {
        let tensors = [self.weights, self.none, self.none, self.places, self.begins, self.columns];
        let mut args: Vec<Arg<TensorId>> = tensors.map(Arg::Tensor).into();
        args.extend(pooled.map(|pooled| Arg::Int(views.value(pooled).size(1))));
        args.push(Arg::Int(self.widest()));
        args
    }

    /// `indices, offsets, mode`.
    fn lookups(&self) -> [Arg<TensorId>; 3] {
        let mode = i64::from(self.group.members[0].lookup.mean);
        [Arg::Tensor(self.indices), Arg::Tensor(self.offsets), Arg::Int(mode)]
    }
}

impl Calls for FusedTables<'_> {
    /// Checks indices, then looks them up.
    fn forward(&self, views: &mut Views<'_>, pooled: TensorId) -> Vec<NewOp> {
        let warning = views.tensor(&[1], self.indices);
        let lookups = self.lookups().into_iter().take(2);
        let inputs = [Arg::Tensor(self.rows)].into_iter().chain(lookups).collect();
        let check = NewOp::new("fbgemm::bounds_check_indices", Call { inputs, ..Call::default() });
        let check = check.with(vec![zeroed(warning)]).taking(PYTHON[0]);
        let inputs = [self.tables(views, Some(pooled)), self.lookups().into()].concat();
        let shape = views.value(pooled).shape;
        let empty = op("aten::empty", vec![ints(&shape)], pooled);
        let pool = op("fbgemm::split_embedding_codegen_forward_unweighted_cuda", inputs, pooled);
        let pool = NewOp::around(
            "fbgemm::split_embedding_codegen_forward_unweighted_pt2_wrapper",
            vec![pool.with(vec![empty])],
        );
        let rate = views.tensor(&[], self.rate);
        let inputs = vec![Arg::Tensor(self.rate), Arg::None];
        let memory = op("aten::empty_strided", vec![ints(&[]), ints(&[])], rate);
        let copy = op("aten::copy_", vec![Arg::Tensor(rate), Arg::Tensor(self.rate), Arg::Bool(false)], rate);
        let rate = op("aten::clone", inputs, rate).with(vec![memory, copy]);
        let mut before = vec![same(self.steps), same(self.offsets), check];
        let mut inside = Vec::new();
        if self.name() == "adam" {
            before.push(same(self.steps));
            for steps in [self.steps, self.steps_there] {
                before.push(read(self.steps));
                let inputs =
                    vec![Arg::Tensor(steps), Arg::Tensor(views.tensor(&[], self.steps)), Arg::Int(1)];
                before.push(op("aten::add_", inputs, steps));
            }
        }
        for _ in 0..if self.name() == "adam" { 6 } else { 1 } {
            inside.push(op("aten::empty", vec![ints(&[0])], views.tensor(&[0], self.weights)));
        }
        inside.extend([rate, pool]);
        let name = format!("fbgemm::split_embedding_codegen_lookup_{}_function_pt2", self.name());
        before.push(NewOp::around(&name, inside).taking(PYTHON[1]));
        before
    }

    /// The function that sorts indices, reduces gradients and updates rows; and an `AccumulateGrad` without a gradient.
    fn backward(&self, views: &mut Views<'_>, gradient: TensorId) -> Vec<NewOp> {
        let count = views.value(self.indices).numel() as i64;
        let (copy, taken) = views.contiguous(gradient);
        let mut children = vec![read(self.rate)];
        children.extend(copy);
        if self.group.members[0].lookup.mean {
            let to = views.tensor(&views.value(taken).shape.clone(), taken);
            children.push(like("aten::empty_like", taken, to, views));
        }
        children.extend(self.sorting(views, count));
        let mut inputs = vec![Arg::Tensor(taken)];
        inputs.extend(self.tables(views, None));
        inputs.extend([Arg::Bool(true), Arg::Tensor(self.rows), Arg::Int(64)]);
        inputs.extend(self.lookups());
        let of_state = |&state: &TensorId| [state, self.none, self.places, self.begins].map(Arg::Tensor);
        inputs.extend(self.states.iter().flat_map(of_state));
        inputs.push(Arg::Tensor(self.rate));
        let name = format!("fbgemm::split_embedding_backward_codegen_{}_unweighted", self.name());
        let exact = NewOp::new(&format!("{name}_exact_cuda"), Call { inputs, ..Call::default() });
        let wrapper =
            NewOp::around(&format!("{name}_pt2_wrapper"), vec![exact.with(children)]).taking(BACKWARD);
        let node = format!("torch::autograd::CppNode<SplitLookupFunction_{}_Op_pt2>", self.name());
        vec![function(&node, &[gradient], vec![wrapper]), function(ACCUMULATE_GRAD, &[], Vec::new())]
    }
}

/// A new tensor on the device.
fn tensor(views: &mut Views<'_>, shape: &[i64], dtype: Dtype) -> TensorId {
    let value = Tensor { device: Device::Cuda, ..Tensor::contiguous(shape, dtype) };
    views.patch.tensor(views.step, value)
}

/// A new tensor by `empty_like`.
fn like(name: &str, from: TensorId, to: TensorId, views: &Views<'_>) -> NewOp {
    let value = views.value(to);
    let memory = op("aten::empty_strided", vec![ints(&value.shape), ints(&value.strides)], to);
    op(name, vec![Arg::Tensor(from)], to).with(vec![memory])
}

/// A `to` without effect.
fn same(tensor: TensorId) -> NewOp {
    op("aten::to", vec![Arg::Tensor(tensor)], tensor)
}

/// A read of a number in host memory.
fn read(tensor: TensorId) -> NewOp {
    let call = || Call { inputs: vec![Arg::Tensor(tensor)], ..Call::default() };
    let inner = NewOp::new("aten::_local_scalar_dense", call());
    NewOp::new("aten::item", call()).with(vec![inner])
}

/// `zero_` of a tensor.
fn zeroed(tensor: TensorId) -> NewOp {
    let fill = op("aten::fill_", vec![Arg::Tensor(tensor), Arg::Int(0)], tensor);
    op("aten::zero_", vec![Arg::Tensor(tensor)], tensor).with(vec![fill])
}
