//! Layout of attention's results. A GPU writes `[batch, heads, length, dim]` with the heads of a position adjacent in memory, while
//! the CPU's parts write them head by head. Results of elementwise ops have the same layout; copies that make the heads of a position
//! adjacent are not made, and copies that make the positions of a head adjacent are.

use std::collections::{BTreeMap, BTreeSet};

use steptime_graph::execution::{ExecutionGraph, NodeId};

use super::branch::Branch;
use super::build::row_major;
use super::{attention, is_engine};
use crate::call::{OpCall, Tensor};
use crate::kernel::Kernel;
use crate::memory_key::Place;
use crate::op_def::Lowering;
use crate::op_set::OpSet;

/// Ops whose result has the layout of their first tensor, unless the argument at this position specifies another.
const ALIKE: [(&str, usize); 5] = [
    ("aten::empty_like", 5),
    ("aten::zeros_like", 5),
    ("aten::ones_like", 5),
    ("aten::_to_copy", 6),
    (COPY, 1),
];
/// Row-major order, as an argument.
const ROW_MAJOR: i64 = 0;
/// Op that views a tensor in another shape, and copies it if it must.
const RESHAPE: &str = "aten::reshape";
/// Ops that copy a tensor only if its elements are not in row-major order.
const IF_NEEDED: [&str; 2] = ["aten::contiguous", RESHAPE];
/// Op that makes their copy.
const COPY: &str = "aten::clone";

/// Sets the GPU's layout of attention's results, in these storages, and of the tensors that depend on them.
pub(super) fn follow(trace: &ExecutionGraph, ops: &OpSet, given: &BTreeSet<u32>, branches: &mut Vec<Branch>) {
    if given.is_empty() {
        return;
    }
    let storages = u32::try_from(trace.tensors.storages().len()).unwrap_or(u32::MAX);
    let mut layouts = Layouts { storages, ..Layouts::default() };
    branches.iter().for_each(|branch| layouts.see(branch));
    for &storage in given {
        layouts.begin(storage);
    }
    branches.iter().for_each(|branch| layouts.visit(ops, branch));
    layouts.apply(trace, branches);
}

/// Dimension of a storage: its size, and the distance of its elements as recorded and on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dim {
    size: i64,
    recorded: i64,
    there: i64,
}

#[derive(Default)]
struct Layouts {
    /// Tensors of each storage, as recorded.
    seen: BTreeMap<u32, Vec<Tensor>>,
    /// Views of each storage that may be copies on a GPU: source and view.
    views: BTreeMap<u32, Vec<(Tensor, Tensor)>>,
    /// Dimensions of storages with another layout on a GPU.
    dims: BTreeMap<u32, Vec<Dim>>,
    /// Copies that a GPU makes of such storages for views that this layout does not allow: memory and dimensions.
    copies: BTreeMap<u32, (Place, Vec<Dim>)>,
    /// Number of storages of the trace: those of copies come after them.
    storages: u32,
    /// Storages of copies that a GPU does not make, and the memory of the tensor that was copied on the CPU.
    shared: BTreeMap<u32, Place>,
    /// Nodes of these copies.
    left_out: BTreeSet<NodeId>,
}

impl Layouts {
    /// Sets the layout of attention's kernels for a storage.
    fn begin(&mut self, storage: u32) {
        let first = self.seen.get(&storage).and_then(|all| all.iter().find(|tensor| tensor.shape.len() == 4));
        if let Some(first) = first.cloned() {
            let there = attention::by_position(&first.shape, &first);
            self.give(&first, &there);
        }
    }

    /// Adds the tensors of an op and of those inside it.
    fn see(&mut self, branch: &Branch) {
        let call = &branch.call;
        for tensor in call.inputs.iter().chain(&call.outputs).flat_map(|arg| arg.tensors()) {
            let Some(storage) = tensor.place.number() else { continue };
            let known = self.seen.entry(storage).or_default();
            if !known.contains(tensor) {
                known.push(tensor.clone());
            }
        }
        if let Some((storage, source, view)) = reshaped(branch) {
            self.views.entry(storage).or_default().push((source.clone(), view.clone()));
        }
        branch.children.iter().for_each(|child| self.see(child));
    }

    /// Sets another layout of a tensor's storage on a GPU, if all tensors of the storage follow from it.
    fn give(&mut self, recorded: &Tensor, there: &Tensor) {
        let Some(storage) = recorded.place.number() else { return };
        let dims = dims_of(recorded, there);
        let whole = recorded.is_dense() && there.is_dense() && recorded.numel() > 0 && recorded.offset == 0;
        let differs = dims.iter().any(|dim| dim.recorded != dim.there);
        let known = self.dims.contains_key(&storage) || self.shared.contains_key(&storage);
        if !whole || !differs || known {
            return;
        }
        let fits = |tensor: &Tensor| mapped(tensor, &dims).is_some();
        if !self.seen.get(&storage).is_some_and(|seen| seen.iter().all(fits)) {
            let mut views = self.views.get(&storage).into_iter().flatten();
            let Some((source, _)) = views.find(|(source, view)| fits(source) && !fits(view)) else { return };
            let copy = Place::storage(self.storages.saturating_add(self.copies.len() as u32), 0);
            let rows = Tensor::contiguous(&source.shape, source.dtype);
            self.copies.insert(storage, (copy, dims_of(source, &rows)));
        }
        self.dims.insert(storage, dims);
    }

    /// Returns a tensor as it is on a GPU.
    fn there(&self, tensor: &Tensor) -> Tensor {
        let Some(storage) = tensor.place.number() else { return tensor.clone() };
        if let Some(&place) = self.shared.get(&storage) {
            return Tensor { place, ..tensor.clone() };
        }
        let copied = || {
            let (place, dims) = self.copies.get(&storage)?;
            Some(Tensor { place: *place, ..mapped(tensor, dims)? })
        };
        let there = self.dims.get(&storage).and_then(|dims| mapped(tensor, dims));
        there.or_else(copied).unwrap_or_else(|| tensor.clone())
    }

    /// Returns the source of a view that is a copy on a GPU, as it is there.
    fn copied(&self, branch: &Branch) -> Option<Tensor> {
        let (storage, source, view) = reshaped(branch)?;
        let dims = self.dims.get(&storage)?;
        let there = mapped(source, dims)?;
        mapped(view, dims).is_none().then_some(there)
    }

    /// Propagates the layouts through an op and those inside it.
    fn visit(&mut self, ops: &OpSet, branch: &Branch) {
        let call = &branch.call;
        if IF_NEEDED.contains(&branch.name())
            && let Some(source) = call.tensor_at(0)
            && let Some(copy) = branch.children.iter().find(|child| child.name() == COPY)
            && let Some(storage) = copy.call.output(0).and_then(|copied| copied.place.number())
        {
            let there = self.there(source);
            if there.is_contiguous() && !source.is_contiguous() {
                self.shared.insert(storage, there.place);
                self.left_out.extend(copy.origin);
                return;
            }
        }
        let format = ALIKE.iter().find(|(name, _)| *name == branch.name()).map(|&(_, at)| call.int_at(at));
        let alike = match format {
            Some(format) => format != Some(ROW_MAJOR),
            None => is_elementwise(ops, call),
        };
        if alike {
            self.alike(call);
        }
        branch.children.iter().for_each(|child| self.visit(ops, child));
    }

    /// Gives the results of an op the layout of its first tensor with their shape.
    fn alike(&mut self, call: &OpCall) {
        let Some(given) = call.output(0) else { return };
        let inputs = || call.inputs.iter().flat_map(|arg| arg.tensors());
        let Some(first) = inputs().find(|tensor| tensor.shape == given.shape) else { return };
        let moved = first.place.number().is_some_and(|storage| self.dims.contains_key(&storage));
        if !moved {
            return;
        }
        let there = self.there(first);
        let results: Vec<Tensor> = call.outputs.iter().flat_map(|arg| arg.tensors()).cloned().collect();
        for result in results.iter().filter(|result| result.shape == first.shape) {
            if result.place.number() != first.place.number() {
                self.give(result, &there);
            }
        }
    }

    /// Replaces the tensors by those on a GPU, and removes copies that it does not make.
    fn apply(&self, trace: &ExecutionGraph, branches: &mut Vec<Branch>) {
        branches.retain(|branch| !self.is_left_out(trace, branch));
        for branch in branches {
            if let Some(source) = self.copied(branch) {
                branch.children.insert(0, row_major(&source));
            }
            let call = &mut branch.call;
            for arg in call.inputs.iter_mut().chain(&mut call.outputs) {
                for tensor in arg.tensors_mut() {
                    *tensor = self.there(tensor);
                }
            }
            self.apply(trace, &mut branch.children);
        }
    }

    /// Whether it is a copy that a GPU does not make, or the backward function of one.
    fn is_left_out(&self, trace: &ExecutionGraph, branch: &Branch) -> bool {
        let is_copy = |node: Option<NodeId>| node.is_some_and(|node| self.left_out.contains(&node));
        let forward = |branch: &Branch| branch.origin.and_then(|origin| trace.pairing.forward(origin));
        is_copy(branch.origin)
            || is_engine(branch.name()) && branch.children.iter().any(|function| is_copy(forward(function)))
    }
}

fn is_elementwise(ops: &OpSet, call: &OpCall) -> bool {
    let Lowering::Kernel(launched) = ops.lower(call) else { return false };
    matches!(launched.kernel, Kernel::Elementwise(_))
}

/// Returns the dimensions of a tensor with its own storage, as recorded and on a GPU.
fn dims_of(recorded: &Tensor, there: &Tensor) -> Vec<Dim> {
    let strides = recorded.strides.iter().zip(&there.strides);
    let dims = recorded.shape.iter().zip(strides).filter(|(size, _)| **size != 1);
    dims.map(|(&size, (&recorded, &there))| Dim { size, recorded, there }).collect()
}

/// Returns the storage of an op that views a tensor in another shape and copies only if it must, with the tensor and the view.
fn reshaped(branch: &Branch) -> Option<(u32, &Tensor, &Tensor)> {
    let (source, view) = (branch.call.tensor_at(0)?, branch.call.output(0)?);
    let storage = source.place.number()?;
    (branch.name() == RESHAPE && view.place.number() == Some(storage)).then_some((storage, source, view))
}

/// Returns a tensor of a storage with other strides; `None` if its dimensions are not parts of the storage's.
fn mapped(tensor: &Tensor, dims: &[Dim]) -> Option<Tensor> {
    let mut there = tensor.clone();
    for (&size, stride) in tensor.shape.iter().zip(&mut there.strides) {
        if size != 1 {
            *stride = spread(size, *stride, dims)?;
        }
    }
    let mut far: Vec<&Dim> = dims.iter().collect();
    far.sort_unstable_by_key(|dim| std::cmp::Reverse(dim.recorded));
    let (mut left, mut offset) = (tensor.offset, 0);
    for dim in far {
        let [recorded, there] = [dim.recorded, dim.there].map(|stride| u64::try_from(stride).unwrap_or(0));
        offset += left.checked_div(recorded)?.checked_mul(there)?;
        left %= recorded;
    }
    there.offset = offset;
    Some(there)
}

/// Returns the stride on a GPU of `count` elements that were recorded at `stride`: of one dimension, or of several consecutive ones. `None`
/// if their distances on a GPU differ.
fn spread(count: i64, stride: i64, dims: &[Dim]) -> Option<i64> {
    let mut dim = dims.iter().filter(|dim| dim.recorded <= stride).max_by_key(|dim| dim.recorded)?;
    let every = (stride % dim.recorded == 0).then(|| stride / dim.recorded)?;
    let there = dim.there.checked_mul(every)?;
    let mut reach = every.checked_mul(count)?;
    while reach > dim.size {
        let follows = |next: &&Dim| {
            next.recorded == dim.recorded.saturating_mul(dim.size)
                && next.there == dim.there.saturating_mul(dim.size)
        };
        reach = (reach % dim.size == 0).then(|| reach / dim.size)?;
        dim = dims.iter().find(follows)?;
    }
    Some(there)
}
