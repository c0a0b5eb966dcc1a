//! Checkpoints in PyTorch: `steptime.models` has the measures of the program.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::Place;

/// Tables of models with one output.
const TABLES: &str = "tables = [{ rows = 50, columns = 4, lookups = 3 }, { rows = 7, columns = 4 }]\n";

/// Bodies of descriptions, one of each kind of model and interaction.
const MODELS: [&str; 8] = [
    "model = 'dlrm'\ndense = 4\nbottom_mlp = [8, 6]\ntop_mlp = [8, 1]\ntable_init = 'uniform'\n",
    "model = 'dlrm'\ndense = 4\nbottom_mlp = [4]\ntop_mlp = [8, 1]\ninteraction = 'fm'\nloss = 'mse'\n",
    "model = 'dlrm'\ndense = 4\ntop_mlp = [8, 1]\ninteraction = 'cat'\npooling = 'mean'\noptimizer = { name = 'adagrad' }\n",
    "model = 'dlrm'\ntop_mlp = [1]\n",
    "model = 'dcn_v2'\ndense = 4\nbottom_mlp = [8, 4]\ncross_layers = 2\ntop_mlp = [8, 1]\noptimizer = { name = 'adam' }\n",
    "model = 'dcn_v2'\ndense = 4\ncross_rank = 3\ntop_mlp = [1]\n",
    "model = 'wide_and_deep'\ndense = 4\ntop_mlp = [8, 1]\noptimizer = { name = 'adam' }\n",
    "model = 'deepfm'\ntop_mlp = [8, 1]\noptimizer = { name = 'adagrad' }\n",
];

/// Answers of `pytorch.py`, one for each folder; none where Python has no PyTorch.
fn in_pytorch(places: &[Place]) -> Vec<Value> {
    let python = std::env::var_os("STEPTIME_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import torch"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        steptime_skips::skip("no torch for Python");
        return Vec::new();
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(&python);
    command.arg(root.join("tests/train/pytorch.py")).args(places.iter().map(|place| place.path("")));
    let output = command.env("PYTHONPATH", root.join("../../../python")).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answers.len(), places.len());
    answers
}

fn near(name: &str, ours: &Value, theirs: &Value) {
    let [ours, theirs] = [ours, theirs].map(|value| value.as_f64().expect("a number"));
    assert!((ours - theirs).abs() < 1e-5, "{name}: {ours}, and {theirs} in PyTorch");
}

#[test]
fn checkpoints_have_the_measures_of_pytorch() {
    let trained = |body: &&str| {
        let place = Place::with_model(&format!("batch = 32\n{body}{TABLES}"));
        place.stdout("data synthetic model.toml --rows 600 --validation 0.5 --seed 3 -o rows");
        let answer = place.stdout("model.toml --json --data rows --epochs 3 --rate 0.05 -o run");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        (place, answer["evaluations"][0].clone())
    };
    let (places, ours): (Vec<Place>, Vec<Value>) = MODELS.iter().map(trained).unzip();
    for ((theirs, ours), body) in in_pytorch(&places).iter().zip(&ours).zip(MODELS) {
        assert_eq!((ours["samples"].as_u64(), theirs["samples"].as_u64()), (Some(300), Some(300)));
        for measure in ["auc", "log_loss"] {
            near(&format!("{body}: {measure}"), &ours[measure], &theirs[measure]);
        }
    }
}

#[test]
fn two_towers_have_the_loss_of_pytorch() {
    let tables = "tables = [{ rows = 50, columns = 4, lookups = 3, tower = 'query' }, { rows = 9, columns = 6, tower = 'item' }, { rows = 7, columns = 4, tower = 'query' }]";
    let place = Place::with_model(&format!("model = 'two_towers'\nbatch = 64\ntop_mlp = [8, 4]\n{tables}\n"));
    place.stdout("data synthetic model.toml --rows 64 --validation 0 -o rows");
    // A step of rate 0 on all rows: the parameters remain.
    let answer = place.stdout("model.toml --json --data rows --rate 0 --steps 1 -o run");
    let ours: Value = serde_json::from_str(&answer).expect("JSON");
    for theirs in in_pytorch(&[place]) {
        near("loss", &ours["measured"]["loss"], &theirs["loss"]);
    }
}

#[test]
fn impossible_planted_data_is_refused() {
    let place = Place::new("sgd");
    for (arguments, words) in [
        ("--rows 10 --validation 1.5", "--validation 1.5"),
        ("--rows 10 --zipf 9", "Zipf exponent"),
        ("--rows 10 -o model.toml", "already exists"),
    ] {
        let output = if arguments.contains("-o") { "" } else { " -o rows" };
        let message = place.failure(&format!("data synthetic model.toml {arguments}{output}"));
        assert!(message.contains(words), "{arguments}: {message}");
    }
}
