//! Functions, and the types of their operands.

use steptime_ops::elementwise::Program;

use crate::Error;

/// Type of an operand's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// 32-bit floats.
    F32,
    /// bfloat16: widened for arithmetic in 32 bits, and rounded to nearest, ties to even.
    Bf16,
    /// 64-bit signed integers.
    I64,
    /// Truth values of a byte each: 0 is false, any other byte is true, and 1 is written.
    Bool,
}

impl Type {
    /// Bytes of an element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Type::F32 => 4,
            Type::Bf16 => 2,
            Type::I64 => 8,
            Type::Bool => 1,
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::Bf16)
    }

    /// Name of the type in device memory.
    pub(super) fn device_name(self) -> &'static str {
        match self {
            Type::F32 => "float",
            Type::Bf16 => "Bf16",
            Type::I64 => "long long",
            Type::Bool => "unsigned char",
        }
    }

    /// Name of the type in device registers.
    pub(super) fn register_name(self) -> &'static str {
        if self.is_float() { "float" } else { self.device_name() }
    }
}

/// A function of one element of each input. Floats have 32 or 16 bits.
#[derive(Debug, Clone)]
pub enum Function {
    /// `x == number`: float to bool.
    Equal(f32),
    /// `x >= number`: float to bool.
    AtLeast(f32),
    /// `number` where `x < number`, otherwise `x`, NaN included: float to float.
    ClampMin(f32),
    /// The second input where the first is true, otherwise the third: bool, float, float to float.
    Where,
    /// The number where the first input is true, otherwise the second: bool, float to float.
    MaskedFill(f32),
    /// The number, without inputs, to any type: rounded for floats, truncated for i64, whether it is not 0 for bool.
    Fill(f64),
    /// The element's number in row-major order, from 0, without inputs: to i64.
    Positions,
    /// The value as another type, or as the same one. A float to i64 truncates, limits the value to the range of i64, and
    /// gives 0 for NaN; i64 to a float rounds to nearest, to 32 bits first; to bool gives whether the value is not 0.
    Convert,
    /// An elementwise program: floats to floats. `exp`, `tanh` and similar functions come from CUDA's library; all other
    /// results have the bits of the CPU's.
    Program(Program),
}

impl Function {
    /// Fails unless the function takes inputs of these types and gives outputs of these types.
    pub(super) fn check(&self, inputs: &[Type], outputs: &[Type]) -> Result<(), Error> {
        use Type::{Bool, I64};
        let floats = |types: &[Type]| types.iter().all(|r#type| r#type.is_float());
        let one = |fits: &dyn Fn(Type) -> bool| matches!(*outputs, [output] if fits(output));
        let to_bool = one(&|output| output == Bool);
        let to_float = one(&Type::is_float);
        let fits = match self {
            Function::Equal(_) | Function::AtLeast(_) => inputs.len() == 1 && floats(inputs) && to_bool,
            Function::ClampMin(_) => inputs.len() == 1 && floats(inputs) && to_float,
            Function::Where => inputs.len() == 3 && inputs[0] == Bool && floats(&inputs[1..]) && to_float,
            Function::MaskedFill(_) => {
                inputs.len() == 2 && inputs[0] == Bool && floats(&inputs[1..]) && to_float
            }
            Function::Fill(_) => inputs.is_empty() && outputs.len() == 1,
            Function::Positions => inputs.is_empty() && one(&|output| output == I64),
            Function::Convert => inputs.len() == 1 && outputs.len() == 1,
            Function::Program(program) => {
                let counts = (inputs.len(), outputs.len()) == (program.inputs(), program.outputs());
                counts && floats(inputs) && floats(outputs)
            }
        };
        if fits {
            return Ok(());
        }
        let what = match self {
            Function::Program(program) => {
                format!("a program of {} inputs and {} outputs", program.inputs(), program.outputs())
            }
            other => format!("{other:?}"),
        };
        Err(Error::Unsupported {
            what: format!("{what} of {inputs:?} to {outputs:?}"),
            remedy: "give it the operands that its description names, or convert them first",
        })
    }

    /// The function as an expression of device code over its operands and the element's `number`. `None` for a program.
    pub(super) fn expression(&self, operands: &[String], inputs: &[Type], output: Type) -> Option<String> {
        let float = |value: f32| format!("__uint_as_float({}u)", value.to_bits());
        let x = |at: usize| &operands[at];
        Some(match *self {
            Function::Equal(value) => format!("{} == {}", x(0), float(value)),
            Function::AtLeast(value) => format!("{} >= {}", x(0), float(value)),
            Function::ClampMin(least) => {
                format!("{x} < {least} ? {least} : {x}", x = x(0), least = float(least))
            }
            Function::Where => format!("{} ? {} : {}", x(0), x(1), x(2)),
            Function::MaskedFill(value) => format!("{} ? {} : {}", x(0), float(value), x(1)),
            Function::Fill(value) => match output {
                Type::F32 | Type::Bf16 => float(value as f32),
                Type::I64 => format!("(long long){}ull", (value as i64).cast_unsigned()),
                Type::Bool => u8::from(value != 0.0).to_string(),
            },
            Function::Positions => "(long long)number".to_owned(),
            Function::Convert => match (inputs[0], output) {
                (_, Type::Bool) => format!("{} != 0", x(0)),
                (Type::F32 | Type::Bf16, Type::I64) => {
                    format!("{x} == {x} ? __float2ll_rz({x}) : 0ll", x = x(0))
                }
                (Type::I64, Type::F32 | Type::Bf16) => format!("__ll2float_rn({})", x(0)),
                (Type::Bool, Type::F32 | Type::Bf16) => format!("{} ? 1.0f : 0.0f", x(0)),
                (Type::Bool, Type::I64) => format!("{} ? 1ll : 0ll", x(0)),
                (Type::F32 | Type::Bf16, Type::F32 | Type::Bf16) | (Type::I64, Type::I64) => x(0).clone(),
            },
            Function::Program(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use steptime_ops::elementwise::Expr;

    use super::*;

    #[test]
    fn operands_of_other_types_are_refused() {
        use Type::{Bf16, Bool, F32, I64};
        let program = || Function::Program(Program::new(&[Expr::input(0) + Expr::input(1)]).unwrap());
        assert!(Function::Where.check(&[Bool, F32, Bf16], &[F32]).is_ok());
        assert!(Function::Convert.check(&[I64], &[Bool]).is_ok());
        assert!(program().check(&[F32, Bf16], &[Bf16]).is_ok());
        for (function, inputs, outputs) in [
            (Function::Equal(0.0), vec![I64], vec![Bool]),
            (Function::AtLeast(0.0), vec![F32], vec![F32]),
            (Function::ClampMin(0.0), vec![], vec![F32]),
            (Function::Where, vec![F32, F32, F32], vec![F32]),
            (Function::MaskedFill(0.0), vec![Bool], vec![F32]),
            (Function::Fill(0.0), vec![F32], vec![F32]),
            (Function::Positions, vec![], vec![F32]),
            (Function::Convert, vec![], vec![F32]),
            (program(), vec![F32], vec![F32]),
            (program(), vec![F32, I64], vec![F32]),
            (program(), vec![F32, F32], vec![]),
        ] {
            let error = function.check(&inputs, &outputs).unwrap_err().to_string();
            assert!(error.contains("operands that its description names"), "{error}");
        }
    }

    #[test]
    fn numbers_keep_their_bits() {
        let code = |function: Function, inputs: &[Type], output| {
            let names: Vec<String> = (0..inputs.len()).map(|at| format!("x{at}")).collect();
            function.expression(&names, inputs, output).unwrap()
        };
        assert_eq!(code(Function::Fill(-2.9), &[], Type::I64), format!("(long long){}ull", u64::MAX - 1));
        assert_eq!(code(Function::Fill(0.5), &[], Type::Bool), "1");
        assert!(code(Function::Equal(-0.0), &[Type::F32], Type::Bool).contains("2147483648u"));
    }
}
