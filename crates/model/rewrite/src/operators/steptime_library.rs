//! The calls of `steptime.operators`.

use steptime_aten::Arg;
use steptime_graph::names::ACCUMULATE_GRAD;
use steptime_step::{Call, NewOp, Place, TensorId};

use super::calls::Calls;
use super::groups::Group;
use super::inputs::Inputs;
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

    /// Inserts `AccumulateGrad` for the anchor tensor of the call, whose gradient is undefined.
    fn anchored(&self, views: &mut Views<'_>) {
        let Some(at) = self.group.begins else { return };
        let accumulate = function(ACCUMULATE_GRAD, &[], Vec::new());
        views.patch.insert.push((Place::After(at), accumulate));
    }
}

impl Calls for Pool<'_> {
    /// The lookup, in an autograd function where it is trained.
    fn forward(&self, views: &mut Views<'_>, pooled: TensorId) -> Vec<NewOp> {
        let shape = views.value(pooled).shape;
        let inputs =
            [vec![self.tables()], self.lookups().to_vec(), vec![self.mode(), Arg::Int(BITS), Arg::Int(PLAN)]];
        let empty = op("aten::empty", vec![ints(&shape)], pooled);
        let pool = op("steptime::embedding_bag", inputs.concat(), pooled).with(vec![empty]);
        if self.group.optimizer.is_none() {
            return vec![pool];
        }
        let inputs = [vec![Arg::None], self.lookups().to_vec()].concat();
        vec![NewOp::new("_Pool", Call { inputs, ..Call::default() }).with(vec![pool])]
    }

    /// Its backward, which updates the tables.
    fn backward(&self, views: &mut Views<'_>, gradient: TensorId) -> Vec<NewOp> {
        self.anchored(views);
        let optimizer = self.group.optimizer.unwrap_or_default();
        let (copy, taken) = views.contiguous(gradient);
        let inputs = [
            vec![Arg::Tensor(taken), self.tables()],
            self.lookups().to_vec(),
            vec![self.mode(), Arg::Int(PLAN)],
        ];
        let call = Call { inputs: inputs.concat(), ..Call::default() };
        let step = NewOp::new(&format!("steptime::embedding_bag_backward_{optimizer}"), call);
        vec![function("_PoolBackward", &[gradient], copy.into_iter().chain([step]).collect())]
    }
}
