//! Shapes, types and values of the inputs of ops.

mod shapes;

use crate::collective::intern;
use crate::json::{Cursor, Fault, Text, Value};
use crate::repairs::{Note, Notes};
use crate::strings::{NameId, Strings};
use shapes::Shapes;

/// Inputs of the ops for which they were recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpInputs {
    /// Rows of [`crate::HostOps`], ascending.
    ops: Vec<u32>,
    /// End of the inputs of each of them.
    ends: Vec<u32>,
    dtypes: Vec<NameId>,
    concrete: Vec<NameId>,
    dims: Shapes,
    strides: Shapes,
}

/// Inputs of one op.
#[derive(Clone, Copy, Debug)]
pub struct OpInput<'a> {
    table: &'a OpInputs,
    first: usize,
    count: usize,
}

impl OpInputs {
    /// Returns the inputs of row `op` of [`crate::HostOps`].
    #[must_use]
    pub fn get(&self, op: u32) -> Option<OpInput<'_>> {
        self.ops.binary_search(&op).ok().map(|index| self.at(index))
    }

    /// Returns the number of ops with recorded inputs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether no inputs were recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Returns the ops and their inputs, by row.
    pub fn iter(&self) -> impl Iterator<Item = (u32, OpInput<'_>)> {
        self.ops.iter().enumerate().map(|(index, &op)| (op, self.at(index)))
    }

    fn at(&self, index: usize) -> OpInput<'_> {
        let first = index.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        OpInput { table: self, first, count: self.ends[index] as usize - first }
    }

    /// Reads the inputs of `op` from its `args`; `op` must come after all ops before.
    pub(super) fn read(&mut self, op: u32, args: &[u8], names: &mut Strings, notes: &mut Notes, at: u64) {
        let mut fine = true;
        let mut check = |result: Result<(), Fault>| fine &= result.is_ok();
        let mut fields = Fields::default();
        check(fields.find(args));
        check(self.dims.read(fields.dims));
        let end = self.dims.len();
        check(self.strides.read(fields.strides));
        self.strides.resize(end);
        let mut named = |column: &mut Vec<NameId>, list| {
            check(each(list, |text| column.push(intern(text, names, notes, at))));
            column.resize(end, names.intern(""));
        };
        named(&mut self.dtypes, fields.dtypes);
        named(&mut self.concrete, fields.concrete);
        self.ops.push(op);
        self.ends.push(end as u32);
        if !fine {
            notes.add(Note::WrongType, at);
        }
    }

    /// Returns the inputs of some ops, ascending, under new row numbers.
    pub(super) fn select(&self, row: impl Fn(u32) -> Option<u32>) -> OpInputs {
        let mut picked = OpInputs::default();
        for (index, &op) in self.ops.iter().enumerate() {
            let Some(op) = row(op) else { continue };
            let OpInput { first, count, .. } = self.at(index);
            let range = first..first + count;
            picked.dtypes.extend(&self.dtypes[range.clone()]);
            picked.concrete.extend(&self.concrete[range.clone()]);
            picked.dims.extend_from(&self.dims, range.clone());
            picked.strides.extend_from(&self.strides, range);
            picked.ops.push(op);
            picked.ends.push(picked.dims.len() as u32);
        }
        picked
    }

    pub(super) fn absorb(&mut self, other: &OpInputs, first_op: u32, map: impl Fn(NameId) -> NameId) {
        let first = self.dims.len() as u32;
        self.ops.extend(other.ops.iter().map(|op| op + first_op));
        self.ends.extend(other.ends.iter().map(|end| end + first));
        self.dtypes.extend(other.dtypes.iter().map(|&name| map(name)));
        self.concrete.extend(other.concrete.iter().map(|&name| map(name)));
        self.dims.absorb(&other.dims);
        self.strides.absorb(&other.strides);
    }
}

impl<'a> OpInput<'a> {
    /// Returns the number of inputs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no inputs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the shape of a tensor, or of the first tensor of a list; empty for other inputs.
    #[must_use]
    pub fn dims(&self, arg: usize) -> &'a [i64] {
        self.tensors(arg).next().unwrap_or_default()
    }

    /// Returns the shapes of all tensors of an input: one, or those of its list.
    pub fn tensors(&self, arg: usize) -> impl ExactSizeIterator<Item = &'a [i64]> + use<'a> {
        self.table.dims.get(self.position(arg))
    }

    /// Whether the input is a list of tensors.
    #[must_use]
    pub fn is_list(&self, arg: usize) -> bool {
        self.table.dims.is_list(self.position(arg))
    }

    /// Returns the strides of a tensor, or of the first tensor of a list, if recorded.
    #[must_use]
    pub fn strides(&self, arg: usize) -> &'a [i64] {
        self.tensor_strides(arg).next().unwrap_or_default()
    }

    /// Returns the strides of all tensors of an input.
    pub fn tensor_strides(&self, arg: usize) -> impl ExactSizeIterator<Item = &'a [i64]> + use<'a> {
        self.table.strides.get(self.position(arg))
    }

    /// Returns the type: `float` for a tensor of floats, `Scalar`, `TensorList`; empty if not recorded.
    #[must_use]
    pub fn dtype(&self, arg: usize) -> NameId {
        self.table.dtypes.get(self.position(arg)).copied().unwrap_or_default()
    }

    /// Returns the value of an input that is not a tensor, as text; empty if not recorded.
    #[must_use]
    pub fn concrete(&self, arg: usize) -> NameId {
        self.table.concrete.get(self.position(arg)).copied().unwrap_or_default()
    }

    /// Returns the position in the tables; out of range for an input that the op does not have.
    fn position(&self, arg: usize) -> usize {
        if arg < self.count { self.first + arg } else { usize::MAX }
    }
}

/// Parallel lists, as written.
#[derive(Default)]
struct Fields<'a> {
    dims: &'a [u8],
    strides: &'a [u8],
    dtypes: &'a [u8],
    concrete: &'a [u8],
}

impl<'a> Fields<'a> {
    fn find(&mut self, args: &'a [u8]) -> Result<(), Fault> {
        let mut cursor = Cursor::new(args);
        cursor.enter_object()?;
        while let Some(key) = cursor.key()? {
            let raw = cursor.raw()?;
            match key.raw {
                b"Input Dims" | b"Input dims" => self.dims = raw,
                b"Input Strides" => self.strides = raw,
                b"Input type" => self.dtypes = raw,
                b"Concrete Inputs" => self.concrete = raw,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Calls `take` with the items of a list as text: strings by their contents, other items as written.
fn each<'a>(list: &'a [u8], mut take: impl FnMut(Text<'a>)) -> Result<(), Fault> {
    if list.is_empty() {
        return Ok(());
    }
    let mut cursor = Cursor::new(list);
    if !cursor.enter_array()? {
        return Err(Fault::Unexpected);
    }
    while cursor.item()? {
        if cursor.peek()? != b'"' {
            take(Text { raw: cursor.raw()?, escaped: false });
        } else if let Value::Text(text) = cursor.value()? {
            take(text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_lists_and_scalars() {
        let args = br#"{"Input type": ["float", "TensorList", "Scalar", ""], "Input Dims": [[2, 3], [[4], [5, 6]], [], []],
            "Concrete Inputs": ["", "", "7", "[1, 2]"], "Input Strides": [[3, 1], [[1], [6, 1]], []]}"#;
        let (mut table, mut names, mut notes) = (OpInputs::default(), Strings::default(), Notes::default());
        table.read(4, args, &mut names, &mut notes, 0);
        table.read(9, b"{\"Input Dims\": [[1]]}", &mut names, &mut notes, 0);
        assert!(notes.is_clean());
        let inputs = table.get(4).map(|inputs| (inputs, inputs.len()));
        let Some((inputs, 4)) = inputs else { panic!("{inputs:?}") };
        assert_eq!(inputs.dims(0), [2, 3]);
        assert_eq!(inputs.strides(0), [3, 1]);
        assert!(inputs.is_list(1) && !inputs.is_list(0));
        assert_eq!(inputs.tensors(1).collect::<Vec<_>>(), [&[4][..], &[5, 6]]);
        assert_eq!(inputs.tensor_strides(1).collect::<Vec<_>>(), [&[1][..], &[6, 1]]);
        assert_eq!(inputs.dims(2), [0i64; 0]);
        assert_eq!(names.get(inputs.dtype(1)), "TensorList");
        assert_eq!(names.get(inputs.concrete(3)), "[1, 2]");
        assert_eq!(inputs.dims(99), [0i64; 0]);
        assert_eq!(table.get(9).map(|inputs| inputs.dims(0)), Some(&[1][..]));
        assert!(table.get(5).is_none());
    }

    #[test]
    fn broken_lists_are_noted_and_keep_the_table_whole() {
        let (mut table, mut names, mut notes) = (OpInputs::default(), Strings::default(), Notes::default());
        table.read(0, br#"{"Input Dims": [[2, x], [1]], "Input type": 7}"#, &mut names, &mut notes, 0);
        table.read(1, br#"{"Input Dims": [[8]], "Input type": ["int", "more"]}"#, &mut names, &mut notes, 0);
        assert!(!notes.is_clean());
        let last = table.get(1).map(|inputs| (inputs.dims(0), names.get(inputs.dtype(0))));
        assert_eq!(last, Some((&[8][..], "int")));
    }
}
