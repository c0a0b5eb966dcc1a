//! Checkpoints in PyTorch: `steptime.models` has the measures of the program.

use std::path::{Path, PathBuf};
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

/// The answer of `pytorch.py`; `None` where Python has no PyTorch.
fn in_pytorch(model: &Path, checkpoint: &Path, rows: &Path) -> Option<Value> {
    let python = std::env::var_os("STEPTIME_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import torch"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        steptime_skips::skip("no torch for Python");
        return None;
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(&python);
    command.arg(root.join("tests/train/pytorch.py")).args([model, checkpoint, rows]);
    let output = command.env("PYTHONPATH", root.join("../../../python")).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn near(name: &str, ours: &Value, theirs: &Value) {
    let [ours, theirs] = [ours, theirs].map(|value| value.as_f64().expect("a number"));
    assert!((ours - theirs).abs() < 1e-5, "{name}: {ours}, and {theirs} in PyTorch");
}

#[test]
fn checkpoints_have_the_measures_of_pytorch() {
    for body in MODELS {
        let place = Place::with_model(&format!("batch = 32\n{body}{TABLES}"));
        place.stdout("data synthetic model.toml --rows 600 --validation 0.5 --seed 3 -o rows");
        let answer: Value = serde_json::from_str(
            &place.stdout("model.toml --json --data rows --epochs 3 --rate 0.05 -o run"),
        )
        .expect("JSON");
        let Some(theirs) = in_pytorch(&place.path("model.toml"), &place.path("run"), &place.path("rows"))
        else {
            return;
        };
        let ours = &answer["evaluations"][0];
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
    let answer: Value =
        serde_json::from_str(&place.stdout("model.toml --json --data rows --rate 0 --steps 1 -o run"))
            .expect("JSON");
    let theirs = in_pytorch(&place.path("model.toml"), &place.path("run"), &place.path("rows"));
    if let Some(theirs) = theirs {
        near("loss", &answer["measured"]["loss"], &theirs["loss"]);
    }
}
