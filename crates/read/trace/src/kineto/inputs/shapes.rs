//! Lists of numbers for each input, in arenas.

use crate::json::{Cursor, Fault};

/// One or several lists of numbers per input.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shapes {
    numbers: Vec<i64>,
    /// Range of each tensor's numbers.
    tensors: Vec<(u32, u32)>,
    inputs: Vec<Input>,
}

/// Tensors of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Input {
    first: u32,
    end: u32,
    list: bool,
}

impl Shapes {
    pub(super) fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Adds empty inputs, or drops surplus ones.
    pub(super) fn resize(&mut self, len: usize) {
        self.inputs.resize(len, Input::default());
    }

    pub(super) fn get(&self, input: usize) -> impl ExactSizeIterator<Item = &[i64]> + use<'_> {
        let Input { first, end, .. } = self.inputs.get(input).copied().unwrap_or_default();
        let numbers = |&(first, end): &(u32, u32)| &self.numbers[first as usize..end as usize];
        self.tensors[first as usize..end as usize].iter().map(numbers)
    }

    pub(super) fn is_list(&self, input: usize) -> bool {
        self.inputs.get(input).is_some_and(|input| input.list)
    }

    /// Appends the inputs of a list such as `[[2, 3], [[4], [5, 6]], []]`.
    pub(super) fn read(&mut self, list: &[u8]) -> Result<(), Fault> {
        if list.is_empty() {
            return Ok(());
        }
        let mut cursor = Cursor::new(list);
        if !cursor.enter_array()? {
            return Err(Fault::Unexpected);
        }
        while cursor.item()? {
            let first = self.tensors.len() as u32;
            let list = self.input(&mut cursor);
            let end = self.tensors.len() as u32;
            self.inputs.push(Input { first, end, list: list == Ok(true) });
            list?;
        }
        Ok(())
    }

    /// Reads one input; returns whether it is a list of tensors.
    fn input(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
        if !cursor.enter_array()? {
            return Ok(false);
        }
        let first = self.numbers.len() as u32;
        let mut list = false;
        while cursor.item()? {
            if cursor.peek()? == b'[' {
                list = true;
                self.tensor(cursor)?;
            } else if let Some(number) = cursor.integer()? {
                self.numbers.push(number);
            }
        }
        if !list {
            self.tensors.push((first, self.numbers.len() as u32));
        }
        Ok(list)
    }

    /// Reads one tensor of a list; skips deeper nesting.
    fn tensor(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let first = self.numbers.len() as u32;
        cursor.enter_array()?;
        while cursor.item()? {
            if let Some(number) = cursor.integer()? {
                self.numbers.push(number);
            }
        }
        self.tensors.push((first, self.numbers.len() as u32));
        Ok(())
    }

    /// Appends inputs of another table.
    pub(super) fn extend_from(&mut self, other: &Shapes, inputs: std::ops::Range<usize>) {
        for input in inputs {
            let first = self.tensors.len() as u32;
            for numbers in other.get(input) {
                let begin = self.numbers.len() as u32;
                self.numbers.extend(numbers);
                self.tensors.push((begin, self.numbers.len() as u32));
            }
            let end = self.tensors.len() as u32;
            self.inputs.push(Input { first, end, list: other.is_list(input) });
        }
    }

    pub(super) fn absorb(&mut self, other: &Shapes) {
        let (numbers, tensors) = (self.numbers.len() as u32, self.tensors.len() as u32);
        self.numbers.extend(&other.numbers);
        self.tensors.extend(other.tensors.iter().map(|(first, end)| (first + numbers, end + numbers)));
        let moved =
            |input: &Input| Input { first: input.first + tensors, end: input.end + tensors, ..*input };
        self.inputs.extend(other.inputs.iter().map(moved));
    }
}
