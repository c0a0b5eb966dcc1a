//! Source text of the kernel.

use std::fmt::Write;

use super::THREADS;
use super::chain::{Call, Chain};
use super::function::{Function, Type};
use super::program;
use crate::Source;
use crate::float::FLOATS;
use crate::frame::Frame;

/// Neighbouring elements of other types than floats, loaded and stored by vectors of at most 16 bytes.
const WHOLE: &str = "\
template <class T> struct Single { T at[1]; };
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Quad { T at[4]; };
__device__ __forceinline__ float rounded(float x) { return low_of(pack(x, 0.0f)); }
";

/// The kernel's source. The frame has the inputs, then the outputs.
pub(super) fn source(chain: &Chain, frame: &Frame) -> Source {
    let types = chain.operands();
    let mut code = format!("{FLOATS}struct Operands {{ void *at[{}]; }};\n{WHOLE}", types.len());
    code.push_str(program::FUNCTIONS);
    frame.types(&mut code);
    let _ = writeln!(
        code,
        "extern \"C\" __global__ void __launch_bounds__({THREADS}) pointwise(Operands operands) {{"
    );
    let _ = writeln!(code, "    Index at = (Index)blockIdx.x * {THREADS}u + threadIdx.x;");
    let _ = writeln!(code, "    if (at >= {}u) return;", frame.threads());
    let _ = writeln!(code, "    const Index first = at * {};", frame.vector);
    frame.positions(&mut code);
    for (operand, &r#type) in types.iter().enumerate() {
        let (own, count) = (Operand { number: operand, r#type }, if frame.is_quad(operand) { 4 } else { 1 });
        if operand < chain.inputs { own.load(&mut code, count) } else { own.declare(&mut code, count) }
    }
    let _ = writeln!(code, "#pragma unroll\n    for (int k = 0; k < {}; k++) {{", frame.vector);
    let _ = writeln!(code, "        const Index number = first + k;");
    let element =
        |operand: usize| format!("v{operand}.at[{}]", if frame.is_quad(operand) { "k" } else { "0" });
    for (input, r#type) in types[..chain.inputs].iter().enumerate() {
        let _ = writeln!(code, "        const {} x{input} = {};", r#type.register_name(), element(input));
    }
    chain.calls.iter().for_each(|call| add(&mut code, chain, call));
    for (output, value) in chain.outputs.iter().enumerate() {
        let _ = writeln!(code, "        {} = x{value};", element(chain.inputs + output));
    }
    code.push_str("    }\n");
    for (operand, &r#type) in types.iter().enumerate().skip(chain.inputs) {
        Operand { number: operand, r#type }.store(&mut code, if frame.is_quad(operand) { 4 } else { 1 });
    }
    code.push_str("}\n");
    Source::new("pointwise.cu", code).option("--fmad=false")
}

/// Adds the code that computes the results of a call.
fn add(code: &mut String, chain: &Chain, call: &Call) {
    let name = |value: usize| format!("x{value}");
    let operands: Vec<String> = call.operands.iter().map(|&value| name(value)).collect();
    let inputs: Vec<Type> = call.operands.iter().map(|&value| chain.values[value]).collect();
    for result in call.results.clone() {
        let _ = writeln!(code, "        {} {};", chain.values[result].register_name(), name(result));
    }
    if let Function::Program(program) = &call.function {
        let results: Vec<String> = call.results.clone().map(name).collect();
        program::add(code, program, &operands, &results);
    }
    for result in call.results.clone() {
        let r#type = chain.values[result];
        if let Some(value) = call.function.expression(&operands, &inputs, r#type) {
            let _ = writeln!(code, "        {} = {value};", name(result));
        }
        if r#type == Type::Bf16 {
            let _ = writeln!(code, "        {0} = rounded({0});", name(result));
        }
    }
}

/// An operand in memory: neighbouring elements `v{number}`, at position `p{number}`.
struct Operand {
    number: usize,
    r#type: Type,
}

impl Operand {
    fn place(&self) -> String {
        format!("({0} *)operands.at[{1}] + p{1}", self.r#type.device_name(), self.number)
    }

    /// Type of `count` elements in registers.
    fn registers(&self, count: usize) -> String {
        if self.r#type.is_float() { format!("Floats<{count}>") } else { self.whole(count) }
    }

    fn whole(&self, count: usize) -> String {
        let name = self.r#type.device_name();
        if count == 1 { format!("Single<{name}>") } else { format!("Quad<{name}>") }
    }

    fn declare(&self, code: &mut String, count: usize) {
        let _ = writeln!(code, "    {} v{};", self.registers(count), self.number);
    }

    fn load(&self, code: &mut String, count: usize) {
        let (registers, number, place) = (self.registers(count), self.number, self.place());
        let _ = if self.r#type.is_float() {
            writeln!(code, "    const {registers} v{number} = load_floats<{count}>({place});")
        } else {
            writeln!(code, "    const {registers} v{number} = *(const {registers} *)({place});")
        };
    }

    fn store(&self, code: &mut String, count: usize) {
        let (registers, number, place) = (self.registers(count), self.number, self.place());
        let _ = if self.r#type.is_float() {
            writeln!(code, "    store_floats<{count}>({place}, v{number});")
        } else {
            writeln!(code, "    *({registers} *)({place}) = v{number};")
        };
    }
}

#[cfg(test)]
mod tests {
    use steptime_ops::elementwise::{Expr, Program, Unary};
    use steptime_tensor::Layout;

    use super::*;
    use crate::TestCompiler;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    /// Compiles a chain for rows that lie together, and for odd shapes, with inputs that are one row.
    fn build(compiler: &TestCompiler, chain: &Chain) {
        for shape in [vec![64, 8], vec![5, 3, 7]] {
            let row = layout(&shape[shape.len() - 1..]).broadcast(&shape).unwrap();
            let mut layouts = vec![row; chain.inputs];
            layouts.extend(chain.outputs.iter().map(|_| layout(&shape)));
            compiler.build(&source(chain, &Frame::new(&layouts)));
        }
    }

    #[test]
    fn every_function_compiles_for_every_type() {
        use Type::{Bf16, Bool, F32, I64};
        let Some(compiler) = TestCompiler::new() else { return };
        let mut all = vec![
            (Function::Equal(0.5), vec![F32], Bool),
            (Function::AtLeast(f32::NAN), vec![Bf16], Bool),
            (Function::ClampMin(-0.0), vec![F32], F32),
            (Function::Where, vec![Bool, F32, Bf16], Bf16),
            (Function::MaskedFill(2.0), vec![Bool, F32], F32),
            (Function::Fill(f64::INFINITY), vec![], F32),
            (Function::Fill(-1.0), vec![], I64),
            (Function::Fill(1.0), vec![], Bool),
            (Function::Fill(1.0), vec![], Bf16),
            (Function::Positions, vec![], I64),
        ];
        for from in [F32, Bf16, I64, Bool] {
            all.extend([F32, Bf16, I64, Bool].map(|to| (Function::Convert, vec![from], to)));
        }
        for (function, inputs, output) in all {
            build(&compiler, &Chain::from_function(function, &inputs, &[output]).unwrap());
        }
    }

    #[test]
    fn programs_and_chains_compile() {
        use Type::{Bf16, Bool, F32};
        let Some(compiler) = TestCompiler::new() else { return };
        let x = || Expr::input(0);
        let all = [
            x().gelu() + x().silu() * Expr::input(1),
            (x().abs().sqrt() / 3.0 - x().exp()).tanh(),
            -x().relu() + x().unary(Unary::Step),
            x(),
        ];
        let program = Function::Program(Program::new(&all).unwrap());
        let mut chain = Chain::from_function(program.clone(), &[F32, Bf16], &[F32, Bf16, F32, F32]).unwrap();
        build(&compiler, &chain);
        let flag = chain.call(Function::AtLeast(0.5), &[3], &[Bool]).unwrap().start;
        let chosen = chain.call(Function::Where, &[flag, 0, 2], &[Bf16]).unwrap().start;
        chain.call(program, &[chosen, 1], &[F32; 4]).unwrap();
        chain.store(chosen).unwrap();
        chain.store(flag).unwrap();
        build(&compiler, &chain);
    }
}
