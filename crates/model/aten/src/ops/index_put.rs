//! `index_put_`: writes or additions of values at places given by several index tensors.
//!
//! The gradient of `index` adds: the indices are sorted so that those of one place are adjacent. Child ops convert them
//! to offsets first.

use crate::axes::count;
use crate::bound_call::BoundCall;
use crate::build_lowering::{counted, giving, launches, made_contiguous};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Role, Scatter, ScatterKind, Slot};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, read, scratch};
use crate::ops::gather::capped;
use crate::ops::index::{index_operands, is_mask, is_missing, masks, places};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::composite(&["aten::index_put_", "aten::index_put", "aten::_unsafe_index_put"]).expand(put_leaf),
    OpDef::leaf(&["aten::_index_put_impl_"], put).expand(offsets),
];

/// Maximum number of indices that are sorted by one block.
const ONE_BLOCK: u64 = 2048;
/// Number of launches of a sort of more indices, and the sum after it.
const SORTED: u32 = 22;

/// Returns the launches of a put. One value for all places of a mask is a `masked_fill_` instead.
fn put(call: &BoundCall<'_>) -> Option<Lowering> {
    let (target, values) = (call.tensor("self")?, call.tensor("values")?);
    let places = places(call)?;
    let accumulate = call.flag("accumulate").unwrap_or(false);
    if let ([mask], false, 1) = (call.tensors("indices"), accumulate, values.numel())
        && is_mask(mask)
    {
        return Some(Lowering::Children);
    }
    let element = target.dtype.size();
    let touched = count(&places.shape);
    // With accumulation, the sort has each index once, however many elements before it share it.
    let lookups = if accumulate { places.indices } else { touched / places.row };
    let kernel = Kernel::Scatter(Scatter {
        kind: if accumulate { ScatterKind::IndexPutAccumulate } else { ScatterKind::IndexPut },
        rows: target.numel() / places.row,
        lookups,
        row_bytes: places.row * element,
        index_bytes: places.bytes,
    });
    let role = if accumulate { Role::Update } else { Role::Write };
    let written = capped(operand(Slot::Input(0, 0), role, target), touched * element);
    let sorting = accumulate.then(|| scratch(places.indices * 32));
    // With accumulation, child ops return sorted values and indices.
    let operands = [Some(written), read(call, "values"), sorting];
    let operands = operands.into_iter().chain(index_operands(call).filter(|_| !accumulate));
    let flops = if accumulate { touched } else { 0 };
    let count = match (accumulate, places.indices <= ONE_BLOCK) {
        (false, _) => 1,
        (true, true) => 2,
        (true, false) => SORTED,
    };
    Some(launches(count, kernel, target.dtype, operands, flops))
}

fn put_leaf(call: &BoundCall<'_>) -> Vec<OpCall> {
    let mut inputs = call.inputs.clone();
    inputs.resize(4, Arg::Bool(false));
    inputs.push(Arg::Bool(call.name.contains("unsafe")));
    let leaf = OpCall { settings: call.settings, ..OpCall::new("aten::_index_put_impl_", inputs) };
    let Some(target) = call.tensor("self") else { return Vec::new() };
    if call.name.ends_with("index_put_") {
        return vec![leaf];
    }
    let clone = OpCall::new("aten::clone", vec![Arg::Tensor(target.clone()), Arg::None]);
    vec![clone, leaf]
}

/// Returns the child ops of a put: one value for all places of a mask fills them. An accumulating put checks the indices
/// unless `unsafe` is set, converts each to an offset, adds the offsets, makes the values contiguous, and creates a
/// sequence of the places of the indices.
fn offsets(call: &BoundCall<'_>) -> Vec<OpCall> {
    let (Some(target), Some(values), Some(places)) =
        (call.tensor("self"), call.tensor("values"), places(call))
    else {
        return Vec::new();
    };
    if !call.flag("accumulate").unwrap_or(false) {
        let fills = put(call) == Some(Lowering::Children);
        let inputs = || {
            vec![
                Arg::Tensor(target.clone()),
                Arg::Tensor(call.tensors("indices")[0].clone()),
                Arg::Float(0.0),
            ]
        };
        return if fills { vec![OpCall::new("aten::masked_fill_", inputs())] } else { masks(call).collect() };
    }
    let flat = Tensor::contiguous(&[places.indices as i64], Dtype::I64);
    let mut children: Vec<OpCall> = masks(call).collect();
    let all = dimensions(call, &flat);
    if !call.flag("unsafe").unwrap_or(false) {
        children.extend(all.iter().flat_map(|(_, index)| checks(index)));
    }
    for (dim, index) in &all {
        let size = target.shape.get(*dim).copied().unwrap_or(1);
        let stride = target.strides.get(*dim).copied().unwrap_or(1);
        let by = |value| vec![Arg::Tensor(index.clone()), Arg::Int(value)];
        children.push(giving("aten::remainder", by(size), &flat));
        children.push(giving("aten::mul", by(stride), &flat));
    }
    let tensor = || Arg::Tensor(flat.clone());
    let sum = || giving("aten::add_", vec![tensor(), tensor(), Arg::Int(1)], &flat);
    children.extend((1..all.len()).map(|_| sum()));
    children.extend(made_contiguous(values));
    let row = Arg::Int(places.row as i64);
    children.push(giving("aten::divide_", vec![tensor(), row, Arg::Text("trunc".into())], &flat));
    children.push(counted(places.indices));
    children
}

/// Returns the indexed dimensions with their indices; those of a mask are its places.
fn dimensions(call: &BoundCall<'_>, flat: &Tensor) -> Vec<(usize, Tensor)> {
    let (mut dim, mut all) = (0, Vec::new());
    for index in call.tensors("indices") {
        if is_missing(index) {
            dim += 1;
            continue;
        }
        let wide = if is_mask(index) { index.shape.len().max(1) } else { 1 };
        all.extend(
            (dim..dim + wide).map(|at| (at, if is_mask(index) { flat.clone() } else { index.clone() })),
        );
        dim += wide;
    }
    all
}

/// Returns the checks of an index: its maximum and minimum are compared with bounds, and the outcomes asserted.
fn checks(index: &Tensor) -> Vec<OpCall> {
    let most = Tensor::contiguous(&[], index.dtype);
    let truth = Tensor::contiguous(&[], Dtype::Bool);
    let check = |find: &str, compare: &str| {
        [
            giving(find, vec![Arg::Tensor(index.clone())], &most),
            giving(compare, vec![Arg::Tensor(most.clone()), Arg::Int(0)], &truth),
            OpCall::new("aten::_assert_async", vec![Arg::Tensor(truth.clone())]),
        ]
    };
    check("aten::max", "aten::lt").into_iter().chain(check("aten::min", "aten::ge")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype::{F32, I64};

    /// Gradient of the read of the lower triangle of each of 1024 matrices.
    fn gradient() -> OpCall {
        let missing = Tensor { device: crate::Device::Unknown, ..Tensor::contiguous(&[0], I64) };
        let index = Tensor::contiguous(&[36], I64);
        let inputs = vec![
            Arg::Tensor(Tensor::contiguous(&[1024, 9, 9], F32)),
            Arg::Tensors(vec![missing, index.clone(), index]),
            Arg::Tensor(Tensor::contiguous(&[1024, 36], F32)),
            Arg::Bool(true),
            Arg::Bool(true),
        ];
        OpCall::new("aten::_index_put_impl_", inputs)
    }

    #[test]
    fn adding_sorts_each_index_once() {
        let Lowering::Kernel(call) = OpSet::standard().lower(&gradient()) else { panic!("no kernel") };
        let Kernel::Scatter(scatter) = call.kernel else { panic!("another kernel") };
        assert_eq!((scatter.kind, scatter.lookups), (ScatterKind::IndexPutAccumulate, 36));
        assert_eq!(call.launches, 2);
        let names: Vec<_> =
            OpSet::standard().expand(&gradient()).into_iter().map(|child| child.name).collect();
        let short: Vec<_> = names.iter().map(|name| name.trim_start_matches("aten::")).collect();
        assert_eq!(short, ["remainder", "mul", "remainder", "mul", "add_", "divide_", "arange"]);
    }

    #[test]
    fn a_mask_with_one_value_is_filled_by_a_child() {
        let target = Tensor::contiguous(&[64, 8], F32);
        let mask = Tensor::contiguous(&[64, 8], Dtype::Bool);
        let value = Arg::Tensor(Tensor::contiguous(&[], F32));
        let inputs = vec![Arg::Tensor(target), Arg::Tensors(vec![mask]), value, Arg::Bool(false)];
        let call = OpCall::new("aten::_index_put_impl_", inputs);
        assert_eq!(OpSet::standard().lower(&call), Lowering::Children);
    }
}
