//! Checkpoints that were changed after they were written.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use steptime_train::checkpoint::{Checkpoint, CheckpointError, Digest, Options, Store};
use tempfile::{TempDir, tempdir};

use crate::sample::{MODEL, Sample, state};

/// A copy of a checkpoint that was written once.
fn checkpoint() -> (TempDir, PathBuf) {
    static FILES: LazyLock<Vec<(OsString, Vec<u8>)>> = LazyLock::new(|| {
        let folder = tempdir().unwrap();
        let options = Options { shard_bytes: 50_000, ..Options::default() };
        let store = Store::open(folder.path(), options).unwrap();
        let path = store.write(&state(4), MODEL, &Sample::new(4).entries()).unwrap().path;
        files(&path)
            .into_iter()
            .map(|file| (file.file_name().unwrap().into(), fs::read(file).unwrap()))
            .collect()
    });
    let folder = tempdir().unwrap();
    let path = folder.path().join("step-000000000004");
    fs::create_dir(&path).unwrap();
    FILES.iter().for_each(|(name, bytes)| fs::write(path.join(name), bytes).unwrap());
    Sample::new(4).check(&Checkpoint::open(&path).unwrap());
    (folder, path)
}

fn files(checkpoint: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(checkpoint).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Writes lines of `checkpoint.toml` with a hash that fits.
fn rewrite(checkpoint: &Path, change: impl Fn(String) -> String) {
    let path = checkpoint.join("checkpoint.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (lines, _) = text.split_once("# hash").unwrap();
    let lines = change(lines.to_owned());
    let hash = Digest::new(lines.as_bytes());
    fs::write(path, format!("{lines}# hash of the lines above: {hash}\n")).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_changed_or_missing_byte_is_found(
        file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), flip in 1u8.., cut in any::<bool>(),
    ) {
        let (_folder, path) = checkpoint();
        let files = files(&path);
        let file = &files[file.index(files.len())];
        let mut bytes = fs::read(file).unwrap();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        let same = file.ends_with("checkpoint.toml") && bytes.trim_ascii_end() == fs::read(file).unwrap().trim_ascii_end();
        fs::write(file, &bytes).unwrap();
        let error = Checkpoint::open(&path);
        prop_assert_eq!(error.is_ok(), same);
        if let Err(error) = error {
            let name = file.file_name().unwrap().to_string_lossy();
            prop_assert!(error.to_string().contains(&*name), "{} {}", name, error);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A change that hashes do not find, because they were made to fit or are not compared, never ends the process.
    #[test]
    fn any_description_and_any_header_is_read_or_refused(
        header in any::<bool>(), at in any::<prop::sample::Index>(), with in prop::collection::vec(32u8..127, 0..6),
        cut in 0usize..6,
    ) {
        let (_folder, path) = checkpoint();
        if header {
            let shard = path.join("shard-00001.safetensors");
            let mut bytes = fs::read(&shard).unwrap();
            let end = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize + 8;
            let at = at.index(end);
            with.iter().zip(&mut bytes[at..]).for_each(|(with, byte)| *byte = *with);
            fs::write(&shard, bytes).unwrap();
        } else {
            rewrite(&path, |text| {
                let at = at.index(text.len());
                let (before, rest) = text.as_bytes().split_at(at);
                let text = [before, &with, &rest[cut.min(rest.len())..]].concat();
                String::from_utf8_lossy(&text).into_owned()
            });
        }
        if let Ok(checkpoint) = Checkpoint::open_unhashed(&path) {
            for tensor in checkpoint.tensors() {
                let _ = checkpoint.read::<f32>(&tensor.name);
                let _ = checkpoint.read::<i64>(&tensor.name);
            }
        }
    }
}

#[test]
fn every_missing_file_is_named() {
    for index in 0..files(&checkpoint().1).len() {
        let (_folder, path) = checkpoint();
        let file = files(&path).swap_remove(index);
        fs::remove_file(&file).unwrap();
        let error = Checkpoint::open(&path).unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()) && error.contains("missing"), "{error}");
    }
}

#[test]
fn descriptions_that_contradict_the_shards_are_refused() {
    let cases: [(&str, &str, &str); 7] = [
        ("version = 1", "version = 2", "version 2, and this program reads up to 1"),
        ("shape = [5, 7]", "shape = [5, 9]", "another type or shape"),
        ("shape = [3000, 12]", "shape = [4000, 12]", "not all of its rows"),
        ("shape = [3000, 12]", "shape = [3000, 9223372036854775807]", "exceeds 64 bits"),
        ("bottom.0.weight", "bottom.1.weight", "bottom.1.weight is missing"),
        ("\"bf16\"", "\"f8\"", "unknown element type \"f8\""),
        ("shard-00000", "../shard-00000", "not a file's name"),
    ];
    for (from, to, reason) in cases {
        let (_folder, path) = checkpoint();
        rewrite(&path, |text| {
            assert!(text.contains(from), "{from} in {text}");
            text.replacen(from, to, 1)
        });
        let error = Checkpoint::open(&path).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_version_is_read_before_its_fields() {
    let (_folder, path) = checkpoint();
    rewrite(&path, |text| text.replacen("version = 1", "version = 9\nfuture = true", 1));
    assert!(matches!(Checkpoint::open(&path), Err(CheckpointError::Version { version: 9, known: 1, .. })));
}

#[test]
fn hashes_are_skipped_on_request_alone() {
    let (_folder, path) = checkpoint();
    let shard = path.join("shard-00000.safetensors");
    let mut bytes = fs::read(&shard).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&shard, bytes).unwrap();
    let opened = Checkpoint::open_unhashed(&path).unwrap();
    let error = opened.verify().unwrap_err();
    assert!(matches!(&error, CheckpointError::Damaged { path, .. } if *path == shard), "{error}");
}
