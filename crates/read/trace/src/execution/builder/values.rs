//! Reads the inputs and outputs of a node: numbers, text, tensors and lists of them.

use super::Builder;
use super::list::List;
use crate::execution::node::RawValues;
use crate::execution::{DimRange, Tensor, TensorIdx, Value, ValueRange, types};
use crate::json::{self, Cursor, Fault, Text};
use crate::number;
use crate::repairs::Note;

/// Maximum nesting depth of lists of values.
const MAX_DEPTH: usize = 32;

impl Builder {
    /// Reads all inputs or outputs of a node; unreadable values are recorded in the notes.
    pub(super) fn values(&mut self, raw: &RawValues<'_>, at: u64) -> ValueRange {
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

    /// Appends the items of the list at the cursor to the open values.
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

    /// Moves the open values from `mark` on to their final place.
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

    /// Reads `[tensor_id, storage_id, offset, numel, itemsize, "cuda:0"]`, in 1.0.0 without the device.
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

    /// Reads a list of numbers such as `[2048, 64]`.
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

/// Parses a number of the declared type: the writer prints whole doubles without a point.
fn number_value(digits: &[u8], kind: &[u8]) -> Option<Value> {
    match number::integer(digits) {
        Some(whole) if !matches!(kind, b"Double" | b"Float") && !digits.contains(&b'.') => {
            Some(Value::Int(whole))
        }
        _ => number::float(digits).map(Value::Float),
    }
}
