//! Checkpoints read by the Python package `safetensors`.

use std::fs;

use steptime_train::checkpoint::{Checkpoint, Options, Store};
use tempfile::tempdir;

use crate::python;
use crate::sample::{MODEL, Sample, state};

#[test]
fn the_package_safetensors_reads_the_same_bytes() {
    let (folder, read) = (tempdir().unwrap(), tempdir().unwrap());
    let store = Store::open(folder.path(), Options { shard_bytes: 50_000, ..Options::default() }).unwrap();
    let path = store.write(&state(6), MODEL, &Sample::new(6).entries()).unwrap().path;
    let Some(output) = python::run("shards.py", &[&path, read.path()], "safetensors") else { return };
    assert_eq!(output.trim(), "6 5 4");
    let checkpoint = Checkpoint::open(&path).unwrap();
    for (index, tensor) in checkpoint.tensors().iter().enumerate() {
        let mut bytes = vec![0; tensor.bytes().unwrap() as usize];
        checkpoint.read_bytes(&tensor.name, 0, &mut bytes).unwrap();
        assert_eq!(fs::read(read.path().join(format!("{index}.bin"))).unwrap(), bytes, "{}", tensor.name);
    }
}
