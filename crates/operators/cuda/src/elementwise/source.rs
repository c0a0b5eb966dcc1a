//! Source text of the kernel.

use std::fmt::Write;

use steptime_ops::elementwise::{Binary, Op, Program, Source as From, Target, Unary};

use super::THREADS;
use crate::Source;
use crate::frame::Frame;

/// Device functions of programs.
const FUNCTIONS: &str = "\
struct Operands { float *at[OPERANDS]; };
__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float get(const float4 &v, int k) { return k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w; }
__device__ __forceinline__ void set(float4 &v, int k, float x) { (k == 0 ? v.x : k == 1 ? v.y : k == 2 ? v.z : v.w) = x; }
";

fn operand(from: From) -> String {
    match from {
        From::Input(input) => format!("x{input}"),
        From::Constant(value) => format!("__uint_as_float({}u)", value.to_bits()),
        From::Register(register) => format!("r{register}"),
    }
}

fn expression(op: Op, operands: [From; 3]) -> String {
    let [a, b, c] = operands.map(operand);
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

/// The kernel's source.
pub(super) fn source(program: &Program, frame: &Frame) -> Source {
    let (inputs, outputs, vector) = (program.inputs(), program.outputs(), frame.vector);
    let mut code = format!("#define OPERANDS {}\n{FUNCTIONS}", inputs + outputs);
    frame.types(&mut code);
    let _ = writeln!(
        code,
        "extern \"C\" __global__ void __launch_bounds__({THREADS}) elementwise(Operands to) {{"
    );
    let _ = writeln!(code, "    Index at = (Index)blockIdx.x * {THREADS}u + threadIdx.x;");
    let _ = writeln!(code, "    if (at >= {}u) return;", frame.threads());
    frame.positions(&mut code);
    for input in 0..inputs {
        let _ = if frame.is_quad(input) {
            writeln!(code, "    float4 v{input} = *(const float4 *)(to.at[{input}] + p{input});")
        } else {
            writeln!(code, "    float v{input} = to.at[{input}][p{input}];")
        };
    }
    for output in inputs..inputs + outputs {
        let _ = writeln!(code, "    {} v{output};", if frame.is_quad(output) { "float4" } else { "float" });
    }
    let _ = writeln!(code, "#pragma unroll\n    for (int k = 0; k < {vector}; k++) {{");
    for input in 0..inputs {
        let value = if frame.is_quad(input) { format!("get(v{input}, k)") } else { format!("v{input}") };
        let _ = writeln!(code, "        float x{input} = {value};");
    }
    let targets = program.steps().iter().filter_map(|step| match step.target {
        Target::Register(register) => Some(register),
        Target::Output(_) => None,
    });
    for register in 0..targets.max().map_or(0, |last| last + 1) {
        let _ = writeln!(code, "        float r{register};");
    }
    for step in program.steps() {
        let value = expression(step.op, step.operands);
        let _ = match step.target {
            Target::Register(register) => writeln!(code, "        r{register} = {value};"),
            Target::Output(output) if frame.is_quad(inputs + output) => {
                writeln!(code, "        set(v{}, k, {value});", inputs + output)
            }
            Target::Output(output) => writeln!(code, "        v{} = {value};", inputs + output),
        };
    }
    code.push_str("    }\n");
    for output in inputs..inputs + outputs {
        let kind = if frame.is_quad(output) { "*(float4 *)(to" } else { "*(to" };
        let _ = writeln!(code, "    {kind}.at[{output}] + p{output}) = v{output};");
    }
    code.push_str("}\n");
    Source::new("elementwise.cu", code).option("--fmad=false")
}

#[cfg(test)]
mod tests {
    use steptime_ops::elementwise::Expr;
    use steptime_tensor::Layout;

    use super::*;
    use crate::TestCompiler;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn every_operation_compiles() {
        let Some(compiler) = TestCompiler::new() else { return };
        let x = || Expr::input(0);
        let all = [
            x().gelu() + x().silu() * Expr::input(1),
            (x().abs().sqrt() / 3.0 - x().exp()).tanh(),
            -x().relu() + x().unary(Unary::Step),
            x(),
        ];
        let program = Program::new(&all).unwrap();
        for shape in [vec![64, 8], vec![5, 3, 7]] {
            let mut all = vec![layout(&shape), layout(&shape[shape.len() - 1..]).broadcast(&shape).unwrap()];
            all.extend(vec![layout(&shape); 4]);
            let source = source(&program, &Frame::new(&all));
            compiler.build(&source);
        }
    }
}
