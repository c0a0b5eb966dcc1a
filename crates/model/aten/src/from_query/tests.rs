//! Queries as written by people and scripts.

use serde_json::{Value, json};

use super::{Query, QueryError};
use crate::call::{Arg, OpCall};
use crate::dtype::Dtype;
use crate::op_set::OpSet;

fn call(op: &str, shapes: &Value, args: &Value) -> Result<OpCall, QueryError> {
    let shapes = shapes.as_array().unwrap();
    Query { op, shapes, args: Some(args), ..Query::default() }.op_call(&OpSet::standard())
}

#[test]
fn tensors_and_arguments_find_their_places() {
    let call = call("index_add_", &json!([[100, 8], [20], [20, 8]]), &json!([0])).unwrap();
    assert_eq!(call.name, "aten::index_add_");
    assert_eq!(call.int_at(1), Some(0));
    assert_eq!(call.tensor_at(2).unwrap().dtype, Dtype::I64);
    assert_eq!(call.tensor_at(3).unwrap().shape[..], [20, 8]);
    assert_eq!(call.int_at(4), Some(1));
}

#[test]
fn kineto_style_queries_have_an_entry_for_every_argument() {
    let call = call("aten::addmm", &json!([[4], [2, 3], [3, 4], [], []]), &json!(["", "", "", "1", "1"]));
    let call = call.unwrap();
    assert_eq!(call.tensor_at(2).unwrap().shape[..], [3, 4]);
    assert_eq!((call.int_at(3), call.int_at(4)), (Some(1), Some(1)));
}

#[test]
fn overloads_are_told_apart_by_what_is_given() {
    let by_dim = call("aten::sum", &json!([[4, 5]]), &json!([[0], true])).unwrap();
    assert_eq!(by_dim.ints_at(1).unwrap()[..], [0]);
    assert_eq!(by_dim.flag_at(2), Some(true));
    let named =
        call("aten::conv2d", &json!([[1, 3, 8, 8], [4, 3, 3, 3]]), &json!({"padding": [1, 1]})).unwrap();
    assert_eq!(named.ints_at(4).unwrap()[..], [1, 1]);
    assert_eq!(named.ints_at(3).unwrap()[..], [1, 1]);
}

#[test]
fn what_is_wrong_is_said() {
    assert!(matches!(call("nonsense", &json!([]), &json!([])), Err(QueryError::Op(_))));
    assert!(matches!(call("aten::addmm", &json!([[1]]), &json!([])), Err(QueryError::Shapes { .. })));
    assert!(matches!(call("aten::mm", &json!([[1, -2], [2, 3]]), &json!([])), Err(QueryError::Value { .. })));
}

#[test]
fn shapes_of_lists_may_stand_one_after_the_other() {
    let flat = call("aten::cat", &json!([[4, 8], [4, 16]]), &json!([1])).unwrap();
    assert_eq!(flat, call("aten::cat", &json!([[[4, 8], [4, 16]]]), &json!([1])).unwrap());
    assert_eq!((flat.tensors_at(0).len(), flat.int_at(1)), (2, Some(1)));
    let pairs = call("aten::_foreach_add_", &json!([[4], [5], [4], [5]]), &json!([])).unwrap();
    assert_eq!((pairs.tensors_at(0).len(), pairs.tensors_at(1).len()), (2, 2));
    let index = call("aten::index", &json!([[9, 9], [null, [4]]]), &json!([])).unwrap();
    assert_eq!(index.tensors_at(1).len(), 2);
    assert_eq!(index.tensors_at(1)[1].dtype, Dtype::I64);
}

#[test]
fn tensors_that_must_be_there_come_first() {
    let shapes = json!([[], [8, 10], [8], []]);
    let call = call("aten::nll_loss_backward", &shapes, &json!([1, -100])).unwrap();
    assert_eq!(call.inputs[3], Arg::None);
    assert!(call.tensor_at(6).is_some());
}

#[test]
fn types_may_be_given_for_every_argument() {
    let shapes = json!([[100, 8], [20], [5], [], [], []]);
    let dtype = json!(["float", "int", "int", "", "", ""]);
    let shapes = shapes.as_array().unwrap();
    let query = Query { op: "aten::embedding_bag", shapes, dtype: Some(&dtype), ..Query::default() };
    assert_eq!(query.op_call(&OpSet::standard()).unwrap().tensor_at(1).unwrap().dtype, Dtype::I32);
}

#[test]
fn types_have_names() {
    let call = call("aten::to", &json!([[4]]), &json!(["bf16"])).unwrap();
    assert_eq!(call.int_at(1).and_then(Dtype::from_code), Some(Dtype::Bf16));
}

#[test]
fn an_op_of_another_library_is_its_bytes() {
    let call = call("mine::fused", &json!([[100, 8], [20]]), &json!([0.5])).unwrap();
    assert_eq!(call.outputs[0].tensors()[0].shape[..], [100, 8]);
    assert_eq!(call.float_at(2), Some(0.5));
}

#[test]
fn what_no_gpu_holds_is_refused() {
    for shapes in [json!([[1_000_000_000_000_000_000u64], [1]]), json!([[1i64 << 40, 1i64 << 40], [1]])] {
        assert!(matches!(call("aten::add", &shapes, &json!([])), Err(QueryError::Value { .. })));
    }
}

#[test]
fn our_own_ops_have_schemas_too() {
    let tables = json!([[[1000, 64], [30, 16]], [640], [129]]);
    let call = call("steptime::embedding_bag", &tables, &json!({"mode": 1, "bits": 32})).unwrap();
    assert_eq!((call.tensors_at(0).len(), call.tensor_at(1).unwrap().dtype), (2, Dtype::I64));
    assert_eq!((call.inputs[3].clone(), call.int_at(4), call.int_at(5)), (Arg::None, Some(1), Some(32)));
    assert!(OpSet::standard().lower(&call).kernel().is_some_and(|kernel| kernel.launches == 1));
}
