//! Chains of elementwise operations in one pass.

use steptime_ops::Cpu;
use steptime_ops::elementwise::{Expr, Input, Program, reference};
use steptime_tensor::Tensor;

use super::Benchmark;
use super::context::{Context, Name, Work, timed};
use crate::Error;
use crate::Init;
use crate::difference::largest_error;
use crate::dlrm::BATCH;
use crate::random::{Random, values};
use crate::sizes::{Sizes, check_memory};

pub static BENCHMARK: Benchmark = Benchmark {
    name: "elementwise",
    about: "Chains of elementwise operations",
    sizes: "B rows of D columns",
    keys: &[("B", BATCH), ("D", 1024)],
    run: |context, sizes| run(context, "", sizes),
    usual,
};

/// Number of elements that are checked.
const SAMPLES: usize = 5000;

fn usual(context: &mut Context) -> Result<(), Error> {
    run(context, "layer", &Sizes::new([("B", BATCH), ("D", 1024)]))?;
    run(context, "memory", &Sizes::new([("B", 8192), ("D", 4096)]))
}

fn run(context: &mut Context, name: &str, sizes: &Sizes) -> Result<(), Error> {
    let (x, bias, y) = (Expr::input(0), Expr::input(1), Expr::input(2));
    for (pass, chain) in [
        ("relu(x + b)", (x.clone() + bias.clone()).relu()),
        ("gelu(x + b) y", (x.clone() + bias.clone()).gelu() * y.clone()),
        ("x s(x) + y 0.5", x.silu() + y * 0.5),
    ] {
        chain_of(context, pass, name, sizes, &chain)?;
    }
    Ok(())
}

/// Runs an expression of a matrix, a bias of its columns, and another matrix.
fn chain_of(
    context: &mut Context,
    pass: &'static str,
    name: &str,
    sizes: &Sizes,
    chain: &Expr,
) -> Result<(), Error> {
    let [rows, columns] = ["B", "D"].map(|key| sizes.get(key));
    check_memory(&[&[3, rows, columns]])?;
    let program = Program::new(std::slice::from_ref(chain))?;
    let len = rows * columns;
    let operands = [
        Tensor::from_vec(values(len, 1), &[rows, columns])?,
        Tensor::from_vec(values(columns, 2), &[columns])?,
        Tensor::from_vec(values(len, 3), &[rows, columns])?,
    ];
    let used = &operands[..program.inputs()];
    let inputs: Vec<_> = used.iter().map(|operand| Input::View(operand.view())).collect();
    let mut out = Tensor::<f32>::zeros(&[rows, columns])?;
    let cost = program.cost(len, &[len, columns, len]);
    let work = Work {
        sequential: cost.fused_bytes,
        flops: cost.flops,
        unfused: Some(cost.unfused_bytes),
        ..Work::default()
    };
    let evaluate = |cpu: &Cpu, out: &mut Tensor<f32>| program.run(cpu, &inputs, &mut [out.make_mut()]);
    let error = context.verify(|cpu| {
        evaluate(cpu, &mut out)?;
        let mut random = Random::new(4);
        Ok(largest_error((0..SAMPLES).map(|_| {
            let index = [random.index(Init::Uniform, rows), random.index(Init::Uniform, columns)];
            let value = |operand: &Tensor<f32>| {
                f64::from(operand.get(&index[2 - operand.rank()..]).unwrap_or(f32::NAN))
            };
            let values: Vec<f64> = used.iter().map(value).collect();
            (out.get(&index).unwrap_or(f32::NAN), reference::evaluate(chain, &values))
        })))
    })?;
    let times = context.time(|cpu| timed(|| evaluate(cpu, &mut out)))?;
    context.add(Name { op: "elementwise", pass, name, sizes }, work, times, error)
}
