//! Ops whose inputs do not fit.

use steptime_tensor::DType;
use steptime_train::onnx::{Dim, OnnxError, OnnxGraph, Value};

struct Inputs {
    graph: OnnxGraph<'static>,
    /// batch x 3, batch x 4, 4 x 5, batch x 3 x 2, integers of batch x 2.
    values: [Value; 5],
}

fn inputs() -> Inputs {
    let mut graph = OnnxGraph::new("inputs");
    let mut input = |name: &str, dtype, shape: &[Dim]| graph.input(name, dtype, shape).unwrap();
    let values = [
        input("a", DType::F32, &[Dim::batch(), 3.into()]),
        input("b", DType::F32, &[Dim::batch(), 4.into()]),
        input("c", DType::F32, &[4.into(), 5.into()]),
        input("d", DType::F32, &[Dim::batch(), 3.into(), 2.into()]),
        input("i", DType::I64, &[Dim::batch(), 2.into()]),
    ];
    Inputs { graph, values }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let Inputs { mut graph, values: [a, b, c, d, i] } = inputs();
    let refused = |result: Result<Value, OnnxError>, words: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let graph = &mut graph;
    refused(graph.add(a, b), "Add of shapes [batch, 3] and [batch, 4]: sizes must be equal or 1");
    refused(graph.gemm(a, c, None, false, false), "Gemm of shapes [batch, 3] and [4, 5]: the inner sizes");
    refused(graph.gemm(b, c, Some(a), false, false), "Gemm of shapes [batch, 5] and [batch, 3]: the bias");
    refused(graph.gemm(d, c, None, false, false), "both must be matrices");
    refused(graph.matmul(d, c), "MatMul of shapes [batch, 3, 2] and [4, 5]: the inner sizes");
    refused(graph.matmul(d, d), "the inner sizes");
    refused(graph.concat(&[a, d], 1), "Concat of shapes [batch, 3] and [batch, 3, 2]");
    refused(graph.concat(&[a, b], 0), "sizes must be equal apart from the axis");
    refused(graph.concat(&[], 0), "at least one value");
    refused(graph.transpose(d, &[0, 1]), "each dimension once");
    refused(graph.transpose(d, &[0, 1, 1]), "each dimension once");
    refused(graph.reshape(d, &[Dim::batch(), 5.into()]), "numbers of elements");
    refused(graph.reshape(d, &[6.into()]), "numbers of elements");
    refused(graph.slice(d, 1, 2, 4), "exceed the axis");
    refused(graph.slice(d, 0, 0, 1), "its size is a symbol");
    refused(graph.embedding_bag(c, d), "indices must have two dimensions");
    refused(graph.pairwise_dots(a), "three dimensions are needed");
    refused(graph.gather(c, i, 2), "axis 2 of a value with 2 dimensions");
    refused(graph.reduce_sum(d, &[3], false), "axis 3 of a value with 3 dimensions");
    refused(graph.gather(c, a, 0), "Gather of f32: it needs i32 or i64");
    refused(graph.relu(i), "Relu of i64: it needs a floating-point type");
    refused(graph.mul(a, i), "Mul of i64: it needs the other input's type");
    refused(graph.constant("half", &[2], &[0.5f32]), "half: shape [2] does not have 1 elements");
}

#[test]
fn names_are_unique_and_values_belong_to_one_graph() {
    let Inputs { mut graph, values: [a, ..] } = inputs();
    assert!(matches!(graph.input("a", DType::F32, &[]), Err(OnnxError::Name { .. })));
    assert!(matches!(graph.output("", a), Err(OnnxError::Name { .. })));
    graph.output("y", a).unwrap();
    assert!(matches!(graph.output("y", a), Err(OnnxError::Name { .. })));
    let mut other = OnnxGraph::new("other");
    assert!(matches!(other.relu(a), Err(OnnxError::Foreign { op: "Relu" })));
    assert_eq!(other.shape(a), None);
    assert_eq!(graph.shape(a), Some(&[Dim::batch(), Dim::from(3)][..]));
}

/// Results have the sizes that their op defines.
#[test]
fn shapes_follow_from_the_ops() {
    let Inputs { mut graph, values: [a, b, c, d, i] } = inputs();
    let graph = &mut graph;
    let check = |graph: &OnnxGraph<'_>, value: Value, shape: &str| {
        let dims: Vec<String> = graph.shape(value).unwrap().iter().map(Dim::to_string).collect();
        assert_eq!(dims.join(" "), shape);
    };
    let product = graph.gemm(b, c, None, false, false).unwrap();
    check(graph, product, "batch 5");
    let transposed = graph.gemm(a, a, None, true, false).unwrap();
    check(graph, transposed, "3 3");
    let rows = graph.gather(c, i, 0).unwrap();
    check(graph, rows, "batch 2 5");
    let rows = graph.gather(c, i, 1).unwrap();
    check(graph, rows, "4 batch 2");
    let sum = graph.reduce_sum(d, &[0, 2], true).unwrap();
    check(graph, sum, "1 3 1");
    let sum = graph.reduce_sum(d, &[0, 2], false).unwrap();
    check(graph, sum, "3");
    let joined = graph.concat(&[a, b, a], 1).unwrap();
    check(graph, joined, "batch 10");
    let turned = graph.transpose(d, &[2, 0, 1]).unwrap();
    check(graph, turned, "2 batch 3");
    let flat = graph.reshape(turned, &[6.into(), Dim::batch()]).unwrap();
    check(graph, flat, "6 batch");
    let part = graph.slice(d, 2, 1, 2).unwrap();
    check(graph, part, "batch 3 1");
    let pairs = graph.pairwise_dots(d).unwrap();
    check(graph, pairs, "batch 3");
}
