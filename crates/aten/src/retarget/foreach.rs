//! Optimizers: on the GPU PyTorch updates all parameters at once by default, on the CPU one after the other.

use super::branch::Branch;
use super::build::{around, light};
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::registry;

/// Where PyTorch's optimizers say that they run.
const OPTIMIZER: &str = "Optimizer.step";

/// Ops inside which a loop over parameters becomes one op over lists.
pub(super) fn fuse(mut branch: Branch) -> Branch {
    if branch.name().starts_with(OPTIMIZER) {
        if let Some(fused) = fuse_loop(branch.name(), &branch.children) {
            branch.children = fused;
        }
        return branch;
    }
    branch.children = branch.children.into_iter().map(fuse).collect();
    branch
}

/// The loop's body, each op over the list of all turns. `None` where there is no loop, or a gradient is sparse:
/// then PyTorch loops on the GPU too.
fn fuse_loop(optimizer: &str, children: &[Branch]) -> Option<Vec<Branch>> {
    if children.iter().any(has_sparse) {
        return None;
    }
    let names: Vec<&str> = children.iter().map(Branch::name).collect();
    let body = (1..=names.len() / 2).find(|&body| {
        names.len().is_multiple_of(body) && names.chunks(body).all(|turn| turn == &names[..body])
    })?;
    let mut fused = Vec::new();
    for at in 0..body {
        let column: Vec<&Branch> = children.iter().skip(at).step_by(body).collect();
        let name = column[0].name();
        // What a step is counted by lies in a tensor of its own.
        if name == "aten::add_" && on_host(&column[0].call) {
            fused.extend([
                light("empty"),
                light("to"),
                light("lift_fresh"),
                around("detach_", vec![detach()]),
            ]);
        }
        if optimizer.contains("Adagrad") && name == "aten::addcdiv_" {
            fused.push(scaled_gradients(&column));
        }
        match over_list(&column) {
            Some(branch) => fused.push(branch),
            // Such as reading the count of steps: one by one. Adam's reads it for each of its two averages.
            None => {
                let times = if optimizer.contains("Adam") { 2 } else { 1 };
                for _ in 0..times {
                    fused.extend(column.iter().copied().cloned());
                }
            }
        }
    }
    Some(fused)
}

/// Adagrad over lists multiplies the gradients by the rate first.
fn scaled_gradients(column: &[&Branch]) -> Branch {
    let gradients = list(column, |call| call.inputs.get(1));
    let inputs = vec![gradients.clone(), Arg::Floats(vec![1.0; column.len()])];
    let call = OpCall { outputs: vec![gradients], ..OpCall::new("aten::_foreach_mul", inputs) };
    Branch::new(call, vec![light("empty_strided"); column.len()])
}

fn detach() -> Branch {
    Branch::new(OpCall::new("detach_", Vec::new()), Vec::new())
}

/// Whether an op works on numbers in host memory.
fn on_host(call: &OpCall) -> bool {
    call.tensor(0).is_some_and(|tensor| tensor.device == Device::Cpu)
}

fn has_sparse(branch: &Branch) -> bool {
    branch.name() == "aten::_nnz" || branch.children.iter().any(has_sparse)
}

/// One op over lists for the same op over their items; `None` where it has no such form.
fn over_list(column: &[&Branch]) -> Option<Branch> {
    let name = column[0].name().strip_prefix("aten::")?;
    // A quotient in a loop is a new tensor; over lists the dividend is one already.
    let in_place = name.ends_with('_') || name == "div";
    let wanted = format!("aten::_foreach_{}{}", name.trim_end_matches('_'), if in_place { "_" } else { "" });
    registry::find(&wanted)?;
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

/// An argument of all turns: tensors become a list; a number, also one in a tensor of its own, stays one.
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
