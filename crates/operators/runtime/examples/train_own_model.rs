//! A model written in Rust: layers, loss, optimizer, ten steps, on a CPU or a GPU.
//!
//! ```text
//! cargo run --release -p steptime-runtime --example train_own_model [cuda]
//! ```

use steptime_cuda::Device;
use steptime_cuda::gemm::Math;
use steptime_eager::{OptimizerRule, record};
use steptime_ops::Cpu;
use steptime_rewrite::{Facts, Operators, apply};
use steptime_runtime::{DescribedStep, GpuOptions, Numbers, Program, Reuse, Session, Target};

const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let step = record(
        OptimizerRule::Adagrad,
        |layers| {
            let items = layers.table("items", 100, 8);
            (items, layers.linear("hidden", 8 + 3, 16), layers.linear("out", 16, 1))
        },
        |forward, &(items, hidden, out)| {
            let batch = BATCH as i64;
            let (dense, labels) = (forward.input("dense", &[batch, 3]), forward.input("labels", &[batch, 1]));
            let rows = forward.bags(items, batch, 2 * batch);
            let x = forward.cat(&[dense, rows])?;
            let x = forward.linear(hidden, &x)?;
            let x = forward.relu(&x);
            let logit = forward.linear(out, &x)?;
            forward.bce_with_logits(&logit, &labels)
        },
    )?;
    let mut described = DescribedStep::from_named(&step)?;
    let mut session = if std::env::args().nth(1).as_deref() == Some("cuda") {
        let ops = described.ops().clone();
        apply(&mut described.step, &[&Operators], &Facts::new(&ops, Some(BATCH as u64)))?;
        let program = Program::for_target(&described, Target::Cuda, Reuse::ByLifetime)?;
        let options = GpuOptions { device: Device::open(0)?, math: Math::Full, graph: true, group: None };
        Session::on_gpu(program, options, &Cpu::new(0)?, 1)?
    } else {
        Session::new(Program::new(&described)?, Cpu::new(0)?, 1)?
    };
    session.set_numbers(Numbers::for_class("Adagrad").with_rate(0.1))?;
    let indices: Vec<i64> = (0..2 * BATCH as i64).map(|at| at * 37 % 100).collect();
    session.feed_ints("items.indices", &indices)?;
    session.feed_ints("items.offsets", &(0..BATCH as i64).map(|bag| 2 * bag).collect::<Vec<_>>())?;
    session.feed_floats("dense", &(0..3 * BATCH).map(|at| (at as f32).sin()).collect::<Vec<_>>())?;
    session
        .feed_floats("labels", &indices.iter().step_by(2).map(|at| (at % 2) as f32).collect::<Vec<_>>())?;
    for step in 1..=10 {
        println!("step {step}: loss {:.4}", session.step()?);
    }
    Ok(())
}
