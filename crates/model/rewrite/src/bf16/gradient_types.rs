//! Required types of gradients: each has the type of the differentiated tensor.

use rustc_hash::{FxHashMap, FxHashSet};
use steptime_aten::Dtype;
use steptime_graph::names::{ACCUMULATE_GRAD, EventName};
use steptime_step::{Call, OpId, StepIr, TensorId};

use super::lists::Kind;

/// A function of the backward pass.
#[derive(Debug, Clone)]
pub(super) struct Function {
    /// The engine's event.
    pub root: OpId,
    /// Autocast's treatment of the op of the forward pass.
    pub kind: Kind,
    /// Whether it accumulates a gradient into that of its parameter.
    pub is_last: bool,
    /// Incoming gradients.
    pub incoming: Vec<TensorId>,
    /// Sums of gradients, directly inside the root.
    pub sums: Vec<OpId>,
    /// All outputs of ops inside.
    pub given: Vec<TensorId>,
    /// Tensors created inside, excluding those passed on or written to.
    pub fresh: FxHashSet<TensorId>,
}

impl Function {
    /// The function that an outermost op runs; `None` for other ops. `earlier` holds the outputs of earlier functions: where the arguments of a
    /// function are unknown, its incoming gradients are those of these that it takes.
    pub fn find(step: &StepIr, root: OpId, earlier: &FxHashSet<TensorId>) -> Option<Function> {
        let EventName::Engine(name) = step.event(root) else { return None };
        let children = &step.ops[root].children;
        let own = children.iter().find(|&&child| step.ops[child].name == name);
        let incoming = own.and_then(|&own| step.ops[own].call.as_deref());
        let sums = children.iter().copied();
        let inside = step.subtree(root);
        let calls: Vec<_> = inside.iter().filter_map(|&op| step.ops[op].call.as_deref()).collect();
        let mut given: Vec<TensorId> = calls.iter().flat_map(|call| call.gives()).collect();
        let made = |call: &&Call| {
            let takes: FxHashSet<TensorId> = call.takes().collect();
            call.gives().filter(move |tensor| !takes.contains(tensor)).collect::<Vec<_>>()
        };
        let mut fresh: FxHashSet<TensorId> = calls.iter().flat_map(made).collect();
        let incoming: Vec<TensorId> = match incoming {
            Some(call) => call.takes().collect(),
            None => {
                let mut seen = FxHashSet::default();
                let taken = calls.iter().flat_map(|call| call.takes());
                taken
                    .filter(|tensor| {
                        earlier.contains(tensor) && !fresh.contains(tensor) && seen.insert(*tensor)
                    })
                    .collect()
            }
        };
        fresh.retain(|tensor| !incoming.contains(tensor));
        let mut seen = FxHashSet::default();
        given.retain(|tensor| seen.insert(*tensor));
        Some(Function {
            root,
            kind: Kind::from_function(name),
            is_last: name == ACCUMULATE_GRAD,
            incoming,
            sums: sums
                .filter(|&child| matches!(&*step.ops[child].name, "aten::add" | "aten::add_"))
                .collect(),
            given,
            fresh,
        })
    }
}

/// The required types of gradients.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// For each function, the required type of incoming gradients; `None` where any type is accepted.
    pub wants: Vec<Option<Dtype>>,
    /// For each function, the required types of gradients at its end.
    pub made: Vec<FxHashMap<TensorId, Dtype>>,
}

/// Requirements of later functions.
#[derive(Debug, Default)]
struct LaterNeeds {
    /// Types required by functions: 32 bits where any of them requires it.
    of: FxHashMap<TensorId, Dtype>,
    /// Gradients of parameters, which have 32 bits.
    last: FxHashSet<TensorId>,
}

impl Needs {
    /// Determines types from the last function to the first: a function that accepts any type requires that of its output gradients.
    ///
    /// A tensor that a function creates is a different tensor before it, even where it has the same identity.
    pub fn find(step: &StepIr, functions: &[Function], narrow: Dtype) -> Needs {
        let (mut needs, mut later) = (Needs::default(), LaterNeeds::default());
        for function in functions.iter().rev() {
            for call in function.sums.iter().rev().filter_map(|&op| step.ops[op].call.as_deref()) {
                for tensor in call.gives() {
                    let (of, last) = (later.of.get(&tensor).copied(), later.last.contains(&tensor));
                    call.takes().for_each(|term| later.add(term, of, last));
                }
            }
            let want = later.want(function, narrow);
            needs.wants.push(want);
            let made = function.given.iter().filter_map(|&tensor| Some((tensor, later.made(tensor)?)));
            needs.made.push(made.collect());
            for tensor in &function.fresh {
                later.of.remove(tensor);
                later.last.remove(tensor);
            }
            function.incoming.iter().for_each(|&tensor| later.add(tensor, want, function.is_last));
        }
        needs.wants.reverse();
        needs.made.reverse();
        needs
    }
}

impl LaterNeeds {
    fn add(&mut self, tensor: TensorId, of: Option<Dtype>, last: bool) {
        if let Some(dtype) = of {
            let slot = self.of.entry(tensor).or_insert(dtype);
            if dtype == Dtype::F32 {
                *slot = dtype;
            }
        }
        if last {
            self.last.insert(tensor);
        }
    }

    fn want(&self, function: &Function, narrow: Dtype) -> Option<Dtype> {
        match function.kind {
            _ if function.is_last => None,
            Kind::Narrow => Some(narrow),
            Kind::Wide | Kind::WideResult | Kind::WideSum => Some(Dtype::F32),
            Kind::Promoted | Kind::Any => {
                let given = function.given.iter().chain(&function.incoming);
                let of: Vec<Dtype> = given.filter_map(|tensor| self.of.get(tensor).copied()).collect();
                let wide = || function.given.iter().any(|tensor| self.last.contains(tensor));
                match of.first() {
                    _ if of.contains(&Dtype::F32) => Some(Dtype::F32),
                    Some(&dtype) => Some(dtype),
                    // The gradient of a table is computed from gradients of the table's type.
                    None => wide().then_some(Dtype::F32),
                }
            }
        }
    }

    /// The required type of a gradient where it is computed; `None` where any type is accepted.
    fn made(&self, tensor: TensorId) -> Option<Dtype> {
        if self.last.contains(&tensor) { Some(Dtype::F32) } else { self.of.get(&tensor).copied() }
    }
}
