//! Pooled lookups in many tables in one launch: `steptime::embedding_bag`, and its backward pass, which sorts the lookups
//! by row and applies the optimizer to each accessed row. Its state is in a handle, which is not a tensor. Dense gradients are those rows in
//! gradients that a child op sets to zero.

use std::sync::Arc;

use steptime_launch::UpdateLanes;

use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, one};
use crate::call::{Arg, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{FusedBags, FusedTable, Kernel, Operand, Pooling, Role, RowOptimizer, Slot};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, output_bytes, read, scratch};
use crate::ops::table_batched::state_bytes;

/// Defines the backward op of one optimizer.
macro_rules! backward {
    ($name:literal, $optimizer:ident) => {
        OpDef::leaf(&[concat!("steptime::embedding_bag_backward_", $name)], |call| {
            backward(call, RowOptimizer::$optimizer)
        })
    };
}

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["steptime::embedding_bag"], forward).outputs(|call| {
        let bags = bags(call, call.int("bits")?, None)?;
        one(&[size(bags.bags)?, size(bags.dims())?], Dtype::F32)
    }),
    OpDef::leaf(&["steptime::embedding_bag_dense_backward"], dense_gradients).outputs(|call| {
        let gradient = |shape: [i64; 2]| Tensor::contiguous(&shape, Dtype::F32);
        Some(vec![Arg::Tensors(gradient_sizes(call)?.into_iter().map(gradient).collect())])
    }),
    backward!("sgd", Sgd),
    backward!("adagrad", Adagrad),
    backward!("rowwise_adagrad", RowWiseAdagrad),
    backward!("adam", Adam),
    backward!("partial_rowwise_adam", PartialRowWiseAdam),
];

/// Bytes of the f16 scale and bias before the values of a row of whole numbers.
const SCALE: u64 = 4;

/// Bytes of an element of outputs, gradients and optimizer state: f32.
const FLOAT: u64 = 4;

fn size(count: u64) -> Option<i64> {
    i64::try_from(count).ok()
}

/// Returns the number of lookups of each of `tables` tables, of `all` lookups: as stated by the call, else the same number for each, since the
/// actual numbers depend on the data.
fn table_lookups(call: &BoundCall<'_>, all: u64, tables: usize) -> Option<Vec<u64>> {
    let Some(stated) = call.ints("lookups") else {
        return Some(vec![all.checked_div(tables as u64).unwrap_or(0); tables]);
    };
    let stated: Vec<u64> = stated.iter().map(|&lookups| count(lookups)).collect();
    let sum = stated.iter().copied().fold(0, u64::saturating_add);
    (stated.len() == tables && sum == all).then_some(stated)
}

/// Returns the arguments that all ops share: tables, indices, offsets, weights, mode. `bits` is the number of bits per element.
fn bags(call: &BoundCall<'_>, bits: i64, update: Option<RowOptimizer>) -> Option<FusedBags> {
    let (indices, offsets) = (call.tensor("indices")?, call.tensor("offsets")?);
    let element_bits = u64::try_from(bits).ok().filter(|bits| [32, 16, 8, 4].contains(bits))?;
    let lookups = table_lookups(call, indices.numel(), call.tensors("tables").len())?;
    let table = |(tensor, lookups): (&Tensor, u64)| {
        let [rows, width] = *tensor.shape.as_slice() else { return None };
        let (rows, width) = (count(rows), count(width));
        let (dim, row_bytes) = match element_bits {
            8 => (width.checked_sub(SCALE)?, width),
            4 => (width.checked_sub(SCALE)?.checked_mul(2)?, width),
            bits => (width, width.checked_mul(bits / 8)?),
        };
        (dim > 0).then_some(FusedTable { rows, dim, row_bytes, lookups })
    };
    let list: Arc<[FusedTable]> =
        call.tensors("tables").iter().zip(lookups).map(table).collect::<Option<_>>()?;
    let given = |tensor: &&Tensor| tensor.numel() > 0;
    Some(FusedBags {
        update,
        bags: offsets.numel().saturating_sub(1).checked_div(list.len() as u64)?,
        tables: list,
        lookups: indices.numel(),
        pooling: match call.int("mode")? {
            0 => Pooling::Sum,
            1 => Pooling::Mean,
            2 if update.is_none() => Pooling::Max,
            _ => return None,
        },
        weighted: call.tensor("weights").filter(given).is_some(),
        element_bits,
        index_bytes: indices.dtype.size(),
    })
}

/// Returns the accessed rows of a table: as if all lookups were different, but at most the rows of the table.
fn rows(table: &FusedTable) -> u64 {
    table.lookups.min(table.rows)
}

/// Returns the operands of the tables, then of indices, offsets and weights.
fn operands(call: &BoundCall<'_>, bags: &FusedBags) -> Vec<Option<Operand>> {
    let role = if bags.update.is_some() { Role::Update } else { Role::Read };
    let tables = call.position("tables").unwrap_or_default() as u16;
    let table = |(at, table): (usize, &FusedTable)| {
        let slot = Slot::Input(tables, u16::try_from(at).ok()?);
        Some(Operand { slot, role, bytes: rows(table).saturating_mul(table.row_bytes) })
    };
    let weights = if bags.weighted { read(call, "weights") } else { None };
    let others = [read(call, "indices"), read(call, "offsets"), weights];
    bags.tables.iter().enumerate().map(table).chain(others).collect()
}

fn flops(bags: &FusedBags) -> u64 {
    let of_table = |table: &FusedTable| table.lookups.saturating_mul(table.dim);
    let once = bags.tables.iter().map(of_table).fold(0, u64::saturating_add);
    once.saturating_mul(if bags.weighted { 2 } else { 1 })
}

fn forward(call: &BoundCall<'_>) -> Option<Lowering> {
    let bags = bags(call, call.int("bits")?, None)?;
    let dtype = match (bags.element_bits, call.tensor("tables")?.dtype) {
        (32, _) => Dtype::F32,
        (16, Dtype::Bf16) => Dtype::Bf16,
        (16, _) => Dtype::F16,
        _ => Dtype::I8,
    };
    let pooled = bags.bags.saturating_mul(bags.dims()).saturating_mul(FLOAT);
    let mut operands = operands(call, &bags);
    operands.push(Some(output_bytes(0, call.output(0).map_or(pooled, Tensor::distinct_bytes))));
    let flops = flops(&bags);
    Some(launches(1, Kernel::FusedBags(bags), dtype, operands, flops))
}

fn backward(call: &BoundCall<'_>, optimizer: RowOptimizer) -> Option<Lowering> {
    let dtype = call.tensor("tables")?.dtype;
    let bits = match dtype {
        Dtype::F32 => 32,
        Dtype::F16 | Dtype::Bf16 => 16,
        _ => return None,
    };
    let bags = bags(call, bits, Some(optimizer))?;
    let state = |table: &FusedTable| {
        let row = table.dim.saturating_mul(FLOAT);
        state_bytes(optimizer, rows(table).saturating_mul(row), row, FLOAT)
    };
    let state = bags.tables.iter().map(state).fold(0, u64::saturating_add);
    // Pairs of row and position, twice if the sort alternates between two buffers; the bag of each lookup if it has a weight.
    let sort = bags.row_sort();
    let pairs = if sort.goes_back_and_forth() { 16 } else { 8 };
    let sorted = bags.lookups.saturating_mul(pairs + if bags.weighted { 4 } else { 0 });
    let mut operands = operands(call, &bags);
    operands.push(read(call, "grad"));
    operands.push(Some(Operand { slot: Slot::Scratch, role: Role::Update, bytes: state }));
    operands.push(Some(scratch(sorted)));
    let (count, flops) = (backward_launches(&bags, optimizer), flops(&bags));
    Some(launches(count, Kernel::FusedBags(bags), dtype, operands, flops))
}

/// Returns the launches that add the gradients of bags to the rows of gradients of zeros, `[E, D]` each: an update of rows without an
/// optimizer.
pub(super) fn added_gradients(
    call: &BoundCall<'_>,
    tables: impl IntoIterator<Item = FusedTable>,
    pooling: Pooling,
) -> Option<Lowering> {
    let (grad, indices) = (call.tensor("grad")?, call.tensor("indices")?);
    let bags = FusedBags {
        update: Some(RowOptimizer::Sgd),
        bags: count(grad.size(0)),
        tables: tables.into_iter().collect(),
        lookups: indices.numel(),
        pooling,
        weighted: false,
        element_bits: 32,
        index_bytes: indices.dtype.size(),
    };
    let touched = |(at, table): (usize, &FusedTable)| {
        let slot = Slot::Output(0, u16::try_from(at).ok()?);
        let bytes = rows(table).saturating_mul(table.row_bytes);
        Some(Operand { slot, role: Role::Write, bytes })
    };
    let pairs = if bags.row_sort().goes_back_and_forth() { 16 } else { 8 };
    let sorted = scratch(bags.lookups.saturating_mul(pairs));
    let others = [read(call, "grad"), read(call, "indices"), Some(sorted)];
    let operands: Vec<_> = bags.tables.iter().enumerate().map(touched).chain(others).collect();
    let (count, flops) = (backward_launches(&bags, RowOptimizer::Sgd), flops(&bags));
    Some(launches(count, Kernel::FusedBags(bags), Dtype::F32, operands, flops))
}

/// Returns the rows and columns of each table of a call for dense gradients.
fn gradient_sizes(call: &BoundCall<'_>) -> Option<Vec<[i64; 2]>> {
    let (rows, columns) = (call.ints("rows")?, call.ints("columns")?);
    (rows.len() == columns.len()).then(|| rows.iter().zip(&columns).map(|(&r, &c)| [r, c]).collect())
}

fn dense_gradients(call: &BoundCall<'_>) -> Option<Lowering> {
    let sizes = gradient_sizes(call)?;
    let lookups = table_lookups(call, call.tensor("indices")?.numel(), sizes.len())?;
    let table = |([rows, columns], lookups): ([i64; 2], u64)| {
        let dim = count(columns);
        FusedTable { rows: count(rows), dim, row_bytes: dim.saturating_mul(FLOAT), lookups }
    };
    let pooling = match call.int("mode")? {
        0 => Pooling::Sum,
        1 => Pooling::Mean,
        _ => return None,
    };
    added_gradients(call, sizes.into_iter().zip(lookups).map(table), pooling)
}

/// Returns the activities of a backward pass: clearing the report; the sort; the means of bags; the step number, if the
/// optimizer counts steps; and for each kind of table its rows, and those of many lookups if they are separate.
fn backward_launches(bags: &FusedBags, optimizer: RowOptimizer) -> u32 {
    let sorting = bags.row_sort().kernels();
    let means = u32::from(bags.pooling == Pooling::Mean);
    let counts = matches!(optimizer, RowOptimizer::Adam | RowOptimizer::PartialRowWiseAdam);
    1 + sorting + means + u32::from(counts) + row_launches(bags)
}

/// Returns the launches that update rows. Tables of one kind have the same number of columns, and their alignment allows the same
/// vector width of loads.
fn row_launches(bags: &FusedBags) -> u32 {
    let (stride, mut column) = (bags.dims(), 0u64);
    let mut seen: Vec<(u64, UpdateLanes)> = Vec::new();
    for table in bags.tables.iter() {
        let fits = |vector| [table.dim, stride, column].iter().all(|all| all.is_multiple_of(vector as u64));
        let kind = (table.dim, UpdateLanes::new(table.dim as usize, fits));
        if !seen.contains(&kind) {
            seen.push(kind);
        }
        column = column.saturating_add(table.dim);
    }
    seen.iter().map(|(_, lanes)| if lanes.together(bags.lookups as usize) { 1 } else { 2 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::call::OpCall;
    use crate::kernel::KernelCall;

    fn tensor(shape: &[i64], dtype: Dtype) -> Tensor {
        Tensor::contiguous(shape, dtype)
    }

    fn rest(lookups: i64, offsets: i64, index: Dtype) -> Vec<Arg> {
        vec![Arg::Tensor(tensor(&[lookups], index)), Arg::Tensor(tensor(&[offsets], index))]
    }

    fn ints(sizes: &[i64]) -> Arg {
        Arg::Ints(sizes.iter().copied().collect())
    }

    /// Two tables of 64 and 16 columns, 512 bags of 10 lookups each.
    fn forward_call(mode: i64, bits: i64, tables: Vec<Tensor>, weights: Arg) -> OpCall {
        let mut inputs = vec![Arg::Tensors(tables)];
        inputs.extend(rest(10_240, 1025, Dtype::I64));
        inputs.extend([weights, Arg::Int(mode), Arg::Int(bits), Arg::Int(3)]);
        OpCall::new("steptime::embedding_bag", inputs)
    }

    fn two(dtype: Dtype) -> Vec<Tensor> {
        vec![tensor(&[1_000_000, 64], dtype), tensor(&[300, 16], dtype)]
    }

    fn backward_call(name: &str, tables: Vec<Tensor>, mode: i64) -> OpCall {
        let columns = tables.iter().map(|table| table.size(1)).sum();
        let mut inputs = vec![Arg::Tensor(tensor(&[512, columns], Dtype::F32)), Arg::Tensors(tables)];
        inputs.extend(rest(10_240, 1025, Dtype::I32));
        inputs.extend([Arg::None, Arg::Int(mode), Arg::Int(3)]);
        OpCall::new(&format!("steptime::embedding_bag_backward_{name}"), inputs)
    }

    fn kernel(call: &OpCall) -> (KernelCall, FusedBags) {
        let Lowering::Kernel(lowered) = OpSet::standard().lower(call) else { panic!("no kernel: {call:?}") };
        let Kernel::FusedBags(bags) = lowered.kernel.clone() else { panic!("another kernel") };
        (lowered, bags)
    }

    #[test]
    fn a_forward_reads_the_rows_of_each_table() {
        let weights = Arg::Tensor(tensor(&[10_240], Dtype::F32));
        let (call, bags) = kernel(&forward_call(1, 32, two(Dtype::F32), weights));
        assert_eq!(
            (bags.bags, bags.lookups, bags.pooling, bags.weighted),
            (512, 10_240, Pooling::Mean, true)
        );
        assert_eq!(bags.tables[1], FusedTable { rows: 300, dim: 16, row_bytes: 64, lookups: 5120 });
        let bytes: Vec<_> = call.operands.iter().map(|o| (o.slot, o.role, o.bytes)).collect();
        assert_eq!(bytes[0], (Slot::Input(0, 0), Role::Read, 5120 * 256));
        assert_eq!(bytes[1], (Slot::Input(0, 1), Role::Read, 300 * 64));
        assert_eq!(bytes[2..5].iter().map(|b| b.2).collect::<Vec<_>>(), [81_920, 8200, 40_960]);
        assert_eq!(bytes[5], (Slot::Output(0, 0), Role::Write, 512 * 80 * 4));
        assert_eq!((call.flops, call.launches), (2 * 5120 * 80, 1));
    }

    #[test]
    fn rows_of_whole_numbers_have_a_scale_and_a_bias() {
        let of =
            |bits, pitch| kernel(&forward_call(0, bits, vec![tensor(&[1000, pitch], Dtype::I8)], Arg::None));
        let (call, int8) = of(8, 132);
        assert_eq!(int8.tables[0], FusedTable { rows: 1000, dim: 128, row_bytes: 132, lookups: 10_240 });
        assert_eq!((call.dtype, int8.index_bytes, int8.weighted), (Dtype::I8, 8, false));
        let (call, int4) = of(4, 68);
        assert_eq!((int4.tables[0].dim, int4.element_bits), (128, 4));
        assert_eq!(call.operands[0].bytes, 1000 * 68);
    }

    #[test]
    fn a_forward_gives_floats_of_all_columns() {
        let call = forward_call(2, 16, two(Dtype::Bf16), Arg::None);
        assert_eq!(kernel(&call).0.dtype, Dtype::Bf16);
        let given = OpSet::standard().outputs(&call).unwrap();
        assert_eq!(given, [Arg::Tensor(tensor(&[512, 80], Dtype::F32))]);
    }

    #[test]
    fn a_backward_updates_rows_and_their_state() {
        let (call, bags) = kernel(&backward_call("partial_rowwise_adam", two(Dtype::F16), 1));
        assert_eq!((bags.update, bags.index_bytes), (Some(RowOptimizer::PartialRowWiseAdam), 4));
        let first = Operand { slot: Slot::Input(1, 0), role: Role::Update, bytes: 5120 * 128 };
        assert_eq!(call.operands[0], first);
        let scratch: Vec<u64> =
            call.operands.iter().filter(|o| o.slot == Slot::Scratch).map(|o| o.bytes).collect();
        // One float per column and one per row; pairs of eight bytes.
        assert_eq!(scratch, [5120 * 65 * 4 + 300 * 17 * 4, 10_240 * 8]);
        // Clearing, sort by two blocks, means, step number, rows of 64 columns in two launches, those of 16 in one.
        assert_eq!(call.launches, 1 + 1 + 1 + 1 + 2 + 1);
        let (sgd, _) = kernel(&backward_call("sgd", vec![tensor(&[100, 64], Dtype::F32); 2], 0));
        assert_eq!((sgd.launches, sgd.operands.iter().filter(|o| o.slot == Slot::Scratch).count()), (4, 1));
    }

    #[test]
    fn dense_gradients_of_several_tables_are_their_rows() {
        let mut inputs = vec![Arg::Tensor(tensor(&[512, 80], Dtype::F32))];
        inputs.extend(rest(10_240, 1025, Dtype::I64));
        inputs.extend([ints(&[1_000_000, 300]), ints(&[64, 16]), Arg::Int(0)]);
        let call = OpCall::new("steptime::embedding_bag_dense_backward", inputs);
        let (lowered, bags) = kernel(&call);
        assert_eq!((bags.update, bags.bags, bags.lookups), (Some(RowOptimizer::Sgd), 512, 10_240));
        let bytes: Vec<_> = lowered.operands.iter().map(|o| (o.slot, o.role, o.bytes)).collect();
        assert_eq!(bytes[0], (Slot::Output(0, 0), Role::Write, 5120 * 256));
        assert_eq!(bytes[1], (Slot::Output(0, 1), Role::Write, 300 * 64));
        let gradients = [[1_000_000, 64], [300, 16]].map(|shape| tensor(&shape, Dtype::F32));
        assert_eq!(OpSet::standard().outputs(&call).unwrap(), [Arg::Tensors(gradients.to_vec())]);
        let mut other = call.clone();
        other.inputs[4] = ints(&[64]);
        assert!(matches!(OpSet::standard().lower(&other), Lowering::Unknown(_)), "one size for two tables");
    }

    #[test]
    fn lookups_of_each_table_are_those_that_a_call_states() {
        let mut call = forward_call(0, 32, two(Dtype::F32), Arg::None);
        call.inputs.push(ints(&[10_000, 240]));
        let (lowered, bags) = kernel(&call);
        assert_eq!([bags.tables[0].lookups, bags.tables[1].lookups, bags.lookups], [10_000, 240, 10_240]);
        let bytes: Vec<_> = lowered.operands[..2].iter().map(|operand| operand.bytes).collect();
        assert_eq!((bytes, lowered.flops), (vec![10_000 * 256, 240 * 64], 10_000 * 64 + 240 * 16));
        let mut backward = backward_call("sgd", two(Dtype::F32), 0);
        backward.inputs.push(ints(&[10_000, 240]));
        // The longest table is cut into buckets.
        assert_eq!(kernel(&backward).1.row_sort().kernels(), 2);
        for other in [vec![10_240], vec![10_000, 241]] {
            *call.inputs.last_mut().unwrap() = ints(&other);
            assert!(matches!(OpSet::standard().lower(&call), Lowering::Unknown(_)));
        }
    }

    #[test]
    fn lookups_are_sorted_as_the_kernels_plan_it() {
        let sort = |rows, lookups| {
            let tables: Arc<[FusedTable]> = [FusedTable { rows, dim: 8, row_bytes: 32, lookups }].into();
            let (_, bags) = kernel(&forward_call(0, 32, two(Dtype::F32), Arg::None));
            let sort = FusedBags { tables, lookups, ..bags }.row_sort();
            (sort.kernels(), sort.passes, sort.tile())
        };
        assert_eq!(sort(1000, 2560), (1, 1, 4096));
        assert_eq!(sort(1024, 2560), (1, 2, 4096));
        assert_eq!(sort(10_131_227, 8192), (1, 3, 8192));
        assert_eq!(sort(1_000_000, 262_144), (2, 2, 8192));
    }

    #[test]
    fn other_arguments_are_priced_by_their_bytes() {
        let by_bytes = |call: &OpCall| matches!(OpSet::standard().lower(call), Lowering::Unknown(_));
        let tables = || two(Dtype::F32);
        assert!(by_bytes(&forward_call(3, 32, tables(), Arg::None)), "no such mode");
        assert!(by_bytes(&forward_call(0, 12, tables(), Arg::None)), "no such element");
        assert!(by_bytes(&forward_call(0, 32, Vec::new(), Arg::None)), "a list without its tensors");
        assert!(by_bytes(&forward_call(0, 8, vec![tensor(&[9, 3], Dtype::I8)], Arg::None)), "too narrow");
        assert!(by_bytes(&forward_call(0, 32, vec![tensor(&[9], Dtype::F32)], Arg::None)), "no matrix");
        assert!(by_bytes(&backward_call("sgd", tables(), 2)), "the maximum has no backward");
        assert!(by_bytes(&backward_call("adam", two(Dtype::I8), 0)), "whole numbers are not trained");
        let mut cut = backward_call("adam", tables(), 0);
        cut.inputs.truncate(3);
        assert!(by_bytes(&cut));
        let huge = vec![tensor(&[i64::MAX, i64::MAX / 16], Dtype::F32), tensor(&[-1, 4], Dtype::F32)];
        assert_eq!(kernel(&forward_call(0, 32, huge, Arg::None)).1.tables[1].rows, 0);
    }
}
