//! Ops that a rule inserts.

use crate::call::Call;
use crate::exchange::Exchange;
use crate::ids::{OpId, TensorId};
use crate::shared_call::SharedCall;
use crate::step::{Op, Origin, StepIr, StreamWait};

/// An op to insert, with the ops inside it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOp {
    /// Name.
    pub name: String,
    /// Arguments and results; `None` for a function or an annotation.
    pub call: Option<Call>,
    /// The ops inside it, in order.
    pub children: Vec<NewOp>,
    /// The op that it repeats.
    pub again: Option<OpId>,
    /// Index of the repetition, where the repeated ops run again on all threads; 0 where it repeats nothing, or on one thread only.
    pub round: u32,
    /// Additional host time, in units of a small op with autograd.
    pub script: f64,
    /// Wait of one stream for another, issued by this op.
    pub waits: Option<StreamWait>,
    /// Stream of its launches, numbered as [`Op::stream`](crate::Op::stream); ops inside it have their own.
    pub stream: u32,
    /// The collective that it launches.
    pub exchange: Option<Exchange>,
}

impl NewOp {
    /// An op with arguments and results.
    #[must_use]
    pub fn new(name: &str, call: Call) -> NewOp {
        NewOp { call: Some(call), ..NewOp::around(name, Vec::new()) }
    }

    /// A function of the autograd engine, or another op without its own arguments.
    #[must_use]
    pub fn around(name: &str, children: Vec<NewOp>) -> NewOp {
        NewOp {
            name: name.to_owned(),
            call: None,
            children,
            again: None,
            round: 0,
            script: 0.0,
            waits: None,
            stream: 0,
            exchange: None,
        }
    }

    /// A wait of one stream for another: an event is recorded on one, and awaited on the other.
    #[must_use]
    pub fn waiting(name: &str, waits: StreamWait) -> NewOp {
        NewOp { waits: Some(waits), ..NewOp::around(name, Vec::new()) }
    }

    /// A repetition of an op of the step, with all ops inside it; `tensor` maps its tensors to the new ones.
    pub fn repeat(step: &StepIr, op: OpId, tensor: &mut impl FnMut(TensorId) -> TensorId) -> NewOp {
        let row = &step.ops[op];
        let call = row.call.as_deref().map(|call| call.with(tensor));
        let children = row.children.iter().map(|&child| NewOp::repeat(step, child, tensor)).collect();
        NewOp { call, again: Some(op), waits: row.waits, ..NewOp::around(&row.name, children) }
    }

    /// The same op in a round: it waits for the hand-offs of the repeated op on other threads, in that round.
    #[must_use]
    pub fn in_round(mut self, round: u32) -> NewOp {
        self.round = round;
        self.children = self.children.into_iter().map(|child| child.in_round(round)).collect();
        self
    }

    /// The same op on another stream, with all ops inside it.
    #[must_use]
    pub fn on_stream(mut self, stream: u32) -> NewOp {
        self.stream = stream;
        self.children = self.children.into_iter().map(|child| child.on_stream(stream)).collect();
        self
    }

    /// The same op, launching a collective.
    #[must_use]
    pub fn exchanging(self, exchange: Exchange) -> NewOp {
        NewOp { exchange: Some(exchange), ..self }
    }

    /// The same op with more host time, in units of a small op with autograd.
    #[must_use]
    pub fn taking(self, script: f64) -> NewOp {
        NewOp { script, ..self }
    }

    /// The same op with ops inside.
    #[must_use]
    pub fn with(mut self, children: Vec<NewOp>) -> NewOp {
        self.children = children;
        self
    }

    /// Adds the op, and those inside it, to a step, without inserting it into a list.
    pub(crate) fn add(&self, step: &mut StepIr, like: &Op, parent: Option<OpId>, rule: &'static str) -> OpId {
        let at = step.ops.push_and_get_key(Op {
            name: self.name.clone(),
            annotation: self.again.is_some_and(|again| step.ops[again].annotation),
            call: self.call.clone().map(SharedCall::from),
            thread: like.thread,
            parent,
            children: Vec::new(),
            sequence: None,
            origin: Origin::Inserted(rule),
            node: None,
            again: self.again,
            round: self.round,
            script: self.script
                + self.again.filter(|_| self.round > 0).map_or(0.0, |again| step.ops[again].script),
            captured: like.captured,
            ahead: self.again.is_some_and(|again| step.ops[again].ahead),
            stream: self.again.map_or(self.stream, |again| step.ops[again].stream),
            waits: self.waits,
            exchange: self.exchange.or_else(|| step.ops[self.again?].exchange),
        });
        let children = self.children.iter().map(|child| child.add(step, like, Some(at), rule)).collect();
        step.ops[at].children = children;
        at
    }
}
