//! Every rule of every op gets a call of every overload: a name that the op does not have panics.

use super::*;
use crate::schema::{Kind, Schema, ValueKind, overloads};
use crate::{Arg, Dtype, OpCall, Tensor};

/// Returns arguments of the kinds that a schema declares, with tensors of one shape and type.
fn sample(schema: &Schema, shape: &[i64], dtype: Dtype, flag: bool) -> Vec<Arg> {
    let tensor = || Tensor::contiguous(shape, dtype);
    let one = |kind, takes| match (kind, takes) {
        (Kind::Tensor, _) => Arg::Tensor(tensor()),
        (Kind::Tensors, _) => Arg::Tensors(vec![tensor(); 2]),
        (_, ValueKind::Bool) => Arg::Bool(flag),
        (_, ValueKind::Int | ValueKind::Option) => Arg::Int(i64::from(flag)),
        (_, ValueKind::Number) => Arg::Float(0.5),
        (_, ValueKind::Text) => Arg::Text("same".into()),
        (_, ValueKind::List { .. }) => Arg::Ints([1, 1].as_slice().into()),
    };
    schema.arguments.iter().map(|argument| one(argument.kind, argument.takes)).collect()
}

/// Returns the message of a panic in a rule.
fn panic(ops: &OpSet, call: &OpCall) -> Option<String> {
    let error = std::panic::catch_unwind(|| follow(ops, call)).err()?;
    let text = error.downcast_ref::<String>().map(String::as_str);
    Some(text.or(error.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned())
}

fn follow(ops: &OpSet, call: &OpCall) {
    let _ = (ops.lower(call), ops.outputs(call), ops.expand(call), ops.backward(call));
    if let Some(bound) = ops.bind(call) {
        let op = ops.find(&call.name).unwrap();
        let _ = (op.lower)(&bound);
        let _ = op.backward.map(|rule| rule(&bound));
    }
}

#[test]
fn rules_ask_for_arguments_that_their_op_has() {
    let ops = OpSet::standard();
    let shapes: [&[i64]; 6] = [&[], &[6], &[4, 6], &[2, 4, 6], &[2, 4, 6, 6], &[2, 4, 6, 6, 6]];
    let (mut calls, mut wrong) = (0, std::collections::BTreeSet::new());
    for (name, op) in ops.iter() {
        for shape in shapes {
            for dtype in [Dtype::F32, Dtype::I64, Dtype::Bool] {
                for flag in [false, true] {
                    let mut all: Vec<Vec<Arg>> =
                        overloads(name).iter().map(|schema| sample(schema, shape, dtype, flag)).collect();
                    let tensor = Arg::Tensor(Tensor::contiguous(shape, dtype));
                    all.push(vec![tensor; op.arguments.len()]);
                    for inputs in all {
                        let whole = OpCall::new(name, inputs.clone());
                        let first = OpCall::new(name, inputs.into_iter().take(1).collect());
                        wrong.extend([whole, first].iter().filter_map(|call| panic(&ops, call)));
                        calls += 1;
                    }
                }
            }
        }
    }
    assert!(calls > 10_000 && wrong.is_empty(), "of {calls} calls: {wrong:#?}");
}
