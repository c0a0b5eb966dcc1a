//! Written rows are the read ones, and folders get their name when they are complete.

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use steptime_dataset::{
    BatchOptions, Batches, Block, Column, DenseType, Features, IndexType, Rows, Shuffle, Source, SplitName,
    Splits, Writer,
};

use crate::rows::{Drawn, Row, of_batch};

fn read(source: Arc<dyn Source>, options: BatchOptions) -> Vec<Row> {
    let batches = Batches::new(source, options).expect("batches");
    batches.flat_map(|batch| of_batch(&batch.expect("a batch"))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn written_rows_are_read(
        rows in 0_usize..300,
        validation in 0.0..1.0,
        dense in 0_usize..20,
        half: bool,
        blocks in 1_usize..400,
        batch in 1_usize..400,
        seed: u64,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let r#type = if half { DenseType::F16 } else { DenseType::F32 };
        let drawn = Drawn::new(rows, dense, r#type, seed);
        let validation = (rows as f64 * validation) as usize;
        let dataset = drawn.write(&folder.path().join("data"), blocks, validation);
        let expected = drawn.rows();
        let (train, validated) = expected.split_at(rows - validation);
        for (split, expected) in [(SplitName::Train, train), (SplitName::Validation, validated)] {
            let in_memory = drawn.source(expected.to_vec());
            for batch in [1, batch, 5000] {
                let options = BatchOptions::new(batch);
                let split = Arc::new(dataset.split(split));
                prop_assert_eq!(&read(split.clone(), options), expected);
                let shuffle = Some(Shuffle { seed, block: 8, blocks: 3 });
                let shuffled = BatchOptions { shuffle, ..options };
                prop_assert_eq!(read(split, shuffled), read(in_memory.clone(), shuffled));
            }
        }
        let described = Features::read(&folder.path().join("data")).expect("a description");
        prop_assert_eq!(&described, dataset.features());
        let types = described.categorical.iter().map(|column| column.r#type);
        use IndexType::{I32, U8, U16};
        prop_assert!(types.eq([U8, U16, I32, U8, I32, U8]));
        prop_assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}

#[test]
fn the_description_is_readable() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("data");
    Drawn::new(10, 2, DenseType::F16, 1).write(&place, 4, 3);
    let text = fs::read_to_string(place.join("features.toml")).expect("a description");
    for part in [
        "version = 1\nrows = 10\n",
        "train = [0, 7]\nvalidation = [7, 10]\n",
        "columns = [\"d0\", \"d1\"]\ntype = \"f16\"\ntransform = \"log1p\"\nfile = \"dense.bin\"\n",
        "cardinality = 256\ntype = \"u8\"\nhotness = 3\nfile = \"03_c_3__.bin\"\n",
        "hotness = \"offsets\"\nfile = \"04_c_4__.bin\"\noffsets = \"04_c_4__.offsets.bin\"\nvalues = ",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn nothing_is_left_of_an_unfinished_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("data");
    let drawn = Drawn::new(10, 2, DenseType::F32, 1);
    let writer = Writer::create(&place, drawn.features.clone()).expect("a new folder");
    assert!(!place.exists());
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    // Splits beyond the rows.
    let writer = Writer::create(&place, drawn.features).expect("a new folder");
    let error = writer.finish(Splits { train: [0, 1], validation: [1, 1] }).expect_err("no rows");
    assert!(error.to_string().contains("the split [0, 1] is not within the 0 rows"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn an_occupied_place_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let features = Drawn::new(0, 0, DenseType::F32, 1).features;
    let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
    fs::create_dir_all(full.join("mine")).expect("a folder");
    let error = Writer::create(&full, features.clone()).expect_err("occupied");
    assert!(error.to_string().contains("already exists"), "{error}");
    fs::create_dir(&empty).expect("a folder");
    let writer = Writer::create(&empty, features).expect("an empty folder");
    writer.finish(Splits::default()).expect("complete");
    assert!(full.join("mine").is_dir() && empty.join("features.toml").is_file());
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let drawn = Drawn::new(1, 1, DenseType::F32, 1);
    let fits = |changed: &dyn Fn(&mut Drawn)| {
        let mut drawn = Drawn::new(1, 1, DenseType::F32, 1);
        changed(&mut drawn);
        let column = |(values, lengths)| Column { values, lengths: Option::as_deref(lengths) };
        let pairs = drawn.values.iter().map(Vec::as_slice).zip(&drawn.lengths);
        let categorical = pairs.map(column).collect();
        let rows = Rows { label: &drawn.label, dense: &drawn.dense, categorical };
        Block::encode(&drawn.features, &rows).map(|block| block.rows())
    };
    assert_eq!(fits(&|_| ()).expect("rows"), 1);
    assert!(drawn.values[3].len() == 3);
    type Change<'a> = (&'a dyn Fn(&mut Drawn), &'a str);
    let changes: [Change; 6] = [
        (&|drawn| drawn.dense.push(0.0), "2 dense values for 1 columns"),
        (&|drawn| drawn.values[3].truncate(2), "column c/3 ü has 2 indices"),
        (&|drawn| drawn.values[0][0] = 200, "index 200 is outside 0..200"),
        (&|drawn| drawn.values[1][0] = -1, "index -1 is outside 0..60000"),
        (&|drawn| drawn.lengths[4] = None, "column c/4 ü has"),
        (&|drawn| drawn.lengths[0] = Some(vec![1]), "column c/0 ü has"),
    ];
    for (change, message) in changes {
        let error = fits(change).expect_err(message).to_string();
        assert!(error.contains(message), "{error} for {message}");
    }
}
