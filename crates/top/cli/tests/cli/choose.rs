//! `steptime choose`.

use std::fs;

use serde_json::Value;

use crate::{copy_of, failure, json, root, stdout, steptime, text, words};

const DLRM: &str = "examples/dlrm_default_2048";
const RESNET: &str = "examples/resnet50_32";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn gpus(answer: &Value) -> &Vec<Value> {
    answer["gpus"].as_array().expect("GPUs")
}

fn gpu<'a>(answer: &'a Value, name: &str) -> &'a Value {
    gpus(answer).iter().find(|gpu| gpu["name"] == name).expect(name)
}

/// A file of prices.
fn prices(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), text).expect("prices");
    file
}

#[test]
fn a_row_is_what_predict_and_whatif_say_of_that_gpu() {
    let answer = json(&["choose", RESNET, "--device", "h100,t4"]);
    for name in ["h100", "t4"] {
        let found = gpu(&answer, name);
        let alone = json(&["predict", RESNET, "--device", name]);
        let largest = &found["largest"];
        let batch = largest["batch"].to_string();
        let other = json(&["whatif", RESNET, "--device", name, "--batch", &batch]);
        for key in ["step_ms", "interval_ms", "active_ms", "samples_per_s", "peak_mb", "fits"] {
            assert_eq!(found["recorded"][key], alone[key], "{key} of {name}");
            assert_eq!(largest[key], other["after"][key], "{key} of {name} at {batch}");
        }
        assert_eq!(found["doubts"], alone["doubts"], "{name}");
    }
}

#[test]
fn the_largest_batch_fits_and_a_larger_one_does_not() {
    let answer = json(&["choose", RESNET, "--device", "v100,l4"]);
    for name in ["v100", "l4"] {
        let found = gpu(&answer, name);
        let (largest, room) = (&found["largest"], 0.9 * number(&found["memory_mb"]));
        assert_eq!(largest["fits"], true);
        let peak = number(&largest["peak_mb"]["total"]);
        assert!(peak <= room && peak > 0.9 * room, "{peak} of {room}");
        let more = (number(&largest["batch"]) * 1.1).ceil().to_string();
        let other = json(&["whatif", RESNET, "--device", name, "--batch", &more]);
        assert_eq!(other["after"]["fits"], false, "{}", other["after"]);
        assert_eq!(other["doubts"][0]["kind"], "memory");
    }
}

#[test]
fn where_the_host_bounds_the_step_a_faster_gpu_brings_nothing() {
    let answer = json(&["choose", DLRM, "--device", "h100,h200"]);
    for name in ["h100", "h200"] {
        let recorded = &gpu(&answer, name)["recorded"];
        assert_eq!(recorded["bound"], "host", "{recorded}");
        assert!(number(&recorded["saved_by_host"]) > number(&recorded["saved_by_gpu"]));
    }
    let ratio = &gpus(&answer)[1]["recorded"]["of_first"];
    assert!((number(&ratio["times"]) - 1.0).abs() < 0.1 && ratio["sure"] == false, "{ratio}");
    // The intervals of both alone, which include the host, are wider than that of their ratio.
    let traced = json(&["choose", "examples/dlrm_default_2048/et.json.gz", "--device", "h100,h200"]);
    let second = &gpus(&traced)[1]["recorded"];
    let width = |ends: &Value| (number(&ends[1]) / number(&ends[0])).ln();
    assert!(width(&second["of_first"]["interval"]) < 0.5 * width(&second["interval_ms"]), "{second}");
}

#[test]
fn prices_are_per_hour_and_decide_the_order() {
    let file = prices("h100 = 3.0\nt4 = 0.01\n");
    let answer = json(&["choose", RESNET, "--device", "h100,t4,l4", "--price", text(file.path())]);
    assert_eq!(answer["ranked_by"], "cost");
    let names: Vec<&Value> = gpus(&answer).iter().map(|gpu| &gpu["name"]).collect();
    assert_eq!(names, ["t4", "h100", "l4"], "what has no price is last");
    let h100 = &gpus(&answer)[1]["largest"];
    let cost = 3.0 * 1e9 / number(&h100["samples_per_s"]) / 3600.0;
    assert!((number(&h100["cost"]) / cost - 1.0).abs() < 1e-9);
    let ratio = number(&h100["cost"]) / number(&gpus(&answer)[0]["largest"]["cost"]);
    assert!((number(&h100["cost_of_first"]["times"]) / ratio - 1.0).abs() < 1e-9);
    assert!(gpus(&answer)[2]["price"].is_null() && gpus(&answer)[2]["largest"]["cost"].is_null());
}

#[test]
fn what_makes_a_step_fit_is_tried_and_priced() {
    // ResNet-50 at 4096: by an execution trace of that batch.
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("large.et.json");
    stdout(&["whatif", RESNET, "--batch", "1024", "--graph", text(&graph)]);
    let answer = json(&["choose", text(&graph), "--device", "l4", "--recorded-batch", "1024"]);
    let l4 = &gpus(&answer)[0];
    assert_eq!(l4["recorded"]["fits"], false, "{}", l4["recorded"]["peak_mb"]);
    let remedies = l4["remedies"].as_array().expect("remedies");
    let accumulate = remedies.iter().find(|remedy| remedy["name"] == "accumulate").expect("tried");
    assert_eq!(accumulate["fits"], true, "{accumulate}");
    assert!(number(&accumulate["peak_mb"]) <= 0.9 * number(&l4["memory_mb"]));
    let options: Vec<&str> = accumulate["options"].as_str().expect("options").split(' ').collect();
    let alone = json(
        &[&["whatif", text(&graph), "--device", "l4", "--recorded-batch", "1024"], &options[..]].concat(),
    );
    assert_eq!(alone["after"]["step_ms"], accumulate["step_ms"]);
    assert_eq!(alone["after"]["peak_mb"]["total"], accumulate["peak_mb"]);
    let said = answer["says"].to_string();
    assert!(
        said.contains("it fits with") && said.contains(accumulate["options"].as_str().unwrap()),
        "{said}"
    );
    assert_eq!(gpus(&answer)[0]["largest"]["fits"], true);
}

#[test]
fn without_a_batch_the_recorded_step_is_answered_and_the_reason_said() {
    let folder = copy_of("resnet50_32");
    let meta = folder.path().join("meta.json");
    let words = fs::read_to_string(&meta).expect("meta").replace("\"batch\":", "\"was\":");
    fs::write(&meta, words).expect("meta");
    let answer = json(&["choose", text(folder.path()), "--device", "h100"]);
    let h100 = &gpus(&answer)[0];
    assert!(h100["largest"].is_null() && number(&h100["recorded"]["step_ms"]) > 0.0);
    assert!(h100["largest_unknown"].to_string().contains("--recorded-batch"), "{h100}");
    let answer = json(&["choose", text(folder.path()), "--device", "h100", "--recorded-batch", "32"]);
    assert_eq!(gpus(&answer)[0]["largest"]["fits"], true);
}

#[test]
fn a_described_model_is_an_input_too() {
    let answer = json(&["choose", "examples/models/dcn_v2.toml", "--device", "h200,l4"]);
    assert_eq!(gpus(&answer).len(), 2);
    let kinds: Vec<&str> = answer["doubts"]
        .as_array()
        .expect("doubts")
        .iter()
        .filter_map(|doubt| doubt["kind"].as_str())
        .collect();
    for kind in ["host", "kernels", "interval"] {
        assert!(kinds.contains(&kind), "{kind} among {kinds:?}");
    }
}

#[test]
fn the_text_says_what_the_json_has() {
    let args = ["choose", RESNET, "--device", "h100,t4"];
    let (said, answer) = (words(&stdout(&args)), json(&args));
    for list in ["says", "doubts"] {
        for each in answer[list].as_array().expect(list) {
            let each = each.as_str().or(each["text"].as_str()).expect("words");
            assert!(said.contains(&words(each)), "{each}\n{said}");
        }
    }
    let csv = stdout(&[&args[..], &["--csv"]].concat());
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert_eq!(csv.lines().next().expect("names").split(',').count(), 15);
}

#[test]
fn a_gpu_on_one_screen() {
    insta::assert_snapshot!(stdout(&["choose", RESNET, "--device", "crates/top/cli/tests/cli/frozen"]));
}

#[test]
fn what_cannot_be_answered_is_one_sentence_with_the_remedy() {
    let of = |file: &tempfile::NamedTempFile| file.path().display().to_string();
    let (typo, negative, other) = (prices("h10 = 2"), prices("h100 = -2"), prices("t4 = 1"));
    for (args, says) in [
        (vec!["--price", "not/there.toml"], "not/there.toml"),
        (vec!["--price", "not/there.toml"], "write a line for each GPU, as h100 = 2.50"),
        (vec!["--price", &of(&typo)], "is h100 meant?"),
        (vec!["--price", &of(&negative)], "a price per GPU-hour is a number above zero"),
        (vec!["--price", &of(&other)], "has no price for h100"),
        (vec!["--device", "h10"], "did you mean"),
    ] {
        let device: &[&str] = if args[0] == "--device" { &[] } else { &["--device", "h100"] };
        let said = failure(&[&["choose", RESNET], device, &args].concat());
        assert!(said.contains(says), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    for args in [
        &["--device", "h100,h100"][..],
        &["--device", "all,h100"],
        &["--device", ""],
        &["--recorded-batch", "0"],
    ] {
        steptime(&[&["choose", RESNET], args].concat()).assert().code(2);
    }
    assert!(
        failure(&["choose", "examples/resnet50_32/kineto.json.gz", "--device", "h100"])
            .contains("execution trace")
    );
    let whole = fs::read(root().join("examples/resnet50_32/et.json.gz")).expect("a trace");
    let cut = tempfile::Builder::new().suffix(".et.json.gz").tempfile().expect("a file");
    fs::write(cut.path(), &whole[..whole.len() / 2]).expect("half of it");
    let answer = json(&["choose", text(cut.path()), "--device", "h100", "--recorded-batch", "32"]);
    assert_eq!(answer["doubts"][0]["kind"], "cut", "{}", answer["doubts"]);
}
