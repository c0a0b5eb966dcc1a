//! Parts shared by the three readers of recordings: tensors from their parts, values from text.

use smallvec::SmallVec;

use crate::call::{Arg, Device, Tensor};
use crate::dtype::Dtype;

/// Builds a tensor from its recorded parts. Strides of another length than the shape mean a sparse tensor, whose
/// elements are stored in other tensors; `None` means that strides were not recorded, hence contiguous ones.
pub fn tensor(shape: &[i64], strides: Option<&[i64]>, dtype: Dtype, device: Device) -> Tensor {
    let mut tensor = match strides {
        Some(strides) if strides.len() == shape.len() => Tensor::strided(shape, strides, dtype),
        Some(_) => Tensor { strides: SmallVec::new(), ..Tensor::contiguous(shape, dtype) },
        None => Tensor::contiguous(shape, dtype),
    };
    tensor.device = device;
    tensor
}

/// Returns the placeholder of a missing tensor in a list: a tensor without elements, so that the others keep their
/// positions.
pub fn missing() -> Tensor {
    Tensor { device: Device::Unknown, ..Tensor::contiguous(&[0], Dtype::I64) }
}

/// Parses the name of a device: `cuda:0`, `cpu`, `cpu:pinned`.
pub fn device(name: &str) -> Device {
    match name {
        "cpu" => Device::Cpu,
        "cpu:pinned" => Device::Pinned,
        _ if name.starts_with("cuda") => Device::Cuda,
        _ => Device::Unknown,
    }
}

/// Parses a value from text: `True`, `3`, `0.1`, `[1, 1]`; empty means absent.
pub fn value(text: &str) -> Arg {
    let text = text.trim();
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(items) => list(items),
        None => one(text),
    }
}

fn one(text: &str) -> Arg {
    match text {
        "" | "None" => Arg::None,
        "True" | "true" => Arg::Bool(true),
        "False" | "false" => Arg::Bool(false),
        _ => {
            let int = text.parse().map(Arg::Int);
            int.or_else(|_| text.parse().map(Arg::Float)).unwrap_or_else(|_| Arg::Text(text.into()))
        }
    }
}

fn list(items: &str) -> Arg {
    let items: Vec<Arg> = items.split(',').map(|item| one(item.trim())).collect();
    if let [Arg::None] = items[..] { Arg::Ints(SmallVec::new()) } else { numbers(&items) }
}

/// Returns a list of numbers or truth values; absent if the list contains anything else.
pub fn numbers(items: &[Arg]) -> Arg {
    let ints = items.iter().map(|item| match item {
        Arg::Int(value) => Some(*value),
        Arg::Bool(value) => Some(i64::from(*value)),
        _ => None,
    });
    if let Some(ints) = ints.collect() {
        return Arg::Ints(ints);
    }
    let floats = items.iter().map(|item| match item {
        Arg::Int(value) => Some(*value as f64),
        Arg::Float(value) => Some(*value),
        _ => None,
    });
    floats.collect::<Option<_>>().map_or(Arg::None, Arg::Floats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_what_they_look_like() {
        assert_eq!(value("True"), Arg::Bool(true));
        assert_eq!(value("-3"), Arg::Int(-3));
        assert_eq!(value("-0.01"), Arg::Float(-0.01));
        assert_eq!(value("[1, 1]"), Arg::Ints([1, 1].as_slice().into()));
        assert_eq!(value("[True, False]"), Arg::Ints([1, 0].as_slice().into()));
        assert_eq!(value("[0.5, 1]"), Arg::Floats(vec![0.5, 1.0]));
        assert_eq!(value("[]"), Arg::Ints(SmallVec::new()));
        assert_eq!(value(""), Arg::None);
        assert_eq!(value("trunc"), Arg::Text("trunc".into()));
    }
}
