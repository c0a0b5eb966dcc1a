//! Plans from files.

use serde_json::Value;

use crate::Place;

fn applied(answer: &Value) -> Vec<&str> {
    let names = answer["plan"]["applied"].as_array().expect("a list");
    names.iter().map(|name| name.as_str().expect("a name")).collect()
}

#[test]
fn a_plan_of_all_rules_has_the_bits_of_the_best() {
    let place = Place::new("sgd");
    place.write("plan.toml", "fuse = ['optimizer', 'linear']\noperators = 'steptime'\n");
    let [best, own, none] =
        ["best", "plan.toml", "none"].map(|plan| place.train(&format!("--steps 12 --plan {plan}")));
    assert_eq!(applied(&own), ["operators", "fuse-linear", "fuse-optimizer"]);
    assert_eq!(applied(&own), applied(&best));
    assert!(applied(&none).is_empty());
    let loss = |answer: &Value| answer["measured"]["loss"].as_f64().expect("a loss");
    assert_eq!(loss(&own).to_bits(), loss(&best).to_bits());
    assert!((loss(&own) - loss(&none)).abs() < 1e-5);
    assert_eq!(own["plan"]["name"], "plan.toml");
}

#[test]
fn rules_that_do_not_apply_are_named_with_their_reasons() {
    let place = Place::new("sgd");
    place.write("plan.toml", "fuse = ['linear', 'casts', 'concat']\n");
    let answer = place.train("--steps 2 --plan plan.toml");
    assert_eq!(applied(&answer), ["fuse-linear"]);
    let skipped = answer["plan"]["skipped"].as_array().expect("a list");
    let reason = |rule: &str| {
        let one = skipped.iter().find(|one| one["rule"] == rule).expect("it is listed");
        one["reason"].as_str().expect("a reason").to_owned()
    };
    assert_eq!(reason("fuse-casts"), "no op casts between f32 and bf16: it follows bf16");
    assert_eq!(reason("concat-in-place"), "only a GPU's program works so");
}

#[test]
fn plans_that_no_program_runs_are_refused() {
    let place = Place::new("sgd");
    for (text, words) in [
        ("streams = 2", "steptime-train runs operators = \"steptime\""),
        ("operators = 'fbgemm'", "steptime-train runs operators = \"steptime\""),
        ("batch = 8", "--batch"),
        ("fuse = [", "plan.toml"),
    ] {
        place.write("plan.toml", text);
        let message = place.failure("model.toml --steps 1 --plan plan.toml");
        assert!(message.contains("plan.toml") && message.contains(words), "{text}: {message}");
    }
    let message = place.failure("model.toml --steps 1 --plan bset");
    assert!(message.contains("bset") && message.contains("none, best, or a TOML file"), "{message}");
}
