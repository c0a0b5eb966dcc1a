//! Training of a table: its gradient, and the optimizer that takes it.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Arg;
use steptime_aten::optimizer::Rule as Update;
use steptime_graph::names::EventName;
use steptime_step::{Call, OpId, StepIr, TensorId, Uses};

use super::lookups::{Lookup, described, tensor};
use crate::error::Error;
use crate::new_ops::accumulates;
use crate::optimizer;
use crate::updates;

/// The backward pass of one lookup.
#[derive(Debug, Clone)]
pub(crate) struct LookupBackward {
    /// Its backward function, and the function that accumulates its gradient.
    pub roots: Vec<OpId>,
    /// The incoming gradient.
    pub gradient: TensorId,
    /// The table, and tensors computed from its gradient.
    pub own: FxHashSet<TensorId>,
    /// The table's gradient, and what it is accumulated into.
    made: Vec<TensorId>,
    /// Whether ops other than the optimizer take it.
    pub shared: bool,
}

impl LookupBackward {
    /// The backward function.
    pub fn function(&self) -> OpId {
        self.roots[0]
    }

    /// The gradient that it computes for the table.
    pub fn table_gradient(&self) -> Option<TensorId> {
        self.made.first().copied()
    }

    /// Whether the gradient of the table is sparse.
    pub fn is_sparse(&self, step: &StepIr) -> bool {
        self.made.iter().any(|&made| step.tensors[made].value.is_sparse())
    }
}

/// The backward pass of each lookup, where it has one. Of identical lookups, the last has the first backward op.
pub(crate) fn find(step: &StepIr, uses: &Uses, lookups: &[Lookup]) -> Vec<Option<LookupBackward>> {
    let named = |op: &OpId| {
        let name = &*step.ops[*op].name;
        name == "aten::embedding_backward" || name.starts_with("aten::_embedding_bag_backward")
    };
    let mut backward: Vec<OpId> = step.running().into_iter().filter(named).collect();
    let one = |lookup: &Lookup| {
        let at = backward.iter().rposition(|&op| belongs(step, op, lookup))?;
        trained(step, lookup, backward.remove(at))
    };
    let mut all: Vec<Option<LookupBackward>> = lookups.iter().map(one).collect();
    for trained in all.iter_mut().flatten() {
        let mut others = trained.made.iter().flat_map(|&made| uses.consumers(made));
        trained.shared = others.any(|&op| {
            let own = trained.roots.iter().any(|&root| step.is_within(op, root));
            !own && updates::owner(step, op).is_none()
        });
    }
    all
}

/// Whether a backward op belongs to a lookup.
fn belongs(step: &StepIr, op: OpId, lookup: &Lookup) -> bool {
    let Some(call) = &step.ops[op].call else { return false };
    if let Some(bag_of) = lookup.bag_of {
        return call.takes().any(|taken| taken == bag_of);
    }
    let rows = step.tensors[lookup.table].value.size(0);
    let gradient = tensor(&call.inputs, 0).map(|gradient| step.tensors[gradient].value.size(-1));
    tensor(&call.inputs, 1) == Some(lookup.indices)
        && call.inputs.get(2) == Some(&Arg::Int(rows))
        && gradient == Some(lookup.width)
}

fn trained(step: &StepIr, lookup: &Lookup, op: OpId) -> Option<LookupBackward> {
    let gradient = tensor(&step.ops[op].call.as_deref()?.inputs, 0)?;
    let function = step.outermost(op);
    let mut roots = vec![function];
    roots.extend(accumulates(step, function));
    let calls = |root: OpId| step.subtree(root).into_iter().filter_map(|op| step.ops[op].call.as_deref());
    let mut own: FxHashSet<TensorId> =
        roots.iter().flat_map(|&root| calls(root)).flat_map(Call::gives).collect();
    own.insert(lookup.table);
    let mut made: Vec<TensorId> = step.ops[op].call.as_deref().into_iter().flat_map(Call::gives).collect();
    let added = roots.iter().skip(1).flat_map(|&root| step.ops[root].children.iter());
    let added =
        added.flat_map(|&own| step.ops[own].children.iter()).filter_map(|&op| step.ops[op].call.as_deref());
    made.extend(added.flat_map(Call::gives));
    Some(LookupBackward { roots, gradient, own, made, shared: false })
}

/// The rules of optimizers, each read once, with whether there is weight decay.
pub(crate) type Rules = FxHashMap<OpId, Result<(Update, bool), Error>>;

/// The operators' name of the optimizer that updates a table; an error where they do not support it.
pub(crate) fn optimizer(
    step: &StepIr,
    annotation: Option<OpId>,
    alone: &[OpId],
    table: TensorId,
    rules: &mut Rules,
) -> Result<&'static str, String> {
    let about = |what: &str| Err(format!("{} {what}", described(step, table)));
    let Some(annotation) = annotation else { return about("is updated by no optimizer") };
    let label = &step.ops[annotation].name;
    let name = EventName::optimizer_class(label).unwrap_or(label);
    if name == "SparseAdam" {
        return Ok("adam");
    }
    match rules.entry(annotation).or_insert_with(|| optimizer::rule_of(step, annotation)) {
        Ok((Update::Sgd { momentum: false, .. }, false)) => Ok("sgd"),
        Ok((Update::Adagrad, false)) => Ok("adagrad"),
        Ok((Update::Adam { amsgrad: false }, false)) => Ok("adam"),
        Err(Error::SparseGradients { .. }) if name == "Adagrad" => Ok("adagrad"),
        Err(Error::SparseGradients { .. }) if name == "SGD" => match alone {
            [one] if step.ops[*one].name == "aten::add_" => Ok("sgd"),
            _ => about("is updated with momentum or weight decay"),
        },
        _ => about(&format!(
            "is updated by {name} with settings that the operators do not support: they support plain SGD, Adagrad and Adam"
        )),
    }
}

/// The `zero_grad` call of an optimizer that corresponds to one of its steps, by the order of calls.
pub(crate) fn zero_grad(step: &StepIr, annotation: OpId) -> Option<OpId> {
    let label = |op: OpId| &*step.ops[op].name;
    let wanted = EventName::optimizer(EventName::optimizer_class(label(annotation))?, "zero_grad");
    let running = step.running();
    let mut steps = running.iter().filter(|&&op| label(op) == label(annotation));
    let place = steps.position(|&op| op == annotation)?;
    running.iter().copied().filter(|&op| label(op) == wanted).nth(place)
}
