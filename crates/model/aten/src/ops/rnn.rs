//! Recurrent networks: cuDNN's, and single cells.

use crate::bound_call::BoundCall;
use crate::build_lowering::work;
use crate::call::{Arg, Tensor};
use crate::kernel::{Elementwise, Kernel, Layout, Pass, Rnn, Work};
use crate::op_def::{Lowering, OpDef};
use crate::operands::{self, count, output, output_bytes, precision};

/// Definitions of recurrent networks.
pub static OPS: &[OpDef] = &[
    OpDef::leaf(&["aten::_cudnn_rnn"], |call| network(call, Pass::Forward)).outputs(shape),
    OpDef::leaf(&["aten::_cudnn_rnn_backward"], |call| network(call, Pass::Backward)),
    OpDef::leaf(&["aten::_thnn_fused_lstm_cell"], |call| {
        cell(call, "lstm_cell", "cx", &[("cx", 1), ("cx", 1), ("input_gates", 1)])
    }),
    OpDef::leaf(&["aten::_thnn_fused_lstm_cell_backward_impl"], |call| {
        cell(call, "lstm_cell_backward", "cx", &[("workspace", 1), ("cx", 1)])
    }),
    OpDef::leaf(&["aten::_thnn_fused_gru_cell"], |call| {
        cell(call, "gru_cell", "hx", &[("hx", 1), ("hx", 5)])
    }),
    OpDef::leaf(&["aten::_thnn_fused_gru_cell_backward"], |call| {
        cell(call, "gru_cell_backward", "grad_hy", &[("grad_hy", 3), ("grad_hy", 3), ("grad_hy", 1)])
    }),
];

fn rnn(call: &BoundCall<'_>, pass: Pass) -> Option<Rnn> {
    let input = call.tensor("input")?;
    let lengths = call.ints("batch_sizes").unwrap_or_default();
    let batch_first = call.flag("batch_first").unwrap_or(false);
    let packed = !lengths.is_empty();
    let (steps, batch) = if packed {
        (lengths.len() as u64, lengths.first().map_or(0, |&size| count(size)))
    } else {
        let (time, batch) = if batch_first { (1, 0) } else { (0, 1) };
        (count(input.size(time)), count(input.size(batch)))
    };
    Some(Rnn {
        pass,
        // Modes of cuDNN: plain with two activations, LSTM, GRU.
        gates: match call.int("mode")? {
            2 => 4,
            3 => 3,
            _ => 1,
        },
        steps,
        batch,
        input: count(input.size(-1)),
        hidden: count(call.int("hidden_size")?),
        layers: count(call.int("num_layers")?),
        directions: if call.flag("bidirectional").unwrap_or(false) { 2 } else { 1 },
        precision: precision(input.dtype, call.settings.conv_tf32),
    })
}

/// Returns the operations of all layers, steps and directions; twice as many backward.
fn flops(rnn: &Rnn) -> u64 {
    let deeper = rnn.layers.saturating_sub(1).saturating_mul(rnn.hidden * rnn.directions);
    let inputs = rnn.input + deeper + rnn.layers * rnn.hidden;
    let once = [rnn.gates, rnn.hidden, inputs, rnn.steps, rnn.batch, rnn.directions];
    let forward = once.iter().fold(2, |n: u64, &size| n.saturating_mul(size));
    forward.saturating_mul(if rnn.pass == Pass::Forward { 1 } else { 2 })
}

fn shape(call: &BoundCall<'_>) -> Option<Vec<Arg>> {
    let rnn = rnn(call, Pass::Forward)?;
    let (input, hidden) = (call.tensor("input")?, call.tensor("hx")?);
    let mut sizes = input.shape.to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = (rnn.hidden * rnn.directions) as i64;
    }
    let state = || Arg::Tensor(Tensor::contiguous(&hidden.shape, hidden.dtype));
    let cell = if rnn.gates == 4 { state() } else { Arg::None };
    Some(vec![Arg::Tensor(Tensor::contiguous(&sizes, input.dtype)), state(), cell])
}

fn network(call: &BoundCall<'_>, pass: Pass) -> Option<Lowering> {
    let (Some(rnn), Some(input)) = (rnn(call, pass), call.tensor("input")) else {
        return None;
    };
    if input.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let given: operands::Operands = if !call.outputs.is_empty() {
        operands::outputs(call)
    } else if pass == Pass::Forward {
        let shapes = shape(call).unwrap_or_default();
        shapes
            .iter()
            .enumerate()
            .filter_map(|(ret, arg)| arg.tensors().first().map(|t| output(ret, t)))
            .collect()
    } else {
        let weights: u64 = call.tensors("weight").iter().map(Tensor::bytes).sum();
        [output_bytes(0, input.bytes()), output_bytes(3, weights)].into_iter().collect()
    };
    let all = operands::inputs(call).into_iter().chain(given).map(Some);
    Some(work(Kernel::Rnn(rnn), input.dtype, all, flops(&rnn)))
}

/// Returns the launches of one step of one layer after its products. `results` has for each result the argument of the same size, and a
/// factor.
fn cell(call: &BoundCall<'_>, op: &'static str, state: &str, results: &[(&str, u64)]) -> Option<Lowering> {
    let hidden = call.tensor(state)?;
    if hidden.numel() == 0 {
        return Some(Lowering::Nothing);
    }
    let inputs = operands::inputs(call);
    let kernel = Kernel::Elementwise(Elementwise {
        op,
        work: Work::Heavy,
        numel: hidden.numel(),
        inputs: inputs.len() as u32,
        layout: Layout::Dense,
    });
    let given = results.iter().enumerate().map(|(ret, &(name, times))| {
        let computed =
            call.tensor(name).map(|tensor| output_bytes(ret as u16, tensor.bytes().saturating_mul(times)));
        call.output(ret).map(|tensor| output(ret, tensor)).or(computed)
    });
    Some(work(
        kernel,
        hidden.dtype,
        inputs.into_iter().map(Some).chain(given),
        hidden.numel().saturating_mul(20),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype::F32;
    use crate::OpSet;
    use crate::call::OpCall;
    use crate::kernel::Precision;

    #[test]
    fn two_layers_of_lstm() {
        let tensor = |shape: &[i64]| Arg::Tensor(Tensor::contiguous(shape, F32));
        let weights =
            Arg::Tensors(vec![Tensor::contiguous(&[256, 32], F32), Tensor::contiguous(&[256, 64], F32)]);
        let first =
            [tensor(&[20, 8, 32]), weights, Arg::Int(4), Arg::None, tensor(&[2, 8, 64]), tensor(&[2, 8, 64])];
        let numbers =
            [Arg::Int(2), Arg::Int(64), Arg::Int(0), Arg::Int(2), Arg::Bool(false), Arg::Float(0.0)];
        let rest = [Arg::Bool(true), Arg::Bool(false), Arg::Ints(Default::default()), Arg::None];
        let call = OpCall::new("aten::_cudnn_rnn", first.into_iter().chain(numbers).chain(rest).collect());
        let lowered = OpSet::standard().lower(&call);
        let Some(kernel) = lowered.kernel() else { panic!("{lowered:?}") };
        let Kernel::Rnn(rnn) = kernel.kernel else { panic!("{kernel:?}") };
        assert_eq!(
            (rnn.gates, rnn.steps, rnn.batch, rnn.input, rnn.hidden, rnn.layers),
            (4, 20, 8, 32, 64, 2)
        );
        assert_eq!((rnn.directions, rnn.precision), (1, Precision::Tf32));
        assert_eq!(kernel.flops, 2 * 4 * 64 * (32 + 64 + 128) * 20 * 8);
    }
}
