//! The roofline: as JSON, as a table, as a plot.

use serde_json::Value;

use crate::{json, stdout, steptime, text};

const BOUNDS: [&str; 5] = ["memory", "cache", "arithmetic", "link", "launch"];

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_kernel_stands_under_a_roof() {
    for (args, times) in [
        (&["roofline", "examples/resnet50_32"][..], "measured"),
        (&["roofline", "examples/resnet50_32", "--device", "v100"], "predicted"),
        (&["roofline", "examples/dlrm_default_2048/et.json.gz", "--device", "h200"], "predicted"),
    ] {
        let answer = json(args);
        assert_eq!(answer["times"], times);
        let kernels = answer["kernels"].as_array().expect("kernels");
        assert!(kernels.len() > 10);
        let mut sum = 0.0;
        for row in kernels {
            sum += number(&row["time_us"]) / 1e3;
            assert!(number(&row["count"]) >= 1.0 && number(&row["time_us"]) > 0.0, "{row}");
            let intensity = number(&row["flops"]) / number(&row["bytes"]).max(1.0);
            assert!((number(&row["intensity"]) - intensity).abs() <= 1e-9 * intensity.max(1.0), "{row}");
            assert!(number(&row["share"]) > 0.0 && number(&row["share"]) < 3.0, "{row}");
            assert!(BOUNDS.contains(&row["bound"].as_str().expect("a bound")), "{row}");
        }
        assert!((sum - number(&answer["device_ms"])).abs() < 1e-6 * sum);
        assert!(number(&answer["attainable_ms"]) < sum);
    }
}

#[test]
fn large_convolutions_are_bound_by_arithmetic() {
    let answer = json(&["roofline", "examples/resnet50_32", "--device", "h200"]);
    let bounds = |family: &str| -> Vec<String> {
        let rows = answer["kernels"].as_array().expect("kernels").iter();
        let of_family = rows.filter(|row| row["family"] == family);
        of_family.map(|row| row["bound"].as_str().expect("a bound").to_owned()).collect()
    };
    assert!(bounds("convolution").iter().any(|bound| bound == "arithmetic"));
    assert!(bounds("elementwise").iter().all(|bound| bound != "arithmetic"));
    assert!(bounds("transfer").iter().any(|bound| bound == "link"));
}

#[test]
fn a_plot_is_an_image() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("roofline.svg");
    steptime(&["roofline", "examples/resnet50_32", "--plot", text(&file)]).assert().success();
    let svg = std::fs::read_to_string(&file).expect("the plot");
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{}", &svg[..80]);
    assert!(svg.trim_end().ends_with("</svg>") && svg.contains("<circle") && svg.contains("TFLOP/s"));
    assert!(!svg.contains("NaN") && !svg.contains("inf\""));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
}

#[test]
fn the_table_is_short() {
    let text = stdout(&["roofline", "examples/dlrm_default_2048"]);
    assert!(text.lines().count() <= 40 && text.contains("bound by") && text.contains("--json shows all"));
}
