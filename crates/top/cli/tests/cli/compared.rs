//! One step on several GPUs.

use crate::{json, stdout, steptime};

const EXAMPLE: &str = "examples/dlrm_default_2048";

#[test]
fn each_answers_as_if_it_were_asked_alone() {
    let together = json(&["predict", EXAMPLE, "--device", "h200,a100,l4"]);
    assert_eq!((&together["schema"], &together["command"]), (&1.into(), &"predict".into()));
    let all = together["predictions"].as_array().expect("a list");
    assert_eq!(all.len(), 3);
    assert_eq!(all[1], json(&["predict", EXAMPLE, "--device", "a100"]));
}

#[test]
fn one_table_with_what_speaks_against_each() {
    let text = stdout(&["predict", EXAMPLE, "--device", "h200,a100,l4"]);
    let of =
        |device: &str| text.lines().find(|line| line.trim_start().starts_with(device)).map(str::to_owned);
    for device in ["h200", "a100", "l4"] {
        assert!(of(device).is_some_and(|line| line.contains(" %")), "{device}: {text}");
    }
    assert!(text.contains("! a100: ") && text.contains("! l4: "), "{text}");
}

#[test]
fn a_timeline_is_of_one() {
    steptime(&["predict", EXAMPLE, "--device", "h200,a100", "--timeline", "unused.json"]).assert().code(2);
    steptime(&["predict", EXAMPLE, "--device", "h200,voodoo"]).assert().code(1);
}
