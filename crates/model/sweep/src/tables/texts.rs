//! Inputs of an op in the text form of sweeps.

use crate::row::{Row, State};

/// An input of an op.
pub(super) enum Input<'a> {
    /// A tensor: shape, strides, type.
    Tensor(&'a [u64], &'a [u64], &'a str),
    /// A number or a boolean.
    Scalar(&'a str),
    /// Several numbers.
    List(&'a str),
    /// No value given.
    None,
}

/// A contiguous tensor.
pub(super) fn dense<'a>(shape: &'a [u64], strides: &'a mut Vec<u64>, dtype: &'a str) -> Input<'a> {
    let mut step = 1;
    strides.clear();
    for &size in shape.iter().rev() {
        strides.push(step);
        step = step.saturating_mul(size.max(1));
    }
    strides.reverse();
    Input::Tensor(shape, strides, dtype)
}

/// Row of an op that was repeated, so that the cache is warm.
pub(super) fn row(family: &str, op: &str, inputs: &[Input<'_>], us: f32) -> Row {
    let list = |of: &dyn Fn(&Input<'_>) -> String| {
        let all: Vec<String> = inputs.iter().map(of).collect();
        format!("[{}]", all.join(","))
    };
    let quoted = |text: &str| format!("\"{text}\"");
    Row {
        case: 0,
        family: family.to_owned(),
        leaf: 0,
        op: op.to_owned(),
        dims: list(&|input| match input {
            Input::Tensor(shape, ..) => format!("{shape:?}"),
            _ => "[]".to_owned(),
        }),
        strides: list(&|input| match input {
            Input::Tensor(_, strides, _) => format!("{strides:?}"),
            _ => "[]".to_owned(),
        }),
        types: list(&|input| match input {
            Input::Tensor(.., dtype) => quoted(dtype),
            Input::Scalar(_) => quoted("Scalar"),
            Input::List(_) => quoted("ScalarList"),
            Input::None => quoted(""),
        }),
        concrete: list(&|input| match input {
            Input::Scalar(value) | Input::List(value) => quoted(value),
            _ => quoted(""),
        }),
        devices: String::new(),
        tf32: false,
        indices: String::new(),
        state: State::Warm,
        us,
        us_min: us,
        us_max: us,
        kernels: "[]".to_owned(),
    }
}
