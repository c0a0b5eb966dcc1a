//! Matrix products and convolutions in 16 bits, as under `torch.autocast("cuda", dtype=torch.bfloat16)`.
//!
//! Types are propagated through the ops in the order in which they run: first the forward pass, with autocast's casts,
//! then the backward pass, whose gradients are cast at the places where the forward pass has casts.

mod attention;
mod backward;
mod batch_norm;
mod casts;
mod gradient_types;
mod lists;
mod replaced;
mod softmax;
mod temporary;
mod types;
mod view_strides;

use rustc_hash::FxHashSet;
use steptime_aten::Dtype;
use steptime_graph::HostThreadId;
use steptime_step::{OpId, Patch, StepIr, TensorId};

use self::gradient_types::Function;
use self::lists::Kind;
use self::types::{Local, Types};
use crate::error::Error;
use crate::rule::{Facts, Rule};
use crate::rule_order::Stage;

/// Autocast to bfloat16. Parameters, their gradients and the optimizer stay in 32 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bf16;

impl Rule for Bf16 {
    fn name(&self) -> &'static str {
        "bf16"
    }

    fn stage(&self) -> Stage {
        Stage::Precision
    }

    fn effort(&self) -> &'static str {
        "one line: with torch.autocast(\"cuda\", dtype=torch.bfloat16) around the forward pass"
    }

    fn risk(&self) -> &'static str {
        "products have 8 bits of mantissa: check that the loss still falls"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        let text = "autocast adds host time that is not modelled, and attention may use another kernel: a host-bound step is longer";
        Some((text, 0.3))
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let types = Types::new(step, self.name(), Dtype::Bf16, false);
        patches(types, facts, "bfloat16")
    }
}

/// Autocast to float16, including table lookups: pooled rows are output, exchanged and joined with other tensors in 16 bits. Parameters, their
/// gradients and the optimizer stay in 32 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fp16;

impl Rule for Fp16 {
    fn name(&self) -> &'static str {
        "fp16"
    }

    fn stage(&self) -> Stage {
        Stage::Precision
    }

    fn effort(&self) -> &'static str {
        "small: torch.autocast(\"cuda\", dtype=torch.float16) around the forward pass, a GradScaler, and float16 results of table lookups"
    }

    fn risk(&self) -> &'static str {
        "small gradients vanish: scale the loss, and skip steps that overflow"
    }

    fn doubt(&self) -> Option<(&'static str, f64)> {
        Bf16.doubt()
    }

    fn patches(&self, step: &StepIr, facts: &Facts<'_>) -> Result<Vec<Patch>, Error> {
        let types = Types::new(step, self.name(), Dtype::F16, true);
        patches(types, facts, "float16")
    }
}

/// The patches that convert a step to 16 bits.
fn patches(mut types: Types<'_>, facts: &Facts<'_>, name: &str) -> Result<Vec<Patch>, Error> {
    let step = types.step;
    let rule = types.patch.rule;
    let nothing = |reason: &str| Error::NothingToDo { reason: reason.to_owned() };
    if is_narrow(step) {
        return Err(nothing("ops run in 16 bits already"));
    }
    let (mut functions, mut last): (Vec<Function>, Vec<OpId>) = (Vec::new(), Vec::new());
    // Ops between functions of the backward pass, such as exchanges of gradients between ranks, each with the number of
    // functions before it.
    let mut between: Vec<(usize, OpId)> = Vec::new();
    let mut earlier: FxHashSet<TensorId> = FxHashSet::default();
    for root in roots(step) {
        let name = step.event(root);
        if let Some(function) = Function::find(step, root, &earlier) {
            earlier.extend(&function.given);
            functions.push(function);
        } else if !functions.is_empty() && step.ops[root].thread != HostThreadId::MAIN {
            between.push((functions.len(), root));
        } else if name.is_optimizer_step() {
            last.push(root);
        } else {
            types.follow(root, &Local::default(), true);
        }
    }
    let products = types.narrowed;
    if products == 0 {
        return Err(nothing("no product, convolution or attention is in 32-bit floating point"));
    }
    backward::follow(&mut types, &functions, &between);
    for root in last {
        types.follow(root, &Local::default(), false);
    }
    let casts = types.casts;
    let mut patch = types.into_patch();
    patch.why = format!(
        "{products} products in 16 bits: {} tensors become {name}, {casts} casts",
        patch.reshape.len()
    );
    if !attention::is_in(step) && !batch_norm::is_in(step) {
        return Ok(vec![patch]);
    }
    let narrow = step.applied(&patch, facts.ops)?;
    let mut kernels = attention::patch(&narrow, rule);
    let attentions = kernels.insert.len();
    batch_norm::patch(&narrow, &mut kernels);
    if kernels.is_empty() {
        return Ok(vec![patch]);
    }
    kernels.why = match (attentions, kernels.insert.len() - attentions) {
        (count, 0) => format!("{count} attentions by cuDNN, forward and backward"),
        (0, count) => format!("{count} batch norms by PyTorch's own kernels, forward and backward"),
        (count, norms) => {
            format!("{count} attentions by cuDNN and {norms} batch norms by PyTorch's own kernels")
        }
    };
    Ok(vec![patch, kernels])
}

/// Outermost ops of all threads, thread by thread; annotations other than an optimizer's are replaced by the ops inside.
fn roots(step: &StepIr) -> Vec<OpId> {
    let mut roots = Vec::new();
    for thread in &step.threads {
        let mut open: Vec<OpId> = thread.iter().rev().copied().collect();
        while let Some(op) = open.pop() {
            let row = &step.ops[op];
            if row.annotation && !step.event(op).is_optimizer_step() {
                open.extend(row.children.iter().rev());
            } else {
                roots.push(op);
            }
        }
    }
    roots
}

/// Whether a product outputs 16-bit numbers. Tensors that are only sent in 16 bits do not count.
fn is_narrow(step: &StepIr) -> bool {
    step.running().into_iter().filter(|&op| Kind::from_op(&step.ops[op].name) == Kind::Narrow).any(|op| {
        let call = step.ops[op].call.as_deref();
        let mut gives = call.into_iter().flat_map(|call| call.gives());
        gives.any(|tensor| matches!(step.tensors[tensor].value.dtype, Dtype::Bf16 | Dtype::F16))
    })
}
