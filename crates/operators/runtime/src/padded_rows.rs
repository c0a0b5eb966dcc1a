//! Matrices whose rows have zeros behind them, so that a GPU's products read and write whole vectors of their columns.
//!
//! A product over 479 columns takes three times as long as one over 480: no kernel of the library reads rows of an odd length by vectors.

use rustc_hash::FxHashSet;
use steptime_aten::Dtype;
use steptime_step::{OpId, StepIr, TensorId, Uses};
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::Use;
use crate::joined_rows::TAKERS;
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
/// Views of columns.
const VIEWS: [&str; 3] = ["aten::narrow", "aten::slice", "aten::as_strided"];
/// Copies, which read rows at any distance.
const COPIES: [&str; 2] = ["aten::clone", "aten::contiguous"];
/// The op whose gradient may have rows at any distance.
const READER: &str = "steptime::interaction_backward";

/// Gives the inputs of products zeros behind their rows where their numbers of columns are odd, and the gradients of such inputs with the views of
/// their columns, before any op is compiled.
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
        if pad == 0 || rows < ROWS || !is_plain || places.described.named(result).is_some() {
            continue;
        }
        let views = match is_alone(step, result) && is_read_by(step, &uses, result, op, readers) {
            true => Vec::new(),
            false if name == "aten::mm" => match column_views(step, &uses, result, op) {
                Some(views) => views,
                None => continue,
            },
            false => continue,
        };
        places.pads.insert(result, pad as usize);
        for tensor in views.into_iter().chain([result]) {
            places.strides.insert(tensor, vec![columns + pad, 1]);
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

/// The views of columns of a matrix, where ops that take rows at any distance read them, and no other op reads the matrix.
fn column_views(step: &StepIr, uses: &Uses, matrix: TensorId, writer: OpId) -> Option<Vec<TensorId>> {
    let is_inside = |op: OpId, outer: OpId| step.around(op).any(|around| around == outer);
    let (mut views, mut open, mut is_read) = (Vec::new(), vec![(matrix, writer)], false);
    while let Some((tensor, maker)) = open.pop() {
        for &op in uses.consumers(tensor).iter().filter(|&&op| !is_inside(op, maker)) {
            let takes = |op: OpId| {
                let name = &*step.ops[op].name;
                COPIES.contains(&name) || TAKERS.iter().any(|taker| name.starts_with(taker))
            };
            let name = &*step.ops[op].name;
            if step.around(op).any(takes) {
                is_read = true;
            } else if VIEWS.contains(&name) {
                let view = step.ops[op].call.as_deref()?.gives().next()?;
                if !views.contains(&view) {
                    open.push((view, op));
                    views.push(view);
                }
            } else if table::find(name).is_some() {
                return None;
            }
        }
    }
    let of = |tensor: TensorId| &step.tensors[tensor].value;
    let &[rows, columns] = &of(matrix).shape[..] else { return None };
    let is_part = |&view: &TensorId| {
        let value = of(view);
        matches!(value.shape[..], [own, _] if own == rows) && value.strides[..] == [columns, 1]
    };
    let storage = step.tensors[matrix].storage;
    let is_used = |tensor: TensorId| uses.producer(tensor).is_some() || !uses.consumers(tensor).is_empty();
    let is_known = |tensor: TensorId| tensor == matrix || views.contains(&tensor);
    let alike = |tensor: &TensorId| storage.is_some() && step.tensors[*tensor].storage == storage;
    let all_known = step.tensors.keys().filter(alike).all(|tensor| is_known(tensor) || !is_used(tensor));
    (is_read && all_known && views.iter().all(is_part)).then_some(views)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steptime_eager::Model;
    use steptime_rewrite::{DenseOperators, Facts, FuseLinear, Operators, Rule, apply};

    use super::*;
    use crate::described::DescribedStep;
    use crate::plan::Reuse;
    use crate::program::Program;
    use crate::target::Target;

    /// Distances of rows and zeros of the padded tensors of a model's step after rules.
    fn padded(model: &str, rules: &[&dyn Rule]) -> Vec<(Vec<i64>, i64, usize)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
        let model = Model::read(&folder.join(format!("{model}.toml"))).expect("a description");
        let mut described = DescribedStep::new(&model.on_gpus(1).expect("one device")).expect("a step");
        let ops = described.ops().clone();
        if !rules.is_empty() {
            apply(&mut described.step, rules, &Facts::new(&ops, Some(model.batch()))).expect("they apply");
        }
        Program::for_target(&described, Target::Cuda, Reuse::ByLifetime).expect("it compiles");
        let mut places = Places::new(&described);
        padded_rows(&mut places, &described.step.running());
        let shape = |tensor: TensorId| described.step.tensors[tensor].value.shape.to_vec();
        let pad = |tensor: &TensorId| places.pads.get(tensor).copied().unwrap_or(0);
        let mut all: Vec<_> =
            places.strides.iter().map(|(one, strides)| (shape(*one), strides[0], pad(one))).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn gradients_whose_columns_are_read_at_any_distance_have_zeros_behind_their_rows() {
        // The input of the first layer, its gradient, and the columns of all tables.
        let joined = padded("wide_and_deep", &[&DenseOperators, &FuseLinear]);
        let whole = (vec![8192, 525], 528, 3);
        assert!(joined.iter().filter(|one| **one == whole).count() == 2, "{joined:?}");
        assert!(joined.contains(&(vec![8192, 512], 528, 0)), "{joined:?}");
        // Each table copies its own columns.
        let alone = padded("wide_and_deep", &[]);
        assert_eq!(alone.iter().filter(|one| one.0 == [8192, 32]).count(), 16, "{alone:?}");
        // The sum of two gradients is computed from their columns.
        let added = padded("deepfm", &[&Operators, &FuseLinear]);
        assert!(added.iter().all(|one| one.0[1] == 429), "{added:?}");
    }
}
