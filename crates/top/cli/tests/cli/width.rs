//! Reports fit the terminal without cutting numbers.

use unicode_width::UnicodeWidthStr;

use crate::steptime;

/// Every report on recordings and profiles, in the repository's root.
const REPORTS: [&[&str]; 25] = [
    &["predict", "examples/dlrm_ddp_2048"],
    &["predict", "examples/dlrm_default_2048"],
    &["predict", "examples/dlrm_default_fused_2048", "--host", "default"],
    &["predict", "examples/dlrm_mlperf_2048", "--device", "h200"],
    &["predict", "examples/resnet50_32", "--device", "a100"],
    &["predict", "examples/resnet50_32", "--method", "paper"],
    &["predict", "examples/dlrm_default_2048/et.json.gz", "--device", "titan-xp"],
    &["predict", "examples/dlrm_default_2048/kineto.json.gz", "--device", "a100"],
    &["predict", "examples/resnet50_32", "--device", "h200,a100,titan-xp"],
    &[
        "predict",
        "examples/probed/din_4096/et.json.gz",
        "--device",
        "h200",
        "--host",
        "examples/probed/din_4096",
    ],
    &["inspect", "examples/dlrm_ddp_2048"],
    &["inspect", "examples/dlrm_default_2048"],
    &["inspect", "examples/dlrm_mlperf_2048"],
    &["inspect", "examples/resnet50_32"],
    &["inspect", "examples/resnet50_32/et.json.gz"],
    &["roofline", "examples/dlrm_default_2048"],
    &["roofline", "examples/resnet50_32", "--device", "titan-xp"],
    &["validate", "examples", "--kernels", "h200", "--host", "leave-one-out"],
    &["validate", "examples", "--replay-only"],
    &["device", "list"],
    &["device", "show", "h200"],
    &["device", "show", "a100"],
    &["host", "show"],
    &["gather-plan", "--rows", "8192", "--dim", "4096", "--lookups", "16384"],
    &["gather-plan", "--rows", "8192", "--dim", "4096", "--lookups", "16384", "--explain"],
];

fn printed(args: &[&str], columns: &str) -> String {
    let output = steptime(args).env("COLUMNS", columns).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("UTF-8")
}

/// Words that are numbers.
fn numbers(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).collect()
}

#[test]
fn every_report_fits_80_columns() {
    for args in REPORTS {
        let text = printed(args, "80");
        for line in text.lines() {
            assert!(line.width() <= 80, "{args:?}: {} columns: {line}", line.width());
        }
        assert_eq!(text, printed(args, "40"), "{args:?}: never narrower");
    }
}

#[test]
fn wide_terminals_cut_less_and_no_number_is_lost_in_narrow_ones() {
    for args in [&["inspect", "examples/dlrm_default_2048"][..], &["predict", "examples/resnet50_32"]] {
        let (narrow, wide) = (printed(args, "80"), printed(args, "200"));
        let cut = |text: &str| text.matches('…').count();
        assert!(cut(&narrow) >= cut(&wide), "{narrow}{wide}");
        assert_eq!(numbers(&narrow), numbers(&wide), "{args:?}");
    }
    let roofline = ["roofline", "examples/dlrm_default_2048"];
    let (narrow, wide) = (printed(&roofline, "80"), printed(&roofline, "200"));
    assert!(wide.contains("KB each") && wide.contains("2048x512"), "{wide}");
    assert!(narrow.contains("(left out: family, KB each, shapes;"), "{narrow}");
}
