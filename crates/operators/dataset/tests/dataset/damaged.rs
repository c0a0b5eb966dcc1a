//! Cut, changed and missing files are errors that name the place.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use steptime_dataset::{BatchOptions, Batches, Dataset, DenseType, Shuffle, SplitName};

use crate::rows::Drawn;

fn written(folder: &Path) -> (PathBuf, Drawn) {
    let place = folder.join("data");
    let drawn = Drawn::new(50, 2, DenseType::F32, 1);
    drawn.write(&place, 16, 10);
    (place, drawn)
}

fn files(place: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(place).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

fn opened(place: &Path) -> String {
    Dataset::open(place).map_or_else(|error| error.to_string(), |_| "opened".to_owned())
}

#[test]
fn a_file_of_another_length_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, _) = written(folder.path());
    for path in files(&place).into_iter().filter(|path| path.extension().is_some_and(|e| e == "bin")) {
        let bytes = fs::read(&path).expect("bytes");
        for length in [0, bytes.len() - 1, bytes.len() + 1] {
            let mut other = bytes.clone();
            other.resize(length, 0);
            fs::write(&path, other).expect("written");
            let error = opened(&place);
            let expected = format!("{} has {length} bytes, but", path.display());
            assert!(error.contains(&expected), "{error} for {expected}");
        }
        fs::remove_file(&path).expect("removed");
        assert!(opened(&place).contains(&format!("cannot use {}", path.display())));
        fs::write(&path, bytes).expect("written");
        assert_eq!(opened(&place), "opened");
    }
}

#[test]
fn a_contradicting_description_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, _) = written(folder.path());
    let path = place.join("features.toml");
    let text = fs::read_to_string(&path).expect("a description");
    for (from, to, message) in [
        ("version = 1", "version = 2", "is of version 2, and this steptime reads version 1"),
        ("rows = 50", "rows = 51", "has 200 bytes, but its 51 values of 4 bytes need 204"),
        ("rows = 50", "rows = 18446744073709551615", "label.bin has 200 bytes"),
        ("rows = 50", "rows = -1", "features.toml"),
        ("rows = 50", "rows = 9223372036854775807", "label.bin has 200 bytes"),
        ("rows = 50", "rows = 50\nextra = 1", "unknown field `extra`"),
        ("train = [0, 40]", "train = [41, 40]", "the split [41, 40] is not within the 50 rows"),
        ("validation = [40, 50]", "validation = [40, 51]", "the split [40, 51] is not within the 50 rows"),
        ("cardinality = 200", "cardinality = 0", "a cardinality of 0 is not in 1..=2147483647"),
        ("cardinality = 200", "cardinality = 3000000000", "a cardinality of 3000000000 is not in"),
        ("cardinality = 200", "cardinality = 257", "its type is too narrow for 257 categories"),
        ("hotness = 3", "hotness = 0", "hotness is a number from 1, or \"offsets\""),
        ("hotness = 3", "hotness = \"many\"", "hotness is a number from 1, or \"offsets\""),
        ("hotness = 3", "hotness = \"offsets\"", "are given with hotness = \"offsets\", and only then"),
        ("hotness = 3", "hotness = 4294967295", "bytes, but its 214748364750 values of 1 bytes"),
        ("dense.bin", "label.bin", "two columns use the file label.bin"),
        ("dense.bin", "../dense.bin", "\"../dense.bin\" is not the name of a file"),
        ("dense.bin", "/dense.bin", "\"/dense.bin\" is not the name of a file"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        fs::write(&path, text.replacen(from, to, 1)).expect("written");
        let error = opened(&place);
        assert!(error.contains(message), "{error} for {message}");
    }
}

/// Overwrites bytes of a file of a closed dataset.
fn patch(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).expect("a file");
    file.seek(SeekFrom::Start(at)).expect("a place");
    file.write_all(bytes).expect("written");
}

fn first_error(place: &Path, split: SplitName, shuffle: Option<Shuffle>) -> Option<String> {
    let source = Arc::new(Dataset::open(place).expect("a dataset").split(split));
    let options = BatchOptions { shuffle, ..BatchOptions::new(7) };
    let mut batches = Batches::new(source, options).expect("batches");
    let error = batches.find_map(Result::err)?;
    assert!(batches.next().is_none(), "nothing after an error");
    Some(error.to_string())
}

#[test]
fn an_index_outside_its_table_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, drawn) = written(folder.path());
    let file = |column: usize| place.join(&drawn.features.categorical[column].file);
    for (column, at, bytes, row, value) in [
        (0, 44, &[201_u8][..], 44, 201),
        (1, 2 * 41, &[0xff, 0xff][..], 41, 65_535),
        (2, 4 * 49, &(-7_i32).to_le_bytes()[..], 49, -7),
    ] {
        let before = fs::read(file(column)).expect("bytes");
        patch(&file(column), at, bytes);
        for shuffle in [None, Some(Shuffle { seed: 1, block: 2, blocks: 2 })] {
            assert_eq!(first_error(&place, SplitName::Train, shuffle), None);
            let error = first_error(&place, SplitName::Validation, shuffle).expect("an error");
            let name = &drawn.features.categorical[column].name;
            let part =
                format!("{}: row {row}, column {name}: index {value} is outside 0..", file(column).display());
            assert!(error.starts_with(&part), "{error} for {part}");
        }
        fs::write(file(column), before).expect("written");
    }
    // The middle one of three indices, and one of a column with offsets.
    patch(&file(5), 0, &[9]);
    let error = first_error(&place, SplitName::Train, None).expect("an error");
    assert!(error.contains("column c/5 ü: index 9 is outside 0..9"), "{error}");
}

#[test]
fn offsets_that_do_not_ascend_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, drawn) = written(folder.path());
    let path = place.join(drawn.features.categorical[4].offsets.as_ref().expect("offsets"));
    let before = fs::read(&path).expect("bytes");
    for offset in [0, 1_000_000, u64::MAX] {
        patch(&path, 8 * 45, &u64::to_le_bytes(offset));
        for shuffle in [None, Some(Shuffle { seed: 1, block: 2, blocks: 2 })] {
            let error = first_error(&place, SplitName::Validation, shuffle).expect("an error");
            assert!(error.contains(".offsets.bin: row 4") && error.contains("column c/4 ü"), "{error}");
        }
        fs::write(&path, &before).expect("written");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_change_of_any_file_is_read_or_refused(file in 0_usize..11, at in 0.0..1.0, bytes: [u8; 8], cut: bool) {
        static WHOLE: LazyLock<Vec<(OsString, Vec<u8>)>> = LazyLock::new(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let (place, _) = written(folder.path());
            let named = |path: PathBuf| {
                (path.file_name().expect("a name").to_owned(), fs::read(&path).expect("bytes"))
            };
            files(&place).into_iter().map(named).collect()
        });
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().to_owned();
        WHOLE.iter().for_each(|(name, bytes)| fs::write(place.join(name), bytes).expect("written"));
        let path = &files(&place)[file];
        let mut content = fs::read(path).expect("bytes");
        let at = (content.len() as f64 * at) as usize;
        let end = content.len().min(at + 8);
        content[at..end].copy_from_slice(&bytes[..end - at]);
        if cut {
            content.truncate(at);
        }
        fs::write(path, content).expect("written");
        if let Ok(dataset) = Dataset::open(&place) {
            let source = Arc::new(dataset.split(SplitName::Train));
            let batches = Batches::new(source, BatchOptions::new(7)).expect("batches");
            batches.for_each(|batch| drop(batch.map(|batch| batch.rows())));
        }
    }
}
