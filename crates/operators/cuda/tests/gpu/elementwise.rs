//! Elementwise programs on a GPU against the CPU operators. Without a GPU the tests are skipped with a message.

use crate::support;

use steptime_cuda::pointwise::{Chain, Function, Input, Pointwise, Type};
use steptime_cuda::{Buffer, Stream};
use steptime_ops::Cpu;
use steptime_ops::elementwise::{Expr, Input as OnCpu, Program};
use steptime_tensor::{Layout, Tensor};

fn gpu() -> Option<Stream> {
    support::device().map(|device| device.stream().unwrap())
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919 + seed * 104_729) % 65_521) as f32 / 8190.0 - 4.0).collect()
}

/// A program compiled for operands of 32-bit floats.
fn compiled(stream: &Stream, program: &Program, inputs: &[Layout], output: &Layout) -> Pointwise {
    let types = vec![Type::F32; inputs.len()];
    let chain = Chain::from_function(Function::Program(program.clone()), &types, &[Type::F32]).unwrap();
    Pointwise::new(stream.device(), &chain, inputs, std::slice::from_ref(output)).unwrap()
}

/// Runs a program of two inputs and one output on both sides; `loose` is the error tolerance, 0 for bit-identical
/// results.
fn compare(stream: &Stream, expr: Expr, shape: &[usize], bias: &[usize], turned: bool, loose: f32) {
    let program = Program::new(&[expr]).unwrap();
    let count: usize = shape.iter().product();
    let (x, y) = (values(count, 1), values(bias.iter().product(), 2));
    let given: Vec<usize> = if turned { shape.iter().rev().copied().collect() } else { shape.to_vec() };
    let tensor = Tensor::from_vec(x.clone(), &given).unwrap();
    let view = if turned { tensor.view().transpose(0, 1).unwrap() } else { tensor.view() };
    let layout = view.layout().clone();
    let second = Tensor::from_vec(y.clone(), bias).unwrap();
    let mut expected = Tensor::zeros(shape).unwrap();
    let inputs = [OnCpu::View(view), OnCpu::View(second.view())];
    program.run(&Cpu::new(1).unwrap(), &inputs, &mut [expected.view_mut().unwrap()]).unwrap();
    let out_layout = Layout::contiguous(shape).unwrap();
    let layouts = [layout, Layout::contiguous(bias).unwrap()];
    let op = compiled(stream, &program, &layouts, &out_layout);
    let (x, y) = (Buffer::from_host(stream, &x).unwrap(), Buffer::from_host(stream, &y).unwrap());
    let mut out = Buffer::from_host(stream, &vec![f32::NAN; count]).unwrap();
    let inputs = [Input::Slice(x.as_ref().cast()), Input::Slice(y.as_ref().cast())];
    op.run(stream, &inputs, &mut [out.as_mut().cast()]).unwrap();
    for (at, (found, expected)) in out.to_host(stream).unwrap().iter().zip(expected.to_vec()).enumerate() {
        let close = (found - expected).abs() <= loose * expected.abs().max(1.0);
        assert!(
            found.to_bits() == expected.to_bits() || (loose > 0.0 && close),
            "{shape:?} {at}: {found} for {expected}"
        );
    }
}

#[test]
fn arithmetic_has_the_bits_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let chain = || {
        let (x, y) = (Expr::input(0), Expr::input(1));
        ((x.clone() * 0.3 + y.clone()).relu() / (y.abs() + 1.5) - x).abs().sqrt()
    };
    for (shape, bias) in [
        (vec![64, 128], vec![128]),
        (vec![64, 128], vec![64, 1]),
        (vec![7, 5, 3], vec![5, 1]),
        (vec![1], vec![1]),
        (vec![1001], vec![1]),
        (vec![0, 4], vec![4]),
    ] {
        compare(&stream, chain(), &shape, &bias, false, 0.0);
    }
    compare(&stream, chain(), &[96, 36], &[36], true, 0.0);
}

#[test]
fn functions_are_within_rounding_of_the_cpu() {
    let Some(stream) = gpu() else { return };
    let (x, y) = (|| Expr::input(0), || Expr::input(1));
    for expr in [x().gelu() + y(), x().silu() * y(), x().tanh() - y().exp(), x().sigmoid() + y()] {
        compare(&stream, expr, &[100, 64], &[64], false, 2e-6);
    }
}

#[test]
fn outputs_may_be_their_own_inputs() {
    let Some(stream) = gpu() else { return };
    let program = Program::new(&[Expr::input(0) * 2.0]).unwrap();
    let layout = Layout::contiguous(&[1000]).unwrap();
    let op = compiled(&stream, &program, std::slice::from_ref(&layout), &layout);
    let given = values(1000, 3);
    let mut buffer = Buffer::from_host(&stream, &given).unwrap();
    op.run(&stream, &[Input::InPlace(0)], &mut [buffer.as_mut().cast()]).unwrap();
    let doubled: Vec<f32> = given.iter().map(|value| value * 2.0).collect();
    assert_eq!(buffer.to_host(&stream).unwrap(), doubled);
    assert!(op.run(&stream, &[Input::InPlace(1)], &mut [buffer.as_mut().cast()]).is_err());
    println!("{}", op.geometry().unwrap().unwrap());
}
