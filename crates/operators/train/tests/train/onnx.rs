//! Exported graphs: outputs of `onnxruntime` against a plain forward pass in double precision, and their files.

mod files;
mod model;
mod reference;
mod refused;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use steptime_train::onnx::OnnxGraph;
use tempfile::tempdir;

use crate::python;
use model::{Indices, Recommender};

const BATCH: usize = 5;

fn bytes<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.flatten().collect()
}

/// Writes the inputs of a batch for `outputs.py`.
fn write_inputs(folder: &Path, dense: &[f32], indices: &[Indices]) {
    let mut described = BTreeMap::from([("dense".to_owned(), ("float32", [BATCH, dense.len() / BATCH]))]);
    fs::write(folder.join("dense.bin"), bytes(dense.iter().map(|x| x.to_le_bytes()))).unwrap();
    for (name, lookups, indices) in indices {
        described.insert(name.clone(), ("int64", [BATCH, *lookups]));
        fs::write(folder.join(format!("{name}.bin")), bytes(indices.iter().map(|i| i.to_le_bytes())))
            .unwrap();
    }
    fs::write(folder.join("inputs.json"), serde_json::to_string(&described).unwrap()).unwrap();
}

#[test]
fn onnxruntime_computes_the_same_outputs() {
    let folder = tempdir().unwrap();
    let recommender = Recommender::new();
    let checkpoint = recommender.checkpoint(folder.path());
    let mut graph = OnnxGraph::new("recommender");
    model::build(&mut graph, &checkpoint).unwrap();
    let path = folder.path().join("model.onnx");
    graph.write(&path).unwrap();
    let (dense, indices) = recommender.inputs(BATCH);
    write_inputs(folder.path(), &dense, &indices);
    let Some(printed) = python::run("outputs.py", &[&path, folder.path()], "numpy, onnx, onnxruntime") else {
        return;
    };
    let expected = reference::outputs(&recommender, &dense, &indices);
    assert_eq!(printed.lines().count(), expected.len(), "{printed}");
    for (name, expected) in expected {
        let output = fs::read(folder.path().join(format!("{name}.bin"))).unwrap();
        let output: Vec<f32> = output.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        assert_eq!(output.len(), expected.len(), "{name}");
        let largest = expected.iter().fold(0f64, |most, x| most.max(x.abs()));
        assert!(largest > 1e-3, "{name}: {expected:?}");
        for (output, expected) in output.iter().zip(&expected) {
            let error = (f64::from(*output) - expected).abs();
            assert!(error <= 1e-5 * largest, "{name}: {output} {expected}");
        }
    }
}
