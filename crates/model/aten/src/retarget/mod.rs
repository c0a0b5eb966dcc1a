//! Conversion of a step recorded on a CPU to a step on a GPU.
//!
//! Ops above PyTorch's dispatcher are the same on both: they are kept. The differences: tensors are on the GPU, the
//! batch is copied there, ops that a backend implements call the ops of CUDA's implementation (`rules.rs`), the
//! backward engine has its own thread, and optimizers update all parameters at once (foreach).

mod attention;
mod autocast;
mod batch_norm;
mod branch;
mod build;
mod channels;
mod collectives;
mod compiled;
mod composite;
mod convolution;
mod devices;
mod dropout;
mod fake;
mod foreach;
mod in_place;
mod indexing;
mod inputs;
mod layout;
mod new_memory;
mod product;
mod recurrent;
mod rules;
mod sparse;
mod tensor_subclasses;

pub use compiled::compiled_region;

use steptime_graph::Role;
use steptime_graph::execution::ExecutionGraph;
use steptime_graph::names::EventName;
use steptime_trace::Meta;

use crate::derive::{OpTree, TreeThread};
use crate::op_set::OpSet;
use branch::Branch;
use new_memory::NewMemory;

/// Whether an event belongs to the autograd engine.
fn is_engine(name: &str) -> bool {
    EventName::parse(name).is_engine()
}

/// Whether an event of this name is an optimizer's update of parameters.
fn is_optimizer_step(name: &str) -> bool {
    EventName::parse(name).is_optimizer_step()
}

/// Step moved to the GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct RetargetedStep {
    /// Ops of the step.
    pub tree: OpTree,
    /// Number of copies of the batch to the device.
    pub input_copies: usize,
    /// Number of inputs that are not copied, because they are the same in each step.
    pub kept_inputs: usize,
    /// Ops that only the CPU has, without a known counterpart on the GPU; they were kept.
    pub unknown: Vec<String>,
    /// Number of convolutions that return channels last, like their images or weights, but returned channels first on the `meta` device.
    pub channels_last: usize,
}

/// Whether a step ran on the CPU alone, or without memory: it has tensors, and all of them are there or none has memory.
#[must_use]
pub fn is_on_cpu(trace: &ExecutionGraph) -> bool {
    let mut devices = trace.tensors.all().iter().map(|tensor| trace.name(tensor.device));
    let mut seen = trace.fake;
    let on_cpu = devices.all(|device| {
        seen |= device == "cpu";
        matches!(device, "cpu" | "meta" | "")
    });
    (on_cpu || trace.fake) && seen
}

/// Moves a step recorded on a CPU to the GPU. `meta` has the tensors that exist before the step (the parameters and buffers of its
/// modules, and inputs that stay the same), and the form of each optimizer step: `loop` is as on the CPU.
#[must_use]
pub fn to_cuda(trace: &ExecutionGraph, ops: &OpSet, meta: &Meta) -> RetargetedStep {
    let mut tree = OpTree::from_execution(trace);
    let channels_last = channels::put_last(trace, &mut tree);
    let copied = inputs::find(trace, &tree, meta);
    devices::to_gpu(trace, &mut tree, &copied);
    let mut branches = branch::outermost(&tree);
    branch::tidy(&mut branches);
    if channels_last > 0 {
        channels::accumulate(trace, &mut branches);
    }
    collectives::remove_inner_ops(&mut branches);
    if trace.fake {
        fake::expand(trace, ops, &mut branches);
    } else {
        tensor_subclasses::open(trace, &mut branches);
    }
    let dropped = dropout::backward_functions(trace);
    branches.iter_mut().for_each(|branch| dropout::rename(branch, &dropped));
    let input_copies = inputs::copy(&mut branches, &copied);
    let given = composite::merge(trace, &tree, &mut branches);
    layout::follow(trace, ops, &given, &mut branches);
    let mut rewrite = rules::Rewrite::new(ops, sparse::uncoalesced(trace, &tree));
    let branches: Vec<Branch> = branches.into_iter().map(|b| rewrite.one(b)).collect();
    let branches =
        foreach::Lists::new(ops, &meta.optimizers, &branches, NewMemory::new(trace)).apply(branches);
    let mut threads = tree.threads;
    let backward = match threads.iter().position(|thread| thread.role == Role::Autograd) {
        Some(at) => at as u32,
        None => {
            let tid = threads.iter().map(|thread| thread.tid).max().unwrap_or(0).saturating_add(1);
            threads.push(TreeThread { tid, role: Role::Autograd });
            threads.len() as u32 - 1
        }
    };
    let mut tree = OpTree { threads, nodes: Vec::new() };
    for branch in branches {
        branch.flatten(None, 0, backward, &mut tree.nodes);
    }
    if tree.nodes.iter().all(|node| node.thread != backward) {
        tree.threads.truncate(backward as usize);
    }
    RetargetedStep {
        tree,
        input_copies,
        kept_inputs: copied.kept,
        unknown: rewrite.unknown.into_iter().collect(),
        channels_last,
    }
}
