//! Source text of the kernel.

use std::fmt::Write;

use super::THREADS;
use super::function::{Function, Type};
use crate::Source;
use crate::frame::Frame;

/// Four neighbouring elements, loaded and stored by vectors of at most 16 bytes.
const QUAD: &str = "\
template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Quad { T at[4]; };
";

/// The kernel's source. The frame has the inputs, then the output.
pub(super) fn source(function: Function, inputs: &[Type], output: Type, frame: &Frame) -> Source {
    let last = inputs.len();
    let mut code = format!("struct Operands {{ void *at[{}]; }};\n{QUAD}", last + 1);
    frame.types(&mut code);
    let _ = writeln!(
        code,
        "extern \"C\" __global__ void __launch_bounds__({THREADS}) pointwise(Operands operands) {{"
    );
    let _ = writeln!(code, "    Index at = (Index)blockIdx.x * {THREADS}u + threadIdx.x;");
    let _ = writeln!(code, "    if (at >= {}u) return;", frame.threads());
    let _ = writeln!(code, "    const Index first = at * {};", frame.vector);
    frame.positions(&mut code);
    let memory_type = |operand: usize, r#type: Type| {
        let name = r#type.device_name();
        if frame.is_quad(operand) { format!("Quad<{name}>") } else { name.to_owned() }
    };
    let place = |operand: usize, r#type: Type| {
        let name = r#type.device_name();
        format!("({name} *)operands.at[{operand}] + p{operand}")
    };
    for (input, &r#type) in inputs.iter().enumerate() {
        let (whole, place) = (memory_type(input, r#type), place(input, r#type));
        let _ = writeln!(code, "    const {whole} v{input} = *(const {whole} *)({place});");
    }
    let (whole, to) = (memory_type(last, output), place(last, output));
    // Elements that a mask leaves out are not written.
    let masked = matches!(function, Function::MaskedFill(_));
    let _ = if masked {
        writeln!(code, "    {} *to = {to};", output.device_name())
    } else {
        writeln!(code, "    {whole} v{last};")
    };
    let _ = writeln!(code, "#pragma unroll\n    for (int k = 0; k < {}; k++) {{", frame.vector);
    let _ = writeln!(code, "        const Index number = first + k;");
    let element = |operand: usize| {
        if frame.is_quad(operand) { format!("v{operand}.at[k]") } else { format!("v{operand}") }
    };
    for (input, r#type) in inputs.iter().enumerate() {
        let _ = writeln!(code, "        const {} x{input} = {};", r#type.device_name(), element(input));
    }
    let value = function.expression(inputs, output);
    let _ = if masked {
        writeln!(code, "        if (x0) to[k] = {value};\n    }}")
    } else {
        writeln!(code, "        {} = {value};\n    }}\n    *({whole} *)({to}) = v{last};", element(last))
    };
    code.push_str("}\n");
    Source::new("pointwise.cu", code)
}

#[cfg(test)]
mod tests {
    use steptime_tensor::Layout;

    use super::*;
    use crate::TestCompiler;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous(shape).unwrap()
    }

    #[test]
    fn kernels_compile_for_every_function() {
        let Some(compiler) = TestCompiler::new() else { return };
        use Type::{Bool, F32, I64};
        let mut all = vec![
            (Function::Equal(f32::NAN), vec![F32], Bool),
            (Function::AtLeast(-1.5), vec![F32], Bool),
            (Function::ClampMin(0.1), vec![F32], F32),
            (Function::Where, vec![Bool, F32, F32], F32),
            (Function::MaskedFill(f32::NEG_INFINITY), vec![Bool], F32),
            (Function::Fill(1e300), vec![], F32),
            (Function::Fill(-1e300), vec![], I64),
            (Function::Fill(1.0), vec![], Bool),
            (Function::Positions, vec![], I64),
        ];
        for from in [F32, I64, Bool] {
            all.extend([F32, I64, Bool].map(|to| (Function::Convert, vec![from], to)));
        }
        for (function, inputs, output) in all {
            function.check(&inputs, output).unwrap();
            for shape in [vec![64, 8], vec![5, 3, 7]] {
                let row = layout(&shape[shape.len() - 1..]).broadcast(&shape).unwrap();
                let mut layouts = vec![row; inputs.len()];
                layouts.push(layout(&shape));
                let source = source(function, &inputs, output, &Frame::new(&layouts));
                compiler.build(&source);
            }
        }
    }
}
