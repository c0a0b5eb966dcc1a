//! Tensors that are stored as columns of another one, so that no op copies them there: inputs of concatenations, and copies of columns.
//!
//! A GPU's products and bags write rows at any distance, and its updates of tables read them so.

use rustc_hash::FxHashSet;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use crate::ops::WITHOUT_WORK;
use crate::places::Places;
use crate::table;

/// Ops whose results may have rows at any distance.
const WRITERS: [&str; 3] = ["aten::addmm", "aten::_addmm_activation", "steptime::embedding_bag"];
/// Prefixes of the ops that take gradients of bags with rows at any distance: updates of tables, and their dense gradients.
pub(crate) const TAKERS: [&str; 2] =
    ["steptime::embedding_bag_backward_", "steptime::embedding_bag_dense_backward"];
/// An op of jobs whose result may have rows at any distance: it joins the vectors of all ranks.
const JOINS: &str = "aten::cat";

/// Stores the inputs of concatenations of columns within their results, and notes the copies that are not needed, before any op is compiled.
pub(crate) fn joined_rows(places: &mut Places<'_>, order: &[OpId]) {
    let step = &places.described.step;
    let uses = Uses::find(step);
    for &op in order {
        match &*step.ops[op].name {
            "aten::cat" => {
                concatenation(places, &uses, op);
                flat(places, &uses, op);
            }
            "aten::clone" if is_read_by_updates(step, &uses, op) => {
                places.shared.insert(op);
            }
            _ => {}
        }
    }
}

/// The inputs of a concatenation, and its result.
fn parts_and_whole(step: &StepIr, op: OpId) -> Option<(&[TensorId], TensorId)> {
    let call = step.ops[op].call.as_deref()?;
    Some((call.inputs.first()?.tensors(), call.gives().next()?))
}

/// Stores the inputs of a concatenation of columns within its result.
fn concatenation(places: &mut Places<'_>, uses: &Uses, op: OpId) {
    let step = &places.described.step;
    let Some((parts, whole)) = parts_and_whole(step, op) else { return };
    let of = |tensor: TensorId| &step.tensors[tensor].value;
    let strides = places.strides.get(&whole).map_or(&of(whole).strides[..], |own| &own[..]);
    let (&[_, _], &[pitch, 1]) = (&of(whole).shape[..], strides) else { return };
    let mut seen = FxHashSet::default();
    let mut start = 0;
    for &part in parts {
        let &[_, columns] = &of(part).shape[..] else { return };
        let fits = of(part).dtype == of(whole).dtype
            && of(part).strides[..] == [columns, 1]
            && columns % 4 == 0
            && start % 4 == 0
            && pitch % 4 == 0;
        let is_own = places.described.named(part).is_none() && seen.insert(part);
        if fits && is_own && is_free(places, uses, op, part) && places.alias(part, whole, start) {
            places.strides.insert(part, vec![pitch, 1]);
        }
        start += columns;
    }
}

/// Stores the flat inputs of a concatenation within its result, where copies write them: the gradients that a rank sends.
fn flat(places: &mut Places<'_>, uses: &Uses, op: OpId) {
    let step = &places.described.step;
    let Some((parts, whole)) = parts_and_whole(step, op) else { return };
    let size = |part: TensorId| step.tensors[part].value.numel();
    let parts: Vec<TensorId> = parts.iter().copied().filter(|&part| size(part) > 0).collect();
    let mut seen = FxHashSet::default();
    let is_own = |&part: &TensorId| seen.insert(part) && is_copy(places, uses, op, part);
    if !parts.iter().all(is_own) {
        return;
    }
    let mut start = 0;
    for part in parts {
        places.alias(part, whole, start);
        start += i64::try_from(size(part)).unwrap_or(i64::MAX);
    }
}

/// Whether a flat tensor is the whole result of a copy that the concatenation alone reads.
fn is_copy(places: &Places<'_>, uses: &Uses, concatenation: OpId, part: TensorId) -> bool {
    let step = &places.described.step;
    let own = &step.tensors[part];
    let is_flat = own.value.offset == 0 && own.value.strides[..] == [1];
    let Some(storage) = own.storage.filter(|_| is_flat) else { return false };
    let mut copies = 0;
    let alike = step.tensors.keys().filter(|&tensor| step.tensors[tensor].storage == Some(storage));
    // Rules leave tensors that no op uses.
    let is_used = |tensor: &TensorId| uses.producer(*tensor).is_some() || !uses.consumers(*tensor).is_empty();
    let fits = alike.filter(is_used).all(|tensor| {
        let Some(writer) = uses.producer(tensor) else { return false };
        let is_clone = step.around(writer).any(|op| step.ops[op].name == "aten::clone");
        copies += usize::from(is_clone);
        let reads = |&op: &OpId| {
            let name = &*step.ops[op].name;
            // The copy inside the clone writes it.
            let inside = |wanted: OpId| step.around(op).any(|around| around == wanted);
            let clone = step.around(writer).find(|&around| step.ops[around].name == "aten::clone");
            let is_own = inside(concatenation) || clone.is_some_and(inside);
            is_own || WITHOUT_WORK.contains(&name) || table::find(name).is_none()
        };
        let is_view = WITHOUT_WORK.contains(&&*step.ops[writer].name);
        places.described.named(tensor).is_none()
            && (is_clone || is_view)
            && uses.consumers(tensor).iter().all(reads)
    });
    fits && copies > 0
}

/// Whether a tensor is written by an op that takes any distance of rows, and read by the concatenation and slopes alone.
fn is_free(places: &Places<'_>, uses: &Uses, concatenation: OpId, part: TensorId) -> bool {
    let step = &places.described.step;
    let writes = |name: &str| WRITERS.contains(&name) || (name == JOINS && places.described.ranks() > 1);
    let Some(writer) = uses.producer(part) else { return false };
    let Some(writer) = step.around(writer).find(|&op| writes(&step.ops[op].name)) else {
        return false;
    };
    let reads = |&op: &OpId| {
        let name = &*step.ops[op].name;
        let is_inside = step.around(op).any(|around| around == concatenation || around == writer);
        is_inside || name == "aten::threshold_backward" || table::find(name).is_none()
    };
    uses.consumers(part).iter().all(reads)
}

/// Whether a copy of columns is read by updates of tables alone, and no op changes its source.
fn is_read_by_updates(step: &StepIr, uses: &Uses, op: OpId) -> bool {
    let Some(call) = step.ops[op].call.as_deref() else { return false };
    let (Some(from), Some(to)) = (call.takes().next(), call.gives().next()) else { return false };
    let source = &step.tensors[from];
    let value = &source.value;
    // Updates read vectors of four elements.
    let is_rows =
        value.shape.len() == 2 && value.strides.last() == Some(&1) && value.offset.is_multiple_of(4);
    let reads = |&reader: &OpId| {
        let name = &*step.ops[reader].name;
        let is_inside = step.around(reader).any(|around| around == op);
        let is_gradient = TAKERS.iter().any(|takes| name.starts_with(takes));
        is_inside || is_gradient || table::find(name).is_none()
    };
    let updates = uses.consumers(to).iter().all(reads);
    let storage = source.storage;
    let changes = |op: OpId| {
        let own = &step.ops[op];
        let in_place = own.name.rsplit(':').next().is_some_and(|name| name.ends_with('_'));
        let takes = |tensor: TensorId| storage.is_some() && step.tensors[tensor].storage == storage;
        in_place && own.call.as_deref().is_some_and(|call| call.takes().any(takes))
    };
    is_rows && updates && !step.running().into_iter().any(changes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steptime_aten::Arg;
    use steptime_eager::Model;
    use steptime_rewrite::{ConcatInPlace, DenseOperators, Facts, FuseLinear, Operators, Rule, apply};

    use super::*;
    use crate::described::DescribedStep;
    use crate::plan::Reuse;
    use crate::program::Program;
    use crate::target::Target;

    /// Inputs of concatenations that are stored within the results, and copies that are not needed.
    fn chosen(described: &DescribedStep) -> [usize; 2] {
        let mut places = Places::new(described);
        joined_rows(&mut places, &described.step.running());
        [places.strides.len(), places.shared.len()]
    }

    /// The same of the rule, whose step the prediction has.
    fn predicted(described: &DescribedStep, facts: &Facts<'_>) -> [usize; 2] {
        let mut step = described.step.clone();
        if apply(&mut step, &[&ConcatInPlace], facts).is_err() {
            return [0, 0];
        }
        let count = |step: &StepIr, name: &str| {
            step.running().into_iter().filter(|&op| step.ops[op].name == name).count()
        };
        let within = step.running().into_iter().filter(|&op| step.ops[op].name == "steptime::cat_in_place");
        let within = within.filter_map(|op| step.ops[op].call.as_deref()?.inputs.first().map(Arg::tensors));
        let clones = count(&described.step, "aten::clone") - count(&step, "aten::clone");
        [within.map(<[TensorId]>::len).sum(), clones]
    }

    #[test]
    fn the_rule_of_the_prediction_chooses_the_same_tensors() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
        let mut all = [0, 0];
        for file in std::fs::read_dir(folder).expect("a folder").flatten() {
            let model = Model::read(&file.path()).expect("a description").on_gpus(1).expect("one device");
            let mut described = DescribedStep::new(&model).expect("a step");
            let ops = described.ops().clone();
            let facts = Facts::new(&ops, Some(model.batch()));
            assert_eq!(chosen(&described), predicted(&described, &facts), "{:?}", file.path());
            apply(&mut described.step, &[&Operators, &FuseLinear], &facts).expect("they apply");
            let [parts, copies] = chosen(&described);
            assert_eq!([parts, copies], predicted(&described, &facts), "{:?}", file.path());
            all = [all[0] + parts, all[1] + copies];
        }
        assert!(all[0] > 5 && all[1] > 3, "{all:?}");
    }

    #[test]
    fn gradients_of_tables_begin_with_a_vector() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/models");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).expect("a folder").flatten() {
            let model = Model::read(&file.path()).expect("a description").on_gpus(1).expect("one device");
            for rule in [&Operators as &dyn Rule, &DenseOperators] {
                let mut described = DescribedStep::new(&model).expect("a step");
                let ops = described.ops().clone();
                let facts = Facts::new(&ops, Some(model.batch()));
                if apply(&mut described.step, &[rule, &FuseLinear], &facts).is_err() {
                    continue;
                }
                let program = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime);
                for one in program.iter().flat_map(Program::instructions) {
                    if TAKERS.iter().any(|name| one.name.starts_with(name)) {
                        let layout = &one.uses[0].arg.layout;
                        let is_vector =
                            layout.offset().is_multiple_of(4) || !layout.strides()[0].is_multiple_of(4);
                        assert!(is_vector, "{:?}, {}: {layout:?}", file.path(), rule.name());
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 5, "{seen} gradients");
    }
}
