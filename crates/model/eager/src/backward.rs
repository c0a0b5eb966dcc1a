//! The backward pass: functions run in reverse order of their ops, as in PyTorch's engine.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use steptime_graph::names::EventName;

use crate::argument::{Input, inputs};
use crate::eager::Eager;
use crate::eager::tape::GradKind;
use crate::ops::{arithmetic, fill, reduce, sparse, views};
use crate::recorder::{BACKWARD, Kind, OP, Thread};
use crate::reducer;
use crate::tensor::{GradId, Tensor, contiguous};

/// Runs the backward pass of a loss; gradients are stored with the parameters.
pub(crate) fn run(e: &mut Eager, loss: &Tensor) {
    let Some(root) = loss.grad else { return };
    e.learning = false;
    let first = fill::ones_like(e, loss);
    e.log.on(Thread::Engine);
    Engine::new(e, root, first.clone()).run(e);
    reducer::finish(e);
    e.log.on(Thread::Main);
    e.learning = true;
}

/// State of the engine.
struct Engine {
    /// Number of gradients that a function still waits for.
    waits: BTreeMap<GradId, usize>,
    /// Accumulated incoming gradients.
    buffers: BTreeMap<GradId, Tensor>,
    /// Functions that can run: those of the latest op first, and of gradients of parameters before all others.
    ready: BinaryHeap<(i64, Reverse<usize>, GradId)>,
    pushed: usize,
    /// For functions that take several gradients, the gradients so far, each with its position.
    parts: BTreeMap<GradId, Vec<(usize, Tensor)>>,
}

impl Engine {
    fn new(e: &Eager, root: GradId, first: Tensor) -> Engine {
        let mut waits = BTreeMap::new();
        let mut todo = vec![root];
        while let Some(at) = todo.pop() {
            for next in next(e, at).into_iter().flatten() {
                let count = waits.entry(next).or_insert(0);
                *count += 1;
                if *count == 1 {
                    todo.push(next);
                }
            }
        }
        let buffers = BTreeMap::from([(root, first)]);
        let (ready, parts) = (BinaryHeap::new(), BTreeMap::new());
        let mut engine = Engine { waits, buffers, ready, pushed: 0, parts };
        engine.push(e, root);
        engine
    }

    fn push(&mut self, e: &Eager, at: GradId) {
        let sequence = match &e.tape.functions[at].kind {
            GradKind::Function { sequence, .. } | GradKind::Join { sequence, .. } => *sequence,
            GradKind::Part { .. } | GradKind::Accumulate(_) => i64::MAX,
        };
        self.ready.push((sequence, Reverse(self.pushed), at));
        self.pushed += 1;
    }

    fn run(mut self, e: &mut Eager) {
        while let Some((_, _, at)) = self.ready.pop() {
            let grad = self.buffers.remove(&at);
            if let GradKind::Part { of, place } = e.tape.functions[at].kind {
                self.parts.entry(of).or_default().extend(grad.map(|grad| (place, grad)));
                self.arrived(e, of);
                continue;
            }
            let parts = self.parts.remove(&at);
            let name = e.tape.functions[at].name;
            e.node(&EventName::engine(name), OP, &[], |e| {
                let grads = match parts {
                    Some(parts) => vec![joined(e, at, parts)],
                    None => grad.map_or_else(Vec::new, |grad| call(e, at, grad)),
                };
                for (to, grad) in
                    next(e, at).into_iter().zip(grads.into_iter().chain(std::iter::repeat(None)))
                {
                    let Some(to) = to else { continue };
                    if let Some(grad) = grad {
                        let fitting = reduce::to_shape(e, grad, &e.tape.functions[to].shape.clone());
                        self.add(e, to, fitting);
                    }
                    self.arrived(e, to);
                }
            });
        }
    }

    /// Counts a gradient that a function waits for as arrived, or as absent.
    fn arrived(&mut self, e: &Eager, at: GradId) {
        if let Some(waits) = self.waits.get_mut(&at) {
            *waits -= 1;
            if *waits == 0 {
                self.push(e, at);
            }
        }
    }

    /// Adds a gradient to earlier ones, in place where no other tensor uses their memory.
    fn add(&mut self, e: &mut Eager, to: GradId, grad: Tensor) {
        let sum = match self.buffers.remove(&to) {
            None => grad,
            Some(old) if old.is_dense() && old.is_sole_owner() => arithmetic::add_into(e, &old, &grad),
            Some(old) => arithmetic::sum_of(e, &old, &grad),
        };
        self.buffers.insert(to, sum);
    }
}

fn next(e: &Eager, at: GradId) -> Vec<Option<GradId>> {
    match &e.tape.functions[at].kind {
        GradKind::Function { next, .. } => next.clone(),
        GradKind::Join { next, .. } => vec![Some(*next)],
        GradKind::Part { of, .. } => vec![Some(*of)],
        GradKind::Accumulate(_) => Vec::new(),
    }
}

/// Calls a function that takes several gradients.
fn joined(e: &mut Eager, at: GradId, mut parts: Vec<(usize, Tensor)>) -> Option<Tensor> {
    parts.sort_by_key(|(place, _)| *place);
    let grads: Vec<Tensor> = parts.into_iter().map(|(_, grad)| grad).collect();
    let name = e.tape.functions[at].name;
    let GradKind::Join { sequence, apply, .. } = &mut e.tape.functions[at].kind else { return None };
    let (kind, apply) = (Kind { sequence: *sequence, ..BACKWARD }, apply.take()?);
    let list: Vec<Input<'_>> = grads.iter().map(Input::Tensor).collect();
    Some(e.node(name, kind, &list, |e| apply(e, &grads)))
}

/// Calls a function. Tensors that it saved in the forward pass are freed afterwards.
fn call(e: &mut Eager, at: GradId, grad: Tensor) -> Vec<Option<Tensor>> {
    let name = e.tape.functions[at].name;
    match &mut e.tape.functions[at].kind {
        GradKind::Accumulate(parameter) => {
            let parameter = *parameter;
            e.node(name, BACKWARD, inputs![&grad], |e| keep(e, parameter, &grad));
            reducer::ready(e, parameter);
            Vec::new()
        }
        GradKind::Function { sequence, apply, next } => {
            let (sequence, apply) = (*sequence, apply.take());
            let needed: Vec<bool> = next.iter().map(Option::is_some).collect();
            let kind = Kind { sequence, ..BACKWARD };
            let run = |e: &mut Eager| apply.map_or_else(Vec::new, |apply| apply(e, &grad, &needed));
            e.node(name, kind, inputs![&grad], run)
        }
        // These take several gradients, or do not run themselves.
        GradKind::Join { .. } | GradKind::Part { .. } => Vec::new(),
    }
}

/// Stores a gradient with its parameter: itself where it has the parameter's memory order, else a copy.
fn keep(e: &mut Eager, parameter: usize, grad: &Tensor) {
    let kept = if grad.sparse.is_some() {
        sparse::share(e, grad)
    } else if grad.strides == contiguous(&grad.shape) || grad.is_contiguous() {
        e.op("aten::detach", inputs![grad], |e| {
            e.node("detach", OP, inputs![grad], |_| ());
            e.view(grad, &grad.shape, &grad.strides, grad.offset)
        })
    } else {
        views::clone_as(e, grad, Input::None)
    };
    e.parameters[parameter].grad = Some(kept);
}
