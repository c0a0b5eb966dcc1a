//! Shapes, strides, types and plain values in a query.

use serde_json::Value;

use super::QueryError;
use crate::call::{Arg, Device, Tensor};
use crate::dtype::Dtype;
use crate::schema::ValueKind;

/// Maximum number of elements of a dimension or a tensor: a hundred times the capacity of the largest GPU.
const MOST: i64 = 1 << 42;
/// Maximum number of dimensions of a PyTorch tensor.
const DIMENSIONS: usize = 64;

/// Names of arguments that hold indices.
const INDICES: [&str; 11] = [
    "index",
    "indices",
    "offsets",
    "target",
    "offset2bag",
    "bag_size",
    "maximum_indices",
    "max_indices",
    "sorted_indices",
    "indices_",
    "state_steps",
];
/// Names of arguments that hold truth values.
const MASKS: [&str; 2] = ["mask", "condition"];

/// Whether a value is empty, in any notation.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || text == "None",
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Whether it is a list of shapes, and not one shape.
pub(super) fn is_nested(shape: &Value) -> bool {
    shape.as_array().is_some_and(|list| list.iter().any(|inner| inner.is_array() || inner.is_null()))
}

/// Returns the type of an argument's elements: as given, unless the argument's name determines it.
pub(super) fn dtype(
    given: Option<&Value>,
    place: usize,
    ordinal: usize,
    name: &str,
) -> Result<Dtype, QueryError> {
    let one = match given {
        // One for each tensor, or one for each argument as in Kineto, with other words for arguments that are not tensors.
        Some(Value::Array(list)) => {
            let parse = |value: &Value| value.as_str().and_then(Dtype::parse);
            let tensors = list.iter().all(|value| parse(value).is_some());
            let own = list.get(if tensors { ordinal } else { place });
            match own.and_then(parse).or_else(|| list.iter().find_map(parse)) {
                Some(dtype) => return Ok(dtype),
                None => parse_dtype(&Value::Array(list.clone()))?,
            }
        }
        Some(value) => parse_dtype(value)?,
        None => Dtype::F32,
    };
    Ok(match name {
        name if INDICES.contains(&name) => Dtype::I64,
        name if MASKS.contains(&name) => Dtype::Bool,
        _ => one,
    })
}

fn parse_dtype(value: &Value) -> Result<Dtype, QueryError> {
    if value.is_null() {
        return Ok(Dtype::F32);
    }
    let parsed = value.as_str().and_then(Dtype::parse);
    let expected = "type of elements, such as float, bf16, half or int64";
    parsed.ok_or_else(|| QueryError::Value { what: "dtype", value: value.to_string(), expected })
}

/// Returns a tensor; `null` is a missing tensor of a list.
pub(super) fn tensor(shape: &Value, strides: Option<&Value>, dtype: Dtype) -> Result<Tensor, QueryError> {
    if shape.is_null() {
        return Ok(Tensor { device: Device::Unknown, ..Tensor::contiguous(&[], dtype) });
    }
    let numbers = |value: &Value, what, expected| {
        let list =
            value.as_array().and_then(|list| list.iter().map(Value::as_i64).collect::<Option<Vec<_>>>());
        let list = list.filter(|list| list.iter().all(|number| (0..=MOST).contains(number)));
        list.ok_or_else(|| QueryError::Value { what, value: value.to_string(), expected })
    };
    let sizes = numbers(shape, "shape", "list of sizes: whole numbers from 0 that fit a GPU's memory")?;
    if sizes.len() > DIMENSIONS {
        let value = format!("a list of {} sizes", sizes.len());
        return Err(QueryError::Value {
            what: "shape",
            value,
            expected: "list of 64 sizes at most, as PyTorch's",
        });
    }
    let strides = match strides.filter(|strides| !is_empty(strides)) {
        Some(value) => {
            let list = numbers(value, "strides", "list of strides: whole numbers from 0")?;
            if list.len() != sizes.len() {
                let expected = "list of strides, one for each dimension of the shape";
                return Err(QueryError::Value { what: "strides", value: value.to_string(), expected });
            }
            list
        }
        None => Vec::new(),
    };
    let tensor = Tensor::strided(&sizes, &strides, dtype);
    if tensor.numel() > MOST as u64 {
        let expected = "shape of a tensor that fits a GPU's memory";
        return Err(QueryError::Value { what: "shape", value: shape.to_string(), expected });
    }
    Ok(tensor)
}

/// Returns a value for an argument: the name of a type becomes PyTorch's number for it.
pub(super) fn arg_for(takes: ValueKind, value: &Value) -> Arg {
    match arg(value) {
        Arg::Text(name) if takes == ValueKind::Option => {
            Dtype::parse(&name).map_or(Arg::Text(name), |dtype| Arg::Int(dtype.code()))
        }
        other => other,
    }
}

/// Returns a value that is not a tensor; text is read in Kineto's form (`"[1, 1]"`, `"True"`).
pub(super) fn arg(value: &Value) -> Arg {
    match value {
        Value::Null | Value::Object(_) => Arg::None,
        Value::Bool(flag) => Arg::Bool(*flag),
        Value::Number(number) => {
            let whole = number.as_i64().map(Arg::Int);
            whole.or_else(|| number.as_f64().map(Arg::Float)).unwrap_or_default()
        }
        Value::String(text) => match text.as_str() {
            "True" | "true" => Arg::Bool(true),
            "False" | "false" => Arg::Bool(false),
            "" | "None" => Arg::None,
            text => serde_json::from_str::<Value>(&text.replace("True", "true").replace("False", "false"))
                .ok()
                .filter(|value| !value.is_string() && !value.is_object())
                .map_or_else(|| Arg::Text(text.to_owned()), |value| arg(&value)),
        },
        Value::Array(list) => {
            let whole = |value: &Value| value.as_i64().or_else(|| value.as_bool().map(i64::from));
            match list.iter().map(whole).collect() {
                Some(numbers) => Arg::Ints(numbers),
                None => Arg::Floats(list.iter().filter_map(Value::as_f64).collect()),
            }
        }
    }
}
