//! Device profiles fitted on sweeps, and sweeps that must be refused.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use predicates::prelude::*;
use predicates::str::contains;

use crate::{json, steptime, text};

const META: [(&str, &str); 16] = [
    ("steptime_sweep_version", "1"),
    ("compute_capability", "9.0"),
    ("sm_count", "100"),
    ("clock_mhz", "1500"),
    ("l2_bytes", "50000000"),
    ("memory_bytes", "80000000000"),
    ("driver", "580"),
    ("cuda", "13.0"),
    ("peak_copy_gb_s", "2000"),
    ("peak_matmul_fp32_tflop_s", "40"),
    ("peak_h2d_pinned_gb_s", "50"),
    ("peak_h2d_pageable_gb_s", "10"),
    ("peak_d2h_pinned_gb_s", "50"),
    ("peak_d2h_pageable_gb_s", "10"),
    ("torch", "2.11"),
    ("seed", "0"),
];

/// A sweep of `sigmoid` over many sizes, on a GPU whose kernels take 2 µs plus 1 µs per 2 MB moved.
pub(crate) fn sweep(path: &Path, gpu: &str, change: impl Fn(usize, f32) -> f32) {
    let sizes: Vec<u64> = (0..300).map(|at| 1000 + at * at * 100).collect();
    let count = sizes.len();
    let words = |word: &str| Arc::new(StringArray::from(vec![word; count])) as ArrayRef;
    let us: Vec<f32> =
        sizes.iter().enumerate().map(|(at, &size)| change(at, 2.0 + (8 * size) as f32 / 2e6)).collect();
    let us = || Arc::new(Float32Array::from(us.clone())) as ArrayRef;
    let dims: Vec<String> = sizes.iter().map(|size| format!("[[{size}]]")).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("case", Arc::new(Int32Array::from_iter_values(0..count as i32))),
        ("leaf", Arc::new(Int32Array::from(vec![0; count]))),
        ("family", words("elementwise")),
        ("op", words("aten::sigmoid")),
        ("dims", Arc::new(StringArray::from(dims))),
        ("strides", words("[[1]]")),
        ("types", words(r#"["float"]"#)),
        ("concrete", words(r#"[""]"#)),
        ("devices", words(r#"["cuda"]"#)),
        ("tf32", Arc::new(BooleanArray::from(vec![false; count]))),
        ("indices", words("")),
        ("state", words("cold")),
        ("us", us()),
        ("us_min", us()),
        ("us_max", us()),
        ("kernels", words(r#"["sigmoid"]"#)),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns");
    let meta = META.into_iter().chain([("device", gpu)]);
    let meta = meta.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned())).collect();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(meta)).build();
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

/// A temporary folder of files.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }

    /// Asserts that fitting fails with these words, and that nothing is written.
    fn refuses(&self, sweeps: &[&Path], words: &str) {
        let (before, place) = (self.names(), self.at("profile"));
        let mut args = vec!["device", "fit"];
        args.extend(sweeps.iter().map(|path| text(path)));
        args.extend(["-o", text(&place)]);
        steptime(&args).assert().code(1).stdout("").stderr(contains(words).and(contains("error: ")));
        assert_eq!(self.names(), before, "{words}");
    }
}

#[test]
fn a_fitted_profile_predicts() {
    let place = Place::new();
    let (file, profile) = (place.at("sweep.parquet"), place.at("my-gpu"));
    sweep(&file, "My GPU", |_, us| us);
    steptime(&["device", "fit", text(&file), "-o", text(&profile)])
        .assert()
        .success()
        .stdout(contains("elementwise").and(contains("written to")));
    assert_eq!(place.names(), ["my-gpu", "sweep.parquet"]);
    let shown = json(&["device", "show", text(&profile)]);
    assert_eq!((&shown["name"], &shown["device"]["name"]), (&"my-gpu".into(), &"My GPU".into()));
    assert_eq!(shown["families"][0]["rows"], 300);
    let query = r#"{"op":"aten::sigmoid","shapes":[[2000000]]}"#;
    let output = steptime(&["kernels", "predict", "--device", text(&profile), "--json"])
        .write_stdin(query)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let answer: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
    let us = answer["total_us"].as_f64().expect("a time");
    assert!((us / 10.0 - 1.0).abs() < 0.1, "{us} µs, and 10 in the sweep");
    assert_eq!(answer["kernels"][0]["source"], "fitted");
    // Far outside of the sweep: reported, and less certain.
    let wide = r#"{"op":"aten::sigmoid","shapes":[[2000000000]]}"#;
    let output = steptime(&["kernels", "predict", "--device", text(&profile), "--json"])
        .write_stdin(wide)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let far: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(far["kernels"][0]["extrapolated"], true);
}

#[test]
fn damaged_sweeps_are_refused() {
    let place = Place::new();
    let (good, bad) = (place.at("good.parquet"), place.at("bad.parquet"));
    sweep(&good, "My GPU", |_, us| us);
    let bytes = std::fs::read(&good).expect("the sweep");
    std::fs::write(&bad, &bytes[..bytes.len() / 2]).expect("written");
    place.refuses(&[&bad], "is not a whole sweep");
    std::fs::write(&bad, "case,us\n1,2\n").expect("written");
    place.refuses(&[&bad], "is not a whole sweep");
    std::fs::write(&bad, "").expect("written");
    place.refuses(&[&bad], "is not a whole sweep");
    place.refuses(&[&place.at("missing.parquet")], "cannot read");
    for wrong in [f32::NAN, -1.0, 0.0, f32::INFINITY] {
        sweep(&bad, "My GPU", |at, us| if at == 7 { wrong } else { us });
        place.refuses(&[&bad], "row 7 (aten::sigmoid)");
    }
    sweep(&bad, "Another GPU", |_, us| us);
    place.refuses(&[&good, &bad], "a profile is of one GPU");
}

#[test]
fn profiles_go_where_they_can() {
    let place = Place::new();
    let file = place.at("sweep.parquet");
    sweep(&file, "My GPU", |_, us| us);
    let taken = place.at("taken");
    std::fs::create_dir(&taken).expect("a folder");
    std::fs::write(taken.join("mine.txt"), "mine").expect("written");
    for (to, words) in
        [(text(&taken), "it exists and holds no profile.toml"), ("/dev/null/profile", "cannot write")]
    {
        steptime(&["device", "fit", text(&file), "-o", to]).assert().code(1).stderr(contains(words));
    }
    assert_eq!(std::fs::read_to_string(taken.join("mine.txt")).expect("still there"), "mine");
    let spec = place.at("spec.toml");
    std::fs::write(&spec, "name = \"x\"\n").expect("written");
    let profile = place.at("profile");
    let args = ["device", "fit", text(&file), "--spec", text(&spec), "-o", text(&profile)];
    steptime(&args).assert().code(1).stderr(contains("spec.toml"));
}
