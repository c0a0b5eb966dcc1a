//! Matrices whose rows have zeros behind them, so that a GPU's products read and write whole vectors of their columns.
//!
//! A product over 479 columns takes three times as long as one over 480: no kernel of the library reads rows of an odd length by vectors.

use rustc_hash::FxHashSet;
use steptime_aten::Dtype;
use steptime_step::{OpId, StepIr, TensorId, Uses};
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::Use;
use crate::ops::WITHOUT_WORK;
use crate::places::Places;
use crate::slices::Access;
use crate::table;

/// Numbers of columns are multiples of it: 16 bytes of 16-bit numbers.
const MULTIPLE: usize = 8;
/// Least number of rows.
const ROWS: i64 = 16;

/// Ops whose results may have rows at any distance.
const WRITERS: [&str; 2] = ["steptime::interaction", "aten::cat"];
/// The op that converts a tensor to 16 bits.
const CAST: &str = "aten::_to_copy";
/// Products.
const PRODUCTS: [&str; 4] = ["aten::addmm", "aten::_addmm_activation", "aten::linear", "aten::mm"];
/// The op whose gradient may have rows at any distance.
const READER: &str = "steptime::interaction_backward";

/// Gives the inputs of products zeros behind their rows where their numbers of columns are odd, and the gradients of such inputs, before any op is
/// compiled.
pub(crate) fn padded_rows(places: &mut Places<'_>, order: &[OpId]) {
    let step = &places.described.step;
    let uses = Uses::find(step);
    for &op in order {
        let name = &*step.ops[op].name;
        let readers: &[&str] = match name {
            _ if WRITERS.contains(&name) || name == CAST => &PRODUCTS,
            "aten::mm" => &[READER],
            _ => continue,
        };
        let Some(result) = step.ops[op].call.as_deref().and_then(|call| call.gives().next()) else {
            continue;
        };
        let value = &step.tensors[result].value;
        let &[rows, columns] = &value.shape[..] else { continue };
        if name == CAST && value.dtype != Dtype::Bf16 {
            // It moves a tensor, and may be no copy.
            continue;
        }
        let pad = (-columns).rem_euclid(MULTIPLE as i64);
        let is_plain = value.dtype.is_float() && value.strides[..] == [columns, 1] && value.offset == 0;
        let is_own = places.described.named(result).is_none() && is_alone(step, result);
        if pad > 0 && rows >= ROWS && is_plain && is_own && is_read_by(step, &uses, result, op, readers) {
            places.strides.insert(result, vec![columns + pad, 1]);
            places.pads.insert(result, pad as usize);
        }
    }
}

/// Whether no other tensor has the same storage.
fn is_alone(step: &StepIr, tensor: TensorId) -> bool {
    let storage = step.tensors[tensor].storage;
    storage.is_none()
        || step.tensors.keys().all(|other| other == tensor || step.tensors[other].storage != storage)
}

/// Whether these ops alone read a tensor, at least one of them.
fn is_read_by(step: &StepIr, uses: &Uses, tensor: TensorId, writer: OpId, readers: &[&str]) -> bool {
    let mut found: FxHashSet<OpId> = FxHashSet::default();
    let reads = |&op: &OpId| {
        let name = &*step.ops[op].name;
        let reader = step.around(op).find(|&around| readers.contains(&&*step.ops[around].name));
        found.extend(reader);
        let is_inside = step.around(op).any(|around| around == writer);
        // A view has a layout of its own, and other readers.
        let is_view = WITHOUT_WORK.contains(&name);
        !is_view && (reader.is_some() || is_inside || table::find(name).is_none())
    };
    uses.consumers(tensor).iter().all(reads) && !found.is_empty()
}

/// The zeros behind the rows of a result that its op does not write; products write them.
pub(crate) fn zeros_behind(name: &str, uses: &[Use]) -> Option<Use> {
    let written = uses.iter().find(|one| one.access != Access::Read && one.arg.pad > 0)?;
    if PRODUCTS.contains(&name) {
        return None;
    }
    let arg = &written.arg;
    let &[pitch, _] = arg.layout.strides() else { return None };
    let &[rows, columns] = arg.shape() else { return None };
    // Zeros have the same bytes in all types.
    let size = arg.dtype.size() as usize;
    let start = (arg.layout.offset() + columns) * size;
    let layout = Layout::new(&[rows, arg.pad * size], &[pitch * size, 1], start).ok()?;
    let arg = Arg { layout, dtype: Dtype::Bool, pad: 0, slot: arg.slot };
    Some(Use { access: Access::Change, arg, ..written.clone() })
}
