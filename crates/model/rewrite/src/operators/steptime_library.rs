//! The calls of `steptime.operators`.

use steptime_aten::Arg;
use steptime_graph::names::ACCUMULATE_GRAD;
use steptime_step::{Call, NewOp, Place, StepIr, TensorId};

use super::calls::Calls;
use super::groups::{Group, Member, Training};
use super::inputs::Inputs;
use super::table_training::LookupBackward;
use super::views::Views;
use crate::new_ops::{function, ints, op};

/// Bits per element: tables hold 32-bit floats.
const BITS: i64 = 32;
/// Number of the op's compiled plan.
const PLAN: i64 = 1;

/// The calls of a group.
pub(super) struct Pool<'c> {
    pub group: &'c Group,
    pub inputs: &'c Inputs,
}

impl Pool<'_> {
    fn tables(&self) -> Arg<TensorId> {
        Arg::Tensors(self.group.members.iter().map(|member| member.lookup.table).collect())
    }

    fn lookups(&self) -> [Arg<TensorId>; 3] {
        [Arg::Tensor(self.inputs.indices), Arg::Tensor(self.inputs.offsets), Arg::None]
    }

    fn mode(&self) -> Arg<TensorId> {
        Arg::Int(i64::from(self.group.members[0].lookup.mean))
    }

    /// Number of lookups of each table.
    fn counts(&self, step: &StepIr) -> Arg<TensorId> {
        let count = |member: &Member| step.tensors[member.lookup.indices].value.numel() as i64;
        ints(&self.group.members.iter().map(count).collect::<Vec<_>>())
    }

    /// Inserts `AccumulateGrad` for the anchor tensor of the call, whose gradient is undefined.
    fn anchored(&self, views: &mut Views<'_>) {
        let Some(at) = self.group.begins else { return };
        let accumulate = function(ACCUMULATE_GRAD, &[], Vec::new());
        views.patch.insert.push((Place::After(at), accumulate));
    }

    /// The update of the tables by an optimizer.
    fn update(&self, step: &StepIr, gradient: TensorId, optimizer: &str) -> NewOp {
        let inputs = [
            vec![Arg::Tensor(gradient), self.tables()],
            self.lookups().to_vec(),
            vec![self.mode(), Arg::Int(PLAN), self.counts(step)],
        ];
        let call = Call { inputs: inputs.concat(), ..Call::default() };
        NewOp::new(&format!("steptime::embedding_bag_backward_{optimizer}"), call)
    }

    /// The dense gradients of the tables, which are zeros before rows are added.
    fn dense_gradients(&self, step: &StepIr, gradient: TensorId) -> NewOp {
        let made: Vec<TensorId> = self.group.trained().filter_map(LookupBackward::table_gradient).collect();
        let shape = |&made: &TensorId| step.tensors[made].value.shape.clone();
        let size = |dim: usize| ints(&made.iter().map(|made| shape(made)[dim]).collect::<Vec<_>>());
        let mut children: Vec<NewOp> =
            made.iter().map(|made| op("aten::empty", vec![ints(&shape(made))], *made)).collect();
        let zeros = Call { inputs: vec![Arg::Tensors(made.clone())], ..Call::default() };
        children.push(NewOp::new("aten::_foreach_zero_", zeros));
        let [indices, offsets, _] = self.lookups();
        let inputs =
            vec![Arg::Tensor(gradient), indices, offsets, size(0), size(1), self.mode(), self.counts(step)];
        let call = Call { inputs, outputs: vec![Arg::Tensors(made)], ..Call::default() };
        NewOp::new("steptime::embedding_bag_dense_backward", call).with(children)
    }
}

impl Calls for Pool<'_> {
    /// The lookup, in an autograd function where it is trained.
    fn forward(&self, views: &mut Views<'_>, pooled: TensorId) -> Vec<NewOp> {
        let shape = views.value(pooled).shape;
        let inputs = [
            vec![self.tables()],
            self.lookups().to_vec(),
            vec![self.mode(), Arg::Int(BITS), Arg::Int(PLAN), self.counts(views.step)],
        ];
        let empty = op("aten::empty", vec![ints(&shape)], pooled);
        let pool = op("steptime::embedding_bag", inputs.concat(), pooled).with(vec![empty]);
        if self.group.training == Training::None {
            return vec![pool];
        }
        let inputs = [vec![Arg::None], self.lookups().to_vec()].concat();
        vec![NewOp::new("_Pool", Call { inputs, ..Call::default() }).with(vec![pool])]
    }

    /// Its backward, which updates the tables or computes their gradients.
    fn backward(&self, views: &mut Views<'_>, gradient: TensorId) -> Vec<NewOp> {
        let (copy, taken) = views.contiguous(gradient);
        let (name, backward) = match self.group.training {
            Training::Update(optimizer) => {
                self.anchored(views);
                ("_PoolBackward", self.update(views.step, taken, optimizer))
            }
            _ => ("EmbeddingBagBackward0", self.dense_gradients(views.step, taken)),
        };
        vec![function(name, &[gradient], copy.into_iter().chain([backward]).collect())]
    }
}
