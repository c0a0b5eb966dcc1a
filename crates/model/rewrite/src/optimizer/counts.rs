//! Step counts in host memory: ops that launch nothing, and take host time.

use steptime_aten::optimizer::Form;
use steptime_aten::{Arg, Device, Dtype, Tensor};
use steptime_step::{Call, NewOp, Patch, StepIr, TensorId};

/// The step counts of some parameters.
pub(super) struct Counts<'c> {
    pub step: &'c StepIr,
    pub patch: &'c mut Patch,
    pub form: Form,
    pub parameters: usize,
}

impl Counts<'_> {
    fn number(&mut self) -> TensorId {
        let value = Tensor { device: Device::Cpu, ..Tensor::contiguous(&[], Dtype::F32) };
        self.patch.tensor(self.step, value)
    }

    /// Adds one to each count.
    pub fn added(&mut self) -> Vec<NewOp> {
        match self.form {
            Form::Loop => (0..self.parameters).map(|_| self.added_alone()).collect(),
            _ => self.added_together(),
        }
    }

    /// Adds an integer to one count: it is first converted to a tensor of the count's type.
    fn added_alone(&mut self) -> NewOp {
        let (count, one, cast) = (self.number(), self.number(), self.number());
        let copy = op("aten::_to_copy", &[one], Some(cast)).with(vec![
            op("aten::empty_strided", &[], Some(cast)),
            op("aten::copy_", &[cast, one], Some(cast)),
        ]);
        let to = op("aten::to", &[one], Some(cast)).with(vec![copy]);
        op("aten::add_", &[count, one], Some(count)).with(vec![to])
    }

    /// Creates a tensor of one, and adds it to each count in turn.
    fn added_together(&mut self) -> Vec<NewOp> {
        let one = self.number();
        let counts: Vec<TensorId> = (0..self.parameters).map(|_| self.number()).collect();
        let inputs = vec![Arg::Tensors(counts.clone()), Arg::Tensor(one), Arg::Float(1.0)];
        let each = counts.iter().map(|&count| op("aten::add_", &[count, one], Some(count)));
        let all = Call { inputs, ..Call::default() };
        vec![
            op("aten::empty", &[], Some(one)),
            op("aten::to", &[one], Some(one)),
            op("aten::lift_fresh", &[one], Some(one)),
            op("aten::detach_", &[one], Some(one)).with(vec![op("detach_", &[one], None)]),
            NewOp::new("aten::_foreach_add_", all).with(each.collect()),
        ]
    }

    /// Reads each count `times` times.
    pub fn read(&mut self, times: usize) -> Vec<NewOp> {
        (0..times * self.parameters)
            .map(|_| {
                let count = self.number();
                let inside = op("aten::_local_scalar_dense", &[count], None);
                op("aten::item", &[count], None).with(vec![inside])
            })
            .collect()
    }
}

fn op(name: &str, takes: &[TensorId], gives: Option<TensorId>) -> NewOp {
    let inputs = takes.iter().map(|&tensor| Arg::Tensor(tensor)).collect();
    let outputs = gives.map(Arg::Tensor).into_iter().collect();
    NewOp::new(name, Call { inputs, outputs, ..Call::default() })
}
