//! Time of a training step of a described model on a CPU, or on a GPU by `--device cuda`, where `--tf32`, `--bf16`, `--no-graph`
//! and `--no-reuse` (each tensor has its own memory) apply.
//!
//! ```text
//! cargo run --release -p steptime-runtime --example speed -- examples/models/dlrm_default.toml --threads 2 --steps 20 --plan best
//! ```
//!
//! Plans: `none`, the ops of PyTorch eager; `best`, with the operators and fused linear layers. The batch is random: uniform indices, bags of one
//! size. The first steps are not counted.

use std::path::Path;
use std::time::{Duration, Instant};

use steptime_cuda::Device;
use steptime_cuda::gemm::Math;
use steptime_eager::Model;
use steptime_ops::Cpu;
use steptime_ops::limits::fma_peak;
use steptime_rewrite::{Bf16, Facts, FuseCasts, FuseLinear, Operators, Rule, apply};
use steptime_runtime::{DescribedStep, GpuOptions, Program, Reuse, Session, Target};

/// Steps before the counted ones.
const WARM_UP: usize = 3;

/// Steps whose instructions are measured.
const PROFILED: usize = 7;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option =
        |name: &str| arguments.iter().position(|own| own == name).and_then(|at| arguments.get(at + 1));
    let flag = |name: &str| arguments.iter().any(|own| own == name);
    let number = |name: &str, default: usize| option(name).map_or(Ok(default), |text| text.parse());
    let path = arguments.first().ok_or("give the path of a model.toml")?;
    let model = Model::read(Path::new(path))?.with_batch(number("--batch", 2048)? as u64)?;
    let mut described = DescribedStep::new(&model)?;
    if option("--plan").is_none_or(|plan| plan == "best") {
        let ops = described.ops().clone();
        let facts = Facts::new(&ops, Some(model.batch()));
        let narrow: &[&dyn Rule] = if flag("--bf16") { &[&Bf16, &FuseCasts] } else { &[] };
        for &rule in [&Operators as &dyn Rule].iter().chain(narrow).chain(&[&FuseLinear as &dyn Rule]) {
            if let Err(error) = apply(&mut described.step, &[rule], &facts) {
                println!("without {}: {}", rule.name(), error.source);
            }
        }
    }
    let on_gpu = option("--device").is_some_and(|device| device == "cuda");
    let target = if on_gpu { Target::Cuda } else { Target::Cpu };
    let reuse = if flag("--no-reuse") { Reuse::Never } else { Reuse::ByLifetime };
    let program = Program::for_target(&described, target, reuse)?;
    if arguments.iter().any(|own| own == "--print") {
        print!("{program}");
    }
    let cpu = Cpu::new(number("--threads", 2)?)?;
    let mut session = if on_gpu {
        let device = Device::open(0)?;
        println!("{device:?}");
        let math = if flag("--tf32") { Math::Tf32 } else { Math::Full };
        Session::on_gpu(
            program,
            GpuOptions { device, math, graph: !flag("--no-graph"), group: None },
            &cpu,
            1,
        )?
    } else {
        let peak = fma_peak(&cpu, 200).per_second / 1e9;
        println!("{} threads with {}: at most {peak:.0} GFLOP/s", cpu.threads(), cpu.isa());
        Session::new(program, cpu, 1)?
    };
    feed(&mut session, &model)?;
    // Time on a processor, which other jobs do not lengthen; meaningful with one thread.
    let cpu_time = arguments.iter().any(|own| own == "--cpu-time");
    let mut times = Vec::new();
    for step in 0..WARM_UP + number("--steps", 20)? {
        let (start, used) = (Instant::now(), on_cpu());
        let loss = session.step()?;
        let time = if cpu_time { on_cpu() - used } else { start.elapsed() };
        if step >= WARM_UP {
            times.push(time);
        }
        if step % 10 == 0 {
            println!("step {step}: loss {loss:.5}");
        }
    }
    if on_gpu {
        // The host runs at most one step ahead, as in training.
        let steps = number("--steps", 20)?;
        session.finish()?;
        let start = Instant::now();
        for _ in 0..steps {
            session.start()?;
        }
        session.finish()?;
        println!("{:.4} ms a step without waiting for each loss", ms(start.elapsed()) / steps.max(1) as f64);
    }
    times.sort_unstable();
    println!("median {:.3} ms, least {:.3} ms", ms(times[times.len() / 2]), ms(times[0]));
    if flag("--profile") {
        // The least of several steps: work that begins late, because the host paused before its launch, counts as longer.
        let mut least = vec![f64::INFINITY; session.program().instructions().len()];
        for _ in 0..PROFILED {
            let times = session.measured_step()?.instructions;
            least.iter_mut().zip(&times).for_each(|(least, times)| *least = least.min(ms(times.work())));
        }
        let mut total = std::collections::BTreeMap::<String, f64>::new();
        for (instruction, time) in session.program().instructions().iter().zip(least) {
            *total.entry(instruction.name.clone()).or_default() += time;
        }
        let mut total: Vec<_> = total.into_iter().collect();
        total.sort_by(|one, other| other.1.total_cmp(&one.1));
        total.iter().take(24).for_each(|(name, time)| println!("{time:9.3} ms {name}"));
    }
    Ok(())
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Time of this thread on a processor so far, where the system reports it.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

/// Feeds a random batch.
fn feed(session: &mut Session, model: &Model) -> Result<(), Failure> {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let batch = model.batch() as usize;
    let inputs: Vec<(String, usize)> =
        session.program().inputs().map(|name| (name.to_owned(), session.program().input_len(name))).collect();
    for (name, len) in inputs {
        let table = name.split_once("tables.").and_then(|(_, rest)| rest.split('.').next()?.parse().ok());
        let Some(table) = table.and_then(|table: usize| model.tables().get(table).copied()) else {
            let values: Vec<f32> = (0..len).map(|_| (random() % 2) as f32).collect();
            session.feed_floats(&name, &values)?;
            continue;
        };
        let values: Vec<i64> = match name.ends_with("indices") {
            true => (0..len).map(|_| (random() % table.rows as u64) as i64).collect(),
            false => (0..batch as i64).map(|bag| bag * table.lookups).collect(),
        };
        session.feed_ints(&name, &values)?;
    }
    Ok(())
}
