//! The programs in `examples/` run in the repository's root and print something. `cargo test` builds them beforehand.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Path of a built example: cargo puts them beside the folder of this test.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().and_then(Path::parent).expect("the folder of the build profile");
    folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

fn prints(name: &str, words: &str) {
    let program = built(name);
    assert!(program.exists(), "{} is not built: `cargo test -p steptime` does that", program.display());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let output = Command::new(program).current_dir(root).output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(words), "{name}: {out}{err}");
}

#[test]
fn of_a_recording() {
    prints("recording", "90 % interval");
}

#[test]
fn of_an_answer() {
    prints("json", "\"command\": \"predict\"");
}

#[test]
fn of_an_execution_trace() {
    prints("execution_trace", "on a typical host");
}

#[test]
fn of_other_gpus() {
    prints("another_gpu", "h200");
}

#[test]
fn of_a_roofline() {
    prints("roofline", "bound by");
}

#[test]
fn of_single_kernels() {
    prints("kernels", "aten::mm");
}

#[test]
fn of_an_op_of_ones_own() {
    prints("own_op", "with your own concatenation");
}

#[cfg(feature = "ops")]
#[test]
fn of_operators() {
    prints("operators", "twice is 3");
}
