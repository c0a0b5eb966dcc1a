//! Faults: each is a sentence with its remedy, and loses nothing.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Place, tensors};

#[test]
fn a_loss_that_is_no_number_stops_the_run() {
    let place = Place::new("sgd");
    let message = place.failure("model.toml --rate 1e30 --steps 50 --eval-rows 64");
    for words in ["step ", "diverged", "--rate", "-o FOLDER"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    place.train("--rate 0.01 --steps 4 -o run");
    let message = place.failure("model.toml --rate 1e30 --steps 50 --eval-rows 64 -o run --resume");
    assert!(message.contains("checkpoint is of step 4") && message.contains("--resume"), "{message}");
    assert_eq!(tensors(&place.path("run")).0, 4);
    place.train("--rate 0.01 --steps 6 -o run --resume");
}

#[test]
fn a_killed_run_continues_from_its_last_checkpoint() {
    let place = Place::new("adagrad");
    let mut command = place.command("model.toml --steps 100000000 --save-every 3 --eval-rows 64 -o run");
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let written = || steptime_train::checkpoint::list(&place.path("run")).unwrap().len();
    while written() < 2 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(3));
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let (step, _) = tensors(&place.path("run"));
    let answer = place.train(&format!("--steps {} -o run --resume", step + 2));
    assert_eq!((answer["first_step"].as_u64(), answer["measured"]["steps"].as_u64()), (Some(step), Some(2)));
    place.train(&format!("--steps {} -o whole", step + 2));
    assert_eq!(tensors(&place.path("run")), tensors(&place.path("whole")));
}

#[test]
fn folders_of_other_runs_are_refused() {
    let place = Place::new("sgd");
    assert!(place.failure("model.toml --steps 2 -o run --resume").contains("leave --resume out"));
    place.train("--steps 2 -o run --rows 64");
    assert!(place.failure("model.toml --steps 4 -o run").contains("--resume"));
    assert!(place.failure("model.toml --steps 4 -o run --resume").contains("--rows"));
    assert!(
        place.failure("model.toml --steps 4 -o run --resume --rows 64 --seed 9").contains("leave --seed out")
    );
    let other = Place::new("adam");
    std::fs::copy(other.path("model.toml"), place.path("model.toml")).unwrap();
    let message = place.failure("model.toml --steps 4 -o run --resume --rows 64");
    assert!(message.contains("continue with the model, the plan and the optimizer"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_step_that_exceeds_the_memory_is_refused_before_it_is_allocated() {
    let place = Place::with_model(
        "model = 'dlrm'\nbatch = 32\ndense = 4\nbottom_mlp = [4]\ntop_mlp = [1]\ntables = [{ rows = 2_000_000_000, columns = 4096 }]\n",
    );
    let message = place.failure("model.toml --steps 1");
    assert!(message.contains("GB of memory") && message.contains("smaller tables"), "{message}");
}

#[test]
fn impossible_options_are_refused() {
    let place = Place::new("sgd");
    for (arguments, words) in [
        ("model.toml --dtype tf32", "use --device cuda"),
        ("model.toml --host-memory", "use --device cuda"),
        ("model.toml --epochs 2", "--rows N"),
        ("model.toml --rows 8", "--batch 8"),
        ("model.toml --rate -1", "learning rate"),
        ("missing.toml", "missing.toml"),
    ] {
        let message = place.failure(arguments);
        assert!(message.contains(words), "{arguments}: {message}");
    }
    for arguments in [
        "model.toml --cache 1",
        "model.toml --host-memory=auto --cache 0",
        "model.toml --host-memory=x",
        "",
        "model.toml --data synthetic:normal",
        "model.toml --resume",
        "model.toml --steps 0",
        "data",
    ] {
        assert_eq!(place.output(arguments).status.code(), Some(2), "{arguments}");
    }
    let output = place.output("model.toml --device tpu");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("no such device as tpu: use cpu, cuda, or cuda:N"), "{message}");
}
