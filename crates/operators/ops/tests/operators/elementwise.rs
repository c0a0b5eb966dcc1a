//! Programs against their expressions in double precision, and gradients against differences.

use crate::common;

use proptest::prelude::*;
use steptime_ops::elementwise::{Binary, Cost, ElementwiseError, Expr, Input, Program, Unary, reference};
use steptime_ops::{Cpu, Isa};
use steptime_tensor::{Tensor, View, ViewMut};

const UNARY: [Unary; 9] = [
    Unary::Neg,
    Unary::Abs,
    Unary::Sqrt,
    Unary::Exp,
    Unary::Relu,
    Unary::Step,
    Unary::Sigmoid,
    Unary::Tanh,
    Unary::NormalCdf,
];

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Floats in -2..2 that depend on the seed.
fn floats(seed: u64, count: usize) -> Vec<f32> {
    common::floats::floats(seed, count).into_iter().map(|value| 2.0 * value).collect()
}

/// An expression of `depth` levels over three inputs, from a list of choices. Divisors and roots stay away from zero.
fn expression(choices: &mut impl Iterator<Item = u8>, depth: usize) -> Expr {
    let choice = usize::from(choices.next().unwrap_or(0));
    if depth == 0 || choice % 11 == 0 {
        return if choice % 5 == 4 {
            Expr::constant(choice as f32 / 64.0 - 1.0)
        } else {
            Expr::input(choice % 3)
        };
    }
    let first = expression(choices, depth - 1);
    match choice % 8 {
        0 => first.abs().unary(Unary::Sqrt) + 0.5,
        1 => first.tanh().exp(),
        2 => first.unary([Unary::Neg, Unary::Abs, Unary::Relu, Unary::Sigmoid][choice % 4]),
        3 => first.gelu(),
        4 => first / (expression(choices, depth - 1).abs() + 1.0),
        5 => first.clone() * first,
        6 => first * expression(choices, depth - 1) + expression(choices, depth - 1),
        _ => first - expression(choices, depth - 1),
    }
}

fn check(isa: Isa, exprs: &[Expr], inputs: &[Tensor<f32>], shape: &[usize]) -> Result<(), TestCaseError> {
    let cpu = Cpu::with_isa(isa, 1).unwrap();
    let program = Program::new(exprs).unwrap();
    let views: Vec<_> = inputs.iter().take(program.inputs()).map(|input| Input::View(input.view())).collect();
    let mut outputs: Vec<_> = exprs.iter().map(|_| Tensor::<f32>::zeros(shape).unwrap()).collect();
    let mut to: Vec<_> = outputs.iter_mut().map(|output| output.view_mut().unwrap()).collect();
    program.run(&cpu, &views, &mut to).unwrap();
    let wide: Vec<Vec<f32>> =
        inputs.iter().map(|input| input.view().broadcast(shape).unwrap().to_vec()).collect();
    for (expr, output) in exprs.iter().zip(&outputs) {
        for (at, &ours) in output.to_vec().iter().enumerate() {
            let values: Vec<f64> = wide.iter().map(|input| f64::from(input[at])).collect();
            let exact = reference::evaluate(expr, &values);
            let size = values.iter().fold(exact.abs().max(1.0), |size, value| size.max(value.abs()));
            prop_assert!(
                (f64::from(ours) - exact).abs() < 1e-4 * size || exact.abs() > 1e6,
                "{isa} {at}: {ours} is not {exact}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_expression_matches_the_reference(
        choices in prop::collection::vec(any::<u8>(), 1..60), seed in any::<u32>(),
        (a, b, c) in (0..4usize, 1..40usize, 1..60usize), repeat in 0..8usize,
    ) {
        let mut choices = choices.into_iter();
        let exprs = [expression(&mut choices, 4), expression(&mut choices, 3)];
        let shape = [a, b, c];
        // Some dimensions of each input are repeated.
        let input = |index: usize| {
            let mut own = shape;
            for (axis, size) in own.iter_mut().enumerate() {
                if repeat >> ((axis + index) % 3) & 1 == 1 && index > 0 {
                    *size = 1;
                }
            }
            let len = own.iter().product();
            Tensor::from_vec(floats(u64::from(seed) + index as u64, len), &own).unwrap()
        };
        let inputs = [input(0), input(1), input(2)];
        for isa in available() {
            check(isa, &exprs, &inputs, &shape)?;
        }
    }
}

#[test]
fn every_function_matches_the_reference_at_any_length() {
    for isa in available() {
        for len in [1, 15, 16, 17, 1023, 1024, 1025, 5000] {
            let x = Tensor::from_vec(floats(len as u64, len), &[len]).unwrap();
            let exprs: Vec<Expr> = UNARY
                .map(|op| if op == Unary::Sqrt { Expr::input(0).abs() } else { Expr::input(0) }.unary(op))
                .to_vec();
            check(isa, &exprs, &[x], &[len]).unwrap();
        }
    }
}

#[test]
fn gradients_match_differences() {
    let (x, y) = (Expr::input(0), Expr::input(1));
    let exprs = [
        x.clone().relu() * y.clone(),
        x.clone().sigmoid() + x.clone() * y.clone(),
        (x.clone() / y.clone()).tanh(),
        (x.clone() - y.clone()).gelu(),
        x.clone().silu() * y.clone().exp(),
        x.clone().leaky_relu(0.1) - -y.clone(),
        (x.clone().abs() + 1.0).sqrt() / (y.clone() * y.clone() + 2.0),
        x.clone() * 3.0,
    ];
    for expr in exprs {
        let gradients = expr.backward(Expr::input(2), 3);
        for (a, b) in [(0.3, 0.7), (-1.2, 0.4), (2.0, -0.6), (-0.1, -1.5)] {
            let at = |a: f64, b: f64| reference::evaluate(&expr, &[a, b]);
            let step = 1e-6;
            let exact = [
                (at(a + step, b) - at(a - step, b)) / (2.0 * step),
                (at(a, b + step) - at(a, b - step)) / (2.0 * step),
            ];
            for (gradient, exact) in gradients.iter().zip(exact) {
                let ours = reference::evaluate(gradient, &[a, b, 1.5]);
                assert!(
                    (ours - 1.5 * exact).abs() < 1e-6,
                    "{expr:?} at {a}, {b}: {ours} is not 1.5 x {exact}"
                );
            }
            assert_eq!(reference::evaluate(&gradients[2], &[a, b, 1.5]), 0.0);
        }
    }
}

#[test]
fn in_place_strided_and_broadcast_operands() {
    for isa in available() {
        for threads in [1, 2, 3, 7] {
            let cpu = Cpu::with_isa(isa, threads).unwrap();
            // The bias as a column, the output a transposed half of a wider tensor, updated in place.
            let mut out = Tensor::from_fn(&[300, 500], |at| at as f32).unwrap();
            let before = out.to_vec();
            let bias = Tensor::from_fn(&[250, 1], |at| -(at as f32)).unwrap();
            let program = Program::new(&[Expr::input(0) + Expr::input(1) * 2.0]).unwrap();
            let target = out.make_mut().slice_step(1, 0..500, 2).unwrap().transpose(0, 1).unwrap();
            program.run(&cpu, &[Input::InPlace(0), Input::View(bias.view())], &mut [target]).unwrap();
            for (at, (&new, &old)) in out.to_vec().iter().zip(&before).enumerate() {
                let column = at % 500;
                let exact = if column % 2 == 0 { old - column as f32 } else { old };
                assert_eq!(new, exact, "{isa}, {threads} threads, {at}");
            }
        }
    }
}

#[test]
fn outputs_that_are_inputs_constants_or_each_other() {
    let x = Tensor::from_vec(vec![1.0, -2.0], &[2]).unwrap();
    let square = Expr::input(0) * Expr::input(0);
    let exprs = [Expr::input(0), Expr::constant(7.0), square.clone(), square.clone(), square + 1.0];
    let program = Program::new(&exprs).unwrap();
    let mut out: Vec<Tensor<f32>> = (0..5).map(|_| Tensor::zeros(&[2]).unwrap()).collect();
    let mut to: Vec<_> = out.iter_mut().map(|out| out.view_mut().unwrap()).collect();
    program.run(&Cpu::new(1).unwrap(), &[Input::View(x.view())], &mut to).unwrap();
    let out: Vec<_> = out.iter().map(Tensor::to_vec).collect();
    assert_eq!(out, [[1.0, -2.0], [7.0, 7.0], [1.0, 4.0], [1.0, 4.0], [2.0, 5.0]]);
}

#[test]
fn not_a_number_stays() {
    let x = [f32::NAN; 40];
    for isa in available() {
        for op in UNARY.into_iter().filter(|&op| op != Unary::Step) {
            let mut out = [0.0; 40];
            let program = Program::new(&[Expr::input(0).unary(op)]).unwrap();
            let view = Input::View(View::from_slice(&x, &[40]).unwrap());
            let mut to = [ViewMut::from_mut_slice(&mut out, &[40]).unwrap()];
            program.run(&Cpu::with_isa(isa, 1).unwrap(), &[view], &mut to).unwrap();
            assert!(out.iter().all(|value| value.is_nan()), "{op:?}");
        }
    }
}

#[test]
fn the_cost_counts_what_moves() {
    let (x, bias) = (Expr::input(0), Expr::input(1));
    let program = Program::new(&[((x + bias).relu() * 2.0).binary(Binary::Sub, Expr::input(2))]).unwrap();
    // Four operations; one by one they read x and bias, a result, a result, a result and input 2, and write four times.
    let cost = program.cost(1000, &[1000, 10, 1000]);
    let expected =
        Cost { flops: 4000, fused_bytes: 4 * 3010, unfused_bytes: 4 * (1010 + 1000 + 1000 + 2000 + 4000) };
    assert_eq!(cost, expected);
    assert!(cost.fused_intensity() > 2.9 * cost.unfused_intensity());
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    assert_eq!(Program::new(&[]).unwrap_err(), ElementwiseError::NoOutput);
    let program = Program::new(&[Expr::input(0) + Expr::input(1)]).unwrap();
    let x = Tensor::<f32>::zeros(&[2, 3]).unwrap();
    let view = || Input::View(x.view());
    let mut out = Tensor::<f32>::zeros(&[2, 4]).unwrap();
    let error = program.run(&cpu, &[view()], &mut [out.make_mut()]).unwrap_err();
    assert_eq!(error, ElementwiseError::Inputs { needed: 2, given: 1 });
    let error = program.run(&cpu, &[view(), view()], &mut []).unwrap_err();
    assert_eq!(error, ElementwiseError::Outputs { needed: 1, given: 0 });
    let error = program.run(&cpu, &[Input::InPlace(0), view()], &mut [out.make_mut()]).unwrap_err();
    assert!(error.to_string().contains("input 1") && error.to_string().contains("[2, 4]"), "{error}");
    let error =
        program.run(&cpu, &[Input::InPlace(0), Input::InPlace(1)], &mut [out.make_mut()]).unwrap_err();
    assert_eq!(error, ElementwiseError::InPlace { index: 1, output: 1, outputs: 1 });
    let twice = Program::new(&[Expr::input(0), Expr::input(0)]).unwrap();
    let mut same = Tensor::<f32>::zeros(&[2, 3]).unwrap();
    let error = twice.run(&cpu, &[view()], &mut [same.make_mut(), out.make_mut()]).unwrap_err();
    assert!(matches!(error, ElementwiseError::OutputShape { index: 1, .. }));
    let mut none = Tensor::<f32>::zeros(&[0, 3]).unwrap();
    let row = Tensor::<f32>::zeros(&[3]).unwrap();
    let inputs = [Input::InPlace(0), Input::View(row.view())];
    program.run(&cpu, &inputs, &mut [none.make_mut()]).unwrap();
}
