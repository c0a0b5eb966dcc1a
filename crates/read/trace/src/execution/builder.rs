//! Sorts nodes into columns.

use super::node::{RawNode, RawValues};
use super::{
    DimRange, ExecutionTrace, Node, Nodes, Schema, Tensor, TensorIdx, Value, ValueRange, Values, attributes,
    types,
};
use crate::collective::{Carrier, Collective, intern};
use crate::json::{self, Cursor, Fault, Text};
use crate::list::Sink;
use crate::notes::{Note, Notes};
use crate::number;
use crate::strings::{NameId, Strings};

/// How deep lists of values may nest.
const MAX_DEPTH: usize = 32;

/// An execution trace in the making.
#[derive(Default)]
pub(crate) struct Builder {
    nodes: Nodes,
    values: Values,
    names: Strings,
    notes: Notes,
    collectives: Vec<Collective>,
    /// Items of lists that are not complete yet.
    open: Vec<Value>,
}

impl Sink for Builder {
    fn object(&mut self, cursor: &mut Cursor<'_>, base: u64) -> Result<(), Fault> {
        let at = base + cursor.at as u64;
        let node = RawNode::read(cursor)?;
        self.keep(&node, at);
        Ok(())
    }

    /// Attributes too begin with a name, but no id follows.
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

    /// The finished trace, its nodes by id.
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
            notes: self.notes,
        }
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

    /// All inputs or outputs of a node; what cannot be made sense of is noted.
    fn values(&mut self, raw: &RawValues<'_>, at: u64) -> ValueRange {
        if raw.values.is_empty() {
            return ValueRange::default();
        }
        let mut types = List::new(raw.types);
        let mark = self.open.len();
        let list =
            self.list(&mut Cursor::new(raw.values), || types.next_text(), raw.shapes, raw.strides, at, 0);
        if list.is_err() {
            self.notes.add(Note::OddValue, at);
        }
        self.close(mark)
    }

    /// Leaves the items of the list at the cursor among the open values.
    fn list<'a>(
        &mut self,
        cursor: &mut Cursor<'_>,
        mut next_type: impl FnMut() -> &'a [u8],
        shapes: &[u8],
        strides: &[u8],
        at: u64,
        depth: usize,
    ) -> Result<(), Fault> {
        let (mut shapes, mut strides) = (List::new(shapes), List::new(strides));
        if depth > MAX_DEPTH || !cursor.enter_array()? {
            return Err(Fault::Unexpected);
        }
        while cursor.item()? {
            let value = self.value(cursor, next_type(), shapes.next_raw(), strides.next_raw(), at, depth)?;
            self.open.push(value);
        }
        Ok(())
    }

    /// Moves the open values from `mark` on to where they stay.
    fn close(&mut self, mark: usize) -> ValueRange {
        let first = self.values.values.len() as u32;
        self.values.values.extend(self.open.drain(mark..));
        ValueRange { first, end: self.values.values.len() as u32 }
    }

    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        kind: &[u8],
        shape: &[u8],
        strides: &[u8],
        at: u64,
        depth: usize,
    ) -> Result<Value, Fault> {
        let open = cursor.peek()?;
        if open == b'['
            && let Some(dtype) = types::tensor(kind)
        {
            return self.tensor(cursor, dtype, shape, strides, at);
        }
        if open == b'[' {
            let mark = self.open.len();
            let mut types = types::elements(kind);
            let list = self.list(cursor, || types.next(), shape, strides, at, depth + 1);
            let range = self.close(mark);
            return list.map(|()| Value::List(range));
        }
        Ok(match cursor.scalar()? {
            json::Value::Bool(yes) => Value::Bool(yes),
            json::Value::Null => Value::None,
            json::Value::Number(digits) => number_value(digits, kind).unwrap_or_else(|| self.odd(at)),
            json::Value::NotANumber(word) => number::float(word).map_or(Value::Unknown, Value::Float),
            json::Value::Text(text) if text.raw == b"<None>" => Value::None,
            json::Value::Text(text) => match kind {
                b"Device" => Value::Device(self.intern(text, at)),
                b"Double" | b"Float" | b"Int" => {
                    number_value(text.raw, kind).unwrap_or_else(|| Value::Str(self.intern(text, at)))
                }
                _ => Value::Str(self.intern(text, at)),
            },
            json::Value::Object | json::Value::Array => self.odd(at),
        })
    }

    fn odd(&mut self, at: u64) -> Value {
        self.notes.add(Note::OddValue, at);
        Value::Unknown
    }

    /// `[tensor_id, storage_id, offset, numel, itemsize, "cuda:0"]`, in 1.0.0 without the device.
    fn tensor(
        &mut self,
        cursor: &mut Cursor<'_>,
        dtype: &[u8],
        shape: &[u8],
        strides: &[u8],
        at: u64,
    ) -> Result<Value, Fault> {
        let mut numbers = [0; 5];
        let mut count = 0;
        let mut device = Text::default();
        cursor.enter_array()?;
        while cursor.item()? {
            match numbers.get_mut(count) {
                Some(number) => *number = cursor.unsigned()?.unwrap_or(0),
                None if count == 5 => device = cursor.string()?.unwrap_or_default(),
                None => cursor.skip()?,
            }
            count += 1;
        }
        if count < 5 {
            return Ok(self.odd(at));
        }
        let [tensor_id, storage_id, offset, numel, itemsize] = numbers;
        let tensor = Tensor {
            tensor_id,
            storage_id,
            offset,
            numel,
            itemsize: u32::try_from(itemsize).unwrap_or(u32::MAX),
            device: self.intern(device, at),
            dtype: self.intern(Text { raw: dtype, escaped: false }, at),
            shape: self.dims(shape, at),
            strides: (!strides.is_empty()).then(|| self.dims(strides, at)),
        };
        self.values.tensors.push(tensor);
        Ok(Value::Tensor(TensorIdx(self.values.tensors.len() as u32 - 1)))
    }

    /// A list of numbers such as `[2048, 64]`.
    fn dims(&mut self, raw: &[u8], at: u64) -> DimRange {
        let first = self.values.dims.len() as u32;
        let mut list = List::new(raw);
        loop {
            match list.next_raw() {
                b"" => break,
                digits => match number::integer(digits) {
                    Some(number) => self.values.dims.push(number),
                    None => self.notes.add(Note::OddValue, at),
                },
            }
        }
        DimRange { first, end: self.values.dims.len() as u32 }
    }
}

/// A number of the declared type: the writer prints doubles that are whole without a point.
fn number_value(digits: &[u8], kind: &[u8]) -> Option<Value> {
    match number::integer(digits) {
        Some(whole) if !matches!(kind, b"Double" | b"Float") && !digits.contains(&b'.') => {
            Some(Value::Int(whole))
        }
        _ => number::float(digits).map(Value::Float),
    }
}

/// Steps through a list that may be missing or shorter than its companions.
struct List<'a> {
    cursor: Cursor<'a>,
    open: bool,
}

impl<'a> List<'a> {
    fn new(raw: &'a [u8]) -> List<'a> {
        let mut cursor = Cursor::new(raw);
        let open = !raw.is_empty() && cursor.enter_array() == Ok(true);
        List { cursor, open }
    }

    /// The next item as written; empty when there is none.
    fn next_raw(&mut self) -> &'a [u8] {
        self.open = self.open && self.cursor.item() == Ok(true);
        if !self.open {
            return b"";
        }
        self.cursor.raw().unwrap_or_else(|_| {
            self.open = false;
            b""
        })
    }

    /// The contents of the next string; empty when there is none.
    fn next_text(&mut self) -> &'a [u8] {
        let raw = self.next_raw();
        raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or_default()
    }
}
