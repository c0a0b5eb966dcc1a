//! Set of known ops, and their rules applied to a call.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::bound_call::BoundCall;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::fallback;
use crate::op_def::{CallRule, Lowering, OpDef};
use crate::schema::{self, Signature};

/// Maximum nesting depth of ops; a rule that calls itself would exceed it.
pub(crate) const DEEPEST: usize = 12;

/// Set of known ops.
///
/// [`OpSet::standard`] has those of PyTorch and of this project, [`OpSet::with`] adds others. A set is a value: code that
/// interprets ops takes it as an argument. A copy shares the definitions.
#[derive(Debug, Clone)]
pub struct OpSet {
    base: &'static Table,
    /// Added ops, the last one first.
    added: Vec<Arc<Entry>>,
}

/// Definitions by name.
#[derive(Debug)]
pub(crate) struct Table {
    files: &'static [&'static [OpDef]],
    by_name: HashMap<&'static str, Entry>,
}

/// Definition under one of its names.
#[derive(Debug)]
struct Entry {
    name: &'static str,
    op: OpDef,
    /// Signature, read from the schemas at the first use.
    signature: OnceLock<Signature>,
}

impl Table {
    /// Returns the table of the ops in some files.
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
    /// Returns the set of a table's ops.
    pub(crate) const fn from_table(base: &'static Table) -> OpSet {
        OpSet { base, added: Vec::new() }
    }

    /// Returns the set with one more op; it replaces definitions of the same names.
    #[must_use]
    pub fn with(mut self, op: OpDef) -> OpSet {
        self.added.splice(0..0, op.names.iter().map(|name| Arc::new(Entry::new(name, &op))));
        self
    }

    /// Whether it is this same set, or a copy of it.
    #[must_use]
    pub fn is(&self, other: &OpSet) -> bool {
        let same = |(one, two): (&Arc<Entry>, &Arc<Entry>)| Arc::ptr_eq(one, two);
        std::ptr::eq(self.base, other.base)
            && self.added.len() == other.added.len()
            && self.added.iter().zip(&other.added).all(same)
    }

    /// Returns the definition of an op.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&OpDef> {
        self.entry(name).map(|entry| &entry.op)
    }

    /// Returns every known name with its op; an added op comes before the one it replaces.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &OpDef)> {
        let standard = self.base.files.iter().flat_map(|file| file.iter());
        let standard = standard.flat_map(|op| op.names.iter().map(move |&name| (name, op)));
        self.added.iter().map(|entry| (entry.name, &entry.op)).chain(standard)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let added = self.added.iter().find(|entry| entry.name == name).map(Arc::as_ref);
        added.or_else(|| self.base.by_name.get(name))
    }

    /// Returns a call with the names of its arguments; `None` if its op is unknown.
    #[must_use]
    pub fn bind<'a>(&'a self, call: &'a OpCall) -> Option<BoundCall<'a>> {
        self.entry(&call.name).map(|entry| entry.bind(call))
    }

    /// Returns the launches of a call itself. The cost of an unknown op is its bytes; a call without any tensor on the device
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

    /// Returns the bytes that a call can access as its cost, even if its op is known.
    #[must_use]
    pub fn by_bytes(&self, call: &OpCall) -> Lowering {
        fallback::lower(call, self.outputs(call).unwrap_or_default())
    }

    /// Returns the results of a call: as recorded, otherwise by the op's shape rule.
    #[must_use]
    pub fn outputs(&self, call: &OpCall) -> Option<Vec<Arg>> {
        if !call.outputs.is_empty() {
            return Some(call.outputs.clone());
        }
        self.bind(call)?.results()
    }

    /// Returns the ops that a call calls; empty if it is a leaf, or if they are unknown.
    #[must_use]
    pub fn expand(&self, call: &OpCall) -> Vec<OpCall> {
        self.follow(call, |op| op.expand).unwrap_or_default()
    }

    /// Returns the ops that autograd calls for the gradients of a call, in order; views are left out. Every floating-point
    /// tensor is assumed to need its gradient, and the gradient of the result to be dense and in the
    /// result's order. For ops that call others, these are the gradient ops of the called ops, last first.
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

    /// Applies a rule of a call's op; `None` without such a rule.
    fn follow(&self, call: &OpCall, rule: fn(&OpDef) -> Option<CallRule>) -> Option<Vec<OpCall>> {
        let entry = self.entry(&call.name)?;
        rule(&entry.op).map(|rule| rule(&entry.bind(call)))
    }
}

/// Whether all tensors of a call are in host memory.
fn on_host(call: &OpCall) -> bool {
    let host = |tensor: &Tensor| matches!(tensor.device, Device::Cpu | Device::Pinned);
    let mut all = call.inputs.iter().chain(&call.outputs).flat_map(Arg::tensors).peekable();
    all.peek().is_some() && all.all(host)
}
