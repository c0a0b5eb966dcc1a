//! Values in the layout of the file: parallel lists of values, shapes, types and strides.

use serde_json::{Value, json};
use steptime_aten::{Device, Dtype, Tensor, from_execution};
use steptime_graph::execution::{self, ExecutionGraph};

use super::super::Export;
use super::identities::Identities;
use super::node::ValueLists;
use super::values::{TensorRef, ValueText};

/// One value with its description.
struct Item {
    value: Value,
    shape: Value,
    kind: String,
    strides: Value,
}

/// Inputs or outputs of an op.
pub(super) fn written(export: &Export<'_>, identities: &Identities, args: &[ValueText]) -> ValueLists {
    let mut all = ValueLists::default();
    for arg in args {
        let Item { value, shape, kind, strides } = item(export, identities, arg);
        all.values.push(value);
        all.shapes.push(shape);
        all.types.push(kind);
        all.strides.push(strides);
    }
    all
}

fn item(export: &Export<'_>, identities: &Identities, arg: &ValueText) -> Item {
    let plain = |value: Value, kind: &str| Item {
        value,
        shape: json!([]),
        kind: kind.to_owned(),
        strides: json!([]),
    };
    match arg {
        ValueText::None => plain(json!("<None>"), "None"),
        ValueText::Bool(value) => plain(json!(value), "Bool"),
        ValueText::Int(value) => plain(json!(value), "Int"),
        ValueText::Float(value) => plain(float(*value), "Double"),
        ValueText::Text(text) => plain(json!(text), "String"),
        ValueText::Device(name) => plain(json!(name), "Device"),
        ValueText::Tensor(which) => tensor(export, identities, *which),
        ValueText::List(items) => {
            let items: Vec<Item> = items.iter().map(|arg| item(export, identities, arg)).collect();
            let kinds: Vec<&str> = items.iter().map(|item| &*item.kind).collect();
            Item {
                kind: format!("GenericList[{}]", kinds.join(",")),
                shape: items.iter().map(|item| item.shape.clone()).collect(),
                strides: items.iter().map(|item| item.strides.clone()).collect(),
                value: items.into_iter().map(|item| item.value).collect(),
            }
        }
    }
}

/// A number; those that JSON does not have are texts, as C++ prints them.
fn float(value: f64) -> Value {
    match value {
        _ if value.is_nan() => json!("nan"),
        f64::INFINITY => json!("inf"),
        f64::NEG_INFINITY => json!("-inf"),
        _ => json!(value),
    }
}

fn tensor(export: &Export<'_>, identities: &Identities, which: TensorRef) -> Item {
    match (which, export.trace) {
        (TensorRef::Trace(id), Some(trace)) => as_recorded(trace, id, Identities::recorded(trace, id)),
        (TensorRef::Trace(_), None) => {
            Item { value: json!("<None>"), shape: json!([]), kind: "None".to_owned(), strides: json!([]) }
        }
        (TensorRef::Step(object), trace) => {
            let row = &export.step.tensors[object.tensor];
            let numbers = identities.object(export, object);
            let was = trace.zip(object.recorded);
            match was {
                Some((trace, id)) if from_execution::tensor(trace, id).as_ref() == Some(&row.value) => {
                    as_recorded(trace, id, numbers)
                }
                _ => changed(&row.value, was, numbers),
            }
        }
    }
}

/// A tensor as recorded.
fn as_recorded(trace: &ExecutionGraph, id: execution::TensorId, [own, storage]: [u64; 2]) -> Item {
    let row = trace.tensors.get(id);
    let shape = trace.tensors.shape(id);
    let strides = trace.tensors.strides(id);
    let contiguous = || Tensor::contiguous(shape, Dtype::I8).strides;
    Item {
        value: json!([own, storage, row.offset, row.numel, row.itemsize, trace.name(row.device)]),
        shape: json!(shape),
        kind: format!("Tensor({})", trace.name(row.dtype)),
        strides: strides.map_or_else(|| json!(contiguous().as_slice()), |strides| json!(strides)),
    }
}

/// A tensor that changed, or was not recorded.
fn changed(
    value: &Tensor,
    was: Option<(&ExecutionGraph, execution::TensorId)>,
    [own, storage]: [u64; 2],
) -> Item {
    let was = was.map(|(trace, id)| (trace, trace.tensors.get(id)));
    let named = was.map(|(trace, row)| trace.name(row.dtype));
    let dtype = named.filter(|name| Dtype::parse(name) == Some(value.dtype));
    let device = match value.device {
        Device::Cuda => "cuda:0",
        Device::Cpu | Device::Pinned => "cpu",
        Device::Unknown => "",
    };
    let named = was.map(|(trace, row)| trace.name(row.device));
    let device = named.filter(|name| name.split(':').next() == device.split(':').next()).unwrap_or(device);
    let kind = format!("Tensor({})", dtype.unwrap_or(value.dtype.recorded()));
    let shape = json!(value.shape.as_slice());
    if value.is_sparse() {
        // Its elements are in other tensors.
        let strides = json!(vec![0; value.shape.len()]);
        return Item { value: json!([own, 0, 0, 0, 0, ""]), shape, kind, strides };
    }
    let (numel, itemsize) = (value.numel(), value.dtype.size());
    let strides = json!(value.strides.as_slice());
    Item { value: json!([own, storage, value.offset, numel, itemsize, device]), shape, kind, strides }
}
