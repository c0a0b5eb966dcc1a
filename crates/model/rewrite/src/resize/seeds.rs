//! Where the batch comes into the step.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use steptime_aten::Device;
use steptime_graph::execution::StorageId;
use steptime_graph::names::EventName;
use steptime_step::{OpId, Step, TensorId, Uses};

use super::dims::BatchDims;

/// Dimensions of inputs that grow with the batch, and what does not.
#[derive(Debug)]
pub(crate) struct Seeds {
    /// Inputs, and which of their dimensions.
    pub dims: Vec<(TensorId, usize)>,
    /// Tensors that the step keeps: parameters, what an optimizer knows of them, running statistics.
    pub kept: FxHashSet<TensorId>,
}

impl Seeds {
    /// Some dimensions; nothing is kept as it is.
    pub fn of(dims: Vec<(TensorId, usize)>) -> Seeds {
        Seeds { dims, kept: FxHashSet::default() }
    }

    /// The inputs in words.
    pub fn words(&self, step: &Step) -> String {
        let mut shapes: Vec<String> = Vec::new();
        for &(tensor, dim) in &self.dims {
            let each = step.tensors[tensor].value.shape.iter().enumerate();
            let words: Vec<String> = each
                .map(|(at, size)| if at == dim { format!("*{size}") } else { size.to_string() })
                .collect();
            let shape = format!("[{}]", words.join(", "));
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        let more = shapes.len().saturating_sub(4);
        shapes.truncate(4);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{rest}", shapes.join(", "))
    }
}

/// Finds where the batch comes in: tensors that are older than the step, or made by ops that take none, and that the step
/// does not keep.
pub(super) fn find(step: &Step, batch: u64, dims: &BatchDims) -> Seeds {
    let uses = Uses::of(step);
    let kept = kept(step, &uses);
    let mut seeds = Seeds { dims: Vec::new(), kept };
    for tensor in step.tensors.keys() {
        let is_input = match uses.producer(tensor) {
            None => !uses.consumers(tensor).is_empty(),
            Some(maker) => makes_batch(step, maker),
        };
        if !is_input || seeds.kept.contains(&tensor) {
            continue;
        }
        let shape = &step.tensors[tensor].value.shape;
        let multiple =
            |size: i64| u64::try_from(size).is_ok_and(|size| size > 0 && size.is_multiple_of(batch));
        let ends = |size: i64| shape.len() == 1 && size > 1 && multiple(size - 1) && batch > 1;
        let found = match dims {
            BatchDims::At(dim) => shape.get(*dim).filter(|&&size| multiple(size)).map(|_| *dim),
            BatchDims::Inferred => match shape.first() {
                Some(&first) if multiple(first) || ends(first) => Some(0),
                _ => shape.iter().position(|&size| u64::try_from(size) == Ok(batch)),
            },
        };
        seeds.dims.extend(found.map(|dim| (tensor, dim)));
    }
    // Where a batch comes from the host, a size on the device that is a multiple of it may be any width.
    if seeds.dims.iter().any(|seed| on_host(step, seed)) {
        seeds.dims.retain(|seed| on_host(step, seed));
    }
    seeds
}

fn on_host(step: &Step, seed: &(TensorId, usize)) -> bool {
    step.tensors[seed.0].value.device != Device::Cuda
}

/// Whether an op makes a batch on the host, of nothing: random numbers, a range.
fn makes_batch(step: &Step, op: OpId) -> bool {
    let Some(call) = step.call(op) else { return false };
    let on_host = call.outputs.iter().flat_map(|arg| arg.tensors()).all(|t| t.device != Device::Cuda);
    on_host && call.input_tensors().next().is_none()
}

/// Tensors that the step keeps: those that an optimizer works on, a norm's running statistics, and all that no kernel
/// takes but with a weight's role. A view that repeats a parameter along a dimension is none, nor is a tensor of memory that
/// the step allocates: where a number that no op made lies later, an activation may have lain before.
fn kept(step: &Step, uses: &Uses) -> FxHashSet<TensorId> {
    let allocated = allocated(step);
    let mut storages = FxHashSet::default();
    let mut kept = FxHashSet::default();
    for op in step.running() {
        let Some(call) = &step.ops[op].call else { continue };
        let norm = step.ops[op].name.contains("batch_norm");
        if !norm && !step.is_in(op, EventName::is_optimizer) {
            continue;
        }
        for tensor in call.takes().skip(usize::from(norm)) {
            if uses.producer(tensor).is_none() {
                kept.insert(tensor);
                storages.extend(step.tensors[tensor].storage.filter(|storage| !allocated.contains(storage)));
            }
        }
    }
    let views = step.tensors.iter_enumerated();
    kept.extend(
        views
            .filter(|(_, t)| {
                t.storage.is_some_and(|s| storages.contains(&s)) && !t.value.strides.contains(&0)
            })
            .map(|(id, _)| id),
    );
    kept
}

/// Memory that an op of the step gives and did not take.
fn allocated(step: &Step) -> FxHashSet<StorageId> {
    let storage = |tensor: TensorId| step.tensors[tensor].storage;
    let mut found = FxHashSet::default();
    for call in step.ops.iter().filter_map(|op| op.call.as_deref()) {
        let taken: SmallVec<[StorageId; 4]> = call.takes().filter_map(storage).collect();
        found.extend(call.gives().filter_map(storage).filter(|storage| !taken.contains(storage)));
    }
    found
}
