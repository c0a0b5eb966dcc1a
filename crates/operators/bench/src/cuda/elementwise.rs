//! Chains of elementwise operations in one pass.

use steptime_cuda::pointwise::{Chain, Function, Input, Pointwise, Type};
use steptime_cuda::{Buffer, randomize};
use steptime_ops::elementwise::{Expr, Program, reference};
use steptime_tensor::Layout;

use super::batch::read;
use super::context::{Case, Context};
use super::{Benchmark, TOLERANCE};
use crate::Error;
use crate::difference::largest_error;
use crate::dlrm::BATCH;
use crate::sizes::Sizes;

/// Number of rows that are checked.
const CHECKED: usize = 32;

pub static BENCHMARK: Benchmark = Benchmark {
    name: "elementwise",
    about: "Chains of elementwise operations",
    sizes: "B rows of D columns",
    keys: &[("B", BATCH), ("D", 1024)],
    run,
    usual,
};

fn run(context: &mut Context, sizes: &Sizes) -> Result<(), Error> {
    let [rows, columns] = ["B", "D"].map(|key| sizes.get(key));
    context.check_memory(&[&[3, rows, columns]])?;
    chains(context, "", [rows, columns])
}

/// Runs chains of a layer's size and of one far larger than the caches.
fn usual(context: &mut Context) -> Result<(), Error> {
    chains(context, ", layer", [BATCH, 1024])?;
    chains(context, ", memory", [16_384, 4096])
}

fn chains(context: &mut Context, place: &str, shape: [usize; 2]) -> Result<(), Error> {
    let (x, bias, y) = (Expr::input(0), Expr::input(1), Expr::input(2));
    for (name, chain) in
        [("relu(x + b)", (x.clone() + bias.clone()).relu()), ("gelu(x + b) y", (x + bias).gelu() * y)]
    {
        case(context, &format!("{name}{place}"), shape, &chain)?;
    }
    Ok(())
}

/// Difference of a row from an expression of rows of the same length.
fn row_error(chain: &Expr, given: &[Vec<f32>], found: &[f32]) -> f64 {
    largest_error(found.iter().enumerate().map(|(column, &found)| {
        let values: Vec<f64> = given.iter().map(|values| f64::from(values[column])).collect();
        (found, reference::evaluate(chain, &values))
    }))
}

fn case(context: &mut Context, name: &str, shape: [usize; 2], chain: &Expr) -> Result<(), Error> {
    let program = Program::new(std::slice::from_ref(chain))?;
    let len = shape[0] * shape[1];
    let (whole, row) = (Layout::contiguous(&shape)?, Layout::contiguous(&shape[1..])?);
    let layouts = [whole.clone(), row, whole.clone()];
    let used = program.inputs();
    let functions =
        Chain::from_function(Function::Program(program.clone()), &vec![Type::F32; used], &[Type::F32])?;
    let op = Pointwise::new(context.device(), &functions, &layouts[..used], &[whole])?;
    let mut buffers = Vec::new();
    for (seed, layout) in layouts[..used].iter().enumerate() {
        let mut values = Buffer::<f32>::uninit(context.device(), layout.len())?;
        randomize(&context.stream, &mut values.as_mut(), seed as u64)?;
        buffers.push(values);
    }
    let mut out = Buffer::<f32>::uninit(context.device(), len)?;
    let inputs: Vec<_> = buffers.iter().map(|values| Input::Slice(values.as_ref().cast())).collect();
    let case = Case {
        op: "elementwise",
        name: name.into(),
        shape: format!("B={},D={}", shape[0], shape[1]),
        indices: String::new(),
        distinct: 1.0,
        bytes: program.cost(len, &[len, shape[1], len]).fused_bytes,
        flops: 0,
        geometry: op.geometry()?.into_iter().collect(),
    };
    let verified = context.verify(TOLERANCE, |stream| {
        op.run(stream, &inputs, &mut [out.as_mut().cast()])?;
        let [rows, columns] = shape;
        let mut largest = 0.0_f64;
        for row in (0..rows).step_by(rows.div_ceil(CHECKED)) {
            let place = row * columns..(row + 1) * columns;
            // A bias has one row.
            let of_row = |values: &Buffer<f32>| match values.len() == len {
                true => read(stream, values.as_ref().slice(place.clone())),
                false => values.to_host(stream),
            };
            let given = buffers.iter().map(of_row).collect::<Result<Vec<_>, _>>()?;
            let found = read(stream, out.as_ref().slice(place.clone()))?;
            largest = largest.max(row_error(chain, &given, &found));
        }
        Ok(largest)
    })?;
    context.add(case, verified, |stream, _| op.run(stream, &inputs, &mut [out.as_mut().cast()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_compared_element_by_element() {
        let chain = (Expr::input(0) + Expr::input(1)).relu();
        let given = [vec![1.0, -3.0, 0.5], vec![1.0, 1.0, 1.0]];
        assert_eq!(row_error(&chain, &given, &[2.0, 0.0, 1.5]), 0.0);
        assert_eq!(row_error(&chain, &given, &[2.0, 0.5, 1.5]), 0.5);
    }
}
