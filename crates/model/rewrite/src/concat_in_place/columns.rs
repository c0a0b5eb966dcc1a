//! Inputs of a concatenation that can be columns of its result.

use rustc_hash::FxHashMap;
use steptime_aten::Tensor;
use steptime_graph::names::PROCESS_GROUP;
use steptime_step::{OpId, Patch, StepIr, TensorId, Uses};

use crate::nested_uses::is_passed_on;

/// Ops whose results may have rows at any distance.
const WRITERS: [&str; 3] = ["aten::addmm", "aten::_addmm_activation", "steptime::embedding_bag"];
/// An op of jobs whose result may have rows at any distance: it joins the vectors of all ranks.
const JOINS: &str = "aten::cat";
/// Elements of a vector of loads and stores.
const VECTOR: i64 = 4;

/// A concatenation of columns.
pub(super) struct Columns {
    pub parts: Vec<TensorId>,
    pub whole: TensorId,
    /// First column of each part that is stored within the result.
    pub starts: FxHashMap<TensorId, i64>,
    pitch: i64,
}

impl Columns {
    /// The columns of a concatenation; `None` where none of its inputs can be stored within the result. `taken` has the inputs of others.
    pub fn find(
        step: &StepIr,
        uses: &Uses,
        op: OpId,
        taken: &FxHashMap<TensorId, TensorId>,
    ) -> Option<Columns> {
        let call = step.ops[op].call.as_deref()?;
        let (parts, whole) = (call.inputs.first()?.tensors().to_vec(), call.gives().next()?);
        let of = |tensor: TensorId| &step.tensors[tensor].value;
        let (&[_, _], &[pitch, 1]) = (&of(whole).shape[..], &of(whole).strides[..]) else { return None };
        let (mut starts, mut start) = (FxHashMap::default(), 0);
        for &part in &parts {
            let &[_, columns] = &of(part).shape[..] else { return None };
            let is_plain = of(part).strides[..] == [columns, 1] && of(part).dtype == of(whole).dtype;
            let by_vectors = [columns, start, pitch].iter().all(|count| count % VECTOR == 0);
            let is_new = !taken.contains_key(&part) && !starts.contains_key(&part);
            if is_plain && by_vectors && is_new && is_free(step, uses, op, part) {
                starts.insert(part, start);
            }
            start += columns;
        }
        (!starts.is_empty()).then_some(Columns { parts, whole, starts, pitch })
    }

    /// Gives each part within the result a new tensor there.
    pub fn place(&self, step: &StepIr, patch: &mut Patch, replaced: &mut FxHashMap<TensorId, TensorId>) {
        let whole = &step.tensors[self.whole];
        for part in self.parts.iter().filter(|part| self.starts.contains_key(part)) {
            let (value, start) = (&step.tensors[*part].value, self.starts[part]);
            let columns = Tensor {
                strides: [self.pitch, 1].as_slice().into(),
                offset: whole.value.offset.saturating_add(u64::try_from(start).unwrap_or(0)),
                place: whole.value.place,
                ..value.clone()
            };
            replaced.insert(*part, patch.tensor_in(step, columns, whole.storage));
        }
    }
}

/// Whether the step exchanges data with other ranks.
fn is_of_a_job(step: &StepIr) -> bool {
    step.ops.iter().any(|op| op.name.starts_with(PROCESS_GROUP))
}

/// Whether a tensor is written by an op that takes any distance of rows, and read by the concatenation and slopes alone.
fn is_free(step: &StepIr, uses: &Uses, concatenation: OpId, part: TensorId) -> bool {
    let Some(made) = uses.producer(part) else { return false };
    let writes = |name: &str| WRITERS.contains(&name) || (name == JOINS && is_of_a_job(step));
    let Some(writer) = step.around(made).find(|&op| writes(&step.ops[op].name)) else {
        return false;
    };
    uses.consumers(part).iter().all(|&op| {
        let is_inside = step.around(op).any(|around| around == concatenation || around == writer);
        let is_slope = matches!(&*step.ops[op].name, "aten::threshold_backward" | "steptime::slope");
        is_inside || is_slope || is_passed_on(step, op, part)
    })
}
