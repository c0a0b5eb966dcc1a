//! Sorts nodes into columns.

mod list;
mod values;

use super::node::RawNode;
use super::{ExecutionTrace, LinkedActivity, Node, Nodes, Schema, Value, Values, attributes};
use crate::collective::{Carrier, Collective, intern};
use crate::json::{self, Cursor, Fault, Text};
use crate::kineto::Category;
use crate::list::Sink;
use crate::repairs::{Note, Notes};
use crate::strings::{NameId, Strings};

/// Execution trace under construction.
#[derive(Default)]
pub(crate) struct Builder {
    nodes: Nodes,
    values: Values,
    names: Strings,
    notes: Notes,
    collectives: Vec<Collective>,
    linked: Vec<LinkedActivity>,
    /// Items of incomplete lists.
    open: Vec<Value>,
}

impl Sink for Builder {
    fn object(&mut self, cursor: &mut Cursor<'_>, base: u64) -> Result<(), Fault> {
        let at = base + cursor.at as u64;
        let node = RawNode::read(cursor)?;
        if node.category.is_some_and(Category::is_of_device) {
            self.keep_linked(&node, at);
        } else {
            self.keep(&node, at);
        }
        Ok(())
    }

    /// Attributes too begin with a name, but are not followed by an id.
    fn looks_like_item(bytes: &[u8]) -> bool {
        let mut cursor = Cursor::new(&bytes[1..]);
        match cursor.key() {
            Ok(Some(Text { raw: b"id", .. })) => true,
            Ok(Some(Text { raw: b"name", .. })) => {
                matches!(cursor.value(), Ok(json::Value::Text(_)))
                    && matches!(cursor.key(), Ok(Some(Text { raw: b"id", .. })))
            }
            _ => false,
        }
    }

    fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }
}

impl Builder {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the finished trace, with its nodes by id.
    pub(crate) fn finish(mut self, schema: Schema, pid: i64) -> ExecutionTrace {
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        order.sort_by_key(|&row| self.nodes.id[row as usize]);
        self.nodes.reorder(&order);
        for pair in self.nodes.id.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.notes.add(Note::DuplicateId, pair[0]);
        }
        let mut place = vec![0; order.len()];
        for (new, &old) in (0..).zip(&order) {
            place[old as usize] = new;
        }
        for collective in &mut self.collectives {
            if let Carrier::Node(row) = &mut collective.carrier {
                *row = place[*row as usize];
            }
        }
        self.collectives.sort_by_key(|collective| collective.carrier);
        let process_groups = super::trace::process_groups(&self.nodes, &self.values, &self.names);
        ExecutionTrace {
            schema,
            pid,
            names: self.names,
            nodes: self.nodes,
            values: self.values,
            collectives: self.collectives,
            process_groups,
            linked: self.linked,
            notes: self.notes,
        }
    }

    /// Stores device work separately: it is not an op, and its thread is a stream.
    fn keep_linked(&mut self, raw: &RawNode<'_>, at: u64) {
        let (Some(kind), Some(name)) = (raw.category.and_then(Category::activity), raw.name) else { return };
        let name = self.intern(name, at);
        self.linked.push(LinkedActivity { kind, name, parent: raw.parent, start: raw.start, dur: raw.dur });
    }

    fn keep(&mut self, raw: &RawNode<'_>, at: u64) {
        let (Some(id), Some(name)) = (raw.id, raw.name) else {
            return self.notes.add(Note::MissingField, at);
        };
        let node = Node {
            id,
            name: self.intern(name, at),
            parent: raw.parent,
            rf_id: raw.rf_id,
            fw_parent: raw.fw_parent,
            seq_id: raw.seq_id.unwrap_or(-1),
            scope: u8::try_from(raw.scope).unwrap_or(u8::MAX),
            tid: raw.tid,
            fw_tid: raw.fw_tid,
            op_schema: self.intern(raw.op_schema, at),
            kernel_backend: self.intern(raw.kernel_backend, at),
            kernel_file: self.intern(raw.kernel_file, at),
            inputs: self.values(&raw.inputs, at),
            outputs: self.values(&raw.outputs, at),
        };
        if let Some(attributes) = raw.collective {
            self.keep_collective(attributes);
        }
        self.nodes.push(node);
    }

    fn keep_collective(&mut self, raw: &[u8]) {
        let mut collective = Collective::new(Carrier::Node(self.nodes.len() as u32));
        let Builder { names, notes, collectives, .. } = self;
        let read = attributes::each(&mut Cursor::new(raw), |name, value| {
            collective.field(name, &mut Cursor::new(value), names, notes).map(|_| ())
        });
        if read.is_ok() {
            collectives.push(collective);
        }
    }

    fn intern(&mut self, text: Text<'_>, at: u64) -> NameId {
        intern(text, &mut self.names, &mut self.notes, at)
    }
}
