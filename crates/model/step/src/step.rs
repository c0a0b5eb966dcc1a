//! The step: nested ops, and the tensors between them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use steptime_aten::{Lowering, OpCall, OpSet};
use steptime_graph::execution::NodeId;
use steptime_graph::names::EventName;
use steptime_graph::{self as graph, HostThreadId, TiVec};

use crate::call::Call;
use crate::exchange::Exchange;
use crate::ids::{OpId, TensorId};
use crate::node_order::NodeOrder;
use crate::shared_call::SharedCall;
use crate::tensors::Tensor;

/// Intermediate representation of one training step: a graph that only [`StepIr::apply`] changes. The described call of an op and its
/// launches are computed once and shared by all copies of the step.
#[derive(Debug, Clone, Default)]
pub struct StepIr {
    /// Ops, functions and annotations. A removed one keeps its row, but no list contains it.
    pub ops: TiVec<OpId, Op>,
    /// Tensors.
    pub tensors: TiVec<TensorId, Tensor>,
    /// For each host thread, its outermost ops in order.
    pub threads: TiVec<HostThreadId, Vec<OpId>>,
    /// Number of streams with recorded kernels.
    pub streams: usize,
    /// Order of the nodes of CUDA graphs by their data; `None` where they run in the order of their launches.
    pub nodes: Option<Arc<NodeOrder>>,
}

/// An op, a function of the autograd engine, or an annotation.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    /// Name.
    pub name: String,
    /// Whether it is a label around a piece of code.
    pub annotation: bool,
    /// Arguments and results; `None` where they were not recorded, as for functions and annotations.
    pub call: Option<SharedCall>,
    /// Host thread.
    pub thread: HostThreadId,
    /// The op around it.
    pub parent: Option<OpId>,
    /// The ops inside it, in order.
    pub children: Vec<OpId>,
    /// Sequence number of autograd; a backward function has that of the op that it differentiates.
    pub sequence: Option<i64>,
    /// Origin of the op.
    pub origin: Origin,
    /// Its node in the execution trace, where known.
    pub node: Option<NodeId>,
    /// The op that it repeats, with its calls and times; it has its own tensors.
    pub again: Option<OpId>,
    /// Index of the repetition, where an op is repeated together with its hand-offs from other threads; 0 is the original.
    pub round: u32,
    /// Additional host time from a rule, in units of a small op with autograd.
    pub script: f64,
    /// Whether a CUDA graph launches its kernels.
    pub captured: bool,
    /// Whether it copies for the next step: on a separate stream, which the next step waits for.
    pub ahead: bool,
    /// Stream to which a rule moved its launches: 0 for its own stream, 1 for the first additional one.
    pub stream: u32,
    /// Wait of one stream for another, issued by this op.
    pub waits: Option<StreamWait>,
    /// The collective that it launches.
    pub exchange: Option<Exchange>,
}

/// Wait of a stream for all earlier work of another, through an event. Streams are numbered as in [`Op::stream`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamWait {
    /// The waiting stream.
    pub waiting: u32,
    /// The awaited stream.
    pub awaited: u32,
}

/// Origin of an op of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Recorded, and unchanged.
    Recorded(graph::OpId),
    /// Recorded; a rule changed its arguments or settings.
    Changed(graph::OpId, &'static str),
    /// Inserted by a rule.
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
    /// Arguments and results; `None` where it has neither, as functions and annotations.
    #[must_use]
    pub fn arguments(&self) -> Option<&Call> {
        self.call.as_deref().filter(|call| !call.inputs.is_empty() || !call.outputs.is_empty())
    }

    /// Marks it as changed by a rule, which reshaped its tensors.
    pub(crate) fn touch(&mut self, rule: &'static str) {
        self.call = self.call.as_ref().map(SharedCall::anew);
        if let Origin::Recorded(op) = self.origin {
            self.origin = Origin::Changed(op, rule);
        }
    }
}

impl StepIr {
    /// The call of an op, with its tensors described.
    #[must_use]
    pub fn call(&self, op: OpId) -> Option<&OpCall> {
        let row = &self.ops[op];
        Some(row.call.as_ref()?.described(&row.name, &self.tensors))
    }

    /// The launches of an op itself; `None` where its call is unknown.
    #[must_use]
    pub fn lower(&self, op: OpId, set: &OpSet) -> Option<Cow<'_, Lowering>> {
        let call = self.call(op)?;
        let known = self.ops[op].call.as_ref()?.lowered(call, set);
        Some(known.map_or_else(|| Cow::Owned(set.lower(call)), Cow::Borrowed))
    }

    /// The recorded op that an op is, or repeats.
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

    /// The outermost op around an op, apart from annotations.
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

    /// The order of two running ops in [`StepIr::running`].
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

    /// Meaning of the name of an op.
    #[must_use]
    pub fn event(&self, op: OpId) -> EventName<'_> {
        EventName::parse(&self.ops[op].name)
    }

    /// Whether the name of an op, or of one around it, has a meaning for which `says` holds.
    pub fn is_in<'s>(&'s self, op: OpId, says: impl Fn(EventName<'s>) -> bool) -> bool {
        self.around(op).any(|op| says(self.event(op)))
    }

    /// The op and all ops inside it, each before those inside it.
    #[must_use]
    pub fn subtree(&self, op: OpId) -> Vec<OpId> {
        let (mut all, mut open) = (Vec::new(), vec![op]);
        while let Some(op) = open.pop() {
            all.push(op);
            open.extend(self.ops[op].children.iter().rev());
        }
        all
    }

    /// The list that contains an op: its parent's children, or the outermost ops of its thread.
    pub(crate) fn siblings_mut(&mut self, parent: Option<OpId>, thread: HostThreadId) -> &mut Vec<OpId> {
        match parent {
            Some(parent) => &mut self.ops[parent].children,
            None => &mut self.threads[thread],
        }
    }
}
