//! Reads by index: of whole rows if the index is the same along the inner dimensions, otherwise of single elements.

use crate::axes::{axis, run};
use crate::bound_call::BoundCall;
use crate::build_lowering::{one, result, work};
use crate::call::{Arg, OpCall, Tensor};
use crate::kernel::{Gather, GatherKind, Kernel, Operand};
use crate::op_def::{Lowering, OpDef};
use crate::operands::read;

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::gather"], gather)
        .outputs(|call| one(&call.tensor("index")?.shape, call.tensor("self")?.dtype))
        .backward(|call| gradient(call, "aten::gather_backward", true)),
    OpDef::composite(&["aten::index_select"])
        .outputs(|call| one(&selected(call)?, call.tensor("self")?.dtype))
        .expand(|call| select(call).into_iter().collect())
        .backward(|call| gradient(call, "aten::index_select_backward", false)),
    OpDef::leaf(&["aten::take"], single)
        .outputs(|call| one(&call.tensor("index")?.shape, call.tensor("self")?.dtype)),
    OpDef::leaf(&["aten::masked_select"], masked)
        .expand(|call| call.tensor("mask").map(places).into_iter().collect()),
    // The values are searched in a sorted sequence, by bisection.
    OpDef::leaf(&["aten::searchsorted"], |call| bisect(call, "sorted_sequence")),
    OpDef::leaf(&["aten::bucketize"], |call| bisect(call, "boundaries")),
    OpDef::composite(&["aten::take_along_dim", "aten::gather_backward", "aten::index_select_backward"]),
];

fn gather(call: &BoundCall<'_>) -> Option<Lowering> {
    let (source, index) = (call.tensor("self")?, call.tensor("index")?);
    let dim = axis(call.int("dim")?, source.shape.len())?;
    let row = shared(source, index, dim);
    let kernel = Kernel::Gather(Gather {
        kind: GatherKind::Gather,
        rows: source.numel() / row.max(1),
        lookups: index.numel() / row.max(1),
        row_bytes: row * source.dtype.size(),
        index_bytes: index.dtype.size(),
    });
    let taken = result(call, 0, &index.shape, source.dtype);
    let table = capped(read(call, "self")?, taken.bytes);
    Some(work(kernel, source.dtype, [Some(table), read(call, "index"), Some(taken)], 0))
}

/// Returns the number of adjacent elements in `data` for which the expanded `index` is the same.
pub(super) fn shared(data: &Tensor, index: &Tensor, dim: usize) -> u64 {
    let expanded = index.strides.iter().zip(&index.shape).enumerate().skip(dim + 1);
    let all = expanded.clone().all(|(_, (&stride, &size))| stride == 0 || size == 1);
    if !all || index.shape.len() <= dim + 1 {
        return 1;
    }
    let length: i64 = index.shape[dim + 1..].iter().product();
    run(data, dim + 1).min(u64::try_from(length).unwrap_or(1)).max(1)
}

/// Returns an operand of which at most `bytes` are accessed.
pub(super) const fn capped(mut operand: Operand, bytes: u64) -> Operand {
    if operand.bytes > bytes {
        operand.bytes = bytes;
    }
    operand
}

/// Returns the `gather` of an `index_select`, with the index expanded to the rows.
fn select(call: &BoundCall<'_>) -> Option<OpCall> {
    let (source, index) = (call.tensor("self")?, call.tensor("index")?);
    let dim = axis(call.int("dim")?, source.shape.len())?;
    let shape = selected(call)?;
    let strides: Vec<i64> = (0..shape.len()).map(|at| i64::from(at == dim)).collect();
    let expanded = Tensor { device: index.device, ..Tensor::strided(&shape, &strides, index.dtype) };
    let taken = Tensor::contiguous(&shape, source.dtype);
    let inputs = vec![
        Arg::Tensor(source.clone()),
        Arg::Int(dim as i64),
        Arg::Tensor(expanded),
        Arg::Bool(false),
        Arg::Tensor(taken.clone()),
    ];
    let outputs = vec![Arg::Tensor(taken)];
    Some(OpCall { outputs, settings: call.settings, ..OpCall::new("aten::gather", inputs) })
}

fn selected(call: &BoundCall<'_>) -> Option<Vec<i64>> {
    let source = call.tensor("self")?;
    let mut shape = source.shape.to_vec();
    let dim = axis(call.int("dim")?, shape.len())?;
    *shape.get_mut(dim)? = call.tensor("index")?.numel() as i64;
    Some(shape)
}

/// Returns the calls of the gradient: zeros, then an addition of the rows.
fn gradient(call: &BoundCall<'_>, name: &str, whole: bool) -> Vec<OpCall> {
    let taken = call.output(0).cloned().or_else(|| {
        let outputs = call.results()?;
        outputs.first().and_then(|arg| arg.tensors().first().cloned())
    });
    let (Some(taken), Some(source), Some(index)) = (taken, call.tensor("self"), call.tensor("index")) else {
        return Vec::new();
    };
    let grad = Arg::Tensor(Tensor::contiguous(&taken.shape, taken.dtype));
    let dim = call.arg_or_none("dim");
    let index = Arg::Tensor(index.clone());
    let inputs = if whole {
        vec![grad, Arg::Tensor(source.clone()), dim, index, Arg::Bool(false)]
    } else {
        vec![grad, Arg::Ints(source.shape.as_slice().into()), dim, index]
    };
    vec![OpCall { settings: call.settings, ..OpCall::new(name, inputs) }]
}

/// Returns the launches of reads of single elements, by one index each.
fn single(call: &BoundCall<'_>) -> Option<Lowering> {
    let (source, by) = (call.tensor("self")?, call.tensor("index")?);
    let kernel = Kernel::Gather(Gather {
        kind: GatherKind::Other,
        rows: source.numel(),
        lookups: by.numel(),
        row_bytes: source.dtype.size(),
        index_bytes: by.dtype.size(),
    });
    let taken = result(call, 0, &by.shape, source.dtype);
    let table = capped(read(call, "self")?, taken.bytes);
    Some(work(kernel, source.dtype, [Some(table), read(call, "index"), Some(taken)], 0))
}

/// Returns the call that finds the places of a mask's true elements.
pub(super) fn places(mask: &Tensor) -> OpCall {
    OpCall::new("aten::nonzero", vec![Arg::Tensor(mask.clone())])
}

/// Returns the launches of a read by mask. A child op finds the places of the mask; their number is only known afterwards, hence assumed to be at
/// most all.
fn masked(call: &BoundCall<'_>) -> Option<Lowering> {
    let (source, mask) = (call.tensor("self")?, call.tensor("mask")?);
    let taken = result(call, 0, &source.shape, source.dtype);
    let lookups = taken.bytes / source.dtype.size();
    let index_bytes = 8 * mask.shape.len().max(1) as u64;
    let kernel = Kernel::Gather(Gather {
        kind: GatherKind::Index,
        rows: source.numel(),
        lookups,
        row_bytes: source.dtype.size(),
        index_bytes,
    });
    let places = crate::operands::scratch(lookups * index_bytes);
    Some(work(
        kernel,
        source.dtype,
        [Some(capped(read(call, "self")?, taken.bytes)), Some(places), Some(taken)],
        0,
    ))
}

/// Returns the launches of a search of each value in a sorted sequence.
fn bisect(call: &BoundCall<'_>, sequence: &str) -> Option<Lowering> {
    let (sorted, wanted) = (call.tensor(sequence)?, call.tensor("self")?);
    let kernel = Kernel::Gather(Gather {
        kind: GatherKind::Other,
        rows: sorted.numel(),
        lookups: wanted.numel(),
        row_bytes: sorted.dtype.size(),
        index_bytes: wanted.dtype.size(),
    });
    let found = result(call, 0, &wanted.shape, crate::Dtype::I64);
    Some(work(kernel, sorted.dtype, [read(call, sequence), read(call, "self"), Some(found)], 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::dtype::Dtype::{F32, I64};

    fn kernel(call: &OpCall) -> (Gather, Vec<u64>) {
        let Lowering::Kernel(call) = OpSet::standard().lower(call) else { panic!("no kernel") };
        let Kernel::Gather(gather) = call.kernel else { panic!("another kernel") };
        (gather, call.operands.iter().map(|operand| operand.bytes).collect())
    }

    #[test]
    fn an_expanded_index_takes_rows() {
        let source = Tensor::strided(&[1024, 64], &[576, 1], F32);
        let index = Tensor::contiguous(&[10240], I64);
        let call =
            OpCall::new("aten::index_select", vec![Arg::Tensor(source), Arg::Int(0), Arg::Tensor(index)]);
        let (gather, bytes) = kernel(&OpSet::standard().expand(&call)[0]);
        assert_eq!((gather.rows, gather.lookups, gather.row_bytes), (1024, 10240, 256));
        assert_eq!(bytes, [1024 * 256, 10240 * 8, 10240 * 256]);
    }

    #[test]
    fn an_index_of_its_own_for_each_element_takes_elements() {
        let source = Tensor::contiguous(&[512, 300], F32);
        let index = Tensor::contiguous(&[512, 7], I64);
        let call = OpCall::new("aten::gather", vec![Arg::Tensor(source), Arg::Int(1), Arg::Tensor(index)]);
        let (gather, bytes) = kernel(&call);
        assert_eq!((gather.rows, gather.lookups, gather.row_bytes), (153_600, 3584, 4));
        assert_eq!(bytes, [3584 * 4, 3584 * 8, 3584 * 4]);
    }
}
