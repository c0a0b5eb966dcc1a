//! Recurrent networks: one op of cuDNN for all layers, steps and directions, which are separate ops on the CPU.

use super::autocast;
use super::branch::Branch;
use super::build::{around, empty_like, fill, light, op, row_major, view};
use crate::call::{Arg, OpCall, Tensor};
use crate::dtype::Dtype;

/// Function of the gradient.
const FUNCTION: &str = "CudnnRnnBackward0";
/// Ops of cuDNN; the ops inside them are created here.
const FORWARD: &str = "aten::_cudnn_rnn";
const BACKWARD: &str = "aten::_cudnn_rnn_backward";

/// Ops that a module calls for networks, and cuDNN's mode numbers.
const MODES: [(&str, i64); 4] =
    [("aten::rnn_relu", 0), ("aten::rnn_tanh", 1), ("aten::lstm", 2), ("aten::gru", 3)];
const LSTM: i64 = 2;

/// Whether an op was created here, including its children.
pub(super) fn is_made(name: &str) -> bool {
    name == FORWARD || name == BACKWARD
}

/// Network, from a call of its module: `(input, state, weights, biases, layers, dropout, training, bidirectional,
/// batch first)`, or `(rows, batch sizes, state, weights, biases, ...)` for packed sequences.
struct Network<'c> {
    input: &'c Tensor,
    states: &'c [Tensor],
    weights: &'c [Tensor],
    mode: i64,
    /// Position of the number of layers.
    layers: usize,
    /// Number of steps of a packed input.
    packed: Option<i64>,
    call: &'c OpCall,
}

impl<'c> Network<'c> {
    fn from_call(call: &'c OpCall) -> Option<Network<'c>> {
        let &(_, mode) = MODES.iter().find(|(name, _)| *name == call.name)?;
        let lists = |at: usize| matches!(call.inputs.get(at), Some(Arg::Tensors(list)) if !list.is_empty());
        // The weights are the list before the flag for biases.
        let weights =
            (2..=3).find(|&at| lists(at) && matches!(call.inputs.get(at + 1), Some(Arg::Bool(_))))?;
        let packed = (weights == 3).then(|| call.tensor_at(1).map_or(1, |sizes| sizes.size(0)));
        let network = Network {
            input: call.tensor_at(0)?,
            states: call.tensors_at(weights - 1),
            weights: call.tensors_at(weights),
            mode,
            layers: weights + 2,
            packed,
            call,
        };
        let narrow = matches!(network.input.dtype, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64);
        (narrow && network.input.numel() > 0 && !network.states.is_empty()).then_some(network)
    }

    fn arg(&self, after_layers: usize) -> Arg {
        self.call.inputs.get(self.layers + after_layers).cloned().unwrap_or_default()
    }

    fn batch_first(&self) -> bool {
        self.packed.is_none() && self.call.flag_at(self.layers + 4) == Some(true)
    }

    fn state(&self, at: usize) -> Arg {
        self.states.get(at).cloned().map_or(Arg::None, Arg::Tensor)
    }

    /// Returns the hidden size, and that of the projection: 0 if there is none.
    fn sizes(&self) -> [i64; 2] {
        let given = self.states[0].size(-1);
        let hidden = self.states.get(1).map_or(given, |cell| cell.size(-1));
        [hidden, if hidden == given { 0 } else { given }]
    }

    /// Returns all weights, stored one after the other in one buffer.
    fn buffer(&self) -> Tensor {
        let all: u64 = self.weights.iter().map(Tensor::numel).sum();
        Tensor::contiguous(&[i64::try_from(all).unwrap_or(i64::MAX)], self.input.dtype)
    }

    /// Returns the number of weights per layer and direction.
    fn stride(&self) -> i64 {
        let layers = self.call.int_at(self.layers).unwrap_or(1).max(1);
        let directions = if self.call.flag_at(self.layers + 3) == Some(true) { 2 } else { 1 };
        self.weights.len() as i64 / layers.saturating_mul(directions).max(1)
    }

    /// Returns `(mode, hidden size, projection, layers, batch first, dropout, training, bidirectional, batch sizes, state of
    /// the dropout)`.
    fn settings(&self) -> Vec<Arg> {
        let [hidden, projection] = self.sizes();
        let sizes = match self.packed {
            Some(steps) => {
                // The lengths of sequences are not recorded: the same length is assumed for all.
                let steps = steps.clamp(1, 1 << 20);
                let rows = self.input.size(0).max(1);
                vec![(rows + steps - 1) / steps; usize::try_from(steps).unwrap_or(1)]
            }
            None => Vec::new(),
        };
        let first = Arg::Bool(self.batch_first());
        let numbers = [self.mode, hidden, projection].map(Arg::Int);
        let rest =
            [self.arg(0), first, self.arg(1), self.arg(2), self.arg(3), Arg::Ints(sizes.into()), Arg::None];
        numbers.into_iter().chain(rest).collect()
    }

    /// Returns the copy of a tensor that cuDNN needs, with steps first, if any.
    fn steps_first(&self, tensor: &Tensor) -> Vec<Branch> {
        let mut turned = tensor.clone();
        if self.batch_first() && turned.shape.len() == 3 {
            turned.shape.swap(0, 1);
            turned.strides.swap(0, 1);
        }
        let copied = !turned.is_contiguous();
        copied.then(|| around("contiguous", vec![row_major(&turned)])).into_iter().collect()
    }

    fn turns(&self, count: usize) -> Vec<Branch> {
        if self.batch_first() { vec![view("transpose"); count] } else { Vec::new() }
    }
}

/// Whether cuDNN computes this op at once.
pub(super) fn at_once(call: &OpCall) -> bool {
    Network::from_call(call).is_some()
}

/// Returns the ops inside the module's op: cuDNN's takes the tensors of `call`, to which autocast may have cast those `given` to the module.
pub(super) fn forward(given: &OpCall, call: &OpCall) -> Vec<Branch> {
    let Some(network) = Network::from_call(call) else { return Vec::new() };
    let tensors = Arg::Tensors(network.weights.to_vec());
    let mut inputs = vec![Arg::Tensor(network.input.clone()), tensors, Arg::Int(network.stride())];
    inputs.extend([Arg::Tensor(network.buffer()), network.state(0), network.state(1)]);
    inputs.extend(network.settings());
    let mut children = network.turns(1);
    children.extend(network.steps_first(network.input));
    children.extend(vec![light("empty"); 5]);
    if network.batch_first() {
        children.push(around("transpose_", vec![light("as_strided_")]));
    }
    let cudnn = OpCall { outputs: call.outputs.clone(), ..OpCall::new(FORWARD, inputs) };
    let set = around("set_", vec![light("set_")]);
    let mut all = vec![light("cudnn_is_acceptable"), light("empty"), set];
    if network.input.dtype != given.tensor_at(0).map_or(network.input.dtype, |input| input.dtype) {
        all.extend(autocast::casts(given, network.input.dtype));
    }
    all.push(Branch::new(cudnn, children));
    all
}

/// Returns the function of the gradient, and the op that it calls.
pub(super) fn backward(call: &OpCall, gradient: Option<Tensor>) -> Option<(&'static str, Branch)> {
    let network = Network::from_call(call)?;
    let result = call.output(0).cloned().unwrap_or_else(|| network.input.clone());
    let fits = gradient.filter(|gradient| gradient.shape == result.shape);
    let gradient = fits.unwrap_or_else(|| Tensor::contiguous(&result.shape, result.dtype));
    let buffer = network.buffer();
    let tensors = Arg::Tensors(network.weights.to_vec());
    let mut inputs = vec![Arg::Tensor(network.input.clone()), tensors.clone(), Arg::Int(network.stride())];
    inputs.extend([Arg::Tensor(buffer.clone()), network.state(0), network.state(1)]);
    inputs.extend([Arg::Tensor(result), Arg::Tensor(gradient.clone()), Arg::None, Arg::None]);
    inputs.extend(network.settings());
    // No gradient comes through the last states.
    let states = if network.mode == LSTM { 2 } else { 1 };
    let unused = network.states.iter().take(states).map(|state| {
        let state = Tensor::contiguous(&state.shape, state.dtype);
        around("zeros_like", vec![empty_like(), zeroed(&state)])
    });
    let mut children: Vec<Branch> = unused.collect();
    children.extend(network.turns(3));
    children.extend(network.steps_first(network.input));
    children.extend(network.steps_first(&gradient));
    children.push(light("empty"));
    children.extend(vec![light("view"); states]);
    children.extend(vec![light("empty"); states + 1]);
    if network.batch_first() {
        children.push(around("transpose_", vec![light("as_strided_")]));
    }
    children.extend(network.turns(2));
    children.extend(network.steps_first(network.input));
    children.push(around("zeros", vec![light("empty"), zeroed(&buffer)]));
    children.push(light("empty"));
    // A view of the gradients for each weight.
    children.extend(network.weights.iter().flat_map(|_| [light("empty"), light("set_")]));
    children.extend(network.weights.iter().map(|_| around("resize_as_", vec![light("resize_")])));
    let outputs = vec![Arg::Tensor(network.input.clone()), network.state(0), network.state(1), tensors];
    let cudnn = OpCall { outputs, ..OpCall::new(BACKWARD, inputs) };
    Some((FUNCTION, Branch::new(cudnn, children)))
}

fn zeroed(tensor: &Tensor) -> Branch {
    let mut zero = op("zero_", vec![Arg::Tensor(tensor.clone())], Some(tensor.clone()));
    zero.children = vec![fill(tensor)];
    zero
}
