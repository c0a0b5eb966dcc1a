//! A disk that fails at any operation.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use steptime_train::checkpoint::{
    Checkpoint, CheckpointError, Disk, DurableFile, LocalDisk, Options, Store, list, newest,
};
use tempfile::tempdir;

use crate::sample::{MODEL, Sample, state};

/// Fails at the operation of that number: once, or from there on, as if the process had ended. It waits for no disk.
#[derive(Clone)]
struct Failing {
    done: Arc<AtomicUsize>,
    fails_at: usize,
    ends: bool,
    kind: io::ErrorKind,
}

impl Failing {
    fn operation(&self) -> io::Result<()> {
        let number = self.done.fetch_add(1, Ordering::SeqCst);
        let fails = if self.ends { number >= self.fails_at } else { number == self.fails_at };
        if fails { Err(self.kind.into()) } else { Ok(()) }
    }
}

impl Disk for Failing {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.operation()?;
        LocalDisk.create_folder(path)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DurableFile>> {
        self.operation()?;
        Ok(Box::new(FailingFile { file: LocalDisk.create_file(path)?, disk: self.clone() }))
    }

    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        self.operation()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operation()?;
        LocalDisk.rename(from, to)
    }

    /// Removes half of the files before it fails.
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let failed = self.operation();
        if failed.is_err() && path.exists() {
            let files: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
            files[..files.len() / 2].iter().try_for_each(|file| fs::remove_file(file.path()))?;
        }
        failed?;
        LocalDisk.remove_folder(path)
    }
}

struct FailingFile {
    file: Box<dyn DurableFile>,
    disk: Failing,
}

impl Write for FailingFile {
    /// Writes half of the bytes before it fails.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.disk.operation() {
            self.file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DurableFile for FailingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.operation()
    }
}

const SMALL: Options = Options { keep: std::num::NonZero::new(2).unwrap(), shard_bytes: 60_000 };

/// Writes steps 1 and 2 on a good disk, then 3 on one that fails; returns the operations of that write and its result.
fn third(
    folder: &Path,
    fails_at: usize,
    ends: bool,
    kind: io::ErrorKind,
) -> (usize, Result<(), CheckpointError>) {
    let disk = Failing { done: Arc::default(), fails_at: usize::MAX, ends, kind };
    let store = Store::with_disk(folder, SMALL, Box::new(disk)).unwrap();
    for step in [1, 2] {
        store.write(&state(step), MODEL, &Sample::new(step).entries()).unwrap();
    }
    drop(store);
    let disk = Failing { done: Arc::default(), fails_at, ends, kind };
    let store = Store::with_disk(folder, SMALL, Box::new(disk.clone())).unwrap();
    let written = store.write(&state(3), MODEL, &Sample::new(3).entries());
    let result = written.and_then(|written| written.removed.map(|_| ()));
    (disk.done.load(Ordering::SeqCst), result)
}

/// The newest checkpoint is whole, is step 2 or 3, and the next process can write.
fn check(folder: &Path, written: bool) {
    let checkpoint = newest(folder).unwrap().unwrap();
    let step = checkpoint.state().step;
    assert!(step == 3 || step == 2 && !written, "step {step}");
    Sample::new(step).check(&checkpoint);
    for (step, path) in list(folder).unwrap() {
        Sample::new(step).check(&Checkpoint::open(&path).unwrap());
    }
    let store = Store::open(folder, SMALL).unwrap();
    store.write(&state(9), MODEL, &Sample::new(9).entries()).unwrap().removed.unwrap();
    let names: HashSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = [".lock".to_owned(), format!("step-{step:012}"), "step-000000000009".to_owned()];
    assert_eq!(names, expected.into(), "after step {step}");
}

#[test]
fn a_failure_at_any_operation_leaves_whole_checkpoints() {
    let whole = tempdir().unwrap();
    let (operations, result) = third(whole.path(), usize::MAX, false, io::ErrorKind::Other);
    result.unwrap();
    assert!(operations > 15, "{operations}");
    for ends in [false, true] {
        for fails_at in 0..operations {
            let folder = tempdir().unwrap();
            let (_, result) = third(folder.path(), fails_at, ends, io::ErrorKind::Other);
            assert!(result.is_err(), "operation {fails_at}");
            check(folder.path(), false);
        }
    }
}

#[test]
fn a_full_disk_is_said_with_the_needed_bytes() {
    let folder = tempdir().unwrap();
    for fails_at in 1..6 {
        let (_, result) = third(
            folder.path().join(fails_at.to_string()).as_path(),
            fails_at,
            false,
            io::ErrorKind::StorageFull,
        );
        let error = result.unwrap_err();
        let bytes = 3000 * 12 * 4 + 35 * 4 + 77 * 2 + 3000 * 8 + 8;
        assert!(
            matches!(error, CheckpointError::NoSpace { bytes: needed, .. } if needed == bytes),
            "{error}"
        );
        assert!(error.to_string().contains("no space for the checkpoint of 168302 bytes"), "{error}");
    }
}

/// Records operations: every file and the folder are permanent before the folder is renamed, and the name afterwards.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<(&'static str, PathBuf)>>>);

impl Recording {
    fn note(&self, operation: &'static str, path: &Path) {
        self.0.lock().unwrap().push((operation, path.to_path_buf()));
    }
}

impl Disk for Recording {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        LocalDisk.create_folder(path)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DurableFile>> {
        self.note("create", path);
        Ok(Box::new(RecordingFile(LocalDisk.create_file(path)?, path.to_path_buf(), self.clone())))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.note("sync", path);
        LocalDisk.sync_folder(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("rename", from);
        LocalDisk.rename(from, to)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        LocalDisk.remove_folder(path)
    }
}

struct RecordingFile(Box<dyn DurableFile>, PathBuf, Recording);

impl Write for RecordingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.2.note("write", &self.1);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl DurableFile for RecordingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.2.note("sync", &self.1);
        self.0.sync()
    }
}

#[test]
fn all_is_permanent_before_it_is_renamed() {
    let folder = tempdir().unwrap();
    let disk = Recording::default();
    let store = Store::with_disk(folder.path(), SMALL, Box::new(disk.clone())).unwrap();
    let path = store.write(&state(1), MODEL, &Sample::new(1).entries()).unwrap().path;
    let partial = path.with_extension("partial");
    let log = disk.0.lock().unwrap().clone();
    let at = |operation, path: &Path| log.iter().rposition(|(o, p)| *o == operation && p == path);
    let renamed = at("rename", &partial).unwrap();
    let files: Vec<PathBuf> =
        log.iter().filter(|(o, _)| *o == "create").map(|(_, path)| path.clone()).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in &files {
        assert!(at("write", file) < at("sync", file) && at("sync", file).unwrap() < renamed);
        assert!(at("create", file) < at("sync", &partial));
    }
    assert!(at("sync", &partial).unwrap() < renamed);
    assert_eq!(at("sync", folder.path()), Some(renamed + 1));
}
