//! Kernels that share a GPU, against pairs of branches measured on an H200 (`benches/overlap.py`).
//!
//! A branch is an op, launched again and again. The model gets of each kernel the data of a recording: its grid, its
//! block, its registers and shared memory, its time alone, and the bytes that the op moves. `cargo test --release -p steptime-sim
//! --test sim overlap -- --nocapture` prints the table.

use std::path::Path;

use serde::Deserialize;
use steptime_cost::{Demand, Multiprocessor};
use steptime_sim::sharing::RunningKernels;
use steptime_trace::{LaunchShape, Nanos};

#[derive(Deserialize)]
struct Measurement {
    gpu: Gpu,
    pairs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Gpu {
    sms: u32,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    held: bool,
    branches: [Branch; 2],
    ms: Times,
}

#[derive(Deserialize)]
struct Times {
    first: f64,
    second: f64,
    two_streams: f64,
}

#[derive(Deserialize)]
struct Branch {
    launches: usize,
    bytes: f64,
    kernels: Vec<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    us: f64,
    grid: [u32; 3],
    block: [u32; 3],
    registers: u32,
    shared: u32,
}

/// Bandwidth of the H200's device memory, bytes/µs, as in its profile.
const REACHED: f64 = 4.241e6;

/// Kernels of a branch that takes `alone_ms` ms alone, and the time between two of them.
fn chain(branch: &Branch, alone_ms: f64) -> (Vec<(Nanos, Demand)>, Nanos) {
    let each_us = alone_ms * 1e3 / branch.launches as f64;
    let total: f64 = branch.kernels.iter().map(|kernel| kernel.us).sum();
    let between = (each_us - total).max(0.0) / branch.kernels.len() as f64;
    let scale = (each_us / total).min(1.0);
    let kernel = |kernel: &Kernel| {
        let launch = LaunchShape {
            grid: kernel.grid,
            block: kernel.block,
            registers: kernel.registers,
            shared_memory: kernel.shared,
        };
        let memory = branch.bytes / (total * scale * REACHED);
        let demand = Demand::from_launch(&launch, &Multiprocessor::from_capability([9, 0]), memory);
        (Nanos::from_micros_f64(kernel.us * scale), demand)
    };
    let once: Vec<_> = branch.kernels.iter().map(kernel).collect();
    (once.repeat(branch.launches), Nanos::from_micros_f64(between))
}

/// End of two branches that begin together, ms.
fn side_by_side(branches: [(Vec<(Nanos, Demand)>, Nanos); 2], multiprocessors: u32) -> f64 {
    let mut running = RunningKernels::on(multiprocessors);
    let mut next = [0; 2];
    let mut ready = [Some(Nanos::ZERO); 2];
    loop {
        let waits = |branch: &usize| next[*branch] < branches[*branch].0.len();
        let first = (0..2).filter(waits).filter_map(|branch| Some((ready[branch]?, branch))).min();
        match (first, running.next_change()) {
            (Some((at, branch)), change) if change.is_none_or(|change| at < change) => {
                let (alone, demand) = branches[branch].0[next[branch]];
                running.begin(branch, at.max(running.now()), alone, demand);
                next[branch] += 1;
                ready[branch] = None;
            }
            (_, Some(_)) => {
                for branch in running.change() {
                    ready[branch] = Some(running.now() + branches[branch].1);
                }
            }
            (_, None) => return running.now().as_millis(),
        }
    }
}

#[test]
fn pairs_of_branches_take_as_long_as_measured() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../benches/results/overlap.json");
    let measured: Measurement = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    println!("{:44} {:>7} {:>7} {:>8} {:>9} {:>7}", "ms", "alone", "alone", "together", "simulated", "error");
    let (mut fitted, mut held) = (Vec::new(), Vec::new());
    for pair in &measured.pairs {
        let times = &pair.ms;
        let [one, other] = &pair.branches;
        let chains = [chain(one, times.first), chain(other, times.second)];
        let simulated = side_by_side(chains, measured.gpu.sms);
        let error = simulated / times.two_streams - 1.0;
        println!(
            "{:44} {:7.3} {:7.3} {:8.3} {:9.3} {:+6.1}%{}",
            pair.name,
            times.first,
            times.second,
            times.two_streams,
            simulated,
            error * 100.0,
            if pair.held { "  held out" } else { "" },
        );
        if pair.held { &mut held } else { &mut fitted }.push(error.abs());
    }
    let worst = |errors: &[f64]| errors.iter().copied().fold(0.0, f64::max);
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    println!(
        "fitted: mean {:.3}, worst {:.3}; held out: mean {:.3}, worst {:.3}",
        mean(&fitted),
        worst(&fitted),
        mean(&held),
        worst(&held)
    );
    assert!(fitted.len() == 9 && held.len() == 9, "every pair was measured");
    assert!(worst(&fitted) <= 0.05, "{fitted:?}");
    assert!(mean(&held) <= 0.06 && worst(&held) <= 0.16, "{held:?}");
    assert!(held.iter().filter(|&&error| error <= 0.08).count() >= 8, "{held:?}");
}
