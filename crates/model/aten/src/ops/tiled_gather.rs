//! Reads of whole rows by index, by rows or by slices of columns: `steptime::gather`.

use crate::bound_call::BoundCall;
use crate::build_lowering::{one, result, work};
use crate::call::Tensor;
use crate::dtype::Dtype;
use crate::kernel::{Kernel, TiledGather};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{count, read};

/// Definition of this file.
pub static OPS: &[OpDef] =
    &[OpDef::leaf(&["steptime::gather"], lower).outputs(|call| one(&shape(call)?, Dtype::F32))];

/// Returns the table and the indices.
fn tensors<'c>(call: &BoundCall<'c>) -> Option<(&'c Tensor, &'c Tensor)> {
    let (table, indices) = (call.tensor("table")?, call.tensor("indices")?);
    (table.shape.len() == 2).then_some((table, indices))
}

fn shape(call: &BoundCall<'_>) -> Option<[i64; 2]> {
    let (table, indices) = tensors(call)?;
    Some([i64::try_from(indices.numel()).ok()?, table.size(1)])
}

fn lower(call: &BoundCall<'_>) -> Option<Lowering> {
    let (table, indices) = tensors(call)?;
    let row_bytes = count(table.size(1)).checked_mul(table.dtype.size())?;
    let lookups = indices.numel();
    let kernel = Kernel::TiledGather(TiledGather {
        rows: count(table.size(0)),
        lookups,
        row_bytes,
        slice: u64::try_from(call.int("slice")?).ok()?,
        index_bytes: indices.dtype.size(),
    });
    let mut source = read(call, "table")?;
    source.bytes = source.bytes.min(lookups.saturating_mul(row_bytes));
    let gathered = result(call, 0, &shape(call)?, Dtype::F32);
    Some(work(kernel, table.dtype, [Some(source), read(call, "indices"), Some(gathered)], 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::call::Arg;
    use crate::call::OpCall;

    fn gather(table: &[i64], lookups: i64, slice: i64) -> OpCall {
        let tensor = |shape: &[i64], dtype| Arg::Tensor(Tensor::contiguous(shape, dtype));
        let inputs =
            vec![tensor(table, Dtype::F32), tensor(&[lookups], Dtype::I64), Arg::Int(slice), Arg::Int(0)];
        OpCall::new("steptime::gather", inputs)
    }

    #[test]
    fn rows_are_read_and_written() {
        let call = gather(&[8192, 4096], 100, 1024);
        let Lowering::Kernel(lowered) = OpSet::standard().lower(&call) else { panic!("no kernel") };
        let Kernel::TiledGather(kernel) = lowered.kernel else { panic!("another kernel") };
        assert_eq!((kernel.rows, kernel.lookups, kernel.row_bytes, kernel.slice), (8192, 100, 16_384, 1024));
        let bytes: Vec<u64> = lowered.operands.iter().map(|operand| operand.bytes).collect();
        assert_eq!(bytes, [1_638_400, 800, 1_638_400]);
        let given = OpSet::standard().outputs(&call).unwrap();
        assert_eq!(given, [Arg::Tensor(Tensor::contiguous(&[100, 4096], Dtype::F32))]);
    }

    #[test]
    fn other_arguments_are_priced_by_their_bytes() {
        for call in [gather(&[8192], 100, 0), gather(&[8192, 4], 100, -1)] {
            assert!(matches!(OpSet::standard().lower(&call), Lowering::Unknown(_)), "{call:?}");
        }
    }
}
