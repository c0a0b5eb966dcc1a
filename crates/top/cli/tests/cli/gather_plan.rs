//! Launch orders of lookups, and the benchmark of GPU operators without such a GPU.

use std::io::Write;

use predicates::str::contains;

use crate::{json, stdout, steptime, words};

const SEED: [&str; 6] = ["--rows", "8192", "--dim", "4096", "--lookups", "16384"];

fn gather_plan(more: &[&'static str]) -> Vec<&'static str> {
    [&["gather-plan"][..], &SEED, more].concat()
}

#[test]
fn the_orders_of_a_gather() {
    let answer = json(&gather_plan(&[]));
    let reads = |order: &str, columns: Option<u64>| {
        let orders = answer["orders"].as_array().expect("orders");
        let found =
            orders.iter().find(|one| one["order"] == order && one["tile_columns"].as_u64() == columns);
        found.unwrap_or_else(|| panic!("{order}"))["dram_reads"].as_f64().expect("bytes") / 1e6
    };
    // Measured: 237, 116, 236, 116 MB.
    assert!((reads("rows", None) / 237.0 - 1.0).abs() < 0.1);
    assert!((reads("lookups first", Some(128)) / 116.0 - 1.0).abs() < 0.05);
    assert!((reads("columns first", Some(128)) / 236.0 - 1.0).abs() < 0.1);
    assert!((reads("sorted", None) / 116.0 - 1.0).abs() < 0.05);
    assert_eq!(answer["choice"]["order"], "lookups first");
    let text = words(&stdout(&gather_plan(&[])));
    assert!(text.contains("choose lookups first") && text.contains("7083 different rows"), "{text}");
}

#[test]
fn an_explanation_of_the_seed_needs_no_sizes() {
    let text = words(&stdout(&["gather-plan", "--explain"]));
    for words in ["128 columns", "axes swapped", "not one byte of the table", "116.1 MB"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn indices_of_a_file_are_counted() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    (0..1000).for_each(|at| writeln!(file, "{}", at % 10).expect("written"));
    let path = file.path().display().to_string();
    let args = ["gather-plan", "--rows", "100", "--dim", "64", "--lookups", "1000", "--indices", &path];
    let distinct = json(&args)["distinct"].as_f64().expect("a number");
    assert!((distinct - 10.0).abs() < 0.1, "{distinct}");
    let args = ["gather-plan", "--rows", "5", "--dim", "64", "--lookups", "1000", "--indices", &path];
    steptime(&args).assert().failure().stderr(contains("line 6: index 5 is not a row"));
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    steptime(&["gather-plan", "--rows", "10"]).assert().failure().stderr(contains("--dim"));
    steptime(&["gather-plan", "--rows", "0", "--dim", "1", "--lookups", "1"]).assert().failure();
    steptime(&gather_plan(&["--zipf=-1"])).assert().failure().stderr(contains("Zipf"));
    steptime(&gather_plan(&["--device", "abacus"])).assert().failure().stderr(contains("no device profile"));
    steptime(&["gather-plan", "--rows", "1", "--dim", "18446744073709551615", "--lookups", "1"])
        .assert()
        .failure()
        .stderr(contains("columns"));
}
