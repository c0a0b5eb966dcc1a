//! The same script recorded on a CPU and on the GPU: the first, moved to the GPU, has the same device active time as the second.

use std::path::{Path, PathBuf};

use steptime_predict::{Choice, Host, Kernels, Step, default_host, predict};
use steptime_trace::Recording;

/// Largest accepted relative difference of device active times: each, and on average.
const EACH: f64 = 0.15;
const MEAN: f64 = 0.04;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces")
}

fn open(path: &Path) -> Step {
    let recordings: Vec<Recording> = steptime_trace::open(path).expect("a recording").recordings;
    Step::from_recordings(path, &recordings, &Choice::default()).expect("a step")
}

/// Folder of the GPU side of a pair: models of the other host's recordings were recorded there.
fn counterpart(name: &str) -> PathBuf {
    match name.strip_prefix("u_").and_then(|name| name.rsplit_once('_')) {
        Some((model, batch)) => traces().join(format!("h200_b/{model}_base_{batch}")),
        None => traces().join("cpu_gpu_pairs/gpu").join(name),
    }
}

#[test]
fn a_step_of_a_cpu_keeps_the_gpu_as_busy_as_the_same_step_did_there() {
    let Ok(entries) = std::fs::read_dir(traces().join("cpu_gpu_pairs/cpu")) else {
        println!("no recorded pairs here: nothing is compared");
        return;
    };
    let profile = steptime_predict::device("h200").expect("the H200's profile");
    let host = Host::Profile(default_host().expect("the default host"));
    let mut errors = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let kernels = Kernels::Device {
            profile: &profile,
            models: Default::default(),
            indices: Default::default(),
            settings: Default::default(),
        };
        let active =
            |recorded: &Step, kernels: &Kernels<'_>| predict(recorded, &host, kernels).active.as_millis();
        let moved = active(&open(&path), &kernels);
        let measured = active(&open(&counterpart(&name)), &Kernels::Measured);
        let apart = moved / measured - 1.0;
        println!("{name:16} {moved:8.4} ms moved, {measured:8.4} ms on the GPU: {:+.1} %", 100.0 * apart);
        assert!(apart.abs() < EACH, "{name}: {:+.1} %", 100.0 * apart);
        errors.push(apart.abs());
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean < MEAN, "{:.1} % in the mean", 100.0 * mean);
}
