//! The program, from the outside.

mod bits;
mod data;
mod faults;
mod plans;
mod pytorch;
mod ranks;
mod recording;
mod run;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A small model with bags of three and single lookups.
const TINY: &str =
    "name = 'tiny'\nmodel = 'dlrm'\nbatch = 32\ndense = 4\nbottom_mlp = [8, 4]\ntop_mlp = [8, 1]
tables = [{ rows = 50, columns = 4, lookups = 3 }, { rows = 7, columns = 4 }]\n";

/// A folder with a description in it.
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// A folder with `model.toml`: the small model and an optimizer.
    pub fn new(optimizer: &str) -> Place {
        Place::with_model(&format!("{TINY}optimizer = {{ name = '{optimizer}' }}\n"))
    }

    /// A folder with a description of its own.
    pub fn with_model(text: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder") };
        place.write("model.toml", text);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("it is written");
    }

    /// The program in this folder.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steptime-train"));
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        command
    }

    pub fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().expect("the program")
    }

    /// Standard output of a run without an error.
    pub fn stdout(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {error}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The JSON of a training run of `model.toml`.
    pub fn train(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.stdout(&format!("model.toml --json --eval-rows 64 {arguments}")))
            .expect("JSON")
    }

    /// Standard error of a run with an error.
    pub fn failure(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).expect("UTF-8")
    }
}

/// Bits of all tensors of the last checkpoint in a folder, by name, and its step.
pub fn tensors(folder: &Path) -> (u64, Vec<(String, Vec<u32>)>) {
    let checkpoint =
        steptime_train::checkpoint::newest(folder).expect("a whole checkpoint").expect("a checkpoint");
    let bits =
        |name: &str| checkpoint.read::<f32>(name).expect("floats").into_iter().map(f32::to_bits).collect();
    let all = checkpoint.tensors().iter().map(|tensor| (tensor.name.clone(), bits(&tensor.name))).collect();
    (checkpoint.state().step, all)
}
