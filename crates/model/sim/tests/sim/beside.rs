//! Kernels beside collectives, against eleven recorded jobs on H200s (`benches/beside.py`).
//!
//! The model gets the launch configurations of both. `cargo test --release -p steptime-sim --test sim beside -- --nocapture` prints the
//! table.

use std::path::Path;

use serde::Deserialize;
use steptime_cost::{Demand, Multiprocessor};
use steptime_sim::sharing::beside;
use steptime_trace::LaunchShape;

#[derive(Deserialize)]
struct Measurement {
    sms: u32,
    kernels: Vec<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    name: String,
    #[serde(flatten)]
    launch: Launch,
    beside: Launch,
    us: f64,
    times: f64,
    count: f64,
    held: bool,
}

#[derive(Deserialize)]
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    registers: u32,
    shared: u32,
}

impl Launch {
    fn demand(&self) -> Demand {
        let shape = LaunchShape {
            grid: self.grid,
            block: self.block,
            registers: self.registers,
            shared_memory: self.shared,
        };
        Demand::from_launch(&shape, &Multiprocessor::from_capability([9, 0]), 0.0)
    }
}

/// Mean of the logarithms of errors, weighted by the time of each kernel.
fn error(kernels: &[&Kernel], times: impl Fn(&Kernel) -> f64) -> f64 {
    let weight = |kernel: &Kernel| kernel.us * kernel.count;
    let all: f64 = kernels.iter().map(|kernel| weight(kernel)).sum();
    kernels.iter().map(|kernel| weight(kernel) * (times(kernel) / kernel.times).ln().abs()).sum::<f64>() / all
}

#[test]
fn kernels_take_as_much_longer_as_measured() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../benches/results/beside.json");
    let measured: Measurement = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let times = |kernel: &Kernel| beside(&kernel.launch.demand(), [&kernel.beside.demand()], measured.sms);
    for kernel in &measured.kernels {
        let (us, simulated) = (kernel.us, times(kernel));
        println!("{:40} {us:7.2} us, times {:5.3}, simulated {simulated:5.3}", kernel.name, kernel.times);
    }
    let (held, fitted): (Vec<&Kernel>, Vec<&Kernel>) =
        measured.kernels.iter().partition(|kernel| kernel.held);
    assert!(fitted.len() > 100 && held.len() > 100, "every shape was measured");
    for (kernels, most) in [(fitted, 0.06), (held, 0.06)] {
        let [model, nothing] = [error(&kernels, times), error(&kernels, |_| 1.0)];
        println!("{} kernels: {model:.3}, if nothing were shared {nothing:.3}", kernels.len());
        assert!(model < most && model < 0.3 * nothing, "{model} {nothing}");
    }
}

#[test]
fn a_product_on_all_multiprocessors_takes_two_waves() {
    let launch = |blocks: u32, threads: u32, registers: u32| {
        let shape = LaunchShape { grid: [blocks, 1, 1], block: [threads, 1, 1], registers, shared_memory: 0 };
        Demand::from_launch(&shape, &Multiprocessor::from_capability([9, 0]), 0.0)
    };
    // 640 threads of 96 registers leave no room for a block of the product, and 108 of 132 multiprocessors.
    let collective = launch(24, 640, 96);
    let product = |blocks: u32| beside(&launch(blocks, 256, 202), [&collective], 132);
    assert_eq!([product(108), product(109), product(132)], [1.0, 2.0, 2.0]);
    // Alone 216 blocks take two waves, too.
    assert_eq!(product(216), 1.0);
    // Two collectives leave 84, none leaves all.
    assert_eq!(beside(&launch(85, 256, 202), [&collective, &collective], 132), 2.0);
    assert_eq!(beside(&launch(132, 256, 202), [], 132), 1.0);
    // Small blocks miss a fifth of the places, and lose half of that.
    let small = beside(&launch(100_000, 128, 32), [&collective], 132);
    assert!((1.05..1.13).contains(&small), "{small}");
    // If a collective takes everything, others wait for its end.
    assert_eq!(beside(&launch(1, 256, 202), [&launch(132, 1024, 64)], 132), f64::INFINITY);
}
