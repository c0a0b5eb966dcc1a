//! Calls from the lists that Kineto writes for an op's inputs, each as JSON: the form in which sweeps store
//! them.

use serde_json::Value;

use crate::argument;
use crate::call::{Arg, Device, OpCall, Tensor};
use crate::dtype::Dtype;

/// Inputs of an op as text, each a JSON list with one item per input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Texts<'a> {
    /// `[[64, 3], []]`: the shape of a tensor; a list of shapes for a list of tensors; empty for other inputs.
    pub dims: &'a str,
    /// `[[3, 1], []]`: strides in elements, likewise. Empty if not recorded.
    pub strides: &'a str,
    /// `["float", "Scalar"]`: the type of a tensor's elements, `TensorList`, `TensorList<float>`, `Scalar`,
    /// `ScalarList`; empty for other inputs.
    pub types: &'a str,
    /// `["", "1"]`: the value of an input that is not a tensor.
    pub concrete: &'a str,
    /// `["cuda", ""]`: the device of a tensor. Empty if not recorded.
    pub devices: &'a str,
}

/// Reason why inputs could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A list is not JSON.
    #[error("the {list} of {op} are not JSON: {source}")]
    Json {
        /// Name of the op.
        op: String,
        /// Name of the list.
        list: &'static str,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// A list has an item of another kind.
    #[error("the {list} of {op} are not a list of the expected kind")]
    Shape {
        /// Name of the op.
        op: String,
        /// Name of the list.
        list: &'static str,
    },
}

/// Returns a call from the text of its inputs.
///
/// # Errors
/// If a list is not JSON, or an item is not of its kind.
pub fn op_call(name: &str, texts: &Texts<'_>) -> Result<OpCall, TextError> {
    let list = |list, text: &str| parse(name, list, text);
    let dims = list("dims", texts.dims)?;
    let strides = list("strides", texts.strides)?;
    let types = list("types", texts.types)?;
    let concrete = list("concrete inputs", texts.concrete)?;
    let devices = list("devices", texts.devices)?;
    let text =
        |list: &[Value], at: usize| list.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let all: Vec<String> = (0..types.len()).map(|at| text(&types, at)).collect();
    let sibling = all.iter().find_map(|text| Dtype::parse(text)).unwrap_or(Dtype::F32);
    let mut inputs = Vec::with_capacity(all.len());
    for (at, kind) in all.iter().enumerate() {
        let wrong = |list| TextError::Shape { op: name.into(), list };
        let device = argument::device(&text(&devices, at));
        let shape = dims.get(at).unwrap_or(&Value::Null);
        let stride = strides.get(at);
        let input = if let Some(dtype) = Dtype::parse(kind) {
            let shape = numbers(shape).ok_or_else(|| wrong("dims"))?;
            let stride = stride.map(|s| numbers(s).ok_or_else(|| wrong("strides"))).transpose()?;
            Arg::Tensor(argument::tensor(&shape, stride.as_deref(), dtype, device))
        } else if kind.starts_with("TensorList") {
            let inner = kind.strip_prefix("TensorList<").and_then(|rest| rest.strip_suffix('>'));
            let dtype = inner.and_then(Dtype::parse).unwrap_or(sibling);
            Arg::Tensors(tensors(shape, stride, dtype, device).ok_or_else(|| wrong("dims"))?)
        } else {
            argument::value(&text(&concrete, at))
        };
        inputs.push(input);
    }
    Ok(OpCall::new(name, inputs))
}

fn parse(op: &str, list: &'static str, text: &str) -> Result<Vec<Value>, TextError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => Ok(items),
        Ok(_) => Err(TextError::Shape { op: op.into(), list }),
        Err(source) => Err(TextError::Json { op: op.into(), list, source }),
    }
}

fn numbers(value: &Value) -> Option<Vec<i64>> {
    value.as_array()?.iter().map(Value::as_i64).collect()
}

fn tensors(shapes: &Value, strides: Option<&Value>, dtype: Dtype, device: Device) -> Option<Vec<Tensor>> {
    let tensor = |(at, shape): (usize, &Value)| {
        let strides = strides.and_then(|list| list.get(at)).and_then(numbers);
        Some(argument::tensor(&numbers(shape)?, strides.as_deref(), dtype, device))
    };
    shapes.as_array()?.iter().enumerate().map(tensor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_input() {
        let texts = Texts {
            dims: "[[2, 3], [[4], [5, 6]], [], [], [], []]",
            strides: "[[1, 2], [[1], [6, 1]], [], [], [], []]",
            types: r#"["c10::BFloat16", "TensorList<float>", "Scalar", "ScalarList", "", "long int"]"#,
            concrete: r#"["", "", "0.5", "[1, 2]", "", ""]"#,
            devices: r#"["cpu:pinned", "cuda", "", "", "", ""]"#,
        };
        let call = op_call("aten::x", &texts).unwrap();
        let first = call.tensor_at(0).unwrap();
        assert_eq!(
            (&first.strides[..], first.device, first.dtype),
            (&[1, 2][..], Device::Pinned, Dtype::Bf16)
        );
        assert_eq!(call.tensors_at(1).len(), 2);
        assert_eq!(call.tensors_at(1)[1].strides.as_slice(), [6, 1]);
        assert_eq!((call.float_at(2), call.ints_at(3).unwrap().as_slice()), (Some(0.5), &[1, 2][..]));
        assert_eq!(call.inputs[4], Arg::None);
        assert!(call.tensor_at(5).unwrap().shape.is_empty());
    }

    #[test]
    fn broken_text_is_an_error() {
        let json = Texts { dims: "[[2,", types: r#"["float"]"#, ..Texts::default() };
        assert!(matches!(op_call("x", &json), Err(TextError::Json { list: "dims", .. })));
        let shape = Texts { dims: r#"[["a"]]"#, types: r#"["float"]"#, ..Texts::default() };
        assert!(matches!(op_call("x", &shape), Err(TextError::Shape { list: "dims", .. })));
        let missing = Texts { dims: "[]", types: r#"["float"]"#, ..Texts::default() };
        assert!(op_call("x", &missing).is_err());
    }

    #[test]
    fn a_sparse_tensor_has_no_strides() {
        let texts = Texts { dims: "[[9, 4]]", strides: "[[]]", types: r#"["float"]"#, ..Texts::default() };
        assert!(op_call("x", &texts).unwrap().tensor_at(0).unwrap().is_sparse());
    }
}
