//! Runs to their end: the answer, the plan, the measures.

use crate::Place;

#[test]
fn the_table_has_predicted_and_measured_numbers() {
    let place = Place::new("sgd");
    let text = place.stdout("model.toml --steps 9 --eval-rows 64 --threads 1");
    for words in [
        "predicted",
        "measured",
        "best possible",
        "memory of the step",
        "none on a CPU",
        "AUC",
        "plan best: operators",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let line = text.lines().find(|line| line.starts_with("steps")).expect("a row");
    assert_eq!(line.split_whitespace().last(), Some("9"));
}

#[test]
fn the_json_is_one_object_with_all_numbers() {
    let answer = Place::new("adagrad").train("--steps 8 --eval-every 3 --batch 16 --threads 1");
    assert_eq!((answer["batch"].as_u64(), answer["measured"]["steps"].as_u64()), (Some(16), Some(8)));
    let steps: Vec<_> =
        answer["evaluations"].as_array().unwrap().iter().map(|one| one["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [3, 6, 8]);
    assert!(answer["predicted"]["step_ms"].is_null());
    let [planned, predicted] =
        [&answer["measured"], &answer["predicted"]].map(|side| side["step_bytes"].as_f64().unwrap());
    assert!(planned > 0.2 * predicted && planned <= 1.05 * predicted, "{planned} of {predicted}");
    let times = ["min_ms", "median_ms", "max_ms"].map(|name| answer["measured"][name].as_f64().unwrap());
    assert!(times[0] > 0.0 && times.is_sorted(), "{times:?}");
}

#[test]
fn planted_rows_are_learned_up_to_the_best_possible() {
    let place = Place::new("adagrad");
    let command = "--rate 0.05 --batch 128 --seed 3 --eval-rows 8192 --steps";
    let auc = |steps: u64| {
        let answer: serde_json::Value =
            serde_json::from_str(&place.stdout(&format!("model.toml --json {command} {steps}"))).unwrap();
        let own = answer["evaluations"].as_array().unwrap().last().unwrap()["auc"].as_f64().unwrap();
        (own, answer["best"]["auc"].as_f64().unwrap())
    };
    let ((before, best), (after, same)) = (auc(1), auc(1500));
    assert_eq!(best, same);
    assert!(
        best > 0.6 && after > before && after > best - 0.05 && after < best + 0.01,
        "{before} {after} {best}"
    );
}

#[test]
fn rules_of_the_plan_leave_the_losses_within_rounding() {
    for optimizer in ["sgd", "adagrad", "adam", "adamw"] {
        let place = Place::new(optimizer);
        let [none, best] =
            ["none", "best"].map(|plan| place.train(&format!("--steps 12 --plan {plan} --threads 1")));
        let loss = |answer: &serde_json::Value| answer["measured"]["mean_loss"].as_f64().unwrap();
        assert!((loss(&none) - loss(&best)).abs() < 1e-4, "{optimizer}: {} {}", loss(&none), loss(&best));
        let plan = &best["plan"];
        let count = plan["applied"].as_array().unwrap().len() + plan["skipped"].as_array().unwrap().len();
        // Adam has dense gradients of all tables in one call instead of the operators.
        let rules = if optimizer.starts_with("adam") { 4 } else { 3 };
        assert_eq!(count, rules, "each rule is named: {plan}");
        assert_eq!(none["plan"]["applied"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn shipped_models_train() {
    let models = [
        ("dcn_v2", "dcn_v2", "bottom_mlp = [8]\ncross_layers = 2\ntop_mlp = [8, 1]"),
        ("deepfm", "deepfm", "top_mlp = [8, 1]"),
        ("wide", "wide_and_deep", "top_mlp = [8, 1]"),
    ];
    for (name, model, layers) in models {
        let text = format!(
            "name = '{name}'\nmodel = '{model}'\nbatch = 32\ndense = 4\n{layers}\ntables = [{{ rows = 50, columns = 8, count = 3 }}]\n"
        );
        let answer = Place::with_model(&text).train("--steps 4");
        assert!(answer["measured"]["loss"].as_f64().unwrap() > 0.0, "{name}");
        assert!(answer["evaluations"][0]["auc"].is_f64(), "{name}: {answer}");
    }
    let towers = "model = 'two_towers'\nbatch = 16\ntop_mlp = [8, 4]\ntables = [{ rows = 50, columns = 8, lookups = 2, tower = 'query' }, { rows = 9, columns = 8, tower = 'item' }]\n";
    let answer = Place::with_model(towers).train("--steps 4");
    assert_eq!(answer["evaluations"].as_array().unwrap().len(), 0, "it has no labels");
}

#[test]
fn a_schedule_changes_the_rate() {
    let place = Place::new("sgd");
    place.write("schedule.toml", "warmup = { steps = 4, start = 0.0 }\n");
    place.write("none.toml", "warmup = { steps = 0, start = 0.0 }\n");
    let loss = |extra: &str| {
        place.train(&format!("--steps 4 --rate 0.5 {extra}"))["measured"]["mean_loss"].as_f64().unwrap()
    };
    assert_ne!(loss(""), loss("--schedule schedule.toml"));
    let message = place.failure("model.toml --steps 4 --schedule none.toml");
    assert!(message.contains("warmup.steps") && message.contains("none.toml"), "{message}");
}
