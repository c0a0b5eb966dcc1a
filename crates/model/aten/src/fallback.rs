//! Cost of an unknown op: the bytes that it can access.

use smallvec::SmallVec;

use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::kernel::{Kernel, KernelCall, Operand, Role};
use crate::op_def::Lowering;
use crate::operands;

/// Minimum number of inputs with the same leading size that are data and not tables: a query, its keys and its values.
const TOGETHER: usize = 3;

/// Returns the bytes of an op's input tensors and of its results `given`; an op without tensors launches nothing.
///
/// If one of its inputs holds indices, at most one row of every other input is accessed for each index. The width of a row is that of a tensor with
/// one row per index, if there is one. Otherwise it is the width in that input.
#[must_use]
pub fn lower(call: &OpCall, given: Vec<Arg>) -> Lowering {
    let reach = Reach::measure(call, &given);
    let mut list: SmallVec<[Operand; 4]> = operands::inputs(call);
    for (operand, (_, _, tensor)) in list.iter_mut().zip(call.input_tensors()) {
        operand.bytes = operand.bytes.min(reach.bytes(tensor));
    }
    if operands::in_place(call)
        && let Some(first) = list.first_mut()
    {
        first.role = Role::Update;
    }
    list.extend(operands::outputs(&OpCall { outputs: given, ..OpCall::default() }));
    if list.iter().all(|operand| operand.bytes == 0) {
        return Lowering::Nothing;
    }
    let dtype = operands::main_dtype(call);
    Lowering::Unknown(KernelCall { kernel: Kernel::Unknown, dtype, operands: list, flops: 0, launches: 1 })
}

/// Reach of an op into its inputs.
struct Reach {
    /// Maximum number of indices of one input; `None` without any.
    indices: Option<u64>,
    /// Maximum number of bytes of a tensor with one row per index.
    rows: Option<u64>,
    /// Bytes of the results.
    given: u64,
    /// Leading sizes of inputs that are data, each once, in order.
    data: SmallVec<[i64; 2]>,
}

impl Reach {
    fn measure(call: &OpCall, given: &[Arg]) -> Reach {
        let inputs = || call.input_tensors().map(|(_, _, tensor)| tensor);
        let indices = inputs().filter(|tensor| is_index(tensor)).map(Tensor::numel).max();
        let given = || given.iter().flat_map(Arg::tensors);
        let leads = |tensor: &&Tensor| {
            tensor.shape.first().is_some_and(|&size| Some(operands::count(size)) == indices)
        };
        let values = || inputs().filter(|tensor| !is_index(tensor));
        let rows = values().chain(given()).filter(leads).map(Tensor::distinct_bytes).max();
        let mut leading: SmallVec<[i64; 8]> =
            values().filter(|tensor| tensor.shape.len() > 1).map(|tensor| tensor.shape[0]).collect();
        leading.sort_unstable();
        let alike = leading.chunk_by(|one, other| one == other);
        let data = alike.filter(|sizes| sizes.len() >= TOGETHER).map(|sizes| sizes[0]);
        Reach {
            indices,
            rows,
            given: given().map(Tensor::distinct_bytes).fold(0, u64::saturating_add),
            data: data.collect(),
        }
    }

    /// Returns the maximum number of bytes of a tensor that are accessed.
    fn bytes(&self, tensor: &Tensor) -> u64 {
        let whole = tensor.distinct_bytes();
        let Some(indices) = self.indices else { return whole };
        let Some(&leading) = tensor.shape.first() else { return whole };
        if is_index(tensor) || tensor.shape.len() < 2 || self.data.binary_search(&leading).is_ok() {
            return whole;
        }
        let row = whole / operands::count(leading).max(1);
        let touched = self.rows.unwrap_or_else(|| indices.saturating_mul(row));
        whole.min(touched.max(self.given))
    }
}

/// Whether a tensor may hold indices: whole numbers, in at least one dimension.
fn is_index(tensor: &Tensor) -> bool {
    matches!(tensor.dtype, Dtype::I64 | Dtype::I32) && !tensor.shape.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64], dtype: Dtype) -> Arg {
        Arg::Tensor(Tensor::contiguous(shape, dtype))
    }

    fn footprint(call: &OpCall) -> u64 {
        lower(call, call.outputs.clone()).kernel().map_or(0, KernelCall::footprint)
    }

    #[test]
    fn a_lookup_reads_a_row_an_index() {
        let table = tensor(&[1_000_000, 1024], Dtype::F32);
        let call = OpCall::new("my::lookup", vec![table, Arg::Int(0), tensor(&[8], Dtype::I64)]);
        assert_eq!(footprint(&call), 8 * 4096 + 64);
    }

    #[test]
    fn a_cache_is_written_where_new_keys_go() {
        let (new, cache) = (tensor(&[64, 8, 128], Dtype::Bf16), tensor(&[100_000, 16, 8, 128], Dtype::Bf16));
        let slots = tensor(&[64], Dtype::I64);
        let inputs = vec![new.clone(), new, cache.clone(), cache, slots];
        assert_eq!(
            footprint(&OpCall::new("_C_cache_ops::reshape_and_cache_flash", inputs)),
            4 * 64 * 2048 + 512
        );
    }

    #[test]
    fn without_indices_all_is_touched() {
        let (x, small) = (tensor(&[4096, 4096], Dtype::F32), tensor(&[4096], Dtype::F32));
        assert_eq!(footprint(&OpCall::new("my::norm", vec![x, small])), 4096 * 4096 * 4 + 4096 * 4);
    }

    #[test]
    fn offsets_beside_queries_keys_and_values_are_no_rows() {
        let x = tensor(&[8192, 16, 64], Dtype::Bf16);
        let call = OpCall::new("my::varlen", vec![x.clone(), x.clone(), x, tensor(&[9], Dtype::I32)]);
        assert_eq!(footprint(&call), 3 * 8192 * 16 * 64 * 2 + 36);
    }

    #[test]
    fn an_op_is_given_at_least_what_it_writes() {
        let mut call = OpCall::new("my::op", vec![tensor(&[512, 64], Dtype::F32), tensor(&[3], Dtype::I64)]);
        call.outputs = vec![tensor(&[512, 64], Dtype::F32)];
        assert_eq!(footprint(&call), 2 * 512 * 64 * 4 + 24);
    }
}
