//! Ops that a rule puts in.

use crate::call::Call;
use crate::called::Called;
use crate::exchange::Exchange;
use crate::ids::{OpId, TensorId};
use crate::step::{Op, Origin, Step, StreamWait};

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
    /// Which time it runs, where what it repeats runs again on all threads; 0 where it repeats nothing, or is one thread's alone.
    pub round: u32,
    /// Host time that it takes more, in times of a small op with autograd.
    pub script: f64,
    /// The streams of which one waits here for the other.
    pub waits: Option<StreamWait>,
    /// The stream that what it launches goes to, numbered as [`Op::stream`](crate::Op::stream); what is inside it has its own.
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

    /// A function of the autograd engine, or another without arguments of its own.
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

    /// A stream that is made to wait for another: an event is recorded on the one, and waited for on the other.
    #[must_use]
    pub fn waiting(name: &str, waits: StreamWait) -> NewOp {
        NewOp { waits: Some(waits), ..NewOp::around(name, Vec::new()) }
    }

    /// An op of the step once more, with all inside it; `tensor` says which tensors it has now.
    pub fn again(step: &Step, op: OpId, tensor: &mut impl FnMut(TensorId) -> TensorId) -> NewOp {
        let row = &step.ops[op];
        let call = row.call.as_deref().map(|call| call.with(tensor));
        let children = row.children.iter().map(|&child| NewOp::again(step, child, tensor)).collect();
        NewOp { call, again: Some(op), waits: row.waits, ..NewOp::around(&row.name, children) }
    }

    /// The same in a round: it waits for what it repeats waited for on other threads, of that round.
    #[must_use]
    pub fn in_round(mut self, round: u32) -> NewOp {
        self.round = round;
        self.children = self.children.into_iter().map(|child| child.in_round(round)).collect();
        self
    }

    /// On another stream, with all inside it.
    #[must_use]
    pub fn on_stream(mut self, stream: u32) -> NewOp {
        self.stream = stream;
        self.children = self.children.into_iter().map(|child| child.on_stream(stream)).collect();
        self
    }

    /// Launching a collective.
    #[must_use]
    pub fn exchanging(self, exchange: Exchange) -> NewOp {
        NewOp { exchange: Some(exchange), ..self }
    }

    /// With more host time, in times of a small op with autograd.
    #[must_use]
    pub fn taking(self, script: f64) -> NewOp {
        NewOp { script, ..self }
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
            annotation: self.again.is_some_and(|again| step.ops[again].annotation),
            call: self.call.clone().map(Called::from),
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
