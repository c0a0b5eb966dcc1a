//! Tables for other programs.

use crate::{json, stdout, steptime};

const EXAMPLE: &str = "examples/dlrm_default_2048";

/// The names of the columns, and the rows.
fn read(args: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let text = stdout(&[args, &["--csv"]].concat());
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").iter().map(str::to_owned).collect();
    let row =
        |row: Result<csv::StringRecord, csv::Error>| row.expect("a row").iter().map(str::to_owned).collect();
    (names, reader.records().map(row).collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

#[test]
fn every_table_has_names_and_rows_as_long_and_no_column_without_values() {
    let least = |args: &[&str], rows: usize, unknown: &[&str]| {
        let (names, found) = read(args);
        assert!(
            found.len() >= rows && found.iter().all(|row| row.len() == names.len()),
            "{args:?}: {found:?}"
        );
        let is_empty = |at: usize| found.iter().all(|row| row[at].is_empty());
        let empty: Vec<&String> = (0..names.len()).filter(|&at| is_empty(at)).map(|at| &names[at]).collect();
        assert_eq!(empty, unknown, "{args:?}");
    };
    least(&["predict", EXAMPLE, "--device", "h200"], 40, &[]);
    least(&["predict", EXAMPLE, "--device", "h200,a100"], 2, &[]);
    least(&["predict", "examples/jobs/dlrm_4096_x4"], 20, &[]);
    least(&["inspect", EXAMPLE], 30, &[]);
    least(&["roofline", EXAMPLE], 20, &["kernel"]);
    least(&["whatif", EXAMPLE, "--batch", "4096"], 8, &[]);
    least(&["explain", EXAMPLE], 5, &[]);
    least(&["choose", EXAMPLE, "--device", "h200,a100"], 4, &["cost"]);
    least(&["compare", EXAMPLE, "examples/dlrm_default_fused_2048"], 100, &[]);
    least(&["scale", EXAMPLE, "--gpus", "1,2", "--price", "2.5"], 2, &["nodes"]);
    least(&["collectives", "--device", "h200"], 20, &["measured_us"]);
    least(&["validate", EXAMPLE], 1, &[]);
    least(&["validate", "examples/jobs/dlrm_4096_x4"], 1, &[]);
    least(&["validate", EXAMPLE, "--replay-only"], 1, &["doubt", "failed"]);
    least(&["device", "list"], 7, &[]);
    assert_eq!(read(&["predict", EXAMPLE, "--method", "paper"]).1.len(), 0, "a baseline knows no ops");
}

#[test]
fn numbers_are_those_of_the_json() {
    let answer = json(&["predict", EXAMPLE]);
    let (names, rows) = read(&["predict", EXAMPLE]);
    assert_eq!(names, ["table", "name", "count", "host_ms", "device_ms", "critical_ms", "slack_ms"]);
    assert_eq!(rows[0][0], "op");
    assert_eq!(rows[0][1], answer["ops"][0]["name"].as_str().expect("a name"));
    assert_eq!(number(&rows[0][3]), answer["ops"][0]["host_ms"].as_f64().expect("a time"));
    let kernels = rows.iter().filter(|row| row[0] == "kernel").count();
    assert_eq!(kernels, answer["kernels_by_name"].as_array().expect("kernels").len());
}

#[test]
fn one_row_a_kernel_of_a_query() {
    let queries = "{\"op\":\"aten::mm\",\"shapes\":[[64,64],[64,64]]}\nnonsense\n";
    let run =
        steptime(&["kernels", "predict", "--device", "a100", "--csv"]).write_stdin(queries).assert().code(1);
    let text = String::from_utf8(run.get_output().stdout.clone()).expect("UTF-8");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("query,op,family,time_us,low_us,high_us,source,extrapolated,error"));
    assert!(lines.next().is_some_and(|line| line.starts_with("1,aten::mm,gemm,")), "{text}");
    assert!(lines.next().is_some_and(|line| line.starts_with("2,,,,,,,,")), "{text}");
}

#[test]
fn json_and_csv_exclude_each_other() {
    steptime(&["predict", EXAMPLE, "--json", "--csv"]).assert().code(2);
}
