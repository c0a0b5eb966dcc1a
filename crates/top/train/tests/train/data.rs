//! Datasets: conversion, comparison with the model, damaged files.

use std::fmt::Write;

use steptime_dataset::{Planted, PlantedOptions};

use crate::{Place, tensors};

/// A small model of single lookups.
fn place(rows: u32) -> Place {
    Place::with_model(&format!(
        "model = 'dlrm'\nbatch = 32\ndense = 4\nbottom_mlp = [4]\ntop_mlp = [8, 1]\ntables = [{{ rows = {rows}, columns = 4 }}, {{ rows = 7, columns = 4 }}]\n"
    ))
}

/// Writes 300 rows for training and 100 for validation.
fn planted(place: &Place, name: &str) {
    let options = PlantedOptions { dense: 4, cardinalities: vec![50, 7], ..PlantedOptions::new(1, 400) };
    Planted::new(options).unwrap().write(&place.path(name), 100, 1).unwrap();
}

#[test]
fn a_dataset_is_trained_for_epochs_and_continued() {
    let place = place(50);
    planted(&place, "rows");
    let answer: serde_json::Value =
        serde_json::from_str(&place.stdout("model.toml --json --data rows --epochs 3 -o whole")).unwrap();
    // 9 whole batches in each epoch.
    assert_eq!(answer["measured"]["steps"].as_u64(), Some(27));
    assert_eq!(
        answer["evaluations"][0]["samples"].as_u64(),
        Some(100),
        "all validation rows, a short batch too"
    );
    place.train("--data rows --steps 13 -o parts");
    place.train("--data rows --epochs 3 -o parts --resume");
    assert_eq!(tensors(&place.path("whole")), tensors(&place.path("parts")));
    let end = place.failure("model.toml --data rows --epochs 3 -o parts --resume");
    assert!(end.contains("step 27 is the end") && end.contains("--epochs"), "{end}");
}

#[test]
fn data_that_does_not_fit_is_refused_with_all_differences() {
    let place = place(40);
    planted(&place, "rows");
    let message = place.failure("model.toml --data rows -o run");
    assert!(message.contains("column C1 has 50 categories, and table 0 has 40 rows"), "{message}");
    place.write("model.toml", "model = 'dlrm'\nbatch = 32\ndense = 3\nbottom_mlp = [4]\ntop_mlp = [1]\ntables = [{ rows = 50, columns = 4, lookups = 2 }]\n");
    let message = place.failure("model.toml --data rows");
    for words in ["4 dense columns", "2 categorical columns, and the model 1 tables", "set `lookups = 1`"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let message = place.failure("model.toml --data missing");
    assert!(message.contains("missing"), "{message}");
}

#[test]
fn an_index_out_of_range_is_named_with_its_table() {
    let place = place(50);
    planted(&place, "rows");
    let file = place.path("rows/00_C1.bin");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[17] = 200;
    std::fs::write(&file, bytes).unwrap();
    let message = place.failure("model.toml --data rows --epochs 1");
    for words in ["column C1", "table 0", "200", "0..50", "row 17"] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn criteo_text_is_converted_and_trained() {
    let mut text = String::new();
    for row in 0..300_u32 {
        write!(text, "{}", row % 2).unwrap();
        (0..13).for_each(|column| write!(text, "\t{}", (row * column) % 17).unwrap());
        (0..26).for_each(|column| write!(text, "\t{:08x}", (row + column) % 9).unwrap());
        text.push('\n');
    }
    text.push_str("a damaged line\n");
    let place = Place::with_model(
        "model = 'dlrm'\nbatch = 32\ndense = 13\nbottom_mlp = [4]\ntop_mlp = [1]\ntables = [{ rows = 10, columns = 4, count = 26 }]\n",
    );
    place.write("day.tsv", &text);
    let said = place.stdout("data criteo day.tsv -o frequent --threshold 2 --validation 0.2 --threads 1");
    for words in [
        "300 rows",
        "240 for training, 60 for validation",
        "1 damaged",
        "day.tsv:301",
        "dense = 13",
        "rows = 10, columns = 16 }, # C1",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let answer = place.train("--data frequent");
    assert_eq!(answer["measured"]["steps"].as_u64(), Some(7));
    let hashed: serde_json::Value =
        serde_json::from_str(&place.stdout("data criteo day.tsv -o hashed --hash 8 --json")).unwrap();
    assert_eq!(
        (hashed["columns"][25]["cardinality"].as_u64(), hashed["damaged"].as_u64()),
        (Some(8), Some(1))
    );
    let again = place.failure("data criteo day.tsv -o hashed --hash 8");
    assert!(again.contains("already exists"), "{again}");
}
