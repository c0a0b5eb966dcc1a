//! Casts, as the ops run by `aten::to`.

use steptime_aten::{Arg, Dtype, Place as PlaceInMemory, Tensor};
use steptime_graph::execution::StorageId;
use steptime_step::{Call, NewOp, Place, TensorId};

use super::types::Types;
use crate::new_ops;

impl Types<'_> {
    /// Autocast's cast of a tensor. A parameter is cast once.
    pub fn autocast_to(&mut self, tensor: TensorId, to: Dtype, place: Place) -> TensorId {
        let list = usize::from(to == Dtype::F32);
        if let Some(&cast) = self.saved[list].get(&tensor).filter(|_| self.is_parameter(tensor)) {
            return cast;
        }
        let cast = self.cast(tensor, to, place, false);
        self.saved[list].insert(tensor, cast);
        cast
    }

    /// Inserts a cast; `function` is set where the backward pass runs it.
    pub fn cast(&mut self, tensor: TensorId, to: Dtype, place: Place, function: bool) -> TensorId {
        let Some(value) = self.value(tensor).cloned() else { return tensor };
        let strides = if value.is_dense() { value.strides.clone() } else { Default::default() };
        let memory = StorageId(self.next_storage);
        self.next_storage += 1;
        let made = Tensor {
            place: PlaceInMemory::storage(memory.0, 0),
            ..Tensor::strided(&value.shape, &strides, to)
        };
        let (shape, strides) = (made.shape.iter().copied().collect(), made.strides.iter().copied().collect());
        let cast = self.patch.tensor_in(self.step, made, Some(memory));
        self.set(cast, to);
        self.casts += 1;
        let code = Arg::Int(to.code());
        let no = || Arg::Bool(false);
        let op = |name: &str, inputs: Vec<Arg<TensorId>>| {
            NewOp::new(name, Call { inputs, outputs: vec![Arg::Tensor(cast)], ..Call::default() })
        };
        let memory = vec![Arg::Ints(shape), Arg::Ints(strides), code.clone(), Arg::Int(0), cuda(), no()];
        let copy = vec![Arg::Tensor(cast), Arg::Tensor(tensor), no()];
        let inner = vec![op("aten::empty_strided", memory), op("aten::copy_", copy)];
        let none = || Arg::None;
        let to_copy = vec![Arg::Tensor(tensor), code.clone(), none(), none(), none(), no(), none()];
        let to = vec![Arg::Tensor(tensor), code, no(), no(), none()];
        let whole = op("aten::to", to).with(vec![op("aten::_to_copy", to_copy).with(inner)]);
        let whole = if function { in_function(tensor, whole) } else { whole };
        self.patch.insert.push((place, whole));
        cast
    }
}

fn cuda() -> Arg<TensorId> {
    Arg::Text("cuda:0".to_owned())
}

/// The backward function of a cast.
fn in_function(tensor: TensorId, cast: NewOp) -> NewOp {
    new_ops::function("ToCopyBackward0", &[tensor], vec![cast])
}
