//! Functions, and the types of their operands.

use steptime_tensor::Layout;

use crate::Error;

/// Type of an operand's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// 32-bit floats.
    F32,
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
            Type::I64 => 8,
            Type::Bool => 1,
        }
    }

    /// Name of the type in device code.
    pub(super) fn device_name(self) -> &'static str {
        match self {
            Type::F32 => "float",
            Type::I64 => "long long",
            Type::Bool => "unsigned char",
        }
    }
}

/// An operand of a function: the positions of its elements in its buffer, counted in elements, and their type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// Shape, strides and offset.
    pub layout: Layout,
    /// Type of the elements.
    pub r#type: Type,
}

/// A function of one element of each input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Function {
    /// `x == number`: f32 to bool.
    Equal(f32),
    /// `x >= number`: f32 to bool.
    AtLeast(f32),
    /// `number` where `x < number`, otherwise `x`, NaN included: f32 to f32.
    ClampMin(f32),
    /// The second input where the first is true, otherwise the third: bool, f32, f32 to f32.
    Where,
    /// The number where the input is true; other elements of the output keep their values: bool to f32.
    MaskedFill(f32),
    /// The number, without inputs, to any type: rounded for f32, truncated for i64, whether it is not 0 for bool.
    Fill(f64),
    /// The element's number in row-major order, from 0, without inputs: to i64.
    Positions,
    /// The value as another type, or as the same one. f32 to i64 truncates, limits the value to the range of i64, and
    /// gives 0 for NaN; i64 to f32 rounds to nearest; to bool gives whether the value is not 0.
    Convert,
}

impl Function {
    /// Fails unless the function takes inputs of these types and gives an output of this type.
    pub(super) fn check(self, inputs: &[Type], output: Type) -> Result<(), Error> {
        use Type::{Bool, F32, I64};
        let fits = match self {
            Function::Equal(_) | Function::AtLeast(_) => inputs == [F32] && output == Bool,
            Function::ClampMin(_) => inputs == [F32] && output == F32,
            Function::Where => inputs == [Bool, F32, F32] && output == F32,
            Function::MaskedFill(_) => inputs == [Bool] && output == F32,
            Function::Fill(_) => inputs.is_empty(),
            Function::Positions => inputs.is_empty() && output == I64,
            Function::Convert => inputs.len() == 1,
        };
        if fits {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: format!("{self:?} of {inputs:?} to {output:?}"),
            remedy: "give it the operands that its description names, or convert them first",
        })
    }

    /// The function as an expression of device code over `x0`, `x1`, .. and the element's `number`.
    pub(super) fn expression(self, inputs: &[Type], output: Type) -> String {
        let float = |value: f32| format!("__uint_as_float({}u)", value.to_bits());
        match self {
            Function::Equal(value) => format!("x0 == {}", float(value)),
            Function::AtLeast(value) => format!("x0 >= {}", float(value)),
            Function::ClampMin(least) => format!("x0 < {least} ? {least} : x0", least = float(least)),
            Function::Where => "x0 ? x1 : x2".to_owned(),
            Function::MaskedFill(value) => float(value),
            Function::Fill(value) => match output {
                Type::F32 => float(value as f32),
                Type::I64 => format!("(long long){}ull", (value as i64).cast_unsigned()),
                Type::Bool => u8::from(value != 0.0).to_string(),
            },
            Function::Positions => "(long long)number".to_owned(),
            Function::Convert => match (inputs[0], output) {
                (_, Type::Bool) => "x0 != 0".to_owned(),
                (Type::F32, Type::I64) => "x0 == x0 ? __float2ll_rz(x0) : 0ll".to_owned(),
                (Type::I64, Type::F32) => "__ll2float_rn(x0)".to_owned(),
                (Type::Bool, Type::F32) => "x0 ? 1.0f : 0.0f".to_owned(),
                (Type::Bool, Type::I64) => "x0 ? 1ll : 0ll".to_owned(),
                (Type::F32, Type::F32) | (Type::I64, Type::I64) => "x0".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_of_other_types_are_refused() {
        use Type::{Bool, F32, I64};
        assert!(Function::Where.check(&[Bool, F32, F32], F32).is_ok());
        assert!(Function::Convert.check(&[I64], Bool).is_ok());
        for (function, inputs, output) in [
            (Function::Equal(0.0), vec![I64], Bool),
            (Function::AtLeast(0.0), vec![F32], F32),
            (Function::ClampMin(0.0), vec![], F32),
            (Function::Where, vec![F32, F32, F32], F32),
            (Function::MaskedFill(0.0), vec![Bool], I64),
            (Function::Fill(0.0), vec![F32], F32),
            (Function::Positions, vec![], F32),
            (Function::Convert, vec![], F32),
        ] {
            let error = function.check(&inputs, output).unwrap_err().to_string();
            assert!(error.contains("operands that its description names"), "{error}");
        }
    }

    #[test]
    fn numbers_keep_their_bits() {
        assert_eq!(
            Function::Fill(-2.9).expression(&[], Type::I64),
            format!("(long long){}ull", u64::MAX - 1)
        );
        assert_eq!(Function::Fill(0.5).expression(&[], Type::Bool), "1");
        assert!(Function::Equal(-0.0).expression(&[Type::F32], Type::Bool).contains("2147483648u"));
    }
}
