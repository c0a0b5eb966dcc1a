//! The step: ops within ops, and the tensors between them.

use std::borrow::Cow;
use std::cmp::Ordering;

use steptime_aten::{Lowering, OpCall, OpSet};
use steptime_graph::execution::NodeId;
use steptime_graph::names::EventName;
use steptime_graph::{self as graph, HostThreadId, TiVec};

use crate::call::Call;
use crate::called::Called;
use crate::exchange::Exchange;
use crate::ids::{OpId, TensorId};
use crate::tensors::Tensor;

/// One training step, to be changed by [`Step::apply`] alone: what an op was called with is described once, and what it
/// launches found once, for all copies of the step.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Ops, functions and annotations. One that was removed keeps its row, and no list names it.
    pub ops: TiVec<OpId, Op>,
    /// Tensors.
    pub tensors: TiVec<TensorId, Tensor>,
    /// For each host thread, its outermost ops in order.
    pub threads: TiVec<HostThreadId, Vec<OpId>>,
    /// How many streams its kernels were recorded on.
    pub streams: usize,
}

/// An op, a function of the autograd engine, or an annotation.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// Its name.
    pub name: String,
    /// Whether it is a label around a piece of code.
    pub annotation: bool,
    /// What it was called with; `None` where that was not recorded, as of functions and annotations.
    pub call: Option<Called>,
    /// Its thread.
    pub thread: HostThreadId,
    /// The op around it.
    pub parent: Option<OpId>,
    /// The ops inside it, in order.
    pub children: Vec<OpId>,
    /// The number that autograd gave it; a function of the backward pass has that of the op whose gradient it computes.
    pub sequence: Option<i64>,
    /// Where it comes from.
    pub origin: Origin,
    /// The node of the execution trace that it was, where that is known.
    pub node: Option<NodeId>,
    /// The op that it repeats, with its calls and times; it has tensors of its own.
    pub again: Option<OpId>,
    /// Which time it runs, where it repeats an op together with what hands over to it from other threads; 0 is the first.
    pub round: u32,
    /// Host time that a rule adds to it, in times of a small op with autograd.
    pub script: f64,
    /// Whether a CUDA graph launches what it launches.
    pub captured: bool,
    /// Whether what it copies is for the next step: on a stream of its own, which the next step waits for.
    pub ahead: bool,
    /// Where a rule moved what it launches: 0 for the stream that it is on anyway, 1 for the first beside it.
    pub stream: u32,
    /// The streams of which one waits here for the other.
    pub waits: Option<StreamWait>,
    /// The collective that it launches.
    pub exchange: Option<Exchange>,
}

/// A stream that waits for all that another was given so far, through an event. Streams are numbered as in [`Op::stream`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamWait {
    /// The stream that waits.
    pub waiting: u32,
    /// The stream that it waits for.
    pub awaited: u32,
}

/// Where an op of a step comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is in the recording, and runs as it did.
    Recorded(graph::OpId),
    /// It is in the recording; a rule changed its arguments or settings.
    Changed(graph::OpId, &'static str),
    /// A rule put it in.
    Inserted(&'static str),
}

impl Origin {
    /// The op of the recording, changed or not.
    #[must_use]
    pub fn recorded(self) -> Option<graph::OpId> {
        match self {
            Origin::Recorded(op) | Origin::Changed(op, _) => Some(op),
            Origin::Inserted(_) => None,
        }
    }
}

impl Op {
    /// What it takes and gives; `None` where it does neither, as functions and annotations.
    #[must_use]
    pub fn arguments(&self) -> Option<&Call> {
        self.call.as_deref().filter(|call| !call.inputs.is_empty() || !call.outputs.is_empty())
    }

    /// Marks it as changed by a rule, which reshaped its tensors.
    pub(crate) fn touch(&mut self, rule: &'static str) {
        self.call = self.call.as_ref().map(Called::anew);
        if let Origin::Recorded(op) = self.origin {
            self.origin = Origin::Changed(op, rule);
        }
    }
}

impl Step {
    /// What an op was called with, its tensors described.
    #[must_use]
    pub fn call(&self, op: OpId) -> Option<&OpCall> {
        let row = &self.ops[op];
        Some(row.call.as_ref()?.described(&row.name, &self.tensors))
    }

    /// What an op launches by itself; `None` where it is not known what it was called with.
    #[must_use]
    pub fn lower(&self, op: OpId, set: &OpSet) -> Option<Cow<'_, Lowering>> {
        let call = self.call(op)?;
        let known = self.ops[op].call.as_ref()?.lowered(call, set);
        Some(known.map_or_else(|| Cow::Owned(set.lower(call)), Cow::Borrowed))
    }

    /// The op of the recording that an op is, or repeats.
    #[must_use]
    pub fn recorded(&self, op: OpId) -> Option<graph::OpId> {
        let row = &self.ops[op];
        row.origin.recorded().or_else(|| self.recorded(row.again?))
    }

    /// The ops that run, each before those inside it, thread by thread in the order in which they begin.
    #[must_use]
    pub fn running(&self) -> Vec<OpId> {
        let mut all = Vec::with_capacity(self.ops.len());
        for roots in &self.threads {
            let mut open: Vec<OpId> = roots.iter().rev().copied().collect();
            while let Some(op) = open.pop() {
                all.push(op);
                open.extend(self.ops[op].children.iter().rev());
            }
        }
        all
    }

    /// The op around an op that no other is around but annotations.
    #[must_use]
    pub fn outermost(&self, op: OpId) -> OpId {
        let mut outermost = op;
        let mut around = self.ops[op].parent;
        while let Some(parent) = around {
            if !self.ops[parent].annotation {
                outermost = parent;
            }
            around = self.ops[parent].parent;
        }
        outermost
    }

    /// Whether an op is inside another, or is it.
    #[must_use]
    pub fn is_within(&self, op: OpId, around: OpId) -> bool {
        self.around(op).any(|at| at == around)
    }

    /// An op and those around it, from the inside.
    pub fn around(&self, op: OpId) -> impl Iterator<Item = OpId> {
        std::iter::successors(Some(op), |&op| self.ops[op].parent)
    }

    /// The order of two running ops in [`Step::running`].
    #[must_use]
    pub fn order(&self, one: OpId, other: OpId) -> Ordering {
        let path = |op: OpId| -> Vec<OpId> {
            let mut path: Vec<OpId> = self.around(op).collect();
            path.reverse();
            path
        };
        let (one, other) = (path(one), path(other));
        let shared = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        let (Some(&first), Some(&second)) = (one.get(shared), other.get(shared)) else {
            return one.len().cmp(&other.len());
        };
        let (row, thread) = (&self.ops[first], self.ops[second].thread);
        if row.parent.is_none() && row.thread != thread {
            return row.thread.cmp(&thread);
        }
        let siblings = match row.parent {
            Some(parent) => &self.ops[parent].children,
            None => &self.threads[thread],
        };
        match siblings.iter().find(|&&op| op == first || op == second) {
            Some(&op) if op == second => Ordering::Greater,
            _ => Ordering::Less,
        }
    }

    /// What the name of an op says.
    #[must_use]
    pub fn event(&self, op: OpId) -> EventName<'_> {
        EventName::of(&self.ops[op].name)
    }

    /// Whether the name of an op, or of one around it, says something.
    pub fn is_in<'s>(&'s self, op: OpId, says: impl Fn(EventName<'s>) -> bool) -> bool {
        self.around(op).any(|op| says(self.event(op)))
    }

    /// The op and all inside it, each before what is inside it.
    #[must_use]
    pub fn subtree(&self, op: OpId) -> Vec<OpId> {
        let (mut all, mut open) = (Vec::new(), vec![op]);
        while let Some(op) = open.pop() {
            all.push(op);
            open.extend(self.ops[op].children.iter().rev());
        }
        all
    }

    /// The list that an op stands in: its parent's children, or the outermost ops of its thread.
    pub(crate) fn siblings_mut(&mut self, parent: Option<OpId>, thread: HostThreadId) -> &mut Vec<OpId> {
        match parent {
            Some(parent) => &mut self.ops[parent].children,
            None => &mut self.threads[thread],
        }
    }
}
