//! No output replaces a file that the command reads, nor another output.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{failure, root, stdout, text};

const EXAMPLE: &str = "examples/dlrm_default_2048";

fn copied(from: &str, to: &Path) -> PathBuf {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(root().join(from)).expect("a folder").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
    to.to_owned()
}

/// Asserts that the command is refused, and that the file is unchanged.
fn spared(file: &Path, arguments: &[&str]) {
    let before = fs::read(file).expect("a file");
    let error = failure(arguments);
    assert!(error.contains("read by the same command"), "{arguments:?}: {error}");
    assert_eq!(fs::read(file).expect("a file"), before, "{arguments:?}");
}

#[test]
fn whatever_is_typed_is_spared() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, words: &str| {
        fs::write(at(name), words).expect("written");
        at(name)
    };
    let (plan, prices) = (write("plan.toml", "batch = 4096\n"), write("indices.txt", "1\n2\n3\n"));
    let plan = text(&plan);
    spared(Path::new(plan), &["whatif", EXAMPLE, "--plan", plan, "--timeline", plan]);
    let model = "examples/models/dlrm_4_gpus.toml";
    spared(Path::new(plan), &["predict", model, "--device", "h200", "--changes", plan, "--timeline", plan]);
    let indices = format!("file:{}", text(&prices));
    spared(
        &prices,
        &["predict", EXAMPLE, "--device", "h200", "--indices", &indices, "--timeline", text(&prices)],
    );
    let profile = copied("profiles/a100", &at("gpu"));
    let (gpu, header) = (text(&profile), profile.join("profile.toml"));
    let grid = write("grid.toml", &format!("batch = [1024, 2048]\ndevice = [{gpu:?}]\n"));
    let points = at("points.parquet");
    for arguments in [
        &["predict", EXAMPLE, "--device", gpu, "--timeline"][..],
        &["view", EXAMPLE, "--device", gpu, "-o"],
        &["roofline", EXAMPLE, "--device", gpu, "--plot"],
        &["shard", model, "--gpus", "4", "--device", gpu, "-o"],
        &["scale", model, "--device", gpu, "--plot"],
        &["sweep", EXAMPLE, "--grid", text(&grid), "-o", text(&points), "--plot"],
    ] {
        spared(&header, &[arguments, &[text(&header)]].concat());
    }
    assert!(!points.exists());
}

#[test]
fn the_files_of_a_recording_are_spared_and_none_joins_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = copied(EXAMPLE, &folder.path().join("rec"));
    let rec = text(&recording);
    let trace = recording.join("et.json.gz");
    let hard = folder.path().join("hard.json");
    fs::hard_link(&trace, &hard).expect("a link");
    spared(&trace, &["whatif", rec, "--cuda-graph", "--timeline", text(&hard)]);
    #[cfg(unix)]
    {
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink("rec/et.json.gz", &link).expect("a link");
        spared(&trace, &["whatif", rec, "--cuda-graph", "--timeline", text(&link)]);
    }
    // A second execution trace would make the recording ambiguous.
    let second = recording.join("et.json");
    spared(&trace, &["whatif", rec, "--cuda-graph", "--graph", text(&second)]);
    assert!(!second.exists());
    // Any other name in its folder is free, and may be written again.
    let timeline = recording.join("timeline.json");
    for _ in 0..2 {
        stdout(&["predict", rec, "--timeline", text(&timeline)]);
    }
}

#[test]
fn two_outputs_are_two_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let grid = folder.path().join("grid.toml");
    fs::write(&grid, "batch = [1024, 2048]\n").expect("written");
    let points = folder.path().join("points.parquet");
    let same = folder.path().join(".").join("points.parquet");
    let error =
        failure(&["sweep", EXAMPLE, "--grid", text(&grid), "-o", text(&points), "--plot", text(&same)]);
    assert!(error.contains("--output and --plot name the same file"), "{error}");
    assert!(!points.exists());
}
