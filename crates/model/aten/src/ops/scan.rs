//! Running sums and other scans along one dimension.

use crate::axes::{around, axis};
use crate::bound_call::BoundCall;
use crate::build_lowering::{launches, result};
use crate::call::{Arg, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, Sort};
use crate::op_def::{Lowering, OpDef};
use crate::operands::read;

/// Defines a scanning op.
macro_rules! scans {
    ($name:literal) => {
        OpDef::leaf(&[$name], |call| scan(call, &$name[6..])).outputs(shape)
    };
}

/// Definitions of this file.
pub static OPS: &[OpDef] = &[
    scans!("aten::cumsum"),
    scans!("aten::cumsum_"),
    scans!("aten::cumprod"),
    scans!("aten::_logcumsumexp"),
    OpDef::leaf(&["aten::_cummax_helper"], |call| extremum(call, "cummax")),
    OpDef::leaf(&["aten::_cummin_helper"], |call| extremum(call, "cummin")),
    OpDef::composite(&["aten::logcumsumexp", "aten::cummax", "aten::cummin", "aten::cummaxmin_backward"]),
    OpDef::composite(&["aten::cumprod_backward"]),
];

fn rows(tensor: &Tensor, dim: i64, op: &'static str, value_bytes: u64) -> Option<Sort> {
    let [outer, length, inner] = around(tensor, axis(dim, tensor.shape.len())?);
    let key_bytes = tensor.dtype.size();
    Some(Sort { op, rows: outer * inner, length, key_bytes, value_bytes, stride: inner })
}

/// Returns the launches of a scan. A single row is scanned by the whole device, in two launches.
fn scan(call: &BoundCall<'_>, op: &'static str) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let sort = rows(input, call.int("dim")?, op, 0)?;
    let to = if input.dtype.is_float() { input.dtype } else { Dtype::I64 };
    let count = if sort.rows == 1 { 2 } else { 1 };
    let operands = [read(call, "self"), Some(result(call, 0, &input.shape, to))];
    Some(launches(count, Kernel::Scan(sort), input.dtype, operands, input.numel()))
}

fn extremum(call: &BoundCall<'_>, op: &'static str) -> Option<Lowering> {
    let input = call.tensor("self")?;
    let sort = rows(input, call.int("dim")?, op, 8)?;
    let operands =
        [read(call, "self"), crate::operands::write(call, "values"), crate::operands::write(call, "indices")];
    Some(launches(1, Kernel::Scan(sort), input.dtype, operands, input.numel()))
}

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let input = call.tensor("self")?;
    let dtype = if input.dtype.is_float() { input.dtype } else { Dtype::I64 };
    crate::build_lowering::one(&input.shape, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpSet;
    use crate::call::OpCall;

    #[test]
    fn a_scan_goes_along_its_dimension() {
        let table = Arg::Tensor(Tensor::contiguous(&[512, 300], Dtype::F32));
        let lowered =
            OpSet::standard().lower(&OpCall::new("aten::cumsum", vec![table, Arg::Int(0), Arg::None]));
        let Lowering::Kernel(call) = lowered else { panic!("no kernel") };
        let Kernel::Scan(scan) = call.kernel else { panic!("another kernel") };
        assert_eq!((scan.rows, scan.length, scan.stride, call.launches), (300, 512, 300, 1));
    }
}
