//! Elementwise programs as device code.

use std::fmt::Write;

use steptime_ops::elementwise::{Binary, Op, Program, Source, Target, Unary};

/// Device functions of programs.
pub(super) const FUNCTIONS: &str = "\
__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
";

/// Adds the code of a program over these operands, which assigns its results.
pub(super) fn add(code: &mut String, program: &Program, operands: &[String], results: &[String]) {
    let registers = program.steps().iter().filter_map(|step| match step.target {
        Target::Register(register) => Some(register),
        Target::Output(_) => None,
    });
    let registers = registers.max().map_or(0, |last| last + 1);
    code.push_str("        {\n");
    for register in 0..registers {
        let _ = writeln!(code, "            float r{register};");
    }
    let operand = |from: Source| match from {
        Source::Input(input) => operands[input].clone(),
        Source::Constant(value) => format!("__uint_as_float({}u)", value.to_bits()),
        Source::Register(register) => format!("r{register}"),
    };
    for step in program.steps() {
        let value = expression(step.op, step.operands.map(operand));
        let _ = match step.target {
            Target::Register(register) => writeln!(code, "            r{register} = {value};"),
            Target::Output(output) => writeln!(code, "            {} = {value};", results[output]),
        };
    }
    code.push_str("        }\n");
}

fn expression(op: Op, [a, b, c]: [String; 3]) -> String {
    match op {
        Op::Copy => a,
        Op::MulAdd => format!("fmaf({a}, {b}, {c})"),
        Op::Binary(Binary::Add) => format!("{a} + {b}"),
        Op::Binary(Binary::Sub) => format!("{a} - {b}"),
        Op::Binary(Binary::Mul) => format!("{a} * {b}"),
        Op::Binary(Binary::Div) => format!("{a} / {b}"),
        Op::Unary(Unary::Neg) => format!("-{a}"),
        Op::Unary(Unary::Abs) => format!("fabsf({a})"),
        Op::Unary(Unary::Sqrt) => format!("sqrtf({a})"),
        Op::Unary(Unary::Exp) => format!("expf({a})"),
        Op::Unary(Unary::Relu) => format!("relu({a})"),
        Op::Unary(Unary::Step) => format!("({a} > 0.0f ? 1.0f : 0.0f)"),
        Op::Unary(Unary::Sigmoid) => format!("sigmoid({a})"),
        Op::Unary(Unary::Tanh) => format!("tanhf({a})"),
        Op::Unary(Unary::NormalCdf) => format!("normcdff({a})"),
    }
}
