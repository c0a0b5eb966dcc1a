//! Updates of the rows of a table that have a gradient.

use super::{ExtraArgs, Op, SCALAR, calls};
use crate::build_lowering::giving;
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;

/// Rows of a table with a sparse gradient.
pub(super) struct Rows {
    pub(super) table: Tensor,
    pub(super) lookups: u64,
    pub(super) distinct: u64,
}

impl Rows {
    fn index(&self, rows: u64) -> Tensor {
        Tensor::contiguous(&[rows as i64], Dtype::I64)
    }

    fn values(&self, rows: u64) -> Tensor {
        Tensor::contiguous(&[rows as i64, self.table.size(-1)], self.table.dtype)
    }

    /// Returns the addition of rows to the table.
    pub(super) fn added(&self, rows: u64) -> OpCall {
        let table = Arg::Tensor(self.table.clone());
        let (index, values) = (Arg::Tensor(self.index(rows)), Arg::Tensor(self.values(rows)));
        let inputs = vec![table.clone(), Arg::Int(0), index, values, SCALAR];
        OpCall { outputs: vec![table], ..OpCall::new("aten::index_add_", inputs) }
    }

    /// Returns the ops that coalesce the gradient: rows of the same index are added up.
    fn coalesced(&self) -> Vec<OpCall> {
        let sparse = Tensor { strides: Default::default(), ..self.table.clone() };
        let (index, values) = (self.index(self.lookups), self.values(self.lookups));
        let clone = vec![Arg::Tensor(index.clone()), Arg::Int(0)];
        let inputs = vec![Arg::Tensor(sparse), Arg::Tensor(index.clone()), Arg::Tensor(values)];
        let copy = OpCall { outputs: vec![Arg::Tensor(index)], ..OpCall::new("aten::clone", clone) };
        vec![OpCall::new("aten::_coalesce", inputs), copy]
    }

    /// Returns the ops that read the rows of a state with the table's shape.
    fn taken(&self) -> Vec<OpCall> {
        let (index, values) = (self.index(self.distinct), self.values(self.distinct));
        let ones = Tensor { strides: [0, 0].as_slice().into(), ..values.clone() };
        let table = Arg::Tensor(self.table.clone());
        vec![
            OpCall::new("aten::fill_", vec![Arg::Tensor(Tensor::contiguous(&[1], self.table.dtype)), SCALAR]),
            giving("aten::index", vec![table, Arg::Tensors(vec![index.clone()])], &values),
            giving("aten::clone", vec![Arg::Tensor(index.clone()), Arg::Int(0)], &index),
            giving("aten::mul", vec![Arg::Tensor(values.clone()), Arg::Tensor(ones)], &values),
        ]
    }

    fn on(&self, ops: &[Op]) -> Vec<OpCall> {
        calls(ops, "", &Arg::Tensor(self.values(self.distinct)), 1)
    }

    pub(super) fn adagrad(&self) -> Vec<OpCall> {
        let mut all = self.coalesced();
        all.extend(self.on(&[Op("pow", ExtraArgs::Scalar)]));
        all.push(self.added(self.distinct));
        all.extend(self.taken());
        all.extend(self.on(&[
            Op("sqrt_", ExtraArgs::None),
            Op("add_", ExtraArgs::Scalar),
            Op("div", ExtraArgs::Tensor),
        ]));
        all.push(self.added(self.distinct));
        all
    }

    pub(super) fn adam(&self) -> Vec<OpCall> {
        let (first, second) =
            ([Op("sub", ExtraArgs::Tensor)], [Op("pow", ExtraArgs::Scalar), Op("sub_", ExtraArgs::Tensor)]);
        let mut all = self.coalesced();
        for moment in [&first[..], &second[..]] {
            all.extend(self.taken());
            all.extend(self.on(moment));
            all.extend(self.on(&[Op("mul_", ExtraArgs::Scalar)]));
            all.push(self.added(self.distinct));
        }
        let update = [
            Op("add_", ExtraArgs::Tensor),
            Op("add_", ExtraArgs::Tensor),
            Op("sqrt_", ExtraArgs::None),
            Op("add_", ExtraArgs::Scalar),
            Op("div_", ExtraArgs::Tensor),
            Op("mul", ExtraArgs::Scalar),
        ];
        all.extend(self.on(&update));
        all.push(self.added(self.distinct));
        all
    }
}
