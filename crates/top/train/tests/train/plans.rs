//! Plans from files.

use serde_json::Value;

use crate::{Place, TINY};

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
fn adam_has_the_dense_gradients_of_all_tables_in_one_call() {
    let place = Place::with_model(
        "name = 'wide'\nmodel = 'wide_and_deep'\nbatch = 32\ndense = 4\ntop_mlp = [8, 1]\noptimizer = { name = 'adam' }
tables = [{ rows = 50, columns = 4, lookups = 3 }, { rows = 7, columns = 4 }]\n",
    );
    place.write("plan.toml", "fuse = ['optimizer', 'linear']\n");
    place.write("dense.toml", "operators = 'steptime-dense'\nfuse = ['optimizer', 'linear']\n");
    let [best, single] = ["best", "plan.toml"].map(|plan| place.train(&format!("--steps 12 --plan {plan}")));
    assert_eq!(applied(&best), ["operators-dense", "fuse-linear", "fuse-optimizer"]);
    let skipped = best["plan"]["skipped"].as_array().expect("a list");
    let reason = skipped[0]["reason"].as_str().expect("a reason");
    assert!(skipped.len() == 1 && reason.contains("only the rows that were looked up"), "{skipped:?}");
    let loss = |answer: &Value| answer["measured"]["loss"].as_f64().expect("a loss");
    assert_eq!(loss(&best).to_bits(), loss(&single).to_bits());
    let named = place.train("--steps 12 --plan dense.toml");
    assert_eq!((applied(&named), loss(&named).to_bits()), (applied(&best), loss(&best).to_bits()));
    place.write("dense.toml", "operators = 'steptime-dense'\naccumulate = 2\n");
    let message = place.failure("model.toml --steps 1 --batch 16 --plan dense.toml");
    assert!(message.contains("accumulate without `operators`"), "{message}");
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

#[test]
fn accumulated_batches_train_as_one_of_all_rows() {
    for optimizer in ["sgd", "adagrad"] {
        let place =
            Place::with_model(&format!("{TINY}sparse = false\noptimizer = {{ name = '{optimizer}' }}\n"));
        place.write("plan.toml", "accumulate = 4\nfuse = ['linear', 'optimizer']\n");
        let rows = "--steps 3 --rows 96 --rate 0.1";
        let whole = place.train(&format!("{rows} --plan none"));
        let parts = place.train(&format!("{rows} --batch 8 --plan plan.toml"));
        assert_eq!(applied(&parts), ["fuse-linear", "fuse-optimizer", "accumulate"]);
        assert_eq!((&parts["batch"], &parts["accumulate"]), (&Value::from(8), &Value::from(4)));
        assert_eq!(whole["accumulate"], 1);
        for number in ["first_loss", "loss", "mean_loss"] {
            let loss = |answer: &Value| answer["measured"][number].as_f64().expect("a loss");
            assert!((loss(&parts) - loss(&whole)).abs() < 1e-6, "{optimizer}: {parts} {whole}");
        }
        let log_loss = |answer: &Value| answer["evaluations"][0]["log_loss"].as_f64().expect("a number");
        assert!((log_loss(&parts) - log_loss(&whole)).abs() < 1e-6, "{optimizer}");
        let few = place.failure("model.toml --steps 3 --rows 24 --batch 8 --plan plan.toml");
        assert!(few.contains("a step takes 32: use --batch 6 or less"), "{few}");
    }
}

#[test]
fn tables_updated_in_the_backward_pass_are_not_accumulated() {
    let place = Place::new("sgd");
    for (text, words) in [
        ("operators = 'steptime'\naccumulate = 2", "accumulate without `operators`"),
        ("accumulate = 'two'", "number of batches"),
    ] {
        place.write("plan.toml", text);
        let message = place.failure("model.toml --steps 1 --plan plan.toml");
        assert!(message.contains("plan.toml") && message.contains(words), "{message}");
    }
}
