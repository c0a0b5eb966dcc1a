//! Writes by index: rows or single elements, added or overwritten.
//!
//! The out-of-place forms first copy their input with a child op.

use crate::axes::{around, axis, run};
use crate::bound_call::BoundCall;
use crate::build_lowering::{copied, launches, one, work};
use crate::call::{OpCall, Tensor};
use crate::kernel::{Kernel, Operand, Role, Scatter, ScatterKind, Slot};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, output_bytes, read};
use crate::ops::gather::{capped, shared};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::index_add_", "aten::index_add"], |call| rows(call, ScatterKind::IndexAdd))
        .outputs(same)
        .expand(copy_first),
    OpDef::leaf(
        &["aten::index_copy_", "aten::index_copy", "aten::index_fill_", "aten::index_reduce_"],
        |call| rows(call, ScatterKind::Other),
    )
    .outputs(same)
    .expand(copy_first),
    OpDef::leaf(
        &[
            "aten::scatter_add_",
            "aten::scatter_add",
            "aten::scatter_",
            "aten::scatter",
            "aten::scatter_reduce_",
            "aten::scatter_reduce",
        ],
        scatter,
    )
    .outputs(same)
    .expand(copy_first),
    OpDef::leaf(&["aten::masked_scatter_"], masked).outputs(same),
    OpDef::leaf(&["aten::put_"], put).outputs(same),
    OpDef::leaf(&["aten::bincount", "aten::histc"], histogram),
    OpDef::composite(&[
        "aten::index_fill",
        "aten::masked_scatter",
        "aten::put",
        "aten::masked_select_backward",
    ]),
    OpDef::composite(&["aten::value_selecting_reduction_backward"]),
];

/// Returns the copy of the input to the result for out-of-place forms.
fn copy_first(call: &BoundCall<'_>) -> Vec<OpCall> {
    match call.tensor("self") {
        Some(input) if !call.name.ends_with('_') => {
            vec![copied(&Tensor::contiguous(&input.shape, input.dtype), input)]
        }
        _ => Vec::new(),
    }
}

fn same(call: &BoundCall<'_>) -> Option<Vec<crate::Arg>> {
    let target = call.tensor("self")?;
    one(&target.shape, target.dtype)
}

/// Returns the written operand: the first argument in place, otherwise the return.
fn target(call: &BoundCall<'_>, role: Role, bytes: u64) -> Option<Operand> {
    let tensor = call.tensor("self")?;
    let whole = if call.name.ends_with('_') {
        operand(Slot::Input(0, 0), role, tensor)
    } else {
        Operand { role, ..output_bytes(0, tensor.bytes()) }
    };
    Some(capped(whole, bytes))
}

/// Returns the launches with one index per slice along the dimension.
fn rows(call: &BoundCall<'_>, kind: ScatterKind) -> Option<Lowering> {
    let (into, index) = (call.tensor("self")?, call.tensor("index")?);
    let dim = axis(call.int("dim")?, into.shape.len())?;
    let [outer, size, inner] = around(into, dim);
    let row = run(into, dim + 1).clamp(1, inner.max(1));
    let indices = index.numel();
    let element = into.dtype.size();
    let touched = outer * indices * inner;
    let adds = kind == ScatterKind::IndexAdd || call.name.contains("reduce");
    let kernel = Kernel::Scatter(Scatter {
        kind,
        rows: outer * size * (inner / row),
        lookups: touched / row,
        row_bytes: row * element,
        index_bytes: index.dtype.size(),
    });
    let role = if adds { Role::Update } else { Role::Write };
    let source = if call.has("source") { "source" } else { "value" };
    let source = call.tensor(source).filter(|source| source.numel() > 1).and_then(|_| read(call, source));
    let operands = [target(call, role, touched * element), source, read(call, "index")];
    Some(work(kernel, into.dtype, operands, if adds { touched } else { 0 }))
}

/// Returns the launches with one index per element, or per row if the index is expanded.
fn scatter(call: &BoundCall<'_>) -> Option<Lowering> {
    let (into, index) = (call.tensor("self")?, call.tensor("index")?);
    let dim = axis(call.int("dim")?, into.shape.len())?;
    let row = shared(into, index, dim);
    let element = into.dtype.size();
    let adds = call.name.contains("add") || call.name.contains("reduce");
    let kernel = Kernel::Scatter(Scatter {
        kind: ScatterKind::Scatter,
        rows: into.numel() / row,
        lookups: index.numel() / row,
        row_bytes: row * element,
        index_bytes: index.dtype.size(),
    });
    let role = if adds { Role::Update } else { Role::Write };
    let source = call.tensor("src").map(|source| taken(source, index));
    let source = source.and_then(|bytes| Some(Operand { bytes, ..read(call, "src")? }));
    let operands = [target(call, role, index.numel() * element), source, read(call, "index")];
    Some(work(kernel, into.dtype, operands, if adds { index.numel() } else { 0 }))
}

/// Returns the bytes read of the source: as many elements as there are indices.
fn taken(source: &Tensor, index: &Tensor) -> u64 {
    source.distinct_bytes().min(index.numel() * source.dtype.size())
}

/// Returns the launches of a masked scatter, in which a running sum of the mask finds the places.
fn masked(call: &BoundCall<'_>) -> Option<Lowering> {
    let (into, source) = (call.tensor("self")?, call.tensor("source")?);
    let kernel = Kernel::Scatter(Scatter {
        kind: ScatterKind::Other,
        rows: into.numel(),
        lookups: into.numel().min(source.numel()),
        row_bytes: into.dtype.size(),
        index_bytes: 8,
    });
    let places = crate::operands::scratch(into.numel() * 8);
    let from = capped(read(call, "source")?, into.bytes());
    let operands = [target(call, Role::Update, u64::MAX), read(call, "mask"), Some(from), Some(places)];
    Some(launches(4, kernel, into.dtype, operands, 0))
}

/// Returns the launches of writes to single elements of the flattened target.
fn put(call: &BoundCall<'_>) -> Option<Lowering> {
    let (into, index) = (call.tensor("self")?, call.tensor("index")?);
    let accumulate = call.flag("accumulate").unwrap_or(false);
    let kernel = Kernel::Scatter(Scatter {
        kind: ScatterKind::Other,
        rows: into.numel(),
        lookups: index.numel(),
        row_bytes: into.dtype.size(),
        index_bytes: index.dtype.size(),
    });
    let role = if accumulate { Role::Update } else { Role::Write };
    let operands =
        [target(call, role, index.numel() * into.dtype.size()), read(call, "index"), read(call, "source")];
    Some(work(kernel, into.dtype, operands, 0))
}

/// Returns the launches of counting into bins; their number may only be known afterwards.
fn histogram(call: &BoundCall<'_>) -> Option<Lowering> {
    let values = call.tensor("self")?;
    let bins = match call.output(0) {
        Some(counts) => counts.numel(),
        None => call.int(if call.has("bins") { "bins" } else { "minlength" }).map_or(0, |n| n.max(0) as u64),
    };
    let kernel = Kernel::Scatter(Scatter {
        kind: ScatterKind::Other,
        rows: bins,
        lookups: values.numel(),
        row_bytes: 8,
        index_bytes: values.dtype.size(),
    });
    let weights = if call.name.ends_with("bincount") { read(call, "weights") } else { None };
    let counts = Operand { role: Role::Update, ..output_bytes(0, bins * 8) };
    Some(work(kernel, values.dtype, [read(call, "self"), weights, Some(counts)], values.numel()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::call::Arg;
    use crate::dtype::Dtype::{F32, I64};

    fn kernel(name: &str, inputs: Vec<Arg>) -> (Scatter, Vec<(Role, u64)>) {
        let lowered = OpSet::standard().lower(&OpCall::new(name, inputs));
        let Lowering::Kernel(call) = lowered else { panic!("no kernel") };
        let Kernel::Scatter(scatter) = call.kernel else { panic!("another kernel") };
        (scatter, call.operands.iter().map(|operand| (operand.role, operand.bytes)).collect())
    }

    fn tensor(shape: &[i64], dtype: crate::Dtype) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, dtype))
    }

    #[test]
    fn rows_are_added_where_the_indices_say() {
        let inputs = vec![
            tensor(&[1_000_000, 64], F32),
            Arg::Int(0),
            tensor(&[10240], I64),
            tensor(&[10240, 64], F32),
        ];
        let (scatter, operands) = kernel("aten::index_add_", inputs);
        assert_eq!((scatter.rows, scatter.lookups, scatter.row_bytes), (1_000_000, 10240, 256));
        let rows = 10240 * 256;
        assert_eq!(operands, [(Role::Update, rows), (Role::Read, rows), (Role::Read, 10240 * 8)]);
    }

    #[test]
    fn few_rows_are_touched_no_more_than_whole() {
        let inputs =
            vec![tensor(&[3, 64], F32), Arg::Int(0), tensor(&[10240], I64), tensor(&[10240, 64], F32)];
        assert_eq!(kernel("aten::index_add_", inputs).1[0], (Role::Update, 3 * 256));
    }

    #[test]
    fn one_hot_writes_single_elements() {
        let inputs = vec![tensor(&[4000, 10], I64), Arg::Int(-1), tensor(&[4000, 1], I64), Arg::Int(1)];
        let (scatter, operands) = kernel("aten::scatter_", inputs);
        assert_eq!((scatter.lookups, scatter.row_bytes), (4000, 8));
        assert_eq!(operands, [(Role::Write, 32000), (Role::Read, 32000)]);
    }
}
