//! Typed arguments and returns of operators.

use super::ids::TensorId;
use steptime_trace::{NameId, Value};

/// Range of arguments, see [`Args::get`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArgRange {
    start: u32,
    end: u32,
}

/// Range of tensors in a list, see [`Args::tensor_list`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorRange {
    start: u32,
    end: u32,
}

/// Number or truth value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Truth value.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Float(f64),
}

/// One argument or return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// Absent argument.
    None,
    /// Single tensor.
    Tensor(TensorId),
    /// List that contains only tensors.
    TensorList(TensorRange),
    /// Number or truth value.
    Scalar(Scalar),
    /// Text value.
    Str(NameId),
    /// Device, for example `cuda:0`.
    Device(NameId),
    /// Any other list.
    List(ArgRange),
    /// Value that the reader could not interpret.
    Unknown,
}

impl Arg {
    /// Returns the argument of a value without nested values.
    pub(super) fn plain(value: Value) -> Arg {
        match value {
            Value::None => Arg::None,
            Value::Bool(value) => Arg::Scalar(Scalar::Bool(value)),
            Value::Int(value) => Arg::Scalar(Scalar::Int(value)),
            Value::Float(value) => Arg::Scalar(Scalar::Float(value)),
            Value::Str(text) => Arg::Str(text),
            Value::Device(name) => Arg::Device(name),
            _ => Arg::Unknown,
        }
    }
}

/// Arguments and returns of all nodes.
#[derive(Clone, Debug, Default)]
pub struct Args {
    args: Vec<Arg>,
    tensors: Vec<TensorId>,
}

impl Args {
    /// Returns the arguments of a range.
    ///
    /// # Panics
    /// If the range is of another graph and out of bounds.
    #[must_use]
    pub fn get(&self, range: ArgRange) -> &[Arg] {
        &self.args[range.start as usize..range.end as usize]
    }

    /// Returns the tensors of a list.
    ///
    /// # Panics
    /// If the range is of another graph and out of bounds.
    #[must_use]
    pub fn tensor_list(&self, range: TensorRange) -> &[TensorId] {
        &self.tensors[range.start as usize..range.end as usize]
    }

    /// Returns every tensor among the arguments, with the position of the argument that it is or that contains it.
    pub fn tensors(&self, range: ArgRange) -> impl Iterator<Item = (usize, TensorId)> {
        let mut todo: Vec<(usize, Arg)> = self.get(range).iter().copied().enumerate().rev().collect();
        let mut list: (usize, &[TensorId]) = (0, &[]);
        std::iter::from_fn(move || {
            loop {
                if let (position, [first, rest @ ..]) = list {
                    list.1 = rest;
                    return Some((position, *first));
                }
                let (position, arg) = todo.pop()?;
                match arg {
                    Arg::Tensor(tensor) => return Some((position, tensor)),
                    Arg::TensorList(range) => list = (position, self.tensor_list(range)),
                    Arg::List(range) => todo.extend(self.get(range).iter().rev().map(|&arg| (position, arg))),
                    _ => {}
                }
            }
        })
    }

    /// Stores the items of one list, or of one node.
    pub(super) fn push(&mut self, items: &[Arg]) -> ArgRange {
        let start = position(self.args.len());
        self.args.extend_from_slice(items);
        ArgRange { start, end: position(self.args.len()) }
    }

    /// Stores a list: as a tensor list if it contains only tensors.
    pub(super) fn push_list(&mut self, items: &[Arg]) -> Arg {
        let start = self.tensors.len();
        self.tensors.extend(items.iter().map_while(|item| match item {
            Arg::Tensor(tensor) => Some(*tensor),
            _ => None,
        }));
        if items.is_empty() || self.tensors.len() - start < items.len() {
            self.tensors.truncate(start);
            return Arg::List(self.push(items));
        }
        Arg::TensorList(TensorRange { start: position(start), end: position(self.tensors.len()) })
    }
}

/// Converts a length to a position; the reader counts values in `u32` too.
fn position(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_found_at_any_depth_in_order() {
        let mut args = Args::default();
        let tensor = |id| Arg::Tensor(TensorId(id));
        let plain = args.push_list(&[tensor(1), tensor(2)]);
        let mixed = args.push_list(&[tensor(3), Arg::None, plain]);
        let empty = args.push_list(&[]);
        assert!(matches!(plain, Arg::TensorList(_)));
        assert!(matches!(mixed, Arg::List(_)));
        assert!(matches!(empty, Arg::List(_)));
        let all = args.push(&[tensor(0), empty, mixed, Arg::Unknown, tensor(4)]);
        let found: Vec<_> = args.tensors(all).map(|(position, tensor)| (position, tensor.0)).collect();
        assert_eq!(found, [(0, 0), (2, 3), (2, 1), (2, 2), (4, 4)]);
    }
}
