//! Whole rows taken by index, in rows or in slices of columns: `steptime::gather`.

use crate::call::{OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, TiledGather};
use crate::operands::{count, read};
use crate::ops::{Lowered, OpDef};
use crate::work::{one, or_bytes, result, work};

/// The op of this file.
pub static OPS: &[OpDef] = &[OpDef::leaf(&["steptime::gather"], |call| or_bytes(call, lower))
    .outputs(|call| one(&shape(call)?, Dtype::F32))];

/// The table and the indices.
fn tensors(call: &OpCall) -> Option<(&Tensor, &Tensor)> {
    let (table, indices) = (call.tensor(0)?, call.tensor(1)?);
    (table.shape.len() == 2).then_some((table, indices))
}

fn shape(call: &OpCall) -> Option<[i64; 2]> {
    let (table, indices) = tensors(call)?;
    Some([i64::try_from(indices.numel()).ok()?, table.size(1)])
}

/// Arguments: the table, indices, bytes of a slice (0: whole rows), plan.
fn lower(call: &OpCall) -> Option<Lowered> {
    let (table, indices) = tensors(call)?;
    let row_bytes = count(table.size(1)).checked_mul(table.dtype.size())?;
    let lookups = indices.numel();
    let kernel = Kernel::TiledGather(TiledGather {
        rows: count(table.size(0)),
        lookups,
        row_bytes,
        slice: u64::try_from(call.int(2)?).ok()?,
        index_bytes: indices.dtype.size(),
    });
    let mut source = read(call, 0)?;
    source.bytes = source.bytes.min(lookups.saturating_mul(row_bytes));
    let gathered = result(call, 0, &shape(call)?, Dtype::F32);
    Some(work(kernel, table.dtype, [Some(source), read(call, 1), Some(gathered)], 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Arg;

    fn gather(table: &[i64], lookups: i64, slice: i64) -> OpCall {
        let tensor = |shape: &[i64], dtype| Arg::Tensor(Tensor::contiguous(shape, dtype));
        let inputs =
            vec![tensor(table, Dtype::F32), tensor(&[lookups], Dtype::I64), Arg::Int(slice), Arg::Int(0)];
        OpCall::new("steptime::gather", inputs)
    }

    #[test]
    fn rows_are_read_and_written() {
        let call = gather(&[8192, 4096], 100, 1024);
        let Lowered::Kernel(lowered) = crate::registry::lower(&call) else { panic!("no kernel") };
        let Kernel::TiledGather(kernel) = lowered.kernel else { panic!("another kernel") };
        assert_eq!((kernel.rows, kernel.lookups, kernel.row_bytes, kernel.slice), (8192, 100, 16_384, 1024));
        let bytes: Vec<u64> = lowered.operands.iter().map(|operand| operand.bytes).collect();
        assert_eq!(bytes, [1_638_400, 800, 1_638_400]);
        let given = crate::registry::outputs(&call).unwrap();
        assert_eq!(given, [Arg::Tensor(Tensor::contiguous(&[100, 4096], Dtype::F32))]);
    }

    #[test]
    fn other_arguments_are_priced_by_their_bytes() {
        for call in [gather(&[8192], 100, 0), gather(&[8192, 4], 100, -1)] {
            assert!(matches!(crate::registry::lower(&call), Lowered::Unknown(_)), "{call:?}");
        }
    }
}
