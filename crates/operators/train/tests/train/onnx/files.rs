//! The written files, read back.

use std::collections::HashSet;
use std::fs;

use prost::Message;
use steptime_tensor::DType;
use steptime_train::checkpoint::{Entry, Source};
use steptime_train::onnx::proto::{DimensionValue, ModelProto, TensorProto};
use steptime_train::onnx::{Dim, OnnxError, OnnxGraph};
use tempfile::tempdir;

use super::model::{self, Recommender};

fn external(tensor: &TensorProto, key: &str) -> Option<String> {
    tensor.external_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
}

#[test]
fn weights_are_external_and_aligned_or_in_the_model() {
    let folder = tempdir().unwrap();
    let recommender = Recommender::new();
    let checkpoint = recommender.checkpoint(folder.path());
    let mut graph = OnnxGraph::new("recommender");
    model::build(&mut graph, &checkpoint).unwrap();
    let path = folder.path().join("model.onnx");
    graph.write(&path).unwrap();
    let model = ModelProto::decode(&*fs::read(&path).unwrap()).unwrap();
    let data = fs::read(folder.path().join("model.onnx.data")).unwrap();
    let graph = model.graph.unwrap();
    let (mut outside, mut inside) = (0, 0);
    for (name, shape, numbers) in &recommender.weights {
        let tensor = graph.initializer.iter().find(|tensor| tensor.name == *name).unwrap();
        let expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert!(tensor.dims.iter().map(|&dim| dim as u64).eq(shape.iter().copied()) && tensor.data_type == 1);
        if tensor.data_location == Some(1) {
            let number = |key| external(tensor, key).unwrap().parse::<usize>().unwrap();
            let (offset, length) = (number("offset"), number("length"));
            assert_eq!(external(tensor, "location").unwrap(), "model.onnx.data");
            assert_eq!((offset % 4096, &data[offset..offset + length]), (0, &*expected), "{name}");
            assert!(length > 1024 && tensor.raw_data.is_none());
            outside += 1;
        } else {
            assert_eq!(tensor.raw_data.as_ref(), Some(&expected), "{name}");
            inside += 1;
        }
    }
    assert!(outside >= 2 && inside >= 2, "{outside} {inside}");
}

#[test]
fn every_input_of_a_node_was_defined_before_it() {
    let folder = tempdir().unwrap();
    let checkpoint = Recommender::new().checkpoint(folder.path());
    let mut graph = OnnxGraph::new("recommender");
    model::build(&mut graph, &checkpoint).unwrap();
    let path = folder.path().join("model.onnx");
    graph.write(&path).unwrap();
    let graph = ModelProto::decode(&*fs::read(&path).unwrap()).unwrap().graph.unwrap();
    let given = graph.input.iter().map(|input| &input.name);
    let mut defined: HashSet<&String> =
        given.chain(graph.initializer.iter().map(|tensor| &tensor.name)).collect();
    assert_eq!(defined.len(), graph.input.len() + graph.initializer.len());
    for node in &graph.node {
        assert!(node.input.iter().all(|input| defined.contains(input)), "{node:?}");
        assert!(node.output.iter().all(|output| defined.insert(output)), "{node:?}");
    }
    assert!(graph.output.iter().all(|output| defined.contains(&output.name)));
    let shape =
        graph.output[0].r#type.as_ref().unwrap().tensor_type.as_ref().unwrap().shape.as_ref().unwrap();
    assert_eq!(shape.dim[0].value, Some(DimensionValue::Param("batch".to_owned())));
}

#[test]
fn a_graph_is_written_whole_or_not() {
    struct Broken;
    impl Source for Broken {
        fn read(&self, start: u64, _: &mut [u8]) -> std::io::Result<()> {
            if start == 0 { Ok(()) } else { Err(std::io::Error::other("the disk is gone")) }
        }
    }
    let folder = tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let mut graph = OnnxGraph::new("broken");
    let table = graph.weight(Entry::new("table", DType::F32, &[1 << 20, 4], Broken)).unwrap();
    graph.output("rows", table).unwrap();
    let error = graph.write(&path).unwrap_err();
    assert!(
        matches!(&error, OnnxError::Io { source, .. } if source.to_string() == "the disk is gone"),
        "{error}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut graph = OnnxGraph::new("whole");
    let x = graph.input("x", DType::F32, &[Dim::batch()]).unwrap();
    let y = graph.relu(x).unwrap();
    graph.output("y", y).unwrap();
    graph.write(&path).unwrap();
    let first = fs::read(&path).unwrap();
    assert!(matches!(graph.write(&path), Err(OnnxError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), first);
}
