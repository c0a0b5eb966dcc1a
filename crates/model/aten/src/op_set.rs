//! The set of ops that are known, and what they say of a call.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::bound_call::BoundCall;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::fallback;
use crate::op_def::{CallRule, Lowering, OpDef};
use crate::schema::{self, Signature};

/// Ops nest no deeper than this; a rule that calls itself would.
pub(crate) const DEEPEST: usize = 12;

/// The ops that are known.
///
/// [`OpSet::standard`] has those of PyTorch and of this project, [`OpSet::with`] adds others. A set is a value: what
/// reads ops takes it as an argument. A copy shares the definitions.
#[derive(Debug, Clone)]
pub struct OpSet {
    base: &'static Table,
    /// Ops that were added, the last first.
    added: Vec<Arc<Entry>>,
}

/// Definitions by name.
#[derive(Debug)]
pub(crate) struct Table {
    files: &'static [&'static [OpDef]],
    by_name: HashMap<&'static str, Entry>,
}

/// A definition under one of its names.
#[derive(Debug)]
struct Entry {
    name: &'static str,
    op: OpDef,
    /// Read from the schemas when it is first asked for.
    signature: OnceLock<Signature>,
}

impl Table {
    /// The ops of some files.
    pub(crate) fn new(files: &'static [&'static [OpDef]]) -> Table {
        let all = files.iter().flat_map(|file| file.iter());
        let by_name = all.flat_map(|op| op.names.iter().map(|&name| (name, Entry::new(name, op))));
        Table { files, by_name: by_name.collect() }
    }
}

impl Entry {
    fn new(name: &'static str, op: &OpDef) -> Entry {
        Entry { name, op: *op, signature: OnceLock::new() }
    }

    fn bind<'a>(&'a self, call: &'a OpCall) -> BoundCall<'a> {
        let read = || schema::signature(self.name, self.op.overload, self.op.arguments);
        BoundCall::new(call, self.signature.get_or_init(read), self.op.outputs)
    }
}

impl OpSet {
    /// The ops of a table.
    pub(crate) const fn of(base: &'static Table) -> OpSet {
        OpSet { base, added: Vec::new() }
    }

    /// The set with one more op; where one of its names is known, the new definition counts.
    #[must_use]
    pub fn with(mut self, op: OpDef) -> OpSet {
        self.added.splice(0..0, op.names.iter().map(|name| Arc::new(Entry::new(name, &op))));
        self
    }

    /// Whether it is this very set, or a copy of it.
    #[must_use]
    pub fn is(&self, other: &OpSet) -> bool {
        let same = |(one, two): (&Arc<Entry>, &Arc<Entry>)| Arc::ptr_eq(one, two);
        std::ptr::eq(self.base, other.base)
            && self.added.len() == other.added.len()
            && self.added.iter().zip(&other.added).all(same)
    }

    /// What is known of an op.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&OpDef> {
        self.entry(name).map(|entry| &entry.op)
    }

    /// Every known name with its op; one that was added comes before the one it replaces.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &OpDef)> {
        let standard = self.base.files.iter().flat_map(|file| file.iter());
        let standard = standard.flat_map(|op| op.names.iter().map(move |&name| (name, op)));
        self.added.iter().map(|entry| (entry.name, &entry.op)).chain(standard)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let added = self.added.iter().find(|entry| entry.name == name).map(Arc::as_ref);
        added.or_else(|| self.base.by_name.get(name))
    }

    /// A call with the names of its arguments; `None` where its op is not known.
    #[must_use]
    pub fn bind<'a>(&'a self, call: &'a OpCall) -> Option<BoundCall<'a>> {
        self.entry(&call.name).map(|entry| entry.bind(call))
    }

    /// What a call launches by itself. An unknown op is priced by its bytes; one without any tensor on the device
    /// launches nothing.
    #[must_use]
    pub fn lower(&self, call: &OpCall) -> Lowering {
        if on_host(call) {
            return Lowering::Nothing;
        }
        let lowered = self.entry(&call.name).and_then(|entry| (entry.op.lower)(&entry.bind(call)));
        match lowered {
            None => self.by_bytes(call),
            Some(Lowering::Unknown(bare)) => match self.by_bytes(call) {
                Lowering::Unknown(whole) => Lowering::Unknown(whole),
                _ => Lowering::Unknown(bare),
            },
            Some(known) => known,
        }
    }

    /// A call priced by the bytes that it can touch, whatever is known of its op.
    #[must_use]
    pub fn by_bytes(&self, call: &OpCall) -> Lowering {
        fallback::lower(call, self.outputs(call).unwrap_or_default())
    }

    /// What a call gives: as recorded, else by the op's shape rule.
    #[must_use]
    pub fn outputs(&self, call: &OpCall) -> Option<Vec<Arg>> {
        if !call.outputs.is_empty() {
            return Some(call.outputs.clone());
        }
        self.bind(call)?.results()
    }

    /// The ops that a call calls in turn; none where it is a leaf, or they are not known.
    #[must_use]
    pub fn expand(&self, call: &OpCall) -> Vec<OpCall> {
        self.follow(call, |op| op.expand).unwrap_or_default()
    }

    /// The ops that autograd calls for the gradients of a call, in their order; views are left out. Every tensor of
    /// floating-point numbers is taken to need its gradient, and the gradient of the result to be dense and in the
    /// result's order. Ops that call others get the gradients of these, last first.
    #[must_use]
    pub fn backward(&self, call: &OpCall) -> Vec<OpCall> {
        self.gradients(call, 0)
    }

    fn gradients(&self, call: &OpCall, depth: usize) -> Vec<OpCall> {
        match self.follow(call, |op| op.backward) {
            Some(calls) => calls,
            None if depth < DEEPEST => {
                self.expand(call).iter().rev().flat_map(|child| self.gradients(child, depth + 1)).collect()
            }
            None => Vec::new(),
        }
    }

    /// What a rule of a call's op says; `None` without such a rule.
    fn follow(&self, call: &OpCall, rule: fn(&OpDef) -> Option<CallRule>) -> Option<Vec<OpCall>> {
        let entry = self.entry(&call.name)?;
        rule(&entry.op).map(|rule| rule(&entry.bind(call)))
    }
}

/// Whether all tensors of a call lie in host memory.
fn on_host(call: &OpCall) -> bool {
    let host = |tensor: &Tensor| matches!(tensor.device, Device::Cpu | Device::Pinned);
    let mut all = call.inputs.iter().chain(&call.outputs).flat_map(Arg::tensors).peekable();
    all.peek().is_some() && all.all(host)
}
