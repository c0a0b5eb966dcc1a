//! Checkpoints that are written and read.

use std::fs;
use std::num::NonZero;
use std::path::Path;

use proptest::prelude::*;
use steptime_train::checkpoint::{self, Checkpoint, CheckpointError, Digest, Entry, Options, State, Store};
use tempfile::tempdir;

use crate::sample::{COLUMNS, MODEL, ROWS, Sample, state};

fn options(keep: usize, shard_bytes: u64) -> Options {
    Options { keep: NonZero::new(keep).unwrap(), shard_bytes }
}

fn written(folder: &Path, step: u64, shard_bytes: u64) -> Checkpoint {
    let store = Store::open(folder, options(3, shard_bytes)).unwrap();
    let written = store.write(&state(step), MODEL, &Sample::new(step).entries()).unwrap();
    assert_eq!(written.removed.unwrap(), 0);
    Checkpoint::open(&written.path).unwrap()
}

#[test]
fn what_is_read_has_the_bits_that_were_written() {
    for shard_bytes in [20_000, 60_000, 1 << 30] {
        let folder = tempdir().unwrap();
        let checkpoint = written(folder.path(), 7, shard_bytes);
        Sample::new(7).check(&checkpoint);
        assert_eq!(*checkpoint.state(), state(7));
        assert_eq!(checkpoint.model().text, MODEL);
        assert_eq!(checkpoint.model().hash, Digest::new(MODEL.as_bytes()));
        let shards: Vec<u64> = fs::read_dir(checkpoint.folder())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(".safetensors"))
            .map(|entry| entry.metadata().unwrap().len())
            .collect();
        assert!(shards.iter().all(|&bytes| bytes <= shard_bytes), "{shards:?}");
        assert_eq!(shards.len() > 1, shard_bytes < 1 << 30);
    }
}

#[test]
fn two_writes_have_the_same_bytes() {
    let folders = [tempdir().unwrap(), tempdir().unwrap()];
    let files = folders.each_ref().map(|folder| {
        let checkpoint = written(folder.path(), 5, 20_000);
        let mut files: Vec<_> = fs::read_dir(checkpoint.folder())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    });
    assert_eq!(files[0], files[1]);
}

#[test]
fn a_checkpoint_is_copied_by_its_entries() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let checkpoint = written(from.path(), 3, 20_000);
    let names = checkpoint.tensors().iter().map(|tensor| &tensor.name);
    let entries: Vec<Entry<'_>> = names.map(|name| checkpoint.entry(name).unwrap()).collect();
    let store = Store::open(to.path(), options(1, 50_000)).unwrap();
    let copy = store.write(checkpoint.state(), &checkpoint.model().text, &entries).unwrap();
    Sample::new(3).check(&Checkpoint::open(&copy.path).unwrap());
}

#[test]
fn the_last_ones_are_kept() {
    let folder = tempdir().unwrap();
    let store = Store::open(folder.path(), options(2, 1 << 20)).unwrap();
    for step in [10, 20, 30, 40] {
        store.write(&state(step), MODEL, &Sample::new(step).entries()).unwrap().removed.unwrap();
        Sample::new(step).check(&checkpoint::newest(folder.path()).unwrap().unwrap());
    }
    let steps: Vec<u64> =
        checkpoint::list(folder.path()).unwrap().into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, [30, 40]);
    assert!(checkpoint::newest(&folder.path().join("none")).unwrap().is_none());
}

#[test]
fn a_run_that_resumes_from_an_earlier_one_removes_those_after_it() {
    let folder = tempdir().unwrap();
    let store = Store::open(folder.path(), options(4, 1 << 20)).unwrap();
    for step in [10, 20, 30] {
        store.write(&state(step), MODEL, &Sample::new(step).entries()).unwrap();
    }
    assert_eq!(store.remove_after(15).unwrap(), 2);
    store.write(&state(20), MODEL, &Sample::new(20).entries()).unwrap();
    let steps: Vec<u64> =
        checkpoint::list(folder.path()).unwrap().into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, [10, 20]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_step_is_written_once_by_one_process() {
    let folder = tempdir().unwrap();
    let store = Store::open(folder.path(), Options::default()).unwrap();
    let sample = Sample::new(1);
    store.write(&state(1), MODEL, &sample.entries()).unwrap();
    let again = store.write(&state(1), MODEL, &sample.entries());
    assert!(matches!(again, Err(CheckpointError::Exists { .. })));
    let second = Store::open(folder.path(), Options::default());
    assert!(matches!(second, Err(CheckpointError::Locked { .. })));
    drop(store);
    assert!(Store::open(folder.path(), Options::default()).is_ok());
}

#[test]
fn requests_that_do_not_fit_are_refused() {
    let folder = tempdir().unwrap();
    let checkpoint = written(folder.path(), 1, 20_000);
    let message = |error: CheckpointError| error.to_string();
    assert!(message(checkpoint.read::<f32>("none").unwrap_err()).contains("no tensor none"));
    assert!(message(checkpoint.read::<f32>("step").unwrap_err()).contains("step is i64, not f32"));
    let rows = checkpoint.read_rows::<f32>("embeddings.0.weight", 2999..3001);
    assert!(message(rows.unwrap_err()).contains("rows 2999 to 3001 are outside of its 3000"));
    let buffer = checkpoint.read_rows_into("embeddings.0.counts", 3..5, &mut [0i64; 3]);
    assert!(message(buffer.unwrap_err()).contains("the rows have 2 numbers, the buffer has 3"));
    let bytes = checkpoint.read_bytes("step", 4, &mut [0; 5]);
    assert!(message(bytes.unwrap_err()).contains("bytes 4 to 9 are outside of its 8"));
    assert!(matches!(Entry::from_slice("a", &[2, 3], &[0.0f32; 5]), Err(CheckpointError::Shape { .. })));
}

#[test]
fn a_source_that_fails_is_named() {
    struct Broken;
    impl checkpoint::Source for Broken {
        fn read(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
            Err(std::io::Error::other("the GPU is gone"))
        }
    }
    let folder = tempdir().unwrap();
    let store = Store::open(folder.path(), Options::default()).unwrap();
    let entry = Entry::new("table", steptime_tensor::DType::F32, &[10, 10], Broken);
    let error = store.write(&State::default(), MODEL, &[entry]).unwrap_err();
    assert!(
        matches!(&error, CheckpointError::Io { source, .. } if source.to_string() == "the GPU is gone"),
        "{error}"
    );
    assert!(checkpoint::list(folder.path()).unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_rows_are_those_of_the_whole(first in 0..ROWS, count in 0..ROWS, shard_bytes in 2_000u64..100_000) {
        let folder = tempdir().unwrap();
        let checkpoint = written(folder.path(), 9, shard_bytes);
        let last = (first + count).min(ROWS);
        let rows: Vec<f32> = checkpoint.read_rows("embeddings.0.weight", first..last).unwrap();
        let whole = &Sample::new(9).table[(first * COLUMNS) as usize..(last * COLUMNS) as usize];
        prop_assert!(rows.iter().map(|x| x.to_bits()).eq(whole.iter().map(|x| x.to_bits())));
        let mut counts = vec![0; (last - first) as usize];
        checkpoint.read_rows_into("embeddings.0.counts", first..last, &mut counts).unwrap();
        prop_assert_eq!(&counts[..], &Sample::new(9).counts[first as usize..last as usize]);
    }

    #[test]
    fn any_shapes_are_written_in_any_shards(
        shapes in prop::collection::vec(prop::collection::vec(0u64..20, 0..4), 0..12), shard_bytes in 35_000u64..90_000,
    ) {
        let folder = tempdir().unwrap();
        let count = |shape: &[u64]| shape.iter().product::<u64>() as usize;
        let numbers: Vec<Vec<i64>> = shapes.iter().map(|shape| (0..count(shape) as i64).collect()).collect();
        let entry = |(i, shape): (usize, &Vec<u64>)| Entry::from_slice(format!("t{i}"), shape, &numbers[i]).unwrap();
        let entries: Vec<Entry<'_>> = shapes.iter().enumerate().map(entry).collect();
        let store = Store::open(folder.path(), options(1, shard_bytes)).unwrap();
        let path = store.write(&state(0), "", &entries).unwrap().path;
        let checkpoint = Checkpoint::open(&path).unwrap();
        for (i, shape) in shapes.iter().enumerate() {
            prop_assert_eq!(&checkpoint.tensors()[i].shape, shape);
            prop_assert_eq!(&checkpoint.read::<i64>(&format!("t{i}")).unwrap(), &numbers[i]);
        }
    }
}
