//! Ops that a rule puts in.

use crate::ids::{OpId, TensorId};
use crate::step::{Call, Op, Origin, Step};

/// An op to be, with the ops inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOp {
    /// Its name.
    pub name: String,
    /// What it is called with; `None` for a function or an annotation.
    pub call: Option<Call>,
    /// The ops inside it, in order.
    pub children: Vec<NewOp>,
    /// The op that it repeats.
    pub again: Option<OpId>,
}

impl NewOp {
    /// An op with arguments and results.
    #[must_use]
    pub fn new(name: &str, call: Call) -> NewOp {
        NewOp { name: name.to_owned(), call: Some(call), children: Vec::new(), again: None }
    }

    /// A function of the autograd engine, or another without arguments of its own.
    #[must_use]
    pub fn around(name: &str, children: Vec<NewOp>) -> NewOp {
        NewOp { name: name.to_owned(), call: None, children, again: None }
    }

    /// An op of the step once more, with all inside it; `tensor` says which tensors it has now.
    pub fn again(step: &Step, op: OpId, tensor: &mut impl FnMut(TensorId) -> TensorId) -> NewOp {
        let row = &step.ops[op];
        let call = row.call.as_ref().map(|call| call.with(tensor));
        let children = row.children.iter().map(|&child| NewOp::again(step, child, tensor)).collect();
        NewOp { name: row.name.clone(), call, children, again: Some(op) }
    }

    /// With ops inside.
    #[must_use]
    pub fn with(mut self, children: Vec<NewOp>) -> NewOp {
        self.children = children;
        self
    }

    /// Adds it, and what is inside it, to a step that does not list it yet.
    pub(crate) fn add(&self, step: &mut Step, like: &Op, parent: Option<OpId>, rule: &'static str) -> OpId {
        let at = step.ops.push_and_get_key(Op {
            name: self.name.clone(),
            annotation: false,
            call: self.call.clone(),
            thread: like.thread,
            parent,
            children: Vec::new(),
            origin: Origin::Inserted(rule),
            again: self.again,
            script: 0.0,
            captured: like.captured,
            ahead: false,
        });
        let children = self.children.iter().map(|child| child.add(step, like, Some(at), rule)).collect();
        step.ops[at].children = children;
        at
    }
}
