//! Arguments and results of ops, as they are recorded.

use crate::tensor::Tensor;

/// An argument or a result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// Absent argument.
    None,
    /// Undefined tensor.
    Undefined,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'static str),
    Device(&'static str),
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Tensor(&'a Tensor),
    Tensors(&'a [Tensor]),
    /// A list of tensors, some of them undefined, ...
    Indices(&'a [Option<Tensor>]),
    /// ... or absent.
    Options(&'a [Option<Tensor>]),
}

/// The device argument of ops.
pub(crate) const CUDA: Input<'static> = Input::Device("cuda:0");

macro_rules! from {
    ($($Type:ty => $variant:ident,)*) => {
        $(impl<'a> From<$Type> for Input<'a> {
            fn from(value: $Type) -> Input<'a> {
                Input::$variant(value)
            }
        })*
    };
}

from! {
    bool => Bool,
    i64 => Int,
    f64 => Float,
    &'a [i64] => Ints,
    &'a [f64] => Floats,
    &'a Tensor => Tensor,
    &'a [Tensor] => Tensors,
    &'a [Option<Tensor>] => Indices,
}

impl<'a> From<&'a Vec<i64>> for Input<'a> {
    fn from(value: &'a Vec<i64>) -> Input<'a> {
        Input::Ints(value)
    }
}

impl<'a> From<&'a Vec<Tensor>> for Input<'a> {
    fn from(value: &'a Vec<Tensor>) -> Input<'a> {
        Input::Tensors(value)
    }
}

impl<'a> From<Option<&'a Tensor>> for Input<'a> {
    fn from(value: Option<&'a Tensor>) -> Input<'a> {
        value.map_or(Input::None, Input::Tensor)
    }
}

/// Arguments of any kind as a list.
macro_rules! inputs {
    ($($value:expr),* $(,)?) => { &[$($crate::argument::Input::from($value)),*] };
}
pub(crate) use inputs;

/// Output of an op.
pub(crate) trait OpResults {
    /// The results in order.
    fn results(&self) -> Vec<Input<'_>>;
}

impl OpResults for () {
    fn results(&self) -> Vec<Input<'_>> {
        Vec::new()
    }
}

impl OpResults for Tensor {
    fn results(&self) -> Vec<Input<'_>> {
        vec![Input::Tensor(self)]
    }
}

impl<const N: usize> OpResults for [Tensor; N] {
    fn results(&self) -> Vec<Input<'_>> {
        self.iter().map(Input::Tensor).collect()
    }
}

/// A list as one result.
impl OpResults for Vec<Tensor> {
    fn results(&self) -> Vec<Input<'_>> {
        vec![Input::Tensors(self)]
    }
}

/// A number.
impl OpResults for Input<'static> {
    fn results(&self) -> Vec<Input<'_>> {
        vec![*self]
    }
}
