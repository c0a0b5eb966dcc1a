//! Inputs of a step that depend on the batch.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use steptime_aten::{Device, Dtype, OpSet};
use steptime_graph::HostThreadId;
use steptime_graph::execution::StorageId;
use steptime_graph::names::EventName;
use steptime_step::{OpId, StepIr, TensorId, Uses};

use super::dims::BatchDims;
use super::size_formula::Form;

/// Dimensions of inputs that grow with the batch, and tensors that do not.
#[derive(Debug, Clone)]
pub(crate) struct Seeds {
    /// Inputs, with their growing dimensions.
    pub dims: Vec<(TensorId, usize)>,
    /// Tensors that stay from step to step: parameters, optimizer states, running statistics.
    pub kept: FxHashSet<TensorId>,
    /// Inputs that may grow: decided by ops, else by their size.
    pub unsure: Vec<TensorId>,
    /// Inputs with several dimensions of the batch size: the one in `dims` was chosen.
    pub ambiguous: Vec<(TensorId, usize)>,
    /// Whether samples grow: each has its own lookups.
    pub samples: bool,
}

impl Seeds {
    /// Some dimensions of a model; no tensors are kept.
    pub fn new(dims: Vec<(TensorId, usize)>) -> Seeds {
        let kept = FxHashSet::default();
        Seeds { dims, kept, unsure: Vec::new(), ambiguous: Vec::new(), samples: false }
    }

    /// The next dimension of the batch size, for inputs with several.
    pub(super) fn others(&self, step: &StepIr, batch: u64) -> Seeds {
        let mut others = self.clone();
        for (tensor, at) in others.dims.iter_mut().chain(&mut others.ambiguous) {
            let rest = step.tensors[*tensor].value.shape.iter().enumerate().skip(*at + 1);
            let next = rest.filter(|(_, size)| u64::try_from(**size) == Ok(batch)).map(|(at, _)| at).next();
            *at = next.unwrap_or(*at);
        }
        others
    }

    /// Number of passes of a batch where no input has its size: the most common first size of the inputs divides it. 1 where none does.
    pub(super) fn passes(&self, step: &StepIr, batch: u64, dims: &BatchDims) -> u64 {
        let first = if let BatchDims::At(dim) = dims { *dim } else { 0 };
        let sizes = self.unsure.iter().filter_map(|&tensor| step.tensors[tensor].value.shape.get(first));
        let parts: Vec<u64> = sizes
            .filter_map(|&size| u64::try_from(size).ok())
            .filter(|&size| size > 1 && size < batch && batch.is_multiple_of(size))
            .collect();
        let often = |size: &u64| (parts.iter().filter(|other| *other == size).count(), *size);
        parts.iter().copied().max_by_key(often).map_or(1, |size| batch / size)
    }

    /// Restricts the seeds to some inputs; the others stay as they are.
    pub fn only(mut self, chosen: impl Fn(TensorId) -> bool) -> Seeds {
        let others = self.dims.iter().map(|&(tensor, _)| tensor).chain(self.unsure.iter().copied());
        self.kept.extend(others.filter(|&tensor| !chosen(tensor)));
        self.dims.retain(|&(tensor, _)| chosen(tensor));
        self.unsure.retain(|&tensor| chosen(tensor));
        self
    }
}

/// Shapes in words, with a star before the growing size.
pub(super) fn shapes(step: &StepIr, dims: &[(TensorId, usize)]) -> String {
    let mut shapes: Vec<String> = Vec::new();
    for &(tensor, dim) in dims {
        let each = step.tensors[tensor].value.shape.iter().enumerate();
        let words: Vec<String> =
            each.map(|(at, size)| if at == dim { format!("*{size}") } else { size.to_string() }).collect();
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

/// Finds inputs that grow with the batch: tensors from before the step, or created by the script without inputs, that the step does not keep. The
/// first dimension of the batch size is chosen. Other sizes may follow from these.
pub(super) fn find(step: &StepIr, ops: &OpSet, batch: u64, dims: &BatchDims) -> Seeds {
    let uses = Uses::find(step);
    let kept = persistent_tensors(step, ops, &uses);
    let samples = i64::try_from(batch).unwrap_or(i64::MAX);
    let mut seeds = Seeds { kept, samples: true, ..Seeds::new(Vec::new()) };
    let mut inputs: Vec<TensorId> = Vec::new();
    for tensor in step.tensors.keys() {
        let is_input = match uses.producer(tensor) {
            None => !uses.consumers(tensor).is_empty(),
            Some(maker) => made_by_script(step, maker),
        };
        if is_input && !seeds.kept.contains(&tensor) && !step.tensors[tensor].value.shape.is_empty() {
            inputs.push(tensor);
        }
    }
    // Where other tensors have an identity, one without is not an input.
    let identified = |&tensor: &TensorId| step.tensors[tensor].recorded.is_some() || on_host(step, tensor);
    if inputs.iter().any(&identified) {
        inputs.retain(identified);
    }
    let old = |tensor: TensorId| uses.producer(tensor).is_none_or(|maker| on_host_alone(step, maker));
    let shape = |tensor: TensorId| &step.tensors[tensor].value.shape;
    let first = if let BatchDims::At(dim) = dims { *dim } else { 0 };
    let exact = |&tensor: &TensorId| shape(tensor).get(first) == Some(&samples);
    let mut found: Vec<(TensorId, usize)> = inputs
        .iter()
        .filter(|&&tensor| old(tensor))
        .filter(|tensor| exact(tensor))
        .map(|&tensor| (tensor, first))
        .collect();
    // Where a batch comes from the host, an equal size on the device may be any width.
    if found.iter().any(|&(tensor, _)| on_host(step, tensor)) {
        found.retain(|&(tensor, _)| on_host(step, tensor));
    }
    if found.is_empty() {
        found = by_size(step, &inputs, samples, dims);
    }
    let seeded = |tensor: &TensorId| found.iter().any(|(seed, _)| seed == tensor);
    let from_host = found.iter().any(|&(tensor, _)| on_host(step, tensor));
    seeds.unsure = inputs
        .into_iter()
        .filter(|tensor| !seeded(tensor))
        .filter(|&tensor| !from_host || on_host(step, tensor) || uses.producer(tensor).is_some())
        .collect();
    let inferred = if *dims == BatchDims::Inferred { &found[..] } else { &[] };
    for &(tensor, at) in inferred {
        if shape(tensor)
            .iter()
            .enumerate()
            .any(|(other, &size)| other != at && size == samples && samples > 1)
        {
            seeds.ambiguous.push((tensor, at));
        }
    }
    seeds.dims = found;
    seeds
}

/// Dimensions of the batch size, or of a multiple of it, where no input has the batch size as its first.
fn by_size(step: &StepIr, inputs: &[TensorId], samples: i64, dims: &BatchDims) -> Vec<(TensorId, usize)> {
    let mut found = Vec::new();
    for &tensor in inputs {
        let shape = &step.tensors[tensor].value.shape;
        let multiple = |at: usize| Form::from_size(shape, at, samples).is_some();
        let at = match dims {
            BatchDims::At(dim) => Some(*dim).filter(|&dim| multiple(dim)),
            BatchDims::Inferred => {
                let exact = shape.iter().position(|&size| size == samples);
                exact.or_else(|| Some(0).filter(|&at| multiple(at)))
            }
        };
        found.extend(at.map(|at| (tensor, at)));
    }
    if found.iter().any(|&(tensor, _)| on_host(step, tensor)) {
        found.retain(|&(tensor, _)| on_host(step, tensor));
    }
    found
}

fn on_host(step: &StepIr, tensor: TensorId) -> bool {
    step.tensors[tensor].value.device != Device::Cuda
}

/// Whether an op makes a host tensor without inputs: random numbers, a range.
fn on_host_alone(step: &StepIr, op: OpId) -> bool {
    let Some(call) = step.call(op) else { return false };
    let on_host = call.outputs.iter().flat_map(|arg| arg.tensors()).all(|t| t.device != Device::Cuda);
    on_host && call.input_tensors().next().is_none()
}

/// Whether the script makes a tensor by an op without inputs: random numbers, a range, zeros.
fn made_by_script(step: &StepIr, op: OpId) -> bool {
    let of_nothing =
        |op: OpId| step.ops[op].call.as_deref().is_some_and(|call| call.takes().next().is_none());
    let outermost = step.outermost(op);
    on_host_alone(step, op)
        || (of_nothing(outermost)
            && step.ops[outermost].thread == HostThreadId::MAIN
            && !step.is_in(op, EventName::is_engine)
            && !step.is_in(op, EventName::is_optimizer))
}

/// Tensors that stay from step to step: those that an optimizer takes, weights of layers, and a norm's running statistics. A view that repeats a
/// parameter along a dimension is excluded, and so is a tensor in memory that the step allocates: a scalar that no op made may be stored in the
/// former memory of an activation.
fn persistent_tensors(step: &StepIr, ops: &OpSet, uses: &Uses) -> FxHashSet<TensorId> {
    let allocated = allocated(step);
    let mut storages = FxHashSet::default();
    let mut kept = FxHashSet::default();
    for op in step.running() {
        let Some(call) = &step.ops[op].call else { continue };
        let norm = step.ops[op].name.contains("batch_norm");
        let taken: SmallVec<[TensorId; 8]> = if norm || step.is_in(op, EventName::is_optimizer) {
            call.takes().skip(usize::from(norm)).collect()
        } else {
            weights(step, ops, op)
        };
        // A sparse gradient has the lookups of a batch, and so do its indices, which are integers.
        let of_lookups = |tensor: TensorId| {
            let value = &step.tensors[tensor].value;
            value.is_sparse() || value.dtype == Dtype::I64
        };
        for tensor in taken {
            let storage = step.tensors[tensor].storage;
            let of_step = storage.is_some_and(|storage| allocated.contains(&storage));
            if uses.producer(tensor).is_none() && !of_step && !of_lookups(tensor) {
                kept.insert(tensor);
                storages.extend(storage);
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

/// Weights of a layer among the arguments of an op. Those of a loss are per sample.
fn weights(step: &StepIr, ops: &OpSet, op: OpId) -> SmallVec<[TensorId; 8]> {
    let row = &step.ops[op];
    let loss = row.name.contains("cross_entropy") || row.name.contains("lerp");
    let bound = step.call(op).filter(|_| !loss).and_then(|call| ops.bind(call));
    let (Some(bound), Some(call)) = (bound, row.call.as_deref()) else { return SmallVec::new() };
    let places =
        ["weight", "bias"].into_iter().filter(|name| bound.has(name)).filter_map(|name| bound.position(name));
    places.filter_map(|at| call.inputs.get(at)?.tensors().first().copied()).collect()
}

/// Memory of outputs that is not memory of inputs of the same op.
fn allocated(step: &StepIr) -> FxHashSet<StorageId> {
    let storage = |tensor: TensorId| step.tensors[tensor].storage;
    let mut found = FxHashSet::default();
    for call in step.ops.iter().filter_map(|op| op.call.as_deref()) {
        let taken: SmallVec<[StorageId; 4]> = call.takes().filter_map(storage).collect();
        found.extend(call.gives().filter_map(storage).filter(|storage| !taken.contains(storage)));
    }
    found
}
