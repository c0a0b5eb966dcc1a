//! Ops called by a step of PyTorch's optimizers.
//!
//! The sequences were recorded with PyTorch 2.11 on a GPU, in each of its three forms: tensor by tensor, op by
//! op over lists, and fused. Tables with sparse gradients are updated tensor by tensor in any form.

mod rows;
#[cfg(test)]
mod tests;

use rows::Rows;

use crate::call::{Arg, Device, OpCall, Tensor};
use crate::child_calls::wrapped;
use crate::dtype::Dtype;

/// Parameter, and the form of its gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Parameter tensor.
    pub tensor: Tensor,
    /// Form of its gradient.
    pub gradient: Gradient,
}

/// Form of a gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradient {
    /// Dense, with the parameter's shape.
    Dense,
    /// Sparse, with rows of the parameter.
    Sparse {
        /// Number of rows, possibly repeated.
        lookups: u64,
        /// Number of different rows.
        distinct: u64,
    },
}

/// Update rule of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Stochastic gradient descent.
    Sgd {
        /// Whether it has momentum.
        momentum: bool,
        /// Whether the momentum is Nesterov's.
        nesterov: bool,
    },
    /// Adagrad.
    Adagrad,
    /// Adam; `SparseAdam` for sparse gradients.
    Adam {
        /// Whether it uses the largest second moment so far.
        amsgrad: bool,
    },
    /// Adam with decoupled weight decay.
    AdamW {
        /// Whether it uses the largest second moment so far.
        amsgrad: bool,
    },
    /// RMSprop.
    RmsProp,
}

/// Iteration over the tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Tensor by tensor.
    Loop,
    /// Op by op over lists of tensors; PyTorch's default on a GPU.
    #[default]
    Foreach,
    /// One op for all tensors.
    Fused,
}

/// Optimizer and its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimizer {
    /// Update rule.
    pub rule: Rule,
    /// Whether it has weight decay.
    pub weight_decay: bool,
    /// Iteration over the tensors.
    pub form: Form,
}

/// Any number: its value does not affect the time.
const SCALAR: Arg = Arg::Float(0.5);

/// Returns the ops that a step calls, in order. They include ops on step counts in host memory, which launch
/// nothing.
#[must_use]
pub fn step(optimizer: &Optimizer, parameters: &[Parameter]) -> Vec<OpCall> {
    let sparse = parameters.iter().any(|parameter| parameter.gradient != Gradient::Dense);
    match optimizer.form {
        _ if parameters.is_empty() => Vec::new(),
        Form::Foreach if !sparse => foreach(optimizer, parameters),
        Form::Fused if !sparse && fused_name(optimizer.rule).is_some() => fused(optimizer, parameters),
        _ => parameters.iter().flat_map(|parameter| single_step(optimizer, parameter)).collect(),
    }
}

/// Op of a sequence: its base name, and its arguments besides the tensor that it updates or reads first.
#[derive(Clone, Copy)]
struct Op(&'static str, ExtraArgs);

/// Arguments of an op besides its first tensor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExtraArgs {
    /// No further argument.
    None,
    /// A number.
    Scalar,
    /// A tensor and a factor.
    Tensor,
    /// A tensor to write.
    Out,
    /// Two tensors and a factor.
    Two,
    /// A list of numbers, one for each tensor.
    Scalars,
}

/// Returns the sequence of a rule for dense gradients.
fn sequence(optimizer: &Optimizer, lists: bool) -> Vec<Op> {
    let decay = optimizer.weight_decay;
    let maximum = if lists { Op("maximum_", ExtraArgs::Tensor) } else { Op("maximum", ExtraArgs::Out) };
    let scale = if lists { Op("div_", ExtraArgs::Scalars) } else { Op("div", ExtraArgs::Scalar) };
    let mut ops = Vec::new();
    // AdamW scales the parameter, the others add it to the gradient.
    match optimizer.rule {
        Rule::AdamW { .. } if decay => ops.push(Op("mul_", ExtraArgs::Scalar)),
        _ if decay => ops.push(Op("add", ExtraArgs::Tensor)),
        _ => {}
    }
    match optimizer.rule {
        Rule::Sgd { momentum, nesterov } => {
            if momentum {
                ops.extend([Op("mul_", ExtraArgs::Scalar), Op("add_", ExtraArgs::Tensor)]);
                if nesterov {
                    ops.push(Op(if lists { "add_" } else { "add" }, ExtraArgs::Tensor));
                }
            }
            ops.push(Op("add_", ExtraArgs::Tensor));
        }
        Rule::Adagrad => {
            ops.extend([
                Op("addcmul_", ExtraArgs::Two),
                Op("sqrt", ExtraArgs::None),
                Op("add_", ExtraArgs::Scalar),
            ]);
            if lists {
                ops.push(Op(if decay { "mul_" } else { "mul" }, ExtraArgs::Scalars));
            }
            ops.push(Op("addcdiv_", ExtraArgs::Two));
        }
        Rule::Adam { amsgrad } | Rule::AdamW { amsgrad } => {
            ops.extend([
                Op("lerp_", ExtraArgs::Tensor),
                Op("mul_", ExtraArgs::Scalar),
                Op("addcmul_", ExtraArgs::Two),
            ]);
            if amsgrad {
                ops.push(maximum);
            }
            ops.extend([
                Op("sqrt", ExtraArgs::None),
                scale,
                Op("add_", ExtraArgs::Scalar),
                Op("addcdiv_", ExtraArgs::Two),
            ]);
        }
        Rule::RmsProp => ops.extend([
            Op("mul_", ExtraArgs::Scalar),
            Op("addcmul_", ExtraArgs::Two),
            Op("sqrt", ExtraArgs::None),
            Op("add_", ExtraArgs::Scalar),
            Op("addcdiv_", ExtraArgs::Two),
        ]),
    }
    ops
}

/// Returns the calls of a sequence on identical tensors, or lists of them.
fn calls(ops: &[Op], prefix: &str, of: &Arg, numbers: usize) -> Vec<OpCall> {
    let call = |op: &Op| {
        let mut inputs = vec![of.clone()];
        match op.1 {
            ExtraArgs::None => {}
            // Python passes numbers to arithmetic as tensors without dimensions.
            ExtraArgs::Scalar if prefix.is_empty() && op.0 != "pow" => inputs.push(wrapped(&SCALAR)),
            ExtraArgs::Scalar => inputs.push(SCALAR),
            ExtraArgs::Tensor => inputs.extend([of.clone(), SCALAR]),
            ExtraArgs::Out => inputs.extend([of.clone(), of.clone()]),
            ExtraArgs::Two => inputs.extend([of.clone(), of.clone(), SCALAR]),
            ExtraArgs::Scalars => inputs.push(Arg::Floats(vec![0.5; numbers])),
        }
        let updates = op.0.ends_with('_');
        let outputs = if updates && prefix.ends_with("foreach_") { Vec::new() } else { vec![of.clone()] };
        OpCall { outputs, ..OpCall::new(&format!("aten::{prefix}{}", op.0), inputs) }
    };
    ops.iter().map(call).collect()
}

/// Returns a step count.
fn count(device: Device) -> Tensor {
    Tensor { device, ..Tensor::contiguous(&[], Dtype::F32) }
}

/// Whether a rule counts its steps, which are in host memory except for fused forms.
const fn counts(rule: Rule) -> bool {
    !matches!(rule, Rule::Sgd { .. })
}

fn foreach(optimizer: &Optimizer, parameters: &[Parameter]) -> Vec<OpCall> {
    let list = Arg::Tensors(parameters.iter().map(|parameter| parameter.tensor.clone()).collect());
    let mut all = Vec::new();
    if counts(optimizer.rule) {
        let steps = Arg::Tensors(vec![count(Device::Cpu); parameters.len()]);
        let inputs = vec![steps, Arg::Tensor(count(Device::Cpu)), Arg::Int(1)];
        all.push(OpCall::new("aten::_foreach_add_", inputs));
    }
    all.extend(calls(&sequence(optimizer, true), "_foreach_", &list, parameters.len()));
    all
}

const fn fused_name(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Sgd { .. } => Some("aten::_fused_sgd_"),
        Rule::Adagrad => Some("aten::_fused_adagrad_"),
        Rule::Adam { .. } => Some("aten::_fused_adam_"),
        Rule::AdamW { .. } => Some("aten::_fused_adamw_"),
        Rule::RmsProp => None,
    }
}

fn fused(optimizer: &Optimizer, parameters: &[Parameter]) -> Vec<OpCall> {
    let list = Arg::Tensors(parameters.iter().map(|parameter| parameter.tensor.clone()).collect());
    let none = || Arg::Tensors(Vec::new());
    let steps = Arg::Tensors(vec![count(Device::Cuda); parameters.len()]);
    let mut inputs = vec![list.clone(), list.clone()];
    match optimizer.rule {
        Rule::Sgd { momentum, .. } => inputs.push(if momentum { list } else { none() }),
        Rule::Adagrad => inputs.extend([list, steps.clone()]),
        Rule::Adam { amsgrad } | Rule::AdamW { amsgrad } => {
            inputs.extend([list.clone(), list.clone(), if amsgrad { list } else { none() }, steps.clone()]);
        }
        Rule::RmsProp => {}
    }
    let update = fused_name(optimizer.rule).map(|name| OpCall::new(name, inputs));
    let counting =
        counts(optimizer.rule).then(|| OpCall::new("aten::_foreach_add_", vec![steps, Arg::Int(1)]));
    counting.into_iter().chain(update).collect()
}

/// Returns the step of a single parameter.
fn single_step(optimizer: &Optimizer, parameter: &Parameter) -> Vec<OpCall> {
    let tensor = Arg::Tensor(parameter.tensor.clone());
    let mut all = Vec::new();
    let adam = matches!(optimizer.rule, Rule::Adam { .. } | Rule::AdamW { .. });
    let sparse = parameter.gradient != Gradient::Dense;
    if counts(optimizer.rule) && !(sparse && adam) {
        let inputs = vec![Arg::Tensor(count(Device::Cpu)), Arg::Int(1), Arg::Int(1)];
        all.push(OpCall::new("aten::add_", inputs));
    }
    match parameter.gradient {
        Gradient::Dense => all.extend(calls(&sequence(optimizer, false), "", &tensor, 1)),
        Gradient::Sparse { lookups, distinct } => {
            let rows = Rows { table: parameter.tensor.clone(), lookups, distinct };
            all.extend(match optimizer.rule {
                Rule::Sgd { .. } => vec![rows.added(lookups)],
                _ if adam => rows.adam(),
                _ => rows.adagrad(),
            });
        }
    }
    all
}
