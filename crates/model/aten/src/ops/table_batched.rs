//! Pooled lookups in many tables in one kernel: FBGEMM's table-batched embeddings. The backward pass sorts the
//! indices and applies the optimizer to each accessed row.
//!
//! There is one op per optimizer, with arguments that grew from version to version. They have one sequence of arguments in common:
//! the columns' offsets, sizes, the indices, the bags' offsets, and the pooling mode.

use crate::build_lowering::{launches, unknown};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{
    Elementwise, Kernel, Layout, Operand, Pass, Pooling, Role, RowOptimizer, Slot, TableBatched, Work,
};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{operand, output_bytes, scratch};

/// Defines forward and backward ops of one optimizer.
macro_rules! optimizers {
    ($($name:literal $optimizer:ident)+) => {
        /// Lookups in many tables, by optimizer.
        pub static OPS: &[OpDef] = &[$(
            OpDef::leaf(
                &[concat!("fbgemm::split_embedding_codegen_lookup_", $name, "_function")],
                |call| lower(call, Pass::Forward, RowOptimizer::$optimizer),
            ),
            // Newer versions launch from `split_embedding_codegen_forward_..` inside.
            OpDef::composite(&[concat!("fbgemm::split_embedding_codegen_lookup_", $name, "_function_pt2")]),
            OpDef::leaf(
                &[
                    concat!("fbgemm::split_embedding_backward_codegen_", $name, "_unweighted_exact_cuda"),
                    concat!("fbgemm::split_embedding_backward_codegen_", $name, "_weighted_exact_cuda"),
                ],
                |call| lower(call, Pass::Backward, RowOptimizer::$optimizer),
            ),
            // Older versions launch from the autograd node, which has only the gradient.
            OpDef::leaf(
                &[
                    concat!("torch::autograd::CppNode<SplitLookupFunction_", $name, "_Op>"),
                    concat!("CppNode<SplitLookupFunction_", $name, "_Op>"),
                ],
                |call| Some(unknown(call)),
            ),
        )+];
    };
}

optimizers! {
    "sgd" Sgd
    "rowwise_adagrad" RowWiseAdagrad
    "rowwise_adagrad_with_counter" RowWiseAdagrad
    "adagrad" Adagrad
    "adam" Adam
    "partial_rowwise_adam" PartialRowWiseAdam
    "lamb" Other
    "partial_rowwise_lamb" Other
    "lars_sgd" Other
    "none" Other
}

/// Lookups without an optimizer, and related ops.
pub static OTHERS: &[OpDef] = &[
    OpDef::leaf(
        &[
            "fbgemm::dense_embedding_codegen_lookup_function",
            "fbgemm::split_embedding_codegen_forward_unweighted_cuda",
            "fbgemm::split_embedding_codegen_forward_weighted_cuda",
            "fbgemm::split_embedding_codegen_forward_unweighted_pt2",
            "fbgemm::split_embedding_codegen_forward_weighted_pt2",
            "fbgemm::dense_embedding_codegen_forward_unweighted_cuda",
            "fbgemm::dense_embedding_codegen_forward_weighted_cuda",
        ],
        |call| lower(call, Pass::Forward, RowOptimizer::Other),
    ),
    OpDef::leaf(
        &[
            "torch::autograd::CppNode<SplitLookupFunction_Dense_Op>",
            "CppNode<SplitLookupFunction_Dense_Op>",
            "fbgemm::permute_2D_sparse_data",
            "fbgemm::permute_1D_sparse_data",
            "fbgemm::block_bucketize_sparse_features",
            "fbgemm::jagged_to_padded_dense",
            "fbgemm::jagged_2d_to_dense",
        ],
        |call| Some(unknown(call)),
    ),
    OpDef::leaf(&["fbgemm::bounds_check_indices"], |call| pass(call, "bounds_check", 1)),
    OpDef::leaf(
        &[
            "fbgemm::asynchronous_complete_cumsum",
            "fbgemm::asynchronous_inclusive_cumsum",
            "fbgemm::asynchronous_exclusive_cumsum",
        ],
        |call| pass(call, "cumsum", 0),
    ),
];

/// Number of launches of the sort of the indices, the search of its runs, and the update of the rows.
const SORTED: u32 = 14;

/// Arguments that all versions share.
struct SharedArgs<'a> {
    columns: &'a Tensor,
    width: Option<i64>,
    indices: (usize, &'a Tensor),
    offsets: (usize, &'a Tensor),
    pooling: Pooling,
    weights: Option<usize>,
    first: usize,
}

/// Returns `D_offsets, [total_D,] max_D, .., indices, offsets, pooling_mode [, indice_weights]`.
fn shared(call: &OpCall) -> Option<SharedArgs<'_>> {
    let whole = |arg: usize| matches!(call.inputs.get(arg), Some(Arg::Int(_)));
    let of = |arg: usize, types: &[Dtype]| match call.inputs.get(arg) {
        Some(Arg::Tensor(tensor)) if types.contains(&tensor.dtype) => Some(tensor),
        _ => None,
    };
    let integer = [Dtype::I32, Dtype::I64];
    let first = (0..call.inputs.len()).find(|&arg| of(arg, &[Dtype::I32]).is_some() && whole(arg + 1))?;
    let mut after = first + 1..call.inputs.len();
    let at = after
        .find(|&arg| of(arg, &integer).is_some() && of(arg + 1, &integer).is_some() && whole(arg + 2))?;
    Some(SharedArgs {
        columns: of(first, &[Dtype::I32])?,
        width: if whole(first + 2) { call.int_at(first + 1) } else { None },
        indices: (at, of(at, &integer)?),
        offsets: (at + 1, of(at + 1, &integer)?),
        pooling: match call.int_at(at + 2)? {
            0 => Pooling::Sum,
            1 => Pooling::Mean,
            _ => Pooling::None,
        },
        weights: call
            .tensor_at(at + 3)
            .filter(|weights| weights.dtype.is_float() && weights.numel() > 0)
            .map(|_| at + 3),
        first,
    })
}

fn lower(call: &OpCall, pass: Pass, optimizer: RowOptimizer) -> Option<Lowering> {
    let shared = shared(call)?;
    let tables = shared.columns.numel().saturating_sub(1).max(1);
    let backward = pass == Pass::Backward;
    // Gradients come first, and have one row per bag.
    let grad = if backward { call.tensor_at(0) } else { None };
    let batch = shared.offsets.1.numel().saturating_sub(1) / tables;
    let dims = match grad {
        Some(grad) => grad.size(-1).max(0) as u64,
        None => shared.width.and_then(|width| u64::try_from(width).ok())?,
    };
    let before =
        call.input_tensors().filter(|&(arg, _, tensor)| arg < shared.first && tensor.dtype.is_float());
    let (arg, at, table) = before.skip(usize::from(backward)).max_by_key(|(_, _, tensor)| tensor.numel())?;
    let lookups = shared.indices.1.numel();
    let row = dims * table.dtype.size() / tables;
    let touched = (lookups * row).min(table.bytes());
    let kernel = Kernel::TableBatched(TableBatched {
        pass,
        tables,
        rows: table.numel() * tables / dims.max(1),
        dims,
        batch,
        lookups,
        pooling: shared.pooling,
        weighted: shared.weights.is_some(),
        optimizer,
        index_bytes: shared.indices.1.dtype.size(),
    });
    let role = if backward { Role::Update } else { Role::Read };
    let slot = Slot::Input(arg as u16, at as u16);
    let input = |arg: usize, tensor| Some(operand(Slot::Input(arg as u16, 0), Role::Read, tensor));
    let result = if backward {
        input(0, grad?)
    } else {
        let bytes = batch * dims * table.dtype.size();
        Some(output_bytes(0, call.output(0).map_or(bytes, Tensor::bytes)))
    };
    let state = state_bytes(optimizer, touched, row, table.dtype.size());
    let operands = [
        Some(Operand { slot, role, bytes: touched }),
        input(shared.indices.0, shared.indices.1),
        input(shared.offsets.0, shared.offsets.1),
        shared.weights.and_then(|arg| input(arg, call.tensor_at(arg)?)),
        result,
        backward.then_some(Operand { slot: Slot::Scratch, role: Role::Update, bytes: state }),
        backward.then(|| scratch(lookups * 32)),
    ];
    let flops = lookups * dims / tables * if shared.weights.is_some() { 2 } else { 1 };
    Some(launches(if backward { SORTED } else { 1 }, kernel, table.dtype, operands, flops))
}

/// Returns the bytes of the optimizer's state for the accessed rows.
pub(super) fn state_bytes(optimizer: RowOptimizer, touched: u64, row: u64, element: u64) -> u64 {
    let rows = touched / row.max(1);
    match optimizer {
        RowOptimizer::Sgd | RowOptimizer::Other => 0,
        RowOptimizer::RowWiseAdagrad => rows * element,
        RowOptimizer::Adagrad => touched,
        RowOptimizer::Adam => 2 * touched,
        RowOptimizer::PartialRowWiseAdam => touched + rows * element,
    }
}

/// Returns the launches of one pass over the main argument.
fn pass(call: &OpCall, op: &'static str, main: usize) -> Option<Lowering> {
    let values = call.tensor_at(main)?;
    let layout = Layout::Dense;
    let kernel = Elementwise { op, work: Work::Light, numel: values.numel(), inputs: 1, layout };
    let mut operands = crate::operands::inputs(call);
    operands.extend(crate::operands::outputs(call));
    let operands = operands.into_iter().map(Some);
    Some(launches(1, Kernel::Elementwise(kernel), values.dtype, operands, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;

    fn tensor(n: i64, dtype: Dtype) -> Arg {
        Arg::Tensor(Tensor::contiguous(&[n], dtype))
    }

    /// Arguments as recorded with TorchRec's DLRM.
    fn recorded() -> OpCall {
        let (i32s, i64s, floats) = (Dtype::I32, Dtype::I64, Dtype::F32);
        let inputs = vec![
            tensor(0, floats),
            tensor(640_649_648, floats),
            tensor(0, floats),
            tensor(0, floats),
            tensor(3, i32s),
            tensor(3, i64s),
            tensor(4, i32s),
            Arg::Int(48),
            Arg::Int(16),
            tensor(4, i64s),
            Arg::Int(26),
            tensor(768, i64s),
            tensor(385, i64s),
            Arg::Int(0),
            Arg::None,
            Arg::None,
        ];
        OpCall::new("fbgemm::split_embedding_codegen_lookup_adagrad_function", inputs)
    }

    #[test]
    fn the_arguments_are_found_whatever_surrounds_them() {
        let Lowering::Kernel(call) = OpSet::standard().lower(&recorded()) else { panic!("no kernel") };
        let Kernel::TableBatched(tables) = call.kernel else { panic!("another kernel") };
        assert_eq!((tables.tables, tables.dims, tables.batch, tables.lookups), (3, 48, 128, 768));
        assert_eq!((tables.rows, tables.optimizer), (40_040_603, RowOptimizer::Adagrad));
        assert_eq!(call.operands[0].bytes, 768 * 64);
        assert_eq!(call.operands.last().map(|o| o.bytes), Some(128 * 48 * 4));
    }

    #[test]
    fn a_backward_updates_rows_and_their_state() {
        let forward = recorded();
        let grad = Arg::Tensor(Tensor::contiguous(&[128, 48], Dtype::F32));
        let mut inputs = vec![grad];
        inputs.extend(forward.inputs[1..7].iter().cloned());
        inputs.push(Arg::Int(16));
        inputs.extend(forward.inputs[9..].iter().cloned());
        let name = "fbgemm::split_embedding_backward_codegen_adagrad_unweighted_exact_cuda";
        let Lowering::Kernel(call) = OpSet::standard().lower(&OpCall::new(name, inputs)) else {
            panic!("no kernel")
        };
        assert_eq!(
            call.operands[0],
            Operand { slot: Slot::Input(1, 0), role: Role::Update, bytes: 768 * 64 }
        );
        assert!(call.operands.iter().any(|o| o.slot == Slot::Scratch && o.bytes == 768 * 64));
    }
}
