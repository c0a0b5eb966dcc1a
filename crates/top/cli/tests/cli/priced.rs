//! Snapshots of steps and kernels priced for a device: by a profile that is never fitted again, and by one fitted here on
//! a sweep that follows a rule.

use crate::fit::{Place, sweep};
use crate::{stdout, steptime, text};

const FROZEN: &str = "crates/top/cli/tests/cli/frozen";
const QUERIES: &str = r#"{"op":"aten::addmm","shapes":[[1024],[2048,512],[512,1024]],"dtype":"float","id":"layer"}
{"op":"linear","pass":"backward","shapes":[[2048,512],[1024,512],[1024]]}
{"op":"embedding_bag","shapes":[[1000000,64],[20480],[2048]],"indices":{"zipf":1.05},"dtype":["float","long","long"]}
{"op":"sigmoid","shapes":[[2000000]],"cache":"warm"}
{"op":"sigmoid","shapes":[[200000000]]}
{"op":"aten::no_such_op","shapes":[[1000]]}
"#;

/// Answers to queries; the last one is not a known op, which is not a failure.
fn answers(device: &str) -> String {
    let output =
        steptime(&["kernels", "predict", "--device", device]).write_stdin(QUERIES).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
}

#[test]
fn predict_for_a_device() {
    insta::assert_snapshot!(stdout(&["predict", "examples/dlrm_default_2048", "--device", FROZEN]));
}

#[test]
fn predict_an_execution_trace_for_a_device() {
    let args = ["predict", "examples/resnet50_32/et.json.gz", "--device", FROZEN, "--process", "profiled"];
    insta::assert_snapshot!(stdout(&args));
}

#[test]
fn roofline_of_a_device() {
    insta::assert_snapshot!(stdout(&["roofline", "examples/dlrm_default_2048", "--device", FROZEN]));
}

#[test]
fn kernels_of_a_device() {
    insta::assert_snapshot!(answers(FROZEN));
}

#[test]
fn device_show_of_a_specification() {
    insta::assert_snapshot!(stdout(&["device", "show", FROZEN]));
}

#[test]
fn a_fitted_profile() {
    let place = Place::new();
    let (file, profile) = (place.at("sweep.parquet"), place.at("fitted"));
    // Larger ones take longer than by the rule: something to learn.
    sweep(&file, "a fitted GPU", |at, us| if at < 150 { us } else { us * 1.3 });
    steptime(&["device", "fit", text(&file), "-o", text(&profile)]).assert().success();
    let folder = regex_of(text(&profile));
    insta::with_settings!({ filters => vec![(folder.as_str(), "FITTED")] }, {
        insta::assert_snapshot!("kernels_of_a_fitted_profile", answers(text(&profile)));
        insta::assert_snapshot!("device_show_of_a_fitted_profile", stdout(&["device", "show", text(&profile)]));
        let args = ["predict", "examples/resnet50_32", "--device", text(&profile)];
        insta::assert_snapshot!("predict_by_a_fitted_profile", stdout(&args));
    });
}

/// A pattern that matches only this text.
fn regex_of(path: &str) -> String {
    path.replace('.', r"\.").replace('+', r"\+")
}
