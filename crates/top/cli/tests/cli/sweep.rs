//! `steptime sweep`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{failure, json, stdout, steptime, text};

const EXAMPLE: &str = "examples/dlrm_default_2048";

/// A folder with a grid.
struct Case {
    folder: tempfile::TempDir,
    grid: PathBuf,
    out: PathBuf,
}

impl Case {
    fn new(grid: &str) -> Case {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, out) = (folder.path().join("grid.toml"), folder.path().join("out.parquet"));
        fs::write(&path, grid).expect("the grid");
        Case { folder, grid: path, out }
    }

    fn args<'c>(&'c self, more: &[&'c str]) -> Vec<&'c str> {
        let mut args = vec!["sweep", EXAMPLE, "--grid", text(&self.grid), "-o", text(&self.out)];
        args.extend(more);
        args
    }
}

fn rows(path: &Path) -> RecordBatch {
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("the file")).expect("Parquet");
    let batches: Vec<RecordBatch> =
        builder.build().expect("a reader").map(|batch| batch.expect("rows")).collect();
    assert_eq!(batches.len(), 1);
    batches[0].clone()
}

fn numbers(rows: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    rows.column_by_name(name).expect(name).as_primitive::<Float64Type>().iter().collect()
}

fn points(rows: &RecordBatch) -> Vec<u64> {
    rows.column_by_name("point").expect("point").as_primitive::<UInt64Type>().values().to_vec()
}

#[test]
fn a_point_has_the_numbers_of_its_whatif() {
    let case = Case::new("batch = [1024, 4096]\ncuda-graph = [false, true]\nhost-speed = [\"as-is\", 0.5]\n");
    let answer = json(&case.args(&[]));
    assert_eq!(
        (&answer["points"], &answer["resumed"], &answer["not_applicable"]),
        (&8.into(), &0.into(), &0.into())
    );
    let found = rows(&case.out);
    assert_eq!(points(&found), (0..8).collect::<Vec<u64>>());
    let batches = found.column_by_name("batch").expect("batch").as_primitive::<Int64Type>();
    assert_eq!((batches.value(0), batches.value(7)), (1024, 4096));
    assert!(found.column_by_name("host-speed").expect("host-speed").is_null(0));
    let flags = [
        (0, &["--batch", "1024"][..]),
        (3, &["--batch", "1024", "--cuda-graph", "--host-speed", "0.5"]),
        (5, &["--batch", "4096", "--host-speed", "0.5"]),
        (6, &["--batch", "4096", "--cuda-graph"]),
    ];
    for (point, flags) in flags {
        let alone = json(&[&["whatif", EXAMPLE], flags].concat());
        let after = &alone["after"];
        let same = |column: &str, value: &serde_json::Value| {
            assert_eq!(numbers(&found, column)[point], value.as_f64(), "{column} of {flags:?}");
        };
        same("step_ms", &after["step_ms"]);
        same("active_ms", &after["active_ms"]);
        same("interval_low_ms", &after["interval_ms"][0]);
        same("interval_high_ms", &after["interval_ms"][1]);
        same("peak_mb", &after["peak_mb"]["total"]);
    }
    let rates = numbers(&found, "samples_per_s");
    let step = numbers(&found, "step_ms")[0].expect("a step");
    assert!((rates[0].expect("a rate") - 1024.0 / step * 1e3).abs() < 1e-6);
}

#[test]
fn devices_are_a_key_and_a_change_that_does_not_apply_is_a_row() {
    let case = Case::new("device = [\"as-is\", \"a100\"]\nchannels-last = [false, true]\n");
    let answer = json(&case.args(&[]));
    assert_eq!(answer["not_applicable"], 2);
    let found = rows(&case.out);
    let steps = numbers(&found, "step_ms");
    let applies: Vec<bool> = steps.iter().map(Option::is_some).collect();
    // Keys are sorted by name.
    assert_eq!(applies, [true, true, false, false]);
    let errors = found.column_by_name("error").expect("error").as_string::<i32>();
    assert!(errors.value(2).contains("channels-last"), "{}", errors.value(2));
    let alone = json(&["predict", EXAMPLE, "--device", "a100"]);
    assert_eq!(steps[1], alone["step_ms"].as_f64());
}

#[test]
fn what_does_not_fit_is_marked_and_last_and_the_largest_batch_that_fits_is_named() {
    let case = Case::new("batch = [256, 1024, 65536]\ndevice = [\"h100\", \"t4\"]\n");
    let plot = case.folder.path().join("plot.svg");
    let mut args = case.args(&["--plot", text(&plot)]);
    args[1] = "examples/resnet50_32";
    let answer = json(&args);
    let found = rows(&case.out);
    let fits = found.column_by_name("fits").expect("fits").as_boolean().clone();
    // Batches change slowest: 256 on both, 1024 on both, 65536 on both.
    assert_eq!(fits.iter().collect::<Vec<_>>(), [true, false, false, false, false, false].map(Some).to_vec());
    assert_eq!(answer["does_not_fit"], 5);
    let best = answer["best"].as_array().expect("points");
    assert_eq!((&best[0]["row"]["fits"], &best[1]["row"]["fits"]), (&true.into(), &false.into()));
    let largest = answer["largest"].as_array().expect("points");
    assert_eq!(largest.len(), 1, "nothing fits a T4");
    assert_eq!(
        (&largest[0]["keys"]["device"], &largest[0]["keys"]["batch"]),
        (&"h100".into(), &"256".into())
    );
    let peaks = numbers(&found, "peak_mb");
    let alone = json(&["whatif", "examples/resnet50_32", "--batch", "1024", "--device", "h100"]);
    assert_eq!(peaks[2], alone["after"]["peak_mb"]["total"].as_f64());
    assert!(fs::read_to_string(&plot).expect("the plot").contains("does not fit in memory"));
    // Written points are read again unchanged.
    let again = json(&args);
    assert_eq!((&again["resumed"], &again["best"]), (&6.into(), &answer["best"]));
    let mut shown = case.args(&[]);
    shown[1] = "examples/resnet50_32";
    let said = stdout(&shown);
    assert!(said.contains("largest batch that fits") && said.contains("! "), "{said}");
}

#[test]
fn shards_are_parts_of_the_whole() {
    let grid = "batch = [256, 512, 1024, 2048, 4096]\n";
    let whole = Case::new(grid);
    stdout(&whole.args(&[]));
    let all: BTreeMap<u64, Option<f64>> =
        points(&rows(&whole.out)).into_iter().zip(numbers(&rows(&whole.out), "step_ms")).collect();
    let mut parts = BTreeMap::new();
    for shard in ["1/2", "2/2"] {
        let part = Case::new(grid);
        stdout(&part.args(&["--shard", shard]));
        parts.extend(points(&rows(&part.out)).into_iter().zip(numbers(&rows(&part.out), "step_ms")));
    }
    assert_eq!(parts, all);
    steptime(&whole.args(&["--shard", "3/2"])).assert().code(2);
}

#[test]
fn what_is_there_is_not_computed_again_and_the_plot_is_drawn_of_it() {
    let case = Case::new("batch = [512, 2048, 8192]\nfuse = [\"as-is\", \"embedding-bags\"]\n");
    stdout(&case.args(&[]));
    let before = fs::read(&case.out).expect("the file");
    let plot = case.folder.path().join("plot.svg");
    let answer = json(&case.args(&["--plot", text(&plot)]));
    assert_eq!(answer["resumed"], 6);
    assert_eq!(fs::read(&case.out).expect("the file"), before);
    let svg = fs::read_to_string(&plot).expect("the plot");
    assert!(svg.trim_end().ends_with("</svg>") && svg.contains("step, ms") && svg.contains("batch, samples"));
    assert!(svg.contains("fuse embedding-bags") && !svg.contains("NaN"));
    assert_eq!(fs::read_dir(case.folder.path()).expect("the folder").count(), 3);
}

#[test]
fn an_output_of_something_else_is_left_alone() {
    let case = Case::new("batch = [512]\n");
    stdout(&case.args(&[]));
    let before = fs::read(&case.out).expect("the file");
    fs::write(&case.grid, "batch = [1024]\n").expect("another grid");
    assert!(failure(&case.args(&[])).contains("another grid"));
    fs::write(&case.grid, "batch = [512]\n").expect("the grid");
    assert!(failure(&case.args(&["--device", "a100"])).contains("another device"));
    assert_eq!(fs::read(&case.out).expect("the file"), before);
    fs::write(&case.out, "no Parquet").expect("another file");
    assert!(failure(&case.args(&[])).contains("holds no points of a grid"));
    assert_eq!(fs::read(&case.out).expect("the file"), b"no Parquet");
}

#[test]
fn what_is_no_grid_is_refused_and_nothing_written() {
    let wide: String = ["batch", "batch-dim", "host-speed"]
        .map(|key| {
            let values: Vec<String> = (1..=1000).map(|value| value.to_string()).collect();
            format!("{key} = [{}]\n", values.join(", "))
        })
        .concat();
    for (grid, says) in [
        ("bacth = [1]", "is batch meant?"),
        ("batch = []", "no value"),
        ("batch = 2048", "list"),
        ("device = [7]", "list of names"),
        ("device = [\"h20\"]", "h200"),
        ("dtype = [\"fp4\"]", "tf32"),
        (&wide, "1000000000 points"),
    ] {
        let case = Case::new(grid);
        let said = failure(&case.args(&[]));
        assert!(said.contains(says), "{grid}: {said}");
        assert!(!case.out.exists(), "{grid}");
    }
    let case = Case::new("cuda-graph = [false, true]");
    assert!(failure(&case.args(&["--plot", "plot.svg"])).contains("several numbers"));
}
