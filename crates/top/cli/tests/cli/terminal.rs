//! Reports as printed on a terminal.

use crate::stdout;

const EXAMPLE: &str = "examples/dlrm_default_2048";

#[test]
fn predict_prints_one_screen() {
    for example in ["examples/dlrm_default_2048", "examples/resnet50_32", "examples/dlrm_mlperf_2048"] {
        let lone = format!("{example}/et.json.gz");
        for args in [&[example][..], &[example, "--device", "h200"], &[&lone, "--device", "a100"]] {
            let text = stdout(&[&["predict"], args].concat());
            assert!(text.lines().count() <= 40, "{args:?}: {} lines", text.lines().count());
        }
    }
}

#[test]
fn predict_host_bound() {
    insta::assert_snapshot!(stdout(&["predict", EXAMPLE]));
}

#[test]
fn predict_device_bound() {
    insta::assert_snapshot!(stdout(&["predict", "examples/resnet50_32"]));
}

#[test]
fn predict_as_profiled() {
    insta::assert_snapshot!(stdout(&["predict", EXAMPLE, "--keep-profiler", "--step", "7"]));
}

#[test]
fn predict_by_a_baseline() {
    insta::assert_snapshot!(stdout(&["predict", EXAMPLE, "--method", "paper"]));
}

#[test]
fn inspect_recording() {
    insta::assert_snapshot!(stdout(&["inspect", EXAMPLE]));
}

#[test]
fn inspect_execution_trace() {
    insta::assert_snapshot!(stdout(&["inspect", "examples/resnet50_32/et.json.gz"]));
}

#[test]
fn validate() {
    insta::assert_snapshot!(stdout(&["validate", "examples"]));
}

#[test]
fn every_command_has_an_example() {
    for command in [
        &["inspect"][..],
        &["host", "fit"],
        &["host", "show"],
        &["device", "fit"],
        &["kernels", "predict"],
        &["roofline"],
        &["predict"],
        &["validate"],
        &[],
    ] {
        let mut args = command.to_vec();
        args.push("--help");
        let help = stdout(&args);
        let words = format!(" steptime {}", command.join(" "));
        assert!(help.contains("EXAMPLE") && help.contains(words.trim_end()), "{command:?}: {help}");
    }
}
