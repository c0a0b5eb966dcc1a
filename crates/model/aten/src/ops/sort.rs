//! Sorting, selection of the largest values, unique values, places of true elements.

use crate::axes::{around, axis};
use crate::bound_call::BoundCall;
use crate::build_lowering::{copied, counted, launches, result};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Sort};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{output_bytes, read, scratch};

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::sort"], sort).outputs(sorted).expand(expand).overload("stable"),
    OpDef::leaf(&["aten::topk"], topk).outputs(|call| chosen(call, call.int("k")?)),
    OpDef::leaf(&["aten::kthvalue", "aten::median", "aten::nanmedian"], quantile),
    OpDef::leaf(&["aten::mode"], mode),
    OpDef::leaf(&["aten::_unique2", "aten::_unique"], |call| {
        unique(call, "unique", call.flag("return_inverse").unwrap_or(false))
    }),
    OpDef::leaf(&["aten::unique_dim"], |call| unique(call, "unique_dim", true)),
    OpDef::leaf(&["aten::unique_consecutive"], |call| {
        unique(call, "unique_consecutive", call.flag("return_inverse").unwrap_or(false))
    }),
    OpDef::leaf(&["aten::nonzero"], nonzero),
    OpDef::composite(&["aten::argsort"]).expand(|call| vec![OpCall::new("aten::sort", call.inputs.clone())]),
    OpDef::composite(&["aten::msort", "aten::nonzero_numpy"]),
];

/// Maximum length of rows that are sorted by one block each.
const ONE_BLOCK: u64 = 4096;
/// Returns the launches of a sort by 8 bits at a time: a histogram, and a pass and a memset per byte of the key.
const fn radix_passes(key_bytes: u64) -> u32 {
    4 + 2 * key_bytes as u32
}

fn rows(tensor: &Tensor, dim: i64, op: &'static str, value_bytes: u64) -> Option<Sort> {
    let [outer, length, inner] = around(tensor, axis(dim, tensor.shape.len())?);
    let key_bytes = tensor.dtype.size();
    Some(Sort { op, rows: outer * inner, length, key_bytes, value_bytes, stride: inner })
}

fn sort(call: &BoundCall<'_>) -> Option<Lowering> {
    if !is_long(call) {
        return Some(Lowering::Children);
    }
    let input = call.tensor("self")?;
    let kernel = rows(input, call.int("dim")?, "sort", 8)?;
    let large = kernel.length > ONE_BLOCK;
    let count = if large { 1 + radix_passes(kernel.key_bytes) } else { 1 };
    let values = result(call, 0, &input.shape, input.dtype);
    let indices = result(call, 1, &input.shape, Dtype::I64);
    let buffer = large.then(|| scratch(input.bytes() + input.numel() * 8));
    Some(launches(
        count,
        Kernel::Sort(kernel),
        input.dtype,
        [read(call, "self"), Some(values), Some(indices), buffer],
        0,
    ))
}

fn is_long(call: &BoundCall<'_>) -> bool {
    matches!(call.arg("stable"), Some(Arg::Bool(_) | Arg::None))
        && matches!(call.arg("dim"), Some(Arg::Int(_)))
}

fn sorted(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    let tensor = |dtype| Arg::Tensor(Tensor { dtype, ..input.clone() });
    Some(vec![tensor(input.dtype), tensor(Dtype::I64)])
}

fn expand(call: &BoundCall<'_>) -> Vec<OpCall> {
    let Some(input) = call.tensor("self") else { return Vec::new() };
    if is_long(call) {
        return prepare(call, input);
    }
    let mut rest = call.inputs.iter().skip(1).cloned();
    let dim = rest.next().unwrap_or(Arg::Int(-1));
    let descending = rest.next().unwrap_or(Arg::Bool(false));
    let inputs = vec![call.arg_or_none("self"), Arg::Bool(false), dim, descending];
    vec![OpCall { outputs: call.outputs.clone(), ..OpCall::new("aten::sort", inputs) }]
}

/// Returns the child ops of a sort: the values are copied; short rows are sorted in the results themselves, whose indices
/// are filled with a sequence first.
fn prepare(call: &BoundCall<'_>, input: &Tensor) -> Vec<OpCall> {
    let length = axis(call.int("dim").unwrap_or(-1), input.shape.len()).map_or(1, |at| around(input, at)[1]);
    let values = Tensor::contiguous(&input.shape, input.dtype);
    let mut children = vec![copied(&values, input)];
    if length <= ONE_BLOCK {
        let indices = Tensor { dtype: Dtype::I64, ..values.clone() };
        let row = vec![0; input.shape.len().saturating_sub(1)].into_iter().chain([1]).collect::<Vec<i64>>();
        let places = Tensor::strided(&input.shape, &row, Dtype::I64);
        let places = if row.len() == 1 { indices.clone() } else { places };
        children.extend([counted(length), copied(&indices, &places), copied(&values, &values)]);
    }
    children
}

fn topk(call: &BoundCall<'_>) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let shapes = chosen(call, call.int("k")?)?;
    let kernel = rows(input, call.int("dim").unwrap_or(-1), "topk", 8)?;
    let written = written(call, &shapes);
    Some(launches(
        2,
        Kernel::Sort(kernel),
        input.dtype,
        [read(call, "self"), written[0], written[1]],
        input.numel(),
    ))
}

/// Returns values and indices with `k` as the size of a dimension.
fn chosen(call: &BoundCall<'_>, k: i64) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    let dim = axis(call.int("dim").unwrap_or(-1), input.shape.len())?;
    let mut shape = input.shape.to_vec();
    if let Some(size) = shape.get_mut(dim) {
        *size = k;
    }
    let tensor = |dtype| Arg::Tensor(Tensor::contiguous(&shape, dtype));
    Some(vec![tensor(input.dtype), tensor(Dtype::I64)])
}

fn written(call: &BoundCall<'_>, shapes: &[Arg]) -> [Option<crate::Operand>; 2] {
    let operand = |ret: usize| {
        let tensor = shapes.get(ret)?.tensors().first()?;
        Some(result(call, ret as u16, &tensor.shape, tensor.dtype))
    };
    [operand(0), operand(1)]
}

/// Returns the launches of `kthvalue(self, k, dim, keepdim, values, indices)`, `median(self, dim, keepdim, values, indices)`: without the
/// results among the arguments they call themselves with them; a median over all elements calls other ops.
fn quantile(call: &BoundCall<'_>) -> Option<Lowering> {
    let input = call.tensor("self")?;
    if call.tensor_at(call.position("keepdim")? + 1).is_none() {
        return Some(Lowering::Children);
    }
    let kernel = rows(input, call.int("dim")?, "select", 8)?;
    let values = input.numel() / kernel.length.max(1);
    let operands = [
        read(call, "self"),
        Some(output_bytes(0, values * input.dtype.size())),
        Some(output_bytes(1, values * 8)),
    ];
    Some(launches(1, Kernel::Sort(kernel), input.dtype, operands, input.numel()))
}

/// Returns the launches of a mode: each row is sorted and its runs counted.
fn mode(call: &BoundCall<'_>) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let kernel = rows(input, call.int("dim").unwrap_or(-1), "mode", 0)?;
    let values = input.numel() / kernel.length.max(1);
    let operands = [
        read(call, "self"),
        Some(output_bytes(0, values * input.dtype.size())),
        Some(output_bytes(1, values * 8)),
    ];
    Some(launches(1, Kernel::Sort(kernel), input.dtype, operands, input.numel()))
}

/// Returns the launches of unique values. Their number is only known afterwards, hence assumed to be at most all. Consecutive ones are not sorted.
fn unique(call: &BoundCall<'_>, op: &'static str, inverse: bool) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let dim = if op == "unique_dim" { call.int("dim")? } else { 0 };
    let [outer, length, inner] = around(input, axis(dim, input.shape.len())?);
    let by_row = op == "unique_dim";
    let kernel = Sort {
        op,
        rows: 1,
        length: if by_row { length } else { input.numel() },
        key_bytes: input.dtype.size() * if by_row { outer * inner } else { 1 },
        value_bytes: if inverse { 8 } else { 0 },
        stride: 1,
    };
    let values = result(call, 0, &input.shape, input.dtype);
    let inverted = inverse.then(|| result(call, 1, &[kernel.length as i64], Dtype::I64));
    let buffer = scratch(kernel.length * (kernel.key_bytes + kernel.value_bytes));
    let count = match op {
        "unique" if input.numel() > 2048 => radix_passes(input.dtype.size()) + 2,
        "unique_consecutive" => 2,
        _ => 4,
    };
    let operands = [read(call, "self"), Some(values), inverted, Some(buffer)];
    Some(launches(count, Kernel::Sort(kernel), input.dtype, operands, 0))
}

/// Returns the launches that count true elements, copy the count to the host, and write the places.
fn nonzero(call: &BoundCall<'_>) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let rank = input.shape.len().max(1);
    let kernel = Sort {
        op: "nonzero",
        rows: 1,
        length: input.numel(),
        key_bytes: input.dtype.size(),
        value_bytes: 8 * rank as u64,
        stride: 1,
    };
    let places = result(call, 0, &[input.numel() as i64, rank as i64], Dtype::I64);
    let count = if rank > 1 { 6 } else { 5 };
    Some(launches(count, Kernel::Sort(kernel), input.dtype, [read(call, "self"), Some(places)], 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;

    fn kernel(name: &str, inputs: Vec<Arg>) -> (Sort, u32, Vec<u64>) {
        let Lowering::Kernel(call) = OpSet::standard().lower(&OpCall::new(name, inputs)) else {
            panic!("no kernel")
        };
        let Kernel::Sort(sort) = call.kernel else { panic!("another kernel") };
        (sort, call.launches, call.operands.iter().map(|operand| operand.bytes).collect())
    }

    fn keys(n: i64) -> Arg {
        Arg::Tensor(Tensor::contiguous(&[n], Dtype::I64))
    }

    #[test]
    fn long_rows_are_sorted_in_passes() {
        let arguments = |n| vec![keys(n), Arg::Bool(false), Arg::Int(-1), Arg::Bool(false)];
        assert_eq!(kernel("aten::sort", arguments(4096)).1, 1);
        let (sort, launches, bytes) = kernel("aten::sort", arguments(100_000));
        assert_eq!((sort.rows, sort.length, sort.value_bytes, launches), (1, 100_000, 8, 21));
        assert_eq!(bytes, [800_000, 800_000, 800_000, 1_600_000]);
    }

    #[test]
    fn the_short_form_of_sort_calls_the_long_one() {
        let short = OpCall::new("aten::sort", vec![keys(64), Arg::Int(0), Arg::Bool(true)]);
        assert_eq!(OpSet::standard().lower(&short), Lowering::Children);
        assert!(matches!(OpSet::standard().lower(&OpSet::standard().expand(&short)[0]), Lowering::Kernel(_)));
    }

    #[test]
    fn the_largest_of_each_row_are_few() {
        let table = Arg::Tensor(Tensor::contiguous(&[512, 300], Dtype::F32));
        let (sort, _, bytes) = kernel("aten::topk", vec![table, Arg::Int(5), Arg::Int(1)]);
        assert_eq!((sort.rows, sort.length), (512, 300));
        assert_eq!(bytes, [512 * 300 * 4, 512 * 5 * 4, 512 * 5 * 8]);
    }
}
