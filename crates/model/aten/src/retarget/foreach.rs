//! Optimizers: by default, PyTorch updates all parameters at once on the GPU, and one after the other on the CPU.

use super::branch::Branch;
use super::build::{around, fill, light, op};
use super::new_memory::NewMemory;
use super::{in_place, is_engine, is_optimizer_step, tensor_subclasses};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::dtype::Dtype;
use crate::op_set::OpSet;
use crate::ops::multi_tensor::CHUNK;

/// Maximum number of ops in one iteration of a loop over parameters.
const LONGEST_TURN: usize = 64;

/// Recorded form of an optimizer that updates parameters one by one on a GPU too.
const LOOP: &str = "loop";

/// Conversion of loops over parameters in optimizer steps into ops over lists.
pub(super) struct Lists<'o> {
    ops: &'o OpSet,
    memory: NewMemory,
    /// Forms of the remaining optimizer steps; empty if not recorded.
    forms: std::slice::Iter<'o, String>,
}

impl<'o> Lists<'o> {
    /// Creates the conversion for a step, with the recorded forms of its optimizers. They are ignored if their number does not match.
    pub fn new(ops: &'o OpSet, forms: &'o [String], step: &[Branch], memory: NewMemory) -> Self {
        let said = if forms.len() == optimizers(step) { forms } else { &[] };
        Lists { ops, memory, forms: said.iter() }
    }

    /// Returns the step with lists.
    pub fn apply(&mut self, branches: Vec<Branch>) -> Vec<Branch> {
        branches.into_iter().map(|branch| self.one(branch)).collect()
    }

    /// Converts a branch. Ops of a closure come before the loop and are kept.
    fn one(&mut self, mut branch: Branch) -> Branch {
        if !is_optimizer_step(branch.name()) {
            branch.children = self.apply(branch.children);
            return branch;
        }
        let is_loop = self.forms.next().is_some_and(|form| form == LOOP);
        let ran = |child: &Branch| is_engine(child.name()) || child.has_engine();
        let closure = branch.children.iter().rposition(ran).map_or(0, |last| last + 1);
        let own = branch.children.split_off(closure);
        branch.children = self.apply(branch.children);
        let stays = is_loop || own.iter().any(has_sparse);
        let own = if stays {
            own
        } else {
            let held: Vec<Branch> = own.into_iter().flat_map(tensor_subclasses::unwrap).collect();
            fuse_loops(branch.name(), held, self.ops, &mut self.memory)
        };
        // Optimizer steps inside the loop of an optimizer around them are not converted.
        self.forms.by_ref().take(optimizers(&own)).for_each(drop);
        branch.children.extend(own);
        branch
    }
}

/// Returns the number of optimizer steps.
fn optimizers(branches: &[Branch]) -> usize {
    let of = |branch: &Branch| usize::from(is_optimizer_step(branch.name())) + optimizers(&branch.children);
    branches.iter().map(of).sum()
}

/// Converts loops, one after the other: groups of parameters may be updated by different ops. Sparse gradients are
/// processed in a loop on the GPU too.
fn fuse_loops(optimizer: &str, children: Vec<Branch>, ops: &OpSet, memory: &mut NewMemory) -> Vec<Branch> {
    let mut fused = Vec::new();
    let mut rest = &children[..];
    while let Some(first) = rest.first() {
        if let Some((body, turns)) = loop_at(rest) {
            let (turns, after) = rest.split_at(body * turns);
            for group in by_dtype(turns.chunks(body)) {
                fuse_loop(optimizer, &group, ops, memory, &mut fused);
            }
            rest = after;
        } else {
            fused.push(first.clone());
            rest = &rest[1..];
        }
    }
    fused
}

/// Returns the loop that ops begin with: the number of ops per iteration, and the number of iterations. Of several interpretations it takes
/// the one that covers the most ops, then the one with the shortest iteration.
fn loop_at(ops: &[Branch]) -> Option<(usize, usize)> {
    let listed =
        |branch: &Branch| branch.name().contains("::_foreach_") || branch.name().contains("::_fused_");
    if ops.first().is_none_or(listed) {
        return None;
    }
    let turns = |body: usize| {
        let alike = ops.iter().zip(&ops[body..]).take_while(|(one, next)| one.name() == next.name()).count();
        1 + alike / body
    };
    let all = (1..=LONGEST_TURN.min(ops.len() / 2)).map(|body| (body, turns(body)));
    let mut best: Option<(usize, usize)> = None;
    for (body, turns) in all.filter(|&(_, turns)| turns > 1) {
        if best.is_none_or(|(known, count)| body * turns > known * count) {
            best = Some((body, turns));
        }
    }
    best
}

/// Returns the iterations grouped by the type of the tensor that they update: a list has one type.
fn by_dtype<'b>(turns: impl Iterator<Item = &'b [Branch]>) -> Vec<Vec<&'b [Branch]>> {
    let mut groups: Vec<(Option<Dtype>, Vec<&[Branch]>)> = Vec::new();
    for turn in turns {
        let dtype = turn.last().and_then(|op| op.call.tensor_at(0)).map(|tensor| tensor.dtype);
        match groups.iter_mut().find(|(known, _)| *known == dtype) {
            Some((_, group)) => group.push(turn),
            None => groups.push((dtype, vec![turn])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Converts each op of a loop to an op over the list of all iterations.
fn fuse_loop(
    optimizer: &str,
    turns: &[&[Branch]],
    ops: &OpSet,
    memory: &mut NewMemory,
    fused: &mut Vec<Branch>,
) {
    let mut turns: Vec<Vec<Branch>> = turns.iter().map(|turn| turn.to_vec()).collect();
    for at in 0..turns.first().map_or(0, Vec::len) {
        let name = turns[0][at].call.name.clone();
        // The increment of a step count is in a separate tensor.
        if name == "aten::add_" && on_host(&turns[0][at].call) {
            fused.extend([
                light("empty"),
                light("to"),
                light("lift_fresh"),
                around("detach_", vec![detach()]),
            ]);
        }
        if optimizer.contains("Adagrad") && name == "aten::addcdiv_" {
            fused.push(scaled_gradients(&mut turns, at, memory));
        }
        turns.iter_mut().for_each(|turn| in_place::written(optimizer, turn, at));
        let column: Vec<&Branch> = turns.iter().map(|turn| &turn[at]).collect();
        match over_list(&column, ops) {
            Some(branch) => fused.push(branch),
            // Such as a read of the step count: one by one. Adam reads it once for each of its two averages.
            None => {
                let twice = optimizer.contains("Adam") && name == "aten::item";
                for _ in 0..if twice { 2 } else { 1 } {
                    fused.extend(column.iter().copied().cloned());
                }
            }
        }
    }
}

/// Returns the ops that `_foreach_norm` calls: the sums of blocks are set to zero first.
pub(super) fn norm(call: &OpCall) -> Vec<Branch> {
    let list = call.tensors_at(0);
    let blocks = list.iter().map(|tensor| tensor.numel().div_ceil(CHUNK)).max().unwrap_or(0);
    let dtype = list.first().map_or(Dtype::F32, |tensor| tensor.dtype);
    let sums = Tensor::contiguous(&[(list.len() as u64).saturating_mul(blocks).min(1 << 40) as i64], dtype);
    let mut zero = op("zero_", vec![Arg::Tensor(sums.clone())], Some(sums.clone()));
    zero.children = vec![fill(&sums)];
    vec![around("zeros", vec![light("empty"), zero])]
}

/// Returns the op with which Adagrad over lists first multiplies the gradients by the rate, in new memory.
fn scaled_gradients(turns: &mut [Vec<Branch>], at: usize, memory: &mut NewMemory) -> Branch {
    let column: Vec<&Branch> = turns.iter().map(|turn| &turn[at]).collect();
    let gradients = list(&column, |call| call.inputs.get(1));
    let scaled: Vec<Tensor> = gradients.tensors().iter().map(|tensor| memory.like(tensor)).collect();
    for (turn, scaled) in turns.iter_mut().zip(&scaled) {
        turn[at].call.inputs[1] = Arg::Tensor(scaled.clone());
    }
    let inputs = vec![gradients, Arg::Floats(vec![1.0; turns.len()])];
    let call = OpCall { outputs: vec![Arg::Tensors(scaled)], ..OpCall::new("aten::_foreach_mul", inputs) };
    Branch::new(call, vec![light("empty_strided"); turns.len()])
}

fn detach() -> Branch {
    Branch::new(OpCall::new("detach_", Vec::new()), Vec::new())
}

/// Whether an op works on numbers in host memory.
fn on_host(call: &OpCall) -> bool {
    call.tensor_at(0).is_some_and(|tensor| tensor.device == Device::Cpu)
}

fn has_sparse(branch: &Branch) -> bool {
    branch.name() == "aten::_nnz" || branch.children.iter().any(has_sparse)
}

/// Returns one op over lists for the same op over their items; `None` if it has no such form.
fn over_list(column: &[&Branch], ops: &OpSet) -> Option<Branch> {
    let name = column[0].name().strip_prefix("aten::")?;
    let in_place = name.ends_with('_');
    let wanted = format!("aten::_foreach_{name}");
    ops.find(&wanted)?;
    let count = column.iter().map(|branch| branch.call.inputs.len()).min()?;
    let inputs = (0..count).map(|at| list(column, |call| call.inputs.get(at))).collect();
    let outputs = if in_place { Vec::new() } else { vec![list(column, |call| call.outputs.first())] };
    let children = if on_host(&column[0].call) {
        column.iter().map(|branch| Branch { children: Vec::new(), ..(*branch).clone() }).collect()
    } else if in_place {
        Vec::new()
    } else {
        vec![light("empty_strided"); column.len()]
    };
    Some(Branch::new(OpCall { outputs, ..OpCall::new(&wanted, inputs) }, children))
}

/// Returns one argument of all iterations. Tensors become a list. A number stays a number, even if it is in a separate tensor.
fn list<'c>(column: &[&'c Branch], arg: impl Fn(&'c OpCall) -> Option<&'c Arg>) -> Arg {
    let all: Vec<&Arg> = column.iter().filter_map(|branch| arg(&branch.call)).collect();
    let tensors: Vec<Tensor> = all.iter().flat_map(|arg| arg.tensors()).cloned().collect();
    let same = all.windows(2).all(|pair| pair[0] == pair[1]);
    let number = same && tensors.iter().all(|t| t.shape.is_empty() && t.device == Device::Cpu);
    match all.first() {
        Some(Arg::Tensor(_)) if !number => Arg::Tensors(tensors),
        Some(Arg::Tensor(_)) => Arg::None,
        Some(&first) => first.clone(),
        None => Arg::None,
    }
}
